"""Live cameras: sources, windows of their frames, and questions that are asked on every window."""
