"""A drawn driving world: endless seeded drives, what is seen on them, and how it is painted."""
