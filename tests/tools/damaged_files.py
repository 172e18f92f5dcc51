"""Truncated, header-flipped, wrong-version, foreign or mismatched files: one error line and exit 3, never a crash;
a flipped data bit is found by `quern verify`; usage and environment faults have their own codes."""
import pathlib
import shutil
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

FIXTURES = SOURCE / "tests/data/fixtures"


def rejected(folder, what, code=3, command=("inspect",)):
    result = run(QUERN, *command, "-m", folder, expect=None)
    lines = result.stderr.decode().splitlines()
    check(result.returncode == code, f"{what}: exit {result.returncode}, expected {code}: {lines[-1:]}")
    check(len(lines) == 1 and lines[0].startswith("quern: error: ") and len(lines[0]) < 600, f"{what}: {lines}")
    return lines[0]


def variant(model, folder, change):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(model, folder)
    data = bytearray((folder / "model.quern").read_bytes())
    (folder / "model.quern").write_bytes(change(data))
    return folder


def flip(data, at):
    data[at] ^= 1
    return data


def failed_row(result, name):
    """The report of verify ends with the row of the check that failed, which says what the error line says."""
    rows = result.stdout.decode().splitlines()
    check(rows and rows[-1].split()[:2] == ["FAIL", name] and not any(row.startswith("FAIL") for row in rows[:-1]), f"rows {rows}")
    check(rows[-1].split(" s  ", 1)[1] in result.stderr.decode(), f"{rows[-1]} is not {result.stderr}")


def main():
    count = 0
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        source = FIXTURES / "llama2"
        model, other, bad = tmp / "m", tmp / "other", tmp / "bad"
        run(CONVERT, source, model, "--type", "q8")
        run(CONVERT, FIXTURES / "llama3", other, "--type", "q8")
        size = (model / "model.quern").stat().st_size
        for at in range(0, 128, 3):
            rejected(variant(model, bad, lambda d: flip(d, at)), f"header byte {at} flipped")
            count += 1
        for length in [0, 1, 7, 8, 63, 64, 65, 127, *range(200, size, max(1, size // 40)), size - 1]:
            rejected(variant(model, bad, lambda d: d[:length]), f"truncated to {length}")
            count += 1
        rejected(variant(model, bad, lambda d: d + b"x"), "trailing byte")
        for change in (lambda d: flip(d, 9), lambda d: d[:-1], lambda d: b"GGUF" + d[4:]):
            failed_row(run(QUERN, "verify", "--quick", variant(model, bad, change), expect=3), "files")
        check(not run(QUERN, "verify", tmp / "absent", expect=3).stdout, "a row for a model that is not there")
        for magic in (b"GGUF", b"PK\x03\x04", b"\x00" * 8):
            line = rejected(variant(model, bad, lambda d: magic + d[len(magic):]), f"magic {magic!r}")
            count += 1
        check("quern-convert" in rejected(variant(model, bad, lambda d: b"GGUF" + d[4:]), "GGUF magic"), "no hint")
        for at in range(256, size - 256, max(1, size // 9)):
            result = run(QUERN, "verify", "--quick", "-m", variant(model, bad, lambda d: flip(d, at)), expect=None)
            check(result.returncode == 3 and result.stderr.startswith(b"quern: error: "),
                  f"data bit at {at} of {size}: verify exits {result.returncode}")
            failed_row(result, "checksums")
            count += 1
        finer = tmp / "finer"   # the same architecture from the same checkpoint: only the checksum differs
        run(CONVERT, source, finer, "--type", "f32")
        rejected(variant(model, bad, lambda d: (finer / "model.quern").read_bytes()), "weights of another conversion")
        variant(model, bad, lambda d: d)
        shutil.copy(other / "model.json", bad / "model.json")
        rejected(bad, "contract of another model")
        (bad / "model.json").write_text((model / "model.json").read_text().replace('"d_model"', '"d_modle"'))
        line = rejected(bad, "misspelt key")
        check("d_modle" in line or "d_model" in line, line)
        (bad / "model.json").unlink()
        rejected(bad, "no contract")
        rejected(tmp / "absent", "no such model")
        for words, code in ((["run"], 2), (["run", "-m", model, "--threads", "0"], 2), (["rnu"], 2),
                            (["run", "-m", model, "--temp", "nan", "-p", "x"], 2), (["bench", "-m", model, "-d", "-1"], 2),
                            (["logits", "-m", model, "--isa", "avx9", "--ids-file", "/dev/null", "-o", tmp / "x"], 2),
                            (["logits", "-m", model, "--ids-file", tmp / "none", "-o", tmp / "x"], 3)):
            result = run(QUERN, *words, expect=None)
            check(result.returncode == code and len(result.stderr.splitlines()) == 1, f"{words}: {result}")
            count += 1
        (tmp / "ids").write_text("1 2 999999")
        result = run(QUERN, "logits", "-m", model, "--ids-file", tmp / "ids", "-o", tmp / "x.npy", expect=3)
        check(b"999999" in result.stderr and not (tmp / "x.npy").exists(), f"{result}")
        (tmp / "ids").write_text("1 2 3")
        for output in (model / "model.quern", model / "model.json", tmp / "ids"):
            run(QUERN, "logits", "-m", model, "--ids-file", tmp / "ids", "-o", output, expect=2)
            count += 1
        run(QUERN, "inspect", "-m", model)   # and the model is still whole
        result = run(CONVERT, source, model, "--type", "q8", expect=2)
        check(b"--force" in result.stderr, f"{result}")
    print(f"{count} damaged files and wrong uses: one line each, right exit code")


need()
main()
