"""Meanings that several dialects share: names, limits, priorities, holds, directories, arrays, what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.usage import whole
from sssjob.request.asked import Entry
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.environment import holds_macro
from sssjob.translators.scripts.grammars import Grammar, unstamped
from sssjob.translators.scripts.raw import TEMPLATE
from sssjob.translators.scripts.rows import APPROXIMATED, DROPPED, STREAMS, Row, Special

__all__ = [
    "FILLING", "SCHEDULER", "WAIT", "array", "directory", "expands", "moment", "name_alone", "named", "one_more",
    "patterned", "priority_between", "rowed", "signal_of", "time_limit", "user_hold",
]

#: The place of an Extension that several resource managers know.
SCHEDULER: Final = "Extension[name={},type=Scheduler]"
#: Whether the submit command waits for the end of the job.
WAIT: Final = SCHEDULER.format("Wait")

Written = list[tuple[str, "str | None"]]
def rowed(row: Row, write: Callable[[Asking], Written], *more: str) -> Special:
    """What is read as a row is, and written in another way. more: places that write looks at beside that of the row."""
    return Special((row.name,), lambda reading, options: reading.row(row, options[row.name]), write,
                   of=(row.place, *more))


_FILLED_IN: Final = re.compile(r"[._-]?\$(?:INT)?\([^()]*\)", re.IGNORECASE)


def named(row: Row) -> Special:
    """The option of the job's name, written as the manager takes it."""
    def write(asking: Asking) -> Written:
        """The name of the job, made to fit the rules of the target; what was changed is reported."""
        entry = asking.at(row.place)
        if entry is None:
            return []
        name, rule = name_alone(asking, entry), JOB_NAMES.get(asking.dialect.name)
        if asking.source == asking.dialect.name or rule is None or not (fault := rule.fault(name)) or \
                not rule.fault(TEMPLATE.sub(lambda hit: hit[0] if hit[0][0] in "$!" else "P", name)):
            return [(row.name, name)] if name else []
        fit = rule.fitted(name)
        asking.note(APPROXIMATED, entry, f"a name that {fault} is not taken there; it is {fit}")
        return [(row.name, fit)]

    return rowed(row, write)


def time_limit(name: str, spelt: Callable[[str], str], zero: str, rounded: str = "") -> Callable[[Asking], Written]:
    """The writer of the option of a job's time limit. zero: why none of 0 can be asked for; rounded: what is told of
    one that is no whole number of minutes."""
    def write(asking: Asking) -> Written:
        """The option, where the job has a limit."""
        entry = asking.at("Requested/Duration")
        if entry is None or int(entry.text) <= 0:
            if entry is not None:
                asking.dropped(entry, zero)
            return []
        if rounded and int(entry.text) % 60:
            asking.note(APPROXIMATED, entry, rounded)
        return [(name, spelt(entry.text))]

    return write


def priority_between(least: int, most: int) -> Callable[[Asking], Written]:
    """The writer of ``-p``, whose numbers lie between two: a Priority, or a Nice with its sign turned."""
    def write(asking: Asking) -> Written:
        """The option, where the job has a priority that says something on that scale."""
        priority, nice = asking.one("Priority"), asking.extension("Nice")
        entry = priority or nice
        if entry is None:
            return []
        if priority is not None and asking.source in ("slurm", "lsf"):
            asking.dropped(priority, f"a priority of {asking.origin} is not on the scale from {least} to {most}")
            return []
        value = asking.whole(entry)
        if entry is nice and value == 0:
            asking.note(APPROXIMATED, nice, "it is what jobs have unless told", "info")
        if value is None or (entry is nice and not value):
            return []
        if entry is nice:
            value = -value
            asking.note(APPROXIMATED, nice, "larger is later there, sooner here; the sign is turned")
        bounded = max(least, min(most, value))
        if bounded != value:
            asking.note(APPROXIMATED, entry, f"the range is from {least} to {most}; {bounded} is taken")
        return [("-p", str(bounded))]

    return write


def name_alone(asking: Asking, entry: Entry) -> str:
    """The name of a job without what its own manager fills in (``$(Cluster)``), which is told; empty where no more is
    left."""
    if not asking.macros or not holds_macro(asking, entry.text):
        return entry.text
    name = _FILLED_IN.sub("", entry.text)
    if name:
        asking.note(APPROXIMATED, entry, f"the name is {name}, without what {asking.origin} fills in")
    else:
        asking.dropped(entry, f"only {asking.origin} fills it in")
    return name


def user_hold(name: str) -> Special:
    """The option of a hold, which a user can ask for only for himself."""
    def write(asking: Asking) -> Written:
        """The option for Hold User; other holds are dropped."""
        options: Written = []
        for e in asking.find("Hold"):
            if e.text == "User":
                options = [(name, None)]
            else:
                asking.dropped(e, "a user cannot ask for this hold")
        return options

    return rowed(Row(name, "Hold", fixed="User"), write)


