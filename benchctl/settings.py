"""What a person prefers on this machine: ``settings.toml``, the environment, or the default.

::

    store = "~/measurements/runs.sqlite"
    units = "bytes"            # bits or bytes, si or iec; "bytes,iec" for both
    log = "~/benchctl.log"     # every command line, as with --log; JSON lines with log_json = true
    notify = "bell"            # at the end of a run of a minute or more; or a command
    tags = ["lab2"]            # of new runs, unless others are given
    archive = "postgresql://bench@db/benchctl"  # without its password
    push = true                # each run to the archive when it has ended
    theme = "nord"             # of the screens, as glyphs and keys are
    glyphs = "blocks"          # braille, blocks, console or ascii

    [programs]                 # where a tool is, if it is not in the PATH
    iperf3 = "/opt/iperf3/bin/iperf3"

    [keys]                     # "benchctl help tui" lists the names
    "live.freeze" = "f1"

The file is in the user's configuration directory, or where ``BENCHCTL_SETTINGS`` says. An option of
a command takes precedence over the environment, and that over the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import platformdirs

from benchctl.errors import ProfileError, UsageError, nearest
from benchctl.units import parse_display

if TYPE_CHECKING:
    from benchctl.toml.source import Key, TomlSource

FILE_VARIABLE = "BENCHCTL_SETTINGS"
LOG_VARIABLE, JSON_LOG_VARIABLE = "BENCHCTL_LOG", "BENCHCTL_LOG_JSON"


class Setting(NamedTuple):
    """A value, and where it comes from: a variable, a line of the file, or "default"."""

    value: Any
    origin: str


class _Known(NamedTuple):
    """A setting: how its value is read (raises ValueError), its default, its variable."""

    read: Callable[[Any], Any]
    default: Callable[[], Any]
    variable: str = ""
    of_text: Callable[[str], Any] = Path


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("is not a string")
    return value


def _path(value: Any) -> Path:
    path = Path(_text(value)).expanduser()
    if not path.is_absolute():  # another file in every directory, maybe a stranger's
        raise ValueError("is not an absolute path")
    return path


def _units(value: Any) -> str:
    parse_display(_text(value))
    return str(value)


def without_password(url: str) -> str:
    """Return the URL of a database, or the words that libpq takes, without a password."""
    url = re.sub(r"(://[^/?#@:]*:)[^/?#]*(?=@)", r"\1***", url)
    return re.sub(r"(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&]*)", r"\1***", url)


def _url(value: Any) -> str:
    if without_password(_text(value)) != value:
        raise ValueError("has a password: write that to ~/.pgpass, which only you may read")
    return str(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is neither true nor false")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("is not a list of strings")
    return tuple(map(_text, value))


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("is not a table")
    return value


def _paths(value: Any) -> Mapping[str, str]:
    return {name: str(_path(path)) for name, path in _table(value).items()}


_KNOWN = {
    "store": _Known(
        _path, lambda: platformdirs.user_data_path("benchctl") / "runs.sqlite", "BENCHCTL_STORE"
    ),
    "units": _Known(_units, str),
    "log": _Known(_path, lambda: None, LOG_VARIABLE),
    "log_json": _Known(_flag, bool, JSON_LOG_VARIABLE, lambda text: text != "0"),
    "notify": _Known(_text, lambda: None),
    "tags": _Known(_texts, tuple),
    "archive": _Known(_url, lambda: None, "BENCHCTL_ARCHIVE", str),
    "push": _Known(_flag, bool, "BENCHCTL_PUSH", lambda text: text != "0"),
    "theme": _Known(_text, lambda: None),
    "glyphs": _Known(_text, lambda: None),
    "programs": _Known(_paths, dict),
    "keys": _Known(_table, dict),
}
NAMES = tuple(_KNOWN)


class UserSettings:
    """The settings of one file, beside those of the environment."""

    def __init__(self, path: Path) -> None:
        """Read a file; a missing one is empty. Raises ProfileError with file and line.

        So is one in a folder that is closed to this user, as root's is if HOME stayed root's.
        """
        self.path = path
        self._source: TomlSource | None = None
        if not os.path.exists(path):  # noqa: PTH110
            return
        from benchctl.toml.source import read_toml

        self._source = read_toml(path)
        for name in self._source.data:
            if name not in _KNOWN:
                raise self.error((name,), "unknown key", nearest(name, _KNOWN))
            self._of_file(name)

    def find(self, name: str) -> Setting:
        """Return a setting and where it comes from."""
        known = _KNOWN[name]
        if text := os.environ.get(known.variable):
            return Setting(known.of_text(text), known.variable)
        if self._source is not None and name in self._source.data:
            return Setting(self._of_file(name), f"{self.path}:{self._source.line((name,))}")
        return Setting(known.default(), "default")

    def __getitem__(self, name: str) -> Any:
        return self.find(name).value

    def line(self, name: str) -> int | None:
        """Return the line that sets a setting; None if the file does not."""
        source = self._source
        return source.line((name,)) if source is not None and name in source.data else None

    def error(self, key: Key, what: str, hint: str = "") -> ProfileError:
        """Return the error of a value in the file."""
        assert self._source is not None, "a default is never wrong"
        return self._source.error(key, what, hint)

    def _of_file(self, name: str) -> Any:
        assert self._source is not None
        try:
            return _KNOWN[name].read(self._source.data[name])
        except ValueError as error:
            raise self.error((name,), str(error)) from None


def remember(name: str, value: str) -> None:
    """Write a setting into the user's file, whose other lines stay.

    Raises ProfileError, OSError.
    """
    before = settings()
    path = before.path
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    written = f"{name} = {json.dumps(value)}"
    place = before.line(name)
    if place is None:
        lines.insert(0, written)  # Behind a table it would be a key of that.
    else:
        lines[place - 1] = written
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text("\n".join([*lines, ""]), "utf-8")
    new.replace(path.resolve())


def settings() -> UserSettings:
    """Return the settings of this user. Raises ProfileError if the file is wrong."""
    named = os.environ.get(FILE_VARIABLE)
    path = Path(named) if named else platformdirs.user_config_path("benchctl") / "settings.toml"
    if named and not path.exists():
        raise UsageError(f"{FILE_VARIABLE}: {path}: no such file")
    return UserSettings(path)
