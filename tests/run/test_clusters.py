"""One journal and one home for several clusters: each client looks after the jobs of the cluster that it talks to."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from sssjob.errors import UsageError
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.xml.reader import read_document
from tests.fakes import sge, slurm
from tests.fakes.lab import Lab, install
from tests.run.support import Desk, after, desk_on, group, shell

FAKES = {"slurm": slurm, "sge": sge}


class Twins:
    """Two clusters of one kind that count from 1, with one journal and one work directory."""

    def __init__(self, desk: Desk, patch: pytest.MonkeyPatch) -> None:
        self.desk, self.patch, self.path = desk, patch, os.environ["PATH"]
        self.labs: dict[str, Lab] = {}
        fake = FAKES[desk.executor]
        for name in ("here", "there"):
            folder = desk.folder / name
            self.labs[name] = install(str(fake.__file__), fake.COMMANDS, folder / "lab", folder / "bin")
            self.labs[name].set(cluster=name)
            common = folder / "default" / "common"
            common.mkdir(parents=True)
            (common / "act_qmaster").write_text(f"{name}.example\n")

    def at(self, name: str) -> Lab:
        """Have commands go to a cluster; what a process knows of the other one is forgotten."""
        folder = self.desk.folder / name
        self.desk.close()
        self.desk.made.clear()
        self.patch.setenv("PATH", f"{folder / 'bin'}:{self.path}")
        self.patch.setenv("SGE_ROOT", str(folder))
        return self.labs[name]


@pytest.fixture(params=["slurm", "sge"])
def twins(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Twins]:
    with desk_on(request.param, tmp_path, monkeypatch) as desk:
        made = Twins(desk, monkeypatch)
        yield made
        for lab in made.labs.values():
            lab.close()


def told(client: Client) -> list[str]:
    return [finding.message for finding in client.findings]


def test_jobs_of_another_cluster_are_left_alone(twins: Twins) -> None:
    """Neither followed, nor believed, nor cancelled, nor submitted anew: the journal has what it had, and says where
    they are; and the other cluster's job of the same id runs on."""
    desk, there = twins.desk, twins.at("there")
    desk.submit(group(shell("sleep 600", name="a"), shell("true", after("a", "OnFailure"), name="b")))
    here = twins.at("here")
    other = here.stranger()
    assert other["id"] == desk.job("a").row.native_id == "1"
    client = desk.client()
    (submission,), answered = client.look([client.journal.entry(1)])
    assert answered and not submission.owned and list(client.whereabouts.elsewhere) == [1]
    _, done = client.cancel(["a"], 5)
    assert not done and "there" in told(client)[0] and "here" in told(client)[0]
    assert desk.client().ask("hold", ["b"], 3600)[0].answers == {}      # nobody here answers: it is not waited for
    desk.client().look([desk.client().journal.entry(1)])
    assert [job["canceled"] for lab in (here, there) for job in lab.jobs() if job["id"] == "1"] == [False, False]
    assert len(here.jobs()) == 1 and not here.calls("sbatch") + here.calls("qsub")
    twins.at("there")
    assert desk.wait("a") == {"a": ("canceled", None)}      # the wish was kept
    assert next(job for job in there.jobs() if job["id"] == "1")["canceled"] is True
    twins.at("here")
    with pytest.raises(UsageError, match=r"@1 was submitted on another cluster, .*there.*: run its jobs"):
        desk.client().again(1, [0])     # it would run beside other files, for another account
    assert len(here.jobs()) == 1


def test_a_lost_submission_is_looked_for_where_it_was_made(twins: Twins) -> None:
    """A client that was killed while it submitted: the tag is looked for on its own cluster only, so that nothing is
    submitted a second time."""
    desk, there = twins.desk, twins.at("there")
    command = {"slurm": "sbatch", "sge": "qsub"}[desk.executor]
    there.fault(command, kill="after")
    desk.killed(lambda: desk.submit(shell("sleep 1; exit 4", name="a")))
    here = twins.at("here")
    for _ in range(2):
        client = desk.client()
        client.look([client.journal.entry(1)], 4)
    assert here.calls(command) == [] and len(there.jobs()) == 1
    twins.at("there")
    assert desk.wait("a") == {"a": ("failed", 4)} and len(there.jobs()) == 1


def test_each_submission_goes_on_at_home(twins: Twins) -> None:
    """Jobs of equal ids on two clusters have their own ends, and what waits for them starts beside them."""
    desk = twins.desk
    labs = {}
    for name, code in (("there", 3), ("here", 0)):
        labs[name] = twins.at(name)
        desk.submit(group(shell(f"sleep 1; exit {code}", name=f"{name}-a"),
                          shell("true", after(f"{name}-a", "OnExit"), name=f"{name}-b")))
    assert desk.wait("here-a", "here-b") == {"here-a": ("done", 0), "here-b": ("done", 0)}
    twins.at("there")
    assert desk.wait("there-a", "there-b") == {"there-a": ("failed", 3), "there-b": ("done", 0)}
    assert [len(lab.jobs()) for lab in labs.values()] == [2, 2]


