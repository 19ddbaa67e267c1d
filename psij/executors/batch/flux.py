"""Flux: flux batch, flux jobs, flux cancel; no bindings.

A job is a batch script in a Flux instance of its own, on one slot for each process. States and ends come from
``flux jobs --json``, for all jobs of the user at once and, for those that ended some time ago, by id. Native ids are
decimal, as psij-python's ``list()`` has them; ``attach()`` takes the F58 form too. ``url`` is the FLUX_URI of the
instance, where it is not that of the environment. Seen with 0.88: all outputs but those of ``flux batch`` that fail.
Sources: flux-batch(1), flux-jobs(1), flux-environment(7), RFC 19 (ids), RFC 21 (states), RFC 36 (directives).

Flux has no memory requests and no reservations. It tells neither CPU time nor memory of a job, and the list does not
tell whether a job in the state RUN was started or is in its prolog: it counts as ACTIVE. ``--json`` and ``--since`` are
needed, which old releases do not have.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from psij._validate import attached_id
from psij.exceptions import InvalidJobException
from psij.executors.batch._answers import by_tag, job_state, readable, waiting, whole_lines
from psij.executors.batch._changes import Changes
from psij.executors.batch._cluster import Cluster
from psij.executors.batch._identity import Claim, Whose
from psij.executors.batch._options import (
    custom_directives,
    job_name,
    member_directives,
    requested,
    resources,
    time_limit,
)
from psij.executors.batch._terms import Orders
from psij.executors.batch.batch_scheduler_executor import Source, check_status_exit_code
from psij.executors.batch.lrm import LrmExecutor, Row
from psij.job import Job
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.answers import json_answer
from sssjob.lrm.flux import ANSWERS, EXCEPTIONS, STATES, recorded, waits_for
from sssjob.lrm.flux.ids import read_id
from sssjob.lrm.states import Stage
from sssjob.lrm.usage import present
from sssjob.templates.quoting import Directive, flux, flux_path

__all__ = ["FluxJobExecutor", "decimal_id"]


# R of the job, which the instance that gave it knows. Recorded of 0.88: "starttime": 1795251063.22, "expiration": ...
_TOLD_LINES = r"""_psij_r=$(flux --parent job info "$(flux getattr jobid)" R 2>/dev/null) || _psij_r=
_psij_of() { printf '%s\n' "$_psij_r" | sed -n "s/.*\"$1\": *\([1-9][0-9]*\).*/\1/p"; }
_psij_begin=$(_psij_of starttime) _psij_end=$(_psij_of expiration)
"""

_DECIMAL = re.compile(r"\d{1,20}", re.ASCII)
_RECENTLY = "-10m"          # the list has jobs that ended since then; others are asked for by id
_SUBMITTED_SINCE = "-1h"    # of a job that is looked for by its tag
_LONGEST_NAME = 1024        # bytes; a guess: the manual names no limit
_IDS_AT_ONCE = 1000
_SIZES = ("nslots", "n", "nodes", "N")

_REFUSED = {
    **dict.fromkeys(("output", "error"), "use stdout_path and stderr_path"), "input": "use stdin_path",
    "cwd": "use directory", **dict.fromkeys(("env", "env-remove", "env-file"), "use environment, inherit_environment"),
    **dict.fromkeys(("cc", "bcc"), "a PSI/J job is one job"), "wrap": "there is a script already",
    **dict.fromkeys(("wait", "wait-event", "watch", "progress", "jps"), "it would hold up submit(); use Job.wait()"),
    "dry-run": "no job would be made", **dict.fromkeys(("help", "h"), "no job would be made"),
    "list-plugins": "no job would be made", "quiet": "it hides the job id"}

# The job that an instance is of the one above it, where there is one, and its hosts. Source:
# flux-broker-attributes(7).
_INSTANCE = "flux getattr jobid 2>/dev/null || echo; flux getattr hostlist 2>/dev/null; :"

# Ids and job specifications of the last jobs, a line each.
_LOOKUP = """set -e
ids=$(flux jobs -a -n --count=0 --since="$1" -o '{id.dec}')
for id in $ids; do
    spec=$(flux job info "$id" jobspec)
    printf '%s %s\\n' "$id" "$spec"
