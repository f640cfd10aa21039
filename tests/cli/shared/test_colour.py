"""Colour where a person asked for it, and nowhere else."""

import io
from unittest.mock import Mock

import pytest

from benchctl.cli.shared.colour import mark, wanted
from benchctl.visible import VisibleText

PROFILE = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["ok"]\n'


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR_FORCE": "0"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
    ids=str,
)
def test_progress_in_a_file_has_colour_only_if_it_is_forced(benchctl, environment, coloured):
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        benchctl.environment.pop(name, None)
    benchctl.environment |= {"TERM": "xterm-256color", **environment}
    done = benchctl("run", benchctl.profile(PROFILE))
    assert ("\x1b[3" in done.stderr or "\x1b[1;3" in done.stderr) is coloured
    benchctl.environment["COLUMNS"] = "80"
    assert ("\x1b[32mok\x1b[m" in benchctl("runs").stdout) is coloured
    assert ("  \x1b[32mok\x1b[m  1 trial," in benchctl("show").stdout) is coloured
    # Never for programs.
    for words in (["runs", "--json"], ["export", "--format", "json"], ["show", "--facts"]):
        assert not coloured or "\x1b" not in benchctl(*words).stdout


def test_states_and_verdicts_have_the_terminals_colours_and_other_words_none():
    table = "a  ok      1.2\nok-ish  failed\nrun: worse\nworse off, not ok\nx  different, y\n"
    assert mark(table) == (
        "a  \x1b[32mok\x1b[m      1.2\nok-ish  \x1b[31mfailed\x1b[m\nrun: \x1b[31mworse\x1b[m\n"
        "\x1b[31mworse\x1b[m off, not ok\nx  \x1b[33mdifferent\x1b[m, y\n"
    )


def test_a_dumb_terminal_has_no_colour():
    terminal = Mock(isatty=lambda: True)
    assert wanted(terminal, {"TERM": "xterm"})
    assert not wanted(terminal, {"TERM": "dumb"})
    assert not wanted(terminal, {})
    assert not wanted(terminal, {"TERM": "xterm", "NO_COLOR": "1"})


def test_foreign_control_characters_stay_visible_beside_our_own():
    text = VisibleText(file := io.BytesIO(), encoding="utf-8")
    text.mark = mark
    text.write("\x1b[2Jx  ok\n")
    text.flush()
    assert file.getvalue() == b"\\x1b[2Jx  \x1b[32mok\x1b[m\n"


def test_help_is_as_wide_as_columns_say(benchctl):
    benchctl.environment["COLUMNS"] = "60"
    lines = benchctl("run", "--help").stdout.splitlines()
    assert 50 < max(map(len, lines)) <= 60
