"""The commands that research adds to `headstart`."""
