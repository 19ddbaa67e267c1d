"""Staging types, and staging by the local executor."""

from __future__ import annotations

import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import (
    URI,
    InvalidJobException,
    Job,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    StageIn,
    StageOut,
    StageOutFlags,
    StagingMode,
)
from psij.executors import LocalJobExecutor, _local_staging

SOON = timedelta(seconds=60)
MODES = list(StagingMode)
COPY, LINK, MOVE = MODES
FLAGS = StageOutFlags


@pytest.fixture
def executor(tmp_path: Path) -> LocalJobExecutor:
    return LocalJobExecutor(config=JobExecutorConfig(work_directory=tmp_path / "work"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The job's directory."""
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The client's directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def run(executor: LocalJobExecutor, script: str, place: Path, **members: Any) -> tuple[JobStatus, list[JobState]]:
    """The final status, and all states."""
    job, states, over = Job(JobSpec("/bin/sh", ["-c", script], place, **members)), [], threading.Event()

    def note(job: Job, status: JobStatus) -> None:
        states.append(status.state)
        if status.final:
            over.set()

    job.set_job_status_callback(note)
    executor.submit(job)
    assert over.wait(20)
    return job.status, states


def reason(status: JobStatus) -> object:
    return (status.metadata or {}).get("reason")


# -- types ------------------------------------------------------------------------------------------------------------

def test_uri() -> None:
    uri = URI("ftp://me:pw@Host:21/a/b;p?q=1#f")
    assert (uri.scheme, uri.netloc, uri.hostname, uri.port, uri.path, uri.params, uri.query, uri.fragment, uri.username,
            uri.password) == ("ftp", "me:pw@Host:21", "host", 21, "/a/b", "p", "q=1", "f", "me", "pw")
    assert str(uri) == "ftp://me:pw@Host:21/a/b;p?q=1#f" and uri == URI(str(uri)) and hash(uri) == hash(URI(str(uri)))
    assert URI("/a").scheme == "" and URI("/a") != "/a"


@pytest.mark.parametrize("path", ["a", "a b", "a#b", "a?b=c", "a;b", "a:b", "%41", "~", "a\nb", "1:/x", ":", "//a"])
def test_text_and_paths_are_paths(path: str) -> None:
    for given in (path, Path(path)):
        source = StageIn(given, "x").source
        assert (str(source), source.path, source.scheme, source.netloc) == (str(given), str(given), "", "")
    assert StageIn(path, "x") == StageIn(path, Path("x")) != StageIn(path, "y")


@pytest.mark.parametrize("text", ["file:a", "file:///a", "http://h/a", "s3://bucket/key", "gsiftp:/x"])
def test_text_with_a_scheme_is_a_uri(text: str) -> None:
    assert StageIn(text, "x").source == URI(text) == StageOut("x", text).target
    assert URI(text).scheme == text.partition(":")[0]


def test_flags_without_a_condition_mean_always() -> None:
    item = StageOut("a", "b", FLAGS.NONE)
    assert item.flags == FLAGS.ALWAYS == FLAGS.ON_SUCCESS | FLAGS.ON_ERROR | FLAGS.ON_CANCEL
    item.flags = FLAGS.IF_PRESENT
    assert item.flags == FLAGS.ALWAYS | FLAGS.IF_PRESENT
    assert StageOut("a", "b", FLAGS.ON_ERROR).flags == FLAGS.ON_ERROR
    assert len({item, StageOut("a", "b", FLAGS.IF_PRESENT), StageOut("a", "b")}) == 2


# -- stage in ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", MODES)
def test_stage_in(executor: LocalJobExecutor, here: Path, place: Path, mode: StagingMode) -> None:
    (here / "a").write_text("A")
    (here / "a").chmod(0o750)
    (here / "b c#%41").write_text("B")
    (here / "d%").write_text("D")
    items = {StageIn("a", "one", mode), StageIn(here / "b c#%41", "sub/two", mode),
             StageIn(f"file://localhost{here}/%64%25", place / "sub" / "three", mode)}
    status, states = run(executor, "cat one sub/two sub/three > out", place, stage_in=items)
    assert status.state is JobState.COMPLETED and (place / "out").read_text() == "ABD"
    assert states == [JobState.QUEUED, JobState.STAGE_IN, JobState.ACTIVE, JobState.COMPLETED]
    assert (place / "one").stat().st_mode & 0o777 == 0o750 and (place / "one").is_symlink() is (mode is LINK)
    assert sorted(os.listdir(here)) == ([] if mode is MOVE else ["a", "b c#%41", "d%"])
    assert sorted(os.listdir(place)) == ["one", "out", "sub"]


@pytest.mark.parametrize("mode", MODES)
def test_stage_in_of_a_folder(executor: LocalJobExecutor, here: Path, place: Path, mode: StagingMode) -> None:
    (here / "in" / "deep").mkdir(parents=True)
    (here / "in" / "deep" / "a").write_text("A")
    (here / "in" / "link").symlink_to("deep/a")
    status, _ = run(executor, "cat there/link", place, stage_in={StageIn("in", "there", mode)}, stdout_path="out")
    assert status.state is JobState.COMPLETED and (place / "out").read_text() == "A"
    assert (place / "there" / "link").is_symlink() and (place / "there").is_symlink() is (mode is LINK)
    assert (here / "in").exists() is (mode is not MOVE)


@pytest.mark.parametrize("mode", MODES)
def test_stage_in_replaces(executor: LocalJobExecutor, here: Path, place: Path, mode: StagingMode) -> None:
    (here / "a").write_text("new")
    (here / "precious").write_text("old")
    (place / "a").symlink_to(here / "precious")
    status, _ = run(executor, "cat a > out", place, stage_in={StageIn("a", "a", mode)})
    assert status.state is JobState.COMPLETED and (place / "out").read_text() == "new"
    assert (here / "precious").read_text() == "old"


@pytest.mark.parametrize("mode", [COPY, MOVE])
def test_stage_in_merges_folders(executor: LocalJobExecutor, here: Path, place: Path, mode: StagingMode) -> None:
    for folder, name in ((here, "new"), (place, "old")):
        (folder / "in").mkdir()
        (folder / "in" / name).write_text(name)
    run(executor, ":", place, stage_in={StageIn("in", "in", mode)})
    assert sorted(os.listdir(place / "in")) == ["new", "old"] and (here / "in").exists() is (mode is COPY)


@pytest.mark.parametrize("mode", MODES)
def test_a_file_onto_itself(executor: LocalJobExecutor, place: Path, mode: StagingMode) -> None:
    (place / "a").write_text("A")
    status, _ = run(executor, "cat a > out", place, stage_in={StageIn(place / "a", "a", mode)},
                    stage_out={StageOut("out", place / "out", mode=mode)})
    assert status.state is JobState.COMPLETED and (place / "out").read_text() == "A"
    assert not (place / "a").is_symlink()


@pytest.mark.parametrize(("source", "target", "message"), [
    ("missing", "a", "missing does not exist"), ("dangling", "a", "dangling does not exist"),
    ("fifo", "a", "is not a file"), ("file", "folder", "the target is a folder"), ("file", "busy/a", "File exists"),
    ("folder", "../here/folder/sub", "the target is inside the source"), ("file", "../here/fifo", "device or a pipe")])
def test_stage_in_fails(executor: LocalJobExecutor, here: Path, place: Path, source: str, target: str,
                        message: str) -> None:
    (here / "file").write_text("x")
    (here / "dangling").symlink_to("nowhere")
    os.mkfifo(here / "fifo")
    (here / "folder").mkdir()
    (place / "folder").mkdir()
    (place / "busy").write_text("")
    status, states = run(executor, "echo ran > out", place, stage_in={StageIn(source, target)}, cleanup={"busy"},
                         cleanup_flags=FLAGS.ON_ERROR)
    assert (status.state, reason(status), status.exit_code) == (JobState.FAILED, "stage-in", None)
    assert str(status.message).startswith("stage_in: cannot copy ") and message in str(status.message)
    assert states == [JobState.QUEUED, JobState.STAGE_IN, JobState.FAILED] and executor.list() == []
    assert os.listdir(place) == ["folder"]


def test_launch_fails_after_stage_in(executor: LocalJobExecutor, here: Path, place: Path) -> None:
    (here / "a").write_text("x")
    job = Job(JobSpec("/no/such", directory=place, stage_in={StageIn("a", "a")}, cleanup={"a"}))
    executor.submit(job)
    status = job.wait(SOON)
    assert status is not None and (status.state, reason(status)) == (JobState.FAILED, "launch")
    assert os.listdir(place) == []
    job = Job(JobSpec("/bin/true", directory=place / "none", stage_in={StageIn("a", "a")}))
    executor.submit(job)
    status = job.wait(SOON)
    assert status is not None and (status.state, reason(status)) == (JobState.FAILED, "launch")
    assert "does not exist" in str(status.message) and os.listdir(place) == []


def test_cancel_while_staging_in(executor: LocalJobExecutor, here: Path, place: Path,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "big").write_bytes(b"x" * 5_000_000)     # seconds, a byte at a time
    monkeypatch.setattr(_local_staging, "_CHUNK", 1)
    job = Job(JobSpec("/bin/sh", ["-c", "echo > ran"], place, stage_in={StageIn("big", "big")}))
    executor.submit(job)
    assert job.wait(SOON, JobState.STAGE_IN)
    job.cancel()
    status = job.wait(SOON)
    assert status is not None and (status.state, reason(status)) == (JobState.CANCELED, "cancel")
    assert os.listdir(place) == [] and executor.list() == []


# -- stage out and cleanup --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("launcher", ["single", "multiple"])
def test_stage_out(executor: LocalJobExecutor, here: Path, place: Path, mode: StagingMode, launcher: str) -> None:
    items = {StageOut("out.txt", "result", mode=mode), StageOut("d", here / "new" / "d", mode=mode)}
    status, states = run(executor, "echo out; mkdir d; echo deep > d/e", place, stdout_path="out.txt", stage_out=items,
                         launcher=launcher)
    assert status.state is JobState.COMPLETED and status.exit_code == 0
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.STAGE_OUT, JobState.COMPLETED]
    assert (here / "result").read_text() == "out\n" and (here / "new" / "d" / "e").read_text() == "deep\n"
    assert (here / "result").is_symlink() is (mode is LINK)
    assert sorted(os.listdir(place)) == ([] if mode is MOVE else ["d", "out.txt"])


@pytest.mark.parametrize(("script", "end"), [
    ("exit 0", FLAGS.ON_SUCCESS), ("exit 3", FLAGS.ON_ERROR), ("kill -9 $$", FLAGS.ON_ERROR),
    ("echo > ready; sleep 60", FLAGS.ON_CANCEL)])
def test_flags(executor: LocalJobExecutor, here: Path, place: Path, script: str, end: StageOutFlags) -> None:
    flags = [StageOutFlags(number) for number in range(16)]
    items = {StageOut("out", str(each.value), each) for each in flags}
    items |= {StageOut("missing", f"missing{each.value}", each | FLAGS.IF_PRESENT) for each in flags}
    job = Job(JobSpec("/bin/sh", ["-c", f"echo > out; {script}"], place, stage_out=items, cleanup={"out"},
                      cleanup_flags=FLAGS.ON_CANCEL | FLAGS.ON_SUCCESS))
    executor.submit(job)
    if end is FLAGS.ON_CANCEL:
        while not (place / "ready").exists():
            time.sleep(0.01)
        job.cancel()
    status = job.wait(SOON)
    states = {FLAGS.ON_SUCCESS: JobState.COMPLETED, FLAGS.ON_ERROR: JobState.FAILED, FLAGS.ON_CANCEL: JobState.CANCELED}
    assert status is not None and status.state is states[end]
    assert set(os.listdir(here)) == {str(each.value) for each in flags if each & end or not each & FLAGS.ALWAYS}
    assert (place / "out").exists() is (end is FLAGS.ON_ERROR)


def test_stage_out_fails(executor: LocalJobExecutor, here: Path, place: Path) -> None:
    status, states = run(executor, "echo > out", place, stage_out={StageOut("missing", "x")}, cleanup={"out"})
    assert (status.state, reason(status), status.exit_code) == (JobState.FAILED, "stage-out", 0)
    assert status.message is not None and "stage_out: cannot copy" in status.message
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.STAGE_OUT, JobState.FAILED]
    assert os.listdir(place) == ["out"]         # nothing is removed that was not fetched
    status, _ = run(executor, "exit 3", place, stage_out={StageOut("missing", "x")})
    assert (status.state, status.exit_code, reason(status)) == (JobState.FAILED, 3, None)
    assert status.message is not None and status.message.startswith("exit code 3; stage_out: ")


