"""The names of JSDL 1.0 and what each of them is in a job: one table for both ways (GFD.136, GFD.111, GFD.115)."""

from __future__ import annotations

from typing import Final

from sssjob.translators.specs._elements import description

JSDL: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl"
POSIX: Final = "http://schemas.ggf.org/jsdl/2005/11/jsdl-posix"
HPCPA: Final = "http://schemas.ggf.org/jsdl/2006/07/jsdl-hpcpa"
SPMD: Final = "http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd"
APPLICATIONS: Final = {f"{{{POSIX}}}POSIXApplication": POSIX, f"{{{HPCPA}}}HPCProfileApplication": HPCPA,
                        f"{{{SPMD}}}SPMDApplication": SPMD}

#: Element of an application -> property.
TEXTS: Final = {"Executable": "Executable", "Input": "InputFile", "Output": "OutputFile", "Error": "ErrorFile",
                 "WorkingDirectory": "InitialWorkingDirectory", "UserName": "User", "GroupName": "Group"}
FILES: Final = ("Input", "Output", "Error")
#: Limit of a POSIX application -> name of a ResourceLimit, and whether both count bytes.
LIMITS: Final = {
    "CPUTimeLimit": "CPUTime", "FileSizeLimit": "FileSize", "CoreDumpLimit": "CoreFileSize",
    "DataSegmentLimit": "DataSegSize", "LockedMemoryLimit": "MaxMemLock", "MemoryLimit": "MaxMemorySize",
    "OpenDescriptorsLimit": "OpenFiles", "PipeSizeLimit": "PipeSize", "StackSizeLimit": "StackSize",
    "ProcessCountLimit": "MaxProcesses", "VirtualMemoryLimit": "MaxSwap", "ThreadCountLimit": "MaxThreads"}
#: Number among the resources -> (property, metric, whether it is in bytes), in the order of the schema.
NUMBERS: Final = {
    "IndividualCPUCount": ("Processors", "PerNode", False),
    "IndividualNetworkBandwidth": ("Network", "PerNode", False),
    "IndividualPhysicalMemory": ("Memory", "PerNode", True), "IndividualVirtualMemory": ("Swap", "PerNode", True),
    "IndividualDiskSpace": ("Disk", "PerNode", True), "TotalCPUCount": ("Processors", "", False),
    "TotalPhysicalMemory": ("Memory", "", True), "TotalVirtualMemory": ("Swap", "", True),
    "TotalDiskSpace": ("Disk", "", True), "TotalResourceCount": ("NodeCount", "", False)}
#: Elements without a property, kept as they are.
KEPT: Final = ("FileSystem", "IndividualCPUSpeed", "IndividualCPUTime", "TotalCPUTime", "OperatingSystemVersion")
OPS: Final = {"LowerBoundedRange": ("GE", "GT"), "UpperBoundedRange": ("LE", "LT"), "LowerBound": ("GE", "GT"),
               "UpperBound": ("LE", "LT")}
ORDER: Final = ("CandidateHosts", "FileSystem", "ExclusiveExecution", "OperatingSystem", "CPUArchitecture",
                 "IndividualCPUSpeed", "IndividualCPUTime", "IndividualCPUCount", "IndividualNetworkBandwidth",
                 "IndividualPhysicalMemory", "IndividualVirtualMemory", "IndividualDiskSpace", "TotalCPUTime",
                 "TotalCPUCount", "TotalPhysicalMemory", "TotalVirtualMemory", "TotalDiskSpace", "TotalResourceCount")

FORMAT: Final = description("jsdl", "JSDL")
