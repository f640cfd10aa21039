"""For authors of plugins: the contract as a report and as tests, and transcripts of real runs.

`BackendContract`, `ExporterContract` and `ImporterContract` are classes of tests for pytest;
`check`, `check_exporter` and `check_importer` give the same as data, and need no pytest.
`Transcript` is one run of one command, recorded by ``benchctl backends record``. These names are as
stable as those of `benchctl.api`; docs/plugins.md says what may change.

Each is imported when it is used: `benchctl.testing.echotime`, a tool, starts without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchctl.testing.contract import RULES, BackendContract, check
    from benchctl.testing.exporting import EXPORTER_RULES, ExporterContract, check_exporter
    from benchctl.testing.importing import IMPORTER_RULES, ImporterContract, check_importer
    from benchctl.testing.rules.rule import Fault, Finding, Standing
    from benchctl.testing.transcript import Piece, Transcript

__all__ = [
    "EXPORTER_RULES",
    "IMPORTER_RULES",
    "RULES",
    "BackendContract",
    "ExporterContract",
    "Fault",
    "Finding",
    "ImporterContract",
    "Piece",
    "Standing",
    "Transcript",
    "check",
    "check_exporter",
    "check_importer",
]

_HOMES = ("contract", "exporting", "importing", "rules.rule", "transcript")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"benchctl.testing.{home}")
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
