"""The commands that the package of event cameras adds to `headstart`."""
