"""Documents over HTTP: what each operation answers, to whom, and what is refused."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sssjob.findings import Policy
from sssjob.limits import Limits
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.run.routing import Candidate, advance_all, begin_parts
from sssjob.serve.access import Pace
from sssjob.serve.contract import EVERYTHING
from sssjob.serve.desk import Desk
from sssjob.serve.operations import Operation
from tests.run.support import eventually
from tests.serve.conftest import Place, Serving, still
from tests.strategies import examples

JOB = "<Job><Id>{0}</Id><Executable>/bin/sh</Executable><Arguments>-c '{1}'</Arguments></Job>"
SCRIPT = "#!/bin/sh\n#SBATCH --ntasks=4 --time=10\n#SBATCH -J four\nsrun ./x\n"
REQUEST = "<Job><Requested><Processors>4</Processors><Duration>600</Duration></Requested></Job>"


def job(name: str, script: str = "true") -> str:
    return JOB.format(name, script)


def ended(place: Place, user: str, name: str) -> dict[str, Any]:
    """A job as it is when it has ended."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        row: dict[str, Any] = place.call(user, "GET", f"/v1/jobs/{name}").body["jobs"][0]
        if row["outcome"] is not None:
            return row
        time.sleep(0.05)
    raise AssertionError(f"{name} has not ended")


# --- documents

def test_documents_are_converted_matched_and_priced(place: Place) -> None:
    """By who has a token, without any right."""
    reply = place.call("eve", "POST", "/v1/convert?to=pbspro&from=slurm&policy=Warn", SCRIPT, Content_Type="text/plain")
    assert reply.status == 200 and reply.body["format"] == "pbspro"
    assert "#PBS -N four" in reply.body["text"].splitlines() and isinstance(reply.body["findings"], list)
    offers = ["<Job><Delivered><Processors>8</Processors><Duration>900</Duration></Delivered></Job>",
              "<Job><Delivered><Processors>2</Processors><Duration>900</Duration></Delivered></Job>"]
    verdicts = place.call("eve", "POST", "/v1/match", json.dumps({"request": REQUEST, "offers": offers}),
                          Content_Type="application/json")
    assert [offer["met"] for offer in verdicts.body["offers"]] == [True, False]
    assert [(offer["offer"], "job" in offer) for offer in verdicts.body["offers"]] == [(0, False), (1, False)]
    quoted = place.call("eve", "POST", "/v1/quote", REQUEST, Content_Type="application/xml")
    assert quoted.status == 200 and [q["charge"] for q in quoted.body["quotes"]] == ["2400.00"]


def test_each_offer_of_a_document_has_a_verdict(place: Place) -> None:
    """As `match` of the command line has them: what a manager answers holds an offer for each queue, and a sweep a
    request for each of its jobs. The first was refused, the second was one request that had the name `a{n}`."""
    nodes = [{"name": f"n{cpus}", "partitions": [queue], "cpus": cpus, "real_memory": 1000, "state": ["IDLE"],
              "active_features": [], "alloc_cpus": 0, "gres": ""} for queue, cpus in (("small", 2), ("large", 64))]
    text = json.dumps({"meta": {}, "nodes": nodes})
    sweep = ("<JobGroup><Id>s</Id><Job><Id>a{n}</Id><Executable>/bin/a</Executable><Extension type='Scheduler' "
             "name='Sweep'>n=2,3</Extension><Requested><Processors>4</Processors></Requested></Job></JobGroup>")
    for request, called in (("<Job><Requested><Processors>4</Processors></Requested></Job>", set()),
                            (sweep, {"Job a2", "Job a3"})):
        offers = [text, "<Job><Delivered><Processors>1</Processors></Delivered></Job>"]
        reply = place.call("eve", "POST", "/v1/match", json.dumps({"request": request, "offers": offers}),
                           Content_Type="application/json")
        assert [(o["offer"], o.get("job"), o["met"]) for o in reply.body["offers"]] == [
            (0, "small", False), (0, "large", True), (1, None, False)]
        assert {part["text"] for part in reply.body["offers"][1]["explanation"]["parts"]} & {
            "Job a{n}", "Job a2", "Job a3"} == called
    many = "<JobGroup><Id>m</Id>" + "<Job><Processors>1</Processors></Job>" * 1001 + "</JobGroup>"
    reply = place.call("eve", "POST", "/v1/match", json.dumps({"request": REQUEST, "offers": [many]}),
                       Content_Type="application/json")
    assert (reply.status, reply.body["message"]) == (400, "there are more than 1000 offers")


