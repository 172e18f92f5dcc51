"""`quern batch`: 1,000 mixed lines, every field and every kind of wrong line, formats, answers equal to `quern run` on
each line alone whatever runs beside it, order, seeds, embeddings, big inputs. What kills and full disks leave is in
batch_faults.py."""
import base64
import hashlib
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time

from batch_model import (Batch, lines_of, make_model, poisoned, rejected, summary, write_lines)
from harness import QUERN, check, run

FULL = "--full" in sys.argv
MAX_PROMPT_TOKENS = 256


def chat(i, text, **body):
    return {"custom_id": f"request-{i}", "method": "POST", "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 8, **body}}


def completion(i, prompt, **body):
    return {"custom_id": f"request-{i}", "method": "POST", "url": "/v1/completions",
            "body": {"model": "m", "prompt": prompt, "max_tokens": 8, **body}}


# A wrong line, the code of its error, and a word of its message (G17, G18, G20).
def wrong_lines():
    deep = "[" * 100000 + "]" * 100000
    body = {"messages": [{"role": "user", "content": "x"}]}
    ok = {"method": "POST", "url": "/v1/chat/completions", "body": body}
    long_text = "y" * (MAX_PROMPT_TOKENS + 40)
    return [
        ('{"custom_id": "a", "body": {', "invalid_json", ""), ("[1, 2]", "invalid_request", ""), ("17", "invalid_request", ""),
        ('"text"', "invalid_request", ""), ("null", "invalid_request", ""), ("{}", "invalid_request", "custom_id"),
        ('{"custom_id": "b1", "method": "POST"}', "invalid_request", "url"),
        ({"custom_id": "b2", **ok, "method": "GET"}, "invalid_request", "method"),
        ({"custom_id": "b3", **ok, "url": "/v1/images"}, "invalid_request", "/v1/images"),
        ({"custom_id": "b4", **ok, "body": []}, "invalid_request", "body"),
        ({"custom_id": "b5", **ok, "body": {}}, "invalid_request", "messages"),
        ({"custom_id": "b6", **ok, "body": {"messages": []}}, "invalid_request", "messages"),
        ({"custom_id": "b7", **ok, "body": {"messages": "x"}}, "invalid_request", "messages"),
        ({"custom_id": "b8", **ok, "body": {"messages": [{"role": "wizard", "content": "x"}]}}, "invalid_request", "wizard"),
        ({"custom_id": "b9", **ok, "body": {"messages": [{"content": "x"}]}}, "invalid_request", "role"),
        ({"custom_id": "b10", **ok, "body": {"messages": [{"role": "user"}]}}, "invalid_request", "content"),
        ({"custom_id": "b11", **ok, "body": {"messages": [{"role": "user", "content": 5}]}}, "invalid_request", "content"),
        ({"custom_id": "b12", **ok, "body": {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "x"}}]}]}}, "unsupported_field", "content"),
        ({"custom_id": "b13", **ok, "body": {**body, "max_tokens": 0}}, "invalid_request", "max_tokens"),
        ({"custom_id": "b14", **ok, "body": {**body, "max_tokens": "5"}}, "invalid_request", "max_tokens"),
        ({"custom_id": "b15", **ok, "body": {**body, "temperature": -1}}, "invalid_request", "temperature"),
        ({"custom_id": "b16", **ok, "body": {**body, "top_p": 2}}, "invalid_request", "top_p"),
        ({"custom_id": "b17", **ok, "body": {**body, "stream": True}}, "unsupported_field", "stream"),
        ({"custom_id": "b18", **ok, "body": {**body, "frobnicate": 1}}, "unsupported_field", "frobnicate"),
        ({"custom_id": "b19", **ok, "body": {**body, "tool_choice": "required"}}, "unsupported_field", "tool_choice"),
        ({"custom_id": "b20", **ok, "body": {**body, "n": 0}}, "invalid_request", "n"),
        ({"custom_id": "b21", **ok, "body": {**body, "logit_bias": {"x": 1}}}, "invalid_request", "logit_bias"),
        ({"custom_id": "b22", **ok, "body": {**body, "logit_bias": {"99999": 1}}}, "invalid_request", "99999"),
        ({"custom_id": "b23", **ok, "body": {**body, "stop": ""}}, "invalid_request", "stop"),
        ({"custom_id": "b24", **ok, "body": {**body, "response_format": {"type": "xml"}}}, "unsupported_field", "xml"),
        ({"custom_id": "b25", **ok, "body": {**body, "response_format": {"type": "json_schema", "json_schema": {
            "schema": {"type": "no such"}}}}}, "invalid_request", ""),
        ({"custom_id": "b26", **ok, "body": {**body, "top_logprobs": 3}}, "invalid_request", "logprobs"),
        ({"custom_id": "b27", **ok, "body": {"messages": [{"role": "user", "content": long_text}]}},
         "context_length_exceeded", "context is 256"),
        ({"custom_id": "b28", **ok, "extra": 1}, "unsupported_field", "extra"),
        ({"custom_id": "b29", **ok, "body": {**body, "seed": -4}}, "invalid_request", "seed"),
        ({"custom_id": 31, **ok}, "invalid_request", "custom_id"),
        (ok, "invalid_request", "custom_id"),
        ({"custom_id": "c" * 5000, **ok}, "invalid_request", "custom_id"),
        ('{"custom_id": "d1", "custom_id": "d2", "method": "POST"}', "invalid_json", "duplicate"),
        ('{"custom_id": "d3", "method": "POST", "url": "/v1/chat/completions", "body": ' + deep + "}", "invalid_json", "nesting"),
        ('{"custom_id": "d4", "temperature": NaN}', "invalid_json", ""),
        ('{"custom_id": "d5\\ud800"}', "invalid_json", ""),
        ({"custom_id": "e1", "method": "POST", "url": "/v1/completions", "body": {}}, "invalid_request", "prompt"),
        ({"custom_id": "e2", "method": "POST", "url": "/v1/completions", "body": {"prompt": []}}, "invalid_request", "prompt"),
        ({"custom_id": "e3", "method": "POST", "url": "/v1/completions", "body": {"prompt": [1, 2, 900]}}, "invalid_request", "900"),
        ({"custom_id": "e4", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x", "suffix": "y"}},
         "unsupported_field", "suffix"),
        ({"custom_id": "e5", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x", "best_of": 3}},
         "unsupported_field", "best_of"),
        ({"custom_id": "e6", "method": "POST", "url": "/v1/completions", "body": {"prompt": ""}}, "invalid_request", "no tokens"),
        ({"custom_id": "e7", "method": "POST", "url": "/v1/embeddings", "body": {}}, "invalid_request", "input"),
        ({"custom_id": "e8", "method": "POST", "url": "/v1/embeddings", "body": {"input": "x", "dimensions": 8}},
         "unsupported_field", "dimensions"),
    ]


def mixed_lines():
    """950 good lines and 50 wrong ones, in no order."""
    random.seed(5)
    good = []
    for i in range(950):
        text = " ".join(random.choice(["sun", "moon", "tree", "7", "\u00e9t\u00e9", "x\n\ty"]) for _ in range(1 + i % 7))
        kind = i % 9
        if kind == 0:
            good.append(completion(i, text, temperature=0))
        elif kind == 1:
            good.append(completion(i, [text, "b"], n=2, echo=True, stop=["e", "a"]))
        elif kind == 2:
            good.append(chat(i, text, logprobs=True, top_logprobs=2, max_tokens=3))
        elif kind == 3:
            good.append({"custom_id": f"request-{i}", "method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": text}})
        elif kind == 4:
            good.append(chat(i, text, response_format={"type": "json_object"}, max_tokens=6))
        elif kind == 5:
            good.append(chat(i, text, seed=i, presence_penalty=0.5, frequency_penalty=0.25, logit_bias={"40": -100, "50": 2}))
        else:
            good.append(chat(i, text, temperature=0.1 * (i % 20), max_completion_tokens=1 + i % 12, max_tokens=None))
    bad = [line for line, _, _ in wrong_lines()]
    check(len(bad) == 50, f"{len(bad)} wrong lines")
    lines = good + bad
    random.shuffle(lines)
    first = next(i for i, line in enumerate(lines) if isinstance(line, dict) and "url" in line)
    lines[0], lines[first] = lines[first], lines[0]
    return lines


