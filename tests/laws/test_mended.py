"""Documents that broke a law once: what is written for each is fixed, and all laws hold for it in every format."""

from __future__ import annotations

import pytest

from sssjob.conversion.intake import gate
from sssjob.translators import ReadContext, get
from tests.cases import Cases
from tests.laws.documents import read, request_in
from tests.laws.readers import READERS
from tests.laws.test_amounts import problems, written
from tests.laws.test_meaning import FORMATS, copies_lost, offers_answered_otherwise

TASKS = "<TaskCount>{}</TaskCount>"
PER_NODE = '<TaskDistribution type="TasksPerNode">{}</TaskDistribution>'
CHUNKS = '<Extension name="ChunkCount" type="Scheduler">{}</Extension>'


def document(*lines: str) -> str:
    """A job with these lines."""
    return "\n".join(("<Job>", "<Executable>/bin/step</Executable>", *lines, "</Job>"))


def in_requested(*lines: str) -> str:
    """Properties that are asked for."""
    return "\n".join(("<Requested>", *lines, "</Requested>"))


def each(*lines: str) -> str:
    """What each task is to have."""
    return f"<TaskDefaults>\n{in_requested(*lines)}\n</TaskDefaults>"


def task(*lines: str) -> str:
    """A task of a list."""
    return f"<Task>\n{in_requested(*lines)}\n</Task>"


def defaults(*lines: str) -> str:
    """What each task group is to have."""
    return "\n".join(("<TaskGroupDefaults>", *lines, "</TaskGroupDefaults>"))


def group(*lines: str) -> str:
    """A task group."""
    return "\n".join(("<TaskGroup>", *lines, "</TaskGroup>"))