done"""


class FluxJobExecutor(LrmExecutor):
    """Executor ``flux``. Custom attributes ``flux.<option>`` are options of flux batch, long or of one letter."""

    _ANSWERS = ANSWERS
    #: A hold is an urgency; what it was before the hold is not known to Flux any more.
    _ORDERS = Orders("flux cancel {}", re.compile("unknown job id|inactive"), hold="flux job urgency {} hold",
                     release="flux job urgency {} default", signal="flux job kill -s SIG{signal} {}",
                     held={"urgency": "hold"})
    #: flux-update(1), by releases from 0.55 on; which keys may be changed is up to plugins of the instance.
    _CHANGES = Changes("flux update {id} {changes}", {
        "job-name": "name=", "time-limit": "duration=", "t": "duration=", "queue": "queue=", "q": "queue="},
        apart={"urgency": "flux job urgency {id} {value}"}, live=frozenset(("time-limit", "t")))
    _TEMPLATE = "flux.sh.j2"
    _PREFIX = "flux"
    _CHOOSING = ("FLUX_URI",)
    _WRITTEN = staticmethod(flux)
    SCRIPT_FORMAT = "flux"
    #: What the broker of the job's own instance says of the end of the script. Seen with 0.88.
    _OF_MANAGER = re.compile(r"^.*\bbroker\.err\[\d+\]: rc2\.0: .* \(rc=\d+\) [\d.]+s\n?", re.MULTILINE)
    _TOLD = Told(_TOLD_LINES, {
        "start_time": ("$_psij_begin", 1),
        "wall_seconds": ("${_psij_end:+$((_psij_end - _psij_begin))}", 1)},
        'flux exec --noinput "$@"')     # on every broker of the job's instance: flux-exec(1)

    def _there(self, command: str, *arguments: str) -> list[str]:
        return [*(["env", f"FLUX_URI={self.url}"] if self.url else []), command, *arguments]

    # --- submitting ------------------------------------------------------------------------------------------------

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        """flux batch, which reads the directives and takes a copy of the script."""
        return self._there("flux", "batch", str(submit_file_path))

    def job_id_from_submit_output(self, out: str) -> str:
        """The id, from the one line that is one."""
        ids = [ident for line in out.splitlines() if (ident := decimal_id(line.strip())) is not None]
        if len(ids) != 1:
            raise ValueError(f"flux batch gave no job id: {out!r}")
        return ids[0]

    def attach(self, job: Job, native_id: str) -> None:
        """Follow a job of Flux. native_id: decimal or F58."""
        super().attach(job, decimal_id(attached_id(job, native_id)) or native_id)

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        """The tag is in the job specification, which no list shows: those of the last hour are read one by one."""
        return [self._there("sh", "-c", _LOOKUP, "sh", _SUBMITTED_SINCE)]

    def _parse_lookup(self, out: str) -> dict[str, list[str]]:
        pairs = []
        lines = (line.partition(" ") for line in out.splitlines() if line.strip())
        for native_id, _, text in readable("flux jobs", lines, lambda line: _DECIMAL.fullmatch(line[0])):
            user = json.loads(text).get("attributes", {}).get("user", {})
            if isinstance(tag := user.get("sssjob", {}).get("id"), str):
                pairs.append((tag, native_id))
        return by_tag(pairs, int)

    def _cluster_command(self) -> list[str]:
        return self._there("/bin/sh", "-c", _INSTANCE)

    def _cluster(self, out: str) -> Cluster | None:
        """The instance: the job that it is of the one above it, and its hosts."""
        lines = [*out.splitlines(), "", ""][:2]
        return Cluster(lines[0] or "system", lines[1]) if lines[1] else None

    def begin_attributes(self, at: float) -> dict[str, object]:
        """``--dependency=begin-time:<seconds since the epoch>``; beside it there is no room for another dependency."""
        return {"flux.dependency": f"begin-time:{math.ceil(at)}"}

    def dependency_attributes(self, after: Mapping[str, Sequence[str]]) -> dict[str, object] | None:
        """``--dependency``, which names one job; an attribute cannot say the option twice."""
        words = [f"after{kind}:{native_id}" for kind, ids in after.items() for native_id in ids]
        return {"flux.dependency": words[0]} if len(words) == 1 else None

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        name = job_name(spec, _LONGEST_NAME)
        directives = [Directive("job-name", name.value, name.field),
                      Directive("output", f"{flux_path(self.work_directory)}/{{{{id.dec}}}}.{job.id}.out",
                                "work_directory"),
                      Directive("setattr", f"user.sssjob.id={job.id}")]
        if spec.attributes is not None and spec.attributes.reservation_id is not None:
            raise InvalidJobException("attributes.reservation_id cannot be used: Flux has no reservations")
        directives += member_directives(spec, (("queue", "queue_name"), ("bank", "account")))
        if (limit := time_limit(spec)) is not None:
            directives.append(Directive("time-limit", _limit(limit), "attributes.duration"))
        custom = custom_directives(spec, self._PREFIX, _REFUSED)
        asked = requested(spec)
        if asked is not None or not any(directive.option in _SIZES
                                        for directive in custom):    # flux batch wants one of these
            directives += _resource_directives(asked or ResourceSpecV1())
        return directives + custom

    def _template_context(self, job: Job, spec: JobSpec, context: Mapping[str, Any]) -> dict[str, Any]:
        asked = resources(spec) or ResourceSpecV1()
        return {**super()._template_context(job, spec, context), "nodes": _nodes(asked) or 0,
                "processes": asked.computed_process_count, "cores": asked.cpu_cores_per_process or 1,
                "gpus": asked.gpu_cores_per_process or 0}

    # --- states ----------------------------------------------------------------------------------------------------

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        """flux jobs for all jobs of the user that have not ended, or not long ago."""
        return self._there("flux", "jobs", "-a", "--count=0", f"--since={_RECENTLY}", "--json")

    def _rows(self, exit_code: int, out: str) -> Iterator[Row]:
        check_status_exit_code("flux jobs", exit_code, out)
        return _rows(json_answer("flux jobs", out)["jobs"])

    def _stands(self, state: str, row: Any) -> str:
        return f"{state} {waits_for(row)}"

    def _claim(self, row: Any) -> Claim:
        return _claim(row)

    def _status(self, state: str, row: Any) -> JobStatus | None:
        return _status(state, row)

    def _sources(self, native_ids: list[str]) -> list[Source]:
        commands = [self._there("flux", "jobs", "--json", *native_ids[start:start + _IDS_AT_ONCE])
                    for start in range(0, len(native_ids), _IDS_AT_ONCE)]
        return [Source("flux-jobs", commands, parse_jobs)]

    # --- the rest --------------------------------------------------------------------------------------------------

    def get_list_command(self) -> list[str]:
        """flux jobs: the user's jobs that have not ended."""
        return self._there("flux", "jobs", "-n", "--count=0", "-o", "{id.dec}")

    def parse_list_output(self, out: str) -> list[str]:
        """One id a line."""
        return [line for line in whole_lines(out) if _DECIMAL.fullmatch(line)]


