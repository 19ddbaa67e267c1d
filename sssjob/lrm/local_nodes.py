"""This machine as what it offers to jobs that the executor ``local`` starts: it has no queues, and nothing ends a job.

Sources: sched_getaffinity(2), sysconf(3).
"""

from __future__ import annotations

import os
import socket

from sssjob.lrm.nodes import ANYWHERE, TEN_YEARS_S, Limits, Node, Shape

__all__ = ["this_machine"]


def this_machine() -> tuple[list[Node], dict[str, Limits]]:
    """One node with the processors that this process may use and all memory, and that it has no limits."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    shape = Shape(len(os.sched_getaffinity(0)), memory)
    return [Node(socket.gethostname(), {ANYWHERE: shape})], {ANYWHERE: Limits(open=True, duration=TEN_YEARS_S)}
