"""Forecasts what drafting costs and saves, and what a fleet needs. No torch, no vLLM."""
