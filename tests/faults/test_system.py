"""E38 to E48: disks, descriptors, processes, memory, several clients, forks."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobState, SubmitException
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.errors import AccessError
from sssjob.findings import Policy
from sssjob.run.client import Client
from sssjob.run.journal import Entry, open_journal
from sssjob.xml.reader import read_document
from tests.cli.test_journal import Site, shell
from tests.fakes import slurm
from tests.fakes.lab import install
from tests.faults.conftest import bare
from tests.faults.test_status import EVER, asked, rest
from tests.psij.batch_support import FASTEST, Stand, a_job, ended, runs

A, C, F = (JobState[name] for name in ("ACTIVE", "COMPLETED", "FAILED"))
no_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


@pytest.fixture
def client(stand: Stand, tmp_path: Path) -> Iterator[Client]:
    """A client of a journal of its own, on the stand-in."""
    config = BatchSchedulerExecutorConfig(work_directory=tmp_path / "w", **FASTEST)
    with open_journal(tmp_path / "j.db") as journal:
        yield Client(journal, config=config)


def submit(client: Client, script: str = "sleep 0.1; exit 3") -> Any:
    return client.submit(read_document(shell(script).encode()), "slurm", policy=Policy.IGNORE)


# --- disks

class FullDisk:
    """A connection to the journal whose commits fail, but the first so many; what was not committed is undone.

    ballast: a file without which there is room again.
    """

    def __init__(self, connection: sqlite3.Connection, after: int, said: str, ballast: Path | None = None) -> None:
        self.connection, self.left, self.said, self.ballast = connection, after, said, ballast

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            self.left -= 1
            if self.left < 0 and (self.ballast is None or self.ballast.exists()):
                self.connection.execute("ROLLBACK")
                raise sqlite3.OperationalError(self.said)
        return self.connection.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


@pytest.mark.parametrize("said", ["database or disk is full", "disk I/O error"])
@pytest.mark.parametrize("after", [0, 1])
def test_intents_that_cannot_be_written(client: Client, stand: Stand, said: str, after: int) -> None:
    """E38, E39: nothing is submitted of which the journal does not know; what was not written counts as that."""
    whole = client.journal._connection
    client.journal._connection = FullDisk(whole, after, said)  # type: ignore[assignment]
    with suppress(AccessError):         # told so, or the job failed before it was submitted
        submit(client)
    assert asked(stand, "sbatch") == 0
    client.journal._connection = whole
    assert [row.native_id for row in client.journal.rows()] == [None] * after
    assert client.journal.path.with_name("j.db.reserve").exists()       # it is for what has happened already


def test_native_ids_that_cannot_be_written(client: Client, stand: Stand) -> None:
    """E38: it is told, and whoever comes next finds the job by its tag."""
    whole = client.journal._connection
    client.journal._connection = FullDisk(whole, 2, "database or disk is full")  # type: ignore[assignment]
    submit(client)
    assert asked(stand, "sbatch") == 1
    assert any("disk is full" in one.message for one in client.findings)
    client.journal._connection = whole
    assert [row.native_id for row in client.journal.rows()] == [None]
    jobs, done = Client(client.journal, config=client.config).wait(["a"], 20)
    assert done and jobs[0].row.exit_code == 3 and len(stand.lab.jobs()) == 1


def test_the_reserve_is_for_native_ids(client: Client, stand: Stand) -> None:
    """E38: room that a full disk is given back when there is a native id to be written."""
    whole, reserve = client.journal._connection, client.journal.path.with_name("j.db.reserve")
    client.journal._connection = FullDisk(whole, 2, "database or disk is full", reserve)  # type: ignore[assignment]
    submit(client)
    assert [row.native_id for row in client.journal.rows()] == ["1"] and not reserve.exists()
    assert [one.message for one in client.findings if one.subject == "journal"] == [
        f"{client.journal.path}: the disk is full; what had been kept free for that is used"]
    client.journal._connection = whole
    client.journal.have_reserve()
    assert reserve.stat().st_size == 1 << 18 <= reserve.stat().st_blocks * 512


@no_strace
@pytest.mark.parametrize("inject", ["fsync,fdatasync:error=EIO", "pwrite64:error=ENOSPC"])
def test_a_disk_that_fails(tmp_path: Path, inject: str) -> None:
    """E38, E39: by the system itself."""
    site = Site("slurm", tmp_path)
    site.submit(shell("true", name="before"))
    (tmp_path / "job.xml").write_text(shell("true"))
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"trace={inject.partition(':')[0]}", "-e",
                           f"inject={inject}", sys.executable, "-m", "sssjob", "submit", "job.xml", "--executor",
                           "slurm", "-q", "--policy", "ignore"],
                          cwd=tmp_path, env=site.environment, capture_output=True, text=True, timeout=60, check=False)
    if "PTRACE" in done.stderr:
        pytest.skip(f"strace cannot be used here: {done.stderr.strip()}")
    assert (done.returncode, done.stdout, "the journal cannot be used" in done.stderr) == (3, "", True), done
    assert site.lab is not None and len(site.lab.calls("sbatch")) == 1
    site.lab.close()


@pytest.mark.parametrize(("number", "transient"), [(errno.ENOSPC, False), (errno.EROFS, False), (errno.ESTALE, True)])
def test_scripts_that_cannot_be_written(stand: Stand, monkeypatch: pytest.MonkeyPatch, number: int,
                                        transient: bool) -> None:
    """E38, E42: an error for that job, which says why; no command was run."""
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), "x.job")

    job = runs(stand)
    with monkeypatch.context() as patch:
        patch.setattr(type(stand.executor.host), "write", fail)
        with pytest.raises(SubmitException, match=os.strerror(number)) as raised:
            stand.executor.submit(a_job("true"))
    assert raised.value.transient is transient and asked(stand, "sbatch") == 1
    stand.lab.end("1", 3)
    assert ended(job).exit_code == 3


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EROFS])
def test_records_that_cannot_be_read(stand: Stand, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """E42: they are no evidence, and accounting has it."""
    job, true = runs(stand), os.open

    def fail(path: Any, *more: Any, **most: Any) -> int:
        if str(path).endswith((".ec", ".start")):
            raise OSError(number, os.strerror(number), path)
        return true(path, *more, **most)

    monkeypatch.setattr(os, "open", fail)
    stand.lab.end("1", 3)
    assert (ended(job).exit_code, (job.status.metadata or {})["sources"]["exit_code"]) == (3, "scontrol")


def test_the_work_directory_is_removed(stand: Stand) -> None:
    """E40: made again for new jobs; what runs is settled by accounting."""
    first = runs(stand)
    shutil.rmtree(stand.executor.config.work_directory)
    stand.lab.end("1", 3)
    assert ended(first).exit_code == 3
    second = a_job("exit 4")
    stand.executor.submit(second)
    assert ended(second).exit_code == 4
    assert stand.executor.work_directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("late", [0.5, 600])
def test_exit_files_that_come_late(stand: Stand, late: float) -> None:
    """E41: waited for, up to a limit."""
    stand.executor.config.lost_after = 1.5
    stand.lab.set(late=late, accounting=False)
    job = runs(stand)
    stand.lab.set(forget=0)
    stand.lab.end("1", 3)
    status = ended(job)
    assert (status.exit_code, (status.metadata or {}).get("reason")) == ((3, None) if late < 1 else (None, "lost"))


# --- descriptors, processes, memory

def test_out_of_descriptors(stand: Stand) -> None:
    """E43: a submission is refused for now; questions fail, and go on when there are some again."""
    job = runs(stand)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1, before[1]))
        with pytest.raises(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(SubmitException, match="Too many open files") as raised:
            stand.executor.submit(a_job("true"))
        rest(0.3)
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert raised.value.transient and job.status.state is A
    stand.lab.end("1", 3)
    assert ended(job).exit_code == 3


def test_no_descriptor_stays_open(stand: Stand) -> None:
    """E43: nor a thread, nor anything that is kept for a job."""
    def had() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(stand.executor._staging.staged) + len(
            stand.executor._submissions.unanswered)

    before = (0, 0)
    for again in range(2):
        jobs = [a_job("exit 0") for _ in range(20)]
        for job in jobs:
            stand.executor.submit(job)
        assert [ended(job).state for job in jobs] == [C] * 20
        before = before if again else had()
    until = time.monotonic() + 60
    while had()[0] > before[0] + 1 and time.monotonic() < until:
        time.sleep(0.05)
    assert had()[0] <= before[0] + 1 and had()[1] == before[1]


@pytest.mark.parametrize(("number", "transient"), [(errno.EAGAIN, True), (errno.ENOMEM, True), (errno.EACCES, False)])
def test_out_of_processes(stand: Stand, monkeypatch: pytest.MonkeyPatch, number: int, transient: bool) -> None:
    """E44: as long as none can be made nothing is known, and nothing is said."""
    job = runs(stand)

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr("psij.executors.batch._host.run", fail)
        with pytest.raises(SubmitException, match=os.strerror(number)) as raised:
            stand.executor.submit(a_job("true"))
        rest(0.3)
    assert raised.value.transient is transient and job.status.state is A
    stand.lab.end("1", 3)
    assert ended(job).exit_code == 3


def test_answers_without_end(stand: Stand) -> None:
    """E45: rejected at a limit; states are kept."""
    assert stand.inside is not None
    job = runs(stand)
    stand.inside.limit = 100_000
    stand.lab.fault("squeue", **EVER, flood=200_000, edit=[["RUNNING", "FAILED"]])
    stand.lab.fault("sacct", **EVER, flood=200_000)
    rest(0.4)
    assert job.status.state is A
    stand.lab.heal("squeue")
    stand.lab.heal("sacct")
    stand.lab.end("1", 3)
    assert ended(job).exit_code == 3


# --- several clients

def test_two_in_one_work_directory(stand: Stand, tmp_path: Path) -> None:
    """E46: each sees the other's jobs, and touches none."""
    other = SlurmJobExecutor(config=stand.executor.config)
    first, second = runs(stand), a_job("sleep 600")
    other.submit(second)
    assert stand.executor.list() == other.list() == ["1", "2"]
    stand.lab.end("1", 3)
    assert ended(first).exit_code == 3
    assert second.wait(timedelta(seconds=60), A) is not None
    assert {name.partition(".")[0] for name in stand.files()} == {"2", second.id}
    stand.lab.end("2", 4)
    assert ended(second).exit_code == 4 and stand.files() == []


