"""Two Slurms of one name, which both count from 1, and a Grid Engine share one home and one journal, while clients
submit, look, wait, cancel, hold, suspend, change, run again, prune and are killed, others do things by hand, daemons
stand still or are killed, and queues are full: no document says what did not happen, and nobody's job is cancelled but
ours where somebody asked for it.

What really happened is written by the jobs themselves: on which cluster they ran, under which id, when they began and
how they ended; documents are held against that and against accounting. ``SSSJOB_LAB_ACTIONS`` is the number of actions
(40; 500 with ``SSSJOB_SOAK=1``), ``SSSJOB_LAB_SEED`` what they are drawn from. What was done stands in the file
``done`` of the folder of the test.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.errors import UnknownJobError, UsageError
from sssjob.findings import Policy
from sssjob.lrm.sge import NO_TIME
from sssjob.run.changing import change_of
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.run.on_end import hook_of
from sssjob.run.pruning import prune
from sssjob.run.rows import Row
from sssjob.run.standing import Running
from sssjob.xml.reader import read_document
from tests.labs.test_lab_identity import CANCEL, HERE, REAL, a_slurm
from tests.psij.test_batch_labs import LABS, enter_lab
from tests.run.support import group, shell

pytestmark = pytest.mark.lab
SOAK = os.environ.get("SSSJOB_SOAK") == "1"
ACTIONS = int(os.environ.get("SSSJOB_LAB_ACTIONS") or (500 if SOAK else 40))
SEED = int(os.environ.get("SSSJOB_LAB_SEED") or 1)
ENDLESS_S = 600
AT_ONCE = 3             # clients beside each other
STANDS_STILL_S = 6.0    # the longest: less than ``lost_after``
SETTLED_S = 400.0       # until all has ended in the end: more than a record of a runaway job counts
LATE_S = 15             # by which a manager may start a job's script late, or learn of its end, on a busy machine
UNSAVED_S = 10.0        # that a controller may not have written down yet
LONG_S = 40.0           # the longest that accounting, or room in a queue, is away
NATIVE_ID = {"slurm": "$SLURM_JOB_ID", "sge": "$JOB_ID"}
CONTROLLER = {"slurm": "slurmctld", "sge": "sge_qmaster"}
DAEMON = {"slurm": "slurmd-node1", "sge": "sge_execd"}
DOINGS = ("submit",) * 12 + ("look", "wait", "cancel", "stranger") * 2 + (
    "cancel", "by hand", "controller", "accounting", "restart", "killed", "daemon", "no accounting", "full", "prune",
    "again", "rerun", "requeue", "hold", "hold", "release", "release", "suspend", "resume", "change")
#: What others may do by hand with a job of ours that runs.
BY_HAND = {("slurm", "requeue"): ("scontrol", "requeue"), ("slurm", "by hand"): ("scancel",),
           ("sge", "requeue"): ("qmod", "-rj"), ("sge", "by hand"): ("qdel",)}
RESCHEDULED = "rescheduled"     # for a time of a record of a job that Grid Engine put back before it knew of its start
HOOK = "/bin/sh -c 'echo $SSSJOB_KEY >> %s/keys'"
CONFIG: dict[str, Any] = {key: value for key, value in REAL.items() if key != "real"}


# --- what there is --------------------------------------------------------------------------------------------------

class Site(NamedTuple):
    """A cluster. environment: of those who talk to it."""

    name: str
    executor: str
    folder: Path
    environment: dict[str, str]

    def pid(self, daemon: str) -> int | None:
        """The process of a daemon of the lab; None while it does not run."""
        for line in (self.folder / "procs").read_text().splitlines():
            pid, _, _, name = line.split()
            if name == daemon and Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        return None

    def running(self) -> set[tuple[str, str]]:
        """Names and ids of all jobs that run now."""
        words = ("squeue", "-h", "-t", "R", "-o", "%j %A") if self.executor == "slurm" else ("qstat", "-s", "r", "-r")
        lines = self.tell(*words).stdout
        if self.executor == "slurm":
            return {(name, native_id) for name, native_id in map(str.split, lines.splitlines())}
        return set(zip(re.findall(r"Full jobname: +(\S+)", lines), re.findall(r"(?m)^ *(\d+) ", lines), strict=False))

    def records(self) -> dict[tuple[str, str], list[list[str]]]:
        """What accounting has of all jobs: start and end in seconds since the epoch, and nodes, by id and name."""
        records: dict[tuple[str, str], list[list[str]]] = {}
        if self.executor == "slurm":
            answer = self.tell("env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-1days",
                               "-o", "JobID,JobName,Start,End,NodeList").stdout
            lines = [line.split("|") for line in answer.splitlines()]
        else:
            fields = [dict(re.findall(r"(?m)^(\w+) +(.*?) *$", record))
                      for record in self.tell("qacct", "-j", "*").stdout.split("=" * 62)[1:]]
            lines = [[record["jobnumber"] + ("" if record["taskid"] == "undefined" else f".{record['taskid']}"),
                      record["jobname"], *(RESCHEDULED if record["failed"].startswith("25 ") and time == NO_TIME
                                           else _epoch(time)
                                           for time in (record["start_time"], record["end_time"])),
                      record["hostname"]] for record in fields]
        for native_id, name, *rest in lines:
            records.setdefault((native_id, name), []).append(rest)
        return records

    def tell(self, *words: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of the manager. user: another one."""
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False, timeout=60,
                              user=user, cwd="/")


