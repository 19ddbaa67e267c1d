"""Native arrays: what is known of an element and of the whole, and jobs that are submitted as one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import Job, JobAttributes, JobSpec, JobState, JobStatus, QueueFullException, SubmitException
from psij.executors.batch._array_jobs import (
    MOST_TASKS,
    ArrayLimits,
    JobArray,
    arrays_of,
    numbers_text,
    of_elements,
    pattern_of,
    task_numbers,
)
from psij.executors.batch._followed import Followed, LastAnswer
from psij.executors.batch._identity import Claim, Identity
from psij.executors.batch._sge_records import parse_qacct
from psij.executors.batch._slurm_records import parse_scontrol
from psij.executors.batch._watch import _MISSING, Watcher
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from sssjob.templates.quoting import marked_words, word
from tests.psij.batch_support import Stand, ended, quick_stand, stand_in
from tests.psij.managers import MANAGERS

FIXTURES = Path(__file__).parents[1] / "fixtures"
Q, A, C, F, X = JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED, JobState.FAILED, JobState.CANCELED


def states(statuses: Mapping[str, JobStatus], of: str) -> dict[str, JobState]:
    """States of an array and its elements."""
    return {one: status.state for one, status in statuses.items() if one.partition(".")[0].partition("_")[0] == of}


# --- the whole of its elements

@pytest.mark.parametrize(("elements", "whole"), [
    ([Q, Q], Q), ([Q, A], A), ([C, Q], A), ([F, Q], A), ([C, A, Q], A), ([C, C], C), ([C, F, C], F), ([X, C], X),
    ([C, X], X), ([X, F], F), ([Q], Q), ([F], F)])
def test_state_of_the_whole(elements: list[JobState], whole: JobState) -> None:
    assert of_elements([JobStatus(state) for state in elements]).state is whole


def element(state: JobState, start: int, end: int, **members: int) -> JobStatus:
    return JobStatus(state, exit_code=members.get("exit_code"), metadata={
        "submit_time": 5, "start_time": start, "end_time": end, "wall_seconds": end - start, "processors": 2,
        "nodes": [f"node{start}"]})


def test_facts_of_the_whole() -> None:
    made = of_elements([element(C, 10, 20, exit_code=0), element(F, 12, 30, exit_code=3),
                        element(F, 11, 15, exit_code=4)])
    assert (made.exit_code, made.time) == (3, 30)
    assert made.metadata == {"submit_time": 5, "start_time": 10, "end_time": 30, "wall_seconds": 32, "processors": 2,
                             "nodes": ["node10", "node12", "node11"]}
    going = of_elements([element(C, 10, 20, exit_code=0), JobStatus(Q, metadata={"submit_time": 5})])
    assert (going.state, going.exit_code, going.time) == (A, None, 10)
    assert going.metadata == {"submit_time": 5, "start_time": 10, "processors": 2}


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(1, 9)), min_size=1, max_size=4))
def test_tasks_that_a_text_names(ranges: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}:{step}" for first, more, step in ranges)
    assert list(task_numbers(text)) == [n for first, more, step in ranges for n in range(first, first + more + 1, step)]


@pytest.mark.parametrize("text", ["", "x", "1,", "1-", "-1", "1-2-3", "\u0661", f"1-{MOST_TASKS + 1}", "1-999999999"])
def test_texts_that_name_none(text: str) -> None:
    assert list(task_numbers(text)) == []


# --- Slurm

SCONTROL = """\
JobId=6 ArrayJobId=6 ArrayTaskId=4-5%2 ArrayTaskThrottle=2 JobState=PENDING Reason=JobArrayTaskLimit ExitCode=0:0
JobId=37 ArrayJobId=6 ArrayTaskId=3 ArrayTaskThrottle=2 JobState=RUNNING Reason=None ExitCode=0:0 NodeList=node1
JobId=24 ArrayJobId=6 ArrayTaskId=1 ArrayTaskThrottle=2 JobState=FAILED Reason=NonZeroExitCode ExitCode=200:0
"""


def test_scontrol_names_elements_as_squeue_does() -> None:
    ends = parse_scontrol(0, SCONTROL)
    assert states(ends, "6") == {"6_4-5%2": Q, "6_3": A, "6_1": F, "6": A}
    assert ends["6_1"].exit_code == 200


def test_elements_that_wait_are_listed_one_by_one_where_one_is_asked_for() -> None:
    executor = SlurmJobExecutor()
    assert ["-r" in executor.get_status_command(ids) for ids in ([], ["6"], ["6", "6_3"])] == [False, False, True]


# --- Grid Engine

def test_tasks_in_qstat() -> None:
    out = (FIXTURES / "gridengine-8.1.9" / "qstat.xml").read_text()
    executor = SGEJobExecutor()
    assert states(executor.parse_status_output(0, out), "3") == {"3.1": A, "3.2": A, "3.3": Q, "3.4": Q, "3": A}
    assert [one for one in executor.parse_list_output(out) if one.startswith("3")] == ["3"]


def test_tasks_in_qacct() -> None:
    ends = parse_qacct(0, (FIXTURES / "gridengine-8.1.9" / "qacct-array.txt").read_text())
    (whole,) = {one for one in ends if "." not in one}
    tasks = {one.partition(".")[2]: status for one, status in ends.items() if "." in one}
    assert ends[whole].state is (F if any(one.state is F for one in tasks.values()) else C)
    seconds = [(one.metadata or {})["wall_seconds"] for one in (ends[whole], *tasks.values())]
    assert len(tasks) > 1 and seconds[0] == sum(seconds[1:])


@pytest.mark.parametrize(("text", "fits"), [("12", True), ("12.3", True), ("12.", False), ("12.3.4", False),
                                            ("12.a", False), (".3", False)])
def test_ids_of_tasks(text: str, fits: bool) -> None:
    executor = SGEJobExecutor()
    assert executor.is_native_id(text) is fits
    assert executor.dependency_attributes({"any": ["12.3"]}) is None       # -hold_jid would take it for a name


@pytest.mark.parametrize(("comment", "is_listed"), [
    ("mine", True), ("sssjob:22222222-2222-4222-8222-222222222222", False)])
def test_an_array_is_there_while_squeue_lists_elements(comment: str, is_listed: bool, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """squeue has no line for the whole: it is ended by its id all the same, unless the elements are another one's."""
    with quick_stand(MANAGERS["slurm"], tmp_path, monkeypatch) as stand:
        stand.lab.stranger(id="6_1", comment=comment)
        job = Job()
        stand.executor.expect(job, Identity(frozenset()))
        stand.executor.attach(job, "6")
        assert stand.executor.is_there(job) is is_listed
        stand.executor.cancel(job)
        assert [call[-1] for call in stand.lab.calls("scancel")] == ["6"] * is_listed


