"""Dependencies: told to the resource manager where it means the same as we do, kept by us where it does not."""

from __future__ import annotations

import time
from io import StringIO
from pathlib import Path

import pytest

from psij import Job, JobAttributes, JobSpec, JobStatus
from psij.executors.batch._followed import Followed
from psij.executors.batch._watch import Watcher
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from sssjob.findings import Findings, Policy
from sssjob.run.client import Client
from sssjob.run.events import Listener
from sssjob.run.running import executor_of
from sssjob.run.standing import Submission
from sssjob.xml.reader import read_document
from tests.gate import until_there
from tests.run.support import Desk, after, desk_on, eventually, group, shell

GATE = until_there()


def test_every_condition_after_every_end(desk: Desk) -> None:
    """One group with all of them: what follows a success, a failure, a job that was left out."""
    ends = {"well": "true", "badly": "exit 3"}
    jobs = [shell(script, name=name) for name, script in ends.items()]
    jobs.append(shell("true", after("badly"), name="never"))
    expected = {"well": ("done", 0), "badly": ("failed", 3), "never": ("skipped", None)}
    may = {("well", "OnSuccess"), ("well", "OnExit"), ("badly", "OnFailure"), ("badly", "OnExit")}
    for other in ("well", "badly", "never"):
        for condition in ("OnSuccess", "OnFailure", "OnExit"):
            name = f"{other}-{condition}"
            jobs.append(shell(f"touch {name}", after(other, condition), name=name))
            expected[name] = ("done", 0) if (other, condition) in may else ("skipped", None)
    jobs += [shell("true", after("badly", "OnExit", code), name=f"code-{code}") for code in (3, 4)]
    expected |= {"code-3": ("done", 0), "code-4": ("skipped", None)}
    desk.submit(group(*jobs))
    assert desk.wait("g") == expected
    assert {p.name for p in desk.folder.glob("*-On*") if not p.suffix} == {f"{a}-{b}" for a, b in may}
    skipped = desk.job("never").plan.job
    assert [skipped.value(tag) for tag in ("State", "StartTime", "EndTime", "ExitCode", "StatusMessage")] == [
        "Completed", None, None, None, "dependency: OnSuccess badly does not hold"]


def test_what_the_resource_manager_is_told(desk: Desk) -> None:
    """It waits where it knows the kind and cannot take a job that was left out for one that has ended."""
    desk.submit(group(shell(f"{GATE}; exit 2"), shell("true", after("a"), name="ok"),
                      shell("true", after("a", "OnFailure"), name="notok"),
                      shell("true", after("a", "OnExit"), name="any"),
                      shell("true", after("a", "OnExit", 2), name="code"), shell("true", after("ok"), name="chain"),
                      shell("true", after("ok", "OnExit"), name="left")))
    id_ = {name: desk.job(name).row.native_id for name in ("a", "ok")}
    kill = {"slurm.kill-on-invalid-dep": "yes"}
    expected: dict[str, dict[str, dict[str, str]]] = {
        "local": {}, "sge": {"any": {"sge.hold_jid": str(id_["a"])}},
        "slurm": {"ok": {"slurm.dependency": f"afterok:{id_['a']}"} | kill,
                  "notok": {"slurm.dependency": f"afternotok:{id_['a']}"} | kill,
                  "any": {"slurm.dependency": f"afterany:{id_['a']}"} | kill,
                  "chain": {"slurm.dependency": f"afterok:{id_['ok']}"} | kill}}
    names = ("ok", "notok", "any", "code", "chain", "left")
    assert {name: told for name in names if (told := desk.told(name))} == expected[desk.executor]
    (desk.folder / "go").touch()
    ends = desk.wait("g")
    assert {name: word for name, (word, _) in ends.items()} == {
        "a": "failed", "ok": "skipped", "notok": "done", "any": "done", "code": "done", "chain": "skipped",
        "left": "skipped"}


