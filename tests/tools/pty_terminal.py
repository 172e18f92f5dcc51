"""A program on a pseudo terminal, and the screen a person would see: enough of a terminal's codes for what quern
writes (line ends, cursor moves, erasing, SGR), and a failure for any other."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unicodedata

from harness import fail


class Screen:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.lines, self.row, self.column = [[]], 0, 0
        self.pending = b""

    def feed(self, data):
        text = self.pending + data
        try:
            text = text.decode()
            self.pending = b""
        except UnicodeDecodeError as error:
            self.pending = text[error.start:]
            text = text[:error.start].decode()
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])").match(text, at)
                if not found:
                    if len(text) - at < 12:
                        self.pending = text[at:].encode() + self.pending
                        return
                    fail(f"an escape sequence that quern never writes: {text[at:at + 20]!r}")
                self.control(found.group(1), found.group(2))
                at = found.end()
                continue
            self.put(text[at])
            at += 1

    def control(self, numbers, final):
        n = int(numbers) if numbers.isdigit() else 1
        line = self.line()
        if final == "A":
            self.row = max(0, self.row - n)
        elif final == "C":
            self.column = min(self.columns - 1, self.column + n)
        elif final == "J":
            if numbers == "2":
                self.lines = [[] for _ in self.lines]
            else:
                del line[self.column:]
                del self.lines[self.row + 1:]
        elif final == "K":
            del line[self.column:]
        elif final == "H":
            self.row = self.column = 0
        elif not (final == "m" or numbers.startswith("?2004")):
            fail(f"a control sequence that quern never writes: {numbers}{final}")

    def line(self):
        while len(self.lines) <= self.row:
            self.lines.append([])
        return self.lines[self.row]

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            self.line()
        elif ord(character) < 32 or 127 <= ord(character) < 160:
            if character not in "\t\x07":
                fail(f"a control character reached the terminal: {character!r}")
        else:
            width = 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.column + width > self.columns:
                self.row, self.column = self.row + 1, 0
            line = self.line()
            while len(line) < self.column:
                line.append(" ")
            line[self.column:self.column + width] = [character] + [""] * (width - 1)
            self.column += width

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


class Terminal:
    """arguments on a terminal of its own; expect() fails the test after a while."""

    def __init__(self, *arguments, rows=24, columns=80, env=None):
        self.master, slave = pty.openpty()
        self.slave = slave  # kept open: modes are compared after the program has ended
        self.modes = termios.tcgetattr(slave)
        self.set_size(rows, columns)
        self.screen = Screen(rows, columns)
        self.output = b""
        self.seen = 0

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen([str(a) for a in arguments], stdin=slave, stdout=slave, stderr=slave,
                                        preexec_fn=own_terminal, close_fds=True,
                                        env={**os.environ, "TERM": "xterm-256color", **(env or {})})

    def set_size(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.set_size(rows, columns)
        self.screen.rows, self.screen.columns = rows, columns
        self.process.send_signal(signal.SIGWINCH)

    def send(self, data):
        os.write(self.master, data if isinstance(data, bytes) else data.encode())

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.output += data
        self.screen.feed(data)
        return bool(data)

    def settle(self, quiet=0.4):
        while self.read(quiet):
            pass

    def expect(self, pattern, seconds=60):
        """Waits until new output holds `pattern` (bytes regex); what follows it is new."""
        end = time.monotonic() + seconds
        while True:
            found = re.compile(pattern, re.S).search(self.output, self.seen)
            if found:
                self.seen = found.end()
                return found
            if time.monotonic() > end or (not self.read(0.5) and self.process.poll() is not None and not self.read(0.1)):
                fail(f"no {pattern!r} on the terminal after {self.output[self.seen:][-1500:]!r}")

    def prompt(self, seconds=240):
        self.expect(rb"\x1b\[J>>> ", seconds)

    def close(self, expect=0, seconds=60):
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.2)
        if self.process.poll() is None:
            self.process.kill()
            fail("the program does not end")
        self.settle(0.05)
        if expect is not None and self.process.returncode != expect:
            fail(f"exit {self.process.returncode}, expected {expect}: {self.output[-1500:]!r}")
        after = termios.tcgetattr(self.slave)
        if after != self.modes:
            fail(f"the terminal's modes are not restored: {after} was {self.modes}")
        os.close(self.master)
        os.close(self.slave)
