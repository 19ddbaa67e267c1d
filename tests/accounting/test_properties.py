"""Laws of charging: a charge is the sum of the charges of its parts in time, more never costs less, nothing is lost to
binary fractions, and what is quoted is charged."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, RateSet, Uncharged, charge, quote, recompute
from sssjob.accounting.arithmetic import rounded
from sssjob.document.model import Delivered, Document, Job, Requested
from tests.strategies import documents, examples

CALENDAR = [{"name": "Night", "from": "22:00", "to": "06:00"}, {"name": "Weekend", "days": ["Sat", "Sun"]}]
AMOUNTS = st.decimals(0, 1000, places=4)
NAMES = ("Processors", "NodeCount", "Memory", "Disk")
STARTS = st.integers(1577836800, 1893456000)
SPANS = st.integers(0, 5 * 86400)


@st.composite
def rate_sets(draw: st.DrawFn, *, timed: bool = False) -> RateSet:
    """Rates of these properties. timed: only what goes by time, without rules for the whole."""
    per = st.sampled_from(("second", "hour", "day"))
    rates: list[dict[str, Any]] = [{"type": "VBR", "name": n, "rate": draw(AMOUNTS), "per": draw(per)}
                                   for n in draw(st.sets(st.sampled_from(NAMES), min_size=1))]
    rates += [{"type": "NBM", "name": "TimeCategory", "instance": n, "rate": draw(AMOUNTS)}
              for n in draw(st.sets(st.sampled_from(("Night", "Weekend"))))]
    rates += [{"type": "NBM", "name": "Queue", "instance": "gpu", "rate": draw(AMOUNTS)}] * draw(st.integers(0, 1))
    made: dict[str, Any] = {"name": "r", "version": "1", "rate": rates, "timezone": "Europe/Berlin",
                            "time_category": CALENDAR}
    if not timed:
        rates += [{"type": "VBU", "name": "Swap", "rate": draw(AMOUNTS)}, {"type": "VBF", "name": "Swap", "rate": "1"}]
        made |= {"granularity": draw(st.sampled_from((1, 60, 3600))), "minimum": draw(AMOUNTS),
                 "combine": draw(st.sampled_from(("sum", "max"))), "precision": draw(st.integers(0, 6)),
                 "rounding": draw(st.sampled_from(("half-up", "half-even", "up", "down")))}
    return RateSet.model_validate(made)


Amounts = dict[str, int]
AMOUNTS_OF_A_JOB = st.fixed_dictionaries({n: st.integers(0, 10**5) for n in (*NAMES, "Swap")})


def delivered(amounts: Amounts, start: int, span: int) -> Job:
    """A job that had these amounts for so long."""
    job = Job()
    job.add("Queue", "gpu")
    job.add("StartTime", start)
    job.add("EndTime", start + span)
    job.items.append(block(Delivered(), amounts, span))
    return job


def block(made: Delivered | Requested, amounts: Amounts, span: int) -> Delivered | Requested:
    for name, value in amounts.items():
        made.add(name, Decimal(value) if name in ("Memory", "Disk", "Swap") else value)
    made.add("Duration", span)
    return made


def cost(job: Job, rates: RateSet) -> Charge:
    price = charge(job, rates)
    assert isinstance(price, Charge), price
    return price


@settings(max_examples=examples(33))
@given(rate_sets(timed=True), AMOUNTS_OF_A_JOB, STARTS, SPANS, SPANS)
def test_additive_over_time(rates: RateSet, amounts: Amounts, start: int, first: int, second: int) -> None:
    whole = cost(delivered(amounts, start, first + second), rates)
    parts = (cost(delivered(amounts, start, first), rates), cost(delivered(amounts, start + first, second), rates))
    assert whole.exact == parts[0].exact + parts[1].exact


@settings(max_examples=examples(33))
@given(rate_sets(), AMOUNTS_OF_A_JOB, AMOUNTS_OF_A_JOB, STARTS, SPANS)
def test_more_never_costs_less(rates: RateSet, amounts: Amounts, more: Amounts, start: int, span: int) -> None:
    greater = {n: v + more[n] for n, v in amounts.items()}
    assert cost(delivered(amounts, start, span), rates).amount <= cost(delivered(greater, start, span), rates).amount


@settings(max_examples=examples(33))
@given(rate_sets(timed=True), AMOUNTS_OF_A_JOB, STARTS, SPANS, SPANS)
def test_longer_never_costs_less(rates: RateSet, amounts: Amounts, start: int, span: int, more: int) -> None:
    longer = cost(delivered(amounts, start, span + more), rates)
    assert cost(delivered(amounts, start, span), rates).amount <= longer.amount


@settings(max_examples=examples(33))
@given(rate_sets(), AMOUNTS_OF_A_JOB, STARTS, SPANS)
def test_exact_and_recomputable(rates: RateSet, amounts: Amounts, start: int, span: int) -> None:
    charge = cost(delivered(amounts, start, span), rates)
    assert recompute(charge.arithmetic) == charge.exact
    assert all(recompute(i.arithmetic) == i.value for i in charge.items)
    assert charge.amount == rounded(recompute(charge.arithmetic), rates.smallest, rates.precision, rates.rounding)
    assert abs(Fraction(charge.amount) - charge.exact) < Fraction(rates.smallest)
    assert -charge.amount.as_tuple().exponent == rates.precision      # type: ignore[operator]


@settings(max_examples=examples(33))
@given(rate_sets(), AMOUNTS_OF_A_JOB, STARTS, SPANS)
def test_quote_of_the_actual_is_the_charge(rates: RateSet, amounts: Amounts, start: int, span: int) -> None:
    """Of a job in which each node has a processor, as each has when it is asked for."""
    amounts = amounts | {"Processors": max(amounts["Processors"], amounts["NodeCount"])}
    job = delivered(amounts, start, span)
    job.items.append(block(Requested(), amounts, span))
    charged, quoted = charge(job, rates), quote(job, rates)
    assert isinstance(charged, Charge) and isinstance(quoted, Charge)
    assert (quoted.amount, quoted.arithmetic) == (charged.amount, charged.arithmetic)


@settings(max_examples=examples(33))
@given(rate_sets(), AMOUNTS_OF_A_JOB, STARTS, SPANS)
def test_charging_changes_nothing(rates: RateSet, amounts: Amounts, start: int, span: int) -> None:
    job, again = delivered(amounts, start, span), delivered(amounts, start, span)
    assert charge(job, rates) == charge(job, rates) and job == again


ANY_PROPERTY = [*NAMES, "Swap", "GPU", "CpuDuration", "User", "Queue", "Network", "Duration", "Feature"]
GREEDY = RateSet.model_validate({
    "name": "r", "version": "1", "billing": {"weights": {"CPU": 1, "Mem": "1G", "gres/gpu": 1, "license/x": 2}},
    "rate": [*({"type": t, "name": n, "rate": "1"} for t in ("VBR", "VBU", "VBM", "VBF") for n in ANY_PROPERTY),
             {"type": "VBR", "name": "Billing", "rate": 2},
             {"type": "NBF", "name": "Queue", "instance": "*", "rate": 1}],
})


@given(documents())
def test_any_document_is_charged_or_says_why(document: Document) -> None:
    for job, defaults in document.jobs():
        for price in (charge, quote):
            assert isinstance(price(job, GREEDY, defaults), Charge | Uncharged)
