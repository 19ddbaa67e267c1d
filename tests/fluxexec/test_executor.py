"""The PSI/J executor ``fluxexec``: with a service in this process, and with one at a Unix socket."""

from __future__ import annotations

import errno
import os
import socket
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
    JobExecutor,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    ResourceSpecV1,
    StageIn,
    SubmitException,
)
from sssjob.accounting import Charge, charge, read_rates
from sssjob.document.model import Job as Document
from sssjob.fluxexec import executor as executor_module
from sssjob.fluxexec.desk import Desk, final_status
from sssjob.fluxexec.executor import FluxExecConfig, FluxExecExecutor, _inherited
from sssjob.fluxexec.loop import Loop
from sssjob.fluxexec.manager import Manager
from sssjob.fluxexec.messages import Request, Response
from sssjob.fluxexec.psijspec import jobspec_of
from sssjob.fluxexec.records import Record, Records
from sssjob.fluxexec.transport import pair
from sssjob.lrm.flux.ids import read_id
from sssjob.lrm.flux.jobspec import write_r
from sssjob.lrm.idset import Idset
from sssjob.run import facts
from sssjob.run.seen import Seen
from tests.fluxexec.support import jobspec
from tests.forks import command
from tests.gate import until_there

SOON = timedelta(seconds=60)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def service() -> list[str]:
    """The command that serves at a socket, whose path follows, as a process of its own."""
    return [*command(), "flux-exec", "serve", "--socket"]


class Server:
    """`sssjob flux-exec serve --socket` as a process, which does not outlive the tests for long if they are killed."""

    def __init__(self, folder: Path) -> None:
        self.path, self.state = folder / "exec", folder / "state"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(["timeout", "120", *service(), self.path, "--state", self.state, "--partial"],
                                        stderr=subprocess.DEVNULL)
        until(self.listens)

    def listens(self) -> bool:
        """Whether it can be connected to, which it can some time after the file is there; unix(7), /proc/net/unix."""
        rows = map(str.split, Path("/proc/net/unix").read_text().splitlines())
        return any(row[3] == "00010000" and row[-1] == str(self.path) for row in rows)

    def end(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.end()


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[FluxExecExecutor]:
    executor = FluxExecExecutor(config=FluxExecConfig(work_directory=tmp_path / "work", ranks=4))
    yield executor
    executor.close()


@pytest.fixture(params=["inside", "socket"])
def executor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FluxExecExecutor]:
    config = FluxExecConfig(work_directory=tmp_path / "work", ranks=4)
    url = "exec:local" if request.param == "inside" else f"unix:{request.getfixturevalue('server').path}"
    made = FluxExecExecutor(url, config)
    yield made
    made.close()


def make(script: str, limit: float | None = 60, **members: Any) -> Job:
    attributes = members.pop("attributes", None) or JobAttributes(None if limit is None else timedelta(seconds=limit))
    return Job(JobSpec("/bin/sh", ["-c", script], attributes=attributes, **members))


def ended(job: Job) -> tuple[JobStatus, dict[str, Any]]:
    status = job.wait(SOON)
    assert status is not None
    return status, status.metadata or {}


def run(executor: JobExecutor, job: Job) -> tuple[JobStatus, dict[str, Any]]:
    executor.submit(job)
    return ended(job)


# What all executors have in common

