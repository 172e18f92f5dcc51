#!/usr/bin/env python3
"""KL divergence from f32 of each weight format and each cache type, on a real model.

usage: quality.py BUILD_DIR MODEL_SOURCE [--formats keep,q8,q4] [--caches int8,...] [--windows 12] [--check]

Text: Python's pydoc_data.topics, values joined in key order, first 60,000 characters; windows of 512 tokens for
formats (f32 cache), of 1,024 tokens for cache types (against the f32 cache; f32 weights, since int8 activations of
quantized weights answer any small change with noise of their own).
--check: exit 1 beyond the bounds of the project (q8, keep 5e-3; q4 0.15; int8 cache 2e-3; fp8_e4m3 1e-2)."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

BOUNDS = {"keep": 5e-3, "q8": 5e-3, "q4": 0.15, "cache int8": 2e-3, "cache fp8_e4m3": 1e-2}


def run(*arguments, stdin=None):
    result = subprocess.run(list(map(str, arguments)), capture_output=True, input=stdin)
    if result.returncode:
        sys.exit(result.stderr.decode())
    return result.stdout


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


class Bench:
    def __init__(self, options, folder):
        self.quern = options.build / "quern"
        self.convert = options.build / "quern-convert"
        self.source, self.folder, self.threads = options.source, folder, options.threads

    def model(self, kind, *extra):
        out = self.folder / kind.replace("/", "_")
        if not out.exists():
            run(self.convert, self.source, out, "--type", kind, *extra)
        return out

    def logits(self, model, ids, cache):
        (self.folder / "ids").write_text(" ".join(map(str, ids)))
        out = self.folder / "o.npy"
        run(self.quern, "logits", "-m", model, "--ids-file", self.folder / "ids", "-ctk", cache, "-ctv", cache, "-o", out)
        return np.load(out)

    def tokens(self, model):
        from pydoc_data.topics import topics
        text = "".join(topics[key] for key in sorted(topics))[:60000]
        return [int(i) for i in run(self.quern, "tokenize", "-m", model, "--ids", "--no-bos", stdin=text.encode()).split()]


def compare(bench, windows, reference, others):
    """Mean KL(reference || other), top-1 agreement and perplexities over all positions of all windows."""
    sums = {name: [0.0, 0, 0.0] for name in others}
    count = base_nll = n_nll = 0
    for ids in windows:
        p = log_softmax(bench.logits(reference[0], ids, reference[1]))
        target = np.array(ids[1:])
        base_nll -= p[np.arange(len(target)), target].sum()
        n_nll += len(target)
        count += len(ids)
        for name, (model, cache) in others.items():
            q = log_softmax(bench.logits(model, ids, cache))
            sums[name][0] += float((np.exp(p) * (p - q)).sum())
            sums[name][1] += int((p.argmax(1) == q.argmax(1)).sum())
            sums[name][2] -= float(q[np.arange(len(target)), target].sum())
    rows = {name: {"kl": s[0] / count, "top1": s[1] / count, "ppl": float(np.exp(s[2] / n_nll))} for name, s in sums.items()}
    return rows, float(np.exp(base_nll / n_nll))


def bits(model):
    report = json.loads((model / "model.json").read_text())["quantization"]
    return report.get("bits_per_weight", float("nan"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--formats", default="keep,q8,q4,bf16")
    parser.add_argument("--caches", default="bf16,f16,int8,fp8_e4m3,fp8_e5m2,int4")
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options, pathlib.Path(name))
        f32 = bench.model("f32")
        ids = bench.tokens(f32)
        formats = [kind for kind in options.formats.split(",") if kind]
        if formats:
            windows = [ids[i * 512:(i + 1) * 512] for i in range(options.windows)]
            rows, ppl = compare(bench, windows, (f32, "f32"), {kind: (bench.model(kind), "f32") for kind in formats})
            print(f"weights: {len(windows)} windows of 512 tokens, f32 perplexity {ppl:.3f}\n")
            print("| format | bits per weight | KL from f32 | top-1 agreement | perplexity |\n| --- | ---: | ---: | ---: | ---: |")
            for kind, row in rows.items():
                print(f"| {kind} | {bits(bench.model(kind)):.3f} | {row['kl']:.5f} | {100 * row['top1']:.2f} % | {row['ppl']:.3f} |")
                failed += [kind] if row["kl"] > BOUNDS.get(kind, 1e9) else []
        caches = [kind for kind in options.caches.split(",") if kind]
        if caches:
            windows = [ids[i * 1024:(i + 1) * 1024] for i in range(max(1, options.windows // 3))]
            rows, ppl = compare(bench, windows, (f32, "f32"), {f"cache {kind}": (f32, kind) for kind in caches})
            print(f"\ncaches: {len(windows)} windows of 1,024 tokens, f32 weights, perplexity {ppl:.3f} with the f32 cache\n")
            print("| cache | KL from f32 cache | top-1 agreement | perplexity |\n| --- | ---: | ---: | ---: |")
            for kind, row in rows.items():
                print(f"| {kind[6:]} | {row['kl']:.6f} | {100 * row['top1']:.2f} % | {row['ppl']:.3f} |")
                failed += [kind] if row["kl"] > BOUNDS.get(kind, 1e9) else []
    if failed:
        print("beyond the bound:", ", ".join(failed))
    return bool(failed) and options.check


sys.exit(main())
