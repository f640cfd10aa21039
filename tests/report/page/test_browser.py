"""The page in a real browser: no error, no request, charts that answer, tables that sort."""

import unicodedata

import pytest
from report.browser import Browser
from report.paper import pages_of
from report.sample_figures import EVERY

from benchctl.report.page.blocks import (
    PageContent,
    PageSection,
    Paragraph,
    PictureBlock,
    TableBlock,
)
from benchctl.report.page.html import caption_of, html_of
from benchctl.report.pivot import Pivot

pytestmark = [pytest.mark.tool("chromium"), pytest.mark.once]

RATES = ("94.1 Mbit/s ±0.31", "1.20 Gbit/s", "-", "800 kbit/s", "unlimited")
TABLE = Pivot(
    ("name", "rate"), (False, True), tuple(zip(("b", "a10", "c", "a9", "d"), RATES, strict=True))
)
WIDE = Pivot(tuple("abcdefghijkl"), (False,) * 12, (("a wide cell",) * 12,))
PAGE = PageContent(
    "A title of 300 characters: " + "x" * 300,
    [
        PageSection(
            "Answer",
            [Paragraph("<i>not</i> italic", strong=True), TableBlock(TABLE), TableBlock(WIDE)],
        ),
        PageSection("Figures", [PictureBlock(figure) for figure in EVERY]),
        PageSection("Folded", [Paragraph("inside")], folded=True),
    ],
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser")
    file = path / "report.html"
    file.write_text(html_of(PAGE), encoding="utf-8")
    with Browser(path / "profile") as browser:
        browser.look()
        browser.open(file)
        browser.file = file
        yield browser


@pytest.fixture
def charts(browser):
    """The browser, when every chart was drawn."""
    for place in range(len(EVERY)):
        browser.run(f"document.querySelectorAll('figure')[{place}].scrollIntoView()")
        browser.frame()
    browser.run("scrollTo(0, 0)")
    browser.frame()
    return browser


def test_scripts_end_well_and_nothing_is_asked_of_any_server(charts):
    assert charts.complaints == []
    assert charts.requests == [charts.file.as_uri()]


def test_the_policy_forbids_what_is_not_in_the_page(browser):
    browser.run(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://h/x'}))"
    )
    browser.run("document.querySelector('p').setAttribute('style', 'color: red')")
    browser.run("document.querySelector('img').remove()")
    refused = [p["entry"]["text"] for m, p in browser.events if m == "Log.entryAdded"]
    assert len(refused) == 2
    assert all("Content Security Policy" in text for text in refused)
    browser.open(browser.file)


def test_charts_take_the_place_of_drawings_that_they_can_replace(charts):
    shown = """[...document.querySelectorAll("figure")].map((one) => [
        one.querySelectorAll("canvas").length,
        getComputedStyle(one.querySelector(".chart > svg")).display])"""
    assert charts.run(shown) == [
        [2, "none"], [1, "none"], [0, "block"], [0, "block"], [0, "block"],
    ]  # fmt: skip
    painted = """[...document.querySelectorAll("canvas")].map((one) => {
        const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
        return new Set(new Uint32Array(data.buffer)).size;
    })"""
    assert all(colours > 20 for colours in charts.run(painted))


def column(browser, place):
    return browser.run(
        f"[...document.querySelector('tbody').rows].map((row) => row.cells[{place}].textContent)"
    )


def test_a_table_sorts_by_the_size_of_quantities_and_what_is_none_stays_last(browser):
    click = "document.querySelectorAll('th button')[{}].click()"
    browser.run(click.format(1))
    up = ["800 kbit/s", "94.1 Mbit/s ±0.31", "1.20 Gbit/s", "unlimited", "-"]
    assert column(browser, 1) == up
    browser.run(click.format(1))
    assert column(browser, 1) == [*reversed(up[:-1]), "-"]
    browser.run(click.format(0))
    assert column(browser, 0) == ["a9", "a10", "b", "c", "d"]


def place_of(browser, place):
    """Return the middle of a chart in the window, and its width."""
    over = f"document.querySelectorAll('.u-over')[{place}]"
    browser.run(f"{over}.scrollIntoView({{block: 'center'}})")
    browser.frame()
    return browser.run(
        f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2, width])"
        f"({over}.getBoundingClientRect())"
    )


ENDS = "[...charts.values()][0].map(({scales: {x}}) => [x.min, x.max])"


def test_the_legend_follows_the_cursor(charts):
    x, y, _ = place_of(charts, 0)
    charts.mouse("mouseMoved", x, y)
    charts.frame()
    told = charts.run(
        "[...document.querySelectorAll('.uplot')].map((one) =>"
        " one.querySelector('.u-value').textContent)"
    )
    # Both panels of a figure; the middle of 300 s.
    assert [abs(float(one) - 150) < 3 for one in told[:2]] == [True, True]


def test_dragging_zooms_all_panels_and_a_double_click_shows_all_again(charts):
    whole = charts.run(ENDS)
    x, y, width = place_of(charts, 0)
    charts.mouse("mouseMoved", x, y)
    charts.mouse("mousePressed", x, y, button="left", clickCount=1)
    charts.mouse("mouseMoved", x + width / 4, y, button="left")
    charts.mouse("mouseReleased", x + width / 4, y, button="left", clickCount=1)
    charts.frame()
    for low, high in charts.run(ENDS):
        assert 140 < low < 160
        assert 215 < high < 235
    for count in (1, 2):
        charts.mouse("mousePressed", x, y, button="left", clickCount=count)
        charts.mouse("mouseReleased", x, y, button="left", clickCount=count)
    charts.frame()
    assert charts.run(ENDS) == whole


