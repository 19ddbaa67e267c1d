"""Every executor says which ends it can tell, so that a policy for another one is refused before anything starts."""

from __future__ import annotations

import pytest

from psij.descriptors.core_descriptors import __PSI_J_EXECUTORS__ as EXECUTORS
from sssjob.document.failures import CLASSES
from sssjob.lrm.reasons import ALIASES, reasons_of


def test_every_executor_has_a_row() -> None:
    assert [one.name for one in EXECUTORS if reasons_of(one.name) is None] == []
    assert reasons_of("plug-in") is None


@pytest.mark.parametrize(("executor", "classes"), [
    ("slurm", "node-failure preempted timeout memory signal"),
    ("sge", "node-failure timeout cpu-limit memory signal launch"),
    ("pbs", "timeout cpu-limit memory signal launch"),
    ("pbs_classic", "timeout cpu-limit memory signal launch"),
    ("lsf", "preempted timeout cpu-limit memory signal launch"),
    ("flux", "node-failure timeout signal launch"),
    ("htcondor", "timeout signal"),
    ("local", "timeout cpu-limit signal launch"),
])
def test_classes_that_an_executor_can_tell(executor: str, classes: str) -> None:
    told = reasons_of(executor)
    assert told is not None
    assert {name for name, reasons in CLASSES.items() if told & set(reasons)} == set(classes.split())


def test_the_other_names_of_executors_are_those_of_psij() -> None:
    assert {alias: one.name for one in EXECUTORS for alias in one.aliases or ()} == ALIASES
