"""Whose job a row or a record is about: of recorded and made answers with other jobs of the same id in them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import Job, JobSpec, JobState, JobStatus
from psij.executors.batch._followed import Followed, LastAnswer
from psij.executors.batch._identity import Claim, Identity, RunRecord, Verdict, Whose, judge, lives, tags_in
from psij.executors.batch._listing import add_tags, is_of, repeats
from psij.executors.batch._sge_records import parse_qacct
from psij.executors.batch._slurm_records import ACCOUNTING, parse_sacct, parse_scontrol
from psij.executors.batch._watch import Watcher, watcher_of
from psij.executors.batch.sge import SGEJobExecutor
from psij.executors.batch.slurm import SlurmJobExecutor
from tests.psij.batch_support import Stand, a_job, ended, known, quick_stand, runs
from tests.psij.managers import MANAGERS

OURS, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
NOW = 1_800_000_000.0
C, F, X = JobState.COMPLETED, JobState.FAILED, JobState.CANCELED


def tagged(**members: Any) -> Identity:
    return Identity(frozenset([OURS]), "alice", since=NOW, until=NOW + 1, **members)


@pytest.mark.parametrize(("identity", "claim", "verdict"), [
    (tagged(), Claim(frozenset([OURS]), "bob", submit_time=1.0), Verdict.OURS),      # the tag is proof
    (tagged(), Claim(frozenset([OTHER]), "alice", submit_time=NOW), Verdict.STRANGER),
    (tagged(), Claim(frozenset(), "alice", submit_time=NOW), Verdict.STRANGER),
    (tagged(), Claim(None, "bob", submit_time=NOW), Verdict.STRANGER),
    (tagged(name="a"), Claim(None, "alice", "b", NOW), Verdict.STRANGER),
    (tagged(), Claim(None, "alice", submit_time=NOW - 3600), Verdict.STRANGER),
    (tagged(), Claim(None, "alice", submit_time=NOW + 3600), Verdict.DOUBT),
    (tagged(), Claim(None, "alice", submit_time=NOW - 60), Verdict.OURS),            # clocks differ
    (tagged(submit_time=NOW), Claim(None, "alice", submit_time=NOW - 60), Verdict.STRANGER),
    (tagged(began=NOW + 9), Claim(None, "alice", submit_time=NOW - 60, end_time=NOW - 1), Verdict.STRANGER),
    (tagged(began=NOW + 9), Claim(None, "alice", submit_time=NOW, end_time=NOW + 8), Verdict.OURS),  # whole seconds
    (tagged(began=NOW + 9), Claim(frozenset([OURS]), end_time=NOW - 99), Verdict.OURS),      # put back, by its tag
    (tagged(), Claim(), Verdict.OURS),                                               # a manager that tells nothing
    (Identity(frozenset()), Claim(frozenset([OTHER])), Verdict.STRANGER),            # attached to a job without a tag
    (Identity(frozenset(), submit_time=NOW), Claim(frozenset(), submit_time=NOW + 9), Verdict.DOUBT),
    (Identity(), Claim(frozenset([OTHER]), "bob", "x", 5.0), Verdict.OURS)])
def test_whose_a_claim_is(identity: Identity, claim: Claim, verdict: Verdict) -> None:
    """Tag, user, name and time have to agree as far as both are known; a stranger is named as one with the reason."""
    judgement, why = judge(identity, claim)
    assert judgement is verdict and bool(why) is (verdict is not Verdict.OURS)


def test_an_attached_job_sticks_to_the_first_answer() -> None:
    identity = Identity()
    identity.learn(Claim(frozenset(), "alice", "x", NOW))
    assert identity == Identity(frozenset(), "alice", "x", submit_time=NOW)
    assert judge(identity, Claim(frozenset(), "alice", "x", NOW + 1))[0] is Verdict.OURS
    assert judge(identity, Claim(frozenset(), "alice", "x", NOW - 100))[0] is Verdict.STRANGER


def test_a_job_that_somebody_has_named_anew_goes_by_its_new_name() -> None:
    """Where the queue tells the tag; accounting, which tells the name alone, has the new one then."""
    identity = tagged(name="mine")
    identity.learn(Claim(frozenset([OURS]), "alice", "other"))
    assert judge(identity, Claim(None, "alice", "other"))[0] is Verdict.OURS
    identity.learn(Claim(None, "alice", "third"))
    assert judge(identity, Claim(None, "alice", "third"))[0] is Verdict.STRANGER


@pytest.mark.parametrize(("text", "tags"), [
    (f"sssjob:{OURS}", {OURS}), (f"sbatch --parsable /a b/{OURS}.job", {OURS}), (f"/x/{OURS}/script.sh", set()),
    (f"sssjob:{OURS}-more", set()), (f"xsssjob:{OURS}", set()), (f"sssjob:{OURS}|/w/{OTHER}.job", {OURS, OTHER}),
    ("(null)|(null)", set())])
def test_tags_in_texts(text: str, tags: set[str]) -> None:
    assert tags_in(text) == tags


def run_of(submitted: float, over: bool = True, tag: str | None = None, user: str = "alice") -> RunRecord[float]:
    return RunRecord(Claim(None if tag is None else frozenset(filter(None, [tag])), user, submit_time=submitted), over,
               submitted)


@pytest.mark.parametrize(("identity", "records", "own"), [
    (tagged(), [run_of(5), run_of(NOW)], [NOW]),                                     # of years ago
    (tagged(), [run_of(NOW, False), run_of(NOW + 500)], [NOW, NOW + 500]),           # run again by its manager
    (tagged(), [run_of(NOW), run_of(NOW + 500)], [NOW]),                             # a later one of the same user
    (tagged(), [run_of(NOW, False, OURS), run_of(NOW + 500, True, OURS), run_of(NOW + 900, True, "")],
     [NOW, NOW + 500]),
    (tagged(), [run_of(NOW, True, user="bob")], []),
    (tagged(), [run_of(NOW - 30), run_of(NOW)], [NOW]),                              # the nearest of two that fit
    (tagged(), [run_of(NOW - 30)], [NOW - 30]),                                      # one that fits: clocks differ
    (tagged(), [run_of(NOW - 41), run_of(NOW + 41)], []),                            # two that fit as well: doubt
    (tagged(submit_time=NOW + 41), [run_of(NOW - 40), run_of(NOW + 41)], [NOW + 41]),
    (Identity(), [run_of(5), run_of(NOW)], [NOW]),                                   # attached: the last so called
    (Identity(), [], [])])
def test_runs_of_one_job(identity: Identity, records: list[RunRecord[float]], own: list[float]) -> None:
    """Of records of one number those of the job count, all of its runs, and each of the others is told of."""
    for order in (records, records[::-1]):
        whose = Whose({"7": Identity(identity.tags, identity.user, identity.name, identity.since, identity.until,
                                     identity.submit_time)})
        assert whose.runs("7", order) == own
        assert bool(whose.left(["7"])) is (len(own) < len(records))


@given(st.lists(st.tuples(st.integers(0, 1000), st.booleans(), st.sampled_from(["alice", "bob"]))))
def test_lives_share_out_all_runs(rows: list[tuple[int, bool, str]]) -> None:
    """Each run is of one life, in order of time, and no life has two users."""
    records = [run_of(float(moment), over, user=user) for moment, over, user in rows]
    runs = lives(records)
    assert sorted(id(run) for life in runs for run in life) == sorted(map(id, records))
    assert all(len({run.claim.user for run in life}) == 1 for life in runs)
    assert all(life == sorted(life, key=lambda run: run.record) for life in runs)


# --- records ------------------------------------------------------------------------------------------------------
def row(job_id: str, submitted: float, state: str = "COMPLETED", line: str = "", user: str = "alice",
        took: int = 3) -> str:
    values = {"JobID": job_id, "State": state, "ExitCode": "0:0", "Submit": str(int(submitted)),
              "Start": str(int(submitted)), "End": str(int(submitted) + took), "ElapsedRaw": str(took),
              "Suspended": "00:00:00", "TotalCPU": "00:01", "NCPUS": "1", "NNodes": "1", "NodeList": "n1",
              "User": user, "SubmitLine": line, "Partition": "batch"}
    return "|".join(values.get(name, "") for name in ACCOUNTING)


LINE = f"sbatch --parsable /w/{OURS}.job"
OLD = [row("7", 1_507_050_000, took=86400, user="bob"), row("7", 1_507_060_000, took=86400),
       row("7_1", 1_507_070_000, "FAILED", took=86400), row("7_2", 1_507_070_000, took=86400)]


@pytest.mark.parametrize("later", [[], [row("7", NOW + 900, "FAILED", "sbatch other.sh", took=50)]])
@pytest.mark.parametrize("line", [LINE, ""])
def test_strangers_in_sacct(later: list[str], line: str) -> None:
    """Rows of 2017 of another user, of ours and of a native array of that id, and a later stranger: nothing of them
    is in the facts, whether sacct has command lines or not, and all of them are told of."""
    whose = Whose({"7": tagged()})
    text = "\n".join(["|".join(ACCOUNTING), *OLD, row("7", NOW, line=line), *later, ""])
    ends = parse_sacct(0, text, whose)
    metadata = ends["7"].metadata or {}
    assert (set(ends), ends["7"].state, metadata["submit_time"], metadata["wall_seconds"], metadata["starts"]) == (
        {"7"}, C, NOW, 3, 1)
    assert whose.left(["7"])


def test_a_requeued_run_keeps_its_chain() -> None:
    """sacct gives a run after a requeue another Submit: both are the job's."""
    for line in (LINE, ""):
        own = [row("7", NOW, "REQUEUED", line), row("7", NOW + 99, line=line)]
        text = "\n".join(["|".join(ACCOUNTING), *OLD, *own, ""])
        metadata = parse_sacct(0, text, Whose({"7": tagged()}))["7"].metadata or {}
        assert (metadata["submit_time"], metadata["wall_seconds"], metadata["starts"]) == (NOW, 6, 2)


