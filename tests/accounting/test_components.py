"""A job of several components costs what these do, each as a job of its own: by its queue, its amounts and its time."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sssjob.accounting import Charge, charge, recompute
from sssjob.document.model import Job
from sssjob.translators import ReadContext, get
from sssjob.translators.records.base import RecordTranslator
from tests.accounting.conftest import Command
from tests.accounting.support import charged, quoted, rate_set
from tests.strategies import examples

HEADER = "JobID|Cluster|Account|User|Partition|QOS|Submit|Start|End|ElapsedRaw|State|AllocTRES"
RATES = (
    "VBR Processors 0.0123\nNBM Queue=gpu 3\nNBM Queue=cpu 1",
    "VBR Processors 1\nVBU GPU 5\nNBM QualityOfService=high 2\nNBM Queue=gpu 1.5",
    'VBR Processors 1 when = { Queue = "gpu" }\nVBR Processors 0.25 when = { Queue = "cpu" }\nVBR Memory 0.001',
    'VBR Processors 1\nNBM QualityOfService=high 2 when = { Queue = "gpu" }\nNBM Queue=* 0.5',
    "VBR Processors 1\nNBM User=u 2\nNBM Project=p 3",
)
NIGHT = ('timezone = "UTC"\nVBR Processors 0.01\nNBM Queue=gpu 3\nNBM TimeCategory=Night 0.5\n[[time_category]]\n'
         'name = "Night"\nfrom = 00:30:00\nto = 01:30:00')


class Component(NamedTuple):
    """What one component was given."""

    queue: str
    qos: str
    processors: int
    gpus: int
    seconds: int

    def row(self, ident: str) -> str:
        """Its row of sacct."""
        hours, minutes = divmod(self.seconds // 60, 60)
        gpus = f",gres/gpu={self.gpus}" if self.gpus else ""
        return (f"{ident}|c|p|u|{self.queue}|{self.qos}|2026-05-01T00:00:00|2026-05-01T00:00:00|"
                f"2026-05-01T{hours:02}:{minutes:02}:{self.seconds % 60:02}|{self.seconds}|COMPLETED|"
                f"cpu={self.processors},mem={self.processors}G{gpus},node=1")


def jobs(*rows: str) -> list[Job]:
    """The jobs of rows of sacct."""
    translator = get("sacct")
    assert isinstance(translator, RecordTranslator) and translator.stream is not None
    log = io.BytesIO("\n".join([HEADER, *rows, ""]).encode())
    return list(translator.stream(log, ReadContext(options={"timezone": "UTC"})))


def exact(job: Job, rates: str) -> Fraction:
    """What a job costs before it is rounded, which its arithmetic comes to."""
    price = charge(job, rate_set(rates))
    assert isinstance(price, Charge), price
    assert recompute(price.arithmetic) == price.exact
    return price.exact


COMPONENTS = st.builds(Component, st.sampled_from(("gpu", "cpu")), st.sampled_from(("normal", "high")),
                       st.integers(1, 64), st.integers(0, 4), st.integers(1, 20 * 3600))


@settings(max_examples=examples(30), deadline=None)
@given(components=st.lists(COMPONENTS, min_size=2, max_size=4), rates=st.sampled_from((*RATES, NIGHT)))
def test_as_jobs_of_their_own(components: list[Component], rates: str) -> None:
    """All of a job was priced by the queue of the component that stands first, and for the time of the longest."""
    if rates == NIGHT:      # a calendar parts the time of the job
        components = [component._replace(seconds=components[0].seconds) for component in components]
    (whole,) = jobs(*(component.row(f"7+{place}") for place, component in enumerate(components)))
    apart = jobs(*(component.row(str(place)) for place, component in enumerate(components)))
    assert exact(whole, rates) == sum(exact(job, rates) for job in apart)


def test_the_arithmetic_of_two_queues() -> None:
    price = charged("VBU Processors 1\nNBM Queue=gpu 3\nNBM Queue=cpu 1\nNBF Queue=gpu 0.5\nVBM Disk 10\n"
                    "NBU Machine=c 7",
                    "<Queue>gpu</Queue><Machine>c</Machine><State>Completed</State><Disk>2</Disk>"
                    "<Delivered><Duration>5</Duration></Delivered>"
                    "<TaskGroup><Delivered><Processors>4</Processors></Delivered></TaskGroup>"
                    "<TaskGroup><Delivered><Processors>8</Processors><Queue>cpu</Queue></Delivered></TaskGroup>")
    assert price.arithmetic == (
        "7 [NBU Machine=c] * 3 [NBM Queue=gpu] * (2 [Disk MB] * 10 [VBM Disk]) + "
        "4 [Processors] * 1 [VBU Processors] * 3 [NBM Queue=gpu] * (2 [Disk MB] * 10 [VBM Disk]) + "
        "8 [Processors] * 1 [VBU Processors] * 1 [NBM Queue=cpu] * (2 [Disk MB] * 10 [VBM Disk]) + 0.5 [NBF Queue=gpu]")


def test_a_quote_of_two_queues() -> None:
    groups = "".join(f"<TaskGroup><Requested><Queue>{queue}</Queue><Processors>{processors}</Processors></Requested>"
                     "</TaskGroup>" for queue, processors in (("gpu", 4), ("cpu", 8)))
    assert quoted("VBU Processors 1\nNBM Queue=gpu 3", groups).exact == 4 * 3 + 8


def test_what_is_known_of_the_whole_job_stands_in_one_row(tmp_path: Path, sssjob: Command) -> None:
    """Each component had the charge of all: whoever added the column up doubled it."""
    (tmp_path / "job.xml").write_text(
        "<Job><Id>1</Id><CpuDuration>9</CpuDuration><Charge units='EUR'>5</Charge>" + "".join(
            f"<TaskGroup><Id>1+{place}</Id><Delivered><Processors>{place + 1}</Processors></Delivered></TaskGroup>"
            for place in range(2)) + "</Job>")
    answer = sssjob("convert", "-q", "-t", "csv", "--option", "fields=part,processors,cpu_s,charge", "job.xml")
    assert answer.out.split() == ["part,processors,cpu_s,charge", "1+0,1,9,5", "1+1,2,,"]


@pytest.mark.parametrize("seconds", [(3600, 3600), (3600, 1800)])
def test_the_rows_of_a_table(tmp_path: Path, sssjob: Command, seconds: tuple[int, int]) -> None:
    """Each component has its own queue there, and the sums stand in the job only where they are of one queue and
    time."""
    rows = [Component("gpu", "n", 4, 2, seconds[0]).row("7+0"), Component("cpu", "n", 8, 0, seconds[1]).row("7+1")]
    (tmp_path / "log").write_text("\n".join([HEADER, *rows, ""]))
    answer = sssjob("convert", "-q", "-f", "sacct", "-t", "csv", "--option", "timezone=UTC", "--option",
                    "fields=part,queue,qos,wall_s,processors,gpus", "log")
    assert answer.out.split() == ["part,queue,qos,wall_s,processors,gpus", f"7+0,gpu,n,{seconds[0]},4,2",
                                  f"7+1,cpu,n,{seconds[1]},8,"]
    (job,) = jobs(*rows)
    assert job.delivered is not None and job.delivered.value("Processors") is None
    (job,) = jobs(rows[0], Component("gpu", "n", 8, 0, seconds[0]).row("7+1"))
    assert job.delivered is not None and job.delivered.value("Processors") == 12
    assert [group.delivered is not None and group.delivered.value("Queue") for group in job.task_groups] == [None] * 2


def test_a_job_in_several_queues_is_in_no_single_ones_sum(tmp_path: Path, sssjob: Command) -> None:
    """All of it, GPUs too, was counted in the queue of its first component."""
    rows = [Component("cpu", "n", 8, 0, 3600).row("7+0"), Component("gpu", "n", 4, 2, 1800).row("7+1"),
            Component("cpu", "n", 1, 0, 3600).row("8+0"), Component("cpu", "n", 1, 0, 3600).row("8+1")]
    (tmp_path / "log").write_text("\n".join([HEADER, *rows, ""]))
    read = ("account", "-f", "sacct", "--option", "timezone=UTC", "--json", "log")
    sums = [json.loads(line) for line in sssjob(*read, "--by", "Queue").out.splitlines()[1:-1]]
    assert [(group["key"]["Queue"], group["processor_h"], group["gpu_h"]) for group in sums] == [
        ("cpu,gpu", 10, 1), ("cpu", 2, 0)]
    _, of_both, whole = map(json.loads, sssjob(*read, "--by", "Queue", "--where", "Queue=cpu,gpu").out.splitlines())
    assert of_both["jobs"] == whole["jobs"] == 1
