"""The charge table: one row a job of an accounting log, charged or not, as batches of rows.

``charge_table`` takes the jobs of any reader; for what ``sacct`` prints, ``columnar`` makes the same rows column by
column wherever a job is plain, and leaves the others to the reader. Batches are those of Arrow where pyarrow (extra
``tables``) is installed, else ``RowBatch``, which can be printed but not be written as Parquet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sssjob.accounting._arrow import pa
from sssjob.accounting.amounts import Reason
from sssjob.accounting.plans import Plans
from sssjob.accounting.pricing import Uncharged
from sssjob.accounting.rates import RateSet
from sssjob.document.held import held, ran
from sssjob.document.model import Job
from sssjob.errors import UsageError

if TYPE_CHECKING:
    from sssjob.accounting.privacy import Privacy

__all__ = [
    "COLUMNS", "DIGITS", "Batch", "RowBatch", "Tally", "arrow", "batch", "charge_table", "csv_text", "has_arrow", "row",
    "schema", "shown",
]

#: Column -> what it holds. Times are epoch seconds.
COLUMNS: Final[dict[str, str]] = {
    "machine": "Machine", "id": "Id", "user": "User", "group": "Group", "project": "Project", "queue": "Queue",
    "qos": "QualityOfService", "start": "StartTime", "end": "EndTime", "wall_s": "Delivered/Duration",
    "processors": "Delivered/Processors", "nodes": "Delivered/NodeCount", "charge": "what it is charged",
    "reason": "why it is not charged",
}
_TEXTS: Final = ("machine", "id", "user", "group", "project", "queue", "qos", "reason")
_OWN: Final = ("machine", "id", "user", "group", "project", "queue", "qos", "start", "end")
_BATCH: Final = 10_000
_WORD: Final = 2 ** 63          # the integers of Arrow are below
DIGITS: Final = 38             # of its decimals


@dataclass(slots=True)
class Tally:
    """Jobs, those that were charged, their sum, and the others by reason. unsaid: those that do not say an amount
    which each job has, by the label of the rate for it."""

    jobs: int = 0
    charged: int = 0
    total: Decimal = Decimal(0)
    reasons: Counter[str] = field(default_factory=Counter)
    unsaid: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add another one's."""
        self.jobs += other.jobs
        self.charged += other.charged
        self.total += other.total
        self.reasons.update(other.reasons)
        self.unsaid.update(other.unsaid)

    def give_up(self, amount: Decimal | None, reason: str | None, why: str) -> None:
        """Count a job that was charged an amount, or was not for a reason, as not charged for another one."""
        if amount is not None:
            self.charged -= 1
            self.total -= amount
        self.reasons[why] += 1
        self.reasons.subtract(() if reason is None else (reason,))
        self.reasons = +self.reasons


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows of the charge table where pyarrow is not installed; each has a value for each of COLUMNS."""

    rows: list[tuple[Any, ...]]

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return len(self.rows)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows by name of the column."""
        return [dict(zip(COLUMNS, row, strict=True)) for row in self.rows]


Batch: TypeAlias = "pa.RecordBatch | RowBatch"


def has_arrow() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


def arrow() -> Any:
    """pyarrow; UsageError where it is not installed."""
    if not has_arrow():
        raise UsageError("Parquet files and charge tables made by several processes need pyarrow: "
                         "pip install 'sssjob[tables]'")
    import pyarrow

    return pyarrow


def schema(rates: RateSet) -> pa.Schema:
    """The columns with their types; the rates and the currency stand in the metadata."""
    pa = arrow()
    types = {name: pa.string() if name in _TEXTS else pa.int64() for name in COLUMNS}
    types |= {"processors": pa.float64(), "charge": pa.decimal128(DIGITS, rates.precision)}
    return pa.schema(list(types.items()), {"rates": rates.identity, "currency": rates.currency})


