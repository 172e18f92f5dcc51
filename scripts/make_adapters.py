#!/usr/bin/env python3
"""Writes tests/data/adapters: a small checkpoint, two PEFT adapters, and the merged weights as NumPy adds them.

usage: make_adapters.py [OUT]

expected.safetensors: base + adapter `plain` (scale 1) + adapter `patterns` (scale 0.5), in float64, rounded once."""
import json
import pathlib
import sys

import numpy as np

from make_packed_checkpoints import bf16, write_safetensors

random = np.random.default_rng(29)


def normal(*shape):
    return random.normal(0, 0.1, shape).astype(np.float32)


def write_adapter(folder, config, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "bias": "none", **config}, indent=1) + "\n")
    write_safetensors(folder / "adapter_model.safetensors", tensors)


def main(out):
    stored_k, k = bf16(normal(8, 24))
    base = {"model.embed.weight": normal(16, 24), "model.layers.0.q.weight": normal(12, 24), "model.layers.0.k.weight": k,
            "model.layers.0.untouched.weight": normal(4, 4)}
    (out / "base").mkdir(parents=True, exist_ok=True)
    (out / "base/config.json").write_text("{}\n")
    write_safetensors(out / "base/model.safetensors", {**base, "model.layers.0.k.weight": stored_k})
    merged = {name: value.astype(np.float64) for name, value in base.items()}

    a, b = normal(3, 24), normal(12, 3)
    ea, eb = normal(3, 16), normal(24, 3)
    write_adapter(out / "plain", {"r": 3, "lora_alpha": 6, "modules_to_save": None, "use_dora": False}, {
        "base_model.model.model.layers.0.q.lora_A.weight": a, "base_model.model.model.layers.0.q.lora_B.weight": b,
        "base_model.model.model.embed.lora_embedding_A": ea, "base_model.model.model.embed.lora_embedding_B": eb})
    merged["model.layers.0.q.weight"] += 2.0 * b.astype(float) @ a
    merged["model.embed.weight"] += 2.0 * (eb.astype(float) @ ea).T

    stored_a, a = bf16(normal(4, 24))
    b, a2, b2 = normal(12, 4), normal(2, 24), normal(8, 2)
    write_adapter(out / "patterns", {"r": 4, "lora_alpha": 8, "use_rslora": True, "rank_pattern": {"layers.0.k": 2},
                                     "alpha_pattern": {"^model.layers.0.k": 3}}, {
        "base_model.model.model.layers.0.q.lora_A.weight": stored_a, "base_model.model.model.layers.0.q.lora_B.weight": b,
        "base_model.model.model.layers.0.k.lora_A.weight": a2, "base_model.model.model.layers.0.k.lora_B.weight": b2})
    merged["model.layers.0.q.weight"] += 0.5 * 8 / np.sqrt(4) * b.astype(float) @ a
    merged["model.layers.0.k.weight"] += 0.5 * 3 / np.sqrt(2) * b2.astype(float) @ a2

    a, b = normal(2, 16), normal(24, 2)  # model.embed taken as a layer [in 16, out 24]
    write_adapter(out / "turned", {"r": 2, "lora_alpha": 2, "fan_in_fan_out": True}, {
        "base_model.model.embed.lora_A.weight": a, "base_model.model.embed.lora_B.weight": b})
    turned = base["model.embed.weight"] + (b.astype(float) @ a).T
    write_safetensors(out / "expected.safetensors", {**{name: value.astype(np.float32) for name, value in merged.items()},
                                                     "turned": turned.astype(np.float32)})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1] / "tests/data/adapters"))
