"""What every screen does with its tables: filter, sort, copy, save."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from benchctl.tui.draw.text.written import FORMS, as_row, as_rows
from benchctl.tui.pictures import svg_of, text_of
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.widgets.filterline import FilterLine
from benchctl.tui.widgets.table import DOWN, UP, Table

FILTER = Binding(
    "slash", "filter", "Filter", show=False, key_display="/", tooltip="Filter the table by words",
    id="app.filter",
)  # fmt: skip
# Where it matters most.
SHOWN_FILTER = replace(FILTER, show=True)
AS_IT_COMES = "as it comes"


class TablesScreen(Screen[None]):
    """A screen with tables, one of which is in use."""

    BINDINGS: ClassVar[list[BindingType]] = [
        FILTER,
        Binding("S", "sort", "Sort", tooltip="Sort by a column", show=False, id="app.sort"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.filter_line = FilterLine()

    def command(self) -> str:
        """Return the command that shows or does the same on the command line."""
        raise NotImplementedError

    def file_stem(self) -> str:
        """Return the name of files of this screen, without the end."""
        raise NotImplementedError

    @property
    def table(self) -> Table | None:
        """The table in use: the one that has the focus, or the first one that is seen."""
        if isinstance(self.focused, Table):
            return self.focused
        seen = (table for table in self.query(Table) if table.display and table.region)
        return next(seen, None)

    def action_filter(self) -> None:
        """Show only rows of the table that have the words typed."""
        if self.table is not None:
            self.filter_line.open(self.table)

    def action_sort(self) -> None:
        """Pick the column that the table is sorted by; the same one again turns the order."""
        table = self.table
        if table is None:
            return
        heads = [*dict.fromkeys(table.pivot().heads)]
        now = table.sorted_by
        rows = [(head, "") for head in heads]
        if now is not None and now[0] in heads:
            place = heads.index(now[0])
            rows[place] = (now[0], f"{DOWN if now[1] else UP} now; again turns it")
            rows.append((AS_IT_COMES, ""))

        def take(place: int | None) -> None:
            if place is not None:
                table.sort(heads[place] if place < len(heads) else None)

        self.app.push_screen(PickFrom("Sort by", rows), take)

    def copy(self) -> None:
        """Pick what is copied: the command, or a cell, a row or all of the table."""
        command, table = self.command(), self.table
        found = [("command", command, command)]
        if table is not None and table.here is not None:
            shown = table.pivot()
            row = shown.rows[table.place]
            about = f" of {table.title}" if table.title else ""
            found.append(("row", ", ".join(filter(None, row)), as_row(row)))
            found.append(("table", f"{len(shown.rows)} rows{about}", as_rows(shown)))
            cells = zip(shown.heads, row, strict=True)
            found += [(f"cell {head}", cell, cell) for head, cell in cells if cell]
        found += self.more_to_copy()

        def take(place: int | None) -> None:
            if place is not None:
                _, _, text = found[place]
                self.app.copy_to_clipboard(text)
                self.notify(text, title="copied")

        rows = [(name, what) for name, what, _ in found]
        self.app.push_screen(PickFrom("Copy", rows), take)

    def more_to_copy(self) -> Iterator[tuple[str, str, str]]:
        """Yield what else can be copied: its name, what is said of it, the text."""
        yield from ()

    def save(self) -> None:
        """Pick what is saved in this directory: a picture of the screen, or the table."""
        stem = self.file_stem()
        choices: list[tuple[str, str, str, Callable[[], str]]] = [
            (stem, ".svg", "picture of the screen", lambda: svg_of(self.app)),
            (stem, ".txt", "picture of the screen, as text", lambda: text_of(self.app)),
        ]
        table = self.table
        if table is not None and table.count:
            shown = table.pivot()
            named = "-".join([stem, *re.findall(r"\w+", table.title.casefold())])
            what = f"table as it is shown, {len(shown.rows)} rows"
            choices += [(named, end, what, partial(write, shown)) for end, write in FORMS.items()]

        def take(place: int | None) -> None:
            if place is not None:
                # The picture is of the screen, not of this window.
                named, end, _, write = choices[place]
                self.call_after_refresh(self._save, named, end, write)

        rows = [(free_name(Path.cwd(), named, end).name, what) for named, end, what, _ in choices]
        self.app.push_screen(PickFrom("Save", rows), take)

    def _save(self, stem: str, end: str, write: Callable[[], str]) -> None:
        path = free_name(Path.cwd(), stem, end)
        try:
            path.write_text(write(), encoding="utf-8")
        except OSError as error:
            self.notify(f"{path}: {error.strerror}", severity="error")
        else:
            self.notify(str(path), title="saved")


def free_name(directory: Path, stem: str, suffix: str) -> Path:
    """Return an unused file name in a directory."""
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    paths = (directory / f"{name}{suffix}" for name in names)
    return next(path for path in paths if not path.exists())
