"""Sums by day, user, project and queue as Parquet, for other tools."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction
from io import BytesIO
from typing import Any, Final

from sssjob.accounting.table import arrow
from sssjob.accounting.totals import Totals

__all__ = ["CELLS", "CUBE", "cube_of"]

#: What cells are told apart by, beside the day.
CUBE: Final = ("User", "Project", "Queue")
#: How many cells there may be: each takes about 2 KB until all jobs are read.
CELLS: Final = 1_000_000
#: Column -> attribute of the sums. Seconds, joules, jobs.
_SUMS: Final = {
    "jobs": "jobs", "failed": "failed", "wall_s": "wall", "processor_s": "processors", "cpu_s": "cpu", "gpu_s": "gpus",
    "node_s": "nodes", "requested_processor_s": "requested", "requested_used_processor_s": "requested_used",
    "energy_j": "energy", "waited_jobs": "waited", "wait_s": "wait",
}
_COUNTS: Final = ("jobs", "failed", "waited_jobs", "wait_s")
_DIGITS: Final = 9


def cube_of(totals: Totals) -> bytes:
    """The groups of ``CUBE`` by day as Parquet. Charges have a column a currency, ``charge_EUR`` to nine digits. Raises
    UsageError without pyarrow."""
    pa = arrow()
    import pyarrow.parquet as parquet

    groups = totals.groups()
    currencies = sorted({currency for group in groups for currency in group.sums.charges})
    columns: dict[str, Any] = {"day": pa.array([date.fromisoformat(g.period) if g.period else None for g in groups],
                                               pa.date32())}
    for n, name in enumerate(CUBE):
        columns[name.lower()] = pa.array([g.key[n] for g in groups], pa.string())
    for name, attribute in _SUMS.items():
        values = [getattr(group.sums, attribute) for group in groups]
        columns[name] = pa.array(values, pa.int64()) if name in _COUNTS else pa.array(map(float, values), pa.float64())
    for currency in currencies:
        columns[f"charge_{currency or 'credits'}"] = pa.array(
            [_decimal(g.sums.charges.get(currency)) for g in groups], pa.decimal128(38, _DIGITS))
    file = BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def _decimal(amount: Fraction | None) -> Decimal | None:
    return None if amount is None else Decimal(round(amount * 10**_DIGITS)).scaleb(-_DIGITS)
