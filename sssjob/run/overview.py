"""Where everything stands: a line for each document of which a job has not ended, and its jobs.

All of it follows from the list of jobs; nobody is asked here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sssjob.run.journal import Journal
from sssjob.run.listing import Filter, Listed, listed

__all__ = ["Overview", "overview"]


@dataclass(frozen=True, slots=True)
class Overview:
    """A submission, or those of the parts of a group that went to several sites. executors: where its jobs are. queued:
    jobs that wait, held ones too; failed: with those that were cancelled; left: were left out.

    why: what most of those that wait are said to wait for. remaining: seconds until the last job ends, as long as the
    others took and as many at a time as now; None where nothing is known to guess from.
    """

    numbers: Sequence[int]
    name: str
    executors: Sequence[str]
    jobs: Sequence[Listed]
    queued: int
    running: int
    done: int
    failed: int
    left: int
    why: str
    remaining: float | None


def overview(journal: Journal, now: float) -> list[Overview]:
    """All documents of which a job has not ended, the oldest first. now: seconds since the epoch."""
    documents = dict.fromkeys(tuple(journal.beside(number)) for number in journal.unfinished())
    return [_of(journal, numbers, now) for numbers in documents]


def _of(journal: Journal, numbers: Sequence[int], now: float) -> Overview:
    jobs = [job for number in numbers for job in listed(journal, Filter(ended=True, group=f"@{number}"))]
    words = Counter(_word(job) for job in jobs)
    reasons = Counter(job.row.message for job in jobs if _word(job) == "queued" and job.row.message)
    name = jobs[0].row.array or jobs[0].row.id or jobs[0].row.label
    group = journal.ask("SELECT name FROM submissions WHERE number = :number", {"number": numbers[0]})
    executors = list(dict.fromkeys(job.row.executor for job in jobs))
    return Overview(numbers, str(group[0][0] or name), executors, jobs, words["queued"], words["running"],
                    words["done"], words["failed"], words["left"], reasons.most_common(1)[0][0] if reasons else "",
                    _remaining(jobs, now))


def _word(job: Listed) -> str:
    if job.row.outcome is None:
        return "running" if job.row.state in ("Running", "Suspended") else "queued"
    return {"done": "done", "kept": "done", "skipped": "left"}.get(job.row.outcome, "failed")


def _remaining(jobs: Sequence[Listed], now: float) -> float | None:
    """The mean time of the jobs that have ended, for all that is left of the others, shared by those that run; None
    where all others already run for longer."""
    took = [time for job in jobs if job.row.outcome is not None and (time := job.elapsed(now)) is not None]
    open_ones = [job for job in jobs if job.row.outcome is None]
    side_by_side = sum(_word(job) == "running" for job in open_ones)
    if not took or not side_by_side:
        return None
    mean = sum(took) / len(took)
    return sum(max(mean - (job.elapsed(now) or 0.0), 0.0) for job in open_ones) / side_by_side or None
