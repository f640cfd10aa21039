"""``benchctl backends record``: real commands, and the toy backend's own."""

import json
import signal
import sys
from pathlib import Path

import pytest
from cli.conftest import TOY
from hosts.local.test_spawn import has_ended, linux_only
from waiting import COMMAND_S, wait_until

from benchctl.backends import installed
from benchctl.cli.main import app
from benchctl.errors import BenchctlError
from benchctl.plugins import FILES_VARIABLE
from benchctl.testing.transcript import Transcript


def written(benchctl, name, place="transcripts"):
    return Transcript.load(benchctl.directory / place / name)


def record(benchctl, *words):
    done = benchctl("backends", "record", *words)
    assert done.returncode == 0, done.stderr
    return done


def test_a_tool_is_recorded_before_it_has_a_backend(benchctl):
    script = "echo out; echo err >&2; printf '\\377'; exit 3"
    done = record(benchctl, "newtool", "--as", "odd", "--set", "count=5", "--set", "wait=10s",
                  "--direction", "receive", "--", "sh", "-c", script)  # fmt: skip
    told = written(benchctl, "odd.client.json")
    assert (told.backend, told.role, told.direction) == ("newtool", "client", "receive")
    assert told.parameters == {"count": 5, "wait": "10s"}
    assert told.argv == ("sh", "-c", script)
    assert (told.stdout, told.stderr, told.exit_code) == (b"out\n\xff", b"err\n", 3)
    assert told.stop is None
    assert "transcripts/odd.client.json: exit code 3 after " in done.stdout
    assert "  stderr  4 bytes at " in done.stdout
    assert "events" not in done.stdout


def test_the_output_of_a_server_is_recorded_as_such(benchctl):
    record(benchctl, "newtool", "--server", "--", "echo", "listening")
    assert written(benchctl, "run.server.json").role == "server"


def test_the_options_of_the_tool_are_not_ours(benchctl):
    record(benchctl, "newtool", "--", "echo", "--help", "--set", "-h")
    assert written(benchctl, "run.client.json").stdout == b"--help --set -h\n"


def test_without_a_command_the_backends_own_is_recorded_with_what_its_parser_makes_of_it(benchctl):
    done = record(benchctl, "toy", "--set", "plan=ok")
    told = written(benchctl, "run.client.json")
    assert told.parameters == {"plan": "ok"}
    assert (told.tool.version, told.argv[:2]) == ("1.0", ("sh", "-c"))
    assert "events  3 Sample, 1 Summary" in done.stdout
    lines = (benchctl.directory / "transcripts/run.client.events.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["Sample"] * 3 + ["Summary"]


def test_a_tool_that_fails_is_recorded_like_any_other(benchctl):
    record(benchctl, "toy", "--set", "plan=fail", "--as", "unlucky")
    told = written(benchctl, "unlucky.client.json")
    assert (told.exit_code, told.stderr) == (3, b"no luck today\n")


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("-c 3 192.0.2.9", "192.0.2.9"),
        ("2001:db8::9 5201", "2001:db8::9"),
        ("paris", "127.0.0.1"),
        ("-B 192.0.2.1 192.0.2.9", "127.0.0.1"),
    ],
)
def test_the_address_of_a_flow_is_the_one_that_its_command_names(benchctl, words, address):
    record(benchctl, "newtool", "--", "echo", *words.split())
    assert written(benchctl, "run.client.json").address == address


def test_output_that_the_parser_rejects_is_kept_and_the_reason_said(benchctl):
    done = record(benchctl, "toy", "--", "echo", "sample one two")
    assert "events  none; the plugin failed: ValueError: " in done.stdout
    assert written(benchctl, "run.client.json").stdout == b"sample one two\n"
    assert not (benchctl.directory / "transcripts/run.client.events.jsonl").exists()


def test_a_command_of_a_broken_plugin_is_recorded(benchctl):
    (benchctl.directory / "half.py").write_text("BACKEND = ")
    done = benchctl("--plugin", "half.py", "backends", "record", "half", "--", "echo", "x")
    assert done.returncode == 0
    assert "recorded without it" in done.stderr
    assert written(benchctl, "run.client.json").stdout == b"x\n"


def test_the_time_of_a_recording_can_be_set(benchctl):
    done = record(benchctl, "newtool", "--for", "50ms", "--", "sleep", "60")
    told = written(benchctl, "run.client.json")
    assert (told.exit_code, told.stop.by) == (-signal.SIGINT, "time")
    assert "ended by SIGINT after " in done.stdout
    assert ", SIGINT at " in done.stdout
    assert done.stderr == ""


def test_output_without_end_is_cut_off_and_that_is_said(benchctl):
    done = record(benchctl, "newtool", "--", "yes", "x" * 8000)
    told = written(benchctl, "run.client.json")
    assert told.stop.by == "size"
    assert 0 < len(told.stdout) <= 4 << 20
    assert "a transcript holds 4 MiB, and the rest is missing" in done.stderr


