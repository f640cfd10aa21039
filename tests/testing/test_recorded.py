"""What the bundled tools printed when ``benchctl backends record`` ran them."""

from pathlib import Path

import pytest

from benchctl.api import Role
from benchctl.backends import installed
from benchctl.testing.recording import shown
from benchctl.testing.transcript import events_text, expected_path, transcripts_in

TESTS = Path(__file__).parents[1]
FILES = sorted(path for role in Role for path in TESTS.glob(f"*/transcripts/*.{role}.json"))
RECORDED = {
    path: told for folder in {file.parent for file in FILES}
    for path, told in transcripts_in(folder).items()
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_recorded_run_gives_the_events_beside_it(path, request):
    told = RECORDED[path]
    text = events_text(told.replay(told.parser(installed().load(told.backend))))
    if request.config.getoption("--update-golden"):
        expected_path(path).write_text(text, encoding="utf-8")
    assert text == expected_path(path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if "refused" not in path.name],
    ids=lambda path: str(path.relative_to(TESTS)),
)
def test_the_flow_that_was_recorded_still_has_the_command_that_was(path):
    told = RECORDED[path]
    backend = installed().load(told.backend)
    build = backend.client if told.role is Role.CLIENT else backend.server
    # Which Python runs a bundled tool is the machine's.
    assert tuple(map(shown, build(told.flow(backend)).argv[1:])) == told.argv[1:]
