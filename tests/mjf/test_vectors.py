"""The recorded and computed vectors of ``fixtures``; SOURCES.md says how each was made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sssjob.mjf import MJFValueError, figures, read_value, revised
from tests.mjf.support import NOW, Site

HERE = Path(__file__).parent / "fixtures"


def vectors(name: str) -> list[Any]:
    return [pytest.param(v, id=v["name"]) for v in json.loads((HERE / f"{name}.json").read_text())["vectors"]]


@pytest.mark.parametrize("vector", vectors("lexical"))
def test_lexical(vector: dict[str, Any]) -> None:
    if not vector["valid"]:
        with pytest.raises(MJFValueError):
            read_value(vector["kind"], vector["raw"])
        return
    value = read_value(vector["kind"], vector["raw"])
    assert (value, isinstance(value, bool)) == (vector["value"], isinstance(vector["value"], bool))


@pytest.mark.parametrize("vector", vectors("draft-to-2016"))
def test_draft_becomes_note(vector: dict[str, Any]) -> None:
    assert revised(vector["draft"]) == vector["expect"]


@pytest.mark.parametrize("vector", vectors("jobstatus-formulas"))
def test_formulas(vector: dict[str, Any]) -> None:
    pilot_figures = figures(vector["values"], vector["now"])
    assert {name: getattr(pilot_figures, name) for name in vector["expect"]} == vector["expect"]


@pytest.mark.parametrize("vector", vectors("drain-decisions-glideinwms"))
def test_drains_when_glideinwms_does(vector: dict[str, Any], site: Site) -> None:
    """Where glideinWMS gives up on a value (rc 1), it is a value here, or unreadable, and never no shutdown."""
    site.write("machine")
    site.write("job")
    for area, name in (("machine", "shutdowntime"), ("job", "shutdowntime_job")):
        text = vector[f"{area}_{name}"]
        if text is not None:
            raw = text.replace("cr", "\r\n").replace("nl", "\n")
            number = raw.strip()
            absolute = str(float(number) + NOW).removesuffix(".0") if number.strip("-.").replace(".", "").isdigit() \
                else number
            (site.root / area / name).write_text(raw.replace(number, absolute) if number else raw)
    features = site.reader().read()
    shutdown = features.shutdown()
    if vector["rc"] == 0:
        left = None if shutdown.value is None else float(shutdown.value) - features.now
        assert str(left is not None and left < vector["grace_secs"]) == vector["draining"]
        assert str(left is not None and left < 1800) == vector["preempt"]
    else:
        assert shutdown.state != "absent"
