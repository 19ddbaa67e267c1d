"""Many jobs: what is done while submit commands run, and what becomes of it if it goes wrong."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from psij import Job
from psij.exceptions import InvalidJobException, SubmitException
from psij.executors._local_staging import StagingError
from psij.executors.batch._staging import BatchStaging
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.cli._journal import ended_badly
from sssjob.run.adopting import Adopting
from sssjob.run.submitting import Submitting
from tests.run.support import Desk, desk_on, group, shell

NAMES = "abcd"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Two submit commands run at a time, or as many as the parameter says."""
    most = getattr(request, "param", 2)
    with desk_on("slurm", tmp_path, monkeypatch, lost_after=0.3, submit_commands=most) as desk:
        yield desk


def await_(happened: Callable[[], bool]) -> None:
    """Wait for what another thread is to do; a test that waits in vain fails."""
    until = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < until, "it does not happen"
        time.sleep(0.002)


def four() -> str:
    return group(*(shell(f"echo {name} >> ran", name=name) for name in NAMES))


def named(job: Job) -> str:
    """The name of the job by what it echoes."""
    assert job.spec is not None and job.spec.arguments is not None
    return job.spec.arguments[1].split()[1]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done, in its order: scripts, submit commands from their start to their end, native ids noted."""
    seen: list[str] = []
    script, submit, known = SlurmJobExecutor.generate_submit_script, SlurmJobExecutor._run_submit, Submitting.known

    def write(self: SlurmJobExecutor, job: Job, *more: Any) -> None:
        seen.append(f"script {named(job)}")
        script(self, job, *more)

    def run(self: SlurmJobExecutor, command: list[str]) -> str:
        seen.append("command")
        out = submit(self, command)
        seen.append("answer")
        return out

    def note(self: Submitting, job: Any, *more: Any) -> None:
        seen.append(f"known {job.plan.label}")
        known(self, job, *more)

    monkeypatch.setattr(SlurmJobExecutor, "generate_submit_script", write)
    monkeypatch.setattr(SlurmJobExecutor, "_run_submit", run)
    monkeypatch.setattr(Submitting, "known", note)
    return seen


def scripts(desk: Desk) -> int:
    return len(list((desk.folder / "work" / "slurm").glob("*.job")))


@pytest.mark.parametrize("desk", [1], indirect=True)
def test_while_a_command_runs_the_last_is_noted_and_the_next_prepared(desk: Desk,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command answers only when both are done, and not before the next one has begun. Once one was answered, the
    scripts of many are written in a row: one alone, between two commands, takes twice the CPU time."""
    seen, submit = watched(monkeypatch), SlurmJobExecutor._run_submit

    def run(self: SlurmJobExecutor, command: list[str]) -> str:
        place = seen.count("command")
        out = submit(self, command)
        beside = {f"known {name}" for name in NAMES[:place]} | {f"script {name}" for name in NAMES[:place + 2]}
        await_(lambda: beside <= set(seen))
        assert seen.count("command") == place + 1
        return out

    monkeypatch.setattr(SlurmJobExecutor, "_run_submit", run)
    desk.submit(four())
    assert sorted(seen) == sorted(["command", "answer"] * 4 + [f"{what} {n}" for what in ("script", "known")
                                                               for n in NAMES])
    assert "script d" in seen[:[n for n, what in enumerate(seen) if what == "command"][2]]
    assert set(desk.wait("g").values()) == {("done", 0)}


