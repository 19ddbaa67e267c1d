"""The IRI Facility API, v1 and v2: its compute part over the same desk, beside what ``facility`` tells.

A resource is an executor. The body of a job is PSI/J's JobSpec with whole seconds; no member of it is ignored: what is
not known or not supported is refused by name. Errors are problem details of RFC 9457.
Source: the contract of the DOE IRI Facility API as its reference server has it, August 2026; v1 and v2 differ here in
the prefix alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sssjob.conversion.converting import Conversion, Options
from sssjob.conversion.intake import take
from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.errors import UnknownJobError, UsageError
from sssjob.findings import Findings, Policy, escape
from sssjob.lrm.iri import facility_members
from sssjob.run.changing import change_text, job_of, leaves_of, rewrite, scope_of
from sssjob.run.listing import Filter, Listed
from sssjob.run.rows import Row
from sssjob.serve.desk import ConflictError, Desk, Order, Plain, Submitted
from sssjob.serve.facility import facility_operations, pages, resource_of
from sssjob.serve.operations import Answer, Call, Operation, Parameter, RequestError
from sssjob.xml._faults import model_problem
from sssjob.xml.reader import read_document

__all__ = ["IRI_OPERATIONS", "REPLY", "VERSIONS", "of_iri", "problem", "schemas"]

VERSIONS: Final = ("v1", "v2")
#: The header that says whether a key was used before (hit) or is new (miss).
REPLY: Final = "Idempotency-Key-Reply"
#: How a job stands in the journal -> the state of IRI. A job that has ended has an outcome.
_STATES: Final = {"Idle": "queued", "Hold": "held", "Running": "active", "Suspended": "active",
                  "Completed": "completed"}
_OUTCOMES: Final = {"done": "completed", "kept": "completed", "failed": "failed", "canceled": "canceled",
                    "skipped": "canceled"}
_FILTERS: Final = {"state": tuple(dict.fromkeys((*_STATES.values(), *_OUTCOMES.values()))), "name": ()}

#: Members of a JobSpec that say what a job asks for.
_CHANGED: Final = ("name", "resources", "attributes")
#: What tells commands of a shell from the path of a script.
_COMMANDS: Final = re.compile(r"[\s;|&<>$`]")

_Text = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ResourceSpec(_Model):
    node_count: _Count | None = None
    process_count: _Count | None = None
    processes_per_node: _Count | None = None
    cpu_cores_per_process: _Count | None = None
    gpu_cores_per_process: _Count | None = None
    exclusive_node_use: bool = True
    memory: _Count | None = None


class JobAttributes(_Model):
    duration: _Count | None = None
    queue_name: _Text | None = None
    account: _Text | None = None
    reservation_id: _Text | None = None
    custom_attributes: dict[str, str] = {}


class JobSpec(_Model):
    executable: _Text | None = None
    container: dict[str, Any] | None = None
    arguments: list[str] = []
    directory: _Text | None = None
    name: _Text | None = None
    inherit_environment: bool = True
    environment: dict[str, str] = {}
    stdin_path: _Text | None = None
    stdout_path: _Text | None = None
    stderr_path: _Text | None = None
    resources: ResourceSpec | None = None
    attributes: JobAttributes | None = None
    pre_launch: _Text | None = None
    post_launch: _Text | None = None
    launcher: _Text | None = None


def schemas() -> dict[str, Any]:
    """JSON Schemas of a JobSpec and of what stands in it, by the names under which OpenAPI has them."""
    schema = JobSpec.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**schema.pop("$defs"), "JobSpec": schema}


def problem(status: int, title: str, detail: str, instance: str) -> Plain:
    """An error as problem details. instance: what was asked for."""
    return {"type": "about:blank", "title": title, "status": status, "detail": escape(detail, 2000),
            "instance": instance}


def of_iri(error: Exception) -> Exception:
    """An error as this API tells it, where that is another than elsewhere."""
    if isinstance(error, ConflictError):
        return RequestError(422, "Idempotency-Key was used with a different body")
    return error


# --- jobs

def _order(executors: Sequence[str], call: Call) -> Order:
    """The order that a JobSpec is. The same once more with its key gives the job that was made."""
    return Order(call.user, json.dumps(_spec_of(call)).encode(), "psij", resource_of(executors, call),
                 call.values.get("Idempotency-Key"), Policy.REJECT)


def _launched(submitted: Submitted) -> Answer:
    (row,) = submitted.rows
    return 200, _job_of(row)


def _stated(call: Call) -> JobSpec:
    """The JobSpec of a body; custom attributes without a prefix are the resource's own, and get its. Raises
    RequestError, which names each wrong member."""
    members = call.json_object()
    try:
        spec = JobSpec.model_validate(members)
    except ValidationError as error:
        shown = "; ".join(map(model_problem, error.errors()[:20]))
        raise RequestError(422, f"the body is no JobSpec: {escape(shown, 1000)}") from None
    if spec.attributes is not None and spec.attributes.custom_attributes:
        resource = call.text("resource_id").lower()
        spec.attributes.custom_attributes = {name if "." in name else f"{resource}.{name}": text
                                             for name, text in spec.attributes.custom_attributes.items()}
    return spec


def _spec_of(call: Call) -> Plain:
    """The JobSpec of a body, as PSI/J's JSON has it. Raises RequestError for what is not supported."""
    spec = _stated(call)
    if spec.container is not None:
        raise RequestError(422, "container is not supported here")
    if spec.executable is None:
        raise RequestError(422, "executable: a job has to say what runs")
    for member in ("pre_launch", "post_launch"):
        if _COMMANDS.search(getattr(spec, member) or ""):
            raise RequestError(422, f"{member}: commands are not supported here; it names a script, which is sourced")
    stated: Plain = spec.model_dump(exclude_unset=True, exclude_none=True)
    if spec.resources is not None:      # where nothing is said, nodes are exclusive; in PSI/J they are not
        stated["resources"]["exclusive_node_use"] = spec.resources.exclusive_node_use
    stated.setdefault("attributes", {}).setdefault("duration", None)    # in PSI/J ten minutes, were nothing said
    return stated


