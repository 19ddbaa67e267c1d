"""A page of totals with plots: one HTML file that needs nothing else.

The plots are SVG by matplotlib (extra ``report``), the page is ``templates/account.html.j2``. Its only script,
``templates/account.js``, sorts and filters the table; the page allows no other one to run, by its digest, and is whole
without it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from sssjob.accounting.totals import FIGURES, HIDDEN, OTHER, Group, Sums
from sssjob.errors import UsageError

__all__ = ["cell", "page"]

_TOP: Final = 8             # groups that a plot shows by name
_PERIODS: Final = 400       # of a plot over time
_ROWS: Final = 2000         # of the table
_ENDS: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)


def page(groups: Sequence[Group], whole: Sums, by: Sequence[str], *, title: str, source: str,
         left_out: Mapping[str, int], not_charged: Mapping[str, int] = MappingProxyType({}),
         periods: Sequence[str] = (), record: Mapping[str, Any] | None = None,
         digits: Mapping[str, int] = MappingProxyType({})) -> str:
    """The page. title: its heading; source: what was read; left_out: jobs that are not in it, not_charged: those that
    are, without a charge, by reason; periods: those of the plot over time, where all shall be there; record: the
    figures of all groups, where they are more than those of their sums; digits: of charges, by currency.

    Raises UsageError where matplotlib is not installed.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(loader=PackageLoader("sssjob", "templates"), undefined=StrictUndefined,
                              autoescape=select_autoescape(default=True), trim_blocks=True, lstrip_blocks=True)
    records = [g.record(whole) for g in groups]
    names = [name for name in FIGURES if any(record.get(name) for record in records)]
    rows = [(g.period, g.key, [(cell(record.get(name), digits), _number(record.get(name))) for name in names])
            for g, record in zip(groups[:_ROWS], records, strict=False)]
    template = environment.get_template("account.html.j2")
    script = "\n" + files("sssjob.templates").joinpath("account.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template.render(
        script=script, script_hash=f"sha256-{digest}",
        title=title, source=source, left_out=left_out, not_charged=not_charged, by=by, rows=rows,
        figures=[(n, FIGURES[n]) for n in names],
        more=max(0, len(groups) - _ROWS), periods=bool(groups and groups[0].period), plots=_plots(groups, by, periods),
        whole=[(n, FIGURES[n], cell((record or whole.record()).get(n), digits)) for n in names])


def cell(value: Any, digits: Mapping[str, int] = MappingProxyType({})) -> str:
    """A figure as people read it: two digits behind the point, of a charge as many as it has if not over six. digits:
    of charges, by currency, which a sum has that needs no more."""
    if isinstance(value, dict):
        return ", ".join(f"{_money(Decimal(amount), digits.get(currency, 2))} {currency or 'credits'}"
                         for currency, amount in value.items())
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def _number(value: Any) -> str:
    """A figure as the script of the page reads it; charges of several currencies are added, only to sort by."""
    if isinstance(value, dict):
        return f"{sum(map(Decimal, value.values())):f}"
    return "" if value is None else str(value)


def _money(amount: Decimal, digits: int) -> str:
    if amount == round(amount, digits):
        return f"{amount:,.{digits}f}"
    return f"{amount:,f}" if amount == round(amount, 6) else f"{amount:,.2f}"


def _label(key: Sequence[str]) -> str:
    text = " · ".join(filter(None, key)) or "all jobs"
    text = text if len(text) <= 40 else f"{text[:39]}…"
    return f"\N{ZERO WIDTH SPACE}{text}" if text.startswith("_") else text     # matplotlib's legends leave out _names


def _by_key(groups: Sequence[Group]) -> dict[tuple[str, ...], Sums]:
    """The sums of each key over all periods, the greatest first; those beyond the first few are one."""
    sums: dict[tuple[str, ...], Sums] = {}
    for g in groups:
        sums.setdefault(g.key, Sums()).add(g.sums)
    ranked = sorted(sums, key=lambda k: (OTHER in k, -sums[k].processors, k))
    sums_by_key = {key: sums[key] for key in ranked[:_TOP]}
    if ranked[_TOP:]:
        rest = Sums()
        for key in ranked[_TOP:]:
            rest.add(sums[key])
        name = f"{len(ranked) - _TOP} more"
        sums_by_key["", name] = rest
    return sums_by_key


def _plots(groups: Sequence[Group], by: Sequence[str], periods: Sequence[str]) -> list[tuple[str, str, str]]:
    """(title, what it shows, SVG) of each plot that has something to show."""
    try:
        import matplotlib
    except ImportError:
        raise UsageError("a report needs matplotlib: pip install 'sssjob[report]'") from None
    settings: dict[Any, Any] = {
        "svg.fonttype": "none", "svg.hashsalt": "sssjob", "font.family": "sans-serif", "font.size": 8,
        "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")     # whoever shows the page has a font
        keys = _by_key(groups)
        plots = [("Usage over time", f"processors x hours by {', '.join(by) or 'all jobs'}",
                  _over_time(groups, keys, periods))]
        named = {key: sums for key, sums in keys.items() if not _is_rest(key)}
        more = "".join(f"; {rest} {'is' if rest == '1 more' else 'are'} not shown"
                       for _, rest in filter(_is_rest, keys))
        plots += [(title, f"{caption}{more}", _bars(series, named, per, whole))
                  for title, caption, series, per, whole in _compared(list(named.values()))]
    return [(title, caption, svg) for title, caption, svg in plots if svg]


