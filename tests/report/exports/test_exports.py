"""Golden files hold every format's bytes; ``pytest --update-golden`` writes them anew."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from report.sample_report import ONE, REPORT, RUN, SUMMARY, TRIALS, TWO, Stored, row
from report.whole import whole

from benchctl.analysis.results import TrialReport
from benchctl.report.output import formats
from benchctl.report.pivot import pivot, with_interval
from benchctl.run.record import Figure
from benchctl.run.status import Status
from benchctl.units import scale_of


def text(form, report):
    return whole(form, Stored(report))


def with_rows(*rows, instead=()):
    kept = [one for one in SUMMARY if one not in instead]
    return replace(REPORT, summary=[*kept, *rows])


WITH_SAMPLES = {"flent", "jsonl", "influx", "parquet", "sqlite"}


@pytest.mark.parametrize("form", sorted({*formats.names()} - WITH_SAMPLES))
def test_every_export_of_a_report_has_its_bytes(form, golden):
    golden(f"report/golden/sample.{form}", text(form, REPORT))


@pytest.mark.parametrize(
    ("status", "yet"), [("planned", " yet"), ("running", " yet"), ("failed", ""), ("died", "")]
)
def test_a_run_without_results_says_so(status, yet):
    run = replace(RUN, status=Status(status))
    empty = replace(REPORT, run=run, summary=[], trials=[], outcomes=[])
    told = f"nothing was measured{yet}\n\n4 of 4 trials were not measured{yet}\n"
    assert text("table", empty) == told


def test_of_a_trial_that_was_cut_short_it_is_not_said_that_nothing_was_measured():
    trial = REPORT.trials[0]
    begun = replace(trial.flows[0], reported={("send", "throughput_bps"): Figure(1e6, "tool")})
    cut = TrialReport(replace(trial.trial, status=Status.INTERRUPTED), [begun])
    run = replace(RUN, status=Status.INTERRUPTED)
    told = text("table", replace(REPORT, run=run, summary=[], trials=[cut], outcomes=[]))
    assert told.splitlines()[0] == "no trial was measured to its end"


@pytest.mark.parametrize("form", ["table", "md"])
def test_a_run_that_failed_as_a_whole_says_why(form):
    run = replace(RUN, status=Status.FAILED, error="the lab cannot be built: no namespaces")
    told = text(form, replace(REPORT, run=run, summary=[], trials=[], outcomes=[]))
    assert told.count("the lab cannot be built: no namespaces") == 1


def test_the_senders_count_stands_in_where_the_receivers_is_not_known():
    shown = pivot(with_rows(row(TWO, "sent_bps", 5e6, flow="other")))
    assert "sent" in shown.heads
    assert shown.rows[-1][shown.heads.index("sent")] == "5.00 Mbit/s"
    assert shown.rows[-1][shown.heads.index("throughput")] == "-"


@pytest.mark.parametrize(("sent_bps", "shown"), [(79.3e6, True), (89.2e6, False)])
def test_a_rate_that_was_not_reached_stands_beside_what_was_sent(sent_bps, shown):
    table = pivot(with_rows(row(ONE, "sent_bps", sent_bps, asked=90e6)))
    assert ("asked" in table.heads) == ("sent" in table.heads) == shown
    if shown:
        asked, sent = table.heads.index("asked"), table.heads.index("sent")
        assert asked == sent + 1
        assert [(one[sent], one[asked]) for one in table.rows] == [
            ("79.3 Mbit/s", "90.0 Mbit/s"), ("-", "-"), ("-", "-"), ("-", "-"),
        ]  # fmt: skip


def test_what_was_reported_of_the_sender_stands_beside_the_senders_count():
    table = pivot(with_rows(row(ONE, "sent_bps", 94.2e6, reported=93.5e6)))
    sent = table.heads.index("sent")
    assert table.heads[sent + 1] == "reported"
    assert table.rows[0][sent : sent + 2] == ("94.2 Mbit/s", "93.5 Mbit/s")


def test_over_repeats_jains_index_has_its_interval_and_the_trials_their_scatter():
    index, rate = SUMMARY[-1], SUMMARY[0]
    report = with_rows(
        replace(index, spread=replace(index.spread, n=3, ci95_low=0.95, ci95_high=1.05)),
        replace(rate, spread=replace(rate.spread, stdev=9.4123e6)),
        row(ONE, "throughput_bps", 10e6, flow="other", stdev=0.2e6),
        instead=(index, rate),
    )
    later = replace(TRIALS[0], trial=replace(TRIALS[0].trial, start_skew_s=0.0045))
    lines = text("table", replace(report, trials=[*TRIALS, later])).splitlines()
    assert (
        "streams=1, to=paris: Jain's index 0.9998 ±0.050 (reported 0.9930), start skew 4.50 ms at"
        " most; single trials scatter by 10 %"
    ) in lines
    assert not any("one trial says little" in line for line in lines)


def test_what_flows_of_a_backend_are_known_by_has_a_column_of_its_own():
    run = replace(RUN, settings=replace(RUN.settings, headlines={"toy": "luck"}))
    report = replace(with_rows(row(ONE, "luck", 7.0, flow="toy")), run=run)
    shown = pivot(report)
    assert shown.rows[-1][shown.heads.index("luck")] == "7"
    assert "luck" not in pivot(with_rows(row(ONE, "luck", 7.0, flow="toy"))).heads


@pytest.mark.parametrize(
    ("metric", "mean", "half", "text"),
    [
        ("throughput_bps", 94.1e6, 0.31e6, "94.1 Mbit/s ±0.31"),
        ("throughput_bps", 94.1e6, None, "94.1 Mbit/s"),
        ("rtt_s", 0.020, 0.002, "20.0 ms ±2.0"),
        ("rtt_s", -0.042, 0.0005, "-42.0 ms ±0.50"),
        ("retransmits", 4, 12.4, "4 ±12"),
        ("loss_ratio", 0.02, 0.004, "2 % ±0.40"),
        ("throughput_bps", 0.0, 0.0, "0 bit/s ±0"),
        ("rtt_s", 320.2, 4.7, "320 s ±4.7"),
        ("fairness_jain", 0.99998, 0.00001, "0.99998 ±0.00001"),
        ("rtt_s", 320.2, None, "5 min 20 s"),
        ("rtt_s", 4e-13, 1e-13, "0.000 ns ±<0.001"),
        ("throughput_bps", 19.1e6, 300.0, "19.1 Mbit/s ±<0.001"),
        ("rtt_s", 0.0, 0.002, "0 ms ±2.0"),
        ("throughput_bps", 999.6e3, 1e3, "1.00 Mbit/s ±0.001"),
        ("fairness_jain", 0.99981, 0.00012, "0.9998 ±0.0001"),
    ],
)
def test_a_mean_and_its_interval_share_a_unit(metric, mean, half, text):
    assert with_interval(row({}, metric, mean, half=half)) == text


@given(
    st.sampled_from(["throughput_bps", "rtt_s", "window_bytes", "loss_ratio", "retransmits"]),
    st.floats(-1e15, 1e15, allow_nan=False),
    st.floats(0, 1e15, allow_nan=False),
)
@example("rtt_s", 1e-13, 1e-20)
@example("rtt_s", 119.6, 0.078)
def test_the_interval_that_is_shown_is_the_interval(metric, mean, half):
    shown = with_interval(figure := row({}, metric, mean, half=half))
    before, _, after = shown.partition(" ±")
    factor, unit = scale_of(metric, mean or half)
    assert before.endswith(unit)
    # Two digits, and no finer than a thousandth of the unit; none only if it is none.
    if after.startswith("<"):
        assert 0 < figure.spread.half / factor < float(after[1:])
        return
    assert bool(float(after)) is bool(figure.spread.half)
    assert float(after) == pytest.approx(figure.spread.half / factor, rel=0.051, abs=0.00051)
