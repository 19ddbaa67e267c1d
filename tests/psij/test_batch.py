"""The base of batch executors: a third-party executor in psij-python's form, commands, files, evidence, quoting."""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psij import (
    InvalidJobException,
    Job,
    JobAttributes,
    JobExecutor,
    JobExecutorConfig,
    JobSpec,
    JobState,
    JobStatus,
    ResourceSpecV1,
    SubmitException,
)
from psij.exceptions import InvalidStateException
from psij.executors.batch import _command, _lookout, template_function_library
from psij.executors.batch._command import OutputLimitError, run
from psij.executors.batch._evidence import Evidence, decide, is_of_an_earlier_run
from psij.executors.batch._files import ExitFile, exit_file, output_tail, starts
from psij.executors.batch._followed import Followed
from psij.executors.batch._host import HERE
from psij.executors.batch._lookout import Lookout
from psij.executors.batch._watch import Watcher, watcher_of
from psij.executors.batch.batch_scheduler_executor import (
    UNKNOWN_ERROR,
    BatchSchedulerExecutor,
    BatchSchedulerExecutorConfig,
    InvalidJobStateError,
    check_status_exit_code,
)
from psij.executors.batch.escape_functions import bash_escape
from psij.executors.batch.script_generator import TemplatedScriptGenerator
from psij.executors.batch.slurm import SlurmJobExecutor
from psij.references import pieces
from psij.staging import StageIn, StageOut, StageOutFlags, StagingMode
from sssjob.lrm.hostlist import hosts
from sssjob.templates import UnquotedError, environment
from sssjob.templates.quoting import FILTERS, Directive, Quoted, QuotingError, expanding_word, sbatch, slurm_path, word
from tests.fakes import slurm
from tests.gate import until_there
from tests.psij.batch_support import Stand, a_job, ended, stand_in
from tests.strategies import examples

Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))

HOSTILE = [
    "plain", "", " ", "a b", "it's", 'say "x"', "$(id)", "`id`", "$HOME", "${", "$x${}", "a;b&c|d", "back\\slash", "\\",
    "a\\", "*?[x]", "~", "~root", "-o", "--", "#", "a #b", "line\nbreak", "\n#SBATCH --nice=1", "\r\n", "tab\there",
    "\x0b\x0c", "\x1b[31m", "\x7f", "nel\x85x", "ls\u2028ps\u2029x", "bidi\u202eevil\u2066", "nåme ☃ 𝛑", "\udcff\udc80",
    "{{ x }}", "{% x %}", "{{{y}}}", "!history!", "%j%x%%", "'\"'\"'", "\x01\x02", "x" * 5000]


# --- a third-party executor ----------------------------------------------------------------------------------------

TEMPLATE = """#!/bin/bash
{{#job.spec.attributes.queue_name}}
#SBATCH --partition="{{.}}"
{{/job.spec.attributes.queue_name}}
{{#formatted_job_duration}}
#SBATCH --time={{.}}
{{/formatted_job_duration}}
{{#custom_attributes.theirs}}
#SBATCH --{{key}}="{{value}}"
{{/custom_attributes.theirs}}
{{^job.spec.inherit_environment}}
#SBATCH --export=NONE
{{/job.spec.inherit_environment}}

exec >"{{psij.script_dir}}/$SLURM_JOB_ID.out" 2>&1
{{>batch_lib}}
{{#job.spec.directory}}
cd "{{.}}"
{{/job.spec.directory}}
export PSIJ_NODEFILE="{{psij.script_dir}}/$SLURM_JOB_ID.nodefile"
echo localhost >"$PSIJ_NODEFILE"
{{#env}}
export {{name}}="{{value}}"
{{/env}}
_psij_update_status ACTIVE
{{#psij.launch_command}}{{.}} {{/psij.launch_command}}
_PSIJ_JOB_EC=$?
echo $_PSIJ_JOB_EC >"{{psij.script_dir}}/$SLURM_JOB_ID.ec"
echo "_PSIJ_SCRIPT_DONE"
"""


class TheirExecutor(BatchSchedulerExecutor):
    """As executors for psij-python are written: hooks only, with that package's habits."""

    _STATES: ClassVar = {"PENDING": JobState.QUEUED, "RUNNING": JobState.ACTIVE,
                         "COMPLETED": JobState.COMPLETED, "FAILED": JobState.FAILED, "CANCELLED": JobState.CANCELED}

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        if not config:
            config = BatchSchedulerExecutorConfig()
        super().__init__(url=url, config=config)
        path = config.work_directory / "their.mustache"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEMPLATE)
        self.generator = TemplatedScriptGenerator(config, path)

    def generate_submit_script(self, job: Job, context: dict[str, object], submit_file: IO[str]) -> None:
        self.generator.generate_submit_script(job, context, submit_file)

    def get_submit_command(self, job: Job, submit_file_path: Path) -> list[str]:
        return ["sbatch", str(submit_file_path.absolute())]

    def job_id_from_submit_output(self, out: str) -> str:
        return out.strip().split()[-1]

    def get_cancel_command(self, native_id: str) -> list[str]:
        return ["scancel", native_id]

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        if "finished" in out:
            raise InvalidJobStateError()
        raise SubmitException(f"Failed to cancel: {out}")

    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        return ["squeue", "-t", "all", "-o", "%i|%T"]

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, JobStatus]:
        check_status_exit_code("squeue", exit_code, out)
        found = {}
        for line in out.split("\n")[1:]:
            if line:
                native_id, state = line.split("|")
                found[native_id] = JobStatus(self._STATES[state])
        return found

    def get_list_command(self) -> list[str]:
        return ["squeue", "-h", "-o", "%i"]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand_in(slurm, TheirExecutor, tmp_path, monkeypatch) as stand:
        yield stand


def test_theirs_whole_way(theirs: Stand, tmp_path: Path) -> None:
    job = a_job('echo "$V"; sleep 0.5', stdout_path=tmp_path / "o", environment={"V": "it's \"x\" $HOME"})
    theirs.executor.submit(job)
    assert theirs.executor.list() == [job.native_id]
    status = ended(job)
    assert theirs.states(job) == [Q, A, C] and status.exit_code == 0
    assert (tmp_path / "o").read_text() == "it's \"x\" $HOME\n"
    assert theirs.files() == []


def test_theirs_ends(theirs: Stand) -> None:
    jobs = [a_job("exit 7"), a_job("sleep 30")]
    for job in jobs:
        theirs.executor.submit(job)
    jobs[1].wait(timedelta(seconds=60), A)
    jobs[1].cancel()
    assert [(ended(job).state, job.status.exit_code) for job in jobs] == [(F, 7), (X, None)]


@pytest.mark.parametrize("code", [0, 7])
def test_theirs_missing_from_the_answer(theirs: Stand, code: int) -> None:
    """Their rule: a job that is not listed has ended, and its code is in the exit file."""
    theirs.lab.set(forget=0)
    job = a_job(f"exit {code}")
    theirs.executor.submit(job)
    assert ended(job).exit_code == code
    assert theirs.states(job)[-1] is (F if code else C)


def test_theirs_missing_without_exit_file(theirs: Stand) -> None:
    """P3: where psij-python says COMPLETED, nothing is known."""
    job = a_job("sleep 30")
    theirs.executor.submit(job)
    job.wait(timedelta(seconds=60), A)
    theirs.lab.drop(job.native_id or "")
    status = ended(job)
    assert (status.state, status.exit_code, (status.metadata or {})["reason"]) == (F, None, "lost")


def test_theirs_parser_raises(theirs: Stand) -> None:
    """E22: an unknown word makes their parser raise; no state changes, and it goes on afterwards."""
    job = a_job("sleep 0.2; exit 3")
    theirs.executor.submit(job)
    theirs.lab.fault("squeue", times=3, stdout="JOBID|STATE\n1|TELEPORTING\n")
    assert ended(job).exit_code == 3


