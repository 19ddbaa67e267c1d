"""The LSF executor: outputs as public clients have them in their tests, what is its own on the stand-in, directives."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, ResourceSpecV1
from psij.executors.batch.lsf import LsfJobExecutor, parse_bhist
from sssjob.lrm.lsf import STATES
from sssjob.templates.quoting import bsub
from tests.psij.batch_support import Stand, a_job, ended, refusal
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["lsf"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


def answer(**fields: str) -> str:
    """An answer of bjobs with one job."""
    record = {"JOBID": "7", "JOBINDEX": "0", "STAT": "EXIT", "EXIT_CODE": "", "EXIT_REASON": "", "EXEC_HOST": "hostA",
              **fields}
    return json.dumps({"COMMAND": "bjobs", "JOBS": 1, "RECORDS": [record]}, indent=2)


# --- answers -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("fields", "state", "code", "reason", "signal"), [
    ({"STAT": "DONE"}, C, 0, None, None), ({"EXIT_CODE": "3"}, F, 3, None, None),
    ({"EXIT_CODE": "137"}, F, 137, None, None),
    ({"EXIT_CODE": "130", "EXIT_REASON": "TERM_OWNER: job killed by owner"}, X, None, None, None),
    ({"EXIT_REASON": "TERM_FORCE_ADMIN: job killed by root", "EXEC_HOST": ""}, X, None, None, None),
    ({"EXIT_CODE": "140", "EXIT_REASON": "TERM_RUNLIMIT: job killed after reaching LSF run time limit"}, F, 140,
     "timeout", 12),
    ({"EXIT_CODE": "130", "EXIT_REASON": "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit"}, F, 130,
     "memory", 2),
    ({"EXIT_REASON": "TERM_REMOVE_HUNG_JOB: job removed from LSF"}, F, None, "remove-hung-job", None),
    ({"EXIT_REASON": "TERM_UNKNOWN: unknown reason", "EXIT_CODE": "5"}, F, 5, None, None),
    ({}, F, None, "unknown-exit", None), ({"EXEC_HOST": ""}, F, None, "launch", None)])
def test_ends(fields: dict[str, str], state: JobState, code: int | None, reason: str | None,
              signal: int | None) -> None:
    status = LsfJobExecutor().parse_status_output(0, answer(**fields))["7"]
    metadata = status.metadata or {}
    assert (status.state, status.exit_code, metadata.get("reason"), metadata.get("signal")) == (
        state, code, reason, signal)


@pytest.mark.parametrize(("word", "state", "phase"), [
    ("PEND", Q, None), ("PSUSP", Q, "HELD"), ("WAIT", Q, None), ("PROV", Q, "CONFIGURING"), ("FWD_PEND", Q, None),
    ("RUN", A, None), ("SSUSP", A, "SUSPENDED"), ("USUSP", A, "SUSPENDED")])
def test_states(word: str, state: JobState, phase: str | None) -> None:
    status = LsfJobExecutor().parse_status_output(0, answer(STAT=word))["7"]
    assert (status.state, (status.metadata or {}).get("phase")) == (state, phase)


def test_states_that_say_nothing() -> None:
    assert LsfJobExecutor().parse_status_output(0, answer(STAT="UNKWN")) == {}
    assert LsfJobExecutor().parse_status_output(0, answer(STAT="ZOMBI")) == {}
    assert {"PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "DONE", "EXIT", "UNKWN", "WAIT", "ZOMBI"} <= STATES.keys()


def test_usage() -> None:
    """Forms seen in the tests of Roddy, Balsam and buildtest, and with seconds and the year."""
    status = LsfJobExecutor().parse_status_output(0, answer(
        STAT="DONE", QUEUE="short", SUBMIT_TIME="Dec  8 19:56:00 2025", START_TIME="Dec  8 19:56:01 2025",
        FINISH_TIME="Dec  8 20:00:01 2025 L", CPU_USED="00:00:01", RUN_TIME="240 second(s)", MAX_MEM="5.5 Gbytes",
        EXEC_HOST="4*tbi-1:2*tbi-2", PROJ_NAME="chem"))["7"]
    assert status.time == 1765224001 and status.metadata == {
        "native_state": "DONE", "queue": "short", "submit_time": 1765223760, "start_time": 1765223761,
        "end_time": 1765224001, "nodes": ["tbi-1", "tbi-2"], "node_count": 2, "processors": 6, "wall_seconds": 240,
        "cpu_seconds": 1, "memory_max_bytes": int(5.5 * (1 << 30)), "account": "chem"}


def test_times_without_a_year_are_not_used() -> None:
    status = LsfJobExecutor().parse_status_output(0, answer(
        STAT="RUN", SUBMIT_TIME="Dec 28 19:56", START_TIME="Dec 28 19:56", EXEC_HOST="a:a"))["7"]
    assert status.metadata == {"native_state": "RUN", "nodes": ["a"], "node_count": 1, "processors": 2}


@pytest.mark.parametrize(("code", "out"), [
    (255, "No unfinished job found\n"), (0, "No job found\n"), (0, '{"COMMAND":"bjobs","JOBS":0,"RECORDS":[]}')])
def test_no_jobs(code: int, out: str) -> None:
    assert LsfJobExecutor().parse_status_output(code, out) == {}


@pytest.mark.parametrize(("code", "out"), [
    (0, ""), (0, "Cannot connect to LSF. Please wait ...\n"), (255, "LSF is down. Please wait ..."), (0, "{}"),
    (0, '{"COMMAND":"bjobs"'), (0, '{"RECORDS":[{"JOBID":"9","QUEUE":"\\q"},{"JOBID":"10","STAT":"PEND"}'),
    (0, '{"RECORDS":[{"JOBID":"1","ST'), (1, "")])
def test_no_answer(code: int, out: str) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        LsfJobExecutor().parse_status_output(code, out)


def test_noise_errors_and_bad_records() -> None:
    """Chatter before the answer, ids that are not known, and records that are no JSON: of a job that has such a name it
    is known that it is there, or it would be lost while it runs."""
    out = 'Cannot connect to LSF. Please wait ...\n' + answer(STAT="RUN")
    assert list(LsfJobExecutor().parse_status_output(0, out)) == ["7"]
    out = '{"COMMAND":"bjobs","JOBS":2,"RECORDS":[{"JOBID":"8","ERROR":"Job <8> is not found"},\n' \
          '{"JOBID":"9","STAT":"RUN","QUEUE":"\\q","JOB_NAME":"a "b","STAT":"DONE""},' \
          '{"JOBID":"10","STAT":"PEND"}\n ]\n}\n'
    statuses = LsfJobExecutor().parse_status_output(255, out)
    assert {native_id: status.state for native_id, status in statuses.items()} == {"9": A, "10": Q}
    assert "queue" not in (statuses["9"].metadata or {})


def test_elements_of_arrays() -> None:
    assert list(LsfJobExecutor().parse_status_output(0, answer(STAT="RUN", JOBINDEX="3"))) == ["7[3]"]


HISTORY = """\

