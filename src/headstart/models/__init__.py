"""Models vLLM does not have, plugged in through its published registry.

Owns how a view of a clip becomes a prompt and how published weights become a vLLM model.
Knows nothing of drafts, streams or servers.
"""
