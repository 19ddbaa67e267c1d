"""Two Slurms of one name, which both count from 1, and a Grid Engine share one home and one journal, while clients
submit, look, wait, cancel and are killed, and controllers stand still or are started again: no document says what did
not happen, and nobody's job is cancelled but ours where somebody asked for it.

What really happened is written by the jobs themselves: on which cluster they ran, under which id, when they began and
how they ended. ``SSSJOB_LAB_ACTIONS`` is the number of actions (40), ``SSSJOB_LAB_SEED`` what they are drawn from.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.findings import Policy
from sssjob.run.client import Client
from sssjob.run.journal import open_journal
from sssjob.run.standing import Running
from sssjob.xml.reader import read_document
from tests.labs.test_lab_identity import CANCEL, HERE, REAL, a_slurm
from tests.psij.test_batch_labs import LABS, enter_lab
from tests.run.support import group, shell

pytestmark = pytest.mark.lab
ACTIONS = int(os.environ.get("SSSJOB_LAB_ACTIONS") or 40)
SEED = int(os.environ.get("SSSJOB_LAB_SEED") or 1)
ENDLESS_S = 600
AT_ONCE = 3             # clients beside each other
STANDS_STILL_S = 6.0    # the longest: less than ``lost_after``
SETTLED_S = 240.0       # until all has ended in the end
LATE_S = 15             # by which a manager may start a job's script late, or learn of its end, on a busy machine
NATIVE_ID = {"slurm": "$SLURM_JOB_ID", "sge": "$JOB_ID"}
CONTROLLER = {"slurm": "slurmctld", "sge": "sge_qmaster"}
DOINGS = ("submit",) * 9 + ("look", "look", "wait", "wait", "cancel", "cancel", "cancel", "stranger", "stranger",
                            "controller", "accounting", "restart")
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

    def tell(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the manager."""
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=False, timeout=60)


class Job(NamedTuple):
    """What was asked for. after: the number of the job that it waits for, and how that has to end."""

    name: str
    site: Site
    seconds: float
    code: int
    after: tuple[str, str] | None = None
    elements: int = 0

    def text(self) -> str:
        """As a Job that tells by itself what happens to it."""
        native = NATIVE_ID[self.site.executor]
        told = f"truth/{self.name}{'_$SLURM_ARRAY_TASK_ID' if self.elements else ''}"
        script = (f"echo start {self.site.name} {native} $(date +%s) >> {told}; sleep {self.seconds}; "
                  f"echo end {self.code} $(date +%s) >> {told}; exit {self.code}")
        more = [f"<Dependency condition='{self.after[1]}'>{self.after[0]}</Dependency>"] if self.after else []
        more += [f"<Extension type='Scheduler' name='Array'>1-{self.elements}</Extension>"] if self.elements else []
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

    def is_well(self) -> bool:
        """Whether nobody has cancelled it."""
        if self.lasts or self.site.executor == "sge":
            return self.lives() or not self.lasts
        states = self.site.tell("sacct", "-X", "-n", "-P", "-j", self.native_id, "-o", "State").stdout
        return "CANCELLED" not in states


