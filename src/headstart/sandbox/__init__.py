"""Untrusted bytes are decoded here, in processes that can reach nothing, one tenant's each."""
