"""The hosts and queues of a Grid Engine, from ``qhost -q -xml`` and ``qconf -sq``.

Sources: qhost(1), qstat(1) for the letters of states, queue_conf(5); seen with Son of Grid Engine 8.1.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sssjob.lrm.nodes import GPU, LICENSE, TEN_YEARS_S, Counted, Limits, Node, Shape, xml_root
from sssjob.lrm.sge import memory, seconds

if TYPE_CHECKING:
    from lxml.etree import _Element

__all__ = ["COMPLEXES", "CONSUMABLES", "ENVIRONMENT", "ENVIRONMENT_NAMES", "HOSTS", "QUEUES", "QUEUE_NAMES",
           "allocation_rule", "complexes_shown", "consumables_shown", "hosts_shown", "queues_shown",
           "shared_consumables", "with_consumables"]

HOSTS: Final = ("qhost", "-q", "-xml")
QUEUE_NAMES: Final = ("qconf", "-sql")
#: Before the names of queues, with commas between them.
QUEUES: Final = ("qconf", "-sq")
ENVIRONMENT_NAMES: Final = ("qconf", "-spl")
#: Before the name of a parallel environment.
ENVIRONMENT: Final = ("qconf", "-sp")
COMPLEXES: Final = ("qconf", "-sc")
#: What each host and the cluster (``global``) have of consumables; qconf shows one host at a time, and no other command
#: says what is taken too.
CONSUMABLES: Final = ("sh", "-c", 'for host in global $(qconf -sel); do qconf -se "$host"; done')
_CLUSTER: Final = "global"
#: Letters of a queue on a host that takes no job: unknown, disabled, error, ambiguous, orphaned, suspended.
_OUT: Final = frozenset("udDEcoSC")
_MIB: Final = 1 << 20
_DIGITS: Final = 9          # of a number of slots that is believed
_RULE: Final = re.compile(r"^allocation_rule\s+(\S+)", re.MULTILINE)
#: name, shortcut, type, relop, requestable, consumable (complex(5)).
_COMPLEX: Final = re.compile(r"^(\w\S*)\s+\S+\s+(\w+)\s+\S+\s+\w+\s+(NO|YES|JOB|HOST)\s", re.MULTILINE)
#: Lines that are continued end with a backslash (host_conf(5)).
_HOST: Final = re.compile(r"^hostname\s+(\S+)$(.*?)(?=^hostname\s|\Z)", re.MULTILINE | re.DOTALL)
_VALUES: Final = re.compile(r"^complex_values\s+(.*)$", re.MULTILINE)
_LIMIT: Final = re.compile(r"^(qname|[hs]_rt)\s+([^\s,]+)", re.MULTILINE)


def hosts_shown(text: str) -> list[Node]:
    """The hosts of the XML answer, each with its slots in every queue. Raises ValueError where it cannot be understood.
    """
    root = xml_root(text)
    return [_node(host) for host in root.findall("host") if host.get("name") != "global"]


def _node(host: _Element) -> Node:
    name = host.get("name", "")
    about = _values(host, "hostvalue")
    queues = {queue.get("name", ""): _values(queue, "queuevalue") for queue in host.findall("queue")}
    try:
        size = 0 if about.get("mem_total", "-") == "-" else (memory(about["mem_total"]) or 0) // _MIB
        shapes = {queue: Shape(_whole(values, "slots"), size) for queue, values in queues.items()
                  if _OUT.isdisjoint(values.get("state_string", ""))}
        busy = any(_whole(values, "slots_used") for values in queues.values())
    except ValueError as error:
        raise ValueError(f"host {name[:80]}: {error}") from None
    return Node(name, {queue: shape for queue, shape in shapes.items() if shape.processors > 0}, busy)


def _whole(fields: Mapping[str, str], name: str) -> int:
    value = fields.get(name, "")
    if not (value.isdecimal() and value.isascii() and len(value) <= _DIGITS):
        raise ValueError(f"{name} {value[:40]!r} is no number")
    return int(value)


def _values(element: Any, tag: str) -> dict[str, str]:
    return {value.get("name", ""): (value.text or "").strip() for value in element.findall(tag)}


def queues_shown(text: str) -> dict[str, Limits]:
    """What the queues of the answer allow: h_rt, or s_rt where that is shorter. Of a limit that differs from host to
    host the one of the others counts. Raises ValueError for a limit that cannot be understood."""
    return {name: Limits(open=True, duration=min(map(_limit, limits), default=None)) for name, limits in _queues(text)}


def _queues(text: str) -> Iterator[tuple[str, list[str]]]:
    name, limits = "", list[str]()
    for key, value in _LIMIT.findall(text):
        if key == "qname":
            if name:
                yield name, limits
            name, limits = value, []
        else:
            limits.append(value)
    if name:
        yield name, limits


def _limit(text: str) -> int:
    duration = seconds(text)
    return TEN_YEARS_S if duration is None else duration


def allocation_rule(text: str) -> str | int | None:
    """How a parallel environment spreads its slots (sge_pe(5)); None where the answer does not say."""
    rule = _RULE.search(text)
    if rule is None:
        return None
    return int(rule[1]) if rule[1].isdecimal() and len(rule[1]) <= _DIGITS else rule[1]


def complexes_shown(text: str) -> dict[str, tuple[str, str]]:
    """Name -> type and whether it is consumed: NO, YES (by each slot), JOB or HOST."""
    return {name: (kind, consumable) for name, kind, consumable in _COMPLEX.findall(text)}


def consumables_shown(text: str) -> dict[str, dict[str, str]]:
    """Host (or ``global``, the cluster) -> name of a complex -> how much it has, as its manager writes it."""
    shown: dict[str, dict[str, str]] = {}
    for name, block in _HOST.findall(text.replace("\\\n", " ")):
        values = _VALUES.search(block)
        pairs = ("" if values is None else values[1]).replace(" ", "").split(",")
        shown[name] = {key: value for key, sign, value in (pair.partition("=") for pair in pairs) if sign}
    return shown


def with_consumables(host: Node, shown: Mapping[str, Mapping[str, str]], kinds: Mapping[str, str]) -> Node:
    """A host with what it has of consumables. shown: as of ``consumables_shown``; kinds: name -> ``GPU``, ``Memory`` or
    ``License``, perhaps with `` per job`` behind it. Of memory it has no more than any of them. Raises ValueError for
    an amount that is none."""
    own = shown.get(host.name, {})
    counted = tuple(_counted(own, kinds))
    gpus = sum(each.amount for each in counted if each.name == GPU)
    sizes = [size // _MIB for name, text in own.items() if kinds.get(name, "").startswith("Memory")
             and (size := memory(text)) is not None]
    licenses = tuple(sorted(each for each in counted if each.name == LICENSE))
    shapes = {queue: replace(shape, gpus=gpus, counted=licenses, memory=min([*sizes, *filter(None, [shape.memory])],
                                                                            default=0))
              for queue, shape in host.shapes.items()}
    return replace(host, shapes=shapes)


def shared_consumables(shown: Mapping[str, Mapping[str, str]], kinds: Mapping[str, str]) -> tuple[Counted, ...]:
    """What the cluster has for all jobs together of GPUs and licences; arguments and errors as of
    ``with_consumables``."""
    return tuple(_counted(shown.get(_CLUSTER, {}), kinds))


def _counted(own: Mapping[str, str], kinds: Mapping[str, str]) -> Iterator[Counted]:
    for name, text in own.items():
        kind = kinds.get(name, "").partition(" ")[0]
        if kind in (GPU, LICENSE):
            yield Counted(kind, "" if kind == GPU else name, _whole({name: text}, name))
