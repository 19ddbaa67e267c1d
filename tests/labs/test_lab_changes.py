"""Jobs that are changed while they wait and while they run, on real clusters."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.psij.test_batch_labs import enter_lab
from tests.run.support import Desk, desk_on, eventually, shell

pytestmark = pytest.mark.lab
REAL = {"real": True, "queue_polling_interval": 2, "initial_queue_polling_delay": 0.5, "accounting_delay": 10,
        "lost_after": 30}
#: What holds a job, and what shows how its manager has it: the fields that were changed.
SHOWN = {"slurm": (["scontrol", "show", "job"], r"(JobName|TimeLimit|Partition|Account|MinMemoryNode)=(\S+)"),
         "sge": (["qstat", "-j"], r"(?m)^(job_name|project|hard resource_list|hard_queue_list|priority): +(\S+)")}
CHANGED = {"slurm": {"JobName": "b", "TimeLimit": "00:07:00", "Partition": "debug", "Account": "chem",
                     "MinMemoryNode": "700M"},
           "sge": {"job_name": "b", "project": "chem", "hard resource_list": "h_rt=420", "hard_queue_list": "all.q",
                   "priority": "-7"}}
WISHES = {"slurm": {"Name": "b", "Duration": "7:00", "Queue": "debug", "Project": "chem", "Memory": "700 MB"},
          "sge": {"Name": "b", "Duration": "420", "Queue": "all.q", "Project": "chem", "Priority": "-7"}}
#: What the manager refuses, and in which words.
REFUSED = {"slurm": ({"Project": "nosuch", "Name": "c"}, "Invalid account"),
           "sge": ({"Project": "nosuch", "Name": "c"}, 'project "nosuch" does not exist')}

#: Why it has no other number of tasks: Slurm's are in the environment that sbatch gave it.
TASKS = {"slurm": "the script that was submitted says it", "sge": "a job of several slots needs a parallel environment"}


@pytest.fixture(params=["slurm", "sge"])
def desk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    enter_lab(request.param, monkeypatch)
    with desk_on(request.param, tmp_path, monkeypatch, **REAL) as desk:
        yield desk


def changed(desk: Desk, **settings: str) -> str:
    """Why a change was refused."""
    from sssjob.run.changing import change_of

    wish = f"change {change_of(settings.items())}"
    return desk.client().ask(wish, ["a"], 60)[0].answers[wish]


def shown(desk: Desk) -> dict[str, str]:
    """How the manager has the job."""
    command, form = SHOWN[desk.executor]
    out = subprocess.run([*command, str(desk.job("a").row.native_id)], check=True, capture_output=True, text=True)
    return dict(re.findall(form, out.stdout))


def test_a_job_that_waits_is_changed(desk: Desk) -> None:
    """The manager has it, the document says it, and what the manager refuses has changed nothing. The job ends as any
    other, although its name is another one in the records of accounting."""
    memory = "<Memory>500</Memory>" if desk.executor == "slurm" else ""
    desk.submit(shell("exit 3", "<Hold>User</Hold><Project>physics</Project>"
                                f"<Requested><Duration>300</Duration>{memory}</Requested>"))
    assert changed(desk, **WISHES[desk.executor]) == ""
    assert shown(desk).items() >= CHANGED[desk.executor].items()
    wrong, words = REFUSED[desk.executor]
    assert words in changed(desk, **wrong)
    assert shown(desk).items() >= CHANGED[desk.executor].items()
    assert TASKS[desk.executor] in changed(desk, TaskCount="3")
    job = desk.job("a").plan.job
    assert (job.value("Name"), job.value("Project")) == ("b", "chem")
    assert [p.value for p in job.leaves() if p.tag == "Duration"][:1] == [420]
    desk.client().ask("release", ["a"], 60)
    assert desk.wait("a") == {"a": ("failed", 3)}


def test_a_job_that_runs_is_changed_as_far_as_its_manager_does_that(desk: Desk) -> None:
    """Slurm shortens its limit; Grid Engine would take the change and do nothing with it, so that it is refused."""
    desk.submit(shell("until test -e go; do sleep 0.1; done", "<Requested><Duration>300</Duration></Requested>"))
    eventually(lambda: str(desk.client().wait(["a"], 2)[0][0].plan.job.value("State")) == "Running", 90)
    if desk.executor == "slurm":
        assert changed(desk, Duration="180") == ""
        assert shown(desk)["TimeLimit"] == "00:03:00"
        assert "has begun" in changed(desk, Project="chem")
    else:
        assert "of a job that has begun is not changed by sge" in changed(desk, Duration="180")
    (desk.folder / "go").touch()
    assert desk.wait("a") == {"a": ("done", 0)}
