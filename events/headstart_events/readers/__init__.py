"""Readers of event recordings, one file for each family of formats.

`open_recording` in ``opening`` chooses among them.
"""
