"""How often a resource manager may be asked: a ceiling on the questions of one minute, whatever happens.

Questions that come after a while of quiet are asked at once, so that the end of a job is told at once; where jobs keep
ending their ends share questions. In no minute there are more of them than the ceiling says.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Final

_AT_ONCE: Final = 0.3       # of the questions of a minute, those that may follow one another without a pause


class Budget:
    """Questions that may be asked. Not locked: two threads that spend at once may lose one of a few."""

    def __init__(self) -> None:
        self._spent = 0.0           # above what has been regained since
        self._when = time.monotonic()

    def wait_s(self, a_minute: float, kept: int = 0) -> float:
        """Seconds until another question may be asked. a_minute: how many there may be in one; kept: of those that may
        follow one another without a pause, how many are left for others."""
        regained_a_second = a_minute * (1 - _AT_ONCE) / 60
        now = time.monotonic()
        self._spent = max(self._spent - (now - self._when) * regained_a_second, 0.0)
        self._when = now
        over = self._spent + 1 - max(a_minute * _AT_ONCE - kept, 1.0)
        return over / regained_a_second if over > 0 else 0.0

    def forgive(self) -> None:
        """What was spent while nobody counted is not owed."""
        self._spent = 0.0

    def spend(self) -> None:
        """A question is asked."""
        self._spent += 1


#: The budget of the thread that asks; None where questions are not counted.
spending: ContextVar[Budget | None] = ContextVar("spending", default=None)
#: Monotonic time by which the thread that asks wants its answers; None where each command has all of its time.
answer_by: ContextVar[float | None] = ContextVar("answer_by", default=None)
