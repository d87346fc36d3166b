"""Speculative decoding without an engine: drafts, their sources, and what each is worth.

No torch, no vLLM.
"""
