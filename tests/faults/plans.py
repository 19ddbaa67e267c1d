"""Random plans: clients submit, look, wait and cancel while commands fail, jobs vanish and clients are killed.

``python -m tests.faults.plans FIRST COUNT FOLDER``: a JSON line for each plan with what was wrong after it. The number
of a plan is its seed; ``--show NUMBER`` prints the plan itself, ``--plan FILE FOLDER`` carries out the one in a
file. Clients are forked, use the journal as the commands do, and run the stand-in's commands inside
(``tests.fakes.inside``), so that a fault can kill them just before
or just after a command has done its work.

When the storm is over all faults end, one more client waits for everything, and then every job that was ever accepted
has an end that is the stand-in's truth (P1, P3), at most one native job (P2), and was told to callbacks in order, once
a state (P4).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from psij import JobState
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.findings import Policy
from sssjob.run.client import Client
from sssjob.run.events import Listener
from sssjob.run.journal import open_journal
from sssjob.xml.reader import read_document
from tests.fakes import cobalt, htcondor, nqsv, pbs, pbs_classic, sge, slurm
from tests.fakes.inside import enter
from tests.fakes.lab import Lab, Record, install
from tests.psij.batch_support import FASTEST, hurried

__all__ = ["MANAGERS", "carry_out", "make_plan"]

_LANES = 8 if os.environ.get("SSSJOB_SOAK") == "1" else 3      # a few plans run beside other tests
_TICK_S = 0.02
#: How often jobs may have been looked at before a client has ended: a minute, and the longer the busier the machine is.
_MOST_TICKS = 3500
_ALONE_S = 900.0        # after which a client that nobody waits for any more ends
_LONG = "sleep 600"     # a job that only a cancel ends

Fault = dict[str, Any]
Plan = dict[str, Any]


class Manager:
    """A resource manager. later: what its submit command says when a job may be taken later."""

    def __init__(self, fake: ModuleType, submit: str, ask: tuple[str, ...], cancel: str, later: str | None = None,
                 **settings: list[Any]) -> None:
        self.fake, self.submit, self.ask, self.cancel, self.later = fake, submit, ask, cancel, later
        self.settings = {"wait": [0, 0, 0.2], **settings}


MANAGERS = {
    "slurm": Manager(slurm, "sbatch", ("squeue", "sacct", "scontrol"), "scancel",
                     "sbatch: error: Unable to contact slurm controller (connect failure)", forget=[0, 0.3, 300],
                     lag=[0, 0.3], late=[0, 0.1]),
    "sge": Manager(sge, "qsub", ("qstat", "qacct"), "qdel", lag=[0, 0.3], late=[0, 0.1]),
    "pbs": Manager(pbs, "qsub", ("qstat", "qselect"), "qdel", lag=[0, 0.3]),
    "pbs_classic": Manager(pbs_classic, "qsub", ("qstat",), "qdel", forget=[0.3, 300]),
    "cobalt": Manager(cobalt, "qsub", ("qstat",), "qdel"),
    "nqsv": Manager(nqsv, "qsub", ("qstat",), "qdel"),
    "htcondor": Manager(htcondor, "condor_submit", ("condor_q", "condor_history"), "condor_rm", forget=[0, 300])}


# --- making one ----------------------------------------------------------------------------------------------------

def make_plan(seed: int) -> Plan:
    """The plan of that number."""
    chance = random.Random(seed)
    name = chance.choice([*MANAGERS, "slurm", "slurm"])
    manager = MANAGERS[name]
    settings = {key: chance.choice(values) for key, values in manager.settings.items()}
    steps: list[dict[str, Any]] = []
    submissions = 0
    for _ in range(chance.randint(5, 9)):
        kind = chance.choice(["submit", "submit", "look", "wait", "cancel", "drop", "rest"] if submissions else
                             ["submit"])
        if chance.random() < 0.6:
            steps.append({"do": "fault", **_a_fault(chance, manager, kind)})
        step: dict[str, Any] = {"do": kind}
        if kind == "submit":
            submissions += 1
            step["jobs"] = _jobs(chance)
        elif kind == "cancel":
            step["name"] = f"@{chance.randint(1, submissions)}"
        elif kind == "drop":
            step["job"] = chance.randint(0, 3)
        if kind in ("rest", "wait"):
            step["seconds"] = round(chance.uniform(0.05, 0.5), 2)
        if kind not in ("rest", "drop"):
            step["beside"] = chance.random() < 0.25
            if chance.random() < 0.2:
                step["kill"] = round(chance.uniform(0.0, 0.25), 3)
        steps.append(step)
        if chance.random() < 0.3:
            steps.append({"do": "heal"})
    return {"seed": seed, "manager": name, "settings": settings, "steps": steps}


def _jobs(chance: random.Random) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    for number in range(chance.randint(1, 3)):
        script = chance.choice([f"sleep {chance.uniform(0, 0.4):.2f}; exit {chance.choice([0, 0, 3, 200])}", _LONG])
        job: dict[str, Any] = {"script": script}
        if number and chance.random() < 0.4:
            job |= {"after": chance.randrange(number), "condition": chance.choice(["OnSuccess", "OnFailure", "OnExit"])}
        jobs.append(job)
    return jobs


def _a_fault(chance: random.Random, manager: Manager, kind: str) -> Fault:
    roles = {"submit": manager.submit, "cancel": manager.cancel}
    command = roles[kind] if kind in roles and chance.random() < 0.6 else chance.choice(manager.ask)
    submits = command == manager.submit
    fault: Fault = chance.choice([
        {"kill": "before"}, {"kill": "after"}, {"kill": "after"}, {"sleep": 5}, {"sleep": 5, "after": True},
        {"after": True, "stdout": "hm\n"}, {"stdout": ""}, {"exit": -9, "after": True}, {"exit": -9},
        {"exit": 1, "stderr": manager.later or "down"} if not submits or manager.later else {"stdout": "hm\n"},
        {"exit": 1, "stderr": "no"} if not submits else {"exit": 1, "stderr": "invalid account"},
        {"cut": chance.randint(0, 300)} if not submits else {"after": True, "stdout": ""},
        {"edit": [["^", "\x1b "]]} if not submits else {"after": True, "exit": 0, "stdout": "warning\n"}])
    return {"command": command, "skip": chance.choice([0, 0, 0, 1, 2, 5]), "times": chance.choice([1, 1, 2, 5]),
            **fault}


# --- carrying it out -----------------------------------------------------------------------------------------------

def carry_out(plan: Plan, folder: Path) -> list[str]:
    """Do all of it; what is wrong afterwards."""
    manager = MANAGERS[plan["manager"]]
    folder.mkdir(parents=True)
    lab = install(str(manager.fake.__file__), manager.fake.COMMANDS, folder / "lab", folder / "bin", forked=False)
    lab.set(virtual=True, **plan["settings"])
    dropped: list[Record] = []
    beside: list[int] = []
    for step in plan["steps"]:
        if step["do"] == "fault":
            lab.fault(step["command"], **{key: step[key] for key in step.keys() - {"do", "command"}})
        elif step["do"] == "heal":
            _heal(lab, manager)
        elif step["do"] == "rest":
            _ticking(lab, step["seconds"])
        elif step["do"] == "drop":
            for job in lab.jobs()[step["job"]:step["job"] + 1]:
                if (gone := lab.drop(job["id"])) is not None:
                    dropped.append(gone)
        else:
            pid = _fork(lambda step=step: _act(plan, step, folder))     # type: ignore[misc]
            if "kill" in step:
                _ticking(lab, step["kill"])
                os.kill(pid, signal.SIGKILL)
            if step.get("beside"):
                beside.append(pid)
            else:
                _wait(lab, pid)
    _heal(lab, manager)
    for pid in beside:
        _wait(lab, pid)
    _wait(lab, _fork(lambda: _note_before(folder)))
    _wait(lab, _fork(lambda: _settle(plan, folder)))
    return [*complaints(folder, lab, dropped, plan)]


def _heal(lab: Lab, manager: Manager) -> None:
    for command in (manager.submit, *manager.ask, manager.cancel):
        lab.heal(command)


def _ticking(lab: Lab, seconds: float) -> None:
    until = time.monotonic() + seconds
    while (remaining := until - time.monotonic()) > 0:
        lab.tick()
        time.sleep(min(remaining, _TICK_S))


def _wait(lab: Lab, pid: int) -> None:
    """Let a client come to its end, while jobs live."""
    for _ in range(_MOST_TICKS):
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return
        _ticking(lab, _TICK_S)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise TimeoutError("a client does not come to its end")


def _fork(act: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    return pid


def _client(plan: Plan, folder: Path) -> Client:
    """In a process of its own: a client whose every callback is noted."""
    manager = MANAGERS[plan["manager"]]
    patch = pytest.MonkeyPatch()
    hurried(patch)
    patch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    enter(patch, Lab(folder / "lab"), manager.fake.COMMANDS)
    calls = os.open(folder / "callbacks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    listener = Listener.job_status_changed
    kept = []

    def note(self: Any, job: Any, status: Any) -> None:
        kept.append(self)       # so that no other one gets its id
        os.write(calls, f"{os.getpid()} {id(self)} {status.state.name}\n".encode())
        listener(self, job, status)

    patch.setattr(Listener, "job_status_changed", note)
    patient = {"command_timeout": 3.0} if plan["manager"] == "pbs" else {}      # some of its questions are processes
    patient["lost_after"] = 2.5         # a busy machine may stand still for longer than FASTEST allows
    config = BatchSchedulerExecutorConfig(work_directory=folder / "work", **{**FASTEST, **patient})
    return Client(open_journal(folder / "journal.db"), config=config)


def document(jobs: list[dict[str, Any]]) -> str:
    """A group of jobs a0, a1, ..."""
    parts = []
    for number, job in enumerate(jobs):
        needs = f"<Dependency condition='{job['condition']}' designator='JobId'>a{job['after']}</Dependency>" \
            if "after" in job else ""
        parts.append(f"<Job><Id>a{number}</Id>{needs}<Executable>/bin/sh</Executable>"
                     f"<Arguments>-c '{job['script']}'</Arguments><Environment export='true'/></Job>")
    return f"<JobGroup>{''.join(parts)}</JobGroup>"


def _act(plan: Plan, step: dict[str, Any], folder: Path) -> None:
    client = _client(plan, folder)
    if "die" in step:
        _die(*step["die"])
    entries = [client.journal.entry(number) for number in dict.fromkeys(r.submission for r in client.journal.rows())]
    if step["do"] == "submit":
        client.submit(read_document(document(step["jobs"]).encode()), plan["manager"], policy=Policy.IGNORE, cwd=folder)
    elif step["do"] == "look":
        client.look(entries, 1.0)
    elif step["do"] == "wait" and entries:
        client.wait([f"@{entry.number}" for entry in entries], step["seconds"])
    elif step["do"] == "cancel" and step["name"] in [f"@{entry.number}" for entry in entries]:
        client.cancel([step["name"]], 1.0)


def _die(module: str, name: str, when: str, count: int) -> None:
    """Have this process killed before or after a method does its work for the count-th time."""
    owner, _, method = name.rpartition(".")
    place = getattr(sys.modules[module], owner)
    work, calls = getattr(place, method), iter(range(1, 1000))

    def dies(*arguments: Any, **more: Any) -> Any:
        last = next(calls) == count
        if last and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = work(*arguments, **more)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(place, method, dies)


def _settle(plan: Plan, folder: Path) -> None:
    """The last client: ends what would not end, and waits for all."""
    client = _client(plan, folder)
    names = [f"@{number}" for number in dict.fromkeys(r.submission for r in client.journal.rows())]
    if names:
        endless = [r.key for r in client.journal.rows() if _script(plan, client, r) == _LONG]
        client.wait(names, 0.3)
        if endless:
            client.cancel(endless, 1.0)
        client.wait(names, _ALONE_S)


def _script(plan: Plan, client: Client, row: Any) -> str:
    return _LONG if _LONG in client.journal.entry(row.submission).document.split("<Job>")[row.job + 1] else ""


# --- judging it ----------------------------------------------------------------------------------------------------

def complaints(folder: Path, lab: Lab, dropped: list[Record], plan: Plan) -> Iterator[str]:
    """What is not as promised."""
    natives: dict[str, Record] = {job["tag"]: job for job in [*dropped, *lab.jobs()]}
    gone = {job["tag"] for job in dropped}
    tags: set[str] = set()
    with open_journal(folder / "journal.db") as journal:
        rows = [(row, [event for event in journal.entry(row.submission).events() if event.job == row.job])
                for row in journal.rows()]
    for row, events in rows:
        of_job = [event.data["tag"] for event in events if event.kind == "intent"]
        tags |= set(of_job)
        of_this = [natives[tag] for tag in of_job if tag in natives]
        what = f"{row.key} ({row.native_id}, {row.outcome}, {row.exit_code})"
        if len([job for job in of_this if job["tag"] not in gone and (job["start"] or not job["canceled"])]) > 1:
            yield f"doubled: {what}: {[job['id'] for job in of_this]}"
        if row.outcome is None:
            yield f"lost: {what} has no end"
        elif (row.outcome, row.exit_code) not in _truths(of_this, gone, events, plan):
            yield f"not true: {what}: {[_summary(job) for job in of_this]}, {_message(events)}"
        yield from _order(what, [event.data["state"] for event in events if event.kind == "status"])
    for tag in natives.keys() - tags:
        yield f"nobody's: native job {natives[tag]['id']}"
    heard: dict[tuple[str, str], list[str]] = {}
    calls = folder / "callbacks"
    for line in calls.read_text().splitlines() if calls.exists() else ():
        pid, job, state = line.split()
        heard.setdefault((pid, job), []).append(state)
    for (pid, job), states in heard.items():
        yield from _order(f"callbacks of {job} in {pid}", states)


def _truths(natives: list[Record], gone: set[str], events: list[Any], plan: Plan) -> set[tuple[str, int | None]]:
    """Ends that are true of a job."""
    canceled = any(event.kind == "cancel" for event in events)
    if not natives:
        refused = any(event.kind == "intent" for event in events)       # it was tried, and no job was made
        return {("skipped", None), *([("canceled", None)] if canceled else []),
                *([("failed", None)] if refused else [])}
    truths: set[tuple[str, int | None]] = set()
    for job in natives:
        if job["tag"] in gone:
            truths |= {("failed", None), ("canceled", None)} if canceled else {("failed", None)}
        if job["start"] is None:
            truths.add(("skipped", None))        # submitted with its dependencies, and their answer came first
        if job["canceled"]:
            truths.add(("canceled", None))
            if plan["manager"] in _TELLS_NO_CANCEL:
                truths.add(("failed", None))     # its record is that of any kill, and who asked for it may be gone
        elif job["end"] is not None:
            truths.add(("failed" if job["exit"] else "done", job["exit"]))
    return truths


_TELLS_NO_CANCEL = ("sge", "pbs_classic", "nqsv", "cobalt")


def _order(what: str, names: list[str]) -> Iterator[str]:
    states = [JobState[name] for name in names]
    for before, after in pairwise(states):
        if not after.is_greater_than(before):
            yield f"order: {what}: {names}"
            return


def _summary(job: Record) -> dict[str, Any]:
    return {key: job[key] for key in ("id", "start", "end", "exit", "signal", "canceled")}


def _message(events: list[Any]) -> str:
    return next((str(event.data.get("message")) for event in reversed(events) if event.kind == "ended"), "")


# --- many ----------------------------------------------------------------------------------------------------------

def sweep(seeds: Iterator[int], folder: Path) -> None:
    """Carry out plans, several at a time."""
    running: set[int] = set()
    for seed in seeds:
        running.add(_fork(lambda seed=seed: _one(seed, folder / str(seed))))    # type: ignore[misc]
        if len(running) >= _LANES:
            running.discard(os.wait()[0])
    while running:
        running.discard(os.wait()[0])


def _one(seed: int, folder: Path) -> None:
    began, plan = time.monotonic(), make_plan(seed)
    os.nice(5)
    try:
        wrong = carry_out(plan, folder)
    except Exception as error:
        wrong = [repr(error)]
    outcome = {"seed": seed, "manager": plan["manager"], "wrong": wrong, "seconds": round(time.monotonic() - began, 1)}
    sys.stdout.write(json.dumps(outcome) + "\n")
    sys.stdout.flush()
    if not wrong:
        with suppress(OSError):
            shutil.rmtree(folder)


def _note_before(folder: Path) -> None:
    """What the journal says before anybody is asked."""
    (folder / "before").write_text(json.dumps(_told(folder)))


def _told(folder: Path) -> list[list[Any]]:
    with open_journal(folder / "journal.db") as journal:
        rows = journal.rows()
    return [[row.id, row.native_id, row.outcome, row.exit_code] for row in rows]


def main() -> None:
    """Do what the arguments say."""
    if sys.argv[1] == "--plan":         # one that stands in a file; what was wrong, the jobs, and the native jobs
        place = Path(sys.argv[3])
        wrong = carry_out(json.loads(Path(sys.argv[2]).read_text()), place)
        print(json.dumps({"wrong": wrong, "before": json.loads((place / "before").read_text()), "jobs": _told(place),
                          "native": [_summary(job) for job in
                                                                          Lab(place / "lab").jobs()]}))
    elif sys.argv[1] == "--show":
        print(json.dumps(make_plan(int(sys.argv[2])), indent=1))
    else:
        first, count = int(sys.argv[1]), int(sys.argv[2])
        sweep(iter(range(first, first + count)), Path(sys.argv[3]))


if __name__ == "__main__":
    main()
