"""Arrays: what is one, how its elements run, and what the document says of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.conversion.intake import gate
from sssjob.document.arrays import Array, expand
from sssjob.document.model import Document, Job
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.run import make_plan
from sssjob.run.elements import gather
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.gate import until_there
from tests.run.support import Desk, after, desk_on, group, shell


def array(text: str) -> str:
    return f"<Extension type='Scheduler' name='Array'>{text}</Extension>"


def read(text: str) -> Document:
    return read_document(text.encode())


# --- the grammar

@pytest.mark.parametrize(("text", "indices", "throttle", "step"), [
    ("1-3", (1, 2, 3), None, 1), ("0", (0,), None, 1), ("1-10:4", (1, 5, 9), None, 4),
    ("5,1-3%2", (1, 2, 3, 5), 2, 1), (" 1-2 , 2-3 % 2".replace(" ", ""), (1, 2, 3), 2, 1), ("7-7:3", (7,), None, 3),
])
def test_what_is_an_array(text: str, indices: tuple[int, ...], throttle: int | None, step: int) -> None:
    made = Array.of(text)
    assert (made.indices, made.throttle, made.step) == (indices, throttle, step)


@pytest.mark.parametrize("text", ["", "a", "3-1", "1-3:0", "1-3%", "1-3%0", "1-3%x", "-1", "1,,2", "1-", "1-2-3",
                                  "\u0661", "1" * 10, "1-3:2:2", "1%2%3"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no array"):
        Array.of(text)
    findings = Findings()
    make_plan(read(shell("true", array(text))), findings)
    assert [f.rule for f in findings.rejecting()] == ["SSS201"]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=5))
def test_indices_are_those_of_all_ranges(ranges: list[tuple[int, int, int]]) -> None:
    indices = Array.of(",".join(f"{first}-{first + more}:{step}" for first, more, step in ranges))
    assert set(indices.indices) == {n for first, more, step in ranges for n in range(first, first + more + 1, step)}
    assert list(indices.indices) == sorted(set(indices.indices)) and indices.size >= len(indices.indices)


def test_gigantic_ones_are_refused_before_they_are_counted_out(tmp_path: Path) -> None:
    for text in ("1-999999999", f"0-{LIMITS.array_elements}"):
        findings = Findings()
        plan = make_plan(read(shell("true", array(text))), findings, cwd=tmp_path)
        assert [(f.rule, f.subject) for f in findings.rejecting()] == [("SSS110", "array_elements")]
        assert plan.jobs == []
        group_ = expand(read(shell("true", array(text))), findings := Findings())
        assert [f.subject for f in findings.rejecting()] == ["array_elements"]
        assert group_ == read(shell("true", array(text)))


# --- plans

def test_variables_and_files_of_elements(tmp_path: Path) -> None:
    text = shell("true", "<Name>n</Name><OutputFile>o-{array_jobid}-{index}-{jobid}</OutputFile>", array("2-6:2%1"))
    findings = Findings()
    plan = make_plan(read(text), findings, cwd=tmp_path)
    specs = [job.parts[0].spec for job in plan.jobs]
    assert [job.label for job in plan.jobs] == ["a_2", "a_4", "a_6"]
    assert [str(spec.stdout_path) for spec in specs] == ["o-a-2-a_2", "o-a-4-a_4", "o-a-6-a_6"]
    assert [str(spec.stderr_path) for spec in specs] == ["job-a_2.err", "job-a_4.err", "job-a_6.err"]
    assert specs[1].environment == {
        "SLURM_ARRAY_TASK_ID": "4", "PBS_ARRAY_INDEX": "4", "PBS_ARRAYID": "4", "LSB_JOBINDEX": "4", "SGE_TASK_ID": "4",
        "SLURM_ARRAY_JOB_ID": "a", "PBS_ARRAY_ID": "a", "SLURM_ARRAY_TASK_MIN": "2", "SGE_TASK_FIRST": "2",
        "SLURM_ARRAY_TASK_MAX": "6", "SGE_TASK_LAST": "6", "LSB_JOBINDEX_END": "6", "SLURM_ARRAY_TASK_STEP": "2",
        "SGE_TASK_STEPSIZE": "2", "LSB_JOBINDEX_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
    assert [(f.rule, f.message) for f in findings] == [
        ("SSS502", "Arguments: quoted anew as -c true"), ("SSS503", "a_2: stderr goes to job-a_2.err")]


def test_what_cannot_be_honoured_is_told_once(tmp_path: Path) -> None:
    findings = Findings()
    make_plan(read(shell("true", "<Queue>q</Queue>", array("1-50"))), findings, cwd=tmp_path)
    assert [f.subject for f in findings if f.severity == "warning"] == ["Queue"]


def test_an_array_for_all_jobs_of_a_group(tmp_path: Path) -> None:
    text = group(f"<JobDefaults>{array('1-2')}</JobDefaults>", shell("true"), shell("true", array("7"), name="b"))
    plan = make_plan(read(text), Findings(), cwd=tmp_path)
    assert [job.label for job in plan.jobs] == ["a_1", "a_2", "b_7"]


# --- running

@pytest.fixture(params=["local", "slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with desk_on(request.param, tmp_path, monkeypatch) as desk:
        yield desk


def test_elements_run_and_the_document_tells_of_each(desk: Desk) -> None:
    outcome = desk.run(shell("echo $SGE_TASK_ID >> ran; exit $((SLURM_ARRAY_TASK_ID == 3 ? 7 : 0))", array("1-4")))
    assert sorted(desk.text("ran").split()) == ["1", "2", "3", "4"]
    assert (outcome.exit_code, [(job.label, job.word) for job in outcome.jobs]) == (
        7, [("a_1", "done"), ("a_2", "done"), ("a_3", "failed"), ("a_4", "done")])
    ((job, _),) = outcome.document.jobs()
    assert [job.value(tag) for tag in ("Id", "State", "ExitCode")] == ["a", "Completed", 7]
    assert str(job.value("StatusMessage")).startswith("element 3: ")
    elements = [p.text.split() for p in job.all("Extension") if p.get("name") == "ArrayElement"]
    assert [words[:2] for words in elements] == [[str(n), "Completed"] for n in (1, 2, 3, 4)]
    assert "ExitCode=7" in elements[2] and "ExitCode=0" in elements[3]
    each = [block for one in outcome.jobs for block in one.job.containers("Delivered")]
    (whole,) = job.containers("Delivered")
    assert whole.value("Duration") == sum(int(str(block.value("Duration"))) for block in each)
    assert whole.value("Processors") == 1
    kept = desk.job("a_3").plan.job
    assert {(p.get("name"), p.text) for p in kept.all("Extension")} >= {("ArrayId", "a"), ("ArrayIndex", "3")}
    assert {source.kind for name, _, source in desk.job("a_3").sources() if name.startswith("Array")} == {"sssjob"}
    assert read_document(write_document(outcome.document).encode()).root == outcome.document.root


def test_an_array_without_an_id_gets_the_native_one(desk: Desk) -> None:
    """What has run can be checked and charged: a Job that is over has an Id."""
    text = f"<Job><Name>n</Name>{array('1-2')}<Executable>/bin/true</Executable></Job>"
    ((job, _),) = (document := desk.run(text).document).jobs()
    native_ids = [word.removeprefix("NativeId=") for p in job.all("Extension") if p.get("name") == "ArrayElement"
                  for word in p.text.split() if word.startswith("NativeId=")]
    assert job.value("Id") == native_ids[0].removesuffix({"slurm": "_1", "sge": ".1"}.get(desk.executor, "-"))
    assert not gate(document).rejected


def submissions(desk: Desk) -> int:
    """How many submit commands there were."""
    assert desk.lab is not None
    return len(desk.lab.calls("sbatch" if desk.executor == "slurm" else "qsub"))


@pytest.fixture(params=["slurm", "sge"])
def managed(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk on the stand-in of a manager that has arrays."""
    with desk_on(request.param, tmp_path, monkeypatch) as managed:
        yield managed


