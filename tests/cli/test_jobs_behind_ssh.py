"""Jobs on sites behind SSH: two Slurms whose jobs have the same ids, and a Grid Engine, by a stand-in for ``ssh``."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from psij.executors.batch import _ssh
from psij.executors.batch._ssh_staging import SSHStaging
from tests.cli.conftest import Command
from tests.fakes import lab, sge, slurm, ssh

FAKES = {"alpha": slurm, "beta": slurm, "gamma": sge}
OFFER = "<Job><Id>{0}</Id><Queue>{0}</Queue><NodeCount>4</NodeCount><Processors>4</Processors></Job>"
PROFILE = """name = '{0}'
manager = '{1}'
[ssh]
host = 'amy@{0}'
setup = 'WHERE={0}; export WHERE'
directory = '~/runs'
[run]
polling_interval = 0.2
lost_after = 2
accounting_delay = 1
"""


@dataclass
class Sites:
    """The sites. folder: of the hosts; labs: their managers."""

    folder: Path
    labs: dict[str, lab.Lab]

    def trouble(self, site: str, lines: str | None) -> None:
        """Have a line behave so; None: as it should."""
        path = self.folder / site / "trouble"
        path.unlink() if lines is None else path.write_text(lines)

    def text(self, site: str, name: str) -> str:
        return (self.folder / site / "home" / "runs" / name).read_text()

    def left(self, site: str) -> list[str]:
        """What is left of jobs at a site."""
        work = self.folder / site / "home" / ".psij" / "work"
        return sorted(path.name for path in work.glob("s*/*") if path.suffix != ".script")


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'ssh'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("psij.executors.batch._ssh._hosts", {})
    ssh.install(tmp_path / "hosts", tmp_path / "ssh")
    labs = {}
    for name, fake in FAKES.items():
        host = ssh.add_host(tmp_path / "hosts", name)
        (host / "home" / "runs").mkdir()
        labs[name] = lab.install(str(fake.__file__), fake.COMMANDS, host / "lab", host / "bin")
        Path(f"{name}.toml").write_text(PROFILE.format(name, fake.__name__.rpartition(".")[2]))
        Path(f"{name}.xml").write_text(OFFER.format("all.q" if fake is sge else "batch"))
    Path("job.sh").write_text("#!/bin/sh\n#SBATCH -o out.txt\necho $WHERE; pwd; exit 3\n")
    yield Sites(tmp_path / "hosts", labs)
    for one in labs.values():
        one.close()


def listed(sssjob: Command) -> list[tuple[object, ...]]:
    records = [json.loads(line) for line in sssjob("list", "--all", "--json").out.splitlines()]
    return [(one.get("site"), one["native_id"], one["outcome"]) for one in records]


@pytest.mark.parametrize("site", ["alpha", "gamma"])
def test_run(sssjob: Command, sites: Sites, site: str) -> None:
    """Scripts of the document go there; paths are those of the site; nothing is made here."""
    before = sorted(os.listdir())
    shown = sssjob("run", "-q", "job.sh", "--site", f"{site}.toml", "--dry-run")
    home = sites.folder / site / "home"
    assert (shown.code, f"cd -- {home}/runs" in shown.out, f"{home}/runs/out.txt" in shown.out) == (0, True, True)
    answer = sssjob("run", "-q", "job.sh", "--site", f"{site}.toml")
    assert answer.code == 3, answer.err
    assert sites.text(site, "out.txt") == f"{site}\n{home}/runs\n"
    assert "<ExitCode>3</ExitCode>" in answer.out and sorted(os.listdir()) == before
    assert listed(sssjob) == [(site, "1", "failed")]
    assert sssjob("wait", "@1").code == 3


def test_attach(sssjob: Command, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that was submitted there by hand, or from another journal; the other Slurm has one of the same id, its own
    name and the name of its host. Neither has ended when the other one is taken."""
    for name in ("alpha", "beta"):
        Path("job.sh").write_text(f"#!/bin/sh\n#SBATCH -o out.txt\nwhile [ ! -f ../../../go ]; do sleep 0.05; done\n"
                                  f"exit {len(name)}\n")
        assert sssjob("submit", "-q", "job.sh", "--site", f"{name}.toml").code == 0
    monkeypatch.setenv("SSSJOB_JOURNAL", str(sites.folder / "other.db"))
    for name, key in (("beta", "1"), ("alpha", "@2.1"), ("beta", "@1.1")):
        assert sssjob("attach", "1", "--site", f"{name}.toml")[:2] == (0, f"{key}\n")
    (sites.folder / "go").touch()
    assert [sssjob("wait", key, "--timeout", "30").code for key in ("@1", "@2")] == [4, 5]
    assert listed(sssjob) == [("beta", "1", "failed"), ("alpha", "1", "failed")]


