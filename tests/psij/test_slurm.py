"""The Slurm executor: recorded outputs of 22.05, what is its own on the stand-in, what is put into scripts."""

from __future__ import annotations

import os
import shutil
import time
from datetime import timedelta
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, JobStatus, ResourceSpecV1, SubmitException
from psij.executors.batch import lrm
from psij.executors.batch._slurm_records import ACCOUNTING, parse_sacct, parse_scontrol
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig, SourceOffError
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.lrm.slurm import STATES
from sssjob.lrm.states import Stage
from tests.psij.batch_support import FASTEST, Stand, a_job, ended, known, refusal, runs
from tests.psij.managers import MANAGERS

MANAGER = MANAGERS["slurm"]
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


@pytest.mark.parametrize(("members", "message"), [
    ({"directory": "/proc/nonexistent"}, "/proc/nonexistent: No such file or directory"),
    ({"pre_launch": "/proc/nonexistent/pre"}, "/proc/nonexistent/pre: No such file or directory"),
    ({"stdout_path": "/proc/nonexistent/o"}, "/proc/nonexistent/o: No such file or directory")])
def test_what_the_script_says(stand: Stand, members: dict[str, str], message: str) -> None:
    job = a_job("true", **members)
    stand.executor.submit(job)
    status = ended(job)
    assert status.state is F and status.exit_code and message in (status.message or "")


def test_batch_script_killed_by_a_signal(stand: Stand) -> None:
    job = runs(stand, "sleep 30")
    stand.lab.kill(stand.lab.jobs()[0], 9)
    assert (ended(job).state, job.status.exit_code) == (F, 137)
    assert known(job)["signal"] == 9 and job.status.message == "ended by signal 9"


@pytest.mark.parametrize("script", ["sleep 30", "trap '' TERM; sleep 1"])
def test_cancel_running(stand: Stand, script: str) -> None:
    job = a_job(script)
    stand.executor.submit(job)
    job.wait(timedelta(seconds=60), A)
    job.cancel()
    assert ended(job).state is X
    assert stand.states(job) == [Q, A, X]
    job.cancel()


def test_without_accounting(quick: Stand) -> None:
    """E35: sacct says that it is off: it is asked once; queue, scontrol and exit file are enough."""
    quick.lab.set(accounting=False)
    jobs = [a_job("exit 0"), a_job("exit 5")]
    for job in jobs:
        quick.executor.submit(job)
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(C, 0), (F, 5)]
    assert len([call for call in quick.lab.calls("sacct") if "-D" in call]) == 1


@pytest.mark.parametrize(("release", "forget", "code", "message", "source"), [
    ("22.05.8", 300, 200, "exit code 200", "scontrol"),
    ("22.05.8", 0, 72, "exit code 72, or 200: sacct does not tell them apart", "sacct"),
    ("23.02.7", 0, 200, "exit code 200", "sacct-json"), ("25.05.2", 300, 200, "exit code 200", "sacct-json")])
def test_exit_code_of_a_foreign_job(quick: Stand, tmp_path: Path, release: str, forget: int, code: int, message: str,
                                    source: str) -> None:
    """There is no exit file, and the text of sacct takes 128 off: its JSON knows better from 23.02 on, scontrol while
    it knows the job."""
    first, job = a_job("exit 200"), Job()
    quick.executor.submit(first)
    assert ended(first).exit_code == 200
    assert not [call for call in quick.lab.calls("sacct") if "--json" in call]
    quick.lab.set(forget=forget, release=release)
    other = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path / "other", **FASTEST))
    other.attach(job, first.native_id or "")
    assert (ended(job).exit_code, job.status.message) == (code, message)
    assert (job.status.metadata or {})["sources"]["exit_code"] == source
    assert len([call for call in quick.lab.calls("sacct") if "--json" in call]) == 1