def test_no_dependency_on_a_job_of_another_cluster(twins: Twins) -> None:
    """The manager is not told to wait for an id that means another job there."""
    desk = twins.desk
    twins.at("there")
    desk.submit(shell("sleep 600", name="a"))
    here = twins.at("here")
    here.stranger()
    submission = desk.submit(shell("true", after("a", "OnExit"), name="b"))
    assert submission.jobs[0].word == "waiting" and len(here.jobs()) == 1


def test_a_cap_counts_jobs_of_its_cluster(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in flight on the other cluster takes no room here, unless the cap is one of all executors together."""
    desk = twins.desk
    monkeypatch.setenv("SSSJOB_MAX_QUEUED", "1")
    twins.at("there")
    desk.submit(shell("sleep 600", name="a"))
    twins.at("here")
    assert desk.submit(shell("sleep 600", name="b")).jobs[0].word == "running"
    assert desk.submit(shell("sleep 600", name="c")).jobs[0].held_for == (
        f"of {desk.executor} no more than 1 may be in flight")
    monkeypatch.setenv("SSSJOB_MAX_QUEUED", "5")
    monkeypatch.setenv("SSSJOB_MAX_QUEUED_TOTAL", "2")
    assert desk.submit(shell("sleep 600", name="d")).jobs[0].held_for == (
        "of all executors no more than 2 may be in flight")


def test_a_manager_that_does_not_say_which_cluster_it_is(twins: Twins) -> None:
    """Nothing is done for its jobs meanwhile, and that it gave no answer is the answer."""
    if twins.desk.executor != "slurm":
        return      # Grid Engine's files say it
    desk, there = twins.desk, twins.at("there")
    desk.submit(shell("sleep 600", name="a"))
    there = twins.at("there")
    there.fault("scontrol", times=-1, exit=1, stderr="slurm_load_ctl_conf error: Unable to contact slurm controller")
    client = desk.client()
    (submission,), answered = client.look([client.journal.entry(1)], 2)
    assert not answered and not submission.owned and not client.whereabouts.elsewhere
    there.heal("scontrol")
    desk.client().cancel(["a"], 60)
    there = twins.at("there")
    there.fault("scontrol", times=-1, exit=1, stderr="slurm_load_ctl_conf error: Unable to contact slurm controller")
    assert desk.client().refresh(["a"]).silent == ["slurm"]


MUTE = "slurm_load_ctl_conf error: Unable to contact slurm controller"


def test_a_submission_of_which_nobody_knows_the_cluster(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its manager did not say which one it is, and the client was killed: a client on another cluster concludes nothing
    from having none of its jobs, does not submit them, and says so. By the same way it is the same cluster, even while
    that says nothing; from another host it is the one that has a job with a tag of it."""
    if twins.desk.executor != "slurm":
        return      # Grid Engine's files say it
    desk, there = twins.desk, twins.at("there")
    there.fault("scontrol", times=-1, exit=1, stderr=MUTE)
    there.fault("sbatch", kill="after")
    desk.killed(lambda: desk.submit(group(shell("sleep 600", name="a"), shell("sleep 600", name="b"))))
    assert len(there.jobs()) == 1
    here = twins.at("here")
    client = desk.client()
    _, done = client.cancel(["a"], 10)
    assert not done and list(client.whereabouts.elsewhere) == [1] and not desk.job("a").ended
    assert "did not say which cluster it is" in told(client)[0]
    assert here.jobs() == [] and desk.client().refresh(["a"]).facts == {}
    there = twins.at("there")
    client = desk.client()
    (submission,), _ = client.look([client.journal.entry(1)], 10)
    assert submission.owned and submission.cluster is None and not client.whereabouts.elsewhere
    assert desk.wait("a") == {"a": ("canceled", None)}      # the wish was kept
    there.heal("scontrol")
    there = twins.at("there")
    monkeypatch.setattr("socket.gethostname", lambda: "login2")
    client = desk.client()
    (submission,), _ = client.look([client.journal.entry(1)], 10)
    assert submission.owned and "there" in str(submission.cluster)


def test_the_cluster_is_noted_as_soon_as_its_manager_says_it(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the client that submits, when it has a native id at the latest."""
    if twins.desk.executor != "slurm":
        return      # Grid Engine's files say it
    monkeypatch.setattr("sssjob.run.placing.ASK_AGAIN_S", 0.0)
    monkeypatch.setattr("sssjob.run.entering.ASK_AGAIN_S", 0.0)
    desk, there = twins.desk, twins.at("there")
    there.fault("scontrol", times=2, exit=1, stderr=MUTE)       # when it is written down, and before it is submitted
    assert "there" in str(desk.submit(shell("true", name="a")).cluster)
    with open_journal(desk.folder / "journal.db") as journal:
        assert "there" in str(journal.entry(1).cluster)


def test_the_journal_is_free_while_a_manager_is_asked(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller may take a minute for its answer: other clients write meanwhile."""
    desk = twins.desk
    twins.at("here")
    desk.submit(shell("true", name="a"))
    answers: list[str] = []

    def slow(self: BatchSchedulerExecutor) -> object:
        with closing(sqlite3.connect(desk.folder / "journal.db", timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")        # raises where somebody holds it
        answers.append("free")
        return cluster(self)

    cluster = BatchSchedulerExecutor.cluster
    monkeypatch.setattr(BatchSchedulerExecutor, "cluster", slow)
    desk.submit(shell("true", name="b"))
    assert set(answers) == {"free"}
    answers.clear()
    desk.client().run(read_document(shell("true", name="c").encode()), desk.executor, cwd=desk.folder)
    assert set(answers) == {"free"}


def test_an_attached_job_of_which_nobody_knows_the_cluster(twins: Twins) -> None:
    """It is not lost because another cluster does not have it."""
    if twins.desk.executor != "slurm":
        return      # Grid Engine's files say it
    desk, there = twins.desk, twins.at("there")
    native_id = there.stranger()["id"]
    there.fault("scontrol", times=-1, exit=1, stderr=MUTE)
    desk.client().attach("slurm", native_id)
    twins.at("here")
    client = desk.client()
    assert client.wait([native_id], 3)[1] is False and list(client.whereabouts.elsewhere) == [1]


def test_journals_keep_the_cluster(twins: Twins) -> None:
    """With the submission; a list shows it."""
    twins.at("there")
    twins.desk.submit(shell("true", name="a"))
    with open_journal(twins.desk.folder / "journal.db") as journal:
        (row,) = journal.rows()
        assert row.cluster is not None and "there" in row.cluster and row.record()["cluster"] == row.cluster


def test_records_of_others_are_told_of(twins: Twins) -> None:
    """The id of a job that runs no more is another job's: run, status and log say what was left out."""
    desk, lab = twins.desk, twins.at("here")
    desk.submit(shell("exit 3", name="a"))
    while any(job["end"] is None for job in lab.jobs()):
        time.sleep(0.05)
    lab.begin_anew()
    lab.stranger()
    client = desk.client()
    jobs, done = client.wait(["a"], 60)
    assert done and jobs[0].row.outcome == "failed" and jobs[0].row.exit_code == 3
    assert {finding.rule for finding in client.findings} == {"SSS622"} and desk.job("a").not_its_own
    assert any("SSS622" in data.get("text", "") for data in desk.events("a", "note"))


def test_files_of_two_clusters_never_meet(twins: Twins) -> None:
    """Records, node file and output of two jobs of one native id in one work directory: each job sees its own, and what
    one of them leaves when it has ended is removed without those of the other."""
    desk = twins.desk
    twins.at("there")
    desk.submit(shell("sleep 3; cat $PSIJ_NODEFILE >nodes; exit 4", name="a"))
    twins.at("here")
    desk.submit(shell("exit 5", name="b"))
    assert desk.job("a").row.native_id == desk.job("b").row.native_id == "1"
    assert desk.wait("b") == {"b": ("failed", 5)}
    left = [path.name for path in (desk.folder / "work" / desk.executor).iterdir()]
    assert left and all(desk.job("a").tags[0] in name for name in left)     # type: ignore[operator]
    twins.at("there")
    assert desk.wait("a") == {"a": ("failed", 4)} and desk.text("nodes")
    assert list((desk.folder / "work" / desk.executor).iterdir()) == []


def test_no_dependency_waits_for_a_stranger(twins: Twins) -> None:
    """The job that another one waits for has ended, and its id is that of a job that runs on."""
    desk, lab = twins.desk, twins.at("here")
    desk.submit(shell("exit 3", name="a"))
    while any(job["end"] is None for job in lab.jobs()):
        time.sleep(0.05)
    lab.begin_anew()
    lab.stranger()
    outcome = desk.run(shell("exit 4", after("a", "OnFailure"), name="b"))
    assert [(job.word, job.exit_code) for job in outcome.jobs] == [("failed", 4)]
