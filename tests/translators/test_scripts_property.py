"""Whatever a job says comes back from its script, or there is a finding about it."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.model import Document, Environment, Job, Requested, TaskGroup, new_property
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.units import to_bytes

FORMATS = st.sampled_from(["slurm", "pbspro", "torque", "lsf", "sge", "cobalt", "flux"])
#: Those that say nodes and tasks, and those that count slots.
SIZED = st.sampled_from(["slurm", "pbspro", "torque", "flux"])
SLOTTED = st.sampled_from(["sge", "lsf"])
PREFIXES = {"sge": "#$ ", "lsf": "#BSUB ", "cobalt": "#COBALT ", "slurm": "#SBATCH ", "flux": "#FLUX: "}
LINES = st.lists(st.text(" #$-'\"\\=:,abnNPBSATCHtl1{}%", max_size=30), max_size=8)


def there_and_back(name: str, job: Job) -> tuple[Job, Findings]:
    findings = Findings("x")
    text = get(name).write(Document(job), WriteContext(findings, policy=Policy.WARN))
    back = get(name).read(text.encode(), ReadContext(policy=Policy.WARN))
    return next(j for j, _ in back.jobs()), findings


@settings(max_examples=60)
@given(FORMATS, st.text(max_size=20), st.text(max_size=20))
def test_texts(name: str, label: str, value: str) -> None:
    job = Job([new_property("Name", label), Environment([new_property("Variable", value, {"name": "A"})])])
    back, findings = there_and_back(name, job)
    told = {f.subject for f in findings}
    assert back.name == label or not label or {"Name", "-N", "-J", "--job-name"} & told
    assert (back.environment is not None and back.environment.variables() == {"A": value}) or {
        "Variable", "-v", "-env", "--export", "--env"} & told


@settings(max_examples=60)
@given(SIZED, st.integers(1, 50), st.integers(1, 64), st.integers(1, 8), st.integers(1, 10**6))
def test_amounts(name: str, nodes: int, tasks: int, cpus: int, minutes: int) -> None:
    """All nodes, tasks and processors that are asked for stand in the script."""
    job = Job([Requested([new_property("NodeCount", nodes), new_property("Duration", minutes * 60)]),
               TaskGroup([new_property("TaskCount", tasks * nodes), new_property(
                   "TaskDistribution", str(tasks), {"type": "TasksPerNode"})])])
    back, findings = there_and_back(name, job)
    assert back.requested is not None and back.requested.duration == minutes * 60
    groups = [g.requested for g in back.task_groups if g.requested is not None]
    found = back.requested.node_count or sum(g.node_count or 0 for g in groups)
    assert found == nodes
    assert sum(g.task_count or 0 for g in back.task_groups) == tasks * nodes
    assert list(findings) == []


@settings(max_examples=60)
@given(SLOTTED, st.integers(1, 50), st.integers(1, 64), st.integers(1, 2**50))
def test_slots(name: str, nodes: int, tasks: int, size: int) -> None:
    """As many slots as tasks, and no less memory than was asked for; what changes is told."""
    job = Job([Requested([new_property("NodeCount", nodes), new_property("Memory", size, {
        "units": "B", "metric": "PerNode"})]), TaskGroup([new_property("TaskCount", tasks * nodes)])])
    back, findings = there_and_back(name, job)
    assert back.requested is not None
    slots = back.requested.first("Processors")      # a job has one slot when nothing is said
    assert (slots is None) == (nodes * tasks == 1 and name == "sge")
    assert slots is None or slots.value == nodes * tasks
    memory = back.requested.first("Memory")
    assert memory is not None
    total = to_bytes(Decimal(memory.text), memory.get("units")) * (nodes * tasks if name == "sge" else nodes)
    assert total >= size * nodes
    assert total == size * nodes or "Memory" in {f.subject for f in findings}


@settings(max_examples=150)
@given(FORMATS, LINES, st.booleans())
def test_any_text_is_read_or_refused(name: str, lines: list[str], prefixed: bool) -> None:
    """Never another exception; what was read can be written, and that is a fixed point."""
    prefix = PREFIXES.get(name, "#PBS ") if prefixed else ""
    text = "#!/bin/sh\n" + "".join(f"{prefix}{line}\n" for line in lines)
    try:
        document = get(name).read(text.encode(), ReadContext(policy=Policy.WARN))
        first = get(name).write(document, WriteContext())
        again = get(name).read(first.encode(), ReadContext(policy=Policy.WARN))
    except RejectedError:
        return
    assert get(name).write(again, WriteContext()) == first
