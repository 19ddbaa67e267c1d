"""Sites behind SSH are asked what they offer and run jobs, through whatever their logins print."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from psij.executors.batch import _ssh
from tests.cli.conftest import Command

FIXTURES = Path(__file__).parents[1] / "fixtures"
MACHINE = FIXTURES / "slurm-22.05.8" / "machine"
#: Stands in for ssh: notes its options, prints what logins print, and runs the command by the shell of its user.
SSH = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
for command; do :; done
echo "Welcome to alpha. NodeName=none State=DOWN"
echo "You have no mail" >&2
{before}
PATH={remote}:/usr/bin:/bin
(eval "$command")
code=$?
{after}
exit $code
"""


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands that are here, which has ssh and no command of a manager."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("psij.executors.batch._ssh._hosts", {})
    folder, remote = tmp_path / "bin", tmp_path / "remote"
    for one in (folder, remote):
        one.mkdir()
    (remote / "scontrol").write_text(f"#!/bin/sh\ncat {shlex.quote(str(MACHINE))}/show-${{3:-$2}}.txt\n")
    (remote / "scontrol").chmod(0o755)
    write(folder)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "alpha.toml").write_text("name = 'alpha'\nmanager = 'slurm'\nmachine = 'a'\n"
                                         "[ssh]\nhost = 'amy@login.example.org'\n")
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH -N 2 -n 8 -t 10\ndate\n")
    return folder


def write(folder: Path, before: str = "", after: str = "") -> None:
    text = SSH.format(log=folder / "log", remote=folder.parent / "remote", before=before, after=after)
    (folder / "ssh").write_text(text)
    (folder / "ssh").chmod(0o755)


def test_offers(sssjob: Command, bin: Path) -> None:
    answer = sssjob("offers", "alpha.toml")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count("<Machine>a</Machine>") == 4 and '<Node aggregation="Range">node[1-3]</Node>' in answer.out
    called = (bin / "log").read_text().splitlines()
    assert len(called) == 3
    assert all(line.startswith("-T -o BatchMode=yes -o ControlMaster=auto -o ControlPath=") for line in called)
    assert all(" -- amy@login.example.org exec /bin/sh -s" in line for line in called)


def test_ranked_beside_others(sssjob: Command, bin: Path) -> None:
    routed = sssjob("route", "-q", "job.sh", "--sites", "alpha.toml").out
    assert routed.startswith("1. alpha, batch: met, preference 1, ")


@pytest.mark.parametrize("setup", [None, "umask 022"])
def test_draft(sssjob: Command, bin: Path, setup: str | None) -> None:
    """A profile is drafted of what the manager there says, with the zone of that host, and reaches it."""
    (bin.parent / "remote" / "readlink").write_text("#!/bin/sh\necho /usr/share/zoneinfo/Asia/Tokyo\n")
    (bin.parent / "remote" / "readlink").chmod(0o755)
    words = ("--ssh-host", "amy@login.example.org", *(("--ssh-setup", f"TZ=; {setup}") if setup else ()))
    write(bin, before="TZ=")
    answer = sssjob("sites", "draft", "slurm", "--name", "new", "-o", "new.toml", *words)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    text = Path("new.toml").read_text()
    assert 'timezone = "Asia/Tokyo"\n' in text
    shown = f'setup = "TZ=; {setup}"\n' if setup else '#setup = ". /etc/profile"              # a line of sh with which'
    assert f'[ssh]\nhost = "amy@login.example.org"\n{shown}' in text
    assert sssjob("offers", "new.toml").code == 0
    assert all(" -- amy@login.example.org exec /bin/sh -s" in line for line in (bin / "log").read_text().splitlines())


