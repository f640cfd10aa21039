"""A page says what was asked, what came out and why; all text of others is text there."""

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace
from report.sample_report import REPORT, RUN, TRIALS, Stored

from benchctl.analysis.results import FlowReport, TrialReport
from benchctl.report.page import content
from benchctl.report.page.again import command, opening_comment, split_profile
from benchctl.report.page.content import page_of
from benchctl.report.page.html import UPLOT, html_of
from benchctl.report.page.markdown import markdown_of
from benchctl.report.pivot import pivot
from benchctl.report.text.heading import heading
from benchctl.report.text.limiting import limit_lines
from benchctl.report.text.remarks import remarks
from benchctl.run.planned import DeclaredNetwork, Host, LabSettings, PlannedFlow, SshTarget
from benchctl.run.record import Figure, FlowEvent, Happening, Note
from benchctl.run.status import Status

TEXT = """\
# sample.toml
#:schema ./profile.schema.json
# How do one and two streams
# differ?
#
#   streams   reported
#   1         93.4
#
# Theory: not at all.

title = "Streams | to Paris"
# no part of it

# --set duration=3 s
# --only streams=1,2"""
LAB = LabSettings("/home/ada/labs/pair.toml", "[hosts]\na = {}\n", None, True)


def with_profile(text=TEXT, lab=None):
    settings = replace(RUN.settings, lab=lab)
    return replace(RUN, profile_text=text, settings=settings)


@pytest.fixture(scope="module")
def page():
    event = FlowEvent("send", "throughput_bps", Happening.DROP, 12.5, None, 9e7, 4e7)
    flow = PlannedFlow("bulk", "iperf3", "local", "paris", None, "send", 0.0, {"duration": "3s"})
    first, *others = TRIALS
    bulk = replace(
        first.flows[0], events=[event],
        reported={("send", "throughput_bps"): Figure(94e6, "tool")},
    )  # fmt: skip
    ended = replace(first, trial=replace(first.trial, flows=(flow,)), flows=[bulk, first.flows[1]])
    run = replace(with_profile(), facts={"benchctl": "0.1.0", "cpu": {"model": "EPYC"}})
    report = replace(REPORT, run=run, trials=[ended, *others])
    return page_of(
        [Stored(report, [Note(1, None, None, 0.0, "warning", "it rained")])], pictures=False
    )


@pytest.fixture(scope="module")
def html(page):
    return html_of(page)


class Reader(HTMLParser):
    """Collects the visible text, the elements and their attributes."""

    def __init__(self, html):
        super().__init__()
        self.text, self.tags, self._inside = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & {*self._inside}:
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def test_a_page_says_what_show_says(html, page):
    words = Reader(html).words
    report = REPORT
    told = [
        *heading(RUN), *[one for one in remarks(report, tables=True) if one],
        *[cell for row in pivot(report).rows for cell in row],
        *[one.why for one in report.outcomes], "Within the flows: 1 drop",
        "at 12.5 s throughput: drop from 90.0 Mbit/s to 40.0 Mbit/s (-55.6 %)",
        "warning: it rained",
        "iperf3 -c paris", "cpu.model", "EPYC", *limit_lines(report),
    ]  # fmt: skip
    assert [one for one in told if " ".join(one.split()) not in words] == []


def test_what_was_asked_is_in_the_profiles_own_words(html):
    words = Reader(html).words
    assert "How do one and two streams differ?" in words
    assert "streams 1, 2" in words
    assert "bulk iperf3 local paris send duration 3s" in words


def test_the_answer_comes_before_the_tables(page):
    titles = [section.title for section in page.sections]
    assert titles == [
        "What came out", "Summary", "What is behind it", "What was asked", "Trials and commands",
        "Hosts", "Run it again",
    ]  # fmt: skip


def test_the_answer_is_that_of_show(page):
    (said,) = page.sections[0].blocks
    assert said.strong
    assert said.text.startswith("2 of 4 trials measured, 1 failed, 1 not measured.")
    assert "Within the flows: 1 drop." in said.text