class Job(NamedTuple):
    """What was asked for. after: the number of the job that it waits for, and how that has to end."""

    name: str
    site: Site
    seconds: float
    code: int
    after: tuple[str, str] | None = None
    elements: int = 0
    retried: bool = False       # its first attempt fails with 3, the second one ends with its code
    staged: bool = False        # it leaves a file that is brought to ``back``
    held: bool = False

    def text(self) -> str:
        """As a Job that tells by itself what happens to it."""
        native = NATIVE_ID[self.site.executor]
        # where it runs, whoever submits it: there is one Grid Engine, and clients of each Slurm have a variable
        site = "sge" if self.site.executor == "sge" else "$STORM_SITE"
        told = f"truth/{self.name}{'_$SLURM_ARRAY_TASK_ID' if self.elements else ''}"
        script = (f"c={self.code}; {'test $SSSJOB_ATTEMPT != 1 || c=3; ' if self.retried else ''}"
                  f"echo start {site} {native} $(date +%s) >> {told}; sleep {self.seconds}; "
                  f"{f'echo {native} > out/{self.name}; ' if self.staged else ''}"
                  f"echo end $c $(date +%s) >> {told}; exit $c")
        more = [f"<Dependency condition='{self.after[1]}'>{self.after[0]}</Dependency>"] if self.after else []
        more += [f"<Extension type='Scheduler' name='Array'>1-{self.elements}</Extension>"] if self.elements else []
        more += ["<Extension type='Scheduler' name='Retry'>exit(3)=1</Extension>"] if self.retried else []
        files = f'{{"source": "out/{self.name}", "target": "back/{self.name}"}}'
        more += [f"<Extension type='PSIJ' name='StageOut'>{files}</Extension>"] if self.staged else []
        more += ["<Restartable>true</Restartable><Requested><Duration>3600</Duration></Requested>"]
        more += ["<Hold>User</Hold>"] if self.held else []
        return shell(script, *more, "<OutputFile>/dev/null</OutputFile><ErrorFile>/dev/null</ErrorFile>",
                     name=self.name)


class Stranger(NamedTuple):
    """Somebody's job that was submitted by hand."""

    site: Site
    native_id: str
    lasts: bool

    def lives(self) -> bool:
        """Whether it still runs or waits."""
        if self.site.executor == "sge":
            return self.site.tell("qstat", "-j", self.native_id).returncode == 0
        told = self.site.tell("squeue", "-h", "-j", self.native_id, "-o", "%T").stdout.strip()
        return told in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")

    def is_well(self, may_be_forgotten: bool) -> bool:
        """Whether nobody has cancelled it. may_be_forgotten: its controller was killed, which gives its id to another
        one where it had not written it down."""
        states = "" if self.site.executor == "sge" else self.site.tell(
            "sacct", "-a", "-X", "-D", "-n", "-P", "-j", self.native_id, "--name", "stranger", "-o", "State").stdout
        return "CANCELLED" not in states and (not self.lasts or self.lives() or (
            may_be_forgotten and self.site.executor == "slurm"))


