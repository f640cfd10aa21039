"""simpleperf on hosts that have only Python: run by its path, and as one file."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from needs import PYTHONS
from simpleperf.simpleperf_harness import COMMAND, TOOL, client_program, server_program
from standalone.programs import one_file
from waiting import DEADLINE_S

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_program_runs_by_its_path_without_anything_else(python, tmp_path):
    command = (python, "-I", "-S", str(TOOL))
    with server_program("--one-off", command=command, cwd=tmp_path) as (server, port):
        done = client_program(port, "-t", "0.2", "--json", command=command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert server.wait(DEADLINE_S) == 0
    assert json.loads(done.stdout)["throughput_bps"] > 0


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return one_file("simpleperf", tmp_path_factory.mktemp("bundle"))


@pytest.mark.parametrize("python", PYTHONS)
def test_the_one_file_form_runs_from_standard_input_and_from_a_file(python, tmp_path, bundle):
    with bundle.open() as text:
        sent = server_program("--one-off", command=(python, "-I", "-"), cwd=tmp_path, stdin=text)
        with sent as (server, port):
            command = (python, "-I", str(bundle))
            done = client_program(port, "-u", "-n", "100KB", "-r", "50M", command=command,
                                  cwd=tmp_path)  # fmt: skip
            assert done.returncode == 0, done.stderr
            assert server.wait(DEADLINE_S) == 0
    assert "0/70 (0.00%)" in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("isolated", [("-I",), ()], ids=["with -I", "without"])
def test_the_one_file_form_runs_no_module_of_the_present_directory(
    python, isolated, tmp_path, bundle
):
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", bundle.read_text(), re.M))
    for name in imported - {"benchctl_standalone"}:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from this directory')")
    assert (tmp_path / "selectors.py").exists()
    with bundle.open() as text:
        from_stdin = (python, *isolated, "-")
        with server_program("--one-off", command=from_stdin, cwd=tmp_path, stdin=text) as (_, port):
            (tmp_path / "program.py").write_text(bundle.read_text())
            command = (python, *isolated, "program.py")
            done = client_program(port, "-n", "1KB", command=command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def shown(flag):
    return subprocess.run([*COMMAND, flag], capture_output=True, text=True, check=True).stdout


def test_whoever_is_told_to_send_the_program_is_told_to_isolate_it():
    told = shown("--self") + shown("--help") + (REPOSITORY / "README.md").read_text()
    commands = re.findall(r"ssh \w+ (python3.*)", told)
    assert len(commands) >= 3
    assert all(command.startswith("python3 -I - ") for command in commands)
