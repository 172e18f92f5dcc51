"""Random checkpoints of five kinds, large enough that a fault of a few MiB of memory shows, small enough that a run takes
seconds; written with NumPy from shapes alone."""
import json
import struct

from harness import CONVERT, SOURCE, run

VOCABULARY, POSITIONS = 32000, 4096
WIDTHS = {  # put into the configuration of the fixture
    "llama2": dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12,
                   num_key_value_heads=4, head_dim=64),
    "gpt2": dict(n_embd=768, n_layer=12, n_head=12, n_inner=3072, n_positions=POSITIONS),
    "mistral-swa": dict(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12,
                        num_key_value_heads=4, head_dim=64, sliding_window=512),
    "deepseek-v3": dict(hidden_size=512, intermediate_size=1536, moe_intermediate_size=384, num_hidden_layers=8,
                        num_attention_heads=8, num_key_value_heads=8, kv_lora_rank=256, q_lora_rank=384, n_routed_experts=16),
    "t5": dict(d_model=512, d_kv=64, d_ff=2048, num_layers=8, num_decoder_layers=8, num_heads=8, n_positions=POSITIONS),
}


def feed_forward(name, d, width):
    return {f"{name}.gate_proj.weight": (width, d), f"{name}.up_proj.weight": (width, d), f"{name}.down_proj.weight": (d, width)}


def llama_attention(c):
    d, q, kv = c["hidden_size"], c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    return {"q_proj.weight": (q, d), "k_proj.weight": (kv, d), "v_proj.weight": (kv, d), "o_proj.weight": (d, q)}


def latent_attention(c):
    d, heads, rank, query_rank = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"], c["q_lora_rank"]
    plain, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    return {"q_a_proj.weight": (query_rank, d), "q_a_layernorm.weight": (query_rank,),
            "q_b_proj.weight": (heads * (plain + rope), query_rank), "kv_a_proj_with_mqa.weight": (rank + rope, d),
            "kv_a_layernorm.weight": (rank,), "kv_b_proj.weight": (heads * (plain + value), rank), "o_proj.weight": (d, heads * value)}


def mixture(name, c):
    d, width, experts = c["hidden_size"], c["moe_intermediate_size"], c["n_routed_experts"]
    out = {f"{name}.gate.weight": (experts, d), f"{name}.gate.e_score_correction_bias": (experts,),
           **feed_forward(f"{name}.shared_experts", d, width * c["n_shared_experts"])}
    for expert in range(experts):
        out |= feed_forward(f"{name}.experts.{expert}", d, width)
    return out


def llama_shapes(c):
    d = c["hidden_size"]
    out = {"model.embed_tokens.weight": (VOCABULARY, d), "lm_head.weight": (VOCABULARY, d), "model.norm.weight": (d,)}
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        attention = latent_attention(c) if "kv_lora_rank" in c else llama_attention(c)
        out |= {f"{at}.self_attn.{name}": shape for name, shape in attention.items()}
        out |= {f"{at}.input_layernorm.weight": (d,), f"{at}.post_attention_layernorm.weight": (d,)}
        dense = layer < c.get("first_k_dense_replace", c["num_hidden_layers"])
        out |= feed_forward(f"{at}.mlp", d, c["intermediate_size"]) if dense else mixture(f"{at}.mlp", c)
    return out


def gpt2_shapes(c):
    d, width = c["n_embd"], c["n_inner"]
    out = {"transformer.wte.weight": (VOCABULARY, d), "transformer.wpe.weight": (POSITIONS, d)}
    norms = ["transformer.ln_f"]
    for layer in range(c["n_layer"]):
        at = f"transformer.h.{layer}"
        norms += [f"{at}.ln_1", f"{at}.ln_2"]
        for name, rows, columns in (("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d), ("mlp.c_fc", d, width), ("mlp.c_proj", width, d)):
            out |= {f"{at}.{name}.weight": (rows, columns), f"{at}.{name}.bias": (columns,)}
    for norm in norms:
        out |= {f"{norm}.weight": (d,), f"{norm}.bias": (d,)}
    return out


def t5_shapes(c):
    d, inner = c["d_model"], c["num_heads"] * c["d_kv"]
    out = {"shared.weight": (VOCABULARY, d)}
    for stack, layers in (("encoder", c["num_layers"]), ("decoder", c["num_decoder_layers"])):
        attentions = ["SelfAttention"] + ["EncDecAttention"] * (stack == "decoder")
        out |= {f"{stack}.final_layer_norm.weight": (d,), f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight":
                (c["relative_attention_num_buckets"], c["num_heads"])}
        for block in range(layers):
            at = f"{stack}.block.{block}.layer"
            for n, name in enumerate(attentions):
                out |= {f"{at}.{n}.{name}.{p}.weight": (inner, d) for p in "qkv"} | {f"{at}.{n}.{name}.o.weight": (d, inner)}
            last = f"{at}.{len(attentions)}.DenseReluDense"
            out |= {f"{last}.wi.weight": (c["d_ff"], d), f"{last}.wo.weight": (d, c["d_ff"])}
            out |= {f"{at}.{n}.layer_norm.weight": (d,) for n in range(len(attentions) + 1)}
    return out


def write_checkpoint(path, shapes):
    """Ones for norms, small normal numbers for the rest, in bf16: the upper half of a float32."""
    import numpy
    random = numpy.random.default_rng(1)
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(numpy.prod(shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for shape in shapes.values():
            values = random.normal(0, 0.02, shape) if len(shape) > 1 else numpy.ones(shape)
            out.write((values.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes())


def make_large_model(folder, fixture):
    """A q8 model of the fixture's kind."""
    config = json.loads((SOURCE / "tests/data/fixtures" / fixture / "config.json").read_text())
    config.update(WIDTHS[fixture], vocab_size=VOCABULARY)
    if "max_position_embeddings" in config:
        config["max_position_embeddings"] = POSITIONS
    config.pop("layer_types", None)
    source, target = folder / f"{fixture}-hf", folder / fixture
    source.mkdir()
    (source / "config.json").write_text(json.dumps(config))
    shapes = {"gpt2": gpt2_shapes, "t5": t5_shapes}.get(fixture, llama_shapes)(config)
    write_checkpoint(source / "model.safetensors", shapes)
    run(CONVERT, source, target, "--type", "q8", "-q")
    (source / "model.safetensors").unlink()
    return target
