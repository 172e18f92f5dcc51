"""`quern bench` on tiny models: rows, formats, comparisons, workers, hostile arguments, signals. Nothing here passes or
fails by how fast something ran, except the slowdown that is put in by hand (and that is 3 x)."""
import csv
import io
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import tempfile
import time

from harness import CONVERT, QUERN, SOURCE, check, run

FIXTURES = SOURCE / "tests/data/fixtures"
FAST = ["-t", "1", "--no-limits"]


def models(folder):
    made = {}
    for name in ("gemma", "gemma3", "bert", "t5", "deepseek-v3"):
        made[name] = folder / name
        run(CONVERT, FIXTURES / name, made[name], "--type", "q8", "-q")
    return made


def bench(model, *options, expect=0, env=None):
    return run(QUERN, "bench", "-m", model, *FAST, *([] if "-r" in options else ["-r", "3"]), *options, expect=expect, env=env)


def rows(model, *options, **more):
    return json.loads(bench(model, *options, "-o", "json", **more).stdout)


def check_rows(model):
    labels = [row["test"] for row in rows(model, "-p", "8,16", "-n", "0-4+2", "-pg", "4,2", "-d", "0,8")]
    one = ["pp8", "pp16", "tg2", "tg4", "pp4+tg2"]
    check(labels == one + [f"{label} @ d8" for label in one], f"rows {labels}")
    grid = rows(model, "-p", "8", "-n", "0", "-ub", "4,8", "-b", "8", "-ctk", "int8,f16", "-ctv", "f32", "-t", "2")
    found = [(row["n_ubatch"], row["type_k"], row["type_v"], row["n_threads"]) for row in grid]
    check(len(grid) == 8 and (4, "f16", "f32", 2) in found and (8, "int8", "f32", 1) in found, f"grid {found}")
    row = rows(model, "-p", "0", "-n", "6", "--step-times")[0]
    check(row["samples_ns"] and len(row["samples_ns"]) == 3 and len(row["step_ns"][0]) == 6, f"{row}")
    check(abs(row["avg_ts"] - sum(row["samples_ts"]) / 3) < 1e-6 * row["avg_ts"], "avg_ts is not the mean")
    check(row["ci_low_ts"] <= row["median_ts"] <= row["ci_high_ts"], "the median lies outside its interval")
    check(row["token_p50_ns"] <= row["token_p95_ns"] <= row["token_p99_ns"], "percentiles")
    check(row["limits"] is None and row["gen_bytes_per_s"] > 0, f"{row}")
    check("perplexity" in row and row["ttft_ns"] is None, f"{row}")
    prompt = rows(model, "-p", "8", "-n", "0")[0]
    check(prompt["ttft_ns"] > 0 and prompt["prompt_ops_per_s"] > 0 and prompt["ops_kind"] == "int8", f"{prompt}")


def check_formats(model):
    options = ["-p", "8", "-n", "2"]
    table = list(csv.DictReader(io.StringIO(bench(model, *options, "-o", "csv").stdout.decode())))
    check([row["n_prompt"] for row in table] == ["8", "0"], f"csv {table}")
    lines = [json.loads(line) for line in bench(model, *options, "-o", "jsonl").stdout.splitlines()]
    check([row["test"] for row in lines] == ["pp8", "tg2"], "jsonl")
    database = sqlite3.connect(":memory:")
    script = bench(model, *options, "-o", "sql").stdout.decode()
    database.executescript(script)
    database.executescript(script)  # a second run adds rows to the same table
    found = database.execute("SELECT n_prompt, avg_ts, test FROM quern_bench").fetchall()
    check(len(found) == 4 and found[0][0] == 8 and found[0][1] > 0, f"sql {found}")
    both = bench(model, *options, "-oe", "jsonl")
    check(b"| model" in both.stdout and b"verdict: " in both.stdout, f"md {both.stdout}")
    check(len([line for line in both.stderr.splitlines() if line.startswith(b"{")]) == 2, f"-oe {both.stderr}")
    noisy = bench(model, "-p", "8", "-n", "0", "-r", "1", "-o", "json")
    check(b"verdict: TOO NOISY" in noisy.stderr, f"silent about one repetition: {noisy.stderr}")
    check(json.loads(noisy.stdout)[0]["trusted"] is False, "trusted after one repetition")