def elements_of(array: str, line: str) -> list[str]:
    return [row(f"{array}_{number}", NOW + 20, line=line, took=15) for number in (1, 2)]


@pytest.mark.parametrize("line", [f"sbatch /w/{OTHER[:28]}ffffffff.job", ""])
@pytest.mark.parametrize("asked_elements", [True, False])
@pytest.mark.parametrize("has_own", [True, False])
def test_a_job_of_slurm_is_not_the_array_of_ours_that_has_its_number(line: str, asked_elements: bool, has_own: bool,
                                                                    ) -> None:
    """The controller was installed anew, and job and elements are asked about at once: the job has its own record, or
    none, whether sacct has command lines or not."""
    element = Identity(frozenset([OTHER[:28] + "00000001", OTHER[:28] + "ffffffff"]), "alice", since=NOW + 20,
                       until=NOW + 21)
    whose = Whose({"7": tagged()} | ({"7_1": element} if asked_elements else {}))
    own = [row("7", NOW, line=LINE)] if has_own else []
    ends = parse_sacct(0, "\n".join(["|".join(ACCOUNTING), *own, *elements_of("7", line), ""]), whose)
    walls = {native_id: (ends[native_id].metadata or {})["wall_seconds"] for native_id in whose.identities
             if native_id in ends}
    assert walls == ({"7": 3} if has_own else {}) | ({"7_1": 15} if asked_elements else {})
    assert whose.left(["7"])


