"""Every fixture of tests/data/fixtures through the command line: f32 logits against the reference
implementation, token by token = one prefill, threads and chunks in bits, greedy ids where the margin allows.
QUERN_FIXTURES="llama2 bert": these alone."""
import os
import pathlib
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("numpy", "safetensors")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

# Their reference recomputes all angles at every step, or chooses among equal index scores by the length of the
# moment (src/model/indexer.hpp), so its greedy ids differ by design.
GREEDY_EXEMPT = {"llama-dynamic-ntk", "phi3-longrope", "deepseek-v3.2-dsa"}
NOT_SOURCE = {"expected.safetensors", "recipe.json"}  # recipe.json: given with --recipe
TOLERANCE = 2e-3   # of the logits' standard deviation


def write_ids(folder, name, ids):
    (folder / name).write_text(" ".join(map(str, ids)))
    return folder / name


class Case:
    """The input of a fixture as options of `quern logits`: ids, and what its kind of model takes beside them."""
    def __init__(self, folder, expected):
        decoder = expected.get("decoder_input_ids")
        self.folder, self.encoder = folder, "last_hidden_state" in expected
        self.greedy = "greedy_ids" in expected and decoder is None
        ids = (expected["input_ids"] if decoder is None else decoder).ravel()
        self.options = ["--ids-file", write_ids(folder, "input", ids)]
        if decoder is not None:
            self.options += ["--encoder-ids-file", write_ids(folder, "source", expected["input_ids"].ravel())]
        if "token_type_ids" in expected:
            self.options += ["--token-types-file", write_ids(folder, "types", expected["token_type_ids"].ravel())]
        if not self.encoder:
            self.options += ["-ctk", "f32", "-ctv", "f32"]

    def logits(self, *options):
        run(QUERN, "logits", "-m", self.folder / "m", "--deterministic", *self.options, *options,
            "-o", self.folder / "out.npy")
        return np.load(self.folder / "out.npy")

    def hidden(self):
        run(QUERN, "logits", "-m", self.folder / "m", *self.options, "--hidden", self.folder / "hidden.npy")
        return np.load(self.folder / "hidden.npy")


def close(name, got, want):
    """The largest difference, in standard deviations of what is expected."""
    error = np.abs(got - want).max() / want.std()
    check(got.shape == want.shape and error <= TOLERANCE, f"{name}: error {error:.2e} of std")
    return error


def main():
    root, covered = SOURCE / "tests/data/fixtures", []
    chosen = os.environ.get("QUERN_FIXTURES", "").split()
    for fixture in sorted(p for p in root.iterdir() if p.is_dir() and (not chosen or p.name in chosen)):
        check((fixture / "expected.safetensors").exists(), f"{fixture.name} has no expected.safetensors")
        expected = load_file(str(fixture / "expected.safetensors"))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source = folder / "src"
            source.mkdir()
            for file in fixture.iterdir():
                if file.name not in NOT_SOURCE:
                    (source / file.name).write_bytes(file.read_bytes())
            recipe = ["--recipe", fixture / "recipe.json"] if (fixture / "recipe.json").exists() else []
            run(CONVERT, source, folder / "m", "--type", "f32", *recipe)
            run(QUERN, "verify", "-m", folder / "m")
            if "logits" not in expected:  # an encoder without a head
                case, want = Case(folder, expected), expected["last_hidden_state"].astype(np.float64)
                covered.append(f"{fixture.name} {close(fixture.name, case.hidden(), want):.1e} (hidden states)")
                continue
            case, want = Case(folder, expected), expected["logits"].astype(np.float64)
            got = case.logits()
            error = close(fixture.name, got, want)
            for options in (["-ub", "1"], ["-ub", "7", "-t", "1"], ["-ub", "64", "-t", "3"], ["-t", "2"]):
                check(case.logits(*options).tobytes() == got.tobytes(), f"{fixture.name}: {options} gives other bits")
            if case.encoder:
                close(f"{fixture.name} hidden", case.hidden(), expected["last_hidden_state"].reshape(len(want), -1))
            margin = np.sort(want, axis=1)
            clear = margin[:, -1] - margin[:, -2] > 2 * TOLERANCE * want.std()
            check((got.argmax(1) == want.argmax(1))[clear].all(), f"{fixture.name}: other best token")
            if not case.greedy:
                steps = "not generated"
            else:
                steps = "greedy exempt" if fixture.name in GREEDY_EXEMPT else f"{greedy_steps(folder, expected, want.std())} greedy"
            covered.append(f"{fixture.name} {error:.1e} ({steps})")
    check(covered, "no fixtures found")
    print(f"{len(covered)} fixtures within {TOLERANCE} of std: " + ", ".join(covered))


def greedy_steps(folder, expected, std):
    """Steps that equal the reference's greedy ids; the paths may part only where its margin is a near tie."""
    prompt, new, margin = (expected[k].ravel() for k in ("greedy_prompt", "greedy_ids", "greedy_margin"))
    (folder / "ids").write_text(" ".join(map(str, prompt)))
    result = run(QUERN, "run", "-m", folder / "m", "--ids-file", folder / "ids", "-ctk", "f32", "-ctv", "f32",
                 "--temp", "0", "-n", len(new), "--ignore-eos", "--output", "ids", "--no-timings")
    out = [int(word) for word in result.stdout.split()]
    for step, (got, want) in enumerate(zip(out, new)):
        if got != want:
            check(margin[step] <= 2 * TOLERANCE * std, f"greedy ids differ at step {step}: {out} / {list(new)}")
            return step
    check(len(out) == len(new), f"{len(out)} greedy ids, expected {len(new)}")
    return len(new)


main()
