"""Everything that the author of a plugin imports.

A backend wraps one tool and does no I/O. It declares the parameters of the tool, builds the command
for each end of a flow, and parses the output of the command into events.

The other work is benchctl's: it finds the programs, starts them on the right hosts, feeds their
output to the parsers, watches their time and stops them. So a backend works on this machine and in
every lab, and is tested by replaying recorded output (`replay`).

A minimal backend is a subclass of `Backend` with a `Parameters` model, a `client` command and a
parser; docs/plugins.md builds one step by step. A package offers it under the entry point group
``benchctl.backends``; a single file offers it as the module's variable ``BACKEND``.

An `Exporter` writes runs in a format of its own (``benchctl.exporters``, ``EXPORTER``). An
`Importer` reads files that are no backend's (``benchctl.importers``, ``IMPORTER``). They do no I/O
either.

Quantities are in SI base units: seconds, bits per second, bytes, ratios. Names carry their unit.
"""

from __future__ import annotations

from pydantic import Field

from benchctl.api.backend import Backend
from benchctl.api.events import Effective, Event, Failure, FailureKind, Ready, Started, Warn
from benchctl.api.flow import Command, Demand, Flow
from benchctl.api.importer import Importer
from benchctl.api.parameters import Dscp, Duration, Parameters, Rate, Ratio, Size
from benchctl.api.parser import Channel, LineParser, Parser, ParserError, replay
from benchctl.api.recording import Recording
from benchctl.api.silent import silent_server
from benchctl.api.tool import Capabilities, Probe, Role, Tool
from benchctl.exporter import ExportedRun, Exporter, ExportError
from benchctl.metrics import (
    METRICS,
    Breach,
    Direction,
    Fold,
    Metric,
    Sample,
    Summary,
    TracedRoute,
)
from benchctl.units import write_duration, write_rate, write_size

__all__ = [
    "API_VERSION", "METRICS", "OLDEST_API_VERSION", "Backend", "Breach", "Capabilities", "Channel",
    "Command", "Demand", "Direction", "Dscp", "Duration", "Effective", "Event", "ExportError",
    "ExportedRun", "Exporter", "Failure", "FailureKind", "Field", "Flow", "Fold", "Importer",
    "LineParser", "Metric", "Parameters", "Parser", "ParserError", "Probe", "Rate", "Ratio",
    "Ready", "Recording", "Role", "Sample", "Size", "Started", "Summary", "Tool", "TracedRoute",
    "Warn", "replay", "silent_server", "write_duration", "write_rate", "write_size",
]  # fmt: skip

API_VERSION = 1
"""The version of this contract. Names, and methods with a default, are added without a new one."""
OLDEST_API_VERSION = 1
"""The oldest version whose plugins still work."""
