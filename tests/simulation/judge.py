"""What documents say at the end of a simulated world, held against what happened in it.

No fact without a source: each that stands in a document is the truth, and what is not known is left out. A job ran once
or not at all, and again only where its Retry says so; nobody's job was cancelled by us but ours, and ours only where
somebody had asked for it. What a job has left is where it was promised, brought there by one client. A job is charged
for what it held, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from psij import JobState
from sssjob.accounting import RateSet, Uncharged, charge, read_rates
from sssjob.run.client import Client
from sssjob.run.rows import AGAIN
from sssjob.run.submitting import RETRIES
from tests.simulation.cluster import Cluster, NativeJob
from tests.simulation.kernel import EPOCH
from tests.simulation.plans import AWAY, STAGED
from tests.simulation.promises import of_group, of_submission, of_wishes

if TYPE_CHECKING:
    from sssjob.run.history import Event
    from sssjob.run.journal import Journal
    from tests.simulation.world import World

__all__ = ["complaints"]

_TOLERANCE_S = 2
_LONG_S = 3600.0        # longer than any world
_LATE_S = 25            # that a request may be under way
_SOON_S = 2.0           # in which a client writes down what it has done
_FULL = ("QOSMax", "jobs are allowed per user")
_REASONS = {"NODE_FAIL": "node-failure", "PREEMPTED": "preempted", "TIMEOUT": "timeout", "OUT_OF_MEMORY": "memory"}
_Made = list[tuple[Cluster, NativeJob]]


def complaints(world: World, journal: Journal) -> Iterator[str]:
    """What is not as promised."""
    client = Client(journal)
    natives: dict[str, _Made] = {}
    for cluster in world.clusters:
        for job in cluster.jobs:
            if job.tag is not None:
                natives.setdefault(job.tag, []).append((cluster, job))
            elif [who for who in job.canceled_by if who != "dependency"]:
                yield f"foreign: {cluster.settings.name} {job.number} of {job.user} was cancelled by {job.canceled_by}"
    tags: set[str] = set()
    numbers = list(dict.fromkeys(row.submission for row in journal.rows()))
    entries = [journal.entry(number) for number in numbers]
    documents = [entry.document for entry in entries if not str(entry.request).startswith(AGAIN)]
    if len(set(documents)) < len(documents):
        yield f"twice: {len(documents)} submissions of {len(set(documents))} documents"
    pruned = [job for number, jobs in world.known.items() if number not in numbers for job in jobs]
    alike = _alike(pruned, journal)
    for running, events in pruned:
        tags |= {event.data["tag"] for event in events if event.kind == "intent"}
        yield from _of_job(running, events, natives, settled=False)
    for number in numbers:
        submission = client.standing(journal.entry(number))
        history = journal.entry(number).events()
        for running in submission.jobs:
            events = [event for event in history if event.job == running.number]
            own_tags = [event.data["tag"] for event in events if event.kind == "intent"]
            tags |= set(own_tags)
            yield from _of_job(running, events, natives)
            yield from _left_behind(world, running, natives, alike.get(str(running.row.id), own_tags))
        yield from _depending(submission.jobs, history, natives)
        yield from of_group(submission, history)
        yield from of_submission(number, submission.cap, [
            job for event in history if event.kind == "intent" for _, job in natives.get(event.data["tag"], ())])
    for tag in natives.keys() - tags:
        yield f"nobody's: native job {natives[tag][0][1].number}"
    yield from _stagings(world)


def _alike(pruned: Sequence[tuple[Any, list[Event]]], journal: Journal) -> dict[str, list[str]]:
    """The tags of all jobs of one Id: a job that is run anew leaves its files where the first one did."""
    tags: dict[str, list[str]] = {}
    rows = {(row.submission, row.job): str(row.id) for row in journal.rows()}
    histories = [(running.row.id, event) for running, events in pruned for event in events]
    histories += [(rows[number, event.job], event) for number in {number for number, _ in rows}
                  for event in journal.entry(number).events()]
    for name, event in histories:
        if event.kind == "intent":
            tags.setdefault(str(name), []).append(event.data["tag"])
    return tags


def _depending(jobs: Sequence[Any], history: Sequence[Event], natives: dict[str, _Made]) -> Iterator[str]:
    """Jobs that ran although the one that they wait for had not ended as it should, by what happened to it. A manager
    that waits itself (``after``) lets them run at once when it has forgotten that one: nobody is asked."""
    lives: dict[int, list[NativeJob]] = {}
    for event in history:
        if event.kind == "intent":
            lives.setdefault(event.job, []).extend(job for _, job in natives.get(event.data["tag"], ()))
    for running in jobs:
        if not any(job.runs for job in lives.get(running.number, ())):
            continue
        for need in running.plan.needs:
            others = [job for number in need.on for job in lives.get(number, ())]
            if any(job.gone for job in others) and any(job.after for job in lives[running.number] if job.runs):
                continue
            succeeded = [job.state == "COMPLETED" for job in others]
            may = {"OnSuccess": any(succeeded), "OnFailure": not succeeded or not all(succeeded)}
            if not may.get(need.condition, True):
                yield f"depended: {running.row.key} ran, {need.text}: {[_summary(job) for job in others]}"


def _of_job(running: Any, events: list[Event], natives: dict[str, _Made], settled: bool = True) -> Iterator[str]:
    """Of one job. settled: accounting had told all when its document was read."""
    row, attempts = running.row, _attempts(events)
    what = f"{row.key} ({row.native_id}, {row.outcome}, {row.exit_code})"
    made = [item for tags in attempts for tag in tags for item in natives.get(tag, ())]
    message = str(running.plan.job.value("StatusMessage") or "")
    tried = [tags for tags in attempts if any(tag in natives for tag in tags)] if "not tried again" in message else []
    last = [item for tag in (tried or attempts)[-1] for item in natives.get(tag, ())]
    jobs = [job for _, job in made]
    for tags in attempts:
        several = [job for tag in tags for _, job in natives.get(tag, ()) if _is_more_than_nothing(job)]
        if len(several) > 1:
            yield f"doubled: {what}: {[job.number for job in several]}"
    wished = any(event.kind in ("cancel", "group") for event in events)
    yield from of_wishes(what, events, made)
    yield from _retries(what, running, attempts, natives, wished)
    if not wished and row.outcome != "skipped" and any(
            who != "dependency" for job in jobs for who in job.canceled_by):
        yield f"unasked: {what} was cancelled by {[job.canceled_by for job in jobs]}"
    yield from _order(what, events)
    if row.outcome is None:
        yield f"lost: {what} has no end"
        return
    truths = _truths([job for _, job in last], events, wished, message)
    if not all(cluster.settings.accounting for cluster, _ in last):
        truths |= {(word, None) for word, _ in truths}          # the queue tells the state alone
    if (row.outcome, row.exit_code) not in truths:
        yield f"not true: {what}: {[_summary(job) for job in jobs]}, {message}"
    yield from _given_up(what, message, events)
    yield from _facts(what, running, made, events)
    if settled:
        yield from _left_out(what, running, last)
    yield from _charge(what, running, made)


def _is_more_than_nothing(job: NativeJob) -> bool:
    return not job.gone and bool(job.runs or not job.canceled_by)


def _attempts(events: list[Event]) -> list[list[str]]:
    """The tags of each attempt."""
    attempts: list[list[str]] = [[]]
    for event in events:
        if event.kind == "retry":
            attempts.append([])
        elif event.kind == "intent":
            attempts[-1].append(event.data["tag"])
    return attempts


def _retries(what: str, running: Any, attempts: list[list[str]], natives: dict[str, _Made], wished: bool,
             ) -> Iterator[str]:
    """Attempts that the job's Retry does not allow, or that it promises and that were not made."""
    retry = running.plan.retry
    used: list[str] = []
    for place, tags in enumerate(attempts):
        jobs = [job for tag in tags for _, job in natives.get(tag, ())]
        is_last = place == len(attempts) - 1
        clauses = {clause.name for job in jobs if (clause := _clause(retry, job, used)) is not None}
        if not is_last and not clauses:
            yield f"tried again: {what}: attempt {place + 1} was {[_summary(job) for job in jobs]}"
        if is_last and clauses and jobs and not wished and running.row.outcome == "failed" and _was_told(running):
            yield f"not tried again: {what}: {[_summary(job) for job in jobs]}, {clauses}"
        used += sorted(clauses)[:1]


