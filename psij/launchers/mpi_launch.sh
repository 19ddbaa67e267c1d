#!/bin/bash
. "$(dirname "$0")/launcher_lib.sh"

_PSI_J_PROCESS_COUNT="$1"
shift
pre_launch
# More processes than processors are started all the same. In variables, because other MPIs do not know the options.
export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe:-1}"                     # Open MPI 4
export PRTE_MCA_rmaps_default_mapping_policy="${PRTE_MCA_rmaps_default_mapping_policy:-:oversubscribe}" # Open MPI 5
run_launch mpirun -n "$_PSI_J_PROCESS_COUNT" "$@"
end_launch
