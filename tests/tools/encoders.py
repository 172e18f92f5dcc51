"""Tiny models with heads through embed, classify and fill, against the reference implementation
(tests/data/encoders, scripts/make_encoder_goldens.py): texts, pairs, lines of ids, packed and one by one."""
import json
import math
import pathlib
import shutil
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("numpy")
import numpy as np  # noqa: E402

ROOT = SOURCE / "tests/data/encoders"


def lines(result):
    return [json.loads(line) for line in result.stdout.decode().splitlines()]


def inputs(cases, folder, by_ids):
    """Options that give the cases to a command: JSON lines of texts, or lines of ids."""
    if by_ids:
        (folder / "in").write_text("".join(" ".join(map(str, c["ids"])) + "\n" for c in cases))
        return ["--ids-file", folder / "in"]
    rows = [{"text": c["text"][0], "pair": c["text"][1]} if isinstance(c["text"], list) else {"text": c["text"]}
            for c in cases]
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["-f", folder / "in.jsonl"]


def close(got, want, what):
    check(np.allclose(got, want, rtol=1e-3, atol=2e-5), f"{what}: {got}, expected {want}")


def check_labels(found, case, names, what):
    by_token = isinstance(case["probabilities"][0], list)
    rows = [t["labels"] for t in found["tokens"]] if by_token else [found["labels"]]
    wanted = case["probabilities"] if by_token else [case["probabilities"]]
    check(len(rows) == len(wanted), f"{what}: {len(rows)} rows, expected {len(wanted)}")
    if by_token:
        check([t["id"] for t in found["tokens"]] == case["ids"], f"{what}: other ids")
    for row, want in zip(rows, wanted):
        numbers = [r.get("probability", r.get("value")) for r in row]
        check(numbers == sorted(numbers, reverse=True), f"{what}: not in order")
        close([{r["label"]: n for r, n in zip(row, numbers)}[name] for name in names], want, what)


def without_specials(case):
    """The tokens that the tokenizer puts around a text ([CLS], [SEP]) are no words and have no labels."""
    if not isinstance(case["probabilities"][0], list):
        return case
    return {**case, "ids": case["ids"][1:-1], "probabilities": case["probabilities"][1:-1]}


def answers(model, name, cases, folder):
    found = lines(run(QUERN, "classify", "-m", model, *inputs(cases, folder, False), "--output", "json", "--top-k", 3))
    for one, case in zip(found, cases, strict=True):
        check([[a["first_token"], a["last_token"]] for a in one["answers"]] == [a[:2] for a in case["answers"]],
              f"{name}: {one}, expected {case['answers']}")
        close([a["probability"] for a in one["answers"]], [a[2] for a in case["answers"]], name)
    best = run(QUERN, "classify", "-m", model, "-p", cases[2]["text"][0], "--pair", cases[2]["text"][1]).stdout.decode()
    check(best.split("\t")[:2] == ["0", "man"], f"{name}: {best!r}")
    for alone in (["-p", "who"], ["--ids-file", folder / "ids"]):
        (folder / "ids").write_text("2 3 4\n")
        refused = run(QUERN, "classify", "-m", model, *alone, expect=3)
        check(b"--pair" in refused.stderr, f"{name}: {refused.stderr}")


def classify(model, name, cases, folder):
    config = json.loads((ROOT / name / "config.json").read_text())
    names = [config["id2label"][str(i)] for i in range(len(config["id2label"]))]
    for by_ids in (True, False):
        some = [c for c in cases if (c["text"] is None or isinstance(c["text"], str) if by_ids else c["text"] is not None)]
        for step in ("512", "1"):
            result = run(QUERN, "classify", "-m", model, *inputs(some, folder, by_ids), "--output", "json", "-ub", step,
                         "--top-k", len(names))
            found = lines(result)
            check(len(found) == len(some), f"{name}: {len(found)} results of {len(some)}")
            for index, (one, case) in enumerate(zip(found, some)):
                check(one["index"] == index, f"{name}: not in order")
                check_labels(one, case if by_ids else without_specials(case), names, f"{name} {case['text']}")
    best = run(QUERN, "classify", "-m", model, *inputs(cases[:1], folder, True)).stdout.decode()
    check(any(label in best for label in names), f"{name}: no label in {best!r}")


