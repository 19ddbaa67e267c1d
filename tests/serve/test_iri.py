"""The IRI Facility API: jobs of clients that know it, in both versions; no member of a body is ignored."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from sssjob.run.journal import open_journal
from sssjob.serve.iri import VERSIONS
from tests.run.support import eventually
from tests.serve.conftest import Place, Reply, Serving

SPEC: dict[str, Any] = {
    "executable": "/bin/sh", "arguments": ["-c", "exit $CODE"], "name": "three", "inherit_environment": True,
    "environment": {"CODE": "3"}, "resources": {"node_count": 1, "process_count": 1, "exclusive_node_use": False},
    "attributes": {"duration": 600}}


def call(place: Place, method: str, path: str, body: object = None, user: str = "amy", version: str = "v2",
         **headers: str) -> Reply:
    text = None if body is None else json.dumps(body)
    if text is not None:
        headers.setdefault("Content_Type", "application/json")
    return place.call(user, method, f"/api/{version}{path}", text, **headers)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_from_its_launch_to_its_end(place: Place, version: str) -> None:
    """queued or active, then failed with its exit code; the JobSpec comes back in the form in which it was sent."""
    begun = time.time() - 1
    launched = call(place, "POST", "/compute/job/local", SPEC, version=version)
    assert launched.status == 200 and launched.body["status"]["state"] in ("queued", "active", "failed")
    assert "job_spec" not in launched.body
    path = f"/compute/status/local/{launched.body['id']}"
    end = time.monotonic() + 30
    while (job := call(place, "GET", path, version=version).body)["status"]["state"] in ("queued", "active"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert (job["status"]["state"], job["status"]["exit_code"]) == ("failed", 3)
    assert begun <= job["status"]["time"] <= time.time()
    spec = call(place, "GET", f"{path}?include_spec=true", version=version).body["job_spec"]
    assert {name: spec[name] for name in ("executable", "arguments", "environment", "name")} == {
        name: SPEC[name] for name in ("executable", "arguments", "environment", "name")}
    assert spec["attributes"]["duration"] == 600 and "__version" not in spec["resources"]
    assert call(place, "POST", "/compute/job/local", spec | {"name": "again"}, version=version).status == 200
    assert call(place, "GET", f"{path}?historical=false", version=version).status == 404
    assert call(place, "DELETE", f"/compute/cancel/local/{launched.body['id']}", version=version)[:2] == (204, "")


def test_many_jobs_are_asked_for(place: Place) -> None:
    """By state and name, in pages; nobody else's."""
    held = {"executable": "/bin/sleep", "arguments": ["60"], "name": "sleeper", "attributes": {"duration": 600}}
    ids = [call(place, "POST", "/compute/job/local", held, user="bob").body["id"] for _ in range(2)]
    for body, query, expected in (
            (None, "", 2), ({}, "", 2), ({"name": "sleep*"}, "", 2), ({"name": "other"}, "", 0),
            ({"state": "failed"}, "?historical=true", 0), (None, "?limit=1", 1), (None, "?offset=2", 0)):
        jobs = call(place, "POST", f"/compute/status/local{query}", body, user="bob").body
        assert len(jobs) == expected and {job["id"] for job in jobs} <= set(ids)
    assert ids[0] not in [job["id"] for job in call(place, "POST", "/compute/status/local").body]
    assert call(place, "DELETE", f"/compute/cancel/local/{ids[0]}").status == 404
    for id_ in ids:
        assert call(place, "DELETE", f"/compute/cancel/local/{id_}", user="bob").status == 204


def test_a_job_is_launched_once(quiet: Place) -> None:
    spec = SPEC | {"name": "once"}
    ids = {call(quiet, "POST", "/compute/job/local", spec, Idempotency_Key="k").body["id"] for _ in range(5)}
    assert len(ids) == 1
    other = call(quiet, "POST", "/compute/job/local", spec | {"name": "twice"}, Idempotency_Key="k")
    assert other.status == 422 and "different body" in other.body["detail"]


