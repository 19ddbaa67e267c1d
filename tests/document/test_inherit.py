"""Default inheritance: the order of the levels, the slots, what is never inherited, and folding."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.document.inherit import Shared, View, distinct, effective
from sssjob.document.model import (
    CLASSES,
    Container,
    Delivered,
    Environment,
    Job,
    JobDefaults,
    Property,
    Requested,
    Task,
    TaskDefaults,
    TaskGroup,
    TaskGroupDefaults,
    new_property,
)
from sssjob.request import Offer, match, parse
from tests.strategies import examples


def prop(tag: str, value: Any, **attributes: str) -> Property:
    return new_property(tag, value, attributes)


def queue(name: str) -> Property:
    return prop("Queue", name)


def test_first_hit_of_seven_levels() -> None:
    """Each level is taken away in turn; then the next answers."""
    group_defaults = TaskGroupDefaults([queue("5"), TaskDefaults([queue("3")])])
    group = TaskGroup([queue("4"), TaskDefaults([queue("2")]), Task([queue("1")])])
    job = Job([queue("6"), group_defaults, group])
    defaults = JobDefaults([queue("9"), TaskGroupDefaults([queue("8"), TaskDefaults([queue("7")])])])
    expected = [
        ("1", "Task"), ("2", "TaskDefaults"), ("3", "TaskGroupDefaults/TaskDefaults"), ("4", "TaskGroup"),
        ("5", "TaskGroupDefaults"), ("6", "Job"), ("7", "JobDefaults/TaskGroupDefaults/TaskDefaults"),
        ("8", "JobDefaults/TaskGroupDefaults"), ("9", "JobDefaults"),
    ]
    for value, path in expected:
        task = effective(job, defaults).task(0, 0)
        assert [p.value for p in task.get("Queue")] == [value]
        assert [str(o) for o in task.origin("Queue")] == [path]
        task.origin("Queue")[0].container.set("Queue", None)
    assert effective(job, defaults).task(0, 0).get("Queue") == []


def test_group_levels() -> None:
    job = Job([queue("job"), TaskGroupDefaults([queue("defaults")]), TaskGroup([queue("own")]), TaskGroup()])
    view = effective(job, JobDefaults([prop("User", "amy")]))
    assert [g.value("Queue") for g in view.task_groups()] == ["own", "defaults"]
    assert view.task_group(1).value("User") == "amy" and view.task_group(1).origin("User")[0].path == "JobDefaults"
    assert view.value("Queue") == "job" and view.first("Queue") == queue("job") and view.first("Hold") is None


def test_slots_do_not_touch_each_other() -> None:
    """Of a job that has run a bare value is what was delivered (section 10)."""
    defaults = JobDefaults([prop("Memory", 1), Requested([prop("Memory", 2)]), Delivered([prop("Memory", 3)])])
    view = effective(Job([prop("State", "Completed"), Requested([prop("Memory", 9)])]), defaults)
    assert view.value("Memory") == 1 and view.value("Memory", "Requested") == 9
    assert view.get("Memory", "Delivered") == []        # a result: never from defaults


@pytest.mark.parametrize("state", [None, "Idle", "UserHold"])
def test_bare_and_requested_override_each_other_while_the_job_waits(state: str | None) -> None:
    """Both say what is asked for then: a default in the other slot would be asked for beside the job's own word."""
    said_ = [] if state is None else [prop("State", state)]
    bare = effective(Job([*said_, prop("Duration", 50)]), JobDefaults([Requested([prop("Duration", 100)])]))
    assert (bare.value("Duration"), bare.get("Duration", "Requested")) == (50, [])
    asked = effective(Job([*said_, Requested([prop("Duration", 50)])]), JobDefaults([prop("Duration", 100)]))
    assert (asked.get("Duration"), asked.value("Duration", "Requested")) == ([], 50)
    both = effective(Job(said_), JobDefaults([prop("Duration", 100), Requested([prop("Duration", 200)])]))
    assert (both.value("Duration"), both.value("Duration", "Requested")) == (100, 200)
    job = Job([*said_, Requested([prop("Memory", 4), prop("Queue", "a")]), TaskGroup([prop("Queue", "b")])])
    group = effective(job, JobDefaults([TaskGroupDefaults([prop("Memory", 2)])])).task_group(0)
    assert (group.value("Queue"), group.get("Queue", "Requested")) == ("b", [])
    assert group.value("Memory") == 2       # the job's amount is another thing than that of its group


