"""Directives as they stand in real scripts, odd ones too: what is read of them, what is written, and what is told."""

from __future__ import annotations

import pytest

from sssjob.conversion.converting import Conversion
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get

DEFAULTS = ("Environment", "InitialWorkingDirectory")


def carried(source: str, target: str, text: str, body: str = "./a\n") -> tuple[list[str], list[str]]:
    """The directives that come out, and every message of reading and writing but those on defaults."""
    context = ReadContext(findings=Findings("s"), policy=Policy.WARN)
    document = get(source).read(f"#!/bin/bash\n{text}{body}".encode(), context)
    writing = WriteContext(context.findings, policy=Policy.WARN, options={"layout": "canonical"})
    lines = get(target).write(document, writing).splitlines()
    return [line.split(" ", 1)[1] for line in lines[1:] if line.startswith("#")], [
        f.message for f in context.findings if f.subject not in DEFAULTS and f.severity != "info"]


BINDING = "core(10):cpubind=core:distribute=balance"
CASES = [
    ("lsf", "slurm", "#BSUB -n 2\n#BSUB -jsm y\n", ["--ntasks=2"], ["-jsm y: dropped, Slurm has no place for it"]),
    ("lsf", "lsf", "#BSUB -n 2\n#BSUB -jsm d\n", ["-n 2", "-jsm d"], []),
    ("lsf", "slurm", f'#BSUB -n 2\n#BSUB -R "affinity[{BINDING}]"\n', ["--ntasks=2", "--cpus-per-task=10"],
     [f"-R affinity[{BINDING}]: affinity={BINDING.partition(':')[2]} of this option is dropped, Slurm has no place for "
      "it"]),
    ("lsf", "lsf", f'#BSUB -n 2\n#BSUB -R "affinity[{BINDING}]"\n',
     ["-n 2", f'-R "affinity[{BINDING.replace(":", "*1:", 1)}]"'], []),
    ("lsf", "lsf", '#BSUB -n 2\n#BSUB -R "affinity[core:membind=localonly]"\n',
     ["-n 2", '-R "affinity[core(1)*1:membind=localonly]"'], []),
    ("lsf", "lsf", '#BSUB -n 3\n#BSUB -R "1*{affinity[core(2):cpubind=core]}+2*{span[hosts=1]}"\n',
     ["-n 3", '-R "1*{affinity[core(2):cpubind=core]}+2*{span[hosts=1]}"'], []),
    ("pbspro", "slurm", "#PBS -P ab12  # the job's project\n", ["--account=ab12"],
     ["a ' is not closed; qsub knows no comments behind a directive, this one is left out"]),
    ("torque", "slurm", "#PBS -A ab12  # the job's project\n", ["--account=ab12"],
     ["a ' is not closed; qsub knows no comments behind a directive, this one is left out"]),
    ("torque", "slurm", "#PBS -N 'ab # x\n", [], ["a ' is not closed; the directive is left out"]),
    ("slurm", "pbspro", "#SBATCH --account=####-####\n#SBATCH -n 2\n", ["-l select=2:ncpus=1:mpiprocs=1"],
     ["--account: is empty, which sbatch takes as if it was not given"]),
    ("slurm", "pbspro", "#SBATCH --partition= --qos= -n 2\n", ["-l select=2:ncpus=1:mpiprocs=1"],
     [f"--{name}: is empty, which sbatch takes as if it was not given" for name in ("partition", "qos")]),
    *(("slurm", "torque", f"#SBATCH --array='{listed}'\n", ["-t 1-12,20%3"], [])      # as squeue prints them
      for listed in ("[1-12,20]%3", "[1-12,20%3]")),
    ("slurm", "slurm", "#SBATCH --array=[4-9]\n", ["--array=4-9"], []),
    ("slurm", "torque", "#SBATCH --time=2-\n", ["-l walltime=48:00:00"], []),
    ("slurm", "slurm", "#SBATCH --nice=7x\n", ["--nice=7"],
     ["--nice 7x: sbatch reads the number before the first other sign: 7"]),
    ("slurm", "slurm", "#SBATCH --nice=low\n", ["--nice=0"],
     ["--nice low: sbatch reads the number before the first other sign: 0"]),
    ("slurm", "slurm", "#SBATCH -koff -n2\n", ["--ntasks=2", "--no-kill=off"], []),
    ("slurm", "sge", "#SBATCH -J map-{rule}-{wildcards.unit} -q {resources.qos}\n",
     ["-N map-{rule}-{wildcards.unit}", "-cwd"],
     ["--qos {resources.qos}: QualityOfService: dropped, Grid Engine has no place for it"]),
    ("torque", "slurm", "#PBS -l nodes=2:ppn=4,pmem=300mb\n",      # the same amount: no other costs
     ["--nodes=2", "--ntasks-per-node=4", "--mem-per-cpu=300M"], []),
    # a qsub of OpenPBS: Cannot have "place" without "select"
    ("slurm", "pbspro", "#SBATCH --exclusive\n", ["-l select=1", "-l place=excl"], []),
    ("slurm", "pbspro", "#SBATCH -N1 --ntasks-per-node=6\n", ["-l select=1:ncpus=6:mpiprocs=6"], []),
    ("slurm", "pbspro", "#SBATCH -N2 -n6\n", ["-l select=2:ncpus=3:mpiprocs=3", "-l place=scatter"], []),
    ("slurm", "pbspro", "#SBATCH -o r-%N/o.%j\n", ["-j oe", '-o "r/o.^jobid^"'],
     ["--output r-%N/o.%j: OutputFile: PBS Pro has no {host} in file names; the rest of the name is written, and its "
      "directory r has to be made"]),
    ("slurm", "pbspro", "#SBATCH -o logs/%N/o.%j\n", ["-j oe", '-o "logs/o.^jobid^"'],
     ["--output logs/%N/o.%j: OutputFile: PBS Pro has no {host} in file names; the rest of the name is written"]),
]


