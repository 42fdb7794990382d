"""Coverage-guided fuzzing of the readers of files, of command output and of the wire."""
