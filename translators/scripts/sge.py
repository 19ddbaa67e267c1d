"""Batch scripts of Grid Engine, as qsub of Son of Grid Engine 8.1.9 reads them.

Source: submit(1), sge_types(5), complex(5), sge_pe(5), and what ``qsub -verify`` and qmaster 8.1.9 made of small cases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Final

from sssjob.lrm.clocks import clock
from sssjob.lrm.idset import one_range
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.sge import seconds
from sssjob.lrm.usage import whole
from sssjob.translators.scripts._sge_layout import NAMES, SPACE, read_slots, write_slots
from sssjob.translators.scripts._sge_lines import FLAGS, PREFIX, arguments, directive, live, scan
from sssjob.translators.scripts._sge_names import HOLD, QUEUES, joined
from sssjob.translators.scripts.base import (
    APPROXIMATED,
    AnyRow,
    Asking,
    Dialect,
    Reading,
    Row,
    Special,
    harmless,
    translator,
)
from sssjob.translators.scripts.common import (
    SCHEDULER,
    WAIT,
    Written,
    below,
    elsewhere,
    moment,
    named,
    one_more,
    priority_between,
    rowed,
    signal_of,
    user_hold,
)
from sssjob.translators.scripts.environment import named_variables
from sssjob.translators.scripts.grammars import INTEGER, PBS_TIME, Grammar, Kept, file_reader
from sssjob.translators.scripts.notices import OF_MAIL, mail, read_mail
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.resource_limits import limit
from sssjob.translators.scripts.streams import OF_FILES, file_name, merged, source_merges

__all__ = ["DIALECT", "TRANSLATOR"]


# -- times and sizes
def _seconds(text: str) -> int:
    span = seconds(text)
    if span is None:
        raise Kept("no limit")
    return span


def _date(text: str) -> int:
    """``[[CC]YY]MMDDhhmm[.SS]``; years below 70 are of this century (sge_types(5))."""
    match = re.fullmatch(r"(?:(\d\d)?(\d\d))?(\d{8})(?:\.(\d\d))?", text, re.ASCII)
    if match is None:
        raise ValueError("is no date of Grid Engine")
    century, year, rest, seconds = match.groups()
    if year is None:
        PBS_TIME.read(f"{rest}.{seconds or '00'}")
    century = century or ("20" if int(year) < 70 else "19")
    stamp = PBS_TIME.read(f"{century}{year}{rest}.{seconds or '00'}")
    assert isinstance(stamp, int)
    return stamp


_TIME: Final = Grammar(_seconds, lambda text: clock(int(text)), "seconds or H:M:S")
_DATE: Final = Grammar(_date, lambda text: PBS_TIME.write(text).removesuffix(".00"), "[[CC]YY]MMDDhhmm[.SS]",
                       {"Year": PBS_TIME.coming["Year"]})


def _yes(text: str) -> bool:
    if text not in ("y", "yes", "n", "no"):
        raise ValueError("is neither y nor n")
    return text[0] == "y"


def _synchronous(text: str) -> str:
    if not _yes(text):
        raise Kept("what holds anyway")
    return "true"


def _priority(text: str) -> int:
    value = INTEGER.read(text)
    if not isinstance(value, int) or not -1023 <= value <= 1024:
        raise ValueError("is no priority")
    return value


_YES: Final = Grammar(_yes, lambda text: "y" if text == "true" else "n", "y or n")
_SYNC: Final = Grammar(_synchronous, lambda text: "y", "y or n")
_PRIORITY: Final = Grammar(_priority, str, "-1023 to 1024")


def _adding(name: str) -> Special:
    """An option that adds up and that only Grid Engine knows."""
    return Special((name,), lambda reading, options: reading.keep(joined(reading.every(name))), lambda asking: [],
                   of=())


# -- arrays
def _read_array(reading: Reading, options: Mapping[str, Option]) -> None:
    option, most = options.get("-t"), options.get("-tc")
    if most is not None and not re.fullmatch(r"\+?\d{1,9}", most.value or "", re.ASCII):
        reading.misfit(most, "is no number of tasks", "a number")
        most = None
    text = ""
    if option is not None and (tasks := one_range(option.value or "")) is not None:
        (first, last), step = sorted(tasks[:2]), tasks[2]
        text = str(first) if "-" not in (option.value or "") else f"{first}-{last}{f':{step}' if step > 1 else ''}"
        if not first or not step:
            reading.misfit(option, "tasks are counted from 1, with a step", "N[-M[:S]]")
            option = None
    elif option is not None and not (text := _even((option.value or "").split(","))):
        reading.misfit(option, "is no range of tasks", "N[-M[:S]]")
        option = None
    if option is None:
        if most is not None:
            reading.keep(most)
        return
    throttle = int(most.value or 0) if most is not None else 0
    reading.put("Extension[name=Array,type=Scheduler]", text + (f"%{throttle}" if throttle else ""), option)


def _even(texts: list[str]) -> str:
    """The range of ``1,3,5``; empty where the numbers are not that far apart."""
    if len(texts) < 2 or not all(re.fullmatch(r"\d{1,10}", t, re.ASCII) for t in texts):
        return ""
    numbers = [int(t) for t in texts]
    steps = {b - a for a, b in pairwise(numbers)}
    step = steps.pop()
    if steps or step < 1:
        return ""
    return f"{numbers[0]}-{numbers[-1]}{f':{step}' if step > 1 else ''}"


def _index(array: str) -> str:
    """Tasks are counted from 1: of an array from 0 each has one more."""
    return "{} - 1" if re.match(r"0+(?!\d)", array) else ""


def _write_array(asking: Asking) -> Written:
    entry = asking.extension("Array")
    if entry is None:
        return []
    ranges, _, most = entry.text.partition("%")
    ranges = _even(ranges.split(",")) or ranges
    tasks = one_range(ranges)
    if tasks is None:
        asking.dropped(entry, f"Grid Engine has one range, not {ranges}")
        return []
    first, last, step = tasks
    if step > 1 and first < last and asking.source != asking.dialect.name:
        beyond = (last - first) % step
        last -= beyond
        ranges = f"{first}-{last}:{step}"
        if beyond:
            asking.note(APPROXIMATED, entry, f"{ranges}, for SGE_TASK_LAST is what stands there, elsewhere it is the "
                        "last index", "info")
    if first == 0:
        one_more(asking)
        ranges = f"1-{last + 1}{f':{step}' if step > 1 else ''}" if "-" in ranges else "1"
        asking.note(APPROXIMATED, entry, f"tasks are counted from 1: {ranges}, each one more than was asked for")
    return [("-t", ranges.removesuffix(":1")), *([("-tc", most)] if most else [])]


# -- files
_TOKENS: Final = {"{jobid}": "$JOB_ID", "{index}": "$TASK_ID", "{name}": "$JOB_NAME", "{user}": "$USER",
                  "{host}": "$HOSTNAME"}
_path = file_reader({v[1:]: k for k, v in _TOKENS.items()}, r"\$(?P<name>JOB_ID|TASK_ID|JOB_NAME|USER|HOSTNAME)")


def _file(text: str) -> str:
    """A colon at the beginning says that there is no host before the path."""
    return _path(text if ":" in text[1:] else text.removeprefix(":"))


_FILE: Final = Grammar(_file, str, "a file name")


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    join = options.get("-j")
    if join is not None and join.value not in ("y", "yes", "n", "no"):
        reading.misfit(join, "is neither y nor n", "y or n")
        join = None
    merge = join is not None and (join.value or "").startswith("y")
    for name, tag in (("-i", "InputFile"), ("-o", "OutputFile"), ("-e", "ErrorFile")):
        option = options.get(name)
        if name == "-e" and merge and join is not None:
            reading.put(tag, _path(option.value or "") if option is not None and option.value else "", option or join,
                        redirectList="Merge")
        elif option is not None:
            reading.row(Row(name, tag, _FILE), option)
    if join is not None and not merge:
        reading.keep(join)


def _write_files(asking: Asking) -> Written:
    def literal(text: str) -> str:
        """Text as Grid Engine's file names hold it. Raises LookupError for a comma."""
        if "," in text and asking.source != "sge":
            raise LookupError("way to say a comma")
        return text

    source, _ = file_name(asking, "InputFile", literal)
    output, error = (file_name(asking, tag, literal, holds=("Merge", "Append")) for tag in ("OutputFile", "ErrorFile"))
    join = merged(asking, error, output)
    out, err = output[0], error[0]
    _appended(asking, {"OutputFile": output, "ErrorFile": error})
    if join == "eo":
        for tag in ("OutputFile", "ErrorFile"):
            asking.note(APPROXIMATED, None, f"{tag}: both streams go into the file of output, now that of errors",
                        "info", tag)
        out, err = err, None
    elif not join and "ErrorFile" not in asking.tags and out is not None and source_merges(asking):
        asking.note(APPROXIMATED, None, f"ErrorFile: without one {asking.origin} sends both streams to one file; -j y "
                    "says so", "info", "ErrorFile")
        join = "oe"
    hosts = asking.source in ("", "sge", "pbspro", "torque")      # a colon parts a host from the path
    options: Written = [(name, text if hosts or ":" not in text else f":{text}")
                        for name, text in (("-i", source), ("-o", out), ("-e", err)) if text is not None]
    return [*options, ("-j", "y")] if join else options


