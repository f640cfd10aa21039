"""The tables of an archive, the views over them, and who may do what.

People and Grafana read the views in the schema ``benchctl``; docs/archive.md describes them. The
tables in ``benchctl_data`` may change with each version.
"""

VERSION = 1

UPGRADES: tuple[str, ...] = ()
"""The statements that make version 2 of version 1, and so on; the views are made anew."""

WRITER, READER = "benchctl_writer", "benchctl_reader"
"""Roles that cannot log in: an administrator grants them to users."""

TABLES = """
CREATE SCHEMA benchctl_data;
SET LOCAL search_path = benchctl_data, pg_temp;

CREATE TABLE archive (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    version integer NOT NULL
);
CREATE TABLE run (
    id uuid PRIMARY KEY,                -- of its name, its time, its profile and its seed
    name text NOT NULL,
    profile text NOT NULL,
    title text NOT NULL,
    created_time timestamptz NOT NULL,
    started_time timestamptz,
    finished_time timestamptz,
    status text NOT NULL,
    error text NOT NULL,
    trials integer NOT NULL,
    tags text[] NOT NULL,
    origin text NOT NULL,
    flows bigint NOT NULL,              -- attempts; with samples and notes they tell what is newer
    samples bigint NOT NULL,
    notes bigint NOT NULL,
    sha256 bytea NOT NULL,              -- of all its rows
    record bytea NOT NULL,              -- a store without samples, compressed
    month date NOT NULL,                -- the partition of its samples
    file text,                          -- the Parquet file that has them since
    pushed_time timestamptz NOT NULL DEFAULT now(),
    pushed_by text NOT NULL DEFAULT session_user
);
ALTER TABLE run ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE INDEX run_of_profile ON run (profile, created_time);
CREATE INDEX run_of_month ON run (month);
CREATE TABLE subject (                  -- what a figure is of
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key uuid NOT NULL UNIQUE,           -- of all that follows
    profile text NOT NULL,
    flow text NOT NULL,
    backend text NOT NULL,
    source text NOT NULL,               -- where the data come from
    target text NOT NULL,
    direction text NOT NULL,
    point jsonb NOT NULL,               -- axis -> value
    metric text NOT NULL
);
CREATE INDEX subject_of_pair ON subject (source, target, metric);
CREATE TABLE figure (                   -- of the last attempt of a flow that measured to its end
    subject integer NOT NULL REFERENCES subject,
    time timestamptz NOT NULL,          -- when the flow began
    run uuid NOT NULL REFERENCES run ON DELETE CASCADE,
    trial integer NOT NULL,             -- from 1
    repeat integer NOT NULL,
    valid boolean NOT NULL,             -- whether it breaks no law, and its lab kept its promises
    value double precision NOT NULL,    -- the mean of a distribution
    min double precision,
    median double precision,
    p95 double precision,
    max double precision
);
CREATE INDEX figure_of_subject ON figure (subject, time) INCLUDE (valid, value, p95);
CREATE INDEX figure_of_run ON figure (run);
CREATE INDEX figure_of_time ON figure USING brin (time) WITH (pages_per_range = 16);
CREATE TABLE flow (                     -- the last attempt of each
    time timestamptz NOT NULL,
    run uuid NOT NULL REFERENCES run ON DELETE CASCADE,
    trial integer NOT NULL,
    repeat integer NOT NULL,
    point jsonb NOT NULL,
    flow text NOT NULL,
    backend text NOT NULL,
    source text NOT NULL,               -- the host it is started from
    target text NOT NULL,
    direction text NOT NULL,
    attempts integer NOT NULL,
    status text NOT NULL,
    failure text NOT NULL,              -- kind of failure
    error text NOT NULL
);
CREATE INDEX flow_of_run ON flow (run);
CREATE INDEX flow_of_time ON flow USING brin (time) WITH (pages_per_range = 16);
CREATE TABLE host (                     -- what a host counted during a trial
    time timestamptz NOT NULL,
    run uuid NOT NULL REFERENCES run ON DELETE CASCADE,
    trial integer NOT NULL,
    host text NOT NULL,
    busy_ratio double precision,
    busiest_ratio double precision,
    softirq_ratio double precision,
    steal_ratio double precision,
    rx_errors bigint,
    rx_dropped bigint,
    tx_errors bigint,
    tx_dropped bigint,
    clock_offset_s double precision,
    clock_error_s double precision,
    unread text NOT NULL,               -- why there are no counts
    counts jsonb NOT NULL               -- counters of the kernel, by name
);
CREATE INDEX host_of_run ON host (run);
CREATE INDEX host_of_time ON host USING brin (time) WITH (pages_per_range = 16);
CREATE TABLE piece (                    -- samples of one series in their order
    month date NOT NULL,
    run uuid NOT NULL REFERENCES run ON DELETE CASCADE,
    series integer NOT NULL,            -- its id in the record
    number integer NOT NULL,            -- of the pieces of a series, from 0
    began_time timestamptz,             -- second 0 of the flow
    trial integer NOT NULL,
    flow text NOT NULL,
    attempt integer NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    role text NOT NULL,                 -- which end told it
    stream integer NOT NULL,
    direction text NOT NULL,
    metrics text[] NOT NULL,
    samples integer NOT NULL,
    steps integer[] NOT NULL,           -- ids of its samples, each less the one before
    starts_s double precision[] NOT NULL,
    ends_s double precision[] NOT NULL,
    arrived_s double precision[] NOT NULL,
    omitted boolean[] NOT NULL,         -- {} if none is
    values double precision[] NOT NULL, -- of the first metric, then of the second
    PRIMARY KEY (month, run, series, number)
) PARTITION BY LIST (month);

CREATE FUNCTION add_month(wanted date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = benchctl_data, pg_temp AS $$
DECLARE
    part text := 'piece_' || to_char(wanted, 'YYYY_MM');
BEGIN
    IF wanted <> date_trunc('month', wanted)::date
        OR wanted NOT BETWEEN '1970-01-01' AND '2999-12-01' THEN
        RAISE EXCEPTION 'no month: %', wanted;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('benchctl ' || part, 0));
    IF to_regclass(part) IS NULL THEN
        -- To attach a table locks out no readers, as to create a partition would.
        EXECUTE format('CREATE TABLE %I (LIKE piece INCLUDING ALL)', part);
        EXECUTE format('ALTER TABLE piece ATTACH PARTITION %I FOR VALUES IN (%L)', part, wanted);
    END IF;
END
$$;
REVOKE ALL ON FUNCTION add_month FROM PUBLIC;
"""

