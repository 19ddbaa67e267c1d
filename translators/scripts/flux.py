"""Batch scripts of Flux, as flux-batch reads them.

Source: RFC 23 (durations), 26 (dependencies), 35 (constraints), and flux-batch(1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from sssjob.model import Environment
from sssjob.translators.asked import NEAREST
from sssjob.translators.scripts._flux_lines import SENTINEL, arguments, directive, live, scan
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    SITE,
    AnyRow,
    Asking,
    Dialect,
    Entry,
    Reading,
    Row,
    Special,
    translator,
)
from sssjob.translators.scripts.common import (
    Written,
    dependencies,
    file_name,
    merged,
    named_variables,
    read_dependencies,
    source_merges,
)
from sssjob.translators.scripts.grammars import SLURM_TIME, TEXT, Grammar, Kept, file_reader
from sssjob.translators.scripts.layout import Amount, Part, one_part, plain, task_processors
from sssjob.translators.scripts.raw import Option

__all__ = ["DIALECT", "TRANSLATOR", "duration"]

# -- durations and numbers
_UNITS: Final = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}


def duration(text: str, unit: int = 1) -> Decimal:
    """Seconds of a Flux Standard Duration; unit: seconds that a bare number counts. ValueError for another form."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})(ms|[smhd]?)", text, re.ASCII)
    if found is None:
        raise ValueError("is no duration of Flux")
    return Decimal(found[1]) * (_UNITS[found[2]] if found[2] else unit)


def _limit(text: str) -> int:
    seconds = duration(text, 60)
    if seconds == 0:
        raise Kept("no limit")
    if seconds != int(seconds):
        raise Kept("a fraction of a second")
    return int(seconds)


_TIME: Final = Grammar(_limit, lambda text: f"{int(text)}s", "minutes, or a number with s, m, h or d")


def _read_time(reading: Reading, options: Mapping[str, Option]) -> None:
    reading.row(Row("--time-limit", "Requested/Duration", _TIME), options["--time-limit"])


def _write_time(asking: Asking) -> Written:
    entry = asking.at("Requested/Duration")
    if entry is None:
        return []
    if int(entry.text) <= 0:
        asking.dropped(entry, "0 would be no limit at all")
        return []
    return [("--time-limit", f"{int(entry.text)}s")]


# -- layout
_LAYOUT: Final = {"--nodes": "Requested/NodeCount", "--nslots": "TaskGroup/TaskCount",
                  "--cores-per-slot": "TaskGroup/TaskDefaults/Requested/Processors",
                  "--gpus-per-slot": "TaskGroup/TaskDefaults/Requested/Resource[name=GPU]"}


def _read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    counts: dict[str, int] = {}
    for name, where in _LAYOUT.items():
        option = options.get(name)
        if option is None:
            continue
        if not re.fullmatch(r"\d{1,9}", option.value or "", re.ASCII):
            reading.misfit(option, "is no number", "a number")
        elif not int(option.value or ""):
            reading.keep(option)        # taken as not said
        else:
            counts[name] = int(option.value or "")
            reading.put(where, counts[name], option)
    nodes, slots = counts.get("--nodes"), counts.get("--nslots")
    if nodes and slots and nodes > slots:
        o = options["--nslots"]
        reading.refuse(f"{nodes} nodes for {slots} slots", o.line, o.column, o.name, o.text)
    if (only := options.get("--exclusive")) is not None:
        if not nodes:
            reading.refuse("--exclusive wants --nodes", only.line, only.column, only.name, only.text)
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "true", only)


def _write_layout(asking: Asking) -> Written:
    part = one_part(asking)
    cpus = task_processors(asking, part)
    tasks = _slots(asking, part)
    made: Written = []
    if part.nodes is not None:
        made.append(("--nodes", str(part.nodes)))
        if part.nodes_most:
            asking.note(APPROXIMATED, None, f"NodeCount: {part.nodes} is taken of {part.nodes} to {part.nodes_most}",
                        subject="NodeCount")
    if tasks is not None:
        made.append(("--nslots", str(tasks)))
    if cpus is not None:
        made.append(("--cores-per-slot", str(cpus)))
    if part.gpus is not None:
        made.append(("--gpus-per-slot", str(_gpus(asking, part, part.gpus, tasks or part.nodes or 1))))
    if part.memory is not None:
        asking.dropped(part.memory.entry)
        for e in part.beside:
            asking.dropped(e)
    return made + _exclusive(asking, part, made)