def test_two_attached_to_one_job(stand: Stand) -> None:
    """E47: both get the end, though nothing but the exit file tells it."""
    stand.lab.set(accounting=False)
    first = runs(stand)
    others = [Job(), Job()]
    second = SlurmJobExecutor(config=stand.executor.config)
    for job in others:
        second.attach(job, "1")
        assert job.wait(timedelta(seconds=60), A) is not None
    stand.lab.set(forget=0)
    stand.lab.end("1", 9)
    assert [ended(job).exit_code for job in (first, *others)] == [9, 9, 9]


def test_one_job_attached_to_twice(stand: Stand) -> None:
    """E47: by Jobs of the same id, as a client makes them that looks several times (random plan 113)."""
    first = runs(stand)
    twins = [Job(), Job()]
    for job in twins:
        job._id = first.id
        stand.executor.attach(job, "1")
    stand.lab.end("1", 3)
    assert [ended(job, 5).exit_code for job in (first, *twins)] == [3, 3, 3]


FORKS = """
import os, sys, warnings
warnings.simplefilter("ignore")
from datetime import timedelta
from psij import Job, JobSpec, JobState
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(
    work_directory=sys.argv[1], queue_polling_interval=0.2, initial_queue_polling_delay=0.1, accounting_delay=0.5))

def run(code):
    job = Job(JobSpec("/bin/sh", ["-c", f"sleep 0.3; exit {code}"]))
    executor.submit(job)
    return job

first = run(3)
first.wait(timedelta(seconds=10), JobState.ACTIVE)
child = os.fork()
if child == 0:
    status = run(4).wait(timedelta(seconds=20))
    os._exit(status.exit_code if status else 99)
print(first.wait(timedelta(seconds=20)).exit_code, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_fork_while_jobs_are_followed(tmp_path: Path) -> None:
    """E48: the child begins anew, the parent goes on."""
    install(str(slurm.__file__), slurm.COMMANDS, tmp_path / "lab", tmp_path / "bin").set(virtual=True)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", FORKS, tmp_path / "work"], timeout=60, check=False, text=True,
                          env=bare(tmp_path), capture_output=True)
    assert (done.stdout, done.stderr) == ("3 4\n", "") and time.monotonic() - began < 30


def test_flush_is_all_or_nothing(client: Client, stand: Stand) -> None:
    """E39: what could not be written is written anew, as a whole, and not taken for written."""
    submission = submit(client, "sleep 600")
    entry: Entry = submission.entry
    whole = client.journal._connection
    client.journal._connection = FullDisk(whole, 0, "disk I/O error")  # type: ignore[assignment]
    submission.note(submission.jobs[0], "note", {"text": "hm"})
    with pytest.raises(AccessError):
        entry.flush()
    client.journal._connection = whole
    assert "hm" not in str(entry.events())
    entry.flush()
    assert str(entry.events()).count("hm") == 1
