"""A unit that is none of bytes in a document made by hand: the gate refuses it, and a writer that is called without the
gate tells of it and goes on."""

from __future__ import annotations

import pytest

from sssjob.conversion.intake import gate
from sssjob.document.element import Container, Item, Property, new_property
from sssjob.document.model import Document, Job, Requested, Task, TaskDefaults, TaskGroup
from sssjob.findings import Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.cases import Cases

TARGETS = ("slurm", "pbspro", "torque", "lsf", "sge", "cobalt", "htcondor", "flux", "psij", "flux-jobspec", "jsdl")
#: Finds variables of Slurm, so that other dialects ask what the job has of them.
SCRIPT = "#!/bin/sh\necho $SLURM_MEM_PER_NODE\n"


def _document(where: str, amount: Property) -> Document:
    block: Container = Requested([amount])
    if where == "TaskDefaults":
        block = TaskDefaults([block])
    elif where == "Task":
        block = Task([block])
    group = TaskGroup([new_property("TaskCount", 3), block])
    levels: dict[str, Item] = {"bare": amount, "Job": block}
    job = Job([new_property("Executable", "/bin/a"), levels.get(where, group)])
    if where == "first of two":
        job.items.append(TaskGroup([new_property("TaskCount", 2)]))
    return Document(job)


@pytest.mark.parametrize("tag", ["Memory", "Disk", "Swap"])
@pytest.mark.parametrize("where", ["bare", "Job", "TaskGroup", "first of two", "TaskDefaults", "Task"])
def test_an_unknown_unit_is_told_of_and_nothing_is_written_of_it(where: str, tag: str) -> None:
    with Cases() as case:
        for metric in ("", "PerNode"):
            attributes = {"units": "furlong"} | ({"metric": metric} if metric else {})
            document = _document(where, new_property(tag, 47, attributes))
            assert gate(document).rejected
            for target in TARGETS:
                with case(f"{metric} {target}"):
                    context = WriteContext(policy=Policy.WARN)
                    assert "47" not in get(target).write(document, context)
                    findings = [f for f in context.findings if f.subject.startswith(tag)]
                    assert findings
                    assert len(findings) == len({f.message for f in findings})


@pytest.mark.parametrize("target", ["pbspro", "torque", "lsf", "sge", "cobalt", "htcondor", "flux"])
def test_a_body_that_asks_for_the_memory_gets_none(target: str) -> None:
    document = get("slurm").read(SCRIPT.encode(), ReadContext("a.sh"))
    job, _ = next(document.jobs())
    job.items.append(Requested([new_property("Memory", 47, {"units": "furlong", "metric": "PerNode"})]))
    context = WriteContext(policy=Policy.WARN)
    assert "47" not in get(target).write(document, context)
    assert [f for f in context.findings if f.subject == "Memory"]
