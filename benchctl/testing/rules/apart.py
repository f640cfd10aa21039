"""The rules that need a process of their own: what importing does, and what probes find."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchctl.api import Backend, Role, Tool
from benchctl.testing.rules.rule import Fault, NotCheckedError
from benchctl.testing.rules.subject import Subject, home_of

_ALONE = Path(__file__).with_name("alone.py")
# It ends a backend that waits for something at its import.
DEADLINE_S = 120.0
# benchctl and its users: what draws, what runs an event loop.
_SCREENS = {"curses", "prompt_toolkit", "rich", "textual", "tkinter", "typer"}
# asyncio brings 30 modules, requests 80, NumPy 150; a backend needs few besides json and re.
_MOST_MODULES = 40

# What other programs, and no program, answer to a probe: exit code, then output.
_ANSWERS_OF_OTHERS = (
    (127, "sh: 1: not-the-tool: not found\n"),
    (1, ""),
    (-9, ""),
    (2, "Traceback (most recent call last):\nKeyError: 1\n"),
    (1, "\ufffd\x00" * 100),
    (1, "9" * 5000),
)


@dataclass(frozen=True, slots=True)
class Impression:
    """What a process of its own saw of a backend: see `benchctl.testing.rules.alone`."""

    took_s: float
    modules: list[str]
    """Those that its import loaded."""
    ran: list[str]
    """What its import did besides."""
    printed: str
    declared: list[Mapping[str, Any]] = field(default_factory=list)
    """What it says of the cases."""
    reached: list[str] = field(default_factory=list)
    """What it did meanwhile that reaches out of the process."""
    probes: Mapping[str, Any] = field(default_factory=dict)
    """What is found without any program, by role: a Tool or a MissingError."""


@lru_cache(maxsize=8)
def look_apart(subject: Subject) -> Impression:
    """Look at a backend from another process.

    Its environment, directory and order of sets are others. Raises RuntimeError if it fails there.
    """
    try:
        cases = subject.cases
    except NotCheckedError:
        cases = []
    return _impression(subject.backend, "BACKEND", cases)


def _impression(plugin: object, variable: str, cases: Sequence[object]) -> Impression:
    home = home_of(plugin, variable)
    file = getattr(sys.modules.get(home), "__file__", None)
    if file is None:
        raise NotCheckedError(f"needs the file of {home}: it was not imported from one")
    request = {
        "path": [str(Path(place).resolve()) for place in sys.path],
        "home": home,
        "file": file,
        "variable": variable,
        "class": type(plugin).__name__,
        "cases": pickle.dumps(cases),
    }
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question"), Path(folder, "answer")
        question.write_bytes(pickle.dumps(request))
        done = subprocess.run(
            [sys.executable, "-P", str(_ALONE), str(question), str(answer)],
            cwd=folder,
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": folder, "PYTHONHASHSEED": "1",
                 "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        found = pickle.loads(answer.read_bytes()) if answer.exists() else {}
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode:
        raise RuntimeError(f"in a process of its own: {said.strip()[-300:]}")
    return Impression(printed=said, **found)


def judge_imports(subject: Subject) -> Iterator[Fault | str]:
    """Look at what importing a backend loads and does."""
    yield from _judge_import(subject.backend, look_apart(subject))


def judge_import_of(plugin: object, variable: str) -> Iterator[Fault | str]:
    """Look at what importing a plugin of another kind loads and does."""
    yield from _judge_import(plugin, _impression(plugin, variable, ()))


def _judge_import(plugin: object, report: Impression) -> Iterator[Fault | str]:
    if report.printed:
        yield Fault(f"it prints {report.printed[:80]!r}", "print nothing: return data")
    for what in report.ran:
        yield Fault(f"importing it does {what}", "nothing runs at import; benchctl does the I/O")
    roots = Counter(name.partition(".")[0] for name in report.modules)
    if inner := [name for name in report.modules if name.startswith("benchctl.")]:
        yield Fault(
            f"importing it loads {', '.join(inner[:3])}",
            "import benchctl.api only: no other module of benchctl is stable",
        )
    if screens := _SCREENS & {*roots}:
        yield Fault(f"importing it loads {', '.join(sorted(screens))}", "a plugin draws nothing")
    own = type(plugin).__module__.partition(".")[0]
    foreign = Counter({root: count for root, count in roots.items() if root != own})
    if foreign.total() > _MOST_MODULES:
        most = ", ".join(f"{root} ({count})" for root, count in foreign.most_common(3))
        yield Fault(
            f"importing it loads {foreign.total()} modules besides its own: {most}",
            "import what is heavy in the function that needs it, or do without",
        )
    took = f"{report.took_s * 1e3:.0f} ms"
    yield f"loads {len(report.modules)} modules beyond benchctl.api, in {took}"


def judge_probes(subject: Subject) -> Iterator[Fault | str]:
    """Look for the programs of a backend where there are none, and read what others answer."""
    from benchctl.errors import PluginError

    for role, found in look_apart(subject).probes.items():
        if isinstance(found, PluginError):
            yield Fault(
                f"looking for the {role}'s program without a PATH fails: {found.message}",
                "probe() returns data, and read_probe() raises only ValueError",
            )
        yield f"{role}: {found.version if isinstance(found, Tool) else 'missing'} without a PATH"
    for role in Role:
        yield from _read_others(subject.backend, role)


def _read_others(backend: Backend[Any], role: Role) -> Iterator[Fault]:
    probe = backend.probe(role)
    while probe is not None:
        if not probe.argv or not probe.install:
            yield Fault(
                f"probe({role}) has argv {probe.argv!r} and install {probe.install!r}",
                "give the command, and how to get its program",
            )
        probe = probe.otherwise
    if backend.probe(role) is None:
        return
    for exit_code, output in _ANSWERS_OF_OTHERS:
        try:
            tool = backend.read_probe(role, exit_code, output)
        except ValueError:
            continue
        except Exception as error:
            what = f"read_probe() raises {type(error).__name__}: {error}, of {output[:40]!r}"
            yield Fault(what, "raise ValueError with a reason for what is not the tool")
            return
        else:
            yield Fault(
                f"read_probe() takes {output[:40]!r}, exit code {exit_code}, for {tool.version!r}",
                "look for the tool's own words, and raise ValueError without them",
            )
            return
