"""A Grid Engine in memory, of the same world and with the same truth as ``cluster.Cluster``.

What is different: the listing has no tags (``qstat -j`` tells them as long as the queue has a job), a job that has
ended is listed no more, accounting has a record for each run that has ended, and none of a job that never ran, and
records bear no tag. Two jobs of one user that have the same id within the two minutes by which clocks may differ are
told apart by their names alone.
"""

from __future__ import annotations

import time
from html import escape
from pathlib import Path
from typing import Any

from tests.fakes.lab import numbers
from tests.fakes.sge import directives
from tests.simulation.cluster import US, Answer, Cluster, NativeJob, Run, name_of

__all__ = ["GridEngine"]


class GridEngine(Cluster):
    """A qmaster with its accounting file."""

    executor = "sge"

    def refused(self, command: str) -> Answer:
        """What a command says when nobody answers."""
        if command == "qacct":
            return Answer(1, "", "error: cannot open /sge/default/common/accounting: Stale file handle\n")
        return Answer(1, "", "error: commlib error: got select error (Connection refused)\nUnable to contact qmaster "
                             "using port 6444 on host \"head\"\n")

    def is_accounting(self, command: str) -> bool:
        """Whether a command reads the accounting."""
        return command == "qacct"

    def break_down(self, job: NativeJob, state: str) -> None:
        """End a job by a signal that nobody asked for."""
        self.finish(job, "FAILED", self.kernel.now, signal=9)

    def _dropped(self, job: NativeJob) -> bool:
        return job.over

    def qsub(self, arguments: list[str]) -> Answer:
        """Take a job."""
        script = Path(arguments[-1])
        options = dict(directives(script))
        elements = numbers(options["-t"]) if "-t" in options else []
        if self._is_full():
            return Answer(1, "", "Unable to run job: job rejected: only 2 jobs are allowed per user (current job "
                                 "count: 2)\nExiting.\n")
        job = (options["-N"], "-h" in options,
               [("any", one) for one in options.get("-hold_jid", "").split(",") if one])
        if not elements:
            return Answer(0, f"{self._take(script, *job).number}\n")
        beside = int(options["-tc"]) if "-tc" in options else None
        return Answer(0, f"{self._take_array(script, elements, beside, *job)}.{_range(elements)}\n")

    def _take_array(self, script: Path, elements: list[int], beside: int | None, *others: Any) -> int:
        """A new array of ours, of which all tasks have one number."""
        number = super()._take_array(script, elements, beside, *others)
        self._next = number + 1 if number < self.settings.last else self.settings.first
        return number

    def _name_element(self, job: NativeJob) -> None:
        job.number, job.native_id = job.array, f"{job.array}.{job.element}"

    def qdel(self, arguments: list[str]) -> Answer:
        """End jobs."""
        lines, missing = [], False
        for native_id in (word for word in arguments if word[0] != "-"):
            jobs = [job for job in self.find_all(native_id) if not job.over]
            if not jobs:
                missing = True
                lines.append(f'denied: job "{native_id}" does not exist\n')
            for job in jobs:
                lines.append(f"us has {'registered the job' if job.is_on_nodes else 'deleted job'} "
                             f"{native_id}{' for deletion' if job.is_on_nodes else ''}\n")
                self._cancel(job, signal=9)
        return Answer(int(missing), "".join(lines))

    def has_counted(self, run: Run) -> float:
        """The wall time of its records goes on while a job is suspended."""
        return 0.0 if run.end is None else run.end - run.start

    def qhold(self, arguments: list[str]) -> Answer:
        """Keep jobs from starting: those that run already are only not started again."""
        return self._ordered("hold", arguments, "modified hold of job {}\n")

    def qrls(self, arguments: list[str]) -> Answer:
        """End such a hold."""
        return self._ordered("release", arguments, "modified hold of job {}\n")

    def qmod(self, arguments: list[str]) -> Answer:
        """Have a job that runs begin anew."""
        return self._ordered("requeue", arguments[-1:], "Pushed rescheduling of job {} on host node1\n")

    def _ordered(self, order: str, native_ids: list[str], words: str) -> Answer:
        answers = [self._ordered_one(order, native_id, words) for native_id in native_ids]
        return Answer(max(answer.exit_code for answer in answers), "".join(answer.stdout for answer in answers))

    def _ordered_one(self, order: str, native_id: str, words: str) -> Answer:
        wrong = self._order(order, [job for job in self.find_all(native_id) if not job.over], "job does not exist")
        if order == "requeue" and wrong == "job does not exist":
            return Answer(1, f'invalid queue or job "{native_id}"\n')
        if wrong == "job does not exist":
            return Answer(1, f"denied: job \"{native_id}\" does not exist\n")
        if wrong and order == "requeue":
            return Answer(0, f"The job {native_id} is not running\n")
        return Answer(0, words.format(native_id))

    def qstat(self, arguments: list[str]) -> Answer:
        """The queue, or what it knows of some jobs."""
        jobs = [job for job in self.jobs if not job.gone and not job.over]
        if arguments[0] == "-j":
            return self._contexts(arguments[1], jobs)
        lines = ["<?xml version='1.0'?>\n<job_info>\n  <queue_info>\n"]
        for job in jobs:
            if job.user != US or not self._is_listed(job):
                continue
            rest = [one.element for one in self._array_of(job) if job.array and not one.has_record]
            tasks = f"<tasks>{job.element if job.has_record else _range(rest)}</tasks>" if job.array else ""
            predecessors = [number for _, number in job.after
                            if not all(other.over for other in self._awaited(job, number))]      # ended: not named
            run, word = (job.run, "running") if job.is_on_nodes else (None, "pending")
            when = f"<JB_submission_time>{_xml(self._shown(job.submit))}</JB_submission_time>" if run is None else \
                f"<JAT_start_time>{_xml(self._shown(run.start))}</JAT_start_time>"
            letters = ("R" if len(job.runs) > (run is not None) else "") + (
                "s" if job.state == "SUSPENDED" else "r" if run is not None else
                "hqw" if job.held or predecessors else "qw")
            awaited = "".join(f"<predecessor_jobs>{number}</predecessor_jobs>" for number in predecessors)
            lines.append(f"    <job_list state=\"{word}\"><JB_job_number>{job.number}</JB_job_number>"
                         f"<JB_name>{escape(job.name, quote=False)}</JB_name><JB_owner>{name_of(job.user)}</JB_owner>"
                         f"<state>{letters}</state>{when}<queue_name>{'all.q@node1' if run is not None else ''}"
                         f"</queue_name><slots>1</slots>{tasks}{awaited}</job_list>\n")
        return Answer(0, "".join(lines) + "  </queue_info>\n  <job_info>\n  </job_info>\n</job_info>\n")

    def _contexts(self, wanted: str, jobs: list[NativeJob]) -> Answer:
        some = {job.number: job for job in jobs if wanted == "*" or str(job.number) in wanted.split(",")}.values()
        if not some:
            return Answer(1, "", f"Following jobs do not exist: \n{wanted}\n")
        contexts = {job.number: f"context:                    sssjob={Path(job.script).stem}\n"
                    for job in some if job.tag is not None or job.comment}
        return Answer(0, "".join(f"{'=' * 62}\njob_number:                 {job.number}\n" +
                                 contexts.get(job.number, "") for job in some))

    def qconf(self, arguments: list[str]) -> Answer:
        """The limits of arrays."""
        return Answer(0, "#global:\nmax_aj_instances             2000\nmax_aj_tasks                 75000\n")

    def qacct(self, arguments: list[str]) -> Answer:
        """Records of runs that have ended."""
        native_id, now = arguments[-1], self.kernel.now
        blocks = [_record(self, job, run) for job in self.jobs if str(job.number) == native_id for run in job.runs
                  if self.settings.accounting and not (job.state == "LOST" and run is job.run) and run.end is not None
                  and run.end + self.settings.lag <= now <= run.end + self.settings.purge]
        if not blocks:
            return Answer(1, "", f"error: job id {native_id} not found\n")
        return Answer(0, "".join(blocks))


