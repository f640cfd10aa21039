"""``benchctl import``: files, folders, stores, the command, and files that mean harm."""

import gzip
import json
import os
import shutil
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from imports.reports import BEGUN, document, imported, only, report, write
from report.whole import whole

from benchctl.cli.commands.import_ import import_
from benchctl.errors import UsageError
from benchctl.imports import files
from benchctl.report.output import formats
from benchctl.store.read import Reader


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def names_in(store):
    with closing(Reader(store)) as reader:
        return [*reader.names()]


def test_the_same_file_is_imported_once_under_any_name(store, tmp_path):
    path = write(tmp_path / "a.json", report())
    (run,), _ = imported(store, path)
    shutil.copy(path, tmp_path / "b.json")
    runs, left = imported(store, path, tmp_path / "b.json")
    assert runs == []
    assert [(one.why, one.is_fault) for one in left] == [
        (f"is there already: {run.name}", False)
    ] * 2  # fmt: skip
    assert len(names_in(store)) == 1


def test_of_two_equal_files_in_a_folder_one_counts(store, tmp_path):
    path = write(tmp_path / "d" / "a.json", report())
    shutil.copy(path, tmp_path / "d" / "b.json")
    runs, left = imported(store, tmp_path / "d")
    assert runs[0].trials == 1
    assert [one.file for one in left] == [str(tmp_path / "d" / "b.json")]


def test_of_two_imports_at_once_one_brings_the_files(store, tmp_path, monkeypatch):
    write(tmp_path / "d" / "a.json", report())
    ((run,), _) = imported(store, tmp_path / "d")
    # The other import looked before this one had ended.
    monkeypatch.setattr(Reader, "imported", lambda self, sha256: None)
    write(tmp_path / "d" / "b.json", report(at=BEGUN + 9))
    runs, (left,) = imported(store, tmp_path / "d")
    assert runs == []
    assert (left.file, left.is_fault) == ("d", True)
    assert left.why == f"another import brought its files, as {run.name}; import the rest again"
    assert names_in(store) == [run.name]


def test_a_deleted_run_can_be_imported_again(store, tmp_path):
    from benchctl.store.manage import delete_run

    path = write(tmp_path / "a.json", report())
    imported(store, path)
    delete_run(store, 1)
    runs, left = imported(store, path)
    assert (len(runs), left) == (1, [])


def test_a_failure_half_way_leaves_no_half_run(store, tmp_path, monkeypatch):
    from benchctl.errors import StoreError
    from benchctl.imports.run import RunBuilder

    def broken(self, file, trials):
        if file.path.name == "1.json":
            raise StoreError("the disk is full")
        whole(self, file, trials)

    whole = RunBuilder.add
    monkeypatch.setattr(RunBuilder, "add", broken)
    for n in range(3):
        write(tmp_path / "d" / f"{n}.json", report(at=BEGUN + n))
    with pytest.raises(StoreError):
        imported(store, tmp_path / "d")
    assert not store.exists()


def test_a_dry_run_leaves_the_store_as_it_is(store, tmp_path):
    runs, _ = imported(store, write(tmp_path / "a.json", report()), dry=True)
    assert runs[0].trials == 1
    assert not store.exists()


def test_folders_are_runs_and_single_files_are_one_together(store, tmp_path):
    for n, place in enumerate(("one/a", "one/deep/b", "two/c", "d", "e")):
        write(tmp_path / f"{place}.json", report(at=BEGUN + n))
    write(tmp_path / "one" / ".hidden.json", report(at=BEGUN + 9))
    paths = [tmp_path / name for name in ("one", "d.json", "two", "e.json")]
    runs, left = imported(store, *paths)
    assert [(run.profile, run.trials) for run in runs] == [
        (tmp_path.name, 2), ("one", 2), ("two", 1),
    ]  # fmt: skip
    assert left == []


def test_old_runs_of_a_profile_come_first_in_its_trend(store, tmp_path):
    for n, at in enumerate((BEGUN + 50, BEGUN)):
        imported(store, write(tmp_path / f"{n}.json", report(at=at)), profile="p")
    from benchctl.cli.commands.trend import _opened

    with _opened(store, None, "p", None) as (_, runs):
        assert [run.created_time for run in runs] == [BEGUN, BEGUN + 50]


def test_what_other_programs_left_in_a_folder_is_passed_over(store, tmp_path):
    write(tmp_path / "d" / "a.json", report())
    (tmp_path / "d" / "README.txt").write_text("My results\n")
    (tmp_path / "d" / "empty").touch()
    runs, left = imported(store, tmp_path / "d")
    assert len(runs) == 1
    assert {Path(one.file).name: one.is_fault for one in left} == {
        "README.txt": False, "empty": False,
    }  # fmt: skip


# --- files that are not what they say, and files that mean harm ----------------------------------


def with_test(settings):
    return json.dumps(report(test_start=settings)).encode()


