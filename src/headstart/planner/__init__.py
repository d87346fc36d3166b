"""What drafting costs, what it earns, and whether it pays. Pure Python: no torch, no vLLM."""
