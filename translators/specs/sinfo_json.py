"""Format ``sinfo-json``: the nodes of a Slurm cluster, read as offers that ``match`` holds a request against.

How long a job may run is not in the answer, the site profile says so (``queues.NAME.duration``). What Slurm
answers is described in ``sssjob.lrm.slurm_nodes``.
"""

from __future__ import annotations

import json

from sssjob.lrm.slurm_nodes import nodes_of
from sssjob.translators.recognise import by_keys
from sssjob.translators.specs._offers import offer_format

__all__ = ["TRANSLATOR"]

TRANSLATOR = offer_format("sinfo-json", "Nodes of a Slurm cluster", lambda text: (nodes_of(json.loads(text)), {}),
                          lambda sample: by_keys(sample, frozenset({"nodes", "meta"})))
