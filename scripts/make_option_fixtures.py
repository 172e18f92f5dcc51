#!/usr/bin/env python3
"""Golden fixtures of options that the fixtures of whole families do not cover, made with the reference.

Writes tests/data/fixtures/NAME (checkpoint, expected.safetensors) for the cases below; the numbers come from
`transformers` in float32 with eager attention. usage: make_option_fixtures.py [NAME...]
"""
import copy, pathlib, sys
import torch, transformers
from safetensors.torch import save_file
import variants

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "fixtures"
BASE = dict(vocab_size=131, pad_token_id=0, bos_token_id=1, eos_token_id=2)
# name -> (model_type, kind, options, tokens, class)
FIXTURES = {
    # Heads that are no power of two, and positions above 256, which bfloat16 rounds.
    "falcon-alibi-12": ("falcon", variants.CAUSAL, dict(BASE, hidden_size=72, num_hidden_layers=2, num_attention_heads=12, multi_query=False,
                        parallel_attn=False, new_decoder_architecture=False, alibi=True, bias=True), 300, None),
    "opt-projected": ("opt", variants.CAUSAL, dict(BASE, hidden_size=60, word_embed_proj_dim=36, ffn_dim=100, num_hidden_layers=2, num_attention_heads=5,
                      max_position_embeddings=128, do_layer_norm_before=False), 80, None),
    "bart-decoder": ("bart", variants.CAUSAL, dict(BASE, d_model=60, decoder_layers=2, encoder_layers=1, decoder_attention_heads=5, decoder_ffn_dim=90,
                     encoder_ffn_dim=8, max_position_embeddings=128, scale_embedding=True), 80, "BartForCausalLM"),
    "t5-encoder": ("t5", variants.HIDDEN, dict(vocab_size=131, d_model=60, d_kv=14, d_ff=90, num_layers=2, num_heads=5, relative_attention_num_buckets=12,
                   relative_attention_max_distance=37, feed_forward_proj="gated-gelu", pad_token_id=0, eos_token_id=1), 80, "T5EncoderModel"),
    # A window of both sides, half as wide as the configuration says, beside layers without one.
    "gemma3-encoder": ("gemma3_text", variants.HIDDEN, dict(BASE, vocab_size=323, hidden_size=40, intermediate_size=56, num_hidden_layers=7, num_attention_heads=4, num_key_value_heads=1, head_dim=16,
                       max_position_embeddings=128, sliding_window=11, query_pre_attn_scalar=18, use_bidirectional_attention=True), 80, "Gemma3TextModel"),
    # A branch is added to its normed input.
    "bloom-normed": ("bloom", variants.CAUSAL, dict(BASE, hidden_size=60, n_layer=3, n_head=5, apply_residual_connection_post_layernorm=True), 80, None),
    # Its input holds the padding id.
    "roberta-pads": ("roberta", variants.MLM, dict(BASE, hidden_size=60, num_hidden_layers=2, num_attention_heads=5, intermediate_size=90, pad_token_id=1,
                     max_position_embeddings=128, type_vocab_size=1), 80, None),
}


def greedy(model, prompt, n):
    ids, out, margins = prompt[None], [], []
    for _ in range(n):
        top = model(input_ids=ids, use_cache=False).logits[0, -1].topk(2)
        out.append(int(top.indices[0])); margins.append(float(top.values[0] - top.values[1]))
        ids = torch.cat([ids, top.indices[:1][None]], 1)
    return {"greedy_prompt": prompt.to(torch.int32), "greedy_ids": torch.tensor(out, dtype=torch.int32), "greedy_margin": torch.tensor(margins)}


def main():
    transformers.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar(); torch.set_num_threads(1)
    variants.VOCAB = 131
    for name, (model_type, kind, options, n, model_class) in FIXTURES.items():
        if sys.argv[1:] and name not in sys.argv[1:]: continue
        variants.make(ROOT / name, model_type, kind, copy.deepcopy(options), 7, model_class)
        cls = getattr(transformers, model_class) if model_class else variants.KINDS[kind]
        model = cls.from_pretrained(ROOT / name, dtype=torch.float32, attn_implementation="eager").eval()
        with torch.no_grad():
            expected = variants.expected_of(model, model.config, kind, 8, n)
            ids = expected["input_ids"].long()
            if kind == variants.HIDDEN: expected = {"input_ids": expected["input_ids"], "last_hidden_state": expected["logits"]}
            if kind == variants.MLM: expected["last_hidden_state"] = model.base_model(input_ids=ids[None]).last_hidden_state[0].contiguous()
            if kind == variants.CAUSAL: expected.update(greedy(model, ids[:16], 24))
        save_file(expected, ROOT / name / "expected.safetensors")
        print(name, sum(f.stat().st_size for f in (ROOT / name).iterdir()), "bytes")


if __name__ == "__main__": main()
