"""Descriptors, executors and launchers by name, imports."""

from __future__ import annotations

import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

import psij
from psij import JobExecutor, Launcher
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


def test_threads_get_the_same_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sees a module that another thread is still running."""
    plugin_folder(tmp_path, "slow")
    (tmp_path / "slowplug" / "good.py").write_text(f"import time\ntime.sleep(0.1)\n{EXECUTOR}")
    monkeypatch.syspath_prepend(str(tmp_path))
    classes: list[type] = []
    threads = [threading.Thread(target=lambda: classes.append(type(JobExecutor.get_instance("slow-good"))))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(classes) == 4 and len(set(classes)) == 1


def test_versions_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders on the path with a module of the same name, one version of an executor in each."""
    for version in ("1.0", "2.0rc1"):
        root = tmp_path / version
        (root / "sideplug").mkdir(parents=True)
        (root / "sideplug" / "it.py").write_text(f"{EXECUTOR}    made = {version!r}\n")
        (root / "psij-descriptors").mkdir()
        (root / "psij-descriptors" / "side.py").write_text(
            "from packaging.version import Version\nfrom psij.descriptor import Descriptor\n"
            f"__PSI_J_EXECUTORS__ = [Descriptor('side', Version({version!r}), 'sideplug.it.E')]\n")
        monkeypatch.syspath_prepend(str(root))
    for constraint, made in ((None, "2.0rc1"), ("< 2.0rc1", "1.0"), ("== 1.0", "1.0"), (">= 1", "2.0rc1")):
        executor = JobExecutor.get_instance("side", constraint)
        assert executor.made == made and str(executor.version) == made  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"version_constraint .* is none \(it is like"):
        JobExecutor.get_instance("side", "newest")


def test_folder_that_all_may_write_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              caplog: pytest.LogCaptureFixture) -> None:
    plugin_folder(tmp_path, "open")
    (tmp_path / "psij-descriptors").chmod(0o777)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "open-good" not in JobExecutor.get_executor_names()
    assert "everybody may write" in caplog.text


def test_a_package_in_an_archive_says_so(tmp_path: Path) -> None:
    """Programs in one file (zipapp) cannot hold psij, whose plug-ins and scripts are files."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for folder in ("psij", "sssjob/lrm"):
            for file in (REPO / folder).rglob("*.py"):
                archive.write(file, file.relative_to(REPO))
        for file in (REPO / "sssjob").glob("*.py"):
            archive.write(file, file.relative_to(REPO))
    code = "import psij; print(psij.__file__); psij.JobExecutor.get_instance('local')"
    done = subprocess.run([sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, 'all.zip'); {code}"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "all.zip/psij/__init__.py\n"
    assert done.stderr.splitlines()[-1] == (
        f"ValueError: No such executor: 'local'. Available executors: none. The package psij lies in "
        f"{tmp_path / 'all.zip'}, and it does not run from an archive: unpack it.")


def test_unknown_name_is_suggested() -> None:
    with pytest.raises(ValueError, match=r"No such executor: 'locla'\. .*Did you mean 'local'\?"):
        JobExecutor.get_instance("locla")


def test_own_plugins() -> None:
    executor = JobExecutor.get_instance("Local", ">= 0.0.1")
    assert isinstance(executor, LocalJobExecutor) and executor.name == "Local"
    assert LocalJobExecutor().name == "local" and LocalJobExecutor().version == executor.version
    assert {"single", "multiple", "mpirun", "srun", "aprun", "jsrun"} <= Launcher.get_launcher_names()
    assert type(Launcher.get_instance("jrun")).__name__ == "JsrunLauncher"


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=REPO, capture_output=True, text=True, timeout=120)


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


def test_other_psij_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "psij_python-0.9.11.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(RuntimeWarning, match=r"psij-python 0\.9\.11 is installed in .*uninstall one of them"):
        psij.JobExecutor.get_instance("local")
    psij.JobExecutor.get_instance("local")


def test_settings_take_text() -> None:
    config = psij.JobExecutorConfig("log", "work")
    assert (config.launcher_log_file, config.work_directory) == (Path("log"), Path("work"))
    config.launcher_log_file, config.work_directory = None, "other"
    assert (config.launcher_log_file, config.work_directory) == (None, Path("other"))
    assert psij.JobExecutorConfig.DEFAULT.work_directory == psij.JobExecutorConfig.DEFAULT_WORK_DIRECTORY
