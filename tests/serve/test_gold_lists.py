"""What Gold's list commands ask (gbalance, gls..., gstatement, gusage), answered over the ledger: each needs every
property that it asks for, in that order, empty where nothing is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

import pytest

from sssjob.accounting import read_rates
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.serve.access import User
from sssjob.serve.bank import answer as answer_of_bank
from sssjob.sssrmap import Data, Object, Option, Request, Response
from sssjob.sssrmap.answering import answer
from sssjob.sssrmap.calling import Peer, Signing, joined, responses
from sssjob.sssrmap.gold import GoldSource
from sssjob.sssrmap.sentences import request_of
from tests.serve.conftest import KEY, RATES, Serving

TELLER: Final = User("root", frozenset({"bank", "ledger"}))
JOB: Final = ("<Job><JobId>{}</JobId><UserId>amy</UserId><ProjectId>chem</ProjectId><MachineName>colony</MachineName>"
              "<Queue>q</Queue><Processors>4</Processors><WallDuration>100</WallDuration></Job>")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the ledger is."""
    return str(tmp_path_factory.mktemp("gold") / "ledger")


@pytest.fixture(scope="module")
def ledger(place: str) -> Iterator[Ledger]:
    """A day: two accounts, a hold, a charge of which a part was given back, a quote, money taken out."""
    with Ledger(open_store(place)) as day:
        day.deposit("chem", Decimal(2000), "", new=True)
        day.deposit("old", Decimal(50), "", new=True)
        day.configure("old", closed=True, users=("bob",))
        for action, name, *options in (("Charge", "j.1"), ("Reserve", "j_2"),
                                       ("Quote", "", Option("Guarantee", "True"))):
            posted = answer_of_bank(day, read_rates(RATES.encode()), TELLER, Request(action, "root", (
                Object("Job"), *options, Data(JOB.format(name))), id=action), "gold")
            assert posted.status.succeeded, posted.status
        day.refund(4, Decimal(150), token="serve:eve:back")
        day.withdraw("chem", Decimal(20), "", reason="rent")
        yield day


def asked(ledger: Ledger, text: str) -> Response:
    request = request_of(text, "root")
    return answer(request, GoldSource(ledger, request), now=2_000_000_000, profile="gold")


def rows(response: Response) -> list[list[str]]:
    """The texts of each object, in their order."""
    assert response.status.code == "000", response.status
    objects = [] if response.data is None else re.findall(r"<(\w+)>((?:<\w+>[^<]*</\w+>)*)</\1>", response.data.content)
    return [re.findall(r"<\w+>([^<]*)</", inner) for _, inner in objects]


