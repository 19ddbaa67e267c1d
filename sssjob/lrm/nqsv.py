"""NQSV: words of the column stt. The words are those of psij-python; what they mean (exiting, pre-running,
post-running ...) is guessed from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sssjob.lrm import waits
from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["ANSWERS", "STATES"]

STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("QUE", Stage.WAITING),
    NativeState("WAT", Stage.WAITING, waits=waits.BEGIN),
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


#: Answers of qsub.
ANSWERS: Final = SubmitAnswers(
    "qsub", re.compile(r"\d{1,15}", re.ASCII),
    submitted=re.compile(r"Request (\d{1,15})\.[\w.-]+ submitted to queue: .*", re.ASCII),
    # the submit limits of a queue, by user, by group and in all; the words are a guess, for no manual gives them
    full=re.compile(r"exceed.*submit.*limit|submit.*limit.*(?:exceed|reach)", re.IGNORECASE),
    later=re.compile(r"(cannot|could not|unable to|can't) connect|connection refused|try again", re.IGNORECASE),
    unknown=re.compile(r"timed? ?out|connection (reset|lost|closed)|broken pipe", re.IGNORECASE))
