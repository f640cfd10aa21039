"""Writes a stand-alone tool as one file that needs nothing but Python.

The file holds the text of each module of the tool, and of each that it imports from here, creates
the modules in the order of their imports, and runs the tool's `cli.main`. Modules import each other
by ``from .module import name`` or ``from ..package.module import name``. A bundle can print itself
again.
"""

from __future__ import annotations

import re
import sys

_SHARED = __package__
_OLDEST = "oldest"
"""The module that an older Python reads, too: its text is the first of such a file."""
_IMPORT = re.compile(rf"^from (?:(\.+)|{_SHARED}\.?)([\w.]*) import", re.MULTILINE)

_HEAD = '''\
#!/usr/bin/env python3
"""{about}

Python's -I keeps modules of the present directory from being taken for the standard library's.

Made by `{tool} --self` from the modules of the packages; each is below as it is there.
"""

{oldest}
if TOO_OLD:
    sys.exit("{tool} " + TOO_OLD)

# Python puts the present directory, or that of this file, first. Nothing of ours is there.
if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    del sys.path[:1]

import types

SOURCES = {{}}
'''
_TAIL = """
for name, source in SOURCES.items():
    package, _, leaf = name.rpartition(".")
    module = types.ModuleType(name)
    module.SOURCES = SOURCES
    if any(other.startswith(name + ".") for other in SOURCES):
        module.__path__ = []
        module.__package__ = name
    else:
        module.__package__ = package
    sys.modules[name] = module
    exec(compile(source, name.replace(".", "/") + ".py", "exec"), module.__dict__)
    if package:
        setattr(sys.modules[package], leaf, module)

if __name__ == "__main__":
    sys.exit(sys.modules["{tool}.cli"].main())
"""


def program_text(package: str, about: str) -> str:
    """Return the text of the file of the tool in a package; ``about`` says what it is."""
    tool = package.rpartition(".")[2]
    parts = [_HEAD.format(tool=tool, about=about, oldest=_text_of(_SHARED, _OLDEST))]
    sources: dict[str, str] = {}
    _collect(sources, _SHARED, _SHARED, _OLDEST)
    for module in _modules_of(package):
        _collect(sources, tool, package, module)
    for name, text in sources.items():
        quoted = repr(text) if "'''" in text else f"r'''{text}'''"
        parts.append(f"\nSOURCES[{name!r}] = {quoted}\n")
    return "".join((*parts, _TAIL.replace("{tool}", tool)))


def _collect(sources: dict[str, str], tool: str, package: str, module: str) -> None:
    """Add a module, "" for the package itself, after its packages and what it imports."""
    name = ".".join(filter(None, (tool, module)))
    if name in sources:
        return
    if module:
        _collect(sources, tool, package, module.rpartition(".")[0])
    text = _text_of(package, module)
    for dots, imported in _IMPORT.findall(text):
        if not dots:
            _collect(sources, _SHARED, _SHARED, imported)
        else:
            room = module.split(".")[: -len(dots)]
            _collect(sources, tool, package, ".".join(filter(None, (*room, imported))))
    sources[name] = text


def _modules_of(package: str) -> list[str]:
    """Return the names of a package's modules, sorted."""
    bundled: dict[str, str] | None = getattr(sys.modules[package], "SOURCES", None)
    if bundled is not None:
        prefix = package + "."
        return sorted(name[len(prefix) :] for name in bundled if name.startswith(prefix))
    import os  # Only a package on disk has files.

    root = sys.modules[package].__path__[0]
    return sorted(
        os.path.relpath(os.path.join(folder, name[:-3]), root).replace(os.sep, ".")
        for folder, _, files in os.walk(root)
        for name in files
        if name.endswith(".py") and name not in ("__init__.py", "__main__.py")
    )


def _text_of(package: str, module: str) -> str:
    """Return a module's text, from its file, or from the running bundle."""
    bundled: dict[str, str] | None = getattr(sys.modules[package], "SOURCES", None)
    if bundled is not None:
        return bundled[".".join(filter(None, (package, module)))]
    import os

    path = os.path.join(sys.modules[package].__path__[0], *module.split("."))
    path = os.path.join(path, "__init__.py") if os.path.isdir(path) else path + ".py"
    with open(path, encoding="utf-8") as file:
        return file.read()
