"""``sssjob hold``: keep jobs that wait from starting."""

from __future__ import annotations

from sssjob.cli._wishes import wish

__all__ = ["command"]

command = wish("hold", """\
Keep these jobs from starting until they are released (`release`).

Jobs that wait in the queue of a resource manager are held there; those that were not submitted yet are held in the
journal. Exit status 5: refused, because the job has begun or ended or the executor cannot hold it; 4: a resource
manager could not be asked; the wish stands, and the next client repeats it.
""")
