"""What ``flux batch`` and a broker refuse. Sources: base.py and Jobspec.py of the bindings of flux-core 0.88, seen with
a live broker; flux-batch(1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sssjob.lrm.acceptance import Judge, Refusal, at_least, one_word
from sssjob.lrm.usage import whole

__all__ = ["JUDGE"]


def _together(options: Mapping[str, str]) -> Iterator[Refusal]:
    nodes, slots = whole(options.get("--nodes")), whole(options.get("--nslots"))
    if nodes is not None and slots is not None and 0 < slots < nodes:
        yield Refusal("--nodes", f"{nodes} nodes for {slots} slots")
    if "--exclusive" in options and not options.get("--nodes"):
        yield Refusal("--exclusive", "--exclusive wants --nodes")
    if slots == 0 and not options.get("--nodes"):
        yield Refusal("--nslots", "asks for no slots")


JUDGE: Final = Judge("flux batch", {
    "--nodes": at_least(1), "--cores-per-slot": at_least(1), "--gpus-per-slot": at_least(0),
    "--queue": one_word(", ", "queue"),
}, _together)
