#!/usr/bin/env python3
"""File sizes: a warning above 400 lines, an error above 600 (generated tables excepted by name)."""
import pathlib
import sys

EXCEPTIONS = {"src/checkpoint/gguf_grids.cpp"}  # generated tables
LIMIT, WARN = 600, 400


def main(root):
    root = pathlib.Path(root)
    faults = files = 0
    for folder in ("src", "tools", "tests", "scripts", "cmake"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".cpp", ".hpp", ".py", ".cmake", "") or not path.is_file():
                continue
            name = str(path.relative_to(root))
            if name in EXCEPTIONS or "/data/" in name:
                continue
            files += 1
            lines = path.read_bytes().count(b"\n")
            if lines > LIMIT:
                print(f"{name}: {lines} lines, limit {LIMIT}")
                faults += 1
            elif lines > WARN:
                print(f"note: {name}: {lines} lines, is it one responsibility?")
    print(f"sizes: {files} files, {faults} over {LIMIT} lines")
    return faults > 0


sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
