"""Coverage-guided fuzzing of code that reads files, command output and network data."""