def test_an_array_of_which_elements_are_listed_is_not_missed() -> None:
    """However long accounting calls it running: that is no record of a job that the controller has lost."""
    executor, known = SlurmJobExecutor(), LastAnswer({"6", "7"})
    lines = [f"{one}|PENDING|Priority|5|N/A|N/A|1|1||batch|normal|x|/x\n" for one in ("6_[4-9%2]", "6_3", "8_1", "7")]
    assert set(executor._changed_lines("JOBID|STATE\n" + "".join(lines), known, "|")) == {"7"}
    assert known.elements == {"6": Claim(frozenset())}
    watcher, item = Watcher(("slurm",)), Followed(executor, Job(), "6", False)
    watcher._states = known
    for listed in (True, False):
        known.elements = known.elements if listed else {}
        watcher._take(item, _MISSING, 0.0)
        assert item.missed == (0 if listed else 1)


# --- submitted as one

def specs(indices: Sequence[int], text: str = "exit $(({0} == 3 ? 7 : 0)) # {0:04d}") -> list[JobSpec]:
    """A line of shell for each index."""
    return [JobSpec("/bin/sh", ["-c", text.format(n)], environment={"N": str(n)}, stdout_path=f"out-{n:03d}")
            for n in indices]


@given(st.sets(st.integers(0, 3000), min_size=2, max_size=12), st.sampled_from((
    "{0}", "run{0}", "{0}1", "1{0}", "{0}{0}", "{0:02d}-{0:05d}", "0{0}", "x0{0:03d}/{0}", "same", "a{0:04d}0{0}")))
