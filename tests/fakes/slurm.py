"""A stand-in for Slurm: sbatch, squeue, sacct, scontrol, scancel, in the forms that psij uses."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.lab import Command, Lab, Record, changing, condensed, each, holding, numbers, rerunning

_FULL = ("sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job violates "
         "accounting/QOS policy (job submit limit, user's size and/or time limits)\n")
_HEADERS = {"%A": "JOBID", "%T": "STATE", "%r": "REASON", "%V": "SUBMIT_TIME", "%S": "START_TIME", "%e": "END_TIME",
            "%C": "CPUS", "%D": "NODES", "%N": "NODELIST", "%P": "PARTITION", "%k": "COMMENT", "%o": "COMMAND",
            "%i": "JOBID", "%j": "NAME", "%q": "QOS"}


_PLAIN = re.compile(r"[\w=:,.%/+-]+")          # an option that no shell would read otherwise


def directives(script: Path) -> dict[str, str]:
    """Options of the #SBATCH lines, unquoted as sbatch does."""
    directives = {}
    for line in script.read_text(errors="surrogateescape").splitlines():
        if line and not line.startswith("#"):
            break
        if line.startswith("#SBATCH "):
            word = line[8:] if _PLAIN.fullmatch(line, 8) else shlex.split(line[8:])[0]
            name, _, value = word.partition("=")
            directives[name.lstrip("-")] = value
    return directives


def sbatch(lab: Lab, arguments: list[str]) -> int:
    script = Path(arguments[-1])
    options = directives(script)
    if options.get("partition") == "nosuch":
        lab.err.write("sbatch: error: Batch job submission failed: Invalid partition name specified\n")
        return 1
    if lab.is_full:
        lab.err.write(_FULL)
        return 1
    output = options.get("output", "/dev/null")
    about: Record = {"name": options.get("job-name", script.name), "options": options,
             "comment": options.get("comment", "(null)"), "held": "hold" in options,
             "after": _after(options.get("dependency", "")),
             "begin": float(options.get("begin", "uts0").removeprefix("uts"))}
    if "array" not in options:
        lab.say(lab.submit(script, str, _environment, output=output, **about)["id"])
        return 0
    listed, _, most = options["array"].partition("%")
    elements = numbers(listed)
    if elements[-1] >= lab.settings["array_size"]:
        lab.err.write("sbatch: error: Batch job submission failed: Invalid job array specification\n")
        return 1
    if not lab.takes(len(elements)):
        lab.err.write(_FULL)
        return 1
    for word, known in (("{", "{{"), ("}", "}}"), ("%A", "{whole}"), ("%a", "{n}"), ("%8a", "{n:08d}")):
        output = output.replace(word, known)
    lab.say(lab.submit_array(script, elements, "{}_{}", _environment, output=output,
                           beside=int(most) if most else None, **about))
    return 0


def _after(text: str) -> list[tuple[str, str]]:
    """``afterok:1:2,afternotok:3`` as pairs."""
    words = [word.split(":") for word in filter(None, text.split(","))]
    return [(kind.removeprefix("after"), one) for kind, *ids in words for one in ids]


def _environment(job: Record) -> Mapping[str, str]:
    options = job["options"]
    nodes, tasks = int(options.get("nodes", 1)), int(options.get("ntasks", 1))
    names = ",".join(f"node{n + 1}" for n in range(nodes))
    of_array = {} if "array" not in job else {
        "SLURM_ARRAY_JOB_ID": str(job["array"]), "SLURM_ARRAY_TASK_ID": str(job["element"])}
    return {"SLURM_JOB_ID": str(job["number"]), "SLURM_JOB_NODELIST": names,
            "SLURM_TASKS_PER_NODE": f"{tasks // nodes}(x{nodes})", **of_array}


def _waits(job: Record) -> bool:
    """Whether an element has no record of its own yet."""
    return job["start"] is None and job["end"] is None and job["held"] == ("hold" in job["options"])


def _shown(job: Record, elements: list[int]) -> str:
    """The id of a row: ``12_[3,4%2]`` stands for the elements that wait."""
    if "array" not in job or not _waits(job) or len(elements) < 2:
        return str(job["id"])
    return f"{job['array']}_[{','.join(map(str, elements))}{'' if job['beside'] is None else '%' + str(job['beside'])}]"


def state(job: Record) -> str:
    if job.get("state"):        # set by a test
        return str(job["state"])
    if job["end"] is None:
        return "RUNNING" if job["start"] else "PENDING"
    if job["canceled"]:
        return "CANCELLED"
    return "FAILED" if job["exit"] or job["signal"] else "COMPLETED"


def _time(value: float | None) -> str:
    return "N/A" if value is None else str(int(value))


def squeue(lab: Lab, arguments: list[str]) -> int:
    form = arguments[arguments.index("-o") + 1]
    if "-h" not in arguments:
        lab.say(re.sub("%[A-Za-z]", lambda match: _HEADERS[match[0]], form))
    for job, elements in condensed(lab.queued(), lambda one: "-r" not in arguments and _waits(one)):
        if job["end"] is not None and "-t" not in arguments:
            continue
        ran = job["start"] is not None
        reason = job.get("reason") or ("DependencyNeverSatisfied" if job.get("never") else
                                       "JobHeldUser" if job.get("held") and state(job) == "PENDING" else "None")
        values = {"%A": str(job["number"]), "%i": _shown(job, elements), "%T": state(job), "%r": reason,
                  "%V": _time(job["submit"]), "%S": _time(job["start"]), "%e": _time(job["end"]), "%C": "1", "%D": "1",
                  "%N": "node1" if ran else "", "%P": "batch", "%k": job["comment"], "%o": job["command"],
                  "%j": job["name"], "%q": "normal"}
        lab.say(re.sub("%[A-Za-z]", lambda match, values=values: values[match[0]], form))  # type: ignore[misc]
    return 0


