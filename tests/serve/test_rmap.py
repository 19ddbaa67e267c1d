"""SSSRMAP: requests over the wire, whose they are, and that what changes something is done once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from sssjob.limits import LIMITS, Limits
from sssjob.serve.access import User
from sssjob.serve.desk import Desk
from sssjob.serve.rmap import Replays
from sssjob.sssrmap import (
    Data,
    Envelope,
    File,
    Get,
    MessageError,
    Object,
    Option,
    Request,
    Response,
    Set,
    Where,
    read_message,
)
from sssjob.sssrmap.calling import Peer, Signing, joined, responses
from sssjob.sssrmap.framing import Receiver
from sssjob.sssrmap.model import Part
from sssjob.sssrmap.signing import sign
from sssjob.sssrmap.writer import write_message
from tests.run.support import eventually
from tests.serve.conftest import KEY, Place, Serving, still
from tests.spec.support import spec
from tests.sssrmap.recordings import exchanges

JOB: Final = "<Job><Id>{0}</Id><Executable>/bin/true</Executable></Job>"
SHARED: Final = Signing(KEY)
QUERY: Final = Request("Query", "amy", (Object("Job"), Get("Id"), Get("Outcome")))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server whose jobs never begin."""
    with still(tmp_path_factory.mktemp("rmap")) as place:
        yield place


def asked(place: Place, request: Request, *, signing: Signing | None = SHARED) -> Response:
    """The whole answer to a request."""
    return joined(responses(request, Peer("127.0.0.1", place.messages), signing=signing))


def code(response: Response) -> str | None:
    return response.status.code


def submit(name: str, id_: str | None, actor: str = "amy") -> Request:
    return Request("Submit", actor, (Object("Job"), Data(JOB.format(name))), id=id_)


@spec("SSSRMAP Actions", 1, 3)
def test_a_job_is_submitted_once_and_asked_for(place: Place) -> None:
    """By any signature that counts; nobody else sees it."""
    first, again = (asked(place, submit("one", "r1")) for _ in range(2))
    assert code(first) == "000" and first.count == 1 and first == again
    assert code(asked(place, submit("two", "r1"))) == "740", "the id was used for another document"
    assert "needs an id" in (asked(place, submit("two", None)).status.message or "")
    password = Signing(b"Pamy", password=True)
    where = Where("Id", "one")
    seen = asked(place, replace(QUERY, parts=(*QUERY.parts, where)), signing=password)
    assert seen.data is not None and "<Id>one</Id>" in seen.data.content
    assert asked(place, replace(QUERY, actor="bob")).count == 0


@spec("SSSRMAP Request", 3)
def test_a_file_beside_the_jobs_is_their_script(place: Place) -> None:
    """It stands behind Data, as the message format has it."""
    script = "<Job><Id>s</Id><Executable>#Script</Executable></Job>"
    parts = (Object("Job"), Data(script), File("Script", "#!/bin/sh\necho '<&>'\n"))
    assert code(asked(place, Request("Submit", "amy", parts, id="file"))) == "000"
    assert "echo '&lt;&amp;&gt;'" in place.call("amy", "GET", "/v1/jobs/s?as=xml").body
    lacking = asked(place, Request("Submit", "amy", parts[:2], id="no file"))
    assert lacking.status.value == "Failure" and "the File 'Script'" in (lacking.status.message or "")


@spec("SSSRMAP Actions", 2)
def test_a_job_is_cancelled_by_who_may(serving: Serving) -> None:
    where = Where("Id", "one")
    with serving() as place:
        asked(place, submit("one", "r1"))
        assert asked(place, Request("Cancel", "bob", (Object("Job"), where), id="c1")).count == 0
        cancelled = asked(place, Request("Cancel", "amy", (Object("Job"), where), id="c2"))
        assert cancelled.count == 1 and cancelled.data is not None and "<State>" in cancelled.data.content
        assert code(asked(place, Request("Cancel", "amy", (Object("Job"),), id="c3"))) == "314"


