"""vLLM's own OpenAI server with clips, streams and previews, opened to strangers.

Every route that answers is vLLM's. What is here stands in front of it: who may ask, how much,
which files; and beside it: the drafter, the page, the figures.
"""
