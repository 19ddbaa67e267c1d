"""Hostile strings in every member of a job, through the script of each executor."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobSpec
from psij.executors.batch._files import exit_file, write_script
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.cobalt import CobaltJobExecutor
from psij.executors.batch.flux import FluxJobExecutor
from psij.executors.batch.htcondor import HTCondorJobExecutor
from psij.executors.batch.lrm import LrmExecutor
from psij.executors.batch.lsf import LsfJobExecutor
from psij.executors.batch.nqsv import NQSVJobExecutor
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.pbs_classic import PBSClassicJobExecutor
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.psij.test_batch import HOSTILE


@dataclass(frozen=True)
class Case:
    """An executor. sentinel: what its directives begin with; the rest: how the job is told its id, which is 5."""

    executor: type[LrmExecutor]
    sentinel: str | None
    in_template: int = 0        # directives that stand in the template
    environment: dict[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    command: str | None = None  # one that says the id
    option: str = "comment"     # a custom attribute that takes text


CASES = {
    "slurm": Case(SlurmJobExecutor, "#SBATCH", 2, {"SLURM_JOB_ID": "5"}),
    "sge": Case(SGEJobExecutor, "#$", 0, {"JOB_ID": "5"}),
    "flux": Case(FluxJobExecutor, "#FLUX:", command="flux"),
    "htcondor": Case(HTCondorJobExecutor, None, arguments=("5",)),
    "cobalt": Case(CobaltJobExecutor, "#COBALT", 0, {"COBALT_JOBID": "5"}),
    "pbs": Case(PBSJobExecutor, "#PBS", 0, {"PBS_JOBID": "5"}, option="M"),
    "pbs_classic": Case(PBSClassicJobExecutor, "#PBS", 0, {"PBS_JOBID": "5"}, option="M"),
    "lsf": Case(LsfJobExecutor, "#BSUB", 0, {"LSB_JOBID": "5"}, option="u"),
    "nqsv": Case(NQSVJobExecutor, "#PBS", 0, {"PBS_JOBID": "0:5.nqsv"}, option="M")}

ANY_DIRECTIVE = re.compile(r"\s*#\s*(SBATCH|PBS|BSUB|\$|COBALT)|\W*(flux|FLUX):")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def script(executor: LrmExecutor, job: Job) -> str:
    out = StringIO()
    executor.generate_submit_script(job, executor._create_script_context(job), out)
    return out.getvalue()


def test_one_question_about_ten_thousand_jobs(case: Case, tmp_path: Path) -> None:
    """P7, E49: whole-queue queries, for a list of ids costs OpenPBS 34 times as much. NQSV's qstat knows only lists,
    which are cut into pieces that fit into a command."""
    executor = case.executor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    ids = [str(number) for number in range(10_000, 20_000)]
    asked = list(executor._status_commands(ids))
    assert [one for some, _ in asked for one in some] == ids
    if case.executor is NQSVJobExecutor:
        assert len(asked) == 50 and {len(some) for some, _ in asked} == {200}
    else:
        assert len(asked) == 1 and not {*ids} & {*asked[0][1]}


def members(text: str, prefix: str, option: str) -> dict[str, dict[str, Any]]:
    """Descriptions with a text in each of their members."""
    path = text.replace("/", "_") or "p"
    attributes: dict[str, JobAttributes] = {
        "queue": JobAttributes(None, queue_name=text), "account": JobAttributes(None, account=text),
        "reservation": JobAttributes(None, reservation_id=text),
        "custom": JobAttributes(None, custom_attributes={f"{prefix}.{option}": text}),
        "option": JobAttributes(None, custom_attributes={f"{prefix}.{text}": "x"})}
    return {
        "executable": {"executable": text or "x"}, "arguments": {"arguments": [text]}, "name": {"name": text},
        "directory": {"directory": f"/{path}"}, "environment": {"environment": {"V": text}},
        "stdout_path": {"stdout_path": path}, "stdin_path": {"stdin_path": path}, "pre_launch": {"pre_launch": path},
        **{name: {"attributes": one} for name, one in attributes.items()}}


@pytest.mark.parametrize("value", HOSTILE)
def test_no_directive_that_nobody_meant(case: Case, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """T17, T20: the script has just the directives that the executor made, or the member is refused by name."""
    executor = case.executor()
    monkeypatch.setenv("INHERITED", value.replace("\0", ""))
    for name, given in members(value, case.executor._PREFIX, case.option).items():
        job = Job(JobSpec(**{"executable": "/bin/true", **given}))
        assert job.spec is not None
        try:
            text = script(executor, job)
        except InvalidJobException as e:
            assert re.search(r"name|attribute", e.message), (name, e.message)
            assert name not in ("executable", "arguments", "directory", "environment", "stdout_path", "stdin_path")
            continue
        made = [line for line in text.splitlines() if ANY_DIRECTIVE.match(line)]
        if case.sentinel is None:
            assert made == []
        else:
            assert all(line.startswith(case.sentinel) for line in made), name
            assert len(made) == len(executor._directives(job, job.spec)) + case.in_template, name


@pytest.mark.parametrize("value", HOSTILE)
def test_a_job_sees_exactly_what_was_said(case: Case, value: str, tmp_path: Path) -> None:
    folder = tmp_path / f"d{value[:50].replace('/', '_')}"
    folder.mkdir()
    (folder / "in").write_text("input")
    show = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, [os.getcwd(), *sys.argv[1:], " \
           "os.environ['V'], os.environ['IFS'], os.environ['SHLVL'], sys.stdin.read()])))"
    job = Job(JobSpec(sys.executable, ["-c", show, value, "${V}"], directory=folder, stdin_path="in", stdout_path="out",
                      environment={"V": value, "IFS": "f", "SHLVL": "77"}))
    executor = case.executor()
    executor.work_directory = tmp_path / "work"
    executor.work_directory.mkdir()
    write_script(tmp_path / "script", script(executor, job))
    if case.command is not None:
        (tmp_path / case.command).write_text("#!/bin/sh\necho 5\n")
        (tmp_path / case.command).chmod(0o755)
    subprocess.run(["/bin/bash", tmp_path / "script", *case.arguments], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **case.environment})
    assert (folder / "out").read_bytes().split(b"\0") == [
        os.fsencode(part) for part in (str(folder), value, value, value, "f", "77", "input")]
    assert exit_file(executor.work_directory / "5.ec", job.id) is not None
