"""Format ``sinfo-json``: the nodes of a Slurm cluster, read as offers that ``match`` holds a request against.

A JobGroup with a Job for each partition: its nodes with what every one of them has. Where they differ there are Jobs
for the nodes of each kind too, ``batch.2`` and on. Processors are those of all nodes together; Memory and GPUs those of
each node. How long a job may run is not in the answer, the site profile says so (``queues.NAME.duration``). What Slurm
answers is described in ``sssjob.lrm.slurm_nodes``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from sssjob.document.element import new_property
from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.slurm_nodes import Partition, Pool, nodes_of, pools
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import by_keys

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

__all__ = ["TRANSLATOR", "offers", "read", "write"]


_UNLIMITED: Final = Partition(open=True)


def read(data: bytes, context: ReadContext) -> Document:
    """The offers of an answer. Option ``nodes``: usable (the default), or idle for those that are empty now.

    The machine is that of the site profile, or option ``machine``. Raises RejectedError when nothing can be read.
    """
    which = context.options.get("nodes", "usable")
    if which not in ("usable", "idle"):
        raise UsageError(f"nodes is one of usable, idle, not {which!r}")
    site = context.site
    machine = context.options.get("machine") or (None if site is None else site.machine)
    group = JobGroup()
    try:
        group = offers(nodes_of(json.loads(data)), {}, machine, site, idle=which == "idle")
    except json.JSONDecodeError as error:
        context.findings.add("SSS111", "JSON", error.msg, line=error.lineno, column=error.colno)
    except RecursionError:
        context.findings.add("SSS110", "depth", "the JSON is nested too deeply")
    except ValueError as error:
        context.findings.add("SSS111", "nodes", str(error))
    context.findings.raise_if_rejected()
    return Document(group, {}, context.path, context.profile, context.findings)


def offers(nodes: list[Any], partitions: Mapping[str, Partition], machine: str | None, site: Site | None, *,
           idle: bool = False) -> JobGroup:
    """The offers of nodes in Slurm's form. partitions: what is known of their limits; of one that is closed there is no
    offer. idle: only of nodes on which nothing runs. Raises ValueError for a node that cannot be understood."""
    group = JobGroup()
    group.set_as_is("Id", machine or "offers")
    found = [pool for pool in pools(nodes, idle=idle) if partitions.get(pool.partition, _UNLIMITED).open]
    for pool, name in zip(found, _names([pool.partition for pool in found]), strict=True):
        group.items.append(_offer(pool, name, machine, site, partitions.get(pool.partition, _UNLIMITED)))
    return group


def _names(partitions: list[str]) -> Iterator[str]:
    """A name for each offer, no two the same: that of its partition, from the second on with a number behind it."""
    taken, count = set(partitions), Counter[str]()
    for partition in partitions:
        name = partition
        if partition in count:
            while (name := f"{partition}.{count[partition] + 1}") in taken:
                count[partition] += 1
            taken.add(name)
        count[partition] += 1
        yield name


def _offer(pool: Pool, name: str, machine: str | None, site: Site | None, limits: Partition) -> Job:
    """One pool as a Job with bare properties. What the profile says of a queue counts before what Slurm says."""
    shape, job = pool.shape, Job()
    longest = site.queues[pool.partition].duration if site is not None and pool.partition in site.queues else None
    longest = limits.duration if longest is None else longest
    count = len(pool.names) if limits.nodes is None else min(len(pool.names), limits.nodes)
    values: list[tuple[str, Any, dict[str, str]]] = [
        ("Id", name, {}), *([("Machine", machine, {})] if machine else []), ("Queue", pool.partition, {}),
        ("NodeCount", count, {}), ("Processors", shape.processors * count, {}),
        ("Memory", shape.memory, {"units": "MB", "metric": "PerNode"}),
        *([("Resource", shape.gpus, {"name": "GPU", "metric": "PerNode"})] if shape.gpus else []),
        *([("Feature", ",".join(shape.features), {"aggregation": "List"})] if shape.features else []),
        *([("Duration", longest, {})] if longest is not None else []),
        ("Node", str(Hostlist.of(pool.names)), {"aggregation": "Range"})]
    job.items.extend(new_property(tag, value, attributes) for tag, value, attributes in values)
    return job


def write(document: Document, context: WriteContext) -> str:
    """Only Slurm writes it: UsageError."""
    raise UsageError("sinfo-json is read, and not written")


TRANSLATOR = Translator("sinfo-json", "Nodes of a Slurm cluster", "offer", read, write, (),
                        lambda sample: by_keys(sample, frozenset({"nodes", "meta"})))
