"""Executors as providers: jobs on this machine, submit scripts, what pilots say, the commands."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from psij import InvalidJobException, Job, JobAttributes, JobExecutor, JobExecutorConfig, JobSpec, JobState, JobStatus
from psij import ResourceSpecV1 as Resources
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig
from psij.executors.batch.slurm import SlurmJobExecutor
from psij.surroundings import Told
from sssjob.accounting import Charge, charge, read_rates
from sssjob.cli import main
from sssjob.document.model import Delivered
from sssjob.document.model import Job as Document
from sssjob.errors import UsageError
from sssjob.mjf.features import Features
from sssjob.mjf.keys import KEYS
from sssjob.mjf.provider import ENVIRONMENT, Inside, Provider, from_environment
from sssjob.mjf.reader import Reader
from sssjob.mjf.script import EXPORTED, GUARD
from sssjob.mjf.status import PilotStatus
from sssjob.run import facts
from sssjob.run.seen import Seen
from tests.fakes import slurm
from tests.gate import until_there
from tests.psij.batch_support import stand_in

SOON = timedelta(seconds=60)
SHOW = ('cd "$MACHINEFEATURES/.." && for f in */*; do [ ! -f "$f" ] || echo "$f=$(cat "$f")"; done; '
        'ls -ld . */ | cut -c1-10; echo "$JOBFEATURES" "$JOBSTATUS"')


def executor(name: str, tmp_path: Path, provider: Provider, **options: Any) -> JobExecutor:
    config = JobExecutorConfig(work_directory=tmp_path / "work")
    config.surroundings = provider
    return JobExecutor.get_instance(name, config=config, **options)


def job(script: str, tmp_path: Path, limit: float | None = 90, custom: Mapping[str, object] | None = None,
        **members: Any) -> Job:
    attributes = JobAttributes(limit and timedelta(seconds=limit), custom_attributes=dict(custom or {}))    # type: ignore[arg-type]
    return Job(JobSpec("/bin/bash", ["-c", script], stdout_path=tmp_path / "out", stderr_path=tmp_path / "err",
                       attributes=attributes, **members))


def ended(one: Job) -> tuple[JobStatus, dict[str, Any]]:
    status = one.wait(SOON)
    assert status is not None
    return status, status.metadata or {}


def shown(tmp_path: Path) -> tuple[dict[str, str], list[str]]:
    """The keys that a job has printed, and what it printed after them."""
    lines = (tmp_path / "out").read_text().splitlines()
    pairs = [line.split("=", 1) for line in lines if "=" in line]
    return dict(pairs), [line for line in lines if "=" not in line]


@pytest.fixture(autouse=True)
def nothing_of_the_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in EXPORTED:
        monkeypatch.delenv(name, raising=False)


def test_a_job_on_this_machine(tmp_path: Path) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    provider = Provider({"hs06": 100, "total_cpu": 8}, root=str(root), draft=True)
    one = job(SHOW, tmp_path, custom={"mjf.max_swap_bytes": "4096", "mjf.scratch_limit_bytes": 3 * 10**9},
              inherit_environment=False, environment={"PATH": os.environ["PATH"]},
              resources=Resources(memory=5 * 10**6))
    before = int(time.time())
    executor("local", tmp_path, provider).submit(one)
    status, metadata = ended(one)
    keys, rest = shown(tmp_path)
    assert before <= int(keys.pop("job/jobstart_secs")) <= time.time()
    assert keys == {
        "job/allocated_cpu": "1", "job/allocated_CPU": "1", "job/job_id": one.id, "job/wall_limit_secs": "90",
        "job/max_rss_bytes": "5000000", "job/mem_limit_MB": "5", "job/max_swap_bytes": "4096",
        "job/scratch_limit_bytes": "3000000000", "job/disk_limit_GB": "3", "job/hs06_job": "12.5",
        "machine/total_cpu": "8", "machine/hs06": "100"}
    assert rest[:4] == ["drwxr-xr-x"] * 4 and rest[4].startswith(f"{root}/mjf-{one.id}-")
    assert status.exit_code == 0 and metadata["hs06_job"] == 12.5 and list(root.iterdir()) == []


def test_what_the_site_has_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBFEATURES", "/site/job")
    script = 'echo "${MACHINEFEATURES-none}" "$JOBFEATURES"'
    one, two = job(script, tmp_path), job(script, tmp_path)
    executor("local", tmp_path, Provider(root=str(tmp_path))).submit(one)
    ended(one)
    assert (tmp_path / "out").read_text() == "none /site/job\n"
    executor("local", tmp_path, Provider(root=str(tmp_path), override=True)).submit(two)
    ended(two)
    assert str(tmp_path) in (tmp_path / "out").read_text().split()[1]


@pytest.mark.parametrize(("custom", "expected"), [
    ({"mjf.nope": 1}, "is no key"), ({"mjf.used_CPU": 1}, "is no key"), ({"mjf.hs06": "-1"}, "mjf.hs06"),
    ({"mjf.wall_limit_secs": 0}, "mjf.wall_limit_secs"), ({"mjf.job_id": "a b"}, "mjf.job_id"),
    ({"mjf.max_rss_bytes": [1]}, "mjf.max_rss_bytes"), ({"mjf.jobstart_secs": "4e0c2b6a-uuid"}, "mjf.jobstart_secs")])
def test_wrong_keys_are_refused(tmp_path: Path, custom: dict[str, object], expected: str) -> None:
    one = job("true", tmp_path, custom=custom)
    with pytest.raises(InvalidJobException, match=expected):
        executor("local", tmp_path, Provider(root=str(tmp_path))).submit(one)
    assert one.status.state is JobState.NEW and list(tmp_path.glob("mjf-*")) == []


def test_a_job_runs_without_where_there_can_be_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = job('echo "${MACHINEFEATURES-none}"', tmp_path)
    executor("local", tmp_path, Provider(root=str(tmp_path / "none"))).submit(one)
    assert ended(one)[0].exit_code == 0 and (tmp_path / "out").read_text() == "none\n"
    assert "has no surroundings" in caplog.text


def test_directories_go_when_a_job_cannot_be_started(tmp_path: Path) -> None:
    one = Job(JobSpec("/no/such"))
    executor("local", tmp_path, Provider(root=str(tmp_path))).submit(one)
    assert ended(one)[0].state is JobState.FAILED and list(tmp_path.glob("mjf-*")) == []


def test_what_a_pilot_says(tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = (f'echo 4 >"$JOBSTATUS/used_CPU"; {until_there(go)}; '
              'echo 1 >"$JOBSTATUS/used_CPU"; exit 3')
    one = job(script, tmp_path)
    times = iter(range(1000, 100_000, 100))
    provider = Provider(root=str(tmp_path), poll_s=0.02, clock=lambda: float(next(times)))
    executor("local", tmp_path, provider).submit(one)
    end = time.monotonic() + 60
    while next(times) < 3000:       # until it was looked at some times
        assert time.monotonic() < end
        time.sleep(0.02)
    go.touch()
    status, metadata = ended(one)
    pilot = metadata["pilot"]
    assert (status.exit_code, pilot["cores_max"]) == (3, 4.0) and 1 <= pilot["cores_mean"] <= 4
    end = time.monotonic() + 60
    while any(thread.name == "pilots" for thread in threading.enumerate()):     # no jobs, no thread
        assert time.monotonic() < end
        time.sleep(0.02)


def test_who_observes_a_pilot_is_told_of_every_look(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[Job, Any, float | None]] = []

    def observe(job: Job, features: Features) -> None:
        told.append((job, features.value("used_CPU"), features.figures().kill_waste))
        raise ValueError("not today")

    one = Job(JobSpec("true"))
    inside = Provider(root=str(tmp_path), clock=lambda: 1000.0, observe=observe).enter(one, 4, "7")
    assert isinstance(inside, Inside)
    inside.look()                       # nothing was said yet
    now = int(time.time())
    PilotStatus(inside.variables["JOBSTATUS"]).update(used_CPU=3, last_job_start=now + 3600, add_uncom_time=10)
    inside.look()
    inside.leave()
    assert [(job, used) for job, used, _ in told] == [(one, 3)] * 2
    assert all(waste is not None and -10790 <= waste < 10 for *_, waste in told)
    assert list(tmp_path.iterdir()) == [] and len(caplog.records) == 2


def run_lines(text: str, tmp_path: Path, **environment: str) -> str:
    process = subprocess.run(["/bin/bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True,
                             env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), **environment})
    assert process.stderr == ""
    return process.stdout


TOLD = Told("_x=7", {"native_id": ("$ID", 1), "processors": ("${CPUS:-}", 1), "wall_seconds": ("$_x", 1),
                     "node_processors": ("$(echo 8)", 1), "memory_bytes": ("${MIB:-}", 1 << 20)})


def test_lines_of_a_submit_script(tmp_path: Path) -> None:
    one = job("true", tmp_path, custom={"mjf.max_rss_bytes": 5, "mjf.max_swap_bytes": 6})
    around = Provider({"hs06": 160, "grace_secs_job": 60}, root=str(tmp_path)).around(one, TOLD)
    text = f"_psij_files={tmp_path}/4711\n{around.before}\n({SHOW}); echo 3 >$JOBSTATUS/used_CPU\n{around.after}\n"
    (tmp_path / "out").write_text(run_lines(text, tmp_path, ID="47", CPUS="4"))
    keys, _ = shown(tmp_path)
    assert int(keys.pop("job/jobstart_secs")) > 0 and int(keys.pop("job/scratch_limit_bytes")) > 0
    assert keys == {"job/job_id": "47", "job/allocated_cpu": "4", "job/wall_limit_secs": "7", "machine/total_cpu": "8",
                    "job/max_rss_bytes": "5", "job/max_swap_bytes": "6", "job/grace_secs_job": "60",
                    "machine/hs06": "160", "job/hs06_job": "80"}
    assert list(tmp_path.glob("mjf-*")) == []
    left = (tmp_path / "4711.left").read_text()
    assert Provider().read(one, left) == {"hs06_job": 80.0, "pilot": {"cores_mean": 3.0, "cores_max": 3.0}}


@pytest.mark.parametrize(("text", "expected"), [
    ("", {}), ("garbage", {}), ("now=x\nused_CPU=1", {}), ("now=5\nused_CPU=-1", {}), ("used_CPU=3", {}),
    ("nope=1\nnow=5\nused_CPU= 3 \nadd_uncom_time=4\nlast_job_start=3", {
        "pilot": {"cores_mean": 3.0, "cores_max": 3.0, "kill_waste": 10.0}}),
    ("hs06_job=1e999\nhs06_job=7", {"hs06_job": 7.0})])
def test_odd_things_that_are_left(text: str, expected: Mapping[str, Any], tmp_path: Path) -> None:
    assert Provider().read(job("true", tmp_path), text) == expected


def test_a_script_that_is_ended_leaves_nothing(tmp_path: Path) -> None:
    around = Provider(root=str(tmp_path)).around(job("true", tmp_path), TOLD)
    run_lines(f"{around.before}\nexit 0\n", tmp_path, ID="1")
    assert list(tmp_path.glob("mjf-*")) == []


def test_every_node_has_its_own(tmp_path: Path) -> None:
    # The other node is another folder for what lies below /tmp here, and another name.
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uname").write_text('#!/bin/sh\necho "${NODE:-first}"\n')
    (tmp_path / "bin" / "uname").chmod(0o755)
    # A launcher that takes the words apart, keeps no variable, and comes to that node three times.
    told = Told(TOLD.lines, TOLD.words, f'''for _ in 1 2 3; do
        env -i PATH="$PATH" ID=9 NODE=second CPUS=2 sh -c "${{*%$4}} {other}/tree" & done; wait''')
    spread = job("true", tmp_path, resources=Resources(node_count=2))
    around = Provider(root=str(tmp_path)).around(spread, told)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    program = shlex.join([*GUARD, "sh", "-c", 'echo "${JOBFEATURES-none}"'])
    text = (f"_psij_files={tmp_path}/4711\n{around.before}\n"
            f"cat $JOBFEATURES/allocated_cpu {other}/tree/job/allocated_cpu {other}/tree/job/job_id\n"
            f"{program} | grep -c mjf-\nNODE=third {program}\n{around.after}")
    assert run_lines(text, tmp_path, ID="9", CPUS="4", PATH=path) == "4\n2\n9\n1\nnone\n"
    assert list(tmp_path.glob("mjf-*")) == [] and not (other / "tree").exists()
    assert list(tmp_path.glob("4711*")) == []
    alone = Provider().around(job("true", tmp_path), told)
    assert "_mjf_each=" not in alone.before


SRUN = """#!/bin/bash
# Each component on a node of its own.
run() {
    local node=node0 words=("$@")
    while [[ ${words[0]} == --* ]]; do
        [[ ${words[0]} != --het-group=* ]] || node=node${words[0]#*=}
        words=("${words[@]:1}")
    done
    SLURMD_NODENAME=$node "${words[@]}"
}
words=()
for word; do
    if [[ $word == : ]]; then run "${words[@]}"; words=(); else words+=("$word"); fi
done
run "${words[@]}"
"""


@pytest.mark.parametrize("inherit", [True, False])
def test_the_parts_of_a_heterogeneous_job(tmp_path: Path, inherit: bool) -> None:
    """Parts saw the first node's directories as their own, or none at all where they inherit nothing."""
    (tmp_path / "bin").mkdir()
    for name, text in (("srun", SRUN), ("uname", '#!/bin/sh\necho "${SLURMD_NODENAME:-node0}"\n')):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    executor = SlurmJobExecutor(config=BatchSchedulerExecutorConfig(work_directory=tmp_path / "work"))
    executor.config.surroundings = Provider(root=str(tmp_path))
    texts: list[str] = []
    executor._run_submit = lambda command: texts.append(Path(command[-1]).read_text()) or "12\n"  # type: ignore[method-assign, func-returns-value]
    executor._submitted = lambda *_: None           # type: ignore[method-assign]
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    (tmp_path / "show").write_text(f'echo "$(cat "${{JOBFEATURES-none}}/job_id" 2>&1)" >>{tmp_path}/said')
    spec = JobSpec("/bin/sh", [str(tmp_path / "show")], inherit_environment=inherit, environment={"PATH": path})
    executor.submit_together([Job(spec), Job(spec)])
    subprocess.run(["/bin/bash", "-c", texts[0]], cwd=tmp_path, check=True, capture_output=True, timeout=60, env={
        "PATH": path, "SLURM_JOB_ID": "12", "SLURM_HET_SIZE": "2", "SLURM_JOB_NUM_NODES": "1", "LC_ALL": "C"})
    one, two = sorted((tmp_path / "said").read_text().splitlines())
    assert one == "12" and two.startswith("cat: none/job_id: No such file")     # the nodes share a disk here
    assert list(tmp_path.glob("mjf-*")) == [] and list((tmp_path / "work").rglob("*.mjf")) == []


def test_a_batch_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "scratch"
    root.mkdir()
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch) as stand:
        stand.executor.config.surroundings = Provider({"hs06": 100}, root=str(root))
        one = job(f'{SHOW}; echo 2 >"$JOBSTATUS/used_CPU"', tmp_path, inherit_environment=False,
                  environment={"PATH": os.environ["PATH"]})
        stand.executor.submit(one)
        status, metadata = ended(one)
        keys, rest = shown(tmp_path)
        assert status.exit_code == 0 and keys["job/job_id"] == one.native_id and keys["machine/hs06"] == "100"
        assert rest[-1].startswith(f"{root}/mjf-") and metadata["pilot"]["cores_max"] == 2.0
        assert list(root.iterdir()) == [] and stand.files() == []


