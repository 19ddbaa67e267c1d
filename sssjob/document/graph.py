"""Dependencies among the jobs of a group: a directed acyclic graph, its order, and the state of the group.

Nothing here recurses: a chain of ten thousand jobs is as good as any. Source: SSS job object 3.1.0, sections 3 and 6.5.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import CycleError as _GraphlibCycle
from graphlib import TopologicalSorter
from typing import Literal, Self

from sssjob.document.arrays import Array, array_of
from sssjob.document.element import Property
from sssjob.document.model import Job, JobDefaults, JobGroup
from sssjob.document.states import job_state
from sssjob.errors import SSSJobError
from sssjob.findings import Findings

__all__ = ["CycleError", "Dependencies", "Edge", "GroupState", "Link", "derived_state"]

GroupState = Literal["NotQueued", "Unstarted", "Active", "Completed"]

_SHOWN = 20     # jobs of a long cycle that a message names


class CycleError(SSSJobError, ValueError):
    """Jobs that wait for each other: ``cycle`` holds their ids, each waiting for the next, the first again at the end.
    """

    def __init__(self, cycle: list[str]) -> None:
        self.cycle = cycle
        shown = cycle if len(cycle) <= _SHOWN else [*cycle[:_SHOWN - 1], "...", cycle[-1]]
        super().__init__(" -> ".join(shown))


@dataclass(frozen=True, slots=True)
class Link:
    """One Dependency element of a job. needs: the jobs that it names, as indices, of one element its array; none: they
    are not of this group.

    condition: OnSuccess, OnFailure or OnExit; code: the exit code that triggers, with OnExit (None: any)."""

    job: int
    needs: tuple[int, ...]
    element: Property

    @property
    def target(self) -> str:
        """The id or name as written."""
        return self.element.text

    @property
    def condition(self) -> str:
        """When the job may run."""
        return self.element.get("condition") or "OnSuccess"

    @property
    def code(self) -> int | None:
        """The exit code that triggers; only OnExit has one."""
        text = self.element.get("code")
        try:
            return int(text) if text is not None and self.condition == "OnExit" else None
        except ValueError:
            return None             # told when it was read (SSS207)

    @property
    def by_name(self) -> bool:
        """Whether JobName designates the other job; all jobs of that name must then hold."""
        return self.element.get("designator") == "JobName"


@dataclass(frozen=True, slots=True)
class Edge:
    """``job`` waits for ``needs`` (indices into ``Dependencies.jobs``) under the condition of ``link``."""

    job: int
    needs: int
    link: Link


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The graph of one group. jobs: in document order, references included; labels: their Id, else Name, else place."""

    jobs: tuple[Job, ...]
    labels: tuple[str, ...]
    links: tuple[Link, ...]

    @classmethod
    def of(cls, group: JobGroup) -> Self:
        """The graph of a group: Dependency elements by Id or Name; an Id that nobody has is tried as a Name.

        A job without Dependency has those of JobDefaults. Time is linear in the jobs and their dependencies."""
        jobs, defaults = tuple(group.jobs), group.defaults
        dependencies = [_dependencies(job, defaults) for job in jobs]
        ids: dict[str, tuple[int, ...]] = {}
        names: dict[str, list[int]] = {}
        for index, job in enumerate(jobs):
            identifier = job.reference if job.reference is not None else job.value("Id")
            if identifier is not None:
                ids.setdefault(str(identifier), (index,))
            name = job.value("Name")
            if name is not None:
                names.setdefault(str(name), []).append(index)
        frozen = {name: tuple(indices) for name, indices in names.items()}
        links = tuple(
            Link(index, _resolved(p, ids, frozen) or _array_with(p, ids, jobs, defaults), p)
            for index, indices in enumerate(dependencies) for p in indices)
        return cls(jobs, tuple(_label(job, index) for index, job in enumerate(jobs)), links)

    @property
    def edges(self) -> Iterator[Edge]:
        """Every pair of jobs of which one waits for the other."""
        return (Edge(link.job, needs, link) for link in self.links for needs in link.needs)

    def links_of(self) -> dict[int, tuple[Link, ...]]:
        """Job -> its dependencies; all of them must hold."""
        by_job: dict[int, list[Link]] = {}
        for link in self.links:
            by_job.setdefault(link.job, []).append(link)
        return {job: tuple(links) for job, links in by_job.items()}

    def components(self) -> list[tuple[int, ...]]:
        """The jobs in sets of which none waits for a job of another one, each in document order, the sets by their
        first job. Time is nearly linear in the jobs and their dependencies."""
        above = list(range(len(self.jobs)))

        def top(job: int) -> int:
            """The first job of the set in which a job is, as far as sets were joined."""
            while above[job] != job:
                above[job] = job = above[above[job]]
            return job

        tied: set[int] = set()          # by identity, as of hubs: what is tied by one link is not tied by the next
        for link in self.links:
            for needs in link.needs[:1] if id(link.needs) in tied else link.needs:
                first, second = sorted((top(link.job), top(needs)))
                above[second] = first
            tied.add(id(link.needs))
        sets: dict[int, list[int]] = {}
        for job in range(len(self.jobs)):
            sets.setdefault(top(job), []).append(job)
        return [tuple(jobs) for jobs in sets.values()]

    def unknown(self) -> tuple[Link, ...]:
        """Dependencies on jobs that are not part of the group."""
        return tuple(link for link in self.links if not link.needs)

    def order(self) -> tuple[int, ...]:
        """The jobs so that each comes after those it waits for, otherwise in document order; raises CycleError."""
        sorter = self._sorter()
        try:
            sorter.prepare()
        except _GraphlibCycle as error:
            raise CycleError(self._named(error.args[1])) from None
        ready: list[int] = []
        order: list[int] = []
        self._release(sorter, ready)
        while ready:
            job = heapq.heappop(ready)
            order.append(job)
            sorter.done(job)
            self._release(sorter, ready)
        return tuple(order)

    def cycle(self) -> list[str] | None:
        """The ids of one cycle as in CycleError, or None; without edges nothing is searched."""
        if not any(link.needs for link in self.links):
            return None
        try:
            self._sorter().prepare()
        except _GraphlibCycle as error:
            return self._named(error.args[1])
        return None

    def check(self, findings: Findings, *, path: str = "/JobGroup", known: Iterable[str] = ()) -> None:
        """Findings: a cycle (SSS410), jobs not here (SSS411). known: ids and names found elsewhere in the document."""
        self.check_cycle(findings, path)
        elsewhere = set(known)
        for link in self.unknown():
            if link.target in elsewhere:
                continue
            findings.add("SSS411", link.target, f"job {self.labels[link.job]} depends on {link.target!r}, which is not "
                         "in the group", path=f"{path}/Job[{link.job + 1}]/Dependency", item=link.element,
                         within=self.jobs[link.job])

    def check_cycle(self, findings: Findings, path: str) -> None:
        """A cycle (SSS410), told at the Dependency that closes it."""
        cycle = self.cycle()
        if cycle is None:
            return
        first, second = (self.labels.index(label) for label in cycle[:2])
        link = next((link for link in self.links if link.job == first and second in link.needs), None)
        what = f"{cycle[0]} depends on itself" if len(cycle) == 2 else f"dependencies form a cycle: {CycleError(cycle)}"
        where = f"{path}/Job[{first + 1}]/Dependency" if path or len(self.jobs) > 1 else "/Job/Dependency"
        findings.add("SSS410", cycle[0], what, path=where, item=link.element if link is not None else None,
                     within=self.jobs[first])

    # A name that many jobs have is a node of its own, negative, between those that wait and those that have it:
    # edges stay as many as elements.
    def _sorter(self) -> TopologicalSorter[int]:
        graph: dict[int, set[int]] = {index: set() for index in range(len(self.jobs))}
        hubs: dict[int, int] = {}       # by identity: all links to one name share one tuple
        for link in self.links:
            if len(link.needs) < 2:
                graph[link.job].update(link.needs)
                continue
            hub = hubs.setdefault(id(link.needs), -1 - len(hubs))
            if hub not in graph:
                graph[hub] = set(link.needs)
            graph[link.job].add(hub)
        return TopologicalSorter(graph)

    @staticmethod
    def _release(sorter: TopologicalSorter[int], ready: list[int]) -> None:
        """Move what has become ready to the heap; hubs are passed at once."""
        ready_nodes = sorter.get_ready()
        while ready_nodes:
            hubs = [node for node in ready_nodes if node < 0]
            for node in ready_nodes:
                if node >= 0:
                    heapq.heappush(ready, node)
            sorter.done(*hubs)
            ready_nodes = sorter.get_ready() if hubs else ()

    def _named(self, nodes: list[int]) -> list[str]:
        """graphlib lists each node before the one that waits for it; a cycle starts with its first job in order."""
        jobs = [node for node in reversed(nodes[1:]) if node >= 0]
        start = jobs.index(min(jobs))
        turned = [*jobs[start:], *jobs[:start]]
        return [self.labels[node] for node in (*turned, turned[0])]


