"""The sources of drafts that come with the core: what was said before, and the words so far.

`registry` builds them by their names, and those of other packages. No torch, no vLLM.
"""
