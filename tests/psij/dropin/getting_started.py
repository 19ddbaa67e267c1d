# ruff: noqa
# mypy: ignore-errors
"""One job, then several: the first steps with psij-python."""

from datetime import timedelta
from pathlib import Path

from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, ResourceSpecV1

executor = JobExecutor.get_instance("local")
print("executor", executor.name)

job = Job(JobSpec(executable="/bin/date", arguments=["-u", "-d", "@0", "+%Y"], stdout_path="date.out"))
print(job.status.state, job.native_id, job.executor)
executor.submit(job)
status = job.wait()
assert status is not None
print(status.state, status.exit_code, status.final, bool(status.state == JobState.COMPLETED))
print("native id", job.native_id is not None and int(job.native_id) > 0, job.executor is executor)
print("output", Path("date.out").read_text().strip())


def make_job(number: int) -> Job:
    job = Job()
    spec = JobSpec()
    spec.executable = "/bin/sh"
    spec.arguments = ["-c", "echo $WORD-$0; echo problem >&2; exit $0", str(number)]
    spec.environment = {"WORD": "job"}
    spec.directory = Path.cwd()
    spec.stdout_path = Path(f"out.{number}")
    spec.stderr_path = Path(f"err.{number}")
    spec.attributes = JobAttributes(duration=timedelta(minutes=1))
    spec.resources = ResourceSpecV1(process_count=1)
    job.spec = spec
    return job


jobs = [make_job(number) for number in range(3)]
for job in jobs:
    executor.submit(job)
for job in jobs:
    status = job.wait(timeout=timedelta(seconds=30))
    assert status is not None and job.spec is not None
    print(status.state, status.exit_code, Path(str(job.spec.stdout_path)).read_text().strip(),
          Path(str(job.spec.stderr_path)).read_text().strip())

# several processes of one job
job = Job(JobSpec("/bin/sh", ["-c", "echo rank; cat $PSIJ_NODEFILE >nodes"], stdout_path="ranks.out",
                  launcher="multiple", resources=ResourceSpecV1(process_count=4)))
executor.submit(job)
job.wait()
print(job.status.state, Path("ranks.out").read_text().split(), Path("nodes").read_text().split())