def test_the_markdown_has_the_same_sections_and_tables(page, html):
    told = markdown_of(page)
    assert re.findall("^## (.*)", told, flags=re.M) == [one.title for one in page.sections]
    count = sum(tag == "td" for tag, _ in Reader(html).tags)
    cells = [row for row in told.splitlines() if row.startswith("|") and "---" not in row]
    heads = sum(tag == "th" for tag, _ in Reader(html).tags)
    assert sum(row.count(" | ") + 1 for row in cells) == count + heads


EVIL = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)",
    "</title></script><!--", "{{ 7*7 }}{% x %}", "\u2028\u202e\x1b[31m", "שלום 漢字",
    "x" * 300, "[a](javascript:alert(1)) `b` *c* &lt;", "' onmouseover='alert(1)",
]  # fmt: skip


@pytest.fixture(scope="module", params=EVIL, ids=range(len(EVIL)))
def evil(request):
    bad = request.param
    flow = replace(
        TRIALS[0].flows[0].flow, name=bad, client=(bad,), error=bad, effective={bad: bad}
    )
    trial = replace(TRIALS[0].trial, point={bad: bad}, error=bad)
    settings = replace(RUN.settings, values={bad: [bad, "b"]})
    run = replace(
        RUN, name=bad, profile=bad, title=bad, error=bad, settings=settings, tags=(bad,),
        facts={bad: bad}, profile_text=f"# p.toml\n# {bad}\n",
    )  # fmt: skip
    rows = [replace(row, point={bad: bad}, flow=bad) for row in REPORT.summary]
    outcomes = [replace(one, text=bad, why=bad) for one in REPORT.outcomes]
    ended = TrialReport(trial, [FlowReport(flow, {})])
    report = replace(REPORT, run=run, trials=[ended], summary=rows, outcomes=outcomes)
    return bad, page_of([Stored(report, [Note(1, None, None, 0.0, "info", bad)])], pictures=False)


def test_text_of_others_becomes_no_element_and_no_attribute(evil, html):
    bad, page = evil
    reader = Reader(html_of(page))
    known = {tag for tag, _ in Reader(html).tags}
    assert {tag for tag, _ in reader.tags} <= known
    assert sum(tag == "script" for tag, _ in reader.tags) == 2
    attributes = {name for _, some in reader.tags for name in some}
    assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
    links = [some["href"] for tag, some in reader.tags if tag == "a"]
    assert all(re.fullmatch(r"#part-\d+", link) for link in links)
    assert "".join(bad.split()) in "".join(reader.words.split())


def test_text_of_others_becomes_no_markup_in_markdown(evil):
    told = re.sub("(?s)```.*?```", "", markdown_of(evil[1]))
    assert not re.search(r"(?<!\\)<(script|img)|(?<!\\)\]\(|(?<!\\)`b|(?<!\\)\*c", told)


def test_two_runs_are_compared_before_each_is_shown():
    other = replace(REPORT, run=replace(RUN, name="20261122-000000-bbbb", profile="other"))
    page = page_of([Stored(REPORT), Stored(other)], pictures=False)
    titles = [section.title for section in page.sections]
    assert titles == ["Comparison", "A: Streams | to Paris", "B: Streams | to Paris"]
    words = Reader(html_of(page)).words
    assert "verdict" in words
    assert "profile sample other" in words


def test_runs_without_a_common_figure_say_so():
    rows = [replace(row, flow="other", metric="rtt_s") for row in REPORT.summary[:1]]
    page = page_of([Stored(REPORT), Stored(replace(REPORT, summary=rows))], pictures=False)
    assert "These runs have no figure in common." in Reader(html_of(page)).words


