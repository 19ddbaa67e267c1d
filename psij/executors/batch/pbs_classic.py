"""Torque and what behaves like it: qsub, qstat, qdel.

States come from one ``qstat -f -x`` (XML), or ``qstat -f`` where that is not known. An ended job stays there, complete,
for the time of keep_completed; then only its exit file is left, for there is no history that users may read. An empty
answer means that there is no job: qstat -B is asked then whether the server is there at all, and where words stand in
it, whether the server counts jobs or a wrapper of the site prints these words for every command. Seen with the Torque
commands of Slurm 22.05, which tell no exit status; names of fields and exit statuses: pbs_job.h and qstat of Torque.
No recording of a real Torque was at hand: that its XML has the fields of the plain form, in elements named like them,
and times in seconds since the epoch is from memory.

Processes are told to the server as slots of nodes (``nodes=..:ppn=..``), always on as many nodes as the specification
computes. A reservation goes to the scheduler (Maui, Moab) as ``-W x=FLAGS:ADVRES:..``; pbs_sched has none and pays no
attention to it.
"""

from __future__ import annotations

import re

from psij.exceptions import InvalidJobException
from psij.executors.batch._options import share
from psij.executors.batch.pbs_base import UTC, GenericPBSJobExecutor, PBSExecutorConfig, fields_of
from psij.resource_spec import ResourceSpecV1
from psij.surroundings import Told
from sssjob.lrm.names import JOB_NAMES
from sssjob.lrm.pbs import TORQUE_ANSWERS
from sssjob.templates.quoting import Directive

__all__ = ["PBSClassicJobExecutor", "PBSExecutorConfig"]


class PBSClassicJobExecutor(GenericPBSJobExecutor):
    """Executor ``pbs_classic``. Custom attributes ``pbs.<option>`` are options of qsub, of one letter, or
    attributes of the job (``-W``)."""

    SCRIPT_FORMAT = "torque"
    _FORMS = (["-f", "-x"], ["-f"])
    _SLOTS_ARE_CORES = True
    _TOLD = Told("", {"native_id": ("$PBS_JOBID", 1), "processors": ("${PBS_NUM_PPN:-}", 1),
                      "wall_seconds": ("${PBS_WALLTIME:-}", 1)}, 'pbsdsh -u "$@"')    # once a node: pbsdsh(1B)
    _ANSWERS = TORQUE_ANSWERS
    _NAMES = JOB_NAMES["torque"]
    _DEFAULT_NAME = 15      # bytes that every release takes
    _COLUMN = 0

    def _reservation(self, reservation_id: str) -> Directive:
        if not re.fullmatch(r"[\w.-]+", reservation_id, re.ASCII):
            raise InvalidJobException(f"attributes.reservation_id {reservation_id!r} cannot stand in the list "
                                      "of flags that it goes into")
        return Directive("W", f"x=FLAGS:ADVRES:{reservation_id}", "attributes.reservation_id")

    def _resource_directives(self, asked: ResourceSpecV1) -> list[Directive]:
        here, cores = asked.computed_processes_per_node, asked.cpu_cores_per_process or 1
        nodes = f"nodes={asked.computed_node_count}:ppn={here * cores}"
        if asked.gpu_cores_per_process:
            nodes += f":gpus={here * asked.gpu_cores_per_process}"
        directives = [Directive("l", nodes, "resources")]
        if asked.memory is not None:
            directives.append(Directive("l", f"mem={max(1, share(asked.memory, 1024))}kb", "resources.memory"))
        if asked.exclusive_node_use:
            directives.append(Directive("n", None, "resources.exclusive_node_use"))
        return directives

    def get_list_command(self) -> list[str]:
        """qstat, in the plain form."""
        return [*UTC, "qstat", "-f"]

    def parse_list_output(self, out: str) -> list[str]:
        """Ids of the user's jobs that have not ended."""
        return [native_id for native_id, state, row in self._rows(0, out)
                if state not in ("C", "F") and self._is_ours(fields_of(row))]
