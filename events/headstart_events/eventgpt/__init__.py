"""EventGPT: the drafter's model. It reads an event camera, several times faster than video."""