@dataclass
class Storm:
    """What happens, and what was asked for. jobs: by name; wished: names of jobs that somebody asked to cancel."""

    folder: Path
    sites: Sequence[Site]
    chance: random.Random
    jobs: dict[str, Job] = field(default_factory=dict)
    submissions: list[list[Job]] = field(default_factory=list)
    wished: set[str] = field(default_factory=set)
    restarted: set[str] = field(default_factory=set)        # names of jobs that somebody asked to run again
    suspended: set[str] = field(default_factory=set)
    hooked: set[int] = field(default_factory=set)           # submissions at whose ends something is wanted
    killed: dict[str, list[float]] = field(default_factory=dict)    # when controllers have forgotten jobs, by site
    failing: set[str] = field(default_factory=set)          # sites that may run jobs again by themselves
    strangers: list[Stranger] = field(default_factory=list)
    clients: dict[int, float] = field(default_factory=dict)         # pid -> when it is killed
    outages: list[tuple[float, Callable[[], object]]] = field(default_factory=list)     # until when, what ends them
    accounting: dict[str, dict[tuple[str, str], list[list[str]]]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)           # of the journal, when it was looked at
    running: list[Running] = field(default_factory=list)
    restarts: list[subprocess.Popen[bytes]] = field(default_factory=list)

    # --- clients ----------------------------------------------------------------------------------------------------

    def client(self, site: Site, act: Callable[[Client], object], until: float) -> None:
        """Have a client of a site do something, in a process of its own, which is killed then."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.environ.clear()
                os.environ.update(site.environment)
                config = BatchSchedulerExecutorConfig(work_directory=self.folder / "work", **CONFIG)
                act(Client(open_journal(self.folder / "journal.db"), config=config))
                status = 0
            except BaseException as error:
                # who names the jobs that there are may name one that somebody takes out meanwhile
                if isinstance(error, UnknownJobError) and any(repr(key) in str(error) for key in self.gone()):
                    os._exit(0)
                with open(self.folder / "raised", "a", encoding="utf-8") as stream:
                    stream.write(traceback.format_exc())
            finally:
                os._exit(status)
        self.clients[pid] = until

    def reap(self, at_most: int) -> None:
        """Kill those whose time is up, end outages, and wait until no more clients than that are at work."""
        while True:
            now = time.monotonic()
            for pid, until in list(self.clients.items()):
                if now >= until:
                    os.kill(pid, signal.SIGKILL)
                if os.waitpid(pid, os.WNOHANG)[0]:
                    del self.clients[pid]
            for outage in [one for one in self.outages if one[0] <= now]:
                self.outages.remove(outage)
                outage[1]()
            if len(self.clients) <= at_most:
                return
            time.sleep(0.02)

    def submit(self, site: Site) -> None:
        """A new group of jobs; now and then by two clients at once, under one name."""
        chance, number = self.chance, len(self.submissions)
        jobs: list[Job] = []
        for place in range(chance.randint(1, 3)):
            seconds = chance.choice((0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 3.0, 6.0, ENDLESS_S))
            after = (chance.choice(jobs).name, chance.choice(("OnSuccess", "OnFailure", "OnExit"))) \
                if jobs and chance.random() < 0.4 else None
            elements = chance.choice((2, 3)) if chance.random() < 0.2 and seconds < ENDLESS_S else 0
            single = not elements and seconds < ENDLESS_S
            jobs.append(Job(f"s{number}a{place}", site, seconds, chance.choice((0, 0, 3)), after, elements,
                            retried=single and chance.random() < 0.2, staged=single and chance.random() < 0.2,
                            held=chance.random() < 0.1))
        self.submissions.append(jobs)
        self.jobs |= {job.name: job for job in jobs}
        text = group(*(job.text() for job in jobs)).replace("<Id>g</Id>", f"<Id>s{number}</Id>")
        hooks = [hook_of(HOOK % self.folder)] if chance.random() < 0.3 else []
        if hooks:
            self.hooked.add(number)
        twice = chance.random() < 0.2
        for _ in range(1 + twice):
            self.client(site, lambda client: client.submit(
                read_document(text.encode()), site.executor, policy=Policy.IGNORE, cwd=self.folder,
                request=f"r{number}" if twice else None, on_end=hooks), self.until())

    def until(self) -> float:
        """When a client is killed: soon, or when it hangs."""
        return time.monotonic() + (self.chance.uniform(0.02, 2.0) if self.chance.random() < 0.4 else 120.0)

    def cancel(self, site: Site, names: Sequence[str], until: float) -> None:
        """Have a client, of whatever site, cancel jobs."""
        self.wished |= set(names)
        self.client(site, lambda client: client.cancel(_keys(client, names), 5.0), until)

    # --- what happens -----------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do what is drawn."""
        chance, site = self.chance, self.chance.choice(self.sites)
        doing = chance.choice(DOINGS)
        with open(self.folder / "done", "a", encoding="utf-8") as stream:
            stream.write(f"{doing} {site.name}\n")
        match doing:
            case "submit":
                self.submit(site)
            case "look":
                self.client(site, lambda client: client.look(client.journal.entries(_numbers(client)), 5.0),
                            self.until())
            case "wait":
                seconds = chance.uniform(1, 6)
                self.client(site, lambda client: client.wait(_keys(client), seconds), self.until())
            case "cancel" if self.submissions:
                endless = [name for name, job in self.jobs.items()
                           if job.seconds == ENDLESS_S and name not in self.wished]
                jobs = [job.name for job in chance.choice(self.submissions)]
                self.cancel(site, chance.choice((jobs, jobs[:1], endless[:5], endless[:5])), self.until())
            case "stranger":
                self.stranger(site)
            case "controller":
                self.stand_still(site, CONTROLLER[site.executor])
            case "accounting" if site.executor == "slurm":
                self.stand_still(site, "slurmdbd")
            case "no accounting" if site.executor == "slurm":
                self.restart(site, "slurmdbd", signal.SIGKILL, chance.uniform(5.0, LONG_S))
            case "daemon":
                self.failing.add(site.name)
                self.restart(site, DAEMON[site.executor], signal.SIGKILL, chance.uniform(0.5, 4.0))
            case "restart":
                self.restart(site, CONTROLLER[site.executor], signal.SIGTERM, chance.uniform(1.0, 4.0))
            case "killed":
                self.failing.add(site.name)
                self.killed.setdefault(site.name, []).append(time.time())
                self.restart(site, CONTROLLER[site.executor], signal.SIGKILL, chance.uniform(0.0, 4.0))
            case "full" if not self.outages:
                self.full(site)
            case "prune":
                self.client(site, partial(_pruned, self), self.until())
            case "again" if self.submissions:
                names = [chance.choice(chance.choice(self.submissions)).name for _ in range(3)]
                self.restarted |= set(names)
                self.client(site, partial(_again, names=names), self.until())
            case "hold" | "release" | "rerun" | "suspend" | "resume" | "change" if self.submissions:
                self.wish(site, doing)
            case "requeue" | "by hand":
                self.by_hand(site, doing)
            case _:
                pass

    def wish(self, site: Site, doing: str) -> None:
        """Have a client ask for something to be done with some of the newest jobs."""
        names = [job.name for job in self.chance.choice(self.submissions[-8:])]
        if doing == "rerun":
            self.restarted |= set(names)
        if doing == "suspend":
            self.suspended |= set(names)
        seconds = self.chance.randint(1800, 3600)
        text = f"change {change_of([('Duration', str(seconds))])}" if doing == "change" else doing
        self.client(site, lambda client: client.ask(text, _keys(client, names), 5.0), self.until())

    def by_hand(self, site: Site, doing: str) -> None:
        """Somebody who may does something with a job of ours that runs, by the manager's own command."""
        running = [path for path in (self.folder / "truth").iterdir()
                   if (last := path.read_text().split("\n")[-2:-1]) and last[0].startswith(f"start {site.name} ")]
        if not running or self.outages:
            return
        path = self.chance.choice(running)
        name = path.name.partition("_")[0]
        native_id = path.read_text().split("\n")[-2].split()[2]
        if (name, native_id) in site.running():         # Slurm runs again what was cancelled, too
            (self.wished if doing == "by hand" else self.restarted).add(name)
            site.tell(*BY_HAND[site.executor, doing], native_id)

    def full(self, site: Site) -> None:
        """Hardly any jobs may be submitted for a while."""
        if site.executor == "slurm":
            change = ("sacctmgr", "-i", "modify", "qos", "normal", "set")
            site.tell(*change, "MaxSubmitJobsPerUser=6")
            ends: Callable[[], object] = partial(site.tell, *change, "MaxSubmitJobsPerUser=-1")
        else:
            before, file = site.tell("qconf", "-sconf").stdout, self.folder / "global"

            def configure(most: int) -> None:
                file.write_text(re.sub(r"(?m)^max_u_jobs .*", f"max_u_jobs {most}", before))
                site.tell("qconf", "-Mconf", str(file))

            configure(6)
            ends = partial(configure, 0)
        self.outages.append((time.monotonic() + self.chance.uniform(3.0, LONG_S), ends))

    def stranger(self, site: Site) -> None:
        """Somebody's job by hand, under the id that other clusters give to one of ours: it is over at once, or waits
        for somebody to release it. Who submits it waits for an answer, so that no controller may be away."""
        while self.outages or any(one.poll() is None for one in self.restarts):
            self.reap(AT_ONCE)
            time.sleep(0.05)
        lasts = self.chance.random() < 0.7
        if site.executor == "slurm":
            words = ["sbatch", "--parsable", "-J", "stranger", "-o", "/dev/null", *(["--hold"] if lasts else []),
                     "--wrap=true"]
        else:
            words = ["qsub", "-terse", "-N", "stranger", "-o", "/dev/null", "-j", "y", *(["-h"] if lasts else []),
                     "-b", "y", "true"]
        answer = site.tell(*words, user=self.chance.choice((None, "nobody")))
        if answer.returncode == 0:
            self.strangers.append(Stranger(site, answer.stdout.split()[-1], lasts))

    def stand_still(self, site: Site, daemon: str) -> None:
        """A daemon answers nobody for a while."""
        pid = site.pid(daemon)
        if pid is not None and not self.outages:
            os.kill(pid, signal.SIGSTOP)
            self.outages.append((time.monotonic() + self.chance.uniform(0.5, STANDS_STILL_S),
                                 partial(os.kill, pid, signal.SIGCONT)))

    def restart(self, site: Site, daemon: str, by: int, seconds: float) -> None:
        """A daemon ends and is started again with what it has on the disk."""
        pid = site.pid(daemon)
        if pid is None or self.outages or any(one.poll() is None for one in self.restarts):
            return
        os.kill(pid, by)
        self.outages.append((time.monotonic() + seconds, partial(self.start, site, daemon)))

    def start(self, site: Site, daemon: str) -> None:
        """Start what does not run of a lab, without waiting for it."""
        if site.pid(daemon) is not None:         # it is still busy with its end
            self.outages.append((time.monotonic() + 0.5, partial(self.start, site, daemon)))
            return
        self.restarts.append(subprocess.Popen([HERE / f"{site.executor}-up", site.folder], stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL))

    def settle(self) -> None:
        """All is well again; a client of each site ends what would not end, and waits for the rest."""
        self.reap(0)
        while self.outages:
            self.outages = [(0.0, end) for _, end in self.outages]
            self.reap(0)
        for one in self.restarts:
            assert one.wait(100) == 0
        self.undrain()
        endless = [job.name for job in self.jobs.values() if job.seconds == ENDLESS_S]
        for wish in ("release", "resume"):
            for site in self.sites:
                self.client(site, partial(_ask_all, wish=wish), time.monotonic() + SETTLED_S)
                self.reap(0)
        with open_journal(self.folder / "journal.db") as journal:
            # a controller that was killed may never learn by which number slurmdbd knows a job: it refuses all changes
            stuck = [str(row.id).partition("_")[0] for row in journal.rows() if row.state == "Hold"]
        for site in self.sites:
            self.cancel(site, [*endless, *(name for name in stuck if self.jobs[name].site.name in self.killed)],
                        time.monotonic() + SETTLED_S)
        self.reap(0)
        for _ in range(8):          # what has been released drains nodes too
            self.undrain()
            for site in self.sites:
                self.client(site, lambda client: client.wait(_keys(client), SETTLED_S / 8),
                            time.monotonic() + SETTLED_S)
            self.reap(0)

    def undrain(self) -> None:
        """Let nodes take jobs again that a killed controller of Slurm drains where it has forgotten what they run."""
        for site in self.sites if self.killed else ():
            site.tell("scontrol", "update", "NodeName=node1", "State=RESUME")

    # --- what is wrong ----------------------------------------------------------------------------------------------

    def complaints(self) -> Iterator[str]:
        """What is not as promised."""
        raised = self.folder / "raised"
        yield from [raised.read_text()] if raised.exists() else []
        for stranger in self.strangers:
            if not stranger.is_well(stranger.site.name in self.killed):
                yield f"foreign: {stranger.site.name} {stranger.native_id} was cancelled"
        with open_journal(self.folder / "journal.db") as journal:
            yield from self.of_journal(Client(journal))
        yield from (self.folder / "complaints").read_text().splitlines()
        for site in self.sites:
            for name, native_id in site.running() if self.rows else ():
                if name in self.jobs and not self.is_revived(site, name):
                    yield f"survivor: {name} still runs as {native_id} on {site.name}"
        known = {str(row.id) for row in self.rows}
        for path in (self.folder / "truth").iterdir():
            if path.name not in known | self.gone():
                yield f"nobody's: {path.name} ran"

    def has_lost(self, job: Job, row: Row) -> bool:
        """Whether a site with a daemon that was killed has ended a job in its own accounting that it never began."""
        records = self.records(job.site).get((str(row.native_id), job.name), [])
        return job.site.name in self.failing and bool(records) and not any(one[0].isdecimal() for one in records)

    def is_revived(self, site: Site, name: str) -> bool:
        """Whether a controller that was killed may have begun a job again whose end it had not written down."""
        ends = [running.plan.job.value("EndTime") for running in self.running if running.row.id == name]
        return site.name in self.killed and all(
            end is not None and int(str(end)) > self.killed[site.name][-1] - UNSAVED_S for end in ends)

    def revivals(self, site: Site, runs: Sequence[tuple[str, str, int, int | None, int | None]]) -> int:
        """How many of these runs a controller has begun again that was killed before it had written down their ends."""
        return sum(any((before[4] or 0) > killed - UNSAVED_S and run[2] >= int(killed)
                       for killed in self.killed.get(site.name, ()))
                   for before, run in pairwise(runs) if before[4] is not None)

    def gone(self) -> set[str]:
        """Names and keys of jobs that were ended when somebody took what had ended out of the journal."""
        return set((self.folder / "gone").read_text().split())

    def of_journal(self, client: Client, ended: bool = False) -> Iterator[str]:
        """What is wrong of the jobs in the journal; of those of which all of the submission have ended."""
        rows: dict[str, Running] = {}
        jobs: list[Running] = []
        for submission in client.standings(client.journal.entries(_numbers(client))):
            standing = submission.jobs
            if not ended or all(running.row.outcome is not None for running in standing):
                jobs += standing
        for running in jobs:
            name = str(running.row.id)
            if name in rows and name.partition("_")[0] not in self.restarted:
                yield f"twice: {name} is in the journal"
            rows[name] = running
        self.running, self.rows = jobs, [running.row for running in jobs]
        for running in jobs:
            name = str(running.row.id)
            job = self.jobs[name.partition("_")[0]]
            yield from (f"{what} ({running.row})" for what in self._of(name, job, running, rows))

    def _of(self, name: str, job: Job, running: Running, rows: dict[str, Running]) -> Iterator[str]:
        row = running.row
        runs = self.runs(name)
        own = [run for run in runs if run[0] == job.site.name and run[1] == _whole(job, row.native_id)]
        if job.elements and job.site.executor == "slurm":
            own = runs          # each has an id that no answer shows
        wished, restarted = (bool({name, job.name} & some) for some in (self.wished, self.restarted))
        native_ids = {run[1] for run in runs}
        records = [record for native_id in native_ids for record in self.records(job.site).get((native_id, name), [])]
        again = max(len(records) - len(native_ids), 0) if job.site.name in self.failing else 0
        revivals = self.revivals(job.site, runs)
        if len(runs) > 1 + job.retried + again + revivals and not restarted:
            yield f"doubled: {name}: {runs}"
        if not restarted and not job.retried and runs and not own and row.outcome != "skipped":
            yield f"fact: {name} ran as {runs}"
        own = own if restarted or job.retried else runs
        last = own[-1] if own else None
        code = None if last is None else last[3]
        end = (row.outcome, row.exit_code)
        was_lost = str(row.message).startswith("lost") and job.site.name in self.killed     # nor did it begin then
        if row.outcome is None:
            yield f"lost: {name} has no end"
        elif code is not None and end != ("failed" if code else "done", code) and not (
                (wished or restarted) and row.outcome == "canceled"):
            yield f"not true: {name} ended with {code}"
        elif code is None and end != ("canceled", None) \
                and not (last is None and end == ("skipped", None) and job.after) \
                and not (row.outcome == "failed" and (wished or restarted)) \
                and not (row.outcome == "failed" and last is None and self.has_lost(job, row)) \
                and not was_lost:
            yield f"not true: {name}: {runs}"
        elif row.outcome == "canceled" and not wished and job.seconds < ENDLESS_S:
            yield f"unasked: {name}"
        if row.outcome == "done" and job.staged and last is not None:
            path = self.folder / "back" / name
            if not path.exists() or (not restarted and path.read_text().strip() != last[1]):
                yield f"staged: {name}: {path.read_text() if path.exists() else None}"
        if row.outcome is not None and not running.hooks and int(job.name[1:].partition("a")[0]) in self.hooked \
                and not restarted:
            yield f"hook: {name} was promised nothing"
        if running.hooks and row.outcome is not None and row.key not in self.keys() and row.outcome != "skipped":
            yield f"hook: {name} of {row.key} is not done"
        times = job.name not in self.suspended and not (restarted and job.elements) and not revivals
        if times:
            yield from _facts(name, running, own, records)
        if row.outcome is not None:
            yield from _against(name, running, self.records(job.site).get((str(row.native_id), job.name), []))
        if job.after is not None and not wished and not restarted and not was_lost and not (
                {job.after[0]} & (self.wished | self.restarted)):
            yield from _order(name, job.after, bool(runs), [r for other, r in rows.items()
                                                            if other.partition("_")[0] == job.after[0]])

    def records(self, site: Site) -> dict[tuple[str, str], list[list[str]]]:
        """The same as of the site, asked once."""
        if site.name not in self.accounting:
            self.accounting[site.name] = site.records()
        return self.accounting[site.name]

    def keys(self) -> set[str]:
        """The keys of the jobs at whose end something was done."""
        path = self.folder / "keys"
        return set(path.read_text().split()) if path.exists() else set()

    def runs(self, name: str) -> list[tuple[str, str, int, int | None, int | None]]:
        """What a job has written: site, id, start, how it ended, and when."""
        path = self.folder / "truth" / name
        runs: list[tuple[str, str, int, int | None, int | None]] = []
        for line in path.read_text().splitlines() if path.exists() else ():
            words = line.split()
            if words[0] == "start":
                runs.append((words[1], words[2], int(words[3]), None, None))
            else:
                runs[-1] = (*runs[-1][:3], int(words[1]), int(words[2]))
        return runs


