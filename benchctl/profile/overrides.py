"""Values from the command line, ``--set key=value``, applied to the profile.

A key names, in this order: an axis, whose values it replaces; a key of the file, such as
``run.repeats`` or ``flows.main.window``; or a target as on an axis: a parameter of every flow that
has it (``duration``), of one flow (``main.window``), a setting of the lab
(``lab.links.core.loss``), or the choice of ``flows``.

A value is read as TOML, or as plain text if it is not TOML, so that ``duration=5s`` needs no nested
quotes. For an axis, commas separate values: ``streams=1,2,4``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchctl.errors import ProfileError, UsageError
from benchctl.profile.model import LabTable, Profile, pairs
from benchctl.profile.values import as_text, check_setting
from benchctl.run.planned import Scalar
from benchctl.toml.source import Key, TomlSource, dotted, merge


@dataclass(frozen=True, slots=True)
class Overrides(TomlSource):
    """The ``--set`` values, as a source that takes precedence over every file.

    ``data`` is the whole profile with the values applied; ``targets`` are the values that name no
    key of the file.
    """

    targets: Mapping[Key, Any] = field(default_factory=dict)

    def error(self, key: Key, what: str, hint: str = "") -> ProfileError:
        return ProfileError(f"--set {dotted(key)}: {what}", hint)


def read_overrides(texts: Sequence[str], data: dict[str, Any]) -> Overrides:
    """Apply ``--set`` texts to a profile's data. Raises UsageError."""
    targets: dict[Key, Any] = {}
    lines: dict[Key, int] = {}
    for text in texts:
        name, equals, written = text.partition("=")
        key = _read_key(name)
        if not equals or not all(key):
            raise UsageError(
                f"--set {as_text(text)}: expected KEY=VALUE", "for example: --set duration=5s"
            )
        value = read_value(written)
        if axis := _axis_named(key, data):
            key = ("axes", axis)
            value = _axis_values(written, value, _table(data.get("axes")).get(axis))
        elif _is_target(key):
            try:
                check_setting(value)
            except ValueError as error:
                raise UsageError(f"--set {as_text(text)}: {error}") from None
            targets[key] = value
            lines[key] = 1
            continue
        lines.update(dict.fromkeys(_new_keys(key, data, text), 1))
        for part in reversed(key):
            value = {part: value}
        data = merge(data, value)
    return Overrides(Path("--set"), "\n".join(texts), data, lines, targets=targets)


def _read_key(name: str) -> tuple[str, ...]:
    try:
        node: Any = tomllib.loads(f"{name} = 0")
    except ValueError:
        node = {}
    if not node:  # no TOML, or a comment
        return tuple(part.strip() for part in name.split("."))
    parts = []
    while isinstance(node, dict):
        part, node = next(iter(node.items()))
        parts.append(part)
    return tuple(parts)


def read_value(text: str) -> Any:
    """Return the value of a text: as TOML, or the text itself if it is not TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text.strip()


def _axis_named(key: tuple[str, ...], data: Mapping[str, Any]) -> str:
    """Return the name of the axis that a key names, or an empty text."""
    if key[0] == "axes" and len(key) == 2:
        return key[1]
    name = ".".join(key)
    groups = data.get("zip")
    if any(name in _table(group) for group in (groups if isinstance(groups, list) else [])):
        raise UsageError(
            f"--set {as_text(name)}: this axis is part of a [[zip]]",
            "choose values with --only",
        )
    return name if name in _table(data.get("axes")) else ""


def _axis_values(written: str, value: Any, old: Any) -> Any:
    """Return the new form of an axis: its ``sets`` stay, and known labels keep their values."""
    if isinstance(value, str):
        value = [read_value(part) for part in written.split(",")]
    elif not isinstance(value, list):
        value = [value]
    values = old.get("values") if isinstance(old, dict) else old
    is_mesh = isinstance(old, dict) and isinstance(old.get("mesh"), list)
    if is_mesh:
        values = pairs([name for name in old["mesh"] if isinstance(name, str)])
    labels = (
        [(_table(value).get("label"), value) for value in values]
        if isinstance(values, list)
        else []
    )
    labelled = {
        as_text(label): known_value for label, known_value in labels if isinstance(label, Scalar)
    }
    value = [labelled.get(as_text(v), v) if isinstance(v, Scalar) else v for v in value]
    return {"values": value} if isinstance(old, dict) and not is_mesh else value


def _table(value: Any) -> Mapping[str, Any]:
    """Return what should be a table; an empty one if the profile has something else."""
    return value if isinstance(value, dict) else {}


def _is_target(key: tuple[str, ...]) -> bool:
    if key[0] == "lab" and len(key) > 1:
        return key[1] not in LabTable.model_fields
    return key == ("flows",) or key[0] not in Profile.model_fields


def _new_keys(key: tuple[str, ...], data: Mapping[str, Any], text: str) -> list[Key]:
    """Return the keys that a setting writes: its own, and the tables that it makes."""
    if key == ("extends",):
        raise UsageError(f"--set {as_text(text)}: extends can only be set in the file")
    node: Any = data
    new: list[Key] = [key]
    for length, part in enumerate(key[:-1], 1):
        node = node.get(part)
        if node is None:
            return [*new, *(key[:end] for end in range(length, len(key)))]
        if not isinstance(node, dict):
            raise UsageError(f"--set {as_text(text)}: {dotted(key[:length])} is not a table")
    return new
