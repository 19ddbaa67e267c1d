"""Asking a resource manager: its commands with their limits, the queue, the sources of ends, the search by tag."""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING

from psij.executors.batch._command import run
from psij.executors.batch._hooks import BatchHooks
from psij.executors.batch._terms import UNKNOWN_ERROR, Source, SourceOffError
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch._watch import Known

__all__ = ["BatchAsking", "reason", "while_submitting"]

_log = logging.getLogger("psij")
# Some commands run behind env(1) or sh(1), which end with this code where the command is not there, and name it.
_NOT_THERE, _WRAPPERS = 127, ("env", "/bin/sh")
_MISSING = re.compile(r"^env: [^\w./-]*([\w./-]+)\W*:|: exec: ([\w./-]+): not found", re.MULTILINE)
_Words = list[str]                  # the method ``list`` hides the built-in inside the class
#: What the thread that submits does while the submit command runs. A variable of the context, because ``_run_submit``
#: is a hook and takes the command only.
while_submitting: ContextVar[Callable[[], None] | None] = ContextVar("while_submitting", default=None)


class BatchAsking(BatchHooks):
    """Runs the commands of the hooks and takes in their answers."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._off: set[str] = set()         # sources that do not exist here
        self._mute: set[str] = set()        # sources that gave no answer when they were asked last

    # --- commands --------------------------------------------------------------------------------------------------

    def _run_command(self, cmd: _Words) -> str:
        """Standard output of a command. Raises CalledProcessError with all its output, TimeoutExpired, OSError."""
        return _output_of(cmd, self.config.command_timeout, {**os.environ, "LC_ALL": "C"})

    def _run_submit(self, command: _Words) -> str:
        """The same for a submit command, in our own locale: the job may inherit it."""
        return _output_of(command, self.config.command_timeout, os.environ, while_submitting.get())

    def _ask(self, command: _Words) -> tuple[int, str]:
        """Exit code and output of a command."""
        try:
            return 0, self._run_command(command)
        except subprocess.CalledProcessError as e:
            return e.returncode, e.output or ""

    # --- the queue -------------------------------------------------------------------------------------------------

    def _status_commands(self, native_ids: _Words) -> Iterator[tuple[_Words, _Words]]:
        """Status commands and the ids that each is to answer for; one that does not depend on ids comes once."""
        size = self._chunk or len(native_ids)
        if len(native_ids) > size:
            one, other = (self.get_status_command(native_ids[n:n + 1]) for n in (0, 1))
            size = len(native_ids) if one == other else size
        for start in range(0, len(native_ids), size):
            ids = native_ids[start:start + size]
            yield ids, self.get_status_command(ids)

    def _ask_queue(self, command: _Words, known: Known) -> Mapping[str, JobStatus | None]:
        """Run a status command; statuses by native id. known: native states by id, as of the last answer.

        None as a value: listed, and as before.
        """
        return self.parse_status_output(*self._ask(command))

    # --- ends ------------------------------------------------------------------------------------------------------

    def _accounting_delay(self) -> float:
        """How long the record of an end is waited for; 0 where there is no source of records."""
        known = any(not source.late and source.name not in self._off for source in self._sources([]))
        return self.config.accounting_delay if known else 0.0

    def _ask_sources(self, native_ids: _Words, late: set[str]) -> tuple[dict[str, dict[str, JobStatus]], bool]:
        """Records by native id and source, and whether a source was silent.

        late: ids for which late sources are asked too. A source is not asked for what one before it has settled.
        """
        records: dict[str, dict[str, JobStatus]] = {}
        silent = False
        open_ids = native_ids
        for index in range(len(self._sources(native_ids))):
            source = self._sources(open_ids)[index]
            if source.late:
                source = self._sources([one for one in open_ids if one in late])[index]
            if source.name not in self._off:
                silent |= self._ask_source(source, records)
            open_ids = [one for one in open_ids
                        if not any(status.state.final for status in records.get(one, {}).values())]
        return records, silent

    def _ask_source(self, source: Source, records: dict[str, dict[str, JobStatus]]) -> bool:
        """Add what a source knows to the records; whether it was silent."""
        silent = False
        why: Exception | None = None
        for command in source.commands:
            try:
                for native_id, status in source.parse(*self._ask(command)).items():
                    records.setdefault(native_id, {})[source.name] = status
            except (SourceOffError, FileNotFoundError, PermissionError) as e:
                _log.info("%s: there is no %s: %s", self.name, source.name, reason(e))
                self._off.add(source.name)
                return silent
            except Exception as e:
                silent, why = True, e
        if source.commands:
            self._note(source.name, why)
        return silent

    def _note(self, source: str, error: Exception | None) -> None:
        """Log that a source gives no records, once until it does again."""
        if error is None:
            self._mute.discard(source)
        elif source not in self._mute:
            self._mute.add(source)
            _log.warning("%s: %s gives no records: %s", self.name, source, "; ".join(reason(error).splitlines()))

    # --- the search by tag -----------------------------------------------------------------------------------------

    def _look_up(self, job: Job) -> _Words | None:
        """Native ids of jobs that bear our tag; None when a command gave no answer, or there is none to ask."""
        found: dict[str, None] = {}
        commands = self._lookup_commands(job)
        answered = commands is not None
        for command in commands or ():
            try:
                code, out = self._ask(command)
                if code == 0:
                    found.update(dict.fromkeys(self._parse_lookup(job, out)))
                elif not self._says_none(out):
                    answered = False
            except (subprocess.SubprocessError, OSError, ValueError):
                answered = False
        return list(found) if found or answered else None


def _output_of(command: _Words, timeout_s: float, environment: Mapping[str, str],
               meanwhile: Callable[[], None] | None = None) -> str:
    result = run(command, timeout_s, environment, meanwhile=meanwhile)
    if result.exit_code == _NOT_THERE and (name := _missing(command, result.stderr)) is not None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if result.exit_code != 0:
        raise subprocess.CalledProcessError(result.exit_code, command, result.output or UNKNOWN_ERROR)
    return result.stdout


def _missing(command: _Words, said: str) -> str | None:
    """The program that the one around it could not find; None where nothing says that."""
    found = _MISSING.search(said) if command[0] in _WRAPPERS else None
    name = "" if found is None else found[1] or found[2]
    return name if name and (name in command or f"exec {name} " in " ".join(command)) else None


def reason(error: BaseException) -> str:
    """Why a command could not be run or failed, for people."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{_program(error.cmd)} took longer than {error.timeout:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        return str(error.output or "").strip() or f"exit code {error.returncode}"
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename!r} is not found (PATH is {os.environ.get('PATH', '')!r})"
    if isinstance(error, OSError) and error.filename and error.errno in (errno.EACCES, errno.ENOEXEC):
        return f"{error.filename!r}: {error.strerror} (PATH is {os.environ.get('PATH', '')!r})"
    return str(error)


def _program(command: object) -> str:
    """The name of the program in a command, behind env(1) and its variables."""
    words = [str(word) for word in command] if isinstance(command, list) else [str(command)]
    while len(words) > 1 and (words[0] in ("env", "-u") or "=" in words[0]):
        words = words[2 if words[0] == "-u" else 1:]
    return os.path.basename(words[0])
