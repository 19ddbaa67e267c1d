"""What a report is asked for: a time, conditions, the greatest groups; classes of jobs; how long they waited."""

from __future__ import annotations

import json
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sssjob.accounting.dimensions import value_of
from sssjob.accounting.totals import OTHER, Sums, Totals
from sssjob.document.element import Property
from sssjob.errors import UsageError
from sssjob.xml.reader import read_document
from tests.accounting.conftest import Command
from tests.accounting.test_account import job

DAY = 86_400
START = 1_790_000_000 // DAY * DAY


@given(st.lists(st.tuples(st.integers(0, 5 * DAY), st.integers(0, 2 * DAY), st.integers(1, 9)), max_size=12),
       st.booleans(), st.sampled_from([None, "day", "month"]))
def test_parts_of_the_time_add_up(runs: list[tuple[int, int, int]], spread: bool,
                                  every: str | None) -> None:
    """Reports of days, one after another, come to the report of the whole time, spread or not."""
    jobs = [job(START + start, seconds, processors) for start, seconds, processors in runs]

    def total(since: int | None = None, until: int | None = None) -> tuple[int, Fraction, Fraction]:
        totals = Totals(["User"], every, spread=spread, since=since, until=until)   # type: ignore[arg-type]
        for one in jobs:
            totals.add(one)
        whole = totals.whole()
        return whole.jobs if not spread else 0, whole.wall, whole.processors

    days = [total(START + n * DAY, START + (n + 1) * DAY) for n in range(-1, 9)]
    assert [sum(figures) for figures in zip(*days, strict=True)] == list(total())


def test_a_job_belongs_to_its_end() -> None:
    one = job(START - 3600, 7200)
    assert Totals(until=START + 1).add(one) is False
    assert Totals(since=START + 3600).add(one) is True
    assert Totals(since=START + 3601).add(one) is False
    totals = Totals(spread=True, since=START)
    assert totals.add(one)
    assert totals.whole().wall == 3600


@pytest.mark.parametrize(("where", "users"), [
    (["User=a"], "a"), (["user = a", "User=b"], "ab"), (["User!=a"], "bc"), (["User!=a", "User!=b"], "c"),
    (["User=a", "Project=none"], ""), (["Queue=-"], "abc"), (["Queue!=-"], ""), (["Extension:Site=x"], ""),
    (["Size=0002-0004"], "abc"), (["Failure=-"], "abc"), (["User=a", "User!=a"], ""), (["User=A"], ""),
])
def test_conditions(where: list[str], users: str) -> None:
    totals = Totals(["User"], where=where)
    for user in "abc":
        totals.add(job(user=user))
    assert "".join(sorted(group.key[0] for group in totals.groups())) == users
    assert totals.left_out == {}


@pytest.mark.parametrize("where", ["User", "=x", "User~x", "Nobody=x", ""])
def test_no_conditions(where: str) -> None:
    with pytest.raises(UsageError, match=r"is no condition|no property"):
        Totals(where=[where])


@pytest.mark.parametrize(("more", "failure"), [
    ("<StatusMessage>timeout: it reached its limit</StatusMessage>", "timeout"),
    ("<StatusMessage>cancel: by 1093</StatusMessage><ExitCode>143</ExitCode>", "cancel"),
    ("<StatusMessage>cancel: by 1052</StatusMessage>", "cancel"),
    ("<ExitCode>3</ExitCode>", "failed"), ("<ExitCode>0</ExitCode>", "-"),
    ("<StatusMessage>preempted</StatusMessage>", "preempted"),
])
def test_why_jobs_failed(more: str, failure: str) -> None:
    assert value_of(job(more=more), "Failure") == failure


@pytest.mark.parametrize(("processors", "size"), [
    (1, "0001"), (2, "0002-0004"), (4, "0002-0004"), (5, "0005-0016"), (4096, "1025-4096"), (4097, "4097+")])
def test_sizes(processors: int, size: str) -> None:
    assert value_of(job(processors=processors), "Size") == size


def test_times_of_waiting() -> None:
    assert value_of(job(), "Wait") == "< 10m"        # 60 s
    totals = Totals(["wait"])
    totals.add(job())
    assert totals.by == ("Wait",)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40))
