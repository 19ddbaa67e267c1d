"""The Cobalt executor: answers as Cobalt's source has them, what is its own on the stand-in, directives."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobSpec, JobState, ResourceSpecV1
from psij.executors import CobaltJobExecutor
from psij.executors.batch.cobalt import CobaltExecutorConfig, parse_log
from sssjob.lrm.cobalt import STATES
from sssjob.lrm.states import NativeState, Stage
from sssjob.templates.quoting import cobalt
from tests.psij.batch_support import Stand, a_job, ended, refusal
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["cobalt"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


# --- answers -------------------------------------------------------------------------------------------------------

QSTAT = """JobID: 603816
    State       : running
    Queue       : default
    Nodes       : 2
    Procs       : 4
    StartTime   : Thu Sep 10 17:35:58 2015 +0000 (UTC)
    SubmitTime  : Thu Sep 10 18:35:17 2015 +0100 (BST)

JobID: 603817
    State       : dep_hold
    Queue       : default
    Nodes       : 1
    Procs       : 1
    StartTime   : N/A
    SubmitTime  : Thu Sep 10 17:35:17 2015 +0000 (UTC)

"""


def test_queue() -> None:
    statuses = CobaltJobExecutor().parse_status_output(0, QSTAT)
    assert {key: status.state for key, status in statuses.items()} == {"603816": A, "603817": Q}
    assert statuses["603816"].time == 1441906558 and statuses["603816"].metadata == {
        "native_state": "running", "queue": "default", "submit_time": 1441906517, "start_time": 1441906558,
        "node_count": 2}
    assert statuses["603817"].metadata == {"native_state": "dep_hold", "queue": "default", "submit_time": 1441906517,
                                           "waits": "dependency"}


@pytest.mark.parametrize("native", STATES.values(), ids=list(STATES))
def test_states(native: NativeState) -> None:
    statuses = CobaltJobExecutor().parse_status_output(0, QSTAT.replace("running", native.word))
    waits = native.stage in (Stage.WAITING, Stage.HELD, Stage.AGAIN)
    assert {one.state for name, one in statuses.items() if name == "603816"} == (
        set() if native.stage is Stage.SILENT else {Q if waits else A})


def test_cut_and_wrong_answers(caplog: pytest.LogCaptureFixture) -> None:
    executor = CobaltJobExecutor()
    assert executor.parse_status_output(0, "") == {}
    for text in ("welcome\n", QSTAT[:-40]):
        with pytest.raises(ValueError):
            executor.parse_status_output(0, text)
    with pytest.raises(RuntimeError):
        executor.parse_status_output(1, "Failed to connect to queue manager")
    odd = QSTAT.replace("dep_hold", "odd_hold")
    assert executor.parse_status_output(0, odd).keys() == executor.parse_status_output(0, odd).keys() == {"603816"}
    assert len([record for record in caplog.records if "odd_hold" in record.message]) == 1


@pytest.mark.parametrize(("said", "state", "code", "reason"), [
    ("Info: task completed normally with an exit code of 0; initiating job cleanup and removal", C, 0, None),
    ("Info: task completed normally with an exit code of 126; initiating job cleanup and removal", F, 126, None),
    ("Info: task completed normally with an exit code of -9; initiating job cleanup and removal", F, 137, "signal"),
    ("Info: task completed normally with an exit code of None; initiating job cleanup and removal", F, None,
     "unknown-exit"),
    ("Info: maximum execution time exceeded; initiating job terminiation", F, None, "timeout"),
    ("Info: user delete requested with signal SIGTERM by user alice", X, None, None),
    ("Info: user delete with signal SIGTERM requested by user alice; initiating job cleanup and removal", X, None,
     None)])
def test_log(said: str, state: JobState, code: int | None, reason: str | None) -> None:
    out = (f"/w/d:e/603816.a-b.cobaltlog:Thu Sep 10 17:35:17 2015 +0000 (UTC) submitted with cwd set to: /home/a b\n"
           f"/w/d:e/603816.a-b.cobaltlog:Thu Sep 10 17:36:56 2015 +0000 (UTC) {said}\n"
           "/w/d:e/603817.a-b.cobaltlog:Thu Sep 10 17:35:17 2015 +0000 (UTC) submitted with cwd set to: /home/a b\n"
           "/w/d:e/603818.a-b.cobaltlog:qsub --jobname task completed normally\n")
    ends = parse_log(out)
    assert ends.keys() == {"603816"}
    status, metadata = ends["603816"], ends["603816"].metadata or {}
    assert (status.state, status.exit_code, metadata.get("reason")) == (state, code, reason)
    assert (status.time, metadata["submit_time"], metadata["end_time"]) == (1441906616, 1441906517, 1441906616)


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_environment(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cobalt hands nothing on: what is inherited is in the script, as it is."""
    monkeypatch.setenv("FROM_US", "a'b ${HOME} $(x)\n#COBALT -n 5")
    monkeypatch.setenv("COBALT_JOBID", "99")
    for inherit in (True, False):
        job = a_job('printf %s "${FROM_US-unset}"', stdout_path=tmp_path / f"o{inherit}", inherit_environment=inherit)
        stand.executor.submit(job)
        ended(job)
    assert (tmp_path / "oTrue").read_text() == "a'b ${HOME} $(x)\n#COBALT -n 5"
    assert (tmp_path / "oFalse").read_text() == "unset"


