from collections import Counter

import pytest
from ping.ping_samples import BSD, NAMES, events, only, said

from benchctl.analysis.flow.figures import FlowFold
from benchctl.api import (
    Direction,
    Effective,
    Failure,
    FailureKind,
    ParserError,
    Sample,
    Started,
    Summary,
    Warn,
    replay,
)
from benchctl_ping.parser import PingParser

HEADER = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n"


def samples(told):
    return [event for event in told if isinstance(event, Sample)]


def warnings(told):
    return [event.message for event in told if isinstance(event, Warn)]


def sums(told):
    """Return the sums of the counts over all samples."""
    total = Counter()
    for sample in samples(told):
        total.update({k: v for k, v in sample.metrics.items() if k.startswith("packets")})
    return total


def test_each_reply_is_a_sample_and_the_statistics_are_the_summary():
    told = events("v4_D")
    assert only(Effective, told[:1]).settings == {
        "address": "127.0.0.1",
        "length_bytes": 56,
        "count": 1000,
    }
    first, second, *_, last = samples(told)
    assert first.metrics == {
        "packets_sent": 1,
        "packets_received": 1,
        "rtt_s": pytest.approx(38e-6),
        "ttl": 64,
    }
    assert first.direction is Direction.ROUND_TRIP
    assert len(samples(told)) == 20
    assert only(Summary, told) == Summary(
        {
            "packets_sent": 20,
            "packets_received": 20,
            "packets_lost": 0,
            "packets_duplicated": 0,
            "packets_in_error": 0,
            "loss_ratio": 0,
            "rtt_s": {
                "min": 17e-6,
                "mean": 25e-6,
                "max": 39e-6,
                "median": pytest.approx(23e-6),
                "p95": pytest.approx(38.05e-6),
            },
            "rtt_mdev_s": pytest.approx(6e-6),
        },
        Direction.ROUND_TRIP,
    )
    # The stamps tell the time: 3.867 s passed, though 19 intervals are 3.8 s.
    assert (first.start_s, first.end_s) == (0, 38e-6)
    assert second.end_s == pytest.approx(1795218653.344378 - 1795218653.141430, abs=1e-6)
    assert last.end_s == pytest.approx(3.887, abs=0.01)
    assert only(Started, told).epoch_s == pytest.approx(1795218653.141430, abs=1e-6)
    assert told[-2].settings == {"interval_s": pytest.approx(3.886 / 19, abs=1e-3)}


def test_the_round_trip_times_of_the_last_line_are_not_rounded_to_those_of_the_replies():
    # Replies of 100 ms and more have whole milliseconds.
    told = events("v4_D_124ms")
    fold = FlowFold()
    for sample in samples(told):
        fold.add_sample("client", sample)
    fold.add_summary(only(Summary, told))
    figure = fold.figures()["round-trip", "rtt_s"]
    assert figure.value == pytest.approx(0.124021)
    assert figure.spread == {
        "min": pytest.approx(0.123310),
        "median": pytest.approx(0.124),
        "p95": pytest.approx(0.1252),
        "max": pytest.approx(0.127709),
    }


def test_what_the_replies_give_lies_between_least_and_most():
    replies = "".join(
        f"64 bytes from 192.0.2.1: icmp_seq={seq} ttl=64 time=124 ms\n" for seq in (1, 2, 3)
    )
    end = "3 packets transmitted, 3 received, 0% packet loss, time 400ms\n"
    times = "rtt min/avg/max/mdev = 124.310/124.320/124.330/0.008 ms\n"
    rtt_s = only(Summary, said(replies + end + times)).metrics["rtt_s"]
    assert rtt_s["median"] == rtt_s["p95"] == rtt_s["min"] == pytest.approx(0.12431)


def test_a_last_line_that_counts_duplicates_too_leaves_the_figures_to_the_replies():
    replies = (
        "64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=10.0 ms\n"
        "64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=90.0 ms (DUP!)\n"
    )
    end = "1 packets transmitted, 1 received, +1 duplicates, 0% packet loss, time 0ms\n"
    times = "rtt min/avg/max/mdev = 10.000/50.000/90.000/40.000 ms\n"
    told = said(replies + end + times)
    fold = FlowFold()
    for sample in samples(told):
        fold.add_sample("client", sample)
    fold.add_summary(only(Summary, told))
    figure = fold.figures()["round-trip", "rtt_s"]
    assert (figure.value, figure.origin) == (pytest.approx(0.01), "samples")


