"""quern chat as a person and as a script use it: on a pseudo terminal (typing, editing, history, pastes, Ctrl-C,
suspension, resizing, escape sequences from the model, resuming after kill -9) and through pipes (sessions, roll-back
of the cache, exit codes)."""
import json
import os
import pathlib
import re
import signal
import stat
import tempfile
import time

from harness import CONVERT, QUERN, check, fail, run, smollm2_gguf
from pty_terminal import Terminal

UP, LEFT, PASTE, END_PASTE = b"\x1b[A", b"\x1b[D", b"\x1b[200~", b"\x1b[201~"


class Trial:
    def __init__(self, folder):
        self.folder = folder
        self.model = folder / "model"
        run(CONVERT, smollm2_gguf(), self.model, "--type", "keep")
        self.env = {"XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": ""}

    def terminal(self, *options, **settings):
        env = {**self.env, **settings.pop("env", {})}
        length = [] if "-n" in options else ["-n", "12"]
        return Terminal(QUERN, "chat", "-m", self.model, "-t", "1", "--temp", "0", *length, *options, env=env, **settings)

    def pipe(self, lines, *options, expect=0):
        text = lines if isinstance(lines, bytes) else "".join(line + "\n" for line in lines).encode()
        return run(QUERN, "chat", "-m", self.model, "-t", "1", *options, stdin=text, expect=expect, env=self.env)

    def greedy(self, lines, *options, expect=0):
        return self.pipe(lines, "--temp", "0", "-n", "12", *options, expect=expect)


def show_of(terminal):
    terminal.send("/show\r")
    shown = terminal.expect(rb"/show\r+\n.*?\[1\] .*?\x1b\[J>>> ").group(0).decode()
    return re.sub(r"\r+\n", "\n", shown[shown.index("[1] "):])


def typing_and_history(trial):
    t = trial.terminal()
    t.prompt()
    t.send(b"What is the captal of Frnce?" + LEFT * 4 + b"a\x01\x1bf\x1bf\x1bf\x1bf" + LEFT * 3 + b"i\x05\r")
    t.expect(rb"What is the capital of France\?\r+\n")
    t.expect(rb"Paris")
    t.prompt()
    check(">>> What is the capital of France?\n" in t.screen.text() + "\n", f"the screen: {t.screen.text()!r}")
    t.send(PASTE + b"one\ntwo \xe5\xad\x97\r\nthree\t!" + END_PASTE + b"\r")
    t.prompt()
    t.send(b'"""first\rsecond"""\r')
    t.prompt()
    t.send(b"joined \\\rup\r")
    t.prompt()
    t.send(b"//not a command\r")
    t.prompt()
    shown = show_of(t)
    for text in ("[1] user\nWhat is the capital of France?\n", "[3] user\none\ntwo \u5b57\nthree\t!\n",
                 "[5] user\nfirst\nsecond\n", "[7] user\njoined \nup\n", "[9] user\n/not a command\n"):
        check(text in shown, f"/show has no {text!r}: {shown!r}")
    t.send("/hlep\r")
    t.expect(rb"did you mean /help\?")
    t.prompt()
    t.send("/con\t\r")
    t.expect(rb"of \d+ tokens")
    t.prompt()
    t.send(b"\x04")
    t.close()

    history = trial.folder / "state" / "quern" / "history"
    check(stat.S_IMODE(history.stat().st_mode) == 0o600, "the history's mode")
    t = trial.terminal()
    t.prompt()
    t.send(UP * 4)
    t.expect(rb"//not a command")
    t.send(b"\x12first")
    t.expect(rb"\(search\) 'first'.*second")
    t.send(b"\x07\x15never sent\x03")
    t.prompt()
    t.send(b"\x04")
    t.close()
    t = trial.terminal("--no-history")
    t.prompt()
    t.send(UP + b"secret\r")
    t.prompt()
    t.send("/bye\r")
    t.close()
    check("secret" not in history.read_text(), "--no-history kept what was typed")


