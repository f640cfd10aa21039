"""The pages about results against a real run: every key, column, event, metric, code and table."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from docs.documents import blocks_of, filled, names_in, section, table, text_of, write_files

from benchctl import errors
from benchctl.analysis.clocks.clocks import Clocks, ClocksOverRun, ClockVerdict
from benchctl.analysis.flow.laws import LAWS
from benchctl.analysis.runs.compare import Comparison, Verdict
from benchctl.api import METRICS
from benchctl.backends import installed
from benchctl.cli.shared.watch import SIGNAL_CODES
from benchctl.hosts.sent.counters import SUMS
from benchctl.lab.emulate.messages import DirectionCounters
from benchctl.lab.verify.strain import Carried
from benchctl.metrics import Vocabulary
from benchctl.report.exports.entries import (
    EVENT_KEYS,
    OUTCOME_KEYS,
    SCHEMA_VERSION,
    comparison_entry,
)
from benchctl.report.exports.jsonl import event_lines
from benchctl.report.output import formats
from benchctl.report.text.clocks import clock_entry, over_entry
from benchctl.run.record import CpuUse, HostCounters, InterfaceCounters, Note
from benchctl.store.follow import Noted
from benchctl.units import unit_of, without_unit

DOCUMENT = "output.md"
REFERENCE = "output-reference.md"
COUNTERS = DirectionCounters(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
BUNDLED = ("iperf2", "iperf3", "owping", "ping", "simpleperf")


@pytest.fixture(scope="module")
def directory(tmp_path_factory, shell_in):
    """A directory in which the sessions of both pages were run: the store, and all exports."""
    shell = shell_in(tmp_path_factory.mktemp("output"))
    for page in (DOCUMENT, REFERENCE):
        write_files(page, shell.directory)
        for block in blocks_of(page, "console"):
            shell.check(block)
    return shell.directory


@pytest.fixture(scope="module")
def document(directory):
    return json.loads((directory / "run.json").read_text())


@pytest.fixture(scope="module")
def events(directory):
    """The run's events, and one of each kind that did not happen in it."""
    lines = (directory / "events.jsonl").read_text().splitlines()
    noted = event_lines([Noted(Note(1, None, None, 0.0, "remark", "it rained"))])
    return [json.loads(line) for line in (*lines, *noted)]


@pytest.mark.parametrize(
    ("heading", "pick"),
    [
        ("## JSON", lambda document: document),
        ("### run", lambda document: document["run"]),
        ("### trials[]", lambda document: document["trials"][0]),
        ("### trials[].links[]", lambda _: Carried("", "", "", COUNTERS).as_entry()),
        ("### trials[].flows[]", lambda document: document["trials"][0]["flows"][0]),
        ("### trials[].flows[].limit", lambda document: document["trials"][0]["flows"][0]["limit"]),
        ("### trials[].flows[].events[]", lambda _: ("kind", *EVENT_KEYS)),
        ("### summary[]", lambda document: document["summary"][0]),
    ],
)
def test_every_key_of_the_json_is_described(document, heading, pick):
    rows = table(section(REFERENCE, heading))
    assert sorted(names_in(rows)) == sorted(pick(document))


def test_every_counter_of_a_host_is_described(request):
    rows = table(section(REFERENCE, "### trials[].counters"))
    assert names_in(rows) == [*HostCounters.__struct_fields__]
    described = dict(zip(names_in(rows), [row[1] for row in rows], strict=True))
    assert set(CpuUse.__struct_fields__) <= set(names_in([[described["cpu"]]]))
    told = names_in([[described["interfaces"]]])
    ways = {f"{way}{what}" for way in ("rx_", "tx_") for what in told}
    assert set(InterfaceCounters.__struct_fields__) <= ways
    lines = ["| count | counters of the kernel |", "|---|---|"]
    for name, sources in SUMS.items():
        lines.append(f"| `{name}` | {', '.join(f'`{one}`' for one in sources)} |")
    lines.append("| `softnet_dropped`, `softnet_squeezed` | second and third column of "
                 "`/proc/net/softnet_stat`, of all processors |")  # fmt: skip
    filled(REFERENCE, "host counts", lines, request.config.getoption("--update-golden"))


def test_expectations_and_the_version_are_as_described():
    assert names_in(table(section(REFERENCE, "### expectations[]"))) == [*OUTCOME_KEYS]
    assert f"`schema_version` is {SCHEMA_VERSION}" in text_of(REFERENCE)


def test_every_key_of_every_event_is_described(document, events):
    trial = document["trials"][0]
    of_others = {
        "flow_ended": {"trial", *trial["flows"][0]} - {"reported", "limit", "clocks", "events"},
        "trial_ended": trial.keys() - {"flows", "reported"},
        "run_ended": document["run"].keys(),
    }
    described = {}
    for name, keys in table(section(REFERENCE, "## Events")):
        event = name.strip("`")
        assert ("the keys of a" in keys) == (event in of_others)
        described[event] = set(of_others.get(event) or names_in([[keys]]))
    assert {event["event"]: event.keys() - {"event"} for event in events} == described


