"""Shared by the tests of what disturbs a batch: an input with the answers of an undisturbed run, runs that last."""
import pathlib
import shutil
import subprocess
import time

from batch_model import Batch, check, lines_of, summary, write_lines


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


def summary_there(result):
    return b"remaining of" in result.stderr


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