@pytest.mark.parametrize("tags", [None, frozenset[str](), frozenset([OTHER[:28] + "ffffffff"])])
def test_an_array_that_was_attached_is_the_sum_of_its_own_elements(tags: frozenset[str] | None) -> None:
    """Also while elements of an array of that number that was there before are asked about themselves."""
    line = f"sbatch /w/{OTHER[:28]}ffffffff.job" if tags else "sbatch other.sh"
    whose = Whose({"7": Identity(tags, submit_time=NOW + 20), "7_1": tagged()})
    earlier = row("7_1", NOW, line=LINE)
    text = "\n".join(["|".join(ACCOUNTING), earlier, *elements_of("7", line), ""])
    ends = parse_sacct(0, text, whose)
    assert [(ends[native_id].metadata or {})["wall_seconds"] for native_id in ("7", "7_1")] == [30, 3]


def test_scontrol_sums_no_elements_of_another_array() -> None:
    """As sacct does, of what the controller knows."""
    def shown(array: str, command: str) -> str:
        return (f"JobId=70 ArrayJobId={array} ArrayTaskId=1 JobName=x UserId=alice(1000) JobState=COMPLETED "
                f"Reason=None Restarts=0 ExitCode=0:0 SubmitTime={NOW + 20:.0f} StartTime={NOW + 20:.0f} "
                f"EndTime={NOW + 35:.0f} Partition=batch NodeList=n1 NumNodes=1 NumCPUs=1 Command={command} \n")

    whole = OTHER[:28] + "ffffffff"
    element = Identity(frozenset([whole]), "alice", since=NOW + 20, until=NOW + 21)
    text = shown("7", f"/w/{whole}.job")
    assert set(parse_scontrol(0, text, Whose({"7": tagged(), "7_1": element}))) == {"7_1"}
    assert set(parse_scontrol(0, text, Whose({"7": Identity()}))) == {"7", "7_1"}


