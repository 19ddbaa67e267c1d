"""The IRI Facility API, v1 and v2: its compute part, and of its status part the resources, over the same desk.

A resource is an executor. The body of a job is PSI/J's JobSpec with whole seconds; no member of it is ignored: what is
not known or not supported is refused by name. Errors are problem details of RFC 9457.
Source: the contract of the DOE IRI Facility API as its reference server has it, August 2026; v1 and v2 differ here in
the prefix, in ``/compute/resources`` and in how a resource says its type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sssjob.conversion.converting import Conversion, Options
from sssjob.errors import UnknownJobError
from sssjob.findings import Findings, Policy, escape
from sssjob.lrm.iri import facility_members
from sssjob.run.journal import Row
from sssjob.run.listing import Filter, Listed
from sssjob.serve.desk import ConflictError, Desk, Order, Plain, Submitted
from sssjob.serve.operations import Answer, Call, Operation, Parameter, RequestError
from sssjob.xml.reader import read_document

__all__ = ["IRI_OPERATIONS", "REPLY", "VERSIONS", "of_iri", "problem"]

VERSIONS: Final = ("v1", "v2")
#: The header that says whether a key was used before (hit) or is new (miss).
REPLY: Final = "Idempotency-Key-Reply"
_MOST: Final = 1000
#: How a job stands in the journal -> the state of IRI. A job that has ended has an outcome.
_STATES: Final = {"Idle": "queued", "Hold": "held", "Running": "active", "Suspended": "active",
                  "Completed": "completed"}
_OUTCOMES: Final = {"done": "completed", "kept": "completed", "failed": "failed", "canceled": "canceled",
                    "skipped": "canceled"}
_FILTERS: Final = {"state": tuple(dict.fromkeys((*_STATES.values(), *_OUTCOMES.values()))), "name": ()}

_Text = Annotated[str, Field(min_length=1)]
_Count = Annotated[int, Field(ge=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Resources(_Model):
    node_count: _Count | None = None
    process_count: _Count | None = None
    processes_per_node: _Count | None = None
    cpu_cores_per_process: _Count | None = None
    gpu_cores_per_process: _Count | None = None
    exclusive_node_use: bool = True
    memory: _Count | None = None


class _Attributes(_Model):
    duration: _Count | None = None
    queue_name: _Text | None = None
    account: _Text | None = None
    reservation_id: _Text | None = None
    custom_attributes: dict[str, str] = {}


class _JobSpec(_Model):
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
    resources: _Resources | None = None
    attributes: _Attributes | None = None
    pre_launch: _Text | None = None
    post_launch: _Text | None = None
    launcher: _Text | None = None


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
    return Order(call.user, json.dumps(_spec_of(call)).encode(), "psij", _resource(executors, call),
                 call.values.get("Idempotency-Key"), Policy.REJECT)


def _launched(submitted: Submitted) -> Answer:
    (row,) = submitted.rows
    return 200, _job_of(row)


def _spec_of(call: Call) -> Plain:
    """The JobSpec of a body, as PSI/J's JSON has it. Raises RequestError, which names each wrong member."""
    members = call.json_object()
    try:
        spec = _JobSpec.model_validate(members)
    except ValidationError as error:
        shown = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:20])
        raise RequestError(422, f"the body is no JobSpec: {escape(shown, 1000)}") from None
    if spec.container is not None:
        raise RequestError(422, "container is not supported here")
    if spec.executable is None:
        raise RequestError(422, "executable: a job has to say what runs")
    stated: Plain = spec.model_dump(exclude_unset=True, exclude_none=True)
    if spec.resources is not None:      # where nothing is said, nodes are exclusive; in PSI/J they are not
        stated["resources"]["exclusive_node_use"] = spec.resources.exclusive_node_use
    stated.setdefault("attributes", {}).setdefault("duration", None)    # in PSI/J ten minutes, were nothing said
    return stated


def _status(desk: Desk, call: Call) -> Answer:
    row = _found(desk, call)
    if call.text("historical", "true") == "false" and row.outcome is not None:
        raise UnknownJobError(f"{row.key} has ended, and historical is false")
    return 200, _job_of(row, _spec(desk, row) if call.text("include_spec") == "true" else None)


