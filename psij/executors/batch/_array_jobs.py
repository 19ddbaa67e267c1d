"""Native arrays of our own: many jobs that differ by an index only, which one submit command hands over.

The array has a tag, by which it is found; each element has one of its own that follows from it and from the number of
the element, so that one script names the files of all. That script computes the index from the number; wherever the
elements differ, the specification that it is made of has a mark (``sssjob.templates.quoting``).

Of native arrays that others have submitted, each is one job; here is also which tasks a text names. No process or file
in here.
"""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from psij.executors.batch._identity import COMMON, Identity, whole_tag
from psij.job_spec import JobSpec
from psij.job_state import JobState
from psij.job_status import JobStatus
from sssjob.lrm.idset import ranges
from sssjob.templates.quoting import ELEMENT_MARKS, WIDEST_INDEX, Quoted, index_mark, word

if TYPE_CHECKING:
    from psij.executors.batch._hooks import BatchHooks
    from psij.job import Job


_GREATEST: Final = 99_999_999       # number of an element that fits into a tag
_PATHS: Final = ("directory", "stdin_path", "stdout_path", "stderr_path", "pre_launch", "post_launch")
_WIDTH: Final = re.compile("|".join(ELEMENT_MARKS))


@dataclass(frozen=True, slots=True)
class ArrayLimits:
    """What a resource manager takes as one array.

    first, last: the least and the greatest number of an element. most: elements of one array. lists: the numbers may be
    any; else they have to be a single range. fewest: elements of one array.
    """

    first: int
    last: int
    most: int
    lists: bool
    fewest: int = 1


@dataclass(frozen=True, slots=True)
class JobArray:
    """An array to be submitted. tag: by which it is found. indices: of its elements, by their numbers in the resource
    manager, which ascend. most: how many elements may run at a time, None for any number. spec: of all elements."""

    tag: str
    indices: Mapping[int, int]
    most: int | None
    spec: JobSpec

    def element_tag(self, number: int) -> str:
        """The tag of an element."""
        return f"{self.common}{number:08d}"

    @property
    def common(self) -> str:
        """What the tags of all elements begin with."""
        return self.tag[:COMMON]

    def lines(self, variable: str) -> Quoted:
        """Lines of bash that set what marks stand for. variable: in which an element finds its number."""
        shell_lines = [f"_psij_number=${variable}", *self._index(),
                       f"printf -v _psij_tag '%s%08d' {word(self.common)} \"$_psij_number\""]
        texts = " ".join(texts_of(self.spec))
        shell_lines += [f"printf -v _psij_index_{width} '%0{width}d' \"$_psij_index\""
                        for width in range(1, WIDEST_INDEX + 1) if index_mark(width) in texts]
        return Quoted("\n".join(shell_lines))

    def _index(self) -> Iterator[str]:
        """Lines that set the index of an element: its number, a sum, or what a table has at that place."""
        pairs = list(self.indices.items())
        (number, index), *rest = pairs
        step, fits = (divmod(rest[-1][1] - index, rest[-1][0] - number) if rest else (1, 0))
        if not fits and all(entry == index + step * (n - number) for n, entry in rest):
            base = index - step * number
            same = (base, step) == (0, 1)
            yield "_psij_index=" + ("$_psij_number" if same else f"$(({base} + {step} * _psij_number))")
            return
        yield f"_psij_indices=({' '.join(f'[{n}]={entry}' for n, entry in pairs)})"
        yield "_psij_index=${_psij_indices[_psij_number]}"


