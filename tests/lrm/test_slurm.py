"""Slurm's own words: every state has a meaning for both users, exit codes, resources, members of its JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sssjob.lrm import waits
from sssjob.lrm.slurm import CODED, STATES, exit_of, gpus, job_id, limit, number, state_of, tres, waits_for
from sssjob.lrm.states import Stage


@pytest.mark.parametrize(("text", "word"), [
    ("CANCELLED by 1001", "CANCELLED"), ("CANCELL+", "CANCELLED"), ("RUNNING", "RUNNING"), ("NODE_FAIL+", "NODE_FAIL"),
    ("NEW_WORD", None), ("+", None), ("", None)])
def test_states(text: str, word: str | None) -> None:
    state = state_of(text)
    assert (None if state is None else state.word) == word


@pytest.mark.parametrize(("reason", "kind"), [
    ("MaxCpuPerAccount", waits.LIMIT), ("MaxGRESRunMinsPerUser", waits.LIMIT), ("AccountingPolicy", waits.LIMIT),
    ("QOSMaxGRESPerUser", waits.LIMIT), ("MaxMemPerLimit", waits.NEVER), ("Licenses", waits.TURN)])
def test_limits_of_accounts_are_limits(reason: str, kind: str) -> None:
    """Words of job_state_reason.c of Slurm 26.11."""
    assert waits_for(reason) == kind


def test_reasons_belong_to_ends() -> None:
    assert {word for word, state in STATES.items() if state.reason is not None} == {
        word for word, state in STATES.items() if state.stage in (Stage.FAILED, Stage.SILENT)} - {"FAILED"}
    assert set(CODED) < STATES.keys()


@pytest.mark.parametrize(("text", "code", "signal"), [
    ("0:0", 0, 0), ("12:9", 12, 9), ("3", 3, None), ("", None, None), ("a:b", None, None), ("4294967294:0", None, 0),
    ("-1:0", None, 0), ("1:\u0663", 1, None)])
def test_exits(text: str, code: int | None, signal: int | None) -> None:
    assert exit_of(text) == (code, signal)


@pytest.mark.parametrize(("text", "total", "types", "wrong"), [
    ("cpu=1,mem=2G", None, {}, ""), ("gres/gpu=2", 2, {}, ""), ("gres/gpu:a=1,gres/gpu:b=1", 2, {"a": 1, "b": 1}, ""),
    ("gres/gpu=2,gres/gpu:a=2", 2, {"a": 2}, ""), ("gres/gpu=0", 0, {}, ""),
    ("gres/gpu=2,gres/gpu:a=1", 2, {}, "gres/gpu says 2, its types 1; gres/gpu is taken")])
def test_gpus(text: str, total: Decimal | None, types: dict[str, Decimal], wrong: str) -> None:
    amounts = [(kind, Decimal(value)) for kind, value in tres(text) if kind.startswith("gres/")]
    assert gpus(amounts) == (total, types, wrong)


@pytest.mark.parametrize(("text", "seconds"), [
    ("5", 300), ("5:30", 360), ("1:00:00", 3600), ("1-", 86400), ("1-0", 86400), ("1-2:3", 93780),
    ("1-2:3:4", 93840)])
def test_limits(text: str, seconds: int) -> None:
    assert limit(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1:2:3:4", "1-2:3:4:5", "a"])
def test_no_limit(text: str) -> None:
    with pytest.raises(ValueError, match="no time"):
        limit(text)


@pytest.mark.parametrize(("job", "text"), [
    ({"job_id": 12}, "12"), ({"job_id": 13, "array": {"job_id": 12, "task_id": {"set": True, "number": 3}}}, "12_3"),
    ({"job_id": 12, "array": {"job_id": 12, "task_id": {"set": False, "number": 0}, "task": "4-9"}}, "12_[4-9]"),
    ({"job_id": 13, "het": {"job_id": 12, "job_offset": 1}}, "12+1")])
def test_ids_in_json(job: Any, text: str) -> None:
    assert job_id(job) == text


@pytest.mark.parametrize("value", [True, "x", [], 2**64])
def test_no_number_in_json(value: Any) -> None:
    with pytest.raises(ValueError, match="is no number"):
        number(value)