@pytest.mark.parametrize(("status", "yet"), [("running", " yet"), ("failed", "")])
def test_a_run_without_anything_is_a_page(status, yet):
    run = replace(REPORT.run, status=Status(status))
    nothing = replace(REPORT, run=run, trials=[], summary=[], outcomes=[])
    page = page_of([Stored(nothing)], pictures=False)
    assert page.sections[0].blocks[0].text == f"Nothing was measured{yet}."
    words = Reader(html_of(page)).words
    for told in ("nothing was measured", "no trial has ended"):
        assert (f"{told} yet" in words, told in words) == (bool(yet), True)


def test_a_table_says_what_it_leaves_out(monkeypatch):
    monkeypatch.setattr(content, "MOST_ROWS", 3)
    words = Reader(html_of(page_of([Stored(REPORT)], pictures=False))).words
    assert "The first 3 of 4 rows; all are in: benchctl export --format csv" in words


def test_a_list_says_what_it_leaves_out(monkeypatch):
    monkeypatch.setattr(content, "MOST_ITEMS", 2)
    assert "and 3 more: benchctl show" in markdown_of(page_of([Stored(REPORT)], pictures=False))


def test_the_files_and_the_command_run_a_run_again():
    run = with_profile(f"{TEXT}\n# --set lab.topology=/home/ada/labs/pair.toml\n"
                       f"# pair.toml\n{LAB.text}", LAB)  # fmt: skip
    files, _ = split_profile(run)
    assert [name for name, _ in files] == ["sample.toml", "pair.toml"]
    assert files[0].text.endswith("# no part of it\n")
    assert files[1].text == LAB.text
    assert command(run) == (
        "benchctl run sample.toml --lab pair.toml --set 'duration=3 s' --only streams=1,2"
        " --set run.seed=7"
    )


def test_bases_are_files_of_their_own():
    text = '# a.toml\nextends = "bases/b.toml"\n\n# b.toml\nextends = "c.toml"\n\n# c.toml\nx = 1\n'
    files, options = split_profile(with_profile(text))
    assert [tuple(one) for one in files] == [
        ("a.toml", 'extends = "bases/b.toml"\n'), ("bases/b.toml", 'extends = "c.toml"\n'),
        ("c.toml", "x = 1\n"),
    ]  # fmt: skip
    assert options == []
    text = '# a.toml\nextends = "public/base"\n\n# base.toml\nx = 1\n'
    files, _ = split_profile(with_profile(text))
    assert [tuple(one) for one in files] == [
        ("a.toml", 'extends = "public/base"\n'), ("public/base", "x = 1\n"),
    ]  # fmt: skip


def test_the_opening_comment_is_split_into_paragraphs():
    assert opening_comment(with_profile()) == [
        "How do one and two streams\ndiffer?", "  streams   reported\n  1         93.4",
        "Theory: not at all.",
    ]  # fmt: skip
    assert opening_comment(with_profile("# p.toml\ntitle = 'x'\n# later\n")) == []
    assert opening_comment(with_profile("")) == []


def test_uplot_is_the_released_file():
    import hashlib

    stated = (UPLOT / "VERSION").read_text().splitlines()
    assert stated[0] == "uPlot 1.6.32"
    sums = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in UPLOT.iterdir()
        if path.name != "VERSION"
    }
    assert dict(reversed(line.split("  ")) for line in stated[1:]) == sums


def test_facts_of_remote_hosts_and_the_way_to_them_are_on_the_page():
    oslo = Host("oslo", "192.0.2.1", reach=SshTarget("ann@oslo"), ports=(5300, 5320))
    run = with_profile()
    settings = replace(run.settings, network=DeclaredNetwork({"local": "127.0.0.1", "oslo": oslo}))
    run = replace(run, settings=settings, hosts={"oslo": {"kernel": "6.12"}})
    page = page_of([Stored(replace(REPORT, run=run), [])], pictures=False)
    text = " ".join(Reader(html_of(page)).text)
    assert "192.0.2.1, ports 5300-5320, by ssh ann@oslo" in text
    assert "Facts of host oslo" in text
    assert "6.12" in text
