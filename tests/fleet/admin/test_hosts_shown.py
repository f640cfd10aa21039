"""What the list of a fleet's hosts says of each."""

import pytest

from benchctl.fleet.admin.hosts import host_rows
from benchctl.fleet.host_messages import Heartbeat, SpoolState
from benchctl.fleet.messages import EndRef
from benchctl.fleet.person_messages import HostReport


def beat(clock=(), **fields):
    spool = SpoolState(0, 1, 0, 0, 1)
    return Heartbeat("n", 0.0, "1.0", (), (), spool, dict(clock), is_wanted=False, **fields)


def row(**fields):
    (shown,) = host_rows([HostReport("paris", **{"is_away": False, **fields})], 100.0)
    return shown


def test_a_host_measures_the_runs_of_its_ends():
    running = (EndRef("r1", 0, 1, "a", "client"), EndRef("r1", 0, 1, "b", "client"))
    assert row(heard_s=99.0, heartbeat=beat(running=running))[1] == "measures r1"
    assert row(heard_s=99.0, heartbeat=beat())[1] == "idle"
    assert row(heard_s=90.0, heartbeat=beat(), is_away=True)[1] == "away"
    assert row(is_away=True)[1:] == ("never seen", "-", "-", "never")


@pytest.mark.parametrize(
    ("kernel", "shown"),
    [({}, "-2.00 ms ± 500 us"), ({"synchronized": False}, "-2.00 ms ± 500 us, not synchronized")],
)
def test_an_offset_has_the_error_of_its_measurement(kernel, shown):
    known = {"offset_s": -0.002, "offset_error_s": 0.0005}
    assert row(heard_s=99.0, heartbeat=beat(clock=kernel), **known)[3] == shown
    assert row(heard_s=99.0, heartbeat=beat(clock=kernel))[3] == "-"
