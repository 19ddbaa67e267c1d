"""Arithmetic that prints itself: every amount is computed as an exact fraction beside the text that shows how, and
``recompute`` gives the same amount from the text alone. ``formula`` gives the sum of products that such a text is where
some of its numbers are left open, so that many amounts follow from one text.

Text: ``16 [Processors] * 0.5 [VBR Processors] * 1234 [Duration] / 3600 [s/hour]``. What stands in brackets only says
what a number is. ``max``, ``ceil`` and ``floor`` are the functions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal

__all__ = ["ROUNDINGS", "Figure", "Formula", "Rounding", "amount_in", "call", "formula", "in_doubles", "number",
           "plain", "product", "quotient", "ratio", "recompute", "rounded", "total"]

Rounding = Literal["half-up", "half-even", "up", "down"]
Number = int | Decimal | Fraction

#: How over / under steps become whole; amounts that are rounded are never negative.
ROUNDINGS: Final[dict[Rounding, Callable[[int, int], int]]] = {
    "half-up": lambda over, under: (2 * over + under) // (2 * under),
    "half-even": lambda over, under: round(Fraction(over, under)),
    "up": lambda over, under: -(-over // under),
    "down": lambda over, under: over // under,
}
_Kind = Callable[[Any], Any]        # what a number of the text becomes
_LABEL: Final = str.maketrans("[]\n", "() ")
_TOKEN: Final = re.compile(r"\s*(?:\[[^\]]*\]\s*)*([0-9]+(?:\.[0-9]+)?|[a-z]+|[-+*/(),]|$)")


def amount_in(text: str) -> Decimal | None:
    """The amount of money that somebody wrote, of at most 90 characters; None where the text is none."""
    try:
        amount = Decimal(text) if len(text) <= 90 else None
    except InvalidOperation:
        return None
    return amount if amount is not None and amount.is_finite() else None


class Figure:
    """An amount, the text that says how it comes about, and how tightly the text holds together: 0 a sum, 1 a product,
    2 a number or a call. The amount is over / under, whole numbers that may have a common divisor. Not to be changed.
    """

    __slots__ = ("over", "text", "tight", "under")

    def __init__(self, text: str, over: int, under: int = 1, tight: int = 2) -> None:
        self.text, self.over, self.under, self.tight = text, over, under, tight

    def __repr__(self) -> str:
        return f"Figure({self.text!r}, {self.over}, {self.under}, {self.tight})"

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
    return _digits(value.numerator, value.denominator)


def quotient(over: int, under: int) -> str:
    """over / under, two whole numbers of which under is above 0, as ``plain`` has the fraction."""
    divisor = math.gcd(over, under)
    return _digits(over // divisor, under // divisor)


def _digits(over: int, under: int) -> str:
    """The digits of a fraction in its lowest terms."""
    if under == 1:
        return str(over)
    decimals = _decimals(under)
    if decimals is None:
        return f"{over}/{under}"
    places, factor = decimals
    digits = str(over * factor).zfill(places + 1)
    return f"{digits[:-places]}.{digits[-places:]}"


@lru_cache(1024)
def _decimals(denominator: int) -> tuple[int, int] | None:
    """(digits after the point, what the numerator is multiplied by to have all digits) of fractions with that
    denominator; None where they have no end."""
    under = denominator
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    places = max(twos, fives)
    return (places, 10**places // under) if denominator == 1 else None


def number(value: Number, label: str) -> Figure:
    """A number and what it is; a fraction whose digits have no end is a division."""
    over, under = value.as_integer_ratio()
    digits = plain(value)
    return Figure(f"{digits} [{label if label.isalnum() else label.translate(_LABEL)}]", over, under,
                1 if "/" in digits else 2)


def product(first: Figure, *others: Figure) -> Figure:
    """first * other * ..."""
    if not others:
        return first
    texts, over, under = [first.within(1)], first.over, first.under
    for other in others:
        texts.append(other.within(2))
        over, under = over * other.over, under * other.under
    return Figure(" * ".join(texts), over, under, 1)


def ratio(over: Figure, under: Figure) -> Figure:
    """over / under"""
    return Figure(f"{over.within(1)} / {under.within(2)}", over.over * under.under, over.under * under.over, 1)


def total(terms: Iterable[Figure]) -> Figure:
    """The sum; nothing is 0."""
    listed = list(terms)
    if len(listed) < 2:
        return listed[0] if listed else Figure("0", 0)
    value = sum([t.value for t in listed], Fraction(0))
    return Figure(" + ".join([t.within(1) for t in listed]), value.numerator, value.denominator, 0)


def call(name: Literal["max", "ceil", "floor"], *terms: Figure) -> Figure:
    """A function of terms."""
    value = Fraction(_CALLS[name]([t.value for t in terms]))
    return Figure(f"{name}({', '.join(t.text for t in terms)})", value.numerator, value.denominator)


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


class Formula:
    """A sum of products of open numbers: by the places of the open numbers of a product, which may come twice, its
    factor."""

    __slots__ = ("factors",)

    def __init__(self, factors: Mapping[tuple[int, ...], Fraction]) -> None:
        self.factors = {places: factor for places, factor in factors.items() if factor}

    def __add__(self, other: Formula) -> Formula:
        both = dict(self.factors)
        for places, factor in other.factors.items():
            both[places] = both.get(places, Fraction(0)) + factor
        return Formula(both)

    def __mul__(self, other: Formula) -> Formula:
        products: dict[tuple[int, ...], Fraction] = {}
        for factor, first in self.factors.items():
            for two, second in other.factors.items():
                places = tuple(sorted(factor + two))
                products[places] = products.get(places, Fraction(0)) + first * second
        return Formula(products)

    def __truediv__(self, other: Formula) -> Formula:
        if other.factors.keys() != {()}:
            raise ValueError("an open number divides, or 0")
        return Formula({places: factor / other.factors[()] for places, factor in self.factors.items()})

    def __neg__(self) -> Formula:
        return Formula({places: -factor for places, factor in self.factors.items()})

    def whole(self) -> tuple[int, tuple[tuple[int, tuple[int, ...]], ...]]:
        """(under, products): the sum is that of factor times its open numbers, divided by under; all are whole."""
        under = math.lcm(*(factor.denominator for factor in self.factors.values()))
        return under, tuple((int(factor * under), places) for places, factor in self.factors.items())


def formula(text: str, open_numbers: Mapping[str, int]) -> Formula:
    """What printed arithmetic comes to where some numbers are left open. open_numbers: digits of each, as they stand in
    the text, and its place. ValueError where the text is none, or no such sum: a function, a division by an open one.
    """
    def number_of(token: Any) -> Formula:
        """The formula of one number."""
        place = open_numbers.get(token)
        return Formula({(): Fraction(token)} if place is None else {(place,): Fraction(1)})

    read: Formula = _read(text, number_of)
    return read


def _read(text: str, of: _Kind) -> Any:
    tokens = _tokens(text)
    value = _sum(tokens, of)
    if tokens:
        raise ValueError(f"{tokens[-1]!r} stands where the arithmetic should end")
    return value


def _tokens(text: str) -> list[str]:
    """The tokens, the first one last."""
    tokens, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"no arithmetic: {text[at:at + 20]!r}")
        at = token.end()
        tokens.append(token[1])
    return [t for t in reversed(tokens) if t]


def _take(tokens: list[str], *choices: str) -> str | None:
    return tokens.pop() if tokens and tokens[-1] in choices else None


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
    return _called(token, values, of) if token in _CALLS else values[0]


def _called(name: str, values: list[Any], of: _Kind) -> Any:
    if isinstance(values[0], Formula):
        raise ValueError(f"{name} is no sum of products")
    return of(_CALLS[name](values))
