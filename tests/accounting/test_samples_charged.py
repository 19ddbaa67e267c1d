"""Every public sample is read and charged, and nothing is lost on the way: records read = given + rejected, and the
jobs made of those given = charged + not chargeable, each with a reason. A file that the table does not name fails.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from sssjob.accounting import Charge, charge, read_rates
from sssjob.cli import main
from sssjob.document.nodeset import NodeSet
from sssjob.translators import get
from sssjob.translators.base import ReadContext
from sssjob.translators.records.base import RecordTranslator

SAMPLES: Final = os.environ.get("SSSJOB_SAMPLES")
RATES: Final = read_rates(b'name = "s"\nversion = "1"\n[[rate]]\ntype = "VBR"\nname = "Processors"\nrate = 1\n'
                          b'per = "hour"\n')
_XDMOD: Final = ("JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,Start,End,Elapsed,"
"ExitCode,"
                 "State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,JobName")
_APEL: Final = ("JobID,JobName,User,Account,Start,End,Elapsed,CPUTimeRAW,Partition,NCPUS,NNodes,NodeList,MaxRSS,MaxV"
"MSize,"
                "State")
_EAGLE: Final = ("JobID,User,Account,Partition,QOS,A,ReqNodes,ReqCPUS,B,C,Submit,Start,End,D,State,JobName,WorkDir,E")


class Sample(NamedTuple):
    """format; options; records read, of them rejected by reason; jobs charged, jobs not charged by reason."""

    format: str
    options: dict[str, str]
    read: int
    rejected: dict[str, int]
    charged: int
    left: dict[str, int]


_UTC: Final = {"timezone": "UTC"}
FILES: Final = {
    "apel-messages/msg0.txt": Sample("apel", {}, 2, {}, 2, {}),
    "apel-messages/msg2.txt": Sample("apel", {}, 1, {"summary": 1}, 0, {}),
    "apel-messages/msg4.txt": Sample("apel", {}, 1, {"summary": 1}, 0, {}),
    "apel-messages/msg6.txt": Sample("apel", {}, 1, {"no-job": 1}, 0, {}),
    "apel-messages/msg8.txt": Sample("apel", {}, 1, {"no-job": 1}, 0, {}),
    "car/apel-aur1.xml": Sample("car", {}, 1, {"summary": 1}, 0, {}),
    "car/apel-car2-arc.xml": Sample("car", {}, 1, {}, 0, {"nothing-priced": 1}),
    "cobalt/cobalt.log": Sample("cobalt-acct", {}, 2, {"part": 1}, 0, {"not-started": 1}),
    "htcondor/apel-htcondor.log": Sample("htcondor-history", {}, 2, {}, 2, {}),
    "htcondor/gratia-history.377260.0": Sample("htcondor-history", {}, 1, {}, 1, {}),
    "htcondor/gratia-history.377265.0": Sample("htcondor-history", {}, 1, {}, 1, {}),
    "htcondor/gratia-history.377270.0": Sample("htcondor-history", {}, 1, {}, 1, {}),
    "lsf/apel-lsb.acct": Sample("lsf-acct", {}, 1, {}, 1, {}),
    "lsf/xdmod-lsb.acct": Sample("lsf-acct", {}, 1, {}, 1, {}),
    "pbs/apel-torque.log": Sample("pbs-acct", {}, 3, {}, 3, {}),
    "pbs/hnormalise-torque.log": Sample("pbs-acct", {}, 3, {}, 1, {"not-ended": 1, "not-started": 1}),
    "pbs/pbsparse-openpbs.log": Sample("pbs-acct", {}, 1, {}, 1, {}),
    "pbs/xdmod-pbs.log": Sample("pbs-acct", {}, 4, {}, 4, {}),
    "sge/apel-accounting": Sample("sge-acct", {}, 2, {}, 2, {}),
    "sge/xdmod-accounting": Sample("sge-acct", {}, 1, {}, 1, {}),
    "sge/xdmod-uge-accounting": Sample("sge-acct", {}, 1, {}, 1, {}),
    "slurm/apel-sacct-15col.log": Sample("sacct", _UTC | {"columns": _APEL}, 4, {"orphan": 2, "number": 1}, 1, {}),
    "slurm/eagle-200.csv": Sample("sacct", _UTC | {"columns": _EAGLE, "delimiter": ","}, 201, {"id": 1}, 0,
    {"nothing-priced": 200}),
    "slurm/habrok-sacct-37col.psv": Sample("sacct", _UTC, 97, {}, 35, {"not-started": 3, "not-ended": 2}),
    "slurm/sarc-mila_1706227200.json": Sample("sacct-json", {}, 7, {}, 7, {}),
    "slurm/xdmod-sacct-26col.log": Sample("sacct", _UTC | {"columns": _XDMOD}, 5, {}, 4, {"not-ended": 1}),
    "swf/accasim-a.swf": Sample("swf", {}, 14, {}, 14, {}),
    "ur1/gratia-batch.xml": Sample("ur1", {}, 1, {}, 1, {}),
    "ur1/sgas-ur1.xml": Sample("ur1", {}, 1, {}, 0, {"nothing-priced": 1}),
    "ur1/sgas-urt-extended.xml": Sample("ur1", {}, 1, {}, 1, {}),
}
#: Samples of something else than records.
ELSEWHERE: Final = {"SOURCES.md": "where they are from", "slurm/bart-hostlists.json": "host lists"}


def counts(path: Path, kind: str, options: dict[str, str]) -> tuple[int, dict[str, int], int, dict[str, int]]:
    reader = get(kind)
    assert isinstance(reader, RecordTranslator) and reader.stream is not None
    charged, left = 0, Counter[str]()
    with path.open("rb") as file:
        stream = reader.stream(file, ReadContext(path.name, options=options))
        for job in stream:
            price = charge(job, RATES)
            if isinstance(price, Charge):
                charged += 1
            else:
                left[str(price.reason)] += 1
    found = stream.counts
    assert found.read == found.given + found.rejected and found.rejected == found.reasons.total()
    assert found.jobs == charged + left.total()
    return found.read, dict(found.reasons), charged, dict(left)


def folder() -> Path:
    if SAMPLES is None:
        pytest.skip("SSSJOB_SAMPLES names no folder of samples")
    return Path(SAMPLES) / "accounting-samples"


@pytest.mark.parametrize("name", FILES)
def test_counts(name: str) -> None:
    sample = FILES[name]
    assert counts(folder() / name, sample.format, sample.options) == (
        sample.read, sample.rejected, sample.charged, sample.left)


def test_no_file_is_forgotten() -> None:
    there = {str(p.relative_to(folder())) for p in folder().rglob("*") if p.is_file()}
    assert there == FILES.keys() | ELSEWHERE.keys()


@pytest.mark.skipif(SAMPLES is None, reason="SSSJOB_SAMPLES names no folder of samples")
def test_host_lists() -> None:
    """The host lists of a peer's tests expand to the names that it expects."""
    for case in json.loads((folder() / "slurm" / "bart-hostlists.json").read_text()):
        assert list(NodeSet.parse_range(case["hostlist"])) == case["nodes"]


@pytest.mark.parametrize("name", [name for name, sample in FILES.items() if sample.charged + len(sample.left)])
def test_what_is_made_of_them_is_valid(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two records of one job were two jobs of the same Id (SSS308)."""
    sample = FILES[name]
    given = [word for pair in sample.options.items() for word in ("--option", "=".join(pair))]
    made = str(tmp_path / "jobs.xml")
    assert main(["convert", str(folder() / name), "-f", sample.format, "-t", "sss", "-o", made, *given]) == 0
    assert main(["check", made]) == 0, capsys.readouterr().err
