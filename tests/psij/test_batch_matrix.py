"""Hostile strings in every member of a job, through the script of each executor."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobSpec
from psij.executors.batch._files import exit_file
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.nqsv import NQSVJobExecutor
from psij.references import expand, literal
from tests.cases import Cases
from tests.psij.batch_support import run_script, script_text
from tests.psij.managers import MANAGERS, Manager
from tests.psij.test_batch import HOSTILE
from tests.psij.test_local_strings import ODD_NAMES

SENTINELS = sorted({manager.script.sentinel for manager in MANAGERS.values() if manager.script.sentinel})
ANY_DIRECTIVE = re.compile("|".join(rf"\s*#\s*{re.escape(sentinel[1:])}" for sentinel in SENTINELS)
                           + r"|\W*(flux|FLUX):")


@pytest.fixture(params=MANAGERS)
def manager(request: pytest.FixtureRequest) -> Manager:
    """Each of the resource managers."""
    return MANAGERS[request.param]


def test_one_question_about_ten_thousand_jobs(manager: Manager, tmp_path: Path) -> None:
    """P7, E49: whole-queue queries, for a list of ids costs OpenPBS 34 times as much. NQSV's qstat knows only lists,
    which are cut into pieces that fit into a command."""
    executor = manager.executor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path))
    ids = [str(number) for number in range(10_000, 20_000)]
    asked = list(executor._status_commands(ids))
    assert [one for some, _ in asked for one in some] == ids
    if manager.executor is NQSVJobExecutor:
        assert len(asked) == 50 and {len(some) for some, _ in asked} == {200}
    else:
        assert len(asked) == 1 and not {*ids} & {*asked[0][1]}


def members(text: str, prefix: str, option: str) -> dict[str, dict[str, Any]]:
    """Descriptions with a text in each of their members."""
    path = text.replace("/", "_") or "p"
    attributes: dict[str, JobAttributes] = {
        "queue": JobAttributes(None, queue_name=text), "account": JobAttributes(None, account=text),
        "reservation": JobAttributes(None, reservation_id=text),
        "custom": JobAttributes(None, custom_attributes={f"{prefix}.{option}": text}),
        "option": JobAttributes(None, custom_attributes={f"{prefix}.{text}": "x"})}
    return {
        "executable": {"executable": text or "x"}, "arguments": {"arguments": [text]}, "name": {"name": text},
        "directory": {"directory": f"/{path}"}, "environment": {"environment": {"V": text}},
        "stdout_path": {"stdout_path": path}, "stdin_path": {"stdin_path": path}, "pre_launch": {"pre_launch": path},
        **{name: {"attributes": one} for name, one in attributes.items()}}


def test_no_directive_that_nobody_meant(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """T17, T20: the script has just the directives that the executor made, or the member is refused by name."""
    with Cases() as case:
        for value in HOSTILE:
            with case(ascii(value)):
                check_directives(manager, value, monkeypatch)


def check_directives(manager: Manager, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the scripts of jobs with a text in each of their members."""
    executor = manager.executor()
    monkeypatch.setenv("INHERITED", value.replace("\0", ""))
    for name, given in members(value, manager.executor._PREFIX, manager.script.option).items():
        job = Job(JobSpec(**{"executable": "/bin/true", **given}))
        assert job.spec is not None
        try:
            text = script_text(executor, job)
        except InvalidJobException as e:
            assert re.search(r"name|attribute", e.message), (name, e.message)
            assert name not in ("executable", "arguments", "directory", "environment", "stdout_path", "stdin_path")
            continue
        lines = [line for line in text.splitlines() if ANY_DIRECTIVE.match(line)]
        if manager.script.sentinel is None:
            assert lines == []
        else:
            assert all(line.startswith(manager.script.sentinel) for line in lines), name
            assert len(lines) == len(executor._directives(job, job.spec)) + manager.script.in_template, name


def test_variables_in_arguments(manager: Manager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script puts in just what the executor local would: variables of bash's own are not the job's."""
    for name in ("NONE", "i", "HOSTTYPE", "RANDOM", "EUID", "PPID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HERE", "in*herited")
    environment = {"SET": "a  b", "EMPTY": "", "UID": "5${SET}", "MORE": "${NONE}:${SET}"}
    texts = ["${SET}", "${EMPTY}", "${MORE}", "${HERE}x", "${NONE}", "x${i}'${NONE}\"", "${UID}${UID}y", "${EUID}", "",
             "${RANDOM}-${SET}", "${HOSTTYPE}", "$${SET}", "\\${SET}", "\\$${UID}", "$$${SET}", "$SET ${1} ${A:-x} ${"]
    code = "import os, sys; os.write(1, b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    job = Job(JobSpec(sys.executable, ["-SEc", code, *texts], tmp_path, stdout_path="out", environment=environment))
    known = {**os.environb, b"SET": b"a  b", b"EMPTY": b"", b"UID": b"5a  b", b"MORE": b":a  b"}
    assert run_script(manager, manager.executor(), job, tmp_path) == 0
    shown = [os.fsdecode(one) for one in (tmp_path / "out").read_bytes().split(b"\0")]
    assert shown == [expand(text, known, kept=True) for text in texts]
    assert shown[4:8] == ["${NONE}", "x${i}'${NONE}\"", "5a  b5a  by", "${EUID}"]
    assert shown[11:] == ["${SET}", "${SET}", "\\${UID}", "$${SET}", "$SET ${1} ${A:-x} ${"]


def test_a_job_sees_exactly_what_was_said(manager: Manager, tmp_path: Path) -> None:
    """Every hostile text as an argument, as a variable, as an argument made of it, and as a name on the way to the
    directory."""
    folder = tmp_path.joinpath(*(f"d{value[:50].replace('/', '_')}" for value in HOSTILE))
    folder.mkdir(parents=True)
    (folder / "in").write_text("input")
    variables = {f"V{number}": value for number, value in enumerate(HOSTILE)}
    show = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, [os.getcwd(), *sys.argv[1:], " \
           f"*(os.environ[name] for name in {[*variables, 'IFS', 'SHLVL', *ODD_NAMES]!r}), sys.stdin.read()])))"
    arguments = ["-SEc", literal(show), *HOSTILE, *(f"${{{name}}}" for name in variables)]
    job = Job(JobSpec(sys.executable, arguments, directory=folder, stdin_path="in", stdout_path="out",
                      environment={**variables, "IFS": "f", "SHLVL": "77", **{name: name[::-1] for name in ODD_NAMES}}))
    executor = manager.executor()
    assert run_script(manager, executor, job, tmp_path) == 0
    assert (folder / "out").read_bytes().split(b"\0") == [
        os.fsencode(part) for part in (
            str(folder), *HOSTILE * 3, "f", "77", *(name[::-1] for name in ODD_NAMES), "input")]
    assert exit_file(executor.work_directory / f"5.{job.id}.ec", job.id) is not None