def charge_table(jobs: Iterable[Job], rates: RateSet, tally: Tally) -> Iterator[Batch]:
    """The rows of jobs, some thousand at once. tally: is added to."""
    rows, plans = list[tuple[Any, ...]](), Plans(rates)
    for job in jobs:
        rows.append(row(job, plans, tally))
        if len(rows) == _BATCH:
            yield batch(rows, rates)
            rows = []
    if rows:
        yield batch(rows, rates)


def batch(rows: list[tuple[Any, ...]], rates: RateSet) -> Batch:
    """Rows as a batch."""
    if not has_arrow():
        return RowBatch(rows)
    pa, fields = arrow(), schema(rates)
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(list(column), fields.field(i).type) for i, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)


def shown(some: Batch, privacy: Privacy) -> Batch:
    """A batch as it may be shown: each column as a profile has the property that it holds; the reason stays."""
    columns: list[Any] = list(zip(*some.rows, strict=True)) if isinstance(some, RowBatch) else list(some.columns)
    for at, (name, source) in enumerate(COLUMNS.items() if columns else ()):
        tag = "Charge" if name == "charge" else source.rpartition("/")[2]
        treatment = "keep" if name == "reason" else privacy.treatment(tag)
        if treatment == "keep":
            continue
        values: list[str | None] = [None] * some.num_rows
        if treatment == "pseudonym" and name in _TEXTS:
            texts = columns[at] if isinstance(some, RowBatch) else columns[at].to_pylist()
            names = {text: privacy.pseudonym(tag, text) for text in set(texts) if text is not None}
            values = [names.get(text) for text in texts]
        columns[at] = values if isinstance(some, RowBatch) else arrow().array(values, columns[at].type)
    if isinstance(some, RowBatch):
        return RowBatch(list(zip(*columns, strict=True)))
    return arrow().RecordBatch.from_arrays(columns, schema=some.schema)


def csv_text(some: Batch | None, *, head: bool) -> str:
    """A batch as lines of CSV, texts in quotation marks; None: no line. head: the names of the columns before them."""
    names = ",".join(f'"{name}"' for name in COLUMNS) + "\n" if head else ""
    if some is None:
        return names
    if isinstance(some, RowBatch):
        return names + "".join(",".join(map(_cell, cells)) + "\n" for cells in some.rows)
    import pyarrow.csv as csv

    buffer = BytesIO()
    csv.write_csv(some, buffer, csv.WriteOptions(include_header=head, quoting_style="needed"))
    return buffer.getvalue().decode()


def _cell(value: object) -> str:
    if isinstance(value, str):
        doubled = value.replace('"', '""')
        return f'"{doubled}"'
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def row(job: Job, plans: Plans, tally: Tally) -> tuple[Any, ...]:
    """The row of one job, counted. Numbers that no column can hold are left out, and the job is not charged."""
    by_plan = plans.amount(job)
    price: Decimal | Uncharged
    price, unsaid = (by_plan, ()) if isinstance(by_plan, Uncharged) else by_plan
    tally.jobs += 1
    values: dict[str, Any] = {name: job.value(COLUMNS[name]) for name in _OWN}
    wall, nodes, processors = ran(job), held(job, "NodeCount"), held(job, "Processors")
    values |= {"wall_s": None if wall is None else int(wall), "nodes": None if nodes is None else int(nodes),
               "processors": None if processors is None else float(processors)}
    wide = [name for name, value in values.items() if isinstance(value, int) and not -_WORD <= value < _WORD]
    values.update(dict.fromkeys(wide))
    amount, reason = None, None
    if wide or (isinstance(price, Decimal) and price >= 10 ** (DIGITS - plans.rates.precision)):
        price = Uncharged(Reason.TOO_LARGE, "a column of the table does not hold it")
    if isinstance(price, Decimal):
        amount = price
        tally.charged += 1
        tally.total += amount
        tally.unsaid.update(unsaid)
    else:
        reason = str(price.reason)
        tally.reasons[reason] += 1
    return tuple({**values, "charge": amount, "reason": reason}[name] for name in COLUMNS)
