"""The list of the jobs of a journal: what is kept of each job so that no history has to be read for it, and filters.

Beside its row each job has details (queue, times, nodes, message), which are written together with it from the same
facts as its document. Lists are questions to SQLite, so that those of journals with many jobs that have ended cost
little.
"""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal

from sssjob.errors import UsageError
from sssjob.request.in_all import asked_in_all
from sssjob.run.rows import KEY, Row, first_values

if TYPE_CHECKING:
    from sssjob.document.model import Container
    from sssjob.run.journal import Journal
    from sssjob.run.standing import Running

__all__ = ["COLUMNS", "SCHEMA", "Details", "Filter", "Listed", "details_of", "knows_group", "listed", "submitted_to",
           "totals", "write_details"]

#: What the list needs in the journal.
SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS details (submission INTEGER NOT NULL, job INTEGER NOT NULL, queue TEXT, "
    "submitted REAL, started REAL, ended REAL, nodes INTEGER, PRIMARY KEY (submission, job)) "
    "WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS jobs_open ON jobs (submission, job) WHERE outcome IS NULL",
    "CREATE INDEX IF NOT EXISTS submissions_ended ON submissions (ended)")
_SHOWN: Final = ("queue", "submitted", "started", "ended", "nodes")
_NEW: Final = ", ".join(f"excluded.{column}" for column in _SHOWN)
#: Nothing is written where nothing is new.
_WRITE: Final = (f"INSERT INTO details VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET ({', '.join(_SHOWN)}) = "
                 f"({_NEW}) WHERE ({', '.join(_SHOWN)}) IS NOT ({_NEW})")
#: What a list can be sorted by -> the expression.
COLUMNS: Final = {
    "key": "j.submission, j.job", "id": "j.id", "name": "j.name", "executor": "s.executor", "site": "s.site",
    "state": "j.state", "queue": "d.queue", "submitted": "d.submitted", "nodes": "d.nodes",
    "elapsed": "coalesce(d.ended, CASE WHEN j.outcome IS NULL THEN :now END) - "
               "coalesce(CASE WHEN j.outcome IS NULL AND j.state IN ('Idle', 'Hold') THEN NULL ELSE d.started END, "
               "d.submitted)"}
_OUTCOMES: Final = ("done", "failed", "canceled", "skipped", "kept")
_STATES: Final = {state.lower(): state for state in ("Idle", "Hold", "Running", "Suspended", "Completed")}


@dataclass(frozen=True, slots=True)
class Details:
    """What is shown of a job beside its row. Times in seconds since the epoch."""

    queue: str | None = None
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the list."""

    row: Row
    details: Details

    def waited(self, now: float) -> float | None:
        """Seconds from the submission to the start, or to an end without a start; of a job that waits until now. None
        of a job that has ended nobody knows when. One that was put back into the queue waits since its submission."""
        return _span(self.details.submitted, self._began or self._ended(now))

    def elapsed(self, now: float) -> float | None:
        """Seconds from the start to the end; of a job that runs until now. None as above."""
        return _span(self._began, self._ended(now))

    @property
    def _began(self) -> float | None:
        return None if self.row.outcome is None and self.row.state in ("Idle", "Hold") else self.details.started

    def _ended(self, now: float) -> float | None:
        return self.details.ended or (now if self.row.outcome is None else None)

    def record(self, now: float) -> dict[str, Any]:
        """As a JSON object."""
        details = self.details
        return self.row.record() | {
            "queue": details.queue, "submit_time": details.submitted, "start_time": details.started,
            "end_time": details.ended, "waited": self.waited(now), "elapsed": self.elapsed(now),
            "nodes": details.nodes}


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs are listed, and in which order. ended: those too that have. states: States of the document or words of
    outcomes, any of them. site: the name of a profile. name: a pattern with ``*`` and ``?`` of the id or the name.
    since: submitted then or later. group: the id of a group or an array, or ``@3``. sort: one of COLUMNS, with a dash
    before it from the last to the first."""

    ended: bool = False
    states: Sequence[str] = ()
    executor: str | None = None
    site: str | None = None
    name: str | None = None
    since: float | None = None
    group: str | None = None
    sort: str = "key"

    def question(self) -> tuple[str, dict[str, Any]]:
        """The condition and its values. Raises UsageError."""
        parts: list[str] = []
        values: dict[str, Any] = {"now": time.time()}
        words = [_state(word) for word in self.states]
        if words:
            marks = ", ".join(f":state{n}" for n in range(len(words)))
            parts.append(f"(j.state IN ({marks}) AND j.outcome IS NULL OR j.outcome IN ({marks}) "
                         f"OR j.outcome IS NOT NULL AND 'Completed' IN ({marks}))")
            values |= {f"state{n}": word for n, word in enumerate(words)}
        if not (self.ended or any(word == "Completed" or word in _OUTCOMES for word in words)):
            parts.append("s.ended IS NULL AND j.outcome IS NULL")
        if self.executor is not None:
            parts.append("s.executor = :executor")
            values["executor"] = self.executor.lower()
        if self.site is not None:
            parts.append("s.site = :site")
            values["site"] = self.site
        if self.name is not None:
            parts.append("(j.name GLOB :name OR j.id GLOB :name OR j.array GLOB :name)")
            values["name"] = self.name.replace("[", "[[]")
        if self.since is not None:
            parts.append("coalesce(d.submitted, s.time) >= :since")
            values["since"] = self.since
        if self.group is not None:
            condition, group = _of_group(self.group)
            parts.append(condition)
            values |= group
        return " AND ".join(parts) or "1", values


