"""Batch scripts of Flux: where directives stand, what the options mean, and what does not carry over."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.scripts._flux_lines import arguments, scan
from sssjob.translators.scripts.base import Reading
from sssjob.translators.scripts.flux import DIALECT
from sssjob.translators.scripts.raw import lines_of

MICRO: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "scripts" / "flux-0.88.json").read_text())["cases"]
SH = "#!/bin/sh\n"


def read(text: str, name: str = "flux", policy: Policy | None = Policy.WARN) -> tuple[Document, Findings]:
    context = ReadContext("job", Findings("job"), policy=policy)
    return get(name).read(text.encode(), context), context.findings


def job(text: str) -> Job:
    return next(j for j, _ in read(SH + text)[0].jobs())


def convert(text: str, source: str, target: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The directives that come out, and (kind, subject) of what is told."""
    document, findings = read(SH + text, source)
    context = WriteContext(Findings("job"), policy=Policy.WARN)
    lines = get(target).write(document, context).splitlines()
    return [line for line in lines[1:] if line.startswith("#")], [
        (f.kind, f.subject) for f in (*findings, *context.findings)]


def flux(text: str, source: str = "flux") -> list[str]:
    return [line.removeprefix("#FLUX: ") for line in convert(text, source, "flux")[0]]


@pytest.mark.parametrize("name", MICRO)
def test_directives_stand_where_flux_finds_them(name: str) -> None:
    """The parser of flux-core itself read these."""
    case = MICRO[name]
    reading = Reading(DIALECT, ReadContext("job", Findings("job"), policy=None))
    scanned = scan(reading, list(lines_of(case["script"].replace("\r\n", "\n"))))
    assert reading.findings.rejected is not case["accepted"]
    if case["accepted"]:
        wanted = arguments(reading, shlex.join(word for words in case["args"] for word in words))
        assert [(o.name, o.value) for o in scanned.components[0] if o.name != "sentinel"] == [
            (o.name, o.value) for o in wanted]


def test_dos_line_breaks_are_taken() -> None:
    document, findings = read("#!/bin/sh\r\n#FLUX: -N2\r\necho\r\n", policy=None)
    requested = next(j for j, _ in document.jobs()).requested
    assert requested is not None and requested.node_count == 2 and not list(findings)
    assert document.files["Script"].content() == b"#!/bin/sh\r\necho\r\n"


@pytest.mark.parametrize("text", [
    "#FLUX: -N2\n",                                     # no shebang
    "#!/bin/sh\n#FLUX: --noodles=2\n",
    "#!/bin/sh\n#FLUX: -N 4 -n 2\n",
    "#!/bin/sh\n#FLUX: -n 2 --exclusive\n",
    "#!/bin/sh\n#FLUX: --nodes\n",
    "#!/bin/sh\n#FLUX: --quiet=1\n",
    "#!/bin/sh\n#FLUX: -t 1h30m\n",
    "#!/bin/sh\n#FLUX: --urgency=99\n",
    "#!/bin/sh\n#FLUX: --ntasks=4\n",                   # an option of flux-submit
    "#!/bin/sh\n#FLUX: --conf='''\necho\n",             # three quotes stay open
    "#!/bin/sh\n#FLUX: --conf='''\n",
])
def test_what_flux_batch_refuses(text: str) -> None:
    with pytest.raises(RejectedError):
        read(text, policy=None)
    assert read(text)[1]


@pytest.mark.parametrize(("text", "seconds"), [
    ("90", 5400), ("90m", 5400), ("1.5h", 5400), ("90s", 90), ("2d", 172800), ("90.5", 5430)])
def test_31_a_bare_time_is_minutes(text: str, seconds: int) -> None:
    requested = job(f"#FLUX: -t {text}\n").requested
    assert requested is not None and requested.duration == seconds


@pytest.mark.parametrize(("text", "seconds"), [("3600.5s", 3601), ("0.011", 1), ("1e-9s", 1)])
def test_a_fraction_of_a_second_is_a_whole_one(text: str, seconds: int) -> None:
    """A limit that is kept for Flux alone would be no limit elsewhere."""
    written, findings = convert(f"#FLUX: -t {text}\n", "flux", "pbspro")
    assert written == [f"#PBS -l walltime={seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"]
    assert findings[0] == ("approximated", "--time-limit")


def test_a_long_directive_is_refused() -> None:
    """shlex takes time by the square; a line without quotes needs none of it."""
    with pytest.raises(RejectedError) as caught:
        read(SH + f"#FLUX: --env=A='{'x' * 70_000}'\n")
    assert "limit directive" in str(caught.value)
    assert flux(f"#FLUX: --env=A={'x' * 70_000}\n") == [f"--env=A={'x' * 70_000}"]


