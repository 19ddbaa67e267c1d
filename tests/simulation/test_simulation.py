"""A few of the worlds that ``python -m tests.simulation`` lives through by the thousand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from difflib import unified_diff
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from sssjob.run.client import Client
from sssjob.run.standing import Running
from sssjob.xml.writer import write_document
from tests.simulation.cluster import Cluster
from tests.simulation.kernel import EPOCH
from tests.simulation.mutants import MUTANTS, Mutant, found_by
from tests.simulation.plans import make_plan
from tests.simulation.world import World, carry_out


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(1, 12))])
def test_documents_say_what_happened(seed: int, tmp_path: Path) -> None:
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(631, 634))
def test_the_end_of_a_cancelled_job_is_not_when_its_files_were_staged(seed: int, tmp_path: Path) -> None:
    """Nothing but the cancel tells the end: there is no accounting, and the queue forgets at once."""
    cluster = {"name": "lab", "kind": "slurm", "ancient": False, "first": 1, "wait": 0.0, "slots": 100, "forget": 0.0,
               "late": 0.0, "accounting": False}
    step = {"at": 45.0, "on": 0, "do": "submit", "token": 1, "jobs": [{"script": "sleep 100000", "stage": "clean"}]}
    assert carry_out({"seed": seed, "clusters": [cluster], "steps": [step]}, tmp_path / "world") == []


@pytest.mark.parametrize("seed", [13012186, *(
    pytest.param(seed, marks=pytest.mark.sweep) for seed in (21465, 40208, 11052653))])
def test_what_a_manager_takes_out_for_a_dependency_is_left_out(seed: int, tmp_path: Path) -> None:
    """A job that Slurm ends because its turn cannot come is skipped, not cancelled, also where that is learnt before
    the end that it had waited for; and one whose submission got lost is not submitted again once it cannot start.
    One that Slurm had forgotten is skipped too where its group is ended with the job that it had waited for: it was
    failed, and lost."""
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
def test_a_job_that_an_earlier_client_cancelled_was_cancelled(tmp_path: Path) -> None:
    """That client died before the end was known, and the record of Grid Engine is that of any job that was killed."""
    assert carry_out(make_plan(60023), tmp_path / "world") == []


@pytest.mark.sweep
def test_a_record_of_grid_engine_that_is_cut_off_is_none(tmp_path: Path) -> None:
    """One without its last lines had all that is needed for an end, and its CPU time was never asked for again."""
    assert carry_out(make_plan(10002494), tmp_path / "world") == []


@pytest.mark.sweep
def test_an_end_that_nobody_took_is_asked_for_again(tmp_path: Path) -> None:
    """The manager's answer was cut when the second client asked whose the job was; the first had cancelled it, and
    died."""
    assert carry_out(make_plan(10202621), tmp_path / "world") == []


@pytest.mark.sweep
def test_an_id_that_was_looked_for_is_not_certainly_ones_own(tmp_path: Path) -> None:
    """Its submit command and the queue had not answered, the record of its start told the id half a minute later, and
    meanwhile a Grid Engine that was installed anew had given that to a stranger: the cancel ended his job."""
    assert carry_out(make_plan(11006675), tmp_path / "world") == []


@pytest.mark.sweep
def test_a_start_that_the_job_has_recorded_is_counted_once(tmp_path: Path) -> None:
    """A job that was preempted began anew and was cancelled at once: its own record told the second start first, and
    accounting, which still called it running, was taken to tell a third one."""
    assert carry_out(make_plan(11015940), tmp_path / "world") == []


def test_what_may_be_under_way_counts_from_the_last_command(tmp_path: Path) -> None:
    """All intents are written before the first command, which took 40 s with the search for its job; the client died as
    the second one went out. The next client counted from the intents, and submitted again what arrived later."""
    assert carry_out(make_plan(11020566), tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [7200017])
def test_a_client_that_leaves_begins_no_staging(seed: int, tmp_path: Path) -> None:
    """An end that it learns last is written down when it leaves; who comes next would stage the same files too. So is
    the end of a job of which it learns last that all files are at their places.
    """
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [80094, 80194, 80335])
def test_no_job_has_the_facts_of_an_array_that_got_its_number(seed: int, tmp_path: Path) -> None:
    """A Grid Engine, or a Slurm, was installed anew; the job and elements of an array of ours are asked about together.
    """
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
def test_no_element_has_the_record_of_one_that_had_its_number_a_minute_ago(tmp_path: Path) -> None:
    """Elements that were offered one by one have one name, and a Grid Engine with six numbers has no other record yet.
    """
    assert carry_out(make_plan(80176), tmp_path / "world") == []


@pytest.mark.sweep
def test_no_client_waits_for_the_journal_while_another_one_waits_for_a_manager(tmp_path: Path) -> None:
    """A submission is written down in one transaction, and the cluster was asked in it."""
    assert carry_out(make_plan(300245), tmp_path / "world") == []


@pytest.mark.sweep
def test_a_lost_job_has_no_facts_of_its_own_run_anew(tmp_path: Path) -> None:
    """As in the next test, and what was run anew was tried three times: its first attempt had the number."""
    assert carry_out(make_plan(13020644), tmp_path / "world") == []


def test_records_of_a_later_job_of_ours_are_none_of_an_earlier_one(tmp_path: Path) -> None:
    """Seed 13020644: a Grid Engine was installed anew and lost a job; the user ran it anew within two minutes, and it
    got the same number and name. Accounting, asked late, gave the lost job the end of that one."""
    cluster = {"name": "lab", "kind": "sge", "ancient": False, "wait": 0.0}
    jobs = [{"script": "sleep 1.5; exit 200", "held": True}]
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 0, "jobs": jobs}, {"at": 5.2, "on": 0, "do": "reset"},
             {"at": 42.0, "on": 0, "do": "wait", "seconds": 40.0, "clients": 1},
             {"at": 85.0, "on": 0, "do": "anew", "job": 0}]
    assert carry_out({"seed": 1, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("clock", [40.0, -40.0])
def test_a_client_that_comes_later_believes_a_grid_engine_of_another_clock(clock: float, tmp_path: Path) -> None:
    """The client that submitted has noted the time of the submit command by its own clock, and no word of the queue:
    the record counts all the same."""
    cluster = {"name": "lab", "kind": "sge", "ancient": False, "clock": clock}
    jobs = [{"script": "sleep 5.0; exit 0"}, {"script": "sleep 30.0; exit 0", "after": 0, "condition": "OnSuccess"}]
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 1, "jobs": jobs},
             {"at": 1.0, "on": 0, "do": "wait", "seconds": 15.0, "clients": 1}]
    assert carry_out({"seed": 5, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [12000466, 12000818, 12000959, 13606057])
def test_what_users_do_to_jobs_is_done(seed: int, tmp_path: Path) -> None:
    """An element of an array that somebody holds has a row of its own in the queue; the history of what was pruned by a
    client that died is judged too; a release that was asked for before the hold was accepted ends that; and a job that
    had just ended is put back, while its end is being told."""
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [14000000, 14000002, 14000041, 14000083, 14020308, 14021428, 14021756])
def test_an_unlucky_site_changes_nothing(seed: int, tmp_path: Path) -> None:
    """Strangers' jobs that bear the beginning of our tags, a request for two documents at one moment, a full disk, and
    accounting that says an hour after a group was ended for a lost job that this was cancelled."""
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [14020334, 13025525])
def test_an_empty_answer_is_no_queue_without_jobs(seed: int, tmp_path: Path) -> None:
    """All answers of a Slurm were empty for half a minute: sbatch had made the job, the search for it asked squeue and
    sacct for no header, and took nothing for no job. It was submitted twice. And a Grid Engine said odd words only, in
    which no job stood: the cancel of one that it had was told as done."""
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.parametrize("seed", [2])
def test_a_record_of_an_attempt_is_none_of_the_next_one(seed: int, tmp_path: Path) -> None:
    """Seed 11012896: a Grid Engine was installed anew between two attempts, so that both had one native id, and once
    more before there was a record of the second. That of the first was taken for it."""
    cluster = {"name": "lab", "kind": "sge", "ancient": False, "first": 40, "wait": 1.0, "clock": -40.0}
    jobs = [{"script": "sleep 0.2; exit 3", "stage": "out", "retry": "exit(3)=1"},
            {"script": "sleep 0.2; exit 0", "stage": "clean"}]
    away = {"on": 0, "what": "controller"}
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 1, "jobs": jobs},
             {**away, "at": 0.0, "do": "storm", "seconds": 19.4, "faults": ["disk"], "rate": 1.0},
             {"at": 1.0, "on": 0, "do": "wait", "seconds": 60.0, "clients": 1},
             {**away, "at": 4.6, "do": "outage", "seconds": 25.9}, {"at": 14.5, "on": 0, "do": "reset"},
             {"at": 38.5, "on": 0, "do": "reset"}]
    assert carry_out({"seed": seed, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


def test_an_exit_file_of_an_earlier_run_is_no_end(tmp_path: Path) -> None:
    """There is no accounting, a job that had ended with code 3 was put back, and its second run was killed, which the
    queue had forgotten when somebody looked. The exit file of the first run was taken for the end."""
    cluster = {"name": "lab", "kind": "slurm", "ancient": False, "wait": 8.0, "accounting": False, "forget": 20.0}
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 0, "jobs": [{"script": "sleep 30.0; exit 3"}]},
             {"at": 29.4, "on": 0, "do": "wait", "seconds": 22.9, "clients": 1},
             {"at": 38.9, "on": 0, "do": "rerun", "job": 0},
             {"at": 76.0, "on": 0, "do": "break", "job": 0, "state": "OUT_OF_MEMORY"}]
    assert carry_out({"seed": 1, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


def test_no_group_is_ended_for_a_failure_that_could_not_be_written(tmp_path: Path) -> None:
    """Seed 14100258: the disk had no room for the intent of the last job, which failed by that, and what ran of its
    group was cancelled. The next client knew of no failure, and submitted it."""
    cluster = {"name": "lab", "kind": "slurm", "ancient": False, "wait": 0.0, "slots": 100, "limit": 2}
    jobs = [{"script": "sleep 30.0; exit 200"},
            {"script": "sleep 30.0; exit 0", "after": 0, "condition": "OnFailure"},
            {"script": "sleep 5.0; exit 200", "after": 1, "condition": "OnSuccess"}]
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 0, "jobs": jobs, "failfast": True},
             {"at": 46.9, "on": 0, "do": "full", "seconds": 36.3}, {"at": 58.2, "on": 0, "do": "look"}]
    assert carry_out({"seed": 14100258, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


@pytest.mark.sweep
def test_a_job_of_which_the_end_is_told_is_not_put_back(tmp_path: Path) -> None:
    """The plan of seed 13606057 in another life: its end was found out between the look whether it is there and the
    command."""
    assert carry_out(make_plan(13606057) | {"seed": 11}, tmp_path / "world") == []


def test_why_a_job_is_not_tried_again_outlives_late_accounting(tmp_path: Path) -> None:
    """Seed 14030016: the record of its only attempt came an hour later, and its words were told alone."""
    cluster = {"name": "lab", "kind": "slurm", "ancient": False, "first": 40, "lag": 3600.0}
    jobs = [{"script": "sleep 0.2; exit 200", "retry": "exit(200)=1"}, {"script": "sleep 5.0; exit 200"}]
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 0, "jobs": jobs, "failfast": True},
             {"at": 116.4, "on": 0, "do": "hold", "job": 0}]
    assert carry_out({"seed": 14030016, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [11042380, 11099168, 13600107, 13600117, 13602157, 14120208])
def test_the_world_is_as_managers_are(seed: int, tmp_path: Path) -> None:
    """Slurm gives the number of an array to nobody while elements of it run, nor that of a job for which another one
    waits. Grid Engine names as predecessors those that have not ended, or what is held could not be told from what
    waits; in its full queue one held job after the other is released. For how long a job was suspended Slurm's
    accounting tells alone. Of a job that is held and waits for others too Grid Engine does not say which."""
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [13012227, 13012235, 13014344])
def test_a_submission_of_which_its_cluster_knows_nothing_goes_on_where_it_was_made(seed: int, tmp_path: Path) -> None:
    """The controller was away: it did not say which cluster it is, and took no job. Clients on the other login host
    rightly leave that alone, for it may be of another cluster, until somebody looks where it was submitted."""
    assert carry_out(make_plan(seed), tmp_path / "world") == []


@pytest.mark.sweep
def test_a_submission_whose_job_its_cluster_has_forgotten_goes_on_where_it_was_made(tmp_path: Path) -> None:
    """The controller took the job, but did not say which cluster it is; queue and accounting dropped it soon."""
    cluster = {"name": "lab", "kind": "slurm", "ancient": False, "wait": 0.0, "forget": 2.0, "purge": 30.0}
    die = {"count": 1, "before": True, "at": "commit"}
    steps = [{"at": 0.0, "on": 0, "do": "submit", "token": 0, "die": die, "jobs": [{"script": "sleep 0.2; exit 200"}]},
             {"at": 50.0, "on": 0, "do": "storm", "seconds": 20.0, "what": "accounting", "rate": 0.7,
              "faults": ["refused", "lost answer"]},
             {"at": 51.0, "on": 0, "do": "again", "name": 0, "door": "b",
              "die": {"at": "command", "count": 2, "before": False}}]
    assert carry_out({"seed": 0, "clusters": [cluster], "steps": steps}, tmp_path / "world") == []


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [301, 307, 320, 373, 452])
def test_a_client_that_has_waited_has_the_document_that_the_journal_gives(
        seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text, in the same order: of jobs that it has followed, and of those that others did, with attempts,
    arrays and ends that accounting told late. A job of the last two began anew and was put back while nobody looked.
    """
    wait, differences = Client.wait, list[str]()

    def compared(self: Client, names: Sequence[str], *others: Any) -> tuple[list[Running], bool]:
        jobs, done = wait(self, names, *others)
        for submission in {id(job.of): job.of for job in jobs}.values():
            if submission.ended and (entry := submission.entry) is not None:
                read = self.standing(self.journal.entry(entry.number))
                differences.extend(unified_diff(write_document(submission.result()).splitlines(),
                                                write_document(read.result()).splitlines(), lineterm=""))
        return jobs, done

    monkeypatch.setattr(Client, "wait", compared)
    assert (carry_out(make_plan(seed), tmp_path / "world"), differences) == ([], [])


