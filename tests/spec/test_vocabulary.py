"""The vocabulary against the facts of the specification, which stand here a second time, as the specification has them.

The published text lost the names of its tables; the restored names, their sources and how sure they are, are those of
the reference that the project was begun with. Where the vocabulary deliberately says more, ``DEVIATIONS`` says why.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from sssjob.document.element import Value, new_property
from sssjob.document.model import CLASSES, Container
from sssjob.document.vocabulary import (
    AWARENESS,
    CONSUMABLE,
    CONTAINERS,
    DELIVERED,
    ELEMENTS,
    HOMELESS,
    REQUESTED,
    TRANSPARENT,
    Attribute,
    Element,
    aliases,
    containers_of,
    in_scope,
)
from sssjob.xml.reader import read_document
from sssjob.xml.schema import validate, validate_json
from sssjob.xml.twin import from_json, to_json
from sssjob.xml.writer import write_document
from tests.cases import Cases
from tests.spec.support import document, refused, spec

# --- Tables 1 to 7: name, type, appearance, compliance, categories, how sure the name is, aliases -----------------

TABLES = {
    ("JobGroup", "4.1 Table 1"): """
        CreationTime DateTime MAY  MAY    - medium  -
        Description  String   MAY  MAY    - high    -
        Id           String   MUST MUST   - certain JobGroupId
        Name         String   MAY  SHOULD - certain JobGroupName
        State        String   MAY  SHOULD - certain JobGroupState
    """,
    ("Job", "5.1 Table 2"): """
        Application             String   MAY    MAY    -  certain ApplicationName
        Architecture            String   MAY    MAY    RD certain Arch
        Arguments               String   MAY    SHOULD -  certain Args
        Charge                  Float    MAY    SHOULD -  certain Cost
        Checkpointable          Boolean  MAY    MAY    -  medium  IsCheckpointable
        CpuDuration             Duration MAY    SHOULD -  high    CPUDuration,CpuTime
        DeadlineTime            DateTime MAY    MAY    -  medium  Deadline
        EligibleTime            DateTime MAY    MAY    -  certain eligibleDate
        EndTime                 DateTime MAY    MUST   -  certain CompletionTime
        Executable              String   MAY    MUST   -  certain CmdFile
        ExitCode                Integer  MAY    SHOULD -  high    ExitStatus
        GlobalJob               String   MAY    SHOULD -  medium  GlobalJobId,GlobalId
        Hold                    String   MAY    SHOULD -  certain -
        InitialWorkingDirectory String   MAY    SHOULD -  certain IWD
        Interactive             Boolean  MAY    SHOULD -  high    IsInteractive
        Id                      String   MUST   MUST   -  certain JobId,LocalJobId,jobId,Instance
        Name                    String   MAY    SHOULD -  certain JobName,jobName
        State                   String   MAY    MUST   -  certain JobState,jobState
        Type                    String   MAY    MAY    -  high    JobType
        Machine                 String   MAY    MUST   RD certain MachineName,Cluster,Host
        NodeCount               Integer  MAY    MUST   RD certain Nodes,requestedNodes
        OperatingSystem         String   MAY    MAY    RD medium  OpSys,OS
        Partition               String   MAY    MAY    RD high    PartitionName
        Priority                Integer  MAY    SHOULD -  certain UserPrio
        QualityOfService        String   MAY    SHOULD RD certain QOS,QoS,qos
        Queue                   String   MAY    SHOULD RD certain QueueId,Class,JobClass,requestedQueue
        Quote                   String   MAY    MAY    -  certain QuoteId
        Reservation             String   MAY    MAY    RD high    ReservationId,RequiredReservation
        ReservationTime         DateTime MAY    MAY    -  high    -
        ResourceManagerType     String   MAY    MAY    RD medium  RMType
        Restartable             Boolean  MAY    MAY    -  certain IsRestartable
        Shell                   String   MAY    MAY    -  high    ShellName
        StagedTime              DateTime MAY    MAY    -  certain -
        StartCount              Integer  MAY    MAY    -  medium  -
        StartTime               DateTime MAY    MUST   -  certain -
        StatusMessage           String   MAY    SHOULD -  certain Message
        SubmitTime              DateTime MAY    SHOULD -  certain SubmissionTime
        SubmitHost              String   MAY    SHOULD -  certain -
        Suspendable             Boolean  MAY    MAY    -  certain IsSuspendable
        SuspendDuration         Integer  MAY    MAY    -  certain -
        TimeCategory            String   MAY    MAY    -  medium  -
        Duration                Duration SHOULD MUST   RD certain WallDuration,WallclockDuration,WallTime,*
    """.replace("*", "wallclockLimit,wallclockTimeUsed"),
    ("Job", "5.1 Table 3"): """
        Project    String MAY SHOULD RD certain Account,ProjectId,AccountId,accountName,ProjectName
        GlobalUser String MAY SHOULD RD certain GlobalUserId
        Group      String MAY MAY    RD certain GroupId,groupName
        User       String MAY MUST   RD certain UserId,userName,Owner,Actor
    """,
    ("Job", "5.1 Table 4"): """
        Disk       Float   MAY SHOULD RD certain -
        Memory     Float   MAY SHOULD RD certain -
        Network    Float   MAY MAY    RD high    NetworkAdapter,NetworkType
        Processors Integer MAY MUST   RD certain Procs,numProcessors,requestedProcessors
        Swap       Float   MAY MAY    RD high    VirtualMemory
    """,
    ("TaskGroup", "6.1 Table 6"): """
        TaskCount Integer MAY MUST   - certain -
        Id        String  MAY MAY    - high    TaskGroupId
        Name      String  MAY SHOULD - certain TaskGroupName
    """,
    ("Task", "7.1 Table 7"): """
        Node    String  MAY MUST - certain NodeName,NodeId
        Session Integer MAY MAY  - medium  SessionId
        Id      String  MAY MAY  - high    TaskId
    """,
}
#: Table 2 has one row more, between Machine and NodeCount: the adapter type, under a name that Table 4 has too.
ADAPTER = "Network String MAY MAY RD"

#: Where the vocabulary says something else, and why (section 14 of the reference has the oddities).
DEVIATIONS: dict[tuple[str, str], tuple[str, str]] = {
    ("SuspendDuration", "type"): ("Duration", "oddity 21: whole seconds, as every other duration"),
    ("SuspendDuration", "categories"): ("D", "section 4: Maui's sample has it in Delivered"),
    ("Extension", "categories"): ("RD", "section 15: Maui has names without an equivalent in Requested"),
}

# --- structured properties: multiplicity in the text, compliance, categories --------------------------------------

STRUCTURED = """
    Feature          String 0..1 SHOULD RD -
    Node             String 0..1 SHOULD RD NodeList
    OutputFile       String 0..1 -      -  -
    ErrorFile        String 0..1 -      -  -
    InputFile        String 0..1 -      -  -
    NotificationList String 0..1 -      -  Notification
    ResourceLimit    String 0..n -      -  -
    TaskDistribution String 0..1 SHOULD -  TPN
    Dependency       String 0..n SHOULD -  -
    Resource         Float  0..n SHOULD RD -
    Extension        String 0..n MAY    -  -
    Variable         String 0..n -      -  -
    Process          Integer 0..1 -     -  ProcessId,Pid
