"""Native arrays, which others have submitted: what is known of an element and of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import JobState, JobStatus
from psij.executors.batch._arrays import MOST_TASKS, of_elements, task_numbers
from psij.executors.batch._sge_records import parse_qacct
from psij.executors.batch._slurm_records import parse_scontrol
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor

FIXTURES = Path(__file__).parents[1] / "fixtures"
Q, A, C, F, X = JobState.QUEUED, JobState.ACTIVE, JobState.COMPLETED, JobState.FAILED, JobState.CANCELED


def states(found: Mapping[str, JobStatus], of: str) -> dict[str, JobState]:
    """States of an array and its elements."""
    return {one: status.state for one, status in found.items() if one.partition(".")[0].partition("_")[0] == of}


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
    found = parse_scontrol(0, SCONTROL)
    assert states(found, "6") == {"6_4-5%2": Q, "6_3": A, "6_1": F, "6": A}
    assert found["6_1"].exit_code == 200


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
    found = parse_qacct(0, (FIXTURES / "gridengine-8.1.9" / "qacct-array.txt").read_text())
    (whole,) = {one for one in found if "." not in one}
    tasks = {one.partition(".")[2]: status for one, status in found.items() if "." in one}
    assert found[whole].state is (F if any(one.state is F for one in tasks.values()) else C)
    seconds = [(one.metadata or {})["wall_seconds"] for one in (found[whole], *tasks.values())]
    assert len(tasks) > 1 and seconds[0] == sum(seconds[1:])


@pytest.mark.parametrize(("text", "fits"), [("12", True), ("12.3", True), ("12.", False), ("12.3.4", False),
                                            ("12.a", False), (".3", False)])
def test_ids_of_tasks(text: str, fits: bool) -> None:
    executor = SGEJobExecutor()
    assert executor.is_native_id(text) is fits
    assert executor.dependency_attributes({"any": ["12.3"]}) is None       # -hold_jid would take it for a name
