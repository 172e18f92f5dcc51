#!/usr/bin/env python3
"""The table of supported families in the README, from the recipes.

usage: families_table.py          prints it
       families_table.py --check  compares README.md with it (a test)
       families_table.py --write  puts it between the marks in README.md
Chat: a decoder's checkpoint brings its template (Jinja), which is run; without one the model completes the text as
it is, or takes a template by name (--chat-template).
"""
import json
import pathlib
import sys

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"


def kind_of(recipes, recipe):
    """A recipe that does not say its kind has its parent's."""
    while "kind" not in recipe.get("contract", {}):
        recipe = recipes[recipe["extends"]]
    return recipe["contract"]["kind"]


def classes(names):
    """Names of classes, not of model types: those that a configuration shows first."""
    return [n for n in names if n != n.lower()] or names


START, END = "<!-- families: scripts/families_table.py --write -->\n", "<!-- end of families -->"


def table():
    recipes = {p.stem: json.loads(p.read_text()) for p in sorted(MODELS.glob("[!_]*.json"))}
    lines = ["| Family | HF | GGUF | Chat | What it is |", "| --- | --- | --- | --- | --- |"]
    for name, recipe in recipes.items():
        match = recipe["match"]
        code = lambda words: ", ".join(f"`{w}`" for w in words) or "-"
        chat = "its template" if kind_of(recipes, recipe) == "decoder" else "-"
        lines.append(f"| {name} | {code(classes(match.get('hf', [])))} | {code(match.get('gguf', []))} | {chat} | {recipe['about']} |")
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == []:
        print(table(), end="")
        return 0
    readme = MODELS.parent / "README.md"
    text = readme.read_text()
    before, rest = text.split(START)
    old, after = rest.split(END)
    if sys.argv[1] == "--write":
        readme.write_text(before + START + table() + END + after)
        return 0
    if old != table():
        print("README.md: the table of families is not that of models/; run scripts/families_table.py --write")
        return 1
    print(f"README.md lists the {len(old.splitlines()) - 2} families of models/")
    return 0


sys.exit(main())
