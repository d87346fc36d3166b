"""Measures methods of drafting on real engines, and replays logged answers without one."""