"""
#: Properties of the tables that may stand more than once in a scope.
REPEATABLE = {"Hold"}

# --- attributes: owner, name, type, compliance, values (| parted, ... open, , a comma list), default --------------

ATTRIBUTES = """
    *           awarenessPolicy   String   MAY    Reject|Warn|Ignore                      Reject
    Requested   op                String   SHOULD EQ|NE|LT|GT|LE|GE|Match                 EQ
    Requested   conj              String   MAY    And|Or|Nand|Nor                         And
    Requested   group             Integer  MAY    -                                       0
    Requested   preference        Integer  MAY    -                                       -
    Requested   performanceFactor Float    MAY    -                                       -
    Delivered   group             Integer  MAY    -                                       0
    consumable  context           String   MAY    Configured|Available|Used|Dedicated     Available
    consumable  units             String   MAY    -                                       -
    consumable  metric            String   MAY    Total|Average|Min|Max|...               -
    consumable  duration          Duration MAY    -                                       -
    consumable  consumptionRate   Float    MAY    -                                       1
    consumable  dynamic           Boolean  MAY    -                                       false
    Feature     aggregation       String   MAY    List|Pattern                            -
    Feature     delimiter         String   -      -                                       ,
    Node        aggregation       String   MAY    List|Pattern|Range                      -
    Node        delimiter         String   -      -                                       ,
    Node        count             Integer  -      -                                       1
    OutputFile  redirectList      String   SHOULD Append|Close|Flush|Keep|Merge|,         -
    ErrorFile   redirectList      String   SHOULD Append|Close|Flush|Keep|Merge|,         -
    InputFile   redirectList      String   SHOULD Close|,                                 -
    NotificationList uri          String   MAY    -                                       -
    ResourceLimit name            String   MUST   CoreFileSize|CPUTime|DataSegSize|FileSize|MaxMemorySize|* -
    ResourceLimit type            String   MAY    Hard|Soft                               -
    Environment export            Boolean  MAY    -                                       false
    Variable    name              String   MUST   -                                       -
    TaskDistribution type         String   MAY    Rule|TasksPerNode|ProcessorsPerTask|Geometry -
    Dependency  condition         String   MUST   OnSuccess|OnFailure|OnExit              OnSuccess
    Dependency  code              Integer  -      -                                       -
    Dependency  designator        String   MAY    JobId|JobName                           JobId
    Resource    name              String   MUST   -                                       -
    Resource    type              String   SHOULD -                                       -
    Extension   name              String   MUST   -                                       -
    Extension   type              String   SHOULD -                                       -
    Charge      units             String   -      -                                       -
