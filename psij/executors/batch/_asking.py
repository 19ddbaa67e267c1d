"""Asking a resource manager: its commands with their limits, the queue, the sources of ends, the search by tag."""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from psij.exceptions import SubmitException
from psij.executors.batch._budget import answer_by, spending
from psij.executors.batch._cluster import Cluster
from psij.executors.batch._hooks import BatchHooks
from psij.executors.batch._host import CutError, Host
from psij.executors.batch._identity import Whose
from psij.executors.batch._sound import sound
from psij.executors.batch._terms import UNKNOWN_ERROR, Source, SourceOffError
from psij.job_executor_config import JobExecutorConfig
from psij.job_status import JobStatus

if TYPE_CHECKING:
    from psij.executors.batch._command import Result
    from psij.executors.batch._followed import LastAnswer

_log = logging.getLogger("psij")
_CLUSTER_S = 10.0                   # the longest to wait for the name of the cluster
# Some commands run behind env(1) or sh(1), which end with this code where the command is not there, and name it.
_NOT_THERE, _WRAPPERS = 127, ("env", "/bin/sh")
_MISSING = re.compile(r"^env: [^\w./-]*([\w./-]+)\W*:|: exec: ([\w./-]+): not found", re.MULTILINE)
_Words = list[str]                  # the method ``list`` hides the built-in inside the class


