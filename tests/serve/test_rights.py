"""Who may do what, at each face: one table over all kinds of users and a job of amy's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from sssjob.sssrmap import Get, Object, Request, Where
from sssjob.sssrmap.calling import Peer, Signing, joined, responses
from tests.serve.conftest import KEY, Place, still

JOB: Final = "<Job><Id>{}</Id>{}<Executable>/bin/true</Executable></Job>"
IRI: Final = "/api/v2/compute"
#: What is asked for -> the status for amy, whose job it is; bob, who submits too; eve without rights; root with all.
TABLE: Final = {
    ("GET", "/v1/jobs/@1.1", None): (200, 404, 404, 200),
    ("GET", "/v1/jobs/@1.1?as=xml", None): (200, 404, 404, 200),
    ("GET", "/v1/jobs/@1.1?as=sources", None): (200, 404, 404, 200),
    ("GET", f"{IRI}/status/local/@1.1?include_spec=true", None): (200, 404, 404, 200),
    ("PUT", f"{IRI}/job/local/@1.1", json.dumps({"executable": "/bin/true"})): (200, 404, 404, 200),
    ("PUT", f"{IRI}/job/local/@1.1", json.dumps({"name": "other"})): (503, 404, 404, 503),
    ("PUT", f"{IRI}/job/local/@1.1", json.dumps({"arguments": ["1"]})): (501, 404, 404, 501),
    ("POST", "/v1/jobs/@1.1/change", "<Job><Name>x</Name></Job>"): (200, 404, 404, 200),
    ("POST", "/v1/jobs/@1.1/change", "<Job><User>zoe</User></Job>"): (403, 404, 404, 200),
    ("POST", "/v1/jobs/@1.1/hold", None): (200, 404, 404, 200),
    ("POST", "/v1/jobs/@1.1/release", None): (200, 404, 404, 200),
    ("POST", "/v1/jobs/@1.1/cancel", None): (200, 404, 404, 200),
    ("DELETE", f"{IRI}/cancel/local/@1.1", None): (204, 404, 404, 204),
    ("POST", "/v1/jobs", JOB.format("mine", "")): (201, 201, 403, 201),
    ("POST", "/v1/jobs", JOB.format("others", "<User>zoe</User>")): (403, 403, 403, 201),
    ("POST", "/v1/jobs", JOB.format("others", "<Requested><User>zoe</User></Requested>")): (403, 403, 403, 201),
    ("POST", f"{IRI}/job/local", json.dumps({"executable": "/bin/true"})): (200, 200, 403, 200),
    ("POST", "/v1/convert?to=slurm", JOB.format("a", "")): (200, 200, 200, 200),
    ("GET", "/v1/balance", None): (403, 403, 403, 501),
    ("POST", "/v1/query", "Query Account"): (403, 403, 403, 501),
    ("GET", "/openapi.json", None): (200, 200, 200, 200),
    ("GET", "/api/v2/facility", None): (200, 200, 200, 200),
}
USERS: Final = ("amy", "bob", "eve", "root")
SEES: Final = {"amy": 1, "bob": 0, "eve": 0, "root": 1}     # jobs of amy's


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A server with one job of amy's, which never begins and is not waited for."""
    monkeypatch.setattr("sssjob.serve.desk._CANCEL_S", 0.0)
    with still(tmp_path_factory.mktemp("rights")) as server:
        assert server.call("amy", "POST", "/v1/jobs", JOB.format("first", "")).status == 201
        yield server


def type_of(path: str) -> str:
    return "application/json" if path.startswith(IRI) else "text/plain" if path == "/v1/query" else "application/xml"


def test_who_may_do_what(place: Place) -> None:
    assert {asked: tuple(place.call(user, asked[0], asked[1], asked[2], **(
        {} if asked[2] is None else {"Content_Type": type_of(asked[1])})).status for user in USERS)
            for asked in TABLE} == TABLE


def test_who_sees_what(place: Place) -> None:
    """In lists and queries, of which others' jobs are no part: whoever asks, at all faces."""
    def counts(user: str) -> tuple[int, int, int, int | None]:
        query = Request("Query", user, (Object("Job"), Get("Key"), Where("Id", "first")))
        return (place.call(user, "GET", "/v1/jobs?name=first").body["total"],
                len(place.call(user, "POST", f"{IRI}/status/local").body),
                len(place.call(user, "POST", "/v1/query", "Query Job Get Key", Content_Type="text/plain"
                               ).body["objects"]),
                joined(responses(query, Peer("127.0.0.1", place.messages), signing=Signing(KEY))).count)

    assert {user: counts(user) for user in USERS} == {user: (count,) * 4 for user, count in SEES.items()}


def test_who_ends_what_by_messages(place: Place) -> None:
    """A shared key speaks for its actor, who has no more rights there."""
    def ended(user: str) -> int | None:
        cancel = Request("Cancel", user, (Object("Job"), Where("Id", "first")), id="c")
        return joined(responses(cancel, Peer("127.0.0.1", place.messages), signing=Signing(KEY))).count

    assert {user: ended(user) for user in USERS} == SEES