def fill(model, name, cases, folder):
    for by_ids in (True, False):
        found = lines(run(QUERN, "fill", "-m", model, *inputs(cases, folder, by_ids), "--output", "json"))
        for one, case in zip(found, cases):
            check([m["position"] for m in one["masks"]] == case["masks"], f"{name}: other masks")
            for mask, best in zip(one["masks"], case["best"]):
                check([f["id"] for f in mask["fillings"]] == [i for i, _ in best], f"{name}: {mask}, expected {best}")
                close([f["probability"] for f in mask["fillings"]], [p for _, p in best], name)
    refused = run(QUERN, "fill", "-m", model, "-p", "no mask", expect=3)
    check(b"no mask token" in refused.stderr, f"{name}: {refused.stderr}")


def embed(model, name, cases, folder):
    for by_ids in (True, False):
        given = inputs(cases, folder, by_ids)
        for mode in ("first", "last", "mean"):
            run(QUERN, "embed", "-m", model, *given, "--pooling", mode, "--no-normalize", "-o", folder / "out.npy")
            got = np.load(folder / "out.npy")
            close(got, [c[mode] for c in cases], f"{name} {mode}")
            json_lines = lines(run(QUERN, "embed", "-m", model, *given, "--pooling", mode, "--no-normalize", "-ub", 1))
            check(np.array([x["embedding"] for x in json_lines], np.float32).tobytes() == got.tobytes(),
                  f"{name}: JSON lines one by one are not the packed array")
            unit = lines(run(QUERN, "embed", "-m", model, *given, "--pooling", mode, "--normalize"))
            check(all(abs(math.dist(x["embedding"], [0] * got.shape[1]) - 1) < 1e-5 for x in unit),
                  f"{name}: not of length 1")


def vector_files(model, cases, folder):
    """The ending of -o, else --format, says what is written; an ending that says nothing is an error, not a surprise."""
    given = inputs(cases, folder, True)
    command = [QUERN, "embed", "-m", model, *given]
    plain = run(*command).stdout
    out = lambda name, *words: (run(*command, "-o", folder / name, *words), (folder / name).read_bytes())[1]
    array = out("v.npy")
    want = np.array([json.loads(line)["embedding"] for line in plain.splitlines()], np.float32)
    check(np.load(folder / "v.npy").tobytes() == want.tobytes(), "the array is not the lines")
    check(out("v.jsonl") == plain and out("v.txt", "--format", "jsonl") == plain, "lines in a file")
    check(out("w.npy", "--format", "jsonl") == plain and out("v.bin", "--format", "npy") == array, "--format beats the ending")
    check(run(*command, "--format", "npy").stdout == array, "an array on standard output")
    for name in ("x.txt", "x.json", "x.csv", "x", "x.npy.gz", ".npy"):
        result = run(*command, "-o", folder / name, expect=2)
        check(result.stderr.count(b"\n") == 1 and b"--format" in result.stderr and not (folder / name).exists(), f"-o {name}: {result.stderr}")


