"""Slurm's batch scripts, as sbatch reads them.

Source: sbatch(1) of 22.05 and what sbatch 22.05.8 printed for small cases (``sbatch -vv``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sssjob.lexical import LexicalError
from sssjob.nodeset import NodeSet
from sssjob.templates.quoting import Directive, sbatch
from sssjob.translators.asked import Entry
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    CONTRADICTORY,
    SITE,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Scan,
    Special,
    table,
    translator,
)
from sssjob.translators.scripts.common import (
    Written,
    array,
    dependencies,
    file_name,
    mail,
    merged,
    read_dependencies,
    read_mail,
    read_variables,
    variables,
)
from sssjob.translators.scripts.grammars import (
    COUNT,
    INTEGER,
    SLURM_MINUTES,
    SLURM_SIZE,
    SLURM_TIME,
    Grammar,
    Kept,
    file_reader,
)
from sssjob.translators.scripts.layout import (
    Amount,
    Part,
    fits,
    part_of,
    plain,
    shared,
    size,
    task_processors,
    unknown_factor,
)
from sssjob.translators.scripts.raw import Line, Option, Refusal, Word, slurm_words

__all__ = ["DIALECT", "TRANSLATOR"]

# -- the first stage
#: Long option -> "" no argument, ":" one, "?" one only after ``=``.
_LONG: Final = dict.fromkeys((
    "contiguous", "get-user-env", "help", "hold", "ignore-pbs", "no-kill", "no-requeue", "overcommit",
    "oversubscribe", "parsable", "quiet", "reboot", "requeue", "share", "spread-job", "test-only", "usage",
    "use-min-nodes", "verbose", "version", "wait"), "") | dict.fromkeys(("exclusive", "nice", "propagate"), "?") | \
    dict.fromkeys((
        "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir", "cluster-constraint", "clusters",
        "comment", "constraint", "container", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu",
        "cpus-per-task", "deadline", "delay-boot", "dependency", "distribution", "error", "exclude", "export",
        "export-file", "extra-node-info", "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket",
        "gpus-per-task", "gres", "gres-flags", "hint", "input", "job-name", "kill-on-invalid-dep", "licenses",
        "mail-type", "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network",
        "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
        "ntasks-per-socket", "open-mode", "output", "partition", "power", "prefer", "priority", "profile", "qos",
        "reservation", "signal", "sockets-per-node", "switches", "tasks-per-node", "thread-spec", "threads-per-core",
        "time", "time-min", "tmp", "uid", "wait-all-nodes", "wckey", "wrap"), ":")
_SAME: Final = {"share": "oversubscribe", "tasks-per-node": "ntasks-per-node"}
_SHORT: Final = {
    "a": "array", "A": "account", "b": "begin", "B": "extra-node-info", "c": "cpus-per-task", "C": "constraint",
    "d": "dependency", "D": "chdir", "e": "error", "F": "nodefile", "G": "gpus", "h": "help", "H": "hold",
    "i": "input", "J": "job-name", "k": "no-kill", "L": "licenses", "m": "distribution", "M": "clusters",
    "n": "ntasks", "N": "nodes", "o": "output", "O": "overcommit", "p": "partition", "q": "qos", "Q": "quiet",
    "s": "oversubscribe", "S": "core-spec", "t": "time", "v": "verbose", "V": "version", "w": "nodelist", "W": "wait",
    "x": "exclude",
}
_PREFIXES: Final = ("#SBATCH", "#SLURM")
_PARTS: Final = ("hetjob", "packjob")


def _header(lines: list[Line]) -> int:
    """How many lines are read: up to the first that is neither blank nor, after blanks, begins with ``#``."""
    for index, line in enumerate(lines):
        if line.text.strip() and not line.text.lstrip().startswith("#"):
            return index
    return len(lines)


def _live(lines: list[Line]) -> list[Line]:
    return [line for line in lines[:_header(lines)] if line.text.startswith(_PREFIXES)]


