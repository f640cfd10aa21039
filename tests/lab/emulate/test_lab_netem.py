"""The commands for links that the kernel emulates, and for their changes."""

import pytest

from benchctl.lab.emulate import kernel, netem
from benchctl.lab.emulate.kernel import KernelLinks, LinkPlace
from benchctl.lab.emulate.link import Change
from benchctl.lab.topology.model import Interface, Link, LinkSettings

LINK = ("link0a", "link0b")
WIRES = netem.wires(0)
SETTINGS = LinkSettings(8e6, 0.005, 0, 0.025, 50)


def changed(before, after):
    """Return the lines of ``after`` that are not in ``before``."""
    return [line for name, line in after.items() if before.get(name) != line]


def test_a_frame_waits_for_the_link_and_is_delayed_and_lost_after_its_transmission():
    assert list(netem.direction(LINK, WIRES[:1], SETTINGS, 1500).values()) == [
        "qdisc replace dev wire0a root handle 1: htb default 1",
        "class replace dev wire0a parent 1: classid 1:1 htb rate 8000000bit burst 100 cburst 100 "
        "quantum 1514",
        "qdisc replace dev wire0a parent 1:1 handle 2: pfifo limit 50",
        "qdisc replace dev link0b root handle 1: netem limit 825000 delay 5000us 0us "
        "loss 2.500000% rate 8000000bit",
        "qdisc add dev link0a ingress",
        "filter add dev link0a ingress pref 2 matchall action mirred egress mirror dev wire0a "
        "action drop",
        "qdisc add dev wire0b ingress",
        "filter add dev wire0b ingress pref 2 matchall action mirred egress redirect dev link0b",
    ]


def test_jitter_comes_after_a_wire_that_only_transmits():
    jitter = LinkSettings(8e6, 0.005, 0.001, 0, 50)
    lines = netem.direction(LINK, WIRES, jitter, 1500)
    assert lines["wire0c root"].endswith("netem limit 825000 rate 8000000bit")
    assert lines["link0b root"].endswith("delay 5000us 1000us loss 0.000000% rate 0bit")


def test_a_change_asks_for_what_differs_and_nothing_else():
    before = netem.direction(LINK, WIRES[:1], SETTINGS, 1500)
    slower = netem.direction(LINK, WIRES[:1], LinkSettings(1e6, 0.005, 0, 0.025, 50), 1500)
    assert [line.split()[3] for line in changed(before, slower)] == ["wire0a", "link0b"]
    lossy = netem.direction(LINK, WIRES[:1], LinkSettings(8e6, 0.005, 0, 0.5, 50), 1500)
    assert [line.split()[3] for line in changed(before, lossy)] == ["link0b"]
    assert changed(before, before) == []


def test_a_second_wire_stands_whole_before_frames_take_it():
    before = netem.direction(LINK, WIRES[:1], SETTINGS, 1500)
    longer = changed(before, netem.direction(LINK, WIRES, SETTINGS, 1500))
    assert longer[-1] == (
        "filter add dev wire0b ingress pref 1 matchall action mirred egress redirect dev wire0c"
    )
    assert longer[-2].startswith("filter add dev wire0d ingress pref 2")
    assert netem.shortcut(WIRES[0]) == ("wire0b filter 1", "filter del dev wire0b ingress pref 1")


def test_the_two_directions_of_a_link_share_its_wires_and_no_discipline():
    there = netem.direction(LINK, WIRES, SETTINGS, 1500)
    back = netem.direction(LINK[::-1], [wire[::-1] for wire in WIRES], SETTINGS, 1500)
    assert not {*there} & {*back}


def test_a_link_without_a_rate_carries_what_a_cable_does_in_order():
    lines = netem.direction(LINK, WIRES[:1], LinkSettings(delay_s=0.001), 9000)
    assert "rate 100000000000bit burst 1250000 cburst 1250000 quantum 9014" in lines["wire0a rate"]
    assert lines["link0b root"].endswith("delay 1000us 0us loss 0.000000% rate 100000000000bit")


class FakeTc:
    """Collects the lines of each batch, and says what waits at which device."""

    def __init__(self):
        self.batches = []
        self.questions = 0

    def run(self, lines):
        self.batches.append(list(lines))

    def qdiscs(self):
        self.questions += 1
        return []


@pytest.fixture
def started(monkeypatch):
    """Return the programs tc that have started, without one."""
    found = []
    monkeypatch.setattr(kernel, "Tc", lambda: found.append(FakeTc()) or found[-1])
    for name in ("enter_network", "run_ip", "set_offloads", "await_running"):
        monkeypatch.setattr(kernel, name, lambda *_: None)
    return found


def test_one_process_makes_all_changes_those_of_one_time_in_one_batch(started):
    ends = (Interface("a", "eth0", ""), Interface("b", "eth0", ""))
    places = {
        name: LinkPlace(Link(name, ends, (SETTINGS, SETTINGS)), (f"{name}a", f"{name}b"), (0, 0))
        for name in ("link0", "link1")
    }
    links = KernelLinks(0, places)
    (tc,) = started
    ways = [(name, number) for name in places for number in (0, 1)]
    tc.batches.clear()
    links.change(dict.fromkeys(ways, Change(rate_bps=1e6, loss_ratio=0.0)))
    assert [len(lines) for lines in tc.batches] == [2 * len(ways)]
    # A delay that shrinks takes a second wire; one that grows again first asks what is on its way.
    links.change(dict.fromkeys(ways, Change(delay_s=0.0)))
    assert (len(tc.batches), tc.questions) == (2, 0)
    links.change(dict.fromkeys(ways, Change(delay_s=0.005)))
    assert (len(tc.batches), tc.questions) == (3, 1)
    assert started == [tc]
