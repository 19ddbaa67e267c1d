"""``sssjob journal``: what has ended is written as documents, and taken out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.run.support import after, desk_on, group, shell


def test_the_facts_of_what_has_ended_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Path,
                                                  sssjob: Command) -> None:
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(group(shell("exit 3"), shell("true", after("a"), name="b")))
        desk.wait("g")
        desk.left()
        desk.client().journal.close()
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    code, out, err = sssjob("journal", "export")
    assert (code, err) == (0, "")
    assert out.startswith("<JobGroup>\n  <Id>journal</Id>\n<Job>") and out.endswith("</Job>\n</JobGroup>\n")
    (tmp_path / "out.xml").write_text(out)
    assert sssjob("check", tmp_path / "out.xml") == (0, "", "")       # what it writes it also takes
    assert ">a<" in sssjob("query", "//Job[ExitCode=3]/Id/text()", tmp_path / "out.xml").out
    # what never began has an end all the same, which tells it from others of its Id
    assert sssjob("query", "count(//Job[Id='b' and not(StartTime)]/EndTime)", tmp_path / "out.xml").out.count(">1<")
    lines = [json.loads(line) for line in sssjob("journal", "export", "--to", "sss-json").out.splitlines()]
    assert len(lines) == 2
    records = [json.loads(line) for line in sssjob("journal", "export", "--to", "records").out.splitlines()]
    assert [(one["id"], one["outcome"]) for one in records] == [("a", "failed"), ("b", "skipped")]
    # a JobGroup without jobs was written, which check, convert and charge refuse (SSS305)
    assert sssjob("journal", "export", "--before", "1d", "-o", "none.xml") == (
        5, "", "sssjob: no job has ended then: there is nothing of which a JobGroup could be made\n")
    assert not Path("none.xml").exists()
    assert sssjob("journal", "prune", "--dry-run").out == "would go: 1 submission of 2 jobs\n"
    assert json.loads(sssjob("journal", "prune", "--json").out)["jobs"] == 2
    assert sssjob("list", "--all").out == ""


def test_a_group_of_which_one_job_ran_again_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: Path,
                                                     sssjob: Command) -> None:
    """Its Id meant the second run alone: `wait` and `cancel` left the others out. It is run again as a whole."""
    with desk_on("local", tmp_path, monkeypatch) as desk:
        desk.submit(group(shell("[ -e go ]"), shell("true", after("a", "OnExit"), name="b")))
        desk.wait("g")
        (desk.folder / "go").touch()
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    assert [sssjob(*words.split()).out for words in ("rerun a", "wait g", "rerun g", "wait g --json")][:3] == [
        "a\n", "", "a\nb\n"]
    assert [json.loads(line)["key"] for line in sssjob("wait", "g", "--json").out.splitlines()] == ["@3.1", "@3.2"]


def test_the_facts_of_scripts_are_exported_without_the_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                               journal: Path, sssjob: Command) -> None:
    """Records of what has ended need no file: ``check``, and with it every converter, takes them."""
    monkeypatch.chdir(tmp_path)
    Path("a.sh").write_text("#!/bin/sh\n#PBS -N a\nexit 3\n")
    assert sssjob("run", "-f", "pbspro", "a.sh", "-q").code == 3
    exported, whole = sssjob("journal", "export", "-o", "out.xml"), sssjob("status", "@1").out
    assert exported == (0, "", "sssjob: @1: 1 files that came with the document are not written\n")
    assert sssjob("check", "out.xml") == (0, "", "out.xml:6:3: SSS311 warning Executable names the File 'Script', "
                                          "which does not come with the document\n")
    assert sssjob("convert", "-t", "ur2", "out.xml", "-q").out.count("<ExitStatus>3<") == 1
    Path("again.xml").write_text(whole.split("<File")[0] + "</Request>")
    assert "SSS311 error there is no File" in sssjob("run", "again.xml").err       # who runs it needs the file
