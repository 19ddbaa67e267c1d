"""Slurm's batch scripts, as sbatch reads them.

Source: sbatch(1) of 22.05 and what sbatch 22.05.8 printed for small cases (``sbatch -vv``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from sssjob.lrm.idset import one_range
from sssjob.lrm.slurm import unbracketed
from sssjob.request.asked import AMOUNTS
from sssjob.translators.scripts._slurm_layout import NAMES, SIZE, read_layout, write_layout
from sssjob.translators.scripts._slurm_lines import LONG, PREFIXES, SAME, arguments, directive, live, scan
from sssjob.translators.scripts._slurm_names import read_constraint, read_nodelist, write_constraint, write_nodelist
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Special,
    harmless,
    table,
    translator,
)
from sssjob.translators.scripts.choices import fits, listed
from sssjob.translators.scripts.common import (
    SCHEDULER,
    WAIT,
    Written,
    array,
    directory,
    named,
    rowed,
    signal_of,
    time_limit,
)
from sssjob.translators.scripts.dependencies import OF_DEPENDENCIES, dependencies, read_dependencies
from sssjob.translators.scripts.environment import read_variables, variables
from sssjob.translators.scripts.grammars import (
    COUNT,
    FROM_NOW,
    INTEGER,
    SLURM_MINUTES,
    SLURM_TIME,
    Grammar,
    Kept,
    file_reader,
    slurm_from_now,
    unstamped,
)
from sssjob.translators.scripts.layout import in_all
from sssjob.translators.scripts.notices import OF_MAIL, mail, read_mail
from sssjob.translators.scripts.raw import TEMPLATE, Option, split_outside
from sssjob.translators.scripts.streams import OF_FILES, file_name, in_one_file

__all__ = ["DIALECT", "TRANSLATOR"]

# -- time, features, hosts
def _read_time(text: str) -> int:
    if text.lower() in ("0", "-1", "infinite", "unlimited"):
        raise Kept("no limit")
    return int(SLURM_MINUTES.read(text))


_TIME: Final = Row("--time", "Requested/Duration", Grammar(_read_time, str, SLURM_MINUTES.expected))


#: A limit that ends in seconds: H:M:S, D-H:M:S; of M:S lint says that it is no H:M.
_SECONDS: Final = re.compile(r"(?:\d{1,9}-)?\d{1,9}:\d{1,9}:(?=\d*[1-9])\d{1,9}", re.ASCII)


def _read_limit(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--time"]
    reading.row(_TIME, option)
    if _SECONDS.fullmatch(option.value or ""):
        reading.tell(APPROXIMATED, option, f"sbatch takes whole minutes, rounded up: "
                     f"{SLURM_MINUTES.write(str(_read_time(option.value or '')))}", "info")


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
        if asking.source in ("", "slurm"):
            return [("--oversubscribe", None)]
        asking.note(APPROXIMATED, entry, "other jobs may run on the nodes anyway", "info")
        return []
    return [("--exclusive", entry.text if entry.text in ("user", "mcs", "topo") else None)]


def _write_signal(asking: Asking) -> Written:
    """``--signal``: sbatch signals the steps alone, with ``B:`` the script alone; other managers all processes."""
    entry = asking.extension("Signal")
    if entry is None:
        return []
    signal = signal_of(entry.text)
    if asking.source in ("", "slurm") or signal is None or signal[0]:
        return [("--signal", entry.text)]
    if re.search(rf"^[^#\n]*\btrap\b.*\b(?:SIG)?{signal[1]}\b", asking.body, re.MULTILINE):
        asking.note(APPROXIMATED, entry, f"the script, which traps {signal[1]}, gets the signal, and its steps do not")
        return [("--signal", f"B:{entry.text}")]
    asking.note(APPROXIMATED, entry, "the steps that srun starts get the signal, and the script does not")
    return [("--signal", entry.text)]


def _of_root(name: str, tag: str, instead: str) -> Callable[[Asking], Written]:
    """The writer of an option that sbatch takes of root alone (sbatch(1)): users of other managers state its like."""
    def write(asking: Asking) -> Written:
        """The option, for a script of Slurm or a document."""
        if asking.source in ("", "slurm"):
            return asking.row(Row(name, tag))
        if (entry := asking.one(tag)) is not None:
            asking.dropped(entry, f"sbatch takes {name} of root alone, and runs a job for {instead}")
        return []

    return write


def _read_licenses(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--licenses"]
    matches = [re.fullmatch(r"([^:=,]+)(?:[:=](\d{1,9}))?", p) for p in (option.value or "").split(",")]
    for hit in matches:
        if hit is None:
            reading.keep(option)
            return
    for hit in matches:
        assert hit is not None
        reading.put("Requested/Resource", int(hit[2] or 1), option, name="License", type=hit[1])


#: ``name@server`` of a licence.
_OF_SERVER: Final = re.compile(r"[\w.+-]+@[\w.+-]+", re.ASCII)


def _write_licenses(asking: Asking) -> Written:
    texts = []
    for e in asking.find("Resource", name="License"):
        e.understood |= {"type"}
        name = e.attributes.get("type", "license")
        if _OF_SERVER.fullmatch(name) or fits(asking, e, name):
            texts.append(f"{name}:{in_all(asking, e)}")
    return [("--licenses", ",".join(texts))] if texts else []


# -- priority
#: What strtoll reads of a text.
_NUMBER_BEFORE: Final = re.compile(r"\s*([+-]?\d{1,15})|", re.ASCII)


def _read_nice(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["--nice"]
    number = _NUMBER_BEFORE.match(option.value or "100")[1] or "0"  # type: ignore[index]     # it matches nothing, too
    if option.value and TEMPLATE.search(option.value, 0, 4096):
        number = option.value
    elif option.value and number != option.value:
        reading.tell(APPROXIMATED, option, f"sbatch reads the number before the first other sign: {int(number)}")
    reading.row(Row("--nice", "Extension[name=Nice,type=Scheduler]", INTEGER), option._replace(value=number))


def _write_nice(asking: Asking) -> Written:
    nice, priority = asking.extension("Nice"), asking.one("Priority")
    if nice is not None:
        if priority is not None:
            priority.used = False
        number = asking.whole(nice)
        return [] if number is None else [("--nice", str(number))]
    if priority is None:
        return []
    if asking.source in ("", "slurm"):
        return [("--priority", priority.text)]
    if asking.source == "lsf":
        asking.dropped(priority, "a priority of LSF is on the site's scale from 1")
        return []
    value = -int(priority.text)
    if not value:
        asking.note(APPROXIMATED, priority, "it is what jobs have unless told", "info")
        return []
    asking.note(APPROXIMATED, priority, "larger is sooner there, later here; the sign is turned" + (
        ", and only an administrator may ask for less than 0" if value < 0 else ""))
    return [("--nice", str(value))]


# -- files, environment, mail, dependencies
_TOKENS: Final = {"{jobid}": "%j", "{array_jobid}": "%A", "{index}": "%a", "{name}": "%x", "{user}": "%u",
                  "{host}": "%N", "{node_rank}": "%n", "{task_rank}": "%t", "{step}": "%s"}
_NATIVE: Final = {v[1]: k for k, v in _TOKENS.items()} | {"J": "{jobid}.{step}", "%": "%"}
_pattern = file_reader(_NATIVE, r"%(?P<width>\d*)(?P<name>.)")


def _path(text: str) -> str:
    """A backslash turns all patterns off; the word none is /dev/null, in any letters (seen with sbatch 22.05)."""
    if text.lower() == "none":
        return "/dev/null"
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
    return f"./{text}" if text.lower() == "none" else text.replace("%", "%%")


def _write_files(asking: Asking) -> Written:
    options: Written = []
    source, _ = file_name(asking, "InputFile", _literal)
    (output, of_output), (error, of_error) = in_one_file(asking, _literal, folder=False)
    for name, text in (("--input", source), ("--output", output), ("--error", error)):
        if text is not None:
            options.append((name, _local(asking, text)))
    if "Append" in of_output | of_error:
        if asking.source != "sge" and "Append" in of_output ^ of_error and None not in (output, error):
            asking.note(APPROXIMATED, None, "ErrorFile: Slurm appends to both files or to none", subject="ErrorFile")
        options.append(("--open-mode", "append"))
    return options


def _local(asking: Asking, text: str) -> str:
    """Without the ``host:`` that PBS allows."""
    host, colon, rest = text.partition(":")
    if asking.source in ("", "slurm") or not colon or "/" in host or not rest:
        return text
    asking.note(APPROXIMATED, None, f"{text}: Slurm knows no host before a file name", subject="OutputFile")
    return rest


def _read_export(reading: Reading, options: Mapping[str, Option]) -> None:
    """The words ALL, NONE and NIL may be in any letters (seen with sbatch 22.05)."""
    option = options["--export"]
    first, _, rest = (option.value or "").partition(",")
    if first.upper() in ("ALL", "NONE", "NIL"):
        read_variables(reading, rest, option, "true" if first.upper() == "ALL" else "false", whole=True)
    else:
        read_variables(reading, option.value or "", option, "false", whole=True)


_UNSPELT: Final = re.compile(r"[\"\\\x00-\x1f\x7f]")


def _spelt(name: str, value: str) -> str | None:
    """sbatch takes off quotes that stand around name and value; those around a value are part of it (seen)."""
    if _UNSPELT.search(value):
        return None
    if value == value.strip() and value.count("'") % 2 == 0 and split_outside(value, ",") == [value]:
        return f"{name}={value}"
    return None if "'" in value else f"'{name}={value}'"


def _write_export(asking: Asking) -> Written:
    names = variables(asking, _spelt)
    export, source = asking.export(), asking.source_dialect
    if export is None and names and asking.source != "slurm":
        export = True if source is not None and source.exports else None
        if export is None:
            asking.few = True
            asking.note(APPROXIMATED, None, "Environment: of the submitter's variables none go along then", "info",
                        "Environment")
    if export:
        names.insert(0, "ALL")
        if len(names) > 1:
            asking.note(APPROXIMATED, None, "Environment: a variable that the submitter has wins over the one given",
                        "info", "Environment")
    elif export is False and not names:
        names.append("NONE")
    return [("--export", ",".join(names))] if names else []


_MAIL: Final = {
    "begin": "BEGIN", "end": "END", "fail": "FAIL", "all": "ALL", "none": "NONE", "requeue": "REQUEUE",
    "invalid-depend": "INVALID_DEPEND", "stage-out": "STAGE_OUT", "time-limit": "TIME_LIMIT",
    "time-limit-90": "TIME_LIMIT_90", "time-limit-80": "TIME_LIMIT_80", "time-limit-50": "TIME_LIMIT_50",
    "array-tasks": "ARRAY_TASKS",
}
_EVENTS: Final = {v: k for k, v in _MAIL.items()}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    """Events of several options add up; ``NONE`` takes none of them away (seen)."""
    option = options.get("--mail-type")
    event_names = [w.strip().upper() for each in reading.every("--mail-type") for w in (each.value or "").split(",")]
    unknown = [w for w in event_names if w not in _EVENTS]
    events = [_EVENTS[w] for w in dict.fromkeys(event_names) if w in _EVENTS]
    events = [event for event in events if event != "none"] or events
    if option is not None and not events:
        reading.misfit(option, "none of these events is known", ", ".join(_EVENTS))
        option = None
    elif option is not None and unknown:
        reading.tell(APPROXIMATED, option, "events that sbatch does not know are left out, as it does",
                     consequence="looks")
    read_mail(reading, events, options.get("--mail-user"), option)


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, _MAIL, {"abort": "fail"})
    options: Written = [("--mail-type", ",".join(words))] if words else []
    return [*options, ("--mail-user", address)] if address else options


def _write_dependency(asking: Asking) -> Written:
    text = dependencies(asking, ("on:", "before"))
    return [("--dependency", text)] if text else []


def _write_array(asking: Asking) -> Written:
    text = array(asking, lists=True, step=True)
    span = one_range(text.partition("%")[0]) if text and asking.source == "sge" else None
    if span is not None and span[2] and (span[1] - span[0]) % span[2] and "SLURM_ARRAY_TASK_MAX" in asking.body:
        last = span[1] - (span[1] - span[0]) % span[2]
        asking.note(APPROXIMATED, asking.extension("Array"), f"SLURM_ARRAY_TASK_MAX is the last index, {last}; "
                    f"SGE_TASK_LAST was {span[1]}")
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
        option = options.get(name)
        if option is not None and option.value == "now" and name == "--begin":
            reading.tell(APPROXIMATED, option, "a job may begin at once unless told otherwise", "info")
        elif option is not None:
            reading.moment(where, SLURM_TIME, option)


def _certain(moment: str) -> int:
    """How much of a date a text of ``SLURM_TIME`` has."""
    return 2 if "T" in moment else 1 if "/" in moment else 0


def _write_deadline(asking: Asking) -> Written:
    begin, deadline = (asking.moment(where, SLURM_TIME) for where in ("EligibleTime", "DeadlineTime"))
    ahead = asking.from_now()
    if begin is None and ahead is not None:
        begin = slurm_from_now(ahead)
    coming = next(filter(None, (asking.at(unstamped("DeadlineTime", scope)) for scope in SLURM_TIME.coming)), None)
    if begin is not None and deadline is not None and coming is not None and _certain(deadline) < _certain(begin):
        asking.dropped(coming, "the next time that clocks show it may be before the job may "
                       "begin, which sbatch refuses")
        deadline = None
    return [(name, text) for name, text in (("--begin", begin), ("--deadline", deadline)) if text is not None]


#: Rules of a TaskDistribution -> how srun places tasks on nodes.
_RULES: Final = {"roundrobin": "cyclic", "cyclic": "cyclic", "pack": "block", "block": "block"}
_PLACED: Final = {"cyclic": "RoundRobin", "block": "Pack"}


def _read_distribution(reading: Reading, options: Mapping[str, Option]) -> None:
    """How tasks are placed on nodes; what else it says, or beside a number of tasks for each node, is kept."""
    option = options["--distribution"]
    rule = _PLACED.get((option.value or "").lower())
    if rule is None or any(o.name == "--ntasks-per-node" for o in reading.options):
        reading.keep(option)
    else:
        reading.put("TaskGroup/TaskDistribution[type=Rule]", rule, option)


def _write_distribution(asking: Asking) -> Written:
    entry = asking.one("TaskDistribution", AMOUNTS, carried=("type",))
    word = None if entry is None else _RULES.get(entry.text.lower())
    return [] if word is None else [("--distribution", word)]


_REQUEUE: Final = Grammar(lambda text: text == "true", str, "true or false")

ROWS: Final[tuple[AnyRow, ...]] = table((
    named(Row("--job-name", "Name")),
    Row("--comment", SCHEDULER.format("Comment")),
    Row("--account", "Project"),
    listed("--partition", "Queue"),
    Row("--qos", "QualityOfService"),
    listed("--reservation", "Reservation"),
    listed("--clusters", "Machine", what="a cluster"),
    rowed(Row("--uid", "User"), _of_root("--uid", "User", "the user who calls it")),
    rowed(Row("--gid", "Group"), _of_root("--gid", "Group", "the group of who calls it (sg GROUP -c 'sbatch ...')")),
    Special(("--time",), _read_limit, time_limit("--time", SLURM_MINUTES.write, "0 would be no limit at all",
                                                 "Slurm keeps whole minutes; rounded up"), of=(_TIME.place,)),
    Row("--time-min", SCHEDULER.format("MinDuration"), SLURM_MINUTES),
    Special(NAMES, read_layout, write_layout, part=True),
    Special(("--distribution",), _read_distribution, _write_distribution, part=True, of=("TaskDistribution",),
            beside=("--ntasks-per-node",)),
    Row("--cpus-per-gpu", SCHEDULER.format("CpusPerGPU"), COUNT),
    Row("--ntasks-per-gpu", SCHEDULER.format("TasksPerGPU"), COUNT),
    Row("--threads-per-core", SCHEDULER.format("ThreadsPerCore"), COUNT),
    Row("--tmp", "Requested/Disk[metric=PerNode]", SIZE),
    Special(("--constraint",), read_constraint, write_constraint, part=True, of=("Feature",)),
    Special(("--nodelist", "--exclude"), read_nodelist, write_nodelist, part=True, of=("Node",)),
    Special(("--exclusive", "--oversubscribe"), _read_exclusive, _write_exclusive,
            of=(SCHEDULER.format("ExclusiveNodeUse"),)),
    Special(("--licenses",), _read_licenses, _write_licenses, of=("Resource",)),
    Row("--switches", SCHEDULER.format("Switches")),
    rowed(Row("--array", SCHEDULER.format("Array"), Grammar(unbracketed, str, "a list of indices")), _write_array),
    Special(("--dependency",), lambda reading, options: read_dependencies(reading, options["--dependency"]),
            _write_dependency, of=OF_DEPENDENCIES),
    Special(("--begin", "--deadline"), _read_deadline, _write_deadline,
            of=(FROM_NOW, *(where for tag in ("EligibleTime", "DeadlineTime") for where in (
                tag, *(unstamped(tag, scope) for scope in SLURM_TIME.coming))))),
    Row("--hold", "Hold", fixed="User"),
    Special(("--nice",), _read_nice, _write_nice, of=(SCHEDULER.format("Nice"), "Priority")),
    rowed(Row("--priority", "Priority", Grammar(lambda text: int(_priority(text)), str, "a number")), _nothing),
    Row("--requeue", "Restartable", _REQUEUE, "true"),
    Row("--no-requeue", "Restartable", _REQUEUE, "false"),
    rowed(Row("--signal", SCHEDULER.format("Signal")), _write_signal),
    Row("--wait", WAIT, fixed="true"),
    directory("--chdir"),
    Special(("--input", "--output", "--error", "--open-mode"), _read_files, _write_files, of=OF_FILES),
    Special(("--export",), _read_export, _write_export),
    Special(("--mail-type", "--mail-user"), _read_mail, _write_mail, of=OF_MAIL),
    Special(("--ignore-pbs",), _read_guard, _write_guard),
))


def _priority(text: str) -> str:
    if text.upper() == "TOP":
        raise Kept("the highest there is")
    return str(INTEGER.read(text))


_OTHER: Final = tuple(Row(f"--{name}") for name in sorted(LONG) if name not in SAME
                      and f"--{name}" not in {n for row in ROWS for n in row.names})

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="acctg-freq batch bb bbf cluster-constraint consolidate-segments contiguous core-spec cpu-freq delay-boot "
          "extra gpu-bind gpu-freq gres-flags hint kill-on-invalid-dep mem-bind mem-update mincpus network "
          "ntasks-per-core oom-kill-step power prefer reboot segment spread-job spread-segments stepmgr thread-spec "
          "tres-bind use-min-nodes wait-all-nodes wckey distribution",
    looks="help parsable profile quiet usage verbose version mcs-label open-mode")

DIALECT: Final = Dialect(
    "slurm", "Slurm", "#SBATCH", (*ROWS, *_OTHER), scan, directive, arguments, _TOKENS,
    ("SLURM_", "SBATCH_"), live, (".sbatch", ".slurm", ".sh"), separator="hetjob",
    beside="srun --het-group=0,1 starts tasks in several", pads=True, rules=_RULES,
    marks=PREFIXES, launcher="srun", threads=True, folders=False, adds=("--mail-type",),
    orders={"#BB": "burst buffer", "#DW": "burst buffer"},      # burst_buffer.conf(5)
    files=("slurm-{jobid}.out",), numbered="_{index}", of_input="sbatch", consequences=_HARMLESS,
    flags=frozenset(f"--{name}" for name, kind in LONG.items() if not kind),
    optional=frozenset(f"--{name}" for name, kind in LONG.items() if kind == "?"))
TRANSLATOR: Final = translator(DIALECT)
