"""Executor ``local``: jobs are processes on this machine.

Each job is a process in a session of its own. With launcher ``single`` and no pre- and post-launch the executable is
started without a shell. The time limit (attributes.duration, 10 minutes unless stated, None for none) is kept: SIGTERM,
two seconds, SIGKILL to all processes of the job; the job is FAILED with reason ``timeout``. Canceling does the same,
and the job is CANCELED when all of them are gone. They are those of its session, their descendants, and those that have
the job's ``_PSI_J_JOB_ID`` in their environment (which is set where the environment is inherited). Processes that a job
leaves behind at its normal end are left alone. A job's standard streams are /dev/null unless stated.

Files are staged by this process, before the start and after the end; ``_local_staging`` says how.

memory_max_bytes is the greatest peak of a process among the job's own and those it waited for, as Linux counts it:
exact above some 11 MB; that of any smaller job cannot be told from the memory of the process that starts it, and is
left out. ``_local_starter`` says why and how. The native identifier is the process id.
``LocalJobExecutor.reference(job)`` gives a longer text that stays right when ids are reused and after a restart of the
machine; ``attach`` takes both.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from psij import _forks
from psij._handlers import apart, hand_over, interrupting
from psij._validate import attached_id
from psij.exceptions import InvalidJobException, SubmitException
from psij.executors import _local_ends
from psij.executors import _local_proc as proc
from psij.executors._local_engine import GRACE_S, engine
from psij.executors._local_plan import make_plan, options
from psij.executors._local_records import Record, bar, read
from psij.executors._local_run import LocalRun, outcome_of
from psij.executors._local_spawn import LaunchError
from psij.executors._local_watched import Outcome, Watched
from psij.executors.batch._terms import DEEDS, Order
from psij.job import Job
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.rendered import Rendered

__all__ = ["LocalJobExecutor"]

_T = TypeVar("_T")
_AHEAD = 16             # starts that the starter has been asked for and not done, at most
_FEWER = 8              # how many are left of them before more are asked for
_WRITING_S = 1.0        # from the end of a process until its starter has written it down, at most
_STARTING_S = 30.0      # after which a job of which only the first line is recorded counts as not there


class LocalJobExecutor(JobExecutor):
    """Runs jobs as processes on this machine. url is not used."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self.records: Path | None = None        # where starts and ends are recorded, so that they outlive us
        self._runs: dict[str, LocalRun] = {}        # by job id; changed in single steps, for signal handlers look at it
        self._inherited: dict[str, LocalRun] = {}   # in a forked child: those of the parent
        self._lock = threading.RLock()         # for the jobs of a run
        _forks.tell(self)

    def submit(self, job: Job) -> None:
        """Start the job at once, or as soon as its files are staged in.

        A job that cannot be started (no such executable or directory, a file that cannot be opened) becomes FAILED
        with reason ``launch``. Raises InvalidJobException, InvalidStateException; SubmitException (transient) when the
        system is out of processes, memory or descriptors.
        """
        if interrupting():
            run = self._taken(job, self._check_job(job))
            hand_over(partial(self._begin_later, run))
        else:
            apart(partial(self._submit, job), partial(self._take_back, job))

    def _submit(self, job: Job) -> None:
        run = self._taken(job, self._checked(job))
        self._step(run, run.begin)

    def _take_back(self, job: Job) -> None:
        """End a job that nobody is to know of: a signal handler raised while it was submitted."""
        self.cancel(job)
        job.wait(2 * GRACE_S)

    def _begin_later(self, run: LocalRun) -> None:
        """Start a job of which ``submit`` has returned already: where it cannot be started it becomes FAILED."""
        try:
            run.begin()
        except Exception as e:
            if run.watched.pid:         # it runs, and is looked after
                raise
            run.fail(e.reason if isinstance(e, LaunchError) else "launch", str(e))

    def render(self, jobs: Sequence[Job]) -> Rendered:
        """What ``submit`` would start for a job; nothing is. Raises InvalidJobException, LaunchError."""
        (job,) = jobs
        spec = self._check_job(job)
        plan = make_plan(spec, {})
        command, _ = LocalRun(self, job, time.time())._command(job, spec, plan)
        changed = {name: value for name, value in plan.environment.items() if os.environb.get(name) != value}
        streams = {name: path or os.devnull for name, path in (
            ("stdin", plan.stdin), ("stdout", plan.stdout), ("stderr", plan.stderr))}
        return Rendered(tuple(map(os.fsdecode, command)), {}, plan.directory,
                        {os.fsdecode(name): os.fsdecode(value) for name, value in changed.items()}, streams)

    def _submit_all(self, jobs: Iterable[Job], on_job: Callable[[Job, Exception | None], None]) -> None:
        """Submit many: while some are being started the next is made ready. Not for the main thread, where a signal
        handler may raise between a start and its answer."""
        many = _Many(self, on_job)
        try:
            for job in jobs:
                many.submit(job)
        finally:
            many.complete()

    def _checked(self, job: Job) -> JobSpec:
        """The specification of a job that is as it should be. Raises InvalidJobException, InvalidStateException."""
        spec = self._check_job(job)
        if spec.launcher not in (None, Launcher.DEFAULT_LAUNCHER_NAME):
            self._launcher(spec)
        return spec

    def _taken(self, job: Job, spec: JobSpec) -> LocalRun:
        """A run for a job that was checked. Raises InvalidJobException for its options, InvalidStateException."""
        if spec.attributes is not None and spec.attributes.custom_attributes:
            options(spec)
        run = LocalRun(self, job, time.time())
        job._bind(self)
        self._runs[job.id] = run
        return run

    def _step(self, run: LocalRun, act: Callable[[], _T]) -> _T | None:
        """Do something to start a job; where it cannot be started the job fails, and is undone where it may be later.
        Raises SubmitException, and whatever else the act does."""
        try:
            return act()
        except LaunchError as e:
            if not e.transient:
                run.fail(e.reason, str(e))
                return None
            self._undo(run)
            raise SubmitException(str(e), e, transient=True) from e
        except BaseException:
            if not run.watched.pid:         # else it runs, and is looked after
                self._undo(run)
            raise

    def _launcher(self, spec: JobSpec) -> Launcher:
        try:
            return Launcher.get_instance(spec.launcher or Launcher.DEFAULT_LAUNCHER_NAME, config=self.config)
        except ValueError as e:
            raise InvalidJobException(f"launcher: {e}", e) from e

    def _undo(self, run: LocalRun) -> None:
        run.release()
        self._close(run)
        run.jobs[0]._unbind()

    def _close(self, run: LocalRun) -> list[Job]:
        """Forget a run; the jobs that are to get its final status."""
        with self._lock:
            run.ended_for_good = True
            for job in run.jobs:
                self._runs.pop(job.id, None)
            return run.jobs

    def cancel(self, job: Job) -> None:
        """End the job with all its processes; it is CANCELED when they are gone.

        Nothing happens when it has ended. A job of another executor of this kind is ended by that one. Raises
        InvalidStateException when it was never submitted.
        """
        job._check_reach()
        if job.status.final:
            return
        run = self._runs.get(job.id)
        if run is not None:
            run.canceled = True
            engine().stop(run.watched, "cancel")
        elif not job.status.final and (owner := job._owner(self)) is not self:
            owner.cancel(job)

    def suspend(self, job: Job) -> None:
        """Stop the processes of a job (SIGSTOP) until it is resumed or ended; its time limit goes on. Nothing happens
        where it has ended. Raises SubmitException where its processes cannot be told now, or it is not followed
        here."""
        self._tell(job, "suspend", signal.SIGSTOP)

    def resume(self, job: Job) -> None:
        """Let the processes of a job go on (SIGCONT). As ``suspend``."""
        self._tell(job, "resume", signal.SIGCONT)

    def signal(self, job: Job, name: str) -> None:
        """Send a signal to all processes of a job. name: as ``USR1``. As ``suspend``."""
        self._tell(job, "signal", signal.Signals[f"SIG{name}"])

    def _tell(self, job: Job, order: Order, number: int) -> None:
        if job.status.final:
            return
        run = self._runs.get(job.id)
        if run is None or not run.watched.pid:
            raise SubmitException(f"Job {job.id} cannot be {DEEDS[order]}: it does not run here", transient=True)
        try:
            run.tell(number)
        except OSError as e:
            raise SubmitException(f"Job {job.id} cannot be {DEEDS[order]}: {e.strerror}", e, transient=True) from e

    def list(self) -> list[str]:
        """Process ids of the jobs of this executor that have not ended."""
        for run in list(self._inherited.values()):
            for job in run.jobs:
                job._follow_here()
        runs = [run for run in list(self._runs.values()) if run.watched.pid]
        return list(dict.fromkeys(str(run.watched.pid) for run in runs))

    def _forked(self) -> None:
        """In a forked child: the parent's engine looks after its jobs, and its locks are nobody's."""
        self._lock = threading.RLock()
        self._inherited = {**self._inherited, **self._runs}
        self._runs = {}

    def _follow_in_fork(self, job: Job) -> None:
        """In a forked child: follow the process of a job of the parent, as ``attach`` does."""
        old = self._inherited.pop(job.id, None)
        if old is None or not old.watched.pid or old.watched.ended is not None:
            job._is_out_of_reach("it was not running when that was done")
            return
        engine().start()
        run = LocalRun(self, job, old.submitted)
        run.started, run.processors, run.script, run.record = old.started, old.processors, old.script, old.record
        run.watched = watched = old.watched.elsewhere(run)
        self._runs[job.id] = run
        if watched.teller is None and not watched.seems_alive():
            outcome = Outcome(None, None, None, time.monotonic() - watched.started, None)
            engine().post(lambda: run.ended(outcome))
        else:
            engine().watch(watched)

    def reference(self, job: Job) -> str | None:
        """``pid@start@boot`` of an unfinished job: names its process for good, on this machine. None when ended."""
        run = self._runs.get(job.id)
        if run is None or not run.watched.pid or run.watched.ended is not None:
            return None
        return _reference(run.watched.pid) or None

    def native_id_of(self, job_id: str) -> str | None:
        """What ``reference`` gave, of a job with this id that a process that is gone may have started.

        None when it was not started; then it never will be. Raises SubmitException where there are no records, or when
        it is just being started.
        """
        if self.records is None:
            raise SubmitException(f"{self.name} keeps no records of jobs")
        try:
            if bar(self.records / job_id):
                return None
        except OSError as e:
            raise SubmitException(f"records of jobs cannot be kept in {self.records}: {e.strerror}", e,
                                  transient=True) from e
        record = read(self.records / job_id)
        if record is not None and not record.pid and not record.barred and record.age_s < _STARTING_S:
            raise SubmitException(f"job {job_id} is being started", transient=True)
        return None if record is None or record.barred else record.reference

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a running process.

        native_id: a process id, or what ``reference`` gave. The process of a job gives the job's own result, whichever
        process of our user on this machine has submitted it, also when either has ended (``_local_ends``); of any other
        process the exit status cannot be known: FAILED with reason ``unknown-exit`` when it ends. A process that does
        not exist and was no job makes the job FAILED with reason ``lost``. A process id alone means the job or
        the child process of this program that has it, else the last job that had it, else any process that has it.
        Raises InvalidStateException; SubmitException (transient) when the system is out of memory or descriptors.
        """
        apart(partial(self._attach, job, attached_id(job, native_id)))

    def _attach(self, job: Job, native_id: str) -> None:
        job._attach(self)
        try:
            engine().start()
            self._follow(job, native_id)
        except (OSError, RuntimeError) as e:
            job._unbind()
            raise SubmitException(f"cannot look at process {native_id}: {e}", e, transient=True) from e

    def _follow(self, job: Job, native_id: str) -> None:
        pid = job._native_id = native_id.partition("@")[0]
        record = None if self.records is None else read(self.records / job.id)
        if record is not None and record.pid and native_id in (str(record.pid), record.reference):
            self._attach_recorded(job, record)
            return
        run = next((run for run in list(self._runs.values()) if run.watched.pid and str(run.watched.pid) == pid), None)
        if run is not None and native_id in (pid, _reference(run.watched.pid)):
            self._runs[job.id] = run        # it may be cancelled at once
            engine().post(lambda: self._join(job, run))
        else:
            self._attach_foreign(job, native_id)

    def _join(self, job: Job, run: LocalRun) -> None:
        """In the engine's thread: let a job share the result of a process that is already followed."""
        with self._lock:
            late = run.ended_for_good
            if not late:
                run.jobs.append(job)
        run.announce_to(job, run.started)
        if late:
            self._runs.pop(job.id, None)
            assert run.final is not None
            job.status = run.final

    def _attach_recorded(self, job: Job, record: Record) -> None:
        """Follow a job that a process which is gone has started; its time limit still holds."""
        process = None if record.wait_status is not None else _find(record.reference)
        run = LocalRun(self, job, float(record.head["submitted"]))
        run.started, run.processors = float(record.head["started"]), int(record.head["processors"])
        run.watched = Watched(run, record.pid, own_session=True, tag=job.id, limit=record.head["limit"],
                              started=time.monotonic() - (0.0 if process is None else _age(process)))
        self._runs[job.id] = run
        run.found(process)
        run.announce(run.submitted)
        if process is None:
            engine().post(lambda: run.ended(Outcome(None, None, None, record.wall_s, None)))
            return
        run.watched.known.add((process.pid, process.start))
        engine().watch(run.watched)

    def _attach_foreign(self, job: Job, native_id: str) -> None:
        """Follow a process that this object has not started, or tell how it ended."""
        pid, start = _numbers(native_id)
        process = _find(native_id)
        if process is not None:
            run = self._run_of(job, process)
            is_certain = start is not None or run.watched.teller is not None or process.parent == os.getpid()
            end = None if is_certain else _local_ends.find(process.pid)
            if end is None or proc.is_tagged(process.pid):
                self._runs[job.id] = run
                run.announce(run.started)
                engine().watch(run.watched)
                return
        if pid is None:
            job.status = _lost(native_id)
        else:
            self._tell_end(job, native_id, pid, start, time.monotonic() + _WRITING_S)

    def _run_of(self, job: Job, process: proc.Process) -> LocalRun:
        """A run for a process that this object has not started."""
        run = LocalRun(self, job, _start_time(process))
        run.started = run.submitted
        run.watched = Watched(run, process.pid, own_session=process.session == process.pid,
                              started=time.monotonic() - (time.time() - run.started))
        run.found(process)
        run.watched.known.add((process.pid, process.start))
        run.watched.told_by(process.parent)
        return run

    def _tell_end(self, job: Job, native_id: str, pid: int, start: int | None, until: float) -> None:
        """Tell how a job that has gone has ended. until: when its starter has written that, by the monotonic clock."""
        end = _local_ends.find(pid, None if start is None else start / os.sysconf("SC_CLK_TCK"))
        if end is not None:
            started = time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - end.before)
            run = LocalRun(self, job, started)
            run.started, run.watched.pid = started, pid
            self._runs[job.id] = run
            run.announce(started)
            engine().post(lambda: run.ended(outcome_of(end)))
        elif _may_be_written(pid, until):
            again = partial(self._tell_end, job, native_id, pid, start, until)
            engine().post(lambda: engine().later(again))
        else:
            job.status = _lost(native_id)


