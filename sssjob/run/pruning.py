"""What has ended is taken out of a journal.

A submission goes as a whole: all of its jobs have ended, no client is busy with it, and no job that waits depends on
one of its. Each step is a transaction that looks at all that again, so that any number of clients may work meanwhile,
and one that is killed leaves a good journal. Numbers of submissions never come twice.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sssjob.errors import AccessError
from sssjob.run.journal import Entry, Journal
from sssjob.run.rows import GONE

__all__ = ["Pruned", "ended_entries", "prune"]

_AT_ONCE: Final = 100           # submissions a transaction
_TABLES: Final = ("events", "details", "jobs")


@dataclass(slots=True)
class Pruned:
    """What was taken out, or would be. kept: submissions that were chosen and stay, because a job that waits depends on
    them or a client is busy with them. freed: bytes of the file; trouble: why they were not given back."""

    submissions: int = 0
    jobs: int = 0
    kept: int = 0
    freed: int = 0
    trouble: str | None = None


def prune(journal: Journal, before: float | None = None, keep: int = 0, dry_run: bool = False) -> Pruned:
    """Take out submissions of which all jobs have ended.

    before: only those that had ended then, in seconds since the epoch. keep: not the newest so many that have ended.
    dry_run: only say what would go. Raises AccessError; what was taken out before stays out.
    """
    chosen = _ended(journal, before, keep)
    pruned = Pruned()
    size = journal.path.stat().st_size
    for start in range(0, len(chosen), _AT_ONCE):
        _prune_some(journal, chosen[start:start + _AT_ONCE], pruned, dry_run)
    if pruned.submissions and not dry_run:
        try:
            journal.compact()
        except AccessError as error:
            pruned.trouble = str(error)
        pruned.freed = max(size - journal.path.stat().st_size, 0)
    return pruned


def ended_entries(journal: Journal, since: float | None = None, before: float | None = None) -> Iterator[Entry]:
    """Submissions of which all jobs have ended, one after another, the oldest first. since, before: when they ended."""
    for number in reversed(_ended(journal, before, 0)):
        entry = journal.entry(number)
        if entry.ended is not None and (since is None or entry.ended >= since):
            yield entry


def _ended(journal: Journal, before: float | None, keep: int) -> list[int]:
    """Numbers of those that have ended, the newest first."""
    rows = journal.ask("SELECT number, ended FROM submissions WHERE ended IS NOT NULL "
                       "ORDER BY ended DESC, number DESC LIMIT -1 OFFSET :keep", {"keep": keep})
    return [number for number, ended in rows if before is None or ended < before]


def _prune_some(journal: Journal, numbers: Sequence[int], pruned: Pruned, dry_run: bool) -> None:
    """Take out those of some submissions that may go, in one transaction."""
    entries = journal.entries(numbers)
    taken = [entry for entry in entries if not entry.folder.exists() or entry.take()]
    try:
        with journal.changing() as connection:
            needed = _needed(connection)
            going = [entry for entry in taken if entry.number not in needed and _has_ended(connection, entry.number)]
            for entry in going:
                pruned.jobs += int(connection.execute("SELECT count(*) FROM jobs WHERE submission = ?",
                                                      (entry.number,)).fetchone()[0])
                if not dry_run:
                    _remove(connection, entry.number)
            if going and not dry_run:
                connection.execute(_ROUTES_OF_NOBODY)
        pruned.submissions += len(going)
        there = sum(journal.end_of(entry.number) != GONE for entry in entries)     # not what others took out
        pruned.kept += there - (len(going) if dry_run else 0)
        for entry in going if not dry_run else ():
            shutil.rmtree(entry.folder, ignore_errors=True)
    finally:
        for entry in taken:
            entry.release()


#: What is left of routes that are over, when the last of their submissions is gone (``:`` and ``;`` are neighbours).
_ROUTES_OF_NOBODY: Final = (
    "DELETE FROM routes WHERE phase = 'closed' AND NOT EXISTS (SELECT 1 FROM submissions WHERE "
    "request >= 'route:' || routes.token || ':' AND request < 'route:' || routes.token || ';')")


def _remove(connection: sqlite3.Connection, number: int) -> None:
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE submission = ?", (number,))
    connection.execute("DELETE FROM submissions WHERE number = ?", (number,))


def _has_ended(connection: sqlite3.Connection, number: int) -> bool:
    row = connection.execute("SELECT 1 FROM submissions WHERE number = ? AND ended IS NOT NULL AND NOT EXISTS ("
                             "SELECT 1 FROM jobs WHERE submission = number AND outcome IS NULL)",
                             (number,)).fetchone()
    return row is not None


def _needed(connection: sqlite3.Connection) -> set[int]:
    """Submissions on whose jobs those of others depend that have not ended."""
    rows = connection.execute("SELECT e.data FROM submissions s JOIN events e ON e.submission = s.number "
                              "WHERE s.ended IS NULL AND e.kind = 'after'").fetchall()
    keys = [key for data, in rows for key in json.loads(data)["keys"]]
    return {int(key[1:].partition(".")[0]) for key in keys if key.startswith("@")}
