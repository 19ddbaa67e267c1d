"""The shape of a job in another manager: what is together stays together, and nothing is multiplied."""

from __future__ import annotations

import pytest

from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get

DEFAULTS = ("Environment", "InitialWorkingDirectory")


def converted(source: str, target: str, text: str) -> tuple[list[str], list[str]]:
    """The lines after the first, and the messages of the findings but those on defaults."""
    document = get(source).read(text.encode(), ReadContext(policy=Policy.WARN))
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    lines = get(target).write(document, context).splitlines()
    return lines[1:], [f.message for f in context.findings if f.subject not in DEFAULTS
                       and not f.message.startswith("OutputFile: without an option")]


NODES = "NodeCount: {} chunks, perhaps on one node, are written as nodes"
CHUNKS = [
    ("2:mpiprocs=1:ncpus=64:ngpus=4:mem=480gb", "slurm",
     ["--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=64", "--mem=480G", "--gpus-per-node=4"]),
    ("2:mpiprocs=1:ncpus=64:ngpus=4", "flux",
     ["--nodes=2", "--nslots=2", "--cores-per-slot=64", "--gpus-per-slot=4"]),
    ("2:mpiprocs=1:ncpus=64:ngpus=4", "lsf", ["-n 2", '-R "span[ptile=1]"', '-R "affinity[core(64)*1]"',
                                              '-gpu "num=4"']),
    ("7:ncpus=24:mpiprocs=21:mem=100gb", "slurm", ["--nodes=7", "--ntasks-per-node=21", "--mem=100G"]),
    ("7:ncpus=24:mpiprocs=21", "lsf", ["-n 147", '-R "span[ptile=21]"']),
    ("7:ncpus=24:mpiprocs=21", "flux", ["--nodes=7", "--nslots=147"]),
    ("2:ncpus=16:mpiprocs=16+8:ncpus=64:mpiprocs=64", "slurm",
     ["--nodes=2", "--ntasks-per-node=16", "hetjob", "--nodes=8", "--ntasks-per-node=64"]),
    ("8:ncpus=2", "slurm", ["--ntasks=8", "--cpus-per-task=2"]),
    ("8:ncpus=2", "flux", ["--nslots=8", "--cores-per-slot=2"]),
]


@pytest.mark.parametrize(("select", "target", "options"), CHUNKS)
def test_chunks(select: str, target: str, options: list[str]) -> None:
    lines, messages = converted("pbspro", target, f"#!/bin/sh\n#PBS -l select={select}\n./a\n")
    assert [line.split(" ", 1)[1] for line in lines[:-1]] == options
    said = [message.partition(": ")[2] for message in messages]
    counts = [part.partition(":")[0] for part in select.split("+")]
    assert [text for text in said if text.startswith("NodeCount")] == (
        [] if select.startswith("8:") else [NODES.format(count) for count in counts])


def test_spare_processors_of_a_chunk_are_told_and_none_are_added() -> None:
    _, messages = converted("pbspro", "slurm", "#!/bin/sh\n#PBS -l select=7:ncpus=24:mpiprocs=21\n./a\n")
    assert messages[1:] == ["-l select 7:ncpus=24:mpiprocs=21: Processors: 147 of 168 are asked for, as 147 tasks of "
                            "1: all tasks are of one size"]


@pytest.mark.parametrize(("target", "directives"), [
    ("pbspro", ["-l select=1:ncpus=39:mpiprocs=39:mem=117000mb:ngpus=4"]),
    ("torque", ["-l nodes=1:ppn=39:gpus=4", "-l pmem=3000mb"]),
])
def test_gpus_of_a_node_are_not_multiplied_where_nodes_are_not_said(target: str, directives: list[str]) -> None:
    lines, messages = converted("slurm", target, "#!/bin/sh\n#SBATCH -n 39 --gres=gpu:4 --mem-per-cpu=3000\n./a\n")
    assert [line.removeprefix("#PBS ") for line in lines if line.startswith("#")] == directives
    assert messages[0] == ("--gres gpu:4: the GPUs of a node: all is asked for on one, for how many nodes there are "
                           "the job does not say; cores_per_node of a site profile would")


@pytest.mark.parametrize(("options", "written"), [
    ("--nodes=1 -c 10 --gres=gpu:4", ["--nodes=1", "--nslots=1", "--cores-per-slot=10", "--gpus-per-slot=4"]),
    ("--nodes=3 -c 10", ["--nodes=3", "--nslots=3", "--cores-per-slot=10"]),
    ("--nodes=3", ["--nodes=3"]),
])
def test_flux_is_told_slots_where_it_would_take_whole_nodes(options: str, written: list[str]) -> None:
    lines, _ = converted("slurm", "flux", f"#!/bin/sh\n#SBATCH {options}\n./a\n")
    assert [line.removeprefix("#FLUX: ") for line in lines[:-1]] == written


WHOLE = [("flux", "#FLUX: -N 4\n"), ("cobalt", "#COBALT -n 4 -t 10\n"), ("lsf", "#BSUB -nnodes 4\n")]


