"""Exit codes from ``sacct --json``: which releases are asked, and that they are those of the text where both are right.

The recorded JSON is that of 22.05.8, whose codes are wrong. That of a later release is made of it here: its shape is
that of the data_parser plugins, its codes are those that scontrol had for the same jobs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from psij import JobState
from psij.executors.batch._slurm_json import parse_codes
from psij.executors.batch._slurm_records import native_state
from psij.executors.batch._terms import SourceOffError

RECORDS = Path(__file__).parents[1] / "fixtures/slurm-22.05.8/records"
#: By id, what scontrol said of the job of the recording that ended with a code from 128.
CODES = {"4": 139}


def texts() -> dict[str, tuple[str, str]]:
    """State and exit code of the last run of each job, by id, as the text of sacct has them."""
    lines = (RECORDS / "sacct.psv").read_text().splitlines()
    names = lines[0].split("|")
    rows = [dict(zip(names, line.split("|"), strict=False)) for line in lines[1:]]
    return {row["JobID"]: (row["State"].split(" ")[0], row["ExitCode"]) for row in rows if "." not in row["JobID"]}


def recorded() -> Any:
    """Of each job the last run, as without -D, with which it was recorded."""
    document = json.loads((RECORDS / "sacct.json").read_text())
    document["jobs"] = list({job["job_id"]: job for job in document["jobs"]}.values())
    return document


def codes(out: str) -> dict[str, tuple[JobState, int | None]]:
    return {name: (status.state, status.exit_code) for name, status in parse_codes(0, out).items()}


def later(document: Any, release: str = "23.02.1") -> str:
    """The same accounting as a later release would print it."""
    major, minor, micro = release.split(".")
    document["meta"] = {"slurm": {"version": {"major": major, "minor": minor, "micro": micro}, "release": release}}
    known = texts()
    for job in document["jobs"]:
        array, het = job["array"], job["het"]
        name = (f"{het['job_id']}+{het['job_offset']}" if het["job_id"] else f"{array['job_id']}_{array['task_id']}"
                if array["task_id"] is not None and array["job_id"] else str(job["job_id"]))
        code, _, signal = known[name][1].partition(":")
        signaled = signal != "0"
        job["exit_code"] = {"return_code": _set(None if signaled else CODES.get(name, int(code))),
                            "signal": {"id": _set(int(signal) if signaled else None)}}
        job["state"]["current"] = [job["state"]["current"]]
        array["task_id"], het["job_offset"] = _set(array["task_id"]), _set(het["job_offset"])
    return json.dumps(document)


def _set(value: int | None) -> dict[str, object]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


def test_equal_to_the_text() -> None:
    """But for codes from 128: of those the text has 128 less."""
    expected: dict[str, tuple[JobState, int]] = {}
    for name, (word, code) in texts().items():
        known, number = native_state(word), code.partition(":")
        if known is not None and known[1].final and number[2] == "0":
            expected[name] = known[1], CODES.get(name, int(number[0]))
    assert len(expected) > 20
    assert codes(later(recorded())) == expected


@pytest.mark.parametrize("release", ["21.08.8", "22.05.7", "22.05.8", "22.05.11"])
def test_releases_whose_json_is_wrong(release: str) -> None:
    with pytest.raises(SourceOffError, match="has no exit codes"):
        parse_codes(0, later(recorded(), release))


def test_as_recorded() -> None:
    """The release stands elsewhere there, in numbers."""
    with pytest.raises(SourceOffError, match=r"release 22\.5 has"):
        parse_codes(0, json.dumps(recorded()))


@pytest.mark.parametrize(("code", "out", "error"), [
    (1, "sacct: unrecognized option '--json'", SourceOffError),
    (1, "sacct: error: cannot find serializer/json plugin", SourceOffError),
    (1, "sacct: error: Problem talking to the database: Connection refused", RuntimeError),
    (0, "", ValueError), (0, "[]", ValueError), (0, '{"jobs": [', ValueError), (0, '{"jobs": []}', ValueError),
    (0, '{"jobs": [], "meta": {"slurm": {"version": {"major": "x", "minor": "2"}}}}', ValueError),
])
def test_answers_that_are_none(code: int, out: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_codes(code, out)


@pytest.mark.parametrize("job", [
    None, 3, {}, {"exit_code": 3, "state": []}, {"exit_code": {"return_code": True}, "state": {"current": ["FAILED"]}},
    {"exit_code": {"return_code": {"set": True, "infinite": True, "number": 0}}, "state": {"current": "COMPLETED"}},
    {"job_id": 1, "exit_code": {"return_code": 0}, "state": {"current": ["RUNNING"]}}])
def test_odd_jobs_have_no_codes(job: object) -> None:
    """The others keep theirs."""
    document = json.loads(later(recorded()))
    document["jobs"] = [job, *document["jobs"]]
    assert codes(json.dumps(document)) == codes(later(recorded()))
