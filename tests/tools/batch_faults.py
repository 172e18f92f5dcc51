"""`quern batch` under every way to die: SIGKILL at each write, power loss (replayed from a trace), torn ends, damage, full
disks, size limits, closed pipes, EIO, signals, locks, permissions, changed inputs. After each of them a resumed run ends
with the bytes of an undisturbed one, or with an error and nothing changed. Needs strace; a few rows need root."""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from batch_disk import CALLS, Disk, strace, traced
from batch_model import Batch, digest, ended, errors, files_of, lines_of, make_model, rejected, summary, write_lines
from harness import QUERN, SOURCE, check, run, skip

FULL = "--full" in sys.argv
def strace_works():
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


class Case:
    """An input, the bytes that an undisturbed run makes of it, and a folder for the disturbed ones."""

    def __init__(self, tmp, model, n=12, *options):
        self.folder = tmp / f"case-{len(list(tmp.iterdir()))}"
        self.folder.mkdir()
        lines = [{"prompt": f"line {i} {'ab' * (i % 5)}", "id": f"k{i}"} for i in range(n)]
        lines[5] = '{"prompt": 7, "id": "wrong"}'
        lines[7] = "not JSON"
        self.n = n
        self.input = write_lines(self.folder / "in.jsonl", lines)
        self.batch = Batch(model, "-n", "6", "-np", "3", "--sync-every", "2", *options)
        self.out = self.folder / "work" / "out.jsonl"
        self.fresh()
        result = self.batch.run(self.input, self.out, expect=1)
        check(summary(result) == (n - 2, 2, 0, n), f"{result.stderr}")
        self.expected = self.out.read_bytes()
        self.manifest = (self.folder / "work" / "out.jsonl.manifest").read_bytes()
        self.fresh()

    def fresh(self):
        shutil.rmtree(self.out.parent, ignore_errors=True)
        self.out.parent.mkdir()

    def finished(self):
        """A folder as the undisturbed run leaves it."""
        self.fresh()
        self.out.write_bytes(self.expected)
        pathlib.Path(f"{self.out}.manifest").write_bytes(self.manifest)

    def same(self, what):
        got = self.out.read_bytes()
        if b"--unordered" in " ".join(self.batch.options).encode():
            check(sorted(got.splitlines()) == sorted(self.expected.splitlines()), f"{what}: other lines")
        else:
            check(got == self.expected, f"{what}: {len(got)} bytes, expected {len(self.expected)}")
        left = sorted(p.name for p in self.out.parent.iterdir())
        check(set(left) <= {"out.jsonl", "out.jsonl.manifest", "out.jsonl.torn"}, f"{what} leaves {left}")

    def resume(self, what, *options):
        result = self.batch.run(self.input, self.out, "--resume", *options, expect=None)
        check(result.returncode == 1, f"{what}: resume exits {result.returncode}: {result.stderr}")
        check(summary(result) == (self.n - 2, 2, 0, self.n), f"{what}: {result.stderr}")
        self.same(what)
        return result

    def whole_lines(self, what):
        """What a fault leaves: whole lines of the expected ones (a torn end aside), each valid."""
        data = self.out.read_bytes() if self.out.exists() else b""
        whole = data[:data.rfind(b"\n") + 1]
        expected = set(self.expected.splitlines(keepends=True))
        check(all(line in expected for line in whole.splitlines(keepends=True)), f"{what}: a line that is none")
        return len(whole.splitlines())


def check_kills(case):
    """G1: SIGKILL at the n-th call of each kind, until a run gets through; then resumed."""
    n_kills = 0
    for call in CALLS:
        for n in range(1, 200):
            case.fresh()
            command = strace(f"{call}:signal=KILL:when={n}") + case.batch.command(case.input, case.out)
            result = subprocess.run(command, capture_output=True, timeout=60)
            if result.returncode == 1:
                break
            check(result.returncode in (-9, 137), f"{call} {n}: {result.returncode} {result.stderr}")
            n_kills += 1
            case.whole_lines(f"killed at {call} {n}")
            case.resume(f"killed at {call} {n}")
        check(result.returncode == 1 and (n > 1 or call == "ftruncate"), f"{call}: {n} kills are not enough")
    return n_kills


def check_random_kills(case, n):
    """G1: SIGKILL at random times, again and again, until the work is done."""
    random.seed(11)
    kills = rounds = 0
    while kills < n:
        case.fresh()
        rounds += 1
        while True:
            process = case.batch.start(case.input, case.out, *(["--resume"] if case.out.exists() else []))
            try:
                process.wait(timeout=random.uniform(0.005, 0.4))
            except subprocess.TimeoutExpired:
                process.kill()
            result = ended(process)
            if result.returncode == 1:
                break
            check(result.returncode == -9, f"{result.returncode} {result.stderr}")
            kills += 1
            case.whole_lines("a random kill")
        case.same("random kills")
    return kills