Job <100>, Job Name <Done successfully.>, User <u>, Project <default>, Command <x.sh>
Fri Sep 19 11:10:05: Submitted from host <h>, to Queue <regress>, CWD <$HOME/Exited with exit code 9>;
Fri Sep 19 11:12:00: Starting (Pid 124);
Fri Sep 19 11:30:00: Done successfully. The CPU time used is 900.2 seconds;

Job <101>, Job Name <b>, User <u>, Project <default>, Command <y.sh>
Fri Sep 19 11:10:05: Submitted from host <h>, to Queue <regress>, CWD <$HOME>;
Fri Sep 19 11:12:00: Starting (Pid 124);
Fri Sep 19 11:30:00 2025: Exited with exit co
                     de 3. The CPU time used is 900.2 seconds;

Job <102>, Job Name <c>, User <u>, Project <default>, Command <z.sh>
Fri Sep 19 11:10:05: Submitted from host <h>, to Queue <regress>, CWD <$HOME>;
Fri Sep 19 11:11:00: Signal <KILL> requested by user or administrator <u>;
Fri Sep 19 11:11:00: Exited by signal 9. The CPU time used is 0.0 seconds;
Fri Sep 19 11:11:00: Completed <exit>; TERM_OWNER: job killed by owner;

Job <103>, User <u>, Project <default>, Command <w.sh>
Fri Sep 19 11:10:05: Submitted from host <h>, to Queue <regress>, CWD <$HOME>;
Fri Sep 19 11:12:00: Starting (Pid 124);
Fri Sep 19 13:10:05: Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit;

Job <104>, User <u>, Project <default>, Command <v.sh>
Fri Sep 19 11:10:05: Submitted from host <h>, to Queue <regress>, CWD <$HOME>;
Fri Sep 19 11:12:00: Starting (Pid 124);
Fri Sep 19 11:30:00: Exited with exit code 99. The CPU time used is 1 seconds;
Fri Sep 19 11:30:01: Pending: Job has been requeued to its original queue;

Job <105>, User <u>, Project <default>, Command <v.sh>
Fri Sep 19 11:10:05: Submitted from host <h>, to Queue <regress>, CWD <$HOME>;
Fri Sep 19 11:12:00: Starting (Pid 124);
Fri Sep 19 11:30:00: Exited by signal 11. The CPU time used is 1 seconds;

Summary of time in seconds spent in various states by  Fri Sep 19 11:30:00
  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL
"""


def test_history() -> None:
    """The wording is that of bhist(1) and of public clients' tests."""
    ends = parse_bhist(0, HISTORY)
    assert {key: (status.state, status.exit_code, (status.metadata or {}).get("reason"),
                  (status.metadata or {}).get("signal")) for key, status in ends.items()} == {
        "100": (C, 0, None, None), "101": (F, 3, None, None), "102": (X, None, None, None),
        "103": (F, None, "timeout", None), "104": (A, None, None, None), "105": (F, 139, "signal", 11)}
    assert parse_bhist(255, "No matching job found\n") == {}
    with pytest.raises(RuntimeError):
        parse_bhist(255, "LSF is down")


