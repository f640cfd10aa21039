"""Writes the whole tool as one file that needs nothing but Python.

The file holds the text of each module, creates the modules in the order of their imports, and runs
`main`. A bundle can print itself again.
"""

from __future__ import annotations

import re
import sys

_LEFT_OUT = ("__main__",)
_IMPORT = re.compile(r"^from \.(\w*) import (\w+)", re.MULTILINE)

_HEAD = '''\
#!/usr/bin/env python3
"""simpleperf {version}: measures what a network carries. One file, nothing but Python 3.9 or newer.

    python3 -I simpleperf.py -s -b 0.0.0.0                the server; without -b for this host only
    python3 -I simpleperf.py -c -I SERVER                 the client
    ssh HOST python3 -I - -s -b 0.0.0.0 < simpleperf.py   a server on a host that has only Python

Python's -I keeps modules of the present directory from being taken for the standard library's.

Made by `simpleperf --self` from the modules of the package; each is below as it is there.
"""

import sys

# Python puts the present directory, or that of this file, first. Nothing of ours is there.
if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[:1]

import types

SOURCES = {{}}
'''
_TAIL = """
package = types.ModuleType("simpleperf")
package.__path__ = []
package.SOURCES = SOURCES
sys.modules["simpleperf"] = package
for name, source in SOURCES.items():
    module = package
    if name != "__init__":
        module = types.ModuleType("simpleperf." + name)
        module.__package__ = "simpleperf"
        sys.modules[module.__name__] = module
    exec(compile(source, f"simpleperf/{name}.py", "exec"), module.__dict__)
    setattr(package, name, module)

if __name__ == "__main__":
    sys.exit(sys.modules["simpleperf.cli"].main())
"""


def program_text() -> str:
    """Return the text of the file."""
    sources = _sources()
    parts = [_HEAD.format(version=sys.modules[__package__].__version__)]
    for name in _in_order(sources):
        if "'''" in sources[name]:
            parts.append(f"\nSOURCES[{name!r}] = {sources[name]!r}\n")
        else:
            parts.append(f"\nSOURCES[{name!r}] = r'''{sources[name]}'''\n")
    return "".join((*parts, _TAIL))


def _sources() -> dict[str, str]:
    """Return the modules' texts, from the files, or from the running bundle."""
    package = sys.modules[__package__]
    bundled: dict[str, str] | None = getattr(package, "SOURCES", None)
    if bundled is not None:
        return bundled
    import os  # Only a package on disk has files.

    folder = package.__path__[0]
    names = [name[:-3] for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    found = {}
    for name in names:
        if name not in _LEFT_OUT:
            with open(os.path.join(folder, name + ".py"), encoding="utf-8") as file:
                found[name] = file.read()
    return found


def _in_order(sources: dict[str, str]) -> list[str]:
    """Return the modules' names, each after those that it imports."""
    ordered: list[str] = []

    def add(name: str) -> None:
        if name not in ordered:
            for module, _ in _IMPORT.findall(sources[name]):
                add(module or "__init__")
            ordered.append(name)

    add("__init__")
    for name in sources:
        add(name)
    return ordered
