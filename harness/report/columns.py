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
CLOSED_LOOP = (  # latency of the closed loop; the basis says whose
    *("latency_basis", "latency_processes", "latency_mean_seconds"),
    *(name for point in ("50", "90", "99") for name in _ends(f"latency_p{point}_seconds")),
    "latency_maximum_seconds",
)
FURTHER = ("response_time_seconds", "requests_per_second_per_megabyte", "threads")
REST = ("replicates", "rss_peak_bytes", *FURTHER, "first_answer_seconds", "errors", "remarks")

COLUMNS = (*RUN, *THROUGHPUT, *CPU, *CLOSED_LOOP, *REST)

# Of latency at given rates: one line a rate, and one for the capacity at the goal (``kind`` goal).
PERCENTILES = ("50", "75", "90", "95", "99", "99.9")
AT_RATE = (
    *(
        "run",
        "test_type",
        "implementation",
        "kind",
        "share",
        "requests_per_second_asked",
        "requests_per_second_achieved",
    ),
    *(name for point in PERCENTILES for name in _ends(f"latency_p{point}_seconds")),
    *("latency_maximum_seconds", "generator_lag_p99_seconds", "replicates", "dropped"),
    *("goal_percentile", "goal_seconds", "goal_rank_low", "goal_rank_high", "goal_tie_group"),
    *_ends("goal_requests_per_second"),
    *("goal_missed_at_requests_per_second", "ranked", "reason", "remarks"),
)

# Of the order service: one line an operation of a use case at a factor, and one for the use case's whole arrival.
ORDERS = (
    *("run", "implementation", "factor", "use_case", "operation"),
    *(name for point in ("50", "90", "99") for name in _ends(f"response_time_p{point}_seconds")),
    *("answered", "failed", "replicates"),
)
