"""PBS Pro and OpenPBS: qsub, qstat, qselect, qdel.

States come from one ``qstat -f -F json``; ended jobs are in ``qstat -x`` where the server keeps history. That is asked
in the plain form: with ids, the JSON of some releases has only the first job (openpbs issue 2672). Seen with OpenPBS
23.06. Sources: as in ``pbs_base``.

An account is ``-A``; sites that charge by project want the custom attribute ``pbs.P``. A reservation is a queue.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from psij.executors.batch._array_jobs import ArrayLimits, JobArray, numbers_text
from psij.executors.batch._cluster import first
from psij.executors.batch._identity import Whose
from psij.executors.batch._options import custom_of, share
from psij.executors.batch.batch_scheduler_executor import Source, SourceOffError
from psij.executors.batch.pbs_base import UTC, GenericPBSJobExecutor, PBSExecutorConfig
from psij.job import Job
from psij.job_executor_config import JobExecutorConfig
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.pbs import ANSWERS
from sssjob.templates.quoting import Directive

__all__ = ["PBSExecutorConfig", "PBSJobExecutor"]

_AT_ONCE = 50       # ids; the server is asked for each
_DELETED, _FINISHED = "91", "92"        # substates
_LOOK_BACK_S = 3600
_ARRAY_SIZE = 10_000        # max_array_size where the site does not say another number
_GREATEST_INDEX = 99_999_999

# Jobs of a user since a time, ended ones too; nothing where there is no history.
_RECENT = 'ids=$(qselect -x -u "$1" -tc.ge."$2" 2>/dev/null) && [ -n "$ids" ] || exit 0; exec qstat -x -f $ids'


# Times are hours:minutes:seconds.
# Seen with 23.06: the list of a job has local times, and memory with a unit, of all its nodes.
_TOLD_LINES = r"""_psij_list=$(qstat -f "$PBS_JOBID" 2>/dev/null) || _psij_list=
_psij_of() {
    printf '%s\n' "$_psij_list" | sed -n "s/^ *Resource_List\.$1 = //p" |
        awk -F: '{ s = 0; for (i = 1; i <= NF; i++) s = s * 60 + $i; print s; exit }'
}
_psij_stime=$(printf '%s\n' "$_psij_list" | sed -n 's/^ *stime = //p')
[ -z "$_psij_stime" ] || _psij_stime=$(date -d "$_psij_stime" +%s 2>/dev/null) || _psij_stime=
_psij_kib=$(printf '%s\n' "$_psij_list" | awk '
    $1 == "Resource_List.mem" { n = $3 + 0; u = $3; sub(/^[0-9]+/, "", u) }
    $1 == "Resource_List.nodect" { c = $3 }
    END { f["kb"] = 1; f["mb"] = 1024; f["gb"] = 1048576; f["tb"] = 1073741824; f["b"] = f[""] = 1 / 1024
          if (n && u in f) printf "%d", n * f[u] / (c ? c : 1) }')
"""


class PBSJobExecutor(GenericPBSJobExecutor):
    """Executor ``pbs``. Custom attributes ``pbs.<option>`` are options of qsub, of one letter, or attributes
    of the job (``-W``)."""

    SCRIPT_FORMAT = "pbspro"
    _FORMS = (["-f", "-F", "json"], ["-f"])
    _TOLD = Told(_TOLD_LINES, {
        "native_id": ("$PBS_JOBID", 1), "processors": ("${NCPUS:-}", 1), "wall_seconds": ("$(_psij_of walltime)", 1),
        "cpu_seconds": ("$(_psij_of cput)", 1), "start_time": ("$_psij_stime", 1),
        "memory_bytes": ("$_psij_kib", 1024)},
        'pbsdsh -- "$@"')       # once for each line of the node file: pbsdsh(1B)
    _ANSWERS = ANSWERS
    _NAMES = JOB_NAMES["pbspro"]
    _DEFAULT_NAME = 60
    _COLUMN = 1
    _SIGNALED_IS_ZERO = True    # by qsig; seen with OpenPBS 23.06: shell and script are killed, Exit_status is 0
    _ELEMENT = "PBS_ARRAY_INDEX"

    def __init__(self, url: str | None = None, config: JobExecutorConfig | None = None) -> None:
        super().__init__(url, config)
        self._most_elements: int | None = None      # max_array_size, once the server was asked for it

    def _lookup_commands(self, tags: Sequence[str]) -> list[list[str]]:
        since = time.strftime("%Y%m%d%H%M", time.localtime(time.time() - _LOOK_BACK_S))
        return [*super()._lookup_commands(tags), ["/bin/sh", "-c", _RECENT, "sh", self._current_user(), since]]

    def array_limits(self) -> ArrayLimits:
        """One range of at least two numbers from 0 on, of no more elements than the server's max_array_size says, which
        is 10000 by default (PBS Professional Administrator's Guide, "Job Array Attributes")."""
        if self._most_elements is None:
            try:
                output = self._run_command(self._cluster_command())
            except (subprocess.SubprocessError, OSError):
                output = ""
            self._most_elements = int(first(r"^\s+max_array_size = (\d{1,9})$", output) or _ARRAY_SIZE)
        return ArrayLimits(0, _GREATEST_INDEX, self._most_elements, lists=False, fewest=2)

    def arrays(self, specs: Sequence[JobSpec], indices: Sequence[int], most: int | None = None) -> Sequence[JobArray]:
        """As the base; none of jobs that are to be held, for qrls releases a whole array only."""
        held = {self.custom_attribute(option) for option in self._ORDERS.held}
        return [] if any(held & set(custom_of(spec)) for spec in specs) else super().arrays(specs, indices, most)

    def element_id(self, native_id: str, number: int) -> str:
        """``12[3].host``, of ``12[].host``."""
        return native_id.replace("[]", f"[{number}]", 1)

    def array_id_from_submit_output(self, out: str) -> str:
        """``12[].host``."""
        native_id = self.job_id_from_submit_output(out)
        if "[]" not in native_id:
            raise ValueError(f"qsub gave no id of an array: {out!r}")
        return native_id

    def _directives(self, job: Job, spec: JobSpec) -> list[Directive]:
        directives = super()._directives(job, spec)
        if (array := self._arrays.get(job.id)) is not None:
            most = "" if array.most is None else f"%{array.most}"
            directives.append(Directive("J", numbers_text(list(array.indices)) + most))
        return directives

    def _reservation(self, reservation_id: str) -> Directive:
        return Directive("q", reservation_id, "attributes.reservation_id")

    def _resource_directives(self, asked: ResourceSpecV1) -> list[Directive]:
        """A chunk for each node when nodes are fixed by what is said, else for each process."""
        fixed = asked.node_count is not None or asked.processes_per_node is not None
        chunks = asked.computed_node_count if fixed else asked.computed_process_count
        processes = asked.computed_processes_per_node if fixed else 1
        chunk = [f"select={chunks}", f"ncpus={processes * (asked.cpu_cores_per_process or 1)}",
                 f"mpiprocs={processes}"]
        if asked.gpu_cores_per_process:
            chunk.append(f"ngpus={processes * asked.gpu_cores_per_process}")
        if asked.memory is not None:
            chunk.append(f"mem={max(1, share(share(asked.memory, chunks), 1024))}kb")
        place = ("scatter" if fixed else "free") + (":exclhost" if asked.exclusive_node_use else "")
        return [Directive("l", ":".join(chunk), "resources"), Directive("l", f"place={place}", "resources")]

    _ACCOUNTED_AT_ONCE = _AT_ONCE

    def _sources(self, native_ids: list[str]) -> list[Source]:
        ids = native_ids[:_AT_ONCE]
        return [Source("qstat -x", [[*UTC, "qstat", "-x", "-f", *ids]] if ids else [], self._parse_history)]

    def _parse_history(self, exit_code: int, out: str, whose: Whose | None = None) -> dict[str, JobStatus]:
        if "not configured to maintain job history" in out:
            raise SourceOffError(out.strip())
        return self._statuses_of(self._rows(exit_code, out), whose or Whose())

    def _outcome(self, code: int | None, ran: bool, substate: str | None) -> tuple[JobState, str | None, int | None]:
        if substate == _DELETED:
            return JobState.CANCELED, None, None
        if substate == _FINISHED and not ran:       # the server deletes a job whose dependency failed
            return JobState.FAILED, "dependency", None
        return super()._outcome(code, ran, substate)

    def get_list_command(self) -> list[str]:
        """qselect: the user's jobs that have not ended."""
        return ["qselect", "-u", self._current_user()]
