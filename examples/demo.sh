#!/bin/sh
# The demo: a group of jobs with real work, run on this machine, before and after. Needs sssjob on PATH.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/sssjob-demo.XXXXXX")
trap 'rm -rf "$place"' EXIT
cp "$here/pipeline.xml" "$place/"
cd "$place"
title() { printf '\n\033[1m=== %s\033[0m\n' "$*"; }
[ -t 1 ] && [ -z "${NO_COLOR:-}" ] || title() { printf '\n=== %s\n' "$*"; }
typed() { printf '$ %s\n' "$*"; }

narrow() { fold -s -w "${COLUMNS:-100}"; }

title "1. The document before: one job of the group, and what it asks for"
typed "sssjob query '//Job[Id=\"verify\"]' pipeline.xml | sssjob convert -f sss -t sss"
sssjob query '//Job[Id="verify"]' pipeline.xml | sssjob convert -f sss -t sss | narrow
typed "sssjob check pipeline.xml && echo fine"
sssjob check pipeline.xml && echo fine

title "2. Run it here (gzip, sha256sum, cmp; one step fails on purpose and another answers it)"
typed "sssjob run pipeline.xml --executor local -o done.xml"
code=0
sssjob run pipeline.xml --executor local -o done.xml || code=$?
echo "exit status $code"

title "3. The same document after: what was requested against what was delivered"
typed "sssjob show done.xml --brief"
sssjob show done.xml --brief

title "4. That job as it stands in the document now"
typed "sssjob query '//Job[Id=\"verify\"]' done.xml | sssjob convert -f sss -t sss -o verify.xml"
sssjob query '//Job[Id="verify"]' done.xml | sssjob convert -f sss -t sss -o verify.xml
narrow < verify.xml

title "5. The same job as JSON"
typed "sssjob convert -f sss -t sss-json verify.xml"
sssjob convert -f sss -t sss-json verify.xml | narrow

title "6. The same job as a PSI/J spec; what a spec has no place for is told"
typed "sssjob convert -f sss -t psij --policy warn verify.xml"
sssjob convert -f sss -t psij --policy warn verify.xml 2> told > spec.json
narrow < told
python -m json.tool spec.json | narrow

title "The files that the jobs wrote"
ls -l work
exit "$code"
