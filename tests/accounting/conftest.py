"""Commands of accounting where documents, logs and rates are that they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from sssjob.cli import main

RATES = """name = "site"
version = "7"
currency = "EUR"
[[rate]]
type = "VBR"
name = "Processors"
rate = 0.012
per = "hour"
"""
JOBS = """<JobGroup>
  <Id>g</Id>
  <JobDefaults><Queue>q</Queue></JobDefaults>
  <Job><Id>a</Id><State>Completed</State><Delivered><Processors>16</Processors><Duration>3600</Duration></Delivered></Job>
  <Job><Id>b</Id><State>Running</State><Delivered><Processors>1</Processors></Delivered></Job>
  <Job><Id>c</Id><State>Completed</State><Delivered><Processors>8</Processors><Duration>7200</Duration></Delivered></Job>
</JobGroup>
"""
LEDGER_RATES = RATES.replace("0.012", "0.5")
JOB = """<Job>
  <Id>1.head</Id>
  <Project>chem</Project>
  <Machine>colony</Machine>
  <State>Completed</State>
  <StartTime>1000</StartTime>
  <Delivered>
    <Processors>2</Processors>
    <Duration>3600</Duration>
  </Delivered>
</Job>
"""
WAITING = JOB.replace("Completed", "Idle").replace("  <StartTime>1000</StartTime>\n", "").replace("Deliver", "Request")
PBS = ("11/21/2026 10:00:00;S;{0}.head;user=a account=\"chem\" ctime=1 start=5 exec_host=n/0\n"
       "11/21/2026 10:00:09;E;{0}.head;user=a account=\"chem\" ctime=1 start=5 end=3605 exec_host=n/0 Exit_status=0\n")
KEY = "a key of sixteen bytes or more"


class Answer(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Command = Callable[..., Answer]


@pytest.fixture
def sssjob(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line where jobs.xml and rates.toml are; gives (code, out, err)."""
    (tmp_path / "rates.toml").write_text(RATES)
    (tmp_path / "jobs.xml").write_text(JOBS)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Answer:
        code = main(list(arguments))
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def ledger(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run ``sssjob ledger ...`` where job.xml, waiting.xml, rates.toml and log are, on a ledger of its own."""
    for name, text in (("job.xml", JOB), ("waiting.xml", WAITING), ("rates.toml", LEDGER_RATES), ("log", PBS.format(8)),
                       ("other.xml", WAITING.replace("Project", "User"))):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSSJOB_LEDGER", str(tmp_path / "ledger.db"))

    def call(line: str, *more: str) -> Answer:
        code = main(["ledger", *line.split(), *more])
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def account(capsys: pytest.CaptureFixture[str], tmp_path: Path,
            monkeypatch: pytest.MonkeyPatch) -> Command:
    line = ("11/21/2026 10:00:09;E;{0}.head;user=u{0} account=\"p{1}\" ctime=1795000000 start=1795000000 "
            "end=1795003600 exec_host=n/0*2 Exit_status={2} resources_used.cput=00:30:00\n")
    (tmp_path / "log").write_text("".join(line.format(n, n % 2, n % 3) for n in range(6)))
    (tmp_path / "rates.toml").write_text('name = "s"\nversion = "1"\ncurrency = "EUR"\n[[rate]]\ntype = "VBR"\n'
                                         'name = "Processors"\nrate = 1\nper = "hour"\n')
    (tmp_path / "privacy.toml").write_text('least = 4\n[properties]\nUser = "pseudonym"\n')
    monkeypatch.setenv("SSSJOB_PRIVACY_KEY", KEY)
    monkeypatch.chdir(tmp_path)

    def call(line: str) -> Answer:
        return Answer(main(["account", *line.split()]), *capsys.readouterr())

    return call
