# ruff: noqa
# mypy: ignore-errors
"""An executor as a site would write it for psij-python: it follows its processes with threads."""

import subprocess
import threading
import time
from typing import Dict, List, Optional

from psij import InvalidJobException, Job, JobExecutor, JobExecutorConfig, JobState, JobStatus, SubmitException


class MySiteExecutor(JobExecutor):
    _NAME_ = "mysite"

    def __init__(self, url: Optional[str] = None, config: Optional[JobExecutorConfig] = None) -> None:
        super().__init__(url=url, config=config if config else JobExecutorConfig())
        self.processes: Dict[str, subprocess.Popen] = {}

    def submit(self, job: Job) -> None:
        spec = self._check_job(job)
        launcher = self._get_launcher(spec.launcher or "single")
        command = launcher.get_launch_command(job)
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        except OSError as error:
            raise SubmitException("cannot start", exception=error, transient=False)
        job._native_id = process.pid
        self.processes[job.id] = process
        self._set_job_status(job, JobStatus(JobState.QUEUED, time=time.time(), metadata={"nativeId": process.pid}))
        threading.Thread(target=self._follow, args=(job, process, launcher), daemon=True).start()

    def _follow(self, job: Job, process: subprocess.Popen, launcher) -> None:
        self._set_job_status(job, JobStatus(JobState.ACTIVE, time=time.time()))
        output = process.communicate()[0]
        code = process.returncode
        state = JobState.COMPLETED if code == 0 else JobState.FAILED
        message = launcher.get_launcher_failure_message(output) if launcher.is_launcher_failure(output) else None
        self._set_job_status(job, JobStatus(state, time=time.time(), exit_code=code, message=message))

    def cancel(self, job: Job) -> None:
        self.processes[job.id].terminate()

    def list(self) -> List[str]:
        return [str(process.pid) for process in self.processes.values() if process.poll() is None]

    def attach(self, job: Job, native_id: str) -> None:
        if job.status.state != JobState.NEW:
            raise InvalidJobException("only a new job")
        job.executor = self
        job._native_id = native_id
        job.status = JobStatus(JobState.FAILED, message="cannot attach here")
