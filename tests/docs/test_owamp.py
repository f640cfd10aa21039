"""docs/owamp.md: its commands are understood, its events and keys are those that are printed."""

import re
import shlex

import pytest
from docs.documents import blocks_of, names_in, section, table
from owamp.two_way_harness import measured, ping, serving

from benchctl_owamp.simpleowamp.program.flags import PROTOCOLS, make_parser

DOCUMENT = "owamp.md"
COMMANDS = [
    line
    for block in blocks_of(DOCUMENT, "sh")
    for line in block.text.splitlines()
    if line.startswith("simpleowamp")
]


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_is_understood(line):
    command = line.partition(" #")[0].partition(" |")[0]
    make_parser().parse_args(shlex.split(command)[1:])


def test_every_option_that_is_named_is_there(capsys):
    help_text = ""
    for command in ([], ["serve"], ["ping"]):
        with pytest.raises(SystemExit):
            make_parser().parse_args([*command, "--help"])
        help_text += capsys.readouterr().out
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", section(DOCUMENT, "# simpleowamp")))
    # Python's own, in a command that runs it.
    assert named - {"-I"} <= set(re.findall(r"--?[a-zA-Z][a-z-]*", help_text))


def test_all_protocols_and_their_ports_are_listed():
    rows = table(section(DOCUMENT, "# simpleowamp"))
    assert [row[0].strip("`").split("`")[0] for row in rows] == list(PROTOCOLS)
    assert [int(row[4].split()[-1]) for row in rows] == [861, 862, 862, 862]


@pytest.fixture(scope="module")
def printed():
    """The keys of each event that is printed, of a direction and of a round trip."""
    keys = {}
    for protocol in ("owamp", "stamp"):
        with serving(protocol) as port:
            _, events = ping("127.0.0.1", port, protocol, "-c", 2, "-i", 0.01, "-L", 0.1)
        _, failed = ping("127.0.0.1", port, protocol, "-c", 1, "-L", 0.01)
        for event in (*events, *failed):
            keys.setdefault(event["event"], set()).update(event.keys() - {"event"})
    return keys


def test_every_event_and_key_that_is_printed_is_described(printed):
    described = {
        names_in([[name]])[0]: set(names_in([[keys]])) - {"send", "receive", "both"}
        for name, keys in table(section(DOCUMENT, "## JSON lines"))
    }
    for event, keys in printed.items():
        assert described[event] == keys


def test_what_people_read_has_the_lines_that_are_shown():
    shown = next(block.text for block in blocks_of(DOCUMENT, "text"))
    with serving("stamp") as port:
        done = measured("127.0.0.1", port, "stamp", "-c", 2, "-i", 0.01, "-L", 20)
    labels = [line.split("  ")[1] for line in done.stdout.splitlines() if line.startswith("  ")]
    expected = [line.split("  ")[1] for line in shown.splitlines() if line.startswith("  ")]
    # Nothing is lost on loopback.
    assert labels[:5] == [label for label in expected if label != "lost"]
