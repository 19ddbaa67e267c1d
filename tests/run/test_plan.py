"""From documents to plans: nothing is started here."""

from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from psij import JobExecutor, ResourceSpecV1
from sssjob.document.element import Container, Item
from sssjob.findings import Findings, Policy
from sssjob.run import Plan, make_plan
from sssjob.xml.places import Place, Places
from sssjob.xml.reader import read_document


def planned(text: str, where: Path, policy: Policy = Policy.REJECT,
            executor: str = "local") -> tuple[Plan, Findings]:
    findings = Findings()
    return make_plan(read_document(text.encode()), findings, cwd=where, policy=policy, executor=executor), findings


def rules(findings: Findings, *severities: str) -> set[tuple[str, str]]:
    return {(f.rule, f.subject) for f in findings if f.severity in (severities or ("error", "warning"))}


def job(*parts: str) -> str:
    return f"<Job><Id>a</Id><Executable>/bin/true</Executable><Environment export='true'/>{''.join(parts)}</Job>"


def test_paths_are_absolute_and_defaults_named(tmp_path: Path) -> None:
    plan, findings = planned(job("<InitialWorkingDirectory>w</InitialWorkingDirectory>").replace("/bin/true", "./x"),
                             tmp_path)
    spec = plan.jobs[0].parts[0].spec
    assert (spec.executable, str(spec.directory)) == (f"{tmp_path}/w/./x", f"{tmp_path}/w")
    assert (str(spec.stdout_path), str(spec.stderr_path)) == ("job-a.out", "job-a.err")
    assert {f.severity for f in findings} == {"info"}


def test_defaults_are_folded(tmp_path: Path) -> None:
    text = """<JobGroup><Id>g</Id><JobDefaults><Executable>/bin/echo</Executable><Requested><Duration>60</Duration>
        </Requested></JobDefaults><Job><Id>a</Id></Job><Job><Id>b</Id><Executable>/bin/ls</Executable></Job></JobGroup>"""
    plan, _ = planned(text, tmp_path)
    specs = [j.parts[0].spec for j in plan.jobs]
    assert [s.executable for s in specs] == ["/bin/echo", "/bin/ls"]
    assert [s.attributes.duration.seconds for s in specs
            if s.attributes is not None and s.attributes.duration is not None] == [60, 60]


def test_what_local_need_not_know_only_warns(tmp_path: Path) -> None:
    _, findings = planned(job("<Queue>q</Queue><Machine>m</Machine><Priority>3</Priority>"), tmp_path)
    assert rules(findings, "warning") == {("SSS602", "Queue"), ("SSS602", "Machine"), ("SSS602", "Priority")}
    assert not findings.rejected


@pytest.mark.parametrize(("kind", "name"), [
    ("Scheduler", "MailEvents"), ("Scheduler", "MailUser"), ("Scheduler", "Comment"), ("Scheduler", "Nice"),
    ("Scheduler", "MinDuration"), ("Scheduler", "ThreadsPerCore"), ("Scheduler", "Wait"),
    ("slurm", "hint"), ("slurm", "wckey"), ("slurm", "profile"), ("slurm", "parsable"),
    ("slurm", "kill-on-invalid-dep"), ("sge", "binding"), ("sge", "terse"), ("pbspro", "k"), ("pbspro", "z"),
    ("lsf", "sla"), ("lsf", "notify")])
def test_options_without_which_a_job_does_the_same_only_warn_here(kind: str, name: str, tmp_path: Path) -> None:
    """A script of a cluster is tried on this machine as it is: where, when and how fast it runs, who gets mail of it
    and what the submit command prints are no reason to refuse it."""
    _, findings = planned(job(f"<Extension type='{kind}' name='{name}'>x</Extension>"), tmp_path)
    assert rules(findings, "warning") == {("SSS602", f"Extension {name}")} and not findings.rejected


@pytest.mark.parametrize("part", ["<Node>n1</Node>", "<Reservation>r</Reservation>",
                                  "<TaskDistribution type='Rule'>cyclic</TaskDistribution>"])
def test_places_of_a_cluster_only_warn_here(part: str, tmp_path: Path) -> None:
    _, findings = planned(job(f"<Requested>{part}</Requested>"), tmp_path)
    assert {rule for rule, _ in rules(findings, "warning")} == {"SSS602"} and not findings.rejected


@pytest.mark.parametrize(("kind", "name", "value"), [
    ("sge", "memory", "mem_free"), ("lsf", "memory", "M"), ("lsf", "nnodes", "true"), ("pbspro", "account", "P")])
