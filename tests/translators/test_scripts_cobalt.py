"""Batch scripts of Cobalt: directives under the first line, no quotes, minutes."""

from __future__ import annotations

import pytest

from sssjob.document.model import Document, Job
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.translators import ReadContext, WriteContext, get

SH = "#!/bin/sh\n"


def read(text: str, name: str = "cobalt", **options: str) -> tuple[Document, Findings]:
    context = ReadContext("job", Findings("job"), policy=Policy.WARN, options=options)
    return get(name).read(text.encode(), context), context.findings


def convert(text: str, source: str, target: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The directives that come out, and (kind, subject) of what writing tells, but for defaults that differ
    and the time and nodes that qsub of Cobalt always wants."""
    document, _ = read(SH + text, source)
    context = WriteContext(Findings("job"), policy=Policy.WARN)
    lines = get(target).write(document, context).splitlines()
    return [line.split(" ", 1)[1] for line in lines[1:] if line.startswith("#")], [
        (f.kind, f.subject) for f in context.findings
        if f.severity != "info" and f.subject not in (
            "Environment", "InitialWorkingDirectory", "--nodecount", "--time")]


def cobalt(text: str, **options: str) -> list[str]:
    """The directives that a script of Cobalt is written with."""
    document, _ = read(text if text.startswith("#!") else SH + text, **options)
    lines = get("cobalt").write(document, WriteContext(options={"layout": "canonical"})).splitlines()
    return [line.removeprefix("#COBALT ") for line in lines if line.startswith("#COBALT ")]


def told(text: str) -> list[tuple[str, str, int, int]]:
    return [(f.kind, f.subject, f.line, f.column) for f in read(text)[1]]


def job(text: str) -> Job:
    return next(j for j, _ in read(SH + text)[0].jobs())


def refused(text: str) -> bool:
    with pytest.raises(RejectedError):
        get("cobalt").read((SH + text).encode(), ReadContext("job", Findings("job")))
    return True


def directives(text: str) -> int:
    """How many options the job has got."""
    return len(read(text)[0].origins)  # type: ignore[attr-defined]


# --- traps, by number
def test_04_06_only_the_lines_below_the_first_one() -> None:
    assert cobalt("#COBALT -n 4\n#COBALT -t 5\n\n#COBALT -q x\n") == ["-t 00:05:00", "-n 4", "-q x"]
    document, findings = read(SH + "#COBALT -n 4\n\n#COBALT -q x\n")
    requested = next(document.jobs())[0].requested
    assert requested is not None and (requested.node_count, len(requested.items)) == (4, 1)
    assert [(f.kind, f.line) for f in findings] == [("dead", 4)]
    for text in (SH + "#\n#COBALT -n 4\n", "/bin/sh\n#COBALT -n 4\n", SH + " #COBALT -n 4\n", SH + "#COBALT-n 4\n",
                 SH + "##COBALT -n 4\n", "#COBALT -n 4\n", "\ufeff#!/bin/sh\n#COBALT -n 4\n"):
        assert directives(text) == 0
    assert told(SH + "#COBALT-n 4\n") == [("dead", "directive", 2, 1)]


def test_14_28_no_comments_no_quotes() -> None:
    assert cobalt("#COBALT -q x --attrs a=b:c=d -O out$jobid\n") == ["-q x", "--attrs a=b:c=d", "-O out$jobid"]
    assert cobalt('#COBALT --jobname "x\n') == ['--jobname "x']
    assert told(SH + "#COBALT -q debug # Only up to 8 nodes\n") == [("approximated", "#", 2, 18)]
    assert convert("#SBATCH -J 'a b'\n", "slurm", "cobalt") == (["--jobname a_b"], [("approximated", "Name")])


def test_19_20_abbreviations_and_glued_values() -> None:
    assert cobalt("#COBALT -n4 --nodec 8 -t=5\n", set="-t 5") == ["-t 00:05:00", "-n 8"]
    assert refused("#COBALT --k x\n") and refused("#COBALT --none x\n") and refused("#COBALT -Z\n")
    assert refused("#COBALT -n\n") and refused("#COBALT --queue\n")


def test_22_last_wins_and_variables_add_up() -> None:
    assert cobalt("#COBALT -n 4 -n 8\n#COBALT --env A=1:B=2\n#COBALT --env A=3:C=4\n") == ["-n 8", "--env A=3:B=2:C=4"]


def test_30_dos_line_breaks() -> None:
    with pytest.raises(RejectedError):
        get("cobalt").read(b"#!/bin/sh\r\n#COBALT -n 4\r\n", ReadContext("job", Findings("job")))


@pytest.mark.parametrize(("text", "seconds"), [
    ("90", 5400), ("1:30", 5400), ("1:30:00", 5400), ("1:00:00:00", 86400), ("0:0:30", 30)])
def test_31_32_times(text: str, seconds: int) -> None:
    requested = job(f"#COBALT -t {text}\n").requested
    assert requested is not None and requested.duration == seconds


def test_no_time_is_that_of_the_queue() -> None:
    assert cobalt("#COBALT -t 0\n") == ["-t 0"] and refused("#COBALT -t 90m\n") and refused("#COBALT -t 1-2\n")
    assert convert("#COBALT -t 0\n", "cobalt", "slurm") == ([], [("dropped", "Extension time")])


def test_52_53_files() -> None:
    assert convert("#COBALT -O out-$jobid\n", "cobalt", "slurm")[0] == [
        "--output=out-%j.output", "--error=out-%j.error"]
    assert cobalt("#COBALT -o a.$COBALT_JOBID -e b.$jobidx\n") == ["-o a.$jobid", "-e b.$jobidx"]
    assert convert("#SBATCH -o a.%j\n", "slurm", "cobalt")[0] == ["-o a.$jobid", "-e a.$jobid"]
    own = ["-o $jobid.output", "-e $jobid.output"]          # what is merged without a file never goes into the other's
    assert convert("#PBS -l select=1\n#PBS -j oe -e b\n", "pbspro", "cobalt")[0][-2:] == own
    assert convert("#SBATCH -o a.%a\n", "slurm", "cobalt") == ([], [("dropped", "OutputFile")])


def test_55_values_with_signs() -> None:
    assert cobalt("#COBALT --env A=x\\:y\\=z:B=1\n") == ["--env A=x\\:y\\=z:B=1"]
    assert convert("#SBATCH --export=A=x:y,B='a b'\n", "slurm", "cobalt") == (
        ["--env A=x\\:y"], [("approximated", "Variable")])        # the script exports it
    assert refused("#COBALT --env A\n")


def test_60_dependencies() -> None:
    assert convert("#COBALT --dependencies 1:2\n", "cobalt", "slurm")[0] == [
        "--dependency=afterok:@JOBID:1@:@JOBID:2@"]
    assert convert("#SBATCH -d afterok:1,afterany:2\n", "slurm", "cobalt") == (
        ["--dependencies @JOBID:1@"], [("site-dependent", "Dependency"), ("dropped", "Dependency")])
    assert refused("#COBALT --dependencies a\n") and cobalt("#COBALT --dependencies none\n") == ["--dependencies none"]


def test_66_templates() -> None:
    assert told(SH + "#COBALT -n <nodes>\n") == [("template", "--nodecount", 2, 9)]
    assert cobalt("#COBALT -n <nodes>\n") == ["-n <nodes>"]
    assert cobalt("#COBALT -n {nNode}\n") == ["-n {nNode}"] and refused("#COBALT -n {n Node}\n")


# --- what carries over
def test_sizes() -> None:
    assert convert("#COBALT -n 32 --proccount 512 --mode c16\n", "cobalt", "slurm")[0] == [
        "--nodes=32", "--ntasks=512", "--ntasks-per-node=16", "--exclusive"]
    assert convert("#SBATCH -n 64 --ntasks-per-node=16 -c 2 --mem=1G\n", "slurm", "cobalt") == (
        ["-n 4", "--proccount 64"], [("approximated", "TaskDistribution"), ("approximated", "Processors"),
                                     ("dropped", "Memory")])
    assert convert("#SBATCH -n 64\n", "slurm", "cobalt") == (["--proccount 64"], [("site-dependent", "NodeCount")])
    assert cobalt("#COBALT --mode script --proccount 4\n") == ["--proccount 4", "--mode script"]


def test_attributes() -> None:
    text = "--attrs mcdram=cache:numa=quad:location=0-9,12"
    assert cobalt(f"#COBALT {text}\n") == [text]
    requested = job(f"#COBALT {text}\n").requested
    assert requested is not None and [(p.tag, p.text, dict(p.attributes)) for p in requested.items] == [      # type: ignore[union-attr]
        ("Feature", "mcdram=cache", {}), ("Feature", "numa=quad", {}), ("Node", "0-9,12", {"aggregation": "Range"})]
    assert convert("#SBATCH -C haswell\n", "slurm", "cobalt") == ([], [("dropped", "Feature")])


def test_mail_goes_to_an_address_at_begin_and_end() -> None:
    assert convert("#COBALT -M a@b\n", "cobalt", "slurm")[0] == ["--mail-type=BEGIN,END", "--mail-user=a@b"]
    assert convert("#SBATCH --mail-type=END --mail-user=a@b\n", "slurm", "cobalt") == (
        ["-M a@b"], [("approximated", "NotificationList")])
    assert convert("#SBATCH --mail-type=END\n", "slurm", "cobalt") == ([], [("approximated", "NotificationList")])


def test_a_comment_that_cobalt_would_obey() -> None:
    document, _ = read("#!/bin/sh\n#COBALT -n 4\necho\n", "slurm")
    assert get("cobalt").write(document, WriteContext()).splitlines() == ["#!/bin/sh", "##COBALT -n 4", "echo"]


def test_what_only_cobalt_says_is_kept() -> None:
    text = "#COBALT --kernel cnk --disable_preboot --run_users a:b --umask 022 --held --debug -K x=1\n"
    assert cobalt(text) == ["--held", "--umask 022", "--debug", "--disable_preboot", "--kernel cnk", "-K x=1",
                            "--run_users a:b"]