def test_killed_for_its_memory(stand: Stand) -> None:
    """Slurm says FAILED by signal 9; the script's output says why."""
    job = a_job("sleep 30")
    stand.executor.submit(job)
    assert job.wait(timedelta(seconds=60), A) is not None
    with open(stand.executor.work_directory / f"1.{job.id}.out", "a") as out:
        out.write("slurmstepd-node1: error: StepId=1.batch exceeded memory limit (1667829760 > 52428800), being "
                  "killed\n")
    stand.lab.kill(stand.lab.jobs()[0], 9)
    status = ended(job)
    metadata = status.metadata or {}
    assert (status.state, metadata["reason"], metadata["signal"]) == (F, "memory", 9)
    assert (status.message or "").startswith("out of memory")


def test_empty_table(quick: Stand) -> None:
    """E18: a header and no row is no evidence of an end."""
    job = runs(quick, "sleep 0.4")
    quick.lab.fault("squeue", times=3, stdout="JOBID|STATE|REASON|SUBMIT_TIME|START_TIME|END_TIME|CPUS|NODES|X|Y\n")
    quick.lab.fault("sacct", times=3, stdout="JobID|State\n")
    assert ended(job).state is C


# --- recorded outputs ----------------------------------------------------------------------------------------------
# Made on a lab of three nodes with this executor's forms of squeue -t all, sacct -D -P and scontrol -o show job.
# 180 burnt 1.5 s, 181 exit 3, 182 exit 139, 183 kill -9, 184 and 185 canceled, 186 limit, 187 two nodes, 188 held,
# 189 suspended a second, 190 held, 191 runs; 188, 190 and 191 were canceled before sacct was asked.

RECORDED = Path(__file__).parents[1] / "fixtures/slurm-22.05.8"


def summary(statuses: dict[str, JobStatus]) -> dict[str, tuple[JobState, int | None, str | None, int | None]]:
    return {key: (status.state, status.exit_code, (status.metadata or {}).get("reason"),
                  (status.metadata or {}).get("signal")) for key, status in statuses.items()}


def test_recorded_queue() -> None:
    executor = SlurmJobExecutor()
    running = executor.parse_status_output(0, (RECORDED / "squeue-running.txt").read_text())
    assert {key: (status.state, (status.metadata or {})["native_state"]) for key, status in running.items()} == {
        "180": (A, "RUNNING"), "181": (F, "FAILED"), "182": (F, "FAILED"), "183": (F, "FAILED"),
        "184": (X, "CANCELLED"), "185": (X, "CANCELLED"), "186": (A, "RUNNING"), "187": (C, "COMPLETED"),
        "188": (Q, "PENDING"), "189": (A, "SUSPENDED"), "190": (Q, "PENDING"), "191": (A, "RUNNING")}
    assert (running["188"].message, running["188"].time) == ("JobHeldUser", 1795280145)
    assert running["189"].time == 1795280146 and running["189"].metadata == {
        "native_state": "SUSPENDED", "phase": "SUSPENDED", "submit_time": 1795280145, "queue": "batch", "qos": "normal",
        "start_time": 1795280146, "nodes": ["node3"], "node_count": 1, "processors": 1}
    ended = executor.parse_status_output(0, (RECORDED / "squeue-ended.txt").read_text())
    assert summary(ended)["186"] == (F, None, "timeout", None)
    assert ended["187"].metadata == {
        "native_state": "COMPLETED", "submit_time": 1795280145, "queue": "batch", "qos": "normal",
        "start_time": 1795280146, "end_time": 1795280148, "nodes": ["node2", "node3"], "node_count": 2, "processors": 4}


def test_recorded_accounting() -> None:
    statuses = parse_sacct(0, (RECORDED / "sacct.psv").read_text())
    assert summary(statuses) == {
        "180": (C, 0, None, None), "181": (F, 3, None, None),
        "182": (F, 11, None, None),     # sacct takes 128 off; the exit file has 139
        "183": (F, 137, "signal", 9), "184": (X, None, None, None), "185": (X, None, None, None),
        "186": (F, None, "timeout", None), "187": (C, 0, None, None), "188": (X, None, None, None),
        "189": (C, 0, None, None), "190": (X, None, None, None), "191": (X, None, None, None)}
    assert statuses["180"].metadata == {
        "native_state": "COMPLETED", "submit_time": 1795280145, "queue": "batch", "start_time": 1795280146,
        "end_time": 1795280150, "wall_seconds": 4, "cpu_seconds": 1.617, "nodes": ["node1"], "node_count": 1,
        "processors": 1, "memory_max_bytes": 66236 << 10, "memory_average_bytes": 66236 << 10, "starts": 1}
    two, suspended, pending = (statuses[key].metadata or {} for key in ("187", "189", "185"))
    assert (two["gpus"], two["processors"], two["nodes"]) == (4, 4, ["node2", "node3"])
    assert (suspended["wall_seconds"], suspended["suspend_seconds"]) == (19, 1)
    assert pending == {"native_state": "CANCELLED by 0", "submit_time": 1795280145, "queue": "batch",
                       "end_time": 1795280147, "starts": 0}


