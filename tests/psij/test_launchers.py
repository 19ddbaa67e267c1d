"""Launchers: their commands, the deployment of their scripts, and what the scripts do when they are run."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import psij
from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobExecutorConfig,
    JobSpec,
    JobState,
    Launcher,
    ResourceSpecV1,
)
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.launchers import (
    AprunLauncher,
    JsrunLauncher,
    MPILauncher,
    MultipleLauncher,
    SingleLauncher,
    SrunLauncher,
)
from psij.launchers.script_based_launcher import ScriptBasedLauncher

SCRIPTS = Path(psij.__file__).resolve().parent / "launchers"
MARKER = "_PSI_J_LAUNCHER_DONE\n"
TOOLS = {"mpirun": "mpirun -n", "srun": "srun -n", "aprun": "aprun -n", "jsrun": "jsrun --np"}
MPI_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

no_mpi = pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed (openmpi-bin)")


@pytest.fixture
def config(tmp_path: Path) -> JobExecutorConfig:
    return JobExecutorConfig(work_directory=tmp_path / "work")


def launched(name: str, spec: JobSpec, config: JobExecutorConfig, cwd: Path, log: str | None = None,
             **environment: str) -> subprocess.CompletedProcess[str]:
    launcher = Launcher.get_instance(name, config=config)
    assert isinstance(launcher, ScriptBasedLauncher)
    return subprocess.run(launcher.get_launch_command(Job(spec), log), cwd=cwd, capture_output=True, text=True,
                          timeout=60, env={**os.environ, **environment}, stdin=subprocess.DEVNULL)


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("base", [SingleLauncher, MultipleLauncher, MPILauncher, SrunLauncher, AprunLauncher,
                                  JsrunLauncher])
def test_a_launcher_of_psij_python(base: Any, config: JobExecutorConfig, tmp_path: Path) -> None:
    """There every class takes the script and the configuration; its own MPILauncher is such a subclass."""
    own = script(tmp_path / "their_launch.sh", '#!/bin/bash\n. "$(dirname "$0")/launcher_lib.sh"\n')

    theirs = type("Theirs", (base,), {"__init__": lambda self, config=None: base.__init__(self, own, config)})
    spec = JobSpec("/bin/date", ["-u"], resources=ResourceSpecV1(process_count=2))
    command = theirs(config=config).get_launch_command(Job(spec))
    count = [] if base is SingleLauncher else ["2"]
    assert Path(command[1]).read_text() == own.read_text() and command[9:] == [*count, "/bin/date", "-u"]
    for made in (base(config), base(config=config)):
        assert Path(made.get_launch_command(Job(spec))[1]).is_relative_to(config.work_directory)
    assert base(str(own), config)._script_path == own


def test_programs_that_are_not_there(config: JobExecutorConfig, tmp_path: Path) -> None:
    """Standard error may go nowhere: the launcher's own output says it, in place of the end marker."""
    script(tmp_path / "there", "#!/bin/sh\nexit 127\n")
    (tmp_path / "plain").touch()
    said = {"/no/such": (127, "cannot start /no/such: not found\n"),
            "nosuch": (127, "cannot start nosuch: not found\n"),
            f"{tmp_path}/plain": (126, f"cannot start {tmp_path}/plain: it cannot be executed\n"),
            f"{tmp_path}/there": (127, MARKER)}
    for name in ("single", "multiple"):
        for program, expected in said.items():
            done = launched(name, JobSpec(program), config, tmp_path)
            assert (done.returncode, done.stdout) == expected, (name, program)


# -- commands ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "extra"), [("single", []), ("multiple", ["4"]), ("mpirun", ["4"]), ("srun", ["4"]),
                                             ("aprun", ["4"]), ("jsrun", ["4"]), ("jrun", ["4"])])
def test_command(name: str, extra: list[str], config: JobExecutorConfig) -> None:
    spec = JobSpec("/bin/x", ["a b", ""], resources=ResourceSpecV1(node_count=2, processes_per_node=2),
                   pre_launch="pre", post_launch="post", stdin_path="in", stdout_path="out")
    job = Job(spec)
    launcher = Launcher.get_instance(name, config=config)
    assert isinstance(launcher, ScriptBasedLauncher)
    command = launcher.get_launch_command(job)
    assert command[0] == "/bin/bash" and Path(command[1]).parent.parent == config.work_directory
    assert (Path(command[1]).parent / "launcher_lib.sh").is_file()
    assert command[2:] == [job.id, "", "pre", "post", "in", "out", "/dev/null", *extra, "/bin/x", "a b", ""]
    assert launcher.get_launch_command(job, "log")[3] == "log"
    config.launcher_log_file = Path("/tmp/launcher.log")
    assert launcher.get_launch_command(job)[3] == "/tmp/launcher.log"