def test_a_set_is_replaced_whole() -> None:
    defaults = JobDefaults([prop("Hold", "User"), prop("Hold", "System"), prop("Dependency", "a"),
                            prop("Resource", 1, name="License", type="A"), prop("Resource", 2, name="gpu")])
    view = effective(Job([prop("Hold", "Batch"), prop("Resource", 7, name="License", type="A"),
                          prop("Resource", 8, name="License", type="B")]), defaults)
    assert [p.value for p in view.get("Hold")] == ["Batch"]
    assert [p.value for p in view.get("Dependency")] == ["a"]
    assert [p.value for p in view.get("Resource")] == [7, 8, 2]
    assert [o.path for o in view.origin("Resource")] == ["Job", "Job", "JobDefaults"]


def test_environment_is_merged() -> None:
    defaults = JobDefaults([Environment([prop("Variable", "1", name="A"), prop("Variable", "2", name="B")],
                                        {"export": "true"})])
    job = Job([Environment([prop("Variable", "3", name="B")]),
               TaskGroup([Environment([prop("Variable", "4", name="C")], {"export": "false"})])])
    view = effective(job, defaults)
    environment = view.environment()
    assert environment is not None and environment.variables() == {"A": "1", "B": "3"} and environment.export is True
    inner = view.task_group(0).environment()
    assert inner is not None and inner.variables() == {"A": "1", "B": "3", "C": "4"} and inner.export is False
    assert effective(Job([queue("x")])).environment() is None


def test_results_are_never_inherited() -> None:
    defaults = JobDefaults([prop("Id", "1"), prop("Name", "x"), prop("State", "Idle"), prop("StartTime", 1),
                            prop("EndTime", 2), prop("ExitCode", 0), prop("Charge", Decimal(1)), queue("batch")])
    assert [p.tag for p in effective(Job(), defaults).properties()] == ["Queue"]
    job = Job([prop("Id", "1"), prop("Name", "x"), TaskGroup([prop("Id", "g"), Task()])])
    view = effective(job)
    assert view.task_group(0).value("Id") == "g" and view.task_group(0).get("Name") == []
    assert view.task(0, 0).get("Id") == []


def test_amounts_describe_their_own_level() -> None:
    job = Job([Requested([prop("Processors", 8), prop("Feature", "fast")]),
               TaskGroupDefaults([Requested([prop("Memory", 4)])]), TaskGroup([TaskDefaults([prop("Disk", 2)])])])
    view = effective(job, JobDefaults([prop("NodeCount", 3)]))
    group, task = view.task_group(0), view.task(0, 0)
    assert view.value("NodeCount") == 3
    assert group.get("NodeCount") == [] and group.get("Processors", "Requested") == []
    assert group.value("Feature", "Requested") == "fast" and group.value("Memory", "Requested") == 4
    assert task.value("Disk") == 2 and task.get("Memory", "Requested") == []
    assert task.value("Feature", "Requested") == "fast"
    assert [r.origin.own for r in group.resolved("Requested")] == [True, False]


def test_task_groups_of_defaults_are_taken_whole_or_not() -> None:
    defaults = JobDefaults([TaskGroup([prop("TaskCount", 2), queue("far")]), TaskGroup([prop("TaskCount", 3)])])
    taken = effective(Job([queue("job")]), defaults)
    assert [g.value("TaskCount") for g in taken.task_groups()] == [2, 3]
    assert [g.value("Queue") for g in taken.task_groups()] == ["far", "job"]
    assert taken.task_group(0).origin("Queue")[0].path == "JobDefaults/TaskGroup"
    own = effective(Job([TaskGroup([queue("own")])]), defaults)
    assert len(own) == 1 and own.task_group(0).get("TaskCount") == []


