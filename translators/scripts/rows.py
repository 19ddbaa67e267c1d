"""What a dialect is made of: places of properties, rows, what the table cannot say, and the table itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from sssjob.consequences import Consequence
from sssjob.document.element import NO_ATTRIBUTES, Property, new_property
from sssjob.document.model import Document, Job
from sssjob.lrm.variables import Facts
from sssjob.request.asked import AMOUNTS, JOB, NEAREST, TASK, Target
from sssjob.translators.scripts.grammars import TEXT, Grammar, file_reader
from sssjob.translators.scripts.raw import Line, Option

if TYPE_CHECKING:
    from sssjob.document.element import Container, Item
    from sssjob.translators.scripts.asking import Asking
    from sssjob.translators.scripts.reading import Reading
    from sssjob.xml.places import Place as TextPlace

__all__ = [
    "APPROXIMATED", "BYTES", "CONTRADICTORY", "DEAD", "DIALECT", "DROPPED", "INVENTED", "PARTS", "REFUSED",
    "SCRIPT", "SITE", "STREAMS", "TEMPLATED", "WHOLE_NODES", "AnyRow", "Dialect", "Place", "Row", "Scan",
    "ScriptDocument", "Special", "dialect_of", "dialects", "fate_of", "harmless", "known_as", "of_part", "place",
    "source_of", "spells", "table",
]

#: What each part of a heterogeneous job of Slurm says for its own nodes (sbatch(1), heterogeneous jobs).
WHOLE_NODES: Final = "--exclusive"
#: Rules of findings.
DROPPED: Final = "SSS501"
APPROXIMATED: Final = "SSS502"
INVENTED: Final = "SSS503"
SITE: Final = "SSS504"
REFUSED: Final = "SSS505"
CONTRADICTORY: Final = "SSS304"
DEAD: Final = "SSS506"
TEMPLATED: Final = "SSS507"

#: Properties whose value is the name of a file, in which tokens such as ``{jobid}`` may stand.
STREAMS: Final = ("InputFile", "OutputFile", "ErrorFile")
#: Parts of a heterogeneous job that are taken apart.
PARTS: Final = 500
SCRIPT: Final = "Script"
DIALECT: Final = "Dialect"


#: What a job may say: the name of a property, of an Extension its name and type.
Key = str | tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a property stands: the containers from the job inward, its name and attributes; made: such a property.

    levels: where a writer looks for it; texts: its value is always text; special: it is that or a decimal; bytes: it is
    an amount of memory or space; key: its name, of an Extension (name, type).
    """

    path: tuple[str, ...]
    tag: str
    attributes: dict[str, str]
    made: type[Property]
    levels: Sequence[str]
    texts: bool
    special: bool
    bytes: bool
    key: Key


#: Properties whose value is text, and those that are bytes.
_TEXTS: Final = ("Extension", "ResourceLimit", "TaskDistribution")
BYTES: Final = ("Memory", "Disk", "Swap")
#: Where what each level has of its own is looked for: the name of a task group is not that of its job.
_OWN: Final = {"Name": (JOB,)}


@lru_cache(maxsize=512)
def place(text: str) -> Place:
    """``TaskGroup/Requested/Memory[metric=PerChunk]`` as a Place."""
    steps, _, rest = text.partition("[")
    *path, tag = steps.split("/")
    pairs = [p.partition("=") for p in rest.rstrip("]").split(",") if p]
    of_job = NEAREST if tag == "Duration" else AMOUNTS          # the limit of each task is that of all of them
    levels = TASK if "TaskDefaults" in path else of_job if path else _OWN.get(tag, NEAREST)
    attributes = {k: v for k, _, v in pairs}
    key = (attributes["name"], attributes["type"]) if tag == "Extension" and len(attributes) == 2 else tag
    return Place(tuple(path), tag, attributes or NO_ATTRIBUTES, type(new_property(tag, "")), levels, tag in _TEXTS,
                 tag in _TEXTS or tag == "Resource", tag in BYTES, key)


@dataclass(frozen=True, slots=True)
class Row:
    """One option that is one property.

    name: as it is written, with dashes. place: see ``place``; empty for an Extension of the dialect's own, which other
    dialects do not know. fixed: the value of an option without argument.
    """

    name: str
    place: str = ""
    grammar: Grammar = TEXT
    fixed: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The options that the row is about."""
        return (self.name,)

    @property
    def of(self) -> tuple[str, ...]:
        """The one place, as a Special has its places."""
        return (self.place,)


@dataclass(frozen=True, slots=True)
class Special:
    """Options whose meaning is no single property. read gets those of ``names`` that are there, by name; write gives
    options and values (None: without one). of: the places that write looks at (see ``place``); of a job that has
    nothing there it is not asked. None: it is asked of every job. beside: the options of other rows that read looks at
    too; with them and its own it finds the same whatever else is in the script."""

    names: tuple[str, ...]
    read: Callable[[Reading, Mapping[str, Option]], None]
    write: Callable[[Asking], Iterable[tuple[str, str | None]]]
    part: bool = False      # they describe a part of a job, not the job
    of: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The first option."""
        return self.names[0]


