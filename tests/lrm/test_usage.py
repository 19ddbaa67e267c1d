"""What records say of runs, as plain values: which facts count in which state, and what several runs come to."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from sssjob.lrm import slurm
from sssjob.lrm.usage import Usage, of_runs, present, quantity, whole

FULL = Usage(
    native_state="COMPLETED", submit_time=1.0, queue="q", account="a", qos="n", machine="m", ran=True, start_time=2.0,
    nodes=["n1"], node_count=1, processors=2, gpus=1, gpu_types={"a100": 1}, starts=1, end_time=9.0, wall_seconds=6.0,
    suspend_seconds=1.0, cpu_seconds=5.0, memory_max_bytes=7, memory_average_bytes=3, energy_joules=4.0, exit_code=0,
    signal=0)
WHOSE = {"native_state", "submit_time", "queue", "account", "qos", "machine"}
WHERE = {"start_time", "nodes", "node_count", "processors", "gpus", "gpu_types", "starts"}
ENDED = {"end_time"}
HOW = {"ran", "exit_code", "signal"}
USED = {one.name for one in fields(Usage)} - WHOSE - WHERE - ENDED - HOW


@pytest.mark.parametrize(("ran", "began", "over", "names"), [
    (True, False, False, WHOSE), (True, True, False, WHOSE | WHERE), (True, True, True, WHOSE | WHERE | ENDED | USED),
    (False, True, False, WHOSE), (False, True, True, WHOSE | ENDED)])
def test_facts_belong_to_states(ran: bool, began: bool, over: bool, names: set[str]) -> None:
    """A job that waits stands nowhere, and one that never ran used nothing, even where its record has numbers."""
    assert replace(FULL, ran=ran).facts(began=began, over=over).keys() == names


def test_what_is_not_known_is_no_fact() -> None:
    assert Usage(ran=True, node_count=0).facts(began=True, over=True) == {"node_count": 0}
    assert present({"a": None, "b": 0, "c": ""}) == {"b": 0, "c": ""}


def test_runs_of_a_job() -> None:
    """Use adds up over runs that had a place; the last one says how it ended, and where it last stood."""
    first = replace(FULL, native_state="NODE_FAIL", queue="old", exit_code=1, nodes=["n0"], suspend_seconds=None)
    waits = Usage(native_state="PENDING", submit_time=10.0, queue="new", wall_seconds=99.0, memory_max_bytes=99)
    step = Usage(memory_max_bytes=50, cpu_seconds=1000.0)
    assert of_runs([first, FULL, waits], [step]) == replace(
        FULL, native_state="PENDING", queue="new", account=None, qos=None, machine=None, starts=2, end_time=None,
        wall_seconds=12.0, suspend_seconds=1.0, cpu_seconds=10.0, energy_joules=8.0, memory_max_bytes=50,
        exit_code=None, signal=None)


def test_a_job_that_never_ran() -> None:
    job = Usage(native_state="CANCELLED", submit_time=1.0, start_time=5.0, end_time=5.0, wall_seconds=0.0)
    assert of_runs([job]) == replace(job, wall_seconds=None)


@pytest.mark.parametrize(("code", "signal", "ended"), [
    (1, 0, {"exit_code": 1}), (1, None, {"exit_code": 1}), (0, 9, {"signal": 9}), (None, None, {})])
def test_an_attempt_ends_by_a_code_or_a_signal(code: int | None, signal: int | None, ended: dict[str, int]) -> None:
    assert Usage(exit_code=code, signal=signal, queue="q").attempt() == ended


@pytest.mark.parametrize(("text", "value"), [
    ("12", 12.0), ("1.5", 1.5), ("Unknown", None), ("nan", None), ("-1", None), ("1e5", None), ("", None),
    ("\u0663", None)])
def test_quantities(text: str, value: float | None) -> None:
    assert quantity(text) == value
    assert whole(text) == (int(value) if value is not None and text.isdecimal() else None)


def test_nodes_that_slurm_has_not_told_yet() -> None:
    """Fewer names than nodes are a list that is not whole; a job without nodes did not run, whatever its times say."""
    row = dict.fromkeys(("Submit", "Partition", "Start", "AllocTRES", "End", "ElapsedRaw", "Suspended", "TotalCPU",
                         "MaxRSS", "AveRSS", "ConsumedEnergyRaw", "ExitCode", "State", "NCPUS"), "")
    assert slurm.recorded(row | {"NodeList": "n[1-2]", "NNodes": "2"}).nodes == ["n1", "n2"]
    assert slurm.recorded(row | {"NodeList": "n1", "NNodes": "2"}) == Usage(
        native_state="", ran=True, node_count=2)
    assert not slurm.recorded(row | {"NodeList": "None assigned", "NNodes": "1", "Start": "5"}).ran
