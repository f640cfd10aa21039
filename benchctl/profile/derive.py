"""A new profile that differs from another by some values: as text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchctl.errors import UsageError
from benchctl.profile.find import NO_LAB, shipped_profiles, shipped_topologies
from benchctl.profile.load import Document
from benchctl.toml.source import Key, dotted

# A value that names a file, in the lines of a profile that are not comments.
_NAMED_FILE = re.compile(
    r'^(?P<key>[^#\n]*\b(?:extends|topology)\s*=\s*)"(?P<name>[^"\\\n]+)"', re.MULTILINE
)


def derived_profile(document: Document, base: str, *, lab: bool = True) -> str:
    """Return a profile that extends the one at ``base`` by the ``--set`` values of its document.

    Without ``lab``, that of the base is left out. Raises UsageError for a value that a profile has
    no place for.
    """
    data = document.overrides.data
    written: dict[Key, Any] = {}
    for key in document.overrides.lines:
        if key[0] == "axes":
            written[key[:2]] = _at(data, key[:2])
        elif key not in document.overrides.targets and not isinstance(_at(data, key), dict):
            written[key] = _at(data, key)
    for key, value in document.overrides.targets.items():
        if len(key) == 1 and key != ("flows",):
            flows = document.model.flows.items()
            own = [name for name, flow in flows if key[0] in (flow.model_extra or {})]
            written |= {("flows", name, *key): value for name in own}
            if len(own) < len(flows):
                written["defaults", *key] = value
        elif key[0] in document.model.flows:
            written["flows", *key] = value
        else:
            raise UsageError(
                f"a profile has no place for {dotted(key)}={value}", "choose it when you run"
            )
    if not lab:
        written["lab", "topology"] = NO_LAB
    lines = [f"{dotted(key)} = {_toml(value)}" for key, value in written.items()]
    title = f"{document.model.title or document.name}, changed"
    return "\n".join([f"title = {_toml(title)}", f"extends = {_toml(base)}", *lines, ""])


def copied_profile(path: Path) -> str:
    """Return the text of a profile for a file elsewhere: it finds there what it names.

    Raises OSError.
    """

    def found(named: re.Match[str]) -> str:
        file = path.parent / named["name"]
        if not file.is_file():
            return named[0]
        return f"{named['key']}{json.dumps(lasting_name(file), ensure_ascii=False)}"

    return _NAMED_FILE.sub(found, path.read_text(encoding="utf-8"))


def lasting_name(file: Path) -> str:
    """Return the name of a profile or topology that comes with benchctl; of others, the whole path.

    A path of these would end with the next version of benchctl.
    """
    file = file.resolve()
    shipped = shipped_profiles() | shipped_topologies()
    return next((name for name, each in shipped.items() if each.resolve() == file), str(file))


def _at(data: Mapping[str, Any], key: Key) -> Any:
    node: Any = data
    for part in key:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _toml(value: Any) -> str:
    """Return a value as TOML: JSON's texts, numbers and lists are those of TOML."""
    if isinstance(value, dict):
        inside = (f"{dotted((name,))} = {_toml(item)}" for name, item in value.items())
        return f"{{ {', '.join(inside)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)