def test_what_curl_sends_is_taken(place: Place) -> None:
    """It calls a body a form where nobody said what it is."""
    form = "application/x-www-form-urlencoded"
    assert place.call("eve", "POST", "/v1/convert?to=slurm", job("curl"), Content_Type=form).status == 200
    assert place.call("eve", "POST", "/v1/query", "Query Job Get Id", Content_Type=form).status == 200


def test_octets_of_no_encoding_come_back(quiet: Place) -> None:
    """A comment in Latin-1 is no reason to refuse a script, nor to fail."""
    script = SCRIPT.encode() + b"# Z\xfcrich\n"
    reply = quiet.call("eve", "POST", "/v1/convert?to=pbspro&policy=Warn", script, Content_Type="text/plain")
    assert reply.status == 200 and script.rpartition(b"# ")[2] in reply.body["text"].encode("utf-8", "surrogateescape")


# --- jobs

def test_a_job_is_submitted_followed_and_its_document_returned(place: Place) -> None:
    reply = place.call("amy", "POST", "/v1/jobs", job("one", "exit 3"))
    assert reply.status == 201 and reply.body["jobs"][0]["id"] == "one"
    assert reply.body["submission"].startswith("@")
    row = ended(place, "amy", "one")
    assert (row["outcome"], row["exit_code"]) == ("failed", 3)
    text = place.call("amy", "GET", "/v1/jobs/one?as=xml")
    assert text.headers["content-type"].startswith("application/xml") and "<ExitCode>3</ExitCode>" in text.body
    listed = place.call("amy", "GET", "/v1/jobs?ended=true&name=one").body
    assert listed["total"] == 1 and listed["jobs"][0]["exit_code"] == 3
    question = "Query Job Where Id=one Get Id,ExitCode"
    objects = place.call("amy", "POST", "/v1/query", question, Content_Type="text/plain")
    assert objects.body == {"code": "000", "objects": [{"Id": "one", "ExitCode": "3"}]}


def test_a_group_that_went_to_several_sites_is_one_document(place: Place, tmp_path: Path) -> None:
    """A part is a submission of its own; its jobs are not taken for those of the first part."""
    several = []
    for number, names in enumerate((("a", "b"), ("c",))):
        (profile := tmp_path / f"s{number}.toml").write_text(f"name = 's{number}'\nmanager = 'local'\n")
        text = f"<JobGroup><Id>parted</Id>{''.join(map(job, names))}</JobGroup>"
        several.append(([Candidate(f"s{number}", str(profile), "local", None, text, "")], ((0, 2), (1,))[number]))
    with open_journal(place.journal) as journal:
        client = Client(journal)
        routes = begin_parts(journal, several, policy=Policy.IGNORE, directory=tmp_path)
        advance_all(client, [route.token for route in routes])
        client.wait(["parted"], 60)
    text = place.call("root", "GET", "/v1/jobs/parted?as=xml").body
    assert re.findall("<Id>(.*?)</Id>", text) == ["parted", "a", "c", "b"] and text.count("<JobGroup>") == 1
    assert re.findall('name="Site">(.*?)<', text) == ["s0", "s1", "s0"]


