"""What commands tell: one finding for many jobs once, why jobs ended badly, which name was meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sssjob.cli._together import together
from sssjob.findings import Finding
from sssjob.xml.reader import read_document

DOCUMENT = ("<JobGroup><Id>g</Id>{}" + "".join(f"<Job><Id>{n}</Id><Executable>/e</Executable></Job>" for n in range(3))
            + "</JobGroup>")
DEFAULTS = "<JobDefaults><Queue>q</Queue></JobDefaults>"


def finding(job: int, tail: str = "/Environment", line: int = 0, message: str = "it is absent") -> Finding:
    return Finding("SSS503", "info", "Environment", message, "approximated", "a.xml", line, 0,
                   f"/JobGroup/Job[{job}]{tail}")


@pytest.mark.parametrize(("defaults", "findings", "shown"), [
    (DEFAULTS, [finding(n) for n in (1, 2, 3)], [("/JobGroup/JobDefaults/Environment", "it is absent (3 jobs)")]),
    (DEFAULTS, [finding(n, line=7) for n in (1, 2, 3)],
     [("/JobGroup/JobDefaults/Environment", "it is absent (3 jobs)")]),
    (DEFAULTS, [finding(n, line=n) for n in (1, 2, 3)], [("/JobGroup/Job[1]/Environment", "it is absent (3 jobs)")]),
    ("", [finding(n) for n in (1, 2, 3)], [("/JobGroup/Job[1]/Environment", "it is absent (3 jobs)")]),
    (DEFAULTS, [finding(2), finding(3)], [("/JobGroup/Job[2]/Environment", "it is absent (2 jobs)")]),
    (DEFAULTS, [finding(2), finding(2, "/Queue")], [("/JobGroup/Job[2]/Environment", "it is absent"),
                                                    ("/JobGroup/Job[2]/Queue", "it is absent")]),
    (DEFAULTS, [finding(1), finding(2, message="other")], [("/JobGroup/Job[1]/Environment", "it is absent"),
                                                           ("/JobGroup/Job[2]/Environment", "other")]),
    (DEFAULTS, [finding(n, "", n, f"{n}: {stream} goes to job-{n}.{stream}") for stream in ("stdout", "stderr")
                for n in (1, 2, 3)], [("/JobGroup/Job[1]", "1: stdout goes to job-1.stdout (3 jobs)"),
                                      ("/JobGroup/Job[1]", "1: stderr goes to job-1.stderr (3 jobs)")]),
    # what a job is called, its arguments, and values of more than three make no difference
    ("", [finding(n + 1, message=f"{n}: Retry names x") for n in (0, 1)], [("/JobGroup/Job[1]/Environment",
                                                                           "0: Retry names x (2 jobs)")]),
    ("", [finding(n, message=f"job {n} x depends on 'y'") for n in (1, 2)], [("/JobGroup/Job[1]/Environment",
                                                                            "job 1 x depends on 'y' (2 jobs)")]),
    ("", [finding(n, message=f"Arguments: quoted anew as a{n}") for n in (1, 2)], [
        ("/JobGroup/Job[1]/Environment", "Arguments: quoted anew as a1 (2 jobs)")]),
    ("", [finding(n, message=f"'ä{n}' becomes {n}") for n in (1, 2, 3, 4)], [
        ("/JobGroup/Job[1]/Environment", "'ä1' becomes 1 (4 such jobs)")]),
    ("", [finding(n, message=f"'ä{n}' becomes {n}") for n in (1, 2, 3)], [
        (f"/JobGroup/Job[{n}]/Environment", f"'ä{n}' becomes {n}") for n in (1, 2, 3)]),
    # a reader that does not know an element does not know either which job it is in
    ("", [replace(finding(1), path=f"/*/*[{n}]/*[3]", line=n) for n in (2, 3, 4, 5)], [
        ("/*/*[2]/*[3]", "it is absent (4 times, the last at line 5)")]),
    ("", [replace(finding(1), path=f"/*/*[{n}]/*[3]", line=n) for n in (2, 3)], [
        (f"/*/*[{n}]/*[3]", "it is absent") for n in (2, 3)])])
def test_findings_of_many_jobs(defaults: str, findings: list[Finding], shown: list[tuple[str, str]]) -> None:
    document = read_document(DOCUMENT.format(defaults).encode())
    made = together(findings, document)
    assert [(one.path, one.message) for one, _ in made] == shown
    assert [one for _, some in made for one in some] == findings       # none is lost


def test_what_is_told_of_jobs_in_the_journal() -> None:
    """One line for jobs of which the same is told, whatever they are called."""
    def told(name: str, message: str) -> Finding:
        return Finding("SSS602", "warning", name, f"{name}{message}", "dropped", path=f"@1.{name[1:]}")

    hook, never = ": --on-end sh: exit code 3", " can never start as it is: PartitionTimeLimit"
    shown = together([told("j1", hook), told("j2", never), told("j3", hook), told("j4", never), told("j5", ": other")])
    assert [(one.path, one.message) for one, _ in shown] == [
        ("@1.1", f"j1{hook} (2 jobs)"), ("@1.2", f"j2{never} (2 jobs)"), ("@1.5", "j5: other")]


def test_run_shows_one_line_and_json_has_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capfd: pytest.CaptureFixture[str]) -> None:
    from sssjob.cli import main

    monkeypatch.setenv("SSSJOB_JOURNAL", str(tmp_path / "journal.db"))
    monkeypatch.chdir(tmp_path)
    text = DOCUMENT.format("<JobDefaults><Project>p</Project></JobDefaults>").replace("/e<", "/bin/true<")
    (tmp_path / "a.xml").write_text(text)
    for words, lines in (([], 1), (["--json"], 3)):
        assert main(["run", *words, str(tmp_path / "a.xml")]) == 0
        chosen_lines = [line for line in capfd.readouterr().err.splitlines() if "Project" in line and "SSS602" in line]
        assert len(chosen_lines) == lines, chosen_lines
        assert words or "JobDefaults/Project" in chosen_lines[0] or "(3 jobs)" in chosen_lines[0]


def test_causes_are_told_of_all_who_never_ended_themselves(capfd: pytest.CaptureFixture[str]) -> None:
    """Failed without a code or in spite of code 0, canceled, and left out; a code or a signal alone speaks for itself,
    and does not say that it is a time limit's."""
    from sssjob.cli._journal import tell_causes
    from sssjob.document.model import Job
    from sssjob.run.outcomes import JobOutcome

    job = Job()
    tell_causes([JobOutcome(job, "a", "canceled", message="cancel: canceled on request"),
                 JobOutcome(job, "b", "skipped", message="dependency: OnSuccess a does not hold"),
                 JobOutcome(job, "c", "failed", message="lost: nobody knows it"), JobOutcome(job, "d", "failed", 3),
                 JobOutcome(job, "e", "done", 0), JobOutcome(job, "f", "canceled", signal=15),
                 *(JobOutcome(job, f"g{n}", "canceled", message="cancel: canceled on request") for n in range(200)),
                 JobOutcome(job, "h", "failed"), JobOutcome(job, "i", "failed", 0, message="stage-out: a is not there"),
                 JobOutcome(job, "j", "failed", signal=9, message="signal 9"),
                 JobOutcome(job, "k", "failed", signal=15, message="timeout: TIMEOUT")])
    assert capfd.readouterr().err.splitlines() == [
        "sssjob: a and 200 more: cancel: canceled on request", "sssjob: b: dependency: OnSuccess a does not hold",
        "sssjob: c: lost: nobody knows it", "sssjob: h: it is not known how it ended",
        "sssjob: i: stage-out: a is not there", "sssjob: k: timeout: TIMEOUT"]


