"""Forecasts what drafting costs and saves. Pure Python: no torch, no vLLM."""
