"""The exceptions of sssjob, one tree.

    SSSJobError
    ├── RejectedError (ValueError)      a document or a translation with rejecting findings
    │   └── PropertyError               a property set by hand that is not allowed, or not so
    ├── UsageError (ValueError)         a wrong argument: unknown format, profile, executor ...
    │   └── UnknownJobError             the id of a job that the journal does not have
    ├── ProblemsError (ValueError)      a file of settings, as rates or a privacy profile, that is wrong
    ├── QueryError (ValueError)         a query that cannot be evaluated
    │   └── QueryTimeout                it took longer than its limit
    └── AccessError (OSError)           a file that cannot be read or written

    LexicalError (ValueError)           a text that has not the form it should have; whoever reads a document or a
    └── LimitError                      script makes a finding of it. LimitError: it asks for more than a limit allows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sssjob.findings import Finding

__all__ = ["AccessError", "FormatError", "LexicalError", "LimitError", "ProblemsError", "PropertyError", "QueryError",
           "QueryTimeout", "RejectedError", "SSSJobError", "UnknownJobError", "UsageError"]

_SHOWN = 60  # characters of a refused text that a message repeats


class SSSJobError(Exception):
    """Base of all errors that sssjob raises on purpose. A pool of processes can hand them over, whatever made them."""

    def __reduce__(self) -> tuple[Callable[..., BaseException], tuple[type[BaseException], tuple[object, ...],
                                                                      dict[str, object]]]:
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[BaseException], arguments: tuple[object, ...], members: dict[str, object]) -> BaseException:
    """An error as it was, which is not made once more from what made it."""
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(members)
    return error


class RejectedError(SSSJobError, ValueError):
    """Rejecting findings; ``findings`` holds all findings, rejecting or not."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        errors = [f for f in self.findings if f.rejects]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{errors[0] if errors else 'rejected'}{more}")


class PropertyError(RejectedError):
    """A property, set or added by hand, that the reader would refuse. name: of the property (or its container);
    section: of the specification; finding: with the rule, as the reader would have told it."""

    def __init__(self, finding: Finding, section: str) -> None:
        self.finding, self.name, self.section = finding, finding.subject, section
        super().__init__([finding])
        hint = f" ({finding.hint})" if finding.hint else ""
        self.args = (f"{finding.message}{hint} [{finding.rule}; SSS job object, section {section}]",)


class UsageError(SSSJobError, ValueError):
    """A wrong argument; the message lists the known names."""


class UnknownJobError(UsageError):
    """The journal has no job of this name."""


class FormatError(UsageError):
    """A text that is in no format that is known, or that fits several."""


class ProblemsError(SSSJobError, ValueError):
    """A file of settings that is wrong. problems: ``rate[2].per: ...``, one each."""

    def __init__(self, path: str, problems: Sequence[str]) -> None:
        self.path, self.problems = path, tuple(problems)
        super().__init__("; ".join(f"{path}: {p}" for p in problems[:20]))


class QueryError(SSSJobError, ValueError):
    """A query that is wrong or refused."""


class QueryTimeout(QueryError):
    """A query that took longer than ``Limits.query_seconds``."""


class AccessError(SSSJobError, OSError):
    """A file that cannot be read or written; ``path`` names it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(f"{path}: {reason}")


def _shown(text: str) -> str:
    """The text as an ASCII literal of bounded length, safe in a log or on a terminal."""
    return ascii(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!a}... ({len(text)} characters)"


class LexicalError(ValueError):
    """A text that has not the form it should have.

    text: the refused text; expected: what would have been taken; hint: how to put it right, or None; repaired: the
    strict spelling a liberal reader makes of the text, or None where it takes it no better.
    """

    def __init__(self, text: str, expected: str, hint: str | None = None, repaired: str | None = None) -> None:
        super().__init__(text, expected, hint, repaired)
        self.text = text
        self.expected = expected
        self.hint = hint
        self.repaired = repaired

    def __str__(self) -> str:
        return f"{_shown(self.text)}: expected {self.expected}" + (f" ({self.hint})" if self.hint else "")


class LimitError(LexicalError):
    """A text that asks for more than a limit allows; ``limit`` is the name of a field of ``Limits``."""

    def __init__(self, text: str, expected: str, limit: str) -> None:
        super().__init__(text, expected)
        self.args = (text, expected, limit)  # what pickling calls the class with
        self.limit = limit

    def __str__(self) -> str:
        return f"{super().__str__()} (limit {self.limit})"
