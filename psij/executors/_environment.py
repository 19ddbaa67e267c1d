"""The environment of this process as the system takes it: bytes, which are not decoded and encoded on their way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

__all__ = ["ENVIRONMENT"]

#: As it is now, whenever it is asked: the dictionary inside ``os.environb``, which is copied and asked much faster.
ENVIRONMENT: Final[Mapping[bytes, bytes]] = getattr(os.environb, "_data", os.environb)
