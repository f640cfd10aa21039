"""Looks at a backend from a process that has nothing else in it; `apart` runs it.

A script, so that nothing but ``benchctl.api`` is imported before the backend is. Its arguments are
the file of the question and the file of the answer, both pickled; it prints nothing itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Of audit events (docs.python.org/3/library/audit_events.html): what a backend leaves to benchctl.
_STARTS = ("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")
_TALKS = ("socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname")
_LOOKS = ("glob.glob", "open", "os.listdir", "os.scandir", "sqlite3.connect")
_CHANGES = ("os.chdir", "os.mkdir", "os.putenv", "os.remove", "os.rename", "shutil.")


class Watch:
    """Notes what the process does that reaches out of it, but for the files that it imports."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._watched: tuple[str, ...] = ()
        sys.addaudithook(self._take)

    def over(self, *events: str) -> None:
        """Watch these kinds of events from now on."""
        self.seen = []
        self._watched = events

    def _take(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._watched and event.startswith(self._watched):
            if event.startswith(_LOOKS) and _importing():
                return
            if event == "os.posix_spawn" and self.seen and self.seen[-1].startswith("subprocess."):
                return  # Python 3.13 starts some programs by it: that was seen already
            words = f"{event} {arguments[0]!r}" if arguments else event
            if words not in self.seen:
                self.seen.append(words[:200])


def _importing() -> bool:
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def load(home: str, file: str, variable: str, of_class: str) -> Any:
    """Import a plugin by its module, or by its file if that is no module of this path."""
    try:
        known = importlib.util.find_spec(home)
    except (ImportError, ValueError):
        known = None
    if known is not None:
        module = importlib.import_module(home)
    else:
        spec = importlib.util.spec_from_file_location(home, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[home] = module
        spec.loader.exec_module(module)
    found = getattr(module, variable, None)
    if type(found).__name__ != of_class:
        found = getattr(module, of_class)()
    return found


def _main(question: Path, answer: Path) -> None:
    request: Mapping[str, Any] = pickle.loads(question.read_bytes())
    sys.path[:] = request["path"]
    importlib.import_module("benchctl.api")
    watch = Watch()
    before = set(sys.modules)
    watch.over(*_STARTS, *_TALKS)
    begun_s = time.perf_counter()
    backend = load(request["home"], request["file"], request["variable"], request["class"])
    report: dict[str, Any] = {
        "took_s": time.perf_counter() - begun_s,
        "modules": sorted(set(sys.modules) - before),
        "ran": [*watch.seen, *(f"thread {thread.name}" for thread in threading.enumerate()[1:])],
    }
    answer.write_bytes(pickle.dumps(report))
    if request["variable"] != "BACKEND":
        return
    from benchctl.testing.rules.commands import declared

    cases = pickle.loads(request["cases"])
    watch.over(*_STARTS, *_TALKS, *_LOOKS, *_CHANGES)
    report["declared"] = [declared(backend, case) for case in cases]
    report["reached"] = watch.seen
    watch.over()
    answer.write_bytes(pickle.dumps(report))
    report["probes"] = _probed(backend)
    answer.write_bytes(pickle.dumps(report))


def _probed(backend: Any) -> Mapping[str, Any]:
    """Look for the programs of both ends where there is no program at all."""
    from benchctl.api import Role
    from benchctl.backends import Registry
    from benchctl.engine.checks.tools import look
    from benchctl.plugins import Candidate

    os.environ["PATH"] = ""
    registry = Registry({backend.name: Candidate(backend.name, "", lambda: backend)})
    tools = look(registry, [(backend.name, role) for role in Role])
    return {str(role): tool for (_, role), tool in tools.items()}


if __name__ == "__main__":
    _main(*map(Path, sys.argv[1:]))
