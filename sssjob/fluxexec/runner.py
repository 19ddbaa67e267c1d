"""A runner that runs jobs through a PSI/J executor.

With ``split`` each rank of a job is a PSI/J job of its own, as Flux has a shell a rank; without, one PSI/J job asks for
as many nodes as there are ranks, and the executor places them. Executors are asked in a thread of its own, for that may
take its time. With a folder, the native ids of all shells are kept there, and a later process finds them again.

What PSI/J has no word for is left out: only ``cancel`` ends a job, with the executor's own time between SIGTERM and
SIGKILL; nobody gets a SIGALRM first.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGTERM

from psij import InvalidJobException, Job, JobExecutor, JobSpec, JobState, JobStatus, SubmitException
from psij.references import literal
from sssjob.document.lexical import LexicalError
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.messages import Start
from sssjob.fluxexec.psijspec import spec_of
from sssjob.fluxexec.service import Ended, Lost, NotStarted, Report, Up, What
from sssjob.fluxexec.usage import usage_of
from sssjob.lrm.flux.errors import JobspecError
from sssjob.lrm.flux.jobspec import Jobspec, shares
from sssjob.lrm.idset import Idset

__all__ = ["PsijRunner", "what_ended"]

log = logging.getLogger("sssjob.fluxexec")
_LOST = ("lost", "unknown-exit")


class _Shell(Job):
    """A job that tells of its statuses at once, not from psij's thread for callbacks."""

    def __init__(self, spec: JobSpec | None = None) -> None:
        super().__init__(spec)
        self.changed: Callable[[JobStatus], None] = _nobody

    def _advance(self, status: JobStatus) -> None:
        super()._advance(status)
        self.changed(status)


def _nobody(status: JobStatus) -> None:
    """Nobody wants to be told."""


@dataclass(slots=True)
class _Run:
    id: int
    ranks: list[Idset | None]
    report: Report | None
    jobs: list[_Shell] = field(default_factory=list)
    last: dict[int, list[What]] = field(default_factory=dict)       # of each shell, for who asks again
    ending: bool = False
    left: int = 0           # to be submitted
    held: list[tuple[int, What]] | None = None      # what is told once the native ids are recorded


_Call = _Run | Callable[[], object] | None      # None: the last


