"""The one table of facts: every element and attribute of the SSS job object 3.1.0.

The reader, the writer, the typed accessors, both XSDs, the JSON Schema, the reference pages and the table of what is
implemented derive from the rows below; nothing else in the project says what an element is. A row gives name, type,
where it may stand, categories, multiplicity, compliance, aliases, section and how sure the name is: the published
text lost the first column of its tables, and the names were restored from its examples, from the alphabetical slots
of the tables and from the programs that spoke the format (``confidence``: certain, high, medium, low).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

__all__ = [
    "ATTRIBUTES",
    "AWARENESS",
    "CONSUMABLE",
    "CONTAINERS",
    "DELIVERED",
    "ELEMENTS",
    "HOMELESS",
    "PRINTED",
    "REQUESTED",
    "SCOPES",
    "SILENT",
    "TRANSPARENT",
    "Attribute",
    "ContainerRow",
    "Element",
    "Type",
    "aliases",
    "attributes_in",
    "containers_of",
    "element",
    "in_scope",
    "python_name",
]

Type = Literal["String", "Integer", "Float", "Boolean", "DateTime", "Duration"]
#: How far something is demanded, in the words of RFC 2119; ``-`` where the text is silent.
Compliance = Literal["MUST", "SHOULD", "MAY", "-"]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: values names a closed list (``open_list``: a list that others may extend)."""

    name: str
    type: Type
    description: str
    compliance: Compliance = "MAY"
    required: bool = False
    values: tuple[str, ...] = ()
    open_list: bool = False
    default: str | None = None
    is_list: bool = False           # a comma list of ``values``
    aliases: tuple[tuple[str, str], ...] = ()   # other spellings of a value -> canonical
    section: str = ""
    former: bool = False            # of release 3.0 only: read where aliases are, kept, not in the schemas


@dataclass(frozen=True, slots=True)
class Element:
    """A property. appearance: whether a producer states it (section 2.2); compliance: whether an implementation
    supports it."""

    name: str
    type: Type
    description: str
    table: str                      # the scope the row belongs to: JobGroup, Job, TaskGroup, Task, Environment
    section: str
    appearance: Compliance = "MAY"
    compliance: Compliance = "MAY"
    categories: str = ""            # R: may stand in Requested, D: in Delivered
    repeats: bool = False           # more than one in a bare scope
    once_in_text: bool = False      # although the text allows one there
    aliases: tuple[str, ...] = ()
    former: str | None = None       # the spelling of release 3.0
    confidence: Literal["certain", "high", "medium", "low"] = "certain"
    attributes: tuple[Attribute, ...] = ()
    values: tuple[str, ...] = ()    # known words; always an open list in this specification
    verbatim: bool = False          # white space inside is data
    may_be_empty: bool = False
    identifier: bool = False        # a name or id: no control or invisible characters
    unit: str | None = None         # default unit
    instance: bool = False          # belongs to one instance: never inherited from Defaults
    amount: bool = False            # describes its own level: never inherited across levels
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class ContainerRow:
    """An element with element content: ``children`` as (name, least, most); most None is unbounded."""

    name: str
    description: str
    section: str
    compliance: Compliance
    tables: tuple[str, ...] = ()            # property tables whose rows may stand here
    children: tuple[tuple[str, int, int | None], ...] = ()
    category: str = ""                      # R or D for Requested and Delivered
    aliases: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    reference: bool = False                 # text content is a reference by id


# --- attributes ---------------------------------------------------------------------------------------------------

