"""How many digits behind the point currencies have, and amounts.

Source: ISO 4217, list one of its maintenance agency (active codes and their minor units); units of account, metals and
codes for tests have none there and are left out.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from sssjob.accounting.entries import EXACT

__all__ = ["digits_in", "digits_of"]

_MINOR_UNITS: Final = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW "
       "CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF "
       "IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK "
       "MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP "
       "SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD YER ZAR "
       "ZMW ZWG",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_DIGITS: Final = {code: digits for digits, codes in _MINOR_UNITS.items() for code in codes.split()}


def digits_of(currency: str) -> int | None:
    """How many digits behind the point a currency has; None where it is none of ISO 4217, as a unit of a site."""
    return _DIGITS.get(currency)


def digits_in(amount: Decimal) -> int:
    """How many digits behind the point an amount needs."""
    return max(0, -int(amount.normalize(EXACT).as_tuple().exponent))
