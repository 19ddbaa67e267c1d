"""Executors that sssjob brings along; psij itself does not know them."""

from packaging.version import Version

from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [
    Descriptor("fluxexec", Version("0.1.0"), "sssjob.fluxexec.executor.FluxExecExecutor",
               nice_name="Flux execution protocol"),
]
