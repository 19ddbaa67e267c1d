"""What jobs wait for: one ``Gate`` for each dependency, which counts the ends that it still waits for.

Jobs that wait for the same share a gate, so that a thousand jobs after an array of a thousand elements cost two
thousand steps and not a million. Nothing is started or asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sssjob.run.plan import Need
from sssjob.run.standing import Running

__all__ = ["Gate", "Gates", "holds"]


def holds(need: Need, jobs: Sequence[Running]) -> bool:
    """Whether the end of a job is what a dependency asks for (decisions 22). jobs: it, or all elements of its array,
    which fails when one of them does."""
    if any(job.word == "skipped" for job in jobs):
        return False
    if need.condition == "OnExit":
        counts = next((job for job in jobs if not job.succeeded), jobs[0])
        return need.code is None or (counts.known_code is not None and counts.known_code == need.code)
    return all(job.succeeded for job in jobs) == (need.condition == "OnSuccess")


@dataclass(slots=True, eq=False)
class _Side:
    """A job that is waited for, or an array."""

    jobs: list[Running]
    open: int = 0

    def __post_init__(self) -> None:
        self.open = sum(not job.ended for job in self.jobs)


@dataclass(slots=True, eq=False)
class Gate:
    """need: what is asked for. waiting: jobs that wait for it. foreign: native ids of which we learn nothing.

    open: sides that have not ended. size: jobs that are waited for. broken: it can no longer hold.
    """

    need: Need
    sides: list[_Side]
    foreign: tuple[str, ...] = ()
    waiting: list[Running] = field(default_factory=list)
    open: int = 0
    size: int = 0
    broken: bool = False

    def __post_init__(self) -> None:
        self.size = len(self.foreign) + sum(len(side.jobs) for side in self.sides)
        for side in self.sides:
            self.open += side.open > 0
            for job in side.jobs:
                self._look(side, job)

    @property
    def decided(self) -> bool:
        """Whether the jobs may go, or never will."""
        return self.broken or (not self.open and not self.foreign)

    def ended(self, side: _Side, job: Running) -> bool:
        """Take in an end; whether that has decided it."""
        before = self.decided
        side.open -= 1
        self.open -= not side.open
        self._look(side, job)
        return self.decided and not before

    def _look(self, side: _Side, job: Running) -> None:
        early = self.need.condition == "OnSuccess" and job.ended and not job.succeeded
        self.broken |= early or (not side.open and not holds(self.need, side.jobs))


class Gates:
    """The gates of all jobs of some submissions."""

    def __init__(self, jobs: Iterable[Running]) -> None:
        self._of: dict[int, list[Gate]] = {}                        # by identity of the job that waits
        self._after: dict[int, list[tuple[Gate, _Side]]] = {}      # by identity of the job that is waited for
        gates: dict[tuple[int, int, tuple[str, ...]], Gate] = {}
        for job in jobs:
            for n, need in enumerate(job.plan.needs):
                outside = need.outside or job.outside.get(n, ())
                key = id(job.of), id(need), outside
                if key not in gates:
                    gates[key] = self._made(job, need, outside)
                gates[key].waiting.append(job)
                self._of.setdefault(id(job), []).append(gates[key])

    def _made(self, job: Running, need: Need, outside: Sequence[str]) -> Gate:
        others = [job.of.jobs[n] for n in need.on]
        foreign = []
        for key in outside:
            outside_job = job.of.outside.get(key)
            if outside_job is None:
                foreign.append(key)
            else:
                others.append(outside_job)
        sides: dict[int, _Side] = {}
        grouped: dict[int, list[Running]] = {}
        for other in others:
            member = other.plan.member
            grouped.setdefault(id(other if member is None else member.job), []).append(other)
        gate = Gate(need, [sides.setdefault(key, _Side(some)) for key, some in grouped.items()], tuple(foreign))
        for side in gate.sides:
            for other in side.jobs:
                if not other.ended:         # of one that has, the end is counted already
                    self._after.setdefault(id(other), []).append((gate, side))
        return gate

    def of(self, job: Running) -> list[Gate]:
        """What a job waits for."""
        return self._of.get(id(job), [])

    def verdict(self, job: Running) -> bool | Need:
        """True: may start; False: has to wait; a Need: that one can no longer hold (decisions 22)."""
        gates = self.of(job)
        broken = next((gate.need for gate in gates if gate.broken), None)
        return all(gate.decided for gate in gates) if broken is None else broken

    def may_be_unmet(self, job: Running, heard: Callable[[Running, int], bool]) -> bool:
        """Whether what a job waits for, or what that waits for, may have ended already, of which only the end is not
        known yet: then nobody may have cancelled the job, and its manager has taken it out of the queue because its
        turn could not come. heard: whether it is known how a part stands."""
        others, looked_at = self._open_sides(job), set[int]()
        while others:
            other = others.pop()
            if id(other) in looked_at or not (other.of.owned and other.word == "running"):
                continue
            looked_at.add(id(other))
            if not all(heard(other, part) for part in range(len(other.seen))):
                return True
            if other.waits and not other.started:
                others += self._open_sides(other)
        return False

    def _open_sides(self, job: Running) -> list[Running]:
        """The jobs that a job still waits for."""
        return [other for gate in self.of(job) if not gate.decided for side in gate.sides for other in side.jobs
                if not other.ended]

    def ended(self, job: Running) -> list[Running]:
        """Take in the end of a job; those for which it has decided something."""
        decided: dict[int, Running] = {}
        for gate, side in self._after.pop(id(job), ()):
            if gate.ended(side, job):
                decided.update((id(waiting_job), waiting_job) for waiting_job in gate.waiting)
        return list(decided.values())

    def after(self, job: Running, most: int) -> list[Running]:
        """Jobs that wait for this one, and with it for no more than so many."""
        dependents = {id(waiting_job): waiting_job for gate,
                      _ in self._after.get(id(job), ()) for waiting_job in gate.waiting if gate.size <= most}
        return list(dependents.values())
