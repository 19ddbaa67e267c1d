"""A Slurm cluster in memory: what its commands print, and beside it the truth about every job that it ever had.

It makes what real clusters make and stand-ins rarely do: ids that come again (``MaxJobId``), rows of strangers, jobs
that are requeued, nodes that fail, a controller that forgets, accounting that is late, comes in pieces or is purged, a
limit on submitted jobs, a clock that is not ours. Jobs do what their scripts say by ``sleep`` and ``exit``.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from psij.executors.batch._identity import COMMON
from sssjob.users import user_name
from tests.fakes.lab import _virtual, numbers
from tests.fakes.slurm import _after, directives
from tests.simulation.kernel import EPOCH, Kernel
from tests.simulation.plans import STAGED

__all__ = ["US", "Answer", "Cluster", "NativeJob", "Run", "Settings", "name_of"]

US = "1000"             # our user
_DIRECTORY = re.compile(r"^ *cd -- (\S+) \|\|", re.MULTILINE)
_DAY_S = 86_400.0
_MIN_AGE_S = 2.0        # for which a manager keeps the number of a job that has ended, at least


def name_of(user: str) -> str:
    """The name of a user."""
    return user_name() if user == US else "them"


class Answer(NamedTuple):
    """What a command says."""

    exit_code: int
    stdout: str
    stderr: str = ""


@dataclass
class Settings:
    """How a cluster behaves. Times in seconds.

    wait: from submission to start. slots: jobs that run at once. forget: from the end until squeue drops a job. lag:
    from the end until sacct has it; steps: how much later the usage comes. unknown: from the submission until sacct
    knows a job at all. purge: from the end until sacct has forgotten it. limit: jobs of a user. clock: how far its
    clock is ahead.
    """

    name: str = "lab"
    first: int = 1
    last: int = 1_000_000
    wait: float = 1.0
    slots: int = 4
    forget: float = 300.0
    lag: float = 0.0
    steps: float = 0.0
    unknown: float = 0.0
    purge: float = _DAY_S
    limit: int = 1000
    clock: float = 0.0
    late: float = 0.2               # from the end until the exit file is seen
    accounting: bool = True


@dataclass
class Run:
    """One life of a job on its nodes, in the kernel's time."""

    submit: float
    start: float
    end: float | None = None
    state: str = "RUNNING"
    stopped: float | None = None    # since when it is suspended
    paused: float = 0.0             # seconds for which it was


@dataclass
class NativeJob:
    """A job, and the truth about it."""

    number: int
    user: str
    tag: str | None
    name: str
    script: str
    comment: str
    submit: float
    lasts: float
    gives: int
    after: list[tuple[str, str]] = field(default_factory=list)
    held: bool = False
    begin: float = 0.0
    state: str = "PENDING"
    runs: list[Run] = field(default_factory=list)
    end: float | None = None
    exit: int = 0
    signal: int = 0
    canceled_by: list[str] = field(default_factory=list)
    orders: list[tuple[str, str]] = field(default_factory=list)     # what else clients had done to it, and who
    changed: float = 0.0            # when its state changed last
    gone: bool = False              # the controller has forgotten it
    eligible: float = 0.0           # when it was submitted, or requeued
    folder: Path | None = None      # where it works, as its script says
    array: int = 0                  # the array's id of an element, and its number; 0 of others
    element: int = 0
    beside: int | None = None       # elements of its array that run at once
    native_id: str = ""             # by which its manager knows it

    def __post_init__(self) -> None:
        self.native_id = self.native_id or str(self.number)

    @property
    def has_record(self) -> bool:
        """Whether it has a row of its own: elements of an array that wait have one together, but for those of which
        somebody held or released one."""
        return not self.array or self.state != "PENDING" or bool(self.runs or self.orders) or self.over

    @property
    def is_on_nodes(self) -> bool:
        """Whether it has processors, also while it is suspended."""
        return self.state in ("RUNNING", "SUSPENDED")

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.end is not None

    @property
    def run(self) -> Run | None:
        """The life that it leads now, or led last."""
        return self.runs[-1] if self.runs else None

    @property
    def life(self) -> Run | None:
        """The life that the controller shows: none of a job that waits, or was cancelled while it waited again."""
        run = self.run
        return None if self.state == "PENDING" or (self.over and run is not None and run.end != self.end) else run


