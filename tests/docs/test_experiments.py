"""docs/experiments/ against the profiles: one heading, one command and one table for each."""

import re
import shlex
from html import unescape
from itertools import pairwise

import pytest
from docs.documents import blocks_of, text_of
from docs.pictures import PAGES as FILES
from docs.pictures import pictures
from profiles.test_shipped_profiles import ROOT, SHIPPED, plan

from benchctl.metrics import title_of

EVIDENCE = "evidence/experiments.md"
PAGES = {f"experiments/{page.name}": text_of(f"experiments/{page.name}") for page in FILES}
COMMANDS = [
    line for page in PAGES for block in blocks_of(page, "") for line in block.text.splitlines()
    if line.startswith("benchctl run ")
]  # fmt: skip
TEXT = "\n".join(PAGES.values())
PICTURES = pictures()
EXPERIMENTS = [
    name
    for name in SHIPPED
    if "# Reproduces: " in (ROOT / f"{name}.toml").read_text(encoding="utf-8")
]


def profile_of(words):
    return words[2]


def plan_of(words):
    settings, only = (
        tuple(value for word, value in pairwise(words) if word == option)
        for option in ("--set", "--only")
    )
    return plan(words[2], *settings, only=only)


def test_every_experiment_has_one_command():
    assert sorted(profile_of(shlex.split(command)) for command in COMMANDS) == EXPERIMENTS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_planned(command, shell_in, tmp_path):
    ((output, code),) = shell_in(tmp_path).run([command.replace(" run ", " plan ", 1)])
    assert code == 0, output


@pytest.mark.parametrize("command", COMMANDS)
def test_the_table_after_a_command_has_its_axes_and_their_values(command):
    after = TEXT.partition(f"\n{command}\n")[2]
    lines = after[after.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    heads, _, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    made = plan_of(shlex.split(command))
    assert {*made.varying} <= {*heads}
    for row in rows:
        for axis in made.varying:
            assert row[heads.index(axis)] in map(str, made.values[axis])


def test_every_experiment_of_a_paper_is_beside_it():
    named = re.findall(r"^## ([A-E]\d|RRUL):", TEXT, re.MULTILINE)
    table = text_of(EVIDENCE).partition("\n## Beside the papers\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in table.strip().splitlines()[2:]]
    assert sorted(row[0].strip() for row in rows) == sorted(named)
    assert all(len(row) == 4 and all(map(str.strip, row)) for row in rows)


def test_every_experiment_has_its_picture_after_its_command():
    assert [shlex.join(one.run) for one in PICTURES] == [
        shlex.join(shlex.split(command)) for command in COMMANDS
    ]


def options(words, *names):
    return [value for word, value in pairwise(words) if word in names]


def words_of(picture):
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    return [unescape(text) for text in texts]


@pytest.mark.parametrize("drawn", PICTURES, ids=lambda drawn: drawn.file.stem)
def test_a_picture_is_the_file_that_its_command_writes(drawn):
    assert options(drawn.plot, "-o") == [drawn.file.name]
    assert drawn.file.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize("drawn", PICTURES, ids=lambda drawn: drawn.file.stem)
def test_a_picture_is_of_the_run_and_of_what_its_command_asks_for(drawn):
    """Of the title, the metrics and the axes that are printed, and of no value that was not run."""
    words, made = words_of(drawn.file), plan_of(drawn.run)
    said, parts = " ".join(words), {part for word in words for part in re.split(", |=", word)}
    assert made.document.model.title in said
    for metric in options(drawn.plot, "--y"):
        assert f"{title_of(metric)} (" in said
    for axis in options(drawn.plot, "--x", "--series", "--by"):
        assert axis.replace("_", " ") in words
    for value in options(drawn.plot, "--only"):
        assert value in said
    for axis, values in plan(profile_of(drawn.run)).values.items():
        left_out = {*map(str, values)} - {*map(str, made.values[axis])}
        assert not left_out & parts
    shown = [axis for axis in made.varying if axis.replace("_", " ") in parts]
    assert bool(shown) == bool(made.varying)
    for axis in shown:
        # Of names that would touch each other, a figure leaves some out.
        names = {str(value) for value in made.values[axis]}
        assert len(names & parts) >= len(names) - 1
