"""A fleet on one machine in some minutes: ``make fleet-demo``.

A lab has a host with the server and the coordinator, and twenty hosts with an agent each. A person
measures their mesh. In the middle an agent and the server are killed, and come back. Every trial
must be measured once, or have its reason. Everything is in one directory, and ends with this
program.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

HOSTS = [f"h{number:02d}" for number in range(1, 21)]
CENTER, PORT = "center", 4222
# Longer than all may take on a busy machine.
PATIENCE_S = 600
LIMITS = 'networks = ["10.0.0.0/8"]\n'


def topology():
    lines = ["[routers.hub]", f"[hosts.{CENTER}]", *(f"[hosts.{host}]" for host in HOSTS)]
    for number, host in enumerate([CENTER, *HOSTS]):
        lines += [f"[links.{host}]", f'between = ["{host}", "hub"]', f'delay = "{number % 5}ms"']
        if number:
            lines.append('rate = "2Mbit/s"')
    return "\n".join(lines) + "\n"


def profile(addresses):
    hosts = "\n".join(
        f'[hosts.{host}]\nfleet = true\naddress = "{addresses[host]}"' for host in HOSTS
    )
    return f"""
title = "The mesh of a fleet"

{hosts}

[flows.bulk]
backend = "simpleperf"
protocol = "udp"
rate = "1Mbit/s"
duration = "2s"

[axes]
pair = {{ mesh = {json.dumps(HOSTS)} }}

