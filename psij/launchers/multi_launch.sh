#!/bin/bash
. "$(dirname "$0")/launcher_lib.sh"

export _PSI_J_PROCESS_COUNT="$1"
shift
pre_launch

_psi_j_pids=()
for ((_psi_j_index = 1; _psi_j_index <= _PSI_J_PROCESS_COUNT; _psi_j_index++)); do
    log "start $1, process $_psi_j_index"
    (export _PSI_J_PROCESS_INDEX_="$_psi_j_index"; exec -- "$@") \
        <"$_PSI_J_STDIN" >>"$_PSI_J_STDOUT" 2>>"$_PSI_J_STDERR" &
    _psi_j_pids+=($!)
done

# The first code that is not zero, in the order of the processes.
_PSI_J_EC=0
for _psi_j_pid in "${_psi_j_pids[@]}"; do
    _psi_j_code=0
    wait "$_psi_j_pid" || _psi_j_code=$?
    while kill -0 "$_psi_j_pid" 2>/dev/null; do         # a signal has ended the wait
        _psi_j_code=0
        wait "$_psi_j_pid" || _psi_j_code=$?
    done
    if [ "$_PSI_J_EC" = 0 ]; then _PSI_J_EC=$_psi_j_code; fi
done
log "exit code $_PSI_J_EC"
check_program "$1"
end_launch
