"""What a script or a spec asks for, by the manuals of its resource manager alone: nothing of the product is used here.

Each reader takes a text and answers with ``Native``. Sources: sbatch(1), qsub(1B) and pbs_resources(7B) of OpenPBS,
qsub(1B) of Torque 6.1, bsub(1) and the LSF reference of resource requirements, qsub(1) of Grid Engine, cqsub(1),
condor_submit(1), flux-batch(1), RFC 14 and 25 of Flux, the JobSpec of PSI/J, GFD.56 and GFD.115 (JSDL), GFD.210
(ADL).
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from lxml import etree

__all__ = ["READERS", "Native"]


@dataclass(frozen=True)
class Native:
    """What is asked for in all; None: the text says nothing of it.

    processors: one where nothing says more; memory, disk: bytes; spread: nodes were multiplied with that are only the
    fewest there can be; named: other resources, by name.
    """

    processors: int = 1
    nodes: int | None = None
    copies: int = 1
    memory: Fraction | None = None
    gpus: Fraction | None = None
    disk: Fraction | None = None
    seconds: int | None = None
    spread: bool = False
    named: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Native) -> Native:
        def both(one: Any, two: Any) -> Any:
            return one if two is None else two if one is None else one + two

        return replace(self, processors=self.processors + other.processors,
                       nodes=None if self.nodes is None or other.nodes is None else self.nodes + other.nodes,
                       memory=both(self.memory, other.memory), gpus=both(self.gpus, other.gpus),
                       disk=both(self.disk, other.disk),
                       seconds=max(filter(None, (self.seconds, other.seconds)), default=None),
                       spread=self.spread or other.spread,
                       named=self.named | {n: self.named.get(n, 0) + count for n, count in other.named.items()})


_POWERS = "KMGTPE"


def bytes_of(text: str, unit: int = 1) -> Fraction:
    """``4G``, ``4gb``, ``512``; unit: of a number alone."""
    hit = re.fullmatch(r"(\d+)([KMGTPE]?)B?", text.upper())
    assert hit is not None, text
    return Fraction(int(hit[1]) * (1024 ** (_POWERS.index(hit[2]) + 1) if hit[2] else
                                   1 if text.upper().endswith("B") else unit))


def seconds_of(text: str) -> int:
    """``1-02:03:04``, ``02:03:04``."""
    days, _, clock = text.rpartition("-")
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return total + int(days or 0) * 86400


def directives(text: str, prefix: str) -> list[list[str]]:
    """The words of each line of directives."""
    return [shlex.split(line[len(prefix):]) for line in text.splitlines() if line.startswith(prefix + " ")]


def started(text: str, components: list[int] | None = None) -> int:
    """Copies that the last line starts."""
    line = next((line for line in reversed(text.splitlines()) if line and not line.startswith("#")), "")
    counts = re.findall(r"(?:^(?:srun|mpirun|mpiexec|flux run)| :) -n (\d+) ", line)
    if counts:
        return sum(map(int, counts))
    if line.startswith("srun --het-group=0 "):
        return sum(1 if " --ntasks=1 " in part else count
                   for part, count in zip(line.split(" : "), components or [], strict=True))
    if line.startswith("srun --het-group="):
        return sum(components or [])
    return 1


def long_options(words: list[list[str]]) -> dict[str, str]:
    """``--name=value``."""
    return {name: value for line in words for word in line for name, _, value in [word.partition("=")]}


# -- Slurm
def slurm(text: str) -> Native:
    """sbatch(1): one task on each node unless told, one processor for each task; --mem is that of a node."""
    components: list[list[list[str]]] = [[]]
    for words in directives(text, "#SBATCH"):
        if words == ["hetjob"]:
            components.append([])
        else:
            components[-1].append(words)
    parts = [_slurm_part(long_options(words)) for words in components]
    whole = parts[0][0]
    for part, _ in parts[1:]:
        whole += part
    return replace(whole, copies=started(text, [tasks for _, tasks in parts]))


def _slurm_part(said: dict[str, str]) -> tuple[Native, int]:
    nodes = int(said["--nodes"].partition("-")[0]) if "--nodes" in said else None
    each = int(said["--ntasks-per-node"]) if "--ntasks-per-node" in said else None
    tasks = int(said["--ntasks"]) if "--ntasks" in said else (nodes or 1) * (each or 1)
    if nodes is None and each is not None:
        nodes = -(-tasks // each)
    if nodes is not None and tasks < nodes:
        nodes = tasks       # "Can't run 2 processes on 3 nodes, setting nnodes to 2"
    processors = tasks * int(said.get("--cpus-per-task", 1))
    named: dict[str, int] = {}
    gpus = None
    for name, factor in (("--gpus", 1), ("--gpus-per-node", nodes or 1), ("--gpus-per-task", tasks)):
        if name in said:
            gpus = Fraction(sum(int(kind.rpartition(":")[2]) for kind in said[name].split(",")) * factor)
    processors = max(processors, int(said.get("--cpus-per-gpu", 0)) * int(gpus or 0))
    memory = None
    for name, by in (("--mem", nodes or 1), ("--mem-per-cpu", processors), ("--mem-per-gpu", gpus or 0)):
        if name in said:
            memory = bytes_of(said[name], 1 << 20) * by
    for one in filter(None, said.get("--licenses", "").split(",")):
        named[one.partition(":")[0]] = int(one.partition(":")[2] or 1)
    for one in filter(None, said.get("--gres", "").split(",")):
        named[one.partition(":")[0]] = int(one.partition(":")[2] or 1) * (nodes or 1)
    disk = bytes_of(said["--tmp"], 1 << 20) * (nodes or 1) if "--tmp" in said else None
    return Native(processors, nodes, 1, memory, gpus, disk, seconds_of(said["--time"]) if "--time" in said else None,
                  nodes is None and ("--mem" in said or "--gpus-per-node" in said), named), tasks


# -- the PBS family
def _pbs(text: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for words in directives(text, "#PBS"):
        if words[0] == "-l":
            for part in re.split(r",(?=\w+=)", words[1]):
                name, _, value = part.partition("=")
                said[name] = value
    return said


def pbspro(text: str) -> Native:
    """pbs_resources(7B): chunks of one processor unless told; each on a host of its own with place=scatter, or where
    each names another one."""
    said = _pbs(text)
    whole = Native(0, 0)
    ranks = 0
    chunks = said.get("select", "1:ncpus=" + said.get("ncpus", "1")).split("+")
    for chunk in chunks:
        words = chunk.split(":")
        count = int(words.pop(0)) if words[0].isdigit() else 1
        has = dict(word.split("=", 1) for word in words)
        ranks += count * int(has.get("mpiprocs", 1))
        whole += Native(count * int(has.get("ncpus", 1)), count, 1,
                        count * bytes_of(has["mem"]) if "mem" in has else None,
                        Fraction(count * int(has["ngpus"])) if "ngpus" in has else None)
    place = said.get("place", "").split(":")
    hosts = {host for chunk in chunks for host in re.findall(r"^1:(?:.*:)?host=([^:]+)", chunk)}
    memory = max((known for known in (bytes_of(said["mem"]) if "mem" in said else None, whole.memory,
                                      (ranks if "select" in said else whole.processors) * bytes_of(said["pmem"])
                                      if "pmem" in said else None)
                  if known is not None), default=None)
    return replace(whole, memory=memory, nodes=whole.nodes if "scatter" in place or whole.nodes in (1, len(hosts)) else
                   1 if "pack" in place else None, copies=started(text),
                   disk=bytes_of(said["file"]) if "file" in said else None,
                   seconds=seconds_of(said["walltime"]) if "walltime" in said else None)


def torque(text: str) -> Native:
    """qsub(1B) of Torque: ppn slots of a node, one unless told; mem is that of the job, pmem that of a process."""
    said = _pbs(text)
    whole = Native(int(said.get("procs", said.get("ncpus", 1))))
    if "nodes" in said:
        whole = Native(0, 0)
        for one in said["nodes"].split("+"):
            words = one.split(":")
            count = int(words[0]) if words[0].isdigit() else 1
            has = dict(word.split("=", 1) for word in words[1:] if "=" in word)
            whole += Native(count * int(has.get("ppn", 1)), count,
                            gpus=Fraction(count * int(has["gpus"])) if "gpus" in has else None)
    memory = max((known for known in (bytes_of(said["mem"]) if "mem" in said else None,
                                      whole.processors * bytes_of(said["pmem"]) if "pmem" in said else None)
                  if known is not None), default=None)
    return replace(whole, memory=memory, copies=started(text),
                   disk=bytes_of(said["file"]) if "file" in said else None,
                   seconds=seconds_of(said["walltime"]) if "walltime" in said else None)


# -- LSF
def lsf(text: str) -> Native:
    """bsub(1): slots, with cores by affinity; rusage and -gpu are those of a host unless they say otherwise."""
    said: dict[str, str] = {}
    requirements = []
    for name, value in directives(text, "#BSUB"):
        if name == "-R":
            requirements.append(value)
        else:
            said[name] = value
    compound = re.findall(r"(\d+)\*\{([^}]*)\}", " ".join(requirements))
    parts = compound or [(said.get("-n", said.get("-nnodes", "1")).partition(",")[0], " ".join(requirements))]
    whole, *more = [_lsf_part(int(count), text, said, alone=not compound) for count, text in parts]
    for part in more:
        whole += part
    return replace(whole, copies=started(text), seconds=60 * seconds_of(said["-W"]) if "-W" in said else None)


def _lsf_part(slots: int, text: str, said: dict[str, str], *, alone: bool) -> Native:
    sections = dict[str, str]()
    for name, inside in re.findall(r"(\w+)\[([^\]]*)\]", text):
        sections[name] = ",".join(filter(None, (sections.get(name, ""), inside)))
    cores = re.match(r"core\((\d+)\)", sections.get("affinity", ""))
    span = sections.get("span", "")
    hosts = 1 if span == "hosts=1" or (slots == 1 and alone) else None      # others may be on the same one
    if span.startswith("ptile="):
        hosts = -(-slots // int(span[6:]))
    if "-nnodes" in said:
        hosts = int(said["-nnodes"])
    factors = {"": hosts or 1, "host": hosts or 1, "task": slots, "job": 1}
    amounts, spread, named = dict[str, Fraction](), False, dict[str, int]()
    for one in filter(None, sections.get("rusage", "").split(",")):
        name, _, value = one.partition("=")
        number, _, per = value.partition("/")
        if name in ("mem", "tmp"):
            amounts[name] = bytes_of(number) * factors[per]
            spread = spread or (hosts is None and per in ("", "host"))
        else:
            named[name] = int(number) * (factors[per] if per else 1)
    if "-M" in said:
        amounts.setdefault("mem", bytes_of(said["-M"]) * slots)
    gpus = None
    if alone and "-gpu" in said:
        number, _, per = said["-gpu"].split(":")[0].removeprefix("num=").partition("/")
        gpus = Fraction(int(number) * factors[per])
        spread = spread or (hosts is None and per in ("", "host"))
    return Native(slots * int(cores[1] if cores else 1), hosts, 1, amounts.get("mem"), gpus, amounts.get("tmp"), None,
                  spread, named)


# -- Grid Engine, Cobalt
def sge(text: str) -> Native:
    """qsub(1): slots are processors; h_vmem is that of a slot. What gpu and licences are counted by the site knows, and
    a finding at them says so."""
    slots, said = 1, dict[str, str]()
    for words in directives(text, "#$"):
        if words[0] == "-pe":
            slots = int(re.match(r"\d+", words[2])[0])      # type: ignore[index]
        elif words[0] == "-l":
            said |= dict(one.partition("=")[::2] for one in words[1].split(","))
    named = {name: int(value) for name, value in said.items() if value.isdigit() and name != "gpu"}
    return Native(slots, 1 if slots == 1 else None, started(text),
                  bytes_of(said["h_vmem"]) * slots if "h_vmem" in said else None,
                  Fraction(int(said["gpu"])) if "gpu" in said else None, None,
                  seconds_of(said["h_rt"]) if "h_rt" in said else None, False, named)


def cobalt(text: str) -> Native:
    """cqsub(1): whole nodes; proccount is the number of processes."""
    said = dict[str, str]()
    for words in directives(text, "#COBALT"):
        said |= dict([words[0].partition("=")[::2]] if "=" in words[0] else [(words[0], words[1])])
    nodes = int(said.get("-n", said.get("--nodecount", 0))) or None
    mode = said.get("--mode", "")
    processes = int(said["--proccount"]) if "--proccount" in said else (nodes or 1) * (
        int(mode[1:]) if re.fullmatch(r"c\d+", mode) else 1)
    return Native(processes, nodes, started(text), seconds=seconds_of(said["-t"]) if "-t" in said else None)


# -- HTCondor
def htcondor(text: str) -> Native:
    """condor_submit(1): amounts of one machine, for each process; queue says how many jobs."""
    said = {name.strip(): value.strip() for name, sign, value in
            (line.partition("=") for line in text.splitlines() if not line.startswith("#")) if sign}
    machines = int(said.get("machine_count", 1))
    named = {name: int(count or 1) for one in filter(None, said.get("concurrency_limits", "").split(","))
             for name, _, count in [one.partition(":")]}

    if "request_fpga" in said:
        named["fpga"] = int(said["request_fpga"]) * machines

    def amount(name: str, unit: int) -> Fraction | None:
        return bytes_of(said[name], unit) * machines if name in said else None

    return Native(machines * int(said.get("request_cpus", 1)), machines, machines,
                  amount("request_memory", 1 << 20),
                  Fraction(int(said["request_gpus"]) * machines) if "request_gpus" in said else None,
                  amount("request_disk", 1 << 10),
                  int(said["allowed_execute_duration"]) if "allowed_execute_duration" in said else None, False, named)


# -- Flux
def _flux_spread(nodes: int | None, slots: int) -> int:
    """Slots in all: as many on each node."""
    return slots if nodes is None else nodes * -(-slots // nodes)


def flux(text: str) -> Native:
    """flux-batch(1): slots, as many on each node; without slots one on each node."""
    options = long_options(directives(text, "#FLUX:"))
    nodes = int(options["--nodes"]) if "--nodes" in options else None
    slots = _flux_spread(nodes, int(options.get("--nslots", nodes or 1)))
    return Native(slots * int(options.get("--cores-per-slot", 1)), nodes, started(text), None,
                  Fraction(slots * int(options["--gpus-per-slot"])) if "--gpus-per-slot" in options else None, None,
                  int(options["--time-limit"].rstrip("s")) if "--time-limit" in options else None)


def jobspec(text: str) -> Native:
    """RFC 14: the product of the counts above each resource; RFC 25: version 1."""
    spec = json.loads(text)
    counts: dict[str, int] = {}

    def walk(vertices: list[Any], factor: int) -> None:
        for vertex in vertices:
            counts[vertex["type"]] = counts.get(vertex["type"], 0) + factor * vertex["count"]
            walk(vertex.get("with", []), factor * vertex["count"])

    walk(spec["resources"], 1)
    task, system = spec["tasks"][0], spec["attributes"]["system"]
    if task["command"][:2] == ["flux", "broker"]:
        copies = started(system["files"]["script"]["data"])
    else:
        copies = task["count"].get("total", task["count"].get("per_slot", 0) * counts["slot"])
    return Native(counts.get("core", 0), counts.get("node"), copies, None,
                  Fraction(counts["gpu"]) if "gpu" in counts else None, None, int(system["duration"]) or None)


# -- PSI/J, JSDL, ADL, xRSL
def psij(text: str) -> Native:
    """The JobSpec of PSI/J, alone or the only one of an array: processes of one size; memory of the whole job."""
    spec = json.loads(text)
    if isinstance(spec, list):
        spec, = spec
    said = spec.get("resources", {})
    nodes = said.get("node_count")
    if nodes is None and "process_count" in said and "processes_per_node" in said:
        nodes = -(-said["process_count"] // said["processes_per_node"])
    processes = said.get("process_count", (nodes or 1) * said.get("processes_per_node", 1))
    duration = spec.get("attributes", {}).get("duration")
    return Native(processes * said.get("cpu_cores_per_process", 1), nodes,
                  processes if spec.get("launcher", "single") != "single" else 1,
                  Fraction(said["memory"]) if "memory" in said else None,
                  Fraction(processes * said["gpu_cores_per_process"]) if "gpu_cores_per_process" in said else None,
                  None, int(duration.split()[0]) if duration else None)


def jsdl(text: str) -> Native:
    """GFD.56: TotalResourceCount machines; Individual amounts are those of one; GFD.115: processes with threads."""
    root = etree.fromstring(text.encode())

    def number(name: str) -> Fraction | None:
        element = root.find(f".//{{*}}{name}")
        if element is None or [child.tag for child in element] == [f"{{{root.nsmap[None]}}}UpperBoundedRange"]:
            return None         # at most so many
        inner = "".join(map(str, element.itertext())).split()
        return Fraction(inner[0])

    machines = number("TotalResourceCount")
    processes, threads = number("NumberOfProcesses"), number("ThreadsPerProcess")
    total, each = number("TotalCPUCount"), number("IndividualCPUCount")

    def amount(name: str) -> Fraction | None:
        whole, one = number(f"Total{name}"), number(f"Individual{name}")
        known = [value for value in (whole, None if one is None else one * (machines or 1)) if value is not None]
        return max(known, default=None)

    of_tasks = (processes or 1) * (threads or 1)
    if (a_host := number("ProcessesPerHost")) is not None and processes is not None and (
            machines is None or root.find(".//{*}TotalResourceCount/{*}Range") is not None):
        machines = max(machines or Fraction(0), Fraction(-(-int(processes) // int(a_host))))
    processors = max(total or 0, (each or 0) * (machines or 1), of_tasks, machines or 1)
    limit = number("WallTimeLimit")
    return Native(int(processors), None if machines is None else int(machines), int(processes or 1),
                  amount("PhysicalMemory"), None, amount("DiskSpace"), None if limit is None else int(limit),
                  machines is None and number("IndividualPhysicalMemory") is not None)


def adl(text: str) -> Native:
    """GFD.210: slots, on as many hosts as they fill; memory of each slot, disk of all; the activity is started once."""
    root = etree.fromstring(text.encode())

    def number(name: str) -> int | None:
        element = root.find(f".//{{*}}{name}")
        return None if element is None else int(element.text or "")

    slots, a_host, memory = number("NumberOfSlots"), number("SlotsPerHost"), number("IndividualPhysicalMemory")
    disk = number("DiskSpaceRequirement")
    return Native(slots or 1, None if a_host is None or slots is None else -(-slots // a_host), 1,
                  None if memory is None else Fraction(memory * (slots or 1)), None,
                  None if disk is None else Fraction(disk), number("WallTime"))


def xrsl(text: str) -> Native:
    """The manual of xRSL: memory in MB for each of ``count``, disk in MB; times here with their unit, seconds."""
    numbers = {name: int(value) for name, value in re.findall(r'^\((\w+) = "(\d+)(?: seconds)?"\)$', text, re.M)}
    slots, a_host = numbers.get("count"), numbers.get("countpernode")
    memory, disk = numbers.get("memory"), numbers.get("disk")
    return Native(slots or 1, None if a_host is None or slots is None else -(-slots // a_host), 1,
                  None if memory is None else Fraction((memory << 20) * (slots or 1)), None,
                  None if disk is None else Fraction(disk << 20), numbers.get("walltime"))


READERS = {"slurm": slurm, "pbspro": pbspro, "torque": torque, "lsf": lsf, "sge": sge, "cobalt": cobalt,
           "htcondor": htcondor, "flux": flux, "flux-jobspec": jobspec, "psij": psij, "jsdl": jsdl, "adl": adl,
           "xrsl": xrsl}
