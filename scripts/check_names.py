#!/usr/bin/env python3
"""No architecture name in src/ (the architecture is data), and ASCII sources only."""
import pathlib
import re
import sys

NAMES = ("llama gpt_?2 gpt_?j gpt_?neox? mistral mixtral qwen gemma falcon bloom phi_?3 bert albert roberta "
         "t5 bart marian deepseek olmo cohere granite smollm glm starcoder stablelm mpt opt_model gpt_?oss "
         "internlm baichuan minicpm").split()
PATTERN = re.compile(r"(?<![a-z])(" + "|".join(NAMES) + r")(?![a-z])", re.IGNORECASE)

# Foreign keys: names that other people's files contain and that we must spell to read them.
EXEMPT = {
    "src/text/": "names of pre-tokenizer scanners (the field knows them by the model they came with)",
    "src/convert/tokenizer_import": "GGUF's pre-tokenizer and tokenizer names",
    "src/convert/rope.hpp": "the name of a RoPE rule in configurations (the field knows it by its first model)",
    "src/contract/vocabulary.hpp": "the same name in the contract",
    "src/bench/": "programs whose labels and keys people know: llama-bench, llama-batched-bench",
    "src/convert/pooling_import.cpp": "the name of a file of sentence-transformers",
}


def main(root):
    root = pathlib.Path(root)
    faults, files = [], 0
    for folder in ("src", "tools", "tests", "cmake"):
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.suffix not in (".cpp", ".hpp", ".cmake") or "/data/" in name:
                continue
            files += 1
            data = path.read_bytes()
            for number, line in enumerate(data.splitlines(), 1):
                if any(byte > 126 for byte in line):
                    faults.append(f"{name}:{number}: not ASCII")
            if folder != "src" or any(name.startswith(prefix) for prefix in EXEMPT):
                continue
            for number, line in enumerate(data.decode("latin-1").splitlines(), 1):
                found = PATTERN.search(line)
                if found:
                    faults.append(f"{name}:{number}: architecture name \"{found.group(0)}\"")
    for path in [*root.glob("*.md"), *(root / "docs").glob("*.md")]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"@[A-Z]{3,}@", line):
                faults.append(f"{path.relative_to(root)}:{number}: a mark that was never filled in")
    print("\n".join(faults[:40]) or f"names: {files} files, no architecture name in src/, ASCII throughout")
    for prefix, reason in EXEMPT.items():
        print(f"exempt: {prefix}*: {reason}")
    return bool(faults)


sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
