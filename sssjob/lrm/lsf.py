"""LSF: states, and why jobs were ended.

Sources: bjobs(1), STAT; bhist(1), table of job termination reasons; lsbatch.h, TERM_*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from sssjob.lrm.answers import SubmitAnswers
from sssjob.lrm.states import NativeState, Stage, by_word

__all__ = ["ANSWERS", "STATES", "TERMINATIONS", "reason_of", "slots"]

STATES: Final[Mapping[str, NativeState]] = by_word(
    NativeState("PEND", Stage.WAITING),
    NativeState("PSUSP", Stage.HELD, phase="HELD"),
    NativeState("WAIT", Stage.WAITING),
    NativeState("PROV", Stage.WAITING, phase="CONFIGURING"),
    NativeState("FWD_PEND", Stage.WAITING),
    NativeState("RUN", Stage.RUNNING),
    NativeState("RUNKWN", Stage.RUNNING),
    NativeState("SSUSP", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("USUSP", Stage.SUSPENDED, phase="SUSPENDED"),
    NativeState("EXIT", Stage.FAILED),
    NativeState("DONE", Stage.DONE),
    NativeState("POST_DONE", Stage.DONE),
    NativeState("POST_ERR", Stage.DONE),
    NativeState("UNKWN", Stage.SILENT),
    NativeState("ZOMBI", Stage.SILENT),
)
#: exitInfo of lsb.acct -> (word of the manager, reason); an empty reason: none of those in docs/facts.md.
TERMINATIONS: Final[Mapping[int, tuple[str, str]]] = {
    1: ("TERM_PREEMPT", "preempted"), 2: ("TERM_WINDOW", "deadline"), 3: ("TERM_LOAD", "preempted"),
    5: ("TERM_RUNLIMIT", "timeout"), 6: ("TERM_DEADLINE", "deadline"), 7: ("TERM_PROCESSLIMIT", "signal"),
    8: ("TERM_FORCE_OWNER", "cancel"), 9: ("TERM_FORCE_ADMIN", "cancel"), 10: ("TERM_REQUEUE_OWNER", ""),
    11: ("TERM_REQUEUE_ADMIN", ""), 12: ("TERM_CPULIMIT", "cpu-limit"), 13: ("TERM_CHKPNT", ""),
    14: ("TERM_OWNER", "cancel"), 15: ("TERM_ADMIN", "cancel"), 16: ("TERM_MEMLIMIT", "memory"),
    17: ("TERM_EXTERNAL_SIGNAL", "signal"), 18: ("TERM_RMS", ""), 19: ("TERM_ZOMBIE", "lost"),
    20: ("TERM_SWAP", "memory"), 21: ("TERM_THREADLIMIT", "signal"), 22: ("TERM_SLURM", ""),
    23: ("TERM_BUCKET_KILL", "cancel"),
}
#: Words that bhist and bjobs print; the last four have no number that was seen.
_REASONS: Final = {word: reason for word, reason in TERMINATIONS.values() if reason} | {
    "TERM_PRE_EXEC_FAIL": "launch", "TERM_CWD_NOTEXIST": "launch", "TERM_ORPHAN_SYSTEM": "dependency",
    "TERM_UNKNOWN": None}


def reason_of(word: str) -> str | None:
    """The reason of ``TERM_RUNLIMIT``; of a word that no table has the word itself in small letters, None where it says
    nothing."""
    return _REASONS.get(word, word.removeprefix("TERM_").lower().replace("_", "-"))


def slots(listed: Iterable[str]) -> tuple[int, list[str]]:
    """(slots, hosts, each once) of ``8*hostA`` and ``hostB``, which is one slot, as is a host with a count that is
    none."""
    count, names = 0, dict[str, None]()
    for part in listed:
        times, star, name = part.partition("*")
        counted = star and times.isdecimal() and times.isascii() and len(times) < 10
        count += int(times) if counted else 1
        names[name if star else part] = None
    return count, list(names)


#: Answers of bsub.
ANSWERS: Final = SubmitAnswers(
    "bsub", re.compile(r"\d{1,18}(?:\[\d{1,10}\])?", re.ASCII),
    submitted=re.compile(r"Job <(\d{1,18})> is submitted to (?:default )?queue <[^>]*>\.?.*", re.ASCII),
    later=re.compile(r"cannot connect|please wait|not responding|(lim|mbatchd|daemon).* (is )?down|reconfigur|"
                     r"try.* later|pending job (threshold|slot limit)|job limit|too many", re.IGNORECASE),
    unknown=re.compile(r"timed? ?out|socket operation|failed in (sending|receiving)|communication|"
                       r"connection (reset|lost|closed)|broken pipe", re.IGNORECASE))