def test_with_which_option_something_was_said_asks_for_nothing(kind: str, name: str, value: str, tmp_path: Path
                                                               ) -> None:
    _, findings = planned(job(f"<Extension type='{kind}' name='{name}'>{value}</Extension>"), tmp_path)
    assert rules(findings) == set()


@pytest.mark.parametrize(("parts", "memory", "gpus"), [
    ("<Memory metric='PerNode' units='MB'>64</Memory>", 64 << 20, None),
    ("<Memory metric='PerProcessor' units='MB'>64</Memory>", 64 << 20, None),
    ("<Resource name='GPU' metric='PerNode'>1</Resource>", None, 1),
    ("<Memory metric='PerNode' units='MB'>64</Memory><TaskGroup><TaskCount>2</TaskCount></TaskGroup>", 64 << 20, None)])
def test_this_machine_is_one_node(parts: str, memory: int | None, gpus: int | None, tmp_path: Path) -> None:
    """``--mem=64M`` and ``--gres=gpu:1`` are said of each node, in scripts that seldom say how many there are."""
    plan, findings = planned(job(parts), tmp_path)
    resources = plan.jobs[0].parts[0].spec.resources
    assert isinstance(resources, ResourceSpecV1) and not findings.rejected
    assert (resources.memory, resources.gpu_cores_per_process) == (memory, gpus)


@pytest.mark.parametrize("name", ["slurm", "sge", "pbs", "lsf"])
@pytest.mark.parametrize(("part", "subject"), [
    ("<Application>x</Application>", "Application"), ("<Quote>x</Quote>", "Quote"),
    ("<GlobalUser>x</GlobalUser>", "GlobalUser")])
def test_what_only_describes_never_rejects(name: str, part: str, subject: str, tmp_path: Path) -> None:
    _, findings = planned(job(part), tmp_path, executor=name)
    assert rules(findings) == {("SSS602", subject)} and not findings.rejected


@pytest.mark.parametrize("name", ["local", "slurm", "sge"])
@pytest.mark.parametrize("part", [
    "<User>me</User>", "<User awarenessPolicy='Reject'> me </User>", "<Machine>head</Machine>",
    "<Machine>HEAD.site.org</Machine>", "<User>me</User><Machine>head</Machine>"])
def test_what_holds_anyway_is_not_told(name: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "me")
    monkeypatch.setattr("socket.gethostname", lambda: "head")
    assert rules(planned(job(part), tmp_path, executor=name)[1]) == set()


@pytest.mark.parametrize(("part", "subject"), [
    ("<User>you</User>", "User"), ("<User type='x'>me</User>", "User"),
    ("<Machine>head.other.org</Machine>", "Machine"), ("<Machine>head2</Machine>", "Machine")])
def test_another_user_or_machine_rejects(part: str, subject: str, tmp_path: Path,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "me")
    monkeypatch.setattr("socket.gethostname", lambda: "head.site.org")
    _, findings = planned(job(part), tmp_path, executor="sge")
    assert {(f.rule, f.subject) for f in findings.rejecting()} == {("SSS602", subject)}


def test_the_cluster_is_a_machine(tmp_path: Path) -> None:
    class Backend:
        def machine(self) -> str | None:
            return "fake"

    document = read_document(job("<Machine>fake</Machine>").encode())
    findings = Findings()
    make_plan(document, findings, executor="slurm", cwd=tmp_path, backend=Backend())    # type: ignore[arg-type]
    assert rules(findings) == set()


@pytest.mark.parametrize("part", [
    "<Hold>System</Hold>", "<Interactive>true</Interactive>",
    "<DeadlineTime>5</DeadlineTime>",
    "<Extension type='slurm' name='constraint'>x</Extension>",
    "<Extension type='Scheduler' name='Signal'>USR1@9</Extension>",
    "<Extension type='slurm' name='deadline'>noon</Extension>", "<ResourceLimit name='MaxDisk'>1</ResourceLimit>",
    "<Memory context='Configured'>1</Memory>",
])
def test_what_local_cannot_do_follows_the_policy(part: str, tmp_path: Path) -> None:
    _, findings = planned(job(part), tmp_path)
    assert findings.rejected
    assert all(f.rule == "SSS602" for f in findings.rejecting())
    assert not planned(job(part), tmp_path, Policy.WARN)[1].rejected
    softened = job(part).replace("<Job>", "<Job awarenessPolicy='Ignore'>")
    assert not [f for f in planned(softened, tmp_path)[1] if f.rule == "SSS602"]


