"""Queries: the typed form, conditions and properties over documents, and what Gold answered to the same questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from sssjob.errors import UsageError
from sssjob.limits import LIMITS
from sssjob.sssrmap import Get, MessageError, Object, Option, Request, Response, Set, Where, read_message
from sssjob.sssrmap.answering import answer, answers
from sssjob.sssrmap.conditions import condition
from sssjob.sssrmap.sentences import request_of
from sssjob.sssrmap.sources import Documents
from sssjob.sssrmap.things import Kind, Thing
from sssjob.xml.reader import read_document
from tests.spec.support import spec
from tests.sssrmap.recordings import exchanges, messages

GROUP: Final = """<JobGroup><JobDefaults><Queue>batch</Queue><Requested><Memory units="GB">4</Memory></Requested>
</JobDefaults>
<Job><Id>a.1</Id><State>Running</State><User>amy</User><SubmitTime>100</SubmitTime>
<Requested><Processors>4</Processors></Requested></Job>
<Job><Id>a.2</Id><State>Idle</State><User>bob</User><SubmitTime>200</SubmitTime>
<Requested><Processors>16</Processors><Memory units="MB">512</Memory></Requested></Job>
<Job><Id>b.3</Id><State>Completed</State><User>amy</User><SubmitTime>300</SubmitTime>
<Delivered><Processors>2</Processors></Delivered>
<TaskGroup><Id>g</Id><Task><Id>t1</Id></Task><Task><Id>t2</Id></Task></TaskGroup></Job>
</JobGroup>"""
DOCUMENTS: Final = Documents(lambda: [read_document(GROUP)])


def asked(text: str, **more: Any) -> Response:
    """The answer of the documents."""
    return answer(request_of(text, "amy"), DOCUMENTS, now=1000, **more)


@pytest.mark.parametrize(("text", "parts"), [
    ("Query Job", ()),
    ("query Job get Id,State", (Get("Id"), Get("State"))),
    ("Query Job Where State=Running Get Id", (Where("State", "Running"), Get("Id"))),
    ("Query Job Where Name='a b' And (Memory >= 2 GB Or User!=amy) Limit 3 Offset 1",
     (Where("Name", "a b"), Where("Memory", "2", "GE", "And", 1, units="GB"), Where("User", "amy", "NE", "Or", -1),
      Option("Limit", "3"), Option("Offset", "1"))),
    ("Query Job Where ((Id=1)) And Not Id=2 OrNot (Id=3 AndNot Id~'4*')",
     (Where("Id", "1"), Where("Id", "2", conj="AndNot"), Where("Id", "3", conj="OrNot", group=1),
      Where("Id", "4*", "Match", "AndNot", -1))),
    ("Query Job Get Sort(Id), Requested/Memory[@units='GB'] in MB as Mem, max(Processors)",
     (Get("Id", "Sort"), Get("Requested/Memory[@units='GB']", units="MB", alias="Mem"), Get("Processors", "Max"))),
    ("Query Job,Task As t Where Job.Id=t.Name And t.Id='t.b' Get Job.Id",
     (Object("Task", alias="t"), Where("Id", "Name", object="Job", subject="t"),
      Where("Id", "t.b", conj="And", object="t"), Get("Id", object="Job"))),
    ("Modify Job Set Name='x y', Queue=q Where Id=1 Option Force, Reason=\"it's so\"",
     (Set("Name", "x y"), Set("Queue", "q"), Where("Id", "1"), Option("Force", "True"), Option("Reason", "it's so"))),
])
def test_the_typed_form(text: str, parts: tuple[Any, ...]) -> None:
    action = "Modify" if text.startswith("M") else "Query"
    assert request_of(text, "amy") == Request(action, "amy", (Object("Job"), *parts))


@pytest.mark.parametrize(("text", "message"), [
    ("", "has its end at character 1, where an action, as Query, is expected"),
    ("Query", "has its end at character 6, where an object, as Job, is expected"),
    ("Query Job Wher Id=1", "has 'Wher' at character 11, where Where, Get, Set, Option, Limit or Offset is expected"),
    ("Query Job Where Id", "has its end at character 19, where one of = != < <= > >= ~ is expected"),
    ("Query Job Where Id=", "has its end at character 20, where a value is expected"),
    ("Query Job Get Foo(Id)", "has '(' at character 18, where a property, or Sort, Tros, Count, Sum, Average, Max, "
                              "Min, GroupBy before the bracket, is expected"),
    ("Query Job Get Sort(Id", "has its end at character 22, where a closing bracket is expected"),
    ("Query Job Where Id='x", "is wrong at character 20: \"'x\""),
    ("Query Job Where Id[=1", "is wrong at character 19: '[=1'"),
    ("Query Job Get a[" + "[" * 70_000, "is longer than the limit directive (65536 characters)"),
])
def test_what_is_no_request(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        request_of(text, "amy")
    assert str(caught.value) == f"the request {message}"


@pytest.mark.parametrize(("text", "content"), [
    ("Where State=Running Get Id,State", "<Job><Id>a.1</Id><State>Running</State></Job>"),
    ("Where JobState=Running Get JobId", "<Job><JobId>a.1</JobId></Job>"),
    ("Where JobClass=active Get Id", "<Job><Id>a.1</Id></Job><Job><Id>a.2</Id></Job>"),
    ("Where Memory >= 1 GB Get Id", "<Job><Id>a.1</Id></Job><Job><Id>b.3</Id></Job>"),
    ("Where Memory = 0.5GB Get Id", "<Job><Id>a.2</Id></Job>"),
    ("Where Memory < 1024 Get Id, Memory in KB",
     '<Job><Id>a.2</Id><Requested><Memory units="KB">524288</Memory></Requested></Job>'),
    ("Where Queue=batch And User=amy AndNot State=Completed Get Id", "<Job><Id>a.1</Id></Job>"),
    ("Where User=bob Or User=amy And State=Running Get Id", "<Job><Id>a.1</Id></Job><Job><Id>a.2</Id></Job>"),
    ("Where (User=bob Or User=amy) And State=Running Get Id", "<Job><Id>a.1</Id></Job>"),
    ("Where Id~a.* AndNot Id~*2 Get Id", "<Job><Id>a.1</Id></Job>"),
    ("Where Id~'[ab].?' Get Id", ""),
    ("Where Delivered/Processors=2 Get Id", "<Job><Id>b.3</Id></Job>"),
    ("Where Processors>3 Get Id", "<Job><Id>a.1</Id></Job><Job><Id>a.2</Id></Job>"),
    ("Where Job/Requested/Processors[.>4]!=0 Get Requested",
     '<Job><Requested><Processors>16</Processors><Memory units="MB">512</Memory></Requested></Job>'),
    ("Where Processors=2 Get .//Processors, Delivered",
     "<Job><Delivered><Processors>2</Processors></Delivered></Job>"),
    ("Where Processors=2 Get Delivered, Processors, Processors As P",
     "<Job><Delivered><Processors>2</Processors><P>2</P></Delivered></Job>"),
    ("Where Id=a.1 Get User, ., Id", "<Job><Id>a.1</Id><State>Running</State><User>amy</User>"
     "<SubmitTime>100</SubmitTime><Queue>batch</Queue><Requested><Processors>4</Processors>"
     '<Memory units="GB">4</Memory></Requested></Job>'),
    ("Where Id=a.1 Get Requested/Memory/@units", "<Job><units>GB</units></Job>"),
    ("Where ExitCode=NULL And Delivered!=NULL Get Id", "<Job><Id>b.3</Id></Job>"),
    ("Where SubmitTime<=1970-01-01T00:03:20Z Get Id", "<Job><Id>a.1</Id></Job><Job><Id>a.2</Id></Job>"),
    ("Where SubmitTime<now Get Count(Id)", "<Job><Id>3</Id></Job>"),
    ("Get GroupBy(User), Count(Id), Sum(Processors)",
     "<Job><User>amy</User><Id>2</Id><Processors>6</Processors></Job>"
     "<Job><User>bob</User><Id>1</Id><Processors>16</Processors></Job>"),
    ("Get Max(Memory), Min(Memory) in GB, Average(Processors)",
     "<Job><Memory>4096</Memory><Memory>0.5</Memory><Processors>7.333333333333333333333333333</Processors></Job>"),
    ("Get Tros(Processors), Id As Which Limit 1",
     "<Job><Requested><Processors>16</Processors></Requested><Which>a.2</Which></Job>"),
    ("Get Sort(User), Id Offset 1 Limit 1", "<Job><User>amy</User><Id>b.3</Id></Job>"),
    ("Get User Option Unique", "<Job><User>amy</User></Job><Job><User>bob</User></Job>"),
    ("Where User=nobody Get Count(Id)", "<Job><Id>0</Id></Job>"),
    ("Where User=nobody", ""),
])
@spec("SSSRMAP Conditions", 2, 3)
def test_questions_about_jobs(text: str, content: str) -> None:
    response = asked(f"Query Job {text}")
    assert response.status.code == "000", response.status
    assert (response.data.content if response.data else "") == content
    assert response.count == len(re.findall("<Job>", content))


def test_conditions_and_sorting_have_one_order() -> None:
    """What sorts before a value is less than it: of ids that are numbers, of others, and between the two."""
    ids = ["10", "9", "j3", "100", "9a", "-1", "2.5", "J3", "09"]
    group = "".join(f"<Job><Id>{identifier}</Id><Name>n{place}</Name></Job>" for place, identifier in enumerate(ids))
    documents = Documents(lambda: [read_document(f"<JobGroup>{group}</JobGroup>")])

    def selected(text: str) -> list[str]:
        """The ids of the jobs of an answer."""
        data = answer(request_of(f"Query Job {text}", "amy"), documents, now=1000).data
        return [] if data is None else re.findall("<Id>(.*?)</Id>", data.content)

    in_order = ["-1", "2.5", "9", "09", "10", "100", "9a", "J3", "j3"]
    assert selected("Get Sort(Id)") == in_order
    assert selected("Get Max(Id)") + selected("Get Min(Id)") == ["j3", "-1"]
    for place, identifier in enumerate(in_order):
        first = in_order.index("9") if identifier == "09" else place
        assert selected(f"Where Id<{identifier} Get Sort(Id)") == in_order[:first], identifier
        assert selected(f"Where Id>={identifier} Get Sort(Id)") == in_order[first:], identifier


def test_other_objects_of_documents() -> None:
    assert [asked(f"Query {kind} Get Id").count for kind in ("Job", "JobGroup", "TaskGroup", "Task")] == [3, 1, 1, 2]
    whole = asked("Query Task Where Id=t2").data
    assert whole is not None and whole.content == "<Task><Id>t2</Id></Task>"


@pytest.mark.parametrize(("text", "code", "message"), [
    ("Query Widget", "740", "Widget is not a valid object (known: Job, JobGroup, TaskGroup, Task)"),
    ("query job", "740", "job is not a valid object (known: Job, JobGroup, TaskGroup, Task) (did you mean Job?)"),
    ("Query Jobs", "740", "Jobs is not a valid object (known: Job, JobGroup, TaskGroup, Task) (did you mean Job?)"),
    ("Query Job Get memory", "318", "memory is not a valid attribute for the Job object (did you mean Memory?)"),
    ("Explode Job", "740", "Explode is not a valid action"),
    ("Cancel Job", "313", "Cancel is not supported here, Query is"),
    ("Query Job,Node", "740", "Node is not a valid object (known: Job, JobGroup, TaskGroup, Task)"),
    ("Query Job,Job", "318", "two objects have the same name; alias tells them apart"),
    ("Query Job,Task Get Id", "318", "Id is a property of Job and Task: object has to say of which"),
    ("Query Job As a,Task As b Where c.Id=b.Id", "318", "c.Id is not a valid attribute for the objects Job_Task"),
    ("Query Job As a,Task As b Where a.Id~b.Id", "318", "Match compares with a value, and not with a property"),
    ("Query Job As a,Task As b Where a.Id=b.Nix", "318", "Nix is not a valid attribute for the Task object"),
    ("Query " + ",".join(f"Job As a{n}" for n in range(9)), "313", "more than 8 objects are not joined"),
    ("Query Job Get Stat", "318", "Stat is not a valid attribute for the Job object (did you mean State?)"),
    ("Query Job Where Stat=1", "318", "Stat is not a valid attribute for the Job object (did you mean State?)"),
    ("Query Job Where (Id=1", "318", "brackets do not balance: 1 left open"),
    ("Query Job Where Id=1)", "318", "brackets do not balance: one closes before it opens"),
    ("Query Job Where SubmitTime>soon", "317", "Invalid time stamp value for SubmitTime: (soon)"),
    ("Query Job Where Memory>much", "317", "Invalid amount value for Memory: (much)"),
    ("Query Job Where Memory>1 Gb2", "317", "units 'Gb2' of Memory are not known"),
    ("Query Job Where Memory>'1 XB'", "317", "units 'XB' of Memory are not known"),
    ("Query Job Where Duration<5 min", "317", "Duration has no units"),
    ("Query Job Where Processors>1 GB", "317", "Processors has no units"),
    ("Query Job Where Id>1 GB", "317", "Id has no units"),
    ("Query Job Get Memory in stones", "317", "units 'stones' of Memory are not known"),
    ("Query Job Get Id in GB", "317", "Id has no units"),
    ("Query Job Get Sum(Id)", "317", "Sum is for numbers, which Id is not in all objects"),
    ("Query Job Get Id,Count(User)", "318",
     "beside Count, Sum, Average, Max, Min each Get has one of them, or GroupBy"),
    ("Query Job Limit many", "317", "Invalid Limit value: (many)"),
    ("Query Job Set Id=1", "318", "Set is for the actions Create and Modify only"),
    ("Query Job Get document('/etc/passwd')", "2", None),
    ("Query Job Get Id/../..//Id", "318", None), ("Query Job Get Id|User", "318", None),
    ("Query Job Get //*[//*]", "318", None), ("Query Job Get Id[", "2", None),
    ("Query Job Get " + "a" * 2000, "318", "a name or path is longer than the limit identifier (1024)"),
])
def test_questions_that_cannot_be_answered(text: str, code: str, message: str | None) -> None:
    try:
        response = asked(text)
    except UsageError:
        assert code == "2"
        return
    assert response.status.code == code
    assert response.count is None and response.data is None
    if message is not None:
        assert response.status.message == message


def test_a_query_that_takes_too_long_is_ended() -> None:
    assert asked("Query Job", limits=replace(LIMITS, query_seconds=-1.0)).status.code == "700"


def test_kinds_of_joins_are_refused() -> None:
    response = answer(Request("Query", "amy", (Object("Job"), Object("Task", join="Left"))), DOCUMENTS, now=0)
    assert (response.status.code, response.status.message) == (
        "313", "join 'Left' is not supported: objects are joined by Where")


#: What is selected of pairs of jobs, which are joined by themselves.
@pytest.mark.parametrize(("text", "content"), [
    ("Where a.User=b.User And a.Id!=b.Id Get a.Id,b.Id As Other",
     "<Job_Job><Id>a.1</Id><Other>b.3</Other></Job_Job><Job_Job><Id>b.3</Id><Other>a.1</Other></Job_Job>"),
    ("Where a.SubmitTime<b.SubmitTime And b.State=Completed Get a.Id,b.Delivered",
     "<Job_Job><Id>a.1</Id><Delivered><Processors>2</Processors></Delivered></Job_Job>"
     "<Job_Job><Id>a.2</Id><Delivered><Processors>2</Processors></Delivered></Job_Job>"),
    ("Where a.Memory=b.Memory And a.Id='a.1' And b.Id='b.3' Get a.Requested,b.Requested",       # of both, though alike
     '<Job_Job><Requested><Processors>4</Processors><Memory units="GB">4</Memory></Requested>'
     '<Requested><Memory units="GB">4</Memory></Requested></Job_Job>'),
    ("Where a.Id='a.1' And b.Id=a.Id Get b.User,a..",
     "<Job_Job><User>amy</User><Id>a.1</Id><State>Running</State><User>amy</User><SubmitTime>100</SubmitTime>"
     '<Queue>batch</Queue><Requested><Processors>4</Processors><Memory units="GB">4</Memory></Requested></Job_Job>'),
    ("Where a.User=b.User Get GroupBy(a.User),Count(b.Id)",
     "<Job_Job><User>amy</User><Id>4</Id></Job_Job><Job_Job><User>bob</User><Id>1</Id></Job_Job>"),
    ("Where a.Id=b.User Get a.Id", ""),
])
@spec("SSSRMAP Conditions", 5)
def test_objects_are_joined(text: str, content: str) -> None:
    """The combinations of which the conditions hold, with the properties of each in the order of the Gets."""
    response = asked(f"Query Job As a,Job As b {text}")
    assert response.status.code == "000", response.status
    assert (response.data.content if response.data else "") == content


def test_joined_objects_are_whole_without_get() -> None:
    data = asked("Query Task As t,TaskGroup As g Where t.Id=t2").data
    assert data is not None and data.content == (
        "<Task_TaskGroup><Id>t2</Id><Id>g</Id><Task><Id>t1</Id></Task><Task><Id>t2</Id></Task></Task_TaskGroup>")


#: Conditions of two jobs; the last is one of three.
PAIRS: Final = ("a.User=b.User", "a.SubmitTime<b.SubmitTime", "a.Memory=b.Memory", "b.Processors!=a.Processors",
                "a.User=amy", "b.State!=Idle", "b.Id=a.User", "c.Queue=b.Queue", "c.Id=a.Id")


@given(st.lists(st.sampled_from(PAIRS), max_size=4, unique=True))
def test_a_join_that_looks_up_selects_what_one_that_tries_all_does(conditions: list[str]) -> None:
    """Brackets keep it from looking up; which object comes first changes nothing but the order."""
    plain = " And ".join(conditions)
    rest = f"Where {plain} " if conditions else ""
    tried = f"Where {plain} And (a.Id!=x And b.Id!=x) " if conditions else "Where (a.Id!=x And b.Id!=x) "
    answered = [asked(f"Query {objects} {where}Get Sort(a.Id),Sort(b.Id),Sort(c.Id)").data for where in (rest, tried)
                for objects in ("Job As a,Job As b,Job As c", "Job As c,Job As b,Job As a")]
    assert answered == [answered[0]] * 4


def test_a_join_that_selects_too_much_is_ended() -> None:
    """Before it fills the memory with what is to be sorted; as many as may be are answered."""
    few = replace(LIMITS, combinations=9)
    assert asked("Query Job As a,Job As b Get Sort(a.Id)", limits=few).count == 9
    refused = asked("Query Job As a,Job As b,Job As c Get Sort(a.Id)", limits=few).status
    assert (refused.code, refused.message) == ("700", "more combinations are selected than the limit combinations (9)")


def test_a_join_that_takes_too_long_is_ended() -> None:
    """While combinations are tried, and not after the last one."""
    many = Documents(lambda: [read_document(f"<JobGroup>{'<Job><Id>1</Id></Job>' * 300}</JobGroup>")])
    request = request_of("Query Job As a,Job As b,Job As c Where a.Id!=b.Id Get a.Id", "amy")
    assert answer(request, many, now=0, limits=replace(LIMITS, query_seconds=0.3)).status.code == "700"


@pytest.mark.parametrize("where", [Where("Id", op="G"), Where("Id", conj="Nand"), Where("Id", object="Node")])
@spec("SSSRMAP Conditions", 4)
def test_unknown_words_of_conditions(where: Where) -> None:
    response = answer(Request("Query", "amy", (Object("Job"), where)), DOCUMENTS, now=0)
    assert response.status.code == "318"


# --- what Gold answered -------------------------------------------------------------------------------------------

EXCHANGES: Final = exchanges()
MESSAGES: Final = messages()
_SHOWN: Final = ("Name", "Active", "CommonName", "PhoneNumber", "EmailAddress", "DefaultProject", "Organization",
                 "Description")
#: Name -> whether it is active, in the order of the recorded bank.
BANK: Final = {
    "User": {"root": 1, "ANY": 0, "NONE": 0, "SELF": 0, "MEMBERS": 0, "amy": 1, "bob": 1, "dave": 0, "eve": 1},
    "Project": {"ANY": 0, "NONE": 0, "MEMBERS": 0, "ADMIN": 0, "chem": 1, "bio": 1, "poor": 1, "closed": 0},
    "Machine": {"NONE": 0, "MEMBERS": 0, "ADMIN": 0, "ANY": 0, "colony": 1, "blue": 1},
}


class Bank:
    """The recorded bank, as far as it was asked."""

    def kinds(self) -> tuple[str, ...]:
        """As recorded."""
        return (*BANK, "Allocation", "Attribute", "ProjectUser")

    def kind(self, name: str) -> Kind:
        """One of them."""
        if name == "Allocation":
            return Kind(name, {"Id": "number", "Amount": "number", "Active": "truth", "EndTime": "time"})
        if name == "Attribute":
            return Kind(name, {"Object": "text", "Sequence": "number", "Name": "text"})
        if name == "ProjectUser":
            return Kind(name, {"Project": "text", "Name": "text"})
        return Kind(name, dict.fromkeys(_SHOWN, "text"))

    def things(self, kind: Kind) -> Iterator[Thing]:
        """All of a kind."""
        if kind.name == "Attribute":
            data = read_message(MESSAGES["chunk-07 response"]).response.data
            assert data is not None
            for one in etree.fromstring(f"<Data>{data.content}</Data>"):
                yield Thing(kind.name, {child.tag: child.text for child in one})
        elif kind.name == "ProjectUser":
            for project, user in (("chem", "amy"), ("bio", "bob"), ("poor", "amy"), ("poor", "bob")):
                yield Thing(kind.name, {"Project": project, "Name": user})
        elif kind.name == "Allocation":
            for number, amount in enumerate((10000000, 20000000, 500), 1):
                yield Thing(kind.name, {"Id": str(number), "Amount": str(amount), "Active": "True"})
        else:
            for name, active in BANK[kind.name].items():
                yield Thing(kind.name, {"Name": name, "Active": str(bool(active))})


#: Recorded queries that are answered otherwise -> the code here, and why.
OTHERWISE: Final = {
    "query-13": ("318", "an operator that does not exist is an error, where Gold takes it for equality"),
    "query-21": ("000", "a date is a time"),
    "query-22": ("000", "so is infinity"),
    "chunk-14": ("000", "an answer has an end"),
}
QUERIES: Final = [name for name, case in EXCHANGES.items() if case.get("topic") in ("query", "chunk")
                  and 'action="Query"' in case["request"] and name not in ("query-03", "query-24", "query-41")]


@pytest.mark.parametrize("name", QUERIES)
@spec("SSSRMAP Conditions", 1, 2)
@spec("SSSRMAP Response", 2)
def test_gold_answers_the_same(name: str) -> None:
    request = read_message(MESSAGES[f"{name} request"], profile="gold").request
    ours = list(answers(request, Bank(), 1000, now=0, profile="gold"))
    if name in OTHERWISE:
        assert ours[0].status.code == OTHERWISE[name][0]
        return
    theirs = [read_message(text).response for n, text in MESSAGES.items() if n.startswith(f"{name} response")]
    assert len(ours) == len(theirs)
    for own, recorded in zip(ours, theirs, strict=True):
        assert (own.status.value, own.status.code) == (recorded.status.value, recorded.status.code)
        assert (own.count, own.data, own.chunk_num, own.chunk_max) == (
            recorded.count, recorded.data, recorded.chunk_num, recorded.chunk_max)


def test_pieces_without_the_quirk() -> None:
    """In profile 3.1 a full piece is no sign of more, and no warning."""
    request = read_message(MESSAGES["chunk-02 request"]).request
    assert [(r.count, r.chunk_num, r.status.code) for r in answers(request, Bank(), 99, now=0)] == [(12, None, "000")]
    chunked = replace(request, chunk_size=5)
    assert [(r.count, r.chunk_num, r.chunk_max) for r in answers(chunked, Bank(), 99, now=0)] == [
        (5, 1, -1), (5, 2, -1), (2, 3, 0)]
    cut = replace(chunked, chunking=False)
    assert [(r.count, r.status.code) for r in answers(cut, Bank(), 99, now=0)] == [(5, "146")]


# --- the algebra --------------------------------------------------------------------------------------------------

class _Fixed:
    """A property whose conditions are true where their name is."""

    def of(self, thing: Thing) -> list[str]:
        """Its text."""
        return ["1"]

    def wanted(self, text: str, units: str | None) -> str:
        """As it is."""
        return text

    def typed(self, selected: str) -> str:
        """As it is."""
        return selected


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(("And", "Or", "AndNot", "OrNot")), st.integers(0, 2),
                          st.integers(0, 2)), min_size=1, max_size=7))
@spec("SSSRMAP Conditions", 1)
def test_conditions_mean_what_their_words_say(rows: list[tuple[bool, str, int, int]]) -> None:
    """As Python reads them: conj, opening brackets, not, the condition, closing brackets."""
    words, wheres, depth = [], [], 0
    for number, (truth, conj, opened, closed) in enumerate(rows):
        opened, closed = (opened, 0) if opened >= closed else (0, min(closed - opened, depth))
        if number == len(rows) - 1:
            opened, closed = 0, depth
        depth += opened - closed
        negated = conj.endswith("Not")
        words.append(f"{'' if not number else conj.removesuffix('Not').lower()} {'(' * opened}"
                     f"{'not ' if negated else ''}{truth}{')' * closed}")
        wheres.append(Where("x", "1" if truth else "0", conj=conj, group=opened - closed or None))
    test = condition(wheres, lambda name, of: _Fixed())  # type: ignore[arg-type, return-value]
    assert test(Thing("Job")) is eval(" ".join(words))


def test_conditions_without_end_are_a_limit() -> None:
    deep = [Where("Id", "1", group=1) for _ in range(100)] + [Where("Id", "1", group=-100)]
    with pytest.raises(MessageError, match="group_depth"):
        condition(deep, lambda name, of: _Fixed())  # type: ignore[arg-type, return-value]
