"""What ``benchctl backends new`` writes: a whole backend, as a package or as one file.

The templates are in ``template/``; ``${name}`` is the backend's name, ``${Name}`` its classes'.
"""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from string import Template

_TEMPLATES = Path(__file__).with_name("template")
# A file name holds 255 bytes, and the longest here is more than twice the name.
_LONGEST = 64


def check_name(name: str) -> None:
    """Raise ValueError with the reason if no backend, or no Python module, can have a name."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError("a name has lower-case letters, digits and _, and begins with a letter")
    if len(name) > _LONGEST:
        raise ValueError(f"a name has at most {_LONGEST} characters")
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        raise ValueError("Python has a module or keyword of this name")


def single_file(name: str) -> dict[str, str]:
    """Return the backend alone, by file name."""
    return {f"{name}.py": _filled("backend.py", name)}


def package(name: str) -> dict[str, str]:
    """Return a package of it, with its tests, by path in the package's own directory."""
    module = f"benchctl_{name}"
    return {
        "pyproject.toml": _filled("pyproject.toml", name),
        "README.md": _filled("README.md", name),
        f"{name}.toml": _filled("profile.toml", name),
        f"{module}/__init__.py": _filled("init.py", name),
        f"{module}/{name}.py": _filled("backend.py", name),
        f"tests/test_{name}.py": _filled("test.py", name),
        **{
            f"tests/transcripts/{path.stem}": _filled(f"transcripts/{path.stem}", name)
            for path in sorted((_TEMPLATES / "transcripts").iterdir())
        },
    }


def _filled(template: str, name: str) -> str:
    text = (_TEMPLATES / f"{template}.in").read_text(encoding="utf-8")
    title = "".join(word.capitalize() for word in name.split("_"))
    return Template(text).substitute(name=name, Name=title)
