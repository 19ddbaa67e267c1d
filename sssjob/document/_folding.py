"""Documents with their defaults folded in, and as the trees that queries run on.

A folded document holds every job as it counts: JobDefaults, TaskGroupDefaults and TaskDefaults stand in the jobs, task
groups and tasks that they hold for, and JobDefaults itself is gone (see ``inherit.Effective.fold``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lxml import etree

from sssjob.document.element import Container, Item, Property, Raw
from sssjob.document.inherit import Shared, effective
from sssjob.document.model import Document, Job, JobDefaults, JobGroup


def folded(document: Document) -> Document:
    """The same document with all defaults folded in; the given one stays as it is."""
    return replace(document, root=_body(document.root))


def _body(node: Any) -> Any:
    if isinstance(node, Raw):
        return Raw(node.tag, node.attributes, node.text, map(_body, node.children), node.line)
    if isinstance(node, JobGroup):
        return _group(node)
    return folded_job(node, None, "Reject") if isinstance(node, Job) else node


def _group(group: JobGroup) -> JobGroup:
    defaults, policy = group.defaults, group.attributes.get("awarenessPolicy", "Reject")
    shared: Shared = {}
    items: list[Item] = [folded_job(i, defaults, policy, shared) if isinstance(i, Job) else i for i in group.items
                         if not isinstance(i, JobDefaults)]
    return JobGroup(items, dict(group.attributes), group.reference, group.line, group.spelling)


def folded_job(job: Job, defaults: JobDefaults | None, policy: str, shared: Shared | None = None) -> Job:
    """A job with its defaults folded in; policy: the awarenessPolicy around both. A reference stays one."""
    return job if job.reference is not None else effective(job, defaults, policy=policy, shared=shared).fold()


# --- trees --------------------------------------------------------------------------------------------------------

def tree(item: Item, line: int = 0) -> Any:
    """An element of lxml for an item of a document, under its name of 3.1.0; each has the line of the container that it
    stands in, where that is known. line: that of the element above."""
    line = getattr(item, "line", 0) or line
    element: Any = etree.Element(item.tag, dict(item.attributes))
    if line > 0:
        element.sourceline = line
    if isinstance(item, Property):
        element.text = item.text
        return element
    if isinstance(item, Container):
        element.text = item.reference
        element.extend([tree(i, line) for i in item.items])
        return element
    element.text = item.text or None
    for child in item.children:
        if not isinstance(child, str):
            element.append(tree(child, line))
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + child
        else:
            element.text = (element.text or "") + child
    return element
