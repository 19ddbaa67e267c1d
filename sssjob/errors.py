"""The exceptions of sssjob, one tree.

    SSSJobError
    ├── RejectedError (ValueError)      a document or a translation with rejecting findings
    │   └── PropertyError               a property set by hand that is not allowed, or not so
    ├── DocumentError (ValueError)      input that is no document at all (not XML, not JSON, wrong encoding)
    ├── UsageError (ValueError)         a wrong argument: unknown format, profile, executor ...
    ├── QueryError (ValueError)         a query that cannot be evaluated
    │   └── QueryTimeout                it took longer than its limit
    └── AccessError (OSError)           a file that cannot be read or written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sssjob.findings import Finding

__all__ = ["AccessError", "DocumentError", "FormatError", "PropertyError", "QueryError", "QueryTimeout",
           "RejectedError", "SSSJobError", "UsageError"]


class SSSJobError(Exception):
    """Base of all errors that sssjob raises on purpose."""


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

    def __reduce__(self) -> tuple[type[PropertyError], tuple[Finding, str]]:
        return type(self), (self.finding, self.section)


class DocumentError(SSSJobError, ValueError):
    """The input is no document of the format that was named."""


class UsageError(SSSJobError, ValueError):
    """A wrong argument; the message lists the known names."""


class FormatError(UsageError):
    """A text that is in no format that is known, or that fits several."""


class QueryError(SSSJobError, ValueError):
    """A query that is wrong or refused."""


class QueryTimeout(QueryError):
    """A query that took longer than ``Limits.query_seconds``."""


class AccessError(SSSJobError, OSError):
    """A file that cannot be read or written; ``path`` names it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(f"{path}: {reason}")
