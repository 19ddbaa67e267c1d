"""What is doubtful in a batch script for its own resource manager.

The reader of the dialect says what the submit command refuses and which directives are dead. ``CHECKS`` says the rest:
what is accepted and yet means something else than it seems. A check is one row; it sees a ``Script`` and gives hits.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from sssjob.errors import UsageError
from sssjob.findings import Finding, Findings, Policy, Severity
from sssjob.limits import LIMITS
from sssjob.model import Document
from sssjob.translators.base import ReadContext
from sssjob.translators.bodies.facts import FACTS, Facts
from sssjob.translators.registry import get
from sssjob.translators.scripts.base import Dialect, Reading, dialect_of
from sssjob.translators.scripts.body import asked, facts_of
from sssjob.translators.scripts.raw import Line, Option, lines_of

if TYPE_CHECKING:
    from sssjob.translators.bodies.shell import Shell

__all__ = ["CHECKS", "Check", "Hit", "Script", "lint"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One occurrence. line 0: of the script as a whole; severity None: that of the rule."""

    line: int
    column: int
    subject: str
    message: str
    severity: Severity | None = None


@dataclass
class Script:
    """A script, its dialect, and the document that its reader made of it."""

    dialect: Dialect
    data: bytes
    document: Document
    lines: list[Line]
    findings: Findings

    @cached_property
    def templates(self) -> frozenset[tuple[int, int]]:
        """Places of values that the reader took for placeholders."""
        return frozenset((f.line, f.column) for f in self.findings if f.kind == "template")

    @cached_property
    def options(self) -> list[Option]:
        """The live options in order, all parts together."""
        return [o for part in self.parts for o in part]

    @cached_property
    def parts(self) -> list[list[Option]]:
        """The options of each part of a heterogeneous job."""
        return self.dialect.scan(Reading(self.dialect, ReadContext(policy=Policy.WARN)), self.lines).components

    @cached_property
    def shell(self) -> Shell:
        """The script by the grammar of the shell, parsed once for all checks."""
        from sssjob.translators.bodies.shell import Shell

        return Shell(self.data, LIMITS)

    @cached_property
    def live(self) -> frozenset[int]:
        """Numbers of the lines that the submit command obeys."""
        return frozenset(line.number for line in self.dialect.live(self.lines))

    @cached_property
    def first_command(self) -> int:
        """Number of the first line that is neither blank nor a comment; past the end where there is none."""
        commands = (n.number for n in self.lines if n.text.strip() and not n.text.lstrip().startswith("#"))
        return next(commands, len(self.lines) + 1)

    @cached_property
    def known(self) -> Mapping[str, str]:
        """What the job asks for, by meaning."""
        return dict(asked(next(job for job, _ in self.document.jobs())))


