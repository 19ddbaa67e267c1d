# ruff: noqa
# mypy: ignore-errors
"""Waiting with limits and targets, cancelling, attaching, what is refused, and JSON."""

import contextlib
import io
from datetime import timedelta

import psij
from psij import InvalidJobException, Job, JobExecutor, JobSpec, JobState, ResourceSpecV1, SubmitException
from psij.serialize import JSONSerializer

executor = JobExecutor.get_instance("local")
job = Job(JobSpec("/bin/sleep", ["60"]))
executor.submit(job)
print("no time", job.wait(timeout=timedelta(milliseconds=50)))
status = job.wait(target_states=[JobState.QUEUED, JobState.ACTIVE])
print("target", status is not None and status.state)
print("listed", job.native_id in executor.list())

follower = Job()
executor.attach(follower, str(job.native_id))
status = follower.wait(target_states=JobState.ACTIVE)
print("attached", status is not None and status.state)

job.cancel()
print("canceled", job.wait(timedelta(seconds=30)) is job.status, job.status.state)
job.cancel()    # nothing any more
ended = follower.wait(timedelta(seconds=30))
print("follower", ended is not None and ended.final)


def refused(what: str, kind: type, call: object) -> None:
    try:
        call()  # type: ignore[operator]
    except Exception as error:
        print(what, kind.__name__, isinstance(error, kind))


refused("twice", InvalidJobException, lambda: executor.submit(job))
refused("attach twice", InvalidJobException, lambda: executor.attach(job, "1"))
refused("nothing", InvalidJobException, lambda: executor.submit(Job()))
refused("name", ValueError, lambda: JobExecutor.get_instance("no such executor"))
refused("version", ValueError, lambda: JobExecutor.get_instance("local", "> 1000"))
refused("counts", InvalidJobException, lambda: ResourceSpecV1(node_count=2, process_count=3))
refused("never", SubmitException, lambda: Job().cancel())
print("transient", SubmitException("later", transient=True).transient, InvalidJobException("no", None).message)

spec = JobSpec("/bin/date", ["-u"], "/tmp", environment={"A": "1"}, stdout_path="/tmp/out",
               resources=ResourceSpecV1(node_count=2, processes_per_node=3),
               attributes=psij.JobAttributes(queue_name="debug", custom_attributes={"slurm.constraint": "gpu"}))
json = JSONSerializer()
with contextlib.redirect_stdout(io.StringIO()):     # psij-python prints what it reads
    same = json.loads(json.dumps(spec)) == spec
print("same", same)
