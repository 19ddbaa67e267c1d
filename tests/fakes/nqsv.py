"""A stand-in for NQSV: qsub, qstat, qdel, in the forms that psij uses; what is not known of it is made up here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.fakes.lab import Command, Lab, Record, changing, each, holding, rerunning

SERVER = "nqsv"


def directives(script: Path) -> list[list[str]]:
    """Options of the #PBS lines up to the first command."""
    directives = []
    for line in script.read_text(errors="surrogateescape").splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#PBS "):
            option, _, value = line[5:].partition("=" if line.startswith("#PBS --") else " ")
            directives.append([option.lstrip("-"), value])
    return directives


def qsub(lab: Lab, arguments: list[str]) -> int:
    values = dict(directives(Path(arguments[-1])))
    if values.get("q") == "nosuch":
        lab.err.write("qsub: No such queue.\n")
        return 1
    job = lab.submit(Path(arguments[-1]), str, _environment, name=values["N"], options=list(values.items()),
                     held="h" in values, queue=values.get("q", "gen_S"))
    lab.say(f"Request {job['id']}.{SERVER} submitted to queue: {job['queue']}.")
    return 0


def _environment(job: Record) -> Mapping[str, str]:
    nodes = Path(job["script"] + ".nodes")
    nodes.write_text("".join(f"node{n + 1}\n" for n in range(int(dict(job["options"]).get("b", 1)))))
    return {"PBS_JOBID": f"0:{job['id']}.{SERVER}", "PBS_NODEFILE": str(nodes)}


def qstat(lab: Lab, arguments: list[str]) -> int:
    fields = arguments[arguments.index("-F") + 1].split(",")
    ids = [word for word in arguments if word.isdecimal()]
    shown = {job["id"]: job.get("state") or ("RUN" if job["start"] else "HLD" if job["held"] else "QUE")
             for job in lab.jobs() if job["end"] is None}
    for one in ids or shown:
        if one in shown:
            lab.say(f"{one}.{SERVER}  {shown[one] if 'stt' in fields else ''}".rstrip())
        else:
            lab.say(f"Batch Request: {one}.{SERVER} does not exist on {SERVER}.")
    return 0


@each
def qdel(lab: Lab, arguments: list[str]) -> int:
    job = lab.job(arguments[-1])
    if job is None or job["end"] is not None:
        lab.err.write(f"Batch Request: {arguments[-1]}.{SERVER} does not exist on {SERVER}.\n")
        return 1
    lab.cancel(job)
    lab.kill(job, 9)
    lab.say(f"Request {job['id']}.{SERVER} was deleted.")
    return 0


COMMANDS: dict[str, Command] = {"qsub": qsub, "qstat": qstat, "qdel": qdel,
                                "qalter": changing("qalter: Unknown Job Id\n"),
                                "qmove": changing("qmove: Unknown Job Id\n"),
                                "qhold": holding(True, "qhold: Unknown Job Id\n"),
                                "qrls": holding(False, "qrls: Unknown Job Id\n"),
                                "qrerun": rerunning("qrerun: Request invalid for state of job\n")}
