"""A script and what it was converted to, proved on both managers: each is submitted by the manager's own command from a
fresh directory, here or on a host behind SSH, both are awaited, and what they leave is compared.

Jobs are submitted twice on purpose. Nothing is written into the journal: when this process goes, nobody awaits them.
"""

from __future__ import annotations

import queue
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psij
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from psij.executors.batch._scripts import ScriptSubmission, fetch_files, script_submission, submit_script
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import AccessError, UsageError
from sssjob.findings import escape
from sssjob.lrm.reasons import ALIASES
from sssjob.run.configuring import config_of, load_settings, site_layer
from sssjob.run.leavings import Difference, Leavings, differences
from sssjob.run.running import executor_of
from sssjob.run.signals import interrupts
from sssjob.translators.scripts.rows import Dialect, dialect_of

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

__all__ = ["Side", "Stopped", "Verification", "side_of"]

_WORK: Final = ".psij"
_LOOK_FOR: Final = 'command -v "$1" || exit 1'      # 127 would say that there is no sh
#: Prints the files of the home directory that are newer than $1 and have a name like $2.
_NEW_AT_HOME: Final = 'cd && exec find . ! -name . -prune -type f -newer "$1" -name "$2"'
_STEP_S: Final = 0.5            # seconds after which a time limit is looked at again, at the latest


