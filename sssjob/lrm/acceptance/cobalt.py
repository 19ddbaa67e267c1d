"""What qsub of Cobalt refuses. Source: qsub.py of Cobalt, which wants a time and a number of nodes."""

from __future__ import annotations

from typing import Final

from sssjob.lrm.acceptance import Judge, at_least, one_word

__all__ = ["JUDGE"]

JUDGE: Final = Judge("qsub", {
    "--nodecount": at_least(1), "--proccount": at_least(1), "--queue": one_word(", ", "queue"),
}, needed={"--nodecount": "a number of nodes is required", "--time": "a time limit is required"})
