"""Executors that sssjob brings along; psij itself does not know them.

psij-python runs this file too, whenever its ``psij`` is imported: the only place from which commands of
``python -m psij`` that it does not have can say so, where it was installed over the psij of sssjob.
"""

import sys

from packaging.version import Version

import psij.version
from psij.descriptor import Descriptor

if getattr(psij.version, "DISTRIBUTION", "") != "sssjob":
    from sssjob.packages import trouble_of_command

    if trouble := trouble_of_command(sys.orig_argv):
        print(trouble, file=sys.stderr)
        sys.exit(3)

__PSI_J_EXECUTORS__ = [
    Descriptor("fluxexec", Version("0.1.0"), "sssjob.fluxexec.executor.FluxExecExecutor",
               nice_name="Flux execution protocol"),
]