def _statuses(desk: Desk, call: Call) -> Answer:
    filters = _filters(call)
    resource = _resource(desk.executors, call)
    chosen = Filter(ended=call.text("historical") == "true", executor=resource, name=filters.get("name"))
    words = filters.get("state")
    seen = [one for one in desk.listed(call.user, chosen) if words in (None, _state(one.row))]
    offset, limit = call.whole("offset"), call.whole("limit", 100)
    with_spec = call.text("include_spec") == "true"
    return 200, [_job_of(one.row, _spec(desk, one.row) if with_spec else None, one)
                 for one in seen[offset:offset + limit]]


def _filters(call: Call) -> Mapping[str, str]:
    """The filters of a body, which may be empty. Raises RequestError for others than are known."""
    if not call.body.strip():
        return {}
    members = call.json_object()
    for name, value in members.items():
        if name not in _FILTERS:
            raise RequestError(422, f"filter {escape(name, 40)!r} is not supported (known: {', '.join(_FILTERS)})")
        if not isinstance(value, str) or (_FILTERS[name] and value not in _FILTERS[name]):
            known = f" (known: {', '.join(_FILTERS[name])})" if _FILTERS[name] else ""
            raise RequestError(422, f"filter {name} is not of the values that it takes{known}")
    return members


def _cancel(desk: Desk, call: Call) -> Answer:
    desk.wish(call.user, "cancel", _found(desk, call).key)
    return 204, {}


def _update(desk: Desk, call: Call) -> Answer:
    _found(desk, call)
    raise RequestError(501, "a job that was submitted is not changed here; cancel it and submit another one")


def _found(desk: Desk, call: Call) -> Row:
    """The job of a call, which is of its resource."""
    resource = _resource(desk.executors, call)
    rows = desk.rows(call.user, call.text("job_id"))
    if len(rows) != 1 or rows[0].executor != resource:
        raise UnknownJobError(f"there is no job {escape(call.text('job_id'), 80)!r} on {resource}")
    return rows[0]


def _resource(executors: Sequence[str], call: Call) -> str:
    name = call.text("resource_id").lower()
    if name not in [known.lower() for known in executors]:
        raise UnknownJobError(f"there is no resource {escape(name, 80)!r}")
    return name


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
    """The JobSpec of a job, in the form that IRI's models take. Raises RejectedError and RequestError for what
    has no place in one."""
    document = read_document(desk.journal.entry(row.submission).document.encode())
    findings = Findings()
    how = Conversion("sss", "psij", Policy.WARN, options=Options(None))
    members: Plain = json.loads(how.text(document, how.writing(findings, Policy.WARN)))
    try:
        return facility_members(members)
    except ValueError as error:
        raise RequestError(422, f"the job has no JobSpec of this API: {error}") from None


# --- resources

def _resources(version: str) -> Callable[[Desk, Call], Answer]:
    def function(desk: Desk, call: Call) -> Answer:
        described = [_described(name, version) for name in desk.executors]
        chosen = [one for one in described if call.text("name", one["name"]) == one["name"]]
        return 200, chosen[call.whole("offset"):][:call.whole("limit", 100)]

    return function


def _one_resource(version: str) -> Callable[[Desk, Call], Answer]:
    def function(desk: Desk, call: Call) -> Answer:
        return 200, _described(_resource(desk.executors, call), version)

    return function


def _described(name: str, version: str) -> Plain:
    """An executor as a resource. Whether its manager answers is not known before a job is asked about."""
    base = f"/api/{version}"
    described: Plain = {
        "id": name, "name": name, "description": f"jobs run with the executor {name}", "group": "compute",
        "last_modified": datetime.fromtimestamp(0, UTC).isoformat().replace("+00:00", "Z"),
        "self_uri": f"{base}/status/resources/{name}", "site_uri": f"{base}/facility/sites/here",
        "capability_uris": [], "current_status": "up" if name == "local" else "unknown"}
    if version == "v1":
        return described | {"resource_type": "compute"}
    links = {"self": {"href": described["self_uri"]},
             "iri:submit-job": {"href": f"{base}/compute/job/{name}"},
             "iri:query-job": {"href": f"{base}/compute/status/{name}/{{job_id}}", "templated": True},
             "iri:list-jobs": {"href": f"{base}/compute/status/{name}"},
             "iri:cancel-job": {"href": f"{base}/compute/cancel/{name}/{{job_id}}", "templated": True}}
    return described | {"resource_type": "urn:doe-iri:resource:compute:system", "supported_endpoints": ["compute"],
                        "_links": links}


