"""The same on real clusters: a Slurm and a Grid Engine on this machine.

SSSJOB_LAB_SLURM and SSSJOB_LAB_SGE name their directories, in which env.sh sets the environment up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import Job, JobAttributes, JobSpec, JobState, JobStatus, ResourceSpecV1, SubmitException
from psij.exceptions import InvalidJobException
from psij.executors.batch._watch import watcher_of
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor
from psij.executors.batch.sge import SGEExecutorConfig, SGEJobExecutor
from psij.executors.batch.slurm import SlurmExecutorConfig, SlurmJobExecutor
from psij.staging import StageIn, StageOut
from sssjob.xml.reader import read_document
from tests.psij.batch_support import a_job, ended
from tests.psij.test_batch import HOSTILE

pytestmark = pytest.mark.lab
Q, A, C, F, X = (JobState[name] for name in ("QUEUED", "ACTIVE", "COMPLETED", "FAILED", "CANCELED"))
LABS = {"slurm": "SSSJOB_LAB_SLURM", "sge": "SSSJOB_LAB_SGE", "ssh": "SSSJOB_LAB_SSH"}


def enter_lab(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take over the environment of a lab, or skip."""
    folder = os.environ.get(LABS[name])
    if folder is None:
        reason = os.environ.get(f"SSSJOB_NO_LAB_{name.upper()}", f"{LABS[name]} does not name one (make test-labs)")
        pytest.skip(f"no {name} lab: {reason}")
    shown = subprocess.run(["/bin/bash", "-c", '. "$0/env.sh" && env -0', folder], stdout=subprocess.PIPE, check=True)
    for variable in shown.stdout.decode().split("\0")[:-1]:
        key, _, value = variable.partition("=")
        if key not in ("_", "PWD", "SHLVL", "OLDPWD"):
            monkeypatch.setenv(key, value)


@pytest.fixture(params=["slurm", "sge"])
def executor(request: pytest.FixtureRequest, tmp_path: Path,
             monkeypatch: pytest.MonkeyPatch) -> Iterator[BatchSchedulerExecutor]:
    enter_lab(request.param, monkeypatch)
    settings: dict[str, Any] = {"work_directory": tmp_path / "work", "queue_polling_interval": 2,
                                "initial_queue_polling_delay": 0.5}
    executor: BatchSchedulerExecutor
    if request.param == "slurm":
        executor = SlurmJobExecutor(config=SlurmExecutorConfig(**settings))
    else:
        executor = SGEJobExecutor(config=SGEExecutorConfig(**settings, memory_resource="mem", gpu_resource="gpu"))
    yield executor
    if watcher := watcher_of(executor):
        watcher.close()


def final(job: Job) -> JobStatus:
    return ended(job, 90)