def test_one_specification_gives_all(indices: set[int], text: str) -> None:
    """Where one is found its marks give the texts of all; that none is found costs nothing but commands."""
    order = sorted(indices)
    pattern = pattern_of(specs(order, text), order)
    if pattern is not None:
        from psij.executors.batch._array_jobs import _filled, texts_of
        for n, spec in zip(order, specs(order, text), strict=True):
            assert [_filled(one, n) for one in texts_of(pattern)] == list(texts_of(spec))
    assert pattern is not None or text in ("{0}1", "1{0}", "{0}{0}", "0{0}", "x0{0:03d}/{0}", "a{0:04d}0{0}")


@pytest.mark.parametrize("others", [
    {"arguments": ["-c", "2 x"]}, {"environment": {"N": "2", "M": "1"}}, {"name": "n2"}, {"launcher": "mpirun"},
    {"arguments": ["-c", "2", "more"]}, {"stdout_path": None}, {"arguments": ["-c", "3"]},
    {"arguments": ["-c", "2\ufdd0"]}])
def test_what_differs_by_more_is_no_array(others: dict[str, object]) -> None:
    specifications = specs([1, 2, 3], "{0}")
    for name, value in others.items():
        setattr(specifications[1], name, value)
    assert pattern_of(specifications, [1, 2, 3]) is None


@pytest.mark.parametrize(("numbers", "text"), [
    ([1], "1"), ([1, 2, 3], "1-3"), ([1, 9], "1-9:8"), ([1, 3, 5], "1-5:2"), ([0, 5, 9], "0,5,9"),
    ([1, 2, 3, 7, 9, 11, 40], "1-3,7-11:2,40"), ([1, 2, 4, 5], "1-2,4-5")])
def test_numbers(numbers: list[int], text: str) -> None:
    assert numbers_text(numbers) == text and list(task_numbers(text)) == numbers


@pytest.mark.parametrize(("limits", "indices", "most", "arrays"), [
    (ArrayLimits(0, 9, 10, lists=True), [0, 2, 9], 2, [{0: 0, 2: 2, 9: 9}]),
    (ArrayLimits(0, 9, 10, lists=True), [2, 10], None, [{0: 2, 1: 10}]),
    (ArrayLimits(1, 99, 99, lists=False), [0, 1, 2], None, [{1: 0, 2: 1, 3: 2}]),
    (ArrayLimits(1, 99, 99, lists=False), [1, 2, 4], None, [{1: 1, 2: 2, 3: 4}]),
    (ArrayLimits(1, 99, 99, lists=False), [3, 5, 7], None, [{3: 3, 5: 5, 7: 7}]),
    (ArrayLimits(0, 2, 3, lists=True), [1, 2, 3, 4, 5], None, [{0: 1, 1: 2, 2: 3}, {0: 4, 1: 5}]),
    (ArrayLimits(0, 9, 3, lists=False, fewest=2), [1, 2, 3, 4], None, [{0: 1, 1: 2}, {0: 3, 1: 4}]),
    (ArrayLimits(0, 2, 3, lists=True), [1, 2, 3, 4, 5], 2, []), (ArrayLimits(0, 9, 10, lists=True), [1], None, [])])
