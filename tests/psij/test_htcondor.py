"""The HTCondor executor: answers as its manual and source have them, what is its own on the stand-in, descriptions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.batch_scheduler_executor import SourceOffError
from psij.executors.batch.htcondor import HTCondorJobExecutor, parse_history
from sssjob.templates.quoting import Directive, QuotingError, condor, condor_path, condor_string, condor_word
from tests.psij.batch_support import Stand, a_job, ended, refusal, runs
from tests.psij.local_support import wait_until
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["htcondor"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


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
    """Wall time is without the suspended time, as everywhere; CPU time is of all runs, as wall time, where it is told.
    """
    ad = {"ClusterId": 12, "ProcId": 0, "JobStatus": 4, "QDate": 100, "JobStartDate": 110, "CompletionDate": 130,
          "EnteredCurrentStatus": 131, "LastRemoteHost": "slot1@node7", "CpusProvisioned": 2, "GPUsProvisioned": 1,
          "NumJobStarts": 2, "ExitCode": 0, "ExitBySignal": False, "RemoteWallClockTime": 20.0,
          "CumulativeSuspensionTime": 5, "RemoteUserCpu": 1.5, "RemoteSysCpu": 0.5, "ResidentSetSize": 75000,
          "ResidentSetSize_RAW": 52424}
    assert parse_history(0, json.dumps([ad]))["12.0"].metadata == {
        "native_state": "COMPLETED", "submit_time": 100, "start_time": 110, "end_time": 130, "wall_seconds": 15.0,
        "suspend_seconds": 5, "cpu_seconds": 2.0, "memory_max_bytes": 52424 << 10, "processors": 2, "gpus": 1,
        "starts": 2, "nodes": ["node7"], "node_count": 1}
    again = {**ad, "CumulativeRemoteUserCpu": 7.5, "CumulativeRemoteSysCpu": 0.5}
    assert (parse_history(0, json.dumps([again]))["12.0"].metadata or {})["cpu_seconds"] == 8.0
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
    with pytest.raises(ValueError, match="tells of no job"):
        executor.parse_status_output(0, '[{"ClusterId": "1"}, 5, {"ProcId": 1}]')


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_held(quick: Stand) -> None:
    """A held job has not ended; one that ran stays ACTIVE."""
    job = runs(quick, "sleep 0.5")
    quick.lab.update(1, state=5, hold_reason="Error from slot1")
    wait_until(lambda: job.status.message == "held: Error from slot1")
    assert job.status.state is A
    assert (job.status.metadata or {})["native_state"] == "HELD"
    quick.lab.update(1, state=None)
    assert ended(job).state is C


def test_attach_to_a_cluster(quick: Stand) -> None:
    first = a_job("exit 6")
    quick.executor.submit(first)
    ended(first)
    job = Job()
    quick.executor.attach(job, "1")
    assert job.native_id == "1.0" and ended(job).exit_code == 6


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
    ({"attributes": JobAttributes(custom_attributes={"htcondor.periodic_remove": "NumJobStarts > 3"})},
     ["getenv = true",
      "periodic_remove = (JobStatus == 2 && time() - JobCurrentStartDate > 600) || (NumJobStarts > 3)"]),
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
    (text,) = executor._beside(job, executor.work_directory / "q.job").values()
    assert text == f"""universe = vanilla
executable = /bin/bash
transfer_executable = false
arguments = "'/w o$(DOLLAR)rk/it''s/q.job' $(ClusterId).$(ProcId)"
output = /w o$(DOLLAR)rk/it's/$(ClusterId).$(ProcId).{job.id}.out
error = /w o$(DOLLAR)rk/it's/$(ClusterId).$(ProcId).{job.id}.out
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
    ({"attributes": JobAttributes(custom_attributes={"htcondor.rank": "a\\"})}, "htcondor.rank.*backslash"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.rank": "1\nqueue 5"})}, "htcondor.rank.*line break"),
    ({"attributes": JobAttributes(custom_attributes={"htcondor.a = b": "c"})}, "htcondor.a = b"),
    ({"name": "x" * 1025}, "name has more than 1024"), ({"name": "a\nb"}, "name"), ({"name": "a$$(b)"}, "name")])
def test_refused_specifications(quick: Stand, members: dict[str, Any], message: str) -> None:
    assert re.search(message, refusal(quick, **members))


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
