"""The defaults of a site: psij/config.toml, what it fills in and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobExecutor, JobExecutorConfig, JobSpec
from psij.executors.batch.sge import SGEExecutorConfig
from psij.executors.batch.slurm import SlurmExecutorConfig
from sssjob.run.running import executor_of

FILE = """\
account = "p0017"
launcher = "mpirun"
queue_polling_interval = 60
[executors.slurm]
queue_name = "batch"
launcher = "srun"
lost_after = 90
work_directory = "~/jobs"
custom_attributes = {"slurm.constraint" = "knl", "slurm.exclusive" = true}
[executors.gridengine]
parallel_environment = "mpi"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, which is FILE."""
    for name in ("PSIJ_CONFIG", "PSIJ_WORK_DIRECTORY", "SSSJOB_POLLING_INTERVAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", "/home/me")
    path = tmp_path / "psij" / "config.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


def filled(executor: JobExecutor, **members: Any) -> tuple[object, ...]:
    """Account, queue, launcher and custom attributes of a job when it is submitted."""
    job = Job(JobSpec("/bin/true", **members))
    spec = executor._check_job(job)
    assert job.spec is spec and spec.attributes is not None
    attributes = spec.attributes
    return attributes.account, attributes.queue_name, spec.launcher, attributes.custom_attributes


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize(("name", "members", "expected"), [
    ("slurm", {}, ("p0017", "batch", "srun", {"slurm.constraint": "knl", "slurm.exclusive": True})),
    ("slurm", {"launcher": "single", "attributes": JobAttributes(account="mine", custom_attributes={
        "slurm.constraint": "gpu"})},
     ("mine", "batch", "single", {"slurm.constraint": "gpu", "slurm.exclusive": True})),
    ("sge", {}, ("p0017", None, "mpirun", None)), ("local", {}, ("p0017", None, "mpirun", None))])
def test_what_jobs_do_not_say(name: str, members: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert filled(JobExecutor.get_instance(name), **members) == expected


@pytest.mark.usefixtures("config")
def test_the_specification_of_the_program_stays_as_it_is() -> None:
    spec = JobSpec("/bin/true", attributes=JobAttributes(queue_name="q"))
    before = str(spec.__dict__), str(spec.attributes.__dict__ if spec.attributes else None)
    job = Job(spec)
    JobExecutor.get_instance("slurm")._check_job(job)
    assert (str(spec.__dict__), str(spec.attributes.__dict__ if spec.attributes else None)) == before
    assert job.spec is not None and job.spec is not spec


@pytest.mark.usefixtures("config")
def test_what_one_executor_filled_in_does_not_reach_another() -> None:
    """A program that cannot submit to one tries the next: srun and the queue are those of the first."""
    spec = JobSpec("/bin/true", attributes=JobAttributes(account="mine"))
    job = Job(spec)
    for name, expected in (("slurm", ("mine", "batch", "srun")), ("local", ("mine", None, "mpirun")),
                           ("slurm", ("mine", "batch", "srun"))):
        JobExecutor.get_instance(name)._check_job(job)
        assert job.spec is not None and job.spec.attributes is not None
        assert (job.spec.attributes.account, job.spec.attributes.queue_name, job.spec.launcher) == expected
    assert job.spec is not None
    job.spec.launcher = "single"        # the program's own from now on
    assert JobExecutor.get_instance("local")._check_job(job).launcher == "single"
    assert job.spec.attributes is not None and job.spec.attributes.queue_name == "batch"


@pytest.mark.usefixtures("config")
def test_settings() -> None:
    slurm, sge = JobExecutor.get_instance("slurm").config, JobExecutor.get_instance("sge").config
    assert isinstance(slurm, SlurmExecutorConfig) and isinstance(sge, SGEExecutorConfig)
    assert (slurm.queue_polling_interval, slurm.lost_after, slurm.work_directory) == (60, 90, Path("/home/me/jobs"))
    assert (sge.queue_polling_interval, sge.lost_after, sge.parallel_environment) == (60, 60, "mpi")


@pytest.mark.usefixtures("config")
def test_a_configuration_of_the_program_wins_and_so_does_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    given = SlurmExecutorConfig(lost_after=5)
    executor = JobExecutor.get_instance("slurm", config=given)
    assert executor.config is given and filled(executor)[1] == "batch"
    monkeypatch.setenv("SSSJOB_POLLING_INTERVAL", "7")
    monkeypatch.setenv("PSIJ_WORK_DIRECTORY", "/scratch/w")
    config = JobExecutor.get_instance("slurm").config
    assert isinstance(config, SlurmExecutorConfig)
    assert (config.queue_polling_interval, config.lost_after, config.work_directory) == (7, 90, Path("/scratch/w"))


@pytest.mark.usefixtures("config")
def test_who_fills_in_by_itself() -> None:
    """A program may switch it off; the commands of sssjob, which have settings of their own, do."""
    config = JobExecutorConfig()
    config.site_defaults = False
    for executor in (JobExecutor.get_instance("slurm", config=config), executor_of("slurm")):
        assert filled(executor) == (None, None, None, None)


def test_the_file_of_the_system_counts_less(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = tmp_path / "etc" / "psij" / "config.toml"
    system.parent.mkdir(parents=True)
    system.write_text('reservation_id = "R"\n[executors.slurm]\naccount = "system"\n'
                      'custom_attributes = {"slurm.nice" = 1, "slurm.constraint" = "x"}\n')
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(system.parent.parent))
    executor = JobExecutor.get_instance("slurm")
    assert filled(executor)[0] == "p0017"
    assert filled(executor)[3] == {"slurm.nice": 1, "slurm.constraint": "knl", "slurm.exclusive": True}
    monkeypatch.setenv("PSIJ_CONFIG", str(tmp_path / "other.toml"))
    (tmp_path / "other.toml").write_text("")
    assert filled(JobExecutor.get_instance("slurm"))[0] == "system"


@pytest.mark.parametrize(("text", "message"), [
    ("quue_name = 'q'", "quue_name: no such setting (did you mean 'queue_name'?)"),
    ("[executors.slurm]\nparallel_environment = 'x'\nzz = 1",
     "executors.slurm.parallel_environment: no such setting (known: account, queue_name, reservation_id, launcher, "
     "custom_attributes, launcher_log_file, work_directory, queue_polling_interval, initial_queue_polling_delay, "
     "queue_polling_error_threshold, keep_files, command_timeout, accounting_delay, lost_after, questions_a_minute, "
     "submit_commands, default_resources, ssh_host, ssh_setup, ssh_directory, staging_bytes)"),
    ("[executors.slrum]\naccount = 'x'", "executors.slrum: no such executor (did you mean 'slurm'?)"),
    ("executors = 1", "executors is to be a table of tables, as [executors.slurm]"),
    ("account = ''", "account is to be a text, not ''"), ("account = 5", "account is to be a text, not 5"),
    ("lost_after = -1", "lost_after is to be zero or more, not -1"),
    ("accounting_delay = nan", "accounting_delay is to be zero or more, not nan"),
    ("queue_polling_interval = 0", "queue_polling_interval is to be above zero, not 0"),
    ("command_timeout = inf", "command_timeout is to be above zero, not inf"),
    ("lost_after = true", "lost_after is to be a number, not True"),
    ("keep_files = 1", "keep_files is to be true or false, not 1"),
    ("work_directory = 1", "work_directory is to be a text or a path, not 1"),
    ("custom_attributes = {slurm = {qos = 'x'}}", "custom_attributes is to be a table of options with their executor "
     "before each, as {\"slurm.constraint\" = \"knl\"}, not {'slurm': {'qos': 'x'}}"),
    ("custom_attributes = {'slrum.qos' = 'x'}", "custom_attributes: custom attribute 'slrum.qos': no executor is "
     "called 'slrum'; did you mean 'slurm.qos'?"),
    ("[executors.slurm]\nlauncher = '../srun'",
     "executors.slurm.launcher: launcher '../srun' is not the name of a launcher"),
    ("account = " + 2000 * "[", "nested too deep"),
    ("account", "Expected '=' after a key in a key/value pair (at end of document)")])
def test_refused_files(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    with pytest.raises(ValueError) as raised:
        JobExecutor.get_instance("slurm")
    assert str(raised.value) == f"{config}: {message}"


def test_a_file_that_is_not_there(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PSIJ_CONFIG", str(config.parent / "none"))
    with pytest.raises(ValueError, match="none: PSIJ_CONFIG names this file, which is not there"):
        JobExecutor.get_instance("local")


def test_other_executors_tables_are_theirs(config: Path) -> None:
    config.write_text('[executors.mine]\nsecret = 5\n[executors.sge]\nparallel_environment = "mpi"\n')
    assert JobExecutor.get_instance("local")._defaults is None
