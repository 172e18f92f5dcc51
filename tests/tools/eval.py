"""quern eval: perplexity and divergence equal to a NumPy computation from `quern logits`, multiple choice equal to one
from the logits of each whole text, hostile input."""
import json
import pathlib
import tempfile

import harness
from harness import CONVERT, QUERN, SOURCE, check, run

harness.need("numpy")
import numpy as np  # noqa: E402


def evaluate(*arguments, **options):
    return json.loads(run(QUERN, "eval", *arguments, "--output", "json", **options).stdout)


def log_softmax(model, ids, folder, *arguments):
    (folder / "window.txt").write_text(" ".join(map(str, ids)))
    run(QUERN, "logits", "-m", model, "--ids-file", folder / "window.txt", "-o", folder / "logits.npy", *arguments)
    x = np.load(folder / "logits.npy").astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def close(got, want, what, tolerance=1e-9):
    check(abs(got - want) <= tolerance * max(1, abs(want)), f"{what}: {got!r}, NumPy {want!r}")


def windows(ids, context, stride, depth):
    scored = depth if depth else context - stride if stride else context // 2 + 1
    step = stride or context
    return [(ids[first:first + context], scored) for first in range(0, len(ids) - context + 1, step)]


def compare_text(model, ids, folder, context, stride=0, depth=0, kv="", against=""):
    """All figures of one call against NumPy."""
    (folder / "ids.txt").write_text(" ".join(map(str, ids)))
    arguments = ["-m", model, "--ids-file", folder / "ids.txt", "-c", context, "--deterministic"]
    arguments += ["--ppl-stride", stride] if stride else []
    arguments += ["--depth", depth] if depth else []
    arguments += ["--kv", kv] if kv else []
    arguments += ["--against", against] if against else []
    report = evaluate(*arguments)
    subjects = [(model, ["-ctk", "f32", "-ctv", "f32"] if kv else [])]
    subjects += [(model, ["-ctk", t.split("/")[0], "-ctv", t.split("/")[-1]]) for t in kv.split(",") if t]
    subjects += [(against, [])] if against else []
    nll, kl, top, change = [[] for _ in subjects], [[] for _ in subjects], [[] for _ in subjects], [[] for _ in subjects]
    for window, scored in windows(ids, context, stride, depth):
        rows = [log_softmax(m, window, folder, "--deterministic", *a)[scored - 1:-1] for m, a in subjects]
        targets = window[scored:]
        for s, row in enumerate(rows):
            own = row[np.arange(len(targets)), targets]
            nll[s] += list(-own)
            kl[s] += list((np.exp(rows[0]) * (rows[0] - row)).sum(axis=1))
            top[s] += list(row.argmax(axis=1) == rows[0].argmax(axis=1))
            change[s] += list(np.exp(own) - np.exp(rows[0][np.arange(len(targets)), targets]))
    check(report["tokens_scored"] == len(nll[0]), f"{report['tokens_scored']} tokens scored, expected {len(nll[0])}")
    for s, result in enumerate(report["results"]):
        n = len(nll[s])
        close(result["perplexity"], np.exp(np.mean(nll[s])), "perplexity")
        close(result["perplexity_error"], np.exp(np.mean(nll[s])) * np.std(nll[s], ddof=1) / n**0.5, "its error")
        if s == 0:
            continue
        other = result["against_first"]
        close(other["kl"]["mean"], np.mean(kl[s]), "KL")
        close(other["kl"]["error"], np.std(kl[s], ddof=1) / n**0.5, "error of KL")
        close(other["kl_percentiles"]["99.0"], np.percentile(kl[s], 99), "99 % of KL", 1e-6)
        close(other["kl_percentiles"]["max"], np.max(kl[s]), "largest KL", 1e-6)
        close(other["same_top"]["mean"], np.mean(top[s]), "same top")
        close(other["rms_probability_change"], np.sqrt(np.mean(np.square(change[s]))), "RMS change")
        close(other["log_perplexity_ratio"]["mean"], np.mean(np.subtract(nll[s], nll[0])), "log ratio")
    return len(nll[0])


