"""Manuals, completions, environment and configuration file: every command has all of them, they agree with --help, the
shells accept them, and the command line beats the environment beats the file."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BUILD, CONVERT, QUERN, SOURCE, check, run

CLEAN = {name: "" for name in os.environ if name.startswith("QUERN_ARG_")}


def quern(*arguments, **more):
    more["env"] = {**CLEAN, "QUERN_CONFIG": "", **more.get("env", {})}
    return run(QUERN, *arguments, **more)


def commands():
    text = quern("--help").stdout.decode()
    return re.findall(r"^  ([a-z]+) ", text[text.index("commands:"):text.index("examples:")], re.M)


def long_names(command):
    return {name for name in re.findall(r"--[a-z][a-z0-9-]+", quern(command, "--help").stdout.decode().split("examples:")[0])
            if name != "--help"}


def check_pages(names):
    check({"run", "bench", "chat", "help"} <= set(names), f"commands {names}")
    for name in names:
        page = quern("help", "--format", "man", name).stdout.decode()
        check(page.startswith(f".TH QUERN\\-{name.upper()} 1"), f"{name}: {page[:60]}")
        check("\\fB\\-\\-help\\fR" in page, f"{name}: no --help")
        if shutil.which("man"):
            shown = subprocess.run(["man", "--warnings", "-l", "-"], input=page.encode(), capture_output=True,
                                   env={**os.environ, "MANWIDTH": "100", "MANPAGER": "cat", "LC_ALL": "C"})
            check(shown.returncode == 0 and not shown.stderr, f"{name}: man says {shown.stderr[:300]}")
        markdown = quern("help", "--format", "markdown", name).stdout.decode()
        check(markdown.startswith(f"# quern {name}\n"), markdown[:40])
        shown = quern("help", name).stdout
        check(shown == quern(name, "--help").stdout, f"help {name} is not {name} --help")
        for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", shown.decode(), re.M):
            check(f"`{option}`" in markdown, f"{name}: {option} is not in its manual")
    check(quern("help", "--format", "man").stdout.startswith(b".TH QUERN 1"), "overview")
    check(b"did you mean" in quern("help", "rum", expect=2).stderr, "unknown command")
    quern("help", "--format", "troff", expect=2)
    check(run(CONVERT, "--manual", "man").stdout.startswith(b".TH QUERN\\-CONVERT 1"), "quern-convert")


def check_completions(folder):
    quern("help", "--write-to", folder)
    run(CONVERT, "--write-manuals-to", folder)
    check((folder / "man1/quern-bench.1").is_file() and (folder / "man1/quern-convert.1").is_file(), "man pages")
    for shell, file in (("bash", "bash/quern"), ("zsh", "zsh/_quern"), ("fish", "fish/quern.fish"), ("bash", "bash/quern-convert"),
                        ("zsh", "zsh/_quern-convert"), ("fish", "fish/quern-convert.fish")):
        if shutil.which(shell):
            result = subprocess.run([shell, "-n", folder / file], capture_output=True)
            check(result.returncode == 0 and not result.stderr, f"{file}: {result.stderr}")
    again = folder / "again"
    quern("help", "--write-to", again)
    for path in again.rglob("*"):
        if path.is_file():
            check(path.read_bytes() == (folder / path.relative_to(again)).read_bytes(), f"{path} differs between two runs")

    def complete(*words):
        script = f'source "{folder}/bash/quern"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quern; printf "%s\\n" "${{COMPREPLY[@]}}"'
        return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True).stdout.split()
    check("bench" in complete("quern", "be") and "run" not in complete("quern", "be"), "commands")
    check("--n-parallel" in complete("quern", "bench", "--n-p"), "options")
    check(complete("quern", "embed", "--pooling", "fi") == ["first"], f"choices {complete('quern', 'embed', '--pooling', 'fi')}")
    (folder / "a-model").mkdir()
    script = f'cd "{folder}"; source bash/quern; COMP_WORDS=(quern run -m a-m); COMP_CWORD=3; _quern; echo "${{COMPREPLY[@]}}"'
    check(subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.strip() == "a-model", "paths")
    if shutil.which("fish"):
        script = f'source "{folder}/fish/quern.fish"; complete -C "quern bench --n-par"'
        check("--n-parallel" in subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True).stdout, "fish")


# The words of llama.cpp's common/arg.cpp (LLAMA_ARG_...) for options that both programs have.
LLAMA_WORDS = {
    "--batch-size": "BATCH", "--cache-type-k": "CACHE_TYPE_K", "--cache-type-v": "CACHE_TYPE_V", "--chat-template": "CHAT_TEMPLATE",
    "--chat-template-file": "CHAT_TEMPLATE_FILE", "--chat-template-kwargs": "CHAT_TEMPLATE_KWARGS", "--ctx-size": "CTX_SIZE",
    "--frequency-penalty": "FREQUENCY_PENALTY", "--min-p": "MIN_P", "--model": "MODEL", "--model-draft": "SPEC_DRAFT_MODEL",
    "--n-predict": "N_PREDICT", "--parallel": "N_PARALLEL", "--pooling": "POOLING", "--predict": "N_PREDICT",
    "--presence-penalty": "PRESENCE_PENALTY", "--reasoning": "REASONING", "--reasoning-budget": "THINK_BUDGET",
    "--repeat-penalty": "REPEAT_PENALTY", "--show-timings": "SHOW_TIMINGS", "--temp": "TEMPERATURE", "--temperature": "TEMPERATURE",
    "--threads": "THREADS", "--top-k": "TOP_K", "--top-p": "TOP_P", "--ubatch-size": "UBATCH"}


def check_words(names):
    """An option has one variable in all commands, and llama.cpp's word where it has the option."""
    variables = {}
    for command in names:
        for line in quern("help", "--format", "markdown", command).stdout.decode().splitlines():
            check("fp8_e5m2" not in line or "int4" in line, f"{command}: not all cache types: {line}")
            found = re.search(r"\(`QUERN_ARG_(\w+)`\)", line)
            if found:
                for option in re.findall(r"`(--[a-z][a-z0-9-]*)`", line.split(" | ")[0]):
                    variables.setdefault(option, set()).add(found.group(1))
    for option, words in variables.items():
        check(len(words) == 1 or option == "--output", f"{option} has the variables {words}")
    for option, word in LLAMA_WORDS.items():
        check(variables.get(option) == {word}, f"{option}: {variables.get(option)}, llama.cpp's word is {word}")