def test_more_findings_than_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                     capfd: pytest.CaptureFixture[str]) -> None:
    """A number of which nobody knows whether it is the whole one does not stand there as if it were."""
    from sssjob.cli import main

    monkeypatch.chdir(tmp_path)
    Path("sweep.xml").write_text("<Job><Id>s</Id><Executable>/bin/true</Executable><Arguments>{x}</Arguments>"
                                 "<Extension type='Scheduler' name='Sweep'>x=1..400</Extension></Job>")
    assert main(["run", "--dry-run", "sweep.xml"]) == 0
    *shared, more = capfd.readouterr().err.splitlines()
    assert [line.rpartition(" (")[2] for line in shared] == ["at least 334 jobs)", *["at least 333 jobs)"] * 2]
    assert more == "sssjob: 200 more findings are not shown"


def test_what_is_said_of_many_jobs_in_the_journal_is_told_once() -> None:
    """A controller that is down: each text begins with what its job is called."""
    document = read_document(DOCUMENT.format("").encode())
    told = [Finding("SSS602", "warning", f"r{n}", f"r{n}: nobody knows: {why}", "dropped", path=f"@26.{n}")
            for n, why in ((1, "it hangs"), (2, "it hangs"), (3, "it is away"), (4, "it hangs"))]
    assert [(one.path, one.message, len(all_of_them)) for one, all_of_them in together(told, document)] == [
        ("@26.1", "r1: nobody knows: it hangs (3 jobs)", 3), ("@26.3", "r3: nobody knows: it is away", 1)]


