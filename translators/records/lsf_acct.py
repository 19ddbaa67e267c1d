"""Format ``lsf-acct``: the JOB_FINISH records of LSF's lsb.acct, 5.1 to 10.

    "JOB_FINISH" "9.11" 1389683139 404717 22025 33882739 128 1389642318 0 0 1389642771 "anonuser" "regular" ...

Fields are parted by blanks, strings quoted with inner quotes doubled; two lists of hosts shift all that follows. What
later releases append is read by its place where it is there. Records of other events are no jobs. The file names no
machine: option ``machine``.

Source: lsb.acct(5), JOB_FINISH; the tail after submitExt read off lines of 9.11 and 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

from sssjob.element import Property
from sssjob.findings import escape
from sssjob.lexical import LexicalError
from sssjob.model import Job
from sssjob.nodeset import fold
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._again import Forms, Once
from sssjob.translators.records._lines import Line
from sssjob.translators.records.base import (
    Names,
    Parting,
    Reading,
    Record,
    Rejected,
    count,
    leaf,
    node,
    number,
    recall,
    translator,
    words,
)

__all__ = ["ENDINGS", "TRANSLATOR"]

_TOKEN: Final = re.compile(r'"((?:[^"]++|"")*+)"|(\S++)')
_EXIT, _DONE = 32, 64
#: exitInfo -> (word of the manager, reason). Source: lsbatch.h, TERM_*.
ENDINGS: Final[dict[int, tuple[str, str]]] = {
    1: ("TERM_PREEMPT", "preempted"), 2: ("TERM_WINDOW", "deadline"), 3: ("TERM_LOAD", "preempted"),
    5: ("TERM_RUNLIMIT", "timeout"), 6: ("TERM_DEADLINE", "deadline"), 7: ("TERM_PROCESSLIMIT", "signal"),
    8: ("TERM_FORCE_OWNER", "cancel"), 9: ("TERM_FORCE_ADMIN", "cancel"), 10: ("TERM_REQUEUE_OWNER", ""),
    11: ("TERM_REQUEUE_ADMIN", ""), 12: ("TERM_CPULIMIT", "cpu-limit"), 13: ("TERM_CHKPNT", ""),
    14: ("TERM_OWNER", "cancel"), 15: ("TERM_ADMIN", "cancel"), 16: ("TERM_MEMLIMIT", "memory"),
    17: ("TERM_EXTERNAL_SIGNAL", "signal"), 18: ("TERM_RMS", ""), 19: ("TERM_ZOMBIE", "lost"),
    20: ("TERM_SWAP", "memory"), 21: ("TERM_THREADLIMIT", "signal"), 22: ("TERM_SLURM", ""),
    23: ("TERM_BUCKET_KILL", "cancel"),
}
_LAST: Final = 55           # maxRSwap, which every release writes
_LISTED: Final = 1_000_000
_NOTHING: Final = ("", "0")
_PADDING: Final = ("",) * 80        # for what later releases append
_HALF: Final = Decimal("0.5")
_PEAK, _MEAN = ({"units": "KB", "metric": metric} for metric in ("Max", "Average"))


#: Sections of a record: the places of texts that together say one thing, where the lists of hosts are left out.
_WHO: Final = itemgetter(26, 11, 48, 12, 58, 16, 17)
_TIMES: Final = itemgetter(2, 7, 8, 10)
_ENDED: Final = itemgetter(24, 49, 62)
_USED: Final = itemgetter(28, 29, 54, 55)
_ASKED: Final = itemgetter(6, 13)
_SAID: Final = itemgetter(59, 65, 66, 67)
_OTHERS: Final = ("SLA", "ChargedSAAP", "LicenseProject", "Application")
_Texts = tuple[str, ...]


class _Form:
    """Fields of one order, by which of them are quoted."""

    __slots__ = ("match",)

    def __init__(self, match: Callable[[str], Any]) -> None:
        self.match = match


def _form(text: str) -> _Form | None:
    """The form of a line; None where a pattern would not cut others of the form as ``_cut`` does."""
    parts = (r'([^\s"]++)' if found[1] is None else '"([^"]*+)"' for found in _TOKEN.finditer(text))
    match = re.compile(" ".join(parts)).fullmatch
    return _Form(match) if match(text) is not None else None


def _cut(text: str) -> _Texts:
    """The fields of any line."""
    return tuple(m[2] if m[1] is None else m[1].replace('""', '"') for m in _TOKEN.finditer(text))


class _Fields:
    """The fields of one record: those that have a place of their own, and the list of hosts."""

    __slots__ = ("flat", "hosts")

    def __init__(self, fields: _Texts) -> None:
        _, after = _list(fields, 22, "numAskedHosts")
        self.hosts, after = _list(fields, after, "numExHosts")
        last = after + _LAST - 24
        if last >= len(fields) or not fields[last]:
            raise Rejected("columns", f"{len(fields)} fields are too few for JOB_FINISH")
        self.flat = [*fields[:22], "", "", *fields[after:], *_PADDING]

    def at(self, place: int) -> str:
        """The text at a place that may lie beyond the end."""
        return self.flat[place] if place < len(self.flat) else ""

    def tail(self) -> int:
        """The place of runLimit, behind submitExt and the usage of hosts; past the end where there is none."""
        more = self.flat[77]
        at = 78 if more in _NOTHING else 78 + 2 * (count(more, "submitExtNum") or 0)
        hosts = self.at(at)
        return at + 1 if hosts in _NOTHING else at + 1 + 6 * (count(hosts, "numHostRusage") or 0)


def _list(fields: _Texts, at: int, name: str) -> tuple[_Texts, int]:
    """(members, place after them) of a list that begins with its length."""
    text = fields[at] if at < len(fields) else ""
    if text == "0":
        return (), at + 1
    n = count(text, name) or 0
    if n > len(fields) or n > _LISTED:
        raise Rejected("columns", f"{name} says {n}, but there are {len(fields)} fields")
    return fields[at + 1:at + 1 + n], at + 1 + n


class _Reading(Reading):
    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.forms = Forms(_form)
        self.who = Once(self._names)
        self.ends = Once(_ending)

    def take(self, line: Line) -> Iterable[Job]:
        """The job of one JOB_FINISH. Rejected: no-job, for any other event."""
        cut = self.forms.cut(line.text)
        fields = _cut(line.text) if cut is None else cut[1]
        if not fields:
            raise Rejected("columns", "no fields")
        if fields[0] != "JOB_FINISH":
            known = re.fullmatch(r"[A-Z][A-Z_]{2,40}", fields[0], re.ASCII)
            raise Rejected("no-job" if known else "type", f"event {escape(fields[0], 40)!r}")
        return (self.given(self._record(_Fields(fields), line.number)),)

    def _record(self, f: _Fields, line: int) -> Record:
        flat = f.flat
        ident = count(flat[3], "jobId")
        if not ident:
            raise Rejected("id", f"jobId {escape(flat[3], 40)!r}")
        index = 0 if flat[53] in _NOTHING else count(flat[53], "idx") or 0
        names, directory = self.who[_WHO(flat)]
        r = Record(line, f"{ident}[{index}]" if index else str(ident), *names)
        if index:
            r.array = str(ident), str(index)
        r.directory = directory
        ended, submitted, begin, started = _TIMES(flat)
        r.end = self.time(ended, "eventTime", line)
        r.submit = self.time(submitted, "submitTime", line)
        r.begin = self.time(begin, "beginTime", line)
        r.start = self.time(started, "startTime", line)
        r.ran = r.start is not None
        r.native, r.exit_code, r.signal, r.exit_status, r.message = self.ends[(*_ENDED(flat), r.ran)]
        tail = self._used(r, f)
        r.requested += _REQUESTED[(*_ASKED(flat), f.at(tail))]
        r.more += [("lsf", name, text) for name, said in zip(_OTHERS, _SAID(flat), strict=True)
                   if said and (text := words(said)) is not None]
        return r

    def _names(self, texts: _Texts) -> tuple[Names, str | None]:
        """The names of a Record, and the directory."""
        name, user, project, queue, booked, host, directory = texts
        found = {of: self.name(words(text), of) for text, of in (
            (user, "userName"), (queue, "queue"), (host, "fromHost"), (name, "jobName"), (booked, "rsvId"),
            (project, "projectName"))}
        return (found["jobName"], found["userName"], None, found["projectName"], self.machine, found["queue"], None,
                found["rsvId"], found["fromHost"]), words(directory)

    def _used(self, r: Record, f: _Fields) -> int:
        """Take what was used; the place of runLimit, behind which some of it stands."""
        slots, r.nodes, r.node = _HELD[f.hosts]
        r.processors = slots if slots and f.flat[50] == str(slots) else self.first(
            "Processors", r.line, ("execHosts", slots or None),
            ("maxNumProcessors", count(f.flat[50], "maxNumProcessors") or None))
        tail = f.tail()
        run = count(f.at(tail + 13), "runTime")
        span = r.end - r.start if r.end is not None and r.start is not None else None
        r.wall = run if run is not None else None if span is None else max(0, span)
        if run is not None and span is not None and span - run > 2:
            r.suspended = span - run
        spent, kernel, peak, swap = _USED(f.flat)
        user, system = number(spent, "ru_utime"), number(kernel, "ru_stime")
        if user is not None or system is not None:
            r.cpu = int((user or 0) + (system or 0) + _HALF)
        for tag, size in (("Memory", count(peak, "maxRMem")), ("Swap", count(swap, "maxRSwap"))):
            if size:
                r.delivered.append(leaf(tag, Decimal(size), _PEAK))
        if average := count(f.at(tail + 2), "avgMem"):
            r.delivered.append(leaf("Memory", Decimal(average), _MEAN))
        return tail


def _ending(texts: tuple[str, str, str, bool]) -> tuple[str, int | None, int | None, str, str]:
    """(the manager's state, exit code, signal, status that is neither, message) of jStatus, exitStatus, exitInfo, and
    of whether the job ran. exitStatus is a wait status: the code above, the signal below. Rejected: number."""
    status, info = count(texts[0], "jStatus"), count(texts[2], "exitInfo") or 0
    if status is None:
        raise Rejected("number", "no jStatus")
    native = "DONE" if status & _DONE else "EXIT" if status & _EXIT else str(status)
    wait = count(texts[1], "exitStatus")
    held = wait is not None and wait < 65536
    signal = (wait & 127 or None) if wait is not None and held else None
    code = wait >> 8 if wait is not None and held and signal is None else None
    other = "" if wait is None or (held and not signal) else str(wait)
    if status & _DONE:
        return native, code, signal, other, "DONE"
    if not wait:
        code = None             # an EXIT with status 0 says nothing about the job's own code
    word, why = ENDINGS.get(info, (f"exitInfo {info}" if info else "", ""))
    why = why or ("signal" if signal else "")
    text = f"EXIT ({word})" if word else "EXIT"
    message = f"{why}: {text}" if why else text
    if not texts[3] and why in ("", "cancel"):
        message = f"cancel: {text}"
    return native, code, signal, other, message


def _held(listed: _Texts) -> tuple[int, int | None, Property | None]:
    """(slots, hosts, Node) of the hosts of a job, ``8*host`` or ``host`` once for each slot."""
    slots, hosts = 0, dict[str, None]()
    for host in listed:
        times, star, name = host.partition("*")
        slots += int(times) if star and times.isdecimal() and times.isascii() and len(times) < 10 else 1
        hosts[name if star else host] = None
    return slots, len(hosts) or None, _node(list(hosts))


_HELD: Final = Once(_held)


def _asking(texts: _Texts) -> tuple[Property, ...]:
    """What numProcessors, resReq and runLimit ask for. Rejected: number."""
    asked, limit = count(texts[0], "numProcessors"), count(texts[2], "runLimit")
    found = [leaf(tag, n) for tag, n in (("Processors", asked), ("Duration", limit)) if n]
    if (text := words(texts[1])) is not None:
        found.append(leaf("Extension", text, {"name": "resReq", "type": "lsf"}))
    return tuple(found)


_REQUESTED: Final = Once(_asking)


def _node(hosts: list[str]) -> Property | None:
    try:
        return recall(node, fold(hosts))[0] if hosts else None
    except LexicalError:
        return leaf("Node", ",".join(hosts), {"aggregation": "List"})


_FIRST: Final = re.compile(r'"[A-Z_]+" "[\d.]+" \d+ ', re.ASCII)

TRANSLATOR = translator("lsf-acct", "LSF accounting, lsb.acct", _Reading, parting=Parting(),
                        recognise=lambda sample: by_beginning(sample, _FIRST, "an event, a release and a time"))
