"""What the commands of HTCondor's submit descriptions mean: the table of the dialect, and how each is read and written.

Source: condor_submit(1); values were compared with what the parser of the 23.0 bindings makes of them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from sssjob.model import Environment
from sssjob.templates.quoting import QuotingError, condor_string
from sssjob.translators.asked import NEAREST
from sssjob.translators.scripts._condor_lines import OPAQUE, opaque
from sssjob.translators.scripts._condor_values import (
    read_arguments,
    read_environment,
    read_requirements,
    write_arguments,
    write_environment,
)
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    SITE,
    AnyRow,
    Asking,
    Entry,
    Reading,
    Row,
    Special,
)
from sssjob.translators.scripts.common import Written, array, file_name, mail, merged, named_variables, read_mail
from sssjob.translators.scripts.grammars import COUNT, INTEGER, Kept, file_reader
from sssjob.translators.scripts.layout import Part, fits, one_part, plain, shared, unknown_factor
from sssjob.translators.scripts.raw import Option, shell_words
from sssjob.units import to_bytes

__all__ = ["ALIASES", "ROWS", "TOKENS", "kept_as_it_is", "name_of"]

#: Another name of a command -> the one that wins over it.
ALIASES: Final = {
    "args": "arguments", "env": "environment", "get_env": "getenv", "initial_dir": "initialdir", "iwd": "initialdir",
    "job_iwd": "initialdir", "in": "input", "stdin": "input", "out": "output", "stdout": "output", "err": "error",
    "stderr": "error", "prio": "priority", "jobprio": "priority", "batchname": "batch_name",
    "jobbatchname": "batch_name", "cmd": "executable", "requestcpus": "request_cpus", "request_cpu": "request_cpus",
    "requestmemory": "request_memory", "requestdisk": "request_disk", "requestgpus": "request_gpus",
    "request_gpu": "request_gpus", "node_count": "machine_count", "nodecount": "machine_count",
    "jobnotification": "notification", "notifyuser": "notify_user", "accountinggroup": "accounting_group",
    "acctgroup": "accounting_group", "acct_group": "accounting_group", "jobuniverse": "universe",
}


# -- grammars
def _size(unit: int) -> Mapping[str, int]:
    powers = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
    return {"": unit} | {s + b: power for s, power in powers.items() for b in ("", "b")}


def _bytes(text: str, unit: int) -> int:
    """Bytes of ``2 GB``. ValueError for another form, which may be an expression."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([A-Za-z]{0,2})", text.strip(), re.ASCII)
    units = _size(unit)
    if found is None or found[2].lower() not in units:
        raise ValueError("is no size")
    return -int(-(Decimal(found[1]) * units[found[2].lower()]) // 1)


_SIZES: Final = {"request_memory": 1 << 20, "request_disk": 1 << 10}


def _text_of_size(value: int, smallest: str) -> str:
    """Bytes in the largest unit that is exact, rounded up to whole ones of the smallest."""
    names = ("KB", "MB", "GB", "TB")[("KB", "MB").index(smallest):]
    whole = -(-value // _SIZES["request_disk" if smallest == "KB" else "request_memory"])
    for name in names[:-1]:
        if whole % 1024 or not whole:
            return f"{whole}{name}"
        whole //= 1024
    return f"{whole}{names[-1]}"


# -- reading
def kept_as_it_is(reading: Reading, option: Option, what: str = "an expression that only HTCondor can compute") -> None:
    """A value that is kept for HTCondor alone, and told."""
    reading.tell(SITE, option, f"{what}; kept as it is")
    reading.keep(option)


def _read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    for name, where in (("machine_count", "Requested/NodeCount"),
                        ("request_cpus", "TaskGroup/TaskDefaults/Requested/Processors"),
                        ("request_gpus", "Requested/Resource[name=GPU]")):
        option = options.get(name)
        if option is None:
            continue
        if re.fullmatch(r"\d{1,9}", option.value or "", re.ASCII) and int(option.value or ""):
            more = {"metric": "PerNode"} if name == "request_gpus" and "machine_count" in options else {}
            reading.put(where, int(option.value or ""), option, **more)
        else:
            kept_as_it_is(reading, option)
    for name, unit in _SIZES.items():
        option = options.get(name)
        if option is None:
            continue
        tag = "Memory" if name == "request_memory" else "Disk"
        try:
            amount = _bytes(option.value or "", unit)
        except ValueError:
            kept_as_it_is(reading, option)
            continue
        more = {"metric": "PerNode"} if "machine_count" in options else {}
        reading.bytes(f"Requested/{tag}", amount, option, **more)
    if (universe := options.get("universe")) is not None and (universe.value or "").lower() not in (
            "vanilla", "5", *(("parallel", "11") if "machine_count" in options else ())):
        reading.keep(universe)


def _write_layout(asking: Asking) -> Written:
    part = one_part(asking)
    many = part.nodes is not None and part.nodes > 1
    made: Written = []
    if many:
        made += [("universe", "parallel"), ("machine_count", str(part.nodes))]
        if asking.source != "htcondor":
            asking.note(SITE, None, "NodeCount: more than one machine needs the parallel universe, which a site has to "
                        "set up", subject="NodeCount")
    if part.nodes_most:
        asking.note(APPROXIMATED, None, f"NodeCount: {part.nodes} is taken of {part.nodes} to {part.nodes_most}",
                    subject="NodeCount")
    cpus = _cpus(asking, part)
    if cpus is not None:
        made.append(("request_cpus", str(cpus)))
    if part.memory is not None:
        made.append(("request_memory", _text_of_size(_memory(asking, part, cpus or 1), "MB")))
        if part.memory.value % (1 << 20):
            asking.note(APPROXIMATED, part.memory.entry, "rounded up to whole MiB")
        for e in part.beside:
            asking.dropped(e, "there is one amount of memory")
    disk = asking.one("Disk", carried=("units", "metric"))
    if disk is not None:
        amount = int(to_bytes(Decimal(disk.value), disk.attributes.get("units")))
        if amount % 1024:
            asking.note(APPROXIMATED, disk, "rounded up to whole KiB")
        made.append(("request_disk", _text_of_size(amount, "KB")))
    if part.gpus is not None:
        gpus = part.gpus
        if gpus.kind:
            asking.note(SITE, gpus.entry, f"the type {gpus.kind} is left out; require_gpus could ask for it")
        count = gpus.value * (part.tasks or 1) if gpus.per == "task" else gpus.value
        if many and gpus.per in ("job", "task"):
            count = shared(asking, dataclasses.replace(gpus, value=count), part.nodes or 1, "machines")
        made.append(("request_gpus", str(count)))
    return made


def _cpus(asking: Asking, part: Part) -> int | None:
    """Processors of one machine."""
    nodes = part.nodes or 1
    tasks = part.tasks or (part.per_node * nodes if part.per_node else None)
    whole = part.processors if part.processors is not None else None
    if whole is None and tasks is not None and tasks > 1:
        whole = tasks * (part.cpus or 1)
    if whole is None:
        return part.cpus
    cpus = -(-whole // nodes)
    if tasks is not None and tasks > 1:
        asking.note(APPROXIMATED, None, f"TaskCount: {tasks} tasks are {cpus} processors of each machine; HTCondor "
                    "starts one process there", subject="TaskCount")
    elif whole % nodes:
        asking.note(APPROXIMATED, None, "Processors: shared out among the machines, rounded up", subject="Processors")
    return cpus


def _memory(asking: Asking, part: Part, cpus: int) -> int:
    """Bytes of one machine."""
    memory = part.memory
    assert memory is not None
    nodes, tasks = part.nodes or 1, part.tasks or 1
    if memory.per == "job":
        return memory.value if nodes == 1 else shared(asking, memory, nodes, "machines")
    if memory.per in ("PerNode", "PerChunk"):
        return memory.value
    factor = {"task": -(-tasks // nodes), "PerProcessor": cpus,
              "PerGPU": part.gpus.value if part.gpus is not None else 1}.get(memory.per)
    if factor is None:
        unknown_factor(asking, memory, f"{memory.per} is written for the machine")
        return memory.value
    if factor != 1:
        asking.note(APPROXIMATED, memory.entry, f"written for the machine, {factor} times as much")
    return memory.value * factor


def _read_requirements(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["requirements"]
    taken = {o.name for o in reading.options}
    found, others = read_requirements(option.value or "")
    for tag, op, value in found:
        more = {"op": op} if op != "EQ" else {}
        if (tag == "Memory" and "request_memory" in taken) or (tag == "Processors" and "request_cpus" in taken):
            others.append(f"{'Memory' if tag == 'Memory' else 'Cpus'} >= {value}")
        elif tag == "Memory":
            reading.bytes("Requested/Memory", int(value) << 20, option, metric="PerNode", **more)
        elif tag == "Processors":
            reading.put("TaskGroup/TaskDefaults/Requested/Processors", int(value), option, **more)
        else:
            reading.put(f"Requested/{tag}", value, option, **more)
    if others:
        reading.keep(option._replace(value=" && ".join(others)))


_SAID: Final = {"OperatingSystem": "OpSys", "Architecture": "Arch", "Node": "Machine"}


def _write_requirements(asking: Asking) -> Written:
    asked = {id(e): e for tag in (*_SAID, "Feature") for e in asking.find(tag)}
    wanted = [e for e in asked.values() if e.tag == "Node" and e.attributes.get("op", "EQ") == "EQ"]
    hosts = _hosts(asking, wanted) if len(wanted) > 1 or any("aggregation" in e.attributes for e in wanted) else ""
    for e in wanted if hosts or len(wanted) > 1 else ():
        del asked[id(e)]
    terms = [term for e in asking.entries if id(e) in asked and (term := _term(asking, e))]
    terms += [hosts] if hosts else []
    own = asking.extension("requirements", "htcondor")
    if own is not None:
        terms.append(f"({own.text})" if "||" in own.text and terms and not own.text.startswith("(") else own.text)
    return [("requirements", " && ".join(terms))] if terms else []


def _hosts(asking: Asking, entries: list[Entry]) -> str:
    """Several hosts: a job has one machine at a time, so any of them."""
    names: list[str] = []
    for e in entries:
        e.understood |= {"op", "aggregation"}
        if e.attributes.keys() & {"conj", "group", "preference"} or e.attributes.get("aggregation", "List") != "List":
            asking.dropped(e, f"{e.text} is no list of names")
        else:
            names += [name.strip() for name in e.text.split(",")]
    if len(names) > 1:
        asking.note(APPROXIMATED, None, "Node: any of the hosts, not all of them", subject="Node")
    try:
        terms = [f"Machine == {condor_string(name, 'Node')}" for name in names]
    except QuotingError as error:
        asking.dropped(entries[0], str(error))
        return ""
    return f"({' || '.join(terms)})" if len(terms) > 1 else "".join(terms)


def _term(asking: Asking, e: Entry) -> str:
    """One condition of an expression; empty for what cannot be said."""
    if e.tag == "Feature":
        if not plain([e]) or not re.fullmatch(r"[A-Za-z_]\w*", e.text, re.ASCII):
            asking.dropped(e, f"{e.text[:80]} is no attribute of a machine")
            return ""
        if asking.source != "htcondor":
            asking.note(SITE, e, f"machines may not tell of {e.text} by that name")
        return f"{e.text} == True"
    e.understood |= {"op"}
    op = e.attributes.get("op", "EQ")
    if op not in ("EQ", "NE") or e.attributes.keys() & {"conj", "group", "preference", "aggregation"}:
        asking.dropped(e, f"the condition on {e.text} is not carried")
        return ""
    try:
        return f"{_SAID[e.tag]} {'==' if op == 'EQ' else '!='} {condor_string(e.text, e.tag)}"
    except QuotingError as error:
        asking.dropped(e, str(error))
        return ""


def _read_command(reading: Reading, options: Mapping[str, Option]) -> None:
    if (option := options.get("executable")) is not None and option.value:
        reading.put("Executable", option.value, option)
    if (words := options.get("arguments")) is not None and words.value:
        try:
            made = read_arguments(words.value)
        except ValueError as error:
            reading.misfit(words, str(error), 'words, or "words with \'quotes\'"')
            return
        if _CALLS.search(words.value):
            reading.tell(SITE, words, "has macros that only HTCondor replaces; they stay as text")
        reading.put("Arguments", shlex.join(made), words)


_LITERAL: Final = re.compile(r"\$")
_CALLS: Final = re.compile(r"\$\$?\w*[(\[]")


def _raw(asking: Asking, text: str) -> str:
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
    made, at = [], 0
    for hit in _LITERAL.finditer(text):
        made.append(text[at:hit.start()])
        doubled = hit.start() and text[hit.start() - 1] == "$" and pattern.match(text, hit.start() - 1)
        made.append("$" if pattern.match(text, hit.start()) or doubled else "$(DOLLAR)")
        at = hit.end()
    return "".join([*made, text[at:]])


def _write_command(asking: Asking) -> Written:
    entry, arguments = asking.one("Executable"), asking.one("Arguments")
    text = "" if entry is None else entry.text
    script = text.startswith("#") and text[1:] in asking.document.files
    made: Written = []
    if script:
        made.append(("executable", f"{name_of(asking)}.sh"))
    elif text:
        made.append(("executable", _raw(asking, text)))
    if arguments is not None:
        try:
            words = shell_words(arguments.text)
        except ValueError as error:
            asking.note(APPROXIMATED, arguments, f"taken as one argument: {error}")
            words = [arguments.text]
        if words:
            made.append(("arguments", write_arguments(words, lambda word: _raw(asking, word))))
    return made


def name_of(asking: Asking) -> str:
    """What the files of a job are called."""
    said = asking.context.name or str(asking.job.value("Name") or asking.job.value("Id") or "job")
    return re.sub(r"[^\w.-]", "_", said).strip(".")[:100] or "job"


def _read_environment(reading: Reading, options: Mapping[str, Option]) -> None:
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


def _write_environment(asking: Asking) -> Written:
    environment = asking.job.environment
    export = environment.export if environment is not None else None
    names = asking.extension("ExportNames")
    made: Written = []
    variables = {e.attributes["name"]: e.text for e in named_variables(asking) if _sayable(asking, e)}
    if variables:
        made.append(("environment", write_environment(variables, lambda text: _raw(asking, text))))
    if export:
        made.append(("getenv", "True"))
        if names is not None:
            asking.note(APPROXIMATED, names, "all variables of the submitter are there, these too", "info")
    elif names is not None:
        made.append(("getenv", names.text))
    elif export is False and asking.extension("getenv", "htcondor") is None:
        made.append(("getenv", "False"))
    return made


def _sayable(asking: Asking, e: Entry) -> bool:
    if e.text.isprintable() or "\t" in e.text:
        return True
    asking.dropped(e, "a line break cannot stand in a variable")
    return False


# -- files, queue
TOKENS: Final = {"{jobid}": "$(Cluster)", "{index}": "$(Process)", "{node_rank}": "$(Node)"}
_NATIVE: Final = {"cluster": "{jobid}", "clusterid": "{jobid}", "process": "{index}", "procid": "{index}",
                  "node": "{node_rank}"}
_INDEX: Final = "$INT(array_index)"
_pattern = file_reader({name: token for name, token in _NATIVE.items()}, r"\$\((?P<name>[a-z]+)\)")
_STREAMS: Final = (("input", "InputFile"), ("output", "OutputFile"), ("error", "ErrorFile"))


def _path(text: str) -> str:
    lower = re.sub(r"\$\((?:Cluster|ClusterId|Process|ProcId|Node)\)", lambda hit: hit[0].lower(), text,
                   flags=re.IGNORECASE)
    return _pattern(re.sub(r"\$INT\(array_index\)", "$(process)", lower, flags=re.IGNORECASE))


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    output = options.get("output")
    for name, tag in _STREAMS:
        option = options.get(name)
        if option is None or not option.value:
            continue
        if name == "error" and output is not None and output.value == option.value:
            reading.put(tag, "", option, redirectList="Merge")      # the same file: HTCondor merges the streams
        else:
            reading.put(tag, _path(option.value), option)


def _write_files(asking: Asking) -> Written:
    entry = asking.extension("Array")
    found = re.fullmatch(r"(\d+)(?:-\d+(?::(\d+))?)?(?:%\d+)?", entry.text, re.ASCII) if entry is not None else None
    shifted = found is not None and (found[1] != "0" or found[2] not in (None, "1"))

    def literal(text: str) -> str:
        return _raw(asking, text)

    made: Written = []
    streams = [file_name(asking, tag, literal, directory=tag == "InputFile") for _, tag in _STREAMS]
    join = merged(asking, streams[2], streams[1])
    names = [s[0] for s in streams]
    if join == "oe":
        names[2] = names[1]
    elif join == "eo":
        names[1] = names[2]
        for tag in ("OutputFile", "ErrorFile"):
            asking.note(APPROXIMATED, None, f"{tag}: both streams go into one file", "info", tag)
    elif names[1] is not None and names[1] == names[2]:
        asking.note(APPROXIMATED, None, "ErrorFile: both streams go into one file", "info", "ErrorFile")
    if join and names[1] is None:
        asking.note(APPROXIMATED, None, "ErrorFile: without a file HTCondor discards the streams", subject="ErrorFile")
    for (name, _), value in zip(_STREAMS, names, strict=True):
        if value is not None:
            made.append((name, value.replace("$(Process)", _INDEX) if shifted else value))
    return made


def _read_staging(reading: Reading, options: Mapping[str, Option]) -> None:
    """Files by name; whole folders and macros are kept as they are."""
    remaps = options.get("transfer_output_remaps")
    renamed: dict[str, str] = {}
    if remaps is not None:
        pairs = [p.partition("=") for p in (remaps.value or "").strip('" ').split(";") if p.strip()]
        renamed = {k.strip(): v.strip() for k, _, v in pairs}
    for name, kind in (("transfer_input_files", "StageIn"), ("transfer_output_files", "StageOut")):
        option = options.get(name)
        if option is None or not option.value:
            continue
        files = [f for f in re.split(r"\s*,\s*", option.value.strip()) if f]
        if any(f.endswith("/") or "$" in f or '"' in f for f in files):
            kept_as_it_is(reading, option, "folders or macros among the files")
            continue
        for file in files:
            target = file.rstrip("/").rpartition("/")[2]
            if kind == "StageOut":
                target = renamed.pop(file, target)
            reading.put(f"Extension[name={kind},type=PSIJ]", json.dumps({"source": file, "target": target}), option)
    if renamed and remaps is not None:
        reading.keep(remaps)


def _write_staging(asking: Asking) -> Written:
    made: Written = []
    renamed: list[str] = []
    for name, kind in (("transfer_input_files", "StageIn"), ("transfer_output_files", "StageOut")):
        files: list[str] = []
        for e in asking.find("Extension", NEAREST, name=kind, type="PSIJ"):
            try:
                found = json.loads(e.text)
                source, target = str(found["source"]), str(found["target"])
            except (ValueError, LookupError, TypeError):
                asking.dropped(e, "is no file to transfer")
                continue
            base = source.rstrip("/").rpartition("/")[2]
            more = set(found) - {"source", "target"}
            if more or re.search(r"[,;=\"\s$]", source + target) or (kind == "StageIn" and target != base):
                asking.dropped(e, f"{source} to {target}: the file keeps its name, and is always transferred")
                continue
            files.append(source)
            if target != base:
                renamed.append(f"{source}={target}")
        if files:
            made.append((name, ", ".join(files)))
    if renamed:
        made.append(("transfer_output_remaps", condor_string(";".join(renamed))))
    return made


def _read_array(reading: Reading, options: Mapping[str, Option]) -> None:
    """What ``_job`` found out about the queue statement."""
    if (option := options.get("queue")) is not None:
        reading.put("Extension[name=Array,type=Scheduler]", option.value or "", option)
    if (unread := options.get("queue from")) is not None:
        reading.put("Extension[name=queue,type=htcondor]", unread.value or "", unread)


_RANGE: Final = re.compile(r"(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?(?:%(\d{1,9}))?", re.ASCII)


def _write_array(asking: Asking) -> Written:
    unread = asking.extension("queue", "htcondor")
    text = array(asking, lists=False, step=True)
    if unread is not None:
        return [("queue", unread.text.partition(" ")[2])]
    found = None if text is None else _RANGE.fullmatch(text)
    if found is None:
        if text is not None:
            entry = asking.extension("Array")
            assert entry is not None
            asking.dropped(entry, f"{text} is no range")
        return []
    first, last, step = int(found[1]), int(found[2]), int(found[3] or 1) or 1
    made: Written = []
    if first or step != 1 or last <= first:     # queue 1 alone is no array
        factor = f" * {step}" if step != 1 else ""
        made.append(("array_index", f"$(Process){factor}{f' + {first}' if first else ''}"))
    if found[4]:
        made.append(("max_materialize", found[4]))
    return [*made, ("queue", str(max(0, last - first) // step + 1))]


# -- mail, priority, licences, times
_MAIL: Final = {"always": ["all"], "complete": ["end"], "error": ["fail"], "never": ["none"]}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options.get("notification")
    events = _MAIL.get((option.value or "").lower(), []) if option is not None else []
    if option is not None and not events:
        reading.misfit(option, "is no notification", "Always, Complete, Error or Never")
        option = None
    read_mail(reading, events, options.get("notify_user"), option)


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, {"all": "Always", "end": "Complete", "fail": "Error", "none": "Never"},
                          {"abort": "fail"})
    if "Complete" in words and "Error" in words:
        asking.note(APPROXIMATED, asking.extension("MailEvents"), "Complete tells of both", "info",
                    "Extension MailEvents")
    word = next((w for w in ("Always", "Complete", "Error", "Never") if w in words), None)
    made: Written = [("notification", word)] if word else []
    return [*made, ("notify_user", address)] if address else made


def _read_hold(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["hold"]
    if (option.value or "").lower() in ("true", "1", "yes"):
        reading.put("Hold", "User", option)
    elif (option.value or "").lower() not in ("false", "0", "no"):
        reading.misfit(option, "is neither True nor False", "True or False")


def _write_hold(asking: Asking) -> Written:
    entry = asking.one("Hold")
    if entry is None:
        return []
    if entry.text != "User":
        asking.dropped(entry, f"a hold of {entry.text} cannot be asked for")
        return []
    return [("hold", "True")]


def _read_licences(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["concurrency_limits"]
    found = [re.fullmatch(r"([\w.]+)(?::(\d{1,9}))?", p.strip(), re.ASCII) for p in (option.value or "").split(",")]
    if not all(found):
        kept_as_it_is(reading, option)
        return
    for hit in found:
        assert hit is not None
        reading.put("Requested/Resource", int(hit[2] or 1), option, name="License", type=hit[1])


def _write_licences(asking: Asking) -> Written:
    made = []
    for e in asking.find("Resource", name="License"):
        e.understood |= {"type"}
        kind = e.attributes.get("type", "license")
        if fits(asking, e, kind):
            count = int(float(e.text))
            made.append(kind if count == 1 else f"{kind}:{count}")
    return [("concurrency_limits", ", ".join(made))] if made else []


def _read_resources(reading: Reading, options: Mapping[str, Option]) -> None:
    """``request_NAME`` of another resource than those HTCondor knows."""


def _write_resources(asking: Asking) -> Written:
    made: Written = []
    for e in asking.find("Resource"):
        name = e.attributes.get("name", "")
        if name in ("GPU", "License"):
            e.used = bool(e.understood & {"units", "type"})
            continue
        e.understood |= {"name", "metric", "type"}
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) or "type" in e.attributes:
            asking.dropped(e, f"{name} cannot be requested")
            continue
        if asking.source != "htcondor":
            asking.note(SITE, e, f"machines may not have a resource {name}")
        made.append(("request_resource", f"{name} = {int(float(e.text))}"))
    return made


def _read_seconds(reading: Reading, options: Mapping[str, Option]) -> None:
    for name, where in (("allowed_execute_duration", "Requested/Duration"), ("deferral_time", "EligibleTime"),
                        ("priority", "Priority")):
        option = options.get(name)
        if option is None:
            continue
        try:
            (INTEGER if name == "priority" else COUNT).read(option.value or "")
        except (ValueError, Kept):
            kept_as_it_is(reading, option)
            continue
        reading.put(where, int(option.value or ""), option)


def _write_seconds(asking: Asking) -> Written:
    made: Written = []
    entry = asking.at("Requested/Duration")
    if entry is not None:
        if int(entry.text) > 0:
            made.append(("allowed_execute_duration", entry.text))
        else:
            asking.dropped(entry, "no time at all cannot be asked for")
    begin, priority = asking.one("EligibleTime"), asking.one("Priority")
    if begin is not None:
        made.append(("deferral_time", begin.text))
    if priority is not None:
        if asking.source not in ("", "htcondor"):
            asking.note(APPROXIMATED, priority, "larger is sooner, but only among the jobs of one user")
        made.append(("priority", priority.text))
    nice = asking.extension("Nice") if priority is None else None
    if nice is not None and re.fullmatch(r"-?\d{1,9}", nice.text, re.ASCII):
        asking.note(APPROXIMATED, nice, "larger is later there, sooner here; the sign is turned")
        made.append(("priority", str(-int(nice.text))))
    elif nice is not None:
        asking.dropped(nice)
    return made


def _read_nothing(reading: Reading, options: Mapping[str, Option]) -> None:
    """The macro of an index that was shifted says nothing by itself."""


def _write_restart(asking: Asking) -> Written:
    entry = asking.one("Restartable")
    if entry is not None and entry.value is False:
        asking.dropped(entry, "a job that is driven from its machine starts again")
    elif entry is not None:
        asking.note(APPROXIMATED, entry, "a job that is driven from its machine starts again anyway", "info")
    return []


#: Commands that only HTCondor has, in the order of writing. Others that it may know are kept too.
_OWN: Final = (
    "docker_image", "container_image", "docker_network_type", "transfer_executable", "should_transfer_files",
    "when_to_transfer_output", "transfer_output_remaps", "transfer_checkpoint_files", "checkpoint_exit_code",
    "preserve_relative_paths", "stream_input", "stream_output", "stream_error", "log", "log_xml", "append_files",
    "rank", "require_gpus", "gpus_minimum_capability", "gpus_maximum_capability", "gpus_minimum_memory",
    "gpus_minimum_runtime", "nice_user", "accounting_group_user", "max_retries", "retry_until", "success_exit_code",
    "on_exit_hold", "on_exit_remove", "on_exit_hold_reason", "periodic_hold", "periodic_release", "periodic_remove",
    "periodic_hold_reason", "hold_kill_sig", "kill_sig", "kill_sig_timeout", "remove_kill_sig",
    "job_max_vacate_time", "allowed_job_duration", "job_lease_duration", "leave_in_queue", "max_idle", "cron_minute",
    "cron_hour", "cron_day_of_month", "cron_month", "cron_day_of_week", "deferral_window", "deferral_prep_time",
    "coresize", "core_size", "image_size", "email_attributes", "encrypt_execute_directory", "run_as_owner",
    "load_profile", "want_graceful_removal", "x509userproxy", "use_x509userproxy", "use_oauth_services",
    "grid_resource", "shell", "description", "environment_shell", "dont_encrypt_input_files", "manifest",
)

ROWS: Final[tuple[AnyRow, ...]] = (
    Row("batch_name", "Name"),
    Special(("executable", "arguments"), _read_command, _write_command),
    Special(("environment", "getenv"), _read_environment, _write_environment),
    Row("initialdir", "InitialWorkingDirectory"),
    Special(("input", "output", "error"), _read_files, _write_files),
    Special(("transfer_input_files", "transfer_output_files", "transfer_output_remaps"), _read_staging,
            _write_staging),
    Special(("universe", "machine_count", "request_cpus", "request_memory", "request_disk", "request_gpus"),
            _read_layout, _write_layout, part=True),
    Row("accounting_group", "Project"),
    Special(("allowed_execute_duration", "deferral_time", "priority"), _read_seconds, _write_seconds),
    Special(("requirements",), _read_requirements, _write_requirements),
    Special(("concurrency_limits",), _read_licences, _write_licences),
    Special(("request_resource",), _read_resources, _write_resources),
    Special(("notification", "notify_user"), _read_mail, _write_mail),
    Special(("hold",), _read_hold, _write_hold),
    Special(("restart",), _read_nothing, _write_restart),
    *(Row(name) for name in _OWN if name not in ("transfer_output_remaps",)),
    Special(("array_index", "max_materialize", "queue", "queue from"), _read_array, _write_array),
)
