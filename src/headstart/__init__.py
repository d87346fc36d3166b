"""headstart: the same words, sooner."""