@pytest.mark.parametrize(("target", "option"), [
    ("slurm", "#SBATCH --exclusive"), ("pbspro", "#PBS -l place=scatter:excl"), ("torque", "#PBS -n"),
    ("sge", "#$ -l exclusive=true")])
@pytest.mark.parametrize(("source", "directives"), WHOLE)
def test_nodes_that_are_given_whole_are_asked_for_whole(source: str, directives: str, target: str, option: str) -> None:
    """Else the job has one processor on each of them."""
    lines, _ = converted(source, target, f"#!/bin/sh\n{directives}./a\n")
    assert option in lines


@pytest.mark.parametrize(("source", "directives"), [
    *WHOLE, ("flux", "#FLUX: -N 4\n#FLUX: --exclusive\n"), ("lsf", "#BSUB -nnodes 4\n#BSUB -x\n")])
def test_what_was_not_said_about_whole_nodes_is_not_written(source: str, directives: str) -> None:
    text = f"#!/bin/sh\n{directives}./a\n"
    lines, _ = converted(source, source, text)
    again = converted(source, source, "\n".join(["#!/bin/sh", *lines, ""]))[0]
    assert again == lines and sum("xclusive" in line or line == "#BSUB -x" for line in lines) == (
        "xclusive" in directives or "-x" in directives)


def test_slots_of_flux_are_no_whole_nodes() -> None:
    lines, _ = converted("flux", "slurm", "#!/bin/sh\n#FLUX: -N 2\n#FLUX: -n 8\n./a\n")
    assert lines == ["#SBATCH --nodes=2", "#SBATCH --ntasks=8", "./a"]


@pytest.mark.parametrize("target", ["sge", "htcondor", "cobalt"])
def test_groups_that_are_asked_for_as_one_contradict_nothing(target: str) -> None:
    _, messages = converted("torque", target, "#!/bin/sh\n#PBS -l nodes=2:ppn=16:ib+1:ppn=8:bigmem\n./a\n")
    assert not [message for message in messages if "first value of each name" in message]


def test_a_choice_of_queues_is_told_without_the_rest_of_the_request() -> None:
    _, messages = converted("slurm", "pbspro", "#!/bin/sh\n#SBATCH -p a,b -N 2 -t 60\n#SBATCH -C 'x|y'\n./a\n")
    assert messages[0].endswith("Queue: a is taken of Queue = a or Queue = b")


@pytest.mark.parametrize(("target", "command", "options"), [
    ("slurm", "./a", ["--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=4", "--mem=20G"]),
    ("slurm", "mpirun -np 4 ./a", ["--nodes=1", "--ntasks-per-node=4", "--mem=20G"]),
    ("torque", "./a", ["-l nodes=1:ppn=4", "-l mem=20gb"]),
    ("lsf", "mpirun ./a", ["-n 4", '-R "span[hosts=1]"', '-R "rusage[mem=20GB/job]"']),
    ("flux", "./a", ["--nodes=1", "--nslots=1", "--cores-per-slot=4"]),
    ("cobalt", "./a", ["-n 1"]),
    ("pbspro", "./a", ["-l ncpus=4", "-l mem=20gb"])])
def test_amounts_of_a_job_of_pbs_pro_are_those_of_one_chunk(target: str, command: str, options: list[str]) -> None:
    """Its processors are on one host, and are one task's unless the commands start tasks."""
    lines, _ = converted("pbspro", target, f"#!/bin/sh\n#PBS -l ncpus=4\n#PBS -l mem=20gb\n{command}\n")
    assert [line.split(" ", 1)[1] for line in lines if line.startswith("#")] == options


@pytest.mark.parametrize(("directives", "call", "kept"), [
    ("-N 2 --ntasks-per-node=1 --gpus-per-node=4", "srun --gpus-per-task=4 ./a", False),
    ("-N 2 --ntasks-per-node=1 --gpus-per-node=4", "srun --gpus-per-task=2 ./a", True),
    ("-N 2 --ntasks-per-node=2 --gpus-per-node=4", "srun --gpus-per-task=4 ./a", True)])
def test_the_gpus_of_a_node_are_those_of_its_one_task(directives: str, call: str, kept: bool) -> None:
    lines, messages = converted("slurm", "pbspro", f"#!/bin/sh\n#SBATCH {directives}\n{call}\n")
    assert any("mpirun cannot say the GPUs of a task" in message for message in messages) is kept
    assert ("srun() (" in lines) is not kept


def test_an_array_of_two_kinds_of_nodes_is_told_for_slurm() -> None:
    lines, messages = converted("torque", "slurm", "#!/bin/sh\n#PBS -t 1-3\n#PBS -l nodes=2:ppn=2+1:ppn=1\n./a\n")
    assert [line for line in lines if "array" in line] == []
    assert "--array 1-3: sbatch refuses it: a heterogeneous job is no array" in " ".join(messages)


