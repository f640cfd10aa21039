"""simpleowamp as a program: its flags, its output, its end, and its form as one file."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from needs import PYTHONS
from owamp.owamp_harness import COMMAND, client_program, server_program
from standalone.programs import one_file
from waiting import DEADLINE_S

from benchctl_owamp.simpleowamp import __version__
from benchctl_owamp.simpleowamp.measuring.clock import ClockState
from benchctl_owamp.simpleowamp.program.flags import limits_of, parse_flags, settings_of
from benchctl_owamp.simpleowamp.program.output import clock_lines, percentile
from benchctl_owamp.simpleowamp.protocol.schedule import EXPONENTIAL, FIXED, Slot

FEW = ("-c", "3", "-i", "1ms")
QUICK = (*FEW, "-L", "0.2")
# A packet that would leave later than the timeout is skipped: after a second none is so late.
WHOLE = (*FEW, "-L", "1")


def run(*arguments, **options):
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def port():
    with server_program() as (_, listening):
        yield listening


def test_people_get_the_figures_of_each_direction_and_what_the_clocks_are(port):
    done = client_program(port, *WHOLE)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"to 127\.0\.0\.1: 3 sent, 0 lost \(0\.00%\), 0 duplicated, 0 reordered\n"
        r"  one-way delay  min \S+  median \S+  p95 \S+  max \S+  mean \S+ ms\n"
        r"  hops           0\n",
        done.stdout,
    )
    assert "from 127.0.0.1: 3 sent" in done.stdout
    assert "synchronized" in done.stdout or "clocks" in done.stdout


def test_programs_get_a_json_line_for_each_packet_with_the_times_that_it_carried(port):
    done = client_program(port, *WHOLE, "--json", "--direction", "receive")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    start, *packets, end = lines
    assert (start["event"], start["count"], start["interval_s"]) == ("start", 3, 0.001)
    assert re.fullmatch("[0-9a-f]{32}", start["sessions"]["receive"])
    assert [packet["seq"] for packet in packets] == [0, 1, 2]
    for packet in packets:
        assert packet["event"] == "packet"
        assert packet["direction"] == "receive"
        assert 0 < packet["received_ns"] - packet["sent_ns"] < 60e9
        assert packet["ttl"] == 255
    assert end["event"] == "end"
    assert (end["sent"], end["received"], end["lost"], end["skipped"]) == (3, 3, 0, 0)


def test_an_injected_clock_is_in_every_time(port):
    done = client_program(port, *WHOLE, "--json", "--clock-offset=-400ms")
    apart_ms = {"send": [], "receive": []}
    for line in map(json.loads, done.stdout.splitlines()):
        if line["event"] == "packet":
            apart_ms[line["direction"]].append((line["received_ns"] - line["sent_ns"]) / 1e6)
    # A packet takes as long as it takes, but no less than nothing.
    assert min(apart_ms["send"]) >= 400
    assert -400 <= min(apart_ms["receive"]) < 0


def test_errors_are_one_line_and_one_json_object(port):
    with server_program("--max-time", "1ms") as (_, limited):
        done = client_program(limited, *QUICK)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            "simpleowamp: the server does not accept the session: "
            "more than the server ever allows\n"
        )
        done = client_program(limited, *QUICK, "--json")
        assert done.returncode == 1
        error = json.loads(done.stdout)
        assert (error["event"], error["kind"]) == ("error", "refused")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "serve or ping"),
        (("ping",), "SERVER"),
        (("ping", "h", "-c", "0"), "'0' is not a number from 1"),
        (("ping", "h", "-i", "0"), "less than"),
        (("ping", "h", "--mode", "encrypted"), "--user"),
        (("ping", "h", "--clock-drift", "1ms"), "1ms/min"),
        (("serve", "--test-ports", "9-8"), "8760-9960"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments, told, capsys):
    with pytest.raises(SystemExit) as ended:
        parse_flags(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_the_flags_of_a_client_are_its_settings():
    flags = parse_flags(
        ["ping", "h", "-c", "7", "-i", "20ms", "--schedule", "periodic", "-s", "9", "-L", "3",
         "--dscp", "ef", "--direction", "send"]
    )  # fmt: skip
    settings = settings_of(flags, b"")
    assert settings.slots == (Slot(FIXED, round((1 << 32) / 50)),)
    assert (settings.directions, settings.packet_count) == (("send",), 7)
    assert (settings.padding_bytes, settings.timeout_s, settings.dscp) == (9, 3.0, 46)
    assert settings_of(parse_flags(["ping", "h"]), b"").slots[0].slot_type == EXPONENTIAL


def test_the_limit_of_all_is_also_that_of_one():
    limits = limits_of(parse_flags(["serve", "--max-sessions", "3", "--max-rate", "1M"]))
    assert (limits.client_sessions, limits.client_rate_bps) == (3, 1e6)


def test_a_server_listens_on_this_host_only_unless_told_otherwise():
    with server_program() as (process, _):
        pass
    assert process.returncode == 0
    done = run("serve", "-b", "192.0.2.1", "-p", "0")
    assert done.returncode == 1
    assert done.stderr.startswith("simpleowamp: cannot listen on 192.0.2.1:0")


def test_a_signal_to_the_whole_group_ends_the_server_in_order():
    with server_program(start_new_session=True) as (process, _):
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr.read() == ""


def test_a_user_who_interrupts_gets_what_was_measured(port):
    command = [*COMMAND, "ping", "127.0.0.1", "-p", str(port), "-c", "100000", "-i", "1ms",
               "-L", "1", "--json", "--direction", "receive"]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        for line in process.stdout:
            if '"packet"' in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        *_, end = process.stdout
    assert process.returncode == 130
    assert json.loads(end)["received"] >= 1


def test_users_of_a_file_are_served_and_others_are_not(tmp_path):
    pytest.importorskip("cryptography", reason="needs cryptography: pip install benchctl[owamp]")
    users, key = tmp_path / "users", tmp_path / "key"
    users.write_text("# who may\nann correct horse\n")
    key.write_text("correct horse\n")
    command = (sys.executable, "-m", "benchctl_owamp")
    with server_program("--users", str(users), command=command) as (_, secured):
        done = client_program(secured, *WHOLE, "--mode", "encrypted", "--user", "ann",
                              "--key-file", str(key), command=command)  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert client_program(secured, *QUICK).returncode == 1


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return one_file("simpleowamp", tmp_path_factory.mktemp("bundle"))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_one_file_form_serves_from_standard_input_and_measures_from_a_file(
    python, tmp_path, bundle
):
    with bundle.open() as text:
        sent = server_program(command=(python, "-I", "-"), cwd=tmp_path, stdin=text)
        with sent as (_, listening):
            command = (python, "-I", str(bundle))
            done = client_program(listening, *WHOLE, command=command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "to 127.0.0.1: 3 sent, 0 lost" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("protocol", ["twamp", "stamp"])
@pytest.mark.parametrize("python", PYTHONS)
def test_the_one_file_form_has_the_two_way_protocols(python, protocol, bundle):
    command, flags = (python, "-I", str(bundle)), ("--protocol", protocol)
    with server_program(*flags, command=command) as (_, listening):
        done = client_program(listening, *flags, *FEW, "-L", "20", command=command)
    assert done.returncode == 0, done.stderr
    assert "to and from 127.0.0.1: 3 sent, 0 lost" in done.stdout


def test_the_version_is_one_line():
    assert run("--version").stdout == f"simpleowamp {__version__}\n"


def test_a_percentile_lies_between_its_neighbours():
    assert percentile([1, 2, 3, 4], 0.5) == 2.5
    assert percentile([7], 0.95) == 7


class Found:
    """A direction with these delays, and what its ends say of their clocks."""

    def __init__(self, *delays_ms, synchronized=(True, True)):
        self.delays_ns = [round(delay * 1e6) for delay in delays_ms]
        self.synchronized = synchronized


KNOWN = ClockState(True, 0.001, 0.0001)
UNKNOWN = ClockState(False, 16.0, 16.0, "no time daemon synchronizes the kernel's clock")


@pytest.mark.parametrize(
    ("directions", "clock", "told"),
    [
        (
            {"send": Found(51, 50.2), "receive": Found(-49, -48)},
            KNOWN,
            "the clocks are about 49.6 ms apart: minima +50.200 and -49.000 ms; half of the sum, "
            "0.600 ms, is the one-way delay if the path is symmetric",
        ),
        ({"send": Found(-1)}, KNOWN, "a negative delay: the clocks of both ends differ"),
        ({"send": Found(1)}, KNOWN, "both clocks are synchronized"),
        ({"send": Found(1, synchronized=(False, False))}, UNKNOWN, "both clocks"),
        ({"send": Found(1, synchronized=(True, False))}, KNOWN, "the server's clock"),
        ({"receive": Found(1, synchronized=(True, False))}, UNKNOWN, "the clock here"),
        ({"send": Found()}, KNOWN, ""),
    ],
)
def test_what_the_clocks_are_is_said_in_words(directions, clock, told):
    assert told in "\n".join(clock_lines(directions, clock))
