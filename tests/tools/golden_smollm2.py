"""SmolLM2-135M-Instruct against the reference implementation: rendered chats, ids, top-32 logits of every
position, greedy ids, from the GGUF with --type f32."""
import json
import pathlib
import tempfile

from harness import CONVERT, QUERN, check, need, run, shared, smollm2_gguf

need("numpy", "safetensors")
import numpy as np  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402

TOLERANCE, TIE = 1e-3, 5e-3


def main():
    golden = shared() / "smollm2"
    chats, arrays = json.loads((golden / "golden.json").read_text()), load_file(str(golden / "golden.safetensors"))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "m"
        run(CONVERT, smollm2_gguf(), model, "--type", "f32")
        worst = steps = 0
        for number, chat in enumerate(chats):
            ids = arrays[f"{number}.input_ids"]
            text = run(QUERN, "tokenize", "-m", model, "--ids", "--no-bos", stdin=chat["rendered"].encode()).stdout
            check([int(i) for i in text.split()] == ids.tolist(), f"chat {number}: other token ids")
            (folder / "ids").write_text(" ".join(map(str, ids)))
            run(QUERN, "logits", "-m", model, "--ids-file", folder / "ids", "-ctk", "f32", "-ctv", "f32", "-o",
                folder / "o.npy")
            got = np.load(folder / "o.npy").astype(np.float64)
            std = arrays[f"{number}.last_logits"].std()
            top = np.take_along_axis(got, arrays[f"{number}.top_ids"].astype(np.int64), 1)
            error = np.abs(top - arrays[f"{number}.top_logits"]).max() / std
            error = max(error, np.abs(got[-1] - arrays[f"{number}.last_logits"]).max() / std)
            worst = max(worst, error)
            check(error <= TOLERANCE, f"chat {number}: logits differ by {error:.2e} of std")
            want = arrays[f"{number}.greedy_ids"].tolist()
            out = run(QUERN, "run", "-m", model, "--ids-file", folder / "ids", "-ctk", "f32", "-ctv", "f32", "--temp",
                      "0", "-n", len(want), "--ignore-eos", "--output", "ids", "--no-timings").stdout.split()
            out = [int(i) for i in out]
            at = next((i for i in range(len(want)) if i >= len(out) or out[i] != want[i]), None)
            if at is not None:   # only a near tie may fall either way
                (folder / "ids").write_text(" ".join(map(str, [*ids, *want[:at]])))
                run(QUERN, "logits", "-m", model, "--ids-file", folder / "ids", "-ctk", "f32", "-ctv", "f32", "-o",
                    folder / "o.npy")
                best = np.sort(np.load(folder / "o.npy")[-1])
                check(best[-1] - best[-2] < TIE, f"chat {number}: greedy ids differ at step {at}: {out} / {want}")
            steps += len(want) if at is None else at
    print(f"{len(chats)} chats: ids equal, logits within {worst:.1e} of std, {steps} greedy ids equal")


main()
