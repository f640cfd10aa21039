"""Exporters and importers of plugins are used like benchctl's own; a broken one harms nobody."""

import json

import pytest
from cli.conftest import TOY
from docs.documents import write_files
from imports.reports import report, write
from store.store_support import measured_run

from benchctl.plugins import FILES_VARIABLE

EXPORTER = """
from benchctl.api import Exporter, ExportError

class {name}(Exporter):
    name = "{name}"
    about = "a toy"
    endings = ("{ending}",)
    {more}
    def export(self, run):
        {does}

EXPORTER = {name}()
"""
IMPORTER = """
from benchctl.api import Fold, Importer, Metric, ParserError, Recording, Sample

class {name}(Importer):
    name = "{name}"
    about = "a toy"
    {more}
    def recorded(self, data):
        {does}

IMPORTER = {name}()
"""
RUN = """
[flows.main]
backend = "toy"
"""


def exporter(folder, name="memo", does='yield run.document["run"]["id"]', ending="", more=""):
    file = folder / f"{name}.py"
    file.write_text(EXPORTER.format(name=name, does=does, ending=ending or name, more=more))
    return file


def importer(folder, name="memo", does="return None", more=""):
    file = folder / f"{name}.py"
    file.write_text(IMPORTER.format(name=name, does=does, more=more))
    return file


@pytest.fixture
def elsewhere(tmp_path_factory):
    """A directory apart from the repository and from where commands run."""
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture
def columns(elsewhere):
    """The example of the documents."""
    write_files("plugins.md", elsewhere)
    return elsewhere / "columns.py"


def test_a_strangers_format_is_written_and_read_back_with_the_same_figures(benchctl, columns):
    write(benchctl.directory / "a.json", report(streams=2))
    old_name = benchctl("import", "a.json").stdout.strip()
    written = benchctl("--plugin", columns, "export", "-o", "run.dat")
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    named = benchctl("--plugin", columns, "export", "--format", "columns").stdout
    assert named == (benchctl.directory / "run.dat").read_text()
    read = benchctl("--plugin", columns, "import", "run.dat")
    assert read.returncode == 0, read.stderr
    assert read.stderr == "run: 1 trial of columns\n"
    (before, after) = (
        json.loads(benchctl("export", name, "--format", "json").stdout)
        for name in (old_name, read.stdout.strip())
    )
    ((old,), (new,)) = (
        [flow["metrics"] for flow in run["trials"][0]["flows"]] for run in (before, after)
    )
    assert new["sent_bps"] == pytest.approx(old["sent_bps"])
    assert after["run"]["origin"] == "columns"


def test_a_run_ends_in_a_strangers_format(benchctl, elsewhere):
    benchctl.environment[FILES_VARIABLE] = f"{TOY}:{exporter(elsewhere)}"
    done = benchctl("run", "-q", benchctl.profile(RUN), "--output", "result.memo")
    assert (done.returncode, done.stdout) == (0, "")
    run = json.loads(benchctl("export", "--format", "json").stdout)
    assert (benchctl.directory / "result.memo").read_text() == run["run"]["id"]


@pytest.mark.parametrize("command", ["export", "run", "resume", "quick"])
def test_help_names_the_formats_of_plugins(benchctl, elsewhere, command):
    plain = " ".join(benchctl(command, "--help").stdout.split())
    plugged = " ".join(benchctl("--plugin", exporter(elsewhere), command, "--help").stdout.split())
    assert plugged == plain.replace(", flent; default", ", flent, memo; default")
    assert plugged != plain


def complete(benchctl, *words):
    environment = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1),
                   "_BENCHCTL_COMPLETE": "complete_bash"}  # fmt: skip
    benchctl.environment |= environment
    return [line.partition("\t")[0] for line in benchctl().stdout.splitlines()]