@pytest.mark.parametrize(("text", "rule"), [
    ("<Job><Id>a</Id></Job>", "SSS605"),
    (job().replace("/bin/true", "http://x/y"), "SSS603"),
    (job().replace("/bin/true", "#Script"), "SSS311"),
    (job("<Dependency>b</Dependency>"), "SSS605"),
    ("<JobGroup><Id>g</Id>" + job("<Dependency>b</Dependency>")
     + job("<Dependency>a</Dependency>").replace(">a<", ">b<", 1) + "</JobGroup>", "SSS410"),
    ("<Requested><Processors>1</Processors></Requested>", "SSS605"),
])
def test_what_cannot_be_run(text: str, rule: str, tmp_path: Path) -> None:
    _, findings = planned(text, tmp_path, Policy.IGNORE)
    assert rule in {f.rule for f in findings.rejecting()}


@pytest.mark.parametrize(("stream", "writers"), [
    ("<OutputFile>log</OutputFile>", "3 jobs (a, b, c)"), ("<ErrorFile>{pwd}/x/../log</ErrorFile>", "3 jobs (a, b, c)"),
    ("<OutputFile>log</OutputFile><ErrorFile>log</ErrorFile>", "3 jobs (a, b, c)"),
    ("<OutputFile redirectList='Append'>log</OutputFile>", ""), ("<OutputFile>log.{jobid}</OutputFile>", ""),
    ("<OutputFile>/dev/null</OutputFile>", ""), ("<OutputFile redirectList='Close'/>", "")])
def test_jobs_that_empty_one_file(tmp_path: Path, stream: str, writers: str) -> None:
    """Each of the jobs leaves nothing of what those before it wrote."""
    names = "".join(f"<Job><Id>{name}</Id></Job>" for name in "abc")
    defaults = "<Executable>/bin/true</Executable>" + stream.replace("{pwd}", str(tmp_path))
    _, findings = planned(f"<JobGroup><Id>g</Id><JobDefaults>{defaults}</JobDefaults>{names}</JobGroup>", tmp_path)
    assert [f.message for f in findings if f.rule == "SSS607"] == (
        [f"{writers} write {tmp_path}/log, and each of them empties it"] if writers else [])


def test_script_lies_in_a_private_directory(tmp_path: Path) -> None:
    text = ("<Request action='Submit'><Object>Job</Object><Data><Job><Executable>#Script</Executable>"
            "<Shell>/bin/bash</Shell></Job></Data><File id='Script'>echo $0\n</File></Request>")
    plan, _ = planned(text, tmp_path)
    assert plan.scripts is not None
    script = Path(str(plan.jobs[0].parts[0].spec.executable))
    assert script.parent == plan.scripts
    assert (stat.S_IMODE(script.parent.stat().st_mode), stat.S_IMODE(script.stat().st_mode)) == (0o700, 0o700)
    assert script.read_text() == "#!/bin/bash\necho $0\n"
    plan.close()
    assert not script.exists()


def test_rejected_plan_leaves_no_script(tmp_path: Path) -> None:
    text = ("<Request action='Submit'><Object>Job</Object><Data><Job><Executable>#Script</Executable>"
            "<Hold>System</Hold></Job></Data><File id='Script'>echo\n</File></Request>")
    plan, findings = planned(text, tmp_path)
    assert findings.rejected and plan.scripts is None


def test_needs(tmp_path: Path) -> None:
    text = ("<JobGroup><Id>g</Id>" + job() + job("<Dependency condition='OnExit' code='3'>a</Dependency>").replace(
        ">a<", ">b<", 1) + "</JobGroup>")
    plan, _ = planned(text, tmp_path)
    (need,) = plan.jobs[1].needs
    assert (need.on, need.condition, need.code, need.text) == ((0,), "OnExit", 3, "OnExit(3) a")
    array = job("<Extension type='Scheduler' name='Array'>1-3</Extension>")
    for target, on in (("a", (0, 1, 2)), ("a_2", (1,))):
        plan, findings = planned(text.replace(job(), array).replace("'3'>a<", f"'3'>{target}<"), tmp_path)
        assert (plan.jobs[3].needs[0].on, findings.rejected) == (on, False)


def test_findings_of_task_groups_are_told_once(tmp_path: Path) -> None:
    part = "<TaskGroup><TaskCount>1</TaskCount></TaskGroup>"
    plan, findings = planned(job("<Queue>q</Queue><Interactive>false</Interactive>", part, part), tmp_path)
    assert len(plan.jobs[0].parts) == 2
    assert [f.subject for f in findings if f.severity == "warning"] == ["Queue"]