def decimal_id(text: str) -> str | None:
    """A job id in decimal, from decimal or F58 (RFC 19); None for anything else."""
    if _DECIMAL.fullmatch(text):
        return text
    if text[:1] not in ("f", "ƒ"):
        return None
    try:
        return str(read_id(text))
    except ValueError:
        return None


def _limit(duration: timedelta) -> str:
    """Whole seconds, rounded up; 0 would be no limit."""
    return f"{max(1, -int(-duration.total_seconds() // 1))}s"


def _nodes(asked: ResourceSpecV1) -> int | None:
    """The number of nodes, where it follows from what is said. Whole nodes need one."""
    fixed = asked.node_count is not None or asked.processes_per_node is not None or asked.exclusive_node_use
    return asked.computed_node_count if fixed else None


def _resource_directives(asked: ResourceSpecV1) -> list[Directive]:
    """A slot for each process; with nodes, as many on each."""
    if asked.memory is not None:
        raise InvalidJobException("resources.memory cannot be used: Flux has no memory requests")
    directives = [Directive("nslots", str(asked.computed_process_count), "resources.process_count")]
    nodes = _nodes(asked)
    if nodes is not None:
        directives.append(Directive("nodes", str(nodes), "resources.node_count"))
    if asked.cpu_cores_per_process is not None:
        directives.append(Directive("cores-per-slot", str(asked.cpu_cores_per_process),
                                    "resources.cpu_cores_per_process"))
    if asked.gpu_cores_per_process:
        directives.append(Directive("gpus-per-slot", str(asked.gpu_cores_per_process),
                                    "resources.gpu_cores_per_process"))
    if asked.exclusive_node_use:
        directives.append(Directive("exclusive", None, "resources.exclusive_node_use"))
    return directives


