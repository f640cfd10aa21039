"""What a person asks at first, and the lines of 80x24 that answer it without a key."""

from pathlib import Path

import pytest
from tui.driving import drive, open_plan, shown

STORE = Path("runs.sqlite")
OWN = Path("profiles/two-servers.toml")


def plan():
    return open_plan(OWN)


# question, screen, the exact phrase, the lines on which it may stand
ANSWERS = (
    ("how do I start", plan, "r starts  6 trials", (15, 16)),
    ("how long will it take", plan, "2 min 00 s", (15, 16)),
    ("how much traffic will this send", plan, "no traffic leaves it", (15, 16)),
    ("from where", plan, "on this machine", (15, 16)),
)


@pytest.mark.parametrize(("question", "screen", "phrase", "lines"), ANSWERS)
def test_a_question_is_answered_without_a_key(question, screen, phrase, lines, toy_profiles):
    async def script(pilot):
        text = shown(pilot).splitlines()
        assert any(phrase in text[place - 1] for place in lines), "\n".join([question, *text])

    drive(STORE, screen(), script)
