"""What a run asks of a resource manager is what the script of the same job asks: script -> document -> run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psij import JobSpec, ResourceSpecV1
from psij.executors.batch.sge import SGEExecutorConfig, SGEJobExecutor
from sssjob.document.element import Container, Property
from sssjob.document.model import Document, Job
from sssjob.findings import Findings, Policy
from sssjob.run import make_plan
from sssjob.run.configuring import config_of
from sssjob.run.rehearsal import Rehearsed, rehearse
from sssjob.run.running import executor_of
from sssjob.translators.base import ReadContext
from sssjob.translators.registry import get
from sssjob.xml.reader import read_document
from tests.cases import Cases
from tests.strategies import FIXED, examples, requests

SCRIPTS = Path(__file__).parents[1] / "fixtures" / "scripts"
#: The format of a manager's scripts -> its executor.
EXECUTORS = {"slurm": "slurm", "sge": "sge", "lsf": "lsf", "pbspro": "pbs", "torque": "pbs_classic",
             "cobalt": "cobalt", "flux": "flux", "htcondor": "htcondor"}
#: What a run says in its own way: the program, its surroundings and when it starts. Not compared as directives.
OWN = {"Executable", "Arguments", "Environment", "InputFile", "OutputFile", "ErrorFile", "InitialWorkingDirectory",
       "Name", "Dependency", "EligibleTime", "Hold", "Id", "Machine", "Shell", "User"}
#: Extensions of the same kind, and those by which psij finds its jobs.
OWN_EXTENSIONS = {"Array", "Comment", "Dialect", "ExportNames", "Launcher", "MY.JobBatchName", "MY.SssjobId", "ac",
                  "begin", "comment", "debuglog", "hold_jid_ad", "output", "setattr", "transfer_executable"}
#: Why directives of a fixture are not submitted; each is told, or says nothing of the job.
LOST = {
    "cobalt/made-mira.sh": {"TaskDistribution"},                     # --mode c16: there is a script
    "flux/made-few.sh": {"quiet"},                                   # of the submit command
    "flux/made-lines.sh": {"Prefix", "env", "conf", "output"},       # of the lines; use environment; a line break
    "htcondor/made-array.sub": {"Duration", "periodic_remove"},      # both are one expression
    "lsf/made-odd.sh": {"LoginShell"},                               # the script is one of bash
    "pbspro/made-nodes.sh": {"k", "Memory"},                         # use stdout_path; PBS Pro has no pmem
    "sge/made-odd.sh": {"clear"},                                    # of the lines before it
}


def planned(document: Document, executor: str, policy: Policy = Policy.REJECT, backend: Any = None,
            ) -> tuple[list[Rehearsed], Findings]:
    """What would be submitted, and the findings."""
    findings, backend = Findings("f"), backend or executor_of(executor)
    plan = make_plan(document, findings, executor=executor, backend=backend, policy=policy, known=lambda *_: [])
    try:
        return ([] if findings.rejected else list(rehearse(plan, backend))), findings
    finally:
        plan.close()


def read(format: str, text: bytes) -> Document:
    return get(format).read(text, ReadContext("f", Findings("f")))


def job_of(text: str) -> Document:
    return read_document(f"<Job><Id>a</Id><Executable>/bin/true</Executable><Environment export='true'/>{text}</Job>"
                         .encode())


def directives(shown: Rehearsed) -> list[str]:
    """The directives of a submit script or description."""
    text = "".join(shown.rendered.files.values())
    return re.findall(r"^#(?:SBATCH|PBS|\$|BSUB|COBALT|FLUX:) (.*)", text, re.MULTILINE)


def asked(scope: Container, path: str = "") -> list[tuple[str, ...]]:
    """What a job asks its manager for, item by item."""
    found: list[tuple[str, ...]] = []
    for item in scope.items:
        if item.tag in OWN or (item.tag == "Extension" and (
                item.attributes.get("name") in OWN_EXTENSIONS or item.attributes.get("type") == "PSIJ")):
            continue
        if isinstance(item, Container):
            found += asked(item, f"{path}/{item.tag}")
        elif isinstance(item, Property):
            found.append((path, item.tag, item.text, *(f"{k}={v}" for k, v in sorted(item.attributes.items()))))
    return sorted(found)


def but_for(items: Sequence[tuple[str, ...]], names: set[str]) -> list[tuple[str, ...]]:
    return [one for one in items if one[1] not in names and not any(f"name={name}" in one for name in names)]


@pytest.mark.parametrize("script", sorted(str(path.relative_to(SCRIPTS)) for path in SCRIPTS.glob("*/*.s*")))
def test_submits_what_the_script_asks(script: str) -> None:
    """The submitted script, read by the dialect's own reader, asks for what the script asks for."""
    format = script.partition("/")[0]
    text = (SCRIPTS / script).read_bytes()
    document = read(format, text)
    for item in [job for job, _ in document.jobs()]:     # of other submissions, which are not in the document
        item.items = [i for i in item.items if i.tag != "Dependency"]
    shown, findings = planned(document, EXECUTORS[format], Policy.WARN)
    assert not findings.rejected, [str(f) for f in findings]
    name = 1 if format == "htcondor" else 0         # beside the script there is a description
    submitted = read(format, list(shown[0].rendered.files.values())[name].encode())
    before, after = (asked(next(iter(d.jobs()))[0]) for d in (document, submitted))
    lost = LOST.get(script, set())
    assert but_for(after, lost) == but_for(before, lost)
    assert not lost or after != before


