"""Structured output. Random texts of the grammars of 250 schemas (real-life ones and generated ones) are valid by the
jsonschema package; valid instances in quern's style are accepted; regular expressions agree with Python's; with
SmolLM2 (if it is there) `quern run --json-schema` at temperature 1 gives valid answers that end: a few schemas; with
QUERN_STRUCTURED_ALL=1 all 200 in one `quern batch`. QUERN_STRUCTURED_MODEL=DIR names a converted model."""
import json
import os
import pathlib
import random
import re
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("jsonschema")
import jsonschema  # noqa: E402

N_SCHEMAS = 250


class Maker:
    """Random schemas of bounded size from the supported keywords."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def schema(self, depth):
        r = self.r
        kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "pattern", "format"]
        if depth > 0:
            kinds += ["object"] * 5 + ["array"] * 3 + ["tuple", "anyOf", "oneOf", "allOf", "map", "ref", "union"]
        return getattr(self, "make_" + r.choice(kinds))(depth)

    def make_string(self, _):
        low = self.r.choice([0, 0, 1, 3])
        return {"type": "string", "minLength": low, "maxLength": low + self.r.randint(0, 12)}

    def make_integer(self, _):
        low = self.r.choice([0, 1, -7, -150, 98, 1950])
        out = {"type": "integer", "minimum": low, "maximum": low + self.r.choice([1, 9, 60, 1207])}
        if self.r.random() < 0.2:
            out["multipleOf"] = self.r.choice([2, 5])
            out["maximum"] += 10
        if self.r.random() < 0.2:
            out["exclusiveMinimum"] = out.pop("minimum") - 1
        return out

    def make_number(self, _):
        low = self.r.choice([0, 0.5, -2.25, -180, 1.125, -0.001])
        out = {"type": "number", "minimum": low, "maximum": low + self.r.choice([0.125, 1, 90.5, 1000])}
        if self.r.random() < 0.3:
            out["exclusiveMaximum"] = out.pop("maximum")
        return out

    def make_boolean(self, _):
        return {"type": "boolean"}

    def make_null(self, _):
        return {"type": "null"}

    def make_enum(self, _):
        pool = ["red", "green", "a \"b\"", 1, 2.5, -3, None, True, "\u00e9t\u00e9", {"k": [1, "x"]}, [], "new\nline"]
        return {"enum": self.r.sample(pool, self.r.randint(1, 5))}

    def make_const(self, _):
        return {"const": self.r.choice(["fixed", 7, None, False, {"a": {"b": []}}])}

    def make_pattern(self, _):
        return {"type": "string", "pattern": self.r.choice([
            "^[A-Z]{2}\\d{3}$", "^(foo|bar)?baz$", "^[^\\s]{1,6}$", "^\\w+@\\w{2,5}$", "^[a-f0-9]{4,8}$", "^(a|b)*c$",
            "^.{2,5}$", "^\\$\\d{1,3}\\.\\d\\d$"]), "maxLength": 12}

    def make_format(self, _):
        return {"type": "string", "format": self.r.choice(
            ["date", "time", "date-time", "uuid", "email", "ipv4", "ipv6", "hostname", "duration", "json-pointer"]),
            "maxLength": 60}

    def make_object(self, depth):
        names = self.r.sample(["id", "name", "value", "x y", "items", "\"q\"", "note", "count"], self.r.randint(0, 5))
        out = {"type": "object", "properties": {n: self.schema(depth - 1) for n in names},
               "required": [n for n in names if self.r.random() < 0.6]}
        choice = self.r.random()
        if choice < 0.4:
            out["additionalProperties"] = False
        elif choice < 0.5:
            out["additionalProperties"] = {"type": "integer", "minimum": 0, "maximum": 9}
            out["maxProperties"] = len(names) + 2
        if self.r.random() < 0.15 and len(names) > 2 and choice < 0.4:
            out["minProperties"] = 2
        return out

    def make_map(self, depth):
        return {"type": "object", "patternProperties": {"^k[a-z]{0,3}$": self.schema(0)}, "additionalProperties": False,
                "maxProperties": 3}

    def make_array(self, depth):
        low = self.r.choice([0, 0, 1, 2])
        return {"type": "array", "items": self.schema(depth - 1), "minItems": low, "maxItems": low + self.r.randint(0, 2)}

    def make_tuple(self, depth):
        out = {"type": "array", "prefixItems": [self.schema(depth - 1) for _ in range(self.r.randint(1, 3))], "maxItems": 4}
        if self.r.random() < 0.5:
            out["items"] = self.schema(0)
            out["minItems"] = self.r.randint(0, 3)
        return out

    def make_anyOf(self, depth):
        return {"anyOf": [self.schema(depth - 1) for _ in range(self.r.randint(1, 3))]}

    def make_oneOf(self, depth):
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": f"k{i}"}, "v": self.schema(depth - 1)},
                           "required": ["kind"]} for i in range(self.r.randint(1, 3))]}

    def make_allOf(self, depth):
        a, b = self.make_object(depth - 1), self.make_object(depth - 1)
        for part in (a, b):
            for key in ("additionalProperties", "maxProperties", "minProperties"):
                part.pop(key, None)
        for name in set(a["properties"]) & set(b["properties"]):
            del b["properties"][name]
        return {"allOf": [a, b]}

    def make_ref(self, depth):
        return {"$ref": "#/$defs/shared"}

    def make_union(self, _):
        return {"type": self.r.sample(["string", "integer", "null", "boolean"], 2), "maxLength": 5, "minimum": 0,
                "maximum": 50}

    def root(self):
        out = self.schema(3)
        if "#/$defs/shared" in json.dumps(out):
            out["$defs"] = {"shared": {"type": "object", "properties": {"s": {"type": "string", "maxLength": 4}}}}
        return out


def schemas():
    path = SOURCE / "tests/data/structured/schemas.jsonl"
    out = [json.loads(line) for line in path.read_text().splitlines()]
    seed = 0
    while len(out) < N_SCHEMAS:
        seed += 1
        out.append(Maker(seed).root())
    return out


FORMATS = jsonschema.FormatChecker(["date", "ipv4", "ipv6", "uuid", "email"])


def validator(schema):
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, format_checker=FORMATS)




def parse(text):
    def refuse(word):
        raise ValueError(word)
    return json.loads(text, parse_constant=refuse)


def check_samples(directory):
    """Everything that the grammar of a schema allows is valid."""
    n_texts = n_refused = 0
    for number, schema in enumerate(schemas()):
        path = directory / "schema.json"
        path.write_text(json.dumps(schema))
        result = run(QUERN, "grammar", "-jf", path, "--sample", 25, "--sample-length", 20 + number % 100, "-s", number,
                     expect=None)
        if result.returncode == 3 and b"no text matches" in result.stderr:
            n_refused += 1  # a generated schema without a valid value
            continue
        check(result.returncode == 0, f"{json.dumps(schema)}: {result.stderr.decode()}")
        valid = validator(schema)
        for line in result.stdout.decode().splitlines():
            text = json.loads(line)
            errors = list(valid.iter_errors(parse(text)))
            check(not errors, f"{json.dumps(schema)}\n{text}\n{errors and errors[0].message}")
            n_texts += 1
    check(n_refused < 12, f"{n_refused} of {N_SCHEMAS} schemas without a value")
    return n_texts, N_SCHEMAS - n_refused


def instance(schema, r):
    """A valid value in the order of the schema's properties, of simple schemas."""
    if "enum" in schema:
        return r.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if kind == "object":
        return {name: instance(value, r) for name, value in schema.get("properties", {}).items()
                if name in schema.get("required", []) or r.random() < 0.5}
    if kind == "array":
        low = schema.get("minItems", 0)
        return [instance(schema["items"], r) for _ in range(r.randint(low, schema.get("maxItems", low + 3)))]
    if kind == "string":
        low = schema.get("minLength", 0)
        alphabet = "abc \"\\/\n\t\u0001\u00e9\u20ac\U0001F600{}[],:"
        return "".join(r.choice(alphabet) for _ in range(r.randint(low, schema.get("maxLength", low + 8))))
    if kind == "integer":
        return r.randint(schema.get("minimum", -10**6), schema.get("maximum", 10**6))
    if kind == "number":
        low, high = schema.get("minimum", -50.0), schema.get("maximum", 50.0)
        return r.choice([low, high, round(r.uniform(low, high), 3) + 0.0])
    return {"boolean": r.random() < 0.5, "null": None}[kind]


