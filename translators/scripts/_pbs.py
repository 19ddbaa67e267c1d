"""What PBS Pro and Torque have in common: how qsub finds and splits directives, and most of the options.

Source: qsub(1B), pbs_resources(7B) and qsub.c of OpenPBS and of Torque. ``-l a=1,b=2`` is read as the options
``-l a`` and ``-l b``, ``-W x=y`` as ``-W x``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

from sssjob.lrm.pbs import SIZE as PBS_SIZE
from sssjob.lrm.sizes import writer
from sssjob.request.asked import AMOUNTS
from sssjob.templates.quoting import Directive, bare, pbs
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
    table,
)
from sssjob.translators.scripts.common import (
    OF_DEPENDENCIES,
    OF_FILES,
    OF_MAIL,
    SCHEDULER,
    Written,
    array,
    dependencies,
    file_name,
    mail,
    merged,
    moment,
    named,
    read_dependencies,
    read_mail,
    read_variables,
    rowed,
    source_merges,
    user_hold,
    variables,
)
from sssjob.translators.scripts.grammars import (
    INTEGER,
    PBS_SECONDS,
    PBS_TIME,
    YES,
    Grammar,
    file_reader,
)
from sssjob.translators.scripts.raw import (
    Line,
    Option,
    Refusal,
    Word,
    dos_breaks,
    option_of,
    pbs_words,
    split_outside,
)
from sssjob.translators.scripts.resource_limits import limit

__all__ = ["PREFIX", "ROWS", "arguments", "directive", "live", "scanner", "size_text", "special_array"]

PREFIX: Final = "#PBS"
#: One option with a value without quotes: nearly all lines are such.
_PLAIN: Final = re.compile(r"""\s*+#PBS\s*+-(\w)\s++([^\s"'\\]++)\s*+""")


# -- the first stage
def _header(lines: list[Line]) -> int:
    """How many lines are read: up to the first that is executable. One that begins with ``:`` is not."""
    commands = (index for index, (_, text, _) in enumerate(lines) if text[:1] not in _NO_COMMAND and _is_command(text))
    return next(commands, len(lines))


def _is_command(text: str) -> bool:
    return text[:1] not in _NO_COMMAND and bool(bare_text := text.lstrip()) and bare_text[0] != "#"


_NO_COMMAND: Final = ("#", ":")


def live(lines: list[Line]) -> list[Line]:
    """The lines that qsub takes for directives."""
    return [line for line in lines[:_header(lines)] if line.text.lstrip().startswith(PREFIX)]


def scanner(letters: str, *, strict: bool, dos: bool) -> Callable[[Reading, list[Line]], Scan]:
    """The first stage. letters: options in the form of getopt; strict: words left over are refused (PBS Pro), else
    ignored (Torque); dos: DOS line breaks are taken."""
    valued = {letter for letter, more in pairwise(letters) if more == ":"}

    def scan(reading: Reading, lines: list[Line]) -> Scan:
        """The directives and the rest of a script's lines, as qsub of this manager reads them."""
        broken = next((line for line in lines if line.end == "\r\n"), None) if dos_breaks(lines) else None
        if broken is not None:
            if not dos:
                reading.refuse("DOS line breaks, which qsub refuses", broken.number, len(broken.text) + 1)
            lines = [Line(line.number, line.text, "\n" if line.end else "") for line in lines]
        result, taken, late = Scan(), 0, False
        options, rest = result.components[0], result.rest
        for index, line in enumerate(lines):
            number, whole, _ = line
            if number <= taken:
                late = late or _is_command(whole)
                continue
            hit = None if late else _PLAIN.fullmatch(whole)
            if hit is not None and (letter := hit[1]) in valued:
                name = f"-{letter}"
                option = option_of((name, hit[2], number, hit.start(1), whole))
                if name in _ALONE:
                    options += _split(option)
                else:
                    options.append(option)
                continue
            late = late or _is_command(whole)
            text = whole.lstrip()
            if not text.startswith(PREFIX):
                rest.append(line)
            elif late:
                reading.dead(line, "qsub stops reading at the first command", len(whole) - len(text) + 1)
                rest.append(line)
            else:
                whole, taken = _continued(lines, index)
                options += _options(reading, line, whole, letters, strict)
        return result
    return scan


def _continued(lines: list[Line], index: int) -> tuple[str, int]:
    """A directive with the lines that a backslash at its end takes up, and the number of the last."""
    text = lines[index].text
    while text.endswith("\\") and index + 1 < len(lines):
        index += 1
        text = text[:-1] + " " + lines[index].text
    return text, lines[index].number