[run]
parallel = "hosts"
attempts = 5
"""


class Lab:
    """A lab whose hosts take commands; it ends with its input."""

    def __init__(self, home, environment):
        self.home = home
        argv = [sys.executable, "-P", "-m", "benchctl", "lab", "shell", "lab.toml", "--trust"]
        self.process = subprocess.Popen(
            argv, cwd=home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        self._number = 0

    def types(self, host, line, *, shown=""):
        """Run a shell command on a host, and return what it printed."""
        self._number += 1
        out, code = self.home / f"out{self._number}", self.home / f"code{self._number}"
        self._send(host, f"{{ {line}\n}} >{out} 2>&1; echo $? >{code}.new; mv {code}.new {code}")
        if shown:
            print(f"{host}$ {shown}", flush=True)
        self.wait(code.exists, line)
        said = out.read_text()
        if code.read_text().strip() != "0":
            raise SystemExit(f"{host}: {line}\n{said}")
        return said

    def starts(self, host, line, log):
        """Start a shell command on a host; what it prints goes to a file."""
        self._send(host, f"exec {line} >>{self.home / log} 2>&1", " &")

    def _send(self, host, line, end=""):
        script = self.home / f"script{time.monotonic_ns()}"
        script.write_text(line + "\n")
        self.process.stdin.write(f"{host} sh {script}{end}\n")
        self.process.stdin.flush()

    def wait(self, holds, what):
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if self.process.poll() is not None:
                raise SystemExit("the lab has ended")
            if time.monotonic() > deadline:
                raise SystemExit(f"waited in vain: {what}")
            time.sleep(0.1)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


class Demo:
    """A fleet in a directory, and the lab that it is in."""

    def __init__(self, home):
        self.home = home
        environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("XDG_")},
            "HOME": str(home), "BENCHCTL_STORE": str(home / "runs.sqlite"),
        }  # fmt: skip
        environment.pop("BENCHCTL_SETTINGS", None)
        self.environment = environment
        self.benchctl = f"{sys.executable} -P -m benchctl"
        (home / "lab.toml").write_text(topology())
        self.addresses = self._addresses()
        self.lab = Lab(home, environment)

    def _addresses(self):
        argv = [sys.executable, "-P", "-m", "benchctl", "lab", "show", "lab.toml"]
        said = subprocess.run(
            argv, cwd=self.home, env=self.environment, capture_output=True, text=True, check=True
        ).stdout
        rows = (line.split() for line in said.splitlines())
        return {row[0]: row[3] for row in rows if len(row) > 3 and row[1] == "host"}

    def bring_up(self):
        lab, benchctl = self.lab, self.benchctl
        address = f"{self.addresses[CENTER]}:{PORT}"
        lab.types(CENTER, f"{benchctl} fleet init fleet --address {address}",
                  shown=f"benchctl fleet init fleet --address {address}")  # fmt: skip
        print(f"{CENTER}$ benchctl fleet up fleet &", flush=True)
        lab.starts(CENTER, f"{benchctl} fleet up fleet", "fleet.log")
        lab.wait(lambda: "Ctrl-C" in self._log("fleet.log"), "the fleet runs")
        lab.types(CENTER, f"{benchctl} fleet invite alice --role run --directory fleet",
                  shown="benchctl fleet invite alice --role run --directory fleet")  # fmt: skip
        for host in HOSTS:
            added = f"{benchctl} fleet add {host} --directory fleet 2>/dev/null >{host}.token"
            lab.types(CENTER, added)
            folder = self.home / host
            joins = f"{benchctl} agent join --directory {folder} --units {folder}/units"
            lab.types(host, f"{joins} <{host}.token")
            (folder / "agent.toml").write_text(LIMITS)
            self.start_agent(host)
        print(f"{len(HOSTS)} hosts have joined", flush=True)

    def start_agent(self, host):
        agent = f"{self.benchctl} agent run {self.home / host}"
        self.lab.starts(host, f"sh -c 'echo $$ >{host}.pid; exec {agent}'", f"{host}.log")

    def there(self):
        """Return how many hosts are there."""
        said = self.lab.types(CENTER, f"{self.benchctl} fleet hosts --json --directory fleet")
        listed = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        return sum(not one["is_away"] for one in listed)

    def _log(self, name):
        path = self.home / name
        return path.read_text() if path.exists() else ""

    def kill(self, host, pid_file):
        """Kill a process of a host, by the number that it has in the lab."""
        self.lab.types(host, f"kill -9 $(cat {pid_file})", shown=f"kill -9 $(cat {pid_file})")

    def measure(self):
        (self.home / "mesh.toml").write_text(profile(self.addresses))
        command = "run mesh.toml --fleet alice.fleet --events --quiet"
        print(f"{CENTER}$ benchctl {command} &", flush=True)
        self.lab.starts(
            CENTER, f"sh -c '{self.benchctl} {command} >events; echo $? >run.code'", "run.log"
        )
        everything = len(HOSTS) * (len(HOSTS) - 1)
        began = time.monotonic()
        self._until(everything // 4)
        self.show()
        self.kill(HOSTS[6], f"{HOSTS[6]}.pid")
        self._until(everything // 3)
        self.start_agent(HOSTS[6])
        self._until(everything // 2)
        self.kill(CENTER, "fleet/nats.pid")
        self.lab.wait((self.home / "run.code").exists, "the run ends")
        return time.monotonic() - began

    def _until(self, trials):
        self.lab.wait(lambda: self.ended() >= trials, f"{trials} trials have ended")
        print(f"{self.ended()} trials have ended", flush=True)

    def ended(self):
        return sum(event["event"] == "trial_ended" for event in self.events())

    def events(self):
        lines = self._log("events").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def show(self):
        """Print what the screens show now."""
        if shutil.which("tmux") is None:
            return
        tmux = f"tmux -S {self.home}/tmux"
        tui = f"{self.benchctl} tui --fleet alice.fleet --attach"
        self.lab.types(
            CENTER, f"{tmux} new-session -d -x 120 -y 40 '{tui}' && sleep 8 && "
            f"{tmux} capture-pane -p >screen; {tmux} kill-server",
        )  # fmt: skip
        print(self._log("screen"), flush=True)


def main():
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has it ignored
        signal.signal(number, lambda *_: sys.exit(130))
    with tempfile.TemporaryDirectory(prefix="benchctl-demo-") as place:
        began, demo = time.monotonic(), Demo(Path(place))
        with closing(demo.lab):
            demo.bring_up()
            demo.lab.wait(lambda: demo.there() == len(HOSTS), "all hosts are there")
            took_s = demo.measure()
            print(demo._log("run.log"))
            statuses = [one["status"] for one in demo.events() if one["event"] == "trial_ended"]
            code = demo._log("run.code").strip()
            attempts = {
                (one["trial"], one["attempt"])
                for one in demo.events()
                if one["event"] == "flow_started"
            }
            why = Counter(
                one["error"]
                for one in demo.events()
                if one["event"] == "flow_ended" and one["status"] != "ok"
            )
        counts = Counter(statuses)
        expected = len(HOSTS) * (len(HOSTS) - 1)
        print(
            f"{len(statuses)} of {expected} trials in {took_s:.0f} s: {dict(counts)}, "
            f"{len(attempts) - len(statuses)} attempts more; exit code {code}"
        )
        for error, times in why.most_common():
            print(f"{times} attempts: {error}")
        print(f"all in {time.monotonic() - began:.0f} s")
        sys.exit(0 if len(statuses) == expected and counts.keys() == {"ok"} else 1)


if __name__ == "__main__":
    main()
