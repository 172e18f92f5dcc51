#!/usr/bin/env python3
"""Configuration keys that the reference implementation reads and a recipe does not.

For every family of scripts/variants.py: the keys that `transformers`' modeling code reads from its config
(config.KEY, getattr(config, "KEY")), those its configuration class declares, and what the recipe makes of
them: read by an expression, ignored by name (by the recipe or for all families), or unknown, which is a notice
at conversion. A key that the modeling code reads and the recipe only ignores is a difference that nobody would
see: each must be accounted for in EXPLAINED, or the script fails. Needs transformers; no model is made.
usage: config_keys.py [--all] [NAME...]     (--all: also the keys that are accounted for)
"""
import ast, fnmatch, importlib, inspect, json, pathlib, re, sys
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
import variants

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
# Keys that choose code paths, training behaviour or outputs, never a forward pass's numbers.
HARMLESS = {
    "_attn_implementation", "_experts_implementation", "output_attentions", "output_hidden_states", "return_dict", "use_return_dict", "use_cache",
    "problem_type", "num_labels", "initializer_range", "initializer_factor", "init_std", "is_encoder_decoder", "tie_encoder_decoder",
    "chunk_size_feed_forward", "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "output_router_logits",
    "router_aux_loss_coef", "gradient_checkpointing", "pretraining_tp", "cross_attention_hidden_size", "dtype", "torch_dtype",
    "id2label", "label2id", "architectures", "transformers_version", "keys_to_ignore_at_inference", "get_text_config",
    "to_dict", "layer_norm_eps_factor", "summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
    "reorder_and_upcast_attn", "router_jitter_noise", "aux_loss_alpha", "seq_aux", "embd_pdrop", "resid_pdrop", "attn_pdrop", "hidden_dropout",
    "slow_but_exact", "forced_eos_token_id", "attribute_map", "base_model_tp_plan", "base_model_pp_plan", "base_model_ep_plan",
    "model_type", "sub_configs", "vocab_size_or_config_json_file", "standardize_rope_params", "convert_rope_params_to_dict", "validate_rope",
}
# (families, key) -> why a key that the modeling code reads needs no expression in the recipe. "*": every family.
EXPLAINED = {
    ("gemma3", "attn_logit_softcapping"): "read into a field that the attention does not use (docs/DECISIONS.md)",
    ("gemma3", "image_token_id mm_tokens_per_image text_config vision_config"): "of the wrapper with images; its text part is read (sources.hf.inside)",
    ("gptneox falcon modernbert", "head_dim"): "rotation alone would follow it; the reference fails where it is not d_model / n_heads",
    ("deepseek2 deepseek3 deepseek32", "head_dim"): "set to qk_rope_head_dim by the class",
    ("deepseek2 deepseek3 deepseek32", "num_key_value_heads"): "the reference fails where it is not n_heads",
    ("distilbert", "sinusoidal_pos_embds"): "fills the table at initialization; the table is stored",
    ("modernbert", "deterministic_flash_attn initializer_cutoff_factor sparse_pred_ignore_index sparse_prediction"): "training, or another attention kernel",
    ("modernbert", "sliding_window"): "follows from local_attention",
    ("t5 mt5 umt5 t5encoder mt5encoder umt5encoder", "dense_act_fn is_gated_act"): "follow from feed_forward_proj",
    ("t5 mt5 umt5 t5encoder mt5encoder umt5encoder bart mbart marian pegasus bartdecoder mbartdecoder mariandecoder pegasusdecoder", "is_decoder"): "set for each stack by the model's class",
}


def explained(family, key):
    return any((families == "*" or family in families.split()) and key in keys.split() for families, keys in EXPLAINED)


DROPOUT = re.compile(r"dropout|_pdrop$|_drop$|layerdrop|jitter")


def recipe_files():
    """recipe name -> the recipe with its parents merged"""
    raw = {p.stem: json.loads(p.read_text()) for p in MODELS.glob("*.json") if not p.name.startswith("_")}

    def merged(base, change):
        if not (isinstance(base, dict) and isinstance(change, dict)): return change
        return {**base, **{k: merged(base[k], v) if k in base else v for k, v in change.items()}}

    def whole(name):
        recipe = raw[name]
        return merged(whole(recipe["extends"]), recipe) if "extends" in recipe else recipe

    return {name: whole(name) for name in raw}


def keys_of_recipe(recipe):
    hf = recipe["sources"]["hf"]
    text = json.dumps([hf.get("values"), hf.get("refuse_unless"), hf.get("numbers")])
    return set(re.findall(r"\$(\w+)", text)), hf.get("ignore_keys", [])


def keys_of_code(module):
    """key -> lines of the modeling code that read it from a config"""
    found = {}
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        name = None
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if owner in ("config", "_config", "text_config"): name = node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            owner = node.args[0]
            owner = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
            if owner == "config" and isinstance(node.args[1], ast.Constant): name = node.args[1].value
        if name: found.setdefault(name, []).append(node.lineno)
    return found


def declared(config_class):
    return [p for p in inspect.signature(config_class.__init__).parameters if p not in ("self", "kwargs")]


def main():
    every, names = "--all" in sys.argv, [a for a in sys.argv[1:] if not a.startswith("-")]
    neutral = json.loads((MODELS / "_neutral.json").read_text())["ignore_keys"]["hf"]
    recipes = recipe_files()
    by_name = {match: name for name, recipe in recipes.items() for match in recipe["match"]["hf"]}
    open_keys = 0
    for family, (model_type, *_rest) in variants.VARIANTS.items():
        if names and not any(family.startswith(n) for n in names): continue
        config_class = CONFIG_MAPPING[model_type]
        package = config_class.__module__.rsplit(".", 1)[0]
        modeling = importlib.import_module(f"{package}.modeling_{package.rsplit('.', 1)[1]}")
        recipe_name = by_name.get(model_type)
        read, ignored = keys_of_recipe(recipes[recipe_name])
        aliases = {v: k for k, v in getattr(config_class, "attribute_map", {}).items()}
        reverse = dict(getattr(config_class, "attribute_map", {}))
        in_code, in_class = keys_of_code(modeling), declared(config_class)
        print(f"== {family} ({model_type}, {recipe_name})")
        for key in sorted(set(in_code) | set(in_class)):
            spellings = {key, aliases.get(key, key), reverse.get(key, key)}
            if spellings & read or key.startswith("_") or DROPOUT.search(key): continue
            how = ("ignored by the recipe" if any(fnmatch.fnmatch(s, p) for s in spellings for p in ignored) else
                   "ignored in every family" if any(fnmatch.fnmatch(s, p) for s in spellings for p in neutral) else "a notice")
            if key in HARMLESS and not every: continue
            lines = in_code.get(key)
            known = explained(family, key)
            if known and not every: continue
            where = "lines " + ",".join(map(str, lines[:6])) if lines else "declared only"
            print(f"   {key:34} {how:24} {where}")
            open_keys += bool(lines) and not known
    print(f"{open_keys} keys are read by the reference and not by the recipe, and not explained")
    return 1 if open_keys else 0


if __name__ == "__main__": sys.exit(main())