@pytest.mark.parametrize(("script", "state", "code", "number"), [
    ("exit 0", JobState.COMPLETED, 0, None), ("exit 3", JobState.FAILED, 3, None),
    ("exit 200", JobState.FAILED, 200, None), ("kill -TERM $$", JobState.FAILED, 143, 15),
    ("kill -KILL $$", JobState.FAILED, 137, 9),
])
def test_ends(executor: FluxExecExecutor, script: str, state: JobState, code: int, number: int | None) -> None:
    job, seen = make(script), []
    over = threading.Event()

    def tell(_: Job, status: JobStatus) -> None:
        seen.append(status.state)
        if status.final:
            over.set()

    job.set_job_status_callback(tell)
    status, metadata = run(executor, job)
    assert (status.state, status.exit_code, metadata.get("signal")) == (state, code, number)
    assert over.wait(20) and seen == [JobState.QUEUED, JobState.ACTIVE, state]
    assert metadata["native_id"] == job.native_id and read_id(str(job.native_id)) > 1 << 32
    assert metadata["start_time"] <= metadata["end_time"] and metadata["processors"] == 1
    assert executor.list() == []
    with pytest.raises(InvalidStateException):
        executor.submit(job)
    job.cancel()                    # nothing happens


def test_streams_directory_and_environment(executor: FluxExecExecutor, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "o${u}ter")
    (tmp_path / "in").write_text("read ")
    job = make('cat; echo "$A|$OUTER|$0|$FLUX_JOB_ID"; pwd >&2', directory=tmp_path, stdin_path="in", stdout_path="out",
               stderr_path=tmp_path / "err", environment={"A": "${OUTER}/1", "B": 2})
    assert job.spec is not None and job.spec.arguments is not None
    job.spec.arguments.append("${A}${B}")
    assert run(executor, job)[0].exit_code == 0
    number = read_id(str(job.native_id))
    assert (tmp_path / "out").read_text() == f"read o${{u}}ter/1|o${{u}}ter|o${{u}}ter/12|{number}\n"
    assert (tmp_path / "err").read_text() == f"{tmp_path}\n"


def test_variables_that_are_no_text_stay_behind(monkeypatch: pytest.MonkeyPatch,
                                                caplog: pytest.LogCaptureFixture) -> None:
    """JSON holds no such bytes; they were left out without a word."""
    monkeypatch.setattr(os, "environ", {"A": "1", "B": "\udcff"})
    assert _inherited() == {"A": "1"}
    assert [r.getMessage() for r in caplog.records] == ["the variable B is not passed on: it is no UTF-8"]


def test_nothing_is_inherited(executor: FluxExecExecutor, tmp_path: Path) -> None:
    job = Job(JobSpec("env", inherit_environment=False, environment={"A": "1", "B": "${A}${HOME}2"},
                      stdout_path=tmp_path / "out"))
    assert run(executor, job)[0].exit_code == 0
    assert (tmp_path / "out").read_text() == "A=1\nB=12\n"
    with pytest.raises(InvalidJobException, match="would take it for a variable"):
        executor.submit(Job(JobSpec("/a=b", inherit_environment=False)))


