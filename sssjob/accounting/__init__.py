"""Accounting prices jobs by the rates of a site, adds them up, and keeps accounts in a ledger.

``pricing`` is the only module that computes a price; ``rates`` reads what a site charges for, ``facts`` answers what a
job delivered or asks for, ``ledger`` posts charges as entries that are never changed.
"""

from sssjob.accounting.amounts import Reason
from sssjob.accounting.arithmetic import recompute
from sssjob.accounting.pricing import Charge, Item, Uncharged, charge, quote
from sssjob.accounting.rates import RatesError, RateSet, read_rates

__all__ = [
    "Charge", "Item", "RateSet", "RatesError", "Reason", "Uncharged", "charge", "quote", "read_rates", "recompute",
]
