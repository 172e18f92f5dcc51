#!/usr/bin/env python3
"""Writes tests/data/tokenizers: small byte-level BPE tokenizers, one corpus, and what the library makes of it.

  scripts/make_test_tokenizers.py [OUT]

Each NAME.json is a tokenizer.json of one configuration, trained on the corpus itself; corpus.jsonl has one
JSON string a line; NAME.expected.jsonl has one object a line: "ids" without the post-processor, "around"
(ids the post-processor adds, [before, after]; the first line only) and "decoded" where it is not the text.
Needs `pip install tokenizers`.
"""
import json
import subprocess
import sys
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

SOURCE = Path(__file__).resolve().parent
CASED = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SYMBOLS = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^" "\r\n" r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
           r"| ?[\p{P}\p{S}]+[" "\r\n" r"]*|\s*[" "\r\n" r"]+|\s+(?!\S)|\s+")
# Every combination of flags occurs, and contents that are prefixes of others.
ADDED = [
    AddedToken("<|bos|>", special=True), AddedToken("<|end|>", special=True), AddedToken("<|end|>x", special=True),
    AddedToken("<left>", special=True, lstrip=True), AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, normalized=True), AddedToken("word", single_word=True),
    AddedToken("\u03a9T\u03a9", single_word=True, normalized=True), AddedToken("   ", normalized=False),
    AddedToken("<think>", normalized=True), AddedToken("\u00e9\U0001F600", normalized=True),
]


def ranges(pattern, behaviour="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behaviour, invert)


def bytes_only(prefix=False):
    return pre_tokenizers.ByteLevel(prefix, use_regex=False)


CONFIGURATIONS = {
    "gpt2": dict(pre=[pre_tokenizers.ByteLevel(False)]),
    "smollm": dict(pre=[pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)], all_bytes=False),
    "llama3": dict(pre=[ranges(CASED % "{1,3}"), bytes_only()], ignore_merges=True, post="template", pairs=True),
    "qwen2": dict(pre=[ranges(CASED % "", "removed", True), bytes_only()], norm=[normalizers.NFC()]),
    "three_splits": dict(pre=[ranges(r"\p{N}{1,3}"), ranges("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                              ranges(SYMBOLS), bytes_only()]),
    "punctuation": dict(pre=[pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(False),
                             pre_tokenizers.Digits(False), ranges("[0-9][0-9][0-9]")]),
    "prefixed": dict(pre=[pre_tokenizers.ByteLevel(True)], post="roberta", unk="<unk>", all_bytes=False,
                     norm=[normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace("``", "\""),
                           normalizers.Strip(True, False)]),
    "behaviours": dict(pre=[pre_tokenizers.Split(" ", "merged_with_next"), ranges(r"[aeiou]\w", "merged_with_previous"),
                            ranges(r"[\w[.,]]+", "contiguous", True), ranges(r"\h+x", "removed"), bytes_only(True)]),
}


def train(texts, pre, norm=(), all_bytes=True, ignore_merges=False, post=None, pairs=False, unk=None):
    del pairs
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges, unk_token=unk, fuse_unk=unk is not None))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(pre)
    tokenizer.decoder = decoders.ByteLevel()
    if norm:
        tokenizer.normalizer = normalizers.Sequence(list(norm))
    alphabet = pre_tokenizers.ByteLevel.alphabet() if all_bytes else list("abcdefghijklmnopqrstuvwxyz\u0120")
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=alphabet, show_progress=False, min_frequency=2,
                                  limit_alphabet=256 if all_bytes else 120, special_tokens=[unk] if unk else [])
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(ADDED)
    bos, end = tokenizer.token_to_id("<|bos|>"), tokenizer.token_to_id("<|end|>")
    if post == "template":
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(False), processors.TemplateProcessing(
            single="<|bos|> $A", special_tokens=[("<|bos|>", bos)])])
    if post == "roberta":
        tokenizer.post_processor = processors.RobertaProcessing(("<|end|>", end), ("<|bos|>", bos))
    return tokenizer


def expectation(tokenizer, texts):
    for number, text in enumerate(texts):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        entry = {"ids": ids}
        if number == 0:
            around = tokenizer.encode("a").ids
            inner = tokenizer.encode("a", add_special_tokens=False).ids
            at = next(i for i in range(len(around)) if around[i:i + len(inner)] == inner)
            entry["around"] = [around[:at], around[at + len(inner):]]
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        if decoded != text:
            entry["decoded"] = decoded
        yield json.dumps(entry, separators=(",", ":"))


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE.parent / "tests/data/tokenizers"
    out.mkdir(parents=True, exist_ok=True)
    specials = out / "specials.tmp"
    specials.write_text(json.dumps([token.content for token in ADDED if token.content.strip()]))
    corpus = subprocess.run([sys.executable, SOURCE / "make_tokenizer_corpus.py", "--special", specials], check=True,
                            capture_output=True).stdout
    specials.unlink()
    (out / "corpus.jsonl").write_bytes(corpus)
    texts = [json.loads(line) for line in corpus.decode().splitlines()]
    for name, options in CONFIGURATIONS.items():
        tokenizer = train(texts, **options)
        document = json.loads(tokenizer.to_str())
        if not options.get("pairs"):  # the older spelling of merges
            document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
        (out / f"{name}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
        (out / f"{name}.expected.jsonl").write_text("\n".join(expectation(tokenizer, texts)) + "\n")


if __name__ == "__main__":
    main()