def test_theirs_cancel_refused(theirs: Stand) -> None:
    job = a_job("sleep 30")
    theirs.executor.submit(job)
    theirs.lab.fault("scancel", exit=1, stderr="no permission")
    with pytest.raises(SubmitException, match="Failed to cancel: no permission"):
        job.cancel()
    theirs.lab.fault("scancel", exit=1, stderr="it has finished")
    job.cancel()
    assert not job.status.final


def test_theirs_submission_without_answer(theirs: Stand) -> None:
    """P2: nothing is known of the job and nothing can be found out: not transient, so that nobody tries again."""
    theirs.lab.fault("sbatch", after=True, stdout="")
    with pytest.raises(SubmitException, match="Nobody knows") as raised:
        theirs.executor.submit(a_job("true"))
    assert not raised.value.transient


@pytest.mark.parametrize("queue", ["a\n#SBATCH --nice=1", 'a"b', "a\x85b"])
def test_theirs_directive_injection(theirs: Stand, queue: str) -> None:
    with pytest.raises(InvalidJobException, match=r"attributes\.queue_name"):
        theirs.executor.submit(a_job("true", attributes=JobAttributes(queue_name=queue)))
    assert theirs.files() == [] and theirs.lab.jobs() == []


def test_theirs_values_in_quotes(theirs: Stand, tmp_path: Path) -> None:
    """A value inside double quotes of a template reaches the job as it is."""
    script = "\n".join(f"{render_theirs(theirs, {'V': value})}\nprintf '%s\\0' \"$V\"" for value in HOSTILE)
    out = subprocess.run(["/bin/bash", "-c", script], stdout=subprocess.PIPE, check=True).stdout
    assert out.split(b"\0") == [*map(os.fsencode, HOSTILE), b""]


def render_theirs(theirs: Stand, environment: dict[str, str]) -> str:
    job = a_job("true", environment=environment)
    text = StringIO()
    theirs.executor.generate_submit_script(job, theirs.executor._create_script_context(job), text)
    return next(line for line in text.getvalue().split("\n") if line.startswith("export V"))


def test_context(theirs: Stand) -> None:
    job = a_job("true", environment={"A": 1}, attributes=JobAttributes(timedelta(seconds=90), custom_attributes={
        "Theirs.x": 1, "theirs.y": "z", "plain": 5}))
    context = theirs.executor._create_script_context(job)
    psij = context.pop("psij")
    assert context == {"job": job, "env": [{"name": "A", "value": "1"}], "formatted_job_duration": "0:01:30",
                       "custom_attributes": {"theirs": [{"key": "x", "value": 1}, {"key": "y", "value": "z"}],
                                             "plain": 5}}
    assert psij["lib"] is template_function_library.ALL and psij["launch_command"][-3:] == ["/bin/bash", "-c", "true"]
    assert psij["script_dir"] == str(theirs.executor.work_directory)


