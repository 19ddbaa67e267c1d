"""The ledger as a bank that schedulers ask in SSSRMAP: Balance, Deposit, Withdraw and Transfer of accounts, Quote,
Reserve, Charge and Refund of jobs, with the codes and the words of Gold, by which old clients decide.

What differs from Gold: an account is named by its project (its Id is that name); a job has one hold, and one charge,
however often it is charged; a refund by JobId is unambiguous therefore; what a job of the document would cost is not
taken from the document. Source: recordings of Gold 2.2; SSSRMAP message format 3.0.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from lxml import etree

from sssjob.accounting import Charge, RateSet, Uncharged, quote
from sssjob.accounting.charges import unsaid_sentence
from sssjob.accounting.entries import Entry, LedgerError
from sssjob.accounting.ledger import Ledger
from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Policy, escape
from sssjob.serve.access import User
from sssjob.sssrmap import Count, Data, MessageError, Option, Request, Response, Status, Where
from sssjob.sssrmap.gold import digits
from sssjob.sssrmap.reader import PROFILES
from sssjob.xml.reader import read_document
from sssjob.xml.writer import escaped

__all__ = ["ACTIONS", "answer", "of_project"]

#: Containers that Gold takes no job with, in the order in which it looks for them.
_FORBIDDEN: Final = ("JobGroup", "JobDefaults", "TaskGroup", "TaskGroupDefaults", "Requested", "Delivered", "Resource",
                     "Extension")
_WHOLE: Final = re.compile("[0-9]{1,11}")
_AMOUNT: Final = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?")
#: Property of a job -> its names in the document, and what an error calls it.
_NEEDED: Final = {"User": (("UserId", "User"), "user"), "Project": (("ProjectId", "Project"), "project"),
                  "Machine": (("MachineName", "Machine"), "machine")}
#: Options that change what Gold does, and are refused in its profile too, which passes over all others.
_UNSUPPORTED: Final = ("Allocation", "StartTime", "EndTime", "CreditLimit")
_OPTIONS: Final = {
    "Balance": ("Project", "Id", "User", "Machine"), "Deposit": ("Id", "Amount", "Description"),
    "Withdraw": ("Id", "Amount", "Description"), "Transfer": ("FromId", "ToId", "Amount", "Description"),
    "Quote": ("WallDuration", "CostOnly", "Guarantee", "Description", "ShowHours"),
    "Reserve": ("WallDuration", "Replace", "Description", "ShowHours"),
    "Charge": ("WallDuration", "Description", "ShowHours", "ItemizedCharges", "CallType"),
    "Refund": ("JobId", "Id", "Amount", "Description")}


@dataclass(slots=True)
class _Desk:
    """One request at the bank. token: of what it posts; None where nothing names it."""

    ledger: Ledger
    rates: RateSet | None
    request: Request
    profile: str
    token: str | None

    # -- what the request says
    def option(self, name: str) -> str:
        """The text of an Option; empty where it is not said."""
        return self.request.option(name) or ""

    def truth(self, name: str) -> bool:
        """Whether an Option is True."""
        return self.option(name).lower() == "true"

    def amount(self, what: str) -> Decimal:
        """The Amount. Raises MessageError."""
        text = self.option("Amount")
        if not text or not _AMOUNT.fullmatch(text):
            raise MessageError("740", f"The {what} amount must be a number")
        return Decimal(text)

    def account(self, option: str) -> str:
        """The account that an Option names. Raises MessageError."""
        name = self.option(option)
        if not name:
            raise MessageError("740", "Account id must be specified")
        if not any(account.account == name for account in self.ledger.accounts()):
            raise MessageError("740", f"Account {escape(name, 60)} does not exist")
        return name

    def job(self, what: str, late: str) -> Job:
        """The job in Data, with its duration from an Option where one says it. what, late: what an error calls the
        action before and behind the job. Raises MessageError."""
        data = self.request.data
        root = etree.fromstring(f"<Data>{'' if data is None else data.content}</Data>")
        forbidden = next((name for name in _FORBIDDEN if next(root.iter(name), None) is not None), None)
        if forbidden is not None:
            raise MessageError("710", f"The {forbidden} element is not supported")
        jobs = root.findall("Job")
        if len(jobs) != 1:
            raise MessageError("314", "Only one job may be specified" if jobs else "At least one job must be specified")
        element = jobs[0]
        if element.find("Charge") is not None:
            raise MessageError("710", "The Charge element is not supported")
        for names, shown in _NEEDED.values():
            if not any((element.findtext(name) or "").strip() for name in names):
                raise MessageError("314", f"A {shown} must be specified for the {what}")
        self._put_duration(element, late)
        quoted = element.find("QuoteId")
        if quoted is not None and _WHOLE.fullmatch(quoted.text or ""):
            quoted.text = f"quote-{quoted.text}"
        return self._read(element)

    def _put_duration(self, element: Any, late: str) -> None:
        stated = element.find("WallDuration")
        if stated is None:
            stated = element.find("Duration")
        text = self.option("WallDuration") or (None if stated is None else stated.text)
        if text is None:
            raise MessageError("314", f"A wall duration must be specified for the {late}")
        if not _WHOLE.fullmatch(text):
            raise MessageError("314", "The wall duration must be an integer number of seconds")
        if stated is None:
            stated = etree.SubElement(element, "WallDuration")
        stated.text = text

    def _read(self, element: Any) -> Job:
        policy: Policy = Policy.of(self.request.policy or "") or PROFILES[self.profile]
        try:
            document: Document = read_document(etree.tostring(element), policy=policy)
            if document.findings is not None:
                document.findings.raise_if_rejected()
        except RejectedError as error:
            unknown = [f.subject for f in error.findings if f.rejects and f.kind == "unknown"]
            raise MessageError("710" if unknown else "314", escape(
                f"not understood: {', '.join(unknown)}" if unknown else str(error), 1000)) from None
        return next(job for job, _ in document.jobs())

    def priced(self, job: Job) -> Charge:
        """What a job would cost now. Raises MessageError."""
        price = quote(job, self._rates())
        if isinstance(price, Uncharged):
            raise MessageError("314", f"The job cannot be priced: {price.reason} ({price.detail})")
        return price

    def _rates(self) -> RateSet:
        if self.rates is None:
            raise MessageError("740", "This server has no rates")
        return self.rates

    def free(self, job: Job) -> Decimal:
        """What the account of a job has left. Raises MessageError for a project without one, or whose is closed."""
        project = str(job.value("Project"))
        if not any(account.account == project for account in self.ledger.accounts()):
            raise MessageError("740", f"Project {escape(project, 60)} does not exist")
        standing = self.ledger.standing(project, self._rates().currency)
        if standing.settings.closed:
            raise MessageError("740", f"Project {escape(project, 60)} is not active")
        return standing.available

    def answered(self, message: str, amount: Decimal | None = None, content: str = "") -> Response:
        """A success. amount: it is the Count, where that can say it: a whole number that is not below 0."""
        counted = () if amount is None or amount < 0 or amount != amount.to_integral_value() else (Count(int(amount)),)
        data = (Data(content),) if content else ()
        return Response((Status.of("000", message), *counted, *data), self.request.actor)

    # -- accounts
    def balance(self) -> Response:
        """What an account has that is not held."""
        name = self.option("Project") or self.option("Id")
        if not any(account.account == name for account in self.ledger.accounts()):
            raise MessageError("740", f"Project {escape(name, 60)} does not exist" if name else
                               "Account id must be specified")
        own = self.ledger.standing(name, self._currency(name)).account
        free = own.balance - own.held
        return self.answered(f"The account balance is {digits(free)} credits", free,
                             f"<Account><Balance>{digits(free)}</Balance></Account>")

    def _currency(self, account: str) -> str:
        """The currency of an account: that of the rates, if it is kept in it, else its only one."""
        kept = [standing.currency for standing in self.ledger.accounts() if standing.account == account]
        mine = "" if self.rates is None else self.rates.currency
        if mine in kept or not kept:
            return mine
        if len(kept) > 1:
            raise MessageError("740", f"Account {escape(account, 60)} is kept in several currencies")
        return kept[0]

    def deposit(self) -> Response:
        """Put money into an account."""
        amount, name = self.amount("deposit"), self.account("Id")
        self.ledger.deposit(name, amount, self._currency(name), reason=self.option("Description"), token=self.token)
        return self.answered(f"Successfully deposited {digits(amount)} credits into account {name}", amount)

    def withdraw(self) -> Response:
        """Take money out of an account."""
        amount, name = self.amount("withdrawal"), self.account("Id")
        self._enough(name, amount, lambda: self.ledger.withdraw(
            name, amount, self._currency(name), reason=self.option("Description"), token=self.token),
            "Insufficient balance to perform requested withdrawal")
        return self.answered(f"Successfully withdrew {digits(amount)} credits from account {name}", amount)

    def transfer(self) -> Response:
        """Move money between accounts."""
        amount, source, target = self.amount("transfer"), self.account("FromId"), self.account("ToId")
        self._enough(source, amount, lambda: self.ledger.transfer(
            source, target, amount, self._currency(source), reason=self.option("Description"), token=self.token),
            "Insufficient balance to perform requested transfer")
        return self.answered(f"Successfully transferred {digits(amount)} credits from account {source} to account "
                             f"{target}", amount)

    def _enough(self, account: str, amount: Decimal, act: Callable[[], object], refusal: str) -> None:
        """Do something; where it is refused because there is not enough, with the words that old clients look for."""
        try:
            act()
        except LedgerError as error:
            own = self.ledger.standing(account, self._currency(account)).account
            if amount > own.balance - own.held:
                raise MessageError("782", refusal) from None
            raise MessageError("740", escape(str(error), 1000)) from None

    # -- jobs
    def quote(self) -> Response:
        """What a job would cost, if there is as much; with Guarantee that holds, with CostOnly nobody looks."""
        if self.truth("CostOnly") and self.truth("Guarantee"):
            raise MessageError("313", "Unsupported base action: (Quote)")
        job = self.job("quote", "quotation")
        price = self.priced(job)
        amount = price.amount
        if not self.truth("CostOnly") and amount > self.free(job):
            raise MessageError("782", "Insufficient balance to satisfy quotation")
        number, named = "", ""
        if self.truth("Guarantee"):
            entry = self.ledger.quote(job, None, self._rates())[0]
            number, named = f"<Id>{entry.number}</Id>", f" with quote id {entry.number}"
        unsaid = _left_out(price.unsaid, "quoted")
        return self.answered(f"Successfully quoted {digits(amount)} credits{named}{unsaid}", amount,
                             f"<Job><Quotation>{number}<Amount>{digits(amount)}</Amount></Quotation></Job>")

    def reserve(self) -> Response:
        """Hold what a job will cost. With Replace an earlier hold ends."""
        job = self.job("reservation", "reservation")
        name = _name(job)
        free, price = self.free(job), self.priced(job)
        amount = price.amount
        earlier = [held for held in self.ledger.holds() if held.job == name and held.machine == str(
            job.value("Machine"))]
        if earlier and self.truth("Replace"):
            if amount > free + sum((held.amount for held in earlier), Decimal(0)):
                raise MessageError("782", f"Insufficient balance to reserve job (JobId {name})")
            for held in earlier:
                self.ledger.release(held.number)
        elif earlier and earlier[0].amount == amount:       # sent again
            return self._reserved(earlier[0], _left_out(price.unsaid, "quoted"))
        elif not earlier and amount > free:
            raise MessageError("782", f"Insufficient balance to reserve job (JobId {name})")
        entry, price = self.ledger.hold(job, None, self._rates())
        removed = f"\n{len(earlier)} reservations were removed" if earlier else ""
        return self._reserved(entry, removed + _left_out(price.unsaid, "quoted"))

    def _reserved(self, entry: Entry, more: str) -> Response:
        return self.answered(
            f"Successfully reserved {digits(entry.amount)} credits for job {entry.job}{more}", entry.amount,
            f"<Job><Reservation><Id>{entry.number}</Id><Amount>{digits(entry.amount)}</Amount></Reservation></Job>")

    def charge(self) -> Response:
        """Charge a job for what it used, once. It is never refused for lack of funds: it has run."""
        job = self.job("charge", "charge")
        name = _name(job)
        self.free(job)
        held = sum(hold_.job == name and hold_.machine == str(job.value("Machine")) for hold_ in self.ledger.holds())
        posted = self.ledger.charge(job, None, self._rates())
        if posted.entry is None or posted.outcome in ("not", "contradicts", "other-rates"):
            detail = posted.reason or posted.detail or posted.outcome
            raise MessageError("740", escape(f"Job {name} was not charged: {detail}", 1000))
        amount = posted.entry.amount
        removed = f"\n{held} reservations were removed" if held else ""
        return self.answered(f"Successfully charged job {name} for {digits(amount)} credits{removed}"
                             f"{_left_out(posted.unsaid, 'charged')}", amount,
                             f"<Job><Id>{posted.entry.number}</Id><Charge><Amount>{digits(amount)}</Amount></Charge></Job>")

    def refund(self) -> Response:
        """Give the charge of a job back, or a part of it."""
        charged = self._charged()
        back = sum((entry.amount for entry in self.ledger.entries(job=charged.job)
                    if entry.kind in ("refund", "reversal") and entry.refers == charged.number), Decimal(0))
        refundable = charged.amount - back
        again = next((entry for entry in self.ledger.entries(job=charged.job)
                      if entry.kind == "refund" and self.token is not None and entry.token == self.token), None)
        amount = self.amount("refund") if self.option("Amount") else refundable if again is None else again.amount
        if again is not None:
            return self._refunded(charged, self.ledger.refund(charged.number, amount, token=self.token).amount)
        if not refundable:
            raise MessageError("740", "There are no charges to refund")
        if amount > refundable:
            raise MessageError("740", f"Refund amount ({digits(amount)}) cannot exceed job charge "
                                      f"({digits(refundable)})")
        self.ledger.refund(charged.number, amount, reason=self.option("Description"), token=self.token)
        return self._refunded(charged, amount)

    def _refunded(self, charged: Entry, amount: Decimal) -> Response:
        job = escaped(charged.job)
        return self.answered(
            f"Successfully refunded {digits(amount)} credits for job {charged.job}", amount,
            f"<Refund><JobId>{job}</JobId><Refund>{digits(amount)}</Refund></Refund>")

    def _charged(self) -> Entry:
        """The charge that is meant, by its Id, or by the JobId, which several machines may have. Raises MessageError.
        """
        name, number = self.option("JobId"), self.option("Id")
        entries = list(self.ledger.entries(job=name)) if name else []
        if number and _WHOLE.fullmatch(number):
            entries = [entry for entry in self.ledger.entries() if entry.number == int(number)]
        reversed_ = {entry.refers for entry in entries if entry.kind == "reversal"}
        charges = [entry for entry in entries if entry.kind == "charge" and entry.number not in reversed_]
        if not charges:
            raise MessageError("740", "There are no jobs matching the specified job id")
        if len(charges) > 1:
            listed = "".join(f"\t{c.number}\t[{c.job},{c.user_name or ''},{c.account},{c.machine},{digits(c.amount)}]\n"
                             for c in charges)
            raise MessageError("740", "There are multiple jobs matching the specified job id.\nPlease respecify using "
                                      f"one of the following gold job ids:\n{listed}")
        return charges[0]


def of_project(request: Request) -> Request:
    """A query of accounts with the Option Project, by which old clients look for the Id of an account, as one with a
    condition."""
    project = request.option("Project")
    if request.objects[0].name != "Account" or not project:
        return request
    conditions = list(request.all(Where))
    if conditions:          # all of them in brackets
        conditions[0] = replace(conditions[0], group=(conditions[0].group or 0) + 1)
        conditions[-1] = replace(conditions[-1], group=(conditions[-1].group or 0) - 1 or None)
    others = [part for part in request.parts if not isinstance(part, Where)]
    return replace(request, parts=(*others, *conditions, Where("Name", project, conj="And")))


def _name(job: Job) -> str:
    name = job.value("Id")
    if name is None:
        raise MessageError("314", "A job id must be specified")
    return str(name)


def _left_out(unsaid: Iterable[str], what: str) -> str:
    """A line for each rate whose amount a job does not say. what: charged or quoted."""
    return "".join([f"\n{unsaid_sentence(label, 1, 1, what)}" for label in unsaid])


#: (object, action) -> what does it.
ACTIONS: Final[dict[tuple[str, str], Callable[[_Desk], Response]]] = {
    ("Account", "Balance"): _Desk.balance, ("Account", "Deposit"): _Desk.deposit,
    ("Account", "Withdraw"): _Desk.withdraw, ("Account", "Transfer"): _Desk.transfer,
    ("Job", "Quote"): _Desk.quote, ("Job", "Reserve"): _Desk.reserve, ("Job", "Charge"): _Desk.charge,
    ("Job", "Refund"): _Desk.refund}


def answer(ledger: Ledger, rates: RateSet | None, user: User, request: Request, profile: str) -> Response:
    """What the bank answers to a request of ACTIONS. Raises MessageError; then nothing was posted."""
    kind, action = request.objects[0].name, request.action or ""
    if not user.may("bank" if action != "Balance" else "ledger") and not user.may("bank"):
        raise MessageError("444", f"{user.name} is not authorized to perform this function ({kind} {action})")
    if profile != "gold":
        unknown = [option.name for option in request.all(Option) if option.name not in _OPTIONS[action]]
        if unknown:
            raise MessageError("710", f"Option {escape(unknown[0], 60)} is not supported "
                                      f"(known: {', '.join(_OPTIONS[action])})")
    for name in _UNSUPPORTED:
        if request.option(name):
            raise MessageError("710", f"Option {name} is not supported")
    if request.option("CallType") not in (None, "", "Normal"):
        raise MessageError("710", "CallType other than Normal is not supported")
    if (request.option("Incremental") or "").lower() == "true":
        raise MessageError("710", "Incremental charges are not supported: a job is charged once")
    token = f"serve:{user.name}:{request.id}" if request.id else None
    try:
        return ACTIONS[kind, action](_Desk(ledger, rates, request, profile, token))
    except LedgerError as error:
        raise MessageError("740", escape(str(error), 1000)) from None

