"""Flows of the iperf2 backend, and the transcripts of real runs in ``transcripts/``.

Those of a backend's own commands were made on loopback; the others are named by what went wrong.
"""

from pathlib import Path

from benchctl.api import Direction, Flow, Role, Sample, Summary, Tool
from benchctl.testing.transcript import Transcript
from benchctl_iperf2 import BACKEND

TRANSCRIPTS = Path(__file__).parent / "transcripts"


def flow(direction="send", address="192.0.2.1", port=5001, **parameters):
    """Return a flow; parameters of `Flow` itself are taken from the others by their names."""
    own = {
        name: parameters.pop(name)
        for name in ("owns_server", "one_clock", "source_address", "source_device", "lasting")
        if name in parameters
    }
    return Flow(
        BACKEND.parameters(**parameters), Direction(direction), address, port, Tool("2.1.8"), **own
    )


def client(direction="send", **parameters):
    """Return the words of a client's command."""
    return BACKEND.client(flow(direction, **parameters)).argv


def server(direction="send", **parameters):
    """Return the words of a server's command."""
    return BACKEND.server(flow(direction, owns_server=True, **parameters)).argv


def events(case, role=Role.CLIENT):
    """Return the events of a transcript."""
    transcript = Transcript.load(TRANSCRIPTS / f"{case}.{role}.json")
    return transcript.replay(transcript.parser(BACKEND))


def only(kind, told):
    return [event for event in told if isinstance(event, kind)]


def samples(told, direction=None):
    return [one for one in only(Sample, told) if direction in (None, one.direction)]


def summary(told, direction=Direction.SEND):
    [found] = [event for event in only(Summary, told) if event.direction is direction]
    return found.metrics
