"""Format ``flux-resource``: the resource set R of a Flux instance, read as offers.

It is what ``flux resource R`` and ``flux kvs get resource.R`` print; what it holds is described in
``sssjob.lrm.flux.nodes``. It says nothing of queues, of memory and of how long a job may run.
"""

from __future__ import annotations

import json

from sssjob.lrm.flux.nodes import nodes_of
from sssjob.translators.recognise import by_keys
from sssjob.translators.specs._offers import offer_format

__all__ = ["TRANSLATOR"]

TRANSLATOR = offer_format("flux-resource", "Resources of a Flux instance",
                          lambda text: (nodes_of(json.loads(text)), {}),
                          lambda sample: by_keys(sample, frozenset({"version", "execution"})))
