"""Quotes by plans are those of the pricing, whatever was asked before, by whose rates, in whatever order."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, Uncharged
from sssjob.accounting import pricing as pricing_module
from sssjob.accounting.pricing import Quotation, quote
from sssjob.accounting.quotes import PlannedQuotation, QuotePlans
from sssjob.accounting.rates import RateSet
from sssjob.document.element import Property
from sssjob.document.model import Job
from sssjob.request.totals import Identity
from sssjob.request.tree import identity_of
from sssjob.xml.reader import read_document
from tests.accounting.support import rate_set
from tests.accounting.test_plans import RATES
from tests.strategies import FIXED, examples, requests

ALL = [rate_set(text) for text in (*RATES.values(), "VBR Processors 2", "NBR Queue=batch 1\nVBR Memory 3",
                                    "VBR TaskCount 2\nVBR Processors 1", "NBR TaskCount=7 1\nVBR Processors 1")]
#: Requests of few shapes: {} is an amount.
SHAPES = (
    "<Requested><Processors>{}</Processors><Duration>{}</Duration></Requested>",
    "<Requested><Processors>{}</Processors><Memory units='GB'>{}</Memory><Duration>{}</Duration></Requested>",
    "<Requested><Memory units='MB' metric='PerNode'>{}</Memory><Duration>{}</Duration></Requested>",
    "<Requested><NodeCount>{}</NodeCount><Memory units='MB' metric='PerNode'>{}</Memory><Duration>{}</Duration>"
    "</Requested>",
    "<Requested><Duration>{}</Duration></Requested><TaskGroup><TaskCount>{}</TaskCount></TaskGroup>",
    # a script: what its only task group says is the count of tasks
    "<Requested><Memory units='MB' metric='PerNode'>{}</Memory><Duration>{}</Duration></Requested>"
    "<TaskGroup><TaskCount>{}</TaskCount></TaskGroup>",
    "<Requested><Queue>gpu</Queue><Processors consumptionRate='0.5'>{}</Processors><Duration>{}</Duration></Requested>",
    "<QualityOfService>high</QualityOfService><Requested><Processors op='GE'>{}</Processors><Duration>{}</Duration>"
    "</Requested>",
    "<Requested><Processors>{}</Processors><Resource name='GPU'>{}</Resource></Requested><Duration>{}</Duration>",
    "<Requested><Duration>{}</Duration></Requested><TaskGroup><Processors>{}</Processors></TaskGroup><TaskGroup>"
    "<TaskCount>{}</TaskCount><Processors>2</Processors></TaskGroup>",
    "<Extension type='Scheduler' name='Array'>1-3</Extension><Requested><Processors>{}</Processors><Duration>{}"
    "</Duration></Requested>",
)
VALUES = ("0", "1", "2", "7", "100", "3600", "1.5", "99999999999")


def job_of(text: str) -> Job:
    root = read_document(f"<Job>{text}</Job>".encode()).root
    assert isinstance(root, Job)
    return root


def alike(texts: list[str], rates: list[RateSet]) -> QuotePlans:
    """Every job is quoted by all rates one after the other, as the pricing by itself does it."""
    plans = QuotePlans()
    for text in texts:
        job = job_of(text)
        planned = PlannedQuotation.of(plans, job, None)
        for own in rates:
            alone = Quotation(job).by(own)
            price = planned.amount(own)
            if price is not None:
                by_itself = alone.amount if isinstance(alone, Charge) else Uncharged(alone.reason, alone.detail)
                assert price == by_itself, (text, own.identity)
    return plans


@settings(max_examples=examples(30), deadline=None, derandomize=FIXED)
@given(st.data())
def test_plans_say_what_the_pricing_says(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.builds(
        lambda shape, values: shape.format(*values), st.sampled_from(SHAPES),
        st.lists(st.sampled_from(VALUES), min_size=3, max_size=3)) | requests(wide=True), min_size=3, max_size=8))
    alike(texts, data.draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=4)))


def test_every_shape_by_all_rates() -> None:
    """Each shape comes often enough for a plan, with other amounts each time."""
    random_ = random.Random(5)
    texts = [shape.format(*random_.choices(VALUES, k=3)) for shape, _ in product(SHAPES, range(6))]
    random_.shuffle(texts)
    plans = alike(texts, ALL)
    assert sum(plan is not None and not isinstance(plan, Uncharged) for plan in plans.plans.values()) > 40


def test_what_jobs_of_one_shape_cost_is_priced_three_times_by_each_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are priced by themselves, and one with numbers in place of the amounts; all others by the plan."""
    priced = 0
    price_of = pricing_module.price_of

    def counted(*arguments: Any) -> Charge | Uncharged:
        nonlocal priced
        priced += 1
        return price_of(*arguments)

    monkeypatch.setattr(pricing_module, "price_of", counted)
    monkeypatch.setattr("sssjob.accounting.quotes.price_of", counted)
    rates = [rate_set(f"VBR Processors {number}\nVBR Memory 0.5") for number in range(1, 6)]
    plans = QuotePlans()
    amounts = []
    for number in range(1, 40):
        planned = PlannedQuotation.of(plans, job_of(SHAPES[1].format(number, 1, 60)), None)
        amounts += [planned.amount(own) for own in rates]
    assert len(set(amounts)) > 50
    assert priced <= 4 * len(rates)


def test_each_task_group_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a name the values of all levels were looked through for each of the task groups: 1,000 took four seconds."""
    counted = 0

    def counting(p: Property) -> Identity:
        nonlocal counted
        counted += 1
        return identity_of(p)

    monkeypatch.setattr("sssjob.accounting.asked.identity_of", counting)
    groups = "<TaskGroup><TaskCount>2</TaskCount><Memory>512</Memory></TaskGroup>" * 50
    job = read_document(f"<Job><Duration>60</Duration>{groups}</Job>".encode()).root
    assert isinstance(job, Job)
    price = quote(job, rate_set(
        'VBR Processors 1\nVBR Memory 1 units = "MB"'))
    assert isinstance(price, Charge) and price.amount == 60 * (100 + 50 * 512)
    assert counted <= 2 * 50
