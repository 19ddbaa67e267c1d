"""Generated documents for the benchmarks: a JobGroup of any size, half like the moderate example of the
specification (section 1.3), half like the jobs of the elaborate one. Every job has its own ids, names, times and
amounts, drawn with a fixed seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

__all__ = ["LAYOUTS", "job_documents", "write_group"]

_MODERATE = """  <Job>
    <Id>PBS.{n}.0</Id>
    <Name>Heavy Water {n}</Name>
    <Project>{project}</Project>
    <User>{user}</User>
    <Application>NWChem</Application>
    <Executable>/usr/local/nwchem/bin/nwchem</Executable>
    <Arguments>-input basis{n}.in</Arguments>
    <InitialWorkingDirectory>/home/{user}</InitialWorkingDirectory>
    <Machine>Colony</Machine>
    <QualityOfService>BottomFeeder</QualityOfService>
    <Queue>{queue}</Queue>
    <State>Completed</State>
    <StartTime>{start}</StartTime>
    <EndTime>{end}</EndTime>
    <Charge>{charge}</Charge>
    <Requested>
      <Processors op="GE">{processors}</Processors>
      <Memory op="GE" units="GB">2</Memory>
      <Duration>{limit}</Duration>
    </Requested>
    <Delivered>
      <Processors>{processors}</Processors>
      <Memory metric="Average" units="GB">{average}</Memory>
      <Duration>{duration}</Duration>
    </Delivered>
    <Environment>
      <Variable name="PATH">/usr/bin:/home/{user}</Variable>
    </Environment>
  </Job>
"""
_ELABORATE = """  <Job>
    <Id>fr15n05.{n}.1</Id>
    <Name>3-Phase Ascension {n}</Name>
    <Executable>/usr/local/gridphys/bin/lvcalc</Executable>
    <Queue>{queue}</Queue>
    <State>Completed</State>
    <Machine>SMP2.emsl.pnl.gov</Machine>
    <User>{user}</User>
    <Project>{project}</Project>
    <StartTime>{start}</StartTime>
    <EndTime>{end}</EndTime>
    <Quote>http://www.pnl.gov/SMP2#{n}</Quote>
    <Charge units="USD">{charge}</Charge>
    <Requested>
      <Duration>{limit}</Duration>
      <Processors>{processors}</Processors>
      <Memory>1024</Memory>
    </Requested>
    <Delivered>
      <Duration>{duration}</Duration>
      <Processors consumptionRate="0.{rate}">{processors}</Processors>
      <Memory metric="Max">{maximum}</Memory>
    </Delivered>
    <TaskGroup>
      <TaskCount>2</TaskCount>
      <Name>Master</Name>
      <TaskDistribution type="TasksPerNode">1</TaskDistribution>
      <Resource name="License" type="ESSL2">1</Resource>
      <Feature>Jumbo-Frame</Feature>
      <Requested>
        <Processors group="1">12</Processors>
        <Processors conj="Or" group="-1">16</Processors>
        <Node aggregation="Pattern">fr15n.*</Node>
      </Requested>
      <Task>
        <Node>node{node}</Node>
        <Process>{process}</Process>
      </Task>
      <Task>
        <Node>node1{node}</Node>
        <Process>{process}</Process>
      </Task>
    </TaskGroup>
  </Job>
"""


def job_documents(jobs: int, seed: int = 20110426) -> Iterator[str]:
    """The text of each Job, moderate and elaborate in turn."""
    draw = random.Random(seed)
    for n in range(jobs):
        start = 1_051_557_713 + n * 7 + draw.randrange(3600)
        duration = draw.randrange(1, 86_400)
        yield (_ELABORATE if n % 2 else _MODERATE).format(
            n=n,
            user=f"user{draw.randrange(500)}",
            project=f"project{draw.randrange(60)}",
            queue=draw.choice(("batch", "batch_normal", "debug", "long")),
            start=start,
            end=start + duration,
            duration=duration,
            limit=draw.choice((3600, 7200, 43_200, 86_400)),
            charge=f"{draw.randrange(1_000_000) / 100:.2f}",
            processors=draw.choice((1, 2, 4, 8, 12, 16, 32, 64, 128)),
            average=f"{draw.randrange(200) / 100:.2f}",
            maximum=draw.randrange(1024),
            rate=draw.randrange(10, 99),
            node=draw.randrange(1, 512),
            process=draw.randrange(300, 4_000_000),
        )


def write_group(path: Path, jobs: int) -> Path:
    """Write a JobGroup of so many jobs to path; JobDefaults follow the jobs."""
    with path.open("w", encoding="utf-8") as out:
        out.write("<JobGroup>\n  <Id>bench</Id>\n  <Name>generated</Name>\n")
        out.writelines(job_documents(jobs))
        out.write("  <JobDefaults>\n    <SubmitHost>asteroid.lbl.gov</SubmitHost>\n  </JobDefaults>\n</JobGroup>\n")
    return path


def _with_old_names(text: str) -> str:
    """The document in the names of Maui and Gold."""
    for name, old in (("Id", "JobId"), ("User", "UserId"), ("Project", "ProjectId"), ("State", "JobState"),
                      ("Machine", "MachineName")):
        text = re.sub(rf"\n    <{name}>(.*)</{name}>", rf"\n    <{old}>\1</{old}>", text)
    return text.replace("Duration>", "WallDuration>")


def _flat(text: str) -> str:
    return re.sub(r"\n\s*", "", text)


#: How programs lay out what they write: name -> the text of a group in that layout.
LAYOUTS: Final[dict[str, Callable[[str], str]]] = {
    "indented": str,
    "no line breaks": _flat,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "one comment": lambda text: text.replace("  <Job>\n", "  <!-- a\n comment -->\n  <Job>\n", 1),
    "a comment in each job": lambda text: text.replace("    <Queue>", "    <!-- of the site --><Queue>"),
    "default namespace": lambda text: text.replace(
        "<JobGroup>", '<JobGroup xmlns="http://scidac.org/ScalableSystems">', 1),
    "&amp; in every second job": lambda text: text.replace("<Name>Heavy Water", "<Name>R&amp;D"),
    "CDATA in every second job": lambda text: text.replace("<Name>Heavy Water", "<Name><![CDATA[R&D]]>"),
    "Maui: old names, empty elements": lambda text: _with_old_names(text).replace(
        "    <Requested>\n", "    <Requested>\n      <NodeCount></NodeCount>\n"),
    "Gold: old names, no line breaks": lambda text: _flat(_with_old_names(text)),
    "Moab: old names, job": lambda text: _with_old_names(text).replace("Job>", "job>"),
    "Bamboo: old names in a message": lambda text: "<Response>\n  <Data>\n" + _with_old_names(
        text[text.index("  <Job>"):text.rindex("  <JobDefaults>")]) + "  </Data>\n</Response>\n",
}
