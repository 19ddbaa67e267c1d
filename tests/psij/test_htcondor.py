"""The HTCondor executor: answers as its manual and source have them, the way of a job on its stand-in, descriptions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

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
from psij.executors.batch.batch_scheduler_executor import SourceOffError
from psij.executors.batch.htcondor import HTCondorJobExecutor, parse_history
from sssjob.templates.quoting import Directive, QuotingError, condor, condor_path, condor_string, condor_word
from tests.fakes import htcondor as fake
from tests.psij.batch_support import VIRTUAL, Stand, a_job, ended, stand_in

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


@pytest.fixture
def stand(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    virtual = request.function.__name__ in VIRTUAL
    with stand_in(fake, HTCondorJobExecutor, tmp_path, monkeypatch, virtual=virtual) as made:
        yield made


# --- answers -------------------------------------------------------------------------------------------------------

def queue(**ad: Any) -> Any:
    text = json.dumps([{"ClusterId": 12, "ProcId": 3, "QDate": 100, **ad}])
    return HTCondorJobExecutor().parse_status_output(0, text).get("12.3")


@pytest.mark.parametrize(("ad", "state", "native", "phase"), [
    ({"JobStatus": 0}, Q, "UNEXPANDED", None), ({"JobStatus": 1}, Q, "IDLE", None),
    ({"JobStatus": 2, "JobStartDate": 110}, A, "RUNNING", None),
    ({"JobStatus": 3}, Q, "REMOVED", "CANCELING"), ({"JobStatus": 3, "JobStartDate": 110}, A, "REMOVED", "CANCELING"),
    ({"JobStatus": 5, "HoldReason": "r"}, Q, "HELD", "HELD"),
    ({"JobStatus": 6, "JobStartDate": 110}, A, "TRANSFERRING_OUTPUT", "STAGE_OUT"),
    ({"JobStatus": 7, "JobStartDate": 110}, A, "SUSPENDED", "SUSPENDED"),
    ({"JobStatus": 8}, F, "FAILED", None), ({"JobStatus": 9}, Q, "BLOCKED", None),
    ({"JobStatus": 10}, Q, "PREPARING", "STAGE_IN")])
def test_queue(ad: dict[str, Any], state: JobState, native: str, phase: str | None) -> None:
    status = queue(**ad)
    assert (status.state, status.metadata["native_state"], status.metadata.get("phase")) == (state, native, phase)


def test_running_and_held() -> None:
    status = queue(JobStatus=2, JobStartDate=110, RemoteHost="slot1_2@node7.x", CpusProvisioned=4)
    assert status.time == 110 and status.metadata == {
        "native_state": "RUNNING", "submit_time": 100, "start_time": 110, "processors": 4, "nodes": ["node7.x"],
        "node_count": 1}
    assert queue(JobStatus=5, HoldReason="via condor_hold", HoldReasonCode=1).message == "held: via condor_hold"
    assert queue(JobStatus=5, HoldReason="Spooling input data files", HoldReasonCode=16).message is None
    assert queue(JobStatus=4, ExitBySignal=False, ExitCode=3, EnteredCurrentStatus=120).exit_code == 3
    assert queue(JobStatus=77) is None


@pytest.mark.parametrize(("ad", "state", "code", "reason", "signal"), [
    ({"JobStatus": 4, "ExitBySignal": False, "ExitCode": 0}, C, 0, None, None),
    ({"JobStatus": 4, "ExitBySignal": False, "ExitCode": 3}, F, 3, None, None),
    ({"JobStatus": 4, "ExitBySignal": True, "ExitSignal": 9}, F, 137, "signal", 9),
    ({"JobStatus": 4}, F, None, "unknown-exit", None),
    ({"JobStatus": 3, "RemoveReason": "via condor_rm (by user alice)"}, X, None, None, None),
    ({"JobStatus": 3}, X, None, None, None),
    ({"JobStatus": 3, "RemoveReason": "The job attribute PeriodicRemove expression 'JobStatus == 2 && time() - "
                                      "JobCurrentStartDate > 60' evaluated to TRUE"}, F, None, "timeout", None),
    ({"JobStatus": 3, "RemoveReason": "The system macro SYSTEM_PERIODIC_REMOVE expression 'x' evaluated to TRUE"},
     F, None, "policy", None)])
def test_history(ad: dict[str, Any], state: JobState, code: int | None, reason: str | None, signal: int | None) -> None:
    text = json.dumps([{"ClusterId": 12, "ProcId": 0, "EnteredCurrentStatus": 130, "CompletionDate": 0, **ad}])
    status = parse_history(0, text)["12.0"]
    metadata = status.metadata or {}
    assert (status.state, status.exit_code, metadata.get("reason"), metadata.get("signal")) == (
        state, code, reason, signal)
    assert status.time == metadata["end_time"] == 130


def test_usage() -> None:
    ad = {"ClusterId": 12, "ProcId": 0, "JobStatus": 4, "QDate": 100, "JobStartDate": 110, "CompletionDate": 130,
          "EnteredCurrentStatus": 131, "LastRemoteHost": "slot1@node7", "CpusProvisioned": 2, "GPUsProvisioned": 1,
          "NumJobStarts": 2, "ExitCode": 0, "ExitBySignal": False, "RemoteWallClockTime": 20.0,
          "CumulativeSuspensionTime": 5, "RemoteUserCpu": 1.5, "RemoteSysCpu": 0.5, "ResidentSetSize": 75000,
          "ResidentSetSize_RAW": 52424}
    assert parse_history(0, json.dumps([ad]))["12.0"].metadata == {
        "native_state": "COMPLETED", "submit_time": 100, "start_time": 110, "end_time": 130, "wall_seconds": 20.0,
        "suspend_seconds": 5, "cpu_seconds": 2.0, "memory_max_bytes": 52424 << 10, "processors": 2, "gpus": 1,
        "starts": 2, "nodes": ["node7"], "node_count": 1}
    never_ran = {**ad, "JobStatus": 3, "JobStartDate": 0}
    assert parse_history(0, json.dumps([never_ran]))["12.0"].metadata == {
        "native_state": "REMOVED", "submit_time": 100, "end_time": 131}


def test_no_answers() -> None:
    executor = HTCondorJobExecutor()
    assert executor.parse_status_output(0, "") == parse_history(0, "") == {}     # no job is no output
    for text in ("[", "{}", "-- Failed to fetch ads", '[{"ClusterId": 1'):
        with pytest.raises(ValueError):
            executor.parse_status_output(0, text)
    with pytest.raises(RuntimeError):
        executor.parse_status_output(1, "Error: can't find address of local schedd")
    with pytest.raises(SourceOffError):
        parse_history(1, "Error: No history file is defined")
    assert executor.parse_status_output(0, '[{"ClusterId": "1"}, 5, {"ProcId": 1}]') == {}


def test_id_in_the_answer() -> None:
    executor = HTCondorJobExecutor()
    assert executor.job_id_from_submit_output("WARNING: x\n12.0 - 12.0\n") == "12.0"
    for text in ("", "12.0", "12.0 - 12.4\n", "1 job(s) submitted to cluster 5.\n", "1.0 - 1.0\n2.0 - 2.0\n"):
        with pytest.raises(ValueError):
            executor.job_id_from_submit_output(text)


# --- the whole way -------------------------------------------------------------------------------------------------

def test_whole_way(stand: Stand, tmp_path: Path) -> None:
    job = a_job("echo out; sleep 0.7", name="a \"b\" 'c' $HOME \\ ü", stdout_path=tmp_path / "o")
    stand.executor.submit(job)
    assert stand.executor.list() == [job.native_id] == ["1.0"]
    assert not [name for name in stand.files() if name.endswith(".sub")]        # not needed any more
    status = ended(job)
    assert stand.states(job) == [Q, A, C]
    assert (tmp_path / "o").read_text() == "out\n"
    assert stand.lab.jobs()[0]["name"] == '"a \\"b\\" \'c\' $HOME \\ ü"'
    metadata = status.metadata or {}
    assert status.exit_code == 0 and metadata["sources"]["exit_code"] == "exit-file"
    assert metadata["cpu_seconds"] == 1.5 and metadata["sources"]["cpu_seconds"] == "condor_history"
    assert metadata["memory_max_bytes"] == 52424 << 10 and metadata["nodes"] == ["node1"]
    assert stand.files() == []


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("exit 200", 200)])
def test_failures(stand: Stand, script: str, code: int) -> None:
    job = a_job(script)
    stand.executor.submit(job)
    assert (ended(job).state, job.status.exit_code) == (F, code)


def test_killed(stand: Stand) -> None:
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.kill(stand.lab.jobs()[0], 9)
    assert (ended(job).state, job.status.exit_code, (job.status.metadata or {})["signal"]) == (F, 137, 9)


def test_time_limit(stand: Stand) -> None:
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.update(1, why="The job attribute PeriodicRemove expression "
                            f"'{stand.lab.jobs()[0]['given']['periodic_remove']}' evaluated to TRUE")
    stand.lab.kill(stand.lab.jobs()[0], 9)
    assert (ended(job).state, (job.status.metadata or {})["reason"]) == (F, "timeout")


def test_cancel(stand: Stand) -> None:
    running = a_job("sleep 30")
    queued = a_job("sleep 30", attributes=JobAttributes(custom_attributes={"htcondor.hold": True}))
    for job in (running, queued):
        stand.executor.submit(job)
    running.wait(timedelta(seconds=5), A)
    for job in (running, queued):
        job.cancel()
    assert [ended(job).state for job in (running, queued)] == [X, X]
    assert stand.states(queued) == [Q, X]
    running.cancel()


def test_held(stand: Stand) -> None:
    """A held job has not ended; one that ran stays ACTIVE."""
    job = a_job("sleep 2")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.update(1, state=5, hold_reason="Error from slot1")
    time.sleep(1)
    assert job.status.state is A and job.status.message == "held: Error from slot1"
    assert (job.status.metadata or {})["native_state"] == "HELD"
    stand.lab.update(1, state=None)
    assert ended(job).state is C


def test_without_history(stand: Stand) -> None:
    stand.lab.set(accounting=False)
    job = a_job("exit 5")
    stand.executor.submit(job)
    assert (ended(job).state, job.status.exit_code) == (F, 5)


def test_attach(stand: Stand) -> None:
    first = a_job("exit 6")
    stand.executor.submit(first)
    ended(first)
    job = Job()
    stand.executor.attach(job, "1")
    assert job.native_id == "1.0" and ended(job).exit_code == 6
    for native_id in ("99", "-all", "1.0 2.0", "alice"):
        job = Job()
        stand.executor.attach(job, native_id)
        assert (ended(job).state, (job.status.metadata or {})["reason"]) == (F, "lost")


def test_node_file(stand: Stand, tmp_path: Path) -> None:
    job = a_job('wc -l <"$PSIJ_NODEFILE"', stdout_path=tmp_path / "o", resources=ResourceSpecV1(process_count=3))
    stand.executor.submit(job)
    ended(job)
    assert (tmp_path / "o").read_text() == "3\n"


# --- faults --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "transient"), [
    ("ERROR: Invalid accounting_group: nosuch", False), ("ERROR: Can't find address of local schedd", True),
    ("ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER", True)])
def test_refused(stand: Stand, text: str, transient: bool) -> None:
    stand.lab.fault("condor_submit", exit=1, stderr=text)
    with pytest.raises(SubmitException) as raised:
        stand.executor.submit(a_job("true"))
    assert raised.value.transient is transient and raised.value.message == text and stand.files() == []


@pytest.mark.parametrize("script", ["sleep 0.3; exit 3", "exit 3"])
def test_made_but_not_told(stand: Stand, script: str) -> None:
    stand.lab.fault("condor_submit", after=True, exit=1, stderr="ERROR: Failed to commit job submission into the queue")
    job = a_job(script)
    stand.executor.submit(job)
    assert len(stand.lab.jobs()) == 1 and ended(job).exit_code == 3


@pytest.mark.parametrize("fault", [{"exit": 1, "stderr": "no"}, {"stdout": ""}, {"after": True, "cut": 60}])
def test_queue_does_not_answer(stand: Stand, fault: dict[str, Any]) -> None:
    job = a_job("sleep 0.5; exit 4")
    stand.executor.submit(job)
    stand.lab.fault("condor_q", times=4, **fault)
    assert ended(job).exit_code == 4


# --- descriptions --------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> list[str]:
    made = HTCondorJobExecutor()._directives(Job(spec), spec)
    return [condor(one) for one in made if one.option != "MY.SssjobId"]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["getenv = true", "periodic_remove = JobStatus == 2 && time() - JobCurrentStartDate > 600"]),
    ({"inherit_environment": False, "attributes": JobAttributes(None, account="group_a.b")},
     ["accounting_group = group_a.b"]),
    ({"attributes": JobAttributes(None, custom_attributes={
        "htcondor.requirements": 'OpSys == "LINUX"', "htcondor.MY.WantX": True, "HTCondor.priority": 5,
        "htcondor.x": False, "slurm.y": 1})},
     ["getenv = true", 'requirements = OpSys == "LINUX"', "MY.WantX = true", "priority = 5"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        process_count=3, cpu_cores_per_process=4, gpu_cores_per_process=2, memory=3 << 30)},
     ["getenv = true", "request_cpus = 12", "request_gpus = 6", "request_memory = 3145728KB"])])
def test_directives(members: dict[str, Any], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == ['MY.JobBatchName = "n"', *expected]


def test_description() -> None:
    """The whole text, as it was tried with the parser of the 23.0 bindings."""
    spec = JobSpec("/bin/true", inherit_environment=False, attributes=JobAttributes(None))
    executor, job = HTCondorJobExecutor(), Job(spec)
    executor.work_directory = Path("/w o$rk/it's")
    assert executor._description(job, executor.work_directory / "q.job") == f"""universe = vanilla