def test_template_functions(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{{#psij.lib.walltime_to_minutes}}{{formatted_job_duration}}"
                                "{{/psij.lib.walltime_to_minutes}} {{job.status.state}} {{t}}{{f}}{{n}} {{{raw}}}")
    out = StringIO()
    context: dict[str, object] = {"psij": {"lib": template_function_library.ALL}, "formatted_job_duration": "1:00:01",
                                  "job": Job(), "t": True, "f": False, "n": None, "raw": "<&'>"}
    TemplatedScriptGenerator(JobExecutorConfig(), tmp_path / "t").generate_submit_script(Job(), context, out)
    assert out.getvalue() == "61 0 10'' <&'>"
    assert [template_function_library.walltime_to_minutes(text) for text in ("0:30", "90", "30 s", "1:00:00")] == [
        30, 90, 1, 60]


def test_own_escape_function(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("{{a}}")
    out = StringIO()
    generator = TemplatedScriptGenerator(JobExecutorConfig(), tmp_path / "t", escape=lambda text: f"<{text}>")
    generator.generate_submit_script(Job(), {"a": "x y"}, out)
    assert out.getvalue() == "<x y>"


# --- the interface -------------------------------------------------------------------------------------------------

def test_config(monkeypatch: pytest.MonkeyPatch) -> None:
    config = BatchSchedulerExecutorConfig()
    assert (config.queue_polling_interval, config.initial_queue_polling_delay, config.queue_polling_error_threshold,
            config.keep_files) == (30, 2, 2, False)
    assert config.work_directory == JobExecutorConfig.DEFAULT_WORK_DIRECTORY
    monkeypatch.setenv("PSIJ_BATCH_KEEP_FILES", "")
    assert BatchSchedulerExecutorConfig(None, None, 5, 1, 3).keep_files
    plain = JobExecutorConfig(Path("log"), Path("work"))
    made = BatchSchedulerExecutorConfig._from_config(plain)
    assert (made.launcher_log_file, made.work_directory) == (Path("log"), Path("work"))
    assert SlurmJobExecutor(config=plain).config.queue_polling_interval == 30
    assert BatchSchedulerExecutorConfig._from_config(config) is config


def test_names() -> None:
    assert JobExecutor.get_instance("Slurm").name == "Slurm"
    assert SlurmJobExecutor().name == "slurm" and SlurmJobExecutor().work_directory.name == "slurm"
    with pytest.raises(RuntimeError, match=UNKNOWN_ERROR):
        check_status_exit_code("squeue", 1, "")
    check_status_exit_code("squeue", 0, "")


def test_cancel_of_foreign_jobs(theirs: Stand) -> None:
    with pytest.raises(InvalidStateException):
        theirs.executor.cancel(a_job("true"))
    with pytest.raises(InvalidStateException):
        a_job("true").cancel()


def test_submitted_twice(theirs: Stand) -> None:
    job = a_job("sleep 1")
    theirs.executor.submit(job)
    with pytest.raises(InvalidJobException):
        theirs.executor.submit(job)
    assert len(theirs.lab.jobs()) == 1


# --- staging -------------------------------------------------------------------------------------------------------

IN, OUT, CLEAN = (JobState[name] for name in ("STAGE_IN", "STAGE_OUT", "CLEANUP"))


def a_staging_job(folder: Path, script: str, **members: Any) -> Job:
    """A job with a directory ``job``, a file ``given`` to be staged in as ``in``, and ``out`` to be brought back."""
    (folder / "job").mkdir(exist_ok=True)
    (folder / "given").write_text("given")
    return a_job(script, **{"directory": folder / "job", "stage_in": {StageIn(folder / "given", "in")},
                            "stage_out": {StageOut("out", folder / "got")}, "cleanup": {"in", "out"}, **members})


@pytest.fixture(params=[TheirExecutor, SlurmJobExecutor])
def either(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand_in(slurm, request.param, tmp_path, monkeypatch) as stand:
        yield stand


def test_staging(either: Stand, tmp_path: Path) -> None:
    job = a_staging_job(tmp_path, "cat in in >out; sleep 0.3")
    either.executor.submit(job)
    assert ended(job).state is C and either.states(job) == [Q, IN, A, OUT, CLEAN, C]
    assert (tmp_path / "got").read_text() == "givengiven" and list((tmp_path / "job").iterdir()) == []
    assert either.executor._staging.staged == {} and either.executor._staging.fetching == set()


@pytest.mark.parametrize(("flags", "script", "got"), [
    (StageOutFlags.ON_ERROR, "echo x >out; exit 3", True), (StageOutFlags.ON_SUCCESS, "echo x >out; exit 3", False),
    (StageOutFlags.ON_ERROR, "echo x >out", False)])
def test_staging_by_the_end(theirs: Stand, tmp_path: Path, flags: StageOutFlags, script: str, got: bool) -> None:
    job = a_staging_job(tmp_path, script, stage_out={StageOut("out", tmp_path / "got", flags)})
    theirs.executor.submit(job)
    ended(job)
    assert (tmp_path / "got").exists() is got


def test_staging_of_a_canceled_job(either: Stand, tmp_path: Path) -> None:
    """The resource manager has killed its script: what it has made is brought all the same."""
    job = a_staging_job(tmp_path, "echo x >out; sleep 30",
                        stage_out={StageOut("out", tmp_path / "got", StageOutFlags.ON_CANCEL)})
    either.executor.submit(job)
    while not (tmp_path / "job/out").exists():
        time.sleep(0.05)
    job.wait(timedelta(seconds=60), A)
    job.cancel()
    assert ended(job).state is X and either.states(job) == [Q, IN, A, OUT, CLEAN, X]
    assert (tmp_path / "got").read_text() == "x\n"


def test_staging_of_a_job_that_never_ran(theirs: Stand, tmp_path: Path) -> None:
    theirs.lab.set(wait=30)
    job = a_staging_job(tmp_path, "true")
    theirs.executor.submit(job)
    job.cancel()
    assert ended(job).state is X and theirs.states(job) == [Q, X]
    assert list((tmp_path / "job").iterdir()) == []


def test_nothing_to_stage_in(theirs: Stand, tmp_path: Path) -> None:
    """As with the local executor: the job is FAILED, and was not submitted."""
    job = a_staging_job(tmp_path, "true")
    (tmp_path / "given").unlink()
    theirs.executor.submit(job)
    assert (job.status.state, (job.status.metadata or {})["reason"]) == (F, "stage-in")
    assert "given does not exist" in (job.status.message or "") and theirs.lab.jobs() == []
    assert theirs.states(job) == [Q, IN, F]


def test_nothing_to_stage_out(theirs: Stand, tmp_path: Path) -> None:
    job = a_staging_job(tmp_path, "true")
    theirs.executor.submit(job)
    status = ended(job)
    assert (status.state, (status.metadata or {})["reason"], status.exit_code) == (F, "stage-out", 0)
    assert (tmp_path / "job/in").exists()       # what could not be fetched is not removed


def test_staging_and_a_second_try(theirs: Stand, tmp_path: Path) -> None:
    """A file that was moved at the first try is not looked for at the second one."""
    job = a_staging_job(tmp_path, "cat in >out", stage_in={StageIn(tmp_path / "given", "in", StagingMode.MOVE)})
    theirs.lab.fault("sbatch", exit=1, stderr="not now")
    with pytest.raises(SubmitException, match="not now"):
        theirs.executor.submit(job)
    assert job.status.state is JobState.NEW and not (tmp_path / "given").exists()
    theirs.executor.submit(job)
    assert ended(job).state is C and (tmp_path / "got").read_text() == "given"


def test_staging_of_a_lost_job(theirs: Stand, tmp_path: Path) -> None:
    """It may be running: its files are left alone."""
    job = a_staging_job(tmp_path, "sleep 30")
    theirs.executor.submit(job)
    job.wait(timedelta(seconds=60), A)
    theirs.lab.drop(job.native_id or "")
    assert (ended(job).metadata or {})["reason"] == "lost"
    assert (tmp_path / "job/in").exists() and not (tmp_path / "got").exists()


def test_canceled_while_staging(theirs: Stand, tmp_path: Path) -> None:
    job = a_staging_job(tmp_path, "true")
    theirs.executor._cancel_later.add(job.id)       # as by another thread
    theirs.executor.submit(job)
    assert theirs.states(job) == [Q, IN, X] and theirs.lab.jobs() == [] and theirs.executor._cancel_later == set()
    second = a_staging_job(tmp_path, "echo x >out")
    theirs.executor.submit(second)
    with theirs.executor._lock:
        theirs.executor._staging.fetching.add(second.id)    # as if it had ended
    second.cancel()
    assert ended(second).state is X and theirs.states(second) == [Q, IN, A, OUT, X]
    assert not (tmp_path / "got").exists() and theirs.executor._staging.fetching == set()


@pytest.mark.parametrize("members", [{"cleanup": {"../x"}}, {"stage_in": {StageIn("http://host/x", "in")}}])
def test_staging_that_is_refused(theirs: Stand, tmp_path: Path, members: dict[str, Any]) -> None:
    with pytest.raises(InvalidJobException, match=r"cleanup|stage_in"):
        theirs.executor.submit(a_staging_job(tmp_path, "true", **members))
    assert theirs.lab.jobs() == [] and list((tmp_path / "job").iterdir()) == []


# --- the rest of the interface -------------------------------------------------------------------------------------

@pytest.mark.parametrize("spelling", ["both", "./both", "{}/both"])
def test_both_outputs_in_one_file(either: Stand, tmp_path: Path, spelling: str) -> None:
    """Nothing is overwritten, and what comes first stands first."""
    (tmp_path / "both").write_text("of an earlier job\n" * 10)
    script = "for n in 1 2 3; do echo out $n; echo err $n >&2; done"
    job = a_job(script, directory=tmp_path, stdout_path="both", stderr_path=spelling.format(tmp_path))
    either.executor.submit(job)
    assert ended(job).exit_code == 0
    assert (tmp_path / "both").read_text() == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"


def test_cancel_while_submitting(theirs: Stand) -> None:
    """E32: remembered until the native id is known."""
    theirs.lab.fault("sbatch", after=True, sleep=1, stdout="1\n")
    job = a_job("sleep 30")
    thread = threading.Thread(target=theirs.executor.submit, args=(job,))
    thread.start()
    time.sleep(0.3)
    job.cancel()
    thread.join()
    assert ended(job).state is X


def test_callbacks_may_submit_and_block(theirs: Stand) -> None:
    """E29, E30."""
    second = a_job("exit 2")

    def told(job: Job, status: JobStatus) -> None:
        if status.state is A:
            theirs.executor.submit(second)
            raise RuntimeError("from the callback")

    first = a_job("sleep 0.3")
    first.set_job_status_callback(told)
    theirs.executor.submit(first)
    assert ended(first).state is C
    assert ended(second).exit_code == 2


def test_one_command_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P7, E49: the jobs of two executors of one manager are asked for with one command, by one thread."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, virtual=True, queue_polling_interval=1,
                  initial_queue_polling_delay=1) as stand:
        other = SlurmJobExecutor(config=stand.executor.config)
        jobs = [a_job("sleep 2") for _ in range(4)]
        for number, job in enumerate(jobs):
            (other if number % 2 else stand.executor).submit(job)
        time.sleep(1.5)
        assert len(stand.lab.calls("squeue")) == 1
        assert [t.name for t in threading.enumerate()].count("psij-slurm-queue") == 1
        assert [ended(job).state for job in jobs] == [C] * 4


def test_threads_end(theirs: Stand) -> None:
    job = a_job("true")
    theirs.executor.submit(job)
    ended(job)
    until = time.monotonic() + 60
    while time.monotonic() < until and any("TheirExecutor" in thread.name for thread in threading.enumerate()):
        time.sleep(0.1)
    assert not [thread.name for thread in threading.enumerate() if "TheirExecutor" in thread.name]


KILLED = """
import os, sys
from psij import Job, JobSpec
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor

class Executor(SlurmJobExecutor):
    def job_id_from_submit_output(self, out):
        os.kill(os.getpid(), 9)

job = Job(JobSpec("/bin/sleep", ["1"]))
print(job.id, flush=True)
Executor(config=BatchSchedulerExecutorConfig(work_directory=sys.argv[1])).submit(job)
"""


def test_client_killed_before_it_knew_the_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1, E12: the native job has our id in it, so that another process finds it and follows it."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch) as stand:
        killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "work"], stdout=subprocess.PIPE, text=True)
        assert killed.returncode == -9
        native_id = stand.executor.native_id_of(killed.stdout.strip())
        assert native_id == "1" and stand.executor.native_id_of("another") is None
        job = Job()
        stand.executor.attach(job, native_id)
        assert ended(job).state is C
        stand.lab.fault("squeue", times=-1, exit=1)
        with pytest.raises(SubmitException, match="does not say"):
            stand.executor.native_id_of("another")


def test_again_after_a_rest(theirs: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that has retired is followed by another."""
    monkeypatch.setattr("psij.executors.batch._agenda._LINGER_S", 0.2)
    for _ in range(2):
        job = a_job("exit 3")
        theirs.executor.submit(job)
        assert ended(job).exit_code == 3
        watcher, until = watcher_of(theirs.executor), time.monotonic() + 60
        while not (watcher is not None and watcher.retired):
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.parametrize(("number", "transient"), [(errno.EAGAIN, True), (errno.EMFILE, True), (errno.ENOMEM, True),
                                                   (errno.EACCES, False), (errno.ENOEXEC, False)])
def test_system_is_out_of_something(theirs: Stand, monkeypatch: pytest.MonkeyPatch, number: int,
                                    transient: bool) -> None:
    """E08, E43, E44: no command could be started, so that no job was made."""
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawn", fail)
        with pytest.raises(SubmitException, match=os.strerror(number)) as raised:
            theirs.executor.submit(a_job("true"))
    assert raised.value.transient is transient and theirs.files() == []


def test_disk_is_full(theirs: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """E38: refused before the manager is asked."""
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(type(HERE), "write", fail)
    with pytest.raises(SubmitException, match=rf"cannot be written: {theirs.executor.work_directory}: No space left"):
        theirs.executor.submit(a_job("true"))
    assert theirs.lab.calls("sbatch") == [] and theirs.files() == []


class Chunked(TheirExecutor):
    def get_status_command(self, native_ids: Iterable[str]) -> list[str]:
        return ["ask", *native_ids]


def test_chunks(tmp_path: Path) -> None:
    """E49: ids are handed over in pieces, unless the command is the same for all."""
    config = BatchSchedulerExecutorConfig(work_directory=tmp_path)
    ids = [str(number) for number in range(1200)]
    assert [len(command) for _, command in Chunked(config=config)._status_commands(ids)] == [501, 501, 201]
    theirs = TheirExecutor(config=config)._status_commands(ids)
    assert [(len(of), len(command)) for of, command in theirs] == [(1200, 5)]


@pytest.mark.parametrize("cls", [TheirExecutor, SlurmJobExecutor])
def test_two_watchers_of_one_exit_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       cls: type[BatchSchedulerExecutor]) -> None:
    """E47: somebody else's attachment keeps the exit file, and takes it away in the end."""
    with stand_in(slurm, cls, tmp_path, monkeypatch) as stand:
        stand.lab.set(forget=0, accounting=False)
        first, second = a_job(f"{until_there(tmp_path / 'go')}; exit 9"), Job()
        stand.executor.submit(first)
        cls(config=stand.executor.config).attach(second, first.native_id or "")
        (tmp_path / "go").touch()
        assert (ended(first).exit_code, ended(second).exit_code) == (9, 9)
        assert cls is TheirExecutor or stand.files() == []


# --- records -------------------------------------------------------------------------------------------------------

SLOW: dict[str, Any] = {"queue_polling_interval": 30, "initial_queue_polling_delay": 30}


@pytest.mark.parametrize("cls", [TheirExecutor, SlurmJobExecutor])
def test_news_come_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cls: type[BatchSchedulerExecutor]) -> None:
    """Starts and ends are told within seconds, though the queue is asked every thirty; few questions are asked."""
    with stand_in(slurm, cls, tmp_path, monkeypatch, **SLOW) as stand:
        stand.lab.set(wait=0.5)
        job = a_job("sleep 1; exit 3")
        stand.executor.submit(job)
        assert job.wait(timedelta(seconds=60), A) is not None and not stand.lab.calls("squeue")
        metadata = job.status.metadata or {}
        assert metadata["sources"] == {"start_time": "start-record"} and job.status.time == metadata["start_time"]
        assert ended(job, 6).exit_code == 3 and len(stand.lab.calls("squeue")) < 6
        assert stand.states(job) == [Q, A, F]
        assert cls is TheirExecutor or stand.files() == []


def test_an_exit_record_is_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P3, P7: it has the queue asked, in pauses that grow; the job ends when the resource manager says so."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, virtual=True, **SLOW) as stand:
        job = a_job("sleep 30")
        stand.executor.submit(job)
        stand.lab.tick()                # its start record
        assert job.wait(timedelta(seconds=60), A) is not None and not stand.lab.calls("squeue")
        (stand.executor.work_directory / f"1.{job.id}.ec").write_text(f"0\n{job.id}\n1\n2\n")
        until = time.monotonic() + 60       # a look that was slow, on a busy machine, makes the next one late
        while len(stand.lab.calls("squeue")) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)
        assert job.status.state is A and 2 <= len(stand.lab.calls("squeue")) <= 10
        stand.lab.cancel(stand.lab.jobs()[0])
        assert ended(job).state is X