def check_thousand(model, tmp):
    """G17, G20, G25, G26, G27: 950 answers, 50 error lines, exit 1; the same bytes for any -np."""
    lines = mixed_lines()
    source = write_lines(tmp / "mixed.jsonl", lines)
    outputs = []
    for np in (1, 3, 16):
        target = tmp / f"mixed-{np}.out"
        result = Batch(model).run(source, target, "-np", np, *(["-t", "2"] if FULL else []), expect=1)
        check(summary(result) == (950, 50, 0, 1000), f"-np {np}: {result.stderr}")
        outputs.append(target.read_bytes())
    check(outputs[0] == outputs[1] == outputs[2], "the answers depend on -np")
    answers = lines_of(tmp / "mixed-3.out")
    check(len(answers) == 1000 and sum(a["error"] is not None for a in answers) == 50, "950 answers, 50 errors")
    check(len({a["id"] for a in answers}) == 1000, "an id comes twice")
    expected = {json.dumps(line) if not isinstance(line, str) else line: (code, word) for line, code, word in wrong_lines()}
    for number, (line, answer) in enumerate(zip(lines, answers), 1):
        text = line if isinstance(line, str) else json.dumps(line)
        if text in expected:
            code, word = expected[text]
            error = answer["error"]
            check(error["code"] == code and word in error["message"] and error["line"] == number, f"{text[:200]}: {answer}")
            check(answer["response"]["status_code"] == 400 and answer["response"]["body"]["error"]["code"] == code, f"{answer}")
            if isinstance(line, dict) and isinstance(line.get("custom_id"), str) and len(line["custom_id"]) < 100:
                check(answer["custom_id"] == line["custom_id"], f"{answer}")
            continue
        check(answer["custom_id"] == line["custom_id"] and answer["error"] is None, f"{line}: {answer}")
        check_answer(line, answer["response"])
    # Unordered: the same set (G26).
    Batch(model).run(source, tmp / "mixed.unordered", "-np", "7", "--unordered", expect=1)
    check(sorted((tmp / "mixed.unordered").read_bytes().splitlines()) == sorted(outputs[0].splitlines()), "--unordered")
    return answers