def _span(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else max(end - start, 0.0)


def _state(word: str) -> str:
    canonical = word.lower() if word.lower() in _OUTCOMES else _STATES.get(word.lower())
    if canonical is None:
        raise UsageError(f"there is no state {word!r} (known: {', '.join((*_STATES.values(), *_OUTCOMES))})")
    return canonical


def write_details(connection: sqlite3.Connection, number: int, jobs: Iterable[tuple[int, Details]]) -> None:
    """Write the details of jobs of a submission, within a transaction. jobs: place and details."""
    connection.executemany(_WRITE, [
        (number, job, details.queue, details.submitted, details.started, details.ended, details.nodes)
        for job, details in jobs])


def submitted_to(journal: Journal, column: Literal["site", "executor"]) -> list[str]:
    """The names of the sites, or of the executors, that jobs were submitted to, sorted. Raises AccessError."""
    return [name for (name,) in journal.ask(
        f"SELECT DISTINCT {column} FROM submissions WHERE {column} IS NOT NULL ORDER BY 1", {})]


def knows_group(journal: Journal, group: str) -> bool:
    """Whether a group or an array is called so, or a submission has that number (``@3``), and is still there.

    Raises AccessError.
    """
    condition, values = _of_group(group)
    return bool(list(journal.ask("SELECT 1 FROM jobs j JOIN submissions s ON s.number = j.submission "
                                 f"WHERE {condition} LIMIT 1", values)))


def _of_group(group: str) -> tuple[str, dict[str, Any]]:
    """The condition for the jobs of a group, or the elements of an array, and its values."""
    key = KEY.fullmatch(group)
    by_number = key is not None and key[2] is None
    if by_number:
        return "s.number = :group", {"group": int(group[1:])}
    return "(s.name = :group OR j.array = :group)", {"group": group}


def listed(journal: Journal, chosen: Filter) -> list[Listed]:
    """The jobs that are chosen. Raises UsageError, AccessError."""
    where, values = chosen.question()
    column = chosen.sort.removeprefix("-")
    if column not in COLUMNS:
        raise UsageError(f"the list cannot be sorted by {column!r} (known: {', '.join(COLUMNS)})")
    direction = " DESC" if chosen.sort.startswith("-") else ""
    order = ", ".join(f"{row.strip()}{direction}" for row in COLUMNS[column].split(", ")) if column == "key" else \
        f"{COLUMNS[column]}{direction}, j.submission, j.job"
    rows = journal.ask(
        "SELECT j.submission, j.job, j.id, j.name, j.label, j.native_id, s.executor, j.state, j.outcome, j.exit_code, "
        "j.array, j.message, s.cluster, s.site, d.queue, d.submitted, d.started, d.ended, d.nodes "
        "FROM jobs j JOIN submissions s ON s.number = j.submission "
        "LEFT JOIN details d ON d.submission = j.submission AND d.job = j.job "
        f"WHERE {where} ORDER BY {order}", values)
    return [Listed(Row(*row[:14]), Details(*row[14:])) for row in rows]


def totals(lines: Iterable[Listed]) -> str:
    """``5 jobs: 2 Running, 3 Idle``, the states before the outcomes."""
    counts = Counter(line.row.outcome or line.row.state for line in lines)
    order = [*_STATES.values(), *_OUTCOMES]
    counted = sorted(counts.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    total = sum(counts.values())
    return f"{total} job{'s' * (total != 1)}" + (f": {', '.join(f'{n} {word}' for word, n in counted)}" if counted
                                                 else "")


def details_of(job: Running) -> Details:
    """The details of a job as it stands: what it has got, also while it runs, before what it asks for."""
    own = job.plan.job
    blocks = list(own.containers("Delivered"))
    queue_asked, nodes_asked = _asked(job)
    stated = first_values(own, ("Queue", "SubmitTime", "StartTime", "EndTime"))
    queue = (_first(blocks, "Queue") or stated["Queue"] or next(iter(_seen(job, "queue")), None) or queue_asked)
    counts = _seen(job, "node_count")
    nodes = _number(_first(blocks, "NodeCount") or (sum(counts) if len(counts) == len(job.seen) else 0) or nodes_asked)
    return Details(None if queue is None else str(queue), _number(stated["SubmitTime"]),
                   _number(stated["StartTime"]), _number(stated["EndTime"]),
                   None if nodes is None else int(nodes))


def _asked(job: Running) -> tuple[object, Fraction | None]:
    """Queue and nodes that a job asks for, worked out once for what it is submitted with."""
    plan, asked = job.plan, job.plan.folded
    if plan.listed is None or plan.listed[0] is not asked:
        queue = asked.value("Queue") or _first(asked.containers("Requested"), "Queue")
        plan.listed = asked, queue, asked_in_all(asked, "NodeCount", bare=True)
    return plan.listed[1:]


def _seen(job: Running, key: str) -> list[Any]:
    """What was told of parts of a job that have begun."""
    return [seen.known[key] for seen in job.seen if seen.started is not None and key in seen.known]


def _first(blocks: Iterable[Container], tag: str) -> str | None:
    """The text of the first property of a name in some containers."""
    return next((p.text for block in blocks for p in block.all(tag)), None)


def _number(value: object) -> float | None:
    if value is None:
        return None
    try:
        return float(str(value))
    except ValueError:
        return None
