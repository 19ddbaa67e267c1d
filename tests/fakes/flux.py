"""A stand-in for Flux: flux batch, jobs, job info, job id, getattr, run, cancel, in the forms that psij uses.

Faults are those of ``flux-batch``, ``flux-jobs`` and so on.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.lab import Command, Group, Lab, Record, changing, each, holding

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def f58(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return f"ƒ{text or '1'}"


def directives(script: Path) -> dict[str, str]:
    """Options of the #FLUX: lines, split as Flux does."""
    directives = {}
    for line in script.read_text().splitlines():
        if line.startswith("#FLUX:"):
            lexer = shlex.shlex(line[6:], posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            (option,) = lexer
            name, _, value = option.partition("=")
            key = f"{name.lstrip('-')}={value.partition('=')[0]}" if name == "--setattr" else name.lstrip("-")
            directives[key] = value.partition("=")[2] if name == "--setattr" else value
    return directives


def batch(lab: Lab, arguments: list[str]) -> int:
    script = Path(arguments[-1])
    options = directives(script)
    if options.get("queue") == "nosuch":
        lab.err.write("flux-batch: ERROR: [Errno 22] Invalid queue 'nosuch' specified\n")
        return 1
    job = lab.submit(script, str, _environment, name=options["job-name"], options=options,
                     tag=options["setattr=user.sssjob.id"], output=options["output"].replace("{{id.dec}}", "%j"),
                     held=options.get("urgency") == "hold")
    lab.say(f58(job["number"]))
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    return {"FLUX_URI": "local:///nested", "FAKE_FLUX_JOB": job["id"]}


def _status(job: Record) -> str:
    if job.get("state"):        # set by a test
        return str(job["state"])
    if job["end"] is None:
        return "RUN" if job["start"] else "SCHED"
    if job["canceled"]:
        return "CANCELED"
    return "FAILED" if job["exit"] or job["signal"] else "COMPLETED"


def _shown(job: Record) -> dict[str, Any]:
    status, ran = _status(job), job["start"] is not None
    found: dict[str, Any] = {
        "id": int(job["id"]), "jobid": f58(int(job["id"])), "name": job["name"], "t_submit": job["submit"],
        "urgency": 0 if job["held"] else 16, "state": "INACTIVE" if job["end"] else status, "status": status,
        "ntasks": 1, "ncores": 1,
        "exception": job.get("exception", {"occurred": False})}
    if ran:
        found |= {"t_run": job["start"], "nodelist": "node1", "nnodes": 1, "runtime": time.time() - job["start"]}
    if job["end"] is not None:
        found |= {"t_cleanup": job["end"], "t_inactive": job["end"], "result": status}
        if ran:
            found |= {"runtime": job["end"] - job["start"], "waitstatus": ((job["exit"] or 0) << 8) | job["signal"]}
    return found


def jobs(lab: Lab, arguments: list[str]) -> int:
    ids = [word for word in arguments if word.isdecimal()]
    if ids:
        found = [job for job in lab.accounted() if job["id"] in ids]
        for one in set(ids) - {job["id"] for job in found}:
            lab.err.write(f"JobID {one} unknown\n")
        if len(ids) > 1 or found:
            lab.say(json.dumps(_shown(found[0]) if len(ids) == 1 else {"jobs": [_shown(job) for job in found]}))
        return 0
    since = any(word.startswith("--since") for word in arguments)
    listed = [job for job in lab.queued() if job["end"] is None or since]
    if "--json" in arguments:
        lab.say(json.dumps({"jobs": [_shown(job) for job in listed]}))
    else:
        lab.say("".join(f"{job['id']}\n" for job in listed), end="")
    return 0


def job(lab: Lab, arguments: list[str]) -> int:
    if arguments[0] == "id":
        lab.say(arguments[1])
        return 0
    if arguments[0] == "urgency":
        return holding(arguments[2] == "hold", "flux-job: unknown job\n")(lab, arguments[1:2])
    found = lab.job(arguments[1])
    if found is None:
        lab.err.write(f"flux-job: job {arguments[1]} not found\n")
        return 1
    lab.say(json.dumps({"attributes": {"system": {}, "user": {"sssjob": {"id": found["tag"]}}}, "version": 1}), end="")
    return 0


def getattr_(lab: Lab, arguments: list[str]) -> int:
    lab.say(os.environ["FAKE_FLUX_JOB"])
    return 0


def run(lab: Lab, arguments: list[str]) -> int:
    values = dict(word.lstrip("-").split("=") for word in arguments if word.startswith("--"))
    tasks, nodes = int(values["ntasks"]), int(values.get("nodes", 1))
    for task in range(tasks):
        lab.say(f"node{task // (tasks // nodes) + 1}")
    return 0


@each
def cancel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None or job["end"] is not None:
        why = "unknown job id" if job is None else "job is inactive"
        lab.err.write(f"flux-cancel: ERROR: {f58(int(arguments[-1]))}: {why}\n")
        return 1
    lab.cancel(job)
    return 0


_SUBCOMMANDS: dict[str, Command] = {
    "batch": batch, "jobs": jobs, "job": job, "getattr": getattr_, "run": run, "cancel": cancel,
    "update": changing("flux-update: ERROR: unknown job id\n")}


COMMANDS: dict[str, Command] = {"flux": Group("flux", _SUBCOMMANDS)}