def test_completion_names_the_formats_and_kinds_of_plugins(benchctl, columns, elsewhere):
    broken = elsewhere / "nothing.py"
    broken.write_text("EXPORTER = IMPORTER = 1 / 0")
    benchctl.environment[FILES_VARIABLE] = f"{columns}:{broken}"
    formats = complete(benchctl, "benchctl", "export", "--format", "")
    assert {"table", "json", "flent", "columns"} <= {*formats}
    assert "samples" not in formats
    kinds = complete(benchctl, "benchctl", "import", "--as", "")
    assert {"iperf3", "ping", "flent", "store", "columns"} <= {*kinds}
    assert "nothing" not in kinds


def test_a_file_that_is_no_backend_is_not_listed_as_one(benchctl, columns):
    assert "columns" not in benchctl("--plugin", columns, "backends").stdout


# --- what is wrong with a plugin is said, and affects nothing else --------------------------------


def test_doctor_names_those_that_are_broken(benchctl, elsewhere):
    broken = elsewhere / "broken.py"
    broken.write_text("EXPORTER = IMPORTER = 1 / 0")
    told = benchctl("--plugin", broken, "--plugin", exporter(elsewhere), "doctor").stdout
    for kind in ("exporter", "importer"):
        assert f'{kind} "broken" cannot be loaded: ZeroDivisionError' in told
    assert "memo" not in told


def test_an_unknown_format_names_the_nearest(benchctl, elsewhere):
    told = benchctl("--plugin", exporter(elsewhere), "export", "--format", "mem")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == 'benchctl: --format "mem" is no format\n  did you mean "memo"?\n'


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("yield 1 / 0", "ZeroDivisionError: division by zero"),
        ("yield b'bytes'", "TypeError: it yields bytes, and not str"),
        ("return run", "TypeError: '_PromisedRun' object is not iterable"),
        ("raise SystemExit(7)", "SystemExit: 7"),
        ("yield run.reader", "AttributeError: '_PromisedRun' object has no attribute 'reader'"),
    ],
)
def test_what_an_exporter_does_wrong_is_reported_as_its_bug(benchctl, elsewhere, does, said):
    measured_run(benchctl.store, {1: (1e6,)})
    plugin = exporter(elsewhere, does=does)
    told = benchctl("--plugin", plugin, "export", "-o", "a.memo")
    assert told.returncode == 3
    assert told.stderr.startswith(f'benchctl: exporter "memo" failed: {said}\n')
    assert not (benchctl.directory / "a.memo").exists()
    assert benchctl("--plugin", plugin, "export", "--format", "csv").returncode == 0


def test_an_exporter_says_what_it_cannot_write(benchctl, elsewhere):
    measured_run(benchctl.store, {1: (1e6,)})
    plugin = exporter(elsewhere, does='raise ExportError("it has no pings", "measure some")')
    told = benchctl("--plugin", plugin, "export", "--format", "memo")
    assert (told.returncode, told.stderr) == (2, "benchctl: it has no pings\n  measure some\n")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('check = lambda self: (_ for _ in ()).throw(ExportError("no library"))', "no library"),
        ("single_trial = True", "a file of memo holds one trial, and this run has several"),
    ],
)
def test_what_an_exporter_lacks_is_said_before_anything_is_measured(
    benchctl, elsewhere, more, said
):
    benchctl.environment[FILES_VARIABLE] = f"{TOY}:{exporter(elsewhere, more=more)}"
    told = benchctl("run", benchctl.profile(RUN), "--repeat", "2", "-o", "a.memo")
    assert told.returncode == 2
    assert said in told.stderr
    assert not benchctl.store.exists()


