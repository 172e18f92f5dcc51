"""quern-convert from the outside: streams, interruption, SIGKILL, limits, races. After each of them the target is
absent or whole, and the next run succeeds."""
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import tempfile
import time

from harness import CONVERT, EMULATOR, QUERN, SOURCE, check, run

FIXTURES = SOURCE / "tests/data/fixtures"
WIDTH, HIDDEN, LAYERS, VOCAB = 512, 1536, 4, 8000


def write_checkpoint(folder):
    """A checkpoint of 19 million parameters: long enough to be interrupted."""
    folder.mkdir()
    config = {"architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH, "intermediate_size": HIDDEN,
              "num_hidden_layers": LAYERS, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": VOCAB,
              "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH]}
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{norm}.weight"] = [WIDTH]
        for part in "qkvo":
            shapes[f"{at}self_attn.{part}_proj.weight"] = [WIDTH, WIDTH]
        for part, shape in (("gate", [HIDDEN, WIDTH]), ("up", [HIDDEN, WIDTH]), ("down", [WIDTH, HIDDEN])):
            shapes[f"{at}mlp.{part}_proj.weight"] = shape
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    # bf16 values of both signs between 2^-6 and 2^-2, from a fixed sequence.
    pattern, state = bytearray(), 1
    for _ in range(32768):
        state = (state * 1103515245 + 12345) % 2**31
        pattern += struct.pack("<H", (state >> 16 & 1) << 15 | (0x3C80 + (state >> 8) % 0x200))
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.write((bytes(pattern) * (offset // len(pattern) + 1))[:offset])


def temporaries(folder):
    return [p for p in folder.iterdir() if p.name.startswith(".")]


def start(source, target, *options, limit=None):
    def prepare():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return subprocess.Popen([CONVERT, source, target, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=prepare)


def wait_for_temporary(process, folder):
    end = time.time() + 60
    while time.time() < end and process.poll() is None:
        if any((t / "model.quern").exists() for t in temporaries(folder)):
            return
        time.sleep(0.002)


def check_foreign(tmp):
    """An architecture that is none of quern's is the error, whatever the weights are; of a known one the weights are."""
    header = json.dumps({"backbone.layers.0.mixer.A_log": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    weights = {"none": {}, "pickle": {"pytorch_model.bin": b"PK"}, "cut": {"model.safetensors": b"\xff" * 7},
               "shards": {"model.safetensors.index.json": b'{"weight_map": {"a": "gone.safetensors"}}'},
               "whole": {"model.safetensors": struct.pack("<Q", len(header)) + header + bytes(4)}}
    names = {"MambaForCausalLM": "state-space", "Qwen2VLForConditionalGeneration": "vision", "ZebraForCausalLM": "unsupported"}
    for name, files in weights.items():
        for architecture, why in (*names.items(), ("LlamaForCausalLM", None), (None, None)):
            folder = tmp / f"foreign-{name}-{architecture}"
            folder.mkdir()
            config = {"hidden_size": 64, **({"architectures": [architecture], "model_type": "mamba"} if architecture else {})}
            (folder / "config.json").write_text(json.dumps(config))
            for file, data in files.items():
                (folder / file).write_bytes(data)
            error = run(CONVERT, folder, tmp / "never", expect=3).stderr.decode()
            check(error.count("\n") == 1 and error.startswith("quern-convert: error: "), f"{folder.name}: {error}")
            told = why is not None and why in error and architecture in error and "--print-supported-models" in error
            check(told == (why is not None) and (why or name == "whole" or "architecture" not in error), f"{folder.name}: {error}")


def check_first_error(tmp):
    """A damaged configuration is told before what the weights lack, but not in place of what the machine lacks."""
    damaged = tmp / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text('{"architectures": ["LlamaForCausalLM"],')
    error = run(CONVERT, damaged, tmp / "never", expect=3).stderr.decode()
    check("config.json:" in error and "safetensors" not in error and error.count("\n") == 1, error)
    if EMULATOR:  # the limit would be its own
        return
    foreign = tmp / "foreign"
    foreign.mkdir()
    (foreign / "config.json").write_text('{"architectures": ["MambaForCausalLM"]}')
    with open(foreign / "model.safetensors", "wb") as file:
        file.truncate(1 << 40)  # a hole: nothing on the disk
    limited = ("sh", "-c", 'ulimit -v 16000000 && exec "$0" "$@"')
    error = run(*limited, CONVERT, foreign, tmp / "never", expect=4).stderr.decode()
    check("out of memory" in error and "Mamba" not in error, error)


def check_streams(tmp):
    result = run(CONVERT, FIXTURES / "llama2", tmp / "a", "q8")
    check(result.stdout == b"", "a conversion writes nothing to standard output")
    check(b"rel. RMSE" in result.stderr and b"\x1b" not in result.stderr and b"\r" not in result.stderr,
          "the report is plain text on standard error")
    before = sorted(p.name for p in tmp.iterdir())
    dry = run(CONVERT, FIXTURES / "llama2", tmp / "never", "q4", "--dry-run")
    check(b"decoder.1.1.down.weight" in dry.stdout and b"bits per weight" in dry.stdout, "--dry-run prints the plan")
    check(sorted(p.name for p in tmp.iterdir()) == before, "--dry-run writes nothing")
    check(b"GPT2LMHeadModel" in run(CONVERT, "--print-supported-models").stdout, "supported models")
    check(run(CONVERT, "--version").stdout.startswith(b"quern-convert "), "--version")
    verified = run(CONVERT, FIXTURES / "gpt2", tmp / "v", "q8", "--verify")
    check(b"verify: 32 tokens" in verified.stderr, "--verify")


def check_errors(tmp):
    for arguments, code in ((["nowhere", tmp / "x"], 3), ([FIXTURES / "llama2", tmp / "a"], 2), ([], 2),
                            ([FIXTURES / "llama2", tmp / "x", "q5_9"], 2), ([FIXTURES, tmp / "x"], 3),
                            ([FIXTURES / "llama2", tmp / "no" / "x"], 4),
                            ([FIXTURES / "gpt2", tmp / "x", "--rope-scale", "2"], 2),
                            ([FIXTURES / "llama2", tmp / "x", "--tensor-type", "no-equals-sign"], 2)):
        result = run(CONVERT, *arguments, expect=code)
        lines = result.stderr.decode().splitlines()
        check(len(lines) == 1 and lines[0].startswith("quern-convert: error: "), f"{arguments}: {lines}")
    check(not (tmp / "x").exists() and not temporaries(tmp), "errors leave nothing")


def check_target_option(tmp):
    """-o DIR, --output DIR and --outfile DIR are OUT; the second word is then the type."""
    source = FIXTURES / "llama2"
    for number, words in enumerate(([source, "-o", tmp / "o0", "q8"], [source, "--output", tmp / "o1", "--type", "q8"],
                                    [f"--outfile={tmp / 'o2'}", source, "--outtype", "q8"])):
        run(CONVERT, *words)
        check((tmp / f"o{number}" / "model.quern").read_bytes() == (tmp / "a" / "model.quern").read_bytes(), f"{words}")
    for words in ([source, tmp / "x", "q8", "-o", tmp / "y"], [source, tmp / "x", "-o", tmp / "y"], [source, "-o"],
                  [source, "-o", ""], [source, "-o", tmp / "a"]):
        lines = run(CONVERT, *words, expect=2).stderr.decode().splitlines()
        check(len(lines) == 1 and lines[0].startswith("quern-convert: error: "), f"{words}: {lines}")
    check(not (tmp / "x").exists() and not (tmp / "y").exists(), "a target given twice writes nothing")


def check_interrupted(tmp, source):
    whole = run(CONVERT, source, tmp / "whole", "q8") and (tmp / "whole" / "model.quern").read_bytes()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        process = start(source, tmp / "whole", "q4", "--force")
        wait_for_temporary(process, tmp)
        process.send_signal(number)
        process.communicate()
        check(process.returncode == -number, f"signal {number} is re-raised, got {process.returncode}")
        check(not temporaries(tmp), f"signal {number} leaves a temporary directory")
        check((tmp / "whole" / "model.quern").read_bytes() == whole, "the old model is intact")
    for delay in (0.0, 0.05, 0.3):
        process = start(source, tmp / "killed", "q8")
        wait_for_temporary(process, tmp)
        time.sleep(delay)
        process.kill()
        process.communicate()
        check(not (tmp / "killed").exists() or process.returncode == 0, "a killed conversion leaves no target")
        left = temporaries(tmp)
        run(CONVERT, source, tmp / "killed", "q8", "--force")
        check(not temporaries(tmp), f"the run after it removes what the killed one left: {left}")
        check((tmp / "killed" / "model.quern").read_bytes() == whole, "the run after it writes the same bytes")
        run("rm", "-rf", tmp / "killed")


def check_limits_and_races(tmp, source):
    process = start(source, tmp / "limited", "q8", limit=1 << 20)
    _, error = process.communicate()
    check(process.returncode == 4 and b"File too large" in error, f"file size limit: {process.returncode} {error}")
    check(not (tmp / "limited").exists() and not temporaries(tmp), "the limit leaves nothing")
    for _ in range(3):
        racers = [start(FIXTURES / "llama2", tmp / "race", "q8") for _ in range(4)]
        codes = sorted(p.wait() for p in racers)
        check(codes[0] == 0 and all(c in (2, 4) for c in codes[1:]), f"one of several converters wins: {codes}")
        run(QUERN, "verify", "-m", tmp / "race", "--quick", expect=None)
        check(not temporaries(tmp), "losers leave nothing")
        check((tmp / "race" / "model.quern").read_bytes() == (tmp / "a" / "model.quern").read_bytes(), "whole file")
        run("rm", "-rf", tmp / "race")


def check_memory(tmp, source):
    """Peak resident memory: largest tensor (8 MB) x 3 + 256 MiB, also when both files together are larger."""
    process = start(source, tmp / "float", "f32")
    _, status, usage = os.wait4(process.pid, 0)
    check(status == 0, "conversion to f32")
    check(usage.ru_maxrss * 1024 < 3 * 2 * VOCAB * WIDTH + (256 << 20), f"peak RSS {usage.ru_maxrss} KiB")


def write_gpt2(folder, width):
    """Of any width: its matrices are stored transposed, so that one column of theirs is a row."""
    folder.mkdir()
    shapes = {"wte.weight": [9, width], "wpe.weight": [16, width], "ln_f.weight": [width], "ln_f.bias": [width]}
    for norm in ("ln_1", "ln_2"):
        shapes |= {f"h.0.{norm}.{part}": [width] for part in ("weight", "bias")}
    for name, rows, columns in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                ("mlp.c_fc", width, 4 * width), ("mlp.c_proj", 4 * width, width)):
        shapes |= {f"h.0.{name}.weight": [rows, columns], f"h.0.{name}.bias": [columns]}
    header, data = {}, b""
    for i, (name, shape) in enumerate(shapes.items()):
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = struct.pack(f"<{n}f", *((7 * k + i) % 11 / 11 - 0.4 for k in range(n)))
        header["transformer." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": width, "n_head": 1, "n_layer": 1,
        "n_positions": 16, "vocab_size": 9}))


def check_narrow(tmp):
    for width in (1, 2, 3):
        write_gpt2(tmp / f"gpt2-{width}", width)
        for kind in ("f32", "q8"):
            run(CONVERT, tmp / f"gpt2-{width}", tmp / f"narrow-{width}-{kind}", "--type", kind, "-q")
            run(QUERN, "verify", "-m", tmp / f"narrow-{width}-{kind}", "--quick")


def main():
    with tempfile.TemporaryDirectory() as name:
        tmp = pathlib.Path(name)
        source = tmp / "source"
        write_checkpoint(source)
        check_streams(tmp)
        check_foreign(tmp)
        check_first_error(tmp)
        check_errors(tmp)
        check_narrow(tmp)
        check_target_option(tmp)
        check_interrupted(tmp, source)
        check_limits_and_races(tmp, source)
        check_memory(tmp, source)
    print("quern-convert: streams, errors, SIGINT, SIGTERM, SIGKILL, file size limit, four racing converters, memory")


main()