def test_run_again(sssjob: Command, sites: Sites) -> None:
    """A job that has ended runs again where it was, by the settings of that time, which outlive the profile."""
    assert sssjob("submit", "-q", "job.sh", "--site", "alpha.toml").code == 0
    assert sssjob("wait", "@1", "--timeout", "30").code == 3
    Path("alpha.toml").unlink()
    assert sssjob("rerun", "@1").code == 0
    assert sssjob("wait", "@2", "--timeout", "30").code == 3
    assert listed(sssjob) == [("alpha", "1", "failed"), ("alpha", "2", "failed")]
    assert len(sites.labs["alpha"].jobs()) == 2
    assert '<Extension type="LRM" name="Site">alpha</Extension>' in sssjob("status", "@2").out


def test_accounting_is_asked_where_the_job_was(sssjob: Command, sites: Sites) -> None:
    """Also after the end of all that was submitted with it."""
    assert sssjob("submit", "-q", "job.sh", "--site", "alpha.toml").code == 0
    assert sssjob("wait", "@1", "--timeout", "30").code == 3
    before = len(sites.labs["alpha"].calls("sacct"))
    assert sssjob("status", "@1", "--refresh").code == 0
    assert len(sites.labs["alpha"].calls("sacct")) > before


def test_settings_in_the_folder_of_a_submission(sssjob: Command, sites: Sites, tmp_path: Path) -> None:
    """The journal of version 7 had them there: its jobs are followed where they are."""
    Path("long.sh").write_text("#!/bin/sh\n#SBATCH -n 1\nsleep 600\n")
    assert sssjob("submit", "-q", "long.sh", "--site", "alpha.toml").code == 0
    with sqlite3.connect(tmp_path / "journal.db") as connection:
        ((token, settings),) = connection.execute("SELECT token, settings FROM submissions").fetchall()
        connection.execute("UPDATE submissions SET settings = NULL")
    connection.close()
    (tmp_path / "journal.db.d" / token / "settings.json").write_text(settings)
    assert sssjob("cancel", "@1", "--timeout", "30").code == 0
    assert listed(sssjob) == [("alpha", "1", "canceled")]


def test_sites_with_the_same_ids_are_kept_apart(sssjob: Command, sites: Sites) -> None:
    """The profiles are not named again: each submission knows where it is."""
    Path("long.sh").write_text("#!/bin/sh\n#SBATCH -n 1\nsleep 600\n")
    for site in ("alpha", "beta"):
        assert sssjob("submit", "-q", "long.sh", "--site", f"{site}.toml").code == 0
    assert listed(sssjob) == [("alpha", "1", None), ("beta", "1", None)]
    assert sssjob("cancel", "@2", "--timeout", "30").code == 0
    assert listed(sssjob) == [("alpha", "1", None), ("beta", "1", "canceled")]
    assert sites.labs["alpha"].calls("scancel") == []
    assert sssjob("cancel", "@1", "--timeout", "30").code == 0
    assert listed(sssjob)[0] == ("alpha", "1", "canceled")


STAGING = """<Job><Id>staged</Id><Executable>/bin/sh</Executable>
<Arguments>-c 'cat data/in; while [ ! -f go ]; do sleep 0.1; done; echo more >> data/in'</Arguments>
<OutputFile>out.txt</OutputFile><InitialWorkingDirectory>job</InitialWorkingDirectory>
<Requested><Processors>1</Processors></Requested>
<Extension type="PSIJ" name="StageIn">{"source": "input", "target": "data"}</Extension>
<Extension type="PSIJ" name="StageOut">{"source": "out.txt", "target": "results/out"}</Extension>
<Extension type="PSIJ" name="StageOut">{"source": "data", "target": "results/data", "mode": "MOVE"}</Extension>
<Extension type="PSIJ" name="Cleanup">out.txt</Extension></Job>"""