def test_policy_of_the_group_holds(tmp_path: Path) -> None:
    text = "<JobGroup awarenessPolicy='Warn'><Id>g</Id>" + job("<Hold>System</Hold>") + "</JobGroup>"
    assert {f.subject for f in planned(text, tmp_path)[1] if f.severity == "warning"} == {"Hold"}


def test_a_hold_of_the_user_is_waited_out(tmp_path: Path) -> None:
    plan, findings = planned(job("<Hold>User</Hold>"), tmp_path)
    assert plan.jobs[0].held and rules(findings) == {("SSS502", "Hold")}
    both, findings = planned(job("<Hold>user</Hold><Hold awarenessPolicy='Warn'>Batch</Hold>"), tmp_path)
    assert both.jobs[0].held and rules(findings) == {("SSS502", "Hold"), ("SSS602", "Hold")}
    assert not findings.rejected


def test_what_is_chosen_among_alternatives_is_told(tmp_path: Path) -> None:
    asked = ("<Requested><Processors group='1'>2</Processors><Memory group='-1'>1</Memory><Processors conj='Or' "
             "group='1'>1</Processors><Memory group='-1'>2</Memory></Requested>")
    plan, findings = planned(job(asked), tmp_path)
    spec = plan.jobs[0].parts[0].spec.resources
    assert isinstance(spec, ResourceSpecV1) and (spec.process_count, spec.memory) == (2, 1 << 20)
    assert {("SSS502", "Processors"), ("SSS502", "Memory")} <= rules(findings)


def test_places_are_looked_for_when_somebody_wants_to_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost a third of the time that a plan takes, and of findings that many jobs share one is shown."""
    asked: list[str] = []
    of = Places.of

    def counted(self: Places, item: Item | None, within: Container | None = None, path: str = "") -> Place | None:
        asked.append(path)
        return of(self, item, within, path)

    monkeypatch.setattr(Places, "of", counted)
    lines = [f"<Job><Id>{name}</Id><Executable>/bin/true</Executable><Environment export='true'/>\n"
             "  <Queue>q</Queue></Job>" for name in "ab"]
    _, findings = planned("<JobGroup><Id>g</Id>\n" + "\n".join(lines) + "</JobGroup>", tmp_path)
    assert not asked
    queue, _, _, other, *_ = findings
    assert [(f.rule, f.line, f.column, f.excerpt) for f in (queue, other)] == [
        ("SSS602", 3, 3, "  <Queue>q</Queue></Job>"), ("SSS602", 5, 3, "  <Queue>q</Queue></Job></JobGroup>")]
    assert len(asked) == 2 and str(queue).startswith("-:3:3: SSS602 warning")
    assert (replace(other, message="x").line, len(asked)) == (5, 2)


def test_a_code_counts_for_the_condition_on_exit_alone(tmp_path: Path) -> None:
    """``code`` beside another condition says nothing, in a dependency on a job of the journal too."""
    for condition, code in (("OnFailure", None), ("OnExit", 3)):
        text = job(f"<Dependency condition='{condition}' code='3'>b</Dependency>")
        plan = make_plan(read_document(text.encode()), Findings(), cwd=tmp_path, known=lambda *_: ["7.0"])
        assert [(need.code, need.outside) for need in plan.jobs[0].needs] == [(code, ("7.0",))]


def test_only_the_first_attempt_has_the_hold_of_the_user(tmp_path: Path) -> None:
    """Who has released the job once would have to release each further attempt."""
    plan = make_plan(read_document(job("<Hold>User</Hold>").encode()), Findings(), cwd=tmp_path, executor="slurm",
                     backend=JobExecutor.get_instance("slurm"))
    attributes = [part.spec.attributes for number in (1, 2) for part in plan.again(0, [], number)]
    assert ["slurm.hold" in (a.custom_attributes or {}) for a in attributes if a is not None] == [True, False]


def test_what_all_elements_of_an_array_share_is_told_once(tmp_path: Path) -> None:
    plan, findings = planned(job("<Hold>System</Hold>", "<Extension type='Scheduler' name='Array'>1-3</Extension>"),
                             tmp_path)
    assert len(plan.jobs) == 3
    assert [f.subject for f in findings if f.rule == "SSS602"] == ["Hold"]
    assert [f.subject for f in findings if f.rule == "SSS503"] == ["OutputFile", "ErrorFile"]
