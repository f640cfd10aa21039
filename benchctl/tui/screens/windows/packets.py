"""A window with the packets of a trial's flows, as `benchctl plot --kind time-sequence` draws them.

A trace is read again for each part of it, in a thread: a second for 100,000 packets. One is read at
a time, and then what the keys ask for by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from benchctl.errors import BenchctlError
from benchctl.report.figures.figure import Picture, PictureKind
from benchctl.report.figures.making import Wanted, figures_of
from benchctl.report.figures.segments import FLIGHT, RATE, RTT, SEQUENCE
from benchctl.report.lines.spans import Line, Span, wrap
from benchctl.report.report import Report, read_report
from benchctl.report.traced import KEYS, TracedDirection, chosen_of, traces_of
from benchctl.store.read import Reader
from benchctl.tui.draw.plot.figure import figure_lines
from benchctl.tui.draw.text.glyphs import Glyphs
from benchctl.tui.screens.base.modals import Dialog
from benchctl.tui.screens.base.pick import PickFrom
from benchctl.tui.widgets.painted import Painted

PANELS = ((SEQUENCE,), (FLIGHT,), (RTT,), (RATE,))
"""What `m` shows in turn; where two have room, the first and the second are shown together."""
LEAST_HEIGHT = 26
"""Of a window with two panels."""
MOST_ZOOM = 2.0**-20


class PacketFigure(Painted):
    """A figure at the size of the widget."""

    figure: Picture | None = None
    words = "reading the packets …"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs

    def show(self, figure: Picture | None, words: str = "") -> None:
        """Show a figure, or words instead."""
        self.figure, self.words = figure, words
        self.repaint()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        if self.figure is None:
            return [[], *wrap([Span(self.words, "dim")], width, 0)]
        return figure_lines(self.figure, width, height - len(self.figure.notes), self._glyphs)


class PacketView(Struct, frozen=True):
    """What the window shows: whose data, which panels, and which share of the time."""

    sender: int = 0
    panels: int = 0
    low: float = 0.0
    high: float = 1.0

    def zoomed(self, factor: float) -> PacketView:
        """Return another part of the time around the same middle."""
        half = min(0.5, max(MOST_ZOOM, (self.high - self.low) / 2 * factor))
        middle = min(1 - half, max(half, (self.low + self.high) / 2))
        return replace(self, low=middle - half, high=middle + half)

    def moved(self, share: float) -> PacketView:
        """Return the part before or after, by a share of itself."""
        step = min(1 - self.high, max(-self.low, share * (self.high - self.low)))
        return replace(self, low=self.low + step, high=self.high + step)


class PacketsWindow(Dialog[None]):
    """The packets of one trial, of one sender at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus,equals_sign", "zoom(0.5)", "Zoom", id="packets.zoom_in"),
        Binding("minus", "zoom(2)", "Zoom out", id="packets.zoom_out"),
        Binding("0", "whole", "All the time", id="packets.zoom_all"),
        Binding("left,H", "move(-0.25)", "Earlier", id="packets.earlier"),
        Binding("right,L", "move(0.25)", "Later", id="packets.later"),
        Binding("m", "panels", "Sequence, in flight, RTT or throughput", id="packets.panels"),
        Binding("p", "pick", "Flow, host, connection, sender", id="packets.pick"),
        Binding("q", "dismiss(None)", "Close", id="packets.close"),
    ]
    DEFAULT_CSS = """
    PacketsWindow > Vertical { width: 100%; height: 100%; max-height: 100%; }
    PacketsWindow PacketFigure { height: 1fr; }
    """

    def __init__(self, store: Path, run_id: int, position: int | None, glyphs: Glyphs) -> None:
        """Show a trial; of None, the first that has packets."""
        super().__init__()
        self._store, self._run_id, self._position = store, run_id, position
        self._senders: Sequence[TracedDirection] = ()
        self._report: Report | None = None
        self._seen = PacketView()
        self._is_reading = False
        self._span_s: tuple[float, float] | None = None
        """The beginning and the end of the connection; None before it is known."""
        self._figure = PacketFigure(glyphs)
        self._frame = Vertical(self._figure)

    def compose(self) -> ComposeResult:
        self._frame.border_subtitle = "+ - 0 ← → time   m metric   p flow   escape closes"
        self._frame.border_title = "Packets"
        yield self._frame

    def on_mount(self) -> None:
        """Read the packets."""
        self._show(self._seen)

    def _show(self, seen: PacketView) -> None:
        if seen.sender != self._seen.sender:
            self._span_s = None
        self._seen = seen
        if not self._is_reading:
            self._is_reading = True
            self._read(seen)

    @work(thread=True, group="packets")
    def _read(self, seen: PacketView) -> None:
        figure, words = None, ""
        try:
            with closing(Reader(self._store)) as reader:
                if self._report is None:
                    self._find(reader)
                figure = self._made(reader, seen)
        except BenchctlError as error:
            words = f"{error.message}; {error.hint}"
        self.app.call_from_thread(self._take, seen, figure, words)

    def _find(self, reader: Reader) -> None:
        """Find the senders whose packets were recorded."""
        number = None if self._position is None else self._position + 1
        report = read_report(reader, reader.run(self._run_id), number)
        trials = [trial for trial in report.trials if [*traces_of([trial])]] or report.trials
        self._report = replace(report, trials=trials[:1])
        self._senders = [*chosen_of(traces_of(trials[:1]), reader.path, {}, (), every=True)]

    def _made(self, reader: Reader, seen: PacketView) -> Picture:
        """Return the figure. Raises UsageError if there are no packets, and StoreError."""
        assert self._report is not None
        only = {}
        if self._senders:
            sender = self._senders[seen.sender]
            only = {key: [sender.value(key)] for key in KEYS}
        panels: Sequence[str] = PANELS[seen.panels]
        if seen.panels == 0 and self.size.height >= LEAST_HEIGHT:
            panels = (SEQUENCE, FLIGHT)
        wanted = Wanted(PictureKind.SEQUENCE, y=panels, only=only)
        if self._span_s is not None and (seen.low, seen.high) != (0.0, 1.0):
            begin_s, end_s = self._span_s
            lasted_s = end_s - begin_s
            wanted = replace(
                wanted, begin_s=begin_s + seen.low * lasted_s, end_s=begin_s + seen.high * lasted_s
            )
        with closing(figures_of(reader, self._report, wanted)) as figures:
            return next(figures)

    def _take(self, seen: PacketView, figure: Picture | None, words: str) -> None:
        self._is_reading = False
        if not self.is_mounted:
            return
        if figure is not None and seen.sender == self._seen.sender:
            self._span_s = self._span_s or (figure.x.low, figure.x.high)
        self._frame.border_title = self._title(seen)
        self._figure.show(figure, words)
        if seen != self._seen:
            self._show(self._seen)

    def _title(self, seen: PacketView) -> str:
        if not self._senders or self._report is None:
            return "Packets"
        sender, trial = self._senders[seen.sender], self._report.trials[0].trial
        where = f" at {sender.packets.host}" if sender.packets.host else ""
        said = f"Packets of {sender.of}{where}, trial {trial.position + 1}"
        return f"{said}, {seen.sender + 1} of {len(self._senders)}"

    @property
    def settled(self) -> bool:
        """Whether what the keys asked for is shown."""
        return not self._is_reading

    def action_zoom(self, factor: float) -> None:
        """Show a smaller or a larger part of the time."""
        if self._span_s is not None:
            self._show(self._seen.zoomed(factor))

    def action_whole(self) -> None:
        """Show all the time."""
        self._show(replace(self._seen, low=0.0, high=1.0))

    def action_move(self, share: float) -> None:
        """Show what was earlier, or later."""
        self._show(self._seen.moved(share))

    def action_panels(self) -> None:
        """Show the next metrics."""
        self._show(replace(self._seen, panels=(self._seen.panels + 1) % len(PANELS)))

    def action_pick(self) -> None:
        """Pick whose data are shown."""

        def take(place: int | None) -> None:
            if place is not None:
                self._show(PacketView(place, self._seen.panels))

        rows = [
            (f"{sender.of} {sender.packets.host}".rstrip(), f"{' → '.join(sender.ends)}")
            for sender in self._senders
        ]
        self.app.push_screen(PickFrom("Flow, host and sender", rows, self._seen.sender), take)