def test_four_processes_write_to_one_file(executor: FluxExecExecutor, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old\n")
    job = make("echo line", resources=ResourceSpecV1(process_count=4), launcher="multiple",
               stdout_path=tmp_path / "out")
    status, metadata = run(executor, job)
    assert (status.state, metadata["processors"]) == (JobState.COMPLETED, 4)
    assert (tmp_path / "out").read_text() == "line\n" * 4
    once = make("echo once", resources=ResourceSpecV1(process_count=4), stdout_path=tmp_path / "once")
    assert run(executor, once)[1]["processors"] == 4
    assert (tmp_path / "once").read_text() == "once\n"


def test_cancel(executor: FluxExecExecutor) -> None:
    running, waiting = make("sleep 60", resources=ResourceSpecV1(process_count=4)), make("true")
    executor.submit(running)
    executor.submit(waiting)
    assert running.wait(SOON, JobState.ACTIVE) is not None
    assert waiting.status.state is JobState.QUEUED and executor.list() == [running.native_id, waiting.native_id]
    waiting.cancel()
    status, metadata = ended(waiting)
    assert (status.state, status.exit_code, metadata["reason"], "start_time" in metadata) == (
        JobState.CANCELED, None, "cancel", False)
    running.cancel()
    running.cancel()
    status, metadata = ended(running)
    assert (status.state, metadata["reason"]) == (JobState.CANCELED, "cancel")
    with pytest.raises(InvalidStateException):
        executor.cancel(Job(JobSpec("true")))


def test_time_limit(executor: FluxExecExecutor) -> None:
    status, metadata = run(executor, make("sleep 60", limit=0.2))
    assert (status.state, metadata["reason"]) == (JobState.FAILED, "timeout")
    assert status.message is not None and "expired" in status.message


def test_what_cannot_be_started(executor: FluxExecExecutor) -> None:
    status, metadata = run(executor, Job(JobSpec("/no/such")))
    assert (status.state, status.exit_code, metadata["reason"]) == (JobState.FAILED, None, "launch")
    assert status.message is not None and "/no/such" in status.message


def test_ranks_that_are_given_back_early(executor: FluxExecExecutor, tmp_path: Path) -> None:
    # Three of four shells end at once; the fourth waits until the manager has seen that
    script = f'mkdir "{tmp_path}/first" 2>/dev/null || exit 0; {until_there(tmp_path / "go")}'
    job = make(script, resources=ResourceSpecV1(process_count=4), launcher="multiple")
    executor.submit(job)
    desk = executor._desk
    assert desk is not None
    number = read_id(str(job.native_id))

    def released() -> int:
        known = desk.manager.jobs.get(number)       # not at once: another thread takes the job
        events = [] if known is None else list(known.events)
        return sum(Idset.parse(data["ranks"]).count for name, data in events if name == "release" and data is not None)

    until(lambda: released() == 3)
    (tmp_path / "go").touch()
    status, metadata = ended(job)
    spans = metadata["spans"]
    assert status.state is JobState.COMPLETED and sum(n for n, _ in spans) == 4
    assert spans[0] == [1, metadata["wall_seconds"]] and spans[0][1] > max(s for _, s in spans[1:])


# What a jobspec cannot say

@pytest.mark.parametrize(("members", "expected"), [
    ({"pre_launch": "/bin/true"}, "pre_launch cannot be said"), ({"post_launch": "/x"}, "post_launch cannot be said"),
    ({"stage_in": [StageIn("/a", "b")]}, "stage_in cannot be said"), ({"cleanup": ["x"]}, "cleanup cannot be said"),
    ({"launcher": "mpirun"}, "launcher 'mpirun' cannot be said"),
    ({"attributes": JobAttributes(reservation_id="r")}, "reservation_id cannot be said"),
    ({"attributes": JobAttributes(custom_attributes={"fluxexec.x": 1})}, "'fluxexec.x' is not known"),
    ({"resources": ResourceSpecV1(memory=1 << 30)}, "memory cannot be said"),
    ({"resources": ResourceSpecV1(exclusive_node_use=True)}, "without node_count"),
    ({"resources": ResourceSpecV1(process_count=5)}, "needs 5 ranks, there are 4"),
    ({"resources": ResourceSpecV1(node_count=5)}, "needs 5 ranks, there are 4"),
    ({"environment": {"A": "\udcff"}}, "no text in Unicode"),
])
def test_what_is_refused(inside: FluxExecExecutor, members: dict[str, Any], expected: str) -> None:
    job = make("true", **members)
    with pytest.raises(InvalidJobException, match=expected):
        inside.submit(job)
    assert job.status.state is JobState.NEW and inside.list() == []


def test_a_jobspec_to_the_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    resources = ResourceSpecV1(node_count=2, processes_per_node=3, cpu_cores_per_process=4, gpu_cores_per_process=1,
                               exclusive_node_use=True)
    spec = JobSpec("app", ["a b"], "~/run", "name", environment={"A": "1"}, stdin_path="in", stdout_path="/o",
                   resources=resources, launcher="multiple",
                   attributes=JobAttributes(timedelta(hours=1), "debug", "chem"))
    inside = [{"type": "core", "count": 4}, {"type": "gpu", "count": 1}]
    assert jobspec_of(spec, {"A": "0", "Z": "${9}"}) == {
        "version": 1,
        "resources": [{"type": "node", "count": 2, "exclusive": True,
                       "with": [{"type": "slot", "count": 3, "label": "task", "with": inside}]}],
        "tasks": [{"command": ["app", "a b"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": {
            "duration": 3600.0, "cwd": "/home/me/run", "environment": {"A": "1", "Z": "${9}"}, "queue": "debug",
            "bank": "chem", "job": {"name": "name"}, "shell": {"options": {
                "input": {"stdin": {"type": "file", "path": "/home/me/run/in"}},
                "output": {"stdout": {"type": "file", "path": "/o"}}}}}}}


# Attaching, the way to the service

def test_attach(inside: FluxExecExecutor, tmp_path: Path) -> None:
    job = make(f'{until_there(tmp_path / "go")}; exit 4')
    inside.submit(job)
    assert job.wait(SOON, JobState.ACTIVE) is not None
    other, lost, odd = Job(), Job(), Job()
    inside.attach(other, str(job.native_id))
    for one, native_id in ((lost, "f11"), (odd, "what")):
        inside.attach(one, native_id)
        assert (ended(one)[0].state, ended(one)[1]["reason"]) == (JobState.FAILED, "lost")
        assert "the service of another process cannot be joined" in (ended(one)[0].message or "")
    assert other.wait(SOON, JobState.ACTIVE) is not None
    (tmp_path / "go").touch()
    assert (ended(other)[0].exit_code, ended(job)[0].exit_code) == (4, 4)
    with pytest.raises(InvalidStateException):
        inside.attach(job, "f1")


FOLLOW = """
import sys
from psij import Job, JobSpec, JobState
from sssjob.fluxexec.executor import FluxExecConfig, FluxExecExecutor
executor = FluxExecExecutor(sys.argv[1], FluxExecConfig(work_directory=sys.argv[2], ranks=4))
jobs = [Job(JobSpec("/bin/sh", ["-c", text], launcher="multiple")) for text in sys.argv[3:]]
for job in jobs:
    executor.submit(job)
for job in jobs:
    job.wait(target_states=JobState.ACTIVE)
print(*(job.native_id for job in jobs), flush=True)
sys.stdin.read()
"""


class Before:
    """A process that submits jobs, waits for their start, and ends or is killed when it is told to."""

    def __init__(self, server: Server, folder: Path, *scripts: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", FOLLOW, f"unix:{server.path}", folder / "work", *scripts],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.ids = self.process.stdout.readline().split()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_attach_from_another_process(server: Server, tmp_path: Path) -> None:
    """What a process that was killed has had started is followed by the next one; a service serves one at a time."""
    before = Before(server, tmp_path, f'{until_there(tmp_path / "go")}; exit 4', "exit 5",
                    f'{until_there(tmp_path / "never")}')
    config = FluxExecConfig(work_directory=tmp_path / "work", ranks=4)
    executor = FluxExecExecutor(f"unix:{server.path}", config)
    early = Job()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor_module, "_HELLO_S", 0.3)
        with pytest.raises(SubmitException, match="it serves another process") as caught:
            executor.attach(early, before.ids[0])
    assert caught.value.transient and early.status.state is JobState.NEW
    folder = tmp_path / "work" / "fluxexec"
    assert [oct(path.stat().st_mode & 0o777) for path in (folder, folder / f"{before.ids[0]}.json")] == [
        "0o700", "0o600"]
    before.kill()
    until(lambda: attached(executor, early, before.ids[0]))
    over, mine, endless, other = Job(), make("exit 6"), Job(), Job()
    executor.attach(over, before.ids[1])        # it had ended: its record went, or its end is told now
    executor.attach(endless, before.ids[2])
    executor.attach(other, before.ids[0])       # one more in this process
    executor.submit(mine)
    assert early.wait(SOON, JobState.ACTIVE) is not None and endless.wait(SOON, JobState.ACTIVE) is not None
    (tmp_path / "go").touch()
    endless.cancel()
    status, known = ended(early)
    assert (status.exit_code, known["processors"], known["nodes"]) == (4, 1, [socket.gethostname()])
    assert known["start_time"] < known["end_time"]
    assert ended(other)[0].exit_code == 4 and ended(mine)[0].exit_code == 6
    assert ended(endless)[0].state is JobState.CANCELED
    assert (ended(over)[0].exit_code, ended(over)[1].get("reason")) in ((5, None), (None, "lost"))
    until(lambda: list(folder.iterdir()) == [])
    executor.close()


def attached(executor: FluxExecExecutor, job: Job, native_id: str) -> bool:
    try:
        executor.attach(job, native_id)
    except SubmitException:         # the service has not seen yet that the one before is gone
        return False
    return True


def test_attach_after_the_service_lost_the_job(server: Server, tmp_path: Path) -> None:
    """A record does not make a job run again: with reattach a service looks for processes and starts none."""
    before = Before(server, tmp_path, f'touch {tmp_path}/ran; {until_there(tmp_path / "go")}')
    before.kill()
    until(lambda: (tmp_path / "ran").exists() and any(path.suffix == ".json" for path in server.state.iterdir()))
    for path in server.state.iterdir():
        if path.is_file():
            path.unlink()
    server.end()
    (tmp_path / "go").touch()
    (tmp_path / "ran").unlink()
    server.start()
    executor = FluxExecExecutor(f"unix:{server.path}", FluxExecConfig(work_directory=tmp_path / "work", ranks=4))
    job = Job()
    executor.attach(job, before.ids[0])
    status, known = ended(job)
    assert (status.state, known["reason"], status.message) == (
        JobState.FAILED, "lost", "the job's processes were not found")
    assert not (tmp_path / "ran").exists() and list((tmp_path / "work" / "fluxexec").iterdir()) == []
    executor.close()


def test_who_closes_makes_room(server: Server, tmp_path: Path) -> None:
    """An executor that was closed kept its connection, and the service served nobody else."""
    for code in (4, 5):
        executor = FluxExecExecutor(f"unix:{server.path}", FluxExecConfig(work_directory=tmp_path / "work", ranks=4))
        job = make(f"exit {code}")
        executor.submit(job)
        assert ended(job)[0].exit_code == code
        executor.close()


def test_two_attach_at_once(tmp_path: Path) -> None:
    """The manager has a job once, and both are told of it."""
    desk = Desk("unix", str(tmp_path / "exec"), FluxExecConfig(ranks=2), Records(tmp_path, "S"))
    record = Record(jobspec("true"), write_r(Idset.parse("7")), 1000.0)
    one, two = Job(), Job()
    desk.adopt(5, one, record)
    desk.adopt(5, two, record)
    while desk.loop._calls:
        desk.loop._calls.popleft()()
    managed = desk.manager.jobs[5]
    assert (managed.started, str(managed.ranks), str(managed.held), str(desk.manager.free)) == (True, "7", "", "0-1")
    desk.manager.raise_exception(5, "exec", 0, "note")      # no service has it: it is over
    assert [(job.status.state, job.status.message) for job in (one, two)] == [(JobState.FAILED, "note")] * 2
    assert desk.manager.free == desk.manager.all and desk.ids() == []
    desk.adopt(6, broken := Job(), Record({}, {}, 1.0))
    while desk.loop._calls:
        desk.loop._calls.popleft()()
    assert "the record of the job is of no use" in (broken.status.message or "")


@pytest.mark.parametrize("text", [
    "", "{", "[]", "{}", '{"service": 1}', '{"service": "S", "jobspec": {}, "R": {}, "started": "x"}',
    '{"service": "S", "jobspec": [], "R": {}, "started": 1}',
    '{"service": "other", "jobspec": {}, "R": {}, "started": 1}'])
def test_records_that_are_none(tmp_path: Path, text: str) -> None:
    records = Records(tmp_path, "S")
    records.path(7).write_text(text)
    assert records.read(7) is None and records.read(8) is None
    records.write(7, Record({"a": 1}, {"b": 2}, 3.5))
    assert records.read(7) == Record({"a": 1}, {"b": 2}, 3.5)
    records.remove(7)
    records.remove(7)
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_cannot_be_written_stops_no_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    Records(tmp_path / "file", "S").write(7, Record({}, {}, 1.0))
    assert "job f8 cannot be attached to later: " in caplog.text


def test_addresses(tmp_path: Path) -> None:
    executor = JobExecutor.get_instance("FluxExec", config=JobExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, FluxExecExecutor) and executor.config.ranks == len(os.sched_getaffinity(0))
    for url in ("http://x", "unix:", "exec", "/tmp/x"):
        with pytest.raises(ValueError, match="no address"):
            FluxExecExecutor(url)
    with pytest.raises(InvalidJobException, match="No such executor"):
        FluxExecExecutor("exec:nothing").submit(Job(JobSpec("true")))
    with pytest.raises(SubmitException) as caught:
        FluxExecExecutor(f"unix:{tmp_path}/none").submit(Job(JobSpec("true")))
    assert caught.value.transient


def test_a_service_that_comes_back(server: Server, tmp_path: Path) -> None:
    executor = FluxExecExecutor(f"unix:{server.path}", FluxExecConfig(ranks=4))
    job = make(f'{until_there(tmp_path / "go")}; exit 5')
    executor.submit(job)
    assert job.wait(SOON, JobState.ACTIVE) is not None
    server.end()
    server.start()
    late = make("exit 6")
    executor.submit(late)
    assert ended(late)[0].exit_code == 6
    (tmp_path / "go").touch()
    assert ended(job)[0].exit_code == 5
    executor.close()


def test_a_service_that_stays_away(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "exec"))
        listener.listen()
        executor = FluxExecExecutor(f"unix:{tmp_path}/exec", FluxExecConfig(lost_after=0.2))
        job = make("true")
        executor.submit(job)
        listener.accept()[0].close()
    status, metadata = ended(job)
    assert (status.state, metadata["reason"]) == (JobState.FAILED, "launch")     # it was never started
    assert status.message == "the execution service has not come back"
    executor.close()


# Final statuses, from what a service sent

def told(*steps: tuple[str, Any], ranks: str = "0") -> JobStatus:
    loop = Loop(virtual=True, start=1000.0)
    manager = Manager(Idset.parse(ranks), loop.now)
    mine, theirs = pair(loop)
    manager.connect(mine)
    theirs.send(Request("job-manager.exec-hello", {"service": "x"}, 1))
    job = manager.submit(jobspec(nodes=Idset.parse(ranks).count))
    loop.run()
    for kind, data in steps:
        loop.at(loop.now() + 10, lambda: None)
        loop.run()
        theirs.send(Response("x.start", {"id": job.id, "type": kind, "data": data}))
        loop.run()
    return final_status(job, "f2", 2)


START: tuple[str, Any] = ("start", {})
FINAL: tuple[str, Any] = ("release", {"ranks": "all", "final": True})


def fatal(kind: str, severity: int = 0) -> tuple[str, Any]:
    return "exception", {"severity": severity, "type": kind, "note": f"note of {kind}"}


def finish(status: int) -> tuple[str, Any]:
    return "finish", {"status": status}


@pytest.mark.parametrize(("steps", "state", "code", "reason", "message"), [
    ([START, finish(0), FINAL], JobState.COMPLETED, 0, None, None),
    ([START, finish(768), FINAL], JobState.FAILED, 3, None, None),
    ([START, finish(143), FINAL], JobState.FAILED, 143, "signal", None),        # SIGTERM with the core flag
    ([START, finish(-1), FINAL], JobState.FAILED, None, None, None),            # no wait status, no code
    ([START, fatal("timeout"), finish(15), FINAL], JobState.FAILED, 143, "timeout", "note of timeout"),
    ([START, fatal("exec"), finish(0), FINAL], JobState.FAILED, None, "lost", "note of exec"),
    ([fatal("exec"), FINAL], JobState.FAILED, None, "launch", "note of exec"),
    ([START, fatal("node-failure"), finish(256), FINAL], JobState.FAILED, 1, "node-failure", "note of node-failure"),
    ([START, fatal("cancel"), fatal("exec"), finish(15), FINAL], JobState.CANCELED, 143, "cancel", "note of cancel"),
    ([START, fatal("odd"), finish(256), FINAL], JobState.FAILED, 1, None, "note of odd"),
    ([START, fatal("node-failure", 2), finish(0), FINAL], JobState.COMPLETED, 0, None, "note of node-failure"),
    ([START, finish(0), fatal("exec"), FINAL], JobState.COMPLETED, 0, None, "note of exec"),
])
def test_final_statuses(steps: list[tuple[str, Any]], state: JobState, code: int | None, reason: str | None,
                        message: str | None) -> None:
    status = told(*steps)
    assert (status.state, status.exit_code, (status.metadata or {}).get("reason"), status.message) == (
        state, code, reason, message)


def test_spans() -> None:
    status = told(START, ("release", {"ranks": "1-2", "final": False}), ("release", {"ranks": "zzz", "final": False}),
                  ("release", {"ranks": "2", "final": False}), finish(0), FINAL, ranks="0-3")
    known = status.metadata or {}
    assert (known["processors"], known["wall_seconds"], known["spans"]) == (8, 40.0, [[4, 40.0], [4, 10.0]])
    assert sum(n * s for n, s in known["spans"]) == 200.0


RATES = """name = "x"
version = "1"
[[rate]]
type = "VBR"
name = "Processors"
rate = 1
"""


def test_what_is_charged_is_what_was_held() -> None:
    status = told(START, ("release", {"ranks": "1-2", "final": False}), finish(0), FINAL, ranks="0-3")
    seen, document = Seen(), Document()
    seen.take(JobStatus(JobState.ACTIVE, 1010.0))
    seen.take(status)
    facts.record(document, [seen])
    assert document.delivered is not None
    held = [(p.text, p.get("duration"), p.get("dynamic")) for p in document.delivered.all("Processors")]
    assert held == [("4", "20", "true"), ("4", "10", "true")]
    price = charge(document, read_rates(RATES))
    assert isinstance(price, Charge) and price.amount == 4 * 20 + 4 * 10


def test_a_broken_loop_ends_its_jobs(inside: FluxExecExecutor, caplog: pytest.LogCaptureFixture) -> None:
    job = make("sleep 3")
    inside.submit(job)
    assert job.wait(SOON, JobState.ACTIVE) is not None
    desk = inside._desk
    assert desk is not None

    def broken() -> None:
        raise OSError(errno.EIO, "broken on purpose")

    desk.loop.post(broken)
    assert ended(job)[1]["reason"] == "lost" and "broken on purpose" in caplog.text
    assert run(inside, make("exit 7"))[0].exit_code == 7


def test_documents_that_are_submitted_stay(tmp_path: Path) -> None:
    # The client of `submit` ends; a process that stays has the job manager and the service.
    (tmp_path / "a.xml").write_text('<Job><Id>a</Id><Executable>/bin/sh</Executable><Arguments>-c "sleep 0.3; exit 4"'
                                    '</Arguments><OutputFile>/dev/null</OutputFile><ErrorFile>/dev/null</ErrorFile>'
                                    '<Environment export="true"/></Job>')
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}

    def sssjob(*words: str) -> int:
        return subprocess.run([*command(), *words], env=environment, capture_output=True).returncode

    assert sssjob("submit", "--executor", "fluxexec", str(tmp_path / "a.xml")) == 0
    assert sssjob("wait", "a") == 4
