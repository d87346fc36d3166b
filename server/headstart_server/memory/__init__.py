"""What the server keeps of its tenants' memories: sealed, stored, shown and forgotten."""
