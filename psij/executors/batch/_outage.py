"""Whether a resource manager answers; the beginning and the end of an outage are logged, once each."""

from __future__ import annotations

import logging
import time

from psij.executors.batch._asking import reason

__all__ = ["Outage"]

_log = logging.getLogger("psij")


class Outage:
    """Questions without an answer, one after another.

    errors: how many there are since the last answer; since: when the first of them was put (seconds since the epoch),
    once they are so many that it is an outage, else None.
    """

    def __init__(self) -> None:
        self.errors = 0
        self.since: float | None = None
        self._first = 0.0

    def report(self, name: str, threshold: int, error: Exception | None) -> None:
        """Take in how a question went.

        name: of the manager; threshold: how many errors are an outage; error: None after an answer.
        """
        threshold = max(1, threshold)
        if error is None:
            if self.errors >= threshold:
                _log.warning("%s answers again", name)
            self.errors, self.since = 0, None
            return
        self._first = self._first if self.errors else time.time()
        self.errors += 1
        if self.errors >= threshold:
            self.since = self._first
        if self.errors == threshold:
            _log.warning("%s does not answer; jobs keep their last known states: %s", name,
                         "; ".join(reason(error).splitlines()))
