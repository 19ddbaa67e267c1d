"""Format ``condor-status``: the machines of an HTCondor pool, read as offers that ``match`` holds a request against.

It is what ``condor_status -json`` prints; what it holds is described in ``sssjob.lrm.condor_nodes``. It says nothing of
how long a job may run.
"""

from __future__ import annotations

import json

from sssjob.lrm.condor_nodes import machines_of
from sssjob.translators.recognise import by_keys
from sssjob.translators.specs._offers import offer_format

__all__ = ["TRANSLATOR"]

TRANSLATOR = offer_format("condor-status", "Machines of an HTCondor pool",
                          lambda text: (machines_of(json.loads(text)), {}),
                          lambda sample: by_keys(sample, frozenset({"Machine", "SlotType", "State"})))
