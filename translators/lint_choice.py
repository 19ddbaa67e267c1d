"""Which rules lint tells: those that the command line selects or ignores, and those that a comment of the script
silences.

``# sssjob: ignore=SSS522,SSS53`` at the end of a line counts for that line, on a line of its own for the whole script;
``# sssjob: ignore-next=SSS522`` counts for the line below it. A rule is named by its id or by the beginning of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sssjob.errors import UsageError
from sssjob.findings import Finding, Findings
from sssjob.rules import RULES
from sssjob.translators.scripts.raw import Line

__all__ = ["ALL", "MARK", "Choice", "Suppressions"]

_LIMITS: Final = "limit"
_COMMENT: Final = re.compile(r"(?P<before>.*?)#\s*sssjob:\s*ignore(?P<next>-next)?\s*=(?P<codes>[\w,\s]*)", re.ASCII)
_CODE: Final = re.compile(r"SSS[1-9]\d{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Choice:
    """The rules that are told. select: ids or beginnings of ids, empty for all; ignore: likewise those that are not;
    of a rule that both name the longer name counts. A limit that was reached is always told: what lies behind it was
    not looked at."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @classmethod
    def of(cls, select: Iterable[str], ignore: Iterable[str]) -> Choice:
        """The choice of lists such as ``SSS52,SSS505``; UsageError for what begins no rule."""
        return cls(_codes(select, "--select"), _codes(ignore, "--ignore"))

    def wants(self, rule: str) -> bool:
        """Whether a rule is told."""
        if not self.select and not self.ignore:
            return True
        if RULES[rule].kind == _LIMITS:
            return True
        longest = max((len(code) for code in self.select if rule.startswith(code)), default=0 if self.select else 1)
        unwanted = max((len(code) for code in self.ignore if rule.startswith(code)), default=0)
        return longest > unwanted


#: What stands in every comment for lint.
MARK: Final = "sssjob:"
ALL: Final = Choice()


def _codes(texts: Iterable[str], option: str) -> tuple[str, ...]:
    codes = [code for text in texts for part in text.split(",") if (code := part.strip().upper())]
    for code in codes:
        if not any(rule.startswith(code) for rule in RULES):
            raise UsageError(f"{option} {code}: no rule begins so; a rule is named like SSS522, several like SSS52")
    return tuple(dict.fromkeys(codes))


@dataclass(slots=True)
class _Comment:
    """One comment. first, last: the lines that it is about (last 0: the whole script)."""

    line: Line
    column: int
    first: int
    last: int
    codes: list[str]
    used: set[str] = field(default_factory=set)


class Suppressions:
    """The comments of a script that silence rules."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._comments = [_comment(line) for line in lines if MARK in line.text]

    def applied(self, findings: Iterable[Finding], path: str) -> list[Finding]:
        """The findings that no comment silences, and one for each comment, or name in it, that silences nothing."""
        comments = [comment for comment in self._comments if comment is not None]
        if not comments:
            return list(findings)
        kept = [finding for finding in findings if not _silenced(finding, comments)]
        unused = Findings(path)
        for comment in comments:
            for code in comment.codes or [""]:
                if code not in comment.used:
                    is_rule = code and any(rule.startswith(code) for rule in RULES)
                    unused.add("SSS519", "sssjob: ignore", _why(code, bool(is_rule), comment),
                               severity="info" if is_rule else "warning", line=comment.line.number,
                               column=comment.column, excerpt=comment.line.text)
        return sorted([*kept, *unused], key=lambda f: (f.line, f.column))


def _comment(line: Line) -> _Comment | None:
    hit = _COMMENT.match(line.text[:4096])
    if hit is None:
        return None
    alone = not hit["before"].strip()
    first, last = (line.number + 1,) * 2 if hit["next"] else (0, 0) if alone else (line.number,) * 2
    return _Comment(line, len(hit["before"]) + 1, first, last, re.split(r"[,\s]+", hit["codes"].strip().upper()))


def _silenced(finding: Finding, comments: Iterable[_Comment]) -> bool:
    """Whether a comment silences a finding; the comments remember it."""
    if finding.kind == _LIMITS:
        return False
    silenced = False
    for comment in comments:
        if not comment.last or comment.first <= finding.line <= comment.last:
            for code in comment.codes:
                if _CODE.fullmatch(code) and finding.rule.startswith(code):
                    comment.used.add(code)
                    silenced = True
    return silenced


def _why(code: str, is_rule: bool, comment: _Comment) -> str:
    where = "in this script" if not comment.last else "on this line" if comment.first == comment.line.number \
        else "on the line below"
    if is_rule:
        return f"{code} has nothing to say {where}; the comment can be deleted"
    return f"{code[:40]} is no rule" if code else "the comment names no rule, as in ignore=SSS522"
