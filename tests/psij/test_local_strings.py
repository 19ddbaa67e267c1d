"""Strings that are hard to hand over: the job sees exactly the string, or InvalidJobException names the member."""

from __future__ import annotations

import os
import resource
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobExecutorConfig, JobSpec, JobState
from psij.executors import LocalJobExecutor

STRINGS = ["", " ", "two words", "'", '"', "it's \"so\"", "$(touch hit)", "`touch hit`", "; touch hit;", "$HOME", "$",
           "\\", "\\n", "a\nb\n", "\r\t\b\a", "\x1b[31m", "\x7f", "*", "~", "~root", "!!", "-n", "--", "#", "%s%n",
           "&& false", "\u202egpj.exe", "\u200b\ufeff", "\U0001f4a5", "é", "e\u0301", "\udcff\udc80", "a=b", "${",
           "${}", "$${", "{{x}}", "x" * 131_000]
NAMES = [text for text in STRINGS if 0 < len(text) < 200 and text != "~"]      # "~" is the home directory
#: Names of variables that no shell can set; a program's ``os.environ`` may have them.
ODD_NAMES = ["A-B", "ProgramFiles(x86)", "java.home", "1", "-i", "a b", "é", "\udcff", "$HOME", "${HOME}",
             "$(touch hit)", "a\nb", "BASH_FUNC_f%%"]


@pytest.fixture
def executor(tmp_path: Path) -> LocalJobExecutor:
    return LocalJobExecutor(config=JobExecutorConfig(work_directory=tmp_path / "work"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    return tmp_path / "place"


def run(executor: LocalJobExecutor, spec: JobSpec) -> None:
    job = Job(spec)
    executor.submit(job)
    status = job.wait(timedelta(seconds=20))
    assert status is not None and (status.state, status.exit_code) == (JobState.COMPLETED, 0), status


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("members", [{}, {"launcher": "multiple"}, {"pre_launch": "/dev/null"}])
def test_arguments(executor: LocalJobExecutor, place: Path, members: dict[str, Any]) -> None:
    run(executor, JobSpec("printf", ["%s\\0", *STRINGS], place, stdout_path="out", **members))
    assert (place / "out").read_bytes().split(b"\0")[:-1] == [os.fsencode(text) for text in STRINGS]
    assert os.listdir(place) == ["out"]


@pytest.mark.parametrize("members", [{}, {"launcher": "multiple"}, {"pre_launch": "/dev/null"}])
@pytest.mark.parametrize("inherit", [True, False])
def test_environment(executor: LocalJobExecutor, place: Path, inherit: bool, members: dict[str, Any]) -> None:
    wanted = {**{f"V{number}": text for number, text in enumerate(STRINGS)}, **dict.fromkeys(ODD_NAMES, "odd")}
    run(executor, JobSpec("/usr/bin/env", ["-0"], place, stdout_path="out", inherit_environment=inherit,
                          environment={**wanted, "PATH": os.environ["PATH"]}, **members))
    seen = dict(one.split(b"=", 1) for one in (place / "out").read_bytes().split(b"\0")[:-1])
    assert {name: seen[os.fsencode(name)] for name in wanted} == {n: os.fsencode(text) for n, text in wanted.items()}
    if not members:
        assert inherit or len(seen) == len(wanted) + 1
    assert os.listdir(place) == ["out"]


@pytest.mark.parametrize("members", [{}, {"launcher": "multiple"}])
@pytest.mark.parametrize("name", NAMES)
def test_paths(executor: LocalJobExecutor, place: Path, name: str, members: dict[str, Any]) -> None:
    folder = place / name
    folder.mkdir()
    (folder / f"in{name}").write_bytes(b"from stdin")
    for one in ("pre", "post"):
        (folder / f"{one}{name}").write_text(f"echo {one} >> side\n")
    script(folder / f"x{name}", "cat; printf '%s' \"${0##*/}\" >&2; pwd -P >> side")
    members = {**members, "pre_launch": f"pre{name}", "post_launch": f"post{name}"} if members else members
    run(executor, JobSpec(f"./x{name}", [], folder, name=name, stdin_path=f"in{name}", stdout_path=f"out{name}",
                          stderr_path=f"err{name}", **members))
    assert (folder / f"out{name}").read_bytes() == b"from stdin"
    assert (folder / f"err{name}").read_bytes() == os.fsencode(f"x{name}")
    directory = os.fsencode(folder.resolve()) + b"\n"
    assert (folder / "side").read_bytes() == (b"pre\n" + directory + b"post\n" if members else directory)
    assert os.listdir(place) == [name]


@pytest.mark.parametrize("name", [name for name in NAMES if "=" not in name])
def test_executable_in_path(executor: LocalJobExecutor, place: Path, name: str) -> None:
    (place / "bin").mkdir()
    script(place / "bin" / name, "exit 0")
    run(executor, JobSpec(name, environment={"PATH": f"{place}/bin:/bin:/usr/bin"}))


@pytest.mark.parametrize("value", ["a\0b", "\0", "\ud800"])
@pytest.mark.parametrize(("member", "wrap"), [
    ("executable", str), ("arguments", lambda text: ["fine", text]), ("environment", lambda text: {"A": text}),
    ("environment", lambda text: {text: "A"}), ("directory", Path), ("stdin_path", Path), ("stdout_path", Path),
    ("stderr_path", Path), ("name", str), ("pre_launch", Path), ("post_launch", Path), ("launcher", str)])
def test_refused(executor: LocalJobExecutor, tmp_path: Path, member: str, wrap: Any, value: str) -> None:
    job = Job(JobSpec(**{"executable": "/bin/true", "directory": tmp_path, member: wrap(value)}))
    with pytest.raises(InvalidJobException, match=member):
        executor.submit(job)
    assert job.status.state is JobState.NEW and job.executor is None and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "=", "A=B", "A\0", "\ud800"])
