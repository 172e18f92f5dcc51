"""`quern batch` and its files: what may not be the output, what a resumed run must share, locks, permissions, signals, an
input that changes."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from batch_case import Case, slow_case, started, summary_there
from batch_model import Batch, ended, errors, files_of, lines_of, make_model, rejected, summary
from harness import check


def check_signals(tmp, model):
    """G9, G10: once ends cleanly, twice at once."""
    folder, source, batch = slow_case(tmp, model)
    out = folder / "out.jsonl"
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        out.unlink(missing_ok=True)
        process = started(batch, source, out)
        begin = time.time()
        process.send_signal(number)
        result = ended(process)
        check(result.returncode == -number, f"signal {number}: {result.returncode} {result.stderr}")
        check(time.time() - begin < 5, f"signal {number}: {time.time() - begin:.1f} s")
        done, failed, remaining, total = summary(result)
        check(done == len(lines_of(out)) > 0 and total == 3000 and not errors(result), f"{result.stderr}")
        process = batch.start(source, out, "--resume")
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        again = ended(process)
        if summary_there(again):
            check(summary(again)[0] >= done, f"resumed after {number}: {again.stderr}")
    out.unlink()
    process = started(batch, source, out)
    os.kill(process.pid, signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    os.kill(process.pid, signal.SIGCONT)
    check(ended(process).returncode in (-signal.SIGINT, -signal.SIGTERM), "two signals")


def check_locks(tmp, model):
    """G11, G12."""
    folder, source, batch = slow_case(tmp, model)
    out = folder / "out.jsonl"
    first = started(batch, source, out)
    for option in ("--resume", "--overwrite"):
        rejected(batch.run(source, out, option, expect=None), 4, f"locked by pid {first.pid}")
    check(first.poll() is None, "the first was disturbed")
    first.kill()
    ended(first)
    n = len(out.read_bytes().splitlines())
    second = batch.start(source, out, "--resume")
    time.sleep(1.0)
    second.send_signal(signal.SIGINT)
    result = ended(second)
    check(not errors(result) and len(lines_of(out)) >= n - 1, f"the lock outlives its holder: {result.stderr}")


def check_names(case, model):
    """G13, G14, G16: nothing is touched, and the model is not even loaded."""
    out, source = case.out, case.input
    data = source.read_bytes()
    case.fresh()
    link, hard = case.folder / "link", case.folder / "hard"
    link.symlink_to(source)
    os.link(source, hard)
    for name in (source, link, hard, f"{case.folder}/./in.jsonl", f"{case.folder}/work/../in.jsonl"):
        for option in ([], ["--overwrite"], ["--resume"]):
            rejected(case.batch.run(source, name, *option, expect=None), 2, "is the input itself")
    hidden = case.folder / "x.manifest"
    os.rename(source, hidden)
    rejected(case.batch.run(hidden, case.folder / "x", expect=None), 2, "is the input itself")
    os.rename(hidden, source)
    with open(source) as stdin, open(source, "a") as stdout:
        result = subprocess.run(case.batch.command("-", "-"), stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)
        rejected(result, 2, "is the input itself")
    rejected(case.batch.run(source, model / "model.quern", "--overwrite", expect=None), 2, "file of the model")
    check(source.read_bytes() == data, "the input was touched")
    out.write_bytes(b"precious\n")
    rejected(case.batch.run(source, out, expect=None), 2, "exists", "--resume")
    rejected(case.batch.run(source, out, "--resume", expect=None), 3, "no manifest")
    check(out.read_bytes() == b"precious\n" and len(list(out.parent.iterdir())) == 1, "an existing output was touched")
    rejected(case.batch.run(source, out, "--resume", "--overwrite", expect=None), 2)
    case.batch.run(source, out, "--overwrite", expect=1)
    case.same("--overwrite")
    out.write_bytes(b"")
    pathlib.Path(f"{out}.manifest").unlink()
    case.batch.run(source, out, expect=1)
    case.same("an empty file counts as none")
    rejected(Batch("/nonexistent").run(source, case.folder / "y", expect=None), 3)
    check(not (case.folder / "y").exists(), "an output without a model")


def check_permissions(case):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("note: G16 is not run: needs root and setpriv")
        return
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    place = case.folder / "readonly"
    place.mkdir()
    os.chmod(place, 0o555)
    for command in (case.batch.command(case.input, place / "out"),):
        rejected(subprocess.run(nobody + command, capture_output=True), 4, "Permission denied")
    case.finished()
    os.chmod(case.out, 0o444)
    files = files_of(case.out.parent)
    for option in ("--resume", "--overwrite"):
        begin = time.time()
        rejected(subprocess.run(nobody + case.batch.command(case.input, case.out, option), capture_output=True), 4, "Permission denied")
    check(files_of(case.out.parent) == files, "read-only files were changed")


def check_other_runs(case, model, other, tmp):
    """G15: another model, other options, other lines: an error that says what, nothing written."""
    system = case.folder / "system.txt"
    system.write_text("one")
    batch = Batch(model, "-n", "6", "--system-file", system)
    partial = lambda: os.truncate(case.out, case.out.read_bytes().find(b"\n") + 1)
    case.fresh()
    batch.run(case.input, case.out, expect=1)
    partial()
    files = files_of(case.out.parent)

    def refused(changed, *words, source=case.input):
        rejected(changed.run(source, case.out, "--resume", expect=None), 3, "output was made with", *words)
        check(files_of(case.out.parent) == files, f"{words}: something was written")
    refused(Batch(other, "-n", "6", "--system-file", system), "the model")
    for named, options in (("--predict", ("-n", "7")), ("--temp", ("-n", "6", "--temp", "0.1")), ("--seed", ("-n", "6", "-s", "4")),
                           ("--cache-type-k", ("-n", "6", "-ctk", "f32")), ("--unordered", ("-n", "6", "--unordered")),
                           ("--ids", ("-n", "6", "--ids")), ("--stop", ("-n", "6", "--stop", "x")), ("--ctx-size", ("-n", "6", "-c", "128"))):
        refused(Batch(model, *options, "--system-file", system), named)
    system.write_text("two")
    refused(batch, "--system")
    system.write_text("one")
    lines = case.input.read_bytes().splitlines(keepends=True)
    other_input = case.folder / "other.jsonl"
    for changed in (lines[:-1], [lines[1], lines[0], *lines[2:]], [b'{"prompt": "new", "id": "k0"}\n', *lines[1:]],
                    [*lines[:-1], b'{"prompt": "new", "id": "k11"}\n'], [b'"inserted"\n', *lines]):
        other_input.write_bytes(b"".join(changed))
        refused(batch, "input", source=other_input)
    edited = json.loads((model / "model.json").read_text())
    edited["chat"]["jinja"] = "{{ messages[0].content }}"
    copy = tmp / "edited"
    shutil.copytree(model, copy)
    (copy / "model.json").write_text(json.dumps(edited))
    refused(Batch(copy, "-n", "6", "--system-file", system), "the model")
    # More lines may follow; what does not change answers may change.
    other_input.write_bytes(b"".join(lines) + b'{"prompt": "one more", "id": "more"}\n')
    result = batch.run(other_input, case.out, "--resume", "-np", "7", "-t", "2", "-ub", "8", expect=1)
    check(summary(result) == (11, 2, 0, 13), f"{result.stderr}")
    fresh = case.folder / "grown.out"
    batch.run(other_input, fresh, expect=1)
    check(fresh.read_bytes() == case.out.read_bytes(), "a grown input")
    text = pathlib.Path(f"{case.out}.manifest").read_text()
    for damaged in ("", "{}\n{}\n", text[:100], text.replace("quern_batch\":1", "quern_batch\":2"), text.replace("digest", "digits")):
        pathlib.Path(f"{case.out}.manifest").write_text(damaged)
        rejected(batch.run(other_input, case.out, "--resume", expect=None), 3, "manifest")


def check_changed_input(tmp, model):
    """G23: the input is a snapshot; a run whose input changes ends, and goes on when it is what it was."""
    def append(path):
        with open(path, "a") as out:
            out.write('{"prompt": "more", "id": "more"}\n')

    def replace(path):
        path.with_suffix(".new").write_bytes(path.read_bytes())
        os.replace(path.with_suffix(".new"), path)
    for name, change in (("truncated", lambda p: os.truncate(p, 2000)), ("grown", append), ("replaced", replace),
                         ("removed", lambda p: p.unlink()), ("touched", lambda p: os.utime(p))):
        folder, source, batch = slow_case(tmp, model)
        out, copy = folder / "out.jsonl", source.read_bytes()
        process = started(batch, source, out)
        change(source)
        result = ended(process)
        rejected(result, 3, "in.jsonl", "input")
        check(summary(result)[0] == len(lines_of(out)), f"{name}: {result.stderr}")
        source.write_bytes(copy)
        process = batch.start(source, out, "--resume")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        check(not errors(ended(process)), f"{name}: not resumed")


def check_descriptors(case):
    """A5: with 0, 1 and 2 closed nothing lands in the output."""
    case.fresh()
    command = " ".join(f"'{word}'" for word in case.batch.command(case.input, case.out))
    result = subprocess.run(["sh", "-c", f"exec {command} 0<&- 1>&- 2>&-"])
    check(result.returncode == 1, f"closed descriptors: {result.returncode}")
    case.same("closed descriptors")


def main():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        tmp = pathlib.Path(name)
        model, other = make_model(tmp), make_model(tmp, "qwen3")
        case = Case(tmp, model)
        check_names(case, model)
        check_permissions(case)
        check_descriptors(case)
        check_other_runs(Case(tmp, model), model, other, tmp)
        check_signals(tmp, model)
        check_locks(tmp, model)
        check_changed_input(tmp, model)
    print("batch files: names, permissions, descriptors, other runs, signals, locks, changed inputs")


main()