@pytest.mark.parametrize(("action", "parts"), [("Start", ()), ("Modify", (Set("Hold", ""),))])
@spec("SSSRMAP Actions", 5)
def test_what_else_is_asked_for_jobs(serving: Serving, action: str, parts: tuple[Set, ...]) -> None:
    """A held job may start; what cannot be done is told of each job, and others' jobs are none."""
    held = Request("Submit", "amy", (Object("Job"), Data(
        "<Job><Id>h</Id><Executable>/bin/sleep</Executable><Arguments>60</Arguments><Hold>User</Hold></Job>")),
                   id="s")
    where = Where("Id", "h")
    with serving() as place:
        asked(place, held)
        states = [asked(place, Request("Query", "amy", (Object("Job"), Get("State"), where))).data]
        assert asked(place, Request("Start", "bob", (Object("Job"), where), id="1")).count == 0
        assert asked(place, Request("Modify", "bob", (Object("Job"), where, Set("Hold", "")), id="1b")).count == 0
        started = asked(place, Request(action, "amy", (Object("Job"), where, *parts), id="2"))
        assert (code(started), started.count) == ("000", 1)
        again = asked(place, Request("Modify", "amy", (Object("Job"), where, Set("Hold", "User")), id="6"))
        assert (code(again), again.count) == ("740", 0) and "@1.1" in (again.status.message or "")
        assert states[0] is not None and "Hold" in states[0].content
        requeued = asked(place, Request("Requeue", "amy", (Object("Job"), where), id="3"))
        assert (code(requeued), requeued.count) == ("740", 0)
        assert "@1.1" in (requeued.status.message or "")
        assert code(asked(place, Request("Checkpoint", "amy", (Object("Job"), where), id="4"))) == "313"
        asked(place, Request("Cancel", "amy", (Object("Job"), where), id="5"))


@spec("SSSRMAP Actions", 6)
def test_a_job_that_runs_is_suspended_signalled_and_resumed(serving: Serving, tmp_path: Path) -> None:
    """At both faces; by nobody else; what ended is refused, where to cancel it again is not."""
    script = f"trap 'touch {tmp_path}/got' USR1; until test -e {tmp_path}/go; do sleep 0.05; done; exit 4"
    running = f"<Job><Id>r</Id><Executable>/bin/sh</Executable><Arguments>-c \"{script}\"</Arguments></Job>"
    numbers = count()

    def ask(place: Place, action: str, *options: Option, actor: str = "amy") -> tuple[str | None, int | None]:
        """The code of an answer, and how many jobs it was done for."""
        named: tuple[Part, ...] = (Object("Job"), Where("Id", "r"), *options)
        response = asked(place, Request(action, actor, named, id=f"n{next(numbers)}"))
        return code(response), response.count

    with serving() as place:
        assert code(asked(place, Request("Submit", "amy", (Object("Job"), Data(running)), id="s"))) == "000"
        assert ask(place, "Suspend", actor="bob") == ("000", 0)
        assert place.call("bob", "POST", "/v1/jobs/r/suspend").status == 404
        assert ask(place, "Suspend") == ("000", 1)
        assert place.call("amy", "GET", "/v1/jobs/r").body["jobs"][0]["state"] == "Suspended"
        assert place.call("amy", "POST", "/v1/jobs/r/resume").body["refusals"] == {}
        assert place.call("amy", "POST", "/v1/jobs/r/signal/nine").status == 400
        assert ask(place, "Signal", Option("Signal", "SIGUSR1")) == ("000", 1)
        eventually(lambda: (tmp_path / "got").exists())
        (tmp_path / "go").touch()
        eventually(lambda: place.call("amy", "GET", "/v1/jobs/r").body["jobs"][0]["outcome"])
        for wish in ("hold", "suspend", "resume", "signal/USR1", "rerun"):
            assert place.call("amy", "POST", f"/v1/jobs/r/{wish}").body["refusals"] == {"@1.1": "it has ended"}, wish
        assert ask(place, "Resume") == ("740", 0)
        assert place.call("amy", "POST", "/v1/jobs/r/cancel").body["refusals"] == {}


