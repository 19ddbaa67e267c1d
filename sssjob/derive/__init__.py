"""Writes every file that is generated from tables: ``python -m sssjob.derive`` writes them, ``--check`` compares.

Each generator is a function that returns text; ``GENERATED`` maps the file (from the project's root) to it.
"""
