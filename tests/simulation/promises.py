"""What users wish, held against what was done: what the judge looks at beside the documents.

A native job is put back by us as often as somebody has asked for that, at most; a job that is to be held is not
submitted without a hold; of a submission no more jobs are in flight than its cap allows; a group ends with its first
failure, and only then; and a list that was just answered shows jobs as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tests.simulation.kernel import EPOCH

if TYPE_CHECKING:
    from sssjob.run.history import Event
    from sssjob.run.standing import Submission
    from tests.simulation.cluster import Cluster, NativeJob
    from tests.simulation.world import World

__all__ = ["of_group", "of_submission", "of_wishes", "shown"]

_SHOWN = {"PENDING": ("Idle",), "RUNNING": ("Running",), "SUSPENDED": ("Suspended",)}
_STEADY_S = 12.0        # for which a job has been as it is: longer than an answer of the queue counts


def of_wishes(what: str, events: Sequence[Event], made: Sequence[tuple[Cluster, NativeJob]]) -> Iterator[str]:
    """Orders that nobody gave, or that were given twice, and holds that did not keep a job from being submitted."""
    for kind, order in (("rerun", "requeue"), ("hold", "hold"), ("release", "release")):
        wishes = sum(event.kind == kind for event in events)
        carried_out = [who for _, job in made for given, who in job.orders if given == order]
        if len(carried_out) > wishes * (1 if kind == "rerun" else 100):
            yield f"ordered: {what}: {order} by {carried_out} for {wishes} wishes"
    yield from _holds(what, events, made)
    held = False
    for event in events:
        answered = event.data["wish"] if event.kind == "answer" and event.data.get("refusal") == "" else None
        if event.kind == "held" or answered == "hold":
            held = True
        elif event.kind in ("release", "retry") or answered == "release":       # one that was asked for meanwhile
            held = False
        elif event.kind == "intent" and held and not event.data.get("hold"):
            yield f"held: {what} was submitted all the same"


def _holds(what: str, events: Sequence[Event], made: Sequence[tuple[Cluster, NativeJob]]) -> Iterator[str]:
    """Holds that have their answer, and that the manager in whose queue the job was has never been asked for."""
    native_id = None
    for event in events:
        if event.kind in ("retry", "intent"):
            native_id = None
        elif event.kind == "native":
            native_id = event.data["native_id"]
        elif event.kind == "answer" and event.data["wish"] == "hold" and event.data.get("refusal") == "":
            for cluster, job in made:
                until = event.time - EPOCH + cluster.astray + 1.0       # by the client's clock
                waits = not any(run.start < until for run in job.runs) and not (job.end is not None and job.end < until)
                if job.native_id == native_id and waits and all(order != "hold" for order, _ in job.orders):
                    yield f"hold: {what}: its manager was told of none"


def of_submission(number: int, cap: int | None, jobs: Sequence[NativeJob]) -> Iterator[str]:
    """More jobs in flight than the cap of a submission allows."""
    for job in jobs if cap is not None else ():
        beside = [one for one in jobs if one.submit <= job.submit and (one.end is None or one.end > job.submit)]
        if len(beside) > int(cap or 0):
            yield f"cap: @{number}: {[one.number for one in beside]} of {cap} are in flight at {job.submit:.1f}"


def of_group(submission: Submission, history: Sequence[Event]) -> Iterator[str]:
    """Ends of a group without a failure, and jobs that were submitted after one that nobody waits for."""
    jobs = submission.jobs
    failed = {job.number for job in jobs if job.plan.fail_fast and job.outcome is not None
              and job.outcome.word == "failed"}
    seemed = any(event.kind == "ended" and event.data["word"] == "failed" for event in history)  # told late
    for event in history:
        if event.kind == "group" and not (failed or seemed):
            yield f"group: @{_number(submission)} was ended without a failure"
    fatal = {number for number in failed if not any(
        number in need.on and need.condition != "OnSuccess" for job in jobs for need in job.plan.needs)}
    over = False
    for event in history:
        if event.kind == "ended" and event.job in fatal:
            over = True
        elif event.kind == "intent" and over and jobs[event.job].plan.fail_fast:
            yield f"group: {jobs[event.job].row.key} was submitted after another one of its group had failed"


def _number(submission: Submission) -> int:
    assert submission.entry is not None
    return submission.entry.number


def shown(world: World, on: int, since: float, submissions: Sequence[Submission]) -> Iterator[str]:
    """States of jobs that a client has just been told, and that are not those of their cluster. since: when it began
    to ask."""
    here = world.clusters[on]
    for job in (job for submission in submissions if submission.owned for job in submission.jobs):
        native = _native(here, job)
        if native is None or job.ended or job.cancel or native.changed > since - _STEADY_S:
            continue
        states = ("Hold",) if native.held and native.state == "PENDING" else _SHOWN.get(native.state, ())
        state = str(job.plan.job.value("State"))
        if states and state not in states:
            yield f"shown: {job.row.key} as {state}: {native.state}, held: {native.held}, at {world.kernel.now:.1f}"


def _native(cluster: Cluster, job: Any) -> NativeJob | None:
    """The only native job of a job, which its manager knows and lists."""
    tag = job.tags[0] if len(job.tags) == 1 else None
    natives = [one for one in cluster.jobs if one.tag is not None and one.tag == tag]
    if len(natives) != 1 or natives[0].gone or natives[0].over or job.seen[0].native_id != natives[0].native_id:
        return None
    return natives[0]
