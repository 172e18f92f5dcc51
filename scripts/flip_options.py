#!/usr/bin/env python3
"""Every configuration key of every family, flipped once, against the reference implementation.

For each family of scripts/variants.py and each key that its configuration class declares, a tiny checkpoint
with another value of that key is made, and quern must either refuse it, naming a reason, or give the reference's
logits. Keys that the reference cannot build or run with the other value are skipped. Needs torch, transformers.
usage: flip_options.py QUERN QUERN_CONVERT [NAME...]
"""
import inspect, json, pathlib, shutil, sys, tempfile, types
import torch, transformers
import config_keys, variants

WORDS = {"hidden_act": "relu", "activation_function": "relu", "activation": "relu", "hidden_activation": "relu", "feed_forward_proj": "gated-silu",
         "topk_method": "group_limited_greedy", "scoring_func": "softmax", "classifier_activation": "relu", "dense_act_fn": "relu", "classifier_pooling": "cls",
         "position_embedding_type": "relative_key", "reference_compile": True}
ABSENT = {"sliding_window": 9, "attention_window": 9, "n_inner": 100, "head_dim": 20, "num_key_value_heads": 3, "ffn_hidden_size": 100, "num_kv_heads": 3, "q_lora_rank": 40,
          "num_ln_in_parallel_attn": 1, "query_pre_attn_scalar": 30, "decoder_vocab_size": variants.VOCAB, "num_decoder_layers": 2, "attn_logit_softcapping": 20.0,
          "final_logit_softcapping": 20.0, "clip_qkv": 0.4, "word_embed_proj_dim": 40, "hidden_activation": "relu", "activation": "relu", "mlp_only_layers": [1],
          "layer_types": None, "use_bidirectional_attention": True, "swiglu_limit": 2.0, "max_window_layers": 1, "no_rope_layers": [1, 0, 1, 0, 1], "rope_theta": 5e3}


def other(key, value):
    """another value of the key, or None where no guess is good"""
    if isinstance(value, bool): return not value
    if value is None: return ABSENT.get(key)
    if isinstance(value, int): return {"n_group": 1, "topk_group": 1}.get(key, value + 1 if value < 4 else value // 2 if value % 2 == 0 else value - 1)
    if isinstance(value, float): return 1e-3 if value < 1e-2 else value * 1.5
    if isinstance(value, str): return WORDS.get(key)
    return ABSENT.get(key)


def flips(model_type, base):
    config_class = transformers.CONFIG_MAPPING[model_type]
    config = transformers.AutoConfig.for_model(model_type, **base)
    values = config.to_dict()
    for key in inspect.signature(config_class.__init__).parameters:
        if key in ("self", "kwargs", "vocab_size", "model_type", "transformers_version") or key.startswith("_"): continue
        if key in config_keys.HARMLESS or config_keys.DROPOUT.search(key): continue
        value = other(key, values.get(key))
        if value is not None and value != values.get(key): yield key, value


# Refused for a reason: the recipe names the key's value, or the reference's option is one that quern does not have.
REFUSED = ("refused by the recipe", "is not part of", "unknown activation")


def flip(tools, name, case, key, value):
    """-> "matches", "refused: ..." or "skipped: ..."; an exception where quern differs or fails otherwise"""
    model_type, kind, base, options, *model_class = case
    with tempfile.TemporaryDirectory() as t:
        work = pathlib.Path(t)
        try: reference = variants.make(work / "src", model_type, kind, {**base, **options[0], key: value}, 1, *model_class); reference()
        except Exception as error: return f"skipped: the reference fails: {(str(error).splitlines() or [repr(error)])[0][:80]}"
        saved = json.loads((work / "src/config.json").read_text())
        if saved.get(key) != value: return f"skipped: not saved ({saved.get(key)})"
        try: variants.check(tools, work / "src", reference, kind, work)
        except Exception as error:
            if any(reason in str(error) for reason in REFUSED): return f"refused: {error}"
            raise
    return "matches"


def main():
    quern, convert, *names = sys.argv[1:]
    tools = types.SimpleNamespace(quern=quern, convert=convert, type="f32")
    transformers.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar(); torch.set_num_threads(1)
    count, bad = {"matches": 0, "refused": 0, "skipped": 0}, []
    for name, case in variants.VARIANTS.items():
        if names and name not in names: continue
        for key, value in flips(case[0], {**case[2], **case[3][0]}):
            try: result = flip(tools, name, case, key, value)
            except Exception as error: result = f"DIFFERS: {error}"; bad.append(f"{name}.{key}")
            count[result.split(":")[0]] = count.get(result.split(":")[0], 0) + 1
            if result != "matches": print(f"{name} {key}={value}: {result}"[:240], flush=True)
    print(f"{count['matches']} match, {count['refused']} are refused, {count['skipped']} cannot be made; differing: {' '.join(bad) or 'none'}")
    return 1 if bad else 0


if __name__ == "__main__": sys.exit(main())