def test_users_see_their_own_jobs(quiet: Place) -> None:
    """What is another one's is as if it were not there, by every door."""
    for user, name in (("amy", "shared"), ("bob", "shared"), ("bob", "secret")):
        assert quiet.call(user, "POST", "/v1/jobs", job(name)).status == 201
    keys = {user: quiet.call(user, "GET", "/v1/jobs/shared").body["jobs"][0]["key"] for user in ("amy", "bob")}
    assert keys["amy"] != keys["bob"]
    absent = quiet.call("amy", "GET", "/v1/jobs/nothing")
    for path in ("secret", keys["bob"], keys["bob"].partition(".")[0]):
        reply = quiet.call("amy", "GET", f"/v1/jobs/{path}")
        assert reply.status == absent.status == 404
        assert reply.body["message"] == absent.body["message"].replace("nothing", path)
        assert quiet.call("amy", "POST", f"/v1/jobs/{path}/cancel").status == 404
        assert quiet.call("amy", "GET", f"/v1/jobs/{path}?as=xml").status == 404
    names = [row["id"] for row in quiet.call("amy", "GET", "/v1/jobs?ended=true").body["jobs"]]
    assert "secret" not in names and names.count("shared") == 1
    question = "Query Job Where Id=secret Get Id"
    assert quiet.call("amy", "POST", "/v1/query", question, Content_Type="text/plain").body["objects"] == []
    assert quiet.call("root", "POST", "/v1/query", question, Content_Type="text/plain").body["objects"]
    assert quiet.call("root", "GET", "/v1/jobs/secret").status == 200


def test_a_job_is_cancelled_by_its_owner_or_who_may(place: Place) -> None:
    for user, name in (("amy", "long1"), ("amy", "long2")):
        place.call(user, "POST", "/v1/jobs", job(name, "sleep 60"))
    assert place.call("bob", "POST", "/v1/jobs/long1/cancel").status == 404
    for user, name in (("amy", "long1"), ("root", "long2")):
        assert place.call(user, "POST", f"/v1/jobs/{name}/cancel").status == 200
        assert ended(place, "amy", name)["outcome"] == "canceled"


def test_who_filled_in_which_fact(place: Place) -> None:
    """What the user wrote is told from what was learnt, and by whom; the annotated document has the same."""
    assert place.call("amy", "POST", "/v1/jobs", job("sourced")).status == 201
    ended(place, "amy", "sourced")
    (told,) = place.call("amy", "GET", "/v1/jobs/sourced?as=sources").body["jobs"]
    facts = {one["fact"]: one for one in told["facts"]}
    assert facts["ExitCode"]["value"] == "0" and facts["ExitCode"]["source"] not in ("sssjob", "user")
    assert told["disagreements"] == told["left_out"] == [] and told["id"] == "sourced"
    text = place.call("amy", "GET", "/v1/jobs/sourced?as=annotated").body
    for fact in facts:
        assert f'name="Source.{fact.replace("/", ".").replace(" ", ".")}"' in text
    assert "Source." not in place.call("amy", "GET", "/v1/jobs/sourced?as=xml").body
    assert place.call("bob", "GET", "/v1/jobs/sourced?as=sources").status == 404


def test_rights(quiet: Place) -> None:
    assert quiet.call("eve", "POST", "/v1/jobs", job("x")).body["message"] == "eve has not the right submit"
    other = job("x").replace("<Executable>", "<User>bob</User><Executable>")
    assert quiet.call("amy", "POST", "/v1/jobs", other).status == 403
    assert quiet.call("bob", "POST", "/v1/jobs", other.replace("<Id>x", "<Id>own")).status == 201
    assert quiet.call("amy", "GET", "/v1/balance").status == 403
    for method, path, text in (("GET", "/v1/balance", None), ("GET", "/v1/balance?account=a%27%22b", None),
                               ("POST", "/v1/query", "Query Account")):
        lacking = quiet.call("root", method, path, text, **({"Content_Type": "text/plain"} if text else {}))
        assert (lacking.status, lacking.body["message"]) == (
            501, "this server has no ledger yet; `sssjob ledger deposit` makes it")
    assert quiet.call("amy", "POST", "/v1/query", "Query Account", Content_Type="text/plain").status == 403


