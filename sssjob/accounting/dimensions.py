"""What jobs can be told apart by where they are added up: properties, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from math import ceil
from typing import Final, Self

from sssjob.document.element import Container, Property
from sssjob.document.endings import FAILURE, NO_FAILURE, failed, why_word
from sssjob.document.held import delivered, held, seconds
from sssjob.document.model import Job
from sssjob.document.vocabulary import ELEMENTS
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.request.in_all import asked_in_all

__all__ = ["ABSENT", "DERIVED", "Condition", "all_delivered", "dimension", "size_class", "value_of",
           "wait_class"]

ABSENT: Final = "-"
#: Properties that components of a job may have of their own, beside that of the whole job, which is the first one's.
_OF_PARTS: Final = ("Queue", "QualityOfService", "Reservation")
_NAMES: Final = {name.lower(): e.name for e in ELEMENTS for name in (e.name, *e.aliases)}
#: Upper borders of the classes of sizes (processors) and of times from submission to start (seconds).
_SIZES: Final = (1, 4, 16, 64, 256, 1024, 4096)
_WAITS: Final = {60: "1m", 600: "10m", 3600: "1h", 6 * 3600: "6h", 24 * 3600: "1d", 7 * 24 * 3600: "7d"}


def dimension(name: str) -> str:
    """The name of what jobs are told apart by, as ``value_of`` takes it. Raises UsageError."""
    derived = name.strip().lower().capitalize()
    if derived in DERIVED:
        return derived
    kind, colon, rest = name.partition(":")
    tag = _NAMES.get(kind.strip().lower())
    if tag is None or (colon and (tag not in ("Resource", "Extension") or not rest)):
        spellings = {word.casefold(): word for word in (*_NAMES.values(), *DERIVED)}
        close = get_close_matches(kind.strip().casefold(), spellings, 1)
        hint = f"; did you mean {spellings[close[0]]}?" if close else " (as Project, User, Queue, Extension:State)"
        raise UsageError(f"no property {escape(name, 60)!r} to add up by{hint}")
    return f"{tag}:{rest}" if colon else tag


def value_of(job: Job, name: str) -> str:
    """The text of a property of a job, else of its Delivered or Requested; ``-`` where there is none; all queues of a
    job whose components were in several (``gpu,std``). name: as ``dimension`` gives it."""
    if name in DERIVED:
        return DERIVED[name](job)
    tag, _, subname = name.partition(":")
    subname = subname.casefold()        # HTCondor's attributes are of any case
    for container in (job, job.delivered, job.requested):
        for item in () if container is None else container.all(tag):
            if not subname:
                return _with_those_of_parts(job, tag, item.text.strip()) or ABSENT
            if (item.get("name") or "").casefold() == subname:
                return (item.get("type") or item.text if tag == "Resource" else item.text).strip() or ABSENT
    return ABSENT


def _with_those_of_parts(job: Job, tag: str, text: str) -> str:
    """The text of a property with those that components have, each once, in order."""
    if tag not in _OF_PARTS or not job.task_groups:
        return text
    texts = {item.text.strip() for group in job.task_groups for scope in group.containers("Delivered")
             for item in scope.all(tag)}
    return ",".join(sorted({text, *texts} - {""}))


def all_delivered(job: Job) -> dict[str, Property]:
    """By name what ``delivered`` gives."""
    scopes = [item.items for item in job.items if item.tag == "Delivered" and isinstance(item, Container)]
    by_tag = {item.tag: item for item in reversed(job.items) if isinstance(item, Property)}
    for items in reversed(scopes):
        by_tag |= {item.tag: item for item in reversed(items) if isinstance(item, Property)}
    return by_tag


def _failure(job: Job) -> str:
    """Why a job did not end well: the first word of its StatusMessage, whoever cancelled it and whatever its code."""
    word = why_word(job)
    if word in FAILURE or word in NO_FAILURE:
        return word
    return "failed" if failed(job) else ABSENT


def _size(job: Job) -> str:
    """The class of its number of processors, as ``0005-0016``, so that they sort."""
    count = held(job, "Processors")
    if count is None and delivered(job, "Processors") is None:
        count = asked_in_all(job, "Processors")
    return size_class(0 if count is None else ceil(count))


def size_class(count: int) -> str:
    """The class of a number of processors, 0 for none."""
    if count < 1:
        return ABSENT
    if count > _SIZES[-1]:
        return f"{_SIZES[-1] + 1:04d}+"
    first, last = next((low + 1, high) for low, high in pairwise((0, *_SIZES)) if count <= high)
    return f"{first:04d}" if first == last else f"{first:04d}-{last:04d}"


def _wait(job: Job) -> str:
    """The class of its time from submission to start."""
    submitted, started = (job.value(name) for name in ("SubmitTime", "StartTime"))
    if not isinstance(submitted, int) or not isinstance(started, int) or started < submitted:
        return ABSENT
    return wait_class(seconds(started) - seconds(submitted))


def wait_class(waited: int) -> str:
    """The class of seconds from submission to start."""
    return next((f"< {name}" for border, name in _WAITS.items() if waited < border), "7d or more")


#: Name of what follows from properties -> the text that a job has.
DERIVED: Final[dict[str, Callable[[Job], str]]] = {"Failure": _failure, "Size": _size, "Wait": _wait}


@dataclass(frozen=True, slots=True)
class Condition:
    """What a job has to have: one of some values of a dimension, or (``negated``) none of them."""

    name: str
    negated: bool
    values: set[str] = field(default_factory=set)

    @classmethod
    def all_of(cls, texts: Iterable[str]) -> tuple[Self, ...]:
        """The conditions of ``PROPERTY=VALUE`` and ``PROPERTY!=VALUE``; values of one property are alternatives. Raises
        UsageError."""
        by_key: dict[tuple[str, bool], Self] = {}
        for text in texts:
            parts = re.fullmatch(r"([^=!]+)(!?)=(.*)", text, re.DOTALL)
            if parts is None:
                raise UsageError(f"{escape(text, 60)!r} is no condition, as Queue=batch or User!=root")
            key = dimension(parts[1]), bool(parts[2])
            by_key.setdefault(key, cls(*key)).values.add(parts[3].strip())
        return tuple(by_key.values())

    def holds(self, job: Job) -> bool:
        """Whether a job meets it."""
        return (value_of(job, self.name) in self.values) is not self.negated