def test_told_before_it_was_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that came between submission and following had the job's line, which is the same in the next."""
    executor, watcher = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path)), Watcher(("test",))
    monkeypatch.setattr(executor, "_run_command", lambda _: "JOBID|STATE|\n" + "".join(
        f"{number}|RUNNING|None|1|2|3|1|1|n1|q|normal\n" for number in (1, 2)))
    items = [Followed(executor, Job(), native_id, True) for native_id in ("1", "2")]
    watcher._poll(items[:1], ["1"])
    watcher._followed = {item.job: item for item in items}
    for _ in range(2):
        watcher._poll(items, ["1", "2"])
    assert [item.job.status.state for item in items] == [A, A]


def test_an_end_of_before_a_job_was_put_back_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated Slurm put back a job that had just ended; the answer that was under way had its end."""
    executor, watcher = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path)), Watcher(("test",))
    item = Followed(executor, Job(), "1", True)
    watcher._followed, item.queue, item.ended_at = {item.job: item}, JobStatus(F), 1.0

    def answer(state: str, is_put_back: bool) -> None:
        def run(_: list[str]) -> str:
            with watcher.putting_back(item.job) if is_put_back else nullcontext():
                return f"JOBID|STATE|\n1|{state}|None|1|2|3|1|1|n1|q|normal\n"

        monkeypatch.setattr(executor, "_run_command", run)
        watcher._poll([item], ["1"])

    answer("FAILED", True)
    assert [item.queue, item.ended_at] == [None, None]
    answer("RUNNING", False)
    assert item.job.status.state is A and not item.wanted
    watcher.forget(item.job)        # its end is told
    with watcher.putting_back(item.job) as may_run:
        assert not may_run


def test_many_ends_are_one_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, **SLOW) as stand:
        stand.lab.set(wait=3)
        jobs = [a_job("true") for _ in range(12)]
        for job in jobs:
            stand.executor.submit(job)
        assert [ended(job).state for job in jobs] == [C] * 12
        assert len(stand.lab.calls("squeue")) < 12


@pytest.mark.parametrize("record", ["another 1\n", "", "garbage"])
def test_start_records_that_are_none(theirs: Stand, record: str) -> None:
    """E51, P3: of another job, or not whole."""
    theirs.lab.set(wait=30)
    job = a_job("true")
    theirs.executor.submit(job)
    (theirs.executor.work_directory / "1.start").write_text(record)
    assert job.wait(timedelta(seconds=1.5), A) is None


def test_start_record_of_an_attached_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be an old one: the queue decides, and is asked at once."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, virtual=True, **SLOW) as stand:
        stand.lab.set(wait=30)
        first, second = a_job("true"), Job()
        stand.executor.submit(first)
        stand.executor.attach(second, "1")
        assert second.wait(timedelta(seconds=60), Q) is not None
        before, until = len(stand.lab.calls("squeue")), time.monotonic() + 60
        (stand.executor.work_directory / f"1.{first.id}.start").write_text("older 1\n")
        while len(stand.lab.calls("squeue")) == before:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert second.wait(timedelta(seconds=0.5), A) is None and first.status.state is Q


def test_every_start_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E26: a job that was put back into the queue between two questions."""
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, **SLOW) as stand:
        stand.lab.set(wait=1)
        job = a_job("exit 3")
        stand.executor.submit(job)
        (stand.executor.work_directory / f"1.{job.id}.start").write_text(f"{job.id} 5\n")
        status = ended(job)
        assert (status.metadata or {})["starts"] == 2 and stand.states(job) == [Q, A, F]


