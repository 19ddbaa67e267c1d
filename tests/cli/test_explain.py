"""``sssjob explain`` of documents and scripts: the same as in Python, and a machine form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sssjob as front
from tests.cli.conftest import Command

GROUPS = """<JobGroup><JobDefaults><User>keith</User></JobDefaults><Job><Id>a</Id><State>Idle</State>
<Requested><Duration>43200</Duration></Requested>
<TaskGroup><TaskCount>1</TaskCount><Name>Lead</Name><Executable>lead</Executable><Memory>2048</Memory>
<Resource name="License" type="ESSL2">1</Resource><Feature>Jumbo</Feature></TaskGroup>
<TaskGroup><Name>Crew</Name><Executable>crew</Executable><NodeCount>4</NodeCount><Requested>
<Processors group="-1">12</Processors><Processors conj="Or" group="1">16</Processors><Memory>512</Memory>
<Node aggregation="Pattern">fr15n.*</Node></Requested></TaskGroup></Job></JobGroup>"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_prints_the_same_and_a_machine_form(sssjob: Command, desk: Path) -> None:
    Path("a.xml").write_text(GROUPS)
    assert sssjob("explain", "-q", "a.xml").out == front.explain("a.xml")
    record = json.loads(sssjob("explain", "-q", "--json", "a.xml").out)
    assert [(level["level"], level.get("group")) for level in record["levels"]] == [
        ("Job", None), ("TaskGroup", 1), ("TaskGroup", 2)]
    assert record["levels"][2]["asks"]["parts"][:2] == [
        {"kind": "any", "text": "one of", "parts": [
            {"kind": "condition", "text": "Processors 12", "property": "Processors", "op": "EQ", "value": "12"},
            {"kind": "condition", "text": "Processors 16", "property": "Processors", "op": "EQ", "value": "16"}]},
        {"kind": "condition", "text": "Memory 512 MB", "property": "Memory", "op": "EQ", "value": "512", "units": "MB"}]
    assert record["totals"][1] == {"name": "Memory", "value": "2560", "units": "MB",
                                   "origin": "Memory 2048 + Memory 512", "known": True}
    assert record["possible"] is True


def test_a_script_is_followed_by_what_it_comes_to(sssjob: Command, desk: Path) -> None:
    Path("a.sh").write_text("#!/bin/sh\n#SBATCH -N 2 --ntasks-per-node=4 -c 2\nsrun hostname\n")
    assert sssjob("explain", "-q", "a.sh").out.partition("\n\n")[2] == (
        "in all:\n  Processors 16: 8 tasks of 2 processors\n  tasks 8: 4 on each of 2 nodes\n"
        "  copies of the executable 1: it is a script, which starts what it likes\n")
    record = json.loads(sssjob("explain", "-q", "--json", "a.sh").out)
    assert [total["value"] for total in record["totals"]] == ["16", "8", "1"]
