"""Arithmetic that prints itself: every amount is computed as an exact fraction beside the text that shows how, and
``recompute`` gives the same amount from the text alone.

Text: ``16 [Processors] * 0.5 [VBR Processors] * 1234 [Duration] / 3600 [s/hour]``. What stands in brackets only says
what a number is. ``max``, ``ceil`` and ``floor`` are the functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Final, Literal

__all__ = [
    "ROUNDINGS", "Rounding", "Term", "amount_in", "call", "in_doubles", "number", "plain", "product", "ratio",
    "recompute", "rounded", "total",
]

Rounding = Literal["half-up", "half-even", "up", "down"]
Number = int | Decimal | Fraction

#: How over / under steps become whole; amounts that are rounded are never negative.
ROUNDINGS: Final[dict[Rounding, Callable[[int, int], int]]] = {
    "half-up": lambda over, under: (2 * over + under) // (2 * under),
    "half-even": lambda over, under: round(Fraction(over, under)),
    "up": lambda over, under: -(-over // under),
    "down": lambda over, under: over // under,
}
_Kind = type[Fraction] | type[float]
_LABEL: Final = str.maketrans("[]\n", "() ")
_TOKEN: Final = re.compile(r"\s*(?:\[[^\]]*\]\s*)*([0-9]+(?:\.[0-9]+)?|[a-z]+|[-+*/(),]|$)")


def amount_in(text: str) -> Decimal | None:
    """The amount of money that somebody wrote, of at most 90 characters; None where the text is none."""
    try:
        amount = Decimal(text) if len(text) <= 90 else None
    except InvalidOperation:
        return None
    return amount if amount is not None and amount.is_finite() else None


class Term:
    """An amount, the text that says how it comes about, and how tightly the text holds together: 0 a sum, 1 a product,
    2 a number or a call. The amount is over / under, whole numbers that may have a common divisor. Not to be changed.
    """

    __slots__ = ("over", "text", "tight", "under")

    def __init__(self, text: str, over: int, under: int = 1, tight: int = 2) -> None:
        self.text, self.over, self.under, self.tight = text, over, under, tight

    def __repr__(self) -> str:
        return f"Term({self.text!r}, {self.over}, {self.under}, {self.tight})"

    @property
    def value(self) -> Fraction:
        """The amount."""
        return Fraction(self.over, self.under)

    def within(self, tight: int) -> str:
        """The text, in brackets where it would fall apart beside operators that hold so tightly."""
        return self.text if self.tight >= tight else f"({self.text})"


def plain(value: Number) -> str:
    """A number as digits, ``n/d`` where those have no end."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    places = _places(value.denominator)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = f"{value.numerator * 10**places // value.denominator:0{places + 1}d}"
    return f"{digits[:-places]}.{digits[-places:]}" if places else digits


def _places(denominator: int) -> int | None:
    """Digits after the point of a fraction with that denominator; None where they have no end."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None


def number(value: Number, label: str) -> Term:
    """A number and what it is; a fraction whose digits have no end is a division."""
    over, under = value.as_integer_ratio()
    digits = plain(value)
    return Term(f"{digits} [{label if label.isalnum() else label.translate(_LABEL)}]", over, under,
                1 if "/" in digits else 2)


def product(first: Term, *others: Term) -> Term:
    """first * other * ..."""
    if not others:
        return first
    texts, over, under = [first.within(1)], first.over, first.under
    for other in others:
        texts.append(other.within(2))
        over, under = over * other.over, under * other.under
    return Term(" * ".join(texts), over, under, 1)


def ratio(over: Term, under: Term) -> Term:
    """over / under"""
    return Term(f"{over.within(1)} / {under.within(2)}", over.over * under.under, over.under * under.over, 1)


def total(terms: Iterable[Term]) -> Term:
    """The sum; nothing is 0."""
    listed = list(terms)
    if len(listed) < 2:
        return listed[0] if listed else Term("0", 0)
    value = sum([t.value for t in listed], Fraction(0))
    return Term(" + ".join([t.within(1) for t in listed]), value.numerator, value.denominator, 0)


def call(name: Literal["max", "ceil", "floor"], *terms: Term) -> Term:
    """A function of terms."""
    value = Fraction(_CALLS[name]([t.value for t in terms]))
    return Term(f"{name}({', '.join(t.text for t in terms)})", value.numerator, value.denominator)


_CALLS: Final[dict[str, Callable[[list[Any]], Any]]] = {
    "max": max,
    "ceil": lambda values: math.ceil(values[0]),
    "floor": lambda values: math.floor(values[0]),
}


def rounded(exact: Fraction, step: Decimal, precision: int, how: Rounding) -> Decimal:
    """The multiple of step beside an exact amount, with that many digits after the point."""
    over, under = step.as_integer_ratio()
    steps = ROUNDINGS[how](exact.numerator * under, exact.denominator * over)
    return Decimal(f"{steps * over * 10**precision // under}e-{precision}")


def recompute(text: str) -> Fraction:
    """The amount that printed arithmetic comes to; ValueError where it is none."""
    return Fraction(_read(text, Fraction))


def in_doubles(text: str) -> float:
    """What printed arithmetic comes to in binary doubles, step by step, as Gold computes it."""
    return float(_read(text, float))


def _read(text: str, of: _Kind) -> Any:
    tokens = _tokens(text)
    value = _sum(tokens, of)
    if tokens:
        raise ValueError(f"{tokens[-1]!r} stands where the arithmetic should end")
    return value


def _tokens(text: str) -> list[str]:
    """The tokens, the first one last."""
    found, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"no arithmetic: {text[at:at + 20]!r}")
        at = token.end()
        found.append(token[1])
    return [t for t in reversed(found) if t]


def _take(tokens: list[str], *wanted: str) -> str | None:
    return tokens.pop() if tokens and tokens[-1] in wanted else None


def _sum(tokens: list[str], of: _Kind) -> Any:
    value = _product(tokens, of)
    while _take(tokens, "+"):
        value += _product(tokens, of)
    return value


def _product(tokens: list[str], of: _Kind) -> Any:
    value = _one(tokens, of)
    while sign := _take(tokens, "*", "/"):
        other = _one(tokens, of)
        value = value * other if sign == "*" else value / other
    return value


def _one(tokens: list[str], of: _Kind) -> Any:
    token = tokens.pop() if tokens else ""
    if token[:1].isdigit():
        return of(token)
    if token == "-":            # a rate of Gold's may be below 0
        return -_one(tokens, of)
    if token in _CALLS and _take(tokens, "("):
        values = [_sum(tokens, of)]
        while _take(tokens, ","):
            values.append(_sum(tokens, of))
    elif token == "(":
        values = [_sum(tokens, of)]
    else:
        raise ValueError(f"a number should stand in place of {token!r}")
    if not _take(tokens, ")"):
        raise ValueError("a bracket is not closed")
    return of(_CALLS[token](values)) if token in _CALLS else values[0]
