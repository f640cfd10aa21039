"""Each law with what breaks it, and honest data beside its tolerance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.held import held, late_words, sentences
from benchctl.analysis.flow.laws import PathBounds, Terms
from benchctl.metrics import Breach, Sample, Summary
from benchctl.run.record import Figure, counting


def told(**values):
    """Return the tool's figures of direction send."""
    return {("send", name): Figure(float(value), "tool") for name, value in values.items()}


def broken(figures, terms=None):
    """Return the broken figures' metrics with the words, held against the laws."""
    found = held(figures, terms or Terms())
    return {metric: one.broken.words for (_, metric), one in found.items() if one.broken}


def test_more_cannot_arrive_than_was_sent():
    counts = told(packets_sent=739, packets_received=834, packets_lost=-95, loss_ratio=-0.1286)
    assert set(broken(counts)) == {name for _, name in counts}
    assert broken(counts)["packets_received"] == "received 834 of 739 sent"
    assert broken(told(packets_sent=739, packets_received=700, packets_lost=95)) == dict.fromkeys(
        ("packets_sent", "packets_received", "packets_lost"), "received 700 and lost 95 of 739 sent"
    )


@pytest.mark.parametrize(
    ("counts", "terms"),
    [
        ({"packets_sent": 739, "packets_received": 738, "packets_lost": 1}, Terms()),
        # The receiver's thread read its counter two datagrams later than the sender's did.
        ({"packets_sent": 100, "packets_received": 102, "packets_lost": 0}, Terms()),
        ({"packets_sent": 100, "packets_received": 108}, Terms(streams=4)),
        # Those on their way at second 0 count at the receiver alone.
        ({"packets_sent": 1000, "packets_received": 1090}, Terms(1, 1.0, omit_s=1.0)),
        # A full queue of 40 KB at 1 Mbit/s: 280 ms (iperf3, tests/iperf3/transcripts).
        ({"packets_sent": 337, "packets_received": 278, "packets_lost": 87}, Terms(1, 3.0, 1.0)),
        # What nobody knows to have arrived is not known to be lost.
        ({"packets_sent": 1000, "packets_received": 400, "packets_lost": 0}, Terms()),
    ],
)
def test_honest_counts_add_up(counts, terms):
    assert not broken(told(**counts), terms)


@pytest.mark.parametrize(
    ("value", "words"), [(-0.1, "lost -10.0%"), (1.2, "lost 120.0%"), (0.0, None), (1.0, None)]
)
def test_a_loss_is_a_share(value, words):
    assert broken(told(loss_ratio=value)).get("loss_ratio") == words


def test_the_samples_take_the_place_of_what_cannot_be():
    fold = FlowFold()
    counts = {"packets_sent": 739.0, "packets_received": 738.0, "packets_lost": 1.0}
    fold.add_sample("client", Sample(0, 1, counts))
    fold.add_summary(
        Summary({"packets_sent": 739.0, "packets_received": 834.0, "packets_lost": -95.0})
    )
    found = held(fold.figures(), Terms(), fold.others())
    received = found["send", "packets_received"]
    assert (received.value, received.origin, received.rejected) == (738, "samples", 834)
    assert received.broken == Breach("packets add up", "received 834 of 739 sent")
    assert found["send", "packets_sent"].broken is None
    assert counting(found) == found
    (text,) = sentences(found)
    assert "received 834 of 739 sent" in text
    assert "packets_received 738 of the samples, not 834" in text


def test_a_source_that_breaks_the_law_too_takes_no_place():
    fold = FlowFold()
    counts = {"packets_sent": 739.0, "packets_received": 900.0}
    fold.add_sample("client", Sample(0, 1, counts))
    fold.add_summary(Summary({"packets_sent": 739.0, "packets_received": 834.0}))
    found = held(fold.figures(), Terms(), fold.others())
    received = found["send", "packets_received"]
    assert (received.value, received.rejected, received.counts) == (834, None, False)
    assert not counting(found)


