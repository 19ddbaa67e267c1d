"""A job: its specification, its state and how to follow it.

The state machine lives here: one lock per job around "may this follow?" and "set it", skipped states filled in, no
state twice and none backward. Who waits holds no lock: a signal handler may wait too, whatever it has interrupted. In a
forked child a job that the parent has submitted is followed anew when it is used there. How a job is run belongs to
executors.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

from psij import _delivery, _forks
from psij._delivery import deliver, delivering
from psij._interpreter import check_interpreter
from psij.exceptions import InvalidStateException, SubmitException
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from datetime import timedelta

    from psij.job_executor import JobExecutor

__all__ = ["FunctionJobStatusCallback", "Job", "JobNewsCallback", "JobStatusCallback"]

_WAITERS = "_waiters"       # attribute of jobs for which somebody waits
_DUE, _TOLD = "_due", "_told"       # of jobs with callbacks: the last status that these are to be told, and were told
_OVERLOAD = 10      # times PATIENCE_S for callbacks whose turn does not come
_CO_COROUTINE = 0x80        # inspect.CO_COROUTINE, whose module costs more than all of this one
_RAN_KEYS = ("start_time", "wall_seconds", "cpu_seconds", "signal")     # metadata that shows that a job ran


class JobStatusCallback(ABC):
    """Something to be told when a job's status changes."""

    @abstractmethod
    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        """Called once per status, in order, from psij's delivery thread; should return quickly.

        ``job.status`` may be further along than job_status by then. Exceptions are logged and go nowhere else.
        """


class JobNewsCallback(JobStatusCallback):
    """A callback that is told too of what changes while the state stays the same.

    PSI/J tells of states only: a job that is suspended, or put back into the queue, stays ACTIVE.
    """

    @abstractmethod
    def job_news(self, job: Job, job_status: JobStatus) -> None:
        """Called as ``job_status_changed``, in order with it. job_status: of the state that the job has already."""


class FunctionJobStatusCallback(JobStatusCallback):
    """A function ``(job, job_status)`` as a JobStatusCallback."""

    def __init__(self, fn: Callable[[Job, JobStatus], None]) -> None:
        self.fn = fn

    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        """Call the function."""
        self.fn(job, job_status)


def _as_callback(cb: JobStatusCallback | Callable[[Job, JobStatus], None] | None) -> JobStatusCallback | None:
    """A callback of either form as an object; None stays None. Raises TypeError for what cannot be called so."""
    if cb is None or isinstance(cb, JobStatusCallback):
        return cb
    if not callable(cb):
        raise TypeError(f"a status callback is a JobStatusCallback or a function (job, job_status), not {cb!r}")
    check_is_object(cb)
    if getattr(getattr(cb, "__code__", None), "co_flags", 0) & _CO_COROUTINE:
        raise TypeError(f"a status callback of a Job is no coroutine function, which {cb!r} is: those are for AsyncJob")
    return FunctionJobStatusCallback(cb)


def check_is_object(cb: object) -> None:
    """Raise TypeError for a class that has the method of a callback: to call it would make an object and no more."""
    if isinstance(cb, type) and hasattr(cb, "job_status_changed"):
        raise TypeError(f"a status callback is an object of the class {cb.__name__}, not the class itself")