@pytest.mark.parametrize(("text", "commands"), [("1-4", 1), ("0-6:2%2", 1), ("3,5,6,20", 1), ("7", 1)])
def test_one_command_for_all_elements(managed: Desk, text: str, commands: int) -> None:
    submission = managed.submit(shell("echo $SLURM_ARRAY_TASK_ID >> ran", array(text)))
    indices = [str(n) for n in Array.of(text).indices]
    assert set(managed.wait("a").values()) == {("done", 0)} and submissions(managed) == commands
    assert sorted(managed.text("ran").split(), key=int) == indices
    intents = [data for n in indices for data in managed.events(f"a_{n}", "intent")]
    natives = [data["native_id"] for n in indices for data in managed.events(f"a_{n}", "native")]
    assert len(intents) == len(set(natives)) == len({data["tag"] for data in intents}) == len(indices)
    assert [job.plan.label for job in submission.jobs] == [f"a_{n}" for n in indices]
    if len(indices) > 1:
        assert len({data["array"]["tag"] for data in intents}) == 1
        assert [one.replace(".", "_") for one in natives] == [f"1_{data['array']['number']}" for data in intents]


def test_elements_that_differ_by_more_go_alone(managed: Desk) -> None:
    """What is staged is brought for each of them; one that is held already goes when it is released."""
    (managed.folder / "data").write_text("x")
    staged = "<Extension type='PSIJ' name='StageIn'>{\"source\": \"data\", \"target\": \"there/data\"}</Extension>"
    findings = Findings()
    managed.submit(shell("cat there/data >> ran", array("1-3"), staged), findings=findings)
    assert [f.message for f in findings if "one by one" in f.message] == [
        "a: its elements are submitted one by one: each has files that are staged"]
    assert set(managed.wait("a").values()) == {("done", 0)} and submissions(managed) == 3


