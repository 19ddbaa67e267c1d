"""Writing what the loop does and learns into the journal, and removing the files of jobs whose ends are in there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import psij
from sssjob.errors import AccessError
from sssjob.run.abilities import Tidies
from sssjob.run.standing import Running, Submission
from sssjob.run.storage import has_no_room

if TYPE_CHECKING:
    from sssjob.run.engine import Engine

__all__ = ["WRITE_S", "Recording"]

WRITE_S: Final = 0.1          # between two writings while jobs are submitted


class Recording:
    """Keeps the journal up with an engine. Without a journal there is nothing to do."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._unclean: list[Running] = []                       # ended, and perhaps not in the journal yet
        self._aside: list[tuple[Running, psij.Job]] = []        # of attempts that are over; the same
        self._written = time.monotonic()

    def has_ended(self, job: Running) -> None:
        """Have the files of a job removed once its end is in the journal."""
        if job.of.entry is not None:
            self._unclean.append(job)

    def write_soon(self) -> None:
        """Put what was noted into the journal within a moment, and before anybody waits or leaves: many submissions
        share one disk access. What a client that is killed meanwhile has not written, the next one finds by its tags.
        """
        if self.is_due:
            self.write()

    @property
    def is_due(self) -> bool:
        """Whether the last writing was a moment ago."""
        return time.monotonic() >= self._written + WRITE_S

    def write(self, everything: bool = False) -> None:
        """Put what was noted into the journal. What cannot be written is kept for the next time and told once."""
        self._written = time.monotonic()
        mine = [(submission, submission.entry) for submission in self.engine.submissions
                if submission.entry is not None and (submission.owned or everything)]
        if mine:
            mine[0][1].journal.flush_together([(entry, self._closes(submission)) for submission, entry in mine])
        for submission, entry in mine:
            try:
                entry.flush(ended=self._closes(submission))
                self.engine.promised.written(submission)
                self.engine.on_end.written(submission)
                self._clean(submission)
                if entry.journal.reserve_spent:
                    self._complain(f"{entry.journal.path}: the disk is full; what had been kept free for that is used")
            except AccessError as error:
                self._complain(str(error))
                self.engine.on_end.written(submission)
                # files that a job has left are not kept from its user by that
                self.engine.promised.written(submission)

    def _closes(self, submission: Submission) -> bool:
        """Whether nothing is to be done any more for a submission, which its entry does not say yet."""
        entry = submission.entry
        return submission.owned and entry is not None and entry.ended is None and (
            not self.engine.open[id(submission)] and submission.kept)

    def look_for_room(self) -> None:
        """Tell where there is no room for what other clients learn of their jobs, for which we wait."""
        for submission in self.engine.submissions:
            entry = submission.entry
            if entry is not None and not (submission.owned or submission.kept) and has_no_room(entry.journal.path):
                self._complain(f"{entry.journal.path}: the disk is full: what other clients learn of jobs is not "
                               "written before there is room")

    def _complain(self, text: str) -> None:
        """Tell what is wrong with the journal, once and at once."""
        if text not in self.engine.told:
            self.engine.told.add(text)
            self.engine.progress.warn(text)
            self.engine.findings.add("SSS602", "journal", text, severity="warning")

    def _clean(self, submission: Submission) -> None:
        """Remove files of jobs whose ends are in the journal now."""
        if not (self._unclean or self._aside):
            return
        over = [followed for job, followed in self._aside if job.of is submission]
        self._aside = [item for item in self._aside if item[0].of is not submission]
        ended = [job for job in self._unclean if job.of is submission]
        self._unclean = [job for job in self._unclean if job.of is not submission]
        over += [followed_job for job in ended for part in range(len(job.parts))
                 if (followed_job := job.followed(part)) is not None]
        backend = submission.executor() if over else None
        if isinstance(backend, Tidies) and backend.files_removable:
            for followed in over:
                backend.remove_files(followed)

    def put_aside(self, job: Running) -> None:
        """Have the files of an attempt removed that is over, once that is in the journal."""
        if job.of.entry is not None:
            followed = (job.followed(part) for part in range(len(job.parts)))
            self._aside += [(job, followed_job) for followed_job in followed if followed_job is not None]