def test_without_stamps_the_sequence_number_tells_the_time():
    told = events("v4_n_size")
    assert [sample.start_s for sample in samples(told)] == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert samples(told)[1].end_s == pytest.approx(0.200022)
    assert not [event for event in told if isinstance(event, Started)]


def test_the_first_stamp_counts_from_the_first_probe_even_when_its_reply_is_missing():
    told = said(
        HEADER
        + "[100.200000] no answer yet for icmp_seq=1\n"
        + "[100.210000] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=60 time=10.0 ms\n"
    )
    assert only(Started, told).epoch_s == pytest.approx(100.0)
    assert only(Sample, told).start_s == pytest.approx(0.2)


@pytest.mark.parametrize("name", NAMES)
def test_sums_over_the_samples_equal_the_summary(name):
    told = events(name)
    summaries = [event.metrics for event in told if isinstance(event, Summary)]
    if summaries and sums(told):
        for count in ("packets_sent", "packets_received", "packets_lost", "packets_duplicated"):
            assert sums(told)[count] == summaries[0][count], count


def test_lost_probes_are_placed_at_their_time_one_sample_for_each_run():
    replies = "".join(
        f"64 bytes from 192.0.2.1: icmp_seq={seq} ttl=60 time=1.00 ms\n" for seq in (1, 4, 5)
    )
    statistics = "7 packets transmitted, 3 received, 57.1429% packet loss, time 6006ms\n"
    told = said(HEADER + replies + statistics, interval_s=1.0)
    lost = [event for event in samples(told) if "packets_lost" in event.metrics]
    # ping needed 1.001 s from probe to probe.
    assert [(s.start_s, s.end_s, s.metrics["packets_lost"]) for s in lost] == [
        (1.001, 3.003, 2),
        (5.005, 7.007, 2),
    ]
    assert only(Summary, told).metrics["loss_ratio"] == 4 / 7


def test_replies_that_were_never_shown_are_not_taken_for_lost():
    told = events("v4_q")
    assert samples(told) == []
    assert only(Summary, told).metrics["packets_received"] == 10


def test_a_duplicate_is_counted_and_its_time_is_not_a_measurement():
    reply = "64 bytes from 192.0.2.1: icmp_seq=1 ttl=60 time=1.00 ms"
    told = said(
        f"{HEADER}{reply}\n{reply} (DUP!)\n"
        "1 packets transmitted, 1 received, +1 duplicates, 0% packet loss, time 0ms\n"
        "rtt min/avg/max/mdev = 1.000/1.000/1.000/0.000 ms, pipe 2\n"
    )
    assert [sample.metrics.get("rtt_s") for sample in samples(told)] == [0.001, None]
    assert sums(told)["packets_duplicated"] == 1
    assert only(Summary, told).metrics["packets_duplicated"] == 1


def test_marks_and_corrupt_data_are_told_once():
    reply = "64 bytes from 192.0.2.1: icmp_seq={} ttl=60 time=1.00 ms{}\n"
    told = said(
        HEADER
        + reply.format(1, " (DIFFERENT ADDRESS!)")
        + reply.format(2, " (DIFFERENT ADDRESS!)")
        + reply.format(3, " (BAD CHECKSUM!)")
        + "20 bytes from 192.0.2.1: icmp_seq=4 ttl=60 (truncated)\n"
        + reply.format(5, "")
        + "wrong data byte #30 should be 0x1e but was 0x0\n#16\t10 11 \n"
        + "5 packets transmitted, 4 received, +1 corrupted, 20% packet loss, time 800ms\n"
    )
    assert warnings(told) == [
        "ping marks a reply: (DIFFERENT ADDRESS!)",
        "ping marks a reply: (BAD CHECKSUM!)",
        "ping marks a reply: (truncated)",
        "a reply carried other data than was sent",
    ]
    # A reply with a bad checksum is no reply, a cut one is one without a time.
    assert [sorted(sample.metrics) for sample in samples(told)][2:] == [
        ["packets_received", "packets_sent", "ttl"],
        ["packets_received", "packets_sent", "rtt_s", "ttl"],
        ["packets_lost", "packets_sent"],
    ]


def test_sequence_numbers_go_on_after_65535():
    arrived = [*range(1, 65_500, 1000), *range(65_500, 65_540)]
    lines = [f"64 bytes from 192.0.2.1: icmp_seq={n % 65536} ttl=60\n" for n in arrived]
    told = said(
        f"{HEADER}{''.join(lines)}65539 packets transmitted, {len(arrived)} received, 99% loss\n",
        count=65539,
        interval_s=0.001,
    )
    assert sums(told) == {
        "packets_sent": 65539,
        "packets_received": len(arrived),
        "packets_lost": 65539 - len(arrived),
    }
    last = max(each.start_s for each in samples(told) if "packets_received" in each.metrics)
    assert last == pytest.approx(65.538)