AnyRow = Row | Special


@dataclass(slots=True)
class Scan:
    """What the first stage found. components: options in order, one list for each part of a heterogeneous job; rest:
    the lines that are no live directives."""

    components: list[list[Option]] = field(default_factory=lambda: [[]])
    rest: list[Line] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Dialect:
    """A dialect.

    rows: in the order of writing. scan: the first stage. directive: an option as text of a line, raises QuotingError.
    prefix: of the lines written. tokens: canonical token of file names -> native one. variables: prefixes of the
    variables that jobs find. starts_in: ``submit`` or ``home``; exports: whether the submitter's variables go along
    when nothing is said; merges: whether both streams go into one file.
    """

    name: str
    title: str
    prefix: str
    rows: tuple[AnyRow, ...]
    scan: Callable[[Reading, list[Line]], Scan]
    directive: Callable[[str, str | None], str]
    arguments: Callable[[Reading, str], list[Option]]
    tokens: Mapping[str, str]
    variables: tuple[str, ...]
    live: Callable[[list[Line]], list[Line]]
    suffixes: tuple[str, ...] = ()
    index: Callable[[str], str] | None = None   # text of an array -> how its index is made of the job's, {}, in sh
    macros: Mapping[str, str] = field(default_factory=dict)     # in arguments, lower case -> what they mean in bodies
    patterns: Mapping[str, str] = field(default_factory=dict)   # in the directory of a job -> what they mean in bodies
    spellings: tuple[str, ...] = ()     # Extensions of its type that only say which option was used, or name=value
    placing: str = ""               # one of them, where the same option has said how many nodes there are
    marks: tuple[str, ...] = ()     # a line that the system obeys has one of these in it
    starts_in: str = "submit"
    exports: bool = True
    merges: bool = True
    files: tuple[str, ...] = ()     # what its jobs call their output, and errors that are apart, unless told
    numbered: str = ".{index}"      # what stands after the id of the array in such a name of one of its elements
    files_in: str = "start"         # where relative names of files begin: where the job starts, or in ``submit``
    absolute: bool = False          # its option of a directory takes no relative one: the job would start nowhere
    appends: bool = False           # output goes on at the end of a file that is there
    of_hosts: bool = False          # a host may stand before the name of a file, with a colon between them
    of_input: str = ""              # what a job without a name is called that no file was handed in for; else that file
    unfiled: str = ""               # where output goes then, if it goes into no file
    element: str = ""               # what the manager adds to the names of files of an array's elements by itself
    pads: bool = False              # whether numbers in file names may be padded with zeros, as in %4j
    orders: Mapping[str, str] = field(default_factory=dict)     # beginning of a line -> the storage that it orders
    disarm: str = "#"               # what makes a live line of a script a dead one
    separator: str = ""             # option between the parts of a heterogeneous job
    beside: str = ""                # what a script has to do so that its tasks run in all of these parts
    open: tuple[str, ...] = ()      # beginnings of options whose names are the site's, such as ``l `` of PBS; "": any
    body: Facts | None = None       # what a job finds, of a dialect that is not in sssjob/lrm/variables.py
    slots: bool = False             # a job asks for slots, and its list of hosts has a line for each of them
    threads: bool = False           # a task has several processors wherever it is asked for them, on any site
    hints: Mapping[str, str] = field(default_factory=dict)      # beginning of a kept option -> who knows what it is
    each: str = ""                  # of a manager without arrays: a call that gives a job one variable and its value
    folders: bool = True            # a file of standard output may be named by its folder alone
    rules: Mapping[str, str] = field(default_factory=dict)      # of a TaskDistribution, lower case -> its own word
    launcher: str = "mpirun"        # what starts copies of an executable; empty: the manager itself starts the one
    foreign: tuple[str, ...] = ()   # options that belong to a relative: the manager would take or refuse them later
    adds: tuple[str, ...] = ()      # options that add to what was said before when they are given again
    filled: tuple[str, ...] = ()    # shell variables that the manager itself replaces in the values of directives
    late: bool = False              # directives are obeyed in the whole file, in here-documents too
    gapless: bool = False           # directives are obeyed right below the first line alone, without a gap
    checks: tuple[str, ...] = ()    # rules of lint that apply beside those for all dialects
    examples: Mapping[str, str] = field(default_factory=dict)   # attribute of a job -> options that state it
    consequences: Mapping[str, Consequence] = field(default_factory=dict)   # of losing own options; see ``harmless``
    gaps: Mapping[str, str] = field(default_factory=dict)       # attribute -> why its option is kept for this dialect
    without: Mapping[str, str] = field(default_factory=dict)    # attribute -> how it is said without an option
    flags: frozenset[str] = frozenset()     # options that take no value, where it is known of all
    optional: frozenset[str] = frozenset()  # options that need none

    def __post_init__(self) -> None:
        for row in self.rows:
            if isinstance(row, Row) and row.grammar is TEXT and row.place and place(row.place).tag in STREAMS:
                raise ValueError(f"{row.name}: a plain row cannot hold the tokens of file names; {row.place} wants "
                                 "common.streams, or a Special that calls common.file_name")

    @cached_property
    def known(self) -> dict[str, AnyRow]:
        """Option -> row."""
        return {name: row for row in self.rows for name in row.names}

    @cached_property
    def places(self) -> dict[str, int]:
        """Option -> place of its row in the order."""
        return {name: number for number, row in enumerate(self.rows) for name in row.names}

    @cached_property
    def alone(self) -> dict[str, int]:
        """Option -> place of its row, of those whose row looks at nothing else and takes some values only."""
        return {row.name: number for number, row in enumerate(self.rows)
                if isinstance(row, Row) and row.place and row.grammar is not TEXT}

    @cached_property
    def of_any_text(self) -> dict[str, int]:
        """The same of those whose row takes any value but an empty one."""
        return {row.name: number for number, row in enumerate(self.rows)
                if isinstance(row, Row) and row.place and row.grammar is TEXT}

    @cached_property
    def together(self) -> dict[str, list[int]]:
        """Option -> places of the rows that look at it and at others."""
        together: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            for name in self.looked_at[number] if isinstance(row, Special) else ():
                together.setdefault(name, []).append(number)
        return together

    @cached_property
    def looked_at(self) -> list[tuple[str, ...]]:
        """Of each row the options that it looks at."""
        return [(*row.names, *row.beside) if isinstance(row, Special) else row.names for row in self.rows]

    @cached_property
    def file_names(self) -> Grammar:
        """How the names of files are read: the dialect's own tokens become the canonical ones."""
        canonical = {native: token for token, native in self.tokens.items()}
        native = "|".join(re.escape(text) for text in sorted(canonical, key=len, reverse=True))
        return Grammar(file_reader(canonical, f"(?P<name>{native or '(?!)'})"), str, "a file name")

    @cached_property
    def target(self) -> Target:
        """What a job is asked for, and what is said of the rest."""
        return Target(word=f"dropped, {self.title} has no place for it", launcher="")

    @cached_property
    def _said(self) -> tuple[list[int], dict[Key, list[int]]]:
        """The rows, by their places in the order, that say whatever there is, and by key those that say a property."""
        always: list[int] = []
        by_key: dict[Key, list[int]] = {}
        for at, row in enumerate(self.rows):
            of = row.of
            if of is None:
                always.append(at)
            for text in of or ():
                if text:
                    by_key.setdefault(place(text).key, []).append(at)
        return always, by_key

    @cached_property
    def _of_name(self) -> dict[str, list[int]]:
        """Option without dashes, as Extensions name it -> places of the rows that have it."""
        of_name: dict[str, list[int]] = {}
        for at, row in enumerate(self.rows):
            for name in dict.fromkeys(name.lstrip("-") for name in row.names):
                of_name.setdefault(name, []).append(at)
        return of_name

    def rows_for(self, keys: Collection[Key], kept: Iterable[str]) -> list[tuple[AnyRow, bool]]:
        """The rows that may say something of a job with properties of these keys, in their order, and whether it holds
        one of their options as it is. kept: such options, without dashes."""
        always, by_key = self._said
        places = set(always)
        for key in keys:
            if key in by_key:
                places.update(by_key[key])
        as_kept = {at for name in kept if name in self._of_name for at in self._of_name[name]}
        places |= as_kept
        rows = self.rows
        return [(rows[at], at in as_kept) for at in sorted(places)]


