#!/usr/bin/env python3
"""Writes the small tokenizers of every family's kind into tests/data/tokenizers, with what the libraries make of them.

  scripts/make_family_tokenizers.py [OUT]

Reads OUT/corpus.jsonl (make_test_tokenizers.py) and trains on it. NAME.json with NAME.expected.jsonl as in
make_test_tokenizers.py, and in the first line "pair": ids and token types of ["a b", "c"]; NAME.model with
NAME.expected.jsonl by sentencepiece; marian/ is a directory of source.spm, target.spm and vocab.json.
Needs `pip install tokenizers sentencepiece`.
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_test_tokenizers import ADDED, SOURCE, bytes_only, ranges

MARK = "\u2581"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
BLOOM = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"
DEEPSEEK_LLM = ["[\r\n]", "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u0386-\u052f\u10a0-\u10fa]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$",
                "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
# Keys of several characters, keys that are prefixes of others, and removals.
RULES = {"\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ", "\r": " ", "\u200b": "", "\u00ad": "", "\ufb01": "fi",
         "\u212b": "\u00c5", "A\u030a": "\u00c5", "e\u0301": "\u00e9", "a\u0301": "\u00e1", "\uff21": "A", "\uff22": "B",
         "\uff76\uff9e": "\u30ac", "\uff76": "\u30ab", "\u2026": "...", "\u00bd": "1/2", "\u2460": "1", "\ufeff": "",
         "\u1100\u1161": "\uac00", "\u1100\u1161\u11a8": "\uac01", "\u201c": "\""}


def sp_train(texts, folder, prefix, **options):
    rules = Path(folder, "rules.tsv")
    code = lambda text: " ".join(f"{ord(c):X}" for c in text)
    rules.write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in sorted(RULES.items())))
    if options.pop("rules", False):
        options["normalization_rule_tsv"] = str(rules)
    sentences = [line for text in texts for line in text.split("\n") if line.strip() and "\0" not in line]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_prefix=f"{folder}/{prefix}",
                                             vocab_size=options.pop("vocab_size", 600), minloglevel=2,
                                             hard_vocab_limit=False, num_threads=1, **options)
    return Path(folder, f"{prefix}.model")


def fields(message):
    """(number, value) of a protobuf message's length-delimited fields."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            if key & 7 == 2:
                yield key >> 3, message[at:at + size]
            at += size


def charsmap(folder, texts):
    normalizer = dict(fields(sp_train(texts, folder, "map", rules=True).read_bytes()))[3]
    return dict(fields(normalizer))[2]


def template(single, pair, names):
    return lambda t: processors.TemplateProcessing(single=single, pair=pair,
                                                   special_tokens=[(n, t.token_to_id(n)) for n in names])


