"""Format ``lsf-acct``: the JOB_FINISH records of LSF's lsb.acct, 5.1 to 10.

    "JOB_FINISH" "9.11" 1389683139 404717 22025 33882739 128 1389642318 0 0 1389642771 "anonuser" "regular" ...

Fields are parted by blanks, strings quoted with inner quotes doubled; two lists of hosts shift all that follows. What
later releases append is read by its place where it is there. Records of other events are no jobs. The file names no
machine: option ``machine``.

Source: lsb.acct(5), JOB_FINISH; the tail after submitExt read off lines of 9.11 and 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from sssjob.element import Property
from sssjob.findings import escape
from sssjob.lexical import LexicalError
from sssjob.model import Job
from sssjob.nodeset import fold
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._lines import Line
from sssjob.translators.records.base import (
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


class _Fields:
    """The fields of one record, by place; ``off`` is added to places after the lists of hosts."""

    def __init__(self, fields: list[str]) -> None:
        self.fields = fields
        self.asked, after = self._list(22, "numAskedHosts")
        self.hosts, after = self._list(after, "numExHosts")
        self.off = after - 24

    def _list(self, at: int, name: str) -> tuple[list[str], int]:
        """(members, place after them) of a list that begins with its length."""
        n = count(self.text(at), name) or 0
        if n > len(self.fields) or n > _LISTED:
            raise Rejected("columns", f"{name} says {n}, but there are {len(self.fields)} fields")
        return self.fields[at + 1:at + 1 + n], at + 1 + n

    def text(self, at: int) -> str:
        return self.fields[at] if at < len(self.fields) else ""

    def later(self, at: int) -> str:
        """The field that stands at this place where both lists are empty."""
        return self.text(at + self.off)

    def tail(self) -> int:
        """The place of runLimit, behind submitExt and the usage of hosts; past the end where there is none."""
        at = 77 + self.off
        at += 1 + 2 * (count(self.text(at), "submitExtNum") or 0)
        return at + 1 + 6 * (count(self.text(at), "numHostRusage") or 0)


class _Reading(Reading):
    def take(self, line: Line) -> Iterable[Job]:
        fields = [m[2] if m[1] is None else m[1].replace('""', '"') for m in _TOKEN.finditer(line.text)]
        if not fields:
            raise Rejected("columns", "no fields")
        if fields[0] != "JOB_FINISH":
            known = re.fullmatch(r"[A-Z][A-Z_]{2,40}", fields[0], re.ASCII)
            raise Rejected("no-job" if known else "type", f"event {escape(fields[0], 40)!r}")
        found = _Fields(fields)
        if not found.later(_LAST):
            raise Rejected("columns", f"{len(fields)} fields are too few for JOB_FINISH")
        return (self.given(self._record(found, line.number)),)

    def _record(self, f: _Fields, line: int) -> Record:
        ident = count(f.text(3), "jobId")
        if not ident:
            raise Rejected("id", f"jobId {escape(f.text(3), 40)!r}")
        index = count(f.later(53), "idx") or 0
        r = Record(line, f"{ident}[{index}]" if index else str(ident), machine=self.machine)
        if index:
            r.array = str(ident), str(index)
        for attribute, text, name in (("user", f.text(11), "userName"), ("queue", f.text(12), "queue"),
                                      ("submit_host", f.text(16), "fromHost"), ("name", f.later(26), "jobName"),
                                      ("reservation", f.later(58), "rsvId")):
            setattr(r, attribute, self.name(words(text), name))
        r.directory = words(f.text(17))
        r.project = self.name(words(f.later(48)), "projectName")
        r.end, r.submit, r.begin, r.start = (self.time(f.text(i), n, line) for i, n in (
            (2, "eventTime"), (7, "submitTime"), (8, "beginTime"), (10, "startTime")))
        r.ran = r.start is not None
        self._state(r, f)
        self._used(r, f)
        self._requested(r, f)
        for name, at in (("SLA", 59), ("ChargedSAAP", 65), ("LicenseProject", 66), ("Application", 67)):
            if (said := words(f.later(at))) is not None:
                r.more.append(("lsf", name, said))
        return r

    def _state(self, r: Record, f: _Fields) -> None:
        """exitStatus is a wait status: the code above, the signal below; exitInfo says why."""
        status, info = count(f.later(24), "jStatus"), count(f.later(62), "exitInfo") or 0
        if status is None:
            raise Rejected("number", "no jStatus")
        r.native = "DONE" if status & _DONE else "EXIT" if status & _EXIT else str(status)
        wait = count(f.later(49), "exitStatus")
        if wait is not None and wait < 65536:
            r.signal = wait & 127 or None
            r.exit_code = None if r.signal else wait >> 8
        if r.signal or wait is None or wait >= 65536:
            r.exit_status = "" if wait is None else str(wait)
        if status & _DONE:
            r.message = "DONE"
            return
        if not wait:
            r.exit_code = None          # an EXIT with status 0 says nothing about the job's own code
        word, why = ENDINGS.get(info, (f"exitInfo {info}" if info else "", ""))
        why = why or ("signal" if r.signal else "")
        text = f"EXIT ({word})" if word else "EXIT"
        r.message = f"{why}: {text}" if why else text
        if not r.ran:
            r.message = f"cancel: {text}" if why in ("", "cancel") else r.message

    def _used(self, r: Record, f: _Fields) -> None:
        slots, hosts = 0, dict[str, None]()
        for host in f.hosts:
            times, star, name = host.partition("*")
            slots += int(times) if star and times.isdecimal() and times.isascii() and len(times) < 10 else 1
            hosts[name if star else host] = None
        r.processors = self.first("Processors", r.line, ("execHosts", slots or None),
                                  ("maxNumProcessors", count(f.later(50), "maxNumProcessors") or None))
        r.nodes = len(hosts) or None
        r.node = _node(list(hosts))
        run = count(f.text(f.tail() + 13), "runTime")
        span = r.end - r.start if r.end is not None and r.start is not None else None
        r.wall = run if run is not None else None if span is None else max(0, span)
        if run is not None and span is not None and span - run > 2:
            r.suspended = span - run
        user, system = number(f.later(28), "ru_utime"), number(f.later(29), "ru_stime")
        if user is not None or system is not None:
            r.cpu = int((user or 0) + (system or 0) + Decimal("0.5"))
        peak, swap = count(f.later(54), "maxRMem"), count(f.later(55), "maxRSwap")
        for tag, size in (("Memory", peak), ("Swap", swap)):
            if size:
                r.delivered.append(leaf(tag, Decimal(size), {"units": "KB", "metric": "Max"}))
        average = count(f.text(f.tail() + 2), "avgMem")
        if average:
            r.delivered.append(leaf("Memory", Decimal(average), {"units": "KB", "metric": "Average"}))

    def _requested(self, r: Record, f: _Fields) -> None:
        asked, limit = count(f.text(6), "numProcessors"), count(f.text(f.tail()), "runLimit")
        if asked:
            r.requested.append(leaf("Processors", asked))
        if limit:
            r.requested.append(leaf("Duration", limit))
        if (text := words(f.text(13))) is not None:
            r.requested.append(leaf("Extension", text, {"name": "resReq", "type": "lsf"}))


def _node(hosts: list[str]) -> Property | None:
    try:
        return recall(node, fold(hosts))[0] if hosts else None
    except LexicalError:
        return leaf("Node", ",".join(hosts), {"aggregation": "List"})


_FIRST: Final = re.compile(r'"[A-Z_]+" "[\d.]+" \d+ ', re.ASCII)

TRANSLATOR = translator("lsf-acct", "LSF accounting, lsb.acct", _Reading,
                        recognise=lambda sample: by_beginning(sample, _FIRST, "an event, a release and a time"))
