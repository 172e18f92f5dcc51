"""The fixtures of families with experts and latent attention, rewritten as the GGUF files that llama.cpp's converter
makes of them (stacked and old per-expert tensors, kv_b whole, split, and both at once), against the reference's logits."""
import json
import pathlib
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("numpy", "safetensors", "gguf")
import gguf  # noqa: E402
import numpy as np  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

TOLERANCE = 2e-3   # of the logits' standard deviation


def tensors(path):
    raw = path.read_bytes(); n = int.from_bytes(raw[:8], "little"); head = json.loads(raw[8:8 + n]); out = {}
    for k, v in head.items():
        if k == "__metadata__": continue
        a, b = v["data_offsets"]; data = raw[8 + n + a:8 + n + b]
        out[k] = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(v["shape"]) if v["dtype"] == "BF16" else np.frombuffer(data, np.float32).reshape(v["shape"])
    return out


def permute(w, heads):  # HF half -> GGUF pairs
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write(arch, keys, named, path):
    w = gguf.GGUFWriter(str(path), arch)
    for k, v in keys.items():
        k = k.replace("A.", arch + ".")
        if isinstance(v, bool): w.add_bool(k, v)
        elif isinstance(v, int): w.add_uint32(k, v)
        elif isinstance(v, float): w.add_float32(k, v)
        else: w.add_string(k, v)
    for k, v in named.items(): w.add_tensor(k, np.ascontiguousarray(v.astype(np.float32)))
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()


def common(c, theta):
    return {"A.context_length": c["max_position_embeddings"], "A.embedding_length": c["hidden_size"], "A.block_count": c["num_hidden_layers"],
            "A.feed_forward_length": c["intermediate_size"], "A.attention.head_count": c["num_attention_heads"],
            "A.attention.head_count_kv": c["num_key_value_heads"], "A.attention.layer_norm_rms_epsilon": float(c["rms_norm_eps"]),
            "A.rope.freq_base": float(theta), "A.vocab_size": c["vocab_size"]}


ATT = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
       "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
       "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def base(t, c, permuted, extra={}):
    out = {"token_embd.weight": t["model.embed_tokens.weight"], "output_norm.weight": t["model.norm.weight"], "output.weight": t["lm_head.weight"]}
    for i in range(c["num_hidden_layers"]):
        for hf, gg in {**ATT, **extra}.items():
            for part in ("weight", "bias"):
                k = f"model.layers.{i}.{hf}.{part}"
                if k not in t: continue
                v = t[k]
                if permuted and gg == "attn_q": v = permute(v, c["num_attention_heads"])
                if permuted and gg == "attn_k": v = permute(v, c["num_key_value_heads"])
                out[f"blk.{i}.{gg}.{part}"] = v
    return out


def stack(t, i, pattern, n):
    return np.stack([t[f"model.layers.{i}." + pattern.format(e)] for e in range(n)])