def test_the_other_end_takes_the_place_if_the_samples_have_none():
    fold = FlowFold()
    fold.add_summary(Summary({"packets_sent": 739.0, "packets_received": 834.0}))
    fold.add_summary(Summary({"packets_received": 738.0}))  # of the server
    received = held(fold.figures(), Terms(), fold.others())["send", "packets_received"]
    assert (received.value, received.origin, received.rejected) == (738, "other end", 834)


WRONG = Breach("steady rate", "889 kbit/s of 960 kbit/s in its own intervals")


def test_what_its_backend_knows_to_be_wrong_is_replaced_by_what_the_tool_also_says():
    fold = FlowFold()
    fold.add_sample("client", Sample(0, 1, {"throughput_bps": 950e3}))
    fold.add_summary(
        Summary(
            {"throughput_bps": 889e3},
            broken={"throughput_bps": WRONG},
            instead={"throughput_bps": 960e3},
        )
    )
    figure = fold.figures()["send", "throughput_bps"]
    assert (figure.value, figure.origin, figure.rejected) == (960e3, "tool", 889e3)
    assert figure.broken == WRONG
    assert not fold.disagreements()


def test_else_by_what_the_samples_say_and_else_by_nothing():
    fold = FlowFold()
    wrong = Summary({"throughput_bps": 889e3, "sent_bps": 9e5},
                    broken={"throughput_bps": WRONG, "sent_bps": WRONG})  # fmt: skip
    fold.add_summary(wrong)
    fold.add_sample("client", Sample(0, 1, {"throughput_bps": 950e3}))
    found = fold.figures()
    figure = found["send", "throughput_bps"]
    assert (figure.value, figure.origin, figure.rejected) == (950e3, "samples", 889e3)
    assert (found["send", "sent_bps"].value, found["send", "sent_bps"].counts) == (9e5, False)


def test_a_ratio_follows_its_replaced_counts():
    fold = FlowFold()
    fold.add_summary(
        Summary(
            {"packets_sent": 100.0, "packets_lost": 50.0, "loss_ratio": 0.5},
            broken={"packets_lost": WRONG, "loss_ratio": WRONG},
            instead={"packets_lost": 1.0},
        )
    )
    ratio = fold.figures()["send", "loss_ratio"]
    assert (ratio.value, ratio.rejected, ratio.broken) == (0.01, 0.5, WRONG)


UDP = Terms(1, 1.0, 0.0, 1448.0, 1.0)


@pytest.mark.parametrize(
    ("sent", "shown", "terms", "words"),
    [
        # One datagram more in 1 s is 11.6 kbit/s.
        (12e3, 23e3, UDP, None),
        (12e3, 167e3, UDP, "received at 167 kbit/s, sent at 12.0 kbit/s"),
        (64e3, 67.6e3, replace(UDP, duration_s=3.0, lasted_s=3.0), None),
        # A queue of 100 ms that was full at second 0.
        (10e6, 10.9e6, Terms(1, 1.0), None),
        (10e6, 10.3e6, Terms(1, 10.0), "received at 10.3 Mbit/s, sent at 10.0 Mbit/s"),
        (10e6, 11e6, Terms(), None),  # nobody knows for how long
    ],
)
def test_nothing_arrives_faster_than_it_is_sent(sent, shown, terms, words):
    found = broken(told(sent_bps=sent, throughput_bps=shown), terms)
    assert found == ({"throughput_bps": words} if words else {})


def bounded(**bounds):
    return Terms(1, 3.0, lasted_s=3.0, bounds={"send": PathBounds(**bounds)})


def test_a_link_carries_no_more_than_its_rate():
    link = bounded(link_bps=1e6)
    assert broken(told(throughput_bps=1.03e6), link) == {}
    words = "1.05 Mbit/s over a link of 1.00 Mbit/s"
    assert broken(told(throughput_bps=1.05e6), link) == {"throughput_bps": words}
    # A receiver that counts whole blocks of 128 KiB may have counted one more.
    step = 8 * 131072 / 3
    coarse = {("send", "throughput_bps"): Figure(1.05e6, "tool", resolution=step)}
    assert broken(coarse, link) == {}


