"""The Slurm executor on its stand-in: the whole way of a job, faults, and what is put into scripts."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobSpec,
    JobState,
    JobStatus,
    ResourceSpecV1,
    SubmitException,
)
from psij.executors.batch._slurm_records import ACCOUNTING, SlurmState, parse_sacct, parse_scontrol
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig, SourceOffError
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.fakes import slurm
from tests.psij.batch_support import FAST, VIRTUAL, Stand, a_job, ended, stand_in

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


@pytest.fixture
def stand(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, virtual=request.function.__name__ in VIRTUAL) as made:
        yield made


def test_whole_way(stand: Stand, tmp_path: Path) -> None:
    job = a_job("echo out; sleep 0.5", name="a \"b\" 'c'", stdout_path=tmp_path / "o")
    stand.executor.submit(job)
    assert stand.executor.list() == [job.native_id]
    assert stat.S_IMODE(stand.executor.work_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((stand.executor.work_directory / f"{job.id}.job").stat().st_mode) == 0o600
    status = ended(job)
    assert stand.states(job) == [Q, A, C]
    assert (tmp_path / "o").read_text() == "out\n"
    assert stand.lab.jobs()[0]["name"] == "a \"b\" 'c'"
    metadata = status.metadata or {}
    assert status.exit_code == 0 and metadata["sources"]["exit_code"] == "exit-file"
    assert metadata["native_state"] == "COMPLETED" and metadata["sources"]["native_state"] == "sacct"
    assert {key: metadata[key] for key in ("native_id", "nodes", "node_count", "processors", "cpu_seconds",
                                           "memory_max_bytes", "queue")} == {
        "native_id": job.native_id, "nodes": ["node1"], "node_count": 1, "processors": 1, "cpu_seconds": 1.5,
        "memory_max_bytes": 52424 << 10, "queue": "batch"}
    assert metadata["submit_time"] <= metadata["start_time"] <= metadata["end_time"] == status.time
    assert stand.files() == []


@pytest.mark.parametrize(("script", "code", "signal"), [("exit 3", 3, None), ("exit 200", 200, None),
                                                        ("kill -9 $$", 137, None)])
def test_failures(stand: Stand, script: str, code: int, signal: int | None) -> None:
    job = a_job(script)
    stand.executor.submit(job)
    status = ended(job)
    assert (status.state, status.exit_code, (status.metadata or {}).get("signal")) == (F, code, signal)
    assert stand.states(job) == [Q, A, F]


@pytest.mark.parametrize(("members", "message"), [
    ({"directory": "/nonexistent"}, "/nonexistent: No such file or directory"),
    ({"pre_launch": "/nonexistent/pre"}, "/nonexistent/pre: No such file or directory"),
    ({"stdout_path": "/nonexistent/o"}, "/nonexistent/o: No such file or directory")])
def test_what_the_script_says(stand: Stand, members: dict[str, str], message: str) -> None:
    job = a_job("true", **members)
    stand.executor.submit(job)
    status = ended(job)
    assert status.state is F and status.exit_code and message in (status.message or "")


def test_batch_script_killed_by_a_signal(stand: Stand) -> None:
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.kill(stand.lab.jobs()[0], 9)
    status = ended(job)
    assert (status.state, status.exit_code) == (F, 137)
    assert (status.metadata or {})["signal"] == 9 and status.message == "ended by signal 9"


@pytest.mark.parametrize("script", ["sleep 30", "trap '' TERM; sleep 1"])
def test_cancel_running(stand: Stand, script: str) -> None:
    job = a_job(script)
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    job.cancel()
    assert ended(job).state is X
    assert stand.states(job) == [Q, A, X]
    job.cancel()


def test_cancel_queued(stand: Stand) -> None:
    job = a_job("sleep 30", attributes=JobAttributes(custom_attributes={"slurm.hold": True}))
    stand.executor.submit(job)
    job.cancel()
    assert ended(job).state is X
    assert stand.states(job) == [Q, X]


def test_left_the_queue_at_once(stand: Stand) -> None:
    """E20: jobs gone from the queue before their end was seen get it from accounting."""
    stand.lab.set(forget=0)
    jobs = [a_job("exit 0"), a_job("exit 5")]
    for job in jobs:
        stand.executor.submit(job)
    assert [ended(job).state for job in jobs] == [C, F]
    assert (jobs[1].status.metadata or {})["sources"]["cpu_seconds"] == "sacct"


def test_without_accounting(stand: Stand) -> None:
    """E35: sacct says that it is off: it is asked once; queue, scontrol and exit file are enough."""
    stand.lab.set(accounting=False)
    jobs = [a_job("exit 0"), a_job("exit 5")]
    for job in jobs:
        stand.executor.submit(job)
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(C, 0), (F, 5)]
    assert len([call for call in stand.lab.calls("sacct") if "-D" in call]) == 1


@pytest.mark.parametrize(("release", "forget", "code", "message", "source"), [
    ("22.05.8", 300, 200, "exit code 200", "scontrol"),
    ("22.05.8", 0, 72, "exit code 72, or 200: sacct does not tell them apart", "sacct"),
    ("23.02.7", 0, 200, "exit code 200", "sacct-json"), ("25.05.2", 300, 200, "exit code 200", "sacct-json")])
def test_exit_code_of_a_foreign_job(stand: Stand, tmp_path: Path, release: str, forget: int, code: int, message: str,
                                    source: str) -> None:
    """There is no exit file, and the text of sacct takes 128 off: its JSON knows better from 23.02 on, scontrol while
    it knows the job."""
    first, job = a_job("exit 200"), Job()
    stand.executor.submit(first)
    assert ended(first).exit_code == 200
    assert not [call for call in stand.lab.calls("sacct") if "--json" in call]
    stand.lab.set(forget=forget, release=release)
    other = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path / "other", **FAST))
    other.attach(job, first.native_id or "")
    assert (ended(job).exit_code, job.status.message) == (code, message)
    assert (job.status.metadata or {})["sources"]["exit_code"] == source
    assert len([call for call in stand.lab.calls("sacct") if "--json" in call]) == 1


def test_killed_for_its_memory(stand: Stand) -> None:
    """Slurm says FAILED by signal 9; the script's output says why."""
    job = a_job("sleep 30")
    stand.executor.submit(job)
    assert job.wait(timedelta(seconds=5), A) is not None
    with open(stand.executor.work_directory / "1.out", "a") as out:
        out.write("slurmstepd-node1: error: StepId=1.batch exceeded memory limit (1667829760 > 52428800), being "
                  "killed\n")
    stand.lab.kill(stand.lab.jobs()[0], 9)
    status = ended(job)
    metadata = status.metadata or {}
    assert (status.state, metadata["reason"], metadata["signal"]) == (F, "memory", 9)
    assert (status.message or "").startswith("out of memory")