class _Many:
    """Jobs that are started together; on_job: of each with what ``submit`` raises, or None."""

    def __init__(self, executor: LocalJobExecutor, on_job: Callable[[Job, Exception | None], None]) -> None:
        self.executor, self.on_job = executor, on_job
        self.begun: deque[LocalRun] = deque()
        self.unchanged = False          # the program has done nothing since the last start was asked for

    def submit(self, job: Job) -> None:
        """Start a job, or begin to."""
        try:
            waits = self._begin(job)
        except Exception as e:
            self._tell(job, e)
        else:
            if not waits:
                self._tell(job, None)
        if len(self.begun) >= _AHEAD:
            self.complete(_FEWER)

    def complete(self, most_open: int = 0) -> None:
        """Wait until no more starts than that are open."""
        try:
            while len(self.begun) > most_open:
                run = self.begun.popleft()
                try:
                    self.executor._step(run, run.complete)
                except Exception as e:
                    self._tell(run.jobs[0], e)
                else:
                    self._tell(run.jobs[0], None)
        finally:
            engine().wake()

    def _tell(self, job: Job, error: Exception | None) -> None:
        self.unchanged = False
        self.on_job(job, error)

    def _begin(self, job: Job) -> bool:
        """Whether the start is open. Where something is lacking, open starts give back what they hold."""
        try:
            return self._once(job)
        except SubmitException as e:
            if not (e.transient and self.begun):
                raise
        self.complete()
        return self._once(job)

    def _once(self, job: Job) -> bool:
        run = self.executor._taken(job, self.executor._checked(job))
        waits = bool(self.executor._step(run, partial(run.begin_ahead, self.unchanged)))
        self.unchanged = waits
        if waits:
            self.begun.append(run)
        return waits