CLS = template("<|bos|> $A <|end|>", "<|bos|> $A <|end|> $B:1 <|end|>:1", ["<|bos|>", "<|end|>"])
EOS = template("$A <|end|>", "$A <|end|> $B <|end|>", ["<|end|>"])
BOS = template("<|bos|> $A", "<|bos|> $A <|bos|>:1 $B:1", ["<|bos|>"])
PIECES = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def configurations(precompiled):
    """name -> model, trainer options, normalizers, pre-tokenizers, decoder, post-processor."""
    split = pre_tokenizers.Split
    pieces = lambda fallback=True: models.BPE(byte_fallback=fallback, fuse_unk=True, unk_token="<unk>")
    whole = pre_tokenizers.Metaspace(MARK, "first", False)
    bert = lambda lower: dict(model=models.WordPiece(unk_token="<unk>", max_input_chars_per_word=20),
                              norm=[normalizers.BertNormalizer(True, True, None, lower)],
                              pre=[pre_tokenizers.BertPreTokenizer()], decoder=decoders.WordPiece("##", lower), post=CLS)
    unigram = lambda **more: dict(dict(model=models.Unigram(), pre=[pre_tokenizers.Metaspace(MARK, "always")],
                                       decoder=decoders.Metaspace(MARK, "always")), **more)
    byte_level = lambda *pre, **more: dict(dict(model=models.BPE(), pre=[*pre, bytes_only()],
                                                decoder=decoders.ByteLevel()), **more)
    return {
        "t5": unigram(norm=[precompiled, normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), MARK)], post=EOS),
        "t5_words": unigram(norm=[precompiled], post=EOS, pre=[pre_tokenizers.WhitespaceSplit(),
                                                              pre_tokenizers.Metaspace(MARK, "always")]),
        "albert": unigram(norm=[normalizers.Replace("``", "\""), normalizers.Replace("''", "\""), normalizers.NFKD(),
                                normalizers.StripAccents(), normalizers.Lowercase(), precompiled,
                                normalizers.Replace(Regex(" {2,}"), " ")], post=CLS,
                          pre=[pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(MARK, "first")]),
        "bert_uncased": bert(True), "bert_cased": bert(False),
        "llama2": dict(model=pieces(), norm=[normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)], pre=[],
                       decoder=decoders.Sequence(PIECES + [decoders.Strip(" ", 1, 0)]), post=BOS),
        "llama2_first": dict(model=pieces(), pre=[whole], post=BOS,
                             decoder=decoders.Sequence(PIECES + [decoders.Strip(" ", 1, 0)])),
        "gemma": dict(model=pieces(), norm=[normalizers.Replace(" ", MARK)], pre=[split(" ", "merged_with_previous")],
                      decoder=decoders.Sequence(PIECES), post=BOS),
        "bloom": byte_level(ranges(BLOOM)), "o200k": byte_level(ranges(O200K), model=models.BPE(ignore_merges=True)),
        "tekken": byte_level(ranges(TEKKEN)),
        "deepseek_llm": byte_level(*[ranges(r) for r in DEEPSEEK_LLM], pre_tokenizers.Digits(True)),
        "word_level": dict(model=models.WordLevel(unk_token="<unk>"), norm=[normalizers.Nmt(), normalizers.NFKC()],
                           pre=[pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous")],
                           decoder=None, post=EOS),
        "word_ends": dict(model=models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), decoder=decoders.BPEDecoder("</w>"),
                          norm=[normalizers.NFD(), normalizers.Lowercase()], trainer=dict(end_of_word_suffix="</w>"),
                          pre=[pre_tokenizers.UnicodeScripts(), pre_tokenizers.WhitespaceSplit()]),
        "subwords": dict(model=models.BPE(unk_token="<unk>", continuing_subword_prefix="##"),
                         trainer=dict(continuing_subword_prefix="##"), decoder=decoders.WordPiece("##", True),
                         pre=[pre_tokenizers.CharDelimiterSplit(" "), pre_tokenizers.FixedLength(7)]),
        "clip": dict(model=models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), trainer=dict(end_of_word_suffix="</w>"),
                     norm=[normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()],
                     pre=[split(Regex(r"'s|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", True), bytes_only()],
                     decoder=decoders.ByteLevel(), post=lambda t: processors.RobertaProcessing(
                         ("<|end|>", t.token_to_id("<|end|>")), ("<|bos|>", t.token_to_id("<|bos|>")))),
        "byte_normalizer": dict(model=models.BPE(), norm=[normalizers.ByteLevel()], pre=[], decoder=decoders.ByteLevel()),
        "unigram_bytes": unigram(model=models.Unigram(), fallback=True, pre=[pre_tokenizers.Metaspace(MARK, "never")],
                                 decoder=decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(MARK, "never")])),
    }


def trainer_for(model, options):
    # The alphabet is kept small, so that much of the corpus is unknown to the models.
    common = dict(show_progress=False, special_tokens=["<unk>"])
    if isinstance(model, models.Unigram):
        return trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", max_piece_length=12, **common)
    if isinstance(model, models.WordLevel):
        return trainers.WordLevelTrainer(vocab_size=300, **common)
    if isinstance(model, models.WordPiece):
        return trainers.WordPieceTrainer(vocab_size=500, limit_alphabet=120, **common)
    return trainers.BpeTrainer(vocab_size=600, limit_alphabet=options.pop("limit", 150), **common, **options)