@pytest.mark.parametrize(("change", "why"), [
    ({"colour": "red"}, "colour: no such key"), ({"resources": {"gpus": 1}}, "resources.gpus: no such key"),
    ({"attributes": {"duration": "600 s"}}, "attributes.duration"), ({"attributes": {"duration": 0}}, "duration"),
    ({"attributes": {"duration": True}}, "duration"), ({"attributes": {"project_name": "p"}}, "project_name"),
    ({"container": {"image": "x"}}, "container is not supported"), ({"executable": ""}, "executable"),
    ({"executable": None}, "executable"), ({"arguments": "a b"}, "arguments"), ({"environment": {"A": 1}}, "A"),
    ({"environment": {"A=B": "c"}}, "A=B"), ({"resources": {"node_count": -1}}, "node_count"),
    ({"resources": {"node_count": 10**30}}, ""), ({"launcher": ""}, "launcher"),
    ({"name": "a\u0000b"}, ""), ({"pre_launch": "module load cuda"}, "pre_launch: commands are not supported here"),
    ({"post_launch": "rm x;"}, "post_launch: commands"),
    ({"attributes": {"custom_attributes": {"slurm.x": 1}}}, "custom_attributes")])
def test_what_is_not_taken_is_named(quiet: Place, change: dict[str, Any], why: str) -> None:
    """As problem details, and nothing is submitted."""
    before = quiet.call("root", "GET", "/v1/jobs?ended=true").body["total"]
    reply = call(quiet, "POST", "/compute/job/local", SPEC | change)
    assert reply.status in (400, 422) and reply.headers["content-type"] == "application/problem+json", reply
    assert why in reply.body["detail"] and reply.body["status"] == reply.status
    assert reply.body["instance"] == "/api/v2/compute/job/local" and reply.body["type"] == "about:blank"
    assert quiet.call("root", "GET", "/v1/jobs?ended=true").body["total"] == before


@pytest.mark.parametrize(("method", "path", "body", "status"), [
    ("POST", "/compute/job/slurm", SPEC, 404), ("GET", "/compute/status/local/@99", None, 404),
    ("GET", "/compute/status/local/@1.1?spec=true", None, 400), ("POST", "/compute/status/local", {"queue": "a"}, 422),
    ("POST", "/compute/status/local", {"state": "asleep"}, 422), ("POST", "/compute/status/local?limit=1001", {}, 400),
    ("POST", "/compute/status/local", [], 400), ("PUT", "/compute/job/local/@99", SPEC, 404),
    ("GET", "/status/resources/slurm", None, 404), ("GET", "/status/resources?colour=red", None, 400)])
def test_wrong_requests(place: Place, method: str, path: str, body: object, status: int) -> None:
    reply = call(place, method, path, body)
    assert (reply.status, reply.body["status"]) == (status, status), reply


def test_executors_are_resources(place: Place) -> None:
    first = call(place, "GET", "/status/resources", version="v1").body
    assert [(one["id"], one["resource_type"], one["current_status"]) for one in first] == [("local", "compute", "up")]
    second = call(place, "GET", "/compute/resources").body
    assert second == call(place, "GET", "/status/resources").body
    assert second == [call(place, "GET", "/status/resources/local").body]
    assert second[0]["_links"]["iri:submit-job"] == {"href": "/api/v2/compute/job/local"}
    for query, count in (("name=local", 1), ("name=other", 0), ("description=executor%20local", 1), ("group=login", 0),
                         ("current_status=up", 1), ("current_status=down", 0), ("modified_since=2020-01-01", 1),
                         ("modified_since=2999-01-01T00:00:00Z", 0), ("capability=x", 0), ("offset=1", 0),
                         ("limit=0", 0), ("resource_type=urn:doe-iri:resource:compute", 1),
                         ("resource_type=urn:doe-iri:resource:com", 0),
                         ("resource_type=urn:doe-iri:resource:compute:system", 1)):
        assert len(call(place, "GET", f"/status/resources?{query}").body) == count, query
    assert len(call(place, "GET", "/status/resources?resource_type=compute", version="v1").body) == 1
    for query in ("current_status=asleep", "modified_since=yesterday", "resource_type=compute"):
        assert call(place, "GET", f"/status/resources?{query}").status == 400
    assert call(place, "GET", "/status/resources?resource_type=comp", version="v1").status == 400
    assert call(place, "GET", "/compute/resources", version="v1").status == 404
    assert place.call(None, "GET", "/api/v2/status/resources")[:2] == (401, "")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_facility_has_one_site_with_all_resources(place: Place, version: str) -> None:
    """Each names the others by links that lead there."""
    facility = call(place, "GET", "/facility", version=version).body
    (link,) = facility["site_uris"]
    site = place.call("amy", "GET", link).body
    assert [site] == call(place, "GET", f"/facility/sites?name={site['name']}", version=version).body
    assert call(place, "GET", "/facility/sites?short_name=elsewhere", version=version).body == []
    resources = [place.call("amy", "GET", uri).body for uri in site["resource_uris"]]
    assert resources == call(place, "GET", "/status/resources", version=version).body
    assert {one["site_uri"] for one in resources} == {link} == {site["self_uri"]}
    assert ("_links" in site, "_links" in facility) == ((True, True) if version == "v2" else (False, False))
    for path in ("/facility/sites/there", "/facility?modified_since=2999-01-01"):
        assert call(place, "GET", path, version=version).status == 404


