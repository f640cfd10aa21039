"""The man page of simpleowamp is its help; ``--update-golden`` writes it."""

import re
import subprocess
from pathlib import Path

import pytest
from flag_items import items

from benchctl.cli.commands.man import ManPage, Section, plain, roff
from benchctl_owamp.simpleowamp.cli import KEY_VARIABLE
from benchctl_owamp.simpleowamp.program.flags import make_parser

FILE = Path(__file__).parents[2] / "man" / "simpleowamp.1"
FAR = "simpleowamp --self | ssh host python3 -I - serve -b 0.0.0.0"


def parsers():
    """Return the program's parser, and that of each command."""
    parser = make_parser()
    [commands] = (action for action in parser._actions if action.dest == "command")
    return parser, commands.choices


def page():
    parser, commands = parsers()
    return ManPage(
        "simpleowamp",
        parser.description,
        (
            Section(
                "Synopsis", ("simpleowamp serve [options]", "simpleowamp ping SERVER [options]")
            ),
            Section("Description", (parser.description,)),
            Section("Program", (), tuple(items(parser, parser._optionals))),
            *(
                Section(titled(name, group), (), tuple(items(command, group)))
                for name, command in commands.items()
                for group in command._action_groups
                if group._group_actions
            ),
            Section(
                "Exit status",
                (),
                (
                    ("0", "Done; a server was asked to end."),
                    ("1", "The measurement failed."),
                    ("2", "The command line is wrong."),
                    ("130", "Interrupted; what was measured is shown."),
                ),
            ),
            Section(
                "Environment", (), ((KEY_VARIABLE, "The passphrase or key, without --key-file."),)
            ),
            Section(
                "Examples",
                (),
                (
                    ("simpleowamp serve -b 0.0.0.0", "A server that other hosts can reach."),
                    ("simpleowamp ping server -c 500 -i 20ms", "500 packets in each direction."),
                    (FAR, "A server on a host that has only Python."),
                ),
            ),
            Section("See also", ("benchctl(1), simpleperf(1)",)),
        ),
    )


def titled(command, group):
    kind = {"options": "options", "positional arguments": "arguments"}.get(group.title, group.title)
    return f"{command}: {kind}"


def test_the_page_that_is_installed_is_the_help(request):
    if request.config.getoption("--update-golden"):
        FILE.write_text(roff(page()), encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == roff(page())


def test_the_page_has_every_flag():
    text = plain(page())
    parser, commands = parsers()
    for action in (each for one in (parser, *commands.values()) for each in one._actions):
        for flag in action.option_strings:
            assert re.search(rf"(^|[ ,]){re.escape(flag)}($|[ ,])", text, flags=re.M), flag


@pytest.mark.tool("groff")
def test_man_has_nothing_to_complain_of():
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"], input=roff(page()), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
