"""Models that vLLM lacks, registered with vLLM, and each model's view of a clip.

A view turns a clip and a question into a prompt. Nothing here knows of drafts, streams or servers.
"""
