"""Format ``glue2``: what a grid site publishes of itself as GLUE 2.0 in XML, read as offers.

An offer for each ComputingShare, with the instances of its ExecutionEnvironments as nodes without names; what is read
of it is described in ``sssjob.lrm.glue2``.
"""

from __future__ import annotations

from typing import Final

from sssjob.lrm.glue2 import nodes_and_shares
from sssjob.translators.recognise import by_root
from sssjob.translators.specs._offers import offer_format

__all__ = ["TRANSLATOR"]

_ROOTS: Final = frozenset({"InfoRoot", "Domains", "AdminDomain", "ComputingService"})

TRANSLATOR = offer_format("glue2", "A grid site in GLUE 2.0", nodes_and_shares, lambda sample: by_root(sample, _ROOTS))
