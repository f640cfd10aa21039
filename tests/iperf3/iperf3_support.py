"""Transcripts of real runs, and the flows they belong to.

A transcript is samples/VERSION/NAME with .cmd, .out, .err and .rc. Those named *.client and
*.server were made by the commands of this backend itself.
"""

from dataclasses import replace
from pathlib import Path

from contract import recorded

from benchctl.api import Direction, Flow, Role, Sample, Summary
from benchctl_iperf3 import BACKEND
from benchctl_iperf3.stream import JsonStream
from benchctl_iperf3.text import TextClient, TextServer

SAMPLES = Path(__file__).parent / "samples"


def transcript(name):
    return recorded(SAMPLES / name)


def tool(version="3.12"):
    said = transcript(f"{version}/version")
    return BACKEND.read_probe(Role.CLIENT, said.exit_code, said.stdout.decode())


def flow(
    direction="send",
    version="3.12",
    owns_server=False,
    source_address=None,
    source_device=None,
    **parameters,
):
    return Flow(
        BACKEND.parameters(**parameters),
        Direction(direction),
        "192.0.2.1",
        5201,
        tool(version),
        owns_server=owns_server,
        source_address=source_address,
        source_device=source_device,
    )


def parser_of(name, direction="send", **parameters):
    """Return the parser that fits a transcript by its name."""
    if name.endswith(".server") or "fail_server" in name:
        return TextServer(flow(direction, **parameters))
    json = "stream" in name or (name.startswith("3.21/") and name.endswith(".client"))
    return (JsonStream if json else TextClient)(flow(direction, **parameters))


def events(name, direction="send", exit_code=None, **parameters):
    """Replay a transcript with the parser that fits its name."""
    told = transcript(name)
    told = told if exit_code is None else replace(told, exit_code=exit_code)
    return told.replay(parser_of(name, direction, **parameters))


def only(kind, told):
    return [event for event in told if isinstance(event, kind)]


def samples(told):
    return only(Sample, told)


def summary(told, direction=Direction.SEND):
    [found] = [event for event in only(Summary, told) if event.direction is direction]
    return found.metrics


def rejected(told, direction=Direction.SEND):
    """Return what the tool reported of figures that are known to be wrong, and the reasons."""
    [found] = [event for event in only(Summary, told) if event.direction is direction]
    words = {broken.words for broken in found.broken.values()}
    return {name: found.metrics[name] for name in found.broken}, " ".join(words)


def known(told, direction=Direction.SEND):
    """Return the tool's figures, right ones in place of wrong ones."""
    [found] = [event for event in only(Summary, told) if event.direction is direction]
    right = {name: value for name, value in found.metrics.items() if name not in found.broken}
    return right | found.instead


def effective(told, kind):
    """Return all settings that were told, the later ones winning."""
    settings = {}
    for event in only(kind, told):
        settings |= event.settings
    return settings
