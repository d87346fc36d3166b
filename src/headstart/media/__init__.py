"""Video and events as arrays, and the two on one clock.

Only readers and writers use libraries other than numpy. Nothing here knows of models.
"""
