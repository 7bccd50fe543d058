"""Quotients of totals, as criteria: the ratio of two unities, such as a goal average, and what a unity has per another,
such as points per game.

They are compared as fractions. A ratio by 0 is beyond all others, where 0 by 0 is none; per nothing, nobody has a
value. Whoever has none stands behind all others. The shown value is rounded, halves away from zero.

Pure.
"""

from fractions import Fraction
from typing import Any, Final

from msgspec import Struct

from engine.domain.events import Criterion
from engine.domain.notation import INFINITE, Notation
from engine.domain.terms import Sort

_DECIMALS: Final = 3
"""Decimals of a shown quotient that is not a time."""


class Quotient(Struct, frozen=True, gc=False):
    """`compared`: sorts like the values; `shown`: as in `quotient_notation`; None: there is none."""

    compared: tuple[int, Fraction]
    shown: int | None


def quotient_of(
    criterion: Criterion, dividend: int | None, divisor: int | None, notations: tuple[Notation, Notation], sort: Sort
) -> Quotient:
    """Of two totals in unities with these notations, the first of which has this sort."""
    if dividend is None or divisor is None or (divisor == 0 and (criterion.per is not None or dividend == 0)):
        return Quotient((-2 if sort is Sort.DESC else 2, Fraction()), None)
    if divisor == 0:
        sign = 1 if dividend > 0 else -1
        return Quotient((sign, Fraction()), sign * INFINITE)
    value = Fraction(dividend, divisor)
    above, below = notations
    decimals = below.decimals if _is_time(criterion, above) else _DECIMALS + below.decimals - above.decimals
    scaled = 2 * abs(value) * Fraction(10) ** decimals
    size = min((scaled.numerator + scaled.denominator) // (2 * scaled.denominator), INFINITE - 1)
    return Quotient((0, value), size if value >= 0 else -size)


def quotient_notation(criterion: Criterion, dividend: Notation, sort: Sort) -> Notation:
    """The notation of shown quotients, whose dividend has this notation and sort."""
    said: dict[str, Any] = {"time": dividend.time} if _is_time(criterion, dividend) else {"decimals": _DECIMALS}
    return Notation(**said, results=sort, quotient=True)


def _is_time(criterion: Criterion, dividend: Notation) -> bool:
    """Whether the quotient is a time: the mean of times."""
    return criterion.per is not None and dividend.time is not None