def interruption(trial):
    t = trial.terminal("-n", "2000", "--show-timings")
    t.prompt()
    t.send("Write a very long story about a sheep.\r")
    t.expect(rb"sheep\.\r+\n.*?[A-Za-z]{3,}.*?[A-Za-z]{3,}.*?[A-Za-z]{3,}")
    t.send(b"typed ahead\x03")
    t.expect(rb"\(stopped")
    t.prompt()
    t.settle()
    t.send(b"\x15/show 2\r")
    answer = t.expect(rb"\[2\] assistant\r\n(.*?)\x1b").group(1)
    check(len(answer.strip()) > 8, f"the partial answer is not kept: {answer!r}")
    t.settle()
    t.send("How many sheep?\r")
    t.expect(rb"How many sheep\?\r+\n.*?[A-Za-z]{3,}")
    t.send(b"\x03")
    found = t.expect(rb"prefill (\d+) tokens \((\d+) reused\)")
    check(int(found.group(2)) > 30 and int(found.group(1)) < 60, f"the cache after Ctrl-C: {found.group(0)}")
    t.settle()
    t.send(b"half a line\x03")
    t.prompt()
    t.send(b"\x04")
    t.close()


def suspension_and_resize(trial):
    t = trial.terminal()
    t.prompt()
    text = b"a line that is long enough for two rows of a terminal with thirty columns"
    t.send(text)
    t.settle()
    t.resize(24, 30)
    t.settle()
    t.resize(24, 80)
    t.settle()
    t.seen = len(t.output)
    t.send(b"\x1a")  # no shell here that could stop it: it goes on at once
    t.expect(rb"a line that is long")
    t.settle()
    t.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, t.process.pid, os.WSTOPPED | os.WNOWAIT)
    t.seen = len(t.output)
    t.process.send_signal(signal.SIGCONT)
    t.expect(rb"a line that is long")
    t.send("!\r")
    t.prompt()
    check(f"[1] user\n{text.decode()}!\n" in show_of(t), "the line after resizing and suspension")
    t.process.send_signal(signal.SIGTERM)
    t.close(-signal.SIGTERM)


def hostile_model(trial):
    """Control characters as the model's only tokens: by their bias, at every place of the answer."""
    for code, shown in ((b"\x1b", b"\\x1b"), (b"\x07", b"\\x07"), (b"\r", b"\\x0d"), (b"\x7f", b"\\x7f"),
                        ("\u009b".encode(), None), ("\u202e".encode(), None)):
        ids = run(QUERN, "tokenize", "-m", trial.model, "--ids", "--no-bos", stdin=code).stdout.split()
        if len(ids) != 1:
            continue  # more than one token: no bias alone gives it
        bias = ["--logit-bias", f"{int(ids[0])}+1000", "-n", "4"]
        t = trial.terminal(*bias)
        t.prompt()
        t.send("hi\r")
        t.expect(rb"[^x]" + re.escape(shown * 4) + rb"\r\n")
        t.prompt()
        t.send("/show\r")
        t.expect(re.escape(shown * 4))
        t.send(b"\x04")
        t.close()
        piped = trial.pipe(["hi"], "--temp", "0", *bias).stdout
        check(piped == code * 4 + b"\n", f"a pipe gets the bytes: {piped!r}")


def plain_pipes(trial):
    result = trial.greedy(['Say "yes".', '"""a', 'b"""', "/show"], "--show-timings")
    check(b"\x1b" not in result.stdout + result.stderr, "escape sequences without a terminal")
    check(b">>>" not in result.stdout and b"[3] user\na\nb\n" in result.stdout, f"{result.stdout!r}")
    check(trial.greedy(b"no line end").stdout != b"", "the last line needs a line end")
    check(trial.greedy(b"").stdout == b"", "an empty input")
    trial.greedy(b"\xff\xfe\n", expect=3)
    trial.greedy(["/nothing"], expect=2)
    trial.greedy(["/load /nowhere"], expect=3)
    single = trial.greedy(["never read"], "-st", "-p", "Hello")
    check(single.stdout.count(b"\n") >= 1 and b"never" not in single.stdout, f"{single.stdout!r}")
    biased = trial.greedy(["hi"], "-c", "48", "-sys", "word " * 60, expect=3)
    check(b"context is 48" in biased.stderr, f"{biased.stderr!r}")