def check_answer(line, response):
    body, asked = response["body"], line["body"]
    check(response["status_code"] == 200 and response["request_id"], f"{response}")
    if line["url"].endswith("embeddings"):
        check(body["object"] == "list" and len(body["data"][0]["embedding"]) == 64, f"{body}")
        return
    n_prompts = len(asked["prompt"]) if isinstance(asked.get("prompt"), list) else 1
    check(len(body["choices"]) == n_prompts * asked.get("n", 1), f"{body}")
    check(body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"], f"{body}")
    for index, choice in enumerate(body["choices"]):
        check(choice["index"] == index and choice["finish_reason"] in ("stop", "length"), f"{choice}")
        if line["url"].endswith("chat/completions"):
            check(choice["message"]["role"] == "assistant" and isinstance(choice["message"]["content"], str), f"{choice}")
            if asked.get("logprobs"):
                for token in choice["logprobs"]["content"]:
                    check(len(token["top_logprobs"]) == 2 and token["logprob"] <= 0, f"{token}")
        elif asked.get("echo"):
            prompt = asked["prompt"][index // asked["n"]]
            check(choice["text"].startswith(prompt), f"{choice}, {prompt!r}")
            check("e" not in choice["text"][len(prompt):] and "a" not in choice["text"][len(prompt):], f"stop in {choice}")
    most = asked.get("max_completion_tokens") or asked.get("max_tokens")
    check(body["usage"]["completion_tokens"] <= most * len(body["choices"]), f"{body}, {asked}")


def check_equal_to_run(model, tmp, options=("--temp", "0.9"), same=()):
    """Each line alone through `quern run`, with the seed that the answer names."""
    prompts = [f"prompt {'abc' * (i % 9)} {i}" for i in range(24)]
    text = tmp / "prompts.txt"
    text.write_text("\n".join(prompts) + "\n")
    for raw in ([], ["-no-cnv"]):
        outs = []
        for np in (1, 3, 16):
            out = tmp / "prompts.out"
            Batch(model).run(text, out, "--overwrite", "-np", np, "--ids", "-n", "12", *options, *raw)
            outs.append(out.read_bytes())
        check(outs[0] == outs[1] == outs[2], "-np changes an answer")
        for answer in lines_of(out)[::3]:
            seed = ["-s", str(answer["seed"])] if answer["seed"] is not None else []
            alone = json.loads(run(QUERN, "run", "-t", "1", "-m", model, "-p", prompts[answer["line"] - 1], "-n", "12", "--output", "json",
                                   "--no-timings", *options, *raw, *seed, *same).stdout)
            check(alone["ids"] == answer["ids"] and alone["text"] == answer["text"], f"{answer}\nalone {alone}")
            check(alone["finish_reason"] == answer["finish_reason"], f"{answer}")
            check(alone["prompt_tokens"] == answer["usage"]["prompt_tokens"], f"{answer}")


def check_formats(model, tmp):
    """G19, and what a line of each format gives."""
    batch = Batch(model, "-n", "4", "--temp", "0")
    plain = ["one", "two  ", "{three", "4"]
    expected = None
    for name, data in (("lf", "one\ntwo  \n{three\n4\n"), ("crlf", "one\r\ntwo  \r\n{three\r\n4\r\n"),
                       ("bom", "\ufeffone\ntwo  \n{three\n4"), ("blank", "one\n\n  \ntwo  \n{three\n\t\n4")):
        (tmp / "in.txt").write_bytes(data.encode())
        result = batch.run(tmp / "in.txt", tmp / f"{name}.out")
        check(summary(result) == (4, 0, 0, 4), f"{name}: {result.stderr}")
        answers = [(a["text"], a["usage"]) for a in lines_of(tmp / f"{name}.out")]
        expected = expected or answers
        check(answers == expected, f"{name}: {answers}")
    (tmp / "in.jsonl").write_text("\ufeff" + json.dumps({"prompt": "one", "id": "x"}) + "\r\n\r\n" + json.dumps({"prompt": "two  ", "custom_id": "y\u0007\u001b[2J"})
                                  + "\n" + json.dumps("{three") + "\n" + json.dumps({"text": "4", "id": 9}))
    batch.run(tmp / "in.jsonl", tmp / "jsonl.out")
    answers = lines_of(tmp / "jsonl.out")
    check([(a["text"], a["usage"]) for a in answers] == expected, f"{answers}")
    check([a["custom_id"] for a in answers] == ["x", "y\u0007\u001b[2J", None, "9"] and [a["line"] for a in answers] == [1, 3, 4, 5], f"{answers}")
    check(b"\x1b" not in (tmp / "jsonl.out").read_bytes() and b"\x07" not in (tmp / "jsonl.out").read_bytes(), "raw control bytes")
    # messages, system, and a forced format
    write_lines(tmp / "m.jsonl", [{"messages": [{"role": "user", "content": "one"}]}, {"prompt": "one"},
                                  {"prompt": "one", "system": "S"}, {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "one"}]}]},
                                  {"prompt": "one", "max_tokens": 2, "temperature": 0.5, "seed": 3}])
    batch.run(tmp / "m.jsonl", tmp / "m.out", "--ids")
    a = lines_of(tmp / "m.out")
    check(a[0]["ids"] == a[1]["ids"] and a[2]["ids"] == a[3]["ids"] and a[4]["seed"] == 3 and len(a[4]["ids"]) <= 2, f"{a}")
    check(a[2]["usage"]["prompt_tokens"] > a[1]["usage"]["prompt_tokens"], "system is not used")
    batch.run(tmp / "m.jsonl", tmp / "t.out", "--input-format", "text")
    check(len(lines_of(tmp / "t.out")) == 5, "forced text")
    # standard input and output, pipes, an empty input
    data = (tmp / "in.jsonl").read_bytes()
    result = batch.run("-", "-", stdin=data)
    check(result.stdout == (tmp / "jsonl.out").read_bytes(), "pipes")
    check(summary(result) == (4, 0, 0, 4), f"{result.stderr}")
    (tmp / "empty").write_text("\n\n")
    check(summary(batch.run(tmp / "empty", tmp / "empty.out")) == (0, 0, 0, 0), "an empty input")
    check((tmp / "empty.out").read_bytes() == b"", "an empty output")
    rejected(batch.run(tmp / "absent", tmp / "a.out", expect=None), 3, "absent")
    rejected(batch.run(tmp, tmp / "a.out", expect=None), 3, "is a directory")
    check(not (tmp / "a.out").exists(), "an output of a run that never began")
    bad = tmp / "bad.txt"
    bad.write_bytes(b"ok\n\xff\xfe bad\nok\n" + b"nul \0 byte\n")
    result = batch.run(bad, tmp / "bad.out", expect=1)
    check([x["error"] and x["error"]["code"] for x in lines_of(tmp / "bad.out")] == [None, "invalid_utf8", None, None], "bytes that are no text")


