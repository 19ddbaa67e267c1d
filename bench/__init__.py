"""Benchmarks: not installed."""

import os

# Commands that are measured keep their bytecode, whatever the surroundings say, as those of a user do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
