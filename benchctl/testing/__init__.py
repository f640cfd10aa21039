"""For authors of plugins: the contract as a report and as tests, and transcripts of real runs.

`BackendContract` is a class of tests for pytest; `check` gives the same as data, and needs no
pytest. `Transcript` is one run of one command, recorded by ``benchctl backends record``. These
names are as stable as those of `benchctl.api`; docs/plugins.md says what may change.
"""

from benchctl.testing.contract import RULES, BackendContract, check
from benchctl.testing.rule import Fault, Finding, Standing
from benchctl.testing.transcript import Piece, Transcript

__all__ = [
    "RULES",
    "BackendContract",
    "Fault",
    "Finding",
    "Piece",
    "Standing",
    "Transcript",
    "check",
]
