"""What a job asks of a resource manager, as the custom attributes of the manager's executor.

The writer of the manager's script dialect is asked for the options, so that a job that is run asks for what the script
that ``convert`` writes asks for. What PSI/J has members for (program, streams, directory, environment, name, time
limit) and what the plan and the engine look after (dependencies, holds, arrays) stays with them.
"""

from __future__ import annotations

import calendar
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, TypeVar

from psij.executors.batch._options import RESOURCES
from psij.executors.batch.lrm import LrmExecutor
from sssjob.consequences import OTHER, PROPERTIES
from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.model import Document, Job
from sssjob.findings import Finding, Findings, Policy
from sssjob.request.asked import FACTS
from sssjob.translators.base import WriteContext
from sssjob.translators.scripts.options import OptionPair, command_of_all, options_of
from sssjob.translators.scripts.rows import Dialect, ScriptDocument, dialect_of, fate_of

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

__all__ = ["GEOMETRY", "Native", "Stated", "bearable", "is_export", "left", "native_of", "of_command"]

C = TypeVar("C", bound=Container)

#: Names that a JobSpec, the plan or the engine says in its own way.
_OWN: Final = FACTS | frozenset((
    "Dependency", "EligibleTime", "ErrorFile", "Executable", "Arguments", "Hold", "Id", "InputFile",
    "InitialWorkingDirectory", "Machine", "Name", "OutputFile", "Shell", "User", "Environment", "Delivered"))
#: Extensions of the same kind: whole types, and names of the type Scheduler.
_OWN_TYPES: Final = ("LRM", "MJF", "PSIJ")
_OWN_NAMES: Final = ("Array", "ExportNames", "Launcher")
#: What of a Task tells of an earlier run.
_OF_TASKS: Final = ("Id", "Node")
#: Names that a JobSpec needs too: to start the processes, and to know how long they may take. Of task groups that the
#: manager is told of in one, only how many tasks they have.
GEOMETRY: Final = frozenset(("Duration", "NodeCount", "Processors", "Resource", "TaskCount", "TaskDistribution"))
#: Options, by format, that only say how the submit command behaves (value None: whatever its value).
_COMMAND_ONLY: Final[Mapping[str, Mapping[str, str | None]]] = {
    "slurm": dict.fromkeys(("parsable", "quiet", "verbose", "wait")),
    "sge": {"clear": None, "terse": None, "sync": None, "now": "n"}, "pbspro": {"z": None, "W": "block=true"},
    "torque": {"z": None, "W": "block=true"}, "lsf": {"K": None}, "cobalt": {"mode": "script"},
    "flux": dict.fromkeys(("quiet", "verbose", "wait", "watch", "progress"))}
#: Options, by format, for where a job starts: a run says that itself.
_OF_DIRECTORIES: Final[Mapping[str, tuple[str, ...]]] = {"sge": ("cwd", "wd")}
#: What PSI/J says of sizes that do not go together; the options of the dialect's writer say them all the same.
_UNEVEN: Final = ("resources", "node_count", "processes_per_node")
#: Where task groups have commands of their own.
_GROUPS: Final = ("TaskGroup", "TaskGroupDefaults")
#: What starts a command once, though it is given several tasks.
_ONCE: Final = new_property("Extension", "single", {"name": "Launcher", "type": "Scheduler"})
#: The writer of Grid Engine puts this in place of a parallel environment whose name only the site knows.
_ANY_ENVIRONMENT: Final = "@PE@ "


class _Place(TypedDict):
    """What a finding about an option is about."""

    path: str
    item: NotRequired[Property]
    within: NotRequired[Job]


@dataclass(frozen=True, slots=True)
class Stated:
    """parts: the custom attributes of each part of a job. taken: identities of the items that they say, or that a
    finding tells of. settled: names of GEOMETRY of which every item is among those."""

    parts: tuple[Mapping[str, object], ...]
    taken: frozenset[int]
    settled: frozenset[str]

    def of_part(self, number: int) -> Mapping[str, object]:
        """The attributes of a part; those of the whole job where it has no parts there."""
        return self.parts[number if number < len(self.parts) else 0]

    def settles(self, finding: Finding, *, at_once: bool) -> bool:
        """Whether a finding of the translation to PSI/J is about sizes that these options say, or about task groups
        that are one there, though one command starts each of them (at_once)."""
        if at_once and finding.subject == "TaskGroup" and finding.rule == "SSS502":
            return True
        name = finding.subject.partition("/")[0].partition(" ")[0]
        return name in self.settled or (bool(self.settled) and finding.subject in _UNEVEN)


