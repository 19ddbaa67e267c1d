"""The same effect in another manager: names of files, indices, variables, here-documents."""

from __future__ import annotations

import pytest

from sssjob.conversion.site import SiteError, read_site
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from tests.translators.test_scripts_shapes import converted

CASES = [
    ("pbspro", "slurm", "#PBS -N x\n#PBS -o log/$PBS_JOBNAME.o$PBS_ARRAY_INDEX\n#PBS -J 1-3\n#PBS -j oe\n",
     ["--job-name=x", "--output=log/%x.o%a", "--array=1-3"],
     ["-o log/$PBS_JOBNAME.o$PBS_ARRAY_INDEX: OutputFile: PBS Pro fills in no variables in file names; "
      "log/{name}.o{index} is what is meant"]),
    ("slurm", "sge", "#SBATCH -o log/$USER-%j.out\n#SBATCH -e /dev/null\n",
     ["-o log/$USER-$JOB_ID.out", "-e /dev/null", "-cwd"],
     ["--output log/$USER-%j.out: OutputFile: Grid Engine fills in $USER in file names, Slurm takes it as it stands"]),
    ("slurm", "sge", "#SBATCH -a 0-3 -o p-%A-%a.txt -e /dev/null\n",
     ["-t 1-4", "-o p-$JOB_ID-$TASK_ID.txt", "-e /dev/null", "-cwd"],
     ["--output p-%A-%a.txt: OutputFile: the index in it is one more than before, as that of the tasks",
      "--array 0-3: tasks are counted from 1: 1-4, each one more than was asked for",
      "--output p-%A-%a.txt: the id of the array is written as $JOB_ID"]),
    ("slurm", "sge", "#SBATCH -a 2-9:3\n", ["-t 2-8:3", "-cwd"],
     ["--array 2-9:3: 2-8:3, for SGE_TASK_LAST is what stands there, elsewhere it is the last index"]),
    ("slurm", "sge", "#SBATCH -a 2-8:3\n", ["-t 2-8:3", "-cwd"], []),
    ("slurm", "sge", "#SBATCH -o x -e y\n", ["-o x", "-e y", "-cwd"],
     [f"{tag}: Grid Engine appends to a file that is there, where Slurm empties it"
      for tag in ("OutputFile", "ErrorFile")]),
    ("slurm", "sge", "#SBATCH -o x -e /dev/null --open-mode=append\n", ["-o x", "-e /dev/null", "-cwd"],
     ["OutputFile: Grid Engine always appends", "ErrorFile: Grid Engine always appends"]),
    ("sge", "slurm", "#$ -o run.log -j y\n", ["--output=run.log", "--open-mode=append"], []),
    ("sge", "slurm", "#$ -o run.$JOB_ID -j y\n", ["--output=run.%j"], []),
    ("sge", "slurm", "#$ -o /dev/null -j y\n", ["--output=/dev/null"], []),
    ("sge", "lsf", "#$ -o run.log -e run.$JOB_ID\n", ["-o run.log", "-eo run.%J"], []),
    ("sge", "flux", "#$ -o run.log -e err.log\n",
     ["--output=run.log", "--error=err.log", "--setopt=output.mode=append"], []),
    ("sge", "pbspro", "#$ -o run.log -e run.$JOB_ID\n", ["-o run.log", '-e "run.^jobid^"'],
     ["-o run.log: PBS Pro empties a file that is there, where Grid Engine appends to it"]),
    ("sge", "slurm", "#$ -o $HOME/out/r.$JOB_ID -j y\n", ['--output="$HOME/out/r.%j"'],
     ["-o $HOME/out/r.$JOB_ID: OutputFile: Grid Engine fills in $HOME in file names, Slurm takes it as it stands, and "
      "there is no directory of that name; home of a site profile says which one it is"]),
    ("lsf", "pbspro", "#BSUB -oo /w/$PROJ/r.%J\n#BSUB -eo $PROJ.err\n",
     ['-o "/w/$PROJ/r.^jobid^"', '-e "$PROJ.err"'],
     ["-oo /w/$PROJ/r.%J: OutputFile: LSF fills in $PROJ in file names, PBS Pro takes it as it stands, and there is no "
      "directory of that name",
      "-eo $PROJ.err: ErrorFile: LSF fills in $PROJ in file names, PBS Pro takes it as it stands"]),
    # one task is on one node, and has its memory once
    ("slurm", "sge", "#SBATCH -c 4 --mem=10G -o x -e /dev/null --open-mode=append\n",
     ["-pe @PE@ 4", "-l h_vmem=2560M", "-o x", "-e /dev/null", "-cwd"],
     ["Processors: @PE@ stands for the parallel environment, whose name the site knows",
      "--mem 10G: written for each of 4 slots",
      "OutputFile: Grid Engine always appends", "ErrorFile: Grid Engine always appends"]),
    # how processes share a GPU is no property of a node
    ("torque", "slurm", "#PBS -l nodes=2:ppn=1:gpus=1:exclusive_process:fast\n#PBS -j oe\n#PBS -o x\n",
     ["--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=1", "--constraint=fast", "--output=x"],
     ["-l nodes 2:ppn=1:gpus=1:exclusive_process:fast: asked for as the feature fast, a name that the site has to know",
      "-l nodes 2:ppn=1:gpus=1:exclusive_process:fast: exclusive_process of this option is dropped, Slurm has no place "
      "for it"]),
    ("torque", "torque", "#PBS -l nodes=2:ppn=1:gpus=1:exclusive_process:fast+1:shared\n",
     ["-l nodes=2:ppn=1:gpus=1:exclusive_process:fast+1:shared"], []),
    # the next time that a clock shows an hour, where there is no date
    ("torque", "slurm", "#PBS -a 2300\n", ["--begin=23:00"], []),
    ("slurm", "pbspro", "#SBATCH --begin=7:05:30\n", ["-a 0705.30"], []),
    ("slurm", "lsf", "#SBATCH -b teatime --deadline=23:59:59\n", ["-b 16:00", "-t 23:59"],
     ["--deadline 23:59:59: LSF counts whole minutes"]),
    ("lsf", "torque", "#BSUB -b 7:05\n", ["-a 0705"], []),
    ("lsf", "slurm", "#BSUB -b 2030:12:01:08:00 -t 20:00\n", ["--begin=2030-12-01T08:00:00"],
     ["-t 20:00: Extension DeadlineTimeOfDay: dropped, the next time that clocks show it may be before the job may "
      "begin, which sbatch refuses"]),
    ("pbspro", "sge", "#PBS -a 0000\n", [],
     ["-a 0000: Extension EligibleTimeOfDay: dropped, Grid Engine has no place for it"]),
    # the next such day of a month or a year; Grid Engine takes that of this year, though it be past
    ("torque", "slurm", "#PBS -a 012300\n", [],
     ["-a 012300: Extension EligibleTimeOfMonth: dropped, Slurm has no place for it"]),
    ("pbspro", "lsf", "#PBS -a 092300.07\n", ["-b 09:23:00"], ["-a 092300.07: LSF counts whole minutes"]),
    ("lsf", "torque", "#BSUB -b 9:7:05\n", ["-a 090705"], []),
    ("lsf", "pbspro", "#BSUB -b 2:29:7:05\n", ["-a 02290705"], []),
    ("slurm", "lsf", "#SBATCH --begin=03.08 --deadline=0308-7:05\n", ["-b 03:08:00:00", "-t 03:08:07:05"], []),
    ("slurm", "lsf", "#SBATCH --begin=03/08/31T17:05:09\n", ["-b 2031:03:08:17:05"],
     ["--begin 03/08/31T17:05:09: LSF counts whole minutes"]),
    ("lsf", "slurm", "#BSUB -b 6:30:08:00 -t 7:01:20:00\n", ["--begin=06/30-08:00", "--deadline=07/01-20:00"], []),
    ("lsf", "slurm", "#BSUB -b 2030:6:30:08:00 -t 7:01:20:00\n", ["--begin=2030-06-30T08:00:00"],
     ["-t 7:01:20:00: Extension DeadlineTimeOfYear: dropped, the next time that clocks show it may be before the job "
      "may begin, which sbatch refuses"]),
    ("sge", "slurm", "#$ -cwd -a 06302359\n", ["--begin=06/30-23:59"],
     ["-a 06302359: Grid Engine takes a date without a year for one of the year of submission, so that a past one is "
      "no wait; others take the next one"]),
    ("lsf", "sge", "#BSUB -b 6:30:08:00\n", ["-a 06300800", "-cwd"],
     ["-b 6:30:08:00: Grid Engine takes a date without a year for one of the year of submission, so that a past one is "
      "no wait; others take the next one"]),
    ("pbspro", "sge", "#PBS -a 092300\n", [],
     ["-a 092300: Extension EligibleTimeOfMonth: dropped, Grid Engine has no place for it"]),
    ("sge", "sge", "#$ -a 06302359.07 -dl 07010000\n", ["-a 06302359.07", "-dl 07010000"], []),
    ("slurm", "sge", "#SBATCH --begin=now\n", ["-cwd"], []),
    ("slurm", "sge", "#SBATCH --begin=now+1hour\n", ["-cwd"],
     ["--begin now+1hour: Extension EligibleTimeFromNow: dropped, Grid Engine has no place for it"]),
    # a start some time after the submission
    ("slurm", "flux", "#SBATCH --begin=now+2hours\n", ["--begin-time=+7200s"], []),
    ("slurm", "slurm", "#SBATCH --begin=now+120\n#SBATCH --deadline=now+1day\n",
     ["--begin=now+2minutes", "--deadline=now+1day"], []),
    ("flux", "slurm", "#FLUX: --begin-time=+1.5h\n", ["--begin=now+90minutes"], []),
    ("flux", "slurm", '#FLUX: --begin-time="in 2 hours"\n', [],
     ["--begin-time in 2 hours: dropped, Slurm has no place for it"]),
    # a signal before the end is the soft limit of time of Grid Engine
    ("slurm", "sge", "#SBATCH -t 120 --signal=B:SIGUSR1@300\n", ["-l h_rt=02:00:00", "-l s_rt=01:55:00", "-cwd"],
     ["--signal B:SIGUSR1@300: it comes at the soft limit of time, to all processes of the job"]),
    ("slurm", "sge", "#SBATCH --signal=USR1@300\n", ["-cwd"],
     ["--signal USR1@300: Extension Signal: dropped, beside SIGUSR2 of -notify Grid Engine sends SIGUSR1, before a "
      "time limit that is stated"]),
    ("slurm", "sge", "#SBATCH -t 120 --signal=TERM\n", ["-l h_rt=02:00:00", "-cwd"],
     ["--signal TERM: Extension Signal: dropped, beside SIGUSR2 of -notify Grid Engine sends SIGUSR1, before a time "
      "limit that is stated"]),
    ("sge", "slurm", "#$ -l h_rt=2:0:0,s_rt=1:50:0\n", ["--time=02:00:00", "--signal=B:USR1@600"], []),
    ("sge", "sge", "#$ -l h_rt=2:0:0,s_rt=1:50:0\n", ["-l h_rt=02:00:00", "-l s_rt=01:50:00"], []),
    ("sge", "slurm", "#$ -l s_rt=3600\n", [], ["-l s_rt 3600: dropped, Slurm has no place for it"]),
    ("sge", "lsf", "#$ -l h_rt=3600 -notify -l s_rt=60\n", ["-W 01:00", "-wa USR2", "-wt 00:01"],
     ["-notify: all processes of the job get the signal", "-l s_rt 60: dropped, LSF has no place for it"]),
    ("slurm", "lsf", "#SBATCH --signal=SIGINT@120\n", ["-wa INT", "-wt 00:02"],
     ["--signal SIGINT@120: all processes of the job get the signal"]),
    # a directory with patterns that LSF fills in and makes
    *(("lsf", target, "#BSUB -cwd /w/%U/%J\n", options, [])
      for target, options in (("slurm", []), ("pbspro", []), ("torque", []), ("sge", ["-cwd"]))),
    # memory that is reserved for some time is memory
    ("lsf", "slurm", '#BSUB -n 8\n#BSUB -R "rusage[mem=4G:decay=1:duration=30m,lic=1:duration=2]"\n',
     ["--ntasks=8", "--mem=4G"],
     ["-R rusage[mem=4G:decay=1:duration=30m,lic=1:duration=2]: duration=30m:decay=1 of this option is dropped, Slurm "
      "has no place for it",
      "-R rusage[mem=4G:decay=1:duration=30m,lic=1:duration=2]: rusage[lic=1:duration=2] of this option is dropped, "
      "Slurm has no place for it"]),
    ("lsf", "lsf", '#BSUB -n 8\n#BSUB -R "rusage[mem=4GB:duration=30m:decay=1,lic=1:duration=2]"\n',
     ["-n 8", '-R "rusage[mem=4GB:duration=30m:decay=1]"', '-R "rusage[lic=1:duration=2]"'], []),
    ("lsf", "slurm", '#BSUB -R "rusage[tmp=50:duration=60]"\n', [],
     ["-R rusage[tmp=50:duration=60]: dropped, Slurm has no place for it"]),
    # of a list of resources the one that is not understood is lost, and only that is told
    ("slurm", "pbspro", "#SBATCH --gres=gpu:2,tmp:50G\n", ["-l select=1:ngpus=2"],
     ["--gres gpu:2,tmp:50G: tmp=50G of this option is dropped, PBS Pro has no place for it"]),
    ("slurm", "slurm", "#SBATCH --gres=gpu:2,tmp:50G\n", ["--gres=tmp:50G", "--gpus-per-node=2"], []),
    ("pbspro", "slurm", "#PBS -u me@host,you\n", [],
     ["-u me@host,you: User: dropped, sbatch takes --uid of root alone, and runs a job for the user who calls it"]),
    # arrays that are waited for
    ("torque", "pbspro", "#PBS -W depend=afterokarray:12[]:13[],afternotok:14\n",
     ['-W "depend=afterok:@JOBID:12[]@:@JOBID:13[]@,afternotok:@JOBID:14@"'],
     [f"-W depend afterokarray:12[]:13[],afternotok:14: {job} is an id of another system; @JOBID:{job}@ stands for its "
      "successor" for job in ("12[]", "13[]", "14")]),
    ("torque", "torque", "#PBS -W depend=afteranyarray:12[],afterokarray:13[][3]\n",
     ['-W "depend=afteranyarray:12[],afterokarray:13[][3]"'], []),
    ("pbspro", "torque", "#PBS -W depend=afternotok:5[]\n", ['-W "depend=afternotokarray:@JOBID:5[]@"'],
     ["-W depend afternotok:5[]: 5[] is an id of another system; @JOBID:5[]@ stands for its successor"]),
    ("pbspro", "sge", "#PBS -W depend=afterany:5[]\n", ["-hold_jid @JOBID:5[]@"],
     ["-W depend afterany:5[]: 5[] is an id of another system; @JOBID:5[]@ stands for its successor"]),
    ("torque", "slurm", "#PBS -t 1-3\n#PBS -o out.$PBS_JOBID\n#PBS -e $PBS_JOBNAME.err\n",
     ["--array=1-3", "--output=out.%A-%a", "--error=%x.err-%a"],
     ["-e $PBS_JOBNAME.err: ErrorFile: Torque fills in PBS_JOBID and HOME alone in file names; {name}.err-{index} is "
      "what is meant"]),
    ("torque", "slurm", "#PBS -t 1-3\n#PBS -o log.$PBS_ARRAYID\n#PBS -j oe\n", ["--array=1-3", "--output=log.%a"],
     ["-o log.$PBS_ARRAYID: OutputFile: Torque fills in PBS_JOBID and HOME alone in file names; log.{index} is what is "
      "meant"]),
    ("torque", "slurm", "#PBS -t 1-3\n#PBS -o out/\n#PBS -e err/x\n",
     ["--array=1-3", "--output=out/%x.o%A-%a", "--error=err/x-%a"],
     ["-o out/: a directory cannot be named; the file in it is out/{name}.o{array_jobid}-{index}"]),
    ("pbspro", "slurm", "#PBS -J 1-3\n#PBS -o out/\n#PBS -e err/x\n",
     ["--array=1-3", "--output=out/%x.o%A.%a", "--error=err/x"],
     ["-o out/: a directory cannot be named; the file in it is out/{name}.o{array_jobid}.{index}"]),
    ("torque", "slurm", "#PBS -t 1-3\n#PBS -o /dev/null\n#PBS -e err\n",
     ["--array=1-3", "--output=/dev/null", "--error=err-%a"], []),
    ("slurm", "torque", "#SBATCH -a 1-3\n#SBATCH -o /dev/null -e e.%a\n", ["-t 1-3", "-o /dev/null", "-e e"],
     ["--error e.%a: ErrorFile: Torque adds the index of each element to the name: e-{index}"]),
    ("torque", "sge", "#PBS -t 1-3\n#PBS -o out\n#PBS -j oe\n", ["-t 1-3", "-o out-$TASK_ID", "-j y"],
     ["OutputFile: Grid Engine appends to a file that is there, where Torque empties it"]),
    ("slurm", "torque", "#SBATCH -a 1-3 -J fit\n#SBATCH -o %x_%A_%a.log -e err/e-%a\n",
     ["-N fit", "-t 1-3", '-o "fit_${PBS_JOBID}.log"', "-e err/e"],
     ["--output %x_%A_%a.log: OutputFile: Torque adds the index of each element to the name: "
      "{name}_{array_jobid}.log-{index}", "--output %x_%A_%a.log: the name stands in the file name as fit",
      "--output %x_%A_%a.log: the id of the array is written as ${PBS_JOBID}"]),
]


