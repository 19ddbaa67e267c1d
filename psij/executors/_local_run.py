"""One job on this machine from its submission to its final status: staging, start, end, staging.

The states of the job are set here, by the thread that submits, by the engine's thread and by those that stage; never by
two of them at the same time.
"""

from __future__ import annotations

import getpass
import logging
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psij.executors import _local_proc as proc
from psij.executors._environment import ENVIRONMENT
from psij.executors._local_ends import End, find
from psij.executors._local_engine import engine
from psij.executors._local_plan import Plan, for_launcher, make_plan, processors
from psij.executors._local_records import head, read
from psij.executors._local_spawn import Begun, LaunchError, Spawned, begin, end_marked, spawn
from psij.executors._local_staging import (
    ENDS,
    Staging,
    StagingError,
    StagingStopped,
    in_background,
    spoil,
    staging,
)
from psij.executors._local_watched import Outcome, Watched
from psij.job import Job
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1

if TYPE_CHECKING:
    from psij.executors.local import LocalJobExecutor
    from psij.surroundings import Entered, Surroundings

_LIMIT_SIGNALS = {int(signal.SIGXCPU): "cpu-limit", int(signal.SIGXFSZ): "disk-limit"}
_WORDS = {"cancel": "canceled on request", "timeout": "the time limit was reached"}
_RECORD_TRIES, _RECORD_S = 100, 0.01    # patience with the process that writes how a job ended
_log = logging.getLogger("psij")