class _Heard(Findings):
    """Findings that remember what they were told. like: those that they are for."""

    __slots__ = ("calls",)

    def __init__(self, like: Findings) -> None:
        super().__init__(like.file, like.limits)
        self.places, self.late = like.places, like.late
        self.calls: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    def add(self, *words: str, **about: Any) -> Finding | None:
        """As of Findings."""
        self.calls.append((words, about))
        return super().add(*words, **about)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the manager is told of all jobs of a document that ask for the same, and what there is to tell of it: the
    items that are taken, and those that findings are about (None: the job), by their numbers. The document is kept
    because its identity is that of the answer."""

    document: Document
    stated: Stated
    taken: tuple[int, ...]
    calls: tuple[tuple[tuple[str, ...], dict[str, Any], dict[str, int | None]], ...]

    @classmethod
    def to(cls, asked: Job, document: Document, stated: Stated, heard: _Heard) -> _Answer | None:
        """The answer to what a job asks; None where a finding is about something else than its items."""
        number_of: dict[int, int | None] = {id(item): n for n, item in enumerate(_items(asked))} | {id(asked): None}
        calls = []
        for words, about in heard.calls:
            numbers = {name: number_of.get(id(about[name]), -1) for name in ("item", "within")
                       if about.get(name) is not None}
            if -1 in numbers.values() or about.keys() & {"place", "line"}:
                return None
            calls.append((words, about, numbers))
        if not stated.taken <= number_of.keys():
            return None
        taken = tuple(n for key in stated.taken if (n := number_of[key]) is not None)
        return cls(document, stated, taken, tuple(calls))

    def of(self, asked: Job, findings: Findings) -> Stated:
        """The answer for one of these jobs, with its findings."""
        items = list(_items(asked))
        for words, about, numbers in self.calls:
            own = {name: asked if n is None else items[n] for name, n in numbers.items()}
            findings.add(*words, **about | own)
        return replace(self.stated, taken=frozenset(id(items[n]) for n in self.taken))


def _items(scope: Container) -> Iterator[Item]:
    """Everything below a container, in the order of the document."""
    for item in scope.items:
        yield item
        if isinstance(item, Container):
            yield from _items(item)


def _request_of(scope: Container) -> object:
    """What a container asks for, as a value that is equal for containers that ask for the same; None for one that holds
    elements of another vocabulary, or a deadline, for which the clock counts."""
    parts: list[object] = [scope.tag, scope.reference, tuple((scope.attributes or {}).items())]
    for item in scope.items:
        part = _request_of(item) if isinstance(item, Container) else (
            item.tag, item.spelling, item.text, tuple(item.attributes.items())) if isinstance(item, Property) else None
        if part is None or item.tag == "DeadlineTime":
            return None
        parts.append(part)
    return tuple(parts)


def native_of(backend: object) -> Native | None:
    """What asks the writer of an executor's dialect; None for an executor that has none."""
    if not isinstance(backend, LrmExecutor) or not backend.SCRIPT_FORMAT:
        return None
    dialect = dialect_of(backend.SCRIPT_FORMAT)
    return None if dialect is None else Native(backend, dialect)


