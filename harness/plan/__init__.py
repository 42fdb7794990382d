"""Plans a run from flags, profiles and implementations. This package does not use the network."""
