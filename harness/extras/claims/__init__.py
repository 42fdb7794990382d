"""Claims of talks (config/claims): read, measured in the design ``interleaved``, and judged."""