def test_every_column_of_the_csv_is_listed(directory):
    paragraphs = section(REFERENCE, "## CSV").split("\n\n")
    listed = [names_in([[text]]) for text in paragraphs if text.startswith("`flow`")]
    files = ("summary.csv", "samples.csv")
    heads = [(directory / name).read_text().partition("\n")[0].split(",") for name in files]
    assert heads == [["streams", *listed[0]], ["trial", "repeat", "streams", *listed[1]]]


def test_every_key_about_clocks_and_every_verdict_is_described():
    clocks = Clocks(ClockVerdict.APART, {"send": -1.0}, {}, None, None, None, None, False, None)
    rows = table(section(REFERENCE, "### trials[].flows[].clocks"))
    assert names_in(rows) == [*clock_entry(clocks)]
    assert all(verdict in rows[0][1] for verdict in ClockVerdict)
    over = ClocksOverRun(clocks, clocks, 1.0, (0.0, 1.0), (0.0, 0.0), None)
    rows = table(section(REFERENCE, "### clocks[]"))
    assert names_in(rows) == [*over_entry("probe", over)]


def test_every_key_and_verdict_of_a_comparison_is_described():
    rows = table(section(REFERENCE, "## Comparison"))
    one = Comparison({}, "main", "send", "rtt_s", (), (), None, None, None, Verdict.FEW)
    assert names_in(rows) == ["a", "b", *comparison_entry(one)]
    assert dict(rows)["`verdict`"].split(", ") == list(Verdict)


def test_every_export_is_listed(request):
    lines = ["| format | endings | what it is |", "|---|---|---|"]
    for export in map(formats.load, [*formats.names(), "samples"]):
        endings = ", ".join(f"`.{ending}`" for ending in export.endings)
        lines.append(f"| `{export.name}` | {endings} | {export.about} |")
    filled(DOCUMENT, "exports", lines, request.config.getoption("--update-golden"))


def test_the_columns_of_metrics_are_those_of_the_tables(request):
    lines = [f"`{without_unit(name)}`" for name in Vocabulary().wanted]
    filled(DOCUMENT, "columns", lines, request.config.getoption("--update-golden"))


def test_the_metrics_are_those_of_the_contract(request):
    lines = ["| metric | unit | figure | better | definition |", f"|{'---|' * 5}"]
    lines += [_described(metric) for metric in METRICS.values()]
    filled(REFERENCE, "metrics", lines, request.config.getoption("--update-golden"))


def test_the_backends_own_metrics_are_those_they_declare(request):
    lines = [
        "| backend | metric | unit | figure | better | definition |",
        "|---|---|---|---|---|---|",
    ]
    for name in BUNDLED:
        for metric in installed().load(name).capabilities.metrics:
            lines.append(f"| {name} {_described(metric)}")
    filled(REFERENCE, "own metrics", lines, request.config.getoption("--update-golden"))


def _described(metric):
    figure = " / ".join(metric.per) if metric.per else str(metric.fold)
    figure += ", of each stream" if metric.by_stream else ""
    cells = (f"`{metric.name}`", unit_of(metric.name), figure, metric.better, metric.description)
    return f"| {' | '.join(cells)} |"


def test_the_exit_codes_are_those_of_the_errors():
    codes = {int(row[0]) for row in table(section(DOCUMENT, "## Exit codes"))}
    raised = {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    assert codes == {0, 1} | raised | set(SIGNAL_CODES.values())


def test_every_table_and_column_of_the_store_is_described(directory):
    with closing(sqlite3.connect(directory / "runs.sqlite")) as store:
        tables = {
            name: {row[1] for row in store.execute(f"PRAGMA table_info({name})")}
            for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    described = {}
    for row in table(section(REFERENCE, "## The store")):
        described.setdefault(row[0].strip("`"), set()).update(names_in([row], 1))
    assert described == tables


def test_the_query_gives_the_throughput_of_every_trial(directory, document):
    (block,) = blocks_of(REFERENCE, "sql")
    with closing(sqlite3.connect(directory / "runs.sqlite")) as store:
        rows = store.execute(block.text).fetchall()
    assert [(json.loads(point), mbit) for point, *_, mbit, _ in rows] == [
        (trial["point"], round(trial["flows"][0]["metrics"]["throughput_bps"] / 1e6, 1))
        for trial in document["trials"]
    ]


def test_the_python_lines_unpack_every_sample(directory, events):
    command = [sys.executable, "unpack.py"]
    printed = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    samples = [event for event in events if event["event"] == "sample"]
    assert printed.stdout.splitlines() == [f"{e['start_s']} {e['metrics']}" for e in samples]


def test_every_law_is_described(request):
    lines = ["| law | what it allows for |", "|---|---|"]
    lines += [f"| {law.name} | {law.tolerance} |" for law in LAWS]
    filled(DOCUMENT, "laws", lines, request.config.getoption("--update-golden"))