executable = /bin/bash
transfer_executable = false
arguments = "'/w o$(DOLLAR)rk/it''s/q.job' $(ClusterId).$(ProcId)"
output = /w o$(DOLLAR)rk/it's/$(ClusterId).$(ProcId).out
error = /w o$(DOLLAR)rk/it's/$(ClusterId).$(ProcId).out
MY.JobBatchName = "true"
MY.SssjobId = "{job.id}"
queue 1
"""


@pytest.mark.parametrize(("members", "message"), [
    ({"resources": ResourceSpecV1(node_count=2)}, r"resources\.node_count"),
    ({"resources": ResourceSpecV1(exclusive_node_use=True)}, r"resources\.exclusive_node_use"),
    ({"attributes": JobAttributes(queue_name="q")}, r"attributes\.queue_name"),
    ({"attributes": JobAttributes(reservation_id="r")}, r"attributes\.reservation_id"),
    ({"attributes": JobAttributes(account="a b")}, r"attributes\.account"),
    ({"attributes": JobAttributes(account="a\nqueue 5")}, r"attributes\.account"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.Queue": "5"})}, "htcondor.Queue.*one job"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.include": "x"})}, "htcondor.include"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.periodic_remove": "x"})}, "htcondor.periodic_remove"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.rank": "a\\"})}, "htcondor.rank.*backslash"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.rank": "1\nqueue 5"})}, "htcondor.rank.*line break"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.a = b": "c"})}, "htcondor.a = b"),
    ({"name": "x" * 1025}, "name has more than 1024"), ({"name": "a\nb"}, "name"), ({"name": "a$$(b)"}, "name")])
def test_refused_specifications(stand: Stand, members: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobException, match=message):
        stand.executor.submit(a_job("true", **members))
    assert stand.files() == [] and stand.lab.jobs() == []


@pytest.mark.parametrize(("value", "path", "word", "string"), [
    ("a b", "a b", "'a b'", '"a b"'), ("$(x)", "$(DOLLAR)(x)", "'$(DOLLAR)(x)'", '"$(DOLLAR)(x)"'),
    ("'\"", "'\"", "'''\"\"'", "\"'\\\"\""), ("\\", "\\", "'\\'", '"\\"'), ("#;@=", "#;@=", "'#;@='", '"#;@="')])
def test_quoting(value: str, path: str, word: str, string: str) -> None:
    """As HTCondor 23.0 reads it; 4,000 random values were tried with its bindings."""
    assert (condor_path(value), condor_word(value), condor_string(value)) == (path, word, string)


@pytest.mark.parametrize("value", ["a$$b", "a\nb", "a\x85b", "\x00"])
def test_what_a_description_cannot_hold(value: str) -> None:
    for made in (condor_path, condor_word, condor_string, lambda text: condor(Directive("x", f"{text}\\"))):
        with pytest.raises(QuotingError):
            made(value)


def test_another_schedd() -> None:
    executor = JobExecutor.get_instance("condor", url="schedd@host")
    assert isinstance(executor, HTCondorJobExecutor)
    assert executor.get_cancel_command("1.0") == ["condor_rm", "-name", "schedd@host", "1.0"]
