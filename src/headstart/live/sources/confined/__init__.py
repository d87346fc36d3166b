"""Decodes the streams of cameras that a stranger may be behind, each in a confined process."""
