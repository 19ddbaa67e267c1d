# shellcheck shell=bash
# What the lab scripts share. Sourced, not run.
#
# A script ends with 0 (as asked), 1 (failed), 2 (wrong usage) or 4 (not to be had on this machine, for the reason
# that its last line names). Every daemon is one line "PID STARTTIME BOOT NAME" in $STATE/procs, STARTTIME being
# field 22 of /proc/PID/stat and BOOT the kernel's boot: a pid that has since gone to another process is left alone.

set -euo pipefail
umask 022
unset CDPATH LD_PRELOAD
PATH=$PATH:/usr/sbin:/sbin
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
MARK=.sssjob-lab

say()    { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die()    { say "$*"; exit 1; }
usage()  { say "$*"; exit 2; }
cannot() { say "cannot be had here: $*"; exit 4; }

export WIPE=''
STATE='' PROCS='' STARTED=() GUARD='' SCRATCH='' READY=''
_leave() {
    local status=$?
    trap - EXIT
    [ -z "$GUARD" ] || as_root rm -f "$GUARD"
    [ -z "$SCRATCH" ] || rm -f "$SCRATCH"
    # a lab that did not come up leaves its logs, but no process
    if [ -z "$READY" ] && [ ${#STARTED[@]} -gt 0 ]; then stop 3 "${STARTED[@]}" 2> /dev/null || true; fi
    exit "$status"
}
trap _leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- the lab's directory ---------------------------------------------------------------------------------------------

# use_state DIR: into STATE, absolute, locked against another up or down.
use_state() {
    if [ $# != 1 ] || [ -z "$1" ]; then usage "give the lab's directory (one argument)"; fi
    [ -r /proc/self/stat ] || cannot "there is no /proc"
    mkdir -p -- "$1" || die "cannot make $1"
    STATE=$(cd -- "$1" && pwd -P)
    # Unix sockets lie below it, and their path holds at most 107 characters
    [ ${#STATE} -le 60 ] || usage "the directory's path is too long for Unix sockets (${#STATE} > 60): $STATE"
    case $STATE in *[!A-Za-z0-9/._-]*) usage "only letters, digits and / . _ - in the directory's path: $STATE" ;; esac
    # what is sourced and run below it must be nobody else's
    if [ ! -O "$STATE" ] || [ -L "$1" ]; then die "$1 is somebody else's or a link"; fi
    [ -z "$(find "$STATE" -maxdepth 0 -perm /022)" ] || die "others may write into $STATE"
    if [ ! -e "$STATE/$MARK" ]; then
        [ -z "$(ls -A "$STATE")" ] || die "$STATE is not empty and not a lab"
        : > "$STATE/$MARK"
    fi
    PROCS=$STATE/procs
    touch "$PROCS"
    exec 9> "$STATE/.lock"
    flock -w 120 9 || die "another up or down holds $STATE"
}

# --- packages --------------------------------------------------------------------------------------------------------

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n -- "$@"; fi; }

# need_packages PKG...: installs what is missing; services that come along are not started.
need_packages() {
    local package missing=()
    { command -v dpkg-query && command -v apt-get; } > /dev/null \
        || cannot "it takes Debian packages ($*), and this is not Debian: no apt-get"
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" = 0 ] || sudo -n true 2> /dev/null \
        || cannot "packages are missing and only root or sudo without a password can install them: ${missing[*]}"
    say "installing ${missing[*]}"
    SCRATCH=$(mktemp)
    if [ ! -e /usr/sbin/policy-rc.d ]; then
        GUARD=/usr/sbin/policy-rc.d
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$GUARD" > /dev/null
        as_root chmod 755 "$GUARD"
    fi
    _apt install "${missing[@]}" || { _apt update && _apt install "${missing[@]}"; } \
        || cannot "packages could not be installed: ${missing[*]}: $(grep -m 1 '^E:' "$SCRATCH")"
    [ -z "$GUARD" ] || as_root rm -f "$GUARD"
    rm -f "$SCRATCH"
    GUARD='' SCRATCH=''
}
_apt() {
    as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C timeout -k 10 "${SSSJOB_LAB_APT_LIMIT:-400}" apt-get -y -q \
        --no-install-recommends -o DPkg::Lock::Timeout=200 -o Acquire::http::Timeout=30 -o Acquire::Retries=1 "$@" \
        < /dev/null > "$SCRATCH" 2>&1 9>&-
}

# make_loopback: builds the library that keeps daemons on the loopback, with any C compiler.
make_loopback() {
    local compiler
    compiler=$(command -v cc || command -v gcc || command -v clang || true)
    if [ -z "$compiler" ]; then
        need_packages tcc
        compiler=$(command -v tcc)
    fi
    "$compiler" -shared -nostdlib -fPIC -o "$STATE/loopback.so" "$HERE/loopback.c" \
        || die "could not compile loopback.c"
}

# --- processes -------------------------------------------------------------------------------------------------------

started_at() {  # started_at PID: "STARTTIME BOOT", or status 1 if there is no such process
    local line fields boot
    { read -r line < "/proc/$1/stat"; } 2> /dev/null || return 1
    read -ra fields <<< "${line##*) }"          # the name before it may hold spaces and brackets
    [ "${fields[0]}" != Z ] || return 1         # a zombie has ended
    read -r boot < /proc/sys/kernel/random/boot_id || return 1
    echo "${fields[19]} $boot"
}
pid_of() {      # pid_of NAME: the recorded pid, if it still runs
    local pid start boot name found=
    while read -r pid start boot name; do
        [ "$name" = "$1" ] && [ "$(started_at "$pid")" = "$start $boot" ] && found=$pid
    done < "$PROCS"
    [ -n "$found" ] && echo "$found"
}
running() { pid_of "$1" > /dev/null; }

# launch NAME COMMAND...: a daemon in the foreground of a session of its own, on the loopback only.
launch() {
    local name=$1 pid stamp
    shift
    STARTED+=("$name")
    _detached "$@" < /dev/null >> "$STATE/log/$name.out" 2>&1 &
    pid=$!
    disown "$pid"
    stamp=$(started_at "$pid") || die "$name ended at once: $(_last_words "$name")"
    sed -i "/ $name\$/d" "$PROCS"       # of one that has ended
    echo "$pid $stamp $name" >> "$PROCS"
}
_detached() {   # whoever waits for the end of a pipe that we were given must not wait for the daemon
    local fd
    for fd in "/proc/$BASHPID/fd/"*; do
        fd=${fd##*/}
        [ "$fd" -le 2 ] || exec {fd}>&-
    done
    exec env "LD_PRELOAD=$STATE/loopback.so" "SSSJOB_LAB_HOST=${LAB_HOST:-}" setsid "$@"
}
_last_words() { tail -q -n 3 "$STATE/log/$1.out" "$STATE/log/$1.log" 2> /dev/null | tr '\n' ' '; }

# wait_for SECONDS NAME COMMAND...: until the command succeeds; fails at once when the daemon has ended.
wait_for() {
    local end=$((SECONDS + $1)) name=$2 said
    shift 2
    until said=$(timeout 10 "$@" 2>&1 9>&-); do
        running "$name" || die "$name has ended; the log in $STATE/log says: $(_last_words "$name")"
        [ $SECONDS -lt $end ] || die "waited in vain for $name: $(tail -n 2 <<< "$said" | tr '\n' ' ')(logs: $STATE/log)"
        sleep 0.1
    done
}

# stop SECONDS NAME...: TERM to all of them, KILL to those left after SECONDS.
stop() {
    local end=$((SECONDS + $1)) name pid left signal=TERM
    shift
    for name in "$@"; do if pid=$(pid_of "$name"); then kill -TERM "$pid" 2> /dev/null || true; fi; done
    while :; do
        left=()
        for name in "$@"; do if running "$name"; then left+=("$name"); fi; done
        [ ${#left[@]} -gt 0 ] || break
        if [ $SECONDS -ge $end ]; then
            [ $signal = KILL ] && die "cannot end ${left[*]}"
            signal=KILL end=$((SECONDS + 5))
            for name in "${left[@]}"; do if pid=$(pid_of "$name"); then kill -KILL "$pid" 2> /dev/null || true; fi; done
        fi
        sleep 0.05
    done
    for name in "$@"; do sed -i "/ $name\$/d" "$PROCS"; done
}

# end_jobs VARIABLE VALUE...: what jobs have left behind, known by these words in their environment, all of them.
end_jobs() {
    local file word pid stamp found
    for file in /proc/[0-9]*/environ; do
        found=yes
        for word in "$@"; do grep -qazE -- "^$word" "$file" 2> /dev/null || { found=; break; }; done
        [ -n "$found" ] || continue
        pid=${file#/proc/} pid=${pid%/environ}
        stamp=$(started_at "$pid") || continue
        say "a job's process $pid is left ($(tr '\0' ' ' < "/proc/$pid/cmdline" 2> /dev/null | cut -c -60)); ending it"
        [ "$(started_at "$pid")" != "$stamp" ] || kill -KILL "$pid" 2> /dev/null || true
    done
}

# free_ports N: TCP ports that nobody uses, below those that the kernel gives away.
free_ports() {
    local port found=()
    for port in $(shuf -i 15000-32000 -n 200); do
        grep -qsi "$(printf ':%04X ' "$port")" /proc/net/tcp /proc/net/tcp6 || found+=("$port")
        [ ${#found[@]} -lt "$1" ] || break
    done
    [ ${#found[@]} = "$1" ] || die "no free ports"
    echo "${found[@]}"
}

# read_down_arguments [--wipe] DIR: sets WIPE, and STATE if there is a lab (else ends the script well).
read_down_arguments() {
    if [ "${1:-}" = --wipe ]; then WIPE=yes; shift; fi
    if [ $# != 1 ] || [ -z "$1" ]; then usage "give the lab's directory: ${0##*/} [--wipe] DIR"; fi
    if [ ! -e "$1/$MARK" ]; then
        [ ! -d "$1" ] || [ -z "$(ls -A "$1")" ] || die "$1 is not a lab"
        say "no lab in $1"
        exit 0
    fi
    use_state "$1"
}