class Job:
    """A job to run, or one that runs or ran. It starts in the state NEW."""

    def __init__(self, spec: JobSpec | None = None) -> None:
        self.spec = spec
        self.executor: JobExecutor | None = None        # set when submitted or attached
        self._candidate: JobExecutor | None = None      # the one that is submitting it
        self._id = _random_id()
        self._native_id: object = None                  # set by executors
        self._status = JobStatus(JobState.NEW)
        self._cb: JobStatusCallback | None = None
        self._bound = False                             # the executor is certain: submitted or attached
        self._lock = threading.RLock()
        self._forks = _forks.count                      # of this process, when the job was made or followed anew
        self._out_of_reach = False                      # only the process that this one was forked from can end it

    @property
    def id(self) -> str:
        """Identifies this object in this process and beyond (a random UUID); not the backend's identifier."""
        return self._id

    @property
    def native_id(self) -> str | None:
        """The backend's identifier as text; None before the job is queued there."""
        return None if self._native_id is None else str(self._native_id)

    @property
    def status(self) -> JobStatus:
        """The present status. Setting it is for executors.

        A status that is not greater than the present one is ignored. States skipped on the way are filled in: all of
        them before COMPLETED, and before FAILED and CANCELED only where the status shows that the job ran. STAGE_IN,
        STAGE_OUT and CLEANUP are filled in only for jobs that stage or clean up. Callbacks follow, of the job first.
        """
        self._follow_here()
        return self._status

    @status.setter
    def status(self, status: JobStatus) -> None:
        """Have this status, where it can follow the present one."""
        self._set_status(status)

    def _set_status(self, status: JobStatus) -> bool:
        """Set the status; False if it could not follow the present one."""
        with self._lock:
            current = self._status.state
            if not status.state.is_greater_than(current):
                return False
            if self.executor is None:
                self.executor = self._candidate
            stages = _stages(self.spec)
            if stages or not _next(current, status.state):
                for state in _skipped(current, status.state, _ran(status), stages):
                    self._advance(JobStatus(state, time=_time_of(state, status)))
            self._advance(status)
        self._wake()
        return True

    def _renew(self, status: JobStatus) -> None:
        """Put a status in place of the present one, of the same state; only a JobNewsCallback of the job is told."""
        with self._lock:
            if status.state is self._status.state and not status.final:
                self._status = status
                if isinstance(self._cb, JobNewsCallback):
                    deliver(self._id, partial(self._cb.job_news, self, status))

    def _advance(self, status: JobStatus) -> None:
        has_callback = self._cb is not None or (self.executor is not None and self.executor._cb is not None)
        if has_callback:
            self.__dict__[_DUE] = status        # first: who sees the status is to see that callbacks are due
        self._status = status
        if has_callback:
            deliver(self._id, partial(self._notify, status))

    def _notify(self, status: JobStatus) -> None:
        try:
            if self._cb is not None:
                self._cb.job_status_changed(self, status)
        finally:
            cb = self.executor._cb if self.executor is not None else None
            try:
                if cb is not None:
                    cb.job_status_changed(self, status)
            finally:
                self.__dict__[_TOLD] = status
                self._wake()

    def _wake(self) -> None:
        for waiter in tuple(self.__dict__.get(_WAITERS, ())):
            waiter.wake()

    def set_job_status_callback(self, cb: JobStatusCallback | Callable[[Job, JobStatus], None] | None) -> None:
        """Have cb told of every later change of status: a JobStatusCallback or a function; None removes it."""
        self._cb = _as_callback(cb)

    def _bind(self, executor: JobExecutor) -> None:
        """Tie a NEW job to an executor, once; before submitting. Raises InvalidStateException otherwise."""
        self._follow_here()
        with self._lock:
            self._check_unbound()
            self.executor, self._bound = executor, True

    def _attach(self, executor: JobExecutor) -> None:
        """As _bind, before attaching: the specification is discarded, for it does not describe what runs already.

        Raises SubmitException in a subinterpreter."""
        check_interpreter()
        self._follow_here()
        with self._lock:
            self._check_unbound()
            self.executor, self._bound, self.spec = executor, True, None

    def _check_unbound(self) -> None:
        if self._status.state is not JobState.NEW or self._bound:
            raise InvalidStateException(f"Job {self._id} was already submitted or attached: it is "
                                        f"{self._status.state}. Make a new Job to run it again.")

    def _follow_here(self) -> None:
        """In a forked child: have a job of the parent followed by this process too."""
        if self._forks != _forks.count:
            from psij._handlers import apart

            apart(self._follow_anew)

    def _follow_anew(self) -> None:
        with _forks.guard:
            if self._forks == _forks.count:
                return
            self._lock = threading.RLock()
            for name in (_WAITERS, _DUE):       # callbacks that were due are the parent's
                self.__dict__.pop(name, None)
            try:
                if self.executor is not None and self._bound and not self._status.final:
                    self.executor._follow_in_fork(self)
            finally:
                self._forks = _forks.count

    def _is_out_of_reach(self, why: str) -> None:
        """In a forked child: only the parent knows enough of the job to follow it. why: a clause."""
        self._out_of_reach = True
        self._set_status(JobStatus(JobState.FAILED, metadata={"reason": "lost"}, message=(
            f"it cannot be followed by process {os.getpid()}, which was forked from the one that submitted it: {why}")))

    def _owner(self, executor: JobExecutor) -> JobExecutor:
        """The executor that can end the job: the one given, or another of its kind. Raises InvalidStateException."""
        if self.executor is executor or (self.executor is not None and type(self.executor) is type(executor)):
            return self.executor
        has_executor = self.executor is not None or self._candidate is not None
        raise InvalidStateException(f"Job {self._id} cannot be canceled: " + (
            f"it was not submitted to an executor of this kind ({executor.name})." if has_executor else
            "it was never submitted."))

    def _check_reach(self) -> None:
        """Raise SubmitException for a job that only the parent of this forked child can end."""
        if self.status.final and self._out_of_reach:
            raise SubmitException(f"Job {self._id} cannot be canceled: {self._status.message}")

    def _unbind(self) -> None:
        """Undo _bind, after a submit that did not happen."""
        with self._lock:
            self.executor, self._candidate, self._bound, self._native_id = None, None, False, None

    def cancel(self) -> None:
        """Ask the executor to end the job; nothing happens if it is already final.

        Returns at once: the state becomes CANCELED when everything of the job is gone. Raises InvalidStateException (a
        SubmitException) when the job was never submitted, SubmitException when the backend could not be asked.
        """
        self._check_reach()
        if self._status.final:
            return
        executor = self.executor or self._candidate
        if executor is None:
            raise InvalidStateException(f"Job {self._id} cannot be canceled: it was never submitted.")
        executor.cancel(self)

    def wait(self, timeout: timedelta | float | JobState | Sequence[JobState] | None = None,
             target_states: JobState | Sequence[JobState] | None = None) -> JobStatus | None:
        """Wait for a target state, any state after one of them, or any final state.

        timeout: None waits without limit; zero looks once; a number is seconds. target_states: one or several; None
        means the final ones. Alone they may come first, as in the examples of the specification. The callbacks for what
        is seen have been called when it returns, unless they take more than a second or it is a callback that waits.
        Returns the status that ended the wait, or None when the time was up.
        """
        seconds, targets = _ends_of_wait(timeout, target_states)
        deadline = None if seconds is None else time.monotonic() + seconds
        if not _reached(self.status.state, targets) and not self._sleep(
                lambda: _reached(self._status.state, targets), deadline):
            return None
        status = self._status
        if _DUE in self.__dict__ and not delivering():
            self._wait_for_callbacks(self.__dict__[_DUE], deadline)
        return status

    def _wait_for_callbacks(self, status: JobStatus, deadline: float | None) -> None:
        """Until they were called, or one of them blocks. On a machine that is overloaded their thread may have to wait
        for seconds before it comes to call any."""
        for _ in range(_OVERLOAD):
            calls = _delivery.calls_begun()
            patience = time.monotonic() + _delivery.PATIENCE_S
            until = patience if deadline is None else min(deadline, patience)
            if self._sleep(partial(self._is_told, status), until) or until == deadline or (
                    _delivery.is_held_up(self._id, calls)):
                return

    def _is_told(self, status: JobStatus) -> bool:
        announced: JobStatus | None = self.__dict__.get(_TOLD)
        return announced is not None and not status.state.is_greater_than(announced.state)

    def _sleep(self, over: Callable[[], bool], deadline: float | None) -> bool:
        """Until it is over, which every change of status may bring about; False when the time was up."""
        if over():
            return True
        if deadline is not None and deadline <= time.monotonic():
            return False
        waiter = _Waiter()
        with self._waiting(waiter):
            while not over():
                remaining = None if deadline is None else deadline - time.monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                waiter.sleep(-1 if remaining is None else min(remaining, threading.TIMEOUT_MAX))
        return True

    @contextmanager
    def _waiting(self, waiter: _Wakes) -> Iterator[None]:
        """Have something woken after each change of status; inside, the present one is to be looked at first."""
        waiters: list[_Wakes] = self.__dict__.setdefault(_WAITERS, [])     # one step, without the lock
        waiters.append(waiter)
        try:
            yield
        finally:
            waiters.remove(waiter)

    def __hash__(self) -> int:
        return hash(self._id)

    def __str__(self) -> str:
        return f"Job[id={self._id}, native_id={self.native_id}, executor={self.executor}, status={self._status}]"


