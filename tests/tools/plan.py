"""quern plan: the published figures, hostile input, and its peak RSS against what a run then holds.

Two contexts and types of SmolLM2; with --full (scripts/full/plan) six models x three contexts x three types.
QUERN_PLAN_MODELS: model directories to measure beside those made here (colon-separated)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import harness
from harness import CONVERT, QUERN, check, run
from large_models import WIDTHS, make_large_model

FULL = "--full" in sys.argv
CONTEXTS = [int(c) for c in os.environ.get("QUERN_PLAN_CONTEXTS", "128,1000,3000" if FULL else "128,700").split(",")]
TYPES = os.environ.get("QUERN_PLAN_TYPES", "f32,f16,int8" if FULL else "f32,int8").split(",")
NEW_TOKENS = 8
TOLERANCE = 0.05


def plan(*arguments):
    return json.loads(run(QUERN, "plan", *arguments, "--output", "json").stdout)


def published_figures():
    shape = ["--layers", 32, "--heads", 32, "--head-dim", 128, "--params", "7e9", "--type", "bf16", "-c", 128000, "-ctk", "f16"]
    rows = {row["heads"]: row for row in plan(*shape)["cache"]}
    want = {"MHA": (512, 62.5, 26703), "GQA-8": (128, 15.625, 106812), "MQA": (16, 1.953125, 854492)}
    for name, (kib, gib, tokens) in want.items():
        row = rows[name]
        got = (row["payload_bytes_per_token"] / 1024, row["bytes"][0] / 2**30, row["tokens_equal_to_weights"])
        check(got == (kib, gib, tokens), f"{name}: {got}, expected {(kib, gib, tokens)}")
    text = run(QUERN, "plan", *shape).stdout.decode()
    for figure in ("512 KiB", "128 KiB", "16 KiB", "62.50 GiB", "15.63 GiB", "1.95 GiB", "26,703", "106,812", "854,492"):
        check(figure in text, f"the table lacks {figure}:\n{text}")


def bare_configuration(folder):
    config = folder / "config.json"
    config.write_text(json.dumps(dict(
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=4096, intermediate_size=11008,
        num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32, vocab_size=32000, rms_norm_eps=1e-5,
        max_position_embeddings=4096, hidden_act="silu", tie_word_embeddings=False, torch_dtype="float16")))
    started = time.monotonic()
    report = plan(config, "--type", "bf16", "-c", "4k,128000", "-ctk", "f16,int8", "--memory", "16G")
    seconds = time.monotonic() - started
    check(report["parameters"] == 6738415616, f"parameters of a 7B LLaMA: {report['parameters']}")
    check(abs(report["weight_bytes"] / (2 * 6738415616) - 1) < 0.01, "weights at two bytes")
    rows = {row["heads"]: row for row in report["cache"] if row["type_k"] == "f16"}
    check(rows["own"]["payload_bytes_per_token"] == 512 * 1024, "a token of the 7B's cache")
    given = plan(folder, "--type", "bf16", "--params", "7e9", "-c", 128000, "-ctk", "f16")
    tokens = {row["heads"]: row["tokens_equal_to_weights"] for row in given["cache"]}
    check((tokens["MHA"], tokens["GQA-8"], tokens["MQA"]) == (26703, 106812, 854492), f"with --params 7e9: {tokens}")
    decode = {part["component"]: part for part in report["runs"][0]["decode"]["components"]}
    check(decode["attention scores"]["float_ops"] == 2 * 32 * 128 * 4096 * 32, "products of 4,096 keys")
    check(decode["attention scores"]["cache_bytes"] == 32 * 128 * 2 * 4096 * 32, "bytes of 4,096 keys")
    fitting = plan(config, "--type", "q4", "--memory", "16G", "-c", 2048)["fitting"][0]
    check(fitting["longest_context"] == 4096 and fitting["most_sequences"] > 1, f"what fits in 16 GiB: {fitting}")
    return seconds


def limits(model):
    """Times come of the limits given, with --measure of this machine's for the rest; a figure given stays."""
    base = [model, "-c", 64, "-t", 1]
    check("limits" not in plan(*base), "limits out of nothing")
    given = plan(*base, "--gops", 100, "--bandwidth", 5)["limits"]
    check(given == {"bytes_per_s": 5e9, "int8_ops_per_s": 100e9, "float_ops_per_s": 25e9}, f"given: {given}")
    measured = plan(*base, "--measure")
    check(all(1e8 < value < 1e15 for value in measured["limits"].values()) and len(measured["limits"]) == 3, f"measured: {measured['limits']}")
    check(measured["runs"][0]["decode"]["tokens_per_second_at_most"] > 0, "no time from what was measured")
    both = plan(*base, "--measure", "--gops", 100, "--gflops", 7)["limits"]
    check((both["int8_ops_per_s"], both["float_ops_per_s"]) == (100e9, 7e9) and both["bytes_per_s"] > 1e8, f"both: {both}")
    for words, taken in ((["--measure"], False), (["--gops", 100, "--bandwidth", 5], True)):
        check((b"a quarter of int8" in run(QUERN, "plan", *base, *words).stdout) == taken, f"{words}: where the float rate is from")


