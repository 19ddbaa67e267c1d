"""Calls of submit commands in scripts that drive other jobs: the same by the target's command, or kept and told why."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.scripts.rows import dialect_of
from sssjob.translators.scripts.submitting import inner_script
from tests.strategies import examples


def converted(source: str, target: str, commands: str, body: str = "translate") -> tuple[list[str], list[str]]:
    """The commands of the target, and what is told of them."""
    document = get(source).read(f"#!/bin/bash\n{commands}\n".encode(), ReadContext("s", Findings("s")))
    context = WriteContext(Findings("s"), policy=Policy.WARN, options={"body": body})
    lines = get(target).write(document, context).splitlines()
    own = [line for line in lines if not line.startswith("#") and line != 'cd "$PBS_O_WORKDIR"']
    return own, [f.message for f in context.findings if f.rule in ("SSS511", "SSS512")]


CALLS = [
    ("slurm", "pbspro", "sbatch next.sh", "qsub next.sh"),
    ("slurm", "pbspro", "ID=$(sbatch --parsable -p long a.sh)", "ID=$(qsub -q long a.sh)"),
    ("slurm", "pbspro", "sbatch --dependency=afterok:$ID -t 90 -J step b.sh",
     "qsub -N step -l walltime=01:30:00 -W depend=afterok:$ID b.sh"),
    ("slurm", "sge", "sbatch -J a$i x.sh $i", "qsub -N a$i x.sh $i"),
    ("slurm", "sge", "I=`sbatch --parsable x.sh`", "I=`qsub -terse x.sh`"),
    ("slurm", "lsf", 'sbatch --mail-user=a@b --array=1-3 "$f"', "bsub -J '[1-3]' -u a@b < \"$f\""),
    ("slurm", "flux", "sbatch -J 'a b' -d afterok:${ID} x.sh y",
     "flux batch --job-name='a b' --dependency=afterok:${ID} x.sh y"),
    ("slurm", "pbspro", "sbatch -p q <<E\n./a\nE", "qsub -q q <<E\n./a\nE"),
    ("slurm", "pbspro", "sbatch -p q x.sh > log 2>&1 && echo ok", "qsub -q q x.sh > log 2>&1 && echo ok"),
    ("pbspro", "slurm", "A=$(qsub -l select=1:ncpus=4:mpiprocs=4 a.sh)",
     "A=$(sbatch --parsable --nodes=1 --ntasks-per-node=4 a.sh)"),
    ("pbspro", "slurm", "qsub -W depend=afterany:$A b.sh | tee log",
     "sbatch --parsable --dependency=afterany:$A b.sh | tee log"),
    ("sge", "slurm", "qsub -q a.q -t 1-3 run.sh 5", "sbatch --partition=a.q --array=1-3 run.sh 5"),
    ("lsf", "slurm", "bsub -q night -W 60 < job.lsf", "sbatch --partition=night --time=01:00:00 < job.lsf"),
    ("flux", "slurm", "id=$(flux batch -q q -n 4 a.sh)", "id=$(sbatch --parsable --partition=q --ntasks=4 a.sh)"),
    ("slurm", "flux", 'sbatch -J "$NAME" -d afterok:$A:$B x.sh',
     'flux batch --job-name="$NAME" --dependency=afterok:$A --dependency=afterok:$B x.sh'),
    ("slurm", "pbspro", "sbatch -d afterok:$A:$B x.sh", "qsub -W depend=afterok:$A:$B x.sh"),
    ("slurm", "sge", 'sbatch -J "x-${NAME}-y" "$f" $A', 'qsub -N "x-${NAME}-y" "$f" $A'),
    ("slurm", "pbspro", "sbatch -d afterany:$SLURM_JOB_ID x.sh", "qsub -W depend=afterany:${PBS_JOBID%%[!0-9]*} x.sh"),
    ("slurm", "flux", "sbatch -d afterany:${SLURM_JOB_ID} x.sh",
     "flux batch --dependency=afterany:$(flux job id --to=dec $(flux getattr jobid)) x.sh"),
    ("sge", "slurm", "qsub -hold_jid $A,${B} -N j x.sh", "sbatch --job-name=j --dependency=afterany:$A:${B} x.sh"),
    ("lsf", "slurm", 'bsub -w "done($A) && ended(${B})" < x.sh',
     'sbatch --dependency="afterok:$A,afterany:${B}" < x.sh'),
    ("slurm", "lsf", "sbatch -d afterok:$A x.sh", 'bsub -w "done($A)" < x.sh'),
    ("slurm", "sge", "sbatch -d afterany:${A}:$B,afterok:$C -J j x.sh", "qsub -N j -hold_jid ${A},$B,$C x.sh"),
    # a command line that a job is to run
    ("slurm", "pbspro", "j=$(sbatch --parsable -t 10 --wrap=\"module load x; ./prep 'a b' $i\")",
     "j=$(printf '%s\\n' 'cd \"$PBS_O_WORKDIR\"' \"module load x; ./prep 'a b' $i\" | qsub -S /bin/sh "
     "-l walltime=00:10:00)"),
    ("slurm", "sge", "j=$(sbatch --parsable --wrap './a > b.*')",
     "j=$(printf '%s\\n' './a > b.*' | qsub -S /bin/sh -terse -cwd)"),
    ("slurm", "lsf", 'sbatch -J a$i --wrap "python run.py $i"', 'bsub -J "a$i" "python run.py $i"'),
    ("lsf", "slurm", 'bsub -n 2 -w "done($J)" "./b.sh | tee out"',
     'sbatch --ntasks=2 --dependency="afterok:$J" --wrap="./b.sh | tee out"'),
    ("lsf", "slurm", "bsub -K ./a.sh x $i", 'sbatch --wait --wrap="./a.sh x $i"'),
    ("sge", "slurm", "qsub -b y -N a$i ./run -i $i", 'sbatch --job-name=a$i --wrap="./run -i $i"'),
    ("sge", "torque", 'qsub -b yes -l h_rt=60 "sleep 5"',
     "printf '%s\\n' \"sleep 5\" | qsub -S /bin/sh -l walltime=00:01:00"),
    ("sge", "slurm", "qsub -b n x.sh", "sbatch x.sh"),
    ("pbspro", "slurm", "qsub -q w -- /bin/sleep 5", 'sbatch --partition=w --wrap="/bin/sleep 5"'),
    # signs in quotes are no patterns, and slots on one host are its own name for that
    ("lsf", "slurm", 'bsub -J "a[1-3]" -R "span[hosts=1]" < job.lsf',
     "sbatch --job-name=a --nodes=1 --array=1-3 < job.lsf"),
    # a file that is called as a command is names no command
    ("slurm", "pbspro", "sbatch -p q step1.sbatch", "qsub -q q step1.sbatch"),
    ("slurm", "sge", "sbatch run-srun.sh scontrol.d/SLURM_x.in", "qsub run-srun.sh scontrol.d/SLURM_x.in"),
    ("pbspro", "slurm", "qsub -q w qsub.1.pbs", "sbatch --partition=w qsub.1.pbs"),
    # the words of the driver's own call, for a script that stands before them
    ("slurm", "sge", 'sbatch -p q x.sh "$@"', 'qsub -q q x.sh "$@"'),
    ("sge", "slurm", 'ID=$(qsub -terse x.sh -v "${@}")', 'ID=$(sbatch --parsable x.sh -v "${@}")'),
    ("torque", "pbspro", "qsub -t 1-3 -v A=$A x.sh; qsub y.sh", "qsub -J 1-3 -v A=$A x.sh; qsub y.sh"),
    # variables where a number belongs, which the target has as it is
    ("slurm", "pbspro", 'sbatch -n $A -J r$i x.sh; sbatch -N "$i" --ntasks-per-node=8 x.sh',
     'qsub -N r$i -l select=$A:ncpus=1:mpiprocs=1 x.sh; qsub -l "select=$i:ncpus=8:mpiprocs=8" -l place=scatter x.sh'),
    ("slurm", "lsf", "sbatch -n ${A} -c 4 -t ${i}:00:00 x.sh",
     "bsub -W ${i}:00 -n ${A} -R 'affinity[core(4)*1]' < x.sh"),
    ("slurm", "pbspro", 'sbatch -N 1 --mem=${B}G -J "run $i" x.sh',
     'qsub -N "run_$i" -l select=1:mem=${B}gb x.sh'),
    ("sge", "slurm", "qsub -t 1-$A -tc $i x.sh", "sbatch --array=1-$A%$i x.sh"),
    ("torque", "slurm", "qsub -l nodes=$A:ppn=$B:gpus=$i x.sh",
     "sbatch --nodes=$A --ntasks-per-node=$B --gpus-per-node=$i x.sh"),
    ("torque", "pbspro", "qsub -l walltime=$A:30:00 -q q$i x.sh", "qsub -q q$i -l walltime=$A:30:00 x.sh"),
    ("slurm", "flux", "sbatch -n $A -c $i -d afterok:$B x.sh",
     "flux batch --nslots=$A --cores-per-slot=$i --dependency=afterok:$B x.sh"),
]


@pytest.mark.parametrize(("source", "target", "call", "expected"), CALLS)
def test_a_call_becomes_one_of_the_target(source: str, target: str, call: str, expected: str) -> None:
    lines, messages = converted(source, target, call)
    assert lines == expected.split("\n")
    assert not any("is kept" in message for message in messages)


@pytest.mark.parametrize(("source", "target", "call", "why"), [
    ("slurm", "pbspro", "sbatch x.sh a", "qsub passes no arguments on to the script"),
    ("slurm", "pbspro", "ID=$(sbatch x.sh)", "what it prints is read, which is no id alone"),
    ("slurm", "pbspro", "sbatch x.sh | awk '{print $4}'", "what it prints is read, which is no id alone"),
    ("slurm", "lsf", "ID=$(sbatch --parsable x.sh)", "what it prints is read, which is no id alone"),
    ("slurm", "flux", 'sbatch --wrap "echo hi"', "flux batch runs a command here and no script"),
    ("slurm", "pbspro", "sbatch --wrap ./a x.sh", "it names a script beside --wrap"),
    ("slurm", "pbspro", "sbatch --wrap='echo \"$HOME\"'", "a word of it is made by the shell"),
    ("slurm", "pbspro", "A=1 sbatch --wrap=./a", "words before it, or a here-document, would go to another command"),
    ("sge", "slurm", "qsub -b y -l h_rt=60", "it names no command"),
    ("lsf", "slurm", 'bsub ./a "b c"', "words of its command are quoted"),
    ("slurm", "pbspro", "sbatch -d afterok:7 x.sh", "it names a job by the id that it has under another manager"),
    ("slurm", "sge", "sbatch -n 4 x.sh", "@PE@ stands for a name that only the site knows"),
    ("slurm", "sge", "sbatch $OPTS x.sh", "$OPTS may hold options"),
    *(("slurm", "sge", f"sbatch {words}", "a word of it is made by the shell")
      for words in ('"$@"', '-p q "$@"', 'x.sh $@', '"$@" x.sh', '"$f" "$@"', 'x.sh "a$@"')),
    ("slurm", "pbspro", 'sbatch x.sh "$@"', "qsub passes no arguments on to the script"),
    ("slurm", "sge", "sbatch -J $(date +%s) x.sh", "a word of it is made by the shell"),
    ("slurm", "sge", "sbatch -J '$x' x.sh", "a word of it is made by the shell"),
    ("slurm", "pbspro", "sbatch -p $SLURM_NO_SUCH x.sh", "a name of Slurm stands among its words"),
    ("slurm", "pbspro", "sbatch --wrap 'srun ./a' x.sh", "a name of Slurm stands among its words"),
    ("slurm", "sge", "sbatch --no-such x.sh", "--no-such: no such option"),
    ("slurm", "sge", "sbatch <<E -p q\n./a\nE", "a redirection stands among its words"),
    *(("slurm", target, f"sbatch <<{rest}", "the script in its here-document has directives; convert that as a script "
       f"of its own: {why}") for target, rest, why in (
        ("sge", "'E'\n#!/bin/sh\n#SBATCH -J a\nE",
         "Grid Engine would obey its directives as those of the script around it"),
        ("cobalt", "'E'\n#!/bin/sh\n#SBATCH -J a\nE", "one of the two commands reads no script from its input"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -J a\n./a $SLURM_NTASKS\nE",
         "the shell that writes it expands names of Slurm in it"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -J ${x%%.*}\nE", "the shell that writes it expands more of it than names"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH -t $T\nE", "--time $T: is no time"),
        ("pbspro", "E\n#!/bin/sh\n#SBATCH --mem=$M\nE", "--mem $M: is no size"),
        ("pbspro", "'E'\n#!/bin/sh\n#SBATCH -a 1-3 --hint=x --switches=1\nE", "--switches 1: Extension Switches"),
        ("pbspro", "'E'\n#!/bin/sh\n#SBATCH --nodes=many\nE", "--nodes many: is no number of nodes"),
        ("torque", "-E\n\t#SBATCH -J a\n\tE", "its lines begin with tabs, or it is one of several"),
        ("torque", "E\n#SBATCH -J a\n", "its lines begin with tabs, or it is one of several"))),
    ("slurm", "htcondor", "sbatch x.sh", "HTCondor has no command that does this"),
    # what stands in a variable may be no number, or another number is worked out from it
    *(("slurm", "pbspro", f"sbatch {option} x.sh", f"{name}: PBS Pro has no place for this option of Slurm")
      for option, name in (("--mem=$A", "mem $A"), ("-t $A", "time $A"), ("-n 1$A", "ntasks 1$A"),
                           ("-n $A$B", "ntasks $A$B"), ("-n ${A:-2}", "ntasks ${A:-2}"), ("-n $A -c 211", "ntasks $A"),
                           ("-n $A --ntasks-per-node=4", "ntasks $A"), ("-N $A -n $B", "nodes $A"))),
    ("slurm", "pbspro", "sbatch --nice=$A x.sh", "nice $A: PBS Pro has no place for this option of Slurm"),
    ("slurm", "sge", "sbatch -a $A x.sh", "Extension Array: Grid Engine has one range, not $A"),
    ("torque", "sge", "qsub -l walltime=$A x.sh", "l walltime $A: Grid Engine has no place for this option of Torque"),
    ("pbspro", "flux", "qsub -J 1-5 c.sh", "Flux has no option for Extension Array"),
    ("sge", "slurm", "qsub -hold_jid prep_$J x.sh",
     "Dependency: Slurm waits for jobs by their ids; --id-map says that of prep_"),
])
def test_a_call_that_has_no_equal_is_kept_and_told(source: str, target: str, call: str, why: str) -> None:
    _, messages = converted(source, target, call)
    assert [message for message in messages if message.endswith(f"the line is kept: {why}")
            or message.partition("the line is kept: ")[2].startswith(why)] == messages[:1]


@pytest.mark.parametrize(("mode", "lines_told"), [("translate", [10]), ("shim", [6, 10]), ("keep", [6, 10])])
def test_directives_that_were_converted_with_their_call_are_not_told_to_stay(mode: str, lines_told: list[int]) -> None:
    """Those of a here-document that nothing submits stay, and are told of."""
    script = ("#!/bin/bash\n#SBATCH -J drive\n\nsbatch <<E\n#!/bin/sh\n#SBATCH -J job$i\n./a\nE\n"
              "cat > x.sh <<E\n#SBATCH -N 1\nE\n")
    context = ReadContext("s", Findings("s"))
    document = get("slurm").read(script.encode(), context)
    get("pbspro").write(document, WriteContext(Findings("s"), policy=Policy.WARN, options={"body": mode}))
    assert [f.line for f in context.findings if f.rule == "SSS506"] == lines_told


@pytest.mark.parametrize("body", ["keep", "shim"])
def test_other_modes_keep_it(body: str) -> None:
    lines, messages = converted("slurm", "pbspro", "sbatch x.sh", body)
    assert lines[-1] == "sbatch x.sh"
    assert messages == (["sbatch is a command of Slurm; the line is kept: --body translate writes qsub x.sh"]
                    if body == "keep" else [])


#: Prints what it is called by, with which words and what it reads.
STAND_IN = """#!/bin/sh
printf '%s' "${0##*/}" >> "$CALLED"
printf '<%s>' "$@" >> "$CALLED"
[ -t 0 ] || cat >> "$CALLED"
echo >> "$CALLED"
echo 7
"""


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A folder of submit commands that write down how they are called, and scripts for them."""
    for name in ("sbatch", "qsub", "bsub", "flux"):
        (tmp_path / name).write_text(STAND_IN)
        (tmp_path / name).chmod(0o755)
    for name in ("next.sh", "x.sh", "a b", "job.lsf"):
        (tmp_path / name).write_text("a script\n")
    return tmp_path


