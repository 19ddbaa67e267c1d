"""The faults E01 to E58 that the executors and the journal have to stand, and which tests cite them.

``python -m tests.faults.table`` prints each fault with its tests. A test cites a fault in its docstring.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

__all__ = ["FAULTS", "ON_CLUSTERS", "cited"]

FAULTS: Final[Mapping[str, str]] = {
    "E01": "the submit command hangs", "E02": "it succeeds, but takes longer than its limit",
    "E03": "it succeeds with a warning and no id", "E04": "it succeeds and says nothing",
    "E05": "id with a cluster, after a banner, in another language", "E06": "it fails, but the job exists",
    "E07": "refused for good", "E08": "the submit command is missing or cannot run",
    "E09": "refused for now: a limit of the queue", "E10": "killed before the intent is written",
    "E11": "killed between intent and submission", "E12": "killed after submission, before the id is written",
    "E13": "killed after the id is written", "E14": "killed while a record is written",
    "E15": "SIGTERM or SIGINT while submitting", "E16": "the status command hangs", "E17": "it fails for a while",
    "E18": "it answers nothing, or a header alone", "E19": "one job is missing from the answer",
    "E20": "purged before its end was seen", "E21": "an answer cut in a line", "E22": "an unknown state word",
    "E23": "extra columns, blanks, undecodable bytes", "E24": "contradicting or old answers",
    "E25": "ended between two questions", "E26": "put back into the queue",
    "E27": "completing for a long time, suspended", "E28": "told by poll and by record",
    "E29": "a callback raises or blocks", "E30": "a callback submits, cancels, waits",
    "E31": "cancel of a job that has just ended", "E32": "cancel before the native id is known",
    "E33": "a cancel that is accepted and not done", "E34": "attach to a bad or purged id",
    "E35": "accounting off or slow", "E36": "the resource manager is gone for good",
    "E37": "clocks that differ or are set",
    "E38": "the disk is full", "E39": "fsync fails", "E40": "the work directory is removed",
    "E41": "the exit file appears late", "E42": "stale file handle, read-only file system", "E43": "out of descriptors",
    "E44": "out of processes", "E45": "an answer without end", "E46": "two clients in one work directory",
    "E47": "two are attached to one job", "E48": "fork while threads run, exit while they live",
    "E49": "ten thousand jobs", "E50": "another format after an upgrade",
    "E51": "exit file empty, half, of another job", "E52": "the end marker missing, or printed by the program",
    "E53": "odd names in answers", "E54": "one of several clusters is away", "E55": "a pid that is used again",
    "E56": "grandchildren, daemons, zombies", "E57": "asleep for hours", "E58": "signal and exit code"}
#: Those that are provoked on real clusters too.
ON_CLUSTERS: Final = ("E06", "E07", "E17", "E20", "E26", "E31", "E58")

_TESTS = Path(__file__).parents[1]
_NUMBER = re.compile(r"\bE\d\d\b")


def cited(*folders: str) -> Iterator[tuple[str, str]]:
    """(fault, ``file::test``) of every citation in these folders of tests."""
    for folder in folders:
        for path in sorted((_TESTS / folder).glob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    for fault in dict.fromkeys(_NUMBER.findall(ast.get_docstring(node) or "")):
                        yield fault, f"{path.relative_to(_TESTS)}::{node.name}"


if __name__ == "__main__":
    found: dict[str, list[str]] = {}
    for number, test in cited("psij", "run", "cli", "faults", "labs"):
        found.setdefault(number, []).append(test)
    for number, what in FAULTS.items():
        print(f"{number} {what}", *(f"      {test}" for test in found.get(number, [])), sep="\n")
