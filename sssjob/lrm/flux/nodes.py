"""The nodes of a Flux instance, from its resource set R.

Source: RFC 20 (resource set specification version 1); recorded output of flux-core 0.88.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sssjob.errors import SSSJobError
from sssjob.lrm.hostlist import Hostlist
from sssjob.lrm.idset import ranges
from sssjob.lrm.nodes import ANYWHERE, Node, Shape

__all__ = ["FREE", "UP", "nodes_of"]

UP: Final = ("flux", "resource", "R", "-s", "up")
FREE: Final = ("flux", "resource", "R", "-s", "free")
_MOST: Final = 1_000_000    # ranks, or cores of a rank, that are believed


def nodes_of(answer: Any) -> list[Node]:
    """The nodes of a resource set. R says nothing of memory and of queues. Raises ValueError where it cannot be
    understood."""
    execution = answer.get("execution") if isinstance(answer, dict) else None
    if not isinstance(execution, dict) or answer.get("version") != 1 or not isinstance(execution.get("R_lite"), list):
        raise ValueError("it is no resource set of version 1")
    names = _names(execution.get("nodelist"))
    properties = _properties(execution.get("properties"))
    nodes = []
    for place, (rank, shape) in enumerate(sorted(_ranks(execution["R_lite"]))):
        features = tuple(sorted(name for name, ranks in properties.items() if rank in ranks))
        name = names[place] if place < len(names) else ""
        nodes.append(Node(name, {ANYWHERE: Shape(shape[0], 0, shape[1], features)} if shape[0] else {}))
    return nodes


def _ranks(entries: list[Any]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each rank with its cores and GPUs."""
    for entry in entries:
        children = entry.get("children") if isinstance(entry, dict) else None
        if not isinstance(children, Mapping):
            raise ValueError("an entry of R_lite has no children")
        counts = len(_ids(children.get("core", ""))), len(_ids(children.get("gpu", "")))
        for rank in _ids(entry.get("rank")):
            yield rank, counts


def _ids(text: Any) -> set[int]:
    if text == "":
        return set()
    spans = ranges(text) if isinstance(text, str) else None
    if spans is None or sum(map(len, spans)) > _MOST:
        raise ValueError(f"{str(text)[:40]!r} is no set of ids")
    return {number for span in spans for number in span}


def _names(nodelist: Any) -> list[str]:
    texts = nodelist if isinstance(nodelist, list) else []
    try:
        return [name for text in texts for name in Hostlist.parse(str(text))]
    except SSSJobError as error:
        raise ValueError(f"nodelist: {error}") from None


def _properties(properties: Any) -> dict[str, set[int]]:
    return {str(name): _ids(ranks) for name, ranks in properties.items()} if isinstance(properties, dict) else {}
