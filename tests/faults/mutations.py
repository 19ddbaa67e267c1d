"""Proof that the tests of faults can fail: each handling is taken out of a copy of the tree, and its test has to fail.

``python -m tests.faults.mutations [FAULT...]``: a line for each fault, its test, and whether it notices.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["MUTATIONS", "Mutation", "missing", "survivors"]

_ROOT = Path(__file__).parents[2]
_BATCH = "psij/executors/batch"
_BASE, _HOOKS, _ASKING, _SUBMISSION, _TIDYING = (f"{_BATCH}/{name}.py" for name in (
    "batch_scheduler_executor", "_hooks", "_asking", "_submission", "_tidying"))
_WATCH, _EVIDENCE, _SLURM, _RECORDS = (f"{_BATCH}/{name}.py" for name in (
    "_watch", "_evidence", "slurm", "_slurm_records"))
_FILES, _HOST, _COMMAND, _RUN = *(f"{_BATCH}/{name}.py" for name in ("_files", "_host", "_command")), "sssjob/run"
_COPIED = ("psij", "sssjob", "translators", "schemas", "templates", "tests", "examples", "pyproject.toml")
_LIMIT_S = 180.0


@dataclass(frozen=True, slots=True)
class Mutation:
    """Texts of files and what stands in their place, and a test that notices."""

    fault: str
    edits: Sequence[tuple[str, str, str]]
    test: str


def _one(fault: str, path: str, old: str, new: str, test: str) -> Mutation:
    return Mutation(fault, [(path, old, new)], test)


_SILENCE = (_WATCH, "if silent or self._outage.errors or slept:", "if False:")
_NO_ID = '''self._search_or_raise(job, f"no job id in the answer {out.strip()[:500]!r}", e)'''
_FORWARD = "if before.state is JobState.NEW or status.state.is_greater_than(before.state):"
_LAUNCH = (f"{_RUN}/submitting.py", "submission.entry.flush()", "pass")

MUTATIONS: Final[Sequence[Mutation]] = (
    _one("E01", _SUBMISSION, 'self._search_or_raise(job, f"the submit command took longer than {e.timeout} s", e)',
         "self._unknown", "faults/test_submit.py::test_it_hangs"),
    _one("E02", _SUBMISSION, 'self._search_or_raise(job, f"the submit command took longer than {e.timeout} s", e)',
         "self._unknown", "faults/test_submit.py::test_the_job_is_there[slurm-fault0]"),
    _one("E03", _SUBMISSION, _NO_ID, "out.split()[-1]", "faults/test_submit.py::test_the_job_is_there[slurm-fault2]"),
    _one("E04", _SUBMISSION, _NO_ID, "out", "faults/test_submit.py::test_the_job_is_there[slurm-fault2]"),
    _one("E05", "sssjob/lrm/slurm.py", r"(?:;([\w.-]+))?", "()", "faults/test_submit.py::test_id_and_cluster"),
    _one("E05", _HOST, '{**ENVIRONMENT, b"LC_ALL": b"C"}', "ENVIRONMENT",
         "faults/test_submit.py::test_language_of_answers"),
    _one("E06", _SUBMISSION, "if meaning is Failure.UNKNOWN:", "if False:",
         "faults/test_submit.py::test_the_job_is_there[slurm-fault3]"),
    _one("E07", f"{_BATCH}/lrm.py", "else Failure.REFUSED", "else Failure.LATER",
         "psij/test_batch_behaviour.py::test_refused_for_good[slurm]"),
    _one("E08", _ASKING, "error.errno in (errno.EACCES, errno.ENOEXEC)", "False",
         "faults/test_submit.py::test_a_command_that_cannot_run"),
    _one("E09", f"{_RUN}/submitting.py", "< self.retries and", "< 10 and",
         "run/test_retries.py::test_at_most_so_often"),
    Mutation("E10", [_LAUNCH], "faults/test_submit.py::test_killed_at_a_write"),
    _one("E11", f"{_RUN}/adopting.py", "                elif not seen.final:\n", "                elif False:\n",
         "faults/test_submit.py::test_killed_at_the_command[slurm-before]"),
    Mutation("E12", [_LAUNCH], "faults/test_submit.py::test_killed_at_the_command[slurm-after]"),
    _one("E13", f"{_RUN}/submitting.py", "        self.engine.recording.write_soon()\n", "",
         "faults/test_submit.py::test_killed_when_the_id_is_written"),
    _one("E14", f"{_RUN}/storage.py", 'else "wal")', 'else "off")', "run/test_journal.py::test_a_torn_end_is_dropped"),
    _one("E15", f"{_RUN}/submitting.py", "self.engine.leaves and self._told_to_leave()", "False",
         "faults/test_submit.py::test_a_signal_while_submitting"),
    _one("E15", f"{_RUN}/signals.py", "if once and why != RELEASE:", "if False:",
         "faults/test_submit.py::test_a_second_signal_ends_at_once"),
    _one("E16", _COMMAND, "left = deadline - time.monotonic()", "left = 30.0",
         "psij/test_batch.py::test_command_time_limit_ends_all_of_it"),
    Mutation("E17", [_SILENCE, (_WATCH, "silent.update(ids)", "pass")],
             "faults/test_status.py::test_no_answer[slurm-fault1]"),
    Mutation("E18", [_SILENCE, (_SLURM, 'raise ValueError(f"squeue gave no header: {out[:200]!r}")', "return")],
             "faults/test_status.py::test_no_answer[slurm-fault2]"),
    _one("E19", _EVIDENCE, "if heard_s >= lost_s or", "if True or",
         "faults/test_status.py::test_lost"),
    _one("E20", _EVIDENCE, "JobStatus(JobState.FAILED, message=_FINALLY_UNKNOWN",
         "JobStatus(JobState.COMPLETED, message=''",
         "faults/test_status.py::test_purged_before_its_end_was_seen"),
    _one("E21", f"{_BATCH}/_answers.py", "    if rest:\n", "    if False:\n",
         "psij/test_slurm.py::test_answers_that_are_none"),
    _one("E22", "sssjob/lrm/slurm.py", 'STATES.get(word.rstrip("+"))', 'STATES.get(word.rstrip("+"), STATES["FAILED"])',
         "faults/test_status.py::test_unknown_word[slurm]"),
    _one("E23", _SLURM, " or len(values) < _COLUMNS", "", "faults/test_status.py::test_odd_lines"),
    Mutation("E24", [("psij/job.py", "if not status.state.is_greater_than(current):", "if False:"),
                     (_WATCH, _FORWARD, "if True:")],
             "faults/test_status.py::test_old_answers"),
    _one("E25", "psij/job.py", "for state in _skipped(current, status.state, _ran(status), stages):",
         "for state in ():", "faults/test_status.py::test_ended_between_two_questions"),
    _one("E26", f"{_BATCH}/_news.py", 'changed["requeued"] = True', "pass",
         "faults/test_status.py::test_requeued"),
    _one("E27", _RECORDS, "if native.phase is not None:", "if False:",
         "faults/test_status.py::test_phases_of_a_running_job"),
    Mutation("E28", [("psij/job.py", "if not status.state.is_greater_than(current):", "if False:"),
                     (_WATCH, _FORWARD, "if True:")],
             "faults/test_status.py::test_told_by_poll_and_by_record"),
    _one("E29", "psij/_delivery.py", "                    self._new_worker()\n", "                    pass\n",
         "faults/test_status.py::test_callbacks_that_raise_and_block"),
    _one("E30", "psij/job.py", "deliver(self._id, partial(self._notify, status))", "self._notify(status)",
         "faults/test_status.py::test_callbacks_that_submit_cancel_and_wait"),
    _one("E31", _SLURM, "invalid job id|already completing|already completed", "none of them",
         "faults/test_cancel.py::test_words_for_having_ended"),
    _one("E32", _BASE, "cancel = job.id in self._cancel_later", "cancel = False",
         "faults/test_cancel.py::test_canceled_before_the_id_is_known"),
    _one("E33", _WATCH, "item.cancels < _CANCEL_TRIES", "False", "faults/test_cancel.py::test_said_and_not_done"),
    _one("E34", _WATCH, "item.missed > 1 and not (silent or self._outage.errors)", "True",
         "faults/test_cancel.py::test_who_is_lost_without_a_wait"),
    _one("E34", _BASE, "if not self._is_native_id(native_id):", "if False:",
         "faults/test_cancel.py::test_attached_to_nothing"),
    _one("E35", _ASKING, "self._off.add(source.name)", "pass", "faults/test_cancel.py::test_no_accounting"),
    Mutation("E36", [_SILENCE, (_WATCH, "silent.update(ids)", "pass")], "faults/test_cancel.py::test_gone_for_good"),
    _one("E37", f"{_RUN}/history.py", "time.clock_gettime(clock)", "time.time()",
         "run/test_journal.py::test_time_since_an_event_is_by_a_clock_that_nobody_sets"),
    Mutation("E38", [_LAUNCH], "faults/test_system.py::test_intents_that_cannot_be_written"),
    _one("E38", f"{_RUN}/journal.py", "self.journal._spend_reserve()", "False",
         "faults/test_system.py::test_the_reserve_is_for_native_ids"),
    _one("E39", f"{_RUN}/journal.py", "        when = time.time()\n        with journal._transaction():",
         "        when = time.time()\n        self._unwritten.clear()\n        with journal._transaction():",
         "faults/test_system.py::test_flush_is_all_or_nothing"),
    _one("E40", _SUBMISSION, "        host.make_private(executor.work_directory)\n", "",
         "faults/test_system.py::test_the_work_directory_is_removed"),
    _one("E41", _EVIDENCE, "if heard_s >= lost_s or", "if True or",
         "faults/test_system.py::test_exit_files_that_come_late"),
    _one("E42", _SUBMISSION, "errno.ESTALE, ", "", "faults/test_system.py::test_scripts_that_cannot_be_written"),
    _one("E42", _HOST, "                return file.read(most)\n        except OSError:",
         "                return file.read(most)\n        except ValueError:",
         "faults/test_system.py::test_records_that_cannot_be_read"),
    _one("E43", _SUBMISSION, "errno.EMFILE, ", "", "faults/test_system.py::test_out_of_descriptors"),
    _one("E44", _SUBMISSION, "errno.EAGAIN, ", "", "faults/test_system.py::test_out_of_processes"),
    _one("E45", _COMMAND, "if total > limit:", "if False:", "psij/test_batch.py::test_command_output_limit"),
    _one("E46", _HOOKS, 'self.work_directory / f"{job.id}.job"', 'self.work_directory / "job.job"',
         "faults/test_system.py::test_two_in_one_work_directory"),
    _one("E47", _TIDYING, "watched = executor.host.exists(keep)", "watched = False",
         "faults/test_system.py::test_two_attached_to_one_job"),
    _one("E48", _WATCH, "os.register_at_fork(after_in_child=lambda: _start_anew())", "",
         "faults/test_system.py::test_fork_while_jobs_are_followed"),
    _one("E49", _ASKING, "size = self._chunk or len(native_ids)", "size = len(native_ids)",
         "psij/test_batch.py::test_chunks"),
    _one("E50", _RECORDS, 'if not out.startswith("JobID|"):', "if False:",
         "faults/test_status.py::test_order_of_columns"),
    _one("E51", _FILES, "if job_id is not None and lines[1] != job_id:", "if False:",
         "faults/test_rest.py::test_exit_files_of_nobody"),
    _one("E52", _FILES, "if line not in _MARKERS", "", "faults/test_rest.py::test_a_program_that_prints_our_marker"),
    _one("E53", _RECORDS, "or len(pairs) != len(fields)", "", "psij/test_slurm.py::test_recorded_details"),
    Mutation("E54", [_SILENCE], "faults/test_rest.py::test_a_cluster_that_is_away"),
    _one("E55", "psij/executors/local.py", 'f"{pid}@{process.start}@{proc.boot_id()}"', "str(pid)",
         "psij/test_local_ends.py::test_references_that_do_not_fit"),
    _one("E56", "psij/executors/_local_proc.py", "        if tag:\n", "        if False:\n",
         "psij/test_local_ends.py::test_cancel_ends_a_daemon"),
    _one("E57", _WATCH, "        if slept:\n", "        if False:\n", "faults/test_rest.py::test_asleep_for_hours"),
    _one("E58", _RECORDS, "if signal and state is not JobState.COMPLETED:", "if False:",
         "faults/test_rest.py::test_codes_and_signals[slurm]"))


def missing() -> list[str]:
    """Texts that are not in their files any more: this table is behind."""
    return [f"{one.fault}: {path}: {old!r}" for one in MUTATIONS for path, old, _ in one.edits
            if old not in (_ROOT / path).read_text(encoding="utf-8")]


def survivors(faults: Sequence[str] = ()) -> Iterator[tuple[Mutation, bool]]:
    """Mutations, and whether the test passes all the same."""
    with tempfile.TemporaryDirectory(prefix="sssjob-") as place:
        root = Path(place)
        for name in _COPIED:
            if (_ROOT / name).is_dir():
                shutil.copytree(_ROOT / name, root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(_ROOT / name, root / name)
        for one in MUTATIONS:
            if not faults or one.fault in faults:
                yield one, _survives(one, root)


def _survives(one: Mutation, root: Path) -> bool:
    whole = {path: (root / path).read_text(encoding="utf-8") for path, _, _ in one.edits}
    try:
        for path, old, new in one.edits:
            (root / path).write_text((root / path).read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"tests/{one.test}"], cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            text=True, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        return False
    finally:
        for path, text in whole.items():
            (root / path).write_text(text, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{one.fault}: {one.test}: pytest says {done.returncode}\n{done.stdout[-2000:]}")
    return done.returncode == 0


if __name__ == "__main__":
    for found, lives in survivors(sys.argv[1:]):
        print(found.fault, "NOT NOTICED" if lives else "noticed", found.test, flush=True)
