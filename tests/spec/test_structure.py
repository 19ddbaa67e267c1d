"""Sections 1 to 7 of the text: what contains what, how often, references, implicit objects, defaults."""

from __future__ import annotations

import io
from decimal import Decimal

import pytest

from psij import ResourceSpecV1
from sssjob.document.inherit import effective
from sssjob.document.model import Job, JobGroup, Task, TaskGroup
from sssjob.document.vocabulary import CONTAINERS, in_scope
from sssjob.findings import Findings
from sssjob.translators.specs.psij import to_spec
from sssjob.xml.reader import read_document
from sssjob.xml.schema import validate
from sssjob.xml.streaming import stream_jobs
from tests.spec.support import both, document, examples, refused, rules, spec


def job(body: str = "") -> str:
    return f"<Job><Id>j</Id>{body}</Job>"


def group(body: str) -> str:
    return f"<JobGroup><Id>g</Id>{body}</JobGroup>"


def of_job(text: str) -> Job:
    root = document(text).root
    assert isinstance(root, Job)
    return root


# --- 1 and 2 ------------------------------------------------------------------------------------------------------

@spec("1.3", "a")
def test_a_receiver_keeps_only_what_it_needs() -> None:
    text = group(job("<Charge>1</Charge>") + job("<Charge>2</Charge>"))
    assert [j.value("Charge") for j in stream_jobs(io.BytesIO(text.encode()))] == [Decimal(1), Decimal(2)]


@spec("1.3", "b")
@pytest.mark.parametrize("name", ["very-simple", "moderate", "elaborate"])
def test_the_examples_of_the_text_are_job_objects(name: str) -> None:
    assert refused(examples() / f"{name}.xml", "liberal") == []


FORMS = {
    "Executable": (["/bin/true", "ls"], []),                        # String
    "Priority": (["3", "-3", "+3", " 3 "], ["3.5", "x", "1_0", "0x1"]),     # Integer
    "Charge": (["3", "12.75", "1e2", ".5"], ["x", "INF", "NaN", "1,5"]),    # Float
    "Interactive": (["true", "false"], ["True", "yes", "1"]),       # Boolean
    "StartTime": (["0", "1051557713", "4294967296"], ["-1", "2003-04-28", "now"]),      # DateTime
    "CpuDuration": (["0", "3600"], ["-1", "01:00:00", "PT1H"]),     # Duration
}


@spec("2.2", "a")
@pytest.mark.parametrize(("name", "text", "taken"), [
    (name, text, taken) for name, rows in FORMS.items() for taken, texts in zip((True, False), rows, strict=True)
    for text in texts])
def test_lexical_forms(name: str, text: str, taken: bool) -> None:
    assert (refused(job(f"<{name}>{text}</{name}>")) == []) is taken


@spec("2.2", 1)
def test_what_must_appear() -> None:
    assert refused(f"<JobGroup>{job()}</JobGroup>") == ["SSS305"]
    assert refused("<Job><State>Running</State></Job>") == ["SSS305"]
    must = [(c, e.name) for c in CONTAINERS for e in in_scope(c).values() if e.appearance == "MUST" and e.table == c]
    assert must == [("JobGroup", "Id"), ("Job", "Id")]


@spec("2.2", 2, 3)
def test_what_should_or_may_appear_is_not_demanded() -> None:
    assert rules(job("<Queue>q</Queue>"), "3.1") == []


@spec("2.2", "b")
@pytest.mark.parametrize("category", ["Requested", "Delivered"])
def test_categories_of_properties(category: str) -> None:
    letter = category[0]
    for e in in_scope("Job").values():
        required = "".join(f' {a.name}="x"' for a in e.attributes if a.required)
        text = job(f"<{category}><{e.name}{required}>1</{e.name}></{category}>")
        if letter in e.categories:
            assert "SSS303" not in refused(text), e.name
        else:
            assert refused(text) == ["SSS303"], e.name


@spec("2.3", "a")
@pytest.mark.parametrize("text", [
    job("<Name>a</Name><Name>b</Name>"), job("<Environment/><Environment/>").replace("<Environment/>",
        "<Environment><Variable name='A'>1</Variable></Environment>"),
    group("<Name>a</Name><Name>b</Name>" + job()), job("<TaskGroup><TaskCount>1</TaskCount><TaskCount>2</TaskCount>"
                                                       "</TaskGroup>"),
])
def test_what_stands_once_is_refused_twice(text: str) -> None:
    assert both(text) == (True, False)
    assert "SSS304" in rules(text) and validate(text, "1.1").rejected


