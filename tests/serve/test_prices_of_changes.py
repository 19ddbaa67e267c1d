"""A job that waits is changed at each door; what is quoted, held and charged follows what it asks for then."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from sssjob.accounting import quote, read_rates
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.cli import main
from sssjob.document.model import Job
from sssjob.sssrmap import Object, Request, Set, Where
from sssjob.sssrmap.calling import Peer, Signing, joined, responses
from sssjob.xml.reader import read_document
from tests.run.support import eventually
from tests.serve.conftest import KEY, Place, Serving

RATES: Final = """name = "site"
version = "1"
currency = "EUR"
rate = [{type = "VBR", name = "Processors", rate = 1, per = "hour"},
        {type = "VBR", name = "Memory", units = "GB", rate = 2, per = "hour"},
        {type = "VBF", name = "Processors", rate = 5}]
"""
#: Two processors and a GB for an hour; what is left of that when it is done at once.
JOB: Final = ("<Job><Id>{0}</Id><User>amy</User><Project>chem</Project><Machine>{1}</Machine><Executable>/bin/true"
              "</Executable><Hold>User</Hold><Requested><Processors>2</Processors><Memory units='GB'>1</Memory>"
              "<Duration>3600</Duration></Requested></Job>")
BEFORE, AFTER, FEE = Decimal(14), Decimal(26), Decimal(10)


def by_http(place: Place, name: str) -> None:
    change = "<Job><Requested><Duration>2:00:00</Duration><Memory units='MB'>3072</Memory></Requested></Job>"
    assert place.call("amy", "POST", f"/v1/jobs/{name}/change", change).body["refusals"] == {}


def by_sssrmap(place: Place, name: str) -> None:
    parts = (Object("Job"), Where("Id", name), Set("WallDuration", "7200"), Set("Memory", "3", units="GB"))
    request = Request("Modify", "amy", parts, id=name)
    assert joined(responses(request, Peer("127.0.0.1", place.messages), signing=Signing(KEY))).count == 1


def by_iri(place: Place, name: str) -> None:
    job = place.call("amy", "GET", f"/v1/jobs/{name}").body["jobs"][0]["key"]
    body = '{"attributes": {"duration": 7200}, "resources": {"memory": 3221225472}}'
    reply = place.call("amy", "PUT", f"/api/v2/compute/job/local/{job}", body, Content_Type="application/json")
    assert reply.status == 200, reply


def by_command(place: Place, name: str) -> None:
    assert main(["change", name, "--set", "Duration=2:00:00", "--set", "Memory=3 GB"]) == 0


DOORS: Final[dict[str, Callable[[Place, str], None]]] = {
    "http": by_http, "sssrmap": by_sssrmap, "iri": by_iri, "command": by_command}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(open_store(str(tmp_path / "ledger.db"), create=True))
    ledger.deposit("chem", Decimal(1000), "EUR", new=True)
    return ledger


def test_prices_follow_changes(serving: Serving, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                               capsys: pytest.CaptureFixture[str]) -> None:
    """What was held before is given back when the job is charged for what it got, whatever it was to cost."""
    monkeypatch.setattr("tests.serve.conftest.RATES", RATES)
    rates = read_rates(RATES.encode())
    (tmp_path / "rates.toml").write_text(RATES)
    with ledger, serving(follow_s=0.2) as place:
        monkeypatch.setenv("SSSJOB_JOURNAL", str(place.journal))

        def standing(name: str) -> Job:
            """A job as its document says it now."""
            document = place.call("amy", "GET", f"/v1/jobs/{name}?as=xml").body
            (tmp_path / "job.xml").write_text(document)
            ((job, _),) = read_document(document).jobs()
            return job

        def outcome(name: str) -> Any:
            return place.call("amy", "GET", f"/v1/jobs/{name}").body["jobs"][0]["outcome"]

        def prices(name: str) -> list[Decimal]:
            """What a job would cost: over HTTP, by the command, and by what is held for it."""
            job = standing(name)
            quoted = place.call("amy", "POST", "/v1/quote", (tmp_path / "job.xml").read_text()).body["quotes"]
            capsys.readouterr()
            assert main(["quote", str(tmp_path / "job.xml"), "--rates", str(tmp_path / "rates.toml"), "--json"]) == 0
            charge = Decimal(json.loads(capsys.readouterr().out.splitlines()[0])["charge"])
            held, _ = ledger.hold(job, None, rates)
            return [Decimal(quoted[0]["charge"]), charge, held.amount]

        for door, change in DOORS.items():
            assert place.call("amy", "POST", "/v1/jobs", JOB.format(door, socket.gethostname())).status == 201
            assert prices(door) == [BEFORE] * 3, door
            ledger.release(ledger.hold_of(door))
            change(place, door)
            assert prices(door) == [AFTER] * 3, door
            assert quote(standing(door), rates, None).record()["exact"] == "26"
            assert place.call("amy", "POST", f"/v1/jobs/{door}/release").status == 200
        for door in DOORS:
            eventually(partial(outcome, door))
            job = standing(door)
            posted = ledger.charge(job, None, rates)
            seconds = next(p.value for p in job.delivered.all("Duration"))
            assert posted.entry is not None and posted.entry.amount == round(FEE + Decimal(2 * seconds) / 3600, 2)
        assert list(ledger.holds()) == []
