"""``sssjob route``: which offers of which sites meet a document, in which order, and why the others do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

RATES = ("name = 'r'\nversion = '1'\ncurrency = 'EUR'\nprecision = 2\n"
         "[[rate]]\ntype = 'VBR'\nname = 'Processors'\nrate = {}\nper = 'hour'\n")
OFFER = "<Job><Id>{0}</Id><Queue>{0}</Queue><NodeCount>{1}</NodeCount><Processors>{2}</Processors>" \
        "<Duration>{3}</Duration></Job>"


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script and two sites: alpha with two queues, beta, which calls its queue otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -N 2 -n 8 -t 30 -p batch\ndate\n")
    (tmp_path / "alpha.toml").write_text("name = 'alpha'\n")
    (tmp_path / "beta.toml").write_text("name = 'beta'\n[map.Queue]\nbatch = 'long'\n")
    (tmp_path / "alpha.xml").write_text(
        "<JobGroup><Id>alpha</Id>" + OFFER.format("batch", 4, 16, 3600) + OFFER.format("debug", 1, 4, 60)
        + "</JobGroup>")
    (tmp_path / "beta.xml").write_text(OFFER.format("long", 100, 6400, 86400))
    return tmp_path


BOTH = ("--offers", "alpha.toml=alpha.xml", "--offers", "beta.toml=beta.xml")
NO_RATES = "no price (the profile names no rates)"
DEBUG = ("-  alpha, debug: not met: Duration = 1800: offered 60 (more than is offered); NodeCount = 2: offered 1 (more "
         "than is offered); Queue = batch: offered debug; Processors >= 8: offered 4 (8 tasks)\n")


def test_in_the_order_given(sssjob: Command, sites: Path) -> None:
    """Each site is asked with its own names of queues."""
    answer = sssjob("route", "-q", "job.sh", *BOTH)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == (f"1. alpha, batch: met, preference 1, {NO_RATES}\n"
                          f"2. beta, beta.xml: met, preference 1, {NO_RATES}\n{DEBUG}")


def test_the_cheaper_first_and_no_price_last(sssjob: Command, sites: Path) -> None:
    (sites / "dear.toml").write_text(RATES.format("1"))
    (sites / "cheap.toml").write_text(RATES.format("0.5"))
    with (sites / "alpha.toml").open("a") as profile:
        profile.write("rates = 'dear.toml'\n")
    (sites / "beta.toml").write_text("name = 'beta'\nrates = 'cheap.toml'\n[map.Queue]\nbatch = 'long'\n")
    (sites / "gamma.toml").write_text("name = 'gamma'\n")
    (sites / "gamma.xml").write_text(OFFER.format("batch", 2, 8, 1800))
    answer = sssjob("route", "-q", "job.sh", "--offers", "gamma.toml=gamma.xml", *BOTH)
    assert answer.out == ("1. beta, beta.xml: met, preference 1, 2.00 EUR\n"
                          "2. alpha, batch: met, preference 1, 4.00 EUR\n"
                          f"3. gamma, gamma.xml: met, preference 1, {NO_RATES}\n{DEBUG}")
    (sites / "cheap.toml").write_text(RATES.format("0.5").replace("EUR", "CHF"))
    lines = sssjob("route", "-q", "job.sh", *BOTH).out.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["1. alpha", "2. beta", "-  alpha"]


def test_preferences_before_prices(sssjob: Command, sites: Path) -> None:
    (sites / "job.xml").write_text(
        "<Job><Id>1</Id><Requested><Processors>4</Processors>"
        "<Queue preference='3' group='+1'>long</Queue><Queue preference='1' group='-1'>batch</Queue>"
        "</Requested></Job>")
    (sites / "beta.toml").write_text("name = 'beta'\n")
    records = [json.loads(line) for line in sssjob("route", "--json", "job.xml", *BOTH).out.splitlines()]
    assert [(record["rank"], record["site"], record["offer"], record["met"]) for record in records] == [
        (1, "beta", "beta.xml", True), (2, "alpha", "batch", True), (None, "alpha", "debug", False)]
    assert [record["score"] for record in records[:2]] == [0.75, 0.25]


def test_explain_and_none_that_meets(sssjob: Command, sites: Path) -> None:
    (sites / "job.xml").write_text("<Job><Id>1</Id><Requested><Processors>9000</Processors></Requested></Job>")
    answer = sssjob("route", "-q", "--explain", "job.xml", "--offers", "beta.toml=beta.xml")
    assert answer.code == 1
    assert answer.out == ("-  beta, beta.xml: not met: Processors = 9000: offered 6400 (more than is offered)\n"
                          "     - Processors = 9000: offered 6400 (more than is offered)\n")


@pytest.mark.parametrize(("given", "code", "message"), [
    (["alpha.toml"], 2, "--offers 'alpha.toml': not of the form NAME=VALUE"),
    (["none=alpha.xml"], 3, "none: No such file or directory"),
    (["alpha.toml=none"], 3, "none: No such file or directory"),
    (["alpha.toml=alpha.xml", "alpha.toml=beta.xml"], 2, "a site is named twice"),
])
def test_refusals(sssjob: Command, sites: Path, given: list[str], code: int, message: str) -> None:
    answer = sssjob("route", "job.sh", *(word for one in given for word in ("--offers", one)))
    assert (answer.code, answer.out) == (code, "")
    assert message in answer.err
