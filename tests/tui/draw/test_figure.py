"""The figures of a run as text: the same description that Matplotlib draws."""

import pytest
from report.figures.test_figures import KINDS, draw
from report.pictured_run import pictured_run
from report.traced_run import traced_run

from benchctl.report.figures.figure import PictureKind
from benchctl.report.figures.making import Wanted
from benchctl.report.lines.spans import to_text
from benchctl.tui.draw.plot.figure import figure_lines
from benchctl.tui.draw.text.glyphs import ASCII, SETS


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("figures") / "runs.sqlite"
    pictured_run(path)
    return path


@pytest.fixture(scope="module")
def packets(tmp_path_factory):
    """Return the figure of a packet trace."""
    path = tmp_path_factory.mktemp("packets") / "runs.sqlite"
    traced_run(path)
    (figure,) = draw(path, Wanted(PictureKind.SEQUENCE))
    return figure


def text_of(figure, width=90, height=30, **options):
    text = to_text(figure_lines(figure, width, height, **options))
    return "\n".join(line.rstrip() for line in text.split("\n"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_of_each_kind_in_the_terminal(store, kind, golden):
    (figure,) = draw(store, KINDS[kind])
    golden(f"tui/golden/figure-{kind}.txt", text_of(figure) + "\n")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 24), (40, 12), (12, 5)])
def test_no_line_is_wider_than_the_terminal(store, kind, width, height):
    (figure,) = draw(store, KINDS[kind])
    assert max(map(len, text_of(figure, width, height).split("\n"))) <= width


@pytest.mark.parametrize("kind", ["time", "sweep", "cdf", "plane"])
def test_plots_fill_the_height_and_no_more(store, kind):
    (figure,) = draw(store, KINDS[kind])
    lines = text_of(figure, 100, 40).split("\n")
    assert 30 <= len(lines) - len(figure.notes) <= 40


def test_packets_are_strokes_steps_and_letters_where_something_happened(packets, golden):
    golden("tui/golden/figure-time-sequence.txt", text_of(packets, height=40) + "\n")


@pytest.mark.parametrize(("width", "height"), [(200, 60), (80, 24), (40, 12), (12, 5)])
def test_no_line_of_packets_is_wider_than_the_terminal(packets, width, height):
    for glyphs in SETS.values():
        lines = text_of(packets, width, height, glyphs=glyphs).split("\n")
        assert max(map(len, lines)) <= width


def test_without_braille_plots_are_ascii(store):
    (figure,) = draw(store)
    assert text_of(figure, glyphs=ASCII).isascii()


def test_what_is_expected_reported_and_not_valid_is_beside_each_bar(store):
    (figure,) = draw(store, Wanted(PictureKind.BARS, only={"streams": ["1"]}))
    (row,) = (line for line in text_of(figure).split("\n") if line.startswith("5000B"))
    assert "expected 4.00 Mbit/s, reported 9.00 Mbit/s" in row
    (figure,) = draw(store, Wanted(PictureKind.BARS, only={"streams": ["2"]}))
    assert "not valid" in text_of(figure)
