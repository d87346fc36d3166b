"""vLLM's own OpenAI server, made safe for many tenants and extended with drafts.

vLLM answers every request. In front of it stands the gateway (authentication, admission, checks of
bodies and media); beside it run the drafter, the page and the metrics.
"""