@spec("SSSRMAP Actions", 4)
def test_a_job_is_held_and_let_go(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Set, or by what is in Data; nothing is where one of several is wrong."""
    monkeypatch.setattr("sssjob.run.client.keep", lambda entry: None)
    asked_for: list[tuple[str, str]] = []
    numbers = count()

    def wish(desk: Desk, user: User, wanted: str, name: str) -> dict[str, Any]:
        asked_for.append((wanted, name))
        return {"jobs": [row.record() for row in desk.rows(user, name)], "refusals": {}}

    monkeypatch.setattr(Desk, "wish", wish)
    one, where = Where("Id", "one"), "<Job><Id>{}</Id>{}</Job>"
    with serving() as place:
        for name in ("one", "two"):
            asked(place, submit(name, name))

        def modify(*parts: Any, actor: str = "amy") -> tuple[str | None, int | None]:
            response = asked(place, Request("Modify", actor, (Object("Job"), *parts), id=f"m{next(numbers)}"))
            return code(response), response.count

        assert modify(one, Set("Hold", "User")) == ("000", 1)
        assert modify(Where("Id", "one"), Where("Id", "two", conj="Or"), Set("Hold", "")) == ("000", 2)
        both = where.format("two", "<Hold>User</Hold>") + where.format("one", "<Hold>User</Hold>")
        assert modify(Data(both)) == ("000", 2)
        assert modify(one, Set("Hold", "User"), actor="bob") == ("000", 0)
        assert asked_for == [("hold", "@1.1"), ("release", "@1.1"), ("release", "@2.1"), ("hold", "@2.1"),
                             ("hold", "@1.1")]
        for expected, parts in (
                ("316", (one, Set("Arguments", "5"))), ("317", (one, Set("Priority", "high"))),
                ("317", (one, Set("Hold", "System"))), ("314", (one,)),
                ("318", (one, Set("Hold", "User", "Inc"))), ("318", (one, Set("Hold", "User"), Set("Hold", ""))),
                ("314", (Set("Hold", "User"),)), ("314", (one, Set("Hold", "User"), Data(where.format("one", "")))),
                ("318", (one, Data(both))), ("314", (Data(where.format("one", "")),)),
                ("316", (Data(where.format("two", "<Hold>User</Hold>") + where.format("one", "<State>Hold</State>")),)),
                ("710", (Data(where.format("one", "<Colour>red</Colour>")),)), ("300", (Data("<Job><Hold/></Job>"),)),
                ("314", (Data("<Job><Hold>User</Hold></Job>"),))):
            assert modify(*parts)[0] == expected, parts
    assert len(asked_for) == 5      # nothing was asked for by what was refused


@spec("SSSRMAP Actions", 4)
def test_what_a_job_asks_for_is_modified(serving: Serving) -> None:
    """By Set with units, by a Job in Data, and with its Hold in one request; by nobody else. The document has it."""
    held = "<Job><Id>one</Id><Executable>/bin/true</Executable><Hold>User</Hold></Job>"
    one, numbers = Where("Id", "one"), count()
    with serving() as place:
        asked(place, Request("Submit", "amy", (Object("Job"), Data(held)), id="s"))

        def modify(*parts: Any, actor: str = "amy") -> tuple[str | None, int | None]:
            """The code of an answer, and how many jobs it was done for."""
            response = asked(place, Request("Modify", actor, (Object("Job"), *parts), id=f"m{next(numbers)}"))
            return code(response), response.count

        assert modify(one, Set("WallDuration", "600"), Set("Memory", "2", units="GB")) == ("000", 1)
        assert modify(one, Set("Name", "other"), actor="bob") == ("000", 0)
        assert modify(Data("<Job><Id>one</Id><Name>new</Name><Project>chem</Project></Job>")) == ("000", 1)
        assert modify(one, Set("User", "zoe"))[0] == "444"
        assert modify(one, Set("Nothing", "1"))[0] == "316"
        document = place.call("amy", "GET", "/v1/jobs/one?as=xml").body
        for text in ("<Duration>600</Duration>", '<Memory units="GB">2</Memory>', "<Name>new</Name>",
                     "<Project>chem</Project>"):
            assert text in document
        change = "<Job><Name>third</Name></Job>"
        assert place.call("amy", "POST", "/v1/jobs/one/change", change).body["refusals"] == {}
        assert place.call("amy", "POST", "/v1/jobs/one/change", "<Job><Id>x</Id></Job>").status == 400
        assert place.call("amy", "POST", "/v1/jobs/one/change", "<Job><Duration>x</Duration></Job>").status == 422
        assert place.call("amy", "GET", "/v1/jobs/one").body["jobs"][0]["name"] == "third"
        assert modify(one, Set("Hold", ""), Set("Priority", "3")) == ("000", 2)


def test_what_is_recorded_ends_no_later_job(serving: Serving) -> None:
    """A Cancel that comes again is answered alike, and does not end a job that has the name by now; nor is its id good
    for anything else."""
    cancel = Request("Cancel", "amy", (Object("Job"), Where("Id", "x")), id="c")
    with serving() as place:
        asked(place, submit("x", "s1"))
        first = asked(place, cancel)
        asked(place, Request("Submit", "amy", (Object("Job"), Data(
            "<Job><Id>x</Id><Executable>/bin/sleep</Executable><Arguments>60</Arguments></Job>")), id="s2"))
        assert asked(place, cancel) == first and first.count == 1
        assert code(asked(place, replace(cancel, action="Requeue"))) == "740"
        assert code(asked(place, replace(cancel, actor="bob"))) == "000", "ids are those of each user"
        alive = asked(place, Request("Query", "amy", (Object("Job"), Get("Key"), Where("JobClass", "active"))))
        assert alive.data is not None and "@2.1" in alive.data.content
        asked(place, replace(cancel, id="c2"))


def test_a_cancel_without_id_names_its_jobs(serving: Serving) -> None:
    """Else a recorded one could end jobs that are made later."""
    with serving(profile="gold") as place:
        for wheres in ((Where("State", "Idle"),), (Where("Id", "a"), Where("User", "amy", conj="Or")),
                       (Where("Id", "a*", "Match"),), (Where("Id", "NULL", "NE"),), (Where("Id", "a", "GT"),)):
            refused = asked(place, Request("Cancel", "amy", (Object("Job"), *wheres)))
            assert (code(refused), refused.status.message) == (
                "314", "Without an id Where has to name each job by Id, JobId, NativeId, Key.")
        for wheres in ((Where("JobId", "a"),), (Where("Id", "a"), Where("Key", "@1.1", conj="Or"))):
            assert code(asked(place, Request("Cancel", "amy", (Object("Job"), *wheres)))) == "000"


def test_honest_repeats_of_a_query_are_answered(place: Place) -> None:
    assert [code(asked(place, QUERY)) for _ in range(3)] == ["000"] * 3


@pytest.mark.parametrize(("request_", "signing", "expected"), [
    (QUERY, None, "424"), (QUERY, Signing(b"wrong"), "424"), (QUERY, Signing(KEY, "SHA1"), "424"),
    (QUERY, Signing(b"Pbob", password=True), "424"), (replace(QUERY, actor="mallory"), Signing(KEY), "444"),
    (replace(QUERY, actor="mallory"), Signing(b"", password=True), "424"),
    (replace(QUERY, parts=(Object("Account"),)), Signing(KEY), "444"),
    (replace(QUERY, parts=(Object("Zebra"),)), Signing(KEY), "444"),
    (replace(QUERY, actor="root", parts=(Object("Queue"),)), Signing(KEY), "740"),
    (replace(QUERY, actor="root", parts=(Object("Account"),)), Signing(KEY), "730"),
    (replace(QUERY, actor="eve", action="Submit", parts=(Object("Job"), Data(JOB)), id="x"), Signing(KEY), "444"),
    (replace(QUERY, action="Dance", parts=(Object("Job"),), id="x"), Signing(KEY), "313"),
    (replace(QUERY, action="Checkpoint", parts=(Object("Job"),)), Signing(KEY), "313"),
    *((Request("Signal", "amy", (Object("Job"), Where("Key", "@9"), *options), id=f"s{number}"), Signing(KEY), "314")
      for number, options in enumerate(((), (Option("Signal", "9"),), (Option("Signal", "USR1"),) * 2))),
    (Request("Suspend", "amy", (Object("Job"),), id="s"), Signing(KEY), "314"),
    (replace(QUERY, action="Cancel", parts=(Object("Account"), Where("Id", "1"))), Signing(KEY), "740"),
    (replace(QUERY, action="Deposit", parts=(Object("Job"),)), Signing(KEY), "740"),
    (replace(QUERY, parts=(Object("Job"), Option("Colour", "1"))), Signing(KEY), "710"),
    (replace(QUERY, parts=(Object("Job"), Option("Colour", "1")), policy="Warn"), Signing(KEY), "100"),
    (replace(QUERY, parts=(Object("Job"), Option("Colour", "1")), policy="Ignore"), Signing(KEY), "000"),
    (replace(submit("w", "w"), parts=(Object("Job"), Where("Id", "w"), Data(JOB.format("w")))), Signing(KEY), "710"),
    (replace(submit("w", "w"), parts=(Object("Job"), *[Data(JOB.format("w"))] * 2)), Signing(KEY), "710"),
    (Request("Cancel", "amy", (Object("Job"), Where("Key", "@9"), Data("<Job/>")), id="w"), Signing(KEY), "710"),
    (replace(QUERY, action=None), Signing(KEY), "312"), (replace(QUERY, parts=()), Signing(KEY), "311"),
    (replace(QUERY, parts=(Object("Job"), Where("Id", "x", "Almost"))), Signing(KEY), "710"),
    (replace(QUERY, extra=(("mood", "good"),)), Signing(KEY), "710"),
    (replace(QUERY, extra=(("mood", "good"),), policy="Warn"), Signing(KEY), "100"),
    (replace(QUERY, extra=(("mood", "good"),), policy="Ignore"), Signing(KEY), "000"),
    (replace(QUERY, action="Submit", parts=(Object("Job"),), id="x"), Signing(KEY), "314"),
    (submit("long", "x" * (LIMITS.identifier + 1)), Signing(KEY), "314"),
    (replace(QUERY, action="Submit", parts=(Object("Job"), Data("<Job><Colour/></Job>")), id="x"), Signing(KEY), "710"),
    (submit("e</Id><StartTime>soon</StartTime><Id>", "x"), Signing(KEY), "300"),
    (replace(QUERY, parts=(Object("Job"), Option("Limit", "x"))), Signing(KEY), "317"),
])
@spec("SSSRMAP Actions", 8)
def test_what_is_refused(place: Place, request_: Request, signing: Signing | None, expected: str) -> None:
    response = asked(place, request_, signing=signing)
    assert code(response) == expected, response.status
    assert "Traceback" not in (response.status.message or "")


def test_more_conditions_than_there_may_be(place: Place) -> None:
    many = tuple(Where("Id", "x", conj="Or") for _ in range(LIMITS.conditions + 1))
    assert code(asked(place, replace(QUERY, parts=(*QUERY.parts, *many)))) == "300"


@spec("SSSRMAP Response", 3)
def test_answers_come_in_pieces(place: Place) -> None:
    for number in range(3):
        asked(place, submit(f"p{number}", f"p{number}", "bob"))
    request = replace(QUERY, actor="bob", chunking=True, chunk_size=2)
    pieces = list(responses(request, Peer("127.0.0.1", place.messages), signing=Signing(KEY)))
    assert [(p.chunk_num, p.chunk_max, p.count) for p in pieces] == [(1, -1, 2), (2, 0, 1)]


# --- old clients

def told(place: Place, octets: bytes, half_close: bool = False) -> bytes:
    """All that octets are answered with."""
    with socket.create_connection(("127.0.0.1", place.messages), 20) as connection:
        connection.sendall(octets)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while more := connection.recv(65536):
            answer += more
        return answer


def test_recorded_requests_are_answered_as_gold_does(serving: Serving) -> None:
    """HTTP status and code of what Gold refuses for its frame, its envelope or its signature, and the head that old
    clients count in octets. Where Gold does what is asked there is no ledger here (730)."""
    with serving(profile="gold", hashes=("SHA1", "SHA256")) as place:
        for name, case in exchanges().items():
            topic, facts = case.get("topic"), case.get("facts", {})
            if topic not in ("frame", "sign", "envelope") or not facts.get("answered"):
                continue
            if name in _OTHERWISE:
                continue
            octets = told(place, case["request"].encode(), True)
            receiver = Receiver("reply")
            receiver.feed(octets)
            answered = read_message(receiver.payloads[0]).response
            assert octets.startswith(facts["http"].encode() + b"\r\n"), name
            if facts["http"].endswith("200 OK") and "host:" not in case["request"].lower():
                assert octets.startswith(case["response"].encode()[:88]), name
            if facts["code"] in ("242", "244", "424", "311", "312"):
                assert code(answered) == facts["code"], name
            else:
                assert code(answered) in ("740", "000", "730", "720") or name == "sign-24", name


#: Recorded requests -> why they are answered otherwise.
_OTHERWISE: Final = {
    "envelope-02": "no Body is 242 for the reader, before the signature is looked at",
    "envelope-13": "the object as an attribute is understood",
    "envelope-21": "a DOCTYPE is refused", "envelope-22": "a DOCTYPE is refused",
    **dict.fromkeys(("sign-05", "sign-07", "sign-08", "sign-09", "sign-15", "sign-17", "sign-20"),
                    "what was sent is signed, which Maui does"),
}


def test_a_message_of_an_old_client_is_not_done_twice(serving: Serving, tmp_path: Path) -> None:
    """It has no id; the same octets within minutes are refused, and queries are not."""
    with serving(profile="gold", hashes=("SHA1",)) as place:
        signing = Signing(KEY, "SHA1")
        assert code(asked(place, submit("old", None), signing=signing)) == "000"
        second = asked(place, submit("old", None), signing=signing)
        assert code(second) == "424" and "same message" in (second.status.message or "")
        assert [code(asked(place, QUERY, signing=signing)) for _ in range(2)] == ["000"] * 2


def test_replays_are_forgotten_in_their_order() -> None:
    now = [0.0]
    replays = Replays(10.0, lambda: now[0])
    for at, signature in ((0.0, "a"), (5.0, "b"), (11.0, "a")):
        now[0] = at
        replays.check(signature)
    for signature in ("a", "b"):
        with pytest.raises(MessageError, match="same message"):
            replays.check(signature)
    now[0] = 21.5
    replays.check("a")


# --- hostile clients

def test_what_is_no_message(serving: Serving, small: Limits) -> None:
    """Half-closed, cut, slow, giant: an answer or an end, in time, and all others are served."""
    with serving(limits=replace(small, message_bytes=4_000)) as place:
        head = b"POST /SSSRMAP3 HTTP/1.1\r\nContent-Type: text/xml\r\n"
        assert told(place, b"", True) == b""
        assert told(place, b"GET / HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405 ")
        assert told(place, head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n<a", True).startswith(b"HTTP/1.1 400 ")
        assert told(place, head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert told(place, head + b"Content-Length: 5000\r\n\r\n").startswith(b"HTTP/1.1 413 ")
        assert told(place, head + b"Content-Length: 5\r\n\r\n<a") == b"", "slow: the connection ends"
        entity = b'<!DOCTYPE Envelope [<!ENTITY a "b">]><Envelope><Body>&a;</Body></Envelope>'
        answer = told(place, head + b"Content-Length: %d\r\n\r\n" % len(entity) + entity)
        assert b"<Code>300</Code>" in answer and b"document type" in answer
        idle = [socket.create_connection(("127.0.0.1", place.messages)) for _ in range(50)]
        assert code(asked(place, QUERY)) == "000"
        for connection in idle:
            connection.close()


def test_a_message_is_read_in_pieces_of_octets(place: Place) -> None:
    """However slowly it comes, within its time."""
    octets = write_message(sign(Envelope(QUERY), KEY)).encode()
    with socket.create_connection(("127.0.0.1", place.messages), 20) as connection:
        request = (b"POST /SSSRMAP3 HTTP/1.1\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
                   + b"%X\r\n%b\r\n0\r\n" % (len(octets), octets))
        for at in range(0, len(request), 50):
            connection.sendall(request[at:at + 50])
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