def simple_schema(r, depth):
    kind = r.choice(["string", "integer", "number", "boolean", "null", "enum"] + (["object", "array"] * 3 if depth else []))
    if kind == "enum":
        return {"enum": [1, "a", None, {"b": [True]}]}
    if kind == "object":
        names = r.sample(["a", "b c", "\u00e9", "d\"", "e"], r.randint(0, 4))
        return {"type": "object", "properties": {n: simple_schema(r, depth - 1) for n in names},
                "required": [n for n in names if r.random() < 0.5]}
    if kind == "array":
        return {"type": "array", "items": simple_schema(r, depth - 1), "minItems": r.randint(0, 2)}
    return {"string": r.choice([{"type": "string"}, {"type": "string", "minLength": 1, "maxLength": 9}]),
            "integer": r.choice([{"type": "integer"}, {"type": "integer", "minimum": -12, "maximum": 1234}]),
            "number": r.choice([{"type": "number"}, {"type": "number", "minimum": -1.5, "maximum": 20}])
            }.get(kind, {"type": kind})


def check_instances(directory):
    """Valid values, as json.dumps writes them, are allowed."""
    r, n = random.Random(5), 0
    for _ in range(120):
        schema = simple_schema(r, 3)
        texts = []
        for _ in range(20):
            value = instance(schema, r)
            check(not list(validator(schema).iter_errors(value)), f"{schema} {value}")
            texts.append(json.dumps(value, ensure_ascii=False))
            texts.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
            texts.append(json.dumps(value, ensure_ascii=False, indent=2))
        texts = [t for t in texts if "{\"b\": [" not in t and "\"b\": [\n" not in t]  # objects of an enum are written compactly
        lines = directory / "lines.jsonl"
        lines.write_text("".join(json.dumps(t) + "\n" for t in texts))
        result = run(QUERN, "grammar", "-j", json.dumps(schema), "--check-lines", lines, expect=None)
        bad = [f"{t!r}: {line}" for t, line in zip(texts, result.stdout.decode().splitlines()) if not line.endswith("fits")]
        check(result.returncode == 0 and not bad, f"{json.dumps(schema)}: {bad[:2]} {result.stderr.decode()}")
        n += len(texts)
    return n