def _clause(retry: Any, job: NativeJob, used: Sequence[str]) -> Any:
    """The clause of a Retry after which another attempt follows this end."""
    if retry is None or not job.over or job.canceled_by:
        return None
    if job.state in _REASONS:
        return retry.next_for(_REASONS[job.state], None, list(used))
    if job.state != "FAILED":
        return None
    return retry.next_for("signal", None, list(used)) if job.signal else retry.next_for(None, job.exit, list(used))


def _was_told(running: Any) -> bool:
    """Whether it is sure how the job ended."""
    return running.row.exit_code is not None and "does not tell" not in str(
        running.plan.job.value("StatusMessage") or "")


def _order(what: str, events: list[Event]) -> Iterator[str]:
    """Ends that were taken back, and files that were staged after that was done."""
    over = staged = False
    for event in events:
        if event.kind in ("retry", "intent", "unsent"):
            over = staged = False
        elif event.kind == "status":
            if over:
                yield f"order: {what}: {event.data['state']} after an end"
            over = JobState[event.data["state"]].final
        elif event.kind == "staging":
            if staged:
                yield f"order: {what}: {event.data['step']} after its files were staged"
            staged = event.data["step"] == "done"


def _given_up(what: str, message: str, events: list[Event]) -> Iterator[str]:
    """Files that were given up although the copy failed for a reason that passes, before all tries were made."""
    tries = 0
    for event in events:
        if event.kind == "retry":
            tries = 0
        elif event.kind == "staging" and event.data["step"] == "failed":
            tries += 1
    if message.startswith("stage-out: ") and AWAY in message and tries < RETRIES:
        yield f"given up: {what}: after {tries} of {RETRIES} further tries: {message}"


