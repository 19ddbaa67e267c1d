"""Which submissions of a journal a client can look after: those on the cluster that it talks to.

A journal may be shared by login nodes of several clusters. The jobs of a submission on another cluster are left alone,
and that is told once.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psij
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import UsageError
from sssjob.run.backends import KEPT
from sssjob.run.placing import ASK_AGAIN_S, cluster_of, place, way_of

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.journal import Entry
    from sssjob.run.standing import Running

__all__ = ["Whereabouts"]


@dataclass(slots=True)
class Whereabouts:
    """What a client has found out. elsewhere: submissions on another cluster, by their numbers, and which it is; empty
    where that is not known. silent: those of which no resource manager says now whether they are here."""

    elsewhere: dict[int, str] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    _clusters: dict[str, tuple[float, str | None]] = field(default_factory=dict)    # by executor: until when, which
    _not_shown: dict[int, float] = field(default_factory=dict)  # by number: until when tags are not sought again

    def is_here(self, client: Client, entry: Entry) -> bool:
        """Whether the jobs of a submission are on the cluster that a client talks to, as far as that is known."""
        if entry.executor in KEPT:
            return True
        if entry.cluster is None and entry.way is not None:
            entry.cluster = client.journal.entry(entry.number).cluster      # another client may know it by now
            if entry.cluster is None:
                return self._is_unplaced_here(client, entry)
        return entry.cluster is None or self._is_placed_here(client, entry)

    def require(self, client: Client, entry: Entry) -> None:
        """Refuse, with UsageError, what would go to another cluster than the submission went to."""
        if not self.is_here(client, entry) and entry.number in self.elsewhere:
            where = entry.cluster or "which is not known"
            raise UsageError(f"@{entry.number} was submitted on another cluster, {where}: run its jobs again there")

    def is_left(self, job: Running) -> bool:
        """Whether a job is on another cluster, and no client looks after it there."""
        entry = job.of.entry
        return entry is not None and entry.number in self.elsewhere and not entry.held()

    def _is_placed_here(self, client: Client, entry: Entry) -> bool:
        """The same of a submission whose cluster is known."""
        cluster_here = self._cluster_here(client, entry)
        if cluster_here is None:
            self.silent.add(entry.number)
            return False
        self.silent.discard(entry.number)
        if cluster_here == entry.cluster:
            self.elsewhere.pop(entry.number, None)
            return True
        self._leave(client, entry, f"is on the cluster {entry.cluster}; this is {cluster_here}. "
                                   "Its jobs are left alone here, and shown as they were last")
        return False

    def _is_unplaced_here(self, client: Client, entry: Entry) -> bool:
        """The same of a submission whose cluster did not say which one it is: reached by the same way it is the same
        one, and where a job bears a tag of it, it is there. That none does is no evidence of anything."""
        backend = client.backend(entry)
        if entry.way == way_of(backend):
            place(entry, backend)
            return True
        if self._not_shown.get(entry.number, -math.inf) > time.monotonic():
            return False
        tags = [event.data["tag"] for event in entry.events() if event.kind == "intent"]
        try:
            is_shown = bool(tags) and isinstance(backend, BatchSchedulerExecutor) and backend.shows_any(tags)
        except psij.SubmitException:
            self.silent.add(entry.number)
            return False
        self.silent.discard(entry.number)
        if is_shown:
            place(entry, backend)
            self.elsewhere.pop(entry.number, None)
            return True
        self._not_shown[entry.number] = time.monotonic() + ASK_AGAIN_S
        self._leave(client, entry, f"was submitted on {entry.host} while its resource manager did not say which "
                                   "cluster it is, and no job of it is known here. Its jobs are left alone until a "
                                   "client there looks")
        return False

    def _cluster_here(self, client: Client, entry: Entry) -> str | None:
        """The cluster that a client talks to; None where nobody says it now."""
        key = client.key(entry)
        until, cluster = self._clusters.get(key, (0.0, None))
        if until <= time.monotonic():
            cluster = cluster_of(client.backend(entry))
            until = math.inf if cluster is not None else time.monotonic() + ASK_AGAIN_S
            self._clusters[key] = until, cluster
        return cluster

    def _leave(self, client: Client, entry: Entry, why: str) -> None:
        """Tell, once, that the jobs of a submission are not here."""
        if entry.number not in self.elsewhere:
            self.elsewhere[entry.number] = entry.cluster or ""
            client.findings.add("SSS602", f"@{entry.number}", f"@{entry.number} {why}", severity="warning")
