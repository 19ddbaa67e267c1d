"""Rates and jobs in a line."""

from __future__ import annotations

from typing import get_args

from sssjob.accounting import Charge, RateSet, Uncharged, charge, quote, read_rates
from sssjob.accounting.rates import Type
from sssjob.document.model import Document
from sssjob.xml.reader import read_document

__all__ = ["charged", "document", "quoted", "rate_set", "refused"]


def rate_set(text: str) -> RateSet:
    """Rates of TOML without their name and version; a line ``VBR Processors 0.5 key = value, ...`` is one rate.

    ``NBM Queue=gpu 2``: with the instance.
    """
    made = ['name = "test"', 'version = "1"']
    tables = []
    for line in map(str.strip, text.strip().splitlines()):
        if line[:3] in get_args(Type):
            kind, name, amount, *more = line.split(" ", 3)
            name, _, instance = name.partition("=")
            of = f', instance = "{instance}"' if instance else ""
            rest = f", {more[0]}" if more else ""
            tables.append(f'{{ type = "{kind}", name = "{name}"{of}, rate = {amount}{rest} }}')
        else:
            made.append(line)
    tables_at = next((n for n, line in enumerate(made) if line.startswith("[")), len(made))
    made.insert(tables_at, f"rate = [{', '.join(tables)}]")
    return read_rates("\n".join(made))


def document(job: str) -> Document:
    """A Job of these children."""
    made = read_document(f"<Job>{job}</Job>".encode())
    assert made.findings is not None and not made.findings.rejected, job
    return made


def charged(rates: RateSet | str, job: str) -> Charge:
    """The charge of a job of these children."""
    price = _made(charge, rates, job)
    assert isinstance(price, Charge), price
    return price


def quoted(rates: RateSet | str, job: str) -> Charge:
    """The quote of a job of these children."""
    charge = _made(quote, rates, job)
    assert isinstance(charge, Charge), charge
    return charge


def refused(rates: RateSet | str, job: str, *, asked: bool = False) -> Uncharged:
    """Why a job of these children has no charge (asked: no quote)."""
    price = _made(quote if asked else charge, rates, job)
    assert isinstance(price, Uncharged), price
    return price


def _made(price: object, rates: RateSet | str, job: str) -> Charge | Uncharged:
    job_object, defaults = next(document(job).jobs())
    assert callable(price)
    charge = price(job_object, rate_set(rates) if isinstance(rates, str) else rates, defaults)
    assert isinstance(charge, Charge | Uncharged)
    return charge
