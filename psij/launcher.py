"""psij-python 0.9.11's other import path of Launcher."""

from psij.job_launcher import Launcher

__all__ = ["Launcher"]
