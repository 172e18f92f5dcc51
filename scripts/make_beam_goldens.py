#!/usr/bin/env python3
"""Greedy and beam-search answers of the reference implementation for tiny checkpoints.

usage: make_beam_goldens.py FIXTURES OUT.json [NAME...]

FIXTURES: a directory of checkpoints with expected.safetensors. Each case is a checkpoint, what its
generation_config.json is changed to, and generate()'s sequences with scores in float32 (without the prompt and the
padding). End tokens are chosen so that some answers end early. Needs torch and transformers."""
import json
import pathlib
import sys

import torch
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

NAMES = "marian t5 flan-t5 bart mbart-pre llama2 gpt2".split()
SETTINGS = [
    {"num_beams": 1},
    {"num_beams": 1, "repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "min_new_tokens": 9},
    {"num_beams": 4},
    {"num_beams": 3, "length_penalty": 2.0, "early_stopping": True, "num_return_sequences": 3},
    {"num_beams": 5, "length_penalty": 0.4, "early_stopping": "never", "no_repeat_ngram_size": 3,
     "num_return_sequences": 2},
    {"num_beams": 2, "length_penalty": -1.0, "repetition_penalty": 1.3, "min_new_tokens": 5},
    {"num_beams": 6, "forced_bos_token_id": 7, "forced_eos_token_id": "eos", "begin_suppress_tokens": [9],
     "suppress_tokens": "common", "renormalize_logits": True},
    {"num_beams": 4, "max_length": 12, "min_length": 8, "bad_words_ids": "common", "num_return_sequences": 4},
]


def answers(model, inputs, options):
    result = model.generate(inputs, attention_mask=torch.ones_like(inputs), output_scores=True,
                            return_dict_in_generate=True, **options)
    skip = 1 if model.config.is_encoder_decoder else inputs.shape[1]
    sequences = [ids[skip:] for ids in result.sequences.tolist()]
    scores = result.sequences_scores.tolist() if options["num_beams"] > 1 else [None] * len(sequences)
    return sequences, scores


def cut(ids, ends):
    for i, token in enumerate(ids):
        if token in ends:
            return ids[:i]
    return ids


def cases_of(folder):
    seq2seq = AutoConfig.from_pretrained(folder).is_encoder_decoder
    model = (AutoModelForSeq2SeqLM if seq2seq else AutoModelForCausalLM).from_pretrained(folder, dtype=torch.float32)
    model.eval()
    expected = load_file(str(folder / "expected.safetensors"))
    source = expected["input_ids" if seq2seq else "greedy_prompt"].ravel()
    generation = model.generation_config
    ends = generation.eos_token_id if isinstance(generation.eos_token_id, list) else [generation.eos_token_id]
    ends = [end for end in ends if end is not None]
    for number, settings in enumerate(SETTINGS):
        prompt = source[: (80 if number % 2 == 0 else 11)].tolist()
        inputs = torch.tensor([prompt])
        plain = {"max_new_tokens": 20, "do_sample": False}
        free, _ = answers(model, inputs, {**plain, "num_beams": 4, "num_return_sequences": 4, "eos_token_id": ends})
        common = max(set(free[0]), key=free[0].count)
        extra = [t for t in free[1][4:9] if t != common] or [free[1][6]]
        all_ends = ends + [extra[0]] if number >= 3 and extra[0] not in ends else ends
        options = {"num_return_sequences": 1, **settings}
        if options.get("forced_eos_token_id") == "eos":
            options["forced_eos_token_id"] = all_ends[0]
        if options.get("suppress_tokens") == "common":
            options["suppress_tokens"] = [common]
        if options.get("bad_words_ids") == "common":
            options["bad_words_ids"] = [[common], [5, 6, 7]]
        if "max_length" in options and not seq2seq:
            options["max_length"] += len(prompt)
            options["min_length"] += len(prompt)
        options["eos_token_id"] = all_ends
        if "max_length" not in options:
            options["max_new_tokens"] = 20
        sequences, scores = answers(model, inputs, {**options, "do_sample": False})
        yield {"fixture": folder.name, "prompt": prompt, "options": options,
               "ids": [cut(ids, all_ends) for ids in sequences],
               "scores": [None if s is None else round(s, 6) for s in scores]}


def main():
    root, out, names = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:] or NAMES
    cases = [case for name in names for case in cases_of(root / name)]
    with open(out, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases of {len(names)} checkpoints in {out}")


main()
