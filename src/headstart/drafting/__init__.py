"""The vocabulary of a head start. Pure Python: no torch, no vLLM, no clock of its own."""