def check_custom_ids(model, tmp):
    """G18: twice is an error before anything runs; long ones are errors of their lines."""
    batch = Batch(model, "-n", "2")
    twice = write_lines(tmp / "twice.jsonl", [{"prompt": "a", "id": "same"}, {"prompt": "b"}, {"prompt": "c", "id": "same"}])
    rejected(batch.run(twice, tmp / "twice.out", expect=None), 3, "twice.jsonl:3", "line 1", "same")
    check(not (tmp / "twice.out").exists() and not (tmp / "twice.out.manifest").exists(), "nothing is written")
    long = write_lines(tmp / "long.jsonl", [{"prompt": "a", "id": "x" * (7 << 20)}, {"prompt": "b", "id": "y" * 4096}])
    batch.run(long, tmp / "long.out", expect=1)
    first, second = lines_of(tmp / "long.out")
    check(first["custom_id"] is None and "at most 4096" in first["error"]["message"] and second["error"] is None, f"{first}")
    wide = tmp / "wide.jsonl"
    with open(wide, "w") as out:
        out.write(json.dumps({"prompt": "a"}) + "\n")
        out.write(json.dumps({"prompt": "a", "id": "x" * (10 << 20)}) + "\n")
        out.write(json.dumps({"prompt": "a"}) + "\n")
    batch.run(wide, tmp / "wide.out", expect=1)
    codes = [a["error"] and a["error"]["code"] for a in lines_of(tmp / "wide.out")]
    check(codes == [None, "line_too_long", None], f"{codes}")