def _is_rest(key: tuple[str, ...]) -> bool:
    """Whether a key stands for those beyond the first few: a name of a group is never empty."""
    return key[:1] == ("",)


_Series = Sequence[tuple[str, Sequence[Any]]]


def _compared(sums: Sequence[Sums]) -> list[tuple[str, str, _Series, int, float]]:
    """(title, what it shows, series of bars, units of one, how far the axis goes at least) of each plot that compares
    groups."""
    currencies = sorted({currency for s in sums for currency in s.charges})
    return [
        ("Requested against delivered", "processors x hours, of the jobs that say what they request",
         [("requested", [s.requested for s in sums]), ("delivered", [s.requested_used for s in sums])], 3600, 0),
        ("Efficiency", "CPU time by processors x time; memory at its peak and GPU time by what there was, where "
         "the log tells", [(name, [used / held if held else 0 for used, held in pairs]) for name, pairs in (
             ("CPU", [(s.cpu_paired, s.cpu_basis) for s in sums]),
             ("memory", [(s.mem.used, s.mem.held) for s in sums]),
             ("GPU", [(s.gpu.used, s.gpu.held) for s in sums])) if any(held for _, held in pairs)], 1, 1),
        ("GPUs", "GPUs x hours", [("", [s.gpus for s in sums])], 3600, 0),
        ("Energy", "kWh", [("", [s.energy for s in sums])], 3_600_000, 0),
        ("Waiting", "hours from submission to start, of half of the jobs and of 95 % of them at most",
         [("half", [s.waited_at_most(Fraction(1, 2)) or 0 for s in sums]),
          ("95 %", [s.waited_at_most(Fraction(95, 100)) or 0 for s in sums])], 1, 0),
        ("Failures", "jobs that failed by all jobs, in per cent",
         [("", [Fraction(100 * s.failed, s.jobs) if s.jobs else 0 for s in sums])], 1, 0),
        *((f"Charges in {currency or 'credits'}", "what jobs cost", [("", [s.charges.get(currency, 0) for s in sums])],
           1, 0) for currency in currencies),
    ]


def _over_time(groups: Sequence[Group], keys: dict[tuple[str, ...], Sums], every: Sequence[str]) -> str:
    periods = list(every) or sorted({g.period for g in groups}, key=lambda p: (p == HIDDEN, p))[-_PERIODS:]
    if len(periods) < 2:
        return ""
    at = {period: n for n, period in enumerate(periods)}
    heights = {key: [0.0] * len(periods) for key in keys}
    rest = next(filter(_is_rest, keys), None)
    for g in groups:
        key = g.key if g.key in heights else rest
        if key is not None and g.period in at:
            heights[key][at[g.period]] += float(g.sums.processors / 3600)
    figure, axes = _figure(3.6)
    below = [0.0] * len(periods)
    for key, values in heights.items():
        axes.bar(range(len(periods)), values, bottom=below, width=0.9, label=_label(key))
        below = [a + b for a, b in zip(below, values, strict=True)]
    step = max(1, len(periods) // 12)
    axes.set_xticks(range(0, len(periods), step), periods[::step], rotation=30, ha="right", fontsize=8)
    axes.set_ylabel("processor hours")
    axes.yaxis.set_major_formatter(_tick)
    longest = max(len(_label(key)) for key in keys)
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=max(1, min(3, 90 // (longest + 8))))
    return _svg(figure)


def _bars(series: _Series, keys: dict[tuple[str, ...], Sums], per: int,
          whole: float = 0) -> str:
    """Bars side by side, one group a key. whole: how far the axis goes at least."""
    if not any(value for _, values in series for value in values):
        return ""
    figure, axes = _figure(0.8 + 0.4 * len(keys))
    thick = 0.8 / len(series)
    for n, (name, values) in enumerate(series):
        places = [i + n * thick for i in range(len(keys))]
        axes.barh(places, [float(v) / per for v in values], height=thick, label=name or None)
    middles = [i + (len(series) - 1) * thick / 2 for i in range(len(keys))]
    axes.set_yticks(middles, [_label(k) for k in keys], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, max(whole, axes.get_xlim()[1]))
    axes.xaxis.set_major_formatter(_tick)
    if len(series) > 1:
        figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=len(series))
    return _svg(figure)


def _tick(value: float, _: int | None = None) -> str:
    """A number beside an axis."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"


def _figure(height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, height), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    return _ENDS.sub("", buffer.getvalue())
