"""Names of jobs: what each resource manager takes for one, and the nearest name that it takes.

Sources: check_job_name of OpenPBS and Torque, PBS_MAXJOBNAME; sge_types(1) and a qmaster of Son of Grid Engine 8.1.9;
bsub(1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["JOB_NAMES", "NameRule"]


@dataclass(frozen=True, slots=True)
class NameRule:
    """What a manager takes for the name of a job.

    unfit: characters that it does not take. digit: whether a name may begin with one; front: what stands before one
    that may not. words: names that mean something else, in lower case. longest: characters that a name may have.
    """

    unfit: re.Pattern[str]
    digit: bool = True
    front: str = "job_"
    words: frozenset[str] = frozenset()
    longest: int = 1 << 20

    def fault(self, name: str) -> str:
        """Why a name is not taken: it ``contains '@'``; empty where it is taken."""
        if not name:
            return "is empty"
        if match := self.unfit.search(name):
            return f"contains {match[0]!r}"
        if len(name) > self.longest:
            return f"has more than {self.longest} characters"
        if not self.digit and name[0].isdigit():
            return "begins with a digit"
        return "means something else" if name.lower() in self.words else ""

    def fitted(self, name: str) -> str:
        """The name itself where it is taken; else with ``_`` for each character that is not, cut where it is long."""
        fit = self.unfit.sub("_", name[:self.longest])
        return fit if not self.fault(fit) else f"{self.front}{fit}"[:self.longest]


#: By dialect; the others take any name.
JOB_NAMES: Final = {
    "pbspro": NameRule(re.compile(r"[^\w.+-]", re.ASCII), longest=230),    # the dot since OpenPBS 20
    "torque": NameRule(re.compile(r"[^!-.0-~]", re.ASCII)),
    "sge": NameRule(re.compile(r"""[\s"'#*/:?@\\]|[^ -~]"""), digit=False, front="_",
                    words=frozenset(("none", "all", "template")), longest=511),
    "cobalt": NameRule(re.compile(r"\s")),         # a directive of Cobalt ends at a blank
    "lsf": NameRule(re.compile(r"[\[\]]"), longest=4094),
}