TURNS = [f"Turn {i}: name one thing that begins with the letter {chr(96 + i)}." for i in range(1, 21)]


def counts(text):
    return [(int(a), int(b)) for a, b in re.findall(r"prefill (\d+) tokens \((\d+) reused", text.decode())]


def roll_back(trial):
    """20 turns, one edited in the middle: only what follows it is prefilled, and the answer is that of a run that
    had never seen the old text (the system message is changed to and fro, which empties the cache)."""
    edit = [*TURNS, "/edit 21 Turn 11: name a river.", "And what was turn 11?", "/show 42",
            "/system Other.", "Forget this.", "/undo", '/system ""', "/regen", "/show 42"]
    result = trial.greedy(edit, "--show-timings")
    prefills = counts(result.stderr)
    check(len(prefills) == 23, f"{len(prefills)} answers: {result.stderr[-500:]!r}")
    for prefilled, reused in prefills[1:20]:
        check(prefilled < 60, f"a turn prefilled {prefilled} tokens beside {reused}")
    (edited, kept), (again, start) = prefills[20], prefills[22]
    check(kept > 0.4 * (edited + kept) and edited > 100, f"edit: {edited} prefilled, {kept} reused")
    check(start < 30 and again == edited + kept - start, f"a fresh run: {again} prefilled, {start} reused; {edited} + {kept}")
    shown = re.findall(rb"\[42\] assistant\n(.*?)\n(?=\[42\]|$)", result.stdout, re.S)
    answers = result.stdout.split(b"[42] assistant\n")[1:]
    check(len(answers) == 2 and answers[1].strip() and answers[0].startswith(answers[1].rstrip()),
          f"the answers differ: {answers} {shown}")
    print(f"edited in the middle of 20 turns: {edited} tokens prefilled, {kept} reused; fresh: {again}")


def held(trial):
    """What is said to need no prefill when a session is loaded is what the next answer then reuses."""
    turns = ["Name a colour.", "Another one."]
    for name, first, options in (("as it was", turns, []), ("another system message", turns, ["-sys", "Be brief."]),
                                 ("no system message yet", ["/system", *turns], ["-sys", "Be brief."]),
                                 ("edited", [*turns, "/edit 3 A third one."], []), ("taken back", [*turns, "/undo"], []),
                                 ("nothing", [], ["-sys", "Be brief."])):
        file = trial.folder / f"{name}.qs"
        trial.greedy(first, "--session", file)
        result = trial.greedy(["Go on."], "--show-timings", "--session", file, *options)
        said = [int(n) for n in re.findall(rb", (\d+) tokens held without prefill", result.stderr)]
        reused = counts(result.stderr)[0][1]
        check(said == [reused] or (name == "nothing" and not said), f"{name}: {said} said, {reused} reused: {result.stderr!r}")


