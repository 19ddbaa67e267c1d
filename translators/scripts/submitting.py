"""Calls of the submit command in a script that drives other jobs, by the tables that directives go through.

``sbatch --dependency=afterok:$ID next.sh`` becomes ``qsub -W depend=afterok:$ID next.sh``: options are read as those
of a script are, and what the target writes for them goes onto its own submit command. A call stays as it is, and why is
told, where an option has no equal, where the script gets arguments that the target does not pass on, where something
reads what the command prints and the target prints no id alone, and where a word is no plain one. Source: sbatch(1),
qsub(1B), submit(1), bsub of the LSF 10.1 reference, flux-batch(1), qsub of Cobalt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sssjob.document.element import Property
from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.lrm.variables import FACTS
from sssjob.templates.quoting import QuotingError, word
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.bodies.languages import SHELLS
from sssjob.translators.registry import get
from sssjob.translators.scripts.options import OptionPair, options_of
from sssjob.translators.scripts.reading import Reading, understand
from sssjob.translators.scripts.rows import APPROXIMATED, DIALECT, DROPPED, REFUSED, Dialect, dialect_of

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.scripts.raw import Option

__all__ = ["inner_script", "submission"]

#: Dialect -> its submit command, and the option with which that prints an id alone; empty: it does so anyway, None:
#: never.
_COMMANDS: Final[dict[str, tuple[str, str | None]]] = {
    "slurm": ("sbatch", "--parsable"), "pbspro": ("qsub", ""), "torque": ("qsub", ""), "sge": ("qsub", "-terse"),
    "lsf": ("bsub", None), "flux": ("flux batch", ""), "cobalt": ("qsub", "")}
#: Words that a shell makes several of, or that a reader of options cannot look into.
_UNREADABLE: Final = re.compile(r"`|\$\(|\\|\$[@*]")
#: Patterns, of which a shell makes names of files where they stand outside of quotes.
_PATTERN: Final = re.compile(r"[*?\[]")
_QUOTED: Final = re.compile(r"\"[^\"]*\"|'([^']*)'")
#: All words of the call that the shell was started with, each as it is (bash(1), Special Parameters).
_PASSED: Final = ('"$@"', '"${@}"')
_DOUBLE: Final = re.compile(r'"[^"]*"')
_PLAIN: Final = re.compile(r"[\w./:=,@%+${}-]+", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"@([A-Z]+)[:@]")
_JOB: Final = re.compile(r"@JOBID:([^@]*\$[^@]*)@")


def submission(source: Dialect, target: Dialect, words: Sequence[str], site: Site | None, *, read: bool
               ) -> tuple[str, str] | str:
    """The call of the target that does what a call of the source does, and how it is not quite the same (empty: it is);
    else why there is none.

    words: those behind the command, as the shell has them; read: something reads what the command prints.
    """
    if source.name not in _COMMANDS or target.name not in _COMMANDS:
        return f"{target.title} has no command that does this"
    alone, ids = _COMMANDS[target.name][1], _COMMANDS[source.name][1]
    passed = [words[-1]] if words and words[-1] in _PASSED else []      # arguments, where a script stands before them
    words = words[:len(words) - len(passed)]
    if any(map(_is_made, words)):
        return _MADE
    if read and ((ids != "" and ids not in words) or alone is None):
        return "what it prints is read, which is no id alone"
    parsed = _parsed(source, [text for text in words if text != ids or not ids])
    if isinstance(parsed, str):
        return parsed
    options, rest, runs = parsed
    if passed and (not rest or runs or rest[0].startswith(("$", '"$'))):
        return _MADE
    rest = [*rest, *passed]
    if why := "" if runs else _why_not_passed(target, rest):
        return why
    answer = _options(source, target, options, site, _quoted(words))
    if isinstance(answer, str):
        answer = _with_numbers(source, target, options, site, _quoted(words)) or answer
    if isinstance(answer, str):
        return answer
    pairs, differs = answer
    if read and alone:
        pairs = [alone, *pairs]
    call = _running(source, target, pairs, rest) if runs else _submitting(target, pairs, rest)
    return call if isinstance(call, str) else (call[0], differs)


_MADE: Final = "a word of it is made by the shell"


def _is_made(text: str) -> bool:
    """Whether a word of a call is made by the shell, or its variables stand where this shell expands none."""
    return bool(_UNREADABLE.search(text) or _PATTERN.search(_QUOTED.sub("", text))
                or any("$" in (quoted[1] or "") for quoted in _QUOTED.finditer(text)))


def _why_not_passed(target: Dialect, rest: Sequence[str]) -> str:
    """Why the words behind the options cannot be a script with its arguments; empty where they can."""
    if len(rest) > 1 and rest[0].startswith("$"):
        return f"{rest[0]} may hold options"
    if len(rest) > 1 and not FACTS[target.name].passes:
        return f"{_COMMANDS[target.name][0]} passes no arguments on to the script"
    return ""


def _submitting(target: Dialect, pairs: Sequence[str], rest: Sequence[str]) -> tuple[str]:
    """The call that submits a script. rest: its name and arguments."""
    return (" ".join([_COMMANDS[target.name][0], *pairs, *(["<"] if target.name == "lsf" and rest else []), *rest]),)


def _running(source: Dialect, target: Dialect, pairs: Sequence[str], command: Sequence[str]) -> tuple[str] | str:
    """The call that has a job run a command line (``sbatch --wrap``, ``bsub COMMAND``, ``qsub -b y``), else why there
    is none. What has no such option reads it as a script."""
    if len(command) > 1 and not all(map(_PLAIN.fullmatch, command)):
        return "words of its command are quoted"
    line = command[0] if len(command) == 1 else f'"{" ".join(command)}"'
    name, home = _COMMANDS[target.name][0], source.starts_in == "home"
    if target.name == "slurm":
        return (" ".join([name, *pairs, f"--wrap={line}"]),)
    if target.name == "lsf":
        return (" ".join([name, *pairs, line]),)
    if target.name not in _SHELLED:
        return f"{name} runs a command here and no script"
    there = "" if home or target.name == "sge" else """'cd "$PBS_O_WORKDIR"' """
    pairs = [*pairs, *(["-cwd"] if target.name == "sge" and not home else [])]
    return (f"printf '%s\\n' {there}{line} | " + " ".join([name, "-S /bin/sh", *pairs]),)


#: Those whose command takes a shell for the script that it reads.
_SHELLED: Final = ("pbspro", "torque", "sge")


def _parsed(source: Dialect, words: Sequence[str]) -> tuple[list[Option], Sequence[str], bool] | str:
    """The options of a call, the words behind them, and whether these are a command line to run, not a script with its
    arguments. An option takes its value before a word is a script."""
    why = "its options cannot be read"
    apart = words.index("--") if source.name == "pbspro" and "--" in words else None      # qsub(1B): executable
    for count in range(len(words) + 1) if apart is None else (apart,):
        if apart is None and count < len(words) and words[count].startswith("-"):
            continue
        reading = Reading(source, ReadContext(findings=Findings()))
        try:
            options = source.arguments(reading, " ".join(words[:count]))
        except ValueError:
            continue
        refused = next((f.message for f in reading.findings if f.rule == REFUSED), "")
        if not refused:
            return _command_of(source, options, words[count if apart is None else count + 1:], apart is not None)
        why = refused
    return why


def _command_of(source: Dialect, options: list[Option], rest: Sequence[str], runs: bool
                ) -> tuple[list[Option], Sequence[str], bool] | str:
    """The same, with the command line that an option says or announces taken from the options."""
    wrap = [option for option in options if option.name == "--wrap" and source.name == "slurm"]
    binary = [option for option in options if option.name == "-b" and source.name == "sge"]
    if wrap:
        if rest:
            return "it names a script beside --wrap"
        text = wrap[-1].value or ""
        command = text if _PLAIN.fullmatch(text) else f'"{_ESCAPED.sub(_BACKSLASH, text)}"' if "$" in text or \
            "'" in text else str(word(text))
        rest = [command]
    runs = runs or bool(wrap) or (source.name == "lsf" and bool(rest)) or any(
        option.value in ("y", "yes") for option in binary[-1:])
    if runs and not rest:
        return "it names no command"
    return [option for option in options if option not in wrap and option not in binary], rest, runs


def _quoted(words: Sequence[str]) -> frozenset[str]:
    """The variables that stand in quotes, so that the shell makes one word of each."""
    return frozenset(name for word in words for text in _DOUBLE.findall(word) for name in _EXPANSION.findall(text))


#: Numbers that stand for variables while options are read, twice, so that what is worked out from them shows.
_NUMBERS: Final = (("211", "223", "227", "229", "233", "239"), ("1009", "1013", "1019", "1021", "1031", "1033"))
#: Options whose whole value, where a variable says it, may be a list of numbers.
_LISTS: Final = ("--array", "-J", "-t")


def _with_numbers(source: Dialect, target: Dialect, options: Sequence[Option], site: Site | None,
                  quoted: frozenset[str]) -> tuple[list[str], str] | None:
    """The same where a variable stands for a number, or a part of a name, that the target has as it is; None: there is
    no such."""
    doubtful = [option for option in options if "$" in (option.value or "")
                and isinstance(_options(source, target, [option], site, quoted), str)]
    variables = list(dict.fromkeys(hit for option in doubtful for hit in _EXPANSION.findall(option.value or "")))
    if not 0 < len(variables) <= len(_NUMBERS[0]) or any(
            option.name in _LISTS and option.value in variables for option in doubtful):
        return None
    answers = []
    for numbers in _NUMBERS:
        names = dict(zip(numbers, variables, strict=False))
        trial = [option._replace(value=_numbered(option.value or "", names)) if option in doubtful else option
                 for option in options]
        if any(_renamed(new.value or "", names) != (old.value or "") for new, old in zip(trial, options, strict=True)):
            return None         # digits, a letter of the name or another variable stand beside it
        answers.append(_options(source, target, trial, site, quoted, names))
    first, second = answers
    if isinstance(first, str) or first != second or not _units_stay(
            variables, (option.value or "" for option in doubtful), first[0]):
        return None
    return first


def _numbered(text: str, names: Mapping[str, str]) -> str:
    numbers = {variable: number for number, variable in names.items()}
    return _EXPANSION.sub(lambda hit: numbers[hit[0]], text)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """The text with variables in the places of the numbers that stand for them."""
    return re.sub(rf"(?<![\d.])(?:{'|'.join(names)})(?![\d.])", lambda hit: names[hit[0]], text) if names else text


def _units_stay(variables: Sequence[str], before: Iterable[str], after: Iterable[str]) -> bool:
    """Whether a unit stands behind a variable where one stood before, else the variable may hold one, and no sign
    before one, which may hold that."""
    def with_units(texts: Iterable[str]) -> set[str]:
        return {v for v in variables for text in texts if re.search(rf"{re.escape(v)}[A-Za-z]", text)}

    after = list(after)
    return with_units(after) == with_units(before) and not any(
        text.startswith(f"-{v}") for text in after for v in variables)


def _options(source: Dialect, target: Dialect, options: Sequence[Option], site: Site | None, quoted: frozenset[str],
             numbers: Mapping[str, str] = MappingProxyType({})) -> tuple[list[str], str] | str:
    """The options of the target as words of a shell, and how they differ; else why the call stays. numbers: those that
    stand for variables."""
    pairs, findings, lost = _pairs(source, target, options, site)
    usual = _pairs(source, target, [], site)[0]
    lost = next((f.message.replace("dropped, ", "", 1) for f in findings if f.rule in (DROPPED, REFUSED) or f.rejects),
                lost)
    if lost:
        return lost
    differs = "; ".join(dict.fromkeys(
        _renamed(f.message, numbers) for f in findings if f.severity == "warning" and f.subject not in (
            "Environment", "InitialWorkingDirectory") and "@JOBID:" not in f.message))
    words: list[str] = []
    expanded = 0
    for name, value in pairs:
        if (name, value) in usual:
            continue                # the script says it, or its site
        value = None if value is None else _JOB.sub(r"\1", _renamed(value, numbers))
        if value is not None and (stands := _PLACEHOLDER.search(value)) is not None:
            return "it names a job by the id that it has under another manager" if stands[1] == "JOBID" else \
                f"{stands[0]} stands for a name that only the site knows"
        expanded += (value or "").count("$")
        try:
            words += _spelled(target, name, value, quoted)
        except QuotingError as error:
            return str(error)
    if expanded != sum(_renamed(option.value or "", numbers).count("$") for option in options):
        return f"{target.title} cannot take all of its variables"
    return words, differs


def _pairs(source: Dialect, target: Dialect, options: Sequence[Option], site: Site | None
           ) -> tuple[Sequence[OptionPair], Findings, str]:
    """The options that the target writes for some of the source, what there is to tell of them, and what is said by
    none of them."""
    findings = Findings()
    reading = Reading(source, ReadContext(findings=findings, policy=Policy.WARN, site=site))
    try:
        job = understand(reading, [list(options)])
        _without_place(job, reading)
        document = Document(job, {}, findings=findings)
        if site is not None:
            site.rename(document)
        context = WriteContext(findings, policy=Policy.WARN, site=site)
        written = options_of(target, job, document, context, Policy.WARN)
    except RejectedError:
        return (), findings, ""
    unsaid = [p for p in job.leaves() if id(p) not in written.taken and p.get("name") != DIALECT]
    for p in unsaid:
        if _of_shell(p):
            findings.add(APPROXIMATED, p.tag, f"the first line of the script is to say that its shell is {p.text}")
    lost = next((f"{target.title} has no option for {_called(p)}" for p in unsaid if not _of_shell(p)), "")
    return written.parts[0], findings, lost


def _without_place(job: Job, reading: Reading) -> None:
    """Take out the name of a parallel environment, where nodes say what it says."""
    placed = {id(option) for p, option in reading.origins.values() if p.tag == "NodeCount"}
    for p, option in list(reading.origins.values()):
        if p.get("name") == reading.dialect.placing and id(option) in placed and any(p is item for item in job.items):
            job.items.remove(p)


def _of_shell(p: Property) -> bool:
    """Whether it says no more than which shell runs the script, as the first line of one does for most managers."""
    return p.tag == "Shell" and p.text.rpartition("/")[2] in SHELLS


def _called(p: Property) -> str:
    return f"{p.tag} {p.get('name')}" if p.get("name") else p.tag


def _spelled(target: Dialect, name: str, value: str | None, quoted: frozenset[str]) -> list[str]:
    """An option as words of a shell that expands the variables in it. quoted: those that are to make one word."""
    soft, name = (["-soft"], name.removeprefix("soft -")) if name.startswith("soft -") else ([], name)
    long = target.name in ("slurm", "flux", "cobalt") and len(name) > 1
    dashes = "--" if long else "-"
    if value is None:
        return [*soft, f"{dashes}{name}"]
    if target.name == "sge" and name in ("pe", "binding"):
        return [*soft, f"-{name}", *value.split()]
    bare = _PLAIN.fullmatch(value) and quoted.isdisjoint(_EXPANSION.findall(value))
    text = value if bare else f'"{_ESCAPED.sub(_BACKSLASH, value)}"' if "$" in value else str(
        word(value))
    return [*soft, f"{dashes}{name}={text}"] if long and target.name != "cobalt" else [*soft, f"{dashes}{name}", text]


_ESCAPED: Final = re.compile(r'["\\`]')
_BACKSLASH: Final = r"\\\g<0>"


#: Those whose command reads a script from its standard input.
_STANDARD_INPUT: Final = ("slurm", "pbspro", "torque", "sge", "lsf")
#: Findings of an inner script for which the whole stays as it is: what would be lost, and what cannot be carried.
_STOPPING: Final = (DROPPED, REFUSED, "SSS510", "SSS511", "SSS513", "SSS514", "SSS515", "SSS516")
#: What every conversion tells of the defaults of two managers.
_USUAL: Final = ("Environment", "InitialWorkingDirectory", "OutputFile", "directive")
_LIVE: Final = re.compile(r"#(?:SBATCH|PBS|BSUB|\$|\s)")
_EXPANSION: Final = re.compile(r"\$(?:\w+|\{\w+\})", re.ASCII)


def inner_script(name: str, target: Dialect, text: str, site: Site | None, *, quoted: bool) -> tuple[str, str] | str:
    """A script in a here-document for the target, and how it differs; else why it stays.

    name: of its dialect; quoted: the shell that writes it expands nothing in it. Else what that shell expands stays
    what it is, as a name or a number of a directive too, and what is left to the job is guarded from it.
    """
    source = dialect_of(name)
    if source is None or {name, target.name}.difference(_STANDARD_INPUT):
        return "one of the two commands reads no script from its input"
    if target.late:
        return f"{target.title} would obey its directives as those of the script around it"
    if quoted:
        return _converted(name, target, text, site)
    heard = _Heard.of(text)
    if isinstance(heard, str):
        return heard
    if any(re.match(rf"\$\{{?(?:{'|'.join(map(re.escape, source.variables))})", hit) for hit in heard.names):
        return f"the shell that writes it expands names of {source.title} in it"
    answer = heard.answer(_converted(name, target, heard.text({}), site), {})
    if isinstance(answer, str) and 0 < len(heard.variables) <= len(_NUMBERS[0]):
        answers = []
        for numbers in _NUMBERS:
            names = dict(zip(numbers, heard.variables, strict=False))
            answers.append(heard.answer(_converted(name, target, heard.text(names), site), names))
        first, second = answers
        if first == second and not isinstance(first, str) and _FITTED not in first[1] and _units_stay(
                heard.variables, heard.directives, filter(_LIVE.match, first[0].splitlines())):
            return first
    return answer


def _converted(name: str, target: Dialect, text: str, site: Site | None) -> tuple[str, str] | str:
    """A script for the target, and how it differs; else why it stays."""
    findings = Findings()
    try:
        document = get(name).read(text.encode("utf-8", "surrogateescape"),
                                  ReadContext(findings=findings, policy=Policy.WARN, site=site))
        if any(p.tag == "Node" and _WORD.search(p.text) for job, _ in document.jobs() for p in job.leaves()):
            return _BY_SHELL        # which may be a number
        written = get(target.name).write(document, WriteContext(findings, policy=Policy.WARN, site=site,
                                                                options={"body": "translate"}))
    except RejectedError as error:
        return error.findings[0].message
    lost = next((f.message for f in findings if f.rule in _STOPPING or f.rejects or _PLACEHOLDER.search(f.message)), "")
    if lost or not isinstance(written, str):
        return lost
    return written, "; ".join(dict.fromkeys(
        f.message for f in findings if f.severity == "warning" and f.subject not in _USUAL))


_FITTED: Final = "is not taken there"       # of a name, which a number may not be
_BY_SHELL: Final = "a directive in it is made by the shell that writes it"
#: What a shell takes in a here-document for something else than text: guarded signs, expansions, the begin of others.
_HEARD: Final = re.compile(
    r"\\(?P<guarded>[\\$`\n])|(?P<name>\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\}|\(\([^()`\\]*\)\)|\([^()`\\]*\)|[\d?$@#!*-]))"
    r"|(?P<other>`|\$[({])", re.ASCII)
_TO_GUARD: Final = re.compile(r"\\(?=[\\$`\n]|xSSSx)|`|\$(?!\{xSSSx)(?=[\w({?$@#!*-])", re.ASCII)
#: Words that no manager minds, in the places of what a shell expands; in commands variables of these names.
_WORD: Final = re.compile(r"\$\{xSSSx(\d+)x\}|xSSSx(\d+)x", re.ASCII)


class _Heard:
    """The text of a here-document as the shell hears it that writes it.

    pieces: text, and indices of what it expands; names: these, as they stand; directives: the lines of directives.
    """

    def __init__(self, pieces: Sequence[str | int], names: Sequence[str], directives: Sequence[str]) -> None:
        self.pieces, self.names, self.directives = pieces, names, directives
        self.variables = list(dict.fromkeys(hit for line in directives for hit in _EXPANSION.findall(line)))

    @classmethod
    def of(cls, text: str) -> _Heard | str:
        """What it hears; else why that cannot be told."""
        pieces: list[str | int] = []
        names: list[str] = []
        at = 0
        for hit in _HEARD.finditer(text):
            if hit["other"]:
                return "the shell that writes it expands more of it than names"
            pieces += [text[at:hit.start()], len(names) if hit["name"] else (hit["guarded"] or "").strip("\n")]
            names += [hit["name"]] if hit["name"] else []
            at = hit.end()
        pieces.append(text[at:])
        return cls(pieces, names, [line for line in text.splitlines() if _LIVE.match(line)])

    def text(self, numbers: Mapping[str, str]) -> str:
        """The script that the job gets, with stand-ins for what is expanded; numbers: those that stand for variables in
        directives, where words do not do."""
        values = {variable: number for number, variable in numbers.items()}
        lines = "".join(piece if isinstance(piece, str) else f"${{xSSSx{piece}x}}" for piece in self.pieces).split("\n")
        return "\n".join(_WORD.sub(lambda hit: values.get(self.names[int(hit[1])], f"xSSSx{hit[1]}x"), line)
                         if _LIVE.match(line) else line for line in lines)

    def answer(self, converted: tuple[str, str] | str, numbers: Mapping[str, str]) -> tuple[str, str] | str:
        """What was converted, guarded from the shell that writes it, with what that expands in its places."""
        if isinstance(converted, str):
            return self._restored(converted)
        text = "\n".join(_renamed(line, numbers) if _LIVE.match(line) else line for line in
                         _TO_GUARD.sub(lambda hit: f"\\{hit[0]}", converted[0]).split("\n"))
        return self._restored(text), _renamed(self._restored(converted[1]), numbers)

    def _restored(self, text: str) -> str:
        return _WORD.sub(lambda hit: self.names[int(hit[1] or hit[2])], text)
