"""Batch scripts of LSF: where directives stand, what the two languages in them mean, and what carries over."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.conversion.site import Site, read_site
from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.scripts._lsf_expressions import DEEP, conditions, sections
from tests.strategies import examples

SH = "#!/bin/sh\n"
SITE = read_site('name = "x"\n[lsf]\nunit_for_limits = "MB"\nsuffixes = false\n')


def read(text: str, name: str = "lsf", site: Site | None = None, **options: str) -> tuple[Document, Findings]:
    context = ReadContext("job", Findings("job"), policy=Policy.WARN, options=options, site=site)
    return get(name).read(text.encode(), context), context.findings


def convert(text: str, source: str, target: str, site: Site | None = None) -> tuple[list[str], list[tuple[str, str]]]:
    """The directives that come out, and (kind, subject) of what writing tells, but for defaults that differ."""
    document, _ = read(SH + text, source, site)
    context = WriteContext(Findings("job"), policy=Policy.WARN, site=site)
    lines = get(target).write(document, context).splitlines()
    return [line.split(" ", 1)[1] for line in lines[1:] if line.startswith("#") and line != "#$ -cwd"], [
        (f.kind, f.subject) for f in context.findings
        if f.severity != "info" and f.subject not in ("Environment", "InitialWorkingDirectory")]


def lsf(text: str, site: Site | None = None, **options: str) -> list[str]:
    """The directives that a script of LSF is written with."""
    document, _ = read(SH + text, site=site, **options)
    lines = get("lsf").write(document, WriteContext(site=site, options={"layout": "canonical"})).splitlines()
    return [line.removeprefix("#BSUB ") for line in lines if line.startswith("#BSUB ")]


def told(text: str) -> list[tuple[str, str]]:
    return [(f.kind, f.subject) for f in read(SH + text)[1]]


def job(text: str) -> Job:
    return next(j for j, _ in read(SH + text)[0].jobs())


def refused(text: str) -> bool:
    with pytest.raises(RejectedError):
        get("lsf").read((SH + text).encode(), ReadContext("job", Findings("job")))
    return True


# --- traps, by number
def test_01_08_reading_never_stops() -> None:
    assert lsf("set -e\n#BSUB -q a\ncat > x <<EOF\n#BSUB -J inner\nEOF\n") == [
        "-J inner", "-q a", "-J inner"]     # the last is the text of the here-document


def test_03_commented_out() -> None:
    assert lsf("##BSUB -q a\n# #BSUB -q a\n#BSUBX -q a\n") == []
    assert lsf("# BSUB -x\n\t#BSUB -q a\n#BSUB-n 4\n") == ["-q a", "-n 4", "-x"]


def test_14_trailing_comments() -> None:
    assert lsf("#BSUB -n 32  # min CPU cores, max isn't\n") == ["-n 32"]
    assert told("#BSUB -n 32 cores\n") == [("approximated", "cores")]


def test_20_glued_values() -> None:
    assert lsf("#BSUB -n12 -W30 -qnormal\n") == ["-q normal", "-W 00:30", "-n 12"]


def test_25_several_requirements() -> None:
    assert lsf('#BSUB -R rusage[mem=3GB]\n#BSUB -R "a && b" -R "order[ut] span[hosts=1]"\n') == [
        '-R "select[a && b]"', '-R "span[hosts=1]"', '-R "rusage[mem=3GB]"', '-R "order[ut]"']


def test_25_compound_requirements() -> None:
    text = "2*{select[a] rusage[mem=1GB/task]}+4*{span[ptile=2]}"
    for slots in ("", "-n 6 "):
        assert lsf(f'#BSUB {slots}-R "{text}"\n') == ["-n 6", f'-R "{text}"']
    assert convert(f'#BSUB -R "{text}"\n', "lsf", "slurm")[0] == [
        "--ntasks=2", "--mem-per-cpu=1G", "--constraint=a", "hetjob", "--ntasks=4", "--ntasks-per-node=2"]
    assert convert("#SBATCH -n 4 --mem-per-cpu=1G\n#SBATCH hetjob\n#SBATCH -N 2 -n 16\n", "slurm", "lsf")[0] == [
        "-n 20", '-R "4*{rusage[mem=1GB/task]}+16*{span[ptile=8]}"']
    for kept in ("{select[a]}||{select[b]}", "1*{select[mem>1]}+1*{select[a]}", "2*{select[a]}+1*{cu[type=x]}"):
        assert lsf(f'#BSUB -R "{kept}"\n') == [f'-R "{kept}"']
    assert lsf(f'#BSUB -n 7 -R "{text}"\n') == ["-n 7", f'-R "{text}"']


def test_26_name_and_array() -> None:
    assert lsf("#BSUB -J name[1-10]%3\n") == ['-J "name[1-10]%3"']
    assert convert('#BSUB -J "n[1-10:2, 20]"\n', "lsf", "slurm")[0] == ["--job-name=n", "--array=1-10:2,20"]
    assert refused("#BSUB -J n[0-4]\n") and refused("#BSUB -J n[1-4\n")
    assert convert("#SBATCH -a 0-9:3%2 -J n\n", "slurm", "lsf") == (['-J "n[1-10:3]%2"'], [
        ("approximated", "Extension Array")])
    assert convert("#SBATCH -J a[b]\n", "slurm", "lsf") == (["-J a_b_"], [("approximated", "Name")])


def test_27_another_dash() -> None:
    assert told("#BSUB \u2013R span[hosts=1]\n") == [("dead", "directive")]


def test_30_dos_line_breaks() -> None:
    document, findings = read("#!/bin/sh\r\n#BSUB -q a\r\n")
    assert [f.kind for f in findings] == ["approximated"] and next(document.jobs())[0].value("Queue") == "a"


def test_31_32_times() -> None:
    for text, seconds in (("90", 5400), ("1:30", 5400), ("0:90", 5400)):
        requested = job(f"#BSUB -W {text}\n").requested
        assert requested is not None and requested.duration == seconds
    assert refused("#BSUB -W 1:30:00\n")
    assert convert("#SBATCH -t 1-0\n", "slurm", "lsf")[0] == ["-W 24:00"]
    assert convert("#PBS -l walltime=90\n", "torque", "lsf") == (["-W 00:02"], [("approximated", "Duration")])
    assert lsf("#BSUB -W 10/hostA\n") == ["-W 00:10/hostA"] and told("#BSUB -W 10/hostA\n") == [
        ("site-dependent", "-W")]


def test_38_memory_without_a_unit() -> None:
    assert told("#BSUB -M 2000\n#BSUB -R rusage[mem=2000]\n") == [("site-dependent", "-R"), ("site-dependent", "-M")]
    assert lsf("#BSUB -M 2000\n#BSUB -R rusage[mem=2000,lic=1]\n") == [
        '-R "rusage[mem=2000]"', '-R "rusage[lic=1]"', "-M 2000"]
    assert convert("#BSUB -M 2000 -R rusage[mem=2000]\n", "lsf", "slurm")[0] == ["--mem=2000M"]     # LSF's own units
    assert convert("#BSUB -M 4096000\n", "lsf", "slurm")[0] == ["--mem=4000M"]
    for text in ("-M 2000", '-R "rusage[mem=2000]"', '-R "rusage[mem=2000/task]"', '-R "rusage[mem=1.5]"'):
        assert lsf(f"#BSUB {text}\n") == [text]         # as it was said: the site may have another unit
    assert convert("#BSUB -R rusage[mem=2000]\n", "lsf", "slurm", SITE)[0] == ["--mem=2000M"]
    assert convert("#BSUB -M 2GB -n 1\n", "lsf", "slurm")[0] == ["--ntasks=1", "--mem-per-cpu=2G"]
    assert lsf("#BSUB -M 2GB\n") == ["-M 2GB"] and lsf("#BSUB -M 2000\n", SITE) == ["-M 2000"]
    assert convert("#SBATCH --mem=1025K\n", "slurm", "lsf", SITE)[0] == ['-R "rusage[mem=2]"']


def test_37_memory_of_a_host_a_task_and_the_job() -> None:
    for per, made in (("", ["--ntasks=4", "--mem=2G"]), ("/host", ["--ntasks=4", "--mem=2G"]),
                      ("/task", ["--ntasks=4", "--mem-per-cpu=2G"])):
        assert convert(f"#BSUB -n 4 -R rusage[mem=2GB{per}]\n", "lsf", "slurm")[0] == made
    assert lsf("#BSUB -R rusage[mem=2GB/job]\n") == ['-R "rusage[mem=2GB/job]"']


def test_41_gpus() -> None:
    assert convert("#BSUB -n 2 -gpu num=2/task:gmodel=V100\n", "lsf", "slurm")[0] == [
        "--ntasks=2", "--gpus-per-task=V100:2"]
    assert lsf("#BSUB -gpu num=4:mode=shared:j_exclusive=yes\n") == ['-gpu "num=4:mode=shared:j_exclusive=yes"']
    assert lsf("#BSUB -gpu -\n") == ["-gpu -"]
    assert convert("#SBATCH -n 4 --gpus=8\n", "slurm", "lsf")[0] == ["-n 4", '-gpu "num=2/task"']


def test_46_ranges_of_slots() -> None:
    assert lsf("#BSUB -n 4,8\n") == ["-n 4,8"]
    assert convert("#BSUB -n 4,8\n", "lsf", "sge")[0] == ["-pe @PE@ 4-8"]
    assert refused("#BSUB -n 8,4\n") and refused("#BSUB -n 0\n")


def test_49_mail() -> None:
    assert lsf("#BSUB -N -B -u a@b\n") == ["-B", "-N", "-u a@b"]
    assert convert("#SBATCH --mail-type=BEGIN,FAIL --mail-user=a@b\n", "slurm", "lsf")[0] == ["-B", "-Ne", "-u a@b"]


def test_50_54_files() -> None:
    assert lsf("#BSUB -o a.%J.%I -eo b -oo c\n") == ["-oo c", "-eo b"]
    assert lsf("#BSUB -oo c -o a.%J\n") == ["-o a.%J"]
    assert lsf("#BSUB -ee x\n") == ["-e e"] and told("#BSUB -ee x\n") == [("approximated", "x")]
    assert convert("#SBATCH -o a%%J\n", "slurm", "lsf") == ([], [("dropped", "OutputFile")])
    assert convert("#SBATCH -o a.%4j\n", "slurm", "lsf") == (["-oo a.%J"], [("approximated", "OutputFile")])


def test_53_one_file_for_both_streams() -> None:
    assert convert("#BSUB -o a\n", "lsf", "pbspro")[0] == ["-j oe", "-o a"]
    assert convert("#BSUB -o a\n", "lsf", "sge")[0] == ["-o a", "-j y"]
    assert convert("#PBS -o a\n", "torque", "lsf") == (["-oo a"], [("approximated", "ErrorFile")])
    assert convert("#PBS -o a -j oe\n", "torque", "lsf") == (["-oo a"], [])


def test_55_56_environment() -> None:
    assert lsf("#BSUB -env \"none, A=1, B='x,y', C\"\n") == ["-env \"none, A=1, B='x,y', C\""]
    assert lsf('#BSUB -env "all, ~A"\n') == ['-env "all, ~A"']
    assert convert("#BSUB -env all\n", "lsf", "torque")[0] == ["-V"]


def test_57_60_dependencies() -> None:
    assert convert("#BSUB -w 'done(1) && ended(2) && exit(3) && started(4)'\n", "lsf", "slurm") == (
        ["--dependency=afterok:@JOBID:1@,afterany:@JOBID:2@,afternotok:@JOBID:3@"],
        [("site-dependent", "Dependency")] * 3 + [("dropped", "Extension DependencyOther")])
    dependencies = job('#BSUB -w \'prep && done("two words") && exit(7, 3) && exit(8, !=0)\'\n').all("Dependency")
    assert [(d.text, dict(d.attributes)) for d in dependencies] == [
        ("prep", {"condition": "OnSuccess", "designator": "JobName"}),
        ("two words", {"condition": "OnSuccess", "designator": "JobName"}),
        ("7", {"condition": "OnExit", "code": "3"}), ("8", {"condition": "OnFailure"})]
    for kept in ("done(1) || done(2)", "!done(1)", "numended(5, *)", "done(a*)", "done(1[3])"):
        assert lsf(f'#BSUB -w "{kept}"\n') == [f'-w "{kept}"']
    assert refused('#BSUB -w "done(1"\n') and refused('#BSUB -w "done(1) done(2)"\n')
    assert convert("#SBATCH -d afterok:1:2,after:3\n", "slurm", "lsf")[0] == [
        '-w "done(@JOBID:1@) && done(@JOBID:2@) && started(@JOBID:3@)"']


def test_66_templates() -> None:
    for value in ("{{n}}", "%(n)s", "$n", "@N@", "<my_count>"):
        assert told(f"#BSUB -n '{value}'\n") == [("template", "-n")]


# --- sizes
@pytest.mark.parametrize(("text", "expected"), [
    ("-N 2 -n 16", ["-n 16", '-R "span[ptile=8]"']), ("-N 1 -n 4", ["-n 4", '-R "span[hosts=1]"']),
    ("-n 16 --ntasks-per-node=8 -c 2", ["-n 16", '-R "span[ptile=8]"', '-R "affinity[core(2)*1]"']),
    ("-N 4", ["-n 4", '-R "span[ptile=1]"']), ("-N 2 --ntasks-per-node=3", ["-n 6", '-R "span[ptile=3]"']),
    ("-C 'a&b' -x n1,n-2 -L m:2", ["-R \"select[a && b && hname!=n1 && hname!='n-2']\"", '-R "rusage[m=2]"'])])
def test_sizes_of_slurm(text: str, expected: list[str]) -> None:
    assert convert(f"#SBATCH {text}\n", "slurm", "lsf")[0] == expected


@pytest.mark.parametrize(("text", "expected"), [
    ('-n 16 -R "span[ptile=8]"', ["--ntasks=16", "--ntasks-per-node=8"]),
    ("-n 4 -R span[hosts=1] -R affinity[core(2)]", ["--nodes=1", "--ntasks=4", "--cpus-per-task=2"]),
    ("-nnodes 3", ["--nodes=3", "--exclusive"]), ("-n 4 -x -m h1", ["--ntasks=4", "--nodelist=h1", "--exclusive"])])
def test_sizes_for_slurm(text: str, expected: list[str]) -> None:
    assert convert(f"#BSUB {text}\n", "lsf", "slurm")[0] == expected


def test_slots_on_hosts_for_pbs() -> None:
    assert convert('#BSUB -n 16 -R "span[ptile=8]"\n', "lsf", "pbspro")[0] == [
        "-l select=2:ncpus=8:mpiprocs=8", "-l place=scatter"]


def test_what_is_counted_by_the_site_stays() -> None:
    text = '-R "select[mem>100] rusage[ngpus_excl_p=2:duration=5] same[model] cu[type=rack]"'
    assert lsf(f"#BSUB {text}\n") == [text]
    assert convert(f"#BSUB {text}\n", "lsf", "slurm") == ([], [("dropped", "Extension R")])


# --- times of day, the rest
def test_times_of_day() -> None:
    made, findings = read(SH + "#BSUB -b 2026:12:1:8:00 -t 20:00\n")
    assert get("lsf").write(made, WriteContext()).splitlines()[1:] == ["#BSUB -b 2026:12:01:08:00", "#BSUB -t 20:00"]
    assert [(f.kind, f.subject) for f in findings] == [("site-dependent", "-b")]
    assert refused("#BSUB -b tomorrow\n") and refused("#BSUB -b 2026:13:1:8:00\n")


def test_the_last_of_two_counts() -> None:
    assert lsf("#BSUB -r -rn\n") == ["-rn"] and lsf("#BSUB -rn -r\n") == ["-r"]


def test_signals_and_priorities() -> None:
    assert convert("#SBATCH --signal=URG@120\n", "slurm", "lsf")[0] == ["-wa URG", "-wt 00:02"]
    assert convert("#SBATCH --nice=5 --signal=B:URG@120\n", "slurm", "lsf") == (["-wa URG", "-wt 00:02"], [
        ("dropped", "Extension Nice"), ("approximated", "Extension Signal")])
    assert convert("#SBATCH --signal=URG\n", "slurm", "lsf") == (["-wa URG", "-wt 00:01"], [       # 60 s, sbatch(1)
        ("approximated", "Extension Signal")])
    assert convert("#BSUB -sp 50\n", "lsf", "pbspro") == ([], [("dropped", "Priority")])


def test_options_of_the_command_line_win() -> None:
    assert lsf("#BSUB -R span[hosts=1] -q a\n", set='-R "span[ptile=2]" -q "b c"') == [
        '-q "b c"', '-R "span[ptile=2]"']


@pytest.mark.parametrize("text", ["-R 'a[b]c[' ", "-zz 1", "-n x", "-R \"span[hosts=1\"", "-R \"select[a]]\"", "-q",
                                  "-R \"order[x] y\"", "-M 5XB", "-J 'a"])
def test_refused(text: str) -> None:
    assert refused(f"#BSUB {text}\n")


# --- hostile expressions
@pytest.mark.parametrize("text", ["(" * 100_000, "!" * 100_000 + "done(1)", "done(1)&&" * 20_000 + "done(1)",
                                  "select[" * 50_000, "[" * (DEEP + 1) + "]" * (DEEP + 1), "a &&" * 50_000,
                                  "select[a]" * 30_000, "x " * 100_000])
def test_long_expressions(text: str) -> None:
    """Linear, with short messages, and no deeper than ``DEEP``."""
    for parse in (sections, conditions):
        try:
            parse(text)
        except ValueError as error:
            assert len(str(error)) < 200


@settings(max_examples=examples(75))
@given(st.text("selctrusagpn[]()!&|='\"12*{}+, ~:@JOBID", max_size=40))
def test_any_expression_is_read_or_refused(text: str) -> None:
    for parse in (sections, conditions):
        with suppress(ValueError):
            parse(text)
