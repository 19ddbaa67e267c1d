"""Whatever a job says comes back from its script, or there is a finding about it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sssjob.document.model import Document, Environment, Job, Requested, TaskGroup, new_property
from sssjob.document.units import to_bytes
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.templates.quoting import QuotingError
from sssjob.translators import ReadContext, WriteContext, get
from sssjob.translators.scripts import (
    _condor_lines,
    _flux_lines,
    _lsf_expressions,
    _lsf_lines,
    _pbs_lines,
    _sge_lines,
    _slurm_lines,
    cobalt,
    htcondor,
)
from sssjob.translators.scripts.base import Dialect, Reading, dialect_of
from sssjob.translators.scripts.raw import lines_of
from tests.strategies import examples

FORMATS = st.sampled_from(["slurm", "pbspro", "torque", "lsf", "sge", "cobalt", "flux"])
#: Those that say nodes and tasks, and those that count slots.
SIZED = st.sampled_from(["slurm", "pbspro", "torque", "flux"])
SLOTTED = st.sampled_from(["sge", "lsf"])
PREFIXES = {"sge": "#$ ", "lsf": "#BSUB ", "cobalt": "#COBALT ", "slurm": "#SBATCH ", "flux": "#FLUX: "}
LINES = st.lists(st.text(" #$-'\"\\=:,abnNPBSATCHtl1{}%", max_size=30), max_size=8)


#: What lines of directives are made of.
PIECES = st.sampled_from([
    "-n", "-N", "-l", "-o", "-W", "-R", "-m", "-pe", "-cwd", "-r", "-soft", "-clear", "--time-limit", "--env", "=",
    "4", "a", "y", "mpi", "walltime=1:00", "a=1,b", "\"", "'", "#", "\\", " ", "\t", "\xa0", "\x0b", "-", "'''", "$x",
    "--job-name", "--nodes=2", "--share=3", "--requeue", "--nice", "--nice=1", "-J", "hetjob", '--cwd="a b"',
    '--cwd="'])
DIRECTIVES = st.lists(st.tuples(st.sampled_from(["", " "]), st.lists(PIECES, max_size=6)), max_size=3)
NOTHING = re.compile(r"(?!)")
#: Where a line that takes no thought is read at once.
QUICK = {"lsf": (_lsf_lines, "_PLAIN"), "sge": (_sge_lines, "_PLAIN"), "pbspro": (_pbs_lines, "_PLAIN"),
         "torque": (_pbs_lines, "_PLAIN"), "flux": (_flux_lines, "_ONE"), "slurm": (_slurm_lines, "_PLAIN")}


@settings(max_examples=examples(100))
@example("pbspro", [("", ['"', "\\"]), ("", ['"', "'''"])])     # a quote that opens in a comment, and one before it
@given(st.sampled_from(sorted(QUICK)), DIRECTIVES)
def test_plain_lines_are_read_as_all_others(name: str, lines: list[tuple[str, list[str]]]) -> None:
    prefix = {"torque": "#PBS ", "pbspro": "#PBS "}.get(name) or PREFIXES[name]
    text = "#!/bin/sh\n" + "".join(f"{before}{prefix}{' '.join(pieces)}\n" for before, pieces in lines)
    dialect = dialect_of(name)
    assert dialect is not None

    def scanned() -> tuple[object, ...]:
        reading = Reading(dialect, ReadContext("x", Findings("x")))
        made = dialect.scan(reading, list(lines_of(text)))
        return made.components, made.rest, [str(f) for f in reading.findings]

    quick = scanned()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*QUICK[name], NOTHING)
        assert scanned() == quick


PARTS = st.lists(st.sampled_from([
    "select", "rusage", "affinity", "span[hosts=1]", "[", "]", "(", ")", "{", "core(2)", "*1", "'", ",", " ", "done",
    "ended", "11", "(1)", "&&", "||", "!", "\t", "\xa0"]), max_size=9).map("".join)


@settings(max_examples=examples(100))
@example(("sections", "_SIMPLE"), "span[hosts=1]rusage")
@given(st.sampled_from([("sections", "_SIMPLE"), ("conditions", "_SIMPLE_TERM")]), PARTS)
def test_plain_expressions_of_lsf_are_read_as_all_others(names: tuple[str, str], text: str) -> None:
    def read() -> object:
        try:
            return getattr(_lsf_expressions, names[0])(text)
        except ValueError as error:
            return repr(error)

    quick = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lsf_expressions, names[1], NOTHING)
        assert read() == quick


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(
    st.sampled_from(["a", "queue", "error", "if", "else", "endif", "my", "A", "+b", "MY.c", "a_1", "é"]),
    st.sampled_from(["=", " = ", " @= ", " ", "==", "\t=\xa0"]),
    st.sampled_from(["", "1", "b ", "$(a)", "$(a)$(a)", "@x", "= 2"])), max_size=6))
def test_plain_commands_of_htcondor_are_read_as_all_others(lines: list[tuple[str, str, str]]) -> None:
    text = "".join(f"{''.join(line)}\n" for line in lines) + "queue\n"
    dialect = dialect_of("htcondor")
    assert dialect is not None

    def read() -> tuple[object, ...]:
        reading = Reading(dialect, ReadContext("x", Findings("x")))
        made = _condor_lines.submissions(reading, list(lines_of(text)), {})
        return made, [str(f) for f in reading.findings]

    quick = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_condor_lines, "_PLAIN", NOTHING)
        assert read() == quick


#: Options as a writer may have them: those of the table, and those that were kept of a script.
NAMES = st.sampled_from([
    "-N", "-l walltime", "-l h_rt", "-W umask", "-pe", "-soft -l a", "-gpu", "-R", "--time", "--nodes", "--project",
    "-x y-z", "batch_name", "MY.a", "-@", "--", "-", "l"])
VALUES = st.none() | st.text("a1=:,./%@+-_", max_size=6) | st.text(" a\"'#\\$~\n\té", max_size=4)


@settings(max_examples=examples(100))
@given(st.sampled_from([*sorted(QUICK), "cobalt", "htcondor"]), NAMES, VALUES)
def test_plain_directives_are_written_as_all_others(name: str, option: str, value: str | None) -> None:
    dialect = dialect_of(name)
    assert dialect is not None

    def written() -> str:
        try:
            return str(dialect.directive(option, value))
        except QuotingError as error:
            return repr(error)

    quick = written()
    with pytest.MonkeyPatch.context() as patch:
        for module in (cobalt, _flux_lines, _lsf_lines, _pbs_lines, _sge_lines, _slurm_lines):
            patch.setattr(module, "bare", NOTHING.fullmatch)
        patch.setattr(htcondor, "_PRINTED", NOTHING)
        assert written() == quick


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "fixtures/scripts").glob("*/*.s*")),
                         ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_rows_that_are_not_asked_have_nothing_to_say(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def converted(target: str) -> tuple[str, list[str]]:
        context = ReadContext("x")
        document = get(path.parent.name).read(path.read_bytes(), context)
        text = get(target).write(document, WriteContext(context.findings, policy=Policy.WARN))
        return text, [str(f) for f in context.findings]

    targets = [*sorted(QUICK), "cobalt", "htcondor"]
    few = [converted(target) for target in targets]
    monkeypatch.setattr(Dialect, "rows_for", lambda self, keys, kept: [
        (row, not kept.isdisjoint({name.lstrip("-") for name in row.names})) for row in self.rows])
    assert [converted(target) for target in targets] == few


def there_and_back(name: str, job: Job) -> tuple[Job, Findings]:
    findings = Findings("x")
    text = get(name).write(Document(job), WriteContext(findings, policy=Policy.WARN))
    back = get(name).read(text.encode(), ReadContext(policy=Policy.WARN))
    return next(j for j, _ in back.jobs()), findings


@settings(max_examples=examples(40))
@given(FORMATS, st.text(max_size=20), st.text(max_size=20))
def test_texts(name: str, label: str, value: str) -> None:
    job = Job([new_property("Name", label), Environment([new_property("Variable", value, {"name": "A"})])])
    back, findings = there_and_back(name, job)
    subjects = {f.subject for f in findings}
    assert back.name == label or not label or {"Name", "-N", "-J", "--job-name"} & subjects
    assert (back.environment is not None and back.environment.variables() == {"A": value}) or {
        "Variable", "-v", "-env", "--export", "--env"} & subjects


@settings(max_examples=examples(40))
@given(SIZED, st.integers(1, 50), st.integers(1, 64), st.integers(1, 8), st.integers(1, 10**6))
def test_amounts(name: str, nodes: int, tasks: int, cpus: int, minutes: int) -> None:
    """All nodes, tasks and processors that are asked for stand in the script."""
    job = Job([Requested([new_property("NodeCount", nodes), new_property("Duration", minutes * 60)]),
               TaskGroup([new_property("TaskCount", tasks * nodes), new_property(
                   "TaskDistribution", str(tasks), {"type": "TasksPerNode"})])])
    back, findings = there_and_back(name, job)
    assert back.requested is not None and back.requested.duration == minutes * 60
    groups = [g.requested for g in back.task_groups if g.requested is not None]
    found = back.requested.node_count or sum(g.node_count or 0 for g in groups)
    assert found == nodes
    assert sum(g.task_count or 0 for g in back.task_groups) == tasks * nodes
    assert list(findings) == []


@settings(max_examples=examples(40))
@example("sge", 1, 1, 10**15 + 1)
@given(SLOTTED, st.integers(1, 50), st.integers(1, 64), st.integers(1, 2**50))
def test_slots(name: str, nodes: int, tasks: int, size: int) -> None:
    """As many slots as tasks, and no less memory than was asked for; what changes is told."""
    job = Job([Requested([new_property("NodeCount", nodes), new_property("Memory", size, {
        "units": "B", "metric": "PerNode"})]), TaskGroup([new_property("TaskCount", tasks * nodes)])])
    back, findings = there_and_back(name, job)
    assert back.requested is not None
    slots = back.requested.first("Processors")      # a job has one slot when nothing is said
    assert (slots is None) == (nodes * tasks == 1 and name == "sge")
    assert slots is None or slots.value == nodes * tasks
    memory = back.requested.first("Memory")
    assert memory is not None
    total = to_bytes(Decimal(memory.text), memory.get("units")) * (nodes * tasks if name == "sge" else nodes)
    assert total >= size * nodes
    assert total == size * nodes or "Memory" in {f.subject for f in findings}


@settings(max_examples=examples(75))
@given(FORMATS, LINES, st.booleans())
def test_any_text_is_read_or_refused(name: str, lines: list[str], prefixed: bool) -> None:
    """Never another exception; what was read can be written, and that is a fixed point."""
    prefix = PREFIXES.get(name, "#PBS ") if prefixed else ""
    text = "#!/bin/sh\n" + "".join(f"{prefix}{line}\n" for line in lines)
    try:
        document = get(name).read(text.encode(), ReadContext(policy=Policy.WARN))
        first = get(name).write(document, WriteContext())
        again = get(name).read(first.encode(), ReadContext(policy=Policy.WARN))
    except RejectedError:
        return
    assert get(name).write(again, WriteContext()) == first
