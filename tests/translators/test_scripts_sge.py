"""Batch scripts of Grid Engine: read as the real qsub reads them, and what carries over."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from sssjob.conversion.site import Site, read_site
from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.xml.reader import read_document
from tests.cases import Cases
from tests.translators.sge_listing import canonical, said

FIXTURES = Path(__file__).parents[1] / "fixtures" / "scripts"
RECORDED: dict[str, Any] = json.loads((FIXTURES / "qsub-8.1.9.json").read_text())["cases"]
#: ``qsub -verify`` takes them, qmaster refuses them: seen with submitted jobs.
LATER = (
    "arr0", "name_digit", "pe-9", "l-22", "l-29", "N-83", "N-85", "N-86", "N-87", "N-88", "N-141", "N-142", "t-190")
#: Refused by qsub, but placeholders of templates for us, or a question of a file that is not there.
LENIENT = ("t-187", "pe-195", "jsv-109")
#: The listing shows one of several files.
LISTED = ("o-66",)
SH = "#!/bin/sh\n"
SITE = read_site('name = "x"\ntimezone = "Europe/Berlin"\n[sge.pe.shm]\nallocation_rule = "$pe_slots"\n'
                 '[sge.pe.mpi]\nallocation_rule = "$fill_up"\n[sge.pe.mpi8]\nallocation_rule = 8\n')


def read(text: str, name: str = "sge", site: Site | None = None, **options: str) -> tuple[Document, Findings]:
    context = ReadContext("job", Findings("job"), policy=Policy.WARN, options=options, site=site)
    return get(name).read(text.encode(), context), context.findings


def convert(text: str, source: str, target: str, site: Site | None = None, *,
            defaults: bool = False) -> tuple[list[str], list[tuple[str, str]]]:
    """The directives that come out, and (kind, subject) of what writing tells; of defaults that differ where asked."""
    document, _ = read(SH + text, source, site)
    context = WriteContext(Findings("job"), policy=Policy.WARN, site=site, options={"layout": "canonical"})
    lines = get(target).write(document, context).splitlines()
    made = [line.split(" ", 1)[1] for line in lines[1:] if line.startswith("#")]
    return [line for line in made if defaults or line != "-cwd" or source == "sge"], [
        (f.kind, f.subject) for f in context.findings if f.severity != "info" and (
            defaults or f.subject not in ("Environment", "InitialWorkingDirectory"))]


def sge(text: str, **options: str) -> list[str]:
    """The directives that a script of Grid Engine is written with."""
    document, _ = read(SH + text, "sge", None, **options)
    lines = get("sge").write(document, WriteContext(options={"layout": "canonical"})).splitlines()
    return [line.removeprefix("#$ ") for line in lines if line.startswith("#$")]


def job(text: str) -> Job:
    return next(j for j, _ in read(SH + text)[0].jobs())


# --- beside the real command
def test_qsub_reads_the_same() -> None:
    with Cases() as case:
        for name, recorded in RECORDED.items():
            with case(name):
                check_recorded(name, recorded)


def check_recorded(name: str, recorded: dict[str, Any]) -> None:
    """Hold what is read of a script against what qsub was recorded to read of it."""
    context = ReadContext(name, Findings(name), options={"set": shlex.join(recorded.get("arguments", ()))})
    if recorded["accepted"] if name in LATER + LENIENT else not recorded["accepted"]:
        with pytest.raises(RejectedError):
            get("sge").read(recorded["script"].encode(), context)
        return
    writing = WriteContext(options={"layout": "canonical"})
    lines = get("sge").write(get("sge").read(recorded["script"].encode(), context), writing).splitlines()
    if name not in LISTED + LENIENT:
        assert canonical(said(line for line in lines if line.startswith("#$"))) == canonical(recorded["reading"])


# --- traps, by number
def test_01_07_08_reading_never_stops() -> None:
    text = "set -e\n#$ -q a\ncat > x <<EOF\n#$ -N inner\nEOF\n"
    assert sge(text) == ["-N inner", "-q a", "-N inner"]        # the last is the text of the here-document
    document, _ = read(SH + text)
    assert document.files["Script"].text == SH + "set -e\ncat > x <<EOF\n#$ -N inner\nEOF\n"


def test_02_03_blanks_and_comments() -> None:
    assert sge(" #$ -N a\n##$ -N b\n# $ -N c\n") == []
    _, findings = read(SH + " #$ -N a\n##$ -N b\n")
    assert [(f.kind, f.line, f.column) for f in findings] == [("dead", 2, 2)]


def test_04_05_glued_to_the_prefix() -> None:
    assert sge("#$-N x\n") == ["-N x"]
    with pytest.raises(RejectedError):
        get("sge").read(b"#!/bin/sh\n#$VAR holds the path\n", ReadContext("job", Findings("job")))


def test_11_no_first_line() -> None:
    assert not read("#$ -N a\necho\n")[1].rejected


def test_15_comment_inside_quotes() -> None:
    assert sge('#$ -v "A=x#y" -N b\n') == ["-v A=x"]


def test_a_quote_takes_the_rest_of_the_line() -> None:
    """Seen with 8.1.9: whatever closes it."""
    document, findings = read(SH + "#$ -N 'a' -q x\n")
    assert next(document.jobs())[0].name == "a -q x"
    assert [(f.kind, f.line, f.column) for f in findings] == [("approximated", 2, 11)]


def test_soft_ends_with_its_line() -> None:
    assert sge("#$ -soft\n#$ -l a=1\n#$ -soft -l b=1 -hard -l c=1\n") == ["-l a=1", "-l c=1", "-soft -l b=1"]


def test_30_dos_line_breaks() -> None:
    document, findings = read("#!/bin/sh\r\n#$ -N a\r\necho\r\n")
    assert document.files["Script"].content() == b"#!/bin/sh\necho\n" and next(document.jobs())[0].name == "a"
    assert [f.kind for f in findings] == ["approximated"]


@pytest.mark.parametrize(("text", "seconds"), [
    ("90", 90), ("1:30:00", 5400), ("::30", 30), ("1::", 3600), ("0x10", 16), ("010", 8), ("1.5", 2),
    ("1:30:90", 5490)])
def test_31_times(text: str, seconds: int) -> None:
    requested = job(f"#$ -l h_rt={text}\n").requested
    assert requested is not None and requested.duration == seconds


def test_32_two_fields_are_no_time() -> None:
    _, findings = read(SH + "#$ -l h_rt=1:30\n")
    assert [(f.kind, f.subject) for f in findings] == [("refused", "-l h_rt")]


@pytest.mark.parametrize(("text", "written"), [
    ("4G", "4G"), ("4g", "3906250K"), ("1.5G", "1536M"), ("0x400K", "1M"), ("512", "512"), ("INFINITY", "INFINITY")])
def test_39_sizes(text: str, written: str) -> None:
    assert sge(f"#$ -l h_vmem={text}\n") == [f"-l h_vmem={written}"]


def test_37_memory_is_that_of_a_slot() -> None:
    assert convert("#$ -l h_vmem=2G\n#$ -pe mpi 8\n", "sge", "slurm")[0] == ["--ntasks=8", "--mem-per-cpu=2G"]
    assert convert("#$ -l h_vmem=2G\n#$ -pe mpi 8\n", "sge", "pbspro")[0] == [
        "-l select=8:ncpus=1:mpiprocs=1:mem=2gb"]      # PBS_NODEFILE has a line for each task
    assert convert("#SBATCH -N 2 -n 8 --mem=4G\n", "slurm", "sge", SITE)[0][:2] == ["-pe mpi 8", "-l h_vmem=1G"]
    document, findings = read(SH + "#$ -l mem_free=2G -pe mpi 2\n")
    assert [(f.kind, f.subject) for f in findings] == [("site-dependent", "-l mem_free")]
    assert get("sge").write(document, WriteContext()).splitlines()[1:] == ["#$ -pe mpi 2", "#$ -l mem_free=2G"]


def test_41_gpus_are_counted_as_the_site_counts() -> None:
    assert sge("#$ -l gpu=2\n") == ["-l gpu=2"]
    text, findings = convert("#SBATCH -n 2 --gpus=4\n", "slurm", "sge", SITE)
    assert text == ["-pe mpi 2", "-l gpu=2"] and ("site-dependent", "Resource") in findings


def test_46_ranges_of_slots() -> None:
    for text, written in (("4-8", "4-8"), ("-8", "1-8"), ("4-", "4-"), ("16,8,4-1", "16,8,4-1"), ("8-4", "4-8")):
        assert sge(f"#$ -pe pvm {text}\n") == [f"-pe pvm {written}"]
    output, findings = convert("#$ -pe mpi 4-8\n", "sge", "slurm")
    assert output == ["--ntasks=4"] and ("approximated", "Processors") in findings


def test_49_mail() -> None:
    assert sge("#$ -m be\n#$ -m n\n#$ -m sa\n") == ["-m as"]
    assert sge("#$ -m bea -M a@b,c@d\n") == ["-m bea", "-M a@b,c@d"]
    assert convert("#$ -m a -M a@b\n", "sge", "slurm")[0] == ["--mail-type=FAIL", "--mail-user=a@b"]


def test_50_52_files() -> None:
    assert convert("#$ -o out.$JOB_ID.$TASK_ID -e err/\n", "sge", "slurm")[0][:2] == [
        "--output=out.%j.%a", "--error=err/%x.e%j"]
    assert sge("#$ -o $HOME/$JOB_IDx.$USER -e host:/x\n") == ["-o $HOME/$JOB_IDx.$USER", "-e host:/x"]
    assert next(read(SH + "#$ -o $JOB_IDx\n")[0].jobs())[0].value("OutputFile") == "{jobid}x"


def test_colons_and_commas_in_file_names() -> None:
    assert sge("#$ -o host:/x -e :/y -i :a:b\n") == ["-i :a:b", "-o host:/x", "-e /y"]
    assert convert("#SBATCH -o a:b -e c,d\n", "slurm", "sge") == (["-o :a:b"], [("dropped", "ErrorFile")])
    assert convert("#PBS -o host:/x\n", "torque", "sge")[0] == ["-o host:/x"]


def test_53_joined_streams() -> None:
    assert sge("#$ -j y -e e -o o\n") == ["-o o", "-e e", "-j y"]
    assert convert("#SBATCH -o o\n", "slurm", "sge")[0] == ["-o o", "-j y"]
    assert convert("#PBS -o o\n", "torque", "sge")[0] == ["-o o"]
    assert convert("#PBS -e e -j eo\n", "torque", "sge")[0] == ["-o e", "-j y"]


def test_55_values_with_a_comma() -> None:
    text, findings = convert("#SBATCH --export=ALL,A=1,B=\"'x,y'\"\n", "slurm", "sge")
    assert text == ["-V", "-v A=1"] and findings == [("approximated", "Variable")]        # the script exports it
    assert sge('#$ -v A="x  y",B\n#$ -v A=2\n') == ["-v A=2,B"]


def test_56_57_defaults_differ() -> None:
    assert convert("#$ -N a\n", "sge", "slurm", defaults=True)[1] == [
        ("approximated", "Environment"), ("approximated", "InitialWorkingDirectory")]
    assert sge("#$ -wd /x -cwd\n") == ["-cwd"] and sge("#$ -cwd -wd /x\n") == ["-wd /x"]


def test_58_arrays_begin_at_one() -> None:
    assert convert("#SBATCH -a 0-9:3%2\n", "slurm", "sge") == (
        ["-t 1-10:3", "-tc 2"], [("approximated", "Extension Array")])
    assert convert("#SBATCH -a 1,3,5\n", "slurm", "sge")[0] == ["-t 1-5:2"]
    assert convert("#SBATCH -a 1,3,6\n", "slurm", "sge") == ([], [("dropped", "Extension Array")])
    assert convert("#$ -t 7 -tc 2\n", "sge", "slurm")[0] == ["--array=7%2"]


def test_60_61_dependencies() -> None:
    text, findings = convert("#SBATCH -d afterany:1:2,afterok:3,afternotok:4\n", "slurm", "sge")
    assert text == ["-hold_jid @JOBID:1@,@JOBID:2@,@JOBID:3@"]
    assert findings == [("site-dependent", "Dependency")] * 2 + [("approximated", "Dependency"), (
        "site-dependent", "Dependency"), ("dropped", "Dependency")]
    assert sge("#$ -hold_jid 12,prep,x*\n#$ -hold_jid 13\n") == ["-hold_jid 12,prep,13,x*"]
    assert convert("#$ -hold_jid 12,prep\n", "sge", "slurm")[0] == ["--dependency=afterany:@JOBID:12@"]


@pytest.mark.parametrize("value", ["{{n}}", "%(n)s", "$nruns", "@N@", "<my_count>"])
def test_66_templates(value: str) -> None:
    _, findings = read(SH + f"#$ -t {value}\n")
    assert [(f.kind, f.line, f.column) for f in findings] == [("template", 2, 4)]
    assert sge(f"#$ -t {value}\n") == [f"-t {value}"]


# --- the command line, sites
def test_options_of_the_command_line() -> None:
    assert sge("#$ -q a\n#$ -l h_rt=2,a=1\n", set="-q b -l h_rt=3 -soft -l c=1") == [
        "-q b", "-l h_rt=00:00:03", "-l a=1", "-soft -l c=1"]
    assert sge("#% -N a\n#$ -N b\n", set="-C '#%'")[0] == "-N a"
    assert sge("#$ -N a\n", set="-C ''") == []


def test_the_name_of_a_parallel_environment() -> None:
    text = "#SBATCH -N {} -n {}\n"
    assert convert(text.format(1, 4), "slurm", "sge", SITE)[0] == ["-pe shm 4"]
    assert convert("#SBATCH -N 2 --ntasks-per-node=8\n", "slurm", "sge", SITE) == (["-pe mpi8 16"], [])
    made, told = convert(text.format(2, 4), "slurm", "sge")
    assert made == ["-pe @PE@ 4"] and {("site-dependent", "Processors"), ("site-dependent", "NodeCount")} <= set(told)
    assert convert("#$ -pe @PE@ 4\n", "sge", "slurm")[0] == ["--ntasks=4"]
    assert convert(text.format(1, 1), "slurm", "sge")[0] == []


def test_the_allocation_rule_says_the_hosts() -> None:
    rule = 'name = "x"\n[sge.pe.smp]\nallocation_rule = {}\n'
    one, eight = read_site(rule.format('"$pe_slots"')), read_site(rule.format(8))
    text = "#$ -pe smp 16\n"
    assert convert(text, "sge", "slurm", one)[0] == ["--nodes=1", "--ntasks=1", "--cpus-per-task=16"]
    assert convert(text, "sge", "slurm", eight)[0] == ["--nodes=2", "--ntasks=16"]
    assert convert(text, "sge", "torque", eight)[0] == ["-l nodes=2:ppn=8"]
    assert convert(text, "sge", "pbspro", one)[0] == ["-l select=1:ncpus=16:mpiprocs=1"]
    assert convert(text, "sge", "sge", one) == (["-pe smp 16"], [])
    assert convert(text, "sge", "slurm")[0] == ["--nodes=1", "--ntasks=1", "--cpus-per-task=16"]
    assert [(f.kind, f.subject) for f in read(SH + text)[1]] == [("site-dependent", "-pe")]
    assert list(read(SH + text, site=one)[1]) == list(read(SH + "#$ -pe mpi 16\n")[1]) == []
    assert convert("#$ -pe smp 4-8\n", "sge", "sge", eight) == (["-pe smp 4-8"], [])


ONE_HOST = """name = "x"
[sge.pe.fill]
allocation_rule = "$fill_up"
[sge.pe.node]
allocation_rule = "$pe_slots"
"""


@pytest.mark.parametrize("launcher", ["mpirun -np 4 ./a", "time mpiexec.hydra ./a", "srun ./a", "orterun ./a",
                                      "if true; then /opt/ompi/bin/mpirun ./a; fi"])
def test_slots_of_one_host_are_tasks_where_the_commands_start_some(launcher: str) -> None:
    """srun starts a program once for each task, mpirun of Open MPI no more than there are tasks."""
    assert convert(f"#$ -pe smp 4\n{launcher}\n", "sge", "slurm")[0] == ["--nodes=1", "--ntasks=4"]


@pytest.mark.parametrize(("target", "options", "slots"), [
    ("slurm", ["--nodes=1", "--ntasks=1", "--cpus-per-task=4"], "$SLURM_CPUS_PER_TASK"),
    ("pbspro", ["-l select=1:ncpus=4:mpiprocs=1"], "$NCPUS"),
    ("flux", ["--nodes=1", "--nslots=1", "--cores-per-slot=4"], "4"),
    ("torque", ["-l nodes=1:ppn=4"], "$PBS_NP"),
    ("lsf", ["-n 4", '-R "span[hosts=1]"'], "$LSB_DJOB_NUMPROC"),       # affinity[] would have to be set up by the site
    ("sge", ["-pe node 4"], "$NSLOTS"),
])
def test_slots_of_one_host_are_processors_of_one_task_else(target: str, options: list[str], slots: str) -> None:
    """The profile knows the environment, or its name tells; NSLOTS stays the number of slots in either form."""
    script = SH + "#$ -pe node 4\n./compile -j $NSLOTS\n"
    site = read_site(ONE_HOST)
    context = WriteContext(Findings("job"), policy=Policy.WARN, site=site, options={"body": "translate"})
    text = get(target).write(read(script, site=site)[0], context)
    assert [line for line in options if line not in text] == []
    assert f"./compile -j {slots}\n" in text


def test_one_task_of_several_processors_is_on_one_host() -> None:
    """An environment that fills up hosts could spread the processors of a task over two of them."""
    site = read_site(ONE_HOST)
    assert convert("#SBATCH -n 1 -c 4\n", "slurm", "sge", site)[0] == ["-pe node 4"]
    assert convert("#PBS -l select=1:ncpus=8:mpiprocs=1\n", "pbspro", "sge", site)[0] == ["-pe node 8"]
    assert convert("#SBATCH -n 4\n", "slurm", "sge", site)[0] == ["-pe fill 4"]
    assert convert("#SBATCH -n 1\n", "slurm", "sge", site)[0] == []


def test_amounts_of_a_site() -> None:
    site = read_site('name = "x"\n[sge]\nh_vmem_per_slot = false\n')
    assert convert("#$ -l h_vmem=8G -pe mpi 4\n", "sge", "pbspro", site)[0] == [
        "-l select=4:ncpus=1:mpiprocs=1:mem=2gb"]
    document, findings = read(SH + "#$ -a 202607011200\n", site=SITE)
    assert next(document.jobs())[0].value("EligibleTime") == 1782900000 and list(findings) == []


COMPLEXES = """name = "x"
[sge.pe.mpi]
allocation_rule = "$fill_up"
[sge.complex]
gpu = "GPU per job"
coproc = "GPU"
mem = "Memory"
ram = "Memory per job"
matlab = "License per job"
"""


@pytest.mark.parametrize(("line", "target", "out"), [
    ("-l gpu=2", "slurm", ["--ntasks=4", "--gpus=2"]), ("-l coproc=1", "slurm", ["--ntasks=4", "--gpus=4"]),
    ("-l mem=4G", "slurm", ["--ntasks=4", "--mem-per-cpu=4G"]),
    ("-l matlab=1", "slurm", ["--ntasks=4", "--licenses=matlab:1"]),
    ("-l gpu=2", "sge", ["-pe mpi 4", "-l gpu=2"]), ("-l mem=4G", "sge", ["-pe mpi 4", "-l mem=4G"]),
    ("-l ram=4G", "sge", ["-pe mpi 4", "-l ram=4G"]), ("-l matlab=1", "sge", ["-pe mpi 4", "-l matlab=1"]),
    ("-l gpu=x", "sge", ["-pe mpi 4", "-l gpu=x"]), ("-l other=1", "sge", ["-pe mpi 4", "-l other=1"]),
])
def test_what_the_site_calls_a_resource(line: str, target: str, out: list[str]) -> None:
    text, findings = convert(f"#$ -pe mpi 4\n#$ {line}\n", "sge", target, read_site(COMPLEXES))
    assert text == out and [kind for kind, _ in findings if kind == "dropped" and _ != "Extension pe"] == []


@pytest.mark.parametrize(("line", "target", "out", "messages"), [
    ("-l gpu=2", "slurm", [],
     ["-l gpu 2: dropped, Slurm has no place for it unless sge.complex of a site profile says what it is"]),
    ("-notify", "slurm", ["--signal=B:USR2@60"], []), ("-notify", "sge", ["-notify"], []),
    ("-notify", "flux", ["--signal=USR2@60s"], ["-notify: all processes of the job get the signal"]),
    ("-q a.q@@hg", "slurm", ["--partition=a.q@@hg"],
     ["-q a.q@@hg: a.q@@hg is a queue on some hosts alone; what that is elsewhere map.Queue of a site profile says"]),
])
def test_what_a_target_or_the_site_knows(line: str, target: str, out: list[str], messages: list[str]) -> None:
    document, findings = read(SH + f"#$ {line}\n#$ -o x -e y\n")
    context = WriteContext(findings, policy=Policy.WARN)
    lines = get(target).write(document, context).splitlines()
    made = [text.split(" ", 1)[1] for text in lines[1:] if text.startswith("#")]
    assert [text for text in made if text.split("=")[0].split()[0] not in ("--output", "--error", "-o", "-e")
            and "output.mode" not in text and "open-mode" not in text] == out
    assert [f.message for f in findings if f.severity != "info" and f.subject not in (
        "Environment", "InitialWorkingDirectory", "OutputFile", "ErrorFile")] == messages


def test_a_notification_comes_back_from_slurm() -> None:
    assert convert("#SBATCH --signal=B:USR2@60\n", "slurm", "sge") == (["-notify"], [])


def test_groups_are_added_up_or_told() -> None:
    group = "<TaskGroup><TaskCount>{}</TaskCount>{}</TaskGroup>"
    gpu = "<Requested><Resource name='GPU'>1</Resource></Requested>"
    for second, made, kind in ((group.format(2, ""), "-pe mpi 4", "approximated"),
                               (group.format(2, gpu), "-pe mpi 2", "dropped")):
        context = WriteContext(Findings("x"), policy=Policy.WARN, site=SITE)
        text = f"<Job><Executable>x</Executable>{group.format(2, '')}{second}</Job>"
        assert made in get("sge").write(read_document(text.encode()), context)
        assert (kind, "TaskGroup") in [(f.kind, f.subject) for f in context.findings]


def test_names_that_qmaster_refuses_are_not_written() -> None:
    assert convert("#SBATCH -J 1abc\n", "slurm", "sge") == (["-N _1abc"], [("approximated", "Name")])
    assert convert("#SBATCH -J 'my job'\n", "slurm", "sge") == (["-N my_job"], [("approximated", "Name")])
    assert convert("#SBATCH -C 'a' -w n1 -x n2 -L m:2\n", "slurm", "sge")[0] == ["-l a", "-l h=n1", "-l m=2"]


def test_what_only_grid_engine_says_is_kept() -> None:
    text = "#$ -clear -R y -notify -binding pe linear:2 -ac a=1 -ac b=2 -masterq m.q -A acct -js 3 -w e\n"
    assert sge(text) == ["-clear", "-A acct", "-masterq m.q", "-binding pe linear:2", "-js 3", "-R y", "-notify",
                         "-ac a=1,b=2", "-w e"]


@pytest.mark.parametrize(("environment", "profile", "told"), [
    ("smp 4", "", "info"), ("smp 2-4", "", "info"), ("threads 4", "allocation_rule = '$pe_slots'", "info"),
    ("four 8", "allocation_rule = 4", "info"), ("mpi 4", "", "warning"), ("four 6", "allocation_rule = 4", "warning"),
    ("smp 4", "allocation_rule = '$round_robin'", "warning")])
def test_an_environment_is_told_of_once_where_its_hosts_are_carried(environment: str, profile: str, told: str) -> None:
    """The number of nodes says all that it does; of another one nobody knows."""
    site = read_site(f"name = 'x'\n[sge.pe.{environment.split()[0]}]\n{profile}\n") if profile else None
    context = WriteContext(Findings("s"), policy=Policy.WARN)
    document = get("sge").read(f"#!/bin/sh\n#$ -pe {environment}\n./a\n".encode(), ReadContext(site=site))
    get("slurm").write(document, context)
    assert [(f.severity, f.rule) for f in context.findings if f.subject == "Extension pe"] == [
        (told, "SSS502" if told == "info" else "SSS501")]