class _Wakes(Protocol):
    """Something that waits for a change of status."""

    def wake(self) -> None:
        """Called after the change, by the thread that made it; must not block."""


class _Waiter:
    """A thread that sleeps until it is woken. A wake-up before the sleep is not lost."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self, seconds: float) -> None:
        """Until woken, or for so long; -1: without limit."""
        self._lock.acquire(timeout=seconds)

    def wake(self) -> None:
        """End the sleep."""
        with suppress(RuntimeError):        # it was woken before and has not slept since
            self._lock.release()


def _random_id() -> str:
    """A random (version 4) UUID."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _ends_of_wait(timeout: object, states: JobState | Iterable[JobState] | None) -> tuple[
        float | None, tuple[JobState, ...]]:
    """Seconds (None: without limit) and states that end a wait; states may stand alone, where a timeout does."""
    if states is None and isinstance(timeout, JobState | list | tuple | set | frozenset):
        return None, _targets(timeout)
    return None if timeout is None else _seconds(timeout), _targets(states)


def _seconds(timeout: object) -> float:
    if isinstance(timeout, Real) and not isinstance(timeout, bool):
        if timeout != timeout:
            raise ValueError("timeout must be a number of seconds, not nan")
        return float(timeout)
    seconds: Callable[[], float] | None = getattr(timeout, "total_seconds", None)
    if seconds is None:
        raise TypeError(f"timeout must be a timedelta or a number of seconds, not {type(timeout).__name__}")
    return seconds()


