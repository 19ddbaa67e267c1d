"""Further cases of faults that were mended once: the same kind in another dialect, another option, another spelling."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators.base import ReadContext, WriteContext
from sssjob.translators.registry import get


def convert(source: str, target: str, text: str, body: str = "shim") -> tuple[str, list[str]]:
    """What is written below the first line, and what is told, but for what every conversion tells of defaults."""
    findings = Findings("s")
    document = get(source).read(text.encode(), ReadContext("s", findings, policy=Policy.WARN))
    written = get(target).write(document, WriteContext(findings, policy=Policy.WARN, options={"body": body}))
    usual = ("Environment: jobs of", "InitialWorkingDirectory: a job of", "OutputFile: without an option output of")
    return written.partition("\n")[2], [
        f"{f.rule} {f.message}" for f in findings if f.kind != "exact" and not f.message.startswith(usual)]


FIRST = "#!/bin/bash\n"


@pytest.mark.parametrize(("source", "target", "text", "written", "expected"), [
    # a statement that all of a mail's events are known, and one that is not
    ("slurm", "slurm", "#SBATCH --mail-type=NONE\n#SBATCH --mail-type=FAIL\n", "#SBATCH --mail-type=FAIL\n", []),
    ("slurm", "slurm", "#SBATCH --mail-type=FAIL,X\n", "#SBATCH --mail-type=FAIL\n",
     ["SSS502 --mail-type FAIL,X: events that sbatch does not know are left out, as it does"]),
    # the name of a file keeps what the target can say
    ("slurm", "lsf", "#SBATCH -o logs/%N/%u.o%j\n", "#BSUB -oo logs/o%J\n", [
        f"SSS501 --output logs/%N/%u.o%j: OutputFile: LSF has no {{{token}}} in file names; the rest of the name is "
        "written" for token in ("host", "user")]),
    ("slurm", "lsf", "#SBATCH -o %u\n", "",
     ["SSS501 --output %u: OutputFile: dropped, LSF has no {user} in file names"]),
    # a job without a name is called as its script
    ("sge", "pbspro", "#$ -o logs/$JOB_NAME.log\n", "#PBS -o logs/s.log\n", [
        "SSS502 -o logs/$JOB_NAME.log: PBS Pro empties a file that is there, where Grid Engine appends to it",
        "SSS502 -o logs/$JOB_NAME.log: the name stands in the file name as s, as the script is called"]),
    # the index in a name moves with that of the elements
    ("slurm", "lsf", "#SBATCH -a 0-3 -o p-%a.txt\n", '#BSUB -J "[1-4]"\n#BSUB -oo p-%I.txt\n', [
        "SSS502 --output p-%a.txt: OutputFile: the index in it is one more than before, as that of the tasks",
        "SSS502 --array 0-3: indices are counted from 1: 1-4, each one more than was asked for"]),
    # the processors of a task stand in front of what else affinity says
    ("lsf", "slurm", '#BSUB -n 2\n#BSUB -R "affinity[core(3,same=socket):distribute=pack]"\n',
     "#SBATCH --ntasks=2\n#SBATCH --cpus-per-task=3\n", [
         "SSS501 -R affinity[core(3,same=socket):distribute=pack]: affinity=(same=socket):distribute=pack of this "
         "option is dropped, Slurm has no place for it"]),
    ("lsf", "lsf", '#BSUB -n 2\n#BSUB -R "affinity[core(3,exclusive=(socket,alljobs))*1:distribute=pack]"\n',
     '#BSUB -n 2\n#BSUB -R "affinity[core(3,exclusive=(socket,alljobs))*1:distribute=pack]"\n', []),
    ("lsf", "lsf", '#BSUB -n 2\n#BSUB -R "affinity[core(2,same=numa)]"\n',
     '#BSUB -n 2\n#BSUB -R "affinity[core(2,same=numa)*1]"\n', []),
    # one chunk is one node, and nothing has to be said of it; one cause is told once
    ("pbspro", "torque", "#PBS -l ngpus=2,ncpus=6\n", "#PBS -l nodes=1:ppn=6:gpus=2\n", []),
    # all of some hosts are not the first of them; who is not wanted beside all that are, need not be named
    ("slurm", "sge", "#SBATCH -w n[1-3] -n 4 -x bad\n", "#$ -pe @PE@ 4\n#$ -l h=n1|n2|n3\n#$ -cwd\n", [
        "SSS504 Processors: @PE@ stands for the parallel environment, whose name the site knows",
        "SSS502 Node: any of the hosts, not all of them",
        "SSS502 --exclude bad: left out, for no host is taken but those that are asked for by name"]),
    ("slurm", "torque", "#SBATCH -w a1,b7\n#SBATCH -n 6\n", "#PBS -l nodes=6:ppn=1\n", [
        "SSS502 NodeCount: 6 chunks, perhaps on one node, are written as nodes",
        "SSS501 --nodelist a1,b7: Node: dropped, each part of -l nodes names one host"]),
    ("slurm", "pbspro", "#SBATCH -w a1,b7 -x c -N 2 --ntasks-per-node=1\n",
     "#PBS -l select=1:ncpus=1:mpiprocs=1:host=a1+1:ncpus=1:mpiprocs=1:host=b7\n",
     ["SSS502 --exclude c: left out, for no host is taken but those that are asked for by name"]),
    # hosts that are named one by one are nodes of one kind, and not a heterogeneous job
    ("torque", "slurm", "#PBS -l nodes=a:ppn=4:ib+c:ppn=4:ib\n",
     "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --constraint=ib\n#SBATCH --nodelist=a,c\n", [
         "SSS504 -l nodes a:ppn=4:ib+c:ppn=4:ib: asked for as the feature ib, a name that the site has to know"]),
    ("torque", "torque", "#PBS -l nodes=a:ppn=4+c:ppn=4+c:ppn=2+2:ppn=4\n",
     "#PBS -l nodes=a:ppn=4+c:ppn=4+c:ppn=2+2:ppn=4\n", []),
    ("pbspro", "slurm", "#PBS -l select=1:ncpus=2:host=a:mem=1gb+1:host=b:ncpus=2:mem=1gb\n",
     "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=2\n#SBATCH --mem=1G\n"
     "#SBATCH --nodelist=a,b\n", []),
    ("pbspro", "pbspro", "#PBS -l select=1:ncpus=2:host=a+1:ncpus=2:host=b+1:ncpus=2:host=b\n",
     "#PBS -l select=1:ncpus=2:host=a+1:ncpus=2:host=b+1:ncpus=2:host=b\n", []),
    # each file that is copied has an option of its own; each -R that only LSF can say is told at its line
    ("lsf", "lsf", '#BSUB -f "a > b" -f "c < d"\n', '#BSUB -f "a > b"\n#BSUB -f "c < d"\n', []),
    ("lsf", "slurm", '#BSUB -R "2*{order[ut]}+1*{span[hosts=1]}"\n#BSUB -R "same[model]"\n', "", [
        "SSS501 -R 2*{order[ut]}+1*{span[hosts=1]}: dropped, Slurm has no place for it",
        "SSS501 -R same[model]: dropped, Slurm has no place for it"]),
    ("lsf", "lsf", "#BSUB -M 8GB!\n", '#BSUB -M "8GB!"\n', []),
    # whole nodes are those of all chunks; of one component of Slurm they are its own
    ("pbspro", "slurm", "#PBS -l select=1:ncpus=2+1:ncpus=4,place=scatter:excl\n",
     "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=2\n#SBATCH --exclusive\n#SBATCH hetjob\n"
     "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=4\n#SBATCH --exclusive\n", [
         "SSS502 TaskGroup: Slurm starts the script in the first of 2 components, whose nodes are all that mpirun "
         "sees; srun --het-group=0,1 starts tasks in several"]),
    ("slurm", "slurm", "#SBATCH --exclusive\n#SBATCH --ntasks=1\n#SBATCH hetjob\n#SBATCH --ntasks=2\n",
     "#SBATCH --ntasks=1\n#SBATCH --exclusive\n#SBATCH hetjob\n#SBATCH --ntasks=2\n", []),
    ("slurm", "slurm", "#SBATCH --ntasks=1 --exclusive\n#SBATCH hetjob\n#SBATCH --ntasks=2 --exclusive\n",
     "#SBATCH --ntasks=1\n#SBATCH --exclusive\n#SBATCH hetjob\n#SBATCH --ntasks=2\n#SBATCH --exclusive\n", []),
    ("slurm", "slurm", "#SBATCH --get-user-env=10L\n", "#SBATCH --get-user-env=10L\n", []),
    # Moab and Maui are told who may share a node
    ("torque", "slurm", "#PBS -l nodes=1:ppn=2,naccesspolicy=singlejob\n",
     "#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=2\n#SBATCH --exclusive\n",
     ["SSS502 -l naccesspolicy singlejob: with which of several options it was said is not carried"]),
    ("torque", "torque", "#PBS -W x=NACCESSPOLICY:SINGLETASK\n", "#PBS -W x=NACCESSPOLICY:SINGLETASK\n", []),
    ("torque", "torque", "#PBS -n\n#PBS -W x=GRES:m@2;QOS:x\n", '#PBS -n\n#PBS -W "x=GRES:m@2;QOS:x"\n', []),
    # a term that only LSF can say does not take the others with it
    ("lsf", "pbspro", '#BSUB -w "done(11) && exit(12,>2)"\n', "#PBS -W depend=afterok:@JOBID:11@\n", [
        "SSS504 -w done(11) && exit(12,>2): 11 is an id of another system; @JOBID:11@ stands for its successor",
        "SSS501 -w done(11) && exit(12,>2): exit(12,>2) of this option is dropped, PBS Pro has no place for it"]),
    ("lsf", "lsf", '#BSUB -w "done(11) && exit(12,>2) && ended(13)"\n',
     '#BSUB -w "done(11) && ended(13) && exit(12,>2)"\n', []),
    # elements that wait for those of the same index
    ("sge", "slurm", "#$ -t 1-4\n#$ -hold_jid_ad 77,88\n", "#SBATCH --array=1-4\n"
     "#SBATCH --dependency=aftercorr:@JOBID:77@:@JOBID:88@\n", [
         "SSS504 -hold_jid_ad 77,88: 77 is a job of another system; @JOBID:77@ stands for its successor",
         "SSS504 -hold_jid_ad 77,88: 88 is a job of another system; @JOBID:88@ stands for its successor",
         "SSS502 -hold_jid_ad 77,88: Slurm waits for the success of each element"]),
    ("slurm", "sge", "#SBATCH -a 1-4 -d aftercorr:9\n", "#$ -t 1-4\n#$ -hold_jid_ad @JOBID:9@\n#$ -cwd\n", [
        "SSS504 --dependency aftercorr:9: 9 is a job of another system; @JOBID:9@ stands for its successor",
        "SSS502 --dependency aftercorr:9: Grid Engine waits for the end of each element, not for its success"]),
    ("sge", "sge", "#$ -hold_jid_ad a,12\n#$ -hold_jid 7\n", "#$ -hold_jid_ad a,12\n#$ -hold_jid 7\n", []),
    ("sge", "sge", "#$ -hold_jid_ad a*\n", "#$ -hold_jid_ad a*\n", []),
    ("slurm", "pbspro", "#SBATCH -a 1-4 -d aftercorr:9\n", "#PBS -J 1-4\n", [
        "SSS501 --dependency aftercorr:9: Extension DependencyOther: dropped, PBS Pro cannot say aftercorr:9"]),
    # memory of each GPU is that of its host
    ("slurm", "lsf", "#SBATCH -N 2 --ntasks-per-node=2 --gpus-per-node=2 --mem-per-gpu=3G\n",
     '#BSUB -n 4\n#BSUB -R "span[ptile=2]"\n#BSUB -R "rusage[mem=6GB]"\n#BSUB -gpu "num=2"\n',
     ["SSS502 --mem-per-gpu 3G: written for each host, 2 times as much"]),
    # a job at another server of PBS
    ("torque", "slurm", "#PBS -W depend=afteranyarray:9[]@s.example\n",
     '#SBATCH --dependency="afterany:@JOBID:9[]@"\n', [
         "SSS504 -W depend afteranyarray:9[]@s.example: 9[] is an id of another system; @JOBID:9[]@ stands for its "
         "successor"]),
    ("pbspro", "pbspro", "#PBS -W depend=on:3,afterok:7.a@b:8\n", "#PBS -W depend=afterok:7.a@b:8,on:3\n", []),
    ("pbspro", "torque", "#PBS -W depend=on:3\n", "#PBS -W depend=on:3\n", []),
    ("pbspro", "slurm", "#PBS -W depend=on:3\n", "",
     ["SSS501 -W depend on:3: Extension DependencyOther: dropped, Slurm cannot say on:3"]),
    # what is lost is said to be dropped
    ("slurm", "sge", "#SBATCH --switches=1\n", "#$ -cwd\n",
     ["SSS501 --switches 1: Extension Switches: dropped, Grid Engine has no place for it"]),
])
def test_directives(source: str, target: str, text: str, written: str, expected: list[str]) -> None:
    assert convert(source, target, f"{FIRST}{text}") == (written, expected)


@pytest.mark.parametrize(("lines", "named"), [
    ("#$ -j y\n", "OutputFile: without an option output of Grid Engine is in NAME.oID with errors, that of Slurm in "
                  "slurm-ID.out with errors; the commands name such a file"),
    ("#$ -e err\n", "OutputFile: without an option output of Grid Engine is in NAME.oID with errors, that of Slurm in "
                    "slurm-ID.out with errors; the commands name such a file"),
    ("#$ -o out\n", "")])
def test_commands_that_read_a_file_of_the_old_name(lines: str, named: str) -> None:
    """Where the errors go says nothing of the file of the output."""
    findings = Findings("s")
    document = get("sge").read(f"{FIRST}#$ -N sim\n{lines}cat sim.o$JOB_ID\n".encode(), ReadContext("s", findings))
    get("slurm").write(document, WriteContext(findings, policy=Policy.WARN))
    messages = [f.message for f in findings if f.severity == "warning" and "without an option" in f.message]
    assert messages == ([named] if named else [])


@pytest.mark.parametrize(("target", "written"), [
    ("pbspro", "cd $TMPDIR\n"), ("htcondor", "cd ${_CONDOR_SCRATCH_DIR}\n"),
    ("flux", 'export SLURM_TMPDIR="$(mktemp -d)"\ntrap \'rm -rf "$SLURM_TMPDIR"\' 0\n')])
def test_a_folder_that_only_some_sites_make(target: str, written: str) -> None:
    text, findings = convert("slurm", target, f"{FIRST}cd $SLURM_TMPDIR\n", "translate")
    assert written in text or target == "htcondor"          # whose script stands beside
    assert [line for line in findings if "SLURM_TMPDIR" in line and "some sites of Slurm set it, and no other" in line]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_one_folder_of_two_names_and_a_file_are_all_removed(tmp_path: Path) -> None:
    """TMP and TMPDIR of Grid Engine are one folder, and a shell has one trap for all that is to be removed."""
    text, _ = convert("sge", "slurm", f"{FIRST}touch $TMP/x; ls $TMPDIR; cat $PE_HOSTFILE; echo $TMPDIR $PE_HOSTFILE\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "scontrol").write_text("#!/bin/sh\necho n1\n")
    (tmp_path / "bin" / "scontrol").chmod(0o700)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-eu"], input=text, text=True, capture_output=True, check=True, env={
        "PATH": path, "SLURM_JOB_NODELIST": "n1", "SLURM_TASKS_PER_NODE": "2", "TMPDIR": str(tmp_path)})
    listed, hosts, made = done.stdout.splitlines()
    assert (listed, hosts) == ("x", "n1 2 UNDEFINED UNDEFINED")
    assert [name for name in made.split() if Path(name).exists()] == []
    bare = subprocess.run(["bash", "-eu"], input=text.replace("cat $PE_HOSTFILE; ", "").replace(" $PE_HOSTFILE", ""),
                          text=True, capture_output=True, check=True, env={"PATH": path, "TMPDIR": str(tmp_path)})
    assert (bare.stdout.splitlines()[0], bare.stderr) == ("x", "")
    assert not Path(bare.stdout.splitlines()[1]).exists()


@pytest.mark.parametrize("text", [
    "executable = a.sh\nerror : no\nqueue\n",
    "executable = a.sh\nif defined site\nelse\n  ERROR : $(x)\nendif\nqueue\n",
    "executable = a.sh\nif true\nerror: stop\nendif\nqueue\n"])
def test_a_statement_of_error_that_is_reached_refuses(text: str) -> None:
    with pytest.raises(RejectedError) as refused:
        get("htcondor").read(text.encode(), ReadContext("s", Findings("s")))
    assert [f.rule for f in refused.value.findings if f.rejects] == ["SSS505"]


@pytest.mark.parametrize("text", [
    "executable = a.sh\nif defined site\nerror : no\nendif\nqueue\n", "executable = a.sh\nerror = e.txt\nqueue\n",
    "executable = a.sh\nwarning : look\nqueue\n"])
def test_one_that_is_not_reached_does_not(text: str) -> None:
    findings = Findings("s")
    get("htcondor").read(text.encode(), ReadContext("s", findings))
    assert [f.severity for f in findings] == ["info"] * text.count("warning")


def test_the_binding_of_aprun_in_its_long_form() -> None:
    text, findings = convert("cobalt", "slurm", f"{FIRST}#COBALT -n 4\n#COBALT -t 10\naprun -n 8 -N 2 --cc depth ./a\n",
                             "translate")
    assert text.endswith("\nsrun -n 8 --ntasks-per-node=2 ./a\n")
    assert findings == ["SSS512 aprun became srun; --cc left out, for srun is told nothing of the kind"]


KEPT = "SSS511 qsub is a command of {}; the line is kept: --body translate writes {}"


@pytest.mark.parametrize(("source", "target", "call", "written", "title"), [
    ("torque", "pbspro", "qsub -t 1-3 x.sh", "qsub -J 1-3 x.sh", "Torque"),
    ("torque", "pbspro", "qsub -l nodes=2:ppn=4,walltime=1:0:0 x.sh",
     "qsub -l walltime=01:00:00 -l select=2:ncpus=4:mpiprocs=4 -l place=scatter x.sh", "Torque"),
    ("pbspro", "torque", "qsub -J 1-3 x.sh", "qsub -t 1-3 x.sh", "PBS Pro"),
    ("cobalt", "torque", "qsub -n 4 -t 30 x.sh", "qsub -l walltime=00:30:00 -l nodes=4 -n x.sh", "Cobalt"),
    ("torque", "pbspro", "qsub -N a x.sh", "qsub -N a x.sh", ""), ("pbspro", "torque", "qsub x.sh", "qsub x.sh", "")])
def test_two_commands_of_one_name(source: str, target: str, call: str, written: str, title: str) -> None:
    """What one takes the other refuses or takes for something else; it is no reason to say nothing that both are called
    qsub."""
    for body in ("keep", "shim", "translate"):
        text, findings = convert(source, target, f"{FIRST}cd /x\n{call}\n", body)
        of_call = [line for line in findings if line.startswith("SSS51")]
        assert text.endswith(f"{written if body == 'translate' else call}\n")
        assert of_call == ([KEPT.format(title, written)] if body == "keep" and title else [])
        assert (f"    command {written}\n" in text) == (body == "shim" and bool(title))


def test_what_a_call_cannot_say_is_told_in_every_mode() -> None:
    for body in ("keep", "shim", "translate"):
        text, told = convert("torque", "pbspro", f"{FIRST}cd /x\nqsub $OPTIONS x.sh\nqsub -T kind x.sh\n", body)
        assert text == "cd /x\nqsub $OPTIONS x.sh\nqsub -T kind x.sh\n"
        assert told == ["SSS511 qsub is a command of Torque; the line is kept: $OPTIONS may hold options",
                        "SSS511 qsub is a command of Torque; the line is kept: T kind: PBS Pro has no place for this "
                        "option of Torque"]


def test_a_step_without_devices_is_any_step() -> None:
    text, findings = convert("slurm", "flux", f"{FIRST}#SBATCH -n 4\nsrun --gres=none -n4 ./a\nsrun --gres=gpu:1 ./b\n",
                             "translate")
    assert text.endswith("flux run -n 4 ./a\nsrun --gres=gpu:1 ./b\n")
    assert [line for line in findings if "SSS511" in line] == [
        "SSS511 srun is a command of Slurm; the line is kept: flux run cannot say the GPUs of a node"]


@pytest.mark.parametrize(("body", "name"), [
    ("./a $1", "$1"), ('for f in "$@"; do ./a "$f"; done', "$@"), ("[ $# -eq 2 ] || exit 1", "$#"),
    ("./a ${2:-none}", "${2:-none}"), ("f() { echo $1; }\nf a\n./a ${*}", "${*}"),
    ("f() { echo $1; }\nf a", ""), ("awk '{print $1}' x", ""), ("set -- a b\n./a $1", ""), ("echo ${#x} $$ $? $!", ""),
    ("cat <<'E'\n$1\nE", ""), ("# $1\n./a", ""), ("echo \\$1", "")])
@pytest.mark.parametrize(("source", "target", "passes"), [("slurm", "lsf", False), ("sge", "pbspro", False),
                                                          ("slurm", "sge", True), ("pbspro", "lsf", True)])
def test_words_of_the_call_are_told_where_the_other_command_passes_none_on(source: str, target: str, passes: bool,
                                                                            body: str, name: str) -> None:
    _, findings = convert(source, target, f"{FIRST}{body}\n")
    titles = {"lsf": "LSF", "pbspro": "PBS Pro"}
    assert [line for line in findings if "passes none on" in line] == ([] if passes or not name else [
        f"SSS510 the script reads {name}, a word of the call that submits it; {titles[target]} passes none on"])


@pytest.mark.parametrize(("source", "body", "places"), [
    ("slurm", 'for n in 1 2; do\n  echo "#SBATCH -n $n" >> j.sh\n  printf \'#!/bin/sh\\n#SBATCH -t 5\\n\'\ndone',
     [(3, 9), (4, 22)]),
    ("slurm", "# echo '#SBATCH -n 1'\necho '# SBATCH'", []), ("pbspro", "echo '#PBS -N a' > j.sh", [(2, 7)]),
    ("sge", 'echo "#$ -cwd" > j.sh; echo $#', [(2, 7)]), ("lsf", "echo '#BSUB'", [])])
def test_a_script_that_writes_scripts_is_told(source: str, body: str, places: list[tuple[int, int]]) -> None:
    """Directives in its text are those of another script: nothing turns them into those of the target."""
    document = get(source).read(f"{FIRST}{body}\n".encode(), ReadContext())
    findings = Findings("s")
    text = get("flux").write(document, WriteContext(findings, policy=Policy.WARN))
    assert body.split("; echo $#")[0] in str(text)
    assert [(f.line, f.column) for f in findings if f.rule == "SSS513"] == places


@pytest.mark.parametrize(("source", "target", "directive", "written", "messages"), [
    ("pbspro", "slurm", "#PBS -q gpu@srv.site\n", "#SBATCH --partition=gpu\n#SBATCH --clusters=srv.site\n", [
        "SSS504 -q gpu@srv.site: srv.site is named as a cluster, whose name the site knows"]),
    ("torque", "pbspro", "#PBS -q @srv\n", "#PBS -q @srv\n", []),
    ("pbspro", "sge", "#PBS -q gpu@srv\n", "#$ -q gpu\n", [
        "SSS501 -q gpu@srv: Machine: dropped, Grid Engine has no place for it"]),      # there it would be a host
    ("slurm", "torque", "#SBATCH -M c1 -p gpu\n", "#PBS -q gpu@c1\n", [
        "SSS504 --clusters c1: c1 is named as a server, whose name the site knows"]),
    ("pbspro", "pbspro", "#PBS -q gpu@srv\n", "#PBS -q gpu@srv\n", []),
    ("pbspro", "slurm", "#PBS -q 'gpu@{{x}}'\n", '#SBATCH --partition="gpu@{{x}}"\n', None)])
def test_the_server_of_a_queue_is_no_part_of_its_name(source: str, target: str, directive: str, written: str,
                                                      messages: list[str] | None) -> None:
    text, findings = convert(source, target, f"{FIRST}{directive}cd /x\n")
    assert text == f"{written}cd /x\n"
    assert messages is None or findings == messages


def test_a_list_of_slots_stands_for_tasks_of_several_processors(tmp_path: Path) -> None:
    """PBS Pro lists the ranks of a chunk, Grid Engine the processors that they have."""
    text, findings = convert("pbspro", "sge", f"{FIRST}#PBS -l select=2:ncpus=8:mpiprocs=4\nwc -l < $PBS_NODEFILE\n")
    (tmp_path / "hosts").write_text("a 8 all.q UNDEFINED\nb 8 all.q UNDEFINED\n")
    done = subprocess.run(["sh", "-eu"], input=text, text=True, capture_output=True, check=True, env={
        "PATH": "/usr/bin:/bin", "JOB_ID": "1", "PE_HOSTFILE": str(tmp_path / "hosts"), "TMPDIR": str(tmp_path)})
    assert done.stdout.split() == ["8"]
    assert [line for line in findings if "PBS_NODEFILE" in line] == [
        "SSS512 the shim gives PBS_NODEFILE of PBS Pro as a file that it makes, which is only close: it has one of 2 "
        "slots, for a task has 2 processors"]


def test_a_file_of_the_same_name_that_counts_otherwise_is_told() -> None:
    text = f"{FIRST}#PBS -l select=1:ncpus=6:mpiprocs=2\nmpirun -hostfile $PBS_NODEFILE ./a\n"
    for body in ("shim", "translate"):
        written, findings = convert("pbspro", "torque", text, body)
        assert written == "#PBS -l nodes=1:ppn=6\nmpirun -hostfile $PBS_NODEFILE ./a\n"
        assert ("SSS512 PBS_NODEFILE of PBS Pro is that of Torque, which is only close: it counts slots, not tasks, "
                "and a task has 3 processors") in findings


def test_names_of_jobs_take_their_ids_from_the_map() -> None:
    findings = Findings("s")
    document = get("sge").read(f"{FIRST}#$ -hold_jid prep,my.x\n".encode(), ReadContext("s", findings))
    written = get("slurm").write(document, WriteContext(findings, policy=Policy.WARN, ids={"prep": "777"}))
    assert written == f"{FIRST}#SBATCH --dependency=afterany:777\n"
    assert [f.message for f in findings if f.subject == "Dependency"] == [
        "-hold_jid prep,my.x: Dependency: dropped, Slurm waits for jobs by their ids; --id-map says that of my.x"]


@pytest.mark.parametrize(("source", "target", "text", "written", "expected"), [
    # one file for both streams: what is copied last would replace the other
    ("lsf", "pbspro", "#BSUB -o a.%J -e a.%J\ncd /x\n", '#PBS -j oe\n#PBS -o "a.^jobid^"\ncd /x\n', [
        f"SSS502 {option} a.%J: a file of each job is a new one; there is nothing to append to"
        for option in ("-o", "-e")] + ["SSS502 ErrorFile: of two streams with one file each would replace the other's "
                                       "there; -j oe says that they share it"]),
    ("slurm", "torque", "#SBATCH -o a -e b\ncd /x\n", "#PBS -o a\n#PBS -e b\ncd /x\n", []),
    ("torque", "pbspro", "#PBS -o a\n#PBS -e a\ncd /x\n", "#PBS -o a\n#PBS -e a\ncd /x\n", []),
    # memory of one task is that of its node
    ("lsf", "slurm", "#BSUB -M 10GB\n", "#SBATCH --mem=10G\n", [
        "SSS502 -M 10GB: with which of several options it was said is not carried"]),
    ("flux", "slurm", "#flux: -n1 -c3\n", "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=3\n", []),
    # what its own reader keeps, or refuses, and told so, is not told to be lost once more
    ("lsf", "slurm", "#BSUB -v 4000\n", "", ["SSS504 -v 4000: the unit is the site's; kept for LSF alone"]),
    ("lsf", "slurm", "#BSUB -v x\n", "", ["SSS505 -v x: is no size (expected: a number with KB, MB, GB ...)"]),
    ("sge", "pbspro", "#$ -m q\ncd /x\n", "cd /x\n", [
        "SSS505 -m q: is no list of events (expected: letters of abens)"]),
    # variables that are set go along whatever is taken out
    ("flux", "slurm", "#flux: --env=A=1\n#flux: --env-remove=LD_*\n", "#SBATCH --export=ALL,A=1\n", [
        "SSS502 Environment: a variable that the submitter has wins over the one given",
        "SSS501 --env -LD_*: dropped, Slurm has no place for it"]),
    ("flux", "flux", "#flux: --env=A=1\n#flux: --env-remove=LD_*\n",
     "#FLUX: --env=A=1\n#FLUX: --env=-LD_*\n", []),
    ("flux", "slurm", "#flux: --env=LD_A=1\n#flux: --env-remove=LD_*\n", "", [
        f"SSS501 --env {rule}: dropped, Slurm has no place for it" for rule in ("LD_A=1", "-LD_*")]),
    # what users may not ask sbatch for; what holds anyway
    ("lsf", "slurm", "#BSUB -G physics\n", "", [
        "SSS501 -G physics: Group: dropped, sbatch takes --gid of root alone, and runs a job for the group of who "
        "calls it (sg GROUP -c 'sbatch ...')"]),
    ("slurm", "slurm", "#SBATCH --gid=physics -s\n", "#SBATCH --gid=physics\n#SBATCH --oversubscribe\n", []),
    ("pbspro", "slurm", "#PBS -l place=shared\n", "", [
        "SSS502 -l place shared: other jobs may run on the nodes anyway"]),
    ("pbspro", "flux", "#PBS -l select=1:ncpus=1 -l place=free\n", "#FLUX: --nodes=1\n#FLUX: --nslots=1\n", [
        "SSS502 -l place free: it says what holds anyway"]),
    ("sge", "slurm", "#$ -now n -shell yes\n", "", [
        "SSS502 -now n: it says what holds anyway", "SSS502 -shell yes: it says what holds anyway"]),
    # who gets a signal before the end
    ("lsf", "slurm", "#BSUB -wa USR1 -wt 5\ntrap 'touch stop' SIGUSR1\n", "#SBATCH --signal=B:USR1@300\n"
     "trap 'touch stop' SIGUSR1\n", [
         "SSS502 -wa USR1: the script, which traps USR1, gets the signal, and its steps do not"]),
    ("lsf", "slurm", "#BSUB -wa USR1 -wt 5\n# trap 'touch stop' USR1\n", "#SBATCH --signal=USR1@300\n"
     "# trap 'touch stop' USR1\n", [
         "SSS502 -wa USR1: the steps that srun starts get the signal, and the script does not"]),
    ("slurm", "lsf", "#SBATCH --signal=USR1@60\n", "#BSUB -wa USR1\n#BSUB -wt 00:01\n", [
        "SSS502 --signal USR1@60: all processes of the job get the signal"]),
    ("lsf", "slurm", "#BSUB -R select[avx2]\n", "#SBATCH --constraint=avx2\n", [
        "SSS504 -R select[avx2]: asked for as the feature avx2, a name that the site has to know"]),
    # a call that waits for a job of a variable's number, and one whose options a variable may hold
    ("cobalt", "slurm", "qsub --dependencies $A:$B x.sh\n", "sbatch --dependency=afterok:$A:$B x.sh\n", []),
    ("cobalt", "pbspro", "cd /x\nrunjob -p 4 $OPTIONS : ./a\n", "cd /x\nrunjob -p 4 $OPTIONS : ./a\n", [
        "SSS511 runjob is a command of Cobalt; the line is kept: $OPTIONS may hold options"]),
])
def test_the_way_back_to_the_most_used_managers(source: str, target: str, text: str, written: str,
                                                expected: list[str]) -> None:
    assert convert(source, target, FIRST + text, body="translate") == (written, expected)


@pytest.mark.parametrize(("source", "target", "words", "written"), [
    # a real qsub takes -wd sub, and the job waits in error for ever; -wd ./ is a directory of the daemon
    ("slurm", "sge", "#SBATCH -D ./", "#$ -cwd\n"),
    ("slurm", "sge", "#SBATCH -D ./sub", '#$ -cwd\ncd "$SGE_O_WORKDIR/sub"\n'),
    ("lsf", "sge", "#BSUB -cwd ../up", '#$ -cwd\ncd "$SGE_O_WORKDIR/../up"\n'),
    ("slurm", "sge", "#SBATCH -D /x", "#$ -wd /x\n"),
    ("slurm", "flux", "#SBATCH -D ./", ""),
    ("torque", "flux", "#PBS -d sub", "cd ./sub\n"),
    ("slurm", "pbspro", "#SBATCH -D ./", 'cd "$PBS_O_WORKDIR"\n'),
    ("cobalt", "lsf", "#COBALT --cwd .//", ""),
    ("slurm", "torque", "#SBATCH -D ./sub", "#PBS -d ./sub\n"),
    # within one dialect nothing is touched
    ("sge", "sge", "#$ -wd ./", "#$ -wd ./\n"), ("slurm", "slurm", "#SBATCH --chdir=./", "#SBATCH --chdir=./\n"),
    # Grid Engine fills both in, Slurm and Flux would look for a directory of that name
    ("sge", "slurm", "#$ -wd $HOME/x", 'cd "$HOME/x"\n'), ("sge", "flux", "#$ -wd ~/x", 'cd "$HOME/x"\n'),
    ("sge", "lsf", "#$ -wd $HOME/x", '#BSUB -cwd "$HOME/x"\n'), ("slurm", "sge", "#SBATCH -D ~/x", "#$ -wd ~/x\n"),
])
def test_a_directory_is_looked_for_where_the_source_does(source: str, target: str, words: str, written: str) -> None:
    text, findings = convert(source, target, f"{FIRST}{words}\n./a\n")
    assert text == f"{written}./a\n"
    assert [line for line in findings if "SSS501" in line] == []


@pytest.mark.parametrize(("target", "body"), [
    ("torque", "mpirun -np $PBS_NP ./a\n"), ("sge", "mpirun -np $NSLOTS ./a\n"),
    ("flux", "export LSB_DJOB_NUMPROC=24\n# <<< sssjob shim\nmpirun -np $LSB_DJOB_NUMPROC ./a\n"),
    ("pbspro", 'mpirun -np $(wc -l < "$PBS_NODEFILE") ./a\n')])
def test_processors_say_the_tasks_where_nodes_are_not_said(target: str, body: str) -> None:
    """LSF spreads 24 slots over three hosts; one host of eight tasks was taken, each with three processors."""
    text = f'{FIRST}#BSUB -n 24\n#BSUB -R "span[ptile=8]"\n#BSUB -cwd /x\nmpirun -np $LSB_DJOB_NUMPROC ./a\n'
    written, findings = convert("lsf", target, text, "translate")
    assert written.endswith(body)
    assert [line for line in findings if "processors" in line] == []



@pytest.mark.parametrize(("source", "target", "text", "written", "expected"), [
    # one job of a queue has number 0; Slurm calls its file o.4294967294, PBS Pro o.^array_index^
    ("htcondor", "slurm", "executable = /bin/a\noutput = o.$(Process)\nqueue\n",
     "#SBATCH --output=o.0\n/bin/a\n", ["SSS502 output o.$(Process): the job is no array; its index is 0"]),
    ("htcondor", "pbspro", "executable = /bin/a\nerror = $(Cluster).$(ProcId)\nqueue 1\n",
     '#PBS -e "^jobid^.0"\ncd "$PBS_O_WORKDIR"\n/bin/a\n', None),
    # an array may be asked for by who calls qsub
    ("sge", "slurm", "#$ -cwd -o o.$TASK_ID -j y\n", "#SBATCH --output=o.%a\n#SBATCH --open-mode=append\n", []),
    # what has a job run again, in the text that a signal runs; other text only shows it
    ("sge", "slurm", "#$ -cwd -notify\ntrap 'save; exit 99' USR2\n",
     "#SBATCH --signal=B:USR2@60\ntrap 'save; exit 99' USR2\n", [
         "SSS511 exit 99 has the job run again under Grid Engine and not under Slurm; the line is kept"]),
    ("sge", "slurm", "#$ -cwd\necho 'exit 99'; x=\"exit 99\"\n", "echo 'exit 99'; x=\"exit 99\"\n", []),
    # a word that a variable holds is no variable
    ("torque", "slurm", '#PBS -d .\n[ "$PBS_ENVIRONMENT" = PBS_BATCH ] || sleep 9\n',
     '[ "PBS_BATCH" = PBS_BATCH ] || sleep 9\n', []),
    # SGE_ACCOUNT is the word of -A, here none
    ("slurm", "sge", "#SBATCH -A p1\necho $SLURM_JOB_ACCOUNT\n", "#$ -P p1\n#$ -cwd\n"
     "# >>> sssjob shim: slurm on sge, d9115c38\nexport SLURM_JOB_ACCOUNT=p1\n# <<< sssjob shim\n"
     "echo $SLURM_JOB_ACCOUNT\n",
     ["SSS512 the shim gives SLURM_JOB_ACCOUNT of Slurm as p1, which is only close: it is what the job asks for"]),
    ("sge", "slurm", "#$ -cwd -P p1\necho $SGE_ACCOUNT\n", "#SBATCH --account=p1\necho $SGE_ACCOUNT\n", [
        "SSS510 the script uses SGE_ACCOUNT of Grid Engine, for which Slurm has nothing; the name is kept"]),
])
def test_what_holds_in_one_manager_alone(source: str, target: str, text: str, written: str,
                                         expected: list[str] | None) -> None:
    script, messages = convert(source, target, text if source == "htcondor" else FIRST + text, "translate")
    assert script == written
    assert expected is None or [m for m in messages if m.startswith("SSS51") or "array" in m] == expected


def test_the_shell_of_a_script_beside_a_description_is_its_first_line() -> None:
    findings = Findings("s")
    document = get("sge").read(b"#$ -S /bin/csh\n#$ -cwd\n./a\n", ReadContext("s", findings))
    files = get("htcondor").files
    assert files is not None
    assert list(files(document, WriteContext(findings, policy=Policy.WARN)).values())[1] == "#!/bin/csh\n./a\n"
    assert [f.message for f in findings if f.subject == "Shell"] == [
        "-S /bin/csh: the first line of the script says it"]
