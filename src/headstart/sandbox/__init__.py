"""Untrusted bytes are decoded here: each in a process of its own that can reach nothing else."""
