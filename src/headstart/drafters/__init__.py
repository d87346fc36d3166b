"""Sources of drafts behind one port. None of them imports vLLM or torch at the top."""
