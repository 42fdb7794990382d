"""The column names of every export of a table, here and on the page: the quantity, its unit, then which end of it."""

RUN = ("run", "test_type", "table", "level", "implementation", "language", "platform", "ranked", "reason")


def _ends(quantity: str) -> tuple[str, str, str]:
    """A figure and the ends of its 95 % interval."""
    return quantity, f"{quantity}_low", f"{quantity}_high"


THROUGHPUT = (
    *("rank_low", "rank_high", "tie_group"),
    *_ends("requests_per_second"),
    *_ends("requests_per_second_ratio"),  # to the reference
)
CPU = (
    *("cpu_rank_low", "cpu_rank_high", "cpu_tie_group"),
    *_ends("cpu_seconds_per_request"),
    *_ends("cpu_seconds_per_request_ratio"),
)
REST = ("replicates", "rss_peak_bytes", "first_answer_seconds", "errors", "remarks")

COLUMNS = (*RUN, *THROUGHPUT, *CPU, *REST)
