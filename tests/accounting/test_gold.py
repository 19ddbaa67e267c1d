"""Charges of a running Gold server (fixtures/gold-2.2): equal under profile gold, and where exact decimals or the typed
reader say something else, that is named here."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

from sssjob.accounting import Charge, RateSet, Reason, Uncharged, charge, quote, recompute
from sssjob.document.model import Job
from sssjob.findings import Policy
from sssjob.xml.reader import read_document

FIXTURE: Final = json.loads((Path(__file__).parents[1] / "fixtures" / "gold-2.2" / "charges.json").read_text())
CASES: Final[list[dict[str, Any]]] = FIXTURE["cases"]
TYPES: Final = ("VBR", "NBR", "VBU", "NBU", "VBM", "NBM", "VBF", "NBF")

#: What is made of text that Gold reads in ways of its own, by title: a charge a set of rates, or the reason for none.
QUIRKS: Final[dict[str, dict[str, str] | Reason]] = {
    "quality with blanks around": {"processors": "400", "cluster-2": "400.00"},     # trimmed, so it is `high`
    "processors twice: the texts run together": Reason.AMOUNT_AMBIGUOUS,
    "processors deep inside": {"processors": "0"},
    "processors with a unit behind": Reason.NOT_A_NUMBER,
    "units attribute is not looked at": {"processors": "100", "cluster-2": "459.60"},       # 4 GB are 4096 MB
    "two memories with context": Reason.AMOUNT_AMBIGUOUS,
}


def rates(name: str, profile: str) -> RateSet:
    """A set of rates of the fixture."""
    given = FIXTURE["rates"][name]
    made = [r if r["type"] in TYPES else
            {"type": "VBR", "name": r["type"], "when": {r["name"]: r["instance"]}, "rate": r["rate"]}
            for r in given["rates"]]
    return RateSet.model_validate({"name": name, "version": "1", "precision": given["precision"], "rate": made,
                                   "profile": profile})


def job(case: dict[str, Any]) -> Job:
    """The job of a case; numbers that are no Integer stay as they stand."""
    document = read_document(case["job"].encode(), profile="gold", policy=Policy.IGNORE)
    return next(document.jobs())[0]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
@pytest.mark.parametrize("price", [charge, quote])
def test_as_gold(case: dict[str, Any], price: Any) -> None:
    made = price(job(case), rates(case["rates"], "gold"))
    expected = QUIRKS.get(case["title"], {}) if "quirk" in case else {}
    if isinstance(expected, Reason):
        assert isinstance(made, Uncharged) and made.reason == expected
        return
    assert isinstance(made, Charge)
    assert str(made.amount) == expected.get(case["rates"], case["charge"])
    assert recompute(made.arithmetic) == made.exact


@pytest.mark.parametrize("case", [c for c in CASES if "quirk" not in c], ids=lambda c: c["id"])
def test_exact_decimals(case: dict[str, Any]) -> None:
    made = charge(job(case), rates(case["rates"], "sss"))
    if isinstance(made, Uncharged):
        assert made.reason == Reason.NOTHING_PRICED and Decimal(case["charge"]) == 0
    elif "charge given" not in case["title"]:           # replaced unless Gold's way is asked for
        assert str(made.amount) == case.get("decimal_half_up", case["charge"])


@pytest.mark.parametrize("case", [c for c in CASES if "quirk" not in c], ids=lambda c: c["id"])
def test_warnings(case: dict[str, Any]) -> None:
    made = charge(job(case), rates(case["rates"], "gold"))
    said = {tuple(w.removeprefix("Warning: ChargeRate for ").removesuffix(" is not defined").split(" ", 2)[1:])
            for w in case.get("warnings", ())}
    assert {(n.subject, n.message.rpartition(" ")[2]) for n in made.notes} == said
