# ruff: noqa
# mypy: ignore-errors
"""Callbacks: a class, a function, of a job, of an executor; one that fails."""

import threading
from typing import List, Set

import psij
from psij import Job, JobExecutor, JobSpec, JobState, JobStatus, JobStatusCallback

lock = threading.Lock()


class Tracker(JobStatusCallback):
    def __init__(self, count: int) -> None:
        self.missing = count
        self.states: List[JobState] = []
        self.done = threading.Event()

    def job_status_changed(self, job: Job, job_status: JobStatus) -> None:
        with lock:
            self.states.append(job_status.state)
            if job_status.final:
                self.missing -= 1
                if self.missing == 0:
                    self.done.set()


executor = JobExecutor.get_instance("local", version_constraint=">= 0.0.1")
of_executor = Tracker(3)
executor.set_job_status_callback(of_executor)

of_job = Tracker(1)
first = Job(JobSpec("/bin/sleep", ["0.1"]))
first.set_job_status_callback(of_job)

seen: Set[str] = set()
second = Job(JobSpec("/bin/false"))
second.set_job_status_callback(lambda job, status: seen.add(str(status.state)))


def fail(job: Job, status: psij.JobStatus) -> None:
    raise ValueError("a callback that fails")


third = Job(JobSpec("/bin/true"))
third.set_job_status_callback(fail)

for job in (first, second, third):
    executor.submit(job)
for job in (first, second, third):
    job.wait()
assert of_executor.done.wait(30) and of_job.done.wait(30)
print("job", of_job.states)
print("function", sorted(seen))
with lock:
    print("executor", sorted(str(state) for state in of_executor.states))
print("at the end", first.status.state, second.status.state, second.status.exit_code, third.status.state)
