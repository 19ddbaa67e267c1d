"""The grammar of failure policies: what every text means, and what is wrong with it where it means nothing."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.failures import CLASSES, Change, Clause, FailurePolicyError, Retry, with_fail_fast
from sssjob.xml.reader import read_document
from sssjob.xml.writer import write_document
from tests.strategies import examples

FULL = ("node-failure=3 preempted timeout=2:Duration*2,max=24h memory=2:Memory*1.5,max=64GB:Duration+60 "
        "exit(75,100-110)=2 failed total=5")
GB = Decimal(1 << 30)


def test_every_form() -> None:
    assert Retry.of(FULL) == Retry((
        Clause("node-failure", 3), Clause("preempted", 1),
        Clause("timeout", 2, (), (Change("Duration", Decimal(2), Decimal(0), Decimal(86400), "Duration*2,max=24h"),)),
        Clause("memory", 2, (), (Change("Memory", Decimal("1.5"), Decimal(0), 64 * GB, "Memory*1.5,max=64GB"),
                                 Change("Duration", Decimal(1), Decimal(60), None, "Duration+60"))),
        Clause("exit", 2, ((75, 75), (100, 110))), Clause("failed", 1)), 5)


@pytest.mark.parametrize(("text", "column", "message"), [
    ("", 1, "Retry names no failure"),
    ("total=3", 1, "Retry names no failure"),
    ("timeout  node-fail=2", 10, "'node-fail' is no class of failures; known are node-failure, preempted"),
    ("timeout=0", 1, "'0' is no number of attempts"),
    ("timeout=-1", 1, "'-1' is no number of attempts"),
    ("timeout=", 1, "'' is no number of attempts"),
    ("timeout=101", 1, "101 further attempts are more than 100 (limit retries)"),
    ("timeout timeout=2", 9, "timeout stands there twice"),
    ("timeout total=1 total=2", 17, "'total' stands there twice"),
    ("exit(1-9) exit(4)=2", 11, "exit code 4 stands there twice"),
    ("exit(0)", 1, "'0' is no exit code from 1 to 255"),
    ("exit(9-3)", 1, "'9-3' is no exit code"),
    ("exit(256)", 1, "'256' is no exit code"),
    ("exit()", 1, "'' is no exit code"),
    ("memory(3)", 1, "only exit has codes, not memory"),
    ("timeout:Duration*1", 1, "'1' is no factor above 1 and up to 100"),
    ("timeout:Duration*101", 1, "'101' is no factor"),
    ("timeout:Duration*2s", 1, "'2s' is no factor"),
    ("timeout:Processors*2", 1, "'Processors*2' is no change such as"),
    ("timeout:Duration*2,max=1.5s", 1, "'1.5s' is not a whole number of seconds"),
    ("timeout:Duration+0", 1, "'0' is not a whole number of seconds"),
    ("memory:Memory+4XB", 1, "'4XB' is not an amount such as 4GB"),
    ("memory:Memory*2:Memory+1GB", 1, "Memory is changed twice"),
    ("timeout=2:", 1, "'' is no change"),
    ("<timeout>", 1, "is no clause such as"),
])
def test_what_is_wrong_is_named_with_its_place(text: str, column: int, message: str) -> None:
    with pytest.raises(FailurePolicyError) as caught:
        Retry.of(text)
    assert caught.value.column == column and message in str(caught.value)


@settings(max_examples=examples(200))
@given(st.text(st.sampled_from("abtimeouxDr(),-=*+:0123456789. \n%{}"), max_size=60))
def test_any_text_is_a_policy_or_a_named_fault(text: str) -> None:
    try:
        retry = Retry.of(text)
    except FailurePolicyError as error:
        assert 1 <= error.column <= max(len(text), 1)
    else:
        assert Retry.of(f"{' '.join(map(str, retry.clauses))} total={retry.total}") == retry


_CLAUSES = st.lists(st.sampled_from([*CLASSES, "exit", "exit(3)", "exit(5-9)", "failed"]), min_size=1, unique=True)


@settings(max_examples=examples(200))
@given(_CLAUSES, st.data())
def test_the_most_specific_clause_counts_wherever_it_stands(words: list[str], data: st.DataObject) -> None:
    """And a job is never tried again more often than its clause and the total say."""
    total = data.draw(st.integers(1, 6))
    retry = Retry.of(" ".join([*(f"{word}={n % 3 + 1}" for n, word in enumerate(words)), f"total={total}"]))
    shuffled = Retry(tuple(data.draw(st.permutations(retry.clauses))), retry.total)
    before: list[str] = []
    for _ in range(20):
        reason = data.draw(st.sampled_from([None, "boot", "cancel", "lost", "unknown-exit", "never-ran",
                                            *(reason for reasons in CLASSES.values() for reason in reasons)]))
        code = data.draw(st.sampled_from([0, 1, 3, 7]))
        clause = retry.next_for(reason, code, before)
        assert clause == shuffled.next_for(reason, code, before)
        if clause is None:
            continue
        known = reason in {r for reasons in CLASSES.values() for r in reasons}
        assert (known if reason is not None else code != 0)
        expected = [w for w in words if (reason is None and w in ("exit(3)", "exit(5-9)") and str(code) in {"3", "7"})]
        if expected and (code == 3) == (expected[0] == "exit(3)"):
            assert clause.name == expected[0]
        before.append(clause.name)
    assert len(before) <= total and all(before.count(c.name) <= c.most for c in retry.clauses)


@pytest.mark.parametrize(("policy", "code", "clause"), [
    ("exit=2 signal failed", 137, "signal"), ("exit=2 signal", 128, "exit"), ("exit=2 signal", 193, "exit"),
    ("signal exit(130-140)", 137, "exit(130-140)"), ("exit", 137, "exit"), ("signal", 1, None),
])
def test_a_script_whose_program_a_signal_ended_ends_with_a_code_that_is_a_signal(policy: str, code: int,
                                                                                 clause: str | None) -> None:
    """Under Slurm and Grid Engine no job ever was of the class, for scripts turn signals into codes."""
    chosen = Retry.of(policy).clause_for(None, code)
    assert (chosen.name if chosen is not None else None) == clause
    assert Retry.of("signal memory").unknown_to(()) == ["memory"]


@settings(max_examples=examples(100))
@given(st.decimals(1, 10**6, places=0), st.decimals("1.1", 100, places=2), st.integers(1, 10**7), st.integers(1, 9))
def test_amounts_grow_up_to_the_cap_and_never_shrink(start: Decimal, factor: Decimal, most: int, times: int) -> None:
    change = Change("Duration", factor, Decimal(0), Decimal(most), "")
    amount = start
    for _ in range(times):
        after = change.of(amount)
        assert amount <= after <= max(amount, Decimal(most)) and after == after.to_integral_value()
        amount = after


def test_fail_fast_is_said_in_the_defaults_of_every_group() -> None:
    document = read_document(b"""<JobGroup><Id>g</Id><Job><Id>a</Id><Executable>/bin/true</Executable>
        <Extension type="Scheduler" name="OnFailure">keep-going</Extension></Job></JobGroup>""")
    with_fail_fast(document)
    with_fail_fast(document)
    assert [line.strip() for line in write_document(document).splitlines()] == [
        "<JobGroup>", "<Id>g</Id>", "<JobDefaults>",
        '<Extension type="Scheduler" name="OnFailure">fail-fast</Extension>', "</JobDefaults>",
        "<Job>", "<Id>a</Id>", "<Executable>/bin/true</Executable>", "</Job>", "</JobGroup>"]
