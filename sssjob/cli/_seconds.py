"""The type of options that are a length of time."""

from __future__ import annotations

import math
from typing import Any, Final

import click


class _Seconds(click.FloatRange):
    """Seconds that have an end: ``inf`` and ``nan`` are no lengths of time, although float() takes them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; fails as FloatRange does."""
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


SECONDS: Final = _Seconds(min=0)
MORE_THAN_NONE: Final = _Seconds(min=0, min_open=True)
