"""Jobs that are changed after they were submitted: their documents, and what resource managers are told of them.

A change is a Job that holds what is to be otherwise and nothing else; as a wish it is the text of that. A property gets
its new value where the job has it, and keeps how it is counted there. What was not submitted yet is planned anew; what
was is changed by its resource manager, as far as that can. The document follows what was accepted.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import psij
from sssjob.document import vocabulary
from sssjob.document.element import Container, Property
from sssjob.document.model import Document, Job, Requested, Task, TaskDefaults, TaskGroup
from sssjob.errors import UsageError
from sssjob.findings import escape
from sssjob.request.asked import FACTS
from sssjob.run.abilities import Changes
from sssjob.run.attempts import changes_of
from sssjob.run.plan import Part, Plan, PlannedJob, outline, refold
from sssjob.xml.canonical import canonical
from sssjob.xml.reader import read_document

if TYPE_CHECKING:
    from sssjob.run.standing import Running

__all__ = ["change_of", "change_text", "changed_parts", "job_of", "leaves_of", "rewrite", "scope_of", "shown",
           "take_change", "tell_manager"]

#: What is no matter of a request, or is changed by other means -> why.
_NEVER: Final = {
    **dict.fromkeys(FACTS, "it is a fact"), "Id": "it names the job", "Dependency": "the order of jobs follows from it",
    "EligibleTime": "the job waits for it already", "Hold": "hold and release change it",
    "Extension": "it is no property", **dict.fromkeys(("Executable", "Arguments"), "it is what runs")}
#: Containers in which something is asked for, by their tags.
_ASKING: Final[dict[str, type[Container]]] = {
    "Requested": Requested, "TaskGroup": TaskGroup, "TaskDefaults": TaskDefaults, "Task": Task}
_OF_CONDITIONS: Final = ("conj", "group", "preference")
_WITH_UNITS: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", re.ASCII)

#: The tags of the containers in which a property stands, from the job on.
_Path = tuple[str, ...]


def change_text(job: Job) -> str:
    """A change as the text of a wish. Raises UsageError for what cannot be changed, or where nothing is."""
    stated = list(_stated(job))
    if not stated:
        raise UsageError("nothing is said that is to be changed")
    for (_, p), (_, other) in ((a, b) for n, a in enumerate(stated) for b in stated[:n]):
        if _is_same(p, other):
            raise UsageError(f"{p.tag} is to be changed into two things")
    return canonical(job).decode()


def change_of(settings: Iterable[tuple[str, str]]) -> str:
    """The text of a wish that properties have values. settings: name and value, with its units where it has any.

    Raises UsageError, and RejectedError for a value that the property cannot have.
    """
    job = Job()
    for stated, value in settings:
        name = next((vocabulary.aliases(scope)[stated] for scope in ("Job", "TaskGroup")
                     if stated in vocabulary.aliases(scope)), stated)
        element = vocabulary.in_scope("TaskGroup").get(name) or vocabulary.in_scope("Job").get(name)
        if element is None:
            raise UsageError(f"{escape(stated, 40)!r} is no property of a job")
        sized = _WITH_UNITS.fullmatch(value.strip()) if any(row.name == "units" for row in element.attributes) else None
        p = Property(name, sized[1] if sized else value, {"units": sized[2]} if sized else {})
        requested = ("Requested",) if "R" in element.categories else ()
        scope_of(job, requested if name in vocabulary.in_scope("Job") else ("TaskGroup",)).items.append(p)
    document = read_document(canonical(job).decode())
    if document.findings is not None:
        document.findings.raise_if_rejected()
    return change_text(job_of(document))


def shown(text: str) -> str:
    """What a change says, as ``Memory 4 GB, Name b``."""
    return ", ".join(" ".join(filter(None, (p.get("name"), p.tag, p.text, p.get("units"))))
                     for _, p in _stated(_read(text)))


def rewrite(document: Document, changes: Mapping[int, Sequence[str]]) -> None:
    """Change jobs of a document as was accepted. changes: by the places of the jobs in its plan."""
    if any(changes.values()):
        for number, planned in enumerate(outline(document).jobs):
            for text in changes.get(number, ()):
                take_change(planned, text)


def take_change(planned: PlannedJob, text: str) -> frozenset[str]:
    """Change a planned job and its document. text: of the wish. Returns the tags of what has changed.

    Raises UsageError where it cannot be said in one place; the job is as it was then.
    """
    change = _read(text)
    _trial(planned, change)
    _set(planned.job, planned.folded, change)
    planned.folded = refold(planned)
    return frozenset(p.tag for _, p in _stated(change))


def changed_parts(job: Running, plan: Plan, text: str) -> tuple[list[Part], str]:
    """What would be started for a job that is changed as a wish says, and why it cannot be; empty where it can."""
    if job.plan.member is not None:
        return [], "it is an element of an array, of which the document says one thing for all"
    try:
        return _parts(job, plan, _trial(job.plan, _read(text)))
    except UsageError as error:
        return [], str(error)


def tell_manager(job: Running, plan: Plan, text: str) -> str:
    """Have the resource manager change a job that was submitted, as a wish says; why it was not, empty where it was.

    Raises SubmitException where that may be done later.
    """
    after, refusal = changed_parts(job, plan, text)
    before, unplanned = ([], refusal) if refusal else _parts(job, plan, job.plan)
    if refusal or unplanned or len(before) != len(after):
        return refusal or unplanned or "it would have other parts"
    backend = job.of.executor()
    assert isinstance(backend, Changes)
    done: list[tuple[psij.Job, int]] = []
    try:
        for n, psij_job in enumerate(job.parts):
            if psij_job is not None and before[n].spec != after[n].spec:
                backend.change(psij_job, before[n].spec, after[n].spec)
                done.append((psij_job, n))
    except psij.SubmitException as error:
        for psij_job, n in done:
            try:
                backend.change(psij_job, after[n].spec, before[n].spec)
            except psij.SubmitException as failure:
                return f"{error}; a part stays changed: {failure}"
        if error.transient:
            raise
        return str(error)
    job.plan.parts = after
    return ""


def _parts(job: Running, plan: Plan, planned: PlannedJob) -> tuple[list[Part], str]:
    """What is started for a job as it is planned now, for the attempt that it is at; why it cannot be planned."""
    clauses = [attempt.clause for attempt in job.attempts]
    parts, findings = plan.parts_of(planned, changes_of(job.plan.retry, clauses), len(clauses) + 1)
    return parts, "; ".join(f"{finding.subject}: {finding.message}" for finding in findings if finding.rejects)


def _read(text: str) -> Job:
    return job_of(read_document(text))


def job_of(document: Document) -> Job:
    """The one job of a document that is a change. Raises UsageError."""
    bodies = list(document.bodies())
    if len(bodies) != 1 or not isinstance(bodies[0], Job):
        raise UsageError("a change is one Job, with what is to be otherwise")
    return bodies[0]


def leaves_of(job: Job) -> Iterator[tuple[_Path, Property]]:
    """What a job says of itself and asks for, with the tags of the containers in which it stands."""
    for path, scope in _scopes(job):
        for item in scope.items:
            if isinstance(item, Property):
                yield path, item


def _scopes(job: Job) -> Iterator[tuple[_Path, Container]]:
    """The containers of a job in which something is asked for, itself the first."""
    stack: list[tuple[_Path, Container]] = [((), job)]
    while stack:
        path, scope = stack.pop()
        yield path, scope
        stack += [((*path, item.tag), item) for item in scope.items
                  if isinstance(item, Container) and item.tag in _ASKING]


def _stated(job: Job) -> Iterator[tuple[_Path, Property]]:
    """What a change says. Raises UsageError for what is never changed."""
    for _, scope in _scopes(job):
        for item in scope.items:
            if not (isinstance(item, Property) or item.tag in _ASKING):
                raise UsageError(f"{item.tag} of a job that was submitted is not changed")
    for path, p in leaves_of(job):
        if p.tag in _NEVER:
            name = f"{p.tag} {escape(str(p.get('name')), 80)}" if p.get("name") else p.tag
            raise UsageError(f"{name} of a job that was submitted is not changed: {_NEVER[p.tag]}")
        if any(name in p.attributes for name in _OF_CONDITIONS):
            raise UsageError(f"{p.tag}: a change is no condition")
        yield path, p


def _trial(planned: PlannedJob, change: Job) -> PlannedJob:
    """A planned job as the change makes it, beside the one that stays. Raises UsageError."""
    trial = copy.copy(planned)
    trial.job = copy.deepcopy(planned.job)
    _set(trial.job, planned.folded, change)
    trial.folded = refold(trial)
    for path, p in _stated(change):
        if any(not _says(other, p) for _, _, other in _places(trial.folded, path, p)):
            raise UsageError(f"{p.tag}: its task groups say it each for itself")
    return trial


def _set(job: Job, folded: Job, change: Job) -> None:
    """Have a job say what a change says. folded: the job with its defaults. Raises UsageError."""
    for path, p in _stated(change):
        own = _places(job, path, p)
        inherited = own or _places(folded, path, p)
        if len(inherited) > 1:
            raise UsageError(f"{p.tag}: the job asks for it in several places")
        if own:
            (_, scope, before), = own
            scope.items = [_instead(before, p) if item is before else item for item in scope.items]
        elif inherited:
            (there, _, before), = inherited
            scope_of(job, there).items.append(_instead(before, p))
        else:
            scope_of(job, path).items.append(p)


def _places(job: Job, path: _Path, p: Property) -> list[tuple[_Path, Container, Property]]:
    """Where a job says what a property says: in the same containers, else anywhere."""
    places = [(there, scope, item) for there, scope in _scopes(job) for item in scope.items
              if isinstance(item, Property) and _is_same(item, p)]
    return [place for place in places if place[0] == path] or places


def _is_same(p: Property, other: Property) -> bool:
    """Whether two properties say the same of a job: of resources and variables those of one name."""
    return p.tag == other.tag and p.get("name") == other.get("name")


def _instead(before: Property, p: Property) -> Property:
    """A property with the value of another one, which is counted as before unless that says otherwise."""
    return before.replace(p.value, **{"units": None, **p.attributes})


def _says(other: Property, p: Property) -> bool:
    return other.value == p.value and other.get("units") == p.get("units")


def scope_of(job: Job, path: _Path) -> Container:
    """The first containers of these tags in a job, made where there are none."""
    scope: Container = job
    for tag in path:
        inner = next(scope.containers(tag), None)
        if inner is None:
            inner = _ASKING[tag]()
            scope.items.append(inner)
        scope = inner
    return scope