def test_a_placeholder_for_a_number_of_nodes_asks_for_no_whole_node() -> None:
    lines, _ = converted("cobalt", "slurm", "#!/bin/sh\n#COBALT -n {nodes} -t 10\n./a\n")
    assert lines == ["#SBATCH --time=00:10:00", "./a"]


@pytest.mark.parametrize(("asked", "written"), [
    ("--gres=gpu:a100:2,gpu:v100:1,fpga:1 -N1", ["--nodes=1", "--gres=fpga:1", "--gpus-per-node=a100:2,v100:1"]),
    ("--gpus=a100:2,v100:1", ["--gpus=a100:2,v100:1"]),
    ("--gpus-per-task=a:2,b:1 -n2", ["--ntasks=2", "--gpus-per-task=a:2,b:1"]),
    ("--tres-per-task=cpu=4,gres/gpu:a=1,gres/gpu:b=2 -n2",
     ["--ntasks=2", "--cpus-per-task=4", "--gpus-per-task=a:1,b:2"]),
    ("--tres-per-task=cpu=1k -n1", ["--ntasks=1", "--cpus-per-task=1024"]),
    ("--tres-per-task=cpu=4,license/ansys=1 -n2", ["--ntasks=2", "--tres-per-task=cpu=4,license/ansys=1"]),
    ("--segment=4 --stepmgr --oom-kill-step --resv-ports=3 -N8",
     ["--nodes=8", "--oom-kill-step", "--resv-ports=3", "--segment=4", "--stepmgr"]),
])
def test_gpus_of_several_types_and_what_a_task_gets(asked: str, written: list[str]) -> None:
    """What sbatch of later years takes comes back as it was meant, without a finding."""
    lines, messages = converted("slurm", "slurm", f"#!/bin/sh\n#SBATCH {asked}\n./a\n")
    assert (sorted(line.removeprefix("#SBATCH ") for line in lines[:-1]), messages) == (sorted(written), [])


def test_a_second_type_of_gpus_is_lost_where_a_manager_takes_one() -> None:
    lines, messages = converted("slurm", "lsf", "#!/bin/sh\n#SBATCH -N1 --gres=gpu:a100:2,gpu:v100:1\n./a\n")
    assert '#BSUB -gpu "num=2:gmodel=a100"' in lines and any("v100" in message for message in messages)


def test_gpus_of_one_type_that_are_asked_for_twice_are_no_sum() -> None:
    """Each of the two conditions is met by the same GPUs."""
    text = f"""<Job><Executable>/a</Executable><Requested>{'<Resource name="GPU" type="a100">2</Resource>' * 2}
        </Requested></Job>"""
    assert converted("sss", "slurm", text)[0] == ["#SBATCH --gpus=a100:2", "/a"]


def test_gpus_of_alternatives_are_no_list_of_types() -> None:
    text = """<Job><Executable>/a</Executable><Requested><Resource name="GPU" type="a" conj="Or">2</Resource>
        <Resource name="GPU" type="b">1</Resource></Requested></Job>"""
    document = get("sss").read(text.encode(), ReadContext(policy=Policy.WARN))
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    assert "--gpus=a:2,b:1" not in get("slurm").write(document, context) and context.findings


PARTS = """\
#!/bin/sh
#SBATCH --partition=big
#SBATCH --time=06:00:00
#SBATCH --ntasks=1
#SBATCH hetjob
#SBATCH --partition=cpu
#SBATCH --reservation=r
#SBATCH --time=01:00:00
#SBATCH --nodes=8
#SBATCH --licenses=a:1
#SBATCH hetjob
#SBATCH --partition=big
#SBATCH --time=06:00:00
#SBATCH --nodes=1
./a
"""


def test_parts_of_a_heterogeneous_job_have_partitions_and_limits_of_their_own() -> None:
    lines, messages = converted("slurm", "slurm", PARTS)
    assert ["#!/bin/sh", *lines] == PARTS.splitlines() and messages == []
    _, messages = converted("slurm", "pbspro", PARTS)
    assert [m for m in messages if "dropped" in m] == [
        f"{option}: dropped, PBS Pro has no place for it"
        for option in ("--partition cpu", "--reservation r", "--time 01:00:00", "--licenses a:1")]


def test_parts_of_a_heterogeneous_job_share_the_memory_of_the_job() -> None:
    """It was asked for in no part, where the managers of chunks shared it out."""
    text = "#!/bin/sh\n#PBS -l nodes=2:ppn=8+1:ppn=4\n#PBS -l mem=40gb\n./a\n"
    lines, messages = converted("torque", "slurm", text)
    assert [line for line in lines if "mem" in line or "nodes=" in line] == [
        "#SBATCH --nodes=2", "#SBATCH --mem=13654M", "#SBATCH --nodes=1", "#SBATCH --mem=13654M"]
    assert [m for m in messages if "mem" in m] == ["-l mem 40gb: shared out among 3 nodes, rounded up"]
    lines, messages = converted("torque", "slurm", text.replace("40gb", "60gb"))
    assert lines.count("#SBATCH --mem=20G") == 2 and not [m for m in messages if "mem" in m]
