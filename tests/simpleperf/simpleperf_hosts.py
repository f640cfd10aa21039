"""Two hosts that see nothing but each other: network namespaces, joined by a pair of devices."""

import subprocess
from contextlib import ExitStack, contextmanager

from waiting import COMMAND_S

_NUMBERS = {"server": 1, "client": 2}


class Host:
    """A host: ``prefix`` makes a command run there, and there each host has its name."""

    def __init__(self, name, anchor, hosts_file):
        self.name = name
        self.pid = anchor.pid
        self.address = f"10.77.0.{_NUMBERS[name]}"
        self.link_local = f"fe80::{_NUMBERS[name]}"
        enter = ("nsenter", f"--target={anchor.pid}", "--user", "--preserve-credentials", "--net")
        names = 'mount --bind "$0" /etc/hosts && exec "$@"'
        self.prefix = (*enter, "unshare", "--mount", "sh", "-c", names, str(hosts_file))

    def run(self, *command, **options):
        """Run a command to its end."""
        return subprocess.run(
            [*self.prefix, *command],
            capture_output=True, text=True, timeout=COMMAND_S, check=False, **options,
        )  # fmt: skip

    def configure(self, *lines):
        """Run commands of ip(8)."""
        for line in lines:
            done = self.run("ip", *line.split())
            assert done.returncode == 0, (line, done.stderr)


@contextmanager
def two_hosts(directory):
    """Yield a server and a client; they end with their anchors, at the latest with this process."""
    hosts_file = directory / "hosts"
    hosts_file.write_text(
        "".join(f"10.77.0.{number} {name}\n" for name, number in _NUMBERS.items())
    )
    with ExitStack() as stack:
        user = _anchor(stack, "unshare", "--user", "--map-root-user", "--net")
        inside = ("nsenter", f"--target={user.pid}", "--user", "--preserve-credentials")
        server = Host("server", _anchor(stack, *inside, "unshare", "--net"), hosts_file)
        client = Host("client", _anchor(stack, *inside, "unshare", "--net"), hosts_file)
        server.configure(f"link add eth0 type veth peer name eth0 netns {client.pid}")
        for host in (server, client):
            host.configure(
                "link set lo up",
                "link set eth0 up",
                f"address add {host.address}/24 dev eth0",
                f"address add {host.link_local}/64 dev eth0 nodad",
            )
        yield server, client


def _anchor(stack, *command):
    """Start a process that does nothing but hold its namespaces, until its input closes."""
    anchor = stack.enter_context(
        subprocess.Popen(
            [*command, "sh", "-c", "echo && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    )
    assert anchor.stdout.readline() == b"\n"
    return anchor
