"""What is made of traceroute's lines; Linux's real output is in tests/traceroute/transcripts.

Those of BSD are written by FreeBSD's source (contrib/traceroute/traceroute.c), whose example the
first is, and as macOS prints them.
"""

import pytest
from traceroute.route_samples import failure, route, samples, totals, warnings

from benchctl.api import Effective, FailureKind, ParserError, replay
from benchctl_traceroute.text import TextParser

LINUX = b"""\
traceroute to 10.0.3.2 (10.0.3.2), 30 hops max, 60 byte packets
 1  10.0.0.2  2.010 ms  2.020 ms  2.030 ms
 2  10.0.1.2  12.010 ms * 10.0.2.2  13.010 ms
 3  * * *
 4  10.0.3.2  36.010 ms *  36.030 ms
"""
# The header goes to stderr, and a second address of a hop has a line of its own.
BSD_HEADER = b"traceroute to 10.0.3.2 (10.0.3.2), 30 hops max, 40 byte packets\n"
BSD = b"""\
 1  10.0.0.2  2.010 ms  2.020 ms  2.030 ms
 2  10.0.1.2  12.010 ms *
    10.0.2.2  13.010 ms
 3  * * *
 4  10.0.3.2  36.010 ms *  36.030 ms
"""


def events(stdout, stderr=b"", code=0, host="10.0.3.2", **how):
    return replay(TextParser(host, 3, 30, 0.01, 2.0), stdout, stderr, code, **how)


def test_each_probe_is_a_sample_of_its_hop_and_the_last_ones_are_the_flows():
    told = events(LINUX)
    assert told[0] == Effective({"address": "10.0.3.2", "packet_bytes": 60})
    assert route(told) == [
        {"10.0.0.2": 3}, {"10.0.1.2": 1, "10.0.2.2": 1}, {}, {"10.0.3.2": 2},
    ]  # fmt: skip
    assert totals(told) == {"packets_sent": 3, "packets_received": 2, "packets_lost": 1}
    assert totals(told, 2) == {"hop_probes": 3, "hop_unanswered": 1}
    assert totals(told, 3) == {"hop_probes": 3, "hop_unanswered": 3}
    assert [one.metrics["rtt_s"] for one in samples(told, "rtt_s")] == [0.03601, 0.03603]
    assert {one.metrics["hops"] for one in samples(told, "hops")} == {3}
    assert warnings(told) == ["the route changed: hop 2 was 10.0.1.2, then 10.0.2.2"]


def test_bsd_prints_the_same_in_other_lines():
    linux = [one for one in events(LINUX) if not isinstance(one, Effective)]
    bsd = [one for one in events(BSD, BSD_HEADER) if not isinstance(one, Effective)]
    assert bsd == linux


def test_a_probe_is_due_when_the_one_before_is_done():
    starts_s = sorted(one.start_s for one in samples(events(LINUX), "hop_probes"))
    # At least 10 ms apart; a star took the timeout of 2 s.
    assert starts_s == pytest.approx(
        [0, 0.01, 0.02, 0.03, 0.04201, 2.04201, 2.05502, 4.05502, 6.05502, 8.05502, 8.09103,
         10.09103], abs=1e-6,
    )  # fmt: skip


def test_the_header_has_the_address_of_a_name():
    named = LINUX.replace(b"to 10.0.3.2", b"to server.example.net")
    assert route(events(named, host="server.example.net")) == route(events(LINUX))
    assert totals(events(BSD, BSD_HEADER, host="server")) == totals(events(LINUX))


def test_names_beside_addresses_are_left_out():
    named = LINUX.replace(b"10.0.1.2  12", b"r2.example.net (10.0.1.2)  12")
    assert route(events(named)) == route(events(LINUX))


@pytest.mark.parametrize(
    ("mark", "meaning"),
    [
        ("!H", "host unreachable (!H)"), ("!N", "network unreachable (!N)"),
        ("!X", "administratively prohibited (!X)"), ("!F-1400", "fragmentation needed (!F-1400)"),
        ("!<12>", "unreachable (!<12>)"),
    ],
)  # fmt: skip
def test_an_error_is_no_hop_and_no_loss_and_is_said(mark, meaning):
    told = events(
        f" 1  10.0.0.2  2.0 ms  2.0 ms  2.0 ms\n 2  10.0.0.2  3000.1 ms {mark} *\n".encode()
    )
    assert route(told) == [{"10.0.0.2": 3}]
    assert warnings(told) == [f"10.0.0.2 answers probes to hop 2: {meaning}"]
    assert failure(told).kind is FailureKind.UNREACHABLE
    assert failure(told).message == "no answer from 10.0.3.2; the farthest was 10.0.0.2, hop 1"
    assert totals(told) == {"packets_in_error": 1}


def test_a_destination_that_forbids_the_probe_has_answered():
    told = events(b" 1  10.0.3.2  2.0 ms !X  2.0 ms !X  2.0 ms !X\n")
    assert totals(told)["packets_received"] == 3
    assert len(warnings(told)) == 1


def test_the_mark_of_an_old_host_is_no_error():
    told = events(b" 1  10.0.3.2  39.5 ms !  39.5 ms !  39.5 ms !\n")
    assert totals(told)["packets_received"] == 3


def test_what_bsd_says_on_stdout_of_a_refused_probe_is_no_garbage():
    told = events(
        b" 1 traceroute: wrote 10.0.3.2 40 chars, ret=-1\n *traceroute: wrote 10.0.3.2 40 chars,"
        b" ret=-1\n *traceroute: wrote 10.0.3.2 40 chars, ret=-1\n *\n",
        b"traceroute: sendto: No route to host\n" * 3,
    )
    assert failure(told).kind is FailureKind.UNREACHABLE


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("nosuch: Name or service not known\nCannot handle \"host\" cmdline arg `nosuch' on "
         "position 1 (argc 1)", "UNREACHABLE"),
        ("nosuch: Temporary failure in name resolution", "UNREACHABLE"),
        ("connect: Network is unreachable", "UNREACHABLE"),
        ("You do not have enough privileges to use this traceroute method.", "TOOL"),
        ("bind: Cannot assign requested address", "PARAMETER"),
        ("setsockopt SO_BINDTODEVICE: No such device", "PARAMETER"),
        ("traceroute: unknown host nosuch", "UNREACHABLE"),
        ("traceroute: Can't find interface en9", "PARAMETER"),
        ("traceroute: icmp socket: Operation not permitted", "TOOL"),
    ],
)  # fmt: skip
def test_what_stderr_says_decides_the_kind_of_failure(said, kind):
    (one,) = events(b"", said.encode(), 1)
    assert one.kind is FailureKind[kind]
    assert one.hint


@pytest.mark.parametrize(
    "line",
    [b" 3  10.0.0.2  1.0 ms\n", b" 1  nobody  1.0 ms\n", b" 1  2.0 ms\n", b"hello\n",
     b" 1  10.0.0.2  1.0 ms  1.0 ms  1.0 ms  1.0 ms\n", b" 1 " + b"*" * 70_000],
)  # fmt: skip
def test_what_traceroute_would_not_print_is_rejected(line):
    with pytest.raises(ParserError):
        events(line)