def calls(folder: Path, program: str, lines: list[str]) -> str:
    """The calls that a driver makes."""
    log = folder / "called.txt"
    log.write_text("")
    subprocess.run([program, "-c", "\n".join(lines)], cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=60,
                   stdin=subprocess.DEVNULL, env={"PATH": f"{folder}:/usr/bin:/bin", "CALLED": str(log), "ID": "5",
                                                  "i": "3", "f": "a b", "A": "8", "B": "9", "NAME": "a name",
                                                  "PBS_JOBID": "12.srv", "JOB_ID": "12", "LSB_JOBID": "12",
                                                  "FLUX_URI": "local"})
    return log.read_text()


@pytest.mark.parametrize("program", ["bash", "dash"])
@pytest.mark.parametrize(("source", "target", "call"), [case[:3] for case in CALLS])
def test_a_shim_makes_the_call_that_is_written_in_its_place(source: str, target: str, call: str, program: str,
                                                            commands: Path) -> None:
    """Word for word and with the same input, or the call is kept and what would be written is told."""
    if shutil.which(program) is None:
        pytest.skip(f"no {program}")
    lines, messages = converted(source, target, call, "shim")
    if any("--body translate writes" in message for message in messages):
        assert lines[-len(call.splitlines()):] == call.splitlines()
        return
    assert calls(commands, program, lines) == calls(commands, program, converted(source, target, call)[0])


