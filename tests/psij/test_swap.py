"""Programs, environments and metadata that know psij-python: what is said to them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import distribution, distributions
from pathlib import Path

import pytest

import psij
from psij import _plugins
from psij.__main__ import main
from psij._alias import write_alias
from psij._program import DIFFERENCES
from sssjob.cli._app import status_of
from sssjob.packages import ForeignPackageError, check_psij, psij_trouble

#: A line of a program -> the names of the differences that touch it.
LINES = {
    "from psij import Job, JobSpec, JobExecutor": [],
    "from psij import *": [],
    "from psij.executors.rp import RPJobExecutor": ["module"],
    "from psij import Export": ["module"],
    "import psij.nothing": ["module"],
    "import psij.serialize": [],
    "from psij.executors.batch.slurm import SlurmJobExecutor": [],
    "JobExecutor.get_instance('rp')": ["executor-rp"],
    "psij.JobExecutor.get_instance(name='local')": ["local-limit"],
    "JobExecutor.get_instance('slurm')": [],
    "JobExecutor.get_instance('slurm', version_constraint='== 0.0.1')": ["version"],
    "psij.Launcher.get_instance('MPIRUN', '< 0.1')": ["version"],
    "JobExecutor.get_instance('slurm', '>= 0.0.1')": [],
    "JobExecutor.get_instance('of_another_site', '== 0.0.1')": [],
    "JobSpec('/bin/sh', ['-c', 'echo ${HOME}'])": ["variables"],
    "JobSpec('/bin/sh', ['-c', 'echo $${HOME} $HOME'])": [],
    "ResourceSpecV1(process_count=8)": ["processes"],
    "ResourceSpecV1(process_count=8, node_count=1)": [],
    "ResourceSpecV1(node_count=1, gpu_cores_per_process=0)": ["zero-count"],
    "JobAttributes(duration=timedelta(minutes=0))": ["no-limit"],
    "JobAttributes(duration=timedelta(minutes=5))": [],
    "for key in status.metadata: pass": ["metadata"],
    "job.set_job_status_callback(tell)": ["callbacks"],
    "class Tell(JobStatusCallback): pass": ["callbacks"],
    "pid = os.fork()": ["fork"],
    "JobSpec('/bin/date', directory='sub')": ["directory"],
    "JobSpec('/bin/date', directory='~/sub')": [],
    "JobAttributes(custom_attributes={'constraint': 'knl', 'slurm.qos': 'debug'})": ["custom-prefix"],
    "attributes.set_custom_attribute('qos', 'debug')": ["custom-prefix"],
    "except_ = typeguard.TypeCheckError": ["type-errors"],
    "import typeguard": ["type-errors"],
    "seen = state is JobState.STAGE_OUT": ["states"],
    "folder = Path.home() / '.psij' / 'work'": ["files"],
    "open('~/.psij/work/x')": ["files"],
    "patch('site.launcher.psij.load')": [],
    "'A text of ${NAME} in ~/.psij'": [],
    "for key in config.parameters.metadata: pass": [],
    "import importlib.metadata; importlib.metadata.version('x')": [],
    "s = job.wait(); print(s.metadata)": ["metadata"],
    "async def f(job): print((await job.wait()).metadata)": ["metadata"],
    "def tell(job, news: psij.JobStatus): return news.metadata": ["metadata"],
    "psutil.Process(1)": [],
    "from psutil import Process; Process(1)": [],
    "from multiprocessing import Process; Process(target=f)": ["fork"],
    "multiprocessing.get_context('fork').Pool(2)": ["fork"],
    "from concurrent.futures import ProcessPoolExecutor; ProcessPoolExecutor()": ["fork"],
    "resources = ResourceSpecV1(); resources.process_count = 8": ["processes"],
    "def f(s): s.resources = psij.ResourceSpecV1(); s.resources.process_count = 8": ["processes"],
    "r = ResourceSpecV1(); r.process_count = 8; r.node_count = 1": [],
    "r = ResourceSpecV1(node_count=2); r.process_count = 8": [],
    "r = ResourceSpecV1(); r.gpu_cores_per_process = 0": ["zero-count"],
    "other.process_count = 8; other.directory = 'sub'": [],
    "spec = JobSpec(); spec.directory = 'sub'": ["directory"],
    "spec = JobSpec(); spec.directory = '/sub'": [],
    "a = JobAttributes(); a.duration = timedelta(hours=0)": ["no-limit"],
    "import psij; psij.UnreachableStateException": ["module"],
    "import psij; print(psij.VERSION, psij.launchers.MultipleLauncher)": [],
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_a_program(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"# a program\n{line}\n")
    names = LINES[line]
    assert main(["check-program", str(program)]) == int(any(DIFFERENCES[name].stops for name in names))
    printed = [one.split(": ", 3) for one in capsys.readouterr().out.splitlines()]
    if names:
        assert [(one[0], one[1], one[3]) for one in printed] == [
            (f"{program}:2", name, DIFFERENCES[name].text) for name in names]
    else:
        assert printed == [[str(program), "no difference to psij-python touches it, as far as its text shows"]]


def test_every_difference_is_tried() -> None:
    assert {name for names in LINES.values() for name in names} == set(DIFFERENCES)


def test_files_that_are_no_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken, deep, long = tmp_path / "broken.py", tmp_path / "deep.py", tmp_path / "long.py"
    broken.write_text("def (\n")
    deep.write_text(f"x = {'-' * 100_000}1\n")
    long.write_text(f"x = {'+'.join(['1'] * 100_000)}\n")
    assert main(["check-program", str(broken), str(deep), str(long), str(tmp_path / "none.py")]) == 3
    assert capsys.readouterr().err.splitlines() == [
        f"{broken}: invalid syntax (broken.py, line 1)", f"{deep}: nested too deep, or too large",
        f"{long}: nested too deep, or too large", f"{tmp_path / 'none.py'}: No such file or directory"]


@pytest.mark.parametrize("line", ["from psij.__main__ import main", "import psij.executors._local_starter_main.x",
                                  "from psij.executors._local_starter_main import serve"])
def test_private_modules_are_not_run(line: str, tmp_path: Path) -> None:
    """One of them is a program, which would begin to serve."""
    (tmp_path / "program.py").write_text(f"{line}\n")
    done = subprocess.run([sys.executable, "-m", "psij", "check-program", "program.py"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "program.py: no difference to psij-python touches it, as far as its text shows\n", "")


@pytest.mark.parametrize("arguments", [[], ["check-program"], ["alias"], ["alias", "a", "b", "c"], ["nothing"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: python -m psij plugins\n")


def test_a_wheel_that_stands_for_psij_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alias", str(tmp_path / "wheels")]) == 0
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert capsys.readouterr().out == f"{wheel}\n"
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (found,) = distributions(path=[str(tmp_path / "site")])
    assert (found.metadata["Name"], found.version, found.requires) == ("psij-python", "0.9.11+sssjob", ["sssjob"])
    assert found.files is not None and {path.parts[0] for path in found.files} == {
        "psij_python-0.9.11+sssjob.dist-info"}
    _plugins._warn_of_other_psij(tmp_path / "site")        # a warning would be an error here


def test_a_version_of_that_wheel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write_alias(tmp_path, "0.9.12").name == "psij_python-0.9.12+sssjob-py3-none-any.whl"
    assert main(["alias", str(tmp_path), "new"]) == 2
    assert capsys.readouterr().err == "Invalid version: 'new'\n"


def test_our_own_package_is_no_trouble() -> None:
    assert psij_trouble() == ""
    check_psij()
    assert psij.version.DISTRIBUTION == "sssjob" and distribution(psij.version.DISTRIBUTION)


_DO = "run pip uninstall psij-python, then pip install --force-reinstall --no-deps sssjob"


@pytest.mark.parametrize(("files", "trouble"), [
    ([], f"the files of the package psij are gone, perhaps with psij-python: {_DO}"),
    (["executors/local.py"], f"the files of the package psij are gone, perhaps with psij-python: {_DO}"),
    (["__init__.py", "version.py"], f"the package psij in SITE/psij is that of psij-python and not sssjob's: {_DO}"),
    (["__init__.py"], f"the package psij in SITE/psij is that of psij-python and not sssjob's: {_DO}"),
], ids=["removed", "left over", "overwritten", "halved"])
def test_a_foreign_package(files: list[str], trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in files:
        path = tmp_path / "psij" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("__version__ = '0.9.11'\n")
    said = trouble.replace("SITE", str(tmp_path))
    assert psij_trouble([str(tmp_path)]) == said
    monkeypatch.setattr("sssjob.packages.find_spec", lambda name: None)
    with pytest.raises(ForeignPackageError, match="are gone"):
        check_psij()


@pytest.mark.parametrize("words", [
    ["run", "HELLO", "--executor", "local"], ["submit", "HELLO", "--executor", "slurm"], ["executors"],
    ["executors", "--check"], ["list"], ["convert", "-t", "psij", "HELLO"], ["sites", "check", "SITE"]],
    ids=" ".join)
def test_a_command_with_a_foreign_package(words: list[str], tmp_path: Path) -> None:
    for name in ("__init__.py", "version.py"):
        (tmp_path / "psij").mkdir(exist_ok=True)
        (tmp_path / "psij" / name).write_text("__version__ = '0.9.11'\n")
    example = Path(__file__).parents[2] / "examples" / "hello.xml"
    site = tmp_path / "here.toml"
    site.write_text('name = "here"\nmanager = "slurm"\n')
    paths = {"HELLO": str(example), "SITE": str(site)}
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
                           "from sssjob.cli import main; sys.exit(main(sys.argv[1:]))",
                           *(paths.get(word, word) for word in words)],
                          capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"sssjob: the package psij in {tmp_path}/psij is that of psij-python and not sssjob's: {_DO}"]


@pytest.mark.parametrize(("command", "status"), [
    (["check-program", "program.py"], 3), (["alias", "wheels"], 3), (["plugins"], 0),
], ids=["check-program", "alias", "plugins"])
def test_the_other_main_does_not_know_our_commands(command: list[str], status: int, tmp_path: Path) -> None:
    """psij-python's ``__main__`` passes commands over that it does not know, with status 0; but it runs our descriptor
    as all others."""
    package = tmp_path / "psij"
    package.mkdir()
    (package / "version.py").write_text("__version__ = '0.9.11'\n")
    (package / "descriptor.py").write_text("class Descriptor:\n    def __init__(self, *_, **__): pass\n")
    (package / "__main__.py").write_text("")
    ours = Path(psij.__file__).parent / "descriptors" / "sssjob_descriptors.py"
    (package / "__init__.py").write_text(f"import runpy\ntry: runpy.run_path({str(ours)!r})\n"
                                         "except Exception as e: print(e)\n")
    done = subprocess.run([sys.executable, "-m", "psij", *command], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60)
    trouble = f"the package psij in {tmp_path}/psij is that of psij-python and not sssjob's: {_DO}\n"
    assert (done.returncode, done.stdout, done.stderr) == (status, "", trouble if status else "")


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: python -m psij plugins\n")


def test_an_error_of_our_own_stays_one() -> None:
    assert status_of(AttributeError("x")) == (
        70, "internal error: AttributeError: x (set SSSJOB_DEBUG=1 for the traceback)")
