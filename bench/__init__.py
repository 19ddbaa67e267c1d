"""Benchmarks: not installed."""
