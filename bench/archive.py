"""An archive of a year: ``python bench archive``. PostgreSQL runs in a directory.

A mesh of 60 hosts measures each pair four times a day for a year: 10 million figures, and the
samples of the last weeks, 100 million. They are made by the server, and those of a run are pushed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import table

from benchctl.archive.connection import Archive, open_archive
from benchctl.archive.init import init
from benchctl.archive.push import push
from benchctl.metrics import Direction
from benchctl.run.planned import PlannedFlow, PlannedRun, PlannedTrial, Settings
from benchctl.run.record import Figure
from benchctl.store.read import Reader
from benchctl.store.record import Recorder, create_run

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

HOSTS, DAYS, RUNS_A_DAY = 60, 365, 4
PUSHED = 1_000_000
TRIALS, STREAMS = 500, 4
SAMPLES, EACH = 100_000_000, 1000
# A year ends here (Unix time).
END = "2026-11-27 00:00:00+00"

_SUBJECTS = """
INSERT INTO benchctl_data.subject
    (key, profile, flow, backend, source, target, direction, point, metric)
SELECT gen_random_uuid(), 'mesh', 'main', 'iperf3', 'h' || a, 'h' || b, 'send',
    jsonb_build_object('pair', a || ':' || b), metric
FROM generate_series(1, %(hosts)s) a, generate_series(1, %(hosts)s) b,
    unnest(ARRAY['throughput_bps', 'rtt_s']) metric
WHERE a <> b ORDER BY a, b
"""
_RUNS = """
INSERT INTO benchctl_data.run (id, name, profile, title, created_time, status, error, trials, tags,
    origin, flows, samples, notes, sha256, record, month)
SELECT gen_random_uuid(), 'run ' || n, 'mesh', '', at, 'ok', '', 3540, '{}', '', 3540, 0, 0, '', '',
    date_trunc('month', at)::date
FROM (SELECT n, %(end)s::timestamptz - n * interval '6 hours' AS at
      FROM generate_series(1, %(runs)s) n) runs
ORDER BY at
"""
_FIGURES = """
INSERT INTO benchctl_data.figure (subject, time, run, trial, repeat, valid, value, p95)
SELECT s.id, r.created_time + (s.id %% 3540) * interval '2 s', r.id, s.id %% 3540 + 1, 1, true,
    1e9 * random(), 1e9 * random()
FROM benchctl_data.run r JOIN benchctl_data.subject s USING (profile)
WHERE profile = 'mesh' ORDER BY r.created_time, s.id
"""
_PIECES = """
INSERT INTO benchctl_data.piece (month, run, series, number, began_time, trial, flow, attempt,
    source, target, role, stream, direction, metrics, samples, steps, starts_s, ends_s, arrived_s,
    omitted, values)
SELECT r.month, r.id, n, 0, r.created_time, n / 2 + 1, 'main', 1, 'h1', 'h2', 'client', 0, 'send',
    '{throughput_bps}', a.size, a.steps, a.times, a.times, a.noise, '{}', a.noise
FROM (SELECT count(*) AS size, array_agg(2) AS steps, array_agg(x / 10.0::float8) AS times,
          array_agg(random() * 1e9) AS noise FROM generate_series(1, %(each)s) x) a
CROSS JOIN (SELECT * FROM benchctl_data.run WHERE profile = 'mesh'
            ORDER BY created_time DESC LIMIT 50) r
CROSS JOIN generate_series(1, %(pieces)s) n
"""
_PAIR = """
SELECT time, value, p95 FROM benchctl.figures
WHERE source = 'h7' AND target = 'h42' AND metric = 'throughput_bps' AND valid ORDER BY time
"""
_MATRIX = """
SELECT source, target, percentile_cont(0.5) WITHIN GROUP (ORDER BY value) FROM benchctl.figures
WHERE time > %(end)s::timestamptz - interval '1 day' AND profile = 'mesh'
    AND metric = 'throughput_bps' AND valid