class Native:
    """Asks the writer of a dialect for the options of jobs, and the executor whether it can submit them."""

    def __init__(self, backend: LrmExecutor, dialect: Dialect) -> None:
        self.backend, self.dialect = backend, dialect
        self._refusals: dict[OptionPair, str | None] = {}
        self._asked: tuple[Job, Document] | None = None     # whose options are looked at
        self._answers: dict[object, _Answer] = {}           # by what is asked for

    def of(self, job: Job, document: Document, findings: Findings, policy: Policy) -> Stated:
        """The custom attributes of a job with its defaults. document: the one that it comes from; policy: its
        awarenessPolicy. What the manager cannot be told is in findings, with paths that begin with ``/Job``.

        Jobs of a document that ask for the same have the same answer, each with findings about its own items; those of
        scripts have their own, for the lines of a script may say more than its document."""
        asked = _without(job, self._is_own)
        request = None if isinstance(document, ScriptDocument) else _request_of(asked)
        if request is None:
            return self._written(asked, document, findings, policy)
        key = id(document), policy, request
        if (answer := self._answers.get(key)) is not None:
            return answer.of(asked, findings)
        heard = _Heard(findings)
        stated = self._written(asked, document, heard, policy)
        findings.extend(heard)
        findings.told += heard.told
        if (answer := _Answer.to(asked, document, stated, heard)) is not None:
            self._answers[key] = answer
        return stated

    def _written(self, asked: Job, document: Document, findings: Findings, policy: Policy) -> Stated:
        """What the writer of the dialect says of a job without what is said elsewhere."""
        self._asked = asked, document
        environments = getattr(self.backend, "parallel_environments", None)
        leaves = list(asked.leaves())
        has_deadline = "DeadlineTime" in [item.tag for item in leaves]
        here = _here(environments or {}) if environments or has_deadline else None
        context = WriteContext(findings, policy=policy, site=here)
        result = options_of(self.dialect, asked, document, context, policy)
        parts = tuple(self._attributes(options, findings, policy) for options in result.parts)
        geometry_tags = {item.tag for item in leaves if item.tag in GEOMETRY}
        untold = {item.tag for item in leaves if id(item) not in result.taken}
        return Stated(parts, result.taken, frozenset(geometry_tags - untold))

    def started_at_once(self, job: Job, document: Document, findings: Findings, policy: Policy) -> Job | None:
        """The job with the one command of the manager's script in place of those of its task groups, which that starts
        side by side; None where they have one command, or the manager's script starts no other."""
        if len(job.task_groups) < 2 or self.dialect.separator:
            return None
        words = command_of_all(self.dialect, job, document, WriteContext(findings, policy=policy), policy)
        if words is None:
            return None
        rest = _without(job, lambda item, within: within in ("Job", *_GROUPS) and _is_of_command(item, within))
        return Job([new_property("Executable", words[0]), new_property("Arguments", shlex.join(words[1:])), _ONCE,
                    *rest.items], rest.attributes or None, None, rest.line)

    @property
    def has_flags(self) -> bool:
        """Whether options without a value are said by their names; HTCondor's commands always have one."""
        return self.dialect.name != "htcondor"

    def settles(self, finding: Finding) -> bool:
        """Whether a finding of the writer's is about what a run says in its own way, or about a name that the settings
        of the executor tell."""
        return finding.subject in _OWN or (_ANY_ENVIRONMENT.strip() in finding.message
                                           and self._environment is not None)

    @property
    def _environment(self) -> str | None:
        return getattr(self.backend, "parallel_environment", None)

    def _is_own(self, item: Item, within: str) -> bool:
        """Whether something else than the writer says an item. A job of HTCondor that exceeds its duration would be
        held and not ended, if the writer said it: psij removes such a job."""
        return _is_own(item, within) or (item.tag == "Duration" and self.dialect.name == "htcondor") or (
            item.tag == "Extension" and item.attributes.get("type") not in ("Scheduler", self.dialect.name)
            and of_command(item.attributes.get("type", ""), item.attributes.get("name", "")))

    def _attributes(self, options: Iterable[OptionPair], findings: Findings, policy: Policy) -> Mapping[str, object]:
        attributes: dict[str, Any] = {RESOURCES: "custom"}
        for option, value in options:
            value = self._named(value)
            if self._fits(option, value, findings, policy):
                name, given_value = self.backend.custom_attribute(option), True if value is None else value
                if name not in attributes:
                    attributes[name] = given_value
                else:
                    attributes[name] = [*(attributes[name] if isinstance(attributes[name], list)
                                          else [attributes[name]]), given_value]
        return attributes

    def _named(self, value: str | None) -> str | None:
        """The value with the parallel environment of the executor's settings, where it leaves that to the site."""
        environment = self._environment
        if environment is None or value is None or not value.startswith(_ANY_ENVIRONMENT):
            return value
        return f"{environment} {value.removeprefix(_ANY_ENVIRONMENT)}"

    def _fits(self, option: str, value: str | None, findings: Findings, policy: Policy) -> bool:
        """Whether the executor can be given an option; else a finding says why not."""
        only = _COMMAND_ONLY.get(self.dialect.name, {})
        if option in _OF_DIRECTORIES.get(self.dialect.name, ()):
            return False
        if option in only and only[option] in (None, value):
            findings.add("SSS602", option, f"{self.dialect.title}'s option {option} is left out: it says how the "
                         "submit command behaves and nothing of the job", severity="info", **self._place(option))
            return False
        if (option, value) not in self._refusals:
            self._refusals[option, value] = self.backend.refusal_of(option, value)
        reason = self._refusals[option, value]
        if value is not None and value.startswith(_ANY_ENVIRONMENT):
            reason = ("a job of several slots needs a parallel environment, whose name only the site knows: Extension "
                      "pe of type sge names one, or the setting parallel_environment, or a site profile (qconf "
                      "-spl lists them)")
        if reason is not None:
            findings.add("SSS602", option, f"{self.dialect.title}'s option {option} cannot be given to the executor "
                         f"{self.backend.name}: {reason}", policy=policy, **self._place(option))
        return reason is None

    def _place(self, option: str) -> _Place:
        """Where a job says an option: the property that its directive became, or its Extension; else the job."""
        if self._asked is None:
            return {"path": "/Job"}
        job, document = self._asked
        origin = document.origin if isinstance(document, ScriptDocument) else (lambda item: None)
        for item in job.leaves():
            directive = origin(item)
            if (directive is not None and directive.name.lstrip("-") == option) or (
                    item.tag == "Extension" and item.get("name") == option and item.get("type") == self.dialect.name):
                return {"path": f"/Job/{item.tag}", "item": item, "within": job}
        return {"path": "/Job"}