def test_recorded_attempts() -> None:
    """11 was requeued by scontrol, 21 by the failure of its node: usage is of all runs, the end that of the last."""
    statuses = parse_sacct(0, (RECORDED / "sacct-requeued.psv").read_text())
    assert summary(statuses) == {"11": (C, 0, None, None), "21": (C, 0, None, None)}
    first, second = (statuses[key].metadata or {} for key in ("11", "21"))
    assert first["attempts"] == [
        {"native_state": "REQUEUED", "start_time": 1795282977, "end_time": 1795282980, "wall_seconds": 3,
         "exit_code": 0, "nodes": ["node1"]},
        {"native_state": "COMPLETED", "start_time": 1795282993, "end_time": 1795282999, "wall_seconds": 6,
         "exit_code": 0, "nodes": ["node3"]}]
    assert (first["starts"], first["wall_seconds"], first["cpu_seconds"], first["start_time"]) == (
        2, 9, 0.008, 1795282993)
    assert first["submit_time"] == 1795282977       # not that of the requeue
    assert [attempt["native_state"] for attempt in second["attempts"]] == ["NODE_FAIL", "COMPLETED"]


def test_recorded_details() -> None:
    text = (RECORDED / "scontrol.txt").read_text()
    statuses = parse_scontrol(0, text)
    assert summary(statuses) == {
        "180": (C, 0, None, None), "181": (F, 3, None, None), "182": (F, 139, None, None), "183": (F, 137, "signal", 9),
        "184": (X, None, None, None), "185": (X, None, None, None), "186": (F, 143, "timeout", 15),
        "187": (C, 0, None, None), "188": (Q, None, None, None), "189": (C, 0, None, None),
        "190": (Q, None, None, None), "191": (A, None, None, None)}
    assert (statuses["187"].metadata or {})["nodes"] == ["node2", "node3"]
    assert parse_scontrol(1, (RECORDED / "scontrol-unknown.stderr").read_text()) == {}
    assert parse_scontrol(1, "Job 8_4 not found\n") == {}           # an element of an array, as 22.05.8 says it
    with pytest.raises(RuntimeError):                               # no answer on a job
        parse_scontrol(127, "bash: scontrol: command not found\n")
    forged = text.replace("JobName=two", "JobName=x JobState=FAILED")
    assert "187" not in parse_scontrol(0, forged)
    for parse, none_readable in ((parse_scontrol, "JobID=187 JobStatus=RUNNING\n"),
                                 (parse_sacct, f"{'|'.join(ACCOUNTING)}\n187\n")):
        with pytest.raises(ValueError, match="tells of no job what is asked for"):      # that is silence, and no word
            parse(0, none_readable)


def test_answers_that_are_none() -> None:
    """E21, E50: no header, another header, a cut table."""
    whole = (RECORDED / "sacct.psv").read_text()
    for text in ("", "\n", "Job|State\n", "sacct: error: no\n"):
        with pytest.raises(ValueError):
            parse_sacct(0, text)
    with pytest.raises(SourceOffError):
        parse_sacct(1, "Slurm accounting storage is disabled")
    known = summary(parse_sacct(0, whole))
    for length in range(len(whole)):
        try:
            cut = summary(parse_sacct(0, whole[:length]))
        except ValueError:
            continue
        assert all(known[key] == value for key, value in cut.items())
    executor, table = SlurmJobExecutor(), (RECORDED / "squeue-ended.txt").read_text()
    complete = {key: str(status) for key, status in executor.parse_status_output(0, table).items()}
    for length in range(120, len(table)):
        if table[length - 1] != "\n":
            with pytest.raises(ValueError):
                executor.parse_status_output(0, table[:length])
            continue
        rows = {key: str(status) for key, status in executor.parse_status_output(0, table[:length]).items()}
        assert rows.items() <= complete.items()


