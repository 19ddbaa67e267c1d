"""Many local jobs at once: the next starts are asked for before the last is answered, and nothing else differs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import (
    InvalidJobException,
    InvalidStateException,
    Job,
    JobAttributes,
    JobExecutorConfig,
    JobSpec,
    JobState,
    ResourceSpecV1,
    StageIn,
    SubmitException,
)
from psij.executors import LocalJobExecutor, _local_starter
from psij.executors._local_records import read
from tests.psij.local_support import starters_killed

SOON = timedelta(seconds=60)


@pytest.fixture
def executor(tmp_path: Path) -> LocalJobExecutor:
    return LocalJobExecutor(config=JobExecutorConfig(work_directory=tmp_path / "work"))


def make(script: str, folder: Path, **members: Any) -> Job:
    return Job(JobSpec("/bin/sh", ["-c", script], folder, **members))


def jobs_in(folder: Path) -> list[Job]:
    """Jobs of every kind, good ones between those that cannot be."""
    folder.mkdir()
    (folder / "plain").write_text("exit 5\n")
    (folder / "plain").chmod(0o700)
    (folder / "from").write_text("staged\n")
    taken = make("true", folder)
    LocalJobExecutor().submit(taken)
    taken.wait(SOON)
    parts = ResourceSpecV1(process_count=2)
    return [
        make("echo one > a", folder), make("exit 3", folder), Job(JobSpec("/no/such", directory=folder)),
        Job(JobSpec("no-such-program", stdout_path=folder / "never")), make("true", folder / "none"),
        Job(JobSpec(str(folder / "plain"))), make("true", folder, stdin_path=folder / "none"), taken,
        make("kill -9 $$", folder), make("true", folder, attributes=JobAttributes(custom_attributes={"local.x": 1})),
        make("ulimit -n; exit 4", folder, stdout_path=folder / "limit", attributes=JobAttributes(custom_attributes={
            "local.rlimit.nofile": 64})),
        make("echo $1 >> both", folder, launcher="multiple", resources=parts),
        make("cat to; exit 6", folder, stdout_path=folder / "staged",
             stage_in={StageIn(str(folder / "from"), folder / "to")}),
        make("x" * 140_000, folder), make("echo two", folder, stdout_path=folder / "b"),
        make("sleep 60", folder, attributes=JobAttributes(timedelta(seconds=1))),
    ]


def one_by_one(executor: LocalJobExecutor, jobs: list[Job]) -> Iterator[tuple[Job, Exception | None]]:
    for job in jobs:
        try:
            executor.submit(job)
        except Exception as error:
            yield job, error
        else:
            yield job, None


def all_at_once(executor: LocalJobExecutor, jobs: list[Job]) -> list[tuple[Job, Exception | None]]:
    told: list[tuple[Job, Exception | None]] = []
    executor.submit_all(iter(jobs), lambda job, error: told.append((job, error)))
    return told


def outcomes(folder: Path, submitted: Callable[[list[Job]], list[tuple[Job, Exception | None]]]) -> list[object]:
    """What became of each job, and all files."""
    jobs = jobs_in(folder)
    told = dict(submitted(jobs))
    assert len(told) == len(jobs)
    made: list[object] = []
    for job in jobs:
        error = told[job]
        if error is not None:
            made.append((type(error), str(error).replace(job.id, "ID").replace(str(folder), ""), job.status.state))
            continue
        status = job.wait(SOON)
        assert status is not None
        metadata = status.metadata or {}
        made.append((status.state, status.exit_code, (status.message or "").replace(str(folder), ""),
                     metadata.get("reason"), metadata.get("signal"), sorted(metadata)))
    return [*made, {path.name: path.read_text() for path in sorted(folder.iterdir())}]


def test_they_end_as_those_that_are_submitted_one_by_one(executor: LocalJobExecutor, tmp_path: Path) -> None:
    alone = outcomes(tmp_path / "one", lambda jobs: list(one_by_one(executor, jobs)))
    together = outcomes(tmp_path / "all", lambda jobs: all_at_once(executor, jobs))
    assert together == alone
    kinds = {entry[0] for entry in alone if isinstance(entry, tuple)}
    assert kinds == {JobState.COMPLETED, JobState.FAILED, InvalidJobException, InvalidStateException}
    assert executor.list() == []


def test_what_any_executor_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: LocalJobExecutor) -> None:
    """The one of the base, for executors that have nothing better."""
    from psij import JobExecutor

    monkeypatch.setattr(LocalJobExecutor, "_submit_all", JobExecutor._submit_all)
    alone = outcomes(tmp_path / "one", lambda jobs: list(one_by_one(executor, jobs)))
    assert outcomes(tmp_path / "all", lambda jobs: all_at_once(executor, jobs)) == alone


def test_what_could_not_be_submitted_is_raised_together(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """After all have been tried, with a note that names the job; nothing is raised where all is well."""
    good = [make("exit 2", tmp_path), make("exit 3", tmp_path)]
    odd, empty = Job(JobSpec("/bin/true", launcher="none such")), Job()
    with pytest.raises(ExceptionGroup) as raised:
        executor.submit_all(job for job in (good[0], odd, good[1], empty, good[0]))
    assert raised.value.message == "3 of 5 jobs were not submitted"
    assert [(type(error), *error.__notes__) for error in raised.value.exceptions] == [
        (InvalidJobException, f"Job {odd.id}"), (InvalidJobException, f"Job {empty.id}"),
        (InvalidStateException, f"Job {good[0].id}")]
    assert [ended.exit_code for job in good if (ended := job.wait(SOON))] == [2, 3]
    assert {odd.status.state, empty.status.state} == {JobState.NEW}
    executor.submit_all([])
    executor.submit_all([again := make("exit 4", tmp_path)])
    assert (ended := again.wait(SOON)) and ended.exit_code == 4


def test_from_another_thread_than_the_main_one(executor: LocalJobExecutor, tmp_path: Path) -> None:
    jobs = [make(f"exit {number}", tmp_path) for number in range(1, 5)]
    thread = threading.Thread(target=executor.submit_all, args=(jobs,))
    thread.start()
    thread.join()
    assert [ended.exit_code for job in jobs if (ended := job.wait(SOON))] == [1, 2, 3, 4]


def test_without_starter(executor: LocalJobExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_local_starter._starters, "tries", 0)
    jobs = [make(f"exit {number}", tmp_path) for number in range(1, 9)]
    assert [error for _, error in all_at_once(executor, jobs)] == [None] * 8
    assert [job.wait(SOON).exit_code for job in jobs] == list(range(1, 9))      # type: ignore[union-attr]


def test_times_are_those_of_the_start_itself(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """A start that waits behind others is none yet: a job neither begins before it nor is longer for it."""
    slow = [make("true", tmp_path / "x" / ".." / "." / "y") for _ in range(3)]
    jobs = [*slow, *(make("sleep 0.2", tmp_path) for _ in range(12))]
    all_at_once(executor, jobs)
    starts = []
    for job in jobs[3:]:
        metadata = job.wait(SOON).metadata or {}        # type: ignore[union-attr]
        assert metadata["wall_seconds"] >= 0.2 and metadata["submit_time"] <= metadata["start_time"]
        starts.append(metadata["start_time"])
    assert starts == sorted(starts)


def test_a_start_that_fails_leaves_no_new_file(executor: LocalJobExecutor, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("kept")
    jobs = [Job(JobSpec("/no/such", stdout_path=tmp_path / name)) for name in ("old", "new")]
    all_at_once(executor, jobs)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["old"]


def test_others_submit_meanwhile(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """Their requests go the same way, and every answer finds the one who asked; what jobs inherit changes as well."""
    several = [make(f"exit {number % 100 + 1}", tmp_path) for number in range(200)]
    single = [make(f"exit {number % 50 + 101}", tmp_path) for number in range(100)]
    thread = threading.Thread(target=lambda: all_at_once(executor, several))
    thread.start()
    old = os.umask(0o022)
    try:
        for number, job in enumerate(single):
            os.umask(0o027 if number % 20 == 0 else 0o022)
            executor.submit(job)
    finally:
        os.umask(old)
    thread.join()
    assert [job.wait(SOON).exit_code for job in several] == [number % 100 + 1       # type: ignore[union-attr]
                                                             for number in range(200)]
    assert [job.wait(SOON).exit_code for job in single] == [number % 50 + 101       # type: ignore[union-attr]
                                                            for number in range(100)]
    assert executor.list() == []


def test_a_request_as_large_as_can_be_between_small_ones(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """It goes alone, and the starter after it is another."""
    large = {f"V{number}": "x" * 100_000 for number in range(8)}
    jobs = [make("exit 2", tmp_path), make("exit 3", tmp_path, environment=large), make("exit 4", tmp_path)] * 3
    jobs = [Job(job.spec) for job in jobs]
    all_at_once(executor, jobs)
    assert [job.wait(SOON).exit_code for job in jobs] == [2, 3, 4] * 3      # type: ignore[union-attr]


def test_cancel_of_a_start_that_is_not_answered(executor: LocalJobExecutor, tmp_path: Path) -> None:
    jobs = [make("sleep 60", tmp_path) for _ in range(6)]

    def given() -> Iterator[Job]:
        for job in jobs:
            yield job
            job.cancel()

    executor._submit_all(given(), lambda job, error: None)
    assert {job.wait(SOON).state for job in jobs} == {JobState.CANCELED}        # type: ignore[union-attr]


def test_records_are_those_of_the_jobs(executor: LocalJobExecutor, tmp_path: Path) -> None:
    executor.records = tmp_path / "records"
    jobs = [make(f"exit {number}", tmp_path) for number in range(1, 12)]
    all_at_once(executor, jobs)
    for number, job in enumerate(jobs, 1):
        assert job.wait(SOON) is not None
        found = read(executor.records / job.id)
        assert found is not None and (str(found.pid), found.wait_status) == (job.native_id, number << 8)


def test_starters_killed_at_any_moment(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """Every job has an end; where the starter went with its answer, that it is not known, and no job runs twice."""
    jobs = [make(f"echo {number} >> out", tmp_path) for number in range(200)]
    with starters_killed(0.02):
        told = all_at_once(executor, jobs)
    assert sorted(job.id for job, _ in told) == sorted(job.id for job in jobs)
    assert all(error is None or isinstance(error, SubmitException) for _, error in told)
    ends = {}
    for job, error in told:
        if error is None:
            status = job.wait(SOON)
            assert status is not None
            ends[jobs.index(job)] = (status.state, (status.metadata or {}).get("reason"))
    assert set(ends.values()) <= {(JobState.COMPLETED, None), (JobState.FAILED, "unknown-exit"),
                                  (JobState.FAILED, "lost")}
    time.sleep(0.5)         # for those of which nobody says when they end
    ran = [int(line) for line in (tmp_path / "out").read_text().split()]
    assert len(ran) == len(set(ran)) and not {jobs.index(job) for job, error in told if error is not None} & set(ran)
    assert {number for number, (_, reason) in ends.items() if reason is None} <= set(ran)


def test_an_interruption_loses_one_answer_at_most(executor: LocalJobExecutor, tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in a thread that takes an answer for another one: the next answers are not taken for those before them."""
    jobs = [make(f"exit {number}", tmp_path) for number in range(1, 5)]
    single = make("exit 9", tmp_path)
    take = _local_starter.Starter._answer

    def interrupted(starter: _local_starter.Starter, *how: Any) -> _local_starter._Answer:
        take(starter, *how)
        monkeypatch.undo()
        raise KeyboardInterrupt

    def given() -> Iterator[Job]:
        yield from jobs
        monkeypatch.setattr(_local_starter.Starter, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            executor.submit(single)

    executor._submit_all(given(), lambda job, error: None)
    found = [(status.exit_code, (status.metadata or {}).get("reason")) for job in jobs
             if (status := job.wait(SOON)) is not None]
    # which answer is lost depends on how many were there already when that of the single job was asked for
    assert found.count((None, "lost")) <= 1
    assert all(one in ((number, None), (None, "lost")) for number, one in enumerate(found, 1))
    assert single.status.state is JobState.NEW


def test_jobs_inherit_what_is_changed_between_them(executor: LocalJobExecutor, tmp_path: Path) -> None:
    """A callback may do so; jobs that were begun before keep what was there."""
    jobs = [make(f"umask >{number}", tmp_path) for number in range(40)]

    def told(job: Job, error: Exception | None) -> None:
        if job is jobs[0]:
            os.umask(0o077)

    before = os.umask(0o022)
    try:
        executor._submit_all(jobs, told)
    finally:
        os.umask(before)
    for job in jobs:
        assert job.wait(SOON) is not None
    seen = [(tmp_path / str(number)).read_text().strip() for number in range(40)]
    assert (seen[0], seen[-1]) == ("0022", "0077") and seen == sorted(seen)


FEW = """
import os, resource, sys
from psij import Job, JobSpec
from psij.executors import LocalJobExecutor
os.chdir(sys.argv[1])
executor = LocalJobExecutor()
first = Job(JobSpec("true"))
executor.submit(first)
first.wait()
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 16, 4096))
jobs = [Job(JobSpec("sh", ["-c", "echo o; echo e >&2"], stdout_path=f"o{n}", stderr_path=f"e{n}")) for n in range(30)]
executor._submit_all(jobs, lambda job, error: print(error))
print(*{str(job.wait().state) for job in jobs})
"""


def test_descriptors_that_open_starts_hold_are_given_back(tmp_path: Path) -> None:
    """What single jobs can do with few of them, jobs that are started together can."""
    process = subprocess.run([sys.executable, "-c", FEW, tmp_path], capture_output=True, text=True, timeout=60)
    assert (process.stdout, process.stderr) == ("None\n" * 30 + "COMPLETED\n", "")
    assert [(tmp_path / f"{kind}{n}").read_text() for n in range(30) for kind in "oe"] == ["o\n", "e\n"] * 30


def test_nothing_stays_open(executor: LocalJobExecutor, tmp_path: Path) -> None:
    def some() -> None:
        jobs = [make("true", tmp_path, stdout_path=tmp_path / f"o{number}") for number in range(30)]
        all_at_once(executor, jobs)
        for job in jobs:
            job.wait(SOON)

    some()
    before = len(os.listdir("/proc/self/fd"))
    some()
    assert len(os.listdir("/proc/self/fd")) <= before
