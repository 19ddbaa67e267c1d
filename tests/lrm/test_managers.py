"""What the tables of all managers have in common, and the grammars of single ones."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from sssjob.lrm import cobalt, flux, htcondor, lsf, nqsv, pbs, sge, slurm
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.states import NativeState, Stage
from sssjob.lrm.usage import Usage

TABLES: dict[str, Mapping[str, NativeState]] = {
    "slurm": slurm.STATES, "pbs": pbs.STATES, "lsf": lsf.STATES, "htcondor": htcondor.STATES, "cobalt": cobalt.STATES,
    "flux": flux.STATES, "nqsv": nqsv.STATES}
#: Reasons of docs/facts.md, and never-ran of accounting.
REASONS = {"timeout", "memory", "node-failure", "boot", "preempted", "deadline", "cpu-limit", "cancel", "launch",
           "signal", "lost", "dependency", "never-ran"}


@pytest.mark.parametrize("states", TABLES.values(), ids=list(TABLES))
def test_tables(states: Mapping[str, NativeState]) -> None:
    """A job can wait and run with every manager; reasons and phases belong to states in which they can be."""
    assert {Stage.WAITING, Stage.RUNNING} <= {state.stage for state in states.values()}
    assert all(word == state.word for word, state in states.items())
    assert {state.reason for state in states.values() if state.reason is not None} <= REASONS
    assert all(state.phase == "SUSPENDED" for state in states.values() if state.stage is Stage.SUSPENDED)


def test_reasons_of_exits() -> None:
    named = {reason for _, reason in lsf.TERMINATIONS.values()} | set(sge.FAILED.values())
    named |= {reason for both in pbs.FAILURES.values() for reason in both}
    assert named <= REASONS | {""}


@pytest.mark.parametrize(("word", "reason"), [
    ("TERM_RUNLIMIT", "timeout"), ("TERM_OWNER", "cancel"), ("TERM_UNKNOWN", None), ("TERM_RMS", "rms"),
    ("TERM_CSM_ALLOC", "csm-alloc"), ("TERM_PRE_EXEC_FAIL", "launch")])
def test_terminations(word: str, reason: str | None) -> None:
    assert lsf.reason_of(word) == reason


@pytest.mark.parametrize(("listed", "count", "names"), [
    (["4*a", "2*b"], 6, ["a", "b"]), (["a", "a", "b"], 3, ["a", "b"]), (["x*a", "9999999999*b"], 2, ["a", "b"]),
    (["\u0663*a"], 1, ["a"]), ([], 0, [])])
def test_slots_of_lsf(listed: list[str], count: int, names: list[str]) -> None:
    """A count that is none is one slot, as of a host without a count."""
    assert lsf.slots(listed) == (count, names)


def test_use_in_an_ad() -> None:
    """The rules are the same for an ad in JSON and for the exact numbers of a history; half a pair is none."""
    ad = {"CumulativeRemoteUserCpu": 7.5, "RemoteUserCpu": 1.5, "RemoteSysCpu": 0.5, "ResidentSetSize_RAW": 0.0,
          "ResidentSetSize": 75.0}
    exact = {name: Decimal(value) for name, value in ad.items()}
    nothing = dict[str, Decimal]()
    assert (htcondor.cpu(ad.get), htcondor.peak(ad.get)) == (2, 75)
    assert (htcondor.cpu(exact.get), htcondor.peak(exact.get)) == (Decimal(2), Decimal(75))
    assert htcondor.cpu((ad | {"CumulativeRemoteSysCpu": 0.5}).get) == 8
    assert (htcondor.cpu(nothing.get), htcondor.peak(nothing.get)) == (None, None)
    assert [htcondor.in_use(20, away) for away in (None, 5, 30)] == [20, 15, 0]


@pytest.mark.parametrize("ad", [
    {"JobStatus": []}, {"AcctGroup": 3, "RemoteHost": 7, "JobStartDate": "x"}, {"RemoteWallClockTime": True},
    {"ResidentSetSize": -1, "QDate": 0}])
def test_ads_that_say_nothing(ad: dict[str, Any]) -> None:
    """Members of other kinds than they should be are not there."""
    assert htcondor.recorded(ad) == Usage()


@pytest.mark.parametrize(("text", "hosts", "slots"), [
    ("h/0+h/1", ("h",), 2), ("a/0-3,7+b/0", ("a", "b"), 6), ("(a/0*13)", ("a",), 0), ("a/0*13+b/0*0", ("a", "b"), 13),
    ("", (), 0)])
def test_exec_hosts(text: str, hosts: tuple[str, ...], slots: int) -> None:
    assert pbs.exec_host(text) == (hosts, slots, "")


@pytest.mark.parametrize("text", ["a/0-", "a/x", "a/1-2-3", "a/" + "9" * 10])
def test_no_exec_host(text: str) -> None:
    assert pbs.exec_host(text) == ((), 0, f"{text!a} is not of the form host/0-3")


@pytest.mark.parametrize(("text", "fields", "seconds"), [
    ("90", 3, 90), ("1:30", 3, 90), ("1:00:00.5", 3, 3601), ("1:0:0:0", 4, 86400), ("1.9", 4, 1)])
def test_times_of_pbs(text: str, fields: int, seconds: int) -> None:
    assert pbs.seconds(text, fields) == seconds


@pytest.mark.parametrize(("text", "seconds", "memory"), [
    ("010", 8, 8), ("0x10", 16, 16), ("1.5", 2, 2), ("infinity", None, None)])
def test_numbers_of_grid_engine(text: str, seconds: int | None, memory: int | None) -> None:
    assert (sge.seconds(text), sge.memory(text)) == (seconds, memory)
    assert (sge.seconds("1::"), sge.memory("2K"), sge.memory("2k")) == (3600, 2048, 2000)


@pytest.mark.parametrize(("text", "seconds"), [("5", 300), ("1:05", 3900), ("1:0:1", 3601), ("1:0:0:0", 86400)])
def test_times_of_cobalt(text: str, seconds: int) -> None:
    assert cobalt.limit(text) == seconds


def test_moments_of_cobalt() -> None:
    assert cobalt.moment("Thu Sep 10 17:35:17 2015 -0500 (CDT)") == 1441924517
    assert cobalt.moment("N/A") is None


def test_what_is_no_time() -> None:
    for read in (pbs.seconds, sge.seconds, cobalt.limit, slurm.limit):
        for text in ("", "x", "1:2:3:4:5", "-1", "\u0661"):
            with pytest.raises(ValueError, match="is no time of"):
                read(text)


@pytest.mark.parametrize(("answers", "out", "native_id"), [
    (slurm.ANSWERS, "welcome\n12;c1\n", "12"), (pbs.ANSWERS, "12[].server\n", "12[].server"),
    (pbs.TORQUE_ANSWERS, "12\n", "12"), (sge.ANSWERS, "12\n", "12"), (cobalt.ANSWERS, "12\n", "12"),
    (lsf.ANSWERS, "Job <12> is submitted to default queue <q>.\n", "12"), (htcondor.ANSWERS, "12.0 - 12.0\n", "12.0"),
    (nqsv.ANSWERS, "Request 12.nqsv submitted to queue: q.\n", "12")])
def test_answers_of_submit_commands(answers: SubmitAnswers, out: str, native_id: str) -> None:
    assert answers.job_id(out) == native_id and answers.is_id(native_id) and not answers.is_id("-12")
    for wrong in ("", "no\n", out + out):
        with pytest.raises(ValueError, match=f"{answers.command} gave no job id"):
            answers.job_id(wrong)
    assert answers.passes("timed out") and not answers.passes("denied")
