#!/usr/bin/env python3
"""Writes tests/data/class_defaults.json: what transformers' configuration classes supply.

For each model type that a recipe reads (models/*.json, match.hf) two whole configurations: of the class without
arguments, and with other sizes ("given"), so that defaults that follow from other keys show. A file that leaves out
any key that was not given means the same. tests/tools/config_defaults.py holds the recipes to that. No torch needed.
usage: class_defaults.py OUT.json
"""
import json, pathlib, sys
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
# Of every configuration, none of a forward pass.
COMMON = {"transformers_version", "output_hidden_states", "return_dict", "dtype", "chunk_size_feed_forward", "id2label", "label2id", "architectures",
          "problem_type", "initializer_range", "use_cache", "_name_or_path", "output_attentions", "model_type", "pad_token_id", "bos_token_id", "eos_token_id"}
WIDTHS = ("hidden_size", "n_embd", "d_model", "dim", "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads")
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")


def plain(values):
    return {k: plain(v) if isinstance(v, dict) else v for k, v in values.items() if k not in COMMON}


def main():
    found = []
    for path in sorted(MODELS.glob("*.json")):
        for name in json.loads(path.read_text()).get("match", {}).get("hf", []):
            if name not in CONFIG_MAPPING: continue
            usual = plain(CONFIG_MAPPING[name]().to_dict())
            if "text_config" in usual: continue   # a wrapper: its text part is a type of its own
            widths = {k: usual[k] * 2 for k in WIDTHS if isinstance(usual.get(k), int)}
            if name == "falcon": widths = {"hidden_size": 256, "num_attention_heads": 8}   # 71 heads
            given = {**widths, **{k: 3 for k in DEPTHS if k in usual}}
            needed = {"num_experts_per_tok": 6} if name == "deepseek_v2" else {}   # the class has none, and fails without
            for keys in (needed, {**given, **needed}):
                found.append({"model_type": name, "given": sorted(keys), "config": plain(CONFIG_MAPPING[name](**keys).to_dict())})
    pathlib.Path(sys.argv[1]).write_text("[\n" + ",\n".join(" " + json.dumps(one) for one in found) + "\n]\n")


if __name__ == "__main__": main()