def test_no_accounting_and_gone(stand: Stand) -> None:
    stand.lab.set(accounting=False, forget=0)
    job = a_job("exit 5")
    stand.executor.submit(job)
    status = ended(job)
    assert (status.state, status.exit_code) == (F, 5)
    assert (status.metadata or {})["sources"]["exit_code"] == "exit-file"


def test_lost(stand: Stand) -> None:
    """E19: a job that is known nowhere is FAILED, reason lost, after a while and not before."""
    job = a_job("sleep 30")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.drop(job.native_id or "")
    began = time.monotonic()
    status = ended(job)
    assert (status.state, status.exit_code, (status.metadata or {})["reason"]) == (F, None, "lost")
    assert time.monotonic() - began > 0.75 * stand.executor.config.lost_after


@pytest.mark.parametrize("fault", [
    {"exit": 1, "stderr": "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"},  # E17
    {"stdout": ""},                                                                                          # E18
    {"stdout": "\x00\xff garbage\n|||\n"},
    {"sleep": 30, "stdout": "JOBID|"},                                                                       # E16
])
def test_queue_does_not_answer(stand: Stand, fault: dict[str, object], caplog: pytest.LogCaptureFixture) -> None:
    stand.executor.config.command_timeout = 0.2
    job = a_job("sleep 0.3; exit 4")
    stand.executor.submit(job)
    stand.lab.fault("squeue", times=-1, **fault)
    time.sleep(1.2)
    assert not job.status.final
    stand.executor.config.command_timeout = 5
    stand.lab.heal("squeue")
    assert ended(job).exit_code == 4
    assert len([record for record in caplog.records if "does not answer" in record.message]) == 1


