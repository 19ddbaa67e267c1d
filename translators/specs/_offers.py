"""Offers, as documents that ``match`` and ``route`` hold requests against, and the formats of the answers of machines
that are read so.

A JobGroup with a Job for each queue, or one without a Queue where nobody says to which queues nodes belong: its nodes
with what every one of them has. Where they differ there are Jobs for the nodes of each kind too, ``batch.2`` and on.
Processors are those of all nodes together, the Extension NodeProcessors those of each; Memory and GPUs are of each
node.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from sssjob.document.element import new_property
from sssjob.document.model import Document, Job, JobGroup
from sssjob.errors import UsageError
from sssjob.lrm.condor_nodes import machines_of
from sssjob.lrm.flux.nodes import nodes_of as ranks_of
from sssjob.lrm.glue2 import nodes_and_shares
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.nodes import ANYWHERE, GPU, UNKNOWN, Limits, Node, Pool, Shape, pools
from sssjob.lrm.pbs_nodes import nodes_shown
from sssjob.lrm.sge_nodes import hosts_shown
from sssjob.lrm.slurm_nodes import nodes_of
from sssjob.request.offers import ESTIMATED_WAIT, NODE_PROCESSORS
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import Fit, Sample, by_beginning, by_keys, by_root
from sssjob.xml._faults import parse_fault

if TYPE_CHECKING:
    from sssjob.conversion.site import Site

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


# --- the formats --------------------------------------------------------------------------------------------------

_BLOCK: Final = re.compile(r"[\w.-]+\n\s+(?:Mom|state|ntype|np) = ")


def _is_pbsnodes(sample: Sample) -> Fit | None:
    return by_keys(sample, frozenset({"nodes", "pbs_server"})) or by_beginning(sample, _BLOCK, "a node of pbsnodes")


#: Format -> its translator. What each manager answers is described in the module of ``sssjob.lrm`` that reads it.
TRANSLATORS: Final = {translator.name: translator for translator in (
    # How long a job may run is not in the answer, the site profile says so (``queues.NAME.duration``).
    offer_format("sinfo-json", "Nodes of a Slurm cluster", lambda text: (nodes_of(json.loads(text)), {}),
                 lambda sample: by_keys(sample, frozenset({"nodes", "meta"}))),
    # It is what ``pbsnodes -a`` prints, as text or with ``-F json``. Queues are not in it: nodes that are not bound to
    # one make an offer without a Queue.
    offer_format("pbsnodes", "Nodes of PBS or Torque", lambda text: (nodes_shown(text), {}), _is_pbsnodes),
    # It is the XML of ``qhost -q -xml``, an offer for each queue. Limits of queues are not in it.
    offer_format("qhost", "Hosts of a Grid Engine", lambda text: (hosts_shown(text), {}),
                 lambda sample: by_root(sample, frozenset({"qhost"}))),
    # It is what ``condor_status -json`` prints. It says nothing of how long a job may run.
    offer_format("condor-status", "Machines of an HTCondor pool", lambda text: (machines_of(json.loads(text)), {}),
                 lambda sample: by_keys(sample, frozenset({"Machine", "SlotType", "State"}))),
    # The resource set R: what ``flux resource R`` and ``flux kvs get resource.R`` print. It says nothing of queues, of
    # memory and of how long a job may run.
    offer_format("flux-resource", "Resources of a Flux instance", lambda text: (ranks_of(json.loads(text)), {}),
                 lambda sample: by_keys(sample, frozenset({"version", "execution"}))),
    # An offer for each ComputingShare, with the instances of its ExecutionEnvironments as nodes without names.
    offer_format("glue2", "A grid site in GLUE 2.0", nodes_and_shares, lambda sample: by_root(
        sample, frozenset({"InfoRoot", "Domains", "AdminDomain", "ComputingService"}))),
)}
