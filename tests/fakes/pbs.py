"""A stand-in for OpenPBS: qsub, qstat, qselect, qdel, in the forms that psij uses. It knows only UTC."""

from __future__ import annotations

import getpass
import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.fakes.lab import Command, Lab, Record, changing, each, holding, numbers, rerunning

SERVER = "head"
_WORD = re.compile(r"""-([A-Za-z])(?: (?:"([^"]*)"|'([^']*)'|(\S+)))?$""")


def directives(script: Path) -> list[list[str]]:
    """Options of the #PBS lines up to the first command: a value in quotes of one kind is one word."""
    directives = []
    for line in script.read_text(errors="surrogateescape").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            break
        if line.startswith("#PBS "):
            match = _WORD.match(line[5:])
            assert match is not None, line
            directives.append([match[1], next((value for value in match.groups()[1:] if value is not None), "")])
    return directives


def resource_list(options: Iterable[list[str]]) -> dict[str, str]:
    """The resources of the -l options."""
    parts = (part for option, value in options if option == "l" for part in value.split(","))
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def qsub(lab: Lab, arguments: list[str]) -> int:
    options = directives(Path(arguments[-1]))
    values = dict(options)
    if values.get("q") == "nosuch":
        lab.err.write("qsub: Unknown queue\n")
        return 170
    about: Record = {"name": values["N"], "options": options, "variables": values["v"], "held": "h" in values,
                     "queue": values.get("q", "workq")}
    if "J" not in values:
        lab.say(lab.submit(Path(arguments[-1]), lambda number: f"{number}.{SERVER}", _environment, **about)["id"])
        return 0
    span, _, most = values["J"].partition("%")
    elements = numbers(span)
    if len(elements) < 2 or "," in span:
        lab.err.write("qsub: illegal -J value\n")
        return 2
    if not lab.takes(len(elements)):
        lab.err.write("qsub: would exceed complex's per-user limit of jobs in 'Q' state\n")
        return 38
    whole = lab.submit_array(Path(arguments[-1]), elements, f"{{}}[{{}}].{SERVER}", _environment,
                             beside=int(most) if most else None, **about)
    lab.say(f"{whole}[].{SERVER}")
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    count, _, rest = resource_list(job["options"]).get("select", "1").partition(":")
    processes = int(dict(part.split("=") for part in rest.split(":") if part).get("mpiprocs", 1))
    nodes = Path(job["script"] + ".nodes")
    nodes.write_text("".join(f"node{n + 1}\n" * processes for n in range(int(count))))
    of_array = {} if "array" not in job else {"PBS_ARRAY_INDEX": str(job["element"]), "PBS_ARRAY_ID": _whole(job)}
    return {"PBS_JOBID": str(job["id"]), "PBS_NODEFILE": str(nodes), **of_array}


def _whole(job: Record) -> str:
    """The id of the array that a job is an element of."""
    return f"{job['array']}[].{SERVER}"


def _time(value: float) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(value))


def fields(lab: Lab, job: Record) -> dict[str, Any]:
    """What qstat says of a job, in its order."""
    fields: dict[str, Any] = {"Job_Name": job["name"], "Job_Owner": f"{job.get('owner', getpass.getuser())}@{SERVER}"}
    if job["end"] is not None and job["start"] is not None:
        fields["resources_used"] = {"cput": "00:00:01", "mem": "55136kb", "ncpus": 1,
                                    "walltime": f"00:00:{int(job['end'] - job['start']):02}"}
    fields |= {"job_state": _state(job), "queue": job["queue"], "server": SERVER, "ctime": _time(job["submit"])}
    if job["start"] is not None:
        fields["exec_host"] = f"{SERVER}/0"
    fields["mtime"] = _time(job["end"] or job["start"] or job["submit"])
    if job["start"] is not None:
        fields["stime"] = _time(job["start"])
    if job["end"] is not None and job["start"] is not None:
        fields["obittime"] = _time(job["end"])
    code = _exit_status(job)
    fields["substate"] = 10 if job["end"] is None else 91 if job["canceled"] else 93 if code else 92
    if job["end"] is None and job["start"]:
        fields["substate"] = 42
    fields["Variable_List"] = {"PBS_O_HOST": SERVER, **dict([job["variables"].split("=", 1)])}
    if "array" in job:
        fields |= {"array_id": _whole(job), "array_index": job["element"]}
    if job["end"] is not None and job["start"] is not None:
        fields |= {"run_count": 1, "Exit_status": code}
    if job["end"] is not None:
        fields["history_timestamp"] = int(job["end"])
    return fields


def _exit_status(job: Record) -> int:
    return int(job.get("status", 256 + job["signal"] if job["signal"] else job["exit"] or 0))