def _epoch(text: str) -> str:
    """Seconds since the epoch of a time of qacct; "Unknown" where it has none."""
    with suppress(ValueError):
        return str(int(time.mktime(time.strptime(text))))
    return "Unknown"


def _whole(job: Job, native_id: str | None) -> str:
    """What a job sees as its id, of the id by which we know it."""
    return str(native_id).partition(".")[0]


def _pruned(storm: Storm, client: Client) -> None:
    """Take out what has ended, after a look at whether it is true."""
    before = time.time() - 1
    complaints = list(storm.of_journal(client, ended=True))
    with open(storm.folder / "complaints", "a", encoding="utf-8") as stream:
        stream.writelines(f"{one}\n" for one in complaints)
    with open(storm.folder / "gone", "a", encoding="utf-8") as stream:
        stream.writelines(f"{row.id} {row.key}\n" for row in storm.rows)
    prune(client.journal, before=before)


def _ask_all(client: Client, wish: str) -> None:
    """Ask for something to be done with all jobs."""
    client.ask(wish, _keys(client), 20.0)


def _again(client: Client, names: Sequence[str]) -> None:
    """Submit jobs once more that have ended."""
    for row in client.journal.rows():
        if str(row.id) in names and row.outcome is not None:
            with suppress(UsageError):      # it waits for one that has not ended so, or ran on another cluster
                client.again(row.submission, [row.job])
            return


