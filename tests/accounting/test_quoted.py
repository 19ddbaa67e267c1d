"""Quotes take their amounts from the totals of the request: what adds up over the levels of a job, and what is charged
when just that is used."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, RateSet, Uncharged, charge, quote, recompute
from sssjob.accounting.pricing import Quotation
from sssjob.document.element import Property, new_property
from sssjob.document.model import Delivered, Job
from sssjob.request import Total, request_of
from sssjob.xml.reader import read_document
from tests.accounting.support import charged, quoted, rate_set, refused
from tests.strategies import FIXED, examples, requests

EACH = rate_set("VBU Processors 1\nVBU NodeCount 1000\nVBU Memory 1\nVBU GPU 1000000\nVBU License 100000000")
HOUR = "<Requested><Duration>3600</Duration></Requested>"
EIGHT = "<TaskGroup><TaskCount>8</TaskCount><TaskDefaults>{}</TaskDefaults></TaskGroup>"
TWO = '<TaskGroup>{}</TaskGroup><TaskGroup>{}</TaskGroup>'


ARRAY = "<Extension type='Scheduler' name='Array'>{}</Extension>"


@pytest.mark.parametrize(("indices", "elements"), [("1-3", 3), ("7", 1), ("0-9:3%2", 4), ("1-3,2,9", 4)])
@pytest.mark.parametrize("where", ["<Job>{}<Processors>2</Processors></Job>",
                                   "<Job><Requested>{}<Processors>2</Processors></Requested></Job>"])
def test_an_array_costs_what_its_elements_do(where: str, indices: str, elements: int) -> None:
    """Each element is charged as a job of its own: minimum, fee and rounding are those of each."""
    rates = rate_set("minimum = 0.7\nVBU Processors 0.333")
    (job, _), = read_document(where.format(ARRAY.format(indices)).encode()).jobs()
    (alone, _), = read_document(where.format("").encode()).jobs()
    whole, one = quote(job, rates), quote(alone, rates)
    assert isinstance(whole, Charge) and isinstance(one, Charge)
    assert whole.amount == one.amount * elements
    assert recompute(whole.arithmetic) == whole.exact == one.exact * elements


@pytest.mark.parametrize(("indices", "reason"), [("3-1", "not-a-number"), ("1-99999999", "too-large")])
def test_an_array_of_nobody_knows_how_many_elements_is_not_quoted(indices: str, reason: str) -> None:
    (job, _), = read_document(f"<Job>{ARRAY.format(indices)}<Processors>2</Processors></Job>".encode()).jobs()
    refusal = quote(job, EACH)
    assert isinstance(refusal, Uncharged) and refusal.reason == reason


@pytest.mark.parametrize(("job", "amount"), [
    # eight tasks with two processors, 1 GB and one GPU each
    (EIGHT.format("<Requested><Processors>2</Processors><Memory units='GB'>1</Memory>"
                  "<Resource name='GPU'>1</Resource></Requested>"), "8008208.00"),
    # memory at the task group, processors in TaskDefaults
    ("<TaskGroup><TaskCount>4</TaskCount><Requested><Memory>500</Memory></Requested><TaskDefaults><Processors>2"
     "</Processors></TaskDefaults></TaskGroup>", "508.00"),
    ("<TaskGroupDefaults><TaskCount>4</TaskCount><TaskDefaults><Processors>2</Processors></TaskDefaults>"
     "</TaskGroupDefaults>", "8.00"),
    ("<TaskGroup><Task><Processors>3</Processors></Task><Task><Memory>7</Memory></Task></TaskGroup>", "11.00"),
    (TWO.format("<Processors>2</Processors>", "<TaskCount>3</TaskCount>"), "5.00"),
    ("<Processors>9</Processors>" + TWO.format("<Processors>2</Processors>", "<TaskCount>3</TaskCount>"), "9.00"),
    (TWO.format("<Resource name='GPU' type='a100'>1</Resource>", "<Resource name='GPU' type='v100'>2</Resource>"),
     "3000001.00"),
    ("<Resource name='GPU' type='a100'>1</Resource>" + TWO.format("<Resource name='GPU' type='v100'>2</Resource>",
                                                                 "<Name>b</Name>"), "3000001.00"),
    # factors that follow
    ("<Memory metric='PerNode'>4</Memory><TaskGroup><TaskDistribution>{1}{2,3}</TaskDistribution></TaskGroup>",
     "2011.00"),
    ("<Memory metric='PerNode'>4</Memory><TaskGroup><TaskCount>6</TaskCount><TaskDistribution type='TasksPerNode'>2"
     "</TaskDistribution></TaskGroup>", "3018.00"),
    ("<Memory metric='PerProcessor'>4</Memory>" + EIGHT.format("<Processors>2</Processors>"), "80.00"),
    ("<Memory metric='PerSlot'>4</Memory>" + EIGHT.format("<Processors>2</Processors>"), "80.00"),
    ("<Memory metric='PerGPU'>4</Memory>" + EIGHT.format("<Resource name='GPU'>1</Resource>"), "8000040.00"),
    ("<Memory metric='PerGPU'>4</Memory><NodeCount>2</NodeCount><Resource name='GPU' metric='PerNode'>3</Resource>",
     "6002026.00"),
    (EIGHT.format("<Processors>2</Processors><Memory metric='PerProcessor'>3</Memory>"), "64.00"),
    (EIGHT.format("<Resource name='GPU'>2</Resource><Memory metric='PerGPU'>3</Memory>"), "16000056.00"),
    ("<NodeCount>2</NodeCount>" + EIGHT.format("<Memory metric='PerNode'>3</Memory>"), "2014.00"),
    ("<NodeCount>2</NodeCount><Processors metric='PerNode'>4</Processors>", "2008.00"),
    ("<Memory metric='PerChunk'>4</Memory><Extension type='Scheduler' name='ChunkCount'>3</Extension>"
     "<Processors>3</Processors>", "15.00"),
    # several conditions on one amount: all have to hold
    ("<NodeCount>2</NodeCount><Requested><Memory metric='PerNode'>3</Memory><Memory>4</Memory></Requested>", "2008.00"),
    # alternatives at a level
    ("<TaskGroup><Requested><Processors>8</Processors><Processors conj='Or'>4</Processors></Requested></TaskGroup>",
     "8.00"),
    ("<Processors>0</Processors><TaskGroup><Memory>1</Memory></TaskGroup>", "1.00"),
])
def test_amounts_add_up(job: str, amount: str) -> None:
    charge = quoted(EACH, job)
    assert str(charge.amount) == amount
    assert recompute(charge.arithmetic) == charge.exact


@pytest.mark.parametrize(("job", "amount", "name"), [
    (HOUR, "1.00", "Processors"), ("<Resource name='GPU' type='a100'>2</Resource>", "2000001.00", "Processors"),
    ("<Memory metric='PerNode'>3</Memory>" + HOUR, "4.00", "Processors; Memory is PerNode, and NodeCount"),
    ("<Memory metric='PerProcessor'>3</Memory>" + HOUR, "4.00", "Processors; Memory is PerProcessor, and Processors"),
    (EIGHT.format("<Memory metric='PerNode'>3</Memory>"), "11.00", "Memory is PerNode, and NodeCount"),
    ("<Processors metric='PerNode'>4</Processors>", "4.00", "Processors is PerNode, and NodeCount")])
def test_where_nothing_says_how_many_one_is_priced_and_told(job: str, amount: str, name: str) -> None:
    """``--mem=4G`` says the memory of a node, and most scripts do not say how many nodes they take;
    ``--time`` alone is a job on one processor."""
    charge = quoted(EACH, job)
    assert str(charge.amount) == amount
    assert [note.message for note in charge.notes] == [
        f"{each} is not said: it is priced as for one, the least" for each in name.split("; ")]


@pytest.mark.parametrize(("job", "reason", "detail"), [
    (EIGHT.format("<Memory metric='PerGPU'>1</Memory>"), "amount-missing", "Memory is PerGPU, and GPU is not said"),
    ("<TaskGroup><Requested><Processors op='GE'>16</Processors><Processors op='LE'>8</Processors></Requested>"
     "</TaskGroup>", "request-contradictory", "the conditions of Requested contradict each other"),
    (TWO.format("<Processors consumptionRate='0.5'>1</Processors>", "<Task><Processors>1</Processors></Task><Task>"
     "<Processors consumptionRate='0.5'>1</Processors></Task>"), "amount-ambiguous",
     "2 Processors of different consumptionRate or duration"),
])
def test_no_quote(job: str, reason: str, detail: str) -> None:
    refusals = refused(EACH, job, asked=True)
    assert (str(refusals.reason), refusals.detail) == (reason, detail)


def test_what_is_said_of_use_stays_with_its_part() -> None:
    """Consumption, time in use and a rate for one kind of task group are those of the group that says them."""
    job = TWO.format("<Processors consumptionRate='0.5'>4</Processors>", "<Processors duration='10'>3</Processors>") \
        + "<Duration>100</Duration>"
    assert quoted("VBR Processors 1", job).exact == 4 * 100 / 2 + 3 * 10
    kinds = TWO.format("<Processors>4</Processors><Feature>fast</Feature>",
                       "<Processors>3</Processors><Feature>slow</Feature>")
    rates = 'VBU Processors 2 when = { Feature = "fast" }\nVBU Processors 1 when = { Feature = "slow" }'
    assert quoted(rates, kinds).exact == 11


@pytest.mark.parametrize(("rates", "exact"), [
    ('VBU Memory 1 metric = "PerNode"', 6), ('VBU Memory 1 context = "Used"', 4), ("VBU Memory 1", 6),
    ('VBU Processors 1 metric = "PerNode"', None), ('VBU GPU 1 resource_type = "a100"', 16),
])
def test_rates_for_a_metric_context_or_type(rates: str, exact: int | None) -> None:
    job = ("<NodeCount>2</NodeCount><Requested><Memory metric='PerNode'>3</Memory><Memory context='Used'>4</Memory>"
           "</Requested>" + EIGHT.format("<Resource name='GPU' type='a100'>2</Resource><Resource name='GPU' type='v'>1"
                                         "</Resource>"))
    if exact is None:
        assert str(refused(rates, job, asked=True).reason) == "nothing-priced"
    else:
        assert quoted(rates, job).exact == exact


@pytest.mark.parametrize(("job", "exact"), [
    ("<Memory units='GB'>4</Memory>" + EIGHT.format("<Processors>2</Processors>"), 20),
    (EIGHT.format("<Processors>2</Processors><Memory units='GB'>1</Memory>"), 24),
    (TWO.format("<Processors>2</Processors>", "<TaskCount>3</TaskCount>"), 5),
    (EIGHT.format("<Resource name='Gpu'>1</Resource>"), 24),
])
def test_billing_counts_what_is_asked_for_at_any_level(job: str, exact: int) -> None:
    rates = 'VBU Billing 1\n[billing]\nweights = { CPU = 1, Mem = "1G", "gres/gpu" = 2 }'
    assert quoted(rates, job).exact == exact


def test_the_longest_duration_of_any_level_counts() -> None:
    job = TWO.format("<Processors>1</Processors><Requested><Duration>10</Duration></Requested>",
                     "<Processors>1</Processors><Requested><Duration>20</Duration></Requested>")
    assert quoted("VBR Processors 1", job).exact == 40


def test_the_arithmetic_says_where_a_total_comes_from() -> None:
    charge = quoted("VBU Memory 1", EIGHT.format("<Memory units='GB'>1</Memory>"))
    assert charge.arithmetic == "8 [Memory GB: 8 tasks of Memory 1 GB] * 1024 [MB/GB] * 1 [VBU Memory]"
    third = quoted("VBU Memory 3", "<TaskGroup><TaskCount>10</TaskCount>" + "<Task><Memory>1</Memory></Task>" * 2
                   + "<Task><Id>3</Id></Task></TaskGroup>")
    assert third.exact == recompute(third.arithmetic) == 20


@pytest.mark.parametrize(("job", "exact"), [
    (TWO.format("<Delivered><Processors>2</Processors></Delivered>", "<Delivered><Processors>3</Processors></Delivered>"
                ), 5),
    ("<TaskGroup>" + "<Task><Delivered><Processors>2</Processors></Delivered></Task>" * 3 + "</TaskGroup>", 6),
    (TWO.format("<Delivered><Processors>2</Processors></Delivered>",
                "<Task><Delivered><Processors>4</Processors></Delivered></Task>"), 6),
    ("<Delivered><Processors>5</Processors></Delivered><TaskGroup><Task><Delivered><Processors>2</Processors>"
     "</Delivered></Task></TaskGroup>", 5),
])
def test_what_was_delivered_to_groups_and_tasks_adds_up(job: str, exact: int) -> None:
    assert charged("VBU Processors 1", job).exact == exact


@pytest.mark.parametrize(("job", "exact"), [
    ("<Processors>1</Processors><Memory metric='PerNode'>4</Memory>", 3605),
    ("<TaskGroup><TaskDefaults><Processors>10</Processors></TaskDefaults></TaskGroup>"
     "<Memory metric='PerNode'>4</Memory><Resource name='GPU' metric='PerNode'>2</Resource>", 2_003_614),
])
def test_the_memory_of_the_only_node_is_priced(job: str, exact: int) -> None:
    """What one task asks for stands on one node, whether or not the job says so."""
    charge = quoted(rate_set("VBU Processors 1\nVBU Memory 1\nVBU GPU 1000000\nVBU Duration 1"), job + HOUR)
    assert charge.exact == exact


# --- the quote of a request is the charge of a run that used exactly what was asked for

RATES = rate_set('precision = 9\nVBR Processors 0.012 per = "hour"\nVBR NodeCount 0.37 per = "hour"\n'
                 'VBR Memory 0.0005 per = "hour", units = "GB"\nVBU GPU 0.9\nVBR License 0.25 per = "minute"')


def used(total: Total) -> Property:
    """A total as it is delivered, memory to the byte."""
    tag, name, kind = total.identity
    said = {k: v for k, v in (("name", name), ("type", kind), ("units", total.units)) if v}
    return new_property(tag, str(total.value) if total.value.denominator != 1 else int(total.value), said)


def ran(totals: list[Total], seconds: int | None) -> Job:
    """A job after a run that was given just that."""
    delivered = Delivered([used(total) for total in totals])
    if seconds is not None:
        delivered.items.append(new_property("Duration", seconds))
    return Job([new_property("State", "Completed"), new_property("StartTime", 1_790_000_000), delivered])


@pytest.mark.parametrize("text", [
    "<Duration>1</Duration><NodeCount>2</NodeCount><Processors>1</Processors>",
    "<Duration>1</Duration><TaskGroup/><TaskGroup><NodeCount>1</NodeCount><Task/></TaskGroup>"
    "<TaskGroup><NodeCount>1</NodeCount></TaskGroup>",
    "<Duration>1</Duration><TaskGroup><TaskCount>3</TaskCount></TaskGroup>"
    "<TaskGroup><NodeCount>2</NodeCount></TaskGroup>",
    # chunks of two groups, which may share nodes: how many is not known, at no door
    "<Duration>1</Duration>" + "<TaskGroup><Extension type='Scheduler' name='ChunkCount'>2</Extension>"
    "<TaskDistribution type='TasksPerNode'>4</TaskDistribution></TaskGroup>" * 2,
    "<Duration>1</Duration><Extension type='Scheduler' name='ChunkCount'>4</Extension>"
    "<TaskGroup><TaskDistribution>{1,2}{3}</TaskDistribution></TaskGroup>"
    "<TaskGroup><Processors>2</Processors></TaskGroup>",
])
def test_each_node_has_a_processor_that_is_paid_for(text: str) -> None:
    quoted_as_charged(parsed(text))


@settings(deadline=None, max_examples=examples(100), derandomize=FIXED)
@given(requests(wide=True))
def test_the_quote_is_the_charge_of_what_was_asked_for(text: str) -> None:
    quoted_as_charged(parsed(text))


def parsed(text: str) -> Job:
    """The job that says this."""
    job = read_document(f"<Job>{text}</Job>".encode()).root
    assert isinstance(job, Job)
    return job


def quoted_as_charged(job: Job, elements: int = 1) -> None:
    """Hold the quote of a job against the charge of a run that used just what it asks for. elements: of its array, of
    which the quote is for all and the run is one."""
    totals = request_of(job).totals
    price = quote(job, RATES)
    unknown = {total.identity[1] or total.identity[0] for total in totals.all() if not total.known}
    if unknown & {"Processors", "Memory", "GPU"} and isinstance(price, Uncharged):
        assert str(price.reason) in ("amount-missing", "no-duration"), price
        return
    if any(total.value.denominator != 1 for total in totals.all()):
        return      # ten tasks of which three are described: no document holds a third
    delivered = list(totals.all())
    if totals.processors is None:       # every job has one, and one on each of its nodes
        delivered.append(Total(("Processors", None, None), totals.nodes.value if totals.nodes else Fraction(1)))
    run = charge(ran(delivered, totals.seconds), RATES)
    assert isinstance(price, Charge) == isinstance(run, Charge), (price, run)
    if isinstance(price, Charge) and isinstance(run, Charge):
        assert price.exact == run.exact * elements
        assert elements > 1 or price.amount == run.amount
        assert Fraction(recompute(price.arithmetic)) == price.exact
    elif isinstance(price, Uncharged) and isinstance(run, Uncharged):
        assert price.reason == run.reason


#: Rates that look for the same amounts in other units and senses, by the calendar, by weights, value by value.
MANY = tuple(map(rate_set, (
    "VBR Processors 1\nVBR Memory 1", "VBR Processors 2\nVBR Memory 3 units = \"KB\"\nNBM Queue=gpu 3",
    "VBR Memory 1 units = \"GB\", metric = \"PerNode\"", "VBR Memory 1 units = \"Wh\"", "VBR Disk 1 required = true",
    "VBR Billing 1\n[billing]\nweights = { CPU = 1, Mem = \"0.25G\" }",
    "VBR Billing 1\n[billing]\nweights = { CPU = 3 }", "profile = \"gold\"\nVBR Processors 1",
    "timezone = \"UTC\"\nVBR Processors 1\nNBM TimeCategory=Night 2\n[[time_category]]\nname = \"Night\"\n"
    "from = 22:00:00\nto = 06:00:00")))


@settings(deadline=None, max_examples=examples(40), derandomize=FIXED)
@given(requests(wide=True), st.permutations(MANY))
def test_what_was_asked_before_changes_no_price(text: str, several: list[RateSet]) -> None:
    """One quotation by many rates, of a request that was worked out already, says what a quote of each says."""
    job = parsed(f"<Queue>cpu</Queue><EligibleTime>1700000000</EligibleTime>{text}")
    quotation = Quotation(job, None, request_of(job, bare=True))
    for rates in (*several, several[0]):
        assert quotation.by(rates) == quote(job, rates)


@pytest.mark.parametrize(("job", "exact"), [
    ("<Queue>cheap</Queue>" + TWO.format(*["<Queue>dear</Queue><Processors>2</Processors>"] * 2), 40),
    (TWO.format(*["<Requested><Queue>dear</Queue></Requested><Processors>2</Processors>"] * 2), 40),
    ("<Queue>cheap</Queue><TaskGroup><Processors>4</Processors><Queue>dear</Queue></TaskGroup>", 40),
    ("<Queue>dear</Queue>" + TWO.format("<Queue>cheap</Queue><Processors>2</Processors>", "<Processors>2</Processors>"),
     22)])
def test_the_queue_of_all_task_groups_is_that_of_the_job(job: str, exact: int) -> None:
    """Where each of them names it (section 7), as ``explain`` and every writer have it; else each is priced by its own,
    or by that of the job where it names none."""
    rates = 'VBU Processors 1\nNBM Queue=dear 10\nNBM Queue=cheap 1'
    assert quoted(rates, job).exact == exact
