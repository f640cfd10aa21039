"""A schedule on a machine whose clock is that of the test."""

from store.store_support import NOW, measured_run

from benchctl.interrupts import Asked
from benchctl.schedule.book import Book, Schedule
from benchctl.schedule.loop import Scheduler
from benchctl.schedule.times import Recurrence

HOUR_S = 3600.0


class Machine:
    """A clock that sleeps in no time, and runs that take as long as they are to."""

    def __init__(self, store):
        self.now, self.steady, self.lasts_s, self.code = NOW, 0.0, 60.0, 0
        self.store, self.argv = store, []
        self.repeats = {1: [1e6]}

    def time(self):
        return self.now

    def monotonic(self):
        return self.steady

    def sleep(self, duration_s):
        self.now += duration_s
        self.steady += duration_s

    def suspend(self, duration_s):
        """Its steady clock stands still (CLOCK_MONOTONIC of Linux)."""
        self.now += duration_s

    def call(self, argv):
        self.argv.append(argv)
        if self.code < 2:
            tag = argv[argv.index("--tag") + 1]
            measured_run(self.store, self.repeats, now=self.now, tags=(tag,))
        self.sleep(self.lasts_s)
        return self.code, "" if self.code < 2 else "benchctl: p.toml:3: no such key\n"


class Scheduled:
    def __init__(self, store):
        self.book, self.machine, self.said = Book(store), Machine(store), []
        self.asked = Asked()
        self.start()

    def start(self):
        self.scheduler = Scheduler(
            self.book, self.said.append, self.asked, self.machine, self.machine.call
        )

    def add(self, name="nightly", every_s=HOUR_S, **more):
        self.book.add(Schedule(name, "/p.toml", Recurrence(every_s, self.machine.now), **more))

    def wait(self, duration_s):
        """Let time pass, in seconds that the scheduler looks at."""
        until = self.machine.now + duration_s
        while self.machine.now < until:
            if not self.scheduler.tick():
                self.machine.sleep(min(10.0, until - self.machine.now))

    def log(self):
        """Return what is in the log, and how many due times each entry is about."""
        return [(one.what.value, one.count) for one in self.book.entries()]
