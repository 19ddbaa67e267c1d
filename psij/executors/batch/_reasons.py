"""Why jobs wait, where the list of the queue does not say it: one more command for many of them, and rarely.

Of more jobs than one question takes those come first that have not been asked about for longest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from psij.executors.batch._asking import reason
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch._followed import Followed

_log = logging.getLogger("psij")
_WAITED_S: Final = 10.0         # a job that waits less is not asked about: most start before
_PAUSE_S: Final = 60.0          # between two questions
_MOST: Final = 200              # jobs in one question
_TRIES: Final = 3               # questions that may fail before none is put any more


class Reasons:
    """The questions of one watcher."""

    def __init__(self) -> None:
        self._due = 0.0         # monotonic time of the next one
        self._failed = 0
        self._asked: dict[str, None] = {}       # native ids of jobs that wait, those of the last question last

    def add(self, followed: Sequence[Followed], seen: dict[str, JobStatus | None], now: float) -> None:
        """Put into the statuses of jobs that wait why they do. seen: the answer of the queue, None for "as before".
        now: seconds since the epoch. What goes wrong changes nothing."""
        if self._failed >= _TRIES or time.monotonic() < self._due:
            return
        waiting = {item.native_id: status for item in followed
                   if (status := _waits(item, seen, now)) is not None}
        before = {each: None for each in self._asked if each in waiting}
        ids = [*(each for each in waiting if each not in before), *before][:_MOST]
        command = followed[0].executor._reasons_command(ids) if ids else None
        if command is None:
            return
        self._due = time.monotonic() + _PAUSE_S
        self._asked = {each: None for each in before if each not in ids} | dict.fromkeys(ids)
        executor = followed[0].executor
        try:
            answers = executor._reasons(*executor._ask(command))
            self._failed = 0
        except Exception as e:
            self._failed += 1
            _log.info("%s does not say why jobs wait: %s", executor.name, "; ".join(reason(e).splitlines()))
            return
        for native_id in ids:
            answer = answers.get(native_id, answers.get(native_id.partition(".")[0]))     # of a task, that of its array
            if answer is not None:
                (kind, words), last = answer, waiting[native_id]
                facts = {**(last.metadata or {}), **({"waits": kind} if kind is not None else {})}
                seen[native_id] = JobStatus(last.state, last.time, words, metadata=facts)


def _waits(item: Followed, seen: dict[str, JobStatus | None], now: float) -> JobStatus | None:
    """What the queue says of a job that has waited for a while; None of any other, and of one that is held."""
    status = seen.get(item.native_id)
    if status is None and item.native_id in seen:
        status = item.queue
    if status is None or status.state is not JobState.QUEUED:
        return None
    facts = status.metadata or {}
    waited = now - facts.get("submit_time", now - _WAITED_S)
    return None if waited < _WAITED_S or facts.get("phase") == "HELD" else status
