"""What the commands of HTCondor's submit descriptions mean: the program, its size, its machines, its variables.

Source: condor_submit(1); values were compared with what the parser of the 23.0 bindings makes of them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import partial
from typing import Final

from sssjob.document.model import Environment
from sssjob.lrm.sizes import POWERS, Size, suffixes, writer
from sssjob.request.asked import TASK
from sssjob.templates.quoting import QuotingError, condor_string
from sssjob.translators.scripts._condor_lines import OPAQUE, opaque
from sssjob.translators.scripts._condor_values import (
    condition,
    read_arguments,
    read_environment,
    read_requirements,
    write_arguments,
    write_environment,
)
from sssjob.translators.scripts.base import APPROXIMATED, DROPPED, SITE, Asking, Entry, Reading
from sssjob.translators.scripts.choices import (
    Choice,
    Either,
    Term,
    any_of,
    choices,
    expanded,
    infix,
    parsed,
    put,
    sayable,
    terms,
)
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.environment import named_variables
from sssjob.translators.scripts.layout import (
    Amount,
    Part,
    in_all,
    one_part,
    shared,
    total_of,
    totals_in,
    unknown_factor,
)
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.writing import words_of

_COUNT: Final = re.compile(r"\d{1,9}", re.ASCII)


#: Option -> bytes of its unit, which stands for a number alone.
_UNITS: Final = {"request_memory": POWERS["M"], "request_disk": POWERS["K"]}
_READ: Final = {name: Size({"": unit} | suffixes("kmgtp"), fractions=True) for name, unit in _UNITS.items()}
_WRITE: Final = {"request_memory": writer("MB,GB,TB", POWERS["M"], POWERS["M"]),
                 "request_disk": writer("KB,MB,GB,TB", POWERS["K"], POWERS["K"])}


# -- reading
def kept_as_it_is(reading: Reading, option: Option, what: str = "an expression that only HTCondor can compute") -> None:
    """A value that is kept for HTCondor alone, and told."""
    reading.keep_alone(option, what)


def read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    """machine_count, request_cpus and request_gpus, memory and disk."""
    for name, where in (("machine_count", "Requested/NodeCount"),
                        ("request_cpus", "TaskGroup/TaskDefaults/Requested/Processors"),
                        ("request_gpus", "Requested/Resource[name=GPU]")):
        option = options.get(name)
        if option is None:
            continue
        if _COUNT.fullmatch(option.value or "") and int(option.value or ""):
            more = {"metric": "PerNode"} if name == "request_gpus" and "machine_count" in options else {}
            reading.put(where, int(option.value or ""), option, **more)
            if name == "machine_count":
                reading.put("TaskGroup/TaskCount", int(option.value or ""), option)     # each starts the executable
        else:
            kept_as_it_is(reading, option)
    for name, size in _READ.items():
        option = options.get(name)
        if option is None:
            continue
        tag = "Memory" if name == "request_memory" else "Disk"
        try:
            amount = size.read((option.value or "").strip())
        except ValueError:
            kept_as_it_is(reading, option)
            continue
        more = {"metric": "PerNode"} if "machine_count" in options else {}
        reading.bytes(f"Requested/{tag}", amount, option, **more)
    if (universe := options.get("universe")) is not None and (universe.value or "").lower() not in (
            "vanilla", "5", *(("parallel", "11") if "machine_count" in options else ())):
        reading.keep(universe)


def write_layout(asking: Asking) -> Written:
    """The size of the job: one machine, or machines of the parallel universe, which are all alike."""
    part = one_part(asking)
    nodes = part.node_total or 1
    options: Written = []
    if nodes > 1:
        options += [("universe", "parallel"), ("machine_count", str(nodes))]
        if asking.source != "htcondor":
            asking.note(SITE, part.sources.get("nodes"), "NodeCount: more than one machine needs the parallel "
                        f"universe, which a site has to set up; it starts the program on each of {nodes}",
                        subject="NodeCount")
    if part.nodes_most:
        asking.note(APPROXIMATED, part.sources["nodes"], f"NodeCount: {part.nodes} is taken of {part.nodes} to "
                    f"{part.nodes_most}", subject="NodeCount")
    cpus = _cpus(asking, part, nodes)
    if cpus is not None:
        options.append(("request_cpus", str(cpus)))
    if part.memory is not None:
        options.append(("request_memory", _WRITE["request_memory"](_memory(asking, part, part.memory, nodes))))
        if part.memory.value % (1 << 20):
            asking.note(APPROXIMATED, part.memory.entry, "rounded up to whole MiB")
        for e in part.beside:
            asking.dropped(e, "there is one amount of memory")
    disk = asking.one("Disk", carried=("units", "metric"))
    if disk is not None and (size := asking.in_bytes(disk)) is not None:
        options.append(("request_disk", _WRITE["request_disk"](_disk(asking, part, disk, size, nodes))))
    if part.gpus is not None:
        if part.gpus.kind:
            asking.note(SITE, part.gpus.entry, f"the type {part.gpus.kind} is left out; require_gpus could ask for it")
        gpus = _gpus(asking, part, part.gpus, nodes)
        if gpus:
            options.append(("request_gpus", str(gpus)))
    return options


def _cpus(asking: Asking, part: Part, nodes: int) -> int | None:
    """Processors of one machine."""
    whole, tasks = part.processor_total, part.task_total
    if whole is None or (whole == 1 and part.processors is None and part.cpus is None):
        return None
    if part.nodes is None and part.tasks is None and part.processors is None and tasks is None:
        return part.cpus
    if asking.source == "htcondor" and whole == tasks == nodes and part.cpus is None:
        return None
    cpus = max(1, whole // nodes)
    if tasks is None and cpus > 1 and asking.source != "htcondor":
        asking.note(APPROXIMATED, part.sources.get("processors"), f"Processors: one process with {cpus} processors of "
                    "each machine is started", subject="Processors")
    if tasks is not None and tasks > nodes:
        asking.note(APPROXIMATED, part.sources.get("tasks"), f"TaskCount: {tasks} tasks are {cpus} processors of each "
                    "machine; HTCondor starts one process there", subject="TaskCount")
    if cpus * nodes < whole:
        _fewer(asking, part.sources.get("processors") or part.sources.get("cpus"), "Processors", cpus * nodes, whole)
    return cpus


def _fewer(asking: Asking, entry: Entry | None, what: str, written: int, whole: int) -> None:
    """The finding for what machines that are all alike cannot say without asking for more."""
    message = f"{what}: {written} of {whole} are asked for; all machines of a job are alike"
    if entry is None:
        asking.note(DROPPED, None, message, subject=what)
    else:
        asking.note(DROPPED, entry, message, subject=what)


def _of_machine(part: Part, per: str) -> bool:
    """Whether an amount is that of one machine."""
    return per == "PerNode" or (per == "PerChunk" and part.node_chunks)


def _memory(asking: Asking, part: Part, memory: Amount, nodes: int) -> int:
    """Bytes of one machine."""
    if _of_machine(part, memory.per):
        return memory.value
    total = total_of(memory, part)
    if total is None:
        unknown_factor(asking, memory.entry, f"{memory.per} is written for the machine")
        return memory.value
    if memory.per != "job" and total != memory.value * nodes:
        asking.note(APPROXIMATED, memory.entry, f"written for the machine, {total // nodes // memory.value} times as "
                    "much" if memory.value else "written for the machine")
    return total if nodes == 1 else shared(asking, replace(memory, value=total), nodes, "machines", 1 << 20)


def _disk(asking: Asking, part: Part, disk: Entry, size: Decimal, nodes: int) -> int:
    """Bytes of one machine. size: what the job says, in bytes."""
    amount = int(size.to_integral_value(ROUND_CEILING))
    metric = disk.attributes.get("metric", "")
    per = "task" if disk.level in TASK else {"": "job", "Total": "job", "PerSlot": "PerProcessor"}.get(metric, metric)
    each = Amount(amount, per, disk)
    if _of_machine(part, per):
        whole = amount
    else:
        total = total_of(each, part) or amount
        whole = total if nodes == 1 else shared(asking, replace(each, value=total), nodes, "machines", 1024)
    if whole % 1024:
        asking.note(APPROXIMATED, disk, "rounded up to whole KiB")
    return whole


def _gpus(asking: Asking, part: Part, gpus: Amount, nodes: int) -> int:
    """GPUs of one machine."""
    if _of_machine(part, gpus.per):
        return gpus.value
    total = total_of(gpus, part) or gpus.value
    if total % nodes:
        _fewer(asking, gpus.entry, "GPU", total // nodes * nodes, total)
    return total // nodes


def of_each_machine(asking: Asking, entry: Entry) -> int:
    """How many of another resource one machine is to have."""
    if entry.attributes.get("metric") == "PerNode":
        return int(Decimal(entry.value).to_integral_value(ROUND_CEILING))
    whole = in_all(asking, entry)
    nodes = 1 if whole == 1 else totals_in(asking).layout.node_total or 1
    if whole % nodes:
        _fewer(asking, entry, entry.attributes.get("name", ""), whole // nodes * nodes, whole)
    return whole // nodes


def read_machines(reading: Reading, options: Mapping[str, Option]) -> None:
    """What requirements ask of a machine; what else stands there is kept."""
    option = options["requirements"]
    taken = {o.name for o in reading.options}
    conditions, others = read_requirements(option.value or "")
    for tag, op, value in conditions:
        more = {"op": op} if op != "EQ" else {}
        if (tag == "Memory" and "request_memory" in taken) or (tag == "Processors" and "request_cpus" in taken):
            others.append(f"{'Memory' if tag == 'Memory' else 'Cpus'} >= {value}")
        elif tag == "Memory":
            reading.bytes("Requested/Memory", int(value) << 20, option, metric="PerNode", **more)
        elif tag == "Processors":
            reading.put("TaskGroup/TaskDefaults/Requested/Processors", int(value), option, **more)
        else:
            reading.put(f"Requested/{tag}", value, option, **more)
    kept_terms = [term for term in others if not _read_alternatives(reading, term, option)]
    if kept_terms:
        reading.keep(option._replace(value=" && ".join(kept_terms)))


def _read_alternatives(reading: Reading, text: str, option: Option) -> bool:
    """An expression about one property alone, such as several hosts of which any will do; whether it was one."""
    tags: set[str] = set()

    def term(text: str) -> Term | None:
        """The condition on a name that one alternative is; None for any other."""
        read_condition = condition(text)
        if read_condition is None or read_condition[0] not in (*_SAID, "Feature"):
            return None
        tags.add(read_condition[0])
        return Term(read_condition[2], read_condition[1] == "EQ")

    choice = parsed(text, term)
    if choice is None or len(tags) != 1:
        return False
    put(reading, f"Requested/{tags.pop()}", choice, option)
    return True


_SAID: Final = {"OperatingSystem": "OpSys", "Architecture": "Arch", "Node": "Machine"}


def write_machines(asking: Asking) -> Written:
    """Requirements of all that is asked of a machine."""
    conditions = [(tag, c) for tag in (*_SAID, "Feature") for c in choices(asking, tag)
                  if sayable(asking, c, _not_of_feature if tag == "Feature" else _not_of_machine)]
    hosts = [c for tag, c in conditions if tag == "Node" and any_of(c)]
    if len(hosts) > 1:      # a job has one machine at a time, so any of them
        asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
        conditions = [pair for pair in conditions if pair[1] not in hosts] + [("Node", _any_host(hosts))]
    order = {id(e): at for at, e in enumerate(asking.entries)}
    conditions.sort(key=lambda pair: (isinstance(pair[1], Either), min(order[id(t.entry)] for t in terms(pair[1]))))
    own = asking.extension("requirements", "htcondor")
    several = len(conditions) + (own is not None) > 1
    terms_written = [infix(c, partial(_term, asking, tag), " && ", " || ", inner=several) for tag, c in conditions]
    if own is not None:
        terms_written.append(f"({own.text})" if "||" in own.text and terms_written
                             and not own.text.startswith("(") else own.text)
    return [("requirements", " && ".join(terms_written))] if terms_written else []


def _any_host(hosts: list[Choice]) -> Choice:
    """Any of the hosts of several conditions, each host once."""
    named: dict[str, Term] = {}
    for term in (term for host in hosts for term in any_of(host) or ()):
        for name in expanded([term]) or ():
            named.setdefault(name, Term(name, entry=term.entry))
    return Either(tuple(named.values()))


_ATTRIBUTE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _not_of_feature(term: Term) -> str:
    return "" if term.kind == "name" and _ATTRIBUTE.fullmatch(term.name) else \
        f"{term.name[:80]} is no attribute of a machine"


def _not_of_machine(term: Term) -> str:
    """Why an expression cannot hold a name; a range of names stands there one by one. A backslash before the quote that
    ends a string makes it a part of the string unless nothing follows (seen with the 23.0 bindings)."""
    names = expanded([term])
    if term.name.endswith("\\"):
        return f"{term.name[:80]} ends in a backslash, which no string in an expression can"
    try:
        for name in names or ():
            condor_string(name, "Node")
    except QuotingError as error:
        return str(error)
    return f"the condition on {term.name[:80]} is not carried" if names is None else ""


def _term(asking: Asking, tag: str, term: Term) -> str:
    """One condition of an expression."""
    if tag == "Feature":
        if asking.source != "htcondor":
            asking.note(SITE, term.entry, f"machines may not tell of {term.name} by that name")
        return f"{term.name} {'==' if term.wanted else '=!='} True"
    comparisons = [f"{_SAID[tag]} {'==' if term.wanted else '!='} {condor_string(name, tag)}"
                   for name in expanded([term]) or ()]
    if len(comparisons) > 1 and term.wanted:
        return f"({' || '.join(comparisons)})"
    return " && ".join(comparisons)


def read_command(reading: Reading, options: Mapping[str, Option]) -> None:
    """executable and arguments, and what becomes of them on the machine."""
    if (option := options.get("executable")) is not None and option.value:
        reading.put("Executable", _local(reading, option.value), option)
    if (words := options.get("arguments")) is not None and words.value:
        try:
            arguments = read_arguments(words.value)
        except ValueError as error:
            reading.misfit(words, str(error), 'words, or "words with \'quotes\'"')
            return
        tell_of_macros(reading, words)
        reading.put("Arguments", shlex.join(arguments), words)


def tell_of_macros(reading: Reading, option: Option, text: str | None = None) -> None:
    """The finding for ``$ENV(HOME)`` and others in a value, whose result nothing here knows; text: what is looked at,
    where that is not the whole value."""
    if _CALLS.search((option.value or "") if text is None else text):
        reading.tell(SITE, option, "has macros that only HTCondor replaces; they stay as text")


def _local(reading: Reading, name: str) -> str:
    """``./run.sh``: a name without a folder is a file of the directory of submission, a shell would look for a command
    of that name. So it is in a container too (Cmd and TransferExecutable in the ads that the 23.0 bindings make); where
    it is not transferred, it may be a command there."""
    stays_there = any(o.name == "transfer_executable" and (o.value or "").lower() in ("false", "0", "no")
                      for o in reading.options)
    return f"./{name}" if re.fullmatch(r"[\w.+@%-]+", name) and not stays_there else name


_LITERAL: Final = re.compile(r"\$")
_CALLS: Final = re.compile(r"\$(?!\((?:Process|ProcId|Cluster|ClusterId)\)|INT\()\$?\w*[(\[]", re.IGNORECASE)


def raw_text(asking: Asking, text: str) -> str:
    """A text in which every dollar sign is one, but for the macros of a description that was read."""
    if "$" not in text:
        return text
    if asking.source != "htcondor":
        if OPAQUE.search(text):
            asking.note(APPROXIMATED, None, f"{text[:80]} looks like a macro of HTCondor; its dollar signs are said as "
                        "$(DOLLAR)", "info", "macro")
        return text.replace("$", "$(DOLLAR)")
    unread = asking.extension("queue", "htcondor")
    pattern = OPAQUE if unread is None else opaque(re.findall(r"[A-Za-z_]\w*", unread.text))
    pieces, at = [], 0
    for hit in _LITERAL.finditer(text):
        pieces.append(text[at:hit.start()])
        doubled = hit.start() and text[hit.start() - 1] == "$" and pattern.match(text, hit.start() - 1)
        pieces.append("$" if pattern.match(text, hit.start()) or doubled else "$(DOLLAR)")
        at = hit.end()
    return "".join([*pieces, text[at:]])


def write_command(asking: Asking) -> Written:
    """executable and arguments; a script of the document is a file beside it."""
    entry, arguments = asking.one("Executable"), asking.one("Arguments")
    text = "" if entry is None else entry.text
    script = text.startswith("#") and text[1:] in asking.document.files
    options: Written = []
    if script:
        options.append(("executable", f"{name_of(asking)}.sh"))
    elif text:
        options.append(("executable", raw_text(asking, _file(asking, entry, text))))
    if words := words_of(asking, arguments):
        options.append(("arguments", write_arguments(words, lambda word: raw_text(asking, word))))
    return options


def _file(asking: Asking, entry: Entry | None, text: str) -> str:
    """The executable as a file of the directory of submission."""
    if re.fullmatch(r"\./[^/]+", text):
        return text[2:]
    if "/" not in text and asking.source != "htcondor":
        asking.note(APPROXIMATED, entry, f"HTCondor takes {text} for a file of the directory of submission, not for a "
                    "command")
    return text


_ODD: Final = re.compile(r"[^\w.-]")


def name_of(asking: Asking) -> str:
    """What the files of a job are called."""
    stem = asking.context.name or str(asking.job.value("Name") or asking.job.value("Id") or "job")
    return _ODD.sub("_", stem).strip(".")[:100] or "job"


def read_variables(reading: Reading, options: Mapping[str, Option]) -> None:
    """environment and getenv."""
    option = options.get("environment")
    if option is not None and option.value:
        try:
            variables = read_environment(option.value)
        except ValueError as error:
            reading.misfit(option, str(error), '"A=1 B=2" or A=1;B=2')
            variables = {}
        for name, value in variables.items():
            reading.put("Environment/Variable", value, option, name=name)
    export = options.get("getenv")
    if export is None:
        return
    text = (export.value or "").lower()
    scope = reading.scope(("Environment",))
    assert isinstance(scope, Environment)
    if text in ("true", "false", "1", "0", "yes", "no"):
        scope.attributes = {"export": "true" if text in ("true", "1", "yes") else "false"}
    elif re.fullmatch(r"[A-Za-z_]\w*(\s*,\s*[A-Za-z_]\w*)*", export.value or "", re.ASCII):
        scope.attributes = {"export": "false"}
        reading.put("Extension[name=ExportNames,type=Scheduler]", re.sub(r"\s", "", export.value or ""), export)
    else:
        kept_as_it_is(reading, export, "patterns of names")


def write_variables(asking: Asking) -> Written:
    """environment and getenv."""
    export = asking.export()
    names = asking.extension("ExportNames")
    options: Written = []
    variables = {e.attributes["name"]: e.text for e in named_variables(asking) if _sayable(asking, e)}
    if variables:
        options.append(("environment", write_environment(variables, lambda text: raw_text(asking, text))))
    if export:
        options.append(("getenv", "True"))
        if names is not None:
            asking.note(APPROXIMATED, names, "all variables of the submitter are there, these too", "info")
    elif names is not None:
        options.append(("getenv", names.text))
    elif export is False and asking.extension("getenv", "htcondor") is None:
        options.append(("getenv", "False"))
    return options


def _sayable(asking: Asking, e: Entry) -> bool:
    if e.text.isprintable() or "\t" in e.text:
        return True
    asking.dropped(e, "a line break cannot stand in a variable")
    return False