def bearable(kind: str, name: str) -> bool:
    """Whether a job does the same on this machine without an option that a script was read with: one that says where,
    when or how fast it runs, that only people notice, or that tells the submit command what to do."""
    if kind == "Scheduler" and PROPERTIES.get(f"Extension {name}", OTHER)[0] != "breaks":
        return True
    return of_command(kind, name) or fate_of(kind, name) not in (None, "breaks")


def of_command(kind: str, name: str) -> bool:
    """Whether an Extension only says how the submit command of the manager that it comes from behaves."""
    return (kind, name) == ("Scheduler", "Wait") or _COMMAND_ONLY.get(kind, {}).get(name, name) is None


def _without(scope: C, leaves: Callable[[Item, str], bool]) -> C:
    """A copy of a container, of the same items but for those that are to be left out. leaves: is given an item and
    the name of what it stands in."""
    items: list[Item] = []
    for item in scope.items:
        if not leaves(item, scope.tag):
            items.append(_without(item, leaves) if isinstance(item, Container) else item)
    return type(scope)(items, scope.attributes or None, scope.reference, scope.line, scope.spelling)


def left(job: Job, taken: Collection[int], needless: Collection[str]) -> Job:
    """What of a job a JobSpec is to say. taken: identities of what the manager is told; of that only the names of
    GEOMETRY stay that are not needless."""
    return _without(job, lambda item, _: (isinstance(item, Property) and is_export(item)) or (
        id(item) in taken and (item.tag not in GEOMETRY or item.tag in needless)))


def is_export(p: Property) -> bool:
    """Whether a property names variables of the submitter that go along."""
    return p.tag == "Extension" and p.get("type") == "Scheduler" and p.get("name") == "ExportNames"


def _is_of_command(item: Item, within: str) -> bool:
    """Whether the command that starts all task groups says an item that stands in a container."""
    if item.tag == "Extension":
        return isinstance(item, Property) and item.get("name") == "Launcher"
    return item.tag in ("Executable", "Arguments") or (
        within == "TaskGroup" and item.tag in ("InitialWorkingDirectory", "Environment"))


def _is_own(item: Item, within: str) -> bool:
    if item.tag != "Extension":
        return item.tag in _OWN or (within == "Task" and item.tag in _OF_TASKS)
    kind, name = item.attributes.get("type", ""), item.attributes.get("name", "")
    return kind in _OWN_TYPES or (kind in ("", "Scheduler") and name in _OWN_NAMES)


def _here(environments: Mapping[str, str | int]) -> Site:
    """A site whose clock is that of this machine, for the resource manager's is taken to be the same. environments:
    parallel ones of Grid Engine, with their allocation rules."""
    from sssjob.conversion.site import SGE, ParallelEnvironment, Site

    class Here(Site):
        """Shows local time."""

        def clock(self, stamp: int) -> int | None:
            """Seconds since the epoch of what a local clock shows then, read as UTC."""
            return calendar.timegm(time.localtime(stamp))

    return Here(name="here", sge=SGE(pe={name: ParallelEnvironment(allocation_rule=rule)
                                        for name, rule in environments.items()}))