def _targets(states: JobState | Iterable[JobState] | None) -> tuple[JobState, ...]:
    if states is None:
        return ()
    targets = (states,) if isinstance(states, JobState) else tuple(states)
    for target in targets:
        if not isinstance(target, JobState):
            raise TypeError(f"target_states must be JobStates, not {target!r}")
    return targets


def _reached(state: JobState, targets: tuple[JobState, ...]) -> bool:
    return state.final or any(state is target or state.is_greater_than(target) for target in targets)


def _ran(status: JobStatus) -> bool:
    """Whether a final status shows that the job had started: it names an exit code, or what a run used."""
    return status.exit_code is not None or any(key in (status.metadata or ()) for key in _RAN_KEYS)


def _stages(spec: JobSpec | None) -> tuple[JobState, ...]:
    """The states between QUEUED and the end that are only for some jobs, as far as they are for this one."""
    if spec is None or not spec._has_staging():
        return ()
    stages = {JobState.STAGE_IN: spec.stage_in, JobState.STAGE_OUT: spec.stage_out, JobState.CLEANUP: spec.cleanup}
    return tuple(state for state, value in stages.items() if value)


def _next(current: JobState, new: JobState) -> bool:
    """Whether one state comes next after another where a job does not stage, so that nothing is to be filled in."""
    return current is JobState.ACTIVE or new is JobState.QUEUED or (
        new is JobState.ACTIVE and current is JobState.QUEUED)


@cache
def _skipped(current: JobState, new: JobState, ran: bool, stages: tuple[JobState, ...]) -> tuple[JobState, ...]:
    """The states to be filled in between two: before FAILED and CANCELED only where the job ran, and up to ACTIVE."""
    ended_badly = new in (JobState.FAILED, JobState.CANCELED)
    last = new if not ended_badly else JobState.ACTIVE if ran else JobState.NEW
    return tuple(state for state in JobState if state in (JobState.QUEUED, JobState.ACTIVE, *stages)
                 and state.is_greater_than(current) and new.is_greater_than(state) and not state.is_greater_than(last))


def _time_of(state: JobState, status: JobStatus) -> float:
    """Best known time of a filled-in state, seconds since the epoch."""
    metadata: dict[str, Any] = status.metadata or {}
    keys = {JobState.QUEUED: ("submit_time",), JobState.STAGE_IN: ("submit_time",), JobState.ACTIVE: ("start_time",)}
    for key in keys.get(state, ("end_time",)):
        if isinstance(metadata.get(key), int | float):
            return float(metadata[key])
    return status.time
