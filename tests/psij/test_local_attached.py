"""Attaching to local jobs that other processes have submitted and that have ended: their real ends, or no end at all.

Clients are programs of their own; each test has a run directory of its own, which they and it are told of.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from psij import Job, JobSpec, JobState, JobStatus
from psij.executors import _local_ends, _local_starter, local
from psij.executors._local_ends import VARIABLE
from psij.executors._local_engine import engine
from psij.executors._local_proc import boot_id, is_tagged, process
from psij.executors.local import LocalJobExecutor
from tests.psij import hazard_program
from tests.psij.local_support import wait_until

#: Runs shell commands one after another; prints the process id and the reference of each.
CLIENT = """
import os, resource, sys, time, warnings
from psij import Job, JobAttributes, JobSpec
from psij.executors.local import LocalJobExecutor
executor = LocalJobExecutor()
def run(command, launcher=None, **custom):
    job = Job(JobSpec("/bin/sh", ["-c", "read x < fifo; " + command], launcher=launcher, inherit_environment=False,
                      attributes=JobAttributes(custom_attributes=custom or None)))
    os.path.exists("fifo") or os.mkfifo("fifo")
    executor.submit(job)
    line = f"{job.native_id} {executor.reference(job)}"
    with open("fifo", "w") as fifo: fifo.write("go\\n")
    job.wait()
    print(line, flush=True)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The run directory."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "run"))
    _local_starter._starters.retire()
    yield tmp_path / "run"
    _local_starter._starters.retire()


def client(folder: Path, *calls: str) -> list[tuple[str, str]]:
    """Process id and reference of each job that a client has run, which has gone."""
    code, printed, logged = hazard_program.ended(folder.parent, CLIENT + "\n".join(calls))
    assert (code, logged) == (0, "")
    return [(pid, reference) for pid, reference in map(str.split, printed.splitlines())]


def end_of(native_id: str) -> tuple[str, int | None, str | None]:
    """How a job ends that is attached to: state, exit code, reason."""
    status = attached(native_id)
    return status.state.name, status.exit_code, (status.metadata or {}).get("reason")


def attached(native_id: str) -> JobStatus:
    job = Job()
    LocalJobExecutor().attach(job, native_id)
    status = job.wait(60)
    assert status is not None
    return status


def keep(folder: Path, pid: int, wait_status: int, started: float, rest: str = "0.5 9000 .\n") -> None:
    """Add an end as a starter would. started: seconds of CLOCK_BOOTTIME."""
    file = os.fsdecode(_local_ends.file_to_write())
    with open(file, "a", encoding="ascii") as lines:
        lines.write(f"\n{pid} {wait_status} {started:f} {started + 0.001:f} {started + 2:f} {rest}")
    assert Path(file).parent == folder


def boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


LOST = ("FAILED", None, "lost")


@pytest.mark.parametrize(("call", "end"), [
    ("run('exit 0')", ("COMPLETED", 0, None)), ("run('exit 41')", ("FAILED", 41, None)),
    ("run('kill -15 $$')", ("FAILED", 143, "signal")),
    ("run('exit 6', launcher='multiple')", ("FAILED", 6, None)),
    ("run('exit 7', **{'local.nice': 1})", ("FAILED", 7, None)),
    ("executor.submit_all([]); run('exit 8')", ("FAILED", 8, None))])