def test_no_executable(config: JobExecutorConfig) -> None:
    with pytest.raises(ValueError, match="no executable"):
        SingleLauncher(config).get_launch_command(Job())


@pytest.mark.parametrize(("output", "failure", "message"), [
    ("", True, ""),
    ("srun: no such account\n", True, "srun: no such account\n"),
    (MARKER, False, ""),
    ("loading\n" + MARKER, False, "loading\n"),
    ("loading\n_PSIJ_SCRIPT_DONE\n", False, "loading\n"),
    (MARKER + "killed\n", True, "killed\n"),
])
def test_end_marker(output: str, failure: bool, message: str) -> None:
    launcher = SingleLauncher()
    assert launcher.is_launcher_failure(output) is failure
    assert launcher.get_launcher_failure_message(output) == message


# -- deployment -------------------------------------------------------------------------------------------------------

def modes(folder: Path) -> dict[str, str]:
    return {path.name: stat.filemode(path.stat().st_mode) for path in folder.iterdir()}


def test_scripts_are_deployed_once_and_for_the_user_alone(config: JobExecutorConfig) -> None:
    umask = os.umask(0)
    try:
        folder = Path(SingleLauncher(config).get_launch_command(Job(JobSpec("x")))[1]).parent
    finally:
        os.umask(umask)
    assert modes(folder) == {"launcher_lib.sh": "-rw-------", "single_launch.sh": "-rwx------"}
    assert modes(config.work_directory) == {folder.name: "drwx------"} and len(folder.name) == 64
    before = (folder / "single_launch.sh").stat()
    SingleLauncher(config).get_launch_command(Job(JobSpec("x")))
    assert (folder / "single_launch.sh").stat() == before
    (folder / "single_launch.sh").write_text("echo damaged")
    SingleLauncher(config).get_launch_command(Job(JobSpec("x")))
    assert (folder / "single_launch.sh").read_bytes() == (SCRIPTS / "single_launch.sh").read_bytes()
    shutil.rmtree(config.work_directory)
    assert SingleLauncher(config).get_launch_command(Job(JobSpec("x")))[1] == str(folder / "single_launch.sh")