class _Worker:
    """A thread that makes calls one after another; an exception in one call does not stop the next.

    submit: takes a series of runs that stand directly behind each other in the queue, in place of single calls.
    """

    def __init__(self, submit: Callable[[Iterator[_Run]], None]) -> None:
        self.calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._submit = submit
        self._next: list[_Call] = []        # taken from the queue, and not its turn yet
        self._thread = threading.Thread(target=self._run, name="flux-exec", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Make the calls that are waiting, and no more."""
        self.calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (call := self._next.pop() if self._next else self.calls.get()) is not None:
            try:
                if isinstance(call, _Run):
                    self._submit(self._runs(call))
                else:
                    call()
            except Exception:
                log.exception("flux-exec worker")

    def _runs(self, first: _Run) -> Iterator[_Run]:
        run: _Call = first
        while isinstance(run, _Run):
            yield run
            try:
                run = self.calls.get_nowait()
            except queue.Empty:
                return
        self._next.append(run)


class PsijRunner:
    """folder: where native ids are kept. split: a PSI/J job a rank; None: for the executor ``local`` only."""

    def __init__(self, loop: Loop, executor: JobExecutor, *, folder: Path | None = None,
                 split: bool | None = None) -> None:
        self.loop, self.executor, self.folder = loop, executor, folder
        self.split = executor.name == "local" if split is None else split
        self._runs: dict[int, _Run] = {}
        self._lock = threading.Lock()               # of what runs hold back
        self._shells: dict[str, tuple[_Run, int]] = {}      # being submitted, by the id of the PSI/J job
        self._worker = _Worker(self._submit)
        if executor.name == "local":        # starts hundreds a second
            loop.crowded = lambda: not self._worker.calls.empty()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if hasattr(executor, "records"):
                executor.records = folder / "records"

    def start(self, start: Start, report: Report) -> Sequence[Idset | None]:
        """Begin to submit. Raises JobspecError."""
        job, variables = start.jobspec, {"FLUX_JOB_ID": str(start.id)}
        ranks = None if start.resources is None else start.resources.ranks
        specs: list[tuple[Idset | None, JobSpec]]
        try:
            if self.split and ranks is not None:
                specs = [(rank, spec_of(job, tasks, variables=variables, limit=False))
                         for rank, tasks in shares(job.tasks, ranks)]
                _tell_limit(job, [spec for _, spec in specs])
            else:
                nodes = None if ranks is None or self.split else ranks.count
                specs = [(ranks, spec_of(job, job.tasks, nodes, variables=variables, limit=not self.split))]
        except InvalidJobException as error:
            raise JobspecError(str(error)) from error
        for _, spec in specs:
            _literal(spec)
        if len(specs) > 1:
            _share_streams([spec for _, spec in specs])
        run = self._runs[start.id] = _Run(start.id, [rank for rank, _ in specs], report)
        run.jobs = [_Shell(spec) for _, spec in specs]
        run.held = None if self.folder is None else []
        self._later(run)
        return run.ranks

    def find(self, start: Start, report: Report) -> Sequence[Idset | None] | None:
        """The shells of a job that was left, or that an earlier process has started."""
        run = self._runs.get(start.id)
        if run is None:
            run = self._recovered(start.id)
        if run is None:
            return None
        run.report = report
        for shell, events in sorted(run.last.items()):
            for what in events:
                self._pass_on(run, shell, what)
        return run.ranks

    def terminate(self, job: int, *, force: bool = False) -> None:
        """Cancel all that was submitted."""
        run = self._runs.get(job)
        if run is not None:
            run.ending = True
            self._later(lambda: self._cancel(run))

    def leave(self, job: int) -> None:
        """Do not report any more."""
        if job in self._runs:
            self._runs[job].report = None

    def forget(self, job: int) -> None:
        """A job is over: its record goes."""
        run = self._runs.pop(job, None)
        if run is None:
            return
        run.report = None
        for shell in run.jobs:
            shell.changed = _nobody         # who was told names the shell: let go of both
        if self.folder is not None:
            self._later(lambda: self._path(job).unlink(missing_ok=True))

    def close(self) -> None:
        """Finish what was begun."""
        self._worker.finish()

    def end_all(self, seconds: float) -> None:
        """End all that runs, and wait for it so long."""
        from datetime import timedelta

        for number in list(self._runs):
            self.terminate(number)
        self.close()
        for run in self._runs.values():
            for job in run.jobs:
                if job.executor is not None:
                    job.wait(timedelta(seconds=seconds))

    def _later(self, call: _Call) -> None:
        self._worker.calls.put(call)

    # In the worker's thread

    def _submit(self, runs: Iterator[_Run]) -> None:
        self.executor._submit_all(self._jobs(runs), self._submitted)

    def _jobs(self, runs: Iterator[_Run]) -> Iterator[_Shell]:
        for run in runs:
            run.left = len(run.jobs)
            for shell, job in enumerate(run.jobs):
                if run.ending:
                    self._told_of(run, shell, NotStarted("it was ended before it was started"))
                    continue
                self._follow(run, shell, job)
                self._shells[job.id] = run, shell
                yield job

    def _submitted(self, job: Job, error: Exception | None) -> None:
        """Whatever a plug-in raises, the job must come to an end."""
        run, shell = self._shells.pop(job.id)
        self._told_of(run, shell, None if error is None else NotStarted(str(error) or type(error).__name__))

    def _told_of(self, run: _Run, shell: int, what: What | None) -> None:
        if what is not None:
            self._tell(run, shell, what)
        run.left -= 1
        if not run.left:
            self._write(run)
            self._let_go(run)
            if run.ending:
                self._cancel(run)

    def _cancel(self, run: _Run) -> None:
        for job in run.jobs:
            if job.executor is not None:
                try:
                    job.cancel()
                except SubmitException as error:
                    log.warning("job %d cannot be cancelled: %s", run.id, error)

    def _follow(self, run: _Run, shell: int, job: _Shell) -> None:
        """Have the statuses of a job told as what happens to a shell, in whatever thread they are set."""
        up = False

        def changed(status: JobStatus) -> None:
            """Report a start and an end of the job as those of the shell."""
            nonlocal up
            if status.state is JobState.ACTIVE:
                up = True
                self._tell(run, shell, Up())
            elif status.final:
                self._tell(run, shell, what_ended(status, up))

        job.changed = changed

    def _tell(self, run: _Run, shell: int, what: What) -> None:
        """What is told to have started is found again, whenever this process is killed: its record is there before."""
        if run.held is not None:
            with self._lock:
                if run.held is not None:
                    run.held.append((shell, what))
                    return
        self.loop.post(lambda: self._told(run, shell, what))

    def _let_go(self, run: _Run) -> None:
        with self._lock:
            held, run.held = run.held or (), None
            for shell, what in held:
                self.loop.post(partial(self._told, run, shell, what))

    # In the loop's thread

    def _told(self, run: _Run, shell: int, what: What) -> None:
        if self._runs.get(run.id) is run:
            run.last.setdefault(shell, []).append(what)
            if run.report is not None:
                run.report(shell, what)

    def _pass_on(self, run: _Run, shell: int, what: What) -> None:
        if run.report is not None:
            report = run.report
            self.loop.soon(lambda: report(shell, what))

    # Records

    def _path(self, job: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{job}.json"

    def _write(self, run: _Run) -> None:
        """Record the native ids of a job, where there is a folder."""
        if self.folder is None or self._runs.get(run.id) is not run:
            return
        reference = getattr(self.executor, "reference", lambda job: None)
        shells = [{"ranks": None if ranks is None else str(ranks), "id": job.id,
                   "native_id": reference(job) or job.native_id}
                  for ranks, job in zip(run.ranks, run.jobs, strict=True)]
        path = self._path(run.id)
        new = path.with_suffix(".new")
        try:
            new.write_text(json.dumps({"executor": self.executor.name, "shells": shells}))
            os.replace(new, path)
        except OSError as error:
            log.warning("job %d cannot be found again: %s", run.id, error)

    def _recovered(self, number: int) -> _Run | None:
        """A job that an earlier process has recorded."""
        if self.folder is None:
            return None
        try:
            record = json.loads(self._path(number).read_text())
            shells = [(None if s["ranks"] is None else Idset.parse(s["ranks"]), str(s["id"]), s["native_id"])
                      for s in record["shells"]]
            if record["executor"] != self.executor.name or not all(native for *_, native in shells):
                return None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, LexicalError) as error:
            log.warning("record of job %d cannot be read: %s", number, error)
            return None
        run = self._runs[number] = _Run(number, [ranks for ranks, *_ in shells], None)
        for _, name, _ in shells:
            job = _Shell()
            job._id = name              # under which the executor may have records of its own
            run.jobs.append(job)
        natives = [str(native) for *_, native in shells]
        self._later(lambda: self._attach(run, natives))
        return run

    def _attach(self, run: _Run, natives: list[str]) -> None:
        for shell, (job, native) in enumerate(zip(run.jobs, natives, strict=True)):
            self._follow(run, shell, job)
            try:
                self.executor.attach(job, native)
            except Exception as error:
                self._tell(run, shell, Lost(str(error) or type(error).__name__))
        if run.ending:
            self._cancel(run)


def _tell_limit(job: Jobspec, specs: Sequence[JobSpec]) -> None:
    """Tell the surroundings of shells of the limit that the service keeps."""
    for spec in specs if job.duration >= 1 else ():
        assert spec.attributes is not None
        if "wall_limit_secs" not in job.features:
            spec.attributes.set_custom_attribute("mjf.wall_limit_secs", int(job.duration))


def _literal(spec: JobSpec) -> None:
    """Keep ``${``, which a jobspec means to the letter, from being expanded."""
    arguments, environment = spec.arguments or [], spec.environment or {}
    if any("${" in text for text in (*arguments, *environment.values())):
        spec.environment = {name: literal(text) for name, text in environment.items()}
        spec.arguments = [literal(text) for text in arguments]


def _share_streams(specs: Sequence[JobSpec]) -> None:
    """Have the shells of a job write to one file what each would otherwise write over the others'."""
    first = specs[0]
    for path in {first.stdout_path, first.stderr_path} - {None}:
        with suppress(OSError), open(os.path.join(first.directory or "", str(path)), "wb"):
            pass            # emptied; who cannot open it tells so at its start
    for spec in specs:
        assert spec.attributes is not None
        for name in ("stdout", "stderr"):
            spec.attributes.set_custom_attribute(f"local.{name}_mode", "append")


def what_ended(status: JobStatus, up: bool) -> What:
    """What a final status says of a shell. up: it was ACTIVE before."""
    metadata = status.metadata or {}
    reason, wait_status = metadata.get("reason"), _wait_status(status)
    usage = usage_of(metadata)
    if wait_status is not None and reason not in _LOST:
        return Ended(wait_status, reason == "timeout", usage)
    note = status.message or f"the job is {status.state}"
    if wait_status is None:
        if not up:
            return NotStarted(note)
        if status.state is JobState.CANCELED:
            return Ended(SIGTERM, usage=usage)
        if reason != "timeout":
            return Lost(note)
        wait_status = int(SIGTERM)
    if reason in _LOST:
        return Lost(note)
    return Ended(wait_status, reason == "timeout", usage)


def _wait_status(status: JobStatus) -> int | None:
    """As in wait(2); None when neither exit code nor signal is known."""
    metadata = status.metadata or {}
    with suppress(TypeError, ValueError):
        if metadata.get("signal"):
            return int(metadata["signal"]) & 0x7F | (0x80 if metadata.get("core_dumped") else 0)
    if status.exit_code is not None:
        return (status.exit_code & 0xFF) << 8
    return 0 if status.state is JobState.COMPLETED else None
