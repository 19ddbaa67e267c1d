"""What jobs in columns used and asked for, as numbers: what totals of sacct add up beside the times and counts that
every reader of columns looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sssjob.accounting._sacct_clocks import numbers_of
from sssjob.accounting._sacct_columns import Columns
from sssjob.accounting._sacct_sizes import MOST_BYTES
from sssjob.translators.records._tres import TresForm, memory_place
from sssjob.translators.records.base import micros, rounded

__all__ = ["figure"]

_Array = Any            # of Arrow, one element a job


def figure(read: Columns, name: str) -> _Array:
    """A number of each job, 0 where none is said and any of those that are not plain: ``wall``, ``start``, ``end``,
    ``processors``, ``nodes``, ``gpus``, ``energy``, ``cpu_us``, ``asked`` (processors), ``requested`` (seconds),
    ``size`` (processors, else those asked for), ``waited`` (seconds from submission to start, -1 where that is not
    said), ``memory`` (bytes of AllocTRES, 0 too where they are beyond reason), ``peak`` (bytes that were sampled, -1
    where the reader has to look)."""
    import pyarrow.compute as pc

    if name not in read.arrays and name in _MADE:
        read.arrays[name] = _MADE[name](read)
    values = read.arrays.get(name)
    return pc.multiply(read.arrays["wall"], 0) if values is None else values


def _waited(read: Columns) -> _Array:
    """Seconds from submission to start, -1 where that is not said."""
    import pyarrow.compute as pc

    submit, start = figure(read, "submit"), read.arrays["start"]
    stated = pc.and_(pc.greater(submit, 0), pc.greater_equal(start, submit))
    return pc.if_else(stated, pc.subtract(start, submit), -1)


def _size(read: Columns) -> _Array:
    """Processors that jobs were assigned, else those that they asked for."""
    import pyarrow.compute as pc

    processors = figure(read, "processors")
    return pc.if_else(pc.equal(processors, 0), figure(read, "asked"), processors)


def _limits(read: Columns) -> _Array:
    """Seconds of the time limits of the plain jobs, 0 where there is none."""
    import pyarrow.compute as pc

    names, limits = read.jobs.column_names, []
    for name in ("timelimitraw", "timelimit"):
        if name in names:
            texts = read.column(name)
            digits = pc.match_substring_regex(texts, r"^[0-9]")
            clocks = pc.if_else(pc.and_(read.fits, digits), texts, "").dictionary_encode()
            limits.append(numbers_of(clocks, _minutes if name == "timelimitraw" else _clock))
    if not limits:
        return pc.multiply(read.arrays["wall"], 0)
    if len(limits) == 1:
        return limits[0]
    return pc.if_else(pc.match_substring_regex(read.column("timelimitraw"), r"^[0-9]"), *limits)


def _gpus(read: Columns) -> _Array:
    """GPUs that the jobs were assigned."""
    import pyarrow as pa
    import pyarrow.compute as pc

    of, texts = read.lists.get("of"), read.lists.get("texts")
    if of is None or texts is None:
        return pc.multiply(read.arrays["wall"], 0)
    counts = [0 if cut is None else _gpus_of(read.shapes.forms.forms[cut[0]], cut[1]) for cut in texts]
    return pa.array([counts[text] for text in of], pa.int64())


def _memory(read: Columns) -> _Array:
    """Bytes of memory that the jobs were assigned."""
    import pyarrow as pa
    import pyarrow.compute as pc

    of, texts = read.lists.get("of"), read.lists.get("texts")
    if of is None or texts is None:
        return pc.multiply(read.arrays["wall"], 0)
    places = [memory_place(form) for form in read.shapes.forms.forms]
    sizes = [0 if cut is None or (place := places[cut[0]]) is None else int(cut[1][place[0]]) * place[1]
             for cut in texts]
    return pa.array([sizes[text] if sizes[text] < MOST_BYTES else 0 for text in of], pa.int64())


def _minutes(text: str) -> int:
    """Seconds of minutes."""
    return 60 * int(text) if text else 0


def _clock(text: str) -> int:
    """Whole seconds of a clock."""
    return rounded(micros(text, "Timelimit")) or 0


def _gpus_of(form: TresForm, numbers: Sequence[str]) -> int:
    """The GPUs of a text of a form: those of all types, else those that are said of no type."""
    if form.typed:
        return sum([int(numbers[at]) for at in form.typed])
    return int(numbers[form.total]) if form.total >= 0 else 0


#: What is worked out when it is asked for.
_MADE: Final[dict[str, Callable[[Columns], _Array]]] = {
    "requested": _limits, "gpus": _gpus, "waited": _waited, "asked": lambda read: figure(read, "reqcpus"),
    "size": _size, "memory": _memory}