def _status(desk: Desk, call: Call) -> Answer:
    row = _found(desk, call)
    if call.text("historical", "true") == "false" and row.outcome is not None:
        raise UnknownJobError(f"{row.key} has ended, and historical is false")
    standing = next(standing for standing in desk.listed(call.user, Filter(ended=True, group=f"@{row.submission}"))
                    if standing.row.job == row.job)
    return 200, _job_of(row, _spec(desk, row) if call.text("include_spec") == "true" else None, standing)


def _statuses(desk: Desk, call: Call) -> Answer:
    filters = _filters(call)
    resource = resource_of(desk.executors, call)
    chosen = Filter(ended=call.text("historical") == "true", executor=resource, name=filters.get("name"))
    words = filters.get("state")
    seen = [standing for standing in desk.listed(call.user, chosen) if words in (None, _state(standing.row))]
    offset, limit = call.whole("offset"), call.whole("limit", 100)
    with_spec = call.text("include_spec") == "true"
    return 200, [_job_of(standing.row, _spec(desk, standing.row) if with_spec else None, standing)
                 for standing in seen[offset:offset + limit]]


def _filters(call: Call) -> Mapping[str, str]:
    """The filters of a body, which may be empty. Raises RequestError for others than are known."""
    if not call.body.strip():
        return {}
    members = call.json_object()
    for name, value in members.items():
        if name not in _FILTERS:
            raise RequestError(422, f"filter {escape(name, 40)!r} is not supported (known: {', '.join(_FILTERS)})")
        if not isinstance(value, str) or (_FILTERS[name] and value not in _FILTERS[name]):
            values = f" (known: {', '.join(_FILTERS[name])})" if _FILTERS[name] else ""
            raise RequestError(422, f"filter {name} is not of the values that it takes{values}")
    return members


def _cancel(desk: Desk, call: Call) -> Answer:
    desk.wish(call.user, "cancel", _found(desk, call).key)
    return 204, {}


def _update(desk: Desk, call: Call) -> Answer:
    """Have a job ask for what a body says, as far as that is otherwise than the job has it; the rest stays."""
    row = _found(desk, call)
    own = {"inherit_environment": True} | _spec(desk, row)
    stated = _stated(call).model_dump(exclude_unset=True)
    paths = list(_differing(stated, own))
    if fixed := [path for path in paths if path[0] not in _CHANGED]:
        raise RequestError(501, f"{_named(fixed)}: what runs is not changed; cancel the job and submit another one")
    if not paths:
        return 200, _job_of(row)
    try:
        text = change_text(_difference(own, _merged(own, stated)))
    except UsageError as error:
        refused = [path for path in paths if not _is_changeable(own, stated, path)]
        raise RequestError(501, f"{_named(refused or paths)}: {escape(str(error), 400)}") from None
    answer = desk.wish(call.user, f"change {text}", row.key)
    if answer["refusals"]:
        raise RequestError(409, f"{_named(paths)}: {escape(answer['refusals'][row.key], 1000)}")
    if answer["waiting"]:
        raise RequestError(503, "it is asked for, and the resource manager has not answered yet")
    return 200, _job_of(_found(desk, call))


def _named(paths: Iterable[Sequence[str]]) -> str:
    """Members as an error names them."""
    return ", ".join(".".join(path) for path in paths)


def _is_changeable(own: Plain, stated: Plain, path: Sequence[str]) -> bool:
    """Whether a member that is stated otherwise could be changed, were it the only one."""
    alone: Any = stated
    for name in path:
        alone = alone[name]
    for name in reversed(path):
        alone = {name: alone}
    try:
        return bool(change_text(_difference(own, _merged(own, alone))))
    except UsageError:
        return False


def _merged(own: Plain, stated: Plain) -> Plain:
    """The members of a JobSpec with those that are stated in their place."""
    return own | {name: _merged(own.get(name) or {}, value) if isinstance(value, dict) else value
                  for name, value in stated.items() if value is not None}


