"""Access to the machine that tfb runs on: processes, accounts, clock, metering, git, and leftovers from killed runs."""
