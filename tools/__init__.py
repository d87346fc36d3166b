"""Programs for whoever raises the version of vLLM."""
