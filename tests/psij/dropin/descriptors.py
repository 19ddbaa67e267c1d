# ruff: noqa
# mypy: ignore-errors
from packaging.version import Version
from psij.descriptor import Descriptor

__PSI_J_EXECUTORS__ = [Descriptor(name="mysite", version=Version("0.3.0"), cls="mysite.executor.MySiteExecutor"),
                       Descriptor(name="mysite-broken", nice_name="Broken", version=Version("0.0.1"),
                                  cls="mysite.nothing.Nothing")]
__PSI_J_LAUNCHERS__ = [Descriptor(name="greeting", version=Version("0.0.2"), cls="mysite.launcher.GreetingLauncher")]
