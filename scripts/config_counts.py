#!/usr/bin/env python3
"""Parameter counts of tests/data/configs by the reference implementation, without weights.

Builds every configuration's model on torch's meta device and compares the parameters with what the file
says the contract adds up to (tests/convert/config_counts_test.cpp holds quern to the same numbers).
Needs torch and transformers 5. Usage: config_counts.py [NAME...]
"""
import json
import pathlib
import sys

import torch
import transformers

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "configs"
# Numbers that the reference keeps beside its parameters and quern counts among them.
COUNTED_BUFFERS = ("e_score_correction_bias",)
SPELLINGS = {"MPTForCausalLM": "MptForCausalLM"}


def build(config):
    config = {k: v for k, v in config.items() if k not in ("quantization_config", "auto_map")}
    name = config["architectures"][0]
    model_class = getattr(transformers, SPELLINGS.get(name, name))
    with torch.device("meta"):
        model = model_class(model_class.config_class.from_dict(config))
    model.tie_weights()
    return model


def count(data):
    model = build(data["config"])
    computed = data["expected"].get("computed", "")  # a table that can be computed is no parameter
    total = experts = 0
    for name, parameter in model.named_parameters():  # a tied one comes once
        if computed and computed in name:
            continue
        total += parameter.numel()
        if ".experts." in name:
            experts += parameter.numel()
    for name, buffer in model.named_buffers():
        if name.endswith(COUNTED_BUFFERS):
            total += buffer.numel()
    # One family's class ties always, though files of its second version hold an output matrix of their own.
    if model.config.tie_word_embeddings and not data["config"].get("tie_word_embeddings", True):
        total += model.get_output_embeddings().weight.numel()
    used, of = data["expected"].get("experts", (1, 1))
    return total, total - experts // of * (of - used)


def main():
    wrong = 0
    for path in sorted(CONFIGS.glob("*.json")):
        if len(sys.argv) > 1 and path.stem not in sys.argv[1:]:
            continue
        data = json.loads(path.read_text())
        total, active = count(data)
        expected = data["expected"]
        same = (total, active) == (expected["total"], expected["active"])
        wrong += not same
        print(f"{path.stem:20} {total:>18,} {active:>18,} {'' if same else 'DIFFERENT'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