@pytest.mark.parametrize(("text", "expected"), [
    # gbalance
    ("Query Allocation Where StartTime<=now And EndTime>now And CallType=Normal "
     "Get GroupBy(Account), Sum(Amount), Sum(CreditLimit), Sum(Deposited)",
     [["chem", "1730", "0", "2000"], ["old", "50", "0", "50"]]),
    ("Query Reservation, ReservationAllocation Where Reservation.Id=ReservationAllocation.Reservation And "
     "Reservation.StartTime<=now And Reservation.EndTime>now "
     "Get GroupBy(ReservationAllocation.Account), Sum(ReservationAllocation.Amount)", [["chem", "400"]]),
    # glsaccount, with the lists of who may use an account
    ("Query Account Get Sort(Id), Id, Name, Description Option UseRules=True",
     [["chem", "chem", "chem", ""], ["old", "old", "old", ""]]),
    ("Query Account Get Id Option User=amy", [["chem"]]), ("Query Account Get Id Option User=bob", [["chem"], ["old"]]),
    ("Query Account Get Id Option Active=False", [["old"]]),
    ("Query AccountUser Get Account, Name, Access", [["chem", "ANY", "True"], ["old", "bob", "True"]]),
    ("Query AccountMachine Get Account, Name, Access", [["chem", "ANY", "True"], ["old", "ANY", "True"]]),
    ("Query AccountProject Get Account, Name, Access", [["chem", "chem", "True"], ["old", "old", "True"]]),
    # glsproject, glsuser, glsmachine
    ("Query Project Where Special=False Get Sort(Name), Active, Description",
     [["chem", "True", ""], ["old", "True", ""]]),
    ("Query ProjectUser Get Project, Name, Active", [["chem", "amy", "True"]]),
    ("Query ProjectMachine Get Project, Name, Active", [["chem", "colony", "True"]]),
    ("Query User Where Name~'a%' Get Name, CommonName", [["amy", ""]]),
    ("Query Machine Get Name, Architecture", [["colony", ""]]),
    # glsjob: what was charged less what was given back; % and _ are patterns
    ("Query Job Get Id, JobId, User, Project, Machine, Queue, Stage, Charge, Processors, Nodes, WallDuration, EndTime",
     [["4", "j.1", "amy", "chem", "colony", "q", "Charge", "250", "4", "", "100", ""],
      ["5", "j_2", "amy", "chem", "colony", "", "Reserve", "0", "", "", "", ""],
      ["6", "", "", "chem", "", "", "Quote", "0", "", "", "", ""]]),
    ("Query Job Where JobId~'j_1' Get Id", [["4"]]), ("Query Job Where JobId~'j%' Get Id", [["4"], ["5"]]),
    # glsres, glsquote, glsalloc
    ("Query Reservation Where Name~'j_2' Get Sort(Id), Name, Job, User, Project, Machine, Description",
     [["5", "j_2", "5", "amy", "chem", "colony", ""]]),
    ("Query ReservationAllocation Get GroupBy(Reservation), Sum(Amount)", [["5", "400"]]),
    ("Query Quotation Get Id, Amount, Job, Uses, WallDuration, EndTime", [["6", "400", "6", "1", "", "2147483647"]]),
    ("Query QuotationChargeRate Get Quotation, Type, Name, Rate", []),
    ("Query Allocation Where Account=chem Get Id, Active, StartTime, EndTime", [["chem", "True", "0", "2147483647"]]),
    # gstatement, gusage
    ("Query Allocation Where (Account=chem Or Account=old) And Active=True Get Sum(Amount) Option Time=0", [["0"]]),
    ("Query Transaction Where Account=chem And Delta>0 And CreationTime>=0 And CreationTime<now Get Sum(Delta)",
     [["2150"]]),
    ("Query Transaction Where Account=chem And Delta<=0 Get GroupBy(Object), GroupBy(Action), Sum(Delta) As Amount, "
     "Count(Id) As Count", [["Job", "Charge", "-400", "1"], ["Account", "Withdraw", "-20", "1"]]),
    ("Query Transaction Where Object=Job And Action=Charge And Project=chem Get GroupBy(User), Sum(Amount)",
     [["amy", "400"]]),
    # glstxn
    ("Query Transaction Where Id>=7 Get Id, Object, Action, Actor, Name, Child, JobId, Amount, Delta, Description",
     [["7", "Job", "Refund", "eve", "j.1", "", "j.1", "150", "150", ""],
      ["8", "Account", "Withdraw", "", "chem", "", "", "20", "-20", "rent"]]),
    ("Query Transaction Where JobId=j.1 And Action=Charge Get Actor, Details",
     [["", "4 [Processors] * 1 [VBR Processors] * 100 [Duration]"]]),
])
def test_what_lists_ask(ledger: Ledger, text: str, expected: list[list[str]]) -> None:
    assert rows(asked(ledger, text)) == expected


def test_jobs_of_the_bank_are_those_with_a_stage(serving: Serving, place: str, ledger: Ledger) -> None:
    """Other queries of jobs are about those that the server runs; who may not see the ledger is refused."""
    with serving(profile="gold", ledger=place) as server:
        def of(text: str, actor: str = "root") -> Response:
            return joined(responses(request_of(text, actor), Peer("127.0.0.1", server.messages), signing=Signing(KEY)))

        assert of("Query Job Get Id,Stage").count == 3
        assert of("Query Job Where Stage=Charge Get Id").count == 1
        assert of("Query Job Get Id").count == 0
        assert of("Query Job Get Id,Charge", "amy").status.code == "444"
        assert of("Query Widget").status.code == "740"
