#!/bin/bash
source $(dirname "$0")/launcher_lib.sh
GREETING="$1"
shift
pre_launch
echo "$GREETING, $(cat "$(dirname "$0")/name.txt")" >"$_PSI_J_STDOUT"
set +e
"$@" >>"$_PSI_J_STDOUT" 2>>"$_PSI_J_STDERR" <"$_PSI_J_STDIN"
_PSI_J_EC=$?
set -e
log "done: $_PSI_J_EC"
post_launch
echo "_PSI_J_LAUNCHER_DONE"
exit $_PSI_J_EC
