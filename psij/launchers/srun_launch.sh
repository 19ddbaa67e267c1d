#!/bin/bash
. "$(dirname "$0")/launcher_lib.sh"

_PSI_J_PROCESS_COUNT="$1"
shift
pre_launch
export SLURM_EXPORT_ENV=ALL         # what pre-launch set goes to all ranks, also after sbatch --export=NONE
# Since Slurm 22.05 srun does not take over sbatch's --cpus-per-task (manual page of srun).
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then
    export SRUN_CPUS_PER_TASK="${SRUN_CPUS_PER_TASK:-$SLURM_CPUS_PER_TASK}"
fi
run_launch srun -n "$_PSI_J_PROCESS_COUNT" "$@"
end_launch