def check_regexes(directory):
    """Random patterns: accepted exactly where Python's fullmatch accepts; samples match."""
    r, n = random.Random(11), 0
    atoms = ["a", "b", "[a-c]", "[^a]", "\\d", "\\w", ".", "(?:ab)", "\u00e9", "[\\s-]", "\\.", "x?"]

    def make(depth):
        if depth == 0:
            return r.choice(atoms)
        parts = [make(depth - 1) for _ in range(r.randint(1, 3))]
        form = r.random()
        if form < 0.4:
            return "".join(parts)
        if form < 0.7:
            return "(" + "|".join(parts) + ")"
        return "(?:" + "".join(parts) + ")" + r.choice(["*", "+", "?", "{2}", "{1,3}", "*?"])

    for _ in range(80):
        pattern = make(2)
        texts = ["".join(r.choice("abcx1 .-\u00e9") for _ in range(r.randint(0, 5))) for _ in range(40)]
        result = run(QUERN, "grammar", "--regex", pattern, "--sample", 20, "--sample-length", 12)
        samples = [json.loads(line) for line in result.stdout.decode().splitlines()]
        for text in samples:
            check(re.fullmatch(pattern, text, re.ASCII), f"{pattern!r} does not match the sample {text!r}")
        texts += samples
        lines = directory / "lines.jsonl"
        lines.write_text("".join(json.dumps(t) + "\n" for t in texts))
        result = run(QUERN, "grammar", "--regex", pattern, "--check-lines", lines, expect=None)
        for text, line in zip(texts, result.stdout.decode().splitlines()):
            check(line.endswith("fits") == bool(re.fullmatch(pattern, text, re.ASCII)), f"{pattern!r} {text!r}: {line}")
            n += 1
    return n


