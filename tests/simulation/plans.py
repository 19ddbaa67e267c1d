"""Plans of simulated worlds: plain data, drawn from a seed, that can be kept, made smaller and lived through again.

A plan has clusters (``cluster.Settings`` by name), and steps: what is done, when (``at``, in seconds), on which cluster
(``on``). A step of a client may say when it dies: ``die``, at the so many-th command, commit or copy of a file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["AWAY", "ENDLESS", "LATEST_S", "RETRIES", "STAGED", "Plan", "document", "make_plan", "shrunk"]

Plan = dict[str, Any]
ENDLESS = "sleep 100000"        # a job that only a cancel ends
LATEST_S = 120.0                # when the last step of a plan is
AWAY = "the file server is away"     # why a copy fails for a while
STAGED = "result.txt"           # what a job leaves in its folder
_MORE_RETRIES = ("timeout=1", "memory=1 exit(3)=1", "timeout=1 signal=1 total=1")
RETRIES = ("exit(3)=1", "exit=2", "failed=1", "node-failure=1 exit(200)=1")
_FAULTS = ("refused", "lost request", "lost answer", "cut", "slow", "garbage", "empty", "disk", "late")
_STEPS = ("submit", "submit", "again", "look", "wait", "cancel", "refresh", "stranger", "requeue", "break", "forget",
          "reset", "outage", "storm", "storm", "power")
_ARRAYS = 0.3                   # of the plans have arrays
#: From this seed on users do more than submit, wait and cancel; those before it are kept as tests as they are.
_BUSY_FROM = 12_000_000
_BUSY_STEPS = ("hold", "hold", "release", "rerun", "rerun", "anew", "pause", "prune", "clock", "again", "break")
#: From this seed on there are strangers whose jobs look like ours, accounting that is late by an hour, a disk that is
#: full for a while, requests that are made again for another document, and three clients at once.
_WIDE_FROM = 14_000_000
_WIDE_STEPS = ("double", "double", "full", "full", "other", "other", "crowd", "requeue")
_DEADLY = ("submit", "again", "look", "wait", "cancel")


def make_plan(seed: int) -> Plan:
    """The plan of that number."""
    chance = random.Random(seed)
    clusters = [_cluster(chance, number) for number in range(chance.choice((1, 1, 2)))]
    steps: list[dict[str, Any]] = [{"at": 0.0, "on": chance.randrange(len(clusters)), "do": "submit"}]
    for _ in range(chance.randint(2, 7)):
        steps.append({"at": round(chance.uniform(0, LATEST_S), 1), "on": chance.randrange(len(clusters)),
                      "do": chance.choice(_STEPS)})
    submissions = 0
    for step in steps:
        if step["do"] == "submit":
            step |= {"jobs": _jobs(chance), "token": submissions}
            submissions += 1
    for step in steps:
        step |= _details(chance, step["do"], submissions)
    steps += [{"at": round(step["at"] + chance.uniform(0.5, 15), 1), "on": step["on"], "do": "look"}
              for step in steps if "die" in step and chance.random() < 0.4]
    steps += _no_disk(random.Random(f"disk {seed}"), steps)
    _make_arrays(random.Random(f"arrays {seed}"), steps)
    if seed >= _BUSY_FROM:
        steps += _busy(random.Random(f"busy {seed}"), steps, submissions, len(clusters))
    if seed >= _WIDE_FROM:
        steps += _wide(random.Random(f"wide {seed}"), steps, clusters)
    return {"seed": seed, "clusters": clusters, "steps": sorted(steps, key=lambda step: float(step["at"]))}


def _no_disk(chance: random.Random, steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """In some plans a file server that is away for a while when files are to be staged, and a client that waits."""
    staged = [step for step in steps if any("stage" in job for job in step.get("jobs", ()))]
    if not staged or chance.random() > 0.3:
        return []
    step = chance.choice(staged)
    return [{"at": step["at"], "on": step["on"], "do": "storm", "seconds": round(chance.uniform(10, 30), 1),
             "what": "controller", "faults": ["disk"], "rate": 1.0},
            {"at": round(step["at"] + 1.0, 1), "on": step["on"], "do": "wait", "seconds": 60.0, "clients": 1}]


def _busy(chance: random.Random, steps: Sequence[dict[str, Any]], submissions: int, clusters: int,
          ) -> Iterator[dict[str, Any]]:
    """What users do besides, and what submissions ask for beside their jobs."""
    for step in steps:
        if step["do"] == "submit":
            if chance.random() < 0.2:
                step["cap"] = chance.choice((1, 2))
            if chance.random() < 0.25:
                step["failfast"] = True
            for job in step["jobs"]:
                if chance.random() < 0.15:
                    job["held"] = True
                if "retry" in job and chance.random() < 0.5:
                    job["retry"] = chance.choice(_MORE_RETRIES)
    for _ in range(chance.randint(1, 5)):
        step = {"at": round(chance.uniform(1, LATEST_S), 1), "on": chance.randrange(clusters),
                "do": chance.choice(_BUSY_STEPS)}
        match step["do"]:
            case "hold" | "release" | "rerun" | "anew" | "pause" | "break":
                step["job"] = chance.randrange(4)
            case "again":
                step |= {"name": chance.randrange(submissions), "door": chance.choice("ab")}
            case "clock":
                step["seconds"] = chance.choice((-60.0, -5.0, 5.0, 60.0))
        if step["do"] == "pause":
            step["seconds"] = round(chance.uniform(2, 30), 1)
        if step["do"] == "break":
            step["state"] = chance.choice(("TIMEOUT", "OUT_OF_MEMORY"))
        if step["do"] in ("hold", "release", "rerun", "anew", "again", "prune") and chance.random() < 0.3:
            step["die"] = {"at": chance.choice(("command", "commit", "commit")), "count": chance.randint(1, 6),
                           "before": chance.random() < 0.5}
        yield step


def _wide(chance: random.Random, steps: Sequence[dict[str, Any]], clusters: Sequence[dict[str, Any]],
          ) -> Iterator[dict[str, Any]]:
    """What an unlucky site has besides."""
    for cluster in clusters:
        if chance.random() < 0.15:
            cluster |= {"lag": 3600.0, "purge": 86_400.0}
    submissions = [step for step in steps if step["do"] == "submit"]
    for _ in range(chance.randint(1, 3)):
        step = {"at": round(chance.uniform(0, LATEST_S), 1), "on": chance.randrange(len(clusters)),
                "do": chance.choice(_WIDE_STEPS)}
        match step["do"]:
            case "double":
                step |= {"job": chance.randrange(4), "user": chance.choice(("1000", "2000")),
                         "lasts": chance.choice((2.0, 50.0, 100_000.0)), "cut": chance.choice((1, 8, 12))}
            case "full":
                if any(one["do"] == "power" for one in steps):
                    continue            # that disk loses what it has, and is never full
                step["seconds"] = round(chance.uniform(2, 40), 1)
            case "other":
                earlier = chance.choice(submissions)
                soon = earlier["at"] + chance.choice((0.0, 0.1, 0.5, 20.0))
                step |= {"at": round(soon, 1), "on": earlier["on"], "token": earlier["token"], "jobs": _jobs(chance)}
            case "crowd":
                step |= {"do": "wait", "seconds": round(chance.uniform(5, 60), 1), "clients": 3}
            case "requeue":
                step |= {"job": chance.randrange(4), "state": chance.choice(("NODE_FAIL", "PREEMPTED", "REQUEUED"))}
        yield step


def _make_arrays(chance: random.Random, steps: Sequence[Mapping[str, Any]]) -> None:
    """In some plans jobs that are arrays. Those that leave files stay jobs: one file stands for each of them."""
    if chance.random() < _ARRAYS:
        for job in (job for step in steps for job in step.get("jobs", ())):
            if "stage" not in job and chance.random() < 0.5:
                job["array"] = chance.choice(("1-2", "1-3", "1-3%1", "1-4%2", "2-6:2"))


def _details(chance: random.Random, what: str, submissions: int) -> dict[str, Any]:
    """What more a step says."""
    details: dict[str, Any] = {}
    if what == "wait":
        details |= {"seconds": round(chance.uniform(1, 60), 1), "clients": chance.choice((1, 2))}
    elif what in ("cancel", "again"):
        details["name"] = chance.randrange(submissions)
    elif what == "stranger":
        details |= {"user": chance.choice(("1000", "2000")), "lasts": chance.choice((2.0, 50.0, 100_000.0))}
    elif what in ("requeue", "forget", "break"):
        details |= {"job": chance.randrange(4), "state": chance.choice(("NODE_FAIL", "PREEMPTED", "REQUEUED"))}
    elif what in ("outage", "storm"):
        details |= {"seconds": round(chance.uniform(2, 60), 1), "what": chance.choice(("controller", "accounting")),
                    "faults": chance.sample(_FAULTS, 2), "rate": chance.choice((0.2, 0.5, 1.0)),
                    **({"at": 0.0} if chance.random() < 0.3 else {})}
    elif what == "power":
        details["operations"] = chance.randint(1, 120)
    if what in _DEADLY and chance.random() < 0.4:
        details["die"] = {"at": chance.choice(("command", "commit", "commit", "copy")), "count": chance.randint(1, 8),
                          "before": chance.random() < 0.5}
    return details


def _cluster(chance: random.Random, number: int) -> dict[str, Any]:
    first = chance.choice((1, 1, 40))
    return {"name": chance.choice(("lab", f"lab{number}")), "kind": chance.choice(("slurm", "slurm", "sge")),
            "first": first, "last": chance.choice((first + 5, first + 40, 1_000_000)),
            "wait": chance.choice((0.0, 1.0, 8.0)), "slots": chance.choice((1, 4, 100)),
            "forget": chance.choice((0.0, 2.0, 300.0)), "lag": chance.choice((0.0, 1.0, 5.0)),
            "steps": chance.choice((0.0, 0.0, 3.0)), "unknown": chance.choice((0.0, 2.0)),
            "purge": chance.choice((86_400.0, 86_400.0, 30.0)), "clock": chance.choice((0.0, 0.0, -40.0, 40.0)),
            "late": chance.choice((0.0, 0.5, 3.0)), "accounting": chance.random() < 0.9,
            "limit": chance.choice((1000, 1000, 2)), "ancient": chance.random() < 0.4}


def _jobs(chance: random.Random) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    for number in range(chance.randint(1, 4)):
        lasts = chance.choice((0.2, 1.5, 5.0, 30.0))
        script = chance.choice((f"sleep {lasts}; exit {chance.choice((0, 0, 0, 3, 200))}",) * 4 + (ENDLESS,))
        job: dict[str, Any] = {"script": script}
        if number and chance.random() < 0.4:
            job |= {"after": chance.randrange(number), "condition": chance.choice(("OnSuccess", "OnFailure", "OnExit"))}
        if chance.random() < 0.25:
            job["stage"] = chance.choice(("out", "clean"))
        if chance.random() < 0.25:
            job["retry"] = chance.choice(RETRIES)
        jobs.append(job)
    return jobs


def document(jobs: Sequence[Mapping[str, Any]], folder: Path, prefix: str = "a", failfast: bool = False) -> str:
    """A group of jobs a0, a1, ... folder: where those work that leave files; what they leave is brought to ``back`` in
    it. failfast: the group ends with its first failure."""
    parts = []
    for number, job in enumerate(jobs):
        name = f"{prefix}{number}"
        more = ""
        if "after" in job:
            more += (f"<Dependency condition='{job['condition']}' designator='JobId'>{prefix}{job['after']}"
                     "</Dependency>")
        if "stage" in job:
            more += f"<InitialWorkingDirectory>{folder / name}</InitialWorkingDirectory>"
            more += _extension("PSIJ", "StageOut", json.dumps(
                {"source": STAGED, "target": str(folder / "back" / name), "flags": "IF_PRESENT|ALWAYS"}))
        if job.get("stage") == "clean":
            more += _extension("PSIJ", "Cleanup", STAGED)
        if "array" in job:
            more += _extension("Scheduler", "Array", job["array"])
        if "retry" in job:
            more += _extension("Scheduler", "Retry", job["retry"])
        if "held" in job:
            more += "<Hold>User</Hold>"
        parts.append(f"<Job><Id>{name}</Id><Executable>/bin/sh</Executable><Arguments>-c '{job['script']}'</Arguments>"
                     f"<Environment export='true'/>{more}</Job>")
    defaults = f"<JobDefaults>{_extension('Scheduler', 'OnFailure', 'fail-fast')}</JobDefaults>" if failfast else ""
    return f"<JobGroup>{defaults}{''.join(parts)}</JobGroup>"


def _extension(kind: str, name: str, text: str) -> str:
    return f'<Extension type="{kind}" name="{name}">{text}</Extension>'


# --- smaller plans ---------------------------------------------------------------------------------------------------

#: What is odd about a cluster, and how it is where that does not matter.
_PLAIN = {"wait": 0.0, "slots": 100, "forget": 300.0, "lag": 0.0, "steps": 0.0, "unknown": 0.0, "clock": 0.0,
          "late": 0.0, "accounting": True, "limit": 1000, "ancient": False, "last": 1_000_000, "purge": 86_400.0}


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The plan without all that its failure does not need: steps, jobs, deaths, and what is odd about clusters."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(plan):
            if fails(candidate):
                plan, smaller = candidate, True
                break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    steps = plan["steps"]
    for place, step in enumerate(steps):
        before, after = steps[:place], steps[place + 1:]
        tokens = {other["token"] for other in (*before, *after) if other["do"] == "submit"}
        if all(other.get("name", 0) in tokens for other in (*before, *after) if other["do"] == "again"):
            yield {**plan, "steps": [*before, *after]}
        if "die" in step:
            yield {**plan, "steps": [*before, {k: v for k, v in step.items() if k != "die"}, *after]}
        for name in ("cap", "failfast", "door"):
            if name in step:
                yield {**plan, "steps": [*before, {k: v for k, v in step.items() if k != name}, *after]}
        yield from ({**plan, "steps": [*before, {**step, "jobs": jobs}, *after]} for jobs in _fewer(step))
    for place, cluster in enumerate(plan["clusters"]):
        for name, value in _PLAIN.items():
            if cluster[name] != value:
                clusters = [*plan["clusters"]]
                clusters[place] = {**cluster, name: value}
                yield {**plan, "clusters": clusters}


def _fewer(step: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The jobs of a step without one of them, or without what is odd about one."""
    jobs = step.get("jobs", [])
    for last in range(len(jobs) - 1, -1, -1):
        kept = [job for at, job in enumerate(jobs) if at != last]
        if kept and all(job.get("after", 0) < len(kept) for job in kept):
            yield kept
        for name in ("stage", "retry", "array", "held"):
            if name in jobs[last]:
                plain = {key: value for key, value in jobs[last].items() if key != name}
                yield [*jobs[:last], plain, *jobs[last + 1:]]