@pytest.mark.parametrize(("desk", "most"), [(1, 1), (2, 2), (3, 3)], indirect=["desk"])
def test_as_many_commands_run_at_a_time_as_the_setting_says(desk: Desk, monkeypatch: pytest.MonkeyPatch,
                                                           most: int) -> None:
    """The first alone; the second waits for the answer until as many run as may, and no job is lost or doubled."""
    submit, at_work, together = SlurmJobExecutor._run_submit, [0], [0]
    numbers, lock = iter(range(9)), threading.Lock()

    def run(self: SlurmJobExecutor, command: list[str]) -> str:
        with lock:
            number = next(numbers)
            at_work[0] += 1
            together[0] = max(together[0], at_work[0])
        assert number or at_work[0] == 1
        if number == 1:
            await_(lambda: together[0] == most)
        out = submit(self, command)
        with lock:
            at_work[0] -= 1
        return out

    monkeypatch.setattr(SlurmJobExecutor, "_run_submit", run)
    submission = desk.submit(four())
    assert together == [most] and desk.lab is not None
    assert sorted(str(job.row.native_id) for job in submission.jobs) == sorted(job["id"] for job in desk.lab.jobs())
    assert set(desk.wait("g").values()) == {("done", 0)}
    assert sorted(desk.text("ran").split()) == list(NAMES)


@pytest.mark.parametrize("desk", [1], indirect=True)
def test_a_signal_leaves_no_script_of_what_is_not_submitted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """E15: the second submission is finished, the others were prepared and are not begun."""
    submit = SlurmJobExecutor._run_submit

    def run(self: SlurmJobExecutor, command: list[str]) -> str:
        out = submit(self, command)
        assert desk.lab is not None
        if len(desk.lab.jobs()) == 2:
            await_(lambda: scripts(desk) == 4)
            os.kill(os.getpid(), signal.SIGTERM)
        return out

    monkeypatch.setattr(SlurmJobExecutor, "_run_submit", run)
    submission = desk.submit(four())
    assert desk.made[-1].stopped == "terminated"
    assert [job.word for job in submission.jobs] == ["running", "running", "waiting", "waiting"]
    assert scripts(desk) == 2
    assert set(desk.wait("g").values()) == {("done", 0)} and sorted(desk.text("ran").split()) == list(NAMES)


@pytest.mark.parametrize(("error", "reason"), [(InvalidJobException("no such thing"), "no such thing"),
                                               (OSError(28, "No space left on device"), "No space left")])
def test_what_cannot_be_prepared_is_told_when_its_turn_comes(desk: Desk, monkeypatch: pytest.MonkeyPatch,
                                                             error: Exception, reason: str) -> None:
    """It concerns nobody else (P5)."""
    script = SlurmJobExecutor.generate_submit_script

    def write(self: SlurmJobExecutor, job: Job, *more: Any) -> None:
        if named(job) == "b":
            raise error
        script(self, job, *more)

    monkeypatch.setattr(SlurmJobExecutor, "generate_submit_script", write)
    made = desk.submit(four())
    assert made.jobs[1].word == "failed" and reason in (made.jobs[1].outcome.message if made.jobs[1].outcome else "")
    assert desk.wait("g") == {"a": ("done", 0), "b": ("failed", None), "c": ("done", 0), "d": ("done", 0)}


