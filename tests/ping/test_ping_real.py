"""The ping of this machine and our own on loopback: they do what the backend expects."""

import os
import signal
import subprocess

import pytest
from ping.ping_samples import only
from waiting import DEADLINE_S

from benchctl.api import (
    Direction,
    Effective,
    Failure,
    FailureKind,
    Flow,
    Role,
    Sample,
    Summary,
    replay,
)
from benchctl_ping import BACKEND

SYSTEMS = BACKEND.probe(Role.CLIENT)
OWN = SYSTEMS.otherwise
PROGRAMS = [
    pytest.param(SYSTEMS, marks=pytest.mark.tool("ping"), id="system"),
    pytest.param(OWN, id="own"),
]


def tool(probe):
    result = subprocess.run(
        probe.argv, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    return BACKEND.read_probe(Role.CLIENT, result.returncode, result.stdout + result.stderr)


def command(probe, address, source_address=None, source_device=None, **values):
    params = BACKEND.parameters(**values)
    return BACKEND.client(
        Flow(
            params,
            Direction.ROUND_TRIP,
            address,
            None,
            tool(probe),
            source_address=source_address,
            source_device=source_device,
        )
    )


def start(command):
    return subprocess.Popen(
        command.argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **command.env},
    )


def measure(probe, address, **values):
    asked = command(probe, address, **values)
    with start(asked) as process:
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
    return replay(asked.parser, stdout, stderr, process.returncode)


LOOPBACK = [
    "127.0.0.1",
    pytest.param("::1", marks=pytest.mark.ipv6),
]


@pytest.mark.parametrize("probe", PROGRAMS)
@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_is_measured(probe, address):
    events = measure(probe, address, count=3, length="1000B", dscp=46, ttl=5, dont_fragment=True)
    replies = [event for event in events if isinstance(event, Sample)]
    assert [sorted(reply.metrics) for reply in replies] == 3 * [
        ["packets_received", "packets_sent", "rtt_s", "ttl"]
    ]
    assert all(reply.metrics["rtt_s"] > 0 for reply in replies)
    summary = only(Summary, events).metrics
    assert (summary["packets_sent"], summary["packets_received"]) == (3, 3)
    assert summary["rtt_s"]["min"] <= summary["rtt_s"]["mean"] <= summary["rtt_s"]["max"]
    settings = next(event.settings for event in events if isinstance(event, Effective))
    assert settings == {"address": address, "length_bytes": 1000, "count": 3}


@pytest.mark.parametrize("probe", PROGRAMS)
def test_an_interrupted_ping_tells_what_it_has(probe):
    asked = command(probe, "127.0.0.1", count=1000)
    with start(asked) as process:
        head = process.stdout.readline() + process.stdout.readline()
        process.send_signal(signal.Signals[asked.stop_signal])
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
    events = replay(asked.parser, head + stdout, stderr, process.returncode)
    assert only(Summary, events).metrics["packets_received"] >= 1
    assert not [event for event in events if isinstance(event, Failure)]


@pytest.mark.parametrize("probe", PROGRAMS)
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"source_device": "nosuch0"}, FailureKind.PARAMETER),
        ({"source_address": "192.0.2.1"}, FailureKind.PARAMETER),
        ({"ip_version": 4, "address": "::1"}, FailureKind.PARAMETER),
    ],
)
def test_what_cannot_be_measured_is_a_failure_of_the_right_kind(probe, values, kind):
    if "bsd" in tool(probe).features:
        pytest.skip("BSD's ping words these otherwise")
    (failure,) = measure(probe, **{"address": "127.0.0.1", "count": 1, **values})
    assert failure.kind is kind
    assert failure.hint


@pytest.mark.tool("ping")
@pytest.mark.parametrize("address", LOOPBACK)
def test_our_own_ping_measures_what_the_system_s_does(address):
    # They take turns, so that both find the same moments. What else the machine does only lengthens
    # round trips: the least of enough of them are equal.
    least_s = {OWN: 1.0, SYSTEMS: 1.0}
    for turn in range(30):
        for probe, before_s in least_s.items():
            events = measure(probe, address, count=40, interval="5ms")
            least_s[probe] = min(before_s, only(Summary, events).metrics["rtt_s"]["min"])
        if turn and abs(least_s[OWN] - least_s[SYSTEMS]) < 50e-6:
            return
    pytest.fail(f"least round-trip times differ: {[*least_s.values()]}")


@pytest.mark.parametrize("probe", PROGRAMS)
def test_a_flood_is_told_by_its_summary(probe):
    if os.geteuid() and probe is SYSTEMS:
        pytest.skip("only root may flood")
    events = measure(probe, "127.0.0.1", count=200, flood=True)
    metrics = only(Summary, events).metrics
    assert (metrics["packets_sent"], metrics["packets_received"]) == (200, 200)
    assert 0 < metrics["rtt_s"]["min"] <= metrics["rtt_s"]["mean"] <= metrics["rtt_s"]["max"]
