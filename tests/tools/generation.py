"""Greedy and beam search through the command line against generate() of the reference implementation
(tests/data/generation/beams.json): the checkpoint's own defaults, and the same settings as options."""
import json
import pathlib
import shutil
import tempfile

from harness import CONVERT, QUERN, SOURCE, check, need, run

need("numpy")

OPTIONS = {"num_beams": "--num-beams", "length_penalty": "--length-penalty", "early_stopping": "--early-stopping",
           "no_repeat_ngram_size": "--no-repeat-ngram-size", "repetition_penalty": "--repetition-penalty",
           "min_new_tokens": "--min-new-tokens", "max_new_tokens": "-n"}


def word(value):
    return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value


def converted(fixture, options, folder):
    """The fixture as a model whose generation_config.json says `options`."""
    source = folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(SOURCE / "tests/data/fixtures" / fixture, source, ignore=shutil.ignore_patterns("expected*"))
    source.chmod(0o755)
    path = source / "generation_config.json"
    settings = json.loads(path.read_text()) if path.exists() else {}
    if path.exists():
        path.unlink()
    settings.update({key: value for key, value in options.items() if key != "num_return_sequences"}, do_sample=False)
    path.write_text(json.dumps(settings))
    run(CONVERT, source, folder / "m", "--type", "f32", "--force")
    return folder / "m"


def answers(model, case, *options):
    result = run(QUERN, "run", "-m", model, "--ids-file", "-", "-ctk", "f32", "-ctv", "f32", "--output", "json",
                 "--no-timings", "--num-return-sequences", case["options"]["num_return_sequences"], *options,
                 stdin=" ".join(map(str, case["prompt"])).encode())
    answer = json.loads(result.stdout)
    return answer.get("sequences") or [{"ids": answer["ids"], "score": None}]


def compare(case, found, how):
    what = f"{case['fixture']} {how} {case['options']}"
    check([answer["ids"] for answer in found] == case["ids"], f"{what}: {found}, expected {case['ids']}")
    for answer, score in zip(found, case["scores"]):
        if score is not None:
            check(abs(answer["score"] - score) <= 2e-3 * max(1, abs(score)),
                  f"{what}: score {answer['score']}, expected {score}")


def main():
    cases = json.loads((SOURCE / "tests/data/generation/beams.json").read_text())
    as_options = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case in cases:
            compare(case, answers(converted(case["fixture"], case["options"], folder), case), "defaults")
            said = {key: value for key, value in case["options"].items() if key in OPTIONS}
            if set(case["options"]) - set(said) - {"eos_token_id", "num_return_sequences"}:
                continue
            ends = {"eos_token_id": case["options"]["eos_token_id"]}
            arguments = [x for key, value in said.items() for x in (OPTIONS[key], word(value))]
            compare(case, answers(converted(case["fixture"], ends, folder), case, *arguments), "options")
            as_options += 1
    print(f"{len(cases)} answers of {len({c['fixture'] for c in cases})} checkpoints equal, "
          f"{as_options} of them asked for by options too")


main()
