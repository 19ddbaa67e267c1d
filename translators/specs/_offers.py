"""Offers, as documents that ``match`` and ``route`` hold requests against: what the formats of machines' answers share.

A JobGroup with a Job for each queue, or one without a Queue where nobody says to which queues nodes belong: its nodes
with what every one of them has. Where they differ there are Jobs for the nodes of each kind too, ``batch.2`` and on.
Processors are those of all nodes together, the Extension NodeProcessors those of each; Memory and GPUs are of each
node.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from sssjob.document.element import new_property
from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.nodes import ANYWHERE, GPU, UNKNOWN, Limits, Node, Pool, Shape, pools
from sssjob.request.offers import ESTIMATED_WAIT, NODE_PROCESSORS
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.xml._faults import parse_fault

if TYPE_CHECKING:
    from sssjob.conversion.site import Site
    from sssjob.translators.recognise import Fit, Sample

_Machine = tuple[Iterable[Node], Mapping[str, Limits]]


def offer_format(name: str, title: str, parse: Callable[[str], _Machine],
                 recognise: Callable[[Sample], Fit | None]) -> Translator:
    """A format of what a machine answers, which is read as offers. parse: its nodes and the limits of its queues, by
    the text; raises ValueError with a sentence where it cannot be understood.

    Option ``nodes``: usable (the default), or idle for nodes on which nothing runs. The machine is that of the site
    profile, or option ``machine``.
    """

    def read(data: bytes, context: ReadContext) -> Document:
        """The offers as a JobGroup; RejectedError for an answer that cannot be understood."""
        which = context.options.get("nodes", "usable")
        if which not in ("usable", "idle"):
            raise UsageError(f"nodes is one of usable, idle, not {which!r}")
        site = context.site
        machine = context.options.get("machine") or (None if site is None else site.machine)
        group = JobGroup()
        try:
            group = offers(*parse(data.decode("utf-8-sig", "surrogateescape")), machine, site, idle=which == "idle")
        except json.JSONDecodeError as error:
            context.findings.add("SSS111", "JSON", error.msg, line=error.lineno, column=error.colno)
        except RecursionError:
            context.findings.add("SSS110", "depth", "the JSON is nested too deeply")
        except ValueError as error:
            context.findings.add("SSS111", "nodes", parse_fault(error))
        context.findings.raise_if_rejected()
        return Document(group, {}, context.path, context.profile, context.findings)

    def write(document: Document, context: WriteContext) -> str:
        """Refuse to write: an answer of a machine is read only."""
        raise UsageError(f"{name} is read, and not written")

    return Translator(name, title, "offer", read, write, (), recognise)


def offers(nodes: Iterable[Node], queues: Mapping[str, Limits], machine: str | None, site: Site | None, *,
           idle: bool = False) -> JobGroup:
    """The offers of nodes. queues: what is known of their limits; of one that is closed there is no offer. machine: the
    identity of the cluster; idle: only of nodes on which nothing runs."""
    group = JobGroup()
    group.set_as_is("Id", machine or "offers")
    open_pools = [pool for pool in pools(nodes, idle=idle) if queues.get(pool.queue, UNKNOWN).open]
    for pool, name in zip(open_pools, _names([pool.queue or machine or "offer" for pool in open_pools]), strict=True):
        group.items.append(_offer(pool, name, machine, site, queues.get(pool.queue, UNKNOWN)))
    return group


def _counted(shape: Shape, limits: Limits) -> Iterator[tuple[int, dict[str, str]]]:
    """Numbers and attributes of GPUs and licences, first those of a node: where its GPUs are not all of one type that
    is known, all of them come before those of each type."""
    each_node, types = {"metric": "PerNode"}, [each.amount for each in shape.counted if each.name == GPU]
    if shape.gpus and types != [shape.gpus]:
        yield shape.gpus, {"name": GPU, **each_node}
    for counted, metric in chain(((each, each_node) for each in shape.counted), ((each, {}) for each in limits.shared)):
        yield counted.amount, {"name": counted.name, **({"type": counted.type} if counted.type else {}), **metric}


def _names(queues: list[str]) -> Iterator[str]:
    """A name for each offer, no two the same: that of its queue, from the second on with a number behind it."""
    taken, count = set(queues), Counter[str]()
    for queue in queues:
        name = queue
        if queue in count:
            while (name := f"{queue}.{count[queue] + 1}") in taken:
                count[queue] += 1
            taken.add(name)
        count[queue] += 1
        yield name


def _within(shape: Shape, limits: Limits) -> Shape:
    """What a node has for one job of a queue."""
    return replace(shape, processors=min(shape.processors, limits.node_processors or shape.processors),
                   memory=min(shape.memory, limits.node_memory or shape.memory))


def _offer(pool: Pool, name: str, machine: str | None, site: Site | None, limits: Limits) -> Job:
    """One pool as a Job with bare properties. What the profile says of a queue counts before what its manager says."""
    shape, job = _within(pool.shape, limits), Job()
    queue = None if site is None else site.queues.get(pool.queue)
    longest = limits.duration if queue is None or queue.duration is None else queue.duration
    allowed = dict(limits.allowed)
    if queue is not None and queue.qualities_of_service is not None:
        allowed["QualityOfService"] = queue.qualities_of_service
    count = pool.count if limits.nodes is None else min(pool.count, limits.nodes)
    processors = shape.processors * count
    processors = processors if limits.processors is None else min(processors, limits.processors)
    values: list[tuple[str, Any, dict[str, str]]] = [
        ("Id", name, {}), *([("Machine", machine, {})] if machine else []),
        *([("Queue", pool.queue, {})] if pool.queue != ANYWHERE else []),
        ("NodeCount", count, {}), ("Processors", processors, {}),
        *([("Memory", shape.memory, {"units": "MB", "metric": "PerNode"})] if shape.memory else []),
        *[("Resource", amount, attributes) for amount, attributes in _counted(shape, limits)],
        *([("Feature", ",".join(shape.features), {"aggregation": "List"})] if shape.features else []),
        *([("Duration", longest, {})] if longest is not None else []),
        *(("Extension", amount, {"type": "Scheduler", "name": title}) for title, amount in (
            (NODE_PROCESSORS, shape.processors if count > 1 else None), (ESTIMATED_WAIT, limits.wait))
          if amount is not None),
        *(("Extension", ",".join(names), {"type": "Scheduler", "name": f"Allowed{tag}"})
          for tag, names in allowed.items() if names),
        *([("Node", str(Hostlist.of(pool.names)), {"aggregation": "Range"})] if pool.names else [])]
    job.items.extend(new_property(tag, value, attributes) for tag, value, attributes in values)
    return job
