"""Plans a run from flags, profiles and implementations, without network access."""
