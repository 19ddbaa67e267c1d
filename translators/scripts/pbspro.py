"""Batch scripts of PBS Pro and OpenPBS.

Source: the reference guide's chapters on qsub, resources and chunks, and qsub.c of OpenPBS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sssjob.translators.scripts import _pbs, _pbs_lines
from sssjob.translators.scripts._pbs_chunks import read_select, write_select
from sssjob.translators.scripts.base import AnyRow, Asking, Dialect, Reading, Row, Special, harmless, table, translator
from sssjob.translators.scripts.common import Written
from sssjob.translators.scripts.grammars import PBS_SECONDS
from sssjob.translators.scripts.raw import Option

__all__ = ["DIALECT", "TRANSLATOR"]

_LETTERS: Final = "a:A:c:C:e:fGhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz"


# -- account and project
def _read_account(reading: Reading, options: Mapping[str, Option]) -> None:
    """``-A``; where only ``-P`` is given, the site charges by that."""
    account, project = options.get("-A"), options.get("-P")
    if account is not None:
        reading.row(Row("-A", "Project"), account)
        if project is not None:
            reading.keep(project)
    elif project is not None:
        reading.row(Row("-P", "Project"), project)
        reading.put("Extension[name=account,type=pbspro]", "P", project)


def _write_account(asking: Asking) -> Written:
    name = "-A" if asking.extension("account", "pbspro") is None else "-P"
    return asking.row(Row(name, "Project"))


ROWS: Final[tuple[AnyRow, ...]] = table((
    Special(("-A", "-P"), _read_account, _write_account, of=("Project", "Extension[name=account,type=pbspro]")),
    Special(("-l select", "-l place", "-l nodes", "-l ncpus", "-l mem", "-l ngpus", "-l pmem"), read_select,
            write_select),
    Row("-l min_walltime", "Extension[name=MinDuration,type=Scheduler]", PBS_SECONDS),
    _pbs.special_array("-J", lists=False, step=True),
    *(Row(name) for name in ("-f", "-G", "-R")),
), _pbs.ROWS, after="-l walltime")

#: Options of its own that a job can do without.
_HARMLESS: Final = harmless(
    costs="C G R c",
    looks="k S z") | {"l nice": "costs"}

DIALECT: Final = Dialect(
    "pbspro", "PBS Pro", "#PBS", ROWS, _pbs_lines.scanner(_LETTERS, strict=True, dos=False), _pbs_lines.directive,
    _pbs_lines.arguments(_LETTERS), {"{jobid}": "^jobid^", "{array_jobid}": "^array_id^", "{index}": "^array_index^"},
    ("PBS_",), _pbs_lines.live, (".pbs", ".sh"), starts_in="home", exports=False, merges=False,
    marks=(_pbs_lines.PREFIX,), open=("l ", "W "), spellings=("account", "l place=free"), threads=True,
    foreign=("-l procs", "-l feature", "-l naccesspolicy", "-l advres", "-l qos", "-W x"),
    files=("{name}.o{jobid}", "{name}.e{jobid}"), files_in="submit", of_hosts=True, of_input="STDIN",
    consequences=_HARMLESS)
TRANSLATOR: Final = translator(DIALECT)
