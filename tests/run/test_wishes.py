"""Jobs that are held, released and run again by whoever asks for it, through the journal."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from psij import Job, SubmitException
from sssjob.errors import UsageError
from sssjob.run.history import Event
from sssjob.run.standing import Running
from sssjob.run.wishes import Wishes
from tests.gate import until_there
from tests.run.support import Desk, after, desk_on, eventually, group, shell

GATE = until_there()      # a job that goes on when the test says so
HELD = "<Hold>User</Hold>"


def answers(jobs: list[Running], wish: str) -> dict[str, str | None]:
    return {job.plan.label: job.answers.get(wish) for job in jobs}


def asked(desk: Desk, wish: str, *names: str, **options: Any) -> dict[str, str | None]:
    return answers(desk.client().ask(wish, names, **options), wish)


def state(desk: Desk, name: str) -> tuple[str, str]:
    """A job's state in its document, and in the list."""
    job = desk.job(name)
    return str(job.plan.job.value("State")), desk.client().journal.find(name)[0].state


def test_what_was_not_submitted_yet_is_held_in_the_journal(desk: Desk) -> None:
    """b waits for a by our own means, because of its code; held, it does not start when a has ended as it should. The
    hold that the document of c asks for shows too, although the resource manager is to hold it and has no such job yet.
    """
    desk.submit(group(shell(f"{GATE}; exit 2"), shell("echo b > b", after("a", "OnExit", 2), name="b"),
                      shell("true", HELD, after("a", "OnExit", 3), name="c")))
    assert state(desk, "c") == ("Hold", "Hold")
    assert asked(desk, "release", "c") == {"c": ""} and state(desk, "c") == ("Idle", "Idle")
    assert asked(desk, "hold", "b") == {"b": ""}
    assert state(desk, "b") == ("Hold", "Hold")
    (desk.folder / "go").touch()
    assert desk.wait("a") == {"a": ("failed", 2)}
    desk.client().look([desk.client().journal.entry(1)])
    assert (desk.text("b"), desk.job("b").word) == ("", "waiting")
    assert asked(desk, "release", "b") == {"b": ""}
    assert desk.wait("b") == {"b": ("done", 0)} and desk.text("b") == "b\n"
    assert desk.events("b", "hold", "release", "answer") == [
        {}, {"wish": "hold", "refusal": ""}, {}, {"wish": "release", "refusal": ""}]


def test_one_job_is_released_by_its_id(desk: Desk) -> None:
    """Others that are held stay so."""
    desk.submit(group(shell("exit 3", HELD), shell("exit 4", HELD, name="b")))
    assert asked(desk, "release", "a") == {"a": ""}
    assert desk.wait("a") == {"a": ("failed", 3)}
    assert desk.job("b").word in ("waiting", "running") and not desk.job("b").started
    desk.client().cancel(["b"])


def test_a_job_in_the_queue_is_held_there(managed: Desk) -> None:
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("exit 3"))
    assert asked(managed, "hold", "a") == {"a": ""}
    assert managed.lab.jobs()[0]["held"] and state(managed, "a") == ("Hold", "Hold")
    managed.client().look([managed.client().journal.entry(1)])
    assert str(managed.client().journal.find("a")[0].message).startswith("held")
    assert asked(managed, "release", "a") == {"a": ""}
    assert not managed.lab.jobs()[0]["held"]
    # before anybody looked again it was Idle, and waited because it was held
    assert managed.client().journal.find("a")[0].message is None and state(managed, "a") == ("Idle", "Idle")
    managed.lab.set(wait=0)