@pytest.mark.parametrize(("text", "times"), [
    ("job 1\njob 25\n", [1.0, 25.0]), ("other 1\njob 2\n", [2.0]), ("", []), ("job\n", []), ("job x\n", []),
    ("other 3\n", []), ("job 1", [1.0])])
def test_starts(tmp_path: Path, text: str, times: list[float]) -> None:
    (tmp_path / "1.start").write_text(text)
    assert starts(tmp_path / "1.start", "job") == times
    assert starts(tmp_path / "2.start", "job") == []


def test_records_of_others_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can make an end: not by a file, a link, a pipe, or a directory."""
    (tmp_path / "1.ec").write_text("0\n")
    (tmp_path / "2.ec").symlink_to(tmp_path / "1.ec")
    os.mkfifo(tmp_path / "3.ec")
    (tmp_path / "4.ec").mkdir()
    assert [exit_file(tmp_path / f"{n}.ec", None) for n in range(1, 5)] == [ExitFile(0), None, None, None]
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert exit_file(tmp_path / "1.ec", None) is None
        with pytest.raises(PermissionError, match="belongs to another user"):
            HERE.make_private(tmp_path)


def test_a_directory_that_cannot_be_listed_is_listed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E43: out of descriptors when a record came, and nothing changes afterwards: it is found all the same."""
    lookout = Lookout()
    item = Followed(SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path)), Job(), "1", True)
    item.directory = str(tmp_path)
    lookout.want(item)
    (tmp_path / f"1.{item.job.id}.ec").touch()
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", _out_of_descriptors)
        assert list(lookout.listings()) == []
    lookout._folders[str(tmp_path)].again = lookout._due = 0.0       # it has been so for a long time
    assert list(lookout.listings()) == [(str(tmp_path), [f"1.{item.job.id}.ec"])]


def _out_of_descriptors(_: object) -> list[str]:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_lookout(tmp_path: Path) -> None:
    """Each record is found once by each who wants it, also where the directory's time of change does not tell."""
    executor = TheirExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    folder = executor.work_directory
    HERE.make_private(folder)
    (folder / "1.ec").touch()
    first, twin, second = (Followed(executor, Job(), native_id, True) for native_id in ("1", "1", "2.head"))
    lookout = Lookout()

    def found() -> list[tuple[Followed, str]]:
        lookout._due = 0.0
        return [one for directory, names in lookout.listings() for one in lookout.found(directory, names)]

    for item in (first, twin, second):
        lookout.want(item)
    assert found() == [(first, "1.ec"), (twin, "1.ec")] and found() == []
    before = folder.stat()
    (folder / "2.head.start").touch()
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found() == [(second, "2.head.start")]
    (folder / f"{first.job.id}.start").touch()
    lookout.drop(first)
    lookout.drop(first)
    assert found() == []
    for item in (twin, second):
        lookout.drop(item)
    assert list(lookout.listings()) == [] and lookout._folders == {}


def test_lookout_has_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking takes at most a twentieth of the time, however long a listing takes."""
    executor = TheirExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    executor.work_directory.mkdir()
    lookout = Lookout()
    lookout.want(Followed(executor, Job(), "1", True))
    now = [1000.0]
    monkeypatch.setattr(_lookout, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def slow(_: str) -> list[str]:
        now[0] += 0.1
        return ["x"]

    monkeypatch.setattr(os, "listdir", slow)
    assert [names for _, names in lookout.listings()] == [["x"]]
    assert lookout._due == pytest.approx(1002.1)
    now[0] += 1.9
    assert list(lookout.listings()) == []


# --- storms --------------------------------------------------------------------------------------------------------

NO_ROWS = "JOBID|STATE|REASON|SUBMIT_TIME\n"
FAULTS: dict[str, list[dict[str, Any]]] = {
    "squeue": [{"exit": 1, "stderr": "down"}, {"stdout": ""}, {"after": True, "cut": 150}, {"sleep": 2, "times": 1},
               {"stdout": NO_ROWS, "times": 1}, {"stdout": f"{NO_ROWS}1|NEW|x|y\n", "times": 1}],
    "sacct": [{"exit": 1, "stderr": "down"}, {"stdout": ""}, {"after": True, "cut": 300},
              {"stdout": "JobID|State\n", "times": 1}],
    "sbatch": [{"after": True, "stdout": ""}, {"after": True, "exit": 1, "stderr": "Socket timed out"},
               {"exit": 1, "stderr": "Unable to contact slurm controller"}, {"stdout": "", "times": 1}],
    "scancel": [{"exit": 1, "stderr": "down"}]}


def test_storm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P1 to P5: commands fail at random; when all is well again, every job ends as the manager knows it, and once.

    With programs and processes; ``tests/faults/plans.py`` storms inside, and further.
    """
    chance = random.Random(0)
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch, command_timeout=1, lost_after=1.5) as stand:
        stand.lab.set(forget=chance.choice([0, 1, 300]), lag=chance.choice([0, 0.5]), wait=chance.choice([0, 0.3]))
        accepted: dict[Job, int | None] = {}
        for _ in range(10):
            command = chance.choice(sorted(FAULTS))
            stand.lab.fault(command, **{"times": chance.randint(1, 4), **chance.choice(FAULTS[command])})
            code = chance.choice([0, 0, 3, None])
            job = a_job("sleep 60" if code is None else f"sleep {chance.uniform(0, 1):.2f}; exit {code}")
            with suppress(SubmitException):
                stand.executor.submit(job)
                accepted[job] = code
        for command in FAULTS:
            stand.lab.heal(command)
        stand.executor.config.lost_after = 60
        for job, code in accepted.items():
            if code is None:
                job.cancel()
        for job, code in accepted.items():
            status = ended(job, 30)
            assert (status.state, status.exit_code) == {None: (X, None), 0: (C, 0), 3: (F, 3)}[code]
            states = stand.states(job)
            assert states[0] is Q and states[-1] is status.state and len(set(states)) == len(states)
            assert states == sorted(states, key=lambda state: state.value)
        submitted = [native["command"] for native in stand.lab.jobs()]
        assert len(submitted) == len(set(submitted))
        assert {job.native_id for job in accepted} <= {native["id"] for native in stand.lab.jobs()}


# --- commands ------------------------------------------------------------------------------------------------------

def test_command_result() -> None:
    result = run(["/bin/sh", "-c", "echo out; echo err >&2; cat; exit 3"], 5)
    assert (result.exit_code, result.stdout, result.stderr, result.output) == (3, "out\n", "err\n", "out\nerr")
    assert run(["/bin/sh", "-c", "echo out; echo err >&2"], 5).output == "out\n"
    assert run(["/bin/sh", "-c", "kill -9 $$"], 5).exit_code == -9
    assert run([sys.executable, "-c", "print('\\udcff')"], 5, {b"PYTHONIOENCODING": b"utf-8:surrogateescape"}
               ).stdout == "\udcff\n"


