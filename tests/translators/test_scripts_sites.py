"""Scripts as sites write them: each case is a habit of their documentation, reduced to the lines that matter."""

from __future__ import annotations

import pytest

from sssjob.conversion.site import Site, read_site
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.xml.reader import read_document

#: (source, target, directives, the options of the result, what findings say of them).
CASES = [
    # resources that an administrator has to define
    ("slurm", "pbspro", "#SBATCH -N 1 -C 'gpu&hbm80g' --gres=gpu:v100:2\n",
     ["-l select=1:ngpus=2:gpu_type=v100:gpu=true:hbm80g=true"],
     ["asked for as the resource gpu_type, a name that the site has to know",
      "asked for as the resource gpu, a name that the site has to know",
      "asked for as the resource hbm80g, a name that the site has to know"]),
    ("slurm", "lsf", "#SBATCH -n 4 -C nvme\n", ["-n 4", '-R "select[nvme]"'],
     ["asked for as the resource nvme, a name that the site has to know"]),
    # expressions of queues
    ("sge", "slurm", "#$ -cwd -q !long.q,*@@fast\n", [],
     ["!long.q, *@@fast may fit several queues; which those are elsewhere map.Queue of a site profile says",
      "dropped, Slurm has no place for it"]),
    ("sge", "sge", "#$ -q all.q|short.q\n", ["-q all.q|short.q"], ["all.q|short.q may fit several queues"]),
    ("sge", "slurm", "#$ -cwd -q {{ queue | default('a.q') }}\n", None, []),
    # words of sbatch in any letters
    ("slurm", "sge", "#SBATCH --export=none -o none -e None\n", ["-o /dev/null", "-e /dev/null", "-cwd"], []),
    ("slurm", "sge", "#SBATCH --export=all,A=1 -o /dev/null -e /dev/null\n",
     ["-o /dev/null", "-e /dev/null", "-V", "-v A=1", "-cwd"], []),
    ("sge", "slurm", "#$ -cwd -o none -j y\n", ["--output=./none", "--open-mode=append"], []),
    # mail of the elements of an array
    ("slurm", "pbspro", "#SBATCH -a 1-3 --mail-type=ARRAY_TASKS,FAIL\n", ["-J 1-3", "-m aj"], []),
    ("slurm", "pbspro", "#SBATCH -a 1-3 --mail-type=ARRAY_TASKS\n", ["-J 1-3", "-m aj"], []),
    ("slurm", "pbspro", "#SBATCH --mail-type=ARRAY_TASKS,FAIL\n", ["-m a"], ["no mail at array-tasks"]),
    ("slurm", "torque", "#SBATCH -a 1-3 --mail-type=ARRAY_TASKS,END\n", ["-t 1-3", "-m e"], ["no mail at array-tasks"]),
    ("torque", "slurm", "#PBS -d . -m bf\n", ["--mail-type=BEGIN,FAIL"], []),
    # mail at every end covers that of a failure; a mask, and a signal for the shell alone
    ("sge", "lsf", "#$ -cwd -m bea\n", ["-B", "-N"], []), ("sge", "lsf", "#$ -cwd -m a\n", ["-Ne"], []),
    ("slurm", "lsf", "#SBATCH --signal=B:USR1@90\n", ["-wa USR1", "-wt 00:02"],
     ["all processes of the job get the signal", "LSF counts whole minutes; rounded up"]),
    ("pbspro", "lsf", "#PBS -W umask=027\n", [], ["LSF has no option for it; the script begins with umask 027"]),
    # a submit command that waits for the end
    ("slurm", "pbspro", "#SBATCH --wait\n", ["-W block=true"], []),
    ("pbspro", "lsf", "#PBS -W block=true\n", ["-K"], []),
    ("lsf", "sge", "#BSUB -K\n", ["-sync y", "-cwd"], []), ("sge", "slurm", "#$ -cwd -sync y\n", ["--wait"], []),
    ("sge", "sge", "#$ -sync n\n", ["-sync n"], []),
    ("slurm", "flux", "#SBATCH --wait\n", [], ["Extension Wait: dropped"]),
    # a colon in the name of a file, which qsub of PBS and Torque takes for the end of a host
    ("slurm", "pbspro", "#SBATCH -o run:%j -e /x/e:1\n", ['-o "run_^jobid^"', "-e /x/e:1"],
     ["PBS Pro takes what stands before a colon for a host; it is written as _"]),
    ("lsf", "torque", "#BSUB -oo log/a:b -eo c\n", ["-o log/a_b", "-e c"], ["Torque takes what stands before a colon"]),
    ("torque", "pbspro", "#PBS -o host:run\n#PBS -e host:err\n", ["-o host:run", "-e host:err"], []),
    # arrays for managers without arrays
    ("slurm", "flux", "#SBATCH -n 1 -a 1-9:2%3 -o x-%A_%a.txt\n", ["--nslots=1", "--output=x-{{id}}.txt"],
     ["Flux has no arrays of jobs, whose elements are submitted one by one: seq 1 2 9 | xargs -I@ flux batch "
      "--env=SLURM_ARRAY_TASK_ID=@ SCRIPT",
      "Flux has no {index} in file names; the rest of the name is written"]),
    ("sge", "cobalt", "#$ -cwd -t 1-9 -o x.$TASK_ID -j y\n", None,
     ["are submitted one by one: seq 1 1 9 | xargs -I@ qsub --env SGE_TASK_ID=@ SCRIPT",
      "dropped, Cobalt has no {index} in file names"]),
    ("pbspro", "flux", "#PBS -J 0-4\n", [], ["seq 0 1 4 | xargs -I@ flux batch --env=PBS_ARRAY_INDEX=@ SCRIPT"]),
]