def test_a_batch_job_runs_without_where_there_can_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                          caplog: pytest.LogCaptureFixture) -> None:
    with stand_in(slurm, SlurmJobExecutor, tmp_path, monkeypatch) as stand:
        stand.executor.config.surroundings = Provider({"hs06": "none"})
        one = job('echo "${MACHINEFEATURES-none}"', tmp_path)
        stand.executor.submit(one)
        assert ended(one)[0].exit_code == 0 and (tmp_path / "out").read_text() == "none\n"
        with pytest.raises(InvalidJobException, match="is no key"):
            stand.executor.submit(job("true", tmp_path, custom={"mjf.nope": 1}))
    assert "has no surroundings" in caplog.text


def test_settings_keep_the_surroundings() -> None:
    config = JobExecutorConfig()
    config.surroundings = Provider()
    assert BatchSchedulerExecutorConfig._from_config(config).surroundings is config.surroundings
    assert JobExecutorConfig().surroundings is None


def test_every_amount_has_a_key() -> None:
    from sssjob.mjf.provider import _TOLD

    assert set(_TOLD.values()) <= set(KEYS)
    for name in ("slurm", "sge", "pbs", "pbs_classic", "lsf", "htcondor", "cobalt", "flux", "nqsv"):
        executor = JobExecutor.get_instance(name)
        assert set(executor._told(JobSpec("x")).words) <= set(_TOLD)        # type: ignore[attr-defined]