def _record(cluster: GridEngine, job: NativeJob, run: Run) -> str:
    """A record of accounting."""
    assert run.end is not None
    last = job.over and run is job.life         # else it was put back, also where the job was cancelled as it waited
    code = job.exit if last else 0
    failed = "25  : rescheduling" if not last else "100 : assumedly after job" if job.signal else "0"
    begin, end = cluster._shown(run.start), cluster._shown(run.end)
    values = {"qname": "all.q", "hostname": "node1", "owner": name_of(job.user), "jobname": job.name,
              "jobnumber": str(job.number), "taskid": str(job.element or "undefined"), "account": "sge",
              "qsub_time": _acct(cluster._shown(job.submit)), "start_time": _acct(begin), "end_time": _acct(end),
              "granted_pe": "NONE", "slots": "1", "failed": failed,
              "exit_status": str(128 + job.signal if last and job.signal else code),
              "ru_wallclock": f"{end - begin}s", "cpu": "1.500s", "maxvmem": "51.184MB",
              "arid": "undefined", "category": "NONE"}
    return "=" * 62 + "\n" + "".join(f"{name:<12} {value:<20}\n" for name, value in values.items())


def _range(elements: list[int]) -> str:
    """Numbers of tasks as ``1-3:1``; those that are no range one by one."""
    if elements == list(range(elements[0], elements[-1] + 1)):
        return f"{elements[0]}-{elements[-1]}:1"
    return ",".join(map(str, elements))


def _xml(value: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(value))


def _acct(value: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(value))
