"""What goes wrong between a job manager and an execution service.

    SSSJobError
    └── ProtocolError (ValueError)      a peer that does not keep to the protocol
        ├── ExecLimitError              it asks for more than a limit allows; ``limit`` names it
        └── JobspecError                a jobspec or R that cannot be run
"""

from __future__ import annotations

from dataclasses import dataclass

from sssjob.errors import SSSJobError

__all__ = ["EXEC_LIMITS", "ExecLimitError", "ExecLimits", "JobspecError", "ProtocolError"]


class ProtocolError(SSSJobError, ValueError):
    """A message that is not one, or not now."""


class JobspecError(ProtocolError):
    """A jobspec or R that is wrong or asks for what cannot be run."""


class ExecLimitError(ProtocolError):
    """A peer asks for more than a limit allows; ``limit`` is the name of a field of ``ExecLimits``."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message, limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.args[0]} (limit {self.limit})"


@dataclass(frozen=True, slots=True)
class ExecLimits:
    """Sizes in bytes (``*_bytes``), times in seconds (``*_seconds``), all others are counts."""

    line_bytes: int = 16 << 20          # one message
    frames: int = 1_024                 # of one message of a broker; a route has one for each hop
    pending_bytes: int = 64 << 20       # written, but not read by the other side yet
    jobs: int = 100_000                 # started and not released
    ranks: int = 100_000                # of one job
    tasks: int = 1_000_000              # of one job
    hello_seconds: float = 60.0         # for a job manager to answer hello, and a broker what comes before


EXEC_LIMITS = ExecLimits()
