# ruff: noqa
# mypy: ignore-errors
"""An executor and a launcher of a third party, found by their descriptors on the path."""

import threading
from pathlib import Path

from psij import Job, JobExecutor, JobExecutorConfig, JobSpec, JobState, Launcher

print("known", "mysite" in JobExecutor.get_executor_names(), "greeting" in Launcher.get_launcher_names())
executor = JobExecutor.get_instance("mysite", version_constraint=">= 0.1, < 1",
                                    config=JobExecutorConfig(launcher_log_file=Path("log"), work_directory=Path("work")))
print(executor.name, executor.version, type(executor).__name__)

states = []
done = threading.Event()


def callback(job, status):
    states.append(status.state)
    if status.final:
        done.set()


executor.set_job_status_callback(callback)
Path("pre.sh").write_text("export WORD=sourced\n")
Path("post.sh").write_text("echo post >post.out\n")
job = Job(JobSpec("/bin/sh", ["-c", "echo $WORD; exit 4"], stdout_path=Path.cwd() / "out", launcher="greeting",
                  pre_launch=Path("pre.sh"), post_launch=Path("post.sh")))
executor.submit(job)
status = job.wait()
assert done.wait(30)
print(states, status.exit_code, status.message, job.executor is executor)
print(Path("out").read_text().split("\n"), Path("post.out").read_text().strip(), len(Path("log").read_text()) > 0)

Path("bad.sh").write_text("echo no such module\nexit 3\n")
bad = Job(JobSpec("/bin/true", pre_launch="bad.sh"))
executor.submit(bad)
bad.wait()
print(bad.status.state, repr(bad.status.message), bad.status.exit_code)

try:
    JobExecutor.get_instance("mysite-broken")
except ValueError as error:
    print(str(error)[:23], error.__cause__ is not None)
