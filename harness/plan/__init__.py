"""Everything that is decided before a run: flags, profile, implementations, test types and plan. Uses no network."""
