"""Format ``sinfo-json``: the nodes of a Slurm cluster, read as offers that ``match`` holds a request against.

How long a job may run is not in the answer, the site profile says so (``queues.NAME.duration``). What Slurm
answers is described in ``sssjob.lrm.slurm_nodes``.
"""

from __future__ import annotations

import json

from sssjob.document.model import Document, JobGroup
from sssjob.errors import UsageError
from sssjob.lrm.slurm_nodes import nodes_of
from sssjob.translators.base import ReadContext, Translator, WriteContext
from sssjob.translators.recognise import by_keys
from sssjob.translators.specs._offers import offers

__all__ = ["TRANSLATOR", "read", "write"]


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


def write(document: Document, context: WriteContext) -> str:
    """Only Slurm writes it: UsageError."""
    raise UsageError("sinfo-json is read, and not written")


TRANSLATOR = Translator("sinfo-json", "Nodes of a Slurm cluster", "offer", read, write, (),
                        lambda sample: by_keys(sample, frozenset({"nodes", "meta"})))
