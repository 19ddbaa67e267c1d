"""The checks of meaning, one document a rule."""

from __future__ import annotations

import time

import pytest

from sssjob import validation
from sssjob.document import failures, sweeps
from sssjob.document.model import Delivered, Document, File, Job, JobGroup, Requested, new_property
from sssjob.findings import Findings
from sssjob.limits import LIMITS
from sssjob.validation import check
from sssjob.xml.reader import read_document
from tests.cases import Cases


def found(text: str, profile: str = "liberal") -> list[tuple[str, str]]:
    document = read_document(text.encode())
    findings = Findings()
    check(document, findings, profile)
    return [(f.rule, f.path) for f in findings]


def job(text: str) -> str:
    return f"<Job><Id>1</Id>{text}</Job>"


def group(text: str) -> str:
    return f"<JobGroup><Id>g</Id>{text}</JobGroup>"


R = "/Job/Requested"
NEVER = job("<State>Completed</State><SubmitTime>{}</SubmitTime><EndTime>{}</EndTime>")
RUNNING = job("<State>Running</State><StartTime>5</StartTime><Delivered><Duration>{}</Duration></Delivered>")

CASES: list[tuple[str, list[tuple[str, str]]]] = [
    (job("<Queue>q</Queue>"), []),
    # expressions
    (job('<Requested><Memory group="-1">1</Memory><Memory conj="Or" group="1">2</Memory></Requested>'),
     [("SSS402", R)]),
    (job('<Requested><Memory preference="0">1</Memory></Requested>'), [("SSS403", R)]),
    (job('<Requested><Memory preference="1">1</Memory><Memory preference="-1">2</Memory></Requested>'),
     [("SSS404", R)]),
    (job('<Requested><Queue op="LT">batch</Queue></Requested>'), [("SSS405", f"{R}/Queue")]),
    (job('<Requested><Queue op="Match">(</Queue></Requested>'), [("SSS406", f"{R}/Queue")]),
    (job('<Requested><Node aggregation="Pattern">(a</Node></Requested>'), [("SSS406", f"{R}/Node")]),
    (job('<Requested><Node aggregation="Range">n[1-</Node></Requested>'), [("SSS407", f"{R}/Node")]),
    (job('<Requested><Node aggregation="Range">n[1-9999999]</Node></Requested>'), [("SSS110", f"{R}/Node")]),
    (job('<Delivered><Node aggregation="Range">n[1-</Node></Delivered>'), [("SSS407", "/Job/Delivered/Node")]),
    (job('<Feature aggregation="Pattern">(</Feature>'), [("SSS406", "/Job/Feature")]),
    (job('<Requested><Memory op="GE">1</Memory><Node aggregation="Range">n[1-4]</Node></Requested>'), []),
    # geometry and tasks
    (job('<TaskDistribution type="Geometry">{1,1}</TaskDistribution>'), [("SSS408", "/Job/TaskDistribution")]),
    (job('<TaskDistribution>{1,4}{2}</TaskDistribution>'), [("SSS409", "/Job/TaskDistribution")]),
    (job('<TaskDistribution>{1,4}{2}{3,5}</TaskDistribution><Requested><NodeCount>2</NodeCount></Requested>'),
     [("SSS414", "/Job/TaskDistribution")]),
    (job("<TaskGroup><TaskCount>4</TaskCount><TaskDistribution>{1,4}{2}{3,5}</TaskDistribution></TaskGroup>"),
     [("SSS414", "/Job/TaskGroup/TaskDistribution")]),
    (job("<TaskGroup><TaskCount>9</TaskCount><NodeCount>2</NodeCount><TaskDistribution>4</TaskDistribution>"
         "</TaskGroup>"), [("SSS414", "/Job/TaskGroup/TaskDistribution")]),
    (job("<TaskGroup><TaskCount>4</TaskCount><NodeCount>2</NodeCount><TaskDistribution>4</TaskDistribution>"
         "</TaskGroup>"), [("SSS414", "/Job/TaskGroup/TaskDistribution")]),
    (job("<TaskGroup><TaskCount>7</TaskCount><NodeCount>2</NodeCount><TaskDistribution>4</TaskDistribution>"
         "</TaskGroup>"), []),
    # identity
    (group(job("<Queue>q</Queue>") + job("<Queue>r</Queue>")), [("SSS308", "/JobGroup/Job[2]/Id")]),
    # runs of a requeued job share its Id
    (group(job("<StartTime>5</StartTime>") + job("<StartTime>9</StartTime>") + job("<State>Idle</State>")), []),
    (group(job("<StartTime>5</StartTime>") * 2), [("SSS308", "/JobGroup/Job[2]/Id")]),
    # so do records of a run while it goes on, and of its end
    (group(RUNNING.format(60) + RUNNING.format(120) + job("<State>Completed</State><StartTime>5</StartTime>")), []),
    (group(RUNNING.format(60) * 2), [("SSS308", "/JobGroup/Job[2]/Id")]),
    (group(job("<State>Idle</State>") + job("<State>Hold</State>")), [("SSS308", "/JobGroup/Job[2]/Id")]),
    (group(job("<StartTime>5</StartTime>") + job("<Queue>r</Queue>")), [("SSS308", "/JobGroup/Job[2]/Id")]),
    # jobs that were refused or cancelled, each before it began
    (group("".join(NEVER.format(submitted, ended) for submitted, ended in ((3, 4), (3, 5), (4, 5)))), []),
    (group(NEVER.format(3, 4) * 2), [("SSS308", "/JobGroup/Job[2]/Id")]),
    (job("<TaskGroup><Id>a</Id></TaskGroup><TaskGroup><Id>a</Id></TaskGroup>"), [("SSS308", "/Job/TaskGroup[2]/Id")]),
    (job("<TaskGroup><Task><Id>a</Id></Task><Task><Id>a</Id></Task></TaskGroup>"),
     [("SSS308", "/Job/TaskGroup/Task[2]/Id")]),
    (job("<TaskGroup><Id>1</Id><Task><Id>1</Id></Task></TaskGroup>"), []),
    ("<JobGroup><Job><Id>1</Id></Job></JobGroup>", [("SSS305", "/JobGroup")]),
    (group(""), [("SSS305", "/JobGroup")]),
    (group("<Job>elsewhere</Job>"), []),
    ("<Job><State>Running</State></Job>", [("SSS305", "/Job/State")]),
    ("<Job><State>Idle</State><SubmitTime>1</SubmitTime></Job>", [("SSS305", "/Job/State")]),
    ("<Job><State>Idle</State></Job>", []),
    ("<Job><Queue>q</Queue></Job>", []),
    # dependencies
    (group("<Job><Id>a</Id><Dependency>b</Dependency></Job><Job><Id>b</Id><Dependency>a</Dependency></Job>"),
     [("SSS410", "/JobGroup/Job[1]/Dependency")]),
    (group("<Job><Id>x</Id></Job><Job><Id>a</Id><Dependency>b</Dependency></Job>"),
     [("SSS411", "/JobGroup/Job[2]/Dependency")]),
    (job("<Dependency>b</Dependency>"), [("SSS411", "/Job/Dependency")]),
    (job('<Dependency code="1">x</Dependency>'), [("SSS411", "/Job/Dependency"), ("SSS413", "/Job/Dependency")]),
    (job('<Dependency condition="OnExit" code="1">x</Dependency>'), [("SSS411", "/Job/Dependency")]),
    # times, variables, streams, defaults
    (job("<StartTime>5</StartTime><EndTime>4</EndTime>"), [("SSS412", "/Job/EndTime")]),
    (job("<SubmitTime>6</SubmitTime><StagedTime>7</StagedTime><StartTime>5</StartTime>"),
     [("SSS412", "/Job/StartTime"), ("SSS412", "/Job/StartTime")]),
    (job('<Environment><Variable name="A">1</Variable><Variable name="A">2</Variable></Environment>'),
     [("SSS415", "/Job/Environment/Variable[2]")]),
    (job('<Environment><Variable name="1A">1</Variable></Environment>'), [("SSS417", "/Job/Environment/Variable")]),
    (job('<OutputFile redirectList="Append,Merge">o</OutputFile><ErrorFile redirectList="Merge">e</ErrorFile>'),
     [("SSS416", "/Job/ErrorFile")]),
    (job('<OutputFile redirectList="Append">o</OutputFile><ErrorFile redirectList="Merge">e</ErrorFile>'), []),
    (group("<JobDefaults><Id>x</Id><Delivered><Memory>1</Memory></Delivered></JobDefaults>" + job("")),
     [("SSS418", "/JobGroup/JobDefaults/Id"), ("SSS418", "/JobGroup/JobDefaults/Delivered")]),
    (job("<TaskGroup><TaskDefaults><Session>1</Session></TaskDefaults></TaskGroup>"),
     [("SSS418", "/Job/TaskGroup/TaskDefaults/Session")]),
    (group("<JobDefaults><Queue>a</Queue></JobDefaults><JobDefaults><User>b</User></JobDefaults>" + job("")),
     [("SSS304", "/JobGroup/JobDefaults[2]")]),
    (job("<Environment/><Environment><Variable name='A'>1</Variable></Environment>"),
     [("SSS304", "/Job/Environment[2]")]),
    # files
    (job("<Executable>#Script</Executable>"), [("SSS311", "/Job/Executable")]),
    (job("<Executable>/bin/true</Executable>"), []),
    (job("<InputFile>#Data</InputFile>"), [("SSS311", "/Job/InputFile")]),
    (job("<Executable>#a</Executable><InputFile>#b</InputFile>"),
     [("SSS311", "/Job/Executable"), ("SSS311", "/Job/InputFile")]),
    (job("<Executable>#gone</Executable><State>Completed</State><TaskGroup><Executable>#gone</Executable></TaskGroup>"),
     [("SSS311", "/Job/Executable"), ("SSS311", "/Job/TaskGroup/Executable")]),
    # words and names
    (job("<State>Running</State>"), []),
    (job("<State>running</State>"), [("SSS420", "/Job/State")]),
    (job("<State>deferred</State>"), [("SSS420", "/Job/State")]),
    (job("<State>Dreaming</State>"), [("SSS424", "/Job/State")]),
    # what nothing can meet
    *((job(f"<Requested>{text}</Requested>"), [("SSS423", f"{R}/{where}" if where else R)]) for text, where in (
        ('<Processors op="GE">16</Processors><Processors op="LE">8</Processors>', "Processors[2]"),
        ('<Processors op="GT">7</Processors><Processors op="LT">8</Processors>', "Processors[2]"),
        ('<Processors>4</Processors><Processors conj="Nand">4</Processors>', "Processors[2]"),
        ('<Processors op="LT">0</Processors>', "Processors"),
        ('<Memory op="GE" units="GB">2</Memory><Memory op="LT" units="MB">2000</Memory>', "Memory[2]"),
        ('<Duration op="GE">60</Duration><Queue>q</Queue><Duration op="LE">50</Duration>', "Duration[2]"),
        ('<Resource name="L" type="a">1</Resource><Resource name="L" type="a">2</Resource>', "Resource[2]"),
        ('<Processors group="1">4</Processors><Processors conj="Or" group="-1">8</Processors>'
         '<Processors group="1">5</Processors><Processors conj="Or" group="-1">16</Processors>', ""),
        ('<Processors preference="1">4</Processors><Processors preference="2">8</Processors>'
         '<Processors op="GE">9</Processors>', ""),
        ("<Processors>16</Processors><NodeCount>20</NodeCount>", "NodeCount"),
        ('<Processors op="LE">16</Processors><NodeCount op="GT">16</NodeCount>', "NodeCount"),
        ('<Duration op="GT">60</Duration><Duration op="LT">61</Duration>', "Duration[2]"),
        ('<Queue>a</Queue><Queue op="NE">a</Queue>', "Queue[2]"),
        ('<Feature>a</Feature><Feature>b</Feature><Feature conj="Nand">b</Feature>', "Feature[3]"),
        ('<Node op="NE">n1</Node><Node>n1</Node>', "Node[2]"),
        ('<Queue group="1">a</Queue><Queue conj="Or" group="-1">b</Queue><Queue op="NE">a</Queue>'
         '<Queue op="NE">b</Queue>', ""),
    )),
    *((job(f"<Requested>{text}</Requested>"), []) for text in (
        '<Processors op="GE">8</Processors><Processors op="LE">16</Processors>',
        '<Processors group="1">4</Processors><Processors conj="Or" group="-1">8</Processors>'
        '<Processors group="1">8</Processors><Processors conj="Or" group="-1">16</Processors>',
        '<Processors preference="-1">4</Processors><Processors op="GE">9</Processors>',
        "<Processors metric='PerNode'>2</Processors><NodeCount>20</NodeCount>",
        '<Resource name="L" type="a">1</Resource><Resource name="L" type="b">2</Resource>',
        '<Memory metric="Max">1</Memory><Memory metric="Average">2</Memory>',
        "<Queue>a</Queue><Queue>b</Queue>",
        '<Queue group="1">a</Queue><Queue conj="Or" group="-1">b</Queue><Queue op="NE">a</Queue>',
        '<Node aggregation="List">n1,n2</Node><Node op="NE">n1</Node>',
        '<Feature>a</Feature><Feature op="NE">b</Feature>',
        '<NodeCount>3</NodeCount><Node aggregation="Pattern">a.*</Node>',
    )),
    ("<Job><Processors>16</Processors><Requested><NodeCount>20</NodeCount></Requested></Job>",
     [("SSS423", "/Job/Requested/NodeCount")]),
    ("<Job><TaskGroup><Processors>2</Processors><NodeCount>3</NodeCount></TaskGroup></Job>",
     [("SSS423", "/Job/TaskGroup/NodeCount")]),
    ("<Job><EligibleTime>10</EligibleTime><DeadlineTime>5</DeadlineTime></Job>", [("SSS423", "/Job/DeadlineTime")]),
    (job("<Requested><Processors>99999999999</Processors></Requested>"), [("SSS110", f"{R}/Processors")]),
    (job('<Memory units="YB">5000</Memory>'), [("SSS110", "/Job/Memory")]),
    (job("<Duration>9999999999999</Duration>"), [("SSS110", "/Job/Duration")]),
    (job("<Requested><Resource name='GPU'>99999999999</Resource></Requested>"), [("SSS110", f"{R}/Resource")]),
    (job(f"<EligibleTime>{LIMITS.moment}</EligibleTime>"), []),
    (job(f"<EligibleTime>{LIMITS.moment + 1}</EligibleTime>"), [("SSS110", "/Job/EligibleTime")]),
    (job(f"<EligibleTime>9{'0' * 20}</EligibleTime><DeadlineTime>9{'0' * 21}</DeadlineTime>"),
     [("SSS110", "/Job/EligibleTime"), ("SSS110", "/Job/DeadlineTime")]),
    (job("<TaskGroup><TaskCount>999999999</TaskCount><TaskDefaults><Requested><Processors>999</Processors></Requested>"
         "</TaskDefaults></TaskGroup>"), [("SSS110", "/Job/TaskGroup/TaskCount")]),
    (job("<NodeCount>999999999</NodeCount><TaskDistribution type='TasksPerNode'>999</TaskDistribution>"),
     [("SSS110", "/Job/TaskDistribution")]),
    (job("<TaskDistribution type='TasksPerNode'>99999999999</TaskDistribution>"),
     [("SSS110", "/Job/TaskDistribution")]),
    # what does not fit
    (job('<NodeCount>3</NodeCount><Node aggregation="List">a,b</Node>'), [("SSS414", "/Job/Node")]),
    (job("<NodeCount>1</NodeCount><Node>a</Node><Node>b</Node>"), [("SSS414", "/Job/Node[2]")]),
    (job('<State>Completed</State><NodeCount>3</NodeCount><Node aggregation="List">a,b</Node>'), []),
    (job('<Requested><NodeCount>3</NodeCount><Node aggregation="List">a,b</Node></Requested>'),
     [("SSS414", f"{R}/Node")]),
    (job('<Requested><NodeCount>3</NodeCount><Node aggregation="Range">n[1-2]</Node></Requested>'),
     [("SSS414", f"{R}/Node")]),
    (job("<Requested><NodeCount>1</NodeCount><Node>a</Node><Node>b</Node></Requested>"), [("SSS414", f"{R}/Node[2]")]),
    (job("<Processors>8</Processors><TaskDistribution type='ProcessorsPerTask'>16</TaskDistribution>"),
     [("SSS414", "/Job/TaskDistribution")]),
    (job("<NodeCount>2</NodeCount><TaskDistribution>4</TaskDistribution>"
         "<TaskGroup><TaskCount>9</TaskCount></TaskGroup>"),
     [("SSS414", "/Job/TaskDistribution")]),
    (job("<Processors>2</Processors><TaskDistribution>{1,2,3}{4}</TaskDistribution>"),
     [("SSS414", "/Job/TaskDistribution")]),
    (job("<Executable>http://a/b.sh</Executable>"), [("SSS425", "/Job/Executable")]),
    # a job that waits for itself
    (job("<Dependency>1</Dependency>"), [("SSS410", "/Job/Dependency")]),
    (group("<Job><Id>a</Id><Dependency>a</Dependency></Job>"), [("SSS410", "/JobGroup/Job[1]/Dependency")]),
    ("<Job><Name>n</Name><Dependency designator='JobName'>n</Dependency></Job>", [("SSS410", "/Job/Dependency")]),
    ("<Job><State>Completed</State><Executable>x</Executable></Job>", [("SSS305", "/Job/State")]),
    (job("<NotificationList>All, Fail,Fail</NotificationList>"), [("SSS422", "/Job/NotificationList")]),
    (job('<Feature delimiter=":">a:b</Feature>'), [("SSS421", "/Job/Feature")]),
    (job('<Requested><Node delimiter=":" aggregation="Range">a[1-2]</Node></Requested>'), [("SSS421", f"{R}/Node")]),
    (job('<Node delimiter=":" aggregation="List">a:b</Node>'), []),
    (job('<Node delimiter="" aggregation="List">a,b</Node>'), [("SSS421", "/Job/Node")]),
    (job("<Network>fast</Network><Requested><Network>10</Network></Requested>"), []),
    (job('<Network units="Gbps">fast</Network>'), [("SSS201", "/Job/Network")]),
    (job('<Extension type="Scheduler" name="Array">1-NaN</Extension>'), [("SSS201", "/Job/Extension")]),
    (job('<Extension type="Scheduler" name="Array">1-4:2%2</Extension>'), []),
    # limits: numbers, or none at all; what a name of somebody's own takes is not known
    (job('<ResourceLimit name="CPUTime">01:00:00</ResourceLimit>'), [("SSS201", "/Job/ResourceLimit")]),
    (job('<ResourceLimit name="OpenFiles">64</ResourceLimit><ResourceLimit name="stacksize">8M</ResourceLimit>'),
     [("SSS201", "/Job/ResourceLimit[2]")]),
    (job('<ResourceLimit name="MaxSwap">-1</ResourceLimit>'), [("SSS201", "/Job/ResourceLimit")]),
    (job('<ResourceLimit name="MaxSwap">Unlimited</ResourceLimit><ResourceLimit name="FileSize">5.0</ResourceLimit>'
         '<ResourceLimit name="MaxWidgets">some</ResourceLimit>'), []),
    (job('<Extension type="other" name="Array">x</Extension>'), []),
    (job('<TaskGroup><Extension type="Scheduler" name="ChunkCount">few</Extension></TaskGroup>'),
     [("SSS201", "/Job/TaskGroup/Extension")]),
    (job('<Requested><Extension type="Scheduler" name="ChunkCount">0</Extension></Requested>'),
     [("SSS201", "/Job/Requested/Extension")]),
    (job('<Extension type="Scheduler" name="ChunkCount">3</Extension>'), []),
    (job('<Extension type="other" name="ChunkCount">x</Extension>'), []),
    (job('<Requested><Network metric="Max">fast</Network></Requested>'), [("SSS201", f"{R}/Network")]),
    (job('<Delivered><Network metric="Max">fast</Network></Delivered>'), [("SSS201", "/Job/Delivered/Network")]),
    (job('<Delivered><Queue group="1">q</Queue></Delivered>'), [("SSS402", "/Job/Delivered")]),
    # the reader tells of what nobody knows, and its brackets count
    (job('<Requested><Processors group="1">4</Processors><Foo conj="Or" group="-1">x</Foo></Requested>'), []),
    (job('<Requested><Processors group="1">4</Processors><Foo conj="Or" group="-2">x</Foo></Requested>'),
     [("SSS402", R)]),
    (job('<Delivered><Queue group="1">q</Queue><User group="-1">u</User></Delivered>'), []),
]


