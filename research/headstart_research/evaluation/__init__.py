"""Measures what drafters are worth on held-out answers of a target, without the target."""
