"""What an emulator counted of itself, and what the figures can bear of it."""

from dataclasses import replace

import pytest

from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.verify.strain import Carried, between, strains_of

FINE = DirectionCounters(
    arrived=10_000, delivered=9_000, dropped=800, lost=200, queued=0, queue_max=67,
    late=45, late_max_ns=20_000_000, missed=0, refused=0,
)  # fmt: skip


def strain(**counters):
    return Carried("far", "r", "b", replace(FINE, **counters)).strain


def test_what_the_link_itself_drops_and_loses_and_few_late_frames_can_be_borne():
    assert strain() == ""
    assert strain(late=0, delivered=0) == ""


@pytest.mark.parametrize(
    ("counters", "said"),
    [
        ({"late": 46}, "46 of 9000 frames late, by up to 20.0 ms"),
        ({"late": 1, "late_max_ns": 20_000_001}, "1 of 9000 frames late, by up to 20.0 ms"),
        ({"missed": 1}, "1 frame lost by the emulator"),
        ({"missed": 1, "refused": 2}, "3 frames lost by the emulator"),
        ({"late": 46, "refused": 2}, "2 frames lost by the emulator; 46 of 9000 frames late, by"),
    ],
)
def test_what_the_emulator_did_beyond_that_is_said(counters, said):
    assert strain(**counters).startswith(f"link far, r to b: {said}")


def test_of_hundreds_of_strained_links_the_worst_are_named_and_the_others_counted():
    fine = [Carried("fine", "r", "b", FINE)]
    late = [
        Carried(f"l{n}", "r", "b", replace(FINE, late_max_ns=n * 10**6)) for n in range(21, 221)
    ]
    found = strains_of([*fine, *late])
    assert [text.partition(",")[0] for text in found[:-1]] == [
        f"link l{n}" for n in range(220, 215, -1)
    ]
    assert found[-1] == "195 more directions of links"
    assert strains_of(fine) == []
    lost = Carried("lost", "r", "b", replace(FINE, missed=1))  # worse than any delay
    assert strains_of([*late, lost])[0].startswith("link lost, ")
    assert len(strains_of(late[:5])) == 5


def test_what_an_emulator_does_not_count_breaks_no_rule():
    uncounted = {"late": None, "late_max_ns": None, "missed": None, "queue_max": None}
    assert strain(**uncounted) == ""
    entry = Carried("far", "r", "b", replace(FINE, **uncounted)).as_entry()
    assert (entry["late"], entry["late_max_s"], entry["kept"]) == (None, None, True)
    assert strain(**uncounted, refused=1) != ""


def test_between_two_askings_counts_are_differences_and_the_greatest_values_are_their_own():
    before = replace(
        FINE, arrived=100, delivered=60, late=5, queued=30, late_max_ns=7, queue_max=50
    )
    grown = between(before, replace(FINE, missed=None))
    assert (grown.arrived, grown.delivered, grown.late) == (9_900, 8_940, 40)
    assert (grown.queued, grown.queue_max, grown.late_max_ns) == (0, 67, 20_000_000)
    assert grown.missed is None
