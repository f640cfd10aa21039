"""Who is told of the end of a run, and when."""

import pytest

from benchctl.cli.shared import notify

PROFILE = '[flows.main]\nbackend = "toy"\n[axes]\nplan = ["{}"]\n'


def test_a_command_gets_the_name_and_the_status_of_the_run(benchctl):
    profile = benchctl.profile(PROFILE.format("refuse"))
    command = 'echo "$BENCHCTL_RUN $BENCHCTL_STATUS" > told; echo said'
    done = benchctl("run", profile, "-q", "--notify", command)
    name, status = (benchctl.directory / "told").read_text().split()
    assert (done.returncode, status) == (1, "failed")
    assert name in benchctl("runs").stdout
    assert (done.stderr, "said" in done.stdout) == ("said\n", False)


def test_a_command_that_fails_is_reported_and_changes_no_exit_code(benchctl):
    done = benchctl("run", benchctl.profile(PROFILE.format("ok")), "--notify", "exit 7")
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "benchctl: exit 7: exit code 7"


@pytest.mark.parametrize(("lasted_s", "told"), [(59.0, False), (60.0, True)])
def test_the_setting_is_for_runs_that_one_does_not_wait_for(tmp_path, monkeypatch, lasted_s, told):
    class Run:
        name, status = "r", "ok"

    file = tmp_path / "settings.toml"
    file.write_text(f'notify = "touch {tmp_path}/told"\n')
    monkeypatch.setenv("BENCHCTL_SETTINGS", str(file))
    notify.announce(None, Run(), lasted_s)
    assert (tmp_path / "told").exists() is told