def test_whole_way(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    seen: list[JobState] = []
    burn = "import time; t = time.process_time()\nx = bytearray(60 << 20)\nwhile time.process_time() < t + 1.5: pass"
    job = Job(JobSpec(sys.executable, ["-c", burn], name="burn", stdout_path=tmp_path / "o",
                      attributes=JobAttributes(timedelta(minutes=2))))
    job.set_job_status_callback(lambda _, status: seen.append(status.state))
    before = time.time()
    executor.submit(job)
    assert job.native_id in executor.list()
    status = final(job)
    metadata = status.metadata or {}
    time.sleep(0.2)
    assert seen == [Q, A, C] and status.exit_code == 0
    assert before - 1 <= metadata["submit_time"] <= metadata["start_time"] <= metadata["end_time"] <= time.time()
    assert 1 <= metadata["cpu_seconds"] <= 4 and metadata["processors"] == 1 and len(metadata["nodes"]) == 1
    assert 0.5 <= metadata["wall_seconds"] <= 10 and metadata["sources"]["cpu_seconds"] in ("sacct", "qacct")
    assert not any(executor.work_directory.iterdir())


@pytest.mark.parametrize("code", [3, 99, 100, 139, 200])
def test_exit_codes(executor: BatchSchedulerExecutor, code: int) -> None:
    job = a_job(f"exit {code}")
    executor.submit(job)
    assert (final(job).state, job.status.exit_code) == (F, code)


def test_cancel(executor: BatchSchedulerExecutor) -> None:
    held = "slurm.hold" if isinstance(executor, SlurmJobExecutor) else "sge.h"
    running, queued = a_job("trap '' TERM; sleep 60"), a_job("sleep 60", attributes=JobAttributes(
        timedelta(minutes=1), custom_attributes={held: True}))
    executor.submit(running)
    executor.submit(queued)
    assert running.wait(timedelta(seconds=30), A) is not None
    running.cancel()
    queued.cancel()
    assert [final(job).state for job in (running, queued)] == [X, X]
    assert "start_time" in (running.status.metadata or {}) and "start_time" not in (queued.status.metadata or {})


def test_time_limit(executor: BatchSchedulerExecutor) -> None:
    if isinstance(executor, SlurmJobExecutor):
        pytest.skip("Slurm's shortest limit is a minute, and it is kept up to 30 s late")
    job = a_job("sleep 60", attributes=JobAttributes(timedelta(seconds=3)))
    executor.submit(job)
    assert final(job).state is F and (job.status.metadata or {})["reason"] == "timeout"


def test_refused(executor: BatchSchedulerExecutor) -> None:
    job = a_job("true", attributes=JobAttributes(queue_name="nosuch"))
    with pytest.raises(SubmitException, match=r"partition|queue") as raised:
        executor.submit(job)
    assert not raised.value.transient and not any(executor.work_directory.iterdir())


def test_several_processes(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    attributes = JobAttributes(timedelta(minutes=1), custom_attributes={"sge.pe": "smp"})
    nodes = 2 if isinstance(executor, SlurmJobExecutor) else 1
    job = Job(JobSpec("/bin/bash", ["-c", "wc -l <$PSIJ_NODEFILE; sort -u $PSIJ_NODEFILE | wc -l"], launcher="single",
                      stdout_path=tmp_path / "o", attributes=attributes, resources=ResourceSpecV1(
                          node_count=nodes, processes_per_node=4 // nodes, memory=200 << 20)))
    executor.submit(job)
    assert final(job).exit_code == 0
    assert (tmp_path / "o").read_text().split() == ["4", str(nodes)]
    assert (job.status.metadata or {})["processors"] == 4


def test_multiple_launcher(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    attributes = JobAttributes(timedelta(minutes=1), custom_attributes={"sge.pe": "smp"})
    job = Job(JobSpec("/bin/echo", ["x"], launcher="multiple", stdout_path=tmp_path / "o", attributes=attributes,
                      resources=ResourceSpecV1(process_count=3)))
    executor.submit(job)
    assert final(job).exit_code == 0 and (tmp_path / "o").read_text() == "x\nx\nx\n"


@pytest.mark.parametrize("inherit", [True, False])
def test_srun(executor: BatchSchedulerExecutor, tmp_path: Path, inherit: bool) -> None:
    if not isinstance(executor, SlurmJobExecutor):
        pytest.skip("srun is Slurm's")
    job = Job(JobSpec("/bin/bash", ["-c", 'echo "$V $SLURM_PROCID"; exit $((SLURM_PROCID == 3 ? 7 : 0))'],
                      launcher="srun", stdout_path=tmp_path / "o", environment={"V": "a  b"},
                      inherit_environment=inherit,
                      attributes=JobAttributes(timedelta(minutes=1)),
                      resources=ResourceSpecV1(node_count=2, processes_per_node=2, cpu_cores_per_process=2)))
    executor.submit(job)
    assert final(job).exit_code == 7
    assert sorted((tmp_path / "o").read_text().splitlines()) == [f"a  b {rank}" for rank in range(4)]


def test_hostile_strings(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    """Arguments, variables, directory and name: exactly what was said, or InvalidJobException."""
    show = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, [" \
           "*sys.argv[1:], *map(os.environ.get, ('V', 'SLURM_JOB_NAME', 'JOB_NAME'), ('', '', ''))])))"
    running = {}
    for number, value in enumerate(HOSTILE):
        folder = tmp_path / f"{number}{value[:40].replace('/', '_')}"
        folder.mkdir()
        job = Job(JobSpec(sys.executable, ["-c", show, value], directory=folder, stdout_path="out", name=value,
                          environment={"V": value}, attributes=JobAttributes(timedelta(minutes=1))))
        try:
            executor.submit(job)
        except InvalidJobException as e:
            assert "name" in e.message
            assert job.spec is not None
            job.spec.name = "plain"
            job = Job(job.spec)
            executor.submit(job)
        running[value] = (job, folder)
    for value, (job, folder) in running.items():
        assert final(job).state is C, value
        argument, variable, slurm_name, sge_name = (folder / "out").read_bytes().split(b"\0")
        assert (argument, variable) == (os.fsencode(value), os.fsencode(value))
        assert job.spec is not None and os.fsencode(job.spec.name or "") in (slurm_name, sge_name)


def test_environment(executor: BatchSchedulerExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "a,b=c \"d\"\ne")
    jobs = [Job(JobSpec("/usr/bin/env", ["-0"], stdout_path=tmp_path / str(inherit), inherit_environment=inherit,
                        environment={"B": "${MINE}!", "C": "${B}${D}"},
                        attributes=JobAttributes(timedelta(minutes=1)))) for inherit in (True, False)]
    for job in jobs:
        executor.submit(job)
    seen = []
    for job, inherit in zip(jobs, (True, False), strict=True):
        assert final(job).exit_code == 0
        words = (tmp_path / str(inherit)).read_text().split("\0")[:-1]
        seen.append(dict(word.split("=", 1) for word in words))
    mine = os.environ["MINE"]
    assert (seen[0]["MINE"], seen[0]["B"], seen[0]["C"]) == (mine, f"{mine}!", f"{mine}!")
    assert (seen[1]["B"], seen[1]["C"]) == ("!", "!") and "MINE" not in seen[1] and "PATH" not in seen[1]


def test_attach(executor: BatchSchedulerExecutor) -> None:
    first, second, gone = a_job("sleep 2; exit 6"), Job(), Job()
    executor.submit(first)
    executor.attach(second, first.native_id or "")
    executor.config.lost_after = 3
    executor.attach(gone, "99999")
    assert (final(second).exit_code, final(first).exit_code) == (6, 6)
    assert (final(gone).state, (gone.status.metadata or {})["reason"]) == (F, "lost")
    late = Job()
    executor.attach(late, first.native_id or "")
    assert final(late).state is F and late.status.exit_code == 6


def test_attach_to_elements_of_an_array(executor: BatchSchedulerExecutor) -> None:
    if not isinstance(executor, SlurmJobExecutor):
        pytest.skip("Grid Engine's tasks have no ids of their own")
    made = subprocess.run(["sbatch", "--parsable", "--array=3-4", "-o/dev/null", "--wrap=exit $SLURM_ARRAY_TASK_ID"],
                          stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    jobs = [Job(), Job()]
    for job, index in zip(jobs, (3, 4), strict=True):
        executor.attach(job, f"{made}_{index}")
    assert [final(job).exit_code for job in jobs] == [3, 4]


def test_found_by_tag(executor: BatchSchedulerExecutor) -> None:
    """The search after a submission without an answer finds jobs that wait, run and have ended."""
    held = "slurm.hold" if isinstance(executor, SlurmJobExecutor) else "sge.h"
    waits = a_job("true", attributes=JobAttributes(timedelta(minutes=1), custom_attributes={held: True}))
    executor.config.keep_files = True
    for job in (waits, done := a_job("true")):
        executor.submit(job)
    final(done)
    assert executor._look_up([waits.id, done.id, "another"]) == (
        {waits.id: [waits.native_id], done.id: [done.native_id]}, True)
    waits.cancel()
    final(waits)


def test_news_come_at_once(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    """Starts and ends are told within two seconds, though the queue is asked every thirty."""
    executor.config.queue_polling_interval = executor.config.initial_queue_polling_delay = 30
    told: dict[tuple[str, JobState], float] = {}

    def note(job: Job, status: JobStatus) -> None:
        told[job.id, status.state] = time.time()

    executor.set_job_status_callback(note)
    stamp = "date +%s.%N >$0.start; sleep $1; date +%s.%N >$0.end"
    jobs = [Job(JobSpec("/bin/bash", ["-c", stamp, str(tmp_path / str(n)), str(1.5 + n * 0.4)],
                        attributes=JobAttributes(timedelta(minutes=1)))) for n in range(10)]
    for job in jobs:
        executor.submit(job)
    assert [final(job).state for job in jobs] == [C] * 10
    time.sleep(0.3)
    for state, what in ((A, "start"), (C, "end")):
        late = sorted(told[job.id, state] - float((tmp_path / f"{n}.{what}").read_text()) for n, job in enumerate(jobs))
        print(f"{executor.name}: {what} told after {late[5]:.2f} s (median), {late[9]:.2f} s (the latest of ten)")
        assert late[5] < 2, late


# --- truths that the recorded clusters teach -----------------------------------------------------------------------

def facts(job: Job) -> tuple[JobState, int | None, object, object]:
    metadata = final(job).metadata or {}
    return job.status.state, job.status.exit_code, metadata.get("reason"), metadata.get("signal")


def told_by(*words: str) -> None:
    """Run a command of the lab."""
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def only(executor: BatchSchedulerExecutor, name: str) -> None:
    if executor.name != name:
        pytest.skip(f"a truth of {name} alone")


def attributes(**custom: object) -> JobAttributes:
    return JobAttributes(timedelta(minutes=1), custom_attributes={
        key.replace("__", ".", 1).replace("_", "-"): value for key, value in custom.items()})


def test_exit_code_that_accounting_has_wrong(executor: BatchSchedulerExecutor) -> None:
    """sacct says 72 for 200, also of a job that we did not make and that has no exit file."""
    only(executor, "slurm")
    native_ids = [subprocess.run(["sbatch", "--parsable", "-o/dev/null", f"--wrap=exit {code}"], stdout=subprocess.PIPE,
                                 check=True, text=True).stdout.strip() for code in (200, 139, 72, 0)]
    jobs = [Job() for _ in native_ids]
    for job, native_id in zip(jobs, native_ids, strict=True):
        executor.attach(job, native_id)
    assert [facts(job) for job in jobs] == [(F, 200, None, None), (F, 139, None, None), (F, 72, None, None),
                                            (C, 0, None, None)]
    assert (jobs[0].status.metadata or {})["sources"]["exit_code"] == "scontrol"


def test_exit_code_and_signal_are_two_facts(executor: BatchSchedulerExecutor) -> None:
    """E58."""
    killed, returned = a_job("kill -9 0"), a_job("exit 137")
    for job in (killed, returned):
        executor.submit(job)
    assert facts(killed) == (F, 137, "signal", 9)
    assert facts(returned) == (F, 137, None, None)


def test_put_back_into_the_queue(executor: BatchSchedulerExecutor) -> None:
    """E26: every attempt is shown, and what they used together."""
    seen: list[JobState] = []
    job = a_job("sleep 4; exit 5", attributes=attributes(slurm__requeue=True, sge__r="y"))
    job.set_job_status_callback(lambda _, status: seen.append(status.state))
    executor.submit(job)
    assert job.wait(timedelta(seconds=30), A) is not None
    time.sleep(2)
    told_by(*(("scontrol", "requeue") if executor.name == "slurm" else ("qmod", "-rj")), job.native_id or "")
    assert facts(job) == (F, 5, None, None)
    time.sleep(0.2)
    metadata = job.status.metadata or {}
    first, second = metadata["attempts"]
    assert seen == [Q, A, F] and metadata["starts"] == 2
    assert first["start_time"] < second["start_time"] == metadata["start_time"]
    if executor.name == "slurm":        # Grid Engine's record of what was put back has no times
        assert first["end_time"] <= second["start_time"]
        assert metadata["wall_seconds"] == first["wall_seconds"] + second["wall_seconds"]


def test_canceled_before_it_ran(executor: BatchSchedulerExecutor) -> None:
    """There is no usage, although a start is recorded."""
    job = a_job("true", attributes=attributes(slurm__hold=True, sge__h=True))
    executor.submit(job)
    time.sleep(1)
    job.cancel()
    assert facts(job) == (X, None, None, None)
    assert not {"start_time", "wall_seconds", "cpu_seconds", "nodes", "processors"} & (job.status.metadata or {}).keys()


def test_ends_that_slurm_tells_apart(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    only(executor, "slurm")
    alone: dict[str, object] = {"slurm__no_requeue": True, "slurm__exclusive": True}
    late = a_job("sleep 200", attributes=attributes())
    stuck = a_job("true", attributes=attributes(slurm__begin="now+10", slurm__deadline="now+65"))
    greedy = a_job("exec tail /dev/zero", attributes=attributes(slurm__mem="50M"))
    weak = a_job("sleep 100", attributes=attributes(slurm__nodelist="node2", **alone))
    unlucky = a_job("sleep 100", attributes=attributes(slurm__nodelist="node3", **alone))
    for job in (weak, unlucky, late, stuck, greedy):
        executor.submit(job)
    for job in (weak, unlucky):
        assert job.wait(timedelta(seconds=60), A) is not None
    strong = a_job("true", attributes=attributes(slurm__qos="high", slurm__nodelist="node2", slurm__exclusive=True))
    executor.submit(strong)
    told_by("scontrol", "update", "nodename=node3", "state=down", "reason=test")
    try:
        assert facts(unlucky) == (F, None, "node-failure", None)
    finally:
        subprocess.run(["scontrol", "update", "nodename=node3", "state=idle"], check=False, stderr=subprocess.DEVNULL)
    assert facts(weak) == (F, None, "preempted", None) and facts(strong)[0] is C
    assert facts(greedy)[::2] == (F, "memory")
    assert facts(stuck) == (F, None, "deadline", None) and "start_time" not in (stuck.status.metadata or {})
    assert ended(late, 120).state is F and facts(late)[2] == "timeout"
    messages = [job.status.message or "" for job in (unlucky, weak, greedy, stuck, late)]
    print(messages)
    assert len(set(messages)) == 5
    # the same in documents; the word on memory was in the output of the script, which is gone
    said = status_messages("slurm", tmp_path, unlucky, weak, greedy, stuck, late)
    assert [text.partition(":")[0] for text in said] == ["node-failure", "preempted", "signal", "deadline", "timeout"]


def status_messages(name: str, folder: Path, *jobs: Job) -> list[str]:
    """StatusMessage of documents about these jobs, from a journal that knows nothing else of them."""
    environment = {**os.environ, "SSSJOB_JOURNAL": str(folder / "journal.db"), "HOME": str(folder)}

    def sssjob(*words: str) -> str:
        made = subprocess.run([sys.executable, "-m", "sssjob", *words], env=environment, capture_output=True, text=True,
                              timeout=100, check=False)
        assert "Traceback" not in made.stderr
        return made.stdout

    ids = sssjob("attach", "--executor", name, *(job.native_id or "" for job in jobs)).split()
    sssjob("wait", "--timeout", "60", *ids)
    documents = [read_document(sssjob("status", one).encode()) for one in ids]
    return [str(job.value("StatusMessage")) for document in documents for job, _ in document.jobs()]


def test_deleted_by_somebody(executor: BatchSchedulerExecutor) -> None:
    """Grid Engine's record is that of any kill -9: CANCELED where we canceled it or the letter d was seen."""
    only(executor, "sge")
    ours, seen, unseen, killed = (a_job("sleep 60") for _ in range(4))
    for job in (ours, seen, unseen, killed):
        executor.submit(job)
    for job in (ours, seen, unseen, killed):
        assert job.wait(timedelta(seconds=30), A) is not None
    ours.cancel()
    assert final(ours).state is X
    shown, deleting = executor._ask_queue, [DELETING.format(seen.native_id)]

    def look(command: list[str], last_answer: Any) -> Any:        # whether d is seen is a matter of luck; not here
        rows = dict(shown(command, last_answer))
        for text in deleting:
            rows |= executor.parse_status_output(0, text)
        return {key: None if status is not None and key in (unseen.native_id, killed.native_id)
                and (status.metadata or {}).get("phase") == "CANCELING" else status for key, status in rows.items()}

    executor._ask_queue = look  # type: ignore[method-assign]
    time.sleep(3.5)
    deleting.clear()
    told_by("qdel", seen.native_id or "", unseen.native_id or "")
    assert facts(unseen) == (F, 137, "signal", 9)
    assert final(seen).state is X
    told_by("qdel", killed.native_id or "")
    assert facts(killed)[::3] == (F, 9)


def test_a_job_that_cannot_be_started(executor: BatchSchedulerExecutor) -> None:
    """Grid Engine keeps it, in the state Eqw; accounting has a record of it although it is not over."""
    only(executor, "sge")
    words = ["qsub", "-terse", "-b", "y", "-o", "/dev/null", "-j", "y", "-wd", "/no/such", "/bin/true"]
    native_id = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    job = Job()
    executor.attach(job, native_id)
    until = time.monotonic() + 60
    while (job.status.metadata or {}).get("phase") != "ERROR":
        assert time.monotonic() < until and not job.status.final, job.status
        time.sleep(0.2)
    assert (job.status.metadata or {})["native_state"] == "Eqw"
    assert job.status.state in (Q, A)       # the try was one to run, if it was seen
    assert "cannot start it" in (job.status.message or "")
    job.cancel()
    assert facts(job) == (X, None, None, None)


DELETING = """<job_info><queue_info><job_list state="running"><JB_job_number>{}</JB_job_number><state>dr</state>
<slots>1</slots></job_list></queue_info></job_info>"""


def test_staging(executor: BatchSchedulerExecutor, tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "given").write_text("given")
    seen: list[str] = []
    job = a_job("cat in in >out; echo out; echo err >&2", directory=tmp_path / "job", stdout_path="said",
                stderr_path="said", cleanup={"in"}, stage_in={StageIn(tmp_path / "given", "in")},
                stage_out={StageOut("out", tmp_path / "got")})
    job.set_job_status_callback(lambda _, status: seen.append(status.state.name))
    executor.submit(job)
    assert final(job).state is C
    time.sleep(0.2)
    assert seen == ["QUEUED", "STAGE_IN", "ACTIVE", "STAGE_OUT", "CLEANUP", "COMPLETED"]
    assert (tmp_path / "got").read_text() == "givengiven"
    assert {path.name for path in (tmp_path / "job").iterdir()} == {"out", "said"}
    assert (tmp_path / "job/said").read_text() == "out\nerr\n"


def test_many(executor: BatchSchedulerExecutor) -> None:
    jobs = [a_job(f"exit {number % 3}") for number in range(40)]
    for job in jobs:
        executor.submit(job)
    assert [final(job).exit_code for job in jobs] == [number % 3 for number in range(40)]
