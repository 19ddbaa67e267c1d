"""What a finding means for the job: it ``breaks`` the job, the job ``costs`` more, or it only ``looks`` different.

A rule says it in its column (``sssjob/rules.py``), as one of these words, or as ``lost`` or ``changed``: then it
depends on the property that the finding is about, and ``PROPERTIES`` knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

__all__ = ["CONSEQUENCES", "OTHER", "PROPERTIES", "Column", "Consequence", "consequence_of", "meaning", "worst_first"]

Consequence = Literal["breaks", "costs", "looks"]
#: What a rule may say; empty: it is not about what becomes of a job.
Column = Literal["", "breaks", "costs", "looks", "lost", "changed"]

#: The words from the worst on, and what each of them means.
CONSEQUENCES: Final[Mapping[Consequence, str]] = {
    "breaks": "the job may be refused, wait for ever, fail, lose its results or compute something else",
    "costs": "the job does the same, but asks for, waits for or holds something else, and may cost more",
    "looks": "the job does the same with the same; names, mail or surroundings that it does not ask for differ",
}

#: Property (of an Extension ``Extension NAME``) -> what it means to lose it, and to have something close to it. One
#: that does not stand here breaks the job when it is lost and costs when it is changed.
PROPERTIES: Final[Mapping[str, tuple[Consequence, Consequence]]] = {
    # what only people read
    "Name": ("looks", "looks"), "Description": ("looks", "looks"), "OutputFile": ("looks", "looks"),
    "ErrorFile": ("looks", "looks"), "NotificationList": ("looks", "looks"), "Id": ("looks", "looks"),
    "Extension MailEvents": ("looks", "looks"), "Extension MailUser": ("looks", "looks"),
    "Extension Comment": ("looks", "looks"), "comments": ("looks", "looks"), "JobGroup": ("looks", "looks"),
    "Requested": ("looks", "looks"), "Application": ("looks", "looks"), "Extension JobAnnotation": ("looks", "looks"),
    "Extension ApplicationVersion": ("looks", "looks"), "Extension Annotation": ("looks", "looks"),
    "Extension ActivityOldID": ("looks", "looks"), "Extension RemoteLogging": ("looks", "looks"),
    "Extension LoggingDirectory": ("looks", "looks"), "Extension Notification": ("looks", "looks"),
    # where, when and at what price the same is done
    "Priority": ("costs", "costs"), "Extension Nice": ("costs", "costs"), "QualityOfService": ("costs", "costs"),
    "Project": ("costs", "costs"), "EligibleTime": ("costs", "costs"), "DeadlineTime": ("costs", "costs"),
    **{f"Extension {tag}Of{scope}": ("costs", "costs") for tag in ("EligibleTime", "DeadlineTime")
       for scope in ("Day", "Month", "Year")},
    "Extension EligibleTimeFromNow": ("costs", "costs"),
    "Extension MinDuration": ("costs", "costs"), "Extension Switches": ("costs", "costs"),
    "Extension ExclusiveNodeUse": ("costs", "costs"), "TaskDistribution": ("costs", "costs"),
    "Extension SlotsPerHost": ("costs", "costs"), "Extension ThreadsPerCore": ("costs", "costs"),
    "Restartable": ("costs", "costs"),
    # what a job finds around it
    "Environment": ("breaks", "looks"), "InitialWorkingDirectory": ("breaks", "breaks"), "Shell": ("breaks", "looks"),
    "Extension Array": ("breaks", "looks"), "Extension LoginShell": ("looks", "looks"), "directive": ("looks", "looks"),
    "Extension Umask": ("looks", "looks"), "--ignore-pbs": ("looks", "looks"), "script": ("breaks", "looks"),
    "ResourceLimit": ("costs", "looks"),
    # output that cannot be written
    "OutputFile directory": ("breaks", "breaks"), "ErrorFile directory": ("breaks", "breaks"),
    # half of a dependency or of a signal is none
    "Dependency": ("breaks", "breaks"), "Extension DependencyOther": ("breaks", "breaks"),
    "Extension Signal": ("breaks", "breaks"), "Variable": ("breaks", "looks"), "Executable": ("breaks", "breaks"),
    "Arguments": ("breaks", "breaks"), "InputFile": ("breaks", "breaks"), "TaskGroup": ("breaks", "breaks"),
}
OTHER: Final[tuple[Consequence, Consequence]] = ("breaks", "costs")
_RANKS: Final[Mapping[str, int]] = {name: rank for rank, name in enumerate(CONSEQUENCES)}


def consequence_of(column: Column, subject: str, severity: str) -> Consequence | Literal[""]:
    """What one finding means. column: what its rule says; subject: what it is about, of which the first word counts
    where the whole is not known; severity: what is only noted never breaks a job."""
    if column and severity == "info":
        return "looks"
    if column != "lost" and column != "changed":
        return column
    lost, changed = PROPERTIES.get(subject) or PROPERTIES.get(subject.partition(" ")[0], OTHER)
    return lost if column == "lost" else changed


def meaning(column: Column) -> str:
    """What a rule says of the job, as a phrase; empty where it says nothing."""
    if column == "lost" or column == "changed":
        return f"breaks, costs or looks, as the property that is {column} matters"
    return f"{column}: {CONSEQUENCES[column]}" if column else ""


def worst_first(severity: str, consequence: str) -> int:
    """The place of a finding among others, from 0 (it refuses) on."""
    return 0 if severity == "error" else 1 + _RANKS.get(consequence, len(_RANKS))
