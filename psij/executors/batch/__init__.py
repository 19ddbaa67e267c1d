"""Executors that hand jobs to a resource manager by its command line."""