@pytest.mark.parametrize(("source", "target", "text", "directives", "messages"), CASES)
def test_what_is_taken(source: str, target: str, text: str, directives: list[str], messages: list[str]) -> None:
    assert carried(source, target, text) == (directives, messages)


PARTS = "#SBATCH --nodes=2 --ntasks-per-node=16\n#SBATCH hetjob\n#SBATCH --nodes=8 --ntasks-per-node=64\n"
SPREAD = "TaskGroup: 2 groups are asked for as one of 544 tasks; how many are on a node, 16 and 64, is not"


@pytest.mark.parametrize(("target", "directives"), [
    ("flux", ["--nslots=544"]), ("sge", ["-pe @PE@ 544", "-cwd"]), ("cobalt", ["-n 10", "--proccount 544"])])
def test_parts_of_a_job_are_added_up_where_their_tasks_are_alike(target: str, directives: list[str]) -> None:
    """Where a manager has one kind of part only, all of the tasks are asked for, not those of the first part."""
    written, messages = carried("slurm", target, PARTS)
    assert written == directives and messages[0] == SPREAD
    if target == "flux":
        assert messages[1:] == ["--nodes 2: NodeCount: dropped, 544 slots cannot be spread evenly over 10 nodes, and "
                                "Flux would take more"]


@pytest.mark.parametrize(("source", "text"), [
    ("pbspro", "#PBS -l select=2:ncpus=16:mpiprocs=16+8:ncpus=64:mpiprocs=64\n"),
    ("torque", "#PBS -l nodes=2:ppn=16+8:ppn=64\n"),
    ("lsf", '#BSUB -n 544\n#BSUB -R "32*{span[ptile=16]}+512*{span[ptile=64]}"\n')])
def test_a_script_of_several_parts_sees_one_of_them_in_slurm(source: str, text: str) -> None:
    written, messages = carried(source, "slurm", text, "mpirun -np 544 ./a\n")
    assert "hetjob" in written and (
        "TaskGroup: Slurm starts the script in the first of 2 components, whose nodes are all that mpirun sees; "
        "srun --het-group=0,1 starts tasks in several") in messages
    assert not any("components" in message for message in carried("slurm", "slurm", PARTS)[1])


@pytest.mark.parametrize(("source", "directive"), [
    ("lsf", "#BSUB -n 2"), ("torque", "#PBS -N x"), ("sge", "#$ -N x"), ("slurm", "#SBATCH -n 2")])
def test_a_script_whose_dos_line_breaks_were_made_plain_is_plain_text(source: str, directive: str) -> None:
    text = f"#!/bin/bash\r\n{directive}\r\necho hi\r\n"
    document = get(source).read(text.encode(), ReadContext(policy=Policy.WARN))
    assert [(file.text, file.encoded) for file in document.files.values()] == [("#!/bin/bash\necho hi\n", None)]
    text = text.replace("echo", "echo \x07")
    document = get(source).read(text.encode(), ReadContext(policy=Policy.WARN))
    assert [file.encoded for file in document.files.values()] == ["base64"]