def test_names_of_variables_are_checked(executor: LocalJobExecutor, name: str) -> None:
    with pytest.raises(InvalidJobException, match="environment"):
        executor.submit(Job(JobSpec("/bin/true", environment={name: "x"})))


LONG = "x" * 140_000


@pytest.mark.parametrize(("members", "message"), [
    ({"arguments": ["a", LONG]}, r"arguments\[1\] has 140000 bytes"),
    ({"arguments": ["a", "${A}${A}"], "environment": {"A": "x" * 70_000}}, r"arguments\[1\] has 140000 bytes"),
    ({"environment": {"A": LONG}}, r"environment\['A'\] has 140000 bytes"),
    ({"arguments": ["x" * 100_000] * 80}, "arguments and environment have about"),
    ({"executable": "/bin/" + "x" * 256}, "executable is too long"),
    ({"executable": LONG}, "executable is too long"),
    ({"directory": "/" + "x/" * 3000}, "directory is too long"),
    ({"stdin_path": "x" * 256}, "stdin_path is too long"),
    ({"stdout_path": "x" * 256}, "stdout_path is too long"),
    ({"stderr_path": "é" * 128}, "stderr_path is too long"),
    ({"pre_launch": "x" * 256}, "pre_launch is too long"),
    ({"post_launch": "x" * 256}, "post_launch is too long"),
])
@pytest.mark.parametrize("launcher", [None, "multiple"])
def test_too_long(executor: LocalJobExecutor, place: Path, members: dict[str, Any], message: str,
                  launcher: str | None) -> None:
    job = Job(JobSpec(**{"executable": "/bin/true", "directory": place, "stdout_path": "made", "launcher": launcher,
                         **members}))
    with pytest.raises(InvalidJobException, match=message):
        executor.submit(job)
    assert job.status.state is JobState.NEW and not list(place.iterdir()) and executor.list() == []


def test_as_long_as_the_system_takes(executor: LocalJobExecutor, place: Path) -> None:
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    count = 20 if soft == -1 or soft // 4 > 20 * 131_072 else 1
    run(executor, JobSpec("/usr/bin/printf", ["%s\\0", *["x" * 131_071] * count], place, stdout_path="out"))
    assert (place / "out").stat().st_size == 131_072 * count


def test_other_attributes_are_not_looked_at(executor: LocalJobExecutor) -> None:
    for text in STRINGS[1:]:
        if "\udcff" not in text:
            run(executor, JobSpec("/bin/true", attributes=JobAttributes(
                queue_name=text, account=text, reservation_id=text, custom_attributes={f"other.{text}": text})))
