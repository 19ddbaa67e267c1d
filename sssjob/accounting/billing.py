"""Slurm's billing of a job: weights of its resources, as TRESBillingWeights has them, in one amount."""

from __future__ import annotations

from typing import Final

from sssjob.accounting.amounts import converted
from sssjob.accounting.arithmetic import Figure, call, number, product, ratio, total
from sssjob.accounting.facts import Facts
from sssjob.accounting.rates import Billing
from sssjob.lrm.sizes import POWERS

__all__ = ["billing"]

#: Suffix of a weight -> powers of 1024.
_SUFFIX: Final = {letter: power for power, letter in enumerate(POWERS)}
_TRES: Final = {"cpu": "Processors", "mem": "Memory", "node": "NodeCount", "energy": "Energy"}


def billing(facts: Facts, rule: Billing) -> Figure | None:
    """Slurm's billing of a job or a part of it; None where it has none of the resources.

    MAX_TRES takes the greatest of what is bound to nodes, MAX_TRES_GRES leaves GRES out of that and adds them all;
    licences are added by either. Source: Slurm, tres.html; slurm.conf, PriorityFlags.
    """
    weighted = [(key.lower(), _weighted(facts, key, rule)) for key in rule.weights]
    terms = [(key, term) for key, term in weighted if term is not None]
    if not terms:
        return None
    bound = [t for key, t in terms if not _added(key, rule)]
    added = [t for key, t in terms if _added(key, rule)]
    whole = total([*([call("max", *bound)] if len(bound) > 1 else bound), *added])
    return call("floor", whole) if rule.truncate else whole


def _added(key: str, rule: Billing) -> bool:
    if rule.flags == "SUM" or key.startswith("license/"):
        return True
    return rule.flags == "MAX_TRES_GRES" and key.startswith("gres/")


def _weighted(facts: Facts, key: str, rule: Billing) -> Figure | None:
    """weight x amount of one TRES; memory in MiB."""
    kind, _, name = key.partition("/")
    tres = _TRES.get(kind.lower())
    if tres is not None:
        amounts = facts.chosen(tres)
    elif kind.lower() == "license":
        amounts = facts.chosen(*facts.spelled("License", name))
    else:
        resource, _, model = name.partition(":")
        amounts = facts.chosen(*facts.spelled(resource, model or None))
    if not amounts:
        return None
    weight = rule.weights[key]
    power = (2 if tres == "Memory" else 0) - _SUFFIX[weight.suffix]
    held = total([converted(a, "J" if tres == "Energy" else None) for a in amounts])
    term = product(held, number(weight.number, f"{key} {weight.suffix}".strip()))
    scale = number(1024 ** abs(power), f"MB/{weight.suffix}B" if tres == "Memory" else weight.suffix)
    return product(term, scale) if power > 0 else ratio(term, scale) if power < 0 else term
