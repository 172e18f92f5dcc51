"""Shared by the tests that drive the programs through their command lines.

Each test is `name.py BUILD_DIR`; exit 0 = passed, 1 = failed, 77 = skipped with a printed reason. The last line
says what was covered."""
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else pathlib.Path("build-release").resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
QUERN, CONVERT = BUILD / "quern", BUILD / "quern-convert"
EMULATOR = os.environ.get("QUERN_EMULATOR", "").split()  # before the programs (scripts/full/arm64)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def need(*modules):
    for module in modules:
        try:
            __import__(module)
        except ImportError:
            skip(f"no Python module {module} (scripts/test installs it)")


def shared():
    path = pathlib.Path(os.environ.get("QUERN_SHARED", SOURCE.parent / "shared"))
    if not path.is_dir():
        skip(f"{path} is absent; its reference answers are not part of the repository")
    return path


def smollm2_gguf():
    candidates = [os.environ.get("QUERN_SMOLLM2_GGUF", ""), *(SOURCE / "build-models").glob("SmolLM2*.gguf")]
    for candidate in candidates:
        if candidate and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate)
    skip("no SmolLM2 GGUF (scripts/test fetches it)")


def run(*arguments, expect=0, stdin=None, timeout=600, env=None):
    """Runs a program; returns its result, fails the test on another exit code than `expect`."""
    if arguments[0] in (QUERN, CONVERT):
        arguments = (*EMULATOR, *arguments)
    arguments = [str(a) for a in arguments]
    result = subprocess.run(arguments, capture_output=True, timeout=timeout, input=stdin,
                            env={**os.environ, **(env or {})})
    if expect is not None and result.returncode != expect:
        fail(f"{' '.join(arguments)}: exit {result.returncode}, expected {expect}\n"
             f"{result.stderr.decode(errors='replace')[-2000:]}")
    return result


def fail(text):
    print(f"FAILED: {text}")
    sys.exit(1)


def check(condition, text):
    if not condition:
        fail(text)