def _reference(pid: int) -> str:
    process = proc.process(pid)
    return "" if process is None or not process.start else f"{pid}@{process.start}@{proc.boot_id()}"


def _numbers(native_id: str) -> tuple[int | None, int | None]:
    """Process id and start, in clock ticks since boot, of a native id or reference: the first is None for what cannot
    name a process of this boot, the second where it is not stated."""
    pid, *more = native_id.split("@")
    if not (pid.isascii() and pid.isdigit() and 1 < int(pid) < 1 << 31):
        return None, None
    if not more:
        return int(pid), None
    if len(more) == 2 and more[0].isascii() and more[0].isdigit() and more[1] == proc.boot_id():
        return int(pid), int(more[0])
    return None, None


def _find(native_id: str) -> proc.Process | None:
    """The living process that a native id or reference names, if we may signal it."""
    pid, start = _numbers(native_id)
    if pid is None:
        return None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):       # no such process, or none that we may signal
        return None
    process = proc.process(pid)
    return process if process is not None and process.living and start in (None, process.start) else None


def _may_be_written(pid: int, until: float) -> bool:
    """Whether a starter that has just waited for a process may be about to keep its end. until: how long that may
    take, by the monotonic clock."""
    process = proc.process(pid)
    return (process is None or not process.living) and time.monotonic() < until and _local_ends.are_kept()


def _start_time(process: proc.Process) -> float:
    """When a process started, seconds since the epoch."""
    return time.time() - _age(process)


def _age(process: proc.Process) -> float:
    """Seconds since a process started; 0 where nobody knows."""
    if not process.start:
        return 0.0
    with suppress(OSError, AttributeError, ValueError):     # not Linux: the time of attaching has to do
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - process.start / os.sysconf("SC_CLK_TCK"), 0.0)
    return 0.0


def _lost(native_id: str) -> JobStatus:
    pid, _ = _numbers(native_id)
    why = f"there is no such process ({native_id})"
    if pid is None:
        why = f"{native_id!r} names no process that could be a job of this machine since its start"
    elif (process := proc.process(pid)) is not None and process.living:
        why = f"process {pid} belongs to another user, or is not the one that is meant ({native_id})"
    return JobStatus(JobState.FAILED, message=f"cannot attach: {why}", metadata={"reason": "lost"})