def test_many_deploy_at_once(config: JobExecutorConfig) -> None:
    """Whoever gets a command finds whole scripts, and nothing is left lying about."""
    outputs: list[bytes] = []
    barrier = threading.Barrier(8)

    def deploy() -> None:
        barrier.wait(10)
        outputs.append(Path(SingleLauncher(config).get_launch_command(Job(JobSpec("x")))[1]).read_bytes())

    threads = [threading.Thread(target=deploy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert outputs == [(SCRIPTS / "single_launch.sh").read_bytes()] * 8
    assert len(list(config.work_directory.iterdir())) == 1


class CustomLauncher(ScriptBasedLauncher):
    """As third parties write it: a script, a file beside it, further arguments."""

    def __init__(self, script_path: Path, config: JobExecutorConfig | None = None) -> None:
        super().__init__(script_path, config)

    def get_additional_args(self, job: Job) -> list[str]:
        return ["--first", job.id[:4]]

    def _files_to_deploy(self) -> list[Path]:
        return [*super()._files_to_deploy(), self._script_path.parent / "words.txt"]


def test_third_party_launcher(config: JobExecutorConfig, tmp_path: Path) -> None:
    own = script(tmp_path / "own.sh", '#!/bin/bash\nset -e\nsource $(dirname "$0")/launcher_lib.sh\n'
                 'WORDS=$(cat "$(dirname "$0")/words.txt")\nID="$2"\nshift 2\npre_launch\n'
                 '"$@" "$WORDS" "$ID" >"$_PSI_J_STDOUT"\npost_launch\necho "_PSI_J_LAUNCHER_DONE"\n')
    (tmp_path / "words.txt").write_text("two words")
    job = Job(JobSpec("/bin/echo", ["a"], stdout_path=tmp_path / "out"))
    command = CustomLauncher(own, config).get_launch_command(job)
    assert command[9:] == ["--first", job.id[:4], "/bin/echo", "a"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, MARKER, "")
    assert (tmp_path / "out").read_text() == f"a two words {job.id[:4]}\n"
    (tmp_path / "words.txt").write_text("others")
    assert Path(CustomLauncher(own, config).get_launch_command(job)[1]).parent != Path(command[1]).parent


# -- what the scripts do ----------------------------------------------------------------------------------------------

def test_streams_are_redirected(config: JobExecutorConfig, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("given\n")
    (tmp_path / "out").write_text("old\n")
    spec = JobSpec("/bin/sh", ["-c", "cat; echo bad >&2; exit 7"], stdin_path="in", stdout_path="out",
                   stderr_path=tmp_path / "err")
    done = launched("single", spec, config, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (7, MARKER, "")
    assert (tmp_path / "out").read_text() == "given\n" and (tmp_path / "err").read_text() == "bad\n"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no /dev/shm to write to")
def test_files_in_shared_memory_are_files(config: JobExecutorConfig, tmp_path: Path) -> None:
    """They were taken for devices, and kept what an earlier job had written."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out = Path(folder) / "out"
        out.write_text("of an earlier job\n")
        spec = JobSpec("/bin/echo", ["new"], stdout_path=out, stderr_path="/dev/stderr")
        assert launched("single", spec, config, tmp_path).stderr == ""
        assert out.read_text() == "new\n"


def test_pre_and_post_launch_are_sourced(config: JobExecutorConfig, tmp_path: Path) -> None:
    """One shell for both; exports reach the executable; paths keep their meaning when pre-launch changes directory."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "pre.sh").write_text("export SEEN=yes\nHIDDEN=kept\nset -u\nIFS=:\ncd elsewhere\n")
    (tmp_path / "post.sh").write_text('echo "$HIDDEN $SEEN $PWD" >post.out\n')
    spec = JobSpec("/bin/sh", ["-c", 'echo "$SEEN ${HIDDEN-unset}"'], stdout_path="out", pre_launch="pre.sh",
                   post_launch="post.sh", resources=ResourceSpecV1(process_count=2))
    done = launched("multiple", spec, config, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, MARKER, "")
    assert (tmp_path / "out").read_text() == "yes unset\n" * 2
    assert (tmp_path / "elsewhere" / "post.out").read_text() == f"kept:yes:{tmp_path}/elsewhere\n".replace(":", " ")


def test_failing_pre_launch(config: JobExecutorConfig, tmp_path: Path) -> None:
    (tmp_path / "pre.sh").write_text("echo no such module >&2\n(exit 5)\n")
    spec = JobSpec("/bin/sh", ["-c", "echo ran"], stdout_path="out", pre_launch="pre.sh")
    done = launched("single", spec, config, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (5, "", "no such module\n")
    assert (tmp_path / "out").read_text() == ""


def test_missing_pre_launch(config: JobExecutorConfig, tmp_path: Path) -> None:
    done = launched("single", JobSpec("/bin/true", pre_launch="pre.sh"), config, tmp_path)
    assert done.returncode != 0 and done.stdout == "" and f"{tmp_path}/pre.sh: No such file" in done.stderr


@pytest.mark.parametrize(("executable", "post", "code"), [("/bin/true", "exit_with 0", 0), ("/bin/false", ":", 1),
                                                          ("/bin/true", "(exit 9)", 9), ("/bin/false", "(exit 9)", 1)])
def test_post_launch_always_runs(executable: str, post: str, code: int, config: JobExecutorConfig, tmp_path: Path
                                 ) -> None:
    (tmp_path / "post.sh").write_text(f"exit_with() {{ return $1; }}\ntouch post.ran\n{post}\n")
    done = launched("single", JobSpec(executable, post_launch="post.sh"), config, tmp_path)
    assert (done.returncode, done.stdout) == (code, MARKER) and (tmp_path / "post.ran").exists()


def test_names_of_shell_commands_are_executables(config: JobExecutorConfig, tmp_path: Path) -> None:
    """The executable is a file on PATH, though the shell has a command of its own by that name."""
    for name in ("log", "echo", "-x"):
        script(tmp_path / name, "#!/bin/sh\necho the file \"$@\"\n")
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = launched("single", JobSpec(name, ["-n"], stdout_path="out"), config, tmp_path, PATH=path)
        assert done.returncode == 0 and (tmp_path / "out").read_text() == "the file -n\n"


def test_missing_executable_and_signal(config: JobExecutorConfig, tmp_path: Path) -> None:
    spec = JobSpec("./no such", stderr_path="err")
    assert launched("single", spec, config, tmp_path).returncode == 127
    assert "/no such: No such file" in (tmp_path / "err").read_text()
    assert launched("single", JobSpec("/bin/sh", ["-c", "kill -9 $$"]), config, tmp_path).returncode == 137


def test_log_file(config: JobExecutorConfig, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", "exit 3"])
    assert launched("single", spec, config, tmp_path, "log").returncode == 3
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["run /bin/sh", "exit code 3"]
    done = launched("single", spec, config, tmp_path, "/nowhere/log")
    assert (done.returncode, done.stdout, done.stderr) == (3, MARKER, "")


def test_home_directory_in_paths(config: JobExecutorConfig, tmp_path: Path) -> None:
    spec = JobSpec("/bin/echo", ["~/x"], stdout_path="~/a b")
    assert launched("single", spec, config, tmp_path, HOME=str(tmp_path)).returncode == 0
    assert (tmp_path / "a b").read_text() == "~/x\n"


HOSTILE = ["", " ", "a  b", "'", '"', "$(touch pwned)", "`touch pwned`", "${HOME}", "a\nb", "\r", "\x01\x1b[31m",
           "\u202e", "*", "~", "-n", "--", "\\", "é", "x" * 100_000, ";touch pwned", "|", "&", ">pwned", "!!", "#",
           "a=b", "\udc80"]


@pytest.mark.parametrize("name", ["single", "multiple"])
def test_hostile_strings_arrive_as_they_are(name: str, config: JobExecutorConfig, tmp_path: Path) -> None:
    """In arguments and in every path: bash sees only its own variables."""
    for number, folder in enumerate(["a b", "$(touch pwned)", "'\"", "a\nb", "*", "-n", "\udc80", "`touch pwned`"]):
        place = tmp_path / "places" / folder
        place.mkdir(parents=True)
        (place / "pre").write_text(":")
        spec = JobSpec(sys.executable, ["-c", "import sys; sys.stdout.write(ascii(sys.argv[1:]))", *HOSTILE],
                       stdout_path=place / "out", stderr_path=place / "err", pre_launch=place / "pre",
                       post_launch=place / "pre")
        done = launched(name, spec, config, tmp_path, str(place / "log"))
        assert (done.returncode, done.stdout, done.stderr) == (0, MARKER, ""), number
        assert (place / "out").read_text() == ascii(HOSTILE) and (place / "log").exists()
    assert not list(tmp_path.rglob("pwned"))


def test_multiple(config: JobExecutorConfig, tmp_path: Path) -> None:
    """Copies side by side, each told its number; the first code that is not zero, by number."""
    code = ('echo "$_PSI_J_PROCESS_INDEX_ of $_PSI_J_PROCESS_COUNT"; touch "here.$_PSI_J_PROCESS_INDEX_"; '
            'while [ $(ls here.* | wc -l) -lt 3 ]; do sleep 0.02; done; '       # all of them run at once
            '[ "$_PSI_J_PROCESS_INDEX_" = 1 ] || exit $((_PSI_J_PROCESS_INDEX_ + 20))')
    spec = JobSpec("/bin/sh", ["-c", code], stdout_path="out", resources=ResourceSpecV1(process_count=3))
    done = launched("multiple", spec, config, tmp_path, "log")
    assert (done.returncode, done.stdout, done.stderr) == (22, MARKER, "")
    assert sorted((tmp_path / "out").read_text().splitlines()) == ["1 of 3", "2 of 3", "3 of 3"]


@pytest.mark.parametrize("name", [*TOOLS, "jrun"])
def test_command_line_of_the_tool(name: str, config: JobExecutorConfig, tmp_path: Path) -> None:
    tool = {"jrun": "jsrun"}.get(name, name)
    script(tmp_path / tool, f'#!/bin/bash\nprintf "%s\\n" {tool} "$@"\n'
           'echo "$SRUN_CPUS_PER_TASK $SLURM_EXPORT_ENV" >env\nexit 6\n')
    spec = JobSpec("/bin/x y", ["a b", "", "$(c)"], stdout_path="out", resources=ResourceSpecV1(process_count=3))
    done = launched(name, spec, config, tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}", SLURM_CPUS_PER_TASK="8",
                    SLURM_EXPORT_ENV="NONE")
    assert (done.returncode, done.stdout, done.stderr) == (6, MARKER, "")
    assert (tmp_path / "out").read_text().split("\n") == [*TOOLS[tool].split(), "3", "/bin/x y", "a b", "", "$(c)", ""]
    assert (tmp_path / "env").read_text() == ("8 ALL\n" if tool == "srun" else " NONE\n")


# -- through the local executor ---------------------------------------------------------------------------------------

@no_mpi
def test_mpirun_really_runs(config: JobExecutorConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More ranks than this machine may have processors; the code of the rank that fails."""
    for name, value in MPI_AS_ROOT.items():
        monkeypatch.setenv(name, value)
    rank = ("import os, sys; rank = int(os.environ['OMPI_COMM_WORLD_RANK']); "
            "os.write(1, f'{rank} {os.environ[\"OMPI_COMM_WORLD_SIZE\"]} {os.environ[\"SEEN\"]}\\n'.encode()); "
            "sys.exit(int(sys.argv[1]) if rank == 1 else 0)")
    (tmp_path / "pre.sh").write_text("export SEEN=yes\n")
    executor = JobExecutor.get_instance("local", config=config)
    for code in (0, 5):
        spec = JobSpec(sys.executable, ["-c", rank, str(code)], launcher="mpirun", stdout_path=tmp_path / "out",
                       resources=ResourceSpecV1(process_count=4), pre_launch=tmp_path / "pre.sh")
        job = Job(spec)
        executor.submit(job)
        status = job.wait(timedelta(seconds=60))
        assert status is not None and status.exit_code == code, status
        assert status.state is (JobState.FAILED if code else JobState.COMPLETED)
        if not code:
            assert sorted((tmp_path / "out").read_text().splitlines()) == [f"{rank} 4 yes" for rank in range(4)]


def test_multiple_really_runs(config: JobExecutorConfig, tmp_path: Path) -> None:
    spec = JobSpec("/bin/sh", ["-c", 'cat "$PSIJ_NODEFILE"; exit $_PSI_J_PROCESS_INDEX_'], launcher="multiple",
                   stdout_path=tmp_path / "out", resources=ResourceSpecV1(process_count=3))
    job = Job(spec)
    JobExecutor.get_instance("local", config=config).submit(job)
    status = job.wait(timedelta(seconds=30))
    assert status is not None and (status.state, status.exit_code) == (JobState.FAILED, 1)
    assert (tmp_path / "out").read_text() == "localhost\n" * 9


OPTIONS: dict[str, object] = {
    "srun.exclusive": True, "srun.cpu-bind": "cores", "srun.c": 4, "srun.gone": None, "srun.off": False,
    "mpirun.map-by": "node", "mpirun.x": ["ONE", "TWO"], "jsrun.rs_per_host": 2, "aprun.d": 8, "AprunX.y": 1}


@pytest.mark.parametrize(("name", "options"), [
    ("srun", "--exclusive --cpu-bind=cores -c 4"), ("mpirun", "--map-by node -x ONE -x TWO"),
    ("jsrun", "--rs_per_host=2"), ("aprun", "-d 8")])
def test_options_of_the_tool(name: str, options: str, config: JobExecutorConfig, tmp_path: Path) -> None:
    script(tmp_path / name, '#!/bin/sh\necho "$0 $*"\n')
    attributes = JobAttributes(custom_attributes={f"launcher.{one}": value for one, value in OPTIONS.items()})
    spec = JobSpec("/bin/echo", ["a"], resources=ResourceSpecV1(process_count=4), attributes=attributes,
                   stdout_path=tmp_path / "out")
    run = launched(name, spec, config, tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "out").read_text() == f"{tmp_path / TOOLS[name]} 4 {options} /bin/echo a\n"


@pytest.mark.parametrize(("option", "message"), [
    ("srun.ntasks", "cannot be used: how many processes there are is said by the resources"),
    ("srun.--exclusive", "cannot be used: an option is letters, digits and -, with none of these dashes before it")])
def test_options_that_cannot_be_given(option: str, message: str, tmp_path: Path) -> None:
    attributes = JobAttributes(custom_attributes={f"launcher.{option}": "1"})
    job = Job(JobSpec("/bin/true", launcher="srun", attributes=attributes))
    with pytest.raises(InvalidJobException) as raised:
        JobExecutor.get_instance("local", config=JobExecutorConfig(work_directory=tmp_path)).submit(job)
    assert raised.value.message == f"custom attribute 'launcher.{option}' {message}"
    assert job.status.state is JobState.NEW


@pytest.mark.parametrize(("text", "folder"), [
    ("", JobExecutorConfig.DEFAULT_WORK_DIRECTORY), ("/scratch/psij", Path("/scratch/psij")),
    ("~/elsewhere", Path.home() / "elsewhere"), ("near", Path.cwd() / "near")])
def test_the_work_directory_by_the_environment(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSIJ_WORK_DIRECTORY", text)
    assert JobExecutorConfig().work_directory == folder
    assert BatchSchedulerExecutorConfig().work_directory == folder
    assert JobExecutorConfig(work_directory="/stated").work_directory == Path("/stated")