def test_only_strangers_in_sacct() -> None:
    """Before our own record is there, an old one is no end of our job."""
    text = "\n".join(["|".join(ACCOUNTING), *OLD, ""])
    assert parse_sacct(0, text, Whose({"7": tagged()})) == {}
    assert parse_sacct(0, text)["7"].state is F      # asked for in no particular: the last that was called so


def test_command_lines_with_the_separator() -> None:
    """A job of others may have any command line."""
    text = "\n".join(["|".join(ACCOUNTING), row("7", NOW, line="sbatch --wrap a|b|c"), ""])
    assert parse_sacct(0, text)["7"].state is C


RECORD = """==============================================================
qname        all.q
hostname     head
owner        {owner}
jobname      {name}
jobnumber    5
taskid       {task}
qsub_time    {when}
start_time   {when}
end_time     {when}
granted_pe   NONE
slots        1
failed       0
exit_status  0
ru_wallclock {took}s
cpu          1.000s
category     NONE
"""


def test_strangers_in_qacct() -> None:
    """qacct prints all that ever had a number: others' users, arrays, and our own of years ago."""
    def record(when: float, took: int, owner: str = "alice", task: str = "undefined") -> str:
        stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(when))
        return RECORD.format(owner=owner, name="x", task=task, when=stamp, took=took)

    whose = Whose({"5": tagged()})
    text = (record(1_507_050_000, 86400) + record(NOW - 9, 500, "bob") + record(1_507_050_000, 86400, task="1")
            + record(NOW, 2) + record(NOW + 900, 700))
    ends = parse_qacct(0, text, whose)
    assert set(ends) == {"5"} and (ends["5"].metadata or {})["wall_seconds"] == 2
    assert len(whose.left(["5"])) == 4      # why, not which
    assert parse_qacct(0, record(1_507_050_000, 9), Whose({"5": tagged()})) == {}


def test_a_single_job_is_not_the_array_of_ours_that_has_its_number() -> None:
    """The counter was set back, and both are asked about at once: each has its own record, and none where there is
    none."""
    def record(when: float, took: int, task: str) -> str:
        stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(when))
        return RECORD.format(owner="alice", name="x", task=task, when=stamp, took=took)

    tasks = record(NOW + 1, 30, "1") + record(NOW + 1, 30, "2")
    for text, own in ((tasks, None), (record(NOW, 2, "undefined") + tasks, 2)):
        ends = parse_qacct(0, text, Whose({"5": tagged(), "5.1": tagged()}))
        walls = {native_id: (status.metadata or {})["wall_seconds"] for native_id, status in ends.items()}
        assert walls == {"5.1": 30, **({} if own is None else {"5": own})}


def test_a_record_of_grid_engine_that_ended_before_the_job_began_is_of_an_earlier_job() -> None:
    """Ids come round within the two minutes by which clocks may differ, to jobs of one name; the job's own record is
    not there yet. Its start record says when it began."""
    stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(NOW - 44))
    text = RECORD.format(owner="alice", name="x", task="undefined", when=stamp, took=5)
    whose = Whose({"5": tagged(name="x", began=NOW + 1)})
    assert parse_qacct(0, text, whose) == {}
    assert whose.left(["5"]) == ["it had ended 45 s before the job began"]


def test_tasks_of_an_array_of_ours_that_was_attached_are_summed() -> None:
    """The queue has told its tag, which is that of the whole."""
    stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(NOW))
    text = "".join(RECORD.format(owner="alice", name="x", task=task, when=stamp, took=30) for task in ("1", "2"))
    whose = Whose({"5": Identity(frozenset([OTHER[:28] + "ffffffff"]), "alice", "x", submit_time=NOW)})
    assert (parse_qacct(0, text, whose)["5"].metadata or {})["wall_seconds"] == 60


def test_two_of_ours_with_one_number_of_grid_engine_are_told_apart_by_their_names() -> None:
    """The qmaster was installed anew within the two minutes by which clocks may differ."""
    stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(NOW))
    text = "".join(RECORD.format(owner="alice", name=name, task="undefined", when=stamp, took=took)
                   for name, took in (("first", 3), ("second", 40)))
    for name, took in (("first", 3), ("second", 40)):
        whose = Whose({"5": replace(tagged(), name=name)})
        assert (parse_qacct(0, text, whose)["5"].metadata or {})["wall_seconds"] == took
        assert len(whose.left(["5"])) == 1
    assert parse_qacct(0, text, Whose({"5": tagged()})) == {}       # which one it is nobody knows
    engine = SGEJobExecutor()
    assert engine.native_name(Job(JobSpec("/bin/true", name="first"))) == "first"
    assert engine.native_name(Job(JobSpec("/bin/5 go"))) == "_5_go"
    assert engine.native_name(Job()) is None and SlurmJobExecutor().native_name(a_job("true")) is None