def check_environment(folder):
    model = folder / "model"
    run(CONVERT, SOURCE / "tests/data/fixtures/gemma", model, "--type", "q8", "-q")
    check("QUERN_ARG_UBATCH" in quern("run", "--help").stdout.decode(), "--help names the environment")
    check("QUERN_ARG_CTX_SIZE" in quern("run", "--help").stdout.decode(), "--help names the environment")
    small = ["bench", "-n", "0", "-r", "1", "-t", "1", "--no-limits", "-o", "jsonl"]

    def test(*options, expect=0, **env):
        result = quern(*small, *options, expect=expect, env=env)
        return result.stdout.decode() if expect == 0 else result.stderr.decode()
    env = {"QUERN_ARG_MODEL": str(model), "QUERN_ARG_N_PROMPT": "4"}
    check('"test":"pp4"' in test(**env), "environment")
    check('"test":"pp8"' in test("-p", "8", **env), "the command line beats the environment")
    config = folder / "config.toml"
    config.write_text(f"# defaults\nmodel = '{model}'\nmax_tokens_of_nothing = 1\n")
    check("config.toml:3" in test(expect=3, QUERN_CONFIG=str(config)), "an unknown common key is an error")
    config.write_text(f'model = "{model}"  # all commands\ntemp = 0.5\n\n[bench]\nn-prompt = [2, 6]\nno_warmup = true\n[convert]\ntype = "q4"\n')
    both = test(QUERN_CONFIG=str(config))
    check('"test":"pp2"' in both and '"test":"pp6"' in both, f"a list in the file: {both}")
    check('"test":"pp4"' in test(QUERN_CONFIG=str(config), **{"QUERN_ARG_N_PROMPT": "4"}), "the environment beats the file")
    check('"test":"pp8"' in test("-p", "8", QUERN_CONFIG=str(config)), "the command line beats the file")
    home = folder / "home/quern"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(config.read_text())
    result = subprocess.run([QUERN, *small], capture_output=True, env={**{k: v for k, v in os.environ.items() if k != "QUERN_CONFIG"},
                            "XDG_CONFIG_HOME": str(folder / "home")})
    check(b'"test":"pp6"' in result.stdout, f"XDG_CONFIG_HOME: {result.stderr}")
    converted = folder / "by-config"
    run(CONVERT, SOURCE / "tests/data/fixtures/gemma", converted, "-q", env={"QUERN_CONFIG": str(config)})
    check(b"q4" in quern("inspect", "-m", converted).stdout, "quern-convert reads [convert]")
    check("(from QUERN_ARG_REPETITIONS)" in quern("bench", "-m", model, expect=2,
                                                  env={"QUERN_ARG_REPETITIONS": "x"}).stderr.decode(), "blame")
    config.write_text("[bench]\nrepetitions = many\n")
    check("config.toml:2" in quern("bench", "-m", model, expect=2, env={"QUERN_CONFIG": str(config)}).stderr.decode(), "blame")
    for text in ("[bench", "[bench]x", "bench]", "= 1", "key", "key =", "a = 'x", 'a = "\\q"', "[]", "[nothing]\na = 1",
                 "[bench]\nn-promt = 1", "[bench]\nn-prompt = 1\nn_prompt = 2", "a = [1", "a = [1,,2]", "a = 1\0", "a = \"b\" c"):
        config.write_text(text)
        error = quern("bench", "-m", model, expect=3, env={"QUERN_CONFIG": str(config)}).stderr.decode()
        check("config.toml:" in error and error.count("\n") == 1, f"{text!r}: {error}")
    quern("bench", "-m", model, expect=3, env={"QUERN_CONFIG": str(folder / "missing.toml")})


def check_installed(folder):
    if not (BUILD / "cmake_install.cmake").is_file() or not (BUILD / "manuals/done").is_file():
        print("note: no install checked, the target `manuals` is not built")
        return
    run("cmake", "--install", BUILD, "--prefix", "/usr", env={"DESTDIR": str(folder / "root")})
    for path in ("bin/quern", "bin/quern-convert", "share/man/man1/quern.1", "share/man/man1/quern-bench.1",
                 "share/bash-completion/completions/quern", "share/zsh/site-functions/_quern",
                 "share/fish/vendor_completions.d/quern.fish"):
        check((folder / "root/usr" / path).is_file(), f"{path} is not installed")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        names = commands()
        check_pages(names)
        check_words(names)
        check_completions(folder / "manuals")
        check_environment(folder)
        check_installed(folder)
    print(f"manuals: {len(names)} commands, completions, environment, configuration file, installation")


main()
