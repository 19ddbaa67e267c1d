"""Processors that are asked for beside each GPU (``--cpus-per-gpu``) are processors of the job at every door."""

from __future__ import annotations

import pytest

from sssjob.accounting.asked import AskedAmounts
from sssjob.document.element import new_property
from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.request import Offer, match
from sssjob.translators import ReadContext, get
from tests.laws.documents import job_of, request_in
from tests.laws.readers import READERS
from tests.laws.test_amounts import subject_words, written


def script(*lines: str) -> Document:
    """A script of Slurm with these directives."""
    text = "".join(f"#SBATCH {line}\n" for line in lines)
    return get("slurm").read(f"#!/bin/sh\n{text}srun ./a\n".encode(), ReadContext())


CASES = [
    (("--gpus=4", "--cpus-per-gpu=6"), 24), (("-N 2", "--gpus-per-node=4", "--cpus-per-gpu=6"), 48),
    (("-n 2", "--gpus-per-task=2", "--cpus-per-gpu=3"), 12), (("-n 8", "--gpus=2", "--cpus-per-gpu=1"), 8),
    (("--gpus=a100:2,v100:1", "--cpus-per-gpu=2"), 6), (("-n 3", "--cpus-per-gpu=2"), 3)]


@pytest.mark.parametrize(("lines", "processors"), CASES)
def test_processors_are_those_of_all_gpus(lines: tuple[str, ...], processors: int) -> None:
    """They were none, so that a job of 48 processors met an offer of one, and was quoted without them."""
    document = script(*lines)
    request = request_in(document)
    assert request.totals.processors is not None and request.totals.processors.value == processors
    (amount,) = AskedAmounts(effective(job_of(document)), request).entire.amounts("Processors") or (None,)
    assert amount is not None and amount.value == processors
    gpus = [new_property("Resource", 8, {"name": "GPU", **kind}) for kind in ({}, {"type": "a100"}, {"type": "v100"})]
    for offered, met in ((processors, True), (processors - 1, False)):
        offer = Offer.of([new_property("Processors", offered), new_property("NodeCount", 2), *gpus])
        assert match(request, offer).met is met


@pytest.mark.parametrize(("lines", "processors"), CASES)
def test_slurm_gets_the_option_again(lines: tuple[str, ...], processors: int) -> None:
    """And no count of tasks that Slurm would add to it."""
    output, findings = written("slurm", script(*lines))
    assert f"#SBATCH {lines[-1]}\n" in output
    assert not any(f.subject.startswith("Extension CpusPerGPU") for f in findings)
    assert request_in(get("slurm").read(output.encode(), ReadContext())).totals.processors is not None


@pytest.mark.parametrize("name", sorted(READERS))
@pytest.mark.parametrize(("lines", "processors"), CASES)
def test_other_managers_are_asked_for_as_many(name: str, lines: tuple[str, ...], processors: int) -> None:
    """Each of them dropped the option with a finding and asked for one, or for one a task."""
    output, findings = written(name, script(*lines))
    refused = any("CpusPerGPU" in subject_words(f) and f.rule == "SSS501" for f in findings)
    assert refused == (name == "psij" and lines[0] == "-N 2")    # two nodes, on which nobody says how many processes
    about = {"Processors", "NodeCount", "TaskCount", "Resource", "CpusPerGPU"}
    if not refused and name != "cobalt":        # which gives whole nodes
        asked = READERS[name](output).processors
        assert asked == processors or (asked < processors and any(about & subject_words(f) for f in findings
                                                                  if f.severity != "info")), output


#: Directives -> tasks, processors and GPUs in all, where sbatch counts the tasks by the GPUs. Source: sbatch(1).
COUNTED = [
    (("--gpus=4", "--gpus-per-task=1", "--cpus-per-gpu=6"), (4, 24, 4)), (("-G 8", "--gpus-per-task=2"), (4, 4, 8)),
    (("--gpus=4", "--ntasks-per-gpu=2", "-c 3"), (8, 24, 4)),
    (("-N 2", "--gpus-per-node=4", "--ntasks-per-gpu=1", "-c 8"), (8, 64, 8)),
    (("-n 3", "--gpus=6", "--ntasks-per-gpu=1"), (3, 3, 6))]


def counted(document: Document) -> tuple[int | None, int, int]:
    """Tasks, processors and GPUs that a document asks for."""
    totals = request_in(document).totals
    assert totals.processors is not None
    gpus = sum(int(total.value) for identity, total in totals.amounts.items() if identity[0] == "Resource")
    return totals.tasks, int(totals.processors.value), gpus


@pytest.mark.parametrize(("lines", "counts"), COUNTED)
def test_tasks_are_counted_by_gpus(lines: tuple[str, ...], counts: tuple[int, int, int]) -> None:
    """``--cpus-per-gpu`` made 24 tasks with a GPU each of four GPUs that have six processors each."""
    document = script(*lines)
    assert counted(document) == counts
    for name in ("slurm", "pbspro", "torque", "flux"):
        output, _ = written(name, document)
        again = counted(get(name).read(output.encode(), ReadContext()))
        assert again[1:] == counts[1:] or name == "slurm", output
        assert again[0] == counts[0] or name != "slurm", output


def test_gpus_that_no_number_of_tasks_shares_count_none() -> None:
    """Five GPUs are not those of tasks with two each."""
    totals = request_in(script("--gpus=5", "--gpus-per-task=2")).totals
    assert totals.tasks is None
    assert [(str(total.value), total.known) for total in totals.amounts.values()] == [("5", True)]


@pytest.mark.parametrize(("target", "memory"), [("sge", "h_vmem=5G"), ("lsf", "rusage[mem=40GB/job]"),
                                                ("pbspro", "mem=40gb"), ("htcondor", "request_memory = 40GB")])
def test_one_task_is_on_one_node(target: str, memory: str) -> None:
    """The GPU of its node is the one GPU that its memory is said of; Grid Engine was asked for 40 GB for each slot."""
    output, findings = written(target, script("-n 1", "-c 8", "--gres=gpu:1", "--mem-per-gpu=40G"))
    assert memory in output
    assert not any("does not say how" in f.message for f in findings)