def check_usage():
    for arguments, code, words in [
            ([], 2, "give one of"),
            (["--grammar", "root ::= \"a", ], 3, "--grammar:1:12"),
            (["--grammar", "root ::= \"a\"", "--regex", "a"], 2, "excludes"),
            (["-j", "{\"not\": {}}"], 3, "#/not: the keyword \"not\" is not supported"),
            (["-j", "{"], 3, "--json-schema"),
            (["-jf", "/nonexistent"], 3, "/nonexistent"),
            (["--regex", "(?=a)"], 3, "look-ahead")]:
        result = run(QUERN, "grammar", *arguments, expect=code)
        error = result.stderr.decode()
        check(words in error and error.count("\n") == 1, f"{arguments}: {error}")
    result = run(QUERN, "grammar", "--regex", "ab+", "--check", "-", stdin=b"abx", expect=1)
    check(b"does not fit from byte 2" in result.stdout, result.stdout)


def check_small_stack():
    """What nests is compiled and printed, or refused, with 256 KiB of stack."""
    texts = [("--regex", "(" * n + "a" + ")*" * n) for n in (150, 199, 5000)]
    texts += [("--regex", "(x|y" * n + "a" + ")*b" * n) for n in (150, 199)]
    texts += [("--grammar", "root ::= " + "(" * n + "\"a\"" + ")*" * n) for n in (199, 5000)]
    texts += [("--grammar", "root ::= \"a\"" + sign * n) for n in (250, 700, 5000) for sign in "?*+"]
    texts += [("-j", json.dumps({"type": "string", "pattern": "(" * n + "a" + ")*" * n})) for n in (150, 199)]
    for option, text in texts:
        word = [option, text] if option == "-j" else [f"{option}={text}"]
        result = run("sh", "-c", "ulimit -s 256; exec \"$0\" \"$@\"", QUERN, "grammar", *word, expect=None)
        check(result.returncode in (0, 3), f"{option} {text[:40]} ({len(text)} bytes): exit {result.returncode}")
    return len(texts)


def find_model(directory):
    named = os.environ.get("QUERN_STRUCTURED_MODEL")
    if named:
        return pathlib.Path(named)
    candidates = [os.environ.get("QUERN_SMOLLM2_GGUF", ""), *(SOURCE / "build-models").glob("SmolLM2*.gguf")]
    for gguf in candidates:
        if gguf and pathlib.Path(gguf).is_file():
            run(CONVERT, gguf, directory / "smollm2", "--type", "keep")
            return directory / "smollm2"
    return None


PROMPT, LENGTH = "Answer with some JSON.", "700"


def check_answer(schema, answer):
    """Whether an answer has ended; a failure if it is not valid then."""
    if answer["finish_reason"] != "stop":
        print(f"cut after {answer['completion_tokens']} tokens: {json.dumps(schema)} {answer['text'][:100]!r}")
        return False
    errors = list(validator(schema).iter_errors(parse(answer["text"])))
    check(not errors, f"{json.dumps(schema)}\n{answer['text']}\n{errors and errors[0].message}")
    return True


