"""OWAMP, TWAMP and STAMP as a backend of benchctl, and as a command of its own.

`simpleowamp` (the sub-package) is the tool and does not depend on benchctl; `backend`, `parameters`
and `parser` wrap it. The backend is imported on demand, so the tool starts without benchctl.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "BACKEND":
        from benchctl_owamp.backend import BACKEND

        return BACKEND
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