# --- on the stand-in -------------------------------------------------------------------------------------------------

def test_left_the_queue_at_once(quick: Stand) -> None:
    """E20: the exit file has the end, or the history."""
    quick.lab.set(forget=0)
    jobs = [a_job("exit 0"), a_job("exit 5"), a_job("sleep 30")]
    for job in jobs:
        quick.executor.submit(job)
    jobs[2].wait(timedelta(seconds=60), A)
    quick.lab.kill(quick.lab.jobs()[2], 9)
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(C, 0), (F, 5), (F, 137)]
    assert (jobs[2].status.metadata or {})["sources"]["native_state"] == "bhist"


# --- submitting ----------------------------------------------------------------------------------------------------

def test_variables_of_bsub(quick: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BSUB_QUIET", "1")
    assert quick.executor.get_submit_command(a_job("true"), Path("f")) == [
        "env", "-u", "BSUB_QUIET", "LSB_NTRIES=1", "/bin/sh", "-c", 'exec bsub <"$1"', "sh", "f"]


# --- directives ----------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> list[str]:
    job = Job(spec)
    return [str(bsub(one)) for one in LsfJobExecutor()._directives(job, spec) if one.option not in ("o", "Jd")]


@pytest.mark.parametrize(("members", "expected"), [
    ({}, ["-J n", "-W 00:10"]),
    ({"attributes": JobAttributes(timedelta(days=2, seconds=1), "q", "a b", "r#1")},
     ["-J n", "-q q", '-P "a b"', '-U "r#1"', "-W 48:01"]),
    ({"attributes": JobAttributes(None, custom_attributes={
        "lsf.R": 'select[type=="X86"]', "LSF.sp": 5, "lsf.H": True, "lsf.x": None, "slurm.z": 1, "lsf.app": "a"})},
     ["-J n", "-R 'select[type==\"X86\"]'", "-sp 5", "-H", "-app a"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        node_count=2, processes_per_node=3, cpu_cores_per_process=4, gpu_cores_per_process=1, exclusive_node_use=True,
        memory=4 << 30)},
     ["-J n", "-n 24", '-R "span[ptile=12]"', '-R "rusage[mem=2097152KB/host]"', "-gpu num=3/host", "-x"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(
        process_count=3, cpu_cores_per_process=2, memory=12 << 20, gpu_cores_per_process=2)},
     ["-J n", "-n 6", '-R "span[block=2]"', '-R "rusage[mem=2048KB/task]"', "-gpu num=1/task"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(cpu_cores_per_process=4, memory=1)},
     ["-J n", "-n 4", '-R "span[hosts=1]"', '-R "rusage[mem=1KB/host]"']),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(process_count=4, gpu_cores_per_process=1)},
     ["-J n", "-n 4", "-gpu num=1/task"]),
    ({"attributes": JobAttributes(None), "resources": ResourceSpecV1(process_count=4, node_count=1)},
     ["-J n", "-n 4", '-R "span[hosts=1]"']),
])
def test_directives(members: dict[str, object], expected: list[str]) -> None:
    assert directives(JobSpec("/bin/true", name="n", **members)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("attributes", "message"), [
    ({"lsf.J": "a[1-3]"}, "one job"), ({"lsf.oo": "x"}, "stdout_path"), ({"lsf.K": True}, "hold up"),
    ({"lsf.P": "x"}, "say the same"), ({"lsf.sp": {1}}, "must be text, a number"), ({"lsf.env": "none"}, "environment"),
    ({"lsf.A b": "x"}, "not the name of an option"), ({"lsf.u": "a\n#BSUB -sp 1"}, "line break"),
    ({"lsf.u": "a\"b'c"}, "both kinds of quotes"), ({"lsf.u": "a\\"}, "backslash"), ({"lsf.u": ""}, "empty"),
    ({"lsf.u": "a #b"}, "begins with '#'")])
def test_custom_attributes_refused(quick: Stand, attributes: dict[str, object], message: str) -> None:
    reason = refusal(quick, attributes=JobAttributes(timedelta(minutes=1), account="x", custom_attributes=attributes))
    assert message in reason and f"custom attribute {next(iter(attributes))!r}" in reason


@pytest.mark.parametrize(("members", "message"), [
    ({"name": "a[1-3]"}, "name"), ({"name": ""}, "name"), ({"name": "x" * 4095}, "name"),
    ({"resources": ResourceSpecV1(process_count=2, cpu_cores_per_process=2, gpu_cores_per_process=1)},
     "resources.gpu_cores_per_process"),
    ({"attributes": JobAttributes(account="a\nb")}, "attributes.account"),
    ({"attributes": JobAttributes(reservation_id="a\\b")}, "attributes.reservation_id")])
def test_refused_members(quick: Stand, members: dict[str, object], message: str) -> None:
    assert message in refusal(quick, **members)