def _rows(jobs: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    for job in readable("flux jobs", jobs, lambda job: isinstance(job, dict) and isinstance(
            job.get("id"), int) and isinstance(job.get("status"), str)):
        yield str(job["id"]), job["status"], job


def _claim(job: Mapping[str, Any]) -> Claim:
    """By name and time: lists do not show the tag. An id holds the time at which the instance gave it, so that it comes
    again in another instance only."""
    name, submitted = job.get("name"), job.get("t_submit")
    return Claim(name=name if isinstance(name, str) else None,
                 submit_time=submitted if isinstance(submitted, int | float) else None)


def parse_jobs(exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
    """Statuses from ``flux jobs --json id ...``: of one id the job itself, else a list; none of an id not known."""
    if re.search(r"^\{", out, re.MULTILINE):
        answer = json_answer("flux jobs", out)
        statuses = ((native_id, _status(state, job)) for native_id, state, job in _rows(answer.get("jobs", [answer]))
                    if whose is None or whose.takes(native_id, _claim(job)))
        return {native_id: status for native_id, status in statuses if status is not None}
    if not re.search(r"\bunknown\b", out):
        check_status_exit_code("flux jobs", exit_code, out)
        if out.strip():
            raise ValueError(f"flux jobs gave no JSON: {out[:200]!r}")
    return {}


def _status(state: str, job: Mapping[str, Any]) -> JobStatus | None:
    """The status for a job as ``flux jobs --json`` has it; None, with a warning, when its state is not known."""
    native = STATES.get(state)
    job_state_ = job_state(native, state, "Flux's job state")
    if native is None or job_state_ is None:
        return None
    used = recorded(job)
    metadata = used.facts(began=True, over=job_state_.final) | present({"phase": native.phase})
    if job_state_ is JobState.QUEUED:
        kind, words = waits_for(job)
        metadata |= waiting(replace(native, waits=None) if kind else native, kind)
        return JobStatus(job_state_, time=used.submit_time, message=words, metadata=metadata)
    if not job_state_.final:
        return JobStatus(job_state_, time=used.start_time if used.ran else used.submit_time, metadata=metadata)
    message, code = None, None
    exception = job.get("exception") or {}
    if native.stage is not Stage.DONE and exception.get("occurred"):
        metadata["reason"] = native.reason or EXCEPTIONS.get(exception.get("type", ""), "exception")
        message = f"Flux says {state}, {exception.get('type')}: {exception.get('note')}"
    if job_state_ is JobState.CANCELED:
        metadata.pop("reason", None)
        message = exception.get("note") or None
    elif used.signal and "reason" not in metadata:
        metadata |= {"signal": used.signal, "reason": "signal"}
        code = 128 + used.signal
    elif "reason" not in metadata:
        code = used.exit_code
    return JobStatus(job_state_, time=used.end_time, message=message, exit_code=code, metadata=metadata)
