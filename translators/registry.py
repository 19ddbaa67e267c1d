"""Which formats there are: the built-in ones and what is registered under the entry point ``sssjob.translators``.

The built-in names stand in a table, so that a bare checkout works without installation; they win over an entry of the
same name. Modules are imported when a format is asked for, so a broken third-party entry harms nobody else.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Final

from sssjob.errors import UsageError
from sssjob.translators.base import Translator

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["BUILT_IN", "GROUP", "SCRIPT_FORMATS", "get", "names"]

GROUP: Final = "sssjob.translators"
#: name -> module; each has a ``TRANSLATOR``, or ``TRANSLATORS`` by name.
BUILT_IN: Final[dict[str, str]] = {
    "sss": "sssjob.translators.specs.sss",
    "sss-json": "sssjob.translators.specs.sss_json",
    "psij": "sssjob.translators.specs.psij",
    "flux-jobspec": "sssjob.translators.specs.flux_jobspec",
    "jsdl": "sssjob.translators.specs.jsdl",
    "adl": "sssjob.translators.specs.adl",
    "xrsl": "sssjob.translators.specs.xrsl",
    **dict.fromkeys(("sinfo-json", "pbsnodes", "qhost", "condor-status", "flux-resource", "glue2"),
                    "sssjob.translators.specs._offers"),
    "slurm": "sssjob.translators.scripts.slurm",
    "pbspro": "sssjob.translators.scripts.pbspro",
    "torque": "sssjob.translators.scripts.torque",
    "lsf": "sssjob.translators.scripts.lsf",
    "sge": "sssjob.translators.scripts.sge",
    "cobalt": "sssjob.translators.scripts.cobalt",
    "htcondor": "sssjob.translators.scripts.htcondor",
    "flux": "sssjob.translators.scripts.flux",
    "sacct": "sssjob.translators.records.sacct",
    "sacct-json": "sssjob.translators.records.sacct_json",
    "pbs-acct": "sssjob.translators.records.pbs_acct",
    "sge-acct": "sssjob.translators.records.sge_acct",
    "lsf-acct": "sssjob.translators.records.lsf_acct",
    "swf": "sssjob.translators.records.swf",
    "ur1": "sssjob.translators.records.ur1",
    "ur2": "sssjob.translators.records.ur2",
    "car": "sssjob.translators.records.car",
    "apel": "sssjob.translators.records.apel",
    "apel-summary": "sssjob.translators.records.apel_summary",
    "apel-sync": "sssjob.translators.records.apel_sync",
    "car-summary": "sssjob.translators.records.car_summary",
    "htcondor-history": "sssjob.translators.records.htcondor_history",
    "cobalt-acct": "sssjob.translators.records.cobalt_acct",
    "flux-jobs": "sssjob.translators.records.flux_jobs",
    "flux-eventlog": "sssjob.translators.records.flux_eventlog",
    "csv": "sssjob.translators.records.csv",
    "jsonl": "sssjob.translators.records.jsonl",
    "parquet": "sssjob.translators.records.parquet",
}
#: The built-in formats of batch scripts.
SCRIPT_FORMATS: Final = tuple(name for name, module in BUILT_IN.items() if ".scripts." in module)
_NAMES: Final = tuple(BUILT_IN)
_loaded: dict[str, Translator] = {}


def _entries() -> dict[str, EntryPoint]:
    """What is installed, looked for once as long as the search path stays the same."""
    return _entries_of(tuple(sys.path))


@lru_cache(maxsize=1)
def _entries_of(path: tuple[str, ...]) -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {e.name: e for e in entry_points(group=GROUP) if e.name not in BUILT_IN}


def names() -> tuple[str, ...]:
    """All known formats, the built-in ones first; nothing is imported."""
    installed = _entries()
    return (*_NAMES, *sorted(installed)) if installed else _NAMES


def get(name: str) -> Translator:
    """The translator of that name.

    UsageError for an unknown name, with the known ones and a close one, and for an entry that cannot be loaded.
    """
    if name not in _loaded:
        if name in BUILT_IN:
            module = import_module(BUILT_IN[name])
            _loaded[name] = module.TRANSLATORS[name] if hasattr(module, "TRANSLATORS") else module.TRANSLATOR
        elif (entry := _entries().get(name)) is None:
            raise UsageError(_unknown(name))
        else:
            _loaded[name] = _load(entry)        # looking for entry points takes tens of milliseconds
    return _loaded[name]


def _unknown(name: str) -> str:
    import difflib

    all_names = names()
    close = difflib.get_close_matches(name, all_names, 1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"unknown format {name!r} (known: {', '.join(all_names)}){hint}"


def _load(entry: EntryPoint) -> Translator:
    try:
        translator = entry.load()
    except Exception as error:          # whatever a third party's module raises
        raise UsageError(f"format {entry.name}: {entry.value} cannot be loaded: {error}") from error
    if not isinstance(translator, Translator):
        raise UsageError(f"format {entry.name}: {entry.value} is no Translator")
    return translator
