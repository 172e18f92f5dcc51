"""Sessions of `quern chat` under every way to fail (I9): SIGKILL, ENOSPC and EIO at each system call of a save, a full
disk, files cut and changed at many places. What was saved before stays whole, nothing is left beside it, and the chat
goes on from it with the same tokens. Needs strace; a full disk needs root."""
import os
import pathlib
import random
import subprocess
import tempfile

from batch_case import strace_works
from batch_disk import strace
from batch_model import make_model
from harness import QUERN, check, run, skip

CALLS = ("write", "pwrite64", "fsync", "renameat2")


class Chat:
    def __init__(self, folder):
        self.folder = folder
        self.model = make_model(folder)
        self.place = folder / "sessions"
        self.file = self.place / "chat.qs"
        self.env = {"XDG_STATE_HOME": str(folder / "state")}
        self.place.mkdir()
        self.pipe(["one"], "--session", self.file)
        self.before = self.file.read_bytes()
        self.whole = self.pipe(["two"], "--session", self.file).stdout
        self.after = self.file.read_bytes()
        check(self.before != self.after and self.whole.strip(), "two saved chats")

    def command(self, *options):
        return [str(c) for c in (QUERN, "chat", "-m", self.model, "-t", "1", "-s", "5", "-n", "6", *options)]

    def pipe(self, lines, *options, expect=0, before=()):
        text = "".join(line + "\n" for line in lines).encode()
        return run(*before, *self.command(*options), stdin=text, expect=expect, env=self.env)

    def fresh(self):
        for path in self.place.iterdir():
            path.unlink()
        self.file.write_bytes(self.before)

    def whole_file(self, what):
        """The session is the one before or the one behind the save, and a chat goes on with it."""
        data = self.file.read_bytes()
        check(data in (self.before, self.after), f"{what}: a file of {len(data)} bytes that is neither")
        shown = self.pipe(["/show"], "--session", self.file, "--simple-io").stdout
        check(b"[1] user\none\n" in shown, f"{what}: {shown!r}")
        left = sorted(p.name for p in self.place.iterdir())
        check(left == ["chat.qs"], f"{what} leaves {left}")
        return data == self.after


def check_faults(chat, fault, code):
    """The fault at the n-th call of each kind until a run gets through."""
    n_faults = 0
    for call in CALLS:
        for n in range(1, 60):
            chat.fresh()
            command = strace(f"{call}:{fault}:when={n}") + chat.command("--session", chat.file)
            result = subprocess.run(command, input=b"two\n", capture_output=True, timeout=120, env={**os.environ, **chat.env})
            if result.returncode == 0:
                break
            n_faults += 1
            check(result.returncode in code, f"{fault} at {call} {n}: exit {result.returncode} {result.stderr[-300:]}")
            if 4 in code:
                lines = [x for x in result.stderr.decode().splitlines() if "error: " in x]
                check(len(lines) <= 1, f"{fault} at {call} {n}: {result.stderr}")
            chat.whole_file(f"{fault} at {call} {n}")
        check(result.returncode == 0, f"{call}: {n} faults are not enough")
    return n_faults


def check_full_disk(chat):
    """A save that does not fit: exit code 4 from a pipe, the old file whole; with room it is done."""
    place = chat.folder / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True).returncode != 0:
        return "no full disk (no mount)"
    try:
        file, filler = place / "chat.qs", place / "filler"
        file.write_bytes(chat.before)
        with open(filler, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(bytes(1024))
            except OSError:
                pass
        result = chat.pipe(["two"], "--session", file, expect=4)
        check(b"No space left" in result.stderr and result.stderr.count(b"error: ") == 1, f"{result.stderr}")
        check(result.stdout == chat.whole, f"the answer was shown: {result.stdout!r}")
        check(file.read_bytes() == chat.before, "the session on a full disk was changed")
        check(sorted(p.name for p in place.iterdir()) == ["chat.qs", "filler"], "something is left on the full disk")
        filler.unlink()
        check(chat.pipe(["two"], "--session", file).stdout == chat.whole, "another answer when there is room again")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
    return "a full disk"


def check_damage(chat):
    """Cut at 64 points, a bit flipped at 64: refused with one line, the file stays."""
    r, n = random.Random(7), 0
    size = len(chat.after)
    for i in range(64):
        flipped = bytearray(chat.after)
        flipped[size * i // 64 + r.randrange(max(1, size // 64))] ^= 1 << r.randrange(8)
        for data in (chat.after[:size * i // 64], bytes(flipped)):
            chat.file.write_bytes(data)
            result = chat.pipe(["hello"], "--session", chat.file, expect=3)
            check(result.stderr.count(b"\n") == 1 and result.stdout == b"", f"{len(data)} bytes: {result.stderr}")
            check(chat.file.read_bytes() == data, "a refused session was changed")
            n += 1
    return n


def main():
    if not strace_works():
        skip("strace does not work here")
    with tempfile.TemporaryDirectory() as name:
        chat = Chat(pathlib.Path(name))
        killed = check_faults(chat, "signal=KILL", (-9, 137))
        failed = sum(check_faults(chat, f"error={error}", (4,)) for error in ("ENOSPC", "EIO"))
        full = check_full_disk(chat)
        damaged = check_damage(chat)
        chat.fresh()
        check(chat.pipe(["two"], "--session", chat.file).stdout == chat.whole, "the same tokens after all")
    print(f"chat sessions: {killed} kills, {failed} failed calls, {damaged} damaged files, {full}")


main()