def test_empty_table(stand: Stand) -> None:
    """E18: a header and no row is no evidence of an end."""
    job = a_job("sleep 2")
    stand.executor.submit(job)
    job.wait(timedelta(seconds=5), A)
    stand.lab.fault("squeue", times=3, stdout="JOBID|STATE|REASON|SUBMIT_TIME|START_TIME|END_TIME|CPUS|NODES|X|Y\n")
    stand.lab.fault("sacct", times=3, stdout="JobID|State\n")
    assert ended(job).state is C


def test_unknown_state_word(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    """E22: a job in a state that is not known keeps its own; others go on."""
    odd, plain = a_job("sleep 30"), a_job("exit 0")
    stand.executor.submit(odd)
    odd.wait(timedelta(seconds=5), A)
    stand.lab.update(1, state="TELEPORTING")
    stand.executor.submit(plain)
    assert ended(plain).state is C
    assert odd.status.state is A
    assert [record.message for record in caplog.records].count(
        "Slurm's job state 'TELEPORTING' is not known; jobs in it keep their last state") == 1


def test_cut_answer(stand: Stand) -> None:
    """E21: the last line of a cut answer is not used, the others are."""
    jobs = [a_job("sleep 0.5") for _ in range(2)]
    for job in jobs:
        stand.executor.submit(job)
    stand.lab.fault("squeue", times=2, after=True, cut=110)
    assert [ended(job).state for job in jobs] == [C, C]


def test_requeue(stand: Stand) -> None:
    """E26: a job that goes back to the queue stays ACTIVE."""
    job = a_job("sleep 2.5")
    stand.executor.submit(job)
    while (job.status.metadata or {}).get("native_state") != "RUNNING":
        time.sleep(0.05)
    stand.lab.update(1, state="PENDING")
    time.sleep(0.7)
    assert job.status.state is A and (job.status.metadata or {})["requeued"] is True
    stand.lab.update(1, state=None)
    assert ended(job).state is C and stand.states(job) == [Q, A, C]
    assert (job.status.metadata or {})["starts"] == 2


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
                       "end_time": 1795280147}


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
    forged = text.replace("JobName=two", "JobName=x JobState=FAILED")
    assert "187" not in parse_scontrol(0, forged)


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
        rows = {key: str(status) for key, status in executor.parse_status_output(0, table[:length]).items()}
        assert rows.items() <= complete.items()


@pytest.mark.parametrize("word", [*SlurmState.__members__, "CANCELLED by 1001", "COMPLETED+", "NEW_WORD", ""])
def test_every_state(word: str) -> None:
    """job-states, section 4: each native state has its row; a new one changes nothing."""
    status = SlurmJobExecutor()._status(word, "None|1|2|3|1|1|n1|q|normal")
    known = SlurmState.__members__.get(word.split(" ")[0].rstrip("+"))
    assert (status.state if status else None) is (known.state if known else None)


# --- submitting ----------------------------------------------------------------------------------------------------

def native_jobs(stand: Stand) -> int:
    return len(stand.lab.jobs())


def test_refused(stand: Stand) -> None:
    """E07: refused for good: the text of sbatch, nothing left, and the job may be submitted again."""
    job = a_job("true", attributes=JobAttributes(queue_name="nosuch"))
    with pytest.raises(SubmitException, match="Invalid partition name") as raised:
        stand.executor.submit(job)
    assert not raised.value.transient
    assert stand.files() == [] and job.status.state is JobState.NEW and job.executor is None
    assert job.spec is not None and job.spec.attributes is not None
    job.spec.attributes.queue_name = None
    stand.executor.submit(job)
    assert ended(job).state is C


@pytest.mark.parametrize(("text", "transient"), [
    ("sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, ...)", True),
    ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", True),
    ("sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified", False)])
