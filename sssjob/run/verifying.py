"""A script and what it was converted to, proved on both managers: each is submitted by the manager's own command from a
fresh directory, both are awaited, and what they leave is compared.

Jobs are submitted twice on purpose. Nothing is written into the journal: when this process goes, nobody awaits them.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psij
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.executors.batch._scripts import ScriptSubmission, script_submission, submit_script
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import AccessError, UsageError
from sssjob.run.leavings import Difference, Leavings, differences
from sssjob.run.running import executor_of
from sssjob.run.signals import interrupts
from sssjob.translators.scripts.rows import Dialect, dialect_of

__all__ = ["Side", "Stopped", "Verification", "side_of"]

#: Formats whose executor has another name.
_EXECUTORS: Final = {"pbspro": "pbs", "torque": "pbs_classic"}
_WORK: Final = ".psij"
_STEP_S: Final = 0.5            # seconds after which a time limit is looked at again, at the latest


class Stopped(Exception):
    """The jobs were cancelled before both had ended. why: of ``signals.STOPS``, or ``timeout``."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class Side:
    """One of the two scripts. name: its directory; files: what is put there, the script first; native_id: empty until
    it was submitted; since: when the directory was made, by the clock of its file system."""

    name: str
    dialect: Dialect
    executor: BatchSchedulerExecutor
    files: Mapping[str, bytes]
    directory: Path = Path()
    native_id: str = ""
    since: float = 0.0
    job: psij.Job = field(default_factory=lambda: psij.Job(psij.JobSpec("/bin/true")))

    @property
    def title(self) -> str:
        """What people call the job."""
        return f"{self.name} ({self.dialect.title})"

    def settle(self, root: Path) -> ScriptSubmission:
        """Make the directory with the files; what is going to be run there. The executor gets a work directory of its
        own, for in that of the user there may be the exit file of an old job with the same id."""
        self.executor.config.work_directory = root / _WORK
        self.directory = root / self.name
        self.directory.mkdir(0o700)
        self.since = self.directory.stat().st_mtime
        for name, content in self.files.items():
            (self.directory / name).write_bytes(content)
            (self.directory / name).chmod(0o700)
        return script_submission(self.executor, self.directory, next(iter(self.files)))

    def ended(self) -> str:
        """How the job has ended, in words."""
        status = self.job.status
        code = "" if status.exit_code is None else f", exit code {status.exit_code}"
        why = f" ({status.message})" if status.message and status.exit_code is None else ""
        return f"{status.state.name.lower()}{code}{why}"

    def leavings(self) -> Leavings:
        """What the job has left."""
        number = self.native_id.partition(".")[0].partition("[")[0]
        ids = {self.native_id, number}
        if self.dialect.name == "flux" and number.isdigit():
            from sssjob.lrm.flux.ids import write_id

            ids |= {write_id(int(number), form) for form in ("f58", "f58plain")}
        home = None if self.dialect.starts_in == "submit" else Path.home()
        return Leavings(self.title, self.directory, sorted(ids, key=len, reverse=True), frozenset(self.files),
                        self.dialect.files, home, self.since)


def side_of(name: str, format: str, files: Mapping[str, bytes]) -> Side:
    """A script that is to be run. Raises UsageError where the format is none of a manager's scripts, AccessError where
    its manager cannot be reached from here."""
    dialect = dialect_of(format)
    if dialect is None:
        raise UsageError(f"--verify submits scripts to resource managers, and {format} is no format of such scripts")
    executor_name = _EXECUTORS.get(format, format)
    try:
        executor = executor_of(executor_name, BatchSchedulerExecutorConfig())
    except UsageError:
        raise UsageError(f"--verify cannot submit scripts for {dialect.title}: there is no executor for it") from None
    if not isinstance(executor, BatchSchedulerExecutor) or format != executor.SCRIPT_FORMAT:
        raise UsageError(f"--verify cannot submit scripts for {dialect.title}: the executor {executor_name} is for "
                         "others")
    program = executor.get_cancel_command("1")[0]
    if shutil.which(program) is None:
        raise AccessError(program, f"{dialect.title} cannot be reached from here, for this command of it is not in "
                          "PATH; --verify needs both managers")
    return Side(name, dialect, executor, files)