def test_no_more_is_received_than_came_in_at_the_host():
    counts = told(bytes_received=534_312, throughput_bps=4e6)
    assert broken(counts, bounded(host_bytes=534_400)) == {}
    assert set(broken(counts, bounded(host_bytes=500_000))) == {"bytes_received", "throughput_bps"}


@pytest.mark.parametrize(
    ("asked_s", "shown", "value"),
    [(1.0, 889e3, 960e3), (1.0, 930e3, 930e3), (2.0, 889e3, 889e3)],
)
def test_the_intervals_of_the_same_counter_add_up_to_its_figure(asked_s, shown, value):
    fold = FlowFold()
    fold.add_sample("client", Sample(-1, 0, {"throughput_bps": 9e6}, omitted=True))
    fold.add_sample("client", Sample(0, 1, {"throughput_bps": 960e3}))
    fold.add_summary(Summary({"throughput_bps": shown}))
    terms = Terms(1, asked_s, 1.0, lasted_s=1.0)
    assert held(fold.figures(), terms, fold.others())["send", "throughput_bps"].value == value


def test_a_rate_whose_intervals_lack_a_part_of_the_time_is_not_held_against_them():
    # Nobody read the sender's counters in time at 2 s: the next interval's rate is of both.
    fold = FlowFold()
    for second, sent in ((0, 8e6), (2, 8e6)):
        fold.add_sample("client", Sample(second, second + 1, {"sent_bps": sent}))
    for second in range(3):
        fold.add_sample("client", Sample(second, second + 1, {"throughput_bps": 7.9e6}))
    fold.add_summary(Summary({"sent_bps": 8e6, "throughput_bps": 7.9e6}))
    found = held(fold.figures(), Terms(1, 3.0, lasted_s=3.0), fold.others())
    assert [one.broken for one in found.values()] == [None, None]
    assert not fold.disagreements()


def test_a_count_whose_last_interval_is_missing_is_not_held_against_its_intervals():
    fold = FlowFold()
    for second in range(3):
        fold.add_sample("client", Sample(second, second + 1, {"sent_bps": 8e6}))
    for second in range(2):
        fold.add_sample("client", Sample(second, second + 1, {"bytes_received": 1e6}))
    fold.add_summary(Summary({"sent_bps": 8e6, "bytes_received": 3e6}))
    found = held(fold.figures(), Terms(1, 3.0, lasted_s=3.0), fold.others())
    assert found["send", "bytes_received"].broken is None


def delays(name="rtt_s", value=2.0, resolution=None, **spread):
    return {("send", name): Figure(value, "tool", spread, resolution=resolution)}


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (delays(min=1.0, median=2.0, p95=3.0, max=4.0), None),
        (delays(min=2.0, median=2.0, p95=2.0, max=2.0), None),
        (delays(value=2.0000000000000004, min=1.0, max=2.0), None),
        (delays(min=1.0, median=0.5, max=4.0), "median 500 ms below min 1.00 s"),
        (delays(min=1.0, median=5.0, max=4.0), "max 4.00 s below median 5.00 s"),
        (delays(min=-3.0, median=-2.0, max=-1.0, value=-2.0), "-3.00 s"),
        (delays(value=9.0, min=1.0, max=4.0), "max 4.00 s below mean 9.00 s"),
        # owping rounds a median away from zero to its buckets.
        (delays(min=3e-5, median=1e-4, max=4e-5, value=1e-4, resolution=1e-4), None),
    ],
)
def test_a_median_lies_between_the_least_and_the_greatest(figure, words):
    assert broken(figure) == ({"rtt_s": words} if words else {})


def test_no_round_trip_is_shorter_than_the_least():
    own = {**delays("tcp_rtt_s", min=0.010), **delays("tcp_min_rtt_s", 0.02, min=0.01001)}
    assert broken(own) == {}
    own |= delays("tcp_rtt_s", min=0.005)
    assert broken(own) == {"tcp_rtt_s": "5.00 ms, and 10.0 ms is the stream's least"}
    path = bounded(rtt_s=0.020)
    assert broken(delays(min=0.01985), path) == {}
    assert broken(delays(min=0.015), path) == {"rtt_s": "15.0 ms on a path of 20.0 ms"}