HOSTILE = {
    "other.json": b'{"hello": "world"}',
    "empty.json": b"",
    "no.json": b"\x00\xff\xfe" * 1000,
    "list.json": b'[{"start": {"connected": 1}}]',
    "deep.json": b'{"start": {"connected": ' + b"[" * 200_000,
    "null.json": b'{"start": null, "intervals": null, "connected": 1}',
    "cut.gz": gzip.compress(b'{"start"' * 1000)[:20],
    "packed.json.gz": b"\x1f\x8b" + Random(1).randbytes(100),
    "late.json": json.dumps(report(timestamp={"timesecs": 1e300})).encode(),
    "later.json": json.dumps(report(timestamp={"timesecs": 1e29})).encode(),
    "before.json": json.dumps(report(timestamp={"timesecs": -5})).encode(),
    "streams.json": with_test({"protocol": "TCP", "num_streams": 10**9}),
    "words.json": with_test({"protocol": "TCP", "num_streams": "4"}),
    "protocol.json": with_test({"protocol": "x" * 10**6}),
    "zero.json": b'{"start": {"connected": []}}' * 100_001,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_not_what_it_says_ends_in_one_line_and_the_rest_goes_on(
    store, tmp_path, name
):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name).write_bytes(HOSTILE[name])
    write(tmp_path / "d" / "well.json", report())
    runs, left = imported(store, tmp_path / "d")
    assert [run.trials for run in runs] == [1]
    (one,) = left
    assert one.file == str(tmp_path / "d" / name)
    assert one.is_fault
    assert one.why
    assert len(one.why) < 500


def with_interval(**values):
    data = report()
    data["intervals"][0]["streams"][0] |= values
    return data


@pytest.mark.parametrize(
    "values",
    [{"start": -1e20}, {"end": 1e29}, {"start": 5, "end": 1}, {"bytes": 1e300}, {"socket": 1e29}],
)
def test_an_interval_that_cannot_be_is_refused_or_harmless(store, tmp_path, values):
    runs, left = imported(store, write(tmp_path / "a.json", with_interval(**values)))
    assert len(runs) + len(left) == 1
    if runs:
        document(store)


def test_a_bomb_is_not_unpacked(store, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(bytes(8 << 20)))
    (tmp_path / "big.json").write_bytes(b"{" + b" " * (1 << 20))
    _, left = imported(store, tmp_path / "bomb.json.gz", tmp_path / "big.json")
    assert [one.why for one in left] == [
        "what it unpacks to has more than 1 MiB", "it has more than 1 MiB",
    ]  # fmt: skip


def test_a_packed_report_and_one_of_a_windows_shell_are_read(store, tmp_path):
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(report()).encode()))
    (tmp_path / "b.json").write_text(json.dumps(report(at=BEGUN + 1)), encoding="utf-16")
    (run,), left = imported(store, tmp_path / "a.json.gz", tmp_path / "b.json")
    assert (run.trials, left) == (2, [])