@pytest.mark.parametrize(("format", "lines"), [
    ("slurm", ["--constraint=haswell", '--nodelist="n[1-2]"', "--exclusive"]),
    ("slurm", ["--gpus-per-node=a100:2", "--licenses=matlab:2", "--tmp=10G", "--nice=10"]),
    ("slurm", ["--nodes=2", "--mem=4G"]),
    ("slurm", ["--gpus=a100:4"]),
    ("slurm", ["--nodes=2", "--ntasks=64", "--mem-per-cpu=4000M"]),
    ("slurm", ["--ntasks=1", "--gpus-per-node=4"]),
    ("slurm", ["--requeue", "--mail-type=END", "--mail-user=a@b.c", "--overcommit", "--qos=high"]),
    ("slurm", ["--exclude=n3", "--reservation=r1", "--switches=2", "--kill-on-invalid-dep=yes"]),
    ("slurm", ["--ntasks=4", "--mem=0", "--verbose"]),
    ("sge", ["-pe mpi 8", "-l gpu=2", "-l arch=lx64", "-soft -l fast=1", "-p -5", "-R y", "-m e", "-M a@b.c"]),
    ("sge", ["-l h_vmem=2G", "-q long.q", "-ar 7"]),
    ("pbspro", ["-l select=2:ncpus=4:mpiprocs=4:mem=8gb:ngpus=1+1:ncpus=2", "-l place=scatter:excl", "-p 5", "-r n"]),
    ("pbspro", ["-l walltime=00:10:00", "-l foo=3", "-W group_list=g", "-W umask=022", "-m e", "-M a@b.c"]),
    ("torque", ["-l nodes=2:ppn=4:fast", "-l mem=4gb", "-l qos=high", "-W x=NACCESSPOLICY:SINGLEJOB"]),
    ("lsf", ["-n 8", '-R "span[ptile=4]"', "-x", "-sp 60", "-app blast", "-r", "-u a@b.c", "-N"]),
    ("lsf", ["-W 01:30/hostA", '-m "h1 h2"', "-alloc_flags smt1"]),
    ("cobalt", ["--nodecount 4", "--attrs mcdram=flat", "--notify a@b.c", "--kernel cnk"]),
    ("flux", ["--nslots=4", "--cores-per-slot=2", "--requires=fast", "--urgency=20",
              "--setattr=a=1", "--setattr=b=2"])])
def test_options_as_they_were(format: str, lines: list[str]) -> None:
    """Features, hosts, licences, GPUs, mail, priority, memory: in the form in which they were said, under the default
    policy."""
    sign = {"slurm": "#SBATCH", "sge": "#$", "lsf": "#BSUB", "cobalt": "#COBALT", "flux": "#FLUX:"}.get(format, "#PBS")
    text = "#!/bin/sh\n" + "".join(f"{sign} {line}\n" for line in lines) + "true\n"
    document = read(format, text.encode())
    (shown,), findings = planned(document, EXECUTORS[format])
    wanted = {line for line in lines if line != "--verbose"}
    assert wanted <= {line.replace("\\", "") for line in directives(shown)}, (lines, directives(shown))
    assert not [f for f in findings if f.severity == "error"]


