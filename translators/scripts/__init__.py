"""Batch scripts: one module a dialect, each a table of options over the reading and writing in ``base``."""