AWARENESS: Final = Attribute(
    "awarenessPolicy", "String", "what to do with a name or value that is not supported",
    values=("Reject", "Warn", "Ignore"), default="Reject", section="9.0",
)
#: Attributes of a property inside Requested (section 8.1).
REQUESTED: Final = (
    Attribute("op", "String", "conditional operation on the value", "SHOULD",
              values=("EQ", "NE", "LT", "GT", "LE", "GE", "Match"), default="EQ", section="8.1"),
    Attribute("conj", "String", "relation to the previous property", values=("And", "Or", "Nand", "Nor"), default="And",
              aliases=(("AndNot", "Nand"), ("OrNot", "Nor")), section="8.1"),
    Attribute("group", "Integer", "n > 0 opens n brackets at this property, n < 0 closes n after it", default="0",
              section="8.1"),
    Attribute("preference", "Integer", "weight among alternatives; positive: one is needed, negative: wished",
              section="8.1"),
    Attribute("performanceFactor", "Float", "performance to trade for an earlier start", section="8.1"),
)
#: Attributes of conditions with the value that says as much as none.
SILENT: Final = frozenset((row.name, row.default) for row in REQUESTED if row.default is not None)
#: Attributes of a property inside Delivered (section 8.2).
DELIVERED: Final = (REQUESTED[2],)
#: Attributes of every consumable resource (section 5.1, Consumable Resources).
CONSUMABLE: Final = (
    Attribute("context", "String", "sense in which the resource is meant",
              values=("Configured", "Available", "Used", "Dedicated"), default="Available",
              aliases=(("Utilized", "Used"),), section="5.1 Consumable Resources"),
    Attribute("units", "String", "unit of measure (Appendix A for bytes)", section="5.1 Consumable Resources"),
    Attribute("metric", "String", "kind of measurement; in Requested also PerNode, PerChunk, PerProcessor, PerSlot, "
              "PerGPU", values=("Total", "Average", "Min", "Max"), open_list=True, section="5.1 Consumable Resources"),
    Attribute("duration", "Duration", "seconds in use, where not the job's duration",
              section="5.1 Consumable Resources"),
    Attribute("consumptionRate", "Float", "average fraction used over the duration", default="1",
              section="5.1 Consumable Resources"),
    Attribute("dynamic", "Boolean", "whether the allocation may grow or shrink", default="false",
              section="5.1 Consumable Resources"),
)
_AGGREGATION: Final = Attribute("aggregation", "String", "several values in one expression",
                                values=("List", "Pattern"), section="5.1 Feature Element")
_DELIMITER: Final = Attribute("delimiter", "String", "what parts the members of a List", "-", default=",",
                              section="5.1 Feature Element")
_NODE: Final = (
    Attribute("aggregation", "String", "several nodes in one expression", values=("List", "Pattern", "Range"),
              section="5.1 Node Element"),
    Attribute("delimiter", "String", "what parts the members of a List", "-", default=",", section="5.1 Node Element"),
    Attribute("count", "Integer", "instances of each of the named nodes", "-", default="1",
              section="5.1 Node Element"),
)
_REDIRECT: Final = ("Append", "Close", "Flush", "Keep", "Merge")


def _redirect(values: tuple[str, ...], section: str) -> Attribute:
    return Attribute("redirectList", "String", "how the stream is redirected", "SHOULD", values=values, is_list=True,
                     section=section)


def _named(description: str, type_compliance: Compliance, section: str) -> tuple[Attribute, Attribute]:
    return (
        Attribute("name", "String", description, "MUST", required=True, section=section),
        Attribute("type", "String", "what distinguishes it within its name", type_compliance, section=section),
    )


# --- properties ---------------------------------------------------------------------------------------------------

_GROUP = "4.1 Table 1"
_JOB = "5.1 Table 2"
_CRED = "5.1 Table 3"
_CONS = "5.1 Table 4"
_TG = "6.1 Table 6"
_TASK = "7.1 Table 7"

