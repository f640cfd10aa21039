"""A server that stops reading when it was told to, as one that is busy with something else."""

import socket
import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from pydantic import ValidationError
from simpleperf.simpleperf_harness import running_server
from waiting import DEADLINE_S

from benchctl.api import Direction, Flow, Tool
from benchctl_simpleperf import BACKEND
from benchctl_simpleperf.simpleperf.measuring.stream import Timeline
from benchctl_simpleperf.simpleperf.measuring.tcp import TcpReceiver
from benchctl_simpleperf.simpleperf.program.flags import parse_flags
from benchctl_simpleperf.simpleperf.protocol.settings import MeasurementSettings, Pause

SETTINGS = MeasurementSettings()
BLOCK = bytes(10_000)


class Held(threading.Event):
    """The end of a pause comes when the test says so; ``waits_s`` is how long it was to last."""

    def __init__(self):
        super().__init__()
        self.waits_s = []
        self.paused = threading.Event()

    def wait(self, timeout=None):
        self.waits_s.append(timeout)
        self.paused.set()
        return super().wait(DEADLINE_S)


def receiving(*pauses):
    """A receiver in a thread, its thread, and the socket of its sender."""
    near, far = socket.socketpair()
    receiver = TcpReceiver(0, Timeline(SETTINGS.schedule(), pauses), near, SETTINGS, {})
    thread = threading.Thread(target=receiver.move)
    return receiver, thread, far


def test_nothing_is_read_in_a_pause_and_everything_after_it():
    receiver, thread, far = receiving(Pause(0.0, 7.0))
    receiver._resumed = held = Held()
    thread.start()
    far.sendall(BLOCK)
    assert held.paused.wait(DEADLINE_S)
    [wait_s] = held.waits_s
    assert 0 <= wait_s <= 7.0
    far.setblocking(False)
    sent = len(BLOCK)
    with suppress(BlockingIOError):  # Sooner or later nothing more fits.
        while sent < 1 << 30:
            sent += far.send(BLOCK)
    assert sent < 1 << 30
    assert receiver.moved_bytes <= len(BLOCK)
    held.set()
    far.shutdown(socket.SHUT_WR)
    thread.join(DEADLINE_S)
    assert receiver.moved_bytes == sent
    receiver.close()
    far.close()


def test_a_receiver_that_is_stopped_does_not_wait_for_the_end_of_its_pause():
    receiver, thread, far = receiving(Pause(0.0, 1e6))
    thread.start()
    far.sendall(BLOCK)
    receiver.stop()
    thread.join(DEADLINE_S)
    assert not thread.is_alive()
    receiver.close()
    far.close()


def test_a_server_pauses_what_it_receives_and_loses_nothing():
    with running_server(pauses=[Pause(0.0, 0.2), Pause(0.2, 0.1)]) as server:
        notes = server.measure(total_bytes=400_000)
    [figures] = notes.results[0]["directions"].values()
    assert figures["bytes_received"] == 400_000
    assert 400_000 * 8 / figures["throughput_bps"] >= 0.3


def test_a_server_pauses_nothing_that_it_sends():
    with running_server(pauses=[Pause(0.0, 20.0)]) as server:
        notes = server.measure(total_bytes=400_000, directions=("receive",))
    [figures] = notes.results[0]["directions"].values()
    assert figures["bytes_received"] == 400_000
    assert 400_000 * 8 / figures["throughput_bps"] < 20


def test_pauses_are_taken_in_their_order():
    flags = parse_flags(["-s", "--pause-reading", "30:500ms", "--pause-reading", "20s:3"])
    assert flags.pause_reading == [Pause(20.0, 3.0), Pause(30.0, 0.5)]


@pytest.mark.parametrize(
    ("pauses", "told"),
    [
        (["5"], "is not a time"),
        (["5:0"], "less than 0.001"),
        (["-1:5"], "is not a time"),
        (["5:20.1"], "for more than 20 s"),
        (["5:3", "7:1"], "the pause at 7 s begins before the one before it has ended"),
    ],
)
def test_pauses_that_cannot_be_are_refused(capsys, pauses, told):
    with pytest.raises(SystemExit) as end:
        parse_flags(["-s", *(f"--pause-reading={pause}" for pause in pauses)])
    assert end.value.code == 2
    assert told in capsys.readouterr().err


# --- the backend ----------------------------------------------------------------------------


def flow(direction=Direction.SEND, **params):
    return Flow(BACKEND.parameters(**params), direction, "127.0.0.1", 8088, Tool("2"), True)


def test_a_profile_pauses_the_server_that_benchctl_starts():
    asked = flow(pause_reading="20s:3s, 1min:500ms", bytes="10MB")
    server = BACKEND.server(asked).argv
    flags = parse_flags(server[server.index("-s") :])
    assert flags.pause_reading == [Pause(20.0, 3.0), Pause(60.0, 0.5)]
    assert "--pause-reading" not in BACKEND.client(asked).argv
    assert "--pause-reading" not in BACKEND.server(replace(asked, lasting=True)).argv


def test_a_transfer_with_pauses_takes_as_much_longer():
    of_bytes = {"bytes": "10MB", "rate": "8Mbit"}
    plain, paused = (
        BACKEND.duration_s(BACKEND.parameters(**of_bytes, **more))
        for more in ({}, {"pause_reading": "1s:3s,5s:1.5s"})
    )
    assert paused == plain + 4.5
    timed = BACKEND.parameters(duration="10s", pause_reading="1s:3s")
    assert BACKEND.duration_s(timed) == 10


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"pause_reading": "20s"}, "is not when to pause and for how long"),
        ({"pause_reading": "20:3"}, "is not when to pause and for how long"),
        ({"pause_reading": ""}, "is not when to pause and for how long"),
        ({"pause_reading": "1s:3s,2s:1s"}, "after the one before it has ended"),
        ({"pause_reading": "1s:21s"}, "a pause lasts 1 ms to 20 s"),
        ({"pause_reading": "1s:3s", "protocol": "udp"}, "pause_reading is for TCP only"),
        ({"pause_reading": "1s:3s", "plain": True}, "pause_reading is for the control protocol"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(params, told):
    with pytest.raises(ValidationError, match=told):
        BACKEND.parameters(**params)


def test_only_a_server_of_ours_that_receives_can_pause():
    asked = flow(pause_reading="1s:3s")
    for one in (replace(asked, owns_server=False), replace(asked, direction=Direction.RECEIVE)):
        with pytest.raises(ValueError, match="pause_reading"):
            BACKEND.client(one)