def check_run(model, directory):
    """Each schema in a process of its own: (answers, those that did not end)."""
    ended = []
    for number, schema in enumerate(schemas()[:10]):
        path = directory / "schema.json"
        path.write_text(json.dumps(schema))
        result = run(QUERN, "run", "-m", model, "-jf", path, "-p", PROMPT, "--temp", "1", "-n", LENGTH, "-t", "1",
                     "-s", number, "--output", "json", "-c", "1024", expect=None)
        if result.returncode == 3 and b"no text matches" in result.stderr:
            continue
        check(result.returncode == 0, f"{json.dumps(schema)}: {result.stderr.decode()}")
        ended.append(check_answer(schema, json.loads(result.stdout)))
    return len(ended), ended.count(False)


def check_batch(model, directory):
    """All of them in one batch, each with its own schema: eight answers to each at once cost a third."""
    chosen = schemas()[:200]
    source, target = directory / "in.jsonl", directory / "out.jsonl"
    lines = [{"custom_id": str(number), "method": "POST", "url": "/v1/chat/completions", "body": {
        "messages": [{"role": "user", "content": PROMPT}], "temperature": 1, "max_tokens": int(LENGTH), "seed": number,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}}}
        for number, schema in enumerate(chosen)]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run(QUERN, "batch", "-m", model, "-i", source, "-o", target, "-c", "1024", "-t", "1", "-np", "16", "-q", expect=None, timeout=7200)
    ended = []
    for line in target.read_text().splitlines():
        item = json.loads(line)
        schema, body = chosen[int(item["custom_id"])], item["response"]["body"]
        if item["response"]["status_code"] != 200:
            check("no text matches" in body["error"]["message"], f"{json.dumps(schema)}: {line}")
            continue
        choice = body["choices"][0]
        ended.append(check_answer(schema, {"finish_reason": choice["finish_reason"], "text": choice["message"]["content"],
                                           "completion_tokens": body["usage"]["completion_tokens"]}))
    check(len(target.read_text().splitlines()) == len(chosen), "the batch is not whole")
    return len(ended), ended.count(False)


def check_model(model, directory):
    n, n_cut = check_run(model, directory)
    if os.environ.get("QUERN_STRUCTURED_ALL"):
        more, more_cut = check_batch(model, directory)
        n, n_cut = n + more, n_cut + more_cut
    check(n_cut <= n // 50, f"{n_cut} of {n} answers did not end")
    run(QUERN, "run", "-m", model, "-j", "{}", "-p", "x", "--num-beams", "2", expect=2)
    text = run(QUERN, "run", "-m", model, "--regex", "[A-Z][a-z]{2,8}, (yes|no)\\.", "-p", "Hello", "--temp", "1",
               "--no-timings").stdout.decode()
    check(re.fullmatch(r"[A-Z][a-z]{2,8}, (yes|no)\.\n", text), repr(text))
    text = run(QUERN, "run", "-m", model, "--grammar", "root ::= (\"- \" [a-z]+ \"\\n\"){3}", "-p", "Three fruits", "--temp",
               "0", "-n", "60", "--no-timings").stdout.decode()
    check(re.fullmatch(r"(- [a-z]+\n){3}\n", text), repr(text))
    return f"{n - n_cut} answers of SmolLM2 valid ({n_cut} cut)"


def main():
    check_usage()
    n_nested = check_small_stack()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        n_texts, n_schemas = check_samples(directory)
        n_instances = check_instances(directory)
        n_regexes = check_regexes(directory)
        model = find_model(directory)
        answers = check_model(model, directory) if model else "no model: skipped `quern run`"
    print(f"{n_nested} nested texts with a small stack, {n_texts} random texts of {n_schemas} schemas valid, {n_instances} instances accepted, "
          f"{n_regexes} texts against Python's re; {answers}")


main()
