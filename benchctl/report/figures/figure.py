"""What a figure shows, whoever draws it: axes with units, lines, boxes, cells, events, notes.

A figure is data. `making.figures_of` makes it of a run; Matplotlib (`printed`), the terminal
(`tui.draw.plot.figure`) and the report draw it. All values are in SI base units, and an axis
says by which factor people read them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from benchctl.units import scale_of


class PictureKind(StrEnum):
    """The kinds of figures; a run has one that suits it."""

    TIME = "time"
    """Rates, delays and windows over the time of trials, with what happened."""
    ALL = "all"
    """The same with the sum of the rates of each direction, as flent's users know it."""
    SWEEP = "sweep"
    """A metric by the values of an axis: means with their 95 % intervals."""
    BARS = "bars"
    """The same for values without an order or a size, or for flows."""
    HEAT = "heat"
    """A metric by two axes: a cell for each pair of values."""
    MATRIX = "matrix"
    """A metric of a mesh: a cell for each pair of hosts, from the row to the column."""
    CDF = "cdf"
    """The share of samples up to each value."""
    HISTOGRAM = "histogram"
    """How many samples are between each two values."""
    BOX = "box"
    """Quartiles of samples, 5th and 95th percentile, least and greatest."""
    SEARCH = "search"
    """The rates that a search tried, one after the other, and the bracket that they left."""
    PLANE = "plane"
    """Rate and round-trip time by the window in force, with the bounds of the path on both."""
    FOREST = "forest"
    """The differences of two runs with their 95 % intervals, a row for each."""
    SEQUENCE = "time-sequence"
    """What a packet trace shows of one direction of a connection: each segment and its answer."""


MAPS = (PictureKind.HEAT, PictureKind.MATRIX)
"""Their panels have cells."""

OVER_TIME = (PictureKind.TIME, PictureKind.SEQUENCE)
"""Their x-axis is time, and shows the whole of what is asked for."""


class LineRole(StrEnum):
    """What the values of a line are."""

    MEASURED = "measured"
    EXPECTED = "expected"
    """Of theory: dashed."""
    REPORTED = "reported"
    """By others, in the profile: open marks without a line."""
    INVALID = "not valid"
    """Measured in a lab that did not keep its promises: crosses over the marks."""
    STEPS = "steps"
    """Each value holds until the next."""
    STROKES = "strokes"
    """Each value is a stroke from its low to its high, and nothing is between them."""
    MARKS = "marks"
    """The same, with a mark at the value: few, and none may be overlooked."""
    SPANS = "spans"
    """As steps, each from one value to a gap; thick, with a mark where it begins."""

    @property
    def is_of_packets(self) -> bool:
        """Whether it is drawn only in figures of packets."""
        return self in (LineRole.STEPS, LineRole.STROKES, LineRole.MARKS, LineRole.SPANS)


class NamedTick(NamedTuple):
    """A value of an axis that has a name, such as a window as the profile writes it."""

    value: float
    text: str


class Axis(Struct, frozen=True):
    """An axis in the SI unit of ``metric``, from the ``low`` to the ``high`` end of what it shows.

    With ``ticks`` only these values are named, by texts that have their own units. Of an ``even``
    axis, values are the numbers of its ticks from 0 on. ``from_zero`` is right for rates and
    counts, whose parts mislead.
    """

    title: str
    metric: str = ""
    low: float = 0.0
    high: float = 1.0
    ticks: Sequence[NamedTick] = ()
    even: bool = False
    log: bool = False
    from_zero: bool = False

    @property
    def scale(self) -> tuple[float, str]:
        """The size and the name of the unit in which people read this axis."""
        if self.ticks:
            return 1.0, ""
        return scale_of(self.metric, max(abs(self.low), abs(self.high)))

    def share(self, value: float) -> float:
        """Return where a value is between the ends, from 0 to 1: by its power if logarithmic."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low) if high > low else 0.0

    @property
    def label(self) -> str:
        """The title, with the unit."""
        unit = self.scale[1]
        return f"{self.title} ({unit})" if unit else self.title


class PictureLine(Struct, frozen=True):
    """Values in order of ``xs``; a NaN in ``ys`` is a gap.

    ``lows`` and ``highs`` are the 95 % interval of each mean, the range of what a value over time
    is the mean of, or the ends of strokes; NaN without any, empty if no value has one. ``number``
    decides the colour and the mark; None is for theory that holds for every line.
    """

    name: str
    number: int | None
    xs: Sequence[float]
    ys: Sequence[float]
    lows: Sequence[float] = ()
    highs: Sequence[float] = ()
    role: LineRole = LineRole.MEASURED


class PictureEvent(NamedTuple):
    """What happened at a moment on a measured line, by its number; None concerns all lines.

    Of what concerns the lines of several panels, the first has the word.
    """

    x: float
    word: str
    number: int | None


class Box(Struct, frozen=True):
    """The distribution of samples at a place of the x-axis, of the line with this number."""

    x: float
    number: int
    least: float
    p5: float
    q1: float
    median: float
    q3: float
    p95: float
    greatest: float
    count: int


class HeatCell(Struct, frozen=True):
    """The value at a column and a row, each counted from 0; None if nothing was measured.

    Of a scale with values on both sides of 0, colours tell the sides apart.
    """

    column: int
    row: int
    value: float | None
    text: str
    valid: bool = True


class Difference(Struct, frozen=True):
    """What two runs differ by, at a row that is counted from 0, the first on top.

    ``value`` and its 95 % interval are shares; NaN without an interval. ``word`` stands beside it.
    """

    row: int
    value: float
    low: float
    high: float
    certain: bool
    word: str


class Panel(Struct, frozen=True):
    """One of the plots of a figure, over the x-axis that all share.

    ``cells`` are of a heat map: then ``y`` has the names of its rows, and ``heat`` is the scale of
    its values. ``differences`` are of a forest plot, whose rows ``y`` names.
    """

    y: Axis
    lines: Sequence[PictureLine] = ()
    events: Sequence[PictureEvent] = ()
    boxes: Sequence[Box] = ()
    cells: Sequence[HeatCell] = ()
    heat: Axis | None = None
    differences: Sequence[Difference] = ()


class Picture(Struct, frozen=True):
    """One figure.

    ``title`` is that of the run, ``about`` says which part of it this is; ``name`` is good for the
    name of a file. ``names`` are those of the measured lines by their numbers, for the legend,
    whose title is ``series``. ``notes`` say what was left out and what to know about the rest.
    """

    kind: PictureKind
    name: str
    title: str
    about: str
    x: Axis
    panels: Sequence[Panel]
    series: str = ""
    names: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def named(self) -> Sequence[tuple[int, str]]:
        """The numbers and names for a legend: of packets, only of what there is."""
        there = {line.number for panel in self.panels for line in panel.lines}
        return [
            (number, name)
            for number, name in enumerate(self.names)
            if self.kind is not PictureKind.SEQUENCE or number in there
        ]

    @property
    def beside(self) -> dict[LineRole, str]:
        """What stands beside the measured lines, with its name in a legend.

        Open marks are what others reported, or the tries of a search.
        """
        found = {line.role: line.name for panel in self.panels for line in panel.lines}
        roles = (LineRole.EXPECTED, LineRole.REPORTED, LineRole.INVALID)
        return {
            role: found[role] if role is LineRole.REPORTED else role.value
            for role in roles
            if role in found
        }