def scan(reading: Reading, lines: list[Line]) -> Scan:
    """The directives of a script. Words of all lines are one command line, so that an option may find its value on the
    next line."""
    first = lines[0] if lines else Line(1, "")
    if not first.text.startswith("#!"):
        reading.refuse("sbatch wants #! at the very beginning"
                       + (", before it stands a byte order mark" if first.text.startswith("\ufeff#!") else ""), 1,
                       text=first.text)
    broken = next((line for line in lines if line.end == "\r\n"), None)
    if broken is not None:
        reading.refuse("DOS line breaks, which sbatch refuses", broken.number, len(broken.text) + 1)
        lines = [Line(line.number, line.text, "\n" if line.end else "") for line in lines]
    made, words = Scan(), list[Word]()
    end = _header(lines)
    texts = {line.number: line.text for line in lines}
    for index, line in enumerate(lines):
        if index >= end or not line.text.startswith(_PREFIXES):
            _dead(reading, line, index >= end)
            made.rest.append(line)
            continue
        found = _words(reading, line)
        if found and found[0].text in _PARTS:
            made.components[-1] += parse(reading, words, texts)
            made.components.append([])
            words = []
        else:
            words += found
    made.components[-1] += parse(reading, words, texts)
    if not any(o.name == "--ignore-pbs" for o in made.components[0]):
        _foreign(reading, lines, end, made)
    return made


def _dead(reading: Reading, line: Line, late: bool) -> None:
    text = line.text.lstrip()
    if text.startswith("#SBATCH") and (late or text != line.text):
        why = "sbatch stops reading at the first command" if late else "blanks stand before it"
        reading.dead(line, why, len(line.text) - len(text) + 1)


def _words(reading: Reading, line: Line) -> list[Word]:
    prefix = _PREFIXES[0] if line.text.startswith(_PREFIXES[0]) else _PREFIXES[1]
    if prefix == "#SLURM":
        reading.refuse("#SLURM is read as #SBATCH, with an error message", line.number, 1, "#SLURM", line.text)
    try:
        words, ignored = slurm_words(line.text, line.number, len(prefix))
    except Refusal as error:
        reading.refuse(str(error), line.number, error.column, "directive", line.text)
        return []
    if ignored.strip("\\ \t"):
        reading.findings.add(APPROXIMATED, "directive", "sbatch ignores the rest of a line after an empty word",
                             line=line.number, column=line.text.rindex(ignored) + 1, excerpt=line.text)
    return words


def parse(reading: Reading, words: list[Word], texts: Mapping[int, str]) -> list[Option]:
    """Options out of words, as getopt_long does it."""
    made: list[Option] = []
    queue = list(reversed(words))

    def add(name: str, value: str | None, at: Word) -> None:
        name = f"--{_SAME.get(name, name)}"
        made.append(Option(name, value, at.line, at.column, texts.get(at.line, "")))

    def refuse(message: str, at: Word) -> None:
        reading.refuse(message, at.line, at.column, at.text, texts.get(at.line, ""))

    while queue:
        at = queue.pop()
        if at.text.startswith("--") and len(at.text) > 2:
            said, sign, value = at.text[2:].partition("=")
            name = _full(said, refuse, at)
            if name is None:
                continue
            kind = _LONG[name]
            if kind == ":" and not sign:
                if not queue:
                    refuse(f"--{name} wants a value", at)
                    continue
                add(name, queue.pop().text, at)
            elif kind == "" and sign:
                refuse(f"--{name} takes no value", at)
            else:
                add(name, value if sign else None, at)
        elif at.text.startswith("-") and len(at.text) > 1:
            _short(at, queue, add, refuse)
        else:
            refuse(f"{at.text!r} is no option", at)
    return made


def _short(at: Word, queue: list[Word], add: Callable[[str, str | None, Word], None],
           refuse: Callable[[str, Word], None]) -> None:
    letters = at.text[1:]
    while letters:
        name, letters = _SHORT.get(letters[0]), letters[1:]
        if name is None:
            refuse(f"{at.text}: no such option", at)
            return
        if _LONG[name] == ":":
            if not letters and not queue:
                refuse(f"{at.text} wants a value", at)
                return
            add(name, letters or queue.pop().text, at)
            return
        add(name, None, at)


def _full(said: str, refuse: Callable[[str, Word], None], at: Word) -> str | None:
    """The long option of that name or that begins with it alone."""
    if said in _LONG:
        return said
    fits = [name for name in _LONG if name.startswith(said)]
    if len({_SAME.get(name, name) for name in fits}) == 1:
        return fits[0]
    if fits:
        refuse(f"--{said} may be {', '.join('--' + f for f in sorted(fits))}", at)
    else:
        refuse(f"--{said}: no such option", at)
    return None


