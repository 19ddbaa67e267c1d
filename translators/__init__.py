"""A translator turns text of another system into a job object and back; each format is one module or a few.

A translator starts no process, opens no file and reads no clock.

Third parties register a ``Translator`` under the entry-point group ``sssjob.translators``.
"""

from sssjob.translators.base import Kind, ReadContext, Translator, WriteContext
from sssjob.translators.registry import get, names

__all__ = ["Kind", "ReadContext", "Translator", "WriteContext", "get", "names"]