def test_nothing_else_is_asked() -> None:
    """All directives of a job, those of psij among them: no size is derived a second time."""
    (shown,), _ = planned(read("slurm", b"#!/bin/sh\n#SBATCH -N 2 --mem=4G --gpus-per-node=a100:2\ntrue\n"), "slurm")
    names = [line.partition("=")[0] for line in directives(shown)]
    assert names == ["--open-mode", "--export", "--job-name", "--output", "--comment", "--nodes", "--mem",
                     "--gpus-per-node"]


@pytest.mark.parametrize("executor", sorted(EXECUTORS.values()))
def test_condition_of_features(executor: str) -> None:
    """What the writer of the dialect cannot say is told as ``convert`` tells it, and rejects as there."""
    _, findings = planned(job_of("<Requested><Feature>a b;c</Feature></Requested>"), executor)
    (format,) = (name for name, one in EXECUTORS.items() if one == executor)
    told = {(f.rule, f.message) for f in findings if f.subject == "Feature"}
    from sssjob.translators.base import WriteContext

    context = WriteContext(Findings("f"), policy=Policy.REJECT)
    get(format).write(job_of("<Requested><Feature>a b;c</Feature></Requested>"), context)
    assert told and told == {(f.rule, f.message) for f in context.findings if f.subject == "Feature"}


@pytest.mark.parametrize(("executor", "line", "option"), [
    ("slurm", "#SBATCH --get-user-env", "get-user-env"), ("slurm", "#SBATCH --test-only", "test-only"),
    ("pbs", "#PBS -k oe", "k"), ("sge", "#$ -verify", "verify"), ("flux", "#FLUX: --env=-LD_*", "env")])
def test_refused_options_are_told_before_anything_starts(executor: str, line: str, option: str) -> None:
    (format,) = (name for name, one in EXECUTORS.items() if one == executor)
    document = read(format, f"#!/bin/sh\n{line}\ntrue\n".encode())
    _, findings = planned(document, executor)
    assert [(f.rule, f.subject, f.line) for f in findings.rejecting()] == [("SSS602", option, 2)]
    assert not planned(document, executor, Policy.WARN)[1].rejected


@pytest.mark.parametrize(("executor", "line", "option"), [
    ("slurm", "#SBATCH --parsable", "parsable"), ("slurm", "#SBATCH --wait", "wait"), ("sge", "#$ -sync y", "sync"),
    ("lsf", "#BSUB -K", "K"), ("pbs", "#PBS -z", "z")])
def test_options_of_the_submit_command_alone(executor: str, line: str, option: str) -> None:
    """They say nothing of the job: they are left out, which is told and rejects nothing."""
    (format,) = (name for name, one in EXECUTORS.items() if one == executor)
    (shown,), findings = planned(read(format, f"#!/bin/sh\n{line}\ntrue\n".encode()), executor)
    assert [(f.severity, f.subject, f.line) for f in findings if f.rule == "SSS602"] == [("info", option, 2)]
    assert line.partition(" ")[2] not in directives(shown)


@pytest.mark.parametrize(("format", "line", "executor"), [
    ("slurm", "#SBATCH --quiet", "sge"), ("slurm", "#SBATCH --parsable", "pbs"), ("sge", "#$ -terse", "slurm"),
    ("pbspro", "#PBS -z", "lsf"), ("slurm", "#SBATCH --wait", "local"), ("slurm", "#SBATCH --wait", "flux")])
def test_options_of_the_submit_command_of_another_manager(format: str, line: str, executor: str) -> None:
    document = read(format, f"#!/bin/sh\n{line}\ntrue\n".encode())
    _, findings = planned(document, executor)
    assert [(f.severity, f.line) for f in findings if f.rule == "SSS602"] == [("warning", 2)] and not findings.rejected