def test_cancel_while_staging_out(executor: LocalJobExecutor, here: Path, place: Path,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_local_staging, "_CHUNK", 1)
    job = Job(JobSpec("/bin/sh", ["-c", "head -c 3000000 /dev/zero > big"], place, stage_out={StageOut("big", "big")},
                      cleanup={"big"}))
    executor.submit(job)
    assert job.wait(SOON, JobState.STAGE_OUT)
    job.cancel()
    status = job.wait(SOON)
    assert status is not None and (status.state, reason(status), status.exit_code) == (JobState.CANCELED, "cancel", 0)
    assert os.listdir(here) == [] and os.listdir(place) == ["big"]


def test_cleanup(executor: LocalJobExecutor, here: Path, place: Path) -> None:
    script = ("mkdir -p d/e; echo > d/e/f; echo > out; echo > ' x'; ln -s ../here/precious link; ln -s ../here away; "
              "ln -s d inside; ln -s nowhere broken")
    (here / "precious").write_text("old")
    paths = {"out", "link", "broken", "missing", place / " x", "inside/e"}
    status, states = run(executor, script, place, cleanup=paths)
    assert status.state is JobState.COMPLETED, status
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.CLEANUP, JobState.COMPLETED]
    assert sorted(os.listdir(place)) == ["away", "d", "inside"] and os.listdir(place / "d") == []
    status, _ = run(executor, ":", place, cleanup={"away/precious"})
    assert (status.state, reason(status)) == (JobState.FAILED, "cleanup") and "not inside" in str(status.message)
    status, _ = run(executor, ":", place, cleanup={"d", "away"})
    assert status.state is JobState.COMPLETED and os.listdir(place) == ["inside"]
    assert (here / "precious").read_text() == "old"