@pytest.mark.parametrize(("call", "other"), [
    ("sbatch -o a$i x.sh", "sbatch -o b3 x.sh"), ("sbatch -p q x.sh", "sbatch -p q y.sh"),
    ("sbatch -p q x.sh", "sbatch -p q x.sh more"), ("sbatch -d afterok:$ID x.sh", "sbatch -d afterany:5 x.sh")])
def test_a_function_takes_no_call_that_the_body_does_not_make(call: str, other: str) -> None:
    lines, _ = converted("slurm", "sge", call, "shim")
    done = subprocess.run(["bash", "-c", "\n".join([*lines[:-1], other])], text=True, capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"sbatch: {other.removeprefix('sbatch ')} has no equal here\n"


@pytest.mark.parametrize(("call", "kept"), [
    ("sbatch -d afterok:$ID:$OTHER x.sh", 'qsub -hold_jid $ID,$OTHER x.sh'),       # the two stand apart there
    ("nohup sbatch x.sh", "qsub x.sh"), ("/usr/bin/sbatch x.sh", "qsub x.sh"),     # no function is called there
    ('sbatch "it\'s $A"', "qsub \"it's $A\"")])
def test_a_call_that_no_function_can_take_is_kept_and_what_would_be_written_told(call: str, kept: str) -> None:
    lines, messages = converted("slurm", "sge", call, "shim")
    assert lines == [call] and messages == [
        f"sbatch is a command of Slurm; the line is kept: --body translate writes {kept}"]


def test_an_array_is_not_waited_for_by_the_number_of_its_job() -> None:
    """PBS knows the array 12 as 12[]."""
    lines, messages = converted("slurm", "pbspro", "#SBATCH -a 1-3\nsbatch -d afterany:$SLURM_ARRAY_JOB_ID x.sh")
    assert lines[-1].startswith("sbatch -d") and messages == [
        "sbatch is a command of Slurm; the line is kept: an array is not waited for by the number that "
        "SLURM_ARRAY_JOB_ID is"]


@pytest.mark.parametrize(("target", "expected"), [
    ("slurm", "sbatch --partition=a x.sh"), ("lsf", "bsub -q a < x.sh"), ("torque", "qsub -q a -S /bin/bash x.sh")])
def test_the_shell_of_a_script_is_left_to_its_first_line(target: str, expected: str) -> None:
    lines, messages = converted("sge", target, "qsub -S /bin/bash -q a x.sh")
    assert lines[-1] == expected
    assert [message for message in messages if "shell" in message] == ([] if target == "torque" else [
        f"qsub became {expected}; the first line of the script is to say that its shell is /bin/bash"])
    _, messages = converted("sge", "slurm", "qsub -S /usr/bin/python3 x.py")
    assert messages == ["qsub is a command of Grid Engine; the line is kept: Slurm has no option for Shell"]


@pytest.mark.parametrize("call", [
    "sbatch", "sbatch -J", "sbatch '", "sbatch -J \\\n x.sh", "sbatch " + "-J a " * 400 + "x"])
def test_odd_calls_are_carried_or_kept(call: str) -> None:
    lines, _ = converted("slurm", "pbspro", call)
    assert lines


def test_a_directive_in_a_here_document_is_one_of_another_script() -> None:
    document = get("slurm").read(b"#!/bin/sh\ncat > a.sh <<E\n#SBATCH -n 2\nE\n#SBATCH -n 3\n", ReadContext())
    assert [(f.line, f.message) for f in document.findings or ()] == [
        (3, "the directive stands in a here-document, for a script that this one writes, and asks for nothing here; "
            "--body translate converts it where a submit command reads it, else convert that script by itself"),
        (5, "the directive is dead: sbatch stops reading at the first command; it stays in the script as a comment")]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_shell_makes_the_same_words_of_the_values() -> None:
    """Names with blanks, quotes and variables arrive as one word, expanded."""
    lines, _ = converted("slurm", "flux", "sbatch -J \"it's $X\" x.sh")
    shown = subprocess.run(["bash", "-c", f'X="1  2"; flux() {{ printf "<%s>" "$@"; }}; {lines[0]}'],
                          capture_output=True, text=True, check=True)
    assert "<--job-name=it's 1  2>" in shown.stdout and shown.stdout.endswith("<x.sh>")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@given(st.lists(st.sampled_from(
    ("\\", "\\$", "\\\\", "\\`", "\\\n", "\n", "# ", "'", '"', "x", "{", "$", "$X", "${Y}", "$1", "$?", "$((X+1))",
     "$(echo y)", "${Z:-1}", "`")), max_size=10))
@settings(max_examples=examples(15))
def test_the_shell_that_writes_a_script_makes_the_same_of_its_commands(pieces: list[str]) -> None:
    """Whatever it expands and whatever is guarded from it, the job gets the commands that it got before."""
    commands = "".join(pieces) + "\n"
    target = dialect_of("pbspro")
    assert target is not None
    script = inner_script("slurm", target, f"#!/bin/sh\n#SBATCH -J j$X\n:\n{commands}", None, quoted=False)
    if isinstance(script, str):
        return
    both = f"X=7; Y='a b'\ncat <<END\n{commands}END\nprintf '\\036'\ncat <<END\n{script[0]}END\n"
    done = subprocess.run(["bash", "-c", both], capture_output=True, text=True, check=False)
    if not done.returncode and not done.stderr:
        before, _, after = done.stdout.partition("\036")
        assert after == f'#!/bin/sh\n#PBS -N j7\ncd "$PBS_O_WORKDIR"\n:\n{before}'


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(("source", "target", "call", "submitted"), [
    ("slurm", "pbspro", "i=7; sbatch -p fast <<E\n#!/bin/bash\n#SBATCH -J j$i\n#SBATCH -t 60 -o out/%x.%j\n"
                        "srun -n 4 ./a ${i}x\nE\n",
     "<-q><fast>#!/bin/bash\n#PBS -N j7\n#PBS -l walltime=01:00:00\n#PBS -j oe\n#PBS -o \"out/j7.^jobid^\"\n"
     "cd \"$PBS_O_WORKDIR\"\nmpirun -np 4 ./a 7x\n"),
    ("slurm", "torque", "i=7; sbatch <<E\n#!/bin/bash\n#SBATCH -J j$i -o %x.o%j\n./a\nE\n",
     "<>#!/bin/bash\n#PBS -N j7\n#PBS -j oe\n#PBS -o \"j7.o${PBS_JOBID}\"\ncd \"$PBS_O_WORKDIR\"\n./a\n"),
    ("torque", "pbspro", "qsub <<'E'\n#!/bin/sh\n#PBS -l nodes=1:ppn=4\n#PBS -t 1-3\n./a $PBS_ARRAYID \\$x\nE\n",
     "<>#!/bin/sh\n#PBS -l select=1:ncpus=4:mpiprocs=4\n#PBS -J 1-3\n"
     "./a $PBS_ARRAY_INDEX \\$x\n"),
    # numbers, and what is guarded for the job
    ("pbspro", "slurm", "i=7; N=2; X='a b'; qsub <<E\n#!/bin/bash\n#PBS -N run$i\n#PBS -l nodes=${N}:ppn=8\n"
                        "cd \\$PBS_O_WORKDIR\n"
                        "echo \"$X \\$PBS_JOBID \\${HOME}\" '\\$x' \\\\n \\`date\\` $(echo $N) $((N+1))\nE\n",
     "<>#!/bin/bash\n#SBATCH --job-name=run7\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\ncd $SLURM_SUBMIT_DIR\n"
     "echo \"a b $SLURM_JOB_ID ${HOME}\" '$x' \\n `date` 2 3\n"),
    ("slurm", "torque", "N=4; sbatch <<E\n#!/bin/sh\n#SBATCH -N $N -t 1\n./a \\\n  \\$SLURM_SUBMIT_DIR\nE\n",
     "<>#!/bin/sh\n#PBS -l walltime=00:01:00\n#PBS -l nodes=4\ncd \"$PBS_O_WORKDIR\"\n./a   $PBS_O_WORKDIR\n"),
    ("lsf", "slurm", "N=2; bsub <<E\n#!/bin/sh\n#BSUB -J a$N\n#BSUB -n 4\n./a\nE\n",
     "<>#!/bin/sh\n#SBATCH --job-name=a2\n#SBATCH --ntasks=4\n./a\n")])
def test_a_script_in_a_here_document_goes_with_its_call(source: str, target: str, call: str, submitted: str) -> None:
    """A shell runs the driver, and what the new command is given and reads is the script for the new manager, with what
    the driver filled in, and what is left to the job left to it."""
    document = get(source).read(f"#!/bin/bash\n{call}".encode(), ReadContext(findings=Findings(), policy=Policy.WARN))
    text = get(target).write(document, WriteContext(Findings(), policy=Policy.WARN, options={"body": "translate"}))
    assert isinstance(text, str)
    command = {"slurm": "sbatch"}.get(target, "qsub")
    driver = "\n".join(line for line in text.splitlines() if line != 'cd "$PBS_O_WORKDIR"')
    done = subprocess.run(["bash", "-u"], input=f'{command}() {{ printf "<%s>" "$@"; cat; }}\n{driver}\n', text=True,
                          capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == submitted
