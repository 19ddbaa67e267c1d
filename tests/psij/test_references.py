"""``${NAME}`` in arguments and in values of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from psij import Job, JobSpec
from psij.executors.local import LocalJobExecutor
from psij.references import expand, literal, pieces

_KNOWN = {b"A": b"${B}x", b"B": b"", b"C": b"\xff"}
_TEXTS = st.lists(st.sampled_from(["${A}", "${B}", "${C}", "${NO}", "$", "\\", "{", "}", "${", "A", " ", "'", "${1}"]),
                  max_size=12).map("".join)


@pytest.mark.parametrize(("text", "value", "argument"), [
    ("plain $A $(id) ${1} ${A:-x} ${", "plain $A $(id) ${1} ${A:-x} ${", "plain $A $(id) ${1} ${A:-x} ${"),
    ("<${A}>", "<${B}x>", "<${B}x>"),
    ("<${B}${NO}>", "<>", "<${NO}>"),
    ("for i in 1 2; do echo ${i}; done", "for i in 1 2; do echo ; done", "for i in 1 2; do echo ${i}; done"),
    ("$${A} \\${A} $${NO}", "${A} ${A} ${NO}", "${A} ${A} ${NO}"),
    ("$$${A} \\$${A} \\\\${A}", "$${A} \\${A} \\${A}", "$${A} \\${A} \\${A}"),
    ("${C}", "\udcff", "\udcff"),
])
def test_what_a_text_becomes(text: str, value: str, argument: str) -> None:
    """A value is not looked at again; what is literal is not a value."""
    assert (expand(text, _KNOWN), expand(text, _KNOWN, kept=True)) == (value, argument)


@given(_TEXTS)
def test_every_text_can_be_said(text: str) -> None:
    for kept in (False, True):
        assert expand(literal(text), _KNOWN, kept) == text
    assert len(pieces(literal(text))) == 1


@given(_TEXTS)
def test_nothing_known_nothing_changed(text: str) -> None:
    """But for what is literal by a sign before it."""
    plain = text.replace("$$", "").replace("\\$", "")
    assert expand(plain, {}, kept=True) == plain


def test_shell_code_in_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of the shell keeps its variable; ``envsubst`` and templates get theirs by the literal form."""
    monkeypatch.delenv("i", raising=False)
    monkeypatch.setenv("OUTER", "outer")
    code = 'for i in 1 2; do echo "[${i}]"; done; echo "${OUTER}" "$1" "$2"'
    job = Job(JobSpec("/bin/sh", ["-c", code, "sh", "$${OUTER}", "\\${OUTER}"], stdout_path=tmp_path / "out"))
    LocalJobExecutor().submit(job)
    status = job.wait()
    assert status is not None and status.exit_code == 0
    assert (tmp_path / "out").read_text() == "[1]\n[2]\nouter ${OUTER} ${OUTER}\n"