def test_a_client_that_is_killed_leaves_a_group_that_goes_on(desk: Desk) -> None:
    text = group(shell(f"{GATE}; echo a >> ran"), shell("echo b >> ran; exit 1", after("a"), name="b"),
                 shell("echo c >> ran", after("b", "OnFailure"), name="c"),
                 shell("echo d >> ran", after("b"), name="d"))
    desk.killed(lambda: desk.submit(text))
    (desk.folder / "go").touch()
    if desk.executor == "slurm":        # without any client: b was told to wait for a
        eventually(lambda: "b" in desk.text("ran"))
    assert {n: word for n, (word, _) in desk.wait("g").items()} == {
        "a": "done", "b": "failed", "c": "done", "d": "skipped"}
    assert desk.text("ran") == "a\nb\nc\n"


def test_the_manager_that_lets_it_wait_for_ever(slurm: Desk) -> None:
    """Where the job that cannot start any more stays in the queue, it is taken out."""
    assert slurm.lab is not None
    slurm.submit(group(shell(f"{GATE}; exit 1"), shell("true", after("a"), name="b")))
    number = int(str(slurm.job("b").row.native_id))
    slurm.lab.update(number, after=[], held=True)        # as without --kill-on-invalid-dep
    (slurm.folder / "go").touch()
    assert slurm.wait("g") == {"a": ("failed", 1), "b": ("skipped", None)}
    assert [words for words in slurm.lab.calls("scancel")] == [[str(number)]]
    assert {"text": "OnSuccess a does not hold: it is taken out of the queue"} in slurm.events("b", "note")


def test_the_manager_that_ends_it_although_it_may_run(slurm: Desk) -> None:
    """A manager that has forgotten the first job takes its success for impossible; we know better, in the end."""
    assert slurm.lab is not None
    slurm.submit(group(shell(GATE), shell("echo b > b", after("a"), name="b")))
    number = int(str(slurm.job("b").row.native_id))
    slurm.lab.update(number, canceled=True, end=slurm.lab.now(), never=True, after=[])
    (slurm.folder / "go").touch()
    assert slurm.wait("g") == {"a": ("done", 0), "b": ("done", 0)}
    assert slurm.text("b") == "b\n"
    assert [bool(data.get("after")) for data in slurm.events("b", "intent")] == [True, False]


def test_a_job_that_its_user_ends_while_it_waits(slurm: Desk) -> None:
    slurm.submit(group(shell(GATE), shell("true", after("a"), name="b")))
    client = slurm.client()
    jobs, done = client.cancel(["b"], 30)
    assert done and jobs[0].word == "canceled"
    (slurm.folder / "go").touch()
    assert slurm.wait("g") == {"a": ("done", 0), "b": ("canceled", None)}


def test_dependencies_that_the_manager_does_not_take(slurm: Desk) -> None:
    """A submission that is refused for its dependency goes without it, when it may."""
    assert slurm.lab is not None
    slurm.lab.fault("sbatch", skip=1, exit=1, stderr="sbatch: error: Job dependency problem")
    slurm.submit(group(shell(GATE), shell("echo b > b", after("a"), name="b")))
    assert slurm.job("b").word == "waiting"
    (slurm.folder / "go").touch()
    assert slurm.wait("g") == {"a": ("done", 0), "b": ("done", 0)}


# --- jobs outside the document

def test_a_job_of_the_journal(desk: Desk) -> None:
    desk.submit(shell(f"{GATE}; exit 5", name="first"))
    desk.submit(group(shell("echo x >> ran", after("first", "OnFailure"), name="x"),
                      shell("true", after("first"), name="y")))
    assert desk.text("ran") == ""
    if desk.executor == "slurm":
        assert desk.told("x")["slurm.dependency"] == f"afternotok:{desk.job('first').row.native_id}"
    (desk.folder / "go").touch()
    assert desk.wait("g") == {"x": ("done", 0), "y": ("skipped", None)}
    assert desk.wait("first") == {"first": ("failed", 5)}
    assert desk.events("x", "after") == [{"need": 0, "keys": ["@1.1"]}]


