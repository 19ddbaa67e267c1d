"""The 27 oddities of the published text: how each is read in profile liberal, in profile 3.1, and written.

Numbers are those of section 14 of the reference the project was begun with. A liberal repair is a finding; profile 3.1
refuses what had to be repaired, with the place.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from sssjob.document.graph import Dependencies
from sssjob.document.model import Document, File, Job, JobGroup, TaskGroup
from sssjob.request import parse
from sssjob.xml.schema import validate
from sssjob.xml.writer import write_document
from tests.spec.support import both, document, examples, refused, rules, told


def job(body: str = "") -> str:
    return f"<Job><Id>j</Id>{body}</Job>"


def group(body: str) -> str:
    return f"<JobGroup><Id>g</Id>{body}</JobGroup>"


def of_job(text: str) -> Job:
    root = document(text).root
    assert isinstance(root, Job)
    return root


def written(text: str, profile: str = "3.1") -> str:
    return write_document(document(text), profile=profile)


def places(text: str, profile: str = "3.1") -> list[tuple[str, int, int]]:
    """(rule, line, column) of what rejects."""
    return [(f.rule, f.line, f.column) for f in told(text, profile) if f.rejects]


def test_oddity_01_curly_quotes() -> None:
    text = "<Job>\n  <Charge units=”USD”>1</Charge>\n  <StatusMessage>he said ”no”</StatusMessage>\n</Job>"
    assert [(f.rule, f.severity, f.line, f.column) for f in told(text)] == [("SSS104", "warning", 2, 17)]
    assert places(text) == [("SSS101", 2, 17)]
    assert '<Charge units="USD">1' in written(text) and "he said ”no”" in written(text)


@pytest.mark.parametrize(("text", "line", "column"), [
    ("<Job>\n<Environment>\n<Variable name='A'>1</Variable>\n<Environment>\n</Job>", 4, 1),
    ("<Job>\n<Memory>2048<Memory>\n</Job>", 2, 13),
    ("<Job>\n<Requested>\n<NodeCount>1</NodeCount>\n<Requested>\n</Job>", 4, 1),
])
def test_oddity_02_opening_tags_that_close(text: str, line: int, column: int) -> None:
    assert [(f.rule, f.severity, f.line, f.column) for f in told(text)] == [("SSS105", "warning", line, column)]
    assert [rule for rule, *_ in places(text)] == ["SSS101"] and places(text)[0][1] >= line
    assert rules(written(text), "3.1") == []


def test_oddity_03_a_task_group_has_any_number_of_tasks() -> None:
    for count in range(3):
        tasks = "<Task><Node>n</Node></Task>" * count
        assert rules(job(f"<TaskGroup><TaskCount>1</TaskCount>{tasks}</TaskGroup>"), "3.1") == []


def test_oddity_04_jobs_defaults() -> None:
    text = group("\n<JobsDefaults><User>u</User></JobsDefaults>" + job())
    assert [(f.rule, f.severity, f.line) for f in told(text)] == [("SSS306", "info", 2)]
    assert places(text) == [("SSS301", 2, 1)]
    assert "<JobDefaults>" in written(text) and "<JobsDefaults>" in written(text, "liberal")


DEFAULTS = [
    (group("{}" + job()), "JobDefaults"), (job("{}"), "TaskGroupDefaults"),
    ("<TaskGroup>{}</TaskGroup>", "TaskDefaults"),
]


@pytest.mark.parametrize(("around", "name"), DEFAULTS, ids=["05", "06-groups", "06-tasks"])
def test_oddities_05_and_06_defaults_more_than_once(around: str, name: str) -> None:
    two = f"\n<{name}><User>u</User></{name}>\n<{name}><Queue>q</Queue></{name}>"
    text = around.format(two)
    assert [(f.rule, f.severity, f.line) for f in told(text)] == [("SSS304", "warning", 3)]
    assert [(f.rule, f.severity, f.line) for f in told(text, "3.1")] == [("SSS304", "error", 3)]
    root = document(text).root
    assert isinstance(root, JobGroup | Job | TaskGroup) and root.defaults is not None
    assert (root.defaults.user, root.defaults.queue) == ("u", "q")
    assert validate(text, "1.1").rejected


def test_oddity_07_tasks_have_rules_of_their_own() -> None:
    assert rules("<TaskGroup><Task><Session>7</Session><Queue>q</Queue></Task></TaskGroup>", "3.1") == []
    assert refused("<TaskGroup><Task><Node>n</Node><Task><Node>n</Node></Task></Task></TaskGroup>") == ["SSS303"]


def test_oddity_08_ids_and_designators() -> None:
    text = group("<Job><JobId>a</JobId></Job>" + job("<Dependency designator='Id'>a</Dependency>"
                                                     "<Dependency designator='Name'>x</Dependency>")
                 + "<Job><Id>c</Id><JobName>x</JobName></Job>")
    assert sorted(rules(text)) == ["SSS202", "SSS202", "SSS306", "SSS306"]
    root = document(text).root
    assert isinstance(root, JobGroup) and [e.needs for e in Dependencies.of(root).edges] == [0, 2]
    assert {rule for rule, *_ in places(text)} == {"SSS301", "SSS203"} and all(c for *_, c in places(text))
    assert 'designator="JobId">a' in written(text) and "<Id>a</Id>" in written(text)


def test_oddity_09_account_and_project() -> None:
    assert rules(job("<Account>a</Account>")) == ["SSS306"]
    assert of_job(job("<Account>a</Account>")).project == "a"
    both_names = job("<Account>a</Account><Project>b</Project>")
    assert rules(both_names) == ["SSS306", "SSS307"] and of_job(both_names).project == "b"
    assert places(job("\n<Account>a</Account>")) == [("SSS301", 2, 1)]
    assert "<Project>a" in written(job("<Account>a</Account>"))
    assert "<Account>a" in written(job("<Project>a</Project>"), "mam")


def test_oddity_10_booleans() -> None:
    for text, wanted in (("True", True), ("FALSE", False), ("1", True), ("no", False)):
        flag = job(f"\n<Interactive>{text}</Interactive>")
        assert rules(flag) == ["SSS202"] and of_job(flag).interactive is wanted
        assert places(flag) == [("SSS201", 2, 1)]
        assert f"<Interactive>{str(wanted).lower()}<" in written(flag)
    export = "<Job><Environment export='True'><Variable name='A'>1</Variable></Environment></Job>"
    assert rules(export) == ["SSS202"] and refused(export) == [] and 'export="true"' in written(export)
    assert refused(export.replace("True", "TRUE")) == ["SSS207"]        # the prose spells it True


def test_oddity_11_brackets_that_close_before_they_open() -> None:
    text = job("\n<Requested><Processors group='-1'>12</Processors><Processors conj='Or' group='1'>16</Processors>"
               "</Requested>")
    assert [(f.rule, f.severity, f.line) for f in told(text)] == [("SSS402", "warning", 2)]
    assert [(f.rule, f.severity, f.line) for f in told(text, "3.1")] == [("SSS401", "error", 2)]
    requested = of_job(text).requested
    assert requested is not None and [p.group for p in parse(requested).properties] == [1, -1]
    assert validate(text, "1.1").rejected


@pytest.mark.parametrize(("word", "canonical"), [("AndNot", "Nand"), ("OrNot", "Nor")])
def test_oddity_12_and_not_or_not(word: str, canonical: str) -> None:
    text = job(f"<Requested><Queue>a</Queue>\n<User conj='{word}'>u</User></Requested>")
    assert rules(text) == ["SSS202"] and places(text) == [("SSS203", 2, 1)]
    assert f'conj="{canonical}"' in written(text)
    assert rules(text.replace(word, canonical), "3.1") == []


def test_oddity_13_units_of_a_charge() -> None:
    text = job("<Charge units='USD'>12.75</Charge>")
    assert rules(text, "3.1") == []
    charge = of_job(text).charge
    assert charge is not None and (charge.value, charge.units) == (Decimal("12.75"), "USD")
    assert "<Charge>1<" in written(job("<Charge>1</Charge>"))


@pytest.mark.parametrize(("body", "value"), [
    ("<Network>Infiniband</Network>", "Infiniband"), ("<Network>10GigE</Network>", "10GigE"),
    ("<Network>10</Network>", Decimal(10)), ("<Network units='Gbps'>1.5</Network>", Decimal("1.5")),
    ("<NetworkAdapter>Infiniband</NetworkAdapter>", "Infiniband"),
])
def test_oddity_14_network_is_an_amount_or_an_adapter(body: str, value: object) -> None:
    element = of_job(job(body)).network
    assert element is not None and element.value == value
    assert (refused(job(body)) == []) is ("Adapter" not in body)
    assert element == of_job(written(job(body))).network


def test_oddity_14_attributes_of_an_amount_make_it_one() -> None:
    text = job("<Network units='Gbps'>fast</Network>")
    assert both(text) == (False, False) and refused(text) == ["SSS201"]
    assert validate(text, "1.1").rejected


def test_oddity_15_metric_is_an_open_list() -> None:
    assert rules(job("<Resource name='Telescope' metric='KX'>10</Resource>"), "3.1") == []


def test_oddity_16_aggregation_belongs_to_node_too() -> None:
    assert rules(job("<Node aggregation='Pattern'>node[1-5]</Node>"), "3.1") == []


def test_oddity_17_the_default_is_that_of_condition() -> None:
    root = document(group("<Job><Id>a</Id></Job>" + job("<Dependency>a</Dependency>"))).root
    assert isinstance(root, JobGroup)
    assert [link.condition for link in Dependencies.of(root).links] == ["OnSuccess"]
    assert places(group("<Job><Id>a</Id></Job>\n" + job("<Dependency type='OnExit'>a</Dependency>"))) == [
        ("SSS302", 2, 16)]


def test_oddity_18_slips_of_the_pen_mean_nothing() -> None:
    """``xsd;element``, ``#ld`` for ``#id``, section 24.0.0.1.x: a File is named by ``#`` and its id."""
    read = Document(Job([*of_job("<Job><Executable>#ld</Executable></Job>").items]), {"ld": File("ld", "true")})
    assert rules(write_document(read), "3.1") == []
    assert "SSS311" in refused("<Job><Executable>#ld</Executable></Job>")


