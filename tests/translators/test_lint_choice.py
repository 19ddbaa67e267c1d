"""Which rules lint tells: the choice of the command line, and the comments that silence a rule."""

from __future__ import annotations

import pytest

from sssjob.conversion.site import read_site
from sssjob.errors import UsageError
from sssjob.translators.lint import lint
from sssjob.translators.lint_choice import Choice

TWO = "#!/bin/sh\n#SBATCH -t 1:30\n#SBATCH --tasks 8\n"


def told(text: str, select: str = "", ignore: str = "", dialect: str = "slurm") -> list[str]:
    """``line rule severity`` of each finding."""
    findings = lint(dialect, text.encode(), choice=Choice.of([select], [ignore]))
    return [f"{f.line} {f.rule} {f.severity}" for f in findings]


@pytest.mark.parametrize(("select", "ignore", "rules"), [
    ("", "", ["SSS522", "SSS525"]),
    ("SSS522", "", ["SSS522"]),
    ("sss52", "", ["SSS522", "SSS525"]),
    ("SSS52", "SSS522", ["SSS525"]),
    ("SSS522", "SSS52", ["SSS522"]),
    ("", "SSS5", []),
    ("SSS1", "", []),
    ("SSS522, SSS525", "SSS525", ["SSS522"]),      # the same name on both sides: ignored
])
def test_rules_are_chosen_by_the_longest_name(select: str, ignore: str, rules: list[str]) -> None:
    assert [line.split()[1] for line in told(TWO, select, ignore)] == rules


@pytest.mark.parametrize("code", ["SSS999", "E501", "SSS52*"])
def test_what_begins_no_rule_is_refused(code: str) -> None:
    with pytest.raises(UsageError, match=r"--select .*: no rule begins so"):
        Choice.of([code], [])


def test_a_limit_is_always_told() -> None:
    assert Choice.of(["SSS522"], ["SSS1"]).wants("SSS110")


@pytest.mark.parametrize(("text", "expected"), [
    # at the end of a line, on a line of its own, above a line
    ("#!/bin/sh\n#SBATCH -t 1:30 # sssjob: ignore=SSS522\n#SBATCH --tasks 8\n", ["3 SSS525 warning"]),
    ("#!/bin/sh\n#SBATCH -t 1:30\n#SBATCH --tasks 8\n# sssjob: ignore=SSS522,SSS525\n", []),
    ("#!/bin/sh\n  #sssjob:ignore = SSS52\n#SBATCH -t 1:30\n#SBATCH --tasks 8\n", []),
    ("#!/bin/sh\n# sssjob: ignore-next=SSS522\n#SBATCH -t 1:30\n#SBATCH --time-min 1:30\n", ["4 SSS522 warning"]),
    ("#!/bin/sh\n#SBATCH -n 1\nsrun ./a $PBS_JOBID  # sssjob: ignore=SSS535\n", []),
    # one that silences nothing, knows no rule, names none
    ("#!/bin/sh\n# sssjob: ignore=SSS522\n#SBATCH -n 1\n", ["2 SSS519 info"]),
    ("#!/bin/sh\n# sssjob: ignore=SSS999,E1\n#SBATCH -n 1\n", ["2 SSS519 warning", "2 SSS519 warning"]),
    ("#!/bin/sh\n# sssjob: ignore=\n#SBATCH -n 1\n", ["2 SSS519 warning"]),
    # another comment of that name is none of these
    ("#!/bin/sh\n# sssjob: see docs\n#SBATCH -n 1\n", []),
])
def test_comments_silence_rules(text: str, expected: list[str]) -> None:
    assert told(text) == expected


def test_what_is_refused_can_be_silenced_too() -> None:
    assert told("#!/bin/sh\n#SBATCH --nodes=many # sssjob: ignore=SSS505\n") == []


def test_the_site_answers_what_has_no_unit() -> None:
    text = b"#!/bin/sh\n#BSUB -M 4000\n"
    site = read_site('name = "x"\n[lsf]\nunit_for_limits = "MB"\n')
    assert [[f.rule for f in lint("lsf", text, site=given)] for given in (None, site)] == [["SSS537"], []]