def fixtures(folder):
    n = 0
    for name in ("llama3", "gemma2", "mistral-swa", "deepseek-v3", "gpt2"):
        source = harness.shared() / "fixtures" / name
        model, other = folder / name, folder / f"{name}-q8"
        run(CONVERT, source, model, "--type", "f32")
        run(CONVERT, source, other, "--type", "q8")
        contract = json.loads((model / "model.json").read_text())
        context = min(64, contract["max_positions"])
        ids = np.random.default_rng(5).integers(3, contract["vocab_size"], 150).tolist()
        n += compare_text(model, ids, folder, context, against=other)
        n += compare_text(model, ids, folder, context, stride=context // 4)
        n += compare_text(model, ids, folder, context, depth=context // 2, kv="int8,fp8_e4m3,f16/int8")
    return n


def questions(model, folder):
    """acc and acc_norm from the logits of each whole text."""
    lines = [{"query": "The capital of France is", "choices": ["Paris.", "a cheese", "Berlin", "purple"], "gold": 0},
             {"ctx": "She put the kettle on and waited for the water", "endings": ["to boil.", "to sing an aria.", "below the moon"], "label": "0"},
             {"question": "Two and two make", "choices": {"text": ["five", "four", "a number that nobody has ever seen"], "label": ["A", "B", "C"]}, "answerKey": "B"},
             {"query": "Snow is", "choices": ["white", "w"], "gold": 1}]
    file = folder / "questions.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    report = evaluate("-m", model, "--choices", file)
    right, right_norm = 0, 0
    for line in lines:
        query = line.get("query") or line.get("ctx") or line.get("question")
        choices = line.get("choices") or line.get("endings")
        labels = choices["label"] if isinstance(choices, dict) else [str(i) for i in range(len(choices))]
        choices = choices["text"] if isinstance(choices, dict) else choices
        gold = labels.index(str(line.get("gold", line.get("label", line.get("answerKey")))))
        scores = []
        for choice in choices:
            encode = lambda text: json.loads(run(QUERN, "tokenize", "-m", model, "--jsonl", stdin=json.dumps(text).encode()).stdout)
            start, ids = len(encode(query)), encode(f"{query} {choice}")
            rows = log_softmax(model, ids, folder)
            scores.append(sum(rows[i - 1][ids[i]] for i in range(start, len(ids))))
        right += int(np.argmax(scores)) == gold
        right_norm += int(np.argmax([s / len(c) for s, c in zip(scores, choices)])) == gold
    close(report["acc"]["mean"], right / len(lines), "acc")
    close(report["acc_norm"]["mean"], right_norm / len(lines), "acc_norm")
    p = right / len(lines)
    close(report["acc"]["error"], (p * (1 - p) / (len(lines) - 1)) ** 0.5, "error of acc")
    check(evaluate("-m", model, "--choices", file, "-ub", 3)["acc"] == report["acc"], "acc does not depend on the chunk")


def smollm2(folder):
    model = folder / "smollm2"
    run(CONVERT, harness.smollm2_gguf(), model)
    text = (SOURCE / "ARCHITECTURE.md").read_bytes() + (SOURCE / "README.md").read_bytes()
    (folder / "text.txt").write_bytes(text)
    ids = [int(i) for i in run(QUERN, "tokenize", "-m", model, "--ids", stdin=text).stdout.split()][:1100]
    n = compare_text(model, ids, folder, 256, kv="int8", depth=128)
    whole = evaluate("-m", model, "-f", folder / "text.txt", "--chunks", 4, "-c", 256)
    check(whole["windows"] == 4, "four windows")
    for arguments in (["-t", 1], ["-ub", 33], ["-t", 2, "-ub", 512]):
        again = evaluate("-m", model, "-f", folder / "text.txt", "--chunks", 4, "-c", 256, *arguments)
        check(again["results"] == whole["results"], f"the same bits with {arguments}")
    table = run(QUERN, "eval", "-m", model, "-f", folder / "text.txt", "--chunks", 2, "-c", 256, "--kv", "int8").stdout.decode()
    check("KL divergence" in table and "same most probable token" in table, table)
    questions(model, folder)
    hostile(model, folder)
    return n


def hostile(model, folder):
    bad = folder / "bad"
    bad.write_bytes(b"")
    run(QUERN, "eval", "-m", model, "-f", bad, expect=3)
    bad.write_bytes(b"short")
    run(QUERN, "eval", "-m", model, "-f", bad, expect=3)
    bad.write_bytes(bytes(range(256)) * 40)
    run(QUERN, "eval", "-m", model, "-f", bad, "-c", 64, "--chunks", 1)  # byte-level: any bytes
    for text in (b"", b"\n\n", b"{", b'{"query": "q", "choices": ["a"], "gold": 0}', b"\xff\xfe"):
        bad.write_bytes(b'{"query": "q", "choices": ["a", "b"], "gold": 0}\n' + text if text.strip() else text)
        result = run(QUERN, "eval", "-m", model, "--choices", bad, expect=3)
        check(not text.strip() or b"bad:2" in result.stderr, f"the line is named: {result.stderr}")
    for arguments in ([], ["-f", bad, "--choices", bad], ["-f", bad, "--kv", "int7"], ["-f", bad, "-c", 2],
                      ["-f", bad, "--depth", 600, "-c", 512], ["-f", bad, "--ppl-stride", 512], ["-f", bad, "--kv", "int8", "-ctk", "f16"],
                      ["--choices", bad, "--kv", "int8"], ["--choices", bad, "--prompt-format", "x"]):
        run(QUERN, "eval", "-m", model, *arguments, expect=2)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        n = fixtures(folder) + smollm2(folder)
        print(f"eval: perplexity, KL, agreement and percentiles of {n} tokens equal NumPy; choices; hostile input")


main()
