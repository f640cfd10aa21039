"""The site of a mesh: what is on its pages, and that an update is the same as all of it anew."""

import re
import shutil
from contextlib import closing
from html import unescape

import pytest
from report.mesh_run import mesh_run
from store.store_support import measured_run

from benchctl.errors import UnwrittenError, UsageError
from benchctl.metrics import Direction
from benchctl.report.mesh.changes import LoggedChange, LogLine
from benchctl.report.mesh.content import file_of, natural, shortened
from benchctl.report.mesh.pages import pair_path
from benchctl.report.mesh.reading import pair_axes, point_text
from benchctl.report.mesh.site import MeshSite, write_site
from benchctl.run.condition import Relative
from benchctl.run.planned import Expectation
from benchctl.run.record import BASELINE
from benchctl.store.manage import delete_run, set_baseline
from benchctl.store.read import Reader

DAY_S = 86_400.0
BEGIN = 1_795_219_200.0
"""2026-11-21, in Unix time."""
TAG = ("schedule:nightly",)


def written(store, directory, told=(), now=BEGIN):
    """Write the site of all runs of a store; returns what it wrote."""
    site = MeshSite(directory)
    with closing(Reader(store)) as reader:
        write_site(reader, reader.outlines(), site, entries=told, now=now)
    return site.written