class LocalRun:
    """One local process and the jobs that follow it (the submitted one, and those attached to it)."""

    __slots__ = ("begun", "canceled", "command", "ended_for_good", "entered", "executor", "final", "jobs", "node_file",
                 "plan", "processors", "record", "script", "spawned", "staging", "started", "stopped", "submitted",
                 "suspended_s", "watched")

    def __init__(self, executor: LocalJobExecutor, job: Job, submitted: float) -> None:
        self.executor = executor
        self.jobs = [job]
        self.submitted = submitted      # seconds since the epoch
        self.started = 0.0              # seconds since the epoch
        self.watched = Watched(self)
        self.plan: Plan | None = None
        self.command: list[bytes] = []
        self.script = False             # the command is a launcher's
        self.staging: Staging | None = None
        self.begun: Begun | None = None
        self.spawned: Spawned | None = None
        self.node_file: Path | None = None
        self.entered: Entered | None = None     # its surroundings
        self.processors = 1
        self.stopped: float | None = None       # since when it is suspended, by the monotonic clock
        self.suspended_s = 0.0                  # before that
        self.canceled = False
        self.ended_for_good = False
        self.final: JobStatus | None = None
        self.record = None if executor.records is None else executor.records / job.id

    # -- before the start -------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Plan the job. Raises InvalidJobException, LaunchError."""
        job = self.jobs[0]
        spec = job.spec
        assert spec is not None
        self.processors = processors(spec)
        extra = self._node_file(job, spec)
        if spec.inherit_environment:
            self.watched.tag = extra[proc.TAG] = job.id
        if self.executor.config.surroundings is not None:
            extra |= self._enter(job, self.executor.config.surroundings)
        self.plan = make_plan(spec, extra)
        self.watched.limit = self.plan.limit
        if self.record is not None:
            self._make_record(self.record, self.plan)
        self.staging = staging(spec, self.plan.directory)
        self.command, self.script = self._command(job, spec, self.plan)

    def _enter(self, job: Job, surroundings: Surroundings) -> Mapping[str, str]:
        """Make the surroundings of the job; variables of theirs. Raises InvalidJobException."""
        surroundings.check(job)
        try:
            self.entered = surroundings.enter(job, self.processors, job.id)
            return self.entered.variables
        except Exception as e:
            _log.warning("Job %s has no surroundings: %s", job.id, e)
            return {}

    def _leave(self) -> dict[str, Any]:
        """Take the surroundings away; keys for the metadata."""
        entered, self.entered = self.entered, None
        if entered is None:
            return {}
        try:
            return dict(entered.leave())
        except Exception as e:
            _log.warning("Surroundings of job %s: %s", self.jobs[0].id, e)
            return {}

    def _make_record(self, record: Path, plan: Plan) -> None:
        try:
            record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as e:
            raise LaunchError(f"cannot record the job in {record.parent}: {e.strerror}") from e
        plan.record = os.fsencode(record)
        plan.head = head(submitted=self.submitted, started=time.time(), limit=plan.limit, processors=self.processors)

    def _node_file(self, job: Job, spec: JobSpec) -> dict[str, str]:
        """Write the list of nodes, one line per process, when there are several; the variable that names it."""
        resources = spec.resources
        if resources is None or not isinstance(resources, ResourceSpecV1):
            return {}
        count = resources.computed_process_count
        if count <= 1:
            return {}
        folder = self.executor.config.work_directory / "local"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.node_file = folder / f"{job.id}.nodefile"
            self.node_file.write_text("localhost\n" * count, encoding="ascii")
        except OSError as e:
            raise LaunchError(f"cannot write the node file in {folder}: {e.strerror}") from e
        return {"PSIJ_NODEFILE": str(self.node_file)}
    def _command(self, job: Job, spec: JobSpec, plan: Plan) -> tuple[list[bytes], bool]:
        """The command, and whether it is a launcher's."""
        plain = spec.launcher in (None, Launcher.DEFAULT_LAUNCHER_NAME)
        if plain and spec.pre_launch is None and spec.post_launch is None:
            return plan.command, False
        shown = Job(for_launcher(spec, plan))
        shown._id, shown.executor = job.id, self.executor
        try:
            return [os.fsencode(word) for word in self.executor._launcher(spec).get_launch_command(shown)], True
        except OSError as e:
            raise LaunchError(f"cannot prepare launcher {spec.launcher or 'single'}: {e}") from e

    # -- the start --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Plan the job, stage in, if there is something to, and start. Raises LaunchError, InvalidJobException."""
        self._prepare()
        self._begin()

    def begin_ahead(self, unchanged: bool) -> bool:
        """As ``begin``; but where it can be, the start is only asked for, and ``complete`` is to follow: then True.

        unchanged: the program has done nothing since the last job was begun.
        """
        self._prepare()
        plan, plain = self.plan, self.staging is None and not self.script
        if plain and plan is not None:
            self._before()
            self.begun = begin(self.command, plan, unchanged)
        if self.begun is None:
            self._begin()
        return self.begun is not None

    def complete(self) -> None:
        """Wait for a start that was asked for; the engine is to be woken afterwards. Raises LaunchError,
        InvalidJobException."""
        begun, self.begun = self.begun, None
        assert begun is not None
        self._after(begun.complete(), at_once=False)

    def _begin(self) -> None:
        if self.staging is None or not self.staging.stage_in:
            self._start()
            return
        self._set(JobState.QUEUED, self.submitted, submit_time=self.submitted)
        in_background(self._stage_in_and_start)

    def _stage_in_and_start(self) -> None:
        """In a staging thread."""
        assert self.plan is not None and self.staging is not None
        try:
            self._set(JobState.STAGE_IN, time.time())
            self.staging.bring(lambda: self.canceled)
            if self.canceled:
                raise StagingStopped
            self._start()
        except StagingStopped:
            self._never_ran(JobState.CANCELED, "cancel", _WORDS["cancel"])
        except (StagingError, LaunchError) as e:
            self._never_ran(JobState.FAILED, e.reason, str(e))
        except Exception as e:
            self._never_ran(JobState.FAILED, "launch", f"cannot start: {e}")

    def _never_ran(self, state: JobState, reason: str, message: str) -> None:
        assert self.staging is not None
        try:
            self.staging.remove(ENDS[state])
        except StagingError as e:
            message += f"; {e}"
        self.fail(reason, message, state)

    def fail(self, reason: str, message: str, state: JobState = JobState.FAILED) -> None:
        """The final status of a job that was not started."""
        self.release()
        self._set(JobState.QUEUED, self.submitted, submit_time=self.submitted)
        self._close(JobStatus(state, message=message, metadata={"submit_time": self.submitted, "reason": reason}))

    def _start(self) -> None:
        assert self.plan is not None
        self._before()
        self._after(spawn(self.command, self.plan, self.script))

    def _before(self) -> None:
        try:
            engine().start()
        except (OSError, RuntimeError) as e:
            raise LaunchError(f"cannot look after jobs: {e}", transient=True) from e
        self.started, self.watched.started = time.time(), time.monotonic()

    def _after(self, spawned: Spawned, at_once: bool = True) -> None:
        watched = self.watched
        if spawned.began is not None:
            self.started, watched.started = self.started + spawned.began - watched.started, spawned.began
        self.spawned = spawned
        watched.pid, watched.starter = spawned.pid, spawned.starter
        watched.child = watched.starter is None
        self.plan, self.command = None, []      # a job that runs needs no more memory than it has to
        try:
            self.announce(self.submitted)
        finally:                # whatever a signal handler raises
            engine().watch(watched, at_once)

    def announce(self, queued: float) -> None:
        """Tell that it runs. queued: since when it is QUEUED, seconds since the epoch."""
        for job in self.jobs:
            self.announce_to(job, queued)

    def announce_to(self, job: Job, queued: float) -> None:
        """Tell one job that it runs."""
        pid = job._native_id = self.watched.pid
        job._set_status(JobStatus(JobState.QUEUED, queued, metadata={"native_id": str(pid), "nativeId": pid,
                                                                     "submit_time": queued}))
        job._set_status(JobStatus(JobState.ACTIVE, self.started, metadata=self._facts()))

    def tell(self, number: int) -> None:
        """Send a signal to all processes of the job; whether it is suspended is told where that changes. Raises
        OSError."""
        engine().signal(self.watched, number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self._goes_on()
            self.stopped = time.monotonic() if number == signal.SIGSTOP else None
            for job in self.jobs:
                status = job.status
                job._renew(JobStatus(status.state, status.time, status.message, status.exit_code, self._facts()))

    def found(self, process: proc.Process | None) -> None:
        """Take in how a process that was started before stands; None: it has ended."""
        state = "" if process is None else process.state
        if process is not None and state == "D":    # it may wait, as vfork(2) has it, for a child that is stopped
            states = {each.state for each in proc.Snapshot().members(process.pid, set(), None).values()}
            state = "T" if "T" in states and states <= {"D", "T"} else state
        self.stopped = time.monotonic() if state == "T" else None

    def _goes_on(self) -> None:
        """Count the time in which it was suspended, where all of it was seen here."""
        if self.stopped is not None and self.spawned is not None:
            self.suspended_s += time.monotonic() - self.stopped
        self.stopped = None

    def _facts(self) -> dict[str, Any]:
        """What is known of it while it runs."""
        return {"native_id": str(self.watched.pid), "start_time": self.started,
                **({} if self.stopped is None else {"phase": "SUSPENDED"})}

    # -- the end ----------------------------------------------------------------------------------------------------

    def ended(self, outcome: Outcome) -> None:
        """Called by the engine: stage out and clean up, if there is something to; set the final status."""
        trouble, output = None, b""
        leavings = self._leave()
        try:
            if self.spawned is not None:
                trouble, output = self.spawned.launch_error(), self.spawned.launcher_output()
        finally:
            self.release()
        status = self._final(outcome, trouble, output)
        if leavings:
            status.metadata = {**(status.metadata or {}), **leavings}
        if self.staging is None or not (self.staging.stage_out or self.staging.cleanup):
            self._close(status)
        else:
            in_background(partial(self._stage_out, self.staging, status))

    def _stage_out(self, staging: Staging, status: JobStatus) -> None:
        """In a staging thread: what has to be done after the end of the process."""
        end, canceled = ENDS[status.state], status.state is JobState.CANCELED
        try:
            if staging.stage_out:
                self._set(JobState.STAGE_OUT, time.time())
                staging.fetch(end, lambda: self.canceled and not canceled)
            if staging.cleanup:         # only after all was fetched
                self._set(JobState.CLEANUP, time.time())
                staging.remove(end)
        except StagingStopped:
            spoil(status, JobState.CANCELED, "cancel", _WORDS["cancel"])
        except StagingError as e:
            spoil(status, JobState.FAILED, e.reason, str(e))
        except Exception as e:
            _log.exception("Error while staging for a local job")
            spoil(status, JobState.FAILED, "stage-out", str(e))
        status.time = time.time()
        self._close(status)

    def release(self) -> None:
        """Let go of files."""
        self._leave()
        if self.spawned is not None:
            self.spawned.close()
        if self.node_file is not None:
            with suppress(OSError):     # the end of the job is told all the same
                self.node_file.unlink(missing_ok=True)

    def _set(self, state: JobState, when: float, **metadata: Any) -> None:
        for job in self.jobs:
            job.status = JobStatus(state, time=when, metadata=metadata or None)

    def _close(self, status: JobStatus) -> None:
        self.final = status
        for job in self.executor._close(self):
            job.status = status

    def _final(self, outcome: Outcome, trouble: str | None, output: bytes) -> JobStatus:
        self._goes_on()
        outcome = self._recorded(outcome)
        metadata = self._measured(outcome)
        code = _exit_code(outcome.wait_status, metadata)
        state, reason, message = _verdict(outcome, code, metadata, trouble, output, self.spawned)
        if reason is not None:
            metadata["reason"] = reason
        return JobStatus(state, time=metadata["end_time"], message=message, exit_code=code, metadata=metadata)

    def _recorded(self, outcome: Outcome) -> Outcome:
        """The outcome by the record of the job, or by what its starter has kept, where we did not start it."""
        if outcome.wait_status is not None:
            return outcome
        if self.record is None:
            end = find(self.watched.pid, self.watched.started_s())
            return outcome if end is None else outcome_of(end, outcome.why)
        for _ in range(_RECORD_TRIES):
            record = read(self.record)
            if record is None or record.wait_status is not None:
                break
            time.sleep(_RECORD_S)
        if record is None or record.wait_status is None:
            return outcome
        return Outcome(record.wait_status, record.cpu_s, record.peak, record.wall_s, outcome.why)

    def _measured(self, outcome: Outcome) -> dict[str, Any]:
        machine = socket.gethostname()
        metadata: dict[str, Any] = {
            "native_id": str(self.watched.pid), "submit_time": self.submitted, "start_time": self.started,
            "end_time": self.started + outcome.wall_s, "wall_seconds": outcome.wall_s - self.suspended_s,
            "nodes": [machine], "node_count": 1, "processors": self.processors, "machine": machine, "user": _user()}
        if not self.script:         # a launcher's script starts the processes
            metadata |= {"process": self.watched.pid, "session": self.watched.pid}
        if outcome.why is not None and not proc.usable():
            metadata["ended"] = "process group"     # what has left it may go on
        if self.suspended_s:
            metadata["suspend_seconds"] = self.suspended_s
        if outcome.cpu_s is not None:
            metadata["cpu_seconds"] = outcome.cpu_s
        floor = 0 if self.spawned is None else self.spawned.floor
        if outcome.peak is not None and outcome.peak * 1024 > floor:
            metadata["memory_max_bytes"] = outcome.peak * 1024
        metadata["sources"] = dict.fromkeys(metadata, "measured")
        return metadata


def outcome_of(end: End, why: str | None = None) -> Outcome:
    """The outcome by what a starter has kept."""
    return Outcome(end.wait_status, end.cpu_s, end.peak, max(end.ended - end.before, 0.0), why)


_NAMING = (b"LOGNAME", b"USER", b"LNAME", b"USERNAME")      # the variables that getpass asks before the list of users


def _user() -> str:
    """The name of our user, its number where it has none."""
    return _user_by(os.geteuid(), *map(ENVIRONMENT.get, _NAMING))


@lru_cache(maxsize=8)
def _user_by(number: int, *stated: bytes | None) -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(number)


def _exit_code(wait_status: int | None, metadata: dict[str, Any]) -> int | None:
    """The exit code, 128 + n for signal n; the signal itself goes to metadata. None when it is not known."""
    if wait_status is None:
        return None
    code = os.waitstatus_to_exitcode(wait_status)
    metadata["sources"]["exit_code"] = "measured"
    if code >= 0:
        return code
    metadata["signal"] = -code
    metadata["core_dumped"] = os.WCOREDUMP(wait_status)
    metadata["sources"] |= {"signal": "measured", "core_dumped": "measured"}
    return 128 - code


def _verdict(outcome: Outcome, code: int | None, metadata: Mapping[str, Any], trouble: str | None, output: bytes,
             spawned: Spawned | None) -> tuple[JobState, str | None, str | None]:
    """State, reason and message of the end."""
    if outcome.why is not None:
        state = JobState.CANCELED if outcome.why == "cancel" else JobState.FAILED
        return state, outcome.why, _WORDS[outcome.why]
    if trouble is not None:
        return JobState.FAILED, "launch", f"cannot start: {trouble}"
    if code is None:
        return JobState.FAILED, "unknown-exit", "it ended, but its exit status is not known: it was not ours"
    if code == 0:
        return JobState.COMPLETED, None, None
    if "signal" in metadata:
        number = metadata["signal"]
        return JobState.FAILED, _LIMIT_SIGNALS.get(number, "signal"), \
            f"ended by signal {number} ({signal.strsignal(number)})"
    message = f"exit code {code}"
    if spawned is not None and spawned.output is not None and not end_marked(output):
        message = output.decode(errors="replace").strip() or message
    return JobState.FAILED, None, message
