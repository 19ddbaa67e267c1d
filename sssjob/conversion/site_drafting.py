"""A site profile drafted from what a resource manager says of itself: what it says stands there, what it leaves open is
a comment, so that the draft is a valid profile as it stands."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sssjob.lrm.nodes import ANYWHERE, TEN_YEARS_S, Limits, Node

if TYPE_CHECKING:
    from sssjob.conversion.site import SSH

__all__ = ["SiteFacts", "draft_site"]

_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)
_LONGEST: Final = 200
_RULES: Final = ("$pe_slots", "$fill_up", "$round_robin")
#: Names of resources that are GPUs at many sites; a guess.
_GPU: Final = re.compile(r"gpus?|cuda", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """What is known of a site. machine, zone: None where nobody says it; rules: parallel environment -> its allocation
    rule; complexes: name -> type and whether it is consumed (complex(5)); ssh: how it is reached."""

    name: str
    manager: str
    machine: str | None = None
    zone: str | None = None
    nodes: Sequence[Node] = ()
    queues: Mapping[str, Limits] = field(default_factory=dict)
    rules: Mapping[str, str | int] = field(default_factory=dict)
    complexes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    ssh: SSH | None = None


def draft_site(facts: SiteFacts) -> str:
    """The text of the profile, in TOML."""
    blocks = [list(_head(facts)), list(_ssh(facts)), list(_queues(facts)),
              list(_sge(facts)) if facts.manager == "sge" else [],
              ["# Names that scripts of other sites use, and what they are called here:", "#[map.Queue]",
               '#"their name" = "our name"', "#[map.Project]", '#"their name" = "our name"']]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(facts: SiteFacts) -> Iterator[str]:
    yield "# A site profile, drafted from the answers of its resource manager. Lines of the form \"#key = value\" are"
    yield "# what it does not say: take the sign away from those that hold, with the right value."
    yield f"name = {_text(facts.name)}"
    yield f"manager = {_text(facts.manager)}"
    yield f"machine = {_text(facts.machine)}" if facts.machine else '#machine = "its name in accounting"'
    yield '#rates = "rates.toml"                  # what it charges: a file beside this one'
    yield f"timezone = {_text(facts.zone)}" if facts.zone else '#timezone = "Europe/Berlin"           # of its clock'
    sizes = Counter[int]()
    for node in facts.nodes:
        sizes.update({shape.processors: node.count for shape in node.shapes.values()})
    if len(sizes) == 1:
        yield f"cores_per_node = {next(iter(sizes))}"
    elif sizes:
        counts = ", ".join(f"{size} ({count} nodes)" for size, count in sorted(sizes.items()))
        yield f"#cores_per_node = {max(sizes, key=lambda size: sizes[size])}          # they differ: {counts}"


def _ssh(facts: SiteFacts) -> Iterator[str]:
    if facts.ssh is not None:
        yield from ("[ssh]", f"host = {_text(facts.ssh.host)}")
        yield '#setup = ". /etc/profile"              # a line of sh with which each command there begins' if (
            facts.ssh.setup is None) else f"setup = {_text(facts.ssh.setup)}"
        yield '#directory = "/scratch/amy"            # where relative paths begin, if not in the home directory'


def _queues(facts: SiteFacts) -> Iterator[str]:
    """The queues that take jobs, with the longest run; those without a limit and those that are closed as comments."""
    queues = {queue for node in facts.nodes for queue in node.shapes} - {ANYWHERE}
    for queue in sorted(filter(_usable, {*facts.queues, *queues} - {ANYWHERE})):
        limits = facts.queues.get(queue)
        if limits is not None and not limits.open:
            yield f"# {_shown(queue)} takes no jobs now"
        elif limits is None or limits.duration is None:
            yield f"#[queues.{_key(queue)}]"
            yield "#duration = 86400                      # the longest run, in seconds"
        elif limits.duration >= TEN_YEARS_S:
            yield f"# {_shown(queue)} has no limit of time"
        else:
            yield from (f"[queues.{_key(queue)}]", f"duration = {limits.duration}")


def _sge(facts: SiteFacts) -> Iterator[str]:
    yield "[sge]"
    consumed = facts.complexes.get("h_vmem", ("", ""))[1]
    if consumed:
        yield f"h_vmem_per_slot = {'true' if consumed == 'YES' else 'false'}"
    else:
        yield "#h_vmem_per_slot = true                # whether h_vmem counts for each slot"
    rules = {name: rule for name, rule in facts.rules.items() if _usable(name)}
    for name, rule in sorted(rules.items(), key=lambda item: (str(item[1]) not in _RULES, item[0])):
        if isinstance(rule, int) or rule in _RULES:
            yield from (f"[sge.pe.{_key(name)}]", f"allocation_rule = {rule if isinstance(rule, int) else _text(rule)}")
        else:
            yield f"# parallel environment {_shown(name)}: allocation_rule {_shown(rule)} is none that can be used"
    consumables = {name: (type_, kind) for name, (type_, kind) in facts.complexes.items()
                   if kind in ("YES", "JOB") and name not in ("slots", "h_vmem") and _usable(name)}
    if consumables:
        yield "[sge.complex]                          # consumables: GPU, Memory or License"
    for name, (type_, kind) in consumables.items():
        sign, what = ("", "Memory") if type_ == "MEMORY" else ("#", "GPU" if _GPU.fullmatch(name) else "License")
        yield f"{sign}{_key(name)} = {_text(what + ' per job' * (kind == 'JOB'))}"


def _usable(name: str) -> bool:
    """Whether a profile can hold a name."""
    return 0 < len(name) <= _LONGEST and name.isprintable()


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if _KEY.fullmatch(name) else _text(name)


def _shown(text: object) -> str:
    return "".join(c if c.isprintable() else "?" for c in str(text))[:200]
