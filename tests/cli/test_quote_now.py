"""``sssjob quote`` of rates that go by the time of day, where nothing says when a job starts."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Command

RATES = Path(__file__).parents[2] / "examples" / "rates.toml"


def test_a_job_without_a_start_is_quoted_as_if_it_started_now(sssjob: Command, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n 2 -t 10\nhostname\n")
    answer = sssjob("quote", "--rates", RATES, script)
    assert answer.code == 0 and answer.out == "job-1: 0.01 EUR\n"
    assert "SSS503 info the rates go by the time of day; quoted as if the job started now" in answer.err


def test_a_value_that_was_chosen_is_told_where_it_is_asked_for(sssjob: Command, tmp_path: Path) -> None:
    """At the line of its first condition, whether at the job, in a task group, or inherited; of the job where it is at
    no one place."""
    document = tmp_path / "group.xml"
    document.write_text("""<JobGroup>
 <Id>g</Id>
 <JobDefaults>
  <Requested><Memory op="GT" units="MB">1</Memory></Requested>
 </JobDefaults>
 <Job><Id>a</Id><Duration>60</Duration>
  <Requested>
   <Processors op="LE">9</Processors>
   <Processors op="GE">4</Processors>
  </Requested>
 </Job>
 <Job><Id>b</Id><Duration>60</Duration>
  <TaskGroup><Requested>
   <Processors group="1">4</Processors><Processors conj="Or" group="-1">6</Processors>
  </Requested></TaskGroup>
 </Job>
</JobGroup>
""")
    lines = [line.removeprefix(f"{document}:") for line in sssjob("quote", "--rates", RATES, document).err.splitlines()
             if " SSS502 " in line]
    memory = "Memory: 1.00000095367431640625 is taken of what is asked"
    assert lines == ["8:4: SSS502 warning [costs] a: Processors: 4 is taken of what is asked",
                     "14:4: SSS502 warning [costs] b: Processors: 4 is taken of what is asked",
                     f"4:14: SSS502 warning [costs] a: {memory}", f"4:14: SSS502 warning [costs] b: {memory}"]


def test_what_is_the_same_of_many_jobs_is_told_once(sssjob: Command, tmp_path: Path) -> None:
    """What a price assumes, why there is none, and a charge that becomes another one: 17,000 jobs had 17,000 lines."""
    jobs, document, rates = 17, tmp_path / "many.xml", tmp_path / "rates.toml"
    rates.write_text('name = "r"\nversion = "1"\ncurrency = "EUR"\n[[rate]]\ntype = "VBR"\nname = "Processors"\n'
                     'rate = 1\nper = "hour"\n')
    for command, job, told in (
            ("quote", "<Duration>3600</Duration>", [
                "j0: Processors is not said: it is priced as for one, the least (17 jobs)"]),
            ("charge", "<State>Idle</State>", ["j0 and 16 more: not charged:"]),
            ("charge", "<State>Completed</State><Charge>2</Charge><Delivered><Duration>3600</Duration><Processors>1"
                       "</Processors></Delivered>", ["Charge 2 becomes 1.00 (17 jobs)"])):
        document.write_text("<JobGroup><Id>g</Id>" + "".join(
            f"<Job><Id>j{n}</Id><Executable>/e</Executable>{job}</Job>\n" for n in range(jobs)) + "</JobGroup>")
        *lines, counts = sssjob(command, "--rates", rates, document).err.splitlines()
        assert [part for part, line in zip(told, lines, strict=True) if part not in line] == [], lines
        assert counts.startswith("17 jobs: ")
