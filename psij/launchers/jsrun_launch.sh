#!/bin/bash
. "$(dirname "$0")/launcher_lib.sh"

_PSI_J_PROCESS_COUNT="$1"
shift
pre_launch
run_launch jsrun --np "$_PSI_J_PROCESS_COUNT" "$@"
end_launch
