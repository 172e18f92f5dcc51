#!/usr/bin/env python3
"""quern template: the 546 renderings of shared/templates, hostile templates under a small stack, the command line.

usage: template.py BUILD_DIR"""
import json
import resource
import subprocess
import tempfile
import pathlib

import harness
from harness import QUERN, check, run


def limit_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, 256 << 10))


def render(folder, source, variables=None, expect=0, small=False):
    path = pathlib.Path(folder) / "t.jinja"
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    (pathlib.Path(folder) / "v.json").write_text(json.dumps(variables or {}))
    result = subprocess.run([QUERN, "template", "--file", path, "--vars", pathlib.Path(folder) / "v.json", "--now", "2026-01-15T12:00:00"],
                            capture_output=True, timeout=120, preexec_fn=limit_stack if small else None)
    check(result.returncode == expect, f"{source[:100]!r}: exit {result.returncode}, expected {expect}: {result.stderr[-300:]!r}")
    return result.stdout.decode() if expect == 0 else result.stderr.decode(errors="strict")


def hostile(folder):
    """Rows F1-F10 of the reliability page: source, what the error says."""
    rows = [("{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}", "line 1: recursion > 64"),
            ("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{% if true %}{% for x in [1] %}{{ f()|trim }}{% endfor %}{% endif %}{% endmacro %}{{ f() }}", "recursion > 64"),
            ("{{ range(10**9) }}", "range > limit"), ("{{ range(0, 2**62, 1) }}", "range > limit"), ("{{ range(1, 2, 0) }}", "zero"),
            ("{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100) %}{% endfor %}{% endfor %}{% endfor %}", "fuel exhausted"),
            ("{{ range(100000)|list" + "|map('string')|list|sort|reverse|list" * 20 + "|length }}", "fuel exhausted"),
            ("{{ 'a' * 10**9 }}", "output > 16 MiB"), ("{% set a = 'a' * 9999 %}{{ a.replace('a', a) }}", "output > 16 MiB"),
            ("{{ 1 // 0 }}", "zero"), ("{{ 1 % 0 }}", "zero"), ("{{ 5 is divisibleby 0 }}", "zero"), ("{{ (0 - 2**62 - 2**62) // -1 }}", "overflow"), ("{{ 2**62 * 2 }}", "overflow"),
            ("{{ 1|nope }}", "nope"), ("{{ 1 is nope }}", "nope"), ("{{ nope() }}", "nope"), ("\n\n{{ nope.x }}", "line 3"),
            ("{% include '/etc/passwd' %}", "include"), ("{% import 'x' as y %}", "import"), ("{% extends 'x' %}", "extends"), ("{{ lipsum() }}", "lipsum"),
            ("{{ raise_exception('a\\x1b[2Jb') }}", "a\\x1b[2Jb"), (b"\xff", "UTF-8"), (b"a" * 10_000_000, "too long")]
    for n in (150, 60_000):
        rows += [("{{ " + "(" * n + "1" + ")" * n + " }}", "deep"), ("{{ " + "[" * n + "]" * n + " }}", "deep"), ("{% if 1 %}" * n + "{% endif %}" * n, "deep" if n < 1000 else "too long"),
                 ("{{ " + "not " * n + "1 }}", "deep"), ("{{ " + "1 if 1 else " * n + "1 }}", "deep"), ("{{ a" + ".b" * n + " }}", "deep")]
    for source, part in rows:
        for small in (False, True):
            error = render(folder, source, expect=3, small=small)
            check(part in error and "\x1b" not in error and error.count("\n") == 1, f"{source[:80]!r}: {error[:300]!r}")
    check(render(folder, "") == "", "an empty template prints nothing")
    check(render(folder, "{{ " + "(" * 60 + "1" + ")" * 60 + " }}", small=True) == "1", "60 brackets are fine on a small stack")
    for name in ("x.__class__", "x.__globals__", "''.__class__", "lipsum", "self"):
        check(render(folder, f"[{{{{ {name} }}}}]", {"x": {}}) == "[]", f"{name} prints nothing")
    return 2 * len(rows)


def command_line(folder):
    run(QUERN, "template", expect=2)
    run(QUERN, "template", "--vars", "-", expect=2, stdin=b"{}")
    run(QUERN, "template", "--file", "/nonexistent", "--vars", "-", expect=3, stdin=b"{}")
    path = pathlib.Path(folder) / "t.jinja"
    path.write_text("{{ strftime_now('%Y-%j %a') }}{{ x }}")
    for now in ("yesterday", "2026-13-01T00:00:00", "2026-01-15T12:00:00Z", ""):
        run(QUERN, "template", "--file", path, "--vars", "-", "--now", now, stdin=b"{}", expect=2 if now else 0)
    for text in (b"", b"[]", b'{"x": 1'):
        run(QUERN, "template", "--file", path, "--vars", "-", stdin=text, expect=3)
    wide = run(QUERN, "template", "--file", path, "--vars", "-", "--now", "2026-01-15T12:00:00", stdin=b'{"x": 9223372036854775808}').stdout
    check(wide == b"2026-015 Thu9223372036854775808", f"an integer of more than 64 bits: {wide!r}")
    shown = run(QUERN, "template", "--file", path, "--vars", "-", "--now", "2026-01-15T12:00:00", stdin=b'{"x": "\xc3\xa9"}').stdout
    check(shown == "2026-015 Thu\u00e9".encode(), f"frozen clock: {shown!r}")


def renderings():
    folder = harness.shared() / "templates"
    result = run("python3", harness.shared() / "tools" / "check_templates.py", QUERN, folder, expect=None)
    check(result.returncode == 0, result.stdout.decode() + result.stderr.decode())
    return result.stdout.decode().strip()


with tempfile.TemporaryDirectory() as temporary:
    command_line(temporary)
    n = hostile(temporary)
print(f"template: {n} hostile templates refused; {renderings()}")
