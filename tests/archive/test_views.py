"""What people and Grafana read: the views, and every query of the dashboard."""

import json
import re
from contextlib import closing

import pytest
from archive.archive_support import opened_as, pushed
from report.mesh_run import mesh_run
from store.store_support import NOW, add_flow, measured_run, new_run

from benchctl.archive.dashboard import dashboard
from benchctl.archive.schema import READER
from benchctl.metrics import Direction
from benchctl.run.record import (
    ClockReading,
    CpuUse,
    Figure,
    HostCounters,
    InterfaceCounters,
)
from benchctl.store.read import Reader
from benchctl.store.record import Recorder

pytestmark = pytest.mark.postgres
PERIOD = ("2001-09-01", "2026-12-31")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def test_samples_are_the_rows_of_the_store(archive, store):
    measured_run(store, {1: (1e6, 2e6)}, intervals=4)
    with closing(Recorder(store, 1)) as recorder:
        both = {"throughput_bps": 5.0, "rtt_s": 0.5}
        recorder.add_sample(1, "server", 3, "receive", 1.0, 1.5, 2.0, True, both)
    pushed(archive, store)
    with closing(Reader(store)) as reader:
        expected = [
            (trial.position + 1, one.role, one.stream, one.direction, one.start_s, one.end_s,
             one.omitted, metric, value)
            for trial in reader.trials(1)
            for flow in reader.flows(trial.id)
            for one in reader.samples(flow.id)
            for metric, value in one.metrics.items()
        ]  # fmt: skip
    found = archive.rows(
        "SELECT trial, role, stream, direction, start_s, end_s, omitted, metric, value"
        " FROM benchctl.samples WHERE profile = 'p' AND month = '2026-11-01'"
    )
    assert sorted(found) == sorted(expected)
    assert len(found) == 10


def test_a_figure_is_of_the_pair_in_the_direction_of_its_data(archive, store):
    mesh_run(store, Direction.RECEIVE)
    pushed(archive, store)
    pairs = archive.rows(
        "SELECT point ->> 'pair', source, target, value FROM benchctl.figures ORDER BY value"
    )
    assert [value for *_, value in pairs] == [n * 1e6 for n in range(1, 7)]
    for pair, source, target, _ in pairs:
        assert pair == f"{target}:{source}"


def trouble(store):
    """Write a run of trials that failed, of hosts that were busy, and of a figure that is wrong."""
    run_id, _ = new_run(store, trials=3)
    busy = HostCounters(
        1.0, {"eth0": InterfaceCounters(1, 2, 3, 4, 5, 6, 7, 8)},
        {"udp_no_port": 9, "tcp_timeouts": 0}, CpuUse(4, 0.5, 2, 0.9, 0.1, 0.2),
    )  # fmt: skip
    unread = HostCounters(0.0, unread="its counters are read on Linux only")
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        recorder.update_run(status="running", started_time=NOW)
        ids = [trial.id for trial in reader.trials(run_id)]
        flow = add_flow(recorder, ids[0], status="failed", failure="refused", error="no\0 answer")
        recorder.add_figures(flow, {("send", "throughput_bps"): Figure(7.0, "tool")})
        recorder.update_trial(
            ids[0], counters={"a": busy, "b": unread}, clocks={"b": ClockReading(0.25, 0.1, 0.2)}
        )
        for trial_id, status in zip(ids, ("failed", "ok", "skipped"), strict=True):
            recorder.update_trial(trial_id, status="running", started_time=NOW)
            recorder.update_trial(trial_id, status=status, error="why")
        flow = add_flow(recorder, ids[1], status="ok")
        spread = {"min": 0.01, "median": 0.02, "p95": 0.04, "max": 0.05}
        recorder.add_figures(
            flow,
            {
                ("send", "throughput_bps"): Figure(7.0, "tool", broken=None),
                ("round-trip", "rtt_s"): Figure(0.02, "samples", spread),
            },
        )
        recorder.update_run(status="failed")