def sessions(trial):
    options = ["-n", "12", "-s", "11", "--temp", "0.9"]
    whole = trial.pipe(["Name a colour.", "Another one.", "And a third."], *options).stdout
    file = trial.folder / "chat.qs"
    parts = [trial.pipe([line], *options, "--session", file).stdout
             for line in ("Name a colour.", "Another one.", "And a third.")]
    check(b"".join(parts) == whole, f"resumed: {parts}, uninterrupted: {whole}")
    check(stat.S_IMODE(file.stat().st_mode) == 0o600, "the session's mode")

    saved = trial.folder / "saved.qs"
    trial.pipe(["Name a colour.", f"/save {saved}"], *options)
    loaded = trial.pipe([f"/load {saved}", "Another one.", "And a third."], "--show-timings", "-n", "12")
    check(whole.endswith(loaded.stdout), f"loaded: {loaded.stdout}, uninterrupted: {whole}")
    check(counts(loaded.stderr)[0][1] > 20, f"prefill after /load: {loaded.stderr!r}")

    held(trial)

    damaged = trial.folder / "damaged.qs"
    data = bytearray(saved.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    trial.pipe([f"/load {damaged}"], expect=3)
    check(damaged.read_bytes() == data, "a refused session was changed")

    killed = trial.folder / "killed.qs"
    t = trial.terminal("--session", killed)
    t.prompt()
    t.send("Name a colour.\r")
    t.prompt()
    t.send("half typed")
    t.settle()
    t.process.kill()
    t.process.wait()
    shown = trial.greedy(["/show"], "--session", killed).stdout
    check(b"[1] user\nName a colour.\n[2] assistant\n" in shown, f"after kill -9: {shown!r}")


def branches_and_locks(trial):
    file = trial.folder / "branches.qs"
    trial.greedy(["Name a colour.", "Another one.", "/branch 1", "And a third."], "--session", file)
    listed = trial.greedy(["/branch list", "/branch go 1", "/show 3"], "--session", file)
    check(b"branch 1: 4 messages" in listed.stdout and b"[3] user\nAnother one.\n" in listed.stdout, f"branches: {listed}")
    check(b", 1 branch, " in listed.stderr, f"/load says how many: {listed.stderr!r}")

    t = trial.terminal("--session", file)
    t.prompt()
    for options in (["--session", file], ["--session", file.parent / "." / file.name]):
        refused = trial.greedy(["Hello"], *options, expect=4)
        check(str(t.process.pid).encode() in refused.stderr and refused.stdout == b"", f"two chats on one file: {refused}")
    trial.greedy(["Hello", f"/save {file}"], expect=4)
    trial.greedy([f"/load {file}", "/show 1"])
    t.process.kill()
    t.process.wait()
    trial.greedy(["/show 1"], "--session", file)  # a killed chat's lock is none
    check([p.name for p in file.parent.glob(".branches.qs*")] == [], "something is left beside the session")


def overflow(trial):
    for policy in ("truncate", "shift", "sinks"):
        result = trial.greedy(TURNS[:12], "-c", "256", "--on-overflow", policy)
        check(b"dropped" in result.stderr, f"{policy}: nothing said: {result.stderr!r}")
    result = trial.greedy(TURNS[:12], "-c", "256", expect=3)
    check(b"context is 256" in result.stderr, f"{result.stderr!r}")


def commands(trial):
    result = trial.greedy(["/system Be brief.", "Hello", "/branch 1", "/show", "/branch go 1", "/show 2", "/regen",
                           "/delete 3", "/undo", "/set temp 0.5", "/set seed 3", "/set", "/set temperature", "/set top-k", "/context", "/stats",
                           "/think hide", "/clear", "/show", "/help", "/system"])
    out = result.stdout.decode()
    for text in ("[1] system\nBe brief.\n", "[2] user\nHello\n", "temp 0.5\n", "temp = 0.5: ", "top-k: ", "seed 3\n", " of ", "last answer: prefill",
                 "/edit [N [TEXT]]", "\nBe brief.\n"):
        check(text in out, f"no {text!r} in {out!r}")
    file = trial.folder / "note.txt"
    file.write_text("The secret word is plum.")
    shown = trial.greedy([f"/read {file}", "What is the secret word?", "/show 1"]).stdout
    check(b"[1] user\nThe secret word is plum.\nWhat is the secret word?\n" in shown, f"/read: {shown!r}")
    for line in ("/edit 9 x", "/delete x", "/set temp nan", "/set nonsense 1", "/think maybe", "/branch go 4", "/regen now",
                 "/set temp", "/undo", "/read"):
        code = trial.greedy([line], expect=None).returncode
        check(code in ((0,) if line == "/set temp" else (2, 3)), f"{line}: exit {code}")


THINKING = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% if enable_thinking is defined and not enable_thinking %}
</think>

