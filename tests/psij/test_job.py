"""The state machine of Job, waiting, callbacks."""

from __future__ import annotations

import itertools
import queue
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import psij
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
    _delivery,
)
from psij.job_state import JobStateOrder
from psij.utils import SingletonThread

REPO = Path(psij.__file__).resolve().parents[1]
SOON = timedelta(seconds=60)


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
    job.set_job_status_callback(lambda job, status: announced.append(status.state))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("psij.job.deliver", lambda key, call: call())
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
    assert JobState.ACTIVE > JobState.QUEUED >= JobState.QUEUED and JobState.NEW < JobState.FAILED <= JobState.FAILED
    assert not any((JobState.FAILED > JobState.COMPLETED, JobState.FAILED < JobState.COMPLETED,
                    JobState.FAILED >= JobState.COMPLETED, JobState.ACTIVE < JobState.ACTIVE))
    assert max(JobState) is JobState.COMPLETED and sorted(reversed(JobState))[:3] == list(JobState)[:3]
    with pytest.raises(TypeError):
        max(2, JobState.ACTIVE)
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
    assert str(status) == "JobStatus[FAILED, time=1.0, message=why, exit_code=3]"
    assert str(JobStatus(JobState.NEW, 0.0)) == "JobStatus[NEW, time=0.0]"


class Stub(JobExecutor):
    """An executor written like a plug-in for psij-python: it knows _check_job and the status of a job, no more."""

    def __init__(self) -> None:
        super().__init__()
        self.refuse = False

    def submit(self, job: Job) -> None:
        self._check_job(job)
        if self.refuse:
            raise SubmitException("not now", transient=True)
        self._set_job_status(job, JobStatus(JobState.QUEUED))

    def cancel(self, job: Job) -> None:
        job.status = JobStatus(JobState.CANCELED)

    def attach(self, job: Job, native_id: str) -> None:
        job._attach(self)

    def list(self) -> list[str]:
        return []


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_the_executors_callback_comes_after_a_failing_one(error: type[BaseException],
                                                         caplog: pytest.LogCaptureFixture) -> None:
    def fail(job: Job, status: JobStatus) -> None:
        raise error("on purpose")

    executor, job, recorder = Stub(), Job(JobSpec("x")), Recorder()
    executor.set_job_status_callback(recorder)
    job.set_job_status_callback(fail)
    executor.submit(job)
    job.cancel()
    assert recorder.final.wait(5) and recorder.states == [JobState.QUEUED, JobState.CANCELED]
    assert f"A status callback of job {job.id} failed" in caplog.text


def test_a_blocking_callback_holds_up_only_its_own_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij._delivery.PATIENCE_S", 0.02)
    release, order, ended = threading.Event(), [], threading.Event()

    def block(job: Job, status: JobStatus) -> None:
        order.append(status.state)
        if status.state is JobState.QUEUED:
            release.wait(30)
        elif status.final:
            ended.set()

    for _ in range(2):          # twice: the thread that takes over can be taken over from
        blocked, other, recorder = Job(), Job(), Recorder()
        order.clear()
        for event in (ended, release):
            event.clear()
        blocked.set_job_status_callback(block)
        other.set_job_status_callback(recorder)
        blocked.status = JobStatus(JobState.QUEUED)
        blocked.status = JobStatus(JobState.ACTIVE)
        other.status = JobStatus(JobState.COMPLETED)
        assert recorder.final.wait(5) and order == [JobState.QUEUED]
        blocked.status = JobStatus(JobState.COMPLETED)
        release.set()
        assert ended.wait(5) and order == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


def test_callbacks_have_been_called_when_a_wait_returns() -> None:
    """Programs look at what their callbacks noted as soon as the job has ended."""
    job, seen, go = Job(), list[JobState](), threading.Event()

    def note(job: Job, status: JobStatus) -> None:
        assert go.wait(30)
        seen.append(status.state)

    job.set_job_status_callback(note)
    job.status = JobStatus(JobState.COMPLETED)
    assert job.wait(0.001) is job.status and seen == []        # its time was up
    threading.Timer(0.01, go.set).start()
    assert job.wait() is job.status and seen == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]
    assert job.wait(0) is job.status


def test_a_wait_in_a_callback_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij._delivery.PATIENCE_S", 1000)
    monkeypatch.setattr("psij._delivery._deliverers", {})       # threads of its own, which sleep so long
    job, other, statuses = Job(), Job(), list[JobStatus | None]()
    job.set_job_status_callback(lambda job, status: statuses.extend((job.wait(), other.wait())))
    other.set_job_status_callback(lambda job, status: None)
    for one in (other, job):
        one.status = JobStatus(JobState.COMPLETED)
    assert job.wait() is job.status and statuses == [job.status, other.status] * 3


def test_a_wait_does_not_wait_long_for_a_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psij._delivery.PATIENCE_S", 0.02)
    job, lock, states = Job(), threading.RLock(), list[JobState]()

    def note(job: Job, status: JobStatus) -> None:
        with lock:
            states.append(status.state)

    job.set_job_status_callback(note)
    with lock:
        job.status = JobStatus(JobState.COMPLETED)
        assert job.wait() is job.status and states == []
    assert job.wait(30) is job.status


