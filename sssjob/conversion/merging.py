"""Groups and their jobs as values: a returned job's facts put into its group, and a group taken apart into jobs, or
into smaller groups that do not depend on each other.

``merge`` goes by Id. What the group says as well, its defaults folded in, changes nothing; what it does not say is
added; where both say different things, the State of the job that has come further counts, and everything else is a
conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Final, Literal

from sssjob.document.arrays import label_of
from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.failures import FailurePolicyError, ends_all
from sssjob.document.graph import Dependencies, derived_state
from sssjob.document.inherit import effective
from sssjob.document.model import CLASSES, Document, File, Job, JobDefaults, JobGroup
from sssjob.document.states import job_state
from sssjob.findings import Findings, escape

__all__ = ["Part", "Prefer", "joined", "merge", "parts", "split"]

Prefer = Literal["none", "group", "returned"]

#: Words of State in the order in which a job comes to them; those on a line are as far as each other.
_ORDER: Final = {state: step for step, states in enumerate((
    ("NotQueued",), ("Idle", "Hold"), ("Running", "Suspended"), ("Completed",))) for state in states}
#: What is said of a State, and goes with it.
_WITH_STATE: Final = frozenset(("State", "StatusMessage", "Hold"))
#: Attributes that part one property from another of the same name.
_NAMES: Final = ("name", "type", "metric", "context", "condition", "designator")
#: Containers that are one expression: alike or not.
_WHOLE: Final = frozenset(("Requested",))


def merge(document: Document, returned: Iterable[Document], findings: Findings, *, prefer: Prefer = "none") -> None:
    """Put the facts of returned jobs into a document, by Id.

    prefer: whose word counts in a conflict; it is then reported as a warning (SSS606), else it is an error and the
    group's word stays. A job whose Id the document does not have, or has twice, is an error (SSS427).
    """
    by_id: dict[str, list[tuple[Job, JobDefaults | None]]] = {}
    for job, defaults in document.jobs():
        by_id.setdefault(str(job.value("Id") or ""), []).append((job, defaults))
    for other in returned:
        for job, defaults in other.jobs():
            name = str(job.value("Id") or "")
            targets = by_id.get(name, []) if name else []
            if len(targets) != 1:
                how = "no Id" if not name else f"the Id {escape(name, 80)!r}, which {len(targets) or 'no'} jobs of " \
                                               f"{escape(document.path)} have"
                findings.add("SSS427", name or "Id", f"a job of {escape(other.path)} has {how}", line=job.line)
                continue
            (target, its_defaults), whole = targets[0], _whole(job, defaults)
            asked = _whole(target, its_defaults)
            _Merge(findings, prefer, f"Job {name!r}", other.path).scopes(target, asked, whole)
        _groups(document, other, findings, prefer)
        _files(document, other, findings, prefer)
    for group in document.groups():
        if group.value("State") is not None:
            group.set_as_is("State", derived_state(group))


def _groups(document: Document, other: Document, findings: Findings, prefer: Prefer) -> None:
    """What returned groups say of themselves: their properties and Environment, but for their State, which is that of
    their jobs. What they say for all of their jobs was put into these."""
    own = {str(group.value("Id") or ""): group for group in document.groups()}
    for group in other.groups():
        name = str(group.value("Id") or "")
        target = own.get(name) if name else None
        if target is not None:
            merging = _Merge(findings, prefer, f"JobGroup {name!r}", other.path)
            merging.scopes(target, _alone(target), _alone(group))
        elif any(p.tag not in ("Id", "State") for p in group.properties()):
            how = f"the Id {escape(name, 80)!r}, which no group here has" if name else "no Id"
            findings.add("SSS427", name or "Id", f"a JobGroup of {escape(other.path)} has {how}; what it says of "
                         "itself is left out", severity="warning", line=group.line)


def _alone(group: JobGroup) -> JobGroup:
    """A group without its jobs, what it says for them, and its State."""
    return JobGroup([item for item in group.items if item.tag not in _OF_JOBS], dict(group.attributes))


#: What is in a group and is not said of the group itself.
_OF_JOBS: Final = frozenset(("Job", "JobDefaults", "TaskGroupDefaults", "TaskDefaults", "JobGroup", "State"))


def _files(document: Document, other: Document, findings: Findings, prefer: Prefer) -> None:
    """The Files that came back, by id."""
    for name, file in other.files.items():
        own_file = document.files.get(name)
        if own_file is None:
            document.files[name] = file
        elif own_file != file:
            _Merge(findings, prefer, "File", other.path).conflict(
                escape(name, 80), f"of {len(own_file.text)} characters", f"of {len(file.text)} characters",
                partial(document.files.__setitem__, name, file))


def _whole(job: Job, defaults: JobDefaults | None) -> Job:
    return effective(job, defaults).fold()


class _Merge:
    """One job into another."""

    def __init__(self, findings: Findings, prefer: Prefer, label: str, origin: str) -> None:
        self.findings, self.prefer, self.label, self.origin = findings, prefer, label, origin

    def scopes(self, target: Container, asked: Container, returned: Container, path: str = "") -> None:
        """The properties and containers of one scope. asked: the target with its defaults; returned: what came back."""
        further = _step(returned) > _step(asked)
        for names, mine, theirs in _by_identity(asked, returned):
            if mine == theirs or not theirs:
                continue
            if names[0] in _WITH_STATE and _step(returned) != _step(asked):
                if further:
                    _put(target, names, theirs)
            elif not mine:
                behind = max((at for at, item in enumerate(target.items, 1) if isinstance(item, Property)), default=0)
                target.items[behind:behind] = theirs        # before the containers
            else:
                self.conflict(f"{path}{' '.join(filter(None, names))}", mine, theirs,
                              partial(_put, target, names, theirs))
        for name, value in returned.attributes.items():
            if name != "awarenessPolicy" and asked.attributes.get(name, value) != value:
                self.conflict(f"{path}{name}", asked.attributes[name], value,
                              partial(target.attributes.__setitem__, name, value))
        for tag in dict.fromkeys(c.tag for c in returned.containers()):
            self.containers(tag, target, asked, returned, f"{path}{tag}")
        for raw in returned.unknown():
            if raw not in list(asked.unknown()):
                target.items.append(raw)

    def containers(self, tag: str, target: Container, asked: Container, returned: Container, path: str) -> None:
        """The containers of one name."""
        targets, mine, theirs = (list(scope.containers(tag)) for scope in (target, asked, returned))
        if mine == theirs:
            return
        if not mine:
            target.items.extend(theirs)
        elif tag in _WHOLE or len(mine) != len(theirs):
            self.conflict(path, mine, theirs, partial(_put, target, (tag,), theirs))
        else:
            for number, (inner, before, other) in enumerate(zip_longest(targets, mine, theirs), 1):
                if inner is None:               # of the defaults alone: it becomes the job's own
                    inner = CLASSES[tag]()
                    target.items.append(inner)
                if before is not None and other is not None and before != other:
                    self.scopes(inner, before, other, f"{path}{f'[{number}]' if len(mine) > 1 else ''}/")

    def conflict(self, what: str, mine: object, theirs: object, take: Callable[[], None]) -> None:
        """Tell a conflict, and take what came back where that is preferred."""
        message = f"{self.label}: {what} is {_shown(mine)}, and {_shown(theirs)} in {escape(self.origin)}"
        if self.prefer == "returned":
            take()
        self.findings.add("SSS606", what, message, severity="error" if self.prefer == "none" else "warning",
                          hint="--prefer says whose word counts" if self.prefer == "none" else "")


Names = tuple[str, ...]


def _by_identity(asked: Container, returned: Container) -> Iterator[tuple[Names, list[Property], list[Property]]]:
    """Each property that came back by what parts it from others: as it is here, and as it came."""
    sides: dict[Names, tuple[list[Property], list[Property]]] = {}
    for place, scope in enumerate((asked, returned)):
        for p in scope.properties():
            sides.setdefault(_names(p), ([], []))[place].append(p)
    for names, (mine, theirs) in sides.items():
        yield names, mine, theirs


def _names(item: Item) -> Names:
    if not isinstance(item, Property):
        return (item.tag,)
    return (item.tag, *(item.attributes.get(name, "") for name in _NAMES))


def _put(target: Container, names: Names, values: list[Property] | list[Container]) -> None:
    """Put items in place of those of the same name, else behind all others."""
    kept: list[Item] = []
    new: list[Item] = list(values)
    for item in target.items:
        same = (item.tag,) == names if len(names) == 1 else isinstance(item, Property) and _names(item) == names
        if same and not isinstance(item, Raw):
            kept += new
            new = []
        else:
            kept.append(item)
    target.items[:] = [*kept, *new]


def _step(scope: Container) -> int:
    """How far a job has come, by its State."""
    return _ORDER.get(job_state(scope.value("State")).state or "", -1)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return escape(", ".join(_of_item(item) for item in value), 200)
    return repr(escape(str(value), 100))


def _of_item(item: Item) -> str:
    if isinstance(item, Property):
        return repr(item.text)
    return f"{item.tag} of {', '.join(map(_stated, item.properties()))}" if isinstance(item, Container) else item.tag


def _stated(item: Property) -> str:
    """A property as it is stated: ``Memory units='GB' '4'``."""
    return " ".join((item.tag, *(f"{name}={value!r}" for name, value in item.attributes.items()), repr(item.text)))


def split(document: Document) -> Iterator[tuple[str, Document]]:
    """Each job of a document as a document of its own, with its defaults folded in, the awarenessPolicy that holds for
    it, and the Files that it names.

    Gives what it is called (label_of) and the document.
    """
    policies = {id(job): policy for body in document.bodies() if isinstance(body, JobGroup)
                and (policy := body.attributes.get("awarenessPolicy")) for job in body.jobs}
    for number, (job, defaults) in enumerate(document.jobs()):
        policy = policies.get(id(job))
        whole = _whole(job, defaults) if policy is None else effective(job, defaults, policy=policy).fold()
        if policy is not None and "awarenessPolicy" not in whole.attributes:
            whole.attributes = {**whole.attributes, "awarenessPolicy": policy}
        yield label_of(job, number), Document(whole, _files_of(whole, document), document.path, document.profile)


@dataclass(frozen=True, slots=True)
class Part:
    """Some jobs of a group as a group of their own. places: of its jobs in the whole, counted from 0; none: it is the
    whole."""

    document: Document
    places: tuple[int, ...] = ()


def parts(document: Document) -> list[Part]:
    """A group in parts that do not depend on each other, in the order of their first jobs: each with what the group
    says of itself and for its jobs, the same Id, and the Files that it names. Jobs are not copied; where in
    the text they stand is known of the whole alone.

    The whole is one part where all jobs hang together, where a failure ends the rest of the group (``OnFailure``),
    where it refers to jobs of other documents, and where it has no Id by which all parts could be called.
    """
    bodies = list(document.bodies())
    group = bodies[0] if len(bodies) == 1 else None
    if not isinstance(group, JobGroup) or group.value("Id") is None:
        return [Part(document)]
    graph = Dependencies.of(group)
    places = graph.components()
    if len(places) < 2 or any(job.reference is not None or _ends_all(job, group.defaults) for job in graph.jobs):
        return [Part(document)]
    several = []
    for numbers in places:
        own = {id(graph.jobs[number]) for number in numbers}
        part = JobGroup([item for item in group.items if not isinstance(item, Job) or id(item) in own],
                        dict(group.attributes), line=group.line, spelling=group.spelling)
        several.append(Part(replace(document, root=_around(document.root, group, part), places=None, findings=None,
                                    files=_files_of(part, document)), numbers))
    return several


def _around(root: Container | Raw, group: JobGroup, other: JobGroup) -> Container | Raw:
    """The root of a document with another group in place of one."""
    if isinstance(root, Raw):
        return Raw(root.tag, root.attributes, root.text, [
            _around(child, group, other) if isinstance(child, (Raw, Container)) else child for child in root.children],
            root.line)
    return other if root is group else root


def joined(several: Iterable[Part]) -> Document:
    """The group that these parts are of, its jobs in their order there. Where several come back with other jobs than
    they had (elements in place of an array), these stand where the first one stood."""
    documents: list[Document] = []
    jobs: list[tuple[int, Job]] = []
    for part in several:
        own = [job for group in part.document.groups() for job in group.jobs]
        places = part.places if len(part.places) == len(own) else (part.places or (0,))[:1] * len(own)
        jobs += zip(places, own, strict=True)
        documents.append(part.document)
    first = next(documents[0].groups())
    start = next(number for number, item in enumerate(first.items) if isinstance(item, Job))
    items = [item for item in first.items if not isinstance(item, Job)]
    items[start:start] = [job for _, job in sorted(jobs, key=lambda placed: placed[0])]
    whole = JobGroup(items, dict(first.attributes), line=first.line, spelling=first.spelling)
    whole.set_as_is("State", derived_state(whole))
    return replace(documents[0], root=_around(documents[0].root, first, whole),
                   files={name: file for document in documents for name, file in document.files.items()})


def _ends_all(job: Job, defaults: JobDefaults | None) -> bool:
    """Whether its failure ends other jobs; of a text that is no policy, which is told elsewhere, it may."""
    try:
        return ends_all(_whole(job, defaults))
    except FailurePolicyError:
        return True


def _files_of(scope: Container, document: Document) -> dict[str, File]:
    """The Files of a document that a scope names."""
    if not document.files:
        return {}
    named = {p.text[1:] for inner in _scopes(scope) for p in inner.properties() if p.text.startswith("#")}
    return {name: file for name, file in document.files.items() if name in named}


def _scopes(scope: Container) -> Iterator[Container]:
    yield scope
    for inner in scope.containers():
        yield from _scopes(inner)
