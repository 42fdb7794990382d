"""Tests of the ranking: against textbook formulas, and against servers whose truth is known."""
