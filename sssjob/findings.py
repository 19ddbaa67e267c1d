"""Findings: the one way in which anything that is not understood, not expressible, lossy, contradictory, repaired or
wrong is told, for documents, translations and runs alike.

A ``Rule`` is a row of ``RULES`` (stable id, kind, title, explanation); a ``Finding`` is one occurrence with its place.
``awarenessPolicy`` (section 9.0) turns the kinds ``unknown`` and ``dropped`` into an error, a warning or silence;
``invalid`` and ``limit`` always reject; all others warn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from sssjob.consequences import Column, Consequence, consequence_of
from sssjob.errors import RejectedError
from sssjob.limits import LIMITS, Limits
from sssjob.rules import RULES, Kind, Rule

if TYPE_CHECKING:
    from sssjob.document.element import Container, Item
    from sssjob.xml.places import Place

__all__ = ["RULES", "Finding", "Findings", "Kind", "Locator", "Policy", "Rule", "Severity", "escape", "joined"]

Severity = Literal["error", "warning", "info"]


class Policy(Enum):
    """awarenessPolicy: what happens to what is not supported."""

    REJECT = "Reject"
    WARN = "Warn"
    IGNORE = "Ignore"

    @classmethod
    def of(cls, text: str) -> Policy | None:
        """The policy of that name in any case, or None."""
        return _POLICIES.get(text.strip().lower())


#: How many findings their collector shows of itself.
_SHOWN: Final = 10
#: The path of a job of a group, with its number.
_PLACE: Final = re.compile(r"^(.*/JobGroup(?:\[\d+\])?/Job)\[(\d+)\]", re.ASCII)
_POLICIES: Final = {p.value.lower(): p for p in Policy}
_BY_POLICY: Final[dict[Policy, Severity | None]] = {
    Policy.REJECT: "error", Policy.WARN: "warning", Policy.IGNORE: None,
}
#: Severity of each rule (None: the policy says it), its kind, and what it means for the job.
_BY_RULE: Final[dict[str, tuple[Severity | None, Kind, Column]]] = {
    name: (None if rule.governed else rule.severity, rule.kind, rule.consequence) for name, rule in RULES.items()}


def _located(places: Locator | None, stated: Place, item: Item | None, within: Container | None, path: str,
             like: Finding | None) -> Place:
    """Where a finding stands: where another one does that is like it, or what the places of the document say; else what
    is stated."""
    if like is not None:
        stated = like.line, like.column, like.excerpt
        if like.line:
            return stated
    at = places.of(item, within, path) if places is not None else None
    return at or stated


def _in_whole(path: str, places: Sequence[int]) -> str:
    """A path in a part of a group as it is in the whole. places: of the jobs of the part, from 0."""
    job = _PLACE.match(path)
    if job is None or int(job[2]) > len(places):
        return path
    return f"{job[1]}[{places[int(job[2]) - 1] + 1}]{path[job.end():]}"


def escape(text: str, most: int = 200) -> str:
    """The text on one line, safe for a terminal or a log: control and invisible characters as ``\\u{XXXX}``."""
    shown = text[: most + 1]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else f"\\u{{{ord(c):04X}}}" for c in shown)
    return shown if len(text) <= most else shown[:most] + "…"


def joined(text: str) -> str:
    """The lines in which a resource manager speaks, as parts of one sentence."""
    return "; ".join(filter(None, map(str.strip, text.split("\n"))))


@dataclass(slots=True)      # frozen, it would take four times as long to make, and there are many of them
class Finding:
    """One occurrence of a rule; not to be changed.

    line and column count from 1 (0: not known); ``path`` is the place inside the document
    (``/JobGroup/Job[2]/Requested/Memory``); ``subject`` the name concerned; ``excerpt`` the source line;
    ``consequence`` what it means for the job, empty where it is about no job that is to run. locate: gives line, column
    and excerpt when one of them is asked for, which costs time.
    """

    rule: str
    severity: Severity
    subject: str
    message: str
    kind: Kind
    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    hint: str = ""
    excerpt: str = ""
    consequence: Consequence | Literal[""] = ""
    locate: Callable[[], Place] | None = field(default=None, repr=False, compare=False)

    if not TYPE_CHECKING:       # which would take any name for one of a member then
        def __getattr__(self, name: str) -> Any:
            """What is not known yet: where it stands."""
            if name not in _PLACE_MEMBERS or self.locate is None:
                raise AttributeError(name)
            (self.line, self.column, self.excerpt), self.locate = self.locate(), None
            return object.__getattribute__(self, name)

    def located_by(self, locate: Callable[[], Place]) -> None:
        """Have the place looked for when it is asked for."""
        del self.line, self.column, self.excerpt
        self.locate = locate

    @property
    def rejects(self) -> bool:
        """Whether this finding refuses the document or the translation."""
        return self.severity == "error"

    @property
    def level(self) -> Literal["error", "warning", "note"]:
        """How reports for other programs grade it: what only looks different is a note, whatever the policy says."""
        if self.severity == "error":
            return "error"
        return "note" if self.severity == "info" or self.consequence == "looks" else "warning"

    @property
    def place(self) -> str:
        """``file:line:col``, as far as known."""
        return ":".join([escape(self.file) or "-", *(str(n) for n in (self.line, self.column) if n)])

    def same(self, other: Finding) -> bool:
        """Whether another one says the same of the same place, as two rooms may that look at one property. Places are
        asked for last: it costs time to know them."""
        return (self.rule, self.message) == (other.rule, other.message) and (
            self.line, self.column) == (other.line, other.column)

    def __str__(self) -> str:
        hint = f" ({escape(self.hint, 400)})" if self.hint else ""
        return f"{self.place}: {self.rule} {self.severity}{self.effect} {escape(self.message, 1000)}{hint}"

    @property
    def effect(self) -> str:
        """`` [breaks]``, ``[costs]`` or ``[looks]`` of a warning; an error refuses, and a note speaks for itself."""
        return f" [{self.consequence}]" if self.consequence and self.severity == "warning" else ""

    def record(self) -> dict[str, Any]:
        """The finding as a JSON object; empty members are left out."""
        record: dict[str, Any] = {"type": "finding"}
        for name in _MEMBERS:
            if (value := getattr(self, name)) not in ("", 0):
                record[name] = value
        return record


_MEMBERS: Final = tuple(member.name for member in fields(Finding) if member.name != "locate")
_PLACE_MEMBERS: Final = frozenset(("line", "column", "excerpt"))


class Locator(Protocol):
    """Knows where in its text the items of a document stand."""

    def of(self, item: Item | None, within: Container | None = None, path: str = "") -> Place | None:
        """Line, column and source line of an item, which stands in a container (or a copy of it) and has a path."""

    def comments(self) -> tuple[int, int]:
        """How many comments there are that are no part of the document, and the line of the first (0: none)."""


class Findings:
    """Collects findings; keeps at most ``limits.findings`` and counts the rest.

    places: of the document that they are about, which know where its items stand. late: they are asked when somebody
    wants to know it of a finding; the document must not lose its items before.
    """

    __slots__ = ("__weakref__", "_kept", "_rejected", "file", "late", "limits", "overflow", "places", "told")

    def __init__(self, file: str = "", limits: Limits = LIMITS) -> None:
        self.file = file
        self.limits = limits
        self.overflow = 0
        self.places: Locator | None = None
        self.late = False
        self.told = 0               # calls of add, heard or not: whether anything was to say
        self._kept: list[Finding] = []
        self._rejected = False

    def add(
        self, rule: str, subject: str, message: str, *, policy: Policy = Policy.REJECT,
        severity: Severity | None = None, line: int = 0, column: int = 0, path: str | Callable[[], str] = "",
        hint: str | Callable[[], str] = "", excerpt: str = "",
        place: Callable[[], tuple[int, int, str]] | None = None, item: Item | None = None,
        within: Container | None = None, once: bool = False, consequence: Consequence | Literal[""] | None = None,
        like: Finding | None = None,
    ) -> Finding | None:
        """Record one occurrence and return it; None where the policy says to be silent.

        policy counts only for rules of the kinds unknown and dropped; severity overrides the rule's own. place
        gives (line, column, excerpt). It, path and hint are asked only when the finding is kept: they cost time.
        item: what the finding is about, and within: the container or job that it stands in (or a copy of it); with the
        ``places`` of the document these, or the path alone, give line and column, else the line is that of within.
        once: it may have been told before, of the same place. consequence: what it means for the job, where the rule
        and the subject do not say it; empty: nothing, as of a job that has ended. like: another one that stands at the
        same place, where that is known.
        """
        self.told += 1
        usual, kind, effect = _BY_RULE[rule]
        level = severity or usual or _BY_POLICY[policy]
        if level is None:
            return None
        first = False
        if level == "error" and not self._rejected:
            self._rejected = first = True
        if len(self._kept) >= self.limits.findings and not first:
            self.overflow += 1
            return None
        if place is not None:
            line, column, excerpt = place()
        where = path if isinstance(path, str) else path()
        locate: Callable[[], Place] | None = None
        if like is not None or (not column and (within is not None or (where and not line))):
            line = line or (0 if within is None else within.line)
            locate = partial(_located, self.places, (line, column, excerpt), item, within, where, like)
            if not self.late:
                (line, column, excerpt), locate = locate(), None
        finding = Finding(rule, level, subject, message, kind, self.file, line, column, where,
                          hint if isinstance(hint, str) else hint(), excerpt,
                          consequence if consequence is not None else
                          consequence_of(effect, subject, level) if effect else "")
        if locate is not None:
            finding.located_by(locate)
        if once:
            for other in self._kept:        # most say something else, which their messages show
                if other.message == message and finding.same(other):
                    return None
        self._kept.append(finding)
        return finding

    def extend(self, others: Findings) -> None:
        """Take over the findings of another collector."""
        self._kept.extend(others)
        self.overflow += others.overflow
        self._rejected = self._rejected or others.rejected

    def drop(self, rule: str) -> None:
        """Forget the warnings of a rule, because something else tells the same."""
        self._kept = [finding for finding in self._kept if finding.rejects or finding.rule != rule]

    def moved(self, file: str, places: Sequence[int] = ()) -> Findings:
        """The same about a file from which the text that they are about was made: they name none of its lines. places:
        those in the group of the file, from 0, of the jobs that the text has; none where it has all of them."""
        others = Findings(file, self.limits)
        others._kept = [replace(finding, file=file, line=0, column=0, excerpt="", locate=None,
                                path=_in_whole(finding.path, places))
                        for finding in self._kept]
        others.overflow, others.told, others._rejected = self.overflow, self.told, self._rejected
        return others

    @property
    def is_full(self) -> bool:
        """Whether findings are only counted from now on, but for the first that rejects."""
        return len(self._kept) >= self.limits.findings

    def taken(self) -> list[Finding]:
        """The findings that are kept, which are forgotten here: what is read without end is told as it comes."""
        kept, self._kept = self._kept, []
        return kept

    def after(self, count: int) -> list[Finding]:
        """Those that were kept after the first so many."""
        return self._kept[count:]

    def withdraw(self, rule: str, subject: str, first: int, last: int) -> None:
        """Forget the warnings of a rule about something on these lines, because what was told holds no more."""
        self._kept = [f for f in self._kept if f.rejects or f.rule != rule or f.subject != subject
                      or not first <= f.line <= last]

    @property
    def rejected(self) -> bool:
        """Whether any finding rejects."""
        return self._rejected

    def rejecting(self) -> Iterator[Finding]:
        """Only the findings that reject."""
        return (f for f in self._kept if f.rejects)

    def raise_if_rejected(self) -> None:
        """Raise RejectedError with all findings when one of them rejects."""
        if self._rejected:
            raise RejectedError(self._kept)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: int) -> Finding:
        return self._kept[index]

    def __repr__(self) -> str:
        lines = [str(finding) for finding in self._kept[:_SHOWN]]
        more = len(self) + self.overflow - len(lines)
        return f"Findings({lines})" if not more else f"Findings({lines} and {more} more)"