def _dependencies(job: Job, defaults: JobDefaults | None) -> list[Property]:
    if job.reference is not None:
        return []
    return job.all("Dependency") or (defaults.all("Dependency") if defaults is not None else [])


def _resolved(p: Property, ids: dict[str, tuple[int, ...]], names: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    text = p.text.strip()
    if p.get("designator") == "JobName":
        return names.get(text, ())
    return ids.get(text) or names.get(text, ())


def _array_with(p: Property, ids: dict[str, tuple[int, ...]], jobs: tuple[Job, ...],
                defaults: JobDefaults | None) -> tuple[int, ...]:
    """The array of which a dependency names one element: ``a_3``."""
    array, _, index = p.text.strip().rpartition("_")
    if array not in ids or not (index.isascii() and index.isdecimal()) or p.get("designator") == "JobName":
        return ()
    stated = array_of(jobs[ids[array][0]], defaults)
    try:
        return ids[array] if stated is not None and int(index) in Array.of(stated.text).indices else ()
    except ValueError:
        return ()               # told where the array is read (SSS420)


def _label(job: Job, index: int) -> str:
    name = job.reference if job.reference is not None else job.value("Id")
    if name is None:
        name = job.value("Name")
    return f"Job[{index + 1}]" if name is None else str(name)


# --- the state of a group -----------------------------------------------------------------------------------------

def derived_state(group: JobGroup) -> GroupState:
    """The state that follows from those of the jobs (section 3): all not queued: NotQueued; none started: Unstarted;
    all Completed: Completed; else Active.

    A job is not queued while it has no State, or waits without a SubmitTime. References count for nothing."""
    jobs = [job for job in group.jobs if job.reference is None]
    defaults = group.defaults
    submitted = defaults is not None and defaults.value("SubmitTime") is not None
    states = [_phase(job, submitted) for job in jobs]
    if all(state == "new" for state in states):
        return "NotQueued"
    if all(state in ("new", "waiting") for state in states):
        return "Unstarted"
    return "Completed" if all(state == "done" for state in states) else "Active"


def _phase(job: Job, submitted: bool) -> Literal["new", "waiting", "started", "done"]:
    text = job.value("State")
    state = job_state(text).state
    if state == "Completed":
        return "done"
    if state in ("Running", "Suspended") or job.value("StartTime") is not None:
        return "started"
    if text is None or state == "NotQueued":
        return "new"
    return "waiting" if submitted or job.value("SubmitTime") is not None else "new"