def test_a_format_of_single_trials_has_one_at_a_time(benchctl, elsewhere):
    measured_run(benchctl.store, {1: (1e6, 2e6), 2: (None,)})
    does = 'yield str([run.document["trials"][0]["index"], len(run.document["trials"])])'
    plugin = exporter(elsewhere, does=does, more="single_trial = True")
    (benchctl.directory / "all").mkdir()
    assert benchctl("--plugin", plugin, "export", "--format", "memo", "-o", "all").returncode == 0
    written = sorted((benchctl.directory / "all").iterdir())
    assert [path.read_text() for path in written] == ["[0, 1]", "[1, 1]"]
    assert [path.name.partition("-")[2].rpartition("-")[2] for path in written] == [
        "1.memo", "2.memo",
    ]  # fmt: skip
    one = benchctl("--plugin", plugin, "export", "--format", "memo", "--trial", "3")
    assert one.stdout == "[2, 1]"
    assert "has 3" in benchctl("--plugin", plugin, "export", "--format", "memo").stderr
    assert "not for csv" in benchctl("export", "--format", "csv", "--trial", "1").stderr


@pytest.mark.parametrize("ending", ["csv", "memo.json", "sqlite"])
def test_an_ending_of_our_own_is_refused(benchctl, elsewhere, ending):
    measured_run(benchctl.store, {1: (1e6,)})
    plugin = exporter(elsewhere, ending=ending)
    told = benchctl("--plugin", plugin, "export", "--format", "memo")
    assert told.returncode == 3
    assert f"files that end in .{ending} are of benchctl's own format" in told.stderr
    assert benchctl("--plugin", plugin, "export", "-o", "a.csv").returncode == 0


@pytest.mark.parametrize("ending", [".memo", "Memo", "me/mo", ""])
def test_an_ending_that_no_file_has_is_refused(benchctl, elsewhere, ending):
    measured_run(benchctl.store, {1: (1e6,)})
    plugin = exporter(elsewhere)
    plugin.write_text(plugin.read_text().replace('("memo",)', f'("{ending}",)'))
    told = benchctl("--plugin", plugin, "export", "--format", "memo")
    assert told.returncode == 3
    assert f'its ending "{ending}" is not' in told.stderr


def test_a_file_with_the_name_of_our_own_format_is_refused(benchctl, elsewhere):
    measured_run(benchctl.store, {1: (1e6,)})
    plugin = exporter(elsewhere, name="csv", ending="memo")
    told = benchctl("--plugin", plugin, "export", "--format", "csv")
    assert told.returncode == 3
    assert "benchctl itself has a format of this name" in told.stderr
    assert benchctl("--plugin", plugin, "export", "--format", "json").returncode == 0


def test_an_ending_of_two_plugins_is_nobodys(benchctl, elsewhere):
    measured_run(benchctl.store, {1: (1e6,)})
    files = [exporter(elsewhere, name=name, ending="x") for name in ("one", "two")]
    benchctl.environment[FILES_VARIABLE] = ":".join(map(str, files))
    told = benchctl("export", "-o", "a.x")
    assert told.returncode == 2
    assert "one and two both have .x" in told.stderr
    assert benchctl("export", "-o", "a.x", "--format", "two").returncode == 0


def test_of_two_endings_the_longer_one_counts(benchctl, elsewhere):
    measured_run(benchctl.store, {1: (1e6,)})
    files = [
        exporter(elsewhere, name=name, does=f'yield "{name}"', ending=ending)
        for name, ending in (("short", "gz"), ("long", "long.gz"))
    ]
    benchctl.environment[FILES_VARIABLE] = ":".join(map(str, files))
    for file, name in (("a.gz", "short"), ("a.long.gz", "long"), ("A.LONG.GZ", "long")):
        assert benchctl("export", "-o", file).returncode == 0
        assert (benchctl.directory / file).read_text() == name