def test_implicit_objects() -> None:
    view = effective(Job([queue("batch")]))
    assert len(view) == 1 and len(view.task_group(0)) == 1 and view
    assert view.task(0, 0).value("Queue") == "batch"
    with pytest.raises(IndexError):
        view.task_group(1)
    with pytest.raises(IndexError):
        view.task(0, 1)


def test_policy_goes_along() -> None:
    defaults = JobDefaults([queue("batch"), prop("User", "amy", awarenessPolicy="Reject"),
                            Requested([prop("Feature", "x")], {"awarenessPolicy": "Warn"})],
                           {"awarenessPolicy": "Ignore"})
    view = effective(Job(), defaults)
    assert view.origin("Queue")[0].policy == "Ignore" and view.origin("Feature", "Requested")[0].policy == "Warn"
    job = view.fold()
    queue_, user = job.first("Queue"), job.first("User")
    assert queue_ is not None and queue_.awareness_policy == "Ignore"
    assert user is not None and user.awareness_policy == "Reject"
    assert job.requested is not None and job.requested.items[0] == prop("Feature", "x", awarenessPolicy="Warn")
    plain = effective(Job([queue("x")], {"awarenessPolicy": "Warn"}), JobDefaults([prop("User", "amy")])).fold()
    assert plain.first("User") == prop("User", "amy", awarenessPolicy="Reject")


# --- expressions that are tied together ---------------------------------------------------------------------------

def test_a_tied_expression_is_inherited_or_left_as_one() -> None:
    tied = Requested([prop("User", "a", group="1"), prop("Project", "b", group="-1"),
                      prop("User", "c", conj="Or", group="1"), prop("Project", "d", group="-1")])
    defaults = JobDefaults([tied])
    assert effective(Job([Requested([prop("User", "z")])]), defaults).get("Project", "Requested") == []
    folded = effective(Job([Requested([prop("Memory", 1)])]), defaults).fold()
    assert folded.requested is not None
    assert str(parse(folded.requested)) == ("Memory = 1 and ((User = a and Project = b) or (User = c and Project = d))")


def test_folding_brackets_what_or_would_pull_apart() -> None:
    job = Job([Requested([prop("Feature", "a"), prop("Machine", "m", conj="Or")])])
    defaults = JobDefaults([Requested([prop("Queue", "q", conj="Or"), prop("User", "u", conj="Nor")])])
    folded = effective(job, defaults).fold()
    assert folded.requested is not None
    assert str(parse(folded.requested, strict=True)) == "(Feature = a or Machine = m) and (Queue = q or not User = u)"
    given_ = [prop("Feature", "a"), prop("User", "u"), prop("Queue", "q")]
    assert match(folded.requested, Offer.of(given_)).met and not match(folded.requested, Offer.of(given_[:2])).met


def test_units_at_the_top_are_taken_one_by_one() -> None:
    defaults = JobDefaults([Requested([prop("Memory", 1, group="1"), prop("Memory", 2, conj="Or", group="-1"),
                                       prop("Disk", 3)])])
    view = effective(Job([Requested([prop("Disk", 9)])]), defaults)
    assert [p.value for p in view.properties("Requested")] == [9, 1, 2]


_TIED = [prop("Duration", 50), prop("Processors", 2, group="1"), prop("Processors", 4, conj="Or", group="-1"),
         prop("Node", "a"), prop("Node", "b", conj="Or")]


