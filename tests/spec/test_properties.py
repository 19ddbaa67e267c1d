"""Section 5.1 of the text, element by element, and Appendix A."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sssjob.document.graph import Dependencies
from sssjob.document.inherit import effective
from sssjob.document.model import Job, JobGroup, Property, Requested, new_property
from sssjob.document.nodeset import NodeSet
from sssjob.document.units import byte_factor
from sssjob.document.vocabulary import CONSUMABLE, ELEMENTS
from sssjob.findings import Findings
from sssjob.request import Offer, match, names_of
from sssjob.run import make_plan
from sssjob.validation import check
from tests.spec.support import both, document, refused, rules, spec


def job(body: str = "") -> str:
    return f"<Job><Id>j</Id>{body}</Job>"


def of_job(body: str) -> Job:
    root = document(job(body), "3.1").root
    assert isinstance(root, Job)
    return root


def prop(tag: str, value: Any, **attributes: str) -> Property:
    return new_property(tag, value, attributes)


def meets(wanted: Property, *offered: Property) -> bool:
    return match(Requested([wanted]), Offer.of(offered), delivered=True).met


def spec_of(body: str, where: Path) -> tuple[Any, Findings]:
    """The JobSpec planned for a job on this machine."""
    findings = Findings()
    plan = make_plan(document(job(f"<Executable>/bin/true</Executable>{body}")), findings, cwd=where)
    return plan.jobs[0].parts[0].spec, findings


def custom(body: str, where: Path) -> dict[str, object]:
    spec, _ = spec_of(body, where)
    return dict(spec.attributes.custom_attributes or {})


# --- Table 2 ------------------------------------------------------------------------------------------------------

@spec("5.1 Table 2", "a")
def test_several_holds() -> None:
    assert of_job("<Hold>System</Hold><Hold>User</Hold>").hold == ("System", "User")
    assert refused(job("<Hold>System</Hold><Hold>User</Hold>")) == []


@spec("5.1 Table 2", "b")
def test_kinds_of_executables() -> None:
    for text in ("/bin/hostname", "bin/hostname", "http://example.org/x.sh"):
        assert refused(job(f"<Executable>{text}</Executable>")) == []
    script = job("<Executable>#Script</Executable>")
    request = '<Request action="Submit"><Data>{}</Data><File id="{}">echo hello world</File></Request>'
    assert refused(script) == ["SSS311"] and refused(request.format(script, "Other")) == ["SSS311"]
    read = document(request.format(script, "Script"), "3.1")
    assert read.files["Script"].text == "echo hello world"
    assert refused(request.format(script, "Script")) == []


# --- Feature and Node ---------------------------------------------------------------------------------------------

@spec("5.1 Feature Element", 1, 3, 4, 5, 6)
@spec("5.1 Node Element", 1, 3, 4, 5, 7)
@pytest.mark.parametrize("tag", ["Feature", "Node"])
def test_several_names_in_one_expression(tag: str) -> None:
    assert meets(prop(tag, "n1"), prop(tag, "n1")) and not meets(prop(tag, "n1"), prop(tag, "n11"))
    listed = prop(tag, "n1, n2", aggregation="List")
    assert [meets(listed, prop(tag, n)) for n in ("n1", "n2", "n3")] == [True, True, False]
    parted = prop(tag, "n1::n2", aggregation="List", delimiter="::")
    assert names_of(parted) == ("n1", "n2")
    pattern = prop(tag, "n[1-5]", aggregation="Pattern")
    assert [meets(pattern, prop(tag, n)) for n in ("n1", "n5", "n6", "an1", "n11")] == [True, True, False, False, False]
    for category in ("Requested", "Delivered"):
        assert refused(job(f"<{category}><{tag}>n1</{tag}></{category}>")) == []


@spec("5.1 Node Element", 3, 4)
@pytest.mark.parametrize(("text", "names"), [
    ("fr[5-7,77]", ["fr5", "fr6", "fr7", "fr77"]), ("n[08-11]", ["n08", "n09", "n10", "n11"]),
    ("a[1-2]-ib", ["a1-ib", "a2-ib"]), ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ("a[1-2],b7", ["a1", "a2", "b7"]),
])
def test_ranges_of_nodes(text: str, names: list[str]) -> None:
    wanted = prop("Node", text, aggregation="Range")
    assert all(meets(wanted, prop("Node", n)) for n in names) and not meets(wanted, prop("Node", "z"))
    found = names_of(wanted)
    assert isinstance(found, NodeSet) and list(found) == names


@spec("5.1 Node Element", 6)
def test_count_is_that_of_each_node() -> None:
    wanted = prop("Node", "n[1-2]", aggregation="Range", count="2")
    assert meets(wanted, prop("Node", "n1", count="2")) and not meets(wanted, prop("Node", "n1"))


@spec("5.1 Feature Element", 2)
@spec("5.1 Node Element", 2)
@spec("5.1 TaskDistribution Element", 2)
@pytest.mark.parametrize("tag", ["Feature", "Node", "TaskDistribution"])
def test_what_stands_once_in_a_scope(tag: str) -> None:
    """Bare Feature and Node are read any number of times elsewhere: Maui repeats them."""
    text = job(f"<{tag}>1</{tag}><{tag}>2</{tag}>")
    assert both(text) == (True, False)
    inside = job(f"<Requested><{tag}>1</{tag}><{tag} conj='Or'>2</{tag}></Requested>")
    assert (refused(inside) == []) is (tag != "TaskDistribution")


@spec("5.1 Feature Element", 5)
@spec("5.1 Node Element", 5)
@pytest.mark.parametrize("tag", ["Feature", "Node"])
def test_delimiter_goes_with_list(tag: str) -> None:
    text = job(f"<{tag} delimiter=':'>a:b</{tag}>")
    assert both(text) == (True, False) and rules(text) == ["SSS421"]
    assert rules(job(f"<{tag} delimiter=':' aggregation='List'>a:b</{tag}>"), "3.1") == []


# --- streams ------------------------------------------------------------------------------------------------------

@spec("5.1 OutputFile Element", "a")
@spec("5.1 ErrorFile Element", "a")
@spec("5.1 InputFile Element", "a")
def test_without_a_name_the_system_chooses(tmp_path: Path) -> None:
    for body in ("", "<OutputFile/><ErrorFile/><InputFile/>"):
        assert refused(job(body)) == []
        made, _ = spec_of(body, tmp_path)
        assert (made.stdin_path, str(made.stdout_path), str(made.stderr_path)) == (None, "job-j.out", "job-j.err")


@spec("5.1 OutputFile Element", 1, 2)
@spec("5.1 ErrorFile Element", 1, 2)
@spec("5.1 InputFile Element", 1, 2)
def test_redirect_lists(tmp_path: Path) -> None:
    assert custom("<OutputFile redirectList='Append'>o</OutputFile>", tmp_path)["local.stdout_mode"] == "append"
    assert custom("<ErrorFile redirectList='Append,Keep'>e</ErrorFile>", tmp_path)["local.stderr_mode"] == "append"
    assert custom("<ErrorFile redirectList='Merge'/>", tmp_path)["local.merge"] == "stderr-to-stdout"
    assert custom("<OutputFile redirectList='Merge'/>", tmp_path)["local.merge"] == "stdout-to-stderr"
    closed, _ = spec_of("<OutputFile redirectList='Close'>o</OutputFile><InputFile redirectList='Close'>i</InputFile>",
                        tmp_path)
    assert (closed.stdout_path, closed.stdin_path) == (None, None)
    assert both(job("<OutputFile redirectList='Append, Explode'>o</OutputFile>")) == (False, False)
    assert refused(job("<InputFile redirectList='Append'>o</InputFile>")) == ["SSS203"]


@spec("5.1 ErrorFile Element", "b")
def test_merging_both_streams_the_second_counts() -> None:
    out, error = "<OutputFile redirectList='Merge'/>", "<ErrorFile redirectList='Merge'/>"
    for text, second in ((out + error, "ErrorFile"), (error + out, "OutputFile")):
        findings = Findings()
        check(document(job(text)), findings)
        assert [(f.rule, f.subject) for f in findings] == [("SSS416", second)]


# --- NotificationList, ResourceLimit ------------------------------------------------------------------------------

@spec("5.1 NotificationList Element", 1, 2, "a")
def test_notifications() -> None:
    text = job("<NotificationList uri='smtp://amy@example.org'>JobStart, JobEnd</NotificationList>")
    assert rules(text, "3.1") == []
    found = of_job("<NotificationList uri='amy@example.org'>All</NotificationList>").notification_list
    assert found is not None and (found.uri, found.value) == ("amy@example.org", "All")
    assert rules(job("<NotificationList>JobStart,Fail</NotificationList>")) == ["SSS422"]


@spec("5.1 ResourceLimit Element", 1, 2, 3)
def test_resource_limits(tmp_path: Path) -> None:
    assert refused(job("<ResourceLimit>5</ResourceLimit>")) == ["SSS208"]
    assert custom("<ResourceLimit name='CPUTime'>5</ResourceLimit>", tmp_path)["local.rlimit.cpu"] == "5:5"
    soft = custom("<ResourceLimit name='cputime' type='Soft'>5</ResourceLimit>"
                  "<ResourceLimit name='CPUTime' type='Hard'>9</ResourceLimit>", tmp_path)
    assert soft["local.rlimit.cpu"] == "5:9"
    assert refused(job("<ResourceLimit name='CPUTime' type='Firm'>5</ResourceLimit>")) == ["SSS203"]
    assert refused(job("<ResourceLimit name='MaxWidgets'>5</ResourceLimit>")) == []


# --- Environment --------------------------------------------------------------------------------------------------

@spec("5.1 Environment Element", 1, 2, 4)
@spec("5.1 Variable Element", 1, 2)
def test_environment() -> None:
    body = ("<Environment export='{}'><Variable name='PATH'>/usr/bin:~/bin:$X</Variable><Variable name='E'/>"
            "</Environment>")
    for word, wanted in (("true", True), ("false", False)):
        view = effective(of_job(body.format(word)))
        environment = view.environment()
        assert environment is not None and (view.export, environment.export) == (wanted, wanted)
        assert environment.variables() == {"PATH": "/usr/bin:~/bin:$X", "E": ""}
    assert "SSS208" in refused(job("<Environment><Variable>x</Variable></Environment>"))


@spec("5.1 Environment Element", 3)
def test_environment_stands_once() -> None:
    one = "<Environment><Variable name='A'>1</Variable></Environment>"
    text = job(one + one.replace("A", "B"))
    assert both(text) == (True, False) and rules(text) == ["SSS304"]
    root = document(text).root
    assert isinstance(root, Job) and root.environment is not None
    assert root.environment.variables() == {"A": "1", "B": "1"}


# --- TaskDistribution ---------------------------------------------------------------------------------------------

@spec("5.1 TaskDistribution Element", 1, 3, 4)
@pytest.mark.parametrize(("attribute", "text", "expected"), [
    ("TasksPerNode", "2", []), ("Rule", "RoundRobin", []), ("Geometry", "{1,4}{2}{3,5}", []),
    ("ProcessorsPerTask", "2", []), ("Geometry", "{1,4", ["SSS408"]), ("Geometry", "{1,1}", ["SSS408"]),
    ("Geometry", "{1}{4}", ["SSS409"]), (None, "2", []), (None, "{1,4}", ["SSS409"]), (None, "RoundRobin", []),
    ("Whim", "x", ["SSS203"]),
])
def test_task_distribution(attribute: str | None, text: str, expected: list[str]) -> None:
    how = f' type="{attribute}"' if attribute else ""
    assert rules(job(f"<TaskDistribution{how}>{text}</TaskDistribution>"), "3.1") == expected


@spec("5.1 TaskDistribution Element", "a")
def test_contradictions_are_told_and_left_to_components() -> None:
    group = ("<TaskGroup><TaskCount>{}</TaskCount><NodeCount>2</NodeCount><TaskDistribution type='TasksPerNode'>4"
             "</TaskDistribution></TaskGroup>")
    assert rules(job(group.format(8)), "3.1") == [] and rules(job(group.format(9)), "3.1") == ["SSS414"]
    assert refused(job(group.format(9))) == []


# --- Dependency ---------------------------------------------------------------------------------------------------

def links(*dependencies: str) -> Dependencies:
    others = "".join(f"<Job><Id>{n}</Id><Name>{name}</Name></Job>" for n, name in (("a", "x"), ("b", "x"), ("c", "y")))
    text = f"<JobGroup><Id>g</Id>{others}<Job><Id>z</Id>{''.join(dependencies)}</Job></JobGroup>"
    root = document(text, "3.1").root
    assert isinstance(root, JobGroup)
    return Dependencies.of(root)


@spec("5.1 Dependency Element", 1, 2, 3)
def test_all_of_several_dependencies_hold() -> None:
    graph = links("<Dependency>a</Dependency>", "<Dependency>c</Dependency>")
    assert [e.needs for e in graph.edges] == [0, 2]


@spec("5.1 Dependency Element", 4, 5, 6)
def test_conditions() -> None:
    graph = links("<Dependency>a</Dependency>", "<Dependency condition='OnSuccess'>a</Dependency>",
                  "<Dependency condition='OnFailure'>a</Dependency>", "<Dependency condition='OnExit'>a</Dependency>",
                  "<Dependency condition='OnExit' code='3'>a</Dependency>")
    assert [(link.condition, link.code) for link in graph.links] == [
        ("OnSuccess", None), ("OnSuccess", None), ("OnFailure", None), ("OnExit", None), ("OnExit", 3)]
    assert refused(job("<Dependency condition='OnWhim'>a</Dependency>")) == ["SSS203"]


@spec("5.1 Dependency Element", 6)
def test_code_goes_with_on_exit() -> None:
    text = "<JobGroup><Id>g</Id><Job><Id>a</Id></Job>" + job("<Dependency code='3'>a</Dependency>") + "</JobGroup>"
    assert both(text) == (True, False) and rules(text) == ["SSS413"]


@spec("5.1 Dependency Element", 7, 8)
def test_designators() -> None:
    graph = links("<Dependency designator='JobName'>x</Dependency>", "<Dependency designator='JobId'>c</Dependency>")
    assert [e.needs for e in graph.edges] == [0, 1, 2]


# --- consumable resources -----------------------------------------------------------------------------------------

@spec("5.1 Consumable Resources", 1, 2)
def test_context() -> None:
    wanted = prop("Memory", 8, context="Configured")
    assert meets(wanted, prop("Memory", 8, context="Configured"))
    assert not meets(wanted, prop("Memory", 8, context="Available"))
    assert meets(prop("Memory", 8), prop("Memory", 8, context="Available"))     # the default
    assert refused(job("<Memory context='Guessed'>1</Memory>")) == ["SSS203"]


@spec("5.1 Consumable Resources", 3, 4)
def test_units() -> None:
    assert meets(prop("Memory", Decimal(2), units="GB"), prop("Memory", Decimal(2048)))
    assert refused(job("<Memory units='pages'>1</Memory>")) == ["SSS206"]


@spec("5.1 Consumable Resources", 5, 6)
def test_metric() -> None:
    delivered = Requested([prop("Memory", 1024)])
    found = document(job("<Delivered><Memory metric='Max'>975</Memory></Delivered>"), "3.1").root
    assert isinstance(found, Job) and match(delivered, found, delivered=True).met
    assert refused(job("<Memory metric='KX'>1</Memory>")) == []


@spec("5.1 Consumable Resources", 7, 8, 9, 10, 11, 12)
@pytest.mark.parametrize("tag", sorted(e.name for e in ELEMENTS if set(CONSUMABLE) <= set(e.attributes)))
def test_duration_rate_and_dynamic(tag: str) -> None:
    name = " name='License'" if tag == "Resource" else ""
    body = f"<{tag}{name} duration='1234' consumptionRate='0.63' dynamic='true'>4</{tag}>"
    assert rules(job(body), "3.1") == []
    found: Any = of_job(body).all(tag)[0]
    assert (found.duration, found.consumption_rate, found.dynamic) == (1234, Decimal("0.63"), True)
    assert (prop("Memory", 1).duration, prop("Memory", 1).dynamic) == (None, False)  # type: ignore[attr-defined]


@spec("5.1 Resource Element", 1, 2, 3, 4, 5, 6, 7)
def test_resources() -> None:
    body = ("<Resource name='License' type='MATLAB'>1</Resource><Resource name='Telescope' type='Zoom2000' "
            "duration='750' metric='KX'>10</Resource>")
    assert rules(job(body), "3.1") == []
    assert [(r.name, r.type, r.value) for r in of_job(body).resource] == [
        ("License", "MATLAB", 1), ("Telescope", "Zoom2000", 10)]
    for category in ("Requested", "Delivered"):
        assert refused(job(f"<{category}>{body}</{category}>")) == []
    assert refused(job("<Resource type='x'>1</Resource>")) == ["SSS208"]
    assert refused(job("<Resource name='x'>-1</Resource>")) == ["SSS205"]
    assert not meets(prop("Resource", 1, name="License", type="MATLAB"), prop("Resource", 1, name="License", type="R"))


@spec("5.1 Extension Element", 1, 2, 3, 4, 5)
def test_extensions() -> None:
    (found,) = of_job("<Extension type='Scheduler' name='Restartable'>true</Extension>").extension
    assert (found.type, found.name, found.value) == ("Scheduler", "Restartable", "true")
    assert refused(job("<Extension type='x'>1</Extension>")) == ["SSS208"]


# --- Appendix A ---------------------------------------------------------------------------------------------------

@spec("A", "a")
def test_units_are_powers_of_two_to_the_tenth() -> None:
    for power, unit in enumerate(("B", "KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB", "NB", "DB")):
        assert byte_factor(unit) == byte_factor(unit.lower()) == 2 ** (10 * power)
    assert byte_factor("GiB") == byte_factor("G") == 2 ** 30
