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
from tests.cases import Cases

FIXTURE: Final = json.loads((Path(__file__).parents[1] / "fixtures" / "gold-2.2" / "charges.json").read_text())
CASES: Final[list[dict[str, Any]]] = FIXTURE["cases"]
WITHOUT_QUIRK: Final = [recorded for recorded in CASES if "quirk" not in recorded]
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


@pytest.mark.parametrize("price", [charge, quote])
def test_as_gold(price: Any) -> None:
    with Cases() as case:
        for recorded in CASES:
            with case(recorded["id"]):
                priced = price(job(recorded), rates(recorded["rates"], "gold"))
                expected = QUIRKS.get(recorded["title"], {}) if "quirk" in recorded else {}
                if isinstance(expected, Reason):
                    assert isinstance(priced, Uncharged) and priced.reason == expected
                else:
                    assert isinstance(priced, Charge)
                    assert str(priced.amount) == expected.get(recorded["rates"], recorded["charge"])
                    assert recompute(priced.arithmetic) == priced.exact


def test_exact_decimals() -> None:
    with Cases() as case:
        for recorded in WITHOUT_QUIRK:
            with case(recorded["id"]):
                charged = charge(job(recorded), rates(recorded["rates"], "sss"))
                if isinstance(charged, Uncharged):
                    assert charged.reason == Reason.NOTHING_PRICED and Decimal(recorded["charge"]) == 0
                elif "charge given" not in recorded["title"]:           # replaced unless Gold's way is asked for
                    assert str(charged.amount) == recorded.get("decimal_half_up", recorded["charge"])


def test_warnings() -> None:
    with Cases() as case:
        for recorded in WITHOUT_QUIRK:
            with case(recorded["id"]):
                charged = charge(job(recorded), rates(recorded["rates"], "gold"))
                undefined = {
                    tuple(w.removeprefix("Warning: ChargeRate for ").removesuffix(" is not defined").split(" ", 2)[1:])
                    for w in recorded.get("warnings", ())}
                assert {(n.subject, n.message.rpartition(" ")[2]) for n in charged.notes} == undefined