def dense(source, cases, folder):
    """Modules of sentence-transformers behind the pooling, in their order, against NumPy."""
    from safetensors.numpy import save_file
    random = np.random.default_rng(5)
    width, d = 32, folder / "modules"
    shutil.copytree(source, d)
    def module(n, kind, config, tensors):
        (d / f"{n}_{kind}").mkdir()
        (d / f"{n}_{kind}/config.json").write_text(json.dumps(config))
        if tensors: save_file(tensors, d / f"{n}_{kind}/model.safetensors")
        return {"idx": n, "name": str(n), "path": f"{n}_{kind}", "type": f"sentence_transformers.models.{kind}"}
    floats = lambda *shape: (random.standard_normal(shape) / 3).astype(np.float32)
    w1, b1, w2, g, b = floats(48, width), floats(48), floats(20, 48), floats(20) + 1, floats(20)
    layers = [
        module(1, "Pooling", {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}, {}),
        module(2, "Dense", {"in_features": width, "out_features": 48, "bias": True, "activation_function": "torch.nn.modules.activation.Tanh"},
               {"linear.weight": w1, "linear.bias": b1}),
        module(3, "Dense", {"in_features": 48, "out_features": 20, "bias": False, "activation_function": "torch.nn.modules.linear.Identity"},
               {"linear.weight": w2}),
        module(4, "LayerNorm", {"dimension": 20}, {"norm.weight": g, "norm.bias": b}),
        {"idx": 5, "name": "5", "path": "5_Normalize", "type": "sentence_transformers.models.Normalize"}]
    (d / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}, *layers]))
    x = np.array([c["mean"] for c in cases]) @ w1.T.astype(float) + b1
    x = np.tanh(x) @ w2.T
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b
    want = x / np.linalg.norm(x, axis=1, keepdims=True)
    for kind, bound in (("f32", 1e-5), ("q8", 0.02), ("q4", 0.2)):
        model = folder / f"modules-{kind}"
        run(CONVERT, d, model, "--type", kind)
        run(QUERN, "embed", "-m", model, *inputs(cases, folder, True), "-o", folder / "out.npy")
        got = np.load(folder / "out.npy")
        check(got.shape == want.shape and np.abs(got - want).max() < bound, f"dense layers, {kind}: {np.abs(got - want).max()}")
    report = run(QUERN, "inspect", "-m", model).stdout.decode()
    check("mean, a layer to width 48, tanh, bias: yes" in report and "to width 20" in report, f"no layers in {report}")
    run(QUERN, "verify", "-m", folder / "modules-f32")
    edited = json.loads((folder / "modules-f32/model.json").read_text())
    edited["pooling"]["dense"].pop()
    (folder / "modules-f32/model.json").write_text(json.dumps(edited))
    run(QUERN, "embed", "-m", folder / "modules-f32", "-p", "x", expect=3)
    (d / "3_Dense/model.safetensors").rename(d / "3_Dense/pytorch_model.bin")
    refused = run(CONVERT, d, folder / "no", "--type", "f32", expect=3)
    check(b"3_Dense/model.safetensors" in refused.stderr, f"{refused.stderr}")


def limits(model, folder):
    """64 positions: longer text is cut with a notice or refused, ids are refused."""
    long = "the cat " * 200
    cut = run(QUERN, "embed", "-m", model, "-p", long)
    check(b"1 of 1 inputs cut to 64" in cut.stderr, f"no notice: {cut.stderr}")
    refused = run(QUERN, "embed", "-m", model, "-p", long, "--no-truncate", expect=3)
    check(b"too many tokens (got 402, expected at most 64)" in refused.stderr, f"{refused.stderr}")
    (folder / "in").write_text("5 " * 65)
    run(QUERN, "embed", "-m", model, "--ids-file", folder / "in", expect=3)
    for bad in ("5 x\n", "5\n\n6\n", "5 -1\n", "5 99999\n"):
        (folder / "in").write_text(bad)
        run(QUERN, "embed", "-m", model, "--ids-file", folder / "in", expect=3)
    for bad in (b"{\"no\": 1}\n", b"[1]\n", b"{\"text\": 5}\n", b"{"):
        run(QUERN, "embed", "-m", model, "--jsonl", stdin=bad, expect=3)
    run(QUERN, "fill", "-m", model, "-p", "x", expect=3)
    run(QUERN, "classify", "-m", model, "-p", "x", expect=3)


def main():
    n = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for source in sorted(p for p in ROOT.iterdir() if p.is_dir()):
            cases = json.loads((source / "expected.json").read_text())
            model = folder / source.name
            run(CONVERT, source, model, "--type", "f32")
            by_name = {"fill": fill, "embed": embed} | ({source.name: answers} if "answers" in source.name else {})
            by_name.get(source.name, classify)(model, source.name, cases, folder)
            n += len(cases)
            if source.name == "embed":
                vector_files(model, cases, folder)
                dense(source, cases, folder)
        limits(folder / "embed", folder)
    print(f"{n} inputs of embed, classify and fill equal to the reference, as text and as ids")


main()
