"""What jobs leave behind is staged out, and removed, by whichever client looks after them; never in part."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from psij.executors import _local_staging
from psij.executors.batch._submission import Submissions
from sssjob.cli.log import said
from sssjob.run import staging as staging_module
from sssjob.run.staging import Leaving, Promised
from sssjob.run.standing import Running
from tests.run.support import Desk, after, desk_on, group, shell


def out(source: str, target: str, **members: str) -> str:
    """The Extension of a file that is staged out."""
    said = escape(json.dumps({"source": source, "target": target, **members}))
    return f'<Extension type="PSIJ" name="StageOut">{said}</Extension>'


def clean(path: str) -> str:
    """The Extension of a file that is removed."""
    return f'<Extension type="PSIJ" name="Cleanup">{path}</Extension>'


def job(script: str, *more: str, name: str = "a", folder: Path) -> str:
    """A job in a folder of its own."""
    (folder / name).mkdir(exist_ok=True)
    return shell(script, f"<InitialWorkingDirectory>{folder / name}</InitialWorkingDirectory>", *more, name=name)


def left(desk: Desk) -> list[str]:
    """The files in the folder of the job, without its streams."""
    return sorted(path.name for path in (desk.folder / "a").iterdir() if not path.name.startswith("job-"))


def steps(desk: Desk, name: str) -> list[str]:
    return [data["step"] for data in desk.events(name, "staging")]


def test_the_next_client_stages_out_and_cleans_up(desk: Desk) -> None:
    desk.submit(job("echo result > o.txt; echo rest > scrap", out("o.txt", "back"), clean("scrap"), folder=desk.folder))
    assert desk.wait("a") == {"a": ("done", 0)}
    assert desk.text("back") == "result\n"
    assert left(desk) == ["o.txt"]
    assert [step for step in steps(desk, "a") if step != "items"] == ["begun", "fetched", "done"]


def test_what_is_staged_while_a_client_leaves_is_not_begun_again(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are all there; the end of the job, which follows that, comes in as the client leaves."""
    slurm.submit(job("echo result > o.txt", out("o.txt", "back"), folder=slurm.folder))
    work, leave, leaves, begun = Promised._work, Promised.leave, threading.Event(), list[int]()

    def begun_late(self: Promised, job: Running, part: int, leaving: Leaving, *others: Any) -> None:
        begun.append(part)
        self.engine.events.put("SIGTERM")
        assert leaves.wait(30)
        work(self, job, part, leaving, *others)

    def left_late(self: Promised) -> None:
        leaves.set()
        assert all(leaving.idle.wait(30) for _, _, leaving in self._at_work)
        leave(self)

    monkeypatch.setattr(Promised, "_work", begun_late)
    monkeypatch.setattr(Promised, "leave", left_late)
    slurm.client().wait(["a"], 60)
    assert slurm.text("back") == "result\n"
    assert (slurm.wait("a"), begun, steps(slurm, "a")[-1]) == ({"a": ("done", 0)}, [0], "done")


