"""How many bytes a response has on the wire, so that the generator's bytes / requests can be held against it."""

from collections.abc import Iterable

from harness.verify.checks.evidence import HIGHEST_ID, Exchange

# Mean number of decimal digits of a uniform value of 1..10000.
MEAN_DIGITS = sum(len(str(value)) for value in range(1, HIGHEST_ID + 1)) / HIGHEST_ID

# A mean over the few dozen requests of the shortest load strays 0.35 / sqrt(values) digits around that; the numbers of
# the table, fixed by the seed, have a mean of their own within 0.01 of it.
DIGITS_MARGIN = 0.25
FRAMING_MARGIN = 1.0  # Content-Length or a chunk's size gains or loses a digit


def response_bytes(exchanges: Iterable[Exchange]) -> tuple[float, float] | None:
    """The range in which the mean size of responses to one case lies, by what verified ones showed; None without any.

    Constant answers have the size that they have. Rows vary by the digits of their values: what is fixed is measured,
    the digits are set to their expectation, and the range allows for chance.
    """
    fixed: list[float] = []
    values = 0
    for exchange in exchanges:
        if not exchange.ok or exchange.response is None:
            continue
        values = 2 * len(exchange.rows)
        digits = sum(len(str(identifier)) + len(str(number)) for identifier, number in exchange.rows)
        fixed.append(exchange.response.size - digits)
    if not fixed:
        return None
    if not values:
        return min(fixed), max(fixed)
    middle, margin = values * MEAN_DIGITS, values * DIGITS_MARGIN + FRAMING_MARGIN
    return min(fixed) + middle - margin, max(fixed) + middle + margin