def test_what_everybody_may_ask(serving: Serving) -> None:
    """Where the server is public, of the facility without a token; not with a wrong one, and not of jobs."""
    asked = [("GET", path, 200) for path in ("/facility", "/facility/sites/here", "/status/resources")]
    asked += [("GET", path, 200) for path in ("/status/events", "/compute/resources", "/account/capabilities")]
    asked += [("GET", "/status/resources/slurm", 404), ("GET", "/status/resources?colour=red", 400)]
    closed = [("GET", path) for path in ("/task", "/account/projects", "/compute/status/local/@1.1", "/nothing",
                                         "/facility/../../v1/jobs")]
    closed += [("PUT", "/facility"), ("POST", "/compute/job/local")]
    with serving(public=True) as place:
        for method, path, status in asked:
            assert place.call(None, method, f"/api/v2{path}").status == status, path
        for method, path in closed:
            assert place.call(None, method, f"/api/v2{path}")[:2] == (401, ""), path
        assert place.call("nobody", "GET", "/api/v2/facility")[:2] == (401, "")
        assert {line.get("user") for line in place.log()} == {None}


def test_what_cannot_be_asked_is_told_as_problem_details(quiet: Place) -> None:
    reply = call(quiet, "PATCH", "/facility")
    assert (reply.status, reply.headers["content-type"], set(reply.headers["allow"].split(", "))) == (
        405, "application/problem+json", {"GET", "HEAD"})
    assert reply.body["detail"] == "PATCH /api/v2/facility is nothing that can be asked here"


@pytest.mark.parametrize("stated", [None, True, False])
def test_nodes_are_exclusive_where_nothing_is_said(quiet: Place, stated: bool | None) -> None:
    """Which is the opposite in PSI/J."""
    resources = {"node_count": 1} | ({} if stated is None else {"exclusive_node_use": stated})
    launched = call(quiet, "POST", "/compute/job/local", SPEC | {"resources": resources})
    assert launched.status == 200, launched
    spec = call(quiet, "GET", f"/compute/status/local/{launched.body['id']}?include_spec=true").body["job_spec"]
    assert spec["resources"]["exclusive_node_use"] is (stated is not False)


def test_a_job_of_another_door_may_have_no_form_here(quiet: Place) -> None:
    """Files are not staged by this API: the job is told without its JobSpec, and asked for with it, that is why."""
    staging = {"executable": "/bin/true", "stage_in": [{"source": "/etc/hosts", "target": "hosts"}]}
    reply = quiet.call("amy", "POST", "/v1/jobs?from=psij", json.dumps(staging), Content_Type="application/json")
    assert reply.status == 201, reply
    path = f"/compute/status/local/{reply.body['jobs'][0]['id']}"
    assert call(quiet, "GET", path).status == 200
    refused = call(quiet, "GET", f"{path}?include_spec=true")
    assert (refused.status, "does not stage files" in refused.body["detail"]) == (422, True)


