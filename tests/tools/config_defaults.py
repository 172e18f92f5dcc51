#!/usr/bin/env python3
"""A configuration that leaves a key out means what the reference's configuration class supplies.

tests/data/class_defaults.json (scripts/class_defaults.py) has whole configurations of every model type; here each
key in turn is left out, then all of them, and the contract must stay the same."""
import json, pathlib, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
import subprocess
from harness import QUERN, SOURCE, check


def contract_of(folder, name, config):
    path = pathlib.Path(folder) / f"{name}.json"
    path.write_text(json.dumps(config))
    result = subprocess.run([QUERN, "inspect", "--config", path, "--json"], capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else result.stderr.strip().replace(str(path), "config.json")


def cases():
    for number, entry in enumerate(json.loads((SOURCE / "tests/data/class_defaults.json").read_text())):
        config = {"model_type": entry["model_type"], **entry["config"]}
        yield f"{number}", entry["model_type"], None, config, config
        free = [k for k in entry["config"] if k not in entry["given"]]
        for key in free:
            yield f"{number}-{key}", entry["model_type"], key, config, {k: v for k, v in config.items() if k != key}
        yield f"{number}-all", entry["model_type"], "all", config, {k: v for k, v in config.items() if k not in free}


def main():
    names, wrong, n = sys.argv[2:], [], 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        whole = {}
        jobs = [(model, key, number.split("-")[0], pool.submit(contract_of, folder, number, config))
                for number, model, key, _, config in cases() if not names or model in names]
        for model, key, number, job in jobs:
            if key is None:
                whole[number] = job.result()
                if not whole[number].startswith("{"): wrong.append(f"{model}: {whole[number]}")
            elif job.result() != whole[number]:
                got = job.result()
                wrong.append(f"{model}: without {key}" + ("" if got.startswith("{") else f": {got[-200:]}"))
            n += 1
    for line in wrong: print(line)
    check(not wrong, f"{len(wrong)} of {n} configurations are read otherwise than the reference reads them")
    print(f"config_defaults: {n} configurations")


if __name__ == "__main__": main()
