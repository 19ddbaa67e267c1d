"""``lint`` of one file, in any process: which dialect it is, what is found, and what of that is mended."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sssjob.cli._app import status_of
from sssjob.cli._files import read_bytes, write_file
from sssjob.cli._options import bounded
from sssjob.cli._walking import script_of, walked
from sssjob.conversion.converting import AUTO
from sssjob.errors import AccessError, FormatError, RejectedError, UsageError
from sssjob.findings import Finding, Policy, escape
from sssjob.translators.lint_choice import ALL, Choice
from sssjob.translators.recognise import Sample, guess, scripts

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.base import Translator


@dataclass(frozen=True, slots=True)
class Named:
    """A file to look at. given: on the command line; a file that was found in a folder need not be a script.
    outcome, why: what is known of it before it is opened (skipped, unreadable)."""

    name: str
    given: bool = True
    outcome: str = ""
    why: str = ""


@dataclass(slots=True)
class Examined:
    """What came of one file. outcome: examined, skipped (no script), doubtful (its dialect is not known), rejected,
    unreadable or failed; message: why, where it is not examined; mended: findings that were; text: what was mended of
    standard input."""

    name: str
    outcome: str = "examined"
    dialect: str = ""
    findings: list[Finding] = field(default_factory=list)
    overflow: int = 0
    message: str = ""
    mended: int = 0
    text: bytes | None = None
    usage: bool = False     # the command line is to blame, not the file


@dataclass(frozen=True, slots=True)
class Examining:
    """How files are looked at; it can be sent to another process. source: a dialect, or ``auto``."""

    source: str = AUTO
    policy: Policy | None = None
    choice: Choice = ALL
    site: Site | None = None
    fix: bool = False

    def examined(self, named: Named) -> Examined:
        """One file, read, looked at and mended; whatever goes wrong with it is reported of it."""
        result = Examined(named.name)
        if named.outcome:
            result.outcome, result.message = named.outcome, named.why
            return result
        try:
            with bounded(named.name):
                self._examine(named, result)
        except RejectedError as error:
            result.outcome, result.findings = "rejected", list(error.findings)
        except FormatError as error:
            result.outcome, result.message = "doubtful", str(error)
        except UsageError as error:
            result.usage, result.message = True, str(error)
        except (Exception, RecursionError) as error:
            result.outcome = "unreadable" if isinstance(error, OSError) else "failed"
            result.message = status_of(error)[1]
        return result

    def _examine(self, named: Named, result: Examined) -> None:
        from sssjob.translators.lint import lint

        if named.given:
            sample: Sample | str = Sample(read_bytes(named.name), named.name)
            fits = None
        else:
            sample, fits = script_of(named.name)
        if isinstance(sample, str):
            result.outcome, result.message = "skipped", sample
            return
        data = sample.data
        result.dialect = dialect = _dialect(sample, fits) if self.source == AUTO else self.source
        findings = lint(dialect, data, named.name, self.policy, self.site, self.choice, sample=sample)
        if self.fix:
            from sssjob.translators.lint_fixes import fixed

            mended, result.mended = fixed(dialect, data, findings)
            if result.mended:
                findings = lint(dialect, mended, named.name, self.policy, self.site, self.choice)
            if named.name == "-":
                result.text = mended
            elif result.mended:
                _replace(named.name, mended)
        result.findings, result.overflow = list(findings), findings.overflow


def _dialect(sample: Sample, fits: list[Translator] | None = None) -> str:
    """The dialect of a script by what stands in it; FormatError where none or several fit."""
    if fits is None:
        fits = scripts(sample)
    return (fits[0] if len(fits) == 1 else guess(sample.data, sample.path)[0]).name


def _replace(name: str, data: bytes) -> None:
    """Put the mended text in place of a file, whole or not at all; a link stays one, the mode stays as it was."""
    path = os.path.realpath(name)
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise AccessError(escape(name), "is no regular file, and cannot be mended")
    write_file(path, data, mode=stat.S_IMODE(mode))


def named(names: Iterable[str], skip_others: bool = False) -> Iterator[Named]:
    """The files that names stand for: a folder is every file in it. skip_others: files that are named need not be
    scripts either."""
    for name in names:
        if name != "-" and "\0" not in name and os.path.isdir(name):
            for walked_file in walked(Path(name)):
                yield Named(walked_file.name, False, walked_file.outcome, walked_file.why)
        else:
            yield Named(name, not skip_others or name == "-")
