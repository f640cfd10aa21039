"""From a name on the command line to a validated profile.

Finds the file, follows ``extends``, lays ``--set`` values on top, and validates. The result keeps
every source, so that later errors (an axis over nothing, a wrong parameter) still name file, line
and key.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from benchctl.errors import ProfileError, UsageError
from benchctl.profile.model import FlowTable, Profile
from benchctl.profile.source import Key, Source, dotted, read_toml

PACKAGE = Path(__file__).resolve().parent.parent
TABLES = tuple(Profile.model_fields)


@dataclass(frozen=True, slots=True)
class Document:
    """A validated profile and where each of its keys was written.

    ``sources`` goes from the profile itself to its last base. ``assigned`` holds the ``--set``
    values that name a parameter and not a key of the file; the plan applies them to flows.
    """

    model: Profile
    sources: tuple[Source, ...]
    assigned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The profile's short name: its file's, without the ending."""
        return self.sources[0].path.stem

    @property
    def text(self) -> str:
        """The text of all files, the profile's own first."""
        return "\n".join(f"# {source.path.name}\n{source.text}" for source in self.sources)

    @property
    def sha256(self) -> str:
        """Hash of `text`, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def error(self, key: Key, what: str, hint: str = "") -> ProfileError:
        """Return the error of one key, at the file and line that wrote it."""
        return _locate(self.sources, key).error(key, what, hint)


def packaged_profiles() -> Path:
    """Return the directory of the profiles that come with benchctl."""
    installed = PACKAGE / "profiles"
    return installed if installed.is_dir() else PACKAGE.parent / "profiles"


def find_profile(name: str) -> Path:
    """Return the path of a profile: a file, or the name of one that comes with benchctl.

    Raises ProfileError with the nearest known name.
    """
    path = Path(name)
    if path.is_file():
        return path
    root = packaged_profiles()
    known = {
        str(file.relative_to(root).with_suffix("")): file
        for file in sorted(root.rglob("*.toml"))
        if "labs" not in file.relative_to(root).parts
    }
    bare = name.removesuffix(".toml").removeprefix("profiles/")
    if bare in known:
        return known[bare]
    raise ProfileError(
        f"{name}: no such profile, neither a file nor one that comes with benchctl",
        nearest(bare, known) or f"there are {', '.join(known)}",
    )


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the known name nearest to a wrong one, or an empty text."""
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f'did you mean "{match[0]}"?' if match else ""


def load_profile(name: str, assignments: Sequence[str] = ()) -> Document:
    """Read, merge and validate a profile.

    ``assignments`` are the ``--set`` texts, ``key=value``. Raises ProfileError or UsageError.
    """
    sources = _with_bases(find_profile(name))
    data: dict[str, Any] = {}
    for source in reversed(sources):
        data = _merge(data, source.data)
    assigned: dict[str, Any] = {}
    for text in assignments:
        key, value = _read_assignment(text)
        if not _assign(data, key, value):
            assigned[dotted(key)] = value
    try:
        model = Profile.model_validate(data)
    except ValidationError as error:
        raise _explain(error, sources) from None
    return Document(model, tuple(sources), assigned)


def explain_first(error: ValidationError, known: Iterable[str]) -> tuple[Key, str, str]:
    """Turn pydantic's first error into key, message and hint; ``known`` are the right names."""
    first = error.errors(include_url=False)[0]
    key = tuple(part for part in first["loc"] if not _is_union_tag(part))
    if first["type"] == "extra_forbidden":
        names = list(known)
        hint = nearest(str(key[-1]), names) or f"known here: {', '.join(names)}"
        return key, "unknown key", hint
    if first["type"] == "missing":
        return key, "is missing", ""
    message = first["msg"].removeprefix("Value error, ")
    more = error.error_count() - 1
    return key, message[0].lower() + message[1:], f"and {more} more after this" if more else ""


def _is_union_tag(part: str | int) -> bool:
    # pydantic names the branch of a union it tried: "list[...]", "Axis", "str", "function-...".
    return isinstance(part, str) and (
        part in ("Axis", "str", "int", "float", "bool") or "[" in part
    )


def _explain(error: ValidationError, sources: Sequence[Source]) -> ProfileError:
    key, what, hint = explain_first(error, _known_at(Profile, error.errors()[0]["loc"][:-1]))
    return _locate(sources, key).error(key, what, hint)


def _known_at(model: type[BaseModel], key: Sequence[str | int]) -> list[str]:
    """Return the names that the table at ``key`` may hold."""
    for position, part in enumerate(key):
        if isinstance(part, str) and part in model.model_fields:
            inner = _model_in(model.model_fields[part].annotation)
            if inner is not None:
                return _known_at(inner, key[position + 1 :])
    return [info.alias or name for name, info in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = [model for arg in get_args(annotation) if (model := _model_in(arg))]
    return found[0] if found else None


def _locate(sources: Sequence[Source], key: Key) -> Source:
    """Return the first source that writes the key, or its nearest ancestor."""
    while key:
        for source in sources:
            if key in source.lines:
                return source
        key = key[:-1]
    return sources[0]


def _with_bases(path: Path) -> list[Source]:
    sources: list[Source] = []
    while True:
        source = read_toml(path)
        sources.append(source)
        base = source.data.get("extends")
        if base is None:
            return sources
        if not isinstance(base, str):
            raise source.error(("extends",), "must be the name of a profile, in quotes")
        path = source.path.parent / base
        if not path.is_file():
            raise source.error(("extends",), f'no file "{base}" beside this profile')
        if any(path.resolve() == seen.path.resolve() for seen in sources):
            raise source.error(("extends",), f'"{base}" extends this profile in turn')


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one table over another: tables merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _merge(old, value)
        merged[key] = value
    return merged


def _read_assignment(text: str) -> tuple[Key, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"--set {text}: not of the form key=value", "as in --set duration=5s")
    parts = tuple(part.strip() for part in name.split("."))
    try:
        return parts, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return parts, value.strip()


def _assign(data: dict[str, Any], key: Key, value: Any) -> bool:
    """Put a value where a key of the file names it; False when it names a parameter instead."""
    axes = data.get("axes", {})
    name = dotted(key)
    if isinstance(axes, dict) and name in axes:
        values = value if isinstance(value, list) else [value]
        long_form = isinstance(axes[name], dict)
        data["axes"] = {**axes, name: {**axes[name], "values": values} if long_form else values}
        return True
    if key[0] not in TABLES or (len(key) == 1 and key[0] in FlowTable.model_fields):
        return False
    table: dict[str, Any] = data
    for part in key[:-1]:
        inner = table.get(str(part))
        table[str(part)] = inner = dict(inner) if isinstance(inner, dict) else {}
        table = inner
    table[str(key[-1])] = value
    return True
