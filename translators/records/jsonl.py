"""Format ``jsonl``: jobs as a table, JSON Lines, for other programs to read; the columns are those of ``table``."""

from __future__ import annotations

from sssjob.translators.records.table import as_jsonl, table

__all__ = ["TRANSLATOR"]

TRANSLATOR = table("jsonl", "table of jobs, JSON Lines", as_jsonl, as_jsonl)