def test_defaults_never_beat_an_expression_with_amounts() -> None:
    """The block cannot be inherited as it stands, for it holds amounts; the names in it are said all the same."""
    job = Job([Requested(list(_TIED)), TaskGroup([prop("TaskCount", 1), Task([prop("Name", "t")])])])
    view = effective(job, JobDefaults([Requested([prop("Duration", 100), prop("Queue", "q")])]))
    for place in (view, view.task_group(0), view.task(0, 0)):
        assert [(p.value, str(o)) for p, o in zip(place.get("Duration", "Requested"),
                                                  place.origin("Duration", "Requested"), strict=True)] == [(50, "Job")]
        assert place.value("Queue", "Requested") == "q"
    assert view.task_group(0).get("Processors", "Requested") == []
    folded = effective(view.fold())
    assert [p.value for p in folded.task(0, 0).properties("Requested")] == [50, "q"]


@pytest.mark.parametrize(("given_", "left"), [
    ([prop("Queue", "a"), prop("Processors", 2, conj="Or")], [prop("Queue", "a")]),
    ([prop("Processors", 2), prop("Queue", "a", conj="Or"), prop("User", "u")],
     [prop("Queue", "a"), prop("User", "u")]),
    ([prop("Processors", 2), prop("Queue", "a", conj="Nor"), prop("Queue", "b", conj="Or")],
     [prop("Queue", "a", conj="Nand"), prop("Queue", "b", conj="Or")]),
    ([prop("User", "u"), prop("Queue", "a", group="2"), prop("Memory", 1, group="-1"),
      prop("Queue", "b", conj="Or", group="1"), prop("Memory", 2, group="-2")],
     [prop("User", "u"), prop("Queue", "a", group="1"), prop("Queue", "b", conj="Or", group="-1")]),
    ([prop("Queue", "a", group="-1"), prop("Queue", "b", conj="Or", group="1"), prop("Memory", 2)],
     [prop("Queue", "a", group="1"), prop("Queue", "b", conj="Or", group="-1")]),
    ([prop("Queue", "a", group="1"), prop("Memory", 2, conj="Or")], []),
    ([prop("Queue", "a", group="99"), prop("Memory", 2, conj="Or", group="-99")], []),
])
def test_what_is_left_of_an_expression_without_its_amounts(given_: list[Property], left: list[Property]) -> None:
    assert effective(Job([Requested(given_)])).task_group(0).properties("Requested") == left


def test_expressions_of_several_levels_hold_together() -> None:
    """Without brackets an Or of the defaults would be an alternative to all that the job asks for."""
    job = Job([Requested([prop("Memory", 1)])])
    view = effective(job, JobDefaults([Requested([prop("Queue", "q"), prop("User", "u", conj="Or")])]))
    assert str(parse(view.properties("Requested"))) == "Memory = 1 and (Queue = q or User = u)"


# --- the nearest level, by a model of its own ---------------------------------------------------------------------

#: Place -> the levels that it looks at, nearest first.
_NEAR = {
    "Task": ["Task", "TaskDefaults", "TaskGroupDefaults/TaskDefaults", "TaskGroup", "TaskGroupDefaults", "Job",
             "JobDefaults/TaskGroupDefaults/TaskDefaults", "JobDefaults/TaskGroupDefaults", "JobDefaults"],
    "TaskGroup": ["TaskGroup", "TaskGroupDefaults", "Job", "JobDefaults/TaskGroupDefaults", "JobDefaults"],
    "Job": ["Job", "JobDefaults"],
}
_TAGS = {"Queue": False, "User": False, "Memory": True, "Processors": True}     # whether it is an amount
_Said = dict[str, dict[str, list[Property]]]


@st.composite
def said_at_levels(draw: st.DrawFn) -> _Said:
    """Level -> slot -> its properties, tied in any way (balanced or not)."""
    def properties(slot: str) -> list[Property]:
        found: list[Property] = []
        for tag in draw(st.lists(st.sampled_from(sorted(_TAGS)), max_size=4)):
            tied = {"conj": draw(st.sampled_from(["And", "Or", "Nand", "Nor"])),
                    "group": draw(st.sampled_from(["-1", "0", "0", "1"])),
                    "preference": draw(st.sampled_from(["1", "-2"]))} if slot == "Requested" else {}
            kept = {name: value for name, value in tied.items() if draw(st.booleans())}
            found.append(prop(tag, len(found) + 1 if _TAGS[tag] else f"v{len(found)}", **kept))
        return found

    return {level: {slot: properties(slot) for slot in ("bare", "Requested")} for level in _NEAR["Task"]}