ELEMENTS: Final[tuple[Element, ...]] = (
    # Table 1: simple JobGroup properties
    Element("CreationTime", "DateTime", "when the group was instantiated", "JobGroup", _GROUP, confidence="medium"),
    Element("Description", "String", "description of the job group", "JobGroup", _GROUP, confidence="high",
            verbatim=True),
    Element("Id", "String", "identifier of the job group", "JobGroup", _GROUP, "MUST", "MUST", aliases=("JobGroupId",),
            former="JobGroupId", identifier=True, instance=True),
    Element("Name", "String", "name of the job group", "JobGroup", _GROUP, "MAY", "SHOULD", aliases=("JobGroupName",),
            former="JobGroupName", identifier=True),
    Element("State", "String", "state of the group as a whole", "JobGroup", _GROUP, "MAY", "SHOULD",
            aliases=("JobGroupState",), former="JobGroupState",
            values=("NotQueued", "Unstarted", "Active", "Completed"), instance=True),
    # Table 2: simple job properties
    Element("Application", "String", "kind of application, such as Gaussian", "Job", _JOB, aliases=("ApplicationName",),
            identifier=True),
    Element("Architecture", "String", "architecture of the nodes", "Job", _JOB, categories="RD", aliases=("Arch",),
            identifier=True),
    Element("Arguments", "String", "arguments of the executable, one string", "Job", _JOB, "MAY", "SHOULD",
            aliases=("Args",), verbatim=True, may_be_empty=True),
    Element("Charge", "Float", "amount charged; no units: site credits", "Job", _JOB, "MAY", "SHOULD",
            aliases=("Cost",), instance=True,
            attributes=(Attribute("units", "String", "currency, as in the published example", "-", section="1.3"),)),
    Element("Checkpointable", "Boolean", "whether the job can be checkpointed", "Job", _JOB,
            aliases=("IsCheckpointable",), confidence="medium"),
    Element("CpuDuration", "Duration", "CPU seconds used by the job", "Job", _JOB, "MAY", "SHOULD",
            aliases=("CPUDuration", "CpuTime"), confidence="high", instance=True),
    Element("DeadlineTime", "DateTime", "the job must end by then", "Job", _JOB, aliases=("Deadline",),
            confidence="medium"),
    Element("EligibleTime", "DateTime", "the job must start after then", "Job", _JOB, aliases=("eligibleDate",)),
    Element("EndTime", "DateTime", "when the job ended, successful or not", "Job", _JOB, "MAY", "MUST",
            aliases=("CompletionTime",), former="CompletionTime", instance=True),
    Element("Executable", "String", "script or binary: a path, a URI, or #id of a File beside the job", "Job", _JOB,
            "MAY", "MUST", aliases=("CmdFile",),
            attributes=(Attribute("parallel", "Boolean", "whether the executable starts its own tasks (release 3.0)",
                                  "-", former=True),)),
    Element("ExitCode", "Integer", "exit code of the job", "Job", _JOB, "MAY", "SHOULD", aliases=("ExitStatus",),
            confidence="high", instance=True),
    Element("GlobalJob", "String", "globally unique job identifier, maybe a URI", "Job", _JOB, "MAY", "SHOULD",
            aliases=("GlobalJobId", "GlobalId"), former="GlobalJobId", confidence="medium", identifier=True,
            instance=True),
    Element("Hold", "String", "a hold on the job, such as System or User", "Job", _JOB, "MAY", "SHOULD", repeats=True,
            values=("User", "System", "Operator", "Batch")),
    Element("InitialWorkingDirectory", "String", "working directory", "Job", _JOB, "MAY", "SHOULD", aliases=("IWD",)),
    Element("Interactive", "Boolean", "whether the job is interactive", "Job", _JOB, "MAY", "SHOULD",
            aliases=("IsInteractive",), confidence="high"),
    Element("Id", "String", "local identifier, given by the local resource manager", "Job", _JOB, "MUST", "MUST",
            aliases=("JobId", "LocalJobId", "jobId", "Instance"), former="JobId", identifier=True, instance=True),
    Element("Name", "String", "name of the job", "Job", _JOB, "MAY", "SHOULD", aliases=("JobName", "jobName"),
            former="JobName", identifier=True, instance=True),
    Element("State", "String", "state of the job", "Job", _JOB, "MAY", "MUST", aliases=("JobState", "jobState"),
            former="JobState", values=("Idle", "Hold", "Running", "Suspended", "Completed"), instance=True),
    Element("Type", "String", "kind of job, in the sense of its context", "Job", _JOB, aliases=("JobType",),
            former="JobType", confidence="high", identifier=True),
    Element("Machine", "String", "system or cluster that runs the job", "Job", _JOB, "MAY", "MUST", "RD",
            aliases=("MachineName", "Cluster", "Host"), former="MachineName", identifier=True),
    Element("NodeCount", "Integer", "number of nodes", "Job", _JOB, "MAY", "MUST", "RD",
            aliases=("Nodes", "requestedNodes"), amount=True, minimum=0),
    Element("OperatingSystem", "String", "operating system required", "Job", _JOB, categories="RD",
            aliases=("OpSys", "OS"), confidence="medium", identifier=True),
    Element("Partition", "String", "partition in which the job should run", "Job", _JOB, categories="RD",
            aliases=("PartitionName",), confidence="high", identifier=True),
    Element("Priority", "Integer", "current queue priority or rank", "Job", _JOB, "MAY", "SHOULD",
            aliases=("UserPrio",)),
    Element("QualityOfService", "String", "name of the quality of service", "Job", _JOB, "MAY", "SHOULD", "RD",
            aliases=("QOS", "QoS", "qos"), identifier=True),
    Element("Queue", "String", "queue or class the job runs in", "Job", _JOB, "MAY", "SHOULD", "RD",
            aliases=("QueueId", "Class", "JobClass", "requestedQueue"), identifier=True),
    Element("Quote", "String", "identifier of a guaranteed charge rate", "Job", _JOB, aliases=("QuoteId",),
            former="QuoteId", identifier=True),
    Element("Reservation", "String", "identifier of a reservation used", "Job", _JOB, categories="RD",
            aliases=("ReservationId", "RequiredReservation"), former="ReservationId", confidence="high",
            identifier=True),
    Element("ReservationTime", "DateTime", "when a reservation was placed", "Job", _JOB, confidence="high"),
    Element("ResourceManagerType", "String", "kind of resource manager required", "Job", _JOB, categories="RD",
            aliases=("RMType",), confidence="medium", identifier=True),
    Element("Restartable", "Boolean", "whether the job can be restarted", "Job", _JOB, aliases=("IsRestartable",)),
    Element("Shell", "String", "shell that interprets the script", "Job", _JOB, aliases=("ShellName",),
            confidence="high"),
    Element("StagedTime", "DateTime", "when the job was staged to the local system", "Job", _JOB),
    Element("StartCount", "Integer", "how often the scheduler tried to start the job", "Job", _JOB,
            confidence="medium", instance=True, minimum=0),
    Element("StartTime", "DateTime", "when the job started", "Job", _JOB, "MAY", "MUST", instance=True),
    Element("StatusMessage", "String", "why the job failed, is not running ...", "Job", _JOB, "MAY", "SHOULD",
            aliases=("Message",), verbatim=True, may_be_empty=True, instance=True),
    Element("SubmitTime", "DateTime", "when the job was submitted", "Job", _JOB, "MAY", "SHOULD",
            aliases=("SubmissionTime",), former="SubmissionTime"),
    Element("SubmitHost", "String", "full name of the host it was submitted from", "Job", _JOB, "MAY", "SHOULD",
            identifier=True),
    Element("Suspendable", "Boolean", "whether the job can be suspended", "Job", _JOB, aliases=("IsSuspendable",)),
    Element("SuspendDuration", "Duration", "seconds spent suspended (typed Integer in the text)", "Job", _JOB,
            categories="D", instance=True),
    Element("TimeCategory", "String", "shift such as PrimeTime, for charging", "Job", _JOB, confidence="medium",
            identifier=True),
    Element("Duration", "Duration", "seconds in the Running state; in Requested the wall-clock limit", "Job", _JOB,
            "SHOULD", "MUST", "RD",
            aliases=("WallDuration", "WallclockDuration", "wallclockLimit", "wallclockTimeUsed", "WallTime"),
            former="WallDuration"),
    # Table 3: credentials
    Element("Project", "String", "project or charge account", "Job", _CRED, "MAY", "SHOULD", "RD",
            aliases=("Account", "ProjectId", "AccountId", "accountName", "ProjectName"), former="ProjectId",
            identifier=True),
    Element("GlobalUser", "String", "globally unique user, such as an X.509 name", "Job", _CRED, "MAY", "SHOULD", "RD",
            aliases=("GlobalUserId",), former="GlobalUserId", identifier=True),
    Element("Group", "String", "local group", "Job", _CRED, categories="RD", aliases=("GroupId", "groupName"),
            former="GroupId", identifier=True),
    Element("User", "String", "local user", "Job", _CRED, "MAY", "MUST", "RD",
            aliases=("UserId", "userName", "Owner", "Actor"), former="UserId", identifier=True),
    # structured job properties
    Element("Feature", "String", "a named feature of a node", "Job", "5.1 Feature Element", "MAY", "SHOULD", "RD",
            repeats=True, once_in_text=True, attributes=(_AGGREGATION, _DELIMITER)),
    Element("Node", "String", "a node", "Job", "5.1 Node Element", "MAY", "SHOULD", "RD", repeats=True,
            once_in_text=True, aliases=("NodeList",), amount=True, attributes=_NODE),
    Element("OutputFile", "String", "file of the output stream; empty: chosen by the queuing system", "Job",
            "5.1 OutputFile Element", compliance="-", may_be_empty=True,
            attributes=(_redirect(_REDIRECT, "5.1 OutputFile Element"),)),
    Element("ErrorFile", "String", "file of the error stream; empty: chosen by the queuing system", "Job",
            "5.1 ErrorFile Element", compliance="-", may_be_empty=True,
            attributes=(_redirect(_REDIRECT, "5.1 ErrorFile Element"),)),
    Element("InputFile", "String", "file of the input stream", "Job", "5.1 InputFile Element", compliance="-",
            may_be_empty=True,
            attributes=(_redirect(("Close",), "5.1 InputFile Element"),)),
    Element("NotificationList", "String", "comma list of JobStart, JobEnd, All, None", "Job",
            "5.1 NotificationList Element", compliance="-", aliases=("Notification",),
            values=("JobStart", "JobEnd", "All", "None"),
            attributes=(Attribute("uri", "String", "where to: [scheme://]authority, by default a mail address",
                                  section="5.1 NotificationList Element"),)),
    Element("ResourceLimit", "String", "the value of a named limit", "Job", "5.1 ResourceLimit Element",
            compliance="-", repeats=True,
            attributes=(Attribute("name", "String", "which limit", "MUST", required=True, open_list=True,
                                  values=("CoreFileSize", "CPUTime", "DataSegSize", "FileSize", "MaxMemorySize",
                                          "MaxProcesses", "MaxSwap", "MaxMemLock", "MaxProcessors", "MaxMemory",
                                          "MaxDisk", "MaxNetwork", "MaxFileIO", "OpenFiles", "StackSize"),
                                  section="5.1 ResourceLimit Element"),
                        Attribute("type", "String", "which of the two limits; absent: both", values=("Hard", "Soft"),
                                  section="5.1 ResourceLimit Element"))),
    Element("TaskDistribution", "String", "how tasks are mapped to nodes", "Job", "5.1 TaskDistribution Element",
            "MAY", "SHOULD", aliases=("TPN",),
            attributes=(Attribute("type", "String", "kind of mapping",
                                  values=("Rule", "TasksPerNode", "ProcessorsPerTask", "Geometry"),
                                  section="5.1 TaskDistribution Element"),)),
    Element("Dependency", "String", "the job that this one depends on", "Job", "5.1 Dependency Element", "MAY",
            "SHOULD", repeats=True,
            attributes=(Attribute("condition", "String", "when this job may run", "MUST",
                                  values=("OnSuccess", "OnFailure", "OnExit"), default="OnSuccess",
                                  section="5.1 Dependency Element"),
                        Attribute("code", "Integer", "exit code that triggers, with OnExit", "-",
                                  section="5.1 Dependency Element"),
                        Attribute("designator", "String", "the property that names the other job",
                                  values=("JobId", "JobName"), default="JobId",
                                  aliases=(("Id", "JobId"), ("Name", "JobName")), section="5.1 Dependency Element"))),
    # Table 4: consumable resources
    Element("Disk", "Float", "amount of disk", "Job", _CONS, "MAY", "SHOULD", "RD", attributes=CONSUMABLE, unit="MB",
            amount=True, minimum=0),
    Element("Memory", "Float", "amount of memory", "Job", _CONS, "MAY", "SHOULD", "RD",
            attributes=CONSUMABLE, unit="MB", amount=True, minimum=0),
    Element("Network", "Float", "amount of network; a name where the content is none: the adapter type of Table 2",
            "Job", _CONS, "MAY", "MAY", "RD", attributes=CONSUMABLE, confidence="high", amount=True, minimum=0,
            aliases=("NetworkAdapter", "NetworkType")),
    Element("Processors", "Integer", "number of processors", "Job", _CONS, "MAY", "MUST", "RD",
            aliases=("Procs", "numProcessors", "requestedProcessors"), attributes=CONSUMABLE, amount=True, minimum=0),
    Element("Swap", "Float", "amount of virtual memory", "Job", _CONS, "MAY", "MAY", "RD",
            aliases=("VirtualMemory",), attributes=CONSUMABLE, unit="MB", confidence="high", amount=True, minimum=0),
    Element("Resource", "Float", "a consumable resource that has no name of its own", "Job", "5.1 Resource Element",
            "MAY", "SHOULD", "RD", repeats=True, amount=True, minimum=0,
            attributes=(*_named("kind of resource", "SHOULD", "5.1 Resource Element"), *CONSUMABLE)),
    Element("Extension", "String", "a property that this vocabulary has no name for", "Job",
            "5.1 Extension Element", repeats=True, verbatim=True, may_be_empty=True, categories="RD",
            attributes=_named("name of the property", "SHOULD", "5.1 Extension Element")),
    # Environment
    Element("Variable", "String", "value of an environment variable, verbatim", "Environment",
            "5.1 Variable Element", compliance="-", repeats=True, verbatim=True, may_be_empty=True,
            attributes=(Attribute("name", "String", "name of the variable", "MUST", required=True,
                                  section="5.1 Variable Element"),)),
    # Table 6: simple TaskGroup properties
    Element("TaskCount", "Integer", "number of tasks in the task group", "TaskGroup", _TG, "MAY", "MUST", amount=True,
            minimum=0),
    Element("Id", "String", "task group identifier, unique within the job", "TaskGroup", _TG,
            aliases=("TaskGroupId",), former="TaskGroupId", confidence="high", identifier=True, instance=True),
    Element("Name", "String", "task group name, such as Master", "TaskGroup", _TG, "MAY", "SHOULD",
            aliases=("TaskGroupName",), former="TaskGroupName", identifier=True, instance=True),
    # Table 7: simple Task properties
    Element("Node", "String", "the node this task ran on", "Task", _TASK, "MAY", "MUST",
            aliases=("NodeName", "NodeId"), former="NodeName", amount=True, instance=True, attributes=_NODE),
    Element("Session", "Integer", "session id of the task group or job", "Task", _TASK, aliases=("SessionId",),
            former="SessionId", confidence="medium", instance=True),
    Element("Id", "String", "task identifier, unique within the task group", "Task", _TASK, aliases=("TaskId",),
            former="TaskId", confidence="high", identifier=True, instance=True),
    Element("Process", "Integer", "process id (used in the elaborate example, no row in Table 7)", "Task", "1.3",
            compliance="-", aliases=("ProcessId", "Pid"), instance=True),
)

