"""What is known of a part of a job that was started, and which news of it count."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from psij import JobState, JobStatus
from sssjob.document.model import TaskGroup
from sssjob.lrm.waits import MISSING, TURN
from sssjob.run.evidence import kind_of

__all__ = ["Seen", "news_of", "waits_unheld"]

_START_RECORD: Final = "start-record"    # the source of a start that the submit script wrote down
_BEHIND_S: Final = 60.0         # no list of a resource manager is further behind
_LATER_S: Final = 2.0           # two starts that are further apart than this are two


@dataclass(slots=True)
class Seen:
    """What is known of one started part of a job. group: the document's own TaskGroup, or None for the whole job.

    began: its first start that was seen; started: its last one. Both, and submitted, in seconds since the epoch.
    """

    group: TaskGroup | None = None
    native_id: str | None = None
    submitted: float | None = None
    began: float | None = None
    started: float | None = None
    status: JobStatus | None = None
    renamed: str | None = None      # its name there, where somebody has given it another one
    put_back: bool = False          # it had begun, and waits again, or did until its end by its manager's word
    dated: bool = False             # its manager has said when it was submitted

    def take(self, status: JobStatus) -> None:
        """Take over a new status."""
        metadata = status.metadata or {}
        self.native_id = metadata.get("native_id", self.native_id)
        if metadata.get("requeued") or "start_time" in metadata:
            self.put_back = bool(metadata.get("requeued") or _began_unknown_to_accounting(metadata))
        self.renamed = metadata.get("renamed", self.renamed)
        submitted = metadata.get("submit_time")
        if submitted is not None:
            if not self._is_time_put_back(metadata, submitted):
                self.submitted, self.dated = submitted, self.dated or "native_state" in metadata
            elif "start_time" not in metadata and self.started is not None and submitted > self.started:
                self.put_back = True        # while nobody looked: the start that is known is of an earlier run
        self.started = metadata.get("start_time", self.started)
        if status.state is JobState.ACTIVE and self.started is None:
            self.started = status.time
        if status.final and metadata.get("starts") == 0:        # it was about to begin, and never did
            self.started = self.began = None
        self.began = self.started if self.began is None else self.began
        self.status = status

    def _is_time_put_back(self, metadata: Mapping[str, Any], submitted: float) -> bool:
        """Whether a time of submission is the one at which a job was put back into the queue, in which it may have
        started anew within the same second: queue and controller, unlike accounting, have only the last one."""
        source = metadata.get("sources", {}).get("submit_time")
        has_all = source is not None and kind_of(str(source)) == "accounting"
        was_put_back = "requeued" in metadata or int(metadata.get("starts", 1)) > 1
        later_than_said = self.dated and self.submitted is not None and submitted > self.submitted
        later = self.began is not None and submitted > self.began
        return (not has_all and (was_put_back or later_than_said)) or (
            later and not (has_all and self.submitted is None))

    @property
    def final(self) -> bool:
        """Whether it has ended."""
        return self.status is not None and self.status.final

    @property
    def failed(self) -> bool:
        """Whether it ended other than well."""
        return self.final and self.status is not None and self.status.state is not JobState.COMPLETED

    @property
    def ended_at(self) -> float | None:
        """When it has ended, seconds since the epoch; None where nobody knows: of what was lost after its start, of
        whose start accounting knows nothing, or had gone when it was to be cancelled, only the time is known at which
        that was found out."""
        end: float | None = self.known.get("end_time", self.status.time if self.status else None)
        unknown = self.started is not None and "end_time" not in self.known and (
            self.known.get("end_unknown") or _began_unknown_to_accounting(self.known))
        return None if unknown else end

    @property
    def known(self) -> dict[str, Any]:
        """The metadata of the last status."""
        return (self.status.metadata if self.status is not None else None) or {}

    def as_missing(self, status: JobStatus) -> JobStatus:
        """A status of a job that its resource manager does not know is one of the state in which it was last, of which
        the executor may not have heard, unless accounting knows of a later one; any other status is as it is."""
        if self.status is None or (status.metadata or {}).get("waits") != MISSING \
                or status.state.is_greater_than(self.status.state):
            return status
        metadata = {key: value for key, value in self.known.items() if key not in ("phase", "sources")}
        metadata.update(status.metadata or {})
        return JobStatus(self.status.state, self.status.time, status.message, metadata=metadata)

    def follows(self, status: JobStatus) -> bool:
        """Whether a status can come after the last one: of a later state, or of the same, or waiting once more."""
        before = self.status
        if before is None:
            return True
        if before.final or self._is_old_start(status):
            return False
        if status.state is before.state:        # psij fills in that a job waits, as what comes before another state
            return status.state is not JobState.QUEUED or bool(status.metadata)
        return status.state.is_greater_than(before.state) or self._is_put_back(status)

    def _is_put_back(self, status: JobStatus) -> bool:
        """Whether a status says that a job that had begun waits again; it is marked so then.

        One that has only just begun may still be shown as waiting by a list that is behind. A status that is no answer
        of a queue, but only what must have come before another one, says nothing of the kind: it has no native state.
        """
        if status.state is not JobState.QUEUED or self.status is None or self.status.state is not JobState.ACTIVE:
            return False
        metadata = status.metadata
        if not metadata or not ("requeued" in metadata or "native_state" in metadata):
            return False
        submitted = metadata.get("submit_time")
        if not (metadata.get("requeued") or self.started is None or time.time() - self.started > _BEHIND_S
                or (submitted is not None and submitted > self.started)):
            return False
        metadata["requeued"] = True
        return True

    def keep_put_back(self, status: JobStatus) -> None:
        """Mark a status of a job that still waits as the last one was. Who sees the job for the first time does not
        know that it has begun before and was put back since."""
        if status.state is JobState.QUEUED and status.metadata and self.status is not None \
                and self.status.state is JobState.QUEUED and self.known.get("requeued"):
            status.metadata["requeued"] = True

    def begins_anew(self, status: JobStatus) -> bool:
        """Whether a status tells of another start than the last one that is known, in whatever state it is since."""
        start = (status.metadata or {}).get("start_time")
        return start is not None and self.started is not None and start - self.started > _LATER_S

    def _is_old_start(self, status: JobStatus) -> bool:
        """Whether a status only says that a job has begun, by the record of a start that is known already."""
        metadata = status.metadata or {}
        return (status.state is JobState.ACTIVE and metadata.get("sources", {}).get("start_time") == _START_RECORD
                and self.started is not None and metadata["start_time"] - self.started <= _LATER_S)


def waits_unheld(status: JobStatus) -> bool:
    """Whether a resource manager says of a job that it waits, and for nothing but its turn."""
    metadata = status.metadata or {}
    return (status.state is JobState.QUEUED and "native_state" in metadata and not metadata.get("phase")
            and metadata.get("waits") in (None, TURN))


def news_of(status: JobStatus) -> tuple[object, ...]:
    """What of a status is news when it changes: the state, whether the job was put back into the queue, what the
    resource manager does with it, and why it waits: that its turn has not come is not worth telling."""
    metadata = status.metadata or {}
    again = bool(metadata.get("requeued")) and not status.final
    waits = metadata.get("waits")
    waits = waits if again or status.state is JobState.QUEUED or waits == MISSING else None
    why = None if waits is None or waits == TURN else (waits, status.message)
    return JobState.QUEUED if again else status.state, again, metadata.get("phase"), why, metadata.get("renamed")


def _began_unknown_to_accounting(metadata: Mapping[str, Any]) -> bool:
    """Whether a job has recorded a start that accounting knows nothing of, nor of how long it had its nodes."""
    return 0 in metadata.get("others", {}).get("starts", {}).values()