def _slots(asking: Asking, part: Part) -> int | None:
    """Slots in all, which Flux spreads evenly over the nodes."""
    tasks = part.tasks
    if tasks is None and part.per_node is not None:
        tasks = part.per_node * (part.nodes or 1)
    if part.per_node is not None and tasks != part.per_node * (part.nodes or 0):
        asking.note(APPROXIMATED, None, f"TaskDistribution: {tasks} slots are spread evenly, not {part.per_node} on "
                    "each node", subject="TaskDistribution")
    if tasks is not None and part.nodes is not None and tasks < part.nodes:
        asking.note(APPROXIMATED, None, f"TaskCount: {part.nodes} slots, for Flux wants one on each node",
                    subject="TaskCount")
        return part.nodes
    if tasks is None and (part.cpus or part.gpus) and part.nodes is None:
        return 1
    return tasks


def _gpus(asking: Asking, part: Part, gpus: Amount, slots: int) -> int:
    if gpus.kind:
        asking.note(SITE, gpus.entry, f"Flux has no types of GPUs; {gpus.kind} is left out")
    if gpus.per == "task":
        return gpus.value
    total = gpus.value * {"PerNode": part.nodes or 1, "PerChunk": part.chunks or 1}.get(gpus.per, 1)
    if total != slots or gpus.per not in ("PerNode", "job"):
        asking.note(APPROXIMATED, gpus.entry, f"{total} GPUs in all are shared out among {slots} slots")
    return -(-total // slots)


def _exclusive(asking: Asking, part: Part, said: Written) -> Written:
    entry = asking.extension("ExclusiveNodeUse")
    if part.nodes is not None and len(said) == 1 and asking.source not in ("", "flux"):
        asking.note(APPROXIMATED, None, "NodeCount: nodes without slots are whole ones in Flux", "info", "NodeCount")
    if entry is None or entry.text == "false":
        return []
    if entry.text != "true":
        asking.note(APPROXIMATED, entry, f"{entry.text} is written as exclusive nodes")
    if part.nodes is None:
        asking.dropped(entry, "exclusive nodes want a number of nodes")
        return []
    return [("--exclusive", None)]


# -- constraints
_TERM: Final = re.compile(r"(-?)(?:(host|hosts|hostlist):)?([\w.+@\[\]-]+(?:,[\w.+@\[\]-]+)*)", re.ASCII)
_PROPERTY: Final = re.compile(r"[A-Za-z_][\w.+@-]*", re.ASCII)


def _terms(text: str) -> list[tuple[str, str, bool]] | None:
    """(tag, text, wanted) of terms that are all demanded; None for another expression of RFC 35."""
    made: list[tuple[str, str, bool]] = []
    for word in re.split(r"\s*&&?\s*|\s+and\s+|\s+", text.strip()):
        found = _TERM.fullmatch(word)
        if found is None:
            return None
        if found[2]:
            made.append(("Node", found[3], not found[1]))
            continue
        for name in (found[1] + found[3]).split(","):
            bare = name.removeprefix("-")
            if not _PROPERTY.fullmatch(bare) or bare in ("and", "or", "not"):
                return None
            made.append(("Feature", bare, name == bare))
    return made


def _every(reading: Reading, name: str) -> list[Option]:
    return [o for o in reading.options if o.name == name]


def _read_requires(reading: Reading, options: Mapping[str, Option]) -> None:
    given = _every(reading, "--requires")
    terms = [_terms(o.value or "") for o in given]
    hosts = sum(tag == "Node" and wanted for some in terms if some for tag, _, wanted in some)
    if hosts > 1 or any(some is None for some in terms):
        for option in given:
            reading.keep(option)
        return
    for option, some in zip(given, terms, strict=True):
        for tag, text, wanted in some or ():
            kind = {} if tag == "Feature" else {"aggregation": "Range"} if "[" in text else {
                "aggregation": "List"} if "," in text else {}
            reading.put(f"Requested/{tag}", text, option, **kind, **({} if wanted else {"op": "NE"}))


def _write_requires(asking: Asking) -> Written:
    made = [("--requires", e.text) for e in _kept(asking, "requires")]
    for e in asking.find("Feature"):
        if not _listed(e) or not _PROPERTY.fullmatch(e.text):
            asking.dropped(e, f"{e.attributes.get('op', 'EQ')} {e.text} is no property to ask for")
        else:
            made.append(("--requires", f"{'-' if e.attributes.get('op') == 'NE' else ''}{e.text}"))
    return made + _hosts(asking)


def _listed(e: Entry) -> bool:
    return e.attributes.get("op", "EQ") in ("EQ", "NE") and (
        plain([e]) or e.attributes.keys() & {"conj", "group", "preference"} == set())


def _hosts(asking: Asking) -> Written:
    made: dict[str, list[str]] = {}
    for e in asking.find("Node"):
        if not _listed(e) or e.attributes.get("aggregation") == "Pattern" or not re.fullmatch(
                _TERM.pattern.partition(":)?")[2], e.text, re.ASCII):
            asking.dropped(e, "only lists of hosts can be said")
            continue
        e.understood |= {"aggregation", "op"}
        made.setdefault("-host:" if e.attributes.get("op") == "NE" else "host:", []).append(e.text)
    if len(made.get("host:", ())) > 1 and asking.source != "flux":
        asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
    return [("--requires", sign + ",".join(texts)) for sign, texts in made.items()]


def _kept(asking: Asking, name: str) -> list[Entry]:
    """What was kept of an option that may stand several times, in order."""
    return asking.find("Extension", NEAREST, name=name, type="flux")


def _several(name: str) -> Special:
    """An option that adds up and that only Flux knows."""
    def read(reading: Reading, options: Mapping[str, Option]) -> None:
        for option in _every(reading, name):
            reading.keep(option)

    def write(asking: Asking) -> Written:
        return [(name, e.text) for e in _kept(asking, name.lstrip("-"))]

    return Special((name,), read, write)


# -- dependencies, times
_OTHER: Final = "Extension[name=DependencyOther,type=Scheduler]"


def _read_dependency(reading: Reading, options: Mapping[str, Option]) -> None:
    for option in _every(reading, "--dependency"):
        scheme, _, value = (option.value or "").partition(":")
        if scheme == "begin-time" and re.fullmatch(r"\d{1,12}(?:\.0*)?", value, re.ASCII):
            reading.top("EligibleTime", int(value.partition(".")[0]), option)
        elif scheme in ("after", "singleton", "begin-time") or "," in value:
            reading.top(_OTHER, option.value or "", option)
        else:
            read_dependencies(reading, option)
    if (begin := options.get("--begin-time")) is not None:
        reading.moment("EligibleTime", _CLOCK, begin)


def _clock(text: str) -> int:
    """A time of day that is stated whole; all else depends on when the job is submitted."""
    value = SLURM_TIME.read(text.replace(" ", "T"))
    assert isinstance(value, int)
    return value


_CLOCK: Final = Grammar(_clock, str, "YYYY-MM-DD HH:MM:SS")


def _write_dependency(asking: Asking) -> Written:
    made = []
    for clause in re.findall(r"(?:@JOBID:[^@]*@|[^,@])+", dependencies(asking, ("on:", "before"))):
        kind, _, rest = clause.partition(":")
        ids = re.findall(r"@JOBID:[^@]*@|[^:@]+", rest) if kind in ("afterok", "afterany", "afternotok") else []
        made += [f"{kind}:{one}" for one in ids] or [clause]
    begin = asking.one("EligibleTime")
    if begin is not None:
        made.append(f"begin-time:{begin.text}")
    return [("--dependency", text) for text in made]


# -- priority, signal
_DEFAULT: Final = 16
_NAMES: Final = {"hold": 0, "default": _DEFAULT, "expedite": 31}


def _read_urgency(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--urgency"]
    text = option.value or ""
    number = _NAMES.get(text, int(text) if re.fullmatch(r"\d{1,2}", text, re.ASCII) else -1)
    if not 0 <= number <= 31:
        reading.misfit(option, "is no urgency", "0 to 31, hold, default or expedite")
    elif number == 0:
        reading.put("Hold", "User", option)
    else:
        reading.put("Priority", number - _DEFAULT, option)


def _write_urgency(asking: Asking) -> Written:
    hold, priority = asking.one("Hold"), asking.one("Priority")
    if hold is not None:
        if priority is not None:
            asking.dropped(priority, "a held job has no urgency")
        if hold.text != "User":
            asking.dropped(hold, f"a hold of {hold.text} cannot be asked for")
            return []
        return [("--urgency", "hold")]
    if priority is None:
        return []
    wanted = _DEFAULT + int(priority.text)
    number = min(max(wanted, 1), 31)
    if asking.source not in ("", "flux") or number != wanted:
        asking.note(APPROXIMATED, priority, f"urgency {number}: 16 is the default, larger is sooner, users stop at 16")
    return [("--urgency", str(number))]


_SIGNAL: Final = "Extension[name=Signal,type=Scheduler]"


def _read_signal(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--signal"]
    name, _, time = (option.value or "").partition("@")
    try:
        seconds = duration(time or "60")
    except ValueError as error:
        reading.misfit(option, str(error), "[SIG][@TIME]")
        return
    if not re.fullmatch(r"\w*", name, re.ASCII) or seconds != int(seconds):
        reading.keep(option)
        return
    reading.put(_SIGNAL, f"{name.removeprefix('SIG') or 'USR1'}@{int(seconds)}", option)


def _write_signal(asking: Asking) -> Written:
    entry = asking.extension("Signal")
    if entry is None:
        return []
    found = re.fullmatch(r"((?:[BR]+:)?)(\w+)(?:@(\d{1,9}))?", entry.text, re.ASCII)
    if found is None:
        asking.dropped(entry, f"{entry.text} is no signal with a time")
        return []
    if found[1]:
        asking.note(APPROXIMATED, entry, "all processes of the job get the signal")
    return [("--signal", f"{found[2]}@{found[3] or 60}s")]


# -- files and environment
_TOKENS: Final = {"{jobid}": "{{id}}", "{name}": "{{name}}", "{host}": "{{node.name}}", "{node_rank}": "{{node.id}}",
                  "{task_rank}": "{{taskid}}"}
_NATIVE: Final = {v[2:-2]: k for k, v in _TOKENS.items()} | {
    "jobid": "{jobid}", "task.id": "{task_rank}", "task.rank": "{task_rank}"}
_PATH: Final = Grammar(file_reader(_NATIVE, r"\{\{(?P<name>[a-z_.]+)\}\}"), str, "a file name")
_STREAMS: Final = (("--input", "InputFile"), ("--output", "OutputFile"), ("--error", "ErrorFile"))
_APPEND: Final = "output.mode=append"


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    extra = _every(reading, "--setopt")
    append = any(o.value == _APPEND for o in extra) and "--output" in options
    for one in extra:
        if not (append and one.value == _APPEND):
            reading.keep(one)
    for name, tag in _STREAMS:
        option = options.get(name)
        if option is None:
            continue
        if option.value in ("none", "kvs"):
            reading.keep(option)
        elif append and tag != "InputFile":
            reading.put(tag, _PATH.read(option.value or " "), option, redirectList="Append")
        else:
            reading.row(Row(name, tag, _PATH), option)


def _write_files(asking: Asking) -> Written:
    def literal(text: str) -> str:
        if "{{" in text and asking.source != "flux":
            raise LookupError("way to say '{{'")
        return text

    made: Written = []
    source, _ = file_name(asking, "InputFile", literal)
    output, error = (file_name(asking, tag, literal, directory=False, holds=("Merge", "Append"))
                     for tag in ("OutputFile", "ErrorFile"))
    join = merged(asking, error, output)
    out, err = output[0], error[0]
    if join:
        for tag in ("OutputFile", "ErrorFile") if join == "eo" or out is None else ():
            asking.note(APPROXIMATED, None, f"{tag}: both streams go into one file unless two are named", "info", tag)
        out, err = (out or err, None) if join == "oe" else (err or out, None)
    elif out is not None and err is None and asking.source and not source_merges(asking):
        asking.note(APPROXIMATED, None, "OutputFile: without a file of its own the error stream goes there too",
                    subject="ErrorFile")
    for name, text in (("--input", source), ("--output", out), ("--error", err)):
        if text is not None:
            made.append((name, text))
    made += [("--setopt", e.text) for e in _kept(asking, "setopt")]
    if "Append" in output[1] ^ error[1] and None not in (out, err):
        asking.note(APPROXIMATED, None, "ErrorFile: Flux appends to all files or to none", subject="ErrorFile")
    if "Append" in output[1] | error[1]:
        made.append(("--setopt", _APPEND))
    return made


_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RULE: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.S)


def _rules(texts: list[str]) -> tuple[bool | None, dict[str, str]] | None:
    """Whether the submitter's variables go along (None: not said), and what is set; None for other rules."""
    export: bool | None = None
    variables: dict[str, str] = {}
    for number, text in enumerate(texts):
        found = _RULE.fullmatch(text)
        if text in ("-*", "*") and number == 0:
            export = text == "*"
        elif _NAME.fullmatch(text) and export is False and not variables:
            continue
        elif found is None or found[1] in variables or "$" in found[2].replace("$$", ""):
            return None
        else:
            variables[found[1]] = found[2].replace("$$", "$")
    return export, variables


def _read_env(reading: Reading, options: Mapping[str, Option]) -> None:
    given = _every(reading, "--env")
    rules = _rules([o.value or "" for o in given])
    if rules is None:
        for option in given:
            reading.keep(option)
        return
    export, variables = rules
    scope = reading.scope(("Environment",))
    assert isinstance(scope, Environment)
    if export is not None:
        scope.attributes = {"export": "true" if export else "false"}
    names = [o for o in given if _NAME.fullmatch(o.value or "")]
    if names:
        reading.put("Extension[name=ExportNames,type=Scheduler]", ",".join(o.value or "" for o in names), names[0])
    for option in given:
        name, sign, _ = (option.value or "").partition("=")
        if sign:
            reading.put("Environment/Variable", variables[name], option, name=name)


def _write_env(asking: Asking) -> Written:
    kept = [e.text for e in _kept(asking, "env")]
    environment = asking.job.environment
    export = environment.export if environment is not None else None
    made = kept + ([] if export is None else ["*" if export else "-*"])
    names = asking.extension("ExportNames")
    if names is not None:
        if export is False:
            made += names.text.split(",")
        else:
            asking.note(APPROXIMATED, names, "all variables of the submitter are there in Flux, these too")
    made += [f"{e.attributes['name']}={e.text.replace('$', '$$')}" for e in named_variables(asking)]
    return [("--env", text) for text in made]


def _read_sentinel(reading: Reading, options: Mapping[str, Option]) -> None:
    reading.put("Extension[name=Prefix,type=flux]", options["sentinel"].value or "", options["sentinel"])


def _write_sentinel(asking: Asking) -> Written:
    """Lines of a language whose comments do not begin with ``#`` keep their beginning."""
    entry = asking.extension("Prefix", "flux")
    if entry is not None and SENTINEL.fullmatch(entry.text):
        asking.prefix = entry.text
    return []


ROWS: Final[tuple[AnyRow, ...]] = (
    Special(("sentinel",), _read_sentinel, _write_sentinel),
    Row("--job-name", "Name"),
    Row("--bank", "Project"),
    Row("--queue", "Queue"),
    Special(("--time-limit",), _read_time, _write_time),
    Special((*_LAYOUT, "--exclusive"), _read_layout, _write_layout, part=True),
    Special(("--requires",), _read_requires, _write_requires, part=True),
    Special(("--dependency", "--begin-time"), _read_dependency, _write_dependency),
    Special(("--urgency",), _read_urgency, _write_urgency),
    Special(("--signal",), _read_signal, _write_signal),
    Row("--cwd", "InitialWorkingDirectory", TEXT),
    Special(("--input", "--output", "--error", "--setopt"), _read_files, _write_files),
    Special(("--env",), _read_env, _write_env),
    *(_several(f"--{name}") for name in ("setattr", "rlimit", "add-file", "conf", "broker-opts", "flags")),
    *(Row(f"--{name}") for name in ("debug-emulate", "dry-run", "dump", "label-io", "quiet", "unbuffered", "verbose",
                                    "wrap")),
)

DIALECT: Final = Dialect(
    "flux", "Flux", "#FLUX:", ROWS, scan, directive, arguments, _TOKENS, ("FLUX_",), live, (".flux", ".sh"),
    disarm="#off ")
TRANSLATOR: Final = translator(DIALECT)
