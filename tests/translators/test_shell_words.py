"""Every name that bash expands is found as one that is expanded, whatever word it stands in; bash itself is asked."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.findings import Findings, Policy
from sssjob.limits import LIMITS
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.bodies.shell import Shell
from tests.strategies import FIXED, examples

NAME = re.compile(rb"(?<!\w)XX(?!\w)")
SEEN = "730173"         # the value of XX: a number, so that arithmetic shows it
#: Kinds that say that a name is expanded, and those that say that it is not known whether it is.
EXPANDED, UNSURE = ("simple", "braced", "operated", "arithmetic"), ("odd", "unknown")

BESIDE = st.sampled_from([
    "$H", "${H}", "/", ".", "-", "a", "_", "%", "@", ":", ",", "=", "+", r"\\", r"\$", r"\a", "$$", "$1", "$?", "$#",
    '"$H"', '"/a b"', "'$H'", "$'a'", "$(echo a)", "`echo b`", "$((1+1))", "${H%a}", "${H:-b}", '"$H/$H"'])
NAMED = st.sampled_from([
    "$XX", "${XX}", '"$XX"', "'$XX'", r"\$XX", r"\\$XX", r"\\\$XX", "${XX:-a}", "${XX%%.*}", "${#XX}", "$((XX+0))",
    "$((XX))", '"$H/$XX.a"', '"${XX}"', r'"\$XX"', '"a$((XX*1))b"', "$(echo $XX)", "$(echo $H/$XX.b)", "`echo $H.$XX`",
    "$'$XX'", "${H:+$XX}", "${N:-$XX}", "${N:-$H/$XX.c}", "XX", '"XX"', "$$XX", "$XX$H", "$H$XX", "${H}XX"])
WORDS = st.tuples(st.lists(BESIDE, max_size=3), NAMED, st.lists(BESIDE, max_size=3)).map(
    lambda parts: "".join((*parts[0], parts[1], *parts[2])))
LINES = st.sampled_from([
    "echo {}", 'v={}; echo "$v"', "cat <<< {}", "cat <<E\n{}\nE", "cat <<'E'\n{}\nE", "cat <<-E\n\t{}\n\tE",
    "echo a > /dev/stdout {}", "for i in {}; do echo $i; done", 'export P={}; echo "$P"', "(echo --x={})",
    "f() {{ echo {}; }}; f", "case {} in *) echo a;; esac", "[ -n {} ] && echo {}"])


def printed(line: str, value: str) -> str:
    """What bash prints of a line; errors of hopeless words are its own affair."""
    done = subprocess.run(["bash", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, env={"PATH": "/usr/bin:/bin", "H": "h", "XX": value}, errors="replace")
    return re.sub(r"\d{3,}", lambda found: found[0] if SEEN in found[0] else "N", done.stdout)


@settings(max_examples=examples(100), derandomize=FIXED, deadline=None)
@given(LINES, WORDS)
def test_what_bash_expands_is_found(line: str, word: str) -> None:
    text = line.format(word, word)
    kinds = {use.kind for use in Shell(text.encode(), LIMITS).uses(NAME)}
    if SEEN in printed(text, SEEN):
        assert kinds & {*EXPANDED, *UNSURE}, text
    elif "case" not in text and "${#" not in text:
        assert not kinds & {*EXPANDED} or "unknown" in kinds, text


@settings(max_examples=examples(100), derandomize=FIXED, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=3))
def test_a_call_has_the_words_that_bash_makes_of_it(words: list[str]) -> None:
    """The grammar may make two of one (``${A}:$B,c``), and the second would be taken for the script of a submit
    command."""
    call = " ".join(words)
    uses = [use for use in Shell(f"qcall {call}\n".encode(), LIMITS).uses(re.compile(b"qcall"))]
    if uses[0].kind == "command":
        assert len(uses[0].words) - 1 == int(run(f"set -- {call}\necho $#", XX=SEEN)), call


def run(text: str, **variables: str) -> bytes:
    """What bash prints of a script whose job has these variables."""
    done = subprocess.run(["bash"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120,
                          env={"PATH": "/usr/bin:/bin", "H": "h", **variables}, check=False)
    return done.stdout


@pytest.mark.parametrize("mode", ["shim", "translate"])
@settings(max_examples=examples(25), derandomize=FIXED, deadline=None)
@given(LINES, WORDS)
def test_what_is_converted_prints_the_same_or_is_told(mode: str, line: str, word: str) -> None:
    """The job's name is SLURM_JOB_NAME under the one manager and JOB_NAME under the other, and nothing else is."""
    body = re.sub(r"(?<!\w)XX(?!\w)", "SLURM_JOB_NAME", line.format(word, word)).replace("$$", "$!")
    script = f"#!/bin/bash\n{body}\n"
    findings = Findings("s")
    document = get("slurm").read(script.encode(), ReadContext("s", findings))
    written = str(get("sge").write(document, WriteContext(findings, policy=Policy.WARN, options={"body": mode})))
    before, after = run(script, SLURM_JOB_NAME=SEEN), run(written, JOB_NAME=SEEN)
    if before != after:
        assert any(finding.rule in ("SSS510", "SSS513", "SSS514") for finding in findings), (script, before, after)


@pytest.mark.parametrize(("text", "kinds"), [
    ("cp $H/$XX.log", ["simple"]), ("cp $A.$XX.$XX.log", ["simple", "simple"]), ("cp $A/${XX}.log", ["braced"]),
    ("x=$H/$XX.d", ["simple"]), ("cmd --x=$H/$XX.y > $H/out-$XX-cores.txt", ["simple", "simple"]),
    ("echo $1.$XX.log $$.$XX.log $?.$XX.log", ["simple"] * 3),
    (r"echo $A\$XX.log $A\\$XX.log $$XX", ["text", "simple", "text"]),
    ("cat <<E\n$H/$XX.l $((XX+1)) \\$((XX)) XX\nE", ["simple", "arithmetic", "text", "text"]),
    ("cat <<'E'\n$H/$XX.l $((XX+1))\nE", ["text", "text"]), ("cat <<\\E\n$H/$XX.l\nE", ["text"]),
    ("for ((i = XX; i < XX-1 && XX; i += XX)); do echo XX; done", ["arithmetic"] * 4 + ["text"]),
    ("let a=XX+1", ["arithmetic"]), ("echo ${a[XX]}", ["odd"]), ("[[ $H =~ $H/$XX.a ]]", ["simple"]),
    ("echo 'a'$XX.b'$XX'", ["simple", "text"]), ("cp $H/${XX%.*}.$XX.log", ["operated", "simple"]),
    ("rsync u@h:$H/$XX.z . <<< $H/$XX.a", ["simple", "simple"]), ("echo `echo $H/$XX.a`", ["simple"]),
])
def test_places(text: str, kinds: list[str]) -> None:
    assert [use.kind for use in Shell(text.encode(), LIMITS).uses(NAME)] == kinds
