"""What usage records (``ur1``, ``ur2``, ``car``, ``apel``) have in common: words of a Status, names of Extensions, and
``Taking``, by which a writer takes the properties of a job one by one. What no writer has taken is told, so nothing is
lost in silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final

from sssjob.document.element import Item, Property
from sssjob.document.endings import FAILURE, NO_FAILURE, failed, reason_word, why_word
from sssjob.document.held import as_decimal, bare_is_held, held, held_for, in_all, per_of, ran
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Job
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import to_bytes
from sssjob.errors import UsageError
from sssjob.findings import Policy, escape
from sssjob.translators.base import WriteContext
from sssjob.translators.records._values import DIGITS
from sssjob.translators.records._xml import fit, instant
from sssjob.translators.records.base import Record, leaf, prop

_COUNTS: Final = ("Processors", "NodeCount")
#: type of the Extensions that hold what only usage records know: Site, VO, Infrastructure ...
GRID: Final = "Grid"
#: Status -> State. Source: GFD.98, section 5.8.
STATES: Final = {"aborted": "Completed", "completed": "Completed", "failed": "Completed", "held": "Hold",
                 "queued": "Idle", "started": "Running", "suspended": "Suspended"}
_STATUS: Final = {"Hold": "held", "Idle": "queued", "Running": "started", "Suspended": "suspended"}
_NODES: Final = 10_000          # names of a node list that are written one by one


def _counted(tag: str, total: Fraction | None, least: int, attributes: Mapping[str, str] | None = None
             ) -> Property | None:
    """A count of the whole job as a property; None where it is no whole number, or below the least."""
    if total is None or total.denominator != 1 or total < least:
        return None
    return leaf(tag, int(total), {name: text for name, text in (attributes or {}).items() if name != "metric"})


class Telling:
    """Where a writer says what a target cannot hold: of each subject once. It breaks no job and costs nothing, for what
    is written is of jobs that have ended."""

    def __init__(self, context: WriteContext) -> None:
        self.context = context
        self.told: set[tuple[str, str]] = set()

    def tell(self, rule: str, subject: str, message: str, line: int = 0) -> None:
        """A finding, if it is the first of its rule about this subject."""
        if (rule, subject) not in self.told and len(self.told) < 1000:
            self.told.add((rule, subject))
            self.context.findings.add(rule, subject, message, policy=self.context.policy or Policy.WARN, line=line,
                                      consequence="")

    def created(self) -> int:
        """When the records were made: option ``created``, else now."""
        text = self.context.options.get("created")
        if text is None:
            return int(time.time())
        if not (text.isdigit() and text.isascii() and len(text) < 12):
            raise UsageError(f"created is a time in epoch seconds, not {escape(text, 40)!r}")
        return int(text)


class Taking:
    """The properties of one job that have not been written yet."""

    def __init__(self, job: Job, telling: Telling) -> None:
        self.job, self.telling = job, telling
        self.delivered = job.delivered
        self.line = getattr(job, "line", 0)
        self.left: list[tuple[str, Item]] = []
        for item in job.items:
            if item is self.delivered and self.delivered is not None:
                self.left += (("Delivered", p) for p in self.delivered.items)
            else:
                self.left.append(("", item))

    def lost(self, rule: str, subject: str, message: str) -> None:
        """Tell of this job."""
        self.telling.tell(rule, subject, message, self.line)

    # -- taking
    def property(self, tag: str, *attributes: str) -> Property | None:
        """The first property of that name; attributes: those that the target has too, all others are told."""
        item = self.job.first(tag)
        if item is not None:
            self.use(item, *attributes)
        return item

    def use(self, item: Property, *attributes: str, place: str = "") -> None:
        """Mark as written."""
        at = self.find(item, place)
        if at is not None:
            del self.left[at]
        for name in item.attributes.keys() - set(attributes):
            self.lost("SSS501", item.tag, f"no place for attribute {name} of {item.tag}")

    def find(self, item_sought: Property, place: str = "") -> int | None:
        """Where a property stands among those that are left; equal ones may be one object."""
        return next((n for n, (where, item) in enumerate(self.left) if item is item_sought and where == place), None)

    def text(self, tag: str, *attributes: str) -> str | None:
        """The text of a property of the job, without blanks around it."""
        item = self.property(tag, *attributes)
        return None if item is None else self.clean(item.text, tag)

    def clean(self, text: str, subject: str) -> str | None:
        """A text on one line without blanks around it, which is reported where it changes; None where nothing is
        left."""
        plain = " ".join(text.split())
        if plain != text:
            self.lost("SSS502", subject, f"blanks and line breaks of {subject} are not kept")
        return plain or None

    def number(self, tag: str) -> int | None:
        """The value of a property of the job that is a whole number, not negative."""
        item = self.job.first(tag)
        if item is None or not isinstance(item.value, int) or item.value < 0:
            return None
        self.use(item)
        return item.value

    def amount(self, tag: str, *attributes: str, least: int = 0) -> Property | None:
        """What was delivered, else what stands bare in a job, which is told: both are read as delivered. One of each
        node is that of the whole job; of counts that only task groups say the sum is written, which is told."""
        item = own = None if self.delivered is None else self.delivered.first(tag)
        if item is None and bare_is_held(self.job) and (item := self.job.first(tag)) is not None and isinstance(
                item.value, int):
            self.lost("SSS502", tag, f"{tag} that stands bare in the job is written as what was delivered")
        if item is None and tag in _COUNTS and (total := held(self.job, tag)) is not None:
            lasted = ran(self.job) or Fraction(0)
            is_more = held_for(self.job, tag, lasted) < total * lasted
            self.lost("SSS502", tag, f"{tag} of the task groups is added up" + is_more * (
                "; they ran for different times, and with the Duration of the longest it is more than they used"))
            return _counted(tag, total, least)
        if item is None or not isinstance(item.value, int) or item.value < least:
            return None
        is_one_of_each = per_of(item.get("metric")) is not None
        counted = _counted(tag, in_all(self.job, item), least, item.attributes) if is_one_of_each else item
        if counted is not None:
            self.use(item, *attributes, *(("metric",) if is_one_of_each else ()),
                     place="" if item is not own else "Delivered")
        return counted

    def fact(self, kind: str, name: str) -> str | None:
        """The text of an Extension."""
        for p in self.job.all("Extension"):
            if p.get("type") == kind and p.get("name") == name and self.find(p) is not None:
                self.use(p, "name", "type")
                return self.clean(p.text, f"Extension {name}")
        return None

    def sizes(self, tag: str, *metrics: str) -> Iterator[tuple[int, str]]:
        """(bytes, metric) of the delivered amounts with one of these metrics, zero left out; fractions are told."""
        amounts = [] if self.delivered is None else self.delivered.all(tag)
        has_total = any((p.get("metric") or "Total") == "Total" for p in amounts)
        for p in amounts:
            metric = p.get("metric") or "Total"
            value = in_all(self.job, p)
            if per_of(metric) is not None and not has_total:
                metric, has_total = "Total", True
            if metric not in metrics or value is None or self.find(p, "Delivered") is None:
                continue
            try:
                exact = to_bytes(as_decimal(value), p.get("units"))
            except LexicalError:
                continue            # an unknown unit: left over, which is told
            n = int(exact.quantize(Decimal(1), ROUND_HALF_UP)) if exact < 10**DIGITS else 0
            if n <= 0:
                continue
            self.use(p, "units", "metric", place="Delivered")
            if p.get("metric") is None:
                self.lost("SSS502", tag, f"{tag} without metric is written as {metric}")
            if n != exact:
                self.lost("SSS502", tag, f"fractions of a byte of {tag} are rounded")
            yield n, metric

    def hosts(self) -> list[str]:
        """The names of the delivered nodes; those of a pattern, or too many, are not taken."""
        node = None if self.delivered is None else self.delivered.first("Node")
        if node is None:
            return []
        kind, text = node.get("aggregation"), node.text
        try:
            names = (NodeSet.parse_range(text) if kind == "Range" else
                     NodeSet.parse_list(text, node.get("delimiter") or ",") if kind == "List" else None)
        except LexicalError:
            return []               # left over, which is told
        if kind == "Pattern" or (names is not None and names.count > _NODES):
            return []
        if (node.get("count") or "1") != "1":
            return []
        self.use(node, "aggregation", "delimiter", "count", place="Delivered")
        shown = [text] if names is None else list(names)
        if any(c in name for name in shown for c in ",[] \t\n") or not all(shown):
            self.lost("SSS502", "Node", "a name of a node holds signs that part names")
        return shown

    # -- facts of all formats
    def global_id(self) -> str:
        """GlobalJob, else one made of Machine, Id and StartTime, which is told."""
        global_job = self.text("GlobalJob")
        if global_job is not None:
            return global_job
        self.lost("SSS503", "GlobalJob", "a job without GlobalJob gets one of Machine, Id and StartTime")
        parts = (self.job.value("Machine"), self.job.value("Id"), self.job.value("StartTime"))
        return ":".join("" if part is None else " ".join(str(part).split()) for part in parts)

    def status(self) -> str | None:
        """The word of Status; None for a State that none stands for."""
        state = self.property("State")
        if state is None:
            self.lost("SSS503", "State", "a job without State gets the one that its times tell")
            return ("completed" if self.job.first("EndTime") else "started" if self.job.first("StartTime") else
                    "queued")
        return status(self.job)

    def identity(self) -> tuple[str, str] | None:
        """(Status, Id) of a job that can be a record; None, which is told, for one that cannot."""
        word, ident = self.status(), self.text("Id")
        if word is not None and ident is not None:
            return word, ident
        self.lost("SSS546", "Job", f"a job with {'no Id' if ident is None else 'a State that no Status stands for'} is "
                  "left out")
        return None

    def record_id(self, fallback: str) -> str:
        """The id that the record had, else what identifies the job, which is told."""
        fact = self.fact(GRID, "RecordId")
        if fact is None:
            self.lost("SSS503", "Extension RecordId", "recordId is made of what identifies the job")
        return fact or fallback

    def rest(self) -> None:
        """Tell of all that has not been taken."""
        for name in {**self.job.attributes, **(self.delivered.attributes if self.delivered else {})}:
            self.lost("SSS501", name, f"no place for attribute {escape(name, 80)}")
        for place, item in self.left:
            subject = item.tag
            if isinstance(item, Property):
                if item.tag == "Extension":
                    subject = f"Extension {item.get('name', '')}"
                elif item.tag == "Resource":
                    subject = f"Resource {item.get('name', '')}"
            shown = f"{place}/{subject}" if place else subject
            self.lost("SSS501", subject, f"no place for {escape(shown, 80)}")


def documents(namespace: str, tag: str, elements: Callable[[Taking, str | None], Iterator[str]], *options: str,
              ) -> Callable[[Iterable[Job], WriteContext], Iterator[str]]:
    """The writer of UsageRecords in a namespace, each an element of that name. elements: what is in it, of a job and of
    the time when the record is made; nothing for a job that cannot be one. options: which it has beside ``created``,
    asked for before the first job comes, so that all others can be refused."""

    def texts(jobs: Iterable[Job], context: WriteContext) -> Iterator[str]:
        """The document in pieces; options are asked for at once."""
        telling = Telling(context)
        created = instant(telling.created())
        for name in options:
            context.options.get(name)

        def pieces() -> Iterator[str]:
            """The frame, and a record for each job that can be one."""
            yield '<?xml version="1.0" encoding="UTF-8"?>\n'
            yield f'<UsageRecords xmlns="{namespace}" xmlns:urf="{namespace}">\n'
            for job in jobs:
                text = "".join(elements(Taking(job, telling), created))
                yield f"<{tag}>{fit(text)}</{tag}>\n" if text else ""
            yield "</UsageRecords>\n"
        return pieces()
    return texts


def status(job: Job) -> str | None:
    """The Status of a job: of one that has ended completed, failed or aborted (cancelled)."""
    state = job.value("State")
    if state != "Completed":
        return _STATUS.get(str(state))
    if why_word(job) == "cancel":
        return "aborted"
    return "failed" if failed(job) else "completed"


def outcome(r: Record, word: str | None, message: str | None) -> None:
    """State and StatusMessage of a Status; message: what the record says beside it, None where
    nothing. Where that gives no reason of a job that failed or was aborted, and neither code nor signal does, Status is
    the reason."""
    state = STATES.get((word or "").lower())
    if state is None:
        r.native = word or ""
    else:
        r.state = state
    if message is not None and state is not None:
        r.message = message
    ended, why = (word or "").lower(), reason_word(r.message)
    if ended == "aborted" and why not in FAILURE | NO_FAILURE:
        r.message = f"cancel: {r.message or word}"
    elif ended == "failed" and why not in FAILURE | NO_FAILURE and (message is None or not (r.exit_code or _signal(r))):
        r.message = f"failed: {r.message}" if r.message else "failed"


def _signal(r: Record) -> bool:
    """Whether a record says by itself that a signal ended the job."""
    return r.signal is not None or any(name == "ExitSignal" for _, name, _ in r.more)


def whole(r: Record, tag: str, value: str | None) -> None:
    """A property of the job that has no field in a Record, if there is text for it."""
    if value:
        r.others.append(prop(tag, value))
