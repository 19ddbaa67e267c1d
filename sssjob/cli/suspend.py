"""``sssjob suspend``: stop the processes of jobs that run."""

from __future__ import annotations

from sssjob.cli._wishes import wish

__all__ = ["command"]

command = wish("suspend", """\
Stop the processes of these jobs, which run, until they are resumed (`resume`).

Exit status 5: refused, because the job does not run, the executor cannot suspend it, or the resource manager lets
its operators alone do that; 4: a resource manager could not be asked; the wish stands, and the next client repeats
it.
""")
