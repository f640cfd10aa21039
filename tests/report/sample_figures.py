"""Figures of every kind, as they come from runs."""

import math

from msgspec.structs import replace

from benchctl.report.figures.figure import (
    Axis,
    Box,
    Panel,
    Picture,
)
from benchctl.report.figures.figure import (
    HeatCell as Cell,
)
from benchctl.report.figures.figure import (
    LineRole as Role,
)
from benchctl.report.figures.figure import (
    NamedTick as Tick,
)
from benchctl.report.figures.figure import (
    PictureEvent as Event,
)
from benchctl.report.figures.figure import (
    PictureKind as Kind,
)
from benchctl.report.figures.figure import (
    PictureLine as Line,
)


def over_time(lines=2, points=600, about="trial 3, window=<b>1M</b>"):
    """Return a figure of two panels; a second of each line is missing."""
    xs = [place * 0.5 for place in range(points)]

    def line(number):
        ys = [30e6 + 1e6 * math.sin(x / 9 + number) for x in xs]
        ys[100] = math.nan
        return Line(
            f"stream {number}", number, xs, ys, [y - 2e6 for y in ys], [y + 3e6 for y in ys]
        )

    made = [line(number) for number in range(lines)]
    delays = [replace(one, ys=[y / 1e9 for y in one.ys], lows=(), highs=()) for one in made]
    theory = Line(Role.EXPECTED.value, None, [xs[0], xs[-1]], [38e6, 38e6], role=Role.EXPECTED)
    return Picture(
        Kind.TIME, "time", "A title", about, Axis("time", "time_s", 0.0, xs[-1]),
        [
            Panel(
                Axis("throughput", "throughput_bps", 20e6, 40e6, from_zero=True), [*made, theory],
                [Event(120.0, "drop", 0), Event(200.0, "recovery", 1)],
            ),
            Panel(Axis("TCP RTT", "tcp_rtt_s", 0.028, 0.032), delays),
        ],
        "stream", [one.name for one in made], ["1 of 3 lines is left out"],
    )  # fmt: skip


WINDOWS = [65536.0 * 2**power for power in range(7)]
RATES = [min(window * 100, 90e6) for window in WINDOWS]
SWEEP = Picture(
    Kind.SWEEP, "sweep", "A title", "throughput by window",
    Axis(
        "window", "window_bytes", WINDOWS[0], WINDOWS[-1],
        [Tick(window, f"{window / 1024:.0f}K") for window in WINDOWS], log=True,
    ),
    [
        Panel(
            Axis("throughput", "throughput_bps", RATES[0], RATES[-1], log=True),
            [
                Line("send", 0, WINDOWS, RATES, [0.9 * y for y in RATES], [1.1 * y for y in RATES]),
                Line("expected", None, WINDOWS, [1.05 * y for y in RATES], role=Role.EXPECTED),
                Line("reported", 0, WINDOWS[:3], [0.8 * y for y in RATES[:3]], role=Role.REPORTED),
                Line("receive", 1, WINDOWS[3:], [0.7 * y for y in RATES[3:]]),
                Line("not valid", 1, WINDOWS[3:4], [0.7 * RATES[3]], role=Role.INVALID),
            ],
        ),
    ],
    "direction", ["send", "receive"],
)  # fmt: skip
_LINKS = Axis("link", high=2.0, ticks=[Tick(n, f"L{n + 1}") for n in range(3)], even=True)
_RATE = Axis("throughput", "throughput_bps", 0.0, 40e6, from_zero=True)
BARS = Picture(
    Kind.BARS, "bars", "A title", "throughput by link", _LINKS,
    [
        Panel(
            _RATE,
            [
                Line("a", 0, [0, 1, 2], [38e6, 28e6, 19e6], [37e6, 27e6, 18e6], [39e6, 29e6, 20e6]),
                Line("b", 1, [0, 1, 2], [30e6, 20e6, math.nan]),
                Line("expected", 0, [0, 1, 2], [38.2e6, 28.7e6, 19.1e6], role=Role.EXPECTED),
                Line("reported", 1, [0, 1], [36e6, 27e6], role=Role.REPORTED),
                Line("not valid", 1, [1], [20e6], role=Role.INVALID),
            ],
        ),
    ],
    "flow", ["a", "b"],
)  # fmt: skip
BOXES = Picture(
    Kind.BOX, "box", "A title", "rtt by link", _LINKS,
    [
        Panel(
            Axis("rtt", "rtt_s", 0.01, 0.05),
            boxes=[Box(n, 0, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 99) for n in range(3)],
        ),
    ],
    "flow", ["a"],
)  # fmt: skip
HEAT = Picture(
    Kind.HEAT, "heat", "A title", "throughput by link and streams", _LINKS,
    [
        Panel(
            Axis("streams", high=1.0, ticks=[Tick(0, "1"), Tick(1, "4")], even=True),
            cells=[
                Cell(c, r, None if c == r == 1 else 1e7 * (c + r), f"{10 * (c + r)} Mbit/s", c < 2)
                for c in range(3)
                for r in range(2)
            ],
            heat=Axis("throughput", "throughput_bps", 0.0, 3e7),
        ),
    ],
)  # fmt: skip
EVERY = [over_time(), SWEEP, BARS, BOXES, HEAT]