def check_power(case):
    """G2: at every point of a run, everything unsynced is dropped, kept in part, or torn."""
    case.fresh()
    calls = traced(case)
    check(sum(c[0] == "fsync" for c in calls) > 4 and sum(c[0] == "write" for c in calls) >= case.n, f"{len(calls)} calls")
    folder, random_ = str(case.out.parent), random.Random(3)
    choices = [lambda n: [0] * n, lambda n: [1] * n, lambda n: [random_.choice((0, 1)) for _ in range(n)],
               lambda n: [1] * (n - 1) + [random_.random()] * (n > 0)]
    n_crashes, seen = 0, set()
    for cut in range(len(calls) + 1):
        for choose in choices:
            disk = Disk()
            disk.inode(str(case.out))
            for call in calls[:cut]:
                disk.apply(*call, folder=folder)
            files = disk.crash(choose)
            state = tuple(sorted(files.items()))
            if state in seen:
                continue
            seen.add(state)
            case.fresh()
            for name, data in files.items():
                pathlib.Path(name).write_bytes(data)
            for leftover in case.out.parent.glob(".*"):
                leftover.unlink()
            n_crashes += 1
            case.resume(f"power failure after {cut} calls: {[(n, len(d)) for n, d in files.items()]}")
    return n_crashes


def check_torn(case):
    """G3: the last record cut at every byte. G4: damage in the middle."""
    lines = case.expected.splitlines(keepends=True)
    before = len(case.expected) - len(lines[-1])
    step = 1 if FULL else 7
    for cut in [*range(before, len(case.expected), step), len(case.expected) - 1, before + 1]:
        case.finished()
        os.truncate(case.out, cut)
        case.resume(f"cut at {cut}")
        torn = pathlib.Path(f"{case.out}.torn")
        check(torn.exists() == (cut > before), f"cut at {cut}: .torn")
        check(not torn.exists() or torn.read_bytes() == case.expected[before:cut] + b"\n", f"cut at {cut}: .torn holds another end")
    for place, new, word in ((3, b"x", "line 1 is not valid JSON"), (before - 4, b"\xff", f"line {len(lines) - 1} is not valid JSON"),
                             (len(lines[0]) - 1, b" ", "line 1"), (len(lines[0]), b"[", "line 2 is not valid JSON")):
        case.finished()
        data = bytearray(case.expected)
        data[place:place + 1] = new
        case.out.write_bytes(data)
        files = files_of(case.out.parent)
        rejected(case.batch.run(case.input, case.out, "--resume", expect=None), 3, word)
        check(files_of(case.out.parent) == files, "damage: something was changed")
    for data, word in ((lines[1] + lines[0], "line 1"), (lines[0] + lines[0], "line 2"), (lines[0] + b"{}\n", "line 2"),
                       (lines[0] + b"\n", "line 2"), (lines[0] + b'{"id": "batch_req_0000000000000000"}\n', "line 2")):
        case.finished()
        case.out.write_bytes(data)
        rejected(case.batch.run(case.input, case.out, "--resume", expect=None), 3, word)
        check(case.out.read_bytes() == data, "foreign lines: something was changed")


def check_repair(case):
    """G24: a fault while a torn end is repaired."""
    before = case.expected.rstrip(b"\n").rfind(b"\n") + 1
    n = 0
    for call in CALLS:
        for fault in ("signal=KILL", "error=ENOSPC", "error=EIO"):
            if fault != "signal=KILL" and call == "renameat2":
                continue
            for when in range(1, 5):
                case.finished()
                os.truncate(case.out, before + 20)
                result = subprocess.run(strace(f"{call}:{fault}:when={when}") + case.batch.command(case.input, case.out, "--resume"),
                                        capture_output=True, timeout=60)
                check(result.returncode in (1, 4, -9, 137), f"{call} {fault} {when}: {result.returncode} {result.stderr}")
                case.whole_lines(f"{call} {fault} {when}")
                case.resume(f"repair with {call} {fault} {when}")
                n += 1
    return n


