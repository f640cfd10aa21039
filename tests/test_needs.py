"""A skipped test is always visible: at the end of a test run, and in CI as a failure."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def run_without_programs(**environment):
    """Run the tests of the real ping where there is none."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "PATH")}
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
            *("ping/test_ping_real.py", "-k", "system"),
        ],
        cwd=TESTS, env={**kept, "PATH": "", **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_run_with_skips_ends_with_how_many_and_how_to_have_them_all():
    result = run_without_programs()
    assert result.returncode == 0
    assert re.search(
        r"= (\d+) tests were skipped; to have them all: =+\n"
        r" +\1 needs ping: apt-get install iputils-ping\n",
        result.stdout,
    )


def test_a_skip_is_a_failure_in_ci():
    result = run_without_programs(CI="true")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    assert "skipped in CI: needs ping: apt-get install iputils-ping" in result.stdout


def test_what_no_package_brings_may_be_skipped_in_ci(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.skipif(True, reason='needs BBR: modprobe tcp_bbr')\n"
        "def test_bbr(): ...\n"
        "def test_other(): pytest.skip('not today')\n"
    )
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "PYTHONPATH": str(TESTS), "CI": "true"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "1 failed, 1 skipped" in result.stdout
    assert "1 needs BBR: modprobe tcp_bbr" in result.stdout
    assert "may be missing in CI: a module of the machine's own kernel" in result.stdout
