"""Format ``lsf-acct``: the JOB_FINISH records of LSF's lsb.acct, 5.1 to 10.

    "JOB_FINISH" "9.11" 1389683139 404717 22025 33882739 128 1389642318 0 0 1389642771 "anonuser" "regular" ...

Fields are parted by blanks, strings quoted with inner quotes doubled; two lists of hosts shift all that follows. What
later releases append is read by its place where it is there. Records of other events are no jobs. The file names no
machine: option ``machine``.

Source: lsb.acct(5), JOB_FINISH; the tail after submitExt read off lines of 9.11 and 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from operator import itemgetter
from typing import Any, Final

from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.findings import escape
from sssjob.lrm.lsf import TERMINATIONS, slots, state_of
from sssjob.lrm.states import Stage
from sssjob.lrm.usage import end_of
from sssjob.translators.base import ReadContext
from sssjob.translators.recognise import by_beginning
from sssjob.translators.records._again import Forms, Once, Token, cutter
from sssjob.translators.records._lines import Line
from sssjob.translators.records._values import cpu_of
from sssjob.translators.records.base import (
    Heading,
    Parting,
    Reading,
    Record,
    Rejected,
    count,
    heading,
    leaf,
    node_of_hosts,
    translator,
    words,
)

__all__ = ["TRANSLATOR"]

_TOKEN: Final = re.compile(r'"((?:[^"]++|"")*+)"|(\S++)')
_LAST: Final = 55           # maxRSwap, which every release writes
_LISTED: Final = 1_000_000
_NOTHING: Final = ("", "0")
_LISTS: Final = 22          # where the lists of hosts begin
_PEAK, _MEAN = ({"units": "KB", "metric": metric} for metric in ("Max", "Average"))


#: Sections of a record: the places of texts that together say one thing, where the lists of hosts are left out.
_WHO: Final = (11, 48, 12, 58, 16)
_ALONE: Final = (3, 53, 26, 17, 50)     # jobId, idx, jobName, cwd, maxNumProcessors
_TIMES: Final = (2, 7, 8, 10)
_ENDED: Final = (24, 49, 62)
_USED: Final = (28, 29, 54, 55)
_ASKED: Final = (6, 13)
_SAID: Final = (59, 65, 66, 67)
_SECTIONS: Final = (_ALONE, _WHO, _TIMES, _ENDED, _USED, _ASKED, _SAID)
#: Behind the usage of hosts: runLimit, avgMem, runTime.
_TAIL: Final = (0, 2, 13)
_OTHERS: Final = ("SLA", "ChargedSAAP", "LicenseProject", "Application")
_Texts = tuple[str, ...]
_Held = tuple[int, int | None, Property | None]


class _Fields:
    """The fields of one record, and where they stand: hosts: first and last but one of execHosts; after: what follows
    them; counted: the numbers that say where the next fields stand."""

    __slots__ = ("after", "counted", "fields", "hosts")

    def __init__(self, fields: _Texts) -> None:
        self.fields = fields
        asked = _list(fields, 22, "numAskedHosts")
        self.after = _list(fields, asked, "numExHosts")
        self.hosts, self.counted = (asked + 1, self.after), [22, asked]
        last = self.after + _LAST - 24
        if last >= len(fields) or not fields[last]:
            raise Rejected("columns", f"{len(fields)} fields are too few for JOB_FINISH")

    def place(self, at: int) -> int:
        """Where a field of that place stands."""
        return at if at < _LISTS else at - 24 + self.after

    def texts(self, section: tuple[int, ...]) -> _Texts:
        """The texts of a section; what lies beyond the end is empty."""
        return tuple([self._at(self.place(at)) for at in section])

    def _at(self, place: int) -> str:
        return self.fields[place] if place < len(self.fields) else ""

    def behind(self) -> int:
        """Where runLimit stands, behind submitExt and the usage of hosts; past the end where there is none. Rejected:
        number."""
        at = self.place(77)
        for name, members in (("submitExtNum", 2), ("numHostRusage", 6)):
            text = self._at(at)
            self.counted.append(at)
            at += 1 if text in _NOTHING else 1 + members * (count(text, name) or 0)
        return at

    def tail(self) -> _Texts:
        """The texts of ``_TAIL``. Rejected: number."""
        at = self.behind()
        return tuple([self._at(at + n) for n in _TAIL])


class _Form:
    """Fields of one order: which of them are quoted, and how many hosts there are."""

    __slots__ = ("hosts", "match", "sections", "tail")

    def __init__(self, fields: _Fields, texts: Sequence[str]) -> None:
        behind = fields.behind()
        places = [[fields.place(at) for at in section] for section in _SECTIONS] + [[behind + n for n in _TAIL]]
        tokens = [Token(re.escape(text), "") if at in (0, *fields.counted) else _token(text)
                  for at, text in enumerate(texts)]
        wanted_places = {at for section in places for at in section if at < len(texts)}
        first, after = fields.hosts
        cut = cutter(tokens, wanted_places, [(first, after - 1)] if first < after else ())
        self.match, self.hosts = cut.match, cut.runs[0] if cut.runs else cut.empty
        *self.sections, self.tail = (itemgetter(*(cut.values.get(at, cut.empty) for at in section))
                                     for section in places)


def _token(text: str) -> Token:
    """The pattern of a field: a value that holds quotes is no value of the form."""
    return Token('"[^"]*+(?:""[^"]*+)*+"', '"([^"]*+)"') if text[0] == '"' else Token('[^" ][^ ]*+', '([^" ][^ ]*+)')


def _form(text: str) -> _Form | None:
    """The form of a line; None where a pattern would not cut others of the form as ``_cut`` does."""
    texts = [token[0] for token in _TOKEN.finditer(text)]
    if " ".join(texts) != text or texts[0] != '"JOB_FINISH"':
        return None
    try:
        form = _Form(_Fields(_cut(text)), texts)
    except Rejected:
        return None
    return form if form.match(text) is not None else None


def _cut(text: str) -> _Texts:
    """The fields of any line."""
    return tuple([m[2] if m[1] is None else m[1].replace('""', '"') for m in _TOKEN.finditer(text)])


def _list(fields: _Texts, at: int, name: str) -> int:
    """The place after a list that begins with its length. Rejected: number, columns."""
    text = fields[at] if at < len(fields) else ""
    if text == "0":
        return at + 1
    n = count(text, name) or 0
    if n > len(fields) or n > _LISTED:
        raise Rejected("columns", f"{name} says {n}, but there are {len(fields)} fields")
    return min(at + 1 + n, max(at + 1, len(fields)))


class _Reading(Reading):
    def __init__(self, context: ReadContext) -> None:
        super().__init__(context)
        self.forms = Forms(_form, '"')
        self.who = Once(self._names)
        self.ends = Once(_ending)

    def take(self, line: Line) -> Iterable[Job]:
        """The job of one JOB_FINISH. Rejected: no-job, for any other event."""
        cut = self.forms.cut(line.text)
        if cut is not None:
            form, values = cut
            texts = [section(values) for section in form.sections]
            return (self.given(self._record(texts, _RUNS[values[form.hosts]], form.tail(values), line.number)),)
        fields = _cut(line.text)
        if not fields:
            raise Rejected("columns", "no fields")
        if fields[0] != "JOB_FINISH":
            match = re.fullmatch(r"[A-Z][A-Z_]{2,40}", fields[0], re.ASCII)
            raise Rejected("no-job" if match else "type", f"event {escape(fields[0], 40)!r}")
        line_fields = _Fields(fields)
        texts = [line_fields.texts(section) for section in _SECTIONS]
        return (self.given(self._record(texts, _HELD[fields[slice(*line_fields.hosts)]], line_fields.tail,
                                        line.number)),)

    def _record(self, texts: list[Any], held: _Held, tail: _Texts | Callable[[], _Texts], line: int) -> Record:
        (job, idx, name, directory, most), who, times, ended, used, asked, others = texts
        ident = count(job, "jobId")
        if not ident:
            raise Rejected("id", f"jobId {escape(job, 40)!r}")
        index = 0 if idx in _NOTHING else count(idx, "idx") or 0
        r = Record(line, f"{ident}[{index}]" if index else str(ident), self.machine)
        r.heading = self.who[who]
        r.name, r.directory = self.free_text(words(name), "jobName", line), words(directory)
        if index:
            r.array = str(ident), str(index)
        ending, submitted, begin, started = times
        r.end = self.time(ending, "eventTime", line)
        r.submit = self.time(submitted, "submitTime", line)
        r.begin = self.time(begin, "beginTime", line)
        r.start = self.time(started, "startTime", line)
        r.ran = r.start is not None
        r.native, r.exit_code, r.signal, r.exit_status, r.message = self.ends[(*ended, r.ran)]
        slots, r.nodes, r.node = held
        r.processors = slots if slots and most == str(slots) else self.first(
            "Processors", line, ("execHosts", slots or None), ("maxNumProcessors",
                                                               count(most, "maxNumProcessors") or None))
        limit, mean, run = tail() if callable(tail) else tail
        self._used(r, used, mean, run)
        r.requested += _REQUESTED[(*asked, limit)]
        r.more += _MORE[others]
        return r

    def _names(self, texts: _Texts) -> Heading:
        user, project, queue, booked, host = texts
        names = {of: self.name(words(text), of) for text, of in (
            (user, "userName"), (queue, "queue"), (host, "fromHost"), (booked, "rsvId"), (project, "projectName"))}
        return heading(names["userName"], None, names["projectName"], self.machine, names["queue"], None,
                       names["rsvId"], names["fromHost"])

    def _used(self, r: Record, texts: _Texts, mean: str, wall: str) -> None:
        """Take what was used."""
        run = count(wall, "runTime")
        span = r.end - r.start if r.end is not None and r.start is not None else None
        r.wall = run if run is not None else None if span is None else max(0, span)
        if run is not None and span is not None and span - run > 2:
            r.suspended = span - run
        spent, kernel, peak, swap = texts
        r.cpu = cpu_of(spent, kernel)
        size, swapped = count(peak, "maxRMem"), count(swap, "maxRSwap")
        if size:
            r.delivered.append(leaf("Memory", Decimal(size), _PEAK))
        if swapped:
            r.delivered.append(leaf("Swap", Decimal(swapped), _PEAK))
        if average := count(mean, "avgMem"):
            r.delivered.append(leaf("Memory", Decimal(average), _MEAN))


def _ending(texts: tuple[str, str, str, bool]) -> tuple[str, int | None, int | None, str, str]:
    """(the manager's state, exit code, signal, status that is neither, message) of jStatus, exitStatus, exitInfo, and
    of whether the job ran. exitStatus is a wait status: the code above, the signal below. Rejected: number."""
    status, info = count(texts[0], "jStatus"), count(texts[2], "exitInfo") or 0
    if status is None:
        raise Rejected("number", "no jStatus")
    state = state_of(status)
    native = str(status) if state is None else state.word
    wait = count(texts[1], "exitStatus")
    held = wait is not None and wait < 65536
    code, signal = end_of(wait) if wait is not None and held else (None, None)
    other = "" if wait is None or (held and not signal) else str(wait)
    if state is not None and state.stage is Stage.DONE:
        return native, code, signal, other, native
    if not wait:
        code = None             # an EXIT with status 0 says nothing about the job's own code
    word, why = TERMINATIONS.get(info, (f"exitInfo {info}" if info else "", ""))
    why = why or ("signal" if signal else "")
    text = f"EXIT ({word})" if word else "EXIT"
    message = f"{why}: {text}" if why else text
    if not texts[3] and why in ("", "cancel"):
        message = f"cancel: {text}"
    return native, code, signal, other, message


def _others(texts: _Texts) -> tuple[tuple[str, str, str], ...]:
    """Extensions of ``_OTHERS``."""
    return tuple(("lsf", of, text) for of, text_ in zip(_OTHERS, texts, strict=True)
                 if (text := words(text_)) is not None)


_MORE: Final = Once(_others)


def _held(listed: _Texts) -> _Held:
    """(slots, hosts, Node) of the hosts of a job, ``8*host`` or ``host`` once for each slot."""
    count, hosts = slots(listed)
    return count, len(hosts) or None, node_of_hosts(hosts)


_HELD: Final = Once(_held)
_RUNS: Final[Once[str, _Held]] = Once(lambda run: _HELD[_cut(run)])


def _asking(texts: _Texts) -> tuple[Property, ...]:
    """What numProcessors, resReq and runLimit ask for. Rejected: number."""
    asked, limit = count(texts[0], "numProcessors"), count(texts[2], "runLimit")
    properties = [leaf(tag, n) for tag, n in (("Processors", asked), ("Duration", limit)) if n]
    if (text := words(texts[1])) is not None:
        properties.append(leaf("Extension", text, {"name": "resReq", "type": "lsf"}))
    return tuple(properties)


_REQUESTED: Final = Once(_asking)


_FIRST: Final = re.compile(r'"[A-Z_]+" "[\d.]+" \d+ ', re.ASCII)

TRANSLATOR = translator("lsf-acct", "LSF accounting, lsb.acct", _Reading, parting=Parting(),
                        recognise=lambda sample: by_beginning(sample, _FIRST, "an event, a release and a time"))
