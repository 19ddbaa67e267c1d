"""Where task groups become one, or only the first is carried, a target of one kind of task tells it at the second: that
is the one which is no group of its own any more."""

from __future__ import annotations

import pytest

from tests.laws.documents import read
from tests.laws.test_amounts import written

TARGETS = ("sge", "cobalt", "htcondor", "flux", "flux-jobspec", "psij")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("second", ["<TaskGroup><TaskCount>3</TaskCount></TaskGroup>",
                                    "<TaskGroup><TaskCount>3</TaskCount><Executable>/bin/y</Executable></TaskGroup>"])
def test_it_is_told_at_the_second(name: str, second: str) -> None:
    first = "<TaskGroup><TaskCount>2</TaskCount></TaskGroup>"
    findings = written(name, read(f"<Job>\n<Executable>/bin/x</Executable>\n{first}\n{second}\n</Job>"))[1]
    assert {f.line for f in findings if f.subject == "TaskGroup"} == {4}
