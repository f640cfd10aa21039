"""Man pages, made from the help of the commands; man-pages(7) has their conventions.

The pages in ``man/`` are these, as roff. A test compares them, and the wheel installs them.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill, indent
from typing import Any, NamedTuple

from benchctl import __version__
from benchctl.cli.shared.command import name_formats

# As wide as man shows a page where it does not know the terminal.
WIDTH = 78
Item = tuple[str, str]
"""A term, such as an option, and what it means."""

EXIT_STATUS: tuple[Item, ...] = (
    ("0", "Done."),
    ("1", "Done, but a trial failed or an expectation was not met."),
    ("2", "The command line, a profile or a setting is wrong; nothing was run."),
    ("3", "A required tool, peer or plugin is missing."),
    ("4", "The store or a result cannot be read or written, or benchctl has a fault."),
    ("130, 143", "Interrupted, terminated; what was measured is kept."),
)
KEYS = 'A key has a name. The table "keys" of settings.toml gives it other keys.'
FILES: tuple[Item, ...] = (
    ("~/.config/benchctl/settings.toml", 'Settings; "benchctl settings" shows them.'),
    ("~/.local/share/benchctl/runs.sqlite", "The store of all runs."),
)


class Section(NamedTuple):
    """A part of a page: a heading, paragraphs, and a list of terms."""

    title: str
    texts: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()


class ManPage(NamedTuple):
    """A page of section 1: a name such as ``benchctl-run``, a line about it, its parts."""

    name: str
    about: str
    sections: tuple[Section, ...]


def page_of(words: str, command: Any, topics: Iterable[str]) -> ManPage:
    """Return the page of a command, with the subcommands of a group.

    ``words`` are those that a person types. ``topics`` are all commands: the other pages.
    """
    parts = list(_parts(words, command))
    about = _paragraphs(command)
    end = [Section("Exit status", (), EXIT_STATUS), Section("Files", (), FILES)]
    others = ("benchctl", *(f"benchctl-{topic}" for topic in topics))
    name = words.replace(" ", "-")
    pages = ", ".join(f"{other}(1)" for other in others if other != name)
    synopsis = Section("Synopsis", tuple(_synopsis(words, command)))
    also = Section("See also", (pages,))
    described = Section("Description", about)
    return ManPage(name, about[0], (synopsis, described, *parts, *end, also))


def _parts(words: str, command: Any) -> Iterator[Section]:
    """Yield what a command takes, and for a group its commands."""
    context = command.make_context(words, [], resilient_parsing=True)
    name_formats(command)
    records = [(param, _record(param, context)) for param in command.get_params(context)]
    for kind, title in (("argument", "Arguments"), ("option", "Options")):
        items = tuple(r for param, r in records if r and param.param_type_name == kind)
        if items:
            yield Section(title, (), items)
    inside = [(name, inner, _paragraphs(inner)) for name, inner in _inner(command, context)]
    if words == "benchctl":  # each of them has a page of its own
        yield Section("Commands", (), tuple((name, about[0]) for name, _, about in inside))
        return
    for name, inner, about in inside:
        parts = _parts(f"{words} {name}", inner)
        items = tuple(item for part in parts for item in part.items if "--help" not in item[0])
        yield Section(f"{words} {name}", about, items)
    if words == "benchctl tui":
        from benchctl.tui.keys import described

        yield Section("Keys", (KEYS,), tuple(described()))


def _paragraphs(command: Any) -> tuple[str, ...]:
    return tuple(_line(text) for text in (command.help or "").split("\n\n"))


def _inner(command: Any, context: Any) -> list[tuple[str, Any]]:
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    return [(name, command.resolve_command(context, [name])[1]) for name in names]


def _synopsis(words: str, command: Any) -> Iterator[str]:
    context = command.make_context(words, [], resilient_parsing=True)
    yield " ".join([words, *command.collect_usage_pieces(context)])
    if words != "benchctl":
        for name, inner in _inner(command, context):
            yield from _synopsis(f"{words} {name}", inner)


def _record(param: Any, context: Any) -> Item | None:
    if param.param_type_name == "argument":
        return (param.make_metavar(context), _line(param.help or ""))
    found = param.get_help_record(context)
    return found and (_line(found[0]), _line(found[1]))


def _line(text: str) -> str:
    return " ".join(text.split())


def roff(page: ManPage) -> str:
    """Write a page as man(7) reads it."""
    lines = [f'.TH "{page.name.upper()}" 1 "" "benchctl {__version__}"', ".SH NAME"]
    lines.append(rf"{_escaped(page.name)} \- {_escaped(page.about)}")
    for section in page.sections:
        lines.append(f".SH {_escaped(section.title).upper()}")
        for number, text in enumerate(section.texts):
            lines += [".br" if section.title == "Synopsis" else ".PP"] * (number > 0)
            lines.append(_escaped(text))
        for term, text in section.items:
            lines += [".TP", rf"\fB{_escaped(term)}\fR", _escaped(text)]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\\&", text)


def plain(page: ManPage) -> str:
    """Write a page as text, for where there is no man."""
    parts = [f"NAME\n    {page.name} - {page.about}"]
    for section in page.sections:
        blocks = [fill(text, WIDTH - 4) for text in section.texts]
        blocks += [
            f"{term}\n{indent(fill(text, WIDTH - 12), ' ' * 8)}" for term, text in section.items
        ]
        gap = "\n" if section.title in ("Synopsis", "Exit status", "Files") else "\n\n"
        parts.append(f"{section.title.upper()}\n{indent(gap.join(blocks), ' ' * 4)}")
    return "\n\n".join(parts) + "\n"


def installed(name: str) -> Path | None:
    """Return the installed page of a name, if there is one."""
    path = Path(sysconfig.get_path("data"), "share", "man", "man1", f"{name}.1")
    return path if path.is_file() else None