def test_a_submission_is_made_once(quiet: Place) -> None:
    """However often it is sent with its key, at the same time too; another document under the key is refused."""
    replies: list[tuple[int, str]] = []

    def send() -> None:
        for _ in range(5):
            reply = quiet.call("amy", "POST", "/v1/jobs", job("once"), Idempotency_Key="k-1")
            replies.append((reply.status, reply.body["submission"]))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 20 and len({submission for _, submission in replies}) == 1
    assert sorted(status for status, _ in replies) == [200] * 19 + [201]
    assert quiet.call("amy", "POST", "/v1/jobs", job("twice"), Idempotency_Key="k-1").status == 409
    assert quiet.call("bob", "POST", "/v1/jobs", job("once"), Idempotency_Key="k-1").status == 201, "a key is a user's"
    with open_journal(quiet.journal) as journal:
        assert len([row for row in journal.rows() if row.id == "once"]) == 2


def test_what_happens_is_told_to_who_may_see_it(place: Place) -> None:
    """Server-sent events, from a number on; a stream that broke goes on where it was."""
    before = place.server.happenings.last
    place.call("bob", "POST", "/v1/jobs", job("hidden"))
    place.call("amy", "POST", "/v1/jobs", job("told"))
    ended(place, "bob", "hidden")
    ended(place, "amy", "told")
    events = list(listened(place, "amy", "/v1/events", {"Last-Event-ID": str(before)}, "told"))
    assert "hidden" not in {event["job"]["id"] for event in events}
    numbers = [event["number"] for event in events]
    assert numbers == sorted(numbers) and [e["kind"] for e in events][-1] == "ended"
    again = list(listened(place, "amy", f"/v1/events?since={numbers[0]}", {}, "told"))
    assert [event["number"] for event in again] == numbers[1:]
    assert {"hidden", "told"} <= {event["job"]["id"] for event in listened(
        place, "root", f"/v1/events?since={before}", {}, "hidden", "told")}


def listened(place: Place, user: str, path: str, headers: dict[str, str], *until: str) -> Iterator[dict[str, Any]]:
    """The events of a stream until that of the end of each of some jobs came."""
    awaited = set(until)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
    connection.request("GET", path, headers={"Authorization": f"Bearer T{user}", **headers})
    response = connection.getresponse()
    assert response.status == 200 and response.headers["content-type"].startswith("text/event-stream")
    number = 0
    while awaited:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: "):
            event = json.loads(line[6:])
            yield event | {"number": number}
            if event["kind"] == "ended":
                awaited.discard(event["job"]["id"])
    response.close()
    connection.close()


# --- strangers, limits, wrong requests

@pytest.mark.parametrize("path", ["/", "/v1/jobs", "/openapi.json", "/v1/nothing", "/v1/jobs/a/cancel", "//"])
@pytest.mark.parametrize("headers", [
    {}, {"Authorization": "Bearer"}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic Tamy"},
    {"Authorization": "Tamy"}, {"Authorization": "Bearer Tamy, Bearer x"}, {"Authorization": "Bearer \xff"}])
def test_without_a_token_there_is_a_status_code(place: Place, path: str, headers: dict[str, str]) -> None:
    """And nothing else: not even which paths there are."""
    for method in ("GET", "POST", "DELETE"):
        reply = place.call(None, method, path, b"x" * 10 if method == "POST" else None, **headers)
        assert (reply.status, reply.body) == (401, "")
    assert place.call(None, "GET", "/health").status == 204


