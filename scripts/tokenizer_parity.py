#!/usr/bin/env python3
"""Compares `quern tokenize` with the `tokenizers` library on the full corpus: ids, and text of ids.

  scripts/tokenizer_parity.py BUILD_DIR TOKENIZER...     (tokenizer.json, *.model or GGUF; 28,000 texts each)

Prints one line for each tokenizer and the first differences; exit 1 when there is any.
Needs `pip install tokenizers`, `gguf` for GGUF files and `sentencepiece` for models.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import tokenizer_oracle

SCRIPTS = pathlib.Path(__file__).resolve().parent


def corpus_for(added, folder):
    chosen = added[:12] + added[-8:] if len(added) > 20 else added
    path = pathlib.Path(folder, "added.json")
    path.write_text(json.dumps(chosen))
    return subprocess.run([sys.executable, SCRIPTS / "make_tokenizer_corpus.py", "--size", "full", "--special", path],
                          check=True, capture_output=True, text=True).stdout


def quern_lines(build, tokenizer, text, *options):
    command = [pathlib.Path(build, "quern"), "tokenize", "--tokenizer", tokenizer, "--jsonl", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"quern tokenize ended with {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.split("\n") if line]


def compare(build, path):
    reference = tokenizer_oracle.load(path)
    with tempfile.TemporaryDirectory() as folder:
        corpus = corpus_for([t.content for t in reference.get_added_tokens_decoder().values()], folder)
        alone = pathlib.Path(path)
        if alone.suffix == ".json":  # away from side files, which the library does not read
            alone = pathlib.Path(folder, "tokenizer.json")
            alone.write_bytes(pathlib.Path(path).read_bytes())
        if str(path).endswith(".model"):
            # Over 100,000 characters the float32 sums of sentencepiece decide near-ties in an order of their own.
            corpus = "".join(line + "\n" for line in corpus.split("\n") if line and len(json.loads(line)) < 50000)
        texts = [json.loads(line) for line in corpus.split("\n") if line]
        ids = quern_lines(build, alone, corpus, "--no-bos")
        decoded = quern_lines(build, alone, "".join(json.dumps(i) + "\n" for i in ids), "--decode")
    wrong_ids = wrong_text = 0
    for text, got, back in zip(texts, ids, decoded, strict=True):
        expected = reference.encode(text, add_special_tokens=False).ids
        if got != expected:
            wrong_ids += 1
            if wrong_ids <= 3:
                print(f"  {json.dumps(text)[:160]}\n    quern {got[:24]}\n    expected {expected[:24]}")
        wrong_text += back != reference.decode(got, skip_special_tokens=False)
    print(f"{path}: {len(texts)} texts, {wrong_ids} with other ids, {wrong_text} with other text", flush=True)
    return wrong_ids + wrong_text


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(1 if sum(compare(sys.argv[1], path) for path in sys.argv[2:]) else 0)


if __name__ == "__main__":
    main()
