"""The tables of the store and what their columns mean."""

from collections.abc import Iterable

from benchctl.run import status
from benchctl.run.status import Status

VERSION = 1


def _listed(statuses: Iterable[Status]) -> str:
    return f"({', '.join(repr(str(status)) for status in statuses)})"


UNFINISHED, OPEN, COUNTED, FAILURES = map(
    _listed, (status.UNFINISHED, status.OPEN, status.COUNTED, status.FAILURES)
)
"""The tuples of `benchctl.run.status`, as SQL writes them."""
LAST_ATTEMPT = (
    "WHERE (trial_id, attempt) = (SELECT trial_id, max(attempt) FROM flow WHERE trial_id = ?)"
)
"""Restricts the flows of a trial to those of its last attempt."""

ADDED = (
    ("trial", "links", "TEXT NOT NULL DEFAULT '[]'"),
    ("trial", "hooks", "TEXT NOT NULL DEFAULT '[]'"),
    ("run", "hooks", "TEXT NOT NULL DEFAULT '[]'"),
    ("trial", "fair_windows", "TEXT NOT NULL DEFAULT '[]'"),
    ("run", "origin", "TEXT NOT NULL DEFAULT ''"),
    ("trial", "file", "TEXT NOT NULL DEFAULT ''"),
    ("trial", "file_sha256", "TEXT NOT NULL DEFAULT ''"),
    ("trial", "clocks", "TEXT NOT NULL DEFAULT '{}'"),
    ("run", "hosts", "TEXT NOT NULL DEFAULT '{}'"),
    ("run", "connections", "TEXT NOT NULL DEFAULT '{}'"),
    ("flow", "bottlenecks", "TEXT NOT NULL DEFAULT '{}'"),
    ("flow", "route", "TEXT NOT NULL DEFAULT '[]'"),
    ("flow", "captures", "TEXT NOT NULL DEFAULT '[]'"),
    ("flow", "paired", "TEXT NOT NULL DEFAULT '[]'"),
    ("trial", "counters", "TEXT NOT NULL DEFAULT '{}'"),
    ("figure", "broken", "TEXT"),
    ("figure", "rejected", "REAL"),
    ("figure", "resolution", "REAL"),
    ("flow", "held", "INTEGER NOT NULL DEFAULT 0"),
    ("flow", "protocol", "TEXT NOT NULL DEFAULT ''"),
    ("trial", "beside", "TEXT NOT NULL DEFAULT '[]'"),
    ("run", "person", "TEXT NOT NULL DEFAULT ''"),
    ("run", "logged", "INTEGER NOT NULL DEFAULT 0"),
)
"""Columns that stores of earlier programs of this version lack until they are written to.

They get their missing tables and indexes of `TABLES` at the same time.
"""

