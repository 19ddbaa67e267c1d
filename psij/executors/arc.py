"""Executor ``arc``: jobs of an ARC computing element, by the REST interface of A-REX (1.0 and 1.1).

The computing element and the token are in the configuration::

    [executors.arc]
    url = "https://ce.example.org/arex/rest/1.0"
    token_file = "~/.config/ce.token"

A description carries the id of the job as an annotation. The interface knows no key that would make a submission one
job however often it is sent, so that it is sent once; where the answer was lost, the descriptions of the user's jobs
there are searched for that annotation. Input goes to the session directory of a job when it is made, streams and
``stage_out`` come from it when it has ended; who follows the job learns of them by a record in the work directory.
Source: the REST interface of A-REX 6 and 7 as its source has it (nordugrid/arc, services/a-rex/rest).
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from psij.exceptions import InvalidJobException, QueueFullException, SubmitException
from psij.executors._arc_description import SCRIPT, Described, Output, annotation, describe
from psij.executors._polling import PlaceException, PollingExecutor, RESTExecutorConfig
from psij.executors._rest_calls import Facility, FacilityError
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.staging import StageOutFlags
from sssjob.lrm import arc
from sssjob.lrm.states import NativeState, Stage

__all__ = ["ARCExecutorConfig", "ARCJobExecutor"]

_Names = list[str]              # the method ``list`` hides the built-in inside the class
_PAGE = 100                     # jobs of one question
_REFUSED = (400, 413, 415, 422, 501)
_STATES = {Stage.WAITING: JobState.QUEUED, Stage.HELD: JobState.QUEUED, Stage.RUNNING: JobState.ACTIVE,
           Stage.ENDED: JobState.ACTIVE, Stage.DONE: JobState.COMPLETED, Stage.FAILED: JobState.FAILED,
           Stage.CANCELED: JobState.CANCELED}
_ENDS = {JobState.COMPLETED: StageOutFlags.ON_SUCCESS, JobState.FAILED: StageOutFlags.ON_ERROR,
         JobState.CANCELED: StageOutFlags.ON_CANCEL}


class ARCExecutorConfig(RESTExecutorConfig):
    """Settings of the executor: those of RESTExecutorConfig, and accounting_delay: seconds that a job which has ended
    waits for its record, which A-REX renews from time to time. url: of the computing element; without a version, that
    of ``/arex/rest/1.0``."""

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None, *,
                 url: str | None = None, token_file: Path | str | None = None, polling_interval: float = 10.0,
                 request_timeout: float = 30.0, lost_after: float = 60.0, accounting_delay: float = 10.0) -> None:
        super().__init__(launcher_log_file, work_directory, url=url, token_file=token_file,
                         polling_interval=polling_interval, request_timeout=request_timeout, lost_after=lost_after)
        self.accounting_delay = accounting_delay


class ARCJobExecutor(PollingExecutor):
    """Runs jobs at a computing element. url: as in the configuration, before which it counts."""

    _CONFIG = ARCExecutorConfig
    _SERVICE = "the computing element"

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._doubted: set[str] = set()                 # ids of jobs that may have been made
        self._brought: set[str] = set()
        self._others: dict[str, bytes] = {}             # descriptions of jobs there, by their ids
        self._ended: dict[str, float] = {}              # when a job was first heard to have ended

    def submit(self, job: Job) -> None:
        """Submit a job to the computing element.

        Raises InvalidJobException where it refuses the description, InvalidStateException, QueueFullException, and
        SubmitException, which is transient where it may be well later; submitted again, the job is not made twice.
        """
        spec = self._check_job(job)
        facility = self._place()
        described = describe(spec, job.id, frozenset(self._brought))
        records = self._records()
        try:
            records.write(job.id, described)
        except OSError as e:
            raise SubmitException(f"the work directory cannot be used: {e}", e) from e
        try:
            native_id = self.native_id_of(job.id) if job.id in self._doubted else None
            native_id = native_id or self._made(facility, job.id, described.text)
        except Exception:
            if job.id not in self._doubted:
                records.forget(job.id)
            raise
        self._doubted.discard(job.id)
        job._bind(self)
        job._native_id = native_id
        self._set_job_status(job, JobStatus(JobState.QUEUED, metadata={"native_id": native_id,
                                                                      "native_state": "ACCEPTING"}))
        self._bring(facility, job)
        self._follow(job)

    def _cancel(self, native_id: str) -> None:
        self._kill(self._place(), native_id)

    def list(self) -> _Names:
        """Ids of the jobs of this user there that have not ended."""
        return self._ids(arc.UNENDED)

    def native_id_of(self, job_id: str) -> str | None:
        """The id there of the job that bears a tag, None where there certainly is none: the descriptions of the jobs
        of this user are read, each once. Raises SubmitException where that is not known now."""
        facility = self._place()
        text = re.escape(escape(annotation(job_id), quote=False).encode())
        ids = self._ids()
        self._others = {native_id: content for native_id, content in self._others.items() if native_id in set(ids)}
        for native_id in ids:
            if native_id not in self._others:
                try:
                    self._others[native_id] = facility.text("jobs", native_id, "diagnose", "description")
                except FacilityError as e:
                    if e.status != 404:
                        raise
                    continue
            if re.search(rb">\s*" + text + rb"\s*<", self._others[native_id]):
                return native_id
        return None

    def information(self) -> str:
        """What the computing element publishes of itself: GLUE 2.0 in XML. Raises SubmitException."""
        return self._place().text("info", kind="application/xml", schema="glue2").decode(errors="replace")

    def may_have_made(self, job: Job) -> bool:
        """Whether nobody knows what became of the submission of a job."""
        return job.id in self._doubted

    def brings(self, path: Path) -> str:
        """A program that lies here is to go along with the jobs that start it; its path, as it is."""
        self._brought.add(str(path))
        return str(path)

    # -- what is asked
    def _place(self) -> Facility:
        """The computing element. Raises PlaceException where it is not stated."""
        config = self.config
        url, token_file, timeout = self.url, None, 30.0
        if isinstance(config, ARCExecutorConfig):
            url, token_file, timeout = url or config.url, config.token_file, config.request_timeout
        if not url:
            raise PlaceException("executor arc needs the address of a computing element (url of "
                                      "ARCExecutorConfig, facility of the configuration)")
        try:
            return Facility(arc.endpoint(url), token_file, timeout)
        except ValueError as e:
            raise PlaceException(str(e), e) from e

    def _check_place(self) -> None:
        self._place()

    def _records(self) -> _Records:
        return _Records(self.config.work_directory / "arc")

    def _ids(self, states: Iterable[str] = ()) -> _Names:
        """Ids of the jobs of this user, in these states or in all."""
        asked = ",".join(states)
        answer = self._place().ask("GET", "jobs", state=asked) if asked else self._place().ask("GET", "jobs")
        return [each["id"] for each in arc.entries(answer) if isinstance(each.get("id"), str)]

    @staticmethod
    def _about(facility: Facility, action: str, native_ids: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What is answered of each job, by its id. All these actions may be done twice."""
        for start in range(0, len(native_ids), _PAGE):
            asked = native_ids[start:start + _PAGE]
            answer = facility.ask("POST", "jobs", body={"job": [{"id": native_id} for native_id in asked]}, again=True,
                                  action=action)
            for entry in arc.entries(answer):
                if entry.get("id") in asked:
                    yield entry["id"], entry

    def _made(self, facility: Facility, tag: str, text: str) -> str:
        """Make a job; its id there."""
        self._doubted.add(tag)
        try:
            answer = facility.ask("POST", "jobs", body=text, action="new")
        except FacilityError as e:
            native_id = self.native_id_of(tag) if e.transient else None
            if native_id is not None:
                return native_id
            if not e.transient:
                self._doubted.discard(tag)
            if e.status in _REFUSED:
                raise InvalidJobException(str(e), e) from e
            if arc.FULL.search(str(e)):
                raise QueueFullException(str(e), e) from e
            raise
        entry = next(arc.entries(answer), {})
        reason, native_id = str(entry.get("reason") or "it gives no reason")[:500], entry.get("id")
        if str(entry.get("status-code")) == "201" and isinstance(native_id, str) and native_id:
            return native_id
        self._doubted.discard(tag)
        if arc.FULL.search(reason):
            raise QueueFullException(f"the computing element takes no job now: {reason}")
        raise InvalidJobException("the computing element refuses the job: "
                                  + "".join(c if c.isprintable() else "?" for c in reason))

    def _kill(self, facility: Facility, native_id: str) -> None:
        for _, entry in self._about(facility, "kill", [native_id]):
            if str(entry.get("status-code")) not in ("200", "202", "404"):        # 404: it is gone
                raise SubmitException(f"the computing element does not end the job: {entry.get('reason')!s:.500}")

    def _bring(self, facility: Facility, job: Job) -> None:
        """Bring what a job waits for, if anything; what fails now is tried again when it is looked for. A job whose
        files cannot be brought is ended."""
        files = self._records().read(job.id)
        if files is None or not files.inputs or job.native_id is None:
            return
        try:
            for name, path in files.inputs.items():
                facility.put(Path(path), "jobs", job.native_id, "session", *name.split("/"))
        except (FacilityError, OSError) as e:
            if isinstance(e, FacilityError) and e.transient:
                return
            self._kill(facility, job.native_id)
            self._end(job, JobStatus(JobState.FAILED, message=f"a file cannot be brought: {e}",
                                     metadata={"native_id": job.native_id, "reason": "staging"}))
            return
        self._records().write(job.id, Described(outputs=files.outputs))

    # -- how jobs stand
    def _look(self) -> None:
        facility = self._place()
        ended: dict[str, NativeState] = {}
        for native_id, entry in self._about(facility, "status", [*self._followed]):
            code, state = str(entry.get("status-code")), arc.STATES.get(str(entry.get("state")))
            if code == "404" or (state is not None and state.word == "WIPED"):
                if native_id in self._followed and self._unknown(native_id):
                    self._ended.pop(native_id, None)
            elif code == "200" and state is not None and native_id in self._followed:
                job = self._heard(native_id)
                if state.stage in arc.ENDED:
                    ended[native_id] = state
                else:
                    self._goes_on(facility, job, native_id, state)
        for native_id, entry in self._about(facility, "info", [*ended]):
            self._has_ended(facility, native_id, ended[native_id], arc.activity(entry))

    def _goes_on(self, facility: Facility, job: Job, native_id: str, state: NativeState) -> None:
        if state.word in ("ACCEPTING", "ACCEPTED", "PREPARING"):
            self._bring(facility, job)
        if state.stage in _STATES and not job.status.final:
            metadata = {"native_id": native_id, "native_state": state.word}
            self._set_job_status(job, JobStatus(
                _STATES[state.stage], metadata=metadata | ({"phase": state.phase} if state.phase else {})))

    def _has_ended(self, facility: Facility, native_id: str, native: NativeState, record: Mapping[str, Any]) -> None:
        """Give a job its end, when its record is there or does not come, and its files are."""
        job, _ = self._followed[native_id]
        since = time.monotonic() - self._ended.setdefault(native_id, time.monotonic())
        code, facts = arc.facts(record)
        if code is None and native.stage is not Stage.CANCELED and since < self._setting("accounting_delay", 10.0):
            return
        files, state, message = self._records().read(job.id), _STATES[native.stage], arc.errors(record)
        if state is JobState.COMPLETED and code is None and files is not None:
            code = 0                    # its description says that anything else fails
        if state is JobState.COMPLETED and code:
            state = JobState.FAILED
        if files is not None:
            try:
                missing = self._fetch(facility, native_id, state, files.outputs)
            except FacilityError as e:
                if e.transient and since < self._setting("lost_after", 60.0):
                    return
                missing = [str(e)]
            if missing:
                message = "; ".join(filter(None, [message, f"files could not be fetched: {', '.join(missing)}"]))
                state = JobState.FAILED if state is JobState.COMPLETED else state
        if state is JobState.FAILED and message is None:
            message = None if code is None else f"exit code {code}"
        self._end(job, JobStatus(state, facts.get("end_time"), message, code, {
            "native_id": native_id, "native_state": native.word, **facts}))

    def _end(self, job: Job, status: JobStatus) -> None:
        self._followed.pop(str(job.native_id), None)
        self._ended.pop(str(job.native_id), None)
        self._records().forget(job.id)
        self._set_job_status(job, status)

    @staticmethod
    def _fetch(facility: Facility, native_id: str, state: JobState, outputs: Iterable[Output]) -> _Names:
        """Fetch the files of a job; what of them is missing. Raises FacilityError."""
        missing = []
        for output in outputs:
            flags = StageOutFlags(output.flags)
            if not flags & _ENDS[state]:
                continue
            try:
                facility.fetch(Path(output.path), "jobs", native_id, "session", *output.name.split("/"))
            except FacilityError as e:
                if e.status != 404:
                    raise
                if not flags & StageOutFlags.IF_PRESENT:
                    missing.append(f"{output.name} is not there")
            except OSError as e:
                missing.append(f"{output.path}: {e.strerror or e}")
        return missing


