"""What each task group says for itself overrides the same of its job (section 7), at every door alike."""

from __future__ import annotations

import pytest

from sssjob.accounting.asked import AskedAmounts
from sssjob.document.element import new_property
from sssjob.document.inherit import effective
from sssjob.request import Offer, Request, match
from sssjob.request.explaining import explained
from tests.laws.documents import job_of, read, request_in
from tests.laws.readers import READERS
from tests.laws.test_amounts import written

#: A limit of a level, in each form.
FORMS = ("<Duration>{}</Duration>", "<Requested><Duration>{}</Duration></Requested>",
         "<Requested><Duration op='LE'>{}</Duration></Requested>")


def job_with(of_job: str, *of_groups: str) -> str:
    """A job and its task groups of two tasks each."""
    groups = "".join(f"<TaskGroup><TaskCount>2</TaskCount>{text}</TaskGroup>" for text in of_groups)
    return f"<Job><Executable>/bin/step</Executable>{of_job}{groups}</Job>"


def limits(form: str, of_job: int, *of_groups: int | None) -> str:
    """The same with limits in seconds; None: a group without its own."""
    return job_with(form.format(of_job), *(form.format(n) if n else "" for n in of_groups))


def seconds_met(request: Request) -> int:
    """The least Duration of an offer that meets a request, of those which the cases have."""
    return next(n for n in (600, 900, 7200) if match(
        request, Offer.of([new_property("Duration", n), new_property("Processors", 9)])).met)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("of_groups", "seconds"), [
    ((600, 900), 900), ((900,), 900), ((600, None), 7200), ((None, None), 7200)])
def test_the_limit_of_the_job_holds_for_groups_without_their_own(form: str, of_groups: tuple[int | None, ...],
                                                                seconds: int) -> None:
    """Two hours of the job were asked for, charged and demanded of offers though its groups had 10 and 15 minutes;
    Slurm got 15 minutes and the others two hours."""
    document = read(limits(form, 7200, *of_groups))
    request = request_in(document)
    assert request.totals.seconds == seconds == AskedAmounts(effective(job_of(document))).seconds
    assert "LE" in form or seconds_met(request) == seconds      # any offer meets an upper bound
    carried = {name: READERS[name](written(name, document)[0]).seconds for name in READERS}
    assert carried == dict.fromkeys(carried, seconds)


@pytest.mark.parametrize(("bare", "requested"), [
    ("{}", "<Requested>{}</Requested>"), ("<Requested>{}</Requested>", "{}")])
def test_bare_and_requested_override_each_other(bare: str, requested: str) -> None:
    """In a job that waits they say the same."""
    text = job_with(bare.format("<Duration>7200</Duration>"), requested.format("<Duration>600</Duration>"))
    assert request_in(read(text)).totals.seconds == 600


def test_defaults_of_the_group_of_jobs_are_overridden_too() -> None:
    """And those of all task groups override the job."""
    text = ("<JobGroup><JobDefaults><Duration>7200</Duration></JobDefaults><Job><Executable>/bin/a</Executable>"
            "<TaskGroupDefaults><Duration>600</Duration></TaskGroupDefaults><TaskGroup><TaskCount>1</TaskCount>"
            "</TaskGroup><TaskGroup><Duration>900</Duration><TaskCount>1</TaskCount></TaskGroup></Job></JobGroup>")
    assert request_in(read(text)).totals.seconds == 900


def test_tasks_override_their_group() -> None:
    """Where each of them has its own; a group overrides the job where all of its tasks do."""
    each = "<TaskDefaults><Requested><Queue>short</Queue></Requested></TaskDefaults>"
    request = request_in(read(job_with("<Queue>long</Queue>", f"<Queue>middle</Queue>{each}", each)))
    assert [p.text for level in request.levels for p in level.overridden] == ["long", "middle"]
    offer = Offer.of([new_property("Queue", "short"), new_property("Processors", 4)])
    assert match(request, offer).met


@pytest.mark.parametrize(("other", "seconds"), [
    ("<Queue conj='Or' group='-1'>long</Queue>", 60),
    ("<Duration conj='Or' group='-1'>9000</Duration>", 60),
    ("<Memory units='GB' conj='Or' group='-1'>9</Memory>", 7200)])
def test_alternatives_are_overridden_as_one(other: str, seconds: int) -> None:
    """A choice with an amount of the job is made there, for that describes the whole job."""
    either = f"<Requested><Duration group='1'>7200</Duration>{other}</Requested>"
    request = request_in(read(job_with(either, "<Duration>60</Duration>", "<Duration>60</Duration>")))
    assert request.totals.seconds == seconds


