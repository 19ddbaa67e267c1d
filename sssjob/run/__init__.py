"""Runs documents: ``make_plan`` says which jobs would be started, ``run`` starts and follows them and completes the
document with facts."""

from sssjob.run.outcomes import JobOutcome, Outcome
from sssjob.run.plan import Need, Part, Plan, PlannedJob, make_plan
from sssjob.run.progress import Progress
from sssjob.run.running import run

__all__ = ["JobOutcome", "Need", "Outcome", "Part", "Plan", "PlannedJob", "Progress", "make_plan", "run"]