class Cluster:
    """A controller with its accounting. jobs: all that there ever were, also such as share an id."""

    executor = "slurm"

    def __init__(self, kernel: Kernel, settings: Settings, host: str = "head") -> None:
        self.kernel, self.settings, self.host = kernel, settings, host
        self.jobs: list[NativeJob] = []
        self.calls: list[tuple[float, str]] = []
        self.up = self.accounting_up = True
        self.astray = 0.0           # by how much the clocks of its login hosts have been wrong
        self._next = settings.first
        self._files: list[tuple[float, Callable[[], None]]] = []

    # --- what happens on it ----------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Bring all jobs to the present."""
        now = self.kernel.now
        for _ in range(100):
            if not any([self._begin(job, now) or self._end(job, now) for job in self.jobs if job.end is None]):
                break
        due = [item for item in self._files if item[0] <= now]
        self._files = [item for item in self._files if item[0] > now]
        for _, write in due:
            write()

    def next_due(self) -> float | None:
        """When something happens by itself."""
        times = [at for at, _ in self._files]
        for job in self.jobs:
            if not job.over and not job.gone:
                if job.state == "RUNNING" and job.run is not None:
                    times.append(job.run.start + job.run.paused + job.lasts)
                elif job.state == "PENDING" and not job.held and (
                        ready := job.eligible + self.settings.wait) > self.kernel.now:
                    times.append(ready)         # else it begins with an end, which brings all jobs to the present
        return min(times, default=None)

    def _begin(self, job: NativeJob, now: float) -> bool:
        if job.state != "PENDING" or job.held or job.gone or not self.up:
            return False
        if now < max(job.eligible + self.settings.wait, job.begin - EPOCH) or not self._turn(job):
            return False
        if job.tag is not None and self._running() >= self.settings.slots:
            return False
        if job.beside is not None and sum(one.is_on_nodes for one in self._array_of(job)) >= job.beside:
            return False
        job.state, job.changed = "RUNNING", now
        job.runs.append(Run(job.eligible, now))
        self._record(job, ".start", f"{job.tag} {self._shown(now)}\n", now)
        return True

    def _running(self) -> int:
        """Jobs of ours that run: those of strangers have nodes of their own."""
        return sum(job.is_on_nodes for job in self.jobs if job.tag is not None)

    def _turn(self, job: NativeJob) -> bool:
        for kind, other_id in job.after:
            others = self._awaited(job, other_id)
            if not others or (kind == "any" and all(other.over for other in others)):
                continue
            if not all(other.over for other in others):
                return False
            if all(other.state == "COMPLETED" for other in others) != (kind == "ok"):
                job.state, job.end = "CANCELLED", self.kernel.now
                job.canceled_by.append("dependency")
                return False
        return True

    def _awaited(self, job: NativeJob, other_id: str) -> list[NativeJob]:
        """What a job waits for: what bore the id when the job was submitted is meant."""
        return [other for other in self.find_all(other_id) if other.submit < job.submit]

    def _end(self, job: NativeJob, now: float) -> bool:
        run = job.run
        if job.state != "RUNNING" or run is None or now < run.start + run.paused + job.lasts:
            return False
        self.finish(job, "FAILED" if job.gives else "COMPLETED", run.start + run.paused + job.lasts,
                    exit_code=job.gives)
        return True

    def finish(self, job: NativeJob, state: str, at: float, exit_code: int = 0, signal: int = 0) -> None:
        """End a job, and its run if it leads one."""
        self.resume(job)
        run = job.run
        if job.state == "RUNNING" and run is not None:
            run.end, run.state = at, state
            if not signal and state in ("COMPLETED", "FAILED"):
                times = self._shown(run.start), self._shown(at)
                self._leave_result(job, at)
                lines = [str(exit_code), str(job.tag), *map(str, times)]
                self._record(job, ".ec", "\n".join(lines) + "\n", at + self.settings.late)
        job.state, job.end, job.exit, job.signal, job.changed = state, at, exit_code, signal, self.kernel.now

    def suspend(self, job: NativeJob) -> None:
        """Stop a job that runs, as an operator or a job of a better queue does."""
        if job.state == "RUNNING" and job.run is not None:
            job.state, job.run.stopped, job.changed = "SUSPENDED", self.kernel.now, self.kernel.now

    def resume(self, job: NativeJob) -> None:
        """Let a job go on that is suspended."""
        run = job.run
        if job.state == "SUSPENDED" and run is not None and run.stopped is not None:
            run.paused += self.kernel.now - run.stopped
            job.state, run.stopped, job.changed = "RUNNING", None, self.kernel.now

    def has_counted(self, run: Run) -> float:
        """For how many seconds of a run its manager accounts: those in which it was suspended are none of Slurm's."""
        return 0.0 if run.end is None else run.end - run.start - run.paused

    def _leave_result(self, job: NativeJob, at: float) -> None:
        """What a program writes that runs to its end: a file in its folder, which says whose it is."""
        folder = job.folder
        if folder is None or not folder.is_dir():
            return

        def write() -> None:
            (folder / STAGED).write_text(f"{job.tag}\n")

        self._files.append((at, write))

    def break_down(self, job: NativeJob, state: str) -> None:
        """End a job for good by what is not its fault."""
        self.finish(job, "NODE_FAIL" if state == "REQUEUED" else state, self.kernel.now,
                    signal=125 if state == "OUT_OF_MEMORY" else 0)

    def requeue(self, job: NativeJob, state: str) -> None:
        """Take a job off its nodes and into the queue again: NODE_FAIL, PREEMPTED or REQUEUED."""
        self.resume(job)
        run = job.run
        if job.state == "RUNNING" and run is not None:
            run.end, run.state = self.kernel.now, state
            job.state, job.eligible, job.changed = "PENDING", self.kernel.now, self.kernel.now

    def forget(self, job: NativeJob) -> None:
        """Have the controller lose a job: accounting keeps what it has."""
        self.resume(job)
        job.gone, job.changed = True, self.kernel.now
        if not job.over:
            job.state = "LOST"
            job.end = self.kernel.now
            if job.run is not None:
                job.run.end = self.kernel.now

    def reset(self) -> None:
        """Install the controller anew: it has no jobs, and counts from the first id again."""
        for job in self.jobs:
            if not job.gone:
                self.forget(job)
        self._next = self.settings.first

    def stranger(self, user: str, lasts: float, code: int = 0) -> NativeJob:
        """A job that is not of sssjob."""
        job = NativeJob(self._number(), user, None, "stranger", "/home/stranger/job.sh", "", self.kernel.now, lasts,
                        code, eligible=self.kernel.now)
        self.jobs.append(job)
        return job

    def double(self, ours: NativeJob, user: str, lasts: float, cut: int) -> None:
        """A stranger's job that looks like one of ours: what it says of itself begins as our tag does, of which the
        last characters are cut off or, where it is our own user's, others."""
        assert ours.tag is not None
        tag = ours.tag[:-cut] + "x" * (cut if user == US else 0)
        job = self.stranger(user, lasts)
        job.script, job.comment, job.name = f"/home/stranger/{tag}.job", f"sssjob:{tag}", ours.name

    def end_strangers(self) -> None:
        """Have all jobs end that are not of sssjob."""
        for job in self.jobs:
            if job.tag is None and not job.over:
                self.finish(job, "COMPLETED", self.kernel.now)

    def ancient(self, number: int, user: str) -> None:
        """A row of years ago in accounting, under an id that will come again."""
        long_ago = self.kernel.now - 3000 * _DAY_S
        job = NativeJob(number, user, None, "ancient", "/home/old/job.sh", "", long_ago, 86_400.0, 0,
                        eligible=long_ago, state="COMPLETED", end=long_ago + _DAY_S + 10, gone=True)
        job.runs.append(Run(long_ago, long_ago + 10, long_ago + _DAY_S + 10, "COMPLETED"))
        self.jobs.append(job)

    def find(self, native_id: str) -> NativeJob | None:
        """The job that the controller knows by this id."""
        return next((job for job in reversed(self.jobs) if job.native_id == native_id and not job.gone), None)

    def find_all(self, native_id: str) -> list[NativeJob]:
        """The same, or all elements of the array of this id."""
        for job in reversed(self.jobs):
            if not job.gone and native_id in (job.native_id, str(job.array)):
                return [job] if native_id == job.native_id else [one for one in self._array_of(job) if not one.gone]
        return []

    def _array_of(self, job: NativeJob) -> list[NativeJob]:
        return [one for one in self.jobs if one.array == job.array and one.script == job.script]

    def _number(self) -> int:
        """The next number that is free. Slurm looks at the dependencies of jobs that wait before it drops the record
        of one that has ended, for which that is to be two seconds old at least (MinJobAge): a number that a job still
        waits for is nobody else's."""
        kept = [job for job in self.jobs if not job.gone and (
            not self._dropped(job) or (job.end is not None and self.kernel.now < job.end + _MIN_AGE_S))]
        taken = {number for job in kept for number in (job.number, job.array)}      # an array keeps its own
        taken |= {int(other_id) for job in self.jobs if not job.over for _, other_id in job.after}
        while self._next in taken:
            self._next += 1
        number = self._next
        self._next = self._next + 1 if self._next < self.settings.last else self.settings.first
        return number

    def _dropped(self, job: NativeJob) -> bool:
        return job.end is not None and self.kernel.now > job.end + self.settings.forget

    def _shown(self, at: float) -> int:
        return math.floor(EPOCH + at + self.settings.clock)

    def _record(self, job: NativeJob, suffix: str, text: str, at: float) -> None:
        if job.tag is None:
            return

        def write() -> None:
            folder = os.path.dirname(job.script)
            place = f"{folder}/{job.native_id}.{job.tag}{suffix}"
            if os.path.isdir(folder):
                before = Path(place).read_text() if suffix == ".start" and os.path.exists(place) else ""
                with open(os.open(f"{place}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                    file.write((before + text).encode())
                os.replace(f"{place}.new", place)

        self._files.append((at, write))

    # --- commands ----------------------------------------------------------------------------------------------------

    def command(self, words: list[str]) -> Answer:
        """Carry a command out."""
        self.calls.append((self.kernel.now, words[0]))
        self.tick()
        if not (self.accounting_up if self.is_accounting(words[0]) else self.up):
            return self.refused(words[0])
        answer: Answer = getattr(self, words[0])(words[1:])
        self.tick()
        return answer

    def refused(self, command: str) -> Answer:
        """What a command says when nobody answers."""
        if command == "sacct":
            return Answer(1, "", "sacct: error: slurm_persist_conn_open: failed to send: Connection refused")
        return Answer(1, "", f"{command}: error: Unable to contact slurm controller (connect failure)")

    def is_accounting(self, command: str) -> bool:
        """Whether a command asks the accounting."""
        return command == "sacct"

    def _is_full(self, more: int = 1) -> bool:
        return sum(not job.over for job in self.jobs if job.user == US) + more > self.settings.limit

    def _take_array(self, script: Path, elements: list[int], beside: int | None, *others: Any) -> int:
        """A new array of ours: its id."""
        jobs = [self._take(script, *others) for _ in elements]
        for job, element in zip(jobs, elements, strict=True):
            job.array, job.element, job.beside = jobs[0].number, element, beside
            job.tag = f"{script.stem[:COMMON]}{element:08d}"
            self._name_element(job)
        return jobs[0].number

    def _name_element(self, job: NativeJob) -> None:
        job.native_id = f"{job.array}_{job.element}"

    def _shown_id(self, job: NativeJob) -> str:
        """The id of a row: that of the first of several elements that wait stands for all of them."""
        if job.has_record:
            return job.native_id
        return f"{job.array}_[{','.join(str(one.element) for one in self._array_of(job) if not one.has_record)}]"

    def _is_listed(self, job: NativeJob) -> bool:
        """Whether a job has a row in a list that is not by elements."""
        return job.has_record or job is next(one for one in self._array_of(job) if not one.has_record)

    def _take(self, script: Path, name: str, held: bool, after: list[tuple[str, str]], comment: str = "",
              begin: float = 0.0) -> NativeJob:
        """A new job of ours."""
        virtual, found = _virtual(script), _DIRECTORY.search(script.read_text())
        job = NativeJob(self._number(), US, virtual["tag"], name, str(script), comment, self.kernel.now,
                        virtual["lasts"], virtual["gives"], after, held, begin, eligible=self.kernel.now,
                        folder=None if found is None else Path(found[1]), changed=self.kernel.now)
        self.jobs.append(job)
        return job

    def _cancel(self, job: NativeJob, signal: int) -> None:
        """End a job as somebody wishes."""
        job.canceled_by.append(self._asker)
        self.finish(job, "CANCELLED", self.kernel.now, signal=signal if job.is_on_nodes else 0)

    @property
    def _asker(self) -> str:
        return self.kernel.here.name if self.kernel.here is not None else "nobody"

    def _order(self, order: str, jobs: Sequence[NativeJob], since: str) -> str:
        """Hold, release or requeue jobs; why not, where that is so. since: what is said of a job that is not there."""
        jobs = [job for job in jobs if not self._dropped(job)]
        wrong = "" if jobs else since
        for job in jobs:
            if order != "requeue" and (job.over or job.is_on_nodes):
                wrong = "Job is no longer pending execution"
            elif order == "requeue" and job.state == "PENDING":
                wrong = "Job is pending execution"
            else:
                job.orders.append((order, self._asker))
                job.changed = self.kernel.now
                if order == "requeue":
                    self._requeue_asked(job)
                else:
                    job.held = order == "hold"
        return wrong

    def _requeue_asked(self, job: NativeJob) -> None:
        """Put a job into the queue again because somebody wants it: Slurm does it to jobs that have ended too."""
        if job.over:
            job.end, job.state, job.exit, job.signal = None, "PENDING", 0, 0
            job.eligible = self.kernel.now
        else:
            self.requeue(job, "REQUEUED")

    def sbatch(self, arguments: list[str]) -> Answer:
        """Take a job."""
        script = Path(arguments[-1])
        options = directives(script)
        listed, _, beside = options.get("array", "").partition("%")
        elements = numbers(listed) if listed else []
        if self._is_full(len(elements) or 1):
            return Answer(1, "", "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission "
                                 "failed: Job violates accounting/QOS policy (job submit limit, user's size and/or "
                                 "time limits)")
        job = (options.get("job-name", script.name), "hold" in options, _after(options.get("dependency", "")),
               options.get("comment", ""), float(options.get("begin", "uts0").removeprefix("uts")))
        if elements:
            return Answer(0, f"{self._take_array(script, elements, int(beside) if beside else None, *job)}\n")
        return Answer(0, f"{self._take(script, *job).number}\n")

    def scancel(self, arguments: list[str]) -> Answer:
        """End jobs."""
        missing = []
        for native_id in (word for word in arguments if not word.startswith("-")):
            jobs = [job for job in self.find_all(native_id) if not self._dropped(job)]
            if not jobs:
                missing.append(native_id)
            for job in jobs:
                if not job.over:
                    self._cancel(job, signal=15)
        return Answer(0, "", "".join(f"scancel: error: Kill job error on job id {one}: Invalid job id specified\n"
                                     for one in missing))

    def squeue(self, arguments: list[str]) -> Answer:
        """The queue."""
        form = arguments[arguments.index("-o") + 1]
        lines = [] if "-h" in arguments else [re.sub("%.", lambda match: _HEADERS[match[0]], form)]
        for job in self.jobs:
            if job.gone or self._dropped(job) or ("-u" in arguments and job.user != US):
                continue
            if "-r" not in arguments and not self._is_listed(job):
                continue
            values = self._queued(job)
            if "-r" not in arguments:
                values["%i"] = self._shown_id(job)
            lines.append(re.sub("%.", lambda match, values=values: values[match[0]], form))  # type: ignore[misc]
        return Answer(0, "".join(f"{line}\n" for line in lines))

    def _queued(self, job: NativeJob) -> dict[str, str]:
        run = job.life
        reason = "None" if job.state != "PENDING" else "JobHeldUser" if job.held else \
            "Dependency" if job.after else "Priority"
        return {"%i": job.native_id, "%A": str(job.number), "%F": str(job.array or job.number), "%T": job.state,
                "%r": reason,
                "%V": str(self._shown(job.submit if len(job.runs) < 1 else job.eligible)),
                "%S": "N/A" if run is None else str(self._shown(run.start)),
                "%e": "N/A" if job.end is None else str(self._shown(job.end)), "%C": "1", "%D": "1",
                "%N": "node1" if run is not None else "", "%P": "batch", "%q": "normal", "%k": job.comment or "(null)",
                "%o": job.script, "%u": name_of(job.user), "%U": job.user, "%j": job.name,
                "%a": "physics", "%Z": "/home"}

    def sacct(self, arguments: list[str]) -> Answer:
        """Accounting."""
        if not self.settings.accounting:
            return Answer(1, "", "Slurm accounting storage is disabled")
        if "--json" in arguments:
            return Answer(1, "", "sacct: unrecognized option '--json'")
        fields = arguments[arguments.index("-o") + 1].split(",")
        ids = arguments[arguments.index("-j") + 1].split(",") if "-j" in arguments else None
        lines = [] if "-n" in arguments else ["|".join(fields)]
        for job in self.jobs:
            if (ids is not None and not {job.native_id, str(job.array or job.number)} & set(ids)) or (
                    "-u" in arguments and job.user != US) or not self._is_listed(job):
                continue
            for values in self._rows(job, steps="-X" not in arguments, each="-D" in arguments):
                lines.append("|".join(values.get(name, "") for name in fields))
        return Answer(0, "".join(f"{line}\n" for line in lines))

    def _rows(self, job: NativeJob, steps: bool, each: bool) -> Iterator[dict[str, str]]:
        now, settings = self.kernel.now, self.settings
        if now < job.submit + settings.unknown or (job.end is not None and now > job.end + settings.purge):
            return
        lives: list[Run | None] = [*job.runs]
        if job.state == "PENDING" or (job.over and (not job.runs or job.runs[-1].end != job.end)):
            lives.append(None)
        for run in lives if each else lives[-1:]:
            row = self._row(job, run)
            yield row
            if steps and run is not None and run.end is not None and now >= run.end + settings.lag + settings.steps:
                yield {**row, "JobID": f"{job.native_id}.batch", "MaxRSS": "52424K", "AveRSS": "52424K"}

    def _row(self, job: NativeJob, run: Run | None) -> dict[str, str]:
        now, end = self.kernel.now, job.end if run is None else run.end
        state = job.state if run is None else run.state
        if end is not None and now < end + self.settings.lag:       # it has not been told yet
            end, state = None, "RUNNING" if run is not None else "PENDING"
        if run is not None and run.stopped is not None:
            state = "SUSPENDED"
        if state == "LOST" or (run is not None and job.gone and job.state == "LOST" and run is job.run):
            end, state = None, "RUNNING" if run is not None else "PENDING"
        code = job.exit if end is not None and run is job.run else 0
        began = None if run is None else self._shown(run.start)
        paused = 0 if run is None else round(run.paused)
        elapsed = 0 if began is None else (self._shown(now) if end is None else self._shown(end)) - began - paused
        return {"JobID": self._shown_id(job), "JobIDRaw": str(job.number), "JobName": job.name,
                "State": f"CANCELLED by {US}" if state == "CANCELLED" else state,
                "ExitCode": f"{code - 128 if code >= 128 else code}:{job.signal if end is not None else 0}",
                "Submit": str(self._shown(job.submit if run is None and not job.runs else
                                          job.eligible if run is None else run.submit)),
                "Start": "None" if began is None else str(began), "End": "Unknown" if end is None else str(
                    self._shown(end)), "ElapsedRaw": str(elapsed), "Suspended": f"{paused // 60:02d}:{paused % 60:02d}",
                "TotalCPU": "00:01.500",
                "NCPUS": "1", "NNodes": "1", "NodeList": "None assigned" if run is None else "node1",
                "MaxRSS": "", "AveRSS": "", "Partition": "batch", "AllocTRES": "cpu=1,mem=100M,node=1,billing=1",
                "ConsumedEnergyRaw": "0", "Account": "physics", "QOS": "normal", "Cluster": self.settings.name,
                "Comment": "", "User": name_of(job.user), "UID": job.user, "WorkDir": "/home",
                "SubmitLine": f"sbatch --parsable {job.script}" if job.tag or job.comment else "sbatch job.sh"}

    def scontrol(self, arguments: list[str]) -> Answer:
        """The controller's own words."""
        if arguments == ["show", "config"]:
            name = self.settings.name
            return Answer(0, f"Configuration data as of today\nClusterName             = {name}\n"
                             f"SlurmctldHost[0]        = {self.host}\nSlurmctldPort           = 6817\n"
                             "MaxArraySize            = 1001\n")
        order = {"uhold": "hold"}.get(arguments[0], arguments[0])
        if order != "show":
            refusals = [(native_id, self._order(order, self.find_all(native_id), "Invalid job id specified"))
                        for native_id in arguments[-1].split(",")]
            said = "".join(f"{refusal} for job {native_id}\n" for native_id, refusal in refusals if refusal)
            return Answer(int(bool(said)), "", said)
        jobs = [job for job in self.find_all(arguments[-1]) if not self._dropped(job)]
        if not jobs:
            return Answer(1, "", "slurm_load_jobs error: Invalid job id specified\n")
        return Answer(0, "".join(map(self._shown_job, jobs)))

    def _shown_job(self, job: NativeJob) -> str:
        """The line of `scontrol -o show job`."""
        values, run = self._queued(job), job.life
        element = f"ArrayJobId={job.array} ArrayTaskId={job.element} " if job.array else ""
        return (f"JobId={job.number} {element}JobName={job.name} UserId={name_of(job.user)}({job.user}) "
                f"JobState={job.state} Reason={values['%r']} Restarts={max(len(job.runs) - 1, 0)} "
                f"ExitCode={job.exit}:{job.signal} SubmitTime={values['%V']} StartTime={values['%S']} "
                f"EndTime={values['%e']} Partition=batch NodeList={'node1' if run else '(null)'} NumNodes=1 "
                f"NumCPUs=1 Command={job.script} Comment={job.comment} \n")


_HEADERS: dict[str, Any] = {
    "%i": "JOBID", "%A": "JOBID", "%F": "ARRAY_JOB_ID", "%T": "STATE", "%r": "REASON", "%V": "SUBMIT_TIME",
    "%S": "START_TIME", "%e": "END_TIME", "%C": "CPUS", "%D": "NODES", "%N": "NODELIST", "%P": "PARTITION",
    "%q": "QOS", "%k": "COMMENT", "%o": "COMMAND", "%u": "USER", "%U": "UID", "%j": "NAME", "%a": "ACCOUNT",
    "%Z": "WORK_DIR"}
