"""What every batch executor does, whatever its resource manager: one test a behaviour, over all of them.

What only one of them has stands in its own file. Silence, odd words, jobs that are lost and the like, also over all of
them: ``tests/faults``.
"""

from __future__ import annotations

import stat
import threading
from copy import copy
from pathlib import Path
from uuid import uuid4

import pytest

from psij import Job, JobAttributes, JobExecutor, JobState, QueueFullException, SubmitException
from psij.executors.batch._files import exit_file
from psij.executors.batch.batch_scheduler_executor import InvalidJobStateError
from sssjob.templates.quoting import QuotingError
from tests.gate import until_there
from tests.psij.batch_support import Stand, a_job, ended, is_seen_running, known, run_script, runs
from tests.psij.managers import MANAGERS, Manager

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest) -> Manager:
    """Each of them."""
    return MANAGERS[request.param]


def held(manager: Manager, script: str) -> Job:
    """A job that is not to start."""
    return a_job(script, attributes=JobAttributes(custom_attributes={**manager.hold}))


def deaf(quick: Stand, manager: Manager) -> None:
    """Nobody is told what there is."""
    for command in {manager.queue, *manager.ends}:
        quick.lab.fault(command, times=-1, exit=1)


def hears(quick: Stand, manager: Manager) -> None:
    for command in {manager.queue, *manager.ends}:
        quick.lab.heal(command)


def made_once(quick: Stand, manager: Manager) -> bool:
    return len(quick.lab.jobs()) == len(quick.lab.calls(manager.submit)) == 1


# --- with programs and processes -----------------------------------------------------------------------------------

def test_whole_way(manager: Manager, stand: Stand, tmp_path: Path) -> None:
    """From submission to the facts of the end; the files are private, and gone afterwards."""
    expected = manager.whole
    job = a_job(f'cat "$PSIJ_NODEFILE"; {until_there(tmp_path / "go")}', name=expected.name, stdout_path=tmp_path / "o",
                resources=expected.resources, attributes=JobAttributes(custom_attributes={**expected.custom}))
    stand.executor.submit(job)
    assert stand.executor.list() == [job.native_id]
    assert stat.S_IMODE(stand.executor.work_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((stand.executor.work_directory / f"{job.id}.job").stat().st_mode) & 0o077 == 0
    assert not [name for name in stand.files() if name.endswith(".sub")]        # a description is not needed any more
    is_seen_running(job)        # some managers name the queue of a job only while it runs
    (tmp_path / "go").touch()
    status = ended(job)
    assert (status.exit_code, stand.states(job), stand.executor.list()) == (0, [Q, A, C], [])
    assert (tmp_path / "o").read_text() == expected.nodes
    assert stand.lab.jobs()[0]["name"] == (expected.shown or expected.name)
    metadata = known(job)
    assert metadata["native_id"] == job.native_id
    assert metadata | {**expected.facts} == metadata
    assert metadata["sources"] | {**expected.sources} == metadata["sources"]
    times = [metadata[name] for name in ("submit_time", "start_time", "end_time") if name in metadata]
    assert times == sorted(times) and times[-1] == status.time
    assert stand.files() == []


@pytest.mark.parametrize(("script", "code"), [
    ("exit 0", 0), ("exit 3", 3), ("exit 139", 139), ("exit 255", 255), ("kill -9 $$", 137)])
def test_exit_codes(manager: Manager, tmp_path: Path, script: str, code: int) -> None:
    """E58: the script notes how the program ended, and ends like it."""
    executor, job = manager.executor(), a_job(script)
    assert run_script(manager, executor, job, tmp_path) == code
    noted = exit_file(executor.work_directory / f"5.{job.id}.ec", job.id)
    assert noted is not None and noted.code == code


def test_environment_that_is_not_inherited(manager: Manager, tmp_path: Path) -> None:
    """The job keeps what its manager tells it, and nothing of ours."""
    job = a_job("/usr/bin/env", stdout_path=tmp_path / "o", inherit_environment=False, environment={"A": "1"})
    run_script(manager, manager.executor(), job, tmp_path, **{manager.script.keeps: ""}, MINE="1", HOME="/ours")
    names = {line.partition("=")[0] for line in (tmp_path / "o").read_text().splitlines()}
    told = {"PSIJ_NODEFILE", manager.script.keeps, *manager.script.environment}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"A", *told}      # the shell's own


