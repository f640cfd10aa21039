"""What bundled tools printed when ``benchctl backends record`` ran them, and what came of it."""

from functools import cache
from pathlib import Path

import pytest

from benchctl.api import Role
from benchctl.backends import installed
from benchctl.testing.recording import shown
from benchctl.testing.transcript import Transcript, events_text, expected_path

TESTS = Path(__file__).parents[1]
FILES = sorted(
    path for path in TESTS.glob("*/transcripts/*.json") if expected_path(path).exists()
)  # fmt: skip

load = cache(Transcript.load)


def is_own(told):
    """Return whether the backend built the command."""
    needs_server = installed().load(told.backend).capabilities.needs_server
    return told.direction is not None and told.owns_server == needs_server


def name_of(path):
    return str(path.relative_to(TESTS))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_recorded_run_gives_the_events_beside_it(path, request):
    told = load(path)
    text = events_text(told.replay(told.parser(installed().load(told.backend))))
    if request.config.getoption("--update-golden"):
        expected_path(path).write_text(text, encoding="utf-8")
    assert text == expected_path(path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [path for path in FILES if is_own(load(path))], ids=name_of)
def test_the_flow_that_was_recorded_still_has_its_command(path):
    told = load(path)
    backend = installed().load(told.backend)
    build = backend.client if told.role is Role.CLIENT else backend.server
    # Which Python runs a bundled tool is the machine's.
    assert tuple(map(shown, build(told.flow(backend)).argv[1:])) == told.argv[1:]


def test_every_bundled_tool_that_is_everywhere_was_recorded():
    assert {load(path).backend for path in FILES} >= {"iperf3", "owamp", "ping", "simpleperf"}
