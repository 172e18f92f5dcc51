"""`quern run` for scripts, on a real chat model: JSON and nothing beside it on standard output, log-probabilities equal
to those of `quern logits`, stops and bans however the text is cut into tokens, bias, several prompts, errors,
signals, a closed pipe."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import CONVERT, QUERN, check, need, run, smollm2_gguf

need("numpy")
import numpy as np

PROMPT = "The largest planet of the solar system is"
GREEDY = ["--temp", "0", "--no-timings"]


class Model:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def run(self, *options, expect=0, stdin=None):
        return run(QUERN, "run", "-m", self.path, *options, expect=expect, stdin=stdin)

    def json(self, *options, expect=0, stdin=None):
        result = self.run(*options, "--output", "json", expect=expect, stdin=stdin)
        check(result.stdout.endswith(b"\n"), "JSON does not end with a line end")
        return json.loads(result.stdout)

    def raw(self, *options, prompt=PROMPT, n=32):
        return self.json("-no-cnv", "-p", prompt, "-n", str(n), *GREEDY, *options)

    def tokenize(self, text):
        result = run(QUERN, "tokenize", "-m", self.path, "--ids", "--no-bos", "-p", text)
        return [int(word) for word in result.stdout.split()]


def check_formats(model):
    answer = model.raw()
    text = model.run("-no-cnv", "-p", PROMPT, "-n", "32", *GREEDY).stdout.decode()
    ids = model.run("-no-cnv", "-p", PROMPT, "-n", "32", *GREEDY, "--output", "ids").stdout.decode()
    line = model.run("-no-cnv", "-p", PROMPT, "-n", "32", *GREEDY, "--output", "jsonl").stdout.decode()
    check(text == answer["text"] + "\n", f"text {text!r}, json {answer['text']!r}")
    check([int(i) for i in ids.split()] == answer["ids"] and ids.count("\n") == 1, f"ids {ids!r}")
    check(line.count("\n") == 1 and json.loads(line)["ids"] == answer["ids"], "jsonl is another answer")
    check(answer["finish_reason"] == "length" and answer["stop"] is None, f"{answer}")
    check(answer["completion_tokens"] == len(answer["ids"]) == 32, f"{answer}")
    check(answer["prompt_tokens"] == len(model.tokenize(PROMPT)), f"{answer}")
    check(answer["logprobs"] is None and answer["seed"] is None and answer["model"], f"{answer}")
    for key in ("timings", "search"):
        check(key in answer, f"no {key}")
    chat = model.json("-p", "What is the capital of France?", "-n", "40", *GREEDY)
    check(chat["finish_reason"] == "stop" and chat["stop"]["text"] == "<|im_end|>", f"{chat}")
    check(model.raw("--echo")["text"] == PROMPT + answer["text"], "--echo is not prompt and answer")
    echoed = model.run("-no-cnv", "-p", PROMPT, "-n", "32", "--echo", *GREEDY).stdout.decode()
    check(echoed == PROMPT + text, f"{echoed!r}")
    check(model.raw("--ignore-eos", prompt="Hi", n=0)["ids"] == [], "-n 0 generates")
    filled = model.json("-no-cnv", "-p", PROMPT, "-n", "-2", "-c", "40", "--ignore-eos", *GREEDY)
    check(filled["prompt_tokens"] + filled["completion_tokens"] in (40, 41), f"-n -2: {filled}")


def check_sources(model):
    expected = model.raw()["ids"]
    prompt_file = model.folder / "prompt.txt"
    prompt_file.write_text(PROMPT)
    said = ["-no-cnv", "-n", "32", *GREEDY]
    for options, stdin in ((["-f", prompt_file], None), ([], PROMPT.encode()), (["-f", "-"], PROMPT.encode()),
                           (["-e", "-p", PROMPT.replace(" of", "\\x20of").replace("\\x20", " ")], None)):
        check(model.json(*said, *options, stdin=stdin)["ids"] == expected, f"another answer from {options}")
    system = model.folder / "system.txt"
    system.write_text("You answer in French.")
    chat = ["-p", "Where is Rome?", "-n", "12", *GREEDY]
    by_file = model.json(*chat, "-sysf", system)
    check(by_file["ids"] == model.json(*chat, "-sys", "You answer in French.")["ids"], "-sysf is not -sys")
    check(by_file["prompt_tokens"] != model.json(*chat, "-sys", "Hi")["prompt_tokens"], "the system message is not used")


def check_several(model):
    prompts = ["One, two, three,", "The sky is", "Once upon a time"]
    alone = [model.raw(prompt=p, n=12) for p in prompts]
    given = [x for p in prompts for x in ("-p", p)]
    said = ["-no-cnv", "-n", "12", *GREEDY]
    together = model.json(*said, *given)
    check([a["ids"] for a in together] == [a["ids"] for a in alone], "several prompts change the answers")
    check([a["index"] for a in together] == [0, 1, 2], "wrong order")
    lines = model.run(*said, *given, "--output", "jsonl").stdout.decode().splitlines()
    check([json.loads(x)["text"] for x in lines] == [a["text"] for a in alone], f"{lines}")
    text = model.run(*said, *given).stdout.decode()
    expected = "\n".join(f"==> prompt {i + 1} <==\n{a['text']}\n" for i, a in enumerate(alone))
    check(text == expected, f"{text!r}, expected {expected!r}")
    ids = model.run(*said, *given, "--output", "ids").stdout.decode().splitlines()
    check([[int(i) for i in x.split()] for x in ids] == [a["ids"] for a in alone], f"{ids}")
    plain = model.folder / "prompts.txt"
    plain.write_text("\n".join(prompts) + "\n")
    check([a["ids"] for a in model.json(*said, "--prompts-file", plain)] == [a["ids"] for a in alone], "--prompts-file")
    jsonl = model.folder / "prompts.jsonl"
    jsonl.write_text(json.dumps(prompts[0]) + "\n\n" + json.dumps({"prompt": prompts[1]}) + "\n" +
                     json.dumps({"text": "a\nb"}))
    found = model.json(*said, "--prompts-file", jsonl)
    check([a["ids"] for a in found[:2]] == [a["ids"] for a in alone[:2]] and len(found) == 3, "JSON lines")
    jsonl.write_text(json.dumps("x") + "\n")
    check(isinstance(model.json(*said, "--prompts-file", jsonl), list), "a file of one prompt gives no list")
    systems = model.folder / "systems.jsonl"
    systems.write_text("\n".join(json.dumps({"prompt": "Hi", "system": s}) for s in ("A", "A much longer system text")))
    counts = [a["prompt_tokens"] for a in model.json("-n", "1", *GREEDY, "--prompts-file", systems)]
    check(counts[0] < counts[1], f"system of a line is not used: {counts}")
    sampled = ["-no-cnv", "-n", "12", "--temp", "0.9", "-s", "5", "--no-timings"]
    both = model.json(*sampled, "-p", prompts[1], "-p", prompts[1])
    check(both[0]["ids"] == both[1]["ids"] == model.json(*sampled, "-p", prompts[1])["ids"],
          "a prompt is not answered as if it were the only one")
    check(both[0]["seed"] == 5, f"{both[0]}")


def check_logprobs(model):
    answer = model.raw("--top-logprobs", "4", n=10)
    prompt_ids = model.tokenize(PROMPT)
    ids_file, out = model.folder / "ids.txt", model.folder / "logits.npy"
    ids_file.write_text(" ".join(map(str, prompt_ids + answer["ids"])))
    run(QUERN, "logits", "-m", model.path, "--ids-file", ids_file, "-o", out)
    logits = np.load(out).astype(np.float64)
    check(len(answer["logprobs"]) == len(answer["ids"]) == 10, f"{answer}")
    joined = b""
    for i, token in enumerate(answer["logprobs"]):
        row = logits[len(prompt_ids) - 1 + i]
        logprob = row - row.max() - np.log(np.exp(row - row.max()).sum())
        check(token["id"] == answer["ids"][i], f"{token}")
        check(abs(token["logprob"] - logprob[token["id"]]) < 2e-5, f"{token}, expected {logprob[token['id']]}")
        best = np.argsort(-row, kind="stable")[:4]
        check([t["id"] for t in token["top_logprobs"]] == best.tolist(), f"{token}, expected {best}")
        for t in token["top_logprobs"]:
            check(abs(t["logprob"] - logprob[t["id"]]) < 2e-5, f"{t}")
        joined += bytes(token["bytes"])
        check(bytes(token["bytes"]).decode(errors="replace") == token["token"], f"{token}")
    check(joined.decode() == answer["text"], f"{joined} is not {answer['text']!r}")
    # Raw logits: temperature, bias and samplers change the choice, never the numbers.
    first = answer["ids"][0]
    other = model.json("-no-cnv", "-p", PROMPT, "-n", "1", "--temp", "2", "-s", "1", "--no-timings", "--logit-bias",
                       f"{first}-3", "--repeat-penalty", "1.5", "--top-logprobs", "4")
    check(other["logprobs"][0]["top_logprobs"] == answer["logprobs"][0]["top_logprobs"], "logprobs are not raw")
    check(model.raw("--logprobs", n=2)["logprobs"][1]["top_logprobs"] == [], "--logprobs alone gives a top list")


def check_stops(model):
    full = model.raw(n=48)["text"]
    check(len(full) > 60, f"{full!r}")
    for begin, length in ((5, 1), (9, 4), (20, 11), (33, 20)):  # at any place, across tokens
        stop = full[begin:begin + length]
        expected = full[:full.find(stop)]
        escaped = stop.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        for option in ("--stop", "-r", "--reverse-prompt"):
            answer = model.raw(option, escaped, n=48)
            check(answer["text"] == expected, f"{option} {stop!r}: {answer['text']!r}, expected {expected!r}")
            check(answer["finish_reason"] == "stop" and answer["stop"] == {"text": stop, "id": None}, f"{answer}")
        text = model.run("-no-cnv", "-p", PROMPT, "-n", "48", *GREEDY, "--stop", escaped).stdout.decode()
        check(text == expected + "\n", f"text {text!r}, expected {expected!r}")
    # Held back, then shown: the beginning of a stop that does not come.
    check(model.raw("--stop", full[-6:] + "XYZ", n=48)["text"] == full, "text held back for a stop is lost")
    stops = model.folder / "stops.txt"
    stops.write_text("no such text\n" + full[12:18].replace("\n", "\\n") + "\n")
    check(model.raw("--stop-file", stops, n=48)["text"] == full[:full.find(full[12:18])], "--stop-file")
    by_id = model.raw(n=12)["ids"]
    answer = model.raw("--stop-id", by_id[5], n=12)
    check(answer["ids"] == by_id[:by_id.index(by_id[5])] and answer["stop"]["id"] == by_id[5], f"{answer}")


def check_bans(model):
    full = model.raw(n=40)
    for begin, length in ((3, 3), (10, 6), (25, 9)):
        ban = full["text"][begin:begin + length]
        answer = model.raw("--ban", ban.replace("\n", "\\n"), n=40)
        check(ban not in answer["text"], f"{ban!r} in {answer['text']!r}")
        place = full["text"].find(ban) + length
        same = len(os.path.commonprefix([full["text"], answer["text"]]))
        check(same >= place - 16, f"the ban of {ban!r} changed {full['text']!r} too early: {answer['text']!r}")
    bans = model.folder / "bans.txt"
    bans.write_text("e\nThe\n")
    check("e" not in model.raw("--ban-file", bans, n=24)["text"], "--ban-file")
    check(full["ids"][0] not in model.raw("--ban-id", full["ids"][0])["ids"], "--ban-id")
    check(full["ids"][0] not in model.raw("--logit-bias", f"{full['ids'][0]}-inf")["ids"], "bias -inf")
    hello = model.tokenize(" hello")
    check(len(hello) == 1, f"{hello}")
    for word in (f"{hello[0]}+100", " hello+100", '" hello"+100', f"{hello[0]}+1e2"):
        check(model.raw("--logit-bias", word, n=3)["ids"] == hello * 3, f"--logit-bias {word}")


def check_samplers(model):
    """A seed gives the same answer; filters that leave one token give the greedy one."""
    greedy = model.raw(n=10)["ids"]
    said = ["-no-cnv", "-p", PROMPT, "-n", "10", "-s", "3", "--no-timings"]
    for options in (["--top-k", "1"], ["--top-p", "0"], ["--min-p", "1"], ["--top-nsigma", "0.001"], ["--temp", "-1"],
                    ["--temp", "1e-6"], ["--samplers", "top_k;temperature", "--top-k", "1"],
                    ["--sampler-seq", "kt", "--top-k", "1"], ["--mirostat", "2", "--mirostat-ent", "0"]):
        check(model.json(*said, *options)["ids"] == greedy, f"{options} is not greedy")
    for options in (["--temp", "1.2"], ["--dynatemp-range", "0.5", "--dynatemp-exp", "1.2"], ["--typical", "0.8"],
                    ["--top-n-sigma", "2"], ["--xtc-probability", "1", "--xtc-threshold", "0.05"], ["--mirostat", "1"],
                    ["--mirostat", "2"], ["--adaptive-target", "0.3", "--adaptive-decay", "0.8"],
                    ["--dry-multiplier", "0.8", "--dry-base", "2", "--dry-allowed-length", "1",
                     "--dry-penalty-last-n", "-1", "--dry-sequence-breaker", "\\n", "--dry-sequence-breaker", "and"],
                    ["--dry-multiplier", "0.8", "--dry-sequence-breaker", "none"], ["--min-keep", "3"],
                    ["--presence-penalty", "1", "--frequency-penalty", "0.5", "--repeat-last-n", "-1"]):
        first, second = (model.json(*said, *options)["ids"] for _ in range(2))
        check(first == second and len(first) <= 10, f"{options}: the same seed gave two answers")
    looped = "a b c d e f. a b c d e f. a b c d e f. a b c"
    plain, dry = (model.raw(*o, prompt=looped, n=4)["ids"] for o in ([], ["--dry-multiplier", "50"]))
    check(plain[0] == model.tokenize(" d")[0] and dry[0] != plain[0], f"dry: {plain} {dry}")


def check_errors(model):
    def refused(*options, code=2, words=(), stdin=None):
        for output in ("json", "text"):
            result = model.run(*options, "--output", output, expect=code, stdin=stdin)
            check(result.stdout == b"", f"{options}: {result.stdout[:80]} on standard output")
            lines = [x for x in result.stderr.decode().splitlines() if x.startswith("quern: error: ")]
            check(len(lines) == 1, f"{options}: {result.stderr}")
            for word in words:
                check(word in lines[0], f"{options}: no {word!r} in {lines[0]!r}")
    prompt = ["-p", "Hi", "-n", "2"]
    refused(*prompt, "--temp", "nan")
    refused(*prompt, "--top-p", "1.5")
    refused(*prompt, "--samplers", "top_k;topp", words=["topp", "top_p"])
    refused(*prompt, "--samplers", "top_k;top_k", words=["twice"])
    refused(*prompt, "--sampler-seq", "kz", words=["z"])
    refused(*prompt, "--samplers", "top_k", "--temp", "0.5", words=["--temp"])
    refused(*prompt, "--samplers", "top_k", "--sampler-seq", "k")
    refused(*prompt, "--mirostat", "3")
    refused(*prompt, "--mirostat", "1", "--adaptive-target", "0.5")
    for bias in ("hello", "12", "+3", "12+x", "99999999+1", "12+inf", '""+1'):
        refused(*prompt, "--logit-bias", bias, words=["--logit-bias"])
    refused(*prompt, "--logit-bias", "several words here+1", words=["tokens", "--ban"])
    refused(*prompt, "--ban", "", words=["empty"])
    refused(*prompt, "--ban-id", "99999999", words=["99999999"])
    refused(*prompt, "--stop", "", words=["empty"])
    refused(*prompt, "--stop-id", "99999999", words=["99999999"])
    refused(*prompt, "--stop-file", model.folder / "absent", code=3)
    refused(*prompt, "--ban-file", model.folder / "absent", code=3)
    refused(*prompt, "-sysf", model.folder / "absent", code=3)
    refused("-f", model.folder / "absent", code=3)
    refused("-p", "Hi", "-f", "x")
    refused("-no-cnv", "-p", "", code=3, words=["no tokens"])
    refused("-p", "x " * 9000, code=3, words=["9", "8192"])
    refused(*prompt, "-p", "y " * 9000, code=3, words=["prompt 2"])
    for text, words in (("one\n\ntwo\n", [":2", "empty line"]), ("", ["no prompts"])):
        file = model.folder / "bad.txt"
        file.write_text(text)
        refused("--prompts-file", file, code=3, words=words)
    for line, words in (("{\"prompt\": 1}", [":1"]), ("[1]", [":1"]), ("{\"promt\": \"x\"}", [":1"]), ("\"a", [":1"]),
                        ("{\"prompt\": \"x\", \"sistem\": \"y\"}", ["sistem"])):
        file = model.folder / "bad.jsonl"
        file.write_text(line)
        refused("--prompts-file", file, code=3, words=words)
    for options in (["--top-logprobs", "2", "--output", "text"], ["--logprobs", "--output", "ids"],
                    ["--echo", "--output", "ids"]):
        result = model.run(*prompt, *options, expect=2)
        check(result.stdout == b"", f"{options}: {result.stdout}")
    for options in (["--logprobs"], ["--ban", "x"], ["--stop", "x"], ["--logit-bias", "5+1"]):
        result = model.run(*prompt, "--num-beams", "2", "--output", "json", *options, expect=2)
        check(b"--num-beams 1" in result.stderr and result.stdout == b"", f"{options}: {result.stderr}")
    beams = model.json(*prompt, "--num-beams", "2", "--num-return-sequences", "2", "--no-timings", "--stop-id", "1")
    check(len(beams["sequences"]) == 2 and beams["text"] == beams["sequences"][0]["text"], f"{beams}")


def start(model, *options):
    return subprocess.Popen([str(QUERN), "run", "-m", str(model.path), "-no-cnv", "-p", "Once upon a time",
                             "--ignore-eos", "--no-timings", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check_signals(model):
    process = start(model, "-n", "4000", "--temp", "0")
    begun = process.stdout.read(8)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    check(process.returncode == -signal.SIGINT, f"exit {process.returncode} after SIGINT")
    check(len(begun) == 8 and rest.endswith(b"\n") and len(rest) < 20000, "no partial answer after SIGINT")
    for several in ([], ["-p", "Another"]):
        process = start(model, "-n", "4000", "--temp", "0", "--output", "json", *several)
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        check(process.returncode == -signal.SIGTERM, f"exit {process.returncode} after SIGTERM")
        if out:  # it had begun
            answer = json.loads(out)
            answer = answer[-1] if several else answer
            check(answer["finish_reason"] == "interrupted" and answer["stop"] is None, f"{answer}")
    process = start(model, "-n", "4000", "--temp", "0")
    process.stdout.read(4)
    process.stdout.close()
    _, errors = process.communicate(timeout=60) if False else (None, process.stderr.read())
    process.wait(timeout=60)
    check(process.returncode in (-signal.SIGPIPE, 4), f"exit {process.returncode} on a closed pipe")
    check(b"internal" not in errors, f"{errors}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = os.environ.get("QUERN_SMOLLM2")
        if not path:
            path = folder / "m"
            run(CONVERT, smollm2_gguf(), path)
        model = Model(path, folder)
        checks = (check_formats, check_sources, check_several, check_logprobs, check_stops, check_bans, check_samplers,
                  check_errors, check_signals)
        for one in checks:
            one(model)
    print(f"quern run: {', '.join(one.__name__.removeprefix('check_') for one in checks)}")


main()