def build(texts, name, model, pre, decoder, norm=(), post=None, trainer=None, fallback=False):
    tokenizer = Tokenizer(model)
    if norm:
        tokenizer.normalizer = normalizers.Sequence(list(norm))
    # Words are cut while training even where the finished tokenizer does not cut.
    training_pre = pre if name not in ("llama2", "llama2_first", "gemma", "byte_normalizer") else [
        pre_tokenizers.Metaspace(MARK, "never")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(training_pre)
    if isinstance(model, models.Unigram):  # it takes every character of its texts into the vocabulary
        texts = [text for text in texts if all(c < "\u0300" for c in text)]
    tokenizer.train_from_iterator(texts, trainer_for(model, dict(trainer or {})))
    if pre or training_pre is pre:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(pre) if len(pre) != 1 else pre[0]
    document = json.loads(tokenizer.to_str())
    if not pre:
        document["pre_tokenizer"] = None
    if isinstance(model, models.BPE) and document["model"].get("byte_fallback"):
        vocab = document["model"]["vocab"]
        for byte in BYTES:
            vocab[byte] = len(vocab)
    if fallback:
        document["model"]["byte_fallback"] = True
        document["model"]["vocab"] += [[byte, -20.0 - i / 7] for i, byte in enumerate(BYTES)]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    if decoder is not None:
        tokenizer.decoder = decoder
    tokenizer.add_tokens(ADDED)
    if post is not None:
        tokenizer.post_processor = post(tokenizer)
    return tokenizer


def expectation(tokenizer, texts):
    for number, text in enumerate(texts):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        entry = {"ids": ids}
        if number == 0:
            both = tokenizer.encode("a b", "c")
            one = tokenizer.encode("a b")
            entry["single"] = {"ids": one.ids, "types": one.type_ids}
            entry["pair"] = {"ids": both.ids, "types": both.type_ids}
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        if decoded != text:
            entry["decoded"] = decoded
        yield json.dumps(entry, separators=(",", ":"))


def write_sp(model, out, texts):
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    lines = []
    for text in texts:
        ids = processor.encode(text)
        entry = {"ids": ids}
        if processor.decode(ids) != text:
            entry["decoded"] = processor.decode(ids)
        lines.append(json.dumps(entry, separators=(",", ":")))
    shutil.copy(model, out / model.name)
    (out / f"{model.stem}.expected.jsonl").write_text("\n".join(lines) + "\n")


def write_marian(source, target, out, texts):
    """Ids of the pieces by a common vocabulary in which a few pieces are missing, and the end token."""
    folder = out / "marian"
    folder.mkdir(exist_ok=True)
    shutil.copy(source, folder / "source.spm")
    shutil.copy(target, folder / "target.spm")
    encoder, decoder = (sentencepiece.SentencePieceProcessor(model_file=str(p)) for p in (source, target))
    pieces = {p.id_to_piece(i) for p in (encoder, decoder) for i in range(3, p.get_piece_size()) if i % 17}
    vocab = {p: i for i, p in enumerate(["</s>", "<unk>", *sorted(pieces), "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocab) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}))
    by_id = {i: p for p, i in vocab.items()}
    lines = []
    for text in texts:
        ids = [vocab.get(p, vocab["<unk>"]) for p in encoder.encode(text, out_type=str)]
        entry = {"ids": ids}
        known = [by_id[i] for i in ids if i != vocab["<unk>"]]
        entry["known"] = decoder.decode_pieces(known).replace(MARK, " ").strip(" ")
        lines.append(json.dumps(entry, separators=(",", ":")))
    (out / "marian.expected.jsonl").write_text("\n".join(lines) + "\n")


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE.parent / "tests/data/tokenizers"
    texts = [json.loads(line) for line in (out / "corpus.jsonl").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        mapping = charsmap(folder, texts)
        for name, options in configurations(normalizers.Precompiled(mapping)).items():
            tokenizer = build(texts, name, **options)
            (out / f"{name}.json").write_text(json.dumps(json.loads(tokenizer.to_str()), separators=(",", ":")) + "\n")
            (out / f"{name}.expected.jsonl").write_text("\n".join(expectation(tokenizer, texts)) + "\n")
        write_sp(sp_train(texts, folder, "sp_unigram", rules=True, user_defined_symbols=["<think>", "ab", "x y"]), out, texts)
        write_sp(sp_train(texts, folder, "sp_bytes", model_type="unigram", byte_fallback=True, vocab_size=800,
                          normalization_rule_name="identity", remove_extra_whitespaces=False,
                          character_coverage=0.98), out, texts)
        write_sp(sp_train(texts, folder, "sp_bpe", model_type="bpe", byte_fallback=True, vocab_size=900,
                          normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98,
                          user_defined_symbols=["<think>", "   ", "word"]), out, texts)
        write_sp(sp_train(texts, folder, "sp_bpe_map", model_type="bpe", rules=True, add_dummy_prefix=False,
                          character_coverage=0.98), out, texts)
        write_marian(sp_train(texts[: len(texts) // 2], folder, "source", rules=True, vocab_size=700),
                     sp_train(texts[len(texts) // 2:], folder, "target", rules=True, vocab_size=700), out, texts)


if __name__ == "__main__":
    main()