GE_LE = '<Processors op="GE">{}</Processors>\n<Processors op="LE">{}</Processors>'
FOUR_OF_NODE = group(PER_NODE.format(4), each("<Processors>3</Processors>"))
NODES = '<NodeCount op="GE">{}</NodeCount>\n<NodeCount op="LE">{}</NodeCount>'
CASES = {
    "GPUs of the job, and those of each task, which count the tasks": document(
        in_requested("<Resource name='GPU'>3</Resource>"), group(each("<Resource name='GPU'>1</Resource>"))),
    "GPUs of the job that are fewer than those of its group": document(
        in_requested("<Resource name='GPU'>1</Resource>"),
        defaults(in_requested("<Resource name='GPU'>2</Resource>"), each("<Resource name='GPU'>1</Resource>"))),
    "a group of nodes alone beside one of tasks": document(
        group(TASKS.format(3)), group(in_requested("<NodeCount>2</NodeCount>"))),
    "equal groups that are started once on the tasks of a node": document(
        *[group(PER_NODE.format(4), CHUNKS.format(1), in_requested("<Duration>657</Duration>"))] * 2),
    "equal groups of GPUs, which say no processors": document(
        *[group(in_requested("<Resource name='GPU'>6</Resource>"))] * 2),
    "a group of nodes started once beside tasks in two chunks": document(
        group(PER_NODE.format(3), in_requested("<NodeCount>1</NodeCount>")),
        group(TASKS.format(7), PER_NODE.format(4), in_requested("<NodeCount>2</NodeCount>"))),
    "a group that asks for nothing beside one of tasks": document(
        group(TASKS.format(3), each("<Processors>2</Processors>")), group(in_requested("<Feature>fast</Feature>"))),
    "the least of a range of nodes, on which so many tasks have no room": document(
        in_requested(NODES.format(2, 6)),
        group(TASKS.format(9), PER_NODE.format(3), each("<Processors>2</Processors>"))),
    "licences and other resources of each task": document(group(TASKS.format(9), each(
        "<Resource name='License' type='lic'>2</Resource>", "<Resource name='fpga'>3</Resource>"))),
    "other resources of each of three nodes": document(in_requested(
        "<NodeCount>3</NodeCount>", "<Processors>12</Processors>",
        "<Resource name='fpga' metric='PerNode'>2</Resource>")),
    "other resources of each processor": document(in_requested(
        "<Processors>12</Processors>", "<Resource name='fpga' metric='PerProcessor'>2</Resource>")),
    "other resources of a job on three nodes": document(in_requested(
        "<NodeCount>3</NodeCount>", "<Processors>12</Processors>", "<Resource name='fpga'>6</Resource>")),
    "the most of a range of nodes, on which tasks have just room": document(
        group(TASKS.format(8), PER_NODE.format(2), in_requested(NODES.format(1, 4)))),
    "memory of each GPU, of which each task has two": document(
        in_requested("<Memory units='GB' metric='PerGPU'>3</Memory>"),
        group(TASKS.format(3), each("<Resource name='GPU'>2</Resource>"))),
    "disk of each task and memory of each processor": document(
        in_requested("<Memory units='GB' metric='PerProcessor'>2</Memory>", "<Processors>6</Processors>"),
        group(TASKS.format(3), each("<Disk units='GB'>7</Disk>"))),
    "a group that asks for nothing beside one that does": document(
        group(TASKS.format(1)), group(TASKS.format(2), in_requested("<Memory units='KB'>2180</Memory>"))),
    "more nodes than the least of processors": document(in_requested(
        "<NodeCount>2</NodeCount>", '<Processors op="GE">1</Processors>', "<Disk units='GB'>9</Disk>")),
    "more nodes than processors, for one task": document(
        in_requested("<NodeCount>2</NodeCount>", '<Processors op="GE">1</Processors>'),
        group(TASKS.format(1), PER_NODE.format(1))),
    "nodes of one group alone": document(
        group(TASKS.format(4), in_requested("<NodeCount>2</NodeCount>")), group(TASKS.format(1))),
    "equal groups with counts and amounts of their own": document(*[group(TASKS.format(2), in_requested(
        "<NodeCount>2</NodeCount>", "<Processors>4</Processors>", "<Memory units='GB'>3</Memory>"))] * 2),
    "equal groups with a geometry": document(*[group(
        '<TaskDistribution type="Geometry">{1,2}{3,4}</TaskDistribution>',
        in_requested("<Resource name='GPU'>4</Resource>"))] * 2),
    "processors that the tasks do not divide": document("<Processors>3</Processors>", group(TASKS.format(2))),
    "fewer GPUs than the tasks of a node": document(
        "<NodeCount>2</NodeCount>", "<Resource name='GPU' metric='PerNode'>2</Resource>", group(PER_NODE.format(4))),
    "tasks of a node, and not how many nodes": document(group(PER_NODE.format(2))),
    "processors of the tasks of a node": document(FOUR_OF_NODE),
    "memory and GPUs of the tasks of a node": document(group(PER_NODE.format(2), each(
        "<Memory units='GB'>2</Memory>", "<Resource name='GPU'>5</Resource>"))),
    "GPUs of the job, for the tasks of a node": document("<Resource name='GPU'>6</Resource>", group(
        PER_NODE.format(3), each("<Memory units='MB'>201</Memory>"))),
    "bytes of scratch space": document("<NodeCount>1</NodeCount>", "<Disk units='B' metric='PerNode'>2</Disk>"),
    "bytes of each GPU": document("<Memory units='B' metric='PerGPU'>3</Memory>", "<Resource name='GPU'>2</Resource>"),
    "memory of each GPU, GPUs of each node, one group without nodes": document(in_requested(
        "<Memory units='GB' metric='PerGPU'>3</Memory>", "<Resource name='GPU' metric='PerNode'>3</Resource>",
        "<Resource name='License' type='lic'>8</Resource>"), group(TASKS.format(6), PER_NODE.format(1)),
        group(TASKS.format(2), in_requested("<Processors>2</Processors>"))),
    "memory of each GPU, GPUs of the job and of each task": document(
        in_requested("<Processors>4</Processors>", "<Memory units='GB' metric='PerGPU'>9</Memory>",
                     "<Resource name='GPU'>1</Resource>"),
        group(TASKS.format(4), each("<Resource name='GPU'>3</Resource>"))),
    "memory of each GPU beside that of each task": document(
        in_requested("<NodeCount>2</NodeCount>", "<Memory units='B' metric='PerGPU'>1862</Memory>",
                     "<Resource name='GPU' metric='PerNode'>3</Resource>"),
        group(TASKS.format(3), PER_NODE.format(1)), group(TASKS.format(6), in_requested("<NodeCount>2</NodeCount>"),
                                                          each("<Memory units='GB'>3</Memory>"))),
    "memory of each processor beside that of each task": document(
        "<Memory units='GB' metric='PerProcessor'>1</Memory>", group(TASKS.format(5)),
        group(TASKS.format(2), PER_NODE.format(1), each("<Memory units='GB'>8</Memory>"))),
    "a range that ends below its tasks": document(in_requested(GE_LE.format(3, 3)), group(TASKS.format(7))),
    "a range of processors for several tasks": document(
        in_requested(GE_LE.format(10, 18)), group(TASKS.format(2), PER_NODE.format(2), each(
            "<Memory units='MB'>2999</Memory>"))),
    "a range of processors beside GPUs of the job": document(in_requested(
        GE_LE.format(1, 4), "<Resource name='GPU' type='a100'>6</Resource>", "<Disk units='KB'>222</Disk>")),
    "a range of processors on two nodes": document(in_requested("<NodeCount>2</NodeCount>", GE_LE.format(4, 8))),
    "processors of each node": document(in_requested(
        "<NodeCount>3</NodeCount>", '<Processors metric="PerNode">2</Processors>')),
    "processors of each node, and tasks that share them unevenly": document(in_requested(
        "<NodeCount>3</NodeCount>", '<Processors metric="PerNode">2</Processors>'), group(TASKS.format(4))),
    "a range of processors of each node": document(in_requested(
        "<NodeCount>2</NodeCount>", '<Processors op="GE" metric="PerNode">3</Processors>',
        '<Processors op="LE" metric="PerNode">4</Processors>')),
    "amounts of one processor": document("<Processors>1</Processors>", "<Disk units='GB'>8</Disk>",
                                         "<Resource name='GPU'>1</Resource>"),
    "a range without a least": document(in_requested('<Processors op="LE">15</Processors>')),
    "a resource counted by the site": document("<Resource name='fpga'>1</Resource>"),
    "an upper bound of the job's memory beside the memory of a group": document(
        in_requested("<Memory units='MB' op='LE'>2</Memory>"), group(in_requested("<Memory units='B'>1</Memory>"))),
    "an upper bound of the job's memory beside the memory of two groups": document(
        in_requested("<Memory units='MB' op='LE'>2</Memory>"),
        *[group(TASKS.format(2), in_requested("<NodeCount>1</NodeCount>", f"<Memory units='KB'>{size}</Memory>"))
          for size in (700, 900)]),
    "an upper bound of the job's memory beside the memory of each GPU": document(
        in_requested("<Memory units='KB' op='LE'>1</Memory>"), group(
            in_requested("<Memory units='B' metric='PerGPU'>1</Memory>"), each("<Resource name='GPU'>1</Resource>"))),
    "one start on several nodes": document("<Processors>3</Processors>", group(
        in_requested("<NodeCount>4</NodeCount>", "<Processors>12</Processors>"), each("<Processors>3</Processors>"))),
    "names at every level": document(
        in_requested("<Feature>fast</Feature>", "<Node>n1</Node>"),
        group(TASKS.format(2), in_requested("<Feature>big</Feature>", "<Node op='NE'>n9</Node>"),
              each("<Feature>ib</Feature>", "<Memory units='GB'>2</Memory>"))),
    "the same feature at every level": document(
        in_requested("<Feature>ib</Feature>"),
        group(TASKS.format(2), in_requested("<Feature>ib</Feature>"), each("<Feature>ib</Feature>"))),
    "a host and one that is excluded, at two levels": document(
        in_requested("<Node>n1</Node>"), group(in_requested("<Node op='NE'>n9</Node>"))),
    "an uneven geometry with more processors than tasks": document(
        "<Processors>12</Processors>",
        group('<TaskDistribution type="Geometry">{1,2}{3,4,5,6}{7}{8,9,10}</TaskDistribution>')),
    "fewer processors than nodes, and a GPU of each task": document(
        in_requested("<NodeCount>2</NodeCount>", '<Processors op="GE">1</Processors>', "<Node>n1</Node>"),
        group(each("<Resource name='GPU'>1</Resource>"))),
    "fewer processors than nodes, and memory of each task": document(
        "<NodeCount>2</NodeCount>", group(in_requested("<Processors>1</Processors>"), each("<Memory>1</Memory>"))),
    "nodes, and a GPU of each task, of which nobody says how many there are": document(
        "<NodeCount>2</NodeCount>", group(each("<Resource name='GPU'>1</Resource>"))),
    "GPUs of a node of one of two groups, and the nodes of all": document(
        "<NodeCount>1</NodeCount>", group(TASKS.format(1)),
        group(TASKS.format(2), in_requested("<Resource name='GPU' metric='PerNode'>1</Resource>"))),
    "memory and a GPU of a node, two groups, and the nodes of all": document(
        "<NodeCount>1</NodeCount>", "<Memory units='GB' metric='PerNode'>1</Memory>",
        "<Resource name='GPU' metric='PerNode'>1</Resource>",
        group(TASKS.format(1), each("<Processors>2</Processors>")), group(TASKS.format(2))),
    "a GPU of a node of a group beside one with a node": document(
        group(TASKS.format(1), in_requested("<NodeCount>1</NodeCount>")),
        group(TASKS.format(2), in_requested("<Resource name='GPU' metric='PerNode'>1</Resource>"))),
    "a resource of the site for the job, beside a GPU of one of two groups": document(
        "<Resource name='fpga' metric='PerNode'>1</Resource>",
        group(TASKS.format(1), PER_NODE.format(1), in_requested("<Resource name='GPU'>1</Resource>")),
        group(TASKS.format(1), PER_NODE.format(1))),
    "memory of each processor of equal groups, and more processors of the job": document(
        in_requested('<Processors op="GE">4</Processors>'), *[group(
            TASKS.format(1), '<TaskDistribution type="ProcessorsPerTask">1</TaskDistribution>',
            in_requested("<Memory units='GB' metric='PerProcessor'>1</Memory>"))] * 2),
    "memory of one of two listed tasks, and a GPU of the other": document(group(
        TASKS.format(4), task("<Memory units='GB'>6</Memory>"), task("<Resource name='GPU'>2</Resource>"))),
    "memory of both listed tasks, and a GPU of one": document(group(
        TASKS.format(2), task("<Memory units='GB'>6</Memory>"),
        task("<Memory units='GB'>6</Memory>", "<Resource name='GPU'>2</Resource>"))),
    "defaults of each task, of two groups of which one lists a task": document(
        defaults(each("<Resource name='GPU'>1</Resource>")), group(TASKS.format(2)),
        group(TASKS.format(2), task("<Memory units='GB'>1</Memory>"))),
    "defaults of the group of jobs": "\n".join((
        "<JobGroup>", "<Id>g</Id>", "<JobDefaults>", in_requested("<Feature>fast</Feature>"),
        defaults(each("<Processors>2</Processors>")), "</JobDefaults>", "<Job>", "<Id>a</Id>",
        "<Executable>/bin/step</Executable>", group(TASKS.format(3)), "</Job>", "</JobGroup>")),
    "a listed task in each of two groups, and a name that job, group and task say alike": "\n".join((
        "<JobGroup>", "<Id>g</Id>", "<JobDefaults>", in_requested("<Feature>fast</Feature>"), "</JobDefaults>", "<Job>",
        "<Id>a</Id>", "<Executable>/bin/step</Executable>",
        in_requested("<Duration op='LE'>60</Duration>", "<Feature>fast</Feature>", "<Feature>ib</Feature>"),
        *(group(TASKS.format(1), in_requested("<Feature>ib</Feature>"), each("<Feature>ib</Feature>"),
                task("<Memory units='B'>1</Memory>")) for _ in range(2)), "</Job>", "</JobGroup>")),
    "a GPU of the tasks of one group, and memory of the same number in the other": document(
        group(TASKS.format(1), each("<Resource name='GPU'>1</Resource>")),
        group(TASKS.format(1), task("<Memory units='B'>1</Memory>"))),
    "GPUs of two types, one of them in defaults": "\n".join((
        "<JobGroup>", "<Id>g</Id>", "<JobDefaults>", in_requested("<Resource name='GPU'>1</Resource>"),
        "</JobDefaults>", "<Job>", "<Id>a</Id>", "<Executable>/bin/step</Executable>",
        "<Resource name='GPU' type='a100'>1</Resource>", "</Job>", "</JobGroup>")),
    "GPUs of two types in one request": document(in_requested(
        "<Resource name='GPU' type='a100'>5</Resource>", "<Resource name='GPU'>1</Resource>")),
    "GPUs of two types, one of them requested in defaults": "\n".join((
        "<JobGroup>", "<Id>g</Id>", "<JobDefaults>", in_requested("<Resource name='GPU'>1</Resource>"),
        "</JobDefaults>", "<Job>", "<Id>a</Id>", "<Executable>/bin/step</Executable>", in_requested(
            "<Processors>9</Processors>", "<Resource name='GPU' type='a100'>5</Resource>"), "</Job>", "</JobGroup>")),
    "memory of each node, and a processor of each task": document(defaults(in_requested(
        "<Memory units='KB' metric='PerNode'>3</Memory>"), each("<Processors>1</Processors>"))),
    "a node of each of two groups, beside one that says nothing of nodes": document(
        group(TASKS.format(7)), *(group(TASKS.format(n), PER_NODE.format(n)) for n in (3, 2))),
    "two groups that say the same memory": document(
        "<Feature>ib</Feature>",
        *(group(TASKS.format(1), PER_NODE.format(1), in_requested("<Memory units='KB'>1</Memory>"),
                each("<Feature>ib</Feature>")) for _ in range(2))),
    "a group with less than the tasks of a node beside another one": document(
        "<Node>n1</Node>", group(TASKS.format(1), PER_NODE.format(2)), group(TASKS.format(2), PER_NODE.format(1))),
    "one of two features, and hosts that are excluded": document(in_requested(
        "<Node op='NE'>n9</Node>", "<Feature group='1'>fast</Feature>",
        "<Feature conj='Or' group='-1'>big</Feature>")),
    "a host by name, and another one that is excluded": document(in_requested(
        "<NodeCount>2</NodeCount>", "<Node>n2</Node>", "<Node op='NE'>n9</Node>")),
    "fewer chunks than nodes": document(
        "<NodeCount>2</NodeCount>", "<Memory units='GB' metric='PerProcessor'>9</Memory>", CHUNKS.format(1)),
    "more chunks than nodes, with memory of a node and a GPU of a node": document(
        in_requested("<NodeCount>2</NodeCount>", "<Memory units='GB' metric='PerNode'>3</Memory>",
                     "<Resource name='GPU' metric='PerNode'>1</Resource>"), CHUNKS.format(3)),
    "chunks on one node, of which nobody says the processors": document("<NodeCount>1</NodeCount>", CHUNKS.format(2)),
    "more chunks than tasks": document(group(TASKS.format(2), PER_NODE.format(3), CHUNKS.format(4))),
    "tasks in chunks, each of which wants processors": document(
        "<Processors>5</Processors>", CHUNKS.format(1), group(TASKS.format(6), each("<Processors>3</Processors>"))),
    "tasks in chunks, and memory of each processor": document(
        "<Memory units='GB' metric='PerProcessor'>3</Memory>", group(TASKS.format(6), CHUNKS.format(2))),
    "tasks of a node on the node of a single chunk": document(
        CHUNKS.format(1), group(PER_NODE.format(2), each("<Memory units='GB'>3</Memory>"))),
    "tasks of a node in several chunks": document(
        "<Resource name='GPU'>6</Resource>", group(PER_NODE.format(1), CHUNKS.format(2))),
    "tasks that share the processors of a chunk, and how many are on a node": document(
        "<Processors>2</Processors>", group(TASKS.format(3), PER_NODE.format(4), CHUNKS.format(1))),
    "more nodes for the tasks than chunks": document(
        CHUNKS.format(3), group(TASKS.format(5), PER_NODE.format(1), each("<Processors>2</Processors>"))),
    "a geometry of more nodes than chunks": document(
        CHUNKS.format(1), group('<TaskDistribution type="Geometry">{1,2}{3}</TaskDistribution>')),
    "a GPU of a node, and tasks of which nobody says how many chunks are on one": document(
        CHUNKS.format(4), group(in_requested("<Resource name='GPU' metric='PerNode'>1</Resource>"),
                                each("<Processors>4</Processors>"))),
    "groups of chunks on one node": document(
        "<NodeCount>1</NodeCount>", CHUNKS.format(3),
        *[group(TASKS.format(4), '<TaskDistribution type="Geometry">{1,2,3,4}</TaskDistribution>')] * 2),
    "a chunk that may be on a node of another group": document(
        group(TASKS.format(1), CHUNKS.format(1)), group(TASKS.format(8), PER_NODE.format(1))),
    "memory of each task of one of two groups of chunks": document(
        CHUNKS.format(2), group(TASKS.format(1)), group(TASKS.format(8), each("<Memory units='GB'>9</Memory>"))),
    "GPUs of each task, one in each chunk, and more processors than chunks": document(
        "<Processors>4</Processors>", group(CHUNKS.format(3), each("<Resource name='GPU'>5</Resource>"))),
    "GPUs and memory of each of two chunks": document(in_requested(
        "<Resource name='GPU' metric='PerChunk'>2</Resource>", "<Memory units='GB' metric='PerChunk'>4</Memory>",
        "<Processors>8</Processors>"), CHUNKS.format(2)),
    "as many nodes of the job as its groups have chunks": document(
        "<NodeCount>2</NodeCount>", CHUNKS.format(1), *[group(TASKS.format(1))] * 2),
    "nodes of the job, and a group of several chunks beside others with nodes": document(
        in_requested("<NodeCount>4</NodeCount>"), CHUNKS.format(4), group(TASKS.format(8)),
        *[group(TASKS.format(6), in_requested("<NodeCount>2</NodeCount>"))] * 2),
    "fewer tasks than chunks, and fewer processors": document(
        "<Processors>1</Processors>", group(TASKS.format(3), CHUNKS.format(4), each("<Memory units='GB'>4</Memory>"))),
    "features of the defaults of groups, of which one says its own": document(
        defaults(in_requested("<Feature op='NE'>slow</Feature>")), group(TASKS.format(4)),
        group(TASKS.format(3), in_requested("<Feature>fast</Feature>"))),
    "a limit of one of two groups, and that of the defaults of the group of jobs": "\n".join((
        "<JobGroup>", "<Id>g</Id>", "<JobDefaults>", defaults(in_requested("<Duration>65535</Duration>")),
        "</JobDefaults>", "<Job>", "<Id>a</Id>", "<Executable>/bin/step</Executable>",
        group(in_requested("<Duration>30300</Duration>", "<Node>n1</Node>")), group(in_requested("<Node>n1</Node>")),
        "</Job>", "</JobGroup>")),
    "a launcher named first, and a group that does not count its tasks": document(
        '<Extension name="Launcher" type="Scheduler">mpirun</Extension>', group(TASKS.format(3)),
        group('<TaskDistribution type="ProcessorsPerTask">3</TaskDistribution>', each("<Processors>3</Processors>"))),
    "several conditions on hosts, of which some name the same": document(
        in_requested("<Node aggregation='Range'>n[1-3]</Node>"), group(in_requested("<Node>n1</Node>"))),
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_the_laws_hold(text: str) -> None:
    with Cases() as case:
        for name in FORMATS:
            with case(name):
                broken = [about for _, about in problems(name, text)] if name in READERS else []
                broken += [copies_lost(name, text), offers_answered_otherwise(name, text)]
                assert not any(broken), "\n".join(broken)


@pytest.mark.parametrize(("case", "name", "line"), [
    ("a group that asks for nothing beside one that does", "lsf", '#BSUB -R "1*{}+2*{rusage[mem=2180KB/job]}"'),
    ("more nodes than the least of processors", "torque", "#PBS -l nodes=2:ppn=1"),
    ("equal groups with counts and amounts of their own", "psij",
     '"resources": {"node_count": 4, "process_count": 4, "cpu_cores_per_process": 2, "memory": 6442450944,'),
    ("equal groups with a geometry", "psij",
     '"node_count": 4, "process_count": 8, "processes_per_node": 2, "gpu_cores_per_process": 1,'),
    ("processors that the tasks do not divide", "pbspro",
     "#PBS -l select=1:ncpus=2:mpiprocs=1+1:ncpus=1:mpiprocs=1"),
    ("fewer GPUs than the tasks of a node", "psij", '"resources": {"node_count": 2, "processes_per_node": 4, "__v'),
    ("processors of the tasks of a node", "slurm", "#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=3"),
    ("processors of the tasks of a node", "lsf", "#BSUB -n 4"),
    ("processors of the tasks of a node", "htcondor", "request_cpus = 12"),
    ("processors of the tasks of a node", "jsdl", "<jsdl-spmd:NumberOfProcesses>4<"),
    ("a range that ends below its tasks", "lsf", "#BSUB -n 7\n"),
    ("a range of processors for several tasks", "lsf", "#BSUB -n 2,3\n"),
    ("a range of processors beside GPUs of the job", "lsf", "#BSUB -n 1\n"),
    ("a range of processors on two nodes", "lsf", "#BSUB -n 4\n"),
    ("fewer processors than nodes, and a GPU of each task", "pbspro",
     "#PBS -l select=2:ncpus=1:ngpus=1:host=n1"),
    ("memory of each processor of equal groups, and more processors of the job", "sge", "#$ -l h_vmem=512M\n"),
    ("memory of each processor of equal groups, and more processors of the job", "htcondor", "request_memory = 2GB\n"),
    ("memory of one of two listed tasks, and a GPU of the other", "slurm", "#SBATCH --ntasks=4\nsrun -n 4 "),
    ("memory of both listed tasks, and a GPU of one", "pbspro", "#PBS -l select=2:ncpus=1:mpiprocs=1:mem=6gb\n"),
    ("defaults of each task, of two groups of which one lists a task", "pbspro",
     "#PBS -l select=2:ncpus=1:mpiprocs=1:ngpus=1+2:ncpus=1:mpiprocs=1:mem=1gb:ngpus=1\n"),
    ("defaults of the group of jobs", "slurm",
     "#SBATCH --ntasks=3\n#SBATCH --cpus-per-task=2\n#SBATCH --constraint=fast\n"),
    ("a group with less than the tasks of a node beside another one", "lsf",
     '#BSUB -R "1*{span[hosts=1]}+2*{span[ptile=1]}"'),
    ("memory of each node, and a processor of each task", "lsf", '#BSUB -n 1\n#BSUB -R "rusage[mem=3KB]"\n'),
    ("names at every level", "slurm", '#SBATCH --constraint="fast&big&ib"'),
    ("names at every level", "pbspro", ":fast=true:big=true:ib=true"),
    ("names at every level", "lsf", "select[fast && big && ib"),
    ("names at every level", "sge", "#$ -l h=n1\n"),
    ("one of two features, and hosts that are excluded", "lsf",
     '#BSUB -R "select[(fast || big) && hname!=n9]"\n'),
    ("names at every level", "htcondor",
     'requirements = fast == True && Machine == "n1" && big == True && Machine != "n9" && ib == True\n'),
    ("the same feature at every level", "slurm", "#SBATCH --constraint=ib\n"),
    ("the same feature at every level", "flux", "#FLUX: --requires=ib\n"),
    ("an uneven geometry with more processors than tasks", "pbspro",
     "#PBS -l select=1:ncpus=3:mpiprocs=2+1:ncpus=5:mpiprocs=4+1:ncpus=1:mpiprocs=1+1:ncpus=3:mpiprocs=3"),
    ("fewer chunks than nodes", "pbspro", "#PBS -l select=2:mem=9gb\n#PBS -l place=scatter\n"),
    ("more chunks than nodes, with memory of a node and a GPU of a node", "pbspro",
     "#PBS -l select=2:mem=2gb:ngpus=1+1:mem=2gb\n"),
    ("chunks on one node, of which nobody says the processors", "torque", "#PBS -l nodes=1:ppn=2\n"),
    ("chunks on one node, of which nobody says the processors", "pbspro", "#PBS -l select=2\n#PBS -l place=pack\n"),
    ("tasks in chunks, and memory of each processor", "pbspro", "#PBS -l select=2:ncpus=3:mpiprocs=3:mem=9gb\n"),
    ("tasks of a node on the node of a single chunk", "cobalt", "#COBALT -n 1\n#COBALT --mode c2\n"),
    ("tasks of a node in several chunks", "slurm", "#SBATCH --ntasks=2\n#SBATCH --ntasks-per-node=1\n"),
    ("tasks that share the processors of a chunk, and how many are on a node", "cobalt", "#COBALT --mode c2\n"),
    ("memory of each task of one of two groups of chunks", "pbspro", "+2:ncpus=4:mpiprocs=4:mem=36gb\n"),
    ("GPUs of each task, one in each chunk, and more processors than chunks", "pbspro",
     "#PBS -l select=1:ncpus=2:ngpus=5+2:ncpus=1:ngpus=5\n"),
    ("GPUs and memory of each of two chunks", "htcondor", "request_memory = 8GB\nrequest_gpus = 4\n"),
    ("as many nodes of the job as its groups have chunks", "pbspro", "#PBS -l place=scatter\n"),
    ("several conditions on hosts, of which some name the same", "htcondor",
     'requirements = Machine == "n1" || Machine == "n2" || Machine == "n3"\n'),
])
def test_what_is_written(case: str, name: str, line: str) -> None:
    assert line in written(name, read(CASES[case]))[0]


@pytest.mark.parametrize(("case", "totals"), [
    ("more nodes than the least of processors", {"NodeCount": 2, "Processors": 2, "Disk": 9 << 30}),
    ("tasks of a node, and not how many nodes", {"NodeCount": 1, "Processors": 2}),
    ("memory of each GPU, GPUs of the job and of each task", {"Processors": 4, "Memory": 108 << 30, "Resource": 12}),
    ("more chunks than tasks", {"NodeCount": 1, "Processors": 4}),
    ("tasks in chunks, each of which wants processors", {"NodeCount": 1, "Processors": 18}),
    ("tasks of a node on the node of a single chunk", {"NodeCount": 1, "Processors": 2, "Memory": 6 << 30}),
])
def test_what_is_asked_for(case: str, totals: dict[str, int]) -> None:
    every = request_in(read(CASES[case])).totals.all()
    assert {total.identity[0]: total.value for total in every} == totals


@pytest.mark.parametrize(("case", "expected"), [
    ("fewer chunks than nodes", "5 Extension: 1 chunk cannot be on 2 nodes, for each is on one"),
    ("more nodes for the tasks than chunks",
     "6 TaskDistribution: 5 tasks, 1 on a node, are on more nodes than there are chunks, 3"),
    ("a geometry of more nodes than chunks",
     "5 TaskDistribution: the geometry lists 2 nodes, more than there are chunks, 1"),
])
def test_chunks_that_cannot_be_are_told_alike_by_check_and_by_writers(case: str, expected: str) -> None:
    of_check = [f for f in gate(read(CASES[case])) if f.rule == "SSS414"]
    of_writers = [f for name in ("slurm", "psij") for f in written(name, read(CASES[case]))[1] if f.rule == "SSS414"]
    assert {f"{f.line} {f.message}" for f in (*of_check, *of_writers)} == {expected}
    assert len(of_check) == 1 and len(of_writers) == 2


def test_what_one_of_several_listed_tasks_asks_for_is_told_as_that() -> None:
    """The writer would ask for it in each of four tasks, twice what the document asks for."""
    findings = written("slurm", read(CASES["memory of one of two listed tasks, and a GPU of the other"]))[1]
    assert [f"{f.line} {f.rule} {f.message}" for f in findings if f.severity != "info"] == [
        "7 SSS501 Memory: not all of the listed tasks ask for the same",
        "12 SSS501 Resource GPU: not all of the listed tasks ask for the same"]


def test_what_each_part_carries_of_the_defaults_is_carried() -> None:
    """The GPU of the defaults stood in both chunks, and was told as lost."""
    findings = written("pbspro", read(CASES["defaults of each task, of two groups of which one lists a task"]))[1]
    assert [str(f) for f in findings if f.severity != "info"] == []


def test_a_host_that_is_excluded_by_the_name_of_another_is_told() -> None:
    """Grid Engine takes no other host then, but what is read again does not say so."""
    findings = written("sge", read(CASES["a host by name, and another one that is excluded"]))[1]
    assert [f"{f.line} {f.rule} {f.message}" for f in findings if f.severity == "info"] == [
        "6 SSS502 left out, for no host is taken but those that are asked for by name"]


def test_nodes_that_task_groups_may_share_are_told() -> None:
    """The place of chunks is one for the whole job, and the first group does not say how many nodes it takes."""
    findings = written("pbspro", read(CASES["a node of each of two groups, beside one that says nothing of nodes"]))[1]
    assert [f"{f.line} {f.rule} {f.message}" for f in findings if f.severity != "info"] == [
        f"{line} SSS502 NodeCount: its chunk may be on a node of another group: other groups do not say how many nodes"
        for line in (8, 12)]


@pytest.mark.parametrize(("parts", "copies"), [
    (("--ntasks=3", "--ntasks=2 --cpus-per-task=2"), 5), (("--nodes=2", "--ntasks=2"), 4),
    (("--nodes=1 --ntasks-per-node=2", "--nodes=1 --ntasks-per-node=2"), 4), (("--nodes=2-4", "--cpus-per-task=4"), 3)])
def test_one_command_starts_the_tasks_of_all_parts(parts: tuple[str, ...], copies: int) -> None:
    """Also of parts that say how many are on a node, or nothing; the executable was taken to start once in those, and
    PBS Pro was asked to start so many."""
    directives = "#SBATCH hetjob\n".join(f"#SBATCH {part}\n" for part in parts)
    text = f"#!/bin/sh\n{directives}srun --het-group=0,1 /bin/a\n"
    document = get("slurm").read(text.encode(), ReadContext())
    assert READERS["slurm"](text).copies == request_in(document).totals.copies == copies
    assert written("pbspro", document)[0].endswith(f"\nmpirun -n {copies} /bin/a\n")


@pytest.mark.parametrize("name", FORMATS)
def test_a_range_of_nodes_is_widened_to_the_tasks_of_a_node(name: str) -> None:
    """Nine tasks, three on a node, are on three of two to six nodes. Two were taken, so that the three of a node were
    said to contradict them and were lost in every format, also from Slurm to Slurm."""
    document = read(CASES["the least of a range of nodes, on which so many tasks have no room"])
    assert not gate(document)
    assert request_in(document).totals.nodes.value == 3         # type: ignore[union-attr]
    assert "SSS414" not in {f.rule for f in written(name, document)[1]}


def test_the_tasks_of_a_node_stay_beside_a_range_of_nodes() -> None:
    text = "#!/bin/sh\n#SBATCH --nodes=2-6\n#SBATCH --ntasks=9\n#SBATCH --ntasks-per-node=3\nhostname\n"
    output, findings = written("slurm", get("slurm").read(text.encode(), ReadContext()))
    assert output == text.replace("2-6", "3-6")
    assert [(f.severity, f.message) for f in findings] == [
        ("info", "--nodes 2-6: NodeCount: 9 tasks, 3 on a node, are on no fewer than 3 nodes")]


@pytest.mark.parametrize(("name", "case", "words"), [
    ("psij", "memory of each GPU, of which each task has two", f'"memory": {18 << 30}'),
    ("jsdl", "memory of each GPU, of which each task has two", f"<Exact>{18 << 30}</Exact>"),
    ("jsdl", "disk of each task and memory of each processor", f"<Exact>{12 << 30}</Exact>"),
    ("jsdl", "disk of each task and memory of each processor", f"<Exact>{21 << 30}</Exact>")])
def test_what_has_no_place_of_its_own_is_written_for_the_whole_job(name: str, case: str, words: str) -> None:
    """It was dropped, though there is a place for the amount of the whole job."""
    output, findings = written(name, read(CASES[case]))
    assert words in output
    assert not any(f.rule == "SSS501" and f.subject in ("Memory", "Disk") for f in findings)


@pytest.mark.parametrize(("name", "case", "line"), [
    ("slurm", "licences and other resources of each task", "#SBATCH --licenses=lic:18"),
    ("lsf", "licences and other resources of each task", '#BSUB -R "rusage[lic=18,fpga=27/job]"'),
    ("htcondor", "licences and other resources of each task", "concurrency_limits = lic:18"),
    ("htcondor", "licences and other resources of each task", "request_fpga = 27"),
    ("sge", "licences and other resources of each task", "#$ -l lic=2"),        # for each of nine slots
    ("lsf", "other resources of each of three nodes", '#BSUB -R "rusage[fpga=2/host]"'),
    ("sge", "other resources of each of three nodes", "#$ -l fpga=6"),
    ("lsf", "other resources of each processor", '#BSUB -R "rusage[fpga=24/job]"'),
    ("htcondor", "other resources of a job on three nodes", "request_fpga = 2")])
def test_what_is_counted_is_written_for_what_the_manager_counts_it(name: str, case: str, line: str) -> None:
    """The number stood there as the document says it, whatever it was per: two licences of each of nine tasks were two
    in all, and six of a job were six on each of three machines."""
    assert line in written(name, read(CASES[case]))[0].splitlines()


@pytest.mark.parametrize("name", [name for name in READERS if name != "psij"])
def test_the_launcher_that_starts_one_copy_is_carried_where_one_is_started(name: str) -> None:
    """It was told as lost, which refuses a translation by default, though every script starts its executable once."""
    launcher = "<Extension type='Scheduler' name='Launcher'>single</Extension>"
    document = read(f"<Job>\n<Executable>/bin/x</Executable>\n{launcher}\n<Processors>4</Processors>\n</Job>")
    output, findings = written(name, document)
    assert READERS[name](output).copies == 1
    assert not any("Launcher" in f.subject for f in findings), [str(f) for f in findings]


def test_what_is_taken_of_a_range_is_told_with_its_unit() -> None:
    """``1000000000 is taken of GE 1000000000, LE 3906250`` were bytes and KB."""
    findings = written("slurm", read("<Job><Requested><Memory units='B' op='GE'>1000000000</Memory>"
                                     "<Memory units='KB' op='LE'>3906250</Memory></Requested></Job>"))[1]
    assert "Memory: 1000000000 B is taken of GE 1000000000 B, LE 3906250 KB" in [f.message for f in findings]


def test_what_each_machine_has_of_another_resource_stays_that() -> None:
    """Read as that of the job, two of each of two machines came to one of each on the way back."""
    text = "executable = /bin/a\nuniverse = parallel\nmachine_count = 2\nrequest_fpga = 2\nqueue\n"
    document = get("htcondor").read(text.encode(), ReadContext())
    assert request_in(document).totals.amounts["Resource", "fpga", None].value == 4
    assert "request_fpga = 2\n" in written("htcondor", document)[0]


@pytest.mark.parametrize(("name", "last"), [
    ("slurm", "srun --het-group=0 /bin/step : --het-group=1 --ntasks=1 /bin/step"),
    ("pbspro", "mpirun -n 3 /bin/step : -n 1 /bin/step"), ("torque", "mpirun -n 3 /bin/step : -n 1 /bin/step"),
    ("lsf", "mpirun -n 3 /bin/step : -n 1 /bin/step")])
def test_a_group_without_tasks_starts_once_and_is_read_so_again(name: str, last: str) -> None:
    """Slurm started it for each of its sixteen processors, and what one command started was read as a script."""
    output, _ = written(name, read(document(
        group(TASKS.format(3)), group(in_requested("<NodeCount>2</NodeCount>", "<Processors>16</Processors>")))))
    assert output.splitlines()[-1] == last
    totals = request_in(get(name).read(output.encode(), ReadContext())).totals
    assert totals.copies == 4 and totals.processors is not None and totals.processors.value == 19


@pytest.mark.parametrize("line", [
    "mpirun -n 4 ./a : -n 4 ./a", "mpirun -n 3 ./a : -n 1 ./b", "mpirun -n 3 ./a : -n 1 ./a : -n 1 ./a",
    "mpirun -n 3 ./a -n 1 ./a :", "mpirun -n 3 ./a : --bind-to none -n 1 ./a"])
def test_another_command_stays_a_script(line: str) -> None:
    text = f"#!/bin/sh\n#PBS -l select=3:ncpus=1:mpiprocs=1+2:ncpus=8:mpiprocs=8\n{line}\n"
    job, _ = next(iter(get("pbspro").read(text.encode(), ReadContext()).jobs()))
    assert job.executable == "#Script"


@pytest.mark.parametrize(("resources", "copies"), [
    ('"node_count": 3, "processes_per_node": 2', 6), ('"node_count": 2', 2), ('"process_count": 5', 5),
    ('"node_count": 2, "process_count": 4', 4)])
def test_the_launcher_of_a_jobspec_starts_its_processes_everywhere(resources: str, copies: int) -> None:
    """Of a JobSpec that says nodes and processes of each the executable was written to start once, and PSI/J starts it
    for each process."""
    text = f'{{"executable": "/bin/a", "launcher": "mpirun", "resources": {{{resources}}}}}'
    jobspec = get("psij").read(text.encode(), ReadContext())
    assert request_in(jobspec).totals.copies == copies
    for name in ("slurm", "pbspro", "torque", "lsf", "sge", "flux"):
        output, findings = written(name, jobspec)
        assert output.splitlines()[-1] == f"mpirun -n {copies} /bin/a"
        assert request_in(get(name).read(output.encode(), ReadContext())).totals.copies == copies
        assert "Extension Launcher" not in {f.subject for f in findings}
    assert READERS["psij"](written("psij", jobspec)[0]).copies == copies


def test_a_launcher_that_is_named_starts_a_copy_on_each_processor_but_a_script_once() -> None:
    job = document("<Processors>8</Processors>", '<Extension name="Launcher" type="Scheduler">mpirun</Extension>')
    assert request_in(read(job)).totals.copies == 8
    assert written("slurm", read(job))[0].endswith("#SBATCH --ntasks=8\nmpirun -n 8 /bin/step\n")
    script = read(f'<Request>\n<File id="S">#!/bin/sh\n</File>\n{job.replace("/bin/step", "#S")}\n</Request>')
    assert request_in(script).totals.copies == 1
    output, findings = written("psij", script)
    assert '"launcher": "single"' in output
    assert "Launcher: a script is started once, and not by mpirun" in {f.message for f in findings}


def test_another_resource_of_all_task_groups_is_not_asked_for_in_each() -> None:
    """Slurm was asked for two of it in each part of the job."""
    job = document(in_requested("<Resource name='fpga'>2</Resource>"),
                   *[group(TASKS.format(2), PER_NODE.format(2))] * 2)
    output, findings = written("slurm", read(job))
    assert "fpga" not in output
    assert [f.message for f in findings if f.subject == "Resource"] == [
        "Resource: it is that of all task groups, each of which is asked for by itself"]


def test_gpus_of_any_kind_are_not_those_of_one_kind() -> None:
    """A job's GPU beside an a100 of its task was passed over in silence, as if it were the same one."""
    job = document(in_requested("<Resource name='GPU'>1</Resource>"),
                   group(each("<Resource name='GPU' type='a100'>1</Resource>")))
    for name in ("slurm", "pbspro"):
        assert "Resource GPU: another number of GPUs is written" in {
            f.message for f in written(name, read(job))[1]}


def test_an_amount_of_each_chunk_is_no_total_where_only_one_group_says_how_many() -> None:
    per_chunk = in_requested("<Resource name='GPU' metric='PerChunk'>2</Resource>")
    job = document(per_chunk, group(TASKS.format(3), CHUNKS.format(2)), group(TASKS.format(4)))
    assert not request_in(read(job)).totals.amounts["Resource", "GPU", None].known


def test_processors_of_each_node_of_a_job_are_told_where_its_groups_ask_for_fewer() -> None:
    """Six on each of four nodes were taken for six in all, which two groups of four tasks come to."""
    groups = [group('<TaskDistribution type="Geometry">{1,2}{3,4}</TaskDistribution>')] * 2
    job = document(in_requested('<Processors metric="PerNode">6</Processors>'), *groups)
    assert "Processors: 24 in all are not asked for, only those of each task group" in {
        f.message for f in written("slurm", read(job))[1]}


def test_tasks_of_a_geometry_that_share_processors_are_as_many_as_a_target_gives() -> None:
    """Slurm was asked for four tasks, and told to be asked for three."""
    job = document(in_requested("<Processors>1</Processors>"), CHUNKS.format(3),
                   group(TASKS.format(4), '<TaskDistribution type="Geometry">{1,2,3,4}</TaskDistribution>'))
    assert "#SBATCH --nodes=1\n#SBATCH --ntasks=3\n" in written("slurm", read(job))[0]


def test_processors_of_a_node_do_not_hide_those_of_the_job() -> None:
    job = document(in_requested('<Processors op="GE" metric="PerNode">1</Processors>', "<Processors>6</Processors>"))
    assert request_in(read(job)).totals.processors.value == 6       # type: ignore[union-attr]


def test_tasks_of_the_one_node_that_holds_several_chunks_are_not_one_in_each() -> None:
    """Two tasks of three processors had nine of them."""
    job = document("<NodeCount>1</NodeCount>", CHUNKS.format(3), group(PER_NODE.format(2), each(
        "<Processors>3</Processors>")))
    assert "select=2:ncpus=2:mpiprocs=1+1:ncpus=2:mpiprocs=0\n" in written("pbspro", read(job))[0]
    assert not problems("pbspro", job)


def test_nodes_of_a_geometry_that_have_all_one_name_stay_apart() -> None:
    """They were chunks that may all be on it, for hosts by name are apart anyway."""
    job = document("<Node>n1</Node>", group('<TaskDistribution type="Geometry">{1}{2,3}</TaskDistribution>'))
    assert "host=n1\n#PBS -l place=scatter\n" in written("pbspro", read(job))[0]
    assert not offers_answered_otherwise("pbspro", job)


def test_copies_on_fewer_tasks_than_slots_are_told_in_torque() -> None:
    """Four copies on eight slots were read again as those of eight tasks."""
    job = document("<NodeCount>4</NodeCount>", '<Extension name="Launcher" type="Scheduler">mpirun</Extension>',
                   group(each("<Processors>2</Processors>")))
    assert not copies_lost("torque", job)
    assert [(f.line, f.message) for f in written("torque", read(job))[1] if f.severity == "warning"] == [
        (4, "TaskCount: ppn=2 slots a node for 1 tasks")]


@pytest.mark.parametrize(("launcher", "lines"), [("mpirun", [5]), ("single", [])])
def test_copies_in_fewer_slots_are_told_at_the_launcher_that_starts_them(launcher: str, lines: list[int]) -> None:
    """Four chunks with two GPUs are two slots in Flux, which was told at the GPUs alone."""
    job = document("<Resource name='GPU'>2</Resource>", CHUNKS.format(4),
                   f'<Extension name="Launcher" type="Scheduler">{launcher}</Extension>')
    findings = written("flux", read(job))[1]
    assert [f.line for f in findings if f.subject == "TaskCount" and f.severity == "warning"] == lines


def test_what_joined_task_groups_lose_is_told_where_it_stands() -> None:
    """GPUs of both groups are said in TaskGroupDefaults; their type was lost at the Requested of each group."""
    alike = group(TASKS.format(2), in_requested("<Memory units='GB'>4</Memory>"))
    job = document("<TaskGroupDefaults>", in_requested("<Resource name='GPU' type='a100'>2</Resource>"),
                   "</TaskGroupDefaults>", alike, alike)
    assert {f.line for f in written("psij", read(job))[1] if f.subject == "Resource/@type"} == {5}


@pytest.mark.parametrize("name", ["slurm", "pbspro", "torque", "lsf"])
def test_a_launcher_that_starts_one_copy_starts_one_of_several_groups(name: str) -> None:
    """A copy was started for each task, and one for the group that counts none."""
    job = document('<Extension name="Launcher" type="Scheduler">single</Extension>', group(TASKS.format(3)),
                   group(PER_NODE.format(4)))
    assert written(name, read(job))[0].endswith("\n/bin/step\n") and not problems(name, job)