@dataclass
class Storm:
    """What happens, and what was asked for. jobs: by name; wished: names of jobs that somebody asked to cancel."""

    folder: Path
    sites: Sequence[Site]
    chance: random.Random
    jobs: dict[str, Job] = field(default_factory=dict)
    submissions: list[list[Job]] = field(default_factory=list)
    wished: set[str] = field(default_factory=set)
    strangers: list[Stranger] = field(default_factory=list)
    clients: dict[int, float] = field(default_factory=dict)         # pid -> when it is killed
    outages: list[tuple[float, Callable[[], object]]] = field(default_factory=list)     # until when, what ends them
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
            except BaseException:
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
        """A new group of jobs."""
        chance, number = self.chance, len(self.submissions)
        jobs: list[Job] = []
        for place in range(chance.randint(1, 3)):
            seconds = chance.choice((0.0, 0.0, 1.0, 1.0, 3.0, ENDLESS_S))
            after = (chance.choice(jobs).name, chance.choice(("OnSuccess", "OnFailure", "OnExit"))) \
                if jobs and chance.random() < 0.4 else None
            elements = 2 if chance.random() < 0.2 and seconds < ENDLESS_S else 0
            jobs.append(Job(f"s{number}a{place}", site, seconds, chance.choice((0, 0, 3)), after, elements))
        self.submissions.append(jobs)
        self.jobs |= {job.name: job for job in jobs}
        text = group(*(job.text() for job in jobs)).replace("<Id>g</Id>", f"<Id>s{number}</Id>")
        self.client(site, lambda client: client.submit(
            read_document(text.encode()), site.executor, policy=Policy.IGNORE, cwd=self.folder), self.until())

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
        match chance.choice(DOINGS):
            case "submit":
                self.submit(site)
            case "look":
                self.client(site, lambda client: client.look(
                    [client.journal.entry(number) for number in _numbers(client)], 5.0), self.until())
            case "wait":
                seconds = chance.uniform(1, 6)
                self.client(site, lambda client: client.wait(_keys(client), seconds), self.until())
            case "cancel" if self.submissions:
                jobs = chance.choice(self.submissions)
                self.cancel(site, [job.name for job in chance.choice((jobs, jobs[:1]))], self.until())
            case "stranger":
                self.stranger(site)
            case "controller":
                self.stand_still(site, CONTROLLER[site.executor])
            case "accounting" if site.executor == "slurm":
                self.stand_still(site, "slurmdbd")
            case "restart":
                self.restart(site)
            case _:
                pass

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
        answer = site.tell(*words)
        if answer.returncode == 0:
            self.strangers.append(Stranger(site, answer.stdout.split()[-1], lasts))

    def stand_still(self, site: Site, daemon: str) -> None:
        """A daemon answers nobody for a while."""
        pid = site.pid(daemon)
        if pid is not None and not self.outages:
            os.kill(pid, signal.SIGSTOP)
            self.outages.append((time.monotonic() + self.chance.uniform(0.5, STANDS_STILL_S),
                                 partial(os.kill, pid, signal.SIGCONT)))

    def restart(self, site: Site) -> None:
        """A controller ends and is started again with what it has on the disk."""
        pid = site.pid(CONTROLLER[site.executor])
        if pid is None or self.outages or any(one.poll() is None for one in self.restarts):
            return
        os.kill(pid, signal.SIGTERM)
        self.outages.append((time.monotonic() + self.chance.uniform(1.0, 4.0), partial(self.start, site)))

    def start(self, site: Site) -> None:
        """Start what does not run of a lab, without waiting for it."""
        pid = site.pid(CONTROLLER[site.executor])
        if pid is not None:         # it is still busy with its end
            self.outages.append((time.monotonic() + 0.5, partial(self.start, site)))
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
        endless = [job.name for job in self.jobs.values() if job.seconds == ENDLESS_S]
        for site in self.sites:
            self.cancel(site, endless, time.monotonic() + SETTLED_S)
        self.reap(0)
        for site in self.sites:
            self.client(site, lambda client: client.wait(_keys(client), SETTLED_S / 2), time.monotonic() + SETTLED_S)
        self.reap(0)

    # --- what is wrong ----------------------------------------------------------------------------------------------

    def complaints(self) -> Iterator[str]:
        """What is not as promised."""
        raised = self.folder / "raised"
        yield from [raised.read_text()] if raised.exists() else []
        for stranger in self.strangers:
            if not stranger.is_well():
                yield f"foreign: {stranger.site.name} {stranger.native_id} was cancelled"
        rows: dict[str, Running] = {}
        with open_journal(self.folder / "journal.db") as journal:
            client = Client(journal)
            for number in _numbers(client):
                for running in client.standing(journal.entry(number)).jobs:
                    name = str(running.row.id)
                    if name in rows:
                        yield f"twice: {name} is in the journal"
                    rows[name] = running
            for name, running in rows.items():
                job = self.jobs[name.partition("_")[0]]
                yield from (f"{what} ({running.row})" for what in self._of(name, job, running, rows))
        for path in (self.folder / "truth").iterdir():
            if path.name not in rows:
                yield f"nobody's: {path.name} ran"

    def _of(self, name: str, job: Job, running: Running, rows: dict[str, Running]) -> Iterator[str]:
        path, row = self.folder / "truth" / name, running.row
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        starts, ends = ([line[1:] for line in lines if line[0] == kind] for kind in ("start", "end"))
        end = (row.outcome, row.exit_code)
        wished = bool({name, job.name} & self.wished)
        if len(starts) > 1:
            yield f"doubled: {name}: {lines}"
        if row.outcome is None:
            yield f"lost: {name} has no end"
        elif ends and end != ("failed" if job.code else "done", job.code) and not (
                wished and row.outcome == "canceled"):
            yield f"not true: {name} ended with {job.code}"
        elif not ends and end != ("canceled", None) and not (not starts and end == ("skipped", None) and job.after):
            yield f"not true: {name}: {lines}"
        elif row.outcome == "canceled" and not wished and job.seconds < ENDLESS_S:
            yield f"unasked: {name}"
        yield from _facts(name, job, running, starts[:1], ends[:1])
        if job.after is not None and not wished:
            yield from _order(name, job.after, bool(starts), [r for other, r in rows.items()
                                                             if other.partition("_")[0] == job.after[0]])