@pytest.mark.parametrize("executor", ["local", "fluxexec", *EXECUTORS.values()])
@pytest.mark.parametrize("format", ["slurm", "sge", "pbspro", "lsf"])
def test_marker_of_the_dialect_asks_for_nothing(executor: str, format: str) -> None:
    """A script that was read runs under the default policy, wherever."""
    document = read(format, b"#!/bin/sh\ntrue\n")
    job = next(iter(document.jobs()))[0]
    assert [p.text for p in job.all("Extension") if p.get("name") == "Dialect"] == [format]
    shown, findings = planned(document, executor)
    assert len(shown) == 1 and not findings.rejected, [str(f) for f in findings]


def test_extension_of_an_option_that_the_table_does_not_know() -> None:
    """It becomes an option of its name; ``true`` is that of a flag."""
    document = job_of("<Extension type='slurm' name='tres-new'>a=1</Extension>"
                      "<Extension type='slurm' name='new-flag'>true</Extension>")
    (shown,), _ = planned(document, "slurm")
    assert {"--tres-new=a=1", "--new-flag"} <= set(directives(shown))


def test_uneven_sizes_are_submitted() -> None:
    """Three nodes and four processors are no ResourceSpecV1, and no trouble to Slurm."""
    (shown,), findings = planned(job_of("<NodeCount>3</NodeCount><Processors>4</Processors>"), "slurm", Policy.WARN)
    assert "--nodes=3" in directives(shown)
    assert not [f for f in findings if f.subject in ("resources", "node_count")]


def test_parallel_environment_of_the_settings() -> None:
    """Where the job names none; without either it is told before anything starts."""
    document = job_of("<Processors>4</Processors>")
    backend = SGEJobExecutor(config=SGEExecutorConfig(parallel_environment="smp"))
    (shown,), findings = planned(document, "sge", backend=backend)
    assert "-pe smp 4" in directives(shown) and not [f for f in findings if "@PE@" in f.message]
    _, findings = planned(document, "sge")
    assert ("SSS602", "pe") in {(f.rule, f.subject) for f in findings.rejecting()}


@pytest.mark.parametrize(("asked", "environment"), [
    ("<Processors>4</Processors>", "mpi 4"), ("<NodeCount>1</NodeCount><Processors>4</Processors>", "smp 4"),
    ("<NodeCount>2</NodeCount></Requested><TaskGroup><TaskDistribution type='TasksPerNode'>2</TaskDistribution>"
     "</TaskGroup><Requested>", "pairs 4"),
    ("<Processors>4</Processors></Requested><Extension type='sge' name='pe'>own</Extension><Requested>", "own 4"),
])
def test_parallel_environment_that_gives_the_hosts(asked: str, environment: str) -> None:
    """Of those of a site profile the one that a script of it would have: ``run`` took the first for all jobs."""
    rules = {"mpi": "$fill_up", "smp": "$pe_slots", "pairs": 2}
    config = config_of("sge", {"parallel_environment": "mpi", "parallel_environments": rules})
    document = read_document(f"<Job><Id>a</Id><Executable>/bin/true</Executable><Requested>{asked}</Requested></Job>"
                             .encode())
    (shown,), findings = planned(document, "sge", backend=SGEJobExecutor(config=config))
    assert f"-pe {environment}" in directives(shown) and not findings.rejected
    config = config_of("sge", {"parallel_environment": "other", "parallel_environments": rules})    # of a configuration
    assert isinstance(config, SGEExecutorConfig) and not config.parallel_environments


def test_appending_to_files() -> None:
    """Launchers empty the file of a stream, but for one that is appended to."""
    document = job_of("<OutputFile redirectList='Append'>/tmp/o</OutputFile><ErrorFile>/tmp/e</ErrorFile>")
    (shown,), findings = planned(document, "slurm")
    assert "    export _PSI_J_APPEND=stdout\n" in "".join(shown.rendered.files.values())
    assert not findings.rejected


def test_names_of_the_submitters_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN", "it's")
    document = read("slurm", b"#!/bin/sh\n#SBATCH --export=SEEN,NOT_THERE,B=2\ntrue\n")
    findings, backend = Findings(), executor_of("slurm")
    plan = make_plan(document, findings, executor="slurm", backend=backend)
    spec = plan.jobs[0].parts[0].spec
    plan.close()
    assert (spec.environment, spec.inherit_environment) == ({"SEEN": "it's", "B": "2"}, False)


