"""Where files belong for a user without a home directory, or with one that cannot be looked into."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from psij import JobExecutorConfig
from psij.executors.batch._config import BatchSchedulerExecutorConfig
from sssjob.errors import AccessError
from sssjob.places import configuration_files, state_folder

#: A program of a user whose number has no name, as containers give.
_PROGRAM = """
import os, pwd
def nobody(number): raise KeyError(number)
pwd.getpwuid = nobody
from psij import Job, JobExecutor, JobExecutorConfig, JobSpec, SubmitException
executor = JobExecutor.get_instance("local")
job = Job(JobSpec("/bin/sh", ["-c", "exit 3"]))
executor.submit(job)
print(job.wait(60).exit_code)
for folder in (None, "~/work", os.path.abspath("here")):
    config = JobExecutorConfig(work_directory=folder)
    try:
        job = Job(JobSpec("/bin/sh", ["-c", "exit 4"], launcher="multiple"))
        JobExecutor.get_instance("local", config=config).submit(job)
        print(job.wait(60).exit_code)
    except SubmitException as e:
        print(e)
"""


def _without_home(monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)

    def nobody(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pwd.getpwuid", nobody)


@pytest.mark.parametrize("home", [None, ""])
def test_no_home_directory(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_home(monkeypatch, home)
    system = [(Path("/etc/xdg/psij/config.toml"), False)]
    assert configuration_files("psij", "PSIJ_CONFIG", {}) == system
    assert configuration_files("psij", "PSIJ_CONFIG", {"PSIJ_CONFIG": "mine"}) == [*system, (Path("mine"), True)]
    with pytest.raises(AccessError, match=r"no home directory; set HOME, XDG_STATE_HOME or SSSJOB_JOURNAL$"):
        state_folder("sssjob", "SSSJOB_JOURNAL")


def test_a_home_directory_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.delenv(name, raising=False)
    system = [(Path("/etc/xdg/sssjob/config.toml"), False)]
    own = [(tmp_path / ".config" / "sssjob" / "config.toml", False)]
    assert configuration_files("sssjob", "SSSJOB_CONFIG", {}) == system + own
    monkeypatch.setattr(Path, "stat", refuse)
    assert configuration_files("sssjob", "SSSJOB_CONFIG", {}) == system


def test_jobs_of_a_user_without_a_name(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items()
           if name != "HOME" and not name.startswith(("XDG_", "PSIJ_"))}
    ran = subprocess.run([sys.executable, "-W", "error", "-c", _PROGRAM], cwd=tmp_path, env=env, capture_output=True,
                         text=True, timeout=60)
    refused = "there is no home directory for the files of psij: set PSIJ_WORK_DIRECTORY, or HOME\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"3\n{refused}{refused}4\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.parametrize("stated", [None, "~/mine", "elsewhere"])
def test_a_work_directory_below_home(stated: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs write ``~/`` where they state it, which was a folder of that name."""
    monkeypatch.setenv("HOME", str(tmp_path))
    here = {None: JobExecutorConfig.DEFAULT_WORK_DIRECTORY, "~/mine": tmp_path / "mine"}
    config = JobExecutorConfig(work_directory=stated)
    assert config.work_directory == here.get(stated, Path("elsewhere"))
    behind_ssh = BatchSchedulerExecutorConfig(work_directory=stated, ssh_host="there")
    assert behind_ssh.work_directory == Path(stated or "~/.psij/work")
