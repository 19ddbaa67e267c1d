"""What scripts leave open that only a site can answer: names of its queues and environments, units, modules.

``surveyed`` reads one script; ``Survey`` adds up a tree of them; ``drafting`` makes a site profile of it. Nothing is
guessed here, and no file is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sssjob.document.element import Property
from sssjob.findings import Findings, Policy
from sssjob.translators.base import ReadContext, Translator

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.document.model import Document
    from sssjob.translators.recognise import Sample

__all__ = ["KINDS", "Answer", "Question", "Survey", "Use", "surveyed"]


class Question(NamedTuple):
    """Something that only a site knows. kind: of ``KINDS``; name: as scripts spell it; dialect: of the scripts."""

    kind: str
    name: str
    dialect: str


class Use(NamedTuple):
    """Where a question comes up. line 0: of the script as a whole."""

    question: Question
    line: int = 0


@dataclass(frozen=True, slots=True)
class _Kind:
    """title: for people; key: of the site profile that answers it, empty where none does; property: of the job object,
    whose text is the name."""

    title: str
    key: str = ""
    property: str = ""


#: Kind of question -> what it is called, and the key that answers it.
KINDS: Final[dict[str, _Kind]] = {
    "queue": _Kind("queues and partitions", "map.Queue", "Queue"),
    "project": _Kind("projects and accounts", "map.Project", "Project"),
    "qos": _Kind("qualities of service", "map.QualityOfService", "QualityOfService"),
    "feature": _Kind("features of nodes", "map.Feature", "Feature"),
    "machine": _Kind("clusters", "map.Machine", "Machine"),
    "reservation": _Kind("reservations", "map.Reservation", "Reservation"),
    "module": _Kind("environment modules", "modules"),
    "pe": _Kind("parallel environments", "sge.pe"),
    "h_vmem": _Kind("whether h_vmem counts for each slot", "sge.h_vmem_per_slot"),
    "unit": _Kind("unit of memory without one", "lsf.unit_for_limits"),
    "reserve": _Kind("whether memory counts for each task", "lsf.reserve_per_task"),
    "limit": _Kind("whether -M is the memory of the whole job", "lsf.job_memory_limit"),
    "plugin": _Kind("options that sbatch has of plugins alone", "slurm.plugin_options"),
    "clock": _Kind("clock of times of day", "timezone"),
    "complex": _Kind("resources and complexes of the site"),
    "group": _Kind("groups of hosts"),
    "license": _Kind("licences"),
    "gpu": _Kind("types of GPUs"),
    "other": _Kind("what else depends on the site"),
}
_BY_TAG: Final = {kind.property: name for name, kind in KINDS.items() if kind.property}
#: Resources of ``-l`` that come with every PBS and Grid Engine, and mean the same everywhere.
_OWN: Final = frozenset(("place", "h_rt", "s_rt", "h_cpu", "s_cpu", "arch"))
_UNITS: Final = ("unit is the site's", "has no unit")       # of messages of the reader of LSF
_RESERVES: Final = "reserve_per_task"
_LIMITS_JOB: Final = "job_memory_limit"
_PLUGINS: Final = "plugin_options"
_CLOCK: Final = "the clock of the site"


@dataclass(slots=True)
class Answer:
    """How often a question comes up. example: ``file:line`` of its first use."""

    scripts: int = 0
    uses: int = 0
    example: str = ""


@dataclass(slots=True)
class Survey:
    """The questions of many scripts."""

    formats: dict[str, int] = field(default_factory=dict)           # dialect -> scripts
    answers: dict[Question, Answer] = field(default_factory=dict)

    def add(self, dialect: str, path: str, uses: list[Use]) -> None:
        """One script."""
        self.formats[dialect] = self.formats.get(dialect, 0) + 1
        for question, line in uses:
            answer = self.answers.setdefault(question, Answer())
            answer.uses += 1
            answer.example = answer.example or (f"{path}:{line}" if line else path)
        for question in {use.question for use in uses}:
            self.answers[question].scripts += 1

    def of(self, kind: str) -> list[tuple[Question, Answer]]:
        """The questions of one kind, those of most scripts first."""
        return sorted(((q, a) for q, a in self.answers.items() if q.kind == kind),
                      key=lambda row: (-row[1].scripts, -row[1].uses, row[0]))

    def records(self) -> Iterator[dict[str, Any]]:
        """All questions as JSON objects."""
        for kind, about in KINDS.items():
            for question, answer in self.of(kind):
                yield {"type": "question", "kind": kind, "name": question.name, "format": question.dialect,
                       "scripts": answer.scripts, "uses": answer.uses, "example": answer.example, "key": about.key}


def surveyed(reader: Translator, sample: Sample, site: Site | None = None) -> list[Use]:
    """What one script leaves open, in no order. site: what it answers is left out. Raises RejectedError for what cannot
    be read at all."""
    findings = Findings(sample.path)
    context = ReadContext(sample.path, findings, policy=Policy.WARN, site=site, sample=sample)
    document = reader.read(sample.data, context)
    uses = [*_properties(reader.name, document), *_findings(reader.name, findings), *_modules(reader.name, sample.data)]
    return uses if site is None else [use for use in uses if not _answered(use.question, site)]


def _properties(dialect: str, document: Document) -> Iterator[Use]:
    """Names that stand in properties, and options that only the dialect has."""
    origin = getattr(document, "origin", lambda item: None)
    for job, _ in document.jobs():
        for item in job.leaves():
            kind, names = _named(dialect, item)
            for name in filter(None, names.split(",") if (kind, item.tag) == ("queue", "Extension") else (names,)):
                if not kind:
                    continue
                option = origin(item)
                line = 0 if option is None else option.line
                if kind == "queue" and "@" in name and dialect == "sge" and item.tag == "Queue":
                    queue, _, group = name.partition("@")
                    yield Use(Question("group", f"@{group}", dialect), line)
                    name = queue
                yield Use(Question(kind, name, dialect), line)


def _named(dialect: str, item: Property) -> tuple[str, str]:
    """Kind and name of the question that a property is; empty where it is none."""
    if item.tag in _BY_TAG:
        return _BY_TAG[item.tag], item.text or ""
    name = item.get("name") or ""
    if item.tag == "Resource":
        return {"License": "license", "GPU": "gpu"}.get(name, ""), item.get("type") or ""
    if item.tag == "Extension" and item.get("type") == dialect:
        if name in ("pe", "q"):             # a list of queues with expressions is kept as it is
            return {"pe": "pe", "q": "queue"}[name], item.text or ""
        beginning, _, rest = name.partition(" ")
        if beginning in ("l", "soft") and rest:
            rest = rest.removeprefix("-l ")
            return ("complex", rest) if not rest.startswith("-") and rest not in _OWN else ("", "")
        if name.startswith("select."):
            return "complex", name.removeprefix("select.")
    return "", ""


def _findings(dialect: str, findings: Findings) -> Iterator[Use]:
    """What the reader says that only the site knows."""
    for finding in findings:
        if _PLUGINS in finding.message:
            yield Use(Question("plugin", finding.subject.lstrip("-").partition("=")[0], dialect), finding.line)
        if finding.kind != "site-dependent":
            continue
        kind, name = "other", finding.subject
        if dialect == "lsf" and any(words in finding.message for words in _UNITS):
            kind = "unit"
        elif _RESERVES in finding.message:
            kind = "reserve"
        elif _LIMITS_JOB in finding.message:
            kind = "limit"
        elif _CLOCK in finding.message:
            kind = "clock"
        elif finding.subject == "-l h_vmem":
            kind = "h_vmem"
        elif finding.subject in ("-pe", "-q"):
            continue                        # its name is a question already
        yield Use(Question(kind, name, dialect), finding.line)


def _modules(dialect: str, data: bytes) -> Iterator[Use]:
    from sssjob.translators.bodies.modules import named

    for name, line in named(data):
        yield Use(Question("module", name, dialect), line)


def _answered(question: Question, site: Site) -> bool:
    """Whether the profile of a site has an entry for a name; units and clocks it answers while a script is read."""
    about = KINDS[question.kind]
    if about.property:
        return question.name in site.map.get(about.property, {})
    if question.kind == "pe":
        return question.name in site.sge.pe
    return question.kind == "module" and question.name in site.modules
