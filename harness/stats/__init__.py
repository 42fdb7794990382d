"""Pure functions that compute estimates, intervals, ranks and stopping rules from a run's records."""
