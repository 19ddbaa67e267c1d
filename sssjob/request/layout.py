"""How a job or one of its task groups is laid out: nodes, tasks, processors, and how they are spread.

A ``Layout`` holds what is stated and answers what follows from it; every format, the matching and the prices ask here.
The rules: Processors is a total (8 with 2 a task are 4 tasks); processors alone ask for as many slots as there are
processors; TasksPerNode and a geometry give nodes; what does not divide evenly is spread so that no node gets more than
one above another ("3 nodes and 4 processors" are 2, 1 and 1). Nothing is ever rounded up into a larger total.
Source: SSS job object 3.1.0, sections 3.0, 5.1 and 6.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Kind", "Layout", "even", "kinds_of"]


@dataclass(frozen=True, slots=True)
class Kind:
    """``count`` nodes (or chunks) that are alike: how many tasks, processors and further units each of them has; None
    where the job says nothing of it."""

    count: int
    tasks: int | None = None
    processors: int | None = None
    units: int | None = None


def even(total: int, places: int) -> list[int]:
    """A total shared out: the first places get one more where it does not divide.

    >>> even(4, 3)
    [2, 1, 1]
    """
    each, more = divmod(total, places)
    return [each + 1] * more + [each] * (places - more)


def kinds_of(columns: Sequence[Sequence[tuple[int, int]] | None]) -> list[tuple[int, tuple[int | None, ...]]]:
    """Columns of runs (how many places, value of each) side by side: (how many places, the value of each column).

    None stands for a column that says nothing. All columns cover the same number of places.
    """
    ends: set[int] = set()
    for column in columns:
        at = 0
        for count, _ in column or ():
            at += count
            ends.add(at)
    rows, start = [], 0
    for end in sorted(ends):
        rows.append((end - start, tuple(None if c is None else _value_at(c, start) for c in columns)))
        start = end
    return rows


def _value_at(column: Iterable[tuple[int, int]], place: int) -> int:
    at = value = 0
    for count, value in column:
        at += count
        if place < at:
            return value
    return value


def runs(total: int, places: int) -> list[tuple[int, int]]:
    """``even`` as runs, so that a million places take no room."""
    each, more = divmod(total, places)
    return [run for run in ((more, each + 1), (places - more, each)) if run[0]]


@dataclass(slots=True)
class Layout:
    """What is stated of one part of a job; None: nothing.

    nodes, nodes_most: least and most; tasks: TaskCount, or the tasks that are listed; per_node: TasksPerNode; cpus:
    processors of one task; processors, processors_most: of all of it, least and most; chunks: pieces that the manager
    places as it likes (PBS); geometry: the tasks of each node; partly: the nodes are those of some task groups alone,
    the others say nothing of theirs; launched: the job names a launcher that starts a copy in each slot.
    """

    nodes: int | None = None
    nodes_most: int | None = None
    tasks: int | None = None
    per_node: int | None = None
    cpus: int | None = None
    processors: int | None = None
    processors_most: int | None = None
    chunks: int | None = None
    geometry: tuple[int, ...] = ()
    partly: bool = False
    launched: bool = False

    # -- what is stated is taken in
    def take_chunks(self, chunks: int | None) -> str:
        """Take how many chunks there are, after the nodes: why there cannot be so few, for each is on one node; empty
        where there can. As a distribution they give way to the nodes that are stated."""
        if chunks and self.nodes is not None and self.nodes > chunks:
            return f"{chunks} chunk{'s' * (chunks != 1)} cannot be on {self.nodes} nodes, for each is on one"
        self.chunks = chunks
        return ""

    def places_per(self, what: str | None) -> int | None:
        """How many there are of what a count is per, ``nodes`` or ``chunks``: 1 where it is per nothing of the kind,
        None where nothing says how many."""
        return {"nodes": self.node_total, "chunks": self.chunks}.get(what or "", 1)

    def spread_evenly(self) -> bool:
        """Have the same number of tasks on each node, for each node has the same number of processors; False where
        they cannot be shared out so. Processors alone are as many tasks."""
        if self.per_node or self.geometry or not self.nodes:
            return True
        tasks = self.slots
        if tasks is None or tasks % self.nodes:
            return False
        self.per_node = tasks // self.nodes
        return True

    def take_range(self, span: tuple[int, int] | None) -> None:
        """Take the least and the most nodes where the least is what is asked for."""
        if span is not None and span[0] == self.nodes:
            self.nodes_most = span[1]

    def widen(self, per_node: int) -> None:
        """Of a range of nodes take as many as the tasks need, of which each has so many at most."""
        if self.nodes and self.nodes_most and self.tasks is not None:
            self.nodes = max(self.nodes, min(self.nodes_most, -(-self.tasks // per_node)))
            self.nodes_most = None if self.nodes == self.nodes_most else self.nodes_most

    # -- what follows
    def misfit(self, *, geometry: tuple[int, ...] = (), per_node: int | None = None) -> str:
        """Why a distribution cannot be that of the counts that are stated, which win over it at every door; empty where
        it can. Section 6.4 leaves it to components."""
        if geometry and self.tasks not in (None, sum(geometry)):
            return f"the geometry lists {sum(geometry)} tasks, there are {self.tasks}"
        if geometry and self.nodes not in (None, len(geometry)):
            return f"the geometry lists {len(geometry)} nodes, there are {self.nodes}"
        if self.chunks is not None and len(geometry) > self.chunks:
            return f"the geometry lists {len(geometry)} nodes, more than there are chunks, {self.chunks}"
        if per_node and self.nodes and self.tasks is not None and self.tasks > per_node * self.nodes:
            return f"{self.tasks} tasks on {self.nodes} nodes are more than {per_node} on each"
        if per_node and self.chunks is not None and self.tasks is not None and self.tasks > per_node * self.chunks:
            return f"{self.tasks} tasks, {per_node} on a node, are on more nodes than there are chunks, {self.chunks}"
        return ""

    def doubt(self, kind: str) -> str:
        """What is odd about a distribution that can hold: it leaves nodes empty, or asks for more processors than are
        stated. Empty where nothing is. kind: that of the TaskDistribution."""
        if kind == "TasksPerNode" and self.per_node and self.nodes and self.tasks is not None and (
                self.per_node * self.nodes - self.tasks >= self.per_node):
            return f"{self.tasks} tasks leave some of {self.nodes} nodes empty, with {self.per_node} on each"
        if self.geometry and self.processors is not None and self.processors < sum(self.geometry):
            return f"{self.processors} processors are too few for the {sum(self.geometry)} tasks of the geometry"
        if kind == "ProcessorsPerTask" and self.cpus and self.processors is not None and (
                self.cpus * (self.tasks or 1) > self.processors):
            return f"{self.processors} processors are too few for {self.tasks or 1} tasks of {self.cpus} each"
        return ""

    @property
    def shares_processors(self) -> bool:
        """Whether more tasks than processors are placed in chunks (PBS: ncpus is what a chunk has, mpiprocs how many
        processes start there). Tasks of which each asks for processors do not share them."""
        return self.chunks is not None and not self.cpus and self.processors is not None and (
            max(self.processors, self.places) < (self.tasks or 0))

    @property
    def crowded(self) -> str:
        """For how many tasks the processors that are stated are too few, where each has at least one, or those that a
        task asks for; empty where they are enough."""
        each = self.cpus or 1
        if self.processors is None or self.tasks is None or self.processors >= self.tasks * each or (
                self.shares_processors):
            return ""
        return f"{self.processors} processors are too few for {self.tasks} tasks: each has at least {each}"

    @property
    def sparse(self) -> str:
        """How many nodes the tasks that are stated leave empty; empty where they leave none."""
        if self.tasks is None or self.nodes is None or self.tasks >= self.nodes:
            return ""
        tasks = "1 task leaves" if self.tasks == 1 else f"{self.tasks} tasks leave"
        return f"{tasks} {self.nodes - self.tasks} of {self.nodes} nodes empty"

    @property
    def node_chunks(self) -> bool:
        """Whether its chunks are nodes; a single one is on one."""
        return self.chunks is not None and self.chunks == (self.nodes or 1)

    @property
    def task_total(self) -> int | None:
        """How many tasks there are, None where nothing says so (processors alone are slots, not tasks)."""
        if self.tasks is not None:
            return self.tasks
        if self.geometry:
            return sum(self.geometry)
        if self.per_node and (nodes := self.node_stated) is not None:
            return self.per_node * nodes
        if self.chunks is not None:
            return self.chunks
        if self.per_node and (self.processors is None or not self.cpus):
            return self.processors or self.per_node         # those of one node, where nothing says more
        if self.cpus and self.processors is not None and self.processors > 0:
            return max(1, self.processors // self.cpus)
        return None

    @property
    def tasks_assumed(self) -> int:
        """How many tasks an amount of each task is multiplied with: those that follow, else one for each processor, one
        on each node, or one."""
        return self.task_total or self.slots or self.nodes or 1

    @property
    def copies(self) -> int:
        """How often an executable is started: once for each task that is stated or listed, else once, on all that is
        asked for; by a launcher that the job names once for each task, processor or node that there is."""
        return self.tasks or sum(self.geometry) or (self.tasks_assumed if self.launched else 1)

    @property
    def slots(self) -> int | None:
        """How many tasks a target that gives each of them a processor is told: the tasks, but no more than processors
        that they share; without tasks one for each processor, of which each node has one."""
        total = self.task_total
        if self.processors is not None and (total is None or self.shares_processors):
            return max(self.processors, self.places)
        return total

    @property
    def processors_each(self) -> int | None:
        """Processors of each task, where all have the same number; None: not said, or not the same."""
        if self.cpus and (self.processors is None or self.tasks is None
                          or self.processors <= self.cpus * self.tasks):
            return self.cpus
        if self.processors is None:
            return None
        tasks = self.task_total
        if tasks is None or self.processors % tasks:
            return None
        return self.processors // tasks

    @property
    def processor_total(self) -> int | None:
        """Processors of all of it: as stated, at least those of its tasks and one on each node or in each chunk; None
        where nothing says so."""
        tasks = self.task_total
        if tasks is None and self.cpus and self.processors is None:
            tasks = self.tasks_assumed
        of_tasks = None if tasks is None else tasks * (self.cpus or 1)
        if self.processors is None and of_tasks is None:
            return None
        if self.shares_processors:
            return max(self.processors or 0, self.places)
        return max(self.processors or 0, of_tasks or 0, self.places)

    @property
    def node_apart(self) -> int | None:
        """Nodes that no other task group uses: a single chunk is on one node, which others may share."""
        return self.node_total if self.nodes is not None or self.geometry or self.chunks is None else None

    @property
    def node_stated(self) -> int | None:
        """Nodes as they are stated, or as a geometry lists them; a single chunk is on one."""
        if self.nodes is not None:
            return self.nodes
        return len(self.geometry) or (1 if self.chunks == 1 else None)

    @property
    def places(self) -> int:
        """Nodes or chunks as they are stated, of which each has a processor."""
        return max(self.node_stated or 0, self.chunks or 0)

    @property
    def node_total(self) -> int | None:
        """Nodes: as stated, or as they follow from the tasks of a node."""
        stated, slots = self.node_stated, self.slots
        if stated is None and self.per_node and slots:
            return -(-slots // self.per_node)
        return stated

    @property
    def node_factor(self) -> int | None:
        """What an amount of each node is multiplied with: the nodes, else one where all of it is one processor, or one
        task with its own, and not several chunks; None where nothing says so."""
        total = self.node_total
        if total is not None or self.places > 1:
            return total
        of_one_task = self.task_total in (None, 1) and bool(self.cpus) and self.processors in (None, self.cpus)
        return 1 if of_one_task or self.processor_total == self.tasks_assumed == 1 else None

    # -- over nodes, or chunks
    def kinds(self, places: int, units: int | None = None) -> list[Kind]:
        """How tasks, processors and further units are spread over a number of places.

        units: of something else (GPUs) that is shared out along with them.
        """
        tasks = self._task_runs(places)
        rows = kinds_of((tasks, self._processor_runs(places, tasks),
                         None if units is None else runs(units, places), [(places, 0)]))
        return [Kind(count, values[0], values[1], values[2]) for count, values in rows]

    def _task_runs(self, places: int) -> list[tuple[int, int]] | None:
        if len(self.geometry) == places:
            return [(1, count) for count in self.geometry]
        total = self.task_total
        if total is None:
            return None
        full = None if not self.per_node else divmod(total, self.per_node)
        if full is not None and full[0] + bool(full[1]) == places:
            return [run for run in ((full[0], self.per_node or 0), (1 if full[1] else 0, full[1])) if run[0]]
        return runs(total, places)

    def _processor_runs(self, places: int, tasks: list[tuple[int, int]] | None) -> list[tuple[int, int]] | None:
        total = self.processor_total
        if total is None:
            return None
        of_tasks = sum(n * count for n, count in tasks or ())
        if tasks is not None and of_tasks and total % of_tasks == 0 and all(count for _, count in tasks):
            return [(n, count * (total // of_tasks)) for n, count in tasks]     # each task has as many
        shares = runs(total, places)
        if tasks is None or total < of_tasks or all(
                share >= count for _, (share, count) in kinds_of((shares, tasks)) if share is not None
                and count is not None):
            return shares
        each, more = divmod(total, of_tasks)        # a place with many tasks has more than its even share
        return [(n, count * each + (extra or 0)) for n, (count, extra) in kinds_of((tasks, runs(more, places)))
                if count is not None]
