"""Golden files hold every format's bytes; ``pytest --update-golden`` writes them anew."""

import copy
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report.sample_document import DOCUMENT, ONE, TWO, entry

from benchctl.report.formats import FORMATS, table
from benchctl.report.pivot import pivot, with_interval
from benchctl.units import scale_of


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_format_has_its_bytes(form, golden):
    golden(f"report/golden/sample.{form}", FORMATS[form](DOCUMENT))


def test_json_reads_back_as_the_document():
    assert json.loads(FORMATS["json"](DOCUMENT)) == DOCUMENT


def test_a_run_without_results_says_so():
    empty = {**DOCUMENT, "summary": [], "trials": [], "expectations": []}
    assert table(empty) == "nothing was measured\n\n4 of 4 trials were not measured\n"


def test_the_senders_count_stands_in_where_the_receivers_is_not_known():
    document = copy.deepcopy(DOCUMENT)
    document["summary"].append(entry(TWO, "sent_bps", 5e6, flow="other"))
    shown = pivot(document)
    assert "sent" in shown.heads
    assert shown.rows[-1][shown.heads.index("sent")] == "5.00 Mbit/s"
    assert shown.rows[-1][shown.heads.index("throughput")] == "-"


@pytest.mark.parametrize(("sent_bps", "shown"), [(79.3e6, True), (89.2e6, False)])
def test_a_rate_that_was_not_reached_stands_beside_what_was_sent(sent_bps, shown):
    document = copy.deepcopy(DOCUMENT)
    document["trials"][0]["flows"][0]["requested"] = {"rate": 45e6, "streams": 2}
    document["trials"][2]["flows"][0]["requested"] = {"rate": "unlimited", "streams": 2}
    document["summary"].append(entry(ONE, "sent_bps", sent_bps))
    table = pivot(document)
    assert ("asked" in table.heads) == ("sent" in table.heads) == shown
    if shown:
        asked, sent = table.heads.index("asked"), table.heads.index("sent")
        assert asked == sent + 1
        assert [(row[sent], row[asked]) for row in table.rows] == [
            ("79.3 Mbit/s", "90.0 Mbit/s"), ("-", "-"), ("-", "-"), ("-", "-"),
        ]  # fmt: skip


def test_what_was_reported_of_the_sender_stands_beside_the_senders_count():
    document = copy.deepcopy(DOCUMENT)
    document["trials"][0]["flows"][0]["reported"] = {"sent_bps": 93.5e6}
    document["summary"].append(entry(ONE, "sent_bps", 94.2e6))
    table = pivot(document)
    sent = table.heads.index("sent")
    assert table.heads[sent + 1] == "reported"
    assert table.rows[0][sent : sent + 2] == ("94.2 Mbit/s", "93.5 Mbit/s")


def test_over_repeats_jains_index_has_its_interval_and_the_trials_their_scatter():
    document = copy.deepcopy(DOCUMENT)
    (index,) = (e for e in document["summary"] if e["metric"] == "fairness_jain")
    index.update(n=3, ci95_low=0.95, ci95_high=1.05)
    document["summary"][0]["stdev"] = 9.4123e6
    document["summary"].append(entry(ONE, "throughput_bps", 10e6, flow="other", stdev=0.2e6))
    document["trials"].append({**document["trials"][0], "start_skew_s": 0.0045})
    lines = table(document).splitlines()
    assert (
        "streams=1, to=paris: Jain's index 0.9998 ±0.050 (reported 0.9930), start skew 4.50 ms at"
        " most; single trials scatter by 10 %"
    ) in lines
    assert not any("one trial says little" in line for line in lines)


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
        ("rtt_s", 4e-13, 1e-13, "0.000 ns ±0.000"),
        ("rtt_s", 0.0, 0.002, "0 ms ±2.0"),
        ("throughput_bps", 999.6e3, 1e3, "1.00 Mbit/s ±0.001"),
        ("fairness_jain", 0.99981, 0.00012, "0.9998 ±0.0001"),
    ],
)
def test_a_mean_and_its_interval_share_a_unit(metric, mean, half, text):
    assert with_interval(entry({}, metric, mean, half=half)) == text


@given(
    st.sampled_from(["throughput_bps", "rtt_s", "window_bytes", "loss_ratio", "retransmits"]),
    st.floats(-1e15, 1e15, allow_nan=False),
    st.floats(0, 1e15, allow_nan=False),
)
@example("rtt_s", 1e-13, 1e-20)
@example("rtt_s", 119.6, 0.078)
def test_the_interval_that_is_shown_is_the_interval(metric, mean, half):
    shown = with_interval(entry({}, metric, mean, half=half))
    before, _, after = shown.partition(" ±")
    factor, unit = scale_of(metric, mean or half)
    assert before.endswith(unit)
    # Two digits, and no finer than a thousandth of the unit.
    assert float(after) == pytest.approx(half / factor, rel=0.051, abs=0.00051)
