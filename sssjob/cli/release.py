"""``sssjob release``: let jobs start that are held."""

from __future__ import annotations

from sssjob.cli._wishes import wish

__all__ = ["command"]

command = wish("release", """\
End the hold of these jobs: of `hold`, or of Hold User in their documents.

Holds that an operator or the system set stay. Exit status 5: refused, or the job has ended; 4: a resource manager
could not be asked; the wish stands, and the next client repeats it.
""")
