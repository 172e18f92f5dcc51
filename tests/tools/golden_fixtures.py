"""Every fixture of tests/data/fixtures through the command line: f32 logits against the reference
implementation, token by token = one prefill, threads and chunks in bits, greedy ids where the margin allows."""
import pathlib
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("numpy", "safetensors")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

# Their reference recomputes all angles at every step, so its greedy ids differ by design.
GREEDY_EXEMPT = {"llama-dynamic-ntk", "phi3-longrope"}
TOLERANCE = 2e-3   # of the logits' standard deviation


def logits(model, ids, folder, *options):
    (folder / "ids").write_text(" ".join(map(str, ids)))
    run(QUERN, "logits", "-m", model, "--ids-file", folder / "ids", "-ctk", "f32", "-ctv", "f32", *options,
        "-o", folder / "out.npy")
    return np.load(folder / "out.npy")


def main():
    root, covered = SOURCE / "tests/data/fixtures", []
    for fixture in sorted(p for p in root.iterdir() if p.is_dir()):
        check((fixture / "expected.safetensors").exists(), f"{fixture.name} has no expected.safetensors")
        expected = load_file(str(fixture / "expected.safetensors"))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source = folder / "src"
            source.mkdir()
            for file in fixture.iterdir():
                if file.name != "expected.safetensors":
                    (source / file.name).write_bytes(file.read_bytes())
            run(CONVERT, source, folder / "m", "--type", "f32")
            ids, want = expected["input_ids"].ravel(), expected["logits"].astype(np.float64)
            got = logits(folder / "m", ids, folder)
            error = np.abs(got - want).max() / want.std()
            check(got.shape == want.shape and error <= TOLERANCE, f"{fixture.name}: error {error:.2e} of std")
            for options in (["-ub", "1"], ["-ub", "7", "-t", "1"], ["-ub", "64", "-t", "3"], ["-t", "2"]):
                other = logits(folder / "m", ids, folder, *options)
                check(other.tobytes() == got.tobytes(), f"{fixture.name}: {options} gives other bits")
            margin = np.sort(want, axis=1)
            clear = margin[:, -1] - margin[:, -2] > 2 * TOLERANCE * want.std()
            check((got.argmax(1) == want.argmax(1))[clear].all(), f"{fixture.name}: other best token")
            steps = "exempt" if fixture.name in GREEDY_EXEMPT else greedy_steps(folder, expected, want.std())
            covered.append(f"{fixture.name} {error:.1e} ({steps} greedy)")
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
