"""One seed, the whole world: clients, their journal, clusters and the network between, under virtual time; and a judge
who holds the documents against what really happened.

``carry_out`` lives through a plan (``plans``) and says what is not as promised.

Clients use the journal as the commands do; only commands of the resource managers are answered by ``Cluster`` and
``GridEngine``. Where a plan cuts the power the journal lies on a simulated disk (``storage``), and all clients die.
"""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psij
import sssjob
from psij.executors import _local_staging
from psij.executors.batch import _cluster, _command
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from sssjob.conversion.settings import Settings as Stated
from sssjob.errors import AccessError, UsageError
from sssjob.findings import Policy
from sssjob.run import staging as staging_module
from sssjob.run.client import Client
from sssjob.run.history import Event
from sssjob.run.journal import Entry, Journal, open_journal
from sssjob.run.placing import UNPLACED
from sssjob.run.rows import Row
from sssjob.run.standing import Running
from sssjob.xml.reader import read_document
from tests.fakes.inside import _without_env
from tests.simulation import users
from tests.simulation.cluster import Cluster, Settings
from tests.simulation.gridengine import GridEngine
from tests.simulation.judge import complaints
from tests.simulation.kernel import EPOCH, Deadlock, Kernel, Process
from tests.simulation.memory import Memory
from tests.simulation.plans import AWAY, ENDLESS, LATEST_S, Plan, document, make_plan
from tests.simulation.promises import shown
from tests.simulation.storage import Connection, Disk

__all__ = ["World", "carry_out", "warm_up"]

_LAST_S = 900.0                 # what the last clients may take, when all is well again
_POWER_S = 15.0                 # until a cut that nobody's writing brings on
_LATE_S = 25.0                  # the longest that a request is under way: less than ``lost_after``
_SCRIPTS = re.compile(r"<Arguments>-c '([^']*)'</Arguments>")       # of a document's jobs
_COARSE_NS = 1_000_000_000      # between two times of change that a file system tells apart
_SETTLED_S = 15.0               # after which accounting has told all
_CHANGING = ("sbatch", "scancel", "qsub", "qdel", "qhold", "qrls", "qmod")
_CONFIG: Mapping[str, Any] = {"queue_polling_interval": 10, "initial_queue_polling_delay": 2, "command_timeout": 20,
                              "accounting_delay": 10, "lost_after": 30}
_SGE = "psij.executors.batch.sge.SGEJobExecutor"
_ABSENT = object()
_KINDS: Mapping[str, type[Cluster]] = {"slurm": Cluster, "sge": GridEngine}


# --- living through it -----------------------------------------------------------------------------------------------