# Documents

TEXT = """<Job><Id>a</Id><Executable>/bin/sh</Executable>
<Arguments>-c 'cat "$JOBFEATURES/wall_limit_secs" "$JOBFEATURES/hs06_job"; echo 1 >"$JOBSTATUS/used_CPU"'</Arguments>
<OutputFile>{out}</OutputFile><ErrorFile>{out}.err</ErrorFile><Duration>77</Duration><Environment export="true"/>
<Extension type="MJF" name="hs06_job">12.5</Extension></Job>"""


@pytest.mark.parametrize("name", ["local", "fluxexec"])
def test_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                    name: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "a.xml").write_text(TEXT.format(out=tmp_path / "out"))
    assert main(["run", str(tmp_path / "a.xml"), "--executor", name, "--mjf-root", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert (tmp_path / "out").read_text() == "77\n12.5\n"
    assert '<Extension name="hs06_job" type="MJF">12.5</Extension>' in said
    assert '<Processors metric="Average">1</Processors>' in said
    assert ENVIRONMENT not in os.environ and list(tmp_path.glob("mjf-*")) == []


def test_a_document_with_keys_that_cannot_be_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Extensions of type MJF counted as honoured whatever they said."""
    wrong = ('<Extension type="MJF" name="hs_06">1</Extension><Extension type="MJF" name="used_CPU">1</Extension>'
             '<Extension type="MJF" name="total_cpu">many</Extension></Job>')
    (tmp_path / "a.xml").write_text(TEXT.format(out=tmp_path / "out").replace("</Job>", wrong))
    assert main(["run", str(tmp_path / "a.xml"), "--executor", "local", "--mjf-root", str(tmp_path), "--json"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(f["rule"], f["message"]) for f in found if f.get("rule") == "SSS602"] == [
        ("SSS602", "Extension hs_06 of type MJF: is no key of Machine/Job Features"),
        ("SSS602", "Extension used_CPU of type MJF: is said by a pilot, not by a job"),
        ("SSS602", "Extension total_cpu of type MJF: 'many' is not a non-negative integer")]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_folder_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """It was only logged, and the job ran without. On a node of a resource manager nobody can look."""
    (tmp_path / "a.xml").write_text(TEXT.format(out=tmp_path / "out"))
    (tmp_path / "file").touch()
    words = [command, str(tmp_path / "a.xml"), "--executor"]
    for root in (tmp_path / "none", tmp_path / "file"):
        assert main([*words, "local", "--mjf-root", str(root)]) == 3
        assert "--mjf-root: no such directory on this machine" in capsys.readouterr().err
    assert main([*words, "local", "--mjf-root", "scratch"]) == 2
    assert "'scratch' is no absolute path" in capsys.readouterr().err
    assert main([*words, "nothing", "--mjf-root", str(tmp_path / "none")]) == 2     # it came as far as the executor
    assert not (tmp_path / "out").exists() and ENVIRONMENT not in os.environ


def test_the_variable() -> None:
    assert from_environment({}) is None
    assert from_environment({ENVIRONMENT: ""}) == Provider()
    assert from_environment({ENVIRONMENT: "/scratch"}) == Provider(root="/scratch")
    with pytest.raises(UsageError, match="no absolute path"):
        from_environment({ENVIRONMENT: "scratch"})


RATES = """name = "x"
version = "1"
[[rate]]
type = "VBR"
name = "Processors"
rate = 1
benchmark = "HS06"
[benchmark.HS06]
reference = 10
features = true
"""


def test_the_benchmark_feeds_the_charge(tmp_path: Path) -> None:
    # A machine of 100 HS06 and 4 processors, of which the job has 2: each is worth 2.5 of the reference's.
    one = job("sleep 0.1", tmp_path, resources=Resources(process_count=2))
    executor("local", tmp_path, Provider({"hs06": 100, "total_cpu": 4}, root=str(tmp_path))).submit(one)
    status, metadata = ended(one)
    assert metadata["hs06_job"] == 25.0 * metadata["processors"]
    status.metadata = {**metadata, "processors": 2, "hs06_job": 50.0, "wall_seconds": 30.0, "sources": {}}
    seen, document = Seen(), Document()
    seen.take(JobStatus(JobState.ACTIVE, 1000.0))
    seen.take(status)
    facts.record(document, [seen])
    delivered = document.delivered
    assert isinstance(delivered, Delivered)
    assert [p.text for p in delivered.all("Extension")] == ["50"]
    price = charge(document, read_rates(RATES))
    assert isinstance(price, Charge) and price.amount == 150          # 2 x 30 s x (50 / 2) / 10
    document.delivered.items = [i for i in delivered.items if i.tag != "Extension"]
    assert "no-benchmark" in str(charge(document, read_rates(RATES)))


def test_readers_see_what_is_announced(tmp_path: Path) -> None:
    # Dynamic keys change while the job runs, and never nearer than the grace.
    inside = Provider({"grace_secs_job": 60}, root=str(tmp_path)).enter(Job(JobSpec("true")), 1, "7")
    assert isinstance(inside, Inside)
    reader = Reader.from_environment(inside.variables)
    assert reader.read()["shutdowntime_job"].state == "absent"
    when = inside.directories.announce("shutdowntime_job", time.time() + 10)
    assert when >= time.time() + 55 and reader.read(force=True)["shutdowntime_job"].value == when
    inside.leave()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["iri", "arc"])
def test_executors_that_cannot_provide_say_so(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was said, and the job did not have them."""
    (tmp_path / "token").write_text("t")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "config.toml").write_text(f"[executors.{name}]\nfacility = 'http://127.0.0.1:1'\n"
                                          f"token_file = '{tmp_path}/token'\n"
                                          + ("resource = 'x'\n" if name == "iri" else ""))
    monkeypatch.setenv("SSSJOB_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "a.xml").write_text("<Job><Id>a</Id><Executable>/bin/true</Executable></Job>")
    words = ["submit", str(tmp_path / "a.xml"), "--executor", name, "--dry-run"]
    main([*words, "--mjf"])
    assert f"SSS602 warning Machine/Job Features: the executor {name} makes none" in capsys.readouterr().err
    main(words)
    assert "Machine/Job" not in capsys.readouterr().err