def _truths(jobs: list[NativeJob], events: list[Event], wished: bool, message: str) -> set[tuple[str, int | None]]:
    """Ends that are true of a job."""
    if not jobs:
        tried = any(event.kind == "intent" for event in events)
        refused = tried and not any(word in message for word in _FULL)      # a full queue is waited for
        refused |= "the disk is full" in message        # as it was to be written that it is submitted
        return {("skipped", None), *([("canceled", None)] if wished else []), *([("failed", None)] if refused else [])}
    ends: set[tuple[str, int | None]] = set()
    for job in jobs:
        if not job.runs:
            ends.add(("skipped", None))
        if job.gone:
            ends |= {("failed", None), *([("canceled", None)] if wished else [])}
            if job.state not in ("LOST", "COMPLETED", "FAILED"):
                continue
        if job.canceled_by or job.state == "CANCELLED":
            ends.add(("canceled", None))
        elif job.state in _REASONS or job.signal:
            ends |= {("failed", None), *([("canceled", None)] if wished else [])}
        elif job.state in ("COMPLETED", "FAILED"):
            ends.add(("failed" if job.exit else "done", job.exit))
            if job.exit >= 128 and "does not tell them apart" in message:
                ends.add(("failed", job.exit - 128))
            if message.startswith("stage-out: "):
                ends.add(("failed", job.exit))
            if wished and any(event.kind == "staging" for event in events):
                ends.add(("canceled", job.exit))        # while its files were fetched
    return ends


def _vanished(row: Any, made: _Made) -> bool:
    """Whether its manager forgot a job before a cancel of it, of which nobody can say more than that."""
    return row.outcome == "canceled" and all(job.gone for _, job in made)


# --- facts -----------------------------------------------------------------------------------------------------------

def _facts(what: str, running: Any, made: _Made, events: list[Event]) -> Iterator[str]:
    """Times and amounts of the document that are none of our jobs'."""
    job, row = running.plan.job, running.row
    lives = [(cluster, native, run) for cluster, native in made for run in native.runs]
    starts = [_shown(cluster, run.start) for cluster, _, run in lives]
    ends = [_shown(cluster, run.end) for cluster, _, run in lives if run.end is not None]
    ends += [_shown(cluster, native.end) for cluster, native in made if native.end is not None]
    submits = [_shown(cluster, native.submit) for cluster, native in made]
    submits += [before for at in submits for before in range(at - _LATE_S, at)]     # it was under way
    for name, truth in (("StartTime", starts), ("EndTime", ends), ("SubmitTime", submits)):
        value = job.value(name)
        if name == "EndTime" and (not lives or _vanished(row, made)):
            continue            # the end of a job that never ran, or that nobody knew any more, is when it was given up
        if value is not None and not any(abs(int(value) - one) <= _slack(made) for one in truth):
            yield f"fact: {what}: {name} {value} is none of {truth}"
    count = job.value("StartCount")
    if count is not None and int(count) > len(lives):
        yield f"fact: {what}: StartCount {count} of {len(lives)}"
    wall = _delivered(job, "Duration")
    if wall is not None and not _vanished(row, made):
        low, high = _held(made, row)
        if not low <= float(wall) <= high:
            yield f"fact: {what}: Duration {wall} of {low:.1f} to {high:.1f}"
    machine = _delivered(job, "Machine")
    if machine is not None and made and machine not in {cluster.settings.name for cluster, _ in made}:
        yield f"fact: {what}: Machine {machine}"


def _left_out(what: str, running: Any, last: _Made) -> Iterator[str]:
    """What everybody would have told and the document does not say: times of a job that ended in itself, and what
    accounting knows where its records bear the tag, or nobody else ever had the number."""
    job, row = running.plan.job, running.row
    if row.exit_code is None or row.outcome not in ("done", "failed") or len(last) != 1:
        return
    cluster, native = last[0]
    if native.gone or native.state not in ("COMPLETED", "FAILED"):
        return
    wanted = ["StartTime", "EndTime"]
    is_alone = all(one.number != native.number or one.script == native.script for one in cluster.jobs)
    if (cluster.executor == "slurm" or is_alone) and _tells_all(cluster):
        wanted += ["SubmitTime", "CpuDuration"]
    missing = [name for name in wanted if job.value(name) is None]
    if missing:
        yield f"left out: {what}: {missing}"


