"""Submit descriptions of HTCondor.

A description has no script in it: it names an executable. ``queue N`` is an array, a queue over items is a JobGroup
(decisions 62). Sources and the meaning of the commands: ``_condor_rows``.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Final

from sssjob.document.element import Container, Property, new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document, Job, JobGroup
from sssjob.findings import Policy
from sssjob.lrm.htcondor import JUDGE
from sssjob.request.asked import policy_of
from sssjob.templates.quoting import Directive, QuotingError, condor
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample
from sssjob.translators.scripts._condor_lines import Command, MacroError, Macros, Submission, submissions
from sssjob.translators.scripts._condor_rows import ALIASES, ROWS, TOKENS, index, kept_as_it_is, name_of
from sssjob.translators.scripts.accepting import accepted, said_by, subject_of
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    DROPPED,
    INVENTED,
    Dialect,
    Reading,
    Scan,
    ScriptDocument,
    asking_for,
    express,
    harmless,
    leftovers,
    script_of,
    translator,
    understand,
)
from sssjob.translators.scripts.raw import Line, Option, lines_of, shell_words
from sssjob.translators.scripts.writing import with_scripts

__all__ = ["DIALECT", "TRANSLATOR", "over_items"]

# --- items of a queue statement -------------------------------------------------------------------------------------
# One queue statement of HTCondor for jobs that differ in words of their commands: ``queue item from (...)``.
#
# Source: condor_submit(1), queue: an item has a line; several variables are parted by commas; a line that begins with #
# is a comment, and one bracket ends the list.

_WORD: Final = re.compile(r"[^\s,;='\"]+|.", re.DOTALL)
#: What an item may be: the reader of the list takes it as it is, and so does the command in which it stands.
_ITEM: Final = re.compile(r"[\w./+:@%~^-]+", re.ASCII)
#: A word that is the same for all jobs, or the values of one variable, a value for each job.
_Piece = str | tuple[str, ...]


def over_items(blocks: Sequence[Sequence[str]]) -> str | None:
    """The description that queues all jobs by one statement; None where one statement cannot.

    blocks: of each job its commands, ``name = value`` a line, and its queue statement.
    """
    first = blocks[0]
    same = {(len(lines), lines[-1], *(line for line in lines if line.startswith("executable = "))) for lines in blocks}
    if len(same) > 1 or not re.fullmatch(r"queue( \d+)?", first[-1]):
        return None
    rows: list[list[_Piece]] = []
    for lines in zip(*(block[:-1] for block in blocks), strict=True):
        pieces = _pieces(lines)
        if pieces is None:
            return None
        rows.append(pieces)
    varying = sorted({piece for row in rows for piece in row if isinstance(piece, tuple)}, key=_length)
    macros: dict[tuple[str, ...], str] = {}
    if first[-1] == "queue":
        macros[tuple(map(str, range(len(blocks))))] = "$(Process)"
    counted = len(macros)
    spelled: dict[_Piece, str] = {}
    for values in varying:
        text = next((f"{around[0]}{macro}{around[1]}" for items, macro in macros.items()
                     if (around := _around(items, values)) is not None), None)
        if text is None:
            if not all(map(_ITEM.fullmatch, values)):
                return None
            text = macros[values] = f"$(item{len(macros) - counted + 1})"
        spelled[values] = text
    variables = list(macros)[counted:]
    if not variables:
        return None
    commands = ["".join(piece if isinstance(piece, str) else spelled[piece] for piece in row) for row in rows]
    names = ",".join(macros[values][2:-1] for values in variables)
    items = [f"    {', '.join(values)}" for values in zip(*variables, strict=True)]
    return "\n".join([*commands, f"{first[-1]} {names} from (", *items, ")", ""])


def _length(values: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return sum(map(len, values)), values


def _pieces(lines: tuple[str, ...]) -> list[_Piece] | None:
    """The words of one command of all jobs; None where the commands are not alike."""
    if lines.count(lines[0]) == len(lines):
        return [lines[0]]
    words = [_WORD.findall(line) for line in lines]
    if len({len(each) for each in words}) > 1 or len({tuple(each[:3]) for each in words}) > 1:
        return None
    return [column[0] if column.count(column[0]) == len(column) else column for column in zip(*words, strict=True)]


def _around(items: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, str] | None:
    """What stands before and behind the item in each value; None where some value has it otherwise."""
    at = values[0].find(items[0])
    if at < 0:
        return None
    begin, end = values[0][:at], values[0][at + len(items[0]):]
    alike = all(value == begin + item + end for item, value in zip(items, values, strict=True))
    return (begin, end) if alike else None


def _nowhere(reading: Reading, lines: list[Line]) -> Scan:
    """A description is read whole, by ``submissions``."""
    return Scan([[]], list(lines))


_NAMED: Final = re.compile(r"[A-Za-z]\w*", re.ASCII)
#: A value that stands as it is.
_PRINTED: Final = re.compile(r"[ -~]*[ -\[\]-~]", re.ASCII)


def _directive(name: str, value: str | None) -> str:
    if value is not None and _NAMED.fullmatch(name) and _PRINTED.fullmatch(value):
        return f"{name} = {value}"
    return condor(Directive(name.removeprefix("-"), value, name))


#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="rank nice_user accounting_group_user job_max_vacate_time job_lease_duration max_idle "
          "deferral_window image_size want_graceful_removal",
    looks="should_transfer_files when_to_transfer_output preserve_relative_paths stream_input stream_output "
          "stream_error log log_xml coresize core_size email_attributes description on_exit_hold_reason "
          "periodic_hold_reason leave_in_queue")

DIALECT: Final = Dialect(
    "htcondor", "HTCondor", "", ROWS, _nowhere, _directive, lambda reading, text: [], TOKENS, ("_CONDOR_",),
    lambda lines: [], (".sub", ".submit", ".condor", ".jdf"), starts_in="scratch", exports=False, merges=False,
    unfiled="in no file", pads=True, consequences=_HARMLESS, spellings=("limit",),
    open=("",), index=index, macros={
        "process": "array_index", "procid": "array_index", "cluster": "job_id", "clusterid": "job_id"}, launcher="")


# -- the document
def read(data: bytes, context: ReadContext) -> Document:
    """A Job for ``queue`` and ``queue N``, a JobGroup for items and for several queue statements.

    Raises RejectedError when condor_submit would refuse the description.
    """
    reading = Reading(DIALECT, context)
    text = _text(reading, data)
    more = _given(context.options.get("set") or "")
    jobs: list[Job] = []
    origins: dict[int, tuple[Property, Option]] = {}
    all_submissions = submissions(reading, list(lines_of(text)), more)
    context.findings.raise_if_rejected()
    alone = len(all_submissions) == 1 and all_submissions[0].items is None
    for submission in all_submissions:
        for number, item in enumerate(submission.items or [()]):
            each = Reading(DIALECT, context)
            jobs.append(_job(each, submission, number, item, alone))
            origins |= each.origins
    context.findings.raise_if_rejected()
    if alone or not jobs:
        return ScriptDocument(jobs[0] if jobs else Job(), {}, context.path, context.profile, context.findings, origins)
    name = context.path.rpartition("/")[2] or "-"
    context.findings.add(INVENTED, "Id", f"Id: the group is named after its source, {name}", path="/JobGroup/Id")
    return ScriptDocument(JobGroup([new_property("Id", name), *jobs]), {}, context.path, context.profile,
                          context.findings, origins)


def _text(reading: Reading, data: bytes) -> str:
    limits, findings = reading.context.limits, reading.findings
    if len(data) > limits.script_bytes:
        findings.add("SSS110", "script_bytes", f"more than {limits.script_bytes} bytes (limit script_bytes)")
        findings.raise_if_rejected()
    text = data.decode("utf-8", "replace")
    bad = re.search("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ufffe\uffff]", text)
    if bad is not None:
        findings.add("SSS505", "description", "is no text in UTF-8", line=text.count("\n", 0, bad.start()) + 1)
        findings.raise_if_rejected()
    return text


def _given(text: str) -> dict[str, str]:
    """``NAME=VALUE`` of the command line, parted by blanks."""
    try:
        words = shell_words(text)
    except ValueError:
        words = text.split()
    pairs = [word.partition("=") for word in words]
    return {name.strip().lower(): value.strip() for name, sign, value in pairs if sign}


def _job(reading: Reading, submission: Submission, number: int, item: tuple[str, ...], alone: bool) -> Job:
    """The job, or array, of one item."""
    values = dict(zip(submission.names, item, strict=False)) | ({"itemindex": str(number), "row": str(number)}
                                                                if item else {})
    first = submission.first + number * submission.count
    if not alone and submission.count == 1 and not submission.unread:
        values |= {"process": str(first), "procid": str(first), "step": "0"}
    macros = Macros(submission.commands)
    if submission.unread:
        macros.late = macros.late | set(submission.names)
    options: dict[str, Option] = {}
    for command in submission.commands.values():
        option = _option(reading, command, macros, values)
        if option is not None and (command.name == option.name or option.name not in submission.commands):
            options[option.name] = option
    for refusal in JUDGE.refusals((name, option.value) for name, option in options.items()):
        at = options.get(refusal.option)
        reading.refuse(f"{refusal.option}: {refusal.why}", submission.line.number if at is None else at.line, 1,
                       refusal.option, submission.line.text if at is None else at.text)
    _macros_told(reading, submission, options, macros, values)
    if submission.unread:
        options["queue from"] = Option("queue from", submission.unread, submission.line.number, 1, submission.line.text)
    elif submission.count > 1 or (alone and _shift(submission) is not None):
        options["queue"] = Option("queue", _range(submission, first, alone, options), submission.line.number, 1,
                                  submission.line.text)
    job = understand(reading, [list(options.values())])
    job.items.sort(key=lambda i: isinstance(i, Container))
    return job


_SHIFT: Final = re.compile(r"\$\(Process\)(?: \* (\d{1,9}))?(?: \+ (\d{1,9}))?", re.IGNORECASE | re.ASCII)


def _shift(submission: Submission) -> re.Match[str] | None:
    """How ``array_index`` is made of the number of a job, where it is written as here."""
    shift = submission.commands.get("array_index")
    return _SHIFT.fullmatch(shift.value) if shift is not None else None


def _range(submission: Submission, first: int, alone: bool, options: dict[str, Option]) -> str:
    """The indices of an array; ``array_index`` shifts them, ``max_materialize`` says how many at once."""
    shift = _shift(submission)
    most = options.pop("max_materialize", None)
    options.pop("array_index", None)
    step = int(shift[1] or 1) if shift is not None else 1
    begin = (int(shift[2] or 0) if shift is not None else 0) + (0 if alone else first * step)
    text = f"{begin}-{begin + (submission.count - 1) * step}" + (f":{step}" if step != 1 else "")
    if most is not None and re.fullmatch(r"\d{1,9}", most.value or "", re.ASCII):
        return f"{text}%{most.value}"
    if most is not None:
        options["max_materialize"] = most
    return text


_KNOWN: Final = frozenset(DIALECT.known) - {"queue from", "restart", "request_resource", "array_index"}


def _option(reading: Reading, command: Command, macros: Macros, values: dict[str, str]) -> Option | None:
    """A command with its macros replaced; None for what is only a macro of other commands."""
    name = ALIASES.get(command.name, command.name)
    if name not in _KNOWN and not name.startswith("MY.") and not re.fullmatch(r"request_[a-z]\w*", name):
        return Option(name, command.value, command.line.number, 1, command.line.text)
    try:
        value = macros.expand(command.value, values)
    except MacroError as error:
        reading.refuse(f"{command.name}: {error}", command.line.number, 1, command.name, command.line.text)
        return None
    return Option(name, value.strip(), command.line.number, 1, command.line.text)


def _macros_told(reading: Reading, submission: Submission, options: dict[str, Option], macros: Macros,
                 values: dict[str, str]) -> None:
    """Takes out what only other commands use, unless a function of HTCondor that stays in them works it out
    (``$INT(NAME)``); what nothing uses is kept and told."""
    needed = _function_arguments(reading, options, macros, values)
    for name in list(options):
        if name in _KNOWN or name.startswith("MY."):
            if not options[name].value and not name.startswith("MY."):
                del options[name]
        elif (match := re.fullmatch(r"request_([a-z]\w*)", name)) is not None:
            option = options.pop(name)
            if re.fullmatch(r"\d{1,9}", option.value or "", re.ASCII):
                more = {"metric": "PerNode"} if "machine_count" in options else {}  # each machine has so many
                reading.put("Requested/Resource", int(option.value or ""), option, name=match[1], **more)
            else:
                kept_as_it_is(reading, option)
        elif name == "array_index" or (name in submission.used and name not in needed):
            del options[name]
        elif name in needed:
            continue
        else:
            option = options[name]
            reading.tell(APPROXIMATED, option, "no command that is known here, and nothing uses it as a macro; kept")
    for name in sorted(macros.undefined):
        reading.findings.add(APPROXIMATED, name, f"$({name}) is not defined; nothing stands for it",
                             line=submission.line.number, severity="info")


_FUNCTION: Final = re.compile(r"\$[A-Za-z_]+\(([^()]*)\)", re.ASCII)


def _function_arguments(reading: Reading, options: dict[str, Option], macros: Macros,
                        values: dict[str, str]) -> set[str]:
    """Names of the macros that functions in values of commands still work out, and of those that these need; such
    macros get their values, with those in them replaced."""
    names: set[str] = set()
    texts = [o.value or "" for name, o in options.items() if name in _KNOWN or name.startswith("MY.")]
    while texts:
        text = texts.pop()
        words = {w.strip().lower() for call in _FUNCTION.findall(text) for w in call.split(",")}
        for name in words & options.keys() - names - _KNOWN:
            names.add(name)
            option = options[name]
            try:
                options[name] = option._replace(value=macros.expand(f"$({name})", values).strip())
            except MacroError as error:
                reading.refuse(f"{name}: {error}", option.line, 1, name, option.text)
            texts.append(options[name].value or "")
    return names


# -- writing
def _written(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    jobs = list(document.jobs())
    if len(jobs) == 1:
        return _single(document, context)
    if not jobs:
        asking_for(DIALECT, document, context)      # refuses
    texts: list[str] = []
    cluster = _Cluster(context)
    reported: set[str] = set()
    scripts: dict[str, str] = {}
    policy = context.policy or (Policy.WARN if isinstance(document, ScriptDocument) else Policy.REJECT)
    for group in document.groups():
        labels = [p.tag for p in group.properties() if p.tag != "Id"]
        if labels:
            context.findings.add(DROPPED, "JobGroup", f"a description has no place for {', '.join(labels)} of a group",
                                 severity="warning", path="/JobGroup", line=group.line)
    blocks: list[list[str]] = []
    for number, (job, defaults) in enumerate(jobs, 1):
        whole = job if defaults is None else effective(job, defaults, policy=policy_of(job, policy).value).fold()
        name = f"{context.name or 'job'}-{number}"
        single = dataclasses.replace(document, root=whole, findings=None)
        text, more = _single(single, dataclasses.replace(context, policy=policy, name=name))
        scripts |= more
        blocks.append(cluster.joined(text).splitlines())
    if (together := over_items(blocks)) is not None:
        return together, scripts
    context.findings.add(APPROXIMATED, "JobGroup", f"{len(jobs)} queue statements, one for each job: condor_submit "
                         "takes them all, Submit of the Python bindings the first alone", severity="info",
                         path="/JobGroup")
    for *lines, queue in blocks:
        names = {line.partition(" = ")[0] for line in lines}
        texts += [*lines, *(f"{n} =" for n in sorted(reported - names)), queue, ""]
        reported |= names
    return "\n".join(texts[:-1]) + "\n", scripts


@dataclasses.dataclass
class _Cluster:
    """The jobs of queue statements with one executable: HTCondor counts them as one cluster (condor_submit(1))."""

    context: WriteContext
    executable: str = ""
    count: int = 0

    def joined(self, text: str) -> str:
        """The description of the next job, whose array goes on counting where those before it ended."""
        executable = re.search(r"(?m)^executable = .*", text)
        if executable is None or executable[0] != self.executable:
            self.executable, self.count = executable[0] if executable else "", 0
        before = self.count
        size = re.search(r"(?m)^queue (\d+)$", text)
        self.count += int(size[1]) if size is not None else 1
        own = f"array_index = $(Process) + {before}\n"
        if own in text:
            return text.replace(own, "").replace("$INT(array_index)", "$(Process)")
        if before and size is not None and self.executable:
            self.context.findings.add(APPROXIMATED, "Extension Array", f"the jobs of this array are counted on from "
                                      f"{before}, for those before it have the same executable", path="/JobGroup")
        return text


def _single(document: Document, context: WriteContext) -> tuple[str, dict[str, str]]:
    """The description of the one job, and its script by name."""
    asked = asking_for(DIALECT, document, context)
    asking = asked[0]
    entry = next(iter(asking.find("Executable")), None)
    scripts: dict[str, str] = {}
    if entry is not None and entry.text.startswith("#") and entry.text[1:] in document.files:
        scripts[f"{name_of(asking)}.sh"] = script_of(asking)
    else:
        asking.extension("Dialect")
        if asking.source not in ("", "htcondor"):
            script_of(asking)       # for what it tells of defaults
    lines: list[str] = []
    queue = "queue"
    for name, value, _ in accepted(asked, express(asked)):
        if name == "queue":
            queue = f"queue {value}" if value else "queue"
            continue
        if name == "request_resource":
            name, _, value = f"request_{value}".partition(" = ")
        try:
            lines.append(_directive(name, value))
        except QuotingError as error:
            about = subject_of(asking, name, value).removeprefix("-")
            asking.note(DROPPED, said_by(asking, name, value), str(error), subject=about)
    leftovers(asked)
    return "\n".join([*lines, queue]) + "\n", scripts


_BEGINNING: Final = re.compile(r"(?im)^\s*queue\b(?!\s*=)[^\n]*$")
_EXECUTABLE: Final = re.compile(r"(?im)^\s*(executable|universe|container_image|docker_image)\s*=")


def _recognise(sample: Sample) -> Fit | None:
    text = sample.text
    if text.startswith("#!") or not (_BEGINNING.search(text) and _EXECUTABLE.search(text)):
        return None
    return Fit("commands of a submit description and a queue statement")


write, files = with_scripts(_written, ".sub")

TRANSLATOR: Final[Translator] = dataclasses.replace(
    translator(DIALECT), title="HTCondor submit description", read=read, write=write, recognise=_recognise, files=files)
