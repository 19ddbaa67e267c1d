"""A stand-in for HTCondor: condor_submit, condor_q, condor_history, condor_rm, in the forms that psij uses."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.lab import Command, Lab, Record, changing, each, holding, rerunning

_WORD = re.compile(r"'((?:[^']|'')*)'|(\S+)")


def description(path: Path) -> dict[str, str]:
    """Commands of a submit description, with the macros that psij uses."""
    description = {}
    for line in path.read_text().splitlines():
        if line != "queue 1":
            name, value = line.split(" = ", 1)
            value = value.replace("$(ClusterId)", "%j").replace("$(ProcId)", "0").replace("$(DOLLAR)", "$")
            description[name] = value
    return description


def condor_submit(lab: Lab, arguments: list[str]) -> int:
    path = Path(arguments[-1])
    given = description(path)
    if given.get("accounting_group") == "nosuch":
        lab.err.write("\nERROR: Invalid accounting_group: nosuch\n")
        return 1
    words = [quoted.replace("''", "'") or plain
             for quoted, plain in _WORD.findall(given["arguments"][1:-1].replace('""', '"'))]
    wrapper = path.with_name(f"{path.name}.wrapper")
    wrapper.write_text(f"exec /bin/bash '{words[0]}' \"$FAKE_CONDOR_ID\"\n")
    job = lab.submit(wrapper, lambda number: f"{number}.0", lambda job: {"FAKE_CONDOR_ID": job["id"]}, given=given,
                     played=Path(words[0]), name=given["MY.JobBatchName"], tag=json.loads(given["MY.SssjobId"]),
                     output=given["output"],
                     held=given.get("hold") == "true")
    wrapper.unlink()
    lab.say(f"{job['id']} - {job['id']}")
    return 0


def _status(job: Record) -> int:
    if job.get("state"):        # set by a test
        return int(job["state"])
    if job["end"] is not None:
        return 3 if job["canceled"] or job.get("why") else 4
    return 2 if job["start"] else 5 if job["held"] else 1


def _ad(job: Record) -> Mapping[str, Any]:
    status = _status(job)
    cluster, process = map(int, job["id"].split("."))
    ad: dict[str, Any] = {"ClusterId": cluster, "ProcId": process, "JobStatus": status, "QDate": int(job["submit"]),
                          "SssjobId": job["tag"]}
    if status == 5:
        ad |= {"HoldReason": job.get("hold_reason", "submitted on hold"), "HoldReasonCode": 15}
    if job["start"] is not None:
        ad |= {"JobStartDate": int(job["start"]), "RemoteHost": "slot1_1@node1", "CpusProvisioned": 1}
    if job["end"] is not None:
        ad |= {"EnteredCurrentStatus": int(job["end"]), "CompletionDate": 0 if status == 3 else int(job["end"]),
               "RemoteWallClockTime": job["end"] - (job["start"] or job["end"]), "NumJobStarts": 1,
               "LastRemoteHost": "slot1_1@node1", "RemoteUserCpu": 1.0, "RemoteSysCpu": 0.5,
               "ResidentSetSize_RAW": 52424}
        if status == 3:
            ad["RemoveReason"] = job.get("why") or "via condor_rm (by user alice)"
        elif job["signal"]:
            ad |= {"ExitBySignal": True, "ExitSignal": job["signal"]}
        else:
            ad |= {"ExitBySignal": False, "ExitCode": job["exit"]}
    return ad


def _show(lab: Lab, jobs: list[Record], arguments: list[str]) -> int:
    ads = [_ad(job) for job in jobs]
    if "-constraint" in arguments:
        said = arguments[arguments.index("-constraint") + 1]
        tags = [json.loads(one.removeprefix("SssjobId == ")) for one in said.split(" || ") if "==" in one]
        ads = [ad for ad in ads if ad["SssjobId"] in tags or said == "SssjobId isnt undefined"]
    names = arguments[arguments.index("-attributes") + 1].split(",")
    if ads:     # nothing is printed for none
        lab.say(json.dumps([{name: ad[name] for name in names if name in ad} for ad in ads]))
    return 0


def condor_q(lab: Lab, arguments: list[str]) -> int:
    return _show(lab, [job for job in lab.jobs() if job["end"] is None], arguments)


def condor_history(lab: Lab, arguments: list[str]) -> int:
    if not lab.settings["accounting"]:
        lab.err.write("Error: No history file is defined\n")
        return 1
    ids = [word for word in arguments if re.fullmatch(r"\d+\.\d+", word)]
    jobs = [job for job in lab.accounted() if job["end"] is not None and (job["id"] in ids or not ids)]
    return _show(lab, jobs, arguments)


@each
def condor_rm(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None or job["end"] is not None:
        lab.say(f"Job {arguments[-1]} not found")
        return 1
    lab.cancel(job)
    lab.say(f"Job {arguments[-1]} marked for removal")
    return 0


COMMANDS: dict[str, Command] = {"condor_submit": condor_submit, "condor_q": condor_q, "condor_history": condor_history,
                                "condor_rm": condor_rm,
                                "condor_qedit": changing("Couldn't find/modify all jobs\n"),
                                "condor_hold": holding(True, "Couldn't find/hold all jobs\n"),
                                "condor_release": holding(False, "Couldn't find/release all jobs\n"),
                                "condor_vacate_job": rerunning("Job not running to be vacated\n")}