def test_failures_hosts_and_distributions_have_plain_columns(archive, store):
    trouble(store)
    pushed(archive, store)
    assert archive.rows(
        "SELECT trial, point, flow, status, failure, error FROM benchctl.flows ORDER BY trial"
    ) == [
        (1, {"n": 0}, "main", "failed", "refused", "no\ufffd answer"),
        (2, {"n": 1}, "main", "ok", "", "why"),
    ]
    assert archive.rows(
        "SELECT trial, host, busy_ratio, busiest_ratio, softirq_ratio, steal_ratio, rx_errors,"
        " rx_dropped, tx_errors, tx_dropped, clock_offset_s, clock_error_s, unread, counts"
        " FROM benchctl.hosts ORDER BY host"
    ) == [
        (1, "a", 0.5, 0.9, 0.1, 0.2, 3, 4, 7, 8, None, None, "", {"udp_no_port": 9}),
        (1, "b", *[None] * 8, 0.25, 0.1, "its counters are read on Linux only", {}),
    ]
    # Figures of what failed do not count.
    assert archive.rows(
        "SELECT trial, metric, value, min, median, p95, max, valid FROM benchctl.figures"
        " ORDER BY metric"
    ) == [
        (2, "rtt_s", 0.02, 0.01, 0.02, 0.04, 0.05, True),
        (2, "throughput_bps", 7.0, None, None, None, None, True),
    ]


def queries():
    """Return each query of the dashboard by what it is for."""
    told = json.loads(dashboard())
    found = {one["title"]: one["targets"][0]["rawSql"] for one in told["panels"]}
    for one in told["templating"]["list"]:
        if one["type"] == "query":
            found[f"choices of {one['name']}"] = one["query"]
    return found


def filled_in(query, **chosen):
    """Return a query as Grafana sends it."""
    begin, end = PERIOD
    query = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{begin}' AND '{end}'", query)
    query = re.sub(
        r"\$__timeGroupAlias\((\w+), \$__interval\)",
        r'floor(extract(epoch from \1)/60)*60 AS "time"',
        query,
    )
    query = re.sub(r"\$\{(\w+):sqlstring\}", lambda found: f"'{chosen[found[1]]}'", query)
    assert "$" not in query
    return query


@pytest.mark.parametrize(
    ("make", "chosen", "rows"),
    [
        (
            mesh_run,
            {"profile": "mesh", "metric": "throughput_bps", "source": "a", "target": "b"},
            {
                "Matrix": 6, "What failed": 0, "${metric}: ${source} to ${target}": 1,
                "${metric}: ${target} to ${source}": 1, "Hosts: busiest processor": 0,
                "Hosts: errors, drops, clocks": 0, "Runs": 1, "choices of profile": 1,
                "choices of metric": 1, "choices of source": 3, "choices of target": 2,
            },
        ),
        (
            trouble,
            {"profile": "p", "metric": "rtt_s", "source": "local", "target": "local"},
            {
                "Matrix": 1, "What failed": 1, "${metric}: ${source} to ${target}": 1,
                "${metric}: ${target} to ${source}": 1, "Hosts: busiest processor": 1,
                "Hosts: errors, drops, clocks": 2, "Runs": 1, "choices of profile": 1,
                "choices of metric": 2, "choices of source": 1, "choices of target": 1,
            },
        ),
    ],
)  # fmt: skip
def test_every_query_of_the_dashboard_answers_a_reader(
    archive_url, archive, store, make, chosen, rows
):
    make(store)
    pushed(archive, store)
    with opened_as(archive_url, READER) as theirs:
        found = {
            name: len(theirs.rows(filled_in(query, **chosen))) for name, query in queries().items()
        }
    assert found == rows


def test_the_dashboard_asks_only_views():
    for query in queries().values():
        assert set(re.findall(r"(?:FROM|JOIN) (\S+)", query)) <= {
            f"benchctl.{view}" for view in ("runs", "subjects", "figures", "flows", "hosts")
        }
