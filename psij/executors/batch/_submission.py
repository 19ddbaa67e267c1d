"""Submissions: the script, the submit command, and the search for a job whose submission got no answer.

A submission is never repeated before the job was looked for by its tag: twice the same job is worse than an error.
"""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

from psij.exceptions import QueueFullException, SubmitException
from psij.executors.batch._asking import BatchAsking, reason
from psij.executors.batch._host import CutError, UnreachableError
from psij.executors.batch._terms import UNKNOWN_ERROR, Failure
from psij.job import Job

_log = logging.getLogger("psij")
_TRANSIENT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ETXTBSY}
_LOOKUP_S = (0.5, 10.0)             # shortest and longest pause between two questions by tag


class Submissions:
    """The submissions of one executor.

    unanswered: times of those of which nobody knows what became of them, by id of the job. said: what the answers said
    beside the id, until it is taken.
    """

    def __init__(self, executor: BatchAsking) -> None:
        self.unanswered: dict[str, float] = {}
        self.said: dict[str, dict[str, Any]] = {}
        self._executor = executor
        self._cleared: set[Path] = set()            # work directories that were cleared of old files
        self._brought: set[str] = set()             # programs that were written on the host
        self._ready: dict[str, Path] = {}           # by id of the job: scripts that were written ahead
        self._doubts: set[str] = set()              # why jobs are looked for, as far as that was logged

    def prepare(self, job: Job) -> None:
        """Write the script of a job ahead of its submission."""
        if job.id not in self.unanswered and job.id not in self._ready:
            self._ready[job.id] = self._write_script(job)

    def is_ready(self, job: Job) -> bool:
        """Whether a job was prepared."""
        return job.id in self._ready

    def withdraw(self, job: Job) -> None:
        """Remove the script of a job that was prepared and is not submitted."""
        if (script := self._ready.pop(job.id, None)) is not None:
            with suppress(OSError):     # it stays behind; clear_old removes it one day
                self._executor.host.remove(script)

    def submit(self, job: Job) -> tuple[str, float]:
        """Native id and time of submission. Raises SubmitException as BatchSchedulerExecutor.submit says."""
        if job.id in self.unanswered:
            submitted = self.unanswered[job.id]
            native_id = self._search(job, "an earlier submission of it got no answer")
            if native_id is not None:
                return native_id, submitted
        try:
            self.prepare(job)
        except OSError as e:
            place = e.filename or self._executor.work_directory
            raise SubmitException(f"The submit script cannot be written: {place}: {e.strerror or e}", e,
                                  transient=_may_pass(e)) from e
        path = self._ready.pop(job.id)
        submitted = time.time()
        try:
            return self._native_id(job, path), submitted
        except BaseException:
            if job.id not in self.unanswered:
                with suppress(OSError):     # what is raised matters more; clear_old removes it one day
                    self._executor.host.remove(path)
            raise

    def _write_script(self, job: Job) -> Path:
        executor = self._executor
        host = executor.host
        if executor.work_directory not in self._cleared:
            host.make_private(executor.work_directory)
            self._cleared.add(executor.work_directory)
            host.clear_old(executor.work_directory, time.time())
        program = os.fspath(job.spec.executable or "") if job.spec is not None else ""
        if program in host.programs and program not in self._brought:
            self._brought.add(program)
            host.write(Path(program), host.programs[program], 0o700)
        text = self.script(job)
        path = executor._script_path(job)
        content = text.encode("utf-8", "surrogateescape")
        try:
            host.write(path, content, executor._SCRIPT_MODE)
            return path
        except FileExistsError:         # of an earlier submission of this very job, known not to have worked
            host.remove(path)
        except FileNotFoundError:       # somebody has removed the directory meanwhile
            host.make_private(executor.work_directory)
        host.write(path, content, executor._SCRIPT_MODE)
        return path

    def script(self, job: Job) -> str:
        """The text of a job's submit script."""
        executor, text = self._executor, StringIO()
        executor.generate_submit_script(job, executor._create_script_context(job), text)
        return text.getvalue()

    def _native_id(self, job: Job, path: Path) -> str:
        executor = self._executor
        try:
            with executor._prepared(job, path):
                out = executor._run_submit(executor.get_submit_command(job, path))
        except subprocess.CalledProcessError as e:
            return self._after_failure(job, e)
        except subprocess.TimeoutExpired as e:
            return self._search_or_raise(job, f"the submit command took longer than {e.timeout} s", e)
        except CutError as e:
            return self._search_or_raise(job, reason(e), e)
        except OSError as e:
            raise SubmitException(f"The submit command cannot be run: {reason(e)}", e, transient=_may_pass(e)) from e
        except (KeyboardInterrupt, SystemExit):
            self.unanswered.setdefault(job.id, time.time())
            raise
        if not out.endswith("\n") and executor._lookup_commands([job.id]) is not None:
            return self._search_or_raise(job, f"the answer {out[:500]!r} may be cut off", None)     # 4 of 42
        try:
            native_id = (executor.array_id_from_submit_output if job.id in executor._arrays
                         else executor.job_id_from_submit_output)(out)
        except Exception as e:
            return self._search_or_raise(job, f"no job id in the answer {out.strip()[:500]!r}", e)
        if not isinstance(native_id, str) or not executor._is_native_id(native_id):
            return self._search_or_raise(job, f"no job id in the answer {out.strip()[:500]!r}", None)
        self.said[job.id] = executor._said_of_submission(out)
        return native_id

    def _after_failure(self, job: Job, error: subprocess.CalledProcessError) -> str:
        output = error.output.strip()
        if output in ("", UNKNOWN_ERROR):
            output = f"exit code {error.returncode}, no message"
        meaning = self._executor._classify_failure(error.returncode, error.output)
        if meaning is Failure.UNKNOWN:
            return self._search_or_raise(job, output, error)
        if meaning is Failure.FULL:
            raise QueueFullException(output, error) from error
        raise SubmitException(output, error, transient=meaning is Failure.LATER) from error

    def _search_or_raise(self, job: Job, why: str, error: BaseException | None) -> str:
        native_id = self._search(job, why, error)
        if native_id is None:
            if (full := self._waited_for_room(error)) is not None:
                raise QueueFullException(f"{full} ({why})", error) from error
            raise SubmitException(f"The job was not submitted: {why}", error, transient=True) from error
        return native_id

    def _waited_for_room(self, error: BaseException | None) -> str | None:
        """What a submit command said that tried again and again by itself until its time was up, because there were as
        many jobs as may be; None where it did not."""
        if not isinstance(error, subprocess.TimeoutExpired):
            return None
        output = b"\n".join(text for text in (error.output, error.stderr) if isinstance(text, bytes)).decode(
            "utf-8", "replace").strip()
        return output if self._executor._classify_failure(1, output) is Failure.FULL else None

    def _search(self, job: Job, why: str, error: BaseException | None = None) -> str | None:
        """The native id of a job of which nobody knows whether it was made; None when it was not.

        Raises SubmitException when that cannot be found out.
        """
        executor = self._executor
        self.unanswered.setdefault(job.id, time.time())
        can_ask = executor._lookup_commands([job.id]) is not None
        if not (can_ask or executor._RECORDS_TELL):
            raise SubmitException(f"Nobody knows whether the job was submitted: {why}", error) from error
        until, pause, answered = time.monotonic() + executor.config.lost_after, _LOOKUP_S[0], False
        while True:
            shown, answered = executor._look_up([job.id])
            if native_ids := shown.get(job.id):
                del self.unanswered[job.id]
                if len(native_ids) > 1:
                    _log.warning("Job %s was made %s times: %s; the first is followed", job.id, len(native_ids),
                                 native_ids)
                return native_ids[0]
            seconds_left = until - time.monotonic()
            if seconds_left <= 0:
                break
            if why not in self._doubts:
                self._doubts.add(why)
                _log.warning("%s: %s; whether there is a job all the same is found out for %.0f s", executor.name,
                             "; ".join(why.splitlines()), seconds_left)
            time.sleep(min(pause, seconds_left))
            pause = min(pause * 2, _LOOKUP_S[1])
        if answered:
            del self.unanswered[job.id]
            return None
        silence = f", {executor.name} does not answer" if can_ask else ""
        raise SubmitException(f"Nobody knows whether the job was submitted{silence}: {why}", error,
                              transient=can_ask) from error


def _may_pass(error: OSError) -> bool:
    """Whether a later try may succeed."""
    return isinstance(error, UnreachableError) or error.errno in _TRANSIENT
