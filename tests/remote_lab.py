"""Labs whose hosts are reached by SSH, with real servers that tests set up, freeze and kill."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from pathlib import Path

import pytest
from fork_server import ForkServer
from lab.lab_support import topology
from remote import as_root
from waiting import COMMAND_S, wait_until

from benchctl.lab.build import ssh
from benchctl.lab.build.devices import program_path
from benchctl.lab.build.services import WITH_FEWER_PRIVILEGES
from benchctl.lab.emulate.link import Change
from benchctl.lab.lab import Lab
from benchctl.lab.topology import ssh_service

NEEDS = [pytest.mark.netns, pytest.mark.tool("ssh", "sshd"), pytest.mark.once]
"""The marks of a test that uses these labs."""

PORT = 2222
"""Of the servers that `RemoteLab.serve` starts."""

TWO = """
[hosts]
here = {}
paris = { services = [{ ssh = 22 }] }
tokyo = { services = [{ ssh = 22 }] }

[routers]
middle = { sysctl = { "net.ipv4.ip_unprivileged_port_start" = 0 } }

[links]
desk = { between = ["here", "middle"] }
west = { between = ["paris", "middle"], delay = "5ms" }
east = { between = ["tokyo", "middle"], delay = "5ms" }
"""
"""Two hosts, and one from which they are reached, ``here``."""

FILTER = """
table inet guard {{
  chain input {{
    type filter hook input priority filter; policy drop;
    iif "lo" accept
    ct state established,related accept
    tcp dport {{ {tcp} }} accept
    {udp}
    counter
  }}
}}
"""


def kill(pids):
    """Kill processes; some go with the one before."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class RemoteLab:
    """A lab that stands; ssh starts on its node ``here``.

    Every host with the service ``ssh`` is reached by its name. `serve` starts further servers with
    other settings, on nodes of any kind, and `configure` says how ssh reaches them.
    """

    def __init__(self, lab, ended, directory, here):
        self.lab, self._ended, self._directory = lab, ended, directory
        self._servers = {}
        """They start the commands of benchctl on each node."""
        self._test, self._undo = ended.enter_context(ExitStack()), []
        """What a test has started, and what it has changed."""
        self._standing = {pid for node in lab.nodes for pid in self.processes(node)}
        self._stand_at(here)

    def _stand_at(self, node):
        self._here = node
        self.over = self.lab.nodes[node].prefix
        """The words before ssh."""

    def run(self, *argv, **options):
        """Run a command to its end where ssh starts."""
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, **options}
        return subprocess.run(
            [*self.over, *argv],
            text=True, check=False, start_new_session=True, timeout=COMMAND_S, **options,
        )  # fmt: skip

    def at(self, node):
        """Return the same lab as somebody on another node has it."""
        other = copy(self)
        other._stand_at(node)
        return other

    def ssh(self, destination, command, *options):
        """Run a command as ``ssh DESTINATION COMMAND`` does; returns its output and its code."""
        return self.run("ssh", "-o", "BatchMode=yes", *options, destination, command)

    def administer(self, node, *argv):
        """Change the network of a node, by a command that needs its privileges."""
        prefix = self.lab.nodes[node].prefix[: -len(WITH_FEWER_PRIVILEGES)]
        subprocess.run([*prefix, *argv], check=True, start_new_session=True)

    def configure(self, text):
        """Let ssh know other hosts or ways, by the lines of ssh_config(5): ``ProxyJump middle``."""
        file = ssh_service.PLACE / "ssh_config"
        before = f"{file}.{len(self._undo)}"
        # The first value that it reads counts.
        script = 'cp "$2" "$3"; printf "%s\\n" "$1" | cat - "$3" >"$2"'
        words = ("sh", "-ec", script, "sh", f"{text}\nMatch all", str(file), before)
        assert not self.run(*words).returncode
        self._undo.append(lambda: self.run("mv", before, str(file)))

    def benchctl(self, *argv, **environment):
        """Run benchctl to its end where ssh starts, as a user on a machine does."""
        environment = {**os.environ, **environment}
        return self._server().run(["benchctl", *argv], Path.cwd(), environment)

    def start(self, *argv, **environment):
        """Start benchctl where ssh starts, as `benchctl`; returns its `Command`."""
        environment = {**os.environ, **environment}
        process = self._server().start(["benchctl", *argv], Path.cwd(), environment)
        self._test.enter_context(process)
        self._test.callback(process.kill)
        return process

    def _server(self):
        if self._here not in self._servers:
            server = ForkServer(self.over, ("cli", "engine"))  # what its commands need
            self._servers[self._here] = self._ended.enter_context(server)
        return self._servers[self._here]

    def serve(self, node, *options, port=PORT, within=()):
        """Start another server on a node, with more ``options`` of sshd; returns its process.

        ``within`` are words before it. It ends with the test.
        """
        # A user namespace cannot be made with the privileges of the lab's commands.
        prefix = self.lab.nodes[node].prefix[: -len(WITH_FEWER_PRIVILEGES)]
        argv = [program_path("sshd"), *ssh_service.server(port).argv[1:], *options]
        with self._log(node, port).open("wb") as log:
            process = subprocess.Popen(
                [*prefix, *ssh.AS_USER, *within, *argv],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._test.callback(process.wait)
        wait_until(lambda: process.poll() is not None or "listening" in self.log(node, port))
        assert process.poll() is None, self.log(node, port)
        return process

    def serve_as_root(self, node, *words):
        """Start another server on a node, whose logins are root's.

        ``words``, such as those of a shell, come before the text of what a login asks for.
        """
        path = str(self._directory / f"{node}.root")
        Path(path).unlink(missing_ok=True)
        prefix = self.lab.nodes[node].prefix[: -len(WITH_FEWER_PRIVILEGES)]
        root = subprocess.Popen(
            [*prefix, sys.executable, as_root.__file__, "serve", path, *words],
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._test.enter_context(root)
        assert root.stdout.readline() == b"ready\n"
        asks = f'{sys.executable} {as_root.__file__} {path} "$SSH_ORIGINAL_COMMAND"'
        self.serve(node, "-o", f"ForceCommand={asks}")

    def log(self, node, port=PORT):
        """Return what a server that was started so has said."""
        return self._log(node, port).read_text()

    def _log(self, node, port):
        return self._directory / f"sshd-{node}-{port}"

    def processes(self, node):
        """Return the command lines of the processes of a node, by their IDs here."""
        prefix = "--net="
        place = next(word for word in self.lab.nodes[node].prefix if word.startswith(prefix))
        network = Path(place.removeprefix(prefix)).stat().st_ino
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            # The keeper moves between its nodes.
            if entry.name == str(self.lab.keeper_pid):
                continue
            with suppress(OSError):  # it has ended, or is somebody else's
                if (entry / "ns/net").stat().st_ino == network:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").strip()
                    found[int(entry.name)] = line.decode()
        return {pid: line for pid, line in found.items() if line}  # empty when it has ended

    def left(self, node):
        """Return the processes of a node but those of its servers: what a run may leave there."""
        starting = {pid for server in self._servers.values() for pid in server.pids}
        return {
            pid: line
            for pid, line in self.processes(node).items()
            if "[listener]" not in line and "sshd -D" not in line and pid not in starting
        }

    def guard(self, node, *, tcp=(), udp=()):
        """Let a packet filter drop what comes to a node, but answers and what comes to these ports.

        TCP also comes to the ports of SSH. Ports are as nft(8) writes them: 5301, "5301-5304".
        """
        tcp = ", ".join(map(str, (22, 2222, *tcp)))
        udp = f"udp dport {{ {', '.join(map(str, udp))} }} accept" if udp else ""
        self._nft(node, "-f", "-", input=FILTER.format(tcp=tcp, udp=udp))
        self._undo.append(lambda: self._nft(node, "flush", "ruleset"))

    def dropped(self, node):
        """Return how many packets the filter of a node has dropped."""
        (count,) = re.findall(r"counter packets (\d+)", self._nft(node, "list", "ruleset"))
        return int(count)

    def _nft(self, node, *words, **options):
        argv = [*self.lab.nodes[node].prefix, program_path("nft"), *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
        if "Operation not supported" in done.stderr or "Protocol not supported" in done.stderr:
            pytest.skip(f"needs nf_tables: modprobe nf_tables ({done.stderr.splitlines()[0]})")
        assert not done.returncode, done.stderr
        return done.stdout

    def cut(self, link):
        """Let a link carry nothing from now on."""
        self.lab.change(link, Change(loss_ratio=1.0))
        self._undo.append(lambda: self.mend(link))

    def mend(self, link):
        """Let a link lose nothing from now on."""
        self.lab.change(link, Change(loss_ratio=0.0))

    def restore(self):
        """End what a test has started, and undo what it has changed.

        Raises LabError if the lab has failed.
        """
        while self._undo:
            self._undo.pop()()
        stands = self._standing.union(*(server.pids for server in self._servers.values()))

        def others():
            return {pid for node in self.lab.nodes for pid in self.processes(node)} - stands

        while found := others():
            kill(found)
        self._test.close()
        self.lab.check()


@contextmanager
def remote_lab(directory, text=TWO, here="here"):
    """Build a lab from the text of a topology, and yield a `RemoteLab`."""
    with ExitStack() as ended, Lab.build(topology(text)) as lab:
        # The servers end with the lab, and are then waited for.
        yield RemoteLab(lab, ended, directory, here)


class SharedLabs:
    """Labs that several tests use, one after another; a context manager.

    One stands at a time. It is built anew only for a test that needs another.
    """

    def __init__(self, directory):
        self._directory = directory
        self._standing, self._wanted, self._lab = ExitStack(), None, None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._standing.close()

    @contextmanager
    def lend(self, *wanted):
        """Yield a lab as `remote_lab` builds it; what a test does to it is undone at the end."""
        if self._wanted != wanted:
            self._wanted = None
            self._standing.close()
            self._lab = self._standing.enter_context(remote_lab(self._directory, *wanted))
            self._wanted = wanted
        yield self._lab
        try:
            self._lab.restore()
        except BaseException:
            self._wanted = None
            raise
