"""A rule that a plugin keeps, and what comes of judging it.

A rule looks at a plugin and yields what it saw as text, and a `Fault` for everything that breaks
it. What a plugin does then is never an error of the rule: any exception of it is a fault.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar
from unittest import SkipTest

T = TypeVar("T")

# Of one defect there are often hundreds; nobody reads more before mending the first.
MOST_FAULTS = 5


class Standing(StrEnum):
    """How a plugin stands to a rule."""

    OK = "ok"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


class NotCheckedError(SkipTest):
    """What a rule needs is not here: its words say what, and how to get it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What breaks a rule, and what its author should do."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The judgement of one rule: what was seen, or why nothing was, and the faults."""

    rule: str
    standing: Standing
    seen: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule(Generic[T]):
    """One rule: its name, what it claims of every plugin, and how that is judged.

    ``judge`` raises NotCheckedError if something is missing.
    """

    name: str
    claim: str
    judge: Callable[[T], Iterator[Fault | str]]

    def finding(self, subject: T) -> Finding:
        """Judge a plugin."""
        seen: list[str] = []
        faults: list[Fault] = []
        try:
            for fault in self.judge(subject):
                if isinstance(fault, str):
                    seen.append(fault)
                else:
                    faults.append(fault)
                if len(faults) == MOST_FAULTS:
                    break
        except NotCheckedError as why:
            if not faults:
                return Finding(self.name, Standing.NOT_CHECKED, str(why))
        except Exception as error:
            faults.append(fault_of(error))
        standing = Standing.FAILED if faults else Standing.OK
        return Finding(self.name, standing, "; ".join(seen), tuple(faults))


def hold(rule: Rule[T], subject: T) -> None:
    """Assert that a plugin keeps a rule. Raises NotCheckedError if that cannot be judged here."""
    finding = rule.finding(subject)
    if finding.standing is Standing.NOT_CHECKED:
        raise NotCheckedError(finding.seen)
    texts = [f"{fault.what}\n  what to do: {fault.remedy}" for fault in finding.faults]
    assert not texts, "\n".join([f"{rule.name}: {rule.claim}", *texts])


def fault_of(error: BaseException, during: str = "") -> Fault:
    """Return the fault that an exception is."""
    *_, last = traceback.extract_tb(error.__traceback__)
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return Fault(f"{during}{what}", f"raised in {last.filename}, line {last.lineno}: {last.line}")
