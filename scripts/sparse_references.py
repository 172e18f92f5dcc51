#!/usr/bin/env python3
"""Plain NumPy forward passes of mechanisms that no reference library has, and their fixtures.

  nsa        native sparse attention (arXiv 2502.11089), from the paper's formulas
  deepnorm   DeepNorm (arXiv 2203.00555): LN(alpha x + f(x)), alpha = (2 layers)^(1/4)
  shared-kv  cross-layer KV sharing (arXiv 2405.12981): every second layer reads the cache of the one before
  streaming  attention sinks and a window (arXiv 2309.17453): the first keys and the newest ones

usage: sparse_references.py OUT_DIR [NAME...]  writes OUT_DIR/NAME/{config.json, model.safetensors,
expected.safetensors, generation_config.json, recipe.json}. Everything is computed in float64 from bfloat16
weights, whole sequence at once, with no code of quern.
"""
import json
import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file

VOCAB, N, PROMPT, NEW = 323, 80, 12, 24


# ---- the parts of a decoder --------------------------------------------------------------------------

def rms_norm(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + eps) * w + b


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(s):
    p = np.exp(s - s.max())
    return p / p.sum()


def rotate(x, theta):
    """x [n, heads, d], halves layout, position = row."""
    n, _, d = x.shape
    inv = (theta ** (-np.arange(0, d, 2) / d)).astype(np.float32).astype(np.float64)
    angle = np.arange(n)[:, None] * inv
    c, s = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    a, b = x[..., :d // 2], x[..., d // 2:]
    return np.concatenate([a * c - b * s, b * c + a * s], -1)


def heads(x, w, width):
    return (x @ w.T).reshape(len(x), -1, width)


def attend(q, k, v, scale, visible):
    """One head: q [n, d_k], k [m, d_k], v [m, d_v], visible [n, m] -> [n, d_v]; rows that see nothing are zero."""
    out = np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        keys = np.flatnonzero(visible[t])
        if len(keys): out[t] = softmax(scale * (k[keys] @ q[t])) @ v[keys]
    return out


def causal(n):
    return np.tril(np.ones((n, n), bool))


# ---- native sparse attention -------------------------------------------------------------------------

def compress(x, w, prefix, block, stride):
    """phi over blocks of `block` rows every `stride`: x [n, heads, d] -> [blocks, heads, d].
    phi(block) = out(relu(in(flatten(rows + position))))."""
    n, n_heads, d = x.shape
    count = 0 if n < block else (n - block) // stride + 1
    result = np.zeros((count, n_heads, d))
    for i in range(count):
        for h in range(n_heads):
            rows = x[i * stride:i * stride + block, h] + w[prefix + "_position"]
            hidden = np.maximum(rows.reshape(-1) @ w[prefix + "_in.weight"].T + w[prefix + "_in.bias"], 0)
            result[i, h] = hidden @ w[prefix + "_out.weight"].T + w[prefix + "_out.bias"]
    return result


def importance(p, position, c):
    """Formula 9 of the paper, its indices from 1: p_slc[j] = sum_m sum_n p_cmp[l'/d * j - m - n]."""
    ratio, overlap = c["select_block"] // c["compress_stride"], c["compress_block"] // c["compress_stride"]
    blocks = position // c["select_block"] + 1
    score = np.zeros(blocks)
    for j in range(1, blocks + 1):
        for m in range(ratio):
            for n in range(overlap):
                index = ratio * j - m - n
                if 1 <= index <= len(p): score[j - 1] += p[index - 1]
    return score


def chosen_blocks(score, c):
    blocks = len(score)
    fixed = [j for j in range(blocks) if j < c["n_initial"] or j >= blocks - c["n_local"]]
    others = sorted((j for j in range(blocks) if j not in fixed), key=lambda j: (-score[j], j))
    return fixed + others[:max(0, c["n_selected"] - len(fixed))]


def nsa_attention(x, w, p, c):
    n, group = len(x), c["num_attention_heads"] // c["num_key_value_heads"]
    d_k, d_v, scale = c["head_dim"], c["v_head_dim"], c["head_dim"] ** -0.5
    q = rotate(heads(x, w[p + "q_proj.weight"], d_k), c["rope_theta"])
    k, v = {}, {}
    for branch in ("compress", "select", "window"):
        k[branch] = rotate(heads(x, w[f"{p}{branch}_k_proj.weight"], d_k), c["rope_theta"])
        v[branch] = heads(x, w[f"{p}{branch}_v_proj.weight"], d_v)
    block, stride = c["compress_block"], c["compress_stride"]
    k_cmp = compress(k["compress"], w, p + "compress_k", block, stride)
    v_cmp = compress(v["compress"], w, p + "compress_v", block, stride)
    gate = sigmoid(x @ w[p + "gates.weight"].T + w[p + "gates.bias"]).reshape(n, 3, -1)
    ends = np.arange(len(k_cmp)) * stride + block
    see_cmp = ends[None, :] <= np.arange(1, n + 1)[:, None]
    see_win = causal(n) & (np.arange(n)[:, None] - np.arange(n)[None, :] < c["window"])
    out = np.zeros((n, c["num_attention_heads"], d_v))
    for g in range(c["num_key_value_heads"]):
        members = range(g * group, (g + 1) * group)
        see_slc = np.zeros((n, n), bool)
        for t in range(n):
            score = np.zeros(t // c["select_block"] + 1)
            seen = np.flatnonzero(see_cmp[t])
            for h in members if len(seen) else []:
                score += importance(softmax(scale * (k_cmp[seen, g] @ q[t, h])), t, c)
            for j in chosen_blocks(score, c):
                see_slc[t, j * c["select_block"]:min((j + 1) * c["select_block"], t + 1)] = True
        for h in members:
            out[:, h] = (gate[:, 0, h, None] * attend(q[:, h], k_cmp[:, g], v_cmp[:, g], scale, see_cmp)
                         + gate[:, 1, h, None] * attend(q[:, h], k["select"][:, g], v["select"][:, g], scale, see_slc)
                         + gate[:, 2, h, None] * attend(q[:, h], k["window"][:, g], v["window"][:, g], scale, see_win))
    return out.reshape(n, -1) @ w[p + "o_proj.weight"].T


def nsa_weights(p, c, draw):
    d, q, kv = c["hidden_size"], c["num_attention_heads"], c["num_key_value_heads"]
    widths = {"k": c["head_dim"], "v": c["v_head_dim"]}
    draw(p + "q_proj.weight", q * widths["k"], d)
    for branch in ("compress", "select", "window"):
        for part, width in widths.items(): draw(f"{p}{branch}_{part}_proj.weight", kv * width, d)
    for part, width in widths.items():
        name, hidden = f"{p}compress_{part}", c["compress_hidden"]
        draw(name + "_position", c["compress_block"], width)
        draw(name + "_in.weight", hidden, c["compress_block"] * width); draw(name + "_in.bias", hidden)
        draw(name + "_out.weight", width, hidden); draw(name + "_out.bias", width)
    draw(p + "gates.weight", 3 * q, d); draw(p + "gates.bias", 3 * q)
    draw(p + "o_proj.weight", d, q * widths["v"])


# ---- ordinary attention with the masks and caches of the other models ----------------------------------

def plain_attention(x, w, p, c, visible, kv=None):
    """-> output and this layer's K and V (or the ones given)."""
    d, group = c["head_dim"], c["num_attention_heads"] // c["num_key_value_heads"]
    q = rotate(heads(x, w[p + "q_proj.weight"], d), c["rope_theta"])
    if kv is None:
        kv = (rotate(heads(x, w[p + "k_proj.weight"], d), c["rope_theta"]), heads(x, w[p + "v_proj.weight"], d))
    out = np.stack([attend(q[:, h], kv[0][:, h // group], kv[1][:, h // group], d ** -0.5, visible)
                    for h in range(c["num_attention_heads"])], 1)
    return out.reshape(len(x), -1) @ w[p + "o_proj.weight"].T, kv


def plain_weights(p, c, draw, own_kv=True):
    d, width = c["hidden_size"], c["head_dim"]
    draw(p + "q_proj.weight", c["num_attention_heads"] * width, d)
    for part in "kv" if own_kv else "": draw(f"{p}{part}_proj.weight", c["num_key_value_heads"] * width, d)
    draw(p + "o_proj.weight", d, c["num_attention_heads"] * width)


def gated_ffn(x, w, p):
    return (silu(x @ w[p + "gate_proj.weight"].T) * (x @ w[p + "up_proj.weight"].T)) @ w[p + "down_proj.weight"].T


def gated_weights(p, c, draw):
    draw(p + "gate_proj.weight", c["intermediate_size"], c["hidden_size"])
    draw(p + "up_proj.weight", c["intermediate_size"], c["hidden_size"])
    draw(p + "down_proj.weight", c["hidden_size"], c["intermediate_size"])


def pre_norm_model(ids, w, c, attention):
    """attention(layer, normed x, prefix) -> branch output."""
    x, eps = w["model.embed_tokens.weight"][ids], c["rms_norm_eps"]
    for layer in range(c["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        x = x + attention(layer, rms_norm(x, w[p + "input_layernorm.weight"], eps), p + "self_attn.")
        x = x + gated_ffn(rms_norm(x, w[p + "post_attention_layernorm.weight"], eps), w, p + "mlp.")
    return rms_norm(x, w["model.norm.weight"], eps) @ w["lm_head.weight"].T


def pre_norm_weights(c, draw, attention):
    draw("model.embed_tokens.weight", c["vocab_size"], c["hidden_size"])
    for layer in range(c["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        draw(p + "input_layernorm.weight", c["hidden_size"])
        attention(layer, p + "self_attn.")
        draw(p + "post_attention_layernorm.weight", c["hidden_size"])
        gated_weights(p + "mlp.", c, draw)
    draw("model.norm.weight", c["hidden_size"])
    draw("lm_head.weight", c["vocab_size"], c["hidden_size"])


# ---- the models ----------------------------------------------------------------------------------------

BASE = dict(vocab_size=VOCAB, hidden_size=72, intermediate_size=104, num_hidden_layers=3, num_attention_heads=6,
            num_key_value_heads=2, head_dim=20, rms_norm_eps=1e-5, rope_theta=10000.0, max_position_embeddings=256,
            tie_word_embeddings=False, bos_token_id=1, eos_token_id=2)


class Nsa:
    config = dict(BASE, architectures=["NsaForCausalLM"], model_type="nsa", v_head_dim=28, compress_block=8,
                  compress_stride=4, compress_hidden=40, select_block=12, n_selected=4, n_initial=1, n_local=2, window=16)

    def weights(self, c, draw):
        pre_norm_weights(c, draw, lambda layer, p: nsa_weights(p, c, draw))

    def logits(self, ids, w, c):
        return pre_norm_model(ids, w, c, lambda layer, x, p: nsa_attention(x, w, p, c))


class SharedKv:
    config = dict(BASE, architectures=["SharedKvForCausalLM"], model_type="shared_kv", num_hidden_layers=4)
    recipe = {
        "recipe": 1, "about": "LLaMA whose odd layers read the keys and values of the layer before.", "extends": "llama",
        "match": {"hf": ["SharedKvForCausalLM"], "gguf": []},
        "contract": {
            "ops": {f"reader{i}": {
                "kind": "attention", "n_heads": "$n_heads", "n_kv_heads": "$n_kv_heads", "d_k": "$d_k", "d_v": "$d_v",
                "scale": "rsqrt($d_k)", "rope": "main", "kv_from": i} for i in (0, 2)},
            "blocks": {f"reader{i}": {"branches": [{"norm_in": "rms", "op": f"reader{i}"}, {"norm_in": "rms", "op": "ffn"}]}
                       for i in (0, 2)},
            "decoder": {"layers": [{"pattern": ["block", "reader0", "block", "reader2"], "repeat": 1}]}}}

    def weights(self, c, draw):
        pre_norm_weights(c, draw, lambda layer, p: plain_weights(p, c, draw, own_kv=layer % 2 == 0))

    def logits(self, ids, w, c):
        held = {}

        def attention(layer, x, p):
            out, held[layer] = plain_attention(x, w, p, c, causal(len(x)), held[layer - 1] if layer % 2 else None)
            return out
        return pre_norm_model(ids, w, c, attention)


class Streaming:
    config = dict(BASE, architectures=["LlamaForCausalLM"], model_type="llama")
    window, sinks = 13, 4
    recipe = {
        "recipe": 1, "about": "LLaMA that sees its first 4 keys and the newest 13: a stream of any length in bounded memory.",
        "extends": "llama", "match": {"hf": ["LlamaForCausalLM"], "gguf": []},
        "contract": {"ops": {"attn": {"mask": {"window": window, "sinks": sinks}}}}}

    def weights(self, c, draw):
        pre_norm_weights(c, draw, lambda layer, p: plain_weights(p, c, draw))

    def logits(self, ids, w, c):
        n = len(ids)
        distance = np.arange(n)[:, None] - np.arange(n)[None, :]
        visible = causal(n) & ((distance < self.window) | (np.arange(n)[None, :] < self.sinks))
        return pre_norm_model(ids, w, c, lambda layer, x, p: plain_attention(x, w, p, c, visible)[0])


class DeepNorm:
    config = dict(BASE, architectures=["DeepNormForCausalLM"], model_type="deepnorm", layer_norm_eps=1e-5, num_hidden_layers=4)
    recipe = {
        "recipe": 1, "about": "DeepNorm: each branch's sum is LN(alpha x + f(x)), alpha = (2 layers)^(1/4).", "extends": "llama",
        "match": {"hf": ["DeepNormForCausalLM"], "gguf": []},
        "sources": {"hf": {
            "values": {"eps": "$layer_norm_eps", "alpha": "sqrt(sqrt(mul(2.0,$num_hidden_layers)))"},
            "ignore_keys": ["rms_norm_eps"],
            "tensors": {
                "decoder.{l}.0.norm_after.*": "{p}layers.{l}.self_attn_layer_norm.*",
                "decoder.{l}.1.up.*": "{p}layers.{l}.fc1.*", "decoder.{l}.1.down.*": "{p}layers.{l}.fc2.*",
                "decoder.{l}.1.norm_after.*": "{p}layers.{l}.final_layer_norm.*"}}},
        "contract": {
            "norms": {"ln": {"kind": "layer_norm", "eps": "$eps", "bias": True}},
            "ops": {"ffn": {"activation": "gelu_tanh", "gated": False, "bias": {"in": True, "out": True}}},
            "blocks": {"block": {"skip_scale": "$alpha", "branches": [{"op": "attn", "norm_after": "ln"}, {"op": "ffn", "norm_after": "ln"}]}},
            "decoder": {"final_norm": None}}}

    def weights(self, c, draw):
        d = c["hidden_size"]
        draw("model.embed_tokens.weight", c["vocab_size"], d)
        for layer in range(c["num_hidden_layers"]):
            p = f"model.layers.{layer}."
            plain_weights(p + "self_attn.", c, draw)
            draw(p + "fc1.weight", c["intermediate_size"], d); draw(p + "fc1.bias", c["intermediate_size"])
            draw(p + "fc2.weight", d, c["intermediate_size"]); draw(p + "fc2.bias", d)
            for norm in ("self_attn_layer_norm", "final_layer_norm"):
                draw(f"{p}{norm}.weight", d); draw(f"{p}{norm}.bias", d)
        draw("lm_head.weight", c["vocab_size"], d)

    def logits(self, ids, w, c):
        x, alpha = w["model.embed_tokens.weight"][ids], (2 * c["num_hidden_layers"]) ** 0.25
        for layer in range(c["num_hidden_layers"]):
            p = f"model.layers.{layer}."
            norm = lambda x, name: layer_norm(x, w[f"{p}{name}.weight"], w[f"{p}{name}.bias"], c["layer_norm_eps"])
            x = norm(alpha * x + plain_attention(x, w, p + "self_attn.", c, causal(len(x)))[0], "self_attn_layer_norm")
            f = gelu(x @ w[p + "fc1.weight"].T + w[p + "fc1.bias"]) @ w[p + "fc2.weight"].T + w[p + "fc2.bias"]
            x = norm(alpha * x + f, "final_layer_norm")
        return x @ w["lm_head.weight"].T


MODELS = {"nsa": Nsa(), "deepnorm": DeepNorm(), "shared-kv": SharedKv(), "streaming": Streaming()}


# ---- fixtures --------------------------------------------------------------------------------------------

def to_bf16(x):
    """Bits of bfloat16, to nearest even."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def draw_weights(model, config, seed):
    random, stored = np.random.default_rng(seed), {}

    def draw(name, *shape):
        values = random.standard_normal(shape)
        if "norm" in name and name.endswith("weight"): values = random.uniform(0.5, 1.5, shape)
        elif len(shape) == 1: values *= 0.3
        elif "embed" in name: values *= 0.7
        elif not name.endswith("_position"): values *= 1.6 / shape[-1] ** 0.5
        stored[name] = to_bf16(values)
    model.weights(config, draw)
    return stored


def widened(stored):
    return {name: (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for name, bits in stored.items()}


def save_bf16(stored, path):
    """safetensors without torch: NumPy has no bfloat16."""
    header, at = {}, 0
    for name, bits in stored.items():
        header[name] = {"dtype": "BF16", "shape": list(bits.shape), "data_offsets": [at, at + bits.nbytes]}
        at += bits.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(bits.tobytes() for bits in stored.values()))


def expected(model, w, config):
    ids = np.random.default_rng(7).integers(3, VOCAB - 2, N)
    logits = model.logits(ids, w, config)
    greedy, margins, sequence = [], [], list(ids[:PROMPT])
    for _ in range(NEW):
        row = np.sort(model.logits(np.array(sequence), w, config)[-1])
        best = int(model.logits(np.array(sequence), w, config)[-1].argmax())
        greedy.append(best); margins.append(row[-1] - row[-2]); sequence.append(best)
    return {"input_ids": ids.astype(np.int32), "logits": logits.astype(np.float32),
            "greedy_prompt": ids[:PROMPT].astype(np.int32), "greedy_ids": np.array(greedy, np.int32),
            "greedy_margin": np.array(margins, np.float32)}


def main():
    root, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(MODELS)
    for name in names:
        model, folder = MODELS[name], root / name
        folder.mkdir(parents=True, exist_ok=True)
        stored = draw_weights(model, model.config, 11)
        (folder / "config.json").write_text(json.dumps(model.config, indent=1) + "\n")
        (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}, indent=1) + "\n")
        if hasattr(model, "recipe"): (folder / "recipe.json").write_text(json.dumps(model.recipe, indent=1) + "\n")
        save_bf16(stored, folder / "model.safetensors")
        result = expected(model, widened(stored), model.config)
        save_file(result, str(folder / "expected.safetensors"))
        print(f"{name}: {sum(a.size for a in stored.values())} parameters, logits std {result['logits'].std():.3f}")


if __name__ == "__main__":
    main()