def test_a_broken_exporter_is_named_where_its_ending_may_be_meant(benchctl, elsewhere):
    broken = elsewhere / "broken.py"
    broken.write_text("EXPORTER = there_is_none")
    told = benchctl("--plugin", broken, "export", "-o", "a.memo")
    assert told.returncode == 2
    assert 'exporter "broken" cannot be loaded: NameError' in told.stderr


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("return data.nothing", "the plugin memo failed: AttributeError"),
        ("return [{'main': 7}]", "the plugin memo failed: TypeError: int is no Recording"),
        ("raise SystemExit", "the plugin memo failed: SystemExit"),
    ],
)
def test_what_an_importer_does_wrong_is_reported_and_the_others_read(
    benchctl, elsewhere, columns, does, said
):
    benchctl.environment[FILES_VARIABLE] = f"{importer(elsewhere, does=does)}:{columns}"
    write(benchctl.directory / "a.json", report())
    (benchctl.directory / "notes.json").write_text("nothing that anyone reads")
    done = benchctl("import", "-q", "a.json", "notes.json")
    assert done.returncode == 1
    assert done.stdout.count("\n") == 1
    assert f"notes.json: {said}" in done.stderr


def test_an_importer_that_fails_first_does_not_hide_those_after_it(benchctl, elsewhere):
    first = importer(elsewhere, "alpha", "raise KeyError(1)")
    last = importer(
        elsewhere, "omega", "return [{'main': Recording([Sample(0, 1, {'rtt_s': 0.5})])}]"
    )
    benchctl.environment[FILES_VARIABLE] = f"{first}:{last}"
    (benchctl.directory / "notes").write_text("of omega")
    done = benchctl("import", "notes")
    assert (done.returncode, done.stderr) == (0, "notes: 1 trial of omega\n")


def test_a_broken_importer_is_named_where_it_may_be_meant(benchctl, elsewhere):
    broken = elsewhere / "broken.py"
    broken.write_text("IMPORTER = 1 / 0")
    (benchctl.directory / "notes").write_text("of nobody")
    why = 'importer "broken" cannot be loaded: ZeroDivisionError'
    told = benchctl("--plugin", broken, "import", "notes")
    assert told.returncode == 1
    assert why in told.stderr
    told = benchctl("--plugin", broken, "import", "--as", "broken", "notes")
    assert (told.returncode, why in told.stderr) == (3, True)


@pytest.mark.parametrize("name", ["iperf3", "store"])
def test_an_importer_with_the_name_of_another_kind_is_refused(benchctl, elsewhere, name):
    plugin = importer(elsewhere, name, "raise KeyError")
    write(benchctl.directory / "a.json", report())
    assert benchctl("--plugin", plugin, "import", "a.json").stderr == "a: 1 trial of iperf3\n"
    told = benchctl("--plugin", plugin, "import", "--as", name, "a.json")
    assert told.returncode == 3
    assert "there is another of this name" in told.stderr


def test_an_importers_own_metric_has_a_column(benchctl, elsewhere):
    plugin = importer(
        elsewhere,
        does="return [{'main': Recording([Sample(0, 1, {'luck': 3.0})])}]",
        more='metrics = (Metric("luck", "good fortune", Fold.VALUE, "higher"),); headline = "luck"',
    )
    (benchctl.directory / "notes").write_text("of luck")
    assert benchctl("--plugin", plugin, "import", "notes").returncode == 0
    assert "luck" in benchctl("export").stdout.splitlines()[0]


def test_check_judges_every_plugin_of_a_file(benchctl, columns):
    run = benchctl.directory / "samples"
    run.mkdir()
    write(benchctl.directory / "a.json", report())
    assert benchctl("import", "a.json").returncode == 0
    assert benchctl("--plugin", columns, "export", "-o", run / "run.dat").returncode == 0
    told = benchctl("backends", "check", columns, "--samples", run, "--json")
    found = json.loads(told.stdout)
    assert {one["kind"] for one in found} == {"exporter", "importer"}
    assert [one for one in found if one["standing"] != "ok"] == []
    assert told.returncode == 0


def test_check_names_the_plugin_that_breaks_a_rule(benchctl, elsewhere):
    told = benchctl("backends", "check", exporter(elsewhere, does="yield 7"))
    assert told.returncode == 1
    assert "it yields int, and not str" in told.stdout
    assert "to do: yield text, or set binary and yield bytes only" in told.stdout
