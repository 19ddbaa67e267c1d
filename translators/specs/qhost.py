"""Format ``qhost``: the hosts of a Grid Engine, read as offers that ``match`` holds a request against.

It is the XML of ``qhost -q -xml``, an offer for each queue. Limits of queues are not in it. What Grid Engine answers is
described in ``sssjob.lrm.sge_nodes``.
"""

from __future__ import annotations

from sssjob.lrm.sge_nodes import hosts_shown
from sssjob.translators.recognise import by_root
from sssjob.translators.specs._offers import offer_format

__all__ = ["TRANSLATOR"]

TRANSLATOR = offer_format("qhost", "Hosts of a Grid Engine", lambda text: (hosts_shown(text), {}),
                          lambda sample: by_root(sample, frozenset({"qhost"})))
