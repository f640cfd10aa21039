"""What ``benchctl --version --verbose`` says: Python, the system, and the extras that are there."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

_OF_DEVELOPERS = ("build", "dev", "release")
_EXTRA = re.compile(r"([A-Za-z0-9._-]+).*extra == ['\"]([a-z]+)['\"]")


def version_lines() -> Iterator[str]:
    """Yield a line for Python and the system, and one for each extra with its packages."""
    yield f"Python {platform.python_version()}, {platform.system()} {platform.release()}"
    yield f"in {sys.prefix}"
    extras: dict[str, list[str]] = {}
    for requirement in requires("benchctl") or ():
        found = _EXTRA.match(requirement)
        if found and found[2] not in _OF_DEVELOPERS:
            extras.setdefault(found[2], []).append(found[1])
    for extra, packages in extras.items():
        yield f"{extra}: {', '.join(map(_known, packages))}"


def _known(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} is not installed"