@pytest.mark.parametrize(("method", "path", "body", "headers", "status", "message"), [
    ("GET", "/v1/jobs?ended=maybe", None, {}, 400, "ended='maybe' is not known (known: true, false)"),
    ("GET", "/v1/jobs?colour=red", None, {}, 400, "unknown parameter 'colour' (known: ended, state, name"),
    ("GET", "/v1/jobs?limit=99999", None, {}, 400, "limit='99999' is no whole number from 0 to 10000"),
    ("GET", "/v1/jobs?limit=%D9%A3", None, {}, 400, "is no whole number"),
    ("GET", "/v1/jobs?name=a&name=b", None, {}, 400, "name is stated twice"),
    ("GET", "/v1/jobs?state=Asleep", None, {}, 400, "there is no state 'Asleep'"),
    ("GET", "/v1/jobs", "body", {}, 400, "takes no body"),
    ("GET", f"/v1/jobs/{'x' * 2000}", None, {}, 400, "limit identifier"),
    ("GET", "/v1/jobs/a%00b", None, {}, 404, "there is no job"),
    ("GET", "/v1/jobs/..%2f..%2fetc", None, {}, 404, ""),
    ("POST", "/v1/jobs", "", {}, 400, "there is no body"),
    ("POST", "/v1/jobs", "<Job>", {}, 422, "SSS101"),
    ("POST", "/v1/jobs", '<!DOCTYPE Job [<!ENTITY a "b">]><Job>&a;</Job>', {}, 422, "SSS102"),
    ("POST", "/v1/jobs", "<Job><Colour>red</Colour></Job>", {}, 422, "SSS301"),
    ("POST", "/v1/jobs", job("x"), {"Content_Type": "image/png"}, 415, "image/png is not taken"),
    ("POST", "/v1/jobs", job("x"), {"Content_Encoding": "gzip"}, 415, "no Content-Encoding"),
    ("POST", "/v1/jobs", job("x"), {"Idempotency_Key": "a b"}, 400, "Idempotency-Key"),
    ("POST", "/v1/jobs?executor=slurm", job("x"), {}, 400, "executor 'slurm' is not to be had here (known: local)"),
    ("POST", "/v1/jobs?from=klingon", job("x"), {}, 400, "klingon"),
    ("POST", "/v1/jobs?from=sss", "\xff\xfe", {}, 422, ""),
    ("POST", "/v1/convert?to=klingon", job("x"), {}, 400, "klingon"),
    ("POST", "/v1/match", "[]", {"Content_Type": "application/json"}, 400, "no JSON object"),
    ("POST", "/v1/match", "{}", {"Content_Type": "application/json"}, 400, "members request, offers"),
    ("POST", "/v1/match", "{", {"Content_Type": "application/json"}, 400, "not JSON"),
    ("POST", "/v1/match", "[" * 100_000, {"Content_Type": "application/json"}, 400, "nested too deep"),
    ("POST", "/v1/match", '{"request": "", "offers": [], "offers": []}', {"Content_Type": "application/json"}, 400,
     "twice"),
    ("POST", "/v1/match", '{"request": "a\\ud800", "offers": []}', {"Content_Type": "application/json"}, 422, ""),
    ("POST", "/v1/query", "Query Job Where", {"Content_Type": "text/plain"}, 400, "a property is expected"),
    ("POST", "/v1/query", b"\xff", {"Content_Type": "text/plain"}, 400, "UTF-8"),
    ("POST", "/v1/query", "Charge Job", {"Content_Type": "text/plain"}, 400, "313"),
    ("GET", "/v1/balance", None, {}, 403, "right ledger"),
    ("DELETE", "/v1/jobs", None, {}, 405, "DELETE /v1/jobs is nothing that can be asked here"),
    ("GET", "/v1/nothing", None, {}, 404, "nothing that can be asked here"),
])
def test_wrong_requests_are_refused_by_name(place: Place, method: str, path: str, body: str | bytes | None,
                                            headers: dict[str, str], status: int, message: str) -> None:
    reply = place.call("amy", method, path, body, **headers)
    assert reply.status == status, reply
    if message:
        assert message in reply.body["message"] and reply.body["status"] == status
    assert "Traceback" not in str(reply.body)


