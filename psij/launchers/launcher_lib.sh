# shellcheck shell=bash
# Sourced by launcher scripts. Takes the seven fixed arguments away; what is left is for the script.
set -e
trap : USR1 USR2        # they are for the program, which does not inherit this, and not for the script
_PSI_J_JOB_ID="$1"
_PSI_J_LOG_FILE="${2:-/dev/null}"
_PSI_J_PRE_LAUNCH="$3"
_PSI_J_POST_LAUNCH="$4"
_PSI_J_STDIN="${5:-/dev/null}"
_PSI_J_STDOUT="${6:-/dev/null}"
_PSI_J_STDERR="${7:-/dev/null}"
shift 7

# Paths mean what they mean now, whatever directory pre-launch goes to.
for _psi_j_name in _PSI_J_LOG_FILE _PSI_J_PRE_LAUNCH _PSI_J_POST_LAUNCH _PSI_J_STDIN _PSI_J_STDOUT _PSI_J_STDERR; do
    case "${!_psi_j_name}" in
        '' | /*) ;;
        \~/*) printf -v "$_psi_j_name" '%s' "$HOME${!_psi_j_name#\~}" ;;
        *) printf -v "$_psi_j_name" '%s' "$PWD/${!_psi_j_name}" ;;
    esac
done
unset _psi_j_name

# The local executor has opened (emptied, or not) the output files already and says so; otherwise they are emptied here,
# but for those of the streams that _PSI_J_APPEND names.
if [ -z "$_PSI_J_OUTPUT_READY" ]; then
    for _psi_j_stream in stdout stderr; do
        _psi_j_name="_PSI_J_${_psi_j_stream^^}"
        case " $_PSI_J_APPEND " in *" $_psi_j_stream "*) continue ;; esac
        case "${!_psi_j_name}" in
            /dev/shm/*) : >"${!_psi_j_name}" ;;
            /dev/*) ;;
            *) : >"${!_psi_j_name}" ;;
        esac
    done
    unset _psi_j_name _psi_j_stream
fi
unset _PSI_J_OUTPUT_READY _PSI_J_APPEND
export -n _PSI_J_PASSED_ON

# A line in the log file; a log that cannot be written is no reason to fail.
log() {
    { printf '%(%Y-%m-%dT%H:%M:%S%z)T %s %s\n' -1 "$_PSI_J_JOB_ID" "$*" >>"$_PSI_J_LOG_FILE"; } 2>/dev/null || true
}

pre_launch() {
    if [ -n "$_PSI_J_PRE_LAUNCH" ]; then
        log "pre-launch $_PSI_J_PRE_LAUNCH"
        # shellcheck source=/dev/null
        . "$_PSI_J_PRE_LAUNCH"
    fi
}

post_launch() {
    if [ -n "$_PSI_J_POST_LAUNCH" ]; then
        log "post-launch $_PSI_J_POST_LAUNCH"
        # shellcheck source=/dev/null
        . "$_PSI_J_POST_LAUNCH"
    fi
}

# Run one command with the job's streams; its exit code goes to _PSI_J_EC. (exec: a file, never a shell's own command.)
run_launch() {
    _PSI_J_EC=0
    log "run $1"
    if [ -z "$_PSI_J_PASSED_ON" ]; then
        (exec -- "$@") <"$_PSI_J_STDIN" >>"$_PSI_J_STDOUT" 2>>"$_PSI_J_STDERR" || _PSI_J_EC=$?
    else
        run_and_pass_on "$@"
    fi
    log "exit code $_PSI_J_EC"
    check_program "$1"
}

# The same for a program that is to get the signal _PSI_J_PASSED_ON, which reaches this script alone. What runs beside a
# shell ignores INT and QUIT unless it is told not to; wait ends early when a signal comes.
run_and_pass_on() {
    local program passed=
    (trap - INT QUIT && exec -- "$@") <"$_PSI_J_STDIN" >>"$_PSI_J_STDOUT" 2>>"$_PSI_J_STDERR" &
    program=$!
    # shellcheck disable=SC2064
    trap "kill -s $_PSI_J_PASSED_ON $program 2>/dev/null || true; passed=1" "$_PSI_J_PASSED_ON"
    while :; do
        _PSI_J_EC=0
        wait "$program" || _PSI_J_EC=$?
        [ -n "$passed" ] || break
        passed=
    done
}

# Whether the code means that there is no such program. That is trouble with the launch, and in the job's standard error,
# where the shell tells it, nobody may look.
check_program() {
    _PSI_J_TROUBLE=
    case "$_PSI_J_EC" in 126 | 127) ;; *) return 0 ;; esac
    if ! type -P -- "$1" >/dev/null; then
        _PSI_J_TROUBLE="cannot start $1: not found"
        if [ -e "$1" ]; then _PSI_J_TROUBLE="cannot start $1: it cannot be executed"; fi
        log "$_PSI_J_TROUBLE"
    fi
}

# Post-launch, end marker or what was wrong with the launch, exit with the executable's code (or the one of a failing
# post-launch).
end_launch() {
    _psi_j_post=0
    set +e
    post_launch || _psi_j_post=$?
    if [ "$_PSI_J_EC" = 0 ]; then _PSI_J_EC=$_psi_j_post; fi
    printf '%s\n' "${_PSI_J_TROUBLE:-_PSI_J_LAUNCHER_DONE}"
    exit "$_PSI_J_EC"
}
