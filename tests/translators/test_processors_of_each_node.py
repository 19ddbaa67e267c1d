"""Processors of each node (``metric="PerNode"``, IndividualCPUCount of JSDL) are those of all nodes, spread evenly:
they were written as if the job had asked for so many in all."""

from __future__ import annotations

import json

import pytest

from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get

THREE_NODES = '<NodeCount>3</NodeCount><Processors metric="PerNode">2</Processors>'
NOTHING_MORE = ""
SIX_TASKS = "<TaskGroup><TaskCount>6</TaskCount></TaskGroup>"
THREE_TASKS = "<TaskGroup><TaskCount>3</TaskCount></TaskGroup>"


def written(target: str, tasks: str, requested: str = THREE_NODES) -> tuple[str, list[str]]:
    """The text, and what the findings about nodes and processors are about."""
    document = get("sss").read(
        f"<Job><Id>a</Id><Executable>/bin/true</Executable><Requested>{requested}</Requested>{tasks}</Job>".encode(),
        ReadContext("a.xml", Findings("a.xml")))
    findings = Findings("a.xml")
    text = get(target).write(document, WriteContext(findings, policy=Policy.WARN))
    assert isinstance(text, str)
    return text, [f.subject for f in findings if f.subject.startswith(("Processors", "NodeCount"))
                  and f.severity != "info"]


@pytest.mark.parametrize(("target", "tasks", "lines"), [
    ("slurm", NOTHING_MORE, ["#SBATCH --nodes=3", "#SBATCH --ntasks-per-node=2"]),
    ("slurm", THREE_TASKS, ["#SBATCH --nodes=3", "#SBATCH --ntasks=3", "#SBATCH --ntasks-per-node=1",
                            "#SBATCH --cpus-per-task=2"]),
    ("pbspro", SIX_TASKS, ["#PBS -l select=3:ncpus=2:mpiprocs=2"]),
    ("torque", NOTHING_MORE, ["#PBS -l nodes=3:ppn=2"]),
    ("lsf", NOTHING_MORE, ["#BSUB -n 6", '#BSUB -R "span[ptile=2]"']),
    ("lsf", THREE_TASKS, ["#BSUB -n 3", '#BSUB -R "span[ptile=1]"', '#BSUB -R "affinity[core(2)*1]"']),
    ("flux", THREE_TASKS, ["#FLUX: --nodes=3", "#FLUX: --nslots=3", "#FLUX: --cores-per-slot=2"]),
    ("cobalt", NOTHING_MORE, ["#COBALT -n 3", "#COBALT --proccount 6", "#COBALT --mode c2"]),
])
def test_scripts(target: str, tasks: str, lines: list[str]) -> None:
    text, findings = written(target, tasks)
    assert not set(lines) - set(text.splitlines())
    assert findings == []


def test_psij() -> None:
    text, findings = written("psij", THREE_TASKS)
    assert json.loads(text)["resources"] == {
        "node_count": 3, "process_count": 3, "processes_per_node": 1, "cpu_cores_per_process": 2, "__version": 1}
    assert findings == []


@pytest.mark.parametrize("target", ["slurm", "pbspro", "lsf", "psij"])
def test_nodes_that_nobody_counts_are_told(target: str) -> None:
    _, findings = written(target, NOTHING_MORE, '<Processors metric="PerNode">2</Processors>')
    assert findings == ["Processors/@metric"]


def test_conditions_are_multiplied_too() -> None:
    """Both ends of a range are those of a node, and what they say of it is carried."""
    text, findings = written("slurm", NOTHING_MORE, '<NodeCount>2</NodeCount><Processors op="GE" metric="PerNode">2'
                             '</Processors><Processors op="LT" metric="PerNode">5</Processors>')
    assert "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n" in text
    assert findings == ["Processors"]           # the least of the range is asked for
