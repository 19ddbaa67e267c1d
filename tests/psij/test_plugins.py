"""Descriptors, executors and launchers by name, imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

import psij
from psij import Job, JobExecutor, Launcher
from psij.executors import LocalJobExecutor

REPO = Path(psij.__file__).resolve().parents[1]

EXECUTOR = """\
from psij import JobExecutor
class E(JobExecutor):
    def submit(self, job): pass
    def cancel(self, job): pass
    def attach(self, job, native_id): pass
    def list(self): return []
"""
DESCRIPTORS = """\
from packaging.version import Version
from psij.descriptor import Descriptor
__PSI_J_EXECUTORS__ = [
    Descriptor("{0}-good", Version("0.0.1"), "{0}plug.good.E", aliases=["{0}-alias"]),
    Descriptor("{0}-good", Version("0.0.2"), "{0}plug.good.E"),
    Descriptor("{0}-broken", Version("0.0.1"), "{0}plug.broken.E"),
    Descriptor("{0}-missing", Version("0.0.1"), "json.decoder.E"),
    "odd",
]
"""


def plugin_folder(root: Path, name: str) -> None:
    (root / f"{name}plug").mkdir()
    (root / f"{name}plug" / "good.py").write_text(EXECUTOR)
    (root / f"{name}plug" / "broken.py").write_text("raise RuntimeError('broken on purpose')")
    (root / "psij-descriptors").mkdir()
    (root / "psij-descriptors" / f"{name}.py").write_text(DESCRIPTORS.format(name))
    (root / "psij-descriptors" / "a_bad.py").write_text("1 / 0")


def test_third_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin_folder(tmp_path, "third")
    monkeypatch.syspath_prepend(str(tmp_path))
    executor = JobExecutor.get_instance("THIRD-good", ">= 0.0.1")
    assert executor.version == Version("0.0.2") and executor.name == "THIRD-good"
    assert JobExecutor.get_instance("third-alias", "< 0.0.2").version == Version("0.0.1")
    assert type(executor).__psij_file__ == str(tmp_path / "thirdplug" / "good.py")  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"^Unable to load executor") as caught:
        JobExecutor.get_instance("third-broken")
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(ValueError, match=r"^Unable to load executor"):
        JobExecutor.get_instance("third-missing")       # a like-named module elsewhere does not do
    with pytest.raises(ValueError, match="satisfies"):
        JobExecutor.get_instance("third-good", "> 3")
    assert {"local", "third-good"} <= JobExecutor.get_executor_names()


def test_folder_that_all_may_write_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              caplog: pytest.LogCaptureFixture) -> None:
    plugin_folder(tmp_path, "open")
    (tmp_path / "psij-descriptors").chmod(0o777)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "open-good" not in JobExecutor.get_executor_names()
    assert "everybody may write" in caplog.text


def test_unknown_name_is_suggested() -> None:
    with pytest.raises(ValueError, match=r"No such executor: 'locla'\. .*Did you mean 'local'\?"):
        JobExecutor.get_instance("locla")


def test_own_plugins() -> None:
    executor = JobExecutor.get_instance("Local", ">= 0.0.1")
    assert isinstance(executor, LocalJobExecutor) and executor.name == "Local"
    assert LocalJobExecutor().name == "local" and LocalJobExecutor().version == executor.version
    assert {"single", "multiple", "mpirun", "srun", "aprun", "jsrun"} <= Launcher.get_launcher_names()
    assert type(Launcher.get_instance("jrun")).__name__ == "JsrunLauncher"


@pytest.mark.parametrize(("name", "extra"), [("single", []), ("multiple", ["4"]), ("mpirun", ["4"]), ("srun", ["4"])])
def test_launch_command(name: str, extra: list[str], tmp_path: Path) -> None:
    config = psij.JobExecutorConfig(work_directory=tmp_path)
    spec = psij.JobSpec("/bin/x", ["a b"], resources=psij.ResourceSpecV1(process_count=4), stdout_path="out")
    job = Job(spec)
    command = Launcher.get_instance(name, config=config).get_launch_command(job)
    assert command[0] == "/bin/bash" and Path(command[1]).parent.parent == tmp_path
    assert (Path(command[1]).parent / "launcher_lib.sh").is_file()
    assert command[2:] == [job.id, "", "", "", "/dev/null", "out", "/dev/null", *extra, "/bin/x", "a b"]


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=REPO, capture_output=True, text=True, timeout=30)


def test_plugins_command() -> None:
    result = run_python("-W", "error", "-m", "psij", "plugins")
    assert result.returncode == 0 and result.stderr == ""
    assert "  local 0.2.0\n" in result.stdout and "  jsrun 0.0.1\n    aliases: jrun\n" in result.stdout
    assert "error:" not in result.stdout
    assert run_python("-m", "psij").returncode == 2


def test_import_is_quiet() -> None:
    code = ("import threading, sys; from psij import *; import psij; assert threading.active_count() == 1; "
            "assert not {m for m in sys.modules if m.startswith(('psij.executors', 'psij.launchers', 'packaging', "
            "'typeguard', 'psutil', 'sssjob', 'psij._plugins'))}; assert all(hasattr(psij, n) for n in psij.__all__)")
    result = run_python("-W", "error", "-c", code)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