{% endif %}{% endif %}"""


def thoughts(trial):
    template = trial.folder / "thinking.jinja"
    template.write_text(THINKING)
    options = ["--chat-template-file", template, "--temp", "0", "-n", "24", "--show-timings"]
    shown = trial.pipe(["Is 7 a prime number?"], *options, "--reasoning-budget", "6")
    check(re.match(rb"<think>\n.+\n</think>\n\n.", shown.stdout, re.S), f"thoughts in a pipe: {shown.stdout!r}")
    check(b"(6 of thoughts)" in shown.stderr, f"{shown.stderr!r}")
    answer = shown.stdout.split(b"</think>\n\n")[1]
    hidden = trial.pipe(["Is 7 a prime number?"], *options, "--reasoning-budget", "6", "--hide-thinking")
    check(hidden.stdout == answer, f"hidden thoughts: {hidden.stdout!r}, shown: {shown.stdout!r}")
    for more in (["--reasoning-budget", "0"], ["--reasoning", "off"]):
        none = trial.pipe(["Is 7 a prime number?"], *options, *more)
        check(b"think>" not in none.stdout and b"of thoughts" not in none.stderr and none.stdout.strip(), f"{more}: {none.stdout!r}")
    switched = trial.pipe(["/think off", "Is 7 a prime number?", "/think on"], *options)
    check(b"think>" not in switched.stdout and b"no effect" not in switched.stderr, f"/think off: {switched}")
    t = trial.terminal("--chat-template-file", template, "--reasoning-budget", "6")
    t.prompt()
    t.send("Is 7 a prime number?\r")
    t.expect(rb"\x1b\[2m[^\x1b]+\x1b\[22m\n?\r?\n\r?\n?[^\x1b]+\r\n")
    t.prompt()
    t.send(b"\x04")
    t.close()


def no_format(trial):
    model = trial.folder / "base"
    model.mkdir()
    for name in ("model.quern", "model.json"):
        (model / name).write_bytes((trial.model / name).read_bytes())
    contract = json.loads((model / "model.json").read_text())
    contract["chat"] = {**contract["chat"], "jinja": "", "builtin": "", "default_system": ""}
    (model / "model.json").write_text(json.dumps(contract))
    refused = run(QUERN, "chat", "-m", model, stdin=b"hi\n", expect=3)
    check(b"--chat-template" in refused.stderr and b"-no-cnv" in refused.stderr, f"{refused.stderr!r}")
    named = run(QUERN, "chat", "-m", model, "--chat-template", "chatml", "--temp", "0", "-n", "4", stdin=b"hi\n")
    check(named.stdout.strip() != b"", "a template that was named")


def editor(trial):
    script = trial.folder / "editor.sh"
    script.write_text('#!/bin/sh\nprintf "%s, edited\\nsecond line\\n" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n')
    script.chmod(0o755)
    t = trial.terminal(env={"VISUAL": str(script)})
    t.prompt()
    t.send(b"a message\x07")
    t.expect(rb"a message, edited")
    t.send("\r")
    t.prompt()
    shown = show_of(t)
    check("[1] user\na message, edited\nsecond line\n" in shown, f"Ctrl-G: {shown!r}")
    t.send("/edit 1\r")
    t.expect(rb"message 1 changed")
    t.prompt()
    check("edited\nsecond line, edited\nsecond line\n" in show_of(t), "/edit 1")
    t.send(b"\x04")
    t.close()


def main():
    with tempfile.TemporaryDirectory() as name:
        trial = Trial(pathlib.Path(name))
        parts = [typing_and_history, interruption, suspension_and_resize, hostile_model, plain_pipes, commands, editor,
                 thoughts, no_format, sessions, branches_and_locks, overflow, roll_back]
        wanted = os.environ.get("QUERN_CHAT_PARTS", "").split()
        done = [part for part in parts if not wanted or part.__name__ in wanted]
        for part in done:
            start = time.monotonic()
            part(trial)
            print(f"{part.__name__}: {time.monotonic() - start:.0f} s", flush=True)
    print(f"quern chat: {len(done)} of {len(parts)} parts")


main()