def test_a_job_that_has_ended_with_its_client(folder: Path, call: str, end: tuple[str, int | None, str | None],
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_WRITING_S", 10.0)      # its starter writes that down after it has told it
    ((pid, reference),) = client(folder, call)
    assert [end_of(pid), end_of(reference)] == [end] * 2


def test_what_is_told_of_a_job_that_has_ended(folder: Path) -> None:
    before = time.time()
    ((pid, _),) = client(folder, "run('sleep 0.2; exit 3')")
    states: list[JobState] = []
    job, executor = Job(JobSpec("/bin/true")), LocalJobExecutor()
    job.set_job_status_callback(lambda job, status: states.append(status.state))
    executor.attach(job, pid)
    status = job.wait(60)
    assert status is not None and status.metadata is not None
    assert states == [JobState.QUEUED, JobState.ACTIVE, JobState.FAILED] and executor.list() == []
    assert before - 0.1 < status.metadata["start_time"] <= status.metadata["submit_time"]
    assert 0.2 <= status.metadata["wall_seconds"] < 60 and status.metadata["end_time"] <= time.time() + 0.1
    assert (job.native_id, status.message) == (pid, "exit code 3") and "cpu_seconds" in status.metadata
    job.cancel()        # nothing happens


@pytest.mark.parametrize(("native_id", "why"), [
    ("", "'' names no process that could be a job of this machine since its start"),
    ("1", "'1' names no process that could be a job of this machine since its start"),
    ("{me}@17@another-boot",
     "'{me}@17@another-boot' names no process that could be a job of this machine since its start"),
    ("{me}@17@{boot}", "process {me} belongs to another user, or is not the one that is meant ({me}@17@{boot})"),
    ("2147483647", "there is no such process (2147483647)"),
])
def test_why_it_cannot_be_attached(native_id: str, why: str) -> None:
    """Of process 1, which every machine has, it was said that there is no such process."""
    names = {"me": os.getpid(), "boot": boot_id()}
    assert attached(native_id.format(**names)).message == f"cannot attach: {why.format(**names)}"


def test_jobs_of_several_clients(folder: Path) -> None:
    jobs = [client(folder, f"run('exit {code}')", f"run('exit {code + 1}')") for code in (10, 20)]
    assert [end_of(pid)[1] for one in jobs for pid, _ in one] == [10, 11, 20, 21]
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("ends", [False, True])
def test_a_job_that_was_just_attached_can_be_cancelled(ends: bool) -> None:
    """Also before the engine has looked at it; and it is forgotten when the first one ends then."""
    executor, job, twin, gate = LocalJobExecutor(), Job(JobSpec("/bin/sleep", ["60"])), Job(), threading.Event()
    executor.submit(job)

    def wait() -> None:
        gate.wait(60)

    engine().post(wait)
    if ends:
        job.cancel()
    executor.attach(twin, str(job.native_id))
    assert set(executor.list()) == {job.native_id}
    if not ends:
        twin.cancel()
    gate.set()
    for one in (twin, job):
        assert (status := one.wait(60)) is not None and (status.state, status.exit_code) == (JobState.CANCELED, 143)
    assert executor.list() == []


def test_in_the_same_process_after_the_end() -> None:
    executor = LocalJobExecutor()
    job = Job(JobSpec("/bin/sh", ["-c", "exit 5"]))
    executor.submit(job)
    job.wait(60)
    twin = Job()
    executor.attach(twin, str(job.native_id))
    assert end_of(str(job.native_id)) == ("FAILED", 5, None)
    assert (status := twin.wait(60)) is not None and status.exit_code == 5


def test_just_when_it_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine has heard of the end before it comes to attach."""
    executor, twin = LocalJobExecutor(), Job()
    pipe = folder.with_name("pipe")
    os.mkfifo(pipe)
    job = Job(JobSpec("/bin/sh", ["-c", "read x; exit 5"], stdin_path=pipe))
    with open(os.open(pipe, os.O_RDWR), "w") as keeper:
        executor.submit(job)
        real = engine().post
        late: list[Callable[[], None]] = []
        monkeypatch.setattr(engine(), "post", late.append)
        executor.attach(twin, str(job.native_id))
        monkeypatch.setattr(engine(), "post", real)
        keeper.write("go\n")
        keeper.flush()
        job.wait(60)
    for call in late:
        real(call)
    assert (status := twin.wait(60)) is not None and (status.state, status.exit_code) == (JobState.FAILED, 5)


class TestRecycledIds:
    """A process id means the job that has it, else the last one that had it; a reference means one process only."""

    def test_the_last_job_with_an_id_counts(self, folder: Path) -> None:
        for code in (4, 3, 2):
            keep(folder, 4194000, code << 8, boot_time() - 50 * code)
        assert end_of("4194000") == ("FAILED", 2, None)

    def test_a_reference_means_one_of_them(self, folder: Path) -> None:
        begun = {code: boot_time() - 50 * code for code in (4, 3, 2)}
        for code, started in begun.items():
            keep(folder, 4194000, code << 8, started)
        for code, started in begun.items():
            start = int((started + 0.0005) * os.sysconf("SC_CLK_TCK"))
            assert end_of(f"4194000@{start}@{boot_id()}") == ("FAILED", code, None)
            assert end_of(f"4194000@{start + 50}@{boot_id()}") == LOST
            assert end_of(f"4194000@{start}@{'0' * 36}") == LOST

    def test_a_stranger_has_the_id_of_a_job(self, folder: Path) -> None:
        started = subprocess.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True,
                                 check=True)
        stranger = int(started.stdout)
        keep(folder, stranger, 0, boot_time() - 100)
        job = Job()
        LocalJobExecutor().attach(job, str(stranger))
        assert (status := job.wait(60)) is not None and status.state is JobState.COMPLETED
        job.cancel()
        still_there = process(stranger)
        assert still_there is not None and still_there.living
        by_reference, executor = Job(), LocalJobExecutor()
        executor.attach(by_reference, f"{stranger}@{still_there.start}@{boot_id()}")
        by_reference.cancel()
        assert (status := by_reference.wait(60)) is not None and status.state is JobState.CANCELED

    def test_a_child_of_this_program_has_the_id_of_a_job(self, folder: Path) -> None:
        """Who attaches to a process that they have just started means that one."""
        with subprocess.Popen(["sleep", "60"]) as child:
            keep(folder, child.pid, 0, boot_time() - 100)
            job = Job()
            LocalJobExecutor().attach(job, str(child.pid))
            assert job.wait(0) is None
            job.cancel()
            assert (status := job.wait(60)) is not None and status.state is JobState.CANCELED

    def test_another_namespace_of_processes_has_the_same_ids(self, folder: Path) -> None:
        """The number of a namespace becomes the next one's."""
        program = ("executor.attach(job := Job(), sys.argv[1]); status = job.wait(60)\n"
                   "print(status.exit_code, (status.metadata or {}).get('reason')); run('exit 3')\n")
        printed: list[str] = []
        for _ in range(2):
            done = subprocess.run(["unshare", "-Urpf", "--mount-proc", sys.executable, "-c", CLIENT + program,
                                   printed[1].split()[0] if printed else "99"], cwd=folder.parent, capture_output=True,
                                  text=True, timeout=120)
            if done.stderr.startswith("unshare:"):
                pytest.skip(f"no namespaces here: {done.stderr}")
            assert done.returncode == 0, done.stderr
            printed = done.stdout.splitlines()
            assert printed[0] == "None lost"

    @pytest.mark.parametrize("told_by", ["its starter", "its environment"])
    def test_a_job_has_the_id_of_an_older_one(self, folder: Path, told_by: str) -> None:
        executor, twin = LocalJobExecutor(), Job()
        job = Job(JobSpec("/bin/sleep", ["60"], inherit_environment=told_by == "its environment"))
        executor.submit(job)
        keep(folder, int(str(job.native_id)), 0, boot_time() - 100)
        if told_by == "its environment":
            starter = _local_starter._starters.starter
            assert starter is not None
            os.kill(starter.pid, 9)
            wait_until(lambda: is_tagged(int(str(job.native_id))))       # not in the midst of its exec
        LocalJobExecutor().attach(twin, str(job.native_id))
        assert twin.status.state is JobState.ACTIVE
        job.cancel()
        assert job.wait(60) is not None and twin.wait(60) is not None


@pytest.mark.parametrize("text", [
    "{pid} 0 {t} {t} {t} 0.5 90", "{pid} 0 {t} {t} {t} 0.5 9000\n", "{pid} 0 {t} {t} {t} 0.5 9000 .",
    "{pid} 0 x y z 1 2 .\n", "{pid} 0 {t} {t}\n", "{pid}\n", "{pid} ",
    "{pid}0 0 {t} {t} {t} 0.5 9000 .\n", "{pid} \0\xff\n"])
def test_lines_that_are_cut_or_damaged_say_nothing(folder: Path, text: str) -> None:
    keep(folder, 4194001, 256, boot_time())
    file = next(folder.iterdir())
    file.write_bytes(b"\n" + text.format(pid=4194000, t=boot_time()).encode("latin-1") + file.read_bytes())
    complete = text.endswith(".")       # the next line's start ends it
    assert end_of("4194000") == (("COMPLETED", 0, None) if complete else LOST)
    assert end_of("4194001") == ("FAILED", 1, None)


def test_a_disk_without_room(folder: Path) -> None:
    """What was written in part says nothing; jobs run, and later ones are kept when there is room again."""
    ends = client(
        folder, "none = resource.RLIM_INFINITY", "resource.setrlimit(resource.RLIMIT_FSIZE, (100, none))",
        "run('exit 1'); run('exit 2'); run('exit 3')", "resource.setrlimit(resource.RLIMIT_FSIZE, (none, none))",
        "run('exit 4')")
    assert [end_of(pid) for pid, _ in ends] == [("FAILED", 1, None), LOST, LOST, ("FAILED", 4, None)]


def test_a_file_that_is_removed_meanwhile(folder: Path) -> None:
    ends = client(folder, "run('exit 1')", "while not (os.path.isdir('run') and os.listdir('run')): pass",
                  "os.unlink(os.path.join('run', os.listdir('run')[0])); run('exit 2')")
    assert [end_of(pid) for pid, _ in ends] == [LOST, ("FAILED", 2, None)]


def test_a_full_file_becomes_the_old_one(folder: Path) -> None:
    keep(folder, 4194000, 256, boot_time() - 9)
    (file,) = folder.iterdir()
    with open(file, "a", encoding="ascii") as lines:
        lines.write("\n" * (1 << 20))
    programs = [subprocess.Popen([sys.executable, "-c", CLIENT + f"os.mkdir('{n}'); os.chdir('{n}'); run('exit {n}')"],
                                 text=True, cwd=folder.parent, stdout=subprocess.PIPE) for n in (2, 3)]
    ids = [program.communicate(timeout=120)[0].split()[0] for program in programs]
    assert sorted(path.name for path in folder.iterdir()) == [file.name, f"{file.name}.old"]
    assert file.stat().st_size < 1000 and [end_of(pid)[1] for pid in ("4194000", *ids)] == [1, 2, 3]


def test_files_of_boots_long_ago_go(folder: Path) -> None:
    folder.mkdir(0o700)
    for name, days in (("ends-a-1", 40), ("ends-b-1.old", 8), ("ends-c-1", 6), ("other", 40)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - 86400 * days,) * 2)
    client(folder, "run('exit 1')")
    assert {path.name for path in folder.iterdir()} - {os.path.basename(os.fsdecode(_local_ends.file_to_write()))} == {
        "ends-c-1", "other"}


