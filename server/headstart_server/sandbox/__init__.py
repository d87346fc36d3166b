"""Decodes untrusted bytes in confined worker processes, each of which serves one tenant."""
