#!/usr/bin/env python3
"""Options of the commands where they are wrong or out of the ordinary: unknown ones name the nearest, words are not
called numbers out of range, counts end in k, inputs may be pipes and devices, several samples of one prompt."""
import json
import pathlib
import subprocess
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, run

BESIDE = {"plan": ["-ctk", "int8", "-c", "64"], "batch": ["-i", "/dev/null", "-o", "-"], "classify": ["-p", "a"], "fill": ["-p", "a"],
          "eval": ["--ids-file", "/dev/null", "--against", "/dev/null", "--kv", "int8"],
          "logits": ["--ids-file", "/dev/null", "-o", "/dev/null"]}  # what commands want with a model
FIXTURES, ENCODERS = SOURCE / "tests/data/fixtures", SOURCE / "tests/data/encoders"


def suggestions(model):
    for command, wrong, right in ((["run", "-m", model], "--tempe", "--temp"), (["run", "-m", model], "--num-beems=3", "--num-beams"),
                                  (["embed", "-m", model], "--poolling", "--pooling"), (["inspect", model], "--tensor", "--tensors")):
        text = run(QUERN, *command, wrong, expect=2).stderr.decode()
        check(f"did you mean {right}?" in text and text.count("\n") == 1, f"{wrong}: {text}")
    text = run(CONVERT, FIXTURES / "llama2", "/nowhere", "--dry-runn", expect=2).stderr.decode()
    check("did you mean --dry-run?" in text, text)
    text = run(QUERN, "run", "-m", model, "--xyzzy-plugh", expect=2).stderr.decode()
    check("did you mean" not in text and "--xyzzy-plugh" in text, text)
    text = run(QUERN, "run", "-m", model, "-t", "four", expect=2).stderr.decode()
    check("is not a number" in text, text)
    text = run(QUERN, "run", "-m", model, "-t", "99999", expect=2).stderr.decode()
    check("not in range" in text, text)


def counts(folder, model):
    """A count of tokens may be typed with k, M, G in every command that takes one, and is told from what is none."""
    (folder / "long").write_text("5 " * 2100)
    for words in (["run", "-n", "0.0625k", "--output", "ids"], ["logits", "-o", folder / "l.npy"]):
        text = run(QUERN, *words, "-m", model, "--ids-file", folder / "long", "-c", "2k", expect=3).stderr.decode()
        check("2100" in text and "2048" in text, f"{words} -c 2k: {text}")
    text = run(QUERN, "run", "-m", model, "--ids-file", folder / "long", "--output", "ids", expect=3, env={"QUERN_ARG_CTX_SIZE": "1K"}).stderr.decode()
    check("context is 1024" in text, text)
    for command in ("run", "chat", "batch", "plan", "eval", "bench", "logits", "verify"):
        for word, what in (("64t", "out of range"), ("-3k", "out of range"), ("1.5", "not a whole number"),
                           ("4kk", "not a whole number"), ("nan", "not a whole number")):
            text = run(QUERN, command, "-m", model, f"--ctx-size={word}", expect=2).stderr.decode()
            check(what in text and word in text and text.count("\n") == 1, f"{command} -c {word}: {text}")


def long_contexts(folder, model):
    """A context beyond the trained length is noted once on standard error, and changes nothing on standard output."""
    trained = json.loads((model / "model.json").read_text())["max_positions"]
    (folder / "few").write_text("5 6 7")
    (folder / "lines").write_text(json.dumps({"prompt": "a"}) + "\n")
    for words in (["run", "--ids-file", folder / "few", "-n", 4, "--temp", 0, "--output", "ids", "--no-timings"],
                  ["plan", "--memory", "1G"]):
        for context, noted in ((trained, 0), (trained + 1, 1)):
            result = run(QUERN, *words, "-m", model, "-c", context)
            notes = [line for line in result.stderr.decode().splitlines() if "was trained on" in line]
            check(len(notes) == noted and (not noted or f"{trained} tokens" in notes[0]), f"{words} -c {context}: {notes}")
            check(b"was trained on" not in result.stdout, f"{words}: the note is on standard output")
    several = run(QUERN, "plan", model, "-c", f"64,{2 * trained},{4 * trained}").stderr.decode()
    check(several.count("\n") == 1 and str(4 * trained) in several, f"plan of several contexts: {several}")