@pytest.mark.parametrize(("body", "status", "named"), [
    (SPEC, 200, ""), ({"executable": "/bin/sh"}, 200, ""), ({"attributes": {"duration": None}}, 200, ""),
    (SPEC | {"name": "four", "attributes": {"duration": 900, "queue_name": "q"}}, 503, "it is asked for, "),
    ({"arguments": []}, 501, "arguments: what runs is not changed"),
    ({"environment": {"CODE": "4"}}, 501, "environment.CODE: "),
    ({"environment": {"NEW.ONE": ""}}, 501, "environment.NEW.ONE: what runs is not changed"),
    ({"resources": {"exclusive_node_use": True, "process_count": 2, "memory": 1 << 20}, "name": "b"}, 501,
     "resources.exclusive_node_use: Extension ExclusiveNodeUse of a job that was submitted is not changed"),
    ({"attributes": {"custom_attributes": {"x.y": "1"}, "duration": 60}}, 501, "attributes.custom_attributes.x.y: "),
    ({"attributes": {"custom_attributes": {"flag": ""}}}, 501, "attributes.custom_attributes.local.flag: "),
    ({"colour": "red"}, 422, "the body is no JobSpec: colour"),
    ({"container": {"image": "x"}}, 501, "container.image: "),
])
def test_what_a_job_is_not_changed_into(quiet: Place, body: dict[str, Any], status: int, named: str,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Who says what a job has is answered with the job; what is not changed is named. Nobody is there to answer."""
    monkeypatch.setattr("sssjob.serve.desk._CANCEL_S", 0.0)
    launched = call(quiet, "POST", "/compute/job/local", SPEC, Idempotency_Key="unchanged")
    reply = call(quiet, "PUT", f"/compute/job/local/{launched.body['id']}", body)
    assert reply.status == status, reply
    assert reply.body["id"] == launched.body["id"] if status == 200 else reply.body["detail"].startswith(named)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_is_changed(serving: Serving, version: str) -> None:
    """It waits for its user. What it says is what it has from then on; the same once more changes nothing. One that
    runs is changed as far as its resource manager does that."""
    held = ("<Job><Id>h</Id><Name>old</Name><Executable>/bin/sleep</Executable><Arguments>60</Arguments>"
            "<Hold>User</Hold><Requested><Duration>600</Duration><Queue>q</Queue></Requested></Job>")
    with serving() as place:
        assert place.call("amy", "POST", "/v1/jobs?policy=Ignore", held).status == 201

        def put(body: dict[str, Any]) -> Reply:
            """The answer to a change."""
            return call(place, "PUT", "/compute/job/local/@1.1", body, version=version)

        body = {"name": "new", "attributes": {"duration": 900, "account": "chem"}, "resources": {"process_count": 2}}
        assert [put(body).status for _ in range(2)] == [200, 200]
        spec = call(place, "GET", "/compute/status/local/@1.1?include_spec=true", version=version).body["job_spec"]
        assert (spec["name"], spec["attributes"], spec["resources"]["process_count"]) == (
            "new", {"duration": 900, "queue_name": "q", "account": "chem"}, 2)
        with open_journal(place.journal) as journal:
            log = [event.data for event in journal.entry(1).events() if event.kind == "answer"]
        assert len(log) == 1 and log[0]["wish"].startswith("change ") and log[0]["refusal"] == ""
        place.call("amy", "POST", "/v1/jobs/@1.1/release")
        eventually(lambda: place.call("amy", "GET", "/v1/jobs/@1.1").body["jobs"][0]["state"] == "Running")
        refused = put({"attributes": {"duration": 60}})
        assert (refused.status, "attributes.duration: the executor local has no means" in refused.body["detail"]) == (
            409, True)
        place.call("amy", "POST", "/v1/jobs/@1.1/cancel")


@pytest.mark.parametrize("version", VERSIONS)
def test_whether_a_key_was_used_is_in_the_head(quiet: Place, version: str) -> None:
    body = {"executable": "/bin/true"}
    replies = [call(quiet, "POST", "/compute/job/local", body, version=version, Idempotency_Key=f"key-{version}")
               for _ in range(2)]
    assert [reply.headers["idempotency-key-reply"] for reply in replies] == ["miss", "hit"]
    assert "idempotency-key-reply" not in call(quiet, "POST", "/compute/job/local", body, version=version).headers


@pytest.mark.parametrize("version", VERSIONS)
def test_what_there_is_none_of(quiet: Place, version: str) -> None:
    for path in ("/status/incidents?resource_id=local&resolution=pending&limit=5", "/status/events?status=up", "/task",
                 "/account/capabilities?name=x", "/account/projects"):
        assert call(quiet, "GET", path, version=version)[:2] == (200, [])
    for path in ("/status/incidents", "/status/events", "/task", "/account/capabilities", "/account/projects"):
        assert call(quiet, "GET", f"{path}/7", version=version).status == 404
    assert call(quiet, "GET", "/task?colour=red", version=version).status == 400


def test_options_of_the_resource_need_no_prefix(quiet: Place) -> None:
    """As in the examples of the contract, where PSI/J has them with one; options of another resource are refused."""
    body = {"executable": "/bin/true", "attributes": {"custom_attributes": {"nice": "5"}}}
    id_ = call(quiet, "POST", "/compute/job/local", body).body["id"]
    spec = call(quiet, "GET", f"/compute/status/local/{id_}?include_spec=true").body["job_spec"]
    assert spec["attributes"]["custom_attributes"] == {"local.nice": "5"}
    assert call(quiet, "PUT", f"/compute/job/local/{id_}", body).status == 200
    refused = call(quiet, "POST", "/compute/job/local", {
        "executable": "/bin/true", "attributes": {"custom_attributes": {"slurm.constraint": "gpu"}}})
    assert (refused.status, refused.body["detail"]) == (
        422, "Extension constraint: the executor local does not honour it")
