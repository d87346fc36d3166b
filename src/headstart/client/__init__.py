"""A client of the server's live socket, which needs no engine: `LiveClient`."""
