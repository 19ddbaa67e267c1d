"""How a job ended, by the first word of its StatusMessage, its code and its signal."""

from __future__ import annotations

from typing import Final

from sssjob.document.model import Job

__all__ = ["FAILURE", "NO_FAILURE", "PUT_BACK", "failed", "reason_word", "why_word"]

#: Words of StatusMessage (docs/facts.md) of runs whose job is to run again.
PUT_BACK: Final = ("preempted", "requeued")
#: The same of jobs that failed, whatever their code says; and of those that did not.
FAILURE: Final = frozenset(("timeout", "cpu-limit", "memory", "node-failure", "deadline", "boot", "launch", "signal",
                            "failed"))
NO_FAILURE: Final = frozenset(("cancel", *PUT_BACK))


def why_word(job: Job) -> str:
    """The first word of the StatusMessage, which tells why a job ended; empty where there is none."""
    return reason_word(str(job.value("StatusMessage") or ""))


def reason_word(message: str) -> str:
    """The first word of the text of a StatusMessage."""
    return message.partition(":")[0].strip()


def failed(job: Job) -> bool:
    """Whether a job ended otherwise than well, and neither because somebody wanted it to nor to be run again."""
    word = why_word(job)
    if word in NO_FAILURE:
        return False
    code = job.value("ExitCode")
    return (isinstance(code, int) and code != 0) or word in FAILURE or any(
        p.get("name") == "ExitSignal" for p in job.all("Extension"))
