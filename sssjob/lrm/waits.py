"""Why a job waits, in words that no manager owns. Each manager's table of reasons stands in its module.

A kind is what a person would do about it: wait, release the job, or submit another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["BEGIN", "DEPENDENCY", "HELD", "LIMIT", "MISSING", "NEVER", "TURN", "UNAVAILABLE", "first_kind"]

TURN: Final = "turn"                    # others come first, or what it needs is in use
HELD: Final = "held"                    # somebody has to release it
DEPENDENCY: Final = "dependency"        # other jobs have to end
BEGIN: Final = "begin"                  # its time, or that of its reservation, has not come
LIMIT: Final = "limit"                  # the user, the account or the queue has as much as it may have just now
UNAVAILABLE: Final = "unavailable"      # nodes, queues or licences that it needs are down or closed
NEVER: Final = "never"                  # it cannot start as it is, however long it waits
MISSING: Final = "missing"              # its manager has it neither in its queue nor in its accounting



def first_kind(text: str, patterns: Iterable[tuple[str, re.Pattern[str]]]) -> str | None:
    """The kind of the first pattern that occurs in a text; None where none does."""
    return next((kind for kind, pattern in patterns if pattern.search(text)), None)