def mixtral(t, c, split):
    n, out = c["num_local_experts"], base(t, c, True)
    for i in range(c["num_hidden_layers"]):
        out[f"blk.{i}.ffn_gate_inp.weight"] = t[f"model.layers.{i}.block_sparse_moe.gate.weight"]
        for gg, w in (("gate", "w1"), ("up", "w3"), ("down", "w2")):
            s = stack(t, i, "block_sparse_moe.experts.{}." + w + ".weight", n)
            if split:
                for e in range(n): out[f"blk.{i}.ffn_{gg}.{e}.weight"] = s[e]
            else: out[f"blk.{i}.ffn_{gg}_exps.weight"] = s
    return "llama", {**common(c, c["rope_theta"]), "A.rope.dimension_count": c["hidden_size"] // c["num_attention_heads"], "A.expert_count": n, "A.expert_used_count": c["num_experts_per_tok"]}, out


def qwen3moe(t, c):
    n, out = c["num_local_experts"], base(t, c, False)
    for i in range(c["num_hidden_layers"]):
        out[f"blk.{i}.ffn_gate_inp.weight"] = t[f"model.layers.{i}.mlp.gate.weight"]
        for p in ("gate", "up", "down"): out[f"blk.{i}.ffn_{p}_exps.weight"] = stack(t, i, "mlp.experts.{}." + p + "_proj.weight", n)
    return "qwen3moe", {**common(c, c["rope_theta"]), "A.attention.key_length": 32, "A.attention.value_length": 32, "A.expert_count": n, "A.expert_used_count": c["num_experts_per_tok"], "A.expert_feed_forward_length": c["moe_intermediate_size"]}, out


def gptoss(t, c):
    n, out = c["num_local_experts"], base(t, c, False)
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out[f"blk.{i}.post_attention_norm.weight"] = out.pop(f"blk.{i}.ffn_norm.weight")
        out[f"blk.{i}.attn_sinks.weight"] = t[p + "self_attn.sinks"]
        for s in ("weight", "bias"): out[f"blk.{i}.ffn_gate_inp.{s}"] = t[p + f"mlp.router.{s}"]
        gu, b = t[p + "mlp.experts.gate_up_proj"].swapaxes(1, 2), t[p + "mlp.experts.gate_up_proj_bias"]
        for k, name in enumerate(("gate", "up")):
            out[f"blk.{i}.ffn_{name}_exps.weight"] = gu[:, k::2]; out[f"blk.{i}.ffn_{name}_exps.bias"] = b[:, k::2]
        out[f"blk.{i}.ffn_down_exps.weight"] = t[p + "mlp.experts.down_proj"].swapaxes(1, 2); out[f"blk.{i}.ffn_down_exps.bias"] = t[p + "mlp.experts.down_proj_bias"]
    r = c["rope_parameters"]
    return "gpt-oss", {**common(c, r["rope_theta"]), "A.attention.key_length": 32, "A.attention.value_length": 32, "A.expert_count": n, "A.expert_used_count": c["num_experts_per_tok"],
        "A.expert_feed_forward_length": c["intermediate_size"], "A.attention.sliding_window": c["sliding_window"], "A.rope.scaling.type": "yarn", "A.rope.scaling.factor": float(r["factor"]), "A.rope.scaling.original_context_length": r["original_max_position_embeddings"]}, out


def qwen2moe(t, c):
    """Every layer with experts; the shared expert's gate, a matrix of one row, is stored as a vector."""
    n, out = c["num_experts"], base(t, c, False)
    for i in range(c["num_hidden_layers"]):
        out[f"blk.{i}.ffn_gate_inp.weight"] = t[f"model.layers.{i}.mlp.gate.weight"]
        out[f"blk.{i}.ffn_gate_inp_shexp.weight"] = t[f"model.layers.{i}.mlp.shared_expert_gate.weight"].ravel()
        for p in ("gate", "up", "down"):
            out[f"blk.{i}.ffn_{p}_exps.weight"] = stack(t, i, "mlp.experts.{}." + p + "_proj.weight", n)
            out[f"blk.{i}.ffn_{p}_shexp.weight"] = t[f"model.layers.{i}.mlp.shared_expert.{p}_proj.weight"]
    return "qwen2moe", {**common(c, c["rope_parameters"]["rope_theta"]), "A.expert_count": n, "A.expert_used_count": c["num_experts_per_tok"],
        "A.expert_feed_forward_length": c["moe_intermediate_size"], "A.expert_shared_feed_forward_length": c["shared_expert_intermediate_size"]}, out


def deepseek(t, c, split):
    extra = {"self_attn.q_a_proj": "attn_q_a", "self_attn.q_b_proj": "attn_q_b", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm"}
    n, out = c["n_routed_experts"], base(t, c, False, extra)
    h, dn, dv, rank, dr = c["num_attention_heads"], c["qk_nope_head_dim"], c["v_head_dim"], c["kv_lora_rank"], c["qk_rope_head_dim"]
    v3 = c["model_type"] == "deepseek_v3"
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        kv = t[p + "self_attn.kv_b_proj.weight"]
        if split != "whole":
            per = kv.reshape(h, dn + dv, rank)
            out[f"blk.{i}.attn_k_b.weight"] = per[:, :dn].swapaxes(1, 2); out[f"blk.{i}.attn_v_b.weight"] = per[:, dn:]
        if split != "split": out[f"blk.{i}.attn_kv_b.weight"] = kv
        if i < c["first_k_dense_replace"]: continue
        out[f"blk.{i}.ffn_gate_inp.weight"] = t[p + "mlp.gate.weight"]
        if v3: out[f"blk.{i}.exp_probs_b.bias"] = t[p + "mlp.gate.e_score_correction_bias"]
        for part in ("gate", "up", "down"):
            out[f"blk.{i}.ffn_{part}_exps.weight"] = stack(t, i, "mlp.experts.{}." + part + "_proj.weight", n)
            out[f"blk.{i}.ffn_{part}_shexp.weight"] = t[p + f"mlp.shared_experts.{part}_proj.weight"]
    r = c.get("rope_parameters") or {}
    keys = {**common(c, r.get("rope_theta", 10000.0)), "A.attention.q_lora_rank": c["q_lora_rank"], "A.attention.kv_lora_rank": rank, "A.rope.dimension_count": dr,
            "A.leading_dense_block_count": c["first_k_dense_replace"], "A.expert_count": n, "A.expert_used_count": c["num_experts_per_tok"], "A.expert_shared_count": c["n_shared_experts"],
            "A.expert_feed_forward_length": c["moe_intermediate_size"], "A.expert_weights_scale": float(c["routed_scaling_factor"]), "A.expert_weights_norm": bool(c["norm_topk_prob"]), "A.expert_gating_func": 2 if v3 else 1}
    if v3: keys.update({"A.expert_group_count": c["n_group"], "A.expert_group_used_count": c["topk_group"]})
    if split == "split": keys.update({"A.attention.head_count_kv": 1, "A.attention.key_length": rank + dr, "A.attention.value_length": rank, "A.attention.key_length_mla": dn + dr, "A.attention.value_length_mla": dv})
    else: keys.update({"A.attention.key_length": dn + dr, "A.attention.value_length": dv})
    if r.get("rope_type") == "yarn": keys.update({"A.rope.scaling.type": "yarn", "A.rope.scaling.factor": float(r["factor"]), "A.rope.scaling.original_context_length": r["original_max_position_embeddings"], "A.rope.scaling.yarn_log_multiplier": 0.1 * r["mscale_all_dim"]})
    return "deepseek2", keys, out


CASES = [("mixtral", mixtral, (False,)), ("mixtral", mixtral, (True,)), ("qwen3-moe", qwen3moe, ()),
         ("gpt-oss-sinks", gptoss, ()), *[(name, deepseek, (form,)) for name in ("deepseek-v2", "deepseek-v3") for form in ("whole", "split", "both")]]


def logits(source, ids, folder, name):
    result = run(CONVERT, source, folder / name, "--type", "f32")
    check(b"not known" not in result.stderr, f"{source.name}: unknown keys: {result.stderr}")
    (folder / "ids").write_text(" ".join(map(str, ids)))
    run(QUERN, "logits", "-m", folder / name, "--ids-file", folder / "ids", "-ctk", "f32", "-ctv", "f32",
        "--deterministic", "-o", folder / "o.npy")
    return np.load(folder / "o.npy")


def last_layer_alone(t, c, folder):
    """A checkpoint of the fixture's last layer: the GGUF form of the family has no dense layers."""
    last = c["num_hidden_layers"] - 1
    kept = {k.replace(f"layers.{last}.", "layers.0."): v for k, v in t.items() if ".layers." not in k or f".layers.{last}." in k}
    config = {**c, "num_hidden_layers": 1, "mlp_only_layers": [], "layer_types": c["layer_types"][-1:], "dtype": "float32"}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    save_file({k: np.ascontiguousarray(v) for k, v in kept.items()}, folder / "model.safetensors")
    return kept, config


def check_one_row_matrices(folder):
    fixture = SOURCE / "tests/data/fixtures/qwen2-moe"
    kept, config = last_layer_alone(tensors(fixture / "model.safetensors"), json.loads((fixture / "config.json").read_text()), folder / "hf")
    write(*qwen2moe(kept, config), folder / "m.gguf")
    ids = load_file(str(fixture / "expected.safetensors"))["input_ids"].ravel()
    want, got = logits(folder / "hf", ids, folder, "a"), logits(folder / "m.gguf", ids, folder, "b")
    check(np.array_equal(want, got), f"qwen2-moe: differs by {np.abs(want - got).max() / want.std():.2e} of std")


def main():
    covered = []
    for name, make, args in CASES:
        fixture = SOURCE / "tests/data/fixtures" / name
        config = json.loads((fixture / "config.json").read_text())
        expected = load_file(str(fixture / "expected.safetensors"))
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write(*make(tensors(fixture / "model.safetensors"), config, *args), folder / "m.gguf")
            got, want = logits(folder / "m.gguf", expected["input_ids"].ravel(), folder, "m"), expected["logits"].astype(np.float64)
            error = np.abs(got - want).max() / want.std()
            check(error <= TOLERANCE, f"{name} {args}: error {error:.2e} of std")
            covered.append(f"{name} {error:.1e}")
    with tempfile.TemporaryDirectory() as folder: check_one_row_matrices(pathlib.Path(folder))
    print(f"{len(covered)} GGUF files within {TOLERANCE} of std: " + ", ".join(covered))


main()