def _state(job: Record) -> str:
    if job.get("state"):        # set by a test
        return str(job["state"])
    if job["end"] is not None:
        return "F"
    return "R" if job["start"] else "H" if job["held"] else "Q"


def plain(native_id: str, values: Mapping[str, Any]) -> str:
    """A job as ``qstat -f`` prints it."""
    lines = [f"Job Id: {native_id}"]
    for name, value in values.items():
        if name == "Variable_List":
            lines.append("    Variable_List = " + ",\n\t".join(f"{key}={text}" for key, text in value.items()))
        elif isinstance(value, dict):
            lines += [f"    {name}.{key} = {text}" for key, text in value.items()]
        else:
            lines.append(f"    {name} = {value}")
    return "\n".join(lines) + "\n"


def server_table(running: int) -> str:
    """What ``qstat -B`` prints, of which all jobs run."""
    return (f"Server             Max   Tot   Que   Run   Hld   Wat   Trn   Ext Status\n"
            f"---------------- ----- ----- ----- ----- ----- ----- ----- ----- -----------\n"
            f"{SERVER:<16}     0     9     0 {running:5}     0     0     0     0 Active    ")


def qstat(lab: Lab, arguments: list[str]) -> int:
    ids = [word for word in arguments if word[0].isdigit()]
    if arguments == ["-B", "-f"]:
        lab.say(f"Server: {SERVER}\n    server_host = {SERVER}\n    max_array_size = 10000\n")
        return 0
    if arguments == ["-B"]:
        lab.say(server_table(sum(job["end"] is None for job in lab.jobs())))
        return 0
    history = "-x" in arguments
    if history and not lab.settings["accounting"]:
        lab.err.write("qstat: PBS is not configured to maintain job history\n")
        return 1
    rows = list(lab.accounted() if history else lab.jobs())
    shown: dict[str, dict[str, Any]] = {}
    for job in rows:
        siblings = [row for row in rows if row.get("array") == job["array"]] if "array" in job else [job]
        if not history and all(row["end"] is not None for row in siblings):
            continue
        if "array" in job and (not ids or _whole(job) in ids):
            shown.setdefault(_whole(job), _of_whole(lab, siblings))
        if job["id"] in ids or (not ids and ("array" not in job or "-t" in arguments)):
            shown[job["id"]] = fields(lab, job)
            if not history and job["end"] is not None:
                shown[job["id"]]["job_state"] = "X"
    if "json" in arguments:
        answer = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": SERVER}
        lab.say(json.dumps({**answer, "Jobs": shown} if shown else answer, indent="\t"))
    else:
        for native_id, values in shown.items():
            lab.say(plain(native_id, values))
    for one in ids:
        if one not in shown:
            lab.err.write(f"qstat: Unknown Job Id {one}\n")
    return 153 if set(ids) - shown.keys() else 0


def _of_whole(lab: Lab, elements: list[Record]) -> dict[str, Any]:
    """What qstat says of an array."""
    begun, ended = (any(row["start"] for row in elements), all(row["end"] is not None for row in elements))
    state = "F" if ended else "B" if begun else "H" if elements[0]["held"] else "Q"
    shown = fields(lab, elements[0])
    return {**{name: value for name, value in shown.items() if name not in ("array_id", "array_index", "exec_host")},
            "job_state": state, "array": "True"}


def qselect(lab: Lab, arguments: list[str]) -> int:
    if "-x" in arguments and not lab.settings["accounting"]:
        return 1
    for job in lab.jobs():
        if job["end"] is None or "-x" in arguments:
            lab.say(_whole(job) if "array" in job else job["id"])
    return 0


@each
def qdel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None:
        lab.err.write(f"qdel: Unknown Job Id {arguments[-1]}\n")
        return 153
    if job["end"] is not None:
        lab.err.write(f"qdel: Job has finished {arguments[-1]}\n")
        return 35
    lab.cancel(job)
    lab.kill(job, 9)
    return 0


def _whole_only(name: str, command: Command) -> Command:
    """A command that takes no element of an array. Seen with 23.06."""
    def refusing(lab: Lab, arguments: list[str]) -> int:
        if re.match(r"\d+\[\d+\]", arguments[-1]):
            lab.err.write(f"{name}: Invalid request {arguments[-1]}\n")
            return 1
        return command(lab, arguments)

    return refusing


COMMANDS: dict[str, Command] = {"qsub": qsub, "qstat": qstat, "qselect": qselect, "qdel": qdel,
                                "qalter": changing("qalter: Unknown Job Id\n"),
                                "qmove": changing("qmove: Unknown Job Id\n"),
                                "qhold": _whole_only("qhold", holding(True, "qhold: Unknown Job Id\n")),
                                "qrls": _whole_only("qrls", holding(False, "qrls: Unknown Job Id\n")),
                                "qrerun": rerunning("qrerun: Request invalid for state of job\n")}
