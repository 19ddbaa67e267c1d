"""Executor ``iri``: jobs of a facility that speaks the IRI Facility API (v1 or v2).

The facility, the resource and the token are in the configuration::

    [executors.iri]
    url = "https://api.example.org/api/v2"
    resource = "perlmutter"
    token_file = "~/.config/facility.token"

A submission carries the id of the job as its Idempotency-Key: it is sent again where there was no answer, and makes one
job. How jobs stand is asked every ``polling_interval`` seconds, of many jobs by pages of a list. Files are not staged.
Source: the contract of the DOE IRI Facility API as its reference server has it, August 2026.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psij.exceptions import InvalidJobException, SubmitException
from psij.executors._polling import PlaceException, PollingExecutor, RESTExecutorConfig
from psij.executors._rest_calls import Facility, FacilityError
from psij.job import Job
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.serialize import JSONSerializer
from sssjob.lrm.iri import facility_members

__all__ = ["IRIExecutorConfig", "IRIJobExecutor", "facility_form"]

_Names = list[str]              # the method ``list`` hides the built-in inside the class
_Jobs = list[dict[str, Any]]
_PAGE = 100             # jobs of one answer
_FEW = 10               # jobs that are asked for one by one
_REFUSED = (400, 409, 413, 415, 422, 501)       # the description is wrong, or wants what is not there
#: State of the API -> of PSI/J.
_STATES = {"new": JobState.QUEUED, "queued": JobState.QUEUED, "held": JobState.QUEUED, "active": JobState.ACTIVE,
           "completed": JobState.COMPLETED, "failed": JobState.FAILED, "canceled": JobState.CANCELED}


class IRIExecutorConfig(RESTExecutorConfig):
    """Settings of the executor: those of RESTExecutorConfig, and resource: the name or id of what runs the jobs."""

    def __init__(self, launcher_log_file: str | Path | None = None, work_directory: str | Path | None = None, *,
                 url: str | None = None, resource: str | None = None, token_file: Path | str | None = None,
                 polling_interval: float = 10.0, request_timeout: float = 30.0, lost_after: float = 60.0) -> None:
        super().__init__(launcher_log_file, work_directory, url=url, token_file=token_file,
                         polling_interval=polling_interval, request_timeout=request_timeout, lost_after=lost_after)
        self.resource = resource


def facility_form(spec: JobSpec) -> dict[str, Any]:
    """A specification as a facility takes it: whole seconds, and what differs by default said. A job without a time
    limit has that of the facility.

    Raises InvalidJobException for what has no place in it: files that are staged, a part of a second.
    """
    try:
        return facility_members(json.loads(JSONSerializer().dumps(spec)))
    except ValueError as e:
        raise InvalidJobException(str(e), e) from e


class IRIJobExecutor(PollingExecutor):
    """Runs jobs at a facility. url: as in the configuration, before which it counts."""

    _CONFIG = IRIExecutorConfig
    _SERVICE = "the facility"

    def submit(self, job: Job) -> None:
        """Submit a job to the resource.

        Raises InvalidJobException where the facility refuses the description, InvalidStateException, and
        SubmitException, which is transient where it may be well later; submitted again, the job is not made twice.
        """
        spec = self._check_job(job)
        facility, resource = self._place()
        form = facility_form(spec)
        try:
            answer = facility.ask("POST", "compute", "job", resource, body=form, key=job.id)
        except FacilityError as e:
            if e.status in _REFUSED:
                raise InvalidJobException(str(e), e) from e
            raise
        native_id = answer.get("id") if isinstance(answer, dict) else None
        if not isinstance(native_id, str) or not native_id:
            raise SubmitException("the facility took the job and did not say what it is called")
        job._bind(self)
        job._native_id = native_id
        self._tell(job, {"status": {"state": "queued"}})
        self._tell(job, answer)
        self._follow(job)

    def _cancel(self, native_id: str) -> None:
        facility, resource = self._place()
        try:
            facility.ask("DELETE", "compute", "cancel", resource, native_id)
        except FacilityError as e:
            if e.status not in (404, 409):      # it has ended
                raise

    def list(self) -> _Names:
        """Ids of the jobs of the resource that have not ended, as far as the facility shows them to this user."""
        return [str(each["id"]) for each in self._listed(historical="false")]

    # -- what is asked
    def _check_place(self) -> None:
        self._place()

    def _place(self) -> tuple[Facility, str]:
        """The facility and the resource. Raises PlaceException where they are not stated."""
        config = self.config
        url, resource, token_file, timeout = self.url, None, None, 30.0
        if isinstance(config, IRIExecutorConfig):
            url, resource, token_file, timeout = (
                url or config.url, config.resource, config.token_file, config.request_timeout)
        if not url or not resource:
            raise PlaceException("executor iri needs the address of a facility (url of IRIExecutorConfig, "
                                      "facility of the configuration) and a resource there")
        try:
            return Facility(url, token_file, timeout), resource
        except ValueError as e:
            raise PlaceException(str(e), e) from e

    def _listed(self, historical: str) -> _Jobs:
        """The jobs of the resource, page by page."""
        facility, resource = self._place()
        jobs: dict[str, dict[str, Any]] = {}
        while True:
            page = facility.ask("POST", "compute", "status", resource, body={}, offset=len(jobs), limit=_PAGE,
                                historical=historical)
            if not isinstance(page, Sequence) or isinstance(page, str):
                raise FacilityError("the facility answered with something else than a list of jobs", 502)
            fresh = {each["id"]: each for each in page if isinstance(each, dict) and isinstance(each.get("id"), str)
                     and each["id"] not in jobs}
            jobs |= fresh
            if len(page) < _PAGE or not fresh:      # a server that knows no pages says the same again
                return [*jobs.values()]

    # -- how jobs stand
    def _look(self) -> None:
        """Ask once how all jobs stand."""
        followed = dict(self._followed)
        if len(followed) > _FEW:
            by_id = {each["id"]: each for each in self._listed(historical="true")}
            for native_id in followed.keys() & by_id.keys():
                self._hear(native_id, by_id[native_id])
        missing = [native_id for native_id in followed if len(followed) <= _FEW or native_id not in by_id]
        facility, resource = self._place()
        for native_id in missing:
            try:
                answer = facility.ask("GET", "compute", "status", resource, native_id, historical="true")
            except FacilityError as e:
                if e.status != 404:
                    raise
                self._unknown(native_id)
            else:
                self._hear(native_id, answer)

    def _hear(self, native_id: str, answer: object) -> None:
        job = self._heard(native_id)
        self._tell(job, answer)
        if job.status.final:
            self._followed.pop(native_id, None)

    def _tell(self, job: Job, answer: object) -> None:
        """Give a job the status that the facility says; what is no status of the contract says nothing."""
        status = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(status, dict) or status.get("state") not in _STATES:
            return
        word, code, message = status["state"], status.get("exit_code"), status.get("message")
        state = _STATES[word]
        self._set_job_status(job, JobStatus(
            state, exit_code=code if type(code) is int and state.final else None,
            message=message if isinstance(message, str) else None, metadata={"native_state": word}))