# --- containers ---------------------------------------------------------------------------------------------------

_CATEGORIES: Final = (("Requested", 0, None), ("Delivered", 0, None), ("Environment", 0, 1))

CONTAINERS: Final[dict[str, ContainerRow]] = {
    row.name: row
    for row in (
        ContainerRow("JobGroup", "jobs that depend on one another", "4.0", "MAY", ("JobGroup",),
                  (("Job", 1, None), ("JobDefaults", 0, 1)), reference=True),
        ContainerRow("Job", "one schedulable job", "5.0", "MUST", ("Job",),
                  (("TaskGroup", 0, None), ("TaskGroupDefaults", 0, 1), *_CATEGORIES), aliases=("job",),
                  reference=True),
        ContainerRow("JobDefaults", "properties that every job of the group has unless it states its own", "5.0", "MAY",
                  ("Job",), (("TaskGroup", 0, None), ("TaskGroupDefaults", 0, 1), *_CATEGORIES),
                  aliases=("JobsDefaults",)),
        ContainerRow("TaskGroup", "tasks and what they have in common", "6.0", "MAY", ("TaskGroup", "Job"),
                  (("Task", 0, None), ("TaskDefaults", 0, 1), *_CATEGORIES), reference=True),
        ContainerRow("TaskGroupDefaults", "properties of every task group of the job unless it states its own", "6.0",
                  "MAY", ("TaskGroup", "Job"), (("Task", 0, None), ("TaskDefaults", 0, 1), *_CATEGORIES)),
        ContainerRow("Task", "one execution endpoint", "7.0", "MAY", ("Task", "Job"), _CATEGORIES, reference=True),
        ContainerRow("TaskDefaults", "properties of every task of the group unless it states its own", "7.0", "MAY",
                  ("Task", "Job"), _CATEGORIES),
        ContainerRow("Requested", "properties as they were requested", "8.1", "SHOULD", ("Job",), category="R"),
        ContainerRow("Delivered", "properties as they were used", "8.2", "SHOULD", ("Job",), category="D"),
        ContainerRow("Environment", "environment variables", "5.1 Environment Element", "SHOULD", ("Environment",),
                  attributes=(Attribute("export", "Boolean", "whether the submitter's variables go along",
                                        default="false", section="5.1 Environment Element"),)),
    )
}

