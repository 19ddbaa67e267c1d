"""One record as typed facts, and the job object that they make."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache, partial
from operator import attrgetter
from typing import Final, Protocol, TypeVar

from sssjob.document.element import NO_ATTRIBUTES, Item, Property, Value
from sssjob.document.kinds import CLASSES
from sssjob.document.lexical import LexicalError
from sssjob.document.model import Delivered, Job, Requested, TaskGroup
from sssjob.document.nodeset import NodeSet, fold
from sssjob.translators.records._again import Once

_EXPANDED: Final = 10_000               # names of a node list that are written out
_T_co = TypeVar("_T_co", covariant=True)
_LONG: Final = 4096         # characters of a text that is not remembered
_class: Final = CLASSES.get


def leaf(tag: str, value: Value, attributes: dict[str, str] = NO_ATTRIBUTES) -> Property:
    """A property of the class that belongs to the name. Equal attributes are one object, so that jobs of a log have few
    outlines."""
    return _class(tag, Property)(tag, value, _attributed(tuple(attributes.items())) if attributes else NO_ATTRIBUTES)


@lru_cache(maxsize=1 << 12)
def _attributed(attributes: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return dict(attributes)


@lru_cache(maxsize=1 << 13, typed=True)
def prop(tag: str, value: Value) -> Property:
    """A property without attributes; equal ones are one object."""
    return leaf(tag, value)


class _Remembered(Protocol[_T_co]):
    """What lru_cache makes of a function."""

    def __call__(self, text: str, *more: str) -> _T_co: ...
    @property
    def __wrapped__(self) -> Callable[..., _T_co]: ...


def recall(function: _Remembered[_T_co], text: str, *more: str) -> _T_co:
    """What a remembering function gives for a text; long texts are not remembered."""
    return function(text, *more) if len(text) < _LONG else function.__wrapped__(text, *more)


@lru_cache(maxsize=1 << 12)
def _extension(kind: str, name: str) -> dict[str, str]:
    return {"name": name, "type": kind}


_Extension: Final = _class("Extension", Property)
_ELIGIBLE: Final = _extension("LRM", "EligibleStamp")


def _as_extension(kind: str, name: str, text: str) -> Property:
    return _Extension("Extension", text, _extension(kind, name))


@lru_cache(maxsize=1 << 14)
def node(text: str) -> tuple[Property | None, int, str]:
    """(Node, number of names, what is wrong) of a host list ``a[01-03,7],b2``."""
    try:
        names = NodeSet.parse_range(text)
    except LexicalError as error:
        return None, 0, str(error)
    if "[" not in text and "," not in text:
        return leaf("Node", text), 1, ""
    folded = text.count("[") == 1 and text.endswith("]") and "," not in text[: text.index("[")]
    if not folded and names.count <= _EXPANDED:
        return leaf("Node", ",".join(names), {"aggregation": "List"}), names.count, ""
    return leaf("Node", text, {"aggregation": "Range"}), names.count, ""


def node_of_hosts(hosts: Collection[str]) -> Property | None:
    """Node of hosts, folded to ranges; None where there are none. What cannot be folded stays a list."""
    try:
        return recall(node, fold(hosts))[0] if hosts else None
    except LexicalError:
        return leaf("Node", ",".join(hosts), {"aggregation": "List"})


# --- a record -----------------------------------------------------------------------------------------------------

#: Properties that say whose a job is; many jobs share them.
Heading = tuple[Property, ...]


class Record:
    """The typed facts of one job: times in epoch seconds, durations in seconds, absent is None.

    begin: the start asked for; native: the state in the manager's word; message: why it ended, for StatusMessage;
    ran: whether it used the machine; requested and delivered: the amounts but Processors, NodeCount, Node, Duration
    of the delivered ones; limits: ResourceLimits; more: Extensions as (type, name, text); others: properties of the job
    that have no field here; parts: components. heading: what ``heading`` makes of user to submit_host, where that is
    made already; machine is said beside it.

    What a field is where nobody says it stands in the class: a record says few of them, and there are many records.
    """

    name: str | None = None
    user: str | None = None
    group: str | None = None
    project: str | None = None
    queue: str | None = None
    qos: str | None = None
    reservation: str | None = None
    submit_host: str | None = None
    heading: Heading | None = None
    directory: str | None = None
    submit: int | None = None
    begin: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    state: str = "Completed"
    hold: str | None = None
    native: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    exit_status: str = ""
    starts: int | None = None
    suspended: int | None = None
    cpu: int | None = None
    wall: int | None = None
    ran: bool = True
    processors: int | None = None
    nodes: int | None = None
    node: Property | None = None
    array: tuple[str, str] | None = None

    def __init__(self, line: int, id: str, machine: str | None = None) -> None:
        self.line, self.id, self.machine = line, id, machine
        self.requested: list[Property] = []
        self.delivered: list[Property] = []
        self.limits: list[Property] = []
        self.more: list[tuple[str, str, str]] = []
        self.others: list[Property] = []
        self.parts: list[Record] = []


#: Attribute of Record -> property of the job, in the order of writing.
_HEAD: Final = (
    ("user", "User"), ("group", "Group"), ("project", "Project"), ("machine", "Machine"), ("queue", "Queue"),
    ("qos", "QualityOfService"), ("reservation", "Reservation"), ("submit_host", "SubmitHost"),
)
_head: Final = attrgetter(*(name for name, _ in _HEAD))
_Id, _Submit, _Begin, _Start, _End, _Suspended, _Cpu, _Duration = (_class(tag, Property) for tag in (
    "Id", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "SuspendDuration", "CpuDuration", "Duration"))


def heading(user: str | None = None, group: str | None = None, project: str | None = None, machine: str | None = None,
            queue: str | None = None, qos: str | None = None, reservation: str | None = None,
            submit_host: str | None = None) -> Heading:
    """The properties of whose a job is, in the order of writing."""
    return _heading((user, group, project, machine, queue, qos, reservation, submit_host))


def _heading(texts: tuple[str | None, ...]) -> Heading:
    return tuple([_shared(tag, text) for (_, tag), text in zip(_HEAD, texts, strict=True) if text is not None])


def _stating(texts: tuple[str, str | None, str]) -> tuple[Property, ...]:
    tags = ("State", "Hold", "StatusMessage")
    return tuple(_shared(tag, text) for tag, text in zip(tags, texts, strict=True) if text)


def _shared(tag: str, text: str) -> Property:
    return prop(tag, text) if len(text) < _LONG else leaf(tag, text)


def _using(amounts: tuple[int | None, ...]) -> tuple[Property, ...]:
    return tuple(prop(tag, n) for tag, n in zip(("Processors", "NodeCount"), amounts, strict=True) if n is not None)


#: What many jobs have in common: who they are of, how they ended, what they used.
_HEADS: Final = Once(_heading)
_STATED: Final = Once(_stating)
USED: Final = Once(_using)
_STATES: Final = Once(partial(_as_extension, "LRM", "State"))


def as_job(r: Record) -> Job:
    """The job object of a record, which is done with. Never ran: no start, no exit code, nothing delivered."""
    if not r.ran:
        r.start = r.exit_code = r.signal = r.cpu = r.suspended = None
    items: list[Item] = [_Id("Id", r.id)]
    if r.name is not None:
        items.append(_shared("Name", r.name))
    items += _HEADS[_head(r)] if r.heading is None else r.heading
    if r.directory is not None:
        items.append(_shared("InitialWorkingDirectory", r.directory))
    if r.others:
        items += r.others
    items += _STATED[r.state, r.hold, r.message]
    _live(items, r)
    _extend(items, r)
    if r.limits:
        items += r.limits
    _add_slots(items, r)
    for part in r.parts:
        inner: list[Item] = [prop("Id", part.id)]
        _add_slots(inner, part)
        items.append(TaskGroup(inner, line=part.line))
    return Job(items, None, None, r.line)


def _live(items: list[Item], r: Record) -> None:
    """Add when a job was what, and how it ended."""
    if r.submit is not None:
        items.append(_Submit("SubmitTime", r.submit))
    if r.begin is not None:
        items.append(_Begin("EligibleTime", r.begin))
    if r.start is not None:
        items.append(_Start("StartTime", r.start))
    if r.end is not None:
        items.append(_End("EndTime", r.end))
    if r.starts is not None:
        items.append(prop("StartCount", r.starts))
    if r.exit_code is not None:
        items.append(prop("ExitCode", r.exit_code))
    if r.suspended is not None:
        items.append(_Suspended("SuspendDuration", r.suspended))
    if r.cpu is not None:
        items.append(_Cpu("CpuDuration", r.cpu))


def _extend(items: list[Item], r: Record) -> None:
    """Add the Extensions of a job."""
    if r.native:
        items.append(_STATES[r.native])
    if r.signal is not None:
        items.append(_as_extension("LRM", "ExitSignal", str(r.signal)))
    if r.exit_status:
        items.append(_as_extension("LRM", "ExitStatus", r.exit_status))
    if r.eligible is not None:
        items.append(_Extension("Extension", str(r.eligible), _ELIGIBLE))
    if r.array:
        items += map(_as_extension, ("LRM", "LRM"), ("ArrayId", "ArrayIndex"), r.array)
    for kind, name, text in r.more:
        items.append(_Extension("Extension", text, _extension(kind, name)))


def _add_slots(items: list[Item], r: Record) -> None:
    """Add Requested and Delivered."""
    if r.requested:
        items.append(Requested(r.requested))
    if not r.ran:
        return
    items_made: list[Item] = [*USED[r.processors, r.nodes]]
    if r.wall is not None:
        items_made.append(_Duration("Duration", r.wall))
    if r.node is not None:
        items_made.append(r.node)
    items_made += r.delivered
    if items_made:
        items.append(Delivered(items_made))
