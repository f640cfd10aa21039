"""What is made of mtr's raw lines; real output is in tests/traceroute/transcripts."""

import pytest
from traceroute.route_samples import failure, route, samples, totals, warnings

from benchctl.api import FailureKind, ParserError, replay
from benchctl_traceroute.mtr import MtrParser

CLEAN = b"""\
x 0 33000
h 0 10.0.0.2
h 0 10.0.0.2
p 0 2010 33000
x 1 33001
h 1 10.0.1.2
h 1 10.0.1.2
p 1 12030 33001
x 2 33002
h 2 10.0.2.2
h 2 10.0.2.2
p 2 14040 33002
x 0 33003
p 0 2020 33003
x 1 33004
x 2 33005
p 2 14050 33005
"""


def events(
    stdout, stderr=b"", code=0, host="10.0.2.2", most_hops=30, timeout_s=2.0, tcp=False, cuts=()
):
    parser = MtrParser(host, 10, most_hops, 1.0, timeout_s, tcp=tcp)
    return replay(parser, stdout, stderr, code, cuts)


def test_the_destinations_answers_are_the_flows_and_the_routers_only_their_own():
    told = events(CLEAN)
    assert route(told) == [{"10.0.0.2": 2}, {"10.0.1.2": 1}, {"10.0.2.2": 2}]
    assert totals(told) == {"packets_sent": 2, "packets_received": 2, "packets_lost": 0}
    assert [one.metrics["rtt_s"] for one in samples(told, "rtt_s")] == [0.01404, 0.01405]
    assert [one.stream for one in samples(told, "hop_rtt_s")] == [1, 2, 3, 1, 3]
    assert totals(told, 2) == {"hop_probes": 2, "hop_unanswered": 1}
    assert [one.metrics["hops"] for one in samples(told, "hops")] == [2, 2]
    assert not warnings(told)


def test_samples_have_the_times_at_which_the_probes_were_due():
    # A tenth of the interval before mtr knows the path, then a third: it has three hops.
    starts_s = sorted(one.start_s for one in samples(events(CLEAN), "hop_probes"))
    assert starts_s == pytest.approx([0, 0.1, 0.2, 0.2 + 1 / 3, 0.2 + 2 / 3, 1.2], abs=2e-6)
    (first, *_) = samples(events(CLEAN), "rtt_s")
    assert first.end_s - first.start_s == pytest.approx(0.01404)


def test_a_lost_probe_to_the_destination_is_a_loss_and_no_longer_path():
    # The first round went on past the destination; what it lost there was answered one hop later.
    told = events(
        b"x 0 33000\nh 0 10.0.0.2\np 0 2000 33000\nx 1 33001\nx 2 33002\n"
        b"h 2 10.0.2.2\np 2 4000 33002\nx 0 33003\np 0 2000 33003\n"
        b"x 1 33004\nh 1 10.0.2.2\np 1 4000 33004\n"
    )
    assert route(told) == [{"10.0.0.2": 2}, {"10.0.2.2": 2}]
    assert totals(told) == {"packets_sent": 3, "packets_received": 2, "packets_lost": 1}
    assert [one.metrics["hops"] for one in samples(told, "hops")] == [1, 1]


def test_the_answer_to_a_second_syn_is_a_loss():
    again = CLEAN.replace(b"p 2 14050 33005", b"p 2 1014050 33005")
    assert totals(events(again))["packets_lost"] == 0
    assert totals(events(again, tcp=True))["packets_lost"] == 1


def test_a_silent_router_is_a_hop_without_address_and_no_loss():
    told = events(
        b"x 0 33000\nh 0 10.0.0.2\np 0 2000 33000\nx 1 33001\nx 2 33002\n"
        b"h 2 10.0.2.2\np 2 4000 33002\n"
    )
    assert route(told) == [{"10.0.0.2": 1}, {}, {"10.0.2.2": 1}]
    assert totals(told)["packets_lost"] == 0
    assert totals(told, 2) == {"hop_probes": 1, "hop_unanswered": 1}


def test_the_address_of_a_name_is_where_rounds_end():
    told = events(CLEAN, host="server.example.net")
    assert route(told) == route(events(CLEAN))
    assert totals(told) == totals(events(CLEAN))


