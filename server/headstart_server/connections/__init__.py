"""Connections, below the gateway: what a client's bytes may cost before anybody looks at a key."""
