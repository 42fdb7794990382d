"""Did my change slow my service? Two versions of a service of anybody's own, side by side."""
