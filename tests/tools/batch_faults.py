"""`quern batch` under every way to die: SIGKILL at each write, power loss (replayed from a trace), torn ends, damage, full
disks, size limits, closed pipes, EIO. After each of them a resumed run ends with the bytes of an undisturbed one, or with
an error and nothing changed. Needs strace; a full disk needs root."""
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

from batch_case import Case, slow_case, strace_works, summary_there
from batch_disk import CALLS, Disk, strace, traced
from batch_model import Batch, ended, errors, files_of, lines_of, make_model, rejected, summary, write_lines
from harness import check, skip

FULL = "--full" in sys.argv


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
    """G1: SIGKILL at random times, again and again, until the work is done. The times follow the machine: a part of what
    an undisturbed run takes, longer where runs die before they write anything."""
    random.seed(11)
    case.fresh()
    begin = time.monotonic()
    case.batch.run(case.input, case.out, expect=1)
    most, kills = time.monotonic() - begin, 0
    while kills < n:
        case.fresh()
        n_lines = 0
        while True:
            process = case.batch.start(case.input, case.out, *(["--resume"] if case.out.exists() else []))
            try:
                process.wait(timeout=random.uniform(0.01, 1.0) * most)
            except subprocess.TimeoutExpired:
                process.kill()
            result = ended(process)
            if result.returncode == 1:
                break
            check(result.returncode == -9, f"{result.returncode} {result.stderr}")
            kills += 1
            before, n_lines = n_lines, case.whole_lines("a random kill")
            check(n_lines >= before, f"a kill lost lines: {before} were there, now {n_lines}")
            most *= 1.1 if n_lines == before else 0.98
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
    for place, new, word in ((1, b"x", "line 1 is not valid JSON"), (before - 4, b"\xff", f"line {len(lines) - 1} is not valid JSON"),
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


def main():
    if not strace_works():
        skip("strace is absent or may not trace")
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        model = make_model(tmp)
        case = Case(tmp, model)
        check_torn(case)
        counts = {"kills": check_kills(case), "repairs": check_repair(case), "power failures": check_power(case)}
        if FULL:
            counts["kills, unordered"] = check_kills(Case(tmp, model, 12, "--unordered"))
            counts["power failures, unordered"] = check_power(Case(tmp, model, 12, "--unordered"))
        counts["random kills"] = check_random_kills(Case(tmp, model, 120), 200 if FULL else 20)
        check_io_errors(case)
        check_limits(case, model, tmp)
        check_disk(case, model, tmp)
    print("batch faults: " + ", ".join(f"{n} {what}" for what, n in counts.items()) +
          ", torn ends, damage, full disk, limits, pipes, EIO")


main()