def _appended(asking: Asking, files: Mapping[str, tuple[str | None, set[str]]]) -> None:
    """The finding for files that the source empties before a job writes: qsub's are always appended to."""
    for tag, (text, how) in files.items():
        if "Append" in how and asking.source != asking.dialect.name:
            asking.note(APPROXIMATED, None, f"{tag}: Grid Engine always appends", "info", tag)
        if text and asking.source not in ("", "sge") and "Append" not in how and "JOB_ID" not in text \
                and not text.startswith("/dev/") and not text.endswith("/"):
            asking.note(APPROXIMATED, None, f"{tag}: Grid Engine appends to a file that is there, where "
                        f"{asking.origin} empties it", "info", tag)


def _read_directory(reading: Reading, options: Mapping[str, Option]) -> None:
    """``-cwd`` and ``-wd`` replace each other."""
    option = next(o for o in reversed(reading.options) if o.name in options)
    reading.put("InitialWorkingDirectory", option.value or ".", option)


def _write_directory(asking: Asking) -> Written:
    entry = asking.one("InitialWorkingDirectory")
    if entry is None:
        if not asking.came_from("submit"):
            return []
        asking.goes = True
        asking.note(APPROXIMATED, None, f"InitialWorkingDirectory: a job of {asking.origin} starts in the directory of "
                    "submission; -cwd says so", "info", "InitialWorkingDirectory")
        return [("-cwd", None)]
    if below(entry.text) == "." and asking.source != asking.dialect.name:
        return [("-cwd", None)]
    if elsewhere(asking, entry):
        entry.used = False                      # the script goes there
        return [("-cwd", None)]
    return [("-cwd", None)] if entry.text == "." else [("-wd", entry.text)]


