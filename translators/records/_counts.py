"""What has become of the records of one input."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Counts"]


@dataclass(slots=True)
class Counts:
    """Records read, given (part of a Job), rejected; Jobs made of those given; rejected records by reason."""

    read: int = 0
    given: int = 0
    rejected: int = 0
    jobs: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Add those of another part of the input."""
        self.read += other.read
        self.given += other.given
        self.rejected += other.rejected
        self.jobs += other.jobs
        self.reasons.update(other.reasons)

    def record(self) -> dict[str, int | dict[str, int]]:
        """The counts as a JSON object."""
        return {"read": self.read, "given": self.given, "rejected": self.rejected, "jobs": self.jobs,
                "reasons": dict(sorted(self.reasons.items()))}

    def __str__(self) -> str:
        why = ", ".join(f"{reason} {n}" for reason, n in sorted(self.reasons.items()))
        return (f"{self.read} records read: {self.given} given as {self.jobs} jobs, {self.rejected} rejected"
                + (f" ({why})" if why else ""))
