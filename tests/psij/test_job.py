"""The state machine of Job, waiting, callbacks."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobExecutor,
    JobSpec,
    JobState,
    JobStatus,
    StageIn,
    SubmitException,
)
from psij.job_state import JobStateOrder

SOON = timedelta(seconds=5)


class Recorder:
    """A callback that notes states, with a way to wait for a final one."""

    def __init__(self) -> None:
        self.states: list[JobState] = []
        self.final = threading.Event()

    def __call__(self, job: Job, status: JobStatus) -> None:
        self.states.append(status.state)
        if status.final:
            self.final.set()


@given(st.lists(st.sampled_from(list(JobState)), max_size=12), st.booleans())
def test_states_only_go_forward(wanted: list[JobState], staging: bool) -> None:
    job = Job(JobSpec("x", stage_in=[StageIn("a", "b")] if staging else None))
    seen = [job.status.state]
    announced: list[JobState] = []
    job._announce = lambda status: announced.append(status.state)  # type: ignore[method-assign]
    for state in wanted:
        job.status = JobStatus(state)
        seen.append(job.status.state)
    assert all(later is earlier or later.is_greater_than(earlier) for earlier, later in itertools.pairwise(seen))
    assert len(set(announced)) == len(announced)
    assert all(b.is_greater_than(a) for a, b in itertools.pairwise(announced))
    if JobState.COMPLETED in announced:
        assert {JobState.QUEUED, JobState.ACTIVE} <= set(announced)
    if announced and JobState.STAGE_IN not in wanted:
        assert (JobState.STAGE_IN in announced) <= staging


@pytest.mark.parametrize(("status", "expected"), [
    (JobStatus(JobState.COMPLETED), "QUEUED ACTIVE COMPLETED"),
    (JobStatus(JobState.FAILED), "FAILED"),
    (JobStatus(JobState.CANCELED), "CANCELED"),
    (JobStatus(JobState.FAILED, exit_code=1), "QUEUED ACTIVE FAILED"),
    (JobStatus(JobState.CANCELED, metadata={"start_time": 5.0}), "QUEUED ACTIVE CANCELED"),
    (JobStatus(JobState.ACTIVE), "QUEUED ACTIVE"),
])
def test_skipped_states_are_filled_in(status: JobStatus, expected: str) -> None:
    job, recorder = Job(), Recorder()
    job.set_job_status_callback(recorder)
    job.status = status
    if status.final:
        assert recorder.final.wait(5)
        assert " ".join(map(str, recorder.states)) == expected


def test_order_is_partial() -> None:
    assert JobState.FAILED.is_greater_than(JobState.COMPLETED) is None
    assert JobState.FAILED.is_greater_than(JobState.FAILED) is False
    assert JobState.CANCELED.is_greater_than(JobState.CLEANUP) is True
    assert JobStateOrder.prev(JobState.NEW) is None
    assert JobStateOrder.prev(JobState.FAILED) is None
    assert JobStateOrder.prev(JobState.COMPLETED) is JobState.CLEANUP
    assert bool(JobState.NEW) and str(JobState.NEW) == "NEW" == repr(JobState.NEW)
    assert [s.value for s in JobState] == list(range(9)) and JobState.from_name("ACTIVE") is JobState.ACTIVE


def test_wait() -> None:
    job = Job()
    assert job.wait(timedelta(0)) is None
    assert job.wait(timedelta(milliseconds=20), JobState.QUEUED) is None
    assert job.wait(timedelta(0), [JobState.NEW]) is job.status
    job.status = JobStatus(JobState.ACTIVE)
    assert job.wait(timedelta(0), target_states=[JobState.QUEUED]) is job.status
    timer = threading.Timer(0.05, lambda: setattr(job, "status", JobStatus(JobState.FAILED)))
    timer.start()
    ended = job.wait(SOON, JobState.COMPLETED)
    assert ended is not None and ended.state is JobState.FAILED
    timer.join()


def test_a_failing_callback_harms_nobody() -> None:
    job, other, recorder = Job(), Job(), Recorder()

    def fail(job: Job, status: JobStatus) -> None:
        raise RuntimeError("on purpose")

    job.set_job_status_callback(fail)
    other.set_job_status_callback(recorder)
    job.status = JobStatus(JobState.COMPLETED)
    other.status = JobStatus(JobState.COMPLETED)
    assert recorder.final.wait(5)
    job.set_job_status_callback(None)


def test_never_submitted() -> None:
    with pytest.raises(InvalidStateException) as caught:
        Job().cancel()
    assert isinstance(caught.value, SubmitException) and isinstance(caught.value, InvalidJobException)
    assert not caught.value.transient and not caught.value.isTransient()
    executor = JobExecutor.get_instance("local")
    with pytest.raises(SubmitException):
        executor.cancel(Job())


def test_status_text() -> None:
    status = JobStatus(JobState.FAILED, time=1.0, message="why", exit_code=3, metadata={"a": 1})
    assert str(status) == "JobStatus[FAILED, time=1.0, message=why, exit_code=3, meta={'a': 1}]"
    assert str(JobStatus(JobState.NEW, 0.0)) == "JobStatus[NEW, time=0.0]"