def test_transient(stand: Stand, text: str, transient: bool) -> None:
    stand.lab.fault("sbatch", exit=1, stderr=text)
    with pytest.raises(SubmitException) as raised:
        stand.executor.submit(a_job("true"))
    assert raised.value.transient is transient and raised.value.message == text
    assert stand.files() == [] and native_jobs(stand) == 0


@pytest.mark.parametrize("fault", [
    {"sleep": 30},                                                                                  # E02
    {"stdout": "", "exit": 0},                                                                      # E04
    {"stdout": "sbatch: warning: no id today\n", "exit": 0},                                        # E03
    {"stderr": "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", "exit": 1}])
def test_made_but_not_told(stand: Stand, fault: dict[str, object]) -> None:
    """E02, E03, E04, E06: the job exists, its id did not come: it is found by its tag, and there is one."""
    stand.executor.config.command_timeout = 1
    stand.lab.fault("sbatch", after=True, **fault)
    job = a_job("exit 3")
    stand.executor.submit(job)
    assert job.native_id == "1" and native_jobs(stand) == 1
    assert ended(job).exit_code == 3


def test_not_made_and_not_told(stand: Stand) -> None:
    """E01: no job was made: after the search submit says so, and trying again is right."""
    stand.lab.fault("sbatch", stdout="hm\n")
    job = a_job("true")
    with pytest.raises(SubmitException, match="not submitted") as raised:
        stand.executor.submit(job)
    assert raised.value.transient and stand.files() == []
    stand.executor.submit(job)
    assert ended(job).state is C and native_jobs(stand) == 1


def test_nobody_knows(stand: Stand) -> None:
    """The manager is silent after a submission without answer: the next submit of this job begins with the search.

    The job is held, or its own record that it started would tell.
    """
    stand.lab.fault("sbatch", after=True, stdout="hm\n")
    stand.lab.fault("squeue", times=-1, exit=1)
    stand.lab.fault("sacct", times=-1, exit=1)
    job = a_job("exit 0", attributes=JobAttributes(custom_attributes={"slurm.hold": True}))
    with pytest.raises(SubmitException, match="Nobody knows") as raised:
        stand.executor.submit(job)
    assert raised.value.transient and job.status.state is JobState.NEW
    stand.lab.heal("squeue")
    stand.lab.heal("sacct")
    stand.executor.submit(job)
    assert native_jobs(stand) == 1 and len(stand.lab.calls("sbatch")) == 1
    stand.lab.update(1, held=False)
    assert ended(job).state is C


def test_its_own_record_tells(stand: Stand) -> None:
    """Nobody answers, but the job has started and says which it is: it is followed, not submitted again."""
    stand.lab.fault("sbatch", after=True, stdout="hm\n")
    stand.lab.fault("squeue", times=-1, exit=1)
    stand.lab.fault("sacct", times=-1, exit=1)
    job = a_job("exit 3", attributes=JobAttributes(custom_attributes={"slurm.hold": True}))
    with pytest.raises(SubmitException, match="Nobody knows"):
        stand.executor.submit(job)
    stand.lab.update(1, held=False)
    end = time.monotonic() + 15
    while "1.start" not in stand.files():
        assert time.monotonic() < end
        stand.lab.tick()
        time.sleep(0.02)
    stand.executor.submit(job)
    assert job.native_id == "1" and native_jobs(stand) == 1 and len(stand.lab.calls("sbatch")) == 1
    stand.lab.heal("squeue")
    stand.lab.heal("sacct")
    assert ended(job).exit_code == 3