def _code_of_sacct(code: int) -> int:
    """As the real one prints it: 128 is taken off."""
    return code - 128 if code >= 128 else code


def sacct(lab: Lab, arguments: list[str]) -> int:
    if not lab.settings["accounting"]:
        lab.err.write("Slurm accounting storage is disabled\n")
        return 1
    if "--json" in arguments:
        return _sacct_json(lab, arguments[arguments.index("-j") + 1].split(","))
    fields = arguments[arguments.index("-o") + 1].split(",")
    ids = arguments[arguments.index("-j") + 1].split(",") if "-j" in arguments else None
    if "-n" not in arguments:
        lab.say("|".join(fields))
    asked = [job for job in lab.accounted() if ids is None or {job["id"], str(job.get("array"))} & set(ids)]
    for job, elements in condensed(asked, _waits):
        ran = job["start"] is not None
        end = job["end"]
        known = {"JobID": _shown(job, elements), "State": "CANCELLED by 0" if state(job) == "CANCELLED" else state(job),
                 "ExitCode": f"{_code_of_sacct(job['exit'] or 0)}:{job['signal']}", "Submit": _time(job["submit"]),
                 "Start": _time(job["start"]) if ran else "None", "End": _time(end) if end else "Unknown",
                 "ElapsedRaw": str(int((end or time.time()) - job["start"])) if ran else "0", "Suspended": "00:00:00",
                 "TotalCPU": "00:01.500", "NCPUS": "1", "NNodes": "1", "NodeList": "node1" if ran else "None assigned",
                 "MaxRSS": "", "AveRSS": "", "Partition": "batch", "AllocTRES": "cpu=1,mem=100M,node=1,billing=1",
                 "ConsumedEnergyRaw": "0", "Account": "physics", "QOS": "normal", "Cluster": "lab", "Comment": "",
                 "SubmitLine": f"sbatch --parsable {job['command']}",
                 "User": pwd.getpwuid(os.geteuid()).pw_name}
        lab.say("|".join(known[field] for field in fields))
        if "MaxRSS" in fields and end is not None and ran:
            step = {**known, "JobID": f"{job['id']}.batch", "MaxRSS": "52424K", "AveRSS": "52424K"}
            lab.say("|".join(step[field] for field in fields))
    return 0


def _sacct_json(lab: Lab, ids: list[str]) -> int:
    """In the shape of that release: up to 22.05 numbers are plain, and every normal exit is one with 0."""
    release = str(lab.settings["release"])
    major, minor, micro = release.split(".")
    old = (int(major), int(minor)) < (23, 2)

    def number(value: int | None) -> object:
        return value if old else {"set": value is not None, "infinite": False, "number": value or 0}

    jobs = []
    for job in (job for job in lab.accounted() if job["id"] in ids):
        code, word = (None if job["signal"] else job["exit"] or 0), state(job)
        jobs.append({
            "job_id": job["number"], "array": {"job_id": 0, "task_id": number(None)},
            "het": {"job_id": 0, "job_offset": number(None)}, "state": {"current": word if old else [word]},
            "exit_code": {"return_code": number(code and 0 if old else code)}})
    version: dict[str, object] = {"major": major, "minor": minor, "micro": micro}
    if old:
        version = {name: int(str(part)) for name, part in version.items()}
    lab.say(json.dumps({"meta": {"Slurm" if old else "slurm": {"version": version, "release": release}}, "jobs": jobs}))
    return 0


def scontrol(lab: Lab, arguments: list[str]) -> int:
    if arguments[:2] == ["show", "hostnames"]:
        lab.say("\n".join(arguments[2].split(",")))
        return 0
    if arguments == ["show", "config"]:
        lab.say(f"Configuration data as of 2026-11-21T20:41:47\nClusterName             = {lab.settings['cluster']}"
                f"\nMaxArraySize            = {lab.settings['array_size']}"
                "\nSlurmctldHost[0]        = head\nSlurmctldPort           = 6817")
        return 0
    if arguments[0] in ("release", "uhold"):
        return holding(arguments[0] == "uhold", "Invalid job id specified\n")(lab, arguments[1].split(","))
    if arguments[0] == "update":
        return changing("Invalid job id specified\n")(lab, arguments[1:])
    if arguments[0] == "requeue":
        return rerunning("Job is pending execution\n")(lab, arguments)
    jobs = [job for job in lab.queued() if arguments[-1] in (job["id"], str(job.get("array")))]
    if not jobs:
        lab.err.write("slurm_load_jobs error: Invalid job id specified\n")
        return 1
    for job in jobs:
        of_array = f"ArrayJobId={job['array']} ArrayTaskId={job['element']} " if "array" in job else ""
        lab.say(f"JobId={job['number']} {of_array}JobName={job['name']} JobState={state(job)} Reason=None Restarts=0 "
                f"ExitCode={job['exit'] or 0}:{job['signal']} SubmitTime={_time(job['submit'])} "
                f"StartTime={_time(job['start'])} EndTime={_time(job['end'])} Partition=batch NodeList=node1 "
                f"NumNodes=1 NumCPUs=1 Command={job['command']} ")
    return 0


@each
def scancel(lab: Lab, arguments: list[str]) -> int:
    for job in lab.jobs():
        if arguments[-1] in (job["id"], str(job.get("array"))):
            lab.cancel(job)
    return 0


COMMANDS: dict[str, Command] = {"sbatch": sbatch, "squeue": squeue, "sacct": sacct, "scontrol": scontrol,
                                "scancel": scancel}
