"""The NQSV executor: the few answers that are known, the whole way of a job on its stand-in, directives."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest

from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobSpec,
    JobState,
    ResourceSpecV1,
    SubmitException,
)
from psij.executors.batch.batch_scheduler_executor import InvalidJobStateError
from psij.executors.batch.nqsv import NQSVJobExecutor, NQSVState
from sssjob.templates.quoting import Directive, QuotingError, nqsv
from tests.fakes import nqsv as fake
from tests.psij.batch_support import VIRTUAL, Stand, a_job, ended, stand_in

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
GONE = "Batch Request: 9.nqsv does not exist on nqsv.\n"


@pytest.fixture
def stand(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand_in(fake, NQSVJobExecutor, tmp_path, monkeypatch, virtual=request.function.__name__ in VIRTUAL) as made:
        yield made


# --- answers -------------------------------------------------------------------------------------------------------

def test_states() -> None:
    """The words of psij-python; none of them is an end."""
    assert set(NQSVState.__members__) == {"QUE", "RUN", "WAT", "HLD", "SUS", "ARI", "TRS", "EXT", "PRR", "POR", "MIG",
                                          "STG"}
    out = "".join(f"{number}.nqsv  {word}\n" for number, word in enumerate(NQSVState.__members__))
    found = NQSVJobExecutor().parse_status_output(0, out)
    assert not any(status.final for status in found.values()) and len(found) == 11


@pytest.mark.parametrize(("code", "out", "ids"), [
    (0, "1.nqsv RUN\n" + GONE, ["1"]), (1, GONE.strip(), []), (0, "1.nqsv RUN\n2.nqsv QU", ["1"]),
    (0, "1.nqsv RUN\nwelcome to the cluster\n", ["1"])])
def test_answers(code: int, out: str, ids: list[str]) -> None:
    assert list(NQSVJobExecutor().parse_status_output(code, out)) == ids


@pytest.mark.parametrize(("code", "out"), [(0, ""), (0, "welcome\n"), (1, "qstat: cannot connect"), (0, "1.nqsv\n")])
def test_no_answer(code: int, out: str) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        NQSVJobExecutor().parse_status_output(code, out)


def test_id_in_the_answer() -> None:
    executor = NQSVJobExecutor()
    assert executor.job_id_from_submit_output("Request 996644.nqsv submitted to queue: gen_S.\n") == "996644"
    for out in ("", "996644", "Request 1.a submitted to queue: q.\nRequest 2.a submitted to queue: q.", "Request x"):
        with pytest.raises(ValueError):
            executor.job_id_from_submit_output(out)


def test_cancel_of_ended() -> None:
    with pytest.raises(InvalidJobStateError):
        NQSVJobExecutor().process_cancel_command_output(1, GONE)
    with pytest.raises(SubmitException):
        NQSVJobExecutor().process_cancel_command_output(1, "qdel: permission denied")


# --- the whole way -------------------------------------------------------------------------------------------------

def test_whole_way(stand: Stand, tmp_path: Path) -> None:
    job = a_job("echo out; sleep 0.5", name="a_b.c", stdout_path=tmp_path / "o")
    stand.executor.submit(job)
    assert job.native_id == "1" and stand.executor.list() == ["1"]
    status = ended(job)
    assert stand.states(job) == [Q, A, C] and stand.executor.list() == []
    assert (tmp_path / "o").read_text() == "out\n" and stand.lab.jobs()[0]["name"] == "a_b.c"
    metadata = status.metadata or {}
    assert status.exit_code == 0 and metadata["sources"]["exit_code"] == "exit-file"
    assert metadata["start_time"] <= metadata["end_time"] == status.time
    assert stand.files() == []


@pytest.mark.parametrize("code", [3, 139, 200])
def test_exit_codes(stand: Stand, code: int) -> None:
    job = a_job(f"exit {code}")
    stand.executor.submit(job)
    assert (ended(job).state, job.status.exit_code) == (F, code)


def test_cancel(stand: Stand) -> None:
    running, queued = a_job("sleep 30"), a_job("sleep 30", attributes=JobAttributes(custom_attributes={"nqsv.h": True}))
    stand.executor.submit(running)
    stand.executor.submit(queued)
    running.wait(timedelta(seconds=5), A)
    running.cancel()
    queued.cancel()
    assert [ended(job).state for job in (running, queued)] == [X, X]
    assert stand.states(running) == [Q, A, X] and stand.states(queued) == [Q, X]


def test_killed(stand: Stand) -> None:
    """Nothing is known of a request that was killed."""
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.kill(stand.lab.jobs()[0], 9)
    assert (ended(job).state, (job.status.metadata or {})["reason"]) == (F, "lost")


@pytest.mark.parametrize("fault", [{"exit": 1, "stderr": "qstat: cannot connect\n"}, {"stdout": ""}, {"sleep": 30}])
def test_queue_does_not_answer(stand: Stand, fault: dict[str, object]) -> None:
    """E16, E17, E18."""
    stand.executor.config.command_timeout = 0.5
    job = a_job("sleep 0.3; exit 4")
    stand.executor.submit(job)
    stand.lab.fault("qstat", times=-1, **fault)
    time.sleep(1.2)
    assert not job.status.final
    stand.executor.config.command_timeout = 5
    stand.lab.heal("qstat")
    assert ended(job).exit_code == 4


def test_refused(stand: Stand) -> None:
    with pytest.raises(SubmitException, match="No such queue") as raised:
        stand.executor.submit(a_job("true", attributes=JobAttributes(queue_name="nosuch")))
    assert not raised.value.transient and stand.files() == []


def test_no_answer_to_qsub(stand: Stand) -> None:
    """There is no way to find the request: that is said, and the job is not made again."""
    stand.lab.fault("qsub", after=True, stdout="")
    stand.lab.set(wait=600)         # else its own record that it started would tell
    with pytest.raises(SubmitException, match="Nobody knows") as raised:
        stand.executor.submit(a_job("true"))
    assert not raised.value.transient


@pytest.mark.parametrize("native_id", ["999", "-u mary", "1.nqsv", "", "1;2", "../1", "1\n2"])
def test_attach_to_nothing(stand: Stand, native_id: str) -> None:
    """E34, T18."""
    job = Job()
    stand.executor.attach(job, native_id)
    assert (ended(job).state, (job.status.metadata or {})["reason"]) == (F, "lost")


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
def test_refused_members(stand: Stand, members: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidJobException, match=re.escape(message)):
        stand.executor.submit(a_job("true", **members))
    assert stand.files() == [] and stand.lab.jobs() == []


@pytest.mark.parametrize("value", ["", "a b", "'", '"', "#", "\n", "\\", "ü", "a;b"])
def test_filter_refuses(value: str) -> None:
    with pytest.raises(QuotingError):
        nqsv(Directive("A", value))


def test_node_file(stand: Stand, tmp_path: Path) -> None:
    job = a_job('cat "$PSIJ_NODEFILE"', stdout_path=tmp_path / "o",
                resources=ResourceSpecV1(node_count=2, processes_per_node=2, cpu_cores_per_process=3))
    stand.executor.submit(job)
    ended(job)
    assert (tmp_path / "o").read_text() == "node1\nnode1\nnode2\nnode2\n"


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
    assert (executor.work_directory / "7.ec").exists() is runs


def test_name() -> None:
    assert type(JobExecutor.get_instance("nqsv")).__name__ == "NQSVJobExecutor"