# -- directives of others that sbatch obeys
_PBS: Final = {"N": "job-name", "A": "account", "q": "partition", "o": "output", "e": "error", "M": "mail-user"}
_BSUB: Final = {"J": "job-name", "P": "account", "q": "partition", "o": "output", "e": "error", "u": "mail-user",
                "n": "ntasks"}
_LETTERS: Final = {"a": "FAIL", "b": "BEGIN", "e": "END", "n": "NONE"}


def _foreign(reading: Reading, lines: list[Line], end: int, made: Scan) -> None:
    """Lines of LSF, else of PBS, anywhere in the file; they win over #SBATCH."""
    for prefix, names in (("#BSUB", _BSUB), ("#PBS", _PBS)):
        hit = [(i, line) for i, line in enumerate(lines) if line.text.startswith(prefix)]
        for index, line in hit:
            reading.findings.add(CONTRADICTORY, prefix, f"sbatch obeys lines of {prefix} too, and they win",
                                 line=line.number, column=1, excerpt=line.text)
            made.components[0] += _foreign_options(reading, line, prefix, names)
            if index < end:
                made.rest.remove(line)
        if hit:
            return


def _foreign_options(reading: Reading, line: Line, prefix: str, names: Mapping[str, str]) -> list[Option]:
    try:
        words, _ = slurm_words(line.text, line.number, len(prefix))
    except Refusal:
        return []
    made: list[Option] = []
    queue = list(reversed([w.text for w in words]))
    while queue:
        said = queue.pop()
        letter, value = said[1:2], said[2:] or (queue.pop() if queue else "")
        pairs = [(names[letter], value)] if letter in names else []
        if prefix == "#PBS" and letter == "m":
            pairs = [("mail-type", ",".join(_LETTERS[c] for c in value if c in _LETTERS))]
        if prefix == "#PBS" and letter == "l":
            pairs = [p for part in value.split(",") for p in _resource(part)]
        made += [Option(f"--{n}", v, line.number, 1, line.text) for n, v in pairs]
        if not pairs:
            reading.findings.add(SITE, prefix, f"{said} {value}: what sbatch makes of it depends on its release",
                                 line=line.number, column=1, excerpt=line.text)
    return made


def _resource(text: str) -> list[tuple[str, str]]:
    name, _, value = text.partition("=")
    if name in ("walltime", "mem"):
        return [("time" if name == "walltime" else name, value)]
    found = re.fullmatch(r"(\d+)(?::ppn=(\d+))?", value) if name == "nodes" else None
    if found is None:
        return []
    return [("nodes", found[1])] + ([("ntasks", str(int(found[1]) * int(found[2])))] if found[2] else [])


def _arguments(reading: Reading, text: str) -> list[Option]:
    return parse(reading, [Word(w, 0, 0) for w in shlex.split(text)], {})


def _directive(name: str, value: str | None) -> str:
    return name if name in _PARTS else sbatch(Directive(name.lstrip("-"), value, name))


# -- the second stage: layout
_MB: Final = size(",K,M,G,T", 1 << 20)
_SIZE: Final = Grammar(SLURM_SIZE.read, lambda text: _MB(int(text)), "a size")
_GPUS: Final = {"--gpus": "Requested/Resource[name=GPU]",
                "--gpus-per-node": "Requested/Resource[name=GPU,metric=PerNode]",
                "--gpus-per-task": "TaskGroup/TaskDefaults/Requested/Resource[name=GPU]"}
_MEMORY: Final = {"--mem": "PerNode", "--mem-per-cpu": "PerProcessor", "--mem-per-gpu": "PerGPU"}
_COUNTS: Final = {
    "--ntasks": Row("--ntasks", "TaskGroup/TaskCount", COUNT),
    "--ntasks-per-node": Row("--ntasks-per-node", "TaskGroup/TaskDistribution[type=TasksPerNode]", COUNT),
    "--cpus-per-task": Row("--cpus-per-task", "TaskGroup/TaskDefaults/Requested/Processors", COUNT),
}


def _read_layout(reading: Reading, options: Mapping[str, Option]) -> None:
    if (nodes := options.get("--nodes")) is not None:
        _read_nodes(reading, nodes)
    for name, row in _COUNTS.items():
        if name in options:
            reading.row(row, options[name])
    memory = [options[name] for name in _MEMORY if name in options]
    for option in memory:
        _read_memory(reading, option)
    if len(memory) > 1:
        reading.refuse(f"{' and '.join(o.name for o in memory)} exclude each other", memory[1].line, memory[1].column,
                       memory[1].name, memory[1].text)
    for name, where in _GPUS.items():
        if name in options:
            _read_gpus(reading, options[name], where)
    if (gres := options.get("--gres")) is not None:
        _read_gres(reading, gres, "--gpus-per-node" in options)


