"""Chunks of PBS Pro: ncpus are the processors that are asked for, mpiprocs how many processes are placed on them."""

from __future__ import annotations

import pytest

from sssjob.conversion.intake import gate
from sssjob.document.element import new_property
from sssjob.document.model import Document
from sssjob.findings import Policy
from sssjob.request import Offer, match, request_of
from sssjob.translators import ReadContext, get
from tests.laws.documents import job_of
from tests.laws.readers import READERS
from tests.laws.test_amounts import subject_words, written


def script(select: str, command: str = "mpirun -n 8 ./a") -> Document:
    """The document of a script that asks for these chunks."""
    return get("pbspro").read(f"#!/bin/sh\n#PBS -l select={select}\n{command}\n".encode(),
                              ReadContext(policy=Policy.WARN))


#: chunks -> processors and tasks of all of them.
CHUNKS = {"1:ncpus=4:mpiprocs=8": (4, 8), "2:ncpus=4:mpiprocs=8": (8, 16), "1:ncpus=8:mpiprocs=2": (8, 2),
          "1:ncpus=4:mpiprocs=6:mem=2gb": (4, 6), "1:ncpus=2:mpiprocs=4+1:ncpus=2:mpiprocs=4": (4, 8),
          "1:ncpus=4:mpiprocs=4:ompthreads=2": (4, 4)}


@pytest.mark.parametrize("select", CHUNKS)
def test_processes_that_share_processors_do_not_multiply_them(select: str) -> None:
    processors, tasks = CHUNKS[select]
    document = script(select)
    totals = request_of(job_of(document), bare=True).totals
    assert totals.processors is not None
    assert (int(totals.processors.value), totals.tasks) == (processors, tasks)
    beside = new_property("Memory", 2, {"units": "GB"})
    assert match(job_of(document), Offer.of([beside, new_property("Processors", processors)])).met
    assert not match(job_of(document), Offer.of([beside, new_property("Processors", processors - 1)])).met
    assert not gate(document)
    back = written("pbspro", document)[0]
    assert f"#PBS -l select={select}\n" in back


@pytest.mark.parametrize("name", READERS)
def test_other_managers_are_asked_for_no_more_processors(name: str) -> None:
    output, findings = written(name, script("1:ncpus=4:mpiprocs=8"))
    native = READERS[name](output)
    about = {word for f in findings for word in subject_words(f) if f.severity != "info"}
    if name == "cobalt":            # which is asked for nodes, and the chunk says none
        return
    if name == "jsdl":              # which holds both numbers
        assert "<Exact>4</Exact>" in output and native.copies == 8
        return
    assert native.processors == 4, output
    assert native.copies == 8 or about & {"TaskCount", "-l"}, findings


def test_a_launcher_of_slurm_may_start_more_copies_than_there_are_processors() -> None:
    assert written("slurm", script("1:ncpus=4:mpiprocs=8"))[0] == (
        "#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=4\nsrun --overcommit -n 8 ./a\n")


@pytest.mark.parametrize("select", ["1:ncpus=0", "1:ncpus=4+1:ncpus=0", "1:ncpus=0:ngpus=1"])
def test_a_chunk_may_have_no_processor(select: str) -> None:
    """The manual of PBS gives such chunks a default of their own (mpiprocs 0), so that they are no mistake."""
    document = script(select, "./a")
    assert not [f for f in gate(document) if f.rejects]
    directive = written("pbspro", document)[0].splitlines()[1]
    assert sorted(directive.partition("=")[2].replace("+", ":").split(":")) == sorted(
        select.replace("+", ":").split(":"))
    _, findings = written("slurm", document)
    assert any("ncpus=0" in f.message for f in findings)