def test_notices_of_silence_carry_the_sequence_number_over_a_long_outage():
    silence = "".join(f"no answer yet for icmp_seq={n % 65536}\n" for n in range(1, 70001))
    reply = f"64 bytes from 192.0.2.1: icmp_seq={70001 % 65536} ttl=60 time=1.00 ms\n"
    told = said(
        f"{HEADER}{silence}{reply}70001 packets transmitted, 1 received, 99.9986% packet loss\n",
        count=70001,
        interval_s=0.001,
    )
    lost = samples(told)[-1]
    assert (lost.start_s, lost.end_s, lost.metrics["packets_lost"]) == (0, 70.0, 70000)


def test_payloads_too_short_for_a_time_give_replies_without_one():
    told = events("v4_size_small_s8")
    assert all("rtt_s" not in sample.metrics for sample in samples(told))
    assert "rtt_s" not in only(Summary, told).metrics
    assert only(Summary, told).metrics["packets_received"] == 3


def test_the_bsd_family_is_read_as_well():
    told = replay(PingParser(3, 1.0, first_seq=0), BSD)
    assert only(Effective, told).settings["address"] == "192.0.2.1"
    assert [(s.start_s, s.metrics.get("rtt_s")) for s in samples(told)] == [
        (0, 0.012345),
        (2, 0.014),
        (2, None),
        (1, None),
    ]
    assert only(Summary, told).metrics["packets_duplicated"] == 1
    assert only(Summary, told).metrics["rtt_s"]["max"] == 0.0145


def test_bsd_replies_after_the_timeout_count_as_lost():
    told = replay(
        PingParser(2, 1.0, first_seq=0),
        b"PING 192.0.2.1 (192.0.2.1): 56 data bytes\n"
        b"64 bytes from 192.0.2.1: icmp_seq=0 ttl=61 time=12.345 ms\n"
        b"2 packets transmitted, 2 packets received, 0.0% packet loss, "
        b"1 packets out of wait time\n",
    )
    assert only(Summary, told).metrics["packets_lost"] == 1
    assert sums(told)["packets_lost"] == 1


def test_bsd_errors_are_counted_by_their_lines():
    told = replay(
        PingParser(2, 1.0, first_seq=0),
        b"PING 192.0.2.1 (192.0.2.1): 56 data bytes\n"
        b"92 bytes from 198.51.100.7: Destination Host Unreachable\n"
        b"Vr HL TOS  Len   ID Flg  off TTL Pro  cks      Src      Dst\n"
        b" 4  5  00 5400 a1b2   0 0000  3f  01 0000 198.51.100.1  192.0.2.1\n\n"
        b"92 bytes from 198.51.100.7: Destination Host Unreachable\n"
        b"2 packets transmitted, 0 packets received, 100.0% packet loss\n",
        exit_code=2,
    )
    assert warnings(told) == ["198.51.100.7 answers: Destination Host Unreachable"]
    assert only(Summary, told).metrics["packets_in_error"] == 2
    assert told[-1].kind is FailureKind.UNREACHABLE


UNREACHABLE, PARAMETER, TOOL = FailureKind.UNREACHABLE, FailureKind.PARAMETER, FailureKind.TOOL


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("unknown_host", UNREACHABLE, "Name or service not known"),
        ("unknown_host_dns_down", UNREACHABLE, "Temporary failure in name resolution"),
        ("net_unreachable", UNREACHABLE, "Network is unreachable"),
        ("v4_I_bad_iface", PARAMETER, "SO_BINDTODEVICE nosuch0: No such device"),
        ("v4_I_nonlocal", PARAMETER, "Cannot assign requested address"),
        ("bad_flag", PARAMETER, "invalid option -- 'K'"),
        ("broadcast_noperm", PARAMETER, "broadcast"),
        ("sigTERM", TOOL, "ended by signal 15"),
        ("sigQUIT", TOOL, "ended by signal 15"),
        ("timeout_blackhole_q", UNREACHABLE, "no reply to 3 probes"),
        ("dest_host_unreachable_arp", UNREACHABLE, "Destination Host Unreachable"),
        ("dest_net_unreachable", UNREACHABLE, "3 of them in error"),
        ("v6_addr_unreachable", UNREACHABLE, "Destination unreachable: Address unreachable"),
        ("frag_needed_local", PARAMETER, "message too long, mtu=1500"),
        ("frag_needed_remote", PARAMETER, "Frag needed and DF set (mtu = 1280)"),
        ("v4_toobig", UNREACHABLE, "no reply to 2 probes"),
    ],
)
def test_a_failure_says_what_and_why_in_the_words_of_ping(name, kind, words):
    failure = events(name)[-1]
    assert isinstance(failure, Failure)
    assert failure.kind is kind
    assert words in failure.message