class BatchAsking(BatchHooks):
    """Runs the commands of the hooks and takes in their answers."""

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._known_cluster: list[Cluster | None] = []      # empty before it was asked for
        self._off: set[str] = set()         # sources that do not exist here
        self._mute: set[str] = set()        # sources that gave no answer when they were asked last

    # --- commands --------------------------------------------------------------------------------------------------

    def _run_command(self, cmd: _Words) -> str:
        """Standard output of a command. Raises CalledProcessError with all its output, TimeoutExpired, OSError."""
        most_s, until = self.config.command_timeout, answer_by.get()
        if until is not None:
            most_s = min(most_s, until - time.monotonic())
            if most_s <= 0:
                raise subprocess.TimeoutExpired(list(cmd), 0)
        return _output_of(self.host, cmd, most_s)

    def _run_submit(self, command: _Words) -> str:
        """The same for a submit command, in our own locale: the job may inherit it. Raises CutError where it has
        answered nothing and said why, though with exit code 0, as those that lose the code of another one do."""
        result = self.host.run(command, self.config.command_timeout, plain=False, look=False)
        output = _checked(self.host, command, result)
        if not output and (words := result.stderr.strip()):
            raise CutError(f"the submit command answered nothing but, on standard error: {words[:500]}")
        return output

    def _ask(self, command: _Words, counts: bool = True) -> tuple[int, str]:
        """Exit code and output of a command. counts: as a question, where its thread has a budget."""
        if counts and (budget := spending.get()) is not None:
            budget.spend()
        try:
            return 0, self._run_command(command)
        except subprocess.CalledProcessError as e:
            return e.returncode, e.output or ""

    def cluster(self) -> Cluster | None:
        """The cluster that the commands talk to, asked once; None where the manager has no words for it.

        Raises SubmitException, transient, where it gives no answer now, or not the whole of one.
        """
        if not self._known_cluster:
            command = self._cluster_command()
            try:
                out = None if command is None else _output_of(
                    self.host, command, min(self.config.command_timeout, _CLUSTER_S), look=False)
            except FileNotFoundError:
                out = None
            except (subprocess.SubprocessError, OSError) as e:
                raise SubmitException(f"{self.name} does not say which cluster it is: {reason(e)}", e,
                                      transient=True) from e
            lines, newline, _ = (out or "").rpartition("\n")       # what was cut off would be another cluster
            try:
                cluster = self._cluster(lines + newline)
            except OSError as e:
                raise SubmitException(f"{self.name} does not say which cluster it is: {reason(e)}", e,
                                      transient=True) from e
            if cluster is None and out is not None:
                raise SubmitException(f"{self.name} does not say which cluster it is", transient=True)
            self._known_cluster.append(cluster)
        return self._known_cluster[0]

    @property
    def is_nameless(self) -> bool:
        """Whether the manager has no words for its cluster, as far as it has been asked."""
        return self._known_cluster == [None]

    def way(self) -> str:
        """How the commands reach their cluster from here: the host, the program, and what of the environment chooses
        the cluster. What is reached by the same way is the same cluster, also while it does not say which."""
        host = self.host
        if not host.is_here:        # what is chosen there is not asked for
            return " ".join([host.way, *([self.url] if self.url else [])])
        program = _program(self.get_list_command())
        chosen = [f"{name}={host.environ[name]}" for name in self._CHOOSING if name in host.environ]
        return " ".join([host.way, host.which(program), *([self.url] if self.url else []), *chosen])

    def brings(self, path: Path) -> str:
        """The path on the host of a program that lies here, which is written there with the first job that starts it.

        It stays there, for nobody knows when it is started last. Raises OSError where it cannot be read.
        """
        content = path.read_bytes()
        remote_path = self.work_directory / f"{sha256(content).hexdigest()[:32]}.script"
        self.host.programs.setdefault(str(remote_path), content)
        return str(remote_path)

    def shows_any(self, tags: Sequence[str]) -> bool:
        """Whether the manager has, or had, a job that bears one of these tags, by its own answer: records of jobs may
        be those of another cluster with the same home. Raises SubmitException, transient, where it does not say."""
        ids_by_tag, answered = BatchAsking._look_up(self, tags)
        if not (ids_by_tag or answered):
            raise SubmitException(f"{self.name} does not say whether it has the jobs", transient=True)
        return bool(ids_by_tag)

    # --- the queue -------------------------------------------------------------------------------------------------

    def _status_commands(self, native_ids: _Words) -> Iterator[tuple[_Words, _Words]]:
        """Status commands and the ids that each is to answer for; one that does not depend on ids comes once."""
        size = self._chunk or len(native_ids)
        if len(native_ids) > size:
            first, other = (self.get_status_command(native_ids[n:n + 1]) for n in (0, 1))
            size = len(native_ids) if first == other else size
        for start in range(0, len(native_ids), size):
            ids = native_ids[start:start + size]
            yield ids, self.get_status_command(ids)

    def _ask_queue(self, command: _Words, last_answer: LastAnswer) -> Mapping[str, JobStatus | None]:
        """Run a status command; statuses by native id. last_answer: native states by id, as of the last answer.

        None as a value: listed, and as before.
        """
        return self.parse_status_output(*self._ask(command))

    # --- ends ------------------------------------------------------------------------------------------------------

    def _accounting_delay(self) -> float:
        """How long the record of an end is waited for; 0 where there is no source of records."""
        has_records = any(not source.late and source.name not in self._off for source in self._sources([]))
        return self.config.accounting_delay if has_records else 0.0

    def _ask_sources(self, native_ids: _Words, late: set[str],
                     whose: Whose) -> tuple[dict[str, dict[str, JobStatus]], bool]:
        """Records by native id and source, and whether a source was silent.

        late: ids for which late sources are asked too. A source is not asked for what one before it has settled.
        whose: the jobs of these ids, of which alone the records count.
        """
        records: dict[str, dict[str, JobStatus]] = {}
        silent = False
        open_ids = native_ids
        for index in range(len(self._sources(native_ids))):
            source = self._sources(open_ids)[index]
            if source.late:
                source = self._sources([native_id for native_id in open_ids if native_id in late])[index]
            if source.name not in self._off:
                silent |= self._ask_source(source, records, whose)
            open_ids = [native_id for native_id in open_ids
                        if not any(status.state.final for status in records.get(native_id, {}).values())]
        return records, silent

    def _ask_source(self, source: Source, records: dict[str, dict[str, JobStatus]], whose: Whose) -> bool:
        """Add what a source knows to the records; whether it was silent."""
        silent = False
        why: Exception | None = None
        for number, command in enumerate(source.commands):
            try:        # all of them are one question, also where there is one for each job
                for native_id, record in source.parse(*self._ask(command, number == 0), whose).items():
                    status, odd = sound(record, whose.of(native_id), time.time())
                    records.setdefault(native_id, {})[source.name] = status
                    for words in odd:
                        whose.leave(native_id, f"{source.name} says that {words}")
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

    def _look_up(self, tags: Sequence[str]) -> tuple[dict[str, _Words], bool]:
        """Native ids of the jobs that bear these tags, by tag, and whether all that was asked has answered: what is in
        no answer was not made then. Each command is run once, however many tags there are."""
        ids_by_tag: dict[str, dict[str, None]] = {}
        commands = self._lookup_commands(tags)
        answered = commands is not None
        for command in commands or ():
            try:
                code, out = self._ask(command)
                if code == 0:
                    shown = self._parse_lookup(out)
                    for tag in tags:
                        ids_by_tag.setdefault(tag, {}).update(dict.fromkeys(shown.get(tag, ())))
                elif not self._says_none(out):
                    answered = False
            except Exception as e:      # of hooks too, which may raise anything
                _log.info("%s does not say which jobs there are: %s", self.name, reason(e))
                answered = False
        return {tag: list(ids) for tag, ids in ids_by_tag.items() if ids}, answered


def _output_of(host: Host, command: _Words, timeout_s: float, *, look: bool = True) -> str:
    return _checked(host, command, host.run(command, timeout_s, look=look))


def _checked(host: Host, command: _Words, result: Result) -> str:
    """What a command has answered. Raises what its exit code says."""
    if result.exit_code == _NOT_THERE and (name := _missing(command, result.stderr)) is not None:
        if not host.is_here:
            raise FileNotFoundError(f"{name!r} is not found on {host.name}")
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if result.exit_code != 0:
        raise subprocess.CalledProcessError(result.exit_code, command, result.output or UNKNOWN_ERROR)
    return result.stdout


def _missing(command: _Words, output: str) -> str | None:
    """The program that the one around it could not find; None where nothing says that."""
    match = _MISSING.search(output) if command[0] in _WRAPPERS else None
    name = "" if match is None else match[1] or match[2]
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
