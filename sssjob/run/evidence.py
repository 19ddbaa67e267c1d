"""Where the facts of a run are from, how old they are, and where two sources disagree.

psij takes each fact from the most trusted source that has it and keeps what others say. Here that is held against the
tolerances of decisions 36: what is further apart is a finding. Nothing here touches a document but ``annotate``, which
writes sources into it where somebody asks for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from psij import JobStatus
from sssjob.document.element import Property, new_property
from sssjob.document.model import Job
from sssjob.findings import Findings

__all__ = ["FACTS", "LEFT_OUT", "Disagreement", "Source", "annotate", "disagreements", "fact_records", "is_annotation",
           "kind_of", "not_its_own", "tell"]

#: Key of a status' metadata -> the fact of the document that it becomes.
FACTS: Final[Mapping[str, str]] = {
    "submit_time": "SubmitTime", "start_time": "StartTime", "end_time": "EndTime", "exit_code": "ExitCode",
    "signal": "ExitSignal", "cpu_seconds": "CpuDuration", "suspend_seconds": "SuspendDuration", "starts": "StartCount",
    "wall_seconds": "Delivered/Duration", "processors": "Delivered/Processors", "node_count": "Delivered/NodeCount",
    "nodes": "Delivered/Node", "memory_max_bytes": "Delivered/Memory", "memory_average_bytes": "Delivered/Memory",
    "gpus": "Delivered/Resource GPU", "energy_joules": "Delivered/Resource Energy", "queue": "Queue",
    "account": "Project", "qos": "QualityOfService", "machine": "Machine"}
#: Sources that are no accounting, and what kind they are; every other name is that of a command of accounting.
_KINDS: Final = {"queue": "stream", "status": "stream", "scontrol": "stream", "start-record": "exit-file",
                 "node-file": "exit-file", "exit-file": "exit-file", "measured": "measured", "cancel": "sssjob",
                 "sssjob": "sssjob", "user": "user"}
_SECONDS: Final = 2.0       # within which two times agree
_SHARE: Final = 0.01        # of the greater one, within which two amounts agree
_TIMES: Final = frozenset(("submit_time", "start_time", "end_time"))
_SPANS: Final = frozenset(("wall_seconds", "cpu_seconds", "suspend_seconds"))
_AMOUNTS: Final = frozenset(("memory_max_bytes", "memory_average_bytes", "energy_joules"))
_ENDS: Final = frozenset(("state", "exit_code", "signal"))
_TYPE: Final = "SSSJob"     # of the Extensions that annotate writes
_SOURCE: Final = "Source."
#: The rule of what was left out because it is about another job.
LEFT_OUT: Final = "SSS622"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact is from. name: the command, file or part of sssjob. time: when it was learnt, epoch seconds."""

    name: str
    time: float

    @property
    def kind(self) -> str:
        """accounting, measured, exit-file, stream; sssjob or user for what did not come from a job."""
        return kind_of(self.name)

    def __str__(self) -> str:
        return self.kind if self.name in (self.kind, "status") else f"{self.kind} ({self.name})"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sources state different values of one fact; the first one counts. key: of the status' metadata."""

    key: str
    value: Any
    source: str
    other: Any
    other_source: str

    @property
    def fact(self) -> str:
        """The fact's name in the document."""
        return "State" if self.key == "state" else FACTS.get(self.key, self.key)

    @property
    def rule(self) -> str:
        """SSS621 for what says how the job ended, SSS620 for the rest."""
        return "SSS621" if self.key in _ENDS else "SSS620"

    @property
    def text(self) -> str:
        """In words."""
        kept_s = self.value - self.other if (self.key, self.other_source) == ("end_time", "exit-file") else 0
        why = f", for the nodes were kept for {_shown(kept_s)} s after the job's own end" if kept_s > 0 else ""
        if (self.key, self.other) == ("starts", 0):
            why = ", and for how long it had its nodes is not known"
        return (f"{self.fact}: {self.source} says {_shown(self.value)}, {self.other_source} {_shown(self.other)}; "
                f"the former counts{why}")

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"rule": self.rule, "fact": self.fact, "key": self.key, "value": self.value, "source": self.source,
                "other": self.other, "other_source": self.other_source}


