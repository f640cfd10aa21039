"""What is printed of a two-way session in which packets were lost."""

import json

import pytest
from owamp.two_way_parts import FORMATS, NOON_NS, SECOND_NS, TwoWay

from benchctl_owamp.simpleowamp.measuring.clock import ClockState
from benchctl_owamp.simpleowamp.measuring.sender import Outcome
from benchctl_owamp.simpleowamp.measuring.two_way_session import TwoWaySession
from benchctl_owamp.simpleowamp.program.output import JsonOutput, TextOutput
from benchctl_owamp.simpleowamp.protocol.messages import SessionRequest
from benchctl_owamp.simpleowamp.protocol.schedule import FIXED, Slot
from benchctl_owamp.simpleowamp.protocol.timestamps import to_interval, to_timestamp

LATE = {"p99": 0.0001}


def session_of(**lost):
    """Return a session of ten probes to a reflector whose clock is 55 ms ahead."""
    network = TwoWay(FORMATS["stamp"], ahead_ns=55_000_000)
    slot = Slot(FIXED, to_interval(SECOND_NS // 10))
    times = to_timestamp(NOON_NS), to_interval(2 * SECOND_NS)
    request = SessionRequest(False, False, 1000, (slot,), "", 0, "", 0, *times, sid=bytes(16))
    session = TwoWaySession(request, None, FORMATS["stamp"], counts=False)
    network.trip = session.trip
    for back in network.exchange(range(10), **lost):
        session.take_answer(back)
    session.end(10, ())
    return session


def said(session, capsys):
    output = TextOutput()
    output._server = "192.0.2.1"
    output._directions = {"both": session}
    output.ended(session, None)
    output.finished(ClockState(True, 0.0, 0.0))
    return capsys.readouterr().out


def test_people_read_figures_hops_losses_and_the_difference_of_the_clocks(capsys):
    text = said(session_of(drop_send={2, 3, 9}, drop_receive={5}), capsys)
    assert "to and from 192.0.2.1: 10 sent, 4 lost (40.00%), 0 duplicated, 0 reordered" in text
    assert "lost           2 on the way there, 1 on the way back, 1 on an unknown way" in text
    assert "round trip     min 5.000  median 5.000" in text
    assert "there          min 58.000" in text
    assert "back           min -53.000" in text
    assert "reflector      min 1.000" in text
    assert "hops           2 there, 3 back" in text
    assert "the clocks are about 55.5 ms apart: minima +58.000 and -53.000 ms" in text


def test_people_read_that_the_way_of_losses_is_unknown(capsys):
    text = said(session_of(drop_receive={5}), capsys)
    assert "on which way, the reflector's numbers do not say" in text


@pytest.mark.parametrize(
    ("lost", "ways"),
    [({"drop_send": {2}, "drop_receive": {5}}, (1, 1)), ({"drop_receive": {5}}, (None, None))],
)
def test_programs_read_the_ways_of_losses_or_null(capsys, lost, ways):
    JsonOutput().ended(session_of(**lost), Outcome(0, 10, 10, (), LATE, None))
    end = json.loads(capsys.readouterr().out)
    assert (end["direction"], end["sent"]) == ("both", 10)
    assert (end["lost_send"], end["lost_receive"]) == ways
