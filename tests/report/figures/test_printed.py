"""Figures on paper: SVG, PNG and PDF by Matplotlib, whatever lies around."""

import os
import re
import subprocess
import sys
from contextlib import closing
from html import unescape

import pytest
from report.figures.test_figures import KINDS
from report.pictured_run import pictured_run

from benchctl.errors import MissingError, UsageError
from benchctl.report.figures.figure import PictureKind
from benchctl.report.figures.making import Wanted, figures_of
from benchctl.report.figures.paper import labels
from benchctl.report.figures.paper.printed import FORMATS, printer
from benchctl.report.report import read_report
from benchctl.run.planned import LabSettings, PlannedChange
from benchctl.store.read import Reader

MAGIC = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("figures") / "runs.sqlite"
    pictured_run(path)
    return path


def draw(store, wanted=Wanted(), form="svg", style=None):  # noqa: B008
    with closing(Reader(store)) as reader, printer(style) as printed:
        report = read_report(reader, reader.find("last"))
        return [printed(figure, form) for figure in figures_of(reader, report, wanted)]


def texts_of(svg):
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.decode())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_the_same_each_time(store, kind):
    (once,), (again,) = draw(store, KINDS[kind]), draw(store, KINDS[kind])
    assert once == again
    assert once.startswith(MAGIC["svg"])
    assert b"Date" not in once


@pytest.mark.parametrize("form", ["png", "pdf"])  # SVG is that of every kind
def test_every_format_is_the_same_each_time_and_has_no_date(store, form):
    (once,), (again,) = draw(store, form=form), draw(store, form=form)
    assert once == again
    assert once.startswith(MAGIC[form])
    assert b"Date" not in once


def test_changes_of_the_lab_are_above_the_first_panel_and_all_panels_have_the_times(tmp_path):
    word = "a link with a long name"
    changes = (PlannedChange(2.0, word, rate=10e6), PlannedChange(9.0, word, loss=0.01))
    lab = LabSettings("pair", "", None, True, changes)
    pictured_run(tmp_path / "s", values={}, repeats=1, lab=lab)
    (drawn,) = draw(tmp_path / "s", Wanted(PictureKind.TIME))
    texts = [unescape(text) for text in texts_of(drawn)]
    assert [text for text in texts if word in text] == [
        f"▾{word} 10.0 Mbit/s", f"{word} loss 1 %▾",
    ]  # fmt: skip
    assert (texts.count("10"), texts.count("time (s)")) == (3, 1)


def size_of(svg):
    """Return the width and the height of a figure, in points."""
    return [float(text) for text in re.findall(rb'(?:width|height)="([\d.]+)pt"', svg)[:2]]


@pytest.mark.parametrize(("kind", "count", "step"), [("bars", 60, 1), ("heat", 250, 3)])
def test_a_figure_grows_for_its_names_and_says_of_very_many_which_are_written(
    tmp_path, kind, count, step
):
    links = tuple(f"link number {n}" for n in range(count))
    many = {"window": ("5000B", "10000B"), "link": links}
    pictured_run(tmp_path / "s", values=many, repeats=1, samples=False)
    (figure,) = draw(tmp_path / "s", Wanted(PictureKind(kind), x="link"))
    names = [text for text in texts_of(figure) if text.startswith("link number")]
    assert names == [f"link number {n}" for n in range(0, count, step)]
    assert (f"of {count} names, 1 in {step} is written" in texts_of(figure)) == (step > 1)
    assert size_of(figure)[0] > 10 * len(names)
    assert ("!" in texts_of(figure)) == (kind == "heat")
    assert figure.count(b"url(#h") <= 1  # in the legend, and in no bar


def test_a_figure_is_as_high_as_its_legend_and_no_higher_for_a_short_one(tmp_path):
    heights = []
    for words in ("", " of a host somewhere in a long street"):
        hosts = tuple(f"{chr(97 + n) * 3}{words}{n}" for n in range(16))
        pictured_run(tmp_path / f"s{len(words)}", values={"streams": (1, 2, 4), "host": hosts})
        (figure,) = draw(tmp_path / f"s{len(words)}", Wanted(PictureKind.SWEEP, x="streams"))
        at = [float(y) for y in re.findall(r"translate\(\S+ ([\d.]+)\)", figure.decode())]
        heights.append(size_of(figure)[1])
        assert max(at) < heights[-1]
    assert heights[0] < heights[1]


def test_long_names_of_an_axis_that_begin_alike_keep_their_ends():
    names = [f"measurement-of-the-host-{n}" for n in range(3)]
    assert labels.short(names) == [f"measurement…the-host-{n}" for n in range(3)]
    assert labels.short(["short", "x" * 30]) == ["short", f"{'x' * 21}…"]


