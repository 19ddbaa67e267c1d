# Sourced by launcher scripts. Takes the seven fixed arguments away; what is left is for the script.
set -e
_PSI_J_JOB_ID="$1"
_PSI_J_LOG_FILE="${2:-/dev/null}"
_PSI_J_PRE_LAUNCH="$3"
_PSI_J_POST_LAUNCH="$4"
_PSI_J_STDIN="${5:-/dev/null}"
_PSI_J_STDOUT="${6:-/dev/null}"
_PSI_J_STDERR="${7:-/dev/null}"
shift 7

# The local executor has opened (emptied, or not) the output files already and says so; otherwise they are emptied here.
if [ -z "$_PSI_J_OUTPUT_READY" ]; then
    for _psi_j_file in "$_PSI_J_STDOUT" "$_PSI_J_STDERR"; do
        case "$_psi_j_file" in /dev/*) ;; *) : >"$_psi_j_file" ;; esac
    done
    unset _psi_j_file
fi
unset _PSI_J_OUTPUT_READY

log() {
    printf '%(%Y-%m-%dT%H:%M:%S%z)T %s %s\n' -1 "$_PSI_J_JOB_ID" "$*" >>"$_PSI_J_LOG_FILE"
}

pre_launch() {
    if [ -n "$_PSI_J_PRE_LAUNCH" ]; then
        log "pre-launch $_PSI_J_PRE_LAUNCH"
        . "$_PSI_J_PRE_LAUNCH"
    fi
}

post_launch() {
    if [ -n "$_PSI_J_POST_LAUNCH" ]; then
        log "post-launch $_PSI_J_POST_LAUNCH"
        . "$_PSI_J_POST_LAUNCH"
    fi
}

# Run one command with the job's streams; its exit code goes to _PSI_J_EC.
run_launch() {
    _PSI_J_EC=0
    log "run $1"
    "$@" <"$_PSI_J_STDIN" >>"$_PSI_J_STDOUT" 2>>"$_PSI_J_STDERR" || _PSI_J_EC=$?
    log "exit code $_PSI_J_EC"
}

# Post-launch, end marker, exit with the executable's code (or the one of a failing post-launch).
end_launch() {
    _psi_j_post=0
    set +e
    post_launch || _psi_j_post=$?
    if [ "$_PSI_J_EC" = 0 ]; then _PSI_J_EC=$_psi_j_post; fi
    echo "_PSI_J_LAUNCHER_DONE"
    exit "$_PSI_J_EC"
}