def test_probes_beyond_the_destination_count_for_it():
    told = events(
        b"x 0 33000\nx 1 33001\nx 2 33002\nx 3 33003\nh 0 10.0.0.2\np 0 2000 33000\n"
        b"h 1 10.0.2.2\np 1 250000 33001\nh 3 10.0.2.2\np 3 250000 33003\n"
    )
    assert route(told) == [{"10.0.0.2": 1}, {"10.0.2.2": 2}]
    assert totals(told) == {"packets_sent": 3, "packets_received": 2, "packets_lost": 1}
    assert totals(told, 2) == {"hop_probes": 3, "hop_unanswered": 1}


def test_several_routes_at_once_are_told_from_one_that_changed():
    lines = [b"x 0 33000\nh 0 10.0.0.2\np 0 900 33000\nx 1 33001\nh 1 10.0.9.9\np 1 990 33001\n"]
    for n, last in enumerate((2, 3, 2, 3), 1):
        seq = 33000 + 2 * n
        lines.append(
            b"x 0 %d\nh 0 10.0.0.%d\np 0 900 %d\nx 1 %d\np 1 990 %d\n"
            % (seq, last, seq, seq + 1, seq + 1)
        )
    turns = events(b"".join(lines), host="10.0.9.9")
    assert warnings(turns) == ["several routes at once: hop 1 is 10.0.0.2 or 10.0.0.3 by turns"]
    assert route(turns) == [{"10.0.0.2": 3, "10.0.0.3": 2}, {"10.0.9.9": 5}]
    once = events(b"".join(lines[:3]), host="10.0.9.9")
    assert warnings(once) == ["the route changed: hop 1 was 10.0.0.2, then 10.0.0.3"]


def test_a_router_that_answers_for_all_behind_it_is_named_by_the_failure():
    lines = b"".join(
        b"x %d %d\nh %d 10.0.%d.2\np %d 900 %d\n" % (n, 33000 + n, n, min(n, 1), n, 33000 + n)
        for n in range(5)
    )
    told = events(lines, host="10.0.7.7", most_hops=5)
    assert route(told) == [{"10.0.0.2": 1}, {"10.0.1.2": 1}]
    assert failure(told).kind is FailureKind.UNREACHABLE
    assert failure(told).message == (
        "no answer from 10.0.7.7; the farthest was 10.0.1.2, hop 2, which answered for all hops"
        " behind it"
    )
    assert not totals(told)


def test_probes_that_may_still_be_answered_at_ctrl_c_are_not_lost():
    rounds = b"".join(b"x %d %d\n" % (n % 3, 33006 + n) for n in range(9))
    whole, cut = (events(CLEAN + rounds, code=code, timeout_s=1.5) for code in (0, -2))
    assert totals(whole)["packets_lost"] == 3
    assert totals(cut)["packets_lost"] == 1  # of the oldest of the three rounds


@pytest.mark.parametrize(
    ("said", "code", "kind"),
    [
        ("mtr: Failed to resolve host: nosuch: Name or service not known", 0, "UNREACHABLE"),
        ("mtr: udp socket connect failed: Network is unreachable", 1, "UNREACHABLE"),
        ("mtr: Failure to start mtr-packet: Invalid argument", 1, "TOOL"),
        ("mtr: non-root users cannot request an interval < 1.0 seconds", 1, "PARAMETER"),
        ("mtr: no such interface", 1, "PARAMETER"),
        ("mtr: invalid local address", 1, "PARAMETER"),
        ("mtr: Unexpected mtr-packet error", 1, "TOOL"),
        ("", -9, "TOOL"),
    ],
)  # fmt: skip
def test_what_stderr_says_decides_the_kind_of_failure(said, code, kind):
    (one,) = events(b"", said.encode(), code)
    assert one.kind is FailureKind[kind]
    assert not one.message.startswith("mtr: mtr:")


def test_an_mtr_that_dies_halfway_has_failed_and_keeps_what_it_measured():
    told = events(CLEAN, b"mtr: unexpected packet generator exit: Broken pipe\n", 1)
    assert failure(told).kind is FailureKind.TOOL
    assert len(samples(told, "rtt_s")) == 2
    assert route(told)


def test_more_probes_than_were_asked_for_are_rejected():
    endless = b"".join(b"x %d %d\n" % (n % 30, 33000 + n) for n in range(301))
    with pytest.raises(ParserError, match="more than the 300 probes"):
        events(endless)
