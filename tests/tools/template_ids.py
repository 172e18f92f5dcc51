#!/usr/bin/env python3
"""Rendered chats as ids: SmolLM2's golden chats, and real tokenizers (build-models/tokenizers, scripts/fetch_tokenizers)
against transformers' apply_chat_template; a user's control tokens never become any.

usage: template_ids.py BUILD_DIR"""
import json
import os
import sys
import tempfile

import harness
from harness import QUERN, SOURCE, check, run, skip

# Elements of HTML that vocabularies have tokens for: words of a text, no control tokens.
HTML = "table caption thead tbody tfoot tr th td h1 h2 h3 h4 h5 h6 blockquote strong em b i u sub sup code a html body img span ul li div".split()
HARMLESS = [
    [{"role": "user", "content": "Hi there"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi\n\nthere   <b>&amp; x  "}],
    [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": " Z\u00fcrich \u4f60\u597d \U0001f600\n"}],
    [{"role": "user", "content": "'s a \u00e9\u0301 1234567 \u2581 \t x<"}, {"role": "assistant", "content": "|im_end|>"}, {"role": "user", "content": "\n"}],
]


def ids_of(tokenizer, messages, extra=None):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as out:
        json.dump({"messages": messages, "add_generation_prompt": True, **(extra or {})}, out)
        out.flush()
        result = run(QUERN, "template", *tokenizer, "--vars", out.name, "--ids", "--now", "2026-01-15T12:00:00", expect=None)
    return [int(w) for w in result.stdout.split()] if result.returncode == 0 else result.stderr.decode()


def real_tokenizers():
    harness.need("transformers", "jinja2")
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers
    transformers.logging.set_verbosity_error()
    folder, done = SOURCE / "build-models" / "tokenizers", 0
    for config in sorted(folder.glob("*/tokenizer_config.json")):
        if "chat_template" not in json.loads(config.read_text()):
            continue
        reference = transformers.PreTrainedTokenizerFast.from_pretrained(config.parent)
        for messages in HARMLESS:
            try:
                text = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, date_string="15 Jan 2026")
            except Exception:
                text = None
            got = ids_of(["--tokenizer", config.parent], messages, {"date_string": "15 Jan 2026"})
            if text is None:
                check(isinstance(got, str), f"{config.parent.name}: an error in both, {messages}")
                continue
            want = reference(text, add_special_tokens=False)["input_ids"]
            check(got == want, f"{config.parent.name} {messages}: {got} want {want}")
            done += 1
        forged = [[{"role": "user", "content": f"a{token}b {token}"}] for token in list(reference.get_added_vocab())[:8] + [reference.eos_token, reference.bos_token] if token]
        plain = {t: i for t, i in reference.get_added_vocab().items() if t.strip() and (t[0], t[-1]) in (("<", ">"), ("[", "]"))}
        for messages in forged:
            token = messages[0]["content"].split(" ")[-1]
            if token not in plain or token.strip("</>") in HTML:
                continue
            clean = ids_of(["--tokenizer", config.parent], [{"role": "user", "content": "aXb X"}])
            got = ids_of(["--tokenizer", config.parent], messages)
            if isinstance(got, str) or isinstance(clean, str):
                continue
            check(got.count(plain[token]) == clean.count(plain[token]), f"{config.parent.name}: the user's {token} became a control token: {got}")
            done += 1
    return done


def golden():
    harness.need("safetensors")
    from safetensors.numpy import load_file
    folder = harness.shared() / "smollm2"
    model = os.environ.get("QUERN_SMOLLM2", "/work/models/smollm2")
    source = ["-m", model] if os.path.isdir(model) else ["--tokenizer", harness.smollm2_gguf()]
    chats, arrays = json.loads((folder / "golden.json").read_text()), load_file(str(folder / "golden.safetensors"))
    for i, chat in enumerate(chats):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as out:
            json.dump({"messages": chat["messages"], "add_generation_prompt": True}, out)
            out.flush()
            text = run(QUERN, "template", *source, "--vars", out.name).stdout.decode()
        check(text == chat["rendered"], f"golden chat {i}: {text!r}")
        check(ids_of(source, chat["messages"]) == arrays[f"{i}.input_ids"].tolist(), f"golden chat {i}: other ids")
    return len(chats)


n = real_tokenizers()
if n == 0:
    print("no tokenizers in build-models/tokenizers (scripts/fetch_tokenizers)")
print(f"template_ids: {n} chats of real tokenizers, {golden()} golden chats")
