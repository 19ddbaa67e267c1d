"""How jobs ended: what is known of the end of each, and the exit code that a client gives for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from sssjob.document.model import Document, Job
from sssjob.findings import Findings

if TYPE_CHECKING:
    from sssjob.run.standing import Running

__all__ = ["MAY_RUN", "JobOutcome", "Outcome", "Word", "ended_record", "exit_code"]

_NAMED: Final = 5              # jobs that may still run, by name
#: The message of a job that was given up when everything was cancelled.
MAY_RUN: Final = "lost: it did not end when it was cancelled; it may still run"

Word = Literal["waiting", "running", "done", "failed", "canceled", "skipped", "kept"]
Origin = Literal["job", "sssjob"]


@dataclass(slots=True)
class JobOutcome:
    """How one job ended. word: done, failed, canceled, skipped (never started) or kept (had succeeded before)."""

    job: Job
    label: str
    word: Word
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    origin: Origin = "job"

    @property
    def code(self) -> int:
        """As an exit code of a process: its own, 128 + n for signal n, 5 for an end with neither (decisions 51)."""
        if self.word in ("done", "kept", "skipped"):
            return self.exit_code or 0
        if self.signal is not None:
            return 128 + self.signal
        return self.exit_code or 5

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        record = {"exit_code": self.exit_code, "signal": self.signal, "message": self.message or None,
                  "id": self.job.value("Id"), "name": self.job.value("Name"), "start_time": self.job.value("StartTime"),
                  "end_time": self.job.value("EndTime")}
        return {"kind": "job", "label": self.label, "outcome": self.word} | {
            k: v for k, v in record.items() if v is not None}


@dataclass(slots=True)
class Outcome:
    """The document with its results, how each job ended, and the exit code with whose it is (decisions 51)."""

    document: Document
    jobs: list[JobOutcome]
    exit_code: int
    origin: Origin
    findings: Findings
    stopped: str | None = None      # why everything was cancelled: timeout, interrupted ...

    @property
    def what_ended(self) -> str:
        """Whether what ran has ended when everything was cancelled, in words."""
        running = [job.label for job in self.jobs if job.message == MAY_RUN]
        if not running:
            return "what ran was cancelled"
        named = ", ".join(running[:_NAMED]) + (f" and {len(running) - _NAMED} more" if len(running) > _NAMED else "")
        return f"what ran was to be cancelled, and may still run: {named}"

    @property
    def results(self) -> list[dict[str, Any]]:
        """One JSON object a job, and ``{"kind": "result", ...}`` last."""
        last = {"kind": "result", "origin": self.origin, "exit_code": self.exit_code}
        return [*(job.record() for job in self.jobs), last]


def ended_record(outcome: JobOutcome) -> dict[str, Any]:
    """The data of an event ``ended``."""
    return {"word": outcome.word, "exit_code": outcome.exit_code, "signal": outcome.signal,
            "message": outcome.message, "origin": outcome.origin}


def exit_code(jobs: Sequence[Running]) -> tuple[int, Origin]:
    """The exit code for these jobs: of the first that failed and that no other one answered (decisions 51). Those that
    were ended because of it do not count."""
    for job in jobs:
        if job.word in ("failed", "canceled") and job.why is None and not _answered(job):
            assert job.outcome is not None
            return job.outcome.code, job.outcome.origin
    return 0, "job"


def _answered(job: Running) -> bool:
    return any(other.word == "done" and any(job.number in need.on and need.condition != "OnSuccess"
                                            for need in other.plan.needs) for other in job.of.jobs)