@pytest.mark.parametrize(("source", "target", "directives", "options", "messages"), CASES)
def test_effects(source: str, target: str, directives: str, options: list[str], messages: list[str]) -> None:
    lines, findings = converted(source, target, f"#!/bin/sh\n{directives}./a\n")
    assert [line.split(" ", 1)[1] for line in lines if line.startswith("#")] == options
    assert findings == messages


def test_a_file_in_the_home_directory_goes_where_the_profile_says() -> None:
    """sbatch fills in ``%u`` and no variable; a manager that knows neither is told of."""
    site = read_site(b'name = "a"\nhome = "/export/home/{user}/"\n', "a.toml")
    document = get("sge").read(b"#!/bin/sh\n#$ -o $HOME/r.$JOB_ID -j y\n./a\n", ReadContext())
    lines, consequences = {}, {}
    for target in ("slurm", "pbspro"):
        context = WriteContext(Findings("s"), policy=Policy.WARN, site=site)
        lines[target] = next(line for line in get(target).write(document, context).splitlines() if "/r." in line)
        consequences[target] = [f.consequence for f in context.findings if f.subject == "OutputFile directory"]
    assert lines == {"slurm": "#SBATCH --output=/export/home/%u/r.%j", "pbspro": '#PBS -o "$HOME/r.^jobid^"'}
    assert consequences == {"slurm": [], "pbspro": ["breaks"]}