def moment(name: str, tag: str, grammar: Grammar) -> Special:
    """The option of a time of day of the site's clock."""
    def write(asking: Asking) -> Written:
        """The time in the grammar of the option, in the zone of the site."""
        text = asking.moment(tag, grammar)
        return [] if text is None else [(name, text)]

    return Special((name,), lambda reading, options: reading.moment(tag, grammar, options[name]), write,
                   of=(tag, *(unstamped(tag, scope) for scope in grammar.coming)))


#: Managers that fill variables in in the names of files.
FILLING: Final = ("lsf", "sge", "torque")
_PATH: Final = re.compile(r"(?:~/|\$HOME(?=/)|/)(?:[\w./+@%:,-]|\$[A-Za-z_]\w*)+", re.ASCII)


def expands(asking: Asking, text: str) -> bool:
    """Whether a path has variables that the source fills in and the target does not, and that a shell can fill in."""
    return ("$" in text or text.startswith("~")) and asking.source in FILLING \
        and asking.dialect.name not in FILLING and _PATH.fullmatch(text) is not None


_SIGNAL: Final = re.compile(r"(R?B?R?:)?(?:SIG)?(\w+)(?:@(\d{1,9}))?", re.ASCII)


def signal_of(text: str) -> tuple[bool, str, int] | None:
    """Of an Extension Signal (``B:USR1@100``): whether the script alone gets it, its name without SIG, and how many
    seconds before the end (sbatch(1): 60 unless it says so); None for anything else."""
    match = _SIGNAL.fullmatch(text)
    return None if match is None else ("B" in (match[1] or ""), match[2], int(match[3] or 60))


def patterned(asking: Asking, text: str) -> str:
    """The first pattern in a directory that only the source fills in (``%J`` of LSF); empty where there is none."""
    source = asking.source_dialect
    if source is None or source is asking.dialect or not source.patterns:
        return ""
    return min((pattern for pattern in source.patterns if pattern in text), key=text.find, default="")


def below(text: str) -> str:
    """A directory without what says nothing: ``./x`` is x, and ``./`` the directory of submission, ``.``."""
    return re.sub(r"\A(?:\./+)+", "", text) or "."


def of_home(text: str) -> str:
    """A path below the home directory as a shell takes it in quotes: ``~/x`` is ``$HOME/x``."""
    return f"$HOME{text[1:]}" if text.startswith("~/") else text


def elsewhere(asking: Asking, entry: Entry) -> bool:
    """Whether the directory is one that the target's option would look for in another place than the source: by its
    variables and patterns, or because it is not absolute where the manager takes it from that of its own daemon."""
    if expands(asking, entry.text) or patterned(asking, entry.text):
        return True
    whole = ("/", "$HOME", "~/") if asking.dialect.name in FILLING else "/"
    return asking.dialect.absolute and not entry.text.startswith(whole) and asking.source != asking.dialect.name


def directory(name: str, *, submits: bool = True) -> Special:
    """The option of the directory that a job starts in. submits: unless told, that is the directory of submission."""
    row = Row(name, "InitialWorkingDirectory")

    def write(asking: Asking) -> Written:
        """The directory of the job; none where the manager starts jobs there anyway."""
        entry = asking.one("InitialWorkingDirectory")
        own = asking.source in ("", asking.dialect.name)
        if submits and entry is not None and below(entry.text) == "." and not own:
            asking.note(APPROXIMATED, entry, "a job starts there anyway", "info")
            return []
        if entry is not None and elsewhere(asking, entry):
            entry.used = False                  # the script goes there
            return []
        return asking.row(row)

    return Special((name,), lambda reading, options: reading.row(row, options[name]), write, of=(row.place,))


def array(asking: Asking, *, lists: bool, step: bool, throttle: bool = True) -> str | None:
    """The text of Extension Array, when the target can hold it."""
    entry = asking.extension("Array")
    if entry is None:
        return None
    text = entry.text
    if not lists and "," in text:
        asking.dropped(entry, f"{asking.dialect.title} has one range, not {text}")
        return None
    if not step and ":" in text:
        asking.dropped(entry, f"{asking.dialect.title} has no step in arrays")
        return None
    if not lists and "-" not in text:
        index, percent, most = text.partition("%")
        number = whole(index)
        if number is None:
            asking.dropped(entry, f"{text[:80]!r} is no array")
            return None
        text = f"{index}-{number + 1}:2{percent}{most}"     # qsub refuses a range that ends where it begins
        asking.note(APPROXIMATED, entry, f"the one index {index} is written as {text}")
    return text


def one_more(asking: Asking) -> None:
    """Tell of the files whose names have the index of an array in them, which is counted from 1 and no more from 0."""
    for e in (e for tag in STREAMS for e in asking.said(tag) if "{index" in e.text):
        asking.note(APPROXIMATED, e, f"{e.tag}: the index in it is one more than before, as that of the tasks")


def lost(asking: Asking, name: str, message: str) -> None:
    """A loss that belongs to no single property."""
    asking.note(DROPPED, None, message, subject=name)