def test_amounts_names_and_extensions_of_the_job_stay() -> None:
    """They describe the whole job, or add up."""
    said = "<Memory units='GB'>9</Memory><Feature>a</Feature><Node>n1</Node><Processors>4</Processors>"
    assert not any(level.overridden for level in request_in(read(job_with(said, said))).levels)


def test_what_is_overridden_is_told() -> None:
    """``explain`` hides nothing."""
    lines = str(next(explained(read(limits(FORMS[0], 7200, 600, 900))))).splitlines()
    assert lines[1] == "  overridden, for each task group has its own: Duration 7200 s"
    assert lines[-1] == "    Duration 900 s: what the conditions come to"


def test_the_limit_of_one_group_that_is_rounded_is_told() -> None:
    """What only a later part of a heterogeneous job says was written without a word; what all share is told once."""
    findings = [written("slurm", read(text))[1] for text in (
        limits(FORMS[0], 7200, 60, 90), limits(FORMS[0], 90, None, None), limits(FORMS[0], 90, 60, None))]
    assert [sum("whole minutes" in f.message for f in some) for some in findings] == [1, 1, 1]


def test_of_a_limit_with_alternatives_groups_without_their_own_have_the_one_that_is_taken() -> None:
    """The limit of the one group that had its own, a minute, was that of all."""
    preferred = "<Requested><Duration preference='1'>600</Duration><Duration preference='3'>7200</Duration></Requested>"
    document = read(job_with(preferred, "<Duration>60</Duration>", ""))
    assert READERS["pbspro"](written("pbspro", document)[0]).seconds == 7200


def test_of_two_bounds_of_a_group_the_upper_one_is_its_limit() -> None:
    """The first one that stood there was taken."""
    bounds = "<Requested><Duration op='GE'>60</Duration><Duration op='LE'>7200</Duration></Requested>"
    document = read(job_with("", bounds, "<Duration>600</Duration>"))
    assert READERS["pbspro"](written("pbspro", document)[0]).seconds == 7200 == request_in(document).totals.seconds


OF_TASKS = "<TaskDefaults><Requested><Duration>660</Duration></Requested></TaskDefaults>"


@pytest.mark.parametrize(("job", "seconds"), [
    (("<Duration>7200</Duration>", OF_TASKS), 660), (("", OF_TASKS, "<Duration>900</Duration>"), 900),
    (("", OF_TASKS, "<Duration>60</Duration>"), 660), (("<Duration>7200</Duration>", "", OF_TASKS), 7200),
    (("<Duration>600</Duration>", OF_TASKS, ""), 660), (("", "", OF_TASKS, "<Duration>60</Duration>"), 660)])
def test_the_limit_of_each_task_is_that_of_all_of_them(job: tuple[str, ...], seconds: int) -> None:
    """Scripts were written without a limit, where ``quote`` and PSI/J had that of the tasks."""
    document = read(job_with(*job))
    assert request_in(document).totals.seconds == seconds
    for name in ("slurm", "pbspro", "torque", "lsf", "sge", "flux", "htcondor", "jsdl", "psij"):
        output, findings = written(name, document)
        assert READERS[name](output).seconds == seconds
        assert {f.severity for f in findings if f.subject == "Duration"} <= {"info"}


LISTED = "<Task><Requested><Duration>660</Duration></Requested></Task>"


@pytest.mark.parametrize(("job", "seconds"), [
    (("<Duration>7200</Duration>", LISTED), 7200), (("<Duration>7200</Duration>", LISTED * 2), 660),
    (("<Duration>7200</Duration>", "", LISTED * 2), 7200), (("", LISTED * 2, "<Duration>900</Duration>"), 900)])
def test_the_limit_of_a_listed_task_is_not_that_of_those_which_are_only_counted(job: tuple[str, ...], seconds: int
                                                                              ) -> None:
    """Two tasks of which one is listed with eleven minutes, or two groups one of which lists its tasks so: the job had
    eleven minutes for two hours."""
    document = read(job_with(*job))
    assert request_in(document).totals.seconds == seconds
    for name in ("slurm", "pbspro", "torque", "lsf", "sge", "flux", "htcondor", "jsdl", "psij"):
        output, findings = written(name, document)
        assert READERS[name](output).seconds == seconds
        severities = [f.severity for f in findings if f.subject == "Duration" and f.severity != "info"]
        assert severities == (["warning"] if job[1] == LISTED else []), name
