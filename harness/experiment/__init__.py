"""Measures: loads, designs as generators of steps, the one loop that carries steps out, gates, warm-up."""
