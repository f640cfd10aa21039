"""A process that owns a lab, for tests that end it in every way.

``lab_owner.py EMULATOR TOPOLOGY`` builds the lab, starts a command on its first host, prints ``up``
and the keeper's process number, and waits for the end of stdin. With ``FROM TO`` added, it pings
instead, and prints ping's output.
"""

import subprocess
import sys
from pathlib import Path

from benchctl.lab.lab import Lab
from benchctl.lab.topology.model import Emulator
from benchctl.lab.topology.topology import load_topology


def main():
    topology = load_topology(Path(sys.argv[2]))
    with Lab.build(topology, Emulator(sys.argv[1])) as lab:
        if sys.argv[3:]:
            source, goal = sys.argv[3:]
            argv = [*lab.nodes[source].prefix, "ping", "-c", "1", "-W", "30", goal]
            subprocess.run(argv, check=True, start_new_session=True)
            return
        host = lab.nodes[topology.hosts[0]]
        with subprocess.Popen([*host.prefix, "sleep", "1000"], start_new_session=True) as command:
            print("up", lab.keeper_pid, flush=True)
            sys.stdin.read()
            lab.close()
            command.wait()


if __name__ == "__main__":
    main()
