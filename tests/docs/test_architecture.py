"""``docs/architecture.md`` shows the rooms as the contract of imports has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
ROWS = re.findall(r"^\| (\w+) \| ([\w, -]+) \| .+ \|$", PAGE, re.MULTILINE)


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
