"""What was asked for: flags, profile, implementations, test types, and the plan that follows. Touches no network."""
