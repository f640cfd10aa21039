"""What is sent to remote hosts, and how it is called there."""

import sys

import pytest

from benchctl.hosts.ssh.programs import as_sent, name_of, sendable


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (("iperf3", "-s"), "iperf3 -s"),
        ((sys.executable, "-I", "-S", "/x/simpleperf/__main__.py", "-s"),
         "python3 -I -S simpleperf -s"),
        ((sys.executable, "-I", "/x/echo.py", "/x/echo.py"), "python3 -I echo.py /x/echo.py"),
        ((sys.executable, "-c", "print()"), "python3 -c print()"),
        ((sys.executable, "-V"), "python3 -V"),
    ],
)  # fmt: skip
def test_a_command_is_shown_as_it_runs_there(argv, shown):
    assert " ".join(as_sent(argv)) == shown


def test_a_script_goes_along_and_its_words_stay(tmp_path):
    script = tmp_path / "tool.py"
    script.write_text("print()")
    words, text = sendable((sys.executable, "-I", str(script), "-c", "x"))
    assert (words, text) == ([None, "-I", None, "-c", "x"], b"print()")


def test_nothing_goes_along_with_a_program_of_the_host():
    assert sendable(("ping", "-c", "1")) == (["ping", "-c", "1"], b"")
    assert sendable((sys.executable, "-c", "1")) == ([None, "-c", "1"], b"")


def test_a_program_of_ours_has_its_own_name():
    assert name_of([sys.executable, "-I", "/x/simpleperf/__main__.py", "-s"]) == "simpleperf"
    assert name_of([sys.executable, "-I", "/x/echo.py"]) == "echo.py"
    assert name_of(["iperf3", "-s"]) == "iperf3"
    assert name_of([sys.executable, "-c", "pass"]) == sys.executable
