"""From a name on the command line to a validated profile.

Finds the file, follows ``extends``, applies ``--set`` values, and validates. The result keeps every
source, so that later errors (an axis that sets nothing, an invalid parameter) still name file, line
and key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from benchctl.errors import ProfileError, nearest
from benchctl.profile.find import NO_LAB, find_profile, is_file, shipped_profiles, shortened
from benchctl.profile.model import Profile
from benchctl.profile.overrides import Overrides, read_overrides
from benchctl.toml.source import Key, TomlSource, merge, read_stdin, read_toml
from benchctl.toml.table import as_written, explain, names_in
from benchctl.units import quoted


@dataclass(frozen=True, slots=True)
class Document:
    """A validated profile and where each of its keys was written.

    ``sources`` are the profile and its bases, in this order; ``overrides`` are the ``--set``
    values, ``options`` the other options that decide what is measured.
    """

    model: Profile
    sources: tuple[TomlSource, ...]
    overrides: Overrides
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The profile's short name: that of its file without the extension."""
        return self.sources[0].path.stem

    @property
    def text(self) -> str:
        """The text of all files, the profile's own first, and the options of the command line."""
        files = [f"# {source.path.name}\n{source.text}" for source in self.sources]
        sets = (f"--set {line}" for line in self.overrides.text.splitlines())
        return "\n".join([*files, *(f"# {option}" for option in (*sets, *self.options))])

    @property
    def topology(self) -> Path | None:
        """The lab's topology file; its path is relative to the file that names it."""
        if self.model.lab is None:
            return None
        source = _locate(self.overrides, self.sources, ("lab", "topology"))
        return source.path.parent / self.model.lab.topology

    def source_of(self, key: Key) -> TomlSource:
        """Return the file that writes a key, or the ``--set`` values."""
        return _locate(self.overrides, self.sources, key)

    def error(self, key: Key, what: str, hint: str = "") -> ProfileError:
        """Return the error of one key, with the file and line that wrote it."""
        if key not in self.overrides.targets:
            key = as_written(self.overrides.data, key)
        return _locate(self.overrides, self.sources, key).error(key, what, hint)


Profiles = str | TomlSource | tuple[TomlSource, ...]
"""A profile by its name, as it was read, or together with all that it extends, in this order."""


def load_profile(name: Profiles, assignments: Sequence[str] = (), *, lab: bool = True) -> Document:
    """Read, merge and validate a profile: a file, one that comes with benchctl, ``-`` for stdin.

    ``assignments`` are the ``--set`` texts, ``key=value``. Without ``lab``, that of the profile is
    left out, and so are axes of its values. Raises ProfileError or UsageError.
    """
    sources = name if isinstance(name, tuple) else _with_bases(_source(name))
    data: dict[str, Any] = {}
    for source in reversed(sources):
        data = merge(data, source.data)
    if not lab or _at_lab(data) == NO_LAB:
        data.pop("lab", None)
        axes = data.get("axes")
        if isinstance(axes, dict):
            data = {
                **data,
                "axes": {name: axis for name, axis in axes.items() if not _is_labs(axis)},
            }
    overrides = read_overrides(assignments, data)
    try:
        model = Profile.model_validate(overrides.data)
    except ValidationError as error:
        key, what, hint = explain(error, overrides.data, partial(names_in, Profile))
        flows = overrides.data.get("flows")
        owners = {"lab", *(flows if isinstance(flows, dict) else ())}
        if key[:1] in [("axes",), ("zip",)] and owners.intersection(key[1:-1]):
            hint = 'put a name with dots in quotes, as in "main.window" = […]'
        raise _locate(overrides, sources, key).error(key, what, hint) from None
    return Document(model, tuple(sources), overrides)


def _is_labs(axis: object) -> bool:
    """Return whether an axis sets a value of the lab, and so means nothing without one."""
    sets = axis.get("sets") if isinstance(axis, dict) else None
    return isinstance(sets, str) and sets.startswith("lab.")


def _at_lab(data: Mapping[str, Any]) -> object:
    """Return the topology that data name, if they do."""
    lab = data.get("lab")
    return lab.get("topology") if isinstance(lab, dict) else None


def _locate(overrides: Overrides, sources: Sequence[TomlSource], key: Key) -> TomlSource:
    """Return the overrides if they write the key or what contains it.

    Else the first of the sources that writes the key, or its nearest ancestor.
    """
    if any(key[:length] in overrides.lines for length in range(1, len(key) + 1)):
        return overrides
    while key:
        for source in sources:
            if key in source.lines:
                return source
        key = key[:-1]
    return sources[0]


def _source(name: str | TomlSource) -> TomlSource:
    if isinstance(name, TomlSource):
        return name
    return read_stdin() if name == "-" else read_toml(find_profile(name))


def _with_bases(source: TomlSource) -> list[TomlSource]:
    sources: list[TomlSource] = []
    while True:
        sources.append(source)
        base = source.data.get("extends")
        if base is None:
            return sources
        if not isinstance(base, str):
            raise source.error(("extends",), "must be the path or the name of a profile, in quotes")
        path = source.path.parent / base
        if not is_file(path):
            known = shipped_profiles()
            if base not in known:
                what = f"no file {quoted(base)} beside this profile"
                raise source.error(("extends",), what, nearest(base, known))
            path = known[base]
        if any(path.resolve() == seen.path.resolve() for seen in sources):
            raise source.error(
                ("extends",), f"{quoted(base)} extends this profile: the two form a cycle"
            )
        source = read_toml(shortened(path))
