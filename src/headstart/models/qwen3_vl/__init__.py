"""Qwen3-VL: pairs of frames as items."""
