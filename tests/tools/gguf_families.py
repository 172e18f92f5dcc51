"""Every family that GGUF has: a fixture's tensors written as a GGUF file, with the names, permutations and
fused orders of llama.cpp's converters, gives the logits of the Hugging Face form."""
import json
import pathlib
import struct
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("numpy", "gguf")
import gguf  # noqa: E402
import numpy as np  # noqa: E402

FIXTURES = SOURCE / "tests/data/fixtures"
IDS = [5, 17, 300, 44, 9, 9, 250, 31, 77, 12, 200, 3, 8, 150, 99, 41, 60, 222, 10, 111, 318, 7, 19, 23]


def load(folder):
    """Tensors of model.safetensors as float32 (the fixtures are bfloat16), and the configuration."""
    data = (folder / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data[begin:end], "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data[begin:end], {"F32": "<f4", "F16": "<f2"}[entry["dtype"]]).astype(np.float32)
        tensors[name] = values.reshape(entry["shape"])
    return tensors, json.loads((folder / "config.json").read_text())


def permuted(rows, heads):
    """Rows of q and k as the llama converters write them: from halves to pairs."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def by_head(rows, heads):
    """[heads][q, k, v] -> [q | k | v]."""
    width = rows.shape[0] // heads // 3
    return rows.reshape(heads, 3, width, *rows.shape[1:]).swapaxes(0, 1).reshape(rows.shape)


class Writer:
    """A GGUF file from a configuration: `put` copies a tensor under its new name."""

    def __init__(self, path, arch, tensors, config):
        self.out, self.arch, self.tensors, self.config = gguf.GGUFWriter(path, arch), arch, tensors, config

    def get(self, *keys, default=None):
        return next((self.config[k] for k in keys if self.config.get(k) is not None), default)

    def u32(self, key, value):
        self.out.add_uint32(f"{self.arch}.{key}", int(value))

    def f32(self, key, value):
        self.out.add_float32(f"{self.arch}.{key}", float(value))

    def rope_value(self, key, default):
        parameters = self.get("rope_parameters", default={})
        return parameters.get(key, parameters.get("full_attention", {}).get(key, self.get(key, default=default)))

    def sizes(self, eps, rope=True):
        self.heads = self.get("num_attention_heads", "n_head", "n_heads")
        self.kv_heads = self.get("num_key_value_heads", default=self.heads)
        width = self.get("hidden_size", "n_embd", "d_model")
        self.head_dim = self.get("head_dim", default=width // self.heads)
        self.layers = self.get("num_hidden_layers", "n_layer", "n_layers")
        self.u32("block_count", self.layers)
        self.u32("context_length", self.get("max_position_embeddings", "n_positions", "max_seq_len", default=2048))
        self.u32("embedding_length", width)
        self.u32("feed_forward_length", self.get("intermediate_size", "ffn_hidden_size", "n_inner", default=4 * width))
        self.u32("attention.head_count", self.heads)
        self.u32("attention.head_count_kv", self.kv_heads)
        kind, value = eps
        self.f32(f"attention.layer_norm_{kind}", value)
        if self.config.get("head_dim"):
            self.u32("attention.key_length", self.head_dim)
            self.u32("attention.value_length", self.head_dim)
        if rope:
            share = self.rope_value("partial_rotary_factor", self.get("rotary_pct", default=1.0))
            self.u32("rope.dimension_count", int(self.head_dim * share))
            self.f32("rope.freq_base", self.rope_value("rope_theta", self.get("rotary_emb_base", default=1e4)))

    def put(self, name, values):
        self.out.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    def copy(self, source, name, change=lambda rows: rows):
        for part in ("weight", "bias"):
            if f"{source}.{part}" in self.tensors:
                self.put(f"{name}.{part}", change(self.tensors[f"{source}.{part}"]))

    def close(self):
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


LLAMA_NAMES = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
               "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.dense": "attn_output",
               "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
               "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "self_attn.qkv_proj": "attn_qkv",
               "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down",
               "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
SANDWICH = {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
            "post_feedforward_layernorm": "post_ffw_norm"}


def llama_like(w, eps, pairs=False, names=None, norm_offset=0.0):
    w.sizes(eps)
    for l in range(w.layers):
        for old, new in {**LLAMA_NAMES, **(names or {})}.items():
            change = lambda rows: rows
            if pairs and new in ("attn_q", "attn_k"):
                change = lambda rows, n=w.heads if new == "attn_q" else w.kv_heads: permuted(rows, n)
            if norm_offset and "norm" in new:
                change = lambda rows: rows + norm_offset
            w.copy(f"model.layers.{l}.{old}", f"blk.{l}.{new}", change)
    w.copy("model.embed_tokens", "token_embd")
    w.copy("model.norm", "output_norm", lambda rows: rows + norm_offset)
    w.copy("model.final_layernorm", "output_norm")
    w.copy("lm_head", "output")


def rms(w):
    return "rms_epsilon", w.get("rms_norm_eps")


def layer(w):
    return "epsilon", w.get("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", default=1e-5)


def plain(w):
    llama_like(w, rms(w))


def paired(w):
    llama_like(w, rms(w), pairs=True)


def by_layer_norm(w):
    llama_like(w, layer(w))


def glm(w):  # pairs already in its own files
    names = {}
    if w.arch == "glm4":
        names = {"post_self_attn_layernorm": "post_attention_norm", "post_attention_layernorm": "ffn_norm",
                 "post_mlp_layernorm": "post_ffw_norm"}
    else:
        for l in range(w.get("num_hidden_layers")):
            for part in ("weight", "bias"):
                pieces = [w.tensors.pop(f"model.layers.{l}.self_attn.{n}_proj.{part}") for n in "qkv"]
                w.tensors[f"model.layers.{l}.self_attn.qkv_proj.{part}"] = np.concatenate(pieces)
    llama_like(w, rms(w), names=names)


def gemma(w):
    llama_like(w, rms(w), names=SANDWICH if w.arch != "gemma" else None, norm_offset=1.0)
    if w.arch != "gemma":
        w.u32("attention.sliding_window", w.get("sliding_window"))
        w.f32("attention.scale", w.get("query_pre_attn_scalar") ** -0.5)
    if w.arch == "gemma2":
        w.f32("attn_logit_softcapping", w.get("attn_logit_softcapping"))
        w.f32("final_logit_softcapping", w.get("final_logit_softcapping"))
    scaling = w.get("rope_parameters", default={}).get("full_attention", {})
    if scaling.get("rope_type") == "linear":
        w.out.add_string(f"{w.arch}.rope.scaling.type", "linear")
        w.f32("rope.scaling.factor", scaling["factor"])


def gemma_embedding(w):
    w.tensors = {f"model.{name}": rows for name, rows in w.tensors.items()}
    gemma(w)
    w.u32("pooling_type", 1)
    w.u32("dense_2_feat_in", w.get("hidden_size"))
    w.u32("dense_2_feat_out", 9)
    w.put("dense_2.weight", np.eye(9, w.get("hidden_size"), dtype=np.float32))


def phi3(w):
    llama_like(w, rms(w))
    scaling = w.get("rope_parameters", default={})
    if scaling.get("rope_type") == "longrope":
        w.u32("rope.scaling.original_context_length", w.get("original_max_position_embeddings"))
        w.put("rope_factors_short.weight", np.array(scaling["short_factor"]))
        w.put("rope_factors_long.weight", np.array(scaling["long_factor"]))


def granite(w):
    paired(w)
    w.f32("embedding_scale", w.get("embedding_multiplier"))
    w.f32("residual_scale", w.get("residual_multiplier"))
    w.f32("attention.scale", w.get("attention_multiplier"))
    w.f32("logit_scale", w.get("logits_scaling"))


def cohere(w):
    llama_like(w, layer(w))
    w.f32("logit_scale", w.get("logit_scale"))


def qwen2(w):
    plain(w)
    scaling = w.get("rope_parameters", "rope_scaling", default={})
    if scaling.get("rope_type") == "yarn":
        w.out.add_string("qwen2.rope.scaling.type", "yarn")
        w.f32("rope.scaling.factor", scaling["factor"])
        w.u32("rope.scaling.original_context_length", scaling["original_max_position_embeddings"])


def neox(w):
    w.sizes(layer(w))
    w.out.add_bool("gptneox.use_parallel_residual", w.get("use_parallel_residual", default=True))
    for l in range(w.layers):
        p = f"gpt_neox.layers.{l}."
        w.copy(p + "attention.query_key_value", f"blk.{l}.attn_qkv", lambda rows: by_head(rows, w.heads))
        for old, new in {"input_layernorm": "attn_norm", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
                         "post_attention_layernorm": "ffn_norm", "mlp.dense_4h_to_h": "ffn_down"}.items():
            w.copy(p + old, f"blk.{l}.{new}")
    w.copy("gpt_neox.embed_in", "token_embd")
    w.copy("gpt_neox.final_layer_norm", "output_norm")
    w.copy("embed_out", "output")


def falcon(w):
    w.config["num_key_value_heads"] = w.get("num_kv_heads") if w.get("new_decoder_architecture") else 1
    w.sizes(layer(w))
    group, width = w.heads // w.kv_heads, w.head_dim

    def fused(rows):  # [group][q.., k, v] -> [q | k | v]
        parts = rows.reshape(w.kv_heads, group + 2, width, rows.shape[1])
        return np.concatenate([parts[:, :group].reshape(-1, rows.shape[1]), parts[:, group].reshape(-1, rows.shape[1]),
                               parts[:, group + 1].reshape(-1, rows.shape[1])])

    for l in range(w.layers):
        p = f"transformer.h.{l}."
        w.copy(p + "self_attention.query_key_value", f"blk.{l}.attn_qkv", fused)
        for old, new in {"input_layernorm": "attn_norm", "ln_mlp": "attn_norm", "ln_attn": "attn_norm_2",
                         "self_attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
                         "mlp.dense_4h_to_h": "ffn_down"}.items():
            w.copy(p + old, f"blk.{l}.{new}")
    w.copy("transformer.word_embeddings", "token_embd")
    w.copy("transformer.ln_f", "output_norm")


def bloom(w):
    w.config["hidden_size"] = w.tensors["transformer.word_embeddings.weight"].shape[1]
    w.sizes(layer(w), rope=False)
    for l in range(w.layers):
        p = f"transformer.h.{l}."
        w.copy(p + "self_attention.query_key_value", f"blk.{l}.attn_qkv", lambda rows: by_head(rows, w.heads))
        for old, new in {"input_layernorm": "attn_norm", "self_attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
                         "post_attention_layernorm": "ffn_norm", "mlp.dense_4h_to_h": "ffn_down"}.items():
            w.copy(p + old, f"blk.{l}.{new}")
    w.copy("transformer.word_embeddings", "token_embd")
    w.copy("transformer.word_embeddings_layernorm", "token_embd_norm")
    w.copy("transformer.ln_f", "output_norm")


def mpt(w):
    w.sizes(layer(w), rope=False)
    w.f32("attention.max_alibi_bias", 8)
    for l in range(w.layers):
        for old, new in {"norm_1": "attn_norm", "attn.Wqkv": "attn_qkv", "attn.out_proj": "attn_output",
                         "norm_2": "ffn_norm", "ffn.up_proj": "ffn_up", "ffn.down_proj": "ffn_down"}.items():
            w.copy(f"transformer.blocks.{l}.{old}", f"blk.{l}.{new}")
    w.copy("transformer.wte", "token_embd")
    w.copy("transformer.norm_f", "output_norm")


def gpt2(w):
    w.sizes(layer(w), rope=False)
    for l in range(w.layers):
        for old, new in {"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
                         "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}.items():
            w.copy(f"transformer.h.{l}.{old}", f"blk.{l}.{new}", lambda rows: rows.T)
    w.copy("transformer.wte", "token_embd")
    w.copy("transformer.wpe", "position_embd")
    w.copy("transformer.ln_f", "output_norm")


def olmo2(w):
    llama_like(w, rms(w), names=SANDWICH)


def mistral(w):
    paired(w)
    w.u32("attention.sliding_window", w.get("sliding_window"))


def bert(w):
    w.sizes(layer(w), rope=False)
    w.out.add_bool("bert.attention.causal", False)
    w.u32("pooling_type", 1)
    for l in range(w.layers):
        for old, new in {"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
                         "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
                         "intermediate.dense": "ffn_up", "output.dense": "ffn_down",
                         "output.LayerNorm": "layer_output_norm"}.items():
            w.copy(f"bert.encoder.layer.{l}.{old}", f"blk.{l}.{new}")
    w.copy("bert.embeddings.word_embeddings", "token_embd")
    w.copy("bert.embeddings.position_embeddings", "position_embd")
    w.copy("bert.embeddings.token_type_embeddings", "token_types")
    w.copy("bert.embeddings.LayerNorm", "token_embd_norm")


def modern_bert(w):
    w.sizes(("epsilon", w.get("norm_eps")), rope=False)
    w.out.add_bool("modern-bert.attention.causal", False)
    w.u32("attention.sliding_window", w.get("local_attention"))
    w.u32("attention.sliding_window_pattern", w.get("global_attn_every_n_layers"))
    for kind, key in (("full", "rope.freq_base"), ("sliding", "rope.freq_base_swa")):
        w.f32(key, w.get("rope_parameters")[kind + "_attention"]["rope_theta"])
    for l in range(w.layers):
        for old, new in {"attn_norm": "attn_norm", "attn.Wqkv": "attn_qkv", "attn.Wo": "attn_output", "mlp_norm": "ffn_norm",
                         "mlp.Wi": "ffn_up", "mlp.Wo": "ffn_down"}.items():
            w.copy(f"model.layers.{l}.{old}", f"blk.{l}.{new}")
    w.copy("model.embeddings.tok_embeddings", "token_embd")
    w.copy("model.embeddings.norm", "token_embd_norm")
    w.copy("model.final_norm", "output_norm")


def t5(w):
    for key, name in {"block_count": "num_layers", "decoder_block_count": "num_decoder_layers", "embedding_length": "d_model",
                      "feed_forward_length": "d_ff", "attention.head_count": "num_heads", "attention.key_length": "d_kv",
                      "attention.value_length": "d_kv", "attention.relative_buckets_count": "relative_attention_num_buckets",
                      "decoder_start_token_id": "decoder_start_token_id"}.items():
        w.u32(key, w.get(name))
    w.u32("context_length", 512)
    w.f32("attention.layer_norm_epsilon", w.get("layer_norm_epsilon"))
    w.f32("attention.layer_norm_rms_epsilon", w.get("layer_norm_epsilon"))
    for stack, short, ffn in (("encoder", "enc", 1), ("decoder", "dec", 2)):
        for l in range(w.get("num_layers" if stack == "encoder" else "num_decoder_layers")):
            p, q = f"{stack}.block.{l}.layer.", f"{short}.blk.{l}."
            for part in "qkvo":
                w.copy(f"{p}0.SelfAttention.{part}", f"{q}attn_{part}")
                w.copy(f"{p}1.EncDecAttention.{part}", f"{q}cross_attn_{part}")
            w.copy(p + "0.SelfAttention.relative_attention_bias", q + "attn_rel_b")
            w.copy(p + "0.layer_norm", q + "attn_norm")
            w.copy(p + f"{ffn}.layer_norm", q + "ffn_norm")
            if ffn == 2:
                w.copy(p + "1.layer_norm", q + "cross_attn_norm")
            dense = f"{p}{ffn}.DenseReluDense."
            for old, new in {"wi": "ffn_up", "wi_0": "ffn_gate", "wi_1": "ffn_up", "wo": "ffn_down"}.items():
                w.copy(dense + old, q + new)
        w.copy(f"{stack}.final_layer_norm", f"{short}.output_norm")
    w.copy("shared", "token_embd")
    w.copy("lm_head", "output")


# Fixture -> architecture, writer, changes of the configuration (what the GGUF form fixes).
CASES = {
    "llama2": ("llama", paired), "llama-wide": ("llama", paired), "mistral-swa": ("llama", mistral),
    "starcoder2": ("starcoder2", by_layer_norm), "gpt-neox": ("gptneox", neox), "phi": ("phi2", by_layer_norm),
    "stablelm": ("stablelm", by_layer_norm), "falcon-mqa": ("falcon", falcon), "falcon-new": ("falcon", falcon),
    "bloom-alibi": ("bloom", bloom), "mpt": ("mpt", mpt), "qwen2": ("qwen2", qwen2), "qwen2-yarn": ("qwen2", qwen2),
    "qwen3": ("qwen3", plain), "glm": ("chatglm", glm), "glm4": ("glm4", glm), "gemma": ("gemma", gemma),
    "gemma2": ("gemma2", gemma), "gemma3": ("gemma3", gemma), "gemma3-encoder": ("gemma-embedding", gemma_embedding), "phi3": ("phi3", phi3), "phi3-longrope": ("phi3", phi3),
    "olmo2": ("olmo2", olmo2), "cohere": ("command-r", cohere), "granite": ("granite", granite), "gpt2": ("gpt2", gpt2),
    "smollm3-nope": ("smollm3", paired, {"no_rope_layers": None}), "bert": ("bert", bert),
    "modernbert": ("modern-bert", modern_bert),
    "t5": ("t5", t5, {"relative_attention_max_distance": 128}),
    "flan-t5": ("t5", t5, {"relative_attention_max_distance": 128, "scale_decoder_outputs": True}),
}


def logits(model, folder, arch):
    """Logits, or the hidden states of an encoder, whose GGUF form has no head."""
    (folder / "ids").write_text(" ".join(map(str, IDS)))
    options = ["-ctk", "f32", "-ctv", "f32", "--hidden" if arch.endswith(("bert", "embedding")) else "-o", folder / "o.npy"]
    if arch == "t5":
        options += ["--encoder-ids-file", folder / "ids"]
    run(QUERN, "logits", "-m", model, "--ids-file", folder / "ids", *options)
    return np.load(folder / "o.npy").astype(np.float64)


def main():
    covered = []
    for fixture, (arch, write, *changes) in CASES.items():
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            tensors, config = load(FIXTURES / fixture)
            for change in changes:
                config.update(change)
            source = folder / "src"
            source.mkdir()
            (source / "config.json").write_text(json.dumps(config))
            (source / "model.safetensors").write_bytes((FIXTURES / fixture / "model.safetensors").read_bytes())
            writer = Writer(folder / "model.gguf", arch, tensors, config)
            write(writer)
            writer.close()
            run(CONVERT, source, folder / "hf", "--type", "f32")
            run(CONVERT, folder / "model.gguf", folder / "gguf", "--type", "f32", "--strict")
            want, got = logits(folder / "hf", folder, arch), logits(folder / "gguf", folder, arch)
            error = np.abs(got - want).max() / want.std()
            check(got.shape == want.shape and error < 1e-4, f"{fixture} as {arch}: differs by {error:.2e} of std")
            covered.append(f"{fixture} {error:.0e}")
    print(f"{len(covered)} families as GGUF give the logits of their Hugging Face form: " + ", ".join(covered))


main()