def bare_models(folder, model, embedder):
    """The model may stand without -m in every command, before or behind the options; one model is enough."""
    (folder / "few").write_text("5 6 7")
    ids = ["--ids-file", folder / "few"]
    for name, words, of in (("run", [*ids, "-n", 4, "--temp", 0, "--output", "ids", "--no-timings"], model), ("embed", ids, embedder),
                            ("inspect", [], model), ("tokenize", ["-p", "a b"], embedder)):
        plain = run(QUERN, name, "-m", of, *words).stdout
        check(run(QUERN, name, of, *words).stdout == plain, f"{name} MODEL ...")
        check(run(QUERN, name, *words, of).stdout == plain, f"{name} ... MODEL")
        one_line([QUERN, name, "-m", of, *words, "stray"], 2, "stray", "--help")
    run(QUERN, "verify", model, "--quick")
    for name in ("plan", "chat", "batch", "classify", "fill", "eval", "logits", "bench"):
        beside = BESIDE.get(name, [])
        for words in ([folder / "none", *beside], [*beside, folder / "none"]):
            check(str(folder / "none") in run(QUERN, name, *words, expect=3).stderr.decode(), f"{name} {words}")
    one_line([QUERN, "run", "-p", "a"], 2, "--model")


def shell(command):
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120)
    check(result.returncode == 0, f"{command}: {result.stderr.decode()}")
    return result.stdout


def pipes(model, embedder):
    plain = run(QUERN, "embed", "-m", embedder, "-p", "the cat").stdout
    check(shell(f"{QUERN} embed -m {embedder} -f <(echo the cat)") == plain, "embed from a substituted process")
    check(shell(f"echo the cat | {QUERN} embed -m {embedder} -f /dev/stdin") == plain, "embed from /dev/stdin")
    ids = ["-n", "4", "--temp", "0", "--output", "ids", "--no-timings"]
    (model.parent / "ids").write_text("5 6 7\n")
    plain = run(QUERN, "run", "-m", model, "--ids-file", model.parent / "ids", *ids).stdout
    check(shell(f"{QUERN} run -m {model} --ids-file <(echo 5 6 7) {' '.join(ids)}") == plain, "ids from a pipe")
    endless = run(QUERN, "embed", "-m", embedder, "-f", "/dev/zero", expect=3).stderr.decode()
    check("more than" in endless, endless)
    run(QUERN, "embed", "-m", embedder, "-f", "/tmp", expect=3)


def samples(model):
    (model.parent / "ids").write_text("5 6 7\n")
    base = [QUERN, "run", "-m", model, "--ids-file", model.parent / "ids", "-n", 6, "--no-timings", "--output"]
    several = json.loads(run(*base, "json", "--temp", 1.5, "-s", 11, "--num-return-sequences", 3).stdout)["sequences"]
    alone = [json.loads(run(*base, "json", "--temp", 1.5, "-s", 11 + n).stdout) for n in range(3)]
    check([s["ids"] for s in several] == [a["ids"] for a in alone], f"{several} are not the samples one by one")
    check(len({tuple(s["ids"]) for s in several}) > 1, "all samples are the same")
    lines = run(*base, "ids", "--temp", 1.5, "-s", 11, "--num-return-sequences", 3).stdout.decode().splitlines()
    check([line.split() for line in lines] == [list(map(str, a["ids"])) for a in alone], f"{lines}")
    refused = run(*base, "ids", "--num-return-sequences", 3, "--temp", 0, expect=2).stderr.decode()
    check("--num-return-sequences" in refused, refused)


