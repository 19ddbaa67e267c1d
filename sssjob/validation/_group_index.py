"""What concerns several jobs of a group that is read part by part: Ids used twice, dependencies and their cycles.

Ids, names and dependencies are kept in a temporary file of SQLite, of which a few megabytes are in memory, so that the
cost of a job is on the disk: its Id with some 40 bytes more, and where the document has any dependency at all as much
again for its name and for each of its dependencies.
"""

from __future__ import annotations

import sqlite3
import weakref
from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

from sssjob.document.element import Value
from sssjob.document.model import Job
from sssjob.validation import Siblings

_CACHE: Final = 4_096       # KiB of a database that are kept in memory


def _database(owner: object, *tables: str) -> sqlite3.Connection:
    """A database on the disk that is deleted when its owner is let go."""
    connection = sqlite3.connect("", isolation_level=None)
    weakref.finalize(owner, connection.close)
    for pragma in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE}"):
        connection.execute(f"PRAGMA {pragma}")
    for table in tables:
        connection.execute(f"CREATE TABLE {table}")
    connection.execute("BEGIN")
    return connection


class KnownIds(Siblings):
    """The children of a group that have come so far. lines: how many more a line has in the file than where the child
    was read from."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0
        self._db = _database(self, "first (id TEXT PRIMARY KEY, life TEXT, line INTEGER) WITHOUT ROWID",
                             "later (id TEXT, life TEXT, line INTEGER, PRIMARY KEY (id, life)) WITHOUT ROWID")

    def earlier(self, tag: str, identifier: str, life: Value | None, line: int) -> int | None:
        """As of all siblings; one Id may have many lives, none of which is looked at but those that count."""
        key, what, line = f"{tag} {identifier}", _text_of(life), line + self.lines
        ask = self._db.execute
        if ask("INSERT OR IGNORE INTO first VALUES (?, ?, ?)", (key, what, line)).rowcount:
            return None
        (other, first), = ask("SELECT life, line FROM first WHERE id = ?", (key,))
        same = other == what or not ask("INSERT OR IGNORE INTO later VALUES (?, ?, ?)", (key, what, line)).rowcount
        if not same and "" not in (what, other) and not ask(
                "SELECT 1 FROM later WHERE id = ? AND life = ''", (key,)).fetchone():
            return None
        if same and other != what:
            (first,), = ask("SELECT line FROM later WHERE id = ? AND life = ?", (key, what))
        return int(first)


def _text_of(life: Value | None) -> str:
    """A life as a text of its own; empty for none."""
    return "" if life is None else f"{type(life).__name__} {life}"


class Unknown(NamedTuple):
    """A dependency on a job that is not in the group. job: number of the one that waits, from 0; at: which of its
    dependencies it is, from 0."""

    job: int
    at: int


class Links:
    """The dependencies of the jobs of one group, as ``graph.Dependencies`` resolves them."""

    def __init__(self) -> None:
        self._db = _database(self, "ids (key TEXT PRIMARY KEY, job INTEGER, own INTEGER) WITHOUT ROWID",
                             "names (key TEXT, job INTEGER, PRIMARY KEY (key, job)) WITHOUT ROWID",
                             "links (job INTEGER, at INTEGER, target TEXT, key TEXT, named INTEGER)")
        self._jobs = 0

    def add(self, job: Job) -> None:
        """The next job of the group, references included."""
        number, ask = self._jobs, self._db.execute
        self._jobs += 1
        own = job.reference is None
        identifier = job.value("Id") if own else job.reference
        if identifier is not None:
            ask("INSERT INTO ids VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET own = own OR excluded.own",
                (str(identifier), number, own))
        name = job.value("Name")
        if name is not None:
            ask("INSERT INTO names VALUES (?, ?)", (str(name), number))
        for at, p in enumerate(job.all("Dependency") if own else ()):
            ask("INSERT INTO links VALUES (?, ?, ?, ?, ?)",
                (number, at, p.text, p.text.strip(), p.get("designator") == "JobName"))

    def unknown(self) -> Iterator[Unknown]:
        """Dependencies on jobs that are not part of the group, nor by any of their ids and names known in it."""
        asked = self._db.execute(
            "SELECT job, at FROM links l WHERE NOT EXISTS (SELECT 1 FROM names WHERE key = l.key) "
            "AND (named OR NOT EXISTS (SELECT 1 FROM ids WHERE key = l.key)) "
            "AND NOT EXISTS (SELECT 1 FROM ids WHERE key = l.target AND own) "
            "AND NOT EXISTS (SELECT 1 FROM names WHERE key = l.target) ORDER BY rowid")
        return (Unknown(*row) for row in asked)

    def cyclic(self) -> bool:
        """Whether jobs wait for each other, or one for itself: whether some are left when all that can run have run."""
        waiting, needed, nodes = self._edges()
        counts, starts = array("L", bytes(8 * nodes)), array("L", bytes(8 * (nodes + 1)))
        for job, other in zip(waiting, needed, strict=True):
            counts[job] += 1
            starts[other + 1] += 1
        starts = array("L", accumulate(starts))
        places, order = starts[:], array("L", bytes(8 * len(waiting)))
        for job, other in zip(waiting, needed, strict=True):
            order[places[other]] = job
            places[other] += 1
        ready = [node for node in range(nodes) if not counts[node]]
        pending = nodes
        while ready:
            node = ready.pop()
            pending -= 1
            for at in range(starts[node], starts[node + 1]):
                counts[order[at]] -= 1
                if not counts[order[at]]:
                    ready.append(order[at])
        return pending > 0

    def _edges(self) -> tuple[array[int], array[int], int]:
        """Jobs that wait, and what each of them waits for: a job, or a name that jobs have, which waits for those; and
        how many jobs and names there are."""
        waiting, needed = array("L"), array("L")
        by_id = self._db.execute("SELECT l.job, i.job FROM links l JOIN ids i ON i.key = l.key WHERE NOT named")
        for job, other in by_id:
            waiting.append(job)
            needed.append(other)
        nodes: dict[str, int] = {}
        by_name = self._db.execute(
            "SELECT job, key FROM links l WHERE (named OR NOT EXISTS (SELECT 1 FROM ids WHERE key = l.key)) "
            "AND EXISTS (SELECT 1 FROM names WHERE key = l.key)")
        for job, key in by_name:
            waiting.append(job)
            needed.append(nodes.setdefault(key, self._jobs + len(nodes)))
        for key, node in nodes.items():
            for other, in self._db.execute("SELECT job FROM names WHERE key = ?", (key,)):
                waiting.append(node)
                needed.append(other)
        return waiting, needed, self._jobs + len(nodes)