# -- environment
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _read_environment(reading: Reading, options: Mapping[str, Option]) -> None:
    if "-V" in options:
        reading.scope(("Environment",)).attributes = {"export": "true"}
    by_name: dict[str, tuple[str | None, Option]] = {}
    for option in reading.every("-v"):
        for part in (option.value or "").split(","):
            name, sign, value = part.partition("=")
            if name:
                by_name.pop(name, None)
                by_name[name] = (value if sign else None, option)
    if "-V" in options:
        for name, (text, option) in by_name.items():
            if text is not None:
                reading.tell(APPROXIMATED, option, f"-V goes before it: where the submitter has {name}, that value "
                             "counts")
    strange = {name: name if text is None else f"{name}={text}" for name, (text, _) in by_name.items()
               if not _VARIABLE.fullmatch(name)}
    for name, (text, option) in by_name.items():
        if text is not None and name not in strange:
            reading.put("Environment/Variable", text, option, name=name)
    names = [name for name, (text, _) in by_name.items() if text is None]
    for where, some in (("Extension[name=ExportNames,type=Scheduler]", [n for n in names if n not in strange]),
                        ("Extension[name=v,type=sge]", list(strange.values()))):
        if some:
            reading.put(where, ",".join(some), options["-v"])


_UNQUOTED: Final = re.compile(r"[,\"'#\x00-\x1f\x7f]")