def check_batched(model):
    found = rows(model, "-npl", "1,4", "-p", "8", "-n", "3")
    check([row["n_parallel"] for row in found] == [1, 4] and found[1]["gen_ts"] > 0, f"{found}")
    table = bench(model, "-npl", "1,3", "-p", "8", "-n", "3", "-d", "2").stdout.decode()
    check("S_PP t/s" in table and " 39 " in table, f"N_KV is 3 x 13: {table}")


def check_kinds(made):
    check([row["test"] for row in rows(made["bert"])] == ["pp64"] or rows(made["bert"])[0]["n_gen"] == 0, "encoder rows")
    check(rows(made["bert"], "-p", "8", "-n", "0", "-npl", "3")[0]["prompt_ts"] > 0, "an encoder with several sequences")
    both = rows(made["t5"], "-p", "8", "-n", "4")
    check([row["test"] for row in both] == ["pp8", "tg4"] and both[1]["n_source"] == 8, f"{both}")
    check(rows(made["t5"], "-pg", "8,4")[0]["gen_ts"] > 0, "encode and decode")
    error = bench(made["bert"], "-n", "4", expect=3).stderr.decode()
    check("an encoder generates nothing" in error, error)
    check(rows(made["gemma3"], "-p", "0", "-n", "4", "-d", "40")[0]["gen_ts"] > 0, "windows")
    check(rows(made["deepseek-v3"], "-p", "8", "-n", "4", "--deterministic")[0]["prompt_ops_per_s"] > 0, "latent attention")
    two = json.loads(run(QUERN, "bench", "-m", made["gemma"], "-m", made["t5"], *FAST, "-p", "8", "-n", "0", "-o",
                         "json").stdout)
    check(len({row["model_filename"] for row in two}) == 2, "two models")


def check_compare(model, folder):
    options = ["-p", "8", "-n", "4"]
    base = rows(model, *options)
    for row in base:
        row["samples_ts"] = [speed * 1000 for speed in row["samples_ts"]]
    path = folder / "base.json"
    path.write_text(json.dumps(base))
    slower = bench(model, *options, "--compare", path, expect=1)
    check(slower.stdout.count(b"SLOWER: ") == 2, f"{slower.stdout}")
    for row in base:
        row["samples_ts"] = [speed / 1e6 for speed in row["samples_ts"]]
    path.write_text("\n".join(json.dumps(row) for row in base))  # jsonl
    check(b"faster: " in bench(model, *options, "--compare", path).stdout, "1000 x faster is not faster")
    check(b"no row of the base" in bench(model, "-p", "9", "-n", "0", "--compare", path, expect=3).stderr, "no common row")
    for text in ("", "{", "[{}]", "[1]", json.dumps(base)[:-40]):
        path.write_text(text)
        error = bench(model, *options, "--compare", path, expect=3).stderr.decode()
        check("base.json" in error and error.count("\n") == 1, error)
    bench(model, *options, "--compare", folder / "missing.json", expect=3)


def wrapper(folder, name, line):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def check_against(model, folder):
    options = ["-p", "0", "-n", "32", "--budget", "20", "-o", "json"]
    clean = wrapper(folder, "clean", f'unset QUERN_BENCH_SLOWDOWN; exec "{QUERN}" "$@"')
    result = bench(model, *options, "--against", clean, expect=1, env={"QUERN_BENCH_SLOWDOWN": "2"})
    row = json.loads(result.stdout)[0]
    check(row["outcome"] == "SLOWER" and row["ci_low"] > 1.5 and len(row["mine_ns"]) >= 20, f"{row}")
    slow = wrapper(folder, "slow", f'QUERN_BENCH_SLOWDOWN=2 exec "{QUERN}" "$@"')
    check(json.loads(bench(model, *options, "--against", slow).stdout)[0]["outcome"] == "faster", "the other way round")
    for name, line, word in (("not-quern", "echo hello", "does not answer as a bench worker"),
                             ("silent", "exit 0", "does not answer as a bench worker"),
                             ("dies", f"echo quern-bench-worker 1 1; exit 0", "ended before its time"),
                             ("other-rows", f"echo quern-bench-worker 1 7; cat > /dev/null", "measures other rows")):
        error = bench(model, *options, "--against", wrapper(folder, name, line), expect=4).stderr.decode()
        check(word in error, f"{name}: {error}")
    bench(model, *options, "--against", folder / "missing", expect=4)


