"""Executors as resource providers: the surroundings of jobs (``psij.surroundings``) are the three directories.

    config = JobExecutorConfig()
    config.surroundings = Provider({"hs06": 160.5, "grace_secs_job": 60})
    JobExecutor.get_instance("slurm", config=config)

What a job was granted counts more than what it asked for, and what the provider is told more than both. A job says what
it asks for by its specification and by custom attributes ``mjf.KEY``. ``SSSJOB_MJF`` in the environment (a folder, or
empty) makes one for the commands that run jobs.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Final

from psij import InvalidJobException, Job, JobSpec, ResourceSpecV1
from psij.surroundings import Around, Told
from sssjob.errors import AccessError, UsageError
from sssjob.mjf.features import Features
from sssjob.mjf.keys import KEYS
from sssjob.mjf.reader import Reader
from sssjob.mjf.script import EPILOGUE, EXPORTED, GUARD, Layer, Word, prologue
from sssjob.mjf.status import Usage, figures
from sssjob.mjf.values import MJFValueError, Value, read_value, write_value
from sssjob.mjf.writer import Directories, provide, sweep

__all__ = ["ENVIRONMENT", "Provider", "from_environment"]

log = logging.getLogger("sssjob.mjf")
#: The variable that makes the commands provide: a folder for the directories, or nothing for the usual one.
ENVIRONMENT: Final = "SSSJOB_MJF"
_PREFIX: Final = "mjf."
#: Amount that a resource manager tells (psij.surroundings.Told) -> key.
_TOLD: Final = {"native_id": "job_id", "start_time": "jobstart_secs", "processors": "allocated_cpu",
                "node_processors": "total_cpu", "wall_seconds": "wall_limit_secs", "cpu_seconds": "cpu_limit_secs",
                "memory_bytes": "max_rss_bytes", "swap_bytes": "max_swap_bytes", "scratch_bytes": "scratch_limit_bytes"}
#: Where nobody says more: the processors of the node, and with no quota the whole of the scratch space.
_USUAL: Final[Layer] = {
    "total_cpu": Word("$(getconf _NPROCESSORS_CONF 2>/dev/null)"),
    "scratch_limit_bytes": Word("$(df -Pk \"$_mjf\" 2>/dev/null | awk 'NR == 2 { print $2 }')", 1024)}
_POLL_S: Final = 30.0
_OLD_S: Final = 30 * 86400.0
_STATUS: Final = tuple(key.name for key in KEYS.values() if key.area == "status")


@dataclass(frozen=True, slots=True)
class Provider:
    """values: keys for every job, such as hs06 and grace_secs_job. root: the folder of the directories, ``$TMPDIR`` or
    /tmp unless stated. draft: the keys of draft 0.99 too. override: even where the site has its own directories.
    poll_s: seconds between two looks at what a pilot says. observe: told of every look at one that runs on this machine
    (job, all features), the last one at its end; in whatever thread that is."""

    values: Mapping[str, Value] = field(default_factory=dict)
    root: str | None = None
    draft: bool = False
    override: bool = False
    poll_s: float = _POLL_S
    clock: Callable[[], float] = time.time
    observe: Callable[[Job, Features], None] | None = None

    def check(self, job: Job) -> None:
        """Raise InvalidJobException for a custom attribute ``mjf.KEY`` that is no key or has no value of it."""
        if job.spec is not None:
            _stated(job.spec)

    def enter(self, job: Job, processors: int, native_id: str) -> Inside | NoDirectories:
        """The directories of a job on this machine; none where the site has its own. Raises AccessError, UsageError."""
        assert job.spec is not None
        root = self.root or os.environ.get("TMPDIR") or tempfile.gettempdir()
        sweep(root, _OLD_S, self.clock())
        total = os.cpu_count() or processors
        space = os.statvfs(root)
        values: dict[str, Value] = {"total_cpu": total, "scratch_limit_bytes": space.f_blocks * space.f_frsize}
        values |= _asked(job.spec) | {"allocated_cpu": processors, "job_id": native_id,
                                     "jobstart_secs": int(self.clock())} | dict(self.values)
        hs06, total_cpu = values.get("hs06"), values["total_cpu"]
        if "hs06_job" not in values and isinstance(hs06, int | float) and isinstance(total_cpu, int) and total_cpu:
            values["hs06_job"] = float(f"{hs06 * processors / total_cpu:.6g}")
        directories = provide(root, native_id, values, draft=self.draft, clock=self.clock)
        variables = directories.environment(os.environ, override=self.override)
        if not variables:
            directories.remove()
            return NoDirectories()
        observe = None if self.observe is None else partial(self.observe, job)
        return Inside(directories, variables, self.poll_s, self.clock, values.get("hs06_job"), observe)

    def around(self, job: Job, told: Told) -> Around:
        """The same in the lines of a submit script."""
        assert job.spec is not None
        granted = {_TOLD[name]: Word(*word) for name, word in told.words.items()}
        several = told.several or _nodes(job.spec) > 1
        if several and not told.each_node:
            _tell_once(type(job.executor or job._candidate).__name__)
        before = prologue(_USUAL, _asked(job.spec), granted, self.values, root=self.root, lines=told.lines,
                          each_node=told.each_node if several else "", draft=self.draft, override=self.override)
        return Around(before, EPILOGUE, EXPORTED, GUARD)

    def read(self, job: Job, text: str) -> Mapping[str, Any]:
        """The share of the benchmark, and what a pilot said last, from lines ``key=value``."""
        facts: dict[str, float] = {}
        for line in text.splitlines():
            name, _, raw = line.partition("=")
            try:
                value = read_value("time" if name == "now" else KEYS[name].kind, raw)
            except (LookupError, MJFValueError):
                continue            # a line of the job's own, or cut when it was killed
            if isinstance(value, int | float):
                facts[name] = value
        benchmark: dict[str, Any] = {"hs06_job": facts["hs06_job"]} if "hs06_job" in facts else {}
        if "now" not in facts or "used_CPU" not in facts:
            return benchmark
        usage = Usage()
        usage.take(facts["now"], facts["used_CPU"])
        return benchmark | _pilot(usage, facts, facts["now"])


@dataclass(frozen=True, slots=True)
class NoDirectories:
    """The site has directories of its own."""

    variables: Mapping[str, str] = field(default_factory=dict)

    def leave(self) -> Mapping[str, Any]:
        """Nothing to take away."""
        return {}


class Inside:
    """The directories of a job on this machine, and a look at what a pilot says every so many seconds."""

    def __init__(self, directories: Directories, variables: Mapping[str, str], poll_s: float,
                 clock: Callable[[], float], share: Value | None,
                 observe: Callable[[Features], None] | None = None) -> None:
        self.left: dict[str, Any] = {} if share is None else {"hs06_job": share}
        self.directories, self.variables, self.poll_s, self.clock = directories, variables, poll_s, clock
        self.observe = observe
        self.usage = Usage()
        self.last: Features | None = None
        self._reader = Reader.from_environment(variables)
        self._lock = threading.Lock()
        self._ended = False
        _POLLER.watch(self)

    def look(self) -> None:
        """Take a snapshot."""
        with self._lock:
            if self._ended or not os.path.exists(os.path.join(self.directories.path("status"), "used_CPU")):
                return
            self.directories.expire()
            features = self._reader.read(force=True)
            if features["used_CPU"].state == "value":
                self.last = features
                self.usage.take(self.clock(), features.value("used_CPU"))
                self._tell(features)

    def _tell(self, features: Features) -> None:
        try:
            if self.observe is not None:
                self.observe(features)
        except Exception:               # the directories have to go all the same
            log.exception("who observes a pilot")

    def leave(self) -> Mapping[str, Any]:
        """Remove the directories; what the pilot said, for the metadata."""
        self.look()
        _POLLER.forget(self)
        with self._lock:
            self._ended = True
            try:
                self.directories.remove()
            except AccessError as error:
                log.warning("%s", error)
        if self.last is None:
            return self.left
        self.usage.take(self.clock(), None)
        values = {name: value for name in (*_STATUS, "allocated_cpu") if (value := self.last.value(name)) is not None}
        return self.left | _pilot(self.usage, values, self.clock())


class _Poller:
    """One thread that looks at all pilots of this machine; there is none where there are no jobs."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._inside: dict[Inside, float] = {}
        self._thread: threading.Thread | None = None

    def watch(self, inside: Inside) -> None:
        """Look at a job's directories from now on; begins the thread."""
        with self._lock:
            self._inside[inside] = time.monotonic() + inside.poll_s
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="pilots", daemon=True)
                self._thread.start()
            self._lock.notify()

    def forget(self, inside: Inside) -> None:
        """Look no more."""
        with self._lock:
            self._inside.pop(inside, None)
            self._lock.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._inside:
                    self._thread = None
                    return
                now = time.monotonic()
                due = [inside for inside, when in self._inside.items() if when <= now]
                self._inside |= {inside: now + inside.poll_s for inside in due}
                if not due:
                    self._lock.wait(min(self._inside.values()) - now)
            for inside in due:
                try:
                    inside.look()
                except Exception:
                    log.exception("a pilot's status")