def test_an_element_that_failed_is_tried_again_alone(managed: Desk) -> None:
    retry = "<Extension type='Scheduler' name='Retry'>exit(3)=2</Extension>"
    managed.submit(shell("echo $SLURM_ARRAY_TASK_ID >> ran; [ $SLURM_ARRAY_TASK_ID != 2 -o $SSSJOB_ATTEMPT = 2 ] || "
                         "exit 3", array("1-3"), retry))
    assert managed.wait("a") == {f"a_{n}": ("done", 0) for n in (1, 2, 3)} and submissions(managed) == 2
    assert sorted(managed.text("ran").split()) == ["1", "2", "2", "3"]
    assert "array" not in managed.events("a_2", "intent")[1]


def test_a_cap_parts_an_array(managed: Desk) -> None:
    """As many as may be in flight go together, the others as there is room; the limit of the array holds."""
    managed.submit(shell("mkdir in.$SGE_TASK_ID; ls -d in.* | wc -l >> beside; sleep 0.2; rmdir in.$SGE_TASK_ID",
                         array("1-5%2")), max_queued=3)
    assert set(managed.wait("a").values()) == {("done", 0)}
    beside = [int(n) for n in managed.text("beside").split()]
    assert len(beside) == 5 and max(beside) <= 2


def test_a_full_queue_takes_as_many_elements_as_it_has_room_for(managed: Desk) -> None:
    """Refused as an array, one is offered, then twice as many each time, then half as many; the others wait for the
    same pause, however many they are. With one command each, room for nine took eleven. Grid Engine counts an array as
    one job."""
    assert managed.lab is not None
    most, commands = (9, 8) if managed.executor == "slurm" else (0, 2)
    managed.lab.set(most=most)
    managed.submit(shell(until_there(), array("1-20")))
    waiting = [n for n in range(1, 21) if managed.job(f"a_{n}").held_for is not None]
    assert waiting == list(range(most + 1, 21)) and submissions(managed) == commands
    managed.lab.set(most=None)
    (managed.folder / "go").touch()
    assert set(managed.wait("a").values()) == {("done", 0)}