def test_numbers_that_a_manager_takes(limits: ArrayLimits, indices: list[int], most: int | None,
                                      arrays: list[dict[int, int]]) -> None:
    """Indices that are no numbers of it come from the place in the array; a limit holds for one array only."""
    assert [one.indices for one in arrays_of(limits, specs(indices), indices, most)] == arrays


@pytest.fixture(params=["slurm", "sge", "pbs"])
def stand(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    manager = MANAGERS[request.param]
    monkeypatch.chdir(tmp_path)         # streams without a folder are written there
    with stand_in(manager.fake, manager.executor, tmp_path, monkeypatch) as stand:
        yield stand


def submitted(stand: Stand, indices: Sequence[int], text: str = "exit $(({0} == 3 ? 7 : 0)) # {0:04d}",
              most: int | None = None) -> tuple[list[Job], JobArray]:
    specifications = specs(indices, text)
    (array,) = stand.executor.arrays(specifications, indices, most)
    jobs = [Job(spec) for spec in specifications]
    for job, number in zip(jobs, array.indices, strict=True):
        job._id = array.element_tag(number)
    stand.executor.submit_array(jobs, array)
    return jobs, array


@pytest.mark.parametrize("indices", [[1, 2, 3], [0, 3, 4], [3, 5, 7]])
def test_elements_of_one_command(stand: Stand, indices: list[int], tmp_path: Path) -> None:
    jobs, array = submitted(stand, indices, "echo $N {0:04d} {0}; exit $(({0} == 3 ? 7 : 0))")
    assert [ended(job).exit_code for job in jobs] == [7 if n == 3 else 0 for n in indices]
    assert [(tmp_path / f"out-{n:03d}").read_text() for n in indices] == [f"{n} {n:04d} {n}\n" for n in indices]
    form = {"slurm": "1_{}", "sge": "1.{}", "pbs": "1[{}].head"}[stand.executor.name]
    assert [job.native_id for job in jobs] == [form.format(number) for number in array.indices]
    assert len(stand.lab.calls("sbatch" if stand.executor.name == "slurm" else "qsub")) == 1
    facts = [job.status.metadata or {} for job in jobs]
    assert all(one["end_time"] >= one["start_time"] and one["starts"] == 1 for one in facts)
    until = time.monotonic() + 60
    while stand.files() and time.monotonic() < until:
        time.sleep(0.01)
    assert stand.files() == []


def test_an_element_is_ended_and_held_alone(stand: Stand) -> None:
    stand.lab.set(wait=600)
    jobs, _ = submitted(stand, [1, 2, 3], "sleep 600 # {0}")
    if stand.executor.name == "pbs":            # qhold takes whole arrays only
        with pytest.raises(SubmitException, match="Invalid request"):
            stand.executor.hold(jobs[0])
    else:
        stand.executor.hold(jobs[0])
        assert [job["held"] for job in stand.lab.jobs()] == [True, False, False]
        stand.executor.release(jobs[0])
    stand.executor.cancel(jobs[1])
    assert ended(jobs[1]).state is X
    assert [job["held"] or job["canceled"] for job in stand.lab.jobs()] == [False, True, False]
    assert stand.executor.cancel_many(jobs) == {} and [ended(job).state for job in jobs] == [X, X, X]


def test_elements_of_pbs_that_are_held_are_jobs_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are released one by one, and qrls takes whole arrays only."""
    with quick_stand(MANAGERS["pbs"], tmp_path, monkeypatch) as stand:
        held = specs([1, 2])
        for spec in held:
            spec.attributes = JobAttributes(custom_attributes=stand.executor.hold_attributes())
        assert (len(stand.executor.arrays(held, [1, 2])), len(stand.executor.arrays(specs([1, 2]), [1, 2]))) == (0, 1)


def test_an_answer_that_was_lost(stand: Stand) -> None:
    """The array is found by its tag, and its elements by their numbers in it."""
    words = {"slurm": "sbatch: error: Socket timed out", "sge": "answer list", "pbs": "qsub: End of File"}
    stand.lab.fault("sbatch" if stand.executor.name == "slurm" else "qsub", after=True, exit=1,
                    stderr=words[stand.executor.name])
    stand.lab.set(wait=1)
    jobs, array = submitted(stand, [2, 3])
    assert stand.executor.native_id_of(array.tag) == ("1[].head" if stand.executor.name == "pbs" else "1")
    assert [ended(job).exit_code for job in jobs] == [0, 7]


def test_a_full_queue_refuses_all(stand: Stand) -> None:
    stand.lab.set(most=1, wait=30)              # a job that has ended makes room
    if stand.executor.name == "sge":            # it counts an array as one job
        submitted(stand, [1, 2])
    with pytest.raises(QueueFullException):
        submitted(stand, [1, 2])


def test_an_answer_that_names_no_array(stand: Stand) -> None:
    """An array that is answered as a job, or cut off, is looked for; a job that is answered as an array is refused."""
    executor = stand.executor
    if executor.name == "pbs":
        assert executor.array_id_from_submit_output("12[].head\n") == "12[].head"
        for out in ("12.head\n", "12[3].head\n", ""):
            with pytest.raises((ValueError, SubmitException)):
                executor.array_id_from_submit_output(out)
    if executor.name == "sge":
        assert executor.array_id_from_submit_output("12.1-9:2\n") == "12"
        for out in ("12\n", "12.1-9\n", "12.1-9:2\n13.1-9:2\n", ""):
            with pytest.raises(ValueError, match="no id of an array"):
                executor.array_id_from_submit_output(out)
    stand.lab.fault("sbatch" if executor.name == "slurm" else "qsub", exit=0, stdout="what?\n")
    with pytest.raises(SubmitException, match="was not submitted"):
        submitted(stand, [1, 2])


def test_elements_of_a_process_that_is_gone(stand: Stand) -> None:
    """They are followed by their native ids, their records count, and their files go with them."""
    stand.lab.set(wait=1)
    jobs, array = submitted(stand, [2, 3])
    other = type(stand.executor)(config=stand.executor.config)
    again = [Job() for _ in jobs]
    for job, one in zip(jobs, again, strict=True):
        one._id = job.id
        other.expect(one, Identity(frozenset((job.id, array.tag))))
        other.attach(one, str(job.native_id))
    assert [ended(one).exit_code for one in again] == [0, 7]
    assert all((one.status.metadata or {}).get("starts", 1) == 1 for one in again)      # PBS tells of several only


@pytest.mark.parametrize("own", [True, False])
def test_an_element_of_another_array_of_that_number(stand: Stand, own: bool) -> None:
    """Ids come again: only an element that bears the tag of its array is ended."""
    stand.lab.set(wait=600)
    jobs, array = submitted(stand, [2, 3])
    if not own:
        for row in stand.lab.jobs():
            other = "11111111-2222-4333-8444-5555ffffffff"
            stand.lab.update(row["number"], comment=f"sssjob:{other}", context=f"sssjob={other}",
                             command=f"/x/{other}.job", variables=f"SSSJOB_ID={other}")
    other_client = type(stand.executor)(config=stand.executor.config)
    again = Job()
    again._id = jobs[1].id
    other_client.expect(again, Identity(frozenset((again.id, array.tag))))
    other_client.attach(again, str(jobs[1].native_id))
    other_client.cancel(again)
    assert [row["canceled"] for row in stand.lab.jobs()] == [False, own]


def test_marks_mean_something_to_arrays_only() -> None:
    """The characters that stand for the index are quoted as they are everywhere else."""
    assert [str(word(f"a{mark}b")) for mark in ("\ufdd0", "\ufdda")] == ["'a\ufdd0b'", "'a\ufddab'"]
    with marked_words():
        assert str(word("it's \ufdd3!")) == "'it'\"'\"'s '\"${_psij_index_3}\"'!'"
