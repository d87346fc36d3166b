"""The rules of drafting, without an engine: what a draft is, who is asked first, what one is worth.

No torch, no vLLM.
"""
