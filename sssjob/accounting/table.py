"""The charge table: one row a job of an accounting log, charged or not, as Arrow record batches.

``charge_table`` takes the jobs of any reader; for what ``sacct`` prints, ``columnar`` makes the same rows column by
column wherever a job is plain, and leaves the others to the reader. Needs pyarrow (extra ``tables``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from sssjob.accounting.facts import Reason
from sssjob.accounting.pricing import Charge, Uncharged, charge
from sssjob.accounting.rates import RateSet
from sssjob.errors import UsageError
from sssjob.model import Job

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COLUMNS", "Tally", "charge_table", "schema"]

#: Column -> what it holds. Times are epoch seconds.
COLUMNS: Final[dict[str, str]] = {
    "machine": "Machine", "id": "Id", "user": "User", "group": "Group", "project": "Project", "queue": "Queue",
    "qos": "QualityOfService", "start": "StartTime", "end": "EndTime", "wall_s": "Delivered/Duration",
    "processors": "Delivered/Processors", "nodes": "Delivered/NodeCount", "charge": "what it is charged",
    "reason": "why it is not charged",
}
_TEXTS: Final = ("machine", "id", "user", "group", "project", "queue", "qos", "reason")
_DELIVERED: Final = {"wall_s": "Duration", "processors": "Processors", "nodes": "NodeCount"}
_OWN: Final = ("machine", "id", "user", "group", "project", "queue", "qos", "start", "end")
_BATCH: Final = 10_000
_WORD: Final = 2 ** 63          # the integers of Arrow are below
_DIGITS: Final = 38             # of its decimals


@dataclass(slots=True)
class Tally:
    """Jobs, those that were charged, their sum, and the others by reason."""

    jobs: int = 0
    charged: int = 0
    total: Decimal = Decimal(0)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add another one's."""
        self.jobs += other.jobs
        self.charged += other.charged
        self.total += other.total
        self.reasons.update(other.reasons)


def arrow() -> Any:
    """pyarrow; UsageError where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise UsageError("charge tables need pyarrow: pip install 'sssjob[tables]'") from None
    return pyarrow


def schema(rates: RateSet) -> pa.Schema:
    """The columns with their types; the rates and the currency stand in the metadata."""
    pa = arrow()
    types = {name: pa.string() if name in _TEXTS else pa.int64() for name in COLUMNS}
    types |= {"processors": pa.float64(), "charge": pa.decimal128(_DIGITS, rates.precision)}
    return pa.schema(list(types.items()), {"rates": rates.identity, "currency": rates.currency})


def charge_table(jobs: Iterable[Job], rates: RateSet, tally: Tally) -> Iterator[pa.RecordBatch]:
    """The rows of jobs, some thousand at once. tally: is added to."""
    rows: list[tuple[Any, ...]] = []
    for job in jobs:
        rows.append(row(job, rates, tally))
        if len(rows) == _BATCH:
            yield batch(rows, rates)
            rows = []
    if rows:
        yield batch(rows, rates)


def batch(rows: list[tuple[Any, ...]], rates: RateSet) -> pa.RecordBatch:
    """Rows as a record batch."""
    pa, fields = arrow(), schema(rates)
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(list(column), fields.field(i).type) for i, column in enumerate(columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)


def row(job: Job, rates: RateSet, tally: Tally) -> tuple[Any, ...]:
    """The row of one job, counted. Numbers that no column can hold are left out, and the job is not charged."""
    made = charge(job, rates)
    tally.jobs += 1
    delivered = job.delivered
    values: dict[str, Any] = {name: job.value(COLUMNS[name]) for name in _OWN}
    values |= {name: None if delivered is None else delivered.value(tag) for name, tag in _DELIVERED.items()}
    values["processors"] = None if values["processors"] is None else float(values["processors"])
    wide = [name for name, value in values.items() if isinstance(value, int) and not -_WORD <= value < _WORD]
    values.update(dict.fromkeys(wide))
    amount, reason = None, None
    if wide or (isinstance(made, Charge) and made.amount >= 10 ** (_DIGITS - rates.precision)):
        made = Uncharged(Reason.TOO_LARGE, "a column of the table does not hold it")
    if isinstance(made, Charge):
        amount = made.amount
        tally.charged += 1
        tally.total += amount
    else:
        reason = str(made.reason)
        tally.reasons[reason] += 1
    return tuple({**values, "charge": amount, "reason": reason}[name] for name in COLUMNS)
