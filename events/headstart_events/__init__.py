"""Event cameras: their files, pictures of their events, simulation, and EventGPT."""