_POLLER: Final = _Poller()


@cache
def _tell_once(executor: str) -> None:
    """That only the first node of a job has directories."""
    log.warning("%s has nothing that runs a command on every node of a job: Machine/Job Features are on the first node "
                "alone, and programs on others do not see them", executor)


def _pilot(usage: Usage, figures_read: Mapping[str, float | None], now: float) -> dict[str, Any]:
    """Metadata: ``pilot``, with mean and greatest number of cores in use, and the wastes at the end."""
    wastes = figures(figures_read, now)
    measured = {"cores_mean": usage.mean, "cores_max": usage.greatest, "kill_waste": wastes.kill_waste,
            "draining_waste": wastes.draining_waste}
    return {"pilot": {name: float(value) for name, value in measured.items() if value is not None}}


def _asked(spec: JobSpec) -> dict[str, Value]:
    """What a specification asks for; custom attributes count more."""
    values: dict[str, Value] = {}
    attributes, resources = spec.attributes, spec.resources
    if attributes is not None and attributes.duration is not None:
        values["wall_limit_secs"] = int(attributes.duration.total_seconds()) or 1
    if isinstance(resources, ResourceSpecV1) and resources.memory:
        values["max_rss_bytes"] = resources.memory // resources.computed_node_count
    return values | _stated(spec)


