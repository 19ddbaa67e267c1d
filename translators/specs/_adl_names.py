"""The names of ADL and what each of them is in a job: one table for both ways.

Sources: EMI Execution Service specification 1.16 (GFD.210), section on the Activity Description Language; the
description of attributes of the ARC SDK.
"""

from __future__ import annotations

from typing import Any, Final

from sssjob.translators.specs._elements import description

ADL: Final = "http://www.eu-emi.eu/es/2010/12/adl"
ARC: Final = "http://www.nordugrid.org/es/2011/12/nordugrid-adl"

#: The parts of a description, in the order of the schema.
PARTS: Final = ("ActivityIdentification", "Application", "Resources", "DataStaging")
#: Elements of a part -> place, of those that are the text of a property.
PLACES: Final = {
    "ActivityIdentification": {"Name": "Name", "Description": "Extension[name=Comment,type=Scheduler]"},
    "Resources": {"QueueName": "Requested/Queue", "Platform": "Requested/Architecture"}}
#: Elements of a part that only ADL has, in the order of the schema, each with its namespace.
KEPT: Final = {
    "ActivityIdentification": {"Type": ADL, "Annotation": ADL, "ActivityOldID": ARC},
    "Application": {"PreExecutable": ADL, "PostExecutable": ADL, "LoggingDirectory": ARC, "RemoteLogging": ADL,
                    "ExpirationTime": ADL, "WipeTime": ADL, "Notification": ADL, "AccessControl": ARC,
                    "CredentialService": ARC, "DryRun": ARC, "Rerun": ARC, "Priority": ARC},
    "Resources": {"OperatingSystem": ADL, "RuntimeEnvironment": ADL, "ParallelEnvironment": ADL, "Coprocessor": ADL,
                  "NetworkInfo": ADL, "NodeAccess": ADL, "RemoteSessionAccess": ADL, "Benchmark": ADL,
                  "IndividualCPUTime": ADL},
    "DataStaging": {"ClientDataPush": ADL, "DelegationID": ARC, "InputFile": ADL, "OutputFile": ADL}}
STREAMS: Final = {"Input": "InputFile", "Output": "OutputFile", "Error": "ErrorFile"}
#: Sizes in bytes -> (property, metric); those of a slot and those of the activity.
SIZES: Final = {"IndividualPhysicalMemory": ("Memory", "PerSlot"), "IndividualVirtualMemory": ("Swap", "PerSlot"),
                "DiskSpaceRequirement": ("Disk", "")}
#: Times in seconds -> place.
TIMES: Final = {"TotalCPUTime": "ResourceLimit[name=CPUTime]", "WallTime": "Requested/Duration"}
#: What a Platform may be; names of others for one of them.
PLATFORMS: Final = {"amd64": "amd64", "x86_64": "amd64", "i386": "i386", "itanium": "itanium", "ia64": "itanium",
                    "powerpc": "powerpc", "sparc": "sparc"}
#: Event of ours -> state of an activity.
STATES: Final = {"begin": "PROCESSING", "end": "TERMINAL"}
ORDER: Final = {
    "ActivityIdentification": ("Name", "Description", "Type", "Annotation", "ActivityOldID"),
    "Application": ("Executable", "Input", "Output", "Error", "Environment", "PreExecutable", "PostExecutable",
                    "LoggingDirectory", "RemoteLogging", "ExpirationTime", "WipeTime", "Notification", "StartTime",
                    "AccessControl", "CredentialService", "DryRun", "Rerun", "Priority"),
    "Resources": ("OperatingSystem", "Platform", "RuntimeEnvironment", "ParallelEnvironment", "Coprocessor",
                  "NetworkInfo", "NodeAccess", "IndividualPhysicalMemory", "IndividualVirtualMemory",
                  "DiskSpaceRequirement", "RemoteSessionAccess", "Benchmark", "SlotRequirement", "QueueName",
                  "IndividualCPUTime", "TotalCPUTime", "WallTime"),
    "DataStaging": ("ClientDataPush", "DelegationID", "InputFile", "OutputFile")}

#: A job runs in a directory of its own, finds no variables of the submitter's, and keeps no output that is not named.
JOBS: Final[dict[str, Any]] = {"starts_in": "scratch", "exports": False, "merges": False,
                               "unfiled": "a file that is not kept"}
FORMAT: Final = description("adl", "ADL", **JOBS)
