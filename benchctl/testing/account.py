"""What is in a transcript, in a few lines for people."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchctl.api import Channel, ParserError
from benchctl.backends import AnyBackend
from benchctl.errors import PluginError
from benchctl.hosts.local.spawn import STOP_GRACE_S
from benchctl.plugins import plugin_bugs
from benchctl.testing.recording import MOST_BYTES
from benchctl.testing.transcript import Transcript, keep_expected
from benchctl.units import format_duration

# Of a shorter command, nobody misses live figures.
LONG_S = 1.0
# Of the time of a command: what arrives after it arrived at the end.
END_SHARE = 0.9


def account(transcript: Transcript) -> str:
    """Return how a command ended, and what it printed where and when."""
    code = transcript.exit_code
    how = f"exit code {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"
    sent = (
        f", {transcript.stop.signal} at {format_duration(transcript.stop.at_s)}"
        if transcript.stop
        else ""
    )
    lines = [f"{how} after {format_duration(transcript.lasted_s)}{sent}"]
    lines += (f"  {channel}  {_arrival(transcript, channel)}" for channel in Channel)
    return "\n".join(lines)


def _arrival(transcript: Transcript, channel: Channel) -> str:
    pieces = [piece for piece in transcript.pieces if piece.channel is channel]
    if not pieces:
        return "nothing"
    size = f"{sum(len(piece.data) for piece in pieces):,} bytes"
    first, last = (format_duration(piece.at_s) for piece in (pieces[0], pieces[-1]))
    if len(pieces) == 1:
        return f"{size} at {first}"
    return f"{size} in {len(pieces)} pieces, from {first} to {last}"


def notes(transcript: Transcript, *, by_default: bool) -> Iterator[str]:
    """Yield what people should know; ``by_default`` says that they set no limit of time."""
    if transcript.stop is not None and transcript.stop.by == "time" and by_default:
        yield (f"the {transcript.role} was stopped after {format_duration(transcript.stop.at_s)};"
               " --for DURATION sets the time")  # fmt: skip
    if transcript.stop is not None and transcript.stop.by == "size":
        yield (f"the {transcript.role} was stopped: a transcript holds {MOST_BYTES >> 20} MiB, and"
               " the rest is missing")  # fmt: skip
    if transcript.stop is not None and transcript.exit_code == -signal.SIGKILL:
        yield (f"the {transcript.role} did not end within {STOP_GRACE_S:.0f} s of"
               f" {transcript.stop.signal}, and was killed: choose the stop_signal that ends"
               " it")  # fmt: skip
    at_s = [piece.at_s for piece in transcript.pieces if piece.channel is Channel.STDOUT]
    if transcript.lasted_s >= LONG_S and at_s and at_s[0] > END_SHARE * transcript.lasted_s:
        yield (f"all output of the {transcript.role} came at its end, so there are no live figures:"
               " look for an option that flushes every line")  # fmt: skip


def expect(path: Path, transcript: Transcript, backend: AnyBackend) -> str:
    """Write the events that a transcript gives now, beside it.

    Returns how many of which kinds, or why there are none.
    """
    try:
        with plugin_bugs("the plugin failed", ParserError):
            events = transcript.replay(transcript.parser(backend))
        keep_expected(path, events)
    except ParserError as error:
        return f"none; not understood: {error}"
    except PluginError as error:
        return f"none; {error.message}"
    kinds = Counter(type(event).__name__ for event in events)
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"