@pytest.mark.parametrize(("source", "target", "directives", "options", "messages"), CASES)
def test_habits(source: str, target: str, directives: str, options: list[str] | None, messages: list[str]) -> None:
    findings = Findings("s")
    document = get(source).read(f"#!/bin/sh\n{directives}./a\n".encode(), ReadContext("s", findings))
    lines = get(target).write(document, WriteContext(findings, policy=Policy.WARN)).splitlines()[1:]
    directive_lines = [line.split(" ", 1)[1] for line in lines if line.startswith("#")]
    assert options is None or directive_lines == options
    assert [m for m in messages if not any(m in finding.message for finding in findings)] == []


PLUGINS = read_site('name = "x"\n[slurm]\nplugin_options = ["image", "off"]\n')


def test_options_of_plugins() -> None:
    """spank(7): what plugins of the site add to sbatch only the site can name; elsewhere sbatch refuses it."""
    script = b"#!/bin/sh\n#SBATCH --image a:b -n 2\n#SBATCH --off -t 5\n./a\n"
    findings = Findings("s")
    document = get("slurm").read(script, ReadContext("s", findings, site=PLUGINS))
    assert list(findings) == [] and get("slurm").write(document, WriteContext(findings, site=PLUGINS)) == (
        "#!/bin/sh\n#SBATCH --ntasks=2\n#SBATCH --image=a:b\n#SBATCH --time=00:05:00\n#SBATCH --off\n./a\n")
    get("pbspro").write(document, WriteContext(findings, policy=Policy.WARN, site=PLUGINS))
    assert [f.message for f in findings if f.kind == "dropped"] == [
        "--image a:b: dropped, PBS Pro has no place for it", "--off: dropped, PBS Pro has no place for it"]
    get("slurm").read(script, ReadContext("s", refused := Findings("s"), policy=Policy.WARN))
    assert [f.message for f in refused] == [
        "--image: no such option, unless plugin_options in [slurm] of a site profile name it", "'a:b' is no option",
        "--off: no such option, unless plugin_options in [slurm] of a site profile name it"]


TASKS = read_site('name = "x"\n[lsf]\nreserve_per_task = true\n')
HOSTS = read_site('name = "x"\n[lsf]\nreserve_per_task = false\n')
TAKEN = "mem=9GB is taken for each host, as LSF does where the site says nothing (reserve_per_task in [lsf] of a site "


@pytest.mark.parametrize(("directives", "site", "options", "asked"), [
    ('-n 6 -R "span[ptile=3] rusage[mem=9GB]"', None, ["--ntasks=6", "--ntasks-per-node=3", "--mem=9G"], True),
    ('-n 6 -R "span[ptile=3] rusage[mem=9GB]"', HOSTS, ["--ntasks=6", "--ntasks-per-node=3", "--mem=9G"], False),
    ('-n 6 -R "span[ptile=3] rusage[mem=9GB]"', TASKS,
     ["--ntasks=6", "--ntasks-per-node=3", "--mem-per-cpu=9G"], False),
    ('-n 6 -R "span[ptile=3] rusage[mem=9GB/host]"', TASKS, ["--ntasks=6", "--ntasks-per-node=3", "--mem=9G"], False),
    ('-R "rusage[mem=9GB]"', TASKS, ["--mem=9G"], False), ('-R "rusage[mem=9GB]"', None, ["--mem=9G"], False)])
