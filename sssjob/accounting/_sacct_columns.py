"""A block of the output of sacct as Arrow columns: which of its jobs are plain, and what those say.

A job is plain where the reader would take each text without a thought and tell nothing of it. What takes thought about
a text is done once for each different one.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from sssjob.accounting._arrow import pa, pc
from sssjob.accounting._sacct_clocks import clock_micros, epochs, number_before, numbers_of, whole_seconds
from sssjob.accounting._sacct_shapes import NAMES, WHO, Shape, Shapes
from sssjob.accounting._sacct_sizes import peaks
from sssjob.accounting.table import has_arrow
from sssjob.translators.records._slurm import ending
from sssjob.translators.records.base import Reading, node, recall

_Array = Any            # of Arrow, one element a job
_Texts = Any            # a dictionary-encoded array of Arrow
_REQUIRED: Final = frozenset(("jobid", "elapsedraw", "start", "end", "state"))
_COUNT: Final = r"^[1-9][0-9]{0,8}$"
_MAYBE: Final = r"^([1-9][0-9]{0,8})?$"
_CLOCK: Final = r"^(([0-9]{1,5}-)?([0-9]{1,4}:)?[0-9]{1,4}:[0-9]{1,4}(\.[0-9]{1,6})?)?$"
_SPAN: Final = _CLOCK.replace("^(", "^([^0-9].*|", 1)
_SIZE: Final = r"^([0-9]{1,15}(\.[0-9]{1,6})?[KMGTP]?)?$"
_ENERGY: Final = r"^(0|[1-9][0-9]{0,14})?$"
#: Column -> what may stand in it for a plain job. Columns that are in none of these tables may hold any text: the
#: reader makes a property of it by which no shape goes, or leaves it alone.
_FORMS: Final = {
    "jobid": r"^[1-9][0-9]{0,9}(_[0-9]{1,9})?$", "elapsedraw": _COUNT, "ncpus": _COUNT, "alloccpus": _COUNT,
    "nnodes": _COUNT, "allocnodes": _COUNT, "reqcpus": _MAYBE, "reqnodes": _MAYBE, "restarts": r"^[0-9]{0,9}$",
    "cputimeraw": r"^[1-9][0-9]{0,16}$", "totalcpu": _CLOCK, "usercpu": _CLOCK, "systemcpu": _CLOCK,
    "elapsed": _CLOCK, "suspended": _CLOCK, "timelimit": _SPAN, "planned": _SPAN, "reserved": _SPAN,
    "timelimitraw": r"^([0-9]{1,9}|[^0-9].*)?$", "maxrss": _SIZE, "maxvmsize": _SIZE, "consumedenergyraw": _ENERGY,
    "consumedenergy": _ENERGY, "exitcode": r"^([0-9]{1,3}:[0-9]{1,3})?$",
    "reqmem": r"^([0-9]{1,15}(\.[0-9]{1,6})?[KMGTP]?[cn]?|[^0-9].*)?$",
}
#: Columns of identifiers, whose length has a limit.
_NAMED: Final = (*NAMES, *WHO.values(), "jobname")
_TIMES: Final = ("submit", "eligible", "start", "end")
#: Columns of a step that the reader looks at; all others of its row it leaves alone.
_STEP: Final = ("totalcpu", "usercpu", "systemcpu", "maxrss", "maxvmsize", "exitcode")
_OUTPUT: Final = {"user": "user", "group": "group", "account": "project", "cluster": "machine", "partition": "queue",
                  "qos": "qos"}


def parted(data: bytes, names: list[str]) -> Any:
    """The columns of lines of text as a table of Arrow; None where a line has another number of them.

    One thread does it: of several, one may still hold ``data`` when all is read, and a process that ends just then is
    aborted, because that thread can no longer take the interpreter's lock to let the bytes go.
    """
    import pyarrow.csv as csv

    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
            csv.ParseOptions(delimiter="|", quote_char=False, double_quote=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False))
    except pa.ArrowInvalid:
        return None
    return table.combine_chunks()


@dataclass(slots=True)
class Columns:
    """A block as columns. jobs: the rows of the jobs themselves; first, last: of each job its first line and the one
    after its last, counted from 0 in the block; plain: the numbers of the plain jobs, in their order; source: the block
    as it stands in the log."""

    jobs: Any
    reading: Reading
    shapes: Shapes
    first: list[int]
    last: list[int]
    plain: list[int] = field(default_factory=list)
    fits: _Array = None
    arrays: dict[str, _Array] = field(default_factory=dict)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    source: bytes = b""
    _texts: list[bytes] | None = None

    @staticmethod
    def suit(names: Sequence[str]) -> bool:
        """Whether rows of such columns can be read so, and pyarrow is there to do it."""
        return set(names) >= _REQUIRED and len(set(names)) == len(names) and has_arrow()

    @classmethod
    def of(cls, data: bytes, odd: Sequence[int], names: list[str], reading: Reading, shapes: Shapes) -> Columns | None:
        """The columns of lines of UTF-8 without control characters, of which the last has an end; None where not all of
        them have as many columns, where one is empty, no row, or a step whose job does not stand before it, or where a
        time needs the reader. odd: the numbers of lines that need it too."""
        table = None if b"\n\n" in data or data.startswith(b"\n") else parted(data, names)
        if table is None:
            return None
        ids = table.column("jobid").combine_chunks()
        main = pc.invert(pc.match_substring(ids, "."))
        if table.num_rows != data.count(b"\n") or not main[0].as_py() or not pc.all(
                pc.match_substring_regex(ids, "^[0-9]")).as_py():
            return None
        first = pc.indices_nonzero(main).to_pylist()
        whole = len(first) == table.num_rows
        odd_steps = frozenset[int]() if whole else _odd_steps(table, ids, main)
        if odd_steps is None:
            return None
        columns = cls(table if whole else table.filter(main), reading, shapes, first, [*first[1:], table.num_rows])
        odd_jobs = odd_steps.union(bisect(first, line) - 1 for line in odd)
        if "maxrss" in names:
            columns.arrays["peak"] = peaks(table.column("maxrss").combine_chunks(), main, whole)
        return columns if columns._look(odd_jobs, b" " in data or b"\t" in data or not data.isascii()) else None

    # -- which jobs are plain
    def _look(self, odd: frozenset[int], blanks: bool) -> bool:
        """Find the plain jobs, of which the odd ones are none; False where nothing can be said of the block. blanks:
        whether there may be some."""
        names = set(self.jobs.column_names)
        for name in names.intersection(_TIMES):
            seconds_ = epochs(self.column(name), self.reading.context.options.get("timezone"))
            if seconds_ is None:
                return False
            self.arrays[name] = seconds_
        jobs = range(len(self.first))
        self.fits = pa.array([job not in odd for job in jobs] if odd else [True] * len(jobs))
        for name in names & _FORMS.keys():
            self._only(pc.match_substring_regex(self.column(name), _FORMS[name]))
        for name in names.intersection(_NAMED):
            self._only(pc.less_equal(pc.utf8_length(self.column(name)), self.reading.context.limits.identifier))
            if blanks:
                self._only(pc.greater(self._each(name, _tidy), 0))
        if "qos" in names:      # which sacct says of a job that ended just now; it is no name
            self._only(pc.not_equal(self.column("qos"), "Unknown"))
        self._only(pc.greater(self._each("state", _ended), 0))
        self._amounts(names)
        self._lasted(names)
        self._worked(names)
        self._again()
        self.plain = pc.indices_nonzero(self.fits).to_pylist()
        return True

    def _only(self, holds: _Array) -> None:
        self.fits = pc.and_(self.fits, holds)

    def column(self, name: str) -> _Array:
        """A column of the jobs as one array."""
        return self.jobs.column(name).combine_chunks()

    def _each(self, name: str, number: Callable[[str], int]) -> _Array:
        """A number for each text, made once for each different one."""
        return numbers_of(self.column(name).dictionary_encode(), number)

    def _count(self, name: str) -> _Array:
        """The whole numbers of a column, 0 where none stands there or the job is not plain anyway."""
        texts = self.column(name)
        return pc.if_else(pc.and_(self.fits, pc.not_equal(texts, "")), texts, "0").cast(pa.int64())

    def _micros(self, name: str) -> _Array:
        """Microseconds of the clocks of a column, 0 where none stands there or the job is not plain anyway."""
        texts = pc.if_else(self.fits, self.column(name), "")
        return clock_micros(texts, name)

    def _seconds(self, name: str) -> _Array:
        """Whole seconds of such clocks."""
        return whole_seconds(self._micros(name))

    def _agreed(self, *evidence: _Array) -> _Array | None:
        """The numbers that are said, 0 for none; jobs of which two are said are not plain."""
        agreed = None
        for numbers in evidence:
            if agreed is None:
                agreed = numbers
                continue
            self._only(pc.or_(pc.equal(agreed, numbers), pc.or_(pc.equal(numbers, 0), pc.equal(agreed, 0))))
            agreed = pc.if_else(pc.equal(agreed, 0), numbers, agreed)
        return agreed

    def _amounts(self, names: set[str]) -> None:
        """Processors, nodes, and what else was held or asked for, and which jobs agree about them."""
        cpus, nodes = self._tres("alloctres") if "alloctres" in names else ([], [])
        energy = [self._count(name) for name in ("consumedenergyraw", "consumedenergy") if name in names]
        if energy:
            self.arrays["energy"] = pc.if_else(pc.equal(energy[0], 0), energy[-1], energy[0])
        listed = [self._each("nodelist", _listed)] if "nodelist" in names else []
        for numbers in listed:
            blank = "allocnodes" in names or "nnodes" in names
            self._only(pc.greater_equal(numbers, 0 if blank else 1))
        for amount, columns, more in (("processors", ("alloccpus", "ncpus"), cpus),
                                      ("nodes", ("allocnodes", "nnodes"), [*nodes, *listed])):
            amounts = self._agreed(*(self._count(name) for name in columns if name in names), *more)
            if amounts is not None:
                self.arrays[amount] = amounts
        asked_cpus, asked_nodes = self._tres("reqtres") if "reqtres" in names else ([], [])
        for column, requested_numbers in (("reqcpus", asked_cpus), ("reqnodes", asked_nodes)):
            asked = self._agreed(*(self._count(name) for name in (column,) if name in names), *requested_numbers)
            if asked is not None:
                self.arrays[column] = asked

    def _tres(self, name: str) -> tuple[list[_Array], list[_Array]]:
        """The processors and the nodes of a column of TRES, 0 where they are not said; jobs of whose text no form is
        known are not plain."""
        coded = self.column(name).dictionary_encode()
        forms = self.shapes.forms
        texts = [forms.cut(text) for text in coded.dictionary.to_pylist()]
        cpus, nodes = self._counts_of(texts)
        if name == "alloctres":
            self.lists["texts"], self.lists["of"] = texts, coded.indices.to_pylist()
        self._only(pc.take(pa.array([cut is not None for cut in texts], pa.bool_()), coded.indices))
        first, second = ([pc.take(pa.array(values, pa.int64()), coded.indices)] if any(values) else []
                         for values in (cpus, nodes))
        return first, second

    def _counts_of(self, texts: Sequence[tuple[int, tuple[str, ...]] | None]) -> tuple[list[int], list[int]]:
        """The processors and the nodes of texts that were cut by their forms, 0 where they are not said."""
        cpus, nodes, forms = list[int](), list[int](), self.shapes.forms.forms
        for cut in texts:
            cpu, node = (-1, -1) if cut is None else (forms[cut[0]].cpu, forms[cut[0]].node)
            cpus.append(int(cut[1][cpu]) if cut is not None and cpu >= 0 else 0)
            nodes.append(int(cut[1][node]) if cut is not None and node >= 0 else 0)
        return cpus, nodes

    def _lasted(self, names: set[str]) -> None:
        """Times, and which jobs agree about how long they took."""
        wall = self.arrays["wall"] = self._count("elapsedraw")
        start, end = self.arrays["start"], self.arrays["end"]
        span = pc.subtract(end, start)
        for holds in (pc.greater(start, 0), pc.greater_equal(end, start), pc.greater(wall, 0),
                      pc.less_equal(wall, pc.add(span, 2))):
            self._only(holds)
        if borders := self.shapes.rates.borders:
            first, last = (number_before(moments, borders)
                           for moments in (start, pc.max_element_wise(start, pc.subtract(end, 1))))
            self.arrays["prices"] = first if self.shapes.rates.valid_by == "start" else last
            if self.shapes.rates.valid_by == "split":
                self._only(pc.equal(first, last))
        if "submit" in names:
            self._only(pc.greater(self.arrays["submit"], 0))
            self._only(pc.greater_equal(start, pc.subtract(self.arrays["submit"], 2)))
        if "eligible" in names:
            self._only(pc.greater(self.arrays["eligible"], 0))
        if "suspended" in names:
            idle = self._seconds("suspended")
            rest = pc.abs(pc.subtract(pc.subtract(span, idle), wall))
            self._only(pc.or_(pc.equal(idle, 0), pc.less_equal(rest, 2)))
        if "elapsed" in names:
            elapsed = self._seconds("elapsed")
            self._only(pc.or_(pc.equal(self.column("elapsed"), ""),
                              pc.less_equal(pc.abs(pc.subtract(elapsed, wall)), 2)))

    def _worked(self, names: set[str]) -> None:
        """CPU time, of which there is no more than the processors had."""
        processors, wall = self.arrays.get("processors"), self.arrays["wall"]
        if "cputimeraw" in names:
            self._only(pc.equal(self._count("cputimeraw"), pc.multiply(wall, 0 if processors is None else processors)))
        used = [self._micros(name) for name in ("totalcpu", "usercpu", "systemcpu") if name in names]
        if not used:
            return
        self.arrays["cpu_us"] = used[0]
        most = whole_seconds(used[0])
        for more in used[1:]:
            most = pc.add(most, whole_seconds(more))
        alone = pa.array([last - first == 1 for first, last in zip(self.first, self.last, strict=True)])
        self._only(pc.or_(alone, pc.greater(most, 0)))      # else the steps say it
        if processors is not None:
            possible = pc.multiply(pc.multiply(pc.add(wall, 60), processors), 2)
            self._only(pc.or_(pc.equal(processors, 0), pc.less_equal(most, possible)))

    def _again(self) -> None:
        """Leave a run to the reader whose job runs once more in the next row, where that one is: the steps of a row
        that is rejected are those of the run before it."""
        ids = self.column("jobid")
        again = pc.and_(pc.equal(ids[:-1], ids[1:]), pc.invert(self.fits[1:]))
        self._only(pa.concat_arrays([pc.invert(again), pa.array([True])]))

    # -- shapes
    def by_shape(self) -> dict[Shape, Sequence[int]]:
        """The plain jobs by their shape."""
        parts, shapes = list[list[Any]](), self.shapes
        of, texts = self.lists.get("of"), self.lists.get("texts")
        if of is None or texts is None:
            none = shapes.forms.cut("")
            parts.append([0 if none is None else none[0]] * len(self.first))
        else:
            forms = [-1 if cut is None else cut[0] for cut in texts]
            parts.append([forms[text] for text in of])
        energy = self.arrays.get("energy")
        parts.append([False] * len(self.first) if energy is None else [joule > 0 for joule in self.listed("energy")])
        parts += [self._classes(column, named) for column, named in shapes.named.items()]
        parts.append(self._states() if shapes.by_state else [""] * len(self.first))
        parts.append(self.listed("prices") if "prices" in self.arrays else [0] * len(self.first))
        return {Shape(key[0], key[1], key[2:-2], *key[-2:]): jobs for key, jobs in self._grouped(parts)}

    def _grouped(self, parts: Sequence[Sequence[Any]]) -> Iterable[tuple[tuple[Any, ...], Sequence[int]]]:
        """(what the parts say of them, plain jobs) for all that differ in some part."""
        first = self.plain[0] if self.plain else 0
        differ = [part for part in parts if len(set(part)) > 1]
        if not differ:
            return [(tuple([part[first] for part in parts]), self.plain)] if self.plain else ()
        groups: defaultdict[Any, list[int]] = defaultdict(list)
        rows: Sequence[Any] = differ[0] if len(differ) == 1 else list(zip(*differ, strict=True))
        for job in self.plain:
            groups[rows[job]].append(job)
        return [(tuple([part[jobs[0]] for part in parts]), jobs) for jobs in groups.values()]

    def _classes(self, column: str, named: frozenset[str]) -> list[str | None]:
        """Of each job the text of a column where it is empty or one of those; None for any other."""
        coded = self._who(column).dictionary_encode()
        of = [text if text in named or not text else None for text in coded.dictionary.to_pylist()]
        return [of[code] for code in coded.indices.to_pylist()]

    def _states(self) -> list[str]:
        """The first word of each job's state."""
        coded = self.column("state").dictionary_encode()
        of = [text.partition(" ")[0] for text in coded.dictionary.to_pylist()]
        return [of[code] for code in coded.indices.to_pylist()]

    def _who(self, column: str) -> _Array:
        """The texts of a column as the reader takes them."""
        names, other = self.jobs.column_names, WHO.get(column)
        texts = self.column(column) if column in names else pa.array([""] * len(self.first))
        if other in names:
            return pc.if_else(pc.equal(texts, ""), self.column(str(other)), texts)
        if column == "cluster" and self.reading.machine is not None:
            return pc.if_else(pc.equal(texts, ""), self.reading.machine, texts)
        return texts

    def listed(self, name: str) -> list[int]:
        """The numbers of a column, of every job."""
        numbers = self.lists.get(name)
        if numbers is None:
            numbers = self.lists[name] = self.arrays[name].to_pylist()
        return numbers

    # -- what they say
    def coded(self, name: str) -> list[int]:
        """A number for the text of each job in a column, the same for the same text."""
        codes: list[int] = self.column(name).dictionary_encode().indices.to_pylist()
        return codes

    def row(self, job: int) -> dict[str, str]:
        """The texts of a plain job by column."""
        if self._texts is None:
            self._texts = self.source.split(b"\n")
        return dict(zip(self.jobs.column_names, self._texts[self.first[job]].decode().split("|"), strict=True))

    def runs(self, jobs: Sequence[int]) -> Iterable[tuple[str, str, int]]:
        """(machine, id, start in epoch seconds) of jobs."""
        runs = list(zip(self._who("cluster").to_pylist(), self.column("jobid").to_pylist(), self.listed("start"),
                        strict=True))
        return runs if len(jobs) == len(runs) else (runs[job] for job in jobs)

    def nameless(self) -> int | None:
        """The first plain job that names no machine."""
        blank = pc.and_(self.fits, pc.equal(self._who("cluster"), ""))
        return next((job for job in pc.indices_nonzero(blank).to_pylist() if job in set(self.plain)), None)

    def texts(self, job: int) -> dict[str, str]:
        """Who the job is of, and its state, by column."""
        names = self.jobs.column_names
        return {name: self.jobs.column(name)[job].as_py() for name in (*NAMES, *WHO.values(), "state") if name in names}

    def seconds(self, jobs: Sequence[int]) -> Sequence[int]:
        """How long jobs took."""
        return self._of("wall", jobs)

    def amounts(self, kind: str | int, jobs: Sequence[int]) -> Sequence[int]:
        """The amounts of a kind, as a shape names it, of jobs that have the shape."""
        if isinstance(kind, str):
            return self._of(kind, jobs)
        of, texts = self.lists["of"], self.lists["texts"]
        return [int(texts[of[job]][1][kind]) for job in jobs]

    def _of(self, name: str, jobs: Sequence[int]) -> Sequence[int]:
        values = self.listed(name)
        return values if len(jobs) == len(values) else [values[job] for job in jobs]

    def output(self) -> dict[str, _Array]:
        """The columns of the charge table that plain jobs state, but what they are charged."""
        columns = {"id": self.column("jobid"), "start": self.arrays["start"], "end": self.arrays["end"],
                   "wall_s": self.arrays["wall"]}
        for name in ("processors", "nodes"):
            if name in self.arrays:
                columns[name] = _unless(pc.equal(self.arrays[name], 0), self.arrays[name])
        for column, name in _OUTPUT.items():
            texts = self._who(column)
            columns[name] = _unless(pc.equal(texts, ""), texts)
        if len(self.plain) == len(self.first):
            return columns
        return {name: pc.take(values, self._indices()) for name, values in columns.items()}

    def _indices(self) -> _Array:
        return pa.array(self.plain, pa.int64())

    def keep(self, jobs: list[int]) -> None:
        """Take no other jobs as plain."""
        self.plain = jobs

    def odd(self) -> list[range]:
        """The jobs that are not plain, those together that follow each other."""
        return [range(before + 1, other) for before,
                other in pairwise([-1, *self.plain, len(self.first)]) if other > before + 1]

    def lines_of_plain(self) -> int:
        """How many lines the plain jobs have."""
        if len(self.plain) == len(self.first):
            return self.last[-1] - self.first[0]
        return sum(self.last[job] - self.first[job] for job in self.plain)