# --- 3 ------------------------------------------------------------------------------------------------------------

@spec("3.0", "a")
def test_jobs_of_a_group_form_a_graph_without_cycles() -> None:
    a, b = "<Job><Id>a</Id>{}</Job>", "<Job><Id>b</Id><Dependency>a</Dependency></Job>"
    assert refused(group(a.format("") + b)) == []
    assert refused(group(a.format("<Dependency>b</Dependency>") + b)) == ["SSS410"]


@spec("3.0", "b", "e")
@spec("5.0", "b")
@spec("6.0", "b")
@spec("7.0", "b")
def test_a_default_holds_unless_the_sibling_states_the_property() -> None:
    text = group(
        "<JobDefaults><Queue>a</Queue><User>u</User></JobDefaults>"
        "<Job><Id>j</Id><Queue>b</Queue><TaskGroupDefaults><Shell>c</Shell><Arguments>d</Arguments></TaskGroupDefaults>"
        "<TaskGroup><Shell>e</Shell><TaskDefaults><Executable>f</Executable><Partition>g</Partition></TaskDefaults>"
        "<Task><Executable>h</Executable></Task></TaskGroup></Job>")
    root = document(text, "3.1").root
    assert isinstance(root, JobGroup)
    view = effective(root.jobs[0], root.defaults)
    tg, task = view.task_group(0), view.task(0, 0)
    assert (view.value("Queue"), view.value("User")) == ("b", "u")
    assert (tg.value("Shell"), tg.value("Arguments")) == ("e", "d")
    assert (task.value("Executable"), task.value("Partition")) == ("h", "g")


@spec("3.0", "c", "d")
def test_implicit_objects() -> None:
    view = effective(of_job(job("<Queue>q</Queue>")))
    assert (len(view), len(view.task_group(0)), view.task(0, 0).value("Queue")) == (1, 1, "q")
    assert len(effective(of_job(job("<TaskGroup><TaskCount>2</TaskCount></TaskGroup>"))).task_group(0)) == 1


@spec("3.0", "f")
def test_three_nodes_and_four_processors_are_four_tasks() -> None:
    text = job("<Executable>/bin/true</Executable><NodeCount>3</NodeCount><Processors>4</Processors>")
    job_spec = to_spec(of_job(text), Findings())
    assert isinstance(job_spec.resources, ResourceSpecV1)
    assert job_spec.resources.computed_process_count == 4


# --- 4 to 7: containers -------------------------------------------------------------------------------------------

@spec("4.0", 1)
@spec("5.0", 1, 2)
@spec("6.0", 1, 2)
@spec("7.0", 1, 2)
@spec("8.1", 1)
@spec("8.2", 1)
def test_every_container_is_supported() -> None:
    text = group("<JobDefaults><User>u</User></JobDefaults>" + job(
        "<TaskGroupDefaults><Queue>q</Queue></TaskGroupDefaults><Requested><Memory>1</Memory></Requested>"
        "<Delivered><Memory>1</Memory></Delivered><Environment><Variable name='A'>1</Variable></Environment>"
        "<TaskGroup><TaskDefaults><Queue>r</Queue></TaskDefaults><Task><Node>n</Node></Task></TaskGroup>"))
    assert rules(text, "3.1") == []
    assert {name for name in CONTAINERS if f"<{name}>" in text} == set(CONTAINERS)


@spec("4.0", 2)
@spec("5.0", 3)
@spec("6.0", 3)
@spec("7.0", 3)
@pytest.mark.parametrize("text", [
    "<JobGroup/>", "<Job/>", group(job() + "<Job> </Job>"), "<TaskGroup/>", job("<TaskGroup/>"),
    "<TaskGroup><Task/></TaskGroup>",
])
def test_nothing_is_empty(text: str) -> None:
    assert both(text) == (False, False)


@spec("4.0", 3)
@spec("4.1 Job", 1)
def test_a_group_contains_a_job() -> None:
    assert refused(group("<Name>n</Name>")) == ["SSS305"]
    assert refused(group("<Job>elsewhere</Job>")) == []


ONE = "<{0}><User>u</User></{0}>"


