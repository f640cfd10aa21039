"""What is left of a wait between two attempts."""

import pytest

from benchctl.analysis.runs.pace import wait_s
from benchctl.run.planned import Settings

SETTINGS = Settings({}, "grouped", (), attempts=3, backoff_s=2.0)


@pytest.mark.parametrize(
    ("attempt", "since_s", "left_s"), [(1, 0.5, 1.5), (2, 0.5, 3.5), (2, 9.0, 0.0)]
)
def test_the_rest_of_a_doubled_wait_is_left(attempt, since_s, left_s):
    assert wait_s(SETTINGS, attempt, since_s) == left_s


def test_no_wait_for_a_starting_server_is_longer_than_the_profile_allows():
    assert wait_s(SETTINGS, 20_000, 0.0) == 4.0
