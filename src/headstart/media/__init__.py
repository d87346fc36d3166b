"""What a camera recorded, as arrays: video, events, and the two on one clock.

numpy only above the readers. Knows nothing of models.
"""