def test_a_wait_stands_a_thread_whose_turn_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """On an overloaded machine the thread that makes the calls may not run for longer than a call may take."""
    monkeypatch.setattr("psij._delivery.PATIENCE_S", 0.05)
    monkeypatch.setattr("psij._delivery._deliverers", {})
    first, job, states = Job(), Job(), list[JobState]()
    first.set_job_status_callback(lambda job, status: None)
    first.status = JobStatus(JobState.COMPLETED)
    first.wait()
    job.set_job_status_callback(lambda job, status: states.append(status.state))
    (deliverer,) = _delivery._deliverers.values()
    deliverer._lock.acquire()
    job.status = JobStatus(JobState.COMPLETED)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(job.wait)
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        deliverer._lock.release()
        assert waiting.result(30) is job.status
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED]


class Waiting:
    """A duty that is always to be had, and how often it was begun."""

    def __init__(self) -> None:
        self.turns: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.roused: queue.SimpleQueue[None] = queue.SimpleQueue()

    def take(self) -> bool:
        self.turns.put(None)
        return True

    def work(self, over: Callable[[], bool]) -> None:
        while not over():
            self.roused.get(timeout=60)

    def leave(self) -> None:
        pass

    def rouse(self) -> None:
        self.roused.put(None)


def test_calls_in_bursts_do_not_change_who_waits_for_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """That wakes two threads each time; the thread that makes the calls waits for their cause between lone ones."""
    now = 100.0
    monkeypatch.setattr(_delivery, "time", SimpleNamespace(monotonic=lambda: now, sleep=time.sleep))
    deliverer, duty, calls = _delivery._Deliverer(), Waiting(), queue.SimpleQueue[int]()
    deliverer.duty = duty
    for number in range(30):
        deliverer.put(None, partial(calls.put, number))
        assert calls.get(timeout=60) == number
        if number < 5:
            duty.turns.get(timeout=60)
    for number in range(30, 40):
        now += 60 if number == 30 else 0.01
        deliverer.put(None, partial(calls.put, number))
        assert calls.get(timeout=60) == number
        assert duty.turns.get(timeout=60) is None
    assert duty.turns.empty()


def test_a_removed_callback_is_not_called() -> None:
    first, second, recorder = Job(), Job(), Recorder()
    first.set_job_status_callback(recorder)
    first.set_job_status_callback(None)
    first.status = JobStatus(JobState.COMPLETED)
    second.set_job_status_callback(last := Recorder())
    second.status = JobStatus(JobState.COMPLETED)
    assert last.final.wait(5) and recorder.states == []


def test_callbacks_are_called_before_the_program_ends() -> None:
    code = ("import time; from psij import *\n"
            "def show(job, status): time.sleep(0.1); print(status.state, flush=True)\n"
            "job = Job(); job.set_job_status_callback(show); job.status = JobStatus(JobState.COMPLETED)")
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (["QUEUED", "ACTIVE", "COMPLETED"], "")


def test_a_blocking_callback_does_not_keep_the_program() -> None:
    code = ("import time, psij._delivery; from psij import *; psij._delivery.PATIENCE_S = 0.05\n"
            "job = Job(); job.set_job_status_callback(lambda job, status: time.sleep(60))\n"
            "job.status = JobStatus(JobState.COMPLETED)")
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=50)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_forked_child_has_callbacks_of_its_own() -> None:
    code = ("import os, threading; from psij import *\n"
            "def run():\n"
            "    done = threading.Event(); job = Job()\n"
            "    job.set_job_status_callback(lambda job, status: status.final and done.set())\n"
            "    job.status = JobStatus(JobState.COMPLETED); return done.wait(5)\n"
            "assert run()\n"
            "pid = os.fork()\n"
            "if pid == 0: os._exit(0 if run() else 1)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, timeout=120)
    assert done.stdout == "0\n", done.stderr


def test_an_executor_that_only_knows_the_published_hooks() -> None:
    """It becomes the job's executor with the first status; what it refused can be submitted again."""
    executor, job = Stub(), Job(JobSpec("x"))
    executor.refuse = True
    with pytest.raises(SubmitException) as caught:
        executor.submit(job)
    assert caught.value.transient and job.executor is None and job.status.state is JobState.NEW
    executor.refuse = False
    executor.submit(job)
    assert job.executor is executor
    with pytest.raises(InvalidStateException):
        executor.submit(job)
    assert type(executor._get_launcher("single")).__name__ == "SingleLauncher"
    assert executor._get_launcher("single") is executor._get_launcher("single")


def test_attaching_discards_the_specification() -> None:
    executor, job = Stub(), Job(JobSpec("x", stage_in=[StageIn("a", "b")]))
    executor.attach(job, "1")
    assert job.spec is None and job.executor is executor
    with pytest.raises(InvalidJobException):
        executor.attach(job, "1")
    with pytest.raises(InvalidJobException):
        executor.submit(job)


def test_job_ids() -> None:
    ids = {Job().id for _ in range(1000)}
    assert len(ids) == 1000 and all(str(uuid.UUID(i)) == i and uuid.UUID(i).version == 4 for i in ids)
    assert {Job(): 1} and Job() != Job()


class _Once(SingletonThread):
    def run(self) -> None:
        pass


class _Other(_Once):
    pass


def test_singleton_thread() -> None:
    assert _Once.get_instance() is _Once.get_instance()
    assert type(_Other.get_instance()) is _Other
