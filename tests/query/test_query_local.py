"""What a stream may answer: every query that is taken gives of the jobs one by one what it gives of the whole."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from lxml import etree

from sssjob.errors import QueryError
from sssjob.query import query_stream
from sssjob.query._child import analyse, evaluate_10, evaluate_31
from sssjob.query._results import Places, Result
from sssjob.query._stream import combined, plain
from sssjob.query._text import check, linear, needs_31, tokens
from tests.cases import Cases
from tests.forks import fork_queries

JOBS = b"""<JobGroup x="g"><Id>g</Id><JobDefaults><Project>d</Project></JobDefaults>
<Job x="1"><Id>1</Id><User>ann</User><Processors>4</Processors><Requested><Memory units="GB">2</Memory>
<Memory op="GE">512</Memory><Node>n1</Node></Requested></Job>
<Job x="2"><Id>2</Id><User>bob</User><Processors>2</Processors><Hold>User</Hold><TaskGroup><Id>t</Id><Task><Id>k</Id>
<Memory>8</Memory></Task></TaskGroup></Job>
<Job x="3"><Id>3</Id><User>ann</User><Priority>1</Priority><Requested><Memory>64</Memory></Requested></Job>
</JobGroup>"""

#: Queries whose answer is that of the jobs one by one, or put together from theirs.
TAKEN = """//Job/User
/JobGroup/Job/User
/*/Job/Id
/JobGroup[@x='g']/Job/Id
//JobGroup/Job/Id
//Job[User='ann']/Id
//Job[User='ann'][Requested]/Id
//Job['x']/Id
//Job[count(Requested) > 0]/Id
//Memory[1]
//Requested/Memory[last()]
//Job[.//Memory[2]]/Id
//Job[Requested/Memory[position()=2]]/Id
//Job[../@x='g']/Id
//Job[ancestor::JobGroup]/Id
//Memory/ancestor::Job/Id
//Memory/preceding-sibling::Memory
//Memory/..
//Memory[. > 100]
//Memory/@units
//Job/@x
//Job//Id
//User | //Processors
//Task/following-sibling::*
/descendant::Job/Id
//Job/descendant::Memory[1]
//*:Job/Id
//Job/User/text()
//Job/*[@op]
//Job/Requested/*
//Job/concat(Id, ':', User)
//Job ! string(User)
for $j in //Job return concat($j/Id, $j/User)
for $j in //Job, $m in $j//Memory return string($m)
let $n := 100 return //Memory[. > $n]
//Job except //Job[User='ann']
//Job/(Id, User)
//Job/map{'id': string(Id)}
//Job[some $m in .//Memory satisfies $m > 100]/Id
//Job[for-each(Id, function($i) {string($i)}) = '2']/Id
//Job[sss:bytes(.//Memory[1]) > 1000000]/Id
count(//Job)
count(//Job[User='ann'])
count(/JobGroup/Job)
sum(//Job/Processors)
sum(//Memory/sss:bytes(.))
sum(for $j in //Job return $j/Processors * 2)
min(//Processors)
max(//Memory/number())
max(//User/string())
max(//Hold[. = 'x'])
exists(//Job[Hold])
exists(//Job[Hold = 'x'])
boolean(//Hold)
not(//Job[User='zoe'])
not(//Hold)
empty(//Hold)
fn:count(//Task)"""

#: Queries that ask for more than one job at once, or for what stands around the jobs.
REFUSED = """//Job[2]
//Job[last()]
//Job[position() > 1]
//Job[User='ann'][2]
//Job[0.5]
//Job[Processors + 1]
//Job[number(Priority)]
//Job[count(TaskGroup)]
//Job[not(position()=1)]
//Job[User='x' and position()=1]
//Job[string(position())='1']
/JobGroup/Job[1]
/JobGroup/*[2]
//*[1]
(//Job)[1]
(//Memory)[1]
/descendant::Memory[1]
//Job[1]/Id | //User
last()
position()
//Job/position()
//Job/last()
/JobGroup
/*
/
..
//Job/..
/JobGroup/Id
/JobGroup/JobDefaults/Project
//JobDefaults
//JobDefaults/Project
/JobGroup[Id='g']/Job
/JobGroup[Job]/Job
//JobGroup
//*[User='ann']/Id
//Job[../Id='g']
//Job[//User='zoe']
//Job[count(//Job) > 2]
//Job[Processors = max(//Processors)]
//Job[Processors = max(../Job/Processors)]
//Job[ancestor::JobGroup/Id]
//Job/following-sibling::Job
//Job/preceding::Id
//Memory/following::Memory
//Memory/../../../Id
count(//*)
count(//JobGroup)
count((//Job)[1])
count(//Job) + 1
count(//Job) > 1
-count(//Job)
//Job/User = 'ann'
avg(//Processors)
string(//Id)
concat(//Id, ':')
string-join(//Id, ',')
sss:bytes(//Memory)
//Job => count()
distinct-values(//User)
sort(//Job)
head(//Job)
reverse(//Job)
(//Id, //User)
for $a in //Job, $b in //Job return 1
for $a in //Job return count(//Job)
let $n := count(//Job) return $n
some $j in //Job satisfies $j/User = 'ann'
if (//Job) then 1 else 2
//Job/map{'n': count(//Job)}
function($j) {$j/Id}(//Job)
for-each(//Job, function($j) {string($j/Id)})
root()/JobGroup
//Job/root(.)
//Job/path()
id('1')
1
1 + 1
true()
'x'"""


def alone(job: Any) -> Any:
    """A Job in a group that has its attributes and nothing else."""
    group = etree.Element(job.getparent().tag, dict(job.getparent().attrib))
    group.append(deepcopy(job))
    return group[0]


def evaluated(query: str, context: Any) -> list[tuple[str, str]]:
    """The results, as (kind, text)."""
    evaluate = evaluate_31 if needs_31(tokens(query)) or not is_10(query) else evaluate_10
    return [(row[0], row[1] if len(row) == 2 else text_of(*row)) for row in evaluate(query, context, {}, {})]


def is_10(query: str) -> bool:
    try:
        etree.XPath(query)
    except etree.XPathSyntaxError:
        return False
    return True


def text_of(kind: str, element: Any, name: str) -> str:
    return str(element.get(name) if kind == "attribute" else etree.tostring(element, with_tail=False))


def test_what_is_taken_gives_the_same_job_by_job() -> None:
    with Cases() as case:
        for query in TAKEN.split("\n"):
            with case(query):
                check_job_by_job(query)


def check_job_by_job(query: str) -> None:
    """Hold the results of the jobs, each alone, against those of the group."""
    root = etree.fromstring(JOBS)
    plan = analyse(query, {}, {})
    assert "refused" not in plan and not plan["around"]
    jobs = [evaluated(query, alone(job)) for job in root.findall("Job")]
    whole = evaluated(query, root)
    if plan["how"] == "each":
        assert [row for rows in jobs for row in rows] == whole
        return
    places = Places("-")
    results = [Result(float(value) if kind == "number" else value, places) for rows in jobs for kind, value in rows]
    one = combined(plan["how"], results, places)
    assert [(r.kind, r.value) for r in one] == [(k, float(v) if k == "number" else v) for k, v in whole]


def test_what_depends_on_more_than_a_job_is_refused() -> None:
    with Cases() as case:
        for query in REFUSED.split("\n"):
            with case(query):
                assert analyse(query, {}, {}).keys() == {"refused"}


def test_what_is_plain_needs_no_analysis() -> None:
    """The quick look takes a query only where the whole one takes it with the same plan."""
    with Cases() as case:
        for query in [*TAKEN.split("\n"), *REFUSED.split("\n")]:
            with case(query):
                words = tokens(query)
                check(words)
                quick = plain(words) if linear(words) and not needs_31(words) else None
                assert quick is None or analyse(query, {}, {}) == quick._asdict()


@pytest.mark.parametrize("query", ["//Job/User", "//Job[User='a' and Processors > 2]/Id", "/JobGroup/Job/@x", "User",
                                   "count(//Job)", "sum(//Job/Processors)", "//Memory[@units='GB']",
                                   "//Job[Requested/Memory[. >= 5]]/Id"])
def test_ordinary_queries_are_plain(query: str) -> None:
    """They start no other process, which is most of the time of a small stream."""
    assert plain(tokens(query)) is not None


@pytest.mark.parametrize(("query", "texts"), [
    ("//*[@op='GE']", ["512"]), ("//@x", ["1", "2", "3"]), ("//Nothing", []), ("//Id", ["1", "2", "t", "k", "3"]),
])
def test_what_stands_around_the_jobs_is_left_out(
        query: str, texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fork_queries(monkeypatch)
    assert [r.text() for r in query_stream(query, JOBS)] == texts


@pytest.mark.parametrize("query", ["sum(//Job/@x) div 2", "//Job[@x][User][position() mod 2 = 1]",
                                   "max(//Job/(if (@x = '1') then 1 else 'a'))"])
def test_nothing_is_given_before_a_refusal(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fork_queries(monkeypatch)
    with pytest.raises(QueryError):
        next(query_stream(query, JOBS))
