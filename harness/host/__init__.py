"""The machine that tfb runs on: processes, accounts, clock, metering, git and the remains of killed runs."""
