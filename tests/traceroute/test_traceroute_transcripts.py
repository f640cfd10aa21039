"""What the tools really printed, in labs with three routers and a link that loses 20 % each way.

`benchctl backends record` took it down: mtr 0.95 and traceroute 2.1.2 of Debian. The names of the
files say what was asked.
"""

from pathlib import Path

import pytest
from traceroute.route_samples import failure, route, samples, totals, warnings

from benchctl.api import FailureKind
from benchctl.testing.transcript import Transcript
from benchctl_traceroute import BACKEND

TRANSCRIPTS = Path(__file__).with_name("transcripts")


def events(case):
    transcript = Transcript.load(TRANSCRIPTS / f"{case}.client.json")
    return transcript.replay(transcript.parser(BACKEND))


WAY = ["10.0.0.2", "10.0.1.2", "10.0.2.2", "10.0.3.2"]
WAY_6 = [f"fd62:656e:6368:{n}2" for n in (":", "1::", "2::", "3::")]


@pytest.mark.parametrize(
    ("case", "way"),
    [
        ("mtr-icmp", WAY), ("mtr-udp-6", WAY_6), ("mtr-tcp", WAY), ("mtr-name", WAY_6),
        ("text-udp-6", WAY_6), ("text-tcp", WAY), ("text-name", WAY),
    ],
)  # fmt: skip
def test_every_kind_of_probe_finds_the_same_routers(case, way):
    told = events(case)
    assert [[*hop] for hop in route(told)] == [[address] for address in way]
    counts = totals(told)
    assert counts["packets_lost"] + counts["packets_received"] == counts["packets_sent"] > 0
    assert totals(told, 1)["hop_unanswered"] == totals(told, 2)["hop_unanswered"] == 0
    # The links promise 2, 12, 32 and 36 ms.
    for hop, least_s in enumerate((0.002, 0.012, 0.032, 0.036), 1):
        rtts_s = [one.metrics["hop_rtt_s"] for one in samples(told, "hop_rtt_s")
                  if one.stream == hop]  # fmt: skip
        assert least_s < min(rtts_s) < least_s + 0.002


def test_a_second_syn_is_no_round_trip():
    lines = Transcript.load(TRANSCRIPTS / "mtr-tcp.client.json").stdout.decode().splitlines()
    words = [line.split() for line in lines]
    sent = sum(kind == "x" and int(hop) >= 3 for kind, hop, *_ in words)
    usec = [int(rest[0]) for kind, hop, *rest in words if kind == "p" and int(hop) >= 3]
    assert max(usec) > 2_000_000
    told = events("mtr-tcp")
    assert max(one.metrics["rtt_s"] for one in samples(told, "rtt_s")) < 0.05
    assert totals(told)["packets_lost"] == sent - sum(one < 1_000_000 for one in usec)


@pytest.mark.parametrize("case", ["mtr-several-routes", "text-several-routes"])
def test_routers_of_several_routes_share_a_hop(case):
    first, middle, *rest = route(events(case))
    assert set(middle) == {"10.0.1.2", "10.0.2.2"}
    assert [[*hop] for hop in (first, *rest)] == [["10.0.0.2"], ["10.0.3.2"], ["10.0.5.2"]]
    (warning,) = warnings(events(case))
    assert "hop 2" in warning


@pytest.mark.parametrize("case", ["mtr-limited", "text-limited"])
def test_routers_that_limit_their_answers_lose_nothing(case):
    told = events(case)
    assert totals(told)["packets_lost"] == 0
    assert totals(told, 1)["hop_unanswered"] > 1


def test_a_destination_that_loses_all_probes_at_its_distance_looks_a_hop_farther():
    told = events("text-icmp")
    assert [len(hop) for hop in route(told)] == [1, 1, 1, 0, 1]
    assert totals(told)["packets_lost"] == 0


def test_an_unreachable_host_is_a_failure_that_names_who_said_so():
    for case in ("mtr-unreachable", "text-unreachable"):
        told = events(case)
        assert [[*hop] for hop in route(told)] == [[address] for address in WAY[:3]]
        assert failure(told).kind is FailureKind.UNREACHABLE
        assert "the farthest was 10.0.2.2, hop 3" in failure(told).message
        assert not samples(told, "rtt_s")
    assert warnings(events("text-unreachable")) == [
        "10.0.2.2 answers probes to hop 4: host unreachable (!H)"
    ]


@pytest.mark.parametrize("case", ["mtr-interrupted", "text-interrupted"])
def test_ctrl_c_keeps_what_was_measured(case):
    told = events(case)
    assert samples(told, "hop_rtt_s")
    assert route(told)[0].keys() == {"10.0.0.2"}


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("mtr-unknown-name", "UNREACHABLE"), ("text-unknown-name", "UNREACHABLE"),
        ("mtr-no-route", "UNREACHABLE"), ("text-no-route", "UNREACHABLE"),
        ("mtr-wrong-version", "PARAMETER"), ("text-wrong-version", "PARAMETER"),
        ("mtr-wrong-device", "PARAMETER"), ("text-wrong-device", "PARAMETER"),
        ("text-wrong-source", "PARAMETER"),
        ("mtr-no-rights", "TOOL"), ("text-no-rights", "TOOL"),
        ("mtr-no-rights-interval", "PARAMETER"),
        ("mtr-wrong-flag", "PARAMETER"), ("text-wrong-flag", "PARAMETER"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_is_a_failure_of_its_kind_with_a_remedy(case, kind):
    (one,) = events(case)
    assert one.kind is FailureKind[kind]
    assert one.hint


def test_mtr_takes_any_source_address_and_gets_no_answer():
    told = events("mtr-wrong-source")
    assert failure(told).kind is FailureKind.UNREACHABLE
    assert not samples(told, "hop_rtt_s")


def test_linux_puts_an_answer_in_the_place_of_a_lost_one_unless_it_sends_one_at_a_time():
    # Hops 3 to 5 were sent at once: of nine probes two were answered, and no more are printed.
    told = events("text-simultaneous")
    assert totals(told, 3)["hop_unanswered"] == 2
    assert "-N 1 " in " ".join(Transcript.load(TRANSCRIPTS / "text-icmp.client.json").argv)
