"""Shapes, mixtures of options and stored forms for `variants.py --random`: what held-back checkpoints may be like."""
import dataclasses, json, random
from safetensors.torch import load_file, save_file

COMMON = {"tied": dict(tie_word_embeddings=True), "untied": dict(tie_word_embeddings=False), "eps": dict(rms_norm_eps=1e-3, layer_norm_eps=1e-3, layer_norm_epsilon=1e-3)}
NO_ROPE = ("gpt2", "opt", "bloom", "mpt", "bert", "roberta", "xlm-roberta", "distilbert", "albert")   # heads of odd width
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")


@dataclasses.dataclass
class Form:
    """How a checkpoint is stored, and the tokens of its case (None: as many as usual)."""
    dtype: str = "bfloat16"
    files: int = 1
    tokens: int | None = None


def load(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")): tensors.update(load_file(path))
    return tensors


def store(tensors, folder, form=Form()):
    for path in folder.glob("*.safetensors*"): path.unlink()
    if form.files == 1: return save_file(tensors, folder / "model.safetensors")
    names = sorted(tensors)
    where = {name: f"model-{i % form.files + 1:05}-of-{form.files:05}.safetensors" for i, name in enumerate(names)}
    for path in sorted(set(where.values())): save_file({n: tensors[n] for n in names if where[n] == path}, folder / path)
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": where}, indent=1))


def even(draw, low, high): return 2 * draw.randint(low // 2, high // 2)


def head_width(draw, odd=False):
    return draw.choice([even(draw, 8, 26), draw.randint(5, 27) if odd else even(draw, 8, 26), even(draw, 28, 60), draw.choice([32, 64, 80, 96, 112, 128])])


def shaped(base, draw, odd):
    """Other widths, depths and head counts, where the base has them."""
    b = dict(base)
    heads = draw.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12])
    width = heads * head_width(draw, odd)
    while width > 600: width //= 2
    width = max(width // heads // (1 if odd else 2) * (1 if odd else 2), 4) * heads
    if "n_embd" in b: b.update(n_embd=width, n_head=heads)
    if "n_heads" in b and "d_model" in b: b.update(d_model=width, n_heads=heads)
    if "n_heads" in b and "dim" in b: b.update(dim=width, n_heads=heads, hidden_dim=draw.randint(20, 150))
    if "num_heads" in b: b.update(d_model=draw.randint(20, 90), d_kv=draw.randint(5, 70), num_heads=heads, d_ff=draw.randint(20, 150))
    if "encoder_attention_heads" in b: seq2seq_shape(b, draw)
    if "n_head" in b and "hidden_size" in b: b.update(hidden_size=width, n_head=heads)
    if "num_attention_heads" in b:
        b.update(hidden_size=width, num_attention_heads=heads)
        if "num_key_value_heads" in b: b["num_key_value_heads"] = heads if "kv_lora_rank" in b else draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    if "num_kv_heads" in b: b["num_kv_heads"] = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    if "head_dim" in b: b["head_dim"] = draw.choice([even(draw, 8, 40), head_width(draw), 256])
    other_widths(b, draw)
    if "vocab_size" in b and "decoder_vocab_size" not in b: b["vocab_size"] = draw.choice([b["vocab_size"], 320, 64, 101, 700])
    return b


def seq2seq_shape(b, draw):
    b.update(d_model=60 * draw.choice([1, 2]), encoder_attention_heads=draw.choice([1, 2, 3, 5, 6]), decoder_attention_heads=draw.choice([1, 2, 3, 5, 6]),
             encoder_ffn_dim=draw.randint(20, 150), decoder_ffn_dim=draw.randint(20, 150), decoder_layers=draw.randint(1, 4), encoder_layers=draw.randint(1, 4))


def other_widths(b, draw):
    for key in ("intermediate_size", "ffn_dim", "moe_intermediate_size", "shared_expert_intermediate_size", "n_inner"):
        if key in b: b[key] = draw.choice([draw.randint(20, 150), 16 * draw.randint(2, 40)])
    for key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers"):
        if key in b: b[key] = draw.randint(1, 7)
    for key in ("kv_lora_rank", "q_lora_rank"):
        if key in b: b[key] = draw.randint(9, 140)
    for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
        if key in b: b[key] = draw.choice([even(draw, 8, 40), 64])
    if "index_head_dim" in b: b["index_head_dim"] = b["qk_rope_head_dim"] + even(draw, 2, 20)
    if "sliding_window" in b: b["sliding_window"] = draw.randint(1, 60)


def fitted(options):
    """Lists with an entry per layer or per rotated pair, made as long as the shape wants them."""
    layers = options.get("num_hidden_layers")
    for key in ("layer_types", "no_rope_layers") if layers else ():
        if options.get(key): options[key] = (options[key] * layers)[:layers]
    rope = options.get("rope_parameters") or {}
    if "long_factor" in rope:
        width = options.get("head_dim") or options["hidden_size"] // options["num_attention_heads"]
        pairs = int(width * rope.get("partial_rotary_factor", 1.0)) // 2
        options["rope_parameters"] = {**rope, **{key: (rope[key] * pairs)[:pairs] for key in ("short_factor", "long_factor")}}
    return options


def form_of(draw):
    return Form(draw.choice(["bfloat16", "float16", "float32"]), draw.choice([1, 1, 2, 5]), draw.choice([1, 2, 5, 17, 80, 80, 130, 300]))


def random_cases(variants, names, count, seed):
    """Mixtures of each family's options, over other shapes, stored in other ways: more than `count`, since not all are models."""
    for name, (model_type, kind, base, options, *model_class) in variants.items():
        if names and not any(name.startswith(n) for n in names): continue
        for i in range(4 * count):
            draw = random.Random(f"{name} {seed} {i}")
            mixed = {}
            for option in draw.choice([[draw.choice(options)], [options[0], *draw.sample(options, min(len(options), draw.randint(1, 3)))]]): mixed.update(option)
            if kind == "causal" and draw.random() < 0.25: mixed.update(draw.choice(list(COMMON.values())))
            shape = shaped({**base, **{k: v for k, v in mixed.items() if k not in base}}, draw, model_type in NO_ROPE)
            kept = {k: v for k, v in mixed.items() if k not in shape or not isinstance(v, int) or isinstance(v, bool)}
            form = form_of(draw)
            for key in POSITIONS:   # tables of learned positions have a row for every token
                if key in base: shape[key] = max(shape[key], form.tokens + 10)
            options_of_case = fitted({**shape, **kept})
            yield name, f"{name}-r{i}", (model_type, kind, options_of_case), options_of_case, (model_class or [None])[0], form