def test_command_time_limit_ends_all_of_it(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run(["/bin/sh", "-c", f"(sleep 1.5; touch {tmp_path}/late) & sleep 30"], 0.5)
    assert time.monotonic() - began < 25
    time.sleep(1.5)
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_a_command_that_closes_its_output_is_waited_for(has_descriptors: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """To its end or to its time limit, also where the system has no descriptors of processes."""
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open")
    assert run(["/bin/sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 3"], 5).exit_code == 3
    with pytest.raises(subprocess.TimeoutExpired):
        run(["/bin/sh", "-c", "exec >&- 2>&-; sleep 30"], 0.1)


def test_command_output_limit() -> None:
    with pytest.raises(OutputLimitError, match="more than 100000 bytes"):
        run(["/bin/sh", "-c", "yes"], 10, limit=100_000)


def test_command_that_leaves_something_behind() -> None:
    began = time.monotonic()
    assert run(["/bin/sh", "-c", "sleep 60 & echo out"], 55).stdout == "out\n"
    assert time.monotonic() - began < 50


def test_command_that_does_not_exist() -> None:
    with pytest.raises(FileNotFoundError):
        run(["/nonexistent/command"], 5)


def test_commands_are_looked_for_in_the_path_that_they_get(tmp_path: Path) -> None:
    """What cannot be executed there is passed over, and told where nothing else can be."""
    (tmp_path / "told").mkdir()
    (tmp_path / "last").mkdir()
    (tmp_path / "told" / "qwords").touch()
    environment = {b"PATH": f"{tmp_path}/none:{tmp_path}/told:{tmp_path}/last:/bin".encode()}
    with pytest.raises(PermissionError, match="qwords"):
        run(["qwords"], 5, environment)
    with pytest.raises(FileNotFoundError, match="qunknown"):
        run(["qunknown"], 5, environment)
    (tmp_path / "last" / "qwords").write_text("#!/bin/sh\necho \"$PATH\"\n")
    (tmp_path / "last" / "qwords").chmod(0o755)
    assert run(["qwords"], 5, environment).stdout.strip().encode() == environment[b"PATH"]


@pytest.mark.parametrize("place", ["/dev/fd", "/nonexistent"])
def test_inheritable_descriptors_are_found_without_a_list(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc that lists them, too."""
    monkeypatch.setattr(_command, "_DESCRIPTORS", place)
    ours, handed_on = os.pipe()
    try:
        os.set_inheritable(handed_on, True)
        _command._inheritable.cache_clear()
        assert handed_on in _command._inheritable(0) and ours not in _command._inheritable(0)
    finally:
        _command._inheritable.cache_clear()
        os.close(ours)
        os.close(handed_on)


def test_a_system_that_closes_all_other_descriptors_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 can ask for it; a list of descriptors is up to a tenth of a second old."""
    monkeypatch.setattr(_command, "_CLOSE_FROM", 99)
    monkeypatch.setattr(os, "posix_spawn", lambda *_, file_actions, **__: file_actions)
    actions: Any = _command._spawned(["/bin/true"], {}, {1: 11})
    assert actions == [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, 11, 1), (99, 3)]


def test_commands_get_three_streams_of_ours_and_nothing_else() -> None:
    """Descriptors that this program has inherited are not theirs, nor the signals that Python ignores; they have their
    streams where this program has closed its own."""
    program = """if True:
        import os, sys
        from psij.executors.batch._command import run
        os.dup2(2, 77)
        report = os.dup(1)
        os.closerange(0, 3)
        result = run(["/bin/sh", "-c", "echo err >&2; cat; ls /proc/$$/fd; grep SigIgn /proc/$$/status"], 20)
        os.write(report, repr(result).encode())
    """
    result = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "stdout='0\\n1\\n2\\n" in result and "stderr='err\\n'" in result
    ignored = int(result.partition("SigIgn:\\t")[2][:16], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


# --- files ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "expected"), [
    ("0\n", ExitFile(0)), ("255", ExitFile(255)),
    ("3\njob\n1700000000\n1700000009\n", ExitFile(3, "job", 1.7e9, 1700000009.0)),
    ("3\njob\n\nx\n", ExitFile(3, "job")), ("3\nother\n1\n2\n", None), ("", None), ("\n", None), ("-1", None),
    ("256", None), ("99999", None), ("3\n4\n", None), ("٣", None), ("0x1", None)])
def test_exit_file(tmp_path: Path, text: str, expected: ExitFile | None) -> None:
    """E51, T32: an exit file that is empty, half there, or of another job is none."""
    (tmp_path / "1.ec").write_text(text, encoding="utf-8")
    assert exit_file(tmp_path / "1.ec", "job") == expected
    assert exit_file(tmp_path / "2.ec", "job") is None


def test_private_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    for folder in (tmp_path / "a", tmp_path / "b/c"):
        HERE.make_private(folder)
        assert folder.stat().st_mode & 0o777 == 0o700


def test_script_files(tmp_path: Path) -> None:
    path = tmp_path / "s"
    HERE.write(path, b"x\xff\n")
    assert path.read_bytes() == b"x\xff\n" and path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        HERE.write(path, b"")
    (tmp_path / "l").symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        HERE.write(tmp_path / "l", b"")
    assert not (tmp_path / "target").exists()


def test_old_files_are_removed(tmp_path: Path) -> None:
    for name in ("a.job", "b.ec", "other"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / "c.ec").touch()
    HERE.clear_old(tmp_path, time.time())
    assert sorted(os.listdir(tmp_path)) == ["c.ec", "other"]


def test_old_files_that_another_program_removes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E46: a file that goes while the directory is read stops no submission, and the others are removed."""
    for name in ("a.ec", "b.ec", "c.ec"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    entries = sorted(os.scandir(tmp_path), key=lambda entry: entry.name)
    (tmp_path / "b.ec").unlink()
    monkeypatch.setattr(os, "scandir", lambda _: iter(entries))
    HERE.clear_old(tmp_path, time.time())
    assert os.listdir(tmp_path) == []


def test_output_tail(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("trouble\n_PSIJ_SCRIPT_DONE\n")
    assert output_tail(tmp_path / "o") == ("trouble", True)
    (tmp_path / "p").write_text("x" * 20000 + "\nend")
    assert output_tail(tmp_path / "p")[0].endswith("x\nend") and len(output_tail(tmp_path / "p")[0]) <= 2048
    assert output_tail(tmp_path / "none") == ("", False)


# --- evidence ------------------------------------------------------------------------------------------------------

DONE = JobStatus(C, metadata={"native_state": "DONE", "end_time": 5.0, "nodes": None})
RUNS = JobStatus(A, metadata={"native_state": "RUN", "start_time": 1.0})
FELL = JobStatus(F, metadata={"reason": "node-failure"})
SLAIN = JobStatus(F, exit_code=137, metadata={"reason": "signal", "signal": 9})
NOTHING = Evidence(queue=RUNS, missed=1)


@pytest.mark.parametrize(("known", "state", "code", "source"), [
    (NOTHING, None, None, None),
    (replace(NOTHING, exit=ExitFile(0)), None, None, None),                                  # accounting may come yet
    (replace(NOTHING, exit=ExitFile(0), waited_s=11), C, 0, "exit-file"),
    (replace(NOTHING, exit=ExitFile(4), waited_s=11), F, 4, "exit-file"),
    (replace(NOTHING, exit=ExitFile(4), waited_s=11, in_queue=True), None, None, None),
    (replace(NOTHING, records={"acct": DONE}), C, None, None),
    (replace(NOTHING, records={"acct": DONE}, exit=ExitFile(0)), C, 0, "exit-file"),
    (replace(NOTHING, records={"acct": DONE}, exit=ExitFile(5)), F, 5, "exit-file"),         # the script hid its code
    (replace(NOTHING, records={"acct": DONE}, unwritten=True), None, None, None),       # by a signal, with PBS
    (replace(NOTHING, records={"acct": DONE}, unwritten=True, waited_s=11), C, None, None),
    (replace(NOTHING, records={"acct": RUNS}), A, None, None),
    (replace(NOTHING, records={"acct": RUNS}, exit=ExitFile(0), waited_s=11), C, 0, "exit-file"),
    (replace(NOTHING, queue=DONE, in_queue=True), None, None, None),
    (replace(NOTHING, queue=DONE, in_queue=True, waited_s=11), C, None, None),
    (replace(NOTHING, canceled=True, missed=2), None, None, None),
    (replace(NOTHING, canceled=True, missed=2, waited_s=11), X, None, None),
    (replace(NOTHING, canceled=True, unbegun=True, missed=1), None, None, None),
    (replace(NOTHING, canceled=True, unbegun=True, missed=2, silent_s=1), X, None, None),   # no record will come
    (replace(NOTHING, canceled=True, unbegun=True, missed=2, exit=ExitFile(3), waited_s=11), F, 3, "exit-file"),
    (replace(NOTHING, canceled=True, missed=2, waited_s=19, silent_s=10), None, None, None),     # accounting may know
    (replace(NOTHING, canceled=True, missed=2, waited_s=20, silent_s=10), X, None, None),
    (replace(NOTHING, canceled=True, missed=2, waited_s=60, silent_s=60), X, None, None),
    (replace(NOTHING, canceled=True, missed=2, waited_s=11, exit=ExitFile(0)), C, 0, "exit-file"),
    (replace(NOTHING, waited_s=59), None, None, None),
    (replace(NOTHING, waited_s=61), F, None, None),
    (replace(NOTHING, waited_s=100, silent_s=50), None, None, None),
    (replace(NOTHING, records={"acct": JobStatus(X)}, exit=ExitFile(0)), X, None, None),
    (replace(NOTHING, records={"acct": JobStatus(F, exit_code=137, metadata={"signal": 9})}, exit=ExitFile(1)), F, 137,
     "acct"),
    # a script that outlives its program writes down by which signal of our cancel that was killed, whoever tells first
    *((replace(NOTHING, canceled=canceled, wanted=not canceled, missed=2, waited_s=11, exit=ExitFile(code),
               records=records), X, None, None)
      for code in (143, 137) for canceled in (True, False) for records in (
          {}, {"acct": JobStatus(F, exit_code=code)}, {"acct": SLAIN})),
    (replace(NOTHING, canceled=True, records={"acct": JobStatus(F, exit_code=143)}), X, None, None),
    (replace(NOTHING, missed=2, waited_s=11, exit=ExitFile(143)), F, 143, "exit-file"),          # nobody asked for it
    (replace(NOTHING, canceled=True, records={"acct": SLAIN}, exit=ExitFile(0)), C, 0, "exit-file"),   # it ended before
    (replace(NOTHING, canceled=True, records={"acct": SLAIN}, exit=ExitFile(3)), F, 3, "exit-file"),
    (replace(NOTHING, records={"acct": JobStatus(F, metadata={"reason": "timeout"})}, exit=ExitFile(0)), F, None, None),
    (replace(NOTHING, records={"acct": JobStatus(F, metadata={"reason": "unknown-exit"})}, exit=ExitFile(0)), C, 0,
     "exit-file"),
    (replace(NOTHING, records={"acct": JobStatus(F, metadata={"reason": "unknown-exit"})}), F, None, None),
    (replace(NOTHING, records={"acct": JobStatus(F, metadata={"reason": "unknown-exit"})}, canceled=True), X, None,
     None),
    (replace(NOTHING, records={"acct": FELL}), None, None, None),            # it may have been put back into the queue
    (replace(NOTHING, records={"acct": FELL}, waited_s=11, missed=2), F, None, None),
    (replace(NOTHING, records={"acct": FELL}, waited_s=11, missed=2, in_queue=True), None, None, None),
    (replace(NOTHING, records={"acct": FELL}, queue=FELL, in_queue=True), F, None, None),
    (replace(NOTHING, records={"acct": JobStatus(F), "other": JobStatus(F, exit_code=200)}), F, 200, "other")])
def test_decide(known: Evidence, state: JobState | None, code: int | None, source: str | None) -> None:
    status = decide(known, 10, 60)
    if state is None:
        assert status is None
        return
    assert status is not None
    assert (status.state, status.exit_code) == (state, code)
    if state.final:
        assert (status.metadata or {})["sources"].get("exit_code") == source


@pytest.mark.parametrize(("exit", "starts", "earlier"), [
    (ExitFile(3, "j", 8.0, 38.0), [8.0, 47.0], True), (ExitFile(3, "j", 47.0, 76.0), [8.0, 47.0], False),
    (ExitFile(3, "j", 8.0, 38.0), [], False), (ExitFile(3), [8.0, 47.0], False)])
def test_an_exit_file_of_an_earlier_run(exit: ExitFile, starts: list[float], earlier: bool) -> None:
    """A script writes one time of its start into both records; one of psij-python writes none into its exit file."""
    assert is_of_an_earlier_run(exit, starts) is earlier


def test_a_job_ends_when_its_cancel_was_accepted_where_nothing_else_tells() -> None:
    """And not when that was found out: a simulated world charged the time between."""
    known = replace(NOTHING, canceled=True, canceled_at=1_760_000_145.0, missed=2, waited_s=60, silent_s=60)
    status = decide(known, 10, 60)
    assert status is not None and (status.state, status.time) == (X, 1_760_000_145.0)


@pytest.mark.parametrize(("known", "native"), [
    ({"canceled": True, "missed": 2, "waited_s": 60}, None),
    ({"exit": ExitFile(0, "j", 2.0, 8.0), "waited_s": 60}, None),
    ({"queue": DONE, "waited_s": 60}, "DONE"), ({"waited_s": 90}, "RUN")])
def test_the_native_state_of_an_end(known: dict[str, Any], native: str | None) -> None:
    """An element that was cancelled while it waited stayed PENDING for its manager. Of a job that is lost the last
    state is the last that was heard."""
    status = decide(replace(NOTHING, **known), 10, 60)
    assert status is not None and status.final and (status.metadata or {}).get("native_state") == native


def test_decide_joins_sources() -> None:
    record = JobStatus(C, metadata={"end_time": 9.0, "cpu_seconds": 2.0})
    status = decide(replace(NOTHING, records={"acct": record}, exit=ExitFile(0, "j", 2.0, 8.0)), 10, 60)
    assert status is not None and status.time == 9.0
    assert status.metadata == {
        "end_time": 9.0, "cpu_seconds": 2.0, "start_time": 2.0, "sources": {
            "state": "acct", "end_time": "acct", "cpu_seconds": "acct",
            "start_time": "exit-file", "exit_code": "exit-file"},
        "others": {"end_time": {"exit-file": 8.0}, "start_time": {"queue": 1.0}}}


# --- quoting -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("quoted", [word, bash_escape])
def test_word(quoted: Callable[[str], str]) -> None:
    words = [quoted(value) for value in HOSTILE]
    assert not any("\n" in text or "\r" in text for text in words)
    out = subprocess.run(["/bin/bash", "-c", f"printf '%s\\0' {' '.join(words)}"], stdout=subprocess.PIPE,
                         check=True).stdout
    assert out.split(b"\0") == [*map(os.fsencode, HOSTILE), b""]


@pytest.mark.parametrize(("kept", "unset"), [(False, b""), (True, b"${no_such}")])
def test_expanding_word(kept: bool, unset: bytes) -> None:
    text = expanding_word(pieces("a'${X} $Y ${Z}${no_such} `id` ${1} ${X\n} $${X} \\${X}"), kept)
    out = subprocess.run(["/bin/bash", "-c", f"printf %s {text}"], env={"X": "1  2", "Z": "*"}, stdout=subprocess.PIPE,
                         check=True).stdout
    assert out == b"a'1  2 $Y *" + unset + b" `id` ${1} ${X\n} ${X} ${X}"


@pytest.mark.parametrize(("directive", "text"), [
    (Directive("x"), "--x"), (Directive("x-y", "a"), "--x-y=a"), (Directive("C", "a"), "-C a"),
    (Directive("name", 'a "b" \\'), '--name="a \\"b\\" \\\\"'), (Directive("name", ""), '--name=""'),
    (Directive("name", "a#b"), '--name="a#b"'), (Directive("name", "ü 'x'"), "--name=\"ü 'x'\"")])
def test_sbatch(directive: Directive, text: str) -> None:
    if len(directive.option) == 1 and directive.value is None:
        text = "-x"
    assert sbatch(directive) == text


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\x85b", "a\u2028b", "a\x00b", "a\u202eb", "a\x1bb", "\udcff"])
def test_sbatch_refuses(value: str) -> None:
    with pytest.raises(QuotingError, match=r"f .* cannot be part of a directive"):
        sbatch(Directive("x", value, "f"))
    with pytest.raises(QuotingError, match="not the name of an option"):
        sbatch(Directive(f"x{value}", "v", "f"))


def test_slurm_path() -> None:
    assert slurm_path("/a%j/b c") == "/a%%j/b c"
    with pytest.raises(QuotingError):
        slurm_path("/a\\b")


def test_a_forgotten_filter_is_an_error() -> None:
    with pytest.raises(UnquotedError):
        environment().from_string("{{ x }}").render(x="a")
    assert environment().from_string("{{ x }}{{ y }}").render(x=1, y=Quoted("a")) == "1a"
    assert set(FILTERS) <= set(environment().filters)


@settings(max_examples=examples(40), deadline=None)
@given(text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), data=st.data())
def test_no_line_of_a_script_is_a_directive_that_nobody_meant(tmp_path_factory: pytest.TempPathFactory, text: str,
                                                              data: st.DataObject) -> None:
    """T17, T20: whatever is in any member, the script has just the directives that the executor made, or is refused."""
    path = text.replace("/", "_") or "p"
    members: dict[str, Any] = {
        "executable": text or "x", "arguments": [text], "directory": f"/{path}", "name": text,
        "environment": {"V": text}, "stdout_path": path, "stdin_path": path, "pre_launch": path,
        "attributes": JobAttributes(None, text, text, text, {"slurm.constraint": text, f"slurm.{text}": "x"})}
    name = data.draw(st.sampled_from(sorted(members)))
    spec = JobSpec(**{"executable": "/bin/true", name: members[name]})
    config = JobExecutorConfig(work_directory=tmp_path_factory.getbasetemp() / "work")
    executor, out, job = SlurmJobExecutor(config=config), StringIO(), Job(spec)
    try:
        executor.generate_submit_script(job, executor._create_script_context(job), out)
    except InvalidJobException as e:
        assert re.search(r"name|attribute", e.message)
        return
    lines = out.getvalue().splitlines()
    chosen_lines = [line for line in lines if line.lstrip().startswith("#SBATCH")]
    assert len(chosen_lines) == len(executor._directives(job, spec)) + 2        # two stand in the template
    assert not [line for line in lines if re.match(r"\s*#\s*(PBS|BSUB|\$|COBALT|flux)", line)]


@pytest.mark.parametrize("values", [HOSTILE[:1], HOSTILE], ids=["one", "all"])
def test_a_job_sees_exactly_what_was_said(tmp_path: Path, values: list[str]) -> None:
    """Every member of a description that takes text, through the template and a real shell."""
    folder = tmp_path.joinpath(*(f"d{value[:50].replace('/', '_')}" for value in values))
    folder.mkdir(parents=True)
    (folder / "in").write_text("input")
    (folder / "pre").write_text("export PRE=yes")
    variables = {f"V{number}": value for number, value in enumerate(values)}
    show = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, [os.getcwd(), *sys.argv[1:], " \
           f"*(os.environ[name] for name in {[*variables, 'PRE', 'IFS', 'SHLVL']!r}), sys.stdin.read()])))"
    spec = JobSpec(sys.executable, ["-SEc", show, *values, *(f"${{{name}}}" for name in variables)], directory=folder,
                   environment={**variables, "IFS": "f", "SHLVL": "77"}, stdin_path="in", stdout_path="out",
                   stderr_path=folder / "err", pre_launch="pre")
    job = Job(spec)
    executor = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path / "work"))
    executor.work_directory.mkdir(parents=True)
    text = StringIO()
    executor.generate_submit_script(job, executor._create_script_context(job), text)
    (tmp_path / "script").write_text(text.getvalue())
    subprocess.run(["/bin/bash", tmp_path / "script"], env={**os.environ, "SLURM_JOB_ID": "5"}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert (folder / "out").read_bytes().split(b"\0") == [
        os.fsencode(part) for part in (str(folder), *values * 3, "yes", "f", "77", "input")]
    assert exit_file(executor.work_directory / f"5.{job.id}.ec", job.id) is not None


def test_environment_that_is_not_inherited(tmp_path: Path) -> None:
    job = Job(JobSpec("/usr/bin/env", stdout_path=tmp_path / "o", inherit_environment=False, environment={"A": "1"}))
    executor = SlurmJobExecutor(config=JobExecutorConfig(work_directory=tmp_path))
    executor.work_directory.mkdir()
    text = StringIO()
    executor.generate_submit_script(job, executor._create_script_context(job), text)
    subprocess.run(["/bin/bash", "-c", text.getvalue()], env={**os.environ, "SLURM_JOB_ID": "5", "B": "2"}, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    names = {line.partition("=")[0] for line in (tmp_path / "o").read_text().splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"A", "SLURM_JOB_ID", "PSIJ_NODEFILE"}     # the shell's own


@pytest.mark.parametrize("members", [{"arguments": ["x" * 140_000]}, {"environment": {"A": "ü" * 70_000}}])
def test_too_long_for_a_program(theirs: Stand, members: dict[str, Any]) -> None:
    with pytest.raises(InvalidJobException, match=r"arguments\[0\]|environment\['A'\]"):
        theirs.executor.submit(Job(JobSpec("/bin/true", **members)))


# --- hosts ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "names"), [
    ("node1", ["node1"]), ("node[1-3]", ["node1", "node2", "node3"]), ("a,b", ["a", "b"]),
    ("n[08-10,1]x,login", ["n08x", "n09x", "n10x", "n1x", "login"]), ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
    ("n[1-99999999]", ["n[1-99999999]"]), ("n[5-", ["n[5-"]), ("n[3-1]", ["n[3-1]"]), ("n[[1]]", ["n[[1]]"]),
    ("a[1-999]b[1-999]c[1-999]", ["a[1-999]b[1-999]c[1-999]"]), ("", [])])
def test_hosts(text: str, names: list[str]) -> None:
    assert hosts(text) == names


def test_resources_of_another_version(theirs: Stand) -> None:
    with pytest.raises(InvalidJobException):
        SlurmJobExecutor()._directives(Job(), JobSpec("/bin/true", resources=Odd()))


class Odd(ResourceSpecV1):
    """Not understood: only the exact class is known."""

    @property
    def version(self) -> int:
        return 2