def _read_nodes(reading: Reading, option: Option) -> None:
    found = re.fullmatch(r"(\d{1,9})([kKmM]?)(?:-(\d{1,9})([kKmM]?))?", option.value or "", re.ASCII)
    factors = {"": 1, "k": 1024, "m": 1 << 20}
    if found is None:
        reading.misfit(option, "is no number of nodes", "a number or a range such as 2-4")
        return
    least = int(found[1]) * factors[found[2].lower()]
    if found[3] is None:
        reading.put("Requested/NodeCount", least, option)
        return
    most = int(found[3]) * factors[found[4].lower()]
    if most < least:
        reading.misfit(option, "the most is less than the least", "MIN-MAX")
        return
    reading.put("Requested/NodeCount", least, option, op="GE")
    reading.put("Requested/NodeCount", most, option, op="LE")


def _read_memory(reading: Reading, option: Option) -> None:
    try:
        amount = SLURM_SIZE.read(option.value or "")
    except ValueError as error:
        reading.misfit(option, str(error), "a number with K, M, G or T")
        return
    if amount == 0:
        reading.keep(option)        # all memory of the node
        return
    amount = -(-amount // (1 << 20)) << 20
    reading.bytes("Requested/Memory", amount, option, metric=_MEMORY[option.name])


def _read_gpus(reading: Reading, option: Option, where: str) -> None:
    found = re.fullmatch(r"(?:([^:,]+):)?(\d{1,9})", option.value or "", re.ASCII)
    if found is None:
        reading.misfit(option, "is no number of GPUs", "[TYPE:]NUMBER")
        return
    reading.put(where, int(found[2]), option, **({"type": found[1]} if found[1] else {}))


def _read_gres(reading: Reading, option: Option, gpus_said: bool) -> None:
    for part in (option.value or "").split(","):
        found = re.fullmatch(r"(?:gres:)?([A-Za-z_]\w*)(?::([A-Za-z][^:]*))?(?:[:=](\d{1,9}))?", part, re.ASCII)
        if found is None:
            reading.keep(option)
            return
        if found[1] == "gpu" and gpus_said:
            continue
        name = "GPU" if found[1] == "gpu" else found[1]
        reading.put("Requested/Resource", int(found[3] or 1), option, name=name, metric="PerNode",
                    **({"type": found[2]} if found[2] else {}))


def _write_layout(asking: Asking) -> Written:
    part = part_of(asking)
    made: Written = []
    cpus = task_processors(asking, part)
    if part.nodes is not None:
        made.append(("--nodes", f"{part.nodes}-{part.nodes_most}" if part.nodes_most else str(part.nodes)))
    for name, count in (("--ntasks", part.tasks), ("--ntasks-per-node", part.per_node), ("--cpus-per-task", cpus)):
        if count is not None:
            made.append((name, str(count)))
    if part.memory is not None:
        name, amount = _memory(asking, part, part.memory, cpus or 1)
        made.append((name, _MB(amount)))
        for e in part.beside:
            asking.dropped(e, f"Slurm takes one amount of memory, here {name}")
    if part.gpus is not None:
        made.append(_gpus(part, part.gpus))
    return made + _gres(asking)


def _memory(asking: Asking, part: Part, memory: Amount, cpus: int) -> tuple[str, int]:
    """Option and bytes."""
    own = {v: k for k, v in _MEMORY.items()}
    if memory.value % (1 << 20):
        asking.note(APPROXIMATED, memory.entry, "rounded up to whole MiB")
    if memory.per in own:
        return own[memory.per], memory.value
    processors = (part.tasks or (part.per_node or 0) * (part.nodes or 0)) * cpus
    if memory.per == "task":
        asking.note(APPROXIMATED, memory.entry, f"per task is written per processor, {cpus} a task")
        return "--mem-per-cpu", shared(asking, memory, cpus, "processors")
    if memory.per == "PerChunk":
        if part.node_chunks:
            return "--mem", memory.value
        total = memory.value * (part.chunks or 1)
    elif memory.per == "job":
        total = memory.value
        if part.nodes == 1 or (part.nodes is None and not processors):
            if part.nodes is None:
                unknown_factor(asking, memory, "memory of the job is written as that of one node")
            return "--mem", total
        if part.nodes is not None:
            return "--mem", shared(asking, memory, part.nodes, "nodes")
    else:
        unknown_factor(asking, memory, f"{memory.per} is written per processor")
        return "--mem-per-cpu", memory.value
    asking.note(APPROXIMATED, memory.entry, f"written per processor, {processors or 1} in all")
    return "--mem-per-cpu", -(-total // (processors or 1))


def _gpus(part: Part, gpus: Amount) -> tuple[str, str | None]:
    name = {"PerNode": "--gpus-per-node", "task": "--gpus-per-task"}.get(gpus.per, "--gpus")
    value = gpus.value
    if gpus.per == "PerChunk":
        name = "--gpus-per-node" if part.node_chunks else "--gpus"
        value *= 1 if part.node_chunks else part.chunks or 1
    return name, f"{gpus.kind}:{value}" if gpus.kind else str(value)


def _gres(asking: Asking) -> Written:
    made = []
    for e in asking.find("Resource"):
        name = e.attributes.get("name")
        if name in ("GPU", "License"):
            e.used = bool(e.understood & {"units"})
            continue
        e.understood |= {"name", "type", "metric"}
        if e.attributes.get("metric") != "PerNode":
            asking.note(APPROXIMATED, e, f"{name} is written per node")
        kind = e.attributes.get("type")
        if not fits(asking, e, f"{name}{kind or ''}"):
            continue
        made.append(f"{name}:{kind + ':' if kind else ''}{int(float(e.text))}")
    return [("--gres", ",".join(made))] if made else []


# -- time, features, hosts
def _read_time(text: str) -> int:
    if text.lower() in ("0", "-1", "infinite", "unlimited"):
        raise Kept("no limit")
    return int(SLURM_MINUTES.read(text))


_LIMIT: Final = Grammar(_read_time, str, SLURM_MINUTES.expected)


def _write_time(asking: Asking) -> Written:
    entry = asking.at("Requested/Duration")
    if entry is None:
        return []
    seconds = int(entry.text)
    if seconds <= 0:
        asking.dropped(entry, "0 would be no limit at all")
        return []
    if seconds % 60:
        asking.note(APPROXIMATED, entry, "Slurm keeps whole minutes; rounded up")
    return [("--time", SLURM_MINUTES.write(entry.text))]


def _read_rowed(row: Row) -> Callable[[Reading, Mapping[str, Option]], None]:
    return lambda reading, options: reading.row(row, options[row.name])


def _read_constraint(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--constraint"]
    names = (option.value or "").split("&")
    if all(re.fullmatch(r"[\w.-]+", name) for name in names):
        for name in names:
            reading.put("Requested/Feature", name, option)
    else:
        reading.keep(option)


def _write_constraint(asking: Asking) -> Written:
    found = asking.find("Feature")
    if not found:
        return []
    if not plain(found):
        entry = asking.one("Feature")
        return [("--constraint", entry.text)] if entry is not None and fits(asking, entry, entry.text) else []
    names = [e.text for e in found if fits(asking, e, e.text)]
    return [("--constraint", "&".join(names))] if names else []


def _read_nodelist(reading: Reading, options: Mapping[str, Option]) -> None:
    for name, more in (("--nodelist", {}), ("--exclude", {"op": "NE"})):
        if name in options:
            for text in re.findall(r"(?:\[[^\[\]]*\]|[^,\[])+", options[name].value or ""):
                kind = {"aggregation": "Range"} if "[" in text else {}
                reading.put("Requested/Node", text, options[name], **kind, **more)


def _write_nodelist(asking: Asking) -> Written:
    made: dict[str, list[str]] = {}
    entries = asking.find("Node")
    if asking.source != "slurm" and _too_many(asking, entries):
        for e in entries:
            asking.dropped(e, "Slurm takes a list of nodes only where all of them are asked for")
        return []
    for e in entries:
        op = e.attributes.get("op", "EQ")
        if op not in ("EQ", "NE") or e.attributes.get("aggregation") == "Pattern" or "preference" in e.attributes:
            asking.dropped(e, "only lists of names can be said")
            continue
        e.understood |= {"aggregation", "op"}
        if "aggregation" not in e.attributes and not fits(asking, e, e.text):
            continue
        made.setdefault("--nodelist" if op == "EQ" else "--exclude", []).append(e.text)
    return [(name, ",".join(made[name])) for name in ("--nodelist", "--exclude") if name in made]


def _too_many(asking: Asking, entries: Sequence[Entry]) -> bool:
    """Whether more nodes are named than are asked for: sbatch then refuses the script."""
    wanted = [e.value for e in asking.find("NodeCount") if isinstance(e.value, int)]
    names = [e.text for e in entries if e.attributes.get("op", "EQ") == "EQ"
             and e.attributes.get("aggregation") in (None, "Range")]
    try:
        return bool(wanted) and sum(NodeSet.parse_range(text).count for text in names) > max(wanted)
    except LexicalError:
        return False


def _read_exclusive(reading: Reading, options: Mapping[str, Option]) -> None:
    if (option := options.get("--exclusive")) is not None:
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", option.value or "true", option)
    elif "--oversubscribe" in options:
        reading.put("Extension[name=ExclusiveNodeUse,type=Scheduler]", "false", options["--oversubscribe"])


def _write_exclusive(asking: Asking) -> Written:
    entry = asking.extension("ExclusiveNodeUse")
    if entry is None:
        return []
    if entry.text == "false":
        return [("--oversubscribe", None)]
    return [("--exclusive", entry.text if entry.text in ("user", "mcs", "topo") else None)]


def _read_licenses(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--licenses"]
    found = [re.fullmatch(r"([^:=,]+)(?:[:=](\d{1,9}))?", p) for p in (option.value or "").split(",")]
    for hit in found:
        if hit is None:
            reading.keep(option)
            return
    for hit in found:
        assert hit is not None
        reading.put("Requested/Resource", int(hit[2] or 1), option, name="License", type=hit[1])


def _write_licenses(asking: Asking) -> Written:
    made = []
    for e in asking.find("Resource", name="License"):
        e.understood |= {"type"}
        if not fits(asking, e, e.attributes.get("type", "license")):
            continue
        made.append(f"{e.attributes.get('type', 'license')}:{int(float(e.text))}")
    return [("--licenses", ",".join(made))] if made else []


# -- priority
def _read_nice(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--nice"]
    reading.row(Row("--nice", "Extension[name=Nice,type=Scheduler]", INTEGER),
                option if option.value else Option(option.name, "100", option.line, option.column, option.text))


def _write_nice(asking: Asking) -> Written:
    nice, priority = asking.extension("Nice"), asking.one("Priority")
    if nice is not None:
        if priority is not None:
            priority.used = False
        return [("--nice", nice.text)]
    if priority is None:
        return []
    if asking.source in ("", "slurm"):
        return [("--priority", priority.text)]
    asking.note(APPROXIMATED, priority, "larger is sooner there, later here; the sign is turned")
    return [("--nice", str(-int(priority.text)))]


# -- files, environment, mail, dependencies
_TOKENS: Final = {"{jobid}": "%j", "{array_jobid}": "%A", "{index}": "%a", "{name}": "%x", "{user}": "%u",
                  "{host}": "%N", "{node_rank}": "%n", "{task_rank}": "%t", "{step}": "%s"}
_NATIVE: Final = {v[1]: k for k, v in _TOKENS.items()} | {"J": "{jobid}.{step}", "%": "%"}
_pattern = file_reader(_NATIVE, r"%(?P<width>\d*)(?P<name>.)")


def _path(text: str) -> str:
    """A backslash turns all patterns off."""
    if "\\" in text:
        return text.replace("\\", "").replace("{", "{{").replace("}", "}}")
    return _pattern(text)


_PATH: Final = Grammar(_path, str, "a file name")


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    """sbatch looks at the first letter of ``--open-mode``; where no file is named the option is kept."""
    mode = options.get("--open-mode")
    appends = mode is not None and (mode.value or "")[:1] in ("a", "A") and ("--output" in options
                                                                            or "--error" in options)
    if mode is not None and not appends:
        reading.keep(mode)
    for name, tag in (("--input", "InputFile"), ("--output", "OutputFile"), ("--error", "ErrorFile")):
        if name in options:
            more = "[redirectList=Append]" if appends and tag != "InputFile" else ""
            reading.row(Row(name, tag + more, _PATH), options[name])


def _literal(text: str) -> str:
    if "\\" in text:
        raise LookupError("way to say a backslash")
    return text.replace("%", "%%")


def _write_files(asking: Asking) -> Written:
    made: Written = []
    source, _ = file_name(asking, "InputFile", _literal)
    output, error = (file_name(asking, tag, _literal, directory=False, holds=("Merge", "Append"))
                     for tag in ("OutputFile", "ErrorFile"))
    join = merged(asking, error, output)
    out, err = output[0], error[0]
    if join and (join == "eo" or out is None):
        for tag in ("OutputFile", "ErrorFile"):
            asking.note(APPROXIMATED, None, f"{tag}: Slurm has both streams in one file unless two are named", "info",
                        tag)
    if join == "oe":
        err = None
    elif join == "eo":
        out, err = err, None
    elif out is not None and err is None and asking.source not in ("", "slurm"):
        asking.note(APPROXIMATED, None, "OutputFile: without a file of its own the error stream goes there too",
                    subject="ErrorFile")
    for name, text in (("--input", source), ("--output", out), ("--error", err)):
        if text is not None:
            made.append((name, _local(asking, text)))
    if "Append" in output[1] | error[1]:
        if "Append" in output[1] ^ error[1] and None not in (out, err):
            asking.note(APPROXIMATED, None, "ErrorFile: Slurm appends to both files or to none", subject="ErrorFile")
        made.append(("--open-mode", "append"))
    return made


def _local(asking: Asking, text: str) -> str:
    """Without the ``host:`` that PBS allows."""
    host, colon, rest = text.partition(":")
    if asking.source in ("", "slurm") or not colon or "/" in host or not rest:
        return text
    asking.note(APPROXIMATED, None, f"{text}: Slurm knows no host before a file name", subject="OutputFile")
    return rest


def _read_export(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--export"]
    first, _, rest = (option.value or "").partition(",")
    if first in ("ALL", "NONE", "NIL"):
        read_variables(reading, rest, option, "true" if first == "ALL" else "false")
    else:
        read_variables(reading, option.value or "", option, "false")


def _write_export(asking: Asking) -> Written:
    made = variables(asking)
    environment = asking.job.environment
    export = environment.export if environment is not None else None
    if export is None and made and asking.source != "slurm":
        asking.note(APPROXIMATED, None, "Environment: of the submitter's variables none go along then", "info",
                    "Environment")
    if export:
        made.insert(0, "ALL")
        if len(made) > 1:
            asking.note(APPROXIMATED, None, "Environment: a variable that the submitter has wins over the one given",
                        "info", "Environment")
    elif export is False and not made:
        made.append("NONE")
    return [("--export", ",".join(made))] if made else []


_MAIL: Final = {
    "begin": "BEGIN", "end": "END", "fail": "FAIL", "all": "ALL", "none": "NONE", "requeue": "REQUEUE",
    "invalid-depend": "INVALID_DEPEND", "stage-out": "STAGE_OUT", "time-limit": "TIME_LIMIT",
    "time-limit-90": "TIME_LIMIT_90", "time-limit-80": "TIME_LIMIT_80", "time-limit-50": "TIME_LIMIT_50",
    "array-tasks": "ARRAY_TASKS",
}
_EVENTS: Final = {v: k for k, v in _MAIL.items()}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options.get("--mail-type")
    said = [w.strip().upper() for w in (option.value or "").split(",")] if option is not None else []
    events = [_EVENTS[w] for w in said if w in _EVENTS]
    if option is not None and not events:
        reading.misfit(option, "none of these events is known", ", ".join(_EVENTS))
        option = None
    elif option is not None and len(events) < len(said):
        reading.tell(APPROXIMATED, option, "events that sbatch does not know are left out, as it does")
    read_mail(reading, events, options.get("--mail-user"), option)


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, _MAIL, {"abort": "fail"})
    made: Written = [("--mail-type", ",".join(words))] if words else []
    return [*made, ("--mail-user", address)] if address else made


def _write_dependency(asking: Asking) -> Written:
    text = dependencies(asking, ("on:", "before"))
    return [("--dependency", text)] if text else []


def _write_array(asking: Asking) -> Written:
    text = array(asking, lists=True, step=True)
    return [("--array", text)] if text else []


def _nothing(asking: Asking) -> Written:
    return []


def _read_guard(reading: Reading, options: Mapping[str, Option]) -> None:
    """--ignore-pbs says nothing of the job; it is written where the script has such lines."""


def _write_guard(asking: Asking) -> Written:
    if not re.search(r"^#(?:PBS|BSUB)", asking.body, re.MULTILINE):
        return []
    asking.note(APPROXIMATED, None, "the script has lines of #PBS or #BSUB, which sbatch would obey; --ignore-pbs "
                "stops that", "info" if asking.source == "slurm" else None, "--ignore-pbs")
    return [("--ignore-pbs", None)]


def _read_deadline(reading: Reading, options: Mapping[str, Option]) -> None:
    for name, where in (("--begin", "EligibleTime"), ("--deadline", "DeadlineTime")):
        if name in options:
            reading.moment(where, SLURM_TIME, options[name])


def _write_deadline(asking: Asking) -> Written:
    made: Written = []
    for name, where in (("--begin", "EligibleTime"), ("--deadline", "DeadlineTime")):
        text = asking.moment(where, SLURM_TIME)
        if text is not None:
            made.append((name, text))
    return made


_SCHEDULER: Final = "Extension[name={},type=Scheduler]"
_REQUEUE: Final = Grammar(lambda text: text == "true", str, "true or false")

ROWS: Final[tuple[AnyRow, ...]] = table((
    Row("--job-name", "Name"),
    Special(("--comment",), _read_rowed(Row("--comment", _SCHEDULER.format("Comment"))),
            lambda asking: asking.row(Row("--comment", _SCHEDULER.format("Comment")))),
    Row("--account", "Project"),
    Row("--partition", "Queue"),
    Row("--qos", "QualityOfService"),
    Row("--reservation", "Reservation"),
    Row("--clusters", "Machine"),
    Row("--uid", "User"),
    Row("--gid", "Group"),
    Special(("--time",), _read_rowed(Row("--time", "Requested/Duration", _LIMIT)), _write_time),
    Row("--time-min", _SCHEDULER.format("MinDuration"), SLURM_MINUTES),
    Special(("--nodes", *_COUNTS, *_MEMORY, *_GPUS, "--gres"), _read_layout, _write_layout, part=True),
    Row("--cpus-per-gpu", _SCHEDULER.format("CpusPerGPU"), COUNT),
    Row("--threads-per-core", _SCHEDULER.format("ThreadsPerCore"), COUNT),
    Row("--tmp", "Requested/Disk[metric=PerNode]", _SIZE),
    Special(("--constraint",), _read_constraint, _write_constraint, part=True),
    Special(("--nodelist", "--exclude"), _read_nodelist, _write_nodelist, part=True),
    Special(("--exclusive", "--oversubscribe"), _read_exclusive, _write_exclusive),
    Special(("--licenses",), _read_licenses, _write_licenses),
    Row("--switches", _SCHEDULER.format("Switches")),
    Special(("--array",), _read_rowed(Row("--array", _SCHEDULER.format("Array"))), _write_array),
    Special(("--dependency",), lambda reading, options: read_dependencies(reading, options["--dependency"]),
            _write_dependency),
    Special(("--begin", "--deadline"), _read_deadline, _write_deadline),
    Row("--hold", "Hold", fixed="User"),
    Special(("--nice",), _read_nice, _write_nice),
    Special(("--priority",), _read_rowed(Row("--priority", "Priority", Grammar(
        lambda text: int(_priority(text)), str, "a number"))), _nothing),
    Row("--requeue", "Restartable", _REQUEUE, "true"),
    Row("--no-requeue", "Restartable", _REQUEUE, "false"),
    Row("--signal", _SCHEDULER.format("Signal")),
    Row("--chdir", "InitialWorkingDirectory"),
    Special(("--input", "--output", "--error", "--open-mode"), _read_files, _write_files),
    Special(("--export",), _read_export, _write_export),
    Special(("--mail-type", "--mail-user"), _read_mail, _write_mail),
    Special(("--ignore-pbs",), _read_guard, _write_guard),
))


def _priority(text: str) -> str:
    if text.upper() == "TOP":
        raise Kept("the highest there is")
    return str(INTEGER.read(text))


_OTHER: Final = tuple(Row(f"--{name}") for name in sorted(_LONG) if name not in _SAME
                      and f"--{name}" not in {n for row in ROWS for n in row.names})

DIALECT: Final = Dialect(
    "slurm", "Slurm", "#SBATCH", (*ROWS, *_OTHER), scan, _directive, _arguments, _TOKENS,
    ("SLURM_", "SBATCH_"), _live, (".sbatch", ".slurm", ".sh"), separator="hetjob", pads=True)
TRANSLATOR: Final = translator(DIALECT)