class _Records:
    """Which files of jobs are still to be brought there and fetched, for whoever follows them: one file a job, in a
    folder that its owner alone may read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, tag: str) -> Path:
        return self._folder / f"{quote(tag, safe='')}.json"

    def write(self, tag: str, files: Described) -> None:
        """Keep what is to be done for a job; its script becomes one of its inputs. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(tag)
        if files.script is not None:
            script = path.with_suffix(".sh")
            self._put(script, files.script)
            files.inputs[SCRIPT] = str(script)
        self._put(path, json.dumps({"inputs": files.inputs,
                                    "outputs": [[output.name, output.path, output.flags] for output in files.outputs]}))

    @staticmethod
    def _put(path: Path, text: str) -> None:
        fresh = path.with_name(f"{path.name}.new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8",
                  errors="surrogateescape") as file:
            file.write(text)
        os.replace(fresh, path)

    def read(self, tag: str) -> Described | None:
        """What is to be done for a job; None where there is no record, or it is none."""
        try:
            with open(self._path(tag), encoding="utf-8") as file:
                members = json.load(file)
            return Described("", None, {str(name): str(path) for name, path in members["inputs"].items()},
                             [Output(str(name), str(path), int(flags)) for name, path, flags in members["outputs"]])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def forget(self, tag: str) -> None:
        """Nothing is to be done for a job any more."""
        for path in (self._path(tag), self._path(tag).with_suffix(".sh")):
            with suppress(OSError):
                path.unlink()