def touch(browser, kind, *xs, y=0.0):
    browser("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x in xs])


def test_a_finger_zooms_unless_it_scrolls(charts):
    whole = charts.run(ENDS)
    x, y, width = place_of(charts, 0)
    touch(charts, "touchStart", x, y=y)
    touch(charts, "touchMove", x + width / 4, y=y)
    touch(charts, "touchCancel")
    charts.frame()
    assert charts.run("document.querySelector('.u-select').offsetWidth") == 0
    assert charts.run(ENDS) == whole
    touch(charts, "touchStart", x, y=y)
    for part in (8, 4):
        touch(charts, "touchMove", x + width / part, y=y)
    touch(charts, "touchEnd")
    charts.frame()
    (low, high), _ = charts.run(ENDS)
    assert (140 < low < 160, 215 < high < 235) == (True, True)
    charts.open(charts.file)


TOLD = "[...document.querySelectorAll('.readout')].map((one) => one.textContent)"


def test_a_drawing_is_read_by_a_pointer_a_finger_or_the_arrow_keys(charts):
    hint, *others = charts.run(TOLD)
    assert others == [hint] * 2  # bars, boxes, cells
    x, y = charts.run(
        "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
        "((document.querySelector('.readout').scrollIntoView({block: 'center'}),"
        " document.querySelector('figure rect.bar').getBoundingClientRect()))"
    )
    charts.mouse("mouseMoved", x, y)
    charts.frame()
    first = "L1, a: 38.0 Mbit/s, 95 % interval 37.0 Mbit/s to 39.0 Mbit/s"
    assert charts.run(TOLD) == [first, hint, hint]
    charts.run("document.querySelectorAll('.chart > svg[tabindex]')[2].focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft"):
        charts("Input.dispatchKeyEvent", type="keyDown", key=key)
    assert charts.run(TOLD)[2] == "link L3, streams 4: 30.0 Mbit/s, not valid"
    charts("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert charts.run(TOLD)[2] == hint
    touch(charts, "touchStart", x, y=y)
    touch(charts, "touchEnd")
    assert charts.run(TOLD)[0] == first
    charts.open(charts.file)


def test_a_phone_need_not_scroll_sideways(charts):
    charts.look(width=360, height=740)
    assert charts.run("document.documentElement.scrollWidth") <= 360
    assert charts.run("Math.max(...[...document.querySelectorAll('.u-over')].map((one) =>"
                      " one.getBoundingClientRect().right))") <= 360  # fmt: skip
    charts.look()


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_as_light_or_dark_as_the_readers_system(charts, dark):
    charts.look(dark=dark)
    paper = charts.run("getComputedStyle(document.body).backgroundColor")
    ink = charts.run("charts.get(figures[0])[0].axes[0].stroke()")
    assert (paper, ink) == (
        ("rgb(20, 23, 27)", "#e3e7ec") if dark else ("rgb(255, 255, 255)", "#1b1f24")
    )
    charts.look()


def test_on_paper_figures_are_drawings_and_nothing_is_folded(charts, tmp_path):
    charts.look(medium="print")
    shown = charts.run(
        "[...document.querySelectorAll('.chart > *')].map((one) =>"
        " [one.nodeName, getComputedStyle(one).display])"
    )
    assert {tuple(one) for one in shown} == {("svg", "block"), ("DIV", "none")}
    charts.run("addEventListener('afterprint', () => { window.printed = true; })")
    charts.run("addEventListener('beforeprint', () => setTimeout(() => {"
               " window.opened = document.querySelector('details').open; }))")  # fmt: skip
    charts.pdf(tmp_path / "page.pdf")
    charts.look()
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert charts.run("document.querySelector('details').open") is False


def plain(text):
    """Return a text as it is compared: without spaces and ligatures, which setting adds."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def test_sheets_have_every_text_and_each_figure_whole(charts, tmp_path):
    charts.pdf(tmp_path / "page.pdf")
    sheets = [plain(sheet) for sheet in pages_of((tmp_path / "page.pdf").read_bytes())]
    assert len(sheets) > 1
    assert all(sheets)
    told = [PAGE.title, "inside", *(cell for row in (*TABLE.rows, *WIDE.rows) for cell in row)]
    assert [text for text in told if plain(text) not in "".join(sheets)] == []
    for figure in EVERY:
        (sheet,) = (sheet for sheet in sheets if plain(caption_of(figure)) in sheet)
        drawn = sheet.partition(plain(caption_of(figure)))[2]
        assert plain(figure.x.label) in drawn
        assert all(plain(note) in drawn for note in figure.notes)


def test_nothing_is_wider_than_a_sheet(charts):
    a4 = 718  # dots of 1/96 inch between the margins that the browser leaves
    charts.look(width=a4, medium="print")
    ends = (
        "[...document.querySelectorAll('main *')].map((one) => one.getBoundingClientRect().right)"
    )
    assert charts.run(f"Math.max(...{ends})") <= a4
    charts.look()


def test_without_scripts_figures_are_drawings(browser):
    browser.open(browser.file, scripts=False)
    shown = browser.run(
        "[...document.querySelectorAll('.chart > *')].map((one) =>"
        " [one.nodeName, getComputedStyle(one).display])"
    )
    assert shown == [["svg", "block"]] * len(EVERY)
    assert browser.run("document.querySelectorAll('th button').length") == 0
    browser.open(browser.file)
