"""Where the programs write: links, streams, full disks, file size limits, signals and dead processes; results that are
no numbers; inputs too long to tokenize. Nothing half-written stays, nothing of others is touched."""
import atexit
import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from harness import CONVERT, QUERN, SOURCE, check, run

FIXTURES = SOURCE / "tests/data/fixtures"
WORD_LEVEL = {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
              "post_processor": None, "decoder": None,
              "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "b": 2, "c": 3}, "unk_token": "<unk>"}}


def copy_of(name, folder, tokenizer=False, huge_norms=False):
    """A fixture with a tokenizer, or with norms that overflow what comes after them."""
    shutil.copytree(FIXTURES / name, folder)
    if tokenizer:
        (folder / "tokenizer.json").write_text(json.dumps(WORD_LEVEL))
    if huge_norms:
        data = bytearray((folder / "model.safetensors").read_bytes())
        size = struct.unpack("<Q", data[:8])[0]
        for tensor, entry in json.loads(data[8:8 + size]).items():
            if "norm" in tensor.lower() and tensor.endswith("weight"):
                begin, end = (8 + size + at for at in entry["data_offsets"])
                data[begin:end] = struct.pack("<f", 3e38) * ((end - begin) // 4)
        (folder / "model.safetensors").write_bytes(data)
    return folder


def converted(tmp, name, **options):
    source = copy_of(name, tmp / f"source-{name}-{len(list(tmp.iterdir()))}", **options)
    target = tmp / f"model{source.name[6:]}"
    run(CONVERT, source, target, "--type", "f32", "-q")
    return target


def one_line(result, code, *words):
    lines = result.stderr.decode(errors="replace").splitlines()
    check(result.returncode == code, f"{result.args}: exit {result.returncode}, expected {code}: {lines}")
    check(len(lines) == 1 and len(lines[0]) < 400, f"{result.args}: {lines}")
    for word in words:
        check(word in lines[0], f"{result.args}: no {word!r} in {lines[0]}")


def check_streams(model, tmp):
    folder = tmp / "streams"
    folder.mkdir()
    ids = tmp / "ids"
    expected = tmp / "expected.npy"
    run(QUERN, "logits", "-m", model, "--ids-file", ids, "-o", expected)
    whole = expected.read_bytes()
    logits = [QUERN, "logits", "-m", model, "--ids-file", ids, "-o"]
    (folder / "target").write_bytes(b"old")
    (folder / "link").symlink_to("target")
    run(*logits, folder / "link")
    check((folder / "link").is_symlink() and (folder / "target").read_bytes() == whole, "a link's target is replaced")
    for output in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        check(run(*logits, output).stdout == whole, f"-o {output} into a pipe")
        with open(folder / "log", "wb") as out:
            out.write(b"head")
            out.flush()
            subprocess.run([*logits, output], stdout=out, check=True)
        check((folder / "log").read_bytes() == b"head" + whole, f"-o {output} into a file that goes on")
    check(os.path.islink("/dev/stdout"), "/dev/stdout is a link still")
    run(*logits, "/dev/null")
    one_line(run(*logits, "/dev/full", expect=None), 4, "No space left")
    (folder / "full").symlink_to("/dev/full")
    one_line(run(*logits, folder / "full", expect=None), 4, "No space left")
    one_line(run(*logits, folder, expect=None), 4, "is a directory")
    one_line(run(*logits, folder / "absent" / "x.npy", expect=None), 4)
    for other in (folder / "target", folder / "link", folder / ".." / "streams" / "target"):
        one_line(run(*logits, folder / "target", "--hidden", other, expect=None), 2, "--hidden")
    check(sorted(p.name for p in folder.iterdir()) == ["full", "link", "log", "target"], "nothing else is left")


def limited(command, n_bytes, **options):
    def prepare():
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    return subprocess.run([str(c) for c in command], stderr=subprocess.PIPE, preexec_fn=prepare, timeout=100, **options)


def check_limits(model, tmp):
    folder = tmp / "limits"
    folder.mkdir()
    ids = tmp / "ids"
    (folder / "y.npy").write_bytes(b"old")
    for n_bytes in (0, 64, 8192):
        one_line(limited([QUERN, "logits", "-m", model, "--ids-file", ids, "-o", folder / "y.npy"], n_bytes), 4,
                 "File too large")
        one_line(limited([QUERN, "logits", "-m", model, "--ids-file", ids, "-o", folder / "x.npy"], n_bytes), 4)
        one_line(limited([CONVERT, FIXTURES / "llama3", folder / "m", "-q"], n_bytes), 4, "File too large")
    one_line(limited([QUERN, "embed", "-m", model, "--ids-file", ids, "-o", folder / "x.npy"], 64), 4)
    for words in (["embed", "-m", model, "--ids-file", ids], ["inspect", "-m", model], ["--help"],
                  ["run", "-m", model, "--ids-file", ids, "--output", "ids", "--no-timings", "-n", "5", "--temp", "0"]):
        with open(tmp / "out", "wb") as out:
            one_line(limited([QUERN, *words], 0, stdout=out), 4, "standard output")
        with open("/dev/full", "wb") as out:
            one_line(limited([QUERN, *words], 1 << 30, stdout=out), 4, "standard output")
    check([p.name for p in folder.iterdir()] == ["y.npy"] and (folder / "y.npy").read_bytes() == b"old",
          f"a limit leaves nothing: {list(folder.iterdir())}")


def blocked_writer(model, tmp, folder, number=1):
    """A process that has begun y.npy, the number-th, and waits for a reader of its second output."""
    process = subprocess.Popen([QUERN, "logits", "-m", model, "--ids-file", tmp / "ids", "-o", folder / "y.npy",
                                "--hidden", tmp / "fifo"], stderr=subprocess.PIPE)
    atexit.register(process.kill)   # a test that fails leaves nobody waiting
    for _ in range(5000):
        if sum(p.name.startswith(".y.npy.quern-") for p in folder.iterdir()) == number:
            time.sleep(0.02)
            return process
        check(process.poll() is None, "the writer waits for its reader")
        time.sleep(0.002)
    check(False, "the writer begins")


def check_signals(model, tmp):
    folder = tmp / "signals"
    folder.mkdir()
    os.mkfifo(tmp / "fifo")
    (folder / "y.npy").write_bytes(b"old")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        process = blocked_writer(model, tmp, folder)
        process.send_signal(number)
        process.communicate(timeout=20)
        check(process.returncode == -number, f"signal {number}: {process.returncode}")
        check([p.name for p in folder.iterdir()] == ["y.npy"], f"signal {number} leaves a temporary")
    for _ in range(3):
        process = blocked_writer(model, tmp, folder)
        living = blocked_writer(model, tmp, folder, 2)   # a second one does not disturb the first
        check(len(list(folder.iterdir())) == 3, "two writers, two temporaries")
        for each in (process, living):
            each.kill()
            each.communicate()
    check(len(list(folder.iterdir())) > 1, "SIGKILL leaves temporaries")
    run(QUERN, "logits", "-m", model, "--ids-file", tmp / "ids", "-o", folder / "y.npy")
    check([p.name for p in folder.iterdir()] == ["y.npy"], "the next run removes them")


def check_numbers(tmp):
    ids = tmp / "ids"
    decoder = converted(tmp, "llama3", huge_norms=True)
    one_line(run(QUERN, "logits", "-m", decoder, "--ids-file", ids, "-o", tmp / "n.npy", expect=None), 3,
             "not finite", "position 0")
    one_line(run(QUERN, "logits", "-m", decoder, "--ids-file", ids, "--hidden", tmp / "n.npy", expect=None), 3,
             "not finite", "position 0")
    one_line(run(QUERN, "embed", "-m", decoder, "--ids-file", ids, "-o", tmp / "n.npy", expect=None), 3, "not finite")
    one_line(run(QUERN, "embed", "-m", decoder, "--ids-file", ids, expect=None), 3, "not finite")
    for search in ([], ["--num-beams", "2"]):
        result = run(QUERN, "run", "-m", decoder, "--ids-file", ids, "--output", "ids", "--temp", "0", *search,
                     expect=3)
        check(b"not finite at step" in result.stderr, f"run {search}: {result.stderr}")
    encoder = converted(tmp, "bert", huge_norms=True)
    one_line(run(QUERN, "fill", "-m", encoder, "--ids-file", ids, "--mask-id", "1", expect=None), 3, "not finite",
             "ids:1")
    for mask in ("-5", "99999999999", "100000", "x"):
        one_line(run(QUERN, "fill", "-m", encoder, "--ids-file", ids, "--mask-id", mask, expect=None), 2, "--mask-id")
    check(not (tmp / "n.npy").exists(), "a rejected result leaves no file")


def check_lengths(tmp):
    model = converted(tmp, "llama3", tokenizer=True)
    text = tmp / "long.txt"
    text.write_bytes(b"a" * (4 << 20))
    for words in (["run", "-no-cnv", "-n", "3"], ["embed", "--no-truncate"]):
        one_line(run(QUERN, *words, "-m", model, "-f", text, expect=None), 3, "too long a text")
    run(QUERN, "embed", "-m", model, "-f", text)
    (tmp / "many").write_text("1 " * 3000)
    source = converted(tmp, "bart")
    files = {"--ids-file": tmp / "ids", "--encoder-ids-file": tmp / "ids"}
    for option in files:
        words = [str(w) for pair in {**files, option: tmp / "many"}.items() for w in pair]
        one_line(run(QUERN, "logits", "-m", source, *words, "-o", tmp / "n.npy", expect=None), 3, "many: ",
                 "got 3000")
    (tmp / "bad").write_text("0 1 99")
    (tmp / "three").write_text("1 2 3")
    encoder = converted(tmp, "bert")
    one_line(run(QUERN, "logits", "-m", encoder, "--ids-file", tmp / "three", "--token-types-file", tmp / "bad", "-o",
                 tmp / "n.npy", expect=None), 3, "bad:", "token type out of range")
    (tmp / "bad").write_text("0 1 -9")
    one_line(run(QUERN, "logits", "-m", model, "--ids-file", tmp / "three", "--doc-ids", tmp / "bad", "-o",
                 tmp / "n.npy", expect=None), 3, "bad:", "document number out of range")


def check_long_names(model, tmp):
    """Longer than a file system takes: one line and exit code 4, or 3 where a model is read, of every command."""
    name = tmp / ("x" * 300)
    logits = ["logits", "-m", model, "--ids-file", tmp / "ids"]
    for words in ([*logits, "-o", f"{name}.npy"], [*logits, "-o", tmp / "n.npy", "--hidden", f"{name}.npy"],
                  ["embed", "-m", model, "--ids-file", tmp / "ids", "-o", f"{name}.npy"],
                  ["embed", "-m", model, "--ids-file", tmp / "ids", "-o", f"{name}.jsonl"],
                  ["run", "-m", model, "--ids-file", tmp / "ids", "-n", "1", "--output", "ids", "--prompt-cache", name]):
        one_line(run(QUERN, *words, expect=None), 4, "xxx", "too long")
    check(run(CONVERT, FIXTURES / "llama3", name, "-q", expect=None).returncode in (3, 4), "a target's name")
    (tmp / "n.npy").unlink(missing_ok=True)


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        (tmp / "ids").write_text(" ".join(str(1 + i % 7) for i in range(24)))
        model = converted(tmp, "llama3")
        check_streams(model, tmp)
        check_limits(model, tmp)
        check_signals(model, tmp)
        check_numbers(tmp)
        check_lengths(tmp)
        check_long_names(model, tmp)
    print("outputs: links, streams, limits, signals, numbers, lengths and long names")


main()
