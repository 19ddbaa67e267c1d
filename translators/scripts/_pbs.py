"""What PBS Pro and Torque have in common: most of the options. How qsub finds them is in ``_pbs_lines``.

Source: qsub(1B), pbs_resources(7B).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from sssjob.lrm.pbs import SIZE as PBS_SIZE
from sssjob.lrm.sizes import writer
from sssjob.request.asked import AMOUNTS
from sssjob.translators.scripts.base import APPROXIMATED, SITE, AnyRow, Asking, Dialect, Reading, Row, Special, table
from sssjob.translators.scripts.common import (
    SCHEDULER,
    WAIT,
    Written,
    array,
    moment,
    named,
    priority_between,
    rowed,
    user_hold,
)
from sssjob.translators.scripts.dependencies import CORRESPONDING, OF_DEPENDENCIES, dependencies, read_dependencies
from sssjob.translators.scripts.environment import read_variables, variables
from sssjob.translators.scripts.grammars import INTEGER, PBS_SECONDS, PBS_TIME, YES, Grammar, Kept, file_reader
from sssjob.translators.scripts.notices import OF_MAIL, mail, read_mail
from sssjob.translators.scripts.raw import Option
from sssjob.translators.scripts.resource_limits import limit
from sssjob.translators.scripts.streams import OF_FILES, file_name, merged, source_merges

_SIZE: Final = writer("b,kb,mb,gb,tb")


def size_text(text: str) -> str:
    """Bytes as qsub takes them, in the largest unit that is exact."""
    return _SIZE(int(text))


SIZE: Final = Grammar(PBS_SIZE.read, size_text, "a size such as 4gb")

#: What qsub of each takes for events: of Torque, p is none whatever the server does.
_MAILS: Final = {"pbspro": "abejn", "torque": "abefnp"}
_EVENTS: Final = {"b": "begin", "e": "end", "a": "abort", "n": "none", "j": "array-tasks", "f": "fail"}
_LETTERS: Final = {v: k for k, v in _EVENTS.items()}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    option, letters = options.get("-m"), _MAILS[reading.dialect.name]
    if option is not None and (not option.value or option.value.strip(letters)):
        reading.misfit(option, "is no list of events", f"letters of {letters}")
        option = None
    events = [_EVENTS[c] for c in dict.fromkeys(option.value or "") if c in _EVENTS] if option is not None else []
    read_mail(reading, events, options.get("-M"), option)


def _write_mail(asking: Asking) -> Written:
    """``-m`` and ``-M``: mail of elements (j) has an array alone, and beside that of the job; mail at a failure (f) is
    known to newer releases of Torque alone, so it is written for what was one."""
    own = asking.dialect.name
    sayable = {"begin", "end", "abort", "none"} | ({"array-tasks"} if own == "pbspro" and asking.says("Array") else
                                                   {"fail"} if own == "torque" == asking.source else set())
    words, address = mail(asking, {event: _LETTERS[event] for event in _LETTERS if event in sayable}, {"fail": "abort"})
    letters = [letter for letter in "abefj" if letter in words]
    if letters == ["j"]:
        letters = ["a", "j"]
    options: Written = [("-m", "".join(letters) or "n")] if words else []
    return [*options, ("-M", address)] if address else options


def _read_environment(reading: Reading, options: Mapping[str, Option]) -> None:
    if "-V" in options:
        read_variables(reading, "", options["-V"], "true")
    if "-v" in options:
        read_variables(reading, options["-v"].value or "", options["-v"], None)


def _write_environment(asking: Asking) -> Written:
    words = variables(asking)
    return ([("-V", None)] if asking.export() else []) + (
        [("-v", ",".join(words))] if words else [])


@cache
def _path(dialect: Dialect) -> Callable[[str], str]:
    """How file names of a dialect are read."""
    tokens = dialect.tokens
    return file_reader({re.sub(r"\W", "", native): token for token, native in tokens.items()},
                       r"\^(?P<name>\w+)\^" if "^jobid^" in tokens.values() else
                       r"\$(?P<brace>\{)?(?P<name>\w+)(?(brace)\})")


def _read_files(reading: Reading, options: Mapping[str, Option]) -> None:
    join = options["-j"].value if "-j" in options else None
    if join not in (None, "oe", "eo", "n"):
        reading.misfit(options["-j"], "is no way to join", "oe, eo or n")
    read = _path(reading.dialect)
    added = reading.dialect.element if reading.dialect.element and any(o.name == "-t" for o in reading.options) else ""
    for name, tag, merge in (("-o", "OutputFile", "eo"), ("-e", "ErrorFile", "oe")):
        more = {"redirectList": "Merge"} if join == merge else {}
        option = options.get(name) or (options["-j"] if more else None)
        if option is not None:
            path = read(option.value or "") if option.name == name else ""
            whole = not path or path.endswith("/") or path == "/dev/null"       # which nobody means a file by
            reading.put(tag, path if whole else path + added, option, **more)
    if join == "n":
        reading.keep(options["-j"])


def _write_files(asking: Asking) -> Written:
    output, error = file_name(asking, "OutputFile"), file_name(asking, "ErrorFile")
    join = merged(asking, error, output)
    if not join and not asking.find("ErrorFile") and output[0] is not None and source_merges(asking):
        asking.note(APPROXIMATED, None, f"ErrorFile: without one {asking.origin} sends both streams to one file; "
                    "-j oe says so", "info", "ErrorFile")
        join = "oe"
    elif not join and output[0] is not None and output[0] == error[0] and asking.source not in ("", *_KIN):
        asking.note(APPROXIMATED, None, "ErrorFile: of two streams with one file each would replace the other's there; "
                    "-j oe says that they share it", "info", "ErrorFile")
        join, error = "oe", (None, error[1])
    options: Written = [("-j", join)] if join else []
    options += [(name, _path_of(asking, tag, text)) for name, tag, text in (
        ("-o", "OutputFile", output[0]), ("-e", "ErrorFile", error[0])) if text is not None]
    return options


def _path_of(asking: Asking, tag: str, text: str) -> str:
    """A file name of a manager that knows no hosts before them: what stands before a colon is one to qsub, unless the
    name begins with a slash (prepare_path.c of OpenPBS and Torque)."""
    if asking.source in ("", "sge", *_KIN) or ":" not in text or text.startswith("/"):
        return text
    asking.note(APPROXIMATED, None, f"{tag}: {asking.dialect.title} takes what stands before a colon for a host; it is "
                "written as _", subject=tag)
    return text.replace(":", "_")


_DATE: Final = Grammar(PBS_TIME.read, lambda text: PBS_TIME.write(text).removesuffix(".00"), PBS_TIME.expected,
                       PBS_TIME.coming)


_SEVERAL: Final = re.compile("[,@]")


def _read_groups(reading: Reading, options: Mapping[str, Option]) -> None:
    """One group; of several, or of one for each host (``a,b@host``), the text is kept as it is."""
    option = options["-W group_list"]
    text = option.value or ""
    reading.put(SCHEDULER.format("GroupList") if _SEVERAL.search(text) else "Group", text, option)


def _write_groups(asking: Asking) -> Written:
    listed, group = asking.extension("GroupList"), asking.one("Group")
    if listed is not None and group is not None:
        asking.dropped(group, "a list of groups is written")
    entry = listed or group
    if entry is None or not entry.text:
        return []
    if re.search(r"[=\s]", entry.text) or ("," in entry.text and listed is None):
        asking.dropped(entry, f"{entry.text!r} is no name of a group")
        return []
    return [("-W group_list", entry.text)]


def _write_depend(asking: Asking) -> Written:
    text = dependencies(asking, ("?", CORRESPONDING, "singleton", "+"))
    return [("-W depend", text)] if text else []


def special_array(letter: str, *, lists: bool, step: bool) -> Special:
    """The row of an array."""
    row = Row(letter, "Extension[name=Array,type=Scheduler]", Grammar(_array(lists, step), str, "a range"))

    def write(asking: Asking) -> Written:
        """The indices of the array as the dialect writes them."""
        text = array(asking, lists=lists, step=step)
        return [(letter, text)] if text else []

    return rowed(row, write)


def _array(lists: bool, step: bool) -> Callable[[str], str]:
    indices = r"\d+-\d+(?::\d+)?" if step else r"\d+(?:-\d+)?"
    pattern = re.compile(rf"{indices}{f'(?:,{indices})*' if lists else ''}(?:%\d+)?", re.ASCII)

    def read(text: str) -> str:
        """The text, if it is a range of indices. Raises ValueError."""
        if not pattern.fullmatch(text):
            raise ValueError("is no range of indices")
        return text

    return read


def _write_disk(asking: Asking) -> Written:
    disk = asking.one("Disk", AMOUNTS, carried=("metric", "units"))
    if disk is None:
        return []
    if (metric := disk.attributes.get("metric", "Total")) != "Total":
        asking.note(APPROXIMATED, disk, f"the amount {metric} is written for the files of the job")
    return asking.row(Row("-l file", "Requested/Disk", SIZE))


#: The two dialects of the family.
_KIN: Final = {"pbspro": "torque", "torque": "pbspro"}


#: Options that PBS Pro and Torque know alike and nobody else -> values that mean the same: kept, and written by both.
_FAMILY: Final = dict.fromkeys(("-X", "-z", "-W stagein", "-W stageout", "-l vmem", "-l pvmem", "-l pcput", "-l nice"),
                               re.compile(".*", re.DOTALL)) | {
    "-c": re.compile(r"n|s|c(?:=\d+)?"), "-k": re.compile("[eo]{1,2}|n")}


def _read_family(reading: Reading, options: Mapping[str, Option]) -> None:
    for option in options.values():
        reading.keep(option)


def _write_family(asking: Asking) -> Written:
    """Those that the other one of the family kept."""
    options: Written = []
    kin = _KIN.get(asking.dialect.name, "")
    for name, values in _FAMILY.items():
        entry = asking.extension(name.lstrip("-"), kin) if (name.lstrip("-"), kin) in asking.keys else None
        if entry is not None and values.fullmatch(entry.text):
            options.append((name, None if entry.text == "true" else entry.text))
        elif entry is not None:
            entry.used = False
    return options


_SERVER: Final = re.compile(r"([^@{}$]*)@([\w.-]+)", re.ASCII)


def _read_destination(reading: Reading, options: Mapping[str, Option]) -> None:
    """A queue, a server, or a queue of a server (qsub(1B), -q)."""
    option = options["-q"]
    parts = _SERVER.fullmatch(option.value or "")
    if parts is None or parts[1]:
        reading.put("Queue", parts[1] if parts is not None else option.value or "", option)
    if parts is not None:
        reading.put("Machine", parts[2], option)


def _write_destination(asking: Asking) -> Written:
    queue, server = asking.at("Queue"), asking.at("Machine")
    if server is not None and not re.fullmatch(r"[\w.-]+", server.text, re.ASCII):
        asking.dropped(server, "a queue is one of one server")
        server = None
    elif server is not None and asking.source not in ("", "pbspro", "torque"):
        asking.note(SITE, server, f"{server.text} is named as a server, whose name the site knows")
    text = ("" if queue is None else queue.text) + ("" if server is None else f"@{server.text}")
    return [("-q", text)] if text else []


def _waiting(text: str) -> str:
    if text.lower() not in ("true", "t", "y", "1"):
        raise Kept("what holds anyway")
    return "true"


ROWS: Final[tuple[AnyRow, ...]] = table((
    named(Row("-N", "Name")),
    Row("-A", "Project"),
    Special(("-q",), _read_destination, _write_destination,
            of=("Queue", "Machine")),
    Row("-l walltime", "Requested/Duration", PBS_SECONDS),
    limit("-l cput", "CPUTime", PBS_SECONDS, "", "Hard"),
    rowed(Row("-l file", "Requested/Disk", SIZE), _write_disk),
    Row("-l software", "Application"),
    Special(("-W group_list",), _read_groups, _write_groups, of=("Group", SCHEDULER.format("GroupList"))),
    Row("-u", "User"),
    Special(("-W depend",), lambda reading, options: read_dependencies(reading, options["-W depend"]), _write_depend,
            of=OF_DEPENDENCIES),
    moment("-a", "EligibleTime", _DATE),
    user_hold("-h"),
    rowed(Row("-p", "Priority", INTEGER), priority_between(-1024, 1023), SCHEDULER.format("Nice")),
    Row("-r", "Restartable", YES),
    Row("-I", "Interactive", Grammar(lambda text: text == "true", str, "true"), "true"),
    Row("-S", "Shell"),
    Row("-W umask", SCHEDULER.format("Umask")),
    Row("-W block", WAIT, Grammar(_waiting, str, "true")),
    Special(("-j", "-o", "-e"), _read_files, _write_files, of=OF_FILES),
    Special(("-V", "-v"), _read_environment, _write_environment),
    Special(("-m", "-M"), _read_mail, _write_mail, of=OF_MAIL),
    Row("-C"),
    Special(tuple(_FAMILY), _read_family, _write_family,
            of=tuple(f"Extension[name={name.lstrip('-')},type={kin}]" for kin in _KIN for name in _FAMILY)),
))