_COMMENT: Final = re.compile(r"\s#")


def _options(reading: Reading, line: Line, text: str, letters: str, strict: bool) -> list[Option]:
    begin = text.index(PREFIX) + len(PREFIX)
    try:
        words, _ = pbs_words(text, line.number, begin)
    except Refusal as error:
        words, lost = _words_before_comment(text, line.number, begin, error)
        reading.refuse(f"{error}; {lost}", line.number, error.column, "directive", line.text)
    return list(_parse(reading, words, line.text, letters, strict))


def _words_before_comment(text: str, line: int, begin: int, error: Refusal) -> tuple[list[Word], str]:
    """The words of a directive whose quotes do not end, where it is a comment behind it that opens them; none where the
    directive itself does. Also what is lost. error: what is wrong with the whole."""
    comment = _COMMENT.search(text, begin, max(begin, error.column))
    if comment is not None:
        try:
            words, _ = pbs_words(text[:comment.start()], line, begin)
        except Refusal:
            pass
        else:
            return words, "qsub knows no comments behind a directive, this one is left out"
    return [], "the directive is left out"


def _parse(reading: Reading, words: list[Word], text: str, letters: str, strict: bool) -> Iterator[Option]:
    """Options as getopt finds them."""
    queue = list(reversed(words))
    while queue:
        at = queue.pop()
        ended = at.text == "--"             # what follows is no option, whatever it looks like
        if ended and not queue:
            return
        at = queue.pop() if ended else at
        if ended or not at.text.startswith("-") or len(at.text) < 2:
            message = f"{at.text!r} is no option; a comment cannot follow a directive"
            if strict:
                reading.refuse(message, at.line, at.column, at.text, text)
            elif not at.text.startswith("#"):       # a comment is nothing that gets lost
                reading.findings.add(APPROXIMATED, at.text, f"{at.text!r} and what follows are ignored",
                                     line=at.line, column=at.column, excerpt=text)
            return
        if at.text.startswith("--"):
            reading.refuse(f"{at.text[:80]}: no such option; those of qsub are single letters, and it stops at the "
                           "second dash (invalid option -- '-')", at.line, at.column, at.text, text)
            return
        rest = at.text[1:]
        while rest:
            letter, rest = rest[0], rest[1:]
            where = letters.find(letter)
            if where < 0 or letter == ":":
                reading.refuse(f"-{letter}: no such option", at.line, at.column, at.text, text)
                return
            if letters[where + 1:where + 2] != ":":
                yield Option(f"-{letter}", None, at.line, at.column, text)
                continue
            if not rest and not queue:
                reading.refuse(f"-{letter} wants a value", at.line, at.column, f"-{letter}", text)
                return
            yield from _split(Option(f"-{letter}", rest or queue.pop().text, at.line, at.column, text))
            break


#: What begins another name after a comma.
_ALONE: Final = {"-l": re.compile(r"[A-Za-z_][\w.-]*(?:=|\Z)"), "-W": re.compile(r"\s*[A-Za-z_][\w.-]*\s*=")}


def _split(option: Option) -> Iterator[Option]:
    """``-l a=1,b=2`` and ``-W`` as an option for each name. What has no ``=`` belongs to the value before it in ``-W``
    (parse_equal_string of qsub): ``-W group_list=a,b,umask=022`` has two names."""
    if option.name not in _ALONE:
        yield option
        return
    value, parts = option.value or "", list[str]()
    alone = _ALONE[option.name]
    for part in split_outside(value, ",") if "," in value else (value,):
        if parts and not alone.match(part):
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    for part in parts:
        name, sign, text_given = part.partition("=")
        if name.strip():
            yield Option(f"{option.name} {name.strip()}", text_given if sign else None, option.line, option.column,
                         option.text)


def arguments(letters: str) -> Callable[[Reading, str], list[Option]]:
    """Options of the command line."""
    return lambda reading, text: list(_parse(reading, [Word(w, 0, 0) for w in shlex.split(text)], text, letters, True))


_SIMPLE: Final = re.compile(r"-[A-Za-z]( \w+)?", re.ASCII)


@lru_cache(maxsize=256)
def _joined(name: str) -> str:
    """What stands between a simple name and its value: ``=`` after a resource; empty for a name that takes thought."""
    simple = _SIMPLE.fullmatch(name)
    return "" if simple is None else "=" if simple[1] else " "