Run = Callable[[Script], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Check:
    """A rule, what looks for it, and the dialects that it is about (empty: all)."""

    rule: str
    run: Run
    dialects: tuple[str, ...] = ()


def lint(name: str, data: bytes, path: str = "-", policy: Policy | None = None) -> Findings:
    """What the reader of a script format and the checks find, in the order of the lines.

    policy: warn and ignore make what the submit command refuses a warning. Raises RejectedError where the text is too
    large (``script_bytes``), UsageError for a format without directives.
    """
    translator, dialect = get(name), dialect_of(name)
    if dialect is None:
        raise UsageError(f"{name} is no format of batch scripts")
    context = ReadContext(path, Findings(path), policy=Policy.WARN)
    if len(data) > LIMITS.script_bytes:
        context.findings.add("SSS110", "script_bytes", f"more than {LIMITS.script_bytes} bytes")
        context.findings.raise_if_rejected()
    if b"\0" in data:
        context.findings.add("SSS505", "script", "a NUL byte: this is no script",
                             line=data.count(b"\n", 0, data.index(b"\0")) + 1)
        return context.findings
    document = translator.read(data, context)
    text = data.decode("utf-8", "surrogateescape")
    script = Script(dialect, data, document, list(lines_of(text)), context.findings)
    found = [_own(f, script, policy) for f in context.findings]
    texts = {line.number: line.text for line in script.lines}
    made = Findings(path)
    for check in CHECKS:
        if not check.dialects or name in check.dialects:
            for hit in check.run(script):
                made.add(check.rule, hit.subject, hit.message, severity=hit.severity, line=hit.line, column=hit.column,
                         excerpt=texts.get(hit.line, ""))
    whole = Findings(path)
    for finding in sorted([*found, *made], key=lambda f: (f.line, f.column)):
        whole.add(finding.rule, finding.subject, finding.message, severity=finding.severity, line=finding.line,
                  column=finding.column, path=finding.path, hint=finding.hint, excerpt=finding.excerpt)
    return whole


def _own(finding: Finding, script: Script, policy: Policy | None) -> Finding:
    """A finding of the reader as lint tells it: what is refused is an error; an unknown option gets a close one."""
    if finding.kind != "refused":
        return finding
    if policy not in (Policy.WARN, Policy.IGNORE):
        finding = replace(finding, severity="error")
    unknown = _NO_OPTION.match(finding.message)
    close = _close(unknown[1], script.dialect) if unknown is not None else None
    return replace(finding, hint=f"did you mean {close}?") if close else finding


_NO_OPTION: Final = re.compile(r"(-\S+): no such option")


def _close(said: str, dialect: Dialect) -> str | None:
    name = said.partition("=")[0]
    found = difflib.get_close_matches(name, [n for n in dialect.known if n.startswith(name[:2])], 1, 0.8)
    return found[0] if found else None


# -- lines
def _commented(script: Script) -> Iterator[Hit]:
    prefix = script.dialect.prefix.removeprefix("#")
    looks = re.compile(rf"\s*#[#\s]*#?\s*{re.escape(prefix)}(?=[\s-])")
    for line in script.lines[:script.first_command]:
        if line.number not in script.live and looks.match(line.text) and not line.text.lstrip().startswith(
                script.dialect.prefix):
            yield Hit(line.number, 1, "directive", "a directive that is commented out; nothing reads it", "info")


def _late(script: Script) -> Iterator[Hit]:
    for number in sorted(script.live):
        if number > script.first_command:
            yield Hit(number, 1, "directive", f"{script.dialect.title} obeys this line although it stands below the "
                      f"first command (line {script.first_command}), in a here-document too")


def _ignored(script: Script) -> Iterator[Hit]:
    """The first line for each other manager."""
    for prefix, title in _PREFIXES.items():
        if prefix == script.dialect.prefix:
            continue
        hit = next((n for n in script.lines[:script.first_command] if n.text.startswith(prefix) and n.number not in
                    script.live and n.text[len(prefix):len(prefix) + 1] in (" ", "\t", "-")), None)
        if hit is not None and not any(o.line == hit.number for o in script.options):
            yield Hit(hit.number, 1, prefix, f"lines of {title} stand here, which {script.dialect.title} ignores",
                      "info")


_PREFIXES: Final = {"#SBATCH": "Slurm", "#PBS": "PBS", "#BSUB": "LSF", "#$": "Grid Engine", "#COBALT": "Cobalt"}


def _line_breaks(script: Script) -> Iterator[Hit]:
    hit = next((line for line in script.lines if line.end == "\r\n"), None)
    if hit is not None:
        yield Hit(hit.number, len(hit.text) + 1, "line break",
                  "DOS line breaks: the shell takes the carriage return for a part of the last word of each line")


def _shebang(script: Script) -> Iterator[Hit]:
    first = script.lines[0].text if script.lines else ""
    if not first.startswith("#!"):
        yield Hit(1, 1, "#!", "no #! at the very beginning: " + _SHELL.get(script.dialect.name, _SHELL[""]))


_LOGIN: Final = "the user's login shell runs it, unless -S says another"
_SHELL: Final = {"pbspro": _LOGIN, "torque": _LOGIN, "": "the site chooses the shell",
                 "sge": "the shell of the queue runs it, unless -S says another"}


def _typographic(script: Script) -> Iterator[Hit]:
    for line in script.lines:
        hit = _CURLY.search(_COMMENT.sub("", line.text, 1)) if line.number in script.live else None
        if hit is not None:
            yield Hit(line.number, hit.start() + 1, "directive", f"{hit[0]} is a typographic sign, as word processors "
                      "put it; the submit command knows only - and straight quotes")


_COMMENT: Final = re.compile(r"(?<=\S)\s#.*", re.DOTALL)
_CURLY: Final = re.compile("[\u2010-\u2015\u2212\u2018-\u201f\u00a0]")


def _conflict(script: Script) -> Iterator[Hit]:
    for line in script.lines:
        if _MARKER.match(line.text):
            yield Hit(line.number, 1, "marker", "a conflict that was never merged stands here")
            return


_MARKER: Final = re.compile(r"(?:<{7}|>{7}) \S")


def _template(script: Script) -> Iterator[Hit]:
    """The first placeholder of each generator."""
    for what, pattern in _GENERATORS.items():
        for line in script.lines:
            hit = pattern.search(line.text[:4096])
            if hit is not None:
                yield Hit(line.number, hit.start() + 1, hit[0][:40], f"a placeholder of {what}: the script is a "
                          "template, and values with placeholders are not checked", "info")
                break


#: What is not also the shell's own: ``${x}`` and ``%x`` are.
_GENERATORS: Final = {
    "Jinja or Mustache": re.compile(r"\{\{.{0,200}?\}\}|\{%.{0,200}?%\}"),
    "Python's % operator": re.compile(r"%\(\w{1,99}\)[sd]", re.ASCII),
    "string.Template or make": re.compile(r"\$\$\{\w{1,99}\}", re.ASCII),
    "autoconf or CMake": re.compile(r"(?<![\w@.])@[A-Z_]\w{0,99}@(?![\w.])", re.ASCII),
}


# -- options
def _two_fields(script: Script) -> Iterator[Hit]:
    for option in script.options:
        found = _MINUTES.fullmatch(option.value or "") if option.name in _TIMES else None
        if found is not None:
            yield Hit(option.line, option.column, option.name, f"{option.shown} is {int(found[1])} minutes and "
                      f"{int(found[2])} seconds, not {int(found[1])} hours and {int(found[2])} minutes")


_MINUTES: Final = re.compile(r"(\d{1,9}):(\d{1,2})", re.ASCII)
_TIMES: Final = ("--time", "--time-min", "-l walltime", "-l cput", "-l pcput")


def _no_limit(script: Script) -> Iterator[Hit]:
    for option in script.options:
        if option.name == "--time" and re.fullmatch(r"[0:]+", option.value or "") is not None:
            yield Hit(option.line, option.column, option.name, f"{option.shown} asks for no limit at all")


def _twice(script: Script) -> Iterator[Hit]:
    """Options whose last value alone counts."""
    for part in script.parts:
        first: dict[str, Option] = {}
        for option in part:
            before = first.setdefault(option.name, option)
            if before.value != option.value and option.line and option.name not in _ADDED:
                yield Hit(option.line, option.column, option.name, f"{option.shown}: line {before.line} says "
                          f"{before.shown}; the last one counts")


#: Options that add to what was said before: resources, variables, dependencies.
_ADDED: Final = ("-R", "-v", "-l", "-W", "-w", "-pe", "-hold_jid", "-q", "-o", "--attrs", "--setattr", "--setopt",
                 "--env")


def _short(script: Script) -> Iterator[Hit]:
    """Long options that are cut: one that is meant as another is a warning."""
    for option in script.options:
        said = re.match(r"--[\w-]+", option.text[option.column - 1:]) if option.column else None
        if said is None or said[0] in script.dialect.known or said[0] == option.name:
            continue
        meant = {"--tasks": "--ntasks", "--task": "--ntasks"}.get(said[0])
        more = f", not as {meant}" if meant else ""
        yield Hit(option.line, option.column, said[0], f"{said[0]} is no option; it is read as {option.name}{more}",
                  None if meant else "info")


def _resources(script: Script) -> Iterator[Hit]:
    """``-l`` resources that only a site could know, where a known one is spelled much the same."""
    known = [n.removeprefix("-l ") for n in script.dialect.known if n.startswith("-l ")]
    for option in script.options:
        name = option.name.removeprefix("-l ")
        if name == option.name or name in known or name in _STANDARD:
            continue
        close = difflib.get_close_matches(name, known, 1, 0.75)
        if close:
            yield Hit(option.line, option.column, option.name, f"{name} is no resource that {script.dialect.title} "
                      f"comes with; did you mean {close[0]}?")


#: pbs_resources(7B) of both, without those that are in the tables of the dialects.
_STANDARD: Final = ("arch", "cput", "pcput", "file", "host", "mem", "mpiprocs", "ncpus", "nice", "nodect", "ompthreads",
                    "other", "pmem", "procs", "pvmem", "software", "vmem", "vnode", "walltime", "naccesspolicy",
                    "feature",
                    "h_rt", "s_rt", "h_vmem", "s_vmem", "h_cpu", "s_cpu", "h_data", "h_fsize", "h_stack", "mem_free",
                    "virtual_free", "hostname", "qname", "num_proc", "swap_free", "tmpfs", "gpu", "ngpus", "gpus")


def _unexpanded(script: Script) -> Iterator[Hit]:
    allowed = _PSEUDO.get(script.dialect.name, ())
    for option in script.options:
        for hit in _VARIABLE.finditer(option.value or ""):
            name = hit[1] or hit[2]
            if option.line and name not in allowed and option.name not in _EVALUATED \
                    and (option.line, option.column) not in script.templates:
                yield Hit(option.line, option.column, option.name, f"{option.shown}: no shell reads a directive, so "
                          f"{hit[0]} is taken as it stands")
                break


_VARIABLE: Final = re.compile(r"(?<![\\$@%{])\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_EVALUATED: Final = ("--wrap",)
#: qsub(1) of Grid Engine, -o; qsub(1B) of Torque and PBS Pro, -o; qsub(1) of Cobalt.
_PSEUDO: Final[Mapping[str, tuple[str, ...]]] = {
    "sge": ("HOME", "USER", "JOB_ID", "JOB_NAME", "HOSTNAME", "SGE_TASK_ID", "TASK_ID"),
    "torque": ("PBS_JOBID", "PBS_JOBNAME", "PBS_ARRAYID", "HOME", "PBS_O_WORKDIR", "PBS_O_HOME", "USER"),
    "pbspro": ("PBS_JOBID", "PBS_JOBNAME", "PBS_ARRAY_INDEX"), "cobalt": ("jobid",), "lsf": ("HOME", "USER"),
    "htcondor": (), "slurm": (), "flux": (),
}


def _patterns(script: Script) -> Iterator[Hit]:
    known = _TOKENS[script.dialect.name]
    for option in script.options:
        if option.name not in _FILES:
            continue
        for hit in re.finditer(r"%(?:(%)|\d*(\w?))", option.value or "", re.ASCII):
            if hit[1] is None and hit[2] not in known:
                yield Hit(option.line, option.column, option.name, f"{option.shown}: {hit[0]} is no pattern of "
                          f"{script.dialect.title}; it is taken as it stands")
                break


_FILES: Final = ("--output", "--error", "--input", "-o", "-e", "-i", "-oo", "-eo")
#: sbatch(1), section FILENAME PATTERN; bsub(1), -o.
_TOKENS: Final[Mapping[str, str]] = {"slurm": "AaJjNnstuxb", "lsf": "JI"}


# -- the body
def _foreign_variables(script: Script) -> Iterator[Hit]:
    own = facts_of(script.dialect)
    if own is None:
        return
    for facts in {f.prefixes: f for f in FACTS.values() if f.prefixes != own.prefixes}.values():
        seen: set[str] = set()
        for name, line, column, _ in _uses(script, facts):
            if facts.own(name) and name not in seen and not name.startswith(own.prefixes):
                seen.add(name)
                yield Hit(line, column, name, f"{name} is a variable of {facts.title}; {script.dialect.title} does not "
                          "set it", "info")


def _unset(script: Script) -> Iterator[Hit]:
    facts = facts_of(script.dialect)
    if facts is None or not facts.asked:
        return
    seen: set[str] = set()
    for name, line, column, kind in _uses(script, facts):
        meaning = facts.variables.get(name, "")
        if kind in ("simple", "braced") and meaning in facts.asked and meaning not in script.known and name not in seen:
            seen.add(name)
            yield Hit(line, column, name, f"{name} is set only where the job asks for it, and no directive does")


def _uses(script: Script, facts: Facts) -> Iterator[tuple[str, int, int, str]]:
    """(name, line, column, kind) of every variable of a manager that a script expands; none without the grammar."""
    text = script.data.decode("utf-8", "surrogateescape")
    if not facts.in_text(text):
        return
    from sssjob.translators.bodies.carry import pattern
    from sssjob.translators.bodies.shell import SHELLS, interpreter

    shell = script.shell
    if interpreter(script.lines[0].text if script.lines else "") not in SHELLS or shell.root is None:
        return
    for count, use in enumerate(shell.uses(pattern(facts))):
        if count > LIMITS.shell_uses:
            return
        if use.kind in ("simple", "braced", "operated", "arithmetic"):
            begin = script.data.rfind(b"\n", 0, use.start) + 1
            before = script.data[begin:use.outer[0]].decode("utf-8", "surrogateescape")
            yield use.name, script.data.count(b"\n", 0, use.start) + 1, len(before) + 1, use.kind


#: All checks; adding one is a row here and one of sssjob/rules.py.
CHECKS: Final[tuple[Check, ...]] = (
    Check("SSS520", _commented),
    Check("SSS521", _late),
    Check("SSS522", _two_fields, ("slurm", "pbspro", "torque")),
    Check("SSS523", _no_limit, ("slurm",)),
    Check("SSS524", _twice),
    Check("SSS525", _short),
    Check("SSS526", _ignored),
    Check("SSS527", _line_breaks, ("torque", "sge", "lsf", "flux", "cobalt")),
    Check("SSS528", _shebang, ("pbspro", "torque", "sge", "lsf", "flux")),
    Check("SSS529", _resources, ("pbspro", "torque", "sge")),
    Check("SSS530", _template),
    Check("SSS531", _unexpanded),
    Check("SSS532", _patterns, tuple(_TOKENS)),
    Check("SSS533", _typographic),
    Check("SSS534", _conflict),
    Check("SSS535", _foreign_variables),
    Check("SSS536", _unset),
)