GROUP BY source, target
"""


def main() -> None:
    from needs import program  # type: ignore[import-not-found]
    from postgres import running  # type: ignore[import-not-found]

    if not program("postgres"):
        print("\nan archive: not measured, needs PostgreSQL: apt-get install postgresql")
        return
    with running(("shared_buffers=512MB", "max_wal_size=8GB")) as make, open_archive(
        make(), any_version=True, statement_s=3600
    ) as archive:  # fmt: skip
        init(archive, lambda _: False)
        rate, size_bytes = _pushed(archive)
        figures, samples = _filled(archive)
        table.head(f"an archive of {figures:,} figures and {samples:,} samples")
        table.row("samples pushed a second, of one run", rate, 50_000, "/s", at_least=True)
        print(f"{'bytes a sample of one metric':<58}{size_bytes:>14.0f}")
        for what, query, rows, bound_s in (
            ("a year of one pair's figures", _PAIR, DAYS * RUNS_A_DAY, 0.05),
            ("the last day's matrix", _MATRIX, HOSTS * (HOSTS - 1), 1.0),
        ):
            table.row(f"{what}, median of 5", _seconds(archive, query, rows), bound_s, "s")
        for query in (_PAIR, _MATRIX):
            plan = archive.rows(f"EXPLAIN (ANALYZE, COSTS OFF) {query}", {"end": END})
            print(*(f"    {line}" for (line,) in plan), sep="\n")


def _pushed(archive: Archive) -> tuple[float, float]:
    """Push a run; returns its samples a second, and the bytes of each."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.sqlite"
        _fill(store)
        with closing(Reader(store)) as reader:
            run = reader.find("last")
            begun_s = time.perf_counter()
            push(archive, reader, run)
            lasted_s = time.perf_counter() - begun_s
    size = "SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits"
    (size_bytes,) = archive.rows(size)[0]
    return PUSHED / lasted_s, float(size_bytes) / PUSHED


def _fill(store: Path) -> None:
    flow = PlannedFlow("main", "bench", "a", "b", None, Direction.SEND, 0.0, {})
    trials = [PlannedTrial(n, 1, {"n": n}, (flow,), {}, 1, 1) for n in range(TRIALS)]
    settings = Settings({"n": tuple(range(TRIALS))}, "sequential", ())
    run_id, _ = create_run(store, PlannedRun("bench", "", 1, settings, trials, ""), 1.79e9)
    with closing(Recorder(store, run_id)) as recorder, closing(Reader(store)) as reader:
        recorder.update_run(status="running")
        for trial in reader.trials(run_id):
            recorder.update_trial(trial.id, status="running")
            flow_id = recorder.add_flow(
                trial.id, attempt=1, name="main", backend="bench", source="a", target="b",
                direction="send", status="ok", client=[], server=[], requested={},
                started_time=1.79e9,
            )  # fmt: skip
            for number in range(PUSHED // TRIALS):
                second = number // STREAMS / 10
                recorder.add_sample(
                    flow_id, "client", number % STREAMS, "send", second, second + 0.1,
                    second + 0.1007 + number / 1e9, False, {"throughput_bps": 9.4e8 + number},
                )  # fmt: skip
            recorder.add_figures(flow_id, {("send", "throughput_bps"): Figure(9.4e8, "tool")})
            recorder.update_trial(trial.id, status="ok")
            recorder.flush()
        recorder.update_run(status="ok")


def _filled(archive: Archive) -> tuple[int, int]:
    """Make a year; returns how many figures and samples there are."""
    told = {
        "hosts": HOSTS, "runs": DAYS * RUNS_A_DAY, "end": END, "each": EACH,
        "pieces": SAMPLES // EACH // 50,
    }  # fmt: skip
    connection = archive.connection
    connection.execute("SET session_replication_role = replica")  # no foreign keys are checked
    for statement in (_SUBJECTS, _RUNS, _FIGURES):
        connection.execute(statement, told)
    for (month,) in archive.rows("SELECT DISTINCT month FROM benchctl_data.run"):
        connection.execute("SELECT benchctl_data.add_month(%s)", (month,))
    connection.execute(_PIECES, told)
    connection.execute("VACUUM ANALYZE")  # as autovacuum does in the course of a year
    (figures,) = archive.rows("SELECT count(*) FROM benchctl_data.figure")[0]
    (samples,) = archive.rows("SELECT sum(samples)::bigint FROM benchctl_data.piece")[0]
    return figures, samples


def _seconds(archive: Archive, query: str, rows: int) -> float:
    """Return how long a query takes, with its rows here."""
    times_s = []
    for _ in range(5):
        begun_s = time.perf_counter()
        found = len(archive.rows(query, {"end": END}))
        times_s.append(time.perf_counter() - begun_s)
        assert found == rows, found
    return statistics.median(times_s)


if __name__ == "__main__":
    main()
