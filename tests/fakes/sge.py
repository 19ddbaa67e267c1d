"""A stand-in for Grid Engine: qsub, qstat, qacct, qdel, qconf, in the forms that psij uses. It knows only UTC."""

from __future__ import annotations

import time
from collections.abc import Mapping
from html import escape
from pathlib import Path

from tests.fakes.lab import Command, Lab, Record, changing, condensed, each, holding, numbers, rerunning

_RULES = {"smp": "$pe_slots", "mpi": "$fill_up", "pairs": "2"}


def directives(script: Path) -> list[list[str]]:
    """Options of the ``#$`` lines: a value in double quotes is one word, to the last quote of the line."""
    directives = []
    for line in script.read_text(errors="surrogateescape").splitlines():
        if line.startswith("#$"):
            option, _, value = line[2:].partition("#")[0].strip().partition(" ")
            directives.append([option, value.replace('"', "")])
    return directives


def qsub(lab: Lab, arguments: list[str]) -> int:
    script = Path(arguments[-1])
    options = directives(script)
    values = dict(options)
    if values.get("-q") == "nosuch":
        lab.err.write('Unable to run job: Job was rejected because job requests unknown queue "nosuch"\nExiting.\n')
        return 1
    if lab.is_full:
        lab.err.write("Unable to run job: job rejected: only 2 jobs are allowed per user (current job count: 2)\n"
                         "Exiting.\n")
        return 1
    about: Record = {"name": values.get("-N", script.name), "options": options, "held": "-h" in values,
             "context": values.get("-ac", "NONE"),
             "after": [("any", one) for one in values.get("-hold_jid", "").split(",") if one],
             "slots": int(values.get("-pe", "x 1").split()[-1]), "pe": values.get("-pe", "NONE").split()[0]}
    if "-t" not in values:
        lab.say(lab.submit(script, str, _environment, **about)["id"])
        return 0
    elements = numbers(values["-t"])
    most = int(values["-tc"]) if "-tc" in values else None
    whole = lab.submit_array(script, elements, "{}.{}", _environment, beside=most, **about)
    lab.say(f"{whole}.{elements[0]}-{elements[-1]}:{elements[1] - elements[0] if len(elements) > 1 else 1}")
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    environment = {"JOB_ID": _number(job), "HOSTNAME": "head", "SGE_TASK_ID": str(job.get("element", "undefined"))}
    if job["pe"] != "NONE":
        environment["PE_HOSTFILE"] = job["script"] + ".hosts"
        Path(environment["PE_HOSTFILE"]).write_text(f"head {job['slots']} all.q@head UNDEFINED\n")
    return environment


def _number(job: Record) -> str:
    """The job number, which the tasks of an array have in common."""
    return str(job.get("array", job["id"]))


def _waits(job: Record) -> bool:
    return job["start"] is None and job["end"] is None and job["held"] == (["-h", ""] in job["options"])


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
    if arguments[0] == "-j":
        wanted = arguments[1].split(",")
        jobs = list({_number(job): job for job in jobs if arguments[1] == "*" or _number(job) in wanted}.values())
        if not jobs:
            lab.err.write(f"Following jobs do not exist: \n{arguments[1]}\n")
            return 1
        for job in jobs:
            lab.say(f"{'=' * 62}\njob_number:                 {_number(job)}\n"
                  f"context:                    {job['context']}")
        return 0
    lab.say("<?xml version='1.0'?>\n<job_info>\n  <queue_info>")
    for job, elements in condensed(jobs, _waits):
        tasks = f"<tasks>{','.join(map(str, elements))}</tasks>" if elements else ""
        when = f"<JAT_start_time>{_xml_time(job['start'])}</JAT_start_time>" if job["start"] else \
            f"<JB_submission_time>{_xml_time(job['submit'])}</JB_submission_time>"
        queue = "all.q@head" if job["start"] else ""
        lab.say(f"    <job_list state=\"{'running' if job['start'] else 'pending'}\"><JB_job_number>{_number(job)}"
              f"</JB_job_number><JB_name>{escape(job['name'], quote=False)}</JB_name>"
              f"<JB_owner>root</JB_owner><state>{_state(job)}</state>{when}"
              f"<queue_name>{queue}</queue_name><slots>{job['slots']}</slots>{tasks}</job_list>")
    lab.say("  </queue_info>\n  <job_info>\n  </job_info>\n</job_info>")
    return 0


def _acct_time(value: float | None) -> str:
    return "-/-" if value is None else time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(value))


def qacct(lab: Lab, arguments: list[str]) -> int:
    records = [job for job in lab.accounted() if job["end"] is not None and job["start"] is not None]
    if not records or not lab.settings["accounting"]:
        lab.err.write("no jobs running since startup\n"
                      "/opt/sge/default/common/accounting: No such file or directory\n")
        return 1
    jobs = [job for job in records if _number(job) == arguments[-1]]
    if not jobs:
        lab.err.write(f"error: job id {arguments[-1]} not found\n")
        return 1
    for job in jobs:
        _print_record(lab, job)
    return 0


def _print_record(lab: Lab, job: Record) -> None:
    failed = job.get("failed", "100 : assumedly after job" if job["signal"] else "0")
    values = {"qname": "all.q", "hostname": "head", "owner": job.get("owner", "root"), "jobname": job["name"],
              "jobnumber": _number(job), "taskid": str(job.get("element", "undefined")),
              "qsub_time": _acct_time(job["submit"]), "start_time": _acct_time(job["start"]),
              "end_time": _acct_time(job["end"]), "granted_pe": job["pe"], "slots": str(job["slots"]),
              "failed": failed, "exit_status": str(128 + job["signal"] if job["signal"] else job["exit"]),
              "ru_wallclock": f"{int(job['end'] - job['start'])}s", "cpu": "1.500s", "maxvmem": "51.184MB",
              "arid": "undefined", "ar_sub_time": "undefined", "category": "NONE"}
    lab.say("=" * 62)
    for name, value in values.items():
        lab.say(f"{name:<12} {value:<20}")


@each
def qdel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None or job["end"] is not None:
        lab.say(f'denied: job "{arguments[-1]}" does not exist')
        return 1
    lab.say(f"root has {'registered the job' if job['start'] else 'deleted job'} {job['id']}")
    lab.cancel(job)
    lab.kill(job, 9)
    return 0


def qmod(lab: Lab, arguments: list[str]) -> int:
    if ["-r", "n"] in (lab.job(arguments[-1]) or {"options": []})["options"]:
        lab.say(f"The job {arguments[-1]} is not restartable")
    elif rerunning("")(lab, arguments) == 0:
        lab.say(f"Pushed rescheduling of job {arguments[-1]} on host head")
    else:
        lab.say(f'invalid queue or job "{arguments[-1]}"')
        return 1
    return 0


def qconf(lab: Lab, arguments: list[str]) -> int:
    if arguments == ["-sconf"]:
        lab.say("#global:\nmax_aj_instances             2000\nmax_aj_tasks                 75000")
        return 0
    if arguments[-1] not in _RULES:
        lab.err.write(f'parallel environment "{arguments[-1]}" does not exist\n')
        return 1
    lab.say(f"pe_name            {arguments[-1]}\nallocation_rule    {_RULES[arguments[-1]]}")
    return 0


COMMANDS: dict[str, Command] = {"qsub": qsub, "qstat": qstat, "qacct": qacct, "qdel": qdel, "qconf": qconf,
                                "qalter": changing("denied: job does not exist\n"),
                                "qhold": holding(True, "denied: job does not exist\n"),
                                "qrls": holding(False, "denied: job does not exist\n"),
                                "qmod": qmod}