@pytest.mark.parametrize(("path", "methods"), [
    ("/v1/jobs", "GET, HEAD, POST"), ("/v1/jobs/@1.1/cancel", "POST"), ("/api/v1/compute/job/local/@1.1", "PUT"),
    ("/api/v2/compute/status/local", "POST")])
def test_what_can_be_done_at_a_place_is_told_whole(quiet: Place, path: str, methods: str) -> None:
    """Though each operation is a route of its own."""
    reply = quiet.call("amy", "DELETE", path)
    assert (reply.status, reply.headers["allow"]) == (405, methods)


def test_sizes_and_times_are_limited(serving: Serving, small: Limits) -> None:
    """A giant body, a slow one, one that ends early, a giant head; all others are served meanwhile."""
    with serving(limits=small) as place:
        assert place.call("amy", "POST", "/v1/convert", b"x" * 3_000).status == 413
        head = "POST /v1/convert HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer Tamy\r\n"
        assert spoken(place, f"{head}Content-Length: 100\r\n\r\nabc") == "408"
        assert spoken(place, f"{head}X: {'y' * 5_000}\r\n\r\n") in ("400", "431")
        assert spoken(place, f"{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == "400"
        assert spoken(place, f"{head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc") == "400"
        assert spoken(place, f"{head}Content-Length : 3\r\n\r\nabc") == "400"
        assert place.call("amy", "GET", "/v1/jobs").status == 200


def spoken(place: Place, octets: str) -> str:
    """The status that octets are answered with."""
    with socket.create_connection(("127.0.0.1", place.port), 20) as connection:
        connection.sendall(octets.encode())
        return connection.recv(1000).decode().split()[1]


def test_requests_are_limited_in_their_rate(serving: Serving) -> None:
    """Of each user, and of strangers from an address, who cannot try tokens as fast as they like."""
    with serving(pace=Pace(0.01, 3), strangers=Pace(0.01, 2)) as place:
        assert [place.call("amy", "GET", "/v1/jobs").status for _ in range(5)] == [200, 200, 200, 429, 429]
        assert place.call("bob", "GET", "/v1/jobs").status == 200
        assert [place.call(None, "GET", "/v1/jobs").status for _ in range(3)] == [401, 401, 429]
        assert int(place.call("amy", "GET", "/v1/jobs").headers["retry-after"]) > 50
        facility = place.call("amy", "GET", "/api/v2/facility")
        assert (facility.status, facility.headers["content-type"]) == (429, "application/problem+json")
        assert int(facility.headers["retry-after"]) > 50


def test_connections_are_limited(serving: Serving) -> None:
    """Too many are told so; those that wait for nothing cost little."""
    with serving(connections=10) as place:
        idle = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(12)]
        try:
            assert place.call("amy", "GET", "/v1/jobs").status == 503
        finally:
            for connection in idle:
                connection.close()
        end = time.monotonic() + 20
        while place.call("amy", "GET", "/v1/jobs").status == 503 and time.monotonic() < end:
            time.sleep(0.02)
        assert place.call("amy", "GET", "/v1/jobs").status == 200


def test_the_log_says_who_asked_for_what(serving: Serving) -> None:
    """Nothing of tokens and bodies is in it."""
    with serving() as place:
        place.call("amy", "POST", "/v1/jobs", job("logged", "true secret"), Idempotency_Key="k")
        place.call(None, "GET", "/v1/jobs", Authorization="Bearer wrong-token")
        place.call("eve", "POST", "/v1/jobs", job("x"))
        lines = place.log()
    assert [(line.get("user"), line["operation"], line["status"], line.get("subject")) for line in lines] == [
        ("amy", "submit", 201, "k"), (None, "none", 401, None), ("eve", "submit", 403, None)]
    text = place.audit.read_text()
    assert "secret" not in text and "token" not in text and "Tamy" not in text
    assert place.audit.stat().st_mode & 0o777 == 0o600


