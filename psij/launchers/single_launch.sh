#!/bin/bash
. "$(dirname "$0")/launcher_lib.sh"

pre_launch
run_launch "$@"
end_launch
