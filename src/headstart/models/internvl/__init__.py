"""InternVL3: frames as items."""