def check_seeds(model, tmp):
    """Of custom_id and line, so neither place nor neighbours nor -np change them; --seed changes all."""
    lines = [{"prompt": f"p{i % 3}", "custom_id": f"id{i}"} for i in range(12)]
    write_lines(tmp / "s1.jsonl", lines)
    write_lines(tmp / "s2.jsonl", list(reversed(lines)))
    batch = Batch(model, "-n", "6", "--temp", "1.5")
    batch.run(tmp / "s1.jsonl", tmp / "s1.out", "-np", "5")
    batch.run(tmp / "s2.jsonl", tmp / "s2.out", "-np", "2")
    batch.run(tmp / "s1.jsonl", tmp / "s3.out", "--seed", "1")
    one, two, three = ({a["custom_id"]: (a["seed"], a["text"]) for a in lines_of(tmp / f"s{k}.out")} for k in (1, 2, 3))
    check(one == two, "a reordered input has other answers")
    check(len({seed for seed, _ in one.values()}) == 12 and all(one[k][0] != three[k][0] for k in one), "seeds")


def check_embeddings(model, tmp, name):
    texts = ["one", "another text", "x" * 40, "\u00e9"]
    lines = [{"custom_id": f"e{i}", "method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": t}} for i, t in enumerate(texts)]
    lines.append({"custom_id": "all", "method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": texts, "encoding_format": "base64"}})
    write_lines(tmp / "e.jsonl", lines)
    Batch(model).run(tmp / "e.jsonl", tmp / f"e-{name}.out")
    answers = [a["response"]["body"]["data"] for a in lines_of(tmp / f"e-{name}.out")]
    (tmp / "texts.txt").write_text("\n".join(texts) + "\n")
    alone = [json.loads(x)["embedding"] for x in run(QUERN, "embed", "-t", "1", "-m", model, "-f", tmp / "texts.txt").stdout.splitlines()]
    f32 = lambda v: struct.pack(f"<{len(v)}f", *v)
    check([f32(a[0]["embedding"]) for a in answers[:-1]] == [f32(v) for v in alone], f"{name}: other vectors than quern embed")
    check([base64.b64decode(d["embedding"]) for d in answers[-1]] == [f32(v) for v in alone], f"{name}: base64")