@pytest.mark.parametrize("took", [False, True])
def test_a_hold_that_does_not_hold_is_not_shown(managed: Desk, took: bool) -> None:
    """The manager said that all was well and did nothing, or somebody released the job by its own command before any
    client saw it held: the State stayed Hold, also when the job was about to start."""
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("exit 3"))
    if not took:
        for command in ("scontrol", "qhold"):
            managed.lab.fault(command, stderr="a warning\n")
    assert asked(managed, "hold", "a") == {"a": ""}
    managed.lab.update(1, held=False)
    managed.client().look([managed.client().journal.entry(1)])
    assert state(managed, "a") == ("Idle", "Idle") == state(managed, "a")
    assert asked(managed, "hold", "a") == {"a": ""}
    assert managed.lab.jobs()[0]["held"] and state(managed, "a") == ("Hold", "Hold")
    managed.client().look([managed.client().journal.entry(1)])
    assert state(managed, "a") == ("Hold", "Hold")


def test_what_did_not_end_when_it_was_cancelled_is_named(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` that was stopped said that all was cancelled, also where the manager's command had done nothing."""
    monkeypatch.setattr("sssjob.run.engine._GRACE", 0.3)
    assert slurm.lab is not None
    slurm.lab.set(wait=600)
    slurm.lab.fault("scancel", times=-1)
    outcome = slurm.run(shell("exit 3"), timeout=0.5)
    assert (outcome.stopped, outcome.what_ended) == ("timeout", "what ran was to be cancelled, and may still run: a")
    slurm.lab.heal("scancel")
    slurm.client().cancel(["a"])


def test_what_has_begun_or_ended_is_not_held(desk: Desk) -> None:
    desk.submit(shell(GATE))
    eventually(lambda: desk.client().look([desk.client().journal.entry(1)])[0][0].jobs[0].started)
    refusal = asked(desk, "hold", "a")["a"]
    assert refusal == ("the executor local has no means by which a job that was submitted could be held"
                       if desk.executor == "local" else "it has begun, and a hold only keeps a job from starting")
    (desk.folder / "go").touch()
    assert desk.wait("a") == {"a": ("done", 0)}
    assert asked(desk, "hold", "a") == {"a": None}          # nothing was asked: the command says that it has ended
    assert len(desk.events("a", "hold")) == 1


def test_a_job_that_runs_is_put_back_into_the_queue(managed: Desk) -> None:
    assert managed.lab is not None
    managed.submit(shell(f"echo run >> runs; {GATE}"))
    eventually(lambda: managed.text("runs") == "run\n")
    eventually(lambda: managed.client().look([managed.client().journal.entry(1)])[0][0].jobs[0].started)
    assert asked(managed, "rerun", "a") == {"a": ""}
    eventually(lambda: managed.text("runs") == "run\nrun\n")
    (managed.folder / "go").touch()
    assert managed.wait("a") == {"a": ("done", 0)}
    assert managed.events("a", "rerun", "answer") == [{}, {"wish": "rerun", "begun": True},
                                                      {"wish": "rerun", "refusal": ""}]


def test_a_run_that_may_have_begun_again_is_not_asked_for_twice(managed: Desk) -> None:
    """The client was killed between the note and the command, or after it."""
    assert managed.lab is not None
    managed.submit(shell(GATE))
    eventually(lambda: managed.client().look([managed.client().journal.entry(1)])[0][0].jobs[0].started)
    managed.client().journal.entry(1).flush(Event(0, "rerun", "user", {}),
                                            Event(0, "answer", "sssjob", {"wish": "rerun", "begun": True}))
    managed.client().look([managed.client().journal.entry(1)])
    assert managed.job("a").answers == {"rerun": "the client that asked for it was killed, and nobody knows whether it "
                                                 "was done; the log shows how the job went on"}
    command = "scontrol" if managed.executor == "slurm" else "qmod"
    assert not [words for words in managed.lab.calls(command) if words[0] in ("requeue", "-rj")]
    assert asked(managed, "rerun", "a") == {"a": ""}        # who asks again is served again
    (managed.folder / "go").touch()


def test_a_wish_outlives_a_manager_that_is_silent(managed: Desk) -> None:
    assert managed.lab is not None
    managed.lab.set(wait=600)
    managed.submit(shell("true"))
    command = "scontrol" if managed.executor == "slurm" else "qhold"
    down = ("Unable to contact slurm controller" if command == "scontrol"
            else "error: commlib error: got select error (Connection refused)")
    managed.lab.fault(command, times=-1, exit=1, stderr=down)
    client = managed.client()
    assert answers(client.ask("hold", ["a"], 1.0), "hold") == {"a": None}
    if command == "scontrol":       # it does not even say which cluster it is, and its jobs are left alone
        assert client.whereabouts.silent == {1} and not client.findings
    else:
        eventually(lambda: client.findings or (client.look([client.journal.entry(1)], 1.0) and client.findings))
        assert {down in str(finding) for finding in client.findings} == {True}
    managed.lab.heal(command)
    managed.client().look([managed.client().journal.entry(1)])
    assert managed.lab.jobs()[0]["held"] and managed.job("a").answers == {"hold": ""}


def test_what_cannot_be_changed_now_is_tried_later_and_later() -> None:
    """A Slurm that was killed may refuse to change a job for ever, 5 s after it was asked (seen on a real one): the
    client that looked after many jobs did nothing else."""
    def hold(job: Job) -> None:
        raise SubmitException("Job update not available right now, try again in a bit", transient=True)

    wishes, pauses = Wishes(cast(Any, SimpleNamespace(tell=lambda *_: None))), list[float]()
    of = SimpleNamespace(executor=lambda: SimpleNamespace(hold=hold))
    job = SimpleNamespace(of=of, parts=[Job()], together=False)
    for _ in range(6):
        assert not wishes._natively(cast(Any, job), "hold")
        pauses.append(wishes._again[id(job)][1])
    assert pauses == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


def test_wishes_that_a_killed_client_left(desk: Desk) -> None:
    """They were written down; the next client carries them out, in their order."""
    desk.submit(group(shell(f"{GATE}; exit 2"), shell("true", after("a", "OnExit", 2), name="b")))
    entry = desk.client().journal.entry(1)
    entry.flush(Event(1, "hold", "user", {}), Event(1, "release", "user", {}), Event(1, "hold", "user", {}))
    desk.client().look([entry])
    eventually(lambda: not desk.job("b").wishes)
    assert desk.job("b").on_hold and state(desk, "b")[0] == "Hold"
    (desk.folder / "go").touch()
    desk.client().cancel(["b"])


def test_a_release_by_a_signal_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has an answer in the journal and no wish: whoever reads that knows that the hold is over."""
    with desk_on("local", tmp_path, monkeypatch) as desk:
        submission = desk.submit(shell("true", HELD))
        assert submission.jobs[0].on_hold and submission.entry is not None
        submission.entry.flush(Event(0, "answer", "sssjob", {"wish": "release", "refusal": ""}))
        assert not desk.job("a").on_hold
        submission.entry.flush(Event(0, "hold", "user", {}), Event(0, "release", "user", {}),
                               Event(0, "answer", "sssjob", {"wish": "hold", "refusal": ""}))
        assert not desk.job("a").on_hold        # the last wish counts, which has no answer yet
        desk.client().cancel(["a"])


def test_released_before_it_was_submitted(managed: Desk) -> None:
    """A manager would be asked for the hold together with the job: it is not, any more."""
    assert managed.lab is not None
    managed.submit(group(shell(f"{GATE}; exit 2"), shell("exit 4", HELD, after("a", "OnExit", 2), name="b")))
    assert asked(managed, "release", "b") == {"b": ""}
    (managed.folder / "go").touch()
    assert managed.wait("b") == {"b": ("failed", 4)}
    assert "hold" not in str(managed.lab.jobs()[1]["options"]).replace("hold_jid", "")


def test_an_element_that_is_held_leaves_its_place_to_the_next(desk: Desk) -> None:
    array = "<Extension type='Scheduler' name='Array'>1-3%1</Extension>"
    desk.submit(shell(f"{GATE}; echo $SLURM_ARRAY_TASK_ID >> ran", array))
    assert asked(desk, "hold", "a_2") == {"a_2": ""}
    (desk.folder / "go").touch()
    assert desk.wait("a_3") == {"a_3": ("done", 0)} and desk.text("ran") == "1\n3\n"
    assert asked(desk, "release", "a_2") == {"a_2": ""}
    assert desk.wait("a_2") == {"a_2": ("done", 0)}


# --- jobs that have ended, once more

def test_a_job_that_has_ended_is_submitted_anew(desk: Desk) -> None:
    desk.submit(shell("echo run >> runs; exit 3"))
    assert desk.wait("a") == {"a": ("failed", 3)}
    (repeated,) = desk.client().again(1, [0])
    assert repeated.entry is not None and repeated.entry.number == 2
    assert desk.wait("a") == {"a": ("failed", 3)} and desk.text("runs") == "run\nrun\n"
    client = desk.client()
    assert [(row.key, row.outcome) for row in client.journal.rows()] == [("@1.1", "failed"), ("@2.1", "failed")]
    first, again = (client.journal.entry(n).document for n in (1, 2))
    assert first == again


def test_some_jobs_of_a_group(desk: Desk) -> None:
    """What they wait for has ended as it should, or runs again too; otherwise it is refused."""
    desk.submit(group("<JobDefaults><Name>n</Name></JobDefaults>", shell("true"),
                      shell("[ -e go ]", after("a"), name="b"), shell("true", after("b"), name="c")))
    assert {name: word for name, (word, _) in desk.wait("g").items()} == {"a": "done", "b": "failed", "c": "skipped"}
    with pytest.raises(UsageError, match=r"^c waits for OnSuccess b, which does not hold; run both again$"):
        desk.client().again(1, [2])
    (repeated,) = desk.client().again(1, [1, 2])
    assert [job.plan.label for job in repeated.jobs] == ["b", "c"]
    assert [len(job.plan.needs) for job in repeated.jobs] == [0, 1]
    assert repeated.entry is not None and repeated.entry.document.count("<JobDefaults>") == 1
    # the Id of the group meant the jobs that ran again alone: a was in it no more
    assert {name: word for name, (word, _) in desk.wait("g").items()} == {"b": "failed", "c": "skipped", "a": "done"}
    (desk.folder / "go").touch()
    desk.client().again(2, [0])
    desk.wait("b")
    desk.client().again(1, [2])         # b has ended well since then: c waits for it no more
    assert desk.wait("c") == {"c": ("done", 0)}
    assert [row.key for row in desk.client().journal.find("g")] == ["@1.1", "@3.1", "@4.1"]
    assert [row.key for row in desk.client().journal.find("b")] == ["@3.1"]


def test_jobs_of_one_name_stay_in_their_group(desk: Desk) -> None:
    """Without Ids nobody can say which of the two ran again: the other one was gone from `wait` and `status`."""
    desk.submit(group(*(shell("true").replace("<Id>a</Id>", "<Name>a</Name>") for _ in range(2))))
    desk.wait("g")
    desk.client().again(1, [1])
    desk.wait("@2")
    assert [row.key for row in desk.client().journal.find("g")] == ["@1.1", "@1.2", "@2.1"]


def test_some_elements_of_an_array(desk: Desk) -> None:
    array = "<Extension type='Scheduler' name='Array'>1-5%2</Extension>"
    desk.submit(group(shell("echo $SLURM_ARRAY_TASK_ID >> ran; [ $SLURM_ARRAY_TASK_ID -lt 3 ]", array),
                      shell("true", after("a_2"), name="b")))
    assert desk.wait("b") == {"b": ("done", 0)}         # one element ended as it should, the array did not
    desk.wait("a")
    failed = [row.job for row in desk.client().journal.rows() if row.outcome == "failed"]
    (made,) = desk.client().again(1, [*failed, 5])      # b waits for an element that is not among them, and has ended
    assert [job.plan.label for job in made.jobs] == ["a_3", "a_4", "a_5", "b"]
    desk.wait("@2")
    assert sorted(desk.text("ran").split()) == ["1", "2", "3", "3", "4", "4", "5", "5"]