class Stopped(Exception):
    """The jobs were cancelled before both had ended. why: of ``signals.STOPS``, or ``timeout``."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(slots=True)
class Side:
    """One of the two scripts. name: its directory; files: what is put there, the script first; site: the name of one
    that is not what commands reach here without a profile, else empty; root: in which its directory is made, where the
    job runs; directory: where what it has left is looked at, here; native_id: empty until it was submitted; since: when
    the directory was made, by the clock of its file system."""

    name: str
    dialect: Dialect
    executor: BatchSchedulerExecutor
    files: Mapping[str, bytes]
    site: str = ""
    root: Path = Path()
    directory: Path = Path()
    native_id: str = ""
    since: float = 0.0
    job: psij.Job = field(default_factory=lambda: psij.Job(psij.JobSpec("/bin/true")))
    _real: Path = Path()        # where the job runs, without links

    @property
    def title(self) -> str:
        """What people call the job."""
        return f"{self.name} ({self.dialect.title}{f', {self.site}' if self.site else ''})"

    @property
    def place(self) -> str:
        """The directory that the job runs in, with the host where that is not this machine."""
        return self.named(self.root / self.name)

    def named(self, path: Path) -> str:
        """A path of the host that commands run on, with the host where that is not this machine."""
        host = self.executor.host
        return str(path) if host.is_here else f"{host.name}:{path}"

    def settle(self, root: Path) -> ScriptSubmission:
        """Make the directory with the files; what is going to be run there. The executor gets a work directory of its
        own, for in that of the user there may be the exit file of an old job with the same id. root: a directory here;
        behind SSH one of the same name is made. Raises OSError."""
        host, config = self.executor.host, self.executor.config
        self.root = root if host.is_here else host.place(config.ssh_directory or "~") / root.name
        self.directory = root / self.name
        config.work_directory = self.root / _WORK
        for directory in (self.root, self.root / self.name):
            host.make_private(directory)
        for name, content in self.files.items():
            host.write(self.root / self.name / name, content, 0o700)
        self._real = host.real(self.root / self.name)           # what was to be written is there then
        if host.is_here:
            self.since = self.directory.stat().st_mtime
        return script_submission(self.executor, self.root / self.name, next(iter(self.files)))

    def ended(self) -> str:
        """How the job has ended, in words."""
        status = self.job.status
        code = "" if status.exit_code is None else f", exit code {status.exit_code}"
        why = f" ({status.message})" if status.message and status.exit_code is None else ""
        return f"{status.state.name.lower()}{code}{why}"

    def leavings(self) -> Leavings:
        """What the job has left; from a host behind SSH it is copied first. Raises StagingError, OSError."""
        number = self.native_id.partition(".")[0].partition("[")[0]
        home = None if self.dialect.starts_in == "submit" else Path.home()
        if not self.executor.host.is_here:
            home = self._fetch(number)
        ids = {self.native_id, number}
        if self.dialect.name == "flux" and number.isdigit():
            from sssjob.lrm.flux.ids import write_id

            ids |= {write_id(int(number), form) for form in ("f58", "f58plain")}
        return Leavings(self.title, self.directory, sorted(ids, key=len, reverse=True), frozenset(self.files),
                        self.dialect.files, home, self.since, (self.root / self.name, self._real))

    def _fetch(self, number: str) -> Path | None:
        """Copy the directory, and those files in the home directory that may be streams of the job; where these are."""
        fetch_files(self.executor, {self.root / self.name: self.directory})
        if self.dialect.starts_in == "submit":
            return None
        script, home = self.root / self.name / next(iter(self.files)), Path(self.executor.host.home)
        copies = self.directory.with_name(f"{self.name}.home")
        answer = self.executor.host.run(["/bin/sh", "-c", _NEW_AT_HOME, "sh", str(script), f"*{number}*"],
                                        self.executor.config.command_timeout)
        names = [name.removeprefix("./") for name in answer.stdout.splitlines()]
        fetch_files(self.executor, {home / name: copies / name for name in names if "/" not in name})
        return copies

    def stays(self, path: Path) -> str:
        """Where a file of the home directory is, which ``leavings`` names as it is here."""
        return self.named(Path(self.executor.host.home) / path.name)

    def remove(self) -> None:
        """Remove the directory on a host behind SSH. Raises OSError, subprocess.SubprocessError."""
        host = self.executor.host
        if not host.is_here and self.root.name:
            answer = host.run(["rm", "-rf", "--", str(self.root)], self.executor.config.command_timeout)
            if answer.exit_code:
                raise OSError(0, answer.stderr.strip() or f"rm ended with {answer.exit_code}")


def side_of(name: str, format: str, files: Mapping[str, bytes], site: Site | None = None, path: str = "") -> Side:
    """A script that is to be run. site: whose manager takes it, with the path of its profile; else the one whose
    commands are here.

    Raises UsageError where the format is none of a manager's scripts, or not that of the site's, AccessError where its
    manager cannot be reached.
    """
    dialect = dialect_of(format)
    if dialect is None:
        raise UsageError(f"--verify submits scripts to resource managers, and {format} is no format of such scripts")
    try:
        executor = _executor(format, site, path)
    except UsageError as error:
        why = "there is no executor for it" if site is None else f"{path}: {error}"
        raise UsageError(f"--verify cannot submit scripts for {dialect.title}: {why}") from None
    if not isinstance(executor, BatchSchedulerExecutor) or format != executor.SCRIPT_FORMAT:
        whose = f"the executor {executor.name}" if site is None else f"{path}: its executor {executor.name}"
        raise UsageError(f"--verify cannot submit scripts for {dialect.title}: {whose} is for others")
    _check_reach(executor, dialect)
    return Side(name, dialect, executor, files, "" if site is None else site.name)


def _executor(format: str, site: Site | None, path: str) -> psij.JobExecutor:
    if site is None:
        return executor_of(ALIASES.get(format, format), BatchSchedulerExecutorConfig())
    stated = site_layer(site, path).values.get("executor")
    if stated is None:
        raise UsageError("the profile names no manager")
    name = str(stated.value)
    return executor_of(name, config_of(name, load_settings((site, path)).stated(name)))


def _check_reach(executor: BatchSchedulerExecutor, dialect: Dialect) -> None:
    """Raise AccessError unless a command of the manager is found where the executor runs its commands."""
    host, program, where = executor.host, executor.get_cancel_command("1")[0], "from here"
    if host.is_here:
        is_there = shutil.which(program) is not None
    else:
        where = f"on {host.name}"
        try:
            answer = host.run(["/bin/sh", "-c", _LOOK_FOR, "sh", program], executor.config.command_timeout)
        except (OSError, subprocess.SubprocessError) as error:
            raise AccessError(host.name, f"cannot be reached: {_why(error).removeprefix(f'{host.name}: ')}") from error
        is_there = not answer.exit_code
    if not is_there:
        raise AccessError(program, f"{dialect.title} cannot be reached {where}, for this command of it is not in PATH; "
                          "--verify needs both managers")


def _why(error: OSError | subprocess.SubprocessError) -> str:
    """What an error says of files or of a host, without the file."""
    return escape(getattr(error, "strerror", None) or str(error), 400)


@dataclass(slots=True)
class Verification:
    """Both runs. parent: the directory in which theirs is made, which the nodes of managers here have to see; say: is
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
        except OSError as error:
            raise AccessError(str(self.parent), f"the scripts cannot be put there: {_why(error)}") from error
        submissions = [self._settle(side, self.root) for side in self.sides]
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
        except (OSError, subprocess.SubprocessError) as error:
            raise AccessError(str(getattr(error, "filename", None) or self.root), "what the jobs have left cannot be "
                              f"read: {_why(error)}; it is kept in {' and '.join(self.kept())}") from error
        if not all_differences:
            self._remove()
        return all_differences

    def _settle(self, side: Side, root: Path) -> ScriptSubmission:
        """What is going to be run for one of them; nothing is left where its files cannot be put there."""
        try:
            return side.settle(root)
        except (OSError, subprocess.SubprocessError) as error:
            self._remove()
            raise AccessError(side.place, f"the scripts cannot be put there: {_why(error)}") from error

    def _differences(self) -> Iterator[Difference]:
        """What differs in what they have left, once it is told which of it is not in their directories."""
        leavings = [side.leavings() for side in self.sides]
        for side, files in zip(self.sides, leavings, strict=True):
            for path in files.outputs(files.files()).values():
                if path.parent == files.home:
                    self.say(f"{files.title}: some of its output is in {side.stays(path)}, and stays there")
        return differences(*leavings)

    def kept(self) -> list[str]:
        """The directories that are still there, behind SSH too; one here in which nothing is goes now."""
        if self.root is None:
            return []
        with suppress(OSError):
            self.root.rmdir()
        places = [str(self.root)] if self.root.exists() else []
        return [*places, *dict.fromkeys(side.named(side.root) for side in self.sides if not side.executor.host.is_here)]

    def _remove(self) -> None:
        """Remove the directories with all that the jobs have left."""
        for side in self.sides:
            try:
                side.remove()
            except (OSError, subprocess.SubprocessError) as error:
                self.warn(f"{side.named(side.root)} could not be removed: {_why(error)}")
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