def _odd_steps(table: Any, ids: _Array, main: _Array) -> frozenset[int] | None:
    """The jobs of which a step is odd; None where a step stands behind another job."""
    owner = pc.subtract(pc.cumulative_sum(main.cast(pa.int64())), 1)
    whose = pc.take(ids.filter(main), owner)
    if not pc.all(pc.equal(pc.list_element(pc.split_pattern(ids, ".", max_splits=1), 0), whose)).as_py():
        return None
    odd = pa.array([False] * table.num_rows)
    for name in set(table.column_names).intersection(_STEP):
        holds = pc.match_substring_regex(table.column(name).combine_chunks(), _FORMS[name])
        odd = pc.or_(odd, pc.invert(holds))
    if "tresusageintot" in table.column_names:      # which the reader adds up
        odd = pc.or_(odd, pc.match_substring(table.column("tresusageintot").combine_chunks(), "gres/gpuutil"))
    return frozenset(pc.unique(owner.filter(pc.and_(odd, pc.invert(main)))).to_pylist())


def _unless(mask: _Array, values: _Array) -> _Array:
    """The values, null where the mask holds."""
    return pc.if_else(mask, pa.scalar(None, values.type), values)


def _tidy(text: str) -> int:
    """1 where no blank stands at an end of a text or beside another one."""
    return int(text == " ".join(text.split()))


def _ended(text: str) -> int:
    """1 where the state is one of a job that has ended, and known."""
    state, _, _, is_known = ending(text, "", None)
    return int(is_known and state == "Completed" and text == text.strip())


def _listed(text: str) -> int:
    """How many nodes a list names, 0 where there is none, -1 where the reader has to look at it."""
    if not text:
        return 0
    if text == "None assigned":
        return -1
    _, count, wrong = recall(node, text)
    return -1 if wrong else count