#: The scopes in which most properties of a job may stand (section 5.1, table 2): at each level they mean the same.
SCOPES: Final = ("Job", "TaskGroup", "Task")
#: Other spellings that the examples of 3.1.0 itself print inside Requested and Delivered (sections 8.1 and 8.2).
PRINTED: Final = {"Account": "Project"}

#: Wrappers of Maui's 3.0 form that have no meaning of their own: their children stand in the parent's scope.
TRANSPARENT: Final = ("NodeProperties",)

#: Names without an equivalent: kept as Extension, with the origin as type.
HOMELESS: Final[dict[str, str]] = {
    **dict.fromkeys(("Calendar", "CPULimit", "JobFlags", "OpaqueFlags", "RsvAccess", "StepId", "UMask", "NodeMemory",
                     "NodeProc", "NodeSwap", "NodeDisk", "NodeType"), "Maui"),
    **dict.fromkeys(("SubmitLanguage", "SubmitString", "RMFlags"), "Moab"),
    **dict.fromkeys(("Stage", "CallType"), "Gold"),
}

ATTRIBUTES: Final[dict[str, Attribute]] = {
    a.name: a
    for a in (AWARENESS, *REQUESTED, *CONSUMABLE, *(a for e in ELEMENTS for a in e.attributes),
              *(a for c in CONTAINERS.values() for a in c.attributes))
}