def test_no_limit_is_kept_for_flux_only() -> None:
    assert flux("#FLUX: -t 0\n") == ["--time-limit=0"]
    assert convert("#FLUX: -t 0\n", "flux", "slurm") == ([], [("dropped", "Extension time-limit")])
    assert convert("#FLUX: -t inf\n", "flux", "slurm") == ([], [("dropped", "Extension time-limit")])
    assert convert("#FLUX: -t 1e1\n", "flux", "slurm") == (["#SBATCH --time=00:10:00"], [])
    assert convert("#FLUX: --signal=USR1@inf\n", "flux", "flux-jobspec")[1][0] == ("dropped", "Extension signal")


def test_03_a_prefix_with_two_signs_is_live() -> None:
    assert flux("##FLUX: -N1 -n1\n") == ["--nodes=1", "--nslots=1"]


def test_almost_a_directive() -> None:
    assert ("dead", "directive") in convert("#FLUX -n8\n", "flux", "flux")[1]


def test_command_line_wins() -> None:
    context = ReadContext("job", Findings("job"), options={"set": "-n 9 --env=B=2"})
    document = get("flux").read(b"#!/bin/sh\n#FLUX: -n 4 --env=A=1\n", context)
    text = get("flux").write(document, WriteContext())
    assert text.splitlines()[1:] == ["#FLUX: --nslots=9", "#FLUX: --env=A=1", "#FLUX: --env=B=2"]


@pytest.mark.parametrize(("value", "quoted"), [
    ("a b", '"a b"'), ('say "hi"', '"say \\"hi\\""'), ("a#b", '"a#b"'), ("a\\b", '"a\\\\b"'), ("it's", '"it\'s"'),
    ("a'''b", "a\\'\\'\\'b"), ("(x|y)&z", '"(x|y)&z"')])
def test_quoting(value: str, quoted: str) -> None:
    made = Job()
    made.add("Name", value)
    text = get("flux").write(Document(made), WriteContext())
    assert text == f"#!/bin/sh\n#FLUX: --job-name={quoted}\n"
    assert next(j for j, _ in read(text)[0].jobs()).name == value


def test_rules_of_the_environment() -> None:
    assert job("#FLUX: --env-remove=* --env=PATH --env=A=x,y --env='B=5$$'\n").environment is not None
    assert flux("#FLUX: --env=-* --env=PATH --env=A=x,y\n") == ["--env=-*", "--env=PATH", "--env=A=x,y"]
    assert flux("#FLUX: --env=A=$B --env=-LD_*\n") == ["--env=A=$B", "--env=-LD_*"]     # as they are, in order
    assert convert("#SBATCH --export=NONE\n", "slurm", "flux")[0] == ["#FLUX: --env=-*"]
    assert convert("#PBS -v A=1,B=$HOME\n", "torque", "flux")[0] == ["#FLUX: --env=A=1", "#FLUX: --env=B=$$HOME"]


@pytest.mark.parametrize(("text", "expected"), [
    ("a,b&-c", [("Feature", "a", {}), ("Feature", "b", {}), ("Feature", "c", {"op": "NE"})]),
    ("a and host:n[1-3]", [("Feature", "a", {}), ("Node", "n[1-3]", {"aggregation": "Range"})]),
    ("-host:n7", [("Node", "n7", {"op": "NE"})]),
])
def test_constraints(text: str, expected: list[tuple[str, str, dict[str, str]]]) -> None:
    requested = job(f"#FLUX: --requires='{text}'\n").requested
    assert requested is not None
    assert [(p.tag, p.text, p.attributes) for p in requested.properties()] == expected


def test_alternatives() -> None:
    assert flux('#FLUX: --requires="(a|b)&c" --requires=d\n') == [
        '--requires="(a|b)"', "--requires=c", "--requires=d"]
    assert convert('#FLUX: --requires="a|b&c"\n', "flux", "slurm") == (['#SBATCH --constraint="a|(b&c)"'], [
        ("site-dependent", "Feature")] * 3)
    assert convert('#FLUX: --requires="a|host:n1"\n', "flux", "slurm") == ([], [("dropped", "Extension requires")])


def test_60_dependencies_are_one_uri_each() -> None:
    text, findings = convert("#SBATCH --dependency=afterok:1:2,afterany:3\n", "slurm", "flux")
    assert text == [f"#FLUX: --dependency={kind}:@JOBID:{n}@" for kind, n in (
        ("afterok", 1), ("afterok", 2), ("afterany", 3))]
    assert findings == [("site-dependent", "Dependency")] * 3
    assert flux("#FLUX: --dependency=afterexcept:f1 --dependency=singleton\n") == [
        "--dependency=afterexcept:f1", "--dependency=singleton"]
    assert convert("#SBATCH --begin=2026-01-01T00:00:00\n", "slurm", "flux")[0] == [
        "#FLUX: --dependency=begin-time:1767225600"]


