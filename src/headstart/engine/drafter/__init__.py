"""The drafter's process and the channel between it, the front end and the scheduler."""
