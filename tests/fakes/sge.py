"""A stand-in for Grid Engine: qsub, qstat, qacct, qdel, qconf, in the forms that psij uses. It knows only UTC."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from html import escape
from pathlib import Path

from tests.fakes.lab import Command, Lab, Record

_RULES = {"smp": "$pe_slots", "mpi": "$fill_up", "pairs": "2"}


def directives(script: Path) -> list[list[str]]:
    """Options of the ``#$`` lines: a value in double quotes is one word, to the last quote of the line."""
    found = []
    for line in script.read_text(errors="surrogateescape").splitlines():
        if line.startswith("#$"):
            option, _, value = line[2:].partition("#")[0].strip().partition(" ")
            found.append([option, value.replace('"', "")])
    return found


def qsub(lab: Lab, arguments: list[str]) -> int:
    script = Path(arguments[-1])
    options = directives(script)
    values = dict(options)
    if values.get("-q") == "nosuch":
        sys.stderr.write('Unable to run job: Job was rejected because job requests unknown queue "nosuch"\nExiting.\n')
        return 1
    job = lab.submit(script, str, _environment, name=values["-N"], options=options, context=values["-ac"],
                     held="-h" in values, after=[("any", one) for one in values.get("-hold_jid", "").split(",") if one],
                     slots=int(values.get("-pe", "x 1").split()[-1]),
                     pe=values.get("-pe", "NONE").split()[0])
    print(job["id"])
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    environment = {"JOB_ID": str(job["number"]), "HOSTNAME": "head"}
    if job["pe"] != "NONE":
        environment["PE_HOSTFILE"] = job["script"] + ".hosts"
        Path(environment["PE_HOSTFILE"]).write_text(f"head {job['slots']} all.q@head UNDEFINED\n")
    return environment


def _state(job: Record) -> str:
    if job.get("state"):        # set by a test
        return str(job["state"])
    if job["canceled"]:
        return "dr"
    return "r" if job["start"] else "hqw" if job["held"] else "qw"


def _xml_time(value: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(value))


def qstat(lab: Lab, arguments: list[str]) -> int:
    jobs = [job for job in lab.jobs() if job["end"] is None]
    if arguments == ["-j", "*"]:
        if not jobs:
            sys.stderr.write("Following jobs do not exist: \n*\n")
            return 1
        for job in jobs:
            print(f"{'=' * 62}\njob_number:                 {job['id']}\ncontext:                    {job['context']}")
        return 0
    print("<?xml version='1.0'?>\n<job_info>\n  <queue_info>")
    for job in jobs:
        when = f"<JAT_start_time>{_xml_time(job['start'])}</JAT_start_time>" if job["start"] else \
            f"<JB_submission_time>{_xml_time(job['submit'])}</JB_submission_time>"
        queue = "all.q@head" if job["start"] else ""
        print(f"    <job_list state=\"{'running' if job['start'] else 'pending'}\"><JB_job_number>{job['id']}"
              f"</JB_job_number><JB_name>{escape(job['name'], quote=False)}</JB_name><state>{_state(job)}</state>{when}"
              f"<queue_name>{queue}</queue_name><slots>{job['slots']}</slots></job_list>")
    print("  </queue_info>\n  <job_info>\n  </job_info>\n</job_info>")
    return 0


def _acct_time(value: float | None) -> str:
    return "-/-" if value is None else time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(value))


def qacct(lab: Lab, arguments: list[str]) -> int:
    job = next((job for job in lab.accounted() if job["id"] == arguments[-1]), None)
    if job is None or job["end"] is None or job["start"] is None or not lab.settings["accounting"]:
        sys.stderr.write(f"error: job id {arguments[-1]} not found\n")
        return 1
    failed = job.get("failed", "100 : assumedly after job" if job["signal"] else "0")
    values = {"qname": "all.q", "hostname": "head", "owner": "root", "jobname": job["name"], "jobnumber": job["id"],
              "taskid": "undefined", "qsub_time": _acct_time(job["submit"]), "start_time": _acct_time(job["start"]),
              "end_time": _acct_time(job["end"]), "granted_pe": job["pe"], "slots": str(job["slots"]),
              "failed": failed, "exit_status": str(128 + job["signal"] if job["signal"] else job["exit"]),
              "ru_wallclock": f"{int(job['end'] - job['start'])}s", "cpu": "1.500s", "maxvmem": "51.184MB"}
    print("=" * 62)
    for name, value in values.items():
        print(f"{name:<12} {value:<20}")
    return 0


def qrls(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is not None:
        lab.update(job["number"], held=False)
    return 0 if job is not None else 1


def qdel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None or job["end"] is not None:
        print(f'denied: job "{arguments[-1]}" does not exist')
        return 1
    print(f"root has {'registered the job' if job['start'] else 'deleted job'} {job['id']}")
    lab.cancel(job)
    lab.kill(job, 9)
    return 0


def qconf(lab: Lab, arguments: list[str]) -> int:
    if arguments[-1] not in _RULES:
        sys.stderr.write(f'parallel environment "{arguments[-1]}" does not exist\n')
        return 1
    print(f"pe_name            {arguments[-1]}\nallocation_rule    {_RULES[arguments[-1]]}")
    return 0


COMMANDS: dict[str, Command] = {"qsub": qsub, "qstat": qstat, "qacct": qacct, "qdel": qdel, "qrls": qrls,
                                "qconf": qconf}