@pytest.mark.parametrize("path", ["../jobs/x", "..", "../job", "/", "/etc", "d/../../here/x", "d/..", "../jobx"])
def test_cleanup_stays_inside(executor: LocalJobExecutor, place: Path, path: str) -> None:
    for name in ("jobs", "jobx"):
        (place.parent / name).mkdir()
        (place.parent / name / "x").write_text("")
    job = Job(JobSpec("/bin/true", directory=place, cleanup={path}))
    with pytest.raises(InvalidJobException, match="cleanup"):
        executor.submit(job)
    assert job.status.state is JobState.NEW and (place.parent / "jobs" / "x").exists()


def test_cleanup_of_a_job_directory_that_is_a_link(executor: LocalJobExecutor, tmp_path: Path, place: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    status, _ = run(executor, "echo > a; echo > b", tmp_path / "link", cleanup={"a", tmp_path / "link" / "b"})
    assert status.state is JobState.COMPLETED and os.listdir(place) == []


# -- what is refused --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("members", "message"), [
    ({"stage_in": {StageIn("http://host/a", "a")}}, "stage_in: source 'http://host/a': the scheme 'http' is not"),
    ({"stage_in": {StageIn("file://host/a", "a")}}, "stage_in: source .*: the host must be 'localhost'"),
    ({"stage_in": {StageIn(URI("//host/a"), "a")}}, "stage_in: source .*: the host must be 'localhost'"),
    ({"stage_in": {StageIn("file:///a?b", "a")}}, "stage_in: source .*: a query"),
    ({"stage_in": {StageIn("file:///a%00", "a")}}, "stage_in: source contains a NUL"),
    ({"stage_in": {StageIn("a\0", "a")}}, "stage_in: source contains a NUL"),
    ({"stage_in": {StageIn("", "a")}}, "stage_in: source is empty"),
    ({"stage_in": {StageIn("a", "")}}, "stage_in: target is empty"),
    ({"stage_in": {StageIn("a", "a\0")}}, "stage_in: target contains a NUL"),
    ({"stage_in": {StageIn("a", "\ud800")}}, "stage_in: target cannot be encoded"),
    ({"stage_in": {StageIn("a", "b", 1)}}, "stage_in: mode must be"),  # type: ignore[arg-type]
    ({"stage_out": {StageOut("a", "s3://bucket/a")}}, "stage_out: target 's3://bucket/a': the scheme 's3' is not"),
    ({"stage_out": {StageOut("a\0", "a")}}, "stage_out: source contains a NUL"),
    ({"cleanup": {"a\0"}}, "cleanup contains a NUL"),
    ({"stage_in": {"a"}}, "stage_in must hold StageIn"),
])
def test_refused(executor: LocalJobExecutor, place: Path, members: dict[str, Any], message: str) -> None:
    job = Job(JobSpec("/bin/true", directory=place, stdout_path="out", **members))
    with pytest.raises(InvalidJobException, match=message):
        executor.submit(job)
    assert job.status.state is JobState.NEW and job.executor is None and os.listdir(place) == []


def test_many_stage_with_few_threads(executor: LocalJobExecutor, here: Path, place: Path) -> None:
    before = threading.active_count()
    jobs = []
    for number in range(30):
        (here / f"in{number}").write_text(f"{number}")
        jobs.append(Job(JobSpec("/bin/cat", ["in"], place / f"{number}", stdout_path="out",
                                stage_in={StageIn(f"in{number}", "in")}, stage_out={StageOut("out", f"out{number}")})))
        (place / f"{number}").mkdir()
        executor.submit(jobs[-1])
    assert {job.wait(SOON).state for job in jobs} == {JobState.COMPLETED}  # type: ignore[union-attr]
    assert [(here / f"out{number}").read_text() for number in range(30)] == [str(number) for number in range(30)]
    assert threading.active_count() <= before + _local_staging._THREADS + 2      # callbacks, engine
