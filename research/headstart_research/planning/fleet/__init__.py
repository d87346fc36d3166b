"""Many engines behind a router: how many are needed, and what happens when some of them die."""
