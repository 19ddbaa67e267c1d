"""Scripts are filled into what jobs of one shape have in common: each is what its template makes of it alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sssjob.templates as templates
from psij import Job, JobAttributes, JobSpec
from psij.exceptions import InvalidJobException
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.lrm import LrmExecutor
from sssjob.templates import render, render_planned
from sssjob.templates.quoting import Directive, Quoted, QuotingError
from tests.psij.managers import MANAGERS
from tests.strategies import examples

TEXTS = st.one_of(
    st.sampled_from(["a", "b c", "", "it's", '"', "${HOME}", "$X ${Y}", "a\nb", "\\", "\0", "ä", "%j", "{{id}}", "#"]),
    st.text(max_size=6))
NAMES = st.from_regex(r"[A-Z]{1,3}", fullmatch=True)
FILES = st.none() | st.sampled_from(["out", "/tmp/o p", "a'b"])


@st.composite
def specs(draw: st.DrawFn, prefix: str) -> list[JobSpec]:
    """Some jobs that mostly say the same members with other values."""
    many = draw(st.integers(0, 2))
    custom, inherits, timed = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    return [JobSpec(
        draw(st.sampled_from(["/bin/echo", "a b"])), [draw(TEXTS) for _ in range(many)], "/tmp",
        draw(st.none() | NAMES), inherits,
        {name: draw(TEXTS) for name in draw(st.lists(NAMES, max_size=many, unique=True))},
        stdout_path=draw(FILES), stderr_path=draw(FILES), launcher=draw(st.none() | st.just("mpirun")),
        attributes=JobAttributes(
            timedelta(seconds=draw(st.integers(1, 9999))) if timed else None, draw(st.none() | NAMES),
            draw(st.none() | NAMES), None, {f"{prefix}.comment": draw(TEXTS)} if custom else None))
        for _ in range(4)]


def plainly(executor: LrmExecutor, job: Job) -> str:
    """The script as its template makes it of this job alone; why there is none."""
    assert job.spec is not None
    try:
        context = executor._template_context(job, job.spec, executor._create_script_context(job))
        return render(executor._TEMPLATE, context)
    except (QuotingError, InvalidJobException) as error:
        return str(error)


@pytest.mark.parametrize("name", MANAGERS)
def test_each_script_is_that_of_its_template(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The first of a shape is rendered, the second makes the plan, further ones are filled in."""
    kind = MANAGERS[name].executor
    folder = tmp_path_factory.mktemp(name)
    executor = kind(config=BatchSchedulerExecutorConfig(work_directory=folder))

    @settings(max_examples=examples(8), deadline=None)
    @given(specs(kind._PREFIX))
    def hold(jobs: list[JobSpec]) -> None:
        """Compare the scripts of jobs in both ways."""
        for spec in jobs:
            job = Job(spec)
            try:
                by_plan = executor._submissions.script(job)
            except InvalidJobException as error:
                by_plan = str(error)
            assert by_plan == plainly(executor, job)

    hold()


CONTEXT = {"directives": [Directive("a", "b"), Directive("c")], "more_parts": [], "comments": [], "element": "",
           "job_id": "i'd", "script_dir": Path("/a b"), "around": None, "exported": "NONE", "directory": "/x",
           "keeps_environment": True, "environment": [("A", Quoted("1"))], "shell_only": [], "launcher": ["/bin/bash"],
           "arguments": Quoted("x"), "passed_on": "", "step": Quoted("")}


class Around:
    """What is no value of a template's."""

    before = after = ""
    variables = ()


def test_a_plan_is_made_of_the_second_of_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with one job makes none; the third job renders nothing."""
    rendered = []

    def counted(name: str, context: Mapping[str, Any]) -> str:
        """Render, and remember that."""
        rendered.append(name)
        return render(name, context)

    monkeypatch.setattr(templates, "_plans", {})
    monkeypatch.setattr(templates, "render", counted)
    around = Around()
    for number in range(5):
        context = CONTEXT | {"around": around, "job_id": f"id {number}"}
        assert render_planned("slurm.sh.j2", context) == render("slurm.sh.j2", context)
    assert len(rendered) == 2
    context = CONTEXT | {"around": around, "job_id": "", "launcher": [], "element": "x=1\n"}      # other branches
    for _ in range(3):
        assert render_planned("slurm.sh.j2", context) == render("slurm.sh.j2", context)
    assert len(rendered) == 4


def test_what_a_plan_cannot_say_is_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that asks how long a text is; a context with something that has no hash; a value without a filter."""
    monkeypatch.setattr(templates, "_plans", {})
    texts = {"long": "{% if text | length > 3 %}long{% endif %}{{ text | word }}", "bare": "{{ text }}",
             "same": "{% if text == 'abcd' %}same{% endif %}"}
    monkeypatch.setattr(templates, "_template", lambda name: templates.environment().from_string(texts[name]))
    assert [render_planned("long", {"text": text}) for text in ("abcd", "abcde", "ab", "x")] == [
        "longabcd", "longabcde", "ab", "x"]
    assert [render_planned("same", {"text": text}) for text in ("abcd", "a", "abcd", "b")] == ["same", "", "same", ""]
    assert [render_planned("long", {"text": "abcd", "more": {}}) for _ in range(3)] == ["longabcd"] * 3
    for _ in range(3):
        with pytest.raises(templates.UnquotedError):
            render_planned("bare", {"text": "x"})