@pytest.mark.parametrize("kind", ["others may enter", "a link", "of another user", "a file", "relative", "none"])
def test_a_folder_that_will_not_do(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write there could say how jobs have ended. The log says so, and jobs run all the same."""
    ((pid, _),) = client(folder, "run('exit 9')")
    if kind == "others may enter":
        folder.chmod(0o710)
    elif kind == "of another user":
        if os.geteuid():
            pytest.skip("only root can give folders away")
        os.chown(folder, 12345, -1)
    elif kind == "a link":
        folder.rename(folder.with_name("real"))
        folder.symlink_to("real")
    elif kind == "a file":
        folder.rename(folder.with_name("real"))
        folder.touch()
    else:
        monkeypatch.setenv(VARIABLE, "run" if kind == "relative" else "")
    program = ("import logging; logging.basicConfig(stream=sys.stdout, format='%(message)s')\nrun('exit 3')\n"
               "from psij.executors import _local_starter as s; s._starters.retire(); run('exit 4')\n")
    *said, one, other = hazard_program.ended(folder.parent, CLIENT + program)[1].splitlines()
    stated = os.environ[VARIABLE]
    assert said == [] if kind == "none" else [
        f"How local jobs end is not kept for other processes: {VARIABLE}={stated} must name, with its whole path, a "
        "folder that is this user's and that nobody else may enter"]
    assert [end_of(native_id) for line in (one, other) for native_id in line.split()] == [LOST] * 4
    assert end_of(pid) == LOST


def test_where_nothing_is_stated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first of the places where a folder can be made is written to; all are looked at."""
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(_local_ends, "_PLACES", (str(tmp_path / "file"), str(tmp_path), str(tmp_path / "later")))
    (tmp_path / "file").touch()
    file = Path(os.fsdecode(_local_ends.file_to_write()))
    assert file.parent == tmp_path / f"psij-{os.geteuid()}"
    (tmp_path / "later" / file.parent.name).mkdir(parents=True, mode=0o700)
    keep(file.parent, 4194000, 256, boot_time())
    file.rename(tmp_path / "later" / file.parent.name / file.name)
    assert end_of("4194000") == ("FAILED", 1, None)


def test_a_starter_that_is_killed_before_it_reports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has kept counts: reports are sent several together, and the last ones go with it."""
    real = _local_starter.Starter.ended

    def lost(starter: _local_starter.Starter) -> list[_local_starter.Report]:
        real(starter)       # raises EOFError when the starter has ended
        return []

    monkeypatch.setattr(_local_starter.Starter, "ended", lost)
    executor, job = LocalJobExecutor(), Job(JobSpec("/bin/sh", ["-c", "exit 5"]))
    executor.submit(job)
    starter = _local_starter._starters.starter
    assert starter is not None
    wait_until(lambda: _local_ends.find(int(str(job.native_id))) is not None)
    os.kill(starter.pid, 9)
    assert (status := job.wait(60)) is not None and (status.state, status.exit_code) == (JobState.FAILED, 5)