@pytest.mark.parametrize(("words", "code", "why"), [
    (("slurm", "--ssh-setup", "true"), 2, "--ssh-setup goes with --ssh-host"),
    (("slurm", "--ssh-host", "-oProxyCommand=x"), 2, "--ssh-host: '-oProxyCommand=x': a host, as login.example"),
    (("slurm", "--ssh-host", ""), 2, "--ssh-host: ''"),
    (("slurm", "--ssh-host", "h", "--ssh-setup", "a\nb"), 2, "--ssh-setup: 'a\\u{000A}b'"),
    (("local", "--ssh-host", "h"), 2, "local runs jobs on this machine, and not on h behind SSH"),
    (("arc", "--ssh-host", "h"), 2, "arc is asked at an address"),
    (("lsf", "--ssh-host", "h"), 4, "lsf: 'bqueues' is not found on h"),
])
def test_what_cannot_be_drafted(sssjob: Command, bin: Path, words: tuple[str, ...], code: int, why: str) -> None:
    answer = sssjob("sites", "draft", *words, "-o", "new.toml")
    assert (answer.code, answer.out, Path("new.toml").exists()) == (code, "", False)
    assert why in answer.err


def test_route_waits_as_long_as_is_said(sssjob: Command, bin: Path) -> None:
    write(bin, before="sleep 30")
    answer = sssjob("route", "job.sh", "--sites", "alpha.toml", "--timeout", "0.5")
    assert answer.code == 4 and "alpha: amy@login.example.org: ssh gave no answer in 0.5 s" in answer.err
    answer = sssjob("route", "job.sh", "--offers", "alpha.toml=x.xml", "--timeout", "0.5")
    assert answer.code == 2 and "--timeout is for managers that are asked: it goes with --sites" in answer.err


def test_check(sssjob: Command, bin: Path) -> None:
    answer = sssjob("sites", "check", "alpha.toml", "--json")
    assert [json.loads(line)["missing"].partition(" ")[0] for line in answer.out.splitlines()] == ["timezone", "rates"]
    write(bin, before="echo 'ssh: connect to host login.example.org port 22: Connection refused' >&2; exit 255")
    assert "alpha: amy@login.example.org: You have no mail; ssh: connect to host login.example.org port 22: " \
           "Connection refused" in sssjob("sites", "check", "alpha.toml").out


@pytest.mark.parametrize(("before", "after", "why"), [
    ("exit 255", "", "You have no mail"),
    ("read -r greeting; eval \"$greeting\"; exit 255", "", "the line was lost: You have no mail"),
    ("PATH=/nowhere; eval \"$command\"; exit 127", "", "scontrol"),
    ("sleep 30", "", "ssh gave no answer in 1 s"),
])
def test_no_answer(sssjob: Command, bin: Path, before: str, after: str, why: str) -> None:
    write(bin, before, after)
    answer = sssjob("offers", "alpha.toml", "--timeout", "1")
    assert (answer.code, answer.out) == (4, "")
    assert why in answer.err
    (bin / "ssh").unlink()
    assert sssjob("offers", "alpha.toml").code == 4


def test_a_connection_is_left_for_others(sssjob: Command, bin: Path) -> None:
    (bin / "ssh").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> {bin / 'log'}\n")
    assert sssjob("sites", "connect", "alpha.toml").code == 0
    assert (bin / "log").read_text().startswith("-f -N -o ControlMaster=auto -o ControlPath=")
    (bin / "ssh").write_text("#!/bin/sh\nexit 255\n")
    answer = sssjob("sites", "connect", "alpha.toml")
    assert (answer.code, answer.err) == (4, "sssjob: amy@login.example.org: ssh ended with 255\n")
    Path("here.toml").write_text("name = 'here'\n")
    assert sssjob("sites", "connect", "here.toml").code == 2


def test_a_folder_that_others_could_enter_is_not_used(sssjob: Command, bin: Path, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    words = _ssh.connecting("h")
    folder = Path(next(word for word in words if word.startswith("ControlPath="))[12:]).parent
    assert (folder.parent, folder.stat().st_mode & 0o777) == (tmp_path, 0o700)
    folder.chmod(0o755)
    answer = sssjob("offers", "alpha.toml")
    assert (answer.code, "others could use the connections in it" in answer.err) == (4, True)
