"""A stand-in for Cobalt: qsub, qstat, qdel, in the forms that psij uses, and the logs of jobs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tests.fakes.lab import Command, Lab, Record, changing, each, holding


def directives(script: Path) -> dict[str, str]:
    """Options of the #COBALT lines right below the first line, split at blanks."""
    directives = {}
    for line in script.read_text().splitlines()[1:]:
        if not line.startswith("#COBALT "):
            break
        words = line.removeprefix("#COBALT ").split()
        directives[words[0].lstrip("-")] = words[1] if len(words) > 1 else ""
    return directives


def _stamp(when: float) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y +0000 (UTC)", time.gmtime(when))


def _log(job: Record, text: str) -> None:
    path = Path(job["options"]["debuglog"].replace("$jobid", job["id"]))
    if path.parent.exists():
        with path.open("a") as log:
            log.write(f"{_stamp(time.time())} {text}\n")


def qsub(lab: Lab, arguments: list[str]) -> int:
    script = Path(arguments[-1].replace(" ", ""))
    if not script.stat().st_mode & 0o100:
        lab.err.write(f"command {script} is not executable\n")
        return 1
    options = directives(script)
    if options.get("queue") == "nosuch":
        lab.err.write("QueueError: Queue 'nosuch' does not exist\n")
        return 1
    job = lab.submit(script, str, _environment, name=options["jobname"], options=options,
                     output=options["output"].replace("$jobid", "%j"), held="held" in options)
    _log(job, f"submitted with cwd set to: {options['cwd']}")
    lab.say(job["id"])
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    nodefile = Path(job["script"]).with_name(f"nodes-{job['number']}")
    nodefile.write_text("".join(f"node{n + 1}\n" for n in range(int(job["options"]["nodecount"]))))
    return {"COBALT_JOBID": str(job["number"]), "COBALT_NODEFILE": str(nodefile)}


def _ends(lab: Lab) -> None:
    """Write to the logs how jobs ended."""
    for job in lab.jobs():
        if job["end"] is not None and not job.get("logged") and lab.settings["accounting"]:
            text = "user delete requested with signal SIGTERM by user alice"
            if not job["canceled"]:
                code = job.get("code", -job["signal"] if job["signal"] else job["exit"])
                text = f"task completed normally with an exit code of {code}; initiating job cleanup and removal"
            _log(job, f"Info: {job.get('why', text)}")
            lab.update(job["number"], logged=True)


def qstat(lab: Lab, arguments: list[str]) -> int:
    _ends(lab)
    columns = arguments[-1].removeprefix("--header=").split(":")
    for job in lab.jobs():
        if job["end"] is not None:
            continue
        state = job.get("state") or ("running" if job["start"] else "user_hold" if job["held"] else "queued")
        values = {"JobID": job["id"], "State": state, "Queue": "default", "Nodes": job["options"]["nodecount"],
                  "Procs": "1", "StartTime": _stamp(job["start"]) if job["start"] else "N/A",
                  "SubmitTime": _stamp(job["submit"]), "Envs": job["options"]["env"]}
        width = max(map(len, columns)) + 1
        lab.say(f"JobID: {values['JobID']}")
        for name in columns[1:]:
            lab.say(f"    {name:<{width}}: {values[name]}")
        lab.say()
    return 0


@each
def qdel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None or job["end"] is not None:
        lab.say(f"qdel: Job {arguments[-1]} not found")
        return 0
    lab.cancel(job)
    lab.say(f"      Deleted Jobs\nJobID  User\n============\n{job['id']}  alice")
    return 0


COMMANDS: dict[str, Command] = {"qsub": qsub, "qstat": qstat, "qdel": qdel,
                                "qalter": changing("qalter: Job not found\n"),
                                "qmove": changing("qmove: Job not found\n"),
                                "qhold": holding(True, "qhold: Job not found\n"),
                                "qrls": holding(False, "qrls: Job not found\n")}