def _write_environment(asking: Asking) -> Written:
    variables_written = []
    for e in named_variables(asking):
        if _UNQUOTED.search(e.text) or e.text != e.text.rstrip():
            asking.unsaid.append((e, f"the value of {e.attributes.get('name')} cannot stand in a directive"))
        else:
            variables_written.append(f"{e.attributes.get('name')}={e.text}")
    names = asking.extension("ExportNames")
    variables_written += [] if names is None else names.text.split(",")
    odd = asking.extension("v", "sge")
    variables_written += [] if odd is None else [odd.text]
    return ([("-V", None)] if asking.export() else []) + (
        [("-v", ",".join(variables_written))] if variables_written else [])


# -- mail, priority, times
_EVENTS: Final = {"b": "begin", "e": "end", "a": "abort", "s": "suspend", "n": "none"}
_LETTERS: Final = {v: k for k, v in _EVENTS.items()}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    """Letters add up; ``n`` takes them all away."""
    letters = ""
    options_given = reading.every("-m")
    if bad := [o for o in options_given if not re.fullmatch("[abens]+", o.value or "")]:
        reading.misfit(bad[-1], "is no list of events", "letters of abens")
        options_given = []
    for option in options_given:
        value = option.value or ""
        letters = "n" if "n" in value else letters.replace("n", "") + value
    events = [_EVENTS[c] for c in _EVENTS if c in letters]
    read_mail(reading, events, options.get("-M"), options.get("-m") if events else None)


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, _LETTERS, {"fail": "abort"})
    letters = sorted(set(words), key="beasn".index)
    if "n" in letters and len(letters) > 1:
        letters.remove("n")
    options: Written = [("-m", "".join(letters))] if letters else []
    return [*options, ("-M", address)] if address else options


_NO_NAME: Final = re.compile(r"[/:@\\*?]")       # what qsub stops at; qmaster refuses more (lrm.names)


def _name(text: str) -> str:
    """What qmaster takes for a name, which may stand in file names and lists."""
    if not text or _NO_NAME.search(text) or text[0].isdigit() or text.lower() in JOB_NAMES["sge"].words:
        raise ValueError("is no name of a job")
    return text


def _digits(text: str) -> str:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError("is no number of Grid Engine's")
    return text


# -- signals before the end (queue_conf(5)): SIGUSR2 comes 60 seconds before, unless notify of a queue says another
#    time, SIGUSR1 at the soft limit of time
_NOTIFIED: Final = "B:USR2@60"


def _read_signal(reading: Reading, options: Mapping[str, Option]) -> None:
    notify, soft = options.get("-notify"), options.get("-l s_rt")
    if notify is not None:
        reading.put(SCHEDULER.format("Signal"), _NOTIFIED, notify)
    if soft is None:
        return
    hard = next((option for option in reversed(reading.options) if option.name == "-l h_rt"), None)
    ahead = 0
    with suppress(ValueError, Kept):
        ahead = 0 if hard is None else _seconds(hard.value or "") - _seconds(soft.value or "")
    if notify is None and ahead > 0:
        reading.put(SCHEDULER.format("Signal"), f"B:USR1@{ahead}", soft)
    else:
        reading.keep(soft)              # how long before the end it comes nothing says, or another signal comes too