def arrays_of(limits: ArrayLimits, specs: Sequence[JobSpec], indices: Sequence[int],
              most: int | None) -> list[JobArray]:
    """The arrays as which jobs can be submitted, in their order: one, or several where there are too many for that.

    Empty where they are to be submitted one by one: they differ by more than their indices, which ascend, or no more
    than ``most`` of several arrays may run at a time.
    """
    spec = pattern_of(specs, indices) if len(specs) > 1 else None
    if spec is None:
        return []
    fits = (limits.first <= indices[0] and indices[-1] <= min(limits.last, _GREATEST) and len(indices) <= limits.most
            and (limits.lists or len(_ranges(indices)) == 1))
    size = len(indices) if fits else min(limits.most, limits.last - limits.first + 1)
    chunks = [indices[start:start + size] for start in range(0, len(indices), size)]
    if (missing := limits.fewest - len(chunks[-1])) > 0 and len(chunks) > 1:
        chunks[-2:] = chunks[-2][:-missing], [*chunks[-2][-missing:], *chunks[-1]]
    if most is not None and len(chunks) > 1:
        return []
    return [JobArray(whole_tag(str(uuid.uuid4())),
                     dict(zip(chunk if fits else range(limits.first, limits.first + len(chunk)), chunk, strict=True)),
                     most, spec) for chunk in chunks]


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers that ascend as ``1-9:2,12``."""
    return ",".join(f"{span[0]}" if len(span) == 1
                    else f"{span[0]}-{span[-1]}" + (f":{span.step}" if span.step > 1 else "")
                    for span in _ranges(numbers))


def _ranges(numbers: Sequence[int]) -> list[range]:
    """Numbers that ascend, as ranges. Two numbers that are no neighbours begin a range where a third one follows at the
    same distance, or where there are no others."""
    spans: list[range] = []
    all_numbers = set(numbers)
    for number in numbers:
        last = spans[-1] if spans else range(0)
        if len(last) == 1 and (number == last[0] + 1 or len(all_numbers) == 2 or 2 * number - last[0] in all_numbers):
            spans[-1] = range(last[0], number + 1, number - last[0])
        elif len(last) > 1 and number == last[-1] + last.step:
            spans[-1] = range(last[0], number + 1, last.step)
        else:
            spans.append(range(number, number + 1))
    return spans


# --- one specification for all -----------------------------------------------------------------------------------

def pattern_of(specs: Sequence[JobSpec], indices: Sequence[int]) -> JobSpec | None:
    """The specification of all elements, with a mark wherever the index stands; None where they differ by more."""
    columns = list(zip(*(tuple(texts_of(spec)) for spec in specs), strict=False))
    counts = {sum(1 for _ in texts_of(spec)) for spec in specs}
    if len(counts) != 1:
        return None
    texts = []
    for column in columns:
        text = _template(column, indices)
        if text is None:
            return None
        texts.append(text)
    pattern = _with_texts(specs[0], texts)
    return pattern if all(_with_texts(spec, texts) == pattern for spec in specs[1:]) else None


def texts_of(spec: JobSpec) -> Iterator[str]:
    """The texts in which the index may stand."""
    yield spec.executable or ""
    yield from (str(getattr(spec, name) or "") for name in _PATHS)
    yield from spec._argument_texts() or ()
    yield from (str(value) for _, value in sorted((spec.environment or {}).items()))


def _with_texts(spec: JobSpec, texts: Sequence[str]) -> JobSpec:
    """A copy with other texts in these places."""
    spec_copy, texts_left = copy.copy(spec), iter(texts)
    spec_copy.executable = next(texts_left) or None
    for name in _PATHS:
        text = next(texts_left)
        setattr(spec_copy, name, text if getattr(spec, name) is not None else None)
    if spec.arguments is not None:
        spec_copy.arguments = [next(texts_left) for _ in spec.arguments]
    if spec.environment is not None:
        order, values = list(spec.environment), {name: next(texts_left) for name in sorted(spec.environment)}
        spec_copy.environment = {name: values[name] for name in order}
    return spec_copy


def _template(texts: Sequence[str], indices: Sequence[int]) -> str | None:
    """The text of which all of these are made by their indices, with marks; None where there is none."""
    if all(text == texts[0] for text in texts):
        return None if _WIDTH.search(texts[0]) else texts[0]
    if any(_WIDTH.search(text) for text in texts):
        return None
    for eager in (True, False):
        template = _joined(texts[0], texts[-1], str(indices[0]), str(indices[-1]), eager)
        if template is not None and all(_filled(template, n) == text for n, text in zip(indices, texts, strict=True)):
            return template
    return None


def _joined(low: str, high: str, first: str, other: str, eager: bool) -> str | None:
    """A text with marks that gives ``low`` for the first index, and ``high`` for the other. eager: a mark is set
    wherever one can stand; else only where the texts differ."""
    text, at, to = "", 0, 0
    while at < len(low) or to < len(high):
        same = low[at:at + 1] == high[to:to + 1] != ""
        mark = _mark(low[at:], high[to:], first, other) if eager or not same else None
        if mark is not None:
            width = ELEMENT_MARKS.index(mark)
            text, at, to = text + mark, at + max(width, len(first)), to + max(width, len(other))
        elif same:
            text, at, to = text + low[at], at + 1, to + 1
        else:
            return None
    return text


def _mark(low: str, high: str, first: str, other: str) -> str | None:
    """The mark with which both texts can begin."""
    zeros = re.match(f"0+{first}", low)
    widths = [*([len(zeros[0])] if zeros is not None else []), 0]
    return next((index_mark(width) for width in widths if width <= WIDEST_INDEX
                 and low.startswith(first.rjust(width, "0")) and high.startswith(other.rjust(width, "0"))), None)


def _filled(text: str, index: int) -> str:
    return _WIDTH.sub(lambda hit: str(index).rjust(ELEMENT_MARKS.index(hit[0]), "0"), text)


class Elements:
    """Those of one executor."""

    def __init__(self, executor: BatchHooks) -> None:
        self._executor = executor
        self._open: dict[str, set[str]] = {}    # by tag of the array: ids of jobs whose files are still there

    def add(self, job: Job) -> None:
        """A job is an element of an array that was submitted here."""
        self._open.setdefault(whole_tag(job.id), set()).add(job.id)

    def took_over(self, job: Job, identity: Identity | None) -> bool:
        """Whether a job that is attached to is such an element; it then is one of them."""
        if identity is None or whole_tag(job.id) not in (identity.tags or ()):
            return False
        self.add(job)
        return True

    def left(self, job: Job) -> None:
        """The files of a job have been removed: with those of the last element the submit script goes. Raises OSError.
        """
        tag = whole_tag(job.id)
        mine = self._open.get(tag)
        if mine is None:
            return
        mine.discard(job.id)
        if not mine:
            del self._open[tag]
            self._executor.host.remove(self._executor.work_directory / f"{tag}.job")

    def native_id(self, native_id: str, job: Job) -> str:
        """The native id that a job has as an element of the array with this one."""
        number = job.id[COMMON:]
        return self._executor.element_id(native_id, int(number)) if number.isdecimal() else native_id


MOST_TASKS = 100_000        # of one line that are counted out; what has more is known as a whole only

#: What becomes of the facts of the elements of an array, by their keys.
_FACTS: dict[str, Callable[[Any], Any]] = {
    "submit_time": min, "start_time": min, "end_time": max, "wall_seconds": sum, "cpu_seconds": sum,
    "memory_max_bytes": max, "memory_average_bytes": max, "processors": max, "node_count": max, "starts": max}
_ENDS = ("end_time", "wall_seconds", "cpu_seconds", "memory_max_bytes", "memory_average_bytes")
# Which element counts for the whole: the first of these states.
_ENDED = (JobState.FAILED, JobState.CANCELED, JobState.COMPLETED)
_GOING = (JobState.ACTIVE, JobState.QUEUED)


def of_elements(elements: Sequence[JobStatus]) -> JobStatus:
    """The status of an array, from those of its elements in their order; of one element its own.

    While one of them has not ended it runs if any of them has begun. Then: from its first start to its last end, the
    exit of the first that failed. Usage is added up; of memory, slots and runs it is the most that one element had.
    """
    if len(elements) == 1:
        return elements[0]
    ended = all(element.state.final for element in elements)
    order = _ENDED if ended else _GOING
    counts = min(elements, key=lambda element: order.index(element.state) if element.state in order else len(order))
    state = JobState.ACTIVE if not ended and any(element.state.final for element in elements) else counts.state
    facts = dict(counts.metadata or {})
    facts.pop("attempts", None)
    for key, choose in _FACTS.items():
        values = [element.metadata[key] for element in elements if element.metadata and key in element.metadata]
        if values and (ended or key not in _ENDS):
            facts[key] = choose(values)
    if "nodes" in facts:
        facts["nodes"] = list(dict.fromkeys(n for element in elements
                                            for n in (element.metadata or {}).get("nodes", ())))
    time = facts.get("end_time") if ended else facts.get("start_time" if state is JobState.ACTIVE else "submit_time")
    return JobStatus(state, time=time, exit_code=counts.exit_code, message=counts.message, metadata=facts)


def task_numbers(text: str) -> Iterator[int]:
    """The tasks that ``4`` or ``3-9:2,12`` names; none where it has another form or names more than MOST_TASKS."""
    named = ranges(text)
    if named is not None and sum(map(len, named)) <= MOST_TASKS:
        for span in named:
            yield from span
