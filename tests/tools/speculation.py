"""Speculation on SmolLM2: prompts, greedy and sampled, with and without a grammar, give the very answers of plain
decoding: 12 of them, with --full (scripts/full/speculation) 100; with QUERN_SPEED=1 also how fast: repetitive text
gains, random text loses less than 3 %.
Usage: speculation.py BUILD_DIR [MODEL_DIR] [--full] (without MODEL_DIR QUERN_SMOLLM2_GGUF is converted)."""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

FULL = "--full" in sys.argv
ARGUMENTS = [word for word in sys.argv[1:] if word != "--full"]
BUILD = ARGUMENTS[0]
N_PROMPTS, N_FEW, N_LONG = (100, 20, "60") if FULL else (12, 4, "40")
SNIPPET = "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n"
WORDS = "river stone lamp winter copper garden engine letter shadow violin harbour paper".split()


def prompts():
    chance = random.Random(7)
    for i in range(N_PROMPTS):
        text = " ".join(chance.choice(WORDS) for _ in range(8))
        yield [f"Tell me about a {text}.", f"Repeat three times: {text}", f"Write this code again, with docstrings:\n{SNIPPET}",
               f"List ten words about {text.split()[0]} as JSON."][i % 4]


def run(model, options, file):
    command = [f"{BUILD}/quern", "run", "-m", model, "--prompts-file", file, "--output", "jsonl", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def answers(lines):
    return [{key: line[key] for key in line if key not in ("timings",)} for line in lines]


def check_equal(model, options, file, guesses=("--spec", "ngram", "--spec-always", "--draft-max", "5")):
    plain = run(model, options, file)
    guessed = run(model, [*options, *guesses], file)
    assert answers(plain) == answers(guessed), (options, guesses)
    drafted = sum(line["timings"]["drafted_tokens"] for line in guessed)
    accepted = sum(line["timings"]["accepted_tokens"] for line in guessed)
    print(f"{' '.join([*options, *guesses])}: {len(plain)} equal; {accepted} of {drafted} accepted", flush=True)


def seconds(model, options, file):
    return sum(line["timings"]["decode_s"] for line in run(model, options, file))


def ratio(model, base, guess, file, pairs=5):
    """Interleaved runs: plain seconds over speculating seconds, median."""
    ratios = []
    for _ in range(pairs):
        plain = seconds(model, base, file)
        ratios.append(plain / seconds(model, [*base, *guess], file))
    return statistics.median(ratios), ratios


def main():
    with tempfile.TemporaryDirectory() as scratch:
        model = ARGUMENTS[1] if len(ARGUMENTS) > 1 else f"{scratch}/model"
        if len(ARGUMENTS) <= 1:
            gguf = os.environ.get("QUERN_SMOLLM2_GGUF", "")
            if not gguf:
                print("skipped: QUERN_SMOLLM2_GGUF is not set")
                return 77
            subprocess.run([f"{BUILD}/quern-convert", gguf, model], check=True, capture_output=True)
        file = f"{scratch}/prompts.jsonl"
        with open(file, "w") as out:
            for prompt in prompts():
                out.write(json.dumps({"prompt": prompt}) + "\n")
        few = f"{scratch}/few.jsonl"
        with open(few, "w") as out:
            out.writelines(open(file).readlines()[:N_FEW])
        n = os.environ.get("QUERN_SPEC_TOKENS", "20")
        check_equal(model, ["-n", n, "--temp", "0"], file)
        check_equal(model, ["-n", n, "--temp", "0.9", "-s", "3", "--logprobs"], file)
        check_equal(model, ["-n", N_LONG, "--temp", "0"], few, ("--spec", "ngram"))
        check_equal(model, ["-n", N_LONG, "--temp", "0", "--regex", "([A-Za-z ]{3,12}, ){4,20}and that is all\\."], few)
        check_equal(model, ["-n", n, "--temp", "0"], few, ("--draft", model, "--draft-max", "3", "--spec-always"))
        if os.environ.get("QUERN_SPEED"):
            speed(model, scratch)
    return 0


def speed(model, scratch):
    repetitive, chance = f"{scratch}/repetitive.jsonl", f"{scratch}/random.jsonl"
    with open(repetitive, "w") as out:
        out.write(json.dumps({"prompt": f"Repeat this code exactly:\n{SNIPPET * 3}"}) + "\n")
    with open(chance, "w") as out:
        out.write(json.dumps({"prompt": "Once upon a time"}) + "\n")
    gain, all_gain = ratio(model, ["-n", "200", "--temp", "0", "--ignore-eos"], ["--spec", "ngram"], repetitive)
    print(f"repetitive text: {gain:.2f} x plain decoding {[round(r, 2) for r in all_gain]}")
    # temperature 3: text without sense, in which nothing comes again
    loss, all_loss = ratio(model, ["-n", "200", "--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-s", "1",
                                   "--ignore-eos", "--raw"], ["--spec", "ngram"], chance)
    print(f"random text: {loss:.3f} x plain decoding {[round(r, 3) for r in all_loss]}")
    assert gain > 1.1, gain
    assert loss >= 0.97, loss


if __name__ == "__main__":
    sys.exit(main())
