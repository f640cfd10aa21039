"""Links that the kernel emulates, and how their settings change over time."""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchctl.lab.link import NEVER_NS, Change, Course
from benchctl.lab.model import Link
from benchctl.lab.namespaces import Namespaces

# Of a ramp: finer than any interval that a flow is measured in, and a small load (1 ms of tc).
_STEP_NS = 50_000_000


class KernelLinks:
    """The links of a lab that the kernel emulates."""

    def __init__(self, namespaces: Namespaces, links: Mapping[str, Link]) -> None:
        self._namespaces = namespaces
        self._links = links
        self._courses: dict[tuple[str, int], Course] = {}
        for name, link in links.items():
            for direction, settings in enumerate(link.settings):
                self._courses[name, direction] = Course(settings)
                namespaces.emulate(link, direction, settings)

    def change(self, link: str, direction: int, change: Change) -> None:
        """Take new settings for one direction, now or for later."""
        self._courses[link, direction].add(change, time.monotonic_ns())

    def advance(self) -> float | None:
        """Tell the kernel what has changed; returns the seconds until the next time, or None."""
        now_ns = time.monotonic_ns()
        next_ns = NEVER_NS
        for (name, direction), course in self._courses.items():
            if course.next_ns <= now_ns:
                course.advance(now_ns)
                self._namespaces.emulate(self._links[name], direction, course.settings)
            if course.next_ns <= now_ns:
                next_ns = min(next_ns, now_ns + _STEP_NS)
            else:
                next_ns = min(next_ns, course.next_ns)
        return None if next_ns == NEVER_NS else (next_ns - now_ns) / 1e9