def _held(made: _Made, row: Any) -> tuple[float, float]:
    """For how many seconds a job has held its processor: at least and at most, as far as anybody could know.

    What a manager has forgotten counts as far as it was told. The end of a job that was cancelled while its accounting
    was silent is by our clock, its start by another. For how long a job was suspended accounting alone tells.
    """
    lives = [(job, run) for _, job in made for run in job.runs]
    spent = sum(cluster.has_counted(run) for cluster, job in made for run in job.runs)
    error = _TOLERANCE_S * max(len(lives), 1) + (_slack(made) if row.outcome == "canceled" else 0)
    sure = len(lives) == len(made) and all(len(job.runs) == 1 and not job.gone for _, job in made) and (
        len(made) == 1 or row.exit_code is not None)
    untold = sum(run.paused for cluster, job in made for run in job.runs if not _tells_all(cluster))
    return (spent - error if sure else 0.0), spent + untold + error


def _tells_all(cluster: Cluster) -> bool:
    """Whether the accounting of a cluster knows all jobs to the end of the world."""
    return cluster.settings.accounting and cluster.settings.purge > _LONG_S


def _slack(made: _Made) -> float:
    """Our clock, the node's and the controller's may differ, and each is a source."""
    return _TOLERANCE_S + max((abs(cluster.settings.clock) + cluster.astray for cluster, _ in made), default=0.0)


def _delivered(job: Any, name: str) -> Any:
    return None if job.delivered is None else job.delivered.value(name)


def _shown(cluster: Cluster, at: float) -> int:
    return math.floor(EPOCH + at + cluster.settings.clock)


def _summary(job: NativeJob) -> dict[str, Any]:
    return {"id": job.number, "state": job.state, "runs": len(job.runs), "exit": job.exit, "gone": job.gone,
            "by": job.canceled_by}


# --- charges ---------------------------------------------------------------------------------------------------------

@cache
def _rates() -> RateSet:
    """A unit for each second of a processor."""
    return read_rates('name = "simulation"\nversion = "1"\nprecision = 0\n'
                      '[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\nper = "second"\n')


def _charge(what: str, running: Any, made: _Made) -> Iterator[str]:
    """A charge for what was not held; none for what is known to have been."""
    job, row = running.plan.job, running.row
    charged = charge(job, _rates())
    if isinstance(charged, Uncharged):
        if row.outcome == "done" and _delivered(job, "Duration") and _delivered(job, "Processors"):
            yield f"uncharged: {what}: {charged.reason} {charged.detail}"
        return
    low, high = _held(made, row)
    if not low <= float(charged.amount) <= high and not _vanished(row, made):
        yield f"charge: {what}: {charged.amount} for {low:.1f} to {high:.1f} s"


# --- files -----------------------------------------------------------------------------------------------------------

def _left_behind(world: World, running: Any, natives: dict[str, _Made], own_tags: Sequence[str]) -> Iterator[str]:
    """Files that a job has left and that are not where they were promised to be."""
    row, job = running.row, running.plan.job
    if row.id is None or row.outcome not in ("done", "failed") or row.exit_code is None:
        return
    texts = [p.get("name") for p in job.all("Extension") if p.get("type") == "PSIJ"]
    message = str(job.value("StatusMessage") or "")
    if "StageOut" not in texts or message.startswith("stage-out: ") or any(
            words in message for words in ("; stage_out: ", "while files were staged out")):
        return
    ran = {tag for tag in own_tags for _, native in natives.get(tag, ()) if native.state in ("COMPLETED", "FAILED")
           and not native.signal}
    back = world.folder / "back" / row.id
    brought = back.read_text().strip() if back.exists() else None
    if ran and brought not in ran:
        yield f"files: {row.key} has left what {brought} left"
    if ran and "Cleanup" in texts and (world.folder / row.id / STAGED).exists():
        yield f"files: {row.key} was not cleaned up"


def _stagings(world: World) -> Iterator[str]:
    """Files that two clients have staged at once, or one after the other had done it and written so."""
    by_mark: dict[str, list[Any]] = {}
    for one in world.stagings:
        by_mark.setdefault(one.mark, []).append(one)
    for mark, some in by_mark.items():
        for before, after in pairwise(some):
            until = before.end if before.end is not None else before.process.died
            if until is None or until > after.begin:
                yield f"staged: by two at once ({mark})"
            if before.whole and before.process.extra["wrote"] > (before.end or 0.0) + _SOON_S:
                yield f"staged: again after it was done ({mark})"