def tree(levels: _Said) -> tuple[Job, JobDefaults]:
    def items(level: str) -> list[Any]:
        return [*levels[level]["bare"], Requested(levels[level]["Requested"])]

    job = Job([*items("Job"), TaskGroupDefaults([*items("TaskGroupDefaults"),
                                                 TaskDefaults(items("TaskGroupDefaults/TaskDefaults"))]),
               TaskGroup([*items("TaskGroup"), TaskDefaults(items("TaskDefaults")), Task(items("Task"))])])
    inner = "JobDefaults/TaskGroupDefaults"
    return job, JobDefaults([*items("JobDefaults"), TaskGroupDefaults([
        *items(inner), TaskDefaults(items(f"{inner}/TaskDefaults"))])])


def nearest(levels: _Said, place: str, tag: str, slot: str, waits: bool) -> str | None:
    """The level that says a property of a place; None where none says it, or the nearest one in the other slot."""
    for level in _NEAR[place]:
        if _TAGS[tag] and level.split("/")[-1].removesuffix("Defaults") != place:
            continue
        slots = [name for name, properties in levels[level].items() if tag in [p.tag for p in properties]]
        if slot in slots:
            return level
        if slots and waits:
            return None
    return None


@settings(max_examples=examples(40), deadline=None)
@given(said_at_levels(), st.sampled_from([None, "Idle", "Running", "Completed"]))
def test_the_nearest_level_that_says_a_property_is_its_origin(levels: _Said, state: str | None) -> None:
    job, defaults = tree(levels)
    if state is not None:
        job.items.insert(0, prop("State", state))
    view = effective(job, defaults)
    for place, seen in (("Job", view), ("TaskGroup", view.task_group(0)), ("Task", view.task(0, 0))):
        for tag in _TAGS:
            for slot in ("bare", "Requested"):
                level = nearest(levels, place, tag, slot, state in (None, "Idle"))
                origins = {str(o) for o in seen.origin(tag, slot)}
                assert origins <= {level}, (place, tag, slot)
                stated = [] if level is None else levels[level][slot]
                if level is not None and not any({"conj", "group"} & p.attributes.keys() for p in stated):
                    assert seen.get(tag, slot) == [p for p in stated if p.tag == tag]


@given(said_at_levels(), st.sampled_from(["Idle", "Completed"]))
def test_a_folded_job_never_says_what_a_default_says_and_the_job_overrides(levels: _Said, state: str) -> None:
    """The same of the document that folding gives: the level of a value is seen by looking for its property there."""
    for level, slots in levels.items():
        for properties in slots.values():
            properties[:] = [p.replace(Decimal(1000 * _NEAR["Task"].index(level)) if _TAGS[p.tag] else level)
                             for p in properties]
    job, defaults = tree(levels)
    job.items.insert(0, prop("State", state))
    whole = effective(job, defaults)
    folded = whole.fold()
    for slot in ("bare", "Requested"):
        for tag in _TAGS:
            scope = folded if slot == "bare" else folded.ensure("Requested")
            own = [p.value for p in scope.properties() if p.tag == tag]
            assert own == [p.value for p in whole.get(tag, slot)]


# --- folding ------------------------------------------------------------------------------------------------------

