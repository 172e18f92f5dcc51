#!/usr/bin/env python3
"""The table of supported families for the README, from the recipes.  usage: families_table.py > table.md"""
import json
import pathlib

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"


def kind_of(recipes, recipe):
    """A recipe that does not say its kind has its parent's."""
    while "kind" not in recipe.get("contract", {}):
        recipe = recipes[recipe["extends"]]
    return recipe["contract"]["kind"]


def classes(names):
    """Names of classes, not of model types: those that a configuration shows first."""
    return [n for n in names if n != n.lower()] or names


def main():
    recipes = {p.stem: json.loads(p.read_text()) for p in sorted(MODELS.glob("[!_]*.json"))}
    print("| Family | Hugging Face | GGUF | Chat | What it is |")
    print("| --- | --- | --- | --- | --- |")
    for name, recipe in recipes.items():
        match = recipe["match"]
        code = lambda words: ", ".join(f"`{w}`" for w in words) or "-"
        chat = "template of the checkpoint" if kind_of(recipes, recipe) == "decoder" else "-"
        print(f"| {name} | {code(classes(match.get('hf', [])))} | {code(match.get('gguf', []))} | {chat} | {recipe['about']} |")


main()
