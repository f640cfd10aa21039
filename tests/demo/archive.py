"""Months of measurements in some minutes: ``make archive-demo``.

A mesh of four hosts in a lab is measured again and again by a schedule, and each run goes to an
archive in PostgreSQL. After two thirds of the runs, one link becomes longer. The log, the command
that is notified and the page of the mesh must tell that once each. Everything is in one directory,
and ends with this program.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import postgres

RUNS, WORSE_AFTER, EVERY_S = 30, 20, 15
# Longer than all runs may take on a busy machine.
PATIENCE_S = 660
HOSTS = ("lima", "oslo", "bonn", "kobe")
FAR = "kobe"
PROFILE = f"""
title = "The round trip between every two hosts"

[lab]
topology = "lab.toml"
verify = false

[flows.main]
backend = "ping"
count = 10
interval = "100ms"

[axes]
pair = {{ mesh = {json.dumps(HOSTS)} }}

[run]
parallel = "hosts"
"""


def topology(far_delay):
    lines = ["[routers.hub]", *(f"[hosts.{host}]" for host in HOSTS)]
    for host in HOSTS:
        delay = far_delay if host == FAR else "5ms"
        lines += [f"[links.{host}]", f'between = ["{host}", "hub"]', f'delay = "{delay}"']
    return "\n".join(lines) + "\n"


class Demo:
    """Somebody with an empty home, whose archive is at a URL."""

    def __init__(self, home, url):
        self.home = home
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("XDG_")},
            "HOME": str(home), "BENCHCTL_STORE": str(home / "runs.sqlite"),
            "BENCHCTL_ARCHIVE": url, "BENCHCTL_PUSH": "1",
        }  # fmt: skip
        self.environment.pop("BENCHCTL_SETTINGS", None)
        (home / "mesh.toml").write_text(PROFILE)
        (home / "lab.toml").write_text(topology("5ms"))

    def start(self, *words, **options):
        argv = [sys.executable, "-m", "benchctl", *words]
        return subprocess.Popen(
            argv, cwd=self.home, env=self.environment, text=True, start_new_session=True, **options
        )

    def types(self, *words):
        print("$ benchctl", shlex.join(words), flush=True)
        done = self.start(*words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        said, _ = done.communicate(timeout=PATIENCE_S)
        if done.returncode:
            raise SystemExit(f"benchctl {words[0]} ended with {done.returncode}")
        return said

    def entries(self):
        log = self.types("schedule", "log", "--json")
        return [json.loads(line) for line in log.splitlines()]

    def ended(self):
        """Return how many runs have ended, as often as the store is looked at."""
        file = self.home / "runs.sqlite.schedules.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return sum(json.loads(line)["what"] == "run" for line in lines)

    def measure(self):
        """Run the schedule until all runs have ended; the link becomes worse on the way."""
        runner = self.start("schedule", "run", stdout=subprocess.DEVNULL)
        deadline, seen, is_worse = time.monotonic() + PATIENCE_S, 0, False
        try:
            while (ended := self.ended()) < RUNS:
                if runner.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"only {ended} of {RUNS} runs have ended")
                if ended != seen:
                    seen = ended
                    print(f"{ended} of {RUNS} runs", flush=True)
                if ended >= WORSE_AFTER and not is_worse:
                    is_worse = True
                    (self.home / "lab.toml").write_text(topology("15ms"))
                    print(f"the link of {FAR} takes 15 ms from now on", flush=True)
                time.sleep(0.5)
        finally:
            runner.send_signal(signal.SIGINT)
            runner.wait(60)


def main():
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell has it ignored
        signal.signal(number, lambda *_: sys.exit(130))
    with tempfile.TemporaryDirectory(prefix="benchctl-demo-") as place, postgres.running() as make:
        demo, began = Demo(Path(place), make()), time.monotonic()
        demo.types("archive", "init", demo.environment["BENCHCTL_ARCHIVE"])
        notify = "cat >> told.jsonl"
        demo.types("schedule", "add", "mesh.toml", "--every", f"{EVERY_S}s", "--notify", notify)
        demo.measure()
        changes = [entry for entry in demo.entries() if entry["what"] == "change"]
        file = demo.home / "told.jsonl"
        told = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        demo.types("report", "--mesh", "-o", "site/")
        page = (demo.home / "site" / "index.html").read_text()
        runs = demo.types("runs", "--archive", demo.environment["BENCHCTL_ARCHIVE"], "--json")
        print(f"\n{len(runs.splitlines())} runs in the archive, {time.monotonic() - began:.0f} s")
        for entry in changes:
            print(entry["text"])
        counts = {
            "changes in the log": len(changes),
            "changes of which the command was told": sum(one["what"] == "change" for one in told),
            "changes on the page": page.count(", change: "),
        }
        for what, count in counts.items():
            print(f"{what}: {count}")
        archived = len(runs.splitlines()) >= RUNS
        sys.exit(0 if archived and set(counts.values()) == {1} else 1)


if __name__ == "__main__":
    main()
