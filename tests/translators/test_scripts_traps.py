"""Traps of batch-script dialects, each a test of its number; those of dialects that are not there yet are missing."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.lint import lint
from sssjob.translators.scripts.raw import shell_words

SH = "#!/bin/sh\n"


def read(name: str, text: str, policy: Policy | None = None) -> tuple[Document, Findings]:
    context = ReadContext("job", Findings("job"), policy=policy)
    try:
        return get(name).read(text.encode(), context), context.findings
    except RejectedError:
        return Document(Job()), context.findings


def options(name: str, text: str, to: str = "") -> list[str]:
    """The directives that a script is written with, without their prefix; ``refused`` where it is refused."""
    document, findings = read(name, SH + text if not text.startswith("#!") else text)
    if findings.rejected:
        return ["refused"]
    written = get(to or name).write(document, WriteContext(Findings("job"), options={"layout": "canonical"}))
    prefix = "#SBATCH " if (to or name) == "slurm" else "#PBS "
    return [line.removeprefix(prefix) for line in written.splitlines() if line.startswith(prefix)]


def header(name: str, text: str, to: str = "") -> list[str]:
    """Directives before the first command."""
    return options(name, text.partition("\necho")[0] + "\n", to)


def told(name: str, text: str, to: str = "") -> list[tuple[str, str, int, int]]:
    """(kind, subject, line, column) of what is found while reading and writing."""
    document, findings = read(name, SH + text)
    context = WriteContext(Findings("job"), options={"layout": "canonical"})
    if to and not findings.rejected:
        get(to).write(document, context)
    return [(f.kind, f.subject, f.line, f.column) for f in (*findings, *context.findings)]


def test_01_where_reading_stops() -> None:
    text = "#PBS -q a\necho\n#PBS -q b\n"
    assert options("pbspro", text)[0] == options("torque", text)[0] == "-q a"
    assert options("slurm", text)[0] == "--partition=b"
    assert told("pbspro", text) == [("dead", "directive", 4, 1)]


def test_02_leading_blanks() -> None:
    assert options("slurm", "  #SBATCH -A x\n") == []
    assert options("pbspro", "  #PBS -A x\n") == options("torque", "\t#PBS -A x\n") == ["-A x"]
    assert told("slurm", "  #SBATCH -A x\n") == [("dead", "directive", 2, 3)]


def test_03_commented_out() -> None:
    for line in ("##SBATCH -A x", "# SBATCH -A x", "# #SBATCH -A x"):
        assert options("slurm", line + "\n") == [] and told("slurm", line + "\n") == []
    for line in ("##PBS -A x", "# PBS -A x"):
        assert options("pbspro", line + "\n") == []


def test_04_no_blank_after_the_prefix() -> None:
    assert options("slurm", "#SBATCH--time=5\n") == ["--time=00:05:00"]
    assert options("pbspro", "#PBS-N x\n") == ["-N x"]


def test_07_a_command_before_the_directives() -> None:
    assert header("slurm", "set -e\n#SBATCH --time=5\n") == ["--time=5"]      # it stays where it is, dead
    assert told("slurm", "set -e\n#SBATCH --time=5\n") == [("dead", "directive", 3, 1)]


def test_09_text_is_no_directive() -> None:
    assert options("slurm", 'echo "#SBATCH --nodes=$N"\n') == []


def test_10_conflict_markers() -> None:
    assert read("slurm", "<<<<<<< HEAD\n#!/bin/sh\n#SBATCH -t 5\n")[1].rejected


def test_11_no_shebang() -> None:
    assert read("slurm", "# Copyright\n#!/bin/sh\n#SBATCH -t 5\n")[1].rejected
    assert not read("slurm", "# Copyright\n#!/bin/sh\n#SBATCH -t 5\n", Policy.WARN)[1].rejected
    assert not read("pbspro", "#PBS -N x\n")[1].rejected


def test_12_pbs_lines_win_in_slurm() -> None:
    text = "#SBATCH -t 5\n#PBS -l walltime=1:00:00\n#PBS -N p\n"
    assert options("slurm", text) == ["--job-name=p", "--time=01:00:00"]
    assert options("slurm", "#SBATCH --ignore-pbs -J a\n#PBS -N p\n") == ["--job-name=a", "--ignore-pbs"]
    assert options("slurm", "#BSUB -J b\n#PBS -N p\n") == ["--job-name=b", "--ignore-pbs"]


def test_13_slurm_as_prefix() -> None:
    assert options("slurm", "#SLURM -t 5\n") == ["refused"]
    document, _ = read("slurm", SH + "#SLURM -t 5\n", Policy.WARN)
    assert "--time=00:05:00" in get("slurm").write(document, WriteContext())


def test_14_trailing_comments() -> None:
    assert options("slurm", "#SBATCH -N 2 # two\n") == ["--nodes=2"]
    assert options("pbspro", "#PBS -N x # name\n") == ["refused"]
    assert options("torque", "#PBS -N x # name\n") == ["-N x"]
    assert options("pbspro", "#PBS -m n # Don't mail\n") == options("torque", "#PBS -m n # Don't mail\n") == ["refused"]


def test_15_hash_within_a_word() -> None:
    assert options("slurm", "#SBATCH --comment=a#b\n") == ["--comment=a"]
    assert options("slurm", '#SBATCH --comment="a # b"\n') == ['--comment="a # b"']


def test_16_backslash_keeps_no_blank() -> None:
    assert options("slurm", "#SBATCH --comment=a\\ b\n") == ["refused"]
    assert options("pbspro", "#PBS -N a\\ b\n") == ['-N "a b"']


def test_17_equals_after_a_short_option() -> None:
    assert options("slurm", "#SBATCH -J=foo\n") == ["--job-name==foo"]
    assert options("slurm", "#SBATCH -N=2\n") == ["refused"]
    assert options("pbspro", "#PBS -N=x\n") == ["-N =x"]


def test_18_tasks_is_tasks_per_node() -> None:
    assert options("slurm", "#SBATCH --tasks 8\n") == ["--ntasks-per-node=8"]


def test_19_abbreviations() -> None:
    assert options("slurm", "#SBATCH --nod=2\n") == ["refused"]
    assert options("slurm", "#SBATCH --job=x\n") == ["--job-name=x"]
    assert options("slurm", "#SBATCH --cluster=foo\n") == ["--clusters=foo"]       # no abbreviation: sbatch has both


def test_20_glued_values() -> None:
    assert options("pbspro", "#PBS -joe -lnodes=1:ppn=4 -ko\n") == [
        "-l select=1:ncpus=4:mpiprocs=4", "-l place=scatter", "-j oe", "-k o"]
    assert options("pbspro", "#PBS -oe\n") == ["-o e"]


def test_21_several_resources_in_one_option() -> None:
    assert options("torque", "#PBS -l nodes=1:ppn=4,walltime=1:00:00\n") == ["-l walltime=01:00:00", "-l nodes=1:ppn=4"]
    assert options("pbspro", "#PBS -l select=2:ncpus=1,place=pack\n") == ["-l select=2:ncpus=1", "-l place=pack"]


def test_22_no_value_and_twice() -> None:
    assert options("pbspro", "#PBS -N\n") == ["refused"]
    assert options("pbspro", "#PBS -N a\n#PBS -N b\n") == ["-N b"]


def test_23_two_options_on_a_line() -> None:
    assert options("torque", '#PBS -W group_list=g -A a\n#PBS -W x="NACCESSPOLICY:SINGLEJOB"\n') == [
        "-A a", "-W x=NACCESSPOLICY:SINGLEJOB", "-W group_list=g"]


def test_24_quotes_and_plus_in_select() -> None:
    assert options("pbspro", "#PBS -l select=1:ncpus=2:host='gn4'+1:ncpus=1\n") == [
        "-l select=1:ncpus=2:host=gn4+1:ncpus=1"]


def test_30_dos_and_byte_order_mark() -> None:
    assert options("slurm", "#SBATCH -t 5\r\n") == options("pbspro", "#PBS -N x\r\n") == ["refused"]
    assert options("torque", "#PBS -N x\r\n") == ["-N x"]
    assert read("slurm", "\ufeff#!/bin/sh\n#SBATCH -t 5\n")[1].rejected


def test_31_32_33_times() -> None:
    def seconds(name: str, text: str) -> object:
        document, _ = read(name, SH + text)
        requested = next((j for j, _ in document.jobs()), Job()).requested
        return None if requested is None else requested.value("Duration")

    assert seconds("slurm", "#SBATCH -t 90\n") == 5400 and seconds("pbspro", "#PBS -l walltime=90\n") == 90
    assert seconds("slurm", "#SBATCH -t 1:30\n") == 120 and seconds("pbspro", "#PBS -l walltime=1:30\n") == 90
    assert seconds("slurm", "#SBATCH -t 1-12\n") == 129600
    assert seconds("torque", "#PBS -l walltime=1:00:00:00\n") == 86400
    assert seconds("pbspro", "#PBS -l walltime=1:00:00:00\n") is None
    assert seconds("pbspro", "#PBS -l walltime=90.5\n") == 91 and seconds("torque", "#PBS -l walltime=90.5\n") == 90


def test_34_no_limit() -> None:
    assert options("slurm", "#SBATCH --time=0\n") == ["--time=0"]
    assert header("pbspro", "#PBS -l walltime=29\n", "slurm") == ["--time=00:01:00"]


def test_35_all_the_memory() -> None:
    assert options("slurm", "#SBATCH --mem=0\n") == ["--mem=0"]
    assert ("dropped", "Extension mem", 2, 9) in told("slurm", "#SBATCH --mem=0\n", "pbspro")


def test_36_sizes() -> None:
    assert options("slurm", "#SBATCH --mem=4GiB\n") == options("slurm", "#SBATCH --mem=1.5G\n") == ["refused"]
    assert options("slurm", "#SBATCH --mem=500K\n") == ["--mem=1M"]


def test_37_memory_of_what() -> None:
    assert header("pbspro", "#PBS -l select=2:ncpus=4:mem=16gb -l place=scatter\n", "slurm")[-1] == "--mem=16G"
    assert header("pbspro", "#PBS -l mem=16gb -l nodes=2:ppn=4\n", "slurm")[-1] == "--mem=8G"
    assert header("slurm", "#SBATCH -n 4 --mem-per-cpu=1G -c 2\n", "pbspro") == [
        "-l select=4:ncpus=2:mpiprocs=1:mem=2gb"]
    assert header("slurm", "#SBATCH -N 2 --mem=4G\n", "torque") == ["-l nodes=2", "-l mem=8gb"]


def test_41_gpus_of_what() -> None:
    assert header("slurm", "#SBATCH -N 2 --gres=gpu:4\n", "pbspro")[0] == "-l select=2:ngpus=4"
    assert header("slurm", "#SBATCH -N 2 --gpus=4\n", "pbspro")[0] == "-l select=2:ngpus=2"


def test_42_chunks_are_not_nodes() -> None:
    assert header("pbspro", "#PBS -l select=4\n", "slurm") == ["--ntasks=4"]
    assert header("pbspro", "#PBS -l select=4 -l place=scatter\n", "slurm") == ["--nodes=4", "--ntasks-per-node=1"]


def test_43_a_host_in_place_of_a_count() -> None:
    assert header("torque", "#PBS -l nodes=clust7:ppn=39\n", "slurm") == [
        "--nodes=1", "--ntasks-per-node=39", "--nodelist=clust7"]


def test_44_uneven_parts() -> None:
    lines = header("torque", "#PBS -l nodes=4:ppn=32:xe+16:ppn=16:xk\n", "slurm")
    assert lines == ["--nodes=4", "--ntasks-per-node=32", "--constraint=xe", "hetjob",
                     "--nodes=16", "--ntasks-per-node=16", "--constraint=xk"]
    assert header("pbspro", "#PBS -l select=1:ncpus=28+0:ncpus=26\n") == ["-l select=1:ncpus=28"]


def test_45_no_node_count() -> None:
    assert header("torque", "#PBS -l procs=96\n", "slurm") == ["--ntasks=96"]
    assert header("torque", "#PBS -l procs=1,pmem=4gb\n", "slurm") == ["--ntasks=1", "--mem=4G"]


def test_46_47_ranges_of_nodes() -> None:
    assert options("slurm", "#SBATCH -N 2-4\n") == ["--nodes=2-4"]
    assert options("slurm", "#SBATCH -N 2k\n") == ["--nodes=2048"]
    assert header("slurm", "#SBATCH -N 2-4\n", "pbspro")[0] == "-l select=2"
    assert ("approximated", "NodeCount", 0, 0) in told("slurm", "#SBATCH -N 2-4\n", "pbspro")


def test_48_signs_of_priority() -> None:
    assert header("pbspro", "#PBS -p -100\n", "slurm") == ["--nice=100"]
    assert header("slurm", "#SBATCH --nice=100\n", "torque") == ["-p -100"]


def test_49_mail() -> None:
    assert options("slurm", "#SBATCH --mail-type=abe\n") == ["refused"]
    assert options("slurm", "#SBATCH --mail-type=START,END\n") == ["--mail-type=END"]
    assert header("pbspro", "#PBS -m abe\n", "slurm") == ["--mail-type=BEGIN,END,FAIL"]
    assert ("approximated", "Extension MailEvents", 2, 6) in told("pbspro", "#PBS -m a\n", "slurm")
    assert options("pbspro", "#PBS -m n\n") == ["-m n"] and options("pbspro", "#PBS -m a\n") == ["-m a"]


def test_50_directories() -> None:
    assert header("pbspro", "#PBS -o dir/\n", "slurm") == ["--output=dir/%x.o%j"]
    assert options("pbspro", "#PBS -o dir/\n") == ["-o dir/"]


def test_51_what_is_no_pattern() -> None:
    document, _ = read("slurm", SH + "#SBATCH -o log_$USER_%Y.%%{j}.out\n")
    job = next(j for j, _ in document.jobs())
    assert job.output_file is not None and job.output_file.text == "log_$USER_%Y.%{{j}}.out"


def test_52_pseudo_variables() -> None:
    assert header("torque", "#PBS -o x.${PBS_JOBID}.$PBS_ARRAYID\n", "slurm") == ["--output=x.%j.%a"]
    assert header("pbspro", "#PBS -o x.$PBS_JOBID\n", "slurm") == ["--output=x.%j"]     # as it is meant


def test_53_joined_streams() -> None:
    assert header("pbspro", "#PBS -j oe -o a -e b\n", "slurm") == ["--output=a"]
    assert header("pbspro", "#PBS -j oe -e b\n", "flux") == []         # qsub writes no b either
    assert header("slurm", "#SBATCH -o a\n", "pbspro") == ["-j oe", "-o a"]
    assert ("approximated", "ErrorFile", 1, 0) not in told("pbspro", "#PBS -j oe -o a\n", "slurm")


def test_55_commas_in_variables() -> None:
    assert header("pbspro", "#PBS -v A=\"'x,y'\",B=1\n", "slurm") == ["--export=\"'A=x,y',B=1\""]
    assert options("slurm", "#SBATCH --export=ALL,A=\"'x,y'\"\n") == ["--export=\"ALL,A='x,y'\""]


def test_56_57_defaults_that_differ() -> None:
    subjects = [s for _, s, _, _ in told("slurm", "#SBATCH -J a\n", "pbspro")]
    assert subjects == ["Environment", "InitialWorkingDirectory", "OutputFile"]
    assert [s for _, s, _, _ in told("pbspro", "#PBS -V\n", "torque")] == []


def text_of(name: str, text: str, to: str, **options: str) -> list[str]:
    """The lines of the script for another system."""
    document, _ = read(name, SH + text)
    return get(to).write(document, WriteContext(Findings("job"), options=options)).splitlines()


def test_57_a_script_goes_where_it_would_start() -> None:
    """What -D, -cwd and the directory of submission are to Slurm and Grid Engine, commands are to PBS Pro."""
    assert text_of("slurm", "#SBATCH -J a\n./a\n", "pbspro")[1:] == ["#PBS -N a", 'cd "$PBS_O_WORKDIR"', "./a"]
    assert text_of("slurm", "#SBATCH -D /x\n./a\n", "pbspro")[1:] == ["cd /x", "./a"]
    assert text_of("slurm", "#SBATCH -D '/x y' -i in\n./a\n", "pbspro")[1:] == ["cd '/x y'", "exec < in", "./a"]
    assert text_of("slurm", "#SBATCH -D sub\n./a\n", "pbspro")[1:] == ['cd "$PBS_O_WORKDIR/sub"', "./a"]
    assert text_of("sge", "#$ -cwd\n./a\n", "pbspro")[1:] == ['cd "$PBS_O_WORKDIR"', "./a"]
    assert text_of("slurm", "#SBATCH -D /x\n./a\n", "torque")[1:] == ["#PBS -d /x", "./a"]
    assert text_of("slurm", "./a\n", "sge")[1:] == ["#$ -cwd", "./a"]
    for kept in ("./a\n", "cd $SLURM_SUBMIT_DIR\n./a\n"):
        assert text_of("slurm", kept, "pbspro", body="keep")[1:] == kept.splitlines()
    assert text_of("slurm", "cd /x\n./a\n", "pbspro")[1:] == ["cd /x", "./a"]
    document, _ = read("slurm", "#!/usr/bin/env python3\n#SBATCH -D /x\nprint()\n")
    findings = Findings("job")
    assert get("pbspro").write(document, WriteContext(findings)) == "#!/usr/bin/env python3\nprint()\n"
    assert ("dropped", "InitialWorkingDirectory", 2, 9) in [(f.kind, f.subject, f.line, f.column) for f in findings]


def test_57_a_home_directory_is_told_unless_the_script_leaves_it() -> None:
    assert "InitialWorkingDirectory" in [s for _, s, _, _ in told("pbspro", "./a\n", "slurm")]
    assert "InitialWorkingDirectory" not in [s for _, s, _, _ in told("pbspro", "cd $PBS_O_WORKDIR\n./a\n", "slurm")]


def test_58_the_index_is_the_one_that_was_asked_for() -> None:
    """Grid Engine and LSF count from 1, HTCondor from 0: the variable of the script says what it said before."""
    def index(array: str, to: str) -> str:
        document, _ = read("slurm", SH + f"#SBATCH -a {array}\necho $SLURM_ARRAY_TASK_ID\n")
        files = get(to).files
        made = get(to).write(document, WriteContext()) if files is None else "".join(
            files(document, WriteContext()).values())
        line = next(line for line in made.splitlines() if "export SLURM_ARRAY_TASK_ID" in line)
        return line.partition('SLURM_ARRAY_TASK_ID="')[2].partition('"; ')[0]

    number = "$(sed -n 's/^ProcId = //p' \"$_CONDOR_JOB_AD\")"
    assert index("0-9", "sge") == "$((SGE_TASK_ID - 1))" and index("1-9", "sge") == "${SGE_TASK_ID}"
    assert index("0,3", "lsf") == "$((LSB_JOBINDEX - 1))" and index("1,3", "lsf") == "${LSB_JOBINDEX}"
    assert index("0-9", "htcondor") == number
    assert index("3-9:2", "htcondor") == f"$(({number} * 2 + 3))"
    assert index("0-9", "pbspro") == "${PBS_ARRAY_INDEX}"


def test_a_file_of_each_element_stays_one() -> None:
    """%j is an id of each element of an array, $JOB_ID and %J are one for all of them."""
    text = "#SBATCH -a 1-9 -o out.%j -e err.%A\n"
    assert options("slurm", text, "pbspro")[1:] == ['-o "out.^jobid^.^array_index^"', '-e "err.^array_id^"']
    assert "#$ -o out.$JOB_ID.$TASK_ID" in text_of("slurm", text, "sge")
    assert "#BSUB -oo out.%J.%I" in text_of("slurm", text, "lsf")
    assert "#SBATCH --output=d/%x.o%A.%a" in text_of("sge", "#$ -t 1-9 -o d/\n", "slurm")
    assert "#SBATCH --output=o.%A" in text_of("sge", "#$ -t 1-9 -o o.$JOB_ID\n", "slurm")


def test_a_single_chunk_is_on_one_node() -> None:
    assert header("pbspro", "#PBS -l select=1:ncpus=8:mem=32gb:ngpus=2\n", "slurm") == [
        "--nodes=1", "--ntasks-per-node=1", "--cpus-per-task=8", "--mem=32G", "--gpus-per-node=2"]
    assert header("pbspro", "#PBS -l select=1:ncpus=8\n") == ["-l select=1:ncpus=8"]


def test_the_project_that_a_site_charges() -> None:
    assert options("pbspro", "#PBS -P p\n") == ["-P p"] and options("pbspro", "#PBS -P p\n", "slurm") == ["--account=p"]
    assert options("pbspro", "#PBS -P p -A a\n") == ["-A a", "-P p"]
    assert options("pbspro", "#PBS -P p -A a\n", "slurm") == ["--account=a"]
    assert ("dropped", "Extension P", 2, 6) in told("pbspro", "#PBS -P p -A a\n", "slurm")


def test_macros_in_arguments_are_variables() -> None:
    text = 'executable = run.sh\narguments = "$(Process) x_$(Cluster).txt \'a b\'"\nqueue 3\n'
    document, _ = read("htcondor", text)
    made = {to: get(to).write(document, WriteContext()).splitlines()[-1] for to in ("slurm", "sge", "flux")}
    assert made == {
        "slurm": "./run.sh \"${SLURM_ARRAY_TASK_ID}\" x_\"${SLURM_ARRAY_JOB_ID}\".txt 'a b'",
        "sge": "./run.sh \"$((SGE_TASK_ID - 1))\" x_\"${JOB_ID}\".txt 'a b'",
        "flux": "./run.sh '$(Process)' 'x_$(Cluster).txt' 'a b'"}
    assert "arguments = \"$(Process) x_$(Cluster).txt 'a b'\"" in get("htcondor").write(document, WriteContext())


def test_an_executable_is_a_file_of_the_directory_of_submission() -> None:
    """HTCondor looks for no command; a shell takes a bare name for one."""
    def job_of(text: str) -> Job:
        return next(j for j, _ in read("htcondor", text)[0].jobs())

    assert job_of("executable = run.sh\nqueue\n").executable == "./run.sh"
    assert job_of("executable = bin/run.sh\nqueue\n").executable == "bin/run.sh"
    in_image = "universe = docker\ndocker_image = x\ntransfer_executable = False\nexecutable = date\nqueue\n"
    assert job_of(in_image).executable == "date"
    for said, written, kinds in (("./run.sh", "run.sh", []), ("/bin/date", "/bin/date", []),
                                 ("date", "date", [("approximated", "Executable")])):
        job = Job()
        job.set("Executable", said)
        findings = Findings("job")
        assert get("htcondor").write(Document(job), WriteContext(findings)) == f"executable = {written}\nqueue\n"
        assert [(f.kind, f.subject) for f in findings] == kinds


def test_slots_with_processors_of_their_own_are_tasks() -> None:
    assert header("lsf", '#BSUB -n 4 -R "affinity[core(2)]"\n', "slurm") == ["--ntasks=4", "--cpus-per-task=2"]
    assert options("lsf", "#BSUB -n 4\n", "slurm") == ["--ntasks=4"]


def test_the_shell_stands_in_the_first_line() -> None:
    assert text_of("pbspro", "#PBS -S /bin/bash\n./a\n", "slurm") == ["#!/bin/bash", "#!/bin/sh", "./a"]
    assert text_of("pbspro", "#PBS -S /bin/bash\n./a\n", "torque")[:2] == ["#!/bin/sh", "#PBS -S /bin/bash"]


def test_58_33_array_forms() -> None:
    assert header("slurm", "#SBATCH -a 0-9%3\n", "pbspro") == ["-J 0-9%3"]
    assert header("slurm", "#SBATCH -a 1,3\n", "pbspro") == []
    assert header("slurm", "#SBATCH -a 1,3\n", "torque") == ["-t 1,3"]
    assert ("dropped", "Extension Array", 2, 9) in told("slurm", "#SBATCH -a 1,3\n", "pbspro")


def test_59_the_same_letter() -> None:
    assert header("pbspro", "#PBS -J 1-10\n", "slurm") == ["--array=1-10"]
    assert header("torque", "#PBS -t 1-10\n", "pbspro") == ["-J 1-10"]
    assert header("torque", "#PBS -P other -q q\n", "pbspro") == ["-q q"]
    assert header("slurm", "#SBATCH -q high -N 2\n", "torque") == ["-l nodes=2", "-l qos=high"]


def test_60_61_dependencies() -> None:
    assert header("pbspro", "#PBS -W depend=afterok:1:2,afterany:3\n", "slurm") == [
        "--dependency=afterok:@JOBID:1@:@JOBID:2@,afterany:@JOBID:3@"]
    assert header("pbspro", "#PBS -W depend=afterok:1:2,afterany:3\n", "pbspro") == [
        "-W depend=afterok:1:2,afterany:3"]


def test_62_heterogeneous_jobs() -> None:
    assert options("slurm", "#SBATCH -n 4\n#SBATCH hetjob\n#SBATCH -n 16 --mem-per-cpu=1G\n") == [
        "--ntasks=4", "hetjob", "--ntasks=16", "--mem-per-cpu=1G"]
    assert header("slurm", "#SBATCH -n 4\n#SBATCH packjob\n#SBATCH -n 16 --mem-per-cpu=1G\n", "pbspro") == [
        "-l select=4:ncpus=1:mpiprocs=1+16:ncpus=1:mpiprocs=1:mem=1gb"]


def test_63_constraints() -> None:
    assert options("slurm", '#SBATCH -C "a|b"\n') == ['--constraint="a|b"']
    assert options("slurm", '#SBATCH -C "[r1*2&r2*4]"\n') == ['--constraint="[r1*2&r2*4]"']
    assert ("dropped", "Feature", 2, 9) in told("slurm", '#SBATCH -C "a|b"\n', "pbspro")
    assert header("slurm", '#SBATCH -C "a&b"\n', "pbspro") == ["-l select=1:a=true:b=true"]


def test_65_singleton_and_bare_ids() -> None:
    assert options("slurm", "#SBATCH --dependency=singleton\n") == ["--dependency=singleton"]
    assert options("slurm", "#SBATCH -d 123\n") == ["--dependency=afterany:123"]
    assert ("dropped", "Extension DependencyOther", 2, 9) in told("slurm", "#SBATCH -d singleton\n", "pbspro")


def test_66_templates() -> None:
    for value in ("{{nodes}}", "%(n)s", "$${n}", "<my_node_count>", "@N@", "!TBG_n"):
        assert told("slurm", f"#SBATCH -N '{value}'\n") == [("template", "--nodes", 2, 9)]
        assert options("slurm", f"#SBATCH -N '{value}'\n")[0].strip('"').startswith("--nodes=")


def test_a_list_of_groups_is_one_option() -> None:
    """parse_equal_string of qsub: what has no = belongs to the value before it."""
    text = "#PBS -W group_list=a,b@h,depend=afterok:1,afterany:2,umask=022\n"
    for name in ("pbspro", "torque"):
        assert options(name, text) == ["-W group_list=a,b@h", "-W depend=afterok:1,afterany:2", "-W umask=022"]
    assert options("pbspro", text, "torque")[0] == "-W group_list=a,b@h"
    assert options("pbspro", "#PBS -W group_list=a\n", "slurm") == []     # which sbatch takes of root alone
    assert options("pbspro", "#PBS -W group_list=a,b\n", "slurm") == []
    assert ("dropped", "Extension GroupList", 2, 6) in told("pbspro", "#PBS -W group_list=a,b\n", "slurm")
    job = Job()
    job.set("Group", "a,umask=000")
    document = Document(job)
    context = WriteContext(Findings("job"), policy=Policy.WARN)
    assert "umask" not in get("pbspro").write(document, context)
    assert [(f.kind, f.subject) for f in context.findings] == [("dropped", "Group")]


def test_an_error_file_that_is_dropped_does_not_join_the_streams() -> None:
    text = "#SBATCH -o a.out -e %N\n"
    assert options("slurm", text, "pbspro") == options("slurm", text, "torque") == ["-o a.out"]
    assert options("slurm", "#SBATCH -o a.out\n", "pbspro") == ["-j oe", "-o a.out"]


def test_appending_is_said_by_open_mode() -> None:
    assert options("lsf", "#BSUB -o a -e b\n", "slurm") == ["--output=a", "--error=b", "--open-mode=append"]
    assert options("lsf", "#BSUB -oo a -eo b\n", "slurm") == ["--output=a", "--error=b"]
    assert ("approximated", "ErrorFile", 0, 0) in told("lsf", "#BSUB -oo a -e b\n", "slurm")
    assert options("slurm", "#SBATCH -o a --open-mode=a\n") == ["--output=a", "--open-mode=append"]
    assert options("slurm", "#SBATCH --open-mode=append\n") == ["--open-mode=append"]
    assert options("slurm", "#SBATCH -o a --open-mode=truncate\n") == ["--output=a", "--open-mode=truncate"]


def test_slots_are_tasks_where_the_list_of_nodes_counts_tasks() -> None:
    """-l ncpus=4 alone is one line of PBS_NODEFILE, which LSB_DJOB_NUMPROC is counted from."""
    assert options("lsf", "#BSUB -n 4\n", "pbspro") == ["-l select=4:ncpus=1:mpiprocs=1"]
    assert options("lsf", "#BSUB -n 4\n", "torque") == ["-l procs=4"]
    assert options("pbspro", "#PBS -l ncpus=4\n") == ["-l ncpus=4"]


@given(st.text("ab \t\n\\'\"é\x0b#", max_size=12))
def test_words_are_those_of_shlex(text: str) -> None:
    """shlex.split takes time by the square of a word: 20 s for an argument of 1 MB."""
    def read(split: object) -> list[str] | None:
        try:
            return list(split(text))  # type: ignore[operator]
        except ValueError:
            return None

    assert read(shell_words) == read(shlex.split)


@pytest.mark.parametrize("name", ["pbspro", "torque"])
def test_long_options_are_told_as_getopt_takes_them(name: str) -> None:
    """A script of NQSV: qsub has letters alone, and its getopt stops at the second dash."""
    findings = Findings("x")
    with pytest.raises(RejectedError):
        get(name).read(b"#!/bin/sh\n#PBS -q x --venode=8 -N y\n", ReadContext("x", findings))
    assert [str(f).partition(": ")[2] for f in findings] == [
        "SSS505 error --venode=8: no such option; those of qsub are single letters, and it stops at the second dash "
        "(invalid option -- '-')"]
    assert [(f.line, f.column, f.subject) for f in findings] == [(2, 11, "--venode=8")]
    assert options(name, "#PBS -N x --\n") == ["-N x"]             # it ends the options
    assert options(name, "#PBS -N x -- -q y\n") == (["refused"] if name == "pbspro" else ["-N x"])


def test_what_the_family_of_pbs_knows_alike_goes_both_ways() -> None:
    text = "#PBS -k oe\n#PBS -c c=5\n#PBS -W stagein=a@h:b\n#PBS -l pvmem=4gb\n"
    said = ["-W stagein=a@h:b", "-l pvmem=4gb", "-c c=5", "-k oe"]
    assert options("torque", text, "pbspro") == options("pbspro", text, "torque") == said
    assert options("pbspro", "#PBS -k doe\n", "torque") == []                 # d is PBS Pro's alone
    assert ("dropped", "Extension k", 2, 6) in told("pbspro", "#PBS -k doe\n", "torque")
    assert options("torque", text, "sge") == []


def test_priorities_at_their_default_and_of_other_scales() -> None:
    """LSF counts from 1, so that its lowest priority would be a nice value that only an administrator may ask for."""
    assert options("torque", "#PBS -p 0\n", "slurm") == options("slurm", "#SBATCH --nice=0\n", "torque") == []
    assert options("lsf", "#BSUB -sp 1\n", "slurm") == []
    assert ("dropped", "Priority", 2, 7) in told("lsf", "#BSUB -sp 1\n", "slurm")
    assert options("torque", "#PBS -p 5\n", "slurm") == ["--nice=-5"]


def test_the_id_of_an_array_is_that_of_a_job_that_is_none() -> None:
    assert options("slurm", "#SBATCH -o a.%A\n", "pbspro") == ["-j oe", '-o "a.^jobid^"']
    assert options("slurm", "#SBATCH -o a.%A\n") == ["--output=a.%A"]


def test_a_requirement_is_told_where_it_stands() -> None:
    """Not where the last -R stands."""
    text = "#BSUB -R order[ut]\n#BSUB -R span[hosts=1]\n"
    assert [(subject, line) for kind, subject, line, _ in told("lsf", text, "slurm") if kind == "dropped"] == [
        ("Extension R", 2)]


def test_a_licence_of_a_server() -> None:
    assert options("slurm", "#SBATCH -L a@db:2\n") == ["--licenses=a@db:2"]


def test_the_mode_of_a_script_is_what_others_do_anyway() -> None:
    document, _ = read("cobalt", "#!/bin/sh\n#COBALT -n 1 --mode script\n")
    context = WriteContext(Findings("x"), policy=Policy.WARN)
    get("slurm").write(document, context)
    assert [f.severity for f in context.findings if "mode" in f.subject] == ["info"]


@pytest.mark.parametrize(("said", "written"), [
    (("BEGIN", "END"), ["--mail-type=BEGIN,END"]), (("NONE", "END"), ["--mail-type=END"]),
    (("END", "NONE"), ["--mail-type=END"]), (("NONE",), ["--mail-type=NONE"]),
    (("END,FAIL", "FAIL"), ["--mail-type=END,FAIL"])])
def test_mail_types_add_up(said: tuple[str, ...], written: list[str]) -> None:
    """As sbatch 22.05.8 reads them (seen); lint does not call the first one lost."""
    text = "".join(f"#SBATCH --mail-type={words}\n" for words in said)
    assert options("slurm", text) == written
    assert "SSS524" not in {finding.rule for finding in lint("slurm", (SH + text).encode())}


def test_memory_of_the_whole_job_goes_into_the_chunks() -> None:
    """qsub of PBS Pro takes none beside select; lint says so, and a script that has it is refused."""
    assert header("torque", "#PBS -l nodes=2:ppn=20\n#PBS -l mem=124GB\n", "pbspro") == [
        "-l select=2:ncpus=20:mpiprocs=20:mem=62gb", "-l place=scatter"]
    assert header("torque", "#PBS -l nodes=1:ppn=20+2:ppn=3\n#PBS -l mem=96gb\n", "pbspro") == [
        "-l select=1:ncpus=20:mpiprocs=20:mem=32gb+2:ncpus=3:mpiprocs=3:mem=32gb", "-l place=scatter"]
    text = "#PBS -l select=2:ncpus=20\n#PBS -l mem=100gb\n"
    assert options("pbspro", text) == ["refused"]
    assert [f.rule for f in lint("pbspro", (SH + text).encode()) if f.severity == "error"] == ["SSS505"]


def test_gpus_of_the_whole_job() -> None:
    """The old form of PBS Pro, one amount of each resource."""
    text = "#PBS -l ncpus=4\n#PBS -l mem=20gb\n#PBS -l ngpus=2\n"
    assert header("pbspro", text) == ["-l ncpus=4", "-l mem=20gb", "-l ngpus=2"]
    assert "--gpus=2" in header("pbspro", text, "slurm")


def test_threads_of_a_chunk() -> None:
    """Jobs of PBS Pro have OMP_NUM_THREADS from ompthreads; a script that sets it itself is left alone."""
    text = "#PBS -l select=1:ncpus=4:ompthreads=4\n{}./a\n"
    assert text_of("pbspro", text.format(""), "slurm")[-2:] == ["export OMP_NUM_THREADS=4", "./a"]
    assert text_of("pbspro", text.format("export OMP_NUM_THREADS=2\n"), "slurm")[-2:] == [
        "export OMP_NUM_THREADS=2", "./a"]
    assert header("pbspro", text.format("")) == ["-l select=1:ncpus=4:ompthreads=4"]


def test_a_folder_of_the_job_s_own() -> None:
    """Grid Engine and PBS Pro make one and remove it; Slurm's jobs share theirs with others."""
    body = text_of("pbspro", "cp -r $TMPDIR/* .\nrm -rf $TMPDIR/*\n", "slurm")
    assert body[1:] == ["# >>> sssjob shim: pbspro on slurm, fe7fab82", 'export TMPDIR="$(mktemp -d)"',
                        "trap 'rm -rf \"$TMPDIR\"' 0", "# <<< sssjob shim", "cp -r $TMPDIR/* .", "rm -rf $TMPDIR/*"]
    assert text_of("pbspro", "cp -r $TMPDIR/* .\n", "torque")[1:] == ["cp -r $TMPDIR/* ."]
    assert text_of("slurm", "cp -r $TMPDIR/* .\n", "sge")[-1] == "cp -r $TMPDIR/* ."