class World:
    """All that there is while a plan is carried out. folder: of the journal and the work directories."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.kernel = Kernel(int(plan["seed"]))
        self.clusters = [_KINDS[one["kind"]](self.kernel, _settings(one), f"head{number}")
                         for number, one in enumerate(plan["clusters"])]
        self.storms: list[tuple[float, float, int, dict[str, Any]]] = []
        self.clients: list[Process] = []
        self.stagings: list[Staged] = []
        self.wrong: list[str] = []
        self.ahead = [0.0 for _ in self.clusters]       # by how much the clock of each cluster's login hosts is
        self.known: dict[int, list[tuple[Running, list[Event]]]] = {}   # jobs with their histories, before a prune
        needs_disk = any(step["do"] == "power" for step in plan["steps"])
        self.was_full = False
        self.disk = Disk(folder / "journal.db", self.kernel.chance) if needs_disk else None
        self.memory = Memory(self.kernel.rest)

    def live(self) -> list[str]:
        """What is wrong in the end."""
        warm_up()
        return self._live()

    def _live(self) -> list[str]:
        with ExitStack() as stack:
            stack.enter_context(self.kernel.installed())
            stack.enter_context(_in_place(self._replaced()))
            try:
                for cluster, one in zip(self.clusters, self.plan["clusters"], strict=True):
                    if one["ancient"]:
                        for number in range(cluster.settings.first, cluster.settings.first + 4):
                            cluster.ancient(number, self.kernel.chance.choice(("1000", "2000")))
                director = self._director = self.kernel.process("director", self._direct)
                for cluster in self.clusters:
                    self.kernel.process("cluster", lambda cluster=cluster: self._tick(cluster))  # type: ignore[misc]
                self.kernel.run(lambda: director.dead)
                if director.failure is not None:
                    raise director.failure
                judge = self.kernel.process("judge", self._judge)
                self.kernel.run(lambda: judge.dead or judge.failure is not None)
                if judge.failure is not None:
                    raise judge.failure
            except Deadlock as error:
                self.wrong.append(f"deadlock: {error}")
            finally:
                self.kernel.close()
                self.memory.close()
                if self.disk is not None:
                    self.disk.close()
        return self.wrong

    def _replaced(self) -> Iterator[tuple[str, Any]]:
        yield "psij.executors.batch._host.run", self._run
        yield "sssjob.run.client.token_hex", lambda n=8: f"{self.kernel.chance.getrandbits(8 * n):0{2 * n}x}"
        yield "sssjob.run.again.token_hex", lambda n=8: os.urandom(n).hex()
        yield "sssjob.run.journal.Entry.take", _taking(Entry.take, self)
        yield "sssjob.run.journal.Entry._write", self._dying_at_commits(Entry._write)
        yield "sssjob.run.journal.Journal.add", self._dying_at_commits(Journal.add)
        yield "socket.gethostname", lambda: self._here.host
        yield "os.posix_fallocate", lambda *_: None
        yield "os.fsync", lambda *_: None
        yield "sssjob.run.staging._stage", self._watched(staging_module._stage)
        yield "psij.executors._local_staging._copy_file", self._copying(_local_staging._copy_file)
        yield f"{_SGE}._cluster", lambda *_: place(self.clusters[self._here.extra["on"]])
        yield f"{_SGE}._cluster_name", lambda *_: self.clusters[self._here.extra["on"]].settings.name
        yield "sssjob.run.storage._on_network", lambda *_: False        # the folder is this machine's
        yield "psij.executors.batch._host._Here.changed", lambda _, directory: self._changed(directory)
        if self.disk is None:
            yield "sqlite3.connect", self.memory.connection
            yield "sssjob.run.storage._prepare", lambda *_: None
        else:
            yield "sqlite3.connect", lambda path, **_: Connection(path, self.disk, self._power_cut)

    def _changed(self, directory: Path) -> int:
        """The time of the last change of a directory, in the world's nanoseconds: of the first look after it. A change
        itself leaves the time of this machine, which no world has, until somebody looks."""
        shown = os.stat(directory).st_mtime_ns
        now = int((EPOCH + self.kernel.now) * 1e9)
        if shown > now:
            shown = now - now % _COARSE_NS
            os.utime(directory, ns=(shown, shown))
        return shown

    @property
    def _here(self) -> Process:
        process = self.kernel.here
        assert process is not None
        return process

    # --- what happens when -----------------------------------------------------------------------------------------

    def _direct(self) -> None:
        kernel = self.kernel
        for step in self.plan["steps"]:
            if (left := step["at"] - kernel.now) > 0:
                kernel.rest(left)
            self._do(step)
        kernel.rest(max(LATEST_S + _POWER_S - kernel.now, 0.0))
        self.storms.clear()
        self.memory.is_full = False
        for cluster in self.clusters:
            cluster.up = cluster.accounting_up = True
            cluster.end_strangers()         # who might keep a queue full for ever
        kernel.rest(60.0)
        for process in self.clients:            # whoever hangs is ended by somebody
            process._close()
        for on, _ in enumerate(self.clusters):
            self._client(on, "last", lambda on=on: self._settle(on), None)  # type: ignore[misc]
        until = kernel.now + 12 * _LAST_S
        while any(not process.dead for process in self.clients) and kernel.now < until:
            kernel.rest(10.0)

    def _do(self, step: Mapping[str, Any]) -> None:
        on, cluster = step["on"], self.clusters[step["on"]]
        match step["do"]:
            case "submit" | "other":
                self._client(on, step["do"], lambda: self._submit(on, step), step.get("die"))
            case "again":
                made = next(one for one in self.plan["steps"] if one.get("token") == step["name"])
                if made["at"] <= self.kernel.now:
                    self._client(made["on"], "again", lambda: self._submit(made["on"], made), step.get("die"),
                                 step.get("door"))
            case "refresh":
                self._client(on, "refresh", lambda: self._refresh(on), None)
            case "power":
                self.kernel.spawn(self._here, lambda: self._power(step["operations"]))
            case "look":
                self._client(on, "look", lambda: self._look(on), step.get("die"))
            case "wait":
                for _ in range(step["clients"]):
                    self._client(on, "wait", lambda: self._wait(on, step["seconds"]), step.get("die"))
            case "cancel":
                self._client(on, "cancel", lambda: self._cancel(on, step["name"]), step.get("die"))
            case "hold" | "release" | "rerun" | "anew" | "prune":
                self._client(on, step["do"], lambda: users.act(self, on, step), step.get("die"))
            case "pause":
                self.kernel.spawn(self._here, lambda: users.pause(self, cluster, step))
            case "clock":
                users.set_clock(self, on, step["seconds"])
            case "stranger":
                cluster.tick()
                cluster.stranger(step["user"], step["lasts"])
            case "requeue" | "forget" | "break":
                ours = [job for job in cluster.jobs if job.tag is not None and not job.gone]
                for job in ours[step["job"]:step["job"] + 1]:
                    if step["do"] == "requeue":
                        cluster.requeue(job, step["state"])
                    elif step["do"] == "forget":
                        cluster.forget(job)
                    elif job.state == "RUNNING":
                        cluster.break_down(job, step["state"])
            case "double":
                cluster.tick()
                for job in [job for job in cluster.jobs if job.tag is not None][step["job"]:step["job"] + 1]:
                    cluster.double(job, step["user"], step["lasts"], step["cut"])
            case "full":
                self.kernel.spawn(self._here, lambda: self._full(step["seconds"]))
            case "reset":
                cluster.reset()
            case "outage":
                self.kernel.spawn(self.kernel.current.process,  # type: ignore[union-attr]
                                  lambda: self._outage(cluster, step["what"], step["seconds"]))
            case "storm":
                self.storms.append((self.kernel.now, self.kernel.now + step["seconds"], on, dict(step)))

    def _power(self, operations: int) -> None:
        """Cut the power after so many operations of the disk, or after a while."""
        disk = self.disk
        assert disk is not None
        disk.cut_in, before = operations, disk.cuts
        self.kernel.rest(_POWER_S)
        if disk.cuts == before:
            self._power_cut()

    def _outage(self, cluster: Cluster, what: str, seconds: float) -> None:
        name = "up" if what == "controller" else "accounting_up"
        setattr(cluster, name, False)
        self.kernel.rest(seconds)
        setattr(cluster, name, True)

    def _full(self, seconds: float) -> None:
        """Have the disk of the journal be full for a while."""
        self.memory.is_full = self.was_full = True
        self.kernel.rest(seconds)
        self.memory.is_full = False

    def _tick(self, cluster: Cluster) -> None:
        while True:
            cluster.tick()
            due = cluster.next_due()
            self.kernel.rest(5.0 if due is None else min(max(due - self.kernel.now, 0.05), 5.0))

    # --- clients -----------------------------------------------------------------------------------------------------

    def _client(self, on: int, name: str, work: Callable[[], None], die: Mapping[str, Any] | None,
                door: str | None = None) -> None:
        if door is None:
            door = self.kernel.chance.choice("ab") if name in ("look", "wait", "cancel", "refresh") else "a"
        process = self.kernel.process(f"{name}{len(self.clients)}", work, f"login{on}{door}", self.ahead[on])
        process.extra |= {"on": on, "die": dict(die) if die else None, "calls": {"command": 0, "commit": 0, "copy": 0},
                          "wrote": 0.0}
        self.clients.append(process)

    def opened(self, on: int) -> Client:
        """A client of the journal."""
        config = BatchSchedulerExecutorConfig(work_directory=self.folder / "work", **_CONFIG)
        journal = open_journal(self.folder / "journal.db")
        process = self.kernel.here
        assert process is not None
        process.resources.append(journal.close)
        process.extra["journal"] = journal
        return Client(journal, config=config, settings=Stated([]))

    def _submit(self, on: int, step: Mapping[str, Any]) -> None:
        client = self.opened(on)
        prefix = f"s{step['token']}a"
        for number, job in enumerate(step["jobs"]):
            if "stage" in job:
                (self.folder / f"{prefix}{number}").mkdir(exist_ok=True)
        client.max_queued = step.get("cap")
        text = document(step["jobs"], self.folder, prefix, "failfast" in step)
        try:
            submission = client.submit(read_document(text.encode()), self.clusters[on].executor,
                                       policy=Policy.IGNORE, cwd=self.folder, request=f"token {step['token']}")
        except UsageError:
            if not any(one["do"] == "other" and one["token"] == step["token"] for one in self.plan["steps"]):
                raise       # else this is another document under a request that was made
            return
        scripts = {job["script"] for job in step["jobs"]}
        if submission and submission.entry and set(_SCRIPTS.findall(submission.entry.document)) != scripts:
            self.wrong.append(f"request: another document counts as that of token {step['token']}")

    def _refresh(self, on: int) -> None:
        self.opened(on).refresh([])

    def _look(self, on: int) -> None:
        client, began = self.opened(on), self.kernel.now
        submissions, answered = client.look([client.journal.entry(number) for number in self.numbers(client)], 5.0)
        if answered and self.is_quiet(on, began):
            self.wrong += shown(self, on, began, submissions)

    def _wait(self, on: int, seconds: float) -> None:
        client = self.opened(on)
        names = [f"@{number}" for number in self.numbers(client)]
        if names:
            client.wait(names, seconds)

    def _cancel(self, on: int, name: int) -> None:
        client = self.opened(on)
        numbers = self.numbers(client)
        if name < len(numbers):
            client.cancel([f"@{numbers[name]}"], 5.0)

    def _settle(self, on: int) -> None:
        """End what would not end, and wait for all."""
        client = self.opened(on)
        names = [f"@{number}" for number in self.numbers(client)]
        if names:
            endless = [row.key for row in client.journal.rows() if row.outcome is None and _is_endless(client, row)]
            if endless:
                client.cancel(endless, 5.0)
            users.wait_for_all(self, client, names, _LAST_S)
        self.kernel.rest(max(_SETTLED_S, self.clusters[on].settings.lag + _SETTLED_S / 2))
        client.refresh([])
        if any(self.is_left(client, row) for row in client.journal.rows()):
            self._client(on, "last", lambda: self._settle(on), None, "b")

    def is_left(self, client: Client, row: Row) -> bool:
        """Whether a job is left to a client on the second login host of the cluster: it was submitted there while the
        manager did not say which cluster it is, and none is known that bears its tag."""
        here, entry = self._here.host, client.journal.entry(row.submission)
        return not here.endswith("b") and row.outcome is None and entry.cluster is None and any(
            event.kind == UNPLACED and event.data["way"].startswith(f"{here[:-1]}b ") for event in entry.events())

    @staticmethod
    def numbers(client: Client) -> list[int]:
        """Of all submissions."""
        return list(dict.fromkeys(row.submission for row in client.journal.rows()))

    # --- the network --------------------------------------------------------------------------------------------------

    def _run(self, command: Sequence[str], timeout_s: float, environment: Mapping[bytes, bytes] | None = None,
             limit: int = 0) -> _command.Result:
        """In the place of ``psij.executors.batch._command.run``."""
        process = self.kernel.here
        assert process is not None
        cluster, chance = self.clusters[process.extra["on"]], self.kernel.chance
        words = _without_env(list(command))
        journal = process.extra.get("journal")
        if journal is not None and journal._taken_back is not None:
            self.wrong.append(f"the journal is held: {process.name} waits for {words[0]}, and others with it")
        fault = self._fault(process.extra["on"])
        self.kernel.rest(chance.uniform(0.005, 0.2))
        if fault == "refused":
            refused = cluster.refused(words[0])
            return _command.Result(refused.exit_code, refused.stdout, refused.stderr)
        if fault == "late" and _is_changing(words):
            self.kernel.spawn(self._director, lambda: self._arrive_late(cluster, words))
        if fault in ("lost request", "late"):
            self.kernel.rest(timeout_s)
            raise subprocess.TimeoutExpired(list(command), timeout_s)
        self._perhaps_die("command", before=True, request=(cluster, words))
        answer = cluster.command(words)
        self._perhaps_die("command", before=False)
        self.kernel.rest(chance.uniform(0.005, 0.2) if fault != "slow" else timeout_s / 2)
        if fault == "lost answer":
            self.kernel.rest(timeout_s)
            raise subprocess.TimeoutExpired(list(command), timeout_s)
        text = answer.stdout
        if fault == "cut":
            text = text[:chance.randint(0, len(text))]
        elif fault == "garbage":
            text = "\x1b hm\n"
        elif fault == "empty":
            text = ""
        return _command.Result(answer.exit_code, text, answer.stderr)

    def _arrive_late(self, cluster: Cluster, words: list[str]) -> None:
        """A request that the network has kept: who sent it has given it up, or is no more."""
        self.kernel.rest(self.kernel.chance.uniform(1.0, _LATE_S))
        if words[0] not in ("sbatch", "qsub") or Path(words[-1]).exists():
            cluster.command(words)

    def _fault(self, on: int) -> str | None:
        now, chance = self.kernel.now, self.kernel.chance
        for begin, end, where, storm in self.storms:
            if where == on and begin <= now < end and chance.random() < storm["rate"]:
                return str(chance.choice(storm["faults"]))
        return None

    def is_quiet(self, on: int, since: float) -> bool:
        """Whether there was no storm since then."""
        return all(where != on or end < since or begin > self.kernel.now for begin, end, where, _ in self.storms)

    def _perhaps_die(self, point: str, before: bool, request: tuple[Cluster, list[str]] | None = None) -> None:
        """Die, if it is time. request: what may be under way then, and arrives all the same."""
        process = self.kernel.here
        assert process is not None
        die = process.extra.get("die")
        if die is None or die["at"] != point or bool(die["before"]) != before:
            return
        process.extra["calls"][point] += 1
        if process.extra["calls"][point] == die["count"]:
            if request is not None and _is_changing(request[1]) and self.kernel.chance.random() < 0.5:
                self.kernel.spawn(self._director, lambda: self._arrive_late(*request))
            process.kill()

    def _power_cut(self) -> None:
        """All clients die: the one that was at the disk does not return from here."""
        assert self.disk is not None
        for process in self.clients:
            process._close()
        self.disk.restore()
        if self._here in self.clients:
            self._here.kill()

    def _watched(self, stage: Callable[..., Any]) -> Callable[..., Any]:
        """``staging._stage``, with a note of who does it when."""
        def staged(staging: Any, leaving: Any, *others: Any) -> Any:
            one = Staged(staging.mark, self._here, self.kernel.now)
            self.stagings.append(one)
            try:
                failure = stage(staging, leaving, *others)
                one.whole = failure is None and not leaving.left    # who is told to leave writes no end down
            finally:
                one.end = one.process.died or self.kernel.now
            return failure

        return staged

    def _copying(self, copy: Callable[..., Any]) -> Callable[..., Any]:
        """``_copy_file``, which takes its time, and may fail while there is a storm."""
        def copied(source: str, target: str, stop: Any) -> None:
            self._perhaps_die("copy", before=True)
            mark = getattr(_local_staging._own, "mark", "")     # all threads of a world are one of the interpreter's
            self.kernel.rest(self.kernel.chance.uniform(0.01, 3.0))
            _local_staging._own.mark = mark
            if self._fault(self._here.extra["on"]) == "disk":
                raise OSError(errno.EIO, AWAY)
            copy(source, target, stop)
            self._perhaps_die("copy", before=False)

        return copied

    def _dying_at_commits(self, work: Callable[..., Any]) -> Callable[..., Any]:
        def written(*arguments: Any, **named: Any) -> Any:
            self._perhaps_die("commit", before=True)
            done = work(*arguments, **named)
            self._here.extra["wrote"] = self.kernel.now
            self._perhaps_die("commit", before=False)
            return done

        return written

    # --- the judge ----------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        process = self.kernel.here
        assert process is not None
        process.extra["on"] = 0
        for client in self.clients:
            if self.was_full and isinstance(client.failure, AccessError) and "the disk is full" in str(client.failure):
                continue
            if client.failure is not None:
                self.wrong.append(f"raised: {client.name}: {client.failure!r}")
            elif not client.dead:
                self.wrong.append(f"hangs: {client.name}")
        with open_journal(self.folder / "journal.db") as journal:
            self.wrong += complaints(self, journal)


@dataclass(eq=False)
class Staged:
    """One try to bring the files of an ended job to their places. whole: it was not stopped, nothing failed, and that
    was to be written down."""

    mark: str
    process: Process
    begin: float
    end: float | None = None
    whole: bool = False


@contextmanager
def _in_place(values: Iterable[tuple[str, Any]]) -> Iterator[None]:
    """Have these values stand at their places; as ``patch`` of unittest does, but places are looked up once only."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for target, value in values:
            owner, name = _owner(target)
            before.append((owner, name, vars(owner).get(name, _ABSENT)))
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in reversed(before):
            if value is _ABSENT:        # it is inherited
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@cache
def _owner(target: str) -> tuple[Any, str]:
    """The module or class in which something stands, and under which name."""
    path, _, name = target.rpartition(".")
    return pkgutil.resolve_name(path), name


