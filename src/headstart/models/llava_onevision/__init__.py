"""LLaVA-OneVision: frames as items."""