# --- submitting ----------------------------------------------------------------------------------------------------

def test_refused_for_good(manager: Manager, quick: Stand) -> None:
    """E07: what the manager says, nothing left, and the job may be submitted again."""
    quick.lab.set(wait=0.1)
    job = a_job("exit 3", attributes=manager.submitting.bad)
    with pytest.raises(SubmitException, match=manager.submitting.unknown) as raised:
        quick.executor.submit(job)
    assert not raised.value.transient
    for text in manager.submitting.refused:
        quick.lab.fault(manager.submit, exit=1, stderr=text)
        with pytest.raises(SubmitException) as raised:
            quick.executor.submit(job)
        assert (raised.value.transient, raised.value.message) == (False, text)
    assert quick.files() == [] and quick.lab.jobs() == [] and (job.status.state, job.executor) == (JobState.NEW, None)
    assert job.spec is not None
    job.spec.attributes = JobAttributes()
    quick.executor.submit(job)
    assert ended(job).exit_code == 3


def test_refused_for_now(manager: Manager, quick: Stand) -> None:
    """E09: what the manager says, and that trying again may help."""
    for text in manager.submitting.later:
        quick.lab.fault(manager.submit, exit=1, stderr=text)
        with pytest.raises(SubmitException) as raised:
            quick.executor.submit(a_job("true"))
        assert (raised.value.transient, raised.value.message) == (True, text)
    assert quick.files() == [] and quick.lab.jobs() == []


def test_refused_for_want_of_room(manager: Manager, quick: Stand) -> None:
    """As many jobs as may be: of another kind than what is refused for now, whatever the manager calls it."""
    for text in manager.submitting.full:
        quick.lab.fault(manager.submit, exit=1, stderr=text)
        with pytest.raises(QueueFullException) as raised:
            quick.executor.submit(a_job("true"))
        assert (raised.value.transient, raised.value.message) == (True, text)
    for text in (*manager.submitting.later, *manager.submitting.refused):
        quick.lab.fault(manager.submit, exit=1, stderr=text)
        with pytest.raises(SubmitException) as other:
            quick.executor.submit(a_job("true"))
        assert not isinstance(other.value, QueueFullException)
    assert quick.files() == [] and quick.lab.jobs() == []


@pytest.mark.parametrize("script", ["sleep 0.3; exit 3", "exit 3"])
def test_made_but_not_told(manager: Manager, quick: Stand, script: str) -> None:
    """E06: found by its tag, or by its own records when it was faster than the search."""
    quick.lab.fault(manager.submit, after=True, exit=1, stderr=manager.submitting.unsaid)
    job = a_job(script)
    quick.executor.submit(job)
    assert job.native_id == quick.lab.jobs()[0]["id"] and made_once(quick, manager)
    assert ended(job).exit_code == 3


def test_not_made_and_not_told(manager: Manager, quick: Stand) -> None:
    """E01: after the search submit says so, and trying again is right; where there is no search, nobody knows."""
    quick.lab.fault(manager.submit, stdout="hm\n")
    job = a_job("exit 3")
    said = "not submitted: no job id" if manager.asked_by_tag else "Nobody knows"
    with pytest.raises(SubmitException, match=said) as raised:
        quick.executor.submit(job)
    assert raised.value.transient is manager.asked_by_tag and quick.lab.jobs() == []
    if manager.asked_by_tag:
        assert quick.files() == []
        quick.executor.submit(job)
        assert ended(job).exit_code == 3 and len(quick.lab.jobs()) == 1


@pytest.mark.parametrize("answers", [True, False])
def test_nobody_knows(manager: Manager, quick: Stand, answers: bool) -> None:
    """P2: the manager is silent after a submission without answer: the next submit of this job begins with the search.

    It asks the manager, or finds the job's own record that it started. Until then the job is held, or that would tell.
    """
    quick.lab.fault(manager.submit, after=True, stdout="hm\n")
    deaf(quick, manager)
    job = held(manager, "sleep 0.2; exit 3")
    with pytest.raises(SubmitException, match="Nobody knows") as raised:
        quick.executor.submit(job)
    assert raised.value.transient is manager.asked_by_tag and job.status.state is JobState.NEW
    assert f"{job.id}.job" in quick.files()         # a manager that has it may read it only later
    if answers:
        hears(quick, manager)
    if not (answers and manager.asked_by_tag):
        quick.lab.update(1, held=False)
        quick.lab.tick()
    quick.executor.submit(job)
    assert job.native_id == quick.lab.jobs()[0]["id"] and made_once(quick, manager)
    hears(quick, manager)
    quick.lab.update(1, held=False)
    assert ended(job).exit_code == 3


