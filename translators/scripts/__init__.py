"""Batch scripts. Each dialect is a module with a table of its options; ``base`` has everything that a dialect takes."""