DROP_VIEWS = """
DROP VIEW benchctl.runs, benchctl.subjects, benchctl.figures, benchctl.flows, benchctl.hosts,
    benchctl.samples
"""
"""Fails if somebody's own views are made of them."""

VIEWS = """
CREATE SCHEMA IF NOT EXISTS benchctl;
SET LOCAL search_path = benchctl_data, pg_temp;

CREATE VIEW benchctl.runs AS
SELECT id, name, profile, title, created_time, started_time, finished_time, status, error, trials,
    tags, origin, samples, file AS samples_file, pushed_time, pushed_by
FROM run;

CREATE VIEW benchctl.subjects AS
SELECT profile, flow, backend, source, target, direction, point, metric FROM subject;

CREATE VIEW benchctl.figures AS
SELECT f.time, r.name AS run, s.profile, f.trial, f.repeat, s.point, s.flow, s.backend, s.source,
    s.target, s.direction, s.metric, f.value, f.min, f.median, f.p95, f.max, f.valid
FROM figure f JOIN subject s ON s.id = f.subject JOIN run r ON r.id = f.run;

CREATE VIEW benchctl.flows AS
SELECT f.time, r.name AS run, r.profile, f.trial, f.repeat, f.point, f.flow, f.backend, f.source,
    f.target, f.direction, f.attempts, f.status, f.failure, f.error
FROM flow f JOIN run r ON r.id = f.run;

CREATE VIEW benchctl.hosts AS
SELECT h.time, r.name AS run, r.profile, h.trial, h.host, h.busy_ratio, h.busiest_ratio,
    h.softirq_ratio, h.steal_ratio, h.rx_errors, h.rx_dropped, h.tx_errors, h.tx_dropped,
    h.clock_offset_s, h.clock_error_s, h.unread, h.counts
FROM host h JOIN run r ON r.id = h.run;

CREATE VIEW benchctl.samples AS
SELECT p.began_time + make_interval(secs => s.end_s) AS time, p.month, r.name AS run, r.profile,
    p.trial, p.flow, p.attempt, p.source, p.target, p.role, p.stream, p.direction, s.start_s,
    s.end_s, coalesce(s.omitted, false) AS omitted, m.metric, s.value
FROM piece p JOIN run r ON r.id = p.run
CROSS JOIN LATERAL unnest(p.metrics) WITH ORDINALITY AS m (metric, place)
CROSS JOIN LATERAL unnest(
    p.starts_s, p.ends_s, p.omitted,
    p.values[((m.place - 1) * p.samples + 1)::integer : (m.place * p.samples)::integer]
) AS s (start_s, end_s, omitted, value);
"""

RIGHTS = f"""
GRANT USAGE ON SCHEMA benchctl, benchctl_data TO {WRITER}, {READER};
GRANT SELECT ON ALL TABLES IN SCHEMA benchctl, benchctl_data TO {WRITER}, {READER};
GRANT INSERT, DELETE ON benchctl_data.run, benchctl_data.subject, benchctl_data.figure,
    benchctl_data.flow, benchctl_data.host, benchctl_data.piece TO {WRITER};
GRANT EXECUTE ON FUNCTION benchctl_data.add_month TO {WRITER};
"""