def test_targets_are_where_the_submitting_client_was(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.submit(group(job("echo one > o", out("o", "back/one"), name="a", folder=desk.folder),
                      job("echo two > o", after("a"), out("o", "back/two", mode="MOVE"), name="b", folder=desk.folder)))
    (desk.folder / "elsewhere").mkdir()
    monkeypatch.chdir(desk.folder / "elsewhere")
    desk.wait("a", "b")
    assert (desk.text("back/one"), desk.text("back/two"), os.listdir("."), (desk.folder / "b/o").exists()) == (
        "one\n", "two\n", [], False)


@pytest.mark.parametrize("name", ["a\nb\tc", "a #1?x=%41;y", "o:p.txt", 'é "\' <&>'])
def test_a_name_is_a_path_whatever_characters_it_has(desk: Desk, name: str) -> None:
    """Only what begins with a scheme is a URI: a URI has no line ends, and ``?`` and ``#`` mean something in it."""
    folder = desk.folder / "a"
    (desk.folder / name).write_text("brought\n")
    brought = escape(json.dumps({"source": name, "target": "in"}))
    desk.submit(job("cat in > o", f'<Extension type="PSIJ" name="StageIn">{brought}</Extension>',
                    out("o", f"{folder}/{name}"), folder=desk.folder))
    assert desk.wait("a") == {"a": ("done", 0)}
    assert (folder / name).read_text() == "brought\n"


def test_the_end_is_told_when_the_files_are_there(desk: Desk) -> None:
    """Also to jobs that depend on it."""
    desk.submit(group(job("echo one > o", out("o", "back"), name="a", folder=desk.folder),
                      shell("cat back > seen", after("a"), name="b")))
    desk.wait("a", "b")
    assert desk.text("seen") == "one\n"
    assert desk.told("b") == {}         # a resource manager counts the end of the process only


@pytest.mark.parametrize(("script", "flags", "outcome", "files"), [
    ("echo x > o", "ON_SUCCESS", ("done", 0), ["back"]),
    ("echo x > o", "ON_ERROR|ON_CANCEL", ("done", 0), []),
    ("echo x > o; exit 3", "ON_ERROR", ("failed", 3), ["back"]),
    ("echo x > o; exit 3", "ON_SUCCESS", ("failed", 3), []),
    ("true", "IF_PRESENT", ("done", 0), []),
])
def test_flags(slurm: Desk, script: str, flags: str, outcome: tuple[str, int], files: list[str]) -> None:
    slurm.submit(job(script, out("o", "back", flags=flags), folder=slurm.folder))
    assert slurm.wait("a") == {"a": outcome}
    assert [name for name in ("back",) if (slurm.folder / name).exists()] == files


def test_what_cannot_be_staged_out_fails_the_job_as_in_a_run(desk: Desk) -> None:
    """What was to be removed stays where not everything was fetched."""
    texts = {}
    for name, act in (("run", "run"), ("sub", "submit")):
        text = job("echo x > scrap", out("missing", "back"), clean("scrap"), name=name, folder=desk.folder)
        if act == "run":
            desk.run(text)
        else:
            desk.submit(text)
            assert desk.wait(name) == {"sub": ("failed", 0)}
        ended = desk.job(name)
        assert ended.outcome is not None
        texts[name] = (ended.word, ended.outcome.message.replace(f"/{name}/", "/"), ended.plan.job.value("State"))
        assert (desk.folder / name / "scrap").exists()
    assert texts["run"] == texts["sub"] == (
        "failed", f"stage-out: stage_out: cannot copy {desk.folder}/missing to {desk.folder}/back: "
        f"{desk.folder}/missing does not exist", "Completed")


def _broken_copies(monkeypatch: pytest.MonkeyPatch, times: int, number: int) -> None:
    """Have the first copies fail with an error."""
    left, real = [times], _local_staging._copy_file

    def copy(source: str, target: str, stop: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise OSError(number, os.strerror(number))
        real(source, target, stop)

    monkeypatch.setattr(_local_staging, "_copy_file", copy)


def test_a_cause_that_may_pass_is_tried_again_and_counted_by_all_clients(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging_module, "_PAUSE_S", (0.01, 0.01))
    _broken_copies(monkeypatch, 3, 28)
    slurm.submit(job("echo x > o", out("o", "back"), folder=slurm.folder))
    client = slurm.client()
    assert slurm.wait("a") == {"a": ("done", 0)}
    assert slurm.text("back") == "x\n"
    assert [data["tries"] for data in slurm.events("a", "staging") if data["step"] == "failed"] == [1, 2, 3]
    assert client.journal.rows()[0].outcome == "done"


def test_a_clock_that_is_set_back_puts_off_no_try(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging_module, "_PAUSE_S", (300.0, 300.0))
    _broken_copies(monkeypatch, 1, 28)
    slurm.submit(job("echo x > o", out("o", "back"), folder=slurm.folder))
    while "failed" not in steps(slurm, "a"):
        client = slurm.client()
        client.look([client.journal.entry(1)])
    real = time.time
    monkeypatch.setattr("sssjob.run.pauses.time.time", lambda: real() - 7200)
    assert slurm.wait("a") == {"a": ("done", 0)}
    assert slurm.text("back") == "x\n"


def test_tries_end(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging_module, "_PAUSE_S", (0.01, 0.01))
    _broken_copies(monkeypatch, 1000, 28)
    slurm.submit(job("echo x > o", out("o", "back"), folder=slurm.folder))
    assert slurm.wait("a") == {"a": ("failed", 0)}
    assert len([data for data in slurm.events("a", "staging") if data["step"] == "failed"]) == 5
    ended = slurm.job("a").outcome
    assert ended is not None and ended.message.endswith("No space left on device")


def _dies_in(desk: Desk, name: str) -> None:
    """A client that is killed when it is about to call that function of the staging."""
    def wait() -> None:
        def die(*arguments: Any, **named: Any) -> None:
            time.sleep(0.3)             # what was said before is on the disk, or not: both has to do
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(_local_staging, name, die)
        desk.client().wait(["a"], 60)

    pid = os.fork()
    if pid == 0:
        wait()
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("name", ["_copy_file", "_remove", "_renamed"])
def test_a_client_that_was_killed_while_it_staged(slurm: Desk, name: str) -> None:
    slurm.submit(job("echo 1 > one; echo 2 > two; echo 3 > three; echo 4 > scrap", out("one", "back/one"),
                     out("two", "back/two", mode="MOVE"), out("three", "back/three"), clean("scrap"), clean("one"),
                     folder=slurm.folder))
    _dies_in(slurm, name)
    assert slurm.wait("a") == {"a": ("done", 0)}
    assert [slurm.text(f"back/{one}") for one in ("one", "two", "three")] == ["1\n", "2\n", "3\n"]
    assert left(slurm) == ["three"]
    assert len([step for step in steps(slurm, "a") if step == "begun"]) == 1     # the manager is not asked again


def test_a_file_that_was_moved_without_a_word_is_there(slurm: Desk) -> None:
    """The client was killed after the rename, before it could say so."""
    slurm.submit(job("echo 1 > one", out("one", "back", mode="MOVE"), folder=slurm.folder))
    _dies_in(slurm, "_renamed")
    os.rename(slurm.folder / "a/one", slurm.folder / "back")
    assert slurm.wait("a") == {"a": ("done", 0)}


@pytest.mark.parametrize("folder", [False, True])
def test_no_half_of_a_file_is_left(slurm: Desk, folder: bool) -> None:
    """The client was killed while it wrote the copy."""
    script = "mkdir d; echo 1 > d/one" if folder else "echo 1 > d"
    slurm.submit(job(script, out("d", "back/d"), folder=slurm.folder))
    pid = os.fork()
    if pid == 0:
        def die(source: str, target: str) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        _local_staging.shutil.copystat = die        # type: ignore[attr-defined]
        slurm.client().wait(["a"], 60)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    place = slurm.folder / "back" / ("d" if folder else "")
    assert [name for name in os.listdir(place) if name.startswith(".psij-")]
    other = place / ".psij-of-somebody-else"
    other.touch()
    assert slurm.wait("a") == {"a": ("done", 0)}
    assert sorted(os.listdir(place)) == [other.name, "one" if folder else "d"]


def test_a_client_that_leaves_stops_staging_before_the_next_one_begins(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, real = threading.Event(), _local_staging._copy_file
    at_work: list[str] = []

    def slow(source: str, target: str, stop: Any) -> None:
        at_work.append("begun")
        begun.set()
        until = time.monotonic() + 30
        while len(at_work) == 1 and time.monotonic() < until:
            if stop():
                at_work.append("left")
                raise _local_staging.StagingStopped
            time.sleep(0.01)
        real(source, target, stop)

    monkeypatch.setattr(_local_staging, "_copy_file", slow)
    slurm.submit(job("echo x > o", out("o", "back"), folder=slurm.folder))
    client = slurm.client()
    jobs: list[Running] = []
    while not begun.is_set():
        jobs, done = client.wait(["a"], 2)
        assert not done
    assert at_work == ["begun", "left"]
    assert jobs[0].row.state == "Running" and jobs[0].row.outcome is None
    assert slurm.wait("a") == {"a": ("done", 0)}


def test_a_status_waits_for_what_it_stages(slurm: Desk) -> None:
    slurm.submit(job("echo x > o", out("o", "back"), folder=slurm.folder))
    until = time.monotonic() + 60
    client = slurm.client()
    entry = client.journal.entry(1)
    while not (submission := client.look([entry])[0][0]).ended and time.monotonic() < until:
        assert steps(slurm, "a") in ([], ["begun", "items", "done"])
    assert submission.ended and slurm.text("back") == "x\n"


def test_staging_that_is_cancelled(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def until_stopped(source: str, target: str, stop: Any) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if stop():
                raise _local_staging.StagingStopped
            time.sleep(0.01)

    monkeypatch.setattr(_local_staging, "_copy_file", until_stopped)
    slurm.submit(job("echo x > o", out("o", "back"), folder=slurm.folder))
    waiting = threading.Thread(target=slurm.wait, args=("a",))
    waiting.start()
    while "begun" not in steps(slurm, "a"):
        time.sleep(0.05)
    slurm.client().cancel(["a"], 0.1)
    waiting.join(60)
    ended = slurm.job("a")
    assert ended.outcome is not None and (ended.word, ended.outcome.message) == (
        "canceled", "cancel: canceled on request while files were staged out")


def keepers(desk: Desk) -> list[int]:
    """Processes that look after the jobs of a journal on this machine."""
    keepers = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(desk.folder / "journal.db") in words and any(b"keeper" in word for word in words):
                keepers.append(int(folder.name))
    return keepers


def test_jobs_of_this_machine_that_lose_who_looks_after_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(job("while ! test -e ../go; do sleep 0.05; done; echo x > o", out("o", "back", mode="MOVE"),
                        clean("o"), folder=tmp_path))
        for pid in keepers(desk):
            os.kill(pid, signal.SIGKILL)
        (tmp_path / "go").touch()
        assert desk.wait("a") == {"a": ("done", 0)}
        assert (desk.text("back"), left(desk)) == ("x\n", [])
        assert desk.client().journal.entry(1).ended is not None


def test_the_log_tells_of_files_in_words(slurm: Desk) -> None:
    slurm.submit(job("echo x > o", out("o", "back"), clean("o"), folder=slurm.folder))
    slurm.wait("a")
    entry = slurm.client().journal.entry(1)
    assert [said(event) for event in entry.events() if event.kind == "staging"] == [
        "files: to be staged out after COMPLETED", "files: 1 staged out", "files: all staged out", "files: done"]


def test_a_file_that_was_moved_in_is_not_missed_by_the_next_client(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client was killed after it had moved the file to the job, before the submit command ran."""
    (slurm.folder / "input").write_text("in\n")
    staged = '<Extension type="PSIJ" name="StageIn">{"source": "input", "target": "input", "mode": "MOVE"}</Extension>'
    text = job("cat input > o", staged, out("o", "back"), folder=slurm.folder)
    pid = os.fork()
    if pid == 0:
        def die(self: Submissions, job: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

        monkeypatch.setattr(Submissions, "submit", die)
        slurm.submit(text)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert not (slurm.folder / "input").exists() and slurm.text("a/input") == "in\n"
    assert slurm.wait("a") == {"a": ("done", 0)}
    assert slurm.text("back") == "in\n"
