"""The site of a mesh in a real browser: no request elsewhere, keys, telephones, dark screens."""

from contextlib import closing

import pytest
from report.browser import Browser
from report.mesh_run import mesh_run

from benchctl.report.mesh.pages import pair_path
from benchctl.report.mesh.site import MeshSite, write_site
from benchctl.store.read import Reader

pytestmark = [pytest.mark.tool("chromium"), pytest.mark.once]
BEGIN, DAY_S = 1_795_219_200.0, 86_400.0
HOSTS = [f"host-{n}.example.net" for n in range(14)]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    path = tmp_path_factory.mktemp("mesh")
    store = path / "runs.sqlite"
    for day in range(10):
        mesh_run(store, hosts=HOSTS, now=BEGIN + day * DAY_S, away=HOSTS[3:4] * (day == 9))
    with closing(Reader(store)) as reader:
        write_site(reader, reader.outlines(), MeshSite(path / "site"), entries=[], now=BEGIN)
    with Browser(path / "profile") as browser:
        browser.site = path / "site"
        browser.look()
        yield browser


def test_scripts_end_well_and_nothing_is_asked_of_any_server(browser):
    for page in ("index.html", pair_path((HOSTS[0], HOSTS[1]))):
        browser.open(browser.site / page)
        assert browser.complaints == []
        assert {url.partition("site/")[0] for url in browser.requests} == {
            f"{browser.site.parent.as_uri()}/"
        }
        assert len(browser.requests) == 3  # the page, its style, its script
        assert browser.run("getComputedStyle(document.querySelector('.skip')).position") == (
            "absolute"
        )


def test_one_tabulator_reaches_a_matrix_and_arrow_keys_its_cells(browser):
    browser.open(browser.site / "index.html")
    stops = "[...document.querySelectorAll('.matrix a')].filter((one) => one.tabIndex === 0)"
    assert browser.run(f"{stops}.length") == 1
    browser.run(f"{stops}[0].focus()")
    told = "document.querySelector('.readout').textContent"
    assert browser.run(told).startswith("host-0.example.net → host-1.example.net: 1.00 Mbit/s")
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft"):
        browser("Input.dispatchKeyEvent", type="keyDown", key=key)
    # The diagonal is no stop: down from the first row is the third.
    assert browser.run(told).startswith("host-2.example.net → host-1.example.net:")
    assert browser.run(f"{stops}.length") == 1


def test_a_phone_need_not_scroll_the_page_sideways(browser):
    browser.look(width=390, height=800)
    for page in ("index.html", pair_path((HOSTS[3], HOSTS[1]))):
        browser.open(browser.site / page)
        assert browser.run("document.documentElement.scrollWidth") <= 390
        small = browser.run(
            "[...document.querySelectorAll('.matrix a')].filter((one) =>"
            " one.getBoundingClientRect().width < 24 || one.getBoundingClientRect().height < 24)"
            ".length"
        )
        assert small == 0  # WCAG 2.2, 2.5.8
    browser.look()


# Relative luminance and contrast (WCAG 2.2), of what is painted.
CONTRAST = """(() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((one) => {
      const share = one / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const clear = (text) => /, 0\\)$/.test(text);
  const paper = (one) => {
    const own = getComputedStyle(one).backgroundColor;
    return clear(own) && one.parentElement ? paper(one.parentElement) : own;
  };
  return Math.min(...[...document.querySelectorAll(".matrix a, .state, .note, .age, p, li")]
    .map((one) => {
      const [a, b] = [light(getComputedStyle(one).color), light(paper(one))];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }));
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_and_marks_have_contrast_on_light_and_dark_screens(browser, dark):
    browser.look(dark=dark)
    for page in ("index.html", pair_path((HOSTS[3], HOSTS[1]))):
        browser.open(browser.site / page)
        assert browser.run(CONTRAST) >= 4.5
    browser.look()


def test_without_scripts_all_is_there(browser):
    browser.open(browser.site / "index.html", scripts=False)
    assert browser.run("document.querySelectorAll('.matrix a[title]').length") == 14 * 13
    browser.open(browser.site / pair_path((HOSTS[0], HOSTS[1])), scripts=False)
    drawn = "[...document.querySelectorAll('.chart path.line')].length"
    assert browser.run(drawn) == 2
    assert "host-0.example.net" in browser.run("document.body.textContent")
    browser.open(browser.site / "index.html")