# --- directives ----------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> list[str]:
    made = CobaltJobExecutor()._directives(Job(spec), spec)
    return [cobalt(one) for one in made if one.option not in ("env", "cwd", "output", "error", "debuglog")]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["--time 10", "--nodecount 1"]),
    ({"attributes": JobAttributes(timedelta(seconds=61), "q", "chem")},
     ["--queue q", "--project chem", "--time 2", "--nodecount 1"]),
    ({"attributes": JobAttributes(None, "q", reservation_id="r")}, ["--queue r", "--time 0", "--nodecount 1"]),
    ({"attributes": JobAttributes(None, custom_attributes={"cobalt.attrs": "a=b:c=d", "cobalt.M": "me@x",
                                                           "Cobalt.preemptable": True, "slurm.y": 1})},
     ["--time 0", "--nodecount 1", "--attrs a=b:c=d", "-M me@x", "--preemptable"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        node_count=2, processes_per_node=3, cpu_cores_per_process=4, exclusive_node_use=True)},
     ["--time 0", "--nodecount 2"])])
def test_directives(members: dict[str, Any], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == ["--jobname n", *expected]


@pytest.mark.parametrize(("members", "message"), [
    ({"resources": ResourceSpecV1(memory=1)}, r"resources\.memory"),
    ({"resources": ResourceSpecV1(gpu_cores_per_process=1)}, r"resources\.gpu_cores_per_process"),
    ({"attributes": JobAttributes(queue_name="a b")}, r"attributes\.queue_name .*blank"),
    ({"attributes": JobAttributes(queue_name="a\n#COBALT -n 5")}, r"attributes\.queue_name .*line break"),
    ({"attributes": JobAttributes(account="")}, r"attributes\.account .*empty"),
    ({"attributes": JobAttributes(custom_attributes={"cobalt.env": "A=1"})}, "cobalt.env.*use environment"),
    ({"attributes": JobAttributes(custom_attributes={"cobalt.attrs": "a b"})}, "cobalt.attrs"),
    ({"name": "a b"}, "name 'a b'"), ({"name": "x" * 1025}, "name has more than 1024")])
def test_refused_specifications(quick: Stand, members: dict[str, Any], message: str) -> None:
    assert re.search(message, refusal(quick, **members))


def test_cores_of_a_node() -> None:
    executor = CobaltJobExecutor(config=CobaltExecutorConfig(cores_per_node=8))
    fits, large = (JobSpec("/bin/true", resources=ResourceSpecV1(process_count=n, cpu_cores_per_process=2))
                   for n in (4, 5))
    assert executor._directives(Job(fits), fits)
    with pytest.raises(InvalidJobException, match="10 cores on a node, which has 8"):
        executor._directives(Job(large), large)


def test_work_directory_with_a_blank(quick: Stand, tmp_path: Path) -> None:
    quick.executor.work_directory = tmp_path / "a b"
    with pytest.raises(InvalidJobException, match="work_directory"):
        quick.executor.submit(a_job("true"))
