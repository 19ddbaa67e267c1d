"""How long something that failed is left alone before it is tried again, by whichever client is there then."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

__all__ = ["NONE", "Pause"]


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause before the next try. since: when the last one failed, seconds since the epoch; seconds: how long."""

    since: float
    seconds: float

    def seconds_left(self) -> float:
        """Seconds until it is over. It is over, too, where it has not begun by the clock: that was set back meanwhile,
        by hours perhaps, for which nobody wants to wait."""
        passed = time.time() - self.since
        return max(0.0, self.seconds - passed) if passed >= 0.0 else 0.0


NONE: Final = Pause(0.0, 0.0)        # nothing has failed yet
