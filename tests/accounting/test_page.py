"""docs/charging.md tells the truth: its example is run and compared, and it names every key and every reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sssjob.accounting import Reason, read_rates
from sssjob.accounting.rates import Benchmark, Billing, Named, Rate, RateSet, TimeCategory
from sssjob.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "charging.md").read_text()


def block(kind: str) -> str:
    match = re.search(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert match is not None
    return match[1]


def test_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rates.toml").write_text(block("toml"))
    Path("job.xml").write_text(block("xml"))
    command, _, output = block("console").partition("\n")
    assert main(command.split()[2:]) == 0
    assert capsys.readouterr().out == output
    assert main(["charge", "job.xml", "--rates", "rates.toml"]) == 0
    assert '<Charge units="EUR">0.86</Charge>' in capsys.readouterr().out


def test_every_key_and_reason() -> None:
    keys = {f.alias or n for model in (RateSet, Rate, TimeCategory, Benchmark, Billing, Named)
            for n, f in model.model_fields.items()}
    assert [k for k in sorted(keys) if f"`{k}" not in PAGE and f"[[{k}]]" not in PAGE and f"[{k}" not in PAGE] == []
    assert [r for r in Reason if f"`{r}`" not in PAGE] == []


def test_example_rates() -> None:
    assert read_rates((ROOT / "examples" / "rates.toml").read_bytes()).currency == "EUR"
