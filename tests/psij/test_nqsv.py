"""The NQSV executor: the few answers that are known, directives, scripts."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.nqsv import NQSVJobExecutor
from sssjob.lrm.nqsv import STATES
from sssjob.templates.quoting import nqsv
from tests.psij.batch_support import Stand, refusal
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["nqsv"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
GONE = "Batch Request: 9.nqsv does not exist on nqsv.\n"


# --- answers -------------------------------------------------------------------------------------------------------

def test_states() -> None:
    """The words of psij-python; none of them is an end."""
    assert set(STATES) == {"QUE", "RUN", "WAT", "HLD", "SUS", "ARI", "TRS", "EXT", "PRR", "POR", "MIG",
                                          "STG"}
    out = "".join(f"{number}.nqsv  {word}\n" for number, word in enumerate(STATES))
    statuses = NQSVJobExecutor().parse_status_output(0, out)
    assert not any(status.final for status in statuses.values()) and len(statuses) == 11


@pytest.mark.parametrize(("code", "out", "ids"), [
    (0, "1.nqsv RUN\n" + GONE, ["1"]), (1, GONE.strip(), []), (0, "1.nqsv RUN\nwelcome to the cluster\n", ["1"])])
def test_answers(code: int, out: str, ids: list[str]) -> None:
    assert list(NQSVJobExecutor().parse_status_output(code, out)) == ids


@pytest.mark.parametrize(("code", "out"), [(0, ""), (0, "welcome\n"), (1, "qstat: cannot connect"), (0, "1.nqsv\n"),
                                          (0, "1.nqsv RUN\n2.nqsv QU")])
def test_no_answer(code: int, out: str) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        NQSVJobExecutor().parse_status_output(code, out)


# --- directives ----------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> list[str]:
    job = Job(spec)
    return [str(nqsv(one)) for one in NQSVJobExecutor()._directives(job, spec) if one.option not in ("o", "e", "S")]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["-N n", "-V", "-l elapstim_req=00:10:00"]),
    ({"inherit_environment": False, "attributes": JobAttributes(timedelta(hours=48, seconds=0.5), "q", "a", "r1")},
     ["-N n", "-q q", "-A a", "-y r1", "-l elapstim_req=48:00:01"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        node_count=2, processes_per_node=3, cpu_cores_per_process=4, gpu_cores_per_process=1, exclusive_node_use=True,
        memory=4 << 30)},
     ["-N n", "-V", "-b 2", "--cpunum-lhost=12", "--gpunum-lhost=3", "--memsz-lhost=2048mb", "--exclusive"]),
    ({"attributes": JobAttributes(timedelta(minutes=1), custom_attributes={
        "nqsv.T": "openmpi", "nqsv.l": "gpunum_job=1", "NQSV.custom": "vesetnum-lhost=8", "nqsv.x": False})},
     ["-N n", "-V", "-l elapstim_req=00:01:00", "-T openmpi", "-l gpunum_job=1", "--custom=vesetnum-lhost=8"])])
def test_directives(members: dict[str, object], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == expected  # type: ignore[arg-type]


def test_name_of_the_executable() -> None:
    assert directives(JobSpec("/a/a program-with.a long name"))[0] == "-N a_program_with_"
    assert directives(JobSpec("/bin/true", attributes=JobAttributes(None, custom_attributes={"nqsv.N": "x"}))) == [
        "-V", "-N x"]


@pytest.mark.parametrize(("members", "message"), [
    ({"name": "a b"}, "name"), ({"name": "a;b"}, "name"), ({"name": ""}, "name"), ({"name": "x" * 64}, "name"),
    ({"attributes": JobAttributes(account="a\nb")}, "attributes.account"),
    ({"attributes": JobAttributes(queue_name="$(id)")}, "attributes.queue_name"),
    ({"attributes": JobAttributes(custom_attributes={"nqsv.t": "1-3"})}, "custom attribute 'nqsv.t'"),
    ({"attributes": JobAttributes(custom_attributes={"nqsv.l": "elapstim_req=5"})}, "custom attribute 'nqsv.l'"),
    ({"attributes": JobAttributes(custom_attributes={"nqsv.M": "a b"})}, "custom attribute 'nqsv.M'")])
def test_refused_members(quick: Stand, members: dict[str, object], message: str) -> None:
    assert message in refusal(quick, **members)


@pytest.mark.parametrize(("number", "runs"), [("0", True), ("1", False), ("12", False)])
def test_other_jobs_of_a_request(tmp_path: Path, number: str, runs: bool) -> None:
    """One of the jobs of a request runs the program."""
    job, text = Job(JobSpec("/usr/bin/touch", [str(tmp_path / "ran")])), StringIO()
    executor = NQSVJobExecutor()
    executor.work_directory = tmp_path / "work"
    executor.work_directory.mkdir()
    executor.generate_submit_script(job, executor._create_script_context(job), text)
    subprocess.run(["/bin/bash", "-c", text.getvalue()], env={"PBS_JOBID": f"{number}:7.nqsv", "PATH": "/usr/bin:/bin"},
                   check=True)
    assert (tmp_path / "ran").exists() is runs
    assert (executor.work_directory / f"7.{job.id}.ec").exists() is runs