def test_48_priorities_keep_their_sign() -> None:
    assert convert("#PBS -p -6\n", "pbspro", "flux")[0] == ["#FLUX: --urgency=10"]
    assert convert("#FLUX: --urgency=10\n", "flux", "slurm")[0] == ["#SBATCH --nice=6"]
    text, findings = convert("#PBS -p 1000\n", "pbspro", "flux")
    assert text == ["#FLUX: --urgency=31"] and ("approximated", "Priority") in findings
    assert flux("#FLUX: --urgency=0\n") == ["--urgency=hold"]


def test_46_a_range_of_nodes() -> None:
    assert convert("#SBATCH -N 2-4 -n 8\n", "slurm", "flux") == (
        ["#FLUX: --nodes=2", "#FLUX: --nslots=8"], [("approximated", "NodeCount")])


def test_whole_job_from_slurm() -> None:
    """What a person of the site would write, and what the LRM has no place for."""
    made, told = convert(
        "#SBATCH -J cfd -p batch -A phys -t 90 -N 2 --ntasks-per-node=4 -c 2 --gpus-per-node=4 --mem=8G -a 1-3\n"
        "#SBATCH --mail-type=END -o %x.%j.out --signal=B:USR1@60\n", "slurm", "flux")
    assert made == ["#FLUX: --job-name=cfd", "#FLUX: --bank=phys", "#FLUX: --queue=batch",
                    "#FLUX: --time-limit=5400s", "#FLUX: --nodes=2", "#FLUX: --nslots=8", "#FLUX: --cores-per-slot=2",
                    "#FLUX: --gpus-per-slot=1", "#FLUX: --signal=USR1@60s", "#FLUX: --output={{name}}.{{id}}.out"]
    assert sorted(told) == [("approximated", "Extension Signal"), ("dropped", "Extension Array"), ("dropped", "Memory"),
                            ("dropped", "NotificationList")]


def test_groups_are_added_up_when_they_are_alike() -> None:
    alike = "#SBATCH -n 4 -c 2\n#SBATCH hetjob\n#SBATCH -n 8 -c 2\n"
    assert convert(alike, "slurm", "flux") == (
        ["#FLUX: --nslots=12", "#FLUX: --cores-per-slot=2"], [("approximated", "TaskGroup")])
    other = "#SBATCH -n 4 -c 2\n#SBATCH hetjob\n#SBATCH -n 8 -c 4\n"
    assert convert(other, "slurm", "flux")[1] == [("dropped", "TaskGroup")]


def test_lines_that_flux_would_stumble_over_are_disarmed() -> None:
    text, findings = convert("#SBATCH -n 4\n# flux: -n 2\necho\n", "slurm", "flux")
    assert text == ["#FLUX: --nslots=4", "#off # flux: -n 2"] and findings[-1] == ("approximated", "directive")
    assert flux("#FLUX: -n4\n#off # flux: -n 2\n") == ["--nslots=4", "#off # flux: -n 2"]


def test_values_of_several_lines() -> None:
    text = "#FLUX: --conf='''\n#FLUX: [a]\n#FLUX: x = 1\n#FLUX: '''\n"
    document, _ = read(SH + text)
    assert get("flux").write(document, WriteContext()) == SH + text


def test_a_comment_sign_of_another_language_stays() -> None:
    text = "#!/usr/bin/lua\n-- flux: --nslots=2\nprint(1)\n"
    assert get("flux").write(read(text)[0], WriteContext()) == text


@pytest.mark.parametrize("text", ["#FLUX: " + "-" * 100_000, "#FLUX: '" + "a" * 100_000,
                                  "#FLUX: --requires=" + "a&" * 50_000, "#FLUX: " + "'''" * 30_001,
                                  "#FLUX: --output=" + "{{" * 50_000])
def test_long_lines_end(text: str) -> None:
    try:
        document, _ = read(SH + text + "\n")
    except RejectedError:
        return
    get("flux").write(document, WriteContext())


@pytest.mark.parametrize(("count", "written"), [(2, False), (8, True)])
def test_hosts_to_choose_from_are_no_list_for_slurm(count: int, written: bool) -> None:
    """sbatch refuses a list of more nodes than are asked for (seen: "invalid number of nodes (-N 8-2)")."""
    context = ReadContext()
    document = get("flux").read(f"#!/bin/sh\n#FLUX: -N{count} --requires=host:n[1-8]\ntrue\n".encode(), context)
    writing = WriteContext(Findings("s"))
    text = get("slurm").write(document, writing)
    assert ("--nodelist" in text) is written
    assert any(f.subject == "Node" and f.kind == "dropped" for f in writing.findings) is not written
