"""A live camera of a tenant over a WebSocket: `/v1/live`."""
