"""The bank: a recorded day of quotes, reservations, charges and refunds, done once and with the words of Gold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from sssjob.accounting import read_rates
from sssjob.accounting.ledger import Ledger
from sssjob.accounting.store import open_store
from sssjob.serve.access import User
from sssjob.serve.bank import ACTIONS, answer, of_project
from sssjob.sssrmap import (
    Data,
    Envelope,
    Get,
    MessageError,
    Object,
    Option,
    Request,
    Response,
    Status,
    Where,
    read_message,
)
from sssjob.sssrmap.calling import Peer, Signing, joined, responses
from tests.serve.conftest import KEY, RATES, Serving
from tests.spec.support import spec
from tests.sssrmap.recordings import exchanges

TELLER: Final = User("root", frozenset({"bank"}))
RATES_OF_GOLD: Final = read_rates(RATES.replace('name = "site"', 'name = "gold"').encode())
#: Number of an account in the recordings -> its project, which names it here.
ACCOUNTS: Final = {"1": "chem", "2": "bio", "3": "poor", "4": "closed"}
#: Recorded cases that are answered with another code -> why.
OTHERWISE: Final = {
    "life-20": "the second charge, which it would refund, was not made",
    "life-21": "the same", "life-22": "the same", "life-19": "a JobId has one charge",
    "life-27": "no incremental charges", "life-28": "the same",
    "life-30": "a Charge in the document is refused",
    **dict.fromkeys(("refuse-01", "refuse-02", "refuse-03", "refuse-04", "refuse-05", "refuse-06"),
                    "the ledger knows users by the limits of accounts only"),
    **dict.fromkeys(("refuse-11", "refuse-12"), "and machines too"),
    "refuse-36": "the names of 3.1.0 are known", "refuse-43": "the names of 3.1.0 are known",
    "refuse-40": "negative processors are refused", "refuse-41": "processors in words are refused",
    "refuse-42": "names in the namespace are known", "refuse-44": "a charge needs a job id",
    "life-23": "what is left is less here, for the first refund was of this job",
}


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """The accounts of the recordings."""
    with Ledger(open_store(str(tmp_path / "ledger.db"), create=True)) as ledger:
        for account, amount in (("chem", 10_000_000), ("bio", 20_000_000), ("poor", 500), ("closed", 1)):
            ledger.deposit(account, Decimal(amount), new=True)
        ledger.configure("closed", closed=True)
        yield ledger


def asked(ledger: Ledger, request: Request, profile: str = "gold", user: User = TELLER) -> Response:
    """The answer, a refusal too."""
    try:
        return answer(ledger, RATES_OF_GOLD, user, request, profile)
    except MessageError as error:
        return Response((error.status,), request.actor)


def by_project(request: Request) -> Request:
    """A recorded request with accounts by their names."""
    if request.objects[0].name != "Account":
        return request
    return replace(request, parts=tuple(
        replace(part, value=ACCOUNTS.get(part.value, part.value))
        if isinstance(part, Option) and part.name in ("Id", "FromId", "ToId") else part for part in request.parts))


def message(octets: str) -> Envelope:
    """The message in what was recorded."""
    return read_message(octets[octets.index("<Envelope"):octets.rindex("Envelope>") + 9].encode(), profile="gold")


def words(status: Status) -> str:
    """The message without what is numbered otherwise."""
    text = re.sub(r" and created gold job id \d+| and gold job id \d+|Warning: .*|\s+or a default project .*", "",
                  status.message or "").strip()
    return re.sub(r"quote id \d+|account \d+|account [a-z]+\b|\d+ (?=reservations)", "", text)


@pytest.mark.parametrize("topic", ["life", "refuse", "forbidden"])
@spec("SSSRMAP Actions", 7)
def test_a_recorded_day(ledger: Ledger, topic: str) -> None:
    """In the order in which it was recorded: the same codes, the same words, the same amounts."""
    compared = 0
    if topic == "refuse":
        ledger.deposit("poor", Decimal(10))
    for name, case in exchanges().items():
        if case.get("topic") != topic:
            continue
        request = by_project(message(case["request"]).request)
        if (request.objects[0].name, request.action) not in ACTIONS or name == "refuse-48":
            continue
        response = asked(ledger, request)
        recorded = message(case["response"]).response
        if name in OTHERWISE:
            assert (response.status.code, words(response.status)) != (
                recorded.status.code, words(recorded.status)), f"{name} is answered as Gold does"
            continue
        assert response.status.code == recorded.status.code, (name, response.status, recorded.status)
        assert words(response.status) == words(recorded.status), name
        if response.status.succeeded:
            amounts = [re.findall("<(?:Amount|Balance|Refund)>(-?[0-9]+)<", one.data.content if one.data else "")
                       for one in (response, recorded)]
            assert response.count == recorded.count and amounts[0] == amounts[1], name
        compared += 1
    assert compared >= {"life": 15, "refuse": 25, "forbidden": 14}[topic]
    assert list(ledger.verify()) == []


JOB: Final = ("<Job><JobId>j.1</JobId><UserId>amy</UserId><ProjectId>chem</ProjectId><MachineName>colony</MachineName>"
              "<Processors>4</Processors><WallDuration>100</WallDuration></Job>")


def job(action: str, *options: Option, id_: str | None = None, content: str = JOB) -> Request:
    return Request(action, "root", (Object("Job"), *options, Data(content)), id=id_)


def money(action: str, id_: str | None = None, **options: str) -> Request:
    return Request(action, "root", (Object("Account"), *(Option(k, v) for k, v in options.items())), id=id_)


def left(ledger: Ledger, account: str = "chem") -> int:
    """What Balance says."""
    count = asked(ledger, money("Balance", Project=account)).count
    assert count is not None
    return count


def test_requests_that_come_again_post_nothing_new(ledger: Ledger) -> None:
    """With the id that they had, whatever happened meanwhile."""
    for request, change in (
            (money("Deposit", "a", Id="chem", Amount="70"), 70), (money("Withdraw", "b", Id="chem", Amount="20"), -20),
            (money("Transfer", "c", FromId="chem", ToId="bio", Amount="5"), -5), (job("Reserve", id_="d"), -400),
            (job("Charge", id_="e"), 0), (job("Refund", Option("JobId", "j.1"), id_="f", content=""), 400)):
        before = left(ledger)
        replies = [asked(ledger, request, "3.1") for _ in range(3)]
        assert {reply.status.code for reply in replies} == {"000"}, (request.action, replies)
        assert replies[0].count == replies[1].count == replies[2].count
        assert left(ledger) - before == change, request.action
    other = asked(ledger, money("Deposit", "a", Id="chem", Amount="71"), "3.1")
    assert other.status.code == "740" and "something else" in (other.status.message or "")
    assert list(ledger.verify()) == []


def test_an_amount_that_rates_price_and_the_job_does_not_say_is_told(ledger: Ledger) -> None:
    """Behind what Gold says, to whoever asks for a price, a reservation or a charge; where it is said, nothing is."""
    rates = read_rates((RATES + '[[rate]]\ntype = "VBU"\nname = "Memory"\nrate = 0\nunits = "MB"\n').encode())
    for action, what in (("Quote", "quoted"), ("Reserve", "quoted"), ("Charge", "charged")):
        for number, (more, told) in enumerate((
                ("", f"\nMemory is not said by 1 of 1 {what} job, to which VBU Memory charges nothing (required = true "
                     "charges no such job)"), ("<Memory>1</Memory>", ""))):
            content = JOB.replace("j.1", f"{action}.{number}").replace("<Processors>", f"{more}<Processors>")
            status = answer(ledger, rates, TELLER, job(action, content=content), "3.1").status
            assert status.code == "000" and (status.message or "").partition("\n")[2] == told.lstrip("\n"), status


def test_a_promised_price_is_kept(ledger: Ledger) -> None:
    """The quote of a job is what it is charged, when rates have risen meanwhile."""
    quoted = asked(ledger, job("Quote", Option("Guarantee", "True")))
    assert quoted.data is not None
    number = re.findall("<Id>([0-9]+)</Id>", quoted.data.content)[0]
    dear = read_rates(RATES.replace("rate = 1", "rate = 3").encode())
    with_quote = JOB.replace("<Processors>", f"<QuoteId>{number}</QuoteId><Processors>")
    assert answer(ledger, dear, TELLER, job("Reserve", content=with_quote), "gold").count == 400
    assert answer(ledger, dear, TELLER, job("Charge", content=with_quote), "gold").count == 400
    assert answer(ledger, dear, TELLER, job("Quote"), "gold").count == 1200


def test_a_job_with_another_record_is_not_charged_twice(ledger: Ledger) -> None:
    assert asked(ledger, job("Charge")).count == 400
    again = asked(ledger, job("Charge", content=JOB.replace(">100<", ">200<")))
    assert again.status.code == "740" and "j.1 was not charged" in (again.status.message or "")
    assert left(ledger) == 10_000_000 - 400


@pytest.mark.parametrize(("request_", "code"), [
    (money("Deposit", Id="chem", Amount="-5"), "740"), (money("Deposit", Id="chem", Amount="NaN"), "740"),
    (money("Deposit", Id="chem", Amount="1e9"), "740"), (money("Deposit", Id="chem", Amount="\u0663"), "740"),
    (money("Deposit", Id="chem", Amount="9" * 19), "740"), (money("Deposit", Id="chem"), "740"),
    (money("Deposit", Id="chem", Amount="0"), "740"), (money("Deposit", Id="gone", Amount="5"), "740"),
    (money("Transfer", FromId="chem", ToId="chem", Amount="5"), "740"), (money("Balance"), "740"),
    (money("Transfer", FromId="poor", ToId="chem", Amount="501"), "782"), (money("Balance", Project="gone"), "740"),
    (money("Deposit", Id="closed", Amount="5"), "740"), (money("Deposit", Id="chem", Amount="5", Colour="red"), "710"),
    (money("Deposit", Id="chem", Amount="5", EndTime="9"), "710"),
    (money("Deposit", Id="chem", Amount="5", Allocation="1"), "710"),
    (job("Charge", Option("CallType", "Back")), "710"), (job("Charge", Option("Incremental", "True")), "710"),
    (job("Quote", content="<Job/>"), "314"), (job("Quote", content=""), "314"),
    (job("Quote", content=JOB.replace(">4<", ">four<")), "314"),
    (job("Quote", content=JOB.replace(">4<", ">-4<")), "314"),
    (job("Quote", content=JOB.replace(">100<", f">{'9' * 12}<")), "314"),
    (job("Quote", content=JOB.replace("<Processors>", "<Colour/><Processors>")), "710"),
    (job("Charge", content=JOB.replace("<Processors>", "<Charge>1</Charge><Processors>")), "710"),
    (job("Reserve", content=JOB.replace(">chem<", ">gone<")), "740"),
    (job("Refund", Option("Id", "1"), content=""), "740"), (job("Refund", content=""), "740"),
])
def test_what_is_refused_posts_nothing(ledger: Ledger, request_: Request, code: str) -> None:
    before = len(list(ledger.entries()))
    response = asked(ledger, request_, "3.1")
    assert response.status.code == code, response.status
    assert len(list(ledger.entries())) == before


def test_an_account_is_found_by_its_project() -> None:
    """As Gold's commands look for it before they deposit; with other conditions as a whole."""
    query = Request("Query", "root", (Object("Account"), Get("Id"), Option("Project", "chem")))
    assert of_project(query).all(Where) == (Where("Name", "chem", conj="And"),)
    two = replace(query, parts=(*query.parts, Where("Name", "a"), Where("Name", "b", conj="Or")))
    assert of_project(two).all(Where) == (
        Where("Name", "a", group=1), Where("Name", "b", conj="Or", group=-1), Where("Name", "chem", conj="And"))
    one = replace(query, parts=(*query.parts, Where("Name", "a")))
    assert of_project(one).all(Where) == (Where("Name", "a"), Where("Name", "chem", conj="And"))
    for other in (replace(query, parts=query.parts[:2]), replace(query, parts=(Object("Job"), query.parts[2]))):
        assert of_project(other) is other


