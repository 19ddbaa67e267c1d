"""Batch scripts of LSF, as bsub reads them from standard input.

Source: the command reference of LSF 10.1 (bsub), lsf.conf(5), Administering LSF; what bsub does while it splits lines
from openlava, which is of the same line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from sssjob.lrm.clocks import total
from sssjob.lrm.names import JOB_NAMES
from sssjob.translators.scripts._lsf_expressions import conditions
from sssjob.translators.scripts._lsf_layout import special_limit, write_layout
from sssjob.translators.scripts._lsf_lines import FLAGS, VALUES, arguments, directive, live, scan
from sssjob.translators.scripts._lsf_reading import NAMES, read_layout
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
    harmless,
    translator,
)
from sssjob.translators.scripts.choices import listed
from sssjob.translators.scripts.common import (
    SCHEDULER,
    WAIT,
    Written,
    directory,
    name_alone,
    one_more,
    rowed,
    signal_of,
    time_limit,
    user_hold,
)
from sssjob.translators.scripts.dependencies import OF_DEPENDENCIES, foreign_id
from sssjob.translators.scripts.environment import read_variables, variables
from sssjob.translators.scripts.grammars import COUNT, INTEGER, Coming, Grammar, Kept, file_reader, unstamped
from sssjob.translators.scripts.notices import OF_MAIL, mail, read_mail
from sssjob.translators.scripts.raw import Option, split_outside
from sssjob.translators.scripts.resource_limits import limit
from sssjob.translators.scripts.streams import OF_FILES, file_name, in_one_file

__all__ = ["DIALECT", "TRANSLATOR"]


# -- times
_HOURS: Final = re.compile(r"(?:(\d{1,7}):)?(\d{1,9})(/.+)?", re.ASCII)


def _minutes(text: str) -> int:
    """Seconds of ``[hour:]minute``; of a host or model after a slash the time depends on it."""
    match = _HOURS.fullmatch(text)
    if match is None:
        raise ValueError("is no time of LSF")
    if match[3]:
        raise Kept("counted on a host of that speed")
    return total((int(match[1] or 0), int(match[2]), 0))


def _shown(text: str) -> str:
    minutes = -(-int(text) // 60)
    return f"{minutes // 60:02}:{minutes % 60:02}"


_TIME: Final = Grammar(_minutes, _shown, "[hour:]minute")


def _read_limit(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["-W"]
    text, slash, host = (option.value or "").partition("/")
    reading.row(Row("-W", "Requested/Duration", _TIME), Option("-W", text, option.line, option.column, option.text))
    if slash and host:
        reading.put("Extension[name=host_spec,type=lsf]", host, option)
        reading.tell(SITE, option, f"the time is counted on a host such as {host}, here on any")


_limit: Final = time_limit("-W", _shown, "0 is no limit to ask for", "LSF counts whole minutes; rounded up")


def _write_limit(asking: Asking) -> Written:
    return [(name, text if (host := asking.extension("host_spec", "lsf")) is None else f"{text}/{host.text}")
            for name, text in _limit(asking)]


def _date(text: str) -> int:
    match = re.fullmatch(r"(?:(?:(?:(\d{4}):)?(\d{1,2}):)?(\d{1,2}):)?(\d{1,2}):(\d{1,2})", text, re.ASCII)
    if match is None:
        raise ValueError("is no time of LSF")
    if not match[1]:
        raise Coming(match[4], match[5].zfill(2), None, match[3], match[2])
    year, month, day, hour, minute = (int(f) for f in match.groups())
    return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp())


_DATE: Final = Grammar(_date, lambda text: datetime.fromtimestamp(int(text), UTC).strftime("%Y:%m:%d:%H:%M"),
                       "[[[year:]month:]day:]hour:minute", dict.fromkeys(("Day", "Month", "Year"), lambda coming: (
                           ":".join([*filter(None, coming.day.split("-")), coming.clock[:5]]))))


def _moment(name: str, tag: str) -> Special:
    def write(asking: Asking) -> Written:
        """The time to the minute; one that loses its seconds is reported."""
        text = asking.moment(tag, _DATE)
        if text is not None and (entry := asking.one(tag)) is not None and int(entry.text) % 60:
            asking.note(APPROXIMATED, entry, "LSF counts whole minutes")
        coming = next(filter(None, (asking.at(unstamped(tag, scope)) for scope in _DATE.coming)), None)
        if text is not None and coming is not None and coming.text.count(":") == 2:
            asking.note(APPROXIMATED, coming, "LSF counts whole minutes")
        return [] if text is None else [(name, text)]

    return Special((name,), lambda reading, options: reading.moment(tag, _DATE, options[name]), write,
                   of=(tag, *(unstamped(tag, scope) for scope in _DATE.coming)))


# -- name and array
_NAMED: Final = re.compile(r"(?P<name>[^\[\]]*)(?:\[(?P<list>[^\[\]]*)\](?:%(?P<most>\d{1,9}))?)?", re.ASCII)
_RANGE: Final = r"\d{1,10}(?:-\d{1,10}(?::\d{1,10})?)?"
_NUMBER: Final = re.compile(r"(?<!:)\b\d+", re.ASCII)
_INDICES: Final = re.compile(f"{_RANGE}(?:,{_RANGE})*", re.ASCII)


def _read_name(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["-J"]
    match = _NAMED.fullmatch(option.value or "")
    indices = "".join((match["list"] or "").split()) if match is not None else ""
    if match is None or (match["list"] is not None and not _INDICES.fullmatch(indices)):
        reading.misfit(option, "is no name with a list of indices", "NAME[1-10:2,20]%4")
        return
    if any(int(n) == 0 for n in re.findall(r"\d+", indices)):
        reading.misfit(option, "indices are counted from 1", "NAME[1-10]")
        return
    if match["name"]:
        reading.put("Name", match["name"], option)
    if indices:
        reading.put(SCHEDULER.format("Array"), indices + (f"%{match['most']}" if match["most"] else ""), option)


def _write_name(asking: Asking) -> Written:
    entry, indices = asking.at("Name"), _indices(asking)
    name = "" if entry is None else name_alone(asking, entry)
    if entry is not None and (fault := JOB_NAMES["lsf"].fault(name)):
        name = JOB_NAMES["lsf"].fitted(name)
        asking.note(APPROXIMATED, entry, f"a name that {fault} is not taken there; it is {name}")
    return [("-J", name + indices)] if name or indices else []


def _index(array: str) -> str:
    """Indices are counted from 1: of an array with a 0 in it each is one more."""
    return "{} - 1" if any(int(n) == 0 for n in _NUMBER.findall(array.partition("%")[0])) else ""


def _indices(asking: Asking) -> str:
    """``[1-10]%3``; LSF counts from 1."""
    entry = asking.extension("Array")
    if entry is None:
        return ""
    ranges, _, most = entry.text.partition("%")
    if not _INDICES.fullmatch(ranges) or (most and not most.isdigit()):
        asking.dropped(entry, f"{entry.text[:80]} is no list of indices")
        return ""
    if _index(ranges):
        ranges = _NUMBER.sub(lambda hit: str(int(hit[0]) + 1), ranges)
        one_more(asking)
        asking.note(APPROXIMATED, entry, f"indices are counted from 1: {ranges}, each one more than was asked for")
    return f"[{ranges}]" + (f"%{most}" if most else "")


# -- queues, dependencies
_PLAIN: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)


def _cluster(text: str) -> str:
    """One cluster; of several, or all but some, only LSF knows the meaning."""
    if not re.fullmatch(r"[\w.-]+", text) or text in ("all", "others"):
        raise Kept("several clusters")
    return text


_CLUSTER: Final = Grammar(_cluster, _cluster, "the name of a cluster")
#: A variable alone, in a call of bsub that a script makes, is taken for an id that an earlier call printed.
_ID: Final = re.compile(r"\d+|@JOBID:[^@]*@|\$\w+|\$\{\w+\}", re.ASCII)
_CONDITIONS: Final = {"done": "OnSuccess", "ended": "OnExit", "exit": "OnFailure"}
_STATES: Final = {v: k for k, v in _CONDITIONS.items()}


def _read_depend(reading: Reading, options: Mapping[str, Option]) -> None:
    """Jobs of which all are waited for; terms that only LSF can say, and any other condition, are kept as they are."""
    option = options["-w"]
    try:
        terms = conditions(option.value or "")
    except ValueError as error:
        reading.misfit(option, str(error), "done(ID) && ended(NAME) ...")
        return
    dependencies = [_term(*term) for term in terms or ()]
    if terms is None or not any(dependencies):
        reading.keep(option)
        return
    own = [f"{state}({job}{number and f',{number}'})" for (state, job, number), dependency in zip(
        terms, dependencies, strict=True) if dependency is None]
    if own:
        reading.put("Extension[name=w,type=lsf]", " && ".join(own), option)
    for dependency in filter(None, dependencies):
        if "after" in dependency:
            reading.put(SCHEDULER.format("DependencyOther"), f"after:{dependency['after']}", option)
        else:
            more = {k: v for k, v in dependency.items() if k != "job"}
            reading.put("Dependency", dependency["job"], option, **more)


def _term(state: str, job: str, number: str) -> dict[str, str] | None:
    """What a term comes to; None where only LSF can say it."""
    name = job.strip("\"'")
    by_name = {} if _ID.fullmatch(name) and name == job else {"designator": "JobName"}
    if by_name and not re.fullmatch(r"[^\s*\[\]]+(?: [^\s*\[\]]+)*", name):
        return None
    if state == "started" and not by_name and "@" not in name:
        return {"after": name}
    if state not in _CONDITIONS:
        return None
    if not number or re.fullmatch(r"!=\s*0", number):
        return {"job": name, "condition": _CONDITIONS[state], **by_name}
    match = re.fullmatch(r"(?:==)?\s*(\d{1,3})", number, re.ASCII)
    return None if match is None else {"job": name, "condition": "OnExit", "code": match[1], **by_name}


def _write_depend(asking: Asking) -> Written:
    terms = []
    for e in asking.find("Dependency"):
        e.understood |= {"condition", "designator", "code"}
        job = _job(asking, e)
        if not job:
            continue
        code = e.attributes.get("code")
        state = _STATES.get(e.attributes.get("condition", "OnSuccess"), "done")
        terms.append(f"exit({job},{code})" if code is not None and state == "ended" else f"{state}({job})")
    for e in asking.extensions("DependencyOther"):
        kind, _, ids = e.text.partition(":")
        if kind != "after" or not re.fullmatch(r"\d+(?::\d+)*", ids):
            asking.dropped(e, f"LSF cannot say {e.text}")
            continue
        terms += [f"started({ident if asking.source == 'lsf' else f'@JOBID:{ident}@'})" for ident in ids.split(":")]
        if asking.source != "lsf":
            asking.note(SITE, e, f"{ids} are ids of another system; @JOBID:...@ stands for a successor")
    kept = asking.extension("w", "lsf")
    if kept is not None:
        terms.append(f"({kept.text})" if terms and "||" in kept.text else kept.text)
    return [("-w", " && ".join(terms))] if terms else []


def _job(asking: Asking, e: Entry) -> str:
    """The job inside the brackets; a name stands in quotes unless it is a plain word."""
    if e.attributes.get("designator", "JobId") == "JobId":
        if not _ID.fullmatch(foreign := foreign_id(asking, e)):
            asking.dropped(e, f"{e.text[:80]!r} is no id of a job")
            return ""
        return foreign
    if _PLAIN.fullmatch(e.text):
        return e.text
    if not re.fullmatch(r"[^\s*\[\]\"']+(?: [^\s*\[\]\"']+)*", e.text):
        asking.dropped(e, f"{e.text[:80]!r} is no name that a condition can hold")
        return ""
    return f'"{e.text}"'


# -- files
_TOKENS: Final = {"{jobid}": "%J", "{index}": "%I"}
_path = file_reader({"J": "{jobid}", "I": "{index}"}, r"%(?P<name>[JI])")
_FILE: Final = Grammar(_path, str, "a file name")
_FILES: Final = (("-o", "OutputFile", True), ("-oo", "OutputFile", False), ("-e", "ErrorFile", True),
                 ("-eo", "ErrorFile", False))


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    """``-o`` appends, ``-oo`` overwrites; the last of the two counts."""
    if "-i" in options:
        reading.row(Row("-i", "InputFile", _FILE), options["-i"])
    for tag in ("OutputFile", "ErrorFile"):
        names = {name: appends for name, of, appends in _FILES if of == tag}
        option = next((o for o in reversed(reading.options) if o.name in names), None)
        if option is None:
            continue
        try:
            reading.put(tag, _path(option.value or ""), option, **(
                {"redirectList": "Append"} if names[option.name] else {}))
        except ValueError as error:
            reading.misfit(option, str(error), "a file name")


def _literal(text: str) -> str:
    if "%J" in text or "%I" in text:
        raise LookupError("literal %J or %I")
    return text


def _write_files(asking: Asking) -> Written:
    source, _ = file_name(asking, "InputFile", _literal)
    output, error = in_one_file(asking, _literal)
    if "Merge" in output[1] | error[1] and asking.source != "lsf":
        asking.note(APPROXIMATED, None, "ErrorFile: without one the error stream goes into the file of output", "info",
                    "ErrorFile")
    options: Written = [("-i", source)] if source is not None else []
    for letter, (text, how) in (("o", output), ("e", error)):
        if text is not None:
            options.append((f"-{letter}" if "Append" in how else f"-{letter}o", text))
    return options


# -- environment, mail
def _read_environment(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options["-env"]
    first, *rest = split_outside(option.value or "", ",", str.strip)
    export = {"all": "true", "none": "false"}.get(first)
    if any(part.startswith("~") for part in (first, *rest)):
        reading.keep(option)
        return
    read_variables(reading, ",".join(rest if export else (first, *rest)), option, export or "false")


def _write_environment(asking: Asking) -> Written:
    words = variables(asking)
    export = asking.export()
    if export is None and not words:
        return []
    if export is None:
        asking.note(APPROXIMATED, None, "Environment: the submitter's other variables go along too", "info",
                    "Environment")
    return [("-env", ", ".join(["none" if export is False else "all", *words]))]


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    events = [(event, options[name]) for name, event in (("-B", "begin"), ("-N", "end"), ("-Ne", "fail"))
              if name in options]
    read_mail(reading, [event for event, _ in events], options.get("-u"), events[0][1] if events else None)


def _write_mail(asking: Asking) -> Written:
    """``-N`` is mail at every end, at that of a job that failed (``-Ne``) too."""
    words, address = mail(asking, {"begin": "-B", "end": "-N", "fail": "-Ne"}, {"abort": "fail"})
    both = "-N" in words and "-Ne" in words
    if both:
        asking.note(APPROXIMATED, None, "mail at fail: that of -N is sent at every end", "info", "Extension MailEvents")
    options: Written = [(word, None) for word in words if word != "-Ne" or not both]
    return [*options, ("-u", address)] if address else options


# -- priority, hold, signal
def _write_priority(asking: Asking) -> Written:
    priority, nice = asking.one("Priority"), asking.extension("Nice")
    if priority is not None and asking.source in ("", "lsf") and int(priority.text) > 0:
        return [("-sp", priority.text)]
    for entry in (priority, nice):
        if entry is not None:
            asking.dropped(entry, f"a priority of {asking.origin or 'that kind'} is not on the site's scale from 1")
    return []


def _read_signal(reading: Reading, options: Mapping[str, Option]) -> None:
    action, ahead = options.get("-wa"), options.get("-wt")
    try:
        seconds = _minutes(ahead.value or "") if ahead is not None else 0
    except ValueError:
        seconds = 0
    if action is not None and seconds and re.fullmatch(r"[A-Z]\w*", action.value or "", re.ASCII):
        reading.put(SCHEDULER.format("Signal"), f"{action.value}@{seconds}", action)
        return
    for option in filter(None, (action, ahead)):
        reading.keep(option)


def _write_signal(asking: Asking) -> Written:
    entry = asking.extension("Signal")
    signal = None if entry is None else signal_of(entry.text)
    if entry is not None and (signal is None or not signal[2] or not signal[1][0].isalpha()):
        asking.dropped(entry, f"LSF cannot say {entry.text[:80]}")
    elif entry is not None and signal is not None:
        of_script, name, seconds = signal
        if of_script or asking.source == "slurm":
            asking.note(APPROXIMATED, entry, "all processes of the job get the signal")
        if seconds % 60:
            asking.note(APPROXIMATED, entry, "LSF counts whole minutes; rounded up")
        return [("-wa", name), ("-wt", _shown(str(seconds)))]
    return []


def _read_rerun(reading: Reading, options: Mapping[str, Option]) -> None:
    """The last of the two counts."""
    option = next(o for o in reversed(reading.options) if o.name in options)
    reading.put("Restartable", option.name == "-r", option)


def _write_rerun(asking: Asking) -> Written:
    entry = asking.one("Restartable")
    return [] if entry is None else [("-r" if entry.value else "-rn", None)]


def _read_copies(reading: Reading, options: Mapping[str, Option]) -> None:
    """All files that are copied: each has an option of its own (bsub(1), -f)."""
    copies = [option for option in reading.options if option.name in options]
    for option in [o for o in copies if not o.line] or copies:
        reading.put(_COPY, option.value or "", option)


def _write_copies(asking: Asking) -> Written:
    return [("-f", entry.text) for entry in asking.extensions("f", "lsf")]


_COPY: Final = "Extension[name=f,type=lsf]"


def _write_exclusive(asking: Asking) -> Written:
    entry = asking.extension("ExclusiveNodeUse")
    if entry is None or entry.text == "false" or (
            asking.extension("nnodes", "lsf") is not None and asking.extension("exclusive", "lsf") is None):
        return []
    if asking.source not in ("", "lsf"):
        asking.note(APPROXIMATED, entry, "hosts are asked for whole; how many follows from the slots", "info")
    return [("-x", None)]


_TRUE: Final = Grammar(lambda text: text == "true", str, "true or false")

_MEANT: Final[tuple[AnyRow, ...]] = (
    Special(("-J",), _read_name, _write_name, of=("Name", SCHEDULER.format("Array"))),
    Row("-Jd", SCHEDULER.format("Comment")),
    Row("-P", "Project"),
    Row("-G", "Group"),
    listed("-q", "Queue", " "),
    Row("-app", "Application"),
    Row("-U", "Reservation"),
    Row("-clusters", "Machine", _CLUSTER),
    Special(("-W",), _read_limit, _write_limit, of=("Requested/Duration",)),
    Row("-We"),
    limit("-c", "CPUTime", _TIME, "", "Hard", "Soft", whole=60),
    Special(NAMES, read_layout, write_layout),
    *(special_limit(name, said) for name, said in (
        ("-C", "CoreFileSize"), ("-D", "DataSegSize"), ("-F", "FileSize"), ("-S", "StackSize"), ("-v", "MaxSwap"))),
    limit("-p", "MaxProcesses", COUNT, "", "Hard", "Soft"),
    rowed(Row("-x", SCHEDULER.format("ExclusiveNodeUse"), _TRUE, "true"), _write_exclusive),
    Special(("-w",), _read_depend, _write_depend, of=(*OF_DEPENDENCIES, "Extension[name=w,type=lsf]")),
    _moment("-b", "EligibleTime"),
    _moment("-t", "DeadlineTime"),
    user_hold("-H"),
    rowed(Row("-sp", "Priority", INTEGER), _write_priority, SCHEDULER.format("Nice")),
    Special(("-r", "-rn"), _read_rerun, _write_rerun, of=("Restartable",)),
    Special(("-wa", "-wt"), _read_signal, _write_signal, of=(SCHEDULER.format("Signal"),)),
    Row("-I", "Interactive", _TRUE, "true"),
    Row("-K", WAIT, fixed="true"),
    Row("-L", SCHEDULER.format("LoginShell")),
    directory("-cwd"),
    Special(("-i", "-o", "-oo", "-e", "-eo"), _read_files, _write_files, of=OF_FILES),
    Special(("-f",), _read_copies, _write_copies, of=(_COPY,)),
    Special(("-env",), _read_environment, _write_environment),
    Special(("-B", "-N", "-Ne", "-u"), _read_mail, _write_mail, of=OF_MAIL),
)
_OTHER: Final = tuple(Row(f"-{name}") for name in sorted(FLAGS | VALUES)
                      if f"-{name}" not in {n for row in _MEANT for n in row.names})

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="We Jm Q alloc_flags ar core_isolation g hl jobaff mig network pack R.affinity R.decay R.duration sla smt "
          "step_cgroup ti ul",
    looks="B N Nd V json notify")

DIALECT: Final = Dialect(
    "lsf", "LSF", "#BSUB", (*_MEANT, *_OTHER), scan, directive, arguments, _TOKENS, ("LSB_", "LS_", "LSF_"), live,
    (".lsf", ".bsub", ".sh"), marks=("BSUB",), index=_index,
    patterns={"%J": "job_id", "%I": "array_index", "%EJ": "job_id", "%EI": "array_index", "%JG": "job_group",
              "%P": "account", "%U": "user", "%G": "user_group", "%H": "host"},        # bsub(1), -cwd
    spellings=("nnodes", "exclusive", "memory"), slots=True, late=True,
    unfiled="in a mail", consequences=_HARMLESS, flags=frozenset(f"-{name}" for name in FLAGS - VALUES))
TRANSLATOR: Final = translator(DIALECT)
