# ruff: noqa
# mypy: ignore-errors
"""At most so many jobs at a time: the end of one submits the next."""

import threading
from typing import List

from psij import Job, JobExecutor, JobSpec, JobStatus

TOTAL = 20
AT_ONCE = 4


class ThrottledSubmitter:
    def __init__(self) -> None:
        self.jex = JobExecutor.get_instance("local", ">= 0.0.1")
        self.jex.set_job_status_callback(self.callback)
        self.count = 0
        self.ended = 0
        self.running = 0
        self.most = 0
        self.lock = threading.RLock()
        self.done = threading.Event()

    def make_job(self) -> Job:
        job = Job()
        spec = JobSpec()
        spec.executable = "/bin/sleep"
        spec.arguments = ["0.05"]
        job.spec = spec
        return job

    def submit_next(self) -> None:
        with self.lock:
            if self.count < TOTAL:
                self.running += 1
                self.most = max(self.most, self.running)
                self.count += 1
                job = self.jobs[self.count - 1]
            else:
                return
        self.jex.submit(job)

    def start(self) -> None:
        self.jobs: List[Job] = [self.make_job() for _ in range(TOTAL)]
        for _ in range(AT_ONCE):
            self.submit_next()
        for job in self.jobs:
            job.wait() if job.executor else None
        assert self.done.wait(60)

    def callback(self, job: Job, status: JobStatus) -> None:
        if status.final:
            with self.lock:
                self.running -= 1
                self.ended += 1
                if self.ended == TOTAL:
                    self.done.set()
            self.submit_next()


submitter = ThrottledSubmitter()
submitter.start()
print("submitted", submitter.count, "ended", submitter.ended, "at once", submitter.most)
print({str(job.status.state) for job in submitter.jobs}, len({job.id for job in submitter.jobs}))