def test_every_other_transcript_is_a_measurement():
    failed = {name for name in NAMES if isinstance(events(name)[-1], Failure)}
    assert set(NAMES) - failed == {
        "W_timeout", "v4_A_adaptive_q", "v4_D", "v4_D_124ms", "v4_I_src", "v4_M_do_big", "v4_O_n",
        "v4_U",
        "v4_flood_q", "v4_localhost_name", "v4_n_size", "v4_q", "v4_size_small_s8", "v6_D",
        "veth_routed_ok", "veth_routed_v6_ok", "w_deadline",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stderr", "code", "kind"),
    [
        (b"ping: cannot flood, minimal interval for user must be >= 2 ms, use -i 0.002\n", 2,
         PARAMETER),
        (b"ping: cannot flood; minimal interval allowed for user is 200ms\n", 2, PARAMETER),
        (b"ping: -i interval too short: Operation not permitted\n", 77, PARAMETER),
        (b"ping: socktype: SOCK_RAW\nping: socket: Operation not permitted\n"
         b"ping: => missing cap_net_raw+p capability or setuid?\n", 2, TOOL),
        (b"ping: cannot resolve nosuch: Unknown host\n", 68, UNREACHABLE),
        (b"ping: ::1: Address family for hostname not supported\n", 2, PARAMETER),
        (b"ping: unknown iface: nosuch0\n", 2, PARAMETER),
        (b"ping: something new\n", 2, TOOL),
        (b"", 3, TOOL),
    ],
)  # fmt: skip
def test_complaints_of_other_versions_are_understood(stderr, code, kind):
    (failure,) = said("", stderr, code)
    assert failure.kind is kind


def test_a_ping_without_replies_still_gives_its_summary_first():
    told = events("dest_host_unreachable_arp")
    summary = only(Summary, told)
    assert summary.metrics["packets_in_error"] == 2
    assert summary.metrics["loss_ratio"] == 1
    assert told.index(summary) == len(told) - 2
    assert warnings(told) == ["10.77.1.1 answers: Destination Host Unreachable"]


def test_a_killed_ping_keeps_its_samples():
    told = events("sigTERM")
    assert len(samples(told)) == 8
    assert only(Failure, told).kind is TOOL


def test_errors_among_replies_are_warnings_and_the_measurement_stands():
    told = said(
        HEADER
        + "64 bytes from 192.0.2.1: icmp_seq=1 ttl=60 time=1.00 ms\n"
        + "From 198.51.100.7 icmp_seq=2 Time to live exceeded\n"
        + "From 198.51.100.7: icmp_seq=3 Redirect Host(New nexthop: 198.51.100.9)\n"
        + "64 bytes from 192.0.2.1: icmp_seq=3 ttl=60 time=1.00 ms\n"
        + "3 packets transmitted, 2 received, +1 errors, 33.3333% packet loss, time 400ms\n",
        b"ping: sendmsg: No buffer space available\n" * 3,
    )
    assert warnings(told) == [
        "198.51.100.7 answers: Time to live exceeded",
        "198.51.100.7 answers: Redirect Host(New nexthop: 198.51.100.9)",
        "sendmsg: No buffer space available",
    ]
    assert only(Summary, told).metrics["packets_in_error"] == 1
    assert not [event for event in told if isinstance(event, Failure)]


def test_a_ping_stopped_before_its_first_probe_measured_nothing():
    told = said(HEADER + "0 packets transmitted, 0 received, time 0ms\n")
    assert told[-1] == Failure(TOOL, "ping ended before it sent a probe")
    assert "loss_ratio" not in only(Summary, told).metrics


@pytest.mark.parametrize(
    "statistics",
    ["3 packets transmitted, 4 received, 0% packet loss",
     "2000 packets transmitted, 4 received, 0% packet loss"],
)  # fmt: skip
def test_statistics_that_cannot_be_are_refused(statistics):
    with pytest.raises(ParserError):
        said(HEADER + statistics + "\n")