# --- what this server has none of

#: Filters of incidents.
_OF_INCIDENTS: Final = ("name", "description", "status", "type", "from", "to", "time", "modified_since", "resource_id")


def _none(desk: Desk, call: Call) -> Answer:
    """There are no incidents and no tasks here: jobs are submitted within the request, and nobody writes incidents."""
    return 200, []


def _no_such(desk: Desk, call: Call) -> Answer:
    raise UnknownJobError("there is none of this name")


# --- the table

def _operations(version: str) -> Iterator[Operation]:
    compute, resources = f"/api/{version}/compute", f"/api/{version}/status/resources"
    resource = Parameter("resource_id", "an executor of this server", "path")
    job = Parameter("job_id", "the id that submitting gave", "path")
    key = Parameter("Idempotency-Key", "names the request: sent again, it submits nothing new", "header")
    historical = Parameter("historical", "jobs that have ended too", kind="truth")
    spec = Parameter("include_spec", "with the JobSpec", kind="truth")
    page = (Parameter("offset", "how many are left out", kind="whole"),
            Parameter("limit", "how many are answered at most (default: 100)", kind="whole", most=_MOST))
    name, there = f"iri_{version}", {404: "there is none that the user sees", 422: "a member of the body is refused"}
    json_ = ("application/json",)
    yield Operation(f"{name}_launchJob", "POST", f"{compute}/job/{{resource_id}}", "Submit a JobSpec.", None,
                    (resource, key), json_, {200: "the job", **there}, style="iri", order=_order, taken=_launched)
    yield Operation(f"{name}_updateJob", "PUT", f"{compute}/job/{{resource_id}}/{{job_id}}", "Not supported.", _update,
                    (resource, job, key), json_, {501: "it is not supported", **there}, "read", "iri")
    yield Operation(f"{name}_getJob", "GET", f"{compute}/status/{{resource_id}}/{{job_id}}", "How a job stands.",
                    _status, (resource, job, historical, spec), (), {200: "the job", **there}, "read", "iri")
    yield Operation(f"{name}_getJobs", "POST", f"{compute}/status/{{resource_id}}", "How jobs stand.", _statuses,
                    (resource, historical, spec, *page), json_, {200: "the jobs", **there}, "read", "iri", False)
    yield Operation(f"{name}_cancelJob", "DELETE", f"{compute}/cancel/{{resource_id}}/{{job_id}}", "Cancel a job.",
                    _cancel, (resource, job), (), {204: "it was asked for", **there}, "change", "iri")
    listed = (Parameter("name", "only this one"), *page)
    yield Operation(f"{name}_getResources", "GET", resources, "The executors of this server.", _resources(version),
                    listed, (), {200: "the resources"}, "read", "iri")
    yield Operation(f"{name}_getResource", "GET", f"{resources}/{{resource_id}}", "An executor.",
                    _one_resource(version), (resource,), (), {200: "the resource", **there}, "read", "iri")
    page = (page[0], Parameter("limit", "how many are answered at most", kind="whole", most=_MOST))
    for kind, path, filters in (("Incident", f"/api/{version}/status/incidents", _OF_INCIDENTS),
                                ("Task", f"/api/{version}/task", ())):
        yield Operation(f"{name}_get{kind}s", "GET", path, "There are none here.", _none,
                        (*(Parameter(one, "only those") for one in filters), *page), (), {200: "an empty list"}, "read",
                        "iri")
        yield Operation(f"{name}_get{kind}", "GET", f"{path}/{{name}}", "There is none here.", _no_such,
                        (Parameter("name", "its id", "path"),), (), {404: "there is none"}, "read", "iri")
    if version == "v2":
        yield Operation(f"{name}_getComputeResources", "GET", f"{compute}/resources", "The executors of this server.",
                        _resources(version), (), (), {200: "the resources"}, "read", "iri")


#: The operations of both versions.
IRI_OPERATIONS: Final = tuple(operation for version in VERSIONS for operation in _operations(version))
