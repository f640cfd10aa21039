"""Golden files hold every format's bytes; ``pytest --update-golden`` writes them anew."""

import copy
import json

import pytest
from report.sample_document import DOCUMENT, TWO, entry

from benchctl.report.formats import FORMATS, table
from benchctl.report.pivot import pivot, with_interval


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
    ],
)
def test_a_mean_and_its_interval_share_a_unit(metric, mean, half, text):
    assert with_interval(entry({}, metric, mean, half=half)) == text
