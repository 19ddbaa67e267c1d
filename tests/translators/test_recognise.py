"""``--from auto``: every format knows itself, says why, and nothing is guessed where two fit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sssjob.errors import UsageError
from sssjob.translators import get
from sssjob.translators.recognise import Sample, guess, recognise

SBATCH = b"#!/bin/bash\n#SBATCH -p x\n#SBATCH -t 5\nsrun ./a\n"
SELECT = b"#!/bin/sh\n#PBS -N x\n#PBS -l select=2:ncpus=4\ndate\n"
NODES = b"#!/bin/sh\n#PBS -N x\n#PBS -l nodes=2:ppn=4\ndate\n"


@pytest.mark.parametrize(("text", "name", "why"), [
    (SBATCH, "slurm", "2 lines of #SBATCH that Slurm obeys, the first in line 2"),
    (SELECT, "pbspro", "2 lines of #PBS that PBS Pro obeys, the first in line 2"),
    (b"#!/bin/sh\n#PBS -l procs=4\n", "torque", "1 line of #PBS that Torque obeys, in line 2"),
    (b"#!/bin/sh\n#PBS -t 1-4\n", "torque", "1 line of #PBS that Torque obeys, in line 2"),
    (b"#!/bin/sh\n#PBS -J 1-4\n", "pbspro", "1 line of #PBS that PBS Pro obeys, in line 2"),
    # sbatch stops at the first command; what PBS would not read either is no directive
    (b"#!/bin/sh\ndate\n#PBS -N x\n#SBATCH -p x\n", "", ""),
    # a comment that speaks of directives is none
    (b"#!/bin/sh\n# use #PBS -N x with qsub\n#SBATCH -p x\n", "slurm",
     "1 line of #SBATCH that Slurm obeys, in line 3"),
    (b"<Job><Id>1</Id></Job>", "sss", "the root element is Job"),
    (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <x> -->\n<j:JobGroup xmlns:j='urn:x'/>", "sss",
     "the root element is JobGroup"),
    (b"<html><body/></html>", "", ""),
    (b'{"Job": {"Id": "1"}}', "sss-json", "a JSON object with Job"),
    (b'[{"executable": "/bin/date", "arguments": ["{\\"Job\\": 1}"]}]', "psij",
     "a JSON object with arguments, executable"),
    (b'{"executable": "/bin/date"}', "", ""),
    (b'{"jobs": [], "meta": {}}', "sacct-json", "a JSON object with jobs, meta"),
    (b'{"nodes": [], "meta": {}}', "sinfo-json", "a JSON object with meta, nodes"),
    (b"JobID|User|State\n1|a|COMPLETED\n", "sacct", "it begins with columns of sacct, one of them JobID"),
    (b"11/21/2026 08:20:28;E;0.head;user=alice\n", "pbs-acct", "it begins with a stamp, a type of record and an id"),
    (b":".join([b"a"] * 45) + b"\n", "sge-acct", "it begins with 43 fields parted by colons"),
    (b'"JOB_FINISH" "9.11" 1389683139 404717\n', "lsf-acct", "it begins with an event, a release and a time"),
    (b"; Version: 2.2\n" + b"1 " * 17 + b"-1\n", "swf", "it begins with 18 numbers a line"),
    (b"11/21/2026 08:20:28;E;7;resource=mira\n", "cobalt-acct", "it begins with records of jobs with resource="),
    (b'<u:JobUsageRecord xmlns:u="http://schema.ogf.org/urf/2003/09/urf"/>', "ur1",
     "the root element is JobUsageRecord of http://schema.ogf.org/urf/2003/09/urf"),
    (b'<UsageRecords xmlns="http://schema.ogf.org/urf/2013/04/urf"/>', "ur2",
     "the root element is UsageRecords of http://schema.ogf.org/urf/2013/04/urf"),
    (b'<UsageRecords xmlns="http://eu-emi.eu/namespaces/2012/11/computerecord"/>', "car",
     "the root element is UsageRecords of http://eu-emi.eu/namespaces/2012/11/computerecord"),
    (b"APEL-individual-job-message: v0.3\n", "apel", "it begins with APEL-individual-job-message"),
    (b"APEL-summary-job-message: v0.2\n", "apel-summary", "it begins with a header of APEL's summaries"),
    (b'Owner = "alice"\nClusterId = 1\n', "htcondor-history", "it begins with attributes of a job ClassAd"),
    (b'{"jobs": [{"t_submit": 1.5}]}', "flux-jobs", "a JSON object of jobs with t_submit"),
    (b"", "", ""), (b"\0\1\2", "", ""), (b"#!/bin/sh\ndate\n", "", ""),
])
def test_what_is_recognised(text: bytes, name: str, why: str) -> None:
    assert [(t.name, fit.why) for t, fit in recognise(text)] == ([(name, why)] if name else [])


def test_of_relatives_the_first_one_counts() -> None:
    """The old form of nodes is good for both kinds of PBS; that it is read as one of them is said."""
    reader, fit = guess(NODES, "a.pbs")
    assert (reader.name, fit.why) == (
        "pbspro", "2 lines of #PBS that PBS Pro obeys, the first in line 2; torque would read it too")


def test_two_that_fit_are_both_named() -> None:
    """A script for two systems is for both."""
    both = SBATCH.replace(b"#SBATCH -t 5", b"#PBS -l select=1")
    assert [t.name for t, _ in recognise(both)] == ["slurm", "pbspro"]
    with pytest.raises(UsageError) as caught:
        guess(both, "a.sh")
    assert str(caught.value).startswith("a.sh: fits 2 formats, name one with --from: slurm (")


def test_lines_that_are_obeyed_count_for_more_than_one_that_would_be_refused() -> None:
    """A comment that looks like a directive of another manager."""
    for comment in (b"#$5 is the docker image\n", b"#$SCRATCH/old is where it was\n"):
        assert guess(SBATCH.replace(b"#SBATCH", comment + b"#SBATCH", 1))[0].name == "slurm"


def test_what_speaks_against_a_format_is_said_where_nothing_fits_better() -> None:
    """Neither qsub takes ``--time``, so both are named, each with what it would refuse."""
    fits = recognise(b"#!/bin/sh\n#PBS --time=5\n")
    assert [t.name for t, _ in fits] == ["pbspro", "torque"] and all(fit.against for _, fit in fits)


def test_nothing_is_a_usage_error() -> None:
    text = b"cat > x <<E\n#!/bin/sh\n#SBATCH -n 2\n#SBATCH -N 2\nE\nsbatch x\n"
    with pytest.raises(UsageError, match=r"^x: no format is recognised in it: 2 lines of #SBATCH stand in a "
                                         r"here-document, the first in line 3; name one with --from$"):
        guess(text, "x")
    with pytest.raises(UsageError, match=r"^x: no format is recognised in it; name one with --from$"):
        guess(b"#!/bin/sh\n", "x")


@pytest.mark.parametrize(("text", "where"), [
    ("#!/bin/bash\nset -e\nJ=$(sbatch --parsable a)\nsbatch b\n",
     ": line 3 calls sbatch of Slurm, so it is a script that submits"),
    ("#!/bin/csh\n# qsub does it\n./qsub x; my-qsub x\nqsub x\n",
     ": line 4 calls qsub of PBS Pro, Torque, Grid Engine or Cobalt, so it is a script that submits"),
    ("#!/usr/bin/env python3\nimport subprocess\nsubprocess.run(['condor_submit', 'a.sub'])\n",
     ": line 3 calls condor_submit of HTCondor, whose submit files are converted, not calls"),
    ("#!/bin/sh\nflux batch -n 2 a\n", ": line 2 calls flux batch of Flux, so it is a script that submits"),
    ("qsub x\n", ""), ("#!/bin/sh\n/usr/bin/sbatches x; echo qsub-ed; sbatch.log\n", ""),
])
def test_scripts_that_submit_are_told_as_such(text: str, where: str) -> None:
    with pytest.raises(UsageError, match=f"^x: no format is recognised in it{where}; name one with --from$"):
        guess(text.encode(), "x")


@pytest.mark.parametrize("text", [
    b"<!--" * 50_000, b"<!---->" * 20_000, b"<?" * 50_000, b"[" * 100_000, b'{"' * 50_000, b'{"a' + b"\\" * 100_000,
    b"#" * 1_000_000, b"#$ -" * 100_000, b"#PBS -l " + b"a=" * 50_000, b"a|" * 100_000, b":" * 200_000, b"1 " * 100_000,
    b"#SBATCH " + b'"' * 100_001, b"flux:" * 50_000, b"queue " * 50_000,
], ids=lambda text: repr(text[:6]))
def test_hostile_texts_take_no_time(text: bytes) -> None:
    """Each takes milliseconds; a quadratic look would take minutes."""
    recognise(text)


def test_a_sample_knows_roots_and_keys() -> None:
    assert Sample(b"<a:b xmlns:a='urn:q' c='>'>").root == ("b", "urn:q")
    assert Sample(b' [ {"a": {"b": 1}, "c": ["d", {"e": 2}], "f": "g:h"}, {"z": 1}]').keys == frozenset("acf")
    assert Sample(b'{"a": 1}\n{"b": 2}\n').keys == frozenset("a")
    assert Sample(b'["a"]').keys is None


def _public() -> list[Path]:
    folder = Path(os.environ.get("SSSJOB_SAMPLES") or "/nonexistent")
    return sorted(p for name in ("slurm", "sge", "lsf") for p in (folder / "scripts-corpus" / name).glob("*.sh"))


@pytest.mark.parametrize("path", _public() or [pytest.param(None, marks=pytest.mark.skip("SSSJOB_SAMPLES is not set"))],
                         ids=lambda p: f"{p.parent.name}-{p.stem}" if p else "")
def test_public_scripts_are_of_their_folder_or_of_none(path: Path) -> None:
    """Headers of public scripts: some have no live directive; none is taken for another system's."""
    names = [t.name for t, _ in recognise(path.read_bytes(), path.name)]
    assert not names or path.parent.name in names


def test_documents_of_ours_are_recognised_as_written() -> None:
    from sssjob.translators import ReadContext, WriteContext

    document = get("sss").read(b"<Job><Id>1</Id><Name>n</Name><Executable>/bin/date</Executable></Job>", ReadContext())
    for name in ("sss", "sss-json", "psij"):
        text = get(name).write(document, WriteContext())
        assert [t.name for t, _ in recognise(text.encode())] == [name]
