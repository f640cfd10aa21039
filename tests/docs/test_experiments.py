"""docs/experiments.md against the profiles: one heading, one command and one table for each."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
from docs.documents import DOCS, blocks_of, text_of
from profiles.test_shipped_profiles import ROOT, SHIPPED, plan

DOCUMENT = "experiments.md"
COMMANDS = [
    line for block in blocks_of(DOCUMENT, "") for line in block.text.splitlines()
    if line.startswith("benchctl run ")
]  # fmt: skip
# The commands with the pictures that follow them.
PICTURES = re.findall(
    r"^(benchctl run [^\n]*)$(?:(?!^benchctl run ).)*?"
    r"^(benchctl plot [^\n]*)\n```\n\n!\[[^]]+\]\(([^)]*)\)$",
    text_of(DOCUMENT), re.M | re.S,
)  # fmt: skip
EXPERIMENTS = [
    name
    for name in SHIPPED
    if "# Reproduces: " in (ROOT / f"{name}.toml").read_text(encoding="utf-8")
]


def profile_of(command):
    return shlex.split(command)[2]


def plan_of(command):
    words = shlex.split(command)
    settings, only = (
        tuple(value for word, value in pairwise(words) if word == option)
        for option in ("--set", "--only")
    )
    return plan(words[2], *settings, only=only)


def test_every_experiment_has_one_command():
    assert sorted(map(profile_of, COMMANDS)) == EXPERIMENTS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_can_be_planned(command, shell_in, tmp_path):
    ((output, code),) = shell_in(tmp_path).run([command.replace(" run ", " plan ", 1)])
    assert code == 0, output


@pytest.mark.parametrize("command", COMMANDS)
def test_the_table_after_a_command_has_its_axes_and_their_values(command):
    after = text_of(DOCUMENT).partition(f"\n{command}\n")[2]
    lines = after[after.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    heads, _, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    made = plan_of(command)
    assert {*made.varying} <= {*heads}
    for row in rows:
        for axis in made.varying:
            assert row[heads.index(axis)] in map(str, made.values[axis])


def test_every_experiment_has_its_picture_after_its_command():
    assert [command for command, _, _ in PICTURES] == COMMANDS


@pytest.mark.parametrize(("command", "drawn", "picture"), PICTURES)
def test_a_picture_is_of_axes_of_its_run_and_was_made(command, drawn, picture):
    words = shlex.split(drawn)
    assert (DOCS / picture).read_text(encoding="utf-8").startswith("<?xml")
    assert Path(picture).stem == Path(words[words.index("-o") + 1]).stem
    made = plan_of(command)
    for option, value in pairwise(words):
        if option in ("--x", "--series", "--by"):
            assert value in made.values
