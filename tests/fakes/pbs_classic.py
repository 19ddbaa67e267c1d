"""A stand-in for Torque: qsub, qstat, qdel, in the forms that psij uses. It knows only UTC.

settings: "xml" (True) whether qstat knows -x. "forget" is keep_completed.
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from tests.fakes.lab import Command, Lab, Record, changing, each, holding, rerunning
from tests.fakes.pbs import directives, plain, resource_list, server_table

SERVER = "head.example.org"


def qsub(lab: Lab, arguments: list[str]) -> int:
    options = directives(Path(arguments[-1]))
    values = dict(options)
    if values.get("q") == "nosuch":
        lab.err.write("qsub: submit error (Unknown queue MSG=cannot locate queue)\n")
        return 170
    job = lab.submit(Path(arguments[-1]), lambda number: f"{number}.{SERVER}", _environment, name=values["N"],
                     options=options, variables=values["v"], held="h" in values, queue=values.get("q", "batch"))
    lab.say(job["id"])
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    count, _, rest = resource_list(job["options"]).get("nodes", "1").partition(":")
    slots = int(dict(part.split("=") for part in rest.split(":") if part).get("ppn", 1))
    nodes = Path(job["script"] + ".nodes")
    nodes.write_text("".join(f"node{n + 1}\n" * slots for n in range(int(count))))
    return {"PBS_JOBID": str(job["id"]), "PBS_NODEFILE": str(nodes)}


def _fields(job: Record, moment: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"Job_Name": job["name"], "Job_Owner": f"{job.get('owner', getpass.getuser())}@{SERVER}"}
    ran, over = job["start"] is not None, job["end"] is not None
    if ran and over:
        fields["resources_used"] = {"cput": "00:00:01", "mem": "55136kb", "walltime": "00:00:02"}
    state = job.get("state") or ("C" if over else "R" if ran else "H" if job["held"] else "Q")
    fields |= {"job_state": state, "queue": job["queue"], "server": SERVER, "ctime": moment(job["submit"])}
    if ran:
        fields["exec_host"] = "node1/0-1+node2/3"
    fields |= {"qtime": moment(job["submit"]), "Variable_List": f"PBS_O_HOST={SERVER},{job['variables']}"}
    if over and ran:
        fields["exit_status"] = job.get("status", 256 + job["signal"] if job["signal"] else job["exit"])
    if ran:
        fields["start_time"] = moment(job["start"])
    if over:
        fields["comp_time"] = moment(job["end"])
    return fields


def qstat(lab: Lab, arguments: list[str]) -> int:
    if "-B" in arguments:
        lab.say(server_table(sum(job["end"] is None for job in lab.jobs())))
        return 0
    if "-x" in arguments and not lab.settings.get("xml", True):
        lab.err.write("Unknown option: x\nUsage:\n    qstat [-f] [job_id...]\n")
        return 2
    jobs = list(lab.queued())
    if "-x" in arguments:
        lab.say("<Data>" if jobs else "", end="")
        for job in jobs:
            parts = "".join(f"<{name}>{_element(value)}</{name}>"
                            for name, value in _fields(job, lambda value: int(value)).items())
            lab.say(f"<Job><Job_Id>{job['id']}</Job_Id>{parts}</Job>", end="")
        lab.say("</Data>" if jobs else "", end="")
        return 0
    for job in jobs:
        fields = _fields(job, lambda value: time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(value)))
        fields["Variable_List"] = dict(part.split("=") for part in fields["Variable_List"].split(","))
        lab.say(plain(job["id"], fields))
    return 0


def _element(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(f"<{name}>{_element(text)}</{name}>" for name, text in value.items())
    return escape(str(value), quote=False)


@each
def qdel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None:
        lab.err.write(f"qdel: Unknown Job Id {arguments[-1]}\n")
        return 153
    if job["end"] is not None:
        lab.err.write("qdel: Request invalid for state of job MSG=invalid state for job - COMPLETE\n")
        return 168
    lab.cancel(job)
    lab.kill(job, 9)
    return 0


COMMANDS: dict[str, Command] = {"qsub": qsub, "qstat": qstat, "qdel": qdel,
                                "qalter": changing("qalter: Unknown Job Id\n"),
                                "qmove": changing("qmove: Unknown Job Id\n"),
                                "qhold": holding(True, "qhold: Unknown Job Id\n"),
                                "qrls": holding(False, "qrls: Unknown Job Id\n"),
                                "qrerun": rerunning("qrerun: Request invalid for state of job\n")}