def test_many_jobs_of_which_nobody_knows_are_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    """As ``submit`` tells them at its end."""
    from sssjob.cli._journal import ended_badly
    from sssjob.run.plan import outline
    from sssjob.run.standing import Submission

    document = read_document(DOCUMENT.format("").encode())
    submission = Submission(document, lambda: pytest.fail("nobody is asked"))
    submission.take_plan(outline(document))
    for count, words in ((1, "0: nobody knows yet whether it was submitted; it is in the journal as @0.1, and the next "
                             "client asks again and goes on: do not submit it once more"),
                         (3, "0 and 2 more: nobody knows yet whether they were submitted; they are in the journal as "
                             "@0.1 and 2 more, and the next client asks again and goes on: do not submit them once "
                             "more")):
        for job in submission.jobs[:count]:
            job.word, job.asked, job.references = "running", True, [None]
        assert ended_badly([submission], as_json=False) == 7
        assert capfd.readouterr().err == f"sssjob: {words}\n"


def test_jobs_that_stand_alike_are_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    """When the time of ``wait`` is up: who is held, and why others wait; of who waits for its turn nothing is told."""
    from psij import JobState, JobStatus
    from sssjob.cli._journal import tell_waiting
    from sssjob.run.plan import outline
    from sssjob.run.standing import Submission

    document = read_document("".join(["<JobGroup>", *(
        f"<Job><Id>j{n}</Id><Executable>/e</Executable></Job>" for n in range(6)), "</JobGroup>"]).encode())
    submission = Submission(document, lambda: pytest.fail("nobody is asked"))
    submission.take_plan(outline(document))
    known: tuple[dict[str, object], ...] = ({"waits": "never"}, {"phase": "HELD"}, {"waits": "never"}, {},
                                            {"phase": "HELD"}, {"phase": "SUSPENDED"})
    for job, metadata in zip(submission.jobs, known, strict=True):
        message = "PartitionNodeLimit" if "waits" in metadata else None
        state = JobState.ACTIVE if metadata.get("phase") == "SUSPENDED" else JobState.QUEUED
        job.take(0, JobStatus(state, message=message, metadata=metadata), 1.0)
    tell_waiting(submission.jobs)
    assert capfd.readouterr().err.splitlines() == [
        "j0 and 1 more: Idle, never: PartitionNodeLimit", "j1 and 1 more: Hold", "j5: Suspended"]


def test_an_attribute_that_holds_the_right_name() -> None:
    document = read_document(b"<Job><Executable>/e</Executable>"
                             b"<Dependency condition='OnExit' exitCode='1'>a</Dependency></Job>")
    findings = [(f.rule, f.hint) for f in document.findings or () if f.subject == "exitCode"]
    assert findings == [("SSS302", "did you mean code?")]