def _difference(before: Plain, after: Plain) -> Job:
    """What a job asks for by one JobSpec and not by another one. Raises RejectedError."""
    own = _leaves(before)
    change = Job()
    for path, p in _leaves(after):
        if (path, p) not in own:
            scope_of(change, path).items.append(p)
    return change


def _leaves(spec: Plain) -> list[tuple[tuple[str, ...], Property]]:
    """What a JobSpec says as properties, each with the containers in which it stands."""
    return list(leaves_of(job_of(take(json.dumps(spec).encode(), "-", source="psij").document)))


def _differing(stated: Plain, own: Plain, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of members that are stated otherwise than a job has them. Of a variable or a custom attribute no text
    is a value too."""
    is_named = path[-1:] in (("environment",), ("custom_attributes",))
    for name, value in stated.items():
        if isinstance(value, dict) and isinstance(own.get(name, {}), dict):
            yield from _differing(value, own.get(name) or {}, (*path, name))
        elif value is not None and (value != own.get(name) if is_named else (value or None) != (own.get(name) or None)):
            yield *path, name


def _found(desk: Desk, call: Call) -> Row:
    """The job of a call, which is of its resource."""
    resource = resource_of(desk.executors, call)
    rows = desk.rows(call.user, call.text("job_id"))
    if len(rows) != 1 or rows[0].executor != resource:
        raise UnknownJobError(f"there is no job {escape(call.text('job_id'), 80)!r} on {resource}")
    return rows[0]


def _state(row: Row) -> str:
    if row.outcome is not None:
        return _OUTCOMES.get(row.outcome, "failed")
    return _STATES.get(row.state, "queued")


def _job_of(row: Row, spec: Plain | None = None, listed: Listed | None = None) -> Plain:
    """A job as IRI has it."""
    status: Plain = {"state": _state(row), "message": row.message, "exit_code": row.exit_code,
                     "meta_data": {"native_id": row.native_id, "cluster": row.cluster}}
    if listed is not None:
        details = listed.details
        status["time"] = details.ended or details.started or details.submitted
    shown = {name: value for name, value in status.items() if value is not None}
    return {"id": row.key, "status": shown} | ({} if spec is None else {"job_spec": spec})


def _spec(desk: Desk, row: Row) -> Plain:
    """The JobSpec of a job, in the form that IRI's models take, with the changes that were accepted since. Raises
    RejectedError and RequestError for what has no place in one."""
    entry = desk.journal.entry(row.submission)
    document = read_document(entry.document.encode())
    rewrite(document, {job.number: job.changes for job in desk.client.standing(entry).jobs})
    findings = Findings()
    how = Conversion("sss", "psij", Policy.WARN, options=Options(None))
    members: Plain = json.loads(how.text(document, how.writing(findings, Policy.WARN)))
    try:
        return facility_members(members)
    except ValueError as error:
        raise RequestError(422, f"the job has no JobSpec of this API: {error}") from None


# --- the table

def _operations(version: str) -> Iterator[Operation]:
    compute = f"/api/{version}/compute"
    resource = Parameter("resource_id", "an executor of this server", "path")
    job = Parameter("job_id", "the id that submitting gave", "path")
    key = Parameter("Idempotency-Key", "names the request: sent again, it submits nothing new", "header")
    historical = Parameter("historical", "jobs that have ended too", kind="truth")
    spec = Parameter("include_spec", "with the JobSpec", kind="truth")
    name, there = f"iri_{version}", {404: "there is none that the user sees", 422: "a member of the body is refused"}
    json_ = ("application/json",)
    yield Operation(f"{name}_launchJob", "POST", f"{compute}/job/{{resource_id}}", "Submit a JobSpec.", None,
                    (resource, key), json_, {200: "the job", **there}, style="iri", order=_order, taken=_launched)
    yield Operation(f"{name}_updateJob", "PUT", f"{compute}/job/{{resource_id}}/{{job_id}}",
                    "Have a job ask for what a JobSpec says.", _update, (resource, job, key), json_,
                    {200: "the job has all that the JobSpec says", 409: "the resource manager refuses it",
                     501: "members that are not changed", 503: "it has not answered yet", **there}, "change", "iri")
    yield Operation(f"{name}_getJob", "GET", f"{compute}/status/{{resource_id}}/{{job_id}}", "How a job stands.",
                    _status, (resource, job, historical, spec), (), {200: "the job", **there}, "read", "iri",
                    about_jobs=True)
    yield Operation(f"{name}_getJobs", "POST", f"{compute}/status/{{resource_id}}", "How jobs stand.", _statuses,
                    (resource, historical, spec, *pages()), json_, {200: "the jobs", **there}, "read", "iri", False,
                    about_jobs=True)
    yield Operation(f"{name}_cancelJob", "DELETE", f"{compute}/cancel/{{resource_id}}/{{job_id}}", "Cancel a job.",
                    _cancel, (resource, job), (), {204: "it was asked for", **there}, "change", "iri")
    yield from facility_operations(version, {404: there[404]})


#: The operations of both versions.
IRI_OPERATIONS: Final = tuple(operation for version in VERSIONS for operation in _operations(version))