def test_how_long_they_waited(waits: list[int]) -> None:
    """The median and the 95th percentile are those of the numbers themselves, to 1 % and a second."""
    sums = Sums()
    for wait in waits:
        other = Sums()
        other.waits_for(wait)
        sums.add(other)
    ordered = sorted(waits)
    for share, exact in ((Fraction(1, 2), statistics.median_low(waits)),
                         (Fraction(95, 100), ordered[-(-95 * len(waits) // 100) - 1])):
        found = sums.waited_at_most(share)
        assert found is not None
        assert found * 3600 == pytest.approx(exact, rel=0.011, abs=1)


def test_the_greatest_groups() -> None:
    totals = Totals(["User"], top=2)
    for n, user in enumerate("abcde"):
        totals.add(job(user=user, processors=n + 1))
    assert [(g.key[0], int(g.sums.processors / 3600)) for g in totals.groups()] == [("e", 5), ("d", 4), (OTHER, 6)]
    totals.sort = "jobs"
    totals.add(job(user="a", processors=1))
    assert [g.key[0] for g in totals.groups()] == ["a", "e", OTHER]
    totals.top = 9
    assert len(totals.groups()) == 5
    assert totals.whole().jobs == 6


def test_what_is_too_small_stays_hidden() -> None:
    """The greatest groups of a report with a least number of users still add up to what there is."""
    totals = Totals(["Project"], least=3, top=1)
    for n in range(12):
        totals.add(job(user=f"u{n}", project=f"p{n % 3}" if n < 11 else "alone", processors=n + 1))
    assert [(g.key[0], g.sums.jobs) for g in totals.groups()] == [("p1", 4), (OTHER, 8)]


def test_the_command(account: Command) -> None:
    answer = account("-f pbs-acct log --where Project=p1 --by User --top 1 --sort jobs --json -q")
    records = [json.loads(line) for line in answer.out.splitlines()]
    assert [(r.get("key"), r["jobs"], r.get("share")) for r in records if r["type"] != "records"] == [
        ({"User": "u1"}, 1, 0.3333), ({"User": OTHER}, 2, 0.6667), (None, 3, None)]
    for line, jobs in (("--since 2026-11-18T00:00 --until 2026-11-19T00:00", 6), ("--until 2026-11-17", 0)):
        whole = json.loads(account(f"-f pbs-acct log {line} --json -q").out.splitlines()[-1])
        assert whole["jobs"] == jobs, whole
    for wrong in ("--sort size", "--top 0", "--where x", "--since never"):
        answer = account(f"-f pbs-acct log {wrong}")
        assert (answer.code, answer.out) == (2, ""), wrong


@pytest.mark.parametrize("name", ["SiteName", "sitename", "SITENAME"])
def test_an_extension_in_any_case(name: str) -> None:
    """HTCondor's attributes have none, and readers keep them in small letters."""
    one = job(user="a")
    one.items.append(Property("Extension", "x", {"name": "sitename", "type": "htcondor"}))
    assert value_of(one, f"Extension:{name}") == "x"
    assert Totals(where=[f"extension:{name}=x"]).add(one)


@pytest.mark.parametrize("chosen", ["--where User=U1", "--since 2099-01-01T00:00Z", "--until 1980-01-01 --spread"])
def test_a_report_of_nothing_says_so(account: Command, chosen: str) -> None:
    """A value in another case left nothing, and nothing was printed."""
    answer = account(f"-f pbs-acct log {chosen}")
    assert (answer.code, answer.out) == (0, "")
    assert "\nno job that ran is as --where, --since and --until say\n" in answer.err
    assert "no job that ran" not in account(f"-f pbs-acct log {chosen} -q").err


@pytest.mark.parametrize(("asked", "held", "figures"), [
    # amounts of each node, of which there are two
    ("<Processors metric='PerNode'>4</Processors><NodeCount>2</NodeCount>",
     "<Processors metric='PerNode'>3</Processors><NodeCount>2</NodeCount>"
     "<Resource name='GPU' metric='PerNode'>2</Resource>", ("0005-0016", 6, 8, 4)),
    # of each processor
    ("<Processors>4</Processors>", "<Processors>4</Processors><Resource name='GPU' metric='PerProcessor'>2</Resource>",
     ("0002-0004", 4, 4, 8)),
    # nothing says on how many nodes
    ("<Processors>4</Processors>", "<Processors metric='PerNode'>4</Processors>", ("-", 0, 0, 0)),
    # of task groups, and of the tasks of one
    ("</Requested><TaskGroup><Delivered><Processors>8</Processors></Delivered></TaskGroup><TaskGroup>"
     "<Task><Delivered><Processors>3</Processors></Delivered></Task>"
     "<Task><Delivered><Processors>1</Processors></Delivered></Task></TaskGroup><Requested><Processors>6</Processors>",
     "", ("0005-0016", 12, 6, 0)),
    # processors that are asked for by tasks
    ("<NodeCount>2</NodeCount></Requested><TaskGroup><TaskDistribution>8</TaskDistribution></TaskGroup><Requested>",
     "<Processors>12</Processors>", ("0005-0016", 12, 16, 0)),
])
def test_amounts_are_those_of_the_whole_job(asked: str, held: str, figures: tuple[str, int, int, int]) -> None:
    """As they are priced, and as ``quote`` and ``match`` count what is asked for."""
    text = (f"<Job><Id>1</Id><State>Completed</State><EndTime>{START}</EndTime>"
            f"<Requested>{asked}<Duration>10</Duration></Requested>"
            f"<Delivered>{held}<Duration>10</Duration></Delivered></Job>")
    one = next(iter(read_document(text.encode()).jobs()))[0]
    totals = Totals()
    totals.add(one)
    sums = totals.whole()
    assert (value_of(one, "Size"), sums.processors, sums.requested, sums.gpus) == (figures[0], *(
        10 * figure for figure in figures[1:]))
