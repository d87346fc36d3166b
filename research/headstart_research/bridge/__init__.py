"""Bridges: small learned drafters that speak a target's words, quote its answers and see."""
