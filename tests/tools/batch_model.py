"""Shared by the tests of `quern batch`: tiny models with a byte-level tokenizer and a chat template, inputs, and the
command itself."""
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess

from harness import CONVERT, QUERN, SOURCE, check, fail, run

FIXTURES = SOURCE / "tests/data/fixtures"
SPECIAL = ["<unk>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|tool|>"]
TEMPLATE = ("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}<|assistant|>{% endif %}")
FIRST_BYTE = 16  # the id of byte 0


def byte_characters():
    """The characters that byte-level tokenizers write bytes as."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, extra = {}, 0
    for byte in range(256):
        if byte in plain:
            names[byte] = chr(byte)
        else:
            names[byte] = chr(256 + extra)
            extra += 1
    return names


def write_tokenizer(folder, template=True, special=SPECIAL):
    """template: a chat template, or True for TEMPLATE; special: the control tokens, ids 0 up to FIRST_BYTE - 1."""
    vocab = {name: i for i, name in enumerate(special)}
    vocab.update({name: FIRST_BYTE + byte for byte, name in byte_characters().items()})
    added = [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, name in enumerate(special)]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}}))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    if template:
        config["chat_template"] = TEMPLATE if template is True else template
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def make_model(tmp, fixture="llama3", name=None, template=True, special=SPECIAL):
    name = name or fixture
    source = tmp / f"source-{name}"
    shutil.copytree(FIXTURES / fixture, source)
    write_tokenizer(source, template, special)
    target = tmp / f"model-{name}"
    run(CONVERT, source, target, "--type", "f32", "-q")
    shutil.rmtree(source)
    return target


def poisoned(tmp, byte, fixture="qwen3"):
    """A model whose answers are not finite once this byte is in the prompt: its embedding is NaN. The head is separate."""
    source = tmp / "source-poisoned"
    shutil.copytree(FIXTURES / fixture, source)
    write_tokenizer(source)
    config = json.loads((source / "config.json").read_text())
    config["tie_word_embeddings"] = False
    (source / "config.json").write_text(json.dumps(config))
    data = (source / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header, body = json.loads(data[8:8 + size]), bytearray(data[8 + size:])
    begin, end = header["model.embed_tokens.weight"]["data_offsets"]
    if "lm_head.weight" not in header:
        header["lm_head.weight"] = {**header["model.embed_tokens.weight"], "data_offsets": [len(body), len(body) + end - begin]}
        body += body[begin:end]
    row = (end - begin) // header["model.embed_tokens.weight"]["shape"][0]
    width = row // header["model.embed_tokens.weight"]["shape"][1]
    at = begin + (FIRST_BYTE + ord(byte)) * row
    body[at:at + row] = (b"\xc0\x7f" if width == 2 else b"\0\0\xc0\x7f") * (row // width)
    text = json.dumps(header).encode()
    (source / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(body))
    target = tmp / "model-poisoned"
    run(CONVERT, source, target, "--type", "f32", "-q", "--allow-nonfinite")
    shutil.rmtree(source)
    return target


def lines_of(path):
    """Every line of an output, checked: strict JSON, valid UTF-8, one line end each, no raw control byte (G25)."""
    data = pathlib.Path(path).read_bytes()
    check(data == b"" or data.endswith(b"\n"), f"{path}: no line end at the end")
    out = []
    for line in data.split(b"\n")[:-1]:
        text = line.decode("utf-8", errors="strict")
        check(not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text), f"a raw control character in {text!r}")
        out.append(json.loads(text, parse_constant=lambda word: fail(f"{word} in {text!r}")))
    return out


def write_lines(path, items):
    path.write_text("".join((item if isinstance(item, str) else json.dumps(item)) + "\n" for item in items))
    return path


SUMMARY = re.compile(r"quern: batch: (\d+) done, (\d+) failed, (\d+) remaining of (\d+) lines")


def summary(result):
    """(done, failed, remaining, total) of the last line of standard error; they add up (G27)."""
    text = result.stderr.decode(errors="replace") if isinstance(result.stderr, bytes) else result.stderr
    found = SUMMARY.findall(text)
    check(len(found) == 1, f"one summary: {text[-800:]!r}")
    done, failed, remaining, total = map(int, found[0])
    check(done + failed + remaining == total, f"{found}")
    return done, failed, remaining, total


def errors(result):
    text = result.stderr.decode(errors="replace")
    return [line for line in text.splitlines() if "error:" in line]


def rejected(result, code, *words):
    """One error line with these words, this exit code."""
    found = errors(result)
    check(result.returncode == code, f"{result.args}: exit {result.returncode}, expected {code}: {result.stderr[-900:]}")
    check(len(found) == 1 and len(found[0]) < 600, f"{result.args}: {found}")
    for word in words:
        check(word in found[0], f"no {word!r} in {found[0]}")


class Batch:
    """`quern batch` of one model."""

    def __init__(self, model, *options):
        self.model, self.options = model, [str(o) for o in options]

    def command(self, source, target, *options):
        return [str(c) for c in (QUERN, "batch", "-m", self.model, "-i", source, "-o", target, "-q",
                                 *(["-t", "1"] if "-t" not in options else []), *self.options, *options)]

    def run(self, source, target, *options, expect=0, **more):
        return run(*self.command(source, target, *options), expect=expect, **more)

    def start(self, source, target, *options, **more):
        return subprocess.Popen(self.command(source, target, *options), stderr=subprocess.PIPE, **more)


def ended(process):
    """A finished process as run() returns it."""
    stdout, stderr = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() if pathlib.Path(path).exists() else None


def files_of(folder):
    return {p.name: digest(p) for p in sorted(folder.iterdir()) if p.is_file()}
