"""docs/architecture.md: its layers, its folders, its files and what they touch are the code's."""

import ast
import re
import tomllib
from collections import defaultdict
from functools import cache

import pytest
from docs.documents import DOCS, blocks_of, filled, names_in, section, table, text_of

DOCUMENT = "architecture.md"
ROOT = DOCS.parent
PACKAGE = ROOT / "benchctl"


@cache
def files():
    """Return the syntax tree of each file of the house."""
    return {
        path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }


@cache
def libraries_of():
    """Return what each folder imports, or each module at the top: names of whole libraries."""
    found = defaultdict(set)
    for place, tree in files().items():
        folder = place.parts[0] if len(place.parts) > 1 else place.stem
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found[folder] |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found[folder].add(node.module.partition(".")[0])
    return found


def test_the_layers_are_those_that_are_checked(request):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = [
        c["layers"]
        for c in contracts["contracts"]
        if c["type"] == "layers" and "containers" not in c
    ]
    names = [layer.replace("benchctl.", "").split(" | ") for layer in layers]
    shown = " → ".join(", ".join(f"`{name}`" for name in layer) for layer in names)
    filled(DOCUMENT, "layers", [shown], request.config.getoption("--update-golden"))


def test_every_room_of_the_house_is_shown_in_the_order_of_the_layers():
    (house, _) = blocks_of(DOCUMENT, "text")
    shown = re.findall(r"^  (\w+)(?:/|\.py) ", house.text, flags=re.M)
    layers = re.findall(r"`(\w+)`", text_of(DOCUMENT).partition("<!-- layers -->")[2])
    assert {path.stem if path.is_file() else path.name for path in PACKAGE.iterdir()} - {
        "__init__", "__main__", "__pycache__", "py",
    } == set(shown)  # fmt: skip
    assert [layers.index(name) for name in shown[:9]] == sorted(map(layers.index, shown[:9]))
    for name in re.findall(r"^(\w+)/ ", house.text, flags=re.M):
        assert (ROOT / name).is_dir(), name


@pytest.mark.parametrize(
    "row", table(section(DOCUMENT, "### What each folder may touch")), ids=lambda row: row[0]
)
def test_the_world_is_touched_only_where_it_says(row):
    libraries, allowed = set(names_in([row], 1)), set(names_in([row], 2))
    touching = {folder for folder, found in libraries_of().items() if libraries & found}
    assert touching == allowed


def test_every_file_that_is_named_is_there():
    folder, missing = "", []
    for name in re.findall(r"`([\w/]+\.py)`", text_of(DOCUMENT)):
        # A bare name is in the folder of the one before it.
        path = name if "/" in name or (PACKAGE / name).is_file() else f"{folder}/{name}"
        folder = path.rpartition("/")[0]
        missing += [] if any((at / path).is_file() for at in (PACKAGE, ROOT)) else [path]
    assert missing == []


def test_no_two_things_have_one_name():
    """A type that is imported says by its name alone which one it is."""
    named = defaultdict(list)
    for place, tree in files().items():
        for node in tree.body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            for name in names:
                if re.fullmatch("[A-Z][A-Za-z]*[a-z][A-Za-z]*", name):
                    named[name].append(str(place))
    # What a command takes is read as `options.Profile`.
    named = {
        name: [one for one in found if one != "cli/shared/options.py"]
        for name, found in named.items()
    }
    assert {name: found for name, found in named.items() if len(found) > 1} == {}
