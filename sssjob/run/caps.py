"""How many jobs may be in flight at once: submitted, and not ended.

A cap of one submission is said with it (``--max-queued``) and stays with it in the journal; caps of an executor and of
all that a user has are settings, the same for every client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sssjob.conversion.settings import Settings

__all__ = ["Caps", "caps_of"]


@dataclass(frozen=True, slots=True)
class Caps:
    """The most jobs in flight; None: as many as there are. of_executor: by name of the executor; of_each: of one that
    is not among these. of_all: on all executors together."""

    of_executor: Mapping[str, int] = field(default_factory=dict)
    of_each: int | None = None
    of_all: int | None = None

    def of(self, executor: str) -> int | None:
        """The most jobs of an executor in flight."""
        return self.of_executor.get(executor, self.of_each)


def caps_of(settings: Settings) -> Caps:
    """The caps that the settings state: ``max_queued``, of single executors too, and ``max_queued_total``."""
    caps = {name: settings.max_queued(name) for name in settings.executors}
    total: int | None = settings.get("max_queued_total").value
    return Caps({name: cap for name, cap in caps.items() if cap is not None}, settings.get("max_queued").value, total)
