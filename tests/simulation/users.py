"""What users do to jobs that they have submitted, beside waiting for them and cancelling them: they hold and release
jobs, run them again, and take what has ended out of the journal; and what happens to jobs and hosts meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sssjob.errors import UsageError
from sssjob.run.pruning import prune

if TYPE_CHECKING:
    from sssjob.run.client import Client
    from sssjob.run.rows import Row
    from tests.simulation.cluster import Cluster
    from tests.simulation.world import World

__all__ = ["act", "pause", "set_clock", "wait_for_all"]

_ROUND_S = 600.0        # between two looks at what is held: a client learns by then that a job is lost


def act(world: World, on: int, step: Mapping[str, Any]) -> None:
    """A command of a user."""
    client = world.opened(on)
    if step["do"] == "prune":
        _prune(world, client)
        return
    rows = [row for row in client.journal.rows() if (row.outcome is not None) == (step["do"] == "anew")
            and row.executor == world.clusters[on].executor]
    for row in rows[step["job"]:step["job"] + 1]:
        if step["do"] == "anew":
            _run_anew(client, row)
        else:
            client.ask(step["do"], [row.key], 5.0)


def _run_anew(client: Client, row: Row) -> None:
    """Submit a job once more that has ended."""
    with suppress(UsageError):      # it waited for what has not ended as it should
        client.again(row.submission, [row.job])


def _prune(world: World, client: Client) -> None:
    """Take out what has ended; what the journal said of it is judged all the same."""
    for number in world.numbers(client):
        entry = client.journal.entry(number)
        history = entry.events()
        world.known[number] = [(job, [event for event in history if event.job == job.number])
                               for job in client.standing(entry).jobs]
    prune(client.journal)


def wait_for_all(world: World, client: Client, names: Sequence[str], seconds: float) -> None:
    """Wait for all jobs, and release what is held, as somebody will some day: in a full queue one after the other."""
    may_hold = any(step["do"] == "hold" or any("held" in job for job in step.get("jobs", ()))
                   for step in world.plan["steps"])
    rounds = 2 * seconds // _ROUND_S if may_hold else 0
    while rounds > 0:
        held = [row.key for row in client.journal.rows()
                if row.outcome is None and row.state == "Hold" and not world.is_left(client, row)]
        if held:
            client.ask("release", held, 20.0)
        until = world.kernel.now + _ROUND_S
        if client.wait(names, _ROUND_S)[1]:
            return
        world.kernel.rest(max(until - world.kernel.now, 0.0))       # what is left goes on elsewhere
        rounds -= 0 if held else 1
    if not may_hold:
        client.wait(names, seconds)


def pause(world: World, cluster: Cluster, step: Mapping[str, Any]) -> None:
    """Have a job suspended for a while, as operators do, or jobs of a better queue."""
    ours = [job for job in cluster.jobs if job.tag is not None and not job.gone]
    for job in ours[step["job"]:step["job"] + 1]:
        cluster.tick()
        cluster.suspend(job)
        world.kernel.rest(step["seconds"])
        cluster.resume(job)


def set_clock(world: World, on: int, seconds: float) -> None:
    """Set the clock of a cluster's login hosts. seconds: by which it is ahead then."""
    world.ahead[on] = seconds
    world.clusters[on].astray = max(world.clusters[on].astray, abs(seconds))
    for process in world.clients:
        if process.extra["on"] == on:
            process.clock = world.ahead[on]
