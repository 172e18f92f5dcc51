"""Thoughts in the answers of `quern run` and `quern batch`, whatever their marks are made of: plain text, control
tokens, or messages in channels (gpt-oss). A grammar makes a tiny model write each answer."""
import json
import pathlib
import tempfile

from batch_model import SPECIAL, TEMPLATE, Batch, lines_of, make_model, write_lines
from harness import QUERN, check, run

CHANNELS = ["<unk>", "<s>", "</s>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"]
CHANNEL_TEMPLATE = ("{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor %}"
                    "{% if add_generation_prompt %}<|start|>assistant{% endif %}")
ANALYSIS, FINAL = '<|channel|> "analysis" <|message|>', '<|channel|> "final" <|message|>'
NEXT = '<|end|> <|start|> "assistant"'
# (grammar of the answer, its text, with --hide-thinking, what ends it)
CHANNEL_CASES = [
    (f'{ANALYSIS} "hm, so" {NEXT} {FINAL} "yes" <|return|>', "<think>\nhm, so\n</think>\n\nyes", "yes", "<|return|>"),
    (f'{ANALYSIS} "a" {NEXT} {ANALYSIS} "b" {NEXT} {FINAL} "yes" <|end|>', "<think>\na\n\nb\n</think>\n\nyes", "yes", "<|end|>"),
    (f'{FINAL} "yes" <|end|>', "yes", "yes", "<|end|>"),
    (f'<|channel|> "commentary" <|message|> "I look." {NEXT} {ANALYSIS} "hm" {NEXT} {FINAL} "yes"',
     "I look.\n\n<think>\nhm\n</think>\n\nyes", "I look.\n\nyes", "</s>"),
    (f'{ANALYSIS} "hm" <|end|> <|start|> "assistant to=functions.f" <|channel|> "commentary " <|constrain|> "json" <|message|> "{{}}" <|call|>',
     "<think>\nhm\n</think>\n\n<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}",
     "<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{}", "<|call|>"),
    (f'{ANALYSIS} "cut off"', "<think>\ncut off\n</think>", "", "</s>"),
    ('"no channel"', "no channel", "no channel", "</s>"),
]
THINK = [*SPECIAL, "[THINK]", "[/THINK]"]
THINK_TEMPLATE = TEMPLATE.replace("<|assistant|>{% endif", "<|assistant|>[THINK]{% endif")
MARK_CASES = [('"hm" <|end_think|> "yes"'.replace("<|end_think|>", "<[8]>"), "hm[/THINK]yes", "yes", "</s>")]
PLAIN_CASES = [('"<think>\\nhm\\n</think>\\n\\nyes"', "<think>\nhm\n</think>\n\nyes", "yes", "</s>"),
               ('"yes <think> no"', "yes <think> no", "yes <think> no", "</s>")]


def check_run(model, cases):
    for form, text, hidden, end in cases:
        options = [QUERN, "run", "-m", model, "-p", "hi", "--grammar", f"root ::= {form}", "-n", "200", "--temp", "0",
                   "--no-timings", "-t", "1"]
        for more, want in (([], text), (["--hide-thinking"], hidden)):
            got = run(*options, *more).stdout.decode()
            check(got == want + "\n", f"{form} {more}: {got!r}")
            answer = json.loads(run(*options, *more, "--output", "json").stdout)
            check(answer["text"] == want and answer["finish_reason"] == "stop" and answer["stop"]["text"] == end, f"{form} {more}: {answer}")
        ids = run(*options, "--output", "ids").stdout.split()
        check([int(i) for i in ids] == answer["ids"] and len(ids) == answer["completion_tokens"], f"{form}: {ids}, {answer['ids']}")
        special = run(*options, "--special").stdout.decode()
        check("<think>" not in special or "think" in form, f"--special: {special!r}")


def check_batch(model, cases, folder):
    for number, (form, text, hidden, _) in enumerate(cases):
        source = write_lines(folder / "in.jsonl", [{"messages": [{"role": "user", "content": "hi"}]}])
        for more, want in (((), text), (("--hide-thinking",), hidden)):
            target = folder / f"out-{number}{len(more)}.jsonl"
            Batch(model).run(source, target, "--grammar", f"root ::= {form}", "-n", "200", "--temp", "0", *more)
            line = lines_of(target)[0]
            check(line["text"] == want, f"{form} {more}: {line}")


def main():
    n = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind, special, template, cases in (("channels", CHANNELS, CHANNEL_TEMPLATE, CHANNEL_CASES),
                                               ("marks", THINK, THINK_TEMPLATE, MARK_CASES),
                                               ("plain", SPECIAL, TEMPLATE, PLAIN_CASES)):
            (folder / kind).mkdir()
            model = make_model(folder / kind, template=template, special=special)
            check_run(model, cases)
            check_batch(model, cases, folder / kind)
            n += len(cases)
    print(f"thoughts: {n} answers in text, JSON and a batch")


main()
