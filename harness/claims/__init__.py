"""What talks claim, read from config/claims, and the verdict of what was measured on it. Pure but for the files."""
