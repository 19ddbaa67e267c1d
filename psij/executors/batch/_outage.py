"""Whether a resource manager answers; the beginning and the end of an outage are logged, once each."""

from __future__ import annotations

import logging
import time
from typing import Final

from psij.executors.batch._asking import reason

__all__ = ["Outage"]

_log = logging.getLogger("psij")
_HANGS_S: Final = 30.0      # a question that has no answer for so long is one without


class Outage:
    """Questions without an answer, one after another.

    errors: how many there are since the last answer; since: when the first of them was put (seconds since the epoch),
    once they are so many that it is an outage, else None.
    """

    def __init__(self) -> None:
        self.errors = 0
        self.since: float | None = None
        self._first = 0.0
        self._asked: float | None = None        # monotonic time of a question that is being answered

    def ask(self) -> None:
        """A question is put."""
        self._asked = time.monotonic()

    def silent_since(self) -> float | None:
        """``since``, or when a question was put that hangs: a command may take a minute to fail, and an outage two."""
        asked = self._asked
        hangs_s = 0.0 if asked is None else time.monotonic() - asked
        if self.since is not None or hangs_s < _HANGS_S:
            return self.since
        return self._first if self.errors else time.time() - hangs_s

    def report(self, name: str, threshold: int, error: Exception | None) -> None:
        """Take in how a question went.

        name: of the manager; threshold: how many errors are an outage; error: None after an answer.
        """
        threshold, self._asked = max(1, threshold), None
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