def directive(name: str, value: str | None) -> str:
    """``-l walltime=1:00:00``, ``-N name``, ``-V``."""
    if value is not None and (sign := _joined(name)) and bare(value):
        return f"{name}{sign}{value}"
    letter, _, resource = name.lstrip("-").partition(" ")
    if resource:
        value = resource if value is None else f"{resource}={value}"
    return pbs(Directive(letter, value, name))


# -- the second stage
_SIZE: Final = writer("b,kb,mb,gb,tb")


def size_text(text: str) -> str:
    """Bytes as qsub takes them, in the largest unit that is exact."""
    return _SIZE(int(text))


SIZE: Final = Grammar(PBS_SIZE.read, size_text, "a size such as 4gb")


_MAILS: Final = re.compile(r"[abejn]+|p")
_EVENTS: Final = {"b": "begin", "e": "end", "a": "abort", "n": "none", "j": "array-tasks"}
_LETTERS: Final = {v: k for k, v in _EVENTS.items()}


def _read_mail(reading: Reading, options: Mapping[str, Option]) -> None:
    option = options.get("-m")
    if option is not None and not _MAILS.fullmatch(option.value or ""):
        reading.misfit(option, "is no list of events", "letters of abejn")
        option = None
    events = [_EVENTS[c] for c in dict.fromkeys(option.value or "") if c in _EVENTS] if option is not None else []
    read_mail(reading, events, options.get("-M"), option)


def _write_mail(asking: Asking) -> Written:
    words, address = mail(asking, _LETTERS, {"fail": "abort"})
    letters = sorted(set(words), key="abejn".index)
    options: Written = [("-m", "".join(letters))] if letters else []
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
            reading.put(tag, path + added if path and not path.endswith("/") else path, option, **more)
    if join == "n":
        reading.keep(options["-j"])


def _write_files(asking: Asking) -> Written:
    output, error = file_name(asking, "OutputFile"), file_name(asking, "ErrorFile")
    join = merged(asking, error, output)
    if not join and not asking.find("ErrorFile") and output[0] is not None and source_merges(asking):
        asking.note(APPROXIMATED, None, f"ErrorFile: without one {asking.origin} sends both streams to one file; "
                    "-j oe says so", "info", "ErrorFile")
        join = "oe"
    options: Written = [("-j", join)] if join else []
    options += [(name, text) for name, text in (("-o", output[0]), ("-e", error[0])) if text is not None]
    return options


_DATE: Final = Grammar(PBS_TIME.read, lambda text: PBS_TIME.write(text).removesuffix(".00"), PBS_TIME.expected)


def _write_priority(asking: Asking) -> Written:
    priority, nice = asking.one("Priority"), asking.extension("Nice")
    if priority is not None:
        if asking.source in ("slurm", "lsf"):
            asking.dropped(priority, f"a priority of {asking.origin} is not on the scale from -1024 to 1023")
            return []
        value = int(priority.text)
        entry = priority
    elif nice is not None:
        number = asking.whole(nice)
        if number == 0:
            asking.note(APPROXIMATED, nice, "it is what jobs have unless told", "info")
        if not number:
            return []
        entry, value = nice, -number
        asking.note(APPROXIMATED, nice, "larger is later there, sooner here; the sign is turned")
    else:
        return []
    bounded = max(-1024, min(1023, value))
    if bounded != value:
        asking.note(APPROXIMATED, entry, f"the range is from -1024 to 1023; {bounded} is taken")
    return [("-p", str(bounded))]


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


def _read_depend(reading: Reading, options: Mapping[str, Option]) -> None:
    read_dependencies(reading, options["-W depend"])


def _write_depend(asking: Asking) -> Written:
    text = dependencies(asking, ("?", "aftercorr", "singleton", "+"))
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
    Special(("-W depend",), _read_depend, _write_depend, of=OF_DEPENDENCIES),
    moment("-a", "EligibleTime", _DATE),
    user_hold("-h"),
    rowed(Row("-p", "Priority", INTEGER), _write_priority, SCHEDULER.format("Nice")),
    Row("-r", "Restartable", YES),
    Row("-I", "Interactive", Grammar(lambda text: text == "true", str, "true"), "true"),
    Row("-S", "Shell"),
    Row("-W umask", SCHEDULER.format("Umask")),
    Special(("-j", "-o", "-e"), _read_files, _write_files, of=OF_FILES),
    Special(("-V", "-v"), _read_environment, _write_environment),
    Special(("-m", "-M"), _read_mail, _write_mail, of=OF_MAIL),
    Row("-C"),
    Special(tuple(_FAMILY), _read_family, _write_family,
            of=tuple(f"Extension[name={name.lstrip('-')},type={kin}]" for kin in _KIN for name in _FAMILY)),
))
