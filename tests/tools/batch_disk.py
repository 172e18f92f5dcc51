"""Shared by tests of crashes: faults put into system calls with strace, what a run does to its files call by call, and a
disk that loses what was not synced."""
import re
import subprocess

CALLS = ("write", "pwrite64", "fsync", "ftruncate", "renameat2")


def strace(*rules):
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + ",".join(CALLS), "-e", "signal=none"]
    for rule in rules:
        words += ["-e", "inject=" + rule]
    return words


CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")
DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")


def unescaped(text):
    return bytes(int(pair, 16) for pair in re.findall(r"\\x([0-9a-f]{2})", text))


def traced(case, *options):
    """What a run does to the files of its output's folder, call by call."""
    log = case.folder / "trace"
    command = ["strace", "-f", "-y", "-xx", "-s", "10000000", "-o", str(log), "-e", "trace=unlink," + ",".join(CALLS), "-e", "signal=none"]
    subprocess.run(command + case.batch.command(case.input, case.out, *options), capture_output=True, timeout=120)
    folder, out = str(case.out.parent), []
    for line in log.read_text().splitlines():
        found = CALL.match(line)
        if not found or int(found.group(3)) < 0:
            continue
        call, words = found.group(1), found.group(2)
        if call in ("renameat2", "unlink"):
            names = [unescaped(x).decode() for x in re.findall(r'"([^"]*)"', words)]
            if names[-1].startswith(folder):
                out.append(("exchange" if "EXCHANGE" in words else call, *names))
            continue
        path = DESCRIPTOR.match(words)
        if not path:
            continue
        name = unescaped(path.group(1)).decode() if "\\x" in path.group(1) else path.group(1)
        if not name.startswith(folder):
            continue
        data = unescaped(re.search(r'"([^"]*)"', words).group(1)) if call in ("write", "pwrite64") else b""
        last = int(words.rsplit(", ", 1)[1]) if call in ("pwrite64", "ftruncate") else 0
        out.append((call, name, data, last))
    return out


class Disk:
    """Files whose unsynced changes may be lost: all, or any of them."""

    def __init__(self):
        self.now, self.durable = {}, {}       # name: inode
        self.data, self.synced, self.pending = {}, {}, {}  # inode: bytes, bytes, [(offset, bytes)]
        self.folder_pending = []

    def inode(self, name):
        if name not in self.now:
            inode = object()
            self.now[name] = inode
            self.data[inode] = self.synced[inode] = b""
            self.pending[inode] = []
        return self.now[name]

    @staticmethod
    def put(data, offset, more):
        return (data + bytes(max(0, offset - len(data))))[:offset] + more + data[offset + len(more):]

    def apply(self, call, name, *rest, folder):
        if call == "renameat2":
            self.now[rest[0]] = self.now.pop(name)
            return
        if call == "exchange":
            self.now[rest[0]], self.now[name] = self.now[name], self.now[rest[0]]
            return
        if call == "unlink":
            self.now.pop(name, None)
            return
        if call == "fsync" and name == folder:
            self.durable = dict(self.now)
            return
        inode = self.inode(name)
        if call == "fsync":
            self.synced[inode], self.pending[inode] = self.data[inode], []
            return
        data, last = rest
        if call == "ftruncate":
            self.data[inode] = self.synced[inode] = self.data[inode][:last]
            return
        offset = len(self.data[inode]) if call == "write" else last
        self.data[inode] = self.put(self.data[inode], offset, data)
        self.pending[inode].append((offset, data))

    def crash(self, choose):
        """The files after a power failure: choose(n) tells which of n unsynced writes reached the disk, and how far the
        last of them."""
        out = {}
        for name, inode in self.durable.items():
            data = self.synced[inode]
            pending = self.pending[inode]
            for keep, (offset, more) in zip(choose(len(pending)), pending):
                if keep > 0:
                    data = self.put(data, offset, more[:max(1, int(keep * len(more)))])
            out[name] = data
        return out
