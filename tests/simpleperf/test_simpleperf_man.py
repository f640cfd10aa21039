"""The man page of simpleperf is its help; ``--update-golden`` writes it."""

import re
import subprocess
from pathlib import Path

import pytest
from flag_items import items

from benchctl.cli.commands.man import ManPage, Section, plain, roff
from benchctl_simpleperf.simpleperf.program.flags import _parser
from benchctl_simpleperf.simpleperf.protocol.auth import KEY_VARIABLE

FILE = Path(__file__).parents[2] / "man" / "simpleperf.1"


def page():
    parser = _parser()
    groups = [group for group in parser._action_groups if group._group_actions]
    return ManPage(
        "simpleperf",
        parser.description,
        (
            Section("Synopsis", ("simpleperf -s [options]", "simpleperf -c -I HOST [options]")),
            Section("Description", (parser.description, parser.epilog)),
            *(Section(titled(group), (), tuple(items(parser, group))) for group in groups),
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
            Section("Environment", (), ((KEY_VARIABLE, "The shared key, without --key-file."),)),
            Section(
                "Examples",
                (),
                (
                    ("simpleperf -s -b 0.0.0.0", "A server that other hosts can reach."),
                    ("simpleperf -c -I server -t 5 -i 1 -P 2", "Send over two TCP streams."),
                    ("simpleperf -c -I server -u -r 50M -R", "Receive UDP at 50 Mbit/s."),
                    (
                        "simpleperf --self | ssh host python3 -I - -s -b 0.0.0.0",
                        "A server on a host that has only Python.",
                    ),
                ),
            ),
            Section("See also", ("benchctl(1)",)),
        ),
    )


def titled(group):
    return {"options": "Program", "both ends": "Options of both ends"}.get(
        group.title, f"Options of the {group.title}"
    )


def test_the_page_that_is_installed_is_the_help(request):
    if request.config.getoption("--update-golden"):
        FILE.write_text(roff(page()), encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == roff(page())


def test_the_page_has_every_flag():
    text = plain(page())
    for action in _parser()._actions:
        for flag in action.option_strings:
            assert re.search(rf"(^|[ ,]){re.escape(flag)}($|[ ,])", text, flags=re.M), flag


@pytest.mark.tool("groff")
def test_man_has_nothing_to_complain_of():
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"], input=roff(page()), capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