def harmless(*, costs: str = "", looks: str = "") -> dict[str, Consequence]:
    """What it means to lose options that only one dialect knows: those that choose where, when or how fast a job runs,
    and those that only people notice; names without dashes, parted by blanks. Any other one breaks the job."""
    fates: tuple[tuple[Consequence, str], ...] = (("costs", costs), ("looks", looks))
    return {name: fate for fate, names in fates for name in names.split()}


def table(rows: Sequence[AnyRow], parent: Iterable[AnyRow] = (), after: str = "") -> tuple[AnyRow, ...]:
    """Rows merged over a parent's: one of the same first option takes its place, others follow that of ``after``, or
    all."""
    merged = {row.name: row for row in parent}
    new = [row for row in rows if merged.get(row.name) is None]
    merged |= {row.name: row for row in rows if row.name in merged}
    rows_merged = list(merged.values())
    at = 1 + [row.name for row in rows_merged].index(after) if after else len(rows_merged)
    return (*rows_merged[:at], *new, *rows_merged[at:])


class DirectivePlaces:
    """The places of a document that was made of directives, or of other things that have a line each: of an item that
    of the directive which said it."""

    __slots__ = ("_origins",)

    def __init__(self, origins: Mapping[int, tuple[Property, Option]]) -> None:
        self._origins = origins

    def of(self, item: Item | None, within: Container | None = None, path: str = "") -> TextPlace | None:
        """Line, column and text of the directive; None for what no directive said.

        A copy of an item is found by what it says. Without an item the last step of the path counts, where all
        directives that it may mean are one.
        """
        own = self._origins.get(id(item))
        if own is not None:
            return _place_of(own[1])
        if item is None:
            name, number = path.rpartition("/")[2].rstrip("]").partition("[")[::2]
            alike = [option for p, option in self._origins.values() if p.tag == name]
            alike = alike[int(number) - 1:][:1] if number.isdecimal() and number != "0" else alike
        elif isinstance(item, Property):
            alike = [option for p, option in self._origins.values() if p == item]
        else:
            return None
        return _place_of(alike[0]) if alike and all(option is alike[0] for option in alike) else None

    def comments(self) -> tuple[int, int]:
        """Of XML there are none in a script."""
        return 0, 0


