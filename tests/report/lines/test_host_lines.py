"""The hosts of a run as lines: connections, clocks and facts."""

from contextlib import closing

import pytest
from msgspec.structs import replace
from tui.made_runs import MadeRun

from benchctl.report.lines.hosts import fact_lines, host_lines
from benchctl.run.record import ClockReading, HostConnection
from benchctl.run.status import Status
from benchctl.store.read import Reader

CLOCK = ClockReading(0.0031, 0.0002, 0.0106)
BEHIND = ClockReading(-1.5, 0.004, 0.008)


def text_of(lines):
    return ["".join(span.text for span in line) for line in lines]


@pytest.fixture
def run(tmp_path):
    made = MadeRun(tmp_path / "runs.sqlite")
    made.close()
    with closing(Reader(made.path)) as reader:
        return replace(reader.run(1), status=Status.RUNNING)


def test_each_host_has_its_connection_and_its_clock_and_a_lost_one_is_first(run):
    lost = HostConnection(1.0, "host tokyo: it has been silent for 5 s", BEHIND)
    run = replace(run, connections={"oslo": HostConnection(1.0, "", CLOCK), "tokyo": lost})
    assert text_of(host_lines(run, {"oslo": BEHIND})) == [
        "✗ tokyo  lost: it has been silent for 5 s",
        "● oslo   clock 3.10 ms ahead, ±200 us; round trip 10.6 ms",
    ]


def test_a_run_that_has_ended_has_the_clocks_of_the_trial_and_no_connections(run):
    over = replace(run, status=Status.OK, connections={"oslo": HostConnection(1.0, "", CLOCK)})
    assert text_of(host_lines(over, {"oslo": BEHIND})) == [
        "  oslo  clock 1.50 s behind, ±4.00 ms; round trip 8.00 ms"
    ]
    assert host_lines(over, {}) == []


def test_a_run_on_this_machine_has_no_such_lines(run):
    assert host_lines(run, {}) == []


def test_the_facts_are_those_of_every_host_this_machine_first(run):
    facts = {"kernel": "6.1", "cpu": {"count": 2}}
    run = replace(
        run, facts=facts, hosts={"oslo": {"kernel": "5.10"}, "rome": {}},
        connections={"oslo": HostConnection(1.0, "", CLOCK)},
    )  # fmt: skip
    assert text_of(fact_lines(run)) == [
        "local", "  kernel = 6.1", "  cpu.count = 2",
        "oslo", "  clock 3.10 ms ahead, ±200 us; round trip 10.6 ms",
        "  kernel = 5.10", "rome", "  nothing is known",
    ]  # fmt: skip
