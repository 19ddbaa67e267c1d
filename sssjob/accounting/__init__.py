"""Charging: rates, and what a job costs by them. Nothing here moves money or keeps accounts."""

from sssjob.accounting.arithmetic import recompute
from sssjob.accounting.facts import Reason
from sssjob.accounting.pricing import Charge, Item, Uncharged, charge, quote
from sssjob.accounting.rates import RatesError, RateSet, read_rates

__all__ = [
    "Charge", "Item", "RateSet", "RatesError", "Reason", "Uncharged", "charge", "quote", "read_rates", "recompute",
]