@pytest.mark.parametrize("target", ["slurm", "torque", "sge", "lsf", "flux"])
def test_threads_of_several_chunks_are_those_of_the_first(target: str) -> None:
    """The script runs there, however the groups are written; those of the others are told."""
    lines, findings = converted("pbspro", target, "#PBS -l select=2:ncpus=4:ompthreads=2+3:ncpus=8:ompthreads=8\n./a\n")
    assert lines[-2:] == ["export OMP_NUM_THREADS=2", "./a"]
    assert len([text for text in findings if "ompthreads=8 of this option is dropped" in text]) == 1


@pytest.mark.parametrize(("text", "scope", "option"), [
    ("12-31T07:05", "Year", "-a 12310705"), ("31T07:05:09", "Month", "-a 310705.09"),
    ("02-29T0:00", "Year", "-a 02290000"), *((text, scope, "") for text, scope in (
        ("02-30T07:05", "Year"), ("13-01T07:05", "Year"), ("32T07:05", "Month"), ("12-31", "Year"),
        ("31T07:05", "Year"), ("12-31T07:05", "Month"), ("12-31T07:05", "Day"), ("2030-12-31T07:05", "Year"),
        ("T07:05", "Month")))])
def test_a_day_that_a_document_says_is_one_or_is_told(text: str, scope: str, option: str) -> None:
    document = get("sss").read(f"<Job><Executable>/bin/true</Executable><Extension type='Scheduler' "
                               f"name='EligibleTimeOf{scope}'>{text}</Extension></Job>".encode(), ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    lines = str(get("pbspro").write(document, context)).splitlines()
    assert [line for line in lines if " -a " in line] == ([f"#PBS {option}"] if option else [])
    assert [f.rule for f in context.findings if "TimeOf" in f.subject] == ([] if option else ["SSS501"])


@pytest.mark.parametrize(("clock", "options"), [
    ("07:05", ["#SBATCH --begin=07:05"]), ("7:05:00", ["#SBATCH --begin=07:05"]),
    *((text, []) for text in ("", "7", "24:00", "07:60", "07:05:30:1", "07:0x", "07:05;true", "now", "-1:00"))])
def test_an_hour_that_a_document_says_is_one_or_is_told(clock: str, options: list[str]) -> None:
    document = get("sss").read(f"<Job><Executable>/bin/true</Executable><Extension type='Scheduler' "
                               f"name='EligibleTimeOfDay'>{clock}</Extension></Job>".encode(), ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    lines = str(get("slurm").write(document, context)).splitlines()
    assert [line for line in lines if "begin" in line] == options
    assert [f.rule for f in context.findings if "OfDay" in f.subject] == ([] if options else ["SSS501"])


@pytest.mark.parametrize(("target", "directory"), [
    ("slurm", "$SLURM_SUBMIT_DIR/r${SLURM_ARRAY_JOB_ID}.${SLURM_ARRAY_TASK_ID}"),
    ("pbspro", "$PBS_O_WORKDIR/r${PBS_JOBID%%[!0-9]*}.${PBS_ARRAY_INDEX}"),
    ("sge", "$SGE_O_WORKDIR/r${JOB_ID}.${SGE_TASK_ID}")])
def test_the_script_goes_to_a_directory_with_patterns(target: str, directory: str) -> None:
    lines, _ = converted("lsf", target, '#!/bin/sh\n#BSUB -J "a[1-3]"\n#BSUB -cwd r%J.%I\n./a\n')
    assert lines[-2:] == [f'mkdir -p "{directory}" && cd "{directory}"', "./a"]


@pytest.mark.parametrize(("target", "directory", "message"), [
    ("slurm", "/w/%G", "dropped, Slurm has no place for it"), ("htcondor", "/w/%U", "dropped, only LSF fills in %U")])
def test_a_directory_with_a_pattern_that_nothing_stands_for_is_told(target: str, directory: str, message: str) -> None:
    """It was written as it stood, so that the job looked for a directory of that name."""
    document = get("lsf").read(f"#!/bin/sh\n#BSUB -cwd {directory}\n./a\n".encode(), ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    assert directory not in str(get(target).write(document, context))
    assert f"-cwd {directory}: InitialWorkingDirectory: {message}" in [f.message for f in context.findings]


def test_the_first_line_and_the_first_commands_are_those_of_the_stated_shell() -> None:
    """``#!/bin/sh`` stood above ``-S /bin/zsh``, and commands of sh before a script that csh runs."""
    assert converted("torque", "pbspro", "#PBS -S /bin/zsh\nsource x\n")[0] == ["#PBS -S /bin/zsh", "source x"]
    document = get("torque").read(b"#PBS -S /bin/zsh\nsource x\n", ReadContext(policy=Policy.WARN))
    assert str(get("pbspro").write(document, WriteContext(Findings("s")))).startswith("#!/bin/zsh\n#PBS -S /bin/zsh\n")
    text = "#!/bin/sh\n#PBS -S /bin/csh\n#PBS -d /s/x\n#PBS -l file=5mb\necho a\n"
    assert converted("torque", "pbspro", text)[0][-2:] == ["cd /s/x", "echo a"]


def test_lines_that_order_storage_are_told() -> None:
    """They are no directives, and stayed as comments in silence."""
    text = b"#!/bin/sh\n#SBATCH -n 1\n#DW jobdw capacity=10GB\n#BBx\ncp a $DW_JOB\n#BB create name=x\n"
    document = get("slurm").read(text, ReadContext())
    for target, places in (("pbspro", [(3, "costs"), (6, "costs")]), ("slurm", [])):
        context = WriteContext(Findings("s"), policy=Policy.WARN)
        assert "#DW jobdw capacity=10GB\n" in str(get(target).write(document, context))
        assert sorted((f.line, f.consequence) for f in context.findings if f.subject == "burst buffer") == places


def test_a_start_at_once_is_nothing_to_tell_of() -> None:
    document = get("slurm").read(b"#!/bin/sh\n#SBATCH --begin=now\n./a\n", ReadContext())
    assert [(f.severity, f.message) for f in document.findings or ()] == [
        ("info", "--begin now: a job may begin at once unless told otherwise")]
    with pytest.raises(RejectedError, match="--begin 25:00: hour must be in"):
        get("slurm").read(b"#!/bin/sh\n#SBATCH --begin=25:00\n./a\n", ReadContext())


@pytest.mark.parametrize("target", ["slurm", "pbspro", "flux", "cobalt"])
def test_a_directory_with_variables_is_gone_to_by_the_shell(target: str) -> None:
    """LSF and Torque fill them in; where the option does not, the shell of the script can."""
    document = get("lsf").read(b"#!/bin/sh\n#BSUB -oo x -eo y -cwd /w/$USER/run\n./a\n", ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    lines = get(target).write(document, context).splitlines()
    assert [line for line in lines if "USER" in line] == ['cd "/w/$USER/run"']
    assert [f.message.partition("; ")[2] for f in context.findings if "USER" in f.message] == [
        'the script begins with cd "/w/$USER/run"']


@pytest.mark.parametrize("home", ["home", "/home/{name}", "/home/{{user}}", "/a\\nb"])
def test_a_home_that_is_no_directory_is_refused(home: str) -> None:
    with pytest.raises(SiteError, match=r"home: a path that begins with /"):
        read_site(f'name = "a"\nhome = "{home}"\n'.encode(), "a.toml")


@pytest.mark.parametrize(("body", "messages"), [
    ("./a $SGE_TASK_LAST", ["-t 3-10:3: SLURM_ARRAY_TASK_MAX is the last index, 9; SGE_TASK_LAST was 10"]),
    ("./a", []),
])
def test_the_last_index_of_a_step(body: str, messages: list[str]) -> None:
    lines, findings = converted("sge", "slurm", f"#!/bin/sh\n#$ -t 3-10:3\n{body}\n")
    assert lines[0] == "#SBATCH --array=3-10:3"
    assert [message for message in findings if "last index" in message] == messages


def test_a_value_that_loses_against_the_submitters_own_is_told_by_the_reader() -> None:
    context = ReadContext(findings=Findings("s"))
    get("sge").read(b"#!/bin/sh\n#$ -V -v X=changed,Y\n./a\n", context)
    assert [f.message for f in context.findings] == [
        "-v X=changed,Y: -V goes before it: where the submitter has X, that value counts"]


DRIVER = """\
#!/bin/sh
#$ -cwd
cat > c.sh <<"E"
#$ -N child
./a
E
echo $((1<<x))
qsub c.sh
"""


@pytest.mark.parametrize(("target", "header"), [
    ("sge", ["#$ -cwd"]), ("slurm", ["#SBATCH --job-name=child"]), ("pbspro", ["#PBS -N child"])])
def test_here_documents_keep_their_text(target: str, header: list[str]) -> None:
    lines, _ = converted("sge", target, DRIVER)
    assert lines[:len(header)] == header
    assert lines[lines.index('cat > c.sh <<"E"'):] == DRIVER.splitlines()[2:]
    if target == "sge":
        assert converted("sge", target, "\n".join(["#!/bin/sh", *lines, ""]))[0] == lines


def test_whole_minutes_are_told() -> None:
    context = ReadContext(findings=Findings("s"))
    get("slurm").read(b"#!/bin/sh\n#SBATCH --time=23:59:59\n", context)
    assert [(f.severity, f.message) for f in context.findings] == [
        ("info", "--time 23:59:59: sbatch takes whole minutes, rounded up: 24:00:00")]


@pytest.mark.parametrize("text", ["48:00:18446744073709551616", "1-0:0:0000000001", "9999999999:0:1"])
def test_a_time_of_too_many_digits_is_one_finding(text: str) -> None:
    """It ended the command: what is told of the seconds read it again, and read more digits than the grammar."""
    with pytest.raises(RejectedError, match=r"^s:2:9: SSS505 error --time .* is no time of Slurm"):
        get("slurm").read(f"#!/bin/sh\n#SBATCH --time={text}\n".encode(), ReadContext(findings=Findings("s")))


APART, ONE = "NAME.oID and NAME.eID", "slurm-ID.out with errors"


@pytest.mark.parametrize(("source", "target", "text", "message", "severity"), [
    ("slurm", "sge", "#SBATCH -J s\n", f"Slurm is in {ONE}, that of Grid Engine in {APART}", "info"),
    ("slurm", "pbspro", "#SBATCH -J s\ncat slurm-$SLURM_JOB_ID.out\n",
     f"Slurm is in {ONE}, that of PBS Pro in {APART}; the commands name such a file", "warning"),
    ("sge", "slurm", "#$ -cwd -N s\n", f"Grid Engine is in {APART}, that of Slurm in {ONE}", "info"),
    ("pbspro", "slurm", "#PBS -N sim\nmail < sim.o${PBS_JOBID%%.*}\n",
     f"PBS Pro is in {APART}, that of Slurm in {ONE}; the commands name such a file", "warning"),
    ("torque", "flux", "#PBS -N sim\nmail < sim.e${PBS_JOBID%%.*}\n",
     f"Torque is in {APART}, that of Flux in flux-ID.out with errors; the commands name such a file", "warning"),
    ("pbspro", "cobalt", "#PBS -N s\n", f"PBS Pro is in {APART}, that of Cobalt in ID.output and ID.error", "info"),
    ("slurm", "lsf", "#SBATCH -J s\n", f"Slurm is in {ONE}, that of LSF in a mail", "info"),
    ("slurm", "htcondor", "#SBATCH -J s\n", f"Slurm is in {ONE}, that of HTCondor in no file", "info"),
    ("slurm", "flux", "#SBATCH -J s\n", "", ""), ("pbspro", "torque", "#PBS -N s\ncat s.o$PBS_JOBID\n", "", ""),
    ("slurm", "sge", "#SBATCH -o x\n", "", ""), ("sge", "slurm", "#$ -j y -o x\n", "", ""),
])
def test_files_that_no_option_names(source: str, target: str, text: str, message: str, severity: str) -> None:
    """Names of output by default differ, and where errors go: it is told, for no option appears unasked."""
    document = get(source).read(f"#!/bin/sh\n{text}./a\n".encode(), ReadContext())
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    get(target).write(document, context)
    told = [(f.message, f.severity) for f in context.findings if f.message.startswith("OutputFile: without an option")]
    assert told == ([(f"OutputFile: without an option output of {message}", severity)] if message else [])


@pytest.mark.parametrize("directives", ["#PBS -t 1-3\n#PBS -o \"out.${PBS_JOBID}\"\n#PBS -e logs/\n",
                                        "#PBS -t 1-3\n#PBS -j oe\n#PBS -o \"x.$PBS_ARRAYID\"\n"])
def test_names_that_torque_numbers_itself_come_back_as_they_were(directives: str) -> None:
    text = f"#!/bin/sh\n{directives}./a\n"
    assert converted("torque", "torque", text) == (text.splitlines()[1:], [])


@pytest.mark.parametrize(("source", "target", "directives", "line"), [
    ("slurm", "torque", "#SBATCH -a 1-3\n",
     'if [ -n "${PBS_ARRAYID+x}" ]; then export SLURM_JOB_NAME="${PBS_JOBNAME%-$PBS_ARRAYID}"; fi'),
    ("slurm", "torque", "#SBATCH -n 2\n",
     'if [ -n "${PBS_JOBNAME+x}" ]; then export SLURM_JOB_NAME="${PBS_JOBNAME}"; fi')])
def test_the_name_of_an_array_is_not_that_of_its_element(source: str, target: str, directives: str, line: str) -> None:
    lines, _ = converted(source, target, f"#!/bin/sh\n{directives}./a $SLURM_JOB_NAME\n")
    assert line in lines


def test_that_an_element_of_torque_has_a_name_of_its_own_is_told() -> None:
    _, told = converted("torque", "slurm", "#!/bin/sh\n#PBS -t 1-3\n./a $PBS_JOBNAME\n")
    assert told == ["the shim gives PBS_JOBNAME of Torque as ${SLURM_JOB_NAME}, which is only close: the name of an "
                    "element carries its index there"]


@pytest.mark.parametrize(("source", "directives", "export", "expected"), [
    ("flux", "#FLUX: --env=A=1\n", "--export=ALL,A=1", ["a variable that the submitter has wins over the one given"]),
    ("lsf", '#BSUB -env "all, A=1"\n', "--export=ALL,A=1",
     ["a variable that the submitter has wins over the one given"]),
    ("cobalt", "#COBALT --env A=1\n", "--export=A=1", ["of the submitter's variables none go along then"]),
    ("pbspro", "#PBS -v A=1\n", "--export=A=1", ["of the submitter's variables none go along then"]),
    ("pbspro", "#PBS -N x\n", "", ["jobs of PBS Pro find few of the submitter's variables unless told otherwise, those "
                                   "of Slurm all"])])
def test_variables_that_are_set_keep_the_submitters_where_they_were(source: str, directives: str, export: str,
                                                                    expected: list[str]) -> None:
    document = get(source).read(f"#!/bin/sh\n{directives}./a\n".encode(), ReadContext())
    findings = Findings("s")
    text = get("slurm").write(document, WriteContext(findings, policy=Policy.WARN))
    assert [line[8:] for line in str(text).splitlines() if "--export" in line] == [export] * bool(export)
    assert [f.message for f in findings if f.subject == "Environment"] == [f"Environment: {text}" for text in expected]


@pytest.mark.parametrize(("target", "first"), [
    ("pbspro", 'cd "$PBS_O_WORKDIR"'), ("torque", 'cd "$PBS_O_WORKDIR"'), ("sge", 'cd "$SGE_O_WORKDIR"')])
def test_what_htcondor_takes_from_where_it_was_submitted_is_found_there(target: str, first: str) -> None:
    """Its executable is named from there; that the job writes there too is told, for it wrote into a folder of its
    own."""
    document = get("htcondor").read(b"executable = a.sh\nqueue\n", ReadContext())
    findings = Findings("s")
    text = str(get(target).write(document, WriteContext(findings, policy=Policy.WARN)))
    assert text.splitlines()[-2:] == [first, "./a.sh"]
    assert [f.severity for f in findings if f.subject == "InitialWorkingDirectory"] == ["warning"]
