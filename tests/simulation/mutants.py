"""Faults that are planted into the product, to see that the simulation finds them: ``python -m tests.simulation.mutants
[FOLDER]`` plants each of them in turn and prints, a line for each, the first seed by which it was found, or that it was
not found. ``--only TEXT`` takes those with that text in their names.

Each is what an earlier version did, or what others have done: a native id that is trusted alone, a retry without a
question, a lock that is no lock, an end that is made up.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from psij import JobState, JobStatus, SubmitException
from psij.executors._local_staging import ENDS
from psij.executors.batch import _evidence
from psij.executors.batch._evidence import Evidence
from psij.executors.batch._identity import Verdict, Whose
from sssjob.errors import AccessError
from sssjob.run import attempts, staging, storage, wishes
from sssjob.run.journal import Entry
from tests.simulation.__main__ import failures, fix_hashes
from tests.simulation.plans import make_plan
from tests.simulation.world import warm_up

_SEEDS = range(400)
_BATCH = "psij.executors.batch"
_EVIDENCE = f"{_BATCH}._ends.decide"
_NOTE = "sssjob.run.journal.Entry.note"


class Mutant(NamedTuple):
    """A fault. targets: what is replaced by what. seeds: of the worlds that may show it."""

    name: str
    targets: dict[str, Any]
    seeds: Sequence[int] = _SEEDS


# --- what stands in the place of the product's own --------------------------------------------------------------------

def _decide(change: Callable[[Evidence], Evidence]) -> dict[str, Any]:
    """Decisions from what is known otherwise."""
    decide = _evidence.decide
    return {_EVIDENCE: lambda known, accounting_s, lost_s: decide(change(known), accounting_s, lost_s)}


def _decided(change: Callable[[JobStatus], JobStatus]) -> dict[str, Any]:
    """Other decisions."""
    decide = _evidence.decide

    def decided(known: Evidence, accounting_s: float, lost_s: float) -> JobStatus | None:
        status = decide(known, accounting_s, lost_s)
        return None if status is None else change(status)

    return {_EVIDENCE: decided}


def _made_up(status: JobStatus) -> JobStatus:
    """The end of a job of which nobody knows one."""
    lost = (status.metadata or {}).get("reason") == "lost"
    return JobStatus(JobState.COMPLETED, status.time, None, 0, {}) if lost else status


def _losing(kind: str) -> dict[str, Any]:
    """Events of a kind are not written down."""
    note = Entry.note

    def noted(self: Entry, event: Any, *others: Any) -> None:
        if event.kind != kind:
            note(self, event, *others)

    return {_NOTE: noted}


def _all_runs(self: Whose, native_id: str, runs: Any) -> list[Any]:
    return [run.record for run in runs]


def _last_runs(self: Whose, native_id: str, runs: Any) -> list[Any]:
    return [run.record for run in runs[-1:]]


def _take_all(self: Entry) -> bool:
    """Without the lock."""
    if self._lease is None:
        self._lease = self.open_file("lease", os.O_RDWR | os.O_CREAT)
    return True


def _not_made(self: Any, job: Any, why: str, error: BaseException | None) -> str:
    raise SubmitException(why, error, transient=True)


def _endless_clause(job: Any) -> Any:
    retry, end = job.plan.retry, attempts.end_of(job.seen)
    return None if retry is None or end is None or job.cancel else retry.next_for(*end, [])


def _asleep(connection: Any, path: Path) -> None:
    """A journal of which nothing is synced."""
    _prepare(connection, path)
    connection.execute("PRAGMA synchronous = OFF")


def _removed_first(one: Any, leaving: Any, *others: Any) -> Any:
    """Files are removed before they are fetched."""
    one.remove(ENDS[leaving.status.state])
    return _stage(one, leaving, *others)


def _shown_code(status: Any, source: str, known: Evidence, *others: Any) -> Any:
    """What accounting shows of a code counts more than the exit file."""
    return _code(status, source, replace(known, exit=None), *others)


def _fetched_by_all(self: Any, job: Any, part: int) -> None:
    """Files are staged out by whoever hears of it, as if nobody had begun."""
    job.leaving[part].done, job.leaving[part].fetched, job.leaving[part].again = 0, False, False
    self._begin(job, part)
    job.leaving[part].working = False
    self._begin(job, part)


def _doubled(before: Sequence[Any], seen: Sequence[Any]) -> Sequence[Any]:
    """The last attempt counts twice."""
    return _together([*before, before[-1]], seen) if before else seen


def _answered(kind: str) -> Callable[[Any, Any, str], bool]:
    """Such a wish has its answer, and no manager is asked."""
    def natively(self: Any, job: Any, wish: str) -> bool:
        if wish != kind:
            return bool(_natively(self, job, wish))
        self._answer(job, wish)
        return True

    return natively


def _rerun_twice(self: Any, job: Any, wish: str) -> bool:
    """A run that is to begin again is put back twice."""
    for part in job.parts if wish == "rerun" else ():
        with suppress(SubmitException):
            job.of.executor().rerun(part)
    return bool(_natively(self, job, wish))


def _all_numbers(journal: Any, *_: Any) -> list[int]:
    """Of submissions, whether they have ended or not."""
    return [number for number, in journal.ask("SELECT number FROM submissions", {})]


def _entered(self: Any, entry: Entry) -> None:
    """Whatever its document is."""
    self.entry = entry


def _unwritten(self: Entry, *others: Any, **named: Any) -> None:
    """What the disk has no room for is no reason not to go on."""
    with suppress(AccessError):
        _flush(self, *others, **named)


_flush = Entry.flush
_code, _natively = _evidence._code, wishes.Wishes._natively
_prepare, _stage, _together = storage._prepare, staging._stage, attempts.together
_ROWS = f"{_BATCH}._listing.judge"
_STRANGE = Verdict.STRANGER, "nothing is believed"

MUTANTS = (
    # -- whose job it is
    Mutant("any row and record of the native id is ours, which may be recycled",
           {target: lambda *_: (Verdict.OURS, "") for target in (_ROWS, f"{_BATCH}._identity.judge")} | {
               f"{_BATCH}._identity.Whose.runs": _all_runs}),
    Mutant("any record of the native id is ours", {f"{_BATCH}._identity.Whose.runs": _all_runs}),
    Mutant("the last record of the native id is ours", {f"{_BATCH}._identity.Whose.runs": _last_runs}),
    Mutant("any row of the queue is ours", {_ROWS: lambda *_: (Verdict.OURS, "")}),
    Mutant("no row of the queue is ours", {_ROWS: lambda *_: _STRANGE}),
    Mutant("a cancel asks for nobody's identity", {f"{_BATCH}._watch.Watcher.is_there": lambda *_: True}),
    Mutant("every cluster is this one", {"sssjob.run.whereabouts.Whereabouts.is_here": lambda *_: True}),
    Mutant("two clusters of one kind have one name", {"sssjob.run.client.cluster_of": lambda _: "cluster",
                                                           "sssjob.run.whereabouts.cluster_of": lambda _: "cluster",
                                                           "sssjob.run.placing.cluster_of": lambda _: "cluster"}),
    Mutant("late accounting takes the record of a stranger",
           {f"{_BATCH}._late.Whose": lambda identities: type("Anybody", (), {
               "runs": _all_runs, "takes": lambda *_: True, "of": lambda *_: None, "tag": lambda *_: None,
               "left": lambda *_: [], "left_out": {}})()}),
    # -- once and only once
    Mutant("what is looked for is submitted anew at once",
           {"sssjob.run.adopting.Adopting._grace_over": lambda *_: True}),
    Mutant("an answer that did not come means that no job was made",
           {f"{_BATCH}._submission.Submissions._search_or_raise": _not_made,
            "sssjob.run.submitting.Submitting._perhaps_there": lambda *_: set()}),
    Mutant("two clients look after one submission", {"sssjob.run.journal.Entry.take": _take_all}),
    Mutant("a token is forgotten", {"sssjob.run.journal.Journal.requested": lambda *_: None}),
    Mutant("intents are not written down", _losing("intent")),
    Mutant("the journal is not synced", {"sssjob.run.storage._prepare": _asleep}),
    Mutant("what a killed client meant to submit is not looked for",
           {"sssjob.run.adopting.Adopting.look_for": lambda *_: None}),
    Mutant("what bears a tag is not believed",
           {"sssjob.run.adopting.Adopting._found": lambda self, job, part, _: self._anew(job, part)}),
    # -- ends
    Mutant("ends are not written down", _losing("ended")),
    Mutant("statuses are not written down", _losing("status")),
    Mutant("an end is made up of a job that nobody knows", _decided(_made_up)),
    Mutant("the end of a lost job is when it was given up",
           {"sssjob.run.seen.Seen.ended_at": property(lambda part: part.known.get(
               "end_time", part.status.time if part.status else None))}),
    Mutant("what accounting calls running runs for ever", _decide(lambda known: replace(known, runaway=False))),
    Mutant("one answer without a job is its end",
           _decide(lambda known: replace(known, records={}, waited_s=1e9, missed=2))),
    Mutant("a source that was silent has answered", _decide(lambda known: replace(
        known, silent_s=0.0, waited_s=known.waited_s + 60.0))),
    Mutant("a cancel that was accepted is forgotten", _decide(lambda known: replace(known, canceled=False))),
    Mutant("a job that is not in the queue was cancelled", _decide(lambda known: replace(known, canceled=True))),
    Mutant("what accounting says of the end does not count",
           _decide(lambda known: replace(known, records={})) | {"sssjob.run.refreshing._ask": lambda *_: None}),
    Mutant("exit files do not count", _decide(lambda known: replace(known, exit=None))),
    Mutant("exit codes from 128 on are those that accounting shows", {f"{_BATCH}._evidence._code": _shown_code}),
    # -- wishes, dependencies, room
    Mutant("a wish to cancel is forgotten", {"sssjob.run.engine.Engine._wanted": lambda *_: None,
                                             "sssjob.run.standing.Running.want_end": lambda *_: None}),
    Mutant("cancels are not carried out", {"sssjob.run.ending.Ending.carry_out": lambda *_: None}),
    Mutant("all jobs of a submission are cancelled with one",
           {"sssjob.run.ending.Ending.want": lambda self, job: self._wanted.update(
               {id(one): one for one in job.of.jobs})}),
    Mutant("dependencies hold whatever became of the other job",
           {"sssjob.run.gates.Gates.verdict": lambda *_: True}),
    Mutant("a full queue is a refusal", {"sssjob.run.submitting.Submitting._no_room":
                                         lambda self, job, part, error: self.refused(job, part, error)}),
    Mutant("nothing is offered to a full queue again", {"sssjob.run.room.Room._offer": lambda *_, **__: None}),
    # -- attempts
    Mutant("a job is tried again without end", {"sssjob.run.failing.next_clause": _endless_clause}),
    Mutant("a job is not tried again", {"sssjob.run.failing.next_clause": lambda _: None}),
    Mutant("attempts are not written down", _losing("retry")),
    Mutant("only the last attempt counts", {"sssjob.run.standing.together": lambda before, seen: seen}),
    Mutant("an attempt is charged twice", {"sssjob.run.standing.together": _doubled}),
    # -- files
    Mutant("files are not staged out", {"sssjob.run.staging.Promised.takes": lambda *_: False}),
    Mutant("the stage-out of a killed client is lost", {"sssjob.run.staging.Promised.resume": lambda *_: None}),
    Mutant("files are staged by two threads", {"sssjob.run.staging.Promised.resume": _fetched_by_all}),
    Mutant("files are removed before they are fetched", {"sssjob.run.staging._stage": _removed_first}),
    Mutant("a copy that failed for a while is not made again",
           {"psij.executors._local_staging.may_pass": lambda _: False}),
    # -- what users want beside, and what only long worlds show
    Mutant("what may be under way counts from the intents",
           {"sssjob.run.journal.Entry.begins": lambda *_: None}, (11020566,)),
    Mutant("what is held is submitted all the same", {"sssjob.run.starting._due": lambda _: 0.0}, (12000027, 12000035)),
    Mutant("a release is told to nobody", {"sssjob.run.wishes.Wishes._natively": _answered("release")},
           (12000001, 12000005)),
    Mutant("a hold is told to nobody", {"sssjob.run.wishes.Wishes._natively": _answered("hold")}, (12000963,)),
    Mutant("a job is put back twice", {"sssjob.run.wishes.Wishes._natively": _rerun_twice}, (12001250,)),
    Mutant("a prune takes what goes on", {"sssjob.run.pruning._has_ended": lambda *_: True,
                                          "sssjob.run.pruning._ended": _all_numbers}, (12000000, 12000005)),
    Mutant("caps are not kept", {"sssjob.run.room.Room.admits": lambda *_: True}, (12000020, 12000032)),
    Mutant("a group goes on after its first failure",
           {"sssjob.run.failing.Failing.end_groups": lambda *_: None}, (12000039,)),
    Mutant("another document is that of the request", {"sssjob.run.entering.Prepared.entered": _entered}, (14000000,)),
    Mutant("a job is submitted although its intent has no room", {"sssjob.run.journal.Entry.flush": _unwritten},
           (14000083,)),
)


def found_by(mutant: Mutant, folder: Path, seeds: Sequence[int] | None = None) -> int | None:
    """The first seed whose world shows a fault that it does not show without; None where none does."""
    for seed in mutant.seeds if seeds is None else seeds:
        if _shows(mutant, folder, seed) and not failures(make_plan(seed), folder):
            return seed
    return None


def _shows(mutant: Mutant, folder: Path, seed: int) -> bool:
    with ExitStack() as stack:
        for target, value in mutant.targets.items():
            stack.enter_context(patch(target, value))
        return bool(failures(make_plan(seed), folder))


def main() -> None:
    """As the module says."""
    fix_hashes()
    logging.disable(logging.CRITICAL)
    words = sys.argv[1:]
    only = words.pop(words.index("--only") + 1) if "--only" in words else ""
    folders = [word for word in words if word != "--only"]
    warm_up()
    gc.freeze()
    with tempfile.TemporaryDirectory() as own:
        folder = Path(folders[0] if folders else own)
        for mutant in MUTANTS:
            if only in mutant.name:
                print(json.dumps({"mutant": mutant.name, "found by": found_by(mutant, folder)}), flush=True)


if __name__ == "__main__":
    main()