def place(cluster: Cluster) -> _cluster.Cluster:
    """What a Grid Engine says of which cluster it is."""
    return _cluster.Cluster(cluster.settings.name, f"/sge/default on {cluster.host}")


@cache
def warm_up() -> None:
    """Do ahead what is done once a process, such as imports and templates: it is no part of any one world."""
    for package in (psij, sssjob):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(("__main__", "_main")):
                with suppress(ImportError):
                    importlib.import_module(found.name)
    jobs = [{"script": "sleep 1.0; exit 3", "stage": "clean", "retry": "exit(3)=1"}]
    plan = make_plan(0) | {"steps": [{"at": 0.0, "on": 0, "do": "submit", "token": 0, "jobs": jobs}]}
    with tempfile.TemporaryDirectory() as folder:
        World(plan, Path(folder))._live()


def _is_changing(words: Sequence[str]) -> bool:
    """Whether a command changes something, and may do so after its client was told that it failed."""
    return words[0] in _CHANGING or (words[0] == "scontrol" and words[1] != "show")


def _settings(one: Mapping[str, Any]) -> Settings:
    return Settings(**{key: value for key, value in one.items() if key not in ("ancient", "kind")})


def _is_endless(client: Client, row: Any) -> bool:
    parts = client.journal.entry(row.submission).document.split("<Job>")
    return any(f"<Id>{row.array or row.id}</Id>" in part and ENDLESS in part for part in parts)


def _taking(take: Callable[[Entry], bool], world: World) -> Callable[[Entry], bool]:
    """``Entry.take``, with the system's part in the end of a process: its lock is free."""
    def taken(entry: Entry) -> bool:
        before = entry._lease
        is_ours = take(entry)
        process = world.kernel.here
        if entry._lease is not None and before is None and process is not None:
            lease = entry._lease

            def close() -> None:
                if entry._lease == lease:
                    entry._lease = None
                    os.close(lease)

            process.resources.append(close)
        return is_ours

    return taken


# --- one plan --------------------------------------------------------------------------------------------------------

def carry_out(plan: Plan, folder: Path) -> list[str]:
    """Live through a plan; what is wrong afterwards."""
    folder.mkdir(parents=True)
    try:
        return World(plan, folder).live()
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)