""".replace("|* -", "|MaxProcesses|MaxSwap|MaxMemLock|MaxProcessors|MaxMemory|MaxDisk|MaxNetwork"
                                  "|MaxFileIO|OpenFiles|StackSize|... -")
#: Attributes that MUST be there.
REQUIRED = {("ResourceLimit", "name"), ("Variable", "name"), ("Resource", "name"), ("Extension", "name")}

# --- containers: compliance, and what they contain besides properties ---------------------------------------------

CONTAINED = {
    "JobGroup": ("MAY", "Job 1..n, JobDefaults 0..1"),
    "Job": ("MUST", "TaskGroup 0..n, TaskGroupDefaults 0..1, +"),
    "JobDefaults": ("MAY", "TaskGroup 0..n, TaskGroupDefaults 0..1, +"),
    "TaskGroup": ("MAY", "Task 0..n, TaskDefaults 0..1, +"),
    "TaskGroupDefaults": ("MAY", "Task 0..n, TaskDefaults 0..1, +"),
    "Task": ("MAY", "+"),
    "TaskDefaults": ("MAY", "+"),
    "Requested": ("SHOULD", ""),
    "Delivered": ("SHOULD", ""),
    "Environment": ("SHOULD", ""),
}
CATEGORIES = "Requested 0..n, Delivered 0..n, Environment 0..1"

# --- section 15: names of older releases and of other systems -----------------------------------------------------

OTHER_NAMES = {
    "Job": """
        JobId,LocalJobId,jobId,Instance=Id JobName,jobName=Name JobState,jobState=State JobType=Type
        GlobalJobId,GlobalId=GlobalJob UserId,userName,Owner=User GroupId,groupName=Group
        ProjectId,ProjectName,Account,AccountId,accountName=Project GlobalUserId=GlobalUser MachineName=Machine
        PartitionName=Partition QueueId,Class,requestedQueue=Queue QOS,QoS,qos=QualityOfService
        WallDuration,WallclockDuration,wallclockTimeUsed,wallclockLimit=Duration CompletionTime=EndTime
        SubmissionTime=SubmitTime eligibleDate=EligibleTime QuoteId=Quote ReservationId,RequiredReservation=Reservation
        OpSys=OperatingSystem IsInteractive=Interactive IsRestartable=Restartable IsSuspendable=Suspendable
        IsCheckpointable=Checkpointable Nodes,requestedNodes=NodeCount requestedProcessors=Processors ShellName=Shell
        Notification=NotificationList TPN=TaskDistribution NodeList=Node""",
    "JobGroup": "job=Job JobsDefaults=JobDefaults",
    "TaskGroup": "TaskGroupId=Id TaskGroupName=Name",
    "Task": "TaskId=Id NodeName=Node SessionId=Session ProcessId=Process",
}
NO_EQUIVALENT = ("Calendar CPULimit JobFlags OpaqueFlags RsvAccess StepId SubmitLanguage SubmitString UMask NodeMemory "
                 "NodeProc NodeSwap NodeDisk NodeType Stage CallType RMFlags")
#: Release 3.0 to 3.1: prefixes and suffixes that were dropped, and three words.
FORMER = ("JobGroupId=Id JobGroupName=Name JobGroupState=State JobId=Id JobName=Name JobState=State JobType=Type "
          "TaskGroupId=Id TaskGroupName=Name TaskId=Id UserId=User GroupId=Group ProjectId=Project QuoteId=Quote "
          "GlobalUserId=GlobalUser GlobalJobId=GlobalJob ReservationId=Reservation MachineName=Machine NodeName=Node "
          "SessionId=Session WallDuration=Duration SubmissionTime=SubmitTime CompletionTime=EndTime")


def facts(e: Element) -> dict[str, str]:
    return {"type": e.type, "appearance": e.appearance, "compliance": e.compliance, "categories": e.categories or "-",
            "confidence": e.confidence, "aliases": ",".join(sorted(e.aliases)) or "-"}


def expected(line: str) -> tuple[str, dict[str, str]]:
    name, type_, appearance, compliance, categories, confidence, others = line.split()
    row = {"type": type_, "appearance": appearance, "compliance": compliance, "categories": categories,
           "confidence": confidence, "aliases": ",".join(sorted(others.split(",")))}
    return name, row | {fact: value for (n, fact), (value, _) in DEVIATIONS.items() if n == name}


@pytest.mark.parametrize("table", TABLES, ids=lambda key: key[1].replace(" ", "-"))
def test_rows_of_the_tables(table: tuple[str, str]) -> None:
    wanted = dict(expected(line) for line in TABLES[table].strip().splitlines())
    rows = [e for e in ELEMENTS if (e.table, e.section) == table]
    assert [e.name for e in rows] == list(wanted)
    assert {e.name: facts(e) for e in rows} == wanted


def test_structured_properties() -> None:
    rows = {e.name: e for e in ELEMENTS if "Table" not in e.section}
    found = {name: (e.type, "0..n" if e.repeats and not e.once_in_text else "0..1", e.compliance, e.categories or "-",
                    ",".join(e.aliases) or "-") for name, e in rows.items()}
    wanted = {}
    for line in STRUCTURED.strip().splitlines():
        name, type_, count, compliance, categories, others = line.split()
        categories = DEVIATIONS.get((name, "categories"), (categories, ""))[0]
        wanted[name] = (type_, count, compliance, categories, others)
    assert found == wanted
    assert {e.name for e in ELEMENTS if "Table" in e.section and e.repeats} == REPEATABLE


def shown(a: Attribute) -> tuple[str, str, str, str]:
    values = "|".join((*a.values, *(["..."] if a.open_list and a.values else []), *([","] if a.is_list else [])))
    return a.type, a.compliance, values or "-", a.default or "-"


def owners() -> dict[tuple[str, str], Attribute]:
    found = {("*", "awarenessPolicy"): AWARENESS}
    found |= {("Requested", a.name): a for a in REQUESTED} | {("Delivered", a.name): a for a in DELIVERED}
    found |= {("consumable", a.name): a for a in CONSUMABLE}
    owned = [(e.name, a) for e in ELEMENTS for a in e.attributes]
    owned += [(c.name, a) for c in CONTAINERS.values() for a in c.attributes]
    return found | {(name, a.name): a for name, a in owned if a not in CONSUMABLE and not a.former}


def test_attributes() -> None:
    wanted = {}
    for line in ATTRIBUTES.strip().splitlines():
        owner, name, *rest = line.split()
        wanted[owner, name] = tuple(rest)
    assert {key: shown(a) for key, a in owners().items()} == wanted
    assert {key for key, a in owners().items() if a.required} == REQUIRED
    consumables = {e.name for e in ELEMENTS if set(CONSUMABLE) <= set(e.attributes)}
    assert consumables == {"Disk", "Memory", "Network", "Processors", "Swap", "Resource"}


def test_containers() -> None:
    def text(name: str) -> str:
        rows = CONTAINERS[name].children
        return ", ".join(f"{n} {least}..{'n' if most is None else most}" for n, least, most in rows)

    assert {n: (c.compliance, text(n)) for n, c in CONTAINERS.items()} == {
        n: (compliance, inside.replace("+", CATEGORIES)) for n, (compliance, inside) in CONTAINED.items()}
    assert {n for n, c in CONTAINERS.items() if c.reference} == {"JobGroup", "Job", "TaskGroup", "Task"}


@pytest.mark.parametrize("container", OTHER_NAMES)
def test_other_names(container: str) -> None:
    wanted: dict[str, str] = {}
    for group in OTHER_NAMES[container].split():
        others, _, name = group.rpartition("=")
        wanted |= dict.fromkeys(others.split(","), name)
    assert {n: aliases(container).get(n) for n in wanted} == wanted


def test_names_without_an_equivalent() -> None:
    assert set(HOMELESS) == set(NO_EQUIVALENT.split())
    assert TRANSPARENT == ("NodeProperties",)


def test_former_names() -> None:
    assert sorted(f"{e.former}={e.name}" for e in ELEMENTS if e.former) == sorted(FORMER.split())


def test_no_other_name_is_two_names() -> None:
    for container in CONTAINERS:
        names = [a for e in in_scope(container).values() for a in e.aliases]
        assert len(names) == len(set(names)), container
        assert not set(names) & set(in_scope(container)) - {"Node"}, container


# --- what support means: read to the letter, typed, written, taken by every schema --------------------------------

SAMPLE: dict[str, tuple[str, Value]] = {
    "String": ("a b", "a b"), "Integer": ("3", 3), "Float": ("1.5", Decimal("1.5")), "Boolean": ("true", True),
    "DateTime": ("1051557713", 1051557713), "Duration": ("3600", 3600),
}
_CONTAINERS_OF = [(e, frozenset(containers_of(e))) for e in ELEMENTS]
PLACES = {c: elements for c in CONTAINERS if (elements := [e for e, names in _CONTAINERS_OF if c in names])}


def around(container: str, body: str) -> str:
    """A document that is in order with this in a container."""
    inside = f"<{container}>{body}</{container}>"
    wraps = {
        "JobGroup": "<JobGroup>{}<Job><Id>j</Id></Job></JobGroup>" if "<Id" in body else
        "<JobGroup><Id>g</Id>{}<Job><Id>j</Id></Job></JobGroup>",
        "Job": "<Job>{}</Job>" if "<Id" in body else "<Job><Id>j</Id>{}</Job>",
    }
    if container in wraps:
        return wraps[container].format(body)
    outer = {"JobDefaults": "<JobGroup><Id>g</Id><Job><Id>j</Id></Job>{}</JobGroup>",
             "Task": "<TaskGroup>{}</TaskGroup>", "TaskDefaults": "<TaskGroup>{}</TaskGroup>", "TaskGroup": "{}",
             "Requested": "{}", "Delivered": "{}"}.get(container, "<Job><Id>j</Id>{}</Job>")
    return outer.format(inside)


def found_in(container: Container, name: str, tag: str) -> Container:
    stack = [container]
    while stack:
        here = stack.pop()
        if here.tag == name and here.first(tag) is not None:
            return here
        stack.extend(here.containers())
    raise AssertionError(f"no {tag} in {name}")


@spec("1.3")
@spec("2.2", 4, 5, 6)
@spec("4.1 Table 1")
@spec("5.1 Table 2")
@spec("5.1 Table 3")
@spec("5.1 Table 4")
@spec("5.1 OutputFile Element")
@spec("5.1 ErrorFile Element")
@spec("5.1 InputFile Element")
@spec("5.1 NotificationList Element")
@spec("5.1 ResourceLimit Element")
@spec("5.1 Variable Element")
@spec("6.1 Table 6")
@spec("7.1 Table 7")
@pytest.mark.parametrize("container", PLACES)
def test_every_property_is_supported_wherever_it_may_stand(container: str) -> None:
    with Cases() as case:
        for e in PLACES[container]:
            with case(e.name):
                supported_property(container, e)


def supported_property(container: str, e: Element) -> None:
    """Have an element read, typed, written and taken by every schema in a container."""
    text, value = SAMPLE[e.type]
    attributes = "".join(f' {a.name}="{(a.values or ("x",))[0]}"' for a in e.attributes if a.required)
    xml = around(container, f"<{e.name}{attributes}>{text}</{e.name}>")
    read = document(xml, "3.1")
    assert refused(xml) == []
    assert isinstance(read.root, Container)
    here = found_in(read.root, container, e.name)
    assert here.value(e.name) == value and isinstance(here, CLASSES[container])
    assert read_document(write_document(read), profile="3.1").root == read.root
    assert list(validate(xml, "1.0")) == [] and list(validate(xml, "1.1")) == []
    assert validate_json(to_json(read)) == [] and from_json(to_json(read)).root == read.root


def attributes_of(container: str, e: Element) -> list[Attribute]:
    """The attributes that an element may have in a container."""
    of_container = {"R": REQUESTED, "D": DELIVERED}.get(CONTAINERS[container].category, ())
    return [a for a in (*e.attributes, *of_container, AWARENESS)
            if not a.former and a.name not in ("delimiter", "code", "group")]


@spec("1.3", "c")
@spec("5.1 Feature Element", 3, 4)
@spec("5.1 OutputFile Element", 1, 2)
@spec("5.1 ErrorFile Element", 1, 2)
@spec("5.1 InputFile Element", 1, 2)
@spec("5.1 NotificationList Element", 1, 2)
@spec("5.1 ResourceLimit Element", 1, 2, 3)
@spec("5.1 Variable Element", 1, 2)
@spec("5.1 Node Element", 3, 4, 6)
@spec("5.1 TaskDistribution Element", 3, 4)
@spec("5.1 Dependency Element", 4, 5, 7, 8)
@spec("5.1 Consumable Resources", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
@spec("5.1 Resource Element", 4, 5, 6, 7)
@spec("5.1 Extension Element", 2, 3, 4, 5)
@spec("8.1", 2, 3, 4, 5, 8, 9, 10, 11)
@spec("9.0", 2, 5)
@pytest.mark.parametrize("container", PLACES)
def test_every_attribute_is_supported_wherever_it_may_stand(container: str) -> None:
    with Cases() as case:
        for e in PLACES[container]:
            for a in attributes_of(container, e):
                with case(f"{e.name} {a.name}"):
                    supported_attribute(container, e, a)


def supported_attribute(container: str, e: Element, a: Attribute) -> None:
    """Have an attribute of an element read, written and taken by the schemas in a container."""
    wanted = {n.name: (n.values or ("x",))[0] for n in e.attributes if n.required}
    wanted[a.name] = (a.values or ({"units": "GB", "name": "x"}.get(a.name, SAMPLE[a.type][0]),))[-1]
    attributes = "".join(f' {n}="{v}"' for n, v in wanted.items())
    text = {"Range": "n[1-2]", "Geometry": "{1,2}"}.get(wanted[a.name], "true" if e.type == "Boolean" else "2")
    xml = around(container, f"<{e.name}{attributes}>{text}</{e.name}>")
    read = document(xml, "3.1")
    assert refused(xml) == []
    assert isinstance(read.root, Container)
    p = found_in(read.root, container, e.name).first(e.name)
    assert p is not None and p.attributes == wanted
    assert read_document(write_document(read), profile="3.1").root == read.root
    assert list(validate(xml, "1.0")) == [] and validate_json(to_json(read)) == []


def test_an_attribute_is_typed_like_its_row() -> None:
    memory = new_property("Memory", Decimal(1), {"duration": "60", "consumptionRate": "0.63", "dynamic": "true"})
    assert (memory.duration, memory.consumption_rate, memory.dynamic, memory.context) == (  # type: ignore[attr-defined]
        60, Decimal("0.63"), True, "Available")
