"""The labs themselves: their scripts refuse what they must, and what runs listens on the loopback alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = ("slurm-up", "slurm-down", "sge-up", "sge-down", "postgres-up", "postgres-down", "ssh-up", "ssh-down", "labs")


def run(*words: str | Path, **environment: str) -> tuple[int, str]:
    """Exit status and the last line on standard error."""
    process = subprocess.run([HERE / words[0], *words[1:]], env={**os.environ, **environment}, capture_output=True,
                             text=True, timeout=120)
    return process.returncode, (process.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("name", SCRIPTS)
def test_usage(name: str) -> None:
    assert run(name)[0] == 2


def test_a_long_path_is_refused(tmp_path: Path) -> None:
    status, output = run("slurm-up", tmp_path / ("x" * 60))
    assert status == 2 and "too long for Unix sockets" in output


@pytest.mark.parametrize("name", ["slurm-up", "sge-up", "postgres-up", "ssh-up", "slurm-down", "sge-down",
                                  "postgres-down", "ssh-down"])
def test_other_peoples_directories_are_left_alone(name: str, short: Path) -> None:
    (short / "mine").touch()
    status, output = run(name, short)
    assert status == 1 and "not a lab" in output
    assert [file.name for file in short.iterdir()] == ["mine"]


def test_directories_that_others_can_write_are_refused(short: Path) -> None:
    short.chmod(0o777)
    assert run("sge-up", short)[0] == 1


def test_no_lab_is_ended_well(short: Path) -> None:
    assert run("slurm-down", short)[0] == 0
    assert run("slurm-down", "--wipe", short / "nothing")[0] == 0


@pytest.fixture
def bare(short: Path) -> str:
    """A PATH with what the scripts take from any system, but no apt-get."""
    place = short / "bin"
    place.mkdir()
    for name in ("bash", "env", "dirname", "readlink", "mkdir", "find", "ls", "touch", "flock", "id", "tail", "tee",
                 "rm", "rmdir", "awk", "sed", "timeout", "sort", "xargs", "grep", "sleep", "cat", "cut",
                 "tr"):
        found = shutil.which(name)
        assert found is not None
        (place / name).symlink_to(found)
    # the scripts append the system's own folders for daemons, where apt-get does not lie
    return str(place)


def test_not_debian(bare: str, short: Path) -> None:
    for name in ("slurm", "sge"):
        status, output = run(f"{name}-up", short / name, PATH=bare)
        assert status == 4 and output.startswith(f"{name}-up: cannot be had here: it takes Debian packages")


def test_run_tells_why_there_is_no_lab(bare: str, short: Path) -> None:
    process = subprocess.run([HERE / "labs", "run", short / "labs", "bash", "-c",
                              'echo "$SSSJOB_NO_LAB_SLURM"; echo "${SSSJOB_LAB_SLURM-none}"; exit 7'],
                             env={**os.environ, "PATH": bare}, capture_output=True, text=True, timeout=60)
    assert process.returncode == 7
    assert re.fullmatch(r"slurm-up: cannot be had here: .* no apt-get\nnone\n", process.stdout)
    assert not (short / "labs").exists()


@pytest.fixture
def short() -> Iterator[Path]:
    """A directory of a path short enough for a lab, wherever the others are."""
    with tempfile.TemporaryDirectory(prefix="l", dir="/tmp") as place:
        yield Path(place)


@pytest.mark.lab
@pytest.mark.parametrize("name", ["slurm", "sge", "postgres", "ssh"])
class TestRunning:
    @pytest.fixture
    def lab(self, name: str) -> Path:
        variable = f"SSSJOB_LAB_{name.upper()}"
        folder = os.environ.get(variable)
        if folder is None:
            pytest.skip(f"no {name} lab: "
                        + os.environ.get(
                            f"SSSJOB_NO_LAB_{name.upper()}", f"{variable} does not name one (make test-labs)"))
        return Path(folder)

    def test_up_again_changes_nothing(self, name: str, lab: Path) -> None:
        before = (lab / "procs").read_text()
        assert run(f"{name}-up", lab)[0] == 0
        assert (lab / "procs").read_text() == before

    def test_only_the_loopback_listens(self, name: str, lab: Path) -> None:
        ours = {int(line.split()[0]) for line in (lab / "procs").read_text().splitlines()}
        sockets = set()
        for file in (file for pid in ours for file in Path(f"/proc/{pid}/fd").iterdir()):
            with suppress(FileNotFoundError):       # closed meanwhile
                sockets.add(os.readlink(file))
        listening = [line.split()[1].split(":")[0] for table in ("tcp", "tcp6", "udp", "udp6")
                     for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
                     if f"socket:[{line.split()[9]}]" in sockets and line.split()[3] in ("0A", "07")]
        assert len(listening) >= {"postgres": 0, "ssh": 1}.get(name, 2)     # PostgreSQL has a Unix socket only
        assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F"}
