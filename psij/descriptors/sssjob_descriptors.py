"""Executors that sssjob brings along; psij itself does not know them.

psij-python runs this file too, whenever its ``psij`` is imported: the only place from which commands of
``python -m psij`` that it does not have can say so, where it was installed over the psij of sssjob.
"""

import sys
from runpy import run_module

from packaging.version import Version

import psij.version
from psij.descriptor import Descriptor

if getattr(psij.version, "DISTRIBUTION", "") != "sssjob" and any(
        sys.orig_argv[at:at + 3] in (["-m", "psij", "alias"], ["-m", "psij", "check-program"])
        for at in range(len(sys.orig_argv))):
    run_module("sssjob.packages", run_name="__main__")      # which says so and ends

__PSI_J_EXECUTORS__ = [
    Descriptor("fluxexec", Version("0.1.0"), "sssjob.fluxexec.executor.FluxExecExecutor",
               nice_name="Flux execution protocol"),
]