def _stated(spec: JobSpec) -> dict[str, Value]:
    """The custom attributes ``mjf.KEY``. Raises InvalidJobException."""
    custom = spec.attributes.custom_attributes if spec.attributes is not None else None
    values: dict[str, Value] = {}
    for name, value in (custom or {}).items():
        key = KEYS.get(name[len(_PREFIX):]) if name.lower().startswith(_PREFIX) else None
        if not name.lower().startswith(_PREFIX):
            continue
        if key is None or key.area == "status":
            raise InvalidJobException(f"custom attribute {name!r} is no key of Machine/Job Features")
        try:
            typed = read_value(key.kind, value) if isinstance(value, str) else value
            write_value(key, typed)         # type: ignore[arg-type]
        except (MJFValueError, UsageError, TypeError) as error:
            raise InvalidJobException(f"custom attribute {name!r}: {error}") from error
        values[key.name] = typed             # type: ignore[assignment]
    return values


def _nodes(spec: JobSpec) -> int:
    """At most so many nodes: without a count of nodes, a process may be on each."""
    asked = spec.resources
    if not isinstance(asked, ResourceSpecV1):
        return 1
    stated = asked.node_count is not None or asked.processes_per_node is not None
    return asked.computed_node_count if stated else asked.computed_process_count


def from_environment(environment: Mapping[str, str]) -> Provider | None:
    """The provider that SSSJOB_MJF asks for, if it is set. Raises UsageError for a relative path."""
    root = environment.get(ENVIRONMENT)
    if root is None:
        return None
    if root and not os.path.isabs(root):
        raise UsageError(f"{root!r} is no absolute path: Machine/Job Features lie there, on the node")
    return Provider(root=root or None)
