#!/usr/bin/env python3
"""A tiny random checkpoint of PaLM's shape and its logits by a plain NumPy reference in float64.

usage: make_palm_fixture.py DIR [--layers N] [--width N] [--heads N] [--head-dim N] [--inner N] [--kv-heads N]
                                [--rms] [--seed N]
Block (Chowdhery et al. 2022): x + attention(norm x) + feed_forward(norm x), one norm; one key and value head for all
query heads; RoPE over whole heads in pairs (2i, 2i + 1); feed_forward = down(silu(gate z) * up z); no biases; the
head is the embedding. Weights are bfloat16, so that every reader has the same numbers.
"""
import argparse
import json
import pathlib
import struct

import numpy as np

VOCAB, POSITIONS, PROMPT, NEW, EPS = 320, 80, 16, 24, 1e-5


def bfloat16(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def widened(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def make_weights(a, random):
    matrix = lambda rows, columns: random.normal(0, 1.6 / columns ** 0.5, (rows, columns))
    weights = {"model.embed_tokens.weight": random.normal(0, 0.7, (VOCAB, a.width)),
               "model.norm.weight": random.uniform(0.5, 1.5, a.width)}
    for l in range(a.layers):
        p = f"model.layers.{l}."
        weights |= {p + "input_layernorm.weight": random.uniform(0.5, 1.5, a.width),
                    p + "self_attn.q_proj.weight": matrix(a.heads * a.head_dim, a.width),
                    p + "self_attn.k_proj.weight": matrix(a.kv_heads * a.head_dim, a.width),
                    p + "self_attn.v_proj.weight": matrix(a.kv_heads * a.head_dim, a.width),
                    p + "self_attn.o_proj.weight": matrix(a.width, a.heads * a.head_dim),
                    p + "mlp.gate_proj.weight": matrix(a.inner, a.width), p + "mlp.up_proj.weight": matrix(a.inner, a.width),
                    p + "mlp.down_proj.weight": matrix(a.width, a.inner)}
    return {name: bfloat16(values) for name, values in weights.items()}


def norm(a, x, weight):
    if not a.rms:
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * weight


def rotated(x):  # [tokens, heads, width]
    width = x.shape[-1]
    angle = np.arange(x.shape[0])[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = x[..., 0::2] * c - x[..., 1::2] * s, x[..., 1::2] * c + x[..., 0::2] * s
    return out


def attention(a, z, w):
    n = z.shape[0]
    q, k, v = (z @ w[f"{m}_proj.weight"].T for m in "qkv")
    q, k = rotated(q.reshape(n, a.heads, -1)), rotated(k.reshape(n, a.kv_heads, -1))
    k, v = (np.repeat(t.reshape(n, a.kv_heads, -1), a.heads // a.kv_heads, 1) for t in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / a.head_dim ** 0.5
    scores[:, np.triu(np.ones((n, n), bool), 1)] = -np.inf
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ w["o_proj.weight"].T


def feed_forward(z, w):
    gate = z @ w["gate_proj.weight"].T
    return (gate / (1 + np.exp(-gate)) * (z @ w["up_proj.weight"].T)) @ w["down_proj.weight"].T


def logits(a, weights, ids):
    part = lambda prefix: {k[len(prefix):]: widened(v) for k, v in weights.items() if k.startswith(prefix)}
    embedding = widened(weights["model.embed_tokens.weight"])
    x = embedding[ids]
    for l in range(a.layers):
        p = f"model.layers.{l}."
        z = norm(a, x, widened(weights[p + "input_layernorm.weight"]))
        x = x + attention(a, z, part(p + "self_attn.")) + feed_forward(z, part(p + "mlp."))
    return norm(a, x, widened(weights["model.norm.weight"])) @ embedding.T


def save(path, tensors, kinds):
    header, at = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": kinds[values.dtype.char], "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(v.tobytes() for v in tensors.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=pathlib.Path)
    for name, value in dict(layers=2, width=64, heads=4, head_dim=16, inner=128, kv_heads=1, seed=7).items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    parser.add_argument("--rms", action="store_true")
    a = parser.parse_args()
    random = np.random.default_rng(a.seed)
    weights, ids = make_weights(a, random), random.integers(3, VOCAB, POSITIONS)
    a.dir.mkdir(parents=True, exist_ok=True)
    (a.dir / "config.json").write_text(json.dumps({
        "architectures": ["PalmForCausalLM"], "model_type": "palm", "vocab_size": VOCAB, "hidden_size": a.width,
        "intermediate_size": a.inner, "num_hidden_layers": a.layers, "num_attention_heads": a.heads,
        "num_key_value_heads": a.kv_heads, "head_dim": a.head_dim, "hidden_act": "silu", "max_position_embeddings": 256,
        "norm_type": "rms_norm" if a.rms else "layer_norm", "layer_norm_eps": EPS, "rope_theta": 10000.0,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16"}, indent=1) + "\n")
    save(a.dir / "model.safetensors", weights, {"H": "BF16"})
    greedy, margins = list(ids[:PROMPT]), []
    for _ in range(NEW):
        row = logits(a, weights, np.array(greedy))[-1]
        best = np.sort(row)
        margins.append(best[-1] - best[-2])
        greedy.append(int(row.argmax()))
    save(a.dir / "expected.safetensors", {
        "input_ids": ids.astype(np.int32), "logits": logits(a, weights, ids).astype(np.float32),
        "greedy_prompt": ids[:PROMPT].astype(np.int32), "greedy_ids": np.array(greedy[PROMPT:], np.int32),
        "greedy_margin": np.array(margins, np.float32)}, {"i": "I32", "f": "F32"})


main()