@pytest.mark.parametrize("word", [*STATES, "CANCELLED by 1001", "COMPLETED+", "NEW_WORD", ""])
def test_every_state(word: str) -> None:
    """Each native state has its row; a state that a newer Slurm adds changes nothing."""
    status = SlurmJobExecutor()._status(word, "None|1|2|3|1|1|n1|q|normal")
    known = STATES.get(word.split(" ")[0].rstrip("+"))
    assert (status is None) == (known is None or known.stage is Stage.SILENT)
    assert status is None or known is None or status.state.name == {
        Stage.WAITING: "QUEUED", Stage.HELD: "QUEUED", Stage.AGAIN: "QUEUED", Stage.RUNNING: "ACTIVE",
        Stage.SUSPENDED: "ACTIVE", Stage.DONE: "COMPLETED"}.get(known.stage, known.stage.name)


# --- submitting ----------------------------------------------------------------------------------------------------

def test_interrupted(quick: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E15: Ctrl-C while sbatch runs: submitting the job again finds what was made."""
    run = quick.executor._run_submit

    def interrupted(command: list[str]) -> str:
        run(command)
        raise KeyboardInterrupt

    job = a_job("exit 3")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(quick.executor, "_run_submit", interrupted)
        quick.executor.submit(job)
    quick.executor.submit(job)
    assert len(quick.lab.jobs()) == 1 and ended(job).exit_code == 3


def test_work_directory_is_removed(stand: Stand, tmp_path: Path) -> None:
    """E40: jobs that run are settled by accounting, new ones get a new directory."""
    first, second = a_job(f"touch {tmp_path}/runs; sleep 1; exit 3"), a_job("exit 4")
    stand.executor.submit(first)
    while not (tmp_path / "runs").exists():
        time.sleep(0.05)
    shutil.rmtree(stand.executor.config.work_directory)
    assert ended(first).exit_code == 3 and (first.status.metadata or {})["sources"]["exit_code"] == "scontrol"
    stand.executor.submit(second)
    assert ended(second).exit_code == 4


def test_no_command(quick: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E08."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SubmitException, match="'sbatch' is not found") as raised:
        quick.executor.submit(a_job("true"))
    assert not raised.value.transient and quick.files() == []


# --- scripts -------------------------------------------------------------------------------------------------------

_AS_SAID = BatchSchedulerExecutorConfig(default_resources=False)


def directives(spec: JobSpec) -> dict[str, str | None]:
    job = Job(spec)
    return {one.option: one.value for one in SlurmJobExecutor(config=_AS_SAID)._directives(job, spec)
            if one.option not in ("comment", "open-mode", "export", "output")}


@pytest.mark.parametrize(("members", "expected"), [
    ({}, {"time": "00:10:00"}),
    ({"attributes": JobAttributes(timedelta(days=2, seconds=1.5), "q", "acc", "res")},
     {"partition": "q", "account": "acc", "reservation": "res", "time": "48:00:02"}),
    ({"attributes": JobAttributes(None, custom_attributes={
        "slurm.constraint": "a&b", "SLURM.nice": 5, "slurm.requeue": True, "slurm.x": None, "slurm.y": False,
        "pbs.z": 1})},
     {"constraint": "a&b", "nice": "5", "requeue": None}),
    ({"resources": ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=4,
                                  gpu_cores_per_process=1, exclusive_node_use=True, memory=4 << 30)},
     {"time": "00:10:00", "nodes": "2", "ntasks": "6", "ntasks-per-node": "3", "cpus-per-task": "4",
      "gpus-per-task": "1", "exclusive": None, "mem": "2097152K"}),
    ({"resources": ResourceSpecV1(process_count=3, cpu_cores_per_process=2, memory=6000)},
     {"time": "00:10:00", "ntasks": "3", "cpus-per-task": "2", "mem-per-cpu": "1K"}),
    ({"resources": ResourceSpecV1(process_count=8, processes_per_node=4, memory=0)},
     {"time": "00:10:00", "nodes": "2", "ntasks": "8", "ntasks-per-node": "4", "mem": "1K"}),
])
def test_directives(members: dict[str, object], expected: dict[str, str | None]) -> None:
    spec = JobSpec("/bin/true", name="n", **members)  # type: ignore[arg-type]
    assert directives(spec) == {"job-name": "n", **expected}


@pytest.mark.parametrize(("name", "value", "message"), [
    ("slurm.array", "1-3", "one job"), ("slurm.o", "x", "stdout_path"), ("slurm.wrap", "x", "a script already"),
    ("slurm.nice", {1}, "must be text, a number"), ("slurm.a b", "x", "is not the name of an option"),
    ("slurm.constraint", "a\n#SBATCH --nice=1", "line break"), ("slurm.-x", "1", "is not the name of an option")])
def test_custom_attributes_refused(quick: Stand, name: str, value: object, message: str) -> None:
    reason = refusal(quick, attributes=JobAttributes(custom_attributes={name: value}))
    assert message in reason and f"custom attribute {name!r}" in reason


def test_variables_of_sbatch_do_not_win(quick: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setenv("SBATCH_PARTITION", "elsewhere")
    command = quick.executor.get_submit_command(a_job("true"), Path("f"))
    assert command == ["env", "-u", "SBATCH_TIMELIMIT", "sbatch", "--parsable", "f"]


def test_locale_of_the_submitter_reaches_the_job(stand: Stand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    job = a_job("echo $LC_ALL", stdout_path=tmp_path / "o")
    stand.executor.submit(job)
    ended(job)
    assert (tmp_path / "o").read_text() == "C.UTF-8\n"


def test_keep_files(stand: Stand) -> None:
    stand.executor.config.keep_files = True
    job = a_job("echo to stdout; exit 1")
    stand.executor.submit(job)
    ended(job)
    assert stand.files() == sorted([f"{job.id}.job", *(
        f"{job.native_id}.{job.id}{suffix}" for suffix in (".ec", ".nodefile", ".out", ".start"))])
    assert os.stat(stand.executor.work_directory / f"{job.native_id}.{job.id}.ec").st_mode & 0o077 == 0


@pytest.mark.parametrize(("count", "named", "expected"), [
    ("2", "node[1-2]", ["node1", "node2"]), ("2", "node1", None), ("", "node1", ["node1"])])
def test_nodes_are_all_of_them_or_not_known(count: str, named: str, expected: list[str] | None) -> None:
    """For a moment after the end sacct names only some: what the queue has said counts then."""
    row = {"JobID": "7", "State": "COMPLETED", "ExitCode": "0:0", "Start": "5", "End": "9", "NNodes": count,
           "NodeList": named}
    lines = ["|".join(ACCOUNTING), "|".join(row.get(name, "") for name in ACCOUNTING)]
    found = parse_sacct(0, "\n".join(lines) + "\n")["7"].metadata or {}
    assert found.get("nodes") == expected


def test_a_value_without_quotes_is_judged_as_any_other() -> None:
    """An option that was asked for before gives the answer that it gives alone, whatever the values were."""
    options = ("comment", "mem", "signal", "array", "output", "wrap", "nodes", "x y", "o", "export", "hetjob")
    values = ("1", "B:USR1@60", "", "a\nb", "a b", None, "%j", "2")
    alone = {}
    for option in options:
        for value in values:
            lrm._taken.clear()
            alone[option, value] = SlurmJobExecutor().refusal_of(option, value)
    lrm._taken.clear()
    executor = SlurmJobExecutor()
    assert {asked: executor.refusal_of(*asked) for asked in alone} == alone
    assert {asked: executor.refusal_of(*asked) for asked in reversed(alone)} == alone
    assert None in alone.values() and len(set(alone.values())) > 5
