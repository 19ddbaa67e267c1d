"""Format ``pbsnodes``: the nodes of OpenPBS, PBS Pro or Torque, read as offers that ``match`` holds a request against.

It is what ``pbsnodes -a`` prints, as text or with ``-F json``. Queues are not in it: nodes that are not bound to one
make an offer without a Queue. What PBS answers is described in ``sssjob.lrm.pbs_nodes``.
"""

from __future__ import annotations

import re
from typing import Final

from sssjob.lrm.pbs_nodes import nodes_shown
from sssjob.translators.recognise import Fit, Sample, by_beginning, by_keys
from sssjob.translators.specs._offers import offer_format

__all__ = ["TRANSLATOR"]

_BLOCK: Final = re.compile(r"[\w.-]+\n\s+(?:Mom|state|ntype|np) = ")


def _recognise(sample: Sample) -> Fit | None:
    return by_keys(sample, frozenset({"nodes", "pbs_server"})) or by_beginning(sample, _BLOCK, "a node of pbsnodes")


TRANSLATOR = offer_format("pbsnodes", "Nodes of PBS or Torque", lambda text: (nodes_shown(text), {}), _recognise)