@dataclass(slots=True)
class Verification:
    """Both runs. parent: the directory in which theirs is made, which the nodes of both managers have to see; say: is
    given each line that people may want to read at once; warn: of something that is left to them."""

    sides: tuple[Side, Side]
    parent: Path
    seconds: float
    say: Callable[[str], None]
    warn: Callable[[str], None]
    root: Path | None = None
    events: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    stops: list[str] = field(default_factory=list)

    def run(self) -> list[Difference]:
        """What differs; the directory is gone where nothing does.

        Raises psij.SubmitException (nothing is left in a queue), Stopped, AccessError.
        """
        try:
            self.root = Path(tempfile.mkdtemp(prefix=".sssjob-verify-", dir=self.parent.absolute()))
            submissions = [side.settle(self.root) for side in self.sides]
        except OSError as error:
            raise AccessError(str(self.parent), f"the scripts cannot be put there: {error.strerror}") from error
        for side, submission in zip(self.sides, submissions, strict=True):
            self.say(f"{side.title}: {submission}")
        with interrupts(self.events, self.stops), self._cancelling():
            for side, submission in zip(self.sides, submissions, strict=True):
                self._submit(side, submission)
            self._await()
        for side in self.sides:
            self.say(f"{side.title}: job {side.native_id} {side.ended()}")
        try:
            all_differences = [*_ends(*self.sides), *self._differences()]
        except OSError as error:
            raise AccessError(str(error.filename or self.root), "what the jobs have left cannot be read: "
                              f"{error.strerror or error}") from error
        if not all_differences:
            self._remove()
        return all_differences

    def _differences(self) -> Iterator[Difference]:
        """What differs in what they have left, once it is told which of it is not in their directories."""
        leavings = [side.leavings() for side in self.sides]
        for files in leavings:
            for path in files.outputs(files.files()).values():
                if path.parent == files.home:
                    self.say(f"{files.title}: some of its output is in {path}, and stays there")
        return differences(*leavings)

    def _remove(self) -> None:
        """Remove the directory with all that the jobs have left."""
        if self.root is not None:
            shutil.rmtree(self.root, ignore_errors=True)
            if self.root.exists():
                self.warn(f"{self.root} could not be removed")
            else:
                self.root = None

    def _submit(self, side: Side, submission: ScriptSubmission) -> None:
        self._look_for_stops()
        side.executor.set_job_status_callback(lambda job, status: self.events.put(status))
        try:
            side.native_id = submit_script(side.executor, submission)
            side.executor.attach(side.job, side.native_id)
        except psij.SubmitException as error:
            if not error.transient and not any(side_.native_id for side_ in self.sides):
                self._remove()
            raise psij.SubmitException(f"{side.title}: {error}", error, transient=error.transient) from error

    def _await(self) -> None:
        """Return when both jobs have ended. Raises Stopped."""
        until = time.monotonic() + self.seconds
        while not all(side.job.status.final for side in self.sides):
            self._look_for_stops()
            seconds_left = until - time.monotonic()
            if seconds_left <= 0:
                raise Stopped("timeout")
            try:
                self.events.get(timeout=min(seconds_left, _STEP_S))
            except queue.Empty:
                continue

    def _look_for_stops(self) -> None:
        if self.stops:
            raise Stopped(self.stops[0])

    @contextmanager
    def _cancelling(self) -> Iterator[None]:
        """Whatever is raised inside, cancel the jobs that have not ended, only those that were submitted here; in the
        end follow none of them any more."""
        try:
            yield
        except BaseException:
            for side in self.sides:
                if side.native_id and not side.job.status.final:
                    self._cancel(side)
            raise
        finally:
            for side in self.sides:
                side.executor.leave(side.job)

    def _cancel(self, side: Side) -> None:
        try:
            side.executor.cancel(side.job)
            self.say(f"{side.title}: job {side.native_id} is cancelled")
        except (psij.SubmitException, psij.InvalidStateException) as error:
            self.warn(f"{side.title}: job {side.native_id} could not be cancelled and may go on: {error}")


def _ends(original: Side, converted: Side) -> Iterator[Difference]:
    """Whether the jobs have ended otherwise; an exit code that one manager does not tell is like any."""
    codes = [side.job.status.exit_code for side in (original, converted)]
    if original.job.status.state != converted.job.status.state or (None not in codes and codes[0] != codes[1]):
        yield Difference("end", f"{original.title} {original.ended()}; {converted.title} {converted.ended()}")