def text_of(page):
    """Return what a reader sees of a page, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def files(directory):
    return {
        file.relative_to(directory).as_posix(): file.read_bytes()
        for file in directory.rglob("*")
        if file.is_file()
    }


@pytest.fixture(scope="module")
def two_weeks(tmp_path_factory):
    """Make two weeks of a mesh of three hosts, twice a day, and their site.

    From the tenth day on, b to a is slower.
    """
    made = tmp_path_factory.mktemp("mesh")
    for half in range(28):
        slow = half >= 20
        mesh_run(
            made / "runs.sqlite", now=BEGIN + half * DAY_S / 2, tags=TAG,
            times=lambda number, slow=slow: 0.5 if slow and number == 3 else 1.0,
        )  # fmt: skip
    written(made / "runs.sqlite", made / "site")
    return made


@pytest.fixture
def store(two_weeks, tmp_path):
    return shutil.copy(two_weeks / "runs.sqlite", tmp_path / "runs.sqlite")


@pytest.fixture
def site(two_weeks, tmp_path):
    """The site as it is before an update."""
    return shutil.copytree(two_weeks / "site", tmp_path / "site")


def test_a_matrix_has_each_pair_its_mark_and_a_link_to_its_history(store, site):
    mesh_run(store, now=BEGIN + 14 * DAY_S, away="c", tags=TAG)
    written(store, site)
    page = (site / "index.html").read_text()
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", page, re.S)
    marks = [re.findall(r">(✕|•|▼|▲)", row) for row in rows]
    assert marks == [["•", "✕"], ["•", "✕"], ["✕", "✕"]]
    link = f'href="{pair_path(("c", "a"))}"'
    assert page.count(link) == 6  # cells, what to look at, failures: both ways
    assert "host c is away (4)" in text_of(page)
    assert "As of 2026-12-05 00:00" in text_of(page)


def test_the_history_of_a_pair_has_both_ways_the_change_and_the_run(store, site):
    with closing(Reader(store)) as reader:
        run = reader.outlines()[7].name
    change = LoggedChange(
        "throughput_bps", "main", "send", point_text({"pair": "b:a"}), BEGIN + 10 * DAY_S, run,
        3e6, 1.5e6, "worse",
    )  # fmt: skip
    told = [LogLine(BEGIN + 11 * DAY_S, run, "nightly, change: b to a is slower", [change])]
    written(store, site, told)
    page = (site / pair_path(("a", "b"))).read_text()
    seen = text_of(page)
    assert "A → B: 1.00 Mbit/s" in seen
    assert "B → A: 1.50 Mbit/s" in seen
    assert "2026-12-01 00:00: B → A worse: 3.00 Mbit/s to 1.50 Mbit/s (-50 %), with run" in seen
    assert f'<a href="../runs/{run}.html">' in page
    assert (site / "runs" / f"{run}.html").is_file()
    assert page.count('class="band') == 2
    # 14 runs of the newest 7 days, newest first.
    assert len(re.findall(r"<tr><td>", page)) == 14
    index = text_of((site / "index.html").read_text())
    assert index.count("nightly, change: b to a is slower") == 1


def test_without_a_schedule_changes_are_those_of_trend(tmp_path):
    store = tmp_path / "runs.sqlite"
    for half in range(28):
        times = 0.5 if half >= 20 else 1.0
        mesh_run(store, now=BEGIN + half * DAY_S / 2,
                 times=lambda number, times=times: times if number == 3 else 1.0)  # fmt: skip
    written(store, tmp_path / "site")
    seen = text_of((tmp_path / "site" / pair_path(("a", "b"))).read_text())
    assert seen.count("2026-12-01 00:00: B → A worse: 3.00 Mbit/s to 1.50 Mbit/s (-50 %)") == 1
    assert "worse:" not in text_of((tmp_path / "site" / pair_path(("a", "c"))).read_text())


def test_an_update_is_the_same_as_all_of_it_anew(store, site, tmp_path):
    for half in (28, 29, 30):
        mesh_run(store, now=BEGIN + half * DAY_S / 2, away="b" if half == 29 else "", tags=TAG)
        written(store, site)
    with closing(Reader(store)) as reader:
        old = reader.outlines()[-3]
    delete_run(store, old.id)  # of a day that is past
    written(store, site)
    written(store, tmp_path / "anew")
    assert files(site) == files(tmp_path / "anew")


def test_without_a_new_run_pages_still_say_what_came_to_be_known(store, site, tmp_path):
    def pages(directory):  # the report of a run that has ended is written once
        return {name: text for name, text in files(directory).items() if "runs/" not in name}

    anew = tmp_path / "anew"
    with closing(Reader(store)) as reader:
        first = reader.run(reader.outlines()[-1].id)
    set_baseline(store, first)
    told = [LogLine(BEGIN, first.name, "nightly, problem: it is odd")]
    for known in ((), told):
        written(store, site, known)
        written(store, anew, known)
        assert pages(site) == pages(anew)
    (site / pair_path(("a", "b"))).unlink()
    written(store, site, told)
    assert pages(site) == pages(anew)


def test_what_did_not_change_is_left_alone(store, tmp_path):
    first = written(store, tmp_path / "site")
    assert all(first.values())
    again = written(store, tmp_path / "site")
    assert not any(again.values())
    mesh_run(store, now=BEGIN + 13.6 * DAY_S, tags=TAG)
    changed = {name for name, new in written(store, tmp_path / "site").items() if new}
    assert not {name for name in changed if name.startswith("days/") and ".day" in name}
    assert pair_path(("a", "b")) in changed


class Killed(BaseException):
    pass


def test_an_update_that_is_killed_leaves_pages_that_the_next_one_completes(
    store, site, tmp_path, monkeypatch
):
    before = (site / "index.html").read_bytes()
    mesh_run(store, now=BEGIN + 14.5 * DAY_S, away="b", tags=TAG)
    written(store, tmp_path / "anew")
    anew = files(tmp_path / "anew")
    puts, put = [], MeshSite.put

    def killed(self, name, content):
        puts.append(name)
        if len(puts) > place:
            raise Killed
        put(self, name, content)

    links = re.findall(r'href="([^"#]*)"', before.decode())
    for place in range(0, 12, 3):
        left = shutil.copytree(site, tmp_path / f"left-{place}")
        puts.clear()
        with monkeypatch.context() as patched:
            patched.setattr(MeshSite, "put", killed)
            with pytest.raises(Killed):
                written(store, left)
        assert (left / "index.html").read_bytes() == before
        assert all((left / link).is_file() for link in links)
        written(store, left)
        assert files(left) == anew


def test_pages_of_what_is_shown_no_longer_go(site, tmp_path):
    other = tmp_path / "other.sqlite"
    mesh_run(other, hosts="ab", now=BEGIN)
    written(other, site)
    written(other, tmp_path / "anew")
    left, anew = files(site), files(tmp_path / "anew")
    assert {*left} == {*anew}
    assert left["index.html"] == anew["index.html"]


def test_expectations_come_before_the_baseline_and_that_before_what_is_usual(tmp_path):
    store = tmp_path / "runs.sqlite"
    wanted = Expectation("throughput_bps", where={"pair": "a:b"}, at_least=2e6)
    relative = Expectation("throughput_bps", where={"pair": "a:c"}, least=Relative(0.9, BASELINE))
    settings = {"expect": (wanted, relative)}
    name = mesh_run(store, now=BEGIN, settings=settings)
    with closing(Reader(store)) as reader:
        set_baseline(store, reader.find(name))
    mesh_run(store, now=BEGIN + 60, settings=settings, times=lambda number: 0.7)
    written(store, tmp_path / "site")
    page = (tmp_path / "site/index.html").read_text()
    titles = [
        unescape(one) for one in re.findall(r'<td class="[^"]*"><a [^>]*title="([^"]*)"', page)
    ]
    assert "not met: throughput_bps of main at pair=a:b, 700 kbit/s, at least 2.00" in titles[0]
    assert "not met" in titles[1]
    assert "at least 0.9 * baseline" in titles[1]
    assert "30 % below the baseline of 2026-11-21 00:00 (3.00 Mbit/s)" in titles[2]
    assert re.findall(r'<td class="([^"]*)"><a', page) == ["unmet"] * 6


def test_data_that_are_received_are_in_the_cell_of_their_way(tmp_path):
    store = tmp_path / "runs.sqlite"
    mesh_run(store, direction=Direction.RECEIVE, now=BEGIN)
    written(store, tmp_path / "site")
    page = (tmp_path / "site/index.html").read_text()
    # The first trial, of 1 Mbit/s, was a's: data came from b.
    assert 'title="b → a: 1.00 Mbit/s' in page


def test_one_machine_without_a_mesh_has_its_page_too(tmp_path):
    store = tmp_path / "runs.sqlite"
    for number in range(3):
        repeats = {"1": [1e6 * number + 1e6, 2e6], "4": [3e6, None]}
        measured_run(store, repeats, now=BEGIN + number * 60)
    written(store, tmp_path / "site")
    index = (tmp_path / "site/index.html").read_text()
    assert "throughput: n=1" in text_of(index)
    other = next((tmp_path / "site").glob("matrix-*.html"))
    assert "throughput: n=4" in text_of(other.read_text())
    pair = (tmp_path / "site" / pair_path(("local", "local"))).read_text()
    # The mean of the newest run's repeats, and each failure.
    assert "n=1: 2.50 Mbit/s" in text_of(pair)
    assert text_of(pair).count("local → local : failed") == 3
    report = next((tmp_path / "site/runs").iterdir()).read_text()
    assert "What came out" in report


def test_names_that_are_markup_or_very_long_are_text_and_shortened(tmp_path):
    store = tmp_path / "runs.sqlite"
    hosts = ["<script>alert(1)</script>", "x" * 300, "\u202eevil\x1b[2J", 'a" onclick="b', "../.."]
    mesh_run(store, hosts=hosts, now=BEGIN, away=("<script>alert(1)</script>",))
    written(store, tmp_path / "site")
    for name, content in files(tmp_path / "site").items():
        if not name.endswith(".html"):
            continue
        page = content.decode()
        assert "<script>alert" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert not re.search(r"<[^>]*\sonclick=", re.sub(r'"[^"]*"', "", page))
        assert len(name) < 120
    index = (tmp_path / "site/index.html").read_text()
    shown = re.findall(r'<th scope="row"[^>]*><bdi>(.*?)</bdi>', index)
    assert max(len(unescape(one)) for one in shown) <= 24
    assert {file.parent.name for file in (tmp_path / "site").rglob("*.html")} == {
        "site", "pairs", "runs",
    }  # fmt: skip


def test_where_other_files_are_nothing_is_written(tmp_path):
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        MeshSite(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"-o .*file"):
        MeshSite(tmp_path / "file")
    assert (tmp_path / "index.html").read_text() == "mine"


def test_a_folder_that_is_named_as_ours_is_not_taken_for_a_site(tmp_path):
    notes = tmp_path / "days" / "monday.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    (tmp_path / "mesh.css").write_text("mine, too")
    with pytest.raises(UsageError, match="holds other files"):
        MeshSite(tmp_path)
    assert notes.read_text() == "mine"


def test_a_full_disk_is_an_error_and_leaves_no_part(store, site, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    mesh_run(store, now=BEGIN + 14 * DAY_S, tags=TAG)
    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(UnwrittenError, match="No space left"):
        written(store, site)
    assert not [*site.rglob("*.part")]


def test_axes_of_pairs_are_those_whose_values_are_pairs():
    both = [f'{{"pair": "{a}{b}", "streams": {n}}}' for a, b in ("xy", "yx") for n in (1, 4)]
    ends = [(point, (point[10], point[11])) for point in both]
    assert pair_axes(ends) == {"pair"}
    assert pair_axes([('{"n": 1}', ("x", "y")), ('{"n": 1}', ("y", "x"))]) == frozenset()


def test_names_are_sorted_as_people_count_and_shortened_alike():
    assert sorted(["h10", "h9", "a", "H2"], key=natural) == ["a", "H2", "h9", "h10"]
    assert shortened(["a.net", "b.net"]) == {"a.net": "a", "b.net": "b"}
    assert shortened(["a.net", "b.org"]) == {"a.net": "a.net", "b.org": "b.org"}
    assert shortened(["10.0.0.1", "11.0.0.1"])["10.0.0.1"] == "10.0.0.1"
    assert file_of("a", "b.c") != file_of("a-b", "c")
