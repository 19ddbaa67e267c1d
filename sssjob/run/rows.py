"""Jobs as the journal lists them, and the questions by which they are found; nothing is written here."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sssjob.document.element import Container, Property, Value
from sssjob.errors import UnknownJobError, UsageError

__all__ = ["AGAIN", "GONE", "KEY", "NEVER_RAN", "ROUTED", "JournalRows", "Row", "first_values"]

#: What names the submissions of a document that goes to one of several sites begins so; then come the document, behind
#: a dot its part where it has several, and behind a colon the number of the step.
ROUTED: Final = "route:"
#: The same of parts of a document that are run again together.
AGAIN: Final = "again:"
#: How a submission is named, and a job by its place in it: ``@3``, ``@3.12``. SQLite counts no further than 18 digits.
KEY: Final = re.compile(r"@(\d{1,18})(?:\.(\d{1,18}))?", re.ASCII)
#: When a submission ended that was taken out of the journal since.
GONE: Final = 0.0
#: The reason for the end of a job that its executor did not take.
NEVER_RAN: Final = "never-ran"


@dataclass(slots=True)
class Row:
    """A job as it stands.

    id: the document's, else the native one. outcome: as in JobOutcome.word, None before its end. array: what the array
    is called that it is an element of. message: its StatusMessage: why it waits, or how it ended. cluster: where it is,
    None where that is not known. site: the name of the profile by which it was submitted, None without one.
    """

    submission: int
    job: int
    id: str | None
    name: str | None
    label: str
    native_id: str | None = None
    executor: str = ""
    state: str = "Idle"
    outcome: str | None = None
    exit_code: int | None = None
    array: str | None = None
    message: str | None = None
    cluster: str | None = None
    site: str | None = None

    @property
    def key(self) -> str:
        """Names the job for good: ``@3.1`` is the first job of the third submission."""
        return f"@{self.submission}.{self.job + 1}"

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"id": self.id or self.key, "key": self.key, "native_id": self.native_id, "name": self.name,
                "executor": self.executor, "cluster": self.cluster, "state": self.state, "outcome": self.outcome,
                "exit_code": self.exit_code, "message": self.message,
                **({"array": self.array} if self.array is not None else {}),
                **({"site": self.site} if self.site is not None else {})}


def first_values(job: Container, names: Iterable[str]) -> dict[str, Value | None]:
    """The value of the first property of each of these names that stands directly in a job, None where there is none:
    lists of jobs ask for many of them, again and again."""
    values: dict[str, Value | None] = dict.fromkeys(names)
    for item in job.items:
        tag = item.tag
        if tag in values and values[tag] is None and isinstance(item, Property):
            values[tag] = item.value
    return values


class JournalRows(ABC):
    """What an open journal answers. path: of its file."""

    path: Path

    @abstractmethod
    def _ask(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a question. Raises AccessError."""

    def rows(self, *, ended: bool = True) -> list[Row]:
        """All jobs, the oldest first. ended: those too that have."""
        return self._rows("" if ended else "WHERE s.ended IS NULL AND j.outcome IS NULL")

    def ended_since(self, since: float | None) -> list[Row]:
        """Jobs that have ended in the resource manager, of submissions that had not ended before a time.

        since: seconds since the epoch, None for all.
        """
        return self._rows("WHERE j.outcome IN ('done', 'failed', 'canceled') AND j.native_id IS NOT NULL AND "
                          "(s.ended IS NULL OR s.ended >= ?)", 0.0 if since is None else since)

    def in_flight(self, executor: str | None, cluster: str | None, but: Iterable[int]) -> dict[int, int]:
        """By number of a submission how many of its jobs are submitted, or about to be, and have not ended; without the
        submissions ``but``.

        executor, cluster: of these only, None of any. Jobs of which nobody knows the cluster may be on any.
        """
        others = f"s.ended IS NULL AND s.number NOT IN ({','.join(map(str, but))})"
        submitted = self._ask(
            "SELECT s.number, s.executor, s.cluster, count(*) FROM jobs j JOIN submissions s ON s.number = "
            f"j.submission WHERE {others} AND j.outcome IS NULL AND j.native_id IS NOT NULL GROUP BY j.submission")
        intended = self._ask(       # kind is that of the last event of a job
            "SELECT s.number, s.executor, s.cluster, last.kind = 'intent' FROM (SELECT e.submission, e.job, e.kind, "
            f"max(e.number) FROM submissions s JOIN events e ON e.submission = s.number WHERE {others} AND e.kind IN "
            "('intent', 'unsent', 'full') GROUP BY e.submission, e.job) last JOIN jobs j ON j.submission = "
            "last.submission AND j.job = last.job AND j.outcome IS NULL AND j.native_id IS NULL "
            "JOIN submissions s ON s.number = j.submission")
        counts: Counter[int] = Counter()
        for number, name, where, count in submitted + intended:
            if count and executor in (None, name) and (where is None or cluster in (None, where)):
                counts[number] += count
        return counts

    def end_of(self, number: int) -> float | None:
        """When nothing was left to be done for a submission; None before that. GONE: it was taken out since."""
        rows = self._ask("SELECT ended FROM submissions WHERE number = ?", number)
        end: float | None = rows[0][0] if rows else GONE
        return end

    def _unknown(self, number: int) -> UsageError:
        return UsageError(f"there is no submission @{number} in {self.path}")

    def latest_event(self) -> int:
        """The number of the last event; 0 where there is none."""
        return int(self._ask("SELECT coalesce(max(number), 0) FROM events")[0][0])

    def unkept(self) -> list[int]:
        """Submissions of which all jobs have ended, while something is still to be done for that."""
        return [number for (number,) in self._ask(
            "SELECT number FROM submissions s WHERE ended IS NULL AND NOT EXISTS (SELECT 1 FROM jobs j WHERE "
            "j.submission = s.number AND j.outcome IS NULL) ORDER BY number")]

    def waiting(self, executor: str) -> list[int]:
        """Submissions to an executor of which a job has not ended and is not submitted."""
        return [number for (number,) in self._ask(
            "SELECT DISTINCT s.number FROM submissions s JOIN jobs j ON j.submission = s.number WHERE s.ended IS NULL "
            "AND j.outcome IS NULL AND j.native_id IS NULL AND s.executor = ? ORDER BY s.number", executor)]

    def unclosed(self) -> list[int]:
        """Submissions for which something is still to be done: a job of theirs has not ended, or what was promised for
        an end is not done yet."""
        return [number for (number,) in self._ask("SELECT number FROM submissions WHERE ended IS NULL ORDER BY number")]

    def rows_of(self, number: int) -> list[Row]:
        """The jobs of a submission."""
        return self._rows("WHERE j.submission = ?", number)

    def count_of(self, number: int) -> int:
        """How many jobs a submission has."""
        return int(self._ask("SELECT count(*) FROM jobs WHERE submission = ?", number)[0][0])

    def request_of(self, number: int) -> str | None:
        """What its user calls a submission; None where that was not said, or there is none."""
        answer = self._ask("SELECT request FROM submissions WHERE number = ?", number)
        return answer[0][0] if answer else None

    def events_after(self, number: int, most: int) -> list[tuple[int, int, int, float, str]]:
        """The next events of all submissions: number, submission, job, time and kind. number: of the last one known."""
        return [(n, submission, job, when, kind) for n, submission, job, when, kind in self._ask(
            "SELECT number, submission, job, time, kind FROM events WHERE number > ? ORDER BY number LIMIT ?",
            number, most)]

    def find(self, name: str, among: Callable[[Row], bool] | None = None) -> list[Row]:
        """The job or jobs that a name means. among: of these only.

        ``@3`` (a submission), ``@3.1``, an id of a document, a native id, ``executor:native id``, an id of an array
        (all of its elements) or of a group (of all its parts, where these went to several sites), and of a job that was
        submitted without an Id the Name or ``job-1`` by which all messages call it.
        Of several jobs of one name that has not ended is meant, else the newest; of a group of which some jobs were run
        again those, and the others as they are. Raises UnknownJobError for a name that is not known, UsageError for one
        that means several jobs.
        """
        matches = [row for row in self._named(name) if among is None or among(row)]
        if not matches:
            raise UnknownJobError(f"there is no job {name!r} in {self.path} (`sssjob list --all` shows all)")
        several = {r.submission for r in matches}
        if len(several) > 1:
            documents = {number: self.origin_of(number) for number in sorted(several)}
            going = {documents[r.submission][0] for r in matches if r.outcome is None}
            if len(going) > 1:
                keys = ", ".join(r.key for r in matches if r.outcome is None)
                raise UsageError(f"{name!r} is the name of several jobs that have not ended: {keys}")
            chosen = going.pop() if going else documents[max(several)][0]
            newest = {(documents[r.submission], r.label): r.submission for r in matches}
            several_called = {label for (_, label), count in Counter((r.submission, r.label) for r in matches).items()
                              if count > 1}     # without Ids: nobody can say which of them ran again
            matches = [r for r in matches if documents[r.submission][0] == chosen
                       and (r.label in several_called or newest[documents[r.submission], r.label] == r.submission)]
        return matches

    def origin_of(self, number: int) -> tuple[str, str]:
        """The same as ``document_of`` of the submission whose jobs this one, or one before it, has run again."""
        while (request := self.request_of(number) or "").startswith(AGAIN):
            number = int(request.rpartition(".")[2])
        return self.document_of(number)

    def last_runs(self, number: int) -> dict[str, Row]:
        """The last run of each job of the document that a submission, or what it runs again, is of; by label."""
        origin = self.origin_of(number)
        again = [n for n, in self._ask("SELECT number FROM submissions WHERE request > ? AND request < ? "
                                       "ORDER BY number", AGAIN, f"{AGAIN[:-1]};") if self.origin_of(n) == origin]
        return {row.label: row for n in (*(() if origin[1] else (int(origin[0][1:]),)), number, *again)
                for row in self.rows_of(n)}

    def document_of(self, number: int) -> tuple[str, str]:
        """Which document, and which part of it (empty: the whole), a submission is of: those of one that went to
        several sites, in parts or one after the other, are of one document, and so are parts that are run again
        together."""
        request = self.request_of(number) or ""
        if not request.startswith((ROUTED, AGAIN)):
            return f"@{number}", ""
        document, _, part = request.split(":")[1].partition(".")
        return document, part

    def beside(self, number: int) -> list[int]:
        """The submissions at which the parts of the same document stand, the newest of each, in the order of the parts;
        the submission alone where the document has none."""
        document, part = self.document_of(number)
        if not part:
            return [number]
        newest: dict[int, int] = {}
        for prefix in (ROUTED, AGAIN):
            for other, in self._ask("SELECT number FROM submissions WHERE request > ? AND request < ? ORDER BY number",
                                    f"{prefix}{document}.", f"{prefix}{document}/"):
                other_part = int(self.document_of(other)[1])
                newest[other_part] = max(other, newest.get(other_part, 0))
        return [newest[each] for each in sorted(newest)]

    def named(self, name: str) -> list[Row]:
        """The jobs of this Name that have not ended; where all have, those of the newest submission."""
        rows = self._rows("WHERE j.name = ?", name)
        going = [row for row in rows if row.outcome is None]
        return going or [row for row in rows if row.submission == rows[-1].submission]

    def alike(self, row: Row, native_id: str, until: float) -> list[Row]:
        """The jobs that have the Id of a job, or now that native id, in the same manager, of its submission and of
        those that were made after it. until: seconds since the epoch."""
        rows = self._rows("WHERE (j.native_id = ? OR j.id = ?) AND j.submission >= ? AND s.time <= ?",
                          native_id, row.id, row.submission, until)
        where = row.executor, row.cluster, row.site
        return [other for other in rows if (other.executor, other.cluster, other.site) == where]

    def name_of(self, row: Row) -> str:
        """The shortest name that means this job and no other one that has not ended."""
        if row.id is None or any(r.outcome is None and r.key != row.key for r in self._named(row.id)):
            return row.key
        return row.id

    def _named(self, name: str) -> list[Row]:
        key = KEY.fullmatch(name)
        if key is not None:
            rows = self.rows_of(int(key[1]))
            return [r for r in rows if key[2] is None or r.job == int(key[2]) - 1]
        executor, colon, native = name.partition(":")
        return (self._rows("WHERE j.id = ? OR j.native_id = ?", name, name)
                or self._rows("WHERE j.array = ?", name) or self._rows("WHERE s.name = ?", name)
                or (self._rows("WHERE s.executor = ? AND j.native_id = ?", executor.lower(), native) if colon else [])
                or self._rows("WHERE j.label = ?", name))

    def _rows(self, where: str, *values: object) -> list[Row]:
        rows = self._ask("SELECT j.submission, j.job, j.id, j.name, j.label, j.native_id, s.executor, j.state, "
                         "j.outcome, j.exit_code, j.array, j.message, s.cluster, s.site FROM jobs j "
                         f"JOIN submissions s ON s.number = j.submission {where} "
                         "ORDER BY j.submission, j.job", *values)
        return [Row(*values) for values in rows]

    def changes(self) -> int:
        """Another number whenever another client has written something."""
        return int(self._ask("PRAGMA data_version")[0][0])

    def unfinished(self) -> list[int]:
        """Numbers of the submissions of which a job has not ended."""
        return [number for number, in self._ask("SELECT number FROM submissions WHERE ended IS NULL AND EXISTS (SELECT "
                                                "1 FROM jobs WHERE submission = number AND outcome IS NULL)")]
