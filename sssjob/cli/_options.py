"""What the commands that read documents share: their options, and the session that reads, reports and keeps score."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from sssjob.cli._app import status_of
from sssjob.cli._files import read_bytes
from sssjob.cli._findings import problem, show
from sssjob.errors import RejectedError, SSSJobError
from sssjob.findings import Finding, Policy
from sssjob.profiles import PROFILES

if TYPE_CHECKING:
    from sssjob.model import Document

__all__ = ["Session", "common", "output_option"]


@dataclass(slots=True)
class Session:
    """One command: its shared options, and the worst that has happened so far."""

    policy: Policy | None = None
    profile: str = "liberal"
    as_json: bool = False
    quiet: bool = False
    strict: bool = False
    warnings: int = 0
    errors: int = 0
    failures: int = 0                                   # files that could not be read
    _seen: dict[int, Finding] = field(default_factory=dict)

    def report(self, findings: Iterable[Finding] | None) -> None:
        """Print the findings that were not printed before, and count them."""
        for finding in findings or ():
            if id(finding) in self._seen:
                continue
            self._seen[id(finding)] = finding
            self.errors += finding.rejects
            self.warnings += finding.severity == "warning"
            if finding.rejects or not self.quiet:
                show(finding, as_json=self.as_json)
        overflow = getattr(findings, "overflow", 0)
        if overflow and not self.quiet:
            problem(f"{overflow} more findings are not shown", as_json=self.as_json)

    def read(self, name: str, data: bytes | None = None) -> Document:
        """The document of that name (data: its text, when it was read before), its findings reported."""
        from sssjob.reader import read_document

        source = read_bytes(name) if data is None else data
        document = read_document(source, profile=self.profile, path=name, policy=self.policy)
        self.report(document.findings)
        return document

    def tolerant(self) -> _Tolerant:
        """A context in which a rejected document or an unreadable file is reported and counted."""
        return _Tolerant(self)

    def status(self) -> int:
        """The exit status by what was reported so far: 3 a file could not be read, 1 rejected, else 0."""
        if self.failures:
            return 3
        return 1 if self.errors or (self.strict and self.warnings) else 0


class _Tolerant:
    def __init__(self, session: Session) -> None:
        self.session = session

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        session = self.session
        if isinstance(error, RejectedError):
            session.report(error.findings)
            session.errors += not any(f.rejects for f in error.findings)
            return True
        if isinstance(error, (SSSJobError, OSError)) and not isinstance(error, BrokenPipeError):
            status, message = status_of(error)
            if status not in (1, 3):
                return False
            session.failures += status == 3
            session.errors += status == 1
            problem(message, as_json=session.as_json, status=status)
            return True
        return False


def common(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command the shared options; its function gets a Session first and returns the exit status."""

    @click.option("--policy", type=click.Choice(["reject", "warn", "ignore"], case_sensitive=False), metavar="POLICY",
                  help="What to do with what is not supported: reject, warn or ignore (default: the document's own).")
    @click.option("--profile", type=click.Choice(list(PROFILES)), default="liberal", metavar="NAME",
                  help=f"How strictly to read: {', '.join(PROFILES)} (default: liberal).")
    @click.option("--json", "as_json", is_flag=True, help="Results and findings as JSON.")
    @click.option("-q", "--quiet", is_flag=True, help="Only findings that reject.")
    @click.option("--strict", is_flag=True, help="Exit status 1 for warnings too.")
    @functools.wraps(function)
    def command(policy: str | None, profile: str, as_json: bool, quiet: bool, strict: bool, **rest: Any) -> int:
        session = Session(Policy.of(policy) if policy else None, profile, as_json, quiet, strict)
        try:
            return function(session, **rest)
        except RejectedError as error:
            session.report(error.findings)
            return 1
        except SSSJobError as error:
            status, message = status_of(error)
            problem(message, as_json=as_json, status=status)
            return status

    return command


def output_option(function: Callable[..., int]) -> Callable[..., int]:
    """``-o FILE``: where the result goes."""
    return click.option("-o", "--output", metavar="FILE", default="-",
                        help="Write the result to FILE, whole or not at all (default: standard output).")(function)