def check_not_finite(tmp):
    """G21: one line's logits are NaN; its neighbours do not notice."""
    model = poisoned(tmp, "~")
    clean = [f"text {i}" for i in range(8)]
    write_lines(tmp / "clean.jsonl", [{"prompt": t, "id": t} for t in clean])
    mixed = [{"prompt": t, "id": t} for t in clean]
    mixed.insert(3, {"prompt": "a ~ b", "id": "nan"})
    write_lines(tmp / "nan.jsonl", mixed)
    batch = Batch(model, "-n", "8", "-np", "9")
    batch.run(tmp / "clean.jsonl", tmp / "clean.out")
    result = batch.run(tmp / "nan.jsonl", tmp / "nan.out", expect=1)
    check(summary(result) == (8, 1, 0, 9), f"{result.stderr}")
    answers = {a["custom_id"]: a for a in lines_of(tmp / "nan.out")}
    error = answers.pop("nan")["error"]
    check("finite" in error["message"] and "step 0" in error["message"], f"{error}")
    for answer in lines_of(tmp / "clean.out"):
        check(answer["text"] == answers[answer["custom_id"]]["text"], f"a neighbour changed: {answer}")


def count_lines(path):
    with open(path, "rb") as file:
        return sum(1 for _ in file)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def peak_kib(command):
    """Exit code and peak RSS. A child's counts what this process held before exec, so nothing large may be held here."""
    pid = os.spawnv(os.P_NOWAIT, command[0], command)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss


def check_big(model, tmp):
    """G22: memory stays flat; a resumed run of many done lines starts fast."""
    small = write_lines(tmp / "small.txt", ["a"])
    batch = Batch(model, "-n", "1", "--temp", "0", "-np", "16")
    code, base = peak_kib(batch.command(small, tmp / "small.out"))
    check(code == 0, "a small input")
    with open(tmp / "wide.txt", "wb") as out:
        out.write(b"a\n")
        for _ in range(100):
            out.write(b"x" * (1 << 20))
        out.write(b"\nb\n")
    code, peak = peak_kib(batch.command(tmp / "wide.txt", tmp / "wide.out2"))
    check(code == 1 and peak - base < 64 << 10, f"a line of 100 MB: exit {code}, {peak - base} KiB more")
    check([a["error"] and a["error"]["code"] for a in lines_of(tmp / "wide.out2")] == [None, "line_too_long", None], "a line of 100 MB")
    n = 1000000 if FULL else 60000
    with open(tmp / "many.jsonl", "w") as out:
        for i in range(n):
            out.write('{"prompt": "%s", "custom_id": "line-%d"}\n' % ("" if i % 10 else "a", i))  # "": no tokens, an error line
    start = time.time()
    many = Batch(model, "-n", "1", "-np", "16", "-no-cnv")
    code, peak = peak_kib(many.command(tmp / "many.jsonl", tmp / "many.out"))
    took = time.time() - start
    check(code == 1 and peak - base < 64 << 10, f"{n} lines: exit {code}, {peak - base} KiB more")
    done, size, n_done = digest(tmp / "many.out"), (tmp / "many.out").stat().st_size, count_lines(tmp / "many.out")
    check(n_done == n, f"{n_done} of {n} lines")
    os.truncate(tmp / "many.out", size - 30)
    start = time.time()
    code, peak = peak_kib(many.command(tmp / "many.jsonl", tmp / "many.out") + ["--resume"])
    resumed = time.time() - start
    check(code == 1 and digest(tmp / "many.out") == done, "resumed")
    check(peak - base < 64 << 10, f"{n} lines resumed: {peak - base} KiB more")
    print(f"{n} lines: {took:.1f} s, resumed in {resumed:.1f} s, {peak - base} KiB above a small run")
    check(resumed < 60, f"a resumed run of {n} lines takes {resumed:.1f} s: is its start quadratic?")


def check_progress(model, tmp):
    """Nothing of a bar without a terminal; a line now and then; --quiet: the summary alone."""
    source = write_lines(tmp / "p.txt", [f"line {i}" for i in range(10)])
    result = run(QUERN, "batch", "-m", model, "-i", source, "-o", tmp / "p.out", "-n", "4", "-t", "1", "--progress", "1")
    check(b"\x1b" not in result.stderr and b"\r" not in result.stderr and result.stdout == b"", f"{result.stderr}")
    result = subprocess.run(["script", "-qec", f"{QUERN} batch -m {model} -i {source} -o {tmp}/q.out -n 64 -t 1 --ignore-eos", "/dev/null"],
                            capture_output=True, stdin=subprocess.DEVNULL)
    check(b"quern: batch: 10 done" in result.stdout, f"{result.stdout}")


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        model = make_model(tmp)
        check_formats(model, tmp)
        check_thousand(model, tmp)
        check_equal_to_run(model, tmp)
        check_equal_to_run(model, tmp, ("--temp", "0"))
        check_custom_ids(model, tmp)
        check_seeds(model, tmp)
        check_embeddings(model, tmp, "decoder")
        check_embeddings(make_model(tmp, "bert", template=False), tmp, "encoder")
        check_not_finite(tmp)
        for fixture, options in (("llama-dynamic-ntk", ("-c", "256")), ("t5", ("-no-cnv",)), ("bart", ("-no-cnv",)),
                                 ("mistral-swa", ()), ("deepseek-v3", ("--deterministic",)), ("gpt-oss-sinks", ())):
            check_equal_to_run(make_model(tmp, fixture, template=fixture not in ("t5", "bart")), tmp, options)
        check_equal_to_run(make_model(tmp, "t5", "t5-beams", template=False), tmp, ("--num-beams", "3"))
        check_progress(model, tmp)
        check_big(model, tmp)
    print("batch: 1,000 mixed lines, fields, formats, equality with run, seeds, embeddings, NaN, big inputs")


main()