def hostile(folder):
    broken = folder / "broken.json"
    for text in ("", "{", "[]", '{"architectures": ["Nonsense"]}', '{"quern": 1}'):
        broken.write_text(text)
        result = run(QUERN, "plan", broken, expect=3)
        check(result.stderr.count(b"\n") == 1 and not result.stdout, f"one line for {text!r}: {result.stderr}")
    for arguments in (["-c", "0"], ["-c", "x"], ["-c", "1e30"], ["-c", "1.5"], ["-c", "4k,0.3k"], ["-ctk", "int7"], ["-ctk", "int8,f16", "-ctv", "int8,f16,f32"],
                      ["--memory", "nan"], ["--layers", 3], ["-np", 0], ["--gops", "-1"]):
        run(QUERN, "plan", folder, *arguments, expect=2)
    check(b"1 to 16777216," in run(QUERN, "plan", folder, "-c", "64m", expect=2).stderr, "the largest context in digits")
    run(QUERN, "plan", expect=2)
    run(QUERN, "plan", "--layers", 4, expect=2)
    run(QUERN, "plan", folder / "absent", expect=3)


def measured(model, ids_file, context, cache_type, encoder):
    """VmHWM of a run that fills the context."""
    arguments = ["-n", NEW_TOKENS, "--ignore-eos", "--temp", 0, "--output", "json", "-ctk", cache_type, "-ctv", cache_type]
    arguments += ["-c", 64 if encoder else context]
    result = run(QUERN, "run", "-m", model, "--ids-file", ids_file, *arguments, timeout=900)
    return json.loads(result.stdout)["timings"]["peak_rss_bytes"]


def compare_memory(model, folder):
    import numpy
    contract = json.loads((model / "model.json").read_text())
    encoder = contract["encoder"] is not None
    worst = 0
    for context in CONTEXTS:
        check(context <= contract["max_positions"], f"{model.name} has {contract['max_positions']} positions, {context} are asked for")
        n = context if encoder else context - NEW_TOKENS + 1
        ids = numpy.random.default_rng(context).integers(3, contract["vocab_size"] - 3, n)
        ids_file = folder / "ids.txt"
        ids_file.write_text(" ".join(str(i) for i in ids))
        for cache_type in TYPES:
            shape = ["-c", NEW_TOKENS, "--source-tokens", context] if encoder else ["-c", context]
            planned = plan(model, *shape, "-ctk", cache_type)["runs"][0]["memory"]
            peak = measured(model, ids_file, context, cache_type, encoder)
            difference = planned["peak_rss"] / peak - 1
            worst = max(worst, abs(difference))
            print(f"{model.name:16} {context:6} {cache_type:5} planned {planned['peak_rss'] / 2**20:8.1f} MiB, "
                  f"measured {peak / 2**20:8.1f}, {100 * difference:+.1f} %", flush=True)
    return worst


def main():
    harness.need("numpy")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        published_figures()
        seconds = bare_configuration(folder)
        hostile(folder)
        models = [pathlib.Path(p) for p in os.environ.get("QUERN_PLAN_MODELS", "").split(":") if p]
        smollm2 = folder / "smollm2"
        run(CONVERT, harness.smollm2_gguf(), smollm2)
        models.append(smollm2)
        limits(smollm2)
        if FULL:
            models += [make_large_model(folder, fixture) for fixture in WIDTHS]
        worst = {model.name: compare_memory(model, folder) for model in models}
        for model, difference in worst.items():
            check(difference <= TOLERANCE, f"{model}: planned peak RSS is off by {100 * difference:.1f} %")
        print(f"plan: published figures, limits, a bare 7B in {1000 * seconds:.0f} ms, hostile input; peak RSS of {len(models)} models x "
              f"{len(CONTEXTS)} contexts x {len(TYPES)} types within {100 * max(worst.values()):.1f} %")


main()