ENDURING = "trap 'echo bye; exit 7' INT; echo $$ > started; while :; do sleep 0.01; done"


def started(benchctl):
    """Return the process that the command has written to a file."""
    path = benchctl.directory / "started"
    return int(wait_until(lambda: path.exists() and path.read_text()))


def test_ctrl_c_is_passed_to_the_tool_and_what_it_says_then_is_kept(benchctl):
    running = benchctl.start("backends", "record", "newtool", "--", "sh", "-c", ENDURING)
    started(benchctl)
    running.send_signal(signal.SIGINT)
    stdout, _ = running.communicate(timeout=COMMAND_S)
    told = written(benchctl, "run.client.json")
    assert (running.returncode, told.exit_code, told.stdout) == (0, 7, b"bye\n")
    assert (told.stop.signal, told.stop.by) == ("SIGINT", "user")
    assert "exit code 7" in stdout


@linux_only
def test_nothing_stays_when_the_recording_is_killed(benchctl):
    running = benchctl.start("backends", "record", "newtool", "--", "sh", "-c", ENDURING)
    tool = started(benchctl)
    running.kill()
    running.communicate(timeout=COMMAND_S)
    assert has_ended(tool)
    assert not [*(benchctl.directory / "transcripts").iterdir()]


def test_what_the_parser_gives_is_written_anew_without_running_anything(benchctl):
    record(benchctl, "toy", "--as", "good")
    events = benchctl.directory / "transcripts/good.client.events.jsonl"
    text = events.read_text()
    events.write_text("old\n")
    done = record(benchctl, "toy", "--expect")
    assert done.stdout == "transcripts/good.client.json: 3 Sample, 1 Summary\n"
    assert events.read_text() == text


@pytest.fixture
def in_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FILES_VARIABLE, str(TOY))
    installed.cache_clear()
    yield
    installed.cache_clear()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nosuch"], 3, 'no backend "nosuch"\n  name the command to record after --'),
        (["x", "--", "nosuch-program"], 3, 'no program "nosuch-program"\n  it must be in the PATH'),
        (["x", "--", "./p.toml"], 3, 'no program "./p.toml"'),
        (["x\udcff", "--", "true"], 2, "x\udcff: not the name of a backend"),
        (["x", "--set", "a=\udcff", "--", "true"], 2, "--set a=\udcff: expected KEY=VALUE"),
        (
            ["toy", "--set", "plam=ok"],
            2,
            '--set plam: toy has no such parameter\n  did you mean "p',
        ),
        (["toy", "--set", "duration=ten"], 2, '--set duration: "ten" is not a duration'),
        (["toy", "--set", "plan"], 2, "--set plan: expected KEY=VALUE"),
        (["toy", "--direction", "receiv"], 2, "--direction receiv: toy cannot measure in it"),
        (["x", "--direction", "up", "--", "true"], 2, "--direction up: no direction"),
        (["toy", "--as", "../x"], 2, "--as ../x: not the name of a file"),
        (["toy", "--server"], 2, "--server: there is no COMMAND"),
        (["toy", "--for", "5m"], 2, "--for: "),
        (["toy", "--expect", "--", "true"], 2, "--expect and COMMAND exclude each other"),
        (["toy", "--expect"], 2, "transcripts: there are no transcripts"),
        (["toy", "--transcripts", "p.toml"], 2, "--transcripts p.toml: File exists"),
    ],
)
def test_what_cannot_be_recorded_is_said_before_anything_runs(in_process, words, code, said):
    Path("p.toml").touch()
    with pytest.raises(BenchctlError) as caught:
        app.main(["backends", "record", *words], prog_name="benchctl", standalone_mode=False)
    assert caught.value.exit_code == code
    assert f"{caught.value.message}\n  {caught.value.hint}".startswith(said)
    assert not [*Path().rglob("*.json")]


def test_a_transcript_is_not_written_over(in_process):
    there = Path("transcripts/run.client.json")
    there.parent.mkdir()
    there.write_text("mine")
    with pytest.raises(BenchctlError, match=r"transcripts/run.client.json: the file exists"):
        app.main(["backends", "record", "toy"], prog_name="benchctl", standalone_mode=False)
    assert there.read_text() == "mine"


def test_a_part_of_a_transcript_is_not_left_on_a_full_disk(benchctl):
    script = "ulimit -f 0; exec python -m benchctl backends record newtool -- echo x 2>&1 | cat"
    benchctl.words = ("sh", "-c", script.replace("python", sys.executable))
    stdout, _ = benchctl.start_anew().communicate(timeout=COMMAND_S)
    assert "cannot write transcripts/run.client.json: File too large" in stdout
    assert not [*(benchctl.directory / "transcripts").iterdir()]
