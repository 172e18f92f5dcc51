#!/usr/bin/env python3
"""Every family against its reference implementation, with its options flipped.

Makes tiny random checkpoints with `transformers` (pip install torch transformers safetensors), one per
line of VARIANTS, and compares quern's float32 logits with the reference's, in one prefill and token by
token.  usage: variants.py QUERN QUERN_CONVERT [NAME...] [--type T] [--heads] [--random N] [--seed N] [--keep DIR]
(NAME: a prefix)

With --type q8 or q4 the reference runs on the weights of quern's own file (scripts/weight_file.py), row by row,
with activations quantized as docs/FORMATS.md says; the largest difference allowed is then 5e-3 of std. An
activation that lies on the edge of two codes (about one in 1e5) may round either way and moves a tiny random
net by several per cent, so up to 24 short sequences are run until one holds; measured, they agree to 3e-6 or
not at all, and a wrong forward fails every one.

Weights are drawn away from the symmetry of an initialization: norms in 0.5 .. 1.5, biases, sinks and
position tables not zero. Checkpoints are stored as bfloat16 (with --random also as float16 and float32, in one file or
several) and both sides compute in float32.
"""
import argparse, copy, json, pathlib, re, shutil, subprocess, sys, tempfile
import numpy as np
import torch
import transformers
import torch.nn.functional as F
from safetensors.torch import save_file
import variant_shapes, weight_file

N, VOCAB = 80, 323          # tokens of a case; an odd vocabulary
DEC = dict(vocab_size=VOCAB, pad_token_id=0, bos_token_id=1, eos_token_id=2)
LL = dict(DEC, hidden_size=72, intermediate_size=104, num_hidden_layers=3, num_attention_heads=6,
          num_key_value_heads=2, max_position_embeddings=256)
MOE = dict(LL, num_experts_per_tok=3)
DS = dict(DEC, hidden_size=72, intermediate_size=104, moe_intermediate_size=56, num_hidden_layers=3,
          num_attention_heads=6, num_key_value_heads=6, max_position_embeddings=256, q_lora_rank=40,
          kv_lora_rank=24, qk_nope_head_dim=20, qk_rope_head_dim=12, v_head_dim=28, n_routed_experts=12,
          num_experts_per_tok=3, n_shared_experts=2, n_group=3, topk_group=2, first_k_dense_replace=1)
GPT2 = dict(DEC, n_embd=72, n_layer=3, n_head=6, n_positions=256)
ENC = dict(vocab_size=VOCAB, pad_token_id=0, hidden_size=72, num_hidden_layers=3, num_attention_heads=6,
           intermediate_size=104, max_position_embeddings=256)
T5 = dict(vocab_size=VOCAB, d_model=72, d_kv=20, d_ff=104, num_layers=2, num_decoder_layers=3, num_heads=5,
          relative_attention_num_buckets=12, relative_attention_max_distance=37, pad_token_id=0, eos_token_id=1,
          decoder_start_token_id=0)
BART = dict(vocab_size=VOCAB, d_model=72, encoder_layers=2, decoder_layers=3, encoder_attention_heads=6,
            decoder_attention_heads=4, encoder_ffn_dim=104, decoder_ffn_dim=88, max_position_embeddings=256)
YARN = dict(rope_type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=64)
LLAMA3 = dict(rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)