def check_disk(case, model, tmp):
    """G5: a full disk; after there is room again a resumed run goes on. The input lies elsewhere."""
    place = case.folder / "disk"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True).returncode != 0:
        print("note: G5 is not run: tmpfs cannot be mounted")
        return
    try:
        big = [{"prompt": f"text {i}", "id": f"k{i}"} for i in range(400)]
        source = write_lines(case.folder / "big.jsonl", big)
        batch = Batch(model, "-n", "3", "-np", "8")
        out, reference = place / "out.jsonl", case.folder / "reference.jsonl"
        batch.run(source, reference)
        for options in ([], ["--resume"], ["--resume"]):
            result = batch.run(source, out, *options, expect=None)
            rejected(result, 4, "No space left")
            done, failed, remaining, total = summary(result)
            check(done == len(lines_of(out)) and remaining > 0 and total == 400, f"{result.stderr}")
        check(reference.read_bytes().startswith(out.read_bytes()), "what was written is not the beginning")
        subprocess.run(["mount", "-o", "remount,size=4m", place], check=True)
        check(summary(batch.run(source, out, "--resume")) == (400, 0, 0, 400), "resumed with room")
        check(out.read_bytes() == reference.read_bytes(), "other bytes after a full disk")
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def check_limits(case, model, tmp):
    """G6: RLIMIT_FSIZE. G7: /dev/full, a closed pipe. G8: EIO."""
    for limit in (0, 100, 1000, len(case.expected) // 2):
        case.fresh()
        result = subprocess.run(case.batch.command(case.input, case.out), capture_output=True, timeout=60,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        rejected(result, 4, "File too large")
        check(not case.out.exists() or case.out.read_bytes() == b"" or case.out.read_bytes().endswith(b"\n"), f"limit {limit}: half a line")
        n = case.whole_lines(f"limit {limit}")
        if summary_there(result):
            done, failed, _, _ = summary(result)
            check(done + failed == n, f"limit {limit}: {result.stderr}, {n} lines")
        case.resume(f"limit {limit}")
    case.fresh()
    result = case.batch.run(case.input, "/dev/full", expect=None)
    rejected(result, 4, "No space left")
    check(summary(result)[:2] == (0, 0), f"{result.stderr}")
    result = case.batch.run(case.input, "-", expect=1)
    check(result.stdout == case.expected, "standard output")
    with open(case.folder / "stdout", "wb") as stdout:
        stdout.write(b"head\n")
        stdout.flush()
        subprocess.run(case.batch.command(case.input, "/dev/stdout"), stdout=stdout, check=False)
    check((case.folder / "stdout").read_bytes() == b"head\n" + case.expected, "/dev/stdout into a file that goes on")
    _, source, batch = slow_case(tmp, model)
    for name in ("-", "/dev/stdout"):
        process = subprocess.Popen(batch.command(source, name), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        json.loads(process.stdout.readline())
        process.stdout.close()
        stderr = process.stderr.read()
        check(process.wait(timeout=60) == -signal.SIGPIPE and b"error" not in stderr, f"a closed pipe: {process.returncode} {stderr}")
        summary(subprocess.CompletedProcess([], 0, b"", stderr))


def summary_there(result):
    return b"remaining of" in result.stderr


def check_io_errors(case):
    """G8: a failed write or sync ends the run; lines behind the last good sync are done again."""
    for call in CALLS:
        for error in ("EIO", "ENOSPC"):
            for when in range(1, 40):
                case.fresh()
                result = subprocess.run(strace(f"{call}:error={error}:when={when}") + case.batch.command(case.input, case.out),
                                        capture_output=True, timeout=60)
                if result.returncode == 1:
                    break
                check(result.returncode == 4, f"{call} {error} {when}: {result.returncode} {result.stderr}")
                check(len(errors(result)) == 1 or call == "write", f"{call} {error} {when}: {result.stderr}")
                n = case.whole_lines(f"{call} {error} {when}")
                unsure = b"are unsure" in result.stderr
                done_again = case.resume(f"{call} {error} {when}")
                if unsure:
                    check(b"after a failed sync are done again" in done_again.stderr, f"{call} {error} {when}: {done_again.stderr}")
                    check(n > 0, "unsure lines are still there")
    case.fresh()
    result = subprocess.run(strace("fsync:error=EIO:when=5") + case.batch.command(case.input, case.out), capture_output=True)
    check(result.returncode == 4 and b"unsure" in result.stderr, f"a failed sync: {result.stderr}")


def slow_case(tmp, model):
    lines = [{"prompt": f"text {i}", "id": f"k{i}", "ignore_eos": True} for i in range(3000)]
    folder = tmp / f"slow-{len(list(tmp.iterdir()))}"
    folder.mkdir()
    return folder, write_lines(folder / "in.jsonl", lines), Batch(model, "-n", "200", "-np", "4", "--sync-every", "5")


def started(batch, source, out):
    """A process that has written something."""
    process = batch.start(source, out)
    for _ in range(6000):
        if out.exists() and out.stat().st_size > 0:
            return process
        check(process.poll() is None, f"it ended: {process.poll()}")
        time.sleep(0.005)
    process.kill()
    check(False, "it does not begin")


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
    edited["chat"]["template"] = "{{ messages[0].content }}"
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
    if not strace_works():
        skip("strace is absent or may not trace")
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        tmp = pathlib.Path(name)
        model, other = make_model(tmp), make_model(tmp, "qwen3")
        case = Case(tmp, model)
        check_names(case, model)
        check_permissions(case)
        check_descriptors(case)
        check_other_runs(Case(tmp, model), model, other, tmp)
        check_torn(case)
        counts = {"kills": check_kills(case), "repairs": check_repair(case), "power failures": check_power(case)}
        if FULL:
            counts["kills, unordered"] = check_kills(Case(tmp, model, 12, "--unordered"))
            counts["power failures, unordered"] = check_power(Case(tmp, model, 12, "--unordered"))
        counts["random kills"] = check_random_kills(Case(tmp, model, 120), 200 if FULL else 20)
        check_io_errors(case)
        check_limits(case, model, tmp)
        check_disk(case, model, tmp)
        check_signals(tmp, model)
        check_locks(tmp, model)
        check_changed_input(tmp, model)
    print("batch faults: " + ", ".join(f"{n} {what}" for what, n in counts.items()) +
          ", torn ends, damage, full disk, limits, pipes, EIO, signals, locks, names, permissions, other runs, changed inputs")


main()
