import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from benchctl.store.read import Reader

HEAD = '[flows.main]\nbackend = "toy"\n'


@pytest.mark.parametrize(
    ("text", "args", "code", "message"),
    [
        ("[flows.main]\nbackend = ", (), 2, "p.toml:2: invalid TOML"),
        (HEAD + "duraton = '1s'\n", (), 2, "p.toml:3: flows.main.duraton: toy has no such"),
        (HEAD + "duration = 10\n", (), 2, "p.toml:3: flows.main.duration: "),
        (HEAD, ("--set", "duration=5"), 2, "--set duration: "),
        (HEAD, ("--only", "plan=ok"), 2, '--only plan=ok: no axis "plan"'),
        (HEAD.replace("toy", "iperf4"), (), 3, 'p.toml:2: flows.main.backend: no backend "iperf4"'),
    ],
)  # fmt: skip
def test_a_wrong_profile_gets_one_line_with_its_place_and_runs_nothing(
    benchctl, text, args, code, message
):
    result = benchctl("run", benchctl.profile(text), *args)
    assert (result.returncode, result.stdout) == (code, "")
    first, *hints = result.stderr.splitlines()
    assert first.startswith(f"benchctl: {message}")
    assert len(hints) <= 1
    assert not benchctl.store.exists()


def test_an_unknown_profile_names_the_nearest(benchctl):
    result = benchctl("run", "quickstat")
    assert result.returncode == 2
    assert 'did you mean "quickstart"?' in result.stderr


def test_a_missing_tool_says_how_to_get_it_and_runs_nothing(benchctl):
    benchctl.environment["PATH"] = "/nowhere"
    result = benchctl("run", benchctl.profile(HEAD))
    assert result.returncode == 3
    assert result.stderr.splitlines() == [
        'benchctl: backend "toy": no program sh in the PATH',
        "  it is part of every system",
    ]
    assert not benchctl.store.exists()


def test_a_plugin_that_cannot_be_imported_harms_nobody_else(benchctl):
    broken = benchctl.directory / "broken.py"
    broken.write_text("raise RuntimeError('half an hour of work')\n")
    listed = benchctl("--plugin", str(broken), "backends")
    assert listed.returncode == 0
    assert 'backend "broken" cannot be loaded: RuntimeError: half an hour of work' in listed.stdout
    assert "toy          1.0" in listed.stdout
    profile = benchctl.profile(HEAD.replace("toy", "broken"))
    result = benchctl("--plugin", str(broken), "run", profile)
    assert result.returncode == 3
    assert "RuntimeError: half an hour of work" in result.stderr


def test_an_interface_that_is_not_there_is_found_before_anything_runs(benchctl):
    text = HEAD + 'interface = "wired"\n[interfaces.wired]\ndevice = "eth99"\n'
    result = benchctl("run", benchctl.profile(text))
    assert result.returncode == 3
    assert 'interface "wired": this machine has no device "eth99"' in result.stderr
    assert not benchctl.store.exists()


def test_a_matrix_of_a_million_trials_needs_a_yes(benchctl):
    text = HEAD + "[run]\nrepeats = 1000000\n"
    refused = benchctl("plan", benchctl.profile(text))
    assert refused.returncode == 2
    assert "1,000,000 trials" in refused.stderr
    accepted = benchctl("plan", benchctl.profile(text), "--yes")
    assert accepted.returncode == 0
    assert "1,000,000: 1 point x 1,000,000 repeats" in accepted.stdout


def test_a_plan_shows_trials_order_commands_and_time(benchctl):
    text = HEAD + "[axes]\nplan = ['ok', 'fail']\n[run]\nrepeats = 2\nseed = 5\npause = '1s'\n"
    result = benchctl("plan", benchctl.profile(text))
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[2:5] == [
        "trials   4: 2 points x 2 repeats", "order    interleaved, seed 5", "time     3.40 s",
    ]  # fmt: skip
    assert any("client: sh -c 'echo sample 0 8000; echo no luck" in line for line in lines)
    entries = [
        json.loads(line) for line in benchctl("plan", "p.toml", "--json").stdout.splitlines()
    ]
    assert [entry["point"]["plan"] for entry in entries] == ["ok", "fail"] * 2
    assert not benchctl.store.exists()


def test_a_store_that_is_none_is_refused(benchctl):
    benchctl.store.write_text("this is not a database, and long enough to be sure of it" * 10)
    result = benchctl("runs")
    assert result.returncode == 2
    assert "not a store of benchctl" in result.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--screen", "sumary"], 'no screen "sumary"'),
        (["--replay", "last", "--screen", "summary"], "--replay shows a run on the live screen"),
        (["--attach", "--screen", "history"], "--attach shows a run on the live screen"),
        (["--screen", "compare", "last"], "give two or more runs to compare"),
        (["--size", "80"], "--size 80: expected COLUMNSxLINES"),
    ],
)
def test_screens_that_cannot_be_are_refused_without_a_terminal(benchctl, args, told):
    result = benchctl("tui", *args, "--screenshot", "out.svg")
    assert result.returncode == 2
    assert told in result.stderr


def test_nothing_measured_yet_is_said(benchctl):
    result = benchctl("show", "last")
    assert result.returncode == 2
    assert "there are no runs yet" in result.stderr


