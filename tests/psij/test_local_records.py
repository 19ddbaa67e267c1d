"""Records of local jobs: they outlive the process that submitted, and bar what was never started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

import psij
from psij.executors import _local_records as records
from psij.executors.local import LocalJobExecutor
from tests.gate import until_there

CLIENT = """
import sys, time, psij
from pathlib import Path
executor = psij.JobExecutor.get_instance("local")
executor.records = Path(sys.argv[1])
job = psij.Job(psij.JobSpec("/bin/sh", ["-c", sys.argv[2]],
                            attributes=psij.JobAttributes(__import__("datetime").timedelta(seconds=float(sys.argv[3])))))
executor.submit(job)
print(job.id, flush=True)
time.sleep(60)
"""


def killed_client(folder: Path, script: str, limit_s: float = 60) -> str:
    """The id of a job whose client was killed as soon as it had submitted it."""
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(folder), script, str(limit_s)], stdout=subprocess.PIPE,
                              text=True)
    assert client.stdout is not None
    job_id = client.stdout.readline().strip()
    client.kill()
    client.communicate()
    return job_id


def executor(folder: Path) -> LocalJobExecutor:
    executor = LocalJobExecutor()
    executor.records = folder
    return executor


def adopted(folder: Path, job_id: str) -> psij.JobStatus:
    """The end of a job that another process has started."""
    mine = executor(folder)
    reference = mine.native_id_of(job_id)
    assert reference is not None
    job = psij.Job()
    job._id = job_id
    mine.attach(job, reference)
    status = job.wait(timedelta(seconds=20))
    assert status is not None
    return status


@pytest.mark.parametrize(("script", "state", "code", "signalled"), [
    ("exit 3", "FAILED", 3, None), ("true", "COMPLETED", 0, None), ("kill -9 $$", "FAILED", 137, 9),
    ("sleep 2; exit 200", "FAILED", 200, None),
])
@pytest.mark.parametrize("pause", [0.0, 1.0])
def test_the_end_is_known_although_the_client_is_gone(tmp_path: Path, script: str, state: str, code: int,
                                                      signalled: int | None, pause: float) -> None:
    job_id = killed_client(tmp_path, script)
    time.sleep(pause)
    status = adopted(tmp_path, job_id)
    metadata = status.metadata or {}
    assert (status.state.name, status.exit_code, metadata.get("signal")) == (state, code, signalled)
    assert metadata["wall_seconds"] >= (2 if "sleep" in script else 0) and "cpu_seconds" in metadata
    assert metadata["sources"]["exit_code"] == "measured"


def test_the_time_limit_still_holds(tmp_path: Path) -> None:
    status = adopted(tmp_path, killed_client(tmp_path, "sleep 60", 2))
    assert (status.metadata or {})["reason"] == "timeout"


def test_what_was_not_started_never_will_be(tmp_path: Path) -> None:
    mine = executor(tmp_path)
    job = psij.Job(psij.JobSpec("/bin/sh", ["-c", f"echo ran > {tmp_path}/ran"]))
    assert mine.native_id_of(job.id) is None and mine.native_id_of(job.id) is None
    mine.submit(job)
    status = job.wait(timedelta(seconds=20))
    assert status is not None and (status.state.name, (status.metadata or {})["reason"]) == ("FAILED", "launch")
    assert not (tmp_path / "ran").exists()


def test_without_records_nothing_is_known() -> None:
    with pytest.raises(psij.SubmitException, match="keeps no records"):
        LocalJobExecutor().native_id_of("x")


def test_a_job_that_cannot_be_started_leaves_no_record(tmp_path: Path) -> None:
    mine = executor(tmp_path)
    job = psij.Job(psij.JobSpec("/nonexistent"))
    mine.submit(job)
    assert job.status.state is psij.JobState.FAILED and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "record"), [
    ("", records.Record()), ("{", records.Record()), ('{"a": 1}\n', records.Record({"a": 1})),
    ('{"a": 1}\n12 3', records.Record({"a": 1})), ('{"a": 1}\n12 34 5.5\n', records.Record({"a": 1}, 12, 34)),
    ('{"a": 1}\n12 34 5.5\n256 0.5 900 7', records.Record({"a": 1}, 12, 34)),
    ('{"a": 1}\n12 34 5.5\n256 0.5 900 7.5\n', records.Record({"a": 1}, 12, 34, 256, 0.5, 900, 2.0)),
    ('{"a": 1}\n12 34 7.5\n256 0.5 900 5.5\n', records.Record({"a": 1}, 12, 34, 256, 0.5, 900, 0.0)),
    ("garbage\nmore garbage\n", records.Record()), ('{"a": 1}\nx y z\n', records.Record()),
])
def test_records_that_are_cut_or_damaged(tmp_path: Path, text: str, record: records.Record) -> None:
    (tmp_path / "r").write_text(text)
    read = records.read(tmp_path / "r")
    assert read is not None
    assert [getattr(read, f) for f in ("head", "pid", "start", "wait_status", "cpu_s", "peak", "wall_s")] == [
        getattr(record, f) for f in ("head", "pid", "start", "wait_status", "cpu_s", "peak", "wall_s")]
    assert records.read(tmp_path / "none") is None


def test_a_starter_that_is_killed_too(tmp_path: Path) -> None:
    """Then nobody knows how the job ended, and nobody says he does."""
    job_id = killed_client(tmp_path, f"{until_there(tmp_path / 'go')}; exit 3")
    record = records.read(tmp_path / job_id)
    assert record is not None
    with open(f"/proc/{record.pid}/stat") as stat:
        starter = int(stat.read().rpartition(")")[2].split()[1])
    os.kill(starter, signal.SIGKILL)
    (tmp_path / "go").touch()
    status = adopted(tmp_path, job_id)
    assert (status.state.name, status.exit_code, (status.metadata or {})["reason"]) == ("FAILED", None, "unknown-exit")
