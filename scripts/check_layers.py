#!/usr/bin/env python3
"""Who may include whom: the table of ARCHITECTURE.md, held against every #include of src/."""
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "contract": {"base"},
    "quant": {"base"},
    "checkpoint": {"base"},
    "text": {"base", "contract"},
    "weights": {"base", "quant"},
    "kernels": {"base", "quant"},
    "model": {"base", "contract", "quant", "weights", "kernels"},
    "convert": {"base", "contract", "quant", "weights", "checkpoint", "text"},
    "jinja": {"base"},
    "sampling": {"base"},
    "grammar": {"base", "sampling"},
    "engine": {"base", "contract", "text", "model", "kernels", "weights", "sampling"},
    "bench": {"base", "contract", "quant", "weights", "kernels", "model", "engine"},
    "terminal": {"base", "text"},
    "chat": {"base", "contract", "text", "jinja", "engine"},
    "batch": {"base", "text", "chat"},
    "plan": {"base", "contract", "quant", "weights", "kernels", "checkpoint", "convert", "model"},
    "eval": {"base", "contract", "text", "model", "kernels", "engine"},
}
JSON_FOLDERS = {"base", "contract", "convert", "checkpoint", "text", "jinja", "grammar", "chat", "batch", "bench"}
# Units compiled once per instruction set: nothing with code of its own may come in (ODR).
ISA_FORBIDDEN = {"vector", "string", "algorithm", "functional", "map", "memory", "iostream", "sstream"}


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1) == '"', found.group(2)


def main(root):
    root = pathlib.Path(root)
    faults, files = [], 0
    for path in sorted((root / "src").rglob("*.[ch]pp")):
        files += 1
        folder = path.relative_to(root / "src").parts[0]
        isa_unit = folder == "kernels" and ("ops" in path.parts or "primitives" in path.parts or path.name.startswith("isa"))
        for number, quoted, name in includes(path):
            place = f"{path.relative_to(root)}:{number}"
            if quoted:
                other = name.split("/")[0]
                if "/" not in name:
                    faults.append(f"{place}: include \"{name}\" by its path from src/")
                elif other != folder and other not in ALLOWED[folder]:
                    faults.append(f"{place}: {folder} may not include {other}")
            elif name.startswith("nlohmann/") and folder not in JSON_FOLDERS:
                faults.append(f"{place}: JSON has no place in {folder}")
            elif isa_unit and name in ISA_FORBIDDEN:
                faults.append(f"{place}: <{name}> in a unit compiled once per instruction set")
    print("\n".join(faults) or f"layers: {files} files keep the include table")
    return bool(faults)


sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