def test_what_goes_wrong_meanwhile_ends_no_command(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command under way makes its job, which the next client finds by its tag."""
    with monkeypatch.context() as patch:
        patch.setattr("sssjob.run.recording.WRITE_S", 0.0)      # it goes wrong after the second, however late it is
        patch.setattr(Submitting, "_submitted", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            desk.submit(four())
    assert desk.lab is not None and len(desk.lab.jobs()) == 2
    assert set(desk.wait("g").values()) == {("done", 0)}
    assert sorted(desk.text("ran").split()) == list(NAMES) and len(desk.lab.jobs()) == 4


def test_staging_does_not_hold_up_what_is_noted(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files may take minutes; the native id of the job before is on the disk by then."""
    seen, bring = watched(monkeypatch), BatchStaging.bring

    def staged(self: BatchStaging, job: Job, *more: Any) -> bool:
        if named(job) == "b":
            await_(lambda: "known a" in seen)
        return bring(self, job, *more)

    monkeypatch.setattr(BatchStaging, "bring", staged)
    (desk.folder / "data").write_text("x")
    files = json.dumps({"source": f"file://{desk.folder}/data", "target": f"{desk.folder}/in"})
    desk.submit(group(shell("echo a"), shell("echo b", f"<Extension type='PSIJ' name='StageIn'>{files}</Extension>",
                                             name="b")))
    assert seen == ["script a", "command", "answer", "known a", "script b", "command", "answer", "known b"]
    assert set(desk.wait("g").values()) == {("done", 0)} and desk.text("in") == "x"


@pytest.mark.parametrize("leaves", [False, True])
def test_a_line_that_is_cut_while_files_are_brought_keeps_nobody_waiting(
        desk: Desk, monkeypatch: pytest.MonkeyPatch, leaves: bool) -> None:
    """No submit command ran, so the manager, which does not answer either, is not asked whether it has the job, and the
    next client need not wait until a command must have done its work: it waited a minute."""
    assert desk.lab is not None
    desk.lab.fault("squeue", times=-1, exit=1, stderr="squeue: error: Unable to contact slurm controller")
    cuts, bring = [True], BatchStaging.bring

    def brought(self: BatchStaging, job: Job, *more: Any) -> bool:
        if not cuts:
            return bring(self, job, *more)
        cuts.clear()
        if leaves:
            os.kill(os.getpid(), signal.SIGTERM)
        error = StagingError("stage-in", "the line was lost", transient=True, away=True)
        raise SubmitException("The job was not submitted", error, transient=True) from error

    monkeypatch.setattr(BatchStaging, "bring", brought)
    (desk.folder / "data").write_text("x")
    files = json.dumps({"source": f"file://{desk.folder}/data", "target": f"{desk.folder}/in"})
    submission = desk.submit(shell("cat in > o", f"<Extension type='PSIJ' name='StageIn'>{files}</Extension>"))
    assert submission.jobs[0].word == ("waiting" if leaves else "running") and len(desk.events("a", "try")) == 1
    assert [len(desk.lab.calls("sbatch")), submission.jobs[0].references] == ([0, []] if leaves else [1, ["1"]])
    desk.lab.heal("squeue")
    monkeypatch.setattr(Adopting, "_grace_over", lambda *_: False)
    assert desk.wait("a") == {"a": ("done", 0)} and len(desk.lab.calls("sbatch")) == 1


@pytest.mark.parametrize(("identifier", "more", "name"), [
    ("a", "", "a"), ("step 1/7 ü", "", "step_1_7_"), ("a", "<Name>own</Name>", "own"),
    ("a", "<Extension type='slurm' name='job-name'>theirs</Extension>", "theirs"), ("x" * 99, "", "x" * 60)])
def test_a_job_without_a_name_has_that_of_its_id(identifier: str, more: str, name: str, desk: Desk) -> None:
    """What its user knows it by is what squeue shows; a name of its own counts, whoever says it."""
    desk.submit(shell("true", more, name=identifier))
    assert desk.lab is not None
    (job,) = desk.lab.jobs()
    assert job["name"] == name


def test_a_controller_that_is_away_is_waited_for_once(desk: Desk, capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody knows of the first job whether it was made; each other one would wait as long for an answer."""
    assert desk.lab is not None
    mute = "error: Unable to contact slurm controller (connect failure)"
    for command in ("sbatch", "squeue", "sacct"):
        desk.lab.fault(command, times=-1, exit=1, stderr=f"{command}: {mute}")
    submission = desk.submit(four())
    commands = [words[0] for words in desk.lab.all_calls()]
    assert commands.count("sbatch") == 1
    assert [(job.word, job.asked, job.held_for) for job in submission.jobs] == [
        ("running", True, None), *[("waiting", False, "slurm does not answer")] * 3]
    assert ended_badly([submission], as_json=False) == 7
    assert capfd.readouterr().err.splitlines() == [
        "sssjob: a: nobody knows yet whether it was submitted; it is in the journal as @1.1, and the next client asks "
        "again and goes on: do not submit it once more",
        "sssjob: @1.2 and 2 more are held back: slurm does not answer; submitted when it does, by any client (`sssjob "
        "wait`)"]
    for command in ("sbatch", "squeue", "sacct"):
        desk.lab.heal(command)
    jobs, done = desk.client().wait(list(NAMES), 60)
    assert done and {job.word for job in jobs} == {"done"}
    assert sorted((desk.folder / "ran").read_text().split()) == list(NAMES)
