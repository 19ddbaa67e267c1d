"""Accounting long after the end, over all managers: many jobs by few commands, and only what is new."""

from __future__ import annotations

import pytest

from psij import JobState, JobStatus
from psij.executors.batch._identity import Identity
from psij.executors.batch._late import EndedJob, complete
from tests.psij.batch_support import Stand, a_job, ended
from tests.psij.managers import MANAGERS, Manager

#: Managers that tell nothing of jobs that their queue has forgotten; Cobalt's own log goes with the files of the job.
MUTE = ("NQSVJobExecutor", "CobaltJobExecutor", "PBSClassicJobExecutor")


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest) -> Manager:
    """Each of them."""
    return MANAGERS[request.param]


def test_what_accounting_adds_to_an_end(manager: Manager, quick: Stand) -> None:
    """It is what had been told, had it answered at the end."""
    jobs = [a_job(f"exec true; exit {code}") for code in (0, 3)]
    for job in jobs:
        quick.executor.submit(job)
    whole = [ended(job) for job in jobs]
    asked = [EndedJob(str(job.native_id), Identity(frozenset([job.id])), status.exit_code is not None)
             for job, status in zip(jobs, whole, strict=True)]
    records, silent = quick.executor.accounting_of(asked)
    assert not silent
    if manager.executor.__name__ in MUTE:
        assert records == {}
        return
    assert records.keys() == {one.native_id for one in asked}
    for one, status in zip(asked, whole, strict=True):
        before = JobStatus(status.state, status.time, status.message, status.exit_code, {
            "native_id": one.native_id, "sources": {"state": "queue"}})
        after = quick.executor.completed(before, records[one.native_id])
        assert after is not None and after.metadata is not None and status.metadata is not None
        assert (after.state, after.exit_code) == (status.state, status.exit_code)
        source = after.metadata["sources"]["state"]
        told = {key for key, name in status.metadata["sources"].items() if name == source and key in status.metadata}
        assert told and {key: after.metadata[key] for key in told} == {key: status.metadata[key] for key in told}
        assert quick.executor.completed(after, records[one.native_id]) is None


def test_silence_is_told(manager: Manager, quick: Stand) -> None:
    if manager.executor.__name__ in MUTE:
        pytest.skip("it has no accounting")
    job = a_job("exec true")
    quick.executor.submit(job)
    ended(job)
    for command in {manager.queue, *manager.ends}:
        quick.lab.fault(command, times=-1, exit=1, stderr="cannot connect")
    assert quick.executor.accounting_of([EndedJob(str(job.native_id))]) == ({}, True)


def test_many_jobs_cost_few_commands(manager: Manager, quick: Stand) -> None:
    """Only qacct takes one id; the others take at least fifty."""
    native_ids = [str(number) for number in range(1, 101)]
    quick.executor.accounting_of([EndedJob(one, sure=True) for one in native_ids])
    count = sum(len(quick.lab.calls(command)) for command in {manager.queue, *manager.ends})
    assert count == 100 if manager.executor.__name__ == "SGEJobExecutor" else count <= 2


@pytest.mark.parametrize("told", [{"end_time": 9.0}, {}])
def test_an_end_whose_time_is_told_is_no_unknown_one(told: dict[str, float]) -> None:
    """Of a job that had gone when it was to be cancelled; bhist tells no time. What was left out has no source."""
    before = JobStatus(JobState.CANCELED, 20.0, "canceled on request", metadata={
        "end_unknown": True, "left_out": ["another"], "sources": {"state": "cancel"}})
    after = complete(before, {"acct": JobStatus(JobState.COMPLETED, exit_code=0, metadata=told)}, {})
    assert after is not None and (after.state, after.exit_code) == (JobState.COMPLETED, 0)
    assert after.metadata == {
        **told, "left_out": ["another"], **({} if told else {"end_unknown": True}),
        "sources": {"state": "acct", "exit_code": "acct", **dict.fromkeys(told, "acct")}}
