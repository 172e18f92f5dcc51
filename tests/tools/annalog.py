"""The trained encoder-decoder of the package annalog (SMILES to SMILES): greedy and beam answers to 20 molecules equal
those of the package's own model in torch (tests/data/annalog/expected.json), as ids and as text. Skipped without the
wheel: QUERN_ANNALOG names it, or build-models/ holds it (pip download --no-deps annalog==1.0.6)."""
import json
import os
import pathlib
import sys
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run, skip

need("numpy", "safetensors")


def wheel():
    for path in [os.environ.get("QUERN_ANNALOG", ""), *(SOURCE / "build-models").glob("annalog-1.0.6*.whl")]:
        if path and pathlib.Path(path).is_file():
            return path
    skip("no annalog wheel")


def answer(model, case, *options):
    result = run(QUERN, "run", "-m", model, "-p", case["smiles"], "-ctk", "f32", "-ctv", "f32", "--output", "json",
                 "--no-timings", *options)
    return json.loads(result.stdout)


def main():
    source, cases = wheel(), json.loads((SOURCE / "tests/data/annalog/expected.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run(sys.executable, SOURCE / "scripts/annalog_to_hf.py", source, folder / "hf")
        run(CONVERT, folder / "hf", folder / "m", "--type", "f32")
        for case in cases:
            ids = run(QUERN, "tokenize", "-m", folder / "m", "--ids", stdin=case["smiles"].encode()).stdout.split()
            check([int(x) for x in ids] == case["ids"], f"{case['smiles']}: ids {ids}, expected {case['ids']}")
            text = answer(folder / "m", case)["text"]
            check(text == case["greedy"], f"{case['smiles']}: greedy {text}, expected {case['greedy']}")
            found = answer(folder / "m", case, "--num-beams", 5, "--num-return-sequences", 3)["sequences"]
            check([x["text"] for x in found] == case["beams"], f"{case['smiles']}: {found}, expected {case['beams']}")
            for x, score in zip(found, case["scores"]):
                check(abs(x["score"] - score) < 1e-4, f"{case['smiles']}: score {x['score']}, expected {score}")
    print(f"{len(cases)} molecules: greedy and 3 answers of 5 beams equal to the package's own model")


main()
