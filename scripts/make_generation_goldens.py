#!/usr/bin/env python3
"""Reference answers for the rules about tokens and for beam search, from the `transformers` library.

usage: make_generation_goldens.py rules OUT.json    random logits through every LogitsProcessor
       make_generation_goldens.py search OUT.json   generate() of a table in place of a model, random settings

Needs torch and transformers. The tests hold quern to the stored files (tests/data/generation)."""
import json
import random
import sys

import torch
from transformers import GenerationConfig, GenerationMixin, LogitsProcessorList, PretrainedConfig, PreTrainedModel
from transformers.generation import logits_process as processors
from transformers.modeling_outputs import CausalLMOutput

VOCAB = 23


def table(seed, a, b):
    """The logits after the tokens a, b: exact in float32, too fine for ties."""
    row = []
    for c in range(VOCAB):
        x = (a * 7919 + b * 104729 + c * 1299709 + seed * 15485863) & 0xFFFFFFFF
        for _ in range(3):
            x ^= x >> 16
            x = x * 0x45D9F3B & 0xFFFFFFFF
        row.append((x >> 10) % (6 << 19) / 2**19)
    return row


class TableConfig(PretrainedConfig):
    model_type = "table"

    def __init__(self, table_seed=0, **rest):
        self.table_seed = table_seed
        self.vocab_size = VOCAB
        super().__init__(**rest)


class TableModel(PreTrainedModel, GenerationMixin):
    config_class = TableConfig

    def __init__(self, config):
        super().__init__(config)
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, attention_mask=None, **_):
        rows = [table(self.config.table_seed, *([0] + ids.tolist())[-2:]) for ids in input_ids]
        return CausalLMOutput(logits=torch.tensor(rows)[:, None, :])


def random_rules(rng, prompt_length, max_length):
    """Settings of GenerationConfig about tokens, each present in some cases."""
    ids = lambda n: sorted(rng.sample(range(VOCAB), n))
    rules = {}
    choices = {
        "repetition_penalty": lambda: rng.choice([0.5, 1.25, 2.0]),
        "no_repeat_ngram_size": lambda: rng.randint(1, 3),
        "bad_words_ids": lambda: [ids(rng.randint(1, 3)) for _ in range(rng.randint(1, 4))] + [[2]],
        "min_length": lambda: rng.randint(1, max_length),
        "min_new_tokens": lambda: rng.randint(1, max(1, max_length - prompt_length)),
        "forced_bos_token_id": lambda: rng.randrange(VOCAB),
        "forced_eos_token_id": lambda: 2,
        "suppress_tokens": lambda: ids(rng.randint(1, 5)),
        "begin_suppress_tokens": lambda: ids(rng.randint(1, 5)),
        "renormalize_logits": lambda: True,
    }
    for key, make in choices.items():
        if rng.random() < 0.3:
            rules[key] = make()
    forced = {rules.get("forced_bos_token_id"), rules.get("forced_eos_token_id")}  # suppressing them too is an error
    for key in ("suppress_tokens", "begin_suppress_tokens"):
        if forced & set(rules.get(key, [])):
            del rules[key]
    return rules


def numbers(values):
    return [None if v == float("-inf") else round(v, 6) for v in values]


def make_rules(rng):
    cases = []
    for number in range(120):
        prompt = rng.randint(1, 4)
        length = prompt + rng.randint(0, 6)
        top = max(length + rng.randint(1, 2), prompt + 1)
        eos = rng.choice([[2], [2, 5]])
        config = GenerationConfig(max_length=top, eos_token_id=eos, **random_rules(rng, prompt, top))
        model = TableModel(TableConfig())
        model._prepare_special_tokens(config, False, device="cpu")
        chain = model._get_logits_processor(config, input_ids_seq_length=prompt, device="cpu")
        assert isinstance(chain, LogitsProcessorList) and processors
        sequence = [rng.randrange(7) for _ in range(length)]
        logits = [v - 3 for v in table(number, *([0] + sequence)[-2:])]
        got = chain(torch.tensor([sequence]), torch.tensor([logits]))[0].tolist()
        cases.append({"options": settings(config), "prompt_length": prompt, "sequence": sequence,
                      "logits": logits, "expected": numbers(got)})
    return {"vocab_size": VOCAB, "cases": cases}


def settings(config):
    keys = ("max_length eos_token_id repetition_penalty no_repeat_ngram_size bad_words_ids min_length min_new_tokens "
            "forced_bos_token_id forced_eos_token_id suppress_tokens begin_suppress_tokens renormalize_logits").split()
    return {key: getattr(config, key) for key in keys if getattr(config, key, None) is not None}


def make_search(rng):
    cases = []
    for number in range(300):
        prompt = [rng.randrange(VOCAB) for _ in range(rng.randint(1, 3))]
        top = len(prompt) + rng.randint(1, 12)
        beams = rng.randint(2, 6)
        options = {"num_beams": beams, "num_return_sequences": rng.randint(1, beams),
                   "length_penalty": rng.choice([1.0, 1.0, 0.0, 2.0, -1.0, 0.6]),
                   "early_stopping": rng.choice([False, True, "never"])}
        rules = random_rules(rng, len(prompt), top) if rng.random() < 0.5 else {}
        eos = rng.choice([[2], [2, 5], [1, 2, 5, 8]])
        model = TableModel(TableConfig(table_seed=number))
        result = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                                max_length=top, eos_token_id=eos, pad_token_id=0, use_cache=False, output_scores=True,
                                return_dict_in_generate=True, **options, **rules)
        scores = result.sequences_scores.tolist()
        sequences = [cut(ids[len(prompt):], eos) for ids in result.sequences.tolist()]
        if len(set(round(s, 5) for s in scores)) < len(scores) or min(scores) < -1e6:
            continue  # ties and unfilled places, whose order torch leaves open
        cases.append({"seed": number, "prompt": prompt, "options": {**options, "max_length": top, "eos_token_id": eos},
                      "rules": rules, "ids": sequences, "scores": [round(s, 6) for s in scores]})
    return {"vocab_size": VOCAB, "cases": cases}


def cut(ids, eos):
    """Up to the first end token, which stays; padding follows it."""
    for i, token in enumerate(ids):
        if token in eos:
            return ids[:i + 1]
    return ids


def main():
    kind, out = sys.argv[1], sys.argv[2]
    result = {"rules": make_rules, "search": make_search}[kind](random.Random(7))
    with open(out, "w") as file:
        file.write('{"vocab_size": %d, "cases": [\n' % result["vocab_size"])
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in result["cases"]))
        file.write("\n]}\n")
    print(f"{len(result['cases'])} cases in {out}")


main()
