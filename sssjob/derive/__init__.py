"""Everything that is generated from the vocabulary: run ``python -m sssjob.derive`` to write, ``--check`` to compare.

Each generator is a function that returns text; ``GENERATED`` maps the file (from the project's root) to it.
"""