TABLES = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,          -- what people call it: 20261121-004512-7f3a9c
    profile TEXT NOT NULL,              -- short name of the profile
    title TEXT NOT NULL,
    created_time REAL NOT NULL,
    started_time REAL,
    finished_time REAL,
    status TEXT NOT NULL,               -- planned, running, ok, failed, interrupted
    error TEXT NOT NULL DEFAULT '',     -- why the run itself ended early
    seed INTEGER NOT NULL,
    trials INTEGER NOT NULL,
    settings TEXT NOT NULL,             -- JSON: what the runner needs beside the trials
    profile_text TEXT NOT NULL,
    profile_sha256 TEXT NOT NULL,
    facts TEXT NOT NULL DEFAULT '{}',   -- JSON: the hosts as they were
    runner_pid INTEGER,                 -- the process that measures; takes signals
    tags TEXT NOT NULL DEFAULT '[]',    -- JSON list
    hooks TEXT NOT NULL DEFAULT '[]',   -- JSON: the hosts' commands around the run that ran
    origin TEXT NOT NULL DEFAULT '',    -- what wrote the files it was imported from; '' if measured
    hosts TEXT NOT NULL DEFAULT '{}',   -- JSON: as in host, of earlier programs
    connections TEXT NOT NULL DEFAULT '{}', -- JSON: to the remote hosts, as last known, by host
    person TEXT NOT NULL DEFAULT '',    -- who asked a fleet for it; '' if it was measured from here
    logged INTEGER NOT NULL DEFAULT 0   -- of a fleet: the number of the last message of its writes
);
CREATE INDEX outline_of_run ON run (    -- a list of runs reads no pages of profiles and facts
    id, name, profile, created_time, status, trials, tags
);
CREATE TABLE host (                     -- elsewhere; written once, not with each change of the run
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    name TEXT NOT NULL,
    facts TEXT NOT NULL,                -- JSON
    UNIQUE (run_id, name)
);
CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    position INTEGER NOT NULL,          -- order of execution, from 0
    repeat INTEGER NOT NULL,            -- from 1
    point TEXT NOT NULL,                -- JSON: axis -> value
    flows TEXT NOT NULL,                -- JSON: the flows as planned
    lab TEXT NOT NULL,                  -- JSON: settings of the topology for this point
    duration_s REAL NOT NULL,           -- expected
    deadline_s REAL NOT NULL,
    status TEXT NOT NULL,               -- as of a run, or timed_out, skipped
    error TEXT NOT NULL DEFAULT '',
    started_time REAL,                  -- common start of the last attempt
    finished_time REAL,
    start_skew_s REAL,                  -- between the flows' first data at their senders
    fairness_jain REAL,
    links TEXT NOT NULL DEFAULT '[]',   -- JSON: what each link of a lab carried
    hooks TEXT NOT NULL DEFAULT '[]',   -- JSON: the hosts' commands around it that ran
    fair_windows TEXT NOT NULL DEFAULT '[]', -- JSON: Jain's index over time
    file TEXT NOT NULL DEFAULT '',      -- of an imported trial
    file_sha256 TEXT NOT NULL DEFAULT '',
    clocks TEXT NOT NULL DEFAULT '{}',  -- JSON: the clocks of remote hosts, and their errors
    counters TEXT NOT NULL DEFAULT '{}', -- JSON: what the hosts of its flows counted, by host
    beside TEXT NOT NULL DEFAULT '[]',  -- JSON: positions of the trials that ran at the same time
    UNIQUE (run_id, position)
);
CREATE INDEX trial_of_file ON trial (file_sha256) WHERE file_sha256 != '';
CREATE TABLE flow (                     -- one attempt of one flow
    id INTEGER PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
    attempt INTEGER NOT NULL,           -- from 1
    name TEXT NOT NULL,
    backend TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    direction TEXT NOT NULL,
    port INTEGER,
    status TEXT NOT NULL,               -- as of a trial
    failure TEXT NOT NULL DEFAULT '',   -- kind of failure
    error TEXT NOT NULL DEFAULT '',
    hint TEXT NOT NULL DEFAULT '',
    client TEXT NOT NULL,               -- JSON: the exact command
    server TEXT NOT NULL,               -- JSON: the peer's command, [] where there is none
    requested TEXT NOT NULL,            -- JSON: parameters in SI units
    effective TEXT NOT NULL DEFAULT '{}',
    expected TEXT NOT NULL DEFAULT '{}',
    started_time REAL,                  -- its second 0
    finished_time REAL,
    exit_code INTEGER,
    stderr TEXT NOT NULL DEFAULT '',
    bottlenecks TEXT NOT NULL DEFAULT '{}', -- JSON: direction -> the link that limits by theory
    route TEXT NOT NULL DEFAULT '[]',   -- JSON: what answered at each distance, and its figures
    captures TEXT NOT NULL DEFAULT '[]', -- JSON: its packets: files, hosts, counts and findings
    paired TEXT NOT NULL DEFAULT '[]',  -- JSON: what the packets of both ends say together
    held INTEGER NOT NULL DEFAULT 0,    -- whether its figures were held against the laws
    protocol TEXT NOT NULL DEFAULT ''   -- of its data, as tcp or udp; '' if not known
);
CREATE INDEX flow_of_trial ON flow (trial_id);
CREATE TABLE series (                   -- samples of one stream that tell the same metrics
    id INTEGER PRIMARY KEY,
    flow_id INTEGER NOT NULL REFERENCES flow ON DELETE CASCADE,
    role TEXT NOT NULL,                 -- which end told it: client, server
    stream INTEGER NOT NULL,
    direction TEXT NOT NULL,            -- send, receive, round-trip
    metrics TEXT NOT NULL               -- JSON: names, in the order of a sample's values
);
CREATE INDEX series_of_flow ON series (flow_id);
CREATE TABLE sample (
    id INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,
    start_s REAL NOT NULL,              -- from the flow's second 0
    end_s REAL NOT NULL,
    arrived_s REAL NOT NULL,            -- from the trial's common start
    omitted INTEGER NOT NULL,
    data BLOB NOT NULL                  -- values as 64-bit floats, little endian
);
CREATE INDEX sample_of_series ON sample (series_id);
CREATE TABLE figure (                   -- a flow's final figures
    flow_id INTEGER NOT NULL REFERENCES flow ON DELETE CASCADE,
    direction TEXT NOT NULL,
    metric TEXT NOT NULL,
    origin TEXT NOT NULL,               -- tool: its own figure; samples: computed from them
    value REAL NOT NULL,                -- the figure, or the mean of a distribution
    spread TEXT NOT NULL DEFAULT '{}',  -- JSON: min, mean, median, p95, max of a distribution
    broken TEXT,                        -- JSON: the law that the tool's figure breaks, and how
    rejected REAL,                      -- the tool's figure, if the value is another source's
    resolution REAL,                    -- the step in which the value is known
    PRIMARY KEY (flow_id, direction, metric)
) WITHOUT ROWID;
CREATE TABLE event (                    -- what happened within a flow
    id INTEGER PRIMARY KEY,
    flow_id INTEGER NOT NULL REFERENCES flow ON DELETE CASCADE,
    direction TEXT NOT NULL,
    metric TEXT NOT NULL,               -- the rate in which it was seen
    kind TEXT NOT NULL,                 -- delayed ramp-up, drop, recovery, stall, oscillation
    at_s REAL NOT NULL,                 -- from the flow's second 0
    until_s REAL,                       -- of a stall or an oscillation
    level_before REAL NOT NULL,         -- an oscillation's low
    level_after REAL NOT NULL,          -- within a stall; an oscillation's high
    confidence REAL,                    -- 1 less the chance that noise looks so
    period_s REAL,                      -- of an oscillation
    beside TEXT NOT NULL DEFAULT '{}'   -- JSON: the flow's other metrics at this time
);
CREATE INDEX event_of_flow ON event (flow_id);
CREATE TABLE note (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    trial_id INTEGER REFERENCES trial ON DELETE CASCADE,
    flow_id INTEGER REFERENCES flow ON DELETE CASCADE,
    time REAL NOT NULL,
    level TEXT NOT NULL,                -- info, warning, remark
    text TEXT NOT NULL
);
CREATE INDEX note_of_run ON note (run_id);
"""