def test_staged_files(sssjob: Command, sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are brought from here and fetched by whichever client learns of the end, when the line is there again."""
    monkeypatch.setattr("sssjob.run.staging._AWAY_S", 0.2)
    Path("input").mkdir()
    Path("input/in").write_text("input\n")
    Path("job.xml").write_text(STAGING)
    there = sites.folder / "alpha" / "home" / "runs" / "job"
    there.mkdir()
    assert sssjob("submit", "-q", "job.xml", "--site", "alpha.toml").code == 0
    assert (there / "data" / "in").read_text() == "input\n"
    fetch, lost = SSHStaging._fetch_one, []

    def late(staged: SSHStaging, *args: Any) -> None:
        lost.append(args)
        sites.trouble("alpha", "exit 255\n" if len(lost) == 1 else "")
        fetch(staged, *args)

    monkeypatch.setattr(SSHStaging, "_fetch_one", late)
    (there / "go").touch()
    _ssh._hosts.clear()
    assert sssjob("wait", "staged", "--timeout", "60").code == 0
    assert len(lost) == 3 and "files: stage_out: cannot " in sssjob("log", "staged").out
    assert (Path("results/out").read_text(), Path("results/data/in").read_text()) == ("input\n", "input\nmore\n")
    assert sorted(os.listdir(there)) == ["go", "job-staged.err"] and listed(sssjob) == [("alpha", "1", "done")]


def test_a_line_that_is_lost_while_files_are_brought(sssjob: Command, sites: Sites, monkeypatch: pytest.MonkeyPatch
                                                     ) -> None:
    """They are brought when it is there again, by whichever client, and the job is submitted once."""
    Path("input").mkdir()
    Path("input/in").write_text("input\n")
    Path("job.xml").write_text(STAGING.replace("while [ ! -f go ]; do sleep 0.1; done; ", ""))
    (sites.folder / "alpha" / "home" / "runs" / "job").mkdir()
    bring, tries = SSHStaging._bring_one, []

    def late(staged: SSHStaging, *args: Any) -> None:
        tries.append(args)
        sites.trouble("alpha", "exit 255\n" if len(tries) == 1 else "")
        bring(staged, *args)

    monkeypatch.setattr(SSHStaging, "_bring_one", late)
    monkeypatch.setattr(_ssh, "_AGAIN_S", 0.2)
    Path("alpha.toml").write_text(Path("alpha.toml").read_text().replace("lost_after = 2", "lost_after = 0.2"))
    submitted = sssjob("submit", "-q", "job.xml", "--site", "alpha.toml")
    assert submitted.code in (0, 7), submitted
    sites.trouble("alpha", "")
    assert sssjob("wait", "staged", "--timeout", "60").code == 0
    assert len(tries) == 2 and Path("results/data/in").read_text() == "input\nmore\n"
    assert len(sites.labs["alpha"].calls("sbatch")) == 1


def test_a_line_that_is_lost(sssjob: Command, sites: Sites) -> None:
    """Its jobs are shown as they were last, and that nothing is heard; their ends are learnt when it is there again."""
    Path("short.sh").write_text("#!/bin/sh\n#SBATCH -n 1\nwhile [ ! -f go ]; do sleep 0.1; done; exit 4\n")
    assert sssjob("submit", "-q", "short.sh", "--site", "alpha.toml").code == 0
    until = time.monotonic() + 30
    while json.loads(sssjob("list", "--all", "--json").out)["state"] != "Running":
        assert time.monotonic() < until
    sites.trouble("alpha", "echo 'ssh: connect to host alpha: Connection timed out' >&2; exit 255\n")
    (sites.folder / "alpha" / "home" / "runs" / "go").touch()
    answer = sssjob("status", "@1", "--timeout", "4")
    assert answer.code == 4 and "running" in answer.out.lower(), answer
    assert "does not answer" in answer.err and "this is what was known before" in answer.err
    _ssh._hosts.clear()         # as in another process, which knows nothing of the host
    assert sssjob("status", "@1", "--timeout", "4").code == 4
    refused = sssjob("submit", "-q", "short.sh", "--site", "alpha.toml")
    assert refused.code == 3 and "amy@alpha: cannot be reached: " in refused.err
    assert "Connection timed out" in refused.err and len(listed(sssjob)) == 1
    sites.trouble("alpha", None)
    assert sssjob("wait", "@1", "--timeout", "30").code == 4
    assert listed(sssjob) == [("alpha", "1", "failed")] and len(sites.labs["alpha"].jobs()) <= 1


@pytest.mark.parametrize("other", ["beta", "gamma"])
def test_routed_to_the_next_where_a_host_is_away(sssjob: Command, sites: Sites, other: str) -> None:
    """Also where both have the same manager: each place has its own settings."""
    sites.trouble("alpha", "exit 255\n")
    answer = sssjob("submit", "job.sh", "--offers", "alpha.toml=alpha.xml", "--offers", f"{other}.toml={other}.xml")
    assert answer.code == 0 and "alpha, batch: not submitted: amy@alpha: cannot be reached: " in answer.err, answer.err
    assert sssjob("wait", "@1", "--timeout", "30").code == 3
    assert listed(sssjob) == [(other, "1", "failed")] and sites.text(other, "out.txt").startswith(f"{other}\n")
    sites.trouble("alpha", None)
    assert sites.labs["alpha"].calls("sbatch") == []


def test_what_cannot_be(sssjob: Command, sites: Sites) -> None:
    Path("here.toml").write_text("name = 'here'\nmanager = 'local'\n[ssh]\nhost = 'alpha'\n")
    answer = sssjob("run", "-q", "job.sh", "--site", "here.toml")
    assert (answer.code, "runs jobs on this machine, and not on alpha behind SSH" in answer.err) == (2, True)
    Path("wrong.toml").write_text("name = 'x'\n[ssh]\nhost = 'a'\ndirectory = 'runs'\nport = 2\n")
    answer = sssjob("run", "-q", "job.sh", "--site", "wrong.toml")
    assert answer.code == 1 and "ssh.directory: a path that begins with / or ~/" in answer.err, answer.err
    assert "ssh.port" in answer.err