def test_who_may(ledger: Ledger) -> None:
    """Words of Gold; a look at a balance needs less."""
    looks = User("amy", frozenset({"ledger"}))
    refused = asked(ledger, job("Charge"), user=looks)
    assert refused.status == Status.of("444", "amy is not authorized to perform this function (Job Charge)")
    assert asked(ledger, money("Balance", Project="chem"), user=looks).status.succeeded
    assert asked(ledger, money("Balance", Project="chem"), user=User("eve", frozenset())).status.code == "444"


def test_a_bank_over_the_wire(serving: Serving, tmp_path: Path) -> None:
    """As a scheduler meets it: reserve, charge, ask; and a stranger to the ledger."""
    place = str(tmp_path / "ledger.db")
    with Ledger(open_store(place, create=True)) as made:
        made.deposit("chem", Decimal(1000), new=True)

    def ask(request: Request) -> Response:
        return joined(responses(request, Peer("127.0.0.1", server.messages), signing=Signing(KEY)))

    with serving(ledger=place) as server:
        assert ask(job("Reserve", id_="1")).count == 400
        assert ask(money("Balance", Project="chem")).count == 600
        assert ask(job("Charge", id_="2")).count == 400
        assert ask(job("Charge")).status.code == "314", "what changes something needs an id"
        assert ask(replace(job("Charge", id_="3"), actor="amy")).status.code == "444"
        assert ask(Request("Quote", "root", (Object("Machine"), Data(JOB)), id="4")).status.code == "740"
        account = ask(Request("Query", "root", (Object("Account"), Option("Project", "chem"))))
        assert account.data is not None and "<Balance>600.00</Balance>" in account.data.content
