"""TOML that is none, or that its parser would take for ever: each is one line of one exception."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sssjob.accounting.capacity import read_capacity
from sssjob.accounting.privacy import PrivacyError, read_privacy
from sssjob.accounting.rates import RatesError, read_rates
from sssjob.conversion.site import SiteError, read_site
from sssjob.errors import SSSJobError
from sssjob.limits import LIMITS
from sssjob.serve.access import read_users
from sssjob.xml._toml import TOMLError, read_toml

#: text -> how the message begins.
BAD = {
    "x = ": "not TOML: Invalid value",
    "x = 1\nx = 2": "not TOML: Cannot overwrite a value",
    "x = " + "9" * 5000: "a whole number has more than 4300 digits",
    "x = 0x" + "f" * 5_000 + "g": "not TOML: ",
    "x = 2026-13-01": "not TOML: ",
    "x = " + "[" * 5000: "nested too deep",
    "x = " + "{a = " * 5000: "nested too deep",
    ".".join("a" * 101) + " = 1": "nested deeper than depth = 100",
    "[" + " . ".join(['"a"'] * 50_000) + "]": "nested deeper than depth = 100",
    "x = {" + ".".join("a" * 400_000) + " = 1}": "nested deeper than depth = 100",
    "# " * (LIMITS.toml_bytes // 2 + 1): "longer than toml_bytes = 1048576 bytes",
}


@pytest.mark.parametrize("text", BAD, ids=[m[:30] for m in BAD.values()])
def test_what_is_refused(text: str) -> None:
    with pytest.raises(TOMLError) as caught:
        read_toml(text)
    assert str(caught.value).startswith(BAD[text])


@pytest.mark.parametrize("text", BAD, ids=[m[:30] for m in BAD.values()])
def test_every_reader_of_a_profile_refuses_the_same(text: str) -> None:
    with pytest.raises(SiteError) as site:
        read_site(text, "p")
    with pytest.raises(RatesError) as rates:
        read_rates(text, "p")
    with pytest.raises(PrivacyError) as privacy:
        read_privacy(text.encode(), "p")
    assert str(site.value) == str(rates.value) == str(privacy.value) and str(site.value).startswith(f"p: {BAD[text]}")


#: Values that are hardly those of any key.
ODD = ("[]", "{}", "{a = 1}", "[{a = 1}]", "[[1]]", "true", "-1", "1.5", "nan", "1e308", "9e18", '""', "'a'", "'  '",
       f"'{'x' * 400}'", "2026-02-28", "07:32:00", "9999-12-31T23:59:59-23:59")
#: A key of each reader in a text that is right without it.
KEYS: list[tuple[Callable[[str], Any], str]] = [
    *((partial(read_site, path="p"), f'name = "a"\n{key}') for key in (
        "cores_per_node = {}", "machine = {}", "map = {}", "map.Queue = {}", "queues.a.duration = {}", "lsf = {}",
        "lsf.suffixes = {}", "sge.pe = {}", "sge.pe.a = {}", "slurm.plugin_options = {}", "ssh.host = {}", "run = {}")),
    *((partial(read_rates, path="p"), f'name = "a"\nversion = "1"\n{key}') for key in (
        "precision = {}", "minimum = {}", "rate = {}", "rate = [{{type = {}}}]", "time_category = [{{from = {}}}]",
        "billing.weights = {}", "price_list = [{{valid_from = {}}}]", "quote.a.expires = {}", "benchmark.a = {}")),
    *((lambda text: read_privacy(text.encode(), "p"), key) for key in (
        "least = {}", "key_file = {}", "properties = {}", "properties.User = {}", "others = {}")),
    *((lambda text: read_capacity(text, "p", UTC), key) for key in (
        "capacity = {}", "capacity = [{{from = {}, processors = 1}}]",
        "capacity = [{{from = 2026-01-01, gpus = {}}}]")),
    *((lambda text: read_users(text.encode(), "p"), key) for key in (
        "users = {}", "users.a = {}", "users.a.token = {}", "users.a.may = {}", "users.a.may = [{}]")),
]
PYTHON = re.compile(r"Input|should|required|instance|dictionary|Extra|permitted|Decimal|integer|datetime|_|Error")


@pytest.mark.parametrize(("reader", "key"), KEYS, ids=[key.replace("\n", " ") for _, key in KEYS])
def test_wrong_values_are_told_in_words_of_toml(reader: Callable[[str], Any], key: str) -> None:
    """Not in those of the library that looks at them."""
    refused = 0
    for value in ODD:
        try:
            reader(key.format(value))
        except (SSSJobError, ValueError) as error:
            message = str(error)
            assert message.startswith("p: "), message
            assert not PYTHON.search(re.sub(r"'[^']*'|[a-z]+(?:_[a-z]+)+", "", message)), message
            refused += 1
    assert refused


def test_what_is_taken() -> None:
    """Also what only looks like a key of many parts at first sight, and names that hold points."""
    assert read_toml(b'x = 1.5\n"a.b".c = 2', parse_float=Decimal) == {"x": Decimal("1.5"), "a.b": {"c": 2}}
    assert read_toml(".".join("a" * 100) + " = 1")["a"]["a"]
    assert read_toml('x = "' + "." * 1000 + '" # ' + ". . " * 1000) == {"x": "." * 1000}
    with pytest.raises(TOMLError, match="not UTF-8"):
        read_toml(b"x = '\xff'")


def test_nobody_else_reads_toml() -> None:
    """One reader, so that what was learnt of one text holds for all; but for psij, which imports nothing of the rooms
    of documents and reads only the configuration of its own user."""
    root = Path(__file__).parents[2]
    others = [str(path.relative_to(root)) for room in ("sssjob", "translators", "psij", "schemas")
              for path in sorted((root / room).rglob("*.py"))
              if not any(part.is_symlink() for part in path.parents)
              and re.search(r"^\s*(?:import|from) toml(?:lib|i)\b", path.read_text(), re.MULTILINE)]
    assert others == ["sssjob/xml/_toml.py", "psij/_site.py"]
