"""Batch scripts of Cobalt, as qsub of Cobalt reads them.

Source: qsub(1) and qsub.py of Cobalt. There are no quotes and no comments: a line is split at blanks, and the options
are parsed as Python's optparse does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from sssjob.document.model import Environment
from sssjob.lrm.clocks import clock
from sssjob.lrm.cobalt import limit
from sssjob.templates.quoting import Directive, bare, cobalt
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    SITE,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Scan,
    Special,
    harmless,
    translator,
)
from sssjob.translators.scripts.choices import any_of, choices, drop, simple_features
from sssjob.translators.scripts.common import SCHEDULER, Written, directory, named, rowed, time_limit, user_hold
from sssjob.translators.scripts.dependencies import foreign_id
from sssjob.translators.scripts.environment import named_variables
from sssjob.translators.scripts.grammars import COUNT, Grammar, Kept, file_reader
from sssjob.translators.scripts.layout import Part, one_part, task_processors
from sssjob.translators.scripts.notices import OF_MAIL, mail, read_mail
from sssjob.translators.scripts.raw import Line, Option, Word, command_words, plain_breaks
from sssjob.translators.scripts.streams import OF_FILES, file_name, in_two_files

__all__ = ["DIALECT", "TRANSLATOR"]

# -- the first stage
PREFIX: Final = "#COBALT"
#: Long option -> whether it takes a value.
_LONG: Final = dict.fromkeys(("debug", "disable_preboot", "held", "interactive", "preemptable", "version"), False) | \
    dict.fromkeys((
        "attrs", "cwd", "debuglog", "dependencies", "env", "error", "geometry", "inputfile", "ion_kernel",
        "ion_kerneloptions", "jobname", "kernel", "kerneloptions", "mode", "nodecount", "notify", "output",
        "outputprefix", "proccount", "project", "queue", "run_project", "run_users", "time", "umask", "user_list"),
        True)
_WORD: Final = re.compile(r"\S+")
_SHORT: Final = {"A": "project", "E": "error", "I": "interactive", "K": "kerneloptions", "M": "notify",
                 "O": "outputprefix", "d": "debug", "e": "error", "h": "held", "i": "inputfile", "n": "nodecount",
                 "o": "output", "q": "queue", "t": "time", "u": "umask"}


def live(lines: list[Line]) -> list[Line]:
    """The lines that qsub takes for directives: those that follow the first one, without a gap."""
    if not lines or not lines[0].text.startswith("#!"):
        return []
    directives = []
    for line in lines[1:]:
        if not line.text.startswith(PREFIX + " "):
            break
        directives.append(line)
    return directives


def scan(reading: Reading, lines: list[Line]) -> Scan:
    """The directives below the first line; all others are dead."""
    lines = plain_breaks(lines, partial(
        reading.refuse, "DOS line breaks: the last word of each directive would end in one"))
    result, live_numbers = Scan(), {line.number for line in live(lines)}
    for line in lines:
        if line.number in live_numbers:
            words = [Word(hit[0], line.number, hit.start() + 1)
                     for hit in _WORD.finditer(line.text, len(PREFIX))]
            result.components[0] += _parse(reading, words, line.text)
            continue
        result.rest.append(line)
        text = line.text.lstrip()
        if text.startswith(PREFIX) and text[len(PREFIX):len(PREFIX) + 1] in ("", " ", "-"):
            why = "qsub wants a blank after #COBALT" if text[len(PREFIX):len(PREFIX) + 1] == "-" else \
                "qsub reads only the lines that follow #! without a gap"
            reading.dead(line, why, len(line.text) - len(text) + 1)
    return result


def _parse(reading: Reading, words: list[Word], text: str) -> Iterator[Option]:
    """Options as optparse finds them; words that are left over would be arguments of the script."""
    queue = list(reversed(words))

    def refuse(message: str, at: Word) -> None:
        """Report what qsub refuses, at its word."""
        reading.refuse(message, at.line, at.column, at.text, text)

    while queue:
        at = queue.pop()
        if at.text.startswith("--") and len(at.text) > 2:
            name_given, sign, value = at.text[2:].partition("=")
            fits_ = [name_given] if name_given in _LONG else [name for name in _LONG if name.startswith(name_given)]
            if len(fits_) != 1:
                refuse(f"{at.text[:80]}: {'may be several options' if fits_ else 'no such option'}", at)
            elif not _LONG[fits_[0]]:
                yield Option(f"--{fits_[0]}", None, at.line, at.column, text)
            elif not sign and not queue:
                refuse(f"{at.text[:80]} wants a value", at)
            else:
                yield Option(f"--{fits_[0]}", value if sign else queue.pop().text, at.line, at.column, text)
        elif at.text.startswith("-") and len(at.text) > 1 and at.text != "--":
            yield from _short(at, queue, text, refuse)
        else:
            reading.findings.add(APPROXIMATED, at.text, f"{at.text[:80]!r} and what follows are no options; as "
                                 "arguments of the script they are left out", line=at.line, column=at.column,
                                 excerpt=text)
            return


def _short(at: Word, queue: list[Word], text: str, refuse: object) -> Iterator[Option]:
    letters = at.text[1:]
    while letters:
        name, letters = _SHORT.get(letters[0]), letters[1:]
        if name is None or (_LONG[name] and not letters and not queue):
            refuse(f"{at.text[:80]}: {'no such option' if name is None else 'wants a value'}", at)  # type: ignore[operator]
            return
        if _LONG[name]:
            yield Option(f"--{name}", letters or queue.pop().text, at.line, at.column, text)
            return
        yield Option(f"--{name}", None, at.line, at.column, text)


def arguments(reading: Reading, text: str) -> list[Option]:
    """Options of the command line."""
    return list(_parse(reading, command_words(text), text))


_LETTERS: Final = {"project": "A", "queue": "q", "nodecount": "n", "time": "t", "output": "o", "error": "e",
                   "inputfile": "i", "outputprefix": "O", "notify": "M", "kerneloptions": "K", "interactive": "I"}


def directive(name: str, value: str | None) -> str:
    """``-n 4``, ``--attrs a=b``: one letter where people use it."""
    option = name.lstrip("-")
    if value is not None and option in _LONG and bare(value):
        letter = _LETTERS.get(option)
        return f"-{letter} {value}" if letter else f"--{option} {value}"
    return cobalt(Directive(_LETTERS.get(option, option), value, name))


# -- values
def _minutes(text: str) -> int:
    """Seconds of ``M``, ``H:M``, ``H:M:S``, ``D:H:M:S``; Cobalt keeps whole minutes."""
    span = limit(text)
    if not span:
        raise Kept("the longest that the queue allows")
    return span


_TIME: Final = Grammar(_minutes, lambda text: clock(int(text)), "minutes, H:M, H:M:S or D:H:M:S")


_PAIRS: Final = re.compile(r"(?:\\.|[^\\:])+")
_MASKED: Final = re.compile(r"\\([:=\\])")


def _pairs(text: str) -> list[tuple[str, str]]:
    """``a=1:b=2``; a backslash keeps the sign that follows."""
    pairs = []
    for part in _PAIRS.findall(text):
        name, _, value = part.partition("=")
        pairs.append((name, _MASKED.sub(r"\1", value)))
    return pairs


def _read_environment(reading: Reading, options: Mapping[str, Option]) -> None:
    """All ``--env`` are taken together, the last of a name counts."""
    by_name: dict[str, tuple[str, Option]] = {}
    options_given = reading.every("--env")
    if bad := [o for o in options_given if not re.fullmatch(r"(?:[^\\:=]+=(?:\\.|[^\\:])*(?::|\Z))+", o.value or "")]:
        reading.misfit(bad[-1], "is no list of variables", "NAME=VALUE:NAME=VALUE")
        options_given = []
    for option in options_given:
        for name, value in _pairs(option.value or ""):
            by_name[name] = (value, option)
    assert isinstance(reading.scope(("Environment",)), Environment)
    for name, (value, option) in by_name.items():
        reading.put("Environment/Variable", value, option, name=name)


_BLANK: Final = re.compile(r"\s")
_TO_MASK: Final = re.compile(r"([:=\\])")


def _write_environment(asking: Asking) -> Written:
    texts = []
    for e in named_variables(asking):
        if _BLANK.search(e.text) or not e.text:
            asking.unsaid.append((e, f"the value of {e.attributes.get('name')} is empty or holds a blank"))
            continue
        text = _TO_MASK.sub(r"\\\1", e.text)
        texts.append(f"{e.attributes.get('name')}={text}")
    names = asking.extension("ExportNames")
    if names is not None:
        asking.dropped(names, "Cobalt cannot pass the submitter's variables on")
    return [("--env", ":".join(texts))] if texts else []


# -- layout
_ZERO: Final = re.compile(r"0+")


def _read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    for row in (Row("--nodecount", "Requested/NodeCount", COUNT), Row("--proccount", "TaskGroup/TaskCount", COUNT)):
        if (option := options.get(row.name)) is not None:
            if _ZERO.fullmatch(option.value or ""):
                reading.misfit(option, "is no number", "a number from 1")
            else:
                reading.row(row, option)
    if any(p.tag == "NodeCount" for p in reading.job.leaves()):     # its nodes belong to one job at a time
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", options["--nodecount"])
    if (mode := options.get("--mode")) is not None:
        _read_mode(reading, mode)


def _read_mode(reading: Reading, option: Option) -> None:
    """``cN`` of Blue Gene/Q is N ranks on each node; other modes are kept."""
    match = re.fullmatch(r"c([1-9]\d{0,4})", option.value or "", re.ASCII)
    if match is None:
        reading.keep(option)
    else:
        reading.put("TaskGroup/TaskDistribution[type=TasksPerNode]", match[1], option)


def _write_layout(asking: Asking) -> Written:
    part = one_part(asking)
    tasks, cpus = task_processors(asking, part)
    nodes = _nodes(asking, part)
    options: Written = [("--nodecount", str(nodes))] if nodes else []
    if part.nodes_most:
        asking.note(APPROXIMATED, part.sources["nodes"], f"NodeCount: {part.nodes} of {part.nodes} to "
                    f"{part.nodes_most} are asked for", subject="NodeCount")
    by_mode = part.per_node if part.tasks is None and part.processors is None else None
    if part.node_chunks and tasks is not None and tasks % (nodes or 1) == 0:
        by_mode = tasks // (nodes or 1)
    if tasks is not None and by_mode is None:
        options.append(("--proccount", str(tasks)))
    if part.geometry and len(set(part.geometry)) > 1:
        asking.note(APPROXIMATED, part.sources["distribution"], "Cobalt is told how many nodes and tasks, not which "
                    "tasks share a node")
    per_node = by_mode or part.per_node
    if per_node is not None:
        if asking.source in ("", "cobalt"):
            options.append(("--mode", f"c{per_node}"))
        else:
            asking.note(APPROXIMATED, part.sources.get("distribution"), "TaskDistribution: the launcher in the script "
                        "says how many tasks a node has", subject="TaskDistribution")
    if cpus is not None and cpus > 1:
        asking.note(APPROXIMATED, part.sources.get("cpus") or part.sources.get("processors"), "Processors: nodes are "
                    "given whole; the launcher in the script says how many processors a task has", subject="Processors")
    for amount in filter(None, (part.memory, part.gpus)):
        asking.dropped(amount.entry)
    if nodes and (exclusive := asking.extension("ExclusiveNodeUse")) is not None and exclusive.text not in (
            "true", "host"):
        asking.note(APPROXIMATED, exclusive, "nodes are given whole")
    for e in part.beside:
        asking.dropped(e)
    return options


def _nodes(asking: Asking, part: Part) -> int | None:
    """Nodes, as far as the job says how many: tasks shared out, or chunks that are nodes."""
    nodes = part.node_total if part.chunks in (None, 1) or part.nodes is not None else None
    if nodes is None and (part.slots is not None or part.chunks is not None or part.per_node is not None):
        asking.note(SITE, None, "NodeCount: the job does not say how many nodes, which Cobalt wants to know",
                    subject="NodeCount")
    return nodes


# -- attributes
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
_VALUE: Final = re.compile(r"[^\s=]+")


def _read_attrs(reading: Reading, options: Mapping[str, Option]) -> None:
    """``name=value`` pairs are features, ``location`` is a node."""
    option = options["--attrs"]
    pairs = [part.partition("=") for part in (option.value or "").split(":") if part]
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) and sign for name, sign, value in pairs):
        reading.keep(option)
        return
    for name, _, value in pairs:
        if name != "location":
            reading.put("Requested/Feature", f"{name}={value}", option)
        elif re.fullmatch(r"[\d,-]*\d-\d[\d,-]*", value, re.ASCII):
            reading.put("Requested/Node", value, option, aggregation="Range")
        else:
            reading.put("Requested/Node", value, option, **({"aggregation": "List"} if "," in value else {}))


def _write_attrs(asking: Asking) -> Written:
    attributes = []
    for e in simple_features(asking):
        name, _, value = e.text.partition("=")
        if not _NAME.fullmatch(name) or not re.fullmatch(r"[^\s=:]+", value) or name == "location":
            asking.dropped(e, f"{e.text[:80]} is no attribute with a value")
        else:
            attributes.append(e.text)
    places: list[str] = []
    several = 0
    for choice in choices(asking, "Node"):
        names = [t.name for t in any_of(choice) or () if t.kind != "other"]
        if not names or not all(re.fullmatch(r"[\w.,-]+", name, re.ASCII) for name in names):
            drop(asking, choice, "location takes names and ranges of nodes")
        else:
            places += names
            several += 1
    if several > 1 and asking.source != "cobalt":
        asking.note(APPROXIMATED, None, "Node: any of the nodes, not all of them", subject="Node")
    attributes += [f"location={','.join(places)}"] if places else []
    return [("--attrs", ":".join(attributes))] if attributes else []


# -- dependencies
_ID: Final = re.compile(r"\d+|@JOBID:[^@]*@", re.ASCII)


def _read_dependencies(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--dependencies"]
    ids = re.findall(r"@JOBID:[^@]*@|[^:@]+", option.value or "")
    if (option.value or "").lower() == "none":
        reading.keep(option)
    elif not ids or not all(_ID.fullmatch(text) for text in ids):
        reading.misfit(option, "is no list of jobs", "ID:ID")
    else:
        for text in ids:
            reading.put("Dependency", text, option, condition="OnSuccess")


def _write_dependencies(asking: Asking) -> Written:
    ids = []
    for e in asking.find("Dependency"):
        e.understood |= {"condition", "designator", "code"}
        if e.attributes.get("condition", "OnSuccess") != "OnSuccess" or "code" in e.attributes or e.attributes.get(
                "designator", "JobId") != "JobId" or not _ID.fullmatch(text := foreign_id(asking, e)):
            asking.dropped(e, "Cobalt waits only for the success of jobs")
        else:
            ids.append(text)
    return [("--dependencies", ":".join(ids))] if ids else []


# -- files, mail
_path = file_reader({"jobid": "{jobid}", "COBALT_JOBID": "{jobid}"}, r"\$(?P<name>COBALT_JOBID|jobid)(?!\w)")
_FILES: Final = {"--inputfile": "InputFile", "--output": "OutputFile", "--error": "ErrorFile"}


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    """``-O prefix`` stands for ``-o prefix.output -e prefix.error``."""
    for name, tag in _FILES.items():
        if name in options:
            reading.row(Row(name, tag, Grammar(_path, str, "a file name")), options[name])
    prefix = options.get("--outputprefix")
    if prefix is None:
        return
    if "--output" in options or "--error" in options:
        reading.keep(prefix)
        return
    for tag, suffix in (("OutputFile", "output"), ("ErrorFile", "error")):
        reading.put(tag, _path(f"{prefix.value}.{suffix}"), prefix)


def _write_files(asking: Asking) -> Written:
    source, _ = file_name(asking, "InputFile")
    output, error = in_two_files(asking, folder=asking.source == "cobalt")
    prefix = (output or "").removesuffix(".output")
    if prefix and output == f"{prefix}.output" and error == f"{prefix}.error":
        options: Written = [("--outputprefix", prefix)]
    else:
        options = [(name, text) for name, text in (("--output", output), ("--error", error)) if text]
    return [("--inputfile", source), *options] if source else options


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    """Whoever is named gets mail at begin and end."""
    read_mail(reading, ["begin", "end"], options["--notify"], options["--notify"])


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, {"begin": "begin", "end": "end", "none": "none"}, {})
    if address is not None and set(words) == {"begin", "end"}:
        return [("--notify", address)]
    writes = address is not None and words != ["none"]
    for entry in (asking.one("NotificationList"), asking.extension("MailUser")):
        if entry is not None:
            asking.note(APPROXIMATED, entry, "Cobalt sends mail at begin and end, and only to a stated address"
                        + ("" if writes else "; none is sent"))
    return [("--notify", address)] if writes else []
_TRUE: Final = Grammar(lambda text: text == "true", str, "true")


def _umask(text: str) -> str:
    if not re.fullmatch("[0-7]{1,4}", text):
        raise ValueError("is no mask")
    return text


_UMASK: Final = Grammar(_umask, _umask, "octal digits")

ROWS: Final[tuple[AnyRow, ...]] = (
    named(Row("--jobname", "Name")),
    Row("--project", "Project"),
    Row("--queue", "Queue"),
    rowed(Row("--time", "Requested/Duration", _TIME),
          time_limit("--time", _TIME.write, "0 would be the longest that the queue allows")),
    Special(("--nodecount", "--proccount", "--mode"), _read_layout, _write_layout),
    Special(("--attrs",), _read_attrs, _write_attrs, of=("Feature", "Node")),
    Special(("--dependencies",), _read_dependencies, _write_dependencies, of=("Dependency",)),
    user_hold("--held"),
    directory("--cwd"),
    Special(("--outputprefix", *_FILES), _read_files, _write_files, of=OF_FILES),
    Special(("--env",), _read_environment, _write_environment),
    Special(("--notify",), _read_mail, _write_mail, of=OF_MAIL),
    Row("--umask", SCHEDULER.format("Umask"), _UMASK),
    Row("--interactive", "Interactive", _TRUE, "true"),
    *(Row(f"--{name}") for name in (
        "debug", "debuglog", "disable_preboot", "geometry", "ion_kernel", "ion_kerneloptions", "kernel",
        "kerneloptions", "preemptable", "run_project", "run_users", "user_list", "version")),
)

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="disable_preboot preemptable run_project",
    looks="debug debuglog version")

DIALECT: Final = Dialect(
    "cobalt", "Cobalt", PREFIX, ROWS, scan, directive, arguments, {"{jobid}": "$jobid"}, ("COBALT_",), live,
    (".cobalt", ".sh"), exports=False, merges=False, marks=(PREFIX,), spellings=("mode=script",), folders=False,
    gapless=True, each="qsub --env {}={}", files=("{jobid}.output", "{jobid}.error"), consequences=_HARMLESS)
TRANSLATOR: Final = translator(DIALECT)
