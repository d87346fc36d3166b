"""Evidence: what drafting is worth, run on real logs and real engines."""
