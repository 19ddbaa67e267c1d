"""The lines of a job's script, run by the shells that there are."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sssjob.errors import UsageError
from sssjob.mjf.script import EPILOGUE, Variable, prologue

SHELLS = [shell for shell in ("sh", "bash", "dash", "ksh", "zsh") if shutil.which(shell)]
VARIABLES = {"allocated_cpu": Variable("CPUS"), "max_rss_bytes": Variable("MIB", 1 << 20), "job_id": Variable("ID"),
             "wall_limit_secs": Variable("NONE")}
SHOW = ('cd "$MACHINEFEATURES/.." && find . -type f ! -name ".*" | sort | while read -r f; do '
        'echo "$f $(cat "$f")"; done; ls -ld */ */*')


def run(shell: str, text: str, place: Path, **environment: str) -> list[str]:
    process = subprocess.run([shell, "-euc", text], cwd=place, capture_output=True, text=True, check=True,
                             env={"PATH": "/usr/bin:/bin", "TMPDIR": str(place), **environment})
    assert process.stderr == ""
    return process.stdout.splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_made_and_removed(tmp_path: Path, shell: str) -> None:
    text = prologue(VARIABLES, {"hs06": 80.5, "shutdown_command": "/x 'y' $(z)", "jobstart_secs": 7})
    out = run(shell, f"umask 077\n{text}( {SHOW} )\n{EPILOGUE}", tmp_path, CPUS="4", MIB="2048", ID="47.x")
    files = [line for line in out if line.startswith("./")]
    assert files == ["./job/allocated_cpu 4", "./job/job_id 47.x", "./job/jobstart_secs 7",
                     "./job/max_rss_bytes 2147483648", "./machine/hs06 80.5",
                     "./machine/shutdown_command /x 'y' $(z)"]
    modes = {line[:10] for line in out if not line.startswith("./")}
    assert modes == {"drwxr-xr-x", "-rw-r--r--"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("wrong", ["", "0", "010", "4 5", "-1", "unlimited", "$(touch x)", "4;touch x", "a[$(x)]",
                                   "9" * 13])
def test_odd_variables_are_left_out(tmp_path: Path, shell: str, wrong: str) -> None:
    text = prologue({"allocated_cpu": Variable("CPUS"), "job_id": Variable("ID")}, {"jobstart_secs": 7})
    out = run(shell, f"{text}( {SHOW} )\n{EPILOGUE}", tmp_path, CPUS=wrong, ID="a b")
    assert [line for line in out if line.startswith("./")] == ["./job/jobstart_secs 7"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_sites_own_stay_and_a_full_disk_stops_no_job(tmp_path: Path, shell: str) -> None:
    text = prologue({"hs06": 1}) + 'echo "${MACHINEFEATURES:-none}"\n' + EPILOGUE + "echo end\n"
    assert run(shell, text, tmp_path, JOBFEATURES="/site") == ["none", "end"]
    assert run(shell, text, tmp_path, TMPDIR="/proc/none", _mjf=str(tmp_path)) == ["none", "end"]
    assert tmp_path.is_dir()


@pytest.mark.parametrize(("values", "variables"), [
    ({"nope": 1}, {}), ({"hs06": "a\nb"}, {}), ({"used_CPU": 1}, {}), ({}, {"nope": Variable("X")}),
    ({}, {"hs06": Variable("X}$(x)")}), ({}, {"hs06": Variable("X", 0)}),
])
def test_refused(values: dict[str, int | str], variables: dict[str, Variable]) -> None:
    with pytest.raises(UsageError):
        prologue(variables, values)