def _facts(name: str, job: Job, running: Running, starts: list[list[str]], ends: list[list[str]]) -> Iterator[str]:
    """What a document says that was otherwise. A controller that was away learns late of an end, and its record counts;
    then the other source is told, and has to be right."""
    document = running.plan.job
    others = {one.fact: [int(float(str(one.other)))] for one in running.disagreements if one.key.endswith("_time")}
    for site, native_id, _ in starts:
        element = job.elements and job.site.executor == "slurm"         # which has an id that no answer shows
        if site != job.site.name or (not element and native_id != str(running.row.native_id).partition(".")[0]):
            yield f"fact: {name} ran on {site} as {native_id}"
    for tag, lines in (("StartTime", starts), ("EndTime", ends)):
        value = document.value(tag)
        at = [int(line[-1]) for line in lines]
        known = [] if value is None else [int(value), *others.get(tag, ())]
        if at and known and not any(-LATE_S <= one - at[0] <= LATE_S for one in known):
            yield f"fact: {name}: {tag} is {at[0] - known[0]} s away"
    wall = None if document.delivered is None else document.delivered.value("Duration")
    if wall is not None and starts and ends:
        spent = int(ends[0][-1]) - int(starts[0][-1])
        late = LATE_S + max([0, *(int(str(document.value("EndTime"))) - one for one in others.get("EndTime", ()))])
        if not spent - 2 <= float(wall) <= spent + late:
            yield f"fact: {name}: Duration {wall} of {spent}"


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
        both = [starting.submit(stack.enter_context, a_slurm("lab")) for _ in range(2)]
        enter_lab("sge", monkeypatch)
        folder = Path(os.environ[LABS["sge"]])
        found = [Site("sge", "sge", folder, dict(os.environ))]
        for number, one in enumerate(both):
            with pytest.MonkeyPatch.context() as own:
                own.setenv(LABS["slurm"], str(one.result()))
                enter_lab("slurm", own)
                found.append(Site(f"slurm{number}", "slurm", one.result(), dict(os.environ)))
        yield found


@pytest.mark.timeout(120 + 10 * ACTIONS)
def test_three_clusters_share_one_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "truth").mkdir()
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