def _place_of(option: Option) -> TextPlace:
    return option.line, option.column, option.text


@dataclass(slots=True)
class ScriptDocument(Document):
    """A document that came from a script: which directive each property came from, by identity."""

    origins: dict[int, tuple[Property, Option]] = field(default_factory=dict, compare=False)
    lines: list[int] = field(default_factory=list, compare=False)     # of each line of the File, where it stood
    options: list[Option] = field(default_factory=list, compare=False)      # all that are live, in order
    whole: list[Line] = field(default_factory=list, compare=False)          # every line of the script as it was read

    def __post_init__(self) -> None:
        if self.places is None:
            self.places = DirectivePlaces(self.origins)

    def origin(self, item: object) -> Option | None:
        """The directive that said a property."""
        pair = self.origins.get(id(item))
        return None if pair is None else pair[1]


def of_part(row: AnyRow) -> bool:
    """Whether an option describes a part of a job, not the job."""
    if isinstance(row, Special):
        return row.part
    return bool(row.place) and place(row.place).path[:1] in (("Requested",), ("TaskGroup",)) and not \
        row.place.endswith("Duration")


_DIALECTS: dict[str, Dialect] = {}
#: Names that are no format, as many as are worth keeping.
_OTHERS: Final = {"Scheduler", "LRM", "PSIJ", "MJF", "SSSJob"}
_MOST: Final = 1000


def source_of(job: Job) -> str:
    """The dialect of the script that a job was read from; empty where it was read from no script."""
    return next((p.text for p in job.all("Extension") if p.get("name") == DIALECT and p.get("type") == "Scheduler"), "")


def dialect_of(name: str) -> Dialect | None:
    """The dialect of a format; None for one that has none or is not known."""
    if name in _DIALECTS or not name or name in _OTHERS:
        return _DIALECTS.get(name)
    from sssjob.translators.registry import get

    try:
        get(name)
    except ValueError:
        if len(_OTHERS) < _MOST:
            _OTHERS.add(name)       # looking a name up among all that is installed takes milliseconds
        return None
    return _DIALECTS.get(name)


def fate_of(kind: str, name: str) -> Consequence | None:
    """What it means for a job to lose an Extension that is an option of a dialect's own; None where its type is no
    dialect, or the dialect does not say it."""
    owner = dialect_of(kind)
    return None if owner is None else owner.consequences.get(name) or owner.consequences.get(name.partition(" ")[0])


def spells(kind: str, name: str) -> bool:
    """Whether an Extension is no option of a dialect, but only tells with which of its options something was said."""
    owner = dialect_of(kind)
    return owner is not None and name in owner.spellings


def dialects() -> tuple[Dialect, ...]:
    """The dialects whose modules have been imported so far."""
    return tuple(_DIALECTS.values())


def known_as(dialect: Dialect) -> None:
    """Make a dialect known by its name."""
    _DIALECTS[dialect.name] = dialect
    _OTHERS.discard(dialect.name)
