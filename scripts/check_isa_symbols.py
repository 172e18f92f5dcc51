#!/usr/bin/env python3
"""ODR rule: a symbol defined in an object compiled for one instruction set is defined in no other object,
so that the linker can never keep AVX-512 code for everybody (docs/DECISIONS.md: ISA units).
usage: check_isa_symbols.py BUILD_DIR"""
import collections
import pathlib
import subprocess
import sys


def defined(path):
    text = subprocess.run(["nm", "--defined-only", "--extern-only", str(path)], capture_output=True, text=True,
                          check=True).stdout
    return {line.split()[-1] for line in text.splitlines() if len(line.split()) == 3}


def main(build):
    objects = sorted(pathlib.Path(build).rglob("*.o"))
    isa = [path for path in objects if "quern_isa_" in str(path)]
    if not isa:
        print(f"no ISA objects under {build}")
        return True
    where = collections.defaultdict(list)
    for path in objects:
        if "/CMakeFiles/test_" in str(path) and "quern_isa_" not in str(path):
            continue
        for symbol in defined(path):
            where[symbol].append(path)
    faults = 0
    for symbol, places in sorted(where.items()):
        if len(places) > 1 and any(place in isa for place in places):
            print(f"{symbol}: defined in {', '.join(place.parent.parent.parent.name + '/' + place.name for place in places)}")
            faults += 1
    print(f"isa symbols: {len(isa)} ISA objects among {len(objects)}, {faults} symbols defined twice")
    return faults > 0


sys.exit(main(sys.argv[1]))