@pytest.mark.parametrize("many", [0, 997])
def test_many_tags_are_one_question(manager: Manager, quick: Stand, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the search runs once, however many jobs are looked for, and answers for each of them. The queue
    is asked by another thread meanwhile."""
    jobs = [held(manager, "exit 3") for _ in range(2)]
    for job in jobs:
        quick.executor.submit(job)
    others = [str(uuid4()) for _ in range(1 + many)]
    commands, run = [], quick.executor._run_command

    def counted(command: list[str]) -> str:
        if threading.current_thread() is threading.main_thread():
            commands.append(command)
        return run(command)

    monkeypatch.setattr(quick.executor, "_run_command", counted)
    searched = quick.executor.native_ids_of([*(job.id for job in jobs), *others])
    known_ones = {job.id: job.native_id for job in jobs} if manager.asked_by_tag else {}
    assert searched.found == known_ones and (searched.silence is None) is manager.asked_by_tag
    assert len(commands) == len(quick.executor._lookup_commands(others) or ()) <= 2


# --- ends ----------------------------------------------------------------------------------------------------------

def test_cancel(manager: Manager, quick: Stand) -> None:
    """A job that runs and one that waits, the latter by another executor of this manager; a second cancel is none."""
    running, queued = runs(quick), held(manager, "sleep 600")
    quick.executor.submit(queued)
    running.cancel()
    JobExecutor.get_instance(quick.executor.name).cancel(queued)
    assert [(ended(job).state, job.status.exit_code) for job in (running, queued)] == [(X, None), (X, None)]
    assert (quick.states(running), quick.states(queued)) == ([Q, A, X], [Q, X])
    running.cancel()
    assert len(quick.lab.calls(manager.cancel)) == 2


def test_many_cancels_are_one_command(manager: Manager, quick: Stand) -> None:
    """All of them end as ours, and one that has ended meanwhile is no trouble for the others."""
    jobs = [held(manager, "sleep 600") for _ in range(5)]
    for job in jobs:
        quick.executor.submit(job)
    assert quick.executor.cancel_many(jobs[:3]) == {}
    assert len(quick.lab.calls(manager.canceling.command)) == 1
    assert {ended(job).state for job in jobs[:3]} == {X}
    quick.lab.end(str(jobs[3].native_id), 0)
    assert quick.executor.cancel_many(jobs) == {}
    assert ended(jobs[4]).state is X
    assert len(quick.lab.calls(manager.canceling.command)) <= 5


def test_many_cancels_that_nobody_takes(manager: Manager, quick: Stand) -> None:
    """Each of them is told, by two commands at most where the manager is away; nothing is left behind by that."""
    jobs = [held(manager, "sleep 600") for _ in range(4)]
    for job in jobs:
        quick.executor.submit(job)
    words = next(words for words, passes in manager.canceling.failed.items() if passes)
    quick.lab.fault(manager.canceling.command, times=-1, exit=1, stderr=words)
    failed = quick.executor.cancel_many(jobs)
    assert list(failed) == jobs and all(error.transient for error in failed.values())
    assert len(quick.lab.calls(manager.canceling.command)) == 1
    quick.lab.heal(manager.canceling.command)
    assert quick.executor.cancel_many(jobs) == {} and {ended(job).state for job in jobs} == {X}


@pytest.mark.parametrize("accounting", [True, False])
def test_left_the_queue_at_once(manager: Manager, quick: Stand, accounting: bool) -> None:
    """E20, E35: jobs gone from the queue before their end was seen get it from accounting or their exit file, and a
    cancel that was accepted is one."""
    quick.lab.set(forget=0, accounting=accounting)
    jobs = [a_job("exit 0"), a_job("exit 5")]
    for job in jobs:
        quick.executor.submit(job)
    jobs.append(runs(quick))
    jobs[2].cancel()
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(C, 0), (F, 5), (X, None)]
    assert {known(job)["sources"]["exit_code"] for job in jobs[:2]} == {"exit-file"}


def test_time_limit(manager: Manager, quick: Stand) -> None:
    """The reason is told by the manager, not by the signal; where nothing is told, the job is lost."""
    job, expected = runs(quick), manager.limit
    record = quick.lab.jobs()[0]
    quick.lab.update(1, **expected.noted(record))
    quick.lab.kill(record, 9)
    assert (ended(job).state, job.status.exit_code) == (F, expected.exit_code)
    assert (job.status.message, known(job)["reason"]) == (expected.message, expected.reason)


# --- following -----------------------------------------------------------------------------------------------------

def test_cut_answer(manager: Manager, quick: Stand) -> None:
    """E21: what is left of a cut answer ends no job."""
    jobs = [a_job("sleep 0.3"), a_job("sleep 600")]
    for job in jobs:
        quick.executor.submit(job)
    quick.lab.fault(manager.queue, times=3, cut=manager.cut)
    assert ended(jobs[0]).state is C and not jobs[1].status.final


def test_attach(manager: Manager, quick: Stand) -> None:
    """E34, E47: two follow one job; whoever comes after its end hears it where the manager remembers."""
    first, second, late = a_job("sleep 0.3; exit 6"), Job(), Job()
    quick.executor.submit(first)
    other = manager.executor(config=quick.executor.config)
    other.attach(second, first.native_id or "")
    assert (ended(first).exit_code, ended(second).exit_code, second.native_id) == (6, 6, first.native_id)
    quick.executor.attach(late, first.native_id or "")
    assert (ended(late).state, late.status.exit_code) == (F, 6 if manager.remembers else None)
    assert known(late).get("reason") == (None if manager.remembers else "lost")


def test_an_exit_file_that_is_older_than_an_attached_job(manager: Manager, quick: Stand, tmp_path: Path) -> None:
    """Native ids come round: what an earlier job of that number has left in the work directory is not this job's. NQSV
    does not say when a job was submitted."""
    first, second = a_job("sleep 0.3; exit 6"), Job()
    quick.executor.submit(first)
    other = manager.executor(config=copy(quick.executor.config))
    other.work_directory = tmp_path / "elsewhere"
    other.work_directory.mkdir()
    earlier = "00000000-0000-4000-8000-000000000001"
    (other.work_directory / f"{first.native_id}.{earlier}.ec").write_text(f"0\n{earlier}\n1000\n1001\n")
    other.attach(second, first.native_id or "")
    status = ended(second)
    if other.name == "nqsv":
        return
    assert status.exit_code != 0 and (known(second).get("sources") or {}).get("exit_code") != "exit-file"
    if manager.remembers:
        assert status.state is F
    assert ended(first).exit_code == 6


# --- texts ---------------------------------------------------------------------------------------------------------

def test_id_in_the_answer(manager: Manager) -> None:
    """E03, E04, E05: the one id, or none."""
    executor = manager.executor()
    found = {out: executor.job_id_from_submit_output(out) for out in manager.submitting.ids}
    assert found == manager.submitting.ids and all(map(executor._is_native_id, found.values()))
    for out in manager.submitting.no_ids:
        with pytest.raises(ValueError):
            executor.job_id_from_submit_output(out)


def test_answers_of_the_cancel_command(manager: Manager) -> None:
    """E31: a job that has ended is no error; a cancel that could not be says whether trying again may help."""
    executor = manager.executor()
    for text in manager.canceling.gone:
        with pytest.raises(InvalidJobStateError):
            executor.process_cancel_command_output(1, text)
    for text, transient in manager.canceling.failed.items():
        with pytest.raises(SubmitException, match="failed: ") as raised:
            executor.process_cancel_command_output(1, text)
        assert raised.value.transient is transient and text in raised.value.message


def test_what_a_directive_cannot_hold(manager: Manager) -> None:
    for directive in manager.script.unfit:
        with pytest.raises(QuotingError):
            manager.script.written(directive)


def test_names(manager: Manager) -> None:
    for name in manager.names:
        assert type(JobExecutor.get_instance(name)) is manager.executor
