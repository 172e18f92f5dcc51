"""Lengths and windows at their ends: `quern logits` beyond the length that a model was trained on, `quern verify` where
a window is one key wide."""
import json
import pathlib
import shutil
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, run

FIXTURES = SOURCE / "tests/data/fixtures"
TRAINED, LONGER = 40, 64


def converted(folder, name, *options, **changes):
    source = folder / f"{name}-{len(list(folder.iterdir()))}"
    shutil.copytree(FIXTURES / name, source, ignore=shutil.ignore_patterns("expected.*", "recipe.json"))
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, **changes}))
    model = folder / f"{source.name}-model"
    run(CONVERT, source, model, "--type", "f32", "-q", *options)
    return model


def logits(model, n, *options, expect=0):
    ids, out = model.parent / "ids", model.parent / "o.npy"
    ids.write_text(" ".join(str(3 + i % 50) for i in range(n)))
    result = run(QUERN, "logits", "-m", model, "--ids-file", ids, "-o", out, *options, expect=expect)
    return result, out.read_bytes() if expect == 0 else b""


def check_longer_than_trained(folder):
    """Rotary positions go on, with a note; -c is a limit; a table of positions ends."""
    whole, short = converted(folder, "llama2"), converted(folder, "llama2", max_position_embeddings=TRAINED)
    result, rows = logits(short, LONGER)
    check(rows == logits(whole, LONGER)[1], "rows beyond the trained length differ")
    check(b"trained on 40" in result.stderr, f"no note: {result.stderr}")
    check(not logits(short, TRAINED)[0].stderr, "a note within the trained length")
    check(b"at most 50" in logits(short, LONGER, "-c", 50, expect=3)[0].stderr, "-c is a limit")
    error = logits(converted(folder, "gpt2"), 300, expect=3)[0].stderr
    check(b"too many token ids" in error and error.count(b"\n") == 1, f"a table of positions ends: {error}")


def check_window_of_one(folder):
    recipe = folder / "recipe.json"
    recipe.write_text(json.dumps({"recipe": 1, "about": "A window of one key.", "extends": "llama",
                                  "match": {"hf": ["LlamaForCausalLM"], "gguf": []},
                                  "contract": {"ops": {"attn": {"mask": {"window": 1}}}}}))
    run(QUERN, "verify", "-m", converted(folder, "llama2", "--recipe", recipe))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_longer_than_trained(folder)
        check_window_of_one(folder)
    print("logits beyond the trained length, a limit by -c, the end of a position table; verify of a window of one key")


main()
