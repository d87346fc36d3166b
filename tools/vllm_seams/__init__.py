"""Which parts of vLLM headstart touches, and whether another vLLM has them unchanged."""