def longrope(dims, theta=1e4, n=64):
    return dict(rope_type="longrope", rope_theta=theta, original_max_position_embeddings=n,
                short_factor=[1.0 + 0.01 * i for i in range(dims // 2)],
                long_factor=[1.5 + 0.1 * i for i in range(dims // 2)])


def rope(theta=1e4, **more):
    return dict(rope_theta=theta, **(more or dict(rope_type="default")))


CAUSAL, SEQ2SEQ, MLM, HIDDEN, TEXT, TOKENS, SPAN = "causal", "seq2seq", "mlm", "hidden", "text classes", "token classes", "answer spans"
# name -> (model_type, kind, base, [option sets], class unless the Auto class of the kind); the first option set
# is the plain one.
VARIANTS = {
    "llama": ("llama", CAUSAL, LL, [
        {}, dict(attention_bias=True), dict(mlp_bias=True), dict(tie_word_embeddings=True), dict(head_dim=20),
        dict(num_key_value_heads=6), dict(num_key_value_heads=1), dict(rope_parameters=rope(rope_type="linear", factor=2.5)),
        dict(rope_parameters=LLAMA3), dict(rope_parameters=YARN), dict(rope_parameters=dict(YARN, beta_fast=16.0, beta_slow=2.0, attention_factor=1.2)),
        dict(rope_parameters=rope(rope_type="dynamic", factor=2.0), max_position_embeddings=48),
        dict(hidden_act="gelu"), dict(rms_norm_eps=1e-3),
        dict(rope_parameters=dict(longrope(12, n=128))), dict(rope_parameters=rope(rope_type="dynamic", factor=3.0), max_position_embeddings=200), dict(hidden_act="gelu_pytorch_tanh", mlp_bias=True, attention_bias=True),
        dict(hidden_act="relu", num_attention_heads=9, num_key_value_heads=3, hidden_size=45, head_dim=14), dict(rope_parameters=dict(YARN, mscale=0.8, mscale_all_dim=0.5)), dict(rope_parameters=dict(YARN, truncate=False)),
        dict(max_position_embeddings=40), dict(rope_parameters=LLAMA3, max_position_embeddings=64), dict(rope_parameters=rope(rope_type="dynamic", factor=1.5), max_position_embeddings=40)]),   # longer than trained
    "mistral": ("mistral", CAUSAL, LL, [dict(sliding_window=None), dict(sliding_window=7), dict(head_dim=20, sliding_window=33),
        dict(rope_parameters=YARN, sliding_window=20), dict(num_key_value_heads=1, head_dim=8, sliding_window=None, tie_word_embeddings=True), dict(hidden_act="gelu", sliding_window=1)]),
    "qwen2": ("qwen2", CAUSAL, LL, [{}, dict(use_sliding_window=True, sliding_window=9, max_window_layers=1),
              dict(tie_word_embeddings=True, num_key_value_heads=6),
              dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"], use_sliding_window=True, sliding_window=11),
        dict(rope_parameters=YARN, use_sliding_window=True, sliding_window=9, max_window_layers=3), dict(use_sliding_window=False, sliding_window=9, max_window_layers=1), dict(use_sliding_window=True, sliding_window=5, max_window_layers=0, num_key_value_heads=1)]),
    "qwen3": ("qwen3", CAUSAL, dict(LL, head_dim=20), [{}, dict(attention_bias=True), dict(tie_word_embeddings=True),
              dict(use_sliding_window=True, sliding_window=9, max_window_layers=2),
        dict(layer_types=["full_attention", "sliding_attention", "full_attention"], use_sliding_window=True, sliding_window=6), dict(rope_parameters=YARN, num_key_value_heads=1), dict(hidden_act="gelu_new", head_dim=8)]),
    "glm": ("glm", CAUSAL, dict(LL, head_dim=12), [{}, dict(attention_bias=True), dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="default"), head_dim=20),
        dict(rope_parameters=dict(YARN, partial_rotary_factor=0.5), head_dim=16), dict(rope_parameters=rope(partial_rotary_factor=1.0, rope_type="default"), head_dim=10, num_key_value_heads=1), dict(tie_word_embeddings=True)]),
    "glm4": ("glm4", CAUSAL, dict(LL, head_dim=12), [{}, dict(attention_bias=True, head_dim=16),
        dict(rope_parameters=rope(partial_rotary_factor=0.25, rope_type="linear", factor=3.0), head_dim=16)]),
    "gemma": ("gemma", CAUSAL, dict(LL, head_dim=20), [{}, dict(num_key_value_heads=1), dict(hidden_act="gelu"),
        dict(tie_word_embeddings=False), dict(hidden_act="silu", hidden_activation="silu"), dict(rope_parameters=rope(rope_type="linear", factor=2.0))]),
    "gemma2": ("gemma2", CAUSAL, dict(LL, head_dim=20, sliding_window=9, query_pre_attn_scalar=18), [{}, dict(attn_logit_softcapping=None), dict(final_logit_softcapping=None, num_hidden_layers=5),
               dict(attention_bias=True),
        dict(layer_types=["full_attention", "full_attention", "sliding_attention"]), dict(attn_logit_softcapping=None, final_logit_softcapping=None, query_pre_attn_scalar=7), dict(tie_word_embeddings=False, hidden_activation="gelu")]),
    "gemma3": ("gemma3_text", CAUSAL, dict(LL, head_dim=20, sliding_window=9, query_pre_attn_scalar=18, num_hidden_layers=7), [{}, dict(num_hidden_layers=2),
               dict(layer_types=["full_attention", "sliding_attention", "full_attention"], num_hidden_layers=3),
               dict(rope_parameters={"sliding_attention": rope(1e4), "full_attention": rope(1e6, rope_type="linear", factor=8.0)}),
        dict(attn_logit_softcapping=30.0, final_logit_softcapping=20.0), dict(tie_word_embeddings=False, attention_bias=True), dict(num_key_value_heads=1, sliding_window_pattern=3, num_hidden_layers=6)]),
    "gemma3encoder": ("gemma3_text", HIDDEN, dict(LL, head_dim=20, sliding_window=9, query_pre_attn_scalar=18, num_hidden_layers=7, use_bidirectional_attention=True), [
        {}, dict(sliding_window=12, layer_types=["sliding_attention", "full_attention", "sliding_attention"], num_hidden_layers=3), dict(attention_bias=True, num_key_value_heads=1, rope_parameters={"sliding_attention": rope(1e4), "full_attention": rope(1e6, rope_type="linear", factor=8.0)}),
        dict(use_bidirectional_attention=False)], "Gemma3TextModel"),
    "phi3": ("phi3", CAUSAL, dict(LL, pad_token_id=0), [{}, dict(sliding_window=8), dict(rope_parameters=dict(longrope(12), partial_rotary_factor=1.0), original_max_position_embeddings=64),
             dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="default")),
        dict(hidden_size=96, rope_parameters=dict(longrope(12), partial_rotary_factor=0.75), original_max_position_embeddings=64), dict(rope_parameters=dict(longrope(12, n=128), partial_rotary_factor=1.0), original_max_position_embeddings=128),
             dict(rope_parameters=dict(longrope(6), partial_rotary_factor=0.5), original_max_position_embeddings=64, tie_word_embeddings=True, num_key_value_heads=1), dict(hidden_act="gelu"),
             dict(rope_parameters=dict(longrope(12, n=32), partial_rotary_factor=1.0), original_max_position_embeddings=32, max_position_embeddings=64)]),
    "olmo2": ("olmo2", CAUSAL, LL, [{}, dict(attention_bias=True), dict(num_key_value_heads=6, tie_word_embeddings=True),
        dict(rope_parameters=YARN), dict(num_key_value_heads=1)]),
    "olmo": ("olmo", CAUSAL, LL, [{}, dict(clip_qkv=0.5),
        dict(attention_bias=True, tie_word_embeddings=True), dict(num_key_value_heads=1, rope_parameters=rope(rope_type="dynamic", factor=2.0), max_position_embeddings=40)]),
    "cohere": ("cohere", CAUSAL, LL, [{}, dict(use_qk_norm=True), dict(attention_bias=True, logit_scale=0.3),
        dict(rope_parameters=rope(rope_type="linear", factor=2.0), tie_word_embeddings=False), dict(num_key_value_heads=6, use_qk_norm=True, attention_bias=True)]),
    "cohere2": ("cohere2", CAUSAL, dict(LL, sliding_window=9, num_hidden_layers=5), [{},
        dict(layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]), dict(sliding_window_pattern=2, attention_bias=True), dict(logit_scale=0.5, tie_word_embeddings=False, head_dim=12)]),
    "granite": ("granite", CAUSAL, LL, [dict(embedding_multiplier=3.0, attention_multiplier=0.2, residual_multiplier=0.7, logits_scaling=2.0), dict(attention_bias=True, mlp_bias=True),
        dict(embedding_multiplier=0.5, attention_multiplier=1.3, residual_multiplier=1.2, logits_scaling=0.5, num_key_value_heads=1, tie_word_embeddings=True), dict(rope_parameters=YARN)]),
    "smollm3": ("smollm3", CAUSAL, dict(LL, num_hidden_layers=5), [{}, dict(no_rope_layers=[1, 0, 1, 0, 1]), dict(no_rope_layer_interval=2), dict(attention_bias=True, tie_word_embeddings=True),
                dict(use_sliding_window=True, sliding_window=9, layer_types=["sliding_attention", "full_attention"] * 2 + ["sliding_attention"]),
        dict(rope_parameters=YARN, num_key_value_heads=1), dict(no_rope_layers=[0, 0, 0, 0, 0], mlp_bias=True)]),
    "stablelm": ("stablelm", CAUSAL, dict(LL, rope_parameters=rope(partial_rotary_factor=0.5, rope_type="default")), [{}, dict(use_qkv_bias=True), dict(qk_layernorm=True), dict(use_parallel_residual=True, qk_layernorm=True), dict(rope_parameters=rope(partial_rotary_factor=1.0, rope_type="default")),
        dict(rope_parameters=rope(partial_rotary_factor=0.25, rope_type="linear", factor=2.0), hidden_size=96), dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="dynamic", factor=2.0), max_position_embeddings=40, num_key_value_heads=1), dict(tie_word_embeddings=True, hidden_act="gelu")]),
    "starcoder2": ("starcoder2", CAUSAL, LL, [{}, dict(use_bias=False), dict(sliding_window=9), dict(tie_word_embeddings=False),
        dict(rope_parameters=YARN, num_key_value_heads=1), dict(hidden_act="silu", num_key_value_heads=6, norm_epsilon=1e-3)]),
    "phi": ("phi", CAUSAL, dict(LL, num_key_value_heads=6), [{}, dict(qk_layernorm=True), dict(num_key_value_heads=2), dict(rope_parameters=rope(partial_rotary_factor=1.0, rope_type="default")),
        dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="linear", factor=4.0)), dict(hidden_act="relu", tie_word_embeddings=True, num_key_value_heads=1), dict(rope_parameters=dict(YARN, partial_rotary_factor=0.5))]),
    "gptneox": ("gpt_neox", CAUSAL, dict(LL, hidden_act="gelu"), [{}, dict(use_parallel_residual=False), dict(attention_bias=False), dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="default")), dict(tie_word_embeddings=True),
        dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="linear", factor=2.0)), dict(rope_parameters=rope(partial_rotary_factor=0.5, rope_type="dynamic", factor=2.0), max_position_embeddings=40), dict(hidden_act="gelu_new", use_parallel_residual=False, attention_bias=False)]),
    "gptj": ("gptj", CAUSAL, dict(GPT2, rotary_dim=8), [{}, dict(rotary_dim=12), dict(n_inner=100, activation_function="gelu"),
        dict(tie_word_embeddings=True, activation_function="relu")]),
    "gpt2": ("gpt2", CAUSAL, GPT2, [{}, dict(n_inner=100), dict(scale_attn_by_inverse_layer_idx=True), dict(scale_attn_weights=False), dict(activation_function="relu"), dict(tie_word_embeddings=False),
        dict(n_inner=50, activation_function="silu", scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True)]),
    "opt": ("opt", CAUSAL, dict(DEC, hidden_size=72, ffn_dim=104, num_hidden_layers=3, num_attention_heads=6, max_position_embeddings=256), [
        {}, dict(word_embed_proj_dim=40), dict(do_layer_norm_before=False), dict(word_embed_proj_dim=40, do_layer_norm_before=False), dict(word_embed_proj_dim=100, tie_word_embeddings=False), dict(enable_bias=False), dict(layer_norm_elementwise_affine=False),
        dict(activation_function="gelu", tie_word_embeddings=False),
        dict(_remove_final_layer_norm=True), dict(activation_function="gelu_new", ffn_dim=60)]),
    "bloom": ("bloom", CAUSAL, dict(DEC, hidden_size=72, n_layer=3, n_head=6), [{}, dict(n_head=4, hidden_size=64), dict(n_head=10, hidden_size=80), dict(n_head=12, apply_residual_connection_post_layernorm=True), dict(tie_word_embeddings=False), dict(seq_length=40)]),
    "mpt": ("mpt", CAUSAL, dict(DEC, d_model=72, n_heads=6, n_layers=3, max_seq_len=256, expansion_ratio=2), [{}, dict(attn_config=dict(alibi=True, clip_qkv=0.4)), dict(n_heads=4, attn_config=dict(alibi_bias_max=4)), dict(n_heads=12), dict(n_heads=10, d_model=80), dict(no_bias=True),
        dict(attn_config=dict(softmax_scale=0.3)), dict(tie_word_embeddings=False, expansion_ratio=3)]),
    "falcon": ("falcon", CAUSAL, dict(DEC, hidden_size=72, num_hidden_layers=3, num_attention_heads=6), [
        dict(multi_query=True, parallel_attn=True, new_decoder_architecture=False, alibi=False),
        dict(new_decoder_architecture=True, num_kv_heads=2, alibi=False), dict(new_decoder_architecture=True, num_kv_heads=3, num_ln_in_parallel_attn=1, alibi=False),
        dict(multi_query=False, parallel_attn=False, new_decoder_architecture=False, alibi=True, bias=True), dict(multi_query=False, parallel_attn=False, new_decoder_architecture=False, alibi=False, bias=True),
        dict(multi_query=True, parallel_attn=True, new_decoder_architecture=False, alibi=False, bias=True, ffn_hidden_size=100),
        *[dict(multi_query=False, parallel_attn=False, new_decoder_architecture=False, alibi=True, num_attention_heads=n, hidden_size=8 * n) for n in (3, 8, 10, 12, 16, 20)],
        dict(multi_query=True, parallel_attn=True, new_decoder_architecture=False, alibi=True), dict(new_decoder_architecture=True, num_kv_heads=2, alibi=True),
        dict(new_decoder_architecture=True, num_kv_heads=1, alibi=False, bias=True), dict(new_decoder_architecture=True, num_kv_heads=6, alibi=False, tie_word_embeddings=False), dict(multi_query=True, parallel_attn=False, new_decoder_architecture=False, alibi=False),
        dict(multi_query=False, parallel_attn=True, new_decoder_architecture=False, alibi=False), dict(multi_query=True, parallel_attn=True, new_decoder_architecture=False, alibi=False, activation="relu", rope_parameters=rope(rope_type="linear", factor=2.0)),
        dict(multi_query=True, parallel_attn=True, new_decoder_architecture=False, alibi=False, rope_parameters=rope(rope_type="dynamic", factor=2.0), max_position_embeddings=40)]),
    "mixtral": ("mixtral", CAUSAL, dict(LL, num_local_experts=6, num_experts_per_tok=3), [{}, dict(sliding_window=9), dict(num_experts_per_tok=1), dict(head_dim=20),
        dict(hidden_act="gelu", num_key_value_heads=1, num_experts_per_tok=6), dict(rope_parameters=YARN, tie_word_embeddings=True, head_dim=12)]),
    "qwen2moe": ("qwen2_moe", CAUSAL, dict(MOE, moe_intermediate_size=56, shared_expert_intermediate_size=88, num_experts=7), [
        {}, dict(norm_topk_prob=True), dict(mlp_only_layers=[1]), dict(decoder_sparse_step=2), dict(use_sliding_window=True, sliding_window=9, max_window_layers=1), dict(qkv_bias=False),
        dict(mlp_only_layers=[0, 2], decoder_sparse_step=1, norm_topk_prob=True), dict(decoder_sparse_step=3, shared_expert_intermediate_size=20, num_experts_per_tok=1), dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"], use_sliding_window=True, sliding_window=7), dict(hidden_act="gelu", tie_word_embeddings=True, rope_parameters=YARN)]),
    "qwen3moe": ("qwen3_moe", CAUSAL, dict(MOE, head_dim=20, moe_intermediate_size=56, num_experts=7), [{}, dict(norm_topk_prob=True), dict(mlp_only_layers=[0]), dict(decoder_sparse_step=2), dict(attention_bias=True),
        dict(norm_topk_prob=True, num_experts_per_tok=7), dict(mlp_only_layers=[1], decoder_sparse_step=2, num_key_value_heads=1), dict(use_sliding_window=True, sliding_window=8), dict(rope_parameters=YARN, hidden_act="gelu")]),
    "gptoss": ("gpt_oss", CAUSAL, dict(LL, head_dim=20, num_local_experts=6, num_experts_per_tok=2, sliding_window=9), [
        {}, dict(rope_parameters=dict(YARN, truncate=False)), dict(rope_parameters=rope(5e4)), dict(num_hidden_layers=4, layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"]), dict(attention_bias=False),
        dict(num_experts_per_tok=6, num_key_value_heads=1, tie_word_embeddings=True), dict(sliding_window=1, rope_parameters=dict(YARN, beta_fast=16.0, beta_slow=2.0))]),
    "deepseek2": ("deepseek_v2", CAUSAL, DS, [{}, dict(q_lora_rank=None), dict(topk_method="group_limited_greedy"), dict(routed_scaling_factor=2.0, n_shared_experts=1), dict(first_k_dense_replace=0),
                  dict(rope_parameters=dict(YARN, mscale=0.707, mscale_all_dim=0.707)), dict(attention_bias=True),
        dict(first_k_dense_replace=2, n_shared_experts=3, topk_method="group_limited_greedy", n_group=4, topk_group=1, routed_scaling_factor=16.0), dict(norm_topk_prob=True), dict(n_group=2, topk_group=2, topk_method="group_limited_greedy", hidden_act="gelu"), dict(rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=0.5))]),
    "deepseek3": ("deepseek_v3", CAUSAL, DS, [{}, dict(q_lora_rank=None), dict(n_group=1, topk_group=1), dict(norm_topk_prob=False), dict(rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=1.0)), dict(first_k_dense_replace=3), dict(attention_bias=True),
        dict(routed_scaling_factor=1.0, n_group=6, topk_group=3, num_experts_per_tok=5), dict(first_k_dense_replace=0, n_shared_experts=1), dict(rope_parameters=dict(YARN, mscale=0.7, mscale_all_dim=1.3), q_lora_rank=None), dict(rope_interleave=False), dict(hidden_act="gelu", n_group=6, topk_group=5)]),
    "deepseek32": ("deepseek_v32", CAUSAL, dict(DS, index_topk=16, index_n_heads=3, index_head_dim=20), [{}, dict(index_topk=128), dict(index_topk=1, index_head_dim=36)]),
    "bert": ("bert", MLM, ENC, [{}, dict(hidden_act="gelu_new"), dict(type_vocab_size=3), dict(hidden_act="relu", layer_norm_eps=1e-5), dict(tie_word_embeddings=False),
        dict(hidden_act="silu", position_embedding_type="absolute", type_vocab_size=1), dict(pad_token_id=None)]),
    "roberta": ("roberta", MLM, dict(ENC, pad_token_id=1, max_position_embeddings=130), [{}, dict(type_vocab_size=1), dict(hidden_act="relu"),
        dict(pad_token_id=0), dict(pad_token_id=5, hidden_act="gelu_new", tie_word_embeddings=False)]),
    "xlmroberta": ("xlm-roberta", MLM, dict(ENC, pad_token_id=1, max_position_embeddings=130, type_vocab_size=1), [{}]),
    "distilbert": ("distilbert", MLM, dict(vocab_size=VOCAB, dim=72, n_layers=3, n_heads=6, hidden_dim=104, max_position_embeddings=256), [{}, dict(sinusoidal_pos_embds=True), dict(activation="relu")]),
    "albert": ("albert", MLM, dict(ENC, embedding_size=24, num_hidden_layers=4), [{}, dict(num_hidden_groups=2), dict(num_hidden_groups=2, inner_group_num=2, hidden_act="gelu"),
        dict(hidden_act="relu", embedding_size=72), dict(num_hidden_groups=4, num_hidden_layers=4), dict(num_hidden_groups=3, num_hidden_layers=2)]),
    "modernbert": ("modernbert", MLM, dict(ENC, num_hidden_layers=5, local_attention=14, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2), [{}, dict(global_attn_every_n_layers=2), dict(attention_bias=True, mlp_bias=True, norm_bias=True), dict(decoder_bias=False), dict(hidden_activation="silu", classifier_activation="relu"),
        dict(rope_parameters={"full_attention": rope(5e4), "sliding_attention": rope(2e3)}), dict(layer_types=["sliding_attention", "full_attention", "full_attention", "sliding_attention", "full_attention"]), dict(local_attention=7), dict(max_position_embeddings=40), dict(tie_word_embeddings=False, hidden_activation="gelu_pytorch_tanh")]),
    "t5": ("t5", SEQ2SEQ, T5, [{}, dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False), dict(feed_forward_proj="gated-silu"), dict(tie_word_embeddings=False), dict(num_decoder_layers=1),
        dict(feed_forward_proj="gated-relu", num_decoder_layers=5), dict(feed_forward_proj="silu"), dict(feed_forward_proj="gelu", layer_norm_epsilon=1e-3), dict(relative_attention_num_buckets=34, relative_attention_max_distance=20), dict(n_positions=40)]),
    "mt5": ("mt5", SEQ2SEQ, dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False), [{}]),
    "umt5": ("umt5", SEQ2SEQ, dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False), [{}]),
    "bart": ("bart", SEQ2SEQ, dict(BART, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2), [{}, dict(scale_embedding=True), dict(activation_function="relu"), dict(encoder_layers=1, decoder_layers=1), dict(tie_word_embeddings=False),
        dict(activation_function="gelu_new", encoder_layers=4), dict(scale_embedding=True, tie_word_embeddings=False, activation_function="silu")]),
    "mbart": ("mbart", SEQ2SEQ, dict(BART, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2), [{}, dict(scale_embedding=True, activation_function="relu")]),
    "marian": ("marian", SEQ2SEQ, dict(BART, pad_token_id=VOCAB - 1, eos_token_id=0, decoder_start_token_id=VOCAB - 1, decoder_vocab_size=VOCAB), [dict(scale_embedding=True, activation_function="swish"), dict(scale_embedding=False), dict(activation_function="relu", encoder_layers=1), dict(tie_word_embeddings=False),
               dict(share_encoder_decoder_embeddings=False, decoder_vocab_size=201, tie_word_embeddings=False, pad_token_id=200, decoder_start_token_id=200)]),
    "pegasus": ("pegasus", SEQ2SEQ, dict(BART, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, scale_embedding=True), [{}]),
    "t5encoder": ("t5", HIDDEN, T5, [{}, dict(feed_forward_proj="gated-gelu"), dict(num_layers=1, num_heads=7)], "T5EncoderModel"),
    "mt5encoder": ("mt5", HIDDEN, T5, [{}], "MT5EncoderModel"),
    "umt5encoder": ("umt5", HIDDEN, T5, [{}], "UMT5EncoderModel"),
    "bartdecoder": ("bart", CAUSAL, dict(BART, pad_token_id=1), [{}, dict(scale_embedding=True, activation_function="relu"), dict(tie_word_embeddings=False)], "BartForCausalLM"),
    "mbartdecoder": ("mbart", CAUSAL, dict(BART, pad_token_id=1), [{}, dict(scale_embedding=True)], "MBartForCausalLM"),
    "mariandecoder": ("marian", CAUSAL, dict(BART, pad_token_id=VOCAB - 1, decoder_vocab_size=VOCAB), [{}, dict(scale_embedding=True, activation_function="swish")], "MarianForCausalLM"),
    "pegasusdecoder": ("pegasus", CAUSAL, dict(BART, pad_token_id=0), [{}], "PegasusForCausalLM"),
}
# The classes of a family that are no language model: ending of the class's name -> kind.
HEADS = {"ForSequenceClassification": TEXT, "ForTokenClassification": TOKENS, "ForQuestionAnswering": SPAN, "Model": HIDDEN}
# family -> (beginning of its classes' names, those that it has here)
ALL, DECODER = tuple(HEADS), tuple(HEADS)   # those that the reference has
CLASSES = {
    "bert": ("Bert", ALL), "roberta": ("Roberta", ALL), "xlmroberta": ("XLMRoberta", ALL), "distilbert": ("DistilBert", ALL), "albert": ("Albert", ALL),
    "modernbert": ("ModernBert", ALL),
    "llama": ("Llama", DECODER), "mistral": ("Mistral", DECODER), "qwen2": ("Qwen2", DECODER), "qwen3": ("Qwen3", DECODER), "gemma": ("Gemma", DECODER),
    "gemma2": ("Gemma2", DECODER), "gemma3": ("Gemma3Text", ("ForSequenceClassification", "Model")), "phi3": ("Phi3", DECODER), "phi": ("Phi", DECODER), "glm": ("Glm", DECODER),
    "stablelm": ("StableLm", DECODER), "starcoder2": ("Starcoder2", DECODER), "gptneox": ("GPTNeoX", DECODER), "gpt2": ("GPT2", DECODER), "gptj": ("GPTJ", DECODER),
    "opt": ("OPT", DECODER), "bloom": ("Bloom", ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")), "mpt": ("Mpt", DECODER), "falcon": ("Falcon", DECODER),
    "mixtral": ("Mixtral", DECODER), "qwen2moe": ("Qwen2Moe", DECODER), "qwen3moe": ("Qwen3Moe", DECODER), "gptoss": ("GptOss", DECODER),
    "deepseek2": ("DeepseekV2", ("ForSequenceClassification", "Model")), "deepseek3": ("DeepseekV3", DECODER), "smollm3": ("SmolLM3", DECODER), "cohere": ("Cohere", ("Model",)),
    "granite": ("Granite", ("Model",)), "olmo2": ("Olmo2", ("ForSequenceClassification", "Model")),
    "t5": ("T5", ALL[:3]), "mt5": ("MT5", ALL[:3]), "umt5": ("UMT5", ALL[:3]), "bart": ("Bart", ALL[:3]),
}


def class_variants():
    """those of CLASSES, as entries of VARIANTS"""
    for family, (begin, endings) in CLASSES.items():
        model_type, _, base, options, *_ = VARIANTS[family]
        for ending in endings:
            if not hasattr(transformers, begin + ending): continue
            labels = dict(num_labels=5) if HEADS[ending] in (TEXT, TOKENS) else {}
            if family == "opt": options = options[:1]   # no projection without a head
            yield f"{family}{ending}", (model_type, HEADS[ending], dict(base, **labels), options[:2], begin + ending)


KINDS = {CAUSAL: transformers.AutoModelForCausalLM, SEQ2SEQ: transformers.AutoModelForSeq2SeqLM, MLM: transformers.AutoModelForMaskedLM}


def randomize(model, seed, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(seed)
    unsaved = [re.compile(pattern) for pattern in model._keys_to_ignore_on_save or []]   # Marian's sinusoids
    seen, stored = set(), {name for name in model.state_dict() if not any(p.search(name) for p in unsaved)}
    with torch.no_grad():
        for name, p in list(model.named_parameters()) + list(model.named_buffers()):
            if p.data_ptr() in seen or not p.is_floating_point() or "inv_freq" in name or name not in stored: continue
            seen.add(p.data_ptr())
            normal = torch.empty(p.shape).normal_(generator=generator)
            uniform = torch.empty(p.shape).uniform_(generator=generator)
            norm = "norm" in name.lower() or ".ln" in name or "ln_" in name
            if p.dim() <= 1 or (norm and p.dim() == 2):
                value = (0.5 + uniform if norm and name.endswith("weight") else 0.3 * normal)
            elif "embed" in name or "wte" in name or "wpe" in name or "shared" in name: value = 0.7 * normal
            else: value = normal * (1.6 / p.shape[-1] ** 0.5)
            if name.endswith("Attention.q.weight"): value *= 2 / model.config.d_kv ** 0.5   # scores are not scaled
            p.copy_(value.to(dtype).to(p.dtype))


def spellings_of(config, model_type):
    """-> (suffix, config): as saved, as files before transformers 5 have it, and without what the class supplies"""
    return [("", config), ("-old", old_spelling(copy.deepcopy(config), model_type)), ("-bare", bare_spelling(config, model_type))]


def old_spelling(config, model_type):
    """rope_parameters -> rope_theta and rope_scaling with "type"; torch_dtype; the other names of a key."""
    values = config.pop("rope_parameters", None)
    if isinstance(values, dict) and any(isinstance(v, dict) for v in values.values()):
        if set(values) != {"sliding_attention", "full_attention"}: config["rope_parameters"] = values
        else:
            local = values["sliding_attention"].get("rope_theta", 10000.0)
            values = dict(values["full_attention"])
            if model_type == "modernbert": config["local_rope_theta"], config["global_rope_theta"] = local, values["rope_theta"]
            else: config["rope_local_base_freq"] = local
    if isinstance(values, dict) and "rope_parameters" not in config:
        values = dict(values)
        config["rope_theta"] = values.pop("rope_theta", 10000.0)
        if "partial_rotary_factor" in values: config["partial_rotary_factor"] = values.pop("partial_rotary_factor")
        rule = values.pop("rope_type", "default")
        config["rope_scaling"] = None if rule == "default" else {"rope_type" if rule == "llama3" else "type": rule, **values}
    if "dtype" in config: config["torch_dtype"] = config.pop("dtype")
    aliases = getattr(transformers.CONFIG_MAPPING[model_type], "attribute_map", {})
    for common, own in aliases.items() if model_type in ("gpt2", "gptj", "bloom", "mpt", "distilbert") else ():
        if own in config and common not in config: config[common] = config.pop(own)   # hidden_size for n_embd: the class takes either
    for key, old in OLD_KEYS.get(model_type, {}).items():
        if key in config: config[old] = config.pop(key)
    return config


OLD_KEYS = {
    "falcon": {"num_hidden_layers": "n_layer", "num_attention_heads": "n_head", "num_kv_heads": "n_head_kv"},
    "gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
    "bloom": {"hidden_size": "n_embed"},
}


def old_tensors(tensors, model_type):
    """Names and buffers of files of earlier years: LayerNorm.gamma, no prefix, stored masks, positions and inv_freq."""
    layers = {m.group(0) for name in tensors if (m := re.match(r".*?\b(?:h|layers|layer)\.\d+\.", name))}
    named = dict(tensors)
    def add(where, name, value):
        for layer in layers if where == "layer" else [where]: named[layer + name] = value.clone().clone()
    mask, half = torch.ones(1, 1, 8, 8), torch.ones(6)
    if model_type in ("gpt2", "gptj"): add("layer", "attn.bias", mask); add("layer", "attn.masked_bias", torch.tensor(-1e9))
    if model_type == "gpt_neox": add("layer", "attention.bias", mask); add("layer", "attention.masked_bias", torch.tensor(-1e9)); add("layer", "attention.rotary_emb.inv_freq", half)
    if model_type in ("llama", "mistral", "qwen2", "phi3", "stablelm", "mixtral"): add("layer", "self_attn.rotary_emb.inv_freq", half)
    if model_type in ("bert", "roberta", "distilbert", "albert", "xlm-roberta"):
        prefix = "roberta." if "roberta" in model_type else model_type + "."
        add(prefix, "embeddings.position_ids", torch.arange(8)[None])
    if model_type == "bert": named = {re.sub(r"LayerNorm\.weight$", "LayerNorm.gamma", re.sub(r"LayerNorm\.bias$", "LayerNorm.beta", n)): t for n, t in named.items()}
    if model_type in ("gpt2", "bloom"): named = {n.removeprefix("transformer."): t for n, t in named.items()}
    return named


def bare_spelling(config, model_type):
    """without the keys whose value is the class's default, where the class finds that value again"""
    config_class = transformers.CONFIG_MAPPING[model_type]
    defaults = config_class().to_dict()
    keep = ("architectures", "model_type", "vocab_size")
    bare = {k: v for k, v in config.items() if k in keep or k not in defaults or v != defaults[k]}
    found = config_class.from_dict(copy.deepcopy(bare)).to_dict()   # num_decoder_layers: as many as num_layers
    return {k: v for k, v in config.items() if k in bare or found.get(k) != v}


class Quantized:
    """While entered, matrix products and embeddings of torch use the weights of a quern file.

    A row of a torch matrix is found in the file by its values (the nearest row of as many columns), so no
    table of names is needed and fused, split and permuted matrices need no care.
    """
    def __init__(self, model_dir):
        self.rows, self.cache = {}, {}
        for tensor in weight_file.tensors(model_dir).values():
            if tensor.format != "rows_f32": self.rows.setdefault(tensor.values.shape[1], []).append(tensor)

    def lookup(self, weight):  # [out, in] -> (values [out, in], formats [out])
        key = (weight.data_ptr(), tuple(weight.shape), tuple(weight.stride()))
        if key in self.cache: return self.cache[key]
        group, found = self.rows.get(weight.shape[1]), None
        if group:
            every = torch.from_numpy(np.concatenate([t.values for t in group]))
            formats = np.concatenate([[t.format] * len(t.values) for t in group])
            w = weight.detach().float()
            distance = torch.cdist(w, every)
            nearest = distance.argmin(1)
            close = distance.gather(1, nearest[:, None])[:, 0] <= 0.25 * w.norm(dim=1) + 1e-9
            if close.all(): found = (every[nearest], formats[nearest.numpy()])
            elif close.float().mean() > 0.5: raise RuntimeError(f"rows of a matrix {tuple(w.shape)} are not in the file")
        self.cache[key] = found
        return found

    def linear(self, x, weight, bias=None):
        found = self.lookup(weight)
        if found is None: return self.plain_linear(x, weight, bias)
        values, formats = found
        y = torch.empty(*x.shape[:-1], weight.shape[0])
        for name in np.unique(formats):
            rows = torch.from_numpy(np.flatnonzero(formats == name))
            y[..., rows] = self.plain_linear(quantized_activations(x, weight_file.ACTIVATION_GROUP.get(name)), values[rows])
        return y if bias is None else y + bias

    def embedding(self, ids, weight, *more, **named):
        found = self.lookup(weight)
        return self.plain_embedding(ids, weight if found is None else found[0], *more, **named)

    def __enter__(self):
        self.plain_linear, self.plain_embedding = F.linear, F.embedding
        F.linear, F.embedding = self.linear, self.embedding
        self.addmm, torch.addmm = torch.addmm, lambda b, x, w: self.linear(x, w.t(), b)
        self.matmul, torch.Tensor.__matmul__ = torch.Tensor.__matmul__, lambda x, w: self.product(x, w)
        return self

    def product(self, x, w):  # x @ w, with w [in, out] a weight or an activation
        found = self.lookup(w.t()) if w.dim() == 2 and x.dim() >= 2 else None
        return self.matmul(x, w) if found is None else self.linear(x, w.t())

    def __exit__(self, *_):
        F.linear, F.embedding, torch.addmm = self.plain_linear, self.plain_embedding, self.addmm
        torch.Tensor.__matmul__ = self.matmul


def quantized_activations(x, group):
    if group is None: return x
    out = torch.empty_like(x)
    for k in range(0, x.shape[-1], group):
        part = x[..., k:k + group]
        largest = part.abs().amax(-1, keepdim=True)
        factor = torch.where(largest > 0, 127 / largest, torch.zeros(()))
        out[..., k:k + group] = torch.round(part * factor) * (largest / 127)
    return out


def make(path, model_type, kind, options, seed, model_class=None, form=variant_shapes.Form()):
    """-> the stored checkpoint at path, and logits(): the reference's expected tensors, computed when called."""
    dtype = getattr(torch, form.dtype)
    config = transformers.AutoConfig.for_model(model_type, **copy.deepcopy(options))
    config._attn_implementation = config._experts_implementation = "eager"
    model = (getattr(transformers, model_class)(config) if model_class else KINDS[kind].from_config(config)).float().eval()
    randomize(model, seed, dtype)
    model.tie_weights()
    copy.deepcopy(model).to(dtype).save_pretrained(path)  # a copy: buffers such as inv_freq stay float32
    tokens = form.tokens or N
    def logits(case=0, n=tokens): return expected_of(model, config, kind, seed + 1 + case, n)
    def spread():   # how far the reference itself is off in float32, of std
        single, double = (expected_of(m, config, kind, seed + 1, tokens)["logits"].double() for m in (model, copy.deepcopy(model).double()))
        return float((single - double).abs().max() / double.std())
    logits.spread = spread
    return logits


def expected_of(model, config, kind, seed, n):
    ids = torch.randint(3, min(getattr(config, "decoder_vocab_size", None) or VOCAB, getattr(config, "vocab_size", VOCAB), VOCAB) - 2, (1, n), generator=torch.Generator().manual_seed(seed))
    expected = {"input_ids": ids[0].to(torch.int32)}
    with torch.no_grad():
        if kind == SEQ2SEQ:
            decoder = torch.cat([torch.tensor([[config.decoder_start_token_id]]), ids[:, n // 16:n // 2 + 4]], 1)
            logits = model(input_ids=ids, decoder_input_ids=decoder, use_cache=False).logits[0]
            expected["decoder_input_ids"] = decoder[0].to(torch.int32)
        elif kind == MLM:
            if config.pad_token_id is not None: ids[0, [min(i, n - 1) for i in (4, 5, n // 2)]] = config.pad_token_id   # some models do not count them
            types = torch.zeros_like(ids)
            if getattr(config, "type_vocab_size", 1) > 1: types[:, n // 2:] = config.type_vocab_size - 1; expected["token_type_ids"] = types[0].to(torch.int32)
            call = dict(input_ids=ids)
            if "token_type_ids" in expected: call["token_type_ids"] = types
            logits = model(**call).logits[0]
            expected["input_ids"] = ids[0].to(torch.int32)
        elif kind == HIDDEN: logits = model(input_ids=ids).last_hidden_state[0]
        elif kind in (TEXT, TOKENS, SPAN):
            both_sides = config.is_encoder_decoder and kind != TOKENS
            if both_sides:   # the text on both sides, on the decoder's behind its first id
                ids[0, -1] = config.eos_token_id
                expected["decoder_input_ids"] = torch.cat([torch.tensor([[config.decoder_start_token_id]]), ids[:, :-1]], 1)[0].to(torch.int32)
            elif kind == TEXT and config.pad_token_id is not None: ids[0, [2, -2, -1]] = config.pad_token_id   # passed over by decoders
            expected["input_ids"] = ids[0].to(torch.int32)
            found = model(input_ids=ids)
            logits = found.logits if kind == TEXT else found.logits[0] if kind == TOKENS else torch.stack([found.start_logits[0], found.end_logits[0]], -1)
        else: logits = model(input_ids=ids, use_cache=False).logits[0]
    expected["logits"] = logits.float().contiguous()
    return expected


class Different(RuntimeError): pass


def run(*command):
    r = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300)
    if r.returncode: raise RuntimeError((r.stderr.strip().splitlines() or [f"exit {r.returncode}"])[-1][:300])


def check(tools, source, reference, kind, work):
    run(tools.convert, source, work / "m", "--type", tools.type)
    if tools.type == "f32": return compare(tools, reference(), kind, work, 2e-3)
    errors = []
    for case in range(24):  # of 7 layers of 384 one in two holds
        with Quantized(work / "m"): expected = reference(case, 6)
        errors.append(compare(tools, expected, kind, work, np.inf))
        if errors[-1] <= 5e-3: return errors[-1]
    raise RuntimeError("errors of std: " + " ".join(f"{e:.1e}" for e in errors))


def compare(tools, expected, kind, work, bound):
    text = lambda a: " ".join(map(str, a.tolist()))
    (work / "ids").write_text(text(expected.get("decoder_input_ids", expected["input_ids"])))
    args = [tools.quern, "logits", "--deterministic", "-m", work / "m", "--ids-file", work / "ids"]
    if "decoder_input_ids" in expected: (work / "enc").write_text(text(expected["input_ids"])); args += ["--encoder-ids-file", work / "enc"]
    if "token_type_ids" in expected: (work / "tt").write_text(text(expected["token_type_ids"])); args += ["--token-types-file", work / "tt"]
    decoder = json.loads((work / "m/model.json").read_text())["kind"] != "encoder"
    if decoder: args += ["-ctk", "f32", "-ctv", "f32"]
    output = "--hidden" if kind == HIDDEN else "-o"
    run(*args, output, work / "o.npy")
    got, want = np.load(work / "o.npy").astype(np.float64), expected["logits"].double().numpy()
    if got.shape != want.shape: raise RuntimeError(f"shape {got.shape} != {want.shape}")
    error = np.abs(got - want).max() / want.std()
    if not error < bound: raise Different(f"largest error {error:.2e} of std")
    if decoder:
        run(*args, "-ub", "1", output, work / "s.npy")
        if np.load(work / "s.npy").tobytes() != np.load(work / "o.npy").tobytes(): raise RuntimeError("token by token differs from one prefill")
    return error


def cases(variants, names):
    for name, (model_type, kind, base, options, *model_class) in variants.items():
        if names and not any(name.startswith(n) for n in names): continue
        for i, option in enumerate(options):
            yield name, f"{name}-{i}", (model_type, kind, {**base, **option}), option, *(model_class or [None])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("quern"); parser.add_argument("convert"); parser.add_argument("names", nargs="*")
    parser.add_argument("--type", default="f32"); parser.add_argument("--keep", type=pathlib.Path); parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--heads", action="store_true", help="the families' classifiers and bare models instead of their language models")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="N random mixtures of options and shapes a family, instead of the list")
    a = parser.parse_args()
    transformers.logging.set_verbosity_error(); transformers.utils.logging.disable_progress_bar(); torch.set_num_threads(1)
    table = dict(class_variants()) if a.heads else VARIANTS
    tally, made = Tally(), {}
    for name, label, (model_type, kind, options), option, model_class, *form in variant_shapes.random_cases(table, a.names, a.random, a.seed) if a.random else cases(table, a.names):
        if a.random and made.get(name, 0) == a.random: continue
        with tempfile.TemporaryDirectory() as t:
            work = pathlib.Path(t); source = work / "src"
            try: reference = make(source, model_type, kind, options, a.seed, model_class, *form); reference()
            except Exception as error:   # mixtures need not be a model
                if not a.random: print(f"{label}: reference cannot be made: {str(error)[:150]}"); tally.unmade.append(label)
                continue
            made[name] = made.get(name, 0) + 1
            stored = variant_shapes.load(source)
            for suffix, config in spellings_of(json.loads((source / "config.json").read_text()), model_type):
                (source / "config.json").write_text(json.dumps(config, indent=1))
                variant_shapes.store(old_tensors(stored, model_type) if suffix == "-old" else stored, source, *form)
                try:
                    tally.add(label + suffix, check(a, source, reference, kind, work))
                    if not suffix: run(a.quern, "verify", "-m", work / "m")
                except Exception as error: tally.fail(label + suffix, f"{json.dumps(option)} {' '.join(map(str, form))}"[:500], error, reference)
                shutil.rmtree(work / "m", ignore_errors=True)
            if a.keep: shutil.copytree(source, a.keep / label, dirs_exist_ok=True); save_file(reference(), a.keep / label / "expected.safetensors")
    return tally.report()


class Tally:
    """What matched, by how much, and what did not."""
    def __init__(self): self.good, self.bad, self.unmade, self.unstable, self.largest = 0, [], [], [], (0.0, "none")

    def add(self, label, error):
        self.good += 1
        self.largest = max(self.largest, (error, label))

    def fail(self, label, what, error, reference):
        """A net on which the reference's own float32 and float64 differ by as much tells nothing."""
        try: spread = reference.spread() if isinstance(error, Different) else 0
        except Exception: spread = 0   # it does not run in float64
        if spread > 5e-4: self.unstable.append(label)
        else: self.bad.append(label)
        print(f"{label} {what}: {error}" + (f"; the reference in float32 and float64: {spread:.1e}" if spread > 5e-4 else ""), flush=True)

    def report(self):
        error, label = self.largest
        for word, labels in (("the reference cannot be made", self.unmade), ("unstable", self.unstable)):
            if labels: print(f"{word}: {' '.join(labels)}")
        print(f"{self.good} of {self.good + len(self.bad)} variants match, largest error {error:.1e} of std ({label}); failing: {' '.join(self.bad) or 'none'}")
        return 1 if self.bad or self.unmade or not self.good else 0


if __name__ == "__main__": sys.exit(main())