def test_parts_of_a_heterogeneous_job() -> None:
    """Each part has its own features and sizes."""
    text = b"#!/bin/sh\n#SBATCH -n 1 -C a -A x\n#SBATCH hetjob\n#SBATCH -n 4 -C b --gpus-per-node=2\ntrue\n"
    (shown,), findings = planned(read("slurm", text), "slurm")
    first, second = "\n".join(directives(shown)).split("hetjob\n")
    assert not findings.rejected
    assert "--constraint=a" in first and "--account=x" in first and "--gpus" not in first
    assert "--constraint=b\n" in second + "\n" and "--gpus-per-node=2" in second and "--ntasks=4" in second


def test_sizes_stay_with_the_processes() -> None:
    """The launcher still starts as many as the job has tasks."""
    document = job_of("<TaskGroup><TaskCount>4</TaskCount></TaskGroup><Requested><Feature>a</Feature></Requested>")
    findings, backend = Findings(), executor_of("slurm")
    plan = make_plan(document, findings, executor="slurm", backend=backend)
    spec = plan.jobs[0].parts[0].spec
    assert (spec.resources, spec.launcher) == (ResourceSpecV1(process_count=4), "srun")


def test_an_array_is_asked_once() -> None:
    """All elements have the options, in the one script that they have, and their losses are told once."""
    text = ("<Extension type='Scheduler' name='Array'>1-3</Extension><Feature>a</Feature>"
            "<QualityOfService>q</QualityOfService>")
    (shown,), findings = planned(job_of(text), "slurm")
    assert {"--constraint=a", "--qos=q", "--array=1-3"} <= set(directives(shown))
    assert len({str(f) for f in findings}) == len(list(findings))


def test_the_document_is_left_as_it_was() -> None:
    document = job_of("<Feature>a</Feature><Extension type='Scheduler' name='Dialect'>slurm</Extension>")
    before = repr(document.root)
    planned(document, "slurm")
    assert repr(document.root) == before and isinstance(document.root, Job)


_OF_JOBS = st.lists(st.tuples(requests(wide=True), st.sampled_from((
    "", "<Queue>batch</Queue>", "<Extension type='slurm' name='overcommit'>true</Extension>",
    "<Extension type='lsf' name='R'>rusage[mem=1]</Extension>", "<Feature awarenessPolicy='Warn'>fast</Feature>",
    "<Notify>x</Notify>", "<DeadlineTime>2000000000</DeadlineTime>"))), min_size=1, max_size=3)


@settings(max_examples=examples(12), deadline=None, derandomize=FIXED)
@given(asked=_OF_JOBS, order=st.lists(st.integers(0, 2), min_size=2, max_size=4))
def test_jobs_that_ask_for_the_same_are_planned_as_if_alone(asked: list[tuple[str, str]], order: list[int]) -> None:
    """What a request means for a manager is worked out once for all jobs of a document; each has the specification that
    it has alone, and the findings, at its own items, that it has where it is worked out for each."""
    with Cases() as case:
        for executor in ("slurm", "sge", "lsf", "pbs", "flux", "cobalt", "htcondor"):
            with case(executor):
                _planned_as_if_alone(executor, asked, order)


def _planned_as_if_alone(executor: str, asked: list[tuple[str, str]], order: list[int]) -> None:
    texts = [f"<Job><Id>j{n}</Id><Executable>/bin/echo</Executable><Arguments>{n}</Arguments>"
             f"{''.join(asked[one % len(asked)])}</Job>" for n, one in enumerate(order)]
    backend = executor_of(executor)

    def planned_jobs(lines: list[str]) -> tuple[list[JobSpec], list[tuple[str, str, str, int, int]]]:
        """The specifications, and what is told where."""
        document, findings = read_document("\n".join(["<JobGroup>", *lines, "</JobGroup>"]).encode()), Findings("f")
        plan = make_plan(document, findings, executor=executor, backend=backend, policy=Policy.WARN)
        plan.close()
        return ([part.spec for job in plan.jobs for part in job.parts],
                [(f.rule, f.severity, f.message, f.line, f.column) for f in findings])

    specs, findings = planned_jobs(texts)
    assert specs == [spec for text in texts for spec in planned_jobs([text])[0]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sssjob.run.native._request_of", lambda scope: None)
        assert (specs, findings) == planned_jobs(texts)