def test_rules() -> None:
    with Cases() as case:
        for text, expected in CASES:
            with case(text):
                assert found(text) == expected


def test_strict_brackets() -> None:
    text = job('<Requested><Memory group="1">1</Memory></Requested>')
    assert found(text, "3.1") == [("SSS401", R)]


@pytest.mark.parametrize(("text", "rule", "strictly"), [
    (group("<JobDefaults><Queue>a</Queue></JobDefaults>" * 2 + job("")), "SSS304", "SSS304"),
    (group(job('<Dependency code="1">x</Dependency>') + "<Job><Id>x</Id></Job>"), "SSS413", "SSS413"),
    (job('<Node delimiter=":">a:b</Node>'), "SSS421", "SSS421"),
    ("<Job><State>Idle</State></Job>", None, "SSS305"),
    ("<Job><State>NotQueued</State></Job>", None, None),
    (job("<Hold>User</Hold><Hold>System</Hold>"), None, None),
])
def test_what_only_a_strict_profile_refuses(text: str, rule: str | None, strictly: str | None) -> None:
    for profile, wanted, rejected in (("liberal", rule, False), ("3.1", strictly, strictly is not None)):
        findings = Findings()
        check(read_document(text), findings, profile)
        assert [f.rule for f in findings] == ([] if wanted is None else [wanted])
        assert findings.rejected is rejected