def _history(seed: int, folder: Path) -> str:
    """What a world comes to: each step draws a number."""
    folder.mkdir()
    world = World(make_plan(seed), folder)
    wrong = world.live()
    kernel, calls = world.kernel, [cluster.calls for cluster in world.clusters]
    return repr((kernel.steps, kernel.now, kernel.chance.random(), calls, wrong))


def test_one_seed_is_one_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a failure could not be looked at again. Clients look at the times of directories, and in 5 seeds of 100 their
    history hung on whether the clock of this machine had gone on between two changes: the second time it stands."""
    first, tick = _history(11200057, tmp_path / "first"), Cluster.tick

    def stopped(cluster: Cluster) -> None:
        tick(cluster)
        for folder in {Path(job.script).parent for job in cluster.jobs if job.tag is not None}:
            if folder.is_dir() and folder.stat().st_mtime > EPOCH + 1e6:
                os.utime(folder, (EPOCH + 1e7, EPOCH + 1e7))

    monkeypatch.setattr(Cluster, "tick", stopped)
    assert _history(11200057, tmp_path / "second") == first


@pytest.mark.sweep
def test_one_seed_is_one_history_in_every_process(tmp_path: Path) -> None:
    """After whatever other worlds: what the interpreter draws by itself is the same there as it is in the command."""
    histories = set()
    for number, seeds in enumerate(([13500015], [3, 7, 13500015]), 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        program = ("from pathlib import Path; from tests.simulation.test_simulation import _history; "
                   f"print([_history(seed, Path({str(folder)!r}, str(seed))) for seed in {seeds}][-1])")
        histories.add(subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}).stdout)
    assert len(histories) == 1


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "seed"), [
    ("any record of the native id is ours", 1), ("the journal is not synced", 0), ("a wish to cancel is forgotten", 1),
    ("an attempt is charged twice", 1), ("files are not staged out", 0),
    ("late accounting takes the record of a stranger", 15),
    ("dependencies hold whatever became of the other job", 0), ("a hold is told to nobody", 12000963),
    ("a job is put back twice", 12001250), ("another document is that of the request", 14000000),
    ("a job is submitted although its intent has no room", 14000083)])
def test_planted_faults_are_found(name: str, seed: int, tmp_path: Path) -> None:
    """A few of those that ``python -m tests.simulation.mutants`` plants."""
    mutant = next(one for one in MUTANTS if one.name == name)
    assert found_by(mutant, tmp_path, [seed]) == seed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_fault_has_a_place(mutant: Mutant) -> None:
    """What a fault stands in the place of may have moved."""
    with ExitStack() as places:
        for target, value in mutant.targets.items():
            places.enter_context(patch(target, value))
