"""The laws over scripts: those of the fixtures, public ones where ``SSSJOB_SAMPLES`` names them, and written ones.

What a script asks for, its own manager is asked for by ``run`` too (read by the reader of the manager's dialect from
the script that would be submitted), and its quote is the charge of a run that used just that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings

from psij import JobExecutor
from sssjob.conversion.compare import differences
from sssjob.document.arrays import Array, array_of
from sssjob.document.inherit import effective
from sssjob.document.model import Document
from sssjob.errors import RejectedError
from sssjob.findings import Findings, Policy
from sssjob.run import make_plan
from sssjob.run.rehearsal import rehearse
from sssjob.translators import ReadContext, get
from sssjob.translators.registry import SCRIPT_FORMATS
from tests.accounting.test_quoted import quoted_as_charged
from tests.cases import Cases
from tests.laws.documents import geometries, read
from tests.laws.test_amounts import written
from tests.laws.test_descriptions import descriptions
from tests.strategies import FIXED, examples

#: Folders that hold a folder of scripts for each dialect.
FOLDERS: Final = (Path(__file__).parents[1] / "fixtures" / "scripts",
                  Path(os.environ.get("SSSJOB_SAMPLES") or "/nowhere") / "scripts-corpus")
#: Dialect -> executor, where they have different names.
EXECUTORS: Final = {"pbspro": "pbs", "torque": "pbs_classic"}
#: What ``run`` sees to in a way of its own: streams, the directory, the shell and variables in the script that it
#: writes, what starts the program, arrays as elements, and what it waits for itself.
OWN_WAY: Final = ("InputFile", "OutputFile", "ErrorFile", "InitialWorkingDirectory", "Variable", "Environment", "Shell",
                  "Executable", "Arguments", "Dependency", "EligibleTime")
OWN_EXTENSIONS: Final = ("Scheduler Array", "Scheduler Launcher", "Scheduler LoginShell", "Scheduler ExportNames",
                         "PSIJ StageIn", "PSIJ StageOut")
#: The same of one executor: its names of jobs and limits are attributes of its own, streams are written at once.
OWN_OF: Final = {"htcondor": ("Name", "Duration"), "flux": ("Extension flux Prefix",),
                 "cobalt": ("Extension cobalt debuglog",)}
#: A number of the layout -> the properties and options whose findings account for it.
LAYOUT: Final = {"GPUs": ("NodeCount",), "nodes": ("NodeCount",), "tasks": ("TaskCount", "Cobalt's option mode"),
                 "processors": ("Processors", "NodeCount", "Cobalt's option mode"), "memory": ("Memory",)}


def scripts(dialect: str) -> Iterator[tuple[str, Document]]:
    """Name and document of each script of a dialect that its reader takes."""
    for folder in FOLDERS:
        for path in sorted((folder / dialect).glob("*.s[hu]*")):
            try:
                yield path.name, get(dialect).read(path.read_bytes(), ReadContext(path.name, policy=Policy.WARN))
            except RejectedError:
                continue


def is_own_way(dialect: str, name: str) -> bool:
    """Whether a run sees to something in a way of its own."""
    return name.split()[0] in OWN_WAY or name.removeprefix("Extension ") in OWN_EXTENSIONS or name in OWN_OF.get(
        dialect, ())


def lost(dialect: str, document: Document, folder: Path) -> list[str]:
    """What a script asks for and the submission of a run does not, and no finding names."""
    executor, findings = EXECUTORS.get(dialect, dialect), Findings()
    backend = JobExecutor.get_instance(executor)
    plan = make_plan(document, findings, executor=executor, cwd=folder, policy=Policy.WARN, backend=backend)
    with closing(plan):
        files = list(next(iter(rehearse(plan, backend))).rendered.files.values())
    submitted = get(dialect).read(files[-1 if dialect == "htcondor" else 0].encode(), ReadContext(policy=Policy.WARN))
    told = " ".join(f"{f.subject} {f.message}" for f in (*findings, *(document.findings or ())))
    untold = []
    for difference in differences(document, submitted, script=False)[0]:
        one, other, name = difference.one, difference.other, difference.subject.partition(": ")[2]
        if one is None or is_own_way(dialect, name) or (other is not None and one in other):
            continue
        if not any(word in told for word in LAYOUT.get(name.split()[0], name.split()[-1:])):
            untold.append(f"{name}: {one} is asked for, {other} is submitted; told: {told}")
    return untold


@pytest.mark.parametrize("dialect", SCRIPT_FORMATS)
def test_a_run_submits_what_the_script_asks_for(dialect: str, tmp_path: Path) -> None:
    with Cases() as case:
        for name, document in scripts(dialect):
            if any(job.value("Executable") for job, _ in document.jobs()):
                with case(name):
                    assert not lost(dialect, document, tmp_path)


@pytest.mark.parametrize("dialect", SCRIPT_FORMATS)
@settings(max_examples=examples(8), derandomize=FIXED, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=geometries() | descriptions())
def test_a_run_submits_what_a_script_that_was_written_asks_for(dialect: str, text: str,
                                                               tmp_path_factory: pytest.TempPathFactory) -> None:
    """The parallel environment of Grid Engine has a name, which no document says."""
    output = written(dialect, read(text))[0].replace("@PE@", "mpi")
    document = get(dialect).read(output.encode(), ReadContext(policy=Policy.WARN))
    assert not lost(dialect, document, tmp_path_factory.getbasetemp()), output


@pytest.mark.parametrize("dialect", SCRIPT_FORMATS)
def test_the_quote_of_a_script_is_the_charge_of_what_it_asks_for(dialect: str) -> None:
    with Cases() as case:
        for name, document in scripts(dialect):
            for job, defaults in document.jobs():
                whole = effective(job, defaults).fold()
                array = array_of(whole)
                with case(name):
                    quoted_as_charged(whole, 1 if array is None else len(Array.of(array.text).indices))