def patterns(folder):
    wrong = run(CONVERT, FIXTURES / "llama2", folder / "none", "q8", "--tensor-type", "ffn_up=f32", expect=2).stderr.decode()
    check("no tensor's name matches" in wrong, wrong)
    run(CONVERT, FIXTURES / "llama2", folder / "none", "q8", "--tensor-type", "up_proj=f32", "--dry-run")


def tensors_of_config(model):
    listed = run(QUERN, "inspect", "--config", FIXTURES / "llama2/config.json", "--tensors").stdout.decode().splitlines()
    stored = run(QUERN, "inspect", model, "--tensors").stdout.decode().splitlines()
    shape = lambda line: (line.split("\t")[0], line.split("\t")[2])
    check([shape(a) for a in listed] == [shape(b) for b in stored], "tensors of a configuration")


def one_line(words, code, *expected, stdin=None):
    result = run(*words, expect=code, stdin=stdin)
    lines = result.stderr.decode().splitlines()
    check(len(lines) == 1 and result.stdout == b"" and all(word in lines[0] for word in expected), f"{words}: {lines}")


def ids_and_prefixes(folder, model):
    """What is wrong with ids, prefixes and streams is said in one line that names place, word and range."""
    (folder / "prefix.json").write_text(json.dumps({
        "recipe": 1, "about": "A prefix mask.", "extends": "llama", "match": {"hf": ["LlamaForCausalLM"], "gguf": []},
        "contract": {"ops": {"attn": {"mask": {"kind": "prefix"}}}}}))
    run(CONVERT, FIXTURES / "llama2", folder / "p", "f32", "--recipe", folder / "prefix.json")
    logits = [QUERN, "logits", "-o", folder / "l.npy", "--ids-file", "-"]
    run(*logits, "-m", folder / "p", "--prefix-len", 3, stdin=b"5 6 7")
    one_line([*logits, "-m", folder / "p", "--prefix-len", 4], 2, "--prefix-len", "got 4", "0 to 3", stdin=b"5 6 7")
    one_line([*logits, "-m", folder / "p", "--prefix-len", -1], 2, "--prefix-len", stdin=b"5 6 7")
    one_line([*logits, "-m", model, "--prefix-len", 2], 2, "--prefix-len", '"kind": "prefix"', stdin=b"5 6 7")
    one_line([*logits, "-m", model], 3, "standard input:2", "got x7,", stdin=b"5 x7 8")
    one_line([*logits, "-m", model, "--doc-ids", "-"], 2, "standard input", stdin=b"5 6 7")


def wrong_kinds(model, embedder):
    """A model that cannot do what is asked says so by its path."""
    for words in (["run", "-p", "a"], ["chat"]):
        one_line([QUERN, *words, "-m", embedder], 3, str(embedder), "cannot generate", "quern embed", stdin=b"a\n")
    one_line([QUERN, "embed", "-m", embedder, "--ids-file", "-"], 3, "standard input:1", "got x,", stdin=b"5 x 7\n")
    for words, code in (([model, model.parent / "again"], 3), ([FIXTURES / "llama2", model.parent / "no/such"], 4)):
        one_line([CONVERT, *words, "-q"], code, *(["already"] if code == 3 else ["no such directory"]))


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model, embedder = folder / "m", folder / "e"
        run(CONVERT, FIXTURES / "llama2", model, "f32")
        run(CONVERT, ENCODERS / "embed", embedder, "f32")
        suggestions(model)
        counts(folder, model)
        bare_models(folder, model, embedder)
        long_contexts(folder, model)
        pipes(model, embedder)
        samples(model)
        patterns(folder)
        tensors_of_config(model)
        ids_and_prefixes(folder, model)
        wrong_kinds(model, embedder)
    print("suggestions, pipes and devices, samples, patterns, tensors of a configuration")


main()