def test_a_pipe_is_no_file(store, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    _, (one,) = imported(store, tmp_path / "pipe")
    assert one.why == "it is not a regular file"


def test_names_of_any_bytes_and_texts_of_any_kind_are_stored_and_shown(store, tmp_path):
    path = tmp_path / os.fsdecode(b"\xff\x1b[31m.json")
    path.write_text(json.dumps(report(host="\ud800\x1b[2J" + "x" * 10**5)))
    run = only(store, path)
    (flow,) = run["trials"][0]["flows"]
    assert run["trials"][0]["file"].endswith("\\xff\x1b[31m.json")
    assert flow["to"].startswith("\\ud800\x1b[2J")
    assert len(flow["to"]) == 500


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def command(store, tmp_path, monkeypatch, capsys):
    """Return what runs the command in the folder of the files: its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*paths, **options):
        given = {"kind": None, "profile": "", "flow": "", "tags": [], "dry_run": False,
                 "quiet": False, **options}  # fmt: skip
        code = 0
        try:
            import_([Path(path) for path in paths], **given, store=store)
        except SystemExit as ended:
            code = ended.code
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_it_prints_names_on_stdout_and_the_rest_on_stderr(command, store, tmp_path):
    for n, streams in enumerate((1, 1, 4)):
        write(tmp_path / "d" / f"{n}.json", report(streams=streams, at=BEGUN + n))
    (tmp_path / "d" / "wrong.json").write_text("{}")
    (tmp_path / "d" / "README").write_text("hello")
    code, out, err = command("d", tags=["old,first"])
    assert code == 1
    assert out.splitlines() == names_in(store)
    assert err.splitlines() == [
        "d/wrong.json: is of no kind that is known: iperf2, iperf3, owping, ping, flent, store",
        "d: 3 trials of iperf3; streams 1|4",
        "skipped d/README: is of no kind that is known: iperf2, iperf3, owping, ping, flent, store",
    ]
    assert document(store)["run"]["tags"] == ["old", "first"]
    shutil.rmtree(tmp_path / "d")


def test_importing_again_is_no_error_and_says_so(command, store, tmp_path):
    for n in range(7):
        write(tmp_path / "d" / f"{n}.json", report(at=BEGUN + n))
    command("d")
    (name,) = names_in(store)
    code, out, err = command("d")
    assert (code, out) == (0, "")
    named = ", ".join(f"d/{n}.json" for n in range(5))
    assert err == f"skipped {named} and 2 more: is there already: {name}\n"


def test_a_dry_run_prints_no_name(command, tmp_path):
    write(tmp_path / "a.json", report())
    assert command("a.json", dry_run=True) == (0, "", "not stored: a: 1 trial of iperf3\n")


def test_a_kind_can_be_demanded(command, tmp_path):
    write(tmp_path / "a.json", report())
    assert command("a.json", kind="ping") == (1, "", "a.json: is no file of ping\n")
    with pytest.raises(UsageError) as wrong:
        command("a.json", kind="netperf")
    assert wrong.value.hint == "kinds are: iperf2, iperf3, owping, ping, flent, store"


def test_an_empty_folder_is_reported(store, tmp_path):
    (tmp_path / "empty").mkdir()
    _, (one,) = imported(store, tmp_path / "empty")
    assert (one.why, one.is_fault) == ("there is no file in it", True)


def test_a_path_that_is_not_there_is_a_wrong_command(command):
    with pytest.raises(UsageError, match=r"a\.json: there is no such file or folder"):
        command("a.json")


def test_profile_and_flow_can_be_named_as_those_of_other_runs(command, store, tmp_path):
    write(tmp_path / "a.json", report())
    command("a.json", profile="public", flow="bulk")
    run = document(store)
    assert (run["run"]["profile"], run["trials"][0]["flows"][0]["name"]) == ("public", "bulk")
    assert run["trials"][0]["flows"][0]["backend"] == "iperf3"


# --- imported runs beside others -----------------------------------------------------------------


def test_an_imported_run_is_compared_with_one_that_was_measured(store, tmp_path):
    from store.store_support import measured_run

    from benchctl.report.comparison.comparison import compare_reports
    from benchctl.report.report import read_report

    for n, (streams, rate) in enumerate([(1, 50e6), (1, 51e6), (1, 49e6), (4, 80e6)]):
        one = report(streams=streams, rate_bps=rate, at=BEGUN + n)
        write(tmp_path / "d" / f"{n}.json", one)
    imported(store, tmp_path / "d", flow="main")
    measured_run(store, {1: (95e6, 96e6, 94e6), 4: (80e6,)})
    with closing(Reader(store)) as reader:
        old, new = (read_report(reader, reader.run(run_id)) for run_id in (1, 2))
        ones = compare_reports(old, new)[0]
    # The axis of the measured run is called n.
    rates = [one for one in ones if one.metric == "throughput_bps" and one.a]
    assert [(one.point, len(one.a)) for one in rates] == [({"streams": 1}, 3), ({"streams": 4}, 1)]


@pytest.mark.parametrize("form", [name for name in formats.names() if name != "sqlite"])
def test_every_export_takes_an_imported_run(store, tmp_path, form):
    from benchctl.report.report import StoredRun

    imported(store, write(tmp_path / "a.json", report(streams=2)))
    with closing(Reader(store)) as reader:
        assert whole(form, StoredRun(reader, reader.run(1)))


def test_an_imported_run_cannot_be_resumed(store, tmp_path):
    from benchctl.engine.runner.launch import left_to_resume

    data = {**report(), "error": "interrupt - the client has terminated"}
    imported(store, write(tmp_path / "a.json", data))
    with closing(Reader(store)) as reader, pytest.raises(UsageError, match="was imported"):
        left_to_resume(reader, reader.run(1), trust=True, failed=True)


@pytest.mark.parametrize(("screen", "runs"), [("summary", (1,)), ("history", ())])
def test_screens_show_an_imported_run(store, tmp_path, screen, runs):
    from tui.driving import drive, open_page, shown

    async def look(pilot):
        assert "8.00 Mbit/s" in shown(pilot)

    imported(store, write(tmp_path / "a.json", report()))
    drive(store, open_page(store, screen, *runs), look, size=(100, 24))


def test_a_trial_names_its_file(store, tmp_path):
    from benchctl.report.lines.spans import to_text
    from benchctl.report.lines.trial import trial_lines
    from benchctl.report.text.detail import read_details

    imported(store, write(tmp_path / "a.json", report()))
    with closing(Reader(store)) as reader:
        (detail,) = read_details(reader, reader.run(1))
    assert f"  imported from {tmp_path / 'a.json'}" in map(
        to_text, ([x] for x in trial_lines(detail))
    )


def test_an_imported_run_has_a_trend_and_its_limits(store, tmp_path):
    from benchctl.analysis.runs.trend import trends_of
    from benchctl.report.report import read_report
    from benchctl.report.text.limiting import limit_lines
    from benchctl.report.trend import trend_table

    imported(store, write(tmp_path / "a.json", report()))
    with closing(Reader(store)) as reader:
        run = reader.run(1)
        told = read_report(reader, run)
    (row,) = trend_table([run], trends_of([0.0], [told.rows_of("throughput_bps")], "higher")).rows
    assert "8.00 Mbit/s" in row
    assert [*limit_lines(told)]
