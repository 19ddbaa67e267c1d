"""The one door of the script dialects: all that a module of a dialect takes.

A dialect is a ``Dialect``: how lines become options (``scan``), one table of rows over its parent's, and what the
table cannot say as ``Special`` rows. ``rows`` has what it is made of, ``reading`` and ``writing`` the two ways.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sssjob.findings import Findings, Policy
from sssjob.lrm.variables import Facts, Given
from sssjob.request.asked import Entry
from sssjob.translators.base import ReadContext, Translator
from sssjob.translators.scripts.asking import Asking
from sssjob.translators.scripts.placeholders import scanned
from sssjob.translators.scripts.raw import numbers_of
from sssjob.translators.scripts.reading import Reading, read, understand
from sssjob.translators.scripts.rows import (
    APPROXIMATED,
    CONTRADICTORY,
    DEAD,
    DROPPED,
    INVENTED,
    PARTS,
    REFUSED,
    SITE,
    TEMPLATED,
    AnyRow,
    Dialect,
    Place,
    Row,
    Scan,
    ScriptDocument,
    Special,
    dialect_of,
    harmless,
    known_as,
    place,
    table,
)
from sssjob.translators.scripts.writing import asking_for, express, leftovers, script_apart, script_of, write

if TYPE_CHECKING:
    from sssjob.translators.recognise import Fit, Sample

__all__ = [
    "APPROXIMATED", "CONTRADICTORY", "DEAD", "DROPPED", "INVENTED", "PARTS", "REFUSED", "SITE", "TEMPLATED",
    "AnyRow", "Asking", "Dialect", "Entry", "Facts", "Given", "Place", "Reading", "Row", "Scan", "ScriptDocument",
    "Special",
    "asking_for", "dialect_of", "express", "harmless", "leftovers", "place", "script_apart", "script_of", "table",
    "translator", "understand",
]

def recognise(dialect: Dialect, sample: Sample) -> Fit | None:
    """By the lines that the dialect's own reader would obey, and by what it would refuse in them."""
    from sssjob.translators.recognise import Fit

    lines = sample.lines
    live = dialect.live(lines)
    if not live:
        return None
    sample.live[dialect.name] = live
    claims = numbers_of(live)

    def objection() -> str:
        """What the reader refuses in these lines, or an option of a relative."""
        reading = Reading(dialect, ReadContext(sample.path, Findings(sample.path), policy=Policy.WARN))
        reading.lines = lines
        scan = scanned(dialect, reading, lines, sample.text)
        sample.scans[dialect.name] = scan, reading.findings
        options = [o for part in scan.components for o in part]
        strange = next((o.name for o in options if o.name in dialect.foreign), "")
        refused = next((f.message for f in reading.findings if f.kind == "refused" and f.line in claims), "")
        return f"{strange} belongs to a relative of it" if strange else refused

    number = len(claims)
    return Fit(f"{number} line{'s' * (number > 1)} of {dialect.prefix} that {dialect.title} obeys, "
               f"{'the first ' * (number > 1)}in line {min(claims)}", objection, claims)


def translator(dialect: Dialect) -> Translator:
    """The Translator of a dialect, for its entry point."""
    known_as(dialect)
    return Translator(dialect.name, f"{dialect.title} batch script", "script",
                      lambda data, context: read(dialect, data, context),
                      lambda document, context: write(dialect, document, context), dialect.suffixes or (".sh",),
                      partial(recognise, dialect), marks=dialect.marks, one_job=True)