def test_jobs_of_the_journal_by_their_name(desk: Desk) -> None:
    """All jobs of that Name that have not ended; where all have, those that were submitted last."""
    for n, script in enumerate(("exit 5", GATE, GATE)):
        desk.submit(shell(script, "<Name>prepare</Name>", name=f"p{n}"))
        if not n:
            desk.wait("p0")
    named = after("prepare").replace("<Dependency ", "<Dependency designator='JobName' ")
    desk.submit(shell("echo x >> ran", named, name="x"))
    assert desk.events("x", "after") == [{"need": 0, "keys": ["@2.1", "@3.1"]}]
    (desk.folder / "go").touch()
    assert desk.wait("p1", "p2", "x") == {"p1": ("done", 0), "p2": ("done", 0), "x": ("done", 0)}
    desk.submit(shell("true", named, name="y"))
    assert desk.events("y", "after") == [{"need": 0, "keys": ["@3.1"]}]


def test_a_job_of_the_journal_whose_callback_is_late(slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """psij knows that it is alive a moment before its callback comes, which under load can be the last moment."""
    slurm.submit(shell(GATE, name="first"))
    first, client = slurm.job("first").row.native_id, slurm.client()
    client.look([client.journal.entry(1)])
    put = Listener.job_status_changed

    def late(self: Listener, job: Job, status: JobStatus) -> None:
        if job.native_id == first:
            time.sleep(1)
        put(self, job, status)

    monkeypatch.setattr(Listener, "job_status_changed", late)
    slurm.submit(shell("true", after("first"), name="x"))
    assert slurm.told("x")["slurm.dependency"] == f"afterok:{first}"
    monkeypatch.undo()


def test_an_end_that_is_written_just_before_its_job_is_taken_over(
        slurm: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes it over reads the end with the lease, and the jobs that wait for it go on."""
    slurm.submit(shell(f"{GATE}; exit 2"))
    slurm.submit(shell("true", after("a", "OnExit", 2), name="b"))
    client, own, asked = slurm.client(), Client.own, list[int]()

    def own_late(self: Client, submission: Submission) -> bool:
        if self is client and submission.entry is not None and submission.entry.number == 1:
            asked.append(1)
            if len(asked) == 1:         # somebody else has the lease, who ends when he has written the end
                return False
            (slurm.folder / "go").touch()
            slurm.wait("a")
        return own(self, submission)

    monkeypatch.setattr(Client, "own", own_late)
    jobs, done = client.wait(["b"], 20)
    assert done and len(asked) > 1 and [job.word for job in jobs] == ["done"]


def test_a_job_of_the_journal_that_has_ended(desk: Desk) -> None:
    desk.submit(shell("exit 5", name="first"))
    desk.wait("first")
    outcome = desk.run(shell("true", after("first", "OnExit", 5), name="x"))
    assert [job.word for job in outcome.jobs] == ["done"] and outcome.exit_code == 0


def test_a_native_id_that_nobody_here_knows(slurm: Desk) -> None:
    findings = Findings()
    submission = slurm.client(findings=findings).submit(
        read_document(shell("true", after("4711"), name="x").encode()), "slurm", cwd=slurm.folder)
    assert submission is not None
    assert [(f.rule, f.severity) for f in findings if f.subject == "Dependency"] == [("SSS504", "warning")]
    assert slurm.told("x")["slurm.dependency"] == "afterok:4711"
    assert slurm.wait("x") == {"x": ("done", 0)}


@pytest.mark.parametrize(("executor", "dependency"), [
    ("local", after("4711")), ("sge", after("4711")), ("slurm", after("prepare")),
    ("slurm", after("4711", "OnExit", 3)), ("slurm", after("@1.1")),
    ("slurm", "<Dependency designator='JobName'>4711</Dependency>"),
])
def test_strangers(executor: str, dependency: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on(executor, tmp_path, monkeypatch) as desk:
        for text in (shell("true", dependency), group(shell("true", dependency))):
            if "designator" not in dependency or "JobGroup" in text:
                assert desk.refused(text) == [("SSS605", "Dependency")]


def test_the_policy_does_not_weaken_strangers(slurm: Desk) -> None:
    client = slurm.client()
    assert client.submit(read_document(shell("true", after("prepare")).encode()), "slurm", policy=Policy.IGNORE) is None


# --- many

def test_many_after_many_take_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand jobs after a thousand of one name: two thousand edges, not a million."""
    from sssjob.run.gates import Gates
    from sssjob.run.plan import outline
    from sssjob.run.standing import Submission

    count = 1000
    jobs = [shell("true", name=f"a{n}").replace("</Id>", "</Id><Name>all</Name>") for n in range(count)]
    jobs += [shell("true", "<Dependency designator='JobName'>all</Dependency>", name=f"b{n}") for n in range(count)]
    document = read_document(group(*jobs).encode())
    submission = Submission(document, lambda: pytest.fail("nobody is asked"))
    submission.take_plan(outline(document))
    gates = Gates(submission.jobs)
    assert len({id(gate) for job in submission.jobs for gate in gates.of(job)}) == 1
    for job in submission.jobs[:count]:
        assert gates.verdict(submission.jobs[-1]) is False
        job.word = "done"
        job.outcome = object()  # type: ignore[assignment]
        freed = gates.ended(job)
    assert len(freed) == count and gates.verdict(submission.jobs[-1]) is True


# --- what executors say

IDS = {"ok": ["1", "2"], "notok": ["3"], "any": ["4"]}


@pytest.mark.parametrize(("name", "all_", "ok", "any_"), [
    ("slurm", {"slurm.dependency": "afterok:1:2,afternotok:3,afterany:4", "slurm.kill-on-invalid-dep": "yes"},
     {"slurm.dependency": "afterok:1", "slurm.kill-on-invalid-dep": "yes"},
     {"slurm.dependency": "afterany:1", "slurm.kill-on-invalid-dep": "yes"}),
    ("pbs", {"pbs.W": "depend=afterok:1:2,afternotok:3,afterany:4"}, {"pbs.W": "depend=afterok:1"},
     {"pbs.W": "depend=afterany:1"}),
    ("lsf", {"lsf.w": "done(1) && done(2) && exit(3) && ended(4)"}, {"lsf.w": "done(1)"}, {"lsf.w": "ended(1)"}),
    ("sge", None, None, {"sge.hold_jid": "1"}), ("cobalt", None, {"cobalt.dependencies": "1"}, None),
    ("flux", None, {"flux.dependency": "afterok:1"}, {"flux.dependency": "afterany:1"}),
    ("htcondor", None, None, None), ("nqsv", None, None, None),
])
def test_words_for_dependencies(name: str, all_: object, ok: object, any_: object, tmp_path: Path) -> None:
    """What executors say is what they take: the submit script has the option."""
    executor = executor_of(name, BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    assert [executor.dependency_attributes(IDS), executor.dependency_attributes({"ok": ["1"]}),
            executor.dependency_attributes({"any": ["1"]})] == [all_, ok, any_]
    for said in (executor.dependency_attributes(IDS), executor.dependency_attributes({"ok": ["1"]}),
                 executor.dependency_attributes({"any": ["1"]}), executor.hold_attributes()):
        if said is not None:
            job, out = Job(JobSpec("/bin/true", attributes=JobAttributes(custom_attributes=dict(said)))), StringIO()
            executor.generate_submit_script(job, executor._create_script_context(job), out)
            for option, value in said.items():
                word = "" if value is True else str(value)
                texts = [out.getvalue(), *executor._beside(job, tmp_path / "job.sub").values()]
                assert any(option.partition(".")[2] in line and word in line for text in texts
                           for line in text.splitlines())


def test_a_job_that_an_answer_spoke_of_before_it_was_followed(tmp_path: Path) -> None:
    """With a start record beside it, its line was never read again: it seemed to run for ever."""
    executor = executor_of("slurm", BatchSchedulerExecutorConfig(work_directory=tmp_path))
    assert isinstance(executor, BatchSchedulerExecutor)
    watcher, job = Watcher(("test",)), Job(JobSpec("/bin/true"))
    job.executor = executor
    item = Followed(executor, job, "2", own=True)
    watcher._states["2"], watcher._states.lines = "RUNNING", {"2|RUNNING": "2"}
    watcher._hinted.add(job)
    watcher._take(item, None, 0.0)
    assert "2" not in watcher._states and watcher._states.lines == {}
