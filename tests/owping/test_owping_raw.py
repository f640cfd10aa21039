import pytest
from hypothesis import given
from hypothesis import strategies as st
from owping.owping_samples import (
    RECEIVE,
    REPEATABLE,
    SEND,
    START,
    SYNCED,
    UNKNOWN,
    figures,
    packet,
    raw,
    samples,
    transcript,
    warned,
)

from benchctl.analysis.flow.figures import FlowFold
from benchctl.api import (
    Failure,
    FailureKind,
    ParserError,
    Sample,
    Started,
)
from benchctl_owping.figures import spread

UNIX_START = START / 2**32 - 2_208_988_800


def session(*packets):
    return b"".join(packets)


def test_each_packet_is_a_sample():
    stdout, stderr, code = transcript("raw_R")
    # Both directions were asked for: the first hundred lines are one session.
    told = raw(b"".join(stdout.splitlines(keepends=True)[:100]), stderr, code)
    assert told[0] == Started(pytest.approx(17197939890665772141 / 2**32 - 2_208_988_800))
    first, second, *_ = samples(told)
    assert first == Sample(
        0.0,
        0.0,
        {
            "packets_sent": 1,
            "packets_received": 1,
            "owd_s": (17197939890666240292 - 17197939890665772141) / 2**32,
            "hops": 0,
            "clock_synchronized": 0,
        },
        direction=SEND,
    )
    assert second.start_s == (17197939890679722195 - 17197939890665772141) / 2**32
    assert len(samples(told)) == 100
    delays = sorted(sample.metrics["owd_s"] for sample in samples(told))
    known = figures(told)
    assert {name: known[name] for name in known.keys() - {"owd_s", "hops", "ipdv_s"}} == {
        "packets_sent": 100,
        "packets_received": 100,
        "packets_lost": 0,
        "packets_duplicated": 0,
        "packets_reordered": 0,
        "packets_1_reordered": 0,
        "packets_3_reordered": 0,
        "reordered_ratio": 0,
        "loss_ratio": 0,
        "clock_synchronized": 0,
        "pdv_p95_p50_s": delays[94] - delays[49],
    }
    assert warned(told) == []


def test_two_sessions_in_one_output_are_refused():
    with pytest.raises(ParserError, match="two sessions"):
        raw(*transcript("raw_R"))


def test_duplicates_are_counted_and_not_measured_twice():
    told = raw(*transcript("shim_dup_to_R"))
    known = figures(told)
    assert (known["packets_sent"], known["packets_duplicated"]) == (100, 10)
    assert sum("owd_s" in sample.metrics for sample in samples(told)) == 100
    assert sum(s.metrics.get("packets_duplicated", 0) for s in samples(told)) == 10


def test_lost_packets_come_late_and_count_at_their_scheduled_time():
    told = raw(
        session(
            packet(0, 0.0, 0.01), packet(2, 0.2, 0.01), packet(3, 0.3, 0.01), packet(1, 0.1, None)
        ),
        count=4,
    )
    lost = samples(told)[-1]
    assert lost.metrics == {"packets_sent": 1, "packets_lost": 1}
    assert lost.start_s == pytest.approx(0.1)
    known = figures(told)
    assert (known["packets_lost"], known["loss_ratio"]) == (1, 0.25)
    assert known["packets_reordered"] == 0
    # A quarter lost: there is no 95th percentile of the packets sent.
    assert "pdv_p95_p50_s" not in known


def test_reordered_packets_are_those_that_came_after_a_later_one():
    order = [0, 3, 1, 2, 4]
    told = raw(session(*(packet(seq, seq / 10, 0.5) for seq in order)), count=5)
    known = figures(told)
    # 1 and 2 came after 3 (RFC 4737, 3); only 1 came right after a later one (5.3).
    assert known["packets_reordered"] == 2
    assert known["packets_1_reordered"] == 1


def test_negative_delays_are_kept():
    told = raw(session(packet(0, 0.0, -0.063), packet(1, 0.1, -0.042)), count=2)
    delays = [sample.metrics["owd_s"] for sample in samples(told)]
    assert delays == pytest.approx([-0.063, -0.042])
    assert all(sample.start_s == sample.end_s for sample in samples(told))


def test_the_start_is_told_by_the_clock_of_this_host():
    line = packet(0, 0.0, 0.25)
    assert raw(line, direction=SEND, count=1)[0].epoch_s == pytest.approx(UNIX_START)
    assert raw(line, direction=RECEIVE, count=1)[0].epoch_s == pytest.approx(UNIX_START + 0.25)


def test_hops_are_counted_from_the_time_to_live():
    told = raw(packet(0, 0.0, 0.01, ttl=253), count=1)
    assert samples(told)[0].metrics["hops"] == 2


def test_the_error_counts_only_when_both_clocks_are_synchronized():
    told = raw(session(packet(0, 0.0, 0.01, SYNCED), packet(1, 0.1, 0.01, SYNCED)), count=2)
    assert samples(told)[0].metrics["owd_error_s"] == pytest.approx(5.0068e-05)
    assert figures(told)["clock_synchronized"] == 1
    assert figures(told)["owd_error_s"] == pytest.approx(5.0068e-05)
    told = raw(session(packet(0, 0.0, 0.01, SYNCED), packet(1, 0.1, 0.01, UNKNOWN)), count=2)
    assert "owd_error_s" not in samples(told)[1].metrics
    assert figures(told)["clock_synchronized"] == 0


def test_a_session_that_lost_everything_tells_so_and_fails():
    told = raw(session(*(packet(seq, seq / 10, None) for seq in range(3))), count=3)
    assert figures(told)["loss_ratio"] == 1
    assert "clock_synchronized" not in figures(told)
    assert told[-1].kind is FailureKind.UNREACHABLE


def test_a_session_that_ended_early_is_a_measurement_with_a_warning():
    told = raw(packet(0, 0.0, 0.01, SYNCED), count=300)
    assert warned(told) == ["1 of 300 packets were sent"]
    assert not [event for event in told if isinstance(event, Failure)]


def test_no_packets_at_all_is_a_failure():
    (failure,) = raw(b"")
    # As owping ends when owampd is ended, with exit code 0.
    assert failure.kind is FailureKind.PEER


def test_a_killed_owping_keeps_the_packets_it_printed():
    whole = packet(0, 0.0, 0.01, SYNCED)
    told = raw(whole + packet(1, 0.1, 0.01)[:30], code=-9, count=2)
    assert len(samples(told)) == 1
    assert told[-1].kind is FailureKind.TOOL


@pytest.mark.parametrize(
    "line",
    [b"what is this\n", packet(7, 0.0, 0.01), b"0 00000000000000000000 0 1 0 0 1 255\n",
     b"0 99999999999999999999 0 1 0 0 1 255\n", packet(0, 0.0, None)],
)  # fmt: skip
def test_what_owping_does_not_print_is_refused(line):
    with pytest.raises(ParserError):
        raw(packet(0, 0.0, 0.01) + line, count=7)


@REPEATABLE
@given(st.dictionaries(st.integers(-500, 500), st.integers(1, 20), min_size=1))
def test_a_histogram_has_the_figures_that_its_values_have_as_samples(counts):
    # One direction is told packet by packet, both together as histograms: one definition.
    fold = FlowFold()
    for value, count in counts.items():
        for _ in range(count):
            fold.add_sample("client", Sample(0, 0, {"owd_s": value}))
    figure = fold.figures()["send", "owd_s"]
    ours = {**figure.spread, "mean": figure.value}
    assert spread(counts) == {name: pytest.approx(value) for name, value in ours.items()}