def test_more_than_fit_into_one_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        assert desk.lab is not None
        desk.lab.set(array_size=3)
        desk.submit(shell("echo $SLURM_ARRAY_TASK_ID >> ran", array("2-6")))
        assert set(desk.wait("a").values()) == {("done", 0)} and submissions(desk) == 2
        assert sorted(desk.text("ran").split()) == ["2", "3", "4", "5", "6"]
        assert [desk.job(f"a_{n}").row.native_id for n in (2, 3, 4, 5)] == ["1_0", "1_1", "1_2", "5_0"]


def test_an_array_that_is_refused_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit was changed since it was asked for: each element is a job of its own."""
    with desk_on("slurm", tmp_path, monkeypatch) as desk:
        assert desk.lab is not None
        desk.lab.fault("sbatch", exit=1, stderr="sbatch: error: Batch job submission failed: Invalid job array "
                                                "specification\n")
        desk.submit(shell("true", array("1-3")))
        assert set(desk.wait("a").values()) == {("done", 0)} and submissions(desk) == 4


def test_an_array_is_submitted_again_as_one(managed: Desk) -> None:
    """After a failure that may pass; an element that is cancelled meanwhile is no part of it."""
    assert managed.lab is not None
    slurm = managed.executor == "slurm"
    said = ("sbatch: error: Batch job submission failed: Unable to contact slurm controller" if slurm
            else "Unable to run job: unable to contact qmaster")
    managed.lab.fault("sbatch" if slurm else "qsub", exit=1, stderr=said + "\n")
    managed.submit(shell("true", array("1-3")))
    assert set(managed.wait("a").values()) == {("done", 0)} and submissions(managed) == 2
    assert all(len(managed.events(f"a_{n}", "try")) == 1 for n in (1, 2, 3))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_client_that_is_killed_while_it_submits(managed: Desk, when: str) -> None:
    """The command goes on without it. All intents are in the journal, and the next client finds the array."""
    assert managed.lab is not None
    command = "sbatch" if managed.executor == "slurm" else "qsub"
    managed.lab.fault(command, kill=when)
    managed.killed(lambda: managed.submit(shell("echo $SLURM_ARRAY_TASK_ID >> ran", array("0-3"))))
    assert set(managed.wait("a").values()) == {("done", 0)}
    assert sorted(managed.text("ran").split()) == ["0", "1", "2", "3"]
    assert submissions(managed) == 1
    asked = managed.lab.calls("squeue" if command == "sbatch" else "qstat")
    looks = [words for words in asked if "%i|%k|%o" in words or words == ["-j", "*"]]
    assert 1 <= len(looks) <= 6         # for all elements together, however many there are


def test_all_elements_are_ended_by_few_commands(managed: Desk) -> None:
    managed.submit(shell("sleep 60", array("1-30")))
    managed.client().cancel(["a"], 60)
    assert {word for word, _ in managed.wait("a").values()} == {"canceled"}
    assert managed.lab is not None and len(managed.lab.calls("scancel" if managed.executor == "slurm" else "qdel")) <= 3


def test_energy_adds_up() -> None:
    """Also where the elements used different amounts, and where one has none."""
    def element(*resources: str) -> Job:
        text = f"<Job><State>Completed</State><ExitCode>0</ExitCode><Delivered>{''.join(resources)}</Delivered></Job>"
        return next(job for job, _ in read(text).jobs())

    gpu = "<Resource name='GPU'>1</Resource>"
    energies = [f"<Resource name='Energy' units='J'>{n}</Resource>" for n in (512, 30, 512)]
    whole = element()
    gather(whole, [*(element(gpu, energy) for energy in energies), element(gpu)])
    (block,) = whole.containers("Delivered")
    assert [(p.get("name"), p.get("units"), p.text) for p in block.all("Resource")] == [
        ("GPU", None, "1"), ("Energy", "J", "1054")]


def test_no_more_at_a_time_than_it_says(desk: Desk) -> None:
    """Each element counts those that run beside it."""
    desk.submit(shell("mkdir in.$SGE_TASK_ID; ls -d in.* | wc -l >> beside; sleep 0.2; rmdir in.$SGE_TASK_ID",
                      array("1-6%2")))
    assert {word for word, _ in desk.wait("a").values()} == {"done"}
    beside = [int(n) for n in desk.text("beside").split()]
    assert len(beside) == 6 and max(beside) <= 2


def test_another_client_keeps_the_limit(desk: Desk) -> None:
    gate = f"echo x >> ran; {until_there()}"
    desk.killed(lambda: desk.submit(shell(gate, array("1-4%1"))))
    client = desk.client()
    client.wait(["a"], 1.5)
    assert desk.text("ran") == "x\n"
    (desk.folder / "go").touch()
    assert {word for word, _ in desk.wait("a").values()} == {"done"}
    assert desk.text("ran") == "x\n" * 4


def test_jobs_that_wait_for_an_array(desk: Desk) -> None:
    """It succeeds when all elements do, and fails when one does."""
    fails = "exit $((SLURM_ARRAY_TASK_ID == 2 ? 1 : 0))"
    desk.submit(group(shell("echo a >> ran", array("1-3")), shell(fails, array("1-3"), name="b"),
                      shell("wc -l < ran > c", after("a"), name="c"), shell("true", after("b"), name="d"),
                      shell("true", after("b", "OnFailure"), name="e"),
                      shell("true", after("b", "OnExit", 1), name="f"),
                      shell("true", after("a", "OnFailure"), name="g1"),
                      shell("true", after("a"), array("1-2"), name="h")))
    ends = {name: word for name, (word, _) in desk.wait("g").items() if name[0] not in "ab"}
    assert ends == {"c": "done", "d": "skipped", "e": "done", "f": "done", "g1": "skipped", "h_1": "done",
                    "h_2": "done"}
    assert desk.text("c").strip() == "3"


def test_one_name_for_all_elements(desk: Desk) -> None:
    desk.submit(shell("sleep 60", array("1-3")))
    client = desk.client()
    jobs, done = client.cancel(["a"], 60)
    assert done and [(job.plan.label, job.word) for job in jobs] == [(f"a_{n}", "canceled") for n in (1, 2, 3)]
    assert [row.array for row in client.journal.rows()] == ["a"] * 3


# --- as a group

def test_expanded() -> None:
    text = group(shell("true", array("1,3%1")), shell("true", after("a"), name="b"),
                 shell("true", after("a", "OnFailure"), name="c"))
    findings = Findings()
    made = expand(read(text), findings)
    jobs = [(job.value("Id"), [(p.text, p.get("condition")) for p in job.all("Dependency")]) for job, _ in made.jobs()]
    assert jobs == [("a_1", []), ("a_3", []), ("b", [("a_1", "OnSuccess"), ("a_3", "OnSuccess")]),
                    ("c", [("a_1", "OnFailure"), ("a_3", "OnFailure")])]
    assert [f.subject for f in findings] == ["Array", "Dependency"] and not findings.rejected
    assert {p.get("name") for job, _ in made.jobs() for p in job.all("Extension")} == {"ArrayId", "ArrayIndex"}
    assert expand(made, findings) is made
    assert made.root != read(text).root


def test_a_single_job_becomes_a_group() -> None:
    expanded = expand(read(shell("true", array("1-2"))), Findings())
    (group,) = expanded.groups()
    assert (group.value("Id"), [job.value("Id") for job in group.jobs]) == ("a", ["a_1", "a_2"])
