"""What the IRI Facility API tells of a facility beside its jobs: the facility, its one site, its resources, which are
the executors of this server, and the incidents, events, capabilities, projects and tasks that there are none of.

Source: the contract of the DOE IRI Facility API as its reference server has it, August 2026; v1 and v2 differ in the
prefix, in how a resource says its type, and in links.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from sssjob.errors import UnknownJobError
from sssjob.findings import escape
from sssjob.serve.desk import Desk, Plain
from sssjob.serve.operations import Answer, Call, Operation, Parameter, RequestError

__all__ = ["MOST", "facility_operations", "pages", "resource_of"]

#: Things of one page.
MOST: Final = 1000
_SITE: Final = "here"           # the id of the only site
_STATUSES: Final = ("up", "down", "degraded", "unknown")
_BEGUN: Final = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")    # nothing changes afterwards
_URN: Final = re.compile("urn:doe-iri(?::[A-Za-z0-9._-]+)+")
_TYPES: Final = {"v1": "compute", "v2": "urn:doe-iri:resource:compute:system"}
_TYPES_OF_V1: Final = ("website", "service", "compute", "system", "storage", "network", "unknown")

_NAME: Final = Parameter("name", "only that of this name")
_SINCE: Final = Parameter("modified_since", "only what was modified since a time of ISO 8601; this server changes none "
                                            "after its start", format="date-time")
_WORDS: Final = Parameter("description", "only those in whose description it stands")
_SHORT: Final = Parameter("short_name", "only that of this short name")
#: Filters of incidents and of events.
_OF_INCIDENTS: Final = ("name", "description", "status", "type", "from", "to", "time", "modified_since", "resource_id",
                        "resolution", "resource_uris", "event_uris")
_OF_EVENTS: Final = ("incident_id", "resource_id", "name", "description", "status", "from", "to", "time",
                     "modified_since")
#: What there is none of: one, several, where, filters, whether everybody may ask.
_NONE: Final = (
    ("Incident", "Incidents", "/status/incidents", _OF_INCIDENTS, True),
    ("Event", "Events", "/status/events", _OF_EVENTS, True),
    ("Capability", "Capabilities", "/account/capabilities", ("name", "modified_since"), True),
    ("Project", "Projects", "/account/projects", (), False),
    ("Task", "Tasks", "/task", (), False))


def pages(default: int = 100) -> tuple[Parameter, Parameter]:
    """Which part of a list is answered. default: how many."""
    return (Parameter("offset", "how many are left out", kind="whole"),
            Parameter("limit", f"how many are answered at most (default: {default})", kind="whole", most=MOST))


def resource_of(executors: Sequence[str], call: Call) -> str:
    """The executor that a call names as its resource. Raises UnknownJobError."""
    name = call.text("resource_id").lower()
    if name not in [executor.lower() for executor in executors]:
        raise UnknownJobError(f"there is no resource {escape(name, 80)!r}")
    return name


def _is_new(call: Call) -> bool:
    """Whether what was there at the start is new enough for a call. Raises RequestError."""
    if not call.stated("modified_since"):
        return True
    try:
        since = datetime.fromisoformat(call.text("modified_since"))
    except ValueError:
        raise RequestError(400, "modified_since is no time of ISO 8601") from None
    return datetime.fromisoformat(_BEGUN) >= (since if since.tzinfo is not None else since.replace(tzinfo=UTC))


def _page(call: Call, objects: list[Plain]) -> Answer:
    exact = [name for name in ("name", "group", "short_name", "current_status") if call.stated(name)]
    chosen = [described for described in objects if all(described[name] == call.text(name) for name in exact)
              and call.text("description") in described["description"]] if _is_new(call) else []
    return 200, chosen[call.whole("offset"):][:call.whole("limit", 100)]


# --- the facility and its site

def _facility(version: str, desk: Desk, call: Call) -> Answer:
    """The facility of this server."""
    if not _is_new(call):
        raise UnknownJobError("the facility was not modified since then")
    return 200, _thing(version, "/facility", "facility", f"jobs are submitted at {socket.gethostname()}") | {
        "site_uris": [_site(desk, version)["self_uri"]]}


def _sites(version: str, desk: Desk, call: Call) -> Answer:
    return _page(call, [_site(desk, version)])


def _one_site(version: str, desk: Desk, call: Call) -> Answer:
    """The site that is named."""
    if call.text("site_id") != _SITE or not _is_new(call):
        raise UnknownJobError("there is no such site")
    return 200, _site(desk, version)


def _site(desk: Desk, version: str) -> Plain:
    return _thing(version, f"/facility/sites/{_SITE}", _SITE, f"what {socket.gethostname()} submits to") | {
        "operating_organization": None,
        "resource_uris": [f"/api/{version}/status/resources/{name}" for name in desk.executors]}


def _thing(version: str, path: str, id_: str, description: str) -> Plain:
    """What the facility and its site have in common. Nobody told this server what people call it: it has the name of
    its host."""
    uri = f"/api/{version}{path}"
    return {"id": id_, "name": socket.gethostname(), "short_name": socket.gethostname().partition(".")[0],
            "description": description, "last_modified": _BEGUN, "self_uri": uri} | (
                {"_links": {"self": {"href": uri}}} if version == "v2" else {})


# --- resources

def _resources(version: str, desk: Desk, call: Call) -> Answer:
    """The executors that the filters leave."""
    objects = [_described(name, version) for name in desk.executors]
    if call.stated("resource_type"):
        objects = [resource for resource in objects
                   if _is_of(call.text("resource_type"), resource["resource_type"], version)]
    if call.stated("capability"):
        objects = []        # none of them has an allocation here
    return _page(call, objects)


def _is_of(stated: str, type_: str, version: str) -> bool:
    """Whether a type is the one that is stated, or one below it. Raises RequestError."""
    if version == "v1" and stated not in _TYPES_OF_V1:
        raise RequestError(400, f"resource_type is not known (known: {', '.join(_TYPES_OF_V1)})")
    if version == "v2" and not _URN.fullmatch(stated):
        raise RequestError(400, "resource_type is no urn:doe-iri:...")
    return f"{type_}:".startswith(f"{stated}:")


def _one_resource(version: str, desk: Desk, call: Call) -> Answer:
    """The executor that is named."""
    return 200, _described(resource_of(desk.executors, call), version)


def _described(name: str, version: str) -> Plain:
    """An executor as a resource. Whether its manager answers is not known before a job is asked about."""
    base = f"/api/{version}"
    described: Plain = {
        "id": name, "name": name, "description": f"jobs run with the executor {name}", "group": "compute",
        "last_modified": _BEGUN, "self_uri": f"{base}/status/resources/{name}",
        "site_uri": f"{base}/facility/sites/{_SITE}", "capability_uris": [],
        "current_status": "up" if name == "local" else "unknown", "resource_type": _TYPES[version]}
    if version == "v1":
        return described
    links = {"self": {"href": described["self_uri"]},
             "iri:submit-job": {"href": f"{base}/compute/job/{name}"},
             "iri:query-job": {"href": f"{base}/compute/status/{name}/{{job_id}}", "templated": True},
             "iri:list-jobs": {"href": f"{base}/compute/status/{name}"},
             "iri:cancel-job": {"href": f"{base}/compute/cancel/{name}/{{job_id}}", "templated": True}}
    return described | {"supported_endpoints": ["compute"], "_links": links}


# --- what this server has none of

def _none(version: str, desk: Desk, call: Call) -> Answer:
    """There are no incidents and no tasks here: jobs are submitted within the request, and nobody writes incidents. The
    account of a job is any that its executor takes, so that there are no projects to choose from."""
    return 200, []


def _no_such(version: str, desk: Desk, call: Call) -> Answer:
    raise UnknownJobError("there is none of this name")


# --- the table

def facility_operations(version: str, there: dict[int, str]) -> Iterator[Operation]:
    """The operations of a version. there: what a status says of things that may be missing."""
    base = f"/api/{version}"
    resource = Parameter("resource_id", "an executor of this server", "path")

    def operation(name: str, path: str, summary: str, function: Callable[[str, Desk, Call], Answer],
                  parameters: tuple[Parameter, ...], answers: dict[int, Any], *, is_public: bool = True) -> Operation:
        """An operation that reads, under the base of the version, of which the function is told."""
        return Operation(f"iri_{version}_{name}", "GET", f"{base}{path}", summary, partial(function, version),
                         parameters, (), answers, "read", "iri", is_public=is_public)

    yield operation("getFacility", "/facility", "The facility.", _facility, (_SINCE,), {200: "the facility", **there})
    yield operation("getSites", "/facility/sites", "Its one site.", _sites, (_NAME, _SHORT, _SINCE, *pages()),
                    {200: "the sites"})
    yield operation("getSite", "/facility/sites/{site_id}", "A site.", _one_site,
                    (Parameter("site_id", "its id", "path"), _SINCE), {200: "the site", **there})
    listed = (_NAME, _WORDS, Parameter("group", "only those of a group"), _SINCE,
              Parameter("resource_type", "only those of a type, or of one below it"),
              Parameter("current_status", "only those that stand so", choices=_STATUSES),
              Parameter("capability", "only those with an allocation of a unit: none here"), *pages())
    yield operation("getResources", "/status/resources", "The executors of this server.", _resources, listed,
                    {200: "the resources"})
    yield operation("getResource", "/status/resources/{resource_id}", "An executor.", _one_resource, (resource,),
                    {200: "the resource", **there})
    if version == "v2":
        yield operation("getComputeResources", "/compute/resources", "The executors of this server.", _resources, (),
                        {200: "the resources"})
    for kind, kinds, path, filters, is_public in _NONE:
        yield operation(f"get{kinds}", path, "There are none here.", _none,
                        (*(Parameter(filter_, "only those") for filter_ in filters), *pages()), {200: "an empty list"},
                        is_public=is_public)
        yield operation(f"get{kind}", f"{path}/{{name}}", "There is none here.", _no_such,
                        (Parameter("name", "its id", "path"),), {404: "there is none"}, is_public=is_public)
