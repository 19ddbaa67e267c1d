"""A stand-in for LSF: bsub, bjobs, bhist, bkill, in the forms that psij uses. It knows only UTC."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import time
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.lab import Command, Lab, Record, changing, each, holding, rerunning


def directives(script: Path) -> list[list[str]]:
    """Options of the #BSUB lines, of the whole file."""
    directives = []
    for line in script.read_text(errors="surrogateescape").splitlines():
        if line.lstrip().startswith("#BSUB "):
            words = shlex.split(line.lstrip()[6:])
            directives.append([words[0][1:], *words[1:]])
    return directives


def bsub(lab: Lab, arguments: list[str]) -> int:
    script = lab.input.resolve()
    options = directives(script)
    values = {words[0]: words[-1] for words in options}
    if values.get("q") == "nosuch":
        lab.err.write("nosuch: No such queue. Job not submitted.\n")
        return 255
    job = lab.submit(script, str, _environment, name=values["J"], options=options, description=values["Jd"],
                     held="H" in values, queue=values.get("q", "normal"))
    lab.say(f"Job <{job['id']}> is submitted to {'' if 'q' in values else 'default '}queue <{job['queue']}>.")
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    requirements = [words[-1] for words in job["options"] if words[0] == "R"]
    slots = next((int(words[-1]) for words in job["options"] if words[0] == "n"), 1)
    tile = next((int(text[11:-1]) for text in requirements if text.startswith("span[ptile=")), slots)
    hosts = " ".join(f"node{number + 1} {tile}" for number in range(slots // tile))
    return {"LSB_JOBID": str(job["number"]), "LSB_MCPU_HOSTS": hosts}


def _state(job: Record) -> str:
    if job.get("state"):        # set by a test
        return str(job["state"])
    if job["end"] is None:
        return "RUN" if job["start"] else "PSUSP" if job["held"] else "PEND"
    return "EXIT" if job["canceled"] or job["exit"] or job["signal"] else "DONE"


def _time(value: float | None) -> str:
    return time.strftime("%b %e %H:%M:%S %Y", time.gmtime(value)) if value is not None else ""


def _code(job: Record) -> str:
    code = job["exit"] or (128 + job["signal"] if job["signal"] else 0)
    return str(code) if job["end"] is not None and code else ""


def bjobs(lab: Lab, arguments: list[str]) -> int:
    fields = arguments[arguments.index("-o") + 1].upper().split()
    records = []
    for job in lab.queued():
        ran, over = job["start"] is not None, job["end"] is not None
        said = job.get("term") or ("TERM_OWNER: job killed by owner" if job["canceled"] and over else "")
        known = {"JOBID": job["id"], "JOBINDEX": "0", "STAT": _state(job), "QUEUE": job["queue"],
                 "EXIT_CODE": _code(job), "EXIT_REASON": said, "EXEC_HOST": "4*hostA:2*hostB" if ran else "",
                 "SUBMIT_TIME": _time(job["submit"]), "START_TIME": _time(job["start"]),
                 "FINISH_TIME": _time(job["end"]) + " L" if over else "", "CPU_USED": "1 second(s)",
                 "RUN_TIME": f"{int(job['end'] - job['start']) if ran and over else 0} second(s)",
                 "MAX_MEM": "5.5 Mbytes" if over else "-", "JOB_DESCRIPTION": job["description"],
                 "PROJ_NAME": "default"}
        records.append({field: known[field] for field in fields})
    if not records:
        lab.err.write("No job found\n")
        return 255
    lab.say(json.dumps({"COMMAND": "bjobs", "JOBS": len(records), "RECORDS": records}, indent=2))
    return 0


def bhist(lab: Lab, arguments: list[str]) -> int:
    known = [job for job in lab.accounted() if job["id"] in arguments]
    if not known or not lab.settings["accounting"]:
        lab.err.write("No matching job found\n")
        return 255
    for job in known:
        def event(when: float, text: str) -> None:
            line = time.strftime("%a %b %e %H:%M:%S: ", time.gmtime(when)) + text
            lab.say("\n                     ".join(line[n:n + 79] for n in range(0, len(line), 79)))
        user = pwd.getpwuid(os.geteuid()).pw_name
        lab.say(f"Job <{job['id']}>, Job Name <{job['name']}>, User <{user}>, Project <default>, Command <script>")
        event(job["submit"], "Submitted from host <head>, to Queue <normal>, CWD <$HOME>;")
        if job["start"]:
            event(job["start"], "Dispatched 1 Task(s) on Host(s) <hostA>, Allocated 1 Slot(s) on Host(s) <hostA>, "
                                "Effective RES_REQ <select[type == local] order[r15s:pg] >;")
            event(job["start"], "Starting (Pid 124);")
        if job["end"] and _state(job) == "DONE":
            event(job["end"], "Done successfully. The CPU time used is 0.0 seconds;")
        elif job["end"] and not job["canceled"]:
            event(job["end"], f"Exited with exit code {_code(job)}. The CPU time used is 0.0 seconds;")
        elif job["end"]:
            event(job["end"], "Exited by signal 15. The CPU time used is 0.0 seconds;")
            event(job["end"], "Completed <exit>; TERM_OWNER: job killed by owner;")
        lab.say(f"\nSummary of time in seconds spent in various states by  {time.strftime('%a %b %e %H:%M:%S')}\n"
                "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n"
                "  0        0        1        0        0        0        1\n")
    return 0


@each
def bkill(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None:
        lab.err.write(f"Job <{arguments[-1]}>: No matching job found\n")
        return 255
    if job["end"] is not None:
        lab.err.write(f"Job <{arguments[-1]}>: Job has already finished\n")
        return 255
    lab.say(f"Job <{arguments[-1]}> is being terminated")
    lab.cancel(job)
    lab.kill(job, 9)
    return 0


COMMANDS: dict[str, Command] = {"bsub": bsub, "bjobs": bjobs, "bhist": bhist, "bkill": bkill,
                                "bmod": changing("Job has already finished\n"),
                                "bstop": holding(True, "Job has already finished\n"),
                                "bresume": holding(False, "Job has already finished\n"),
                                "brequeue": rerunning("Job is not running\n")}