def test_oddity_19_the_address_of_a_notification_is_masked() -> None:
    text = job("<NotificationList uri='[email protected]'>JobStart,JobEnd</NotificationList>")
    assert rules(text, "3.1") == [] and 'uri="[email protected]"' in written(text)


def test_oddity_20_times_have_no_end_in_2038() -> None:
    for seconds in (2**31, 2**32, 2**40):
        text = job(f"<StartTime>{seconds}</StartTime>")
        assert rules(text, "3.1") == [] and of_job(text).start_time == seconds
        assert f"<StartTime>{seconds}<" in written(text)
        assert not validate(text, "1.0").rejected and not validate(text, "1.1").rejected
    assert refused(job("<StartTime>-1</StartTime>")) == ["SSS201"]


def test_oddity_21_suspend_duration_is_seconds() -> None:
    text = job("<SuspendDuration>90</SuspendDuration>")
    assert rules(text, "3.1") == [] and of_job(text).suspend_duration == 90
    clock = text.replace("90", "00:01:30")
    assert rules(clock) == ["SSS202"] and "<SuspendDuration>90<" in written(clock)
    assert places(job("\n<SuspendDuration>00:01:30</SuspendDuration>")) == [("SSS201", 2, 1)]


def test_oddity_22_a_submission_has_no_id_yet() -> None:
    for text in ("<Job><Queue>q</Queue></Job>", "<Job><State>NotQueued</State></Job>"):
        assert rules(text) == [] and rules(text, "3.1") == []
        assert not validate(text, "1.1").rejected and "<Id" not in written(text)
    assert both("<Job><State>Idle</State></Job>") == (True, False)
    assert both("<Job><State>Idle</State><SubmitTime>1</SubmitTime></Job>") == (False, False)
    empty = "<Job><Id></Id><Queue>q</Queue></Job>"
    assert both(empty) == (True, False) and "<Id" not in written(empty)