@pytest.mark.parametrize("out", ["", "=====\njob_number:                 5"])
def test_a_list_of_grid_engine_that_is_cut_off_is_no_answer(out: str) -> None:
    """Or a job that it does not show would be submitted again."""
    with pytest.raises(ValueError, match=r"cut off|shows no job"):
        SGEJobExecutor()._parse_lookup(out)


# --- on stand-ins ---------------------------------------------------------------------------------------------------
@pytest.fixture(params=["slurm", "sge"])
def reset(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """A manager whose ids come again."""
    with quick_stand(MANAGERS[request.param], tmp_path, monkeypatch) as stand:
        yield stand


def submitted_earlier(stand: Stand, job: Job, seconds: float) -> None:
    """Have a job be older for its executor."""
    watcher = watcher_of(stand.executor)
    assert watcher is not None
    watcher.all_followed()[job].made_at -= seconds


def test_a_job_that_the_queue_does_not_list_yet_is_cancelled(reset: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """As LSF does, whose bjobs is answered from a copy: a job that is not listed is not gone so soon."""
    job = runs(reset)
    submitted_earlier(reset, job, 2.0)
    monkeypatch.setattr("psij.executors.batch._watch.listed", lambda executor, items: {})
    job.cancel()
    assert reset.lab.job("1")["canceled"] is True      # type: ignore[index]


def test_a_stranger_is_never_cancelled(reset: Stand) -> None:
    """Our job is gone, and its id is another job's, two seconds after its submission: that one runs on, whoever asks,
    and ours ends by its own record."""
    job = runs(reset)
    submitted_earlier(reset, job, 2.0)
    reset.lab.end("1", 0)
    reset.lab.begin_anew()
    other = reset.lab.stranger()
    job.cancel()
    assert ended(job).state is C and known(job)["starts"] == 1
    later = Job()
    later._id = job.id
    reset.executor.expect(later, Identity(frozenset([job.id]), "root", since=time.time() - 5, until=time.time()))
    reset.executor.attach(later, "1")
    later.cancel()
    assert ended(later).state is C and known(later)["left_out"]
    assert reset.lab.job(other["id"])["canceled"] is False      # type: ignore[index]


def test_a_stranger_does_not_keep_a_job_running(reset: Stand) -> None:
    """Accounting has the end of our job, while another one runs under its id."""
    job, watcher = runs(reset), watcher_of(reset.executor)
    assert watcher is not None
    with watcher._changed:          # no question begins before the stranger is there
        reset.lab.end("1", 3)
        reset.lab.begin_anew()
        reset.lab.stranger()
    status = ended(job)
    assert (status.state, status.exit_code) == (F, 3) and known(job)["left_out"]


def test_two_of_ours_with_one_id(reset: Stand) -> None:
    """Each of two jobs that were given one id has its own end."""
    first = runs(reset)
    reset.lab.end("1", 3)
    reset.lab.begin_anew()
    time.sleep(1.1)         # qacct has whole seconds, and nothing but the time tells these two apart there
    second = runs(reset)
    assert first.native_id == second.native_id == "1"
    reset.lab.end("1", 0)
    assert (ended(first).exit_code, ended(second).exit_code) == (3, 0)
    assert known(first)["submit_time"] <= known(second)["submit_time"]


def test_an_attached_job_is_not_taken_for_its_successor(reset: Stand) -> None:
    """A job that was submitted elsewhere has no tag: its identity is that of the first answer."""
    reset.lab.stranger(name="mine")
    job = Job()
    reset.executor.attach(job, "1")
    assert job.wait(target_states=[JobState.ACTIVE]) is not None
    reset.lab.end("1", 5)
    reset.lab.begin_anew()
    other = reset.lab.stranger(name="another", submit=reset.lab.now() + 100)
    assert ended(job).exit_code == 5
    assert reset.lab.job(other["id"])["canceled"] is False      # type: ignore[index]


def test_questions_for_tags_cost_one_command(reset: Stand) -> None:
    """Of many jobs that are new to the watcher the tags are asked at once."""
    jobs = [a_job("sleep 600") for _ in range(12)]
    for job in jobs:
        reset.executor.submit(job)
    for job in jobs:
        assert job.wait(target_states=[JobState.ACTIVE]) is not None
    calls = reset.lab.calls("qstat")
    # squeue tells tags itself
    questions = [words[words.index("-j") + 1].split(",") for words in calls if "-j" in words]
    assert len(questions) <= len(calls) - len(questions)
    asked_for = [native_id for ids in questions for native_id in ids]
    assert len(asked_for) == len(set(asked_for))


def test_jobs_that_were_put_back_together_cost_one_question_for_their_tags(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the failure of a node many jobs have another time of submission, which may be that of later ones."""
    with quick_stand(MANAGERS["sge"], tmp_path, monkeypatch) as stand:
        jobs = [runs(stand) for _ in range(5)]
        watcher = watcher_of(stand.executor)
        assert watcher is not None
        items = [watcher._followed[job] for job in jobs]
        watcher.close()
        listed = {item.native_id: Claim(None, item.identity.user, item.identity.name, time.time() + 900)
                  for item in items}
        states, seen = LastAnswer(), dict[str, JobStatus | None].fromkeys(listed)
        asked = [call for call in stand.lab.calls("qstat") if "-j" in call]
        for _ in range(3):
            states.claims = dict(listed)
            add_tags(stand.executor, states, items, seen)
            for item in items:
                claim = states.claims[item.native_id]
                assert repeats(claim, item.claim) or is_of(item, claim)
        assert len([call for call in stand.lab.calls("qstat") if "-j" in call]) == len(asked) + 1


def test_nothing_is_believed_of_a_job_while_nobody_says_whose_it_is(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job of this id is listed that runs; the question for its tags fails three times, and is asked again."""
    with quick_stand(MANAGERS["sge"], tmp_path, monkeypatch) as stand:
        ask_for_tags, states, job = stand.executor._tags_command, list[JobState](), Job()

        def failing(native_ids: list[str]) -> list[str] | None:
            states.append(job.status.state)
            if len(states) <= 3:
                raise OSError("no answer")
            return ask_for_tags(native_ids)

        monkeypatch.setattr(stand.executor, "_tags_command", failing)
        stand.lab.stranger()
        stand.executor.expect(job, Identity(frozenset([job.id]), "root", since=time.time() - 5, until=time.time() + 5))
        stand.executor.attach(job, "1")
        ended(job)
        assert JobState.ACTIVE not in stand.states(job) and len(set(states[:4])) == 1 < len(states)


def test_a_job_that_was_not_asked_about_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of just now says nothing of a job that came to be followed while the question was put."""
    def listed(executor: object, items: list[Followed]) -> dict[str, None]:
        asked.append([item.native_id for item in items])
        return dict.fromkeys(asked[-1])

    monkeypatch.setattr("psij.executors.batch._watch.listed", listed)
    asked: list[list[str]] = []
    watcher = Watcher(("slurm",))
    for native_id in ("1", "2"):
        job = Job()
        item = watcher._followed[job] = Followed(SlurmJobExecutor(), job, native_id, False)
        item.since = 0.0
        assert watcher.is_there(job) and watcher.is_there(job)
    assert [sorted(ids) for ids in asked] == [["1"], ["1", "2"]]


def test_silence_is_no_answer_without_a_job() -> None:
    """For how long the queue has not listed a job is counted anew when it did not answer."""
    class Silent(SlurmJobExecutor):
        def _ask_queue(self, command: list[str], last_answer: LastAnswer) -> dict[str, JobStatus | None]:
            raise OSError("no answer")

    watcher, job = Watcher(("slurm",)), Job()
    item = watcher._followed[job] = Followed(Silent(), job, "1", False)
    item.missed, before = 2, time.monotonic()
    watcher._poll([item], ["1"])
    assert item.missed == 2 and item.missed_at >= before


CLUSTERS: list[tuple[Callable[[], Any], str, str | None]] = [
    (SlurmJobExecutor, "ClusterName             = lab\nSlurmctldHost[0]        = head(127.0.0.1)\n"
     "SlurmctldHost[1]        = spare\nSlurmctldPort           = 6817\n", "lab (head(127.0.0.1),spare:6817)"),
    (SlurmJobExecutor, "", None)]


@pytest.mark.parametrize(("make", "out", "text"), CLUSTERS)
def test_words_for_clusters(make: Callable[[], Any], out: str, text: str | None) -> None:
    cluster = make()._cluster(out)
    assert (None if cluster is None else str(cluster)) == text
