"""NQSV: words of the column stt. The words are those of psij-python; what they mean (exiting, pre-running,
post-running ...) is guessed from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["STATES"]

STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("QUE", Stage.WAITING),
    NativeState("WAT", Stage.WAITING),
    NativeState("HLD", Stage.HELD, phase="HELD"),
    NativeState("ARI", Stage.WAITING),
    NativeState("TRS", Stage.WAITING),
    NativeState("STG", Stage.WAITING, phase="STAGE_IN"),
    NativeState("PRR", Stage.WAITING, phase="PRERUN"),
    NativeState("RUN", Stage.RUNNING),
    NativeState("SUS", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("POR", Stage.RUNNING, phase="CLEANUP"),
    NativeState("EXT", Stage.RUNNING, phase="CLEANUP"),
    NativeState("MIG", Stage.SILENT),
)
