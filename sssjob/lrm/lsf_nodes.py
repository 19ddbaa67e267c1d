"""The hosts and queues of LSF, from ``bhosts -w``, ``lshosts -w``, ``bqueues -l``, and ``bmgroup -r -w`` where queues
name groups of hosts.

Sources: the manual pages of these commands, LSF 10.1. No recorded answer was at hand. They say nothing of GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sssjob.lrm.nodes import TEN_YEARS_S, Limits, Node, Shape
from sssjob.lrm.sizes import in_bytes

__all__ = ["GROUPS", "HOSTS", "QUEUES", "STATIC", "Members", "groups_shown", "hosts_shown", "names_groups",
           "queues_shown"]

HOSTS: Final = ("bhosts", "-w")
STATIC: Final = ("lshosts", "-w")
QUEUES: Final = ("bqueues", "-l")
GROUPS: Final = ("bmgroup", "-r", "-w")
#: States of a host whose jobs are as many as it may have; it takes the next one when one of them ends. All others that
#: begin with ``closed`` take none, and neither do hosts that are away.
_FULL: Final = frozenset({"closed_Full", "closed_Excl", "closed_Busy", "closed_cu_Excl", "closed_Cu_excl"})
_MIB: Final = 1 << 20
_DIGITS: Final = 9          # of a number that is believed
_QUEUE: Final = re.compile(r"^QUEUE: *(\S+)", re.MULTILINE)
_STATE: Final = re.compile(r"^ *PRIO\b.*\bSTATUS\b.*\n.*?\s(\w+):(\w+)", re.MULTILINE)
_HOSTS: Final = re.compile(r"^HOSTS: *(.*(?:\n +\S.*)*)", re.MULTILINE)
#: Names of limits on a line, and the values below them: minutes, perhaps of a host, or numbers.
_LIMITS: Final = re.compile(r"^ *((?:[A-Z]+LIMIT *)+)\n(.*)$", re.MULTILINE)
_DEFAULTS: Final = re.compile(r"^ *DEFAULT LIMITS:$.*?(?=^ *MAXIMUM LIMITS:$|^SCHEDULING|^USERS|\Z)",
                              re.MULTILINE | re.DOTALL)
_VALUE: Final = {True: re.compile(r"(\d+(?:\.\d+)?) min(?: of \S+)?"),
                 False: re.compile(r"(\d+(?: +\d+){0,2})(?=\s|$)")}
_OF_TIME: Final = frozenset({"CPULIMIT", "RUNLIMIT"})
_OF_SLOTS: Final = frozenset({"PROCLIMIT", "TASKLIMIT"})


@dataclass(frozen=True, slots=True)
class Members:
    """The hosts of a queue. named: None for all; without: those that it does not have."""

    named: frozenset[str] | None
    without: frozenset[str] = frozenset()

    def __contains__(self, host: str) -> bool:
        return host not in self.without and (self.named is None or host in self.named)


def hosts_shown(hosts: str, static: str, members: Mapping[str, Members]) -> list[Node]:
    """The hosts with what they have for each queue. hosts: of ``bhosts``, by slots; static: of ``lshosts``, by
    processors, memory and resources; members: the hosts of each queue. Raises ValueError where an answer cannot be
    understood."""
    about = {row["HOST_NAME"]: row for row in _rows(static, "HOST_NAME")}
    nodes = []
    for row in _rows(hosts, "HOST_NAME"):
        name, state = row["HOST_NAME"], row.get("STATUS", "")
        own = about.get(name, {})
        try:
            slots = _number(row.get("MAX", "-"))
            processors = _number(own.get("ncpus", "-")) if slots is None else slots
            shape = Shape(processors or 0, _memory(own.get("maxmem", "-")), 0,
                          tuple(sorted(set(own.get("RESOURCES", "").strip("()").split()) - {"-"})))
            busy = bool(_number(row.get("NJOBS", "0")))
        except ValueError as error:
            raise ValueError(f"host {name[:80]}: {error}") from None
        usable = shape.processors > 0 and (state == "ok" or state in _FULL)
        nodes.append(Node(name, {queue: shape for queue, own_hosts in members.items() if name in own_hosts}
                          if usable else {}, busy or state in _FULL))
    return nodes


def _rows(text: str, first: str) -> Iterator[dict[str, str]]:
    """Rows of a table by the names of its columns, of which the last one may hold spaces. Raises ValueError where there
    is no such table."""
    lines = iter(text.splitlines())
    names = next((line.split() for line in lines if line.split()[:1] == [first]), None)
    if names is None:
        raise ValueError(f"there is no column {first}")
    for line in lines:
        words = line.split(maxsplit=len(names) - 1)
        if len(words) > 1:
            yield dict(zip(names, words, strict=False))


def _number(word: str) -> int | None:
    """A number of a table; None for ``-``, which is not known or has no limit."""
    if word == "-":
        return None
    if not (word.isdecimal() and word.isascii() and len(word) <= _DIGITS):
        raise ValueError(f"{word[:40]!r} is no number")
    return int(word)


def _memory(word: str) -> int:
    size = 0 if word == "-" else in_bytes(word)
    if size is None:
        raise ValueError(f"memory {word[:40]!r} is no size")
    return size // _MIB


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    _, *parts = _QUEUE.split(text)
    yield from zip(parts[::2], parts[1::2], strict=True)


def names_groups(queues: str) -> bool:
    """Whether any queue of the answer names a group of hosts."""
    return any(word.rstrip("+0123456789").endswith("/") for _, block in _blocks(queues) for word in _words(block))


def _words(block: str) -> list[str]:
    hosts = _HOSTS.search(block)
    return [] if hosts is None else hosts[1].split()


def groups_shown(text: str) -> dict[str, frozenset[str]]:
    """Group -> its hosts. Raises ValueError where the answer cannot be understood."""
    return {row["GROUP_NAME"].rstrip("/"): frozenset(row.get("HOSTS", "").split())
            for row in _rows(text, "GROUP_NAME")}


def queues_shown(text: str, groups: Mapping[str, frozenset[str]]
                 ) -> tuple[dict[str, Limits], dict[str, Members]]:
    """What the queues of an answer allow, and their hosts. groups: of hosts. Raises ValueError for a limit that cannot
    be understood."""
    limits, members = {}, {}
    for name, block in _blocks(text):
        state = _STATE.search(block)
        members[name] = _members(_words(block), groups)
        try:
            limits[name] = _limits(_DEFAULTS.sub("", block), state is None or state.groups() == ("Open", "Active"))
        except ValueError as error:
            raise ValueError(f"queue {name[:80]}: {error}") from None
    if not limits:
        raise ValueError("it names no queue")
    return limits, members


def _members(words: Iterable[str], groups: Mapping[str, frozenset[str]]) -> Members:
    """The hosts that a queue names; a number behind a plus is a preference, and a tilde takes hosts out again."""
    named, without, every = set[str](), set[str](), False
    for word in words:
        name = word.lstrip("~").rpartition("+")[0] or word.lstrip("~")
        hosts = groups.get(name.rstrip("/"), frozenset((name,)))
        if name in ("all", "others"):
            every = True
        elif word.startswith("~"):
            without |= hosts
        else:
            named |= hosts
    return Members(None if every or not named else frozenset(named), frozenset(without))


def _limits(block: str, is_open: bool) -> Limits:
    """RUNLIMIT in minutes, and the most slots of a job."""
    duration, slots = TEN_YEARS_S, None
    for names, line in _LIMITS.findall(block):
        at = 0
        for name in names.split():
            value = _VALUE[name in _OF_TIME].search(line, at)
            if value is None:
                break
            at = value.end()
            if name == "RUNLIMIT":
                duration = int(Decimal(value[1]) * 60)
            elif name in _OF_SLOTS:
                slots = int(value[1].split()[-1][:_DIGITS])
    return Limits(is_open, duration, None, slots)