def test_interrupted(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E15: Ctrl-C while sbatch runs: submitting the job again finds what was made."""
    run = stand.executor._run_submit

    def interrupted(command: list[str]) -> str:
        run(command)
        raise KeyboardInterrupt

    job = a_job("exit 3")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(stand.executor, "_run_submit", interrupted)
        stand.executor.submit(job)
    stand.executor.submit(job)
    assert native_jobs(stand) == 1 and ended(job).exit_code == 3


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


def test_no_command(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E08."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SubmitException, match="'sbatch' is not found") as raised:
        stand.executor.submit(a_job("true"))
    assert not raised.value.transient and stand.files() == []


def test_cluster_in_the_answer() -> None:
    """E05."""
    executor = SlurmJobExecutor()
    assert executor.job_id_from_submit_output("welcome\n12;north\n") == "12"
    for text in ("", "12 13", "Submitted batch job 7", "12\n13\n", "-1"):
        with pytest.raises(ValueError):
            executor.job_id_from_submit_output(text)


# --- attaching -----------------------------------------------------------------------------------------------------

def test_attach(stand: Stand) -> None:
    first = a_job("sleep 0.7; exit 6")
    stand.executor.submit(first)
    other = SlurmJobExecutor(config=stand.executor.config)
    job = Job()
    other.attach(job, first.native_id or "")
    assert (ended(job).exit_code, ended(first).exit_code) == (6, 6)
    assert job.native_id == first.native_id


def test_attach_to_an_ended_job(stand: Stand) -> None:
    first = a_job("exit 6")
    stand.executor.submit(first)
    ended(first)
    stand.lab.set(forget=0)
    job = Job()
    stand.executor.attach(job, first.native_id or "")
    assert ended(job).exit_code == 6


@pytest.mark.parametrize("native_id", ["999", "-u mary", "all", "", "1;2", "../1", "1\n2"])
def test_attach_to_nothing(stand: Stand, native_id: str) -> None:
    """E34, T18."""
    job = Job()
    stand.executor.attach(job, native_id)
    status = ended(job)
    assert (status.state, (status.metadata or {})["reason"]) == (F, "lost")


# --- scripts -------------------------------------------------------------------------------------------------------

def directives(spec: JobSpec) -> dict[str, str | None]:
    job = Job(spec)
    return {one.option: one.value for one in SlurmJobExecutor()._directives(job, spec)
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
    ("slurm.nice", [1], "must be text, a number"), ("slurm.a b", "x", "is not the name of an option"),
    ("slurm.constraint", "a\n#SBATCH --nice=1", "line break"), ("slurm.-x", "1", "is not the name of an option")])
def test_custom_attributes_refused(stand: Stand, name: str, value: object, message: str) -> None:
    with pytest.raises(InvalidJobException, match=message) as raised:
        stand.executor.submit(a_job("true", attributes=JobAttributes(custom_attributes={name: value})))
    assert f"custom attribute {name!r}" in raised.value.message
    assert stand.files() == [] and native_jobs(stand) == 0


def test_variables_of_sbatch_do_not_win(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setenv("SBATCH_PARTITION", "elsewhere")
    command = stand.executor.get_submit_command(a_job("true"), Path("f"))
    assert command == ["env", "-u", "SBATCH_TIMELIMIT", "sbatch", "--parsable", "f"]


def test_node_file(stand: Stand, tmp_path: Path) -> None:
    job = a_job('cat "$PSIJ_NODEFILE"', stdout_path=tmp_path / "o",
                resources=ResourceSpecV1(node_count=2, processes_per_node=2))
    stand.executor.submit(job)
    ended(job)
    assert (tmp_path / "o").read_text() == "node1\nnode1\nnode2\nnode2\n"


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
        f"{job.native_id}{suffix}" for suffix in (".ec", ".nodefile", ".out", ".start"))])
    assert os.stat(stand.executor.work_directory / f"{job.native_id}.ec").st_mode & 0o077 == 0


@pytest.mark.parametrize(("count", "named", "expected"), [
    ("2", "node[1-2]", ["node1", "node2"]), ("2", "node1", None), ("", "node1", ["node1"])])
def test_nodes_are_all_of_them_or_not_known(count: str, named: str, expected: list[str] | None) -> None:
    """For a moment after the end sacct names only some: what the queue has said counts then."""
    row = {"JobID": "7", "State": "COMPLETED", "ExitCode": "0:0", "Start": "5", "End": "9", "NNodes": count,
           "NodeList": named}
    lines = ["|".join(ACCOUNTING), "|".join(row.get(name, "") for name in ACCOUNTING)]
    found = parse_sacct(0, "\n".join(lines) + "\n")["7"].metadata or {}
    assert found.get("nodes") == expected