def kind_of(source: str) -> str:
    """The kind of a source by its name (decisions 34)."""
    return _KINDS.get(source, "accounting")


def disagreements(status: JobStatus) -> Iterator[Disagreement]:
    """Where the sources of a status are further apart than 2 s (times), 2 s and 1 % (durations), 1 % (amounts); counts
    and names have to be the same."""
    metadata = status.metadata or {}
    sources: Mapping[str, str] = metadata.get("sources", {})
    for key, others in metadata.get("others", {}).items():
        value = {"exit_code": status.exit_code, "state": status.state.name}.get(key, metadata.get(key))
        for source, other in others.items():
            if value is not None and not (_agree(key, value, other, metadata)
                                          or _is_of_a_requeue(key, other, str(source), metadata)):
                yield Disagreement(key, value, str(sources.get(key, "status")), other, str(source))


def not_its_own(status: JobStatus) -> list[str]:
    """Why answers about the native id of a job did not count, a text each."""
    return [f"left out, as about another job: {why}" for why in (status.metadata or {}).get("left_out", ())]


def _agree(key: str, value: Any, other: Any, metadata: Mapping[str, Any]) -> bool:
    if value == other:
        return True
    if key in _TIMES | _SPANS | _AMOUNTS:
        try:
            apart, share = abs(float(value) - float(other)), _SHARE * max(abs(float(value)), abs(float(other)))
        except (TypeError, ValueError):
            return False
        if key in _TIMES:
            return apart <= _SECONDS or _is_of_an_attempt(key, float(other), metadata)
        return apart <= (max(_SECONDS, share) if key in _SPANS else share)
    if key == "nodes":
        return _short(value) == _short(other)
    return False


def _is_of_an_attempt(key: str, time: float, metadata: Mapping[str, Any]) -> bool:
    """Whether a time is that of an earlier run: an old word, not another one."""
    return any(abs(float(attempt[key]) - time) <= _SECONDS for attempt in metadata.get("attempts", ())
               if key in attempt)


def _is_of_a_requeue(key: str, time: Any, source: str, metadata: Mapping[str, Any]) -> bool:
    """Whether a time of submission is the one at which a job that had begun was put back into the queue: queue and
    controller, unlike accounting, have only the last one."""
    runs = (metadata, *metadata.get("attempts", ()))
    starts = [run["start_time"] for run in runs if run.get("start_time") is not None]
    return key == "submit_time" and kind_of(source) != "accounting" and bool(starts) and time > min(starts)


def _short(names: Any) -> set[str]:
    """Hosts without their domains, which one source writes and another leaves out."""
    return {str(name).partition(".")[0] for name in names} if isinstance(names, list | tuple) else {str(names)}


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return str(int(value) if value.is_integer() else round(value, 2))
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def tell(findings: Findings, label: str, apart: Iterable[Disagreement], place: str) -> None:
    """Each disagreement as a finding about the job of that label, which stands at that place."""
    for disagreement in apart:
        findings.add(disagreement.rule, disagreement.fact, f"{label}: {disagreement.text}", path=place)


def is_annotation(item: Property) -> bool:
    """Whether an Extension is one of ``annotate``."""
    return item.tag == "Extension" and item.get("type") == _TYPE and str(item.get("name", "")).startswith(_SOURCE)


def fact_records(rows: Iterable[tuple[str, str, Source]], now: float) -> list[dict[str, Any]]:
    """Facts as JSON objects. rows: (fact, value, source); now: epoch seconds, for the age."""
    return [{"fact": fact, "value": value, "source": source.kind, "by": source.name, "time": source.time,
             "age": round(max(now - source.time, 0.0), 1)} for fact, value, source in rows]


def annotate(job: Job, rows: Iterable[tuple[str, str, Source]]) -> None:
    """Write the source of each fact into the job: Extension ``Source.<fact>`` of type SSSJob (decisions 35).

    rows: (fact, value, source). The value of the Extension is the kind of the source and its name.
    """
    sources = {fact: source for fact, _, source in rows}
    job.put_as_is("Extension", [*(p for p in job.all("Extension") if not is_annotation(p)),
                          *(new_property("Extension", str(source), {
                              "type": _TYPE, "name": _SOURCE + fact.replace("/", ".").replace(" ", ".")})
                            for fact, source in sources.items())])