def test_jitter_is_no_more_than_delays_differ():
    path = delays("owd_s", 0.011, min=0.010, max=0.012)
    assert broken({**path, **told(jitter_rfc3550_s=0.002)}) == {}
    words = "5.09 s of delays that differ by 2.00 ms"
    assert broken({**path, **told(jitter_rfc3550_s=5.09)}) == {"jitter_rfc3550_s": words}
    # It remembers datagrams of the omitted part, whose delays do not count.
    assert broken({**path, **told(jitter_rfc3550_s=0.003)}, Terms(1, 1.0, 1.0)) == {}
    # Without delays, no two datagrams are further apart than the flow lasts.
    assert broken(told(jitter_rfc3550_s=3.9), Terms(1, 3.0)) == {}
    late = broken(told(jitter_rfc3550_s=5.09), Terms(1, 3.0))
    assert late == {"jitter_rfc3550_s": "5.09 s in a flow of 3.00 s"}


def test_what_is_known_in_steps_has_them():
    counts = told(throughput_bps=12e3, packets_sent=50, packets_received=48, packets_lost=1,
                  loss_ratio=0.02)  # fmt: skip
    found = held(counts, UDP)
    assert found["send", "throughput_bps"].resolution == pytest.approx(1448 * 8)
    assert found["send", "loss_ratio"].resolution == pytest.approx(0.02)
    assert found["send", "packets_unaccounted"].value == 1
    own = {("send", "throughput_bps"): Figure(1e6, "tool", resolution=5.0)}
    assert held(own, UDP)["send", "throughput_bps"].resolution == 5.0


@pytest.mark.parametrize(
    ("asked_s", "lasted_s", "words"),
    [
        (3.0, 8.45, "asked for 3.00 s, lasted 8.45 s"),
        (3.0, 4.5, ""),  # a queue drains
        (None, 8.0, ""),
    ],
)
def test_a_flow_that_lasted_long_says_so(asked_s, lasted_s, words):
    assert late_words(Terms(1, asked_s, lasted_s=lasted_s)) == words


NAMES = ("packets_sent", "packets_received", "packets_lost", "loss_ratio", "throughput_bps",
         "sent_bps", "bytes_received", "rtt_s", "tcp_rtt_s", "tcp_min_rtt_s", "owd_s",
         "jitter_rfc3550_s")  # fmt: skip
VALUES = st.floats(-2.0, 1e4, allow_subnormal=False)
SPREADS = st.dictionaries(st.sampled_from(("min", "mean", "median", "p95", "max")), VALUES)
FLOWS = st.lists(
    st.one_of(
        st.builds(Summary, st.dictionaries(st.sampled_from(NAMES), st.one_of(VALUES, SPREADS))),
        st.builds(
            lambda start, metrics: Sample(start, start + 1.0, metrics),
            st.integers(0, 5), st.dictionaries(st.sampled_from(NAMES), VALUES),
        ),
    ),
    max_size=8,
)  # fmt: skip
TERMS = st.builds(
    Terms, st.integers(1, 4), st.sampled_from((None, 1.0, 3.0)), st.sampled_from((0.0, 1.0)),
    st.sampled_from((None, 1448.0)), st.sampled_from((None, 1.0, 8.0)),
    st.just({"send": PathBounds(1e3, 0.01, 1e3)}),
)  # fmt: skip


@given(FLOWS, TERMS)
def test_whatever_a_tool_reports_nothing_that_counts_breaks_a_law(events, terms):
    fold = FlowFold()
    for event in events:
        if isinstance(event, Sample):
            fold.add_sample("client", event)
        else:
            fold.add_summary(event)
    told, others = fold.figures(), fold.others()
    found = held(told, terms, others)
    assert found.keys() >= told.keys()
    again = held(counting(found), terms, others)
    assert [key for key, one in again.items() if one.broken and not one.counts] == []
    for key, one in told.items():  # what the tool said can always be found
        assert one.value in (found[key].value, found[key].rejected)