def run(store, *words, cwd=None, **environment):
    """Draw with the real command; returns what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "benchctl", "plot", "--store", str(store), *map(str, words)],
        capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_text_in_a_file_is_text(store):
    (svg,) = draw(store)
    texts = " ".join(texts_of(svg))
    for wanted in ("throughput (Mbit/s)", "window", "streams", "expected", "reported", "5000B"):
        assert wanted in texts


def test_titles_are_no_program_of_tex(tmp_path):
    title = r"$\frac{1}{0}$ costs $5 & 100% of {it} \input{/etc/passwd} <b>"
    pictured_run(tmp_path / "s", title=title, values={"$x^2$": ("$a_1$", r"\b{")}, repeats=1)
    (svg,) = draw(tmp_path / "s")
    texts = " ".join(texts_of(svg))
    assert r"$\frac{1}{0}$ costs $5 &amp; 100% of {it}" in texts
    assert "$a_1$" in texts


@pytest.mark.parametrize("form", FORMATS)
def test_long_wide_and_right_to_left_texts_are_drawn_without_a_warning(tmp_path, form):
    title = "速度测试 " * 60 + "اختبار السرعة " * 10 + "é" * 300
    cases = ("宽" * 40, "עברית", "x" * 300)
    pictured_run(tmp_path / "s", title=title, values={"case": cases}, repeats=1)
    (drawn,) = draw(tmp_path / "s", form=form)
    if form == "svg":
        texts = " ".join(texts_of(drawn))
        assert "速度测试" in texts
        assert "…" in texts


def test_what_a_font_cannot_draw_is_escaped_in_a_picture_that_brings_its_fonts(tmp_path):
    drawn = []
    for name, title in (("wide", "速 א"), ("escaped", r"\u901f \u05d0")):
        pictured_run(tmp_path / name, title=title, values={}, repeats=1)
        drawn += draw(tmp_path / name, form="png")
    assert drawn[0] == drawn[1]


def test_fonts_in_a_pdf_are_no_type_3(store):
    (pdf,) = draw(store, form="pdf")
    assert b"/Type3" not in pdf
    assert b"/CIDFontType2" in pdf


def test_a_style_file_decides_how_a_figure_looks(store, tmp_path):
    style = tmp_path / "mine.mplstyle"
    style.write_text("figure.figsize: 3.5, 2.5\naxes.prop_cycle: cycler('color', ['123456'])\n")
    (svg,) = draw(store, style=str(style))
    assert b'width="252pt"' in svg
    assert b"#123456" in svg
    assert draw(store, style="grayscale") != draw(store)


def test_no_style_makes_titles_a_program(tmp_path):
    style = tmp_path / "mine.mplstyle"
    style.write_text("text.usetex: True\ntext.parse_math: True\nsvg.hashsalt: other\n")
    pictured_run(tmp_path / "s", title="$x$", values={}, repeats=1)
    (svg,) = draw(tmp_path / "s", style=str(style))
    assert "$x$" in " ".join(texts_of(svg))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ggplto", None, "no style"),
        ("http://127.0.0.1:9/x", None, "no style"),
        ("bad.mplstyle", "lines.linewidth: thick\n", "bad.mplstyle"),
        ("binary.mplstyle", b"\xff\xfe\x00", "binary.mplstyle"),
    ],
)
def test_what_is_no_style_is_rejected_in_one_line(tmp_path, monkeypatch, name, text, message):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=message) as error, printer(name):
        pass
    assert "\n" not in error.value.message


def test_surroundings_that_set_matplotlib_up_do_nothing(store, tmp_path):
    text = "text.usetex: True\nbackend: nonsense\nfigure.figsize: 1, 1\nsvg.fonttype: path\nbad\n"
    for name in ("matplotlibrc", "ggplot", "default", "classic.mplstyle"):
        (tmp_path / name).write_text(text)
    told = run(
        store, "-o", "hostile.pdf", cwd=tmp_path, MPLBACKEND="nonsense", DISPLAY="",
        MATPLOTLIBRC=str(tmp_path), MPLCONFIGDIR="/proc/none", HOME="/proc/none",
        PYTHONHASHSEED="1",
    )  # fmt: skip
    assert told == ""
    assert [(tmp_path / "hostile.pdf").read_bytes()] == draw(store, form="pdf")


def test_pyplot_is_never_imported_and_matplotlib_only_to_draw(store, tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from benchctl.cli.commands.plot import plot\n"
        "heavy = ('matplotlib', 'numpy', 'matplotlib.pyplot', 'pydantic', 'textual')\n"
        "for options in ({{'terminal': True}}, {{'output': Path({1!r})}}):\n"
        "    plot(store=Path({0!r}), by=[], only=[], y=[], **options)\n"
        "    print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code.format(str(store), str(tmp_path / "f.svg"))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines() == ["[]", "['matplotlib', 'numpy']"]


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("benchctl.report.figures.paper.library.find_spec", lambda name: None)
    with pytest.raises(MissingError, match="not installed") as error, printer():
        pass
    assert "benchctl[plot]" in error.value.hint
