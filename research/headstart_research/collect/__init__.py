"""Collects what a learned drafter is trained on: what a target saw and said, clip by clip."""
