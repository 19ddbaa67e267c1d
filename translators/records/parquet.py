"""Format ``parquet``: jobs as a table for analysis, the columns of ``table`` with types; written only. Needs pyarrow
(extra ``tables``).

Row groups of 10,000 jobs are written as they are full, so memory holds one. Times and counts are 64-bit integers,
Charge is an exact decimal of nine places, what may have a fraction is a float. A number that does not fit is null,
which is told. Option ``fields``: a comma list of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from io import RawIOBase
from itertools import islice
from typing import Any, Final

from sssjob.document.element import Value
from sssjob.document.model import Document
from sssjob.errors import UsageError
from sssjob.translators.base import WriteContext
from sssjob.translators.records._usage import Telling
from sssjob.translators.records.base import RecordTranslator, no_reading
from sssjob.translators.records.table import JOBS, Column, Table, chosen

__all__ = ["TRANSLATOR"]

_GROUP: Final = 10_000
_PLACES: Final = Decimal("1E-9")
_TEXTS: Final = ("name", "text", "word", "comma list")
_FLOATS: Final = ("gpus", "energy_j", "billing")
_MOST: Final = 1 << 63


class _Sink(RawIOBase):
    """What the writer of Parquet has written and nobody has taken yet."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[bytes] = []
        self.at = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """How much was written."""
        return self.at

    def write(self, data: Any, /) -> int:
        """Hold a copy; gives its length."""
        self.held.append(bytes(data))
        self.at += len(self.held[-1])
        return len(self.held[-1])

    def taken(self) -> bytes:
        """All of it, once."""
        held, self.held = self.held, []
        return b"".join(held)


def _blobs(records: Iterable[Any], context: WriteContext, table: Table = JOBS) -> Iterator[bytes]:
    """The pieces of a file; UsageError for an unknown column and without pyarrow."""
    columns = chosen(context, table.columns)
    try:
        import pyarrow as pa
        import pyarrow.parquet as parquet
    except ImportError:
        raise UsageError("format parquet needs pyarrow: pip install 'sssjob[tables]'") from None
    schema = pa.schema([pa.field(c.name, _type(c, pa), metadata={"unit": c.unit}) for c in columns])

    def pieces() -> Iterator[bytes]:
        """The file, group of rows by group of rows."""
        sink, table_rows, telling = _Sink(), table.rows(records, columns, context), Telling(context)
        with parquet.ParquetWriter(sink, schema) as writer:
            while group := list(islice(table_rows, _GROUP)):
                cells = [pa.array([_cell(row[n], c, telling) for row in group], schema.field(n).type)
                         for n, c in enumerate(columns)]
                writer.write_batch(pa.record_batch(cells, schema=schema))
                yield sink.taken()
        yield sink.taken()
    return pieces()


def _type(column: Column, pa: Any) -> Any:
    if column.unit in _TEXTS:
        return pa.string()
    if column.name == "charge":
        return pa.decimal128(38, 9)
    return pa.float64() if column.name in _FLOATS else pa.int64()


def _cell(value: Value | None, column: Column, telling: Telling) -> str | int | float | Decimal | None:
    """A value of the column's type; None where it does not fit."""
    if value is None or column.unit in _TEXTS:
        return None if value is None else str(value)
    if isinstance(value, (int, Decimal)):
        if column.name == "charge":
            try:
                exact = Decimal(value).quantize(_PLACES)
            except InvalidOperation:
                exact = None
            if exact == value:
                return exact
        elif column.name in _FLOATS:
            return float(value)
        elif -_MOST <= value < _MOST and value == int(value):
            return int(value)
    telling.tell("SSS501", column.name, f"a value does not fit into column {column.name} and is left out")
    return None


def _no_text(document: Document, context: WriteContext) -> str:
    raise UsageError("parquet is no text; write it with sssjob convert --output FILE")


TRANSLATOR = RecordTranslator("parquet", "table of jobs, Apache Parquet", "record", no_reading, _no_text, (".parquet",),
                              blobs=_blobs, rows=_blobs)