def test_oddity_23_job_defaults_need_no_id() -> None:
    assert rules(group("<JobDefaults><State>Idle</State></JobDefaults>" + job()), "3.1") == ["SSS418"]
    assert rules(group("<JobDefaults><Queue>q</Queue></JobDefaults>" + job()), "3.1") == []
    assert "SSS418" in rules(group("<JobDefaults><Id>x</Id></JobDefaults>" + job()))


def test_oddity_24_empty_elements_are_absent() -> None:
    text = "<Job><Id>j</Id>\n<Processors></Processors><Memory/></Job>"
    assert rules(text) == ["SSS204", "SSS204"] and of_job(text).processors is None
    assert places(text) == [("SSS201", 2, 1), ("SSS201", 2, 26)]
    assert written(text) == "<Job>\n  <Id>j</Id>\n</Job>\n"


def test_oddity_25_process_is_a_property_of_a_task() -> None:
    text = "<TaskGroup><Task><Process>99353</Process></Task></TaskGroup>"
    assert rules(text, "3.1") == [] and rules(text.replace("Process", "Pid")) == ["SSS306"]
    assert refused(job("<Process>1</Process>")) == ["SSS303"]


def test_oddity_26_a_start_before_the_staging_is_only_told() -> None:
    text = job("<StagedTime>1051557859</StagedTime><StartTime>1051557713</StartTime>")
    for profile in ("liberal", "3.1"):
        assert [(f.rule, f.severity) for f in told(text, profile)] == [("SSS412", "warning")]


def test_oddity_27_many_features_are_asked_for() -> None:
    """The text allows one bare Feature in a scope and says nothing of several in Requested."""
    asked = job("<Requested><Feature>a</Feature><Feature>b</Feature></Requested>")
    assert rules(asked, "3.1") == []
    assert both(job("<Feature>a</Feature><Feature>b</Feature>")) == (True, False)
    assert rules(job("<Feature aggregation='List'>a,b</Feature>"), "3.1") == []
    assert '<Feature aggregation="List">a,b<' in written(job("<Feature>a</Feature><Feature>b</Feature>"))
    assert written(asked).count("<Feature>") == 2       # there a List would ask for less: any one of its members


def test_the_elaborate_example_needs_three_repairs_and_no_more() -> None:
    found = {f.rule for f in told(examples() / "elaborate.xml") if f.severity != "info"}
    assert found == {"SSS104", "SSS105", "SSS402"}