def _facts(name: str, running: Running, runs: list[tuple[str, str, int, int | None, int | None]],
           records: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a document says that was otherwise. A controller that was away learns late of an end, and its record counts;
    then the other source is told, and has to be right. records: of accounting, which has what a node was held for by a
    run whose end nobody told the controller."""
    document = running.plan.job
    others = {one.fact: [int(float(str(one.other)))] for one in running.disagreements if one.key.endswith("_time")}
    last = runs[-1] if runs else None
    for tag, at in (("StartTime", last and last[2]), ("EndTime", last and last[4])):
        value = document.value(tag)
        known = [] if value is None else [int(value), *others.get(tag, ())]
        if at is not None and known and not any(-LATE_S <= one - at <= LATE_S for one in known):
            yield f"fact: {name}: {tag} is {at - known[0]} s away"
    wall = None if document.delivered is None else document.delivered.value("Duration")
    if wall is not None and runs and all(run[4] is not None for run in runs):
        spent = sum((run[4] or 0) - run[2] for run in runs)
        late = LATE_S * len(runs) + max(
            [0, *(int(str(document.value("EndTime"))) - one for one in others.get("EndTime", ()))])
        recorded = sum(int(end) - int(start) for start, end, _ in records if start.isdigit() and end.isdigit())
        if not spent - 2 <= float(wall) <= spent + late and abs(float(wall) - recorded) > 2:
            yield f"fact: {name}: Duration {wall} of {spent}"


def _against(name: str, running: Running, records: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a document says that no record of accounting of this job says, nor the other source that it names."""
    document = running.plan.job
    others = {one.fact: str(one.other) for one in running.disagreements}
    unbegun = others.get("StartCount") == "0"       # by accounting; the job itself has written that it was
    for place, tag in enumerate(("StartTime", "EndTime")):
        value, times = document.value(tag), [record[place] for record in records if record[place] != RESCHEDULED]
        known_times = [int(one) for one in times if one.isdecimal()]
        if value is not None and times and not any(abs(int(value) - one) <= 1 for one in known_times) \
                and tag not in others and not (unbegun and tag == "StartTime") \
                and (known_times or (tag == "StartTime" and not unbegun)):
            yield f"fact: {name}: {tag} {value} is in no record of accounting: {times}"
    nodes = None if document.delivered is None else document.delivered.value("Node")
    if nodes is not None and records and nodes not in [record[2] for record in records] and not unbegun:
        yield f"fact: {name}: Node {nodes} is in no record of accounting: {records}"


def _order(name: str, after: tuple[str, str], has_begun: bool, others: Sequence[Running]) -> Iterator[str]:
    """A job that began although another one did not end so, or did not although it did."""
    outcomes = {other.row.outcome for other in others}
    succeeded = outcomes == {"done"}
    may = {"OnSuccess": succeeded, "OnFailure": not succeeded, "OnExit": True}[after[1]]
    if has_begun != may and not outcomes & {"skipped", "canceled"}:
        yield f"order: {name} after {after}: {outcomes}, began: {has_begun}"


def _numbers(client: Client) -> list[int]:
    return list(dict.fromkeys(row.submission for row in client.journal.rows()))


def _keys(client: Client, names: Sequence[str] | None = None) -> list[str]:
    """The keys of the jobs of these names in the journal; of all."""
    return [row.key for row in client.journal.rows() if names is None or str(row.id).partition("_")[0] in names]


# --- the test -------------------------------------------------------------------------------------------------------

@contextmanager
def sites(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Site]]:
    """The three clusters."""
    with ExitStack() as stack, ThreadPoolExecutor() as starting:
        enter_lab("slurm", monkeypatch)         # skips where there is none
        monkeypatch.setenv("SLURM_LAB_CPUS", "32")      # jobs that last must not keep all others waiting
        both = [starting.submit(stack.enter_context, a_slurm("lab")) for _ in range(2)]
        enter_lab("sge", monkeypatch)
        folder = Path(os.environ[LABS["sge"]])
        sites = [Site("sge", "sge", folder, {**os.environ, "STORM_SITE": "none"})]
        for number, one in enumerate(both):
            with pytest.MonkeyPatch.context() as own:
                own.setenv(LABS["slurm"], str(one.result()))
                enter_lab("slurm", own)
                name = f"slurm{number}"
                sites.append(Site(name, "slurm", one.result(), {**os.environ, "STORM_SITE": name}))
        yield sites


@pytest.mark.timeout(120 + 10 * ACTIONS)
def test_three_clusters_share_one_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("truth", "out", "back"):
        (tmp_path / folder).mkdir()
    for file in ("complaints", "gone"):
        (tmp_path / file).touch()
    with sites(monkeypatch) as clusters:
        storm = Storm(tmp_path, clusters, random.Random(SEED))
        try:
            for site in clusters:
                storm.stranger(site)
                storm.submit(site)
            for _ in range(ACTIONS):
                storm.reap(AT_ONCE - 1)
                storm.step()
                time.sleep(storm.chance.uniform(0.0, 0.4))
            storm.settle()
            assert not (complaints := list(storm.complaints())), "\n".join(complaints)
        finally:
            for pid in storm.clients:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            for _, end in storm.outages:
                end()
            for one in storm.restarts:
                one.wait(100)
            for stranger in storm.strangers:
                if stranger.site.executor == "sge":         # the Slurms are taken away
                    stranger.site.tell(CANCEL["sge"], stranger.native_id)
