"""Headstart and its front end: the target's engine, its scheduler, and a drafter beside it."""