def test_it_stops_while_events_are_listened_to(serving: Serving, tmp_path: Path) -> None:
    """Streams end; a job that runs goes on, and the next server knows it."""
    with serving() as place:
        place.call("amy", "POST", "/v1/jobs", job("stays", "sleep 0.5; exit 4"))
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
        connection.request("GET", "/v1/events", headers={"Authorization": "Bearer Tamy"})
        stream = connection.getresponse()
        assert stream.readline() == b": listening\n"
    stream.read()
    connection.close()
    with serving() as place:
        assert ended(place, "amy", "stays")["exit_code"] == 4


def test_the_description_is_of_all_operations(place: Place) -> None:
    described = place.call("eve", "GET", "/openapi.json").body
    assert described["openapi"] == "3.1.0"
    ids = [operation["operationId"] for path in described["paths"].values() for operation in path.values()]
    assert sorted(ids) == sorted(operation.name for operation in EVERYTHING)
    submit = described["paths"]["/v1/jobs"]["post"]
    assert {"200", "201", "400", "401", "403", "409", "413", "422", "429"} <= submit["responses"].keys()
    assert {match[1] for match in re.finditer('"#/components/schemas/([A-Za-z]+)"', json.dumps(described))} == \
        described["components"]["schemas"].keys()
    spec = described["components"]["schemas"]["JobSpec"]
    assert spec["additionalProperties"] is False and "executable" in spec["properties"]


ALPHABET = st.sampled_from(["<Job>", "</Job>", "<Id>a</Id>", "<", "&", "{", "}", "[", '"', "\x00", "\ud800", "\u20ac",
                            "a", "1", " ", "\n", "#!/bin/sh\n", "#SBATCH -n 1\n", "Query ", "Job ", "Get ", "Where ",
                            "Id", "="])


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(operation=st.sampled_from([one for one in EVERYTHING if one.name != "events"]),
       body=st.lists(ALPHABET, max_size=12).map("".join), id_=st.text(max_size=5), data=st.data(),
       user=st.sampled_from(["amy", "root"]))
def test_any_request_is_answered_and_never_with_500(quiet: Place, operation: Operation, body: str, id_: str, user: str,
                                                    data: st.DataObject) -> None:
    """With parameters that may be right or wrong, and bodies that may mean something."""
    chosen = data.draw(st.lists(st.sampled_from(operation.parameters), unique=True, max_size=3)) if \
        operation.parameters else []
    values = [(one.name, data.draw(st.sampled_from([*one.choices, "1", "slurm", "x", id_])))
              for one in chosen if one.where == "query"]
    query = "&".join(f"{name}={quote(value, safe='', errors='replace')}" for name, value in values)
    path = operation.path.replace("{id}", quote(id_ or "a", safe="", errors="replace"))
    sent = body.encode("utf-8", "replace") if operation.method == "POST" else None
    reply = quiet.call(user, operation.method, f"{path}?{query}", sent, Content_Type=(operation.takes or ("x/y",))[0])
    assert reply.status in {200, 201, 400, 403, 404, 409, 415, 422} or (
        reply.status == 501 and operation.name in ("balance", "query")), "there is no ledger"


@pytest.mark.parametrize(("path", "looks"), [("/v1/jobs", True), ("/v1/jobs/@1.1", True),
                                             ("/api/v2/compute/status/local/@1.1", True), ("/openapi.json", False)])
def test_managers_are_asked_again_when_clients_ask(path: str, looks: bool, tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks how a job stands knows it soon, however seldom the server looks by itself."""
    asked: list[float] = []
    monkeypatch.setattr("sssjob.serve.web._SOONEST_S", 0.02)
    monkeypatch.setattr(Desk, "follow", lambda desk, seconds: asked.append(time.monotonic()))
    with still(tmp_path) as place:
        assert place.call("amy", "POST", "/v1/jobs?wait=false", job("a")).status == 201
        eventually(lambda: asked)
        before = len(asked)
        place.call("amy", "GET", path)
        if looks:
            eventually(lambda: len(asked) > before)
        else:
            time.sleep(0.05)
            assert len(asked) == before
