"""A few documents, and commands run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from sssjob.cli import main
from tests.forks import fork_keepers, fork_queries


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]

JOB = """<Job>
  <Id>demo.1</Id>
  <Name>hello</Name>
  <Executable>/bin/echo</Executable>
  <Arguments>hello</Arguments>
  <OutputFile>hello.out</OutputFile>
  <Environment>
    <Variable name="API_TOKEN">t0p</Variable>
  </Environment>
  <Requested>
    <Processors op="GE">1</Processors>
    <Memory op="GE" units="MB">64</Memory>
  </Requested>
</Job>
"""
GROUP = """<JobGroup>
  <Id>g</Id>
  <JobDefaults><Project>red</Project></JobDefaults>
  <Job><Id>a</Id><Executable>/bin/true</Executable></Job>
  <Job><Id>../b</Id><Executable>/bin/true</Executable></Job>
</JobGroup>
"""
OFFER = "<Delivered><Processors>2</Processors><Memory units=\"GB\">1</Memory></Delivered>\n"
UNKNOWN = "<Job>\n  <Id>x</Id>\n  <Colour>red</Colour>\n</Job>\n"


@pytest.fixture
def sssjob(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line; gives (code, out, err). The processes that evaluate queries and look after jobs are forked,
    not started."""
    fork_queries(monkeypatch)
    fork_keepers(monkeypatch)

    def call(*arguments: object) -> Answer:
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the documents in it, the current one."""
    documents = {"job": JOB, "group": GROUP, "offer": OFFER, "unknown": UNKNOWN, "broken": "<Job><Id>1</Id>\n"}
    for name, text in documents.items():
        (tmp_path / f"{name}.xml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path