def check_worker(model):
    child = subprocess.Popen([QUERN, "bench", "-m", model, "-p", "8", "-n", "2", "-t", "1", "--worker"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check(child.stdout.readline() == b"quern-bench-worker 1 2\n", "greeting")
    for row in (b"1\n", b"0\n"):
        child.stdin.write(row)
        child.stdin.flush()
        check(int(child.stdout.readline()) > 0, "a time")
    child.stdin.close()
    check(child.wait(timeout=60) == 0, "exit at the end of its input")
    for line in (b"2\n", b"-1\n", b"x\n", b"\n"):
        bad = run(QUERN, "bench", "-m", model, "-t", "1", "-p", "8", "-n", "2", "--worker", stdin=line, expect=3)
        check(b"not a row" in bad.stderr, f"{bad.stderr}")


def check_refusals(model):
    for options in (["-p", "x"], ["-p", "1-"], ["-p", "0-8*2"], ["-p", "99999999999999999999"], ["-n", "-1"],
                    ["-d", "1-100000"], ["-t", "0"], ["-t", "5000"], ["-ub", "0"], ["-r", "0"], ["-pg", "1"], ["-npl", "0"],
                    ["-npl", "100000"], ["-o", "xml"], ["-oe", "xml"], ["-ctk", "int3"], ["-p", "0", "-n", "0"],
                    ["--effect", "nan"], ["--budget", "0"], ["--limits", "--no-limits"], ["--isa", "mmx"],
                    ["-p", "1-999", "-ub", "1-999"], ["--against", "x", "--compare", "y"], ["--eval-tokens", "1"]):
        error = run(QUERN, "bench", "-m", model, *options, expect=2).stderr.decode()
        check(error.count("\n") == 1 and error.startswith("quern: error: "), f"{options}: {error}")
    error = bench(model, "-p", "0", "-n", "4", "-d", "1000000", expect=3).stderr.decode()
    check("got 1000004 tokens" in error and "-c N" in error, error)
    run(QUERN, "bench", expect=2)
    run(QUERN, "bench", "-m", model / "missing", expect=3)


def check_limits(folder):
    env = {"XDG_CACHE_HOME": str(folder / "cache")}
    text = run(QUERN, "bench", "--limits", "-t", "1", env=env).stdout.decode()
    check(text.startswith("limits of 1 thread ") and "GB/s" in text, text)
    stored = json.loads((folder / "cache/quern/limits.json").read_text())
    check(len(stored) == 1 and all(stored[0][key] > 0 for key in ("read_bytes_per_s", "int8_ops_per_s", "f32_ops_per_s")),
          f"{stored}")
    (folder / "cache/quern/limits.json").write_text("[{}]")
    run(QUERN, "bench", "--limits", "-t", "1", env=env, expect=3)


def check_eval(model, folder):
    (folder / "text").write_text("A text that says little. " * 20)
    error = run(QUERN, "bench", "-m", model, *FAST, "-p", "8", "-n", "0", "--eval", folder / "text", expect=None)
    check(error.returncode in (0, 3), f"{error.stderr}")  # fixtures have no tokenizer
    if error.returncode == 3:
        check(b"no tokenizer" in error.stderr, f"{error.stderr}")


def check_signals(model):
    for number in (signal.SIGINT, signal.SIGTERM):
        child = subprocess.Popen([QUERN, "bench", "-m", model, "-r", "100000", "-p", "8", "-n", "0", "-t", "1", "--no-limits",
                                  "-o", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        check(child.returncode == -number, f"signal {number}: exit {child.returncode}")
        if out:  # what was measured until then
            check(json.loads(out)[0]["trusted"] is False and b"interrupted" in err, f"{err}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = models(folder)
        check_rows(made["gemma"])
        check_formats(made["gemma"])
        check_batched(made["gemma"])
        check_kinds(made)
        check_compare(made["gemma"], folder)
        check_worker(made["gemma"])
        check_against(made["gemma"], folder)
        check_refusals(made["gemma"])
        check_limits(folder)
        check_eval(made["gemma"], folder)
        check_signals(made["gemma"])
    print("bench: rows, formats, batched, kinds of models, compare, against, worker, refusals, limits, signals")


main()
