#!/usr/bin/env python3
"""Tiny random encoders, decoders and encoder-decoders with heads and a tokenizer, and what the reference
implementation says of texts.

usage: make_encoder_goldens.py OUT [NAME...]      writes OUT/NAME/{config.json, model.safetensors, tokenizer.json, ...} and
OUT/NAME/expected.json: ids, token types and probabilities (of every label, or the best fillings of each mask).

Needs torch and transformers; tests/tools/encoders.py holds quern to the result."""
import json
import pathlib
import sys

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (BartConfig, BartForQuestionAnswering, BartForSequenceClassification, BertConfig, BertForMaskedLM, BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification,
                          BertModel, GPT2Config, GPT2ForQuestionAnswering, LlamaConfig, LlamaForQuestionAnswering, LlamaForSequenceClassification,
                          T5Config, T5ForQuestionAnswering, T5ForSequenceClassification, T5ForTokenClassification, PreTrainedTokenizerFast, RobertaConfig, RobertaForSequenceClassification)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ("the a cat dog man woman sleeps runs eats on in under mat house park is was not fine bad film paris capital "
         "of france red blue green walk ##s ##ed ##ing un ##happy very slow ##ly fast , . ! ?").split()
LETTERS = [c for c in "abcdefghijklmnopqrstuvwxyz"] + ["##" + c for c in "abcdefghijklmnopqrstuvwxyz"]
VOCABULARY = {w: i for i, w in enumerate(dict.fromkeys(SPECIAL + WORDS + LETTERS))}
TEXTS = ["The cat sleeps on the mat.", "a fine film!", "The dog was unhappy, very slowly walking in the park.",
         "Paris is the capital of France.", "A red house under a blue ... zzz qqq 7", "man"]
PAIRS = [["A man sleeps.", "A man is not fast."], ["The dog runs in the park", "a dog eats"]]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
         "max_position_embeddings": 64, "vocab_size": len(VOCABULARY)}


