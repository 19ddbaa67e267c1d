"""What is asked of a server, done: one function for each thing, with the rights of who asks, in whatever form.

A submission belongs to the user who made it, which its name in the journal says: ``serve:amy:KEY``. Who makes it again
with the same key gets the one that is there. Jobs run as the account that the server runs as.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from lxml import etree

from sssjob.conversion.converting import AUTO, Conversion, Options
from sssjob.conversion.intake import format_of, gate, take
from sssjob.document.inherit import effective
from sssjob.document.sweeps import expand
from sssjob.errors import AccessError, SSSJobError, UnknownJobError, UsageError
from sssjob.findings import Finding, Findings, Policy, escape
from sssjob.limits import LIMITS, Limits
from sssjob.request.offers import offered_by
from sssjob.run.backends import KEPT
from sssjob.run.changing import change_text, job_of
from sssjob.run.client import Client
from sssjob.run.configuring import complete
from sssjob.run.entering import Prepared
from sssjob.run.evidence import annotate, fact_records
from sssjob.run.journal import Journal, open_journal
from sssjob.run.listing import Filter, Listed, listed
from sssjob.run.rows import Row
from sssjob.serve.access import DeniedError, User, others
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.accounting import RateSet
    from sssjob.accounting.ledger import Ledger
    from sssjob.conversion.settings import Settings
    from sssjob.document.model import Document
    from sssjob.run.standing import Running
    from sssjob.sssrmap import Request, Response
    from sssjob.sssrmap.things import Source

__all__ = ["ConflictError", "Desk", "Entered", "LackingError", "Order", "Plain", "Submitted", "owner_of", "records"]

T = TypeVar("T")
Plain = dict[str, Any]
_PREFIX: Final = "serve:"
_OFFERS: Final = 1000          # that one request is held against
_CANCEL_S: Final = 5.0      # patience with the ends of jobs that are cancelled


class ConflictError(SSSJobError, ValueError):
    """A key that was used for something else."""


class LackingError(UsageError):
    """Something that this server could do, were it given what it needs for that."""


def owner_of(request: str | None) -> str | None:
    """The user whose a submission is, by its name in the journal; None: of nobody who asked a server."""
    if request is None or not request.startswith(_PREFIX):
        return None
    return request.removeprefix(_PREFIX).partition(":")[0]


_ANY_JOB: Final = b"<Job><Executable>/bin/true</Executable></Job>"


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be submitted. key: of the request; the same once more gives the submission that was made. waits:
    whether who asks wants to hear what the resource manager says, or only that it is in the journal."""

    user: User
    data: bytes
    source: str = AUTO
    executor: str | None = None
    key: str | None = None
    policy: Policy | None = None
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Entered:
    """An order that is in the journal. fresh: by this order, and not by an earlier request with the same key."""

    order: Order
    prepared: Prepared
    findings: Findings

    @property
    def number(self) -> int:
        """Of the submission."""
        assert self.prepared.entry is not None
        return self.prepared.entry.number

    @property
    def is_alone(self) -> bool:
        """Whether it is begun without others: by a process of its own, or because it was begun before."""
        return not self.prepared.fresh or self.prepared.executor in KEPT

    @property
    def labels(self) -> set[str]:
        """What its jobs are called in findings."""
        plan = self.prepared.plan
        return set() if plan is None else {job.label for job in plan.jobs} | {f"@{self.number}", "journal"}


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submission. fresh: it was made now, and not by an earlier request with the same key."""

    key: str
    rows: list[Row]
    findings: list[Plain]
    fresh: bool

    @property
    def jobs(self) -> list[Plain]:
        """Its jobs, as JSON objects."""
        return [row.record() for row in self.rows]

    def record(self) -> Plain:
        """As a JSON object."""
        return {"submission": self.key, "jobs": self.jobs, "findings": self.findings}


@dataclass(slots=True)
class Desk:
    """Does what users ask. One thread at a time uses it; each has its own.

    executors: those that may be named, the default first; directory: where jobs run that name no other; place: of the
    ledger; settings: how executors work; limits: of questions.
    """

    journal_path: Path | None
    executors: Sequence[str]
    directory: Path
    rates: RateSet | None = None
    place: str | None = None
    settings: Settings | None = None
    limits: Limits = LIMITS
    _journal: Journal | None = None
    _client: Client | None = None
    _owners: dict[int, str | None] = field(default_factory=dict)

    @property
    def journal(self) -> Journal:
        """The journal, opened when it is first asked for."""
        if self._journal is None:
            self._journal = open_journal(self.journal_path)
        return self._journal

    @property
    def client(self) -> Client:
        """The client of the journal, with findings of its own for each use."""
        if self._client is None:
            self._client = Client(self.journal, settings=self.settings)
        self._client.findings = Findings()
        return self._client

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()
            self._journal = self._client = None

    # -- documents
    def convert(self, data: bytes, source: str = AUTO, target: str = "sss", policy: Policy | None = None) -> Plain:
        """A document in another format, with all findings. Raises RejectedError, UsageError."""
        how = Conversion(source, target, policy, options=Options(None))
        _ = how.writer
        reader, _ = format_of(data, "-", source)
        context = how.reading(reader, "-")
        document = how.read(reader, data, context)
        findings = context.findings
        findings.raise_if_rejected()
        if not document.facts:
            findings.extend(gate(document))
            findings.raise_if_rejected()
        text = how.text(document, how.writing(findings, how.carrying(reader)))
        findings.raise_if_rejected()
        return {"format": target, "text": text, "findings": records(findings)}

    def match(self, requested: str, offers: Sequence[str]) -> Plain:
        """Of each offer whether it meets what is requested, and why. Raises RejectedError, UsageError.

        offers: documents, of one or more offers each. A verdict says of which document it is (``offer``, from 0), and
        of one with several of which of them (``job``).
        """
        from sssjob.request import match

        if len(offers) > _OFFERS:
            raise UsageError(f"there are more than {_OFFERS} offers")
        request = self._swept(requested.encode("utf-8", "surrogatepass"))[0]
        verdicts: list[Plain] = []
        for place, text in enumerate(offers):
            for job, offer in offered_by(self._swept(text.encode("utf-8", "surrogatepass"))[0]):
                if len(verdicts) == _OFFERS:
                    raise UsageError(f"there are more than {_OFFERS} offers")
                verdict = match(request, offer)
                verdict.findings.raise_if_rejected()
                verdicts.append({"offer": place, **({"job": job} if job else {}), "met": verdict.met,
                                 "score": float(verdict.score), "explanation": asdict(verdict.explanation)})
        return {"offers": verdicts}

    def quote(self, data: bytes, source: str = AUTO) -> Plain:
        """What each job of a document would cost. Raises RejectedError, UsageError, LackingError (no rates)."""
        from sssjob.accounting import quote

        if self.rates is None:
            raise LackingError("this server has no rates")
        document, findings = self._swept(data, source)
        quotes = [quote(job, self.rates, defaults).record() for job, defaults in document.jobs()]
        return {"quotes": quotes, "findings": records(findings)}

    def _swept(self, data: bytes, source: str = AUTO) -> tuple[Document, Findings]:
        """The same as _admitted, with a job for each of a sweep."""
        document, findings = self._admitted(data, source)
        swept = expand(document, findings)
        findings.raise_if_rejected()
        return swept, findings

    def _admitted(self, data: bytes, source: str = AUTO, policy: Policy | None = None) -> tuple[Document, Findings]:
        """A document that passes the gate, and what was found. Raises RejectedError, UsageError."""
        taken = take(data, "-", source=source, policy=policy)
        taken.findings.extend(gate(taken.document))
        taken.findings.raise_if_rejected()
        return taken.document, taken.findings

    # -- jobs
    def submit(self, order: Order) -> Submitted:
        """Submit a document for a user.

        Raises DeniedError, ConflictError (the key was used for another document), RejectedError, UsageError and
        AccessError; then nothing was submitted.
        """
        (entered,) = self.enter([order])
        if isinstance(entered, Exception):
            raise entered
        return self.begin([entered])[0]

    def enter(self, orders: Sequence[Order]) -> list[Entered | Exception]:
        """Write orders into the journal in one transaction, each on the disk when this returns; why not, where one is
        not, as ``submit`` raises it. What is wrong with one does not hurt the others."""
        results = [self._tried(self._prepare, order) for order in orders]
        try:
            with self.journal.together():
                results = [result if isinstance(result, Exception) else self._tried(self._enter, result)
                           for result in results]
        except AccessError as error:
            for result in results:
                if isinstance(result, Entered) and result.prepared.fresh:
                    result.prepared.drop()
            if len(orders) > 1 and any(isinstance(result, AccessError) for result in results):    # one that had no room
                return [self.enter([order])[0] for order in orders]
            results = [result if isinstance(result, Exception) else error for result in results]
        return results

    def warm(self) -> None:
        """Plan a job that nobody wants: what is imported for that is there then for the jobs of users."""
        planned = self._tried(self._prepare, Order(User("", frozenset({"submit"})), _ANY_JOB))
        if isinstance(planned, Entered):
            planned.prepared.drop()

    @staticmethod
    def _tried(act: Callable[[T], Entered], subject: T) -> Entered | Exception:
        try:
            return act(subject)
        except Exception as error:      # each order has an answer of its own, which the face gives a form
            return error

    def _prepare(self, order: Order) -> Entered:
        """Plan an order."""
        order.user.require("submit")
        chosen = self._executor(order.executor)
        document, findings = self._admitted(order.data, order.source, order.policy)
        self._check_users(order.user, document)
        if self.settings is not None:
            complete(document, chosen, self.settings, findings)
        request = f"{_PREFIX}{order.user.name}:{secrets.token_hex(16) if order.key is None else order.key}"
        client = self.client
        try:
            prepared = client.prepare(document, chosen, policy=order.policy or Policy.REJECT, cwd=self.directory,
                                      request=request, is_new=order.key is None)
        except UsageError as error:
            raise self._conflict(order, request, error) from None
        findings.extend(client.findings)
        if prepared is None:
            findings.raise_if_rejected()
            raise UsageError("nothing was submitted")
        return Entered(order, prepared, findings)

    def _enter(self, entered: Entered) -> Entered:
        """Write it into the journal."""
        try:
            self.client.enter(entered.prepared)
        except UsageError as error:
            raise self._conflict(entered.order, entered.prepared.request or "", error) from None
        return entered

    def _conflict(self, order: Order, request: str, error: UsageError) -> UsageError | ConflictError:
        """The error that it is where its key has been used."""
        if self.journal.requested(request) is None:
            return error
        return ConflictError(f"the key {escape(order.key or '', 80)!r} was used for another document or executor: "
                             f"{error}")

    def begin(self, entered: Sequence[Entered]) -> list[Submitted]:
        """Have resource managers take what is in the journal; how it stands then. What goes wrong is a finding: it is
        submitted all the same, and the next who follows it begins it."""
        client = self.client
        by_number = {each.number: each.prepared for each in reversed(entered)}
        prepared = [replace(order, entry=None if order.entry is None else replace(order.entry, journal=self.journal))
                    for order in reversed(by_number.values())]
        try:
            client.begin(prepared)
        except SSSJobError as error:
            client.findings.add("SSS602", "journal", f"not begun yet: {escape(str(error), 400)}", severity="warning")
        return [self.submitted(each, [finding for finding in client.findings
                                      if len(entered) == 1 or finding.subject in each.labels]) for each in entered]

    def submitted(self, entered: Entered, begun: Iterable[Finding] = ()) -> Submitted:
        """How an order stands in the journal. begun: what was found when it was begun."""
        return Submitted(f"@{entered.number}", self.journal.rows_of(entered.number),
                         records([*entered.findings, *begun]), entered.prepared.fresh)

    def _executor(self, name: str | None) -> str:
        if name is None:
            return self.executors[0]
        if name.lower() not in (executor.lower() for executor in self.executors):
            raise UsageError(f"executor {escape(name, 40)!r} is not to be had here "
                             f"(known: {', '.join(self.executors)})")
        return name.lower()

    def _check_users(self, user: User, document: Document) -> None:
        """Raise DeniedError for a job that names another User than who submits it."""
        if user.may("act-for"):
            return
        for job, defaults in document.jobs():
            if others(job, user) or (defaults is not None and others(defaults, user)):
                for name in others(effective(job, defaults).fold(), user):
                    raise DeniedError(f"{user.name} has not the right act-for, which jobs of the User "
                                      f"{escape(name, 60)} need")

    def owner(self, number: int) -> str | None:
        """The user whose a submission is."""
        if number not in self._owners:
            self._owners[number] = owner_of(self.journal.request_of(number))
        return self._owners[number]

    def sees(self, user: User, row: Row) -> bool:
        """Whether a user may see a job."""
        return user.may("see-all") or self.owner(row.submission) == user.name

    def listed(self, user: User, chosen: Filter) -> list[Listed]:
        """The jobs that a user sees, of those that are chosen."""
        return [job for job in listed(self.journal, chosen) if self.sees(user, job.row)]

    def jobs(self, user: User, chosen: Filter, offset: int = 0, limit: int = 1000) -> Plain:
        """The jobs that a user sees, of those that are chosen. total: how many there are of them."""
        now = time.time()
        visible = self.listed(user, chosen)
        return {"total": len(visible), "jobs": [job.record(now) for job in visible[offset:offset + limit]]}

    def rows(self, user: User, name: str) -> list[Row]:
        """The job or jobs of a name, among those that a user sees. Raises UnknownJobError, UsageError."""
        try:
            return self.journal.find(name, among=lambda row: self.sees(user, row))
        except UnknownJobError:
            raise UnknownJobError(f"there is no job {escape(name, 80)!r}") from None

    def status(self, user: User, name: str) -> Plain:
        """A job, or the jobs of a group, as the journal knows them; no resource manager is asked."""
        rows = self.rows(user, name)
        return {"jobs": [row.record() for row in rows]}

    def _standing(self, user: User, name: str) -> list[Running]:
        """The same with their documents as they stand."""
        rows = self.rows(user, name)
        submissions = {number: self.client.standing(self.journal.entry(number)) for number in dict.fromkeys(
            row.submission for row in rows)}
        jobs = [submissions[row.submission].jobs[row.job] for row in rows]
        for job in jobs:
            job.refresh()
        return jobs

    def sources(self, user: User, name: str) -> Plain:
        """Every fact in the document of a job, who filled it in and when; what others said otherwise."""
        now = time.time()
        return {"jobs": [job.row.record() | {
            "facts": fact_records(job.sources(), now), "left_out": job.not_its_own,
            "disagreements": [disagreement.record() for disagreement in job.disagreements]}
                         for job in self._standing(user, name)]}

    def document(self, user: User, name: str, *, annotated: bool = False) -> str:
        """The document of a job as it stands, whole where all of its jobs are meant. annotated: with the source of each
        fact, as an Extension."""
        from sssjob.run.returning import text_of

        jobs = self._standing(user, name)
        for job in jobs if annotated else ():
            annotate(job.plan.job, job.sources())
        return text_of(self.journal, jobs)

    def wish(self, user: User, wish: str, name: str) -> Plain:
        """Ask that jobs be cancelled, or for what ``Client.ask`` takes; how they stand then, by their keys why that was
        refused, and for which of them it was not done yet. Raises DeniedError, UnknownJobError."""
        rows = self.rows(user, name)
        user.require("cancel-all" if any(self.owner(row.submission) != user.name for row in rows) else "submit")
        keys = [row.key for row in rows]
        if wish.startswith("change "):
            self._check_users(user, read_document(wish.removeprefix("change ")))
        client = self.client
        if wish == "cancel":
            jobs, _ = client.cancel(keys, _CANCEL_S)
            answers = {job.row.key: "" if job.ended else None for job in jobs}
        else:
            jobs = client.ask(wish, keys, _CANCEL_S)
            answers = {job.row.key: job.refusal(wish) for job in jobs}
        return {"jobs": [job.row.record() for job in jobs], "findings": records(client.findings),
                "refusals": {key: refusal for key, refusal in answers.items() if refusal},
                "waiting": [key for key, refusal in answers.items() if refusal is None]}

    def change(self, user: User, data: bytes, source: str, name: str) -> Plain:
        """The same for what a document says, one Job with what is to be otherwise. Raises UsageError, RejectedError."""
        return self.wish(user, f"change {change_text(job_of(self._admitted(data, source)[0]))}", name)

    def follow(self, seconds: float) -> None:
        """Ask how the jobs stand that have not ended, of all users, and start what has waited for them."""
        client = self.client
        entries = [self.journal.entry(number) for number in self.journal.unclosed()]
        if entries:
            client.look(entries, seconds)

    # -- questions
    def ask(self, user: User, request: Request, profile: str = "3.1", most: int | None = None) -> list[Response]:
        """The answer to a query over the jobs that a user sees, or the ledger. most: objects of each Response; None: it
        is one, whole."""
        from sssjob.sssrmap import Get, Response, Status, Where
        from sssjob.sssrmap.answering import answer, answers
        from sssjob.sssrmap.gold import JOBS_ONLY, GoldSource
        from sssjob.sssrmap.properties import close_to
        from sssjob.sssrmap.sources import LEDGER_KINDS, JournalSource, LedgerSource

        def answered(source: Source) -> list[Response]:
            """The answers of a source: one, or as many pieces as the request has room for."""
            now = int(time.time())
            most_bytes = self.limits.answer_bytes
            if most is None:
                return [answer(request, source, now=now, profile=profile, limits=self.limits, most_bytes=most_bytes)]
            return list(answers(request, source, most, now=now, profile=profile, limits=self.limits,
                                most_bytes=most_bytes))

        named = {part.name for part in request.parts if isinstance(part, (Get, Where))}
        is_of_bank = profile == "gold" and bool(named & JOBS_ONLY)
        if {asked.name for asked in request.objects} <= {"Job"} and not is_of_bank:
            return answered(JournalSource(self.journal, only=lambda row: self.sees(user, row)))
        user.require("ledger")
        unknown = next((asked.name for asked in request.objects if asked.name not in LEDGER_KINDS), None)
        if unknown is not None and profile != "gold":
            text = f"{escape(unknown, 60)} is not a valid object (known: {', '.join(LEDGER_KINDS)})"
            return [Response((Status.of("740", text + close_to(unknown, LEDGER_KINDS)),), request.actor)]
        with self.ledger(create=False) as ledger:
            return answered(LedgerSource(ledger) if profile != "gold" else GoldSource(ledger, request))

    def ledger(self, *, create: bool) -> Ledger:
        """The ledger, opened. Raises LackingError where there is none, AccessError."""
        from sssjob.accounting.ledger import Ledger
        from sssjob.accounting.store import default_place, open_store

        place = self.place or default_place()
        if not create and "://" not in place and not Path(place).exists():
            raise LackingError("this server has no ledger yet; `sssjob ledger deposit` makes it")
        return Ledger(open_store(place, create=create))

    def query(self, user: User, text: str) -> Plain:
        """The objects that a query selects, which is typed as ``sssjob ask`` takes it. Raises UsageError."""
        from sssjob.query._results import object_of
        from sssjob.sssrmap.sentences import request_of

        (response,) = self.ask(user, request_of(text, user.name))
        status = response.status
        if not status.succeeded:
            raise UsageError(f"{status.code}: {status.message}")
        data = response.data
        root = etree.fromstring(f"<Data>{'' if data is None else data.content}</Data>")
        return {"code": status.code, "objects": [object_of(element) or {} for element in root]}

    def balance(self, user: User, account: str | None) -> Plain:
        """The accounts of the ledger as they stand, or one of them."""
        user.require("ledger")
        condition = "" if account is None else f" Where Name={_quoted(account)}"
        return {"accounts": self.query(user, f"Query Account{condition}")["objects"]}


def _quoted(text: str) -> str:
    """A text as a value of a sentence."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    raise UsageError("a name with both kinds of quotes cannot be asked for")


def records(findings: Iterable[Finding]) -> list[Plain]:
    """Findings as JSON objects, without the source line, which may hold a secret."""
    return [{name: value for name, value in finding.record().items() if name not in ("type", "file", "excerpt")}
            for finding in findings]
