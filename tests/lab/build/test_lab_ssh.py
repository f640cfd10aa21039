"""Hosts of a lab let each other in by SSH, with keys that exist nowhere else."""

import subprocess
from pathlib import Path

import pytest
from lab.lab_support import ordinary_user
from remote_lab import NEEDS, TWO, remote_lab
from waiting import COMMAND_S, wait_until

pytestmark = NEEDS


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with remote_lab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


def test_a_host_lets_in_the_others_by_its_name(lab):
    found = lab.ssh("paris", "id -un; echo $HOME")
    assert found.stdout.splitlines() == ["benchctl", "/"]
    found = lab.ssh("tokyo", "ssh -o BatchMode=yes paris hostname -I")
    assert (found.stdout.split(), found.stderr) == ([lab.lab.nodes["paris"].address], "")


@pytest.mark.tool("ping")
def test_who_logs_in_is_an_ordinary_user_who_may_ping(lab):
    found = lab.ssh(
        "paris", "grep CapEff /proc/self/status; ping -q -c 1 tokyo; ip link set eth0 down"
    )
    assert found.stdout.splitlines()[0].split() == ["CapEff:", "0" * 16]
    assert " 1 received" in found.stdout
    assert "Operation not permitted" in found.stderr


def test_the_machine_has_no_key_of_a_lab(lab):
    names = lab.ssh("paris", "ls /etc/ssh").stdout.split()
    assert {"lab_key", "lab_host_key"} <= {*names}
    here = Path("/etc/ssh")
    assert not {path.name for path in here.iterdir()} & {"lab_key", "lab_host_key"}


def test_an_ordinary_users_lab_serves_too():
    """There, a server of root would fail: it separates its privileges by groups."""
    code = f"""if True:
        import subprocess
        from benchctl.lab.lab import Lab
        from lab.lab_support import topology
        with Lab.build(topology({TWO!r})) as lab:
            over = lab.nodes["here"].prefix
            words = ["ssh", "-o", "BatchMode=yes", "-J", "paris", "tokyo", "id -un"]
            subprocess.run([*over, *words], start_new_session=True)
    """
    done = subprocess.run(
        [*ordinary_user(), "-c", code], capture_output=True, text=True, check=False,
        timeout=COMMAND_S,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("benchctl\n", "")


def test_a_router_with_a_server_is_a_jump_host(lab):
    lab.serve("middle")
    lab.configure("Host far\nHostName tokyo\nProxyJump middle\nHost middle\nPort 2222")
    found = lab.ssh("far", "echo $SSH_CONNECTION")
    middle = {way.address for way in lab.lab.nodes["middle"].interfaces.values()}
    assert found.stdout.split()[0] in middle


def test_the_processes_of_a_host_are_those_in_its_network(lab):
    def told():
        return [line.partition(" ")[0] for line in lab.processes("paris").values()]

    # Those of logins before end a moment after them.
    wait_until(lambda: told() == ["sshd:"], told)
    assert lab.processes("here") == {}


def test_a_cut_link_carries_nothing_until_it_is_mended(lab):
    lab.cut("east")
    assert lab.ssh("tokyo", "true", "-o", "ConnectTimeout=1").returncode == 255
    lab.mend("east")
    assert lab.ssh("tokyo", "true").returncode == 0