def test_findings_have_lines() -> None:
    document = read_document(b"<JobGroup>\n<Id>g</Id>\n<Job>\n<Id>1</Id>\n<StartTime>2</StartTime>"
                             b"<EndTime>1</EndTime></Job>\n</JobGroup>")
    findings = Findings()
    check(document, findings)
    assert [(f.line, f.subject, f.severity) for f in findings] == [(5, "EndTime", "warning")]


def test_files_that_come_along() -> None:
    root = Job([new_property("Executable", "#Script")])
    findings = Findings()
    check(Document(root, {"Script": File("Script", "date")}), findings)
    assert not list(findings)


def test_several_bodies() -> None:
    text = ("<Envelope><Body><Request><Job><Id>a</Id><Dependency>b</Dependency></Job>"
            "<Job><Id>b</Id><StartTime>2</StartTime><EndTime>1</EndTime></Job></Request></Body></Envelope>")
    assert found(text) == [("SSS412", "/Job[2]/EndTime")]


def test_a_shared_property_is_told_wherever_it_stands() -> None:
    bad = '<Job><Requested><Queue op="Match">(</Queue></Requested></Job>'
    assert [path for _, path in found(group(bad + bad))] == [
        "/JobGroup/Job[1]/Requested/Queue", "/JobGroup/Job[2]/Requested/Queue"]


