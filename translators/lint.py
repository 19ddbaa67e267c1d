"""What is doubtful in a batch script for its own resource manager.

The reader of the dialect says what the submit command refuses and which directives are dead. ``CHECKS`` says the rest:
what is accepted and yet means something else than it seems. A check is one row; it sees a ``Script`` and gives hits.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sssjob.errors import UsageError
from sssjob.findings import Finding, Findings, Policy, Severity
from sssjob.limits import LIMITS
from sssjob.translators import lint_lines, lint_options
from sssjob.translators.base import ReadContext
from sssjob.translators.lint_base import Hit, Run, Script
from sssjob.translators.lint_choice import ALL, MARK, Choice, Suppressions
from sssjob.translators.registry import SCRIPT_FORMATS, get
from sssjob.translators.scripts.base import Dialect, dialect_of
from sssjob.translators.scripts.reading import Unremarkable

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.recognise import Sample

__all__ = ["CHECKS", "Check", "Choice", "Hit", "Script", "lint", "noteworthy"]


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """A rule, what looks for it, and the dialects that it is about (empty: all). options: it is run only where one of
    these stands (empty: always)."""

    rule: str
    run: Run
    dialects: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()


def lint(name: str, data: bytes, path: str = "-", policy: Policy | None = None, site: Site | None = None,
         choice: Choice = ALL, remarks: Unremarkable | None = None, sample: Sample | None = None) -> Findings:
    """What the reader of a script format and the checks find, in the order of the lines.

    policy: warn and ignore make what the submit command refuses a warning; site: what it says is not doubtful any more;
    choice: the rules that are wanted; remarks: options of earlier scripts without a remark (None: those of all that
    this process has seen); sample: the data as they were recognised, if they were. Comments of the script that name
    rules are heeded (``lint_choice``). Raises RejectedError where the text is too large (``script_bytes``), UsageError
    for a format without directives.
    """
    translator, dialect = get(name), dialect_of(name)
    if dialect is None:
        raise UsageError(f"{name} is no format of batch scripts")
    context = ReadContext(path, Findings(path), policy=Policy.WARN, site=site,
                          remarks=None if site is not None or name not in SCRIPT_FORMATS
                          else _KNOWN if remarks is None else remarks, sample=sample)
    if len(data) > LIMITS.script_bytes:
        context.findings.add("SSS110", "script_bytes", f"more than {LIMITS.script_bytes} bytes")
        context.findings.raise_if_rejected()
    if b"\0" in data:
        context.findings.add("SSS505", "script", "a NUL byte: this is no script",
                             line=data.count(b"\n", 0, data.index(b"\0")) + 1)
        return context.findings
    document = translator.read(data, context)
    script = Script(dialect, data, document, context.findings, site, sample)
    findings = [_own(f, script, policy) for f in context.findings if noteworthy(f)]
    forgiving = policy in (Policy.WARN, Policy.IGNORE)
    findings += _hits(script, path, choice, forgiving=forgiving)
    kept = Suppressions(script.lines if MARK in script.text else ()).applied(
        [f for f in sorted(findings, key=lambda f: (f.line, f.column)) if choice.wants(f.rule)], path)
    whole = Findings(path)
    for finding in kept:
        if choice.wants(finding.rule):
            whole.add(finding.rule, finding.subject, finding.message, severity=finding.severity, line=finding.line,
                      column=finding.column, path=finding.path, hint=finding.hint, excerpt=finding.excerpt,
                      consequence=finding.consequence)
    return whole


def _hits(script: Script, path: str, choice: Choice, *, forgiving: bool) -> Findings:
    """What the checks find, of the rules that are wanted. forgiving: what is refused is a warning."""
    findings = Findings(path)
    names = script.names
    for check in _checks(CHECKS, script.dialect, choice):
        if check.options and check.options.isdisjoint(names):
            continue
        for hit in check.run(script):
            findings.add(check.rule, hit.subject, hit.message,
                         severity=_severity(check.rule, hit, forgiving=forgiving), line=hit.line,
                         column=hit.column, excerpt=script.line(hit.line))
    return findings


@lru_cache(maxsize=64)
def _checks(checks: tuple[Check, ...], dialect: Dialect, choice: Choice) -> tuple[Check, ...]:
    """Those of a dialect whose rules are wanted."""
    return tuple(check for check in checks if choice.wants(check.rule) and (
        not check.dialects or dialect.name in check.dialects or check.rule in dialect.checks))


def _severity(rule: str, hit: Hit, *, forgiving: bool) -> Severity | None:
    """That of an occurrence, else of its rule (None); what is refused is a warning where the policy forgives."""
    return "warning" if forgiving and rule == "SSS505" and hit.severity is None else hit.severity


def noteworthy(finding: Finding) -> bool:
    """Whether a finding of the reader is about this resource manager, not about what another one would make of it."""
    if finding.kind == "invented":
        return False
    if finding.kind in ("dropped", "site-dependent"):
        return finding.subject.startswith("#")          # lines of others, which only some releases obey
    return finding.kind != "approximated" or (finding.line > 0 and finding.subject != "script")


_KNOWN: Final = Unremarkable(noteworthy)     # options of scripts without a site profile


_KEPT: Final = "; it stays in the script as a comment"


def _own(finding: Finding, script: Script, policy: Policy | None) -> Finding:
    """A finding of the reader as lint tells it: what is refused is an error; an unknown option gets a close one; what
    is dead because it is text of another script is a note."""
    if finding.kind == "dead":
        if script.inner(finding.line):
            return replace(finding, severity="info", message="a directive in a here-document or a string: it is none "
                           f"of this script, and {script.dialect.title} does not read it")
        return replace(finding, message=finding.message.removesuffix(_KEPT))
    if finding.kind != "refused":
        return finding
    if policy not in (Policy.WARN, Policy.IGNORE):
        finding = replace(finding, severity="error")
    unknown = _NO_OPTION.match(finding.message)
    close = _close(unknown[1], script.dialect) if unknown is not None else None
    return replace(finding, hint=f"did you mean {close}?") if close else finding


_NO_OPTION: Final = re.compile(r"(-\S+): no such option")


def _close(word: str, dialect: Dialect) -> str | None:
    name = word.partition("=")[0]
    close_names = difflib.get_close_matches(name, [n for n in dialect.known if n.startswith(name[:2])], 1, 0.8)
    return close_names[0] if close_names else None


#: All checks; adding one is a row here and one of sssjob/rules.py.
CHECKS: Final[tuple[Check, ...]] = (
    Check("SSS505", lint_options.refused),
    Check("SSS520", lint_lines.commented),
    Check("SSS521", lint_lines.late),
    Check("SSS522", lint_options.two_fields, ("slurm", "pbspro", "torque"), frozenset(lint_options.TIMES)),
    Check("SSS523", lint_options.no_limit, ("slurm",), frozenset(("--time",))),
    Check("SSS524", lint_options.twice),
    Check("SSS525", lint_options.short),
    Check("SSS526", lint_lines.ignored),
    Check("SSS527", lint_lines.line_breaks, ("torque", "sge", "lsf", "flux", "cobalt")),
    Check("SSS528", lint_lines.shebang, ("pbspro", "torque", "sge", "lsf", "flux")),
    Check("SSS529", lint_options.resources, ("pbspro", "torque", "sge")),
    Check("SSS530", lint_lines.template),
    Check("SSS531", lint_options.unexpanded),
    Check("SSS532", lint_options.patterns, tuple(lint_options.TOKENS),
          frozenset(lint_options.FILES)),
    Check("SSS533", lint_lines.typographic),
    Check("SSS534", lint_lines.conflict),
    Check("SSS535", lint_lines.foreign_variables),
    Check("SSS536", lint_lines.unset),
    Check("SSS537", lint_options.unitless, ("lsf", "pbspro", "torque", "sge")),
    Check("SSS538", lint_options.streams, options=frozenset((*lint_options.OUTPUTS, "-j"))),
    Check("SSS538", lint_options.nowhere, ("sge",), frozenset(("-wd",))),
    Check("SSS539", lint_options.signs),
)