# --- questions ----------------------------------------------------------------------------------------------------

@cache
def attributes_in(container: str, former: bool) -> dict[str, dict[str, Attribute]]:
    """Canonical name of a property -> the attributes that it may have in a container, by name. former: those too that
    only older texts have."""
    extra = {"Requested": REQUESTED, "Delivered": DELIVERED}.get(container, ())
    return {name: {a.name: a for a in (*row.attributes, *extra, AWARENESS) if former or not a.former}
            for name, row in in_scope(container).items()}


@cache
def in_scope(container: str) -> dict[str, Element]:
    """Canonical name -> row of every property that may stand in a container; the nearest table wins."""
    row = CONTAINERS[container]
    elements: dict[str, Element] = {}
    for table in row.tables:
        for e in ELEMENTS:
            if e.table == table and (not row.category or row.category in e.categories):
                elements.setdefault(e.name, e)
    return elements


@cache
def aliases(container: str) -> dict[str, str]:
    """Other spelling -> canonical name, of properties and of child containers, for one container."""
    names: dict[str, str] = {}
    for e in in_scope(container).values():
        for alias in e.aliases:
            names.setdefault(alias, e.name)
    for child, _, _ in CONTAINERS[container].children:
        for alias in CONTAINERS[child].aliases:
            names[alias] = child
    return names


def element(container: str, name: str) -> Element:
    """The row of a property in a container; LookupError where it may not stand."""
    return in_scope(container)[name]


def containers_of(e: Element) -> Iterator[str]:
    """Names of the containers in which a property may stand."""
    return (name for name in CONTAINERS if in_scope(name).get(e.name) is e)


def python_name(name: str) -> str:
    """``QualityOfService`` -> ``quality_of_service``; keywords do not occur."""
    out = []
    for i, c in enumerate(name):
        if c.isupper() and i and not name[i - 1].isupper():
            out.append("_")
        out.append(c.lower())
    return "".join(out)