def test_linear() -> None:
    def one(n: int) -> Job:
        return Job([new_property("Id", str(n)), new_property("Queue", "batch"), new_property("StartTime", 1),
                    new_property("EndTime", 2), Requested([new_property("Memory", 1, {"op": "GE"})]),
                    Delivered([new_property("Memory", 1)]), *([new_property("Dependency", str(n - 1))] if n else [])])

    document = Document(JobGroup([new_property("Id", "g"), *map(one, range(10_000))]))
    findings = Findings()
    start = time.process_time()
    check(document, findings)
    assert not list(findings) and time.process_time() - start < 5


def test_what_is_over_is_a_fact() -> None:
    """Of a job that ran the same is told as a doubt: logs hold odd amounts."""
    for more in ("<State>Completed</State>", "<EndTime>5</EndTime>", "<Delivered><User>u</User></Delivered>"):
        for asked in ("<Processors>16</Processors><NodeCount>20</NodeCount>", "<Processors>99999999999</Processors>",
                      '<Processors op="GE">16</Processors><Processors op="LE">8</Processors>'):
            findings = Findings()
            check(read_document(job(f"{more}<Requested>{asked}</Requested>")), findings)
            assert [f.severity for f in findings] == ["warning"]


def test_amounts_of_the_defaults_count_too() -> None:
    text = ("<JobGroup><Id>g</Id><JobDefaults><Requested>\n<NodeCount>20</NodeCount></Requested></JobDefaults>"
            "<Job><Id>1</Id><Processors>16</Processors></Job>"
            "<Job><Id>2</Id><Requested><NodeCount>2</NodeCount></Requested><Processors>16</Processors></Job></JobGroup>")
    findings = Findings()
    check(read_document(text), findings)
    assert [(f.rule, f.line, f.column) for f in findings] == [("SSS423", 2, 1)]


def test_an_expression_with_too_many_ways_is_not_judged() -> None:
    """Time is bounded: what cannot be told in it is not told."""
    pair = '<Processors group="1">{}</Processors><Processors conj="Or" group="-1">{}</Processors>'
    pairs = "".join(pair.format(2 * n, 2 * n + 1) for n in range(40))
    assert [r for r, _ in found(job(f"<Requested>{pairs}</Requested>"))] in ([], ["SSS423"])


def test_extensions_that_are_looked_at_are_those_that_have_a_grammar() -> None:
    """They are named beside the checks, so that a document without them loads no grammar."""
    assert {*failures.NAMES, sweeps.NAME, "Array", "ChunkCount"} == validation._LOOKED_AT
