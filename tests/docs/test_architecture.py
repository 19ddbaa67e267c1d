"""``docs/architecture.md`` shows the rooms as the contract of imports has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sssjob

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| (\w+) \| ([\w, -]+) \| .+ \|$", PAGE, re.MULTILINE)


def test_the_value_on_its_way_is_what_the_page_says() -> None:
    """The page had ``ncpus`` and ``mpiprocs`` in the option, of which its script says nothing."""
    directives = re.findall(r"`(?:#SBATCH )?(--[\w-]+=\w+)`", PAGE.partition("## One value on its way")[2])[:2]
    script = "#!/bin/sh\n" + "".join(f"#SBATCH {directive}\n" for directive in directives) + "true\n"
    options = re.findall(r"^#PBS -l (select=\S+)$", sssjob.convert(script, "pbspro", policy="Warn").text, re.MULTILINE)
    assert directives == ["--nodes=2", "--mem=4G"] and set(options) == set(re.findall(r"`(select=[^`]+)`", PAGE))
    assert 'metric="PerNode"' in PAGE and 'metric="PerNode">4<' in sssjob.convert(script, "sss").text


def test_the_table_is_the_contract() -> None:
    rooms = pytest.importorskip("tests.test_rooms", reason="the contract of imports is not in this checkout")
    assert {room: set(re.findall(r"\w+", others)) for room, others in ROWS if room != "room"} == rooms.MAY_IMPORT


def test_each_room_has_its_paragraph() -> None:
    rooms = {room for room, _ in ROWS} - {"room", "ground", "schemas", "checks"}
    assert {room for room in rooms if f"**`{room}`**" not in PAGE} == set()


def test_the_picture_shows_each_room() -> None:
    (picture,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    missing = {room for room, _ in ROWS if not re.search(rf"\b{room}\b", picture)}
    assert missing == {"room", "ground", "schemas"}