def _write_signal(asking: Asking) -> Written:
    """``-notify``, or the soft limit of time: all processes of the job get those signals."""
    entry = asking.extension("Signal")
    if entry is None or entry.text == _NOTIFIED:
        return [] if entry is None else [("-notify", None)]
    signal, limits = signal_of(entry.text), asking.said("Duration")
    seconds = whole(limits[0].text) if len(limits) == 1 else None
    if signal is None or signal[1] != "USR1" or not signal[2] or seconds is None or signal[2] >= seconds:
        asking.dropped(entry, "beside SIGUSR2 of -notify Grid Engine sends SIGUSR1, before a time limit that is stated")
        return []
    if asking.source != "sge":
        asking.note(APPROXIMATED, entry, "it comes at the soft limit of time, to all processes of the job")
    return [("-l s_rt", _TIME.write(str(seconds - signal[2])))]


_NAME: Final = Grammar(_name, _name, "a name that begins with a letter, without / : @ \\ * ?")

ROWS: Final[tuple[AnyRow, ...]] = (
    Row("-clear"),
    named(Row("-N", "Name", _NAME)),
    Row("-P", "Project"),
    Row("-A"),
    QUEUES,
    Row("-ar", "Reservation", Grammar(_digits, _digits, "the number of a reservation")),
    Row("-l h_rt", "Requested/Duration", _TIME),
    limit("-l h_cpu", "CPUTime", _TIME, "", "Hard"),
    limit("-l s_cpu", "CPUTime", _TIME, "Soft"),
    *(limit(f"-l {letter}_{resource}", name, SPACE, *kinds)
      for resource, name in (("core", "CoreFileSize"), ("data", "DataSegSize"), ("fsize", "FileSize"),
                             ("rss", "MaxMemorySize"), ("stack", "StackSize"))
      for letter, kinds in (("h", ("", "Hard")), ("s", ("Soft",)))),
    Special(NAMES, read_slots, write_slots),
    _adding("-masterq"),
    Row("-binding"),
    Special(("-t", "-tc"), _read_array, _write_array, of=(SCHEDULER.format("Array"),)),
    HOLD,
    moment("-a", "EligibleTime", _DATE),
    moment("-dl", "DeadlineTime", _DATE),
    user_hold("-h"),
    rowed(Row("-p", "Priority", _PRIORITY), priority_between(-1023, 1024), SCHEDULER.format("Nice")),
    Row("-js"),
    Row("-R"),
    Row("-r", "Restartable", _YES),
    Row("-ckpt"),
    Row("-c"),
    Special(("-notify", "-l s_rt"), _read_signal, _write_signal, of=(SCHEDULER.format("Signal"),),
            beside=("-l h_rt",)),
    Row("-S", "Shell"),
    Row("-sync", WAIT, _SYNC),
    Special(("-cwd", "-wd"), _read_directory, _write_directory),
    Special(("-i", "-o", "-e", "-j"), _read_files, _write_files, of=OF_FILES),
    Special(("-V", "-v"), _read_environment, _write_environment),
    Special(("-m", "-M"), _read_mail, _write_mail, of=OF_MAIL),
    *(_adding(f"-{name}") for name in ("ac", "dc", "sc")),
    *(Row(f"-{name}") for name in ("@", "b", "jsv", "now", "pty", "shell", "terse", "u", "verify", "w")),
)

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="A R binding masterq now pe soft w",
    looks="ac b clear js jsv shell sync terse verify")

DIALECT: Final = Dialect(
    "sge", "Grid Engine", PREFIX, ROWS, scan, directive, arguments, _TOKENS, ("SGE_",), live, (".sge", ".sh"),
    hints={"l h_": "", "l s_": "", "l hostname": "", "l ": "sge.complex of a site profile says what it is"},
    starts_in="home", absolute=True, exports=False, merges=False, open=("soft ",), marks=(PREFIX,), index=_index,
    spellings=("memory", *(f"{name}={no}" for name in ("now", "R", "sync", "b") for no in ("n", "no")), "shell=y",
               "shell=yes"), placing="pe", slots=True, late=True,
    files=("{name}.o{jobid}", "{name}.e{jobid}"), appends=True, of_hosts=True, of_input="STDIN", consequences=_HARMLESS,
    flags=frozenset(f"-{name}" for name in FLAGS))
TRANSLATOR: Final = translator(DIALECT)
