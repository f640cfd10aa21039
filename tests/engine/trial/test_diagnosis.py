"""A failed flow whose port is closed says so, in place of what its tool saw of it."""

import asyncio
from types import SimpleNamespace

import pytest

from benchctl.api import Failure, FailureKind
from benchctl.engine.trial import diagnosis
from benchctl.run.status import Status

NO_ANSWER = "no answer"
UNREACHABLE = Failure(FailureKind.UNREACHABLE, "connection refused")
STUCK = Failure(FailureKind.PEER, "the server is stuck")


def failed_flow(protocol, failure, **changes):
    """Return a flow from paris to tokyo; `changes` are of its setup, its result, or its own."""
    setup = {
        "source": SimpleNamespace(name="paris", reach="paris"),
        "target": SimpleNamespace(name="tokyo", reach="tokyo"),
        "port": 5201,
        "second_port": None,
        "flow": SimpleNamespace(
            address_at=lambda _: "10.0.2.1", demand=SimpleNamespace(protocol=protocol)
        ),
    }
    result = {"status": Status.FAILED, "has_measured": False, "failure": failure}
    own = {"was_ready": True, "blamed": []}
    for part in (setup, result, own):
        part.update((name, value) for name, value in changes.items() if name in part)
    flow = SimpleNamespace(setup=SimpleNamespace(**setup), result=SimpleNamespace(**result), **own)
    flow.blame = flow.blamed.append
    return flow


def blamed(flow, found, monkeypatch):
    """Return why a flow has failed, if a try of its port finds this."""
    tried = []

    async def try_pair(pair, _hosts):
        tried.append(pair.first_port)
        assert pair.last_port == pair.first_port
        return found.get(pair.first_port, found)

    monkeypatch.setattr(diagnosis, "try_pair", try_pair)
    attempt = SimpleNamespace(flows=[flow])
    asyncio.run(diagnosis.diagnose_closed_ports(attempt, None))
    assert tried == [5201, 5202][: len(tried)]
    return flow.blamed, len(tried)


@pytest.mark.parametrize(
    ("protocol", "failure", "found", "port"),
    [
        ("tcp", UNREACHABLE, {"tcp": NO_ANSWER, "udp": NO_ANSWER}, "TCP port 5201"),
        ("tcp", STUCK, {"tcp": NO_ANSWER}, "TCP port 5201"),
        # A tool that measures UDP may connect by TCP at first, or may not.
        ("udp", UNREACHABLE, {"tcp": NO_ANSWER, "udp": NO_ANSWER}, "TCP port 5201"),
        ("udp", UNREACHABLE, {"udp": NO_ANSWER}, "UDP port 5201"),
        ("udp", STUCK, {"tcp": NO_ANSWER, "udp": NO_ANSWER}, "UDP port 5201"),
        ("udp", None, {"udp": NO_ANSWER}, "UDP port 5201"),
    ],
)
def test_the_closed_port_is_the_one_that_the_tool_needs(
    protocol, failure, found, port, monkeypatch
):
    (why,), _ = blamed(failed_flow(protocol, failure), found, monkeypatch)
    assert why.kind is FailureKind.UNREACHABLE
    assert why.message == f"tokyo is not reached from paris at {port}: {NO_ANSWER}"
    assert "hosts.tokyo.ports" in why.hint


@pytest.mark.parametrize(("closed", "tries"), [(5201, 1), (5202, 2)])
def test_of_two_ports_the_one_that_is_closed_is_named(closed, tries, monkeypatch):
    flow = failed_flow("tcp", STUCK, second_port=5202)
    found = {5201: {}, 5202: {}, closed: {"tcp": NO_ANSWER}}
    (why,), tried = blamed(flow, found, monkeypatch)
    assert f"TCP port {closed}: " in why.message
    assert tried == tries


@pytest.mark.parametrize(
    ("protocol", "found"), [("tcp", {}), ("tcp", {"udp": NO_ANSWER}), ("udp", {"tcp": NO_ANSWER})]
)
def test_a_port_that_the_flow_does_not_need_is_not_blamed(protocol, found, monkeypatch):
    assert blamed(failed_flow(protocol, STUCK), found, monkeypatch) == ([], 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"target": None}, {"port": None}, {"was_ready": False}, {"status": Status.OK},
        {"has_measured": True}, {"target": SimpleNamespace(name="tokyo", reach="paris")},
    ],
    ids=["no target", "no port", "no server", "ok", "measured", "one host"],
)  # fmt: skip
def test_a_port_is_tried_only_where_it_may_be_the_cause(changes, monkeypatch):
    flow = failed_flow("tcp", STUCK, **changes)
    assert blamed(flow, {"tcp": NO_ANSWER}, monkeypatch) == ([], 0)
