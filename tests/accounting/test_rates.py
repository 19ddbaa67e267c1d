"""Rates from TOML: exact numbers, and every mistake named with the path of its key."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sssjob.accounting import RatesError, read_rates

HEAD = 'name = "r"\nversion = "1"\n'


def test_numbers_are_exact() -> None:
    rates = read_rates(HEAD + '[[rate]]\ntype = "VBR"\nname = "Nodes"\nrate = 0.10000000000000000001\n')
    assert rates.rate[0].rate == Decimal("0.10000000000000000001")
    assert (rates.rate[0].canonical, rates.rate[0].label) == ("NodeCount", "VBR Nodes")


def test_digest_is_of_the_meaning() -> None:
    """A comment makes no other rates; another rate does."""
    first, second = read_rates(HEAD), read_rates(HEAD + "# later\n")
    assert first.digest == second.digest and first.identity.startswith("r 1 sha256:")
    rate = '[[rate]]\ntype = "VBR"\nname = "Nodes"\nrate = {}\n'
    assert len({first.digest, *(read_rates(HEAD + rate.format(n)).digest for n in (1, 2))}) == 3


LIST = '[[price_list]]\nvalid_from = {}\n[[price_list.rate]]\ntype = "VBR"\nname = "Queue"\nrate = 1\n'
RATE = '[[rate]]\ntype = "{}"\nname = "Queue"\n{}\n'


@pytest.mark.parametrize(("text", "problems"), [
    ("", ["name: is not said", "version: is not said"]),
    ("name = ", ["not TOML: Invalid value (at end of document)"]),
    (HEAD + "name = 1\n", ["not TOML: Cannot overwrite a value (at line 3, column 9)"]),
    (HEAD + "prices = 1\n", ["prices: no such key"]),
    (HEAD + "precision = true\n", ["precision: has to be a whole number"]),
    (HEAD + 'granularity = "60"\n', ["granularity: has to be a whole number"]),
    (HEAD + "minimum_duration = true\n", ["minimum_duration: has to be a whole number"]),
    (HEAD + "precision = 10\n", ["precision: has to be less than or equal to 9"]),
    (HEAD + 'rounding = "odd"\n',
     ["rounding: 'odd' is none of 'half-up', 'half-even', 'up' or 'down'"]),
    (HEAD + "step = 0.005\n", ["step 0.005 has more digits than precision = 2"]),
    (HEAD + 'timezone = "Nowhere"\n', ["timezone: 'Nowhere' is no time zone, as Europe/Berlin"]),
    (HEAD + '[[time_category]]\nname = "Night"\n', ["time_category needs a timezone"]),
    (HEAD + RATE.format("VBX", "rate = 1"),
     ["rate[0].type: 'VBX' is none of 'VBR', 'NBR', 'VBU', 'NBU', 'VBM', 'NBM', 'VBF' or 'NBF'"]),
    (HEAD + RATE.format("VBR", "rate = -1"),
     ['rate[0].rate: below 0, as only a bank of Gold has it (profile = "gold")']),
    (HEAD + RATE.format("VBR", 'rate = 1\ncontext = "Used"').replace("Queue", "DedicatedMemory"),
     ["rate[0]: its name says context Dedicated, and its context Used"]),
    (HEAD + LIST.format("2026-01-01"),
     ["price_list[0].valid_from needs an offset, or the rates a timezone"]),
    (HEAD + "[[price_list]]\nvalid_from = 2026-01-01T00:00:00Z\nrate = []\n",
     ["price_list[0].rate: is empty"]),
    (HEAD + LIST.format("2026-01-02T00:00:00Z") * 2,
     ["price_list[1].valid_from: 2026-01-02 00:00:00+00:00 is not after the one before"]),
    (HEAD + RATE.format("VBR", "rate = true"), ['rate[0].rate: a number, as 0.5 or "0.5"']),
    (HEAD + RATE.format("VBR", "rate = inf"), ["rate[0].rate: has to be a finite number"]),
    (HEAD + RATE.format("VBR", 'rate = 1\nper = "week"'),
     ["rate[0].per: 'week' is none of 'second', 'minute', 'hour' or 'day'"]),
    (HEAD + RATE.format("NBM", "rate = 1"), ["rate[0]: NBM needs an instance, the value of Queue that it is for"]),
    (HEAD + RATE.format("VBR", 'rate = 1\ninstance = "x"'), ["rate[0]: VBR has no instance"]),
    (HEAD + RATE.format("VBU", 'rate = 1\nper = "hour"'), ["rate[0]: VBU has no per: it does not go by time"]),
    (HEAD + RATE.format("NBR", 'rate = 1\ninstance = "x"\nunits = "GB"'), ["rate[0]: NBR has no units"]),
    (HEAD + RATE.format("VBU", 'rate = 1\nbenchmark = "HS23"'), ["rate[0]: VBU has no benchmark"]),
    (HEAD + RATE.format("VBR", 'rate = 1\nbenchmark = "HS23"'), ["rate[0].benchmark: no table benchmark.HS23"]),
    (HEAD + RATE.format("VBR", "rate = 1") * 2, ["rate[1] is for the same as rate[0]: VBR Queue"]),
    (HEAD + '[billing]\nweights = { CPUS = 1 }\n',
     ["billing: 'CPUS' is none of CPU, Mem, Node, Energy, gres/NAME, license/NAME"]),
    (HEAD + '[billing]\nweights = { Mem = "1X" }\n', ['billing.weights.Mem: a weight, as 1.0 or "0.25G"']),
    (HEAD + '[benchmark.HS23]\nmachine = { colony = 0 }\n',
     ["benchmark.HS23.machine.colony: has to be greater than 0"]),
    (HEAD + '[quote.q]\nexpires = 2026-01-01T00:00:00\nrate = []\n',
     ["quote.q: expires needs an offset from UTC, as 2026-12-31T00:00:00Z"]),
    (HEAD + 'timezone = "UTC"\n[[time_category]]\nname = "Night"\n'
     '[[rate]]\ntype = "NBM"\nname = "TimeCategory"\ninstance = "Nite"\nrate = 1\n',
     ["rate[0].instance: no time_category 'Nite'"]),
])
def test_mistakes(text: str, problems: list[str]) -> None:
    with pytest.raises(RatesError) as caught:
        read_rates(text, "rates.toml")
    assert list(caught.value.problems) == problems
    assert str(caught.value) == "; ".join(f"rates.toml: {p}" for p in problems)


def test_all_mistakes_at_once() -> None:
    with pytest.raises(RatesError) as caught:
        read_rates("precision = -1\n" + RATE.format("VBR", 'rate = "x"\nper = 1'))
    assert [p.partition(":")[0] for p in caught.value.problems] == [
        "name", "version", "precision", "rate[0].rate", "rate[0].per"]


@pytest.mark.parametrize("data", [b"\xff\xfe", b"name = \"\xff\"", b"a = " + b"[" * 5000,
                                  b"a = " + b"9" * 5000])
def test_no_rates_at_all(data: bytes) -> None:
    with pytest.raises(RatesError):
        read_rates(data)
