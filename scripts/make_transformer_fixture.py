#!/usr/bin/env python3
"""The Transformer of "Attention is all you need" (2017) as tiny fixtures: 6 + 6 layers, norms after every branch,
ReLU, one embedding for source, target and output, scaled by sqrt(d_model), sinusoidal positions.

usage: make_transformer_fixture.py interleaved|halves OUT

interleaved: columns 2i and 2i + 1 are sine and cosine, as in the paper; the tensor names are those of
models/transformer.json. halves: all sines, then all cosines, with the names of the Marian family, which has a bias on
the logits besides. Weights are random; the forward pass below is a plain NumPy reference in float64. Written are
config.json, model.safetensors (f16) and expected.safetensors (ids, the encoder's output, logits, greedy ids)."""
import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file

D, HEADS, FF, LAYERS, VOCAB, POSITIONS = 32, 4, 48, 6, 97, 120
START, END, PAD = 95, 0, 95


def sinusoids(order):
    half = D // 2
    angle = np.arange(POSITIONS)[:, None] / 10000.0 ** (np.arange(half) / half)
    table = np.empty((POSITIONS, D))
    if order == "halves":
        table[:, :half], table[:, half:] = np.sin(angle), np.cos(angle)
    else:
        table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table.astype(np.float32).astype(np.float64)


class Weights:
    """Random tensors under the names of models/transformer.json, rounded to the f16 that is stored."""

    def __init__(self, seed):
        self.random, self.tensors = np.random.default_rng(seed), {}
        self.make("embedding.weight", (VOCAB, D), 1 / np.sqrt(D))
        for stack, attentions in (("encoder", ["self_attention"]), ("decoder", ["self_attention", "cross_attention"])):
            for layer in range(LAYERS):
                self.layer(f"{stack}.layers.{layer}", attentions)

    def layer(self, prefix, attentions):
        for attention in attentions:
            for part in ("query", "key", "value", "output"):
                self.linear(f"{prefix}.{attention}.{part}", D, D)
            self.norm(f"{prefix}.{attention}_norm")
        self.linear(f"{prefix}.feed_forward.inner", FF, D)
        self.linear(f"{prefix}.feed_forward.outer", D, FF)
        self.norm(f"{prefix}.feed_forward_norm")

    def make(self, name, shape, spread, centre=0.0):
        self.tensors[name] = (centre + spread * self.random.standard_normal(shape)).astype(np.float16)

    def linear(self, name, out, width):
        self.make(name + ".weight", (out, width), 1.5 / np.sqrt(width))
        self.make(name + ".bias", (out,), 0.2)

    def norm(self, name):
        self.make(name + ".weight", (D,), 0.2, 1.0)
        self.make(name + ".bias", (D,), 0.2)

    def __getitem__(self, name):
        return self.tensors[name].astype(np.float64)