LIGHT = [["--help"], ["run", "--help"], ["--completion", "bash"], ["backends", "--names"]]
READING = ["runs", "runs --json", "show", "show --trials", "show --events", "export --format json",
           "export --format jsonl", "export --samples", "compare {0} {1}"]  # fmt: skip


def imported_by(commands, names):
    """Return how commands end, one after another in a process, and which names are there then."""
    code = (
        "import sys; from benchctl.__main__ import main\n"
        "def end(words):\n"
        "    sys.argv = ['benchctl', *words]\n"
        "    try: main()\n"
        "    except SystemExit as end: return end.code\n"
        f"ends = [end(words) for words in {commands!r}]\n"
        f"print([ends, [name for name in {names!r} if name in sys.modules]])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(result.stdout.splitlines()[-1].replace("'", '"'))


def test_help_completion_and_names_import_nothing_heavy():
    heavy = [
        "textual", "pyroute2", "numpy", "sqlite3", "benchctl.api", "pydantic", "rich", "msgspec",
        "benchctl_iperf3", "benchctl_ping", "benchctl_owping", "benchctl_simpleperf",
    ]  # fmt: skip
    assert imported_by(LIGHT, heavy) == [[0] * len(LIGHT), []]


def test_a_screen_that_only_reads_a_store_imports_no_pydantic():
    screens = "from benchctl.tui.screens import live, summary, history, compare"
    code = f"import sys; {screens}; print('pydantic' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


def test_a_command_that_only_reads_a_store_imports_nothing_that_takes_long(tmp_path):
    written = Path(__file__).parents[1] / "store" / "version-0.1.0.db"
    store = shutil.copy(written, tmp_path / "runs.sqlite")
    with closing(Reader(store)) as reader:
        names = [run.name for run in reader.outlines()]
    commands = [[*args.format(*names).split(), "--store", str(store)] for args in READING]
    ends = imported_by(commands, ["pydantic", "importlib.metadata"])
    assert ends == [[0] * len(READING), []]


def test_a_command_imports_no_other_command():
    code = (
        "import sys; from benchctl.__main__ import main\n"
        "sys.argv = ['benchctl', 'runs', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "from benchctl.cli.main import COMMANDS\n"
        "print([name for name in COMMANDS if f'benchctl.cli.commands.{name}' in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "['runs']"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("rum", ["No such command 'rum'. Did you mean 'run', 'resume'?", "see benchctl --help"]),
        ("run", ["give a profile to run", "for example: benchctl run quickstart"]),
        ("run p --onyl a=1", ["No such option: --onyl (Possible options: --only)",
                              "see benchctl run --help"]),
        ("plan p --repeat 0", ["Invalid value for '--repeat': 0 is not in the range x>=1.",
                               "see benchctl plan --help"]),
        ("lab check a b", ["Got unexpected extra argument(s) (b)",
                           "see benchctl lab check --help"]),
        ("runs --store", ["Option '--store' requires an argument."]),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_and_where_to_look(benchctl, args, said):
    result = benchctl(*args.split())
    what, *hint = said
    lines = [f"benchctl: {what}", *(f"  {one}" for one in hint)]
    assert (result.returncode, result.stdout, result.stderr.splitlines()) == (2, "", lines)


@pytest.mark.parametrize("group", [(), ("store",), ("lab",)])
def test_a_group_without_a_command_shows_its_help(benchctl, group):
    result = benchctl(*group)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == benchctl(*group, "--help").stdout


def test_the_version_is_told_without_importing_the_command_line():
    code = (
        "import sys; from benchctl.__main__ import main\n"
        "sys.argv = ['benchctl', '--version']; main(); print('typer' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[1] == "False"


def test_a_shell_completes_commands_and_profiles():
    def completed(*words):
        asked = {
            **os.environ,
            "_BENCHCTL_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        }
        argv = [sys.executable, "-m", "benchctl"]
        result = subprocess.run(argv, env=asked, capture_output=True, text=True, check=True)
        return result.stdout.splitlines()

    assert [line.partition("\t")[0] for line in completed("benchctl", "ru")] == ["run", "runs"]
    assert completed("benchctl", "plan", "quick") == ["quickstart", "quick\t/"]
    assert completed("benchctl", "run", "--set", "") == [""]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), ["flows.main.duration: must be at least 1 ms", "  and 2 more errors"]),
        (("--set", "main.duration=1s"), ["interval: must be at least 10 ms", "  and 1 more"]),
        (("--set", "main.duration=1s", "--set", "main.interval=1s"), ["at least 1 B"]),
    ],
)
def test_a_bound_has_its_unit_and_what_else_is_wrong_is_counted_once(benchctl, args, said):
    text = (
        '[flows.main]\nbackend = "simpleperf"\nduration = "0s"\ninterval = "1us"\nwindow = "0B"\n'
    )
    lines = benchctl("plan", benchctl.profile(text), *args).stderr.splitlines()
    assert len(lines) == len(said)
    assert all(part in line for part, line in zip(said, lines, strict=True))


def test_ctrl_c_while_the_program_is_still_loaded_ends_it_with_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "benchctl", "runs"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "benchctl: interrupted\n"
