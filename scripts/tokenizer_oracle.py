#!/usr/bin/env python3
"""What the `tokenizers` library makes of a corpus: the expectation of the tokenizer tests.

  scripts/tokenizer_oracle.py TOKENIZER CORPUS.jsonl > expected.jsonl
  scripts/tokenizer_oracle.py TOKENIZER --added > tokens.json

TOKENIZER: a tokenizer.json, a sentencepiece model (*.model), or a GGUF whose tokenizer.ggml.model is gpt2 and
whose pre-tokenizer is one of those below; its vocabulary and merges then make a tokenizer of the library. Each
output line is {"text", "ids", "ids_special", "decoded"}: ids without and with the post-processor, and the text
of ids.

Needs `pip install tokenizers`, `gguf` for GGUF files and `sentencepiece` for models.
"""
import argparse
import json
import sys
import types

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

CASED = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(pattern):
    return [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]


PRE = {
    "gpt-2": [pre_tokenizers.ByteLevel(False)],
    "smollm": [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)],
    "llama-bpe": split(CASED % "{1,3}"),
    "qwen2": split(CASED % ""),
}


def from_gguf(path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    get = lambda key: fields["tokenizer.ggml." + key].contents()
    tokens, types, merges, pre = get("tokens"), get("token_type"), get("merges"), get("pre")
    vocab = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(m.split(" ")) for m in merges], ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(PRE[pre])
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    for token, kind in zip(tokens, types):
        if kind in (3, 4):
            tokenizer.add_tokens([AddedToken(token, special=kind == 3, normalized=False)])
    return tokenizer


class Sentencepiece:
    """A sentencepiece model with the methods that are used of a tokenizer of the library."""

    def __init__(self, path):
        import sentencepiece
        self.processor = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def encode(self, text, add_special_tokens=True):
        del add_special_tokens
        return types.SimpleNamespace(ids=self.processor.encode(text))

    def decode(self, ids, skip_special_tokens=False):
        del skip_special_tokens
        return self.processor.decode(ids)

    def get_added_tokens_decoder(self):
        return {}


def load(path):
    """A tokenizer of the library from a tokenizer.json, a sentencepiece model or a GGUF."""
    if str(path).endswith(".model"):
        return Sentencepiece(path)
    with open(path, "rb") as file:
        is_gguf = file.read(4) == b"GGUF"
    tokenizer = from_gguf(path) if is_gguf else Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer")
    parser.add_argument("corpus", nargs="?")
    parser.add_argument("--added", action="store_true", help="print the added tokens instead")
    options = parser.parse_args()
    tokenizer = load(options.tokenizer)
    if options.added:
        json.dump([token.content for token in tokenizer.get_added_tokens_decoder().values()], sys.stdout)
        return
    for line in open(options.corpus, encoding="utf-8"):
        text = json.loads(line)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        entry = {"text": text, "ids": ids, "ids_special": tokenizer.encode(text).ids,
                 "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
        sys.stdout.write(json.dumps(entry, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
