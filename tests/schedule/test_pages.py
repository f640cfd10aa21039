"""The log of schedules as pages for the mesh show it."""

from benchctl.report.mesh.changes import LoggedChange
from benchctl.report.mesh.reading import point_text
from benchctl.schedule.book import LogEntry, What
from benchctl.schedule.pages import log_of

FIGURE = {
    "metric": "throughput_bps", "flow": "main", "direction": "send", "point": {"n": "1"},
    "name": "throughput of main at n=1", "before": 1e6, "after": 8e5, "relative": -0.2,
    "verdict": "worse", "since_run": "r7", "since": "2026-11-21T00:25:12.000+00:00",
}  # fmt: skip


def test_what_is_new_is_told_with_its_changes_and_each_run_is_not():
    entries = [
        LogEntry(What.STARTED, 1.0, "nightly", due_time=1.0),
        LogEntry(What.RUN, 2.0, "nightly", run="r9", code=0),
        LogEntry(What.CHANGE, 3.0, "nightly", run="r9", text="it is slower", figures=(FIGURE,)),
        LogEntry(What.FAILING, 4.0, "another", run="r8", text="all", reasons=("all",)),
    ]
    (told,) = log_of(entries, ["nightly"])
    assert (told.time, told.run) == (3.0, "r9")
    assert told.text == "nightly, change: r9: it is slower"
    point = point_text({"n": 1})
    assert told.changes == [
        LoggedChange(
            "throughput_bps", "main", "send", point, 1_795_220_712.0, "r7", 1e6, 8e5, "worse"
        )
    ]


def test_a_figure_of_another_version_is_left_out():
    entry = LogEntry(What.CHANGE, 3.0, "nightly", figures=({"metric": 7}, FIGURE))
    (told,) = log_of([entry], ["nightly"])
    assert len(told.changes) == 1


def test_figures_that_are_found_later_belong_to_their_change():
    later = {**FIGURE, "metric": "jitter_s"}
    entries = [
        LogEntry(What.CHANGE, 3.0, "nightly", run="r9", text="it is slower", figures=(FIGURE,)),
        LogEntry(What.CHANGE, 3.5, "weekly", run="r9", text="another"),
        LogEntry(What.RUN, 4.0, "nightly", run="r10", code=0),
        LogEntry(
            What.ADDED, 5.0, "nightly", run="r10", told_with="r9", text="so is jitter",
            figures=(later,),
        ),
    ]  # fmt: skip
    (told,) = log_of(entries, ["nightly"])
    assert (told.time, told.text) == (3.0, "nightly, change: r9: it is slower; so is jitter")
    assert [change.metric for change in told.changes] == ["throughput_bps", "jitter_s"]
