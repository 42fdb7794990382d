"""Coverage-guided fuzzing of code that parses files, command output and network data."""
