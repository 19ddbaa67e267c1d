"""Profiles: how strictly a document is read, and which names it is written with.

One row a profile. ``3.1`` is the published text to the letter; ``liberal`` (the default for reading) knows every
alias, other forms of values and the repairs of the published examples; the others are the same object as other
systems spell it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from sssjob.document.vocabulary import ELEMENTS, SCOPES
from sssjob.errors import UsageError

__all__ = ["PROFILES", "Profile", "profile"]

#: Table -> canonical name -> spelling of release 3.0.
_FORMER: Final = {
    table: {e.name: e.former for e in ELEMENTS if e.table == table and e.former}
    for table in ("JobGroup", *SCOPES)
}


@dataclass(frozen=True, slots=True)
class Profile:
    """One way of spelling a job object.

    aliases: other names are read (with a finding once a name); liberal: other forms of values, other case and the
    repairs of the published text are read; keep_spelling: names are written as they were read; names: table ->
    canonical -> written name; root: what a single Job is written as; refused: containers and elements that the
    other system rejects.
    """

    name: str
    description: str
    aliases: bool = True
    liberal: bool = True
    keep_spelling: bool = False
    names: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    root: str = "Job"
    refused: frozenset[str] = frozenset()
    packed_script: bool = False        # Moab: script in SubmitString, environment as one text


_GOLD: Final = frozenset(("JobGroup", "JobDefaults", "TaskGroup", "TaskGroupDefaults", "Requested", "Delivered",
                          "Resource", "Extension"))

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({
    p.name: p
    for p in (
        Profile("3.1", "the published text of release 3.1.0 to the letter", aliases=False, liberal=False),
        Profile("liberal", "every alias and repair; written with the names it was read under", keep_spelling=True),
        Profile("3.0", "the names of release 3.0 (JobId, UserId, WallDuration ...)", names=_FORMER),
        Profile("gold", "the flat charge data of the Gold allocation manager", names=_FORMER, refused=_GOLD),
        Profile("mam", "usage records of Moab Accounting Manager (Instance, Account)", root="UsageRecord",
                names={"Job": {"Id": "Instance", "Project": "Account"}}, refused=frozenset(("JobGroup",))),
        Profile("msub", "the XML form of Moab's msub (job, Owner, SubmitString)", root="job", packed_script=True,
                names={"Job": {"User": "UserId", "Group": "GroupId", "Project": "ProjectId", "Shell": "ShellName"}}),
    )
})


def profile(name: str) -> Profile:
    """The profile of that name; UsageError lists the known ones."""
    try:
        return PROFILES[name]
    except KeyError:
        raise UsageError(f"unknown profile {name!r} (known: {', '.join(PROFILES)})") from None
