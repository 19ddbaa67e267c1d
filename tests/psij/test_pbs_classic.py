"""The Torque executor: recorded outputs of Slurm's Torque commands, what is its own on the stand-in, directives."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch._followed import LastAnswer
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.pbs_classic import PBSClassicJobExecutor
from sssjob.templates.quoting import pbs
from tests.fakes.pbs import server_table
from tests.psij.batch_support import Stand, a_job, ended, known, refusal
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["pbs_classic"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
RECORDED = Path(__file__).parents[1] / "fixtures/slurm-torque-22.05.8"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


# --- answers -------------------------------------------------------------------------------------------------------

def test_recorded_queue() -> None:
    """No exit status is told: one that ran ended in an unknown way, one that did not has not been launched."""
    statuses = PBSClassicJobExecutor().parse_status_output(0, recorded("qstat-f.txt"))
    assert {key: (status.state, (status.metadata or {}).get("reason")) for key, status in statuses.items()} == {
        "1": (F, "unknown-exit"), "2": (A, None), "7": (A, None), "4": (Q, None), "5": (Q, None),
        "6": (F, "unknown-exit"), "3": (Q, None)}
    assert statuses["2"].metadata == {
        "native_state": "R", "queue": "batch", "account": "chem", "submit_time": 1795249443,
        "nodes": ["node1", "node2"], "node_count": 2, "processors": 2}
    ends = PBSClassicJobExecutor().parse_status_output(0, recorded("qstat-f-end.txt"))
    assert (ends["4"].state, (ends["4"].metadata or {})["reason"]) == (F, "launch")


def test_recorded_unknown_option() -> None:
    with pytest.raises(ValueError, match="does not know the form"):
        PBSClassicJobExecutor().parse_status_output(2, recorded("qstat-x.txt.stderr"))
    assert PBSClassicJobExecutor().job_id_from_submit_output(recorded("qsub.txt")) == "2"


XML = "<Data><Job><Job_Id>7.head</Job_Id><job_state>{state}</job_state><qtime>1795249443</qtime>" \
      "<exec_host>node1/0-3+node2/5</exec_host><start_time>1795249445</start_time><comp_time>1795249450</comp_time>" \
      "<resources_used><cput>00:00:03</cput><mem>200kb</mem><walltime>00:00:05</walltime></resources_used>{more}" \
      "</Job></Data>"


@pytest.mark.parametrize(("text", "state", "code", "reason"), [
    ("0", C, 0, None), ("3", F, 3, None), ("271", F, 143, "signal"), ("-11", F, None, "timeout"),
    ("-10", F, None, "memory"), ("-12", F, None, "cpu-limit"), ("-4", F, None, "launch")])
def test_exit_status(text: str, state: JobState, code: int | None, reason: str | None) -> None:
    out = XML.format(state="C", more=f"<exit_status>{text}</exit_status>")
    status = PBSClassicJobExecutor().parse_status_output(0, out)["7.head"]
    assert (status.state, status.exit_code, (status.metadata or {}).get("reason")) == (state, code, reason)


def test_xml() -> None:
    found = PBSClassicJobExecutor().parse_status_output(0, XML.format(state="C", more="<exit_status>0</exit_status>"))
    assert found["7.head"].time == 1795249450 and found["7.head"].metadata == {
        "native_state": "C", "submit_time": 1795249443, "start_time": 1795249445, "end_time": 1795249450,
        "nodes": ["node1", "node2"], "node_count": 2, "processors": 5, "wall_seconds": 5, "cpu_seconds": 3,
        "memory_max_bytes": 200 << 10}
    assert PBSClassicJobExecutor().parse_status_output(0, XML.format(state="E", more=""))["7.head"].state is A
    for text in ("<Data>", "<Data><Job><Job_Id>1</Job_Id>", '<!DOCTYPE x [<!ENTITY e "x">]><Data>&e;', "welcome\n"):
        with pytest.raises(ValueError):
            PBSClassicJobExecutor().parse_status_output(0, text)


@pytest.mark.parametrize(("out", "notices", "running", "empty"), [
    ("", "", 1, True), ("welcome\n", "welcome\n", 1, True), ("Warning: tokens expire\n", "", 0, True),
    ("pbs_iff: cannot read credentials\n", "", 1, False), ("welcome\nqstat: Busy\n", "welcome\n", 1, False),
    (XML.format(state="R", more="")[9:] + "\n", "", 1, False), ("    job_state = R\n\n", "", 1, False)])
def test_no_jobs(monkeypatch: pytest.MonkeyPatch, out: str, notices: str, running: int, empty: bool) -> None:
    """Words without jobs are no queue without jobs unless the server counts none, or its table comes with them too: a
    job in a damaged answer was canceled on request, without a qdel."""
    for executor in PBSClassicJobExecutor(), PBSJobExecutor():
        executor._form = 1
        monkeypatch.setattr(executor, "_ask", lambda command: (0, f"{notices}{server_table(running)}\n"))
        with nullcontext() if empty else pytest.raises(ValueError, match="gave no jobs"):
            assert executor._seen(0, out, LastAnswer(["7.head"])) == {}


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_whole_way_without_xml(quick: Stand) -> None:
    """Where qstat does not know XML it is asked for once, and then for the plain form."""
    quick.lab.set(xml=False)
    job = a_job("sleep 0.2; exit 3")
    quick.executor.submit(job)
    assert (ended(job).exit_code, quick.states(job)) == (3, [Q, A, F])
    assert (known(job)["cpu_seconds"], known(job)["nodes"], known(job)["processors"]) == (1, ["node1", "node2"], 3)
    assert [call for call in quick.lab.calls("qstat") if "-x" in call] == [["-f", "-x"]]


def test_list(quick: Stand) -> None:
    mine, theirs = a_job("sleep 30"), a_job("sleep 30")
    quick.executor.submit(mine)
    quick.executor.submit(theirs)
    quick.lab.update(2, owner="mary")
    assert quick.executor.list() == [mine.native_id]
    for job in (mine, theirs):
        job.cancel()
    assert ended(mine).state is X


@pytest.mark.parametrize("forget", [0, 300])
def test_cancel(quick: Stand, forget: int) -> None:
    """The record of a deleted job is that of one killed by a signal: only our own qdel makes it a cancel."""
    quick.lab.set(forget=forget)
    jobs = [a_job("sleep 30"), a_job("sleep 30", attributes=JobAttributes(custom_attributes={"pbs.h": True})),
            a_job("sleep 30")]
    for job in jobs:
        quick.executor.submit(job)
    for job in (jobs[0], jobs[2]):
        job.wait(timedelta(seconds=60), A)
    jobs[0].cancel()
    jobs[1].cancel()
    quick.lab.kill(quick.lab.jobs()[2], 9)
    assert [ended(job).state for job in jobs] == [X, X, F]
    assert (jobs[2].status.metadata or {})["reason"] == ("signal" if forget else "lost")


# --- directives ----------------------------------------------------------------------------------------------------

_AS_SAID = BatchSchedulerExecutorConfig(default_resources=False)


def directives(spec: JobSpec) -> list[str]:
    job = Job(spec)
    found = PBSClassicJobExecutor(config=_AS_SAID)._directives(job, spec)
    return [str(pbs(one)) for one in found if one.option not in "Sojv"]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["-N n", "-V", "-l walltime=00:10:00"]),
    ({"attributes": JobAttributes(None, "q", "a", "res.1")}, ["-N n", "-V", "-q q", "-A a", "-W x=FLAGS:ADVRES:res.1"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        node_count=2, processes_per_node=3, cpu_cores_per_process=4, gpu_cores_per_process=1, exclusive_node_use=True,
        memory=4 << 30)},
     ["-N n", "-V", "-l nodes=2:ppn=12:gpus=3", "-l mem=4194304kb", "-n"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(process_count=3, memory=1)},
     ["-N n", "-V", "-l nodes=1:ppn=3", "-l mem=1kb"]),
    ({"attributes": JobAttributes(None, custom_attributes={
        "pbs.W": "group_list=g", "pbs.l": "pmem=1gb", "pbs.r": "n"})},
     ["-N n", "-V", "-W group_list=g", "-l pmem=1gb", "-r n"]),
])
def test_directives(members: dict[str, object], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == expected  # type: ignore[arg-type]


def test_name_of_the_executable_is_short() -> None:
    assert directives(JobSpec("/a/a_program_with_a_long_name"))[0] == "-N a_program_with_"


@pytest.mark.parametrize(("members", "message"), [
    ({"name": "a b"}, "name"), ({"name": "a/b"}, "name"), ({"name": ""}, "name"), ({"name": "a'b\"c"}, "name"),
    ({"attributes": JobAttributes(reservation_id="a;FLAGS:X")}, "attributes.reservation_id"),
    ({"attributes": JobAttributes(custom_attributes={"pbs.t": "1-3"})}, "custom attribute 'pbs.t'"),
    ({"attributes": JobAttributes(custom_attributes={"pbs.d": "/tmp"})}, "custom attribute 'pbs.d'"),
    ({"attributes": JobAttributes(account="a\nb")}, "attributes.account")])
def test_refused_members(quick: Stand, members: dict[str, object], message: str) -> None:
    assert message in refusal(quick, **members)
