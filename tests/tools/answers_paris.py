"""The main job: the GGUF of a real chat model, converted to keep, q8 and q4, says that the capital of France is
Paris; standard output holds the answer only, standard error the timing table."""
import json
import pathlib
import tempfile

from harness import CONVERT, QUERN, check, run, smollm2_gguf


def main():
    answers = []
    with tempfile.TemporaryDirectory() as name:
        for kind in ("keep", "q8", "q4"):
            model = pathlib.Path(name) / kind
            run(CONVERT, smollm2_gguf(), model, "--type", kind)
            question = ["-m", model, "-p", "What is the capital of France?", "--temp", "0", "-n", "64"]
            result = run(QUERN, "run", *question)
            answer = result.stdout.decode()
            check("Paris" in answer, f"{kind}: {answer!r}")
            check("prefill" in result.stderr.decode() and "decode" in result.stderr.decode(), "no timing table")
            answers.append(f"{kind}: {answer.strip()!r}")
            record = json.loads(run(QUERN, "run", *question, "--output", "json").stdout)
            check(record["text"].strip() == answer.strip() and record["finish_reason"] == "stop", f"{record}")
            seeded = [run(QUERN, "run", *question[:4], "-n", "24", "--temp", "0.9", "-s", "7", "--no-timings").stdout
                      for _ in range(2)]
            check(seeded[0] == seeded[1], f"{kind}: the same seed gave two answers: {seeded}")
    print("; ".join(answers))


main()