def test_a_piece_of_a_file_name_that_the_target_lacks() -> None:
    """The rest of the name is written, unless the files of several jobs would then be one."""
    text = "#SBATCH -J a\n#SBATCH -o %x.o%j.%N -e err/%u\n"
    assert options("slurm", text, "pbspro")[1:] == ['-o "a.o^jobid^"', "-e err/"]
    assert [kind for kind, subject, *_ in told("slurm", text, "pbspro") if subject == "OutputFile"] == [
        "approximated", "dropped"]
    assert options("slurm", "#SBATCH -o a.%a\n#SBATCH -a 1-3\n", "cobalt") == options(
        "slurm", "#SBATCH -a 1-3\n", "cobalt")


def test_a_script_without_a_first_line() -> None:
    """It stays without one for its own manager; for another one the shell is that of -S, or it is told."""
    def lines(text: str, source: str, to: str) -> tuple[list[str], list[str]]:
        document = get(source).read(text.encode(), ReadContext("job", Findings("job")))
        findings = Findings("job")
        return get(to).write(document, WriteContext(findings)).splitlines(), [
            f.rule for f in findings if f.subject == "Shell"]

    text = "#PBS -N a\n#PBS -S /bin/bash\nsource ~/x.sh\n"
    assert lines(text, "pbspro", "pbspro") == (text.splitlines(), [])
    assert lines(text, "pbspro", "slurm")[0][0] == "#!/bin/bash"
    assert lines("#$ -N a\nls\n", "sge", "sge") == (["#$ -N a", "ls"], [])
    messages = lines("#PBS -N a\nls\n", "torque", "slurm")
    assert (messages[0][0], messages[1]) == ("#!/bin/sh", ["SSS528"])