class Reference:
    def __init__(self, weights, order, logits_bias):
        self.w, self.positions, self.logits_bias = weights, sinusoids(order), logits_bias

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def norm(self, name, x):
        x = x - x.mean(1, keepdims=True)
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def attention(self, name, x, source, causal):
        q, k, v = (self.linear(f"{name}.{part}", y).reshape(len(y), HEADS, -1).transpose(1, 0, 2)
                   for part, y in (("query", x), ("key", source), ("value", source)))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(D // HEADS)
        if causal:
            scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
        p = np.exp(scores - scores.max(2, keepdims=True))
        mixed = (p / p.sum(2, keepdims=True)) @ v
        return self.linear(f"{name}.output", mixed.transpose(1, 0, 2).reshape(len(x), D))

    def stack(self, name, ids, encoded):
        x = self.w["embedding.weight"][ids] * np.sqrt(D) + self.positions[:len(ids)]
        for layer in range(LAYERS):
            p = f"{name}.layers.{layer}"
            x = self.norm(f"{p}.self_attention_norm",
                          x + self.attention(f"{p}.self_attention", x, x, encoded is not None))
            if encoded is not None:
                x = self.norm(f"{p}.cross_attention_norm",
                              x + self.attention(f"{p}.cross_attention", x, encoded, False))
            inner = np.maximum(self.linear(f"{p}.feed_forward.inner", x), 0)
            x = self.norm(f"{p}.feed_forward_norm", x + self.linear(f"{p}.feed_forward.outer", inner))
        return x

    def logits(self, source, target):
        encoded = self.stack("encoder", source, None)
        return encoded, self.stack("decoder", target, encoded) @ self.w["embedding.weight"].T + self.logits_bias


MARIAN = {"self_attention.": "self_attn.", "cross_attention.": "encoder_attn.", "query": "q_proj", "key": "k_proj",
          "value": "v_proj", "output": "out_proj", "self_attention_norm": "self_attn_layer_norm",
          "cross_attention_norm": "encoder_attn_layer_norm", "feed_forward_norm": "final_layer_norm",
          "feed_forward.inner": "fc1", "feed_forward.outer": "fc2"}


def marian_names(tensors, logits_bias):
    renamed = {"model.shared.weight": tensors["embedding.weight"],
               "final_logits_bias": logits_bias[None].astype(np.float32)}
    for name, value in tensors.items():
        if name == "embedding.weight":
            continue
        new = name
        for old in sorted(MARIAN, key=len, reverse=True):
            new = new.replace(old, MARIAN[old])
        renamed["model." + new] = value
    return renamed


def config(order):
    ids = {"decoder_start_token_id": START, "eos_token_id": END, "pad_token_id": PAD, "is_encoder_decoder": True}
    if order == "interleaved":
        return {"architectures": ["Transformer"], "model_type": "transformer", "vocab_size": VOCAB, "d_model": D,
                "encoder_layers": LAYERS, "decoder_layers": LAYERS, "n_heads": HEADS, "d_ff": FF,
                "max_positions": POSITIONS, **ids}
    return {"architectures": ["MarianMTModel"], "model_type": "marian", "vocab_size": VOCAB, "decoder_vocab_size": VOCAB,
            "d_model": D, "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS,
            "decoder_attention_heads": HEADS, "encoder_ffn_dim": FF, "decoder_ffn_dim": FF,
            "activation_function": "relu", "max_position_embeddings": POSITIONS, "scale_embedding": True,
            "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True, **ids}


def greedy(reference, source, steps):
    ids, margins = [START], []
    for _ in range(steps):
        row = np.sort(reference.logits(source, np.array(ids))[1][-1])
        margins.append(row[-1] - row[-2])
        ids.append(int(reference.logits(source, np.array(ids))[1][-1].argmax()))
    return ids[1:], margins


def main():
    order, out = sys.argv[1], pathlib.Path(sys.argv[2])
    weights, random = Weights(17 if order == "halves" else 23), np.random.default_rng(5)
    bias = 0.3 * random.standard_normal(VOCAB) if order == "halves" else np.zeros(VOCAB)
    bias = bias.astype(np.float32)
    reference = Reference(weights, order, bias.astype(np.float64))
    source, target = random.integers(0, VOCAB, 50), random.integers(0, VOCAB, 40)
    target[0] = START
    encoded, logits = reference.logits(source, target)
    ids, margins = greedy(reference, source, 24)
    out.mkdir(parents=True, exist_ok=True)
    tensors = weights.tensors if order == "interleaved" else marian_names(weights.tensors, bias)
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(config(order), indent=2) + "\n")
    save_file({"input_ids": source.astype(np.int32), "decoder_input_ids": target.astype(np.int32),
               "encoder_last_hidden_state": encoded.astype(np.float32), "logits": logits.astype(np.float32),
               "greedy_ids": np.array(ids, np.int32), "greedy_margin": np.array(margins, np.float32)},
              str(out / "expected.safetensors"))
    print(f"{order}: {sum(t.size for t in weights.tensors.values())} parameters, std of logits {logits.std():.3f}, "
          f"smallest greedy margin {min(margins):.3f}")


main()
