"""What talks claim (config/claims): read, measured in the design ``interleaved``, and judged."""