@pytest.mark.parametrize(("options", "pbspro", "torque"), [
    ("-w n[08-10]", "select=1:host=n08+1:host=n09+1:host=n10", "nodes=n08+n09+n10"),
    ("-N 3 -n 7 -w n1,n2,n3", "select=1:ncpus=3:mpiprocs=3:host=n1+1:ncpus=2:mpiprocs=2:host=n2"
     "+1:ncpus=2:mpiprocs=2:host=n3", "nodes=n1:ppn=3+n2:ppn=2+n3:ppn=2"),
    ("-N 4 -w n1,n2", "select=1:host=n1+1:host=n2+2", "nodes=n1+n2+2"),
    ("-N 4 -w n1", "select=1:host=n1+3", "nodes=n1+3"), ("-N 1 -w n1", "select=1:host=n1", "nodes=n1"),
    ("-w n1", "select=1:host=n1", "nodes=n1"), ("-N 2 -c 4 -w n[1-2]", "select=1:ncpus=4:host=n1+1:ncpus=4:host=n2",
                                                "nodes=n1:ppn=4+n2:ppn=4"),
])
def test_every_node_that_is_named_is_a_part_of_its_own(options: str, pbspro: str, torque: str) -> None:
    """And no other: the rest of the nodes stay any."""
    for target, expected in (("pbspro", pbspro), ("torque", torque)):
        directives, messages = carried("slurm", target, f"#SBATCH {options}\n")
        assert directives[0] == f"-l {expected}"
        assert [m for m in messages if "Node:" in m] == []


NUMBERED = [
    ("o.$INT(Process,%03d)", 1, "o.000"), ("o.$INT(ProcId,%02d)", 3, "o.%2a"), ("o.$INT(Process)", 3, "o.%a"),
    ("o.$INT(Cluster,%d).$(Process)", 3, "o.%A.%a"), ("o.$INT(Process,%3d)", 3, None), ("o.$INT(n,%03d)", 3, None),
]


@pytest.mark.parametrize(("name", "count", "slurm"), NUMBERED)
def test_a_number_with_zeros_in_a_file_name_of_htcondor(name: str, count: int, slurm: str | None) -> None:
    """What is no number of the job stays as text, and is told."""
    findings = Findings("s")
    document = get("htcondor").read(f"executable = a\noutput = {name}\nqueue {count}\n".encode(), ReadContext(
        findings=findings))
    lines = get("slurm").write(document, WriteContext(findings, policy=Policy.WARN)).splitlines()
    assert (f"#SBATCH --output={slurm}" in lines) is (slurm is not None)
    assert [f.rule for f in findings if "has macros" in f.message] == ([] if slurm else ["SSS504"])


def test_zeros_go_to_htcondor_and_come_back() -> None:
    document = get("slurm").read(b"#!/bin/sh\n#SBATCH -a 1-3 -o o.%4j_%3a\n./a\n", ReadContext())
    text = get("htcondor").write(document, WriteContext(policy=Policy.WARN))
    assert "output = o.$INT(Cluster,%04d)_$INT(array_index,%03d)\n" in text
    back = get("slurm").write(get("htcondor").read(text.encode(), ReadContext()), WriteContext(policy=Policy.WARN))
    assert "#SBATCH --output=o.%4j_%3a\n" in back


@pytest.mark.parametrize(("name", "text"), [
    ("sge", "#!/bin/sh\n#$ -pe omp 16\n#$ -l mem_free=2G\n./a\n"),
    ("htcondor", "executable = a\narguments = --in $ENV(HOME)/b\nqueue 2\n")])
def test_what_an_option_means_elsewhere_is_not_told_of_a_script_that_stays(name: str, text: str) -> None:
    conversion = Conversion(name, name)
    context = conversion.reading(get(name), "-")
    conversion.read(get(name), text.encode(), context)
    assert [f.message for f in context.findings] == []
    other = Conversion(name, "slurm")
    context = other.reading(get(name), "-")
    other.read(get(name), text.encode(), context)
    assert "SSS504" in [f.rule for f in context.findings]


FLAVOURS = [('+JobFlavour = "longlunch"', ["--time=02:00:00"]), ("+MaxRuntime = 5400", ["--time=01:30:00"]),
            ('MY.JobFlavour = "Tomorrow"', ["--time=24:00:00"]), ('+JobFlavour = "mine"', []),
            ('+JobFlavour = "workday"\n+MaxRuntime = 60', []), ("+MaxRuntime = 60 * 60", []),
            ('+JobFlavour = "60"', [])]


@pytest.mark.parametrize(("line", "directives"), FLAVOURS)
def test_limits_of_the_batch_service_of_cern(line: str, directives: list[str]) -> None:
    """They limit a job of Slurm, and HTCondor gets them back as they were."""
    findings = Findings("s")
    document = get("htcondor").read(f"executable = a\n{line}\nqueue\n".encode(), ReadContext(findings=findings))
    lines = get("slurm").write(document, WriteContext(findings, policy=Policy.WARN)).splitlines()
    assert [text.split(" ", 1)[1] for text in lines if text.startswith("#SBATCH")] == directives
    messages = [f.message for f in findings if "batch service of CERN" in f.message or "dropped, Slurm" in f.message]
    assert len(messages) == line.count("\n") + 1
    back = get("htcondor").write(document, WriteContext(policy=Policy.WARN))
    assert sorted(back.replace("MY.", "+").splitlines()) == sorted(
        ["executable = a", *line.replace("MY.", "+").splitlines(), "queue"])
