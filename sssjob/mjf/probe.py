"""What is wrong or missing in the directories of a job, graded as the WLCG probe grades it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping

from sssjob.findings import escape
from sssjob.mjf.features import Features, Note
from sssjob.mjf.keys import KEYS, VARIABLES, Area, keys_of
from sssjob.mjf.places import Here, Nowhere
from sssjob.mjf.reader import Reader

__all__ = ["check"]

_LOWER = re.compile(r"[a-z0-9_]+", re.ASCII)


def check(reader: Reader, environment: Mapping[str, str]) -> list[Note]:
    """Everything that a provider should look at, errors first."""
    features = reader.read()
    notes = [*_variables(reader, environment), *_missing(reader, features), *_files(reader), *_values(features)]
    return sorted(notes, key=lambda note: ("error", "warning", "info").index(note.severity))


def _variables(reader: Reader, environment: Mapping[str, str]) -> Iterator[Note]:
    for area, name in VARIABLES.items():
        base = environment.get(name, "")
        if not base and area not in reader.places:
            yield Note("mjf-not-set", "info" if area == "status" else "error", name, "is not set")
        elif base.endswith("/") and base != "/":
            yield Note("mjf-slash", "warning", name, "the directory name should not include the trailing slash")


def _missing(reader: Reader, features: Features) -> Iterator[Note]:
    areas: tuple[Area, ...] = ("machine", "job")
    for area in areas:
        if isinstance(reader.place(area), Nowhere):
            continue
        for key in keys_of(area):
            if not key.draft and not key.dynamic and features[key.name].state == "absent":
                yield Note("mjf-missing", key.grade, key.name, "is required unless its value cannot be found out")


def _files(reader: Reader) -> Iterator[Note]:
    """Names and access, as far as the directory is a local one."""
    for area in VARIABLES:
        place = reader.place(area)
        if not isinstance(place, Here):
            continue
        for name in place.names() or ():
            if name.startswith("."):
                continue
            key = KEYS.get(name)
            shown = escape(name, 60)
            if key is None or key.area != area:
                yield Note("mjf-name", "info" if _LOWER.fullmatch(name) else "warning", shown,
                           f"is no key of {VARIABLES[area]}")
            elif key.draft and area != "status":
                yield Note("mjf-draft", "info", shown, "is a key of draft 0.99 only")
            try:
                mode = os.stat(os.path.join(place.path, name), follow_symlinks=False).st_mode
            except OSError:
                continue            # gone since it was listed
            if stat.S_ISREG(mode) and not mode & stat.S_IROTH:
                yield Note("mjf-mode", "warning", shown, f"mode {stat.S_IMODE(mode):04o}: not readable by all")


def _values(features: Features) -> Iterator[Note]:
    for note in features.notes:
        of_a_pilot = note.key == VARIABLES["status"] or (note.key in KEYS and KEYS[note.key].area == "status")
        wrong = note.code == "mjf-unreadable" and not of_a_pilot
        yield Note(note.code, "error", note.key, note.message) if wrong else note
