"""Executor ``local``: jobs are processes on this machine.

Each job is a process in a session of its own. With launcher ``single`` and no pre- and post-launch the executable is
started directly, without a shell. The time limit (attributes.duration, 10 minutes unless stated, None for none) is
kept: SIGTERM, two seconds, SIGKILL to all processes of the job; the job is FAILED with reason ``timeout``. Processes
that a job leaves behind at its normal end are left alone. A job's standard streams are /dev/null unless stated.

The native identifier is the process id. ``LocalJobExecutor.reference(job)`` gives a longer text that stays right when
ids are reused and after a restart of the machine; ``attach`` takes both.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from psij.exceptions import InvalidJobException, InvalidStateException, SubmitException
from psij.executors import _local_proc as proc
from psij.executors._local_engine import Outcome, Watched, engine
from psij.executors._local_plan import Plan, make_plan, options, processors
from psij.executors._local_spawn import LaunchError, Spawned, end_marked, spawn
from psij.job import Job
from psij.job_executor import JobExecutor
from psij.job_executor_config import JobExecutorConfig
from psij.job_launcher import Launcher
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1

__all__ = ["LocalJobExecutor"]

_LIMIT_SIGNALS = {signal.SIGXCPU: "cpu-limit", signal.SIGXFSZ: "disk-limit"}
_WORDS = {"cancel": "canceled on request", "timeout": "the time limit was reached"}


class _Run:
    """One local process and the jobs that follow it (the submitted one, and those attached to it)."""

    def __init__(self, executor: LocalJobExecutor, job: Job, submitted: float) -> None:
        self.executor = executor
        self.jobs = [job]
        self.submitted = submitted
        self.watched = Watched(self)
        self.spawned: Spawned | None = None
        self.node_file: Path | None = None
        self.processors = 1
        self.floor = 0              # bytes; a peak below it cannot be told from ours before the exec
        self.started = 0.0          # seconds since the epoch
        self.reference = ""

    def ended(self, outcome: Outcome) -> None:
        """Called by the engine: set the final status."""
        try:
            message = self._launch_trouble()
            output = self.spawned.launcher_output() if self.spawned is not None else b""
        finally:
            self.release()
        status = self._final(outcome, message, output)
        for job in self.jobs:
            job.status = status
        self.executor._forget(self)

    def _launch_trouble(self) -> str | None:
        return self.spawned.launch_error() if self.spawned is not None else None

    def release(self) -> None:
        """Let go of files."""
        if self.spawned is not None:
            self.spawned.close()
        if self.node_file is not None:
            with suppress(OSError):
                self.node_file.unlink(missing_ok=True)

    def _final(self, outcome: Outcome, trouble: str | None, output: bytes) -> JobStatus:
        metadata = self._measured(outcome)
        code = _exit_code(outcome.wait_status, metadata)
        if self.spawned is not None:        # reaped, though not by it
            self.spawned.popen.returncode = os.waitstatus_to_exitcode(outcome.wait_status or 0)
        state, reason, message = _verdict(outcome, code, metadata, trouble, output, self.spawned)
        if reason is not None:
            metadata["reason"] = reason
        return JobStatus(state, time=metadata["end_time"], message=message, exit_code=code, metadata=metadata)

    def _measured(self, outcome: Outcome) -> dict[str, Any]:
        metadata: dict[str, Any] = {
            "native_id": str(self.watched.pid), "submit_time": self.submitted, "start_time": self.started,
            "end_time": self.started + outcome.wall_s, "wall_seconds": outcome.wall_s,
            "nodes": [socket.gethostname()], "node_count": 1, "processors": self.processors}
        if outcome.usage is not None:
            metadata["cpu_seconds"] = outcome.usage.ru_utime + outcome.usage.ru_stime
            peak = outcome.usage.ru_maxrss * 1024
            if peak > self.floor:
                metadata["memory_max_bytes"] = peak
        metadata["sources"] = dict.fromkeys(metadata, "measured")
        return metadata


def _exit_code(wait_status: int | None, metadata: dict[str, Any]) -> int | None:
    """The exit code, 128 + n for signal n; the signal itself goes to metadata. None when it is not known."""
    if wait_status is None:
        return None
    code = os.waitstatus_to_exitcode(wait_status)
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
        return JobState.FAILED, "unknown-exit", "it ended, but it was not our child: its exit status is not known"
    if code == 0:
        return JobState.COMPLETED, None, None
    if "signal" in metadata:
        number = int(metadata["signal"])
        return JobState.FAILED, _LIMIT_SIGNALS.get(signal.Signals(number), "signal") if number in _known_signals() \
            else "signal", f"ended by signal {number} ({signal.strsignal(number)})"
    message = f"exit code {code}"
    if spawned is not None and spawned.output is not None and not end_marked(output):
        message = output.decode(errors="replace").strip() or message
    return JobState.FAILED, None, message


def _known_signals() -> set[int]:
    return {int(number) for number in signal.Signals}


class LocalJobExecutor(JobExecutor):
    """Runs jobs as processes on this machine. url is not used."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._runs: dict[str, _Run] = {}        # by job id
        self._lock = threading.Lock()

    def submit(self, job: Job) -> None:
        """Start the job at once.

        A job that cannot be started (no such executable or directory, a file that cannot be opened) becomes FAILED
        with reason ``launch``. Raises InvalidJobException, InvalidStateException; SubmitException (transient) when the
        system is out of processes, memory or descriptors.
        """
        spec = self._check_job(job)
        self._check_local(spec)
        run = _Run(self, job, time.time())
        job._bind(self)
        with self._lock:
            self._runs[job.id] = run
        try:
            self._start(run, job, spec)
        except LaunchError as e:
            self._failed_start(run, job, e)
        except BaseException:
            self._undo(run, job)
            raise

    def _check_local(self, spec: JobSpec) -> None:
        if spec.stage_in or spec.stage_out or spec.cleanup:
            raise InvalidJobException("The local executor does not stage files or clean up (stage_in, stage_out, "
                                      "cleanup)")
        options(spec)
        if spec.launcher not in (None, Launcher.DEFAULT_LAUNCHER_NAME):
            self._launcher(spec)

    def _launcher(self, spec: JobSpec) -> Launcher:
        try:
            return Launcher.get_instance(spec.launcher or Launcher.DEFAULT_LAUNCHER_NAME, config=self.config)
        except ValueError as e:
            raise InvalidJobException(f"launcher: {e}", e) from e

    def _start(self, run: _Run, job: Job, spec: JobSpec) -> None:
        run.processors = processors(spec)
        plan = make_plan(spec, self._node_file(run, job, spec))
        command, script = self._command(job, plan)
        run.started, run.watched.started = time.time(), time.monotonic()
        run.spawned = spawn(command, plan, script)
        run.floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        run.watched.limit = plan.limit
        pid = run.spawned.popen.pid
        run.reference = _reference(pid)
        job._native_id = pid
        job.status = JobStatus(JobState.QUEUED, time=run.submitted,
                               metadata={"native_id": str(pid), "nativeId": pid, "submit_time": run.submitted})
        job.status = JobStatus(JobState.ACTIVE, time=run.started,
                               metadata={"native_id": str(pid), "start_time": run.started})
        run.watched.pid = pid
        engine().watch(run.watched)

    def _node_file(self, run: _Run, job: Job, spec: JobSpec) -> dict[str, str]:
        """Write the list of nodes, one line per process, when there are several; the variable that names it."""
        count = spec.resources.computed_process_count if isinstance(spec.resources, ResourceSpecV1) else 1
        if count <= 1:
            return {}
        folder = self.config.work_directory / "local"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            run.node_file = folder / f"{job.id}.nodefile"
            run.node_file.write_text("localhost\n" * count, encoding="ascii")
        except OSError as e:
            raise LaunchError(f"cannot write the node file in {folder}: {e.strerror}") from e
        return {"PSIJ_NODEFILE": str(run.node_file)}

    def _command(self, job: Job, plan: Plan) -> tuple[list[str], bool]:
        """The command, and whether it is a launcher's."""
        spec = plan.spec
        plain = spec.launcher in (None, Launcher.DEFAULT_LAUNCHER_NAME)
        if plain and spec.pre_launch is None and spec.post_launch is None:
            return [spec.executable or "", *(spec.arguments or ())], False
        shown = Job(spec)               # the job as launchers see it: everything expanded
        shown._id, shown.executor = job.id, self
        try:
            return self._launcher(spec).get_launch_command(shown), True
        except OSError as e:
            raise LaunchError(f"cannot prepare launcher {spec.launcher or 'single'}: {e}") from e

    def _failed_start(self, run: _Run, job: Job, error: LaunchError) -> None:
        if error.transient:
            self._undo(run, job)
            raise SubmitException(str(error), error, transient=True) from error
        run.release()
        self._forget(run)
        metadata = {"submit_time": run.submitted}
        job.status = JobStatus(JobState.QUEUED, time=run.submitted, metadata=dict(metadata))
        job.status = JobStatus(JobState.FAILED, message=f"{error}", metadata={**metadata, "reason": "launch"})

    def _undo(self, run: _Run, job: Job) -> None:
        run.release()
        self._forget(run)
        job._unbind()

    def _forget(self, run: _Run) -> None:
        with self._lock:
            for job in run.jobs:
                self._runs.pop(job.id, None)

    def cancel(self, job: Job) -> None:
        """End the job with all its processes; it is CANCELED when they are gone.

        Nothing happens when it has ended. Raises InvalidStateException when it was never submitted here.
        """
        if job.status.final:
            return
        with self._lock:
            run = self._runs.get(job.id)
        if run is not None:
            engine().stop(run.watched, "cancel")
        elif not job.status.final and job.executor is not self:
            raise InvalidStateException(f"Job {job.id} cannot be canceled: it was not submitted to this executor.")

    def list(self) -> list[str]:
        """Process ids of the jobs of this executor that have not ended."""
        with self._lock:
            runs = [run for run in self._runs.values() if run.watched.pid]
        return list(dict.fromkeys(str(run.watched.pid) for run in runs))

    def reference(self, job: Job) -> str | None:
        """``pid@start@boot`` of an unfinished job: names its process for good, on this machine. None when ended."""
        with self._lock:
            run = self._runs.get(job.id)
        return run.reference if run is not None and run.reference else None

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a running process.

        native_id: a process id, or what ``reference`` gave. The process of a job of this executor object gives the
        job's own result; of any other process the exit status cannot be known: FAILED with reason ``unknown-exit``
        when it ends. A process that does not exist (any more) makes the job FAILED with reason ``lost``.
        """
        job._bind(self)
        job._native_id = native_id.partition("@")[0]
        with self._lock:
            run = next((run for run in self._runs.values() if native_id in (str(run.watched.pid), run.reference)), None)
        if run is not None and run.watched.pid:
            engine().post(lambda: self._join(job, run))
        else:
            self._attach_foreign(job, native_id)

    def _join(self, job: Job, run: _Run) -> None:
        """In the engine's thread: let a job share the result of a process that is already followed."""
        if run.watched.done:
            job.status = _lost(run.reference)
            return
        run.jobs.append(job)
        with self._lock:
            self._runs[job.id] = run
        self._announce_attached(job, run)

    def _attach_foreign(self, job: Job, native_id: str) -> None:
        found = _find(native_id)
        if found is None:
            job.status = _lost(native_id)
            return
        run = _Run(self, job, time.time())
        run.started, run.reference = _start_time(found), _reference(found.pid)
        run.watched = Watched(run, found.pid, child=False, own_session=found.session == found.pid,
                              started=time.monotonic() - (time.time() - run.started))
        run.watched.known.add((found.pid, found.start))
        with self._lock:
            self._runs[job.id] = run
        self._announce_attached(job, run)
        engine().watch(run.watched)

    @staticmethod
    def _announce_attached(job: Job, run: _Run) -> None:
        pid = str(run.watched.pid)
        job.status = JobStatus(JobState.QUEUED, time=run.started, metadata={"native_id": pid, "nativeId": pid})
        job.status = JobStatus(JobState.ACTIVE, time=run.started,
                               metadata={"native_id": pid, "start_time": run.started})


def _reference(pid: int) -> str:
    found = proc.process(pid)
    return "" if found is None else f"{pid}@{found.start}@{proc.boot_id()}"


def _find(native_id: str) -> proc.Process | None:
    """The living process that a native id or reference names, if we may signal it."""
    pid = native_id.partition("@")[0]
    if not (pid.isascii() and pid.isdigit() and 1 < int(pid) < 1 << 31):
        return None
    with suppress(OSError):
        os.kill(int(pid), 0)
        found = proc.process(int(pid))
        if found is not None and found.state not in "ZX" and native_id in (pid, _reference(found.pid)):
            return found
    return None


def _start_time(found: proc.Process) -> float:
    """When a process started, seconds since the epoch."""
    with suppress(OSError, AttributeError, ValueError):
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.time() - since_boot + found.start / os.sysconf("SC_CLK_TCK")
    return time.time()


def _lost(native_id: str) -> JobStatus:
    return JobStatus(JobState.FAILED, message=f"cannot attach: there is no such process ({native_id})",
                     metadata={"reason": "lost"})
