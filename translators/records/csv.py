"""Format ``csv``: jobs as a table, comma separated, for other programs to read; the columns are those of ``table``."""

from __future__ import annotations

from sssjob.translators.records.table import as_csv, table

__all__ = ["TRANSLATOR"]

TRANSLATOR = table("csv", "table of jobs, comma separated", as_csv, as_csv)
