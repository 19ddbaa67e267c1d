"""Writes charge tables as Parquet files; a file appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sssjob.accounting._arrow import pa
from sssjob.accounting.rates import RateSet
from sssjob.accounting.table import arrow, schema
from sssjob.errors import AccessError
from sssjob.findings import escape

__all__ = ["ParquetTable", "batches_of", "parquet_table"]


class ParquetTable:
    """A table that is being written. given_up: it is not put in place."""

    __slots__ = ("_writer", "given_up")

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.given_up = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        self._writer.write_batch(batch)


def batches_of(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a charge table."""
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(path) as file:
        yield from file.iter_batches()


@contextmanager
def parquet_table(target: str, rates: RateSet) -> Iterator[ParquetTable]:
    """A charge table that appears under its name when it is complete, in place of an older one.

    Raises AccessError where nothing can be written there, OSError when that fails later.
    """
    arrow()
    import pyarrow.parquet as parquet

    try:
        handle, temporary = tempfile.mkstemp(prefix=".sssjob-", dir=Path(os.path.abspath(target)).parent)
    except OSError as error:
        raise AccessError(escape(target), error.strerror or str(error)) from None
    try:
        with open(handle, "wb") as file, parquet.ParquetWriter(file, schema(rates)) as writer:
            table = ParquetTable(writer)
            yield table
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        if not table.given_up:
            os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
