"""Colour where a person asked for it, and nowhere else."""

import pytest

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
    # A result is for programs too, and has none in any case.
    assert "\x1b" not in done.stdout


def test_help_is_as_wide_as_columns_say(benchctl):
    benchctl.environment["COLUMNS"] = "60"
    lines = benchctl("run", "--help").stdout.splitlines()
    assert 50 < max(map(len, lines)) <= 60