def test_memory_of_several_slots_of_lsf(directives: str, site: Site | None, options: list[str], asked: bool) -> None:
    """RESOURCE_RESERVE_PER_TASK of lsf.conf(5) decides whose memory it is; the site says so, or is asked."""
    findings = Findings("s")
    document = get("lsf").read(f"#!/bin/sh\n#BSUB {directives}\n./a\n".encode(), ReadContext("s", findings, site=site))
    lines = get("slurm").write(document, WriteContext(findings)).splitlines()
    assert [line.partition(" ")[2] for line in lines if line.startswith("#SBATCH")] == options
    assert any(TAKEN in finding.message for finding in findings) is asked


@pytest.mark.parametrize(("directives", "key", "chunks", "asked"), [
    ("-n 6 -M 3GB", "", "select=6:ncpus=1:mpiprocs=1:mem=3gb", True),
    ("-n 1 -R span[hosts=1] -M 3GB", "", "select=1:ncpus=1:mem=3gb", False),
    ("-n 6 -R span[hosts=1] -M 3GB", "job_memory_limit = false", "select=1:ncpus=6:mpiprocs=6:mem=18gb", False),
    ("-n 6 -R span[hosts=1] -M 3GB", "job_memory_limit = true", "select=1:ncpus=6:mpiprocs=6:mem=3gb", False)])
def test_the_limit_of_memory_of_lsf(directives: str, key: str, chunks: str, asked: bool) -> None:
    """LSB_JOB_MEMLIMIT of lsf.conf(5) decides whether it is that of a process or of the job; LSF gets it back."""
    findings, site = Findings("s"), read_site(f'name = "x"\n[lsf]\n{key}\n')
    document = get("lsf").read(f"#!/bin/sh\n#BSUB {directives}\n./a\n".encode(), ReadContext("s", findings, site=site))
    lines = get("pbspro").write(document, WriteContext(findings, policy=Policy.WARN)).splitlines()
    assert [line for line in lines if "select" in line] == [f"#PBS -l {chunks}"]
    assert any("(job_memory_limit" in f.message for f in findings) is asked
    assert "#BSUB -M 3GB" in get("lsf").write(document, WriteContext(findings, policy=Policy.WARN)).splitlines()


def test_memory_of_a_host_where_tasks_are_counted() -> None:
    document = get("slurm").read(b"#!/bin/sh\n#SBATCH -N2 --ntasks-per-node=3 --mem=9G\n./a\n", ReadContext())
    text = get("lsf").write(document, WriteContext(Findings("s"), site=TASKS))
    assert '#BSUB -R "rusage[mem=9GB/host]"\n' in text


def test_a_node_that_sbatch_would_take_for_a_file() -> None:
    """Seen with sbatch 22.05: a list of nodes with a slash is opened as a file."""
    findings = Findings("s")
    body = "<Executable>./a</Executable><Requested><Node>rack/n1</Node><Node op='NE'>/n2</Node></Requested>"
    text = get("slurm").write(read_document(f"<Job>{body}</Job>"), WriteContext(findings, policy=Policy.WARN))
    assert text == "#!/bin/sh\n./a\n" and [f.message for f in findings if f.subject == "Node"] == [
        f"Node: dropped, {name} would be the file of a list to Slurm" for name in ("rack/n1", "/n2")]


def test_a_machine_whose_name_ends_in_a_backslash() -> None:
    """The 23.0 bindings take such an expression for one that does not parse."""
    findings = Findings("s")
    body = "<Executable>./a</Executable><Requested><Node>n\\</Node></Requested>"
    text = get("htcondor").write(read_document(f"<Job>{body}</Job>"), WriteContext(findings, policy=Policy.WARN))
    assert "requirements" not in text and [f.message for f in findings if f.subject == "Node"] == [
        "Node: dropped, n\\ ends in a backslash, which no string in an expression can"]