_LEAVES = st.lists(st.sampled_from([
    prop("Queue", "a"), prop("Queue", "b"), prop("User", "a"), prop("Memory", 1), prop("Memory", 2),
    prop("Hold", "User"), prop("Hold", "System"), prop("Id", "1"), prop("StartTime", 4),
    prop("Resource", 1, name="gpu"), prop("Resource", 2, name="x", type="y"), prop("Extension", "v", name="e"),
]), max_size=3)
_SLOT = st.lists(st.sampled_from([
    prop("Memory", 3), prop("Feature", "f"), prop("Feature", "g"), prop("Machine", "m"), prop("Processors", 2),
]), min_size=1, max_size=3)
_ENVIRONMENT = st.lists(st.sampled_from([prop("Variable", v, name=n) for v in "12" for n in "AB"]), min_size=1,
                        max_size=2)
_EXPORT = st.sampled_from([None, {"export": "true"}, {"export": "false"}])


@st.composite
def scopes(draw: st.DrawFn, tag: str) -> Container:
    items: list[Any] = list(draw(_LEAVES))
    for child, strategy in (("Requested", _SLOT), ("Delivered", _SLOT)):
        if draw(st.booleans()):
            items.append(CLASSES[child](draw(strategy)))
    if draw(st.booleans()):
        items.append(Environment(draw(_ENVIRONMENT), draw(_EXPORT)))
    inner = {"Job": ("TaskGroup", "TaskGroupDefaults"), "JobDefaults": ("TaskGroup", "TaskGroupDefaults"),
             "TaskGroup": ("Task", "TaskDefaults"), "TaskGroupDefaults": ("Task", "TaskDefaults")}.get(tag, ())
    for child in inner:
        most = 1 if child.endswith("Defaults") else 2
        items += [draw(scopes(child)) for _ in range(draw(st.integers(0, most)))]
    return CLASSES[tag](items)


def said(view: View[Any]) -> list[Any]:
    found: list[Any] = [Counter(repr(p) for p in view.properties(s)) for s in ("bare", "Requested", "Delivered")]
    environment = view.environment()
    return [*found, None if environment is None else (environment.variables(), environment.export)]


@settings(max_examples=examples(40), deadline=None)
@given(scopes("Job"), scopes("JobDefaults"))
def test_a_folded_job_says_the_same(job: Job, defaults: JobDefaults) -> None:
    before = repr(job), repr(defaults)
    view = effective(job, defaults)
    folded = effective(view.fold())
    assert (repr(job), repr(defaults)) == before
    assert said(folded) == said(view)
    assert len(folded) == len(view)
    for old, new in zip(view.task_groups(), folded.task_groups(), strict=True):
        assert said(new) == said(old)
        for old_task, new_task in zip(old.tasks(), new.tasks(), strict=True):
            assert said(new_task) == said(old_task)


@settings(max_examples=examples(40), deadline=None)
@given(scopes("Job"), scopes("JobDefaults"))
def test_folding_twice_changes_nothing(job: Job, defaults: JobDefaults) -> None:
    once = effective(job, defaults).fold()
    assert effective(once).fold() == once


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(scopes("Job"), min_size=2, max_size=4), scopes("JobDefaults"))
def test_siblings_that_share_what_was_read(jobs: list[Job], defaults: JobDefaults) -> None:
    """One reading of the defaults for all of them says the same as one for each."""
    shared: Shared = {}
    assert [effective(job, defaults, shared=shared).fold() for job in jobs] == [
        effective(job, defaults).fold() for job in jobs]
    read = {key: list(found) for key, (_, found) in shared.items()}
    for job in jobs:
        effective(job, defaults, shared=shared).fold()
    assert read == {key: found for key, (_, found) in shared.items()}


def test_each_property_is_an_object_of_its_own() -> None:
    """A reader may give one object to two groups that say the same."""
    feature = new_property("Feature", "ib")
    job = Job([feature, *(TaskGroup([Requested([feature])]) for _ in range(2))])
    apart = distinct(job)
    features = [apart.items[0], *(item for g in apart.task_groups if g.requested for item in g.requested.items)]
    assert apart == job and len({id(item) for item in features}) == 3
    assert distinct(apart) is apart