@spec("4.0", 4)
@spec("4.1 JobDefaults", 1)
@spec("5.0", 5)
@spec("5.1 TaskGroupDefaults", 1)
@spec("6.0", 5)
@spec("6.1 TaskDefaults", 1)
@pytest.mark.parametrize(("name", "around"), [
    ("JobDefaults", group("{}" + job())), ("TaskGroupDefaults", job("{}")),
    ("TaskDefaults", "<TaskGroup>{}</TaskGroup>"),
])
def test_defaults_stand_once_and_are_read_as_one(name: str, around: str) -> None:
    """The text says both "zero or more" and "zero or one" (section 14, oddities 5 and 6)."""
    one = ONE.format(name)
    assert rules(around.replace("{}", one), "3.1") == []
    assert both(around.replace("{}", one + one)) == (True, False)
    assert rules(around.replace("{}", one + one)) == ["SSS304"]


@spec("5.0", 4)
@spec("5.1 TaskGroup", 1)
@spec("6.0", 4)
@spec("6.1 Task", 1)
def test_task_groups_and_tasks_stand_any_number_of_times() -> None:
    for count in range(4):
        tasks = "<Task><Node>n</Node></Task>" * count
        text = job(f"<TaskGroup><TaskCount>1</TaskCount>{tasks}</TaskGroup>" * count)
        assert rules(text, "3.1") == []
        assert [len(g.tasks) for g in of_job(text).task_groups] == [count] * count


@spec("7.0", 4, 5)
def test_a_task_contains_neither_tasks_nor_their_defaults() -> None:
    inner = ("<Task><Node>n</Node></Task>", "<TaskDefaults><Queue>q</Queue></TaskDefaults>")
    for text in (f"<TaskGroup><Task><Node>n</Node>{i}</Task></TaskGroup>" for i in inner):
        assert refused(text) == ["SSS303"] and refused(text, "liberal") == ["SSS303"]


@spec("5.0", "a")
@spec("6.0", "a")
@spec("7.0", "a")
@pytest.mark.parametrize("text", [
    job(ONE.format("JobDefaults")), "<TaskGroup>" + ONE.format("JobDefaults") + "</TaskGroup>",
    group(ONE.format("TaskGroupDefaults") + job()), "<TaskGroup>" + ONE.format("TaskGroupDefaults") + "</TaskGroup>",
    job(ONE.format("TaskDefaults")), group(ONE.format("TaskDefaults") + job()),
])
def test_defaults_stand_only_beside_what_they_hold_for(text: str) -> None:
    assert refused(text) == ["SSS303"]
    assert validate(text, "1.0").rejected


@spec("6.1 Table 6", "a")
@spec("7.1 Table 7", "a")
def test_ids_are_unique_in_their_scope() -> None:
    task = "<Task><Id>1</Id></Task>"
    tasks = "<TaskGroup><Id>{}</Id>" + task + "</TaskGroup>"
    assert refused(job(tasks.format("a") + tasks.format("b"))) == []
    assert refused(job(tasks.format("a") * 2)) == ["SSS308"]
    assert refused(f"<TaskGroup>{task}{task}</TaskGroup>") == ["SSS308"]


# --- references ---------------------------------------------------------------------------------------------------

@spec("4.2", "a")
@spec("5.2", "a")
@spec("6.2", "a")
@spec("7.2", "a")
def test_text_alone_is_a_reference() -> None:
    whole = document("<JobGroup> workflow1</JobGroup>", "3.1").root
    assert isinstance(whole, JobGroup) and whole.reference == "workflow1"
    jobs = document(group("<Job> job123</Job>"), "3.1").root
    assert isinstance(jobs, JobGroup) and [j.reference for j in jobs.jobs] == ["job123"]
    found = document(job("<TaskGroup> tg1</TaskGroup><TaskGroup><Task>1</Task></TaskGroup>"), "3.1").root
    assert isinstance(found, Job)
    first, second = found.task_groups
    assert isinstance(first, TaskGroup) and first.reference == "tg1"
    assert [isinstance(t, Task) and t.reference for t in second.tasks] == ["1"]


@pytest.mark.parametrize("text", [
    "<Job>a<Id>b</Id></Job>", "<Job/>", "<Job> </Job>", "<TaskGroup>a<Task>1</Task></TaskGroup>",
])
def test_reference_and_definition_exclude_each_other(text: str) -> None:
    assert both(text) == (False, False)
    with pytest.raises(AssertionError):
        document(text)


def test_references_are_left_symbolic() -> None:
    read = read_document(group("<Job>job123</Job>" + job()))
    assert [j.value("Id") for j, _ in read.jobs()] == ["j"]