def tokenizer():
    t = Tokenizer(models.WordPiece(VOCABULARY, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", VOCABULARY["[CLS]"]), ("[SEP]", VOCABULARY["[SEP]"])])
    t.decoder = decoders.WordPiece()
    t.add_special_tokens(SPECIAL)
    return PreTrainedTokenizerFast(tokenizer_object=t, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
                                   sep_token="[SEP]", mask_token="[MASK]",
                                   model_input_names=["input_ids", "token_type_ids", "attention_mask"])


def shaken(model):
    """Away from the initial values that hide mistakes: norms not one, biases not zero."""
    torch.manual_seed(3)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn_like(p) * (0.25 if p.dim() > 1 else 0.2) + (1 if "norm.weight" in name.lower() else 0))
            p.copy_(p.half().float())
    return model.eval()


def save(model, out, tok):
    model.half().save_pretrained(out)
    tok.save_pretrained(out)
    model.float()


def encoded(tok, texts):
    return [tok(*t) if isinstance(t, list) else tok(t) for t in texts]


def logits_of(model, item, types):
    inputs = {"input_ids": torch.tensor([item["input_ids"]])}
    if types:
        inputs["token_type_ids"] = torch.tensor([item["token_type_ids"]])
    with torch.no_grad():
        return model(**inputs)


def classified(model, tok, texts, types, activation):
    cases = []
    for text, item in zip(texts, encoded(tok, texts)):
        logits = logits_of(model, item, types).logits[0]
        p = torch.sigmoid(logits) if activation == "sigmoid" else torch.softmax(logits, -1) if activation == "softmax" else logits
        cases.append({"text": text, "ids": item["input_ids"], "probabilities": p.tolist()})
    return cases


def padded(model, tok, texts):
    """Ids with padding behind them, in front, and alone: the reference reads the last token that is none."""
    cases = []
    for text, item in zip(texts, encoded(tok, texts)):
        for ids in (item["input_ids"] + [0, 0, 0], [0, 0] + item["input_ids"] + [0], [0, 0, 0], item["input_ids"][:3] + [0] + item["input_ids"][3:]):
            p = torch.softmax(logits_of(model, {"input_ids": ids}, False).logits[0], -1)
            cases.append({"text": None, "ids": ids, "probabilities": p.tolist()})
    return cases


QUESTIONS = [["Who sleeps on the mat?", "The cat sleeps on the mat, the dog runs in the park."],
             ["What is red?", "A man was in a blue house. The red house was green!"], ["who", "man"]]


def answered(model, tok, types, longest=15, best=3):
    """The best spans of the second text: begins and ends are softmaxed over it and the first token."""
    cases = []
    for pair, item in zip(QUESTIONS, encoded(tok, QUESTIONS)):
        found = logits_of(model, item, types)
        context = torch.tensor([part == 1 for part in tok(*pair).sequence_ids()])
        counts = context.clone()
        counts[0] = True
        begin, end = (torch.softmax(l[0].masked_fill(~counts, float("-inf")), -1) * context for l in (found.start_logits, found.end_logits))
        scores = torch.triu(begin[:, None] * end[None, :])
        scores -= torch.triu(scores, longest)
        values, places = scores.flatten().topk(best)
        n = len(context)
        cases.append({"text": pair, "ids": item["input_ids"],
                      "answers": [[int(i) // n, int(i) % n, float(p)] for p, i in zip(values, places) if p > 0]})
    return cases


def filled(model, tok):
    cases = []
    for text in ["The [MASK] sleeps on the [MASK].", "Paris is the [MASK] of France", "[MASK]"]:
        item = tok(text)
        p = torch.softmax(logits_of(model, item, True).logits[0], -1)
        masks = [i for i, t in enumerate(item["input_ids"]) if t == tok.mask_token_id]
        best = [[(int(i), float(p[m, i])) for i in p[m].topk(5).indices] for m in masks]
        cases.append({"text": text, "ids": item["input_ids"], "masks": masks, "best": best})
    return cases


def embedded(model, tok):
    cases = []
    for text, item in zip(TEXTS, encoded(tok, TEXTS)):
        hidden = logits_of(model, item, True).last_hidden_state[0]
        cases.append({"text": text, "ids": item["input_ids"], "first": hidden[0].tolist(), "last": hidden[-1].tolist(),
                      "mean": hidden.mean(0).tolist()})
    return cases


def main():
    root, tok = pathlib.Path(sys.argv[1]), tokenizer()
    chosen = sys.argv[2:]
    ends = {"pad_token_id": 0, "bos_token_id": VOCABULARY["[CLS]"], "eos_token_id": VOCABULARY["[SEP]"]}
    llama = lambda **more: LlamaConfig(**SIZES, **ends, num_key_value_heads=2, **more)
    t5 = lambda **more: T5Config(vocab_size=len(VOCABULARY), d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0, **ends, **more)
    bart = lambda **more: BartConfig(vocab_size=len(VOCABULARY), d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                     encoder_ffn_dim=48, decoder_ffn_dim=40, max_position_embeddings=64, decoder_start_token_id=ends["eos_token_id"], **ends, **more)
    labels = lambda names: {"id2label": dict(enumerate(names)), "label2id": {n: i for i, n in enumerate(names)}}
    bert = lambda **more: BertConfig(**SIZES, **more)
    checkpoints = {
        "sequence": BertForSequenceClassification(bert(**labels(["good", "bad", "neither"]))),
        "regression": BertForSequenceClassification(bert(**labels(["score"]))),
        "tokens": BertForTokenClassification(bert(**labels(["O", "B-X", "I-X", "B-Y"]))),
        "fill": BertForMaskedLM(bert()),
        "embed": BertModel(bert(), add_pooling_layer=False),
        "multi-label": BertForSequenceClassification(bert(problem_type="multi_label_classification", **labels(["a", "b", "c"]))),
        "values": BertForSequenceClassification(bert(problem_type="regression", **labels(["length", "mood"]))),
        "answers": BertForQuestionAnswering(bert()),
        "no-types": RobertaForSequenceClassification(RobertaConfig(**SIZES, type_vocab_size=1, pad_token_id=0,
                                                                   **labels(["yes", "no"]))),
        "decoder-texts": LlamaForSequenceClassification(llama(**labels(["good", "bad", "neither"]))),
        "decoder-answers": LlamaForQuestionAnswering(llama()),
        "decoder-answers-gpt2": GPT2ForQuestionAnswering(GPT2Config(vocab_size=len(VOCABULARY), n_embd=32, n_layer=2, n_head=4, n_positions=64, **ends)),
        "t5-texts": T5ForSequenceClassification(t5(**labels(["good", "bad", "neither"]))),
        "t5-tokens": T5ForTokenClassification(t5(**labels(["O", "B-X", "I-X"]))),
        "t5-answers": T5ForQuestionAnswering(t5()),
        "bart-texts": BartForSequenceClassification(bart(**labels(["yes", "no", "perhaps"]))),
        "bart-answers": BartForQuestionAnswering(bart()),
    }
    for name, model in checkpoints.items():
        if chosen and name not in chosen: continue
        types = not name.startswith(("no-types", "decoder-", "t5-", "bart-"))
        out = root / name
        save(shaken(model), out, tok)
        if name == "fill":
            cases = filled(model, tok)
        elif name == "embed":
            cases = embedded(model, tok)
        elif "answers" in name:
            cases = answered(model, tok, types)
        else:
            texts = TEXTS + (PAIRS if name in ("sequence", "regression", "bart-texts") else [])
            cases = classified(model, tok, texts, types, {"regression": "sigmoid", "multi-label": "sigmoid", "values": "none"}.get(name, "softmax"))
        if name == "decoder-texts": cases += padded(model, tok, TEXTS[:2])
        (out / "expected.json").write_text(json.dumps(cases) + "\n")
        print(name, sum(p.numel() for p in model.parameters()), "parameters,", len(cases), "cases")


main()
