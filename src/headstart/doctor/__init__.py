"""Whether an installation can start an engine, and what would mend it."""
